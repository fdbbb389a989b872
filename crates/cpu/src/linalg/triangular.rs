//! Kernels of triangular factorisations, LU and Cholesky, and of what is computed with them: solutions, inverses,
//! determinants. Orthogonal factorisations are in [`householder`](super::householder).

use crate::linalg::matrix::{Matrix, fill_ints, matrices, matrices_of, store_all, store_numbers};
use crate::numeric::dense::Dense;
use crate::numeric::dispatch::with_field;
use crate::numeric::field::Field;
use crate::numeric::map::{cast_into, store};
use tracefx_core::allocate::{collected, push, try_collected, with_room};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// A kernel for the numbers of the dtype of the first argument.
macro_rules! kernel {
    ($f:ident) => {
        Kernel::Fill(|args, outs| with_field!(args.tensor(0)?.dtype(), T => $f::<T>(args, outs)))
    };
}

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.linalg_lu_factor_ex.default", kernel!(lu_factor)),
    ("aten.lu_unpack.default", kernel!(lu_unpack)),
    ("aten.linalg_lu_solve.default", kernel!(lu_solve)),
    ("aten._linalg_det.default", kernel!(det)),
    ("aten._linalg_slogdet.default", kernel!(slogdet)),
    ("aten.linalg_inv_ex.default", kernel!(inv)),
    ("aten._linalg_solve_ex.default", kernel!(solve)),
    ("aten.linalg_cholesky_ex.default", kernel!(cholesky)),
    ("aten.linalg_solve_triangular.default", kernel!(solve_triangular)),
    ("aten.linalg_matrix_exp.default", kernel!(matrix_exp)),
];

/// A factorisation with the rows exchanged, of which the triangles share a matrix.
struct Lu<T> {
    both: Matrix<T>,
    /// With which row each row changed places, in turn.
    pivots: Vec<usize>,
    /// The first zero on the diagonal, counted from one; zero where there is none.
    info: i32,
}

fn lu<T: Field>(mut both: Matrix<T>) -> Result<Lu<T>> {
    let n = both.rows.min(both.cols);
    let (mut pivots, mut info) = (with_room(n)?, 0);
    for k in 0..n {
        let mut pivot = k;
        for row in k + 1..both.rows {
            if both[(row, k)].size() > both[(pivot, k)].size() {
                pivot = row;
            }
        }
        pivots.push(pivot);
        both.swap_rows(k, pivot);
        if both[(k, k)] == T::ZERO {
            if info == 0 {
                info = k as i32 + 1;
            }
            continue;
        }
        for row in k + 1..both.rows {
            let factor = both[(row, k)] / both[(k, k)];
            both[(row, k)] = factor;
            for col in k + 1..both.cols {
                let it = factor * both[(k, col)];
                both[(row, col)] -= it;
            }
        }
    }
    Ok(Lu { both, pivots, info })
}

impl<T: Field> Lu<T> {
    /// The sign of the permutation times the diagonal, factor by factor.
    fn diagonal(&self) -> impl Iterator<Item = T> {
        let n_swaps = self.pivots.iter().enumerate().filter(|(i, it)| i != *it).count();
        let sign = if n_swaps % 2 == 0 { T::ONE } else { -T::ONE };
        std::iter::once(sign).chain((0..self.both.rows).map(|i| self.both[(i, i)]))
    }

    fn solve(&self, mut right: Matrix<T>) -> Matrix<T> {
        for (row, &pivot) in self.pivots.iter().enumerate() {
            right.swap_rows(row, pivot);
        }
        substitute(&self.both, &mut right, Triangle { is_upper: false, is_unit: true });
        substitute(&self.both, &mut right, Triangle { is_upper: true, is_unit: false });
        right
    }

    /// Solves the equations of the conjugate transpose.
    fn solve_adjoint(&self, mut right: Matrix<T>) -> Result<Matrix<T>> {
        let turned = self.both.adjoint()?;
        substitute(&turned, &mut right, Triangle { is_upper: false, is_unit: false });
        substitute(&turned, &mut right, Triangle { is_upper: true, is_unit: true });
        for (row, &pivot) in self.pivots.iter().enumerate().rev() {
            right.swap_rows(row, pivot);
        }
        Ok(right)
    }

    fn one_based(&self) -> impl Iterator<Item = i32> {
        self.pivots.iter().map(|it| *it as i32 + 1)
    }
}

#[derive(Clone, Copy)]
struct Triangle {
    is_upper: bool,
    /// The diagonal is all ones, whatever the matrix says.
    is_unit: bool,
}

/// Solves the equations of a triangle in place.
fn substitute<T: Field>(matrix: &Matrix<T>, right: &mut Matrix<T>, kind: Triangle) {
    let n = matrix.rows;
    for step in 0..n {
        let row = if kind.is_upper { n - 1 - step } else { step };
        let known = if kind.is_upper { row + 1..n } else { 0..row };
        for other in known {
            right.take(matrix[(row, other)], other, row);
        }
        if !kind.is_unit {
            let divisor = matrix[(row, row)];
            right.data[row * right.cols..(row + 1) * right.cols].iter_mut().for_each(|it| *it /= divisor);
        }
    }
}

/// Refuses the first matrix of a batch that could not be factored, if that is asked for.
fn check(args: &Args<'_, Tensor>, infos: &[i32], what: impl Fn(i32) -> String) -> Result<()> {
    let index = args.position("check_errors");
    if !index.map_or(Ok(false), |it| args.bool(it))? {
        return Ok(());
    }
    match infos.iter().enumerate().find(|(_, it)| **it != 0) {
        None => Ok(()),
        Some((batch, &info)) => {
            let place = if infos.len() > 1 { format!("(Batch element {batch}): ") } else { String::new() };
            Err(Diagnostic::new(Code::InvalidArgument, format!("{place}{}", what(info))))
        }
    }
}

fn lu_factor<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all: Vec<Lu<T>> = try_collected(matrices_of(args, 0)?.into_iter().map(lu))?;
    let infos = collected(all.iter().map(|it| it.info))?;
    check(args, &infos, |info| {
        format!(
            "linalg.lu_factor: U[{info},{info}] is zero and using it on lu_solve would result in a division by zero."
        )
    })?;
    fill_ints(&outs[1], all.iter().flat_map(Lu::one_based));
    fill_ints(&outs[2], infos.into_iter());
    store_all(&collected(all.into_iter().map(|it| it.both))?, &outs[0])
}

fn lu_unpack<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all = matrices_of::<T>(args, 0)?;
    if args.bool(3)? {
        let pivots = Dense::new(args.tensor(1)?)?;
        let pivots = pivots.read::<i32>();
        let n_pivots = all.first().map_or(1, |it| it.rows.min(it.cols)).max(1);
        let mut orders = Vec::new();
        let (lead, last) = args.tensor(0)?.sizes().split_at(args.tensor(0)?.rank() - 2);
        if last.contains(&0) {
            // Without a column, no row changes places.
            orders = try_collected((0..lead.iter().product()).map(|_| Matrix::eye(last[0], last[0])))?;
        }
        for (matrix, pivots) in all.iter().zip(pivots.chunks(n_pivots)) {
            let mut order = collected(0..matrix.rows)?;
            for (row, &pivot) in pivots.iter().enumerate() {
                let Some(pivot) =
                    usize::try_from(pivot).ok().and_then(|it| it.checked_sub(1)).filter(|it| *it < matrix.rows)
                else {
                    return Err(args.invalid("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass the result of lu_factor?"));
                };
                order.swap(row, pivot);
            }
            let mut permutation = Matrix::zeros(matrix.rows, matrix.rows)?;
            order.iter().enumerate().for_each(|(at, &row)| permutation[(row, at)] = T::ONE);
            push(&mut orders, permutation)?;
        }
        store_all(&orders, &outs[0])?;
    }
    if args.bool(2)? {
        let part = |keeps: fn(usize, usize) -> bool, is_lower: bool| -> Result<Vec<Matrix<T>>> {
            let one = |it: &Matrix<T>| {
                let n = it.rows.min(it.cols);
                let (rows, cols) = if is_lower { (it.rows, n) } else { (n, it.cols) };
                let mut res = if is_lower { Matrix::eye(rows, cols)? } else { Matrix::zeros(rows, cols)? };
                for row in 0..rows {
                    for col in (0..cols).filter(|col| keeps(row, *col)) {
                        res[(row, col)] = it[(row, col)];
                    }
                }
                Ok(res)
            };
            try_collected(all.iter().map(one))
        };
        store_all(&part(|row, col| col < row, true)?, &outs[1])?;
        store_all(&part(|row, col| col >= row, false)?, &outs[2])?;
    }
    Ok(())
}

fn lu_solve<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (is_left, is_adjoint) = (args.bool(3)?, args.bool(4)?);
    let [lead @ .., rows, cols] = outs[0].sizes() else { unreachable!("the shape rule gives matrices") };
    let n = if is_left { *rows } else { *cols };
    let factors = matrices::<T>(args.tensor(0)?, lead, n, n)?;
    let rights = matrices::<T>(args.tensor(2)?, lead, *rows, *cols)?;
    let pivots = Tensor::zeros(DType::Int64, &[lead, &[n]].concat())?;
    cast_into(args.tensor(1)?, &pivots)?;
    let pivots = pivots.to_vec::<i64>()?;
    if pivots.iter().any(|it| !(1..=n as i64).contains(it)) {
        return Err(args.invalid("Pivots given to lu_solve must all be greater or equal to 1 and at most the size of the matrix. Did you properly pass the result of lu_factor?"));
    }
    let mut solutions = Vec::new();
    for ((both, right), pivots) in factors.into_iter().zip(rights).zip(pivots.chunks(n.max(1))) {
        let factors = Lu { both, pivots: collected(pivots.iter().map(|it| *it as usize - 1))?, info: 0 };
        // The equations from the right are those of the conjugate transposes from the left.
        let side = if is_left { right } else { right.adjoint()? };
        let solution = if is_adjoint == is_left { factors.solve_adjoint(side)? } else { factors.solve(side) };
        push(&mut solutions, if is_left { solution } else { solution.adjoint()? })?;
    }
    store_all(&solutions, &outs[0])
}

/// The factorisations that a determinant is read off. PyTorch takes those of the transposes of row-major matrices.
fn for_determinant<T: Field>(args: &Args<'_, Tensor>) -> Result<Vec<Lu<T>>> {
    let is_row_major = args.tensor(0)?.is_contiguous();
    try_collected(matrices_of(args, 0)?.into_iter().map(|it| lu(if is_row_major { it.transposed()? } else { it })))
}

fn det<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all = for_determinant::<T>(args)?;
    store_numbers(&collected(all.iter().map(|it| it.diagonal().product::<T>()))?, &outs[0])?;
    fill_ints(&outs[2], all.iter().flat_map(Lu::one_based));
    store_all(&collected(all.into_iter().map(|it| it.both))?, &outs[1])
}

fn slogdet<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all = for_determinant::<T>(args)?;
    let signs = all.iter().map(|it| it.diagonal().map(Field::direction).product::<T>());
    store_numbers(&collected(signs)?, &outs[0])?;
    let logarithms = all.iter().map(|it| it.diagonal().map(|it| it.abs().ln()).sum::<f64>());
    store(&collected(logarithms)?, &outs[1])?;
    fill_ints(&outs[3], all.iter().flat_map(Lu::one_based));
    store_all(&collected(all.into_iter().map(|it| it.both))?, &outs[2])
}

fn inv<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all: Vec<Lu<T>> = try_collected(matrices_of(args, 0)?.into_iter().map(lu))?;
    let infos = collected(all.iter().map(|it| it.info))?;
    check(args, &infos, |info| {
        format!(
            "linalg.inv: The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
        )
    })?;
    fill_ints(&outs[1], infos.into_iter());
    let inverses = all.iter().map(|it| Ok(it.solve(Matrix::eye(it.both.rows, it.both.rows)?)));
    store_all(&try_collected(inverses)?, &outs[0])
}

fn solve<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (matrix, right, is_left) = (args.tensor(0)?, args.tensor(1)?, args.bool(2)?);
    let all = matrices_of::<T>(args, 0)?;
    // The equations from the right are those of the transposes from the left.
    let sides = all.into_iter().map(|it| lu(if is_left { it } else { it.transposed()? }));
    let factors: Vec<Lu<T>> = try_collected(sides)?;
    let infos = collected(factors.iter().map(|it| it.info))?;
    check(args, &infos, |_| "linalg.solve: The solver failed because the input matrix is singular.".to_string())?;
    let n = matrix.sizes()[matrix.rank() - 1];
    // A vector has as many dimensions as its solution less one than a matrix would have.
    let is_vector =
        right.rank() == 1 || (right.rank() + 1 == matrix.rank() && *right.sizes() == matrix.sizes()[..right.rank()]);
    let (lead, shape) = match (is_vector, outs[0].sizes()) {
        (true, [lead @ .., _]) => (lead, [n, 1]),
        (_, [lead @ .., rows, cols]) => (lead, [*rows, *cols]),
        _ => unreachable!("the shape rule gives at least one dimension"),
    };
    let column = if is_vector {
        right.as_strided(&[right.sizes(), &[1]].concat(), &[right.strides(), &[1]].concat(), right.offset())?
    } else {
        right.clone()
    };
    let rights = matrices::<T>(&column, lead, shape[0], shape[1])?;
    // Which factorisation each right side belongs to.
    let numbers = collected(0..factors.len() as i64)?;
    let numbers = Tensor::from_slice(&numbers, &matrix.sizes()[..matrix.rank() - 2])?;
    let of = Tensor::zeros(DType::Int64, lead)?;
    cast_into(&numbers, &of)?;
    let solutions = of.to_vec::<i64>()?.into_iter().zip(rights).map(|(at, right)| match is_left {
        true => Ok(factors[at as usize].solve(right)),
        false => factors[at as usize].solve(right.transposed()?).transposed(),
    });
    let solutions = try_collected(solutions)?;
    fill_ints(&outs[2], factors.iter().flat_map(Lu::one_based));
    fill_ints(&outs[3], infos.into_iter());
    store_all(&collected(factors.into_iter().map(|it| it.both))?, &outs[1])?;
    store_all(&solutions, &outs[0])
}

fn cholesky<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let is_upper = args.bool(1)?;
    let (mut results, mut infos) = (Vec::new(), Vec::new());
    for matrix in matrices_of::<T>(args, 0)? {
        // Only the triangle that is asked for is looked at.
        let matrix = if is_upper { matrix.adjoint()? } else { matrix };
        let n = matrix.rows;
        let (mut lower, mut info) = (Matrix::<T>::zeros(n, n)?, 0);
        'columns: for col in 0..n {
            for row in col..n {
                let sum: T = (0..col).map(|k| lower[(row, k)] * lower[(col, k)].conj()).sum();
                let left = matrix[(row, col)] - sum;
                if row > col {
                    lower[(row, col)] = left / lower[(col, col)];
                } else if left.re() > 0.0 {
                    lower[(col, col)] = T::of(left.re().sqrt());
                } else {
                    info = col as i32 + 1;
                    break 'columns;
                }
            }
        }
        push(&mut infos, info)?;
        push(&mut results, if is_upper { lower.adjoint()? } else { lower })?;
    }
    check(args, &infos, |info| {
        format!(
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order {info} is not positive-definite)."
        )
    })?;
    fill_ints(&outs[1], infos.into_iter());
    store_all(&results, &outs[0])
}

fn solve_triangular<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (is_upper, is_left) = (args.bool(2)?, args.bool(3)?);
    let kind = Triangle { is_upper: is_upper == is_left, is_unit: args.bool(4)? };
    let [lead @ .., rows, cols] = outs[0].sizes() else { unreachable!("the shape rule gives matrices") };
    let n = if is_left { *rows } else { *cols };
    let triangles = matrices::<T>(args.tensor(0)?, lead, n, n)?;
    let rights = matrices::<T>(args.tensor(1)?, lead, *rows, *cols)?;
    let solved = triangles.into_iter().zip(rights).map(|(triangle, mut right)| match is_left {
        true => {
            substitute(&triangle, &mut right, kind);
            Ok(right)
        }
        false => {
            let mut right = right.transposed()?;
            substitute(&triangle.transposed()?, &mut right, kind);
            right.transposed()
        }
    });
    store_all(&try_collected(solved)?, &outs[0])
}

/// Scaled down until its series is short, and squared as often again.
fn matrix_exp<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let exp = |mut matrix: Matrix<T>| {
        let largest = matrix.data.chunks(matrix.cols.max(1)).map(|row| row.iter().map(|it| it.abs()).sum::<f64>());
        let norm = largest.fold(0.0, f64::max);
        let n_halvings = if norm > 0.5 && norm.is_finite() { (norm.log2() + 1.0).ceil() as i32 } else { 0 };
        matrix.data.iter_mut().for_each(|it| *it *= T::of(0.5f64.powi(n_halvings)));
        let mut sum = Matrix::eye(matrix.rows, matrix.cols)?;
        let mut term = sum.copied()?;
        for k in 1..20 {
            term = term.times(&matrix)?;
            term.data.iter_mut().for_each(|it| *it /= T::of(f64::from(k)));
            sum.data.iter_mut().zip(&term.data).for_each(|(sum, it)| *sum += *it);
        }
        (0..n_halvings).try_fold(sum, |it, _| it.times(&it))
    };
    store_all(&try_collected(matrices_of(args, 0)?.into_iter().map(exp))?, &outs[0])
}
