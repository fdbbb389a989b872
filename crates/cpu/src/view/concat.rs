//! Kernels that put tensors together and repeat them.

use crate::numeric::dense::fill;
use crate::numeric::dispatch::with_element;
use crate::numeric::map::cast;
use crate::numeric::strided_copy::{Axis, Offsets, copy_to, gather_places};
use tracefx_core::allocate::collected;
use tracefx_core::{Code, Diagnostic, Element, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.block_diag.default", Kernel::Fill(block_diag)),
    ("aten.cat.default", Kernel::Fill(cat)),
    ("aten.repeat.default", Kernel::Fill(repeat)),
    ("aten.repeat_interleave.Tensor", Kernel::Make(repeat_interleave)),
];

fn cat(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let result = &results[0];
    let dim = normalize_dim(args, args.int(1)?, result.rank())?;
    let mut start = 0;
    // An empty tensor, of whatever rank, has nothing to add.
    for tensor in args.tensors(0)?.into_iter().filter(|it| it.numel() > 0) {
        let tensor = cast(tensor, result.dtype())?;
        copy_to(&tensor, result, &Offsets::new(start * result.strides()[dim], result.strides()));
        start += tensor.sizes()[dim];
    }
    Ok(())
}

fn block_diag(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let result = &results[0];
    let (mut row, mut column) = (0, 0);
    for tensor in args.tensors(0)? {
        let tensor = cast(tensor, result.dtype())?;
        let start = row * result.strides()[0] + column;
        let (height, width) = match *tensor.sizes() {
            [m, n] => (m, n),
            [n] => (1, n),
            _ => (1, 1),
        };
        if tensor.numel() > 0 {
            copy_to(&tensor, result, &Offsets::new(start, &result.strides()[2 - tensor.rank()..]));
        }
        (row, column) = (row + height, column + width);
    }
    Ok(())
}

fn repeat(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, result) = (args.tensor(0)?, &results[0]);
    if result.numel() == 0 {
        return Ok(());
    }
    // Each dimension is one of repetitions around the tensor's own, which is a view of the result as well.
    let lead = result.rank() - base.rank();
    let (mut sizes, mut axes) = (Vec::new(), Vec::new());
    for (dim, &size) in result.sizes().iter().enumerate() {
        let (own, stride) = dim.checked_sub(lead).map_or((1, 0), |dim| (base.sizes()[dim], base.strides()[dim]));
        sizes.extend([size / own, own]);
        axes.extend([Axis::Step(0), Axis::Step(stride)]);
    }
    let apart = result.as_strided(&sizes, &tracefx_core::contiguous_strides(&sizes), 0)?;
    gather_places(base, &Offsets { start: base.offset(), axes }, &apart);
    Ok(())
}

fn repeat_interleave(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let repeats = args.tensor(0)?;
    let counts: Vec<i64> = with_element!(repeats.dtype(), "repeat_interleave", T => {
        collected(repeats.to_vec::<T>()?.into_iter().map(|it| it.to_scalar().to_i64()))?
    });
    if counts.iter().any(|&it| it < 0) {
        return Err(args.invalid("repeats can not be negative"));
    }
    let total = counts.iter().try_fold(0i64, |sum, &it| sum.checked_add(it)).and_then(|it| usize::try_from(it).ok());
    let total = total.ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))?;
    if let Some(size) = args.opt_int(1)?
        && size != total as i64
    {
        return Err(Diagnostic::new(Code::InvalidArgument, "allocated size does not match required size"));
    }
    let res = Tensor::zeros(repeats.dtype(), &[total])?;
    with_element!(repeats.dtype(), "repeat_interleave", T => fill::<T, _>(&res, |to| {
        let mut at = 0;
        for (i, &count) in counts.iter().enumerate() {
            to[at..at + count as usize].fill(T::from_scalar(tracefx_core::Scalar::Int(i as i64)));
            at += count as usize;
        }
    }));
    Ok(vec![Value::Tensor(res)])
}
