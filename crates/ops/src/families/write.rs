//! A tensor with one of its views replaced: what writing through a view becomes in a functional program.

use super::slice::{as_strided_of_args, diagonal_of_args, select_of_args, slice_of_args};
use super::view::listed;
use crate::elementwise::laid_out;
use crate::{Args, OpDef, Output, Tags};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
        |args| written(args, slice_of_args(args, 2)?),
    )
    .doc("The tensor with a slice replaced.")
    .tags(Tags::CORE),
    OpDef::new("aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", |args| {
        written(args, select_of_args(args, 2)?)
    })
    .doc("The tensor with one position of a dimension replaced.")
    .tags(Tags::CORE),
    OpDef::new(
        "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        |args| written(args, diagonal_of_args(args, 2)?),
    )
    .doc("The tensor with a diagonal replaced."),
    OpDef::new(
        "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        |args| written(args, as_strided_of_args(args, 2)?),
    )
    .doc("The tensor with the elements at these strides replaced."),
];

/// Checks that `src` is of the sizes of the view of `self` that it replaces.
fn check_source(args: &Args<'_, TensorMeta>, view: &TensorMeta) -> Result<()> {
    let source = args.tensor(1)?;
    let differ = source.sizes.len() != view.sizes.len()
        || source.sizes.iter().zip(&view.sizes).any(|(a, b)| (a - b).as_int().is_some_and(|it| it != 0));
    if differ {
        return Err(args.bad_shape(format!(
            "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
            listed(&source.sizes),
            listed(&view.sizes)
        )));
    }
    Ok(())
}

fn written(args: &Args<'_, TensorMeta>, view: TensorMeta) -> Result<Vec<Output>> {
    check_source(args, &view)?;
    let base = args.tensor(0)?;
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}
