//! Kernels of the gradients of activations, following aten/src/ATen/native/cpu/Activation.cpp. Where its vectorised loops
//! and its scalar ones differ for a NaN, as in `hardtanh`, the latter are followed, as by PyTorch's decompositions.

use crate::numeric::complex::complex2;
use crate::numeric::dispatch::{with_float, with_real};
use crate::numeric::elementary::{Elementary, Stepwise};
use crate::numeric::field::{Complex, Field};
use crate::numeric::map::{Source, map2, map3, number};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use tracefx_core::{Element, Result, Scalar, Tensor};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::Args;

/// A gradient of floats, from the incoming one and the tensor at `$at`, with the numbers at these positions of the schema.
macro_rules! float {
    (|$grad:ident, $x:ident = $at:literal $(, $number:ident = $index:literal)*| $body:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let (grad, x) = (Source::of(args, 0, dtype)?, Source::of(args, $at, dtype)?);
            with_float!(dtype, &args.op.name, F => {
                $(let $number = F::from_scalar(number(args, $index, dtype)?);)*
                map2::<F, F>(&grad, &x, out, move |$grad, $x| $body)
            })
        })
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.sigmoid_backward.default", Kernel::Pointwise(sigmoid)),
    ("aten.tanh_backward.default", Kernel::Pointwise(tanh)),
    ("aten.native_dropout_backward.default", float!(|grad, mask = 1, scale = 2| grad * mask * scale)),
    ("aten.threshold_backward.default", Kernel::Pointwise(threshold)),
    (
        "aten.hardtanh_backward.default",
        float!(|grad, x = 1, min = 2, max = 3| if x <= min || x >= max { 0.0 } else { grad }),
    ),
    ("aten.elu_backward.default", Kernel::Pointwise(elu)),
    ("aten.gelu_backward.default", Kernel::Pointwise(gelu)),
    (
        "aten.silu_backward.default",
        float!(|grad, x = 1| {
            let sigmoid = x.sigmoid::<Stepwise>();
            grad * sigmoid * (1.0 + x * (1.0 - sigmoid))
        }),
    ),
    (
        "aten.mish_backward.default",
        float!(|grad, x = 1| {
            let (sigmoid, tanh) = (x.sigmoid::<Stepwise>(), x.softplus().tanh());
            grad * (tanh + x * sigmoid * (1.0 - tanh * tanh))
        }),
    ),
    (
        "aten.softplus_backward.default",
        float!(|grad, x = 1, beta = 2, threshold = 3| if x * beta > threshold {
            grad
        } else {
            let z = (x * beta).exp();
            grad * z / (z + 1.0)
        }),
    ),
    (
        "aten.softshrink_backward.default",
        float!(|grad, x = 1, lambd = 2| if x >= -lambd && x <= lambd { 0.0 } else { grad }),
    ),
    (
        "aten.hardshrink_backward.default",
        float!(|grad, x = 1, lambd = 2| if x >= -lambd && x <= lambd { 0.0 } else { grad }),
    ),
    ("aten.hardsigmoid_backward.default", float!(|grad, x = 1| if x > -3.0 && x < 3.0 { grad / 6.0 } else { 0.0 })),
    (
        "aten.hardswish_backward.default",
        float!(|grad, x = 1| if x <= -3.0 {
            0.0
        } else if x < 3.0 {
            grad * (x / 3.0 + 0.5)
        } else {
            grad
        }),
    ),
    ("aten.leaky_relu_backward.default", float!(|grad, x = 1, slope = 2| if x > 0.0 { grad } else { grad * slope })),
    ("aten.logit_backward.default", Kernel::Pointwise(logit)),
    ("aten.log_sigmoid_backward.default", Kernel::Pointwise(log_sigmoid)),
    ("aten._prelu_kernel_backward.default", Kernel::Overwrite(prelu)),
];

fn sigmoid(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (grad, y) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    if dtype.is_complex() {
        return complex2(&grad, &y, out, move |grad, y| grad * (Complex::new(1.0 - y.re, -y.im) * y).conj());
    }
    with_float!(dtype, &args.op.name, F => map2::<F, F>(&grad, &y, out, move |grad, y| grad * (1.0 - y) * y))
}

fn tanh(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (grad, y) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    if dtype.is_complex() {
        return complex2(&grad, &y, out, move |grad, y| {
            let square = y * y;
            grad * Complex::new(1.0 - square.re, -square.im).conj()
        });
    }
    with_float!(dtype, &args.op.name, F => map2::<F, F>(&grad, &y, out, move |grad, y| grad * (1.0 - y * y)))
}

fn threshold(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (grad, x) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    let threshold = number(args, 2, dtype)?;
    with_real!(dtype, &args.op.name, F => {
        let (threshold, zero) = (F::from_scalar(threshold), F::from_scalar(Scalar::Int(0)));
        map2::<F, F>(&grad, &x, out, move |grad, x| if x <= threshold { zero } else { grad })
    })
}

fn elu(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (grad, x) = (Source::of(args, 0, dtype)?, Source::of(args, 5, dtype)?);
    let is_result = args.bool(4)?;
    with_float!(dtype, &args.op.name, F => {
        let [alpha, scale, input_scale] = [number(args, 1, dtype)?, number(args, 2, dtype)?, number(args, 3, dtype)?].map(F::from_scalar);
        map2::<F, F>(&grad, &x, out, move |grad, x| match is_result {
            true if x <= 0.0 => grad * input_scale * (x + alpha * scale),
            false if x <= 0.0 => grad * input_scale * (alpha * scale) * (x * input_scale).exp(),
            true | false => grad * scale,
        })
    })
}

fn gelu(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (grad, x) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    with_float!(dtype, &args.op.name, F => match args.str(2)? {
        "tanh" => map2::<F, F>(&grad, &x, out, move |grad, x| {
            let beta = (FRAC_2_SQRT_PI * FRAC_1_SQRT_2) as F;
            let tanh = (beta * (x + 0.044715 * x * x * x)).tanh();
            let slope = (1.0 - tanh * tanh) * beta * (1.0 + 3.0 * 0.044715 * x * x);
            grad * (0.5 * (1.0 + tanh) + 0.5 * x * slope)
        }),
        _ => map2::<F, F>(&grad, &x, out, move |grad, x| {
            let distribution = 0.5 * (1.0 + Elementary::erf::<Stepwise>(x * FRAC_1_SQRT_2 as F));
            let density = (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2) as F * (-0.5 * x * x).exp();
            grad * (distribution + x * density)
        }),
    })
}

fn logit(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (grad, x) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
    let eps = if args.is_none(2) { None } else { Some(number(args, 2, dtype)?.to_f64()) };
    with_float!(dtype, &args.op.name, F => {
        // Outside its range, `logit` is no number, or the same one everywhere where the range is narrowed.
        let (low, high, outside) = match eps {
            Some(eps) => (eps as F, 1.0 - eps as F, 0.0),
            None => (0.0, 1.0, F::NAN),
        };
        map2::<F, F>(&grad, &x, out, move |grad, x| if x >= low && x <= high { grad / (x * (1.0 - x)) } else { outside })
    })
}

fn log_sigmoid(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let [grad, x, buffer] = [0, 1, 2].map(|index| Source::of(args, index, dtype));
    let (grad, x, buffer) = (grad?, x?, buffer?);
    with_float!(dtype, &args.op.name, F => map3::<F, F>(&grad, &x, &buffer, out, move |grad, x, z| {
        // The sigmoid of -x.
        grad * if x < 0.0 { 1.0 - z / (1.0 + z) } else { z / (1.0 + z) }
    }))
}

fn prelu(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let [grad, x, weight] = [0, 1, 2].map(|index| Source::of(args, index, dtype));
    let (grad, x, weight) = (grad?, x?, weight?);
    with_float!(dtype, &args.op.name, F => {
        map3::<F, F>(&grad, &x, &weight, Target::Tensor(&outs[0]), move |grad, x, weight| if x > 0.0 { grad } else { grad * weight })?;
        map2::<F, F>(&grad, &x, Target::Tensor(&outs[1]), |grad, x| if x > 0.0 { 0.0 } else { grad * x })
    })
}
