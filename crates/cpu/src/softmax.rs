//! Kernels of softmax. The largest element is subtracted first, so that no exponential overflows.

use crate::real::{Real, Strided, fill_real, rounding, with_real};
use tracefx_core::{Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._softmax.default", Kernel::Fill(softmax)),
    ("aten._log_softmax.default", Kernel::Fill(log_softmax)),
    ("aten._safe_softmax.default", Kernel::Fill(safe_softmax)),
];

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Plain,
    Log,
    /// Zeros where the whole row is minus infinity.
    Safe,
}

fn softmax(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    run(args, &out[0], Variant::Plain)
}

fn log_softmax(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    run(args, &out[0], Variant::Log)
}

fn safe_softmax(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    run(args, &out[0], Variant::Safe)
}

fn run(args: &Args<'_, Tensor>, out: &Tensor, variant: Variant) -> Result<()> {
    let input = args.tensor(0)?;
    let dtype = if out.dtype().size() > input.dtype().size() { out.dtype() } else { input.dtype() };
    with_real!(dtype, A => compute::<A>(args, out, variant),
        else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn compute<A: Real>(args: &Args<'_, Tensor>, out: &Tensor, variant: Variant) -> Result<()> {
    let dim = args.int(1)?;
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let rank = out.rank() as i64;
    let dim = if dim < 0 { dim + rank.max(1) } else { dim } as usize;
    let n = out.sizes().get(dim).copied().unwrap_or(1);
    let inner: usize = out.sizes().get(dim + 1..).unwrap_or(&[]).iter().product();
    // PyTorch's half-precision logarithms along the last dimension are rounded at each step.
    let is_last = dim + 1 >= out.rank();
    let round = rounding::<A>(if is_last { out.dtype() } else { A::DTYPE });
    fill_real::<A, _>(out, |out| {
        if out.is_empty() {
            return;
        }
        let input = &input.data()[..out.len()];
        for (out, input) in out.chunks_exact_mut(n * inner).zip(input.chunks_exact(n * inner)) {
            if inner == 1 {
                row(out, input, variant, round);
            } else {
                columns(out, input, inner, variant);
            }
        }
    });
    Ok(())
}

/// The larger one; NaN is larger than everything.
fn larger<A: Real>(max: A, it: A) -> A {
    if it > max || it.is_nan() { it } else { max }
}

fn row<A: Real>(out: &mut [A], input: &[A], variant: Variant, round: fn(A) -> A) {
    let max = input.iter().fold(-A::INFINITY, |max, &it| larger(max, it));
    for (out, &it) in out.iter_mut().zip(input) {
        *out = (it - max).exp();
    }
    let sum = out.chunks(64).fold(A::ZERO, |sum, chunk| sum + chunk.iter().fold(A::ZERO, |sum, &it| sum + it));
    match variant {
        Variant::Log => {
            let log = round(round(sum).ln());
            out.iter_mut().zip(input).for_each(|(out, &it)| *out = round(it - max) - log);
        }
        Variant::Safe if max == -A::INFINITY => out.fill(A::ZERO),
        Variant::Plain | Variant::Safe => {
            let factor = A::ONE / sum;
            out.iter_mut().for_each(|it| *it *= factor);
        }
    }
}

/// Softmax down the columns of a row-major matrix with `inner` columns, all columns at once.
fn columns<A: Real>(out: &mut [A], input: &[A], inner: usize, variant: Variant) {
    let (mut max, mut sum) = (vec![-A::INFINITY; inner], vec![A::ZERO; inner]);
    for row in input.chunks_exact(inner) {
        max.iter_mut().zip(row).for_each(|(max, &it)| *max = larger(*max, it));
    }
    for (out, row) in out.chunks_exact_mut(inner).zip(input.chunks_exact(inner)) {
        for at in 0..inner {
            out[at] = (row[at] - max[at]).exp();
            sum[at] += out[at];
        }
    }
    if variant == Variant::Log {
        sum.iter_mut().for_each(|it| *it = it.ln());
    }
    for (out, row) in out.chunks_exact_mut(inner).zip(input.chunks_exact(inner)) {
        for at in 0..inner {
            out[at] = match variant {
                Variant::Log => row[at] - max[at] - sum[at],
                Variant::Safe if max[at] == -A::INFINITY => A::ZERO,
                Variant::Plain | Variant::Safe => out[at] / sum[at],
            };
        }
    }
}
