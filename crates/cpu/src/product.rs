//! Products of matrices: the one place that calls the `gemm` crate, and exact integer products beside it.

use crate::dense;
use crate::real::{Strided, fill_real};
use tracefx_core::{Element, Result, Tensor};

/// A matrix in memory: the element in row `i` and column `j` is at `i * row + j * col`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) row: usize,
    pub(crate) col: usize,
}

/// A matrix to write, whose rows are contiguous and `row` elements apart.
pub(crate) struct MatrixMut<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) row: usize,
}

/// Sizes of a product: `m` by `k` times `k` by `n`.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

/// What matrices are made of.
pub(crate) trait Product: Element {
    const ZERO: Self;

    /// Writes `lhs * rhs`, or adds it to what is there.
    fn product(size: Extent, dst: MatrixMut<'_, Self>, lhs: Matrix<'_, Self>, rhs: Matrix<'_, Self>, accumulate: bool);

    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;

    /// The product; integers wrap.
    fn times(self, other: Self) -> Self;

    /// The complex conjugate.
    fn conj(self) -> Self {
        self
    }

    /// The elements of a tensor of a dtype whose products are computed in this type.
    fn read(tensor: &Tensor) -> Result<Strided<'_, Self>> {
        Ok(Strided::exact(tensor))
    }

    /// Gives the elements of a new, row-major result to `fill`, and rounds them to its dtype.
    fn write(result: &Tensor, fill: impl FnOnce(&mut [Self])) {
        dense::fill(result, fill)
    }
}

/// Runs a block with `T` bound to the type in which products of this dtype are computed (float16 and bfloat16 in
/// float32); the `else` block runs for dtypes without products.
macro_rules! with_product {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            ::tracefx_core::DType::Float16 | ::tracefx_core::DType::BFloat16 | ::tracefx_core::DType::Float32 => {
                type $T = f32;
                $body
            }
            ::tracefx_core::DType::Float64 => {
                type $T = f64;
                $body
            }
            ::tracefx_core::DType::UInt8 => {
                type $T = u8;
                $body
            }
            ::tracefx_core::DType::Int8 => {
                type $T = i8;
                $body
            }
            ::tracefx_core::DType::Int16 => {
                type $T = i16;
                $body
            }
            ::tracefx_core::DType::Int32 => {
                type $T = i32;
                $body
            }
            ::tracefx_core::DType::Int64 => {
                type $T = i64;
                $body
            }
            ::tracefx_core::DType::Complex64 => {
                type $T = [f32; 2];
                $body
            }
            ::tracefx_core::DType::Complex128 => {
                type $T = [f64; 2];
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use with_product;

/// Below this many multiplications a plain loop beats the set-up of a blocked product.
const SMALL: usize = 512;

fn last(n_rows: usize, n_cols: usize, row: usize, col: usize) -> usize {
    (n_rows - 1) * row + (n_cols - 1) * col
}

/// Checks what the unchecked code relies on; false where there is nothing to compute.
fn prepare<T: Product>(
    size: Extent,
    dst: &mut MatrixMut<'_, T>,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) -> bool {
    let Extent { m, n, k } = size;
    if m == 0 || n == 0 {
        return false;
    }
    assert!((m == 1 || dst.row >= n) && last(m, n, dst.row, 1) < dst.data.len(), "the result holds the product");
    if k == 0 {
        if !accumulate {
            for row in dst.data.chunks_mut(dst.row.max(1)).take(m) {
                row[..n].fill(T::ZERO);
            }
        }
        return false;
    }
    assert!(last(m, k, lhs.row, lhs.col) < lhs.data.len(), "the left side holds its elements");
    assert!(last(k, n, rhs.row, rhs.col) < rhs.data.len(), "the right side holds its elements");
    true
}

fn plain<T: Product>(
    size: Extent,
    dst: &mut MatrixMut<'_, T>,
    lhs: Matrix<'_, T>,
    rhs: Matrix<'_, T>,
    accumulate: bool,
) {
    for i in 0..size.m {
        let out = &mut dst.data[i * dst.row..][..size.n];
        if !accumulate {
            out.fill(T::ZERO);
        }
        for p in 0..size.k {
            let a = lhs.data[i * lhs.row + p * lhs.col];
            if rhs.col == 1 {
                for (out, &b) in out.iter_mut().zip(&rhs.data[p * rhs.row..]) {
                    *out = out.plus(a.times(b));
                }
            } else {
                for (j, out) in out.iter_mut().enumerate() {
                    *out = out.plus(a.times(rhs.data[p * rhs.row + j * rhs.col]));
                }
            }
        }
    }
}

/// Products by the `gemm` crate, for the types that it knows; `$as` is its name for `$ty`.
macro_rules! blocked {
    ($ty:ty as $as:ty, $zero:expr, $one:expr) => {
        const ZERO: Self = $zero;

        fn product(
            size: Extent,
            mut dst: MatrixMut<'_, Self>,
            lhs: Matrix<'_, Self>,
            rhs: Matrix<'_, Self>,
            accumulate: bool,
        ) {
            if !prepare(size, &mut dst, lhs, rhs, accumulate) {
                return;
            }
            if size.m * size.n * size.k <= SMALL {
                return plain(size, &mut dst, lhs, rhs, accumulate);
            }
            // SAFETY: `prepare` has checked that the last element of each matrix lies in its slice; strides are not
            // negative, so all elements lie before it. `dst` is borrowed mutably and its rows do not overlap, so
            // nothing else reads what is written. `$ty` and `$as` have the same layout.
            unsafe {
                gemm::gemm::<$as>(
                    size.m,
                    size.n,
                    size.k,
                    dst.data.as_mut_ptr().cast(),
                    1,
                    dst.row as isize,
                    accumulate,
                    lhs.data.as_ptr().cast(),
                    lhs.col as isize,
                    lhs.row as isize,
                    rhs.data.as_ptr().cast(),
                    rhs.col as isize,
                    rhs.row as isize,
                    $one,
                    $one,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }
    };
}

macro_rules! float_product {
    ($($ty:ident),+) => {$(
        impl Product for $ty {
            blocked!($ty as $ty, 0.0, 1.0);

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            fn read(tensor: &Tensor) -> Result<Strided<'_, Self>> {
                Strided::new(tensor)
            }

            fn write(result: &Tensor, fill: impl FnOnce(&mut [Self])) {
                fill_real(result, fill)
            }
        }
    )+};
}
float_product!(f32, f64);

macro_rules! complex_product {
    ($($part:ident $as:ident),+) => {$(
        impl Product for [$part; 2] {
            blocked!([$part; 2] as gemm::$as, [0.0; 2], gemm::$as { re: 1.0, im: 0.0 });

            fn plus(self, other: Self) -> Self {
                [self[0] + other[0], self[1] + other[1]]
            }

            fn times(self, other: Self) -> Self {
                [self[0] * other[0] - self[1] * other[1], self[0] * other[1] + self[1] * other[0]]
            }

            fn conj(self) -> Self {
                [self[0], -self[1]]
            }
        }
    )+};
}
complex_product!(f32 c32, f64 c64);

macro_rules! int_product {
    ($($ty:ident),+) => {$(
        impl Product for $ty {
            const ZERO: Self = 0;

            fn product(
                size: Extent,
                mut dst: MatrixMut<'_, Self>,
                lhs: Matrix<'_, Self>,
                rhs: Matrix<'_, Self>,
                accumulate: bool,
            ) {
                if prepare(size, &mut dst, lhs, rhs, accumulate) {
                    plain(size, &mut dst, lhs, rhs, accumulate);
                }
            }

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )+};
}
int_product!(u8, i8, i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_products_agree_with_plain_ones_for_any_strides() {
        let (m, n, k) = (17, 23, 31);
        let a: Vec<f64> = (0..m * k).map(|it| (it % 13) as f64 - 6.0).collect();
        let b: Vec<f64> = (0..n * k).map(|it| (it % 7) as f64 - 3.0).collect();
        for (lhs, rhs) in [((k, 1), (n, 1)), ((1, m), (n, 1)), ((k, 1), (1, k)), ((1, m), (1, k)), ((0, 1), (1, 0))] {
            let lhs = Matrix { data: &a, row: lhs.0, col: lhs.1 };
            let rhs = Matrix { data: &b, row: rhs.0, col: rhs.1 };
            let (mut got, mut want) = (vec![1.0; m * (n + 2)], vec![1.0; m * (n + 2)]);
            let size = Extent { m, n, k };
            f64::product(size, MatrixMut { data: &mut got, row: n + 2 }, lhs, rhs, true);
            plain(size, &mut MatrixMut { data: &mut want, row: n + 2 }, lhs, rhs, true);
            assert_eq!(got, want);
        }
    }

    #[test]
    fn an_empty_sum_is_zero() {
        let mut dst = [5.0f32; 4];
        let empty = Matrix { data: &[], row: 0, col: 1 };
        f32::product(Extent { m: 2, n: 2, k: 0 }, MatrixMut { data: &mut dst, row: 2 }, empty, empty, false);
        assert_eq!(dst, [0.0; 4]);
    }

    #[test]
    fn integer_products_wrap() {
        let mut dst = [0u8];
        let lhs = Matrix { data: &[200, 100], row: 2, col: 1 };
        let rhs = Matrix { data: lhs.data, row: 1, col: 2 };
        u8::product(Extent { m: 1, n: 1, k: 2 }, MatrixMut { data: &mut dst, row: 1 }, lhs, rhs, false);
        assert_eq!(dst, [((200 * 200 + 100 * 100) % 256) as u8]);
    }
}
