//! Elements picked by position: one index for each result, along one dimension or of the flattened tensor.

use crate::core::decompositions::{Call, size_list};
use crate::core::elementwise::laid_out;
use crate::index::embedding_gradient;
use crate::index::gradient;
use crate::index::scatter::check_gather;
use crate::view::strides::{listed, out_of_range};
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, broadcast, contiguous, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select)
        .vjp(gradient::index_select)
        .doc("The positions of a dimension that an index vector names.")
        .tags(Tags::CORE),
    OpDef::new(
        "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, \
             bool sparse=False) -> Tensor",
        embedding,
    )
    .vjp(embedding_gradient::embedding)
    .doc("The rows of a table that indices name.")
    .tags(Tags::CORE),
    OpDef::new(
        "aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
        embedding_renorm,
    )
    .doc("The table with the rows that indices name scaled down to a norm, where theirs is larger.")
    .tolerance(Tol::Default)
    .in_place(&["embedding_renorm_"]),
    OpDef::new("aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", gather)
        .vjp(gradient::gather)
        .doc("One element for each index: the one at its own position but for one dimension, where the index says.")
        .tags(Tags::CORE),
    OpDef::new("aten::take(Tensor self, Tensor index) -> Tensor", take)
        .doc("The elements at positions of the flattened tensor.")
        .decompose(|cx, args| {
            let line = cx.aten("reshape", [&args.values[0], &Value::ints(&[-1])])?;
            Ok(vec![cx.aten("index.Tensor", [&line, &Value::List(vec![args.values[1].clone()])])?])
        }),
    OpDef::composite("aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim)
        .doc("`gather` with an index that broadcasts and may count from the end.")
        .tolerance(Tol::Exact),
];

/// An error about a tensor of the wrong dtype.
pub(crate) fn wrong_dtype<T>(args: &Args<'_, T>, what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name)
}

fn embedding_renorm(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (table, indices) = (args.tensor(0)?, args.tensor(1)?);
    if table.sizes.len() != 2 || !table.dtype.is_float() {
        return Err(args.bad_shape("embedding_renorm_: expected a table of floats with two dimensions"));
    }
    if !matches!(indices.dtype, DType::Int32 | DType::Int64) {
        return Err(wrong_dtype(args, "embedding_renorm_: expected indices of type int32 or int64"));
    }
    Ok(vec![Output::Tensor(laid_out(table.dtype, table.sizes.clone(), &[table]))])
}

fn index_select(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(2)?);
    let dim = normalize_dim(args, args.int(1)?, base.sizes.len())?;
    if index.sizes.len() > 1 {
        return Err(args.bad_shape("index_select(): Index is supposed to be a vector"));
    }
    if !matches!(index.dtype, DType::Int32 | DType::Int64) {
        return Err(wrong_dtype(args, "index_select(): Expected dtype int32 or int64 for index"));
    }
    let n = index.sizes.first().cloned().unwrap_or(SymInt::ONE);
    let mut sizes = base.sizes.clone();
    match sizes.get_mut(dim) {
        Some(size) => *size = n,
        None if args.differ(&n, &SymInt::ONE) => {
            let what = format!("index_select(): Index to scalar can have only 1 value, got {n} value(s)");
            return Err(args.bad_shape(what));
        }
        None => {}
    }
    Ok(contiguous(base.dtype, sizes))
}

fn embedding(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (weight, indices) = (args.tensor(0)?, args.tensor(1)?);
    let [_, width] = &weight.sizes[..] else {
        return Err(args.bad_shape(format!("'weight' must be 2-D, but its sizes are {}", listed(&weight.sizes))));
    };
    if !matches!(indices.dtype, DType::Int32 | DType::Int64) {
        return Err(wrong_dtype(
            args,
            format!(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but \
                 got torch.{}Tensor instead (while checking arguments for embedding)",
                indices.dtype.cpp_name()
            ),
        ));
    }
    Ok(contiguous(weight.dtype, indices.sizes.iter().chain([width]).cloned().collect()))
}

fn gather(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(2)?);
    let dim = normalize_dim(args, args.int(1)?, base.sizes.len())?;
    check_gather(args, dim, index)?;
    Ok(contiguous(base.dtype, index.sizes.clone()))
}

fn take(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, index) = (args.tensor(0)?, args.tensor(1)?);
    if index.dtype != DType::Int64 {
        let what = format!("take(): Expected a long tensor for index, but got {}", index.dtype.cpp_name());
        return Err(wrong_dtype(args, what));
    }
    if base.sizes.iter().any(|it| *it == 0) && index.sizes.iter().all(|it| *it != 0) {
        return Err(out_of_range(args, "take(): tried to take from an empty tensor"));
    }
    Ok(contiguous(base.dtype, index.sizes.clone()))
}

fn take_along_dim(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (base, index) = (*args.tensor(0)?, *args.tensor(1)?);
    if cx.meta(index).dtype != DType::Int64 {
        let what = "torch.take_along_dim(): dtype of indices should be Long but got";
        return Err(wrong_dtype(args, format!("{what} {}", cx.meta(index).dtype.cpp_name())));
    }
    let (mut base, mut index): (Traced, Traced) = (base.into(), index.into());
    let dim = match args.opt_int(2)? {
        None => {
            base = cx.aten("reshape", [&base, &Value::ints(&[-1])])?;
            index = cx.aten("reshape", [&index, &Value::ints(&[-1])])?;
            0
        }
        Some(dim) => {
            let sizes = |cx: &Cx<'_>, it: usize| args.tensor(it).map(|it| cx.meta(*it).sizes.clone());
            let (mut own, mut other) = (sizes(cx, 0)?, sizes(cx, 1)?);
            if own.len() != other.len() {
                return Err(args.bad_shape(format!(
                    "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
                     dimensions for input, and {} dimensions for indices",
                    own.len(),
                    other.len()
                )));
            }
            let dim = normalize_dim(args, dim, own.len())?;
            // All dimensions but this one broadcast.
            if let (Some(own_size), Some(other_size)) = (own.get(dim).cloned(), other.get(dim).cloned()) {
                (own[dim], other[dim]) = (SymInt::ONE, SymInt::ONE);
                let mut sizes = broadcast(args, &own, &other)?;
                sizes[dim] = own_size;
                base = cx.aten("expand", [&base, &size_list(&sizes)])?;
                sizes[dim] = other_size;
                index = cx.aten("expand", [&index, &size_list(&sizes)])?;
            }
            dim as i64
        }
    };
    // An index may count from the end, which `gather` refuses.
    let Value::Tensor(tensor) = base else { return Err(args.invalid("the elements are a tensor")) };
    let size = cx.meta(tensor).sizes.get(dim as usize).cloned().unwrap_or(SymInt::ONE);
    let index = cx.aten("remainder.Scalar", [&index, &Value::Int(size)])?;
    Ok(vec![cx.aten("gather", [&base, &Value::int(dim), &index])?])
}
