//! What masks and zeros pick: positions, elements and replacements whose number only the data tells.

use crate::core::decompositions::Call;
use crate::index::gather::wrong_dtype;
use crate::pointwise::choice_gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, broadcast, contiguous};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::nonzero(Tensor self) -> Tensor", nonzero)
        .doc("The positions of all elements that are not zero, one row for each.")
        .tags(Tags::CORE.with(Tags::DATA_DEPENDENT_SHAPE)),
    OpDef::composite("aten::argwhere(Tensor self) -> Tensor", |cx, args| {
        Ok(vec![cx.aten("nonzero", [&args.values[0]])?])
    })
    .doc("The positions of all elements that are not zero, one row for each.")
    .tags(Tags::DATA_DEPENDENT_SHAPE)
    .tolerance(Tol::Exact),
    OpDef::composite("aten::nonzero_numpy(Tensor self) -> Tensor[]", nonzero_numpy)
        .doc("The positions of all elements that are not zero, one vector for each dimension.")
        .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new("aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", nonzero_static)
        .doc("The first positions of elements that are not zero, as many as were asked for, filled up with a number."),
    OpDef::new("aten::masked_select(Tensor self, Tensor mask) -> Tensor", masked_select)
        .vjp(choice_gradient::masked_select)
        .doc("The elements where a mask is true, in a row.")
        .tags(Tags::DATA_DEPENDENT_SHAPE),
    OpDef::new("aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", masked_scatter)
        .vjp(choice_gradient::masked_scatter)
        .doc("The tensor with elements of another one put, in their order, where a mask is true.")
        .tags(Tags::CORE)
        .in_place(&["masked_scatter_"]),
    OpDef::new(
        "aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
        masked_scatter_backward,
    )
    .vjp(choice_gradient::masked_scatter_backward)
    .doc("The gradient of the source of `masked_scatter`: the elements where the mask is true, in a row, then zeros."),
];

/// PyTorch writes the positions dimension by dimension, so that those of one dimension lie next to each other.
fn nonzero(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let sizes = &args.tensor(0)?.sizes;
    let (n, rank) = (args.new_size_up_to(&sizes.iter().product()), sizes.len());
    let meta = TensorMeta::contiguous(DType::Int64, vec![n.clone(), rank.into()]);
    Ok(vec![Output::Unknown(Value::Tensor(TensorMeta { strides: vec![SymInt::ONE, n], ..meta }))])
}

fn nonzero_numpy(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut base = args.values[0].clone();
    // A single number counts as a vector of one.
    if cx.meta(*args.tensor(0)?).sizes.is_empty() {
        base = cx.aten("unsqueeze", [&base, &Value::int(0)])?;
    }
    let positions = cx.aten("nonzero", [&base])?;
    cx.aten_all("unbind.int", [&positions, &Value::int(1)], &[])
}

fn nonzero_static(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, size) = (args.tensor(0)?, args.sym_int(1)?);
    if size.as_int().is_some_and(|it| it < 0) {
        return Err(args.invalid("nonzero_static: 'size' must be an non-negative integer"));
    }
    Ok(contiguous(DType::Int64, vec![size.clone(), base.sizes.len().into()]))
}

fn masked_select(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, mask) = (args.tensor(0)?, args.tensor(1)?);
    if mask.dtype != DType::Bool {
        return Err(wrong_dtype(args, "masked_select: expected BoolTensor for mask"));
    }
    let most: SymInt = broadcast(args, &mask.sizes, &base.sizes)?.iter().product();
    // As `nonzero`, but PyTorch gives no bound where there are two elements or fewer. It counts those of the input alone, which
    // are too few where the mask broadcasts it.
    let n = if most.as_int().is_some_and(|it| it <= 2) { args.new_size() } else { args.new_size_up_to(&most) };
    Ok(vec![Output::unknown(base.dtype, vec![n])])
}

fn masked_scatter(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, mask, source) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    if base.dtype != source.dtype {
        return Err(wrong_dtype(
            args,
            format!(
                "masked_scatter: expected self and source to have same dtypes but got {} and {}",
                base.dtype.cpp_name(),
                source.dtype.cpp_name()
            ),
        ));
    }
    if mask.dtype != DType::Bool {
        let what = "masked_scatter_ only supports boolean masks, but got mask with dtype";
        return Err(wrong_dtype(args, format!("{what} {}", mask.dtype.cpp_name())));
    }
    Ok(contiguous(base.dtype, broadcast(args, &mask.sizes, &base.sizes)?))
}

fn masked_scatter_backward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (grad, mask, sizes) = (args.tensor(0)?, args.tensor(1)?, args.sym_ints(2)?);
    if mask.dtype != DType::Bool {
        return Err(wrong_dtype(args, "masked_select: expected BoolTensor for mask"));
    }
    broadcast(args, &mask.sizes, &grad.sizes)?;
    if sizes.iter().any(|it| it.as_int().is_some_and(|it| it < 0)) {
        return Err(args.invalid("the sizes of a tensor cannot be negative"));
    }
    Ok(contiguous(grad.dtype, sizes))
}
