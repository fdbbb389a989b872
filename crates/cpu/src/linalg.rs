//! Kernels of factorisations. All of them compute in float64, matrix by matrix and row-major.

use crate::dense::{Dense, fill};
use crate::map::{cast_into, store};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.linalg_lu_factor_ex.default", Kernel::Fill(lu_factor)),
    ("aten.lu_unpack.default", Kernel::Fill(lu_unpack)),
    ("aten._linalg_det.default", Kernel::Fill(det)),
    ("aten._linalg_slogdet.default", Kernel::Fill(slogdet)),
    ("aten.linalg_inv_ex.default", Kernel::Fill(inv)),
    ("aten._linalg_solve_ex.default", Kernel::Fill(solve)),
    ("aten.linalg_cholesky_ex.default", Kernel::Fill(cholesky)),
    ("aten.linalg_solve_triangular.default", Kernel::Fill(solve_triangular)),
    ("aten.linalg_qr.default", Kernel::Fill(qr)),
    ("aten.linalg_matrix_exp.default", Kernel::Fill(matrix_exp)),
];

/// A matrix, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zeros(rows: usize, cols: usize) -> Self {
        Matrix { rows, cols, data: vec![0.0; rows * cols] }
    }

    pub(crate) fn eye(rows: usize, cols: usize) -> Self {
        let mut res = Self::zeros(rows, cols);
        (0..rows.min(cols)).for_each(|i| res[(i, i)] = 1.0);
        res
    }

    pub(crate) fn transposed(&self) -> Self {
        let mut res = Self::zeros(self.cols, self.rows);
        for row in 0..self.rows {
            for col in 0..self.cols {
                res[(col, row)] = self[(row, col)];
            }
        }
        res
    }

    pub(crate) fn times(&self, other: &Matrix) -> Self {
        let mut res = Self::zeros(self.rows, other.cols);
        for row in 0..self.rows {
            for k in 0..self.cols {
                let factor = self[(row, k)];
                let (to, from) = (row * other.cols, k * other.cols);
                for col in 0..other.cols {
                    res.data[to + col] += factor * other.data[from + col];
                }
            }
        }
        res
    }

    /// Takes `factor` times one row from another.
    fn take(&mut self, factor: f64, from: usize, to: usize) {
        for col in 0..self.cols {
            self.data[to * self.cols + col] -= factor * self.data[from * self.cols + col];
        }
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        for col in 0..self.cols {
            self.data.swap(a * self.cols + col, b * self.cols + col);
        }
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (row, col): (usize, usize)) -> &f64 {
        &self.data[row * self.cols + col]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, col): (usize, usize)) -> &mut f64 {
        &mut self.data[row * self.cols + col]
    }
}

/// The matrices of a tensor, broadcast to these sizes in front.
pub(crate) fn matrices(tensor: &Tensor, lead: &[usize], rows: usize, cols: usize) -> Result<Vec<Matrix>> {
    let wide = Tensor::zeros(DType::Float64, &[lead, &[rows, cols]].concat())?;
    cast_into(tensor, &wide)?;
    let wide = Dense::new(&wide)?;
    let numbers = wide.read::<f64>();
    let n: usize = lead.iter().product();
    Ok((0..n).map(|i| Matrix { rows, cols, data: numbers[i * rows * cols..(i + 1) * rows * cols].to_vec() }).collect())
}

/// The matrices of an argument.
pub(crate) fn matrices_of(args: &Args<'_, Tensor>, index: usize) -> Result<Vec<Matrix>> {
    let tensor = args.tensor(index)?;
    let (lead, last) = tensor.sizes().split_at(tensor.rank() - 2);
    matrices(tensor, lead, last[0], last[1])
}

/// Fills a result with matrices one behind the other.
pub(crate) fn store_all(matrices: &[Matrix], out: &Tensor) -> Result<()> {
    let numbers: Vec<f64> = matrices.iter().flat_map(|it| it.data.iter().copied()).collect();
    store(&numbers, out)
}

/// A factorisation with the rows exchanged, of which the triangles share a matrix.
struct Lu {
    both: Matrix,
    /// With which row each row changed places, in turn.
    pivots: Vec<usize>,
    /// The first zero on the diagonal, counted from one; zero where there is none.
    info: i32,
}

fn lu(mut both: Matrix) -> Lu {
    let n = both.rows.min(both.cols);
    let (mut pivots, mut info) = (Vec::with_capacity(n), 0);
    for k in 0..n {
        let mut pivot = k;
        for row in k + 1..both.rows {
            if both[(row, k)].abs() > both[(pivot, k)].abs() {
                pivot = row;
            }
        }
        pivots.push(pivot);
        both.swap_rows(k, pivot);
        if both[(k, k)] == 0.0 {
            if info == 0 {
                info = k as i32 + 1;
            }
            continue;
        }
        for row in k + 1..both.rows {
            let factor = both[(row, k)] / both[(k, k)];
            both[(row, k)] = factor;
            for col in k + 1..both.cols {
                both[(row, col)] -= factor * both[(k, col)];
            }
        }
    }
    Lu { both, pivots, info }
}

impl Lu {
    /// The sign of the permutation times the diagonal, factor by factor.
    fn diagonal(&self) -> impl Iterator<Item = f64> {
        let n_swaps = self.pivots.iter().enumerate().filter(|(i, it)| i != *it).count();
        let sign = if n_swaps % 2 == 0 { 1.0 } else { -1.0 };
        std::iter::once(sign).chain((0..self.both.rows).map(|i| self.both[(i, i)]))
    }

    fn solve(&self, mut right: Matrix) -> Matrix {
        for (row, &pivot) in self.pivots.iter().enumerate() {
            right.swap_rows(row, pivot);
        }
        substitute(&self.both, &mut right, Triangle { is_upper: false, is_unit: true });
        substitute(&self.both, &mut right, Triangle { is_upper: true, is_unit: false });
        right
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
fn substitute(matrix: &Matrix, right: &mut Matrix, kind: Triangle) {
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

fn fill_ints(out: &Tensor, numbers: impl Iterator<Item = i32>) {
    fill::<i32, _>(out, |to| to.iter_mut().zip(numbers).for_each(|(to, it)| *to = it));
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

fn lu_factor(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all: Vec<Lu> = matrices_of(args, 0)?.into_iter().map(lu).collect();
    let infos: Vec<i32> = all.iter().map(|it| it.info).collect();
    check(args, &infos, |info| {
        format!(
            "linalg.lu_factor: U[{info},{info}] is zero and using it on lu_solve would result in a division by zero."
        )
    })?;
    fill_ints(&outs[1], all.iter().flat_map(Lu::one_based));
    fill_ints(&outs[2], infos.into_iter());
    store_all(&all.into_iter().map(|it| it.both).collect::<Vec<_>>(), &outs[0])
}

fn lu_unpack(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all = matrices_of(args, 0)?;
    if args.bool(3)? {
        let pivots = Dense::new(args.tensor(1)?)?;
        let pivots = pivots.read::<i32>();
        let n_pivots = all.first().map_or(1, |it| it.rows.min(it.cols)).max(1);
        let mut orders = Vec::new();
        for (matrix, pivots) in all.iter().zip(pivots.chunks(n_pivots)) {
            let mut order: Vec<usize> = (0..matrix.rows).collect();
            for (row, &pivot) in pivots.iter().enumerate() {
                let Some(pivot) =
                    usize::try_from(pivot).ok().and_then(|it| it.checked_sub(1)).filter(|it| *it < matrix.rows)
                else {
                    return Err(args.invalid("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass the result of lu_factor?"));
                };
                order.swap(row, pivot);
            }
            let mut permutation = Matrix::zeros(matrix.rows, matrix.rows);
            order.iter().enumerate().for_each(|(at, &row)| permutation[(row, at)] = 1.0);
            orders.push(permutation);
        }
        store_all(&orders, &outs[0])?;
    }
    if args.bool(2)? {
        let part = |keeps: fn(usize, usize) -> bool, is_lower: bool| -> Vec<Matrix> {
            let one = |it: &Matrix| {
                let n = it.rows.min(it.cols);
                let (rows, cols) = if is_lower { (it.rows, n) } else { (n, it.cols) };
                let mut res = if is_lower { Matrix::eye(rows, cols) } else { Matrix::zeros(rows, cols) };
                for row in 0..rows {
                    for col in (0..cols).filter(|col| keeps(row, *col)) {
                        res[(row, col)] = it[(row, col)];
                    }
                }
                res
            };
            all.iter().map(one).collect()
        };
        store_all(&part(|row, col| col < row, true), &outs[1])?;
        store_all(&part(|row, col| col >= row, false), &outs[2])?;
    }
    Ok(())
}

/// The factorisations that a determinant is read off. PyTorch takes those of the transposes of row-major matrices.
fn for_determinant(args: &Args<'_, Tensor>) -> Result<Vec<Lu>> {
    let is_row_major = args.tensor(0)?.is_contiguous();
    let factors = matrices_of(args, 0)?.into_iter().map(|it| lu(if is_row_major { it.transposed() } else { it }));
    Ok(factors.collect())
}

fn det(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all = for_determinant(args)?;
    store(&all.iter().map(|it| it.diagonal().product()).collect::<Vec<f64>>(), &outs[0])?;
    fill_ints(&outs[2], all.iter().flat_map(Lu::one_based));
    store_all(&all.into_iter().map(|it| it.both).collect::<Vec<_>>(), &outs[1])
}

fn slogdet(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all = for_determinant(args)?;
    let sign = |it: f64| if it == 0.0 { 0.0 } else { it.signum() };
    store(&all.iter().map(|it| it.diagonal().map(sign).product()).collect::<Vec<f64>>(), &outs[0])?;
    store(&all.iter().map(|it| it.diagonal().map(|it| it.abs().ln()).sum()).collect::<Vec<f64>>(), &outs[1])?;
    fill_ints(&outs[3], all.iter().flat_map(Lu::one_based));
    store_all(&all.into_iter().map(|it| it.both).collect::<Vec<_>>(), &outs[2])
}

fn inv(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let all: Vec<Lu> = matrices_of(args, 0)?.into_iter().map(lu).collect();
    let infos: Vec<i32> = all.iter().map(|it| it.info).collect();
    check(args, &infos, |info| {
        format!(
            "linalg.inv: The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
        )
    })?;
    fill_ints(&outs[1], infos.into_iter());
    let inverses: Vec<Matrix> = all.iter().map(|it| it.solve(Matrix::eye(it.both.rows, it.both.rows))).collect();
    store_all(&inverses, &outs[0])
}

fn solve(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (matrix, right, is_left) = (args.tensor(0)?, args.tensor(1)?, args.bool(2)?);
    let all = matrices_of(args, 0)?;
    // The equations from the right are those of the transposes from the left.
    let factors: Vec<Lu> = all.iter().map(|it| lu(if is_left { it.clone() } else { it.transposed() })).collect();
    let infos: Vec<i32> = factors.iter().map(|it| it.info).collect();
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
    let rights = matrices(&column, lead, shape[0], shape[1])?;
    // Which factorisation each right side belongs to.
    let numbers: Vec<i64> = (0..factors.len() as i64).collect();
    let numbers = Tensor::from_slice(&numbers, &matrix.sizes()[..matrix.rank() - 2])?;
    let of = Tensor::zeros(DType::Int64, lead)?;
    cast_into(&numbers, &of)?;
    let solutions: Vec<Matrix> = of
        .to_vec::<i64>()?
        .into_iter()
        .zip(rights)
        .map(|(at, right)| match is_left {
            true => factors[at as usize].solve(right),
            false => factors[at as usize].solve(right.transposed()).transposed(),
        })
        .collect();
    fill_ints(&outs[2], factors.iter().flat_map(Lu::one_based));
    fill_ints(&outs[3], infos.into_iter());
    store_all(&factors.into_iter().map(|it| it.both).collect::<Vec<_>>(), &outs[1])?;
    store_all(&solutions, &outs[0])
}

fn cholesky(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let is_upper = args.bool(1)?;
    let (mut results, mut infos) = (Vec::new(), Vec::new());
    for matrix in matrices_of(args, 0)? {
        // Only the triangle that is asked for is looked at.
        let matrix = if is_upper { matrix.transposed() } else { matrix };
        let n = matrix.rows;
        let (mut lower, mut info) = (Matrix::zeros(n, n), 0);
        'columns: for col in 0..n {
            for row in col..n {
                let sum: f64 = (0..col).map(|k| lower[(row, k)] * lower[(col, k)]).sum();
                let left = matrix[(row, col)] - sum;
                if row > col {
                    lower[(row, col)] = left / lower[(col, col)];
                } else if left > 0.0 {
                    lower[(col, col)] = left.sqrt();
                } else {
                    info = col as i32 + 1;
                    break 'columns;
                }
            }
        }
        infos.push(info);
        results.push(if is_upper { lower.transposed() } else { lower });
    }
    check(args, &infos, |info| {
        format!(
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order {info} is not positive-definite)."
        )
    })?;
    fill_ints(&outs[1], infos.into_iter());
    store_all(&results, &outs[0])
}

fn solve_triangular(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (is_upper, is_left) = (args.bool(2)?, args.bool(3)?);
    let kind = Triangle { is_upper: is_upper == is_left, is_unit: args.bool(4)? };
    let [lead @ .., rows, cols] = outs[0].sizes() else { unreachable!("the shape rule gives matrices") };
    let n = if is_left { *rows } else { *cols };
    let triangles = matrices(args.tensor(0)?, lead, n, n)?;
    let rights = matrices(args.tensor(1)?, lead, *rows, *cols)?;
    let solved = triangles.into_iter().zip(rights).map(|(triangle, mut right)| match is_left {
        true => {
            substitute(&triangle, &mut right, kind);
            right
        }
        false => {
            let mut right = right.transposed();
            substitute(&triangle.transposed(), &mut right, kind);
            right.transposed()
        }
    });
    store_all(&solved.collect::<Vec<_>>(), &outs[0])
}

/// Reflections of Householder, one for each column, with the signs of LAPACK.
fn qr(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let mode = args.str(1)?;
    let (mut all_q, mut all_r) = (Vec::new(), Vec::new());
    for matrix in matrices_of(args, 0)? {
        let (rows, cols) = (matrix.rows, matrix.cols);
        let n = rows.min(cols);
        let (mut r, mut mirrors) = (matrix, Vec::new());
        for k in 0..n {
            let below: f64 = (k + 1..rows).map(|row| r[(row, k)] * r[(row, k)]).sum();
            let mut mirror = vec![0.0; rows];
            if below > 0.0 {
                let length = (below + r[(k, k)] * r[(k, k)]).sqrt();
                let target = if r[(k, k)] > 0.0 { -length } else { length };
                (k..rows).for_each(|row| mirror[row] = r[(row, k)]);
                mirror[k] -= target;
                reflect(&mut r, &mirror);
                (k + 1..rows).for_each(|row| r[(row, k)] = 0.0);
            }
            mirrors.push(mirror);
        }
        let width = if mode == "complete" { rows } else { n };
        if mode != "r" {
            let mut q = Matrix::eye(rows, width);
            mirrors.iter().rev().for_each(|it| reflect(&mut q, it));
            all_q.push(q);
        }
        r.data.truncate(width * cols);
        r.rows = width;
        all_r.push(r);
    }
    store_all(&all_q, &outs[0])?;
    store_all(&all_r, &outs[1])
}

/// Mirrors all columns at the plane across this direction.
fn reflect(matrix: &mut Matrix, direction: &[f64]) {
    let square: f64 = direction.iter().map(|it| it * it).sum();
    if square == 0.0 {
        return;
    }
    for col in 0..matrix.cols {
        let along: f64 = direction.iter().enumerate().map(|(row, it)| it * matrix[(row, col)]).sum();
        for (row, it) in direction.iter().enumerate() {
            matrix[(row, col)] -= 2.0 * along / square * it;
        }
    }
}

/// Scaled down until its series is short, and squared as often again.
fn matrix_exp(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let exp = |mut matrix: Matrix| {
        let largest = matrix.data.chunks(matrix.cols.max(1)).map(|row| row.iter().map(|it| it.abs()).sum::<f64>());
        let norm = largest.fold(0.0, f64::max);
        let n_halvings = if norm > 0.5 && norm.is_finite() { (norm / 0.5).log2().ceil() as i32 } else { 0 };
        matrix.data.iter_mut().for_each(|it| *it *= 0.5f64.powi(n_halvings));
        let mut sum = Matrix::eye(matrix.rows, matrix.cols);
        let mut term = sum.clone();
        for k in 1..20 {
            term = term.times(&matrix);
            term.data.iter_mut().for_each(|it| *it /= f64::from(k));
            sum.data.iter_mut().zip(&term.data).for_each(|(sum, it)| *sum += it);
        }
        (0..n_halvings).fold(sum, |it, _| it.times(&it))
    };
    store_all(&matrices_of(args, 0)?.into_iter().map(exp).collect::<Vec<_>>(), &outs[0])
}
