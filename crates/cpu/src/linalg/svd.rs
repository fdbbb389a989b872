//! Kernels of eigenvalues and singular values: Jacobi's method, which turns two rows or columns at a time until all are
//! orthogonal. Slower than others for large matrices, and exact also for the small values.

use crate::linalg::matrix::{Matrix, matrices, matrices_of, store_all};
use crate::numeric::dispatch::with_field;
use crate::numeric::field::Field;
use crate::numeric::map::store;
use crate::sort::sorting::places_in_order;
use tracefx_core::allocate::{collected, extend, filled, push};
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::{Kernel, assign};
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    (
        "aten._linalg_eigh.default",
        Kernel::Fill(|args, outs| with_field!(args.tensor(0)?.dtype(), T => eigh::<T>(args, outs))),
    ),
    (
        "aten._linalg_svd.default",
        Kernel::Fill(|args, outs| with_field!(args.tensor(0)?.dtype(), T => svd::<T>(args, outs))),
    ),
    (
        "aten.linalg_lstsq.default",
        Kernel::Make(|args| with_field!(args.tensor(0)?.dtype(), T => least_squares::<T>(args))),
    ),
];

/// More sweeps over all pairs than any matrix was seen to need.
const MOST_SWEEPS: usize = 60;

/// Cosine and sine of the turn after which two columns with these squares and this product are orthogonal.
fn turn(first: f64, second: f64, product: f64) -> (f64, f64) {
    let zeta = (second - first) / (2.0 * product);
    let tangent = 1.0f64.copysign(zeta) / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
    let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
    (cosine, cosine * tangent)
}

/// The turn of two columns with this product, and the number that makes the product real before it. A real product
/// keeps its sign, so that real matrices turn as they always did.
fn aligned<T: Field>(first: f64, second: f64, product: T) -> ((f64, f64), T) {
    if product == T::of(product.re()) {
        return (turn(first, second, product.re()), T::ONE);
    }
    (turn(first, second, product.abs()), product.direction().conj())
}

/// Turns two columns, the second one after it was multiplied with a number at distance one from zero.
fn rotate<T: Field>(matrix: &mut Matrix<T>, p: usize, q: usize, (cosine, sine): (f64, f64), phase: T) {
    let (cosine, sine) = (T::of(cosine), T::of(sine));
    for row in 0..matrix.rows {
        let (a, b) = (matrix[(row, p)], matrix[(row, q)] * phase);
        matrix[(row, p)] = cosine * a - sine * b;
        matrix[(row, q)] = sine * a + cosine * b;
    }
}

/// The columns in this order.
fn reordered<T: Field>(matrix: &Matrix<T>, order: &[usize]) -> Result<Matrix<T>> {
    let mut res = Matrix::zeros(matrix.rows, order.len())?;
    for row in 0..matrix.rows {
        for (col, &from) in order.iter().enumerate() {
            res[(row, col)] = matrix[(row, from)];
        }
    }
    Ok(res)
}

/// Eigenvalues in rising order, and their vectors as columns.
fn eigen<T: Field>(mut matrix: Matrix<T>) -> Result<(Vec<f64>, Matrix<T>)> {
    let n = matrix.rows;
    let mut vectors = Matrix::eye(n, n)?;
    for _ in 0..MOST_SWEEPS {
        let mut is_done = true;
        for p in 0..n {
            for q in p + 1..n {
                let product = matrix[(p, q)];
                let (first, second) = (matrix[(p, p)].re(), matrix[(q, q)].re());
                if product.abs() <= 1e-17 * (first * second).abs().sqrt() || product.abs() < 1e-300 {
                    continue;
                }
                is_done = false;
                let (angle, phase) = aligned(first, second, product);
                rotate(&mut matrix, p, q, angle, phase);
                matrix = matrix.adjoint()?;
                rotate(&mut matrix, p, q, angle, phase);
                rotate(&mut vectors, p, q, angle, phase);
                (matrix[(p, q)], matrix[(q, p)]) = (T::ZERO, T::ZERO);
            }
        }
        if is_done {
            break;
        }
    }
    let values = collected((0..n).map(|it| matrix[(it, it)].re()))?;
    let order = places_in_order(&values, false)?;
    Ok((collected(order.iter().map(|&it| values[it]))?, reordered(&vectors, &order)?))
}

fn eigh<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let is_lower = args.str(1)?.eq_ignore_ascii_case("L");
    let (mut all_values, mut all_vectors) = (Vec::new(), Vec::new());
    for mut matrix in matrices_of::<T>(args, 0)? {
        // The other triangle is not looked at, nor what a diagonal has beside real numbers.
        for row in 0..matrix.rows {
            for col in 0..row {
                let it = if is_lower { matrix[(row, col)] } else { matrix[(col, row)].conj() };
                (matrix[(row, col)], matrix[(col, row)]) = (it, it.conj());
            }
            matrix[(row, row)] = T::of(matrix[(row, row)].re());
        }
        let (values, vectors) = eigen(matrix)?;
        extend(&mut all_values, &values)?;
        push(&mut all_vectors, vectors)?;
    }
    store(&all_values, &outs[0])?;
    if args.bool(2)? { store_all(&all_vectors, &outs[1]) } else { Ok(()) }
}

/// Of a matrix with at least as many rows as columns: columns that are orthogonal and of length one, the singular values,
/// and the matrix that turned them.
fn singular<T: Field>(mut left: Matrix<T>) -> Result<(Matrix<T>, Vec<f64>, Matrix<T>)> {
    let n = left.cols;
    let mut right = Matrix::eye(n, n)?;
    let dot =
        |it: &Matrix<T>, p: usize, q: usize| (0..it.rows).map(|row| it[(row, p)].conj() * it[(row, q)]).sum::<T>();
    for _ in 0..MOST_SWEEPS {
        let mut is_done = true;
        for p in 0..n {
            for q in p + 1..n {
                let (first, second) = (dot(&left, p, p).re(), dot(&left, q, q).re());
                let product = dot(&left, p, q);
                if product.abs() <= 1e-16 * (first * second).sqrt() || product.abs() < 1e-300 {
                    continue;
                }
                is_done = false;
                let (angle, phase) = aligned(first, second, product);
                rotate(&mut left, p, q, angle, phase);
                rotate(&mut right, p, q, angle, phase);
            }
        }
        if is_done {
            break;
        }
    }
    let values = collected((0..n).map(|col| dot(&left, col, col).re().sqrt()))?;
    let order = places_in_order(&values, true)?;
    let (mut left, right) = (reordered(&left, &order)?, reordered(&right, &order)?);
    let values = collected(order.iter().map(|&it| values[it]))?;
    let largest = values.first().copied().unwrap_or(0.0);
    for (col, &value) in values.iter().enumerate() {
        if value > largest * 1e-300 && value > 0.0 {
            (0..left.rows).for_each(|row| left[(row, col)] /= T::of(value));
        } else {
            (0..left.rows).for_each(|row| left[(row, col)] = T::ZERO);
        }
    }
    Ok((left, values, right))
}

/// The columns, with those that are zero and those that are missing made orthogonal to the others.
fn completed<T: Field>(columns: &Matrix<T>, width: usize) -> Result<Matrix<T>> {
    let rows = columns.rows;
    let mut res = Matrix::zeros(rows, width)?;
    let mut axes = 0..rows;
    let mut axis = filled(T::ZERO, rows)?;
    for col in 0..width {
        if col < columns.cols && (0..rows).any(|row| columns[(row, col)] != T::ZERO) {
            (0..rows).for_each(|row| res[(row, col)] = columns[(row, col)]);
            continue;
        }
        // An axis, less what lies along the columns that are there, twice for the sake of rounding.
        for at in axes.by_ref() {
            axis.fill(T::ZERO);
            axis[at] = T::ONE;
            for _ in 0..2 {
                let others = (0..col).map(|other| (&res, other)).chain((col..columns.cols).map(|it| (columns, it)));
                for (matrix, other) in others {
                    let along: T = axis.iter().enumerate().map(|(row, it)| matrix[(row, other)].conj() * *it).sum();
                    axis.iter_mut().enumerate().for_each(|(row, it)| *it -= along * matrix[(row, other)]);
                }
            }
            let length = axis.iter().map(|it| it.square()).sum::<f64>().sqrt();
            if length > 1e-8 {
                (0..rows).for_each(|row| res[(row, col)] = axis[row] / T::of(length));
                break;
            }
        }
    }
    Ok(res)
}

fn svd<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    if outs.iter().all(|it| it.numel() == 0) {
        return Ok(());
    }
    let (is_full, has_vectors) = (args.bool(1)?, args.bool(2)?);
    let (mut lefts, mut all_values, mut rights) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in matrices_of::<T>(args, 0)? {
        let is_wide = matrix.cols > matrix.rows;
        let (rows, cols) = (matrix.rows, matrix.cols);
        let (tall, values, square) = singular(if is_wide { matrix.adjoint()? } else { matrix })?;
        extend(&mut all_values, &values)?;
        if has_vectors {
            let n = rows.min(cols);
            let tall = completed(&tall, if is_full { rows.max(cols) } else { n })?;
            let (left, right) = if is_wide { (square, tall) } else { (tall, square) };
            push(&mut lefts, left)?;
            push(&mut rights, right.adjoint()?)?;
        }
    }
    store(&all_values, &outs[1])?;
    if !has_vectors {
        return Ok(());
    }
    store_all(&lefts, &outs[0])?;
    store_all(&rights, &outs[2])
}

/// Least squares by singular values, of which those that are nearly zero count for nothing.
fn least_squares<T: Field>(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (matrix, right) = (args.tensor(0)?, args.tensor(1)?);
    let [lead @ .., rows, cols] = matrix.sizes() else { unreachable!("the shape rule asks for matrices") };
    let is_vector = right.rank() + 1 == matrix.rank() && *right.sizes() == matrix.sizes()[..right.rank()];
    let column = if is_vector {
        right.as_strided(&[right.sizes(), &[1]].concat(), &[right.strides(), &[1]].concat(), right.offset())?
    } else {
        right.clone()
    };
    let n_right = column.sizes()[column.rank() - 1];
    let all = broadcast_sizes(lead, &column.sizes()[..column.rank() - 2]);
    let driver = args.opt_str(3)?.unwrap_or("gelsy");
    let epsilon = match matrix.dtype() {
        DType::Float64 | DType::Complex128 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let bound = args.opt_float(2)?.unwrap_or(epsilon * *rows.max(cols) as f64);
    let dense = Tensor::zeros(matrix.dtype(), &[&all[..], &[*cols, n_right]].concat())?;
    let (mut solutions, mut residuals) = (Vec::new(), Vec::new());
    let own = matrices_of::<T>(args, 0)?;
    let (mut ranks, mut all_values) = (Vec::new(), Vec::new());
    for it in own {
        let values = parts(it)?.values;
        extend(&mut all_values, &values)?;
        let largest = values.first().copied().unwrap_or(0.0);
        push(&mut ranks, values.iter().filter(|it| **it > bound * largest).count() as i64)?;
    }
    for (it, right) in
        matrices::<T>(matrix, &all, *rows, *cols)?.into_iter().zip(matrices::<T>(&column, &all, *rows, n_right)?)
    {
        let Parts { values, left, right: turned } = parts(it.copied()?)?;
        let largest = values.first().copied().unwrap_or(0.0);
        let mut along = left.adjoint()?.times(&right)?;
        for (row, &value) in values.iter().enumerate() {
            let factor = if driver == "gels" || value > bound * largest { 1.0 / value } else { 0.0 };
            (0..n_right).for_each(|col| along[(row, col)] *= T::of(factor));
        }
        let solution = turned.times(&along)?;
        let product = it.times(&solution)?;
        for col in 0..n_right {
            let residual = (0..*rows).map(|row| (product[(row, col)] - right[(row, col)]).square()).sum::<f64>();
            push(&mut residuals, residual)?;
        }
        push(&mut solutions, solution)?;
    }
    let real =
        if matches!(matrix.dtype(), DType::Float64 | DType::Complex128) { DType::Float64 } else { DType::Float32 };
    store_all(&solutions, &dense)?;
    // The right sides become the solutions in place, column by column, and there is room for the longer of the two.
    let room = Tensor::zeros(matrix.dtype(), &[&all[..], &[n_right, *rows.max(cols)]].concat())?;
    let (lead_strides, [step, _]) = room.strides().split_at(all.len()) else {
        unreachable!("columns have two dimensions")
    };
    let solution = room.as_strided(dense.sizes(), &[lead_strides, &[1, *step]].concat(), 0)?;
    assign(&solution, &dense)?;
    let solution = match is_vector {
        true => room.as_strided(&[&all[..], &[*cols]].concat(), &[lead_strides, &[1]].concat(), 0)?,
        false => solution,
    };
    let is_full = driver == "gels" || ranks.iter().all(|it| *it == *cols as i64);
    // The driver `gelsy` has none in any case.
    let has_residuals = rows > cols && is_full && driver != "gelsy";
    let residual = Tensor::zeros(real, &if has_residuals { [&all[..], &[n_right]].concat() } else { vec![0] })?;
    if has_residuals {
        store(&residuals, &residual)?;
    }
    let rank = if driver == "gels" { Tensor::zeros(DType::Int64, &[0])? } else { Tensor::from_slice(&ranks, lead)? };
    let singular = match driver {
        "gelsd" | "gelss" => {
            let singular = Tensor::zeros(real, &[lead, &[*rows.min(cols)]].concat())?;
            store(&all_values, &singular)?;
            singular
        }
        _ => Tensor::zeros(real, &[0])?,
    };
    Ok([solution, residual, rank, singular].map(Value::Tensor).into())
}

/// The singular values of a matrix, and the columns on its left and right side.
struct Parts<T> {
    values: Vec<f64>,
    left: Matrix<T>,
    right: Matrix<T>,
}

fn parts<T: Field>(matrix: Matrix<T>) -> Result<Parts<T>> {
    let is_wide = matrix.cols > matrix.rows;
    let (tall, values, square) = singular(if is_wide { matrix.adjoint()? } else { matrix })?;
    let (left, right) = if is_wide { (square, tall) } else { (tall, square) };
    Ok(Parts { values, left, right })
}

/// The sizes that two lists of sizes, which are known to fit, broadcast to.
fn broadcast_sizes(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let at = |it: &[usize], dim: usize| (dim + it.len()).checked_sub(rank).map_or(1, |dim| it[dim]);
    (0..rank).map(|dim| if at(a, dim) == 1 { at(b, dim) } else { at(a, dim) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::field::Complex;

    fn near<T: Field + std::fmt::Debug>(a: &Matrix<T>, b: &Matrix<T>) {
        assert_eq!((a.rows, a.cols), (b.rows, b.cols));
        a.data.iter().zip(&b.data).for_each(|(a, b)| assert!((*a - *b).abs() < 1e-12, "{a:?} {b:?}"));
    }

    fn product<T: Field>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
        a.times(b).unwrap()
    }

    fn scaled<T: Field>(columns: &Matrix<T>, factors: &[f64]) -> Matrix<T> {
        let mut res = columns.clone();
        for row in 0..res.rows {
            factors.iter().enumerate().for_each(|(col, it)| res[(row, col)] *= T::of(*it));
        }
        res
    }

    /// Numbers that repeat in no pattern, with two equal columns where it is asked for.
    fn matrix(rows: usize, cols: usize, repeats: bool) -> Matrix {
        let mut res = Matrix::zeros(rows, cols).unwrap();
        (0..rows * cols).for_each(|i| res.data[i] = ((i * i * 7 + i * 3) % 11) as f64 - 5.0);
        if repeats {
            (0..rows).for_each(|row| res[(row, cols - 1)] = res[(row, 0)]);
        }
        res
    }

    fn complex_matrix(rows: usize, cols: usize, repeats: bool) -> Matrix<Complex> {
        let data = matrix(rows, cols, repeats).data.into_iter().map(|re| Complex { re, im: (re * re) % 7.0 - 3.0 });
        Matrix { rows, cols, data: data.collect() }
    }

    fn check_singular<T: Field + std::fmt::Debug>(given: &Matrix<T>) {
        let (left, values, right) = singular(given.clone()).unwrap();
        assert!(values.iter().rev().is_sorted());
        near(&product(&scaled(&left, &values), &right.adjoint().unwrap()), given);
        let full = completed(&left, given.rows).unwrap();
        near(&product(&full.adjoint().unwrap(), &full), &Matrix::eye(given.rows, given.rows).unwrap());
        near(&product(&right.adjoint().unwrap(), &right), &Matrix::eye(given.cols, given.cols).unwrap());
    }

    #[test]
    fn singular_parts_multiply_to_the_matrix() {
        for (rows, cols, repeats) in [(5, 3, false), (4, 4, true), (6, 2, true), (1, 1, false)] {
            check_singular(&matrix(rows, cols, repeats));
            check_singular(&complex_matrix(rows, cols, repeats));
        }
    }

    fn check_eigen<T: Field + std::fmt::Debug>(given: &Matrix<T>) {
        let symmetric = product(given, &given.adjoint().unwrap());
        let (values, vectors) = eigen(symmetric.clone()).unwrap();
        assert!(values.is_sorted());
        near(&product(&vectors.adjoint().unwrap(), &vectors), &Matrix::eye(given.rows, given.rows).unwrap());
        near(&product(&scaled(&vectors, &values), &vectors.adjoint().unwrap()), &symmetric);
    }

    #[test]
    fn eigenvectors_are_only_stretched() {
        check_eigen(&matrix(5, 5, true));
        check_eigen(&complex_matrix(5, 5, true));
    }
}
