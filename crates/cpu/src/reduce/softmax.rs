//! Kernels of softmax. The largest element is subtracted first, so that no exponential overflows. Half types round where
//! PyTorch rounds.

use crate::numeric::dispatch::with_float;
use crate::numeric::float::{Float, rounding};
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::parallel;
use crate::numeric::strided::{Strided, try_fill_float};
use crate::reduce::reduction::fold_lane;
use tracefx_core::allocate::filled;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._softmax.default", Kernel::Overwrite(softmax)),
    ("aten._log_softmax.default", Kernel::Overwrite(log_softmax)),
    ("aten._safe_softmax.default", Kernel::Overwrite(safe_softmax)),
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
    if out.numel() == 0 {
        return Ok(());
    }
    let input = args.tensor(0)?;
    let dtype = if out.dtype().size() > input.dtype().size() { out.dtype() } else { input.dtype() };
    with_float!(dtype, &args.op.name, A => compute::<A>(args, out, variant))
}

fn compute<A: Float>(args: &Args<'_, Tensor>, out: &Tensor, variant: Variant) -> Result<()> {
    let dim = args.int(1)?;
    let input = Strided::<A>::dense(args.tensor(0)?)?;
    let rank = out.rank() as i64;
    let dim = if dim < 0 { dim + rank.max(1) } else { dim } as usize;
    let n = out.sizes().get(dim).copied().unwrap_or(1);
    let inner: usize = out.sizes().get(dim + 1..).unwrap_or(&[]).iter().product();
    // PyTorch's half-precision logarithms along the last dimension are rounded at each step.
    let round = (dim + 1 >= out.rank() && out.dtype() != A::DTYPE).then(|| rounding::<A>(out.dtype()));
    try_fill_float::<A, _>(out, |out| {
        let input = &input.data()[..out.len()];
        if out.is_empty() {
            return Ok(());
        }
        parallel::try_parts_mut(out, parallel::whole_rows(n * inner), |at, out| {
            let n_columns = if inner > 1 { inner } else { 0 };
            let mut columns = filled(A::ZERO, 2 * n_columns)?;
            let (maxima, sums) = columns.split_at_mut(n_columns);
            let parts = out.chunks_exact_mut(n * inner).zip(input[at..].chunks_exact(n * inner));
            for (out, input) in parts {
                match round {
                    _ if inner > 1 => {
                        maxima.fill(A::LOWEST);
                        sums.fill(A::ZERO);
                        isa::run(Columns { out, input, maxima, sums, variant });
                    }
                    Some(round) => isa::run(Row { out, input, variant, round }),
                    None => isa::run(Row { out, input, variant, round: |it| it }),
                }
            }
            Ok(())
        })
    })
}

/// Softmax of one row.
struct Row<'a, A, R> {
    out: &'a mut [A],
    input: &'a [A],
    variant: Variant,
    round: R,
}

impl<A: Float, R: Fn(A) -> A> Work for Row<'_, A, R> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Row { out, input, variant, round } = self;
        let max = fold_lane(input, A::LOWEST, A::larger, A::larger);
        for (out, &it) in out.iter_mut().zip(input) {
            *out = (it - max).exp();
        }
        let sum = fold_lane(out, A::ZERO, |sum, it| sum + it, |a, b| a + b);
        match variant {
            Variant::Log => {
                let log = round(round(sum).ln());
                out.iter_mut().zip(input).for_each(|(out, &it)| *out = round(it - max) - log);
            }
            Variant::Safe if max == A::LOWEST => out.fill(A::ZERO),
            Variant::Plain | Variant::Safe => {
                let factor = A::ONE / sum;
                out.iter_mut().for_each(|it| *it *= factor);
            }
        }
    }
}

/// Softmax down the columns of a row-major matrix, all columns at once.
struct Columns<'a, A> {
    out: &'a mut [A],
    input: &'a [A],
    /// The largest element of each column, which begins at minus infinity.
    maxima: &'a mut [A],
    /// The sum of each column, which begins at zero.
    sums: &'a mut [A],
    variant: Variant,
}

impl<A: Float> Work for Columns<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Columns { out, input, maxima, sums, variant } = self;
        let inner = maxima.len();
        for row in input.chunks_exact(inner) {
            maxima.iter_mut().zip(row).for_each(|(max, &it)| *max = max.larger(it));
        }
        for (out, row) in out.chunks_exact_mut(inner).zip(input.chunks_exact(inner)) {
            for (((out, max), sum), &it) in out.iter_mut().zip(&*maxima).zip(&mut *sums).zip(row) {
                *out = (it - *max).exp();
                *sum += *out;
            }
        }
        if variant == Variant::Log {
            sums.iter_mut().for_each(|sum| *sum = sum.ln());
        }
        for (out, row) in out.chunks_exact_mut(inner).zip(input.chunks_exact(inner)) {
            let columns = out.iter_mut().zip(row).zip(maxima.iter().zip(&*sums));
            match variant {
                Variant::Log => columns.for_each(|((out, &it), (&max, &sum))| *out = it - max - sum),
                Variant::Plain => columns.for_each(|((out, _), (_, &sum))| *out /= sum),
                Variant::Safe => columns.for_each(|((out, _), (&max, &sum))| {
                    *out = if max == A::LOWEST { A::ZERO } else { *out / sum };
                }),
            }
        }
    }
}
