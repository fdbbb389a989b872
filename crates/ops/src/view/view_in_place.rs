//! Operators that change how a tensor looks at its storage. No element is written: the result is a view, which whoever
//! holds the tensor takes in its place.

use crate::core::memory_format::memory_format_of;
use crate::view::copy::{formatted, memory_format};
use crate::view::slice::as_strided;
use crate::view::strides::{squeeze, t, transpose, unsqueeze};
use crate::{Args, OpDef, Output, Rule, Tags};
use tracefx_core::{MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    view("aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transpose)
        .doc("In place: two dimensions change places."),
    view("aten::swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", transpose)
        .doc("In place: two dimensions change places."),
    view("aten::swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transpose)
        .doc("In place: two dimensions change places."),
    view("aten::t_(Tensor(a!) self) -> Tensor(a!)", t).doc("In place: the transpose of a matrix."),
    view("aten::squeeze_(Tensor(a!) self) -> Tensor(a!)", |args| squeeze(args, None))
        .doc("In place: drops the dimensions of size one."),
    view("aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", |args| squeeze(args, Some(vec![args.int(1)?])))
        .doc("In place: drops a dimension if its size is one."),
    view("aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", |args| squeeze(args, Some(args.ints(1)?)))
        .doc("In place: drops those of the dimensions whose size is one."),
    view("aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", unsqueeze)
        .doc("In place: adds a dimension of size one."),
    view(
        "aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> \
         Tensor(a!)",
        as_strided,
    )
    .doc("In place: these sizes, strides and offset."),
    view("aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", |args| {
        resize(args, args.sym_ints(1)?, memory_format(args)?)
    })
    .tags(Tags::CORE)
    .tags(Tags::RESIZES)
    .doc("In place: these sizes of the same memory, which grows where it is too short; new elements are zero."),
    view(
        "aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> \
         Tensor(a!)",
        |args| {
            let template = args.tensor(1)?;
            let format = memory_format(args)?
                .map(|it| if it == MemoryFormat::Preserve { memory_format_of(template) } else { it });
            resize(args, template.sizes.clone(), format)
        },
    )
    .tags(Tags::RESIZES)
    .doc("In place: the sizes of another tensor, of the same memory, which grows where it is too short."),
];

const fn view(schema: &'static str, rule: Rule) -> OpDef {
    OpDef::new(schema, rule).tags(Tags::VIEW)
}

fn resize(args: &Args<'_, TensorMeta>, sizes: Vec<SymInt>, format: Option<MemoryFormat>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    if let Some(negative) = sizes.iter().find(|it| it.as_int().is_some_and(|it| it < 0)) {
        return Err(args.bad_shape(format!("Trying to create tensor with negative dimension {negative}")));
    }
    if format == Some(MemoryFormat::Preserve) {
        return Err(args.invalid("Unsupported memory format Preserve"));
    }
    // A tensor of the right sizes keeps its strides, unless a format is asked for.
    let meta = match format {
        None if sizes == this.sizes => this.clone(),
        format => {
            let laid_out = formatted(args, this.dtype, sizes, format.unwrap_or(MemoryFormat::Contiguous), None)?;
            TensorMeta { sizes: laid_out.sizes, strides: laid_out.strides, ..this.clone() }
        }
    };
    Ok(vec![Output::view(meta)])
}
