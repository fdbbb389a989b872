//! Products that are made of `mm`, `bmm` and their kin, as PyTorch makes them.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::core::elementwise::check_all_fit;
use crate::core::infer::sized_dim;
use crate::{Cx, OpDef, Tags, TensorRef, Traced, Value, broadcast, promote_types};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::matmul(Tensor self, Tensor other) -> Tensor", matmul)
        .tags(Tags::FRESH)
        .doc("The product of tensors of any rank: vectors, matrices, or batches of matrices, which broadcast."),
    OpDef::composite("aten::linalg_matmul(Tensor self, Tensor other) -> Tensor", matmul)
        .tags(Tags::FRESH)
        .doc("The same as `matmul`."),
    OpDef::composite("aten::inner(Tensor self, Tensor other) -> Tensor", inner)
        .doc("The inner products over the last dimensions."),
    OpDef::composite("aten::outer(Tensor self, Tensor vec2) -> Tensor", outer).doc("The outer product of two vectors."),
    OpDef::composite("aten::ger(Tensor self, Tensor vec2) -> Tensor", outer).doc("The same as `outer`."),
    OpDef::composite(
        "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addr,
    )
    .doc("`beta * self + alpha * outer(vec1, vec2)`; where beta is zero, self does not count.")
    .in_place(&["addr_"]),
    OpDef::composite("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", vecdot)
        .doc("The inner products along one dimension, x conjugated."),
    OpDef::composite(
        "aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
        tensordot,
    )
    .doc("The product summed over pairs of dimensions."),
    OpDef::composite("aten::kron(Tensor self, Tensor other) -> Tensor", kron).doc("The Kronecker product."),
    OpDef::composite("aten::chain_matmul(Tensor[] matrices) -> Tensor", multi_dot)
        .doc("The product of several matrices, in the cheapest order."),
    OpDef::composite("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor", multi_dot)
        .doc("The product of several matrices, in the cheapest order; the first and last may be vectors."),
    OpDef::composite("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", matrix_power)
        .doc("A square matrix to an integer power."),
    OpDef::composite("aten::matrix_power(Tensor self, int n) -> Tensor", matrix_power)
        .doc("A square matrix to an integer power."),
];

fn product(sizes: &[SymInt]) -> SymInt {
    sizes.iter().product()
}

fn sizes_of(cx: &Cx<'_>, value: &Traced) -> Vec<SymInt> {
    cx.meta(tensor_of(value)).sizes.clone()
}

fn matmul(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![multiply(cx, args, *args.tensor(0)?, *args.tensor(1)?)?])
}

/// `a @ b`, following `_matmul_impl` of aten/src/ATen/native/LinearAlgebra.cpp.
fn multiply(cx: &mut Cx<'_>, args: &Call<'_>, a: TensorRef, b: TensorRef) -> Result<Traced> {
    let (meta_a, meta_b) = (cx.meta(a).clone(), cx.meta(b).clone());
    let transposed = |cx: &mut Cx<'_>, it: Traced| cx.aten("transpose.int", [&it, &Value::int(-2), &Value::int(-1)]);
    match (meta_a.sizes.len(), meta_b.sizes.len()) {
        (0, _) | (_, 0) => Err(args.bad_shape(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            meta_a.sizes.len(),
            meta_b.sizes.len()
        ))),
        (1, 1) => cx.aten("dot", [&a.into(), &b.into()]),
        (2, 1) => cx.aten("mv", [&a.into(), &b.into()]),
        (1, 2) => {
            let row = cx.aten("unsqueeze", [&a.into(), &Value::int(0)])?;
            let product = cx.aten("mm", [&row, &b.into()])?;
            cx.aten("squeeze.dim", [&product, &Value::int(0)])
        }
        (2, 2) => cx.aten("mm", [&a.into(), &b.into()]),
        (rank_a, rank_b) if rank_a >= 3 && rank_b <= 2 && folds(&meta_a) => fold(cx, &a.into(), &b.into()),
        // A vector times a batch: the batch is folded the other way round.
        (1, _) if folds(&swapped(&meta_b)) => {
            let batch = transposed(cx, b.into())?;
            fold(cx, &batch, &a.into())
        }
        (_, _) => batch_multiply(cx, args, (a, &meta_a), (b, &meta_b)),
    }
}

/// Whether the leading dimensions can be seen as one without a copy.
fn folds(meta: &TensorMeta) -> bool {
    let n_folded = meta.sizes.len() - 1;
    meta.sizes.contains(&SymInt::from(0))
        || (1..n_folded).all(|dim| meta.strides[dim - 1] == &meta.strides[dim] * &meta.sizes[dim])
}

/// The tensor with the last two dimensions the other way round.
fn swapped(meta: &TensorMeta) -> TensorMeta {
    let mut res = meta.clone();
    let rank = res.sizes.len();
    res.sizes.swap(rank - 2, rank - 1);
    res.strides.swap(rank - 2, rank - 1);
    res
}

/// A batch times a matrix or a vector, with all rows of the batch as one matrix.
fn fold(cx: &mut Cx<'_>, batch: &Traced, other: &Traced) -> Result<Traced> {
    let batch_sizes = sizes_of(cx, batch);
    let other_sizes = sizes_of(cx, other);
    let (lead, last) = batch_sizes.split_at(batch_sizes.len() - 1);
    let rows = cx.aten("view", [batch, &size_list(&[product(lead), last[0].clone()])])?;
    let op = if other_sizes.len() == 2 { "mm" } else { "mv" };
    let res = cx.aten(op, [&rows, other])?;
    let mut res_sizes = lead.to_vec();
    res_sizes.extend_from_slice(&other_sizes[1..]);
    cx.aten("view", [&res, &size_list(&res_sizes)])
}

fn batch_multiply(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    (a, meta_a): (TensorRef, &TensorMeta),
    (b, meta_b): (TensorRef, &TensorMeta),
) -> Result<Traced> {
    // Vectors become a matrix of one row or one column.
    let (mut a, mut b): (Traced, Traced) = (a.into(), b.into());
    let (mut a_sizes, mut b_sizes) = (meta_a.sizes.clone(), meta_b.sizes.clone());
    let (is_row, is_column) = (a_sizes.len() == 1, b_sizes.len() == 1);
    if is_row {
        a = cx.aten("unsqueeze", [&a, &Value::int(0)])?;
        a_sizes.insert(0, SymInt::from(1));
    }
    if is_column {
        b = cx.aten("unsqueeze", [&b, &Value::int(1)])?;
        b_sizes.push(SymInt::from(1));
    }
    let (batch_a, matrix_a) = a_sizes.split_at(a_sizes.len() - 2);
    let (batch_b, matrix_b) = b_sizes.split_at(b_sizes.len() - 2);
    if matrix_a[1] != matrix_b[0] {
        return Err(args.bad_shape(format!(
            "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            matrix_a[0], matrix_a[1], matrix_b[0], matrix_b[1]
        )));
    }
    let batch = broadcast(args, batch_a, batch_b)?;
    let n_batch = product(&batch);
    let as_batch = |cx: &mut Cx<'_>, it: Traced, matrix: &[SymInt]| {
        let it = cx.aten("expand", [&it, &size_list(&[&batch, matrix].concat())])?;
        cx.aten("reshape", [&it, &size_list(&[n_batch.clone(), matrix[0].clone(), matrix[1].clone()])])
    };
    let (a, b) = (as_batch(cx, a, matrix_a)?, as_batch(cx, b, matrix_b)?);
    let mut res = cx.aten("bmm", [&a, &b])?;
    if is_column {
        res = cx.aten("squeeze.dim", [&res, &Value::int(-1)])?;
    }
    let mut res_sizes = batch.clone();
    if !is_row {
        res_sizes.push(matrix_a[0].clone());
    }
    if !is_column {
        res_sizes.push(matrix_b[1].clone());
    }
    cx.aten("view", [&res, &size_list(&res_sizes)])
}

/// `linear` as PyTorch decomposes it: one `addmm` where there is a bias.
pub(crate) fn linear_as_matmul(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (input, weight, bias) = (*args.tensor(0)?, *args.tensor(1)?, args.opt_tensor(2)?.copied());
    let input_sizes = cx.meta(input).sizes.clone();
    let is_matrix = cx.meta(weight).sizes.len() == 2;
    let n_bias_dims = bias.map(|it| cx.meta(it).sizes.len());
    let transposed = match is_matrix {
        true => cx.aten("permute", [&weight.into(), &Value::ints(&[1, 0])])?,
        false => weight.into(),
    };
    let (Some(bias), true) = (bias, is_matrix) else {
        let product = multiply(cx, args, input, tensor_of(&transposed))?;
        return Ok(vec![match bias {
            Some(bias) => cx.aten("add.Tensor", [&product, &bias.into()])?,
            None => product,
        }]);
    };
    if input_sizes.len() == 2 {
        return Ok(vec![cx.aten("addmm", [&bias.into(), &input.into(), &transposed])?]);
    }
    if input_sizes.len() > 2 && n_bias_dims == Some(1) && folds(cx.meta(input)) {
        let (lead, last) = input_sizes.split_at(input_sizes.len() - 1);
        let rows = cx.aten("view", [&input.into(), &size_list(&[product(lead), last[0].clone()])])?;
        let n_out = sizes_of(cx, &transposed)[1].clone();
        let res = cx.aten("addmm", [&bias.into(), &rows, &transposed])?;
        return Ok(vec![cx.aten("view", [&res, &size_list(&[lead, &[n_out]].concat())])?]);
    }
    let product = multiply(cx, args, input, tensor_of(&transposed))?;
    Ok(vec![cx.aten("add.Tensor", [&product, &bias.into()])?])
}

fn inner(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (a, b) = (*args.tensor(0)?, *args.tensor(1)?);
    let (a_sizes, b_sizes) = (&cx.meta(a).sizes, &cx.meta(b).sizes);
    if a_sizes.is_empty() || b_sizes.is_empty() {
        return Ok(vec![cx.aten("mul.Tensor", [&a.into(), &b.into()])?]);
    }
    if a_sizes.last().zip(b_sizes.last()).is_some_and(|(a, b)| args.differ(a, b)) {
        return Err(args.bad_shape("inner() the last dimension must match on both input tensors"));
    }
    Ok(vec![contract(cx, args, (a, &[-1]), (b, &[-1]))?])
}

fn outer(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (a, b) = (*args.tensor(0)?, *args.tensor(1)?);
    let ranks = (cx.meta(a).sizes.len(), cx.meta(b).sizes.len());
    if ranks != (1, 1) {
        let what = format!("outer: Expected 1-D arguments, but got {}-D and {}-D", ranks.0, ranks.1);
        return Err(args.bad_shape(what));
    }
    let column = cx.aten("unsqueeze", [&a.into(), &Value::int(1)])?;
    Ok(vec![cx.aten("mul.Tensor", [&column, &b.into()])?])
}

fn addr(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (addend, a, b) = (*args.tensor(0)?, *args.tensor(1)?, *args.tensor(2)?);
    let (beta, alpha) = (args.scalar(3)?, args.scalar(4)?);
    let [addend_meta, a_meta, b_meta] = [addend, a, b].map(|it| cx.meta(it).clone());
    let ([n_rows], [n_columns]) = (&a_meta.sizes[..], &b_meta.sizes[..]) else {
        return Err(args.bad_shape("addr: Expected 1-D arguments vec1 and vec2"));
    };
    let expected = [n_rows.clone(), n_columns.clone()];
    if addend_meta.sizes.len() > 2 || broadcast(args, &addend_meta.sizes, &expected)? != expected {
        return Err(args.bad_shape(format!("addr: self does not expand to {n_rows}x{n_columns}")));
    }
    let dtypes = [&addend_meta, &a_meta, &b_meta].map(|it| it.dtype);
    let dtype = dtypes.into_iter().reduce(promote_types).unwrap_or(DType::Float32);
    check_all_fit(args, dtype)?;
    // The factors are of the dtype of the elements: any number but zero is true, and half types round it.
    let is = |it: Scalar, value: f64| match dtype {
        DType::Bool => (it.to_complex() != Scalar::Int(0).to_complex()) == (value != 0.0),
        _ => it.to_complex() == Scalar::Float(value).to_complex(),
    };
    let factor = |cx: &mut Cx<'_>, it: Scalar| match dtype.is_float() && dtype.size() == 2 {
        true => cx.aten_with("scalar_tensor", [&it.into()], &[("dtype", Value::DType(dtype))]),
        false => Ok(it.into()),
    };
    let mut column = cx.aten("unsqueeze", [&a.into(), &Value::int(1)])?;
    if a_meta.dtype != dtype {
        column = cx.aten_with("_to_copy", [&column], &[("dtype", Value::DType(dtype))])?;
    }
    if is(alpha, 0.0) && dtype == DType::Bool {
        column = cx.aten("zeros_like", [&column])?;
    } else if !is(alpha, 1.0) {
        let factor = factor(cx, alpha)?;
        column = cx.aten("mul.Tensor", [&column, &factor])?;
    }
    let mut res = cx.aten("mul.Tensor", [&column, &b.into()])?;
    if !is(beta, 0.0) {
        // One without dimensions gets them first, so that its dtype counts like the others'.
        let addend = match addend_meta.sizes.is_empty() {
            true => cx.aten("expand", [&addend.into(), &size_list(&expected)])?,
            false => addend.into(),
        };
        let scaled = match is(beta, 1.0) {
            true => addend,
            false => {
                let factor = factor(cx, beta)?;
                cx.aten("mul.Tensor", [&addend, &factor])?
            }
        };
        res = cx.aten("add.Tensor", [&scaled, &res])?;
    }
    Ok(vec![res])
}

fn vecdot(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (x, y) = (*args.tensor(0)?, *args.tensor(1)?);
    let (x_dtype, y_dtype) = (cx.meta(x).dtype, cx.meta(y).dtype);
    if x_dtype.kind() <= DTypeKind::Int {
        let what =
            format!("linalg.vecdot: Expected a floating point or complex tensor as input. Got {}", x_dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if x_dtype != y_dtype {
        let what = format!(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
            x_dtype.cpp_name(),
            y_dtype.cpp_name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let x: Traced = if cx.meta(x).dtype.is_complex() { cx.aten("conj_physical", [&x.into()])? } else { x.into() };
    let product = cx.aten("mul.Tensor", [&x, &y.into()])?;
    Ok(vec![cx.aten("sum.dim_IntList", [&product, &Value::ints(&[args.int(2)?])])?])
}

fn tensordot(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (dims_a, dims_b) = (args.ints(2)?, args.ints(3)?);
    Ok(vec![contract(cx, args, (*args.tensor(0)?, &dims_a), (*args.tensor(1)?, &dims_b))?])
}

/// The product of two tensors, summed over these pairs of dimensions; the other dimensions of `a` come first.
fn contract(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    (a, dims_a): (TensorRef, &[i64]),
    (b, dims_b): (TensorRef, &[i64]),
) -> Result<Traced> {
    if dims_a.len() != dims_b.len() {
        return Err(args.invalid("both dimension lists should have same length"));
    }
    let dtype = cx.meta(a).dtype;
    if dtype != cx.meta(b).dtype {
        return Err(Diagnostic::new(Code::DTypeMismatch, "both inputs should have same dtype"));
    }
    let (mut a, mut b): (Traced, Traced) = (a.into(), b.into());
    let (mut a_sizes, mut b_sizes) = (sizes_of(cx, &a), sizes_of(cx, &b));
    let one = SymInt::from(1);
    let (mut pairs_a, mut pairs_b) = (Vec::new(), Vec::new());
    for (&dim_a, &dim_b) in dims_a.iter().zip(dims_b) {
        let (dim_a, dim_b) = (sized_dim(args, dim_a, a_sizes.len())?, sized_dim(args, dim_b, b_sizes.len())?);
        if pairs_a.contains(&(dim_a as i64)) || pairs_b.contains(&(dim_b as i64)) {
            return Err(args.invalid("a dimension appears multiple times in the list of dims"));
        }
        let (size_a, size_b) = (a_sizes[dim_a].clone(), b_sizes[dim_b].clone());
        // The sum of integers stays of their dtype.
        let keep_summed = |cx: &mut Cx<'_>, it: Traced, dim: usize| {
            let dtype = [("dtype", Value::DType(dtype))];
            cx.aten_with("sum.dim_IntList", [&it, &Value::ints(&[dim as i64]), &Value::Bool(true)], &dtype)
        };
        // A size of one broadcasts: the other side is summed over it first.
        if size_b == one && size_a != one {
            a = keep_summed(cx, a, dim_a)?;
            a_sizes[dim_a] = one.clone();
        } else if size_a == one && size_b != one {
            b = keep_summed(cx, b, dim_b)?;
            b_sizes[dim_b] = one.clone();
        } else if size_a != size_b {
            return Err(args.bad_shape(format!(
                "contracted dimensions need to match, but first has size {size_a} in dim {dim_a} and second has size \
                 {size_b} in dim {dim_b}"
            )));
        }
        pairs_a.push(dim_a as i64);
        pairs_b.push(dim_b as i64);
    }
    let free = |n: usize, pairs: &[i64]| (0..n as i64).filter(|it| !pairs.contains(it)).collect::<Vec<_>>();
    let (free_a, free_b) = (free(a_sizes.len(), &pairs_a), free(b_sizes.len(), &pairs_b));
    let pick = |sizes: &[SymInt], dims: &[i64]| dims.iter().map(|&it| sizes[it as usize].clone()).collect::<Vec<_>>();
    let inner_size = product(&pick(&a_sizes, &pairs_a));
    let (outer_a, outer_b) = (pick(&a_sizes, &free_a), pick(&b_sizes, &free_b));
    // One number is no product of matrices.
    if outer_a.iter().chain(&outer_b).all(|it| *it == one) {
        let mut flat = |it: Traced, order: Vec<i64>| {
            let it = cx.aten("permute", [&it, &Value::ints(&order)])?;
            cx.aten("reshape", [&it, &size_list(std::slice::from_ref(&inner_size))])
        };
        let a = flat(a, [&free_a[..], &pairs_a].concat())?;
        let b = flat(b, [&free_b[..], &pairs_b].concat())?;
        let products = cx.aten("mul.Tensor", [&a, &b])?;
        let res = cx.aten_with("sum", [&products], &[("dtype", Value::DType(dtype))])?;
        return cx.aten("reshape", [&res, &size_list(&[outer_a, outer_b].concat())]);
    }
    let a = cx.aten("permute", [&a, &Value::ints(&[&free_a[..], &pairs_a].concat())])?;
    let a = cx.aten("reshape", [&a, &size_list(&[product(&outer_a), inner_size.clone()])])?;
    let b = cx.aten("permute", [&b, &Value::ints(&[&pairs_b[..], &free_b].concat())])?;
    let b = cx.aten("reshape", [&b, &size_list(&[inner_size, product(&outer_b)])])?;
    let res = cx.aten("mm", [&a, &b])?;
    cx.aten("reshape", [&res, &size_list(&[outer_a, outer_b].concat())])
}

fn kron(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (a, b) = (*args.tensor(0)?, *args.tensor(1)?);
    let (a_sizes, b_sizes) = (cx.meta(a).sizes.clone(), cx.meta(b).sizes.clone());
    let rank = a_sizes.len().max(b_sizes.len());
    let one = SymInt::from(1);
    let padded = |sizes: &[SymInt]| [vec![one.clone(); rank - sizes.len()], sizes.to_vec()].concat();
    let (a_sizes, b_sizes) = (padded(&a_sizes), padded(&b_sizes));
    let a_wide: Vec<SymInt> = a_sizes.iter().flat_map(|it| [it.clone(), one.clone()]).collect();
    let b_wide: Vec<SymInt> = b_sizes.iter().flat_map(|it| [one.clone(), it.clone()]).collect();
    let a = cx.aten("reshape", [&a.into(), &size_list(&a_wide)])?;
    let b = cx.aten("reshape", [&b.into(), &size_list(&b_wide)])?;
    let res = cx.aten("mul.Tensor", [&a, &b])?;
    let res_sizes: Vec<SymInt> = a_sizes.iter().zip(&b_sizes).map(|(a, b)| a * b).collect();
    Ok(vec![cx.aten("reshape", [&res, &size_list(&res_sizes)])?])
}

fn matrix_power(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (matrix, exponent) = (*args.tensor(0)?, args.int(1)?);
    let meta = cx.meta(matrix).clone();
    let rank = meta.sizes.len();
    if rank < 2 || args.differ(&meta.sizes[rank - 1], &meta.sizes[rank - 2]) {
        return Err(args.bad_shape("linalg.matrix_power: A must be batches of square matrices"));
    }
    if exponent == 0 {
        let n = Value::Int(meta.sizes[rank - 1].clone());
        let eye = cx.aten_with("eye", [&n], &[("dtype", Value::DType(meta.dtype))])?;
        let eye = cx.aten("expand", [&eye, &size_list(&meta.sizes)])?;
        return Ok(vec![cx.aten("clone", [&eye])?]);
    }
    let mut square: Traced = if exponent < 0 { cx.aten("linalg_inv", [&matrix.into()])? } else { matrix.into() };
    if exponent.unsigned_abs() == 1 && exponent > 0 {
        return Ok(vec![cx.aten("clone", [&square])?]);
    }
    let (mut left, mut res) = (exponent.unsigned_abs(), None);
    loop {
        if left & 1 == 1 {
            res = Some(match res {
                None => square.clone(),
                Some(res) => multiply(cx, args, tensor_of(&res), tensor_of(&square))?,
            });
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        square = multiply(cx, args, tensor_of(&square), tensor_of(&square))?;
    }
    Ok(res.into_iter().collect())
}

fn multi_dot(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let tensors: Vec<TensorRef> = args.tensors(0)?.into_iter().copied().collect();
    let n = tensors.len();
    if n < 2 && args.op.schema.name == "linalg_multi_dot" || n == 0 {
        return Err(args.invalid("multi_dot(): expected at least 2 tensors"));
    }
    let mut matrices: Vec<Traced> = tensors.iter().map(|&it| it.into()).collect();
    let (is_row, is_column) = (cx.meta(tensors[0]).sizes.len() == 1, cx.meta(tensors[n - 1]).sizes.len() == 1);
    if is_row {
        matrices[0] = cx.aten("unsqueeze", [&matrices[0], &Value::int(0)])?;
    }
    if is_column {
        matrices[n - 1] = cx.aten("unsqueeze", [&matrices[n - 1], &Value::int(1)])?;
    }
    let mut extents = Vec::new();
    for (at, matrix) in matrices.iter().enumerate() {
        let sizes = sizes_of(cx, matrix);
        let [rows, cols] = &sizes[..] else {
            return Err(args.bad_shape(format!("multi_dot(): tensor {at} must be 2D but got {}D", sizes.len())));
        };
        if at == 0 {
            extents.push(rows.clone());
        }
        extents.push(cols.clone());
    }
    let order = cheapest_order(&extents);
    let mut res = multiply_range(cx, args, &matrices, &order, 0, n - 1)?;
    if is_row {
        res = cx.aten("squeeze.dim", [&res, &Value::int(0)])?;
    }
    if is_column {
        res = cx.aten("squeeze.dim", [&res, &Value::int(-1)])?;
    }
    Ok(vec![res])
}

/// For each range of matrices where to split it, by the number of multiplications; where sizes are not known, last.
fn cheapest_order(extents: &[SymInt]) -> Vec<Vec<usize>> {
    let n = extents.len() - 1;
    let known: Option<Vec<f64>> = extents.iter().map(|it| it.as_int().map(|it| it as f64)).collect();
    let mut split: Vec<Vec<usize>> = (0..n).map(|_| (0..n).map(|last| last.saturating_sub(1)).collect()).collect();
    let Some(extents) = known else { return split };
    let mut cost = vec![vec![0.0; n]; n];
    for len in 1..n {
        for first in 0..n - len {
            let last = first + len;
            cost[first][last] = f64::INFINITY;
            for at in first..last {
                let here = cost[first][at] + cost[at + 1][last] + extents[first] * extents[at + 1] * extents[last + 1];
                if here < cost[first][last] {
                    (cost[first][last], split[first][last]) = (here, at);
                }
            }
        }
    }
    split
}

fn multiply_range(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    matrices: &[Traced],
    split: &[Vec<usize>],
    first: usize,
    last: usize,
) -> Result<Traced> {
    if first == last {
        return Ok(matrices[first].clone());
    }
    let at = split[first][last];
    let left = multiply_range(cx, args, matrices, split, first, at)?;
    let right = multiply_range(cx, args, matrices, split, at + 1, last)?;
    multiply(cx, args, tensor_of(&left), tensor_of(&right))
}
