//! The stack machine of pickles, without calls.

use super::opcode::{Opcode, Refused};
use super::value::{Global, Object, ObjectKind, Pickle, Value, ValueId};
use crate::Limits;
use std::collections::HashMap;
use tracefx_core::allocate::copied;
use tracefx_core::{Code, Diagnostic, Result};

/// The stack machine. Every instruction costs at least one byte, so it ends after as many steps as there are bytes.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a Limits,
    values: Vec<Value>,
    stack: Vec<ValueId>,
    marks: Vec<usize>,
    memo: HashMap<u32, ValueId>,
}

// A file says these once for every storage and every flag, so they are made once.
const NONE: ValueId = ValueId(0);
const TRUE: ValueId = ValueId(1);
const FALSE: ValueId = ValueId(2);
const EMPTY_TUPLE: ValueId = ValueId(3);

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8], limits: &'a Limits) -> Self {
        Machine {
            bytes,
            at: 0,
            limits,
            values: vec![Value::None, Value::Bool(true), Value::Bool(false), Value::Tuple(Box::new([]))],
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<Pickle> {
        if self.bytes.first() != Some(&0x80) {
            return Err(self.malformed("it does not begin with a protocol number"));
        }
        loop {
            let opcode = match Opcode::from_byte(self.take::<1>()?[0]) {
                Ok(opcode) => opcode,
                Err(Refused::Forbidden(name)) => {
                    return Err(Diagnostic::new(
                        Code::PickleForbidden,
                        format!("the pickle uses {name} at byte {}; it was not run", self.at - 1),
                    )
                    .note("files of PyTorch do not need this instruction"));
                }
                Err(Refused::Unknown) => {
                    self.at -= 1;
                    return Err(self.malformed(format!("{:#04x} is no instruction", self.bytes[self.at])));
                }
            };
            if opcode == Opcode::Stop {
                let root = self.pop()?;
                return Ok(Pickle { values: self.values, root });
            }
            self.step(opcode)?;
            Limits::check("pickle_stack", self.limits.pickle_stack, (self.stack.len() + self.marks.len()) as u64)?;
        }
    }

    fn step(&mut self, opcode: Opcode) -> Result<()> {
        match opcode {
            Opcode::Proto => {
                let version = self.take::<1>()?[0];
                if !(2..=5).contains(&version) {
                    return Err(self.malformed(format!("protocol {version} is not one of 2 to 5")));
                }
            }
            // The length of a frame is a hint for reading ahead; there is nothing to gain from it in memory.
            Opcode::Frame => drop(self.take::<8>()?),
            Opcode::Stop => unreachable!("run ends at STOP"),
            Opcode::Mark => self.marks.push(self.stack.len()),
            Opcode::Pop => drop(self.pop()?),
            Opcode::PopMark => drop(self.pop_to_mark()?),
            Opcode::Dup => {
                let top = self.top()?;
                self.stack.push(top);
            }
            Opcode::None => self.stack.push(NONE),
            Opcode::True => self.stack.push(TRUE),
            Opcode::False => self.stack.push(FALSE),
            Opcode::BinInt => {
                let it = i32::from_le_bytes(self.take()?);
                self.push(Value::Int(i64::from(it)))?;
            }
            Opcode::BinInt1 => {
                let it = self.take::<1>()?[0];
                self.push(Value::Int(i64::from(it)))?;
            }
            Opcode::BinInt2 => {
                let it = u16::from_le_bytes(self.take()?);
                self.push(Value::Int(i64::from(it)))?;
            }
            Opcode::Long1 => {
                let len = u64::from(self.take::<1>()?[0]);
                self.push_long(len)?;
            }
            Opcode::Long4 => {
                let len = u64::from(u32::from_le_bytes(self.take()?));
                self.push_long(len)?;
            }
            Opcode::BinFloat => {
                let it = f64::from_be_bytes(self.take()?);
                self.push(Value::Float(it))?;
            }
            Opcode::ShortUnicode | Opcode::BinUnicode | Opcode::BinUnicode8 => {
                let text = self.take_counted(opcode)?;
                let text = std::str::from_utf8(text).map_err(|_| self.malformed("a string is not UTF-8"))?;
                self.push(Value::Str(text.into()))?;
            }
            Opcode::ShortBytes | Opcode::BinBytes | Opcode::BinBytes8 | Opcode::ByteArray8 => {
                let bytes = self.take_counted(opcode)?;
                self.push(Value::Bytes(copied(bytes)?.into()))?;
            }
            Opcode::EmptyTuple => self.stack.push(EMPTY_TUPLE),
            Opcode::Tuple => {
                let items = self.pop_to_mark()?;
                self.push(Value::Tuple(items.into()))?;
            }
            Opcode::Tuple1 => self.push_tuple(1)?,
            Opcode::Tuple2 => self.push_tuple(2)?,
            Opcode::Tuple3 => self.push_tuple(3)?,
            Opcode::EmptyList => self.push(Value::List(Vec::new()))?,
            Opcode::List => {
                let items = self.pop_to_mark()?;
                self.push(Value::List(items))?;
            }
            Opcode::Append => {
                let item = self.pop()?;
                self.extend(vec![item])?;
            }
            Opcode::Appends | Opcode::AddItems => {
                let items = self.pop_to_mark()?;
                self.extend(items)?;
            }
            Opcode::EmptyDict => self.push(Value::Dict(Vec::new()))?,
            Opcode::Dict => {
                let items = self.pop_to_mark()?;
                let pairs = self.pairs(&items)?;
                self.push(Value::Dict(pairs))?;
            }
            Opcode::SetItem => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(vec![(key, value)])?;
            }
            Opcode::SetItems => {
                let items = self.pop_to_mark()?;
                let pairs = self.pairs(&items)?;
                self.set_items(pairs)?;
            }
            Opcode::EmptySet => self.push(Value::Set(Vec::new()))?,
            Opcode::FrozenSet => {
                let items = self.pop_to_mark()?;
                self.push(Value::Set(items))?;
            }
            Opcode::Global => {
                let module = self.take_line()?.into();
                let name = self.take_line()?.into();
                self.push(Value::Global(Box::new(Global { module, name })))?;
            }
            Opcode::StackGlobal => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |id: ValueId| match &self.values[id.0 as usize] {
                    Value::Str(text) => Some(text.clone()),
                    _ => None,
                };
                let (Some(module), Some(name)) = (text(module), text(name)) else {
                    return Err(self.malformed("the name of a global is not a string"));
                };
                self.push(Value::Global(Box::new(Global { module, name })))?;
            }
            Opcode::Reduce => self.push_object(ObjectKind::Call, false)?,
            Opcode::NewObj => self.push_object(ObjectKind::New, false)?,
            Opcode::NewObjEx => self.push_object(ObjectKind::New, true)?,
            Opcode::Build => {
                let state = self.pop()?;
                let top = self.top()?;
                let Value::Object(object) = &mut self.values[top.0 as usize] else {
                    return Err(self.malformed("a state is given to a value that has none"));
                };
                object.state = Some(state);
            }
            Opcode::BinPersId => {
                let id = self.pop()?;
                self.push(Value::Persistent(id))?;
            }
            Opcode::BinPut => {
                let slot = u32::from(self.take::<1>()?[0]);
                self.remember(slot)?;
            }
            Opcode::LongBinPut => {
                let slot = u32::from_le_bytes(self.take()?);
                self.remember(slot)?;
            }
            Opcode::Memoize => {
                let slot = self.memo.len() as u32;
                self.remember(slot)?;
            }
            Opcode::BinGet => {
                let slot = u32::from(self.take::<1>()?[0]);
                self.recall(slot)?;
            }
            Opcode::LongBinGet => {
                let slot = u32::from_le_bytes(self.take()?);
                self.recall(slot)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<()> {
        Limits::check("pickle_values", self.limits.pickle_values.min(u64::from(u32::MAX)), self.values.len() as u64)?;
        self.stack.push(ValueId(self.values.len() as u32));
        self.values.push(value);
        Ok(())
    }

    fn push_tuple(&mut self, len: usize) -> Result<()> {
        let mut items = vec![NONE; len];
        for item in items.iter_mut().rev() {
            *item = self.pop()?;
        }
        self.push(Value::Tuple(items.into()))
    }

    fn push_long(&mut self, len: u64) -> Result<()> {
        let bytes = self.take_len(len)?;
        // Two's complement of any length; the sign is the highest bit of the last byte.
        let sign = if bytes.last().is_some_and(|&it| it >= 0x80) { 0xff } else { 0 };
        let mut low = [sign; 8];
        let n = bytes.len().min(8);
        low[..n].copy_from_slice(&bytes[..n]);
        let fits = bytes[n..].iter().all(|&it| it == sign) && (low[7] >= 0x80) == (sign == 0xff);
        self.push(if fits { Value::Int(i64::from_le_bytes(low)) } else { Value::BigInt(copied(bytes)?.into()) })
    }

    fn push_object(&mut self, kind: ObjectKind, has_kwargs: bool) -> Result<()> {
        let kwargs = if has_kwargs { Some(self.pop()?) } else { None };
        let (args, callable) = (self.pop()?, self.pop()?);
        if !matches!(self.values[args.0 as usize], Value::Tuple(_)) {
            return Err(self.malformed("the arguments of a call are not a tuple"));
        }
        self.push(Value::Object(Box::new(Object {
            kind,
            callable,
            args,
            kwargs,
            state: None,
            items: Vec::new(),
            pairs: Vec::new(),
        })))
    }

    fn extend(&mut self, new: Vec<ValueId>) -> Result<()> {
        let top = self.top()?;
        match &mut self.values[top.0 as usize] {
            Value::List(items) | Value::Set(items) => items.extend(new),
            Value::Object(object) => object.items.extend(new),
            _ => return Err(self.malformed("items are added to a value that has none")),
        }
        Ok(())
    }

    fn set_items(&mut self, new: Vec<(ValueId, ValueId)>) -> Result<()> {
        let top = self.top()?;
        match &mut self.values[top.0 as usize] {
            Value::Dict(pairs) => pairs.extend(new),
            Value::Object(object) => object.pairs.extend(new),
            _ => return Err(self.malformed("pairs are set in a value that has none")),
        }
        Ok(())
    }

    fn pairs(&self, items: &[ValueId]) -> Result<Vec<(ValueId, ValueId)>> {
        if items.len() % 2 == 1 {
            return Err(self.malformed("a key has no value"));
        }
        Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    fn remember(&mut self, slot: u32) -> Result<()> {
        let top = self.top()?;
        self.memo.insert(slot, top);
        Limits::check("pickle_memo", self.limits.pickle_memo, self.memo.len() as u64)
    }

    fn recall(&mut self, slot: u32) -> Result<()> {
        let Some(&id) = self.memo.get(&slot) else {
            return Err(self.malformed(format!("memo {slot} was never filled")));
        };
        self.stack.push(id);
        Ok(())
    }

    /// The height below which the stack belongs to an enclosing mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<ValueId> {
        if self.stack.len() > self.floor() {
            return Ok(self.stack[self.stack.len() - 1]);
        }
        Err(self.malformed("the stack is empty"))
    }

    fn pop(&mut self) -> Result<ValueId> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<ValueId>> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(self.malformed("there is no mark")),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.malformed("it ends too early")),
        }
    }

    fn take_counted(&mut self, opcode: Opcode) -> Result<&'a [u8]> {
        let len = match opcode {
            Opcode::ShortUnicode | Opcode::ShortBytes => u64::from(self.take::<1>()?[0]),
            Opcode::BinUnicode | Opcode::BinBytes => u64::from(u32::from_le_bytes(self.take()?)),
            _ => u64::from_le_bytes(self.take()?),
        };
        self.take_len(len)
    }

    fn take_len(&mut self, len: u64) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        if len > rest.len() as u64 {
            return Err(self.malformed(format!("{len} bytes are announced, but {} are left", rest.len())));
        }
        self.at += len as usize;
        Ok(&rest[..len as usize])
    }

    fn take_line(&mut self) -> Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let Some(len) = rest.iter().position(|&it| it == b'\n') else {
            return Err(self.malformed("the name of a global does not end"));
        };
        Limits::check("name_bytes", self.limits.name_bytes, len as u64)?;
        self.at += len + 1;
        std::str::from_utf8(&rest[..len]).map_err(|_| self.malformed("the name of a global is not UTF-8"))
    }

    fn malformed(&self, message: impl std::fmt::Display) -> Diagnostic {
        Diagnostic::new(Code::PickleMalformed, format!("the pickle is malformed at byte {}: {message}", self.at))
    }
}
