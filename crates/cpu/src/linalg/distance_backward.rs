//! Kernels of the gradients of distances between rows, following aten/src/ATen/native/cpu/DistanceOpsKernel.cpp.

use crate::linalg::distance::expanded;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::{Dims, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] =
    &[("aten._cdist_backward.default", Kernel::Fill(cdist)), ("aten._pdist_backward.default", Kernel::Fill(pdist))];

/// What one axis adds to the gradient of the first row: by the difference along the axis, the gradient of the distance,
/// the distance, and the norm.
type Slope<A> = fn(A, A, A, f64) -> A;

fn sign<A: Float>(it: A) -> A {
    if it > A::ZERO {
        A::ONE
    } else if it < A::ZERO {
        -A::ONE
    } else {
        A::ZERO
    }
}

fn slope<A: Float>(p: f64) -> Slope<A> {
    match p {
        0.0 => |_, _, _, _| A::ZERO,
        1.0 => |difference, grad, _, _| grad * sign(difference),
        // Rows that are the same have no direction in which they are apart.
        2.0 => |difference, grad, distance, _| {
            if distance == A::ZERO { A::ZERO } else { grad * difference / distance }
        },
        // The axis that makes the distance, or each that does.
        f64::INFINITY => |difference, grad, distance, _| {
            if difference.abs() == distance { grad * sign(difference) } else { A::ZERO }
        },
        _ if p < 2.0 => |difference, grad, distance, p| {
            if distance == A::ZERO || (difference == A::ZERO && p < 1.0) {
                return A::ZERO;
            }
            let power = A::of(p - 1.0);
            sign(difference) * difference.abs().powf(power) * grad / distance.powf(power)
        },
        _ => |difference, grad, distance, p| {
            if distance == A::ZERO {
                return A::ZERO;
            }
            difference * difference.abs().powf(A::of(p - 2.0)) * grad / distance.powf(A::of(p - 1.0))
        },
    }
}

fn cdist(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => between::<A>(args, &out[0]))
}

fn between<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    if out.numel() == 0 || args.tensor(0)?.numel() == 0 {
        return Ok(());
    }
    let (p, rank) = (args.float(3)?, out.rank());
    let (n, width) = (out.sizes()[rank - 2], out.sizes()[rank - 1]);
    let m = args.tensor(2)?.sizes()[args.tensor(2)?.rank() - 2];
    let mut second_sizes: Dims = out.sizes()[..rank - 2].into();
    second_sizes.extend([m, width]);
    let first = expanded(args.tensor(1)?, out.sizes())?.contiguous()?;
    let second = expanded(args.tensor(2)?, &second_sizes)?.contiguous()?;
    let (first, second) = (Strided::<A>::dense(&first)?, Strided::<A>::dense(&second)?);
    let (grad, distances) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(4)?)?);
    let slope = slope::<A>(p);
    fill_float::<A, _>(out, |out| {
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            let a = &first.data()[row * width..][..width];
            for other in 0..m {
                let b = &second.data()[(row / n * m + other) * width..][..width];
                let (grad, distance) = (grad.data()[row * m + other], distances.data()[row * m + other]);
                for (out, (&a, &b)) in out.iter_mut().zip(a.iter().zip(b)) {
                    *out += slope(a - b, grad, distance, p);
                }
            }
        }
    })
}

fn pdist(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => among::<A>(args, &out[0]))
}

fn among<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let p = args.float(2)?;
    let (n, width) = (out.sizes()[0], out.sizes()[1]);
    let input = Strided::<A>::dense(args.tensor(1)?)?;
    let (grad, distances) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(3)?)?);
    let slope = slope::<A>(p);
    let pairs = (0..n).flat_map(|first| (first + 1..n).map(move |second| (first, second)));
    fill_float::<A, _>(out, |out| {
        for (at, (first, second)) in pairs.enumerate() {
            for axis in 0..width {
                let difference = input.data()[first * width + axis] - input.data()[second * width + axis];
                let share = slope(difference, grad.data()[at], distances.data()[at], p);
                out[first * width + axis] += share;
                out[second * width + axis] += -share;
            }
        }
    })
}
