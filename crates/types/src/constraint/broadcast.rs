//! Broadcasting: all the ways in which two tensors can be broadcast against each other.

use super::{Constraint, Counter, DimTerm, MAX_TENSOR_RANK, TypeTerm};

/// The dimensions of two tensors, and those of what they are broadcast to.
struct Sides<'a> {
    input: [&'a [DimTerm]; 2],
    res: [&'a [DimTerm]; 2],
}

pub(super) fn apply(res: [u32; 2], input: [u32; 2], counter: &mut Counter) -> Constraint {
    let mut all = Vec::new();
    let unchanged = [0, 1].map(|it| Constraint::types(input[it], res[it]));
    for it in input {
        let is_dyn = Constraint::types(it, TypeTerm::Dyn);
        all.push(Constraint::Conj([vec![is_dyn], unchanged.to_vec()].concat()));
    }
    let mut naturals = Vec::new();
    for rank in 1..=MAX_TENSOR_RANK {
        let dims = [counter.dims(rank), counter.dims(rank), counter.dims(rank), counter.dims(rank)];
        dims.iter().for_each(|it| naturals.extend(Constraint::naturals(it)));
        let [x, y, x_res, y_res] = &dims;
        let x_is = Constraint::types(input[0], x);
        let y_is = Constraint::types(input[1], y);
        let x_res_is = Constraint::types(res[0], x_res);
        let y_res_is = Constraint::types(res[1], y_res);
        all.push(Constraint::Conj(vec![
            x_is.clone(),
            x_res_is.clone(),
            y_is.clone(),
            y_res_is.clone(),
            without_padding(&Sides { input: [x, y], res: [x_res, y_res] }),
        ]));
        let sizes = [x_res_is.clone(), y_is, y_res_is.clone()];
        let first = with_padding(input[0], &sizes, y, [x_res, y_res], counter);
        let sizes = [y_res_is, x_is, x_res_is];
        let second = with_padding(input[1], &sizes, x, [y_res, x_res], counter);
        // Nothing is shorter than a tensor of one dimension.
        if rank > 1 {
            all.extend([first, second]);
        }
    }
    Constraint::Conj([vec![Constraint::Disj(all)], naturals].concat())
}

/// Each dimension is broadcast to that of the other tensor, or is not.
fn without_padding(sides: &Sides<'_>) -> Constraint {
    let Sides { input: [x, y], res: [x_res, y_res] } = sides;
    let ways = (0..x.len()).map(|at| {
        let (x, y, x_res, y_res) = (x[at], y[at], x_res[at], y_res[at]);
        let to = |one: DimTerm, other: DimTerm, one_res: DimTerm, other_res: DimTerm| {
            Constraint::Conj(vec![
                Constraint::eq(one, 1),
                Constraint::eq(one_res, other_res),
                Constraint::eq(other_res, other),
            ])
        };
        let both = |of: fn(DimTerm, DimTerm) -> Constraint| {
            Constraint::Conj(vec![of(x, DimTerm::Size(1)), of(y, DimTerm::Size(1))])
        };
        let neither = Constraint::Conj(vec![
            Constraint::Disj(vec![both(Constraint::eq), both(Constraint::ne)]),
            Constraint::eq(x, x_res),
            Constraint::eq(y, y_res),
        ]);
        Constraint::Disj(vec![to(x, y, x_res, y_res), to(y, x, y_res, x_res), neither])
    });
    Constraint::Conj(ways.collect())
}

/// The tensor `shorter` has fewer dimensions than the other one, whose dimensions are `longer`.
fn with_padding(
    shorter: u32,
    [res_is, longer_is, longer_res_is]: &[Constraint; 3],
    longer: &[DimTerm],
    [res, longer_res]: [&[DimTerm]; 2],
    counter: &mut Counter,
) -> Constraint {
    let ways = (1..longer.len()).map(|rank| {
        let dims = counter.dims(rank);
        let n_padded = longer.len() - rank;
        let mut all = vec![Constraint::types(shorter, &dims), res_is.clone(), longer_is.clone(), longer_res_is.clone()];
        all.extend((0..n_padded).map(|at| {
            Constraint::Conj(vec![Constraint::eq(res[at], longer_res[at]), Constraint::eq(longer_res[at], longer[at])])
        }));
        let sides = Sides { input: [&dims, &longer[n_padded..]], res: [&res[n_padded..], &longer_res[n_padded..]] };
        all.push(without_padding(&sides));
        for it in [&dims[..], longer, res, longer_res] {
            all.extend(Constraint::naturals(it));
        }
        Constraint::Conj(all)
    });
    Constraint::Disj(ways.collect())
}
