//! Kernels of resizing. Each resize is made of one list of taps per output position and dimension: which inputs, and how
//! much of each. Nearest neighbours have one tap, linear interpolation two, cubic four, and filters as many as they are
//! wide.
//!
//! The positions follow aten/src/ATen/native/UpSample.h, in the type that the elements compute in.

use crate::numeric::dense::{self, Dense};
use crate::numeric::dispatch::{with_element, with_float};
use crate::numeric::float::{Float, rounding};
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::allocate::{collected, try_collected, with_room};
use tracefx_core::{Element, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.upsample_nearest1d.default", Kernel::Fill(nearest)),
    ("aten.upsample_nearest2d.default", Kernel::Fill(nearest)),
    ("aten.upsample_nearest3d.default", Kernel::Fill(nearest)),
    ("aten._upsample_nearest_exact1d.default", Kernel::Fill(nearest_exact)),
    ("aten._upsample_nearest_exact2d.default", Kernel::Fill(nearest_exact)),
    ("aten._upsample_nearest_exact3d.default", Kernel::Fill(nearest_exact)),
    ("aten.upsample_linear1d.default", Kernel::Fill(linear)),
    ("aten.upsample_bilinear2d.default", Kernel::Fill(linear)),
    ("aten.upsample_trilinear3d.default", Kernel::Fill(linear)),
    ("aten.upsample_bicubic2d.default", Kernel::Fill(cubic)),
    ("aten._upsample_bilinear2d_aa.default", Kernel::Fill(linear_filter)),
    ("aten._upsample_bicubic2d_aa.default", Kernel::Fill(cubic_filter)),
];

/// The tensors before and after a resize.
#[derive(Clone, Copy)]
pub(super) struct Images<'a> {
    pub(crate) input: &'a Tensor,
    pub(crate) output: &'a Tensor,
}

/// Calls `of` for each spatial dimension: its input size, its output size, and its factor where one is given.
fn each_dim<T>(
    args: &Args<'_, Tensor>,
    images: Images<'_>,
    mut of: impl FnMut(usize, usize, Option<f64>) -> Result<T>,
) -> Result<Vec<T>> {
    let (from, to) = (&images.input.sizes()[2..], &images.output.sizes()[2..]);
    let first_factor = args.values.len() - to.len();
    let factor = |dim: usize| args.opt_float(first_factor + dim).map(|it| it.filter(|&it| it > 0.0));
    (0..to.len()).map(|dim| of(from[dim], to[dim], factor(dim)?)).collect()
}

/// Where in a plane of the input the elements of a plane of the output are from.
pub(super) fn nearest_indices(args: &Args<'_, Tensor>, images: Images<'_>) -> Result<Vec<usize>> {
    let sources = each_dim(args, images, |n_in, n_out, factor| {
        let step = factor.map_or(n_in as f32 / n_out as f32, |it| (1.0 / it) as f32);
        let source = |at: usize| match n_out {
            _ if n_out == n_in => at,
            _ if n_out == 2 * n_in => at / 2,
            _ => ((at as f32 * step).floor() as usize).min(n_in - 1),
        };
        collected((0..n_out).map(source))
    })?;
    places(images, &sources)
}

/// As [`nearest_indices`], by the centres of the elements.
pub(super) fn nearest_exact_indices(args: &Args<'_, Tensor>, images: Images<'_>) -> Result<Vec<usize>> {
    let sources = each_dim(args, images, |n_in, n_out, factor| {
        let step = factor.map_or(n_in as f32 / n_out as f32, |it| (1.0 / it) as f32);
        let source = |at: usize| ((((at as f64 + 0.5) * step as f64) as f32).floor() as usize).min(n_in - 1);
        collected((0..n_out).map(source))
    })?;
    places(images, &sources)
}

fn places(images: Images<'_>, sources: &[Vec<usize>]) -> Result<Vec<usize>> {
    let mut places = vec![0];
    for (source, &size) in sources.iter().zip(&images.input.sizes()[2..]) {
        let mut next = with_room(places.len() * source.len())?;
        next.extend(places.iter().flat_map(|place| source.iter().map(move |it| place * size + it)));
        places = next;
    }
    Ok(places)
}

fn nearest(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    pick(args, &out[0], nearest_indices)
}

fn nearest_exact(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    pick(args, &out[0], nearest_exact_indices)
}

/// Where in a plane of the input the elements of a plane of the output are from.
pub(super) type NearestIndices = fn(&Args<'_, Tensor>, Images<'_>) -> Result<Vec<usize>>;

fn pick(args: &Args<'_, Tensor>, out: &Tensor, places: NearestIndices) -> Result<()> {
    let input = args.tensor(0)?;
    let places = places(args, Images { input, output: out })?;
    let dense_input = Dense::new(input)?;
    let n_in = input.sizes()[2..].iter().product::<usize>();
    with_element!(input.dtype(), &args.op.name, T => {
        let data = dense_input.read::<T>();
        dense::fill::<T, _>(out, |out| {
            for (out, data) in out.chunks_exact_mut(places.len()).zip(data.chunks_exact(n_in)) {
                out.iter_mut().zip(&places).for_each(|(out, &place)| *out = data[place]);
            }
        });
        Ok(())
    })
}

/// The inputs that make one output position of one dimension, and the weight of each.
pub(super) type Taps<A> = Vec<(usize, A)>;

/// How far the places of two neighbours are apart in the input.
fn step<A: Float>(n_in: usize, n_out: usize, is_aligned: bool, factor: Option<f64>) -> A {
    match (is_aligned, factor) {
        (true, _) if n_out > 1 => A::of((n_in - 1) as f64) / A::of((n_out - 1) as f64),
        (true, _) => A::ZERO,
        (false, Some(factor)) => A::of(1.0 / factor),
        (false, None) => A::of(n_in as f64) / A::of(n_out as f64),
    }
}

/// The place of an output position in the input, perhaps left of the first element.
fn place<A: Float>(at: usize, step: A, is_aligned: bool) -> A {
    let half = A::of(0.5);
    if is_aligned { step * A::of(at as f64) } else { step * (A::of(at as f64) + half) - half }
}

fn linear(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => {
        // Of signals and volumes, PyTorch rounds the second weight before it takes the first one from it; not of images.
        let round = rounding::<A>(if out[0].rank() == 4 { A::DTYPE } else { dtype });
        weigh::<A>(args, &out[0], |n_in, n_out, is_aligned, factor| {
            linear_taps(n_in, n_out, is_aligned, factor, round)
        })
    })
}

pub(super) fn linear_taps<A: Float>(
    n_in: usize,
    n_out: usize,
    is_aligned: bool,
    factor: Option<f64>,
    round: fn(A) -> A,
) -> Result<Vec<Taps<A>>> {
    let step = step::<A>(n_in, n_out, is_aligned, factor);
    let taps = |at: usize| {
        if n_in == n_out {
            return vec![(at, A::ONE)];
        }
        let place = place(at, step, is_aligned);
        let place = if place < A::ZERO { A::ZERO } else { place };
        let first = (place.to_f64() as usize).min(n_in - 1);
        let second = (first + 1).min(n_in - 1);
        let weight = place - A::of(first as f64);
        let weight = round(if weight > A::ONE { A::ONE } else { weight });
        vec![(first, A::ONE - weight), (second, weight)]
    };
    collected((0..n_out).map(taps))
}

fn cubic(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => weigh::<A>(args, &out[0], cubic_taps))
}

/// The weights of the four neighbours of a place that lies `t` behind the second one, by Keys' kernel with a = -0.75.
pub(super) fn cubic_weights<A: Float>(t: A) -> [A; 4] {
    let a = A::of(-0.75);
    let near = |x: A| ((a + A::of(2.0)) * x - (a + A::of(3.0))) * x * x + A::ONE;
    let far = |x: A| ((a * x - A::of(5.0) * a) * x + A::of(8.0) * a) * x - A::of(4.0) * a;
    let rest = A::ONE - t;
    [far(t + A::ONE), near(t), near(rest), far(rest + A::ONE)]
}

pub(super) fn cubic_taps<A: Float>(
    n_in: usize,
    n_out: usize,
    is_aligned: bool,
    factor: Option<f64>,
) -> Result<Vec<Taps<A>>> {
    let step = step::<A>(n_in, n_out, is_aligned, factor);
    let last = n_in as i64 - 1;
    let taps = |at: usize| {
        let place = place(at, step, is_aligned);
        let first = (place.floor().to_f64() as i64).min(last);
        let weight = place - A::of(first as f64);
        let weight = if weight > A::ONE { A::ONE } else { weight };
        let index = |at: i64| (first + at - 1).clamp(0, last) as usize;
        (0..4).zip(cubic_weights(weight)).map(|(at, weight)| (index(at), weight)).collect()
    };
    collected((0..n_out).map(taps))
}

fn linear_filter(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => weigh::<A>(args, &out[0], linear_filter_taps))
}

pub(super) fn linear_filter_taps<A: Float>(
    n_in: usize,
    n_out: usize,
    is_aligned: bool,
    factor: Option<f64>,
) -> Result<Vec<Taps<A>>> {
    let triangle = |x: A| if x < A::ONE { A::ONE - x } else { A::ZERO };
    filter_taps(n_in, n_out, step(n_in, n_out, is_aligned, factor), 1.0, triangle)
}

fn cubic_filter(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => weigh::<A>(args, &out[0], cubic_filter_taps))
}

pub(super) fn cubic_filter_taps<A: Float>(
    n_in: usize,
    n_out: usize,
    is_aligned: bool,
    factor: Option<f64>,
) -> Result<Vec<Taps<A>>> {
    // Keys' kernel with a = -0.5, as in Pillow.
    let a = A::of(-0.5);
    let keys = |x: A| {
        if x < A::ONE {
            ((a + A::of(2.0)) * x - (a + A::of(3.0))) * x * x + A::ONE
        } else if x < A::of(2.0) {
            (((x - A::of(5.0)) * x + A::of(8.0)) * x - A::of(4.0)) * a
        } else {
            A::ZERO
        }
    };
    filter_taps(n_in, n_out, step(n_in, n_out, is_aligned, factor), 2.0, keys)
}

/// The taps of a filter of this radius, which is widened to the step where that is larger than one.
fn filter_taps<A: Float>(
    n_in: usize,
    n_out: usize,
    step: A,
    radius: f64,
    filter: impl Fn(A) -> A,
) -> Result<Vec<Taps<A>>> {
    let half = A::of(0.5);
    let (support, shrink) =
        if step >= A::ONE { (A::of(radius) * step, A::ONE / step) } else { (A::of(radius), A::ONE) };
    let taps = |at: usize| {
        let center = step * (A::of(at as f64) + half);
        let first = (center - support + half).to_f64().max(0.0) as usize;
        let end = ((center + support + half).to_f64() as usize).min(n_in);
        let weight = |at: usize| filter(((A::of(at as f64) - center + half) * shrink).abs());
        let mut taps: Taps<A> = collected((first..end).map(|at| (at, weight(at))))?;
        let total = taps.iter().fold(A::ZERO, |sum, it| sum + it.1);
        if total != A::ZERO {
            taps.iter_mut().for_each(|it| it.1 /= total);
        }
        Ok(taps)
    };
    try_collected((0..n_out).map(taps))
}

/// A resize of volumes. Signals and images are volumes of size one in front.
pub(super) struct Volume<A> {
    /// The taps of each output position, for each of three dimensions.
    pub(crate) dims: Vec<Vec<Taps<A>>>,
    /// The sizes of the input.
    pub(crate) sizes: Vec<usize>,
}

/// The resize with these taps. Whether the corners are aligned is the argument at `aligned`.
pub(super) fn taps_of_volume<A: Float>(
    args: &Args<'_, Tensor>,
    aligned: usize,
    images: Images<'_>,
    taps: impl Fn(usize, usize, bool, Option<f64>) -> Result<Vec<Taps<A>>>,
) -> Result<Volume<A>> {
    let is_aligned = args.bool(aligned)?;
    let mut dims = each_dim(args, images, |n_in, n_out, factor| taps(n_in, n_out, is_aligned, factor))?;
    let mut sizes = images.input.sizes()[2..].to_vec();
    while dims.len() < 3 {
        dims.insert(0, vec![vec![(0, A::ONE)]]);
        sizes.insert(0, 1);
    }
    Ok(Volume { dims, sizes })
}

fn weigh<A: Float>(
    args: &Args<'_, Tensor>,
    out: &Tensor,
    taps: impl Fn(usize, usize, bool, Option<f64>) -> Result<Vec<Taps<A>>>,
) -> Result<()> {
    let images = Images { input: args.tensor(0)?, output: out };
    let Volume { mut dims, sizes } = taps_of_volume(args, 2, images, taps)?;
    // PyTorch keeps the weights in the dtype of the elements.
    let round = rounding::<A>(out.dtype());
    dims.iter_mut().flatten().flatten().for_each(|it| it.1 = round(it.1));
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let n_in: usize = sizes.iter().product();
    fill_float::<A, _>(out, |out| {
        let n_out = dims.iter().map(Vec::len).product::<usize>();
        for (out, plane) in out.chunks_exact_mut(n_out).zip(input.data().chunks_exact(n_in)) {
            let mut out = out.iter_mut();
            for depth in &dims[0] {
                for height in &dims[1] {
                    for (width, out) in dims[2].iter().zip(&mut out) {
                        *out = sum(depth, |d| {
                            sum(height, |h| {
                                let row = &plane[(d * sizes[1] + h) * sizes[2]..][..sizes[2]];
                                sum(width, |w| row[w])
                            })
                        });
                    }
                }
            }
        }
    })
}

fn sum<A: Float>(taps: &Taps<A>, of: impl Fn(usize) -> A) -> A {
    taps.iter().fold(A::ZERO, |sum, &(at, weight)| sum + weight * of(at))
}
