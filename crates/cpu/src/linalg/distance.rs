//! Kernels of cross products and of distances between all pairs of rows. Their gradients are in
//! [`distance_backward`](super::distance_backward).

use crate::gemm::GemmElement;
use crate::numeric::dispatch::{with_float, with_gemm_element};
use crate::numeric::float::{Float, rounding};
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::{DType, Dims, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.linalg_cross.default", Kernel::Fill(cross)),
    ("aten._cdist_forward.default", Kernel::Fill(cdist)),
    ("aten._pdist_forward.default", Kernel::Fill(pdist)),
];

/// A tensor with the sizes of a result that it broadcasts to.
pub(crate) fn expanded(tensor: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let missing = sizes.len() - tensor.rank();
    let stride = |dim: usize| match dim.checked_sub(missing) {
        Some(dim) if tensor.sizes()[dim] != 1 => tensor.strides()[dim],
        _ => 0,
    };
    let strides: Dims = (0..sizes.len()).map(stride).collect();
    tensor.as_strided(sizes, &strides, tensor.offset())
}

fn cross(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    if matches!(dtype, DType::Float16 | DType::BFloat16) {
        // PyTorch rounds each of the products.
        return cross_products::<f32>(args, &out[0], rounding(dtype));
    }
    with_gemm_element!(dtype, &args.op.name, T => cross_products::<T>(args, &out[0], |it| it))
}

fn cross_products<T: GemmElement>(args: &Args<'_, Tensor>, out: &Tensor, round: fn(T) -> T) -> Result<()> {
    let dim = args.int(2)?;
    let dim = if dim < 0 { dim + out.rank() as i64 } else { dim } as usize;
    let row_major = |index: usize| expanded(args.tensor(index)?, out.sizes())?.contiguous();
    let (a, b) = (row_major(0)?, row_major(1)?);
    let (a, b) = (T::read(&a)?, T::read(&b)?);
    let inner: usize = out.sizes()[dim + 1..].iter().product();
    let minus_one = T::from_scalar(Scalar::Int(-1));
    T::write(out, |out| {
        for start in (0..out.len()).step_by(3 * inner.max(1)) {
            for at in start..start + inner {
                let [a, b] = [&a, &b].map(|it| [0, 1, 2].map(|axis| it.data()[at + axis * inner]));
                for axis in 0..3 {
                    let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
                    let minus = minus_one.mul(round(a[last].mul(b[next])));
                    out[at + axis * inner] = round(a[next].mul(b[last])).add(minus);
                }
            }
        }
        Ok(())
    })
}

fn cdist(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => distances::<A>(args, &out[0]))
}

/// How the distances along the axes make one distance.
fn norm<A: Float>(p: f64) -> fn(&[A], &[A], A) -> A {
    match p {
        0.0 => |a, b, _| fold(a, b, |sum, it| if it == A::ZERO { sum } else { sum + A::ONE }),
        1.0 => |a, b, _| fold(a, b, |sum, it| sum + it),
        2.0 => |a, b, _| fold(a, b, |sum, it| sum + it * it).sqrt(),
        f64::INFINITY => |a, b, _| fold(a, b, |max, it| if it > max || it.is_nan() { it } else { max }),
        _ => |a, b, p| fold(a, b, |sum, it| sum + it.powf(p)).powf(A::ONE / p),
    }
}

fn fold<A: Float>(a: &[A], b: &[A], mut of: impl FnMut(A, A) -> A) -> A {
    a.iter().zip(b).fold(A::ZERO, |sum, (&a, &b)| of(sum, (a - b).abs()))
}

fn distances<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (p, rank) = (args.float(2)?, out.rank());
    let n_columns = args.tensor(0)?.sizes()[args.tensor(0)?.rank() - 1];
    let matrices = |index: usize, n_rows: usize| -> Result<Tensor> {
        let mut sizes: Dims = out.sizes()[..rank - 2].into();
        sizes.extend([n_rows, n_columns]);
        expanded(args.tensor(index)?, &sizes)?.contiguous()
    };
    let (n_a, n_b) = (out.sizes()[rank - 2], out.sizes()[rank - 1]);
    let (a, b) = (matrices(0, n_a)?, matrices(1, n_b)?);
    let (a, b) = (Strided::<A>::dense(&a)?, Strided::<A>::dense(&b)?);
    let distance = norm::<A>(p);
    fill_float::<A, _>(out, |out| {
        for (at, out) in out.iter_mut().enumerate() {
            let row = at / n_b;
            let other = row / n_a * n_b + at % n_b;
            let [row, other] = [(&a, row), (&b, other)].map(|(it, row)| &it.data()[row * n_columns..][..n_columns]);
            *out = distance(row, other, A::of(p));
        }
    })
}

fn pdist(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    if out[0].numel() == 0 {
        return Ok(());
    }
    with_float!(dtype, &args.op.name, A => pairs::<A>(args, &out[0]))
}

fn pairs<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, p) = (args.tensor(0)?, args.float(1)?);
    let (n_rows, n_columns) = (input.sizes()[0], input.sizes()[1]);
    let input = Strided::<A>::dense(input)?;
    let distance = norm::<A>(p);
    let row = |at: usize| &input.data()[at * n_columns..][..n_columns];
    fill_float::<A, _>(out, |out| {
        let pairs = (0..n_rows).flat_map(|first| (first + 1..n_rows).map(move |second| (first, second)));
        for (out, (first, second)) in out.iter_mut().zip(pairs) {
            *out = distance(row(first), row(second), A::of(p));
        }
    })
}
