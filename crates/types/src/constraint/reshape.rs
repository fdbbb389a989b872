//! Shapes of the same number of elements, where dimensions may be unknown.

use super::{Arithmetic, Constraint, Counter, DimTerm, MAX_TENSOR_RANK, SizeTerm, TypeTerm};

/// Whether each dimension is unknown: all the ways, the first dimension changing slowest.
fn possibilities(dims: &[DimTerm]) -> impl Iterator<Item = Vec<bool>> + use<> {
    let n = dims.len();
    (0..1_usize << n).map(move |bits| (0..n).map(|at| bits >> (n - 1 - at) & 1 == 0).collect())
}

fn is_unknown(dims: &[DimTerm], unknown: &[bool]) -> Vec<Constraint> {
    let one = |(dim, unknown): (&DimTerm, &bool)| {
        if *unknown { Constraint::eq(*dim, DimTerm::Dyn) } else { Constraint::ne(*dim, DimTerm::Dyn) }
    };
    dims.iter().zip(unknown).map(one).collect()
}

fn divides(divisor: SizeTerm, number: SizeTerm) -> Constraint {
    Constraint::eq(SizeTerm::binary(Arithmetic::Mod, number, divisor), 0)
}

/// A product of one dimension is the dimension.
fn product(dims: &[DimTerm]) -> SizeTerm {
    if let [dim] = dims { (*dim).into() } else { SizeTerm::Prod(dims.to_vec()) }
}

/// The tensor is unknown, or of some rank and of the right number of elements.
pub(super) fn can_reshape(src: u32, target: &[DimTerm], counter: &mut Counter) -> Constraint {
    let dims = counter.dims(MAX_TENSOR_RANK);
    let known: Vec<DimTerm> = target.iter().copied().filter(|it| *it != DimTerm::Dyn).collect();
    let is_static = known.len() == target.len();
    let mut all = vec![Constraint::types(src, TypeTerm::Dyn)];
    for rank in 1..=MAX_TENSOR_RANK {
        let dims = &dims[..rank];
        let fits = match rank {
            _ if is_static && rank > 1 => to_static(dims, target),
            1 => {
                let same = if is_static {
                    Constraint::eq(dims[0], SizeTerm::Prod(target.to_vec()))
                } else {
                    divides(SizeTerm::Prod(known.clone()), dims[0].into())
                };
                let known = Constraint::Conj(vec![Constraint::ne(dims[0], DimTerm::Dyn), same]);
                Constraint::Disj(vec![Constraint::eq(dims[0], DimTerm::Dyn), known])
            }
            _ => {
                let any_unknown = is_unknown(dims, &vec![true; rank]);
                let mut all_known = is_unknown(dims, &vec![false; rank]);
                all_known.push(divides(SizeTerm::Prod(known.clone()), product(dims)));
                Constraint::Disj(vec![Constraint::Disj(any_unknown), Constraint::Conj(all_known)])
            }
        };
        all.push(Constraint::Conj(vec![Constraint::types(src, dims), fits]));
    }
    let mut conj = vec![Constraint::Disj(all)];
    conj.extend(Constraint::naturals(&dims));
    Constraint::Conj(conj)
}

fn to_static(dims: &[DimTerm], target: &[DimTerm]) -> Constraint {
    let target = || SizeTerm::Prod(target.to_vec());
    let ways = possibilities(dims).map(|unknown| {
        let mut all = is_unknown(dims, &unknown);
        let known: Vec<DimTerm> = dims.iter().zip(&unknown).filter(|(_, it)| !**it).map(|(dim, _)| *dim).collect();
        if known.len() == dims.len() {
            all.push(Constraint::eq(SizeTerm::Prod(known), target()));
        } else if !known.is_empty() {
            all.push(divides(SizeTerm::Prod(known), target()));
        }
        Constraint::Conj(all)
    });
    Constraint::Disj(ways.collect())
}

/// A tensor with the dimensions `start..end` as one, which is unknown if one of them is.
pub(super) fn calc_product(
    start: usize,
    end: usize,
    flattened: u32,
    dims: &[DimTerm],
    counter: &mut Counter,
) -> Constraint {
    let n = dims.len();
    let (from, to) = (start.min(n), end.min(n));
    let mid = dims.get(from..to).unwrap_or(&[]);
    let ways = possibilities(mid).map(|unknown| {
        let has_unknown = unknown.contains(&true);
        let flat = if has_unknown { DimTerm::Dyn } else { counter.dim() };
        let output = [&dims[..from], &[flat], &dims[to..]].concat();
        if output.len() > MAX_TENSOR_RANK {
            return Constraint::False;
        }
        let mut all = vec![Constraint::types(flattened, &output)];
        if !has_unknown {
            all.push(Constraint::Conj(vec![
                Constraint::eq(flat, SizeTerm::Prod(mid.to_vec())),
                Constraint::ne(flat, DimTerm::Dyn),
            ]));
        }
        all.extend(is_unknown(mid, &unknown));
        Constraint::Conj(all)
    });
    let ways = ways.collect();
    Constraint::Conj(vec![Constraint::Disj(ways), Constraint::of_bool(start < end && end <= n)])
}
