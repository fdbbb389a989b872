//! Kernels of the gradients of softmax and of its logarithm.

use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, try_fill_float};
use tracefx_core::allocate::filled;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._softmax_backward_data.default", Kernel::Fill(softmax)),
    ("aten._log_softmax_backward_data.default", Kernel::Fill(log_softmax)),
];

fn softmax(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    // y * (grad - sum(grad * y))
    with_float!(dtype, &args.op.name, A => compute::<A>(args, &out[0], |grad, y| grad * y, |grad, y, sum| y * (grad - sum)))
}

fn log_softmax(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    // grad - exp(y) * sum(grad)
    with_float!(dtype, &args.op.name, A => compute::<A>(args, &out[0], |grad, _| grad, |grad, y, sum| grad - y.exp() * sum))
}

/// Sums `term` along the dimension, and makes each element of the gradient and the result there, and the sum.
fn compute<A: Float>(
    args: &Args<'_, Tensor>,
    out: &Tensor,
    term: impl Fn(A, A) -> A,
    make: impl Fn(A, A, A) -> A,
) -> Result<()> {
    let (grad, result) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(1)?)?);
    let dim = normalize_dim(args, args.int(2)?, out.rank())?;
    let n = out.sizes().get(dim).copied().unwrap_or(1);
    let inner: usize = out.sizes().get(dim + 1..).unwrap_or(&[]).iter().product();
    try_fill_float::<A, _>(out, |out| {
        if out.is_empty() {
            return Ok(());
        }
        let mut sums = filled(A::ZERO, if inner > 1 { inner } else { 0 })?;
        let len = n * inner;
        let slices = grad.data().chunks_exact(len).zip(result.data().chunks_exact(len));
        for (out, (grad, result)) in out.chunks_exact_mut(len).zip(slices) {
            if inner == 1 {
                let chunks = grad.chunks(64).zip(result.chunks(64));
                let sum = chunks.fold(A::ZERO, |sum, (grad, result)| {
                    sum + grad.iter().zip(result).fold(A::ZERO, |sum, (&grad, &y)| sum + term(grad, y))
                });
                let pairs = grad.iter().zip(result);
                out.iter_mut().zip(pairs).for_each(|(out, (&grad, &y))| *out = make(grad, y, sum));
                continue;
            }
            sums.fill(A::ZERO);
            for (grad, result) in grad.chunks_exact(inner).zip(result.chunks_exact(inner)) {
                let pairs = grad.iter().zip(result);
                sums.iter_mut().zip(pairs).for_each(|(sum, (&grad, &y))| *sum += term(grad, y));
            }
            for (at, out) in out.iter_mut().enumerate() {
                *out = make(grad[at], result[at], sums[at % inner]);
            }
        }
        Ok(())
    })
}
