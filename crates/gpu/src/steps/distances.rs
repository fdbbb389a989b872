//! Distances between rows, and cross products.

use super::args::Args;
use super::pointwise::rounded;
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float};
use tracefx_plan::{Operand, TensorId};

/// The longest rows whose distance one invocation takes.
const LONGEST: usize = 1 << 16;

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let tensor = |at| Args(args).tensor(at);
    Some(match op {
        "aten._cdist_forward.default" => between(cx, [tensor(0)?, tensor(1)?], args.get(2)?, result),
        "aten._pdist_forward.default" => pairs(cx, tensor(0)?, args.get(1)?, result),
        "aten.linalg_cross.default" => cross(cx, [tensor(0)?, tensor(1)?], args.get(2), result),
        _ => return None,
    })
}

/// How the distances along the axes make one distance: what each changes the sum to, and what the sum is in the end.
fn norm(p: f64) -> (String, String) {
    let (next, last) = match p {
        0.0 => ("sum + select(1.0f, 0.0f, it == 0.0f)".to_owned(), "sum".to_owned()),
        1.0 => ("sum + it".to_owned(), "sum".to_owned()),
        2.0 => ("sum + it * it".to_owned(), "sqrt_of(sum)".to_owned()),
        f64::INFINITY => ("larger(sum, it)".to_owned(), "sum".to_owned()),
        _ => (format!("sum + pow_of(it, {})", float(p as f32)), format!("pow_of(sum, {})", float(1.0 / p as f32))),
    };
    (next, last)
}

/// Prints the distance `sum` of two rows of so many elements, of which `element` loads the one `x`.
fn distance(
    shader: &mut Shader,
    p: &Operand,
    n: usize,
    element: impl FnOnce(&mut Shader) -> String,
) -> Result<String, Reason> {
    let p = match p {
        Operand::Float(it) => *it,
        Operand::Int(it) => *it as f64,
        _ => return Err("other arguments".into()),
    };
    if n > LONGEST {
        return Err("distances of long rows".into());
    }
    let (next, last) = norm(p);
    shader.line("var sum = 0.0f;");
    shader.line(format!("for (var x = 0u; x < {n}u; x++) {{"));
    let difference = element(shader);
    shader.line(format!("let it = abs({difference});"));
    shader.line(format!("sum = {next};"));
    shader.line("}");
    Ok(last)
}

/// `aten._cdist_forward`: between each row of a matrix and each of another.
fn between(cx: &mut Lowering<'_>, [a, b]: [TensorId; 2], p: &Operand, result: TensorId) -> Lowered {
    let (a, b, result) = (cx.floats(a)?, cx.floats(b)?, cx.floats(result)?);
    let Some(lead) = result.sizes.len().checked_sub(2) else { return Err("other sizes".into()) };
    let n = a.sizes.last().copied().unwrap_or(0);
    let matrices = |view: &View, n_rows: usize| view.expanded(&[&result.sizes[..lead], &[n_rows, n]].concat());
    let (a, b) = (matrices(&a, result.sizes[lead]), matrices(&b, result.sizes[lead + 1]));
    cx.try_for_each(result.numel(), |_, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let row = |at: usize| [&places[..lead], &[places[lead + at].clone(), "x".to_owned()]].concat();
        let value = distance(shader, p, n, |shader| {
            format!("{} - {}", shader.load(&a, &a.at(&row(0))), shader.load(&b, &b.at(&row(1))))
        })?;
        let statement = shader.store(&result, &result.at(&places), &rounded(&value, result.dtype));
        shader.line(statement);
        Ok(())
    })
}

/// `aten._pdist_forward`: between each row and those behind it.
fn pairs(cx: &mut Lowering<'_>, input: TensorId, p: &Operand, result: TensorId) -> Lowered {
    let (input, result) = (cx.floats(input)?, cx.floats(result)?);
    let [n_rows, n] = input.sizes[..] else { return Err("other sizes".into()) };
    if n_rows > LONGEST || result.numel() != n_rows * n_rows.saturating_sub(1) / 2 {
        return Err("other sizes".into());
    }
    cx.try_for_each(result.numel(), |_, shader| {
        // The row `first` has as many pairs as there are rows behind it.
        shader.line("var first = 0u;");
        shader.line("var rest = i;");
        shader.line(format!("for (var n = {}u; n > 0u && rest >= n; n--) {{", n_rows.saturating_sub(1)));
        shader.line("rest -= n;");
        shader.line("first++;");
        shader.line("}");
        shader.line("let second = first + 1u + rest;");
        let row = |name: &str| [name.to_owned(), "x".to_owned()];
        let value = distance(shader, p, n, |shader| {
            let [a, b] = ["first", "second"].map(|it| shader.load(&input, &input.at(&row(it))));
            format!("{a} - {b}")
        })?;
        let statement = shader.store(&result, &format!("{}u + i", result.offset), &rounded(&value, result.dtype));
        shader.line(statement);
        Ok(())
    })
}

/// `aten.linalg_cross`.
fn cross(cx: &mut Lowering<'_>, [a, b]: [TensorId; 2], dim: Option<&Operand>, result: TensorId) -> Lowered {
    let ((a, kind), (b, other), (result, _)) = (cx.view(a)?, cx.view(b)?, cx.view(result)?);
    let rank = result.sizes.len();
    let dim = match dim {
        None => -1,
        Some(Operand::Int(it)) => *it,
        Some(_) => return Err("other arguments".into()),
    };
    let dim = usize::try_from(if dim < 0 { dim + rank as i64 } else { dim }).ok().filter(|it| *it < rank);
    let dim = dim.ok_or("a dimension that is not there")?;
    if kind != other || kind == Kind::Bool || result.sizes[dim] != 3 {
        return Err("cross products of other numbers".into());
    }
    let (a, b) = (a.expanded(&result.sizes), b.expanded(&result.sizes));
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        shader.line(format!("let next = (c{dim} + 1u) % 3u;"));
        shader.line(format!("let last = (c{dim} + 2u) % 3u;"));
        let mut product = |left: &str, right: &str| {
            let at = |name: &str| {
                let mut places = places.clone();
                places[dim] = name.to_owned();
                places
            };
            let (left, right) = (shader.load(&a, &a.at(&at(left))), shader.load(&b, &b.at(&at(right))));
            // Of halves, PyTorch rounds each of the products.
            rounded(&super::pointwise::product(kind, &left, &right), result.dtype)
        };
        let (one, other) = (product("next", "last"), product("last", "next"));
        let value = match kind {
            Kind::Long => format!("long_subtract({one}, {other})"),
            Kind::Float | Kind::Int | Kind::Bool => format!("({one} - {other})"),
        };
        let statement = shader.store(&result, &result.at(&places), &rounded(&value, result.dtype));
        shader.line(statement);
    })
}
