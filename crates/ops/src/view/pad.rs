//! Tensors with a border: of a constant, mirrored, of the outermost elements, or of the other end.

use crate::core::decompositions::{Call, size_list};
use crate::core::elementwise::{check_fits, laid_out};
use crate::core::memory_format::{in_memory_format, memory_format_of};
use crate::image;
use crate::view::gradient;
use crate::view::strides::listed;
use crate::{Args, Cx, Decompose, OpDef, Output, Rule, Tags, Tol, Traced, Value};
use tracefx_core::{Diagnostic, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", pad)
        .doc("A border around the last dimensions: constant, reflected, replicated or circular.")
        .tolerance(Tol::Exact),
    OpDef::new("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", constant)
        .vjp(gradient::constant_pad_nd)
        .doc("A border of one value; a negative width crops.")
        .tags(Tags::CORE),
    OpDef::new("aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", |args| mirrored(args, 1))
        .tags(Tags::DECOMPOSED)
        .vjp(image::gradient::reflection_pad1d)
        .doc("A border that mirrors the last dimension without repeating its ends.")
        .decompose(|cx, args| by_index(cx, args, reflect))
        .tags(Tags::CORE),
    OpDef::new("aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", |args| mirrored(args, 2))
        .tags(Tags::DECOMPOSED)
        .vjp(image::gradient::reflection_pad2d)
        .doc("A border that mirrors the last two dimensions without repeating their ends.")
        .decompose(|cx, args| by_index(cx, args, reflect))
        .tags(Tags::CORE),
    OpDef::new("aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", |args| mirrored(args, 3))
        .tags(Tags::DECOMPOSED)
        .vjp(image::gradient::reflection_pad3d)
        .doc("A border that mirrors the last three dimensions without repeating their ends.")
        .decompose(|cx, args| by_index(cx, args, reflect))
        .tags(Tags::CORE),
    OpDef::new("aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", |args| padded(args, 1))
        .vjp(image::gradient::replication_pad1d)
        .doc("A border that repeats the ends of the last dimension.")
        .decompose(|cx, args| by_index(cx, args, replicate)),
    OpDef::new("aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", |args| padded(args, 2))
        .tags(Tags::DECOMPOSED)
        .vjp(image::gradient::replication_pad2d)
        .doc("A border that repeats the ends of the last two dimensions.")
        .decompose(|cx, args| by_index(cx, args, replicate))
        .tags(Tags::CORE),
    OpDef::new("aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", |args| padded(args, 3))
        .tags(Tags::DECOMPOSED)
        .vjp(image::gradient::replication_pad3d)
        .doc("A border that repeats the ends of the last three dimensions.")
        .decompose(|cx, args| by_index(cx, args, replicate))
        .tags(Tags::CORE),
    OpDef::new("aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor", circular)
        .doc("A border that continues with the other end.")
        .decompose(|cx, args| by_index(cx, args, wrap)),
    of_border(
        "aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        |args| folded(args, 1),
        |cx, args| add_by_index(cx, args, reflect),
    )
    .doc("The gradient of `reflection_pad1d`."),
    of_border(
        "aten::reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        |args| folded(args, 2),
        |cx, args| add_by_index(cx, args, reflect),
    )
    .doc("The gradient of `reflection_pad2d`."),
    of_border(
        "aten::reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        |args| folded(args, 3),
        |cx, args| add_by_index(cx, args, reflect),
    )
    .doc("The gradient of `reflection_pad3d`."),
    of_border(
        "aten::replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        |args| folded(args, 1),
        |cx, args| add_by_index(cx, args, replicate),
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The gradient of `replication_pad1d`."),
    of_border(
        "aten::replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        |args| folded(args, 2),
        |cx, args| add_by_index(cx, args, replicate),
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The gradient of `replication_pad2d`."),
    of_border(
        "aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        |args| folded(args, 3),
        |cx, args| add_by_index(cx, args, replicate),
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The gradient of `replication_pad3d`."),
];

/// The gradient of a border that is looked up.
const fn of_border(schema: &'static str, rule: Rule, decompose: Decompose) -> OpDef {
    OpDef::new(schema, rule).decompose(decompose).tolerance(Tol::Default)
}

/// The width before and after each dimension; `pad` has them in pairs from the last dimension on.
fn widths(pad: &[SymInt], rank: usize) -> Vec<(SymInt, SymInt)> {
    let pair = |dim: usize| match pad.get(2 * (rank - 1 - dim)..2 * (rank - dim)) {
        Some([before, after]) => (before.clone(), after.clone()),
        Some(_) | None => (SymInt::ZERO, SymInt::ZERO),
    };
    (0..rank).map(pair).collect()
}

fn with_border(sizes: &[SymInt], pad: &[SymInt]) -> Vec<SymInt> {
    sizes.iter().zip(widths(pad, sizes.len())).map(|(size, (before, after))| size + before + after).collect()
}

fn constant(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, pad) = (args.tensor(0)?, args.sym_ints(1)?);
    let rank = base.sizes.len();
    check_fits(args.scalar(2)?, base.dtype)?;
    if !pad.len().is_multiple_of(2) {
        return Err(args.invalid(format!("Length of pad must be even but instead it equals {}", pad.len())));
    }
    if pad.len() > 2 * rank {
        return Err(args.bad_shape(format!(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while \
             the input has {rank} dimensions.",
            pad.len()
        )));
    }
    let sizes = with_border(&base.sizes, &pad);
    if let Some(dim) = sizes.iter().position(|it| args.less(it, &SymInt::ZERO)) {
        let (before, after) = &widths(&pad, rank)[dim];
        return Err(args.bad_shape(format!(
            "The input size {}, plus negative padding {before} and {after} resulted in a negative output size, which is \
             invalid. Check dimension {dim} of your input.",
            base.sizes[dim]
        )));
    }
    // A crop alone is a copy of a part, which lies in memory as the whole does.
    if pad.iter().all(|it| it.as_int().is_some_and(|it| it <= 0)) {
        let part = TensorMeta { sizes: sizes.clone(), ..base.clone() };
        return Ok(vec![Output::Tensor(laid_out(base.dtype, sizes, &[&part]))]);
    }
    Ok(vec![Output::Tensor(in_memory_format(base.dtype, sizes, memory_format_of(base)))])
}

/// The result of padding the last `n` dimensions of a tensor that may have a batch dimension before its channels.
fn padded(args: &Args<'_, TensorMeta>, n: usize) -> Result<Vec<Output>> {
    let (base, pad) = (args.tensor(0)?, args.sym_ints(1)?);
    let sizes = padded_sizes(args, base, &pad, n)?;
    Ok(vec![Output::Tensor(in_memory_format(base.dtype, sizes, padded_format(base, n)))])
}

fn padded_format(base: &TensorMeta, n: usize) -> MemoryFormat {
    if n == 1 { MemoryFormat::Contiguous } else { memory_format_of(base) }
}

fn padded_sizes(args: &Args<'_, TensorMeta>, base: &TensorMeta, pad: &[SymInt], n: usize) -> Result<Vec<SymInt>> {
    if pad.len() != 2 * n {
        return Err(args.invalid(format!("padding size is expected to be {}, but got: {}", 2 * n, pad.len())));
    }
    let rank = base.sizes.len();
    let is_valid = (rank == n + 1 || rank == n + 2) && base.sizes[rank - n - 1..].iter().all(|it| *it != 0);
    if !is_valid {
        return Err(args.bad_shape(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
             input, but got: {}",
            n + 1,
            n + 2,
            listed(&base.sizes)
        )));
    }
    let sizes = with_border(&base.sizes, pad);
    if sizes[rank - n..].iter().any(|it| args.less(it, &SymInt::ONE)) {
        let named = |sizes: &[SymInt]| -> Vec<String> {
            let names = &["D", "H", "W"][3 - n..];
            names.iter().zip(&sizes[rank - n..]).map(|(name, size)| format!("{name}: {size}")).collect()
        };
        return Err(args.bad_shape(format!(
            "input ({}) is too small. Calculated output {}",
            named(&base.sizes).join(", "),
            named(&sizes).join(" ")
        )));
    }
    Ok(sizes)
}

/// The gradient of the input of padding.
fn folded(args: &Args<'_, TensorMeta>, n: usize) -> Result<Vec<Output>> {
    let (grad, base) = (args.tensor(0)?, args.tensor(1)?);
    let expected = padded_sizes(args, base, &args.sym_ints(2)?, n)?;
    if !args.agree(&grad.sizes, &expected) {
        return Err(args.bad_shape(format!(
            "grad_output size unexpected. Expected: {}, Got: {}",
            listed(&expected),
            listed(&grad.sizes)
        )));
    }
    if grad.dtype != base.dtype || !(grad.dtype.is_float() || grad.dtype.is_complex()) {
        return Err(Diagnostic::unsupported_dtype(grad.dtype, &args.op.name));
    }
    Ok(vec![Output::Tensor(in_memory_format(base.dtype, base.sizes.clone(), padded_format(base, n)))])
}

fn mirrored(args: &Args<'_, TensorMeta>, n: usize) -> Result<Vec<Output>> {
    let res = padded(args, n)?;
    let sizes = &args.tensor(0)?.sizes;
    for (dim, (before, after)) in widths(&args.sym_ints(1)?, sizes.len()).iter().enumerate().skip(sizes.len() - n) {
        if args.less(&(&sizes[dim] - before), &SymInt::ONE) || args.less(&(&sizes[dim] - after), &SymInt::ONE) {
            return Err(args.bad_shape(format!(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding \
                 ({before}, {after}) at dimension {dim} of input {}",
                listed(sizes)
            )));
        }
    }
    Ok(res)
}

fn circular(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, mut pad) = (args.tensor(0)?, args.sym_ints(1)?);
    let rank = base.sizes.len();
    // As in PyTorch, where a last number without its counterpart is not looked at.
    pad.truncate(pad.len() / 2 * 2);
    if !matches!(rank.checked_sub(pad.len() / 2), Some(1 | 2)) {
        let what = "Invalid padding size, expected 1 or 2 non-padded dimensions";
        return Err(args.bad_shape(format!("{what}, but the input has {rank} and {} are padded", pad.len() / 2)));
    }
    let sizes = with_border(&base.sizes, &pad);
    for (dim, (before, after)) in widths(&pad, rank).iter().enumerate() {
        if args.less(&(&base.sizes[dim] - before), &SymInt::ZERO)
            || args.less(&(&base.sizes[dim] - after), &SymInt::ZERO)
        {
            return Err(args.bad_shape("Padding value causes wrapping around more than once."));
        }
        if args.less(&sizes[dim], &SymInt::ZERO) {
            return Err(args.bad_shape("Negative padding value is resulting in an empty dimension"));
        }
    }
    Ok(crate::contiguous(base.dtype, sizes))
}

fn pad(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (pad, mode) = (args.sym_ints(1)?, args.str(2)?);
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    if !pad.len().is_multiple_of(2) {
        return Err(args.invalid("Padding length must be divisible by 2"));
    }
    if pad.len() > 2 * rank {
        return Err(args.bad_shape(format!(
            "Padding length should be less than or equal to two times the input dimension but got padding length {} \
             and input of dimension {rank}",
            pad.len()
        )));
    }
    let call = [&args.values[0], &args.values[1]];
    if mode == "constant" {
        let value = Value::Float(args.opt_float(3)?.unwrap_or(0.0));
        let [base, pad] = call;
        return Ok(vec![cx.aten("constant_pad_nd", [base, pad, &value])?]);
    }
    if args.opt_float(3)?.is_some_and(|it| it != 0.0) {
        let what = format!("Padding mode \"{mode}\" doesn't take in value argument");
        return Err(args.invalid(what));
    }
    let op = match (mode, pad.len() / 2, rank) {
        ("reflect", 1, 2 | 3) => "reflection_pad1d",
        ("reflect", 2, 3 | 4) => "reflection_pad2d",
        ("reflect", 3, 4 | 5) => "reflection_pad3d",
        ("replicate", 1, 2 | 3) => "replication_pad1d",
        ("replicate", 2, 3 | 4) => "replication_pad2d",
        ("replicate", 3, 4 | 5) => "replication_pad3d",
        ("circular", 1, 2 | 3) | ("circular", 2, 3 | 4) | ("circular", 3, 4 | 5) => "_pad_circular",
        ("reflect" | "replicate" | "circular", ..) => {
            return Err(args.unsupported(format!(
                "Padding size {} is not supported for {rank}D input tensor: 2 goes with 2D or 3D, 4 with 3D or 4D, 6 \
                 with 4D or 5D",
                pad.len()
            )));
        }
        (other, ..) => return Err(args.invalid(format!("Unrecognised padding mode {other}"))),
    };
    Ok(vec![cx.aten(op, call)?])
}

/// Padding as a lookup: `place` turns the positions of the result, counted from the first element of the dimension,
/// into those of the input.
fn by_index(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    place: fn(&mut Cx<'_>, &Traced, &SymInt) -> Result<Traced>,
) -> Result<Vec<Traced>> {
    let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
    let mut res = args.values[0].clone();
    for (dim, (before, after)) in widths(&args.sym_ints(1)?, sizes.len()).into_iter().enumerate() {
        if before == 0 && after == 0 {
            continue;
        }
        let positions = cx.aten("arange.start_step", [&Value::Int(-before), &Value::Int(&sizes[dim] + after)])?;
        let mut indices = vec![Value::None; dim];
        indices.push(place(cx, &positions, &sizes[dim])?);
        res = cx.aten("index.Tensor", [&res, &Value::List(indices)])?;
    }
    Ok(vec![res])
}

/// The gradient of padding as a lookup: what was looked up several times adds up.
fn add_by_index(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    place: fn(&mut Cx<'_>, &Traced, &SymInt) -> Result<Traced>,
) -> Result<Vec<Traced>> {
    let sizes = cx.meta(*args.tensor(1)?).sizes.clone();
    let (mut res, mut so_far) = (args.values[0].clone(), cx.meta(*args.tensor(0)?).sizes.clone());
    for (dim, (before, after)) in widths(&args.sym_ints(2)?, sizes.len()).into_iter().enumerate() {
        if before == 0 && after == 0 {
            continue;
        }
        let positions = cx.aten("arange.start_step", [&Value::Int(-before), &Value::Int(&sizes[dim] + after)])?;
        let mut indices = vec![Value::None; dim];
        indices.push(place(cx, &positions, &sizes[dim])?);
        so_far[dim] = sizes[dim].clone();
        let zeros = cx.aten("new_zeros", [&res, &size_list(&so_far)])?;
        res = cx.aten("index_put", [&zeros, &Value::List(indices), &res, &Value::Bool(true)])?;
    }
    let n_padded = args.sym_ints(2)?.len() / 2;
    let format = padded_format(cx.meta(*args.tensor(1)?), n_padded);
    if format != MemoryFormat::Contiguous {
        res = cx.aten_with("clone", [&res], &[("memory_format", Value::MemoryFormat(format))])?;
    }
    Ok(vec![res])
}

/// `last - |last - |i||`: both ends mirror.
fn reflect(cx: &mut Cx<'_>, positions: &Traced, size: &SymInt) -> Result<Traced> {
    let mut places = positions.clone();
    for _ in 0..2 {
        let distance = cx.aten("abs", [&places])?;
        places = cx.aten("rsub.Scalar", [&distance, &Value::Int(size - 1)])?;
    }
    Ok(places)
}

fn replicate(cx: &mut Cx<'_>, positions: &Traced, size: &SymInt) -> Result<Traced> {
    cx.aten("clamp", [positions, &Value::int(0), &Value::Int(size - 1)])
}

fn wrap(cx: &mut Cx<'_>, positions: &Traced, size: &SymInt) -> Result<Traced> {
    cx.aten("remainder.Scalar", [positions, &Value::Int(size.clone())])
}
