//! Kernels of the gradients of losses that compare two tensors element by element.

use crate::numeric::dispatch::with_float;
use crate::numeric::map::{Source, map2, map3};
use tracefx_core::{Element, Result, Scalar, Tensor};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::{Args, promote};

/// A gradient from the incoming one, the input and the target; `$norm` is what it is scaled by where the loss is a mean.
macro_rules! loss {
    (|$grad:ident, $input:ident, $target:ident, $norm:ident $(, $number:ident = $index:literal)*| $body:expr) => {
        Kernel::Fill(|args, outs| {
            let dtype = promote(&[args.operand(0)?, args.operand(1)?, args.operand(2)?]);
            let [grad, input, target] = [0, 1, 2].map(|index| Source::of(args, index, dtype));
            let (grad, input, target, norm) = (grad?, input?, target?, norm(args, 3)?);
            with_float!(dtype, &args.op.name, F => {
                let $norm = norm as F;
                $(let $number = args.float($index)? as F;)*
                map3::<F, F>(&grad, &input, &target, Target::Tensor(&outs[0]), move |$grad, $input, $target| $body)
            })
        })
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.mse_loss_backward.default", loss!(|grad, input, target, norm| 2.0 * norm * (input - target) * grad)),
    (
        "aten.smooth_l1_loss_backward.default",
        loss!(|grad, input, target, norm, beta = 4| {
            let difference = input - target;
            if difference <= -beta {
                -norm * grad
            } else if difference >= beta {
                norm * grad
            } else {
                norm * difference * grad / beta
            }
        }),
    ),
    (
        "aten.huber_loss_backward.default",
        loss!(|grad, input, target, norm, delta = 4| {
            let difference = input - target;
            if difference <= -delta {
                -norm * grad * delta
            } else if difference >= delta {
                norm * grad * delta
            } else {
                norm * difference * grad
            }
        }),
    ),
    ("aten.binary_cross_entropy_backward.default", Kernel::Fill(binary_cross_entropy)),
    (
        "aten.soft_margin_loss_backward.default",
        loss!(|grad, input, target, norm| {
            let z = (-target * input).exp();
            -norm * target * z / (z + 1.0) * grad
        }),
    ),
];

/// One over the number of elements of the input where the reduction at this position is the mean.
fn norm(args: &Args<'_, Tensor>, reduction: usize) -> Result<f64> {
    Ok(if args.int(reduction)? == 1 { 1.0 / args.tensor(1)?.numel() as f64 } else { 1.0 })
}

fn binary_cross_entropy(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let norm = norm(args, 4)?;
    let [grad, input, target] = [0, 1, 2].map(|index| Source::of(args, index, dtype));
    let (grad, input, target) = (grad?, input?, target?);
    let weight = if args.is_none(3) { Source::Scalar(Scalar::Int(1)) } else { Source::of(args, 3, dtype)? };
    with_float!(dtype, &args.op.name, F => {
        let slope = Tensor::zeros(F::DTYPE, outs[0].sizes())?;
        // The divisor is kept from zero, as the logarithms of the loss are from minus infinity.
        map3::<F, F>(&grad, &input, &target, Target::Tensor(&slope), |grad, x, y| grad * (x - y) / ((1.0 - x) * x).max(1e-12))?;
        map2::<F, F>(&Source::Tensor(slope), &weight, Target::Tensor(&outs[0]), move |slope, weight| slope * weight * norm as F)
    })
}
