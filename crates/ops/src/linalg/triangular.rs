//! Triangular factorisations of matrices, and what is made of them: determinants, inverses, solutions.
//!
//! They are for float32, float64 and the complex numbers of these.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::linalg::factorisation_gradient;
use crate::view::strides::listed;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, broadcast, real_of};
use tracefx_core::{Code, DType, Diagnostic, MemoryFormat, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// Errors grow with the condition of the matrix.
pub(crate) const TOLERANCE: Tol = Tol::Scaled(20.0);

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    factor(
        "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> \
             (Tensor LU, Tensor pivots, Tensor info)",
        lu_factor,
    )
    .vjp(factorisation_gradient::lu_factor)
    .doc(
        "A lower times an upper triangle, which share a matrix, the rows that changed places, \
             and the first zero on the diagonal.",
    ),
    first("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", |cx, args| {
        let options = [("pivot", args.values[1].clone()), ("check_errors", Value::Bool(true))];
        let mut results = cx.aten_all("linalg_lu_factor_ex", [&args.values[0]], &options)?;
        results.truncate(2);
        Ok(results)
    })
    .doc(
        "A lower times an upper triangle, which share a matrix, and the rows that changed \
             places.",
    ),
    factor(
        "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool \
             unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
        lu_unpack,
    )
    .vjp(factorisation_gradient::lu_unpack)
    .doc("The permutation and the two triangles of a factorisation."),
    first("aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", |cx, args| {
        let results = cx.aten_all("linalg_lu_factor_ex", [&args.values[0]], &[("pivot", args.values[1].clone())])?;
        cx.aten_all("lu_unpack", &results[..2], &[])
    })
    .tags(Tags::NOT_DECOMPOSED)
    .doc("A permutation, a lower and an upper triangle whose product the matrix is."),
    OpDef::composite(
        "aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor \
             LU, Tensor pivots, Tensor info)",
        |cx, args| {
            let options = [("pivot", args.values[1].clone()), ("check_errors", args.values[2].clone())];
            cx.aten_all("linalg_lu_factor_ex", [&args.values[0]], &options)
        },
    )
    .tolerance(TOLERANCE)
    .doc(
        "A lower times an upper triangle, which share a matrix, the rows that changed places, \
             and the first zero on the diagonal.",
    ),
    factor(
        "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool \
             adjoint=False) -> Tensor",
        lu_solve,
    )
    .vjp(factorisation_gradient::lu_solve)
    .doc("The solution of linear equations whose matrix is factored."),
    first("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", |cx, args| {
        let [right, factors, pivots] = &args.values[..] else {
            return Err(args.invalid("lu_solve takes three tensors"));
        };
        Ok(vec![cx.aten("linalg_lu_solve", [factors, pivots, right])?])
    })
    .doc("The solution of linear equations whose matrix is factored."),
    factor("aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", det)
        .vjp_of_first(1, factorisation_gradient::det)
        .doc("The determinant, and the factorisation that gave it."),
    first("aten::linalg_det(Tensor A) -> Tensor", |cx, args| firsts(cx, args, "_linalg_det", 1))
        .doc("The determinant."),
    first("aten::det(Tensor self) -> Tensor", |cx, args| firsts(cx, args, "_linalg_det", 1)).doc("The determinant."),
    factor(
        "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor \
             pivots)",
        slogdet,
    )
    .vjp_of_first(2, factorisation_gradient::slogdet)
    .doc(
        "The sign of the determinant, the logarithm of its magnitude, and the factorisation \
             that gave them.",
    ),
    first("aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", |cx, args| {
        firsts(cx, args, "_linalg_slogdet", 2)
    })
    .doc("The sign of the determinant and the logarithm of its magnitude."),
    first("aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", |cx, args| {
        firsts(cx, args, "_linalg_slogdet", 2)
    })
    .doc("The sign of the determinant and the logarithm of its magnitude."),
    first("aten::logdet(Tensor self) -> Tensor", logdet).doc("The logarithm of the determinant."),
    factor(
        "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor \
             info)",
        inv,
    )
    .vjp(factorisation_gradient::inverse)
    .doc("The inverse, and the first zero on the diagonal of the factorisation."),
    first("aten::linalg_inv(Tensor A) -> Tensor", inverse).doc("The inverse."),
    first("aten::inverse(Tensor self) -> Tensor", inverse).doc("The inverse."),
    factor(
        "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) \
             -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
        solve,
    )
    .vjp_of_first(1, factorisation_gradient::solve)
    .doc("The solution of linear equations, and the factorisation that gave it."),
    first(
        "aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) \
             -> (Tensor result, Tensor info)",
        |cx, args| solved(cx, args, args.bool(3)?),
    )
    .doc(
        "The solution of linear equations, and the first zero on the diagonal of the \
             factorisation.",
    ),
    first("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", |cx, args| {
        Ok(solved(cx, args, true)?.into_iter().take(1).collect())
    })
    .doc("The solution of linear equations."),
    factor(
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> \
             (Tensor L, Tensor info)",
        cholesky,
    )
    .vjp(factorisation_gradient::cholesky)
    .doc("The triangle whose product with its transpose the matrix is, and where that fails."),
    first("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", |cx, args| {
        let options = [("upper", args.values[1].clone()), ("check_errors", Value::Bool(true))];
        Ok(vec![cx.aten_with("linalg_cholesky_ex", [&args.values[0]], &options)?])
    })
    .doc("The triangle whose product with its transpose the matrix is."),
    first("aten::cholesky(Tensor self, bool upper=False) -> Tensor", |cx, args| {
        let this = *args.tensor(0)?;
        if cx.meta(this).sizes.contains(&SymInt::ZERO) {
            let row_major = [("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous))];
            return Ok(vec![cx.aten_with("empty_like", [&this.into()], &row_major)?]);
        }
        Ok(vec![cx.aten_with("linalg_cholesky", [&args.values[0]], &[("upper", args.values[1].clone())])?])
    })
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The triangle whose product with its transpose the matrix is."),
    first("aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", |cx, args| {
        cholesky_solved(cx, args.values[0].clone(), args.values[1].clone(), args.bool(2)?)
    })
    .tags(Tags::NOT_DECOMPOSED)
    .doc(
        "The solution of linear equations whose matrix is the product of a triangle with its \
             transpose.",
    ),
    first("aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor", |cx, args| {
        let this = *args.tensor(0)?;
        let meta = cx.meta(this).clone();
        let (_, n, _) = shape(args, &meta, true)?;
        let eye = cx.aten_with("eye", [&Value::Int(n)], &[("dtype", Value::DType(meta.dtype))])?;
        let eye = cx.aten("expand", [&eye, &size_list(&meta.sizes)])?;
        cholesky_solved(cx, eye, this.into(), args.bool(1)?)
    })
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The inverse of the product of a triangle with its transpose."),
    factor(
        "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, \
             bool unitriangular=False) -> Tensor",
        solve_triangular,
    )
    .vjp(factorisation_gradient::solve_triangular)
    .doc("The solution of linear equations whose matrix is a triangle."),
    first(
        "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, \
             bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
        |cx, args| {
            let mut matrix = args.values[1].clone();
            let mut upper = args.bool(2)?;
            if args.bool(3)? {
                matrix = cx.aten("mT", [&matrix])?;
                upper = !upper;
            }
            let options = [("upper", Value::Bool(upper)), ("unitriangular", args.values[4].clone())];
            let solution = cx.aten_with("linalg_solve_triangular", [&matrix, &args.values[0]], &options)?;
            // The copy lies column by column.
            let turned = cx.aten("mT", [&args.values[1]])?;
            let copy =
                cx.aten_with("clone", [&turned], &[("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous))])?;
            Ok(vec![solution, cx.aten("mT", [&copy])?])
        },
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc(
        "The solution of linear equations whose matrix is a triangle, and a copy of the \
             triangle.",
    ),
    factor("aten::linalg_matrix_exp(Tensor self) -> Tensor", |args| {
        let meta = args.tensor(0)?;
        // Half types are welcome here.
        let wide = if meta.dtype.is_float() { DType::Float32 } else { meta.dtype };
        shape(args, &TensorMeta { dtype: wide, ..meta.clone() }, true)?;
        Ok(vec![tensor(meta.dtype, &meta.sizes, &[])])
    })
    .vjp(factorisation_gradient::matrix_exp)
    .doc("The exponential of a matrix."),
    first("aten::matrix_exp(Tensor self) -> Tensor", |cx, args| firsts(cx, args, "linalg_matrix_exp", 1))
        .doc("The exponential of a matrix."),
];

type Meta<'a> = Args<'a, TensorMeta>;
const fn factor(schema: &'static str, rule: crate::Rule) -> OpDef {
    OpDef::new(schema, rule).tolerance(TOLERANCE)
}

const fn first(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::composite(schema, decompose).tolerance(TOLERANCE)
}

/// The sizes in front of the matrices, their rows and their columns.
pub(crate) fn shape<T>(
    args: &Args<'_, T>,
    meta: &TensorMeta,
    is_square: bool,
) -> Result<(Vec<SymInt>, SymInt, SymInt)> {
    let name = &args.op.schema.name;
    let [lead @ .., rows, cols] = &meta.sizes[..] else {
        return Err(args.bad_shape(format!("{name}: The input tensor A must have at least 2 dimensions.")));
    };
    if is_square && args.differ(rows, cols) {
        let what = format!("{name}: A must be batches of square matrices, but they are {rows} by {cols} matrices");
        return Err(args.bad_shape(what));
    }
    if !matches!(meta.dtype, DType::Float32 | DType::Float64 | DType::Complex64 | DType::Complex128) {
        let what = format!(
            "{name}: Expected a floating point or complex tensor of 32 bits and more as input. Got \
             {}",
            meta.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok((lead.to_vec(), rows.clone(), cols.clone()))
}

/// A new tensor with these sizes behind those in front.
pub(crate) fn tensor(dtype: DType, lead: &[SymInt], sizes: &[&SymInt]) -> Output {
    let sizes = lead.iter().chain(sizes.iter().copied()).cloned().collect();
    Output::Tensor(TensorMeta::contiguous(dtype, sizes))
}

/// The same column by column, as LAPACK leaves its results and PyTorch gives them.
pub(crate) fn columns(dtype: DType, lead: &[SymInt], sizes: &[&SymInt]) -> Output {
    let sizes = lead.iter().chain(sizes.iter().copied()).cloned().collect();
    let mut meta = TensorMeta::contiguous(dtype, sizes);
    if let ([.., rows, _], [.., down, right]) = (&meta.sizes[..], &mut meta.strides[..]) {
        *down = SymInt::ONE;
        *right = rows.max(&SymInt::ONE);
    }
    Output::Tensor(meta)
}

pub(crate) fn least(a: &SymInt, b: &SymInt) -> SymInt {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => SymInt::from(a.min(b)),
        _ if a == b => a.clone(),
        _ => a + b - a.max(b),
    }
}

fn lu_factor(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    // Without elements nothing is factored, so that neither the dtype nor the way counts.
    let is_empty = meta.sizes.contains(&SymInt::ZERO);
    if !is_empty && !args.bool(1)? {
        return Err(args.invalid("linalg.lu_factor: LU without pivoting is not implemented on the CPU"));
    }
    let dtype = if is_empty { DType::Float32 } else { meta.dtype };
    let (lead, rows, cols) = shape(args, &TensorMeta { dtype, ..meta.clone() }, false)?;
    let n = least(&rows, &cols);
    Ok(vec![
        columns(meta.dtype, &lead, &[&rows, &cols]),
        tensor(DType::Int32, &lead, &[&n]),
        tensor(DType::Int32, &lead, &[]),
    ])
}

fn lu_unpack(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (meta, pivots) = (args.tensor(0)?, args.tensor(1)?);
    // Triangles are taken of matrices of any dtype.
    let (lead, rows, cols) = shape(args, &TensorMeta { dtype: DType::Float32, ..meta.clone() }, false)?;
    if args.bool(3)? && pivots.dtype != DType::Int32 {
        let what = "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let n = least(&rows, &cols);
    let empty = || tensor(meta.dtype, &[], &[&SymInt::ZERO]);
    let (data, order) = (args.bool(2)?, args.bool(3)?);
    Ok(vec![
        if order { tensor(meta.dtype, &lead, &[&rows, &rows]) } else { empty() },
        if data { tensor(meta.dtype, &lead, &[&rows, &n]) } else { empty() },
        if data { tensor(meta.dtype, &lead, &[&n, &cols]) } else { empty() },
    ])
}

fn det(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    let (lead, n, _) = shape(args, meta, true)?;
    Ok(vec![tensor(meta.dtype, &lead, &[]), columns(meta.dtype, &meta.sizes, &[]), tensor(DType::Int32, &lead, &[&n])])
}

fn slogdet(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut outputs = det(args)?;
    let meta = args.tensor(0)?;
    let (lead, _, _) = shape(args, meta, true)?;
    outputs.insert(1, tensor(real_of(meta.dtype), &lead, &[]));
    Ok(outputs)
}

fn inv(args: &Meta<'_>) -> Result<Vec<Output>> {
    let meta = args.tensor(0)?;
    let (lead, _, _) = shape(args, meta, true)?;
    Ok(vec![columns(meta.dtype, &meta.sizes, &[]), tensor(DType::Int32, &lead, &[])])
}

fn cholesky(args: &Meta<'_>) -> Result<Vec<Output>> {
    inv(args)
}

fn lu_solve(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (factors, pivots, right, is_left) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?, args.bool(3)?);
    let (lead, n, _) = shape(args, factors, true)?;
    let dtype = |what: String| Err(Diagnostic::new(Code::DTypeMismatch, what));
    if right.dtype != factors.dtype {
        return dtype(format!(
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {} and \
             B of type {} instead",
            factors.dtype, right.dtype
        ));
    }
    if pivots.dtype != DType::Int32 {
        return dtype("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32".to_string());
    }
    if pivots.sizes != factors.sizes[..factors.sizes.len() - 1] {
        return Err(args.bad_shape(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the \
             matrix",
        ));
    }
    let [right_lead @ .., rows, cols] = &right.sizes[..] else {
        return Err(args.bad_shape("linalg.lu_solve: The input tensor B must have at least 2 dimensions."));
    };
    if args.differ(if is_left { rows } else { cols }, &n) {
        let (a, b) = (listed(&factors.sizes), listed(&right.sizes));
        return Err(args.bad_shape(format!(
            "linalg.lu_solve: Incompatible shapes of LU and B for the equation AX = B ({a} and {b})"
        )));
    }
    let laid_out = if is_left { columns } else { tensor };
    Ok(vec![laid_out(factors.dtype, &broadcast(args, &lead, right_lead)?, &[rows, cols])])
}

/// Whether the right sides are vectors: one for each matrix, or a single one.
fn is_vector(args: &Meta<'_>, matrix: &[SymInt], right: &[SymInt]) -> bool {
    right.len() == 1 || (right.len() + 1 == matrix.len() && args.same_all(right, &matrix[..right.len()]))
}

fn solve(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (matrix, right, is_left) = (args.tensor(0)?, args.tensor(1)?, args.bool(2)?);
    let (lead, n, _) = shape(args, matrix, true)?;
    if right.dtype != matrix.dtype {
        let what = format!(
            "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of \
             type {} instead",
            matrix.dtype.name(),
            right.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let is_vector = is_vector(args, &matrix.sizes, &right.sizes);
    let fits = |it: Option<&SymInt>| it.is_some_and(|it| !args.differ(it, &n));
    let (right_lead, own) = match (is_vector, &right.sizes[..]) {
        (true, [lead @ .., last]) if fits(Some(last)) && is_left => (lead, vec![last]),
        (true, _) if !is_left => {
            return Err(args.invalid(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for \
             left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)",
            ));
        }
        (false, [lead @ .., rows, cols]) if fits(Some(if is_left { rows } else { cols })) => (lead, vec![rows, cols]),
        _ => {
            let (a, b) = (listed(&matrix.sizes), listed(&right.sizes));
            return Err(args.bad_shape(format!(
                "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({a} and {b})"
            )));
        }
    };
    let all = broadcast(args, &lead, right_lead)?;
    let laid_out = if is_left { columns } else { tensor };
    Ok(vec![
        laid_out(matrix.dtype, &all, &own),
        columns(matrix.dtype, &matrix.sizes, &[]),
        tensor(DType::Int32, &lead, &[&n]),
        tensor(DType::Int32, &lead, &[]),
    ])
}

fn solve_triangular(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (matrix, right, is_left) = (args.tensor(0)?, args.tensor(1)?, args.bool(3)?);
    let (lead, n, _) = shape(args, matrix, true)?;
    if right.dtype != matrix.dtype {
        let what = format!(
            "linalg.solve_triangular: Expected A and B to have the same dtype, but got {} and {}",
            matrix.dtype.name(),
            right.dtype.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let [right_lead @ .., rows, cols] = &right.sizes[..] else {
        return Err(args.bad_shape("linalg.solve_triangular: The input tensor B must have at least 2 dimensions."));
    };
    if args.differ(if is_left { rows } else { cols }, &n) {
        let (a, b) = (listed(&matrix.sizes), listed(&right.sizes));
        return Err(args.bad_shape(format!(
            "linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B ({a} \
             and {b})"
        )));
    }
    let all = broadcast(args, &lead, right_lead)?;
    Ok(vec![columns(matrix.dtype, &all, &[rows, cols])])
}

/// The first results of an operator with the same arguments.
pub(crate) fn firsts(cx: &mut Cx<'_>, args: &Call<'_>, op: &str, n: usize) -> Result<Vec<Traced>> {
    let mut results = cx.aten_all(op, &args.values, &[])?;
    results.truncate(n);
    Ok(results)
}

fn logdet(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [sign, log] = &firsts(cx, args, "_linalg_slogdet", 2)?[..] else {
        unreachable!("slogdet gives a sign and a logarithm");
    };
    if cx.meta(tensor_of(sign)).dtype.is_complex() {
        let angle = cx.aten("log", [sign])?;
        return Ok(vec![cx.aten("add.Tensor", [&angle, log])?]);
    }
    let is_negative = cx.aten("eq.Scalar", [sign, &Value::int(-1)])?;
    Ok(vec![cx.aten("masked_fill.Scalar", [log, &is_negative, &Value::Float(f64::NAN)])?])
}

fn inverse(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![cx.aten_with("linalg_inv_ex", [&args.values[0]], &[("check_errors", Value::Bool(true))])?])
}

fn solved(cx: &mut Cx<'_>, args: &Call<'_>, checks: bool) -> Result<Vec<Traced>> {
    let options = [("left", args.values[2].clone()), ("check_errors", Value::Bool(checks))];
    let results = cx.aten_all("_linalg_solve_ex", &args.values[..2], &options)?;
    Ok(results.into_iter().enumerate().filter(|(i, _)| matches!(i, 0 | 3)).map(|(_, it)| it).collect())
}

/// The product of the triangle with its transpose is undone by one of them after the other.
fn cholesky_solved(cx: &mut Cx<'_>, right: Traced, triangle: Traced, is_upper: bool) -> Result<Vec<Traced>> {
    let turned = cx.aten("mH", [&triangle])?;
    let (lower, upper) = if is_upper { (turned, triangle) } else { (triangle, turned) };
    let mut solve = |matrix: Traced, right: Traced, is_upper: bool| {
        let options = [("upper", Value::Bool(is_upper))];
        cx.aten_with("linalg_solve_triangular", [&matrix, &right], &options)
    };
    let half = solve(lower, right, false)?;
    Ok(vec![solve(upper, half, true)?])
}
