//! Kernels of packed sequences: which step of which sequence stands where, and copies from here to there.

use crate::numeric::dense::Dense;
use crate::numeric::strided_copy::{Axis, Offsets, copy};
use crate::view::copy::fill_with;
use tracefx_core::allocate::collected;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._pack_padded_sequence.default", Kernel::Make(pack)),
    ("aten._pad_packed_sequence.default", Kernel::Make(unpack)),
];

/// The elements of the steps of padded sequences in the order in which they are packed: step by step.
fn packed_places(padded: &Tensor, batch_sizes: &[usize], step_dim: usize) -> Result<Offsets> {
    let (step_stride, sequence_stride) = (padded.strides()[step_dim], padded.strides()[1 - step_dim]);
    let rows = batch_sizes.iter().enumerate();
    let at = rows.flat_map(|(step, &n)| (0..n).map(move |it| step * step_stride + it * sequence_stride));
    let at = collected(at)?;
    let rest = padded.strides()[2..].iter().map(|&it| Axis::Step(it));
    Ok(Offsets { start: padded.offset(), axes: std::iter::once(Axis::At(at)).chain(rest).collect() })
}

fn pack(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (padded, lengths) = (args.tensor(0)?, Dense::new(args.tensor(1)?)?);
    let lengths = lengths.read::<i64>();
    let step_dim = usize::from(args.bool(2)?);
    let (n_steps, n_sequences) = (padded.sizes()[step_dim], padded.sizes()[1 - step_dim]);
    if lengths.len() != n_sequences {
        let what = format!(
            "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={n_sequences})",
            lengths.len()
        );
        return Err(args.bad_shape(what));
    }
    if lengths.last().is_some_and(|it| *it <= 0) {
        return Err(args.invalid(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0",
        ));
    }
    if !lengths.iter().rev().is_sorted() {
        return Err(args.invalid("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."));
    }
    let longest = lengths.first().map_or(0, |it| *it as usize);
    if longest > n_steps {
        return Err(args.invalid(format!("a sequence of {longest} steps is longer than the padded {n_steps}")));
    }
    let n_longer = |step: usize| lengths.partition_point(|it| *it > step as i64);
    let batch_sizes: Vec<usize> = collected((0..longest).map(n_longer))?;
    let sizes = [&[batch_sizes.iter().sum()], &padded.sizes()[2..]].concat();
    let data = Tensor::zeros(padded.dtype(), &sizes)?;
    copy(&sizes, (padded, &packed_places(padded, &batch_sizes, step_dim)?), (&data, &Offsets::of(&data)));
    let batch_sizes: Vec<i64> = collected(batch_sizes.iter().map(|&it| it as i64))?;
    Ok(vec![Value::Tensor(data), Value::Tensor(Tensor::from_slice(&batch_sizes, &[batch_sizes.len()])?)])
}

fn unpack(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (data, batch_sizes) = (args.tensor(0)?, Dense::new(args.tensor(1)?)?);
    let batch_sizes = batch_sizes.read::<i64>();
    let is_batch_first = args.bool(2)?;
    let n_sequences = batch_sizes.first().copied().unwrap_or(0);
    let total = batch_sizes.iter().try_fold(0usize, |sum, it| sum.checked_add(usize::try_from(*it).ok()?));
    if !batch_sizes.iter().rev().is_sorted() || total != Some(data.sizes()[0]) {
        return Err(args.invalid("batch_sizes must fall step by step and add up to the packed steps"));
    }
    let batch_sizes: Vec<usize> = collected(batch_sizes.iter().map(|&it| it as usize))?;
    let n_steps = match args.int(4)? {
        total if total > 0 => {
            if (total as usize) < batch_sizes.len() {
                let n = batch_sizes.len();
                return Err(args.invalid(format!("Expected total_length to be at least the length of the longest sequence in input, but got total_length={total} and max sequence length being {n}")));
            }
            total as usize
        }
        _ => batch_sizes.len(),
    };
    let n_sequences = n_sequences as usize;
    let mut padded = Tensor::zeros(data.dtype(), &[&[n_steps, n_sequences], &data.sizes()[1..]].concat())?;
    fill_with(&padded, args.scalar(3)?)?;
    copy(data.sizes(), (data, &Offsets::of(data)), (&padded, &packed_places(&padded, &batch_sizes, 0)?));
    if is_batch_first {
        let order: Vec<usize> = [1, 0].into_iter().chain(2..padded.rank()).collect();
        padded = padded.permuted(&order);
    }
    let length = |at: usize| batch_sizes.partition_point(|it| *it > at) as i64;
    let lengths: Vec<i64> = collected((0..n_sequences).map(length))?;
    Ok(vec![Value::Tensor(padded), Value::Tensor(Tensor::from_slice(&lengths, &[lengths.len()])?)])
}
