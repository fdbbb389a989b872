//! Kernels of the gradients of grid sampling: of the image, which is handed to the elements by their weights, and of the
//! grid, by the slopes of the weights. Follows aten/src/ATen/native/GridSampler.h.

use crate::image::grid_sampler::{ComputeLocation, Mode, Padding, options};
use crate::image::upsample::cubic_weights;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float, try_fill_float};
use tracefx_core::{DType, Diagnostic, Result, Tensor, bf16, f16};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.grid_sampler_2d_backward.default", Kernel::Fill(gradients)),
    ("aten.grid_sampler_3d_backward.default", Kernel::Fill(gradients)),
];

/// An element that makes the value at a coordinate, its weight, and the slope of the weight by the coordinate.
#[derive(Clone, Copy)]
struct Tap<A> {
    at: usize,
    weight: A,
    slope: A,
}

impl ComputeLocation {
    /// How fast the place moves with the coordinate.
    fn scale<A: Float>(&self) -> A {
        A::of(if self.is_aligned { (self.size as f64 - 1.0) / 2.0 } else { self.size as f64 / 2.0 })
    }

    /// How fast the place where the padding puts a place moves with it.
    fn padded_slope<A: Float>(&self, place: A) -> A {
        let clipped = |place: A| {
            let last = A::of(self.size as f64 - 1.0);
            if place > A::ZERO && place < last { A::ONE } else { A::ZERO }
        };
        match self.padding {
            Padding::Zeros => A::ONE,
            Padding::Border => clipped(place),
            Padding::Reflection => {
                let (low, span) =
                    if self.is_aligned { (A::ZERO, self.size as f64 - 1.0) } else { (A::of(-0.5), self.size as f64) };
                if span == 0.0 {
                    return A::ZERO;
                }
                let flips = ((place - low).abs() / A::of(span)).floor().to_f64();
                let is_forward = (place < low) == (flips % 2.0 != 0.0);
                clipped(self.padded(place)) * if is_forward { A::ONE } else { -A::ONE }
            }
        }
    }

    /// The elements that make the value at a coordinate; those outside are left out.
    fn sloped_taps<A: Float>(&self, coordinate: A, mode: Mode) -> Vec<Tap<A>> {
        let place = self.place(coordinate);
        match mode {
            Mode::Nearest => {
                let at = self.inside(self.padded(place).round_ties_even());
                at.map(|at| Tap { at, weight: A::ONE, slope: A::ZERO }).into_iter().collect()
            }
            Mode::Linear => {
                let slope = self.padded_slope(place) * self.scale();
                let place = self.padded(place);
                let first = place.floor();
                let weight = place - first;
                let taps = [(first, A::ONE - weight, -slope), (first + A::ONE, weight, slope)];
                let tap = |(at, weight, slope)| Some(Tap { at: self.inside(at)?, weight, slope });
                taps.into_iter().filter_map(tap).collect()
            }
            Mode::Cubic => {
                let first = place.floor();
                let (weights, slopes) = (cubic_weights(place - first), cubic_slopes(place - first));
                let taps = (0..4).map(|it| (first + A::of(it as f64 - 1.0), weights[it], slopes[it] * self.scale()));
                let tap = |(at, weight, slope)| Some(Tap { at: self.inside(self.padded(at))?, weight, slope });
                taps.filter_map(tap).collect()
            }
        }
    }
}

/// The slopes of [`cubic_weights`].
fn cubic_slopes<A: Float>(t: A) -> [A; 4] {
    let a = A::of(-0.75);
    let near = |x: A| (A::of(3.0) * (a + A::of(2.0)) * x - A::of(2.0) * (a + A::of(3.0))) * x;
    let far = |x: A| (A::of(3.0) * a * x - A::of(10.0) * a) * x + A::of(8.0) * a;
    let rest = A::ONE - t;
    [far(t + A::ONE), near(t), -near(rest), -far(rest + A::ONE)]
}

fn gradients(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    // As the sampling itself, in the precision of the elements.
    match dtype {
        DType::Float16 => run::<f16>(args, out),
        DType::BFloat16 => run::<bf16>(args, out),
        DType::Float32 => run::<f32>(args, out),
        DType::Float64 => run::<f64>(args, out),
        other => Err(Diagnostic::unsupported_dtype(other, &args.op.name)),
    }
}

/// An element of a plane that makes the value at a place, and the slopes of its weight by each dimension.
type Joined<A> = (usize, A, [A; 3]);

/// The taps of all dimensions together.
fn join<A: Float>(axes: &[ComputeLocation], taps: &[Vec<Tap<A>>]) -> Vec<Joined<A>> {
    let mut res = vec![(0, A::ONE, [A::ONE; 3])];
    for (dim, (axis, taps)) in axes.iter().zip(taps).enumerate() {
        let extend = |&(so_far, weight, slopes): &Joined<A>| {
            taps.iter().map(move |tap| {
                let mut slopes = slopes;
                for (other, slope) in slopes.iter_mut().enumerate() {
                    *slope *= if other == dim { tap.slope } else { tap.weight };
                }
                (so_far * axis.size + tap.at, weight * tap.weight, slopes)
            })
        };
        res = res.iter().flat_map(extend).collect();
    }
    res
}

fn run<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (input, grid) = (args.tensor(1)?, args.tensor(2)?);
    let (mode, axes) = options(args, 3, input)?;
    let n_dims = axes.len();
    let (n_batch, n_channels) = (input.sizes()[0], input.sizes()[1]);
    let n_in: usize = input.sizes()[2..].iter().product();
    let n_places: usize = grid.sizes()[1..=n_dims].iter().product();
    let [grad, input, grid] = [args.tensor(0)?, input, grid].map(Strided::<A>::dense);
    let (grad, input, grid) = (grad?, input?, grid?);
    let (of_input, of_grid) = match out {
        [of_input, of_grid] => (Some(of_input), of_grid),
        [of_grid, ..] => (None, of_grid),
        [] => unreachable!("the gradient of the grid is always made"),
    };
    let fill = |of_input: Option<&mut [A]>, of_grid: &mut [A]| {
        let mut of_input = of_input;
        for at in 0..n_batch * n_places {
            let (item, place) = (at / n_places, at % n_places);
            let coordinates = &grid.data()[at * n_dims..][..n_dims];
            // The last coordinate is of the first dimension.
            let taps = axes.iter().zip(coordinates.iter().rev());
            let taps: Vec<_> = taps.map(|(axis, &coordinate)| axis.sloped_taps(coordinate, mode)).collect();
            let joined = join(&axes, &taps);
            let mut sums = [A::ZERO; 3];
            for channel in 0..n_channels {
                let plane = item * n_channels + channel;
                let grad = grad.data()[plane * n_places + place];
                for &(at, weight, slopes) in &joined {
                    if let Some(of_input) = &mut of_input {
                        of_input[plane * n_in + at] += grad * weight;
                    }
                    let value = input.data()[plane * n_in + at];
                    sums.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += value * slope * grad);
                }
            }
            let of_place = of_grid[at * n_dims..][..n_dims].iter_mut().rev();
            of_place.zip(sums).for_each(|(out, sum)| *out = sum);
        }
    };
    try_fill_float::<A, _>(of_grid, |of_grid| match of_input {
        Some(of_input) => fill_float::<A, _>(of_input, |of_input| fill(Some(of_input), of_grid)),
        None => {
            fill(None, of_grid);
            Ok(())
        }
    })
}
