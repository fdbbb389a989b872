//! Scaled dot-product attention.

use crate::core::decompositions::{Call, tensor_of};
use crate::core::elementwise::laid_out;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, broadcast, contiguous};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, \
             float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        attention,
    )
    .doc("`softmax(query @ key.T * scale + mask) @ value`, where a row that is masked altogether gives zeros.")
    .decompose(decomposed)
    .tags(Tags::RANDOM)
    .tolerance(Tol::Default),
    OpDef::composite(
        "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? \
             attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? \
             scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
        math,
    )
    .doc("Attention, with the weights as a second result.")
    .tags(Tags::RANDOM),
    OpDef::new(
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float \
             dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, \
             Tensor logsumexp)",
        flash,
    )
    .doc("Attention of a batch of heads, with the logarithm of each row's sum of exponentials as a second result.")
    .tolerance(Tol::Default),
];

type Meta<'a> = Args<'a, TensorMeta>;

/// Checks the arguments, of which the last four are where `at` says, and gives the sizes of the result.
fn result_sizes(args: &Meta<'_>, mask: usize, is_causal: usize, has_groups: bool) -> Result<Vec<SymInt>> {
    let (query, key, value) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let ranks = [query, key, value].map(|it| it.sizes.len());
    if ranks.iter().any(|&it| it < 2) {
        return Err(args.bad_shape(format!(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and \
             value.dim: {} instead.",
            ranks[0], ranks[1], ranks[2]
        )));
    }
    if query.dtype != key.dtype || query.dtype != value.dtype {
        let what = format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and \
             value.dtype: {} instead.",
            query.dtype.name(),
            key.dtype.name(),
            value.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    if !query.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(query.dtype, &args.op.name));
    }
    let [(q_batch, q), (k_batch, k), (v_batch, v)] =
        [query, key, value].map(|it| it.sizes.split_at(it.sizes.len() - 2));
    if q[1] != k[1] || k[0] != v[0] {
        return Err(args.bad_shape(format!(
            "query of {}x{}, key of {}x{} and value of {}x{} do not fit",
            q[0], q[1], k[0], k[1], v[0], v[1]
        )));
    }
    let (mut k_batch, mut v_batch) = (k_batch.to_vec(), v_batch.to_vec());
    if has_groups {
        for batch in [&mut k_batch, &mut v_batch] {
            let (Some(heads), Some(all)) = (batch.last_mut(), q_batch.last()) else {
                return Err(args.bad_shape("grouped attention needs a dimension of heads"));
            };
            if let (Some(n), Some(n_all)) = (heads.as_int(), all.as_int())
                && (n == 0 || n_all % n != 0)
            {
                return Err(args.bad_shape("Number of heads in key and value must divide the number of heads in query"));
            }
            *heads = all.clone();
        }
    }
    let mut sizes = broadcast(args, &broadcast(args, q_batch, &k_batch)?, &v_batch)?;
    if let Some(mask) = args.opt_tensor(mask)? {
        if args.bool(is_causal)? {
            return Err(
                args.invalid("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
            );
        }
        if mask.dtype != DType::Bool && mask.dtype != query.dtype && mask.dtype != DType::Float32 {
            let what = format!(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  \
                 query.dtype: {} instead.",
                mask.dtype.name(),
                query.dtype.name()
            );
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
        let scores = [&sizes[..], &[q[0].clone(), k[0].clone()]].concat();
        if !args.agree(&broadcast(args, &mask.sizes, &scores)?, &scores) {
            return Err(args.bad_shape("the attention mask does not expand to the attention weights"));
        }
    }
    sizes.extend([q[0].clone(), v[1].clone()]);
    Ok(sizes)
}

fn attention(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (query, value) = (args.tensor(0)?, args.tensor(2)?);
    let sizes = result_sizes(args, 3, 5, args.bool(7)?)?;
    // Where PyTorch's fused kernel serves, the result lies in memory as the query does.
    let is_fused = is_fused(query, value, &sizes, args.float(4)?);
    Ok(if is_fused { like(query, sizes) } else { contiguous(query.dtype, sizes) })
}

/// Whether PyTorch's fused kernel serves.
fn is_fused(query: &TensorMeta, value: &TensorMeta, sizes: &[SymInt], dropout: f64) -> bool {
    sizes.len() == 4 && query.sizes == sizes && query.sizes[..2] == value.sizes[..2] && dropout == 0.0
}

/// A result that lies in memory as the query does.
fn like(query: &TensorMeta, sizes: Vec<SymInt>) -> Vec<Output> {
    vec![Output::Tensor(laid_out(query.dtype, sizes, &[query]))]
}

fn flash(args: &Meta<'_>) -> Result<Vec<Output>> {
    let query = args.tensor(0)?;
    let sizes = result_sizes(args, 5, 4, false)?;
    let [n_batch, n_heads, n_rows, _] = &sizes[..] else {
        return Err(args.bad_shape(
            "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {(B), H, T, K}",
        ));
    };
    let dtype = if query.dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    // In memory, the heads come last.
    let mut sums = TensorMeta::contiguous(dtype, vec![n_batch.clone(), n_rows.clone(), n_heads.clone()]);
    sums.sizes.swap(1, 2);
    sums.strides.swap(1, 2);
    let mut outputs = like(query, sizes);
    outputs.push(Output::Tensor(sums));
    Ok(outputs)
}

fn decomposed(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut res = attend(cx, args, args.opt_float(6)?, args.bool(7)?)?;
    res.truncate(1);
    let sizes = cx.meta(tensor_of(&res[0])).sizes.clone();
    if is_fused(cx.meta(*args.tensor(0)?), cx.meta(*args.tensor(2)?), &sizes, args.float(4)?) {
        // What PyTorch takes the fused kernel apart into says how the result lies in memory: the rows first.
        let order = |dims: [i64; 4]| Value::List(dims.into_iter().map(Value::int).collect());
        let rows = cx.aten("permute", [&res.remove(0), &order([2, 0, 1, 3])])?;
        let rows = cx.aten("contiguous", [&rows])?;
        res.push(cx.aten("permute", [&rows, &order([1, 2, 0, 3])])?);
    }
    Ok(res)
}

fn math(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    if !args.is_none(6) {
        return Err(args.unsupported("attention with a dropout mask"));
    }
    attend(cx, args, args.opt_float(7)?, args.bool(8)?)
}

/// Follows `_scaled_dot_product_attention_math` of aten/src/ATen/native/transformers/attention.cpp.
fn attend(cx: &mut Cx<'_>, args: &Call<'_>, scale: Option<f64>, has_groups: bool) -> Result<Vec<Traced>> {
    let (query, mut key, mut value) = (*args.tensor(0)?, args.values[1].clone(), args.values[2].clone());
    let meta = cx.meta(query).clone();
    let n_rank = meta.sizes.len();
    if n_rank < 2 {
        return Err(args.bad_shape("the query needs at least two dimensions"));
    }
    let n_features = meta.sizes[n_rank - 1].as_int().map(|it| it as f64);
    let Some(scale) = scale.or(n_features.map(|it| 1.0 / it.sqrt())) else {
        return Err(args.unsupported("attention without a scale over a size that is not known"));
    };
    // Both sides take the root of the scale, which is better for half types.
    let root = scale.abs().sqrt();
    let query = cx.aten("mul.Scalar", [&query.into(), &Value::Float(if scale < 0.0 { -root } else { root })])?;
    if has_groups {
        for side in [&mut key, &mut value] {
            let n = cx.meta(tensor_of(side)).sizes.iter().rev().nth(2).cloned();
            let (Some(n), Some(n_all)) = (n, meta.sizes.iter().rev().nth(2)) else {
                return Err(args.bad_shape("grouped attention needs a dimension of heads"));
            };
            let call = [side, &Value::Int(n_all.floor_div(&n)), &Value::int(-3)];
            *side = cx.aten("repeat_interleave.self_int", call)?;
        }
    }
    let transposed = cx.aten("transpose.int", [&key, &Value::int(-2), &Value::int(-1)])?;
    let transposed = cx.aten("mul.Scalar", [&transposed, &Value::Float(root)])?;
    let mut weights = cx.aten("matmul", [&query, &transposed])?;
    if let Some(mask) = additive_mask(cx, args, &meta, &weights)? {
        weights = cx.aten("add.Tensor", [&weights, &mask])?;
    }
    let mut weights = cx.aten("_safe_softmax", [&weights, &Value::int(-1)])?;
    let dropout = args.float(4)?;
    if dropout > 0.0 {
        weights = cx.aten("dropout", [&weights, &Value::Float(dropout), &Value::Bool(true)])?;
    }
    let result = cx.aten("matmul", [&weights, &value])?;
    Ok(vec![result, weights])
}

/// The mask as numbers to add: zero where a weight counts and minus infinity where it does not.
fn additive_mask(cx: &mut Cx<'_>, args: &Call<'_>, query: &TensorMeta, weights: &Traced) -> Result<Option<Traced>> {
    let mask: Traced = if args.bool(5)? {
        let sizes = cx.meta(tensor_of(weights)).sizes.clone();
        let square = sizes[sizes.len() - 2..].iter().cloned().map(Value::Int).collect();
        let ones = cx.aten_with("ones", [&Value::List(square)], &[("dtype", Value::DType(DType::Bool))])?;
        cx.aten("tril", [&ones])?
    } else {
        match args.opt_tensor(3)? {
            Some(mask) if cx.meta(*mask).dtype == DType::Bool => (*mask).into(),
            Some(mask) => return Ok(Some((*mask).into())),
            None => return Ok(None),
        }
    };
    let hidden = cx.aten("logical_not", [&mask])?;
    let zeros = cx.aten_with("zeros_like", [&mask], &[("dtype", Value::DType(query.dtype))])?;
    let minus_infinity = Value::Float(f64::NEG_INFINITY);
    Ok(Some(cx.aten("masked_fill.Scalar", [&zeros, &hidden, &minus_infinity])?))
}
