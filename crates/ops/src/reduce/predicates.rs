//! Questions about tensors whose answer is a bool of Python.

use crate::core::decompositions::Call;
use crate::core::elementwise::operands;
use crate::view::copy::is_laid_out;
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value, promote, promote_types};
use tracefx_core::{DType, DTypeKind, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::equal(Tensor self, Tensor other) -> bool", equal)
        .tags(Tags::NOT_DECOMPOSED)
        .doc("Whether sizes and elements are the same."),
    OpDef::composite(
        "aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool \
         equal_nan=False) -> bool",
        allclose,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("Whether all elements are nearly the same."),
    OpDef::composite("aten::is_nonzero(Tensor self) -> bool", is_nonzero).doc("Whether the only element is not zero."),
    OpDef::new("aten::is_same_size(Tensor self, Tensor other) -> bool", is_same_size)
        .doc("Whether the sizes are the same."),
    OpDef::new("aten::is_complex(Tensor self) -> bool", |args| is_kind(args, DTypeKind::Complex))
        .doc("Whether the elements are complex."),
    OpDef::new("aten::is_floating_point(Tensor self) -> bool", |args| is_kind(args, DTypeKind::Float))
        .doc("Whether the elements are floats."),
    OpDef::new("aten::sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool", is_contiguous)
        .tags(Tags::CORE)
        .doc("Whether the elements lie in memory in this order."),
    OpDef::new("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", result_type)
        .doc("The dtype that two tensors promote to."),
    OpDef::new("aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType", result_type)
        .doc("The dtype that a tensor and a number promote to."),
    OpDef::new("aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType", result_type)
        .doc("The dtype that a number and a tensor promote to."),
    OpDef::new("aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType", result_type)
        .doc("The dtype that two numbers promote to."),
    OpDef::new("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType", promoted)
        .doc("The smallest dtype that holds the numbers of both."),
    OpDef::new("aten::can_cast(ScalarType from_, ScalarType to) -> bool", can_cast)
        .doc("Whether a result of one dtype may be written to a tensor of another."),
    OpDef::composite("aten::isreal(Tensor self) -> Tensor", isreal).doc("Which elements have no imaginary part."),
];

fn answer(it: bool) -> Result<Vec<Output>> {
    Ok(vec![Output::Value(Value::Bool(it))])
}

fn is_kind(args: &Args<'_, TensorMeta>, kind: DTypeKind) -> Result<Vec<Output>> {
    answer(args.tensor(0)?.dtype.kind() == kind)
}

fn result_type(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::Value(Value::DType(promote(&operands(args, 0..2)?)))])
}

/// The dtypes that are asked about.
fn dtypes(args: &Args<'_, TensorMeta>) -> Result<(DType, DType)> {
    let [from, to] = [args.opt_dtype(0)?, args.opt_dtype(1)?].map(|it| it.unwrap_or(DType::Float32));
    Ok((from, to))
}

fn promoted(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (a, b) = dtypes(args)?;
    Ok(vec![Output::Value(Value::DType(promote_types(a, b)))])
}

fn can_cast(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (from, to) = dtypes(args)?;
    answer(from.kind() <= to.kind())
}

fn is_contiguous(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let format = args.opt_memory_format(1)?.unwrap_or(MemoryFormat::Contiguous);
    // No tensor of another rank lies in the order of a format.
    answer(is_laid_out(args, args.tensor(0)?, format).unwrap_or(false))
}

fn is_same_size(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    answer(args.same_all(&args.tensor(0)?.sizes, &args.tensor(1)?.sizes))
}

fn equal(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (a, b) = (*args.tensor(0)?, *args.tensor(1)?);
    let (a_meta, b_meta) = (cx.meta(a), cx.meta(b));
    if !args.same_all(&a_meta.sizes, &b_meta.sizes) {
        return Ok(vec![Value::Bool(false)]);
    }
    let same = cx.aten("eq.Tensor", [&a.into(), &b.into()])?;
    all(cx, &same)
}

fn allclose(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let close = cx.aten("isclose", &args.values)?;
    all(cx, &close)
}

/// Whether all elements are true.
fn all(cx: &mut Cx<'_>, value: &Traced) -> Result<Vec<Traced>> {
    let all = cx.aten("all", [value])?;
    Ok(vec![cx.aten("item", [&all])?])
}

fn is_nonzero(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let n: SymInt = cx.meta(this).sizes.iter().product();
    if args.differ(&n, &SymInt::ONE) {
        let what = match n == 0 {
            true => "Boolean value of Tensor with no values is ambiguous",
            false => "Boolean value of Tensor with more than one value is ambiguous",
        };
        return Err(args.bad_shape(what));
    }
    let one = cx.aten("ne.Scalar", [&this.into(), &Value::int(0)])?;
    Ok(vec![cx.aten("item", [&one])?])
}

fn isreal(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this);
    if meta.dtype.is_complex() {
        let imag = cx.aten("imag", [&this.into()])?;
        return Ok(vec![cx.aten("eq.Scalar", [&imag, &Value::int(0)])?]);
    }
    Ok(vec![cx.aten_with("ones_like", [&this.into()], &[("dtype", Value::DType(DType::Bool))])?])
}
