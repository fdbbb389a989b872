//! Values as words: how the arguments and results of a call cross, all of them at once.
//!
//! A value is the word of its tag, which the byte format shares (`tracefx_wire::format::arg`), and the words of its
//! content: a bool, dtype, layout or memory format is its number; an int, float or complex its bits, the lower word first;
//! a string or device the count of its bytes, and the bytes; a list the count of its items, and the items; a tensor its
//! handle. On the way out the handle is followed by what JavaScript keeps of a tensor, and the tag is [`DESCRIBED`]: dtype,
//! offset, the identity of its storage, rank, sizes and strides. What came out may go in again as it is.
//!
//! Where operators are called without data, a tensor is the tag [`KNOWN`], its dtype, rank, sizes, strides and offset, the
//! latter as values of their own; a number that is not known is the tag [`SYMBOLIC`] and its expression, as PyTorch saves
//! it, like a string.

use crate::{Refusal, handles, tensor::dtype_of};
use tracefx_core::{Code, Complex64, Diagnostic, Layout, MemoryFormat, Tensor};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::Value;
use tracefx_sym::{Parser, SymInt};
use tracefx_wire::format::arg;

/// The tag of a tensor with its description.
const DESCRIBED: u32 = arg::TENSOR | 1 << 8;
/// The tag of a tensor without data.
const KNOWN: u32 = arg::TENSOR | 2 << 8;
/// The tag of a number that is not known.
const SYMBOLIC: u32 = arg::STR | 1 << 8;

/// What a tensor is as it crosses.
pub(crate) trait Crossing: Sized {
    /// The tensor behind this tag; none where the tag is of something else.
    fn read(tag: u32, reader: &mut Reader<'_>) -> Result<Option<Self>, Refusal>;

    fn write(&self, out: &mut Vec<u32>);
}

impl Crossing for Tensor {
    fn read(tag: u32, reader: &mut Reader<'_>) -> Result<Option<Self>, Refusal> {
        if tag != arg::TENSOR && tag != DESCRIBED {
            return Ok(None);
        }
        let handle = reader.word()?;
        if tag == DESCRIBED {
            let rank = reader.take(4)?[3] as usize;
            reader.take(2 * rank)?;
        }
        handles::get(handle).map(Some)
    }

    fn write(&self, out: &mut Vec<u32>) {
        write_tensor(self.clone(), out);
    }
}

impl Crossing for TensorMeta {
    fn read(tag: u32, reader: &mut Reader<'_>) -> Result<Option<Self>, Refusal> {
        if tag != KNOWN {
            return Ok(None);
        }
        let (dtype, rank) = (dtype_of(reader.word()?)?, reader.word()?);
        let (sizes, strides) = (reader.dims(rank)?, reader.dims(rank)?);
        let storage_offset = reader.dim()?;
        Ok(Some(TensorMeta { strides, storage_offset, ..TensorMeta::contiguous(dtype, sizes) }))
    }

    fn write(&self, out: &mut Vec<u32>) {
        out.extend([KNOWN, self.dtype as u32, self.sizes.len() as u32]);
        for dim in self.sizes.iter().chain(&self.strides).chain([&self.storage_offset]) {
            write(&Value::<TensorMeta>::Int(dim.clone()), out);
        }
    }
}

/// A tensor that only keeps its place in a call: a number of the caller's.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place(pub(crate) u32);

impl Crossing for Place {
    fn read(tag: u32, reader: &mut Reader<'_>) -> Result<Option<Self>, Refusal> {
        if tag == arg::TENSOR { reader.word().map(|it| Some(Place(it))) } else { Ok(None) }
    }

    fn write(&self, out: &mut Vec<u32>) {
        out.extend([arg::TENSOR, self.0]);
    }
}

/// What comes in, word by word.
pub(crate) struct Reader<'a>(&'a [u32]);

impl<'a> Reader<'a> {
    /// Reads these words.
    pub(crate) fn new(words: &'a [u32]) -> Self {
        Reader(words)
    }

    /// A list of values that is the whole rest.
    pub(crate) fn rest<T: Crossing>(mut self) -> Result<Vec<Value<T>>, Refusal> {
        let mut res = Vec::new();
        while !self.0.is_empty() {
            res.push(self.value()?);
        }
        Ok(res)
    }

    /// A number of values.
    pub(crate) fn values<T: Crossing>(&mut self) -> Result<Vec<Value<T>>, Refusal> {
        let count = self.word()?;
        (0..count).map(|_| self.value()).collect()
    }

    /// A number of names with values.
    pub(crate) fn named_values<T: Crossing>(&mut self) -> Result<Vec<(Str, Value<T>)>, Refusal> {
        let count = self.word()?;
        (0..count).map(|_| Ok((self.text()?, self.value()?))).collect()
    }

    fn value<T: Crossing>(&mut self) -> Result<Value<T>, Refusal> {
        let named = |found: Option<Value<T>>| found.ok_or_else(|| broken("an unknown number"));
        match self.word()? {
            arg::NONE => Ok(Value::None),
            arg::BOOL => Ok(Value::Bool(self.word()? != 0)),
            arg::INT => Ok(Value::int(self.bits()? as i64)),
            arg::FLOAT => Ok(Value::Float(f64::from_bits(self.bits()?))),
            arg::COMPLEX => {
                let (re, im) = (f64::from_bits(self.bits()?), f64::from_bits(self.bits()?));
                Ok(Value::Complex(Complex64 { re, im }))
            }
            arg::STR => Ok(Value::Str(self.text()?)),
            arg::DTYPE => dtype_of(self.word()?).map(Value::DType),
            arg::DEVICE => {
                let device = self.text()?.parse().map_err(|()| broken("a device"))?;
                Ok(Value::Device(device))
            }
            arg::LAYOUT => named(Layout::ALL.get(self.word()? as usize).copied().map(Value::Layout)),
            arg::MEMORY_FORMAT => named(MemoryFormat::ALL.get(self.word()? as usize).copied().map(Value::MemoryFormat)),
            arg::LIST => self.values().map(Value::List),
            SYMBOLIC => {
                let expr = Parser::default().parse(&self.text()?).map_err(|_| broken("an expression"))?;
                Ok(Value::from(expr))
            }
            tag => T::read(tag, self)?.map(Value::Tensor).ok_or_else(|| broken("an unknown tag")),
        }
    }

    /// A string.
    pub(crate) fn text(&mut self) -> Result<Str, Refusal> {
        let length = self.word()? as usize;
        let words = self.take(length.div_ceil(4))?;
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).take(length).collect();
        let text = String::from_utf8(bytes).map_err(|_| broken("a string"))?;
        Ok(text.as_str().into())
    }

    fn dims(&mut self, rank: u32) -> Result<Vec<SymInt>, Refusal> {
        (0..rank).map(|_| self.dim()).collect()
    }

    fn dim(&mut self) -> Result<SymInt, Refusal> {
        match self.value::<TensorMeta>()? {
            Value::Int(it) => Ok(it),
            _ => Err(broken("a size")),
        }
    }

    fn bits(&mut self) -> Result<u64, Refusal> {
        let words = self.take(2)?;
        Ok(u64::from(words[0]) | u64::from(words[1]) << 32)
    }

    fn word(&mut self) -> Result<u32, Refusal> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, count: usize) -> Result<&'a [u32], Refusal> {
        let (words, rest) = self.0.split_at_checked(count).ok_or_else(|| broken("the end"))?;
        self.0 = rest;
        Ok(words)
    }
}

/// The values as words; tensors get handles.
///
/// # Errors
/// `NotImplemented` for an int that is not known, before anything gets a handle.
pub(crate) fn encode(values: &[Value<Tensor>], out: &mut Vec<u32>) -> Result<(), Refusal> {
    if let Some(unknown) = values.iter().find(|it| is_unknown(it)) {
        let what = format!("a result is a {} whose value is not known", unknown.kind_name());
        return Err(Diagnostic::new(Code::NotImplemented, what).into());
    }
    values.iter().for_each(|it| write(it, out));
    Ok(())
}

/// What is known of values as words.
pub(crate) fn encode_known(values: &[Value<TensorMeta>]) -> Vec<u32> {
    let mut out = Vec::new();
    values.iter().for_each(|it| write(it, &mut out));
    out
}

/// The values as words of their own.
///
/// # Errors
/// As [`encode`].
pub(crate) fn encoded(values: &[Value<Tensor>]) -> Result<Vec<u32>, Refusal> {
    let mut out = Vec::new();
    encode(values, &mut out)?;
    Ok(out)
}

/// A tensor as words.
pub(crate) fn described(tensor: Tensor) -> Vec<u32> {
    let mut out = Vec::new();
    write_tensor(tensor, &mut out);
    out
}

fn is_unknown(value: &Value<Tensor>) -> bool {
    match value {
        Value::Int(it) => it.as_int().is_none(),
        Value::SymBool(_) | Value::SymFloat(_) => true,
        Value::List(items) => items.iter().any(is_unknown),
        Value::None
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Complex(_)
        | Value::Str(_)
        | Value::DType(_)
        | Value::Device(_)
        | Value::Layout(_)
        | Value::MemoryFormat(_)
        | Value::Tensor(_) => false,
    }
}

/// A value as words.
pub(crate) fn write<T: Crossing>(value: &Value<T>, out: &mut Vec<u32>) {
    match value {
        Value::None => out.push(arg::NONE),
        Value::Bool(it) => out.extend([arg::BOOL, u32::from(*it)]),
        Value::Int(it) => match it.as_int() {
            Some(known) => {
                out.push(arg::INT);
                write_bits(known as u64, out);
            }
            None => write_text(SYMBOLIC, &it.srepr(), out),
        },
        Value::Float(it) => {
            out.push(arg::FLOAT);
            write_bits(it.to_bits(), out);
        }
        Value::Complex(it) => {
            out.push(arg::COMPLEX);
            write_bits(it.re.to_bits(), out);
            write_bits(it.im.to_bits(), out);
        }
        Value::Str(it) => write_text(arg::STR, it, out),
        Value::DType(it) => out.extend([arg::DTYPE, *it as u32]),
        Value::Device(it) => write_text(arg::DEVICE, &it.to_string(), out),
        Value::Layout(it) => out.extend([arg::LAYOUT, *it as u32]),
        Value::MemoryFormat(it) => out.extend([arg::MEMORY_FORMAT, *it as u32]),
        Value::Tensor(it) => it.write(out),
        Value::List(items) => {
            out.extend([arg::LIST, items.len() as u32]);
            items.iter().for_each(|it| write(it, out));
        }
        Value::SymBool(it) => write_text(SYMBOLIC, &it.srepr(), out),
        Value::SymFloat(it) => write_text(SYMBOLIC, &it.srepr(), out),
    }
}

/// Sizes, strides and the like are below 2^32: an address has 32 bits here.
fn write_tensor(tensor: Tensor, out: &mut Vec<u32>) {
    let at = out.len();
    let storage = tensor.storage().id() as u32;
    out.extend([DESCRIBED, 0, tensor.dtype() as u32, tensor.offset() as u32, storage, tensor.rank() as u32]);
    out.extend(tensor.sizes().iter().chain(tensor.strides()).map(|&it| it as u32));
    out[at + 1] = handles::insert(tensor);
}

/// A tag and a string.
pub(crate) fn write_text(tag: u32, text: &str, out: &mut Vec<u32>) {
    out.extend([tag, text.len() as u32]);
    out.extend(text.as_bytes().chunks(4).map(|it| {
        let mut word = [0; 4];
        word[..it.len()].copy_from_slice(it);
        u32::from_le_bytes(word)
    }));
}

fn write_bits(bits: u64, out: &mut Vec<u32>) {
    out.extend([bits as u32, (bits >> 32) as u32]);
}

fn broken(expected: &str) -> Refusal {
    Diagnostic::new(Code::Internal, format!("the words of a call are broken: {expected}"))
        .help("this is a bug of tracefx, please report it")
        .into()
}
