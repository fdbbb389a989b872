//! What moves elements: gathers at positions that the data tells, padding, turning, repeating, joining, and new tensors of one number.

use super::args::{Args, wrapped};
use super::convolution::numbers;
use super::copies::moved;
use super::pointwise::{converted, literal};
use crate::lower::{Lowered, Lowering};
use crate::program::{Check, Reason};
use crate::shader::{Kind, Shader, View, coordinates};
use std::sync::Arc;
use tracefx_core::DType;
use tracefx_plan::{Gather, Operand, TensorId};

pub(super) fn gather(cx: &mut Lowering<'_>, it: &Gather<TensorId>) -> Lowered {
    along(cx, (&it.op, it.is_wrapped), it.input, it.dim, it.index, it.result)
}

/// The elements at the positions `index` of a dimension, in the place of which the dimensions of the index are.
fn along(
    cx: &mut Lowering<'_>,
    (op, is_wrapped): (&str, bool),
    input: TensorId,
    dim: usize,
    index: TensorId,
    result: TensorId,
) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let (index, kind) = cx.view(index)?;
    let size = input.sizes.get(dim).copied().ok_or("an index of no dimension")?;
    let rank = index.sizes.len();
    cx.try_for_each(result.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let position = position(cx, shader, (op, is_wrapped, dim, size), (&index, kind), &places[dim..dim + rank])?;
        let mut from = places[..dim].to_vec();
        from.push(position);
        from.extend_from_slice(&places[dim + rank..]);
        let element = shader.load_words(&input, &input.at(&from));
        let statement = shader.store_words(&result, &result.at(&places), &element);
        shader.line(statement);
        Ok(())
    })
}

/// The name of the position that an index tells at these coordinates, of a dimension of this size.
pub(super) fn position(
    cx: &mut Lowering<'_>,
    shader: &mut Shader,
    (op, is_wrapped, dim, size): (&str, bool, usize, usize),
    (index, kind): (&View, Kind),
    places: &[String],
) -> Result<String, Reason> {
    // Bytes may be a mask.
    if !matches!(index.dtype, DType::Int32 | DType::Int64) || size == 0 {
        return Err(format!("positions of {} among {size}", index.dtype.name()).into());
    }
    let check = Check { node: cx.node(), op: Arc::from(op), dim, size, is_wrapped };
    let at = cx.check(shader, check);
    let value = converted(&shader.load(index, &index.at(places)), kind, Kind::Long);
    shader.line(format!("let p{at} = position{at}({value});"));
    Ok(format!("p{at}"))
}

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let given = Args(args);
    let (tensor, dim) = (|at| given.tensor(at), |at, rank| given.dim(at, rank));
    let rank = |id: TensorId| cx.plan.tensor(id).sizes.len();
    Some(match (name, overload) {
        ("index_select", "default") => {
            let (input, index) = (tensor(0)?, tensor(2)?);
            let dim = dim(1, rank(input))?;
            along(cx, (op, false), input, dim, index, result)
        }
        ("embedding", "default") => along(cx, (op, false), tensor(0)?, 0, tensor(1)?, result),
        ("gather", "default") => {
            let (input, index) = (tensor(0)?, tensor(2)?);
            let dim = dim(1, rank(input))?;
            gathered(cx, op, input, dim, index, result)
        }
        ("index", "Tensor") => {
            let Some(Operand::List(indices)) = args.get(1) else { return None };
            indexed(cx, op, tensor(0)?, indices, result)
        }
        ("constant_pad_nd", "default") => padded(cx, tensor(0)?, args.get(1)?, args.get(2), result),
        (
            "reflection_pad1d" | "reflection_pad2d" | "reflection_pad3d" | "replication_pad1d" | "replication_pad2d"
            | "replication_pad3d" | "_pad_circular",
            "default",
        ) => surrounded(cx, name, tensor(0)?, args.get(1)?, result),
        ("flip", "default") => turned(cx, tensor(0)?, args.get(1)?, result),
        ("roll", "default") => rolled(cx, tensor(0)?, args.get(1)?, args.get(2)?, result),
        ("repeat", "default") => repeated(cx, tensor(0)?, result),
        ("cat", "default") => {
            let Some(Operand::List(parts)) = args.first() else { return None };
            let dim = match args.get(1) {
                None => 0,
                Some(_) => dim(1, rank(result))?,
            };
            joined(cx, parts, dim, result)
        }
        ("tril" | "triu", "default") => triangle(cx, name == "tril", tensor(0)?, given.int(1).unwrap_or(0), result),
        ("full" | "full_like" | "new_full" | "fill", "default" | "Scalar") => {
            let at = if name == "new_full" { 2 } else { 1 };
            filled(cx, args.get(at)?.clone(), result)
        }
        ("zeros" | "zeros_like" | "new_zeros", "default") => filled(cx, Operand::Int(0), result),
        ("ones" | "ones_like" | "new_ones", "default") => filled(cx, Operand::Int(1), result),
        ("scalar_tensor", "default") => filled(cx, args.first()?.clone(), result),
        ("zero" | "empty_like" | "empty_strided", "default") | ("empty", "memory_format") => {
            filled(cx, Operand::Int(0), result)
        }
        ("slice_scatter", "default") => {
            let (input, source) = (tensor(0)?, tensor(1)?);
            let dim = dim(2, rank(input))?;
            changed(cx, input, result, |cx| sliced(cx, result, source, dim, &args[3..]))
        }
        ("index_put", "default") if !given.is_true(3) => {
            let (Some(Operand::List(indices)), values) = (args.get(1), tensor(2)?) else { return None };
            changed(cx, tensor(0)?, result, |cx| put(cx, op, result, indices, values))
        }
        ("index_put", "default") => {
            let Some(Operand::List(indices)) = args.get(1) else { return None };
            accumulated(cx, (tensor(0)?, result), &Added::put(op, indices, tensor(2)?)?)
        }
        ("scatter" | "scatter_add" | "scatter_reduce", _) => {
            let input = tensor(0)?;
            collected(cx, &Scatter::of(op, args, rank(input))?, input, result)
        }
        ("fill", "Tensor") => filled_with(cx, tensor(1)?, result),
        ("arange", "start_step") => counted(cx, args.first()?, args.get(2)?, result),
        ("arange", "start") => counted(cx, args.first()?, &Operand::Int(1), result),
        ("arange", "default") => counted(cx, &Operand::Int(0), &Operand::Int(1), result),
        (_, _) => return None,
    })
}

/// `aten.gather`.
fn gathered(
    cx: &mut Lowering<'_>,
    op: &str,
    input: TensorId,
    dim: usize,
    index: TensorId,
    result: TensorId,
) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let (index, kind) = cx.view(index)?;
    if input.sizes.len() != index.sizes.len() {
        return Err("a gather of a tensor without dimensions".into());
    }
    cx.try_for_each(result.numel(), |cx, shader| {
        let mut places = coordinates(shader, "i", &result.sizes, "c");
        let to = result.at(&places);
        let at = position(cx, shader, (op, false, dim, input.sizes[dim]), (&index, kind), &places)?;
        places[dim] = at;
        let element = shader.load_words(&input, &input.at(&places));
        let statement = shader.store_words(&result, &to, &element);
        shader.line(statement);
        Ok(())
    })
}

/// The dimensions that have an index, with it.
type Positions = Vec<(usize, (View, Kind))>;

fn positions(cx: &Lowering<'_>, indices: &[Operand]) -> Result<Positions, Reason> {
    let mut res = Vec::new();
    for (dim, it) in indices.iter().enumerate() {
        match it {
            Operand::Tensor(it) => res.push((dim, cx.view(*it)?)),
            Operand::None => {}
            _ => return Err("other arguments".into()),
        }
    }
    Ok(res)
}

/// `aten.index.Tensor`: the indices broadcast; where all of them stand side by side, what they give stands in their place, else in front.
fn indexed(cx: &mut Lowering<'_>, op: &str, input: TensorId, indices: &[Operand], result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let positions = positions(cx, indices)?;
    let dims: Vec<usize> = positions.iter().map(|(dim, _)| *dim).collect();
    let (Some(&first), Some(&last)) = (dims.first(), dims.last()) else { return Err("an index of nothing".into()) };
    let is_together = last - first + 1 == dims.len();
    let n_index = (result.sizes.len() + dims.len()).checked_sub(input.sizes.len()).ok_or("other sizes")?;
    let start = if is_together { first } else { 0 };
    let index_sizes = result.sizes[start..start + n_index].to_vec();
    let fits = |it: &View| {
        let lead = index_sizes.len().checked_sub(it.sizes.len());
        lead.is_some_and(|lead| it.sizes.iter().zip(&index_sizes[lead..]).all(|(a, b)| a == b || *a == 1))
    };
    if !positions.iter().all(|(_, (view, _))| fits(view)) {
        return Err("other sizes".into());
    }
    cx.try_for_each(result.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let index_places = &places[start..start + n_index];
        let mut others = places[..start].iter().chain(&places[start + n_index..]);
        let mut from = Vec::new();
        let mut positions = positions.iter();
        for (dim, size) in input.sizes.iter().enumerate() {
            from.push(match dims.contains(&dim) {
                true => {
                    let (_, (view, kind)) = positions.next().ok_or("other sizes")?;
                    let view = view.expanded(&index_sizes);
                    position(cx, shader, (op, true, dim, *size), (&view, *kind), index_places)?
                }
                false => others.next().ok_or("other sizes")?.clone(),
            });
        }
        let element = shader.load_words(&input, &input.at(&from));
        let statement = shader.store_words(&result, &result.at(&places), &element);
        shader.line(statement);
        Ok(())
    })
}

/// `aten.constant_pad_nd`, with padding that may be below zero.
fn padded(
    cx: &mut Lowering<'_>,
    input: TensorId,
    padding: &Operand,
    value: Option<&Operand>,
    result: TensorId,
) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    let Operand::List(padding) = padding else { return Err("other arguments".into()) };
    let rank = input.sizes.len();
    let value = literal(value.unwrap_or(&Operand::Int(0)), kind).ok_or("other arguments")?;
    let value = super::pointwise::rounded(&value, input.dtype);
    cx.try_for_each(result.numel(), |_, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let (mut from, mut inside) = (places.clone(), vec!["true".to_owned()]);
        for (at, pair) in padding.chunks_exact(2).enumerate() {
            let (Operand::Int(before), Some(dim)) = (&pair[0], rank.checked_sub(at + 1)) else {
                return Err("sizes that the data decides".into());
            };
            // A place in front of the first element is a number beyond the last one.
            shader.line(format!("let p{dim} = {} - {}u;", places[dim], *before as u32));
            inside.push(format!("p{dim} < {}u", input.sizes[dim]));
            from[dim] = format!("p{dim}");
        }
        shader.line(format!("var it = {value};"));
        let element = shader.load(&input, &input.at(&from));
        shader.line(format!("if ({}) {{ it = {element}; }}", inside.join(" && ")));
        let statement = shader.store(&result, &result.at(&places), "it");
        shader.line(statement);
        Ok(())
    })
}

/// Moves to each element of the result the one at the coordinates that `from` makes of its own.
fn placed(cx: &mut Lowering<'_>, (input, result): (&View, &View), from: impl FnOnce(&mut Vec<String>)) -> Lowered {
    cx.for_each(result.numel(), |shader| {
        let mut places = coordinates(shader, "i", &result.sizes, "c");
        let to = result.at(&places);
        from(&mut places);
        let element = shader.load_words(input, &input.at(&places));
        let statement = shader.store_words(result, &to, &element);
        shader.line(statement);
    })
}

fn each_dim(operand: &Operand, rank: usize) -> Result<Vec<usize>, Reason> {
    let dim = |it: &Operand| match it {
        Operand::Int(it) => wrapped(*it, rank),
        _ => None,
    };
    let Operand::List(items) = operand else { return Err("other arguments".into()) };
    items.iter().map(dim).collect::<Option<_>>().ok_or_else(|| "other arguments".into())
}

fn turned(cx: &mut Lowering<'_>, input: TensorId, dims: &Operand, result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let dims = each_dim(dims, input.sizes.len())?;
    placed(cx, (&input, &result), |places| {
        for dim in dims {
            places[dim] = format!("({}u - {})", input.sizes[dim].saturating_sub(1), places[dim]);
        }
    })
}

fn rolled(cx: &mut Lowering<'_>, input: TensorId, shifts: &Operand, dims: &Operand, result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let dims = each_dim(dims, input.sizes.len())?;
    let Operand::List(shifts) = shifts else { return Err("other arguments".into()) };
    if let ([], [Operand::Int(shift)]) = (&dims[..], &shifts[..]) {
        return super::positions::rolled(cx, &input, &result, *shift);
    }
    if dims.len() != shifts.len() {
        return Err("other arguments".into());
    }
    let mut moves = Vec::new();
    for (dim, shift) in dims.into_iter().zip(shifts) {
        let (Operand::Int(shift), size) = (shift, input.sizes[dim].max(1) as i64) else {
            return Err("other arguments".into());
        };
        moves.push((dim, (-shift).rem_euclid(size), size));
    }
    placed(cx, (&input, &result), |places| {
        for (dim, shift, size) in moves {
            places[dim] = format!("(({} + {shift}u) % {size}u)", places[dim]);
        }
    })
}

fn repeated(cx: &mut Lowering<'_>, input: TensorId, result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let lead = result.sizes.len().checked_sub(input.sizes.len()).ok_or("other sizes")?;
    placed(cx, (&input, &result), |places| {
        places.drain(..lead);
        for (place, size) in places.iter_mut().zip(&input.sizes) {
            *place = format!("({place} % {size}u)");
        }
    })
}

fn joined(cx: &mut Lowering<'_>, parts: &[Operand], dim: usize, result: TensorId) -> Lowered {
    let result = cx.movable(result)?;
    let (mut dispatches, mut start) = (Vec::new(), 0);
    for part in parts {
        let Operand::Tensor(part) = part else { return Err("other arguments".into()) };
        let part = cx.movable(*part)?;
        // Tensors of one dimension without elements join any others.
        if part.sizes[..] == [0] && result.sizes.len() > 1 {
            continue;
        }
        if part.sizes.len() != result.sizes.len() {
            return Err("other sizes".into());
        }
        let mut to = result.clone();
        to.sizes[dim] = part.sizes[dim];
        to.offset += start * to.strides[dim];
        start += part.sizes[dim];
        dispatches.extend(if part.dtype == to.dtype { moved(cx, part, to)? } else { cast(cx, &part, &to)? });
    }
    Ok(dispatches)
}

/// Writes elements as those of another dtype.
pub(super) fn cast(cx: &mut Lowering<'_>, from: &View, to: &View) -> Lowered {
    let [a, b] = [from, to].map(|it| Kind::of(it.dtype).ok_or_else(|| Reason::from("numbers of other dtypes")));
    let (a, b) = (a?, b?);
    cx.for_each(to.numel(), |shader| {
        let places = coordinates(shader, "i", &to.sizes, "c");
        let element = converted(&shader.load(from, &from.at(&places)), a, b);
        let statement = shader.store(to, &to.at(&places), &super::pointwise::rounded(&element, to.dtype));
        shader.line(statement);
    })
}

fn triangle(cx: &mut Lowering<'_>, is_lower: bool, input: TensorId, diagonal: i64, result: TensorId) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    let rank = input.sizes.len();
    let zero = literal(&Operand::Int(0), kind).ok_or("other arguments")?;
    if rank < 2 {
        return Err("a triangle of no matrix".into());
    }
    let diagonal = i32::try_from(diagonal).map_err(|_| "a diagonal far away")?;
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let element = shader.load(&input, &input.at(&places));
        let sign = if is_lower { "<=" } else { ">=" };
        let (row, column) = (&places[rank - 2], &places[rank - 1]);
        let is_kept = format!("i32({column}) - i32({row}) {sign} {}", crate::shader::int(diagonal));
        let statement = shader.store(&result, &result.at(&places), &format!("select({zero}, {element}, {is_kept})"));
        shader.line(statement);
    })
}

pub(super) fn filled(cx: &mut Lowering<'_>, value: Operand, result: TensorId) -> Lowered {
    let (result, kind) = cx.view(result)?;
    let value = literal(&value, kind).ok_or("a number that the data decides")?;
    let value = super::pointwise::rounded(&value, result.dtype);
    cx.for_each(result.numel(), |shader| {
        let statement = shader.store(&result, &format!("{}u + i", result.offset), &value);
        shader.line(statement);
    })
}

fn filled_with(cx: &mut Lowering<'_>, value: TensorId, result: TensorId) -> Lowered {
    let ((value, from), (result, to)) = (cx.view(value)?, cx.view(result)?);
    cx.for_each(result.numel(), |shader| {
        let element = converted(&shader.load(&value, &format!("{}u", value.offset)), from, to);
        let element = super::pointwise::rounded(&element, result.dtype);
        let statement = shader.store(&result, &format!("{}u + i", result.offset), &element);
        shader.line(statement);
    })
}

/// `start`, and what is `step` further each time.
fn counted(cx: &mut Lowering<'_>, start: &Operand, step: &Operand, result: TensorId) -> Lowered {
    let (result, kind) = cx.view(result)?;
    let [start, step] = [start, step].map(|it| literal(it, kind));
    let (start, step) = start.zip(step).ok_or("a number that the data decides")?;
    let value = match kind {
        Kind::Float => format!("{start} + f32(i) * {step}"),
        Kind::Int => format!("{start} + i32(i) * {step}"),
        Kind::Long => format!("long_add({start}, long_multiply(vec2<u32>(i, 0u), {step}))"),
        Kind::Bool => return Err("a sequence of bools".into()),
    };
    let value = super::pointwise::rounded(&value, result.dtype);
    cx.for_each(result.numel(), |shader| {
        let statement = shader.store(&result, &format!("{}u + i", result.offset), &value);
        shader.line(statement);
    })
}

/// An update of a tensor in its place, which is the first argument.
pub(super) fn update(cx: &mut Lowering<'_>, op: &str, args: &[Operand]) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let given = Args(args);
    let tensor = |at| given.tensor(at);
    let target = tensor(0)?;
    let rank = cx.plan.tensor(target).sizes.len();
    Some(match (name, overload) {
        ("slice_scatter", "default") => {
            let (dim, source) = (given.dim(2, rank)?, tensor(1)?);
            sliced(cx, target, source, dim, &args[3..])
        }
        ("index_put", "default") if !given.is_true(3) => {
            let Some(Operand::List(indices)) = args.get(1) else { return None };
            put(cx, op, target, indices, tensor(2)?)
        }
        ("index_put", "default") => {
            let Some(Operand::List(indices)) = args.get(1) else { return None };
            accumulated(cx, (target, target), &Added::put(op, indices, tensor(2)?)?)
        }
        // A place is read and written by one invocation alone.
        ("scatter" | "scatter_add" | "scatter_reduce", _) => {
            collected(cx, &Scatter::of(op, args, rank)?, target, target)
        }
        (_, _) => return None,
    })
}

fn sliced(cx: &mut Lowering<'_>, target: TensorId, source: TensorId, dim: usize, range: &[Operand]) -> Lowered {
    let (mut target, source) = (cx.movable(target)?, cx.movable(source)?);
    let size = target.sizes[dim] as i64;
    let bound = |at: usize, default: i64| match range.get(at) {
        None | Some(Operand::None) => Ok(default),
        Some(Operand::Int(it)) => Ok(if *it < 0 { it + size } else { *it }.clamp(0, size)),
        Some(_) => Err(Reason::from("sizes that the data decides")),
    };
    let start = bound(0, 0)? as usize;
    let step = numbers(range.get(2).unwrap_or(&Operand::Int(1)), 1)?[0];
    target.sizes[dim] = source.sizes.get(dim).copied().ok_or("other sizes")?;
    target.offset += start * target.strides[dim];
    target.strides[dim] *= step;
    moved(cx, source, target)
}

pub(super) fn scattered(
    cx: &mut Lowering<'_>,
    op: &str,
    target: TensorId,
    (dim, index): (usize, TensorId),
    source: TensorId,
) -> Lowered {
    let (target, source) = (cx.movable(target)?, cx.movable(source)?);
    let (index, kind) = cx.view(index)?;
    if source.sizes.len() != target.sizes.len() || index.sizes.len() != 1 {
        return Err("other sizes".into());
    }
    cx.try_for_each(source.numel(), |cx, shader| {
        let mut places = coordinates(shader, "i", &source.sizes, "c");
        let element = shader.load_words(&source, &source.at(&places));
        let own = [places[dim].clone()];
        places[dim] = position(cx, shader, (op, false, dim, target.sizes[dim]), (&index, kind), &own)?;
        let statement = shader.store_words(&target, &target.at(&places), &element);
        shader.line(statement);
        Ok(())
    })
}

/// A copy of a tensor, which is changed in its place then.
pub(super) fn changed(
    cx: &mut Lowering<'_>,
    input: TensorId,
    result: TensorId,
    change: impl FnOnce(&mut Lowering<'_>) -> Lowered,
) -> Lowered {
    let (from, to) = (cx.movable(input)?, cx.movable(result)?);
    let mut dispatches = moved(cx, from, to)?;
    dispatches.extend(change(cx)?);
    Ok(dispatches)
}

/// How two registers become one.
type Join<'a> = &'a dyn Fn(&str, &str) -> String;

/// What is scattered along a dimension, and how what comes to one place is joined.
struct Scatter<'a> {
    op: &'a str,
    dim: usize,
    index: TensorId,
    source: &'a Operand,
    join: &'a str,
    is_included: bool,
}

impl<'a> Scatter<'a> {
    /// That of a call, of tensors with so many dimensions.
    fn of(op: &'a str, args: &'a [Operand], rank: usize) -> Option<Self> {
        let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
        let (dim, index) = (Args(args).dim(1, rank)?, Args(args).tensor(2)?);
        let join = match (name, overload, args.get(4)) {
            ("scatter", "src" | "value", _) => "last",
            ("scatter_add", "default", _) => "sum",
            ("scatter_reduce", "two", Some(Operand::Str(it))) => it,
            (_, _, _) => return None,
        };
        let is_included = !matches!((name, args.get(5)), ("scatter_reduce", Some(Operand::Bool(false))));
        Some(Scatter { op, dim, index, source: args.get(3)?, join, is_included })
    }
}

/// What is added to elements of a tensor.
pub(super) struct Added<'a> {
    pub(super) op: &'a str,
    /// Whether positions below zero count from the end.
    pub(super) is_wrapped: bool,
    /// The dimensions that have positions, which stand side by side, with them.
    pub(super) positions: Vec<(usize, TensorId)>,
    pub(super) values: TensorId,
    /// What the values are multiplied with.
    pub(super) factor: Option<&'a Operand>,
}

impl<'a> Added<'a> {
    /// That of `aten.index_put`.
    fn put(op: &'a str, indices: &[Operand], values: TensorId) -> Option<Self> {
        let mut positions = Vec::new();
        for (dim, it) in indices.iter().enumerate() {
            match it {
                Operand::Tensor(it) => positions.push((dim, *it)),
                Operand::None => {}
                _ => return None,
            }
        }
        Some(Added { op, is_wrapped: true, positions, values, factor: None })
    }
}

/// Adds at positions: each place looks at all of them, so that sums have one order.
pub(super) fn accumulated(cx: &mut Lowering<'_>, (input, result): (TensorId, TensorId), it: &Added<'_>) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    let (values, _) = cx.view(it.values)?;
    let positions =
        it.positions.iter().map(|(dim, id)| Ok((*dim, cx.view(*id)?))).collect::<Result<Positions, Reason>>()?;
    let (first, last) = side_by_side(&positions, input.sizes.len())?;
    let sizes = broadcast(&positions);
    let n: usize = sizes.iter().product();
    let is_other = kind == Kind::Bool || values.dtype != input.dtype;
    if result.numel().checked_mul(n).is_none_or(|it| it > MOST_SCATTERED) || is_other {
        return Err("a scatter of other sizes".into());
    }
    let factor = match it.factor {
        None | Some(Operand::Int(1)) => None,
        Some(it) => Some(literal(it, kind).ok_or("a number that the data decides")?),
    };
    let all = [&input.sizes[..first], &sizes, &input.sizes[last + 1..]].concat();
    if values.sizes.len() > all.len() {
        return Err("other sizes".into());
    }
    let values = values.expanded(&all);
    cx.try_for_each(result.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let element = shader.load(&input, &input.at(&places));
        shader.line(format!("var value = {element};"));
        shader.line(format!("for (var k = 0u; k < {n}u; k++) {{"));
        let own = coordinates(shader, "k", &sizes, "k");
        let mut is_here = Vec::new();
        for (dim, (view, index_kind)) in &positions {
            let view = view.expanded(&sizes);
            let what = (it.op, it.is_wrapped, *dim, input.sizes[*dim]);
            let at = position(cx, shader, what, (&view, *index_kind), &own)?;
            is_here.push(format!("{at} == {}", places[*dim]));
        }
        let from = [&places[..first], &own, &places[last + 1..]].concat();
        let element = shader.load(&values, &values.at(&from));
        let element = match &factor {
            None => element,
            Some(factor) => super::pointwise::product(kind, &element, factor),
        };
        let sum = match kind {
            Kind::Long => format!("long_add(value, {element})"),
            Kind::Float | Kind::Int | Kind::Bool => format!("value + {element}"),
        };
        let sum = super::pointwise::rounded(&sum, result.dtype);
        shader.line(format!("if ({}) {{ value = {sum}; }}", is_here.join(" && ")));
        shader.line("}");
        let statement = shader.store(&result, &result.at(&places), "value");
        shader.line(statement);
        Ok(())
    })
}

/// The first and the last dimension that have positions, between which all have.
fn side_by_side(positions: &Positions, rank: usize) -> Result<(usize, usize), Reason> {
    let dims: Vec<usize> = positions.iter().map(|(dim, _)| *dim).collect();
    let (Some(&first), Some(&last)) = (dims.first(), dims.last()) else { return Err("an index of nothing".into()) };
    if last - first + 1 != dims.len() || last >= rank {
        return Err("positions of dimensions that stand apart".into());
    }
    Ok((first, last))
}

/// The sizes that positions broadcast to.
fn broadcast(positions: &Positions) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    for (_, (view, _)) in positions {
        let lead = view.sizes.len().saturating_sub(sizes.len());
        sizes.splice(0..0, std::iter::repeat_n(1, lead));
        let start = sizes.len() - view.sizes.len();
        for (size, own) in sizes[start..].iter_mut().zip(&view.sizes) {
            *size = if *size == 1 { *own } else { *size };
        }
    }
    sizes
}

/// Padding with elements of the tensor: turned around at the border, those at the border, or those from the other side.
fn surrounded(cx: &mut Lowering<'_>, name: &str, input: TensorId, padding: &Operand, result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let Operand::List(padding) = padding else { return Err("other arguments".into()) };
    let rank = input.sizes.len();
    let mut moves = Vec::new();
    for (at, pair) in padding.chunks_exact(2).enumerate() {
        let (Operand::Int(before), Some(dim)) = (&pair[0], rank.checked_sub(at + 1)) else {
            return Err("sizes that the data decides".into());
        };
        moves.push((dim, i32::try_from(*before).map_err(|_| "padding of too many elements")?));
    }
    placed(cx, (&input, &result), |places| {
        for (dim, before) in moves {
            let (place, size) = (format!("(i32({}) - {})", places[dim], crate::shader::int(before)), input.sizes[dim]);
            let last = size.saturating_sub(1);
            places[dim] = match name {
                "_pad_circular" => format!("u32(({place} + {size}i) % {}i)", size.max(1)),
                _ if name.starts_with("reflection") => format!("u32({last}i - abs({last}i - abs({place})))"),
                _ => format!("u32(clamp({place}, 0i, {last}i))"),
            };
        }
    })
}

/// The most steps of a scatter: each place looks at all positions of its row, so that what comes to it is joined in order.
pub(super) const MOST_SCATTERED: usize = 1 << 28;

fn collected(cx: &mut Lowering<'_>, it: &Scatter<'_>, input: TensorId, result: TensorId) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    let (index, index_kind) = cx.view(it.index)?;
    let (dim, rank) = (it.dim, input.sizes.len());
    let source = match it.source {
        Operand::Tensor(id) => Ok(cx.view(*id)?.0),
        value => Err(literal(value, kind).ok_or("other arguments")?),
    };
    let n = index.sizes.get(dim).copied().unwrap_or(1);
    let is_long = result.numel().checked_mul(n).is_none_or(|it| it > MOST_SCATTERED);
    if index.sizes.len() != rank || is_long || source.as_ref().is_ok_and(|it| it.dtype != input.dtype) {
        return Err("a scatter of other sizes".into());
    }
    let (start, join): (_, Join<'_>) = match (it.join, kind) {
        ("last", _) => (None, &|_, b| b.to_owned()),
        ("sum" | "mean", Kind::Float | Kind::Int) => (literal(&Operand::Int(0), kind), &|a, b| format!("{a} + {b}")),
        ("sum", Kind::Long) => (literal(&Operand::Int(0), kind), &|a, b| format!("long_add({a}, {b})")),
        ("prod", _) => (literal(&Operand::Int(1), kind), &|a, b| super::pointwise::product(kind, a, b)),
        ("amax" | "amin", Kind::Float) => {
            let is_max = it.join == "amax";
            let bits = if is_max { "number(0xff800000u)" } else { "number(0x7f800000u)" };
            match is_max {
                true => (Some(bits.to_owned()), &|a, b| super::pointwise::extreme(Kind::Float, true, a, b)),
                false => (Some(bits.to_owned()), &|a, b| super::pointwise::extreme(Kind::Float, false, a, b)),
            }
        }
        (_, _) => return Err(format!("a scatter that joins by {}", it.join).into()),
    };
    if it.join == "mean" && kind != Kind::Float {
        return Err("a mean of integers".into());
    }
    // Positions are looked at once, before anything is moved.
    let check = cx.try_for_each(index.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &index.sizes, "c");
        position(cx, shader, (it.op, false, dim, input.sizes[dim]), (&index, index_kind), &places).map(drop)
    })?;
    let collect = cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let element = shader.load(&input, &input.at(&places));
        shader.line(format!("let own = {element};"));
        shader.line("var value = own;");
        shader.line("var n = 0u;");
        let inside = (0..rank).filter(|at| *at != dim && index.sizes[*at] < result.sizes[*at]);
        let inside: Vec<String> = inside.map(|at| format!("{} < {}u", places[at], index.sizes[at])).collect();
        let inside = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
        shader.line(format!("if ({inside}) {{"));
        shader.line(format!("for (var k = 0u; k < {n}u; k++) {{"));
        let mut from = places.clone();
        from[dim] = "k".to_owned();
        let at = converted(&shader.load(&index, &index.at(&from)), index_kind, Kind::Long);
        shader.line(format!("if (({at}).x == {}) {{", places[dim]));
        let element = match &source {
            Ok(source) => shader.load(source, &source.at(&from)),
            Err(value) => value.clone(),
        };
        if let (Some(start), false) = (&start, it.is_included) {
            shader.line(format!("if (n == 0u) {{ value = {start}; }}"));
        }
        shader.line(format!("value = {};", join("value", &element)));
        shader.line("n++;");
        shader.line("} } }");
        if it.join == "mean" {
            let first = u32::from(it.is_included);
            shader.line(format!("if (n > 0u) {{ value = value / f32(n + {first}u); }}"));
        }
        let value = super::pointwise::rounded("value", result.dtype);
        let statement = shader.store(&result, &result.at(&places), &value);
        shader.line(statement);
    })?;
    Ok([check, collect].concat())
}

/// `aten.index_put`: values at positions of some dimensions, which stand side by side.
fn put(cx: &mut Lowering<'_>, op: &str, target: TensorId, indices: &[Operand], values: TensorId) -> Lowered {
    let (target, values) = (cx.movable(target)?, cx.movable(values)?);
    let positions = positions(cx, indices)?;
    let (first, last) = side_by_side(&positions, target.sizes.len())?;
    let sizes = broadcast(&positions);
    let rank = sizes.len();
    let all = [&target.sizes[..first], &sizes, &target.sizes[last + 1..]].concat();
    let values = values.expanded(&all);
    cx.try_for_each(all.iter().product(), |cx, shader| {
        let places = coordinates(shader, "i", &all, "c");
        let mut to = places[..first].to_vec();
        for (dim, (view, kind)) in &positions {
            let view = view.expanded(&sizes);
            let own = &places[first..first + rank];
            to.push(position(cx, shader, (op, true, *dim, target.sizes[*dim]), (&view, *kind), own)?);
        }
        to.extend_from_slice(&places[first + rank..]);
        let element = shader.load_words(&values, &values.at(&places));
        let statement = shader.store_words(&target, &target.at(&to), &element);
        shader.line(statement);
        Ok(())
    })
}
