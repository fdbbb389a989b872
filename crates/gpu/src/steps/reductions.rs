//! Reductions and what normalises by them: a workgroup for each row of what is reduced, or an invocation where rows are short.

use super::args::Args;
use super::pointwise::{converted, extreme, product, rounded};
use super::pools::constant;
use super::workgroups::{reduced, summed};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float};
use tracefx_core::DType;
use tracefx_plan::{Operand, TensorId};

/// The invocations for a row.
const LANES: u32 = 64;
/// Shorter rows have one invocation each.
const SHORT: usize = 32;
/// The longest rows whose logarithms of sums are taken one after the other, each rounded to float32.
const LONGEST_LOG_SUM: usize = 64;

/// A tensor as rows of what is reduced: the dimensions that are kept, and behind them those that are not.
pub(super) struct Rows {
    pub(super) view: View,
    n_kept: usize,
}

impl Rows {
    pub(super) fn of(view: &View, dims: &[usize]) -> Self {
        Rows { view: view.with_dims(dims), n_kept: view.sizes.len() - dims.len() }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.view.sizes[..self.n_kept].iter().product()
    }

    pub(super) fn len(&self) -> usize {
        self.view.sizes[self.n_kept..].iter().product()
    }

    /// Has `body` print what is done for the row `row`, by so many invocations of the number `lane`.
    fn lower(
        &self,
        cx: &mut Lowering<'_>,
        body: impl FnOnce(&mut Lowering<'_>, &mut Row<'_>) -> Result<(), Reason>,
    ) -> Lowered {
        let print = |cx: &mut Lowering<'_>, shader: &mut Shader, lanes: u32| {
            let kept = coordinates(shader, "row", &self.view.sizes[..self.n_kept], "o");
            body(cx, &mut Row { rows: self, shader, lanes, kept })
        };
        if self.len() < SHORT {
            return cx.try_for_each(self.n_rows(), |cx, shader| {
                shader.line("let row = i;");
                shader.line("let lane = 0u;");
                print(cx, shader, 1)
            });
        }
        cx.for_each_row(self.n_rows(), LANES, |cx, shader| {
            shader.line("let lane = local.x;");
            print(cx, shader, LANES)
        })
    }
}

/// The text of what is done for a row.
struct Row<'a> {
    rows: &'a Rows,
    shader: &'a mut Shader,
    lanes: u32,
    kept: Vec<String>,
}

impl Row<'_> {
    /// Has `body` print what is done for each element `x` of the row, which it gets the place of.
    fn each(&mut self, body: impl FnOnce(&mut Shader, &str)) {
        self.each_with(&self.rows.view.clone(), |shader, [place, _]| body(shader, place));
    }

    /// As [`Row::each`], with the place in another tensor of these sizes.
    fn each_with(&mut self, other: &View, body: impl FnOnce(&mut Shader, [&str; 2])) {
        let (n, lanes) = (self.rows.len(), self.lanes);
        self.shader.line(format!("for (var x = lane; x < {n}u; x += {lanes}u) {{"));
        let own = coordinates(self.shader, "x", &self.rows.view.sizes[self.rows.n_kept..], "x");
        let places = [&self.kept[..], &own].concat();
        body(self.shader, [&self.rows.view.at(&places), &other.at(&places)]);
        self.shader.line("}");
    }

    /// A variable that every invocation has its part of, joined over the row.
    fn joined(&mut self, part: &str, kind: Kind, join: &dyn Fn(&str, &str) -> String) -> String {
        if self.lanes > 1 {
            return reduced(self.shader, part, kind.register(), self.lanes, join);
        }
        let result = format!("all_{part}");
        self.shader.line(format!("let {result} = {part};"));
        result
    }

    /// The sum of what an element is mapped to.
    fn sum(&mut self, name: &str, kind: Kind, map: &dyn Fn(&str) -> String) -> String {
        self.shader.line(format!("var {name} = {};", constant(kind, 0)));
        let view = self.rows.view.clone();
        self.each(|shader, place| {
            let element = shader.load(&view, place);
            shader.line(format!("{name} = {};", added(kind, name, &map(&element))));
        });
        match kind {
            Kind::Float | Kind::Int if self.lanes > 1 => summed(self.shader, name, kind.register(), self.lanes),
            _ => self.joined(name, kind, &|a, b| added(kind, a, b)),
        }
    }

    /// The largest element, or the smallest one.
    fn extreme(&mut self, name: &str, kind: Kind, is_largest: bool, map: &dyn Fn(&str) -> String) -> String {
        self.shader.line(format!("var {name} = {};", least(kind, is_largest)));
        let view = self.rows.view.clone();
        self.each(|shader, place| {
            let element = shader.load(&view, place);
            shader.line(format!("{name} = {};", extreme(kind, is_largest, name, &map(&element))));
        });
        self.joined(name, kind, &|a, b| extreme(kind, is_largest, a, b))
    }

    /// Writes what a row gives, once.
    fn store(&mut self, view: &View, value: &str) {
        let statement = self.shader.store(view, &format!("{}u + row", view.offset), &rounded(value, view.dtype));
        self.shader.line(format!("if (lane == 0u) {{ {statement} }}"));
    }
}

pub(super) fn added(kind: Kind, a: &str, b: &str) -> String {
    match kind {
        Kind::Float | Kind::Int => format!("{a} + {b}"),
        Kind::Long => format!("long_add({a}, {b})"),
        Kind::Bool => format!("({a} || {b})"),
    }
}

/// What every element is larger than, or smaller.
fn least(kind: Kind, is_largest: bool) -> String {
    match (kind, is_largest) {
        (Kind::Float, true) => "number(0xff800000u)".to_owned(),
        (Kind::Float, false) => "number(0x7f800000u)".to_owned(),
        (Kind::Int, true) => crate::shader::int(i32::MIN),
        (Kind::Int, false) => crate::shader::int(i32::MAX),
        (Kind::Long, true) => crate::shader::long(i64::MIN),
        (Kind::Long, false) => crate::shader::long(i64::MAX),
        (Kind::Bool, is_largest) => (!is_largest).to_string(),
    }
}

/// The dimensions that an argument names; all where it names none.
pub(super) fn dims_of(operand: Option<&Operand>, rank: usize) -> Result<Vec<usize>, Reason> {
    let all = || (0..rank).collect();
    let dim = |it: &Operand| match it {
        Operand::Int(it) => {
            let at = if *it < 0 { it + rank as i64 } else { *it };
            usize::try_from(at)
                .ok()
                .filter(|it| *it < rank.max(1))
                .ok_or_else(|| Reason::from("a dimension that is not there"))
        }
        _ => Err("sizes that the data decides".into()),
    };
    let mut res: Vec<usize> = match operand {
        None | Some(Operand::None) => all(),
        Some(Operand::List(items)) if items.is_empty() => all(),
        Some(Operand::List(items)) => items.iter().map(dim).collect::<Result<_, _>>()?,
        Some(it) => vec![dim(it)?],
    };
    res.sort_unstable();
    res.retain(|it| *it < rank);
    Ok(res)
}

/// The reductions that are called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let Some(Operand::Tensor(input)) = args.first() else { return None };
    let dims = match (name, overload) {
        ("sum" | "mean" | "any" | "all" | "prod" | "max" | "min", "default") => None,
        ("sum", "dim_IntList")
        | ("mean" | "any" | "all" | "max" | "min" | "var" | "std", "dim")
        | ("any" | "all", "dims")
        | ("prod", "dim_int")
        | (
            "amax" | "amin" | "argmax" | "argmin" | "logsumexp" | "nansum" | "count_nonzero" | "_softmax"
            | "_log_softmax",
            "default",
        )
        | ("cumsum" | "cumprod" | "logcumsumexp" | "cummax" | "cummin" | "aminmax" | "sort", "default")
        | ("var_mean" | "std_mean", "dim" | "correction")
        | ("var" | "std", "correction") => Some(1),
        ("linalg_vector_norm", "default") | ("topk", "default") | ("sort", "stable") => Some(2),
        (_, _) => return None,
    };
    Some(reduce(cx, (name, overload), *input, args, dims, results))
}

fn reduce(
    cx: &mut Lowering<'_>,
    (name, overload): (&str, &str),
    input: TensorId,
    args: &[Operand],
    dims: Option<usize>,
    results: &[TensorId],
) -> Lowered {
    let (input, kind) = cx.view(input)?;
    let outs = results.iter().map(|it| cx.view(*it)).collect::<Result<Vec<_>, _>>()?;
    let (result, result_kind) = outs.first().cloned().ok_or("no result")?;
    let rank = input.sizes.len();
    let is_last_by_default = matches!(name, "sort" | "topk");
    let named = dims.and_then(|it| args.get(it));
    let dims = match named {
        None if is_last_by_default => rank.checked_sub(1).into_iter().collect(),
        it => dims_of(it, rank)?,
    };
    let rows = Rows::of(&input, &dims);
    let n = rows.len();
    if matches!(name, "sum" | "prod" | "cumsum" | "cumprod") && (kind == Kind::Float) != (result_kind == Kind::Float) {
        return Err("sums of numbers in another dtype".into());
    }
    if matches!(name, "cummax" | "cummin") {
        let positions = outs.get(1).ok_or("no positions")?.0.with_dims(&dims);
        return running(cx, name == "cummax", &rows, kind, &result.with_dims(&dims), &positions);
    }
    if name == "logcumsumexp" && (kind != Kind::Float || n > LONGEST_LOG_SUM) {
        return Err(format!("a logarithm of sums of {n} elements of {}", input.dtype.name()).into());
    }
    if matches!(name, "cumsum" | "cumprod" | "logcumsumexp") {
        return scan(cx, name, &rows, &result.with_dims(&dims), (kind, result_kind));
    }
    if matches!(name, "sort" | "topk") {
        // Numbers of fewer digits are often equal.
        if name == "topk" && input.dtype != DType::Float32 {
            return Err("which of equal numbers are the largest, the kernel of the CPU decides".into());
        }
        let is_descending = match (name, overload) {
            ("topk", _) => !matches!(args.get(3), Some(Operand::Bool(false))),
            ("sort", "stable") => Args(args).is_true(3),
            (_, _) => Args(args).is_true(2),
        };
        let (values, positions) = (outs[0].0.with_dims(&dims), outs.get(1).ok_or("no positions")?.0.with_dims(&dims));
        return super::order::sort(cx, &rows, kind, is_descending, &values, &positions);
    }
    if matches!(name, "_softmax" | "_log_softmax") {
        return softmax(cx, name == "_log_softmax", &rows, &result.with_dims(&dims));
    }
    if outs.iter().any(|(view, _)| view.numel() != rows.n_rows()) {
        return Err("other sizes".into());
    }
    let is_position = matches!(name, "argmax" | "argmin") || matches!((name, overload), ("max" | "min", "dim"));
    if is_position {
        let is_largest = name.ends_with("max");
        let values = (!name.starts_with("arg")).then_some(&result);
        let positions = outs.last().map(|(view, _)| view).ok_or("no positions")?;
        return positions_of(cx, &rows, kind, is_largest, values, positions);
    }
    let is_float = kind == Kind::Float && result_kind == Kind::Float;
    if n == 0 && !matches!(name, "sum" | "any" | "all" | "prod" | "count_nonzero") {
        return Err("a reduction of nothing".into());
    }
    rows.lower(cx, |_, row| {
        let value = match name {
            "sum" => row.sum("total", result_kind, &|it| converted(it, kind, result_kind)),
            "count_nonzero" => {
                let one = |it: &str| converted(&converted(it, kind, Kind::Bool), Kind::Bool, Kind::Long);
                row.sum("total", Kind::Long, &one)
            }
            "nansum" if is_float => row.sum("total", Kind::Float, &|it| format!("select({it}, 0.0f, is_nan({it}))")),
            "mean" if result_kind == Kind::Float => {
                let sum = row.sum("total", Kind::Float, &|it| converted(it, kind, Kind::Float));
                format!("({sum} / {})", float(n as f32))
            }
            "aminmax" => {
                let largest = row.extreme("most", kind, true, &str::to_owned);
                let (to, _) = outs.get(1).ok_or("no maximum")?;
                row.store(to, &largest);
                row.extreme("best", kind, false, &str::to_owned)
            }
            "amax" | "amin" | "max" | "min" => row.extreme("best", kind, name.ends_with("max"), &str::to_owned),
            "any" | "all" => {
                let value = row.extreme("best", Kind::Bool, name == "any", &|it| converted(it, kind, Kind::Bool));
                converted(&value, Kind::Bool, result_kind)
            }
            "prod" => {
                row.shader.line(format!("var total = {};", constant(result_kind, 1)));
                let view = row.rows.view.clone();
                row.each(|shader, place| {
                    let element = converted(&shader.load(&view, place), kind, result_kind);
                    shader.line(format!("total = {};", product(result_kind, "total", &element)));
                });
                row.joined("total", result_kind, &|a, b| product(result_kind, a, b))
            }
            "logsumexp" if is_float => {
                let largest = row.extreme("best", Kind::Float, true, &str::to_owned);
                // A row that is infinite is its own sum.
                row.shader.line(format!("let top = select({largest}, 0.0f, is_inf({largest}));"));
                let sum = row.sum("total", Kind::Float, &|it| format!("exp_of({it} - top)"));
                format!("(ln_of({sum}) + top)")
            }
            "linalg_vector_norm" if is_float => norm(row, args.get(1))?,
            "var" | "std" | "var_mean" | "std_mean" if is_float => {
                let correction = match (overload, args.get(2)) {
                    ("dim", Some(Operand::Bool(it))) => f64::from(u8::from(*it)),
                    (_, Some(Operand::Int(it))) => *it as f64,
                    (_, Some(Operand::Float(it))) => *it,
                    (_, None | Some(Operand::None)) => 1.0,
                    (_, _) => return Err("other arguments".into()),
                };
                let sum = row.sum("total", Kind::Float, &str::to_owned);
                row.shader.line(format!("let middle = {sum} / {};", float(n as f32)));
                let squares = row.sum("square", Kind::Float, &|it| format!("({it} - middle) * ({it} - middle)"));
                let divisor = (n as f64 - correction).max(0.0);
                if divisor == 0.0 {
                    return Err("a variance of too few numbers".into());
                }
                if let Some((mean, _)) = outs.get(1) {
                    row.store(mean, "middle");
                }
                let variance = format!("({squares} / {})", float(divisor as f32));
                if name.starts_with("std") { format!("sqrt({variance})") } else { variance }
            }
            _ => return Err(format!("{name} of {} has no shader", input.dtype.name()).into()),
        };
        row.store(&result, &value);
        Ok(())
    })
}

fn norm(row: &mut Row<'_>, order: Option<&Operand>) -> Result<String, Reason> {
    let order = match order {
        Some(Operand::Int(it)) => *it as f64,
        Some(Operand::Float(it)) => *it,
        None | Some(Operand::None) => 2.0,
        Some(_) => return Err("other arguments".into()),
    };
    Ok(match order {
        2.0 => format!("sqrt({})", row.sum("total", Kind::Float, &|it| format!("{it} * {it}"))),
        1.0 => row.sum("total", Kind::Float, &|it| format!("abs({it})")),
        0.0 => row.sum("total", Kind::Float, &|it| format!("select(0.0f, 1.0f, {it} != 0.0f)")),
        f64::INFINITY => row.extreme("best", Kind::Float, true, &|it| format!("abs({it})")),
        f64::NEG_INFINITY => row.extreme("best", Kind::Float, false, &|it| format!("abs({it})")),
        order => {
            let power = float(order as f32);
            let sum = row.sum("total", Kind::Float, &|it| format!("pow_of(abs({it}), {power})"));
            format!("pow_of({sum}, {})", float((1.0 / order) as f32))
        }
    })
}

fn softmax(cx: &mut Lowering<'_>, is_log: bool, rows: &Rows, result: &View) -> Lowered {
    if Kind::of(rows.view.dtype) != Kind::of(result.dtype) || Kind::of(result.dtype) != Some(Kind::Float) {
        return Err(format!("a softmax of {}", rows.view.dtype.name()).into());
    }
    if is_log && result.dtype != DType::Float32 {
        return Err("a logarithm that is rounded at each step".into());
    }
    rows.lower(cx, |_, row| {
        let largest = row.extreme("best", Kind::Float, true, &str::to_owned);
        row.shader.line(format!("let top = {largest};"));
        let sum = row.sum("total", Kind::Float, &|it| format!("exp_of({it} - top)"));
        row.shader.line(format!("let whole = {};", if is_log { format!("ln_of({sum})") } else { sum }));
        row.each_with(result, |shader, [from, to]| {
            let element = shader.load(&rows.view, from);
            let text = match is_log {
                true => format!("({element} - top) - whole"),
                false => format!("exp_of({element} - top) / whole"),
            };
            let statement = shader.store(result, to, &rounded(&text, result.dtype));
            shader.line(statement);
        });
        Ok(())
    })
}

fn scan(cx: &mut Lowering<'_>, name: &str, rows: &Rows, result: &View, (kind, to): (Kind, Kind)) -> Lowered {
    let n = rows.len();
    cx.for_each(rows.n_rows(), |shader| {
        let kept = coordinates(shader, "i", &rows.view.sizes[..rows.n_kept], "o");
        let start = match name {
            "logcumsumexp" => least(Kind::Float, true),
            _ => constant(to, i64::from(name == "cumprod")),
        };
        shader.line(format!("var total = {start};"));
        shader.line(format!("for (var x = 0u; x < {n}u; x++) {{"));
        let places = [&kept[..], &["x".to_owned()]].concat();
        let places = if rows.view.sizes.is_empty() { Vec::new() } else { places };
        let element = converted(&shader.load(&rows.view, &rows.view.at(&places)), kind, to);
        let next = match name {
            "cumprod" => product(to, "total", &element),
            "logcumsumexp" => format!("log_add_of(total, {element})"),
            _ => added(to, "total", &element),
        };
        shader.line(format!("total = {next};"));
        let statement = shader.store(result, &result.at(&places), &rounded("total", result.dtype));
        shader.line(statement);
        shader.line("}");
    })
}

/// The largest of all elements so far, or the smallest one, and where the last of them is.
fn running(
    cx: &mut Lowering<'_>,
    is_largest: bool,
    rows: &Rows,
    kind: Kind,
    values: &View,
    positions: &View,
) -> Lowered {
    let n = rows.len();
    cx.for_each(rows.n_rows(), |shader| {
        let kept = coordinates(shader, "i", &rows.view.sizes[..rows.n_kept], "o");
        shader.line(format!("var best = {};", least(kind, is_largest)));
        shader.line("var at = 0u;");
        shader.line(format!("for (var x = 0u; x < {n}u; x++) {{"));
        let places = if rows.view.sizes.is_empty() { Vec::new() } else { [&kept[..], &["x".to_owned()]].concat() };
        let element = shader.load(&rows.view, &rows.view.at(&places));
        shader.line(format!("let it = {element};"));
        let order = super::pointwise::compared(if is_largest { "ge" } else { "le" }, kind, "it", "best");
        let is_next = match kind {
            Kind::Float => format!("x == 0u || is_nan(it) || (!is_nan(best) && {order})"),
            Kind::Int | Kind::Long | Kind::Bool => format!("x == 0u || {order}"),
        };
        shader.line(format!("if ({is_next}) {{ best = it; at = x; }}"));
        let statement = shader.store(values, &values.at(&places), "best");
        shader.line(statement);
        let statement = shader.store(positions, &positions.at(&places), "vec2<u32>(at, 0u)");
        shader.line(statement);
        shader.line("}");
    })
}

/// Where the largest element of each row is, the first of several, or the smallest one; what is not a number is both.
fn positions_of(
    cx: &mut Lowering<'_>,
    rows: &Rows,
    kind: Kind,
    is_largest: bool,
    values: Option<&View>,
    positions: &View,
) -> Lowered {
    let n = rows.len();
    if n == 0 || positions.dtype != DType::Int64 {
        return Err("a reduction of nothing".into());
    }
    cx.for_each(rows.n_rows(), |shader| {
        let kept = coordinates(shader, "i", &rows.view.sizes[..rows.n_kept], "o");
        shader.line(format!("var best = {};", least(kind, is_largest)));
        shader.line("var at = 0u;");
        shader.line(format!("for (var x = 0u; x < {n}u; x++) {{"));
        let reduced = coordinates(shader, "x", &rows.view.sizes[rows.n_kept..], "x");
        let element = shader.load(&rows.view, &rows.view.at(&[&kept[..], &reduced].concat()));
        shader.line(format!("let it = {element};"));
        let is_better = match kind {
            Kind::Float => {
                let sign = if is_largest { ">" } else { "<" };
                format!("x == 0u || (!is_nan(best) && (it {sign} best || is_nan(it)))")
            }
            _ => {
                let order = if is_largest { "gt" } else { "lt" };
                format!("x == 0u || {}", super::pointwise::compared(order, kind, "it", "best"))
            }
        };
        shader.line(format!("if ({is_better}) {{ best = it; at = x; }}"));
        shader.line("}");
        if let Some(values) = values {
            let statement = shader.store(values, &format!("{}u + i", values.offset), "best");
            shader.line(statement);
        }
        let statement = shader.store(positions, &format!("{}u + i", positions.offset), "vec2<u32>(at, 0u)");
        shader.line(statement);
    })
}
