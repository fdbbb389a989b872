//! The map engine: one loop for everything that computes each element from the elements at the same place.
//!
//! An operator is a scalar function. The engine broadcasts the inputs over the sizes of the result, folds dimensions
//! that lie behind each other in memory, and walks what is left row by row in blocks. A contiguous input whose elements
//! are already of the type to compute in is borrowed; all others are gathered and converted into a small buffer, so
//! that the function always runs over plain slices, which the compiler vectorises. Half-precision floats compute in
//! float32 and all integers in int64, which wraps to the same bits.

use smallvec::SmallVec;
use tracefx_core::{DType, DTypeKind, Diagnostic, Dims, Element, Result, Scalar, StorageRead, Tensor, with_element};
use tracefx_ops::{Args, Operand};

/// The number of elements that are converted at a time: a few buffers of these fit the first-level cache.
const BLOCK: usize = 1024;

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
    /// dtype first, so that an int8 tensor sees the number 300 as 44.
    pub(crate) fn of(args: &Args<'_, Tensor>, index: usize, dtype: DType) -> Result<Self> {
        Ok(match Self::unrounded(args, index, dtype)? {
            Source::Tensor(tensor) => Source::Tensor(tensor),
            Source::Scalar(scalar) => Source::Scalar(with_element!(dtype, T => T::from_scalar(scalar).to_scalar(),
                else return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))),
        })
    }

    /// As [`Source::of`], but a number keeps float32 precision in the arithmetic of half-precision floats.
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
    let source = &Source::Tensor(tensor.clone());
    // Every element is exact in one of these, so that it rounds once.
    match tensor.dtype().kind() {
        DTypeKind::Bool | DTypeKind::Int => map1::<i64, i64>(source, out, |it| it),
        DTypeKind::Float => map1::<f64, f64>(source, out, |it| it),
        DTypeKind::Complex => map1::<[f64; 2], [f64; 2]>(source, out, |it| it),
    }
}

/// Computes `out[i] = f(a[i])`.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn map1<F: Element, R: Element>(a: &Source, out: &Tensor, f: impl Fn(F) -> R) -> Result<()> {
    map([a], out, &mut |[a], out| {
        for (out, &a) in out.iter_mut().zip(a) {
            *out = f(a);
        }
    })
}

/// Computes `out[i] = f(a[i], b[i])`.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn map2<F: Element, R: Element>(a: &Source, b: &Source, out: &Tensor, f: impl Fn(F, F) -> R) -> Result<()> {
    map([a, b], out, &mut |[a, b], out| {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = f(a, b);
        }
    })
}

/// Computes `out[i] = f(a[i], b[i], c[i])`.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn map3<F: Element, R: Element>(
    a: &Source,
    b: &Source,
    c: &Source,
    out: &Tensor,
    f: impl Fn(F, F, F) -> R,
) -> Result<()> {
    map([a, b, c], out, &mut |[a, b, c], out| {
        for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
            *out = f(a, b, c);
        }
    })
}

/// What computes a block of the result from blocks of the inputs.
type Body<'a, F, R, const N: usize> = dyn FnMut([&[F]; N], &mut [R]) + 'a;

/// Gives `body` the inputs and the result block by block. The result is row-major and of a storage of its own.
///
/// The body is called through a pointer, once per block, so that the walk and the conversions are compiled once per pair
/// of types and not once per operator.
fn map<F: Element, R: Element, const N: usize>(
    inputs: [&Source; N],
    out: &Tensor,
    body: &mut Body<'_, F, R, N>,
) -> Result<()> {
    let operands: SmallVec<[_; 3]> = inputs
        .iter()
        .map(|it| match it {
            Source::Tensor(tensor) => Strided::new(tensor),
            Source::Scalar(_) => Strided { sizes: &[], strides: &[], offset: 0 },
        })
        .collect();
    let walk = Walk::new(out.sizes(), &operands);
    let mut inputs: SmallVec<[Input<'_, F>; 3]> = inputs.iter().map(|&it| Input::new(it)).collect::<Result<_>>()?;
    let inputs: &mut [Input<'_, F>; N] = inputs.as_mut_slice().try_into().expect("there is one input per operand");
    let mut output = out.storage().write();
    let mut converted: Vec<R> = Vec::new();
    let row_len = walk.row_len();
    walk.for_each_row(&mut |row, offsets| {
        for start in (0..row_len).step_by(BLOCK) {
            let n = BLOCK.min(row_len - start);
            let mut k = 0;
            let blocks = inputs.each_mut().map(|input| {
                let stride = walk.row_stride(k);
                k += 1;
                input.block(offsets[k - 1] + start * stride, stride, n)
            });
            let at = row * row_len + start;
            if out.dtype() == R::DTYPE {
                body(blocks, &mut output.elements_mut::<R>()[at..at + n]);
            } else {
                converted.resize(n, R::from_scalar(Scalar::Int(0)));
                body(blocks, &mut converted);
                with_element!(out.dtype(), T => {
                    let to = &mut output.elements_mut::<T>()[at..at + n];
                    to.iter_mut().zip(&converted).for_each(|(to, &it)| *to = convert(it));
                }, else return Err(Diagnostic::unsupported_dtype(out.dtype(), "converting")));
            }
        }
        Ok(())
    })
}

/// Fills a row-major result with these elements, converted to its dtype.
///
/// # Errors
/// `NotImplemented` for dtypes without arithmetic.
pub(crate) fn store<R: Element>(elements: &[R], out: &Tensor) -> Result<()> {
    with_element!(out.dtype(), T => {
        let mut guard = out.storage().write();
        guard.elements_mut::<T>().iter_mut().zip(elements).for_each(|(to, &it)| *to = convert(it));
        Ok(())
    }, else Err(Diagnostic::unsupported_dtype(out.dtype(), "converting")))
}

/// The element as one of another type, as PyTorch converts on the CPU.
#[inline]
pub(crate) fn convert<T: Element, U: Element>(element: T) -> U {
    U::from_scalar(element.to_scalar())
}

/// Copies elements of a storage that lie `stride` apart, converting them.
pub(crate) fn gather<T: Element, F: Element>(from: &[T], at: usize, stride: usize, to: &mut [F]) {
    match stride {
        0 => to.fill(convert(from[at])),
        1 => to.iter_mut().zip(&from[at..]).for_each(|(to, &it)| *to = convert(it)),
        _ => to.iter_mut().zip(from[at..].iter().step_by(stride)).for_each(|(to, &it)| *to = convert(it)),
    }
}

type Load<F> = fn(&StorageRead<'_>, usize, usize, &mut [F]);

/// One input while a map runs.
struct Input<'a, F> {
    source: Option<(StorageRead<'a>, Load<F>)>,
    /// Whether the elements need no conversion.
    is_direct: bool,
    buffer: Vec<F>,
    /// The position whose one value fills the whole buffer.
    repeated: Option<usize>,
}

impl<'a, F: Element> Input<'a, F> {
    fn new(source: &'a Source) -> Result<Self> {
        match source {
            Source::Tensor(tensor) => {
                let load: Load<F> = with_element!(tensor.dtype(), T => {
                    |from, at, stride, to| gather(from.elements::<T>(), at, stride, to)
                }, else return Err(Diagnostic::unsupported_dtype(tensor.dtype(), "arithmetic")));
                let source = Some((tensor.storage().read(), load));
                Ok(Input { source, is_direct: tensor.dtype() == F::DTYPE, buffer: Vec::new(), repeated: None })
            }
            Source::Scalar(scalar) => {
                let buffer = vec![F::from_scalar(*scalar); BLOCK];
                Ok(Input { source: None, is_direct: false, buffer, repeated: None })
            }
        }
    }

    /// The `n` elements from this position of the storage on that lie `stride` apart.
    fn block(&mut self, at: usize, stride: usize, n: usize) -> &[F] {
        let Some((source, load)) = &self.source else { return &self.buffer[..n] };
        if self.is_direct && stride == 1 {
            return &source.elements::<F>()[at..at + n];
        }
        if stride == 0 && self.repeated == Some(at) {
            return &self.buffer[..n];
        }
        // A repeated value fills the buffer for all blocks that follow.
        self.repeated = (stride == 0).then_some(at);
        self.buffer.resize(BLOCK, F::from_scalar(Scalar::Int(0)));
        let filled = if stride == 0 { BLOCK } else { n };
        load(source, at, stride, &mut self.buffer[..filled]);
        &self.buffer[..n]
    }
}

/// A strided tensor as a [`Walk`] sees it.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub(crate) sizes: &'a [usize],
    pub(crate) strides: &'a [usize],
    pub(crate) offset: usize,
}

impl<'a> Strided<'a> {
    pub(crate) fn new(tensor: &'a Tensor) -> Self {
        Strided { sizes: tensor.sizes(), strides: tensor.strides(), offset: tensor.offset() }
    }
}

/// The way through several strided tensors at once, in the row-major order of the sizes that they broadcast to.
pub(crate) struct Walk {
    /// The sizes, as few as the strides allow; the last is the length of a row. Never empty.
    sizes: Dims,
    /// For each tensor its position at the start, and one stride per size.
    tensors: SmallVec<[(usize, Dims); 3]>,
}

impl Walk {
    /// A walk over tensors that broadcast to these sizes.
    pub(crate) fn new(sizes: &[usize], tensors: &[Strided<'_>]) -> Self {
        let mut walk =
            Walk { sizes: Dims::new(), tensors: tensors.iter().map(|it| (it.offset, Dims::new())).collect() };
        for (dim, &size) in sizes.iter().enumerate() {
            if size == 1 {
                continue;
            }
            let strides: SmallVec<[usize; 3]> = tensors
                .iter()
                .map(|it| match (dim + it.sizes.len()).checked_sub(sizes.len()) {
                    Some(own) if it.sizes[own] != 1 => it.strides[own],
                    Some(_) | None => 0,
                })
                .collect();
            // Two dimensions are one where every tensor goes through them without a jump.
            let folds = walk
                .tensors
                .iter()
                .zip(&strides)
                .all(|((_, outer), &inner)| outer.last().is_some_and(|&outer| outer == inner * size));
            match walk.sizes.last_mut() {
                Some(last) if folds => {
                    *last *= size;
                    for ((_, of_tensor), stride) in walk.tensors.iter_mut().zip(strides) {
                        *of_tensor.last_mut().expect("there is a stride for every size") = stride;
                    }
                }
                Some(_) | None => {
                    walk.sizes.push(size);
                    walk.tensors.iter_mut().zip(strides).for_each(|((_, of_tensor), stride)| of_tensor.push(stride));
                }
            }
        }
        if walk.sizes.is_empty() {
            walk.sizes.push(1);
            walk.tensors.iter_mut().for_each(|(_, strides)| strides.push(0));
        }
        walk
    }

    /// The number of elements in a row.
    pub(crate) fn row_len(&self) -> usize {
        self.sizes[self.sizes.len() - 1]
    }

    /// How far apart the elements of a row lie in this tensor.
    pub(crate) fn row_stride(&self, tensor: usize) -> usize {
        self.tensors[tensor].1[self.sizes.len() - 1]
    }

    /// Gives `body` the number of each row and where it starts in each tensor.
    pub(crate) fn for_each_row(&self, body: &mut dyn FnMut(usize, &[usize]) -> Result<()>) -> Result<()> {
        let outer = &self.sizes[..self.sizes.len() - 1];
        if self.sizes.contains(&0) {
            return Ok(());
        }
        let mut index: Dims = smallvec::smallvec![0; outer.len()];
        let mut at: SmallVec<[usize; 3]> = self.tensors.iter().map(|(offset, _)| *offset).collect();
        for row in 0..outer.iter().product() {
            body(row, &at)?;
            for dim in (0..outer.len()).rev() {
                index[dim] += 1;
                if index[dim] < outer[dim] {
                    at.iter_mut().zip(&self.tensors).for_each(|(at, (_, strides))| *at += strides[dim]);
                    break;
                }
                index[dim] = 0;
                at.iter_mut().zip(&self.tensors).for_each(|(at, (_, strides))| *at -= strides[dim] * (outer[dim] - 1));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sizes: &[usize], tensors: &[Strided<'_>]) -> (usize, Vec<Vec<usize>>) {
        let walk = Walk::new(sizes, tensors);
        let mut res = Vec::new();
        walk.for_each_row(&mut |_, at| {
            res.push(at.to_vec());
            Ok(())
        })
        .unwrap();
        (walk.row_len(), res)
    }

    #[test]
    fn contiguous_tensors_are_one_row() {
        let it = Strided { sizes: &[2, 3, 4], strides: &[12, 4, 1], offset: 5 };
        assert_eq!(rows(&[2, 3, 4], &[it, it]), (24, vec![vec![5, 5]]));
    }

    #[test]
    fn a_broadcast_tensor_starts_again_at_each_row() {
        let whole = Strided { sizes: &[2, 3], strides: &[3, 1], offset: 0 };
        let row = Strided { sizes: &[3], strides: &[1], offset: 7 };
        assert_eq!(rows(&[2, 3], &[whole, row]), (3, vec![vec![0, 7], vec![3, 7]]));
    }

    #[test]
    fn sizes_of_one_and_no_sizes_walk_once() {
        let it = Strided { sizes: &[1, 1], strides: &[9, 9], offset: 2 };
        assert_eq!(rows(&[1, 1], &[it]), (1, vec![vec![2]]));
        assert_eq!(rows(&[], &[Strided { sizes: &[], strides: &[], offset: 4 }]), (1, vec![vec![4]]));
    }

    #[test]
    fn an_empty_size_walks_nowhere() {
        let it = Strided { sizes: &[2, 0], strides: &[1, 1], offset: 99 };
        assert_eq!(rows(&[2, 0], &[it]).1, Vec::<Vec<usize>>::new());
    }

    #[test]
    fn elements_convert_and_broadcast_across_blocks() {
        let n = BLOCK * 2 + 3;
        let a = Tensor::from_slice(&(0..n as i32).collect::<Vec<_>>(), &[n]).unwrap();
        let b = Tensor::from_slice(&[0.5f64], &[1]).unwrap();
        let out = Tensor::zeros(DType::Float64, &[n]).unwrap();
        map2::<f64, f64>(&Source::Tensor(a), &Source::Tensor(b), &out, |a, b| a + b).unwrap();
        assert_eq!(out.to_vec::<f64>().unwrap(), (0..n).map(|it| it as f64 + 0.5).collect::<Vec<_>>());
    }
}
