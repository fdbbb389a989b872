//! Packed sequences: the steps of sequences of different lengths one behind the other, without padding.

use crate::core::elementwise::check_fits;
use crate::recurrent::pack_gradient;
use crate::{Args, OpDef, Output, Tags, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)", pack)
        .doc("The steps of padded sequences without their padding, and how many sequences each step has.")
        .vjp(pack_gradient::pack)
        .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, \
         int total_length) -> (Tensor, Tensor)",
        unpack,
    )
    .doc("Packed sequences with padding again, and their lengths.")
    .vjp(pack_gradient::unpack)
    .tags(Tags::DATA_DEPENDENT_SHAPE),
];

fn check_lengths(args: &Args<'_, TensorMeta>) -> Result<()> {
    let lengths = args.tensor(1)?;
    if lengths.dtype != DType::Int64 || lengths.sizes.len() != 1 {
        let name = &args.op.schema.args[1].name;
        let what = format!(
            "'{name}' argument should be a 1D CPU int64 tensor, but got {}D {} Tensor",
            lengths.sizes.len(),
            lengths.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(())
}

fn pack(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_lengths(args)?;
    let sizes = &args.tensor(0)?.sizes;
    if sizes.len() < 2 {
        return Err(args.bad_shape("padded sequences need a dimension of steps and one of sequences"));
    }
    let data = [args.new_size()].into_iter().chain(sizes[2..].iter().cloned()).collect();
    Ok(vec![Output::unknown(args.tensor(0)?.dtype, data), Output::unknown(DType::Int64, vec![args.new_size()])])
}

fn unpack(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_lengths(args)?;
    let data = args.tensor(0)?;
    let Some((_, rest)) = data.sizes.split_first() else {
        return Err(args.bad_shape("packed sequences need a dimension of steps"));
    };
    let n_steps = match args.int(4)? {
        total @ 1.. => total.into(),
        _ => args.tensor(1)?.sizes[0].clone(),
    };
    let n_sequences = args.new_size();
    let sizes = [n_steps, n_sequences.clone()].into_iter().chain(rest.iter().cloned()).collect();
    check_fits(args.scalar(3)?, data.dtype)?;
    let mut padded = TensorMeta::contiguous(data.dtype, sizes);
    // The steps lie one behind the other in any case.
    if args.bool(2)? {
        padded.sizes.swap(0, 1);
        padded.strides.swap(0, 1);
    }
    Ok(vec![Output::Unknown(Value::Tensor(padded)), Output::unknown(DType::Int64, vec![n_sequences])])
}
