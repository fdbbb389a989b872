//! Kernels of reflections: orthogonal factorisations, as LAPACK stores them.
//!
//! A matrix `H = 1 - tau * v * v^H` mirrors at the plane across `v`. A factorisation keeps the vectors below the diagonal
//! of the triangle, without their first elements, which are one, and the factors `tau` beside.

use crate::linalg::matrix::{Matrix, matrices, matrices_of, numbers, store_all, store_numbers};
use crate::numeric::dispatch::with_field;
use crate::numeric::field::Field;
use tracefx_core::allocate::{copied, extend, push, try_collected, with_room};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.linalg_qr.default", Kernel::Fill(|args, outs| with_field!(outs[1].dtype(), T => qr::<T>(args, outs)))),
    ("aten.geqrf.default", Kernel::Fill(|args, outs| with_field!(outs[0].dtype(), T => geqrf::<T>(args, outs)))),
    (
        "aten.linalg_householder_product.default",
        Kernel::Fill(|args, outs| with_field!(outs[0].dtype(), T => product::<T>(args, outs))),
    ),
    ("aten.ormqr.default", Kernel::Fill(|args, outs| with_field!(outs[0].dtype(), T => ormqr::<T>(args, outs)))),
];

/// A triangle and the reflections that made it of a matrix.
struct Reflected<T> {
    both: Matrix<T>,
    factors: Vec<T>,
}

impl<T: Field> Reflected<T> {
    /// Reflects column after column onto the diagonal, with the signs of LAPACK's `larfg`.
    fn new(mut both: Matrix<T>) -> Result<Self> {
        let (rows, n) = (both.rows, both.rows.min(both.cols));
        let mut factors = with_room(n)?;
        for k in 0..n {
            let first = both[(k, k)];
            let below: f64 = (k + 1..rows).map(|row| both[(row, k)].square()).sum();
            // A column that is on the diagonal already stays, unless its number is complex.
            if below == 0.0 && first == T::of(first.re()) {
                factors.push(T::ZERO);
                continue;
            }
            let length = (below + first.square()).sqrt();
            let target = T::of(if first.re().is_sign_negative() { length } else { -length });
            factors.push((target - first) / target);
            let scale = T::ONE / (first - target);
            (k + 1..rows).for_each(|row| both[(row, k)] *= scale);
            // The triangle is what the conjugate transposes make of the matrix.
            let factor = factors[k].conj();
            for col in k + 1..both.cols {
                let along: T = both[(k, col)] + (k + 1..rows).map(|row| both[(row, k)].conj() * both[(row, col)]).sum();
                both[(k, col)] -= factor * along;
                for row in k + 1..rows {
                    let it = factor * along * both[(row, k)];
                    both[(row, col)] -= it;
                }
            }
            both[(k, k)] = target;
        }
        Ok(Reflected { both, factors })
    }

    /// One reflection of all columns of a matrix.
    fn reflect(&self, k: usize, matrix: &mut Matrix<T>, is_conjugated: bool) {
        let (rows, factor) = (matrix.rows, if is_conjugated { self.factors[k].conj() } else { self.factors[k] });
        for col in 0..matrix.cols {
            let along: T =
                matrix[(k, col)] + (k + 1..rows).map(|row| self.both[(row, k)].conj() * matrix[(row, col)]).sum();
            matrix[(k, col)] -= factor * along;
            for row in k + 1..rows {
                matrix[(row, col)] -= factor * along * self.both[(row, k)];
            }
        }
    }

    /// The product of the reflections, or its conjugate transpose, times a matrix.
    fn times(&self, mut matrix: Matrix<T>, is_adjoint: bool) -> Matrix<T> {
        let n = self.factors.len();
        (0..n).for_each(|step| self.reflect(if is_adjoint { step } else { n - 1 - step }, &mut matrix, is_adjoint));
        matrix
    }
}

fn qr<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let mode = args.str(1)?;
    let (mut all_q, mut all_r) = (Vec::new(), Vec::new());
    for matrix in matrices_of::<T>(args, 0)? {
        let (rows, cols) = (matrix.rows, matrix.cols);
        let width = if mode == "complete" { rows } else { rows.min(cols) };
        let it = Reflected::new(matrix)?;
        if mode != "r" {
            push(&mut all_q, it.times(Matrix::eye(rows, width)?, false))?;
        }
        let mut r = Matrix::zeros(width, cols)?;
        for row in 0..width {
            (row..cols).for_each(|col| r[(row, col)] = it.both[(row, col)]);
        }
        push(&mut all_r, r)?;
    }
    store_all(&all_q, &outs[0])?;
    store_all(&all_r, &outs[1])
}

fn geqrf<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (mut all, mut factors) = (Vec::new(), Vec::new());
    for matrix in matrices_of::<T>(args, 0)? {
        let it = Reflected::new(matrix)?;
        extend(&mut factors, &it.factors)?;
        push(&mut all, it.both)?;
    }
    store_numbers(&factors, &outs[1])?;
    store_all(&all, &outs[0])
}

/// The reflections of the first two arguments.
fn reflections<T: Field>(args: &Args<'_, Tensor>) -> Result<Vec<Reflected<T>>> {
    let factors = args.tensor(1)?;
    let n = factors.sizes().last().copied().unwrap_or(0);
    let factors = numbers::<T>(factors, factors.sizes())?;
    let all = matrices_of::<T>(args, 0)?.into_iter().enumerate();
    try_collected(all.map(|(at, both)| Ok(Reflected { both, factors: copied(&factors[at * n..(at + 1) * n])? })))
}

fn product<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let columns = reflections::<T>(args)?.into_iter().map(|it| {
        let eye = Matrix::eye(it.both.rows, it.both.cols)?;
        Ok(it.times(eye, false))
    });
    store_all(&try_collected(columns)?, &outs[0])
}

fn ormqr<T: Field>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (is_left, is_adjoint) = (args.bool(3)?, args.bool(4)?);
    let other = args.tensor(2)?;
    let (lead, last) = other.sizes().split_at(other.rank() - 2);
    let others = matrices::<T>(other, lead, last[0], last[1])?;
    let results = reflections::<T>(args)?.into_iter().zip(others).map(|(it, other)| match is_left {
        true => Ok(it.times(other, is_adjoint)),
        // `C * Q` is the conjugate transpose of `Q^H * C^H`.
        false => it.times(other.adjoint()?, !is_adjoint).adjoint(),
    });
    store_all(&try_collected(results)?, &outs[0])
}
