//! New tensors of which the numbers follow from the place: spaced numbers, windows, diagonals and the places of triangles.

use super::args::Args;
use super::pointwise::{converted, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float};
use tracefx_plan::{Operand, TensorId};

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let number = |at: usize, default: f64| match args.get(at) {
        Some(Operand::Float(it)) => it.to_owned(),
        Some(Operand::Int(it)) => *it as f64,
        _ => default,
    };
    let int = |at: usize| if let Some(Operand::Int(it)) = args.get(at) { Some(*it) } else { None };
    Some(match (name, overload) {
        ("eye", _) => eye(cx, result),
        ("linspace", "default") => spaced(cx, [number(0, f64::NAN), number(1, f64::NAN)], None, result),
        ("logspace", "default") => {
            spaced(cx, [number(0, f64::NAN), number(1, f64::NAN)], Some(number(3, 10.0)), result)
        }
        ("tril_indices" | "triu_indices", "default") => {
            let sizes = [usize::try_from(int(0)?).ok()?, usize::try_from(int(1)?).ok()?];
            triangle(cx, name == "tril_indices", sizes, int(2).unwrap_or(0), result)
        }
        ("hann_window" | "hamming_window" | "blackman_window" | "bartlett_window" | "kaiser_window", _) => {
            let is_periodic = overload == "default" || Args(args).is_true(1);
            let has_numbers = matches!(overload, "periodic_alpha" | "periodic_alpha_beta" | "beta");
            let option =
                |at: usize, default: f64| float(if has_numbers { number(at, default) } else { default } as f32);
            let text = match name {
                "hann_window" => "0.5f - 0.5f * sin_cos(3.1415927f * x, 1u)".to_owned(),
                "blackman_window" => {
                    "0.42f - 0.5f * sin_cos(3.1415927f * x, 1u) + 0.08f * sin_cos(6.2831855f * x, 1u)".to_owned()
                }
                "bartlett_window" => "1.0f - abs(x - 1.0f)".to_owned(),
                "hamming_window" => {
                    format!("{} - {} * sin_cos(3.1415927f * x, 1u)", option(2, 0.54), option(3, 0.46))
                }
                // The quotient of two functions of Bessel, which are scaled by exponentials.
                _ => {
                    let beta = option(2, 12.0);
                    format!("bessel_i0e({beta} * y) / bessel_i0e({beta}) * exp_of(abs({beta}) * (y - 1.0f))")
                }
            };
            window(cx, is_periodic, &text, result)
        }
        (_, _) => return None,
    })
}

/// Writes for each element what the body says of its number `i`, a register of this kind.
fn written(cx: &mut Lowering<'_>, result: &View, body: impl FnOnce(&mut Shader) -> String) -> Lowered {
    cx.for_each(result.numel(), |shader| {
        let value = rounded(&body(shader), result.dtype);
        let statement = shader.store(result, &format!("{}u + i", result.offset), &value);
        shader.line(statement);
    })
}

fn eye(cx: &mut Lowering<'_>, result: TensorId) -> Lowered {
    let (result, kind) = cx.view(result)?;
    written(cx, &result, |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        converted(&format!("({} == {})", places[0], places[1]), Kind::Bool, kind)
    })
}

/// The powers of a base, or numbers, that are evenly spaced.
fn spaced(cx: &mut Lowering<'_>, [start, end]: [f64; 2], base: Option<f64>, result: TensorId) -> Lowered {
    let result = cx.floats(result)?;
    let n = result.numel();
    let limit = f64::from(f32::MAX) / 4.0;
    if !(start.abs() < limit && end.abs() < limit) {
        return Err("bounds that the data decides, or that float32 has not".into());
    }
    // What float32 rounds of an exponent shall be less than the tolerance of the power.
    if base.is_some_and(|it| it <= 0.0 || it.ln().abs() * start.abs().max(end.abs()) > 8.0) {
        return Err("powers that float32 has too few digits for".into());
    }
    let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
    // The upper digits of the step, whose product with a number of steps is exact, and the others: near zero, no digit is lost.
    let n_digits = n.next_power_of_two().trailing_zeros();
    let upper = f32::from_bits((step as f32).to_bits() & (u32::MAX << n_digits.min(23)));
    let lower = (step - f64::from(upper)) as f32;
    let ends = [start, end].map(|it| [it as f32, (it - f64::from(it as f32)) as f32].map(float));
    let [upper, lower] = [upper, lower].map(float);
    written(cx, &result, |shader| {
        // From the nearer end, so that both are exact.
        shader.line(format!("let is_first = i < {}u;", if n == 1 { 1 } else { n / 2 }));
        shader.line(format!("let n = select(-f32({}u - i), f32(i), is_first);", n - 1));
        for (name, at) in [("near", 0), ("rest", 1)] {
            shader.line(format!("let {name} = select({}, {}, is_first);", ends[1][at], ends[0][at]));
        }
        let x = format!("(near + n * {upper}) + (n * {lower} + rest)");
        base.map_or(x.clone(), |base| format!("pow_of({}, {x})", float(base as f32)))
    })
}

/// A function of the place in a window, which goes from zero at its start to two at its end: `x`, and `y` on a circle.
fn window(cx: &mut Lowering<'_>, is_periodic: bool, text: &str, result: TensorId) -> Lowered {
    let result = cx.floats(result)?;
    let n = result.numel();
    let last = if is_periodic { n } else { n.saturating_sub(1) };
    written(cx, &result, |shader| {
        // A window of one number is that number.
        if n == 1 {
            return "1.0f".to_owned();
        }
        shader.line(format!("let x = f32(2u * i) / {};", float(last as f32)));
        shader.line("let y = sqrt(max(1.0f - (x - 1.0f) * (x - 1.0f), 0.0f));");
        text.to_owned()
    })
}

/// The most steps of a search for rows: each place of a triangle looks at those before its own.
const MOST_ROWS: usize = 1 << 28;

/// The rows and the columns of the places of a triangle.
fn triangle(
    cx: &mut Lowering<'_>,
    is_lower: bool,
    [rows, columns]: [usize; 2],
    offset: i64,
    result: TensorId,
) -> Lowered {
    let (result, kind) = cx.view(result)?;
    if result.numel().checked_mul(rows).is_none_or(|it| it > MOST_ROWS) {
        return Err("a triangle of many rows".into());
    }
    let whole = |it: usize| i32::try_from(it).map_err(|_| Reason::from("a triangle of many columns"));
    let (rows, columns) = (whole(rows)?, whole(columns)?);
    let offset = offset.clamp(-i64::from(rows), i64::from(columns));
    let n = (result.numel() / 2).max(1);
    written(cx, &result, |shader| {
        let bound = |it: String| format!("clamp({it}, 0i, {columns}i)");
        let (first, end) = match is_lower {
            true => ("0i".to_owned(), bound(format!("row + ({offset}i) + 1i"))),
            false => (bound(format!("row + ({offset}i)")), format!("{columns}i")),
        };
        shader.line(format!("var rest = i32(i % {n}u);"));
        shader.line("var row = 0i;");
        shader.line("var column = 0i;");
        shader.line(format!("for (; row < {rows}i; row++) {{"));
        shader.line(format!("    let first = {first};"));
        shader.line(format!("    let size = {end} - first;"));
        shader.line("    if (rest < size) {");
        shader.line("        column = first + rest;");
        shader.line("        break;");
        shader.line("    }");
        shader.line("    rest -= size;");
        shader.line("}");
        converted(&format!("select(column, row, i < {n}u)"), Kind::Int, kind)
    })
}
