//! Dimensions of size one, added where there are too few.

use crate::core::decompositions::Call;
use crate::{Cx, OpDef, Tol, Traced, Value};
use tracefx_core::Result;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    row("aten::atleast_1d(Tensor self) -> Tensor", |cx, args| each(cx, args, 1)),
    row("aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", |cx, args| each(cx, args, 1)),
    row("aten::atleast_2d(Tensor self) -> Tensor", |cx, args| each(cx, args, 2)),
    row("aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", |cx, args| each(cx, args, 2)),
    row("aten::atleast_3d(Tensor self) -> Tensor", |cx, args| each(cx, args, 3)),
    row("aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", |cx, args| each(cx, args, 3)),
];

const fn row(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::composite(schema, decompose).tolerance(Tol::Exact).doc("Views with at least so many dimensions.")
}

fn each(cx: &mut Cx<'_>, args: &Call<'_>, n_dims: usize) -> Result<Vec<Traced>> {
    Ok(vec![match &args.values[0] {
        Value::List(items) => Value::List(items.iter().map(|it| atleast(cx, it, n_dims)).collect::<Result<_>>()?),
        one => atleast(cx, one, n_dims)?,
    }])
}

fn atleast(cx: &mut Cx<'_>, value: &Traced, n_dims: usize) -> Result<Traced> {
    let Value::Tensor(tensor) = value else { return Ok(value.clone()) };
    let rank = cx.meta(*tensor).sizes.len();
    // In front, but a third dimension goes behind two others, and a line becomes the middle one of three.
    let places: &[i64] = match (rank, n_dims) {
        (0, 1) => &[0],
        (0, 2) => &[0, 0],
        (0, 3) => &[0, 0, 0],
        (1, 2) => &[0],
        (1, 3) => &[0, -1],
        (2, 3) => &[-1],
        _ => &[],
    };
    places.iter().try_fold(value.clone(), |it, &at| cx.aten("unsqueeze", [&it, &Value::int(at)]))
}
