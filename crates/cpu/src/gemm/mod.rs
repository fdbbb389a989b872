//! Products of matrices: what every kernel that multiplies is made of.
//!
//! Which way a product is computed is decided here, by its sizes alone: by a plain loop where it is small, by [`gemv`] where
//! a side is thin, else by [`blocked`]. What is multiplied, and in which dtype, is for the kernels to say.

pub(crate) mod blocked;
mod gemv;
pub(crate) mod narrow;
pub(crate) mod output_view;
pub(crate) mod quantized;

use crate::gemm::blocked::{BlockedGemm, PackedRhs};
use crate::gemm::gemv::{THIN, axpys, dots};
use crate::gemm::output_view::OutputView;
use crate::numeric::dense;
#[cfg(target_family = "wasm")]
use crate::numeric::isa::AddProducts;
use crate::numeric::isa::{Isa, Level};
use crate::numeric::number::Number;
use crate::numeric::scratch;
use crate::numeric::strided::{Strided, try_fill_float, try_fill_int};
use std::ops::Deref;
use tracefx_core::{Element, Result, Tensor};

/// A matrix in memory: the element in row `i` and column `j` is at `i * row + j * col`.
#[derive(Clone, Copy)]
pub(crate) struct MatrixView<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) row: usize,
    pub(crate) col: usize,
}

impl<T> MatrixView<'_, T> {
    /// The same elements with rows for columns.
    pub(crate) fn transposed(self) -> Self {
        MatrixView { row: self.col, col: self.row, ..self }
    }
}

/// A matrix to write, whose rows are contiguous and `row` elements apart.
pub(crate) struct MatrixViewMut<'a, T> {
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

impl Extent {
    /// The multiplications. Of matrices that fit an address space of 32 bits there can be more than it has addresses.
    pub(crate) fn n_terms(self) -> u64 {
        [self.m, self.n, self.k].into_iter().map(|it| it as u64).fold(1, u64::saturating_mul)
    }
}

/// What the sums of a product start from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a, T> {
    Zero,
    /// What the result holds.
    Kept,
    /// A number for each row.
    Rows(&'a [T]),
    /// A number for each column.
    Columns(&'a [T]),
}

impl<T: GemmElement> Start<'_, T> {
    /// What the element in row `i` and column `j` starts from, which holds `kept`.
    #[inline(always)]
    pub(crate) fn of(self, i: usize, j: usize, kept: T) -> T {
        match self {
            Start::Zero => T::ZERO,
            Start::Kept => kept,
            Start::Rows(rows) => rows[i],
            Start::Columns(columns) => columns[j],
        }
    }

    /// What the terms from `depth` on are added to.
    #[inline(always)]
    pub(crate) fn at(self, depth: usize) -> Self {
        if depth == 0 { self } else { Start::Kept }
    }

    fn transposed(self) -> Self {
        match self {
            Start::Rows(rows) => Start::Columns(rows),
            Start::Columns(columns) => Start::Rows(columns),
            Start::Zero | Start::Kept => self,
        }
    }
}

/// What matrices are made of.
pub(crate) trait GemmElement: Number + Element {
    const IS_FLOAT: bool = false;
    const IS_COMPLEX: bool = false;

    /// `self * other + sum`, with the fewest roundings that the instructions have.
    fn mul_add<I: Isa>(self, other: Self, sum: Self) -> Self;

    /// Adds products with relaxed SIMD, where there is some for this type, and gives whether there is.
    #[cfg(target_family = "wasm")]
    #[inline(always)]
    fn add_products(_: AddProducts, _rows: &[&[Self]], _panel: &[Self], _sums: &mut [Self]) -> bool {
        false
    }

    /// The complex conjugate.
    fn conj(self) -> Self {
        self
    }

    /// The elements of a tensor of a dtype whose products are computed in this type.
    fn read(tensor: &Tensor) -> Result<Strided<'_, Self>> {
        Ok(Strided::exact(tensor))
    }

    /// Gives the elements of a new, row-major result to `fill`, and rounds them to its dtype.
    ///
    /// # Errors
    /// What `fill` gives, and `OutOfMemory` where there is no room for what is rounded.
    fn write(result: &Tensor, fill: impl FnOnce(&mut [Self]) -> Result<()>) -> Result<()> {
        dense::fill(result, fill)
    }
}

/// Below this many multiplications a plain loop beats the set-up of a blocked product.
const SMALL: u64 = 512;

/// Fewer rows than these are not worth laying out the other side.
const FEW: usize = 48;

/// Writes `start + lhs * rhs`.
///
/// # Errors
/// `OutOfMemory` where a side cannot be laid out.
///
/// # Panics
/// When a matrix leaves its elements.
pub(crate) fn gemm<T: GemmElement>(
    size: Extent,
    dst: MatrixViewMut<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) -> Result<()> {
    gemm_on(Level::best(), size, dst, lhs, rhs, start)
}

/// As [`gemm`], with these instructions.
///
/// # Errors
/// As there.
///
/// # Panics
/// As there.
pub(crate) fn gemm_on<T: GemmElement>(
    level: Level,
    size: Extent,
    dst: MatrixViewMut<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) -> Result<()> {
    if size.m == 0 || size.n == 0 {
        return Ok(());
    }
    let target = OutputView::new(dst.data, [size.m, size.n], [dst.row, 1]);
    gemm_into(level, size, target, lhs, rhs, start)
}

/// As [`gemm_on`], to any view of these sizes.
///
/// # Errors
/// As there.
///
/// # Panics
/// As there.
pub(crate) fn gemm_into<T: GemmElement>(
    level: Level,
    size: Extent,
    target: OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) -> Result<()> {
    let Extent { m, n, k } = size;
    if size.n_terms() <= SMALL {
        plain(size, &target, lhs, rhs, start);
        return Ok(());
    }
    if is_turned(size, lhs, rhs) {
        let target = target.transposed();
        return in_rows(
            level,
            Extent { m: n, n: m, k },
            target,
            rhs.transposed(),
            lhs.transposed(),
            start.transposed(),
        );
    }
    in_rows(level, size, target, lhs, rhs, start)
}

/// Whether the sides change places. The left side is read in contiguous rows; where both could be it, it is the larger one if the
/// other one is so small that laying out the larger one would cost more than writing the columns of the result.
fn is_turned<T>(size: Extent, lhs: MatrixView<'_, T>, rhs: MatrixView<'_, T>) -> bool {
    rhs.row == 1 && (lhs.col != 1 || size.m < FEW && size.n > size.m)
}

fn in_rows<T: GemmElement>(
    level: Level,
    size: Extent,
    target: OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) -> Result<()> {
    if size.m <= THIN && rhs.col == 1 {
        return axpys(level, size, &target, lhs, rhs, start);
    }
    in_dense_rows(size, lhs, |lhs| {
        if size.n <= THIN {
            return dots(level, size, &target, lhs, rhs, start);
        }
        BlockedGemm { level, size, target, lhs, rhs: &rhs, start, epilogue: () }.run()
    })
}

/// The right side of a product that is the same in every call, laid out; nothing where the product would not lay it out, or
/// lays out the other side.
///
/// # Errors
/// `OutOfMemory` where there is no room for it.
pub(crate) fn pack<T: GemmElement>(
    size: Extent,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
) -> Result<Option<PackedRhs<T>>> {
    let Extent { m, n, k } = size;
    if size.n_terms() <= SMALL || n <= THIN || m <= THIN || is_turned(size, lhs, rhs) {
        return Ok(None);
    }
    PackedRhs::new(Level::best(), n, k, &rhs).map(Some)
}

/// Writes `start + lhs * rhs`, where `rhs` is laid out: the same as [`gemm`], to the bit.
///
/// # Errors
/// `OutOfMemory` where the left side cannot be laid out.
///
/// # Panics
/// When a matrix leaves its elements, or the right side has fewer rows or columns.
pub(crate) fn gemm_packed<T: GemmElement, P: Deref<Target = [T]> + Sync>(
    size: Extent,
    dst: MatrixViewMut<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: &PackedRhs<T, P>,
    start: Start<'_, T>,
) -> Result<()> {
    gemm_packed_into(size, OutputView::new(dst.data, [size.m, size.n], [dst.row, 1]), lhs, rhs, start)
}

/// As [`gemm_packed`], to any view of these sizes, with the first rows and columns of a right side that may have more.
///
/// # Errors
/// As there.
///
/// # Panics
/// As there.
pub(crate) fn gemm_packed_into<T: GemmElement, P: Deref<Target = [T]> + Sync>(
    size: Extent,
    target: OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: &PackedRhs<T, P>,
    start: Start<'_, T>,
) -> Result<()> {
    in_dense_rows(size, lhs, |lhs| {
        BlockedGemm { level: rhs.level(), size, target, lhs, rhs, start, epilogue: () }.run_packed();
        Ok(())
    })
}

/// Gives `body` the left side with its rows contiguous.
fn in_dense_rows<T: GemmElement>(
    size: Extent,
    lhs: MatrixView<'_, T>,
    body: impl FnOnce(MatrixView<'_, T>) -> Result<()>,
) -> Result<()> {
    if lhs.col == 1 {
        return body(lhs);
    }
    scratch::with::<T, _>(size.m * size.k, |rows| {
        for (p, from) in (0..size.k).map(|p| (p, &lhs.data[p * lhs.col..])) {
            let from = |i: usize| from[i * lhs.row];
            (0..size.m).for_each(|i| rows[i * size.k + p] = from(i));
        }
        body(MatrixView { data: rows, row: size.k, col: 1 })
    })
}

/// The loop that says what a product is.
fn plain<T: GemmElement>(
    size: Extent,
    target: &OutputView<'_, T>,
    lhs: MatrixView<'_, T>,
    rhs: MatrixView<'_, T>,
    start: Start<'_, T>,
) {
    for i in 0..size.m {
        for j in 0..size.n {
            let term = |p: usize| lhs.data[i * lhs.row + p * lhs.col].mul(rhs.data[p * rhs.row + j * rhs.col]);
            let sum = (0..size.k).fold(T::ZERO, |sum, p| sum.add(term(p)));
            // SAFETY: nothing else uses the target.
            let to = unsafe { target.element(i, j) };
            *to = start.of(i, j, *to).add(sum);
        }
    }
}

macro_rules! float_product {
    ($($ty:ident { $($more:item)* })+) => {$(
        impl GemmElement for $ty {
            const IS_FLOAT: bool = true;
            $($more)*

            #[inline(always)]
            fn mul_add<I: Isa>(self, other: Self, sum: Self) -> Self {
                if I::FUSES { $ty::mul_add(self, other, sum) } else { self * other + sum }
            }

            fn read(tensor: &Tensor) -> Result<Strided<'_, Self>> {
                Strided::new(tensor)
            }

            fn write(result: &Tensor, fill: impl FnOnce(&mut [Self]) -> Result<()>) -> Result<()> {
                try_fill_float(result, fill)
            }
        }
    )+};
}
float_product! {
    f32 {
        #[cfg(target_family = "wasm")]
        #[inline(always)]
        fn add_products(multiply: AddProducts, rows: &[&[Self]], panel: &[Self], sums: &mut [Self]) -> bool {
            multiply(rows, panel, sums);
            true
        }
    }
    f64 {}
}

macro_rules! complex_product {
    ($($part:ident),+) => {$(
        impl GemmElement for [$part; 2] {
            const IS_COMPLEX: bool = true;

            #[inline(always)]
            fn mul_add<I: Isa>(self, other: Self, sum: Self) -> Self {
                let part = |a: $part, b: $part, sum: $part| <$part as GemmElement>::mul_add::<I>(a, b, sum);
                [
                    part(-self[1], other[1], part(self[0], other[0], sum[0])),
                    part(self[1], other[0], part(self[0], other[1], sum[1])),
                ]
            }

            fn conj(self) -> Self {
                [self[0], -self[1]]
            }
        }
    )+};
}
complex_product!(f32, f64);

/// Sums of products wrap around, so that those of narrower integers are the last bits of these.
impl GemmElement for i32 {
    #[inline(always)]
    fn mul_add<I: Isa>(self, other: Self, sum: Self) -> Self {
        self.wrapping_mul(other).wrapping_add(sum)
    }

    fn read(tensor: &Tensor) -> Result<Strided<'_, Self>> {
        Strided::integers(tensor)
    }

    fn write(result: &Tensor, fill: impl FnOnce(&mut [Self]) -> Result<()>) -> Result<()> {
        try_fill_int(result, fill)
    }
}

impl GemmElement for i64 {
    #[inline(always)]
    fn mul_add<I: Isa>(self, other: Self, sum: Self) -> Self {
        self.wrapping_mul(other).wrapping_add(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers that go wrong more often than others.
    fn number() -> impl Strategy<Value = f32> {
        prop_oneof![
            200 => -2.0f32..2.0,
            4 => Just(-0.0f32),
            4 => Just(f32::MIN_POSITIVE / 8.0),
            1 => prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)],
        ]
    }

    /// A matrix of these sizes: its strides, and how many elements it needs.
    fn strides(n_rows: usize, n_cols: usize) -> impl Strategy<Value = ((usize, usize), usize)> {
        let layouts =
            vec![(n_cols, 1), (n_cols + 3, 1), (1, n_rows), (1, n_rows + 5), (2 * n_cols, 2), (0, 1), (1, 0), (0, 0)];
        let span = move |(row, col): (usize, usize)| n_rows.max(1) * row + n_cols.max(1) * col + 1;
        prop::sample::select(layouts).prop_map(move |it| (it, span(it)))
    }

    #[derive(Clone, Debug)]
    struct Case {
        sizes: [usize; 3],
        lhs: (usize, usize),
        rhs: (usize, usize),
        data: [Vec<f32>; 2],
        start: usize,
    }

    fn case() -> impl Strategy<Value = Case> {
        let small = prop_oneof![0usize..5, 0usize..40, 100usize..180];
        let depth = prop_oneof![0usize..5, 0usize..40, 250usize..300, 500usize..530];
        (small.clone(), small, depth).prop_flat_map(|(m, n, k)| {
            (strides(m, k), strides(k, n), 0usize..4).prop_flat_map(move |((lhs, n_lhs), (rhs, n_rhs), start)| {
                let numbers = |n: usize| prop::collection::vec(number(), n);
                (numbers(n_lhs), numbers(n_rhs)).prop_map(move |(a, b)| Case {
                    sizes: [m, n, k],
                    lhs,
                    rhs,
                    data: [a, b],
                    start,
                })
            })
        })
    }

    impl Case {
        /// The product and what [`plain`] says of it, of numbers of another type, with some room between the rows.
        fn run<T: GemmElement>(&self, level: Level, of: impl Fn(f32) -> T) -> (Vec<T>, Vec<T>) {
            let [m, n, k] = self.sizes;
            let [a, b] = [0, 1].map(|at| self.data[at].iter().map(|&it| of(it)).collect::<Vec<_>>());
            let lhs = MatrixView { data: &a, row: self.lhs.0, col: self.lhs.1 };
            let rhs = MatrixView { data: &b, row: self.rhs.0, col: self.rhs.1 };
            let edge: Vec<T> = (0..m.max(n)).map(|it| of(it as f32 - 7.5)).collect();
            let start = [Start::Zero, Start::Kept, Start::Rows(&edge), Start::Columns(&edge)][self.start];
            let (size, row) = (Extent { m, n, k }, n + 2);
            let before: Vec<T> = (0..m * row + 1).map(|it| of((it % 11) as f32)).collect();
            let (mut got, mut want) = (before.clone(), before);
            gemm_on(level, size, MatrixViewMut { data: &mut got, row }, lhs, rhs, start).unwrap();
            if m * n > 0 {
                plain(size, &OutputView::new(&mut want, [m, n], [row, 1]), lhs, rhs, start);
            }
            (got, want)
        }

        /// Compares a product with one whose right side was laid out before.
        fn packed_is_the_same<T: GemmElement, B: PartialEq + std::fmt::Debug>(
            &self,
            of: impl Fn(f32) -> T,
            bits: impl Fn(T) -> B,
        ) -> Result<(), TestCaseError> {
            let [m, n, k] = self.sizes;
            let (size, row) = (Extent { m, n, k }, n + 2);
            let [a, b] = [0, 1].map(|at| self.data[at].iter().map(|&it| of(it)).collect::<Vec<_>>());
            let lhs = MatrixView { data: &a, row: self.lhs.0, col: self.lhs.1 };
            let rhs = MatrixView { data: &b, row: self.rhs.0, col: self.rhs.1 };
            let edge: Vec<T> = (0..m.max(n)).map(|it| of(it as f32 - 7.5)).collect();
            let start = [Start::Zero, Start::Kept, Start::Rows(&edge), Start::Columns(&edge)][self.start];
            let Some(packed) = pack(size, lhs, rhs).unwrap() else { return Ok(()) };
            let before: Vec<T> = (0..m * row + 1).map(|it| of((it % 11) as f32)).collect();
            let (mut got, mut want) = (before.clone(), before);
            gemm_packed(size, MatrixViewMut { data: &mut got, row }, lhs, &packed, start).unwrap();
            gemm(size, MatrixViewMut { data: &mut want, row }, lhs, rhs, start).unwrap();
            let bits = |it: Vec<T>| it.into_iter().map(&bits).collect::<Vec<_>>();
            prop_assert_eq!(bits(got), bits(want));
            Ok(())
        }

        /// The first element of which two orders of its terms cannot give both numbers, in a type of this machine
        /// epsilon: with n terms they differ by at most n ε times the sum of the terms' magnitudes (Higham, Accuracy
        /// and Stability of Numerical Algorithms, 2002, §4.2), and by what terms below the normal numbers lose.
        fn first_apart<T: Copy + Into<f64>>(&self, got: &[T], want: &[T], epsilon: f64) -> Option<(usize, f64, f64)> {
            let (_, magnitudes) = self.run(Level::best(), |it| f64::from(it).abs());
            let n_terms = self.sizes[2] as f64 + 1.0;
            (0..want.len()).map(|at| (at, got[at].into(), want[at].into())).find(|&(at, got, want)| {
                let bound = n_terms * (epsilon * magnitudes[at] + f64::from(f32::MIN_POSITIVE));
                let is_close = want.is_finite() && (got - want).abs() <= bound;
                !(is_close || got == want || got.is_nan() && want.is_nan())
            })
        }
    }

    proptest! {
        #![proptest_config(crate::agreement::config(24))]

        #[test]
        fn products_are_what_the_plain_loop_says(case in case()) {
            for level in Level::all() {
                let (got, want) = case.run(level, |it| it);
                prop_assert_eq!(case.first_apart(&got, &want, f64::from(f32::EPSILON)), None, "{:?}", level);
                let (got, want) = case.run(level, f64::from);
                prop_assert_eq!(case.first_apart(&got, &want, f64::EPSILON), None, "{:?}", level);
                let (got, want) = case.run(level, |it| (it * 1e9) as i32);
                prop_assert_eq!(got, want);
                let (got, want) = case.run(level, |it| i64::from(it.to_bits()) << 20);
                prop_assert_eq!(got, want);
                let (got, want) = case.run(level, |it| [(it.clamp(-2.0, 2.0) * 30.0) as i8 as f32, it.to_bits() as i8 as f32]);
                prop_assert_eq!(got, want);
            }
        }
    }

    proptest! {
        #![proptest_config(crate::agreement::config(24))]

        #[test]
        fn products_with_a_side_laid_out_before_are_the_same(case in case()) {
            case.packed_is_the_same(|it| it, f32::to_bits)?;
            case.packed_is_the_same(|it| [it, it * 3.0 - 1.0], |[re, im]| [re.to_bits(), im.to_bits()])?;
        }
    }

    #[test]
    fn an_element_does_not_depend_on_the_matrices_around_it() {
        let (m, n, k) = (101, 203, 300);
        let a: Vec<f32> = (0..m * k).map(|it| (it as f32).sin()).collect();
        let b: Vec<f32> = (0..k * n).map(|it| (it as f32).cos()).collect();
        let of = |rows: usize, cols: usize| {
            let mut out = vec![0.0; rows * cols];
            let (lhs, rhs) = (MatrixView { data: &a, row: k, col: 1 }, MatrixView { data: &b, row: n, col: 1 });
            let size = Extent { m: rows, n: cols, k };
            gemm(size, MatrixViewMut { data: &mut out, row: cols }, lhs, rhs, Start::Zero).unwrap();
            out
        };
        let whole = of(m, n);
        for (rows, cols) in [(4, 4), (5, 17), (101, 40), (40, 203)] {
            let part = of(rows, cols);
            assert!((0..rows * cols).all(|at| part[at] == whole[at / cols * n + at % cols]), "{rows} {cols}");
        }
    }

    #[test]
    fn multiplications_are_counted_where_addresses_end() {
        let side = 1 << 16;
        assert_eq!(Extent { m: side, n: side, k: 1 }.n_terms(), 1 << 32);
        assert_eq!(Extent { m: side, n: side, k: side }.n_terms(), 1 << 48);
    }

    #[test]
    fn an_empty_sum_is_what_it_starts_from() {
        let mut dst = [5.0f32; 4];
        let empty = MatrixView { data: &[], row: 0, col: 1 };
        let size = Extent { m: 2, n: 2, k: 0 };
        gemm(size, MatrixViewMut { data: &mut dst, row: 2 }, empty, empty, Start::Columns(&[1.0, 2.0])).unwrap();
        assert_eq!(dst, [1.0, 2.0, 1.0, 2.0]);
        gemm(size, MatrixViewMut { data: &mut dst, row: 2 }, empty, empty, Start::Zero).unwrap();
        assert_eq!(dst, [0.0; 4]);
    }

    #[test]
    fn integer_products_wrap() {
        let mut dst = [0i32];
        let lhs = MatrixView { data: &[1 << 30, 3 << 15], row: 2, col: 1 };
        let rhs = MatrixView { data: lhs.data, row: 1, col: 2 };
        gemm(Extent { m: 1, n: 1, k: 2 }, MatrixViewMut { data: &mut dst, row: 1 }, lhs, rhs, Start::Zero).unwrap();
        assert_eq!(dst, [9 << 30]);
    }

    /// As sums in their own dtype wrap around, whatever factors are.
    #[test]
    fn products_of_narrow_integers_wrap_as_their_dtype_does() {
        use tracefx_core::DType;
        use tracefx_ops::{Value, registry};
        let executor = tracefx_exec::Executor::new(registry(), crate::kernels());
        let of = |it: &[i64], sizes: &[usize], dtype| {
            crate::numeric::map::cast(&Tensor::from_slice(it, sizes).unwrap(), dtype).unwrap()
        };
        for (dtype, bits) in [(DType::Int8, 8), (DType::UInt8, 8), (DType::Int16, 16), (DType::Int32, 32)] {
            let (a, b): (Vec<i64>, Vec<i64>) =
                ((0..35).map(|it| it * 7919).collect(), (0..21).map(|it| it * -104_729).collect());
            let addend = of(&[i64::from(i32::MAX), -3, 200], &[3], dtype);
            let [a, b] = [of(&a, &[5, 7], dtype), of(&b, &[7, 3], dtype)];
            let scaled = [("beta".into(), Value::int(3)), ("alpha".into(), Value::int(100))];
            let args = [addend.clone(), a.clone(), b.clone()].map(Value::Tensor);
            let got = executor.call("aten.addmm.default", &args, &scaled).unwrap().remove(0);
            let Value::Tensor(got) = got else { panic!("{got:?}") };
            let wide = |it: &Tensor| crate::numeric::map::cast(it, DType::Int64).unwrap().to_vec::<i64>().unwrap();
            let [addend, a, b] = [&addend, &a, &b].map(wide);
            for (at, got) in wide(&got).into_iter().enumerate() {
                let sum: i128 = (0..7).map(|k| i128::from(a[at / 3 * 7 + k]) * i128::from(b[k * 3 + at % 3])).sum();
                let want = i128::from(addend[at % 3]) * 3 + sum * 100;
                assert_eq!((want - i128::from(got)).rem_euclid(1 << bits), 0, "{dtype} {at}");
            }
        }
    }
}
