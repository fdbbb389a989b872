//! Products of matrices: tiles in the memory of a workgroup, of which an invocation computes a few elements; of few rows, an invocation for
//! a column or a workgroup for each element. Where these are few, several workgroups share the terms of an element. What the factors are read
//! of and where the result goes, the caller says: a convolution is a product too.

use super::args::Args;
use super::integers;
use super::pointwise::{activation, rounded};
use super::workgroups::{ROW, sharing, summed};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates, float};
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
    /// Of each factor, whether its next term is nearer in memory than its next row or column. Invocations beside each other read that way.
    pub(super) is_along_terms: [bool; 2],
    /// Whether the elements of both factors are numbers of 16 bits that the device has.
    pub(super) are_halves: bool,
}

/// The invocations of a workgroup, a square of this side.
const SIDE: usize = 16;
/// Products of fewer rows have no tiles.
const FEW_ROWS: usize = 5;
/// Workgroups that keep a large device busy: where there are fewer, several share the terms of an element.
pub(super) const BUSY: usize = 512;
/// Terms that are worth a workgroup of their own.
const WORTH: usize = 96;

pub(super) fn tiled(cx: &mut Lowering<'_>, sizes: Sizes, access: Access<'_>) -> Lowered {
    let Sizes { batch, m, n, k } = sizes;
    if batch * m * n == 0 {
        return Ok(Vec::new());
    }
    // Batches lie along one dimension of the workgroups, with their parts.
    if m < FEW_ROWS && n > ROW as usize && !access.is_along_terms[1] && batch * (k / WORTH + 1) <= cx.most_workgroups()
    {
        return columns(cx, sizes, access);
    }
    if m < FEW_ROWS || n < FEW_ROWS {
        return dots(cx, sizes, access);
    }
    tiles(cx, sizes, access)
}

/// How the terms of an element are shared: a workgroup adds up so many, and there are so many parts.
fn shared_terms(k: usize, n_groups: usize, multiple: usize) -> (usize, usize) {
    // Two parts of few terms are not worth the dispatch that joins them.
    let most = if k < 3 * WORTH { 1 } else { k / WORTH };
    let n_parts = (BUSY / n_groups.max(1)).min(most).max(1);
    let own = k.div_ceil(n_parts).next_multiple_of(multiple).max(multiple);
    (own, k.div_ceil(own).max(1))
}

/// Where the sums of the parts go that have the terms of an element, `part` being the number of one.
struct Parts {
    n: usize,
    sums: Option<View>,
}

impl Parts {
    fn new(cx: &mut Lowering<'_>, Sizes { batch, m, n, .. }: Sizes, n_parts: usize) -> Result<Self, Reason> {
        let sums = (n_parts > 1).then(|| cx.scratch(DType::Float32, &[batch, n_parts, m, n])).transpose()?;
        Ok(Parts { n: n_parts, sums })
    }

    /// Writes the sum of a part, or the whole where there is one.
    fn store(&self, shader: &mut Shader, store: &mut dyn FnMut(&mut Shader)) {
        match &self.sums {
            None => store(shader),
            Some(sums) => {
                let at = sums.at(&["z", "part", "y", "x"].map(str::to_owned));
                let statement = shader.store(sums, &at, "sum");
                shader.line(statement);
            }
        }
    }

    /// Adds the parts up.
    fn joined(&self, cx: &mut Lowering<'_>, sizes: Sizes, store: &mut dyn FnMut(&mut Shader)) -> Lowered {
        let (Some(sums), Sizes { batch, m, n, .. }) = (&self.sums, sizes) else { return Ok(Vec::new()) };
        cx.for_each(batch * m * n, |shader| {
            shader.line(format!("let x = i % {n}u;"));
            shader.line(format!("let y = i / {n}u % {m}u;"));
            shader.line(format!("let z = i / {}u;", m * n));
            shader.line("var sum = 0.0f;");
            let at = sums.at(&["z", "part", "y", "x"].map(str::to_owned));
            let part = shader.load(sums, &at);
            shader.line(format!("for (var part = 0u; part < {}u; part++) {{ sum += {part}; }}", self.n));
            store(shader);
        })
    }
}

/// A factor as a workgroup reads it: so many rows or columns of the name `name`, below `size`, from `first` on. In the memory of the
/// workgroup, `lanes` of them that stand side by side are a vector, which is read and written at once.
struct Side<'a> {
    array: &'a str,
    name: &'a str,
    first: &'a str,
    size: usize,
    tile: usize,
    lanes: usize,
    is_along_terms: bool,
    /// The type of a number in the memory of the workgroup.
    kept: &'static str,
}

impl Side<'_> {
    fn vectors(&self) -> usize {
        self.tile / self.lanes
    }

    /// From one term to the next in the memory of the workgroup: terms beside each other are in other banks of it.
    fn pitch(&self) -> usize {
        self.vectors() + 1
    }

    /// The type of a vector of it in registers.
    fn vector(&self) -> String {
        vector_of(self.lanes, "f32")
    }

    /// A vector of the memory of the workgroup.
    fn kept(&self, term: &str, at: &str) -> String {
        let kept = format!("{}[{term} * {}u + {at}]", self.array, self.pitch());
        if self.kept == "f32" { kept } else { format!("{}({kept})", self.vector()) }
    }

    /// The vector of a tile of `depth` terms that an invocation reads, and its term: each reads one.
    fn place(&self, depth: usize) -> [String; 2] {
        let (size, [vector, term]) = match self.is_along_terms {
            true => (depth, ["/", "%"]),
            false => (self.vectors(), ["%", "/"]),
        };
        [format!("local.x {vector} {size}u"), format!("local.x {term} {size}u")]
    }

    /// Reads the vector of the tile from the term `t0` on, below `end`, into registers of this name. They stand for themselves, so that
    /// none waits for another.
    fn read(&self, shader: &mut Shader, depth: usize, is_whole: bool, element: &mut dyn FnMut(&mut Shader) -> String) {
        let Side { array, name, first, size, tile, lanes, .. } = self;
        let [vector, term] = self.place(depth);
        for at in 0..*lanes {
            shader.line("{");
            shader.line(format!("let {name} = {first} + {vector} * {lanes}u + {at}u;"));
            shader.line(format!("let t = t0 + {term};"));
            let conditions = [(size % tile != 0, format!("{name} < {size}u")), (!is_whole, "t < end".to_owned())];
            let conditions: Vec<String> = conditions.into_iter().filter(|it| it.0).map(|it| it.1).collect();
            let condition = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" && ") };
            shader.line(format!("{array}{at} = 0.0f;"));
            shader.line(format!("if ({condition}) {{"));
            let element = element(shader);
            shader.line(format!("{array}{at} = {element};"));
            shader.line("}");
            shader.line("}");
        }
    }

    /// Writes what was read to the memory of the workgroup.
    fn keep(&self, shader: &mut Shader, depth: usize) {
        let [vector, term] = self.place(depth);
        let lane = |at: usize| match self.kept {
            "f32" => format!("{}{at}", self.array),
            kept => format!("{kept}({}{at})", self.array),
        };
        let lanes: Vec<String> = (0..self.lanes).map(lane).collect();
        let value = format!("{}({})", vector_of(self.lanes, self.kept), lanes.join(", "));
        shader.line(format!("{}[({term}) * {}u + {vector}] = {value};", self.array, self.pitch()));
    }
}

/// The type of so many numbers that are read at once.
fn vector_of(lanes: usize, of: &str) -> String {
    if lanes == 1 { of.to_owned() } else { format!("vec{lanes}<{of}>") }
}

/// One of the numbers of a vector.
fn lane(name: &str, lanes: usize, at: usize) -> String {
    if lanes == 1 { name.to_owned() } else { format!("{name}.{}", ["x", "y", "z", "w"][at]) }
}

/// Tiles in the memory of a workgroup.
fn tiles(cx: &mut Lowering<'_>, sizes: Sizes, access: Access<'_>) -> Lowered {
    let Access { lhs, rhs, store, is_along_terms, are_halves } = access;
    let Sizes { batch, m, n, k } = sizes;
    let n_groups = |[rows, columns]: [usize; 2]| batch * m.div_ceil(rows * SIDE) * n.div_ceil(columns * SIDE);
    // An invocation computes so many rows and columns: a vector of each, or two that lie half a tile apart.
    let [rows, columns] = match n_groups([8, 8]) >= BUSY / 2 && m >= 128 && n >= 128 {
        true => [8, 8],
        false => [m, n].map(|size| size.div_ceil(SIDE).next_power_of_two().min(4)),
    };
    let depth = if rows == 8 { 8 } else { 16 };
    let (own, n_parts) = shared_terms(k, n_groups([rows, columns]), depth);
    let parts = Parts::new(cx, sizes, n_parts)?;
    let side = |array, name, first, size, n: usize, is_along_terms| Side {
        array,
        name,
        first,
        size,
        tile: n * SIDE,
        lanes: n.min(4),
        is_along_terms,
        kept: if are_halves { "f16" } else { "f32" },
    };
    let left = side("left", "y", "top", m, rows, is_along_terms[0]);
    let right = side("right", "x", "start", n, columns, is_along_terms[1]);
    let mut shader = cx.shader();
    shader.has_halves = are_halves;
    for it in [&left, &right] {
        _ = writeln!(
            shader.globals,
            "var<workgroup> {}: array<{}, {}>;",
            it.array,
            vector_of(it.lanes, it.kept),
            depth * it.pitch()
        );
    }
    shader.line(format!("let z = group.z / {n_parts}u;"));
    shader.line(format!("let part = group.z % {n_parts}u;"));
    shader.line(format!("let top = group.y * {}u;", left.tile));
    shader.line(format!("let start = group.x * {}u;", right.tile));
    shader.line(format!("let down = local.x / {SIDE}u;"));
    shader.line(format!("let along = local.x % {SIDE}u;"));
    // The sums of a row are as many vectors as its columns.
    let n_vectors = columns / right.lanes;
    for row in 0..rows {
        (0..n_vectors).for_each(|at| shader.line(format!("var s{row}_{at} = {}(0.0f);", right.vector())));
    }
    for it in [&left, &right] {
        (0..it.lanes).for_each(|at| shader.line(format!("var {}{at} = 0.0f;", it.array)));
    }
    shader.line(format!("let begin = part * {own}u;"));
    shader.line(format!("let end = min({k}u, begin + {own}u);"));
    // The next tile is on its way while this one is added up.
    shader.line(format!("for (var t0 = begin; ; t0 += {depth}u) {{"));
    shader.line("if (t0 < end) {");
    let is_whole = k % depth == 0;
    left.read(&mut shader, depth, is_whole, lhs);
    right.read(&mut shader, depth, is_whole, rhs);
    shader.line("}");
    shader.line("if (t0 > begin) {");
    shader.line(format!("for (var t = 0u; t < {depth}u; t++) {{"));
    for at in 0..rows / left.lanes {
        shader.line(format!("let p{at} = {};", left.kept("t", &format!("down + {}u", at * SIDE))));
    }
    for at in 0..n_vectors {
        shader.line(format!("let q{at} = {};", right.kept("t", &format!("along + {}u", at * SIDE))));
    }
    for row in 0..rows {
        let factor = lane(&format!("p{}", row / left.lanes), left.lanes, row % left.lanes);
        (0..n_vectors).for_each(|at| shader.line(format!("s{row}_{at} += {factor} * q{at};")));
    }
    shader.line("}");
    shader.line("}");
    shader.line("if (t0 >= end) { break; }");
    shader.line("workgroupBarrier();");
    left.keep(&mut shader, depth);
    right.keep(&mut shader, depth);
    shader.line("workgroupBarrier();");
    shader.line("}");
    // One text of what follows, and not one for each element.
    _ = writeln!(shader.globals, "var<private> sums: array<f32, {}>;", rows * columns);
    for at in 0..rows * columns {
        let (row, column) = (at / columns, at % columns);
        let sum = lane(&format!("s{row}_{}", column / right.lanes), right.lanes, column % right.lanes);
        shader.line(format!("sums[{at}] = {sum};"));
    }
    shader.line(format!("for (var at = 0u; at < {}u; at++) {{", rows * columns));
    let place = |of: &str, base: &str, lanes: usize| {
        format!("({base} + {of} / {lanes}u * {SIDE}u) * {lanes}u + {of} % {lanes}u")
    };
    shader.line(format!("let row = at / {columns}u;"));
    shader.line(format!("let column = at % {columns}u;"));
    shader.line(format!("let y = top + {};", place("row", "down", left.lanes)));
    shader.line(format!("let x = start + {};", place("column", "along", right.lanes)));
    shader.line(format!("if (y < {m}u && x < {n}u) {{"));
    shader.line("let sum = sums[at];");
    parts.store(&mut shader, store);
    shader.line("}");
    shader.line("}");
    let groups = [n.div_ceil(right.tile), m.div_ceil(left.tile), batch * n_parts];
    let groups = groups.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let mut dispatches = vec![cx.dispatch(shader, [(SIDE * SIDE) as u32, 1, 1], groups)?];
    dispatches.extend(parts.joined(cx, sizes, store)?);
    Ok(dispatches)
}

/// Invocations of a workgroup of [`columns`] that share the terms of a column.
const SLICES: usize = 4;

/// Few rows, of a right factor whose columns lie beside each other: an invocation for each column and a part of its terms.
fn columns(cx: &mut Lowering<'_>, sizes: Sizes, Access { lhs, rhs, store, .. }: Access<'_>) -> Lowered {
    let Sizes { batch, m, n, k } = sizes;
    let (own, n_parts) = shared_terms(k, batch * n.div_ceil(ROW as usize), SLICES);
    let parts = Parts::new(cx, sizes, n_parts)?;
    let mut shader = cx.shader();
    _ = writeln!(shader.globals, "var<workgroup> slices: array<f32, {}>;", m * SLICES * ROW as usize);
    shader.line(format!("let z = group.y / {n_parts}u;"));
    shader.line(format!("let part = group.y % {n_parts}u;"));
    shader.line(format!("let x = group.x * {ROW}u + local.x % {ROW}u;"));
    shader.line(format!("let slice = local.x / {ROW}u;"));
    for y in 0..m {
        shader.line(format!("var s{y} = 0.0f;"));
    }
    shader.line(format!("let end = min({k}u, (part + 1u) * {own}u);"));
    shader.line(format!("if (x < {n}u) {{"));
    shader.line(format!("for (var t = part * {own}u + slice; t < end; t += {SLICES}u) {{"));
    let factor = rhs(&mut shader);
    shader.line(format!("let factor = {factor};"));
    for y in 0..m {
        shader.line("{");
        shader.line(format!("let y = {y}u;"));
        let element = lhs(&mut shader);
        shader.line(format!("s{y} += {element} * factor;"));
        shader.line("}");
    }
    shader.line("}");
    shader.line("}");
    for y in 0..m {
        shader.line(format!("slices[({y}u * {SLICES}u + slice) * {ROW}u + local.x % {ROW}u] = s{y};"));
    }
    shader.line("workgroupBarrier();");
    shader.line(format!("if (slice == 0u && x < {n}u) {{"));
    shader.line(format!("for (var y = 0u; y < {m}u; y++) {{"));
    shader.line("var sum = 0.0f;");
    shader.line(format!(
        "for (var s = 0u; s < {SLICES}u; s++) {{ sum += slices[(y * {SLICES}u + s) * {ROW}u + local.x]; }}"
    ));
    parts.store(&mut shader, store);
    shader.line("}");
    shader.line("}");
    let groups = [n.div_ceil(ROW as usize), batch * n_parts, 1].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let mut dispatches = vec![cx.dispatch(shader, [ROW * SLICES as u32, 1, 1], groups)?];
    dispatches.extend(parts.joined(cx, sizes, store)?);
    Ok(dispatches)
}

/// A workgroup for each element.
fn dots(cx: &mut Lowering<'_>, Sizes { batch, m, n, k }: Sizes, access: Access<'_>) -> Lowered {
    let n_elements = batch.checked_mul(m).and_then(|it| it.checked_mul(n)).ok_or("too many elements")?;
    let size = sharing(k);
    cx.for_each_row(n_elements, size, |_, shader| {
        shader.line(format!("let x = row % {n}u;"));
        shader.line(format!("let y = row / {n}u % {m}u;"));
        shader.line(format!("let z = row / {}u;", m * n));
        shader.line("var part = 0.0f;");
        shader.line(format!("for (var t = local.x; t < {k}u; t += {size}u) {{"));
        let (lhs, rhs) = ((access.lhs)(shader), (access.rhs)(shader));
        shader.line(format!("part += {lhs} * {rhs};"));
        shader.line("}");
        let sum = summed(shader, "part", "f32", size);
        shader.line("if (local.x == 0u) {");
        shader.line(format!("let sum = {sum};"));
        (access.store)(shader);
        shader.line("}");
        Ok(())
    })
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

/// Whether the next term of each factor is nearer than its next row or column.
fn along_terms(lhs: &View, rhs: &View) -> [bool; 2] {
    let last = |it: &View| [it.strides[it.strides.len() - 2], it.strides[it.strides.len() - 1]];
    let ([row, term], [other_term, column]) = (last(lhs), last(rhs));
    [term <= row, other_term < column]
}

pub(super) fn product(cx: &mut Lowering<'_>, it: &Product<TensorId>) -> Lowered {
    let rhs = cx.floats(it.rhs)?;
    let [term, column] = [rhs.strides[0], rhs.strides[1]];
    let mut load = |shader: &mut Shader| shader.load(&rhs, &rhs.at(&["t", "x"].map(str::to_owned)));
    let (sizes, dtype) = ([rhs.sizes[0], rhs.sizes[1]], rhs.dtype);
    let right = Right { sizes, dtype, is_along_terms: term < column, load: &mut load };
    product_with(cx, [it.lhs, it.result], &it.epilogue, right)
}

/// The right side of a product.
pub(super) struct Right<'a> {
    /// Its rows and columns.
    pub(super) sizes: [usize; 2],
    /// A dtype that has all of its elements.
    pub(super) dtype: DType,
    /// Whether its next row is nearer in memory than its next column.
    pub(super) is_along_terms: bool,
    /// As [`Access::rhs`].
    pub(super) load: &'a mut dyn FnMut(&mut Shader) -> String,
}

/// The product of rows with this right side, and what follows it.
pub(super) fn product_with(
    cx: &mut Lowering<'_>,
    [lhs, result]: [TensorId; 2],
    epilogue: &Epilogue<TensorId>,
    right: Right<'_>,
) -> Lowered {
    let (lhs, result, tail) = (cx.floats(lhs)?, cx.floats(result)?, Tail::of(cx, epilogue)?);
    let (m, [k, n]) = (lhs.sizes[0], right.sizes);
    let access = Access {
        lhs: &mut |shader| shader.load(&lhs, &lhs.at(&["y", "t"].map(str::to_owned))),
        rhs: right.load,
        store: &mut |shader| tail.store(shader, &result, "x", &format!("y * {n}u + x")),
        is_along_terms: [lhs.strides[1] <= lhs.strides[0], right.is_along_terms],
        are_halves: cx.are_halves(&[lhs.dtype, right.dtype]),
    };
    tiled(cx, Sizes { batch: 1, m, n, k }, access)
}

/// What is added to a product: the tensor, its factor, and that of the product.
struct Added {
    tensor: View,
    beta: f32,
    alpha: f32,
}

/// The products that are called: `mm`, `bmm`, `matmul`, `linear`, `addmm`, `baddbmm`, `mv`, `dot`, `vdot`.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let name = op.strip_prefix("aten.")?.strip_suffix(".default")?;
    let tensor = |at| Args(args).tensor(at);
    let number = |at: usize| match args.get(at) {
        Some(Operand::Int(it)) => *it as f32,
        Some(Operand::Float(it)) => *it as f32,
        _ => 1.0,
    };
    let (lhs, rhs, added, is_turned) = match name {
        "mm" | "bmm" | "matmul" | "mv" | "dot" | "vdot" => (0, 1, None, false),
        "linear" => (0, 1, args.get(2).and_then(|_| tensor(2)).map(|it| (it, 1.0, 1.0)), true),
        "addmm" | "baddbmm" | "addmv" | "addbmm" => (1, 2, Some((tensor(0)?, number(3), number(4))), false),
        _ => return None,
    };
    let (lhs, rhs) = (tensor(lhs)?, tensor(rhs)?);
    if name == "addbmm" {
        return Some(batch_summed(cx, (lhs, rhs), added, result));
    }
    let kind = Kind::of(cx.plan.tensor(result).dtype);
    if matches!(kind, Some(Kind::Int | Kind::Long)) && added.is_none() && name != "matmul" {
        return Some(integers::matrices(cx, (lhs, rhs, is_turned), result));
    }
    Some(batched(cx, (lhs, rhs, is_turned), added, result))
}

/// The sum of the products of a batch: one product, whose terms are those of all of them.
fn batch_summed(
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
        is_along_terms: along_terms(&lhs, &rhs),
        are_halves: cx.are_halves(&[lhs.dtype, rhs.dtype]),
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
        is_along_terms: along_terms(&lhs, &rhs),
        are_halves: cx.are_halves(&[lhs.dtype, rhs.dtype]),
    };
    tiled(cx, Sizes { batch: batch.iter().product(), m, n, k }, access)
}
