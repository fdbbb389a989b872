//! A tensor with one of its views replaced: what writing through a view becomes in a functional program, and what the
//! gradient of a view is, among zeros.

use crate::conv;
use crate::core::decompositions::Call;
use crate::core::elementwise::laid_out;
use crate::view::decompose;
use crate::view::gradient;
use crate::view::slice::{as_strided_of_args, diagonal_of_args, select_of_args, slice_of_args, unfold_of_args};
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, contiguous};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt \
             step=1) -> Tensor",
        |args| written(args, slice_of_args(args, args.tensor(0)?, 2)?),
    )
    .vjp(gradient::slice_scatter)
    .doc("The tensor with a slice replaced.")
    .tags(Tags::CORE),
    OpDef::new("aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", |args| {
        written(args, select_of_args(args, args.tensor(0)?, 2)?)
    })
    .decompose(decompose::select_scatter)
    .tags(Tags::DECOMPOSED)
    .vjp(gradient::select_scatter)
    .doc("The tensor with one position of a dimension replaced.")
    .tags(Tags::CORE),
    OpDef::new(
        "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        |args| written(args, diagonal_of_args(args, args.tensor(0)?, 2)?),
    )
    .vjp(gradient::diagonal_scatter)
    .doc("The tensor with a diagonal replaced."),
    OpDef::new(
        "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? \
             storage_offset=None) -> Tensor",
        |args| written(args, as_strided_of_args(args, 2)?),
    )
    .vjp(gradient::as_strided_scatter)
    .doc("The tensor with the elements at these strides replaced."),
    OpDef::new(
        "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, \
             SymInt step) -> Tensor",
        |args| among_zeros(args, slice_of_args),
    )
    .doc("The gradient of `slice`: zeros but for the slice.")
    .decompose(|cx, args| written_to_zeros(cx, args, "slice_scatter")),
    OpDef::new(
        "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
        |args| among_zeros(args, select_of_args),
    )
    .doc("The gradient of `select`: zeros but for one position of a dimension.")
    .decompose(|cx, args| written_to_zeros(cx, args, "select_scatter")),
    OpDef::new(
        "aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
        |args| among_zeros(args, diagonal_of_args),
    )
    .doc("The gradient of `diagonal`: zeros but for the diagonal.")
    .decompose(|cx, args| written_to_zeros(cx, args, "diagonal_scatter")),
    OpDef::new(
        "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
        |args| among_zeros(args, unfold_of_args),
    )
    .decompose(conv::decompose::unfold_backward)
    .doc("The gradient of `unfold`: windows that slide over zeros, added up where they overlap.")
    .tolerance(Tol::Default),
];

/// Checks that what replaces a view is of its sizes.
fn check_source(args: &Args<'_, TensorMeta>, source: &TensorMeta, view: &TensorMeta) -> Result<()> {
    let differ =
        source.sizes.len() != view.sizes.len() || source.sizes.iter().zip(&view.sizes).any(|(a, b)| args.differ(a, b));
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
    check_source(args, args.tensor(1)?, &view)?;
    let base = args.tensor(0)?;
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}

/// The result of writing a gradient to a view of zeros.
fn among_zeros(
    args: &Args<'_, TensorMeta>,
    view_of_args: fn(&Args<'_, TensorMeta>, &TensorMeta, usize) -> Result<TensorMeta>,
) -> Result<Vec<Output>> {
    let (grad, sizes) = (args.tensor(0)?, args.sym_ints(1)?);
    if sizes.iter().any(|it| it.as_int().is_some_and(|it| it < 0)) {
        return Err(args.invalid(format!("the sizes of a tensor cannot be negative, but they are {}", listed(&sizes))));
    }
    let view = view_of_args(args, &TensorMeta::contiguous(grad.dtype, sizes.clone()), 2)?;
    check_source(args, grad, &view)?;
    Ok(contiguous(grad.dtype, sizes))
}

fn written_to_zeros(cx: &mut Cx<'_>, args: &Call<'_>, scatter: &str) -> Result<Vec<Traced>> {
    let (grad, sizes) = (&args.values[0], &args.values[1]);
    let zeros = cx.aten("new_zeros", [grad, sizes])?;
    Ok(vec![cx.aten(scatter, [&zeros, grad].into_iter().chain(&args.values[2..]))?])
}
