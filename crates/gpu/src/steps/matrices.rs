//! Products of matrices: tiles in the memory of a workgroup, of which an invocation computes a few elements; of few rows, a workgroup
//! for each element. What the factors are read of and where the result goes, the caller says: a convolution is a product too.

use super::pointwise::{activation, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Shader, View, coordinates, float};
use std::fmt::Write;
use tracefx_core::DType;
use tracefx_plan::{Epilogue, Operand, Product, TensorId};

/// The sizes of `batch` products of `m` rows and `n` columns, of `k` terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) batch: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

/// What is read and written: lines in front of it, and an expression.
pub(super) struct Access<'a> {
    /// The element of the left factor in the batch `z`, at the row `y` and the term `t`.
    pub(super) lhs: &'a mut dyn FnMut(&mut Shader) -> String,
    /// The element of the right factor in the batch `z`, at the term `t` and the column `x`.
    pub(super) rhs: &'a mut dyn FnMut(&mut Shader) -> String,
    /// Writes the sum `sum` in the batch `z`, at the row `y` and the column `x`.
    pub(super) store: &'a mut dyn FnMut(&mut Shader),
}

/// Terms of a tile.
const DEPTH: usize = 16;
/// The invocations of a workgroup, a square of this side.
const SIDE: usize = 16;
/// The invocations that add up the terms of one element.
const ROW: u32 = 64;
/// Products of fewer rows have a workgroup for each element.
const FEW_ROWS: usize = 5;

pub(super) fn tiled(cx: &mut Lowering<'_>, sizes: Sizes, access: Access<'_>) -> Lowered {
    let Sizes { batch, m, n, k } = sizes;
    if batch * m * n == 0 {
        return Ok(Vec::new());
    }
    if m < FEW_ROWS || n < FEW_ROWS {
        return dots(cx, sizes, access);
    }
    // Of small matrices, each invocation computes one element.
    let own = if m > 32 && n > 32 { 4 } else { 1 };
    let tile = SIDE * own;
    let mut shader = Shader::default();
    _ = write!(
        shader.globals,
        "var<workgroup> left: array<f32, {}>;\nvar<workgroup> right: array<f32, {}>;\n",
        tile * DEPTH,
        tile * DEPTH
    );
    shader.line("let z = group.z;");
    shader.line(format!("let top = group.y * {tile}u;"));
    shader.line(format!("let start = group.x * {tile}u;"));
    shader.line(format!("let down = local.x / {SIDE}u * {own}u;"));
    shader.line(format!("let along = local.x % {SIDE}u * {own}u;"));
    for at in 0..own * own {
        shader.line(format!("var s{at} = 0.0f;"));
    }
    shader.line(format!("for (var t0 = 0u; t0 < {k}u; t0 += {DEPTH}u) {{"));
    shader.line(format!("for (var e = local.x; e < {}u; e += {}u) {{", tile * DEPTH, SIDE * SIDE));
    shader.line(format!("let y = top + e / {DEPTH}u;"));
    shader.line(format!("let t = t0 + e % {DEPTH}u;"));
    shader.line("var it = 0.0f;");
    shader.line(format!("if (y < {m}u && t < {k}u) {{"));
    let element = (access.lhs)(&mut shader);
    shader.line(format!("it = {element};"));
    shader.line("}");
    shader.line("left[e] = it;");
    shader.line("}");
    shader.line(format!("for (var e = local.x; e < {}u; e += {}u) {{", tile * DEPTH, SIDE * SIDE));
    shader.line(format!("let t = t0 + e / {tile}u;"));
    shader.line(format!("let x = start + e % {tile}u;"));
    shader.line("var it = 0.0f;");
    shader.line(format!("if (x < {n}u && t < {k}u) {{"));
    let element = (access.rhs)(&mut shader);
    shader.line(format!("it = {element};"));
    shader.line("}");
    shader.line("right[e] = it;");
    shader.line("}");
    shader.line("workgroupBarrier();");
    shader.line(format!("for (var t = 0u; t < {DEPTH}u; t++) {{"));
    for at in 0..own {
        shader.line(format!("let p{at} = left[(down + {at}u) * {DEPTH}u + t];"));
        shader.line(format!("let q{at} = right[t * {tile}u + along + {at}u];"));
    }
    for at in 0..own * own {
        shader.line(format!("s{at} += p{} * q{};", at / own, at % own));
    }
    shader.line("}");
    shader.line("workgroupBarrier();");
    shader.line("}");
    for at in 0..own * own {
        shader.line("{");
        shader.line(format!("let y = top + down + {}u;", at / own));
        shader.line(format!("let x = start + along + {}u;", at % own));
        shader.line(format!("let sum = s{at};"));
        shader.line(format!("if (y < {m}u && x < {n}u) {{"));
        (access.store)(&mut shader);
        shader.line("}");
        shader.line("}");
    }
    let groups = [n.div_ceil(tile), m.div_ceil(tile), batch].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    Ok(vec![cx.dispatch(shader, [(SIDE * SIDE) as u32, 1, 1], groups)?])
}

/// A workgroup for each element.
fn dots(cx: &mut Lowering<'_>, Sizes { batch, m, n, k }: Sizes, access: Access<'_>) -> Lowered {
    let n_elements = batch.checked_mul(m).and_then(|it| it.checked_mul(n)).ok_or("too many elements")?;
    cx.for_each_row(n_elements, ROW, |_, shader| {
        shader.line(format!("let x = row % {n}u;"));
        shader.line(format!("let y = row / {n}u % {m}u;"));
        shader.line(format!("let z = row / {}u;", m * n));
        shader.line("var part = 0.0f;");
        shader.line(format!("for (var t = local.x; t < {k}u; t += {ROW}u) {{"));
        let (lhs, rhs) = ((access.lhs)(shader), (access.rhs)(shader));
        shader.line(format!("part += {lhs} * {rhs};"));
        shader.line("}");
        let sum = reduced(shader, "part", "f32", ROW, &|a, b| format!("{a} + {b}"));
        shader.line("if (local.x == 0u) {");
        shader.line(format!("let sum = {sum};"));
        (access.store)(shader);
        shader.line("}");
        Ok(())
    })
}

/// Joins what the invocations of a workgroup have, and gives the name of what all of them see then.
pub(super) fn reduced(
    shader: &mut Shader,
    part: &str,
    register: &str,
    size: u32,
    join: &dyn Fn(&str, &str) -> String,
) -> String {
    let shared = format!("shared_{part}");
    if !shader.globals.contains(&format!("> {shared}:")) {
        _ = writeln!(shader.globals, "var<workgroup> {shared}: array<{register}, {size}>;");
    }
    let result = format!("all_{part}");
    let joined = join(&format!("{shared}[local.x]"), &format!("{shared}[local.x + step]"));
    shader.line(format!("{shared}[local.x] = {part};"));
    shader.line("workgroupBarrier();");
    shader.line(format!("for (var step = {}u; step > 0u; step >>= 1u) {{", size / 2));
    shader.line(format!("if (local.x < step) {{ {shared}[local.x] = {joined}; }}"));
    shader.line("workgroupBarrier();");
    shader.line("}");
    shader.line(format!("let {result} = {shared}[0];"));
    // Nobody writes the next parts before all have read.
    shader.line("workgroupBarrier();");
    result
}

/// The views that an epilogue reads.
pub(super) struct Tail {
    bias: Option<View>,
    norm: Option<([Option<View>; 2], [View; 2], f64)>,
    residual: Option<View>,
    activation: tracefx_plan::Activation,
}

impl Tail {
    pub(super) fn of(cx: &Lowering<'_>, epilogue: &Epilogue<TensorId>) -> Result<Self, Reason> {
        let optional = |it: &Option<TensorId>| it.map(|it| cx.floats(it)).transpose();
        let norm = match &epilogue.norm {
            Some(it) => {
                Some(([optional(&it.weight)?, optional(&it.bias)?], [cx.floats(it.mean)?, cx.floats(it.var)?], it.eps))
            }
            None => None,
        };
        let (bias, residual) = (optional(&epilogue.bias)?, optional(&epilogue.residual)?);
        Ok(Tail { bias, norm, residual, activation: epilogue.activation })
    }

    /// What follows the number `sum` of a channel, of which the residual is at this place of the result, and writes it there.
    pub(super) fn store(&self, shader: &mut Shader, result: &View, channel: &str, index: &str) {
        let mut x = "sum".to_owned();
        let per_channel = |shader: &mut Shader, it: &View| {
            let at = it.at(&[channel.to_owned()]);
            shader.load(it, &at)
        };
        if let Some(bias) = &self.bias {
            x = format!("({x} + {})", per_channel(shader, bias));
        }
        if let Some(([weight, bias], [mean, var], eps)) = &self.norm {
            let (mean, var) = (per_channel(shader, mean), per_channel(shader, var));
            x = format!("({x} - {mean}) / sqrt({var} + {})", float(*eps as f32));
            if let Some(weight) = weight {
                x = format!("{x} * {}", per_channel(shader, weight));
            }
            if let Some(bias) = bias {
                x = format!("{x} + {}", per_channel(shader, bias));
            }
        }
        if let Some(residual) = &self.residual {
            let at = format!("{}u + {index}", residual.offset);
            x = format!("({x} + {})", shader.load(residual, &at));
        }
        shader.line(format!("let before = {x};"));
        let value = rounded(&activation(self.activation, "before"), result.dtype);
        let statement = shader.store(result, &format!("{}u + {index}", result.offset), &value);
        shader.line(statement);
    }
}

pub(super) fn product(cx: &mut Lowering<'_>, it: &Product<TensorId>) -> Lowered {
    let [lhs, rhs, result] = [it.lhs, it.rhs, it.result].map(|it| cx.floats(it));
    let (lhs, rhs, result, tail) = (lhs?, rhs?, result?, Tail::of(cx, &it.epilogue)?);
    let (m, k, n) = (lhs.sizes[0], lhs.sizes[1], rhs.sizes[1]);
    let at = |view: &View, a: &str, b: &str| view.at(&[a.to_owned(), b.to_owned()]);
    let access = Access {
        lhs: &mut |shader| shader.load(&lhs, &at(&lhs, "y", "t")),
        rhs: &mut |shader| shader.load(&rhs, &at(&rhs, "t", "x")),
        store: &mut |shader| tail.store(shader, &result, "x", &format!("y * {n}u + x")),
    };
    tiled(cx, Sizes { batch: 1, m, n, k }, access)
}

/// What is added to a product: the tensor, its factor, and that of the product.
struct Added {
    tensor: View,
    beta: f32,
    alpha: f32,
}

/// The products that are called: `mm`, `bmm`, `matmul`, `linear`, `addmm`, `baddbmm`, `mv`, `dot`.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let name = op.strip_prefix("aten.")?.strip_suffix(".default")?;
    let tensor = |at: usize| if let Some(Operand::Tensor(id)) = args.get(at) { Some(*id) } else { None };
    let number = |at: usize| match args.get(at) {
        Some(Operand::Int(it)) => *it as f32,
        Some(Operand::Float(it)) => *it as f32,
        _ => 1.0,
    };
    let (lhs, rhs, added, is_turned) = match name {
        "mm" | "bmm" | "matmul" | "mv" | "dot" => (0, 1, None, false),
        "linear" => (0, 1, args.get(2).and_then(|_| tensor(2)).map(|it| (it, 1.0, 1.0)), true),
        "addmm" | "baddbmm" | "addmv" | "addbmm" => (1, 2, Some((tensor(0)?, number(3), number(4))), false),
        _ => return None,
    };
    let (lhs, rhs) = (tensor(lhs)?, tensor(rhs)?);
    if name == "addbmm" {
        return Some(summed(cx, (lhs, rhs), added, result));
    }
    Some(batched(cx, (lhs, rhs, is_turned), added, result))
}

/// The sum of the products of a batch: one product, whose terms are those of all of them.
fn summed(
    cx: &mut Lowering<'_>,
    (lhs, rhs): (TensorId, TensorId),
    added: Option<(TensorId, f32, f32)>,
    result: TensorId,
) -> Lowered {
    let (lhs, rhs, result) = (cx.floats(lhs)?, cx.floats(rhs)?, cx.floats(result)?);
    let Some((tensor, beta, alpha)) = added else { return Err("other arguments".into()) };
    if result.dtype != DType::Float32 {
        return Err("a sum that is rounded after each product".into());
    }
    let tensor = cx.floats(tensor)?.expanded(&result.sizes);
    let (batch, k) = (lhs.sizes[0], lhs.sizes[2]);
    let (m, n) = (result.sizes[0], result.sizes[1]);
    let term = [format!("(t / {}u)", k.max(1)), format!("(t % {}u)", k.max(1))];
    let access = Access {
        lhs: &mut |shader| shader.load(&lhs, &lhs.at(&[term[0].clone(), "y".to_owned(), term[1].clone()])),
        rhs: &mut |shader| shader.load(&rhs, &rhs.at(&[term[0].clone(), term[1].clone(), "x".to_owned()])),
        store: &mut |shader| {
            let places = ["y".to_owned(), "x".to_owned()];
            let mut value = format!("sum * {}", float(alpha));
            if beta != 0.0 {
                value = format!("({value} + {} * {})", shader.load(&tensor, &tensor.at(&places)), float(beta));
            }
            let statement = shader.store(&result, &result.at(&places), &rounded(&value, result.dtype));
            shader.line(statement);
        },
    };
    tiled(cx, Sizes { batch: 1, m, n, k: batch * k }, access)
}

fn batched(
    cx: &mut Lowering<'_>,
    (lhs, rhs, is_turned): (TensorId, TensorId, bool),
    added: Option<(TensorId, f32, f32)>,
    result: TensorId,
) -> Lowered {
    let (mut lhs, mut rhs, mut result) = (cx.floats(lhs)?, cx.floats(rhs)?, cx.floats(result)?);
    let added = match added {
        Some((tensor, beta, alpha)) => Some(Added { tensor: cx.floats(tensor)?.expanded(&result.sizes), beta, alpha }),
        None => None,
    };
    let mut added = added;
    if rhs.sizes.len() == 1 {
        rhs.sizes.push(1);
        rhs.strides.push(0);
        for it in [Some(&mut result), added.as_mut().map(|it| &mut it.tensor)].into_iter().flatten() {
            it.sizes.push(1);
            it.strides.push(0);
        }
    } else if is_turned {
        rhs.sizes.swap(0, 1);
        rhs.strides.swap(0, 1);
    }
    if lhs.sizes.len() == 1 {
        lhs.sizes.insert(0, 1);
        lhs.strides.insert(0, 0);
        for it in [Some(&mut result), added.as_mut().map(|it| &mut it.tensor)].into_iter().flatten() {
            let at = it.sizes.len() - 1;
            it.sizes.insert(at, 1);
            it.strides.insert(at, 0);
        }
    }
    let rank = result.sizes.len();
    let batch = result.sizes[..rank - 2].to_vec();
    let widened = |it: &View| {
        let own = it.sizes.len() - 2;
        it.expanded(&[&batch[..], &it.sizes[own..]].concat())
    };
    let (lhs, rhs) = (widened(&lhs), widened(&rhs));
    let (m, k, n) = (lhs.sizes[rank - 2], lhs.sizes[rank - 1], rhs.sizes[rank - 1]);
    let at = |shader: &mut Shader, view: &View, places: [&str; 2]| {
        let mut all = coordinates(shader, "z", &batch, "z");
        all.extend(places.map(str::to_owned));
        view.at(&all)
    };
    // The lines of the coordinates stand in a block of their own wherever they are needed.
    let mut n_reads = 0;
    let mut read = |shader: &mut Shader, view: &View, places: [&str; 2]| {
        n_reads += 1;
        let prefix = format!("g{n_reads}_");
        let mut all = coordinates(shader, "z", &batch, &prefix);
        all.extend(places.map(str::to_owned));
        let index = view.at(&all);
        shader.load(view, &index)
    };
    let read = std::cell::RefCell::new(&mut read);
    let access = Access {
        lhs: &mut |shader| (read.borrow_mut())(shader, &lhs, ["y", "t"]),
        rhs: &mut |shader| (read.borrow_mut())(shader, &rhs, ["t", "x"]),
        store: &mut |shader| {
            let mut value = "sum".to_owned();
            if let Some(Added { tensor, beta, alpha }) = &added {
                value = format!("sum * {}", float(*alpha));
                // A factor of zero hides what is not a number.
                if *beta != 0.0 {
                    let it = (read.borrow_mut())(shader, tensor, ["y", "x"]);
                    value = format!("({value} + {it} * {})", float(*beta));
                }
            }
            let index = at(shader, &result, ["y", "x"]);
            let statement = shader.store(&result, &index, &rounded(&value, result.dtype));
            shader.line(statement);
        },
    };
    tiled(cx, Sizes { batch: batch.iter().product(), m, n, k }, access)
}
