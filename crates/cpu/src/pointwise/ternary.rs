//! Choices between two numbers, bounds, and arithmetic of three.

use crate::numeric::complex::complex3;
use crate::numeric::dispatch::{with_float, with_number, with_real};
use crate::numeric::field::{self, Complex};
use crate::numeric::map::{Source, map1, map2, map3, number};
use crate::numeric::number::{Number, Real};
use tracefx_core::{Element, Result, Tensor};
use tracefx_exec::{Kernel, Target};
use tracefx_ops::Args;

/// A bound on one side.
macro_rules! bound {
    ($f:expr) => {
        Kernel::Pointwise(|args, out| {
            let dtype = out.dtype();
            let (a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?);
            with_real!(dtype, &args.op.name, F => map2::<F, F>(&a, &b, out, $f))
        })
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.where.self", Kernel::Pointwise(choose)),
    ("aten.where.ScalarSelf", Kernel::Pointwise(choose)),
    ("aten.where.ScalarOther", Kernel::Pointwise(choose)),
    ("aten.where.Scalar", Kernel::Pointwise(choose)),
    ("aten.masked_fill.Scalar", Kernel::Pointwise(masked_fill)),
    ("aten.masked_fill.Tensor", Kernel::Pointwise(masked_fill)),
    ("aten.clamp.default", Kernel::Pointwise(clamp)),
    ("aten.clamp.Tensor", Kernel::Pointwise(clamp)),
    ("aten.clamp_min.default", bound!(Real::larger)),
    ("aten.clamp_min.Tensor", bound!(Real::larger)),
    ("aten.clamp_max.default", bound!(Real::smaller)),
    ("aten.clamp_max.Tensor", bound!(Real::smaller)),
    ("aten.lerp.Scalar", Kernel::Pointwise(lerp)),
    ("aten.lerp.Tensor", Kernel::Pointwise(lerp)),
    ("aten.addcmul.default", Kernel::Pointwise(addcmul)),
    ("aten.addcdiv.default", Kernel::Pointwise(addcdiv)),
];

fn choose(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let condition = Source::Tensor(args.tensor(0)?.clone());
    let (a, b) = (Source::of(args, 1, dtype)?, Source::of(args, 2, dtype)?);
    with_number!(dtype, &args.op.name, F => map3::<F, F>(&condition, &a, &b, out, move |c, a, b| if c != F::ZERO { a } else { b }))
}

fn masked_fill(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let mask = Source::Tensor(args.tensor(1)?.clone());
    let (a, value) = (Source::of(args, 0, dtype)?, Source::of(args, 2, dtype)?);
    with_number!(dtype, &args.op.name, F => map3::<F, F>(&mask, &a, &value, out, move |m, a, value| if m != F::ZERO { value } else { a }))
}

fn clamp(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let bound = |index: usize| match args.is_none(index) {
        true => Ok(None),
        // A negative bound of unsigned elements does not wrap, as since PyTorch 2.15.
        false => Source::unrounded(args, index, dtype).map(Some),
    };
    let (x, min, max) = (Source::of(args, 0, dtype)?, bound(1)?, bound(2)?);
    with_real!(dtype, &args.op.name, F => match (&min, &max) {
        (Some(min), Some(max)) => {
            // A NaN among the bounds wins over both, and the upper bound over the lower one.
            map3::<F, F>(&x, min, max, out, move |x, min, max| if Number::is_nan(min) { min } else { x.larger(min).smaller(max) })
        }
        (Some(min), None) => map2::<F, F>(&x, min, out, Real::larger),
        (None, Some(max)) => map2::<F, F>(&x, max, out, Real::smaller),
        (None, None) => map1::<F, F>(&x, out, move |x| x),
    })
}

fn lerp(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (a, b, weight) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?, Source::unrounded(args, 2, dtype)?);
    if dtype.is_complex() {
        return complex3([&a, &b, &weight], out, move |a, b, weight| {
            if field::Field::abs(weight) < 0.5 {
                a + weight * (b - a)
            } else {
                b - (b - a) * (Complex::new(1.0, 0.0) - weight)
            }
        });
    }
    // From the nearer end, so that a weight of 1 gives the end exactly.
    with_float!(dtype, &args.op.name, F => map3::<F, F>(&a, &b, &weight, out, move |a, b, weight| {
        if weight.abs() < 0.5 { a + weight * (b - a) } else { b - (b - a) * (1.0 - weight) }
    }))
}

fn addcmul(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (x, a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?, Source::of(args, 2, dtype)?);
    let value = number(args, 3, dtype)?;
    with_number!(dtype, &args.op.name, F => {
        let value = F::from_scalar(value);
        map3::<F, F>(&x, &a, &b, out, move |x, a, b| x.add(value.mul(a).mul(b)))
    })
}

fn addcdiv(args: &Args<'_, Tensor>, out: Target<'_>) -> Result<()> {
    let dtype = out.dtype();
    let (x, a, b) = (Source::of(args, 0, dtype)?, Source::of(args, 1, dtype)?, Source::of(args, 2, dtype)?);
    let value = number(args, 3, dtype)?;
    if dtype.is_complex() {
        let value = Complex::new(value.to_complex().re, value.to_complex().im);
        return complex3([&x, &a, &b], out, move |x, a, b| x + value * a / b);
    }
    with_float!(dtype, &args.op.name, F => {
        let value = F::from_scalar(value);
        map3::<F, F>(&x, &a, &b, out, move |x, a, b| x + value * a / b)
    })
}
