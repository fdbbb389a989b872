//! Kernels of eigenvalues of any square matrix: it is turned into a triangle by unitary matrices, in complex numbers.

use crate::linalg::matrix::{Matrix, matrices_of, store_all, store_numbers};
use crate::numeric::dispatch::with_field;
use crate::numeric::field::{Complex, Field};
use crate::numeric::number::Number;
use tracefx_core::allocate::{collected, extend, filled, push, try_collected, with_room};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    (
        "aten.linalg_eig.default",
        Kernel::Fill(|args, outs| with_field!(args.tensor(0)?.dtype(), T => eig::<T>(args, outs))),
    ),
    (
        "aten._linalg_eigvals.default",
        Kernel::Fill(|args, outs| with_field!(args.tensor(0)?.dtype(), T => eig::<T>(args, outs))),
    ),
];

/// More steps for one eigenvalue than any matrix was seen to need.
const MOST_STEPS: usize = 300;

fn eig<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (mut all_values, mut all_vectors) = (Vec::new(), Vec::new());
    for matrix in matrices_of::<T>(args, 0)? {
        if !matrix.data.iter().all(|it| it.abs().is_finite()) {
            return Err(args.invalid("torch.linalg.eig: input tensor should not contain infs or NaNs."));
        }
        let Some((values, vectors)) = eigen(&matrix)? else {
            return Err(args.invalid(
                "linalg.eig: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues.",
            ));
        };
        extend(&mut all_values, &values)?;
        push(&mut all_vectors, vectors)?;
    }
    store_numbers(&all_values, &outs[0])?;
    outs.get(1).map_or(Ok(()), |out| store_all(&all_vectors, out))
}

/// The eigenvalues, and their vectors as columns of length one, whose largest number is real. `None` where the steps do
/// not converge.
fn eigen<T: Field>(matrix: &Matrix<T>) -> Result<Option<(Vec<Complex>, Matrix<Complex>)>> {
    let n = matrix.rows;
    let norm = matrix.data.iter().map(|it| it.abs()).fold(0.0, f64::max);
    let Some((triangle, turns)) = schur(matrix)? else { return Ok(None) };
    let pair = |k: usize| Ok((triangle[(k, k)], normalized(vector(&triangle, &turns, k, norm)?)));
    let mut pairs: Vec<(Complex, Vec<Complex>)> = try_collected((0..n).map(pair))?;
    if matrix.data.iter().all(|it| it.conj() == *it) {
        pairs = conjugated(pairs, norm)?;
    }
    let mut vectors = Matrix::zeros(n, n)?;
    for (col, (_, it)) in pairs.iter().enumerate() {
        it.iter().enumerate().for_each(|(row, it)| vectors[(row, col)] = *it);
    }
    Ok(Some((collected(pairs.into_iter().map(|(value, _)| value))?, vectors)))
}

/// Of a real matrix, eigenvalues are real, or they come in pairs of a number and its conjugate: the one above the real axis
/// first, as LAPACK has them. Rounding has them almost so.
fn conjugated(pairs: Vec<(Complex, Vec<Complex>)>, norm: f64) -> Result<Vec<(Complex, Vec<Complex>)>> {
    // Two equal eigenvalues are known to half the digits only, and rounding may part them along either axis.
    let is_real = |it: &Complex| it.im.abs() <= 1e-13 * norm.max(it.abs());
    let n_above = pairs.iter().filter(|(it, _)| !is_real(it) && it.im > 0.0).count();
    let n_below = pairs.iter().filter(|(it, _)| !is_real(it) && it.im < 0.0).count();
    if n_above != n_below {
        return Ok(pairs);
    }
    let mut res = with_room(pairs.len())?;
    for (value, vector) in pairs {
        if is_real(&value) {
            let real = collected(vector.iter().map(|it| Complex::of(it.re)))?;
            push(&mut res, (Complex::of(value.re), normalized(real)))?;
        } else if value.im > 0.0 {
            let other = collected(vector.iter().map(|it| it.conj()))?;
            push(&mut res, (value, vector))?;
            push(&mut res, (value.conj(), other))?;
        }
    }
    Ok(res)
}

/// A vector of length one whose largest number is real.
fn normalized(mut vector: Vec<Complex>) -> Vec<Complex> {
    let length = vector.iter().map(|it| it.square()).sum::<f64>().sqrt();
    let largest = vector.iter().copied().fold(Complex::ZERO, |a, b| if b.square() > a.square() { b } else { a });
    if length > 0.0 {
        // A real vector keeps its sign.
        let direction = if largest.im == 0.0 { Complex::ONE } else { largest.direction() };
        let factor = direction.conj() / Complex::of(length);
        vector.iter_mut().for_each(|it| *it *= factor);
    }
    vector
}

/// The vector of the `k`-th eigenvalue: back through the triangle, and through the turns that made it.
fn vector(triangle: &Matrix<Complex>, turns: &Matrix<Complex>, k: usize, norm: f64) -> Result<Vec<Complex>> {
    let n = triangle.rows;
    let mut own = filled(Complex::ZERO, n)?;
    own[k] = Complex::ONE;
    for row in (0..k).rev() {
        let sum: Complex = (row + 1..=k).map(|col| triangle[(row, col)] * own[col]).sum();
        let mut below = triangle[(row, row)] - triangle[(k, k)];
        // Equal eigenvalues may share a vector.
        if below.abs() < f64::EPSILON * norm {
            below = Complex::of(f64::EPSILON * norm.max(f64::MIN_POSITIVE / f64::EPSILON));
        }
        own[row] = -(sum / below);
    }
    collected((0..n).map(|row| (0..=k).map(|col| turns[(row, col)] * own[col]).sum()))
}

/// The Schur form: a triangle, and the unitary matrix that turns it into the matrix.
fn schur<T: Field>(matrix: &Matrix<T>) -> Result<Option<(Matrix<Complex>, Matrix<Complex>)>> {
    let n = matrix.rows;
    let data = collected(matrix.data.iter().map(|it| it.to_complex()))?;
    let mut form = Matrix { rows: n, cols: n, data };
    let mut turns = Matrix::eye(n, n)?;
    // First nothing is left below the subdiagonal.
    for col in 0..n.saturating_sub(2) {
        for row in (col + 2..n).rev() {
            turn(&mut form, &mut turns, row - 1, col);
        }
    }
    let mut last = n.saturating_sub(1);
    let mut steps = 0;
    while last > 0 {
        let first = (1..=last).rev().find(|&k| {
            let around = form[(k, k)].size() + form[(k - 1, k - 1)].size();
            form[(k, k - 1)].size() <= f64::EPSILON * if around == 0.0 { 1.0 } else { around }
        });
        let first = match first {
            Some(k) => {
                form[(k, k - 1)] = Complex::ZERO;
                k
            }
            None => 0,
        };
        if first == last {
            (last, steps) = (last - 1, 0);
            continue;
        }
        steps += 1;
        if steps > MOST_STEPS {
            return Ok(None);
        }
        let shift = if steps % 10 == 0 { exceptional(&form, last) } else { nearest(&form, last) };
        step(&mut form, &mut turns, first, last, shift)?;
    }
    for row in 0..n {
        (0..row).for_each(|col| form[(row, col)] = Complex::ZERO);
    }
    Ok(Some((form, turns)))
}

/// The eigenvalue of the last two rows and columns that is nearer to the last number.
fn nearest(form: &Matrix<Complex>, last: usize) -> Complex {
    let (a, b) = (form[(last - 1, last - 1)], form[(last - 1, last)]);
    let (c, d) = (form[(last, last - 1)], form[(last, last)]);
    let half = (a - d) / Complex::of(2.0);
    let root = (half * half + b * c).sqrt();
    let (one, other) = (d + half + root, d + half - root);
    if (one - d).abs() < (other - d).abs() { one } else { other }
}

/// A shift that ends a cycle.
fn exceptional(form: &Matrix<Complex>, last: usize) -> Complex {
    form[(last, last)] + Complex::of(form[(last, last - 1)].abs())
}

/// One step of the method QR on the rows and columns from `first` to `last`.
fn step(
    form: &mut Matrix<Complex>,
    turns: &mut Matrix<Complex>,
    first: usize,
    last: usize,
    shift: Complex,
) -> Result<()> {
    for k in first..=last {
        form[(k, k)] -= shift;
    }
    let mut made = with_room(last - first)?;
    for k in first..last {
        let it = Turn::new(form[(k, k)], form[(k + 1, k)]);
        it.rows(form, k, k);
        form[(k + 1, k)] = Complex::ZERO;
        made.push(it);
    }
    for (k, it) in (first..last).zip(made) {
        it.cols(form, k, k + 2);
        it.cols(turns, k, turns.rows);
    }
    for k in first..=last {
        form[(k, k)] += shift;
    }
    Ok(())
}

/// Turns a row and the next one so that the number of the next one in this column is zero, and the columns likewise.
fn turn(form: &mut Matrix<Complex>, turns: &mut Matrix<Complex>, row: usize, col: usize) {
    if form[(row + 1, col)] == Complex::ZERO {
        return;
    }
    let it = Turn::new(form[(row, col)], form[(row + 1, col)]);
    it.rows(form, row, col);
    form[(row + 1, col)] = Complex::ZERO;
    it.cols(form, row, form.rows);
    it.cols(turns, row, turns.rows);
}

/// The unitary matrix that turns two numbers into one and zero.
struct Turn {
    a: Complex,
    b: Complex,
}

impl Turn {
    fn new(a: Complex, b: Complex) -> Self {
        let length = a.abs().hypot(b.abs());
        if length == 0.0 {
            return Turn { a: Complex::ONE, b: Complex::ZERO };
        }
        Turn { a: a / Complex::of(length), b: b / Complex::of(length) }
    }

    /// Turns two rows from this column on.
    fn rows(&self, matrix: &mut Matrix<Complex>, row: usize, from: usize) {
        for col in from..matrix.cols {
            let (p, q) = (matrix[(row, col)], matrix[(row + 1, col)]);
            matrix[(row, col)] = self.a.conj() * p + self.b.conj() * q;
            matrix[(row + 1, col)] = self.a * q - self.b * p;
        }
    }

    /// Turns two columns of the first rows back.
    fn cols(&self, matrix: &mut Matrix<Complex>, col: usize, n_rows: usize) {
        for row in 0..n_rows {
            let (p, q) = (matrix[(row, col)], matrix[(row, col + 1)]);
            matrix[(row, col)] = self.a * p + self.b * q;
            matrix[(row, col + 1)] = self.a.conj() * q - self.b.conj() * p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: Field>(matrix: &Matrix<T>) {
        let (values, vectors) = eigen(matrix).unwrap().unwrap();
        let wide = Matrix {
            rows: matrix.rows,
            cols: matrix.cols,
            data: matrix.data.iter().map(|it| it.to_complex()).collect(),
        };
        let stretched = wide.times(&vectors).unwrap();
        for (col, value) in values.iter().enumerate() {
            let length: f64 = (0..matrix.rows).map(|row| vectors[(row, col)].square()).sum();
            assert!((length - 1.0).abs() < 1e-12);
            for row in 0..matrix.rows {
                let error = (stretched[(row, col)] - *value * vectors[(row, col)]).abs();
                assert!(error < 1e-10, "{error} at {row}, {col}");
            }
        }
    }

    fn numbers(n: usize, seed: usize) -> Vec<f64> {
        (0..n * n).map(|i| ((i * i * 7 + i * (3 + seed)) % 11) as f64 - 5.0).collect()
    }

    #[test]
    fn vectors_are_only_stretched() {
        for n in 0..9 {
            let real = Matrix { rows: n, cols: n, data: numbers(n, 0) };
            check(&real);
            check(&real.times(&real.transposed().unwrap()).unwrap());
            let data = numbers(n, 0).into_iter().zip(numbers(n, 4)).map(|(re, im)| Complex { re, im }).collect();
            check(&Matrix { rows: n, cols: n, data });
        }
    }

    #[test]
    fn a_quarter_turn_and_a_cycle_have_pairs_of_eigenvalues() {
        let turn = Matrix { rows: 2, cols: 2, data: vec![0.0, -1.0, 1.0, 0.0] };
        let (values, _) = eigen(&turn).unwrap().unwrap();
        assert!((values[0] - Complex { re: 0.0, im: 1.0 }).abs() < 1e-15);
        assert_eq!(values[1], values[0].conj());
        let cycle =
            Matrix { rows: 4, cols: 4, data: vec![0., 0., 0., 1., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0.] };
        check(&cycle);
    }
}
