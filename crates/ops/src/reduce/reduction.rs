//! Reductions: dimensions become one value.

use crate::core::decompositions::{Call, size_list};
use crate::core::elementwise::to_float;
use crate::reduce::decompose;
use crate::reduce::gradient;
use crate::{Args, Cx, OpDef, Operand, Output, Tags, Tol, Traced, Value, normalize_dim, promote};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum)
        .decompose(decompose::sum)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::sum)
        .doc("The sum."),
    OpDef::new(
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> \
         Tensor",
        sum,
    )
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .tags(Tags::CORE)
    .vjp(gradient::sum)
    .doc("The sum along dimensions."),
    OpDef::new(
        "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        sum,
    )
    .decompose(decompose::nansum)
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::nansum)
    .doc("The sum, with NaN as zero."),
    OpDef::new("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(gradient::prod)
        .doc("The product."),
    OpDef::new(
        "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        sum,
    )
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .tags(Tags::CORE)
    .vjp(gradient::prod)
    .doc("The product along a dimension."),
    OpDef::new("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", mean)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(gradient::mean)
        .doc("The mean."),
    OpDef::new(
        "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        mean,
    )
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .tags(Tags::CORE)
    .vjp(gradient::mean)
    .doc("The mean along dimensions."),
    OpDef::composite(
        "aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        nanmean,
    )
    .doc("The mean of what is not NaN."),
    OpDef::new("aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", extremum)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .vjp(gradient::extremum)
        .doc("The largest element along dimensions."),
    OpDef::new("aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", extremum)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .vjp(gradient::extremum)
        .doc("The smallest element along dimensions."),
    OpDef::new("aten::max(Tensor self) -> Tensor", extremum)
        .tags(Tags::REDUCTION)
        .vjp(gradient::chosen)
        .doc("The largest element."),
    OpDef::new("aten::min(Tensor self) -> Tensor", extremum)
        .tags(Tags::REDUCTION)
        .vjp(gradient::chosen)
        .doc("The smallest element."),
    OpDef::new("aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", aminmax)
        .decompose(decompose::aminmax)
        .tags(Tags::REDUCTION)
        .vjp(gradient::aminmax)
        .doc("The smallest and the largest element."),
    OpDef::new(
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        with_index,
    )
    .tags(Tags::REDUCTION)
    .tags(Tags::CORE)
    .vjp(gradient::selected)
    .doc("The largest element along a dimension, and where it is."),
    OpDef::new(
        "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        with_index,
    )
    .tags(Tags::REDUCTION)
    .tags(Tags::CORE)
    .vjp(gradient::selected)
    .doc("The smallest element along a dimension, and where it is."),
    OpDef::new("aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .doc("Where the largest element is."),
    OpDef::new("aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .doc("Where the smallest element is."),
    OpDef::new("aten::any(Tensor self) -> Tensor", any)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .doc("Whether an element is not zero."),
    OpDef::new("aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", any)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .doc("Whether an element along a dimension is not zero."),
    OpDef::new("aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", any)
        .tags(Tags::REDUCTION)
        .tags(Tags::CORE)
        .doc("Whether an element along dimensions is not zero."),
    OpDef::new("aten::all(Tensor self) -> Tensor", any)
        .decompose(decompose::all)
        .tags(Tags::REDUCTION)
        .doc("Whether no element is zero."),
    OpDef::new("aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", any)
        .decompose(decompose::all)
        .tags(Tags::REDUCTION)
        .doc("Whether no element along a dimension is zero."),
    OpDef::new("aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", any)
        .decompose(decompose::all)
        .tags(Tags::REDUCTION)
        .doc("Whether no element along dimensions is zero."),
    OpDef::new("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", count)
        .decompose(decompose::count_nonzero)
        .tags(Tags::REDUCTION)
        .doc("How many elements are not zero."),
    OpDef::new("aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", count)
        .decompose(decompose::count_nonzero)
        .tags(Tags::REDUCTION)
        .doc("How many elements along dimensions are not zero."),
    OpDef::new("aten::var(Tensor self, bool unbiased=True) -> Tensor", var)
        .decompose(decompose::var)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::var)
        .doc("The variance."),
    OpDef::new("aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", var)
        .decompose(decompose::var)
        .tags(Tags::DECOMPOSED)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(gradient::var)
        .doc("The variance along dimensions."),
    OpDef::new(
        "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> \
         Tensor",
        var,
    )
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .tags(Tags::CORE)
    .vjp(gradient::var)
    .doc("The variance along dimensions, of which `correction` degrees of freedom are used up."),
    OpDef::new("aten::std(Tensor self, bool unbiased=True) -> Tensor", var)
        .decompose(decompose::std)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::std)
        .doc("The standard deviation."),
    OpDef::new("aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", var)
        .decompose(decompose::std)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::std)
        .doc("The standard deviation along dimensions."),
    OpDef::new(
        "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> \
         Tensor",
        var,
    )
    .decompose(decompose::std_correction)
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::std)
    .doc("The standard deviation along dimensions, of which `correction` degrees of freedom are used up."),
    OpDef::new("aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", var_mean)
        .decompose(decompose::var_mean)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::var_mean)
        .doc("The variance and the mean."),
    OpDef::new(
        "aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, \
         Tensor)",
        var_mean,
    )
    .decompose(decompose::var_mean)
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::var_mean)
    .doc("The variance and the mean along dimensions."),
    OpDef::new(
        "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool \
         keepdim=False) -> (Tensor, Tensor)",
        var_mean,
    )
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::var_mean)
    .doc("The variance and the mean along dimensions, of which `correction` degrees of freedom are used up."),
    OpDef::new("aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", var_mean)
        .decompose(decompose::std_mean)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::std_mean)
        .doc("The standard deviation and the mean."),
    OpDef::new(
        "aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, \
         Tensor)",
        var_mean,
    )
    .decompose(decompose::std_mean)
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::std_mean)
    .doc("The standard deviation and the mean along dimensions."),
    OpDef::new(
        "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool \
         keepdim=False) -> (Tensor, Tensor)",
        var_mean,
    )
    .decompose(decompose::std_mean_correction)
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::std_mean)
    .doc("The standard deviation and the mean along dimensions, of which `correction` degrees of freedom are used up."),
    OpDef::new(
        "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, \
         ScalarType? dtype=None) -> Tensor",
        norm,
    )
    .tags(Tags::REDUCTION.with(Tags::OWN_DTYPE))
    .tolerance(Tol::Default)
    .vjp(gradient::norm)
    .doc("The norm of vectors: `sum(abs(x)**ord)**(1/ord)`."),
    OpDef::new("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", norm)
        .decompose(decompose::norm)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::norm)
        .doc("The norm of all elements as one vector."),
    OpDef::new("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", norm)
        .decompose(decompose::norm)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::norm)
        .doc("The norm of vectors along dimensions."),
    OpDef::new(
        "aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) \
         -> Tensor",
        norm,
    )
    .decompose(decompose::norm)
    .tags(Tags::REDUCTION)
    .tolerance(Tol::Default)
    .vjp(gradient::norm)
    .doc("The norm of vectors along dimensions, computed in a dtype."),
    OpDef::new("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", norm)
        .decompose(decompose::norm)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::norm)
        .doc("The norm of all elements as one vector, computed in a dtype."),
    OpDef::composite("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor", sum_to_size)
        .doc("The sum along the dimensions in which the size broadcasts to the tensor's: the reverse of `expand`."),
    OpDef::new("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp)
        .decompose(decompose::logsumexp)
        .tags(Tags::REDUCTION)
        .tolerance(Tol::Default)
        .vjp(gradient::logsumexp)
        .doc("`log(sum(exp(x)))`, computed without overflow."),
];

/// For each dimension of the first argument whether the call reduces it: the argument `dim` is an int, a list, or
/// missing; the last and the empty list mean all of them.
///
/// # Errors
/// `IndexOutOfRange`; `InvalidArgument` where a dimension is named twice; `ShapeMismatch` beyond 64 dimensions.
pub fn reduced_dims<T>(args: &Args<'_, T>, rank: usize) -> Result<Vec<bool>> {
    if rank > 64 {
        return Err(args.bad_shape("only tensors with up to 64 dims are supported"));
    }
    let dims = match args.position("dim") {
        Some(index) => match &args.values[index] {
            Value::Int(_) => vec![args.int(index)?],
            Value::List(_) => args.ints(index)?,
            _ => Vec::new(),
        },
        None => Vec::new(),
    };
    if dims.is_empty() {
        return Ok(vec![true; rank]);
    }
    let mut is_reduced = vec![false; rank.max(1)];
    for dim in dims {
        let dim = normalize_dim(args, dim, rank)?;
        if std::mem::replace(&mut is_reduced[dim], true) {
            return Err(args.invalid(format!("dim {dim} appears multiple times in the list of dims")));
        }
    }
    is_reduced.truncate(rank);
    Ok(is_reduced)
}

/// A result of this dtype, without the reduced dimensions or with ones for them.
fn reduced(args: &Args<'_, TensorMeta>, dtype: DType) -> Result<Output> {
    let this = args.tensor(0)?;
    let is_reduced = reduced_dims(args, this.sizes.len())?;
    let keeps = args.position("keepdim").map_or(Ok(false), |it| args.bool(it))?;
    let mut sizes = Vec::new();
    for (dim, is_reduced) in is_reduced.into_iter().enumerate() {
        if !is_reduced {
            sizes.push(this.sizes[dim].clone());
        } else if keeps {
            sizes.push(SymInt::ONE);
        }
    }
    // Row-major whatever the tensor is, as PyTorch's `resize_reduction` makes it.
    Ok(Output::Tensor(TensorMeta::contiguous(dtype, sizes)))
}

fn dtype(args: &Args<'_, TensorMeta>) -> Result<Option<DType>> {
    args.position("dtype").map_or(Ok(None), |it| args.opt_dtype(it))
}

fn sum(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?.dtype;
    let own = if this.kind() <= DTypeKind::Int { DType::Int64 } else { this };
    Ok(vec![reduced(args, dtype(args)?.unwrap_or(own))?])
}

fn mean(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let asked = dtype(args)?;
    let dtype = asked.unwrap_or(args.tensor(0)?.dtype);
    if dtype.kind() <= DTypeKind::Int {
        let (what, kind) = match asked {
            Some(_) => ("could not infer output dtype. Optional dtype", "dtype"),
            None => ("could not infer output dtype. Input dtype", "input"),
        };
        let what =
            format!("mean(): {what} must be either a floating point or complex dtype. Got {kind}: {}", dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(vec![reduced(args, dtype)?])
}

fn nanmean(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if args.opt_dtype(3)?.is_some_and(|it| it.kind() <= DTypeKind::Int) {
        let what =
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let [this, dim, keepdim, ..] = &args.values[..] else { return Err(args.invalid("four arguments")) };
    let dtype = [("dtype", args.values[3].clone())];
    let is_nan = cx.aten("isnan", [this])?;
    let is_number = cx.aten("logical_not", [&is_nan])?;
    let n = cx.aten("sum.dim_IntList", [&is_number, dim, keepdim])?;
    let sum = cx.aten_with("nansum", [this, dim, keepdim], &dtype)?;
    Ok(vec![cx.aten("div.Tensor", [&sum, &n])?])
}

/// Refuses to look for an element where there is none.
fn check_not_empty(args: &Args<'_, TensorMeta>) -> Result<()> {
    let this = args.tensor(0)?;
    let name = &args.op.schema.name;
    let has_dims = args.position("dim").is_some_and(|it| match &args.values[it] {
        Value::None => false,
        Value::List(items) => !items.is_empty(),
        _ => true,
    });
    for (dim, is_reduced) in reduced_dims(args, this.sizes.len())?.into_iter().enumerate() {
        if this.sizes[dim] == 0 && !has_dims {
            return Err(args.bad_shape(format!(
                "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim \
                 with the 'dim' argument."
            )));
        }
        if is_reduced && this.sizes[dim] == 0 {
            return Err(args.bad_shape(format!("{name}(): Expected reduction dim {dim} to have non-zero size.")));
        }
    }
    Ok(())
}

fn extremum(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_not_empty(args)?;
    Ok(vec![reduced(args, args.tensor(0)?.dtype)?])
}

fn aminmax(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_not_empty(args)?;
    let result = reduced(args, args.tensor(0)?.dtype)?;
    Ok(vec![result.clone(), result])
}

fn with_index(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_not_empty(args)?;
    Ok(vec![reduced(args, args.tensor(0)?.dtype)?, reduced(args, DType::Int64)?])
}

fn arg(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_not_empty(args)?;
    let keeps = args.bool(2)?;
    let mut result = reduced(args, DType::Int64)?;
    if let (true, true, Output::Tensor(meta)) = (args.is_none(1), keeps, &mut result) {
        let rank = args.tensor(0)?.sizes.len();
        *meta = TensorMeta::contiguous(DType::Int64, vec![SymInt::ONE; rank]);
    }
    Ok(vec![result])
}

fn any(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    // PyTorch's uint8 was its bool once, and stays what it is here.
    let dtype = if args.tensor(0)?.dtype == DType::UInt8 { DType::UInt8 } else { DType::Bool };
    Ok(vec![reduced(args, dtype)?])
}

fn count(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![reduced(args, DType::Int64)?])
}

fn var(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    if dtype.kind() <= DTypeKind::Int {
        let what = format!("{} only support floating point and complex dtypes", args.op.schema.name);
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let real = match dtype {
        DType::Complex64 => DType::Float32,
        DType::Complex128 => DType::Float64,
        other => other,
    };
    Ok(vec![reduced(args, real)?])
}

fn var_mean(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let mut results = var(args)?;
    results.push(reduced(args, args.tensor(0)?.dtype)?);
    Ok(results)
}

fn norm(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let asked = dtype(args)?;
    let dtype = asked.unwrap_or(this.dtype);
    let wrong = |what: String| Err(Diagnostic::new(Code::DTypeMismatch, format!("linalg.vector_norm: {what}")));
    if this.dtype.kind() <= DTypeKind::Int {
        let what = "Expected a floating point or complex tensor as input. Got";
        return wrong(format!("{what} {}", this.dtype.cpp_name()));
    }
    if dtype.is_complex() != this.dtype.is_complex() {
        let kind = if this.dtype.is_complex() { "complex" } else { "real" };
        return wrong(format!("dtype should be {kind} for {kind} inputs, but got {}", dtype.cpp_name()));
    }
    if promote(&[Operand::Tensor(this), Operand::Tensor(&TensorMeta { dtype, ..this.clone() })]) != dtype {
        return wrong(format!(
            "the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})",
            this.dtype.cpp_name(),
            dtype.cpp_name()
        ));
    }
    if matches!(args.values[1], Value::Complex(_)) {
        return wrong("Expected a non-complex scalar as the order of norm.".to_string());
    }
    let real = match dtype {
        DType::Complex64 => DType::Float32,
        DType::Complex128 => DType::Float64,
        other => other,
    };
    let ord = args.opt_float(1)?.unwrap_or(2.0);
    let is_reduced = reduced_dims(args, this.sizes.len())?;
    let is_empty = is_reduced.iter().zip(&this.sizes).any(|(&is_reduced, size)| is_reduced && *size == 0);
    if is_empty && (ord < 0.0 || ord == f64::INFINITY) {
        return Err(args.bad_shape(format!(
            "linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have \
             an identity"
        )));
    }
    Ok(vec![reduced(args, real)?])
}

fn logsumexp(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![reduced(args, to_float(args.tensor(0)?.dtype))?])
}

fn sum_to_size(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, size) = (*args.tensor(0)?, args.sym_ints(1)?);
    let sizes = cx.meta(this).sizes.clone();
    if size.is_empty() {
        return Ok(vec![cx.aten("sum", [&this.into()])?]);
    }
    let one = SymInt::from(1);
    let lead = sizes.len().checked_sub(size.len());
    let expands = |lead: usize| size.iter().zip(&sizes[lead..]).all(|(to, from)| to == from || *to == one);
    let Some(lead) = lead.filter(|&lead| expands(lead)) else {
        let text = |it: &[SymInt]| it.iter().map(|it| it.to_string()).collect::<Vec<_>>().join(", ");
        let what = format!("size {{[{}]}} is not expandable to size {{[{}]}}.", text(&size), text(&sizes));
        return Err(args.bad_shape(what));
    };
    let is_summed = |dim: usize| dim < lead || (size[dim - lead] == one && sizes[dim] != one);
    let dims: Vec<i64> = (0..sizes.len()).filter(|&dim| is_summed(dim)).map(|dim| dim as i64).collect();
    if dims.is_empty() {
        return Ok(vec![this.into()]);
    }
    let sum = cx.aten("sum.dim_IntList", [&this.into(), &Value::ints(&dims), &Value::Bool(true)])?;
    if lead == 0 {
        return Ok(vec![sum]);
    }
    Ok(vec![cx.aten("view", [&sum, &size_list(&size)])?])
}
