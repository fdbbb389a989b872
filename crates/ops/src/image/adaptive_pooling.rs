//! Pooling to a result of a given size: the windows follow from it.

use crate::core::memory_format::{in_format_of, memory_format_of};
use crate::image::pooling::{lead, make_contiguous};
use crate::image::pooling_gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value};
use tracefx_core::{DType, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

use crate::core::decompositions::{Call, size_list, tensor_of};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", adaptive_avg_pool1d)
        .tags(Tags::FRESH)
        .tags(Tags::CORE.with(Tags::DECOMPOSED))
        .doc("The means of as many windows as the result has elements."),
    OpDef::composite("aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_avg_pool)
        .tags(Tags::FRESH)
        .doc("The means of as many windows as the result has elements."),
    OpDef::composite("aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_avg_pool)
        .tags(Tags::FRESH)
        .doc("The means of as many windows as the result has elements."),
    OpDef::new("aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", avg_pool2d)
        .vjp(pooling_gradient::adaptive_avg_pool2d)
        .doc("The means of as many windows as the result has elements.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::new("aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", avg_pool3d)
        .vjp(pooling_gradient::adaptive_avg_pool3d)
        .doc("The means of as many windows as the result has elements.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::composite(
        "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
        adaptive_max_pool1d,
    )
    .tags(Tags::FRESH)
    .doc("The largest elements of as many windows as the result has elements, and where they stand.")
    .tolerance(Tol::Exact),
    OpDef::new("aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", max_pool2d)
        .vjp(pooling_gradient::adaptive_max_pool2d)
        .doc("The largest elements of as many windows as the result has elements, and where they stand."),
    OpDef::new("aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", max_pool3d)
        .vjp(pooling_gradient::adaptive_max_pool3d)
        .doc("The largest elements of as many windows as the result has elements, and where they stand."),
];

type Meta<'a> = Args<'a, TensorMeta>;

fn result(args: &Meta<'_>, n_dims: usize) -> Result<TensorMeta> {
    let (input, size) = (args.tensor(0)?, args.sym_ints(1)?);
    if size.len() != n_dims {
        let what = format!("{}: output_size must be {n_dims}", args.op.schema.name);
        return Err(args.invalid(what));
    }
    if size.iter().any(|it| it.as_int().is_some_and(|it| it < 0)) {
        return Err(args.invalid("elements of output_size must be greater than or equal to 0"));
    }
    let n_lead = lead(args, input, n_dims)?;
    Ok(in_format_of(input, input.dtype, [&input.sizes[..n_lead], &size].concat()))
}

fn avg_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    Ok(vec![Output::Tensor(result(args, 2)?)])
}

fn avg_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    // Unlike the two-dimensional one, it does not keep channels last.
    let mut output = Output::Tensor(result(args, 3)?);
    make_contiguous(&mut output);
    Ok(vec![output])
}

fn max_pool(args: &Meta<'_>, n_dims: usize) -> Result<Vec<Output>> {
    let values = result(args, n_dims)?;
    let indices = TensorMeta { dtype: DType::Int64, ..values.clone() };
    Ok(vec![Output::Tensor(values), Output::Tensor(indices)])
}

fn max_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    max_pool(args, 2)
}

fn max_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut outputs = max_pool(args, 3)?;
    outputs.iter_mut().for_each(make_contiguous);
    Ok(outputs)
}

/// A result of one element per channel is a plain mean, as in PyTorch.
fn adaptive_avg_pool(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (input, size) = (*args.tensor(0)?, args.sym_ints(1)?);
    let meta = cx.meta(input).clone();
    let n_dims = size.len();
    if size.iter().any(|it| *it != 1) || meta.sizes.len() < n_dims + 1 {
        let op = format!("_{}", args.op.schema.name);
        return Ok(vec![cx.aten(&op, &args.values)?]);
    }
    let dims: Vec<i64> = (1..=n_dims as i64).map(|it| -it).collect();
    let mean = cx.aten("mean.dim", [&input.into(), &Value::ints(&dims), &Value::Bool(true)])?;
    if memory_format_of(&meta) == MemoryFormat::Contiguous {
        return Ok(vec![mean]);
    }
    let sizes = cx.meta(tensor_of(&mean)).sizes.clone();
    let mut strides = vec![sizes[1].clone(); sizes.len()];
    strides[1] = SymInt::from(1);
    Ok(vec![cx.aten("as_strided", [&mean, &size_list(&sizes), &size_list(&strides)])?])
}

/// The arguments for the two-dimensional operator, over a plane one element high.
fn widened(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<[Traced; 2]> {
    let input = *args.tensor(0)?;
    let rank = cx.meta(input).sizes.len();
    if rank != 2 && rank != 3 {
        return Err(args.bad_shape(format!("{}() Expected 2D or 3D input tensor", args.op.schema.name)));
    }
    let [size] = args.ints(1)?[..] else { return Err(args.invalid("output_size must be a single int")) };
    let input = cx.aten("unsqueeze", [&input.into(), &Value::int(-2)])?;
    Ok([input, Value::ints(&[1, size])])
}

fn adaptive_avg_pool1d(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let call = widened(cx, args)?;
    let result = cx.aten("adaptive_avg_pool2d", &call)?;
    Ok(vec![cx.aten("squeeze.dim", [&result, &Value::int(-2)])?])
}

fn adaptive_max_pool1d(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let call = widened(cx, args)?;
    let results = cx.aten_all("adaptive_max_pool2d", &call, &[])?;
    results.into_iter().map(|it| cx.aten("squeeze.dim", [&it, &Value::int(-2)])).collect()
}
