//! Kernels of grid sampling, following aten/src/ATen/native/GridSampler.h.

use crate::image::upsample::cubic_weights;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::{DType, Diagnostic, Result, Tensor, bf16, f16};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.grid_sampler_2d.default", Kernel::Fill(grid_sampler)),
    ("aten.grid_sampler_3d.default", Kernel::Fill(grid_sampler)),
    ("aten.affine_grid_generator.default", Kernel::Fill(affine_grid)),
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    Linear,
    Nearest,
    Cubic,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// What is the same along one dimension for all places.
#[derive(Clone, Copy)]
pub(super) struct ComputeLocation {
    pub(crate) size: usize,
    pub(crate) padding: Padding,
    pub(super) is_aligned: bool,
}

impl ComputeLocation {
    /// The place of a coordinate from -1 to 1, in elements.
    pub(crate) fn place<A: Float>(&self, coordinate: A) -> A {
        let (size, two) = (A::of(self.size as f64), A::of(2.0));
        if self.is_aligned {
            (coordinate + A::ONE) / two * (size - A::ONE)
        } else {
            ((coordinate + A::ONE) * size - A::ONE) / two
        }
    }

    /// The place where the padding puts a place outside.
    pub(crate) fn padded<A: Float>(&self, place: A) -> A {
        match self.padding {
            Padding::Zeros => place,
            Padding::Border => self.clipped(place),
            Padding::Reflection => {
                // A place as far outside as the double span is where it was; between, the nearer edge mirrors it.
                let (low, double_span) = if self.is_aligned {
                    (A::ZERO, A::of(2.0 * (self.size as f64 - 1.0)))
                } else {
                    (A::of(-0.5), A::of(2.0 * self.size as f64))
                };
                if double_span == A::ZERO {
                    return A::ZERO;
                }
                let distance = (place - low).abs();
                let extra = distance - (distance / double_span).floor() * double_span;
                let back = double_span - extra;
                self.clipped(if back < extra { back } else { extra } + low)
            }
        }
    }

    fn clipped<A: Float>(&self, place: A) -> A {
        let last = A::of(self.size as f64 - 1.0);
        let place = if place > A::ZERO { place } else { A::ZERO };
        if place < last { place } else { last }
    }

    /// The element at a place that is whole, unless it is outside.
    pub(crate) fn inside<A: Float>(&self, place: A) -> Option<usize> {
        let at = place.to_f64();
        (at >= 0.0 && at < self.size as f64).then_some(at as usize)
    }

    /// The elements that make the value at a coordinate, and the weight of each; those outside are left out.
    fn taps<A: Float>(&self, coordinate: A, mode: Mode) -> Vec<(usize, A)> {
        let place = self.place(coordinate);
        match mode {
            Mode::Nearest => {
                let nearest = self.padded(place).round_ties_even();
                self.inside(nearest).map(|at| (at, A::ONE)).into_iter().collect()
            }
            Mode::Linear => {
                let place = self.padded(place);
                let first = place.floor();
                let weight = place - first;
                let taps = [(first, A::ONE - weight), (first + A::ONE, weight)];
                taps.iter().filter_map(|&(at, weight)| Some((self.inside(at)?, weight))).collect()
            }
            Mode::Cubic => {
                let first = place.floor();
                let weights = cubic_weights(place - first);
                let taps = weights.iter().enumerate().map(|(at, &weight)| (first + A::of(at as f64 - 1.0), weight));
                taps.filter_map(|(at, weight)| Some((self.inside(self.padded(at))?, weight))).collect()
            }
        }
    }
}

fn grid_sampler(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    // PyTorch samples half types in their own precision, coordinates and all.
    match dtype {
        DType::Float16 => sample::<f16>(args, &out[0]),
        DType::BFloat16 => sample::<bf16>(args, &out[0]),
        DType::Float32 => sample::<f32>(args, &out[0]),
        DType::Float64 => sample::<f64>(args, &out[0]),
        other => Err(Diagnostic::unsupported_dtype(other, &args.op.name)),
    }
}

/// The mode and the axes that three arguments from `at` on describe.
pub(crate) fn options(args: &Args<'_, Tensor>, at: usize, input: &Tensor) -> Result<(Mode, Vec<ComputeLocation>)> {
    let mode = [Mode::Linear, Mode::Nearest, Mode::Cubic][args.int(at)? as usize];
    let padding = [Padding::Zeros, Padding::Border, Padding::Reflection][args.int(at + 1)? as usize];
    let is_aligned = args.bool(at + 2)?;
    Ok((mode, input.sizes()[2..].iter().map(|&size| ComputeLocation { size, padding, is_aligned }).collect()))
}

fn sample<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, grid) = (args.tensor(0)?, args.tensor(1)?);
    let (mode, axes) = options(args, 2, input)?;
    let n_dims = axes.len();
    let (n_channels, n_in) = (input.sizes()[1], input.sizes()[2..].iter().product::<usize>());
    let n_places: usize = grid.sizes()[1..=n_dims].iter().product();
    let (input, grid) = (Strided::<A>::dense(input)?, Strided::<A>::dense(grid)?);
    fill_float::<A, _>(out, |out| {
        let n_batch = out.len().checked_div(n_channels * n_places).unwrap_or(0);
        for at in 0..n_batch * n_places {
            let (item, place) = (at / n_places, at % n_places);
            let coordinates = &grid.data()[at * n_dims..][..n_dims];
            // The last coordinate is of the first dimension.
            let taps = |(axis, &coordinate): (&ComputeLocation, &A)| axis.taps(coordinate, mode);
            let taps: Vec<_> = axes.iter().zip(coordinates.iter().rev()).map(taps).collect();
            let joined = join(&axes, &taps);
            for channel in 0..n_channels {
                let plane = &input.data()[(item * n_channels + channel) * n_in..][..n_in];
                // Cubic weights apply row by row, others all at once, which matters for half types.
                let value = match (mode, &taps[..]) {
                    (Mode::Cubic, [rows, columns]) => {
                        sum(rows, |row| sum(columns, |at| plane[row * axes[1].size + at]))
                    }
                    (_, _) => sum(&joined, |at| plane[at]),
                };
                out[(item * n_channels + channel) * n_places + place] = value;
            }
        }
    })
}

/// The taps of all dimensions together, at their places in a plane.
fn join<A: Float>(axes: &[ComputeLocation], taps: &[Vec<(usize, A)>]) -> Vec<(usize, A)> {
    let mut res = vec![(0, A::ONE)];
    for (axis, taps) in axes.iter().zip(taps) {
        let extend = |&(so_far, weight): &(usize, A)| {
            taps.iter().map(move |&(at, it)| (so_far * axis.size + at, weight * it)).collect::<Vec<_>>()
        };
        res = res.iter().flat_map(extend).collect();
    }
    res
}

fn sum<A: Float>(taps: &[(usize, A)], of: impl Fn(usize) -> A) -> A {
    taps.iter().fold(A::ZERO, |sum, &(at, weight)| sum + of(at) * weight)
}

fn affine_grid(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => affine::<A>(args, &out[0]))
}

fn affine<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let is_aligned = args.bool(2)?;
    let sizes = &out.sizes()[1..out.rank() - 1];
    let n_dims = sizes.len();
    let coordinate = |at: usize, size: usize| {
        if size <= 1 {
            return A::ZERO;
        }
        let (at, size) = (at as f64, size as f64);
        let aligned = -1.0 + 2.0 * at / (size - 1.0);
        A::of(if is_aligned { aligned } else { aligned * (size - 1.0) / size })
    };
    let theta = Strided::<A>::dense(args.tensor(0)?)?;
    fill_float::<A, _>(out, |out| {
        let n_places: usize = sizes.iter().product();
        for (at, out) in out.chunks_exact_mut(n_dims).enumerate() {
            let (item, mut rest) = (at / n_places, at % n_places);
            let mut place = [A::ZERO; 3];
            for (dim, &size) in sizes.iter().enumerate().rev() {
                // The last dimension is the first coordinate.
                place[n_dims - 1 - dim] = coordinate(rest % size, size);
                rest /= size;
            }
            for (row, out) in out.iter_mut().enumerate() {
                let row = &theta.data()[(item * n_dims + row) * (n_dims + 1)..][..n_dims + 1];
                let linear = row.iter().zip(&place[..n_dims]).fold(A::ZERO, |sum, (&a, &x)| sum + a * x);
                *out = linear + row[n_dims];
            }
        }
    })
}
