//! Dropout. Without training it changes nothing; in training it is random, and the random numbers of PyTorch's generator
//! are not reproduced here.

use crate::{Args, OpDef, Output, Tags, contiguous};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::dropout(Tensor input, float p, bool train) -> Tensor", dropout)
        .doc("In training, zeros some elements and scales the others; else the input itself.")
        .tags(Tags::RANDOM),
    OpDef::new("aten::feature_dropout(Tensor input, float p, bool train) -> Tensor", dropout)
        .doc("Dropout of whole channels.")
        .tags(Tags::RANDOM),
    OpDef::new("aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor", dropout)
        .doc("Dropout that keeps mean and variance.")
        .tags(Tags::RANDOM),
    OpDef::new("aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", dropout)
        .doc("Dropout of whole channels that keeps mean and variance.")
        .tags(Tags::RANDOM),
    OpDef::in_place("aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", "aten.dropout.default")
        .tags(Tags::RANDOM),
    OpDef::in_place(
        "aten::feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
        "aten.feature_dropout.default",
    )
    .tags(Tags::RANDOM),
    OpDef::in_place(
        "aten::alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
        "aten.alpha_dropout.default",
    )
    .tags(Tags::RANDOM),
    OpDef::new("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", native_dropout)
        .doc("Dropout, with the mask of the elements that were kept as a second result.")
        .tags(Tags::CORE.with(Tags::RANDOM)),
];

fn dropout(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, p) = (args.tensor(0)?, args.float(1)?);
    if !(0.0..=1.0).contains(&p) {
        return Err(args.invalid(format!("dropout probability has to be between 0 and 1, but got {p}")));
    }
    if !args.bool(2)? || p == 0.0 || input.sizes.contains(&SymInt::from(0)) {
        return Ok(vec![Output::Same(0)]);
    }
    Ok(contiguous(input.dtype, input.sizes.clone()))
}

fn native_dropout(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    let result = TensorMeta::contiguous(input.dtype, input.sizes.clone());
    let mask = TensorMeta::contiguous(DType::Bool, input.sizes.clone());
    Ok(vec![Output::Tensor(result), Output::Tensor(mask)])
}
