//! The different elements or slices of a tensor, where each one went, and how often it came.

use crate::index::gather::wrong_dtype;
use crate::{Args, OpDef, Output, Tags, normalize_dim};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", |args| {
        elements(args, [args.bool(2)?, false], 2)
    })
    .doc("The different elements, in order.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> \
             (Tensor, Tensor, Tensor)",
        |args| elements(args, [args.bool(2)?, args.bool(3)?], 3),
    )
    .doc("The different elements, in order.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? \
             dim=None) -> (Tensor, Tensor, Tensor)",
        |args| match args.opt_int(3)? {
            Some(dim) if (args.tensor(0)?.sizes.len(), dim) != (1, 0) => slices(args, dim),
            Some(_) | None => elements(args, [args.bool(1)?, args.bool(2)?], 3),
        },
    )
    .doc("The elements without repetitions in a row.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool \
             return_counts=False) -> (Tensor, Tensor, Tensor)",
        |args| slices(args, args.int(1)?),
    )
    .doc("The different slices along a dimension, in order.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new(
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool \
             return_counts=False) -> (Tensor, Tensor, Tensor)",
        |args| slices(args, args.int(1)?),
    )
    .doc("The slices along a dimension without repetitions in a row.")
    .tags(Tags::DATA_DEPENDENT_SHAPE),
];

/// How many of these are distinct: of a number that is symbolic PyTorch takes no bound.
fn distinct(args: &Args<'_, TensorMeta>, n: SymInt) -> SymInt {
    if n.as_int().is_some() { args.new_size_up_to(&n) } else { args.new_size() }
}

/// `asked` says whether it is told where each element went, and how often each came; else those results are empty.
fn elements(args: &Args<'_, TensorMeta>, asked: [bool; 2], n_results: usize) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    check_dtype(args, this)?;
    let n = distinct(args, this.sizes.iter().product());
    let mut results = vec![Output::unknown(this.dtype, vec![n.clone()])];
    results.extend(notes(this.sizes.clone(), n, asked));
    results.truncate(n_results);
    Ok(results)
}

/// Of slices, PyTorch always tells where they went and how often they came.
fn slices(args: &Args<'_, TensorMeta>, dim: i64) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let mut sizes = this.sizes.clone();
    let dim = normalize_dim(args, dim, sizes.len())?;
    if sizes.iter().enumerate().any(|(at, size)| at != dim && *size == 0) {
        return Err(
            args.bad_shape("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        );
    }
    check_dtype(args, this)?;
    let n = distinct(args, sizes.get(dim).cloned().unwrap_or(SymInt::ONE));
    // A single number counts as a vector of one.
    let size = match sizes.get_mut(dim) {
        Some(size) => std::mem::replace(size, n.clone()),
        None => SymInt::ONE,
    };
    let mut results = vec![Output::unknown(this.dtype, sizes)];
    results.extend(notes(vec![size], n, [true; 2]));
    Ok(results)
}

fn notes(inverse: Vec<SymInt>, n: SymInt, asked: [bool; 2]) -> [Output; 2] {
    let sizes = [inverse, vec![n]];
    let mut it =
        sizes.into_iter().zip(asked).map(|(sizes, is_asked)| if is_asked { sizes } else { vec![SymInt::ZERO] });
    std::array::from_fn(|_| Output::unknown(DType::Int64, it.next().unwrap_or_default()))
}

fn check_dtype(args: &Args<'_, TensorMeta>, this: &TensorMeta) -> Result<()> {
    let dtype = this.dtype;
    if dtype.is_complex() {
        return Err(wrong_dtype(args, format!("\"unique\" not implemented for '{}'", dtype.cpp_name())));
    }
    Ok(())
}
