//! Plans as bytes: what is saved of them, and what crosses to whoever runs them elsewhere.
//!
//! A header (`tracefx plan`, the version, the length of what follows), the plan in the encoding of [`postcard`], and the bytes of the
//! program's storages, each at a place that 16 divides. A storage that several buffers share is there once. The header of an *outline*
//! has another mark: of storages it has lengths alone, which is enough to look at a plan, and not to run it.
//!
//! The bytes are data of anybody. What is read is bounded by what is there, nothing is allocated on the word of a length, and a plan is
//! [valid](Plan::validate) before it is given.

pub(crate) mod parts;

use crate::{Action, Buffer, BufferId, Operand, Plan, Step, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result, Storage};

const WHOLE: &[u8; 12] = b"tracefx plan";
const OUTLINE: &[u8; 12] = b"tracefx plao";
const VERSION: u32 = 1;
/// The mark, the version, and the length of the plan.
const HEADER: usize = 12 + 4 + 8;
const ALIGNMENT: usize = 16;

#[derive(Serialize, Deserialize)]
struct File {
    /// The lengths of the storages.
    storages: Vec<u64>,
    plan: Record,
}

/// A plan without the memory of its constants.
#[derive(Serialize, Deserialize)]
struct Record {
    inputs: Vec<Operand>,
    buffers: Vec<Place>,
    tensors: Vec<TensorView>,
    steps: Vec<Step>,
    output: Operand,
    alone: Vec<BufferId>,
    /// The plans of each step of control flow, in order.
    #[serde(deserialize_with = "parts::nested")]
    within: Vec<Vec<Record>>,
}

/// A buffer; a constant is the number of its storage.
#[derive(Serialize, Deserialize)]
enum Place {
    Input(u32),
    Constant(u32),
    Scratch,
    Result,
    Made,
}

impl Plan {
    /// The plan with the bytes of the program's storages, as [`Plan::from_bytes`] reads it.
    ///
    /// # Errors
    /// `GraphInvalid` where a size has no value; `LimitExceeded` where plans or lists are nested deeper than is read; `OutOfMemory`.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut storages = Vec::new();
        let mut bytes = written(WHOLE, self, &mut storages)?;
        let n_bytes = storages.iter().fold(bytes.len(), |n, it| n + ALIGNMENT + it.len());
        bytes.try_reserve_exact(n_bytes - bytes.len()).map_err(|_| no_memory(n_bytes))?;
        for storage in storages {
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
            bytes.extend_from_slice(storage.read().bytes());
        }
        Ok(bytes)
    }

    /// The plan of [`Plan::to_bytes`].
    ///
    /// # Errors
    /// `WireMalformed` where the bytes are no plan, or are less or more than one; `WireVersion` where they are of another version; what
    /// [`Plan::validate`] refuses; `OutOfMemory`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (File { storages: lengths, plan }, mut at) = read(WHOLE, bytes)?;
        let mut storages = Vec::new();
        for length in lengths {
            at = at.next_multiple_of(ALIGNMENT);
            let end = usize::try_from(length).ok().and_then(|it| at.checked_add(it));
            let content = end.and_then(|end| bytes.get(at..end));
            let content =
                content.ok_or_else(|| malformed(format!("the bytes of the storage {} end", storages.len())))?;
            storages.push(Storage::from_bytes(content)?);
            at += content.len();
        }
        if at != bytes.len() {
            return Err(malformed("there are bytes behind the plan".to_owned()));
        }
        let plan = plan.into_plan(&storages)?;
        plan.validate()?;
        Ok(plan)
    }

    /// The outline of the plan, and the storages that it has the lengths of, in order: for who keeps their bytes elsewhere.
    ///
    /// # Errors
    /// As [`Plan::to_bytes`].
    pub fn to_parts(&self) -> Result<(Vec<u8>, Vec<Storage>)> {
        let mut storages = Vec::new();
        Ok((written(OUTLINE, self, &mut storages)?, storages))
    }

    /// The plan of [`Plan::to_parts`].
    ///
    /// # Errors
    /// As [`Plan::from_bytes`], and `WireMalformed` where there are more or fewer storages, or one has another length.
    pub fn from_parts(outline: &[u8], storages: &[Storage]) -> Result<Self> {
        let (File { storages: lengths, plan }, at) = read(OUTLINE, outline)?;
        if at != outline.len() {
            return Err(malformed("there are bytes behind the plan".to_owned()));
        }
        if !lengths.iter().copied().eq(storages.iter().map(|it| it.len() as u64)) {
            return Err(malformed("the storages are not those of the plan".to_owned()));
        }
        let plan = plan.into_plan(storages)?;
        plan.validate()?;
        Ok(plan)
    }

    /// The plan without the bytes of the program's storages, as [`Plan::from_outline`] reads it.
    ///
    /// # Errors
    /// As [`Plan::to_bytes`].
    pub fn to_outline(&self) -> Result<Vec<u8>> {
        self.to_parts().map(|(outline, _)| outline)
    }

    /// The plan of [`Plan::to_outline`]. Its constants are empty storages: one for each that the plan has, so that it can be seen which buffers
    /// share one. It is valid for storages of the lengths that these had.
    ///
    /// # Errors
    /// As [`Plan::from_bytes`].
    pub fn from_outline(bytes: &[u8]) -> Result<Self> {
        let (File { storages: lengths, plan }, at) = read(OUTLINE, bytes)?;
        if at != bytes.len() {
            return Err(malformed("there are bytes behind the plan".to_owned()));
        }
        let storages = lengths.iter().map(|_| Storage::zeroed(0)).collect::<Result<Vec<_>>>()?;
        let plan = plan.into_plan(&storages)?;
        let lengths: BTreeMap<usize, u64> = storages.iter().map(Storage::id).zip(lengths).collect();
        plan.validate_for(&|storage| {
            lengths.get(&storage.id()).and_then(|it| usize::try_from(*it).ok()).unwrap_or_default()
        })?;
        Ok(plan)
    }
}

impl Record {
    fn of(plan: &Plan, storages: &mut Vec<Storage>) -> Self {
        let mut place = |it: &Buffer| match it {
            Buffer::Input(at) => Place::Input(*at),
            Buffer::Constant(storage) => {
                let known = storages.iter().position(|it| it.is_same(storage));
                Place::Constant(known.unwrap_or_else(|| {
                    storages.push(storage.clone());
                    storages.len() - 1
                }) as u32)
            }
            Buffer::Scratch => Place::Scratch,
            Buffer::Result => Place::Result,
            Buffer::Made => Place::Made,
        };
        let buffers = plan.buffers.iter().map(&mut place).collect();
        let mut within = Vec::new();
        for step in &plan.steps {
            if let Action::ControlFlow { plans, .. } = &step.action {
                within.push(plans.iter().map(|it| Record::of(it, storages)).collect());
            }
        }
        Record {
            inputs: plan.inputs.clone(),
            buffers,
            tensors: plan.tensors.clone(),
            steps: plan.steps.clone(),
            output: plan.output.clone(),
            alone: plan.alone.clone(),
            within,
        }
    }

    fn into_plan(self, storages: &[Storage]) -> Result<Plan> {
        let buffer = |it: Place| match it {
            Place::Input(at) => Ok(Buffer::Input(at)),
            Place::Constant(at) => match storages.get(at as usize) {
                Some(storage) => Ok(Buffer::Constant(storage.clone())),
                None => Err(malformed(format!("there is no storage {at}"))),
            },
            Place::Scratch => Ok(Buffer::Scratch),
            Place::Result => Ok(Buffer::Result),
            Place::Made => Ok(Buffer::Made),
        };
        let Record { inputs, buffers, tensors, mut steps, output, alone, within } = self;
        let buffers = buffers.into_iter().map(buffer).collect::<Result<_>>()?;
        let mut within = within.into_iter();
        for step in &mut steps {
            if let Action::ControlFlow { plans, .. } = &mut step.action {
                let records =
                    within.next().ok_or_else(|| malformed("a step of control flow has no plans".to_owned()))?;
                *plans = records.into_iter().map(|it| it.into_plan(storages)).collect::<Result<_>>()?;
            }
        }
        match within.next() {
            Some(_) => Err(malformed("there are plans of no step".to_owned())),
            None => Ok(Plan { inputs, buffers, tensors, steps, output, alone }),
        }
    }
}

/// The header and the plan, and the storages that are to follow.
fn written(mark: &[u8; 12], plan: &Plan, storages: &mut Vec<Storage>) -> Result<Vec<u8>> {
    parts::check_depth(plan)?;
    let plan = Record::of(plan, storages);
    let file = File { storages: storages.iter().map(|it| it.len() as u64).collect(), plan };
    let refused = |_| Diagnostic::new(Code::GraphInvalid, "a size or number of the plan has no value");
    let body = postcard::to_allocvec(&file).map_err(refused)?;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(mark);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// What the header and the plan say, and where they end.
fn read(mark: &[u8; 12], bytes: &[u8]) -> Result<(File, usize)> {
    let words = bytes.strip_prefix(mark).ok_or_else(|| malformed("the bytes are no plan".to_owned()))?;
    let ends = || malformed("the bytes of the plan end".to_owned());
    let (version, rest) = words.split_first_chunk().ok_or_else(ends)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let what = format!("the plan is of version {version}, and this is of version {VERSION}");
        return Err(Diagnostic::new(Code::WireVersion, what).help("make the plan again from its program"));
    }
    let (length, rest) = rest.split_first_chunk().ok_or_else(ends)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| ends())?;
    let body = rest.get(..length).ok_or_else(ends)?;
    let (file, rest) =
        postcard::take_from_bytes(body).map_err(|problem| malformed(format!("the bytes are no plan: {problem}")))?;
    if !rest.is_empty() {
        return Err(malformed("there are bytes behind the steps".to_owned()));
    }
    Ok((file, HEADER + length))
}

fn malformed(what: String) -> Diagnostic {
    Diagnostic::new(Code::WireMalformed, what)
}

fn no_memory(n_bytes: usize) -> Diagnostic {
    Diagnostic::new(Code::OutOfMemory, format!("there is no memory for the {n_bytes} bytes of a plan"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Activation, Argument, Attention, BatchNorm, BufferId, Convolution, ConvolutionLayer, Dequantization,
        DequantizedProduct, Epilogue, Fused, Gather, Instruction, IntegerLayout, Loop, Norm, NormStatistic, Pool,
        PoolReduction, Product, QuantizedConvolution, QuantizedResidual, Register, Rounding, TensorId, Window,
    };
    use tracefx_core::{Complex64, DType, Device, Dims, Layout, MemoryFormat};
    use tracefx_sym::{SymInt, Symbol};

    fn step_of_each_kind() -> Vec<Action> {
        let [a, b, c] = [0, 1, 2].map(TensorId);
        let norm = BatchNorm { weight: None, bias: Some(a), mean: b, var: c, eps: 1e-5 };
        let clamp = Activation::Clamp { min: f32::NEG_INFINITY, max: 6.0 };
        let epilogue = Epilogue { bias: Some(a), norm: Some(norm), residual: None, activation: clamp };
        let (stride, padding, dilation) = ([1, 2], [0, 1], [1; 2]);
        let layer = ConvolutionLayer { weight: b, stride, padding, dilation, groups: 1, epilogue: epilogue.clone() };
        let rounding = Rounding { scale: 0.25, zero_point: -5, min: -128, max: 127 };
        let reduction = PoolReduction::Average { count_include_pad: true, divisor_override: Some(3) };
        let quantized = QuantizedConvolution {
            input: a,
            zero_point: -3,
            weight: b,
            weight_zero_points: None,
            window: Window { stride, padding, dilation, groups: 4 },
            scale: 0.5,
            scales: Some(c),
            bias: None,
            inner: Some(rounding),
            residual: Some(QuantizedResidual { tensor: a, scale: 0.125, zero_point: 1 }),
            limits: [0.0, f32::INFINITY],
            rounding: None,
            result: c,
        };
        let instruction = Instruction {
            op: "aten.add.Tensor".into(),
            args: vec![Argument::Register(Register(0)), Argument::Value(Operand::Float(f64::NAN))],
            dtype: DType::BFloat16,
        };
        let code = Loop {
            sizes: Dims::from_slice(&[2, 3]),
            inputs: vec![a],
            code: vec![instruction],
            outputs: vec![(Register(1), b)],
        };
        let dequantized = DequantizedProduct {
            product: Product { lhs: a, rhs: b, epilogue: epilogue.clone(), result: c },
            dequantization: Dequantization {
                layout: IntegerLayout::Int4Tiles,
                group_size: 32,
                zero_point: 8,
                scale: 0.5,
                scales: Some(a),
                zero_points: None,
                shifts: Some(b),
                is_rounded: true,
            },
        };
        let fused = [
            Fused::Attention(Attention {
                query: a,
                key: b,
                value: c,
                mask: Some(a),
                masked: f64::NEG_INFINITY,
                is_causal: true,
                scale: 0.5,
                is_safe: false,
                result: b,
            }),
            Fused::Convolution(Convolution { input: a, scale: Some(b), layers: vec![layer], result: c }),
            Fused::Norm(Norm {
                input: a,
                statistic: NormStatistic::MeanSquare,
                weight: Some(b),
                bias: None,
                eps: 1e-5,
                result: c,
            }),
            Fused::Product(Product { lhs: a, rhs: b, epilogue: epilogue.clone(), result: c }),
            Fused::Pool(Pool { input: a, kernel: [2, 3], stride, padding, dilation, reduction, result: c }),
            Fused::Gather(Gather {
                op: "aten.embedding".into(),
                input: a,
                dim: 0,
                index: b,
                is_wrapped: true,
                result: c,
            }),
            Fused::QuantizedConvolution(Box::new(quantized)),
            Fused::Loop(code),
            Fused::DequantizedProduct(Box::new(dequantized)),
        ];
        let s0 = SymInt::from(Symbol::size("s0"));
        let operands = vec![
            Operand::None,
            Operand::Bool(true),
            Operand::Int(i64::MIN),
            Operand::Float(-0.0),
            Operand::Complex(Complex64 { re: 1.5, im: f64::INFINITY }),
            Operand::Str("a\u{e9}".into()),
            Operand::DType(DType::Complex128),
            Operand::Device(Device { kind: "cuda".into(), index: Some(1) }),
            Operand::Layout(Layout::Jagged),
            Operand::MemoryFormat(MemoryFormat::ChannelsLast3d),
            Operand::Expr((&s0 * 2 + 1).into()),
            Operand::List(vec![Operand::Tensor(a), Operand::List(vec![])]),
        ];
        let mut within = Plan::default();
        let constant = within.add_buffer(Buffer::Constant(Storage::from_bytes(&[7; 5]).unwrap()));
        within.alone.push(constant);
        let plans = vec![Plan::default(), within];
        let (op, results) = ("cond".into(), Operand::List(vec![Operand::Tensor(c)]));
        let mut actions = vec![
            Action::Call { op: "aten.add.Tensor".into(), args: operands.clone(), results: vec![Operand::Tensor(b)] },
            Action::Update { op: "aten.index_copy.default".into(), args: operands },
            Action::Copy { from: a, to: b },
            Action::ControlFlow { op, operands: vec![Operand::Plan(1)], plans, results },
        ];
        actions.extend(fused.into_iter().map(Action::Fused));
        actions
    }

    /// A plan with each kind of buffer, operand and step, of which not all make sense.
    fn whole() -> Plan {
        let mut plan = Plan::default();
        let shared = Storage::from_bytes(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let constants = [Buffer::Constant(shared.clone()), Buffer::Constant(shared)];
        for buffer in [Buffer::Input(3), Buffer::Scratch, Buffer::Result, Buffer::Made].into_iter().chain(constants) {
            let buffer = plan.add_buffer(buffer);
            plan.add_tensor(TensorView::row_major(buffer, DType::Float16, &[Symbol::size("s0").into(), 2.into()]));
        }
        plan.tensors[0].offset = 5.into();
        plan.inputs = vec![Operand::Tensor(TensorId(0))];
        plan.output = Operand::List(vec![Operand::Tensor(TensorId(2))]);
        plan.alone = vec![BufferId(0)];
        for (at, action) in step_of_each_kind().into_iter().enumerate() {
            plan.push(format!("step_{at}"), action);
        }
        plan
    }

    /// The bytes, and what they are read as before it is asked whether it makes sense.
    fn read_again(plan: &Plan) -> (Vec<u8>, Plan) {
        let mut storages = Vec::new();
        let bytes = written(WHOLE, plan, &mut storages).unwrap();
        let (file, at) = read(WHOLE, &bytes).unwrap();
        assert_eq!(at, bytes.len());
        assert_eq!(file.storages, storages.iter().map(|it| it.len() as u64).collect::<Vec<_>>());
        (bytes, file.plan.into_plan(&storages).unwrap())
    }

    #[test]
    fn every_part_comes_back() {
        let plan = whole();
        let (bytes, again) = read_again(&plan);
        assert_eq!(format!("{again:?}"), format!("{plan:?}"));
        assert_eq!(read_again(&again).0, bytes);
    }

    #[test]
    fn a_shared_storage_is_there_once() {
        let mut plan = Plan::default();
        let shared = Storage::from_bytes(&[9; 40]).unwrap();
        for _ in 0..3 {
            plan.add_buffer(Buffer::Constant(shared.clone()));
        }
        plan.add_buffer(Buffer::Constant(Storage::from_bytes(&[]).unwrap()));
        let bytes = plan.to_bytes().unwrap();
        assert_eq!(bytes.windows(40).filter(|it| **it == [9; 40]).count(), 1);
        let again = Plan::from_bytes(&bytes).unwrap();
        let [Buffer::Constant(a), Buffer::Constant(b), _, Buffer::Constant(c)] = &again.buffers[..] else { panic!() };
        assert!(a.is_same(b) && !a.is_same(c) && c.is_empty());
        assert_eq!(a.read().bytes(), [9; 40]);
        assert!(plan.to_outline().unwrap().len() < 64);
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let plan = whole();
        let bytes = plan.to_bytes().unwrap();
        let code = |it: &[u8]| Plan::from_bytes(it).unwrap_err().code();
        for n in 0..bytes.len() {
            assert_eq!(code(&bytes[..n]), Code::WireMalformed, "{n}");
        }
        assert_eq!(code(&[&bytes[..], &[0]].concat()), Code::WireMalformed);
        let mut newer = bytes.clone();
        newer[12] = 2;
        assert_eq!(code(&newer), Code::WireVersion);
        let mut long = bytes.clone();
        long[16..24].fill(0xff);
        assert_eq!(code(&long), Code::WireMalformed);
        assert_eq!(code(&plan.to_outline().unwrap()), Code::WireMalformed);
        // It is read, and does not hold together.
        assert_eq!(code(&bytes), Code::GraphInvalid);
    }

    #[test]
    fn other_bytes_are_refused_or_are_a_valid_plan() {
        let bytes = whole().to_bytes().unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                if let Ok(plan) = Plan::from_bytes(&other) {
                    plan.validate().unwrap();
                }
            }
        }
    }

    #[test]
    fn nothing_is_nested_to_the_end_of_the_stack() {
        let deep = |n: usize| (0..n).fold(Operand::None, |it, _| Operand::List(vec![it]));
        let with = |output| Plan { output, ..Plan::default() };
        let read = |it: Vec<u8>| Plan::from_bytes(&it).map(|it| it.output);
        assert_eq!(read(with(deep(40)).to_bytes().unwrap()).unwrap(), deep(40));
        assert_eq!(with(deep(100)).to_bytes().unwrap_err().code(), Code::LimitExceeded);
        // `[[[[…]]]]` is a byte for the list and one for its length, as often as one likes.
        let list = postcard::to_allocvec(&deep(1)).unwrap();
        let plan =
            postcard::to_allocvec(&File { storages: vec![], plan: Record::of(&with(deep(1)), &mut vec![]) }).unwrap();
        let at = plan.windows(list.len()).position(|it| *it == list[..]).unwrap();
        let body = [&plan[..at], &list[..2].repeat(1_000_000), &plan[at + 2..]].concat();
        let header = [&WHOLE[..], &VERSION.to_le_bytes(), &(body.len() as u64).to_le_bytes()].concat();
        assert_eq!(read([header, body].concat()).unwrap_err().code(), Code::WireMalformed);
    }
}
