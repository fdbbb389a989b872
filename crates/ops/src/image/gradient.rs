//! Gradients of what resizes, samples and pads images.

use crate::core::gradients::{Backward, Expr};
use tracefx_core::Result;

type Formulas = Result<Vec<Expr>>;

/// Rules of resizing: the sizes of the input come after those of the result.
macro_rules! resized {
    ($($name:ident $op:literal;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            let options = (2..it.args.values.len()).map(|index| it.arg(index));
            let sizes = [it.grad(), it.arg(1), it.sizes(0)?.into()];
            Ok(vec![Expr::call($op, sizes.into_iter().chain(options))])
        }
    )*};
}

resized! {
    nearest1d "aten.upsample_nearest1d_backward.default";
    nearest2d "aten.upsample_nearest2d_backward.default";
    nearest3d "aten.upsample_nearest3d_backward.default";
    nearest_exact1d "aten._upsample_nearest_exact1d_backward.default";
    nearest_exact2d "aten._upsample_nearest_exact2d_backward.default";
    nearest_exact3d "aten._upsample_nearest_exact3d_backward.default";
    linear1d "aten.upsample_linear1d_backward.default";
    bilinear2d "aten.upsample_bilinear2d_backward.default";
    trilinear3d "aten.upsample_trilinear3d_backward.default";
    bicubic2d "aten.upsample_bicubic2d_backward.default";
    bilinear2d_aa "aten._upsample_bilinear2d_aa_backward.default";
    bicubic2d_aa "aten._upsample_bicubic2d_aa_backward.default";
}

/// Rules of borders that are looked up in the input.
macro_rules! padded {
    ($($name:ident $op:literal;)*) => {$(
        pub(crate) fn $name(it: &Backward<'_>) -> Formulas {
            Ok(vec![Expr::call($op, [it.grad(), it.arg(0), it.arg(1)])])
        }
    )*};
}

padded! {
    reflection_pad1d "aten.reflection_pad1d_backward.default";
    reflection_pad2d "aten.reflection_pad2d_backward.default";
    reflection_pad3d "aten.reflection_pad3d_backward.default";
    replication_pad1d "aten.replication_pad1d_backward.default";
    replication_pad2d "aten.replication_pad2d_backward.default";
    replication_pad3d "aten.replication_pad3d_backward.default";
}

fn sampled(it: &Backward<'_>, op: &'static str) -> Formulas {
    let arguments = (0..5).map(|index| it.arg(index));
    let both = Expr::call(op, [it.grad()].into_iter().chain(arguments).chain([it.mask([0, 1])]));
    Ok(vec![both.clone(), both.result(1)])
}

pub(crate) fn grid_sampler_2d(it: &Backward<'_>) -> Formulas {
    sampled(it, "aten.grid_sampler_2d_backward.default")
}

pub(crate) fn grid_sampler_3d(it: &Backward<'_>) -> Formulas {
    sampled(it, "aten.grid_sampler_3d_backward.default")
}
