//! Gradients of factorisations and of what is made of them.

use crate::Value;
use crate::core::gradients::{Backward, Expr};
use tracefx_core::{Complex64, DType, Result, Scalar};
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

/// Solves with a triangle: `matrix @ x = other`, or `x @ matrix = other`.
fn solve_triangle(matrix: &Expr, other: &Expr, kind: Triangle) -> Expr {
    let options = [
        ("upper", Value::Bool(kind.upper)),
        ("left", Value::Bool(kind.left)),
        ("unitriangular", Value::Bool(kind.unit)),
    ];
    Expr::aten_with("linalg_solve_triangular", [matrix.clone(), other.clone()], &options)
}

/// Which triangle, on which side, and whether its diagonal is ones.
#[derive(Clone, Copy)]
struct Triangle {
    upper: bool,
    left: bool,
    unit: bool,
}

const LOWER: Triangle = Triangle { upper: false, left: true, unit: false };
const UPPER: Triangle = Triangle { upper: true, left: true, unit: false };

fn tril(it: &Expr, diagonal: i64) -> Expr {
    Expr::aten("tril", [it.clone(), diagonal.into()])
}

fn triu(it: &Expr, diagonal: i64) -> Expr {
    Expr::aten("triu", [it.clone(), diagonal.into()])
}

/// Matrices with these diagonals.
fn diagonal_of(it: &Expr) -> Expr {
    it.unary("diag_embed")
}

/// The diagonal of gradients of real values, in the dtype of the matrix that they are of: no product takes two dtypes.
fn diagonal_of_values(it: &Backward<'_>, grad: &Expr) -> Result<Expr> {
    let (dtype, diagonal) = (it.meta(0)?.dtype, diagonal_of(grad));
    if !dtype.is_complex() {
        return Ok(diagonal);
    }
    Ok(Expr::aten_with("_to_copy", [diagonal], &[("dtype", Value::DType(dtype))]))
}

/// Where a square matrix of `n` rows has its diagonal.
fn is_diagonal(n: &SymInt) -> Expr {
    Expr::aten_with("eye", [Expr::from(n)], &[("dtype", Value::DType(DType::Bool))])
}

/// The rows and the columns of an argument.
fn extents<'a>(it: &Backward<'a>, index: usize) -> Result<(&'a SymInt, &'a SymInt)> {
    match it.sizes(index)? {
        [.., rows, columns] => Ok((rows, columns)),
        _ => Err(it.args.bad_shape("a matrix has two dimensions")),
    }
}

pub(crate) fn inverse(it: &Backward<'_>) -> Formulas {
    let adjoint = it.result(0).adjoint();
    Ok(vec![-adjoint.matmul(&it.grad().matmul(&adjoint))])
}

/// Solved with the factors. A zero on the diagonal is made tiny: the determinant is smooth where the inverse is not.
pub(crate) fn det(it: &Backward<'_>) -> Formulas {
    let (_, n) = extents(it, 0)?;
    let tiny = if matches!(it.meta(0)?.dtype, DType::Float64 | DType::Complex128) {
        f64::EPSILON
    } else {
        f64::from(f32::EPSILON)
    };
    let factors = Expr::aten("linalg_lu_factor_ex", [it.arg(0)]);
    let permutation = Expr::aten("lu_unpack", [factors.clone(), factors.result(1)]);
    let (lower, upper) = (permutation.result(1), permutation.result(2));
    let is_singular = Expr::aten("logical_and", [is_diagonal(n), upper.eq(0.0)]);
    let upper = upper.masked_fill(&is_singular, tiny);
    let scale = (it.grad() * it.result(0).conj()).unsqueeze(-1);
    let batch = it.sizes(0)?.split_last().map_or(&[][..], |(_, rest)| rest);
    let scaled = diagonal_of(&scale.expand(batch));
    let inner = solve_triangle(&upper.adjoint(), &scaled, LOWER);
    let inner = solve_triangle(&lower.adjoint(), &inner, Triangle { unit: true, ..UPPER });
    Ok(vec![permutation.matmul(&inner)])
}

/// By the inverse alone, and not through the factorisation that gave it: that is not smooth where singular values meet.
pub(crate) fn pseudo_inverse(it: &Backward<'_>) -> Formulas {
    let (rows, columns) = extents(it, 0)?;
    let (matrix, inverse, grad) = (it.arg(0), it.result(0), it.grad().adjoint());
    let adjoint = inverse.adjoint();
    Ok(vec![if is_less(columns, rows) {
        let inner = inverse.matmul(&grad);
        let outer = adjoint.matmul(&inner);
        (&grad - matrix.matmul(&inner)).matmul(&inverse).matmul(&adjoint) + &outer
            - outer.matmul(&inverse).matmul(&matrix)
            - inner.matmul(&inverse).adjoint()
    } else {
        let inner = grad.matmul(&inverse);
        let outer = inner.matmul(&adjoint);
        adjoint.matmul(&inverse).matmul(&(&grad - inner.matmul(&matrix))) + &outer
            - matrix.matmul(&inverse).matmul(&outer)
            - inverse.matmul(&inner).adjoint()
    }])
}

/// The sign of a real determinant is a step; that of a complex one turns.
pub(crate) fn slogdet(it: &Backward<'_>) -> Formulas {
    let inverse = Expr::aten("linalg_inv_ex", [it.arg(0)]);
    let mut scale = it.grad_of(1);
    if let (true, Some(grad)) = (it.meta(0)?.dtype.is_complex(), it.opt_grad(0)) {
        let turn = (grad.conj() * it.result(0)).imag();
        scale = scale - turn * Scalar::Complex(Complex64 { re: 0.0, im: 1.0 });
    }
    Ok(vec![scale.unsqueeze(-1).unsqueeze(-1) * inverse.adjoint()])
}

pub(crate) fn solve(it: &Backward<'_>) -> Formulas {
    let left = it.args.bool(2)?;
    let (matrix, solution) = (it.arg(0), it.result(0));
    let side = [("left", Value::Bool(left))];
    let other = Expr::aten_with("linalg_solve", [matrix.adjoint(), it.grad()], &side);
    let (a, b) = (it.sizes(0)?, it.sizes(1)?);
    let is_vector = b.len() == 1 || a.len() == b.len() + 1 && a[..a.len() - 1] == *b;
    let product = match (is_vector, left) {
        (true, _) => other.unsqueeze(-1) * solution.conj().unsqueeze(-2),
        (false, true) => other.matmul(&solution.adjoint()),
        (false, false) => solution.adjoint().matmul(&other),
    };
    Ok(vec![-product, other])
}

/// By the gradient of the matrix that was factored, which is that of [`solve`].
pub(crate) fn lu_solve(it: &Backward<'_>) -> Formulas {
    let (left, is_adjoint) = (it.args.bool(3)?, it.args.bool(4)?);
    let (factors, pivots, solution) = (it.arg(0), it.arg(1), it.result(0));
    let options = [("left", Value::Bool(left)), ("adjoint", Value::Bool(!is_adjoint))];
    let other = Expr::aten_with("linalg_lu_solve", [factors.clone(), pivots.clone(), it.grad()], &options);
    let of_matrix = match (left, is_adjoint) {
        (true, false) => other.matmul(&solution.adjoint()),
        (true, true) => solution.matmul(&other.adjoint()),
        (false, false) => solution.adjoint().matmul(&other),
        (false, true) => other.adjoint().matmul(&solution),
    };
    let permutation = Expr::aten("lu_unpack", [factors, pivots]);
    let (lower, upper) = (permutation.result(1), permutation.result(2));
    let inner = permutation.adjoint().matmul(&of_matrix);
    let of_factors = tril(&inner.matmul(&upper.adjoint()), -1) + triu(&lower.adjoint().matmul(&inner), 0);
    Ok(vec![-of_factors, Expr::none(), other])
}

pub(crate) fn solve_triangular(it: &Backward<'_>) -> Formulas {
    let (upper, left, unit) = (it.args.bool(2)?, it.args.bool(3)?, it.args.bool(4)?);
    let (matrix, solution) = (it.arg(0), it.result(0));
    let other = solve_triangle(&matrix.adjoint(), &it.grad(), Triangle { upper: !upper, left, unit });
    let product = if left { other.matmul(&solution.adjoint()) } else { solution.adjoint().matmul(&other) };
    let of_matrix = match upper {
        true => triu(&product, i64::from(unit)),
        false => tril(&product, -i64::from(unit)),
    };
    Ok(vec![-of_matrix, other])
}

/// Symmetric, though the factorisation reads one triangle.
pub(crate) fn cholesky(it: &Backward<'_>) -> Formulas {
    let is_upper = it.args.bool(1)?;
    let lower = |it: Expr| if is_upper { it.adjoint() } else { it };
    let (factor, grad) = (lower(it.result(0)), lower(it.grad()));
    let inner = tril(&factor.adjoint().matmul(&grad), 0);
    let symmetric = &inner + tril(&inner, -1).adjoint();
    let right = solve_triangle(&factor, &symmetric, Triangle { left: false, ..LOWER });
    Ok(vec![solve_triangle(&factor.adjoint(), &right, UPPER) * 0.5])
}

/// With more columns than rows the rest follows from the square in front.
pub(crate) fn qr(it: &Backward<'_>) -> Formulas {
    let (rows, columns) = extents(it, 0)?;
    let mode = it.args.str(1)?;
    let is_wide = is_less(rows, columns);
    if mode == "r" || mode == "complete" && !is_wide && rows != columns {
        return Err(it.args.unsupported(format!("the gradient of linalg_qr in the mode {mode} is not implemented")));
    }
    let (q, r) = (it.result(0), it.result(1));
    let (mut of_q, mut of_r) = (it.opt_grad(0), it.opt_grad(1));
    let (mut square, mut rest) = (r.clone(), None);
    if is_wide {
        square = r.narrow(-1, 0, rows);
        let right = r.narrow(-1, rows, columns);
        if let Some(grad) = of_r {
            let behind = grad.narrow(-1, rows, columns);
            let through = q.matmul(&right).matmul(&behind.adjoint());
            of_q = Some(match of_q {
                Some(grad) => grad + through,
                None => through,
            });
            of_r = Some(grad.narrow(-1, 0, rows));
            rest = Some(q.matmul(&behind));
        } else {
            rest = Some(q.matmul(&right.zeros_like()));
        }
    }
    let inner = match (&of_q, &of_r) {
        (Some(of_q), Some(of_r)) => of_r.matmul(&square.adjoint()) - q.adjoint().matmul(of_q),
        (None, Some(of_r)) => of_r.matmul(&square.adjoint()),
        (Some(of_q), None) => -q.adjoint().matmul(of_q),
        (None, None) => return Ok(vec![Expr::none()]),
    };
    let symmetric = triu(&inner, 0) + triu(&inner, 1).adjoint();
    let mut outer = q.matmul(&symmetric);
    if let Some(of_q) = of_q {
        outer = outer + of_q;
    }
    let res = solve_triangle(&square.adjoint(), &outer, Triangle { left: false, ..LOWER });
    Ok(vec![match rest {
        Some(rest) => Expr::aten("cat", [Expr::list([res, rest]), (-1).into()]),
        None => res,
    }])
}

fn is_less(a: &SymInt, b: &SymInt) -> bool {
    matches!((a.as_int(), b.as_int()), (Some(a), Some(b)) if a < b)
}

/// The corner of the exponential of a matrix twice as large.
pub(crate) fn matrix_exp(it: &Backward<'_>) -> Formulas {
    let (_, n) = extents(it, 0)?;
    let (adjoint, grad) = (it.arg(0).adjoint(), it.grad());
    let beside = |a: &Expr, b: &Expr, dim: i64| Expr::aten("cat", [Expr::list([a.clone(), b.clone()]), dim.into()]);
    let above = beside(&adjoint, &grad, -1);
    let below = beside(&adjoint.zeros_like(), &adjoint, -1);
    let exponential = beside(&above, &below, -2).unary("linalg_matrix_exp");
    let twice = n + n;
    Ok(vec![exponential.narrow(-2, 0, n).narrow(-1, n, &twice)])
}

pub(crate) fn eigh(it: &Backward<'_>) -> Formulas {
    let (_, n) = extents(it, 0)?;
    let (mut values, mut vectors) = (it.result(0), it.result(1));
    if !it.args.bool(2)? {
        values = Expr::aten("_linalg_eigh", [it.arg(0), it.arg(1), true.into()]);
        vectors = values.result(1);
    }
    let of_values = it.opt_grad(0).map(|grad| diagonal_of_values(it, &grad)).transpose()?;
    let of_vectors = it.opt_grad(1).map(|grad| {
        let is_diagonal = is_diagonal(n);
        let gaps = (values.unsqueeze(-2) - values.unsqueeze(-1)).masked_fill(&is_diagonal, 1.0);
        (vectors.adjoint().matmul(&grad) / gaps).masked_fill(&is_diagonal, 0.0)
    });
    let inner = match (of_values, of_vectors) {
        (Some(a), Some(b)) => a + b,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Ok(vec![Expr::none()]),
    };
    Ok(vec![vectors.matmul(&inner.matmul(&vectors.adjoint()))])
}

/// Only the vectors that belong to singular values count.
pub(crate) fn svd(it: &Backward<'_>) -> Formulas {
    let (rows, columns) = extents(it, 0)?;
    let n = if is_less(columns, rows) { columns } else { rows };
    let (mut u, mut s, mut v) = (it.result(0), it.result(1), it.result(2));
    if !it.args.bool(2)? {
        u = Expr::aten("_linalg_svd", [it.arg(0), false.into(), true.into()]);
        (s, v) = (u.result(1), u.result(2));
    }
    let is_full = it.args.bool(1)?;
    let left = |it: Expr| if is_full { it.narrow(-1, 0, n) } else { it };
    let right = |it: Expr| if is_full { it.narrow(-2, 0, n) } else { it };
    let (u, v) = (left(u), right(v));
    let (of_u, of_s, of_v) = (it.opt_grad(0).map(left), it.opt_grad(1), it.opt_grad(2).map(right));

    let skew = |it: Expr| &it - it.adjoint();
    let square = s.square();
    let gaps = (square.unsqueeze(-2) - square.unsqueeze(-1)).masked_fill(&is_diagonal(n), 1.0);
    let parts = [
        of_u.as_ref().map(|grad| skew(u.adjoint().matmul(grad)) / &gaps * s.unsqueeze(-2)),
        of_v.as_ref().map(|grad| s.unsqueeze(-1) * (skew(v.matmul(&grad.adjoint())) / &gaps)),
        of_s.map(|grad| diagonal_of_values(it, &grad)).transpose()?,
    ];
    let Some(inner) = parts.into_iter().flatten().reduce(|a, b| a + b) else { return Ok(vec![Expr::none()]) };

    // What lies outside of the space of the vectors.
    Ok(vec![match (of_u, of_v) {
        (Some(grad), _) if is_less(n, rows) => {
            let scaled = grad / s.unsqueeze(-2);
            let outside = &scaled - u.matmul(&u.adjoint().matmul(&scaled));
            (u.matmul(&inner) + outside).matmul(&v)
        }
        (_, Some(grad)) if is_less(n, columns) => {
            let scaled = grad / s.unsqueeze(-1);
            let outside = &scaled - scaled.matmul(&v.adjoint()).matmul(&v);
            u.matmul(&(inner.matmul(&v) + outside))
        }
        _ => u.matmul(&inner.matmul(&v)),
    }])
}

/// Zeros below, or to the right.
fn padded(it: &Expr, columns: SymInt, rows: SymInt) -> Expr {
    let zero = SymInt::from(0);
    Expr::aten("constant_pad_nd", [it.clone(), [zero.clone(), columns, zero, rows][..].into()])
}

/// The two triangles share a matrix.
pub(crate) fn lu_unpack(it: &Backward<'_>) -> Formulas {
    let (rows, columns) = extents(it, 0)?;
    let zero = SymInt::from(0);
    let (lower, upper) = (it.opt_grad(1).map(|it| tril(&it, -1)), it.opt_grad(2).map(|it| triu(&it, 0)));
    let (lower, upper) = match is_less(rows, columns) {
        true => (lower.map(|it| padded(&it, columns - rows, zero)), upper),
        false => (lower, upper.map(|it| padded(&it, zero, rows - columns))),
    };
    Ok(vec![[lower, upper].into_iter().flatten().reduce(|a, b| a + b).unwrap_or_else(Expr::none)])
}

/// The gradient of both triangles of the square in front; the rest of the rows or columns follows from it.
pub(crate) fn lu_factor(it: &Backward<'_>) -> Formulas {
    let (rows, columns) = extents(it, 0)?;
    let permutation = Expr::aten("lu_unpack", [it.result(0), it.result(1)]);
    let (lower, upper) = (permutation.result(1), permutation.result(2));
    let (grad, is_wide) = (it.grad(), is_less(rows, columns));
    let n = if is_wide { rows } else { columns };
    let unit = |upper, left| Triangle { upper, left, unit: true };
    let corner = |it: &Expr| it.narrow(-2, 0, n).narrow(-1, 0, n);
    let (first_lower, first_upper) = (corner(&lower), corner(&upper));
    let mut of_lower = tril(&corner(&grad), -1);
    let mut of_upper = triu(&corner(&grad), 0);
    let mut rest = None;
    if is_wide {
        let behind = solve_triangle(&first_lower.adjoint(), &grad.narrow(-1, n, columns), unit(true, true));
        of_lower = of_lower - behind.matmul(&upper.narrow(-1, n, columns).adjoint());
        rest = Some((behind, -1));
    } else if rows != columns {
        let right = Triangle { left: false, ..LOWER };
        let below = solve_triangle(&first_upper.adjoint(), &grad.narrow(-2, n, rows), right);
        of_upper = of_upper - lower.narrow(-2, n, rows).adjoint().matmul(&below);
        rest = Some((below, -2));
    }
    let inner = tril(&first_lower.adjoint().matmul(&of_lower), -1) + triu(&of_upper.matmul(&first_upper.adjoint()), 0);
    let inner = solve_triangle(&first_upper.adjoint(), &inner, Triangle { left: false, ..LOWER });
    let square = solve_triangle(&first_lower.adjoint(), &inner, unit(true, true));
    let res = match rest {
        Some((rest, dim)) => Expr::aten("cat", [Expr::list([square, rest]), dim.into()]),
        None => square,
    };
    Ok(vec![permutation.matmul(&res)])
}
