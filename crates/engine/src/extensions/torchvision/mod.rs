//! What torchvision's detectors do with boxes, and deformable convolutions, after the CPU kernels of its `csrc/ops`.
//!
//! Numbers are computed in float64. What poolings give, and what comparisons decide on, is rounded to the dtype at each step,
//! and so equal to torchvision's.

mod regions;

pub(super) use regions::{
    ps_roi_align, ps_roi_align_shape, ps_roi_pool, ps_roi_pool_shape, roi_align, roi_align_shape, roi_pool,
    roi_pool_shape,
};

use crate::call;
use tracefx_core::{DType, Result, Tensor, allocate, f16};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, Output, Value};
use tracefx_sym::SymInt;

type Kernel<'a> = Args<'a, Tensor>;
type Shape<'a> = Args<'a, TensorMeta>;

fn converted(it: &Tensor, dtype: DType) -> Result<Tensor> {
    let dtype = vec![("dtype".into(), Value::DType(dtype))];
    match call("aten._to_copy", &[Value::Tensor(it.clone())], dtype)?.results.swap_remove(0) {
        Value::Tensor(it) => Ok(it),
        other => panic!("a tensor is converted to a {}", other.kind_name()),
    }
}

fn numbers(it: &Tensor) -> Result<Vec<f64>> {
    converted(it, DType::Float64)?.to_vec()
}

fn of_numbers(numbers: &[f64], sizes: &[usize], dtype: DType) -> Result<Value<Tensor>> {
    Ok(Value::Tensor(converted(&Tensor::from_slice(numbers, sizes)?, dtype)?))
}

/// Where a number between pixels lies: up to four of them, and their weights.
type Taps = [(usize, f64); 4];

/// A number as the dtype holds it.
fn rounding(dtype: DType) -> fn(f64) -> f64 {
    match dtype {
        DType::Float64 => |it| it,
        DType::Float16 => |it| f64::from(f16::from_f64(it)),
        _ => |it| f64::from(it as f32),
    }
}

fn check_float<T>(args: &Args<'_, T>, kernel: &str, dtype: DType) -> Result<()> {
    match dtype {
        DType::Float16 | DType::Float32 | DType::Float64 => Ok(()),
        other => Err(args.unsupported(format!("\"{kernel}\" of {other}"))),
    }
}

pub(super) fn nms_shape(args: &Shape<'_>) -> Result<Vec<Output>> {
    let (boxes, scores) = (args.tensor(0)?, args.tensor(1)?);
    let [count, four] = &boxes.sizes[..] else {
        return Err(args.bad_shape(format!("boxes should be a 2d tensor, got {}D", boxes.sizes.len())));
    };
    if args.differ(four, &SymInt::from(4)) {
        return Err(args.bad_shape(format!("boxes should have 4 elements in dimension 1, got {four}")));
    }
    let [n_scores] = &scores.sizes[..] else {
        return Err(args.bad_shape(format!("scores should be a 1d tensor, got {}D", scores.sizes.len())));
    };
    if args.differ(count, n_scores) {
        let what = "boxes and scores should have same number of elements in dimension 0";
        return Err(args.bad_shape(format!("{what}, got {count} and {n_scores}")));
    }
    if boxes.dtype != scores.dtype {
        return Err(args.invalid("dets should have the same type as scores"));
    }
    check_float(args, "nms_kernel", boxes.dtype)?;
    let kept = TensorMeta::contiguous(DType::Int64, vec![args.new_size()]);
    Ok(vec![Output::Unknown(Value::Tensor(kept))])
}

/// The boxes by falling score, without those that overlap one before them by more than the threshold.
pub(super) fn nms(args: &Kernel<'_>) -> Result<Vec<Value<Tensor>>> {
    let (boxes, scores) = (args.tensor(0)?, numbers(args.tensor(1)?)?);
    let (round, threshold) = (rounding(boxes.dtype()), args.float(2)?);
    let corners = numbers(boxes)?;
    let corners: Vec<&[f64]> = corners.chunks_exact(4).collect();
    let area = |it: &[f64]| round(round(it[2] - it[0]) * round(it[3] - it[1]));
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // A score that is no number is the highest, as in PyTorch's sort.
    order.sort_by(|a, b| {
        let (a, b) = (scores[*a], scores[*b]);
        b.partial_cmp(&a).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
    });
    let mut is_suppressed = allocate::filled(false, order.len())?;
    let mut kept = Vec::new();
    for (at, &best) in order.iter().enumerate() {
        if is_suppressed[best] {
            continue;
        }
        kept.push(best as i64);
        let own = corners[best];
        for &other in &order[at + 1..] {
            let it = corners[other];
            let width = round(own[2].min(it[2]) - own[0].max(it[0])).max(0.0);
            let height = round(own[3].min(it[3]) - own[1].max(it[1])).max(0.0);
            let shared = round(width * height);
            let overlap = round(shared / round(round(area(own) + area(it)) - shared));
            if overlap > threshold {
                is_suppressed[other] = true;
            }
        }
    }
    Ok(vec![Value::Tensor(Tensor::from_slice(&kept, &[kept.len()])?)])
}

pub(super) fn deform_conv2d_shape(args: &Shape<'_>) -> Result<Vec<Output>> {
    let (input, weight, offset) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let ([batch, channels, height, width], [out, each, rows, columns], [_, n_offsets, ..]) =
        (&input.sizes[..], &weight.sizes[..], &offset.sizes[..])
    else {
        return Err(args.bad_shape("input, weight and offset must be 4D"));
    };
    let at = |index: usize| args.sym_int(index).cloned();
    let (groups, offset_groups) = (at(11)?, at(12)?);
    if args.differ(channels, &(each * &groups)) {
        let what = format!("an input of {channels} channels, a weight of {each} and {groups} groups do not fit");
        return Err(args.bad_shape(what));
    }
    let wanted = &(rows * columns) * &(&offset_groups * &SymInt::from(2));
    if args.differ(n_offsets, &wanted) {
        let what = format!("offset.shape[1] is not valid: got: {n_offsets} Expected: {wanted}");
        return Err(args.bad_shape(what));
    }
    check_float(args, "deformable_im2col", input.dtype)?;
    let size = |size: &SymInt, kernel: &SymInt, first: usize| -> Result<SymInt> {
        let (stride, padding, dilation) = (at(first)?, at(first + 2)?, at(first + 4)?);
        let one = SymInt::from(1);
        let reach = &(&dilation * &(kernel - &one)) + &one;
        let room = &(size + &(&padding * &SymInt::from(2))) - &reach;
        Ok(&room.floor_div(&stride) + &one)
    };
    let sizes = vec![batch.clone(), out.clone(), size(height, rows, 5)?, size(width, columns, 6)?];
    Ok(vec![Output::Tensor(TensorMeta::contiguous(input.dtype, sizes))])
}

/// The four pixels around a point of a picture that is surrounded by zeros.
fn taps_among_zeros(y: f64, x: f64, [height, width]: [usize; 2]) -> Taps {
    let (top, left) = (y.floor(), x.floor());
    let (dy, dx) = (y - top, x - left);
    let tap = |row: f64, column: f64, weight: f64| {
        let is_inside = row >= 0.0 && row < height as f64 && column >= 0.0 && column < width as f64;
        if is_inside { (row as usize * width + column as usize, weight) } else { (0, 0.0) }
    };
    [
        tap(top, left, (1.0 - dy) * (1.0 - dx)),
        tap(top, left + 1.0, (1.0 - dy) * dx),
        tap(top + 1.0, left, dy * (1.0 - dx)),
        tap(top + 1.0, left + 1.0, dy * dx),
    ]
}

/// What the shape rule leaves open: numbers that may be symbols there, and the tensors beside the input and the weight.
fn check_sizes(args: &Kernel<'_>) -> Result<()> {
    for (at, spec) in args.op.schema.args.iter().enumerate().take(13).skip(5) {
        let least = i64::from(!spec.name.starts_with("pad"));
        if args.int(at)? < least {
            return Err(args.invalid(format!("{}: {}", spec.name, args.int(at)?)));
        }
    }
    let int = |at: usize| args.int(at).map(|it| it as usize);
    let (input, weight) = (args.tensor(0)?, args.tensor(1)?);
    let (taps, groups) = (weight.sizes()[2] * weight.sizes()[3], int(12)?);
    let fits = weight.sizes()[0].is_multiple_of(int(11)?) && input.sizes()[1].is_multiple_of(groups);
    if !fits {
        return Err(args.bad_shape("channels must be divisible by the number of groups"));
    }
    let along = |dim: usize, at: usize| -> Result<usize> {
        let reach = int(at + 4)? * (weight.sizes()[dim] - 1) + 1;
        Ok((input.sizes()[dim] + 2 * int(at + 2)? - reach) / int(at)? + 1)
    };
    let places = [along(2, 5)?, along(3, 6)?];
    let of_taps = |each: usize| vec![input.sizes()[0], each * groups * taps, places[0], places[1]];
    let mut wanted = vec![(2, of_taps(2)), (4, vec![weight.sizes()[0]])];
    if args.bool(13)? {
        wanted.push((3, of_taps(1)));
    }
    for (at, sizes) in wanted {
        let (name, found) = (&args.op.schema.args[at].name, args.tensor(at)?.sizes());
        if found != sizes {
            return Err(args.bad_shape(format!("{name} is {found:?}, and {sizes:?} are expected")));
        }
    }
    Ok(())
}

/// A convolution whose kernel takes its numbers from where the offsets say: columns of them, times the weights.
pub(super) fn deform_conv2d(args: &Kernel<'_>) -> Result<Vec<Value<Tensor>>> {
    let (input, weight) = (args.tensor(0)?, args.tensor(1)?);
    let int = |at: usize| args.int(at).map(|it| it as usize);
    check_sizes(args)?;
    let ([stride_y, stride_x], [pad_y, pad_x]) = ([int(5)?, int(6)?], [int(7)?, int(8)?]);
    let ([dilation_y, dilation_x], [groups, offset_groups]) = ([int(9)?, int(10)?], [int(11)?, int(12)?]);
    let (&[batch, channels, height, width], &[out, each, rows, columns]) = (input.sizes(), weight.sizes()) else {
        panic!("the shape rule takes 4 dimensions")
    };
    let &[_, _, out_height, out_width] = args.tensor(2)?.sizes() else { panic!("the shape rule takes 4 dimensions") };
    let (taps, plane, size) = (rows * columns, height * width, out_height * out_width);
    let (pixels, offsets) = (numbers(input)?, numbers(args.tensor(2)?)?);
    let mask = if args.bool(13)? { Some(numbers(args.tensor(3)?)?) } else { None };
    let own_channels = channels / offset_groups;
    let mut gathered = allocate::filled(0.0, batch * channels * taps * size)?;
    for image in 0..batch {
        for (group, tap) in (0..offset_groups).flat_map(|group| (0..taps).map(move |tap| (group, tap))) {
            let (row, column) = (tap / columns, tap % columns);
            let of_tap = (image * offset_groups + group) * taps + tap;
            for place in 0..size {
                let (y, x) = (place / out_width, place % out_width);
                let moved = |at: usize| offsets[(of_tap * 2 + at) * size + place];
                let y = (y * stride_y + row * dilation_y) as f64 - pad_y as f64 + moved(0);
                let x = (x * stride_x + column * dilation_x) as f64 - pad_x as f64 + moved(1);
                let around = taps_among_zeros(y, x, [height, width]);
                let factor = mask.as_ref().map_or(1.0, |it| it[of_tap * size + place]);
                for channel in group * own_channels..(group + 1) * own_channels {
                    let from = (image * channels + channel) * plane;
                    let sum: f64 = around.iter().map(|(at, weight)| pixels[from + at] * weight).sum();
                    gathered[((image * channels + channel) * taps + tap) * size + place] = factor * sum;
                }
            }
        }
    }
    let (weights, bias) = (numbers(weight)?, numbers(args.tensor(4)?)?);
    let (length, out_each) = (each * taps, out / groups);
    let mut res = allocate::filled(0.0, batch * out * size)?;
    for (at, own) in res.chunks_exact_mut(size.max(1)).enumerate() {
        let (image, channel) = (at / out, at % out);
        own.fill(bias[channel]);
        let first = (image * channels + channel / out_each * each) * taps;
        for (term, weight) in weights[channel * length..(channel + 1) * length].iter().enumerate() {
            let column = &gathered[(first + term) * size..(first + term + 1) * size];
            own.iter_mut().zip(column).for_each(|(sum, it)| *sum += weight * it);
        }
    }
    Ok(vec![of_numbers(&res, &[batch, out, out_height, out_width], input.dtype())?])
}
