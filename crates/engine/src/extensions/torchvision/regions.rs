//! Pooling of the regions that boxes are: a mean of points (`roi_align`, `ps_roi_align`), of pixels (`ps_roi_pool`), or the
//! highest pixel (`roi_pool`) in each of the cells that a box is parted into.
//!
//! The two that begin with `ps_` are position-sensitive: each cell of each channel of the result has an input channel of its
//! own, which they tell as a second result. `roi_pool` tells where the highest pixels are. Gradients need these.

use super::{Kernel, Shape, Taps, check_float, numbers, of_numbers, rounding};
use tracefx_core::{DType, Result, Tensor, allocate};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Output, Value};
use tracefx_sym::SymInt;

/// The boxes that are counted, the channels of the input, and the two pooled sizes.
fn checked<'a>(args: &'a Shape<'_>, name: &str) -> Result<[&'a SymInt; 4]> {
    let (input, rois) = (args.tensor(0)?, args.tensor(1)?);
    let ([_, channels, _, _], [count, five]) = (&input.sizes[..], &rois.sizes[..]) else {
        let (input, rois) = (input.sizes.len(), rois.sizes.len());
        return Err(args.bad_shape(format!("{name}: input must be 4D and rois 2D, got {input}D and {rois}D")));
    };
    if args.differ(five, &SymInt::from(5)) {
        return Err(args.bad_shape("rois must have shape as Tensor[K, 5]"));
    }
    if input.dtype != rois.dtype {
        let what = format!("{name}: Expected tensor for input to have the same type as tensor for rois");
        return Err(args.invalid(format!("{what}; but type {} does not equal {}", input.dtype, rois.dtype)));
    }
    check_float(args, &format!("{name}_forward_kernel"), input.dtype)?;
    let (rows, columns) = (args.sym_int(3)?, args.sym_int(4)?);
    for (size, spec) in [rows, columns].into_iter().zip(&args.op.schema.args[3..]) {
        if args.less(size, &SymInt::ZERO) {
            return Err(args.invalid(format!("{name}: {} is negative: {size}", spec.name)));
        }
    }
    Ok([count, channels, rows, columns])
}

fn pooled(args: &Shape<'_>, sizes: [&SymInt; 4]) -> Result<[TensorMeta; 2]> {
    let sizes = sizes.map(SymInt::clone).to_vec();
    let dtypes = [args.tensor(0)?.dtype, DType::Int32];
    Ok(dtypes.map(|dtype| TensorMeta::contiguous(dtype, sizes.clone())))
}

pub(in super::super) fn roi_align_shape(args: &Shape<'_>) -> Result<Vec<Output>> {
    let [res, _] = pooled(args, checked(args, "roi_align")?)?;
    Ok(vec![Output::Tensor(res)])
}

pub(in super::super) fn roi_pool_shape(args: &Shape<'_>) -> Result<Vec<Output>> {
    Ok(pooled(args, checked(args, "roi_pool")?)?.map(Output::Tensor).into())
}

pub(in super::super) fn ps_roi_align_shape(args: &Shape<'_>) -> Result<Vec<Output>> {
    position_sensitive_shape(args, "ps_roi_align")
}

pub(in super::super) fn ps_roi_pool_shape(args: &Shape<'_>) -> Result<Vec<Output>> {
    position_sensitive_shape(args, "ps_roi_pool")
}

fn position_sensitive_shape(args: &Shape<'_>, name: &str) -> Result<Vec<Output>> {
    let [count, channels, rows, columns] = checked(args, name)?;
    let n_cells = rows * columns;
    if args.same(&n_cells, &SymInt::ZERO) {
        return Err(args.invalid(format!("{name}: a box is parted into no cells: {rows} times {columns}")));
    }
    if args.differ(&channels.modulo(&n_cells), &SymInt::ZERO) {
        let what = "input channels must be a multiple of pooling height * pooling width";
        return Err(args.bad_shape(format!("{what}, got {channels} and {n_cells}")));
    }
    let sizes = [count, &channels.floor_div(&n_cells), rows, columns];
    Ok(pooled(args, sizes)?.map(Output::Tensor).into())
}

/// What all of these operators are called with.
struct Call {
    pixels: Vec<f64>,
    /// The sizes of the input.
    sizes: [usize; 4],
    regions: Vec<Region>,
    /// How many cells a box is parted into along each side.
    cells: [usize; 2],
    dtype: DType,
    round: fn(f64) -> f64,
}

/// A box: which image it is of, and its corners (left, top, right, bottom) in pixels.
struct Region {
    image: usize,
    corners: [f64; 4],
}

impl Call {
    fn new(args: &Kernel<'_>) -> Result<Call> {
        let (input, rois) = (args.tensor(0)?, args.tensor(1)?);
        let [Ok(rows), Ok(columns)] = [args.int(3)?, args.int(4)?].map(usize::try_from) else {
            return Err(args.invalid("the pooled size is negative"));
        };
        let sizes: [usize; 4] = input.sizes().try_into().expect("the shape rule takes 4 dimensions");
        let round = rounding(input.dtype());
        let scale = round(args.float(2)?);
        let mut regions = Vec::new();
        for it in numbers(rois)?.chunks_exact(5) {
            let (image, batch) = (it[0] as usize, sizes[0]);
            if it[0].is_nan() || it[0] <= -1.0 || image >= batch {
                return Err(args.invalid(format!("a box is of image {}, of {batch}", it[0])));
            }
            regions.push(Region { image, corners: [1, 2, 3, 4].map(|at| round(it[at] * scale)) });
        }
        let pixels = numbers(input)?;
        Ok(Call { pixels, sizes, regions, cells: [rows, columns], dtype: input.dtype(), round })
    }

    fn n_cells(&self) -> usize {
        self.cells[0].saturating_mul(self.cells[1])
    }

    /// The picture of one channel of one image.
    fn picture(&self, image: usize, channel: usize) -> &[f64] {
        let plane = self.sizes[2] * self.sizes[3];
        let from = (image * self.sizes[1] + channel) * plane;
        &self.pixels[from..from + plane]
    }

    /// The boxes, or none where the result is empty: how many cells or channels it has is then bounded by no memory.
    fn boxes_to_pool(&self) -> &[Region] {
        if self.sizes[1] == 0 || self.n_cells() == 0 { &[] } else { &self.regions }
    }

    /// Room for the numbers of a result of so many channels.
    fn room<T>(&self, channels: usize) -> Result<Vec<T>> {
        allocate::with_room(self.regions.len().saturating_mul(channels).saturating_mul(self.n_cells()))
    }

    fn sizes_of(&self, channels: usize) -> [usize; 4] {
        [self.regions.len(), channels, self.cells[0], self.cells[1]]
    }

    /// The results: the numbers, and the integers beside them.
    fn results(&self, numbers: &[f64], notes: &[i32], channels: usize) -> Result<Vec<Value<Tensor>>> {
        let sizes = self.sizes_of(channels);
        Ok(vec![of_numbers(numbers, &sizes, self.dtype)?, Value::Tensor(Tensor::from_slice(notes, &sizes)?)])
    }

    /// A number for each cell of each channel, from a channel of the input that is the cell's own.
    fn position_sensitive<C>(
        &self,
        cells_of: impl Fn(&Region) -> Result<Vec<C>>,
        mean: impl Fn(&[f64], &C) -> f64,
    ) -> Result<Vec<Value<Tensor>>> {
        let n_cells = self.n_cells();
        let channels = self.sizes[1] / n_cells;
        let (mut res, mut mapping) = (self.room(channels)?, self.room(channels)?);
        for region in self.boxes_to_pool() {
            let cells = cells_of(region)?;
            for channel in 0..channels * n_cells {
                res.push(mean(self.picture(region.image, channel), &cells[channel % n_cells]));
                mapping.push(channel as i32);
            }
        }
        self.results(&res, &mapping, channels)
    }
}

/// The four pixels around a point of a picture, which ends at its edges; none for a point that is more than one pixel outside.
fn taps_within(y: f64, x: f64, [height, width]: [usize; 2], round: fn(f64) -> f64) -> Option<Taps> {
    if !(-1.0..=height as f64).contains(&y) || !(-1.0..=width as f64).contains(&x) || height * width == 0 {
        return None;
    }
    let along = |it: f64, size: usize| {
        let it = it.max(0.0);
        let low = it as usize;
        let (low, high, far) =
            if low >= size - 1 { (size - 1, size - 1, 0.0) } else { (low, low + 1, it - low as f64) };
        [(low, round(1.0 - far)), (high, round(far))]
    };
    let (rows, columns) = (along(y, height), along(x, width));
    let tap = |row: usize, column: usize| {
        let ((y, of_y), (x, of_x)) = (rows[row], columns[column]);
        (y * width + x, round(of_y * of_x))
    };
    Some([tap(0, 0), tap(0, 1), tap(1, 0), tap(1, 1)])
}

/// How many points of one box are looked at: a box may be as large as its numbers say.
const MOST_SAMPLES: usize = 1 << 22;

/// The points of each cell of a box from one corner to the other, and how many there are in each.
fn sampled(
    args: &Kernel<'_>,
    call: &Call,
    [x0, y0, x1, y1]: [f64; 4],
    least: f64,
    n_samples: i64,
) -> Result<(Vec<Vec<Taps>>, f64)> {
    let (round, [rows, columns]) = (call.round, call.cells);
    let cell = |from: f64, to: f64, count: usize| {
        let step = round(round(to - from).max(least) / count as f64);
        (step, if n_samples > 0 { n_samples as f64 } else { step.ceil() })
    };
    let ((dy, n_y), (dx, n_x)) = (cell(y0, y1, rows), cell(x0, x1, columns));
    let (per_cell, n_cells) = (n_y * n_x, call.n_cells());
    // Both are below zero for a box that is inverted, which has no points.
    let (n_y, n_x) = (n_y as usize, n_x as usize);
    if n_y.saturating_mul(n_x).saturating_mul(n_cells) > MOST_SAMPLES {
        return Err(args.invalid(format!("a box of {n_y} times {n_x} samples in each of {n_cells} cells")));
    }
    let mut cells = allocate::with_room(n_cells)?;
    for row in 0..rows {
        for column in 0..columns {
            let point = |from: f64, at: usize, step: f64, sample: usize, of: usize| {
                let start = round(from + round(at as f64 * step));
                round(start + round(round((sample as f64 + 0.5) * step) / of as f64))
            };
            let points = (0..n_y).flat_map(|iy| (0..n_x).map(move |ix| (iy, ix)));
            let taps = points.filter_map(|(iy, ix)| {
                let (y, x) = (point(y0, row, dy, iy, n_y), point(x0, column, dx, ix, n_x));
                taps_within(y, x, [call.sizes[2], call.sizes[3]], round)
            });
            cells.push(taps.collect());
        }
    }
    Ok((cells, per_cell))
}

/// The sum of the numbers at these points, rounded at each step as a computation in the dtype is.
fn summing(dtype: DType) -> fn(&[f64], &[Taps]) -> f64 {
    fn sum(picture: &[f64], taps: &[Taps], round: impl Fn(f64) -> f64) -> f64 {
        taps.iter().fold(0.0, |sum, point| {
            let [a, b, c, d] = point.map(|(at, weight)| round(picture[at] * weight));
            round(sum + round(round(round(a + b) + c) + d))
        })
    }
    match dtype {
        DType::Float64 => |picture, taps| sum(picture, taps, |it| it),
        DType::Float16 => |picture, taps| sum(picture, taps, rounding(DType::Float16)),
        _ => |picture, taps| sum(picture, taps, |it| f64::from(it as f32)),
    }
}

/// The mean of points within each of the cells that a box is parted into.
pub(in super::super) fn roi_align(args: &Kernel<'_>) -> Result<Vec<Value<Tensor>>> {
    let (call, n_samples, is_aligned) = (Call::new(args)?, args.int(5)?, args.bool(6)?);
    let (offset, least) = if is_aligned { (0.5, f64::NEG_INFINITY) } else { (0.0, 1.0) };
    let channels = call.sizes[1];
    let (mut res, sum) = (call.room(channels)?, summing(call.dtype));
    for Region { image, corners } in call.boxes_to_pool() {
        let corners = corners.map(|it| (call.round)(it - offset));
        let (cells, count) = sampled(args, &call, corners, least, n_samples)?;
        for channel in 0..channels {
            let picture = call.picture(*image, channel);
            res.extend(cells.iter().map(|it| sum(picture, it) / count.max(1.0)));
        }
    }
    Ok(vec![of_numbers(&res, &call.sizes_of(channels), call.dtype)?])
}

/// The mean of points within each cell, each in a channel of its own. A cell without points is 0 / 0, as in torchvision.
pub(in super::super) fn ps_roi_align(args: &Kernel<'_>) -> Result<Vec<Value<Tensor>>> {
    let (call, n_samples) = (Call::new(args)?, args.int(5)?);
    let sum = summing(call.dtype);
    let cells_of = |region: &Region| {
        let corners = region.corners.map(|it| (call.round)(it - 0.5));
        let (cells, count) = sampled(args, &call, corners, f64::NEG_INFINITY, n_samples)?;
        Ok(cells.into_iter().map(|it| (it, count)).collect())
    };
    call.position_sensitive(cells_of, |picture, (taps, count)| sum(picture, taps) / count)
}

/// The pixels of one cell.
struct Window {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
}

/// The windows of the cells of a box whose corners lie on pixels. It is at least one pixel large, counts `beyond` more than from
/// corner to corner, and its cells end before `end`.
fn windows(call: &Call, corners: [f64; 4], beyond: f64, [height, width]: [usize; 2]) -> Vec<Window> {
    let (round, [rows, columns]) = (call.round, call.cells);
    let [x0, y0, x1, y1] = corners.map(f64::round);
    let along = |from: f64, to: f64, count: usize, end: usize| {
        let step = round(round((to - from + beyond).max(1.0)) / count as f64);
        let edge = move |it: f64| (it + from).clamp(0.0, end as f64) as usize;
        let cell = move |at: usize| edge(round(at as f64 * step).floor())..edge(round((at + 1) as f64 * step).ceil());
        (0..count).map(cell)
    };
    let of_row = |rows: std::ops::Range<usize>| {
        along(x0, x1, columns, width).map(move |columns| Window { rows: rows.clone(), columns })
    };
    along(y0, y1, rows, height).flat_map(of_row).collect()
}

/// The highest pixel of each of the cells that a box is parted into, and which pixel of its picture that is: -1 where there is
/// none.
pub(in super::super) fn roi_pool(args: &Kernel<'_>) -> Result<Vec<Value<Tensor>>> {
    let call = Call::new(args)?;
    let [_, channels, height, width] = call.sizes;
    // No pixel is the highest that is not above this one, in float64, too, as in torchvision.
    let lowest = (call.round)(f64::from(f32::MIN));
    let (mut res, mut highest) = (call.room(channels)?, call.room(channels)?);
    for Region { image, corners } in call.boxes_to_pool() {
        let windows = windows(&call, *corners, 1.0, [height, width]);
        for channel in 0..channels {
            let picture = call.picture(*image, channel);
            for Window { rows, columns } in &windows {
                let is_empty = rows.is_empty() || columns.is_empty();
                let start = (if is_empty { 0.0 } else { lowest }, -1);
                let places = rows.clone().flat_map(|row| columns.clone().map(move |it| row * width + it));
                let (best, at) =
                    places.fold(start, |best, at| if picture[at] > best.0 { (picture[at], at as i32) } else { best });
                res.push(best);
                highest.push(at);
            }
        }
    }
    call.results(&res, &highest, channels)
}

/// The mean of the pixels of each cell, each in a channel of its own, and 0 where there are none. As in torchvision, the last
/// row and the last column of a picture are in no cell.
pub(in super::super) fn ps_roi_pool(args: &Kernel<'_>) -> Result<Vec<Value<Tensor>>> {
    let call = Call::new(args)?;
    let [_, _, height, width] = call.sizes;
    let inner = [height, width].map(|it| it.saturating_sub(1));
    let mean = |picture: &[f64], Window { rows, columns }: &Window| {
        let count = rows.len() * columns.len();
        let pixels = rows.clone().flat_map(|row| &picture[row * width..][columns.clone()]);
        let sum = pixels.fold(0.0, |sum, it| (call.round)(sum + it));
        if count == 0 { 0.0 } else { sum / count as f64 }
    };
    call.position_sensitive(|region| Ok(windows(&call, region.corners, 0.0, inner)), mean)
}
