//! What the order of elements decides: sorted rows, and those of their elements that a rank names.

use super::pointwise::rounded;
use super::reductions::{Rows, dims_of};
use crate::lower::{Lowered, Lowering};
use crate::shader::{Kind, Shader, View, collapsed, coordinates, float};
use tracefx_core::DType;
use tracefx_plan::{Operand, TensorId};

/// The longest rows that are sorted, by counting for each element how many stand before it.
const LONGEST_SORT: usize = 4096;
/// The longest rows in which the kernel of the CPU sorts equal elements in their order, of those that it does not ask to stay in it.
const LONGEST_INSERTION: usize = 16;

/// Sorts rows: the place of an element is the number of those that stand before it, where equal ones keep their order.
pub(super) fn sort(
    cx: &mut Lowering<'_>,
    rows: &Rows,
    kind: Kind,
    is_descending: bool,
    values: &View,
    positions: &View,
) -> Lowered {
    let n = rows.len();
    if n > LONGEST_SORT {
        return Err("rows too long to be sorted".into());
    }
    let n_results = values.sizes.last().copied().unwrap_or(1);
    cx.for_each(rows.view.numel(), |shader| {
        let places = coordinates(shader, "i", &rows.view.sizes, "o");
        let element = shader.load(&rows.view, &rows.view.at(&places));
        shader.line(format!("let own = {element};"));
        let mut kept = places.clone();
        let column = kept.pop().unwrap_or_else(|| "0u".to_owned());
        shader.line("var place = 0u;");
        shader.line(format!("for (var x = 0u; x < {n}u; x++) {{"));
        let mut other = kept.clone();
        if !places.is_empty() {
            other.push("x".to_owned());
        }
        let element = shader.load(&rows.view, &rows.view.at(&other));
        shader.line(format!("let it = {element};"));
        let less = |a: &str, b: &str| match kind {
            Kind::Float => format!("({a} < {b} || (is_nan({b}) && !is_nan({a})))"),
            _ => super::pointwise::compared("lt", kind, a, b),
        };
        let (before, behind) = match is_descending {
            false => (less("it", "own"), less("own", "it")),
            true => (less("own", "it"), less("it", "own")),
        };
        shader.line(format!("if ({before} || (!{behind} && x < {column})) {{ place++; }}"));
        shader.line("}");
        shader.line(format!("if (place < {n_results}u) {{"));
        if !places.is_empty() {
            kept.push("place".to_owned());
        }
        let statement = shader.store(values, &values.at(&kept), "own");
        shader.line(statement);
        let statement = shader.store(positions, &positions.at(&kept), &format!("vec2<u32>({column}, 0u)"));
        shader.line(statement);
        shader.line("}");
    })
}

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let Some(Operand::Tensor(input)) = args.first() else { return None };
    let (rank, dim) = match (name, overload) {
        ("median", "dim") => (Rank::Median { skips_nan: false }, args.get(1)),
        ("nanmedian", "dim") => (Rank::Median { skips_nan: true }, args.get(1)),
        ("median", "default") => (Rank::Median { skips_nan: false }, None),
        ("nanmedian", "default") => (Rank::Median { skips_nan: true }, None),
        ("mode", "default") => (Rank::Mode, Some(args.get(1).unwrap_or(&Operand::Int(-1)))),
        ("kthvalue", "default") => {
            let Some(Operand::Int(k)) = args.get(1) else { return None };
            (Rank::Kth(usize::try_from(*k - 1).ok()?), Some(args.get(2).unwrap_or(&Operand::Int(-1))))
        }
        ("quantile", "scalar") => {
            let q = match args.get(1)? {
                Operand::Float(it) => *it as f32,
                Operand::Int(it) => *it as f32,
                _ => return None,
            };
            let how = if let Some(Operand::Str(it)) = args.get(4) { &**it } else { "linear" };
            (Rank::Quantile(q, how), args.get(2))
        }
        (_, _) => return None,
    };
    Some(picked(cx, &rank, *input, dim, results))
}

/// Which element of a sorted row is picked.
enum Rank<'a> {
    Kth(usize),
    /// The lower one of the middle; the first that is not a number, unless those are left out.
    Median {
        skips_nan: bool,
    },
    /// The one that is there most often, the smallest of several.
    Mode,
    /// That at a part of the row, or between two.
    Quantile(f32, &'a str),
}

/// Elements of rows by their ranks: rows are sorted into temporary memory first.
fn picked(
    cx: &mut Lowering<'_>,
    rank: &Rank<'_>,
    input: TensorId,
    dim: Option<&Operand>,
    results: &[TensorId],
) -> Lowered {
    let (mut input, kind) = cx.view(input)?;
    let outs = results.iter().map(|it| cx.view(*it).map(|(view, _)| view)).collect::<Result<Vec<_>, _>>()?;
    let is_whole = matches!(dim, None | Some(Operand::None));
    if is_whole {
        collapsed(&mut [&mut input]);
        if input.sizes.len() > 1 {
            return Err("all elements of memory with gaps".into());
        }
    }
    let rows = Rows::of(&input, &dims_of(if is_whole { None } else { dim }, input.sizes.len())?);
    let (n, n_rows) = (rows.len(), rows.n_rows());
    if n == 0 || kind == Kind::Bool || outs.iter().any(|it| it.numel() != n_rows) {
        return Err(format!("an order of {n} elements of {}", input.dtype.name()).into());
    }
    match rank {
        Rank::Kth(k) if *k >= n => return Err("a rank beyond the row".into()),
        Rank::Kth(_) if input.dtype != DType::Float32 => {
            return Err("which of equal numbers has a rank, the kernel of the CPU decides".into());
        }
        Rank::Mode if n > LONGEST_INSERTION => {
            return Err("which of equal numbers is the last one, the kernel of the CPU decides".into());
        }
        Rank::Quantile(q, _) if !(0.0..=1.0).contains(q) || input.dtype != DType::Float32 => {
            return Err("a quantile of other numbers".into());
        }
        _ => {}
    }
    let values = cx.scratch(input.dtype, &rows.view.sizes)?;
    let positions = cx.scratch(DType::Int64, &rows.view.sizes)?;
    let sorted = sort(cx, &rows, kind, false, &values, &positions)?;
    let pick = cx.for_each(n_rows, |shader| {
        let value = |shader: &mut Shader, at: &str| shader.load(&values, &format!("i * {n}u + {at}"));
        shader.line("var at = 0u;");
        let mut result = None;
        match rank {
            Rank::Kth(k) => shader.line(format!("at = {k}u;")),
            Rank::Median { skips_nan } => {
                shader.line(format!("var n = {n}u;"));
                if kind == Kind::Float {
                    let last = value(shader, "n - 1u");
                    shader.line(format!("while (n > 0u) {{ if (!is_nan({last})) {{ break; }} n--; }}"));
                }
                shader.line("at = (max(n, 1u) - 1u) / 2u;");
                if !skips_nan {
                    shader.line(format!("if (n < {n}u) {{ at = n; }}"));
                }
            }
            Rank::Mode => {
                shader.line("var most = 0u;");
                shader.line("var count = 0u;");
                shader.line(format!("for (var x = 0u; x < {n}u; x++) {{"));
                shader.line("count++;");
                let (own, next) = (value(shader, "x"), value(shader, &format!("min(x + 1u, {}u)", n - 1)));
                let goes_on = super::pointwise::compared("eq", kind, &own, &next);
                shader.line(format!("if (x + 1u < {n}u && {goes_on}) {{ continue; }}"));
                shader.line("if (count > most) { at = x; most = count; }");
                shader.line("count = 0u;");
                shader.line("}");
            }
            Rank::Quantile(q, how) => {
                let rank = q * (n - 1) as f32;
                let rank = match *how {
                    "lower" => rank.floor(),
                    "higher" => rank.ceil(),
                    "nearest" => rank.round_ties_even(),
                    _ => rank,
                };
                let weight = if *how == "midpoint" { 0.5 } else { rank - rank.floor() };
                // One that is not a number makes all quantiles so.
                let last = value(shader, &format!("{}u", n - 1));
                let (low, high) =
                    (value(shader, &format!("{}u", rank.floor())), value(shader, &format!("{}u", rank.ceil())));
                shader.line(format!("let last = {last};"));
                shader.line(format!("let low = select({low}, last, is_nan(last));"));
                shader.line(format!("let high = select({high}, last, is_nan(last));"));
                let (weight, rest) = (float(weight), float(1.0 - weight));
                result = Some(match *how {
                    "lower" | "higher" | "nearest" => "low".to_owned(),
                    _ if rank - rank.floor() < 0.5 && *how != "midpoint" => format!("low + {weight} * (high - low)"),
                    _ => format!("high - (high - low) * {rest}"),
                });
            }
        }
        let element = result.unwrap_or_else(|| value(shader, "at"));
        let to = &outs[0];
        let statement = shader.store(to, &format!("{}u + i", to.offset), &rounded(&element, to.dtype));
        shader.line(statement);
        if let Some(to) = outs.get(1) {
            let position = shader.load(&positions, &format!("i * {n}u + at"));
            let statement = shader.store(to, &format!("{}u + i", to.offset), &position);
            shader.line(statement);
        }
    })?;
    Ok([sorted, pick].concat())
}
