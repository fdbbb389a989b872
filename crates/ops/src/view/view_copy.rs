//! Copies of views: what functional programs call instead of the view.

use crate::core::decompositions::Call;
use crate::{Cx, OpDef, Tags, Tol, Traced, Value};
use tracefx_core::{MemoryFormat, Result};

/// A row of this family: the copy of what this view operator gives.
macro_rules! copy_of {
    ($schema:literal, $view:literal) => {
        OpDef::composite($schema, |cx, args| copy(cx, args, $view)).doc("A copy of the view.").tolerance(Tol::Exact)
    };
}

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    copy_of!(
        "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        "as_strided"
    )
    .tags(Tags::NOT_DECOMPOSED),
    copy_of!("aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", "diagonal"),
    copy_of!("aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", "expand"),
    copy_of!("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", "narrow")
        .tags(Tags::NOT_DECOMPOSED),
    copy_of!("aten::permute_copy(Tensor self, int[] dims) -> Tensor", "permute").tags(Tags::NOT_DECOMPOSED),
    copy_of!("aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", "select.int")
        .tags(Tags::NOT_DECOMPOSED),
    copy_of!(
        "aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) \
             -> Tensor",
        "slice.Tensor"
    )
    .tags(Tags::NOT_DECOMPOSED),
    copy_of!("aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", "split.Tensor")
        .tags(Tags::NOT_DECOMPOSED),
    copy_of!(
        "aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
        "split_with_sizes"
    ),
    copy_of!("aten::squeeze_copy(Tensor self) -> Tensor", "squeeze"),
    copy_of!("aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor", "squeeze.dim"),
    copy_of!("aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", "squeeze.dims"),
    copy_of!("aten::t_copy(Tensor self) -> Tensor", "t"),
    copy_of!("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", "transpose.int"),
    copy_of!("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", "unbind.int").tags(Tags::NOT_DECOMPOSED),
    copy_of!("aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", "unfold"),
    copy_of!("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor", "unsqueeze"),
    // Of a copy, nobody sees whether it could have been a view.
    copy_of!("aten::view_copy(Tensor self, SymInt[] size) -> Tensor", "reshape").tags(Tags::NOT_DECOMPOSED),
    copy_of!("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", "view.dtype").tags(Tags::NOT_DECOMPOSED),
];

fn copy(cx: &mut Cx<'_>, args: &Call<'_>, view: &str) -> Result<Vec<Traced>> {
    let specs = args.op.schema.args.iter().zip(&args.values);
    let positional = specs.filter(|(spec, _)| !spec.is_kwarg_only).map(|(_, it)| it);
    let views = cx.aten_all(view, positional, &[])?;
    views.into_iter().map(|it| copied(cx, it)).collect()
}

fn copied(cx: &mut Cx<'_>, value: Traced) -> Result<Traced> {
    match value {
        Value::List(items) => Ok(Value::List(items.into_iter().map(|it| copied(cx, it)).collect::<Result<_>>()?)),
        view => {
            let format = [("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous))];
            cx.aten_with("clone", [&view], &format)
        }
    }
}
