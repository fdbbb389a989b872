//! Loops of pointwise operators: a vector machine, which runs one instruction at a time over blocks that stay in the cache of the first level.
//!
//! What an instruction computes is its kernel's function ([`Function`]). A register is a block in an input that lies without gaps, in an
//! output, or in a buffer; buffers are used again as soon as nothing reads them. Sizes and strides are those of the plan, so that all of
//! this is decided once.

use crate::numeric::function::{ALIGNMENT, BLOCK, CONVERSION_BYTES, Function, MAX_READS};
use crate::numeric::isa::prefetch;
use crate::numeric::strided_copy::bits;
use crate::numeric::strided_iter::{Cursor, StridedIter, StridedLayout};
use crate::numeric::{parallel, scratch};
use bytemuck::Pod;
use smallvec::{SmallVec, smallvec};
use std::mem::take;
use tracefx_core::allocate::{collected, filled};
use tracefx_core::{Code, DType, Diagnostic, Result, StorageRead, Tensor};
use tracefx_exec::{Executor, PreparedFused, element_function};
use tracefx_plan::{Fused, Instruction, Loop};

/// Of loops over more elements than this, the next block comes into the cache while one is computed.
const LONG: usize = 1 << 16;
/// Rows shorter than this are gathered, several to a block.
const SHORT_ROW: usize = 256;

/// What runs a loop.
///
/// # Errors
/// `NotImplemented` for other steps, and for operators that have no function of single elements.
pub(crate) fn prepare(step: &Fused<Tensor>, executor: Executor<'_>) -> Result<Box<PreparedFused>> {
    let machine = Machine::new(of(step)?, executor)?;
    Ok(Box::new(move |step| machine.run(of(step)?)))
}

fn of(step: &Fused<Tensor>) -> Result<&Loop<Tensor>> {
    match step {
        Fused::Loop(it) => Ok(it),
        Fused::Attention(_)
        | Fused::Convolution(_)
        | Fused::DequantizedProduct(_)
        | Fused::Gather(_)
        | Fused::Norm(_)
        | Fused::Pool(_)
        | Fused::Product(_)
        | Fused::QuantizedConvolution(_) => {
            let what = format!("there is no kernel for a fused {}", step.name());
            Err(Diagnostic::new(Code::NotImplemented, what))
        }
    }
}

/// Where the block of a register is.
#[derive(Clone, Copy)]
enum Place {
    /// In the tensor of an input.
    Input(usize),
    /// In the tensor of an output, or behind those in a buffer.
    Slot(usize),
}

/// The block of a register: where it is, and the size of an element.
type Block = (Place, usize);

struct Machine {
    /// Whether it is one instruction on one block, which lies in memory as it is read and written.
    is_direct: bool,
    walk: StridedIter,
    n_elements: usize,
    inputs: Vec<Input>,
    code: Vec<Step>,
    /// The sizes of the elements of the outputs.
    outputs: Vec<usize>,
    /// What is copied to an output in the end.
    copies: Vec<(Block, usize)>,
    /// The bytes of each buffer.
    buffers: Vec<usize>,
}

/// An instruction: what it computes, of which blocks, in which slot, and the size of an element there.
struct Step {
    function: Function,
    reads: [Block; MAX_READS],
    slot: usize,
    size: usize,
}

struct Input {
    size: usize,
    /// Whether the elements lie in the order of the loop without gaps.
    is_linear: bool,
    /// The slot for blocks that are gathered.
    slot: usize,
}

/// What an input is read of.
enum Source<'a> {
    Storage(StorageRead<'a>),
    /// The output that is written where the input was.
    Output(usize),
}

/// The blocks of the registers.
struct Blocks<'a, 'b> {
    n: usize,
    /// Nothing of an input that is in its slot.
    read: &'a [Option<&'a [u8]>],
    inputs: &'a [Input],
    slots: &'a mut [&'b mut [u8]],
}

impl Machine {
    fn new(it: &Loop<Tensor>, executor: Executor<'_>) -> Result<Self> {
        let dtypes = it.dtypes(&Tensor::dtype)?;
        let layouts: Vec<_> = it.inputs.iter().map(StridedLayout::new).collect();
        let walk = StridedIter::new(&it.sizes, &layouts);
        let mut buffers = Buffers::behind(it.outputs.len());
        let input = |(at, tensor): (usize, &Tensor)| {
            let size = tensor.dtype().size();
            Input { size, is_linear: walk.is_linear(at), slot: buffers.take(size) }
        };
        let inputs: Vec<Input> = it.inputs.iter().enumerate().map(input).collect();
        // An instruction writes to the first output that stores its result.
        let mut stored: Vec<Option<usize>> = filled(None, dtypes.len())?;
        for (at, (register, _)) in it.outputs.iter().enumerate() {
            stored[register.0 as usize].get_or_insert(at);
        }
        let mut last_reads: Vec<usize> = (0..dtypes.len()).map(|it| it.saturating_sub(inputs.len())).collect();
        for (at, instruction) in it.code.iter().enumerate() {
            instruction.registers().for_each(|it| last_reads[it.0 as usize] = at);
        }
        let mut blocks: Vec<Block> = inputs.iter().enumerate().map(|(at, it)| (Place::Input(at), it.size)).collect();
        let mut code = Vec::new();
        for (at, instruction) in it.code.iter().enumerate() {
            let (function, size) = (function(instruction, &dtypes, executor)?, instruction.dtype.size());
            let operands: SmallVec<[Block; 3]> = instruction.registers().map(|it| blocks[it.0 as usize]).collect();
            let mut reads = [(Place::Input(0), 0); MAX_READS];
            reads.iter_mut().zip(&function.reads).for_each(|(read, at)| *read = operands[*at]);
            let slot = stored[blocks.len()].unwrap_or_else(|| buffers.take(size));
            blocks.push((Place::Slot(slot), size));
            code.push(Step { function, reads, slot, size });
            for (register, _) in last_reads.iter().enumerate().take(blocks.len()).filter(|(_, last)| **last == at) {
                if let (Place::Slot(slot), _) = blocks[register] {
                    buffers.give_back(slot);
                }
            }
        }
        let copies = it.outputs.iter().enumerate().filter_map(|(at, (register, _))| {
            let block = blocks[register.0 as usize];
            Some((block, at)).filter(|_| !matches!(block.0, Place::Slot(slot) if slot == at))
        });
        let copies: Vec<(Block, usize)> = copies.collect();
        let outputs = it.outputs.iter().map(|(_, it)| it.dtype().size()).collect();
        let n_elements = it.outputs.first().map_or(0, |(_, it)| it.numel());
        let is_direct = match (&code[..], &it.outputs[..]) {
            ([only], [_]) if copies.is_empty() => {
                !only.function.converts()
                    && (n_elements == 1 || n_elements <= BLOCK && inputs.iter().all(|it| it.is_linear))
            }
            _ => false,
        };
        Ok(Machine { is_direct, walk, n_elements, inputs, code, outputs, copies, buffers: buffers.sizes })
    }

    fn run(&self, it: &Loop<Tensor>) -> Result<()> {
        if self.n_elements == 0 {
            return Ok(());
        }
        if let (true, [(_, output)]) = (self.is_direct, &it.outputs[..])
            && !it.inputs.iter().any(|it| it.storage().is_same(output.storage()))
        {
            return self.run_direct(it, output);
        }
        let mut sources = SmallVec::<[Source<'_>; 8]>::new();
        for input in &it.inputs {
            let own = it.outputs.iter().position(|(_, output)| output.storage().is_same(input.storage()));
            sources.push(match own {
                None => Source::Storage(input.storage().read()),
                Some(at) if is_same_place(input, &it.outputs[at].1) => Source::Output(at),
                Some(_) => {
                    let what = "a loop writes to memory that it reads at other places";
                    return Err(Diagnostic::new(Code::InvalidArgument, what));
                }
            });
        }
        let guards = it.outputs.iter().map(|(_, it)| it.storage().write());
        let mut guards = guards.collect::<Result<SmallVec<[_; 2]>>>()?;
        let slices = guards.iter_mut().zip(&it.outputs).zip(&self.outputs).map(|((guard, (_, tensor)), size)| {
            &mut guard.bytes_mut()[tensor.offset() * size..][..self.n_elements * size]
        });
        let mut outputs: SmallVec<[&mut [u8]; 2]> = slices.collect();
        if let ([output], [size]) = (&mut outputs[..], &self.outputs[..]) {
            return parallel::try_parts_mut(output, parallel::GRAIN * size, |at, part| {
                self.run_part(&sources, at / size, part.len() / size, smallvec![part])
            });
        }
        let n_parts = self.n_elements.div_ceil(parallel::GRAIN);
        let mut parts: Vec<SmallVec<[&mut [u8]; 2]>> = collected((0..n_parts).map(|_| SmallVec::new()))?;
        for (output, size) in outputs.into_iter().zip(&self.outputs) {
            let slices = output.chunks_mut(parallel::GRAIN * size);
            parts.iter_mut().zip(slices).for_each(|(part, slice)| part.push(slice));
        }
        parallel::try_parts_mut(&mut parts, 1, |at, part| {
            let from = at * parallel::GRAIN;
            self.run_part(&sources, from, parallel::GRAIN.min(self.n_elements - from), take(&mut part[0]))
        })
    }

    /// Runs one instruction on one block.
    fn run_direct(&self, it: &Loop<Tensor>, output: &Tensor) -> Result<()> {
        let (step, n) = (&self.code[0], self.n_elements);
        let input = |(place, _): &Block| if let Place::Input(at) = place { it.inputs.get(*at) } else { None };
        let mut guards: [Option<StorageRead<'_>>; MAX_READS] = [const { None }; MAX_READS];
        let mut reads: [&[u8]; MAX_READS] = [&[]; MAX_READS];
        for (guard, block) in guards.iter_mut().zip(&step.reads).take(step.function.reads.len()) {
            *guard = input(block).map(|it| it.storage().read());
        }
        for ((read, guard), block) in reads.iter_mut().zip(&guards).zip(&step.reads) {
            if let (Some(guard), Some(input)) = (guard, input(block)) {
                *read = &guard.bytes()[input.offset() * block.1..][..n * block.1];
            }
        }
        let mut guard = output.storage().write()?;
        let out = &mut guard.bytes_mut()[output.offset() * step.size..][..n * step.size];
        step.function.run(&reads, n, out, &mut []);
        Ok(())
    }

    /// Runs `n` elements from this one on, whose results these slices hold.
    fn run_part(&self, sources: &[Source<'_>], from: usize, n: usize, outputs: SmallVec<[&mut [u8]; 2]>) -> Result<()> {
        let n_bytes = ALIGNMENT + CONVERSION_BYTES + self.buffers.iter().sum::<usize>();
        scratch::with::<u8, _>(n_bytes, |scratch| {
            let start = scratch.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
            let (conversions, mut rest) = scratch[start..].split_at_mut(CONVERSION_BYTES);
            let mut rests: SmallVec<[&mut [u8]; 2]> = outputs.into_iter().collect();
            let mut slots: SmallVec<[&mut [u8]; 16]> = self.outputs.iter().map(|_| &mut [][..]).collect();
            slots.extend(self.buffers.iter().map(|size| split(&mut rest, *size)));
            let mut repeated: SmallVec<[Option<usize>; 8]> = self.inputs.iter().map(|_| None).collect();
            let mut read: SmallVec<[Option<&[u8]>; 8]> = SmallVec::new();
            let mut cursor = self.walk.cursor(from);
            let (row_len, is_long) = (self.walk.row_len(), self.n_elements > LONG);
            let mut left = n;
            while left > 0 {
                let n = BLOCK.min(left).min(if row_len < SHORT_ROW { usize::MAX } else { row_len - cursor.column });
                left -= n;
                for ((slot, rest), size) in slots.iter_mut().zip(&mut rests).zip(&self.outputs) {
                    *slot = split(rest, n * size);
                    if is_long {
                        prefetch(&rest[..BLOCK.min(left) * size]);
                    }
                }
                read.clear();
                for (k, (input, source)) in self.inputs.iter().zip(sources).enumerate() {
                    let buffer = take(&mut slots[input.slot]);
                    read.push(match source {
                        Source::Output(at) => {
                            buffer[..n * input.size].copy_from_slice(slots[*at]);
                            None
                        }
                        Source::Storage(storage) => {
                            let block =
                                input.read(storage.bytes(), (&self.walk, k), &cursor, n, (buffer, &mut repeated[k]));
                            block.map(|(block, next)| {
                                if is_long {
                                    prefetch(next);
                                }
                                block
                            })
                        }
                    });
                    slots[input.slot] = buffer;
                }
                let mut blocks = Blocks { n, read: &read, inputs: &self.inputs, slots: &mut slots };
                self.code.iter().for_each(|it| blocks.run(it, conversions));
                self.copies.iter().for_each(|(from, to)| blocks.copy(*from, *to));
                self.walk.advance(&mut cursor, n);
            }
            Ok(())
        })
    }
}

impl Blocks<'_, '_> {
    /// Runs an instruction. The block that it writes is taken out, so that the others can be read.
    fn run(&mut self, step: &Step, conversions: &mut [u8]) {
        let out = take(&mut self.slots[step.slot]);
        let mut reads: [&[u8]; MAX_READS] = [&[]; MAX_READS];
        for (read, block) in reads.iter_mut().zip(&step.reads).take(step.function.reads.len()) {
            *read = self.block(*block);
        }
        step.function.run(&reads, self.n, &mut out[..self.n * step.size], conversions);
        self.slots[step.slot] = out;
    }

    fn copy(&mut self, from: Block, to: usize) {
        let out = take(&mut self.slots[to]);
        out.copy_from_slice(self.block(from));
        self.slots[to] = out;
    }

    fn block(&self, (place, size): Block) -> &[u8] {
        let slot = match place {
            Place::Slot(slot) => slot,
            Place::Input(k) => match self.read[k] {
                Some(block) => return block,
                None => self.inputs[k].slot,
            },
        };
        &self.slots[slot][..self.n * size]
    }
}

impl Input {
    /// The `n` elements from here on, and the block that may be next; nothing where they are gathered in the buffer. A repeated element, the position of which is noted, fills it for all
    /// blocks that follow.
    fn read<'a>(
        &self,
        bytes: &'a [u8],
        (walk, k): (&StridedIter, usize),
        cursor: &Cursor,
        n: usize,
        (buffer, repeated): (&mut [u8], &mut Option<usize>),
    ) -> Option<(&'a [u8], &'a [u8])> {
        let (stride, is_in_row) = (walk.row_stride(k), cursor.column + n <= walk.row_len());
        let at = cursor.at[k] + cursor.column * stride;
        if self.is_linear || (stride == 1 && is_in_row) {
            let (block, others) = bytes[at * self.size..].split_at(n * self.size);
            return Some((block, &others[..others.len().min(BLOCK * self.size)]));
        }
        if stride == 0 && is_in_row {
            if *repeated != Some(at) {
                *repeated = Some(at);
                gather(self.size, bytes, at, 0, &mut buffer[..BLOCK * self.size]);
            }
            return None;
        }
        *repeated = None;
        let (mut cursor, mut rest) = (cursor.clone(), &mut buffer[..n * self.size]);
        while !rest.is_empty() {
            let len = (walk.row_len() - cursor.column).min(rest.len() / self.size);
            let at = cursor.at[k] + cursor.column * stride;
            gather(self.size, bytes, at, stride, split(&mut rest, len * self.size));
            walk.advance(&mut cursor, len);
        }
        None
    }
}

/// Copies elements of this size that lie `stride` apart.
fn gather(size: usize, from: &[u8], at: usize, stride: usize, to: &mut [u8]) {
    match size {
        1 => gather_bits::<u8>(from, at, stride, to),
        2 => gather_bits::<u16>(from, at, stride, to),
        4 => gather_bits::<u32>(from, at, stride, to),
        8 => gather_bits::<u64>(from, at, stride, to),
        _ => gather_bits::<[u64; 2]>(from, at, stride, to),
    }
}

fn gather_bits<T: Pod>(from: &[u8], at: usize, stride: usize, to: &mut [u8]) {
    let (from, to): (&[T], &mut [T]) = (&bits(from)[at..], bytemuck::cast_slice_mut(to));
    match stride {
        0 => to.fill(from[0]),
        1 => to.copy_from_slice(&from[..to.len()]),
        _ => to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, it)| *to = *it),
    }
}

/// Takes the first bytes.
fn split<'a>(rest: &mut &'a mut [u8], len: usize) -> &'a mut [u8] {
    let (first, others) = take(rest).split_at_mut(len);
    *rest = others;
    first
}

fn function(instruction: &Instruction, dtypes: &[DType], executor: Executor<'_>) -> Result<Function> {
    let function = element_function(instruction, dtypes, executor)?;
    match function.downcast() {
        Ok(it) => Ok(*it),
        Err(_) => Err(Diagnostic::new(
            Code::NotImplemented,
            format!("{} has the function of another backend", instruction.op),
        )),
    }
}

/// Whether both are the same elements.
fn is_same_place(a: &Tensor, b: &Tensor) -> bool {
    (a.dtype(), a.sizes(), a.strides(), a.offset()) == (b.dtype(), b.sizes(), b.strides(), b.offset())
}

/// The slots behind those of the outputs: buffers, of which those that are free are used first.
struct Buffers {
    n_outputs: usize,
    sizes: Vec<usize>,
    free: Vec<usize>,
}

impl Buffers {
    fn behind(n_outputs: usize) -> Self {
        Buffers { n_outputs, sizes: Vec::new(), free: Vec::new() }
    }

    /// A slot for a block of elements of this size.
    fn take(&mut self, size: usize) -> usize {
        let n_bytes = BLOCK * size;
        match self.free.iter().rposition(|it| self.sizes[*it - self.n_outputs] == n_bytes) {
            Some(at) => self.free.swap_remove(at),
            None => {
                self.sizes.push(n_bytes);
                self.n_outputs + self.sizes.len() - 1
            }
        }
    }

    /// Gives a slot back, unless it is that of an output.
    fn give_back(&mut self, slot: usize) {
        if slot >= self.n_outputs {
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::isa::Level;
    use crate::numeric::map::cast;
    use tracefx_exec::Kernel;
    use tracefx_ir::Str;
    use tracefx_ops::{ArgSpec, ArgType, Value};
    use tracefx_plan::{Argument, Operand, Register};

    const DTYPES: [DType; 8] = [
        DType::Float32,
        DType::Float64,
        DType::Float16,
        DType::BFloat16,
        DType::Int64,
        DType::Int8,
        DType::Bool,
        DType::Complex64,
    ];

    fn pointwise() -> impl Iterator<Item = &'static str> {
        let names = crate::kernels().names().into_iter();
        names.filter(|it| matches!(crate::kernels().get(it), Some(Kernel::Pointwise(_))))
    }

    /// An argument for a call with these tensors, which take the places of tensors one after the other.
    fn argument(
        spec: &ArgSpec,
        inputs: &mut std::slice::Iter<'_, Tensor>,
        register: &mut u32,
    ) -> (Value<Tensor>, Argument) {
        let plain = |value: Value<Tensor>, operand| (value, Argument::Value(operand));
        match &spec.ty {
            ArgType::Tensor => {
                *register += 1;
                let tensor = inputs.next().expect("there are three tensors");
                (Value::Tensor(tensor.clone()), Argument::Register(Register(*register - 1)))
            }
            ArgType::Scalar if inputs.as_slice().iter().all(|it| !it.dtype().is_float()) => {
                plain(Value::int(3), Operand::Int(3))
            }
            ArgType::Scalar | ArgType::Float => plain(Value::Float(0.5), Operand::Float(0.5)),
            ArgType::Int => plain(Value::int(1), Operand::Int(1)),
            ArgType::Bool => plain(Value::Bool(true), Operand::Bool(true)),
            ArgType::Str => plain(Value::Str("none".into()), Operand::Str("none".into())),
            ArgType::DType => plain(Value::DType(DType::Float32), Operand::DType(DType::Float32)),
            ArgType::Optional(ty) if spec.name == "min" && **ty == ArgType::Tensor => {
                argument(&ArgSpec { ty: ArgType::Tensor, ..spec.clone() }, inputs, register)
            }
            _ => plain(Value::None, Operand::None),
        }
    }

    /// Numbers of all sizes, and special ones.
    fn numbers(dtype: DType, sizes: &[usize], seed: usize) -> Tensor {
        const SPECIAL: [f32; 8] = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX, -1.0];
        let number = |at: usize| match (at + seed).wrapping_mul(2_654_435_761) >> 7 & 31 {
            special @ 0..8 => SPECIAL[special],
            other => other as f32 / 3.0 - 5.0,
        };
        let all: Vec<f32> = (0..sizes.iter().product()).map(number).collect();
        cast(&Tensor::from_slice(&all, sizes).unwrap(), dtype).unwrap()
    }

    /// The bytes of the elements, in which every NaN of float32 is the same.
    fn bytes(tensor: &Tensor) -> Vec<u8> {
        match tensor.dtype() {
            DType::Float32 | DType::Float64 | DType::Float16 | DType::BFloat16 => {
                let numbers = cast(tensor, DType::Float64).unwrap().to_vec::<f64>().unwrap();
                let bits = numbers.into_iter().map(|it| if it.is_nan() { u64::MAX } else { it.to_bits() });
                bits.flat_map(u64::to_le_bytes).collect()
            }
            _ => tensor.to_bytes().unwrap(),
        }
    }

    /// What an operator gives by its kernel, and by a loop that computes it once, and again of its own result where that can be.
    fn both(op: &'static str, inputs: &[Tensor; 3]) -> Option<(Tensor, Tensor)> {
        let executor = crate::executor();
        let specs = &executor.registry().require(op).unwrap().schema.args;
        let (mut tensors, mut register) = (inputs.iter(), 0);
        let (values, args): (Vec<_>, Vec<_>) = specs.iter().map(|it| argument(it, &mut tensors, &mut register)).unzip();
        let n_positional = specs.iter().filter(|it| !it.is_kwarg_only).count();
        let kwargs: Vec<(Str, _)> = specs
            .iter()
            .zip(&values)
            .skip(n_positional)
            .map(|(it, value)| (it.name.as_str().into(), value.clone()))
            .collect();
        let wanted = match executor.call(op, &values[..n_positional], &kwargs) {
            Ok(mut results) => match results.remove(0) {
                Value::Tensor(it) => it.contiguous().unwrap(),
                other => panic!("{op} gives {other:?}"),
            },
            Err(_) => return None,
        };
        let dtype = wanted.dtype();
        let code = vec![Instruction { op: op.into(), args, dtype }];
        let inputs = inputs[..register as usize].to_vec();
        let output = Tensor::zeros(dtype, wanted.sizes()).unwrap();
        let step =
            Loop { sizes: wanted.sizes().into(), inputs, code, outputs: vec![(Register(register), output.clone())] };
        let step = Fused::Loop(step);
        match prepare(&step, crate::executor()) {
            Ok(run) => run(&step).unwrap(),
            Err(problem) => {
                assert_eq!(problem.code(), Code::NotImplemented, "{op}: {problem:?}");
                return None;
            }
        }
        Some((wanted, output))
    }

    #[test]
    fn loops_give_the_bits_of_kernels() {
        let results = Level::on_each(|| {
            let mut with_function = Vec::new();
            for op in pointwise() {
                for dtype in DTYPES {
                    let first = numbers(dtype, &[2100], 1).as_strided(&[3, 700], &[1, 3], 0).unwrap();
                    let others = [numbers(dtype, &[700], 2), numbers(dtype, &[3, 1], 3)];
                    let first = if op.contains("where") { cast(&first, DType::Bool).unwrap() } else { first };
                    let [second, third] = others;
                    let second = if op.contains("masked_fill") { cast(&second, DType::Bool).unwrap() } else { second };
                    let Some((wanted, given)) = both(op, &[first, second, third]) else { continue };
                    assert_eq!(bytes(&given), bytes(&wanted), "{op} of {dtype}");
                    with_function.push(op);
                }
            }
            with_function
        });
        for (level, with_function) in results {
            // Those that give a view, or take arguments that are not made here.
            let others = [
                "aten.clamp.default",
                "aten.contiguous.default",
                "aten.log_sigmoid_backward.default",
                "aten.masked_fill.Tensor",
                "aten.to.device",
            ];
            let missing: Vec<_> = pointwise().filter(|it| !with_function.contains(it)).collect();
            assert_eq!(missing, others, "on {level:?}");
        }
    }

    /// Of several parts, blocks and outputs: one that lies where an input was, one that holds an input, and two of one register.
    #[test]
    fn a_loop_of_several_parts_writes_all_outputs() {
        let call = |op: &str, args: &[u32]| {
            let numbers = if op.contains("add") { vec![Argument::Value(Operand::Int(1))] } else { vec![] };
            let args = args.iter().map(|it| Argument::Register(Register(*it))).chain(numbers).collect();
            Instruction { op: op.into(), args, dtype: DType::Float32 }
        };
        for sizes in [[3, 25_000], [25_000, 3], [1, 1], [0, 5], [300, 300]] {
            let results = Level::on_each(|| {
                let executor = crate::executor();
                let run = |op: &str, args: &[&Tensor]| {
                    let args: Vec<_> = args.iter().map(|it| Value::Tensor((*it).clone())).collect();
                    match executor.call(op, &args, &[]).unwrap().remove(0) {
                        Value::Tensor(it) => it,
                        other => panic!("{other:?}"),
                    }
                };
                let whole = numbers(DType::Float32, &sizes, 1);
                let (row, column) =
                    (numbers(DType::Float32, &sizes[1..], 2), numbers(DType::Float32, &[sizes[0], 1], 3));
                let n: usize = sizes.iter().product();
                let turned = numbers(DType::Float32, &[n], 4).as_strided(&sizes, &[1, sizes[0]], 0).unwrap();
                let a = run("aten.add.Tensor", &[&whole, &row]);
                let b = run("aten.mul.Tensor", &[&a, &column]);
                let c = run("aten.exp.default", &[&turned]);
                let d = run("aten.sub.Tensor", &[&b, &c]);
                let wanted = [d, b.clone(), turned.contiguous().unwrap(), b];
                let own = whole.compact_copy().unwrap();
                let outputs = [(); 3].map(|()| Tensor::zeros(DType::Float32, &sizes).unwrap());
                let registers = [7, 5, 3, 5].map(Register);
                let targets = [own.clone()].into_iter().chain(outputs);
                let mut sub = call("aten.sub.Tensor", &[5, 6]);
                sub.args.push(Argument::Value(Operand::Int(1)));
                let step = Fused::Loop(Loop {
                    sizes: sizes[..].into(),
                    inputs: vec![own, row, column, turned],
                    code: vec![
                        call("aten.add.Tensor", &[0, 1]),
                        call("aten.mul.Tensor", &[4, 2]),
                        call("aten.exp.default", &[3]),
                        sub,
                    ],
                    outputs: registers.into_iter().zip(targets).collect(),
                });
                prepare(&step, crate::executor()).unwrap()(&step).unwrap();
                let given: Vec<_> = step.results().into_iter().map(bytes).collect();
                (given, wanted.each_ref().map(bytes).to_vec())
            });
            for (level, (given, wanted)) in results {
                assert!(given == wanted, "{sizes:?} on {level:?}");
            }
        }
    }

    /// One instruction on one block: what is stored is its result, or an input, which may lie where the output does.
    #[test]
    fn a_loop_of_one_block_stores_what_it_is_told_to() {
        let own = |at: usize| numbers(DType::Float32, &[5, 1], at);
        for (register, in_place) in [(1, false), (0, false), (1, true), (0, true)] {
            let (input, other) = (own(1), own(2));
            let output = if in_place { input.clone() } else { other };
            let relu = Instruction {
                op: "aten.relu.default".into(),
                args: vec![Argument::Register(Register(0))],
                dtype: DType::Float32,
            };
            let wanted: Vec<f32> = input.to_vec().unwrap();
            let wanted = wanted.into_iter().map(|it| if register == 1 { it.max(0.0) } else { it });
            let wanted: Vec<f32> = wanted.collect();
            let outputs = vec![(Register(register), output.clone())];
            let step = Fused::Loop(Loop { sizes: [5, 1][..].into(), inputs: vec![input], code: vec![relu], outputs });
            prepare(&step, crate::executor()).unwrap()(&step).unwrap();
            assert_eq!(output.to_vec::<f32>().unwrap(), wanted, "register {register}, in place: {in_place}");
        }
    }

    #[test]
    fn memory_that_is_read_at_other_places_is_not_written() {
        let tensor = Tensor::zeros(DType::Float32, &[2, 2]).unwrap();
        let turned = tensor.as_strided(&[2, 2], &[1, 2], 0).unwrap();
        let outputs = vec![(Register(0), tensor)];
        let step = Fused::Loop(Loop { sizes: [2, 2][..].into(), inputs: vec![turned], code: vec![], outputs });
        assert_eq!(prepare(&step, crate::executor()).unwrap()(&step).unwrap_err().code(), Code::InvalidArgument);
    }
}
