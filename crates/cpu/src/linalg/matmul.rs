//! Kernels of matrix products. Operands are used where they lie, whatever their strides; every product here is a batch
//! of matrices, of which there may be one, with one row or one column.

use crate::gemm::blocked::PackedRhs;
use crate::gemm::{self, Extent, GemmElement, MatrixView, MatrixViewMut, Start, gemm, gemm_packed};
use crate::numeric::dispatch::with_gemm_element;
use crate::numeric::parallel;
use crate::numeric::strided::Strided;
use std::any::Any;
use tracefx_core::allocate::collected;
use tracefx_core::{DType, Dims, Result, Scalar, Tensor};
use tracefx_exec::{Kernel, Prepared};
use tracefx_ops::Args;

/// What fills the result of a product, for a kernel of each call and for one with the right side laid out.
macro_rules! product {
    ($with_call:path, $rhs:literal) => {
        Kernel::Prepare {
            fill: |args, out| $with_call(args, &mut |call| call.run(args, &out[0])),
            prepare: |args, is_constant| if is_constant($rhs) { prepare(args, $with_call) } else { Ok(None) },
        }
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.mm.default", product!(with_mm, 1)),
    ("aten.bmm.default", product!(with_mm, 1)),
    ("aten.mv.default", Kernel::Overwrite(mv)),
    ("aten.dot.default", Kernel::Overwrite(dot)),
    ("aten.vdot.default", Kernel::Overwrite(vdot)),
    ("aten.addmm.default", product!(with_addmm, 2)),
    ("aten.baddbmm.default", product!(with_addmm, 2)),
    ("aten.addbmm.default", Kernel::Overwrite(addbmm)),
    ("aten.addmv.default", Kernel::Overwrite(addmv)),
    ("aten.linear.default", product!(with_linear, 1)),
];

/// Multiplications that one thread does for a batch of small matrices.
const TOGETHER: u64 = 1 << 17;

/// What is computed: `beta * addend + alpha * lhs * rhs`, where `lhs` and `rhs` are batches of matrices.
struct Call<'a> {
    lhs: &'a Tensor,
    rhs: &'a Tensor,
    addend: Option<&'a Tensor>,
    beta: Scalar,
    alpha: Scalar,
    /// The right side, a [`PackedRhs`] of the element that is computed with, where it was laid out before.
    packed: Option<&'a Packed>,
}

/// The right side of a product, of whatever element.
type Packed = dyn Any + Send + Sync;

/// Gives a product what its operator multiplies.
type WithCall = fn(&Args<'_, Tensor>, &mut dyn FnMut(&Call<'_>) -> Result<()>) -> Result<()>;

impl<'a> Call<'a> {
    fn plain(lhs: &'a Tensor, rhs: &'a Tensor) -> Self {
        Call { lhs, rhs, addend: None, beta: Scalar::Int(1), alpha: Scalar::Int(1), packed: None }
    }

    fn scaled(args: &'a Args<'_, Tensor>, lhs: &'a Tensor, rhs: &'a Tensor) -> Result<Self> {
        Ok(Call {
            addend: Some(args.tensor(0)?),
            beta: args.scalar(3)?,
            alpha: args.scalar(4)?,
            ..Call::plain(lhs, rhs)
        })
    }

    fn run(&self, args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
        with_gemm_element!(out.dtype(), &args.op.name, T => self.compute::<T>(out))
    }

    /// Lays out the right side.
    ///
    /// # Errors
    /// `OutOfMemory` where there is no room for it.
    fn pack(&self, args: &Args<'_, Tensor>, dtype: DType) -> Result<Option<Box<Packed>>> {
        with_gemm_element!(dtype, &args.op.name, T => {
            let (lhs, rhs) = (T::read(self.lhs)?, T::read(self.rhs)?);
            let (n_batch, m) = (lhs.sizes[0], lhs.sizes[1]);
            if n_batch != 1 && !is_one_product(&lhs, &rhs) {
                return Ok(None);
            }
            let size = Extent { m: n_batch * m, n: rhs.sizes[2], k: rhs.sizes[1] };
            Ok(gemm::pack(size, matrix(&lhs, 0), matrix(&rhs, 0))?.map(|it| Box::new(it) as Box<Packed>))
        })
    }

    fn compute<T: GemmElement>(&self, out: &Tensor) -> Result<()> {
        let (lhs, rhs) = (T::read(self.lhs)?, T::read(self.rhs)?);
        let &[n_batch, m, k] = &lhs.sizes[..] else { unreachable!("the left side is a batch of matrices") };
        let (n, out_rows) = (rhs.sizes[2], m);
        // What is multiplied by zero does not count, not even NaN.
        let addend = self.addend.filter(|_| self.beta.to_complex() != Scalar::Int(0).to_complex());
        let addend = addend.map(T::read).transpose()?;
        let is_empty = n_batch * m * n == 0 || self.alpha.to_complex() == Scalar::Int(0).to_complex();
        let (alpha, beta, one) =
            (T::from_scalar(self.alpha), T::from_scalar(self.beta), T::from_scalar(Scalar::Int(1)));
        // A row that is added as it is is where the sums start.
        let row = addend.as_ref().filter(|it| alpha == one && beta == one && it.sizes[..] == [n] && it.strides[0] == 1);
        let start = row.map_or(Start::Zero, |it| Start::Columns(&it.data()[..n]));
        let (n_batch, m) = if is_one_product(&lhs, &rhs) { (1, n_batch * m) } else { (n_batch, m) };
        let size = Extent { m, n, k };
        let packed = self.packed.and_then(|it| it.downcast_ref::<PackedRhs<T>>());
        T::write(out, |out| {
            if is_empty {
                out.fill(T::ZERO);
            } else if let Some(packed) = packed {
                gemm_packed(size, MatrixViewMut { data: out, row: n }, matrix(&lhs, 0), packed, start)?;
            } else {
                let n_together = ((TOGETHER / size.n_terms().max(1)) as usize).clamp(1, n_batch.max(1));
                parallel::try_parts_mut(out, n_together * m * n, |first, out| {
                    for (at, out) in out.chunks_exact_mut(m * n).enumerate() {
                        let batch = first / (m * n) + at;
                        let dst = MatrixViewMut { data: out, row: n };
                        gemm(size, dst, matrix(&lhs, batch), matrix(&rhs, batch), start)?;
                    }
                    Ok(())
                })?;
            }
            if alpha != one {
                out.iter_mut().for_each(|it| *it = alpha.mul(*it));
            }
            if let Some(addend) = addend.as_ref().filter(|_| row.is_none()) {
                add_scaled(out, Extent { m: out_rows, ..size }, addend, beta);
            }
            Ok(())
        })
    }
}

/// Whether a batch that shares its right side is one product of more rows.
fn is_one_product<T: GemmElement>(lhs: &Strided<'_, T>, rhs: &Strided<'_, T>) -> bool {
    rhs.strides[0] == 0 && lhs.strides[0] == lhs.sizes[1] * lhs.strides[1]
}

fn matrix<'a, T: GemmElement>(operand: &'a Strided<'_, T>, batch: usize) -> MatrixView<'a, T> {
    // A matrix without elements may lie anywhere.
    let data = operand.data().get(batch * operand.strides[0]..).unwrap_or(&[]);
    MatrixView { data, row: operand.strides[1], col: operand.strides[2] }
}

/// Adds `beta * addend`, broadcast to a batch of matrices of this size.
fn add_scaled<T: GemmElement>(out: &mut [T], Extent { m, n, .. }: Extent, addend: &Strided<'_, T>, beta: T) {
    let mut strides = [0; 3];
    let lead = 3 - addend.sizes.len();
    for (dim, (&size, &stride)) in addend.sizes.iter().zip(&addend.strides).enumerate() {
        strides[lead + dim] = if size == 1 { 0 } else { stride };
    }
    if n == 0 {
        return;
    }
    for (at, row) in out.chunks_exact_mut(n).enumerate() {
        let start = at / m * strides[0] + at % m * strides[1];
        if strides[2] == 1 {
            for (out, &it) in row.iter_mut().zip(&addend.data()[start..start + n]) {
                *out = out.add(beta.mul(it));
            }
        } else {
            for (j, out) in row.iter_mut().enumerate() {
                *out = out.add(beta.mul(addend.data()[start + j * strides[2]]));
            }
        }
    }
}

/// A tensor with a dimension of size one put in at each of these places.
fn unsqueezed(tensor: &Tensor, dims: &[usize]) -> Result<Tensor> {
    let (mut sizes, mut strides): (Dims, Dims) = (tensor.sizes().into(), tensor.strides().into());
    for &dim in dims {
        sizes.insert(dim, 1);
        strides.insert(dim, 0);
    }
    tensor.as_strided(&sizes, &strides, tensor.offset())
}

/// A matrix as a batch of one.
fn batched(tensor: &Tensor) -> Result<Tensor> {
    if tensor.rank() == 3 { Ok(tensor.clone()) } else { unsqueezed(tensor, &[0]) }
}

fn prepare(args: &Args<'_, Tensor>, with_call: WithCall) -> Result<Option<Box<Prepared>>> {
    let mut packed = None;
    with_call(args, &mut |call| {
        packed = call.pack(args, call.rhs.dtype())?;
        Ok(())
    })?;
    let Some(packed) = packed else { return Ok(None) };
    Ok(Some(Box::new(move |args, out| {
        with_call(args, &mut |call| Call { packed: Some(&*packed), ..*call }.run(args, &out[0]))
    })))
}

fn with_mm(args: &Args<'_, Tensor>, body: &mut dyn FnMut(&Call<'_>) -> Result<()>) -> Result<()> {
    let (lhs, rhs) = (batched(args.tensor(0)?)?, batched(args.tensor(1)?)?);
    body(&Call::plain(&lhs, &rhs))
}

fn mv(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (lhs, rhs) = (unsqueezed(args.tensor(0)?, &[0])?, unsqueezed(args.tensor(1)?, &[0, 2])?);
    Call::plain(&lhs, &rhs).run(args, &out[0])
}

fn dot(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (lhs, rhs) = (unsqueezed(args.tensor(0)?, &[0, 0])?, unsqueezed(args.tensor(1)?, &[0, 2])?);
    Call::plain(&lhs, &rhs).run(args, &out[0])
}

fn vdot(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (lhs, rhs) = (args.tensor(0)?, unsqueezed(args.tensor(1)?, &[0, 2])?);
    let lhs = with_gemm_element!(lhs.dtype(), &args.op.name, T => {
        let conjugated: Vec<T> = {
            let lhs = T::read(lhs)?;
            let stride = lhs.strides[0];
            collected((0..lhs.sizes[0]).map(|it| lhs.data()[it * stride].conj()))?
        };
        let vector = Tensor::from_slice(&conjugated, lhs.sizes())?;
        unsqueezed(&vector, &[0, 0])?
    });
    Call::plain(&lhs, &rhs).run(args, &out[0])
}

fn with_addmm(args: &Args<'_, Tensor>, body: &mut dyn FnMut(&Call<'_>) -> Result<()>) -> Result<()> {
    let (lhs, rhs) = (batched(args.tensor(1)?)?, batched(args.tensor(2)?)?);
    body(&Call::scaled(args, &lhs, &rhs)?)
}

/// PyTorch adds one product after the other, so that half-precision sums are rounded each time.
fn addbmm(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (lhs, rhs) = (args.tensor(1)?, args.tensor(2)?);
    let (n_batch, dtype) = (lhs.sizes()[0], out[0].dtype());
    let item = |it: &Tensor, batch: usize| {
        it.as_strided(&[1, it.sizes()[1], it.sizes()[2]], it.strides(), it.offset() + batch * it.strides()[0])
    };
    if n_batch == 0 {
        let (m, n) = (lhs.sizes()[1], rhs.sizes()[2]);
        let (lhs, rhs) = (Tensor::zeros(dtype, &[1, m, 0])?, Tensor::zeros(dtype, &[1, 0, n])?);
        return Call::scaled(args, &lhs, &rhs)?.run(args, &out[0]);
    }
    let mut sum: Option<Tensor> = None;
    for batch in 0..n_batch {
        let (lhs, rhs) = (item(lhs, batch)?, item(rhs, batch)?);
        let mut call = Call::scaled(args, &lhs, &rhs)?;
        if let Some(sum) = &sum {
            call = Call { addend: Some(sum), beta: Scalar::Int(1), ..call };
        }
        let is_last = batch + 1 == n_batch;
        let next = if is_last { out[0].clone() } else { Tensor::zeros(dtype, out[0].sizes())? };
        call.run(args, &next)?;
        sum = Some(next);
    }
    Ok(())
}

fn addmv(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (lhs, rhs) = (unsqueezed(args.tensor(1)?, &[0])?, unsqueezed(args.tensor(2)?, &[0, 2])?);
    // The addend is a vector of rows: one column of the result.
    let addend = args.tensor(0)?;
    let addend = unsqueezed(addend, &[addend.rank()])?;
    Call { addend: Some(&addend), ..Call::scaled(args, &lhs, &rhs)? }.run(args, &out[0])
}

fn with_linear(args: &Args<'_, Tensor>, body: &mut dyn FnMut(&Call<'_>) -> Result<()>) -> Result<()> {
    let (input, weight) = (args.tensor(0)?, args.tensor(1)?);
    let n_bias_dims = args.opt_tensor(2)?.map_or(0, Tensor::rank);
    if n_bias_dims > 1 && input.rank() != 2 || n_bias_dims > 0 && weight.rank() == 1 {
        return Err(args.unsupported("the kernel has no bias that depends on the row"));
    }
    let input = match input.rank() {
        1 => unsqueezed(input, &[0, 0])?,
        2 => batched(input)?,
        _ => {
            let input = input.contiguous()?;
            let k = input.sizes()[input.rank() - 1];
            let m = input.sizes()[..input.rank() - 1].iter().product();
            input.as_strided(&[1, m, k], &[0, k, 1], input.offset())?
        }
    };
    let weight = if weight.rank() == 1 { unsqueezed(weight, &[0, 2])? } else { batched(&weight.permuted(&[1, 0]))? };
    body(&Call { addend: args.opt_tensor(2)?, ..Call::plain(&input, &weight) })
}
