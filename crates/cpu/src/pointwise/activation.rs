//! Activations of neural networks. Their gradients are in [`activation_backward`](super::activation_backward).

use crate::numeric::activation::Activation;
use crate::numeric::dispatch::{with_float, with_real};
use crate::numeric::elementary::{Elementary, Stepwise};
use crate::numeric::map::{Source, map1, map2, number};
use crate::numeric::number::Real;
use tracefx_core::{Element, Result, Scalar, Tensor};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::Args;

/// An activation of floats, with the numbers at these positions of the schema.
macro_rules! float {
    (|$x:ident $(, $number:ident = $index:literal)*| $body:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let source = Source::of(args, 0, dtype)?;
            with_float!(dtype, &args.op.name, F => {
                $(let $number = F::from_scalar(number(args, $index, dtype)?);)*
                map1::<F, F>(&source, out, move |$x| $body)
            })
        })
    };
}

/// The scales at which SELU networks normalise themselves, as in aten/src/ATen/native/Activation.cpp.
const SELU_ALPHA: f64 = 1.6732632423543772848170429916717;
const SELU_SCALE: f64 = 1.0507009873554804934193349852946;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.relu.default", Kernel::Pointwise(relu)),
    ("aten.hardtanh.default", Kernel::Pointwise(hardtanh)),
    ("aten.threshold.default", Kernel::Pointwise(threshold)),
    (
        "aten.elu.default",
        float!(|x, alpha = 1, scale = 2, input_scale = 3| if x < 0.0 {
            Elementary::exp_m1(x * input_scale) * alpha * scale
        } else {
            x * scale
        }),
    ),
    ("aten.celu.default", float!(|x, alpha = 1| if x < 0.0 { Elementary::exp_m1(x / alpha) * alpha } else { x })),
    (
        "aten.selu.default",
        float!(|x| if x < 0.0 { Elementary::exp_m1(x) * (SELU_ALPHA * SELU_SCALE) as F } else { x * SELU_SCALE as F }),
    ),
    ("aten.gelu.default", Kernel::Pointwise(gelu)),
    ("aten.silu.default", float!(|x| Activation::silu::<Stepwise>(x))),
    ("aten.mish.default", float!(|x| x * Elementary::tanh::<Stepwise>(x.softplus()))),
    (
        "aten.softplus.default",
        float!(|x, beta = 1, threshold = 2| if x * beta > threshold {
            x
        } else {
            Elementary::ln_1p(Elementary::exp(x * beta)) / beta
        }),
    ),
    (
        "aten.softshrink.default",
        float!(|x, lambd = 1| if x > lambd {
            x - lambd
        } else if x < -lambd {
            x + lambd
        } else {
            // A NaN stays one.
            x * 0.0
        }),
    ),
    ("aten.hardshrink.default", float!(|x, lambd = 1| if x >= -lambd && x <= lambd { 0.0 } else { x })),
    ("aten.hardsigmoid.default", float!(|x| Activation::hard_sigmoid(x))),
    ("aten.hardswish.default", float!(|x| Activation::hard_swish(x))),
    ("aten.leaky_relu.default", float!(|x, slope = 1| Activation::leaky_relu(x, slope))),
    ("aten.log_sigmoid.default", float!(|x| -(-x).softplus())),
    ("aten.log_sigmoid_forward.default", Kernel::Overwrite(log_sigmoid_forward)),
    ("aten._prelu_kernel.default", Kernel::Pointwise(prelu)),
];

fn log_sigmoid_forward(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let source = Source::of(args, 0, dtype)?;
    with_float!(dtype, &args.op.name, F => {
        map1::<F, F>(&source, Target::Tensor(&outs[0]), move |x| -(-x).softplus())?;
        map1::<F, F>(&source, Target::Tensor(&outs[1]), |x| (-x.abs()).exp())
    })
}

fn relu(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    with_real!(dtype, &args.op.name, F => map1::<F, F>(&source, out, move |x| x.larger(F::from_scalar(Scalar::Int(0)))))
}

fn hardtanh(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    let (min, max) = (number(args, 1, dtype)?, number(args, 2, dtype)?);
    with_real!(dtype, &args.op.name, F => {
        let (min, max) = (F::from_scalar(min), F::from_scalar(max));
        map1::<F, F>(&source, out, move |x| x.larger(min).smaller(max))
    })
}

fn threshold(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    let (threshold, value) = (number(args, 1, dtype)?, number(args, 2, dtype)?);
    with_real!(dtype, &args.op.name, F => {
        let (threshold, value) = (F::from_scalar(threshold), F::from_scalar(value));
        map1::<F, F>(&source, out, move |x| if x <= threshold { value } else { x })
    })
}

fn gelu(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let source = Source::of(args, 0, dtype)?;
    with_float!(dtype, &args.op.name, F => match args.str(1)? {
        "tanh" => map1::<F, F>(&source, out, Activation::gelu_tanh::<Stepwise>),
        _ => map1::<F, F>(&source, out, Elementary::gelu::<Stepwise>),
    })
}

fn prelu(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (x, weight) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    with_float!(dtype, &args.op.name, F => map2::<F, F>(&x, &weight, out, move |x, weight| if x > 0.0 { x } else { x * weight }))
}
