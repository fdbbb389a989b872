//! The functions of pointwise kernels over blocks of registers: what a loop is made of. It is the code that the kernel itself runs over
//! tensors, with the same conversions before and after it, so that both give the same bits.

use crate::numeric::dispatch::with_element;
use crate::numeric::map::{BlockFunction, Source, Store, convert_all, storing};
use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use tracefx_core::allocate::filled;
use tracefx_core::{Code, Diagnostic, Element, Result};
use tracefx_exec::Binding;

/// The function of an instruction.
pub(crate) struct Function {
    /// Which registers among the arguments it reads, at most [`MAX_READS`].
    pub(crate) reads: SmallVec<[usize; MAX_READS]>,
    function: Box<dyn Run>,
}

/// A function is of three operands at most.
pub(crate) const MAX_READS: usize = 3;

/// The most elements of a block: a dozen blocks of float32 fit the first-level cache beside what is read and written.
pub(crate) const BLOCK: usize = 512;

/// The bytes of a block of elements of any dtype.
const BLOCK_BYTES: usize = BLOCK * 16;

/// Where blocks begin. Blocks of float32 are then a multiple of half a page apart, and no load waits for a store that is near it in another page,
/// which the processor takes for the same place at first.
pub(crate) const ALIGNMENT: usize = 2048;

/// The bytes of the buffers that a function converts in.
pub(crate) const CONVERSION_BYTES: usize = 4 * BLOCK_BYTES;

impl Function {
    /// Whether it converts operands or results, which takes buffers.
    pub(crate) fn converts(&self) -> bool {
        self.function.converts()
    }

    /// Computes a block of `n` elements from those of the registers that it reads. `buffers` are [`CONVERSION_BYTES`], or none where it
    /// does not convert.
    pub(crate) fn run(&self, reads: &[&[u8]], n: usize, out: &mut [u8], buffers: &mut [u8]) {
        self.function.run(reads, n, out, buffers);
    }
}

/// Answers with a function of these operands.
///
/// # Errors
/// `NotImplemented` where an operand is no register, or of a dtype without arithmetic.
pub(super) fn give<F: Element, R: Element, const N: usize>(
    binding: &mut Binding,
    operands: [&Source; N],
    function: Box<dyn BlockFunction<F, R, N> + Send>,
) -> Result<()> {
    let dtype = binding.dtype();
    let mut reads = SmallVec::new();
    let mut problem = None;
    let operands = operands.map(|it| {
        operand(it, binding, &mut reads).unwrap_or_else(|it| {
            problem = Some(it);
            Operand::Register(0, None)
        })
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    let store = if dtype == R::DTYPE { None } else { Some(storing::<R>(dtype)?) };
    let function = Box::new(Typed::<F, R, N> { operands, function, store });
    binding.give(Box::new(Function { reads, function }));
    Ok(())
}

fn operand<F: Element>(it: &Source, binding: &Binding, reads: &mut SmallVec<[usize; MAX_READS]>) -> Result<Operand<F>> {
    match it {
        Source::Tensor(tensor) => {
            let what = "an operand is converted to another dtype first";
            let register = binding.register(tensor).ok_or_else(|| Diagnostic::new(Code::NotImplemented, what))?;
            let convert: Convert<F> = with_element!(tensor.dtype(), "arithmetic", T => {
                |from, to| convert_all::<T, F>(cast_slice(from), to)
            });
            reads.push(register);
            Ok(Operand::Register(reads.len() - 1, Some(convert).filter(|_| tensor.dtype() != F::DTYPE)))
        }
        Source::Scalar(number) => {
            let numbers = filled(F::from_scalar(*number), BLOCK + ALIGNMENT / size_of::<F>())?;
            let start = numbers.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT / size_of::<F>());
            Ok(Operand::Number(start, numbers))
        }
    }
}

type Convert<F> = fn(&[u8], &mut [F]);

enum Operand<F> {
    /// The elements of a register that is read, and how they are converted where they are of another type.
    Register(usize, Option<Convert<F>>),
    /// Where a block begins that is full of a number.
    Number(usize, Vec<F>),
}

struct Typed<F, R, const N: usize> {
    operands: [Operand<F>; N],
    function: Box<dyn BlockFunction<F, R, N> + Send>,
    /// How results are converted where they are of another dtype.
    store: Option<Store<R>>,
}

trait Run: Send + Sync {
    fn converts(&self) -> bool;

    fn run(&self, reads: &[&[u8]], n: usize, out: &mut [u8], buffers: &mut [u8]);
}

impl<F: Element, R: Element, const N: usize> Run for Typed<F, R, N> {
    fn converts(&self) -> bool {
        self.store.is_some() || self.operands.iter().any(|it| matches!(it, Operand::Register(_, Some(_))))
    }

    fn run(&self, reads: &[&[u8]], n: usize, out: &mut [u8], buffers: &mut [u8]) {
        let (result, mut rest) = buffers.split_at_mut(BLOCK_BYTES.min(buffers.len()));
        let mut blocks: [&[F]; N] = [&[]; N];
        for (block, operand) in blocks.iter_mut().zip(&self.operands) {
            *block = match operand {
                Operand::Register(it, None) => cast_slice(reads[*it]),
                Operand::Register(it, Some(convert)) => {
                    let (buffer, others) = std::mem::take(&mut rest).split_at_mut(BLOCK_BYTES);
                    rest = others;
                    let buffer = &mut cast_slice_mut(buffer)[..n];
                    convert(reads[*it], buffer);
                    buffer
                }
                Operand::Number(at, numbers) => &numbers[*at..*at + n],
            };
        }
        match self.store {
            None => self.function.run(blocks, cast_slice_mut(out)),
            Some(store) => {
                let result = &mut cast_slice_mut(result)[..n];
                self.function.run(blocks, result);
                store(result, out);
            }
        }
    }
}
