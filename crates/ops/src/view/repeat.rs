//! Tensors whose parts come several times.

use crate::core::decompositions::{Call, size_list};
use crate::view::gradient;
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", repeat)
        .vjp(gradient::repeat)
        .doc("The whole tensor several times along each dimension.")
        .tags(Tags::CORE),
    OpDef::composite("aten::tile(Tensor self, SymInt[] dims) -> Tensor", tile)
        .doc("The whole tensor several times along the last dimensions.")
        .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? \
             output_size=None) -> Tensor",
        interleave_equally,
    )
    .doc("Each position of a dimension several times in a row.")
    .tolerance(Tol::Exact),
    OpDef::new("aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", interleave)
        .doc("Each position as often as its number says.")
        .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::composite(
        "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? \
             output_size=None) -> Tensor",
        interleave_by,
    )
    .doc("Each position of a dimension as often in a row as its number says.")
    .tags(Tags::DATA_DEPENDENT_SHAPE)
    .tolerance(Tol::Exact),
];

fn repeat(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, repeats) = (args.tensor(0)?, args.sym_ints(1)?);
    let Some(lead) = repeats.len().checked_sub(base.sizes.len()) else {
        let what = "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor";
        return Err(args.bad_shape(what));
    };
    let own = (0..lead).map(|_| &SymInt::ONE).chain(&base.sizes);
    let sizes: Vec<SymInt> = own.zip(&repeats).map(|(size, n)| size * n).collect();
    if let Some(negative) = repeats.iter().find(|it| it.as_int().is_some_and(|it| it < 0)) {
        let what = format!("Trying to create tensor with negative dimension {negative}: {}", listed(&sizes));
        return Err(args.invalid(what));
    }
    Ok(contiguous(base.dtype, sizes))
}

fn tile(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    let given = args.list(1)?;
    let mut repeats = vec![Value::int(1); rank.saturating_sub(given.len())];
    repeats.extend_from_slice(given);
    Ok(vec![cx.aten("repeat", [&args.values[0], &Value::List(repeats)])?])
}

/// The tensor and dimension that `repeat_interleave` works on: all elements in a row where no dimension is given.
fn input(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<(Traced, usize)> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    Ok(match args.opt_int(2)? {
        Some(dim) => (args.values[0].clone(), normalize_dim(args, dim, rank)?),
        None => (cx.aten("flatten.using_ints", [&args.values[0]])?, 0),
    })
}

fn interleave_equally(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let repeats = args.sym_int(1)?;
    if repeats.as_int().is_some_and(|it| it < 0) {
        return Err(args.invalid("Repeats must be non-negative"));
    }
    let (base, dim) = input(cx, args)?;
    let next = dim as i64 + 1;
    let apart = cx.aten("unsqueeze", [&base, &Value::int(next)])?;
    let Value::Tensor(tensor) = apart else { return Err(args.invalid("unsqueeze gives a tensor")) };
    let mut sizes = cx.meta(tensor).sizes.clone();
    if let Some(size) = args.opt_sym_int(3)?
        && args.differ(size, &(&sizes[dim] * repeats))
    {
        return Err(args.invalid("repeat_interleave: Invalid output_size, expected the size of the repeated dimension"));
    }
    sizes[dim + 1] = repeats.clone();
    let expanded = cx.aten("expand", [&apart, &size_list(&sizes)])?;
    let format = [("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous))];
    let copy = cx.aten_with("clone", [&expanded], &format)?;
    Ok(vec![cx.aten("flatten.using_ints", [&copy, &Value::int(dim as i64), &Value::int(next)])?])
}

fn interleave(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let repeats = args.tensor(0)?;
    if repeats.sizes.len() != 1 {
        return Err(args.bad_shape("repeat_interleave only accept 1D vector as repeat"));
    }
    if !matches!(repeats.dtype, DType::Int32 | DType::Int64) {
        let what = "repeats has to be Long or Int tensor";
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    Ok(match args.opt_sym_int(1)? {
        Some(size) => contiguous(repeats.dtype, vec![size.clone()]),
        None => vec![Output::unknown(repeats.dtype, vec![args.new_size()])],
    })
}

fn interleave_by(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (base, dim) = input(cx, args)?;
    let Value::Tensor(tensor) = base else { return Err(args.invalid("flatten gives a tensor")) };
    let size = cx.meta(tensor).sizes.get(dim).cloned().unwrap_or(SymInt::ONE);
    let repeats = cx.meta(*args.tensor(1)?);
    let n = repeats.sizes.first().cloned().unwrap_or(SymInt::ONE);
    let is_single = repeats.sizes.is_empty() || (repeats.sizes.len() == 1 && n == 1);
    let repeats = if is_single {
        let line = cx.aten("reshape", [&args.values[1], &Value::ints(&[1])])?;
        cx.aten("expand", [&line, &Value::List(vec![Value::Int(size)])])?
    } else if repeats.sizes.len() == 1 {
        if args.differ(&n, &size) {
            let what = format!(
                "repeats must have the same size as input along dim, but got repeats.size(0) = {n} and \
                     input.size({dim}) = {size}"
            );
            return Err(args.bad_shape(what));
        }
        args.values[1].clone()
    } else {
        return Err(args.bad_shape("repeats must be 0-dim or 1-dim tensor"));
    };
    let size = [("output_size", args.values[3].clone())];
    let places = cx.aten_with("repeat_interleave.Tensor", [&repeats], &size)?;
    Ok(vec![cx.aten("index_select", [&base, &Value::int(dim as i64), &places])?])
}
