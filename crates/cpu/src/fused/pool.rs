//! Poolings of channels-last images: each window is a few pixels, whose channels lie side by side.

use crate::fused::convolution::four;
use crate::fused::quantized::flip_of;
use crate::numeric::dense::{self, Dense};
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::number::Real;
use crate::numeric::parallel;
use tracefx_core::{DType, Element, Result, Tensor};
use tracefx_plan::{Pool, PoolReduction};

/// The pixels of a row that are added up one after the other, four at a time.
const RUN: usize = 512;

/// Computes the windows of all images.
pub(super) fn pool(step: &Pool<Tensor>) -> Result<()> {
    let input = Dense::new(&step.input)?;
    if step.input.dtype() == DType::Float32 {
        let input = input.read::<f32>();
        dense::fill(&step.result, |out| rows(step, &input, out, |row| isa::run(row)));
    } else {
        let (input, flip) = (input.bytes(), flip_of(step.input.dtype()));
        dense::fill_bits(&step.result, |out| rows(step, &input, out, |row| isa::run(Bytes { row, flip })));
    }
    Ok(())
}

/// Has `fill` compute all rows of windows.
fn rows<T: Element>(step: &Pool<Tensor>, input: &[T], out: &mut [T], fill: impl Fn(Row<'_, T>) + Sync + Send) {
    let sizes = [step.input.sizes(), step.result.sizes()];
    let ([_, h, w, c], [_, oh, ow, _]) = (four(sizes[0]), four(sizes[1]));
    // A part has whole rows of windows.
    let row = ow * c;
    if out.is_empty() {
        return;
    }
    let n_taps = step.kernel[0].saturating_mul(step.kernel[1]).max(1);
    let n_rows = (parallel::GRAIN / row.saturating_mul(n_taps)).max(1);
    parallel::parts_mut(out, n_rows * row, |first, out| {
        let rows = out.chunks_exact_mut(row).enumerate().map(|(at, out)| (first / row + at, out));
        for (at, out) in rows {
            let (image, y) = (&input[at / oh * h * w * c..][..h * w * c], at % oh);
            fill(Row { step, image, size: [h, w], channels: c, y, out });
        }
    });
}

/// A row of windows.
struct Row<'a, T> {
    step: &'a Pool<Tensor>,
    image: &'a [T],
    size: [usize; 2],
    channels: usize,
    y: usize,
    out: &'a mut [T],
}

/// A row of windows of integers of eight bits, of which the largest ones are taken once they are flipped.
struct Bytes<'a> {
    row: Row<'a, u8>,
    flip: u8,
}

/// The taps of a window that lie in the image along a dimension: the place of the first one, and how many there are.
struct Taps {
    first: usize,
    n: usize,
    /// How many there are with those of the padding.
    n_padded: usize,
}

impl<T: Copy> Row<'_, T> {
    fn taps(&self, dim: usize, at: usize) -> Taps {
        let Pool { kernel, stride, padding, dilation, .. } = self.step;
        let (kernel, padding, dilation, size) = (kernel[dim], padding[dim], dilation[dim], self.size[dim]);
        // Places count from the beginning of the padding.
        let start = at * stride[dim];
        let n_before = |end: usize| end.saturating_sub(start).div_ceil(dilation).min(kernel);
        let (skipped, n) = (n_before(padding), n_before(padding + size));
        Taps {
            first: (start + skipped * dilation).saturating_sub(padding),
            n: n - skipped,
            n_padded: n_before(size + 2 * padding),
        }
    }

    /// The largest elements of a window and of what is there, as `larger` says.
    #[inline(always)]
    fn max(&mut self, x: usize, rows: &Taps, cols: &Taps, larger: impl Fn(T, T) -> T) {
        let (c, [dy, dx]) = (self.channels, self.step.dilation);
        let out = &mut self.out[x * c..(x + 1) * c];
        for ky in 0..rows.n {
            for kx in 0..cols.n {
                let pixel = (rows.first + ky * dy) * self.size[1] + cols.first + kx * dx;
                let pixel = &self.image[pixel * c..][..c];
                out.iter_mut().zip(pixel).for_each(|(max, &it)| *max = larger(*max, it));
            }
        }
    }
}

impl Row<'_, f32> {
    /// The sums of a window over `divisor`.
    #[inline(always)]
    fn average<I: Isa>(&mut self, x: usize, rows: &Taps, cols: &Taps, divisor: f32) {
        match I::WIDTH {
            64 => self.averages::<16>(x, rows, cols, divisor),
            32 => self.averages::<8>(x, rows, cols, divisor),
            _ => self.averages::<4>(x, rows, cols, divisor),
        }
    }

    #[inline(always)]
    fn averages<const V: usize>(&mut self, x: usize, rows: &Taps, cols: &Taps, divisor: f32) {
        let n_vectors = self.channels / V;
        for channel in (0..n_vectors * V).step_by(V) {
            let sums = self.sum::<V>(channel, rows, cols);
            let out = &mut self.out[x * self.channels + channel..][..V];
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum / divisor);
        }
        for channel in n_vectors * V..self.channels {
            let [sum] = self.sum::<1>(channel, rows, cols);
            self.out[x * self.channels + channel] = sum / divisor;
        }
    }

    /// The sums of some channels of a window. Those of runs of pixels are added up, and then those of rows, so that a sum
    /// of many pixels loses few digits.
    #[inline(always)]
    fn sum<const V: usize>(&self, channel: usize, rows: &Taps, cols: &Taps) -> [f32; V] {
        let [dy, dx] = self.step.dilation;
        let mut sum = [0.0; V];
        for ky in 0..rows.n {
            let first = (rows.first + ky * dy) * self.size[1] + cols.first;
            let pixel = |kx: usize| -> &[f32; V] {
                let pixel = &self.image[(first + kx * dx) * self.channels + channel..];
                pixel.first_chunk().expect("the channels of a pixel are there")
            };
            let mut row = [0.0; V];
            for first in (0..cols.n).step_by(RUN) {
                let n = RUN.min(cols.n - first);
                let mut run = [0.0; V];
                for kx in (first..first + n / 4 * 4).step_by(4) {
                    let [a, b, c, d] = [pixel(kx), pixel(kx + 1), pixel(kx + 2), pixel(kx + 3)];
                    for lane in 0..V {
                        run[lane] += (a[lane] + b[lane]) + (c[lane] + d[lane]);
                    }
                }
                for kx in first + n / 4 * 4..first + n {
                    let pixel = pixel(kx);
                    for lane in 0..V {
                        run[lane] += pixel[lane];
                    }
                }
                for lane in 0..V {
                    row[lane] += run[lane];
                }
            }
            for lane in 0..V {
                sum[lane] += row[lane];
            }
        }
        sum
    }
}

impl Work for Row<'_, f32> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self) {
        let rows = self.taps(0, self.y);
        for x in 0..self.out.len() / self.channels {
            let cols = self.taps(1, x);
            match self.step.reduction {
                PoolReduction::Max => {
                    self.out[x * self.channels..][..self.channels].fill(f32::NEG_INFINITY);
                    // What is not a number stays: it is larger than all.
                    self.max(x, &rows, &cols, |max, it| it.larger(max));
                }
                PoolReduction::Average { count_include_pad, divisor_override } => {
                    let n = if count_include_pad { rows.n_padded * cols.n_padded } else { rows.n * cols.n };
                    self.average::<I>(x, &rows, &cols, divisor_override.map_or(n as f32, |it| it as f32));
                }
            }
        }
    }
}

impl Work for Bytes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Bytes { mut row, flip } = self;
        let rows = row.taps(0, row.y);
        row.out.fill(flip);
        for x in 0..row.out.len() / row.channels {
            let cols = row.taps(1, x);
            row.max(x, &rows, &cols, |max, it| (max ^ flip).max(it ^ flip) ^ flip);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::isa::Level;
    use proptest::prelude::*;
    use tracefx_exec::Executor;
    use tracefx_ops::{Value, registry};

    fn aten(op: &str, args: Vec<Value<Tensor>>) -> Tensor {
        let executor = Executor::new(registry(), crate::kernels());
        match executor.call(op, &args, &[]).unwrap().swap_remove(0) {
            Value::Tensor(it) => it,
            other => panic!("{op} gives a {}", other.kind_name()),
        }
    }

    fn pair(it: [usize; 2]) -> Value<Tensor> {
        Value::List(it.map(|it| Value::int(it as i64)).to_vec())
    }

    proptest! {
        #![proptest_config(crate::agreement::config(64))]

        #[test]
        fn poolings_give_what_the_operators_give(
            (sizes, kernel) in ([1..3usize, 1..9, 1..9, 1..20], [1..4usize, 1..4]),
            (stride, padding, dilation) in ([1..4usize, 1..4], [0..2usize, 0..2], [1..3usize, 1..3]),
            (is_max, is_ceil, count_include_pad) in any::<(bool, bool, bool)>(),
            divisor_override in prop::option::of(1..5i64),
        ) {
            let dilation = if is_max { dilation } else { [1; 2] };
            let fits = |dim: usize| {
                let reach = (kernel[dim] - 1) * dilation[dim] + 1;
                padding[dim] * 2 <= kernel[dim] && reach <= sizes[1 + dim] + 2 * padding[dim]
            };
            prop_assume!(fits(0) && fits(1));
            let n: usize = sizes.iter().product();
            let number = |at: usize| if at % 97 == 13 { f32::NAN } else { (at as f32 * 0.7).sin() };
            let input = Tensor::from_slice(&(0..n).map(number).collect::<Vec<_>>(), &sizes).unwrap();
            let mut args = vec![Value::Tensor(input.permuted(&[0, 3, 1, 2]))];
            args.extend([kernel, stride, padding].map(pair));
            let (op, reduction) = if is_max {
                args.extend([pair(dilation), Value::Bool(is_ceil)]);
                ("aten.max_pool2d_with_indices.default", PoolReduction::Max)
            } else {
                let divisor = divisor_override.map_or(Value::None, Value::int);
                args.extend([Value::Bool(is_ceil), Value::Bool(count_include_pad), divisor]);
                ("aten.avg_pool2d.default", PoolReduction::Average { count_include_pad, divisor_override })
            };
            let want = aten(op, args).permuted(&[0, 2, 3, 1]);
            let want_numbers = want.to_vec::<f32>().unwrap();
            for (level, got) in Level::on_each(|| {
                let result = Tensor::zeros(input.dtype(), want.sizes()).unwrap();
                pool(&Pool { input: input.clone(), kernel, stride, padding, dilation, reduction, result: result.clone() }).unwrap();
                result.to_vec::<f32>().unwrap()
            }) {
                for (got, want) in got.iter().zip(&want_numbers) {
                    let is_same = if is_max { got == want } else { (got - want).abs() <= 1e-6 };
                    prop_assert!(is_same || got.is_nan() && want.is_nan(), "{level:?}: {got} {want}");
                }
            }
        }
    }

    /// Sums of so many numbers, one after the other, would lose three digits.
    #[test]
    fn means_of_large_images_keep_their_digits() {
        for sizes in [[2, 300, 301, 5], [1, 1, 2100, 17], [1, 1500, 3, 16]] {
            let n: usize = sizes.iter().product();
            let numbers: Vec<f32> = (0..n).map(|at| 1.0 + (at as f32 * 0.7).sin()).collect();
            let input = Tensor::from_slice(&numbers, &sizes).unwrap();
            let [images, h, w, c] = sizes;
            let mut want = vec![0.0; images * c];
            for (at, &it) in numbers.iter().enumerate() {
                want[at / (h * w * c) * c + at % c] += f64::from(it) / (h * w) as f64;
            }
            for (level, got) in Level::on_each(|| {
                let result = Tensor::zeros(input.dtype(), &[images, 1, 1, c]).unwrap();
                let reduction = PoolReduction::Average { count_include_pad: false, divisor_override: None };
                let (stride, padding, dilation) = ([1; 2], [0; 2], [1; 2]);
                let result_of = result.clone();
                pool(&Pool { input: input.clone(), kernel: [h, w], stride, padding, dilation, reduction, result })
                    .unwrap();
                result_of.to_vec::<f32>().unwrap()
            }) {
                for (&got, &want) in got.iter().zip(&want) {
                    assert!((f64::from(got) - want).abs() <= 2e-6, "{level:?}: {got} {want}");
                }
            }
        }
    }
}
