//! Kernels of the gradients of pooling: each window hands its gradient to the elements that it saw.

use crate::image::pooling::{Window, Windows, divisor};
use crate::numeric::dense::Dense;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float, try_fill_float};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.avg_pool2d_backward.default", Kernel::Fill(avg_pool)),
    ("aten.avg_pool3d_backward.default", Kernel::Fill(avg_pool)),
    ("aten._adaptive_avg_pool2d_backward.default", Kernel::Fill(adaptive_avg_pool)),
    ("aten._adaptive_avg_pool3d_backward.default", Kernel::Fill(adaptive_avg_pool)),
    ("aten.max_pool2d_with_indices_backward.default", Kernel::Fill(|args, out| max_pool(args, 7, out))),
    ("aten.max_pool3d_with_indices_backward.default", Kernel::Fill(|args, out| max_pool(args, 7, out))),
    ("aten.adaptive_max_pool2d_backward.default", Kernel::Fill(|args, out| max_pool(args, 2, out))),
    ("aten.adaptive_max_pool3d_backward.default", Kernel::Fill(|args, out| max_pool(args, 2, out))),
    ("aten.fractional_max_pool2d_backward.default", Kernel::Fill(|args, out| max_pool(args, 4, out))),
    ("aten.fractional_max_pool3d_backward.default", Kernel::Fill(|args, out| max_pool(args, 4, out))),
];

fn avg_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let windows = Windows::fixed(args, 2, false, args.tensor(1)?, args.tensor(0)?)?;
    spread(args, &windows, &out[0], divisor(args.bool(6)?, args.opt_int(7)?))
}

fn adaptive_avg_pool(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let windows = Windows::adaptive(args, args.tensor(1)?, args.tensor(0)?)?;
    spread(args, &windows, &out[0], divisor(true, None))
}

fn spread(
    args: &Args<'_, Tensor>,
    windows: &Windows,
    out: &Tensor,
    divisor: impl Fn([Window; 3]) -> i64,
) -> Result<()> {
    with_float!(out.dtype(), &args.op.name, A => spread_as::<A>(args.tensor(0)?, windows, out, divisor))
}

fn spread_as<A: Float>(
    grad: &Tensor,
    windows: &Windows,
    out: &Tensor,
    divisor: impl Fn([Window; 3]) -> i64,
) -> Result<()> {
    let grad = Strided::<A>::dense(grad)?;
    fill_float::<A, _>(out, |out| {
        windows.for_each(|at, plane, window| {
            let share = grad.data()[at] / A::of(divisor(window) as f64);
            windows.rows(window, |start, end| {
                out[plane + start..plane + end].iter_mut().for_each(|it| *it += share);
            });
        });
    })
}

/// Hands each gradient to the element that the indices at this position name.
fn max_pool(args: &Args<'_, Tensor>, indices: usize, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => scatter::<A>(args, indices, &out[0]))
}

fn scatter<A: Float>(args: &Args<'_, Tensor>, indices: usize, out: &Tensor) -> Result<()> {
    let (grad, indices) = (args.tensor(0)?, Dense::new(args.tensor(indices)?)?);
    let n_dims = if args.op.schema.name.contains("3d") { 3 } else { 2 };
    let volume = |it: &Tensor| it.sizes()[it.rank() - n_dims..].iter().product::<usize>();
    let (n_grad, n_out) = (volume(grad), volume(out));
    let grad = Strided::<A>::dense(grad)?;
    let indices = indices.read::<i64>();
    try_fill_float::<A, _>(out, |out| {
        for (at, &index) in indices.iter().enumerate() {
            let index = usize::try_from(index).ok().filter(|&it| it < n_out).ok_or_else(|| {
                let what = format!("found an invalid max index: {index} (the input has {n_out} elements)");
                Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name)
            })?;
            out[at / n_grad * n_out + index] += grad.data()[at];
        }
        Ok(())
    })
}
