//! Kernels of the gradients of resizing: each output hands its gradient to the inputs that it was made of, by the same
//! taps.

use crate::image::upsample::{
    Images, NearestIndices, Taps, Volume, cubic_filter_taps, cubic_taps, linear_filter_taps, linear_taps,
    nearest_exact_indices, nearest_indices, taps_of_volume,
};
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernel of the gradient of a resize with these taps.
macro_rules! taps {
    ($taps:expr) => {
        Kernel::Fill(|args, out| {
            let dtype = out[0].dtype();
            with_float!(dtype, &args.op.name, A => spread::<A>(args, &out[0], $taps))
        })
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.upsample_nearest1d_backward.default", Kernel::Fill(nearest)),
    ("aten.upsample_nearest2d_backward.default", Kernel::Fill(nearest)),
    ("aten.upsample_nearest3d_backward.default", Kernel::Fill(nearest)),
    ("aten._upsample_nearest_exact1d_backward.default", Kernel::Fill(nearest_exact)),
    ("aten._upsample_nearest_exact2d_backward.default", Kernel::Fill(nearest_exact)),
    ("aten._upsample_nearest_exact3d_backward.default", Kernel::Fill(nearest_exact)),
    ("aten.upsample_linear1d_backward.default", taps!(unrounded_linear_taps)),
    ("aten.upsample_bilinear2d_backward.default", taps!(unrounded_linear_taps)),
    ("aten.upsample_trilinear3d_backward.default", taps!(unrounded_linear_taps)),
    ("aten.upsample_bicubic2d_backward.default", taps!(cubic_taps)),
    ("aten._upsample_bilinear2d_aa_backward.default", taps!(linear_filter_taps)),
    ("aten._upsample_bicubic2d_aa_backward.default", taps!(cubic_filter_taps)),
];

/// Unlike the resize itself, PyTorch's gradients do not round the weights to half types.
fn unrounded_linear_taps<A: Float>(
    n_in: usize,
    n_out: usize,
    is_aligned: bool,
    factor: Option<f64>,
) -> Result<Vec<Taps<A>>> {
    linear_taps(n_in, n_out, is_aligned, factor, |it| it)
}

fn nearest(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => add::<A>(args, &out[0], nearest_indices))
}

fn nearest_exact(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => add::<A>(args, &out[0], nearest_exact_indices))
}

fn add<A: Float>(args: &Args<'_, Tensor>, out: &Tensor, places: NearestIndices) -> Result<()> {
    let grad = args.tensor(0)?;
    let places = places(args, Images { input: out, output: grad })?;
    let grad = Strided::<A>::dense(grad)?;
    let n_in = out.sizes()[2..].iter().product::<usize>();
    fill_float::<A, _>(out, |out| {
        for (plane, grad) in out.chunks_exact_mut(n_in).zip(grad.data().chunks_exact(places.len())) {
            grad.iter().zip(&places).for_each(|(&grad, &place)| plane[place] += grad);
        }
    })
}

fn spread<A: Float>(
    args: &Args<'_, Tensor>,
    out: &Tensor,
    taps: impl Fn(usize, usize, bool, Option<f64>) -> Result<Vec<Taps<A>>>,
) -> Result<()> {
    let grad = args.tensor(0)?;
    let Volume { dims, sizes } = taps_of_volume(args, 3, Images { input: out, output: grad }, taps)?;
    let grad = Strided::<A>::dense(grad)?;
    let (n_in, n_out) = (sizes.iter().product(), dims.iter().map(Vec::len).product());
    fill_float::<A, _>(out, |out| {
        for (plane, grad) in out.chunks_exact_mut(n_in).zip(grad.data().chunks_exact(n_out)) {
            let mut grad = grad.iter();
            for depth in &dims[0] {
                for height in &dims[1] {
                    for (width, &grad) in dims[2].iter().zip(&mut grad) {
                        for &(d, by_depth) in depth {
                            for &(h, by_height) in height {
                                let row = &mut plane[(d * sizes[1] + h) * sizes[2]..][..sizes[2]];
                                let share = grad * by_depth * by_height;
                                width.iter().for_each(|&(w, by_width)| row[w] += share * by_width);
                            }
                        }
                    }
                }
            }
        }
    })
}
