//! Convolutions: of channels-last images as products whose left factor is gathered while it is read; where a filter sees few channels, and for
//! all that is called, an invocation for each element.

use super::matrices::{Access, Sizes, Tail, tiled};
use super::pointwise::{converted, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float, int};
use tracefx_plan::{Convolution, ConvolutionLayer, Operand, QuantizedConvolution, Rounding, TensorId, Window};

/// Filters that see fewer channels are no matrix.
const FEW_CHANNELS: usize = 4;

pub(super) fn channels_last(cx: &mut Lowering<'_>, it: &Convolution<TensorId>) -> Lowered {
    let (mut images, scale) = (cx.floats(it.input)?, it.scale.map(|it| cx.floats(it)).transpose()?);
    let result = cx.floats(it.result)?;
    let mut dispatches = Vec::new();
    for (at, layer) in it.layers.iter().enumerate() {
        let weight = cx.floats(layer.weight)?;
        let sizes = four(&images.sizes)
            .zip(four(&weight.sizes))
            .and_then(|(images, weight)| layer.result_sizes(images, weight))
            .ok_or("a convolution's sizes do not fit")?;
        let target = if at + 1 == it.layers.len() { result.clone() } else { cx.scratch(images.dtype, &sizes)? };
        let tail = Tail::of(cx, &layer.epilogue)?;
        dispatches.extend(self::layer(cx, layer, (&images, scale.as_ref(), &weight), &tail, &target)?);
        images = target;
    }
    Ok(dispatches)
}

fn four(sizes: &[usize]) -> Option<[usize; 4]> {
    sizes.try_into().ok()
}

fn layer(
    cx: &mut Lowering<'_>,
    layer: &ConvolutionLayer<TensorId>,
    (images, scale, weight): (&View, Option<&View>, &View),
    tail: &Tail,
    result: &View,
) -> Lowered {
    let ([h, w, c], [oh, ow, o]) = ([1, 2, 3].map(|it| images.sizes[it]), [1, 2, 3].map(|it| result.sizes[it]));
    let (per_group, [kh, kw]) = (weight.sizes[1], [weight.sizes[2], weight.sizes[3]]);
    if per_group * kh * kw == 0 {
        return Err("a convolution of nothing".into());
    }
    let numbers = [layer.stride, layer.padding, layer.dilation].concat();
    if numbers.iter().any(|it| *it > i32::MAX as usize) {
        return Err("a window that is too large".into());
    }
    let filters = o / layer.groups;
    let pixel = |dim: usize, point: &str, tap: &str| {
        let (stride, dilation, padding) = (layer.stride[dim], layer.dilation[dim], layer.padding[dim]);
        format!("{point} * {stride}u + {tap} * {dilation}u - {padding}u")
    };
    // A pixel in front of the image is a number beyond it.
    let gather = |shader: &mut Shader| {
        shader.line(format!("let iy = {};", pixel(0, "oy", "ky")));
        shader.line(format!("let ix = {};", pixel(1, "ox", "kx")));
        shader.line("var pixel = 0.0f;");
        shader.line(format!("if (iy < {h}u && ix < {w}u) {{"));
        let element =
            shader.load(images, &format!("{}u + ((image * {h}u + iy) * {w}u + ix) * {c}u + channel", images.offset));
        shader.line(format!("pixel = {element};"));
        shader.line("}");
    };
    if per_group < FEW_CHANNELS && layer.groups > 1 {
        return cx.for_each(result.numel(), |shader| {
            shader.line(format!("let filter_at = i % {o}u;"));
            shader.line(format!("let ox = i / {o}u % {ow}u;"));
            shader.line(format!("let oy = i / {}u % {oh}u;", o * ow));
            shader.line(format!("let image = i / {}u;", o * ow * oh));
            shader.line("var total = 0.0f;");
            shader.line(format!("for (var ky = 0u; ky < {kh}u; ky++) {{"));
            shader.line(format!("for (var kx = 0u; kx < {kw}u; kx++) {{"));
            shader.line(format!("for (var kc = 0u; kc < {per_group}u; kc++) {{"));
            shader.line(format!("let channel = filter_at / {filters}u * {per_group}u + kc;"));
            gather(shader);
            let at = weight.at(&["filter_at", "kc", "ky", "kx"].map(str::to_owned));
            let factor = shader.load(weight, &at);
            shader.line(format!("total += pixel * {factor};"));
            shader.line("} } }");
            shader.line("let sum = total;");
            tail.store(shader, result, "filter_at", "i");
        });
    }
    let sizes = Sizes { batch: layer.groups, m: result.numel() / o.max(1), n: filters, k: kh * kw * per_group };
    let access = Access {
        lhs: &mut |shader| {
            shader.line(format!("let ox = y % {ow}u;"));
            shader.line(format!("let oy = y / {ow}u % {oh}u;"));
            shader.line(format!("let image = y / {}u;", ow * oh));
            shader.line(format!("let channel = z * {per_group}u + t % {per_group}u;"));
            shader.line(format!("let kx = t / {per_group}u % {kw}u;"));
            shader.line(format!("let ky = t / {}u;", per_group * kw));
            gather(shader);
            match scale {
                Some(scale) => {
                    let factor = shader.load(scale, &format!("{}u + image * {c}u + channel", scale.offset));
                    format!("pixel * {factor}")
                }
                None => "pixel".to_owned(),
            }
        },
        rhs: &mut |shader| {
            let places = [
                format!("(z * {filters}u + x)"),
                format!("(t % {per_group}u)"),
                format!("(t / {}u)", per_group * kw),
                format!("(t / {per_group}u % {kw}u)"),
            ];
            shader.load(weight, &weight.at(&places))
        },
        store: &mut |shader| {
            shader.line(format!("let filter_at = z * {filters}u + x;"));
            tail.store(shader, result, "filter_at", &format!("y * {o}u + filter_at"));
        },
        is_along_terms: [true, true],
        are_halves: scale.is_none() && cx.are_halves(&[images.dtype, weight.dtype]),
    };
    tiled(cx, sizes, access)
}

/// A convolution of integers: an invocation for each element, whose sum is exact.
pub(super) fn quantized(cx: &mut Lowering<'_>, it: &QuantizedConvolution<TensorId>) -> Lowered {
    let (input, weight, result) = (cx.view(it.input)?.0, cx.view(it.weight)?.0, cx.view(it.result)?.0);
    let optional = |it: &Option<TensorId>| it.map(|it| cx.view(it)).transpose();
    let (zeros, scales, bias) = (optional(&it.weight_zero_points)?, optional(&it.scales)?, optional(&it.bias)?);
    let residual = match &it.residual {
        Some(residual) => Some((cx.view(residual.tensor)?.0, residual)),
        None => None,
    };
    let ([h, w, c], [oh, ow, o]) = ([1, 2, 3].map(|it| input.sizes[it]), [1, 2, 3].map(|it| result.sizes[it]));
    let (per_group, [kh, kw]) = (weight.sizes[1], [weight.sizes[2], weight.sizes[3]]);
    let Window { stride, padding, dilation, groups } = it.window;
    let filters = o / groups;
    cx.for_each(result.numel(), |shader| {
        shader.line(format!("let filter_at = i % {o}u;"));
        shader.line(format!("let ox = i / {o}u % {ow}u;"));
        shader.line(format!("let oy = i / {}u % {oh}u;", o * ow));
        shader.line(format!("let image = i / {}u;", o * ow * oh));
        let channel = ["filter_at".to_owned()];
        let zero = match &zeros {
            Some((zeros, _)) => converted(&shader.load(zeros, &zeros.at(&channel)), Kind::Long, Kind::Int),
            None => "0i".to_owned(),
        };
        shader.line(format!("let zero = {zero};"));
        shader.line("var total = 0i;");
        for (dim, size) in [("y", kh), ("x", kw)] {
            shader.line(format!("for (var k{dim} = 0u; k{dim} < {size}u; k{dim}++) {{"));
        }
        for (at, dim) in ["y", "x"].into_iter().enumerate() {
            let [stride, padding, dilation] = [stride[at], padding[at], dilation[at]];
            shader.line(format!("let i{dim} = o{dim} * {stride}u + k{dim} * {dilation}u - {padding}u;"));
        }
        shader.line(format!("if (iy < {h}u && ix < {w}u) {{"));
        shader.line(format!("for (var kc = 0u; kc < {per_group}u; kc++) {{"));
        shader.line(format!("let channel = filter_at / {filters}u * {per_group}u + kc;"));
        let at = format!("{}u + ((image * {h}u + iy) * {w}u + ix) * {c}u + channel", input.offset);
        let pixel = shader.load(&input, &at);
        let factor = shader.load(&weight, &weight.at(&["filter_at", "kc", "ky", "kx"].map(str::to_owned)));
        shader.line(format!("total += ({pixel} - {}) * ({factor} - zero);", int(it.zero_point)));
        shader.line("} } } }");
        let mut value = format!("f32(total) * {}", float(it.scale as f32));
        if let Some((scales, _)) = &scales {
            value = format!("{value} * {}", shader.load(scales, &scales.at(&channel)));
        }
        if let Some((bias, _)) = &bias {
            value = format!("({value} + {})", shader.load(bias, &bias.at(&channel)));
        }
        let whole = |value: &str, it: &Rounding| {
            let quotient = format!("round({value} / {})", float(it.scale as f32));
            let [zero, min, max] = [it.zero_point, it.min, it.max].map(|it| float(it as f32));
            format!("clamp({quotient} + {zero}, {min}, {max})")
        };
        if let Some(it) = &it.inner {
            let zero = float(it.zero_point as f32);
            value = format!("(({} - {zero}) * {})", whole(&value, it), float(it.scale as f32));
        }
        if let Some((view, residual)) = &residual {
            let element = shader.load(view, &format!("{}u + i", view.offset));
            let number = format!("f32({element} - {}) * {}", int(residual.zero_point), float(residual.scale as f32));
            value = format!("({value} + {number})");
        }
        if it.limits != [f32::NEG_INFINITY, f32::INFINITY] {
            value = format!("clamped({value}, {}, {})", float(it.limits[0]), float(it.limits[1]));
        }
        if let Some(it) = &it.rounding {
            value = format!("i32({})", whole(&value, it));
        }
        let statement = shader.store(&result, &format!("{}u + i", result.offset), &value);
        shader.line(statement);
    })
}

/// `aten.convolution`, of one to three dimensions.
pub(super) fn call(cx: &mut Lowering<'_>, args: &[Operand], result: TensorId) -> Lowered {
    let [
        Operand::Tensor(input),
        Operand::Tensor(weight),
        bias,
        stride,
        padding,
        dilation,
        Operand::Bool(is_transposed),
        _,
        Operand::Int(groups),
    ] = args
    else {
        return Err("a convolution of other arguments".into());
    };
    let (input, weight, result) = (cx.floats(*input)?, cx.floats(*weight)?, cx.floats(result)?);
    let bias = match bias {
        Operand::Tensor(it) => Some(cx.floats(*it)?),
        _ => None,
    };
    let n_dims = weight.sizes.len() - 2;
    if input.sizes.len() != n_dims + 2 || !(1..=3).contains(&n_dims) {
        return Err("a convolution of other dimensions".into());
    }
    let window = Direct::of([stride, padding, dilation], (*is_transposed, *groups), n_dims)?;
    direct(cx, &window, (&input, &weight, bias.as_ref()), &result)
}

/// The windows of a convolution, with a number for each dimension.
#[derive(Clone)]
pub(super) struct Direct {
    pub(super) stride: Vec<usize>,
    pub(super) padding: Vec<usize>,
    pub(super) dilation: Vec<usize>,
    pub(super) groups: usize,
    pub(super) is_transposed: bool,
}

impl Direct {
    /// Those of a call with this stride, padding and dilation.
    pub(super) fn of(
        lists: [&Operand; 3],
        (is_transposed, groups): (bool, i64),
        n_dims: usize,
    ) -> Result<Self, Reason> {
        let [stride, padding, dilation] = lists.map(|it| numbers(it, n_dims));
        let groups = usize::try_from(groups).map_err(|_| "other arguments")?.max(1);
        Ok(Direct { stride: stride?, padding: padding?, dilation: dilation?, groups, is_transposed })
    }
}

/// An invocation for each element.
pub(super) fn direct(
    cx: &mut Lowering<'_>,
    window: &Direct,
    (input, weight, bias): (&View, &View, Option<&View>),
    result: &View,
) -> Lowered {
    let Direct { stride, padding, dilation, groups, is_transposed } = window;
    let n_dims = weight.sizes.len() - 2;
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        // Of a transposed one, the filters lie in the second dimension.
        let channels = input.sizes[1] / (*groups).max(1);
        let filters = result.sizes[1] / (*groups).max(1);
        shader.line(format!("let first = c1 / {filters}u * {channels}u;"));
        shader.line("var total = 0.0f;");
        shader.line(format!("for (var k = 0u; k < {channels}u; k++) {{"));
        let (mut pixel, mut tap) = (
            vec![places[0].clone(), "(first + k)".to_owned()],
            match is_transposed {
                true => vec!["(first + k)".to_owned(), format!("(c1 % {filters}u)")],
                false => vec!["c1".to_owned(), "k".to_owned()],
            },
        );
        let mut inside = Vec::new();
        for dim in 0..n_dims {
            let (point, size) = (&places[dim + 2], input.sizes[dim + 2]);
            let [stride, padding, dilation] = [stride[dim], padding[dim], dilation[dim]];
            shader.line(format!("for (var k{dim} = 0u; k{dim} < {}u; k{dim}++) {{", weight.sizes[dim + 2]));
            if *is_transposed {
                // A point gives to those pixels that it is a tap of.
                shader.line(format!("let g{dim} = {point} + {padding}u - k{dim} * {dilation}u;"));
                shader.line(format!("let p{dim} = g{dim} / {stride}u;"));
                inside.push(format!("g{dim} % {stride}u == 0u && p{dim} < {size}u"));
            } else {
                shader.line(format!("let p{dim} = {point} * {stride}u + k{dim} * {dilation}u - {padding}u;"));
                inside.push(format!("p{dim} < {size}u"));
            }
            pixel.push(format!("p{dim}"));
            tap.push(format!("k{dim}"));
        }
        shader.line(format!("if ({}) {{", inside.join(" && ")));
        let (element, factor) = (shader.load(input, &input.at(&pixel)), shader.load(weight, &weight.at(&tap)));
        shader.line(format!("total += {element} * {factor};"));
        shader.line("}");
        shader.line("}".repeat(n_dims + 1));
        let mut value = "total".to_owned();
        if let Some(bias) = bias {
            value = format!("(total + {})", shader.load(bias, &bias.at(&["c1".to_owned()])));
        }
        let statement = shader.store(result, &result.at(&places), &rounded(&value, result.dtype));
        shader.line(statement);
    })
}

/// A number for each dimension.
pub(super) fn numbers(operand: &Operand, n: usize) -> Result<Vec<usize>, Reason> {
    let number = |it: &Operand| match it {
        Operand::Int(it) => match u32::try_from(*it).ok().filter(|it| *it <= i32::MAX as u32) {
            Some(it) => Ok(it as usize),
            None => Err(Reason::from("a number that is below zero or too large")),
        },
        _ => Err("sizes that the data decides".into()),
    };
    match operand {
        Operand::List(items) if items.len() == n => items.iter().map(number).collect(),
        Operand::List(items) if items.len() == 1 => Ok(vec![number(&items[0])?; n]),
        Operand::Int(_) => Ok(vec![number(operand)?; n]),
        _ => Err("other arguments".into()),
    }
}
