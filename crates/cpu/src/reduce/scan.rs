//! Scans: each element of the result depends on those before it along a dimension. Lanes that lie side by side are taken
//! all at once.

#![allow(
    clippy::useless_conversion,
    reason = "the same code serves float32, whose conversion to float64 does something"
)]

use crate::numeric::dense::Dense;
use crate::numeric::dispatch::{with_float, with_number, with_real};
use crate::numeric::map::{cast, store};
use crate::numeric::number::{Number, Real};
use crate::numeric::parallel;
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Element, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.cumsum.default", Kernel::Fill(cumsum)),
    ("aten.cumprod.default", Kernel::Fill(cumprod)),
    ("aten.logcumsumexp.default", Kernel::Fill(logcumsumexp)),
    ("aten.cummax.default", Kernel::Fill(|args, outs| cumulative_extremum(args, outs, true))),
    ("aten.cummin.default", Kernel::Fill(|args, outs| cumulative_extremum(args, outs, false))),
];

/// Fills a row-major result: `step` makes each element from what was carried so far along the dimension.
fn scan<F: Element, S: Copy + Sync, R: Element>(
    args: &Args<'_, Tensor>,
    tensor: &Tensor,
    out: &Tensor,
    start: S,
    step: impl Fn(S, usize, F) -> (S, R) + Sync,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let dim = normalize_dim(args, args.int(1)?, tensor.rank())?;
    let n = out.sizes().get(dim).copied().unwrap_or(1);
    let inner: usize = out.sizes().iter().skip(dim + 1).product();
    let elements = Dense::new(&cast(tensor, F::DTYPE)?)?;
    let elements = elements.read::<F>();
    let elements: &[F] = &elements;
    let mut values = filled(R::zeroed(), out.numel())?;
    parallel::try_parts_mut(&mut values, parallel::whole_rows(n * inner), |at, part| {
        let lanes = part.chunks_exact_mut(n * inner).zip(elements[at..].chunks_exact(n * inner));
        for (values, elements) in lanes {
            if inner == 1 {
                let mut carried = start;
                for (i, (value, &it)) in values.iter_mut().zip(elements).enumerate() {
                    (carried, *value) = step(carried, i, it);
                }
                continue;
            }
            // All lanes at once, for they lie side by side.
            let mut carried = filled(start, inner)?;
            let rows = values.chunks_exact_mut(inner).zip(elements.chunks_exact(inner));
            for (i, (values, elements)) in rows.enumerate() {
                for ((carried, value), &it) in carried.iter_mut().zip(values).zip(elements) {
                    (*carried, *value) = step(*carried, i, it);
                }
            }
        }
        Ok(())
    })?;
    store(&values, out)
}

fn cumsum(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let this = cast(args.tensor(0)?, dtype)?;
    with_float!(dtype, F => scan(args, &this, &outs[0], 0.0, |sum: f64, _, it: F| {
        let sum = sum + f64::from(it);
        (sum, sum)
    }), else with_number!(dtype, &args.op.name, F => scan(args, &this, &outs[0], F::ZERO, |sum, _, it: F| {
        let sum = sum.add(it);
        (sum, sum)
    })))
}

fn cumprod(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let this = cast(args.tensor(0)?, dtype)?;
    with_float!(dtype, F => scan(args, &this, &outs[0], 1.0, |product: f64, _, it: F| {
        let product = product * f64::from(it);
        (product, product)
    }), else with_number!(dtype, &args.op.name, F => scan(args, &this, &outs[0], F::ONE, |product, _, it: F| {
        let product = product.mul(it);
        (product, product)
    })))
}

fn logcumsumexp(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    with_float!(dtype, &args.op.name, F => scan(args, args.tensor(0)?, &outs[0], f64::NEG_INFINITY, |so_far: f64, _, it: F| {
        let it = f64::from(it);
        let largest = so_far.larger(it);
        // Two equal infinities have no difference.
        let sum = match largest.is_infinite() {
            true => largest,
            false => largest + (so_far.smaller(it) - largest).exp().ln_1p(),
        };
        (sum, sum)
    }))
}

fn cumulative_extremum(args: &Args<'_, Tensor>, outs: &[Tensor], largest: bool) -> Result<()> {
    let this = args.tensor(0)?;
    let dtype: DType = this.dtype();
    with_real!(dtype, &args.op.name, F => {
        // The last of equal elements, and the last NaN.
        let wins = |it: F, so_far: F| {
            it.is_nan() || (!so_far.is_nan() && if largest { it >= so_far } else { it <= so_far })
        };
        let step = |carried: Option<(F, i64)>, i: usize, it: F| match carried {
            Some((so_far, at)) if !wins(it, so_far) => (so_far, at),
            Some(_) | None => (it, i as i64),
        };
        scan(args, this, &outs[0], None, |carried, i, it| {
            let best = step(carried, i, it);
            (Some(best), best.0)
        })?;
        scan(args, this, &outs[1], None, |carried, i, it| {
            let best = step(carried, i, it);
            (Some(best), best.1)
        })
    })
}
