//! The gradients of a convolution: that of the input is the convolution the other way, that of the weight and of the bias are sums over the
//! whole batch, which a workgroup adds up for each element.

use super::convolution::{Direct, direct};
use super::pointwise::rounded;
use super::workgroups::{sharing, summed};
use crate::lower::{Lowered, Lowering};
use crate::shader::View;
use tracefx_plan::{Operand, TensorId};

/// `aten.convolution_backward`, of one to three dimensions.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    (op == "aten.convolution_backward.default").then(|| gradients(cx, args, results))
}

fn gradients(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    let [
        Operand::Tensor(grad),
        Operand::Tensor(input),
        Operand::Tensor(weight),
        _,
        stride,
        padding,
        dilation,
        Operand::Bool(is_transposed),
        _,
        Operand::Int(groups),
        Operand::List(mask),
    ] = args
    else {
        return Err("other arguments".into());
    };
    let (grad, input, weight) = (cx.floats(*grad)?, cx.floats(*input)?, cx.floats(*weight)?);
    let n_dims = weight.sizes.len().saturating_sub(2);
    if !(1..=3).contains(&n_dims) || input.sizes.len() != n_dims + 2 || grad.numel() == 0 || input.numel() == 0 {
        return Err("a convolution of other dimensions".into());
    }
    let window = Direct::of([stride, padding, dilation], (*is_transposed, *groups), n_dims)?;
    let mut results = results.iter();
    let mut wanted = mask.iter().map(|it| match it {
        Operand::Bool(true) => results.next().map(|it| cx.floats(*it)).transpose(),
        _ => Ok(None),
    });
    let mut next = || wanted.next().unwrap_or(Ok(None));
    let [to_input, to_weight, to_bias] = [next()?, next()?, next()?];
    let mut dispatches = Vec::new();
    if let Some(result) = to_input {
        let backwards = Direct { is_transposed: !window.is_transposed, ..window.clone() };
        dispatches.extend(direct(cx, &backwards, (&grad, &weight, None), &result)?);
    }
    if let Some(result) = to_weight {
        // The points of the one are where windows of the other begin.
        let (image, points) = if window.is_transposed { (&grad, &input) } else { (&input, &grad) };
        dispatches.extend(of_weight(cx, &window, (image, points), &result)?);
    }
    if let Some(result) = to_bias {
        dispatches.extend(of_bias(cx, &grad, &result)?);
    }
    Ok(dispatches)
}

/// The statements and names of the coordinates of `x` among these sizes.
fn places_of(sizes: &[usize]) -> Vec<String> {
    let mut below = 1;
    let mut res: Vec<String> = Vec::new();
    for &size in sizes.iter().rev() {
        res.push(format!("(x / {below}u % {size}u)"));
        below *= size;
    }
    res.reverse();
    res
}

/// The products of the points' channels with the pixels that each tap saw.
fn of_weight(cx: &mut Lowering<'_>, window: &Direct, (image, points): (&View, &View), result: &View) -> Lowered {
    let n_dims = result.sizes.len() - 2;
    let sizes = [&points.sizes[..1], &points.sizes[2..]].concat();
    let n: usize = sizes.iter().product();
    let (own, channels) = (points.sizes[1] / window.groups, image.sizes[1] / window.groups);
    let size = sharing(n);
    cx.for_each_row(result.numel(), size, |_, shader| {
        let places = crate::shader::coordinates(shader, "row", &result.sizes, "c");
        let at = places_of(&sizes);
        shader.line("var part = 0.0f;");
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{"));
        let mut point = vec![at[0].clone(), places[0].clone()];
        let mut pixel = vec![at[0].clone(), format!("({} / {own}u * {channels}u + {})", places[0], places[1])];
        let mut inside = Vec::new();
        for dim in 0..n_dims {
            let [stride, padding, dilation] = [window.stride[dim], window.padding[dim], window.dilation[dim]];
            let (start, tap) = (&at[dim + 1], &places[dim + 2]);
            // A pixel in front of the image is a number beyond it.
            shader.line(format!("let p{dim} = {start} * {stride}u + {tap} * {dilation}u - {padding}u;"));
            inside.push(format!("p{dim} < {}u", image.sizes[dim + 2]));
            point.push(start.clone());
            pixel.push(format!("p{dim}"));
        }
        let (a, b) = (shader.load(points, &points.at(&point)), shader.load(image, &image.at(&pixel)));
        shader.line(format!("if ({}) {{ part += {a} * {b}; }}", inside.join(" && ")));
        shader.line("}");
        let sum = summed(shader, "part", "f32", size);
        let statement = shader.store(result, &result.at(&places), &rounded(&sum, result.dtype));
        shader.line(format!("if (local.x == 0u) {{ {statement} }}"));
        Ok(())
    })
}

/// The sum of each channel.
fn of_bias(cx: &mut Lowering<'_>, grad: &View, result: &View) -> Lowered {
    let sizes = [&grad.sizes[..1], &grad.sizes[2..]].concat();
    let n: usize = sizes.iter().product();
    let size = sharing(n);
    cx.for_each_row(result.numel(), size, |_, shader| {
        let mut from = places_of(&sizes);
        from.insert(1, "row".to_owned());
        let element = shader.load(grad, &grad.at(&from));
        shader.line("var part = 0.0f;");
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{ part += {element}; }}"));
        let sum = summed(shader, "part", "f32", size);
        let statement = shader.store(result, &result.at(&["row".to_owned()]), &rounded(&sum, result.dtype));
        shader.line(format!("if (local.x == 0u) {{ {statement} }}"));
        Ok(())
    })
}
