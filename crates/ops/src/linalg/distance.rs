//! Cross products, distances and similarities of vectors, and forms that are linear in two or three of them.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::index;
use crate::linalg::distance_gradient;
use crate::linalg::einsum::multiply_pair;
use crate::linalg::matmul_gradient;
use crate::{Args, Cx, OpDef, Operand, Output, TensorRef, Tol, Traced, Value, broadcast, contiguous, normalize_dim};
use crate::{Tags, promote};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", linalg_cross)
        .decompose(index::decompose::cross)
        .vjp(matmul_gradient::cross)
        .doc("The cross products of vectors of three elements, along one dimension.")
        .tolerance(Tol::Default),
    OpDef::composite("aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross)
        .doc("The cross products of vectors, along the first dimension of size three unless another one is given."),
    OpDef::new("aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cdist_forward)
        .vjp(distance_gradient::cdist)
        .doc("The p-norm distances between all pairs of rows.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::composite("aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", cdist)
        .doc("The p-norm distances between all pairs of rows."),
    OpDef::new("aten::_pdist_forward(Tensor self, float p=2.) -> Tensor", pdist_forward)
        .vjp(distance_gradient::pdist)
        .doc("The p-norm distances between each row and the rows after it.")
        .tags(Tags::CORE)
        .tolerance(Tol::Default),
    OpDef::composite("aten::pdist(Tensor self, float p=2.) -> Tensor", pdist)
        .doc("The p-norm distances between each row and the rows after it."),
    OpDef::composite("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist)
        .tags(Tags::NOT_DECOMPOSED)
        .doc("The p-norm of the difference of two tensors."),
    OpDef::composite("aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", euclidean_dist)
        .doc("The Euclidean distances between all pairs of rows, by a product of matrices.")
        // Squares are subtracted, as in PyTorch.
        .tolerance(Tol::Scaled(10.0)),
    OpDef::composite(
        "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool \
             keepdim=False) -> Tensor",
        pairwise_distance,
    )
    .doc("The p-norm distance of each row to the row at the same place."),
    OpDef::composite(
        "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
        cosine_similarity,
    )
    .doc("The cosine of the angle between vectors along one dimension."),
    OpDef::composite(
        "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] \
             sumdim, int unroll_dim=1) -> Tensor",
        trilinear,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The product of three tensors, each with new dimensions, summed over some dimensions."),
    OpDef::composite(
        "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        bilinear,
    )
    .doc("A form that is linear in two inputs, with one matrix per output."),
];

type Meta<'a> = Args<'a, TensorMeta>;
fn linalg_cross(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.sizes.len() != b.sizes.len() {
        return Err(args.bad_shape("linalg.cross: inputs must have the same number of dimensions."));
    }
    let dim = normalize_dim(args, args.int(2)?, a.sizes.len())?;
    let size = |it: &TensorMeta| it.sizes.get(dim).cloned().unwrap_or(SymInt::from(1));
    if size(a) != 3 || size(b) != 3 {
        return Err(args.bad_shape(format!(
            "linalg.cross: inputs dimension {} must have length 3. Got {} and {}",
            args.int(2)?,
            size(a),
            size(b)
        )));
    }
    let dtype = promote(&[Operand::Tensor(a), Operand::Tensor(b)]);
    if dtype != a.dtype || dtype != b.dtype {
        return Err(args.unsupported("a cross product of tensors of different dtypes"));
    }
    Ok(contiguous(dtype, broadcast(args, &a.sizes, &b.sizes)?))
}

fn cross(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = &cx.meta(*args.tensor(0)?).sizes;
    let dim = match args.opt_int(2)? {
        Some(dim) => dim,
        None => {
            let first = sizes.iter().position(|it| *it == 3);
            first.ok_or_else(|| args.bad_shape("no dimension of size 3 in input"))? as i64
        }
    };
    Ok(vec![cx.aten_with("linalg_cross", &args.values[..2], &[("dim", Value::int(dim))])?])
}

fn cdist_forward(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (a, b, p) = (args.tensor(0)?, args.tensor(1)?, args.float(2)?);
    for it in [a, b] {
        if it.sizes.len() < 2 {
            return Err(args.bad_shape("cdist only supports at least 2D tensors"));
        }
        if !it.dtype.is_float() {
            let what = format!("cdist only supports floating-point dtypes, got {}", it.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
    }
    if a.dtype != b.dtype {
        return Err(args.unsupported("distances between tensors of different dtypes"));
    }
    if p.is_nan() || p < 0.0 {
        return Err(args.invalid("cdist only supports non-negative p values"));
    }
    if let Some(mode) = args.opt_int(3)?.filter(|it| !(0..=2).contains(it)) {
        return Err(args.invalid(format!("possible modes: 0, 1, 2, but was: {mode}")));
    }
    let (a_batch, a_matrix) = a.sizes.split_at(a.sizes.len() - 2);
    let (b_batch, b_matrix) = b.sizes.split_at(b.sizes.len() - 2);
    if a_matrix[1] != b_matrix[1] {
        return Err(args.bad_shape(format!(
            "X1 and X2 must have the same number of columns. X1: {} X2: {}",
            a_matrix[1], b_matrix[1]
        )));
    }
    let mut sizes = broadcast(args, a_batch, b_batch)?;
    sizes.extend([a_matrix[0].clone(), b_matrix[0].clone()]);
    Ok(contiguous(a.dtype, sizes))
}

fn cdist(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten("_cdist_forward", &args.values)?])
}

fn pdist_forward(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (input, p) = (args.tensor(0)?, args.float(1)?);
    // No pair has a distance, whatever the rows are.
    if input.sizes.first().and_then(SymInt::as_int).is_some_and(|it| it < 2) {
        return Ok(contiguous(input.dtype, vec![SymInt::ZERO]));
    }
    let [n_rows, _] = &input.sizes[..] else {
        return Err(args.bad_shape(format!("pdist only supports 2D tensors, got: {}D", input.sizes.len())));
    };
    if !input.dtype.is_float() {
        let what = format!("pdist only supports floating-point dtypes, got {}", input.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    if p.is_nan() || p < 0.0 {
        return Err(args.invalid("pdist only supports non-negative p values"));
    }
    let n_pairs = (n_rows * (n_rows - 1)).floor_div(&SymInt::from(2));
    Ok(contiguous(input.dtype, vec![n_pairs]))
}

fn pdist(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let rank = cx.meta(*args.tensor(0)?).sizes.len();
    if rank != 2 {
        return Err(args.bad_shape(format!("pdist only supports 2D tensors, got: {rank}D")));
    }
    let rows = cx.aten("contiguous", [&args.values[0]])?;
    Ok(vec![cx.aten("_pdist_forward", [&rows, &args.values[1]])?])
}

fn dist(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let difference = cx.aten("sub.Tensor", &args.values[..2])?;
    Ok(vec![cx.aten("linalg_vector_norm", [&difference, &args.values[2]])?])
}

/// Follows `_euclidean_dist` of aten/src/ATen/native/Distance.cpp: `|a|^2 - 2 a b + |b|^2` as one product.
fn euclidean_dist(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [a, b] = [args.values[0].clone(), args.values[1].clone()];
    let last = Value::int(-1);
    let norm = |cx: &mut Cx<'_>, it: &Traced| {
        let square = cx.aten("pow.Tensor_Scalar", [it, &Value::int(2)])?;
        let norm = cx.aten("sum.dim_IntList", [&square, &Value::ints(&[-1]), &Value::Bool(true)])?;
        let ones = cx.aten("ones_like", [&norm])?;
        Ok::<_, Diagnostic>((norm, ones))
    };
    let ((a_norm, a_ones), (b_norm, b_ones)) = (norm(cx, &a)?, norm(cx, &b)?);
    let a = cx.aten("mul.Scalar", [&a, &Value::int(-2)])?;
    let a = cx.aten("cat", [&Value::List(vec![a, a_norm, a_ones]), &last])?;
    let b = cx.aten("cat", [&Value::List(vec![b, b_ones, b_norm]), &last])?;
    let b = cx.aten("transpose.int", [&b, &Value::int(-2), &last])?;
    let square = cx.aten("matmul", [&a, &b])?;
    let square = cx.aten("clamp_min", [&square, &Value::int(0)])?;
    Ok(vec![cx.aten("sqrt", [&square])?])
}

fn pairwise_distance(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let difference = cx.aten("sub.Tensor", &args.values[..2])?;
    let shifted = cx.aten("add.Scalar", [&difference, &args.values[3]])?;
    Ok(vec![cx.aten("linalg_vector_norm", [&shifted, &args.values[2], &Value::ints(&[-1]), &args.values[4]])?])
}

/// Follows `cosine_similarity` of aten/src/ATen/native/Distance.cpp: each vector is divided by its norm first.
fn cosine_similarity(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (a, b) = (*args.tensor(0)?, *args.tensor(1)?);
    let (a_meta, b_meta) = (cx.meta(a).clone(), cx.meta(b).clone());
    let dtype = promote(&[Operand::Tensor(&a_meta), Operand::Tensor(&b_meta)]);
    if !dtype.is_float() {
        let what = format!("expected common dtype to be floating point, yet common dtype is {}", dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    let sizes = broadcast(args, &a_meta.sizes, &b_meta.sizes)?;
    let dims = Value::ints(&[args.int(2)?]);
    let mut units = Vec::new();
    for (side, meta) in [(a, a_meta), (b, b_meta)] {
        let mut side: Traced = side.into();
        if meta.dtype != dtype {
            side = cx.aten_with("_to_copy", [&side], &[("dtype", Value::DType(dtype))])?;
        }
        if meta.sizes != sizes {
            side = cx.aten("expand", [&side, &size_list(&sizes)])?;
        }
        let norm = cx.aten("linalg_vector_norm", [&side, &Value::int(2), &dims, &Value::Bool(true)])?;
        let norm = cx.aten("clamp_min", [&norm, &args.values[3]])?;
        units.push(cx.aten("div.Tensor", [&side, &norm])?);
    }
    let product = cx.aten("mul.Tensor", &units)?;
    Ok(vec![cx.aten("sum.dim_IntList", [&product, &dims])?])
}

/// Follows `_trilinear` of aten/src/ATen/native/Linear.cpp: a dimension that the third tensor lacks is summed in the
/// product of the first two.
fn trilinear(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut factors = Vec::new();
    for index in 0..3 {
        let mut factor = args.values[index].clone();
        for dim in args.ints(3 + index)? {
            factor = cx.aten("unsqueeze", [&factor, &Value::int(dim)])?;
        }
        factors.push(factor);
    }
    let [first, second, third] = factors.try_into().expect("there are three factors");
    let sizes = [&first, &second, &third].map(|it| cx.meta(tensor_of(it)).sizes.clone());
    let rank = sizes[0].len();
    if sizes.iter().any(|it| it.len() != rank) {
        return Err(args.bad_shape("_trilinear: the expanded tensors differ in their number of dimensions"));
    }
    broadcast(args, &broadcast(args, &sizes[0], &sizes[1])?, &sizes[2])?;
    let sums = args.ints(6)?.iter().map(|&dim| normalize_dim(args, dim, rank)).collect::<Result<Vec<_>>>()?;
    let new_in_third = args.ints(5)?;
    let (early, late): (Vec<usize>, Vec<usize>) = sums.iter().partition(|&&dim| new_in_third.contains(&(dim as i64)));
    let product = multiply_pair(cx, first, second, &early)?;
    let product = multiply_pair(cx, product, third, &late)?;
    let mut kept = cx.meta(tensor_of(&product)).sizes.clone();
    let mut at = 0;
    kept.retain(|_| {
        at += 1;
        !sums.contains(&(at - 1))
    });
    Ok(vec![cx.aten("reshape", [&product, &size_list(&kept)])?])
}

/// Follows `bilinear` of aten/src/ATen/native/Linear.cpp.
fn bilinear(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [a, b, weight] = [0, 1, 2].map(|index| args.tensor(index).copied());
    let (a, b, weight) = (a?, b?, weight?);
    let [a_sizes, b_sizes, weight_sizes] = [a, b, weight].map(|it| cx.meta(it).sizes.clone());
    let fits = match (&a_sizes[..], &b_sizes[..], &weight_sizes[..]) {
        ([a_lead @ .., a_last], [b_lead @ .., b_last], [_, rows, columns]) => {
            a_lead == b_lead && a_last == rows && b_last == columns
        }
        _ => false,
    };
    if !fits {
        return Err(args.bad_shape("bilinear(): the inputs and the weight do not fit"));
    }
    let flat = |cx: &mut Cx<'_>, it: TensorRef, sizes: &[SymInt]| {
        let (last, lead) = sizes.split_last().expect("the sizes were checked");
        let n_rows: SymInt = lead.iter().product();
        cx.aten("reshape", [&it.into(), &size_list(&[n_rows, last.clone()])])
    };
    let (a, b) = (flat(cx, a, &a_sizes)?, flat(cx, b, &b_sizes)?);
    let dims = |it: &[i64]| Value::ints(it);
    let call = [&a, &weight.into(), &b, &dims(&[1, 3]), &dims(&[0]), &dims(&[1, 2]), &dims(&[2, 3])];
    let res = cx.aten("_trilinear", call)?;
    let mut res_sizes = a_sizes[..a_sizes.len() - 1].to_vec();
    res_sizes.push(weight_sizes[0].clone());
    let res = cx.aten("reshape", [&res, &size_list(&res_sizes)])?;
    Ok(vec![match args.opt_tensor(3)? {
        Some(bias) => cx.aten("add.Tensor", [&res, &(*bias).into()])?,
        None => res,
    }])
}
