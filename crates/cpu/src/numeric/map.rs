//! The map engine: one loop for everything that computes each element from the elements at the same place.
//!
//! An operator is a scalar function. The engine broadcasts the inputs over the sizes of the result, folds dimensions
//! that lie behind each other in memory, and walks what is left in blocks, parts of the result at the same time. A
//! contiguous input whose elements are already of the type to compute in is borrowed; all others are gathered and
//! converted into a small buffer, so that the function always runs over plain slices, for which the compiler makes vector
//! code for each instruction set. Half-precision floats compute in float32 and all integers in int64, which wraps to the
//! same bits.

use crate::numeric::dispatch::with_element;
use crate::numeric::function;
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::parallel;
use crate::numeric::strided_iter::{Cursor, StridedIter, StridedLayout};
use smallvec::SmallVec;
use tracefx_core::{DType, DTypeKind, Element, Result, Scalar, StorageRead, Tensor};
use tracefx_exec::Target;
use tracefx_ops::{Args, Operand, Tags};

/// The number of elements that are converted at a time: a few buffers of these fit the first-level cache.
const BLOCK: usize = 1024;
/// Rows shorter than this are gathered, several to a block, where their elements are not one behind the other.
const SHORT_ROW: usize = 256;

/// An input of a map.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A tensor, which broadcasts.
    Tensor(Tensor),
    /// A number, which stands for a tensor that is full of it.
    Scalar(Scalar),
}

impl Source {
    /// An argument as an element of the dtype in which the operator computes. PyTorch converts every operand to that
    /// dtype first, so that an int8 tensor sees the number 300 as 44; but for the operators that keep their second one.
    pub(crate) fn of(args: &Args<'_, Tensor>, index: usize, dtype: DType) -> Result<Self> {
        let is_kept = index == 1
            && matches!(dtype, DType::Float16 | DType::BFloat16)
            && args.op.def.tags.has(Tags::KEEPS_NUMBERS);
        Ok(match args.operand(index)? {
            Operand::Scalar(scalar) if is_kept => Source::Scalar(scalar),
            Operand::Scalar(scalar) => Source::Scalar(rounded(args, scalar, dtype)?),
            Operand::Tensor(tensor) if is_kept && tensor.rank() == 0 => Source::Tensor(tensor.clone()),
            Operand::Tensor(_) => Self::unrounded(args, index, dtype)?,
        })
    }

    /// As [`Source::of`], but a number is converted to the type of the arithmetic alone: no integer wraps, and beside
    /// half-precision floats it keeps float32 precision.
    pub(crate) fn unrounded(args: &Args<'_, Tensor>, index: usize, dtype: DType) -> Result<Self> {
        Ok(match args.operand(index)? {
            Operand::Scalar(scalar) => Source::Scalar(scalar),
            // The engine converts to the types that it computes in by itself.
            Operand::Tensor(tensor) if matches!(dtype, DType::Float32 | DType::Float64 | DType::Int64) => {
                Source::Tensor(tensor.clone())
            }
            Operand::Tensor(tensor) => Source::Tensor(cast(tensor, dtype)?),
        })
    }
}

/// A number that is no operand, such as `alpha`: rounded to the dtype in which the operator computes where it does so.
pub(crate) fn number(args: &Args<'_, Tensor>, index: usize, dtype: DType) -> Result<Scalar> {
    let scalar = args.scalar(index)?;
    if let Scalar::Complex(it) = scalar
        && it.im != 0.0
        && !dtype.is_complex()
    {
        return Err(args.invalid(format!("value cannot be converted to type {} without overflow", dtype.name())));
    }
    if args.op.def.tags.has(Tags::ROUNDS_NUMBERS) { rounded(args, scalar, dtype) } else { Ok(scalar) }
}

fn rounded(args: &Args<'_, Tensor>, scalar: Scalar, dtype: DType) -> Result<Scalar> {
    with_element!(dtype, &args.op.name, T => Ok(T::from_scalar(scalar).to_scalar()))
}

/// The tensor with its elements converted; itself where they are of that dtype already.
pub(crate) fn cast(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    let out = Tensor::zeros(dtype, tensor.sizes())?;
    cast_into(tensor, &out)?;
    Ok(out)
}

/// Fills a row-major result with the converted elements of a tensor.
pub(crate) fn cast_into(tensor: &Tensor, out: &Tensor) -> Result<()> {
    convert(tensor, Target::Tensor(out))
}

/// The elements of a tensor, converted to the dtype of the target.
pub(crate) fn convert(tensor: &Tensor, out: Target<'_>) -> Result<()> {
    let source = &Source::Tensor(tensor.clone());
    // Every element is exact in one of these, so that it rounds once.
    match tensor.dtype().kind() {
        DTypeKind::Bool | DTypeKind::Int => map1::<i64, i64>(source, out, |it| it),
        DTypeKind::Float if tensor.dtype() != DType::Float64 => map1::<f32, f32>(source, out, |it| it),
        DTypeKind::Float => map1::<f64, f64>(source, out, |it| it),
        DTypeKind::Complex => map1::<[f64; 2], [f64; 2]>(source, out, |it| it),
    }
}

/// Computes `out[i] = f(a[i])`.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn map1<F: Element, R: Element>(
    a: &Source,
    out: Target<'_>,
    f: impl Fn(F) -> R + Send + Sync + 'static,
) -> Result<()> {
    compute([a], out, Box::new(Elementwise(f)))
}

/// Computes `out[i] = f(a[i], b[i])`.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn map2<F: Element, R: Element>(
    a: &Source,
    b: &Source,
    out: Target<'_>,
    f: impl Fn(F, F) -> R + Send + Sync + 'static,
) -> Result<()> {
    compute([a, b], out, Box::new(Elementwise(f)))
}

/// Computes `out[i] = f(a[i], b[i], c[i])`.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn map3<F: Element, R: Element>(
    a: &Source,
    b: &Source,
    c: &Source,
    out: Target<'_>,
    f: impl Fn(F, F, F) -> R + Send + Sync + 'static,
) -> Result<()> {
    compute([a, b, c], out, Box::new(Elementwise(f)))
}

/// Fills a tensor with `f(a[i])`, where the function is of this call alone.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn fill1<F: Element, R: Element>(a: &Source, out: &Tensor, f: impl Fn(F) -> R + Sync) -> Result<()> {
    map([a], out, &Elementwise(f))
}

/// Fills a tensor with `f(a[i], b[i])`, where the function is of this call alone.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn fill2<F: Element, R: Element>(
    a: &Source,
    b: &Source,
    out: &Tensor,
    f: impl Fn(F, F) -> R + Sync,
) -> Result<()> {
    map([a, b], out, &Elementwise(f))
}

struct Each1<'a, F, R, T>(&'a [F], &'a mut [R], T);

impl<F: Copy, R, T: Fn(F) -> R> Work for Each1<'_, F, R, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Each1(a, out, f) = self;
        out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a));
    }
}

struct Each2<'a, F, R, T>(&'a [F], &'a [F], &'a mut [R], T);

impl<F: Copy, R, T: Fn(F, F) -> R> Work for Each2<'_, F, R, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Each2(a, b, out, f) = self;
        out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = f(a, b));
    }
}

struct Each3<'a, F, R, T>(&'a [F], &'a [F], &'a [F], &'a mut [R], T);

impl<F: Copy, R, T: Fn(F, F, F) -> R> Work for Each3<'_, F, R, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Each3(a, b, c, out, f) = self;
        out.iter_mut().zip(a).zip(b).zip(c).for_each(|(((out, &a), &b), &c)| *out = f(a, b, c));
    }
}

/// What computes a block of the result from blocks of the inputs. It is no `Fn`: a pointer to one of these brings three more copies of its
/// loop, for those who call it by value or by unique reference.
pub(super) trait BlockFunction<F, R, const N: usize>: Sync {
    /// Computes as many elements as `out` has.
    fn run(&self, inputs: [&[F]; N], out: &mut [R]);
}

/// A function of the elements at one place.
struct Elementwise<T>(T);

impl<F: Copy, R, T: Fn(F) -> R + Sync> BlockFunction<F, R, 1> for Elementwise<T> {
    fn run(&self, [a]: [&[F]; 1], out: &mut [R]) {
        isa::run(Each1(a, out, &self.0));
    }
}

impl<F: Copy, R, T: Fn(F, F) -> R + Sync> BlockFunction<F, R, 2> for Elementwise<T> {
    fn run(&self, [a, b]: [&[F]; 2], out: &mut [R]) {
        isa::run(Each2(a, b, out, &self.0));
    }
}

impl<F: Copy, R, T: Fn(F, F, F) -> R + Sync> BlockFunction<F, R, 3> for Elementwise<T> {
    fn run(&self, [a, b, c]: [&[F]; 3], out: &mut [R]) {
        isa::run(Each3(a, b, c, out, &self.0));
    }
}

/// Fills the tensor, or gives the function.
fn compute<F: Element, R: Element, const N: usize>(
    inputs: [&Source; N],
    out: Target<'_>,
    body: Box<dyn BlockFunction<F, R, N> + Send>,
) -> Result<()> {
    match out {
        Target::Tensor(out) => map(inputs, out, &*body),
        Target::Function(binding) => function::give(binding, inputs, body),
    }
}

/// Gives `body` the inputs and the result block by block. The result is row-major and of a storage of its own.
///
/// The body is called through a pointer, once per block, so that the walk and the conversions are compiled once per pair
/// of types and not once per operator.
fn map<F: Element, R: Element, const N: usize>(
    inputs: [&Source; N],
    out: &Tensor,
    body: &dyn BlockFunction<F, R, N>,
) -> Result<()> {
    let operands: SmallVec<[_; 3]> = inputs
        .iter()
        .map(|it| match it {
            Source::Tensor(tensor) => StridedLayout::new(tensor),
            Source::Scalar(_) => StridedLayout { sizes: &[], strides: &[], offset: 0 },
        })
        .collect();
    let walk = StridedIter::new(out.sizes(), &operands);
    let sources = inputs;
    let mut inputs = SmallVec::<[Input<'_, F>; 3]>::new();
    for (k, source) in sources.iter().enumerate() {
        inputs.push(Input::new(source, walk.is_linear(k))?);
    }
    let store = storing::<R>(out.dtype())?;
    let (size, is_direct) = (out.dtype().size(), out.dtype() == R::DTYPE);
    let mut guard = out.storage().write()?;
    let bytes = &mut guard.bytes_mut()[..out.numel() * size];
    parallel::parts_mut(bytes, parallel::GRAIN * size, |at, part| {
        let mut cursor = walk.cursor(at / size);
        let mut buffers: [Buffer<F>; N] = std::array::from_fn(|_| Buffer { elements: Vec::new(), repeated: None });
        let mut converted = vec![R::zeroed(); if is_direct { 0 } else { BLOCK }];
        let is_short = walk.row_len() < SHORT_ROW;
        let mut rest = part;
        while !rest.is_empty() {
            let n =
                BLOCK.min(rest.len() / size).min(if is_short { usize::MAX } else { walk.row_len() - cursor.column });
            let (block, others) = rest.split_at_mut(n * size);
            rest = others;
            for (k, (input, buffer)) in inputs.iter().zip(&mut buffers).enumerate() {
                input.prepare(buffer, (&walk, k), &cursor, n);
            }
            let mut k = 0;
            let blocks = buffers.each_ref().map(|buffer| {
                k += 1;
                inputs[k - 1].block(buffer, (&walk, k - 1), &cursor, n)
            });
            if is_direct {
                body.run(blocks, bytemuck::cast_slice_mut(block));
            } else {
                body.run(blocks, &mut converted[..n]);
                store(&converted[..n], block);
            }
            walk.advance(&mut cursor, n);
        }
    });
    Ok(())
}

/// Fills a row-major result with these elements, converted to its dtype.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn store<R: Element>(elements: &[R], out: &Tensor) -> Result<()> {
    storing::<R>(out.dtype())?(
        elements,
        &mut out.storage().write()?.bytes_mut()[..elements.len() * out.dtype().size()],
    );
    Ok(())
}

pub(super) type Store<R> = fn(&[R], &mut [u8]);

/// What converts elements to those of a dtype.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn storing<R: Element>(dtype: DType) -> Result<Store<R>> {
    with_element!(dtype, "converting", T => Ok(|from, to| convert_all::<R, T>(from, bytemuck::cast_slice_mut(to))))
}

/// Converts elements that lie one behind the other.
pub(crate) fn convert_all<T: Element, U: Element>(from: &[T], to: &mut [U]) {
    each(from, to, U::from_element::<T>);
}

/// Computes `to[i] = f(from[i])`.
pub(crate) fn each<F: Copy, R>(from: &[F], to: &mut [R], f: impl Fn(F) -> R) {
    isa::run(Each1(from, to, f));
}

/// Copies elements of a storage that lie `stride` apart, converting them.
pub(crate) fn gather<T: Element, F: Element>(from: &[T], at: usize, stride: usize, to: &mut [F]) {
    match stride {
        0 => to.fill(F::from_element(from[at])),
        1 => convert_all(&from[at..at + to.len()], to),
        _ => to.iter_mut().zip(from[at..].iter().step_by(stride)).for_each(|(to, &it)| *to = F::from_element(it)),
    }
}

type Load<F> = fn(&StorageRead<'_>, usize, usize, &mut [F]);

/// One input of a map.
struct Input<'a, F> {
    elements: Elements<'a, F>,
    /// Whether the elements lie in the order of the result without gaps.
    is_linear: bool,
}

enum Elements<'a, F> {
    Number(F),
    /// Elements that need no conversion where the last one is true.
    Stored(StorageRead<'a>, Load<F>, bool),
}

/// The elements of a block of an input that cannot be borrowed.
struct Buffer<F> {
    elements: Vec<F>,
    /// The position whose one value fills the whole buffer.
    repeated: Option<usize>,
}

impl<'a, F: Element> Input<'a, F> {
    fn new(source: &'a Source, is_linear: bool) -> Result<Self> {
        let elements = match source {
            Source::Tensor(tensor) => {
                let load: Load<F> = with_element!(tensor.dtype(), "arithmetic", T => {
                    |from, at, stride, to| gather(from.elements::<T>(), at, stride, to)
                });
                Elements::Stored(tensor.storage().read(), load, tensor.dtype() == F::DTYPE)
            }
            Source::Scalar(scalar) => Elements::Number(F::from_scalar(*scalar)),
        };
        Ok(Input { elements, is_linear })
    }

    /// Whether the `n` elements from here on can be borrowed.
    fn is_borrowed(&self, (walk, k): (&StridedIter, usize), cursor: &Cursor, n: usize) -> bool {
        let is_row = walk.row_stride(k) == 1 && cursor.column + n <= walk.row_len();
        matches!(self.elements, Elements::Stored(_, _, true)) && (self.is_linear || is_row)
    }

    /// Makes sure that the buffer holds the `n` elements from here on, unless they can be borrowed.
    fn prepare(&self, buffer: &mut Buffer<F>, (walk, k): (&StridedIter, usize), cursor: &Cursor, n: usize) {
        if self.is_borrowed((walk, k), cursor, n) {
            return;
        }
        buffer.elements.resize(BLOCK, F::zeroed());
        let (source, load) = match &self.elements {
            Elements::Number(number) => {
                if buffer.repeated.is_none() {
                    buffer.elements.fill(*number);
                    buffer.repeated = Some(0);
                }
                return;
            }
            Elements::Stored(source, load, _) => (source, load),
        };
        let stride = walk.row_stride(k);
        if stride == 0 && cursor.column + n <= walk.row_len() {
            // A repeated value fills the buffer for all blocks that follow.
            if buffer.repeated != Some(cursor.at[k]) {
                load(source, cursor.at[k], 0, &mut buffer.elements);
                buffer.repeated = Some(cursor.at[k]);
            }
            return;
        }
        buffer.repeated = None;
        if self.is_linear {
            return load(source, cursor.at[k] + cursor.column * stride, stride, &mut buffer.elements[..n]);
        }
        let mut cursor = cursor.clone();
        let mut filled = 0;
        while filled < n {
            let len = (walk.row_len() - cursor.column).min(n - filled);
            let at = cursor.at[k] + cursor.column * stride;
            load(source, at, stride, &mut buffer.elements[filled..filled + len]);
            filled += len;
            walk.advance(&mut cursor, len);
        }
    }

    /// The `n` elements from here on.
    fn block<'b>(
        &'b self,
        buffer: &'b Buffer<F>,
        (walk, k): (&StridedIter, usize),
        cursor: &Cursor,
        n: usize,
    ) -> &'b [F] {
        match &self.elements {
            Elements::Stored(source, _, _) if self.is_borrowed((walk, k), cursor, n) => {
                let at = cursor.at[k] + cursor.column * walk.row_stride(k);
                &source.elements::<F>()[at..at + n]
            }
            Elements::Stored(..) | Elements::Number(_) => &buffer.elements[..n],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::division::Division;
    use crate::numeric::elementary::{Elementary, Stepwise};
    use crate::numeric::number::{Number, Real};
    use proptest::prelude::*;
    use tracefx_core::{bf16, f16};

    #[test]
    fn elements_convert_and_broadcast_across_blocks() {
        let n = BLOCK * 2 + 3;
        let a = Tensor::from_slice(&(0..n as i32).collect::<Vec<_>>(), &[n]).unwrap();
        let b = Tensor::from_slice(&[0.5f64], &[1]).unwrap();
        let out = Tensor::zeros(DType::Float64, &[n]).unwrap();
        map2::<f64, f64>(&Source::Tensor(a), &Source::Tensor(b), Target::Tensor(&out), |a, b| a + b).unwrap();
        assert_eq!(out.to_vec::<f64>().unwrap(), (0..n).map(|it| it as f64 + 0.5).collect::<Vec<_>>());
    }

    const SPECIAL: [f32; 12] =
        [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-39, f32::MAX, 0.1, 300.0];

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    /// A tensor that broadcasts to the sizes: of the dimensions where a bit of `kept` is set, in memory in the order of
    /// `keys`, with gaps.
    fn strided(dtype: DType, sizes: &[usize], kept: u8, keys: &[u8], gap: usize) -> Tensor {
        let sizes: Vec<usize> =
            sizes.iter().enumerate().map(|(dim, &it)| if kept >> dim & 1 == 1 { it } else { 1 }).collect();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&dim| keys[dim]);
        let (mut strides, mut stride) = (vec![0; sizes.len()], gap);
        for dim in order {
            strides[dim] = stride;
            stride *= sizes[dim].max(1);
        }
        let numbers: Vec<f32> = (0..stride + 3).map(|it| SPECIAL[it * 7 % 12] + (it / 12 % 5) as f32).collect();
        let flat = cast(&Tensor::from_slice(&numbers, &[numbers.len()]).unwrap(), dtype).unwrap();
        flat.as_strided(&sizes, &strides, 2).unwrap()
    }

    proptest! {
        #[test]
        fn every_element_comes_from_its_place(
            sizes in prop::collection::vec(prop_oneof![0..5usize, Just(33), Just(300)], 0..4),
            kept: [u8; 2],
            keys: [[u8; 3]; 2],
            gaps in [1..3usize, 1..3usize],
            dtypes in [0..4usize, 0..4usize, 0..4usize],
        ) {
            prop_assume!(sizes.iter().product::<usize>() < 40_000);
            let dtype = |it: usize| [DType::Float32, DType::Float16, DType::Int8, DType::Int64][it];
            let [a, b] = [0, 1].map(|it| strided(dtype(dtypes[it]), &sizes, kept[it], &keys[it], gaps[it]));
            let out = Tensor::zeros(dtype(dtypes[2]), &sizes).unwrap();
            map2::<f32, f32>(&Source::Tensor(a.clone()), &Source::Tensor(b.clone()), Target::Tensor(&out), |a, b| a - b).unwrap();
            let expanded = |it: &Tensor| -> Vec<f32> {
                let strides: Vec<usize> =
                    (0..sizes.len()).map(|dim| if it.sizes()[dim] == 1 { 0 } else { it.strides()[dim] }).collect();
                let numbers = cast(&it.as_strided(&[it.storage().len() / it.dtype().size()], &[1], 0).unwrap(), DType::Float32);
                let numbers = numbers.unwrap().to_vec::<f32>().unwrap();
                if sizes.contains(&0) {
                    return Vec::new();
                }
                it.as_strided(&sizes, &strides, it.offset()).unwrap().offsets().map(|at| numbers[at]).collect()
            };
            let differences: Vec<f32> = expanded(&a).iter().zip(expanded(&b)).map(|(a, b)| a - b).collect();
            let expected = Tensor::zeros(out.dtype(), &sizes).unwrap();
            store(&differences, &expected).unwrap();
            let bits = |it: &Tensor| cast(it, DType::Float32).unwrap().to_vec::<f32>().unwrap();
            prop_assert!(bits(&out).into_iter().zip(bits(&expected)).all(|(a, b)| same(a, b)));
        }

        #[test]
        fn instruction_sets_agree(numbers in prop::collection::vec(prop_oneof![any::<f32>(), prop::sample::select(&SPECIAL[..])], 0..100)) {
            let other: Vec<f32> = numbers.iter().rev().copied().collect();
            fn agree(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
                let (mut best, mut portable) = (vec![0.0; a.len()], vec![0.0; a.len()]);
                isa::run(Each2(a, b, &mut best, &f));
                Each2(a, b, &mut portable, &f).run::<isa::Portable>();
                assert!(best.iter().zip(&portable).all(|(&a, &b)| same(a, b)), "{a:?} and {b:?}: {best:?} is not {portable:?}");
            }
            agree(&numbers, &other, |a, b| a + b);
            agree(&numbers, &other, |a, b| a * b - a);
            agree(&numbers, &other, |a, b| a / b);
            agree(&numbers, &other, Real::larger);
            agree(&numbers, &other, |a, _| Elementary::exp(a));
            agree(&numbers, &other, |a, _| Elementary::exp_m1(a));
            agree(&numbers, &other, |a, _| Elementary::ln(a));
            agree(&numbers, &other, |a, _| Elementary::tanh::<Stepwise>(a));
            agree(&numbers, &other, |a, _| Elementary::erf::<Stepwise>(a));
            agree(&numbers, &other, |a, _| Elementary::softplus(a));
            agree(&numbers, &other, |a, _| f16::from_element(a).to_f32());
            agree(&numbers, &other, |a, _| bf16::from_element(a).to_f32());
            agree(&numbers, &other, |a, _| i8::from_element(a).to_f32());
            agree(&numbers, &other, |a, _| i64::from_element(a) as f32);
        }

        #[test]
        fn integers_wrap_alike(numbers in prop::collection::vec(prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), -2..2i64], 0..100)) {
            let (mut best, mut portable) = (vec![0; numbers.len()], vec![0; numbers.len()]);
            for f in [Number::add, Number::mul, |a: i64, b: i64| if b == 0 { 0 } else { a.floor_div(b) }] {
                isa::run(Each2(&numbers, &numbers[..], &mut best, f));
                Each2(&numbers, &numbers[..], &mut portable, f).run::<isa::Portable>();
                prop_assert_eq!(&best, &portable);
            }
        }
    }
}
