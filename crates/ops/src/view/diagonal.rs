//! Diagonals: matrices made of them, and matrices that are written on them.

use crate::core::decompositions::{Call, size_list};
use crate::{Cx, OpDef, Tol, Traced, Value, normalize_dim};
use tracefx_core::Result;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::trace(Tensor self) -> Tensor", trace).doc("The sum of the diagonal of a matrix."),
    OpDef::composite("aten::diag(Tensor self, int diagonal=0) -> Tensor", diag)
        .tolerance(Tol::Exact)
        .doc("The diagonal of a matrix, or a matrix with this diagonal."),
    OpDef::composite("aten::diagflat(Tensor self, int offset=0) -> Tensor", diagflat)
        .tolerance(Tol::Exact)
        .doc("A matrix with all elements on its diagonal."),
    OpDef::composite("aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed)
        .tolerance(Tol::Exact)
        .doc("Matrices whose diagonals are the last dimension."),
    OpDef::composite(
        "aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
        |cx, args| Ok(vec![cx.aten("diagonal", &args.values)?]),
    )
    .tolerance(Tol::Exact)
    .doc("The diagonals of matrices."),
    OpDef::composite(
        "aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
        fill_diagonal,
    )
    .tolerance(Tol::Exact)
    .doc("In place: one number on the diagonal."),
];

fn trace(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let rank = cx.meta(this).sizes.len();
    if rank != 2 {
        return Err(args.bad_shape(format!("trace: expected a matrix, but got tensor with dim {rank}")));
    }
    let diagonal = cx.aten("diagonal", [&this.into()])?;
    Ok(vec![cx.aten("sum", [&diagonal])?])
}

fn diag(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let op = match cx.meta(*args.tensor(0)?).sizes.len() {
        1 => "diag_embed",
        2 => "diagonal_copy",
        rank => return Err(args.bad_shape(format!("diag(): Supports 1D or 2D tensors. Got {rank}D"))),
    };
    Ok(vec![cx.aten(op, &args.values)?])
}

fn diagflat(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let line = cx.aten("reshape", [&args.values[0], &Value::ints(&[-1])])?;
    Ok(vec![cx.aten("diag_embed", [&line, &args.values[1]])?])
}

fn diag_embed(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    let (Some((last, lead)), offset) = (meta.sizes.split_last(), args.int(1)?) else {
        return Err(args.bad_shape("diag_embed needs a dimension to put on the diagonal"));
    };
    let rank = meta.sizes.len() + 1;
    let (first, second) = (normalize_dim(args, args.int(2)?, rank)?, normalize_dim(args, args.int(3)?, rank)?);
    if first == second {
        return Err(args.invalid(format!("diagonal dimensions cannot be identical {first}, {second}")));
    }
    let n = last + SymInt::from(offset.saturating_abs());
    let mut sizes = lead.to_vec();
    sizes.insert(first.min(second), n.clone());
    sizes.insert(first.max(second), n);
    let zeros = cx.aten_with("zeros", [&size_list(&sizes)], &[("dtype", Value::DType(meta.dtype))])?;
    let mut call = vec![zeros, this.into()];
    call.extend(args.values[1..].iter().cloned());
    Ok(vec![cx.aten("diagonal_scatter", &call)?])
}

fn fill_diagonal(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    let known = |it: &[SymInt]| it.iter().map(SymInt::as_int).collect::<Option<Vec<i64>>>();
    let (Some(sizes), Some(strides), Some(start)) =
        (known(&meta.sizes), known(&meta.strides), meta.storage_offset.as_int())
    else {
        return Err(args.unsupported("a diagonal of sizes that are not known"));
    };
    if sizes.len() < 2 {
        return Err(args.bad_shape("dimensions must larger than 1"));
    }
    if sizes.len() > 2 && sizes.iter().any(|it| *it != sizes[0]) {
        return Err(args.bad_shape("all dimensions of input must be of equal length"));
    }
    let step: i64 = strides.iter().sum();
    let mut fill = |n: i64, start: i64| -> Result<()> {
        let call = [&this.into(), &Value::ints(&[n]), &Value::ints(&[step]), &Value::int(start)];
        let diagonal = cx.aten("as_strided", call)?;
        cx.aten("fill_.Scalar", [&diagonal, &args.values[1]]).map(|_| ())
    };
    let (height, width) = (sizes[0], sizes[1]);
    let n = height.min(width);
    fill(n, start)?;
    // In a tall matrix the diagonal begins again, one row below where it ended.
    if args.bool(2)? && sizes.len() == 2 && height > width + 1 {
        fill((height * width + width) / (width + 1) - n, start + strides[0] * (width + 1))?;
    }
    Ok(vec![this.into()])
}
