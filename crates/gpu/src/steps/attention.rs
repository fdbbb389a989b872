//! Attention: a workgroup for four rows of queries goes over the keys a block at a time, and keeps of each row the largest score, the sum of the
//! exponentials and the weighted values (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
//! 2022). Where there are few rows, several workgroups share the keys of one, and what they have is joined behind them (Dao et al.,
//! "Flash-Decoding", 2023).

use super::matrices::BUSY;
use super::workgroups::{reduced, summed};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float};
use std::fmt::Write;
use tracefx_core::DType;
use tracefx_plan::{Attention, TensorId};

/// The invocations of a workgroup, each of which scores a key of a block.
const BLOCK: usize = 64;
/// The rows of queries of a workgroup, which are the lanes of a vector.
const LANES: usize = 4;
/// Features and keys that are read at once; a block is a multiple of them.
const UNROLLED: usize = 8;
/// The most features of a query, of which the workgroup keeps those of all its rows.
const MOST_FEATURES: usize = 768;
/// The most values of a row: an invocation keeps one of each so many.
const MOST_VALUES: usize = 512;

/// The functions on the lanes of vectors.
const LANEWISE: &str = "fn larger_of(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w));
}
fn exp_of_each(it: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(exp_of(it.x), exp_of(it.y), exp_of(it.z), exp_of(it.w));
}
";

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
    let n_fours = n_rows.div_ceil(LANES);
    let n_heads = heads.iter().product::<usize>();
    let n_parts = (BUSY / (n_heads * n_fours).max(1)).min(n_keys.div_ceil(BLOCK)).max(1);
    let own = n_keys.div_ceil(n_parts).next_multiple_of(BLOCK).max(BLOCK);
    let parts = Parts::new(cx, [n_heads, n_rows, n_values], n_keys.div_ceil(own).max(1))?;
    let empty = if it.is_safe { "0.0f" } else { "number(0x7fc00000u)" };
    let mut dispatches = cx.for_each_row(n_heads * n_fours * parts.n, BLOCK as u32, |_, shader| {
        _ = writeln!(shader.globals, "var<workgroup> features: array<vec4<f32>, {}>;", e.max(1));
        _ = writeln!(shader.globals, "var<workgroup> weights: array<vec4<f32>, {BLOCK}>;");
        shader.globals.push_str(LANEWISE);
        shader.line(format!("let part = row % {}u;", parts.n));
        shader.line(format!("let four = row / {}u;", parts.n));
        shader.line(format!("let first = four % {n_fours}u * {LANES}u;"));
        shader.line(format!("let head = four / {n_fours}u;"));
        let head = coordinates(shader, "head", heads, "h");
        let at = |view: &View, places: [&str; 2]| {
            let places = places.map(str::to_owned);
            view.at(&[&head[..], &places].concat())
        };
        // A row behind the last is the last, and goes nowhere.
        let rows: Vec<String> = (0..LANES).map(|lane| format!("y{lane}")).collect();
        for (lane, y) in rows.iter().enumerate() {
            shader.line(format!("let {y} = min(first + {lane}u, {}u);", n_rows.saturating_sub(1)));
        }
        let lanes = |of: &[String]| format!("vec4<f32>({})", of.join(", "));
        let features: Vec<String> = rows.iter().map(|y| shader.load(&query, &at(&query, [y, "f"]))).collect();
        let features = lanes(&features);
        shader.line(format!("for (var f = local.x; f < {e}u; f += {BLOCK}u) {{ features[f] = {features}; }}"));
        shader.line("workgroupBarrier();");
        shader.line("let lowest = vec4<f32>(number(0xff800000u));");
        shader.line("var largest = lowest;");
        shader.line("var total = vec4<f32>();");
        for j in 0..per_invocation {
            shader.line(format!("var v{j} = vec4<f32>();"));
        }
        // Of causal attention, no row sees what lies behind the last of them.
        let n_seen = if it.is_causal { format!("min({n_keys}u, y{} + 1u)", LANES - 1) } else { format!("{n_keys}u") };
        shader.line(format!("let n_seen = min({n_seen}, (part + 1u) * {own}u);"));
        shader.line(format!("for (var start = part * {own}u; start < n_seen; start += {BLOCK}u) {{"));
        shader.line("let x = start + local.x;");
        shader.line("var score = lowest;");
        shader.line("if (x < n_seen) {");
        shader.line("var product = vec4<f32>();");
        // Several are on their way at once.
        let whole = e / UNROLLED * UNROLLED;
        shader.line(format!("for (var f = 0u; f < {whole}u; f += {UNROLLED}u) {{"));
        for ahead in 0..UNROLLED {
            let factor = shader.load(&key, &at(&key, ["x", &format!("(f + {ahead}u)")]));
            shader.line(format!("let k{ahead} = {factor};"));
        }
        (0..UNROLLED).for_each(|ahead| shader.line(format!("product += features[f + {ahead}u] * k{ahead};")));
        shader.line("}");
        let factor = shader.load(&key, &at(&key, ["x", "f"]));
        shader.line(format!("for (var f = {whole}u; f < {e}u; f++) {{ product += features[f] * {factor}; }}"));
        shader.line(format!("score = product * {};", float(it.scale as f32)));
        if let Some((mask, kind)) = &mask {
            let elements = rows.iter().map(|y| {
                let element = shader.load(mask, &at(mask, [y, "x"]));
                match kind {
                    Kind::Bool => format!("select({}, 0.0f, {element})", float(it.masked as f32)),
                    Kind::Float | Kind::Int | Kind::Long => element,
                }
            });
            let elements: Vec<String> = elements.collect();
            shader.line(format!("score = score + {};", lanes(&elements)));
        }
        if it.is_causal {
            shader.line(format!("score = select(lowest, score, vec4<u32>(x) <= vec4<u32>({}));", rows.join(", ")));
        }
        shader.line("}");
        let top = reduced(shader, "score", "vec4<f32>", BLOCK as u32, &|a, b| format!("larger_of({a}, {b})"));
        shader.line(format!("let next = larger_of(largest, {top});"));
        // Where nothing counts yet, all weights are zero.
        shader.line("let is_nothing = bitcast<vec4<u32>>(next) == vec4<u32>(0xff800000u);");
        shader.line("var weight = select(exp_of_each(score - next), vec4<f32>(), is_nothing);");
        shader.line("let kept = select(exp_of_each(largest - next), vec4<f32>(1.0f), is_nothing);");
        shader.line("weights[local.x] = weight;");
        let sum = summed(shader, "weight", "vec4<f32>", BLOCK as u32);
        shader.line(format!("total = total * kept + {sum};"));
        shader.line("largest = next;");
        shader.line(format!("let end = min({BLOCK}u, n_seen - start);"));
        for j in 0..per_invocation {
            shader.line(format!("let w{j} = local.x + {}u;", j * BLOCK));
            shader.line(format!("if (w{j} < {n_values}u) {{"));
            shader.line(format!("v{j} = v{j} * kept;"));
            let name = format!("w{j}");
            // A weight of zero hides what is not a number behind it, as keys that do not count; that of keys behind the last is zero.
            shader.line(format!("for (var s = 0u; s < end; s += {UNROLLED}u) {{"));
            for ahead in 0..UNROLLED {
                let place = format!("min(start + s + {ahead}u, {}u)", n_keys.saturating_sub(1));
                let element = shader.load(&value, &at(&value, [&place, &name]));
                shader.line(format!("let e{ahead} = {element};"));
            }
            for ahead in 0..UNROLLED {
                shader.line(format!("let g{ahead} = weights[s + {ahead}u];"));
                shader.line(format!("v{j} += select(g{ahead} * e{ahead}, vec4<f32>(), g{ahead} == vec4<f32>());"));
            }
            shader.line("}");
            shader.line("}");
        }
        shader.line("workgroupBarrier();");
        shader.line("}");
        parts.store(shader, per_invocation, &rows, &|shader: &mut Shader, y: &str, name: &str, given: &str| {
            let given = format!("select({given}, {empty}, is_empty)");
            let statement = shader.store(&result, &at(&result, [y, name]), &given);
            shader.line(statement);
        });
        Ok(())
    })?;
    dispatches.extend(parts.joined(cx, &|shader, given| {
        let head = coordinates(shader, "head", heads, "h");
        let index = result.at(&[&head[..], &["y".to_owned(), "x".to_owned()]].concat());
        let statement = shader.store(&result, &index, &format!("select({given}, {empty}, is_empty)"));
        shader.line(statement);
    })?);
    Ok(dispatches)
}

/// What the workgroups have that share the keys of a row.
struct Parts {
    sizes: [usize; 3],
    /// How many they are.
    n: usize,
    /// Of each head, row and part the largest score and the sum of the exponentials, and the weighted values.
    kept: Option<[View; 2]>,
}

impl Parts {
    fn new(cx: &mut Lowering<'_>, sizes: [usize; 3], n: usize) -> Result<Self, Reason> {
        let [n_heads, n_rows, n_values] = sizes;
        let mut tensor = |last: usize| cx.scratch(DType::Float32, &[n_heads, n_rows, n, last]);
        let kept = if n == 1 { None } else { Some([tensor(2)?, tensor(n_values)?]) };
        Ok(Parts { sizes, n, kept })
    }

    /// Writes what a workgroup has: the whole, by `store`, or a part.
    fn store(
        &self,
        shader: &mut Shader,
        per_invocation: usize,
        rows: &[String],
        store: &dyn Fn(&mut Shader, &str, &str, &str),
    ) {
        let [_, n_rows, n_values] = self.sizes;
        let place = |view: &View, y: &str, last: &str| view.at(&["head", y, "part", last].map(str::to_owned));
        for (lane, y) in rows.iter().enumerate() {
            shader.line(format!("if (first + {lane}u < {n_rows}u) {{"));
            shader.line(format!("let is_empty = bitcast<u32>(largest[{lane}]) == 0xff800000u;"));
            if let Some([scores, _]) = &self.kept {
                shader.line("if (local.x == 0u) {");
                for (at, what) in ["largest", "total"].into_iter().enumerate() {
                    let statement =
                        shader.store(scores, &place(scores, y, &format!("{at}u")), &format!("{what}[{lane}]"));
                    shader.line(statement);
                }
                shader.line("}");
            }
            for j in 0..per_invocation {
                let name = format!("(local.x + {}u)", j * BLOCK);
                shader.line(format!("if ({name} < {n_values}u) {{"));
                match &self.kept {
                    None => store(shader, y, &name, &format!("v{j}[{lane}] / total[{lane}]")),
                    Some([_, values]) => {
                        let statement = shader.store(values, &place(values, y, &name), &format!("v{j}[{lane}]"));
                        shader.line(statement);
                    }
                }
                shader.line("}");
            }
            shader.line("}");
        }
    }

    /// Joins the parts, and gives what they are together to `store`.
    fn joined(&self, cx: &mut Lowering<'_>, store: &dyn Fn(&mut Shader, &str)) -> Lowered {
        let (Some([scores, values]), [n_heads, n_rows, n_values]) = (&self.kept, self.sizes) else {
            return Ok(Vec::new());
        };
        let n_parts = self.n;
        cx.for_each(n_heads * n_rows * n_values, |shader| {
            shader.line(format!("let x = i % {n_values}u;"));
            shader.line(format!("let y = i / {n_values}u % {n_rows}u;"));
            shader.line(format!("let head = i / {}u;", n_values * n_rows));
            let mut load = |view: &View, last: &str| {
                let at = view.at(&["head", "y", "part", last].map(str::to_owned));
                shader.load(view, &at)
            };
            let (score, sum, value) = (load(scores, "0u"), load(scores, "1u"), load(values, "x"));
            shader.line("var largest = number(0xff800000u);");
            let each = format!("for (var part = 0u; part < {n_parts}u; part++) {{");
            shader.line(format!("{each} largest = larger(largest, {score}); }}"));
            shader.line("let is_empty = bitcast<u32>(largest) == 0xff800000u;");
            shader.line("var total = 0.0f;");
            shader.line("var given = 0.0f;");
            shader.line(&each);
            // A part that sees nothing has the weight zero.
            shader.line(format!("let score = {score};"));
            shader.line("let weight = select(exp_of(score - largest), 0.0f, bitcast<u32>(score) == 0xff800000u);");
            shader.line(format!("total += weight * {sum};"));
            shader.line(format!("given += weight * {value};"));
            shader.line("}");
            store(shader, "given / total");
        })
    }
}
