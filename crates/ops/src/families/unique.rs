//! The different elements or slices of a tensor, where each one went, and how often it came.

use super::lookup::wrong_dtype;
use crate::{Args, OpDef, Output, Tags, normalize_dim};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", |args| {
        elements(args, 2)
    })
    .doc("The different elements, in order.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        |args| elements(args, 3),
    )
    .doc("The different elements, in order.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
        |args| match args.opt_int(3)? {
            Some(dim) => slices(args, dim),
            None => elements(args, 3),
        },
    )
    .doc("The elements without repetitions in a row.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        |args| slices(args, args.int(1)?),
    )
    .doc("The different slices along a dimension, in order.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        |args| slices(args, args.int(1)?),
    )
    .doc("The slices along a dimension without repetitions in a row.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
];

fn elements(args: &Args<'_, TensorMeta>, n_results: usize) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    if dtype.is_complex() {
        return Err(wrong_dtype(args, format!("\"unique\" not implemented for '{}'", dtype.cpp_name())));
    }
    Ok(vec![Output::Unknown; n_results])
}

fn slices(args: &Args<'_, TensorMeta>, dim: i64) -> Result<Vec<Output>> {
    let sizes = &args.tensor(0)?.sizes;
    let dim = normalize_dim(args, dim, sizes.len())?;
    if sizes.iter().enumerate().any(|(at, size)| at != dim && *size == 0) {
        return Err(
            args.bad_shape("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        );
    }
    elements(args, 3)
}
