//! Indexing with tensors, as Python's `x[i, :, j]` reads and writes it.

use crate::core::decompositions::Call;
use crate::core::elementwise::laid_out;
use crate::index::gather::wrong_dtype;
use crate::index::gradient;
use crate::view::strides::{listed, out_of_range};
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", index)
        .vjp(gradient::index)
        .doc("The elements at the positions that broadcast index tensors name; masks stand for their true positions.")
        .tags(Tags::CORE)
        .decompose(|cx, args| without_masks(cx, args, "index.Tensor")),
    OpDef::new("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", unsafe_index)
        .vjp(gradient::index)
        .doc("`index` with indices that are known to be inside.")
        .decompose(|cx, args| Ok(vec![cx.aten("index.Tensor", &args.values)?])),
    OpDef::new(
        "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    )
    .vjp(gradient::index_put)
    .doc("The tensor with values put at, or added to, the positions that index tensors name.")
    .tags(Tags::CORE)
    .decompose(|cx, args| without_masks(cx, args, "index_put"))
    .in_place(&["index_put_"]),
    OpDef::new(
        "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        index_put,
    )
    .vjp(gradient::index_put)
    .doc("`index_put` with indices that are known to be inside.")
    .decompose(|cx, args| Ok(vec![cx.aten("index_put", &args.values)?])),
];

fn is_mask(meta: &TensorMeta) -> bool {
    matches!(meta.dtype, DType::Bool | DType::UInt8)
}

/// Whether an index is a mask, so that its positions are known only from its data.
fn has_mask(indices: &[Option<&TensorMeta>]) -> bool {
    indices.iter().flatten().any(|it| is_mask(it))
}

fn check_indices<'a>(args: &'a Args<'_, TensorMeta>) -> Result<Vec<Option<&'a TensorMeta>>> {
    let (base, indices) = (args.tensor(0)?, args.opt_tensors(1)?);
    if indices.iter().all(Option::is_none) {
        return Err(out_of_range(args, "at least one index must be provided"));
    }
    let mut dim = 0;
    for index in &indices {
        let Some(index) = index else {
            dim += 1;
            continue;
        };
        if !matches!(index.dtype, DType::Int64 | DType::Int32 | DType::UInt8 | DType::Bool) {
            let what = "tensors used as indices must be long, int, byte or bool tensors";
            return Err(out_of_range(args, what));
        }
        if !is_mask(index) {
            if base.sizes.get(dim).is_some_and(|it| *it == 0) && index.sizes.iter().all(|it| *it != 0) {
                return Err(out_of_range(args, "index is out of bounds for dimension with size 0"));
            }
            dim += 1;
            continue;
        }
        // A mask stands for as many dimensions as it has.
        for (own, size) in index.sizes.iter().enumerate() {
            let differs = |other: &SymInt| args.differ(other, size);
            if base.sizes.get(dim + own).is_none_or(differs) {
                return Err(out_of_range(
                    args,
                    format!(
                        "The shape of the mask {} at index {own} does not match the shape of the indexed tensor {} at \
                         index {}",
                        listed(&index.sizes),
                        listed(&base.sizes),
                        dim + own
                    ),
                ));
            }
        }
        dim += index.sizes.len();
    }
    if dim > base.sizes.len() {
        let what = format!("too many indices for tensor of dimension {} (got {dim})", base.sizes.len());
        return Err(out_of_range(args, what));
    }
    Ok(indices)
}

/// The sizes that the indices broadcast to.
fn broadcast_indices(args: &Args<'_, TensorMeta>, indices: &[Option<&TensorMeta>]) -> Result<Vec<SymInt>> {
    let shapes: Vec<&[SymInt]> = indices.iter().flatten().map(|it| &it.sizes[..]).collect();
    let mismatch = |_: Diagnostic| {
        let shapes: Vec<String> = shapes.iter().map(|it| listed(it)).collect();
        out_of_range(
            args,
            format!(
                "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                shapes.join(", ")
            ),
        )
    };
    shapes.iter().try_fold(Vec::new(), |so_far, it| crate::broadcast(args, &so_far, it)).map_err(mismatch)
}

/// The sizes that indexing gives, and which of its dimensions are those of the broadcast indices: where the indexed
/// dimensions lie next to each other, in their place, else in front.
fn indexed_sizes(base: &TensorMeta, indices: &[Option<&TensorMeta>], broadcast: &[SymInt]) -> (Vec<SymInt>, usize) {
    let is_indexed = |dim: usize| indices.get(dim).is_some_and(Option::is_some);
    let first = (0..base.sizes.len()).find(|&dim| is_indexed(dim)).unwrap_or(0);
    let n_indexed = indices.iter().flatten().count();
    let is_adjacent = (first..first + n_indexed).all(is_indexed);
    let lead = if is_adjacent { first } else { 0 };
    let mut sizes: Vec<SymInt> =
        (0..base.sizes.len()).filter(|&dim| !is_indexed(dim)).map(|dim| base.sizes[dim].clone()).collect();
    sizes.splice(lead..lead, broadcast.iter().cloned());
    (sizes, lead)
}

/// The indices with vectors of positions in the place of masks.
fn positions(args: &Args<'_, TensorMeta>, indices: &[Option<&TensorMeta>]) -> Vec<Option<TensorMeta>> {
    let mut res = Vec::new();
    for index in indices {
        match index {
            Some(mask) if is_mask(mask) => {
                let n = args.new_size_up_to(&mask.sizes.iter().product());
                let picked = TensorMeta::contiguous(DType::Int64, vec![n]);
                res.extend(std::iter::repeat_n(Some(picked), mask.sizes.len()));
            }
            index => res.push(index.cloned()),
        }
    }
    res
}

fn unsafe_index(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if let Some(mask) = args.opt_tensors(1)?.into_iter().flatten().find(|it| is_mask(it)) {
        let what = format!("_unsafe_index found unexpected index type {}", mask.dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    index(args)
}

fn index(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let given = check_indices(args)?;
    // What a mask picks is a vector of positions for each of its dimensions, all of one unknown length.
    let picked = has_mask(&given).then(|| positions(args, &given));
    let indices: Vec<Option<&TensorMeta>> = picked.as_ref().map_or(given, |it| it.iter().map(Option::as_ref).collect());
    let broadcast = broadcast_indices(args, &indices)?;
    let (sizes, lead) = indexed_sizes(base, &indices, &broadcast);
    // PyTorch lays the result out as it lays out any operator over the tensor, with strides of zero along the indexed
    // dimensions, and the indices.
    let is_indexed = |dim: usize| indices.get(dim).is_some_and(Option::is_some);
    let mut strides: Vec<SymInt> =
        (0..base.sizes.len()).filter(|&dim| !is_indexed(dim)).map(|dim| base.strides[dim].clone()).collect();
    strides.splice(lead..lead, broadcast.iter().map(|_| SymInt::ZERO));
    let mut operands = vec![TensorMeta { sizes: sizes.clone(), strides, ..base.clone() }];
    for index in indices.iter().flatten() {
        let mut spread = TensorMeta { sizes: sizes.clone(), strides: vec![SymInt::ZERO; sizes.len()], ..base.clone() };
        let skipped = broadcast.len() - index.sizes.len();
        for (dim, (size, stride)) in index.sizes.iter().zip(&index.strides).enumerate() {
            if *size != 1 {
                spread.strides[lead + skipped + dim] = stride.clone();
            }
        }
        operands.push(spread);
    }
    let operands: Vec<&TensorMeta> = operands.iter().collect();
    let meta = laid_out(base.dtype, sizes, &operands);
    Ok(vec![if picked.is_some() { Output::Unknown(Value::Tensor(meta)) } else { Output::Tensor(meta) }])
}

fn index_put(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, values) = (args.tensor(0)?, args.tensor(2)?);
    let indices = check_indices(args)?;
    if base.dtype != values.dtype {
        return Err(wrong_dtype(
            args,
            format!(
                "Index put requires the source and destination dtypes match, got {} for the destination and {} for the \
                 source.",
                base.dtype.cpp_name(),
                values.dtype.cpp_name()
            ),
        ));
    }
    if !has_mask(&indices) {
        let broadcast = broadcast_indices(args, &indices)?;
        let (sizes, _) = indexed_sizes(base, &indices, &broadcast);
        let fits = values.sizes.len() <= sizes.len()
            && values
                .sizes
                .iter()
                .zip(&sizes[sizes.len() - values.sizes.len()..])
                .all(|(own, size)| *own == 1 || !args.differ(own, size));
        if !fits {
            return Err(args.bad_shape(format!(
                "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
                listed(&values.sizes),
                listed(&sizes)
            )));
        }
    }
    Ok(vec![Output::Tensor(laid_out(base.dtype, base.sizes.clone(), &[base]))])
}

/// The call with the true positions of each mask, one index vector for each of its dimensions.
fn without_masks(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Result<Vec<Traced>> {
    let mut indices = Vec::new();
    let mut is_changed = false;
    for index in args.opt_tensors(1)? {
        let Some(&index) = index else {
            indices.push(Value::None);
            continue;
        };
        let meta = cx.meta(index);
        if !is_mask(meta) {
            indices.push(index.into());
            continue;
        }
        is_changed = true;
        let rank = meta.sizes.len();
        let positions = cx.aten("nonzero", [&index.into()])?;
        for dim in 0..rank {
            indices.push(cx.aten("select.int", [&positions, &Value::int(1), &Value::int(dim as i64)])?);
        }
    }
    if !is_changed {
        return Err(args.unsupported(format!("{} has no other form without masks", args.op.name)));
    }
    let mut values = args.values.clone();
    values[1] = Value::List(indices);
    Ok(vec![cx.aten(op, &values)?])
}
