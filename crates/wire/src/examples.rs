//! Example inputs: values as arguments, but that they may be tensors.

use crate::arg::{check_depth, read_arg, write_arg};
use crate::cursor::Cursor;
use crate::format::arg;
use crate::options::MAX_DEPTH;
use crate::strings::{StringWriter, Strings};
use crate::tensors::{TensorWriter, Tensors};
use crate::words::Words;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::Arg;
use tracefx_ops::Value;

fn symbolic(value: &Value<Tensor>) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, format!("an example input is a symbolic {}", value.kind_name()))
}

/// Writes an example input.
pub(crate) fn write_example(
    words: &mut Words,
    strings: &mut StringWriter,
    tensors: &mut TensorWriter,
    value: &Value<Tensor>,
    depth: usize,
) -> Result<()> {
    check_depth(depth)?;
    let leaf = match value {
        Value::Tensor(tensor) => {
            let index = tensors.push(tensor);
            return words.tagged(arg::TENSOR, index);
        }
        Value::List(items) => {
            words.tagged(arg::LIST, items.len())?;
            return items.iter().try_for_each(|it| write_example(words, strings, tensors, it, depth + 1));
        }
        Value::None => Arg::None,
        Value::Bool(it) => Arg::Bool(*it),
        Value::Int(it) => match it.as_int() {
            Some(known) => Arg::Int(known),
            None => return Err(symbolic(value)),
        },
        Value::SymBool(_) | Value::SymFloat(_) => return Err(symbolic(value)),
        Value::Float(it) => Arg::Float(*it),
        Value::Complex(it) => Arg::Complex(*it),
        Value::Str(it) => Arg::Str(it.clone()),
        Value::DType(it) => Arg::DType(*it),
        Value::Device(it) => Arg::Device(it.clone()),
        Value::Layout(it) => Arg::Layout(*it),
        Value::MemoryFormat(it) => Arg::MemoryFormat(*it),
    };
    write_arg(words, strings, &leaf, depth, &|_| unreachable!("an example input has no nodes"))
}

/// Reads an example input.
pub(crate) fn read_example(
    cursor: &mut Cursor<'_>,
    strings: &mut Strings,
    tensors: &mut Tensors,
    depth: usize,
) -> Result<Value<Tensor>> {
    if depth >= MAX_DEPTH {
        return Err(cursor.exceeds(format!("an example input is nested deeper than {MAX_DEPTH} levels")));
    }
    let head = cursor.peek()?;
    match head & 0xff {
        arg::TENSOR => {
            cursor.word()?;
            Ok(Value::Tensor(tensors.take(cursor, head >> 8)?))
        }
        arg::LIST => {
            cursor.word()?;
            let count = cursor.check_count(head >> 8, 1, "items")?;
            let items = (0..count).map(|_| read_example(cursor, strings, tensors, depth + 1));
            Ok(Value::List(items.collect::<Result<Vec<_>>>()?))
        }
        _ => match read_arg(cursor, strings, &[], depth)? {
            Arg::None => Ok(Value::None),
            Arg::Bool(it) => Ok(Value::Bool(it)),
            Arg::Int(it) => Ok(Value::int(it)),
            Arg::Float(it) => Ok(Value::Float(it)),
            Arg::Complex(it) => Ok(Value::Complex(it)),
            Arg::Str(it) => Ok(Value::Str(it)),
            Arg::DType(it) => Ok(Value::DType(it)),
            Arg::Device(it) => Ok(Value::Device(it)),
            Arg::Layout(it) => Ok(Value::Layout(it)),
            Arg::MemoryFormat(it) => Ok(Value::MemoryFormat(it)),
            Arg::Ellipsis | Arg::Node(_) | Arg::Op(_) | Arg::List(_) | Arg::Tuple(_) | Arg::Dict(_) | Arg::Slice(_) => {
                Err(cursor.fail("an example input cannot be of this kind"))
            }
        },
    }
}
