//! Operators that change how a tensor looks at its storage. No element is written: the result is a view, which whoever
//! holds the tensor takes in its place.

use super::slice::as_strided;
use super::view::{squeeze, t, transpose, unsqueeze};
use crate::{OpDef, Rule, Tags};

/// The rows of this family.
#[rustfmt::skip]
pub(crate) const OPS: &[OpDef] = &[
    view("aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transpose).doc("In place: two dimensions change places."),
    view("aten::swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", transpose).doc("In place: two dimensions change places."),
    view("aten::swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transpose).doc("In place: two dimensions change places."),
    view("aten::t_(Tensor(a!) self) -> Tensor(a!)", t).doc("In place: the transpose of a matrix."),
    view("aten::squeeze_(Tensor(a!) self) -> Tensor(a!)", |args| squeeze(args, None)).doc("In place: drops the dimensions of size one."),
    view("aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", |args| squeeze(args, Some(vec![args.int(1)?]))).doc("In place: drops a dimension if its size is one."),
    view("aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", |args| squeeze(args, Some(args.ints(1)?))).doc("In place: drops those of the dimensions whose size is one."),
    view("aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", unsqueeze).doc("In place: adds a dimension of size one."),
    view("aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)", as_strided).doc("In place: these sizes, strides and offset."),
];

const fn view(schema: &'static str, rule: Rule) -> OpDef {
    OpDef::new(schema, rule).tags(Tags::VIEW)
}
