//! Blocks of channels and pixels that change places: a view, a permutation and a copy.

use crate::core::decompositions::{Call, size_list};
use crate::core::memory_format::{in_memory_format, memory_format_of};
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Tol, Traced, Value};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", rule)
        .doc("Groups of channels become blocks of pixels.")
        .decompose(decompose),
    OpDef::new("aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", rule)
        .doc("Blocks of pixels become groups of channels.")
        .decompose(decompose),
    OpDef::new("aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", rule)
        .doc("The channels of the groups in turn.")
        .decompose(decompose),
    OpDef::composite("aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", |cx, args| {
        Ok(vec![cx.aten("channel_shuffle", &args.values)?])
    })
    .doc("The channels of the groups in turn.")
    .tolerance(Tol::Exact),
];

/// How a shuffle is made: the input under other sizes, its dimensions in another order, and the result's sizes.
struct Steps {
    split: Vec<SymInt>,
    order: Vec<i64>,
    sizes: Vec<SymInt>,
}

fn steps<T>(args: &Args<'_, T>, sizes: &[SymInt]) -> Result<Steps> {
    match &*args.op.schema.name {
        "channel_shuffle" => channel_steps(args, sizes),
        name => pixel_steps(args, sizes, name == "pixel_shuffle"),
    }
}

fn rule(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let sizes = steps(args, &base.sizes)?.sizes;
    Ok(vec![Output::Tensor(in_memory_format(base.dtype, sizes, memory_format_of(base)))])
}

fn decompose(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let base = cx.meta(*args.tensor(0)?);
    let (steps, format) = (steps(args, &base.sizes)?, memory_format_of(base));
    let split = cx.aten("reshape", [&args.values[0], &size_list(&steps.split)])?;
    let turned = cx.aten("permute", [&split, &Value::ints(&steps.order)])?;
    let res = cx.aten("reshape", [&turned, &size_list(&steps.sizes)])?;
    // A factor of 1 leaves a view, and a shuffle gives a tensor of its own.
    Ok(vec![cx.aten_with("clone", [&res], &[("memory_format", Value::MemoryFormat(format))])?])
}

fn is_divisible<T>(args: &Args<'_, T>, size: &SymInt, by: i64) -> bool {
    !args.differ(&size.modulo(&by.into()), &SymInt::ZERO)
}

fn pixel_steps<T>(args: &Args<'_, T>, sizes: &[SymInt], is_up: bool) -> Result<Steps> {
    let factor = args.int(1)?;
    let (name, factor_name) = (&args.op.schema.name, &args.op.schema.args[1].name);
    let Some(lead) = sizes.len().checked_sub(3) else {
        return Err(args.bad_shape(format!(
            "{name} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            sizes.len()
        )));
    };
    if factor <= 0 {
        return Err(args.invalid(format!("{name} expects a positive {factor_name}, but got {factor}")));
    }
    let area =
        factor.checked_mul(factor).ok_or_else(|| args.invalid(format!("{factor_name} {factor} is too large")))?;
    let [channels, height, width] = [&sizes[lead], &sizes[lead + 1], &sizes[lead + 2]];
    let by = |size: &SymInt, by: i64| size.floor_div(&by.into());
    let r = || SymInt::from(factor);
    let (split, order, result) = if is_up {
        if !is_divisible(args, channels, area) {
            return Err(args.bad_shape(format!(
                "{name} expects its input's 'channel' dimension to be divisible by the square of {factor_name}, but \
                 input.size(-3)={channels} is not divisible by {area}"
            )));
        }
        let split = vec![by(channels, area), r(), r(), height.clone(), width.clone()];
        (split, [0, 3, 1, 4, 2], [by(channels, area), height * factor, width * factor])
    } else {
        for (what, dim, size) in [("height", -2, height), ("width", -1, width)] {
            if !is_divisible(args, size, factor) {
                return Err(args.bad_shape(format!(
                    "{name} expects {what} to be divisible by {factor_name}, but input.size({dim})={size} is not \
                     divisible by {factor}"
                )));
            }
        }
        let (height, width) = (by(height, factor), by(width, factor));
        let split = vec![channels.clone(), height.clone(), r(), width.clone(), r()];
        (split, [0, 2, 4, 1, 3], [channels * area, height, width])
    };
    let batch = &sizes[..lead];
    Ok(Steps {
        split: batch.iter().cloned().chain(split).collect(),
        order: (0..lead as i64).chain(order.map(|it| it + lead as i64)).collect(),
        sizes: batch.iter().cloned().chain(result).collect(),
    })
}

fn channel_steps<T>(args: &Args<'_, T>, sizes: &[SymInt]) -> Result<Steps> {
    let groups = args.int(1)?;
    if sizes.len() <= 2 {
        return Err(args.bad_shape(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
            listed(sizes)
        )));
    }
    if groups <= 0 {
        let what = "Number of groups to divide channels in must be positive. Value of groups:";
        return Err(args.invalid(format!("{what}{groups}")));
    }
    let channels = &sizes[1];
    if !is_divisible(args, channels, groups) {
        return Err(args.bad_shape(format!(
            "Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )));
    }
    let of_group = channels.floor_div(&groups.into());
    let split = [sizes[0].clone(), groups.into(), of_group].into_iter().chain(sizes[2..].iter().cloned()).collect();
    Ok(Steps { split, order: [0, 2, 1].into_iter().chain(3..=sizes.len() as i64).collect(), sizes: sizes.to_vec() })
}
