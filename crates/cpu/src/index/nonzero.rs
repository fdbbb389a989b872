//! Kernels of masks and of elements that are not zero, in row-major order.

use crate::numeric::dense::{Dense, fill, fill_bits};
use crate::numeric::dispatch::{with_bits, with_element};
use crate::numeric::strided_copy::{Offsets, bits, gather_places};
use tracefx_core::allocate::{collected, push};
use tracefx_core::{DType, Element, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.masked_scatter.default", Kernel::Fill(masked_scatter)),
    ("aten.masked_scatter_backward.default", Kernel::Fill(masked_scatter_backward)),
    ("aten.masked_select.default", Kernel::Make(masked_select)),
    ("aten.nonzero.default", Kernel::Make(nonzero)),
    ("aten.nonzero_static.default", Kernel::Fill(nonzero_static)),
];

/// Which elements are not zero, in row-major order.
fn is_set(tensor: &Tensor) -> Result<Vec<bool>> {
    let is_nonzero = |it: Scalar| match it {
        Scalar::Bool(it) => it,
        Scalar::Int(it) => it != 0,
        Scalar::Float(it) => it != 0.0,
        Scalar::Complex(it) => it.re != 0.0 || it.im != 0.0,
    };
    let dense = Dense::new(tensor)?;
    with_element!(tensor.dtype(), "nonzero", T => {
        collected(dense.read::<T>().iter().map(|it| is_nonzero(it.to_scalar())))
    })
}

/// Calls `visit` with the position of each element that is not zero.
fn visit_nonzero(tensor: &Tensor, mut visit: impl FnMut(&[usize]) -> Result<()>) -> Result<()> {
    let mut position = vec![0usize; tensor.rank()];
    for it in is_set(tensor)? {
        if it {
            visit(&position)?;
        }
        for dim in (0..position.len()).rev() {
            position[dim] += 1;
            if position[dim] < tensor.sizes()[dim] {
                break;
            }
            position[dim] = 0;
        }
    }
    Ok(())
}

fn nonzero(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let base = args.tensor(0)?;
    let rank = base.rank();
    let (mut positions, mut n) = (Vec::new(), 0);
    visit_nonzero(base, |position| {
        n += 1;
        position.iter().try_for_each(|&it| push(&mut positions, it))
    })?;
    // As in PyTorch, each column of the result lies together.
    let columns = Tensor::zeros(DType::Int64, &[rank, n])?;
    fill::<i64, _>(&columns, |out| {
        for (at, &it) in positions.iter().enumerate() {
            out[at % rank * n + at / rank] = it as i64;
        }
    });
    Ok(vec![Value::Tensor(columns.permuted(&[1, 0]))])
}

fn nonzero_static(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, filler) = (args.tensor(0)?, args.int(2)?);
    let mut positions = Vec::new();
    visit_nonzero(base, |position| position.iter().try_for_each(|&it| push(&mut positions, it)))?;
    fill::<i64, _>(&results[0], |out| {
        out.fill(filler);
        out.iter_mut().zip(&positions).for_each(|(out, &it)| *out = it as i64);
    });
    Ok(())
}

/// A tensor stretched to these sizes, to which it broadcasts.
fn stretched(tensor: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let lead = sizes.len() - tensor.rank();
    let stride = |dim: usize| match dim.checked_sub(lead) {
        Some(own) if tensor.sizes()[own] != 1 => tensor.strides()[own],
        Some(_) | None => 0,
    };
    let strides: Vec<usize> = (0..sizes.len()).map(stride).collect();
    tensor.as_strided(sizes, &strides, tensor.offset())
}

/// The first two arguments broadcast: the elements in row-major order, and where the mask is set.
fn masked(args: &Args<'_, Tensor>) -> Result<(Tensor, Vec<usize>)> {
    let (base, mask) = (args.tensor(0)?, args.tensor(1)?);
    let rank = base.rank().max(mask.rank());
    let size = |it: &Tensor, dim: usize| (dim + it.rank()).checked_sub(rank).map_or(1, |dim| it.sizes()[dim]);
    // One of the two is one where they differ; a size of zero wins over a one.
    let sizes: Vec<usize> =
        (0..rank).map(|dim| if size(base, dim) == 1 { size(mask, dim) } else { size(base, dim) }).collect();
    let (base, mask) = (stretched(base, &sizes)?.contiguous()?, is_set(&stretched(mask, &sizes)?)?);
    Ok((base, collected((0..mask.len()).filter(|&at| mask[at]))?))
}

/// Copies these elements to the first ones of a result.
fn pick(base: &Tensor, picked: &[usize], result: &Tensor) {
    with_bits!(base.dtype(), T => {
        let guard = base.storage().read();
        let from = bits::<T>(guard.bytes());
        fill_bits::<T, _>(result, |out| {
            out.iter_mut().zip(picked).for_each(|(out, &at)| *out = from[base.offset() + at]);
        });
    });
}

fn masked_select(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (base, picked) = masked(args)?;
    let res = Tensor::zeros(base.dtype(), &[picked.len()])?;
    pick(&base, &picked, &res);
    Ok(vec![Value::Tensor(res)])
}

fn masked_scatter_backward(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (grad, picked) = masked(args)?;
    if picked.len() > results[0].numel() {
        let (sizes, n) = (results[0].sizes(), picked.len());
        return Err(args.bad_shape(format!("shape '{sizes:?}' is invalid for input of size {n}")));
    }
    pick(&grad, &picked, &results[0]);
    Ok(())
}

fn masked_scatter(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, source, result) = (args.tensor(0)?, args.tensor(2)?.contiguous()?, &results[0]);
    gather_places(base, &Offsets::of(&stretched(base, result.sizes())?), result);
    let mask = is_set(&stretched(args.tensor(1)?, result.sizes())?)?;
    let picked = collected((0..mask.len()).filter(|&at| mask[at]))?;
    if picked.len() > source.numel() {
        return Err(args.bad_shape("Number of elements of source < number of ones in mask"));
    }
    with_bits!(result.dtype(), T => {
        let guard = source.storage().read();
        let from = bits::<T>(guard.bytes());
        fill_bits::<T, _>(result, |out| {
            picked.iter().enumerate().for_each(|(at, &to)| out[to] = from[source.offset() + at]);
        });
    });
    Ok(())
}
