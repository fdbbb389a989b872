//! Patches of images as columns, and back; grids and places of images.

use crate::core::decompositions;
use crate::core::decompositions::{Call, dim, size_list, to_dtype};
use crate::{Cx, Traced, Value};
use tracefx_core::{DType, Device, Layout, Result};
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

/// How the patches lie in one direction.
struct Grid {
    kernel: i64,
    dilation: i64,
    padding: i64,
    stride: i64,
}

/// The options of both directions, of which the first stands at `at`.
fn grids(args: &Call<'_>, at: usize) -> Result<[Grid; 2]> {
    let mut pairs = Vec::new();
    for index in at..at + 4 {
        pairs.push(match args.ints(index)?[..] {
            [one] => [one; 2],
            [height, width] => [height, width],
            _ => return Err(args.invalid("patches have two dimensions")),
        });
    }
    let grid =
        |it: usize| Grid { kernel: pairs[0][it], dilation: pairs[1][it], padding: pairs[2][it], stride: pairs[3][it] };
    Ok([grid(0), grid(1)])
}

/// The ints from zero to an end in steps, along this dimension of two.
fn steps(cx: &mut Cx<'_>, end: i64, step: i64, dim: i64) -> Result<Traced> {
    let options = [
        ("dtype", Value::DType(DType::Int64)),
        ("device", Value::Device(Device::cpu())),
        ("pin_memory", Value::Bool(false)),
    ];
    let numbers = cx.aten_with("arange.start_step", [&Value::int(0), &Value::int(end), &Value::int(step)], &options)?;
    cx.aten("unsqueeze", [&numbers, &Value::int(dim)])
}

/// Where the elements of each patch lie in one direction of the padded image.
fn places(cx: &mut Cx<'_>, size: i64, grid: &Grid) -> Result<Traced> {
    let room = size + 2 * grid.padding - grid.dilation * (grid.kernel - 1);
    let starts = steps(cx, room, grid.stride, 0)?;
    let offsets = steps(cx, grid.kernel * grid.dilation, grid.dilation, -1)?;
    cx.aten("add.Tensor", [&starts, &offsets])
}

/// The places of rows and columns, so that they index an image together.
fn index(cx: &mut Cx<'_>, rows: Traced, columns: Traced) -> Result<Traced> {
    let rows = cx.aten("unsqueeze", [&rows, &Value::int(-1)])?;
    let rows = cx.aten("unsqueeze", [&rows, &Value::int(-1)])?;
    Ok(Value::List(vec![Value::None, Value::None, rows, columns]))
}

fn known(args: &Call<'_>, size: &SymInt) -> Result<i64> {
    size.as_int().ok_or_else(|| args.unsupported("the decomposition of patches takes sizes that are known"))
}

/// Padding, or cropping where it is below zero.
fn pad(cx: &mut Cx<'_>, image: &Traced, [rows, columns]: [i64; 2]) -> Result<Traced> {
    let amounts = Value::ints(&[columns, columns, rows, rows]);
    cx.aten("constant_pad_nd", [image, &amounts, &Value::Float(0.0)])
}

pub(crate) fn im2col(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [rows, columns] = grids(args, 1)?;
    let mut image = args.values[0].clone();
    let is_batch = cx.meta_of(&image).sizes.len() == 4;
    if !is_batch {
        image = cx.aten("unsqueeze", [&image, &Value::int(0)])?;
    }
    let shape = cx.meta_of(&image).sizes.clone();
    let (height, width) = (known(args, &shape[2])?, known(args, &shape[3])?);
    let of_rows = places(cx, height, &rows)?;
    let of_columns = places(cx, width, &columns)?;
    let padded = pad(cx, &image, [rows.padding, columns.padding])?;
    let n_patches: SymInt = [&of_rows, &of_columns].map(|it| cx.meta_of(it).sizes[1].clone()).iter().product();
    let index = index(cx, of_rows, of_columns)?;
    let patches = cx.aten("index.Tensor", [&padded, &index])?;
    let patches = cx.aten("permute", [&patches, &Value::ints(&[0, 1, 2, 4, 3, 5])])?;
    let per_patch = &shape[1] * (rows.kernel * columns.kernel);
    let res = cx.aten("reshape", [&patches, &size_list(&[shape[0].clone(), per_patch, n_patches])])?;
    Ok(vec![if is_batch { res } else { cx.aten("squeeze.dim", [&res, &dim(0)])? }])
}

/// What several patches share is added up.
pub(crate) fn col2im(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let size: Vec<i64> = args.sym_ints(1)?.iter().map(|it| known(args, it)).collect::<Result<_>>()?;
    let &[height, width] = &size[..] else { return Err(args.invalid("an image has two dimensions")) };
    let [rows, columns] = grids(args, 2)?;
    let is_batch = cx.meta(*args.tensor(0)?).sizes.len() == 3;
    decompositions::promoted(cx, args, 1, crate::core::decompositions::Ints::Stay, |cx, values| {
        let mut input = values[0].clone();
        if !is_batch {
            input = cx.aten("unsqueeze", [&input, &Value::int(0)])?;
        }
        let meta = cx.meta_of(&input).clone();
        let channels = meta.sizes[1].floor_div(&(rows.kernel * columns.kernel).into());
        let count = |size: i64, grid: &Grid| {
            SymInt::from(1 + (size + 2 * grid.padding - grid.dilation * (grid.kernel - 1) - 1) / grid.stride)
        };
        let kernel = [rows.kernel.into(), columns.kernel.into()];
        let counts = [count(height, &rows), count(width, &columns)];
        let lead = [meta.sizes[0].clone(), channels];
        let input = cx.aten("reshape", [&input, &size_list(&[&lead[..], &kernel, &counts].concat())])?;
        let input = cx.aten("permute", [&input, &Value::ints(&[0, 1, 2, 4, 3, 5])])?;
        let (of_rows, of_columns) = (places(cx, height, &rows)?, places(cx, width, &columns)?);
        let index = index(cx, of_rows, of_columns)?;
        let padded = [(height + 2 * rows.padding).into(), (width + 2 * columns.padding).into()];
        let options = [
            ("dtype", Value::DType(meta.dtype)),
            ("layout", Value::Layout(Layout::Strided)),
            ("device", Value::Device(meta.device.clone())),
            ("pin_memory", Value::Bool(false)),
        ];
        let zeros = cx.aten_with("full", [&size_list(&[&lead[..], &padded].concat()), &Value::int(0)], &options)?;
        let image = cx.aten("index_put", [&zeros, &index, &input, &Value::Bool(true)])?;
        let res = pad(cx, &image, [-rows.padding, -columns.padding])?;
        if is_batch { Ok(res) } else { cx.aten("squeeze.dim", [&res, &dim(0)]) }
    })
}

/// Numbers from minus one to one, at the centres of pixels unless they are met at the corners.
fn line(cx: &mut Cx<'_>, n: i64, align_corners: bool, options: &[(&str, Traced)]) -> Result<Traced> {
    if n <= 1 {
        return cx.aten_with("full", [&Value::List(Vec::new()), &Value::int(0)], options);
    }
    let end = if align_corners { 1.0 } else { (n - 1) as f64 / n as f64 };
    cx.aten_with("linspace", [&Value::Float(-end), &Value::Float(end), &Value::int(n)], options)
}

/// Homogeneous coordinates of all pixels, times the map of each item.
pub(crate) fn affine_grid(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let size: Vec<i64> = args.sym_ints(1)?.iter().map(|it| known(args, it)).collect::<Result<_>>()?;
    let align_corners = args.bool(2)?;
    let n_dims = size.len() - 2;
    decompositions::promoted(cx, args, 1, crate::core::decompositions::Ints::Stay, |cx, values| {
        let theta = &values[0];
        let options = [("dtype", Value::DType(cx.meta_of(theta).dtype)), ("device", Value::Device(Device::cpu()))];
        let mut parts = Vec::new();
        // The last dimension is x, the first coordinate.
        for (coordinate, n) in size[2..].iter().rev().enumerate() {
            let mut shape = vec![1; n_dims + 1];
            shape[n_dims - 1 - coordinate] = *n;
            let line = line(cx, *n, align_corners, &options)?;
            parts.push(cx.aten("view", [&line, &Value::ints(&shape)])?);
        }
        parts.push(cx.aten_with("ones", [&Value::ints(&vec![1; n_dims + 1])], &options)?);
        for (coordinate, part) in parts.iter_mut().enumerate() {
            let amounts = Value::ints(&[coordinate as i64, (n_dims - coordinate) as i64]);
            *part = cx.aten("constant_pad_nd", [part, &amounts, &Value::Float(0.0)])?;
        }
        let mut base = parts[0].clone();
        for part in &parts[1..] {
            base = cx.aten("add.Tensor", [&base, part])?;
        }
        let points = cx.aten("view", [&base, &Value::ints(&[-1, n_dims as i64 + 1, 1])])?;
        let maps = cx.aten("transpose.int", [theta, &Value::int(-2), &Value::int(-1)])?;
        let maps = cx.aten("unsqueeze", [&maps, &Value::int(1)])?;
        let products = cx.aten("mul.Tensor", [&points, &maps])?;
        let sums = cx.aten("sum.dim_IntList", [&products, &Value::ints(&[-2])])?;
        let whole = [&size[..1], &size[2..], &[n_dims as i64]].concat();
        cx.aten("view", [&sums, &Value::ints(&whole)])
    })
}

/// The gradient of the windows of a dimension: windows that share elements add up.
pub(crate) fn unfold_backward(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let grad = &args.values[0];
    let (size, step) = (args.int(3)?, args.int(4)?);
    let whole = args.sym_ints(1)?;
    if whole.is_empty() {
        return Ok(vec![cx.aten("squeeze_copy.dim", [grad, &dim(0)])?]);
    }
    let at = crate::normalize_dim(args, args.int(2)?, whole.len())?;
    let n = known(args, &whole[at])?;
    let zeros = cx.aten("new_zeros", [grad, &size_list(&whole)])?;
    let options = [("dtype", Value::DType(DType::Int32)), ("device", Value::Device(Device::cpu()))];
    let numbers = cx.aten_with("arange", [&Value::int(n)], &options)?;
    let windows = cx.aten("unfold", [&numbers, &dim(0), &Value::int(size), &Value::int(step)])?;
    let places = cx.aten("flatten.using_ints", [&windows])?;
    let beside = dim(at + 1);
    let source = cx.aten("movedim.int", [grad, &Value::int(-1), &beside])?;
    let source = cx.aten("flatten.using_ints", [&source, &dim(at), &beside])?;
    let mut index = vec![Value::None; at];
    index.push(places);
    let sum = cx.aten("index_put", [&zeros, &Value::List(index), &source, &Value::Bool(true)])?;
    Ok(vec![cx.aten("contiguous", [&sum])?])
}

/// The gradient of a table: what came in for each row that was looked up, added up.
pub(crate) fn embedding(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let indices = to_dtype(cx, args.values[1].clone(), DType::Int64)?;
    let (n_rows, padding) = (args.sym_int(2)?.clone(), &args.values[3]);
    let rank = cx.meta_of(&indices).sizes.len();
    let by_frequency = args.bool(4)?;
    decompositions::promoted(cx, args, 1, crate::core::decompositions::Ints::Stay, |cx, values| {
        let mut grad = values[0].clone();
        if by_frequency {
            let counts = cx.aten("new_zeros", [&indices, &size_list(std::slice::from_ref(&n_rows))])?;
            let ones = cx.aten("ones_like", [&indices])?;
            let index = Value::List(vec![indices.clone()]);
            let counts = cx.aten("index_put", [&counts, &index, &ones, &Value::Bool(true)])?;
            let counts = cx.aten("index.Tensor", [&counts, &index])?;
            let counts = cx.aten("unsqueeze", [&counts, &Value::int(-1)])?;
            grad = cx.aten("div.Tensor", [&grad, &counts])?;
        }
        let width = cx.meta_of(&grad).sizes[rank..].to_vec();
        let is_used = cx.aten("ne.Scalar", [&indices, padding])?;
        let mut mask = cx.aten("logical_not", [&is_used])?;
        for _ in &width {
            mask = cx.aten("unsqueeze", [&mask, &Value::int(-1)])?;
        }
        let grad = decompositions::fill_places(cx, &grad, &mask, &Value::int(0))?;
        let table = [&[n_rows.clone()][..], &width].concat();
        let table = cx.aten("new_zeros", [&grad, &size_list(&table)])?;
        let index = Value::List(vec![indices.clone()]);
        cx.aten("index_put", [&table, &index, &grad, &Value::Bool(true)])
    })
}
