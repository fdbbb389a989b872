//! What is made of the solutions of linear equations: least squares, tensors as matrices, and conditions.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::linalg::triangular;
use crate::linalg::triangular::{TOLERANCE, shape, tensor};
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Traced, Value, broadcast, normalize_dim, real_of};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> \
             (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
        least_squares,
    )
    .tolerance(TOLERANCE)
    .doc(
        "The shortest solution of linear equations whose error is least, the squares of the \
             errors, the rank and the singular values.",
    ),
    OpDef::composite("aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor", tensor_inverse)
        .tolerance(TOLERANCE)
        .doc("The inverse of a tensor whose first dimensions are the rows of a matrix."),
    OpDef::composite("aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", tensor_solve)
        .tolerance(TOLERANCE)
        .doc("The solution of linear equations whose matrix is a tensor."),
    OpDef::composite("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", condition).tolerance(TOLERANCE).doc(
        "How much the solution of linear equations may exaggerate an error: a norm of the \
             matrix times that of its inverse.",
    ),
    OpDef::composite("aten::linalg_cond.p_str(Tensor self, str p) -> Tensor", condition).tolerance(TOLERANCE).doc(
        "How much the solution of linear equations may exaggerate an error: a norm of the \
             matrix times that of its inverse.",
    ),
];

fn least_squares(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (matrix, right) = (args.tensor(0)?, args.tensor(1)?);
    let (lead, rows, cols) = shape(args, matrix, false)?;
    if right.dtype != matrix.dtype {
        let what = format!(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's \
             dtype {} and other's dtype {}",
            matrix.dtype, right.dtype
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let driver = args.opt_str(3)?.unwrap_or("gelsy");
    if !matches!(driver, "gels" | "gelsy" | "gelsd" | "gelss") {
        let what = "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)";
        return Err(args.invalid(what));
    }
    let n = right.sizes.len();
    let is_vector = n + 1 == matrix.sizes.len() && args.same_all(&right.sizes, &matrix.sizes[..n]);
    let (right_lead, own_rows, n_right) = match &right.sizes[..] {
        [lead @ .., rows] if is_vector => (lead, rows, None),
        [lead @ .., rows, n] if !is_vector => (lead, rows, Some(n)),
        _ => return Err(args.bad_shape("torch.linalg.lstsq: other must have at least 1 dimension")),
    };
    if args.differ(own_rows, &rows) {
        let (a, b) = (listed(&matrix.sizes), listed(&right.sizes));
        return Err(args.bad_shape(format!(
            "torch.linalg.lstsq: input.size(-2) should match other.size(-2), but they are {a} and \
             {b}"
        )));
    }
    let all = broadcast(args, &lead, right_lead)?;
    let solution = solution(matrix.dtype, &all, [&rows, &cols], n_right);
    let none = |dtype: DType| tensor(dtype, &[], &[&SymInt::ZERO]);
    let rank = if driver == "gels" { none(DType::Int64) } else { tensor(DType::Int64, &lead, &[]) };
    let singular = match driver {
        "gelsd" | "gelss" => tensor(real_of(matrix.dtype), &lead, &[&triangular::least(&rows, &cols)]),
        _ => none(real_of(matrix.dtype)),
    };
    let one = SymInt::ONE;
    let residuals = match (&rows - &cols).as_int() {
        Some(..=0) => none(real_of(matrix.dtype)),
        Some(_) if driver == "gelsy" => none(real_of(matrix.dtype)),
        Some(_) if driver == "gels" => tensor(real_of(matrix.dtype), &all, &[n_right.unwrap_or(&one)]),
        // There are none where the rank is not full, which the data alone can tell.
        Some(_) | None => Output::Unknown(Value::None),
    };
    Ok(vec![solution, residuals, rank, singular])
}

/// The solution, which takes the place of the right sides: column by column, with room for the longer of the two.
fn solution(dtype: DType, lead: &[SymInt], [rows, cols]: [&SymInt; 2], n_right: Option<&SymInt>) -> Output {
    let room = rows.max(cols);
    let with = |last: Vec<&SymInt>| TensorMeta::contiguous(dtype, lead.iter().chain(last).cloned().collect());
    let (mut meta, around) = match n_right {
        Some(n) => (with(vec![cols, n]), with(vec![n, &room])),
        None => (with(vec![cols]), with(vec![&room])),
    };
    meta.strides = around.strides;
    if n_right.is_some() {
        meta.strides.swap(lead.len(), lead.len() + 1);
    }
    Output::Tensor(meta)
}

fn product(sizes: &[SymInt]) -> SymInt {
    sizes.iter().product()
}

fn tensor_inverse(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
    let index = args.int(1)?;
    let Some(index) = usize::try_from(index).ok().filter(|it| *it > 0) else {
        return Err(args.invalid(format!("Expected a strictly positive integer for 'ind', but got {index}")));
    };
    if index > sizes.len() {
        let what = format!("'ind' is {index}, but the tensor has {} dimensions", sizes.len());
        return Err(args.invalid(what));
    }
    let (first, last) = sizes.split_at(index);
    let (n_first, n_last) = (product(first), product(last));
    if n_first != n_last {
        return Err(args.bad_shape(format!(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == \
             prod(self.shape[:ind]), but got {n_last} != {n_first}"
        )));
    }
    let matrix = cx.aten("reshape", [&args.values[0], &size_list(&[n_last, n_first])])?;
    let inverse = cx.aten("linalg_inv", [&matrix])?;
    Ok(vec![cx.aten("reshape", [&inverse, &size_list(&[last, first].concat())])?])
}

fn tensor_solve(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut this = args.values[0].clone();
    let rank = cx.meta(tensor_of(&this)).sizes.len();
    if let Some(dims) = args.opt_ints(2)? {
        let dims =
            dims.iter().map(|&it| normalize_dim(args, it, rank).map(|it| it as i64)).collect::<Result<Vec<_>>>()?;
        let order: Vec<i64> = (0..rank as i64).filter(|it| !dims.contains(it)).chain(dims.iter().copied()).collect();
        this = cx.aten("permute", [&this, &Value::ints(&order)])?;
    }
    let (sizes, other) = (cx.meta(tensor_of(&this)).sizes.clone(), cx.meta(*args.tensor(1)?).sizes.clone());
    let result = &sizes[other.len().min(sizes.len())..];
    let (n, n_other) = (product(result), product(&other));
    if n != n_other {
        return Err(args.bad_shape(format!(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == \
             prod(self.shape[:other.ndim]), but got {n} != {n_other}"
        )));
    }
    let matrix = cx.aten("reshape", [&this, &size_list(&[n.clone(), n.clone()])])?;
    let right = cx.aten("reshape", [&args.values[1], &size_list(&[n])])?;
    let solution = cx.aten("linalg_solve", [&matrix, &right])?;
    Ok(vec![cx.aten("reshape", [&solution, &size_list(result)])?])
}

/// Follows `linalg_cond` of aten/src/ATen/native/LinearAlgebra.cpp.
fn condition(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = &args.values[0];
    let meta = cx.meta(*args.tensor(0)?).clone();
    let order = args.values[1].clone();
    let by_values = match &order {
        Value::None => Some(2.0),
        it => it.as_scalar().map(|it| it.to_f64()).filter(|it| it.abs() == 2.0),
    };
    if let Some(order) = by_values {
        shape(args, &meta, false)?;
        let values = cx.aten("linalg_svdvals", [this])?;
        let mut at = |index: i64| cx.aten("select.int", [&values, &Value::int(-1), &Value::int(index)]);
        let (largest, least) = (at(0)?, at(-1)?);
        let pair = if order > 0.0 { [largest, least] } else { [least, largest] };
        return Ok(vec![cx.aten("div.Tensor", &pair)?]);
    }
    let (lead, n, _) = shape(args, &meta, true)?;
    if n == 0 {
        let dtype = Value::DType(real_of(meta.dtype));
        return Ok(vec![cx.aten_with("zeros", [&size_list(&lead)], &[("dtype", dtype)])?]);
    }
    let results = cx.aten_all("linalg_inv_ex", [this], &[])?;
    let [inverse, info] = &results[..] else { unreachable!("there is an inverse and how it went") };
    let is_singular = cx.aten("gt.Scalar", [info, &Value::int(0)])?;
    let op = match &order {
        Value::Str(_) => "linalg_matrix_norm.str_ord",
        _ => "linalg_matrix_norm",
    };
    let (own, other) = (cx.aten(op, [this, &order])?, cx.aten(op, [inverse, &order])?);
    let res = cx.aten("mul.Tensor", [&own, &other])?;
    Ok(vec![cx.aten("masked_fill.Scalar", [&res, &is_singular, &Value::Float(f64::INFINITY)])?])
}
