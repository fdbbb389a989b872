//! Fourier transforms of few points: an element of the result is the sum of its definition, one dimension after the other. The kernels of the
//! CPU compute in float64; so many terms of float32 stay within the tolerance, and more do not.

use super::args::Args;
use super::reductions::dims_of;
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Shader, View, coordinates, float};
use std::f64::consts::FRAC_PI_2;
use tracefx_core::{DType, contiguous_strides};
use tracefx_plan::{Operand, TensorId};

/// The most points of a transform, of all its dimensions.
const MOST_POINTS: usize = 512;

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let is_forward = match op {
        "aten._fft_c2c.default" => Args(args).is_true(3),
        "aten._fft_r2c.default" => true,
        "aten._fft_c2r.default" => false,
        _ => return None,
    };
    Some(transformed(cx, args, is_forward, result))
}

/// What a transform reads along its dimension.
#[derive(Clone, Copy, PartialEq)]
enum Points {
    /// As many as there are.
    All,
    /// The half of a symmetric signal of so many.
    Half(usize),
}

fn transformed(cx: &mut Lowering<'_>, args: &[Operand], is_forward: bool, result: TensorId) -> Lowered {
    let (Some(Operand::Tensor(input)), Some(Operand::Int(normalization))) = (args.first(), args.get(2)) else {
        return Err("other arguments".into());
    };
    let (input, result) = (numbers(cx, *input)?, numbers(cx, result)?);
    let rank = input.sizes.len();
    let Some(Operand::List(given)) = args.get(1) else { return Err("other arguments".into()) };
    // The last one that is named is cut to its half, or made of it.
    let Some(last) = given.last() else { return Err("a transform of no dimension".into()) };
    let last = dims_of(Some(last), rank)?.first().copied().ok_or("a transform of no dimension")?;
    let others: Vec<usize> = dims_of(args.get(1), rank)?.into_iter().filter(|it| *it != last).collect();
    let n = if result.dtype == DType::Float32 { result.sizes[last] } else { input.sizes[last] };
    let n_points = others.iter().try_fold(n, |n, dim| n.checked_mul(input.sizes[*dim])).unwrap_or(usize::MAX);
    if n_points > MOST_POINTS || n_points == 0 {
        return Err(format!("a transform of {n_points} points in float32").into());
    }
    let scale = match normalization {
        0 => 1.0,
        1 => 1.0 / (n_points as f64).sqrt(),
        _ => 1.0 / n_points as f64,
    };
    let is_to_real = result.dtype == DType::Float32;
    // To real numbers, the dimension that is a half comes last, and first from them.
    let mut order = vec![last];
    match is_to_real {
        true => order.splice(0..0, others),
        false => order.splice(1.., others),
    };
    let (mut dispatches, mut from) = (Vec::new(), input);
    for (at, &dim) in order.iter().enumerate() {
        let is_end = at + 1 == order.len();
        let mut sizes = from.sizes.to_vec();
        sizes[dim] = result.sizes[dim];
        let to = if is_end { result.clone() } else { between(cx, &sizes)? };
        let points = if is_to_real && dim == last { Points::Half(n) } else { Points::All };
        let scale = if is_end { scale as f32 } else { 1.0 };
        dispatches.extend(along(cx, (&from, &to), (dim, points), (is_forward, scale))?);
        from = to;
    }
    Ok(dispatches)
}

/// A tensor of float32, or of pairs of them.
fn numbers(cx: &Lowering<'_>, id: TensorId) -> Result<View, Reason> {
    let view = cx.movable(id)?;
    match view.dtype {
        DType::Float32 | DType::Complex64 => Ok(view),
        other => Err(format!("a transform of {}", other.name()).into()),
    }
}

/// Complex numbers between two dimensions.
fn between(cx: &mut Lowering<'_>, sizes: &[usize]) -> Result<View, Reason> {
    let pairs = cx.scratch(DType::Float32, &[sizes, &[2]].concat())?;
    Ok(View { dtype: DType::Complex64, sizes: sizes.into(), strides: contiguous_strides(sizes), ..pairs })
}

/// The complex number at a place.
fn loaded(shader: &mut Shader, view: &View, at: &str) -> String {
    match view.dtype {
        DType::Complex64 => format!("bitcast<vec2<f32>>({})", shader.load_words(view, at)),
        _ => format!("vec2<f32>({}, 0.0f)", shader.load(view, at)),
    }
}

/// Transforms one dimension.
fn along(
    cx: &mut Lowering<'_>,
    (from, to): (&View, &View),
    (dim, points): (usize, Points),
    (is_forward, scale): (bool, f32),
) -> Lowered {
    let n_given = from.sizes[dim];
    let n = if let Points::Half(n) = points { n } else { n_given };
    cx.for_each(to.numel(), |shader| {
        // The number on the unit circle at so many parts of a turn. What is left of whole quarters is small, and exact until it is an angle.
        shader.globals.push_str(&format!(
            "fn on_circle(part: u32) -> vec2<f32> {{
    let quarter = (4u * part + {half}u) / {n}u;
    let angle = f32(i32(4u * part) - i32(quarter * {n}u)) * {unit};
    let it = vec2<f32>(sin_cos(angle, 1u), sin_cos(angle, 0u));
    let turned = select(it, vec2<f32>(-it.y, it.x), (quarter & 1u) == 1u);
    return select(turned, -turned, (quarter & 2u) == 2u);
}}
",
            half = n / 2,
            unit = float((FRAC_PI_2 / n as f64) as f32),
        ));
        let places = coordinates(shader, "i", &to.sizes, "c");
        let mut source = places.clone();
        source[dim] = if n == n_given && points == Points::All { "k" } else { "at" }.to_owned();
        shader.line("var total = vec2<f32>(0.0f, 0.0f);");
        shader.line(format!("for (var k = 0u; k < {n}u; k++) {{"));
        if points != Points::All {
            // Beyond the half, the conjugates in reverse; what is not there counts as zero.
            shader.line(format!("let at = select({n}u - k, k, k <= {}u);", n / 2));
            shader.line(format!("if (at >= {n_given}u) {{ continue; }}"));
        }
        let number = loaded(shader, from, &from.at(&source));
        shader.line(format!("var it = {number};"));
        if points != Points::All {
            shader.line("if (at != k) { it.y = -it.y; }");
            shader.line(format!("if (at == 0u || 2u * at == {n}u) {{ it.y = 0.0f; }}"));
        }
        shader.line(format!("var turn = on_circle(k * {} % {n}u);", places[dim]));
        if is_forward {
            shader.line("turn.y = -turn.y;");
        }
        shader.line("total += vec2<f32>(it.x * turn.x - it.y * turn.y, it.x * turn.y + it.y * turn.x);");
        shader.line("}");
        let statement = match to.dtype {
            DType::Complex64 => {
                let words = format!("bitcast<vec2<u32>>(total * {})", float(scale));
                shader.store_words(to, &to.at(&places), &words)
            }
            _ => shader.store(to, &to.at(&places), &format!("total.x * {}", float(scale))),
        };
        shader.line(statement);
    })
}
