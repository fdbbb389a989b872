//! Elements at positions that other tensors tell by what is in them: of memory that is taken as flat, of masks, of sorted sequences; and
//! those of views that a call names.

use super::args::{Args, wrapped};
use super::copies::moved;
use super::pointwise::{compared, converted, literal, rounded};
use super::selections::{Added, accumulated, cast, changed, filled, position, scattered};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, View, coordinates};
use tracefx_core::contiguous_strides;
use tracefx_plan::{Operand, TensorId};

/// The most elements that invocations look at, where each looks at all of another tensor.
const MOST_COMPARED: usize = 1 << 28;

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let given = Args(args);
    Some(match (name, overload) {
        ("take", "default") => taken(cx, op, given.tensor(0)?, given.tensor(1)?, result),
        ("masked_scatter", "default") => masked(cx, given.tensor(0)?, given.tensor(1)?, given.tensor(2)?, result),
        ("nonzero_static", "default") => nonzero(cx, given.tensor(0)?, given.int(2).unwrap_or(-1), result),
        ("searchsorted", "Tensor") => {
            let is_right = given.is_true(3) || matches!(args.get(4), Some(Operand::Str(it)) if &**it == "right");
            match given.tensor(5) {
                None => searched(cx, given.tensor(0)?, given.tensor(1)?, is_right, result),
                Some(_) => Err("sequences that are sorted by positions".into()),
            }
        }
        ("bucketize", "Tensor") => searched(cx, given.tensor(1)?, given.tensor(0)?, given.is_true(3), result),
        ("isin", "Tensor_Tensor") => contained(cx, given.tensor(0)?, given.tensor(1)?, given.is_true(3), result),
        ("block_diag", "default") => {
            let Some(Operand::List(blocks)) = args.first() else { return None };
            diagonal_blocks(cx, blocks, result)
        }
        (_, _) => {
            let input = given.tensor(0)?;
            match Change::of(cx, op, args)? {
                Change::Add(it) => accumulated(cx, (input, result), &it),
                other => changed(cx, input, result, |cx| other.lower(cx, op, result)),
            }
        }
    })
}

/// An update of a tensor in its place, which is the first argument.
pub(super) fn update(cx: &mut Lowering<'_>, op: &str, args: &[Operand]) -> Option<Lowered> {
    let target = Args(args).tensor(0)?;
    Some(Change::of(cx, op, args)?.lower(cx, op, target))
}

/// How a copy of a tensor is changed, or the tensor itself.
enum Change<'a> {
    /// Adds at positions.
    Add(Added<'a>),
    /// Writes at positions of a dimension.
    Copy { dim: usize, index: TensorId, source: TensorId },
    /// Writes one number at positions of a dimension.
    Fill { dim: usize, index: TensorId, value: &'a Operand },
    /// Writes to one position of a dimension.
    Select { dim: usize, at: usize, source: TensorId },
    /// Writes to a diagonal.
    Diagonal { offset: i64, dims: [usize; 2], source: TensorId },
}

impl<'a> Change<'a> {
    fn of(cx: &Lowering<'_>, op: &'a str, args: &'a [Operand]) -> Option<Self> {
        let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
        let given = Args(args);
        let sizes = cx.plan.tensor(given.tensor(0)?).known()?.sizes;
        let rank = sizes.len();
        Some(match (name, overload) {
            ("index_add", "default") => Change::Add(Added {
                op,
                is_wrapped: false,
                positions: vec![(given.dim(1, rank)?, given.tensor(2)?)],
                values: given.tensor(3)?,
                factor: args.get(4),
            }),
            ("index_copy", "default") => {
                Change::Copy { dim: given.dim(1, rank)?, index: given.tensor(2)?, source: given.tensor(3)? }
            }
            ("index_fill", "int_Scalar") => {
                Change::Fill { dim: given.dim(1, rank)?, index: given.tensor(2)?, value: args.get(3)? }
            }
            ("select_scatter", "default") => {
                let dim = given.dim(2, rank)?;
                Change::Select { dim, at: wrapped(given.int(3)?, sizes[dim])?, source: given.tensor(1)? }
            }
            ("diagonal_scatter", "default") => {
                let dim = |at: usize, default: i64| wrapped(given.int(at).unwrap_or(default), rank);
                Change::Diagonal {
                    offset: given.int(2).unwrap_or(0),
                    dims: [dim(3, 0)?, dim(4, 1)?],
                    source: given.tensor(1)?,
                }
            }
            (_, _) => return None,
        })
    }

    fn lower(self, cx: &mut Lowering<'_>, op: &str, target: TensorId) -> Lowered {
        match self {
            Change::Add(it) => accumulated(cx, (target, target), &it),
            Change::Copy { dim, index, source } => scattered(cx, op, target, (dim, index), source),
            Change::Fill { dim, index, value } => stamped(cx, op, target, (dim, index), value),
            Change::Select { dim, at, source } => {
                let (mut to, source) = (cx.movable(target)?, cx.movable(source)?);
                to.offset += at * to.strides[dim];
                to.sizes.remove(dim);
                to.strides.remove(dim);
                write(cx, source, to)
            }
            Change::Diagonal { offset, dims: [a, b], source } => {
                let (to, source) = (cx.movable(target)?, cx.movable(source)?);
                let to = diagonal(to, offset, a, b).ok_or("a diagonal of one dimension")?;
                write(cx, source, to)
            }
        }
    }
}

/// The diagonal of two dimensions, in the last place.
fn diagonal(mut it: View, offset: i64, a: usize, b: usize) -> Option<View> {
    let size = |dim: usize, skipped: i64| (it.sizes[dim] as i64 - skipped.max(0)).max(0);
    let n = size(a, -offset).min(size(b, offset)) as usize;
    if a == b {
        return None;
    }
    if n > 0 {
        it.offset += offset.unsigned_abs() as usize * it.strides[if offset < 0 { a } else { b }];
    }
    let stride = it.strides[a] + it.strides[b];
    for dim in [a.max(b), a.min(b)] {
        it.sizes.remove(dim);
        it.strides.remove(dim);
    }
    it.sizes.push(n);
    it.strides.push(stride);
    Some(it)
}

/// Writes a tensor to a view of another one that has the same sizes.
fn write(cx: &mut Lowering<'_>, source: View, to: View) -> Lowered {
    if source.sizes != to.sizes {
        return Err("other sizes".into());
    }
    if source.dtype == to.dtype { moved(cx, source, to) } else { cast(cx, &source, &to) }
}

/// `aten.take`: positions among all elements in row-major order.
fn taken(cx: &mut Lowering<'_>, op: &str, input: TensorId, index: TensorId, result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let (index, kind) = cx.view(index)?;
    cx.try_for_each(result.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let at = position(cx, shader, (op, true, 0, input.numel()), (&index, kind), &places)?;
        let from = coordinates(shader, &at, &input.sizes, "f");
        let element = shader.load_words(&input, &input.at(&from));
        let statement = shader.store_words(&result, &result.at(&places), &element);
        shader.line(statement);
        Ok(())
    })
}

/// One number at positions of a dimension.
fn stamped(
    cx: &mut Lowering<'_>,
    op: &str,
    target: TensorId,
    (dim, index): (usize, TensorId),
    value: &Operand,
) -> Lowered {
    let ((target, kind), (index, index_kind)) = (cx.view(target)?, cx.view(index)?);
    let value = literal(value, kind).ok_or("a number that the data decides")?;
    let value = rounded(&value, target.dtype);
    if index.sizes.len() != 1 {
        return Err("other sizes".into());
    }
    let mut sizes = target.sizes.clone();
    sizes[dim] = index.sizes[0];
    cx.try_for_each(sizes.iter().product(), |cx, shader| {
        let mut places = coordinates(shader, "i", &sizes, "c");
        let own = [places[dim].clone()];
        places[dim] = position(cx, shader, (op, true, dim, target.sizes[dim]), (&index, index_kind), &own)?;
        let statement = shader.store(&target, &target.at(&places), &value);
        shader.line(statement);
        Ok(())
    })
}

/// `aten.masked_scatter`: the element of the source whose number is that of the places before that are set.
fn masked(cx: &mut Lowering<'_>, input: TensorId, mask: TensorId, source: TensorId, result: TensorId) -> Lowered {
    let (input, source, result) = (cx.movable(input)?, cx.movable(source)?, cx.movable(result)?);
    let (mask, kind) = cx.view(mask)?;
    let n = result.numel();
    if kind != Kind::Bool || source.dtype != result.dtype || input.dtype != result.dtype {
        return Err("a mask of other numbers".into());
    }
    if source.numel() < n {
        return Err("a source that may be too short".into());
    }
    if n.checked_mul(n).is_none_or(|it| it > MOST_COMPARED) {
        return Err("a mask of too many elements".into());
    }
    let (input, mask) = (input.expanded(&result.sizes), mask.expanded(&result.sizes));
    cx.for_each(n, |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let is_set = shader.load(&mask, &mask.at(&places));
        let element = shader.load_words(&input, &input.at(&places));
        shader.line(format!("var it = {element};"));
        shader.line(format!("if ({is_set}) {{"));
        shader.line("var before = 0u;");
        shader.line("for (var k = 0u; k < i; k++) {");
        let other = coordinates(shader, "k", &result.sizes, "k");
        let is_set = shader.load(&mask, &mask.at(&other));
        shader.line(format!("if ({is_set}) {{ before++; }}"));
        shader.line("}");
        let from = coordinates(shader, "before", &source.sizes, "f");
        let element = shader.load_words(&source, &source.at(&from));
        shader.line(format!("it = {element};"));
        shader.line("}");
        let statement = shader.store_words(&result, &result.at(&places), "it");
        shader.line(statement);
    })
}

/// `aten.nonzero_static`: each row of the result looks for its element from the first one on.
fn nonzero(cx: &mut Lowering<'_>, input: TensorId, filler: i64, result: TensorId) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    let (n, rank) = (input.numel(), input.sizes.len());
    let n_rows = result.sizes.first().copied().unwrap_or(0);
    if n.checked_mul(n_rows).is_none_or(|it| it > MOST_COMPARED) {
        return Err("too many elements that may be zero".into());
    }
    let n_numbers = result.numel();
    cx.for_each(if rank == 0 { 0 } else { n_numbers }, |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        shader.line(format!("var it = {};", crate::shader::long(filler)));
        shader.line("var seen = 0u;");
        shader.line(format!("for (var k = 0u; k < {n}u && seen <= {}; k++) {{", places[0]));
        let own = coordinates(shader, "k", &input.sizes, "k");
        let is_set = converted(&shader.load(&input, &input.at(&own)), kind, Kind::Bool);
        shader.line(format!("if ({is_set}) {{"));
        shader.line(format!("if (seen == {}) {{", places[0]));
        for (dim, coordinate) in own.iter().enumerate() {
            shader.line(format!("if ({} == {dim}u) {{ it = vec2<u32>({coordinate}, 0u); }}", places[1]));
        }
        shader.line("}");
        shader.line("seen++;");
        shader.line("} }");
        let statement = shader.store(&result, &result.at(&places), "it");
        shader.line(statement);
    })
}

/// The position of each number in a sorted sequence, or in that of its row: behind equal ones if `is_right`.
fn searched(cx: &mut Lowering<'_>, sequence: TensorId, values: TensorId, is_right: bool, result: TensorId) -> Lowered {
    let ((sequence, a), (values, b), (result, to)) = (cx.view(sequence)?, cx.view(values)?, cx.view(result)?);
    if a != b || sequence.dtype != values.dtype || a == Kind::Bool {
        return Err("a search among numbers of another dtype".into());
    }
    let Some((&n, lead)) = sequence.sizes.split_last() else { return Err("a search in no sequence".into()) };
    if n > i32::MAX as usize / 2 {
        return Err("a sequence too long to be searched".into());
    }
    let is_shared = lead.is_empty();
    if !is_shared && values.sizes.len() != sequence.sizes.len() {
        return Err("other sizes".into());
    }
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let element = shader.load(&values, &values.at(&places));
        shader.line(format!("let own = {element};"));
        shader.line("var start = 0u;");
        shader.line(format!("var end = {n}u;"));
        shader.line("while (start < end) {");
        shader.line("let middle = (start + end) / 2u;");
        let mut from = if is_shared { Vec::new() } else { places[..lead.len()].to_vec() };
        from.push("middle".to_owned());
        let element = shader.load(&sequence, &sequence.at(&from));
        // What is not a number is behind all numbers.
        let is_behind = compared(if is_right { "gt" } else { "ge" }, a, &element, "own");
        shader.line(format!("if ({is_behind}) {{ end = middle; }} else {{ start = middle + 1u; }}"));
        shader.line("}");
        let at = converted("vec2<u32>(start, 0u)", Kind::Long, to);
        let statement = shader.store(&result, &result.at(&places), &at);
        shader.line(statement);
    })
}

/// `aten.isin`.
fn contained(
    cx: &mut Lowering<'_>,
    elements: TensorId,
    among: TensorId,
    is_inverted: bool,
    result: TensorId,
) -> Lowered {
    let ((elements, a), (among, b), (result, _)) = (cx.view(elements)?, cx.view(among)?, cx.view(result)?);
    if elements.dtype != among.dtype || a != b {
        return Err("a search among numbers of another dtype".into());
    }
    let n = among.numel();
    if n.checked_mul(elements.numel()).is_none_or(|it| it > MOST_COMPARED) {
        return Err("a search among too many elements".into());
    }
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let element = shader.load(&elements, &elements.at(&places));
        shader.line(format!("let own = {element};"));
        shader.line("var is_in = false;");
        shader.line(format!("for (var k = 0u; k < {n}u; k++) {{"));
        let other = coordinates(shader, "k", &among.sizes, "k");
        let element = shader.load(&among, &among.at(&other));
        shader.line(format!("is_in = is_in || {};", compared("eq", a, &element, "own")));
        shader.line("}");
        let value = if is_inverted { "!is_in" } else { "is_in" };
        let statement = shader.store(&result, &result.at(&places), value);
        shader.line(statement);
    })
}

/// `aten.block_diag`.
fn diagonal_blocks(cx: &mut Lowering<'_>, blocks: &[Operand], result: TensorId) -> Lowered {
    let mut dispatches = filled(cx, Operand::Int(0), result)?;
    let result = cx.movable(result)?;
    let (mut row, mut column) = (0, 0);
    for block in blocks {
        let Operand::Tensor(block) = block else { return Err("other arguments".into()) };
        let mut block = cx.movable(*block)?;
        while block.sizes.len() < 2 {
            block.sizes.insert(0, 1);
            block.strides.insert(0, 0);
        }
        let mut to = result.clone();
        to.offset += row * to.strides[0] + column * to.strides[1];
        to.sizes.clone_from(&block.sizes);
        (row, column) = (row + block.sizes[0], column + block.sizes[1]);
        if block.numel() > 0 {
            dispatches.extend(write(cx, block, to)?);
        }
    }
    Ok(dispatches)
}

/// `aten.roll` of all elements in row-major order.
pub(super) fn rolled(cx: &mut Lowering<'_>, input: &View, result: &View, shift: i64) -> Lowered {
    let n = input.numel();
    let shift = (-shift).rem_euclid(n.max(1) as i64);
    let row_major = View { strides: contiguous_strides(&result.sizes), ..result.clone() };
    if row_major.strides != result.strides {
        return Err(Reason::from("a result that lies apart"));
    }
    cx.for_each(n, |shader| {
        shader.line(format!("let at = (i + {shift}u) % {n}u;"));
        let places = coordinates(shader, "at", &input.sizes, "c");
        let element = shader.load_words(input, &input.at(&places));
        let statement = shader.store_words(result, &format!("{}u + i", result.offset), &element);
        shader.line(statement);
    })
}
