//! Places of signatures, and the structure of nested inputs and outputs.

use crate::arg::{check_depth, read_arg, write_arg};
use crate::cursor::Cursor;
use crate::format::argument;
use crate::options::MAX_DEPTH;
use crate::strings::{StringWriter, Strings};
use crate::words::Words;
use tracefx_core::Result;
use tracefx_export::{Argument, CallSignature, ConstantValue, TreeSpec};
use tracefx_ir::Arg;

/// Writes a place of a signature.
pub(crate) fn write_argument(words: &mut Words, strings: &mut StringWriter, place: &Argument) -> Result<()> {
    let name = strings.index(place.name());
    match place {
        Argument::Tensor(_) => words.tagged(argument::TENSOR, name),
        Argument::SymInt(_) => words.tagged(argument::SYM_INT, name),
        Argument::SymFloat(_) => words.tagged(argument::SYM_FLOAT, name),
        Argument::SymBool(_) => words.tagged(argument::SYM_BOOL, name),
        Argument::CustomObj { class_fqn, .. } => {
            words.tagged(argument::CUSTOM_OBJ, name)?;
            strings.write(words, class_fqn)
        }
        Argument::Token(_) => words.tagged(argument::TOKEN, name),
        Argument::Constant { value, .. } => {
            words.tagged(argument::CONSTANT, name)?;
            let value = match value {
                ConstantValue::None => Arg::None,
                ConstantValue::Bool(it) => Arg::Bool(*it),
                ConstantValue::Int(it) => Arg::Int(*it),
                // Inputs are compared with the value, and to that all NaNs are one.
                ConstantValue::Float(it) if it.is_nan() => Arg::Float(f64::NAN),
                ConstantValue::Float(it) => Arg::Float(*it),
                ConstantValue::Str(it) => Arg::Str(it.clone()),
            };
            write_arg(words, strings, &value, 0, &|_| unreachable!("a constant has no nodes"))
        }
    }
}

/// Reads a place of a signature.
pub(crate) fn read_argument(cursor: &mut Cursor<'_>, strings: &mut Strings) -> Result<Argument> {
    let word = cursor.word()?;
    let name = strings.get(cursor, word >> 8)?;
    Ok(match word & 0xff {
        argument::TENSOR => Argument::Tensor(name),
        argument::SYM_INT => Argument::SymInt(name),
        argument::SYM_FLOAT => Argument::SymFloat(name),
        argument::SYM_BOOL => Argument::SymBool(name),
        argument::CUSTOM_OBJ => Argument::CustomObj { name, class_fqn: strings.next(cursor)? },
        argument::TOKEN => Argument::Token(name),
        argument::CONSTANT => Argument::Constant { name, value: read_constant(cursor, strings)? },
        tag => return Err(cursor.fail(format!("there is no place of kind {tag}"))),
    })
}

fn read_constant(cursor: &mut Cursor<'_>, strings: &mut Strings) -> Result<ConstantValue> {
    match read_arg(cursor, strings, &[], 0)? {
        Arg::None => Ok(ConstantValue::None),
        Arg::Bool(it) => Ok(ConstantValue::Bool(it)),
        Arg::Int(it) => Ok(ConstantValue::Int(it)),
        Arg::Float(it) if !it.is_nan() || it.to_bits() == f64::NAN.to_bits() => Ok(ConstantValue::Float(it)),
        Arg::Str(it) => Ok(ConstantValue::Str(it)),
        Arg::Float(_)
        | Arg::Ellipsis
        | Arg::Complex(_)
        | Arg::DType(_)
        | Arg::Device(_)
        | Arg::Layout(_)
        | Arg::MemoryFormat(_)
        | Arg::Node(_)
        | Arg::Op(_)
        | Arg::List(_)
        | Arg::Tuple(_)
        | Arg::Dict(_)
        | Arg::Slice(_) => Err(cursor.fail("an input or output cannot be fixed to a value of this kind")),
    }
}

/// Writes the signature of a module whose calls are kept.
pub(crate) fn write_call_signature(
    words: &mut Words,
    strings: &mut StringWriter,
    signature: &CallSignature,
) -> Result<()> {
    for places in [&signature.inputs, &signature.outputs] {
        words.count(places.len())?;
        places.iter().try_for_each(|it| write_argument(words, strings, it))?;
    }
    write_tree(words, strings, &signature.in_spec, 0)?;
    write_tree(words, strings, &signature.out_spec, 0)?;
    match &signature.forward_arg_names {
        Some(names) => {
            words.count(names.len() + 1)?;
            names.iter().try_for_each(|it| strings.write(words, it))
        }
        None => words.count(0),
    }
}

/// Reads the signature of a module whose calls are kept.
pub(crate) fn read_call_signature(cursor: &mut Cursor<'_>, strings: &mut Strings) -> Result<CallSignature> {
    let mut places = |cursor: &mut Cursor<'_>| {
        let count = cursor.count(1, "places")?;
        (0..count).map(|_| read_argument(cursor, strings)).collect::<Result<Vec<_>>>()
    };
    let (inputs, outputs) = (places(cursor)?, places(cursor)?);
    let in_spec = read_tree(cursor, strings, 0)?;
    let out_spec = read_tree(cursor, strings, 0)?;
    let forward_arg_names = match cursor.word()? {
        0 => None,
        count => {
            let count = cursor.check_count(count - 1, 1, "names")?;
            Some((0..count).map(|_| strings.next(cursor)).collect::<Result<Vec<_>>>()?)
        }
    };
    Ok(CallSignature { inputs, outputs, in_spec, out_spec, forward_arg_names })
}

fn write_tree(words: &mut Words, strings: &mut StringWriter, spec: &TreeSpec, depth: usize) -> Result<()> {
    check_depth(depth)?;
    strings.write_optional(words, spec.ty.as_deref())?;
    strings.write_optional(words, spec.context.as_deref())?;
    words.count(spec.children.len())?;
    spec.children.iter().try_for_each(|it| write_tree(words, strings, it, depth + 1))
}

fn read_tree(cursor: &mut Cursor<'_>, strings: &mut Strings, depth: usize) -> Result<TreeSpec> {
    if depth >= MAX_DEPTH {
        return Err(cursor.exceeds(format!("a structure is nested deeper than {MAX_DEPTH} levels")));
    }
    let ty = strings.next_optional(cursor)?;
    let context = strings.next_optional(cursor)?;
    let count = cursor.count(3, "children")?;
    let children = (0..count).map(|_| read_tree(cursor, strings, depth + 1)).collect::<Result<Vec<_>>>()?;
    Ok(TreeSpec { ty, context, children })
}
