//! Elements written, or added and otherwise combined, where indices say.

use crate::core::decompositions::{Call, to_dtype};
use crate::core::elementwise::{check_fits, laid_out};
use crate::index::gather::wrong_dtype;
use crate::index::gradient;
use crate::view::strides::{listed, out_of_range};
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous, normalize_dim};
use tracefx_core::{DType, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", |args| {
        scatter(args, Some(3))
    })
    .vjp(gradient::scatter)
    .doc("The tensor with elements of another one put where indices along a dimension say.")
    .tags(Tags::CORE)
    .in_place(&["scatter_.src"]),
    OpDef::new("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", scatter_value)
        .vjp(gradient::scatter_value)
        .doc("The tensor with a number put where indices along a dimension say.")
        .tags(Tags::CORE)
        .in_place(&["scatter_.value"]),
    OpDef::new(
        "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
        |args| {
            check_reduce(args, args.str(4)?)?;
            scatter(args, Some(3))
        },
    )
    .doc("The tensor with elements of another one added or multiplied where indices along a dimension say.")
    .tolerance(Tol::Default)
    .in_place(&["scatter_.reduce"]),
    OpDef::new(
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
        |args| {
            check_reduce(args, args.str(4)?)?;
            scatter_value(args)
        },
    )
    .doc("The tensor with a number added or multiplied where indices along a dimension say.")
    .tolerance(Tol::Default)
    .in_place(&["scatter_.value_reduce"]),
    OpDef::new("aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", |args| {
        scatter(args, Some(3))
    })
    .vjp(gradient::scatter_add)
    .doc("The tensor with elements of another one added where indices along a dimension say.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default)
    .in_place(&["scatter_add_"]),
    OpDef::new(
        "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool \
             include_self=True) -> Tensor",
        |args| {
            let reduce = args.str(4)?;
            if !["sum", "prod", "mean", "amax", "amin"].contains(&reduce) {
                let what = "reduce argument must be either sum, prod, mean, amax or amin, got";
                return Err(args.invalid(format!("{what} {reduce}")));
            }
            scatter(args, Some(3))
        },
    )
    .vjp(gradient::scatter_reduce)
    .doc("The tensor combined with elements of another one where indices along a dimension say.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default)
    .in_place(&["scatter_reduce_.two"]),
    OpDef::new(
        "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        index_add,
    )
    .vjp(gradient::index_add)
    .doc("The tensor with slices of another one added where an index vector says.")
    .decompose(index_add_by_put)
    .tolerance(Tol::Default)
    .in_place(&["index_add_"]),
    OpDef::new("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", index_copy)
        .vjp(gradient::index_copy)
        .doc("The tensor with slices of another one put where an index vector says.")
        .decompose(|cx, args| put_slices(cx, args, &args.values[3], false))
        .in_place(&["index_copy_"]),
    OpDef::new("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", |args| {
        let value = args.scalar(3)?;
        if matches!(value, Scalar::Complex(_)) && !args.tensor(0)?.dtype.is_complex() {
            let what = "index_fill_(): Converting complex Scalar to non-complex type is not supported";
            return Err(wrong_dtype(args, what));
        }
        check_fits(value, args.tensor(0)?.dtype)?;
        index_fill(args)
    })
    .vjp(gradient::index_fill)
    .doc("The tensor with the slices that an index vector names filled with a number.")
    .decompose(index_fill_by_put)
    .in_place(&["index_fill_.int_Scalar"]),
    OpDef::new("aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", |args| {
        let rank = args.tensor(3)?.sizes.len();
        if rank != 0 {
            return Err(args.bad_shape(format!(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {rank} dimension(s)."
            )));
        }
        index_fill(args)
    })
    .vjp(gradient::index_fill)
    .doc("The tensor with the slices that an index vector names filled with the element of a 0-d tensor.")
    .decompose(index_fill_by_put)
    .in_place(&["index_fill_.int_Tensor"]),
    OpDef::new(
        "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool \
             include_self=True) -> Tensor",
        index_reduce,
    )
    .vjp(gradient::index_reduce)
    .doc("The tensor combined with slices of another one where an index vector says.")
    .tolerance(Tol::Default)
    .in_place(&["index_reduce_"]),
    OpDef::new("aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put)
        .vjp(gradient::put)
        .doc("The tensor with elements put at, or added to, positions of its flattened form.")
        .tolerance(Tol::Default)
        .in_place(&["put_"]),
];

fn check_reduce(args: &Args<'_, TensorMeta>, reduce: &str) -> Result<()> {
    if matches!(reduce, "add" | "multiply") {
        return Ok(());
    }
    Err(args.invalid("reduce argument must be either add or multiply."))
}

fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::Int32 | DType::Int64)
}

/// The sizes, of which a 0-d tensor counts as having one.
fn at_least_1d(sizes: &[SymInt]) -> Vec<SymInt> {
    if sizes.is_empty() { vec![SymInt::ONE] } else { sizes.to_vec() }
}

/// Checks the index of `gather`, along this dimension of `self`.
pub(crate) fn check_gather(args: &Args<'_, TensorMeta>, dim: usize, index: &TensorMeta) -> Result<()> {
    let base = args.tensor(0)?;
    if index.sizes.iter().any(|it| *it == 0) {
        return Ok(());
    }
    if !is_index(index.dtype) {
        let what = format!("{}(): Expected dtype int32/int64 for index", args.op.schema.name);
        return Err(wrong_dtype(args, what));
    }
    let (own, sizes) = (at_least_1d(&index.sizes), at_least_1d(&base.sizes));
    if own.len() != sizes.len() {
        return Err(args.bad_shape("Index tensor must have the same number of dimensions as input tensor"));
    }
    if let Some(at) = (0..own.len()).find(|&at| at != dim && args.less(&sizes[at], &own[at])) {
        return Err(args.bad_shape(format!(
            "Size does not match at dimension {at} expected index {} to be no larger than self {} apart from dimension \
             {dim}",
            listed(&index.sizes),
            listed(&base.sizes)
        )));
    }
    Ok(())
}

fn scatter(args: &Args<'_, TensorMeta>, source: Option<usize>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(2)?);
    let dim = normalize_dim(args, args.int(1)?, base.sizes.len())?;
    let source = source.map(|it| args.tensor(it)).transpose()?;
    let name = &args.op.schema.name;
    if source.is_some_and(|it| it.dtype != base.dtype) {
        return Err(wrong_dtype(args, format!("{name}(): Expected self.dtype to be equal to src.dtype")));
    }
    let res = contiguous(base.dtype, base.sizes.clone());
    if index.sizes.iter().any(|it| *it == 0) {
        return Ok(res);
    }
    if !is_index(index.dtype) {
        return Err(wrong_dtype(args, format!("{name}(): Expected dtype int32/int64 for index")));
    }
    let (own, sizes) = (at_least_1d(&index.sizes), at_least_1d(&base.sizes));
    let source_sizes = source.map(|it| at_least_1d(&it.sizes));
    for (sizes, what) in [(Some(&sizes), "self"), (source_sizes.as_ref(), "src")] {
        if sizes.is_some_and(|it| it.len() != own.len()) {
            let what = format!("Index tensor must have the same number of dimensions as {what} tensor");
            return Err(args.bad_shape(what));
        }
    }
    let is_too_large = (0..own.len()).any(|at| {
        (at != dim && args.less(&sizes[at], &own[at]))
            || source_sizes.as_ref().is_some_and(|source| args.less(&source[at], &own[at]))
    });
    if is_too_large {
        let beyond =
            source.map_or(String::new(), |it| format!(" and to be no larger size than src {}", listed(&it.sizes)));
        return Err(args.bad_shape(format!(
            "Expected index {} to be no larger than self {} apart from dimension {dim}{beyond}",
            listed(&index.sizes),
            listed(&base.sizes)
        )));
    }
    Ok(res)
}

fn scatter_value(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_fits(args.scalar(3)?, args.tensor(0)?.dtype)?;
    scatter(args, None)
}

/// What the index and source of `index_add` and its like must be.
fn check_slices(args: &Args<'_, TensorMeta>, name: &str) -> Result<usize> {
    let (base, index, source) = (args.tensor(0)?, args.tensor(2)?, args.tensor(3)?);
    let dim = normalize_dim(args, args.int(1)?, base.sizes.len())?;
    if index.sizes.len() > 1 {
        return Err(out_of_range(
            args,
            format!(
                "{name}(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {}",
                index.sizes.len(),
                index.dtype.cpp_name(),
                listed(&index.sizes)
            ),
        ));
    }
    if !is_index(index.dtype) {
        let what = format!("{name}(): Expected dtype int32/int64 for index but got: {}", index.dtype.cpp_name());
        return Err(wrong_dtype(args, what));
    }
    if source.dtype != base.dtype {
        return Err(wrong_dtype(
            args,
            format!(
                "{name}(): self ({}) and source ({}) must have the same scalar type",
                base.dtype.cpp_name(),
                source.dtype.cpp_name()
            ),
        ));
    }
    let n = index.sizes.iter().product::<SymInt>();
    let size = source.sizes.get(dim).cloned().unwrap_or(SymInt::ONE);
    if args.differ(&n, &size) {
        return Err(args.bad_shape(format!(
            "{name}(): Number of indices ({n}) should be equal to source.size(dim): ({size}), for dim: {dim}"
        )));
    }
    let differs = |(at, (a, b)): (usize, (&SymInt, &SymInt))| at != dim && args.differ(a, b);
    if source.sizes.len() != base.sizes.len() || base.sizes.iter().zip(&source.sizes).enumerate().any(differs) {
        return Err(args.bad_shape(format!(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} \
             source.shape = {}",
            listed(&base.sizes),
            listed(&source.sizes)
        )));
    }
    Ok(dim)
}

fn index_add(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    check_slices(args, "index_add_")?;
    let base = args.tensor(0)?;
    check_fits(args.scalar(4)?, base.dtype)?;
    Ok(contiguous(base.dtype, base.sizes.clone()))
}

fn index_copy(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(2)?);
    if index.dtype != DType::Int64 {
        let what = "index_copy_(): Expected a long tensor for index, but got";
        return Err(wrong_dtype(args, format!("{what} {}", index.dtype.cpp_name())));
    }
    check_slices(args, "index_copy_")?;
    Ok(contiguous(base.dtype, base.sizes.clone()))
}

fn index_reduce(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let reduce = args.str(4)?;
    if !["prod", "mean", "amax", "amin"].contains(&reduce) {
        return Err(args.invalid(format!(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )));
    }
    check_slices(args, "index_reduce_")?;
    let base = args.tensor(0)?;
    Ok(contiguous(base.dtype, base.sizes.clone()))
}

fn index_fill(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(2)?);
    normalize_dim(args, args.int(1)?, base.sizes.len())?;
    if index.dtype != DType::Int64 {
        return Err(out_of_range(args, "index_fill_(): Expected dtype int64 for index."));
    }
    if index.sizes.len() > 1 {
        return Err(args.bad_shape("Index has to be a vector/scalar"));
    }
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}

fn put(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index, source) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let numel = |it: &TensorMeta| it.sizes.iter().product::<SymInt>();
    if index.dtype != DType::Int64 {
        let what = format!("put_(): Expected a long tensor for index, but got {}", index.dtype.cpp_name());
        return Err(wrong_dtype(args, what));
    }
    if base.dtype != source.dtype {
        return Err(wrong_dtype(
            args,
            format!(
                "put_(): self and source expected to have the same dtype, but got self.dtype = {} and \
                     source.dtype = {}",
                base.dtype.cpp_name(),
                source.dtype.cpp_name()
            ),
        ));
    }
    let (n_source, n_index) = (numel(source), numel(index));
    if args.differ(&n_source, &n_index) {
        return Err(args.bad_shape(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {n_source}, \
             index.numel() = {n_index}"
        )));
    }
    if numel(base) == 0 && n_index.as_int().is_some_and(|it| it != 0) {
        return Err(out_of_range(args, "put_(): Tried to put elements into an empty tensor"));
    }
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}

/// `index_put` of slices at an index vector along one dimension.
fn put_slices(cx: &mut Cx<'_>, args: &Call<'_>, source: &Traced, adds: bool) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    if rank == 0 {
        return Err(args.unsupported(format!("{} of a 0-d tensor has no other form", args.op.name)));
    }
    let dim = normalize_dim(args, args.int(1)?, rank)?;
    let mut index = args.values[2].clone();
    if cx.meta(*args.tensor(2)?).sizes.is_empty() {
        index = cx.aten("unsqueeze", [&index, &Value::int(0)])?;
    }
    let mut indices = vec![Value::None; dim];
    indices.push(index);
    Ok(vec![cx.aten("index_put", [&args.values[0], &Value::List(indices), source, &Value::Bool(adds)])?])
}

fn index_add_by_put(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut source = args.values[3].clone();
    if args.scalar(4)? != Scalar::Int(1) {
        source = cx.aten("mul.Tensor", [&source, &args.values[4]])?;
    }
    put_slices(cx, args, &source, true)
}

fn index_fill_by_put(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dtype = cx.meta(*args.tensor(0)?).dtype;
    let value = match &args.values[3] {
        Value::Tensor(_) => to_dtype(cx, args.values[3].clone(), dtype)?,
        number => cx.aten_with("scalar_tensor", [number], &[("dtype", Value::DType(dtype))])?,
    };
    put_slices(cx, args, &value, false)
}
