//! Kernels of eigenvalues and singular values: Jacobi's method, which turns two rows or columns at a time until all are
//! orthogonal. Slower than others for large matrices, and exact also for the small values.

use crate::linalg::{Matrix, matrices_of, store_all};
use crate::map::store;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] =
    &[("aten._linalg_eigh.default", Kernel::Fill(eigh)), ("aten._linalg_svd.default", Kernel::Fill(svd))];

/// More sweeps over all pairs than any matrix was seen to need.
const MOST_SWEEPS: usize = 60;

/// Cosine and sine of the turn after which two columns with these squares and this product are orthogonal.
fn turn(first: f64, second: f64, product: f64) -> (f64, f64) {
    let zeta = (second - first) / (2.0 * product);
    let tangent = 1.0f64.copysign(zeta) / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
    let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
    (cosine, cosine * tangent)
}

/// Turns two columns.
fn rotate(matrix: &mut Matrix, p: usize, q: usize, (cosine, sine): (f64, f64)) {
    for row in 0..matrix.rows {
        let (a, b) = (matrix[(row, p)], matrix[(row, q)]);
        matrix[(row, p)] = cosine * a - sine * b;
        matrix[(row, q)] = sine * a + cosine * b;
    }
}

/// The columns in this order.
fn reordered(matrix: &Matrix, order: &[usize]) -> Matrix {
    let mut res = Matrix::zeros(matrix.rows, order.len());
    for row in 0..matrix.rows {
        for (col, &from) in order.iter().enumerate() {
            res[(row, col)] = matrix[(row, from)];
        }
    }
    res
}

/// Eigenvalues in rising order, and their vectors as columns.
fn eigen(mut matrix: Matrix) -> (Vec<f64>, Matrix) {
    let n = matrix.rows;
    let mut vectors = Matrix::eye(n, n);
    for _ in 0..MOST_SWEEPS {
        let mut is_done = true;
        for p in 0..n {
            for q in p + 1..n {
                let product = matrix[(p, q)];
                if product.abs() <= 1e-17 * (matrix[(p, p)] * matrix[(q, q)]).abs().sqrt() || product.abs() < 1e-300 {
                    continue;
                }
                is_done = false;
                let angle = turn(matrix[(p, p)], matrix[(q, q)], product);
                rotate(&mut matrix, p, q, angle);
                matrix = matrix.transposed();
                rotate(&mut matrix, p, q, angle);
                rotate(&mut vectors, p, q, angle);
                (matrix[(p, q)], matrix[(q, p)]) = (0.0, 0.0);
            }
        }
        if is_done {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| matrix[(*a, *a)].total_cmp(&matrix[(*b, *b)]));
    (order.iter().map(|&it| matrix[(it, it)]).collect(), reordered(&vectors, &order))
}

fn eigh(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let is_lower = args.str(1)?.eq_ignore_ascii_case("L");
    let (mut all_values, mut all_vectors) = (Vec::new(), Vec::new());
    for mut matrix in matrices_of(args, 0)? {
        // The other triangle is not looked at.
        for row in 0..matrix.rows {
            for col in 0..row {
                let it = if is_lower { matrix[(row, col)] } else { matrix[(col, row)] };
                (matrix[(row, col)], matrix[(col, row)]) = (it, it);
            }
        }
        let (values, vectors) = eigen(matrix);
        all_values.extend(values);
        all_vectors.push(vectors);
    }
    store(&all_values, &outs[0])?;
    if args.bool(2)? { store_all(&all_vectors, &outs[1]) } else { Ok(()) }
}

/// Of a matrix with at least as many rows as columns: columns that are orthogonal and of length one, the singular values,
/// and the matrix that turned them.
fn singular(mut left: Matrix) -> (Matrix, Vec<f64>, Matrix) {
    let n = left.cols;
    let mut right = Matrix::eye(n, n);
    let dot = |it: &Matrix, p: usize, q: usize| (0..it.rows).map(|row| it[(row, p)] * it[(row, q)]).sum::<f64>();
    for _ in 0..MOST_SWEEPS {
        let mut is_done = true;
        for p in 0..n {
            for q in p + 1..n {
                let (first, second, product) = (dot(&left, p, p), dot(&left, q, q), dot(&left, p, q));
                if product.abs() <= 1e-16 * (first * second).sqrt() || product.abs() < 1e-300 {
                    continue;
                }
                is_done = false;
                let angle = turn(first, second, product);
                rotate(&mut left, p, q, angle);
                rotate(&mut right, p, q, angle);
            }
        }
        if is_done {
            break;
        }
    }
    let values: Vec<f64> = (0..n).map(|col| dot(&left, col, col).sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let (mut left, right) = (reordered(&left, &order), reordered(&right, &order));
    let values: Vec<f64> = order.iter().map(|&it| values[it]).collect();
    let largest = values.first().copied().unwrap_or(0.0);
    for (col, &value) in values.iter().enumerate() {
        if value > largest * 1e-300 && value > 0.0 {
            (0..left.rows).for_each(|row| left[(row, col)] /= value);
        } else {
            (0..left.rows).for_each(|row| left[(row, col)] = 0.0);
        }
    }
    (left, values, right)
}

/// The columns, with those that are zero and those that are missing made orthogonal to the others.
fn completed(columns: &Matrix, width: usize) -> Matrix {
    let mut res = Matrix::zeros(columns.rows, width);
    let mut candidates = 0..columns.rows;
    for col in 0..width {
        let own = (col < columns.cols).then(|| (0..columns.rows).map(|row| columns[(row, col)]).collect::<Vec<f64>>());
        let own = own.filter(|it| it.iter().any(|it| *it != 0.0));
        let column = own.or_else(|| {
            // An axis, less what lies along the columns that are there, twice for the sake of rounding.
            candidates.find_map(|axis| {
                let mut it = vec![0.0; columns.rows];
                it[axis] = 1.0;
                for _ in 0..2 {
                    let others = (0..col).map(|other| (&res, other)).chain((col..columns.cols).map(|it| (columns, it)));
                    for (matrix, other) in others {
                        let along: f64 = it.iter().enumerate().map(|(row, it)| it * matrix[(row, other)]).sum();
                        it.iter_mut().enumerate().for_each(|(row, it)| *it -= along * matrix[(row, other)]);
                    }
                }
                let length = it.iter().map(|it| it * it).sum::<f64>().sqrt();
                (length > 1e-8).then(|| it.iter().map(|it| it / length).collect::<Vec<f64>>())
            })
        });
        for (row, it) in column.into_iter().flatten().enumerate() {
            res[(row, col)] = it;
        }
    }
    res
}

fn svd(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (is_full, has_vectors) = (args.bool(1)?, args.bool(2)?);
    let (mut lefts, mut all_values, mut rights) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in matrices_of(args, 0)? {
        let is_wide = matrix.cols > matrix.rows;
        let (rows, cols) = (matrix.rows, matrix.cols);
        let (tall, values, square) = singular(if is_wide { matrix.transposed() } else { matrix });
        all_values.extend(values);
        if has_vectors {
            let n = rows.min(cols);
            let tall = completed(&tall, if is_full { rows.max(cols) } else { n });
            let (left, right) = if is_wide { (square, tall) } else { (tall, square) };
            lefts.push(left);
            rights.push(right.transposed());
        }
    }
    store(&all_values, &outs[1])?;
    if !has_vectors {
        return Ok(());
    }
    store_all(&lefts, &outs[0])?;
    store_all(&rights, &outs[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &Matrix, b: &Matrix) {
        assert_eq!((a.rows, a.cols), (b.rows, b.cols));
        a.data.iter().zip(&b.data).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{a} {b}"));
    }

    fn scaled(columns: &Matrix, factors: &[f64]) -> Matrix {
        let mut res = columns.clone();
        for row in 0..res.rows {
            factors.iter().enumerate().for_each(|(col, it)| res[(row, col)] *= it);
        }
        res
    }

    /// Numbers that repeat in no pattern, with two equal columns where it is asked for.
    fn matrix(rows: usize, cols: usize, repeats: bool) -> Matrix {
        let mut res = Matrix::zeros(rows, cols);
        (0..rows * cols).for_each(|i| res.data[i] = ((i * i * 7 + i * 3) % 11) as f64 - 5.0);
        if repeats {
            (0..rows).for_each(|row| res[(row, cols - 1)] = res[(row, 0)]);
        }
        res
    }

    #[test]
    fn singular_parts_multiply_to_the_matrix() {
        for (rows, cols, repeats) in [(5, 3, false), (4, 4, true), (6, 2, true), (1, 1, false)] {
            let given = matrix(rows, cols, repeats);
            let (left, values, right) = singular(given.clone());
            assert!(values.iter().rev().is_sorted());
            near(&scaled(&left, &values).times(&right.transposed()), &given);
            let full = completed(&left, rows);
            near(&full.transposed().times(&full), &Matrix::eye(rows, rows));
            near(&right.transposed().times(&right), &Matrix::eye(cols, cols));
        }
    }

    #[test]
    fn eigenvectors_are_only_stretched() {
        let given = matrix(5, 5, true);
        let symmetric = given.times(&given.transposed());
        let (values, vectors) = eigen(symmetric.clone());
        assert!(values.is_sorted());
        near(&vectors.transposed().times(&vectors), &Matrix::eye(5, 5));
        near(&scaled(&vectors, &values).times(&vectors.transposed()), &symmetric);
    }
}
