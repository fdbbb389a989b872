//! The same elements in another order along dimensions.

use crate::core::decompositions::{Call, size_list};
use crate::core::elementwise::laid_out;
use crate::core::memory_format::{in_memory_format, memory_format_of};
use crate::view::gradient;
use crate::view::strides::{normalize_dims, out_of_range, repeated};
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous};
use tracefx_core::{MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::flip(Tensor self, int[] dims) -> Tensor", flip)
        .vjp(gradient::flip)
        .doc("Dimensions the other way round.")
        .tags(Tags::CORE),
    OpDef::composite("aten::fliplr(Tensor self) -> Tensor", |cx, args| flip_one(cx, args, 1))
        .doc("Columns the other way round.")
        .tolerance(Tol::Exact),
    OpDef::composite("aten::flipud(Tensor self) -> Tensor", |cx, args| flip_one(cx, args, 0))
        .doc("Rows the other way round.")
        .tolerance(Tol::Exact),
    OpDef::new("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", roll)
        .doc("Positions moved along dimensions; what leaves at one end comes in at the other.")
        .decompose(roll_by_index),
    OpDef::composite("aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", rot90)
        .doc("Quarter turns in the plane of two dimensions.")
        .tolerance(Tol::Exact),
];

fn flip(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dims = normalize_dims(args, &args.ints(1)?, base.sizes.len())?;
    if (1..dims.len()).any(|at| dims[..at].contains(&dims[at])) {
        return Err(args.invalid(format!("dim {} appears multiple times in the list of dims", repeated(&dims))));
    }
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}

fn flip_one(cx: &mut Cx<'_>, args: &Call<'_>, dim: usize) -> Result<Vec<Traced>> {
    if cx.meta(*args.tensor(0)?).sizes.len() <= dim {
        return Err(args.bad_shape(format!("Input must be >= {}-d.", dim + 1)));
    }
    Ok(vec![cx.aten("flip", [&args.values[0], &Value::ints(&[dim as i64])])?])
}

fn roll(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, shifts, dims) = (args.tensor(0)?, args.sym_ints(1)?, args.ints(2)?);
    if shifts.is_empty() {
        return Err(args.invalid("`shifts` required"));
    }
    if shifts.len() != dims.len() && !(dims.is_empty() && shifts.len() == 1) {
        let what = format!("shifts and dimensions must align. shifts: {}, dims:{}", shifts.len(), dims.len());
        return Err(args.invalid(what));
    }
    if let (Some(dim), true) = (dims.first(), base.sizes.is_empty()) {
        return Err(out_of_range(args, format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    // A roll along dimensions is two parts put together the other way round, and lies in memory as `cat` does: row-major where
    // one of them is empty.
    let at = normalize_dims(args, &dims, base.sizes.len())?;
    let stays = |(&dim, shift): (&usize, &SymInt)| base.sizes[dim] != 0 && shift.modulo(&base.sizes[dim]) == 0;
    if dims.is_empty() || at.iter().zip(&shifts).any(stays) {
        return Ok(contiguous(base.dtype, base.sizes.clone()));
    }
    Ok(vec![Output::Tensor(in_memory_format(base.dtype, base.sizes.clone(), memory_format_of(base)))])
}

fn rot90(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    let dims = args.ints(2)?;
    let [first, second] = dims[..] else {
        let what = format!("expected total rotation dims == 2, but got dims = {}", dims.len());
        return Err(args.invalid(what));
    };
    if rank < 2 {
        return Err(args.bad_shape(format!("expected total dims >= 2, but got total dims = {rank}")));
    }
    let normal = normalize_dims(args, &dims, rank)?;
    if normal[0] == normal[1] {
        let what = "expected rotation dims to be different, but got dim0 =";
        return Err(args.invalid(format!("{what} {first} and dim1 = {second}")));
    }
    let base = &args.values[0];
    let (flipped, turns) = match args.int(1)?.rem_euclid(4) {
        0 => {
            let format = [("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous))];
            return Ok(vec![cx.aten_with("clone", [base], &format)?]);
        }
        1 => (vec![second], true),
        2 => (vec![first, second], false),
        _ => (vec![first], true),
    };
    let res = cx.aten("flip", [base, &Value::ints(&flipped)])?;
    if !turns {
        return Ok(vec![res]);
    }
    Ok(vec![cx.aten("transpose.int", [&res, &Value::int(first), &Value::int(second)])?])
}

fn roll_by_index(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
    let (shifts, dims) = (args.sym_ints(1)?, args.ints(2)?);
    let (mut res, line) = (args.values[0].clone(), [sizes.iter().product::<SymInt>()]);
    let is_whole = dims.is_empty();
    if is_whole {
        res = cx.aten("reshape", [&res, &Value::ints(&[-1])])?;
    }
    let (rolled, dims) = if is_whole { (&line[..], vec![0]) } else { (&sizes[..], dims) };
    for (&dim, shift) in dims.iter().zip(&shifts) {
        let dim = normalize_dims(args, &[dim], rolled.len())?[0];
        let Some(size) = rolled.get(dim) else { return Err(args.bad_shape("a 0-d tensor has no dimensions")) };
        // An empty dimension has nothing to move.
        if *size == 0 {
            continue;
        }
        let start = (size - shift).modulo(size);
        let positions = cx.aten("arange.start_step", [&Value::int(0), &Value::Int(size.clone())])?;
        let moved = cx.aten("add.Tensor", [&positions, &Value::Int(start)])?;
        let places = cx.aten("fmod.Scalar", [&moved, &Value::Int(size.clone())])?;
        res = cx.aten("index_select", [&res, &Value::int(dim as i64), &places])?;
    }
    if is_whole {
        res = cx.aten("reshape", [&res, &size_list(&sizes)])?;
    }
    Ok(vec![res])
}
