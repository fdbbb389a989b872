//! Kernels of pooling. Every pooling here is over windows of three dimensions, of which the first may have size one, and
//! the windows of a dimension are a list of ranges: fixed ones with a step, or adaptive ones.

use crate::numeric::dense::{self, Dense};
use crate::numeric::dispatch::{with_element, with_float};
use crate::numeric::float::Float;
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::map::{cast, cast_into};
use crate::numeric::number::Real;
use crate::numeric::parallel;
use crate::numeric::strided::{Strided, fill_float};
use crate::random::distributions::rounded;
use tracefx_core::allocate::{collected, push, try_collected};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.max_pool2d_with_indices.default", Kernel::Overwrite(max_pool)),
    ("aten.max_pool3d_with_indices.default", Kernel::Overwrite(max_pool)),
    ("aten.adaptive_max_pool2d.default", Kernel::Overwrite(adaptive_max_pool)),
    ("aten.adaptive_max_pool3d.default", Kernel::Overwrite(adaptive_max_pool)),
    ("aten.fractional_max_pool2d.default", Kernel::Overwrite(fractional_max_pool)),
    ("aten.fractional_max_pool3d.default", Kernel::Overwrite(fractional_max_pool)),
    ("aten.avg_pool2d.default", Kernel::Overwrite(avg_pool)),
    ("aten.avg_pool3d.default", Kernel::Overwrite(avg_pool)),
    ("aten._adaptive_avg_pool2d.default", Kernel::Overwrite(adaptive_avg_pool)),
    ("aten._adaptive_avg_pool3d.default", Kernel::Overwrite(adaptive_avg_pool)),
    ("aten.max_unpool2d.default", Kernel::Fill(max_unpool)),
    ("aten.max_unpool3d.default", Kernel::Fill(max_unpool)),
];

/// One window along one dimension: the elements `start`, `start + step`… before `end`.
#[derive(Clone, Copy)]
pub(super) struct Window {
    start: usize,
    end: usize,
    step: usize,
    /// The size with the padding that counts.
    n_padded: usize,
}

/// The windows of each of three dimensions, and the sizes of the input.
pub(super) struct Windows {
    /// Those of each plane, or the same ones for all.
    planes: Vec<[Vec<Window>; 3]>,
    sizes: [usize; 3],
    n_planes: usize,
}

impl Windows {
    /// Windows as `of` gives them for a dimension, its input size and its number of windows.
    fn new(
        input: &Tensor,
        out: &Tensor,
        n_dims: usize,
        of: impl Fn(usize, usize, usize) -> Result<Vec<Window>>,
    ) -> Result<Self> {
        let whole = || vec![Window { start: 0, end: 1, step: 1, n_padded: 1 }];
        let (mut dims, mut sizes) = ([whole(), whole(), whole()], [1; 3]);
        let n_lead = input.rank() - n_dims;
        for dim in 0..n_dims {
            let (size, n_windows) = (input.sizes()[n_lead + dim], out.sizes()[n_lead + dim]);
            sizes[3 - n_dims + dim] = size;
            dims[3 - n_dims + dim] = of(dim, size, n_windows)?;
        }
        Ok(Windows { planes: vec![dims], sizes, n_planes: input.sizes()[..n_lead].iter().product() })
    }

    /// Windows of the arguments from `at` on: kernel size, stride, padding, and perhaps dilation.
    pub(super) fn fixed(
        args: &Args<'_, Tensor>,
        at: usize,
        has_dilation: bool,
        input: &Tensor,
        out: &Tensor,
    ) -> Result<Self> {
        let n_dims = if args.op.schema.name.contains("3d") { 3 } else { 2 };
        let option = |index: usize| -> Result<Vec<usize>> {
            let values: Vec<usize> = args.ints(index)?.iter().map(|&it| it as usize).collect();
            Ok(if values.len() == 1 { vec![values[0]; n_dims] } else { values })
        };
        let kernel = option(at)?;
        let stride = if args.list(at + 1)?.is_empty() { kernel.clone() } else { option(at + 1)? };
        let padding = option(at + 2)?;
        let dilation = if has_dilation { option(at + 3)? } else { vec![1; n_dims] };
        Windows::new(input, out, n_dims, |dim, size, n_windows| {
            let (padding, step) = (padding[dim], dilation[dim]);
            let window = |at: usize| {
                let first = at * stride[dim];
                let end = first + (kernel[dim] - 1) * step + 1;
                // The first tap that lies in the input.
                let start = if first >= padding { first } else { first + (padding - first).div_ceil(step) * step };
                let n_padded = end.min(size + 2 * padding).saturating_sub(first);
                let end = end.saturating_sub(padding).min(size);
                Window { start: start - padding, end, step, n_padded }
            };
            collected((0..n_windows).map(window))
        })
    }

    pub(super) fn adaptive(args: &Args<'_, Tensor>, input: &Tensor, out: &Tensor) -> Result<Self> {
        let n_dims = if args.op.schema.name.contains("3d") { 3 } else { 2 };
        Windows::new(input, out, n_dims, |_, size, n_windows| {
            let window = |at: usize| {
                let start = at / n_windows * size + at % n_windows * size / n_windows;
                let end = ((at + 1) * size).div_ceil(n_windows);
                Window { start, end, step: 1, n_padded: end - start }
            };
            collected((0..n_windows).map(window))
        })
    }

    /// Windows that start where a random number of the plane puts them, as in
    /// aten/src/ATen/native/FractionalMaxPooling.h. Each step of the arithmetic is rounded to the dtype.
    fn fractional(args: &Args<'_, Tensor>, input: &Tensor, out: &Tensor) -> Result<Self> {
        let (kernel, samples) = (args.ints(1)?, args.tensor(3)?);
        let (n_dims, dtype) = (kernel.len(), samples.dtype());
        let numbers = Dense::new(&cast(samples, DType::Float64)?)?;
        let numbers = numbers.read::<f64>();
        let round = |it: f64| rounded(args, dtype, it);
        // The samples of a plane begin with the last dimension in a plane, and with the first one in a volume.
        let sample_at = |dim: usize| if n_dims == 2 { 1 - dim } else { dim };
        let (n_samples, n_channels) = (samples.sizes()[2], samples.sizes()[1]);
        let mut res = Windows::new(input, out, n_dims, |_, _, _| Ok(Vec::new()))?;
        let own_channels = input.sizes()[input.rank() - n_dims - 1];
        res.planes.clear();
        for plane in 0..res.n_planes {
            let row = plane / own_channels * n_channels + plane % own_channels;
            let mut dims = [0; 3].map(|_| vec![Window { start: 0, end: 1, step: 1, n_padded: 1 }]);
            for (dim, &length) in kernel.iter().enumerate() {
                let (size, n_windows) = (res.sizes[3 - n_dims + dim], out.sizes()[out.rank() - n_dims + dim]);
                let sample = numbers[row * n_samples + sample_at(dim)];
                let room = size - length as usize;
                let alpha = round(round(room as f64)? / round((n_windows.max(2) - 1) as f64)?)?;
                let place = |at: usize| -> Result<usize> { Ok(round(round(at as f64 + sample)? * alpha)? as usize) };
                let first = place(0)?;
                let window = |at: usize| -> Result<Window> {
                    let start = if at + 1 == n_windows { room } else { place(at)? - first };
                    let end = (start + length as usize).min(size);
                    Ok(Window { start, end, step: 1, n_padded: end - start })
                };
                dims[3 - n_dims + dim] = try_collected((0..n_windows).map(window))?;
            }
            push(&mut res.planes, dims)?;
        }
        Ok(res)
    }

    /// The number of windows of a plane.
    fn n_windows(&self) -> usize {
        self.planes.first().map_or(0, |dims| dims.iter().map(Vec::len).product())
    }

    fn n_inputs(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Calls `pool` for each plane and each window in order: the place of the window in the result, the start of the
    /// plane in the input, and the window.
    pub(crate) fn for_each(&self, mut pool: impl FnMut(usize, usize, [Window; 3])) {
        for plane in 0..self.n_planes {
            let first = plane * self.n_windows();
            self.of_plane(plane, |at, window| pool(first + at, plane * self.n_inputs(), window));
        }
    }

    /// Calls `pool` for each window of a plane in order: its place in the plane's results, and the window.
    fn of_plane(&self, plane: usize, mut pool: impl FnMut(usize, [Window; 3])) {
        let dims = &self.planes[plane % self.planes.len()];
        let mut at = 0;
        for &depth in &dims[0] {
            for &height in &dims[1] {
                for &width in &dims[2] {
                    pool(at, [depth, height, width]);
                    at += 1;
                }
            }
        }
    }

    /// The planes that one thread goes through.
    fn n_together(&self) -> usize {
        (parallel::GRAIN / self.n_inputs().max(1)).max(1)
    }

    /// Calls `visit` for each row of a window: the place of its first element in the plane, and that of its end.
    pub(crate) fn rows(&self, [depth, height, width]: [Window; 3], mut visit: impl FnMut(usize, usize)) {
        for d in (depth.start..depth.end).step_by(depth.step) {
            for h in (height.start..height.end).step_by(height.step) {
                let row = (d * self.sizes[1] + h) * self.sizes[2];
                visit(row + width.start, row + width.end.max(width.start));
            }
        }
    }
}

fn max_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    largest_of(args, &Windows::fixed(args, 1, true, args.tensor(0)?, &out[0])?, out)
}

fn adaptive_max_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    largest_of(args, &Windows::adaptive(args, args.tensor(0)?, &out[0])?, out)
}

fn fractional_max_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    largest_of(args, &Windows::fractional(args, args.tensor(0)?, &out[0])?, out)
}

fn largest_of(args: &Args<'_, Tensor>, windows: &Windows, out: &[Tensor]) -> Result<()> {
    let (input, values) = (args.tensor(0)?, &out[0]);
    // Wider numbers have the same order.
    let wide = match values.dtype() {
        DType::UInt8 | DType::Int8 | DType::Int16 => DType::Int32,
        DType::Float16 | DType::BFloat16 => DType::Float32,
        own => own,
    };
    if wide != values.dtype() {
        let of_wide = [Tensor::zeros(wide, values.sizes())?, out[1].clone()];
        find_largest_of(args, &cast(input, wide)?, windows, &of_wide)?;
        return cast_into(&of_wide[0], values);
    }
    find_largest_of(args, input, windows, out)
}

fn find_largest_of(args: &Args<'_, Tensor>, input: &Tensor, windows: &Windows, out: &[Tensor]) -> Result<()> {
    let input = Dense::new(input)?;
    match out[0].dtype() {
        DType::Int32 => find_largest::<i32>(&input, windows, out),
        DType::Int64 => find_largest::<i64>(&input, windows, out),
        DType::Float32 => find_largest::<f32>(&input, windows, out),
        DType::Float64 => find_largest::<f64>(&input, windows, out),
        other => Err(Diagnostic::unsupported_dtype(other, &args.op.name)),
    }
}

fn find_largest<T: Real>(input: &Dense, windows: &Windows, out: &[Tensor]) -> Result<()> {
    let input = input.read::<T>();
    let n_windows = windows.n_windows();
    if n_windows == 0 {
        return Ok(());
    }
    dense::fill::<T, _>(&out[0], |values| {
        dense::fill::<i64, _>(&out[1], |indices| {
            let planes = values.chunks_exact_mut(n_windows).zip(indices.chunks_exact_mut(n_windows));
            let mut planes = collected(planes.enumerate())?;
            parallel::parts_mut(&mut planes, windows.n_together(), |_, planes| {
                for (plane, (values, indices)) in planes {
                    let input = &input[*plane * windows.n_inputs()..][..windows.n_inputs()];
                    let dims = &windows.planes[*plane % windows.planes.len()];
                    isa::run(LargestOf { input, dims, sizes: windows.sizes, values, indices });
                }
            });
            Ok(())
        })
    })
}

/// The largest elements of the windows of a plane, and their places.
struct LargestOf<'a, T> {
    input: &'a [T],
    dims: &'a [Vec<Window>; 3],
    sizes: [usize; 3],
    values: &'a mut [T],
    indices: &'a mut [i64],
}

/// The windows of a row that are looked through together.
const STRIP: usize = 16;

impl<T: Real> Work for LargestOf<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let [depths, heights, widths] = self.dims;
        // Windows of one size at a fixed distance, as all are that do not touch the padding.
        let stride = widths.windows(2).map(|it| it[1].start.wrapping_sub(it[0].start)).max().unwrap_or(1);
        let whole = widths.iter().map(|it| it.end.saturating_sub(it.start)).max().unwrap_or(0);
        let is_regular = |it: &[Window]| {
            let follow = it.windows(2).all(|it| it[1].start.wrapping_sub(it[0].start) == stride);
            follow && it.iter().all(|it| it.end.saturating_sub(it.start) == whole)
        };
        let mut at = 0;
        for &depth in depths {
            for &height in heights {
                let mut x = 0;
                while x < widths.len() {
                    let strip = widths.get(x..x + STRIP).filter(|it| stride <= 2 && is_regular(it));
                    match strip {
                        Some(strip) if stride == 1 => self.strip::<1>([depth, height, strip[0]], at + x),
                        Some(strip) if stride == 2 => self.strip::<2>([depth, height, strip[0]], at + x),
                        _ => self.window([depth, height, widths[x]], at + x),
                    }
                    x += if strip.is_some() && stride > 0 { STRIP } else { 1 };
                }
                at += widths.len();
            }
        }
    }
}

impl<T: Real> LargestOf<'_, T> {
    /// Calls `visit` with the place of each row of a window.
    #[inline(always)]
    fn rows(&self, [depth, height, _]: [Window; 3], mut visit: impl FnMut(usize)) {
        for d in (depth.start..depth.end).step_by(depth.step) {
            for h in (height.start..height.end).step_by(height.step) {
                visit((d * self.sizes[1] + h) * self.sizes[2]);
            }
        }
    }

    /// One window.
    #[inline(always)]
    fn window(&mut self, window: [Window; 3], to: usize) {
        let (mut max, mut index) = (T::LOWEST, None);
        self.rows(window, |row| {
            for place in (row + window[2].start..row + window[2].end.max(window[2].start)).step_by(window[2].step) {
                let it = self.input[place];
                index = index.or(Some(place));
                if it > max || it.is_nan() {
                    (max, index) = (it, Some(place));
                }
            }
        });
        self.values[to] = max;
        self.indices[to] = index.unwrap_or(0) as i64;
    }

    /// [`STRIP`] windows, of which this is the first one and each other one begins `N` elements after the one before.
    #[inline(always)]
    fn strip<const N: usize>(&mut self, window: [Window; 3], to: usize) {
        let (mut max, mut index) = ([T::LOWEST; STRIP], [0; STRIP]);
        let mut is_first = true;
        self.rows(window, |row| {
            for place in (row + window[2].start..row + window[2].end).step_by(window[2].step) {
                let from = &self.input[place..][..(STRIP - 1) * N + 1];
                for i in 0..STRIP {
                    let it = from[i * N];
                    let is_larger = it > max[i] || it.is_nan();
                    max[i] = if is_larger { it } else { max[i] };
                    index[i] = if is_larger || is_first { place + i * N } else { index[i] };
                }
                is_first = false;
            }
        });
        self.values[to..][..STRIP].copy_from_slice(&max);
        self.indices[to..][..STRIP].iter_mut().zip(index).for_each(|(to, index)| *to = index as i64);
    }
}

fn avg_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let windows = Windows::fixed(args, 1, false, args.tensor(0)?, &out[0])?;
    let divisor = divisor(args.bool(5)?, args.opt_int(6)?);
    means(args, &windows, &out[0], divisor)
}

/// What the sum of a window is divided by.
pub(crate) fn divisor(counts_padding: bool, given: Option<i64>) -> impl Fn([Window; 3]) -> i64 + Sync + Send {
    move |window| {
        given.unwrap_or_else(|| {
            let size = |it: Window| if counts_padding { it.n_padded } else { it.end.saturating_sub(it.start) };
            window.map(size).iter().product::<usize>() as i64
        })
    }
}

fn adaptive_avg_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let windows = Windows::adaptive(args, args.tensor(0)?, &out[0])?;
    means(args, &windows, &out[0], divisor(true, None))
}

fn means(
    args: &Args<'_, Tensor>,
    windows: &Windows,
    out: &Tensor,
    divisor: impl Fn([Window; 3]) -> i64 + Sync + Send,
) -> Result<()> {
    let input = args.tensor(0)?;
    if input.dtype() == DType::Int64 {
        let input = Dense::new(input)?;
        let input = input.read::<i64>();
        dense::fill::<i64, _>(out, |out| {
            windows.for_each(|at, plane, window| {
                let mut sum = 0i64;
                windows.rows(window, |start, end| {
                    sum = input[plane + start..plane + end].iter().fold(sum, |sum, &it| sum.wrapping_add(it));
                });
                out[at] = sum.wrapping_div(divisor(window).max(1));
            });
        });
        return Ok(());
    }
    with_float!(input.dtype(), &args.op.name, A => {
        let input = Strided::<A>::dense(input)?;
        fill_float::<A, _>(out, |out| mean_of::<A>(&input, windows, out, divisor))
    })
}

fn mean_of<A: Float>(
    input: &[A],
    windows: &Windows,
    out: &mut [A],
    divisor: impl Fn([Window; 3]) -> i64 + Sync + Send,
) {
    let n_windows = windows.n_windows().max(1);
    parallel::parts_mut(out, n_windows * windows.n_together(), |first, out| {
        for (plane, out) in out.chunks_exact_mut(n_windows).enumerate() {
            let plane = first / n_windows + plane;
            let input = &input[plane * windows.n_inputs()..][..windows.n_inputs()];
            windows.of_plane(plane, |at, window| {
                let mut sum = A::ZERO;
                let mut is_empty = true;
                windows.rows(window, |start, end| {
                    is_empty &= start == end;
                    sum += input[start..end].iter().fold(A::ZERO, |sum, &it| sum + it);
                });
                // A window that lies in the padding alone gives zero, whatever the divisor.
                out[at] = if is_empty { A::ZERO } else { sum / A::of(divisor(window) as f64) };
            });
        }
    });
}

fn max_unpool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (input, indices) = (args.tensor(0)?, Dense::new(args.tensor(1)?)?);
    let n_dims = if args.op.schema.name.contains("3d") { 3 } else { 2 };
    let n_planes: usize = input.sizes()[..input.rank() - n_dims].iter().product();
    let n_out = out[0].numel().checked_div(n_planes).unwrap_or(0);
    let n_in = input.numel().checked_div(n_planes).unwrap_or(0);
    let input_values = Dense::new(input)?;
    let indices = indices.read::<i64>();
    with_element!(input.dtype(), &args.op.name, T => {
        let values = input_values.read::<T>();
        dense::fill::<T, _>(&out[0], |out| {
            for (at, (&value, &index)) in values.iter().zip(&*indices).enumerate() {
                let index = usize::try_from(index).ok().filter(|&it| it < n_out).ok_or_else(|| {
                    let what = format!("found an invalid max index: {index} (the output has {n_out} elements)");
                    Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name)
                })?;
                out[at / n_in * n_out + index] = value;
            }
            Ok(())
        })
    })
}
