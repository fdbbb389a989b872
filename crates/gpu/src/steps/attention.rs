//! Attention: a workgroup for each row of queries goes over the keys a block at a time, and keeps the largest score, the sum of the exponentials and
//! the weighted values (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).

use super::matrices::reduced;
use crate::lower::{Lowered, Lowering};
use crate::shader::{Kind, View, coordinates, float};
use std::fmt::Write;
use tracefx_plan::{Attention, TensorId};

/// The invocations of a workgroup, each of which scores a key of a block.
const BLOCK: usize = 64;
/// The most features of a query, which the workgroup keeps.
const MOST_FEATURES: usize = 3072;
/// The most values of a row: an invocation keeps one of each so many.
const MOST_VALUES: usize = 512;

pub(super) fn attention(cx: &mut Lowering<'_>, it: &Attention<TensorId>) -> Lowered {
    let [query, key, value, result] = [it.query, it.key, it.value, it.result].map(|it| cx.floats(it));
    let (query, key, value, result) = (query?, key?, value?, result?);
    let mask = it.mask.map(|it| cx.view(it)).transpose()?;
    let rank = query.sizes.len();
    let (n_rows, e) = (query.sizes[rank - 2], query.sizes[rank - 1]);
    let (n_keys, n_values) = (key.sizes[rank - 2], value.sizes[rank - 1]);
    if e > MOST_FEATURES || n_values > MOST_VALUES {
        return Err("heads of too many features".into());
    }
    let heads = &query.sizes[..rank - 2];
    let per_invocation = n_values.div_ceil(BLOCK);
    cx.for_each_row(heads.iter().product::<usize>() * n_rows, BLOCK as u32, |_, shader| {
        _ = writeln!(shader.globals, "var<workgroup> features: array<f32, {}>;", e.max(1));
        _ = writeln!(shader.globals, "var<workgroup> weights: array<f32, {BLOCK}>;");
        shader.line(format!("let y = row % {n_rows}u;"));
        shader.line(format!("let head = row / {n_rows}u;"));
        let head = coordinates(shader, "head", heads, "h");
        let at = |view: &View, places: [&str; 2]| {
            let places = places.map(str::to_owned);
            view.at(&[&head[..], &places].concat())
        };
        let feature = shader.load(&query, &at(&query, ["y", "f"]));
        shader.line(format!("for (var f = local.x; f < {e}u; f += {BLOCK}u) {{ features[f] = {feature}; }}"));
        shader.line("workgroupBarrier();");
        shader.line("var largest = number(0xff800000u);");
        shader.line("var total = 0.0f;");
        for j in 0..per_invocation {
            shader.line(format!("var v{j} = 0.0f;"));
        }
        shader.line(format!("for (var start = 0u; start < {n_keys}u; start += {BLOCK}u) {{"));
        shader.line("let x = start + local.x;");
        shader.line("var score = number(0xff800000u);");
        let counts = if it.is_causal { format!("x < {n_keys}u && x <= y") } else { format!("x < {n_keys}u") };
        shader.line(format!("if ({counts}) {{"));
        shader.line("var product = 0.0f;");
        let factor = shader.load(&key, &at(&key, ["x", "f"]));
        shader.line(format!("for (var f = 0u; f < {e}u; f++) {{ product += features[f] * {factor}; }}"));
        shader.line(format!("score = product * {};", float(it.scale as f32)));
        if let Some((mask, kind)) = &mask {
            let element = shader.load(mask, &at(mask, ["y", "x"]));
            let added = match kind {
                Kind::Bool => format!("select({}, 0.0f, {element})", float(it.masked as f32)),
                Kind::Float | Kind::Int | Kind::Long => element,
            };
            shader.line(format!("score = score + {added};"));
        }
        shader.line("}");
        let top = reduced(shader, "score", "f32", BLOCK as u32, &|a, b| format!("larger({a}, {b})"));
        shader.line(format!("let next = larger(largest, {top});"));
        // Where nothing counts yet, all weights are zero.
        shader.line("let is_nothing = bitcast<u32>(next) == 0xff800000u;");
        shader.line("var weight = select(exp_of(score - next), 0.0f, is_nothing);");
        shader.line("let kept = select(exp_of(largest - next), 1.0f, is_nothing);");
        shader.line("weights[local.x] = weight;");
        let sum = reduced(shader, "weight", "f32", BLOCK as u32, &|a, b| format!("{a} + {b}"));
        shader.line(format!("total = total * kept + {sum};"));
        shader.line("largest = next;");
        shader.line(format!("let end = min({BLOCK}u, {n_keys}u - start);"));
        for j in 0..per_invocation {
            shader.line(format!("let w{j} = local.x + {}u;", j * BLOCK));
            shader.line(format!("if (w{j} < {n_values}u) {{"));
            shader.line(format!("v{j} = v{j} * kept;"));
            let name = format!("w{j}");
            let element = shader.load(&value, &at(&value, ["(start + s)", &name]));
            // A weight of zero hides what is not a number behind it, as keys that do not count.
            shader.line(format!(
                "for (var s = 0u; s < end; s++) {{ if (weights[s] != 0.0f) {{ v{j} += weights[s] * {element}; }} }}"
            ));
            shader.line("}");
        }
        shader.line("workgroupBarrier();");
        shader.line("}");
        let empty = if it.is_safe { "0.0f" } else { "number(0x7fc00000u)" };
        shader.line("let is_empty = bitcast<u32>(largest) == 0xff800000u;");
        for j in 0..per_invocation {
            let name = format!("(local.x + {}u)", j * BLOCK);
            shader.line(format!("if ({name} < {n_values}u) {{"));
            let divided = format!("select(v{j} / total, {empty}, is_empty)");
            let statement = shader.store(&result, &at(&result, ["y", &name]), &divided);
            shader.line(statement);
            shader.line("}");
        }
        Ok(())
    })
}
