//! Gradients of what resizes, samples and pads images.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

/// Rules of resizing, and of its gradient, which is linear: the sizes of the input come after those of the result.
macro_rules! resized {
    ($($name:ident $backward:ident $op:literal $op_backward:literal;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            let sizes = [it.grad(), it.arg(1), it.sizes(0)?.into()];
            Ok(vec![Expr::aten($op_backward, sizes.into_iter().chain(options(it, 2)))])
        }

        pub(crate) fn $backward(it: &Backward<'_>) -> Formulas {
            Ok(vec![Expr::aten($op, [it.grad(), it.arg(1)].into_iter().chain(options(it, 3)))])
        }
    )*};
}

fn options<'a>(it: &'a Backward<'_>, from: usize) -> impl Iterator<Item = Expr> + 'a {
    (from..it.args.values.len()).map(|index| it.arg(index))
}

resized! {
    nearest1d nearest1d_backward "upsample_nearest1d" "upsample_nearest1d_backward";
    nearest2d nearest2d_backward "upsample_nearest2d" "upsample_nearest2d_backward";
    nearest3d nearest3d_backward "upsample_nearest3d" "upsample_nearest3d_backward";
    nearest_exact1d nearest_exact1d_backward "_upsample_nearest_exact1d" "_upsample_nearest_exact1d_backward";
    nearest_exact2d nearest_exact2d_backward "_upsample_nearest_exact2d" "_upsample_nearest_exact2d_backward";
    nearest_exact3d nearest_exact3d_backward "_upsample_nearest_exact3d" "_upsample_nearest_exact3d_backward";
    linear1d linear1d_backward "upsample_linear1d" "upsample_linear1d_backward";
    bilinear2d bilinear2d_backward "upsample_bilinear2d" "upsample_bilinear2d_backward";
    trilinear3d trilinear3d_backward "upsample_trilinear3d" "upsample_trilinear3d_backward";
    bicubic2d bicubic2d_backward "upsample_bicubic2d" "upsample_bicubic2d_backward";
    bilinear2d_aa bilinear2d_aa_backward "_upsample_bilinear2d_aa" "_upsample_bilinear2d_aa_backward";
    bicubic2d_aa bicubic2d_aa_backward "_upsample_bicubic2d_aa" "_upsample_bicubic2d_aa_backward";
}

/// Rules of borders that are looked up in the input.
macro_rules! padded {
    ($($name:ident $op:literal;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            Ok(vec![Expr::aten($op, [it.grad(), it.arg(0), it.arg(1)])])
        }
    )*};
}

padded! {
    reflection_pad1d "reflection_pad1d_backward";
    reflection_pad2d "reflection_pad2d_backward";
    reflection_pad3d "reflection_pad3d_backward";
    replication_pad1d "replication_pad1d_backward";
    replication_pad2d "replication_pad2d_backward";
    replication_pad3d "replication_pad3d_backward";
}

fn sampled(it: &Backward<'_>, op: &'static str) -> Formulas {
    let arguments = (0..5).map(|index| it.arg(index));
    let both = Expr::aten(op, [it.grad()].into_iter().chain(arguments).chain([it.mask([0, 1])]));
    Ok(vec![both.clone(), both.result(1)])
}

pub(crate) fn grid_sampler_2d(it: &Backward<'_>) -> Formulas {
    sampled(it, "grid_sampler_2d_backward")
}

pub(crate) fn grid_sampler_3d(it: &Backward<'_>) -> Formulas {
    sampled(it, "grid_sampler_3d_backward")
}
