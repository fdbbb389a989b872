//! Bags of rows of a table, each summed, averaged or reduced to its maxima.

use crate::core::decompositions::Call;
use crate::index::embedding_gradient;
use crate::index::gather::wrong_dtype;
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, promote_types};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite(
        "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int \
             mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, \
             Tensor, Tensor, Tensor)",
        |cx, args| embedding_bag(cx, args, None),
    )
    .doc("Bags of rows of a table, each reduced to one row."),
    OpDef::composite(
        "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool \
             scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? \
             padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
        |cx, args| embedding_bag(cx, args, args.opt_int(8)?),
    )
    .doc("Bags of rows of a table, each reduced to one row; one row may count as nothing."),
    OpDef::new(
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int \
             mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int \
             padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        |args| bags(args, true),
    )
    .vjp_of_first(1, embedding_gradient::embedding_bag)
    .doc("Bags of rows of a table, each reduced to one row, with what its gradient needs.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool \
             scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool \
             include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        |args| bags(args, false),
    )
    .vjp_of_first(1, embedding_gradient::embedding_bag)
    .doc("Bags of rows of a table, each reduced to one row.")
    .tolerance(Tol::Default),
];

fn embedding_bag(cx: &mut Cx<'_>, args: &Call<'_>, padding: Option<i64>) -> Result<Vec<Traced>> {
    let weight = cx.meta(*args.tensor(0)?);
    let samples = args.opt_tensor(6)?.map(|it| cx.meta(*it));
    let needs_grad = weight.requires_grad || samples.is_some_and(|it| it.requires_grad);
    let mut values = args.values[..8].to_vec();
    let padding = match padding {
        None => SymInt::from(-1),
        Some(padding) => {
            let rows = weight.sizes.first().cloned().unwrap_or(SymInt::ZERO);
            if rows.as_int().is_some_and(|rows| padding < -rows || padding >= rows) {
                return Err(args.invalid(format!(
                    "padding_idx must be within the number of embeddings, {} through {}, but got {padding}",
                    -&rows,
                    &rows - 1
                )));
            }
            if padding < 0 { rows + padding } else { padding.into() }
        }
    };
    values.push(Value::Int(padding));
    let op = if needs_grad { "_embedding_bag" } else { "_embedding_bag_forward_only" };
    cx.aten_all(op, &values, &[])
}

/// The four results: the bags; to which bag each index belongs, unless the sum can do without; the bags' sizes, which
/// only means and maxima fill in; and which rows the maxima are from, else the sizes again.
fn bags(args: &Args<'_, TensorMeta>, needs_grad: bool) -> Result<Vec<Output>> {
    let (weight, indices, offsets) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let samples = args.opt_tensor(6)?;
    let (mode, includes_last, padding) = (args.int(4)?, args.bool(7)?, args.sym_int(8)?);
    let [_, width] = &weight.sizes[..] else {
        return Err(
            args.bad_shape(format!("weight has to be a 2D Tensor, but its sizes are {}", listed(&weight.sizes)))
        );
    };
    for (name, index) in [("input", indices), ("offsets", offsets)] {
        if index.sizes.len() != 1 {
            let what = format!("{name} has to be a 1D Tensor, but got Tensor of dimension {}", index.sizes.len());
            return Err(args.bad_shape(what));
        }
        if !matches!(index.dtype, DType::Int32 | DType::Int64) {
            return Err(wrong_dtype(
                args,
                format!(
                    "Expected tensor for argument '{name}' to have one of the following scalar types: Long, Int; but \
                     got torch.{}Tensor instead (while checking arguments for embedding_bag)",
                    index.dtype.cpp_name()
                ),
            ));
        }
    }
    if !matches!(weight.dtype, DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64) {
        return Err(wrong_dtype(
            args,
            format!(
                "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, \
                 Float, Double; but got torch.{}Tensor instead (while checking arguments for embedding_bag)",
                weight.dtype.cpp_name()
            ),
        ));
    }
    if !(0..=2).contains(&mode) {
        return Err(args.invalid(format!("embedding_bag: the mode is 0 (sum), 1 (mean) or 2 (max), not {mode}")));
    }
    if let Some(samples) = samples {
        if mode != 0 {
            return Err(args.invalid("embedding_bag: per_sample_weights only supported with mode='sum'"));
        }
        if samples.dtype != weight.dtype {
            let what = "expected the weights of the samples to have the dtype of the table";
            return Err(wrong_dtype(args, what));
        }
        if !args.agree(&samples.sizes, &indices.sizes) {
            return Err(args.bad_shape(format!(
                "expected per_sample_weights to have the sizes of the input {}, but got {}",
                listed(&indices.sizes),
                listed(&samples.sizes)
            )));
        }
    }
    if includes_last && offsets.sizes[0] == 0 {
        return Err(args.bad_shape("include_last_offset: number of offset should be at least 1"));
    }
    let n_bags = &offsets.sizes[0] - includes_last as i64;
    let n_sizes = if mode == 0 && !needs_grad { offsets.sizes[0].clone() } else { n_bags.clone() };
    // fbgemm's sum over floats whose rows lie together does not ask to which bag an index belongs.
    let is_fast = mode == 0
        && weight.dtype != DType::Float64
        && weight.strides[1] == 1
        && padding.as_int().is_some_and(|it| it < 0)
        && samples.is_none_or(|it| it.strides[0] == 1);
    let dtype = promote_types(indices.dtype, offsets.dtype);
    let new = |dtype: DType, sizes: &[&SymInt]| {
        Output::Tensor(TensorMeta::contiguous(dtype, sizes.iter().map(|&it| it.clone()).collect()))
    };
    Ok(vec![
        new(weight.dtype, &[&n_bags, width]),
        new(dtype, &[if is_fast { &SymInt::ZERO } else { &indices.sizes[0] }]),
        new(dtype, &[&n_sizes]),
        if mode == 2 { new(dtype, &[&n_bags, width]) } else { new(dtype, &[&n_sizes]) },
    ])
}
