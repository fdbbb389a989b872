//! What poolings hand back: the gradients of averages, each element of which looks at the windows that saw it, and elements at the places
//! that they were the largest of.

use super::convolution::numbers;
use super::pointwise::rounded;
use super::selections::{MOST_SCATTERED, position};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Shader, View, coordinates, float};
use tracefx_plan::{Operand, TensorId};

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    Some(match op {
        "aten.avg_pool2d_backward.default" => average(cx, 2, args, result),
        "aten.avg_pool3d_backward.default" => average(cx, 3, args, result),
        "aten._adaptive_avg_pool2d_backward.default" => adaptive(cx, 2, args, result),
        "aten._adaptive_avg_pool3d_backward.default" => adaptive(cx, 3, args, result),
        "aten.max_unpool2d.default" => unpooled(cx, op, 2, args, result),
        "aten.max_unpool3d.default" => unpooled(cx, op, 3, args, result),
        _ => return None,
    })
}

fn tensor(cx: &Lowering<'_>, args: &[Operand], at: usize) -> Result<View, Reason> {
    match args.get(at) {
        Some(Operand::Tensor(it)) => cx.floats(*it),
        _ => Err("other arguments".into()),
    }
}

/// The gradient of an average over fixed windows.
fn average(cx: &mut Lowering<'_>, n_dims: usize, args: &[Operand], result: TensorId) -> Lowered {
    let (grad, result) = (tensor(cx, args, 0)?, cx.floats(result)?);
    let list = |at: usize, default: &[usize]| match args.get(at) {
        None | Some(Operand::None) => Ok(default.to_vec()),
        Some(Operand::List(items)) if items.is_empty() => Ok(default.to_vec()),
        Some(it) => numbers(it, n_dims),
    };
    let kernel = list(2, &[])?;
    let (stride, padding) = (list(3, &kernel)?, list(4, &vec![0; n_dims])?);
    let counts_padding = !matches!(args.get(6), Some(Operand::Bool(false)));
    let given = if let Some(Operand::Int(it)) = args.get(7) { Some(*it) } else { None };
    if grad.sizes.len() != result.sizes.len() || stride.contains(&0) {
        return Err("other sizes".into());
    }
    spread(
        cx,
        n_dims,
        &grad,
        &result,
        |shader, dim, place, [size, n_windows]| {
            let (kernel, stride, padding) = (kernel[dim], stride[dim], padding[dim]);
            // The first window that ends behind the place, and the last one that begins before.
            shader.line(format!("let at{dim} = {place} + {padding}u;"));
            let first = format!("(max(at{dim} + {stride}u, {kernel}u) - {kernel}u) / {stride}u");
            let end = format!("min(at{dim} / {stride}u + 1u, {n_windows}u)");
            let from = format!("w{dim} * {stride}u");
            let share = if counts_padding {
                format!("(min({from} + {kernel}u, {}u) - {from})", size + 2 * padding)
            } else {
                let end = format!("min(max({from} + {kernel}u, {padding}u) - {padding}u, {size}u)");
                format!("({end} - (max({from}, {padding}u) - {padding}u))")
            };
            [first, end, if given.is_some() { "1u".to_owned() } else { share }]
        },
        given,
    )
}

/// The gradient of an average over as many parts as there are gradients.
fn adaptive(cx: &mut Lowering<'_>, n_dims: usize, args: &[Operand], result: TensorId) -> Lowered {
    let (grad, result) = (tensor(cx, args, 0)?, cx.floats(result)?);
    let product = |(a, b): (&usize, &usize)| (a + 1).checked_mul(b + 1).is_some_and(|it| it <= i32::MAX as usize);
    if grad.sizes.len() != result.sizes.len() || !grad.sizes.iter().zip(&result.sizes).all(product) {
        return Err("other sizes".into());
    }
    spread(
        cx,
        n_dims,
        &grad,
        &result,
        |_, dim, place, [size, n_windows]| {
            let from = format!("w{dim} * {size}u / {n_windows}u");
            let end = format!("((w{dim} + 1u) * {size}u + {}u) / {n_windows}u", n_windows.saturating_sub(1));
            [
                format!("{place} * {n_windows}u / {size}u"),
                format!("(({place} + 1u) * {n_windows}u - 1u) / {size}u + 1u"),
                format!("({end} - {from})"),
            ]
        },
        None,
    )
}

/// For each element, the sum over the windows `w0`, `w1`… that saw it of the share that each hands it. `window` tells of a dimension, a place
/// in it, its size and its number of windows: the first window, the end of the windows, and the elements of one.
fn spread(
    cx: &mut Lowering<'_>,
    n_dims: usize,
    grad: &View,
    result: &View,
    mut window: impl FnMut(&mut Shader, usize, &str, [usize; 2]) -> [String; 3],
    divisor: Option<i64>,
) -> Lowered {
    let lead = result.sizes.len().checked_sub(n_dims).ok_or("other sizes")?;
    if grad.sizes[..lead] != result.sizes[..lead] || grad.sizes[lead..].contains(&0) {
        return Err("other sizes".into());
    }
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        shader.line("var total = 0.0f;");
        let (mut from, mut counted) = (places[..lead].to_vec(), Vec::new());
        for dim in 0..n_dims {
            let sizes = [result.sizes[lead + dim], grad.sizes[lead + dim]];
            let [first, end, n] = window(shader, dim, &places[lead + dim], sizes);
            shader.line(format!("for (var w{dim} = {first}; w{dim} < {end}; w{dim}++) {{"));
            from.push(format!("w{dim}"));
            counted.push(n);
        }
        let divisor = match divisor {
            Some(it) => float(it as f32),
            None => format!("f32({})", counted.join(" * ")),
        };
        let share = shader.load(grad, &grad.at(&from));
        shader.line(format!("total += {share} / {divisor};"));
        shader.line("}".repeat(n_dims));
        let statement = shader.store(result, &result.at(&places), &rounded("total", result.dtype));
        shader.line(statement);
    })
}

/// Elements at the places of their planes that the positions name; the last of several at one place stays.
fn unpooled(cx: &mut Lowering<'_>, op: &str, n_dims: usize, args: &[Operand], result: TensorId) -> Lowered {
    let [Operand::Tensor(input), Operand::Tensor(index), ..] = args else { return Err("other arguments".into()) };
    let (input, result) = (cx.movable(*input)?, cx.movable(result)?);
    let (index, kind) = cx.view(*index)?;
    let lead = input.sizes.len().checked_sub(n_dims).ok_or("other sizes")?;
    let [n_in, n_out] = [&input, &result].map(|it| it.sizes[lead..].iter().product::<usize>());
    if index.sizes != input.sizes || result.numel().checked_mul(n_in).is_none_or(|it| it > MOST_SCATTERED) {
        return Err("a scatter of other sizes".into());
    }
    // Positions are looked at once, before anything is moved.
    let check = cx.try_for_each(index.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &index.sizes, "c");
        position(cx, shader, (op, false, 0, n_out), (&index, kind), &places).map(drop)
    })?;
    let collect = cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let own =
            (lead..places.len()).fold("0u".to_owned(), |at, dim| format!("({at}) * {}u + c{dim}", result.sizes[dim]));
        shader.line(format!("let own = {own};"));
        let words = if input.dtype.size() == 8 { "vec2<u32>(0u, 0u)" } else { "0u" };
        shader.line(format!("var it = {words};"));
        shader.line(format!("for (var k = 0u; k < {n_in}u; k++) {{"));
        let within = coordinates(shader, "k", &input.sizes[lead..], "k");
        let from = [&places[..lead], &within].concat();
        let (at, element) = (shader.load(&index, &index.at(&from)), shader.load_words(&input, &input.at(&from)));
        shader.line(format!("if (({at}).x == own) {{ it = {element}; }}"));
        shader.line("}");
        let statement = shader.store_words(&result, &result.at(&places), "it");
        shader.line(statement);
    })?;
    Ok([check, collect].concat())
}
