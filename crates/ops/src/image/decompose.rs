//! Resizing: the places that are read, then what is read there.

use crate::core::decompositions::{Call, Ints, arange, promoted, to_dtype};
use crate::core::memory_format::memory_format_of;
use crate::{Cx, Traced, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

/// What is known of one dimension.
struct Dim {
    size: i64,
    new_size: i64,
    factor: Option<f64>,
}

/// The dimensions that are resized; their factors come last, from `factors` on.
fn dims(cx: &Cx<'_>, args: &Call<'_>, factors: usize) -> Result<Vec<Dim>> {
    let input = cx.meta(*args.tensor(0)?);
    let new = args.sym_ints(1)?;
    let known = |it: &SymInt| {
        it.as_int().ok_or_else(|| args.unsupported("the decomposition of resizing takes sizes that are known"))
    };
    let dim = |(at, (size, new)): (usize, (&SymInt, &SymInt))| {
        let factor = args.opt_float(factors + at)?.filter(|it| *it > 0.0);
        Ok(Dim { size: known(size)?, new_size: known(new)?, factor })
    };
    input.sizes[2..].iter().zip(&new).enumerate().map(dim).collect()
}

fn float(value: f64) -> Traced {
    Value::Float(value)
}

fn to_places(cx: &mut Cx<'_>, value: &Traced) -> Result<Traced> {
    to_dtype(cx, value.clone(), DType::Int64)
}

/// What lies at these places, one list of places for each dimension after batch and channel.
fn read(cx: &mut Cx<'_>, input: &Traced, places: impl IntoIterator<Item = Traced>) -> Result<Traced> {
    let index = [Value::None, Value::None].into_iter().chain(places).collect();
    cx.aten("_unsafe_index.Tensor", [input, &Value::List(index)])
}

/// In the order in memory that PyTorch gives what is made of an image.
fn laid_out(cx: &mut Cx<'_>, value: &Traced, like: &TensorMeta) -> Result<Traced> {
    let format = Value::MemoryFormat(memory_format_of(like));
    cx.aten_with("contiguous", [value], &[("memory_format", format)])
}

fn nearest_of(cx: &mut Cx<'_>, args: &Call<'_>, offset: f64) -> Results {
    let dims = dims(cx, args, 2)?;
    let like = cx.meta(*args.tensor(0)?).clone();
    promoted(cx, args, 1, Ints::Stay, |cx, values| {
        let mut places = Vec::new();
        for (at, dim) in dims.iter().enumerate() {
            let size = dim.size as f64;
            let step = dim.factor.map_or(size / dim.new_size as f64, |it| size / (size * it));
            let numbers = arange(cx, &dim.new_size.into(), Some(DType::Float32))?;
            let moved = cx.aten("add.Tensor", [&numbers, &float(offset)])?;
            let scaled = cx.aten("mul.Tensor", [&moved, &float(step)])?;
            let mut place = to_places(cx, &scaled)?;
            for _ in at + 1..dims.len() {
                place = cx.aten("unsqueeze", [&place, &Value::int(-1)])?;
            }
            places.push(place);
        }
        let res = read(cx, &values[0], places)?;
        if like.sizes.len() > 3 { laid_out(cx, &res, &like) } else { Ok(res) }
    })
}

pub(crate) fn nearest(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    nearest_of(cx, args, 0.0)
}

pub(crate) fn nearest_exact(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    nearest_of(cx, args, 0.5)
}

fn step_of(dim: &Dim, align_corners: bool) -> f64 {
    if !align_corners {
        return dim.factor.map_or(dim.size as f64 / dim.new_size as f64, |it| 1.0 / it);
    }
    if dim.new_size > 1 { (dim.size as f64 - 1.0) / (dim.new_size as f64 - 1.0) } else { 0.0 }
}

/// Where numbered places lie in the input, as floats.
fn source(cx: &mut Cx<'_>, numbers: &Traced, step: f64, align_corners: bool) -> Result<Traced> {
    if align_corners {
        return cx.aten("mul.Tensor", [numbers, &float(step)]);
    }
    let moved = cx.aten("add.Tensor", [numbers, &float(0.5)])?;
    let scaled = cx.aten("mul.Tensor", [&moved, &float(step)])?;
    cx.aten("sub.Tensor", [&scaled, &float(0.5)])
}

fn check_float(cx: &Cx<'_>, args: &Call<'_>) -> Result<()> {
    if cx.meta(*args.tensor(0)?).dtype.is_float() {
        return Ok(());
    }
    Err(args.unsupported("the decomposition of resizing interpolates floats"))
}

/// Between the two neighbours along each dimension, the last one first.
pub(crate) fn linear(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    check_float(cx, args)?;
    let (dims, align_corners) = (dims(cx, args, 3)?, args.bool(2)?);
    let like = cx.meta(*args.tensor(0)?).clone();
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let mut places = Vec::new();
        for (at, dim) in dims.iter().enumerate() {
            let numbers = arange(cx, &dim.new_size.into(), None)?;
            let numbers = to_dtype(cx, numbers, like.dtype)?;
            let place = source(cx, &numbers, step_of(dim, align_corners), align_corners)?;
            let place = cx.aten("clamp", [&place, &float(0.0)])?;
            let mut shape = vec![1; dims.len() - at];
            shape[0] = dim.new_size;
            let place = cx.aten("reshape", [&place, &Value::ints(&shape)])?;
            let low = to_places(cx, &place)?;
            let next = cx.aten("add.Tensor", [&low, &Value::int(1)])?;
            let high = cx.aten("clamp", [&next, &Value::None, &Value::int(dim.size - 1)])?;
            places.push((place, low, high));
        }
        let mut corners = Vec::new();
        for corner in 0..1usize << dims.len() {
            let is_high = |at: usize| corner >> (dims.len() - 1 - at) & 1 == 1;
            let index = places.iter().enumerate();
            let index = index.map(|(at, (_, low, high))| if is_high(at) { high.clone() } else { low.clone() });
            corners.push(read(cx, &values[0], index.collect::<Vec<_>>())?);
        }
        for (place, low, _) in places.iter().rev() {
            let part = cx.aten("sub.Tensor", [place, low])?;
            let part = cx.aten("clamp", [&part, &float(0.0), &float(1.0)])?;
            let mut nearer = Vec::new();
            for pair in corners.chunks(2) {
                let way = cx.aten("sub.Tensor", [&pair[1], &pair[0]])?;
                let step = cx.aten("mul.Tensor", [&way, &part])?;
                nearer.push(cx.aten("add.Tensor", [&pair[0], &step])?);
            }
            corners = nearer;
        }
        let res = corners.swap_remove(0);
        laid_out(cx, &res, &like)
    })
}

/// The four weights of a cubic convolution for places between two neighbours.
fn cubic_weights(cx: &mut Cx<'_>, part: &Traced) -> Result<[Traced; 4]> {
    let a = -0.75;
    let minus = |cx: &mut Cx<'_>, from: f64| cx.aten("sub.Tensor", [&float(from), part]);
    let near = minus(cx, 1.0)?;
    let near = cx.aten("stack", [&Value::List(vec![part.clone(), near])])?;
    let further = cx.aten("add.Tensor", [part, &float(1.0)])?;
    let far = minus(cx, 2.0)?;
    let far = cx.aten("stack", [&Value::List(vec![further, far])])?;
    let mut outer = cx.aten("mul.Tensor", [&far, &float(a)])?;
    outer = cx.aten("sub.Tensor", [&outer, &float(5.0 * a)])?;
    outer = cx.aten("mul.Tensor", [&outer, &far])?;
    outer = cx.aten("add.Tensor", [&outer, &float(8.0 * a)])?;
    outer = cx.aten("mul.Tensor", [&outer, &far])?;
    outer = cx.aten("sub.Tensor", [&outer, &float(4.0 * a)])?;
    let mut inner = cx.aten("mul.Tensor", [&near, &float(a + 2.0)])?;
    inner = cx.aten("sub.Tensor", [&inner, &float(a + 3.0)])?;
    inner = cx.aten("mul.Tensor", [&inner, &near])?;
    inner = cx.aten("mul.Tensor", [&inner, &near])?;
    inner = cx.aten("add.Tensor", [&inner, &Value::int(1)])?;
    let [first, last] = both(cx, &outer)?;
    let [second, third] = both(cx, &inner)?;
    Ok([first, second, third, last])
}

/// The two halves of a pair that was stacked.
fn both(cx: &mut Cx<'_>, stacked: &Traced) -> Result<[Traced; 2]> {
    match cx.aten("unbind.int", [stacked])? {
        Value::List(items) => {
            items.try_into().map_err(|_| Diagnostic::new(Code::Internal, "a pair should have two halves"))
        }
        single => Ok([single.clone(), single]),
    }
}

/// The sum of products of values and weights.
fn weighted(cx: &mut Cx<'_>, values: &[Traced], weights: &[Traced]) -> Result<Traced> {
    let mut sum = None;
    for (value, weight) in values.iter().zip(weights) {
        let product = cx.aten("mul.Tensor", [value, weight])?;
        sum = Some(match sum {
            Some(sum) => cx.aten("add.Tensor", [&sum, &product])?,
            None => product,
        });
    }
    Ok(sum.unwrap_or(Value::None))
}

/// Between four neighbours along each dimension.
pub(crate) fn bicubic(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    check_float(cx, args)?;
    let (dims, align_corners) = (dims(cx, args, 3)?, args.bool(2)?);
    let [height, width] = &dims[..] else { return Err(args.bad_shape("two dimensions are resized")) };
    let like = cx.meta(*args.tensor(0)?).clone();
    promoted(cx, args, 1, Ints::BecomeFloats, |cx, values| {
        let mut numbers = Vec::new();
        for dim in [height, width] {
            let it = arange(cx, &dim.new_size.into(), None)?;
            numbers.push(to_dtype(cx, it, like.dtype)?);
        }
        let x = source(cx, &numbers[1], step_of(width, align_corners), align_corners)?;
        let y = source(cx, &numbers[0], step_of(height, align_corners), align_corners)?;
        let y = cx.aten("unsqueeze", [&y, &Value::int(-1)])?;
        let (low_x, low_y) = (cx.aten("floor", [&x])?, cx.aten("floor", [&y])?);
        let mut part = |place: &Traced, low: &Traced| {
            let part = cx.aten("sub.Tensor", [place, low])?;
            cx.aten("clamp", [&part, &float(0.0), &float(1.0)])
        };
        let (part_y, part_x) = (part(&y, &low_y)?, part(&x, &low_x)?);
        let (x, y) = (to_places(cx, &low_x)?, to_places(cx, &low_y)?);
        let mut neighbours = |place: &Traced| {
            let before = cx.aten("sub.Tensor", [place, &Value::int(1)])?;
            let after = cx.aten("add.Tensor", [place, &Value::int(1)])?;
            let last = cx.aten("add.Tensor", [place, &Value::int(2)])?;
            Ok::<_, Diagnostic>([before, place.clone(), after, last])
        };
        let (rows, columns) = (neighbours(&y)?, neighbours(&x)?);
        let (weights_x, weights_y) = (cubic_weights(cx, &part_x)?, cubic_weights(cx, &part_y)?);
        let mut lines = Vec::new();
        for row in &rows {
            let mut points = Vec::new();
            for column in &columns {
                let row = cx.aten("clamp", [row, &Value::int(0), &Value::int(height.size - 1)])?;
                let column = cx.aten("clamp", [column, &Value::int(0), &Value::int(width.size - 1)])?;
                points.push(read(cx, &values[0], [row, column])?);
            }
            lines.push(weighted(cx, &points, &weights_x)?);
        }
        let res = weighted(cx, &lines, &weights_y)?;
        laid_out(cx, &res, &like)
    })
}
