//! Poolings: an invocation for each window and channel, or a workgroup where windows are large, as those of a whole image.

use super::convolution::numbers;
use super::pointwise::{extreme, rounded};
use super::workgroups::{reduced, sharing, summed};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float, int, long};
use tracefx_plan::{Operand, Pool, PoolReduction, TensorId};

/// Windows of so many elements are shared by a workgroup.
const LARGE: usize = 64;

/// The windows of a pooling, with a number for each dimension.
struct Windows {
    kernel: Vec<usize>,
    stride: Vec<usize>,
    padding: Vec<usize>,
    dilation: Vec<usize>,
    reduction: PoolReduction,
}

pub(super) fn pool(cx: &mut Lowering<'_>, it: &Pool<TensorId>) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(it.input)?, cx.view(it.result)?);
    let windows = Windows {
        kernel: it.kernel.to_vec(),
        stride: it.stride.to_vec(),
        padding: it.padding.to_vec(),
        dilation: it.dilation.to_vec(),
        reduction: it.reduction,
    };
    // The windows are those of the dimensions in the middle.
    let turned = |view: &View| view.with_last(1).with_last(1);
    let (input, result) = (turned(&input), turned(&result));
    pooled(cx, &windows, (&input, kind), &result, None)
}

/// Pools the last dimensions.
fn pooled(
    cx: &mut Lowering<'_>,
    windows: &Windows,
    (input, kind): (&View, Kind),
    result: &View,
    positions: Option<&View>,
) -> Lowered {
    let n_dims = windows.kernel.len();
    let lead = result.sizes.len() - n_dims;
    if kind == Kind::Bool || kind == Kind::Long {
        return Err(format!("a pooling of {}", input.dtype.name()).into());
    }
    let window = windows.kernel.iter().try_fold(1usize, |n, it| n.checked_mul(*it)).unwrap_or(usize::MAX);
    let shared = (positions.is_none() && window >= LARGE).then(|| sharing(window));
    if u32::try_from(window).is_err() {
        return Err("a window that is too large".into());
    }
    let body = |shader: &mut Shader, index: &str| {
        let places = coordinates(shader, index, &result.sizes, "c");
        let is_max = windows.reduction == PoolReduction::Max;
        let start = match kind {
            Kind::Float if is_max => "number(0xff800000u)".to_owned(),
            Kind::Int if is_max => int(i32::MIN),
            _ => "0.0f".to_owned(),
        };
        shader.line(format!("var best = {start};"));
        shader.line("var n = 0u;");
        if positions.is_some() {
            shader.line("var at = 0u;");
        }
        let mut pixel: Vec<String> = places[..lead].to_vec();
        let (mut inside, mut position) = (Vec::new(), "0u".to_owned());
        if let Some(size) = shared {
            shader.line(format!("for (var w = local.x; w < {window}u; w += {size}u) {{"));
        }
        for dim in 0..n_dims {
            let (point, size) = (&places[lead + dim], input.sizes[lead + dim]);
            let (kernel, stride) = (windows.kernel[dim], windows.stride[dim]);
            let (padding, dilation) = (windows.padding[dim], windows.dilation[dim]);
            let below: usize = windows.kernel[dim + 1..].iter().product();
            shader.line(match shared {
                Some(_) => format!("let k{dim} = w / {below}u % {kernel}u;"),
                None => format!("for (var k{dim} = 0u; k{dim} < {kernel}u; k{dim}++) {{"),
            });
            shader.line(format!("let p{dim} = {point} * {stride}u + k{dim} * {dilation}u - {padding}u;"));
            inside.push(format!("p{dim} < {size}u"));
            position = format!("({position}) * {size}u + p{dim}");
            pixel.push(format!("p{dim}"));
        }
        shader.line(format!("if ({}) {{", inside.join(" && ")));
        let element = shader.load(input, &input.at(&pixel));
        shader.line(format!("let it = {element};"));
        if is_max {
            if positions.is_some() {
                let is_better =
                    if kind == Kind::Float { "n == 0u || it > best || is_nan(it)" } else { "n == 0u || it > best" };
                shader.line(format!("if ({is_better}) {{ at = {position}; }}"));
            }
            shader.line(format!("best = {};", extreme(kind, true, "best", "it")));
        } else {
            shader.line("best += it;");
        }
        shader.line("n++;");
        shader.line("}".repeat(if shared.is_some() { 2 } else { n_dims + 1 }));
        if let Some(size) = shared {
            let register = if is_max { kind.register() } else { "f32" };
            let join = |a: &str, b: &str| if is_max { extreme(kind, true, a, b) } else { format!("{a} + {b}") };
            let best = reduced(shader, "best", register, size, &join);
            let n = summed(shader, "n", "u32", size);
            shader.line("if (local.x == 0u) {");
            shader.line(format!("best = {best};"));
            shader.line(format!("n = {n};"));
        }
        let value = match windows.reduction {
            PoolReduction::Max => "best".to_owned(),
            PoolReduction::Average { divisor_override: Some(it), .. } => format!("best / {}", float(it as f32)),
            PoolReduction::Average { count_include_pad: false, .. } => "best / f32(n)".to_owned(),
            PoolReduction::Average { .. } => {
                // Elements of the padding count, those behind it do not.
                let mut counted = String::from("1u");
                for dim in 0..n_dims {
                    let (point, size) = (&places[lead + dim], input.sizes[lead + dim]);
                    let (kernel, stride, padding) = (windows.kernel[dim], windows.stride[dim], windows.padding[dim]);
                    let end = size + 2 * padding;
                    counted =
                        format!("{counted} * (min({point} * {stride}u + {kernel}u, {end}u) - {point} * {stride}u)");
                }
                format!("best / f32({counted})")
            }
        };
        let statement = shader.store(result, &result.at(&places), &rounded(&value, result.dtype));
        shader.line(statement);
        if let Some(positions) = positions {
            let statement = shader.store(positions, &positions.at(&places), "vec2<u32>(at, 0u)");
            shader.line(statement);
        }
        if shared.is_some() {
            shader.line("}");
        }
    };
    match shared {
        Some(size) => cx.for_each_row(result.numel(), size, |_, shader| {
            body(shader, "row");
            Ok(())
        }),
        None => cx.for_each(result.numel(), |shader| body(shader, "i")),
    }
}

/// The poolings that are called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    let n_dims = match op {
        "aten.avg_pool1d.default" => 1,
        "aten.avg_pool2d.default"
        | "aten.max_pool2d_with_indices.default"
        | "aten._adaptive_avg_pool2d.default"
        | "aten.adaptive_max_pool2d.default" => 2,
        "aten.avg_pool3d.default"
        | "aten.max_pool3d_with_indices.default"
        | "aten._adaptive_avg_pool3d.default"
        | "aten.adaptive_max_pool3d.default" => 3,
        _ => return None,
    };
    Some(match op.contains("adaptive") {
        true if op.contains("max") => adaptive_max(cx, n_dims, args, results),
        true => adaptive(cx, n_dims, args, results),
        false => windowed(cx, op, n_dims, args, results),
    })
}

fn windowed(cx: &mut Lowering<'_>, op: &str, n_dims: usize, args: &[Operand], results: &[TensorId]) -> Lowered {
    let Some(Operand::Tensor(input)) = args.first() else { return Err("other arguments".into()) };
    let ((input, kind), (result, _)) = (cx.view(*input)?, cx.view(results[0])?);
    let list = |at: usize, default: &[usize]| -> Result<Vec<usize>, Reason> {
        match args.get(at) {
            None | Some(Operand::None) => Ok(default.to_vec()),
            Some(Operand::List(items)) if items.is_empty() => Ok(default.to_vec()),
            Some(it) => numbers(it, n_dims),
        }
    };
    let kernel = list(1, &[])?;
    let stride = list(2, &kernel)?;
    let padding = list(3, &vec![0; n_dims])?;
    if op.contains("max") {
        let dilation = list(4, &vec![1; n_dims])?;
        let windows = Windows { kernel, stride, padding, dilation, reduction: PoolReduction::Max };
        let positions = cx.view(results[1])?.0;
        return pooled(cx, &windows, (&input, kind), &result, Some(&positions));
    }
    let count_include_pad = !matches!(args.get(5), Some(Operand::Bool(false)));
    let divisor_override = if let Some(Operand::Int(it)) = args.get(6) { Some(*it) } else { None };
    if kind != Kind::Float {
        return Err("a pooling of integers".into());
    }
    let reduction = PoolReduction::Average { count_include_pad, divisor_override };
    let windows = Windows { kernel, stride, padding, dilation: vec![1; n_dims], reduction };
    pooled(cx, &windows, (&input, kind), &result, None)
}

/// Opens loops over the elements of the part that a place of the result has, in each of the last dimensions: statements that end with one
/// open bracket a dimension, the coordinates of the element, and the number of elements.
fn parts(shader: &mut Shader, input: &View, result: &View, places: &[String], n_dims: usize) -> (Vec<String>, String) {
    let lead = result.sizes.len() - n_dims;
    let (mut pixel, mut n) = (places[..lead].to_vec(), String::from("1u"));
    for dim in 0..n_dims {
        let (point, from, to) = (&places[lead + dim], input.sizes[lead + dim], result.sizes[lead + dim]);
        shader.line(format!("let from{dim} = {point} * {from}u / {to}u;"));
        shader.line(format!("let e{dim} = (({point} + 1u) * {from}u + {}u) / {to}u;", to - 1));
        n = format!("{n} * (e{dim} - from{dim})");
        pixel.push(format!("p{dim}"));
    }
    for dim in 0..n_dims {
        shader.line(format!("for (var p{dim} = from{dim}; p{dim} < e{dim}; p{dim}++) {{"));
    }
    (pixel, n)
}

/// Whether the ends of parts are numbers that a device holds.
fn are_counted(input: &View, result: &View, n_dims: usize) -> Result<(), Reason> {
    let lead = result.sizes.len() - n_dims;
    let fits = |(from, to): (&usize, &usize)| from.checked_mul(to + 1).is_some_and(|it| it <= i32::MAX as usize);
    let all_fit = input.sizes[lead..].iter().zip(&result.sizes[lead..]).all(fits);
    all_fit.then_some(()).ok_or_else(|| "parts of too many elements".into())
}

/// The mean of each of as many parts as the result has places.
fn adaptive(cx: &mut Lowering<'_>, n_dims: usize, args: &[Operand], results: &[TensorId]) -> Lowered {
    let Some(Operand::Tensor(input)) = args.first() else { return Err("other arguments".into()) };
    let (input, result) = (cx.floats(*input)?, cx.floats(results[0])?);
    are_counted(&input, &result, n_dims)?;
    cx.for_each(result.numel(), |shader: &mut Shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        shader.line("var total = 0.0f;");
        let (pixel, n) = parts(shader, &input, &result, &places, n_dims);
        let element = shader.load(&input, &input.at(&pixel));
        shader.line(format!("total += {element};"));
        shader.line("}".repeat(n_dims));
        let statement =
            shader.store(&result, &result.at(&places), &rounded(&format!("total / f32({n})"), result.dtype));
        shader.line(statement);
    })
}

/// The largest element of each of as many parts as the result has places, and where in its plane it is.
fn adaptive_max(cx: &mut Lowering<'_>, n_dims: usize, args: &[Operand], results: &[TensorId]) -> Lowered {
    let (Some(Operand::Tensor(input)), [result, positions]) = (args.first(), results) else {
        return Err("other arguments".into());
    };
    let ((input, kind), (result, positions)) = (cx.view(*input)?, (cx.view(*result)?.0, cx.view(*positions)?.0));
    are_counted(&input, &result, n_dims)?;
    let is_better = match kind {
        Kind::Float => "it > best || is_nan(it)",
        Kind::Int => "it > best",
        Kind::Long => "long_less(best, it)",
        Kind::Bool => return Err("a pooling of bools".into()),
    };
    let lead = result.sizes.len() - n_dims;
    if input.sizes[lead..].contains(&0) {
        return Err("a pooling of nothing".into());
    }
    cx.for_each(result.numel(), |shader: &mut Shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        shader.line("var n = 0u;");
        shader.line("var at = 0u;");
        shader.line(format!("var best = {};", constant(kind, 0)));
        let (pixel, _) = parts(shader, &input, &result, &places, n_dims);
        let element = shader.load(&input, &input.at(&pixel));
        shader.line(format!("let it = {element};"));
        let position =
            (0..n_dims).fold("0u".to_owned(), |at, dim| format!("({at}) * {}u + p{dim}", input.sizes[lead + dim]));
        shader.line(format!("if (n == 0u || {is_better}) {{"));
        shader.line("best = it;");
        shader.line(format!("at = {position};"));
        shader.line("}");
        shader.line("n++;");
        shader.line("}".repeat(n_dims));
        let statement = shader.store(&result, &result.at(&places), "best");
        shader.line(statement);
        let statement = shader.store(&positions, &positions.at(&places), "vec2<u32>(at, 0u)");
        shader.line(statement);
    })
}

/// The value of a number that is no element.
pub(super) fn constant(kind: Kind, value: i64) -> String {
    match kind {
        Kind::Float => float(value as f32),
        Kind::Int => int(value as i32),
        Kind::Long => long(value),
        Kind::Bool => (value != 0).to_string(),
    }
}
