//! Constraints in terms of simpler ones: `transform_constraint`, applied until nothing changes.

use super::{
    Arithmetic, Constraint, Counter, DimTerm, MAX_TENSOR_RANK, Relation, SizeTerm, TypeTerm, broadcast, reshape,
};
use crate::Window;
use crate::check::place;
use tracefx_core::{Code, Diagnostic, Result};

/// How often constraints are transformed; those of torch.fx are done after three times.
const MAX_ROUNDS: usize = 16;

pub(super) fn until_fixed_point(mut constraint: Constraint, counter: &mut Counter) -> Result<Constraint> {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        constraint = step(constraint, counter, &mut changed);
        if !changed {
            return Ok(constraint);
        }
    }
    Err(Diagnostic::new(Code::LimitExceeded, format!("constraints change after {MAX_ROUNDS} rounds of transformation")))
}

/// One round: each constraint is transformed once. The order is that of torch.fx, so that variables have its numbers.
fn step(constraint: Constraint, counter: &mut Counter, changed: &mut bool) -> Constraint {
    let transformed = match constraint {
        Constraint::Conj(items) => {
            return Constraint::Conj(items.into_iter().map(|it| step(it, counter, changed)).collect());
        }
        Constraint::Disj(items) => {
            return Constraint::Disj(items.into_iter().map(|it| step(it, counter, changed)).collect());
        }
        Constraint::True | Constraint::False | Constraint::Bool(..) => return constraint,
        Constraint::Type(lhs, relation, rhs) => match relation {
            Relation::Precision => precision(lhs, rhs, counter),
            Relation::Matching => matching(lhs, rhs),
            Relation::Consistency => consistency(&lhs, &rhs, counter),
            Relation::Eq | Relation::Ne | Relation::Le | Relation::Lt | Relation::Gt => {
                return Constraint::Type(lhs, relation, rhs);
            }
        },
        Constraint::RankLe(var, rank) => {
            let tensor = |rank| Constraint::types(var, &counter.dims(rank));
            let mut all = vec![Constraint::types(var, TypeTerm::Dyn)];
            all.extend((1..=rank).map(tensor));
            Constraint::Disj(all)
        }
        Constraint::Dim(lhs, relation, rhs) => match (relation, &lhs) {
            (Relation::Precision, SizeTerm::Dim(DimTerm::Size(_))) => Constraint::eq(lhs, rhs),
            (Relation::Precision, SizeTerm::Dim(DimTerm::Dyn)) => Constraint::True,
            (Relation::Consistency, _) => Constraint::Disj(vec![
                Constraint::eq(lhs.clone(), rhs.clone()),
                Constraint::eq(rhs, DimTerm::Dyn),
                Constraint::eq(lhs, DimTerm::Dyn),
            ]),
            (_, _) => return Constraint::Dim(lhs, relation, rhs),
        },
        Constraint::TGreatestUpperBound { res, rhs } => greatest_upper_bound(res, rhs, counter),
        Constraint::DGreatestUpperBound { res, rhs: [a, b] } => {
            let case = |x, y, value: DimTerm| Constraint::Conj(vec![Constraint::eq(x, y), Constraint::eq(res, value)]);
            Constraint::Disj(vec![case(a, DimTerm::Dyn, b), case(b, DimTerm::Dyn, a), case(b, a, a)])
        }
        Constraint::CanReshape { src, target } => reshape::can_reshape(src, &target, counter),
        Constraint::IndexSelect { tensor_size, input, dim_replace, index, output } => {
            let dims = counter.dims(tensor_size);
            let mut new_dims = dims.clone();
            let at = place(index, tensor_size);
            if let Some(at) = at {
                new_dims[at] = dim_replace;
            }
            let mut all = vec![Constraint::types(input, &dims)];
            all.extend(Constraint::naturals(&dims));
            all.extend([Constraint::of_bool(at.is_some()), Constraint::types(output, &new_dims)]);
            Constraint::Conj(all)
        }
        Constraint::Transpose { tensor_size, input, index, output } => {
            let dims = counter.dims(tensor_size);
            let mut new_dims = dims.clone();
            let [a, b] = index.map(|it| place(it, tensor_size));
            if let (Some(a), Some(b)) = (a, b) {
                new_dims.swap(a, b);
            }
            let mut all = vec![Constraint::types(input, &dims)];
            all.extend(Constraint::naturals(&dims));
            all.extend([a, b].map(|it| Constraint::of_bool(it.is_some())));
            all.push(Constraint::types(output, &new_dims));
            Constraint::Conj(all)
        }
        Constraint::GetItem { tensor_size, index, res, input } => {
            let dims = counter.dims(tensor_size);
            let at = place(index, tensor_size);
            let mut all = vec![Constraint::types(input, &dims)];
            all.extend(Constraint::naturals(&dims));
            all.push(Constraint::of_bool(at.is_some()));
            all.extend(at.map(|at| Constraint::eq(res, dims[at])));
            Constraint::Conj(all)
        }
        Constraint::GetItemTensor { tensor_size, index, res, input } => {
            get_item_tensor(tensor_size, &index, res, input, counter)
        }
        Constraint::CalcConv { res, c_out, window, dims, .. } => {
            let output = counter.dims4();
            let is_channels =
                Constraint::Conj(vec![Constraint::eq(output[1], c_out), Constraint::ne(output[1], DimTerm::Dyn)]);
            calc_window(res, is_channels, &window, &dims, &output, Constraint::eq(dims[0], output[0]))
        }
        Constraint::CalcMaxPool { res, window, dims, .. } => {
            let output = counter.dims4();
            let same_channels = Constraint::eq(dims[1], output[1]);
            calc_window(res, same_channels, &window, &dims, &output, Constraint::eq(dims[0], output[0]))
        }
        Constraint::ApplyBroadcasting { res, input } => broadcast::apply(res, input, counter),
        Constraint::CalcProduct { start, end, flattened, dims } => {
            reshape::calc_product(start, end, flattened, &dims, counter)
        }
    };
    *changed = true;
    transformed
}

fn precision(lhs: TypeTerm, rhs: TypeTerm, counter: &mut Counter) -> Constraint {
    match lhs {
        TypeTerm::Tensor(dims) if dims.contains(&DimTerm::Dyn) => {
            let new_dims = counter.dims(dims.len());
            let precise = dims.iter().zip(&new_dims);
            let mut all: Vec<Constraint> =
                precise.map(|(old, new)| Constraint::Dim((*old).into(), Relation::Precision, (*new).into())).collect();
            all.push(Constraint::types(rhs, &new_dims));
            all.extend(new_dims.iter().map(|it| Constraint::le(1, *it)));
            Constraint::Conj(all)
        }
        TypeTerm::Dyn => Constraint::True,
        TypeTerm::Tensor(_) | TypeTerm::Var(_) => Constraint::types(lhs, rhs),
    }
}

fn matching(lhs: TypeTerm, rhs: TypeTerm) -> Constraint {
    let mut unknown = vec![Constraint::types(lhs.clone(), TypeTerm::Dyn)];
    if let TypeTerm::Tensor(dims) = &rhs {
        unknown.extend(dims.iter().map(|it| Constraint::eq(*it, DimTerm::Dyn)));
    }
    Constraint::Disj(vec![Constraint::Conj(unknown), Constraint::types(lhs, rhs)])
}

fn consistency(lhs: &TypeTerm, rhs: &TypeTerm, counter: &mut Counter) -> Constraint {
    let is_dyn = |it: &TypeTerm| Constraint::types(it.clone(), TypeTerm::Dyn);
    let mut all = vec![Constraint::Disj(vec![is_dyn(lhs), is_dyn(rhs)])];
    for rank in 1..=MAX_TENSOR_RANK {
        let (x, y) = (counter.dims(rank), counter.dims(rank));
        let mut conj = vec![Constraint::types(lhs.clone(), &x), Constraint::types(rhs.clone(), &y)];
        conj.extend(x.iter().zip(&y).map(|(x, y)| Constraint::Dim((*x).into(), Relation::Consistency, (*y).into())));
        conj.extend(Constraint::naturals(&x));
        conj.extend(Constraint::naturals(&y));
        all.push(Constraint::Conj(conj));
    }
    Constraint::Disj(all)
}

fn greatest_upper_bound(res: u32, [a, b]: [u32; 2], counter: &mut Counter) -> Constraint {
    let is_dyn = |var| Constraint::types(var, TypeTerm::Dyn);
    let mut all = vec![Constraint::Conj(vec![Constraint::Disj(vec![is_dyn(a), is_dyn(b)]), is_dyn(res)])];
    for rank in 1..=MAX_TENSOR_RANK {
        let (x, y, z) = (counter.dims(rank), counter.dims(rank), counter.dims(rank));
        let mut conj = vec![Constraint::types(a, &x), Constraint::types(b, &y), Constraint::types(res, &z)];
        [&x, &y, &z].into_iter().for_each(|it| conj.extend(Constraint::naturals(it)));
        let dims = x.iter().zip(&y).zip(&z);
        conj.extend(dims.map(|((x, y), z)| Constraint::DGreatestUpperBound { res: *z, rhs: [*x, *y] }));
        all.push(Constraint::Conj(conj));
    }
    Constraint::Disj(all)
}

fn get_item_tensor(rank: usize, index: &[bool], res: u32, input: u32, counter: &mut Counter) -> Constraint {
    let dims = counter.dims(rank);
    let n_new = index.iter().filter(|it| **it).count();
    let n_slices = index.len() - n_new;
    if rank + n_new > MAX_TENSOR_RANK || n_slices > rank {
        return Constraint::False;
    }
    let mut left = dims.iter().copied();
    let at = |at: usize| index.get(at).copied().unwrap_or(false);
    let output = (0..rank + n_new).filter_map(|it| if at(it) { Some(DimTerm::Size(1)) } else { left.next() });
    let output: Vec<DimTerm> = output.collect();
    let mut all = vec![Constraint::types(input, &dims), Constraint::types(res, &output)];
    all.extend(Constraint::naturals(&dims));
    all.push(Constraint::True);
    Constraint::Conj(all)
}

/// The result of a window: `channels` and `batch` say what its first two dimensions are.
fn calc_window(
    res: u32,
    channels: Constraint,
    window: &Window,
    input: &[DimTerm; 4],
    output: &[DimTerm; 4],
    batch: Constraint,
) -> Constraint {
    let mut all = vec![Constraint::types(res, &output[..]), channels, batch];
    for at in 0..2 {
        let (x, y) = (input[2 + at], output[2 + at]);
        let both =
            |of: fn(DimTerm, DimTerm) -> Constraint| Constraint::Conj(vec![of(y, DimTerm::Dyn), of(x, DimTerm::Dyn)]);
        let padded = SizeTerm::binary(Arithmetic::Add, x, SizeTerm::binary(Arithmetic::Mul, 2, window.padding[at]));
        let taken = SizeTerm::binary(
            Arithmetic::Mul,
            window.dilation[at],
            SizeTerm::binary(Arithmetic::Sub, window.kernel_size[at], 1),
        );
        let room = SizeTerm::binary(Arithmetic::Sub, SizeTerm::binary(Arithmetic::Sub, padded, taken), 1);
        let steps = SizeTerm::binary(Arithmetic::Div, room, window.stride[at]);
        let size = SizeTerm::binary(Arithmetic::Add, steps, 1);
        let known = Constraint::Conj(vec![both(Constraint::ne), Constraint::eq(y, size)]);
        all.push(Constraint::Disj(vec![both(Constraint::eq), known]));
    }
    all.push(Constraint::Conj(Constraint::naturals(output).collect()));
    Constraint::Conj(all)
}
