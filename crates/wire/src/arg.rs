//! Arguments: pre-order words.

use crate::cursor::Cursor;
use crate::format::arg;
use crate::options::MAX_DEPTH;
use crate::strings::{StringWriter, Strings};
use crate::words::Words;
use rustc_hash::FxHashSet;
use tracefx_core::{Code, Complex64, DType, Device, Diagnostic, Layout, MemoryFormat, Result};
use tracefx_ir::{Arg, NodeId, Str};

/// Writes an argument; `position` gives the place of a node that stands before this one.
pub(crate) fn write_arg(
    words: &mut Words,
    strings: &mut StringWriter,
    argument: &Arg,
    depth: usize,
    position: &dyn Fn(NodeId) -> Result<usize>,
) -> Result<()> {
    check_depth(depth)?;
    let mut items = |words: &mut Words, items: &[Arg]| {
        items.iter().try_for_each(|it| write_arg(words, strings, it, depth + 1, position))
    };
    match argument {
        Arg::None => words.tagged(arg::NONE, 0),
        Arg::Ellipsis => words.tagged(arg::ELLIPSIS, 0),
        Arg::Bool(it) => words.tagged(arg::BOOL, usize::from(*it)),
        Arg::Int(it) => {
            words.tagged(arg::INT, 0)?;
            words.pair(*it as u64);
            Ok(())
        }
        Arg::Float(it) => {
            words.tagged(arg::FLOAT, 0)?;
            words.pair(it.to_bits());
            Ok(())
        }
        Arg::Complex(it) => {
            words.tagged(arg::COMPLEX, 0)?;
            words.pair(it.re.to_bits());
            words.pair(it.im.to_bits());
            Ok(())
        }
        Arg::Str(it) => words.tagged(arg::STR, strings.index(it)),
        Arg::DType(it) => words.tagged(arg::DTYPE, number_of(DType::ALL, it)),
        Arg::Device(it) => write_device(words, strings, it),
        Arg::Layout(it) => words.tagged(arg::LAYOUT, number_of(Layout::ALL, it)),
        Arg::MemoryFormat(it) => words.tagged(arg::MEMORY_FORMAT, number_of(MemoryFormat::ALL, it)),
        Arg::Node(it) => words.tagged(arg::NODE, position(*it)?),
        Arg::Op(it) => words.tagged(arg::OP, strings.index(it)),
        Arg::List(it) => {
            words.tagged(arg::LIST, it.len())?;
            items(words, it)
        }
        Arg::Tuple(it) => {
            words.tagged(arg::TUPLE, it.len())?;
            items(words, it)
        }
        Arg::Dict(it) => {
            words.tagged(arg::DICT, it.len())?;
            write_entries(words, strings, it, depth + 1, position)
        }
        Arg::Slice(it) => {
            words.tagged(arg::SLICE, 0)?;
            items(words, &it[..])
        }
    }
}

/// Writes the entries of a dict, or keyword arguments: keys and values.
pub(crate) fn write_entries(
    words: &mut Words,
    strings: &mut StringWriter,
    entries: &[(Str, Arg)],
    depth: usize,
    position: &dyn Fn(NodeId) -> Result<usize>,
) -> Result<()> {
    let mut seen = FxHashSet::default();
    for (key, value) in entries {
        if !seen.insert(key) {
            return Err(Diagnostic::new(Code::GraphArgument, format!("the key `{key}` is there twice")));
        }
        strings.write(words, key)?;
        write_arg(words, strings, value, depth, position)?;
    }
    Ok(())
}

/// Writes a device.
pub(crate) fn write_device(words: &mut Words, strings: &mut StringWriter, device: &Device) -> Result<()> {
    let kind = strings.index(&device.kind);
    let refused = || Diagnostic::new(Code::GraphArgument, format!("`{device}` is not a device"));
    if !is_device_kind(&device.kind) {
        return Err(refused());
    }
    match device.index {
        None => words.tagged(arg::DEVICE, kind),
        Some(index) => {
            words.tagged(arg::DEVICE_INDEX, kind)?;
            words.word(i32::try_from(index).ok().and_then(|it| u32::try_from(it).ok()).ok_or_else(refused)?);
            Ok(())
        }
    }
}

fn is_device_kind(kind: &str) -> bool {
    !kind.is_empty() && kind.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Reads an argument; it may refer to the nodes that are there.
pub(crate) fn read_arg(cursor: &mut Cursor<'_>, strings: &mut Strings, nodes: &[NodeId], depth: usize) -> Result<Arg> {
    if depth >= MAX_DEPTH {
        return Err(cursor.exceeds(format!("an argument is nested deeper than {MAX_DEPTH} levels")));
    }
    let word = cursor.word()?;
    let (tag, payload) = (word & 0xff, word >> 8);
    let read = match tag {
        arg::NONE => Arg::None,
        arg::ELLIPSIS => Arg::Ellipsis,
        arg::BOOL => Arg::Bool(read_bool(cursor, payload)?),
        arg::INT => Arg::Int(cursor.pair()? as i64),
        arg::FLOAT => Arg::Float(f64::from_bits(cursor.pair()?)),
        arg::COMPLEX => {
            let (re, im) = (f64::from_bits(cursor.pair()?), f64::from_bits(cursor.pair()?));
            Arg::Complex(Complex64 { re, im })
        }
        arg::STR => Arg::Str(strings.get(cursor, payload)?),
        arg::DTYPE => Arg::DType(numbered(cursor, DType::ALL, payload, "dtype")?),
        arg::DEVICE | arg::DEVICE_INDEX => Arg::Device(read_device_after(cursor, strings, word)?),
        arg::LAYOUT => Arg::Layout(numbered(cursor, Layout::ALL, payload, "layout")?),
        arg::MEMORY_FORMAT => Arg::MemoryFormat(numbered(cursor, MemoryFormat::ALL, payload, "memory format")?),
        arg::NODE => match nodes.get(payload as usize) {
            Some(node) => Arg::Node(*node),
            None => {
                let what = format!("node {} uses node {payload}, which is not before it", nodes.len());
                return Err(cursor.fail(what));
            }
        },
        arg::OP => Arg::Op(strings.get(cursor, payload)?),
        arg::LIST | arg::TUPLE => {
            let count = cursor.check_count(payload, 1, "items")?;
            let items =
                (0..count).map(|_| read_arg(cursor, strings, nodes, depth + 1)).collect::<Result<Vec<Arg>>>()?;
            if tag == arg::LIST { Arg::List(items) } else { Arg::Tuple(items) }
        }
        arg::DICT => {
            let count = cursor.check_count(payload, 2, "entries")?;
            Arg::Dict(read_entries(cursor, strings, nodes, count, depth + 1)?)
        }
        arg::SLICE => {
            let mut part = || read_arg(cursor, strings, nodes, depth + 1);
            Arg::Slice(Box::new([part()?, part()?, part()?]))
        }
        _ => return Err(cursor.fail(format!("there is no argument of kind {tag} here"))),
    };
    let is_plain = matches!(tag, arg::NONE | arg::ELLIPSIS | arg::INT | arg::FLOAT | arg::COMPLEX | arg::SLICE);
    if is_plain && payload != 0 {
        return Err(cursor.fail(format!("an argument of kind {tag} has the payload {payload}")));
    }
    Ok(read)
}

/// Reads the entries of a dict, or keyword arguments.
pub(crate) fn read_entries(
    cursor: &mut Cursor<'_>,
    strings: &mut Strings,
    nodes: &[NodeId],
    count: usize,
    depth: usize,
) -> Result<Vec<(Str, Arg)>> {
    let mut seen = FxHashSet::default();
    let mut entries = Vec::new();
    for _ in 0..count {
        let key = strings.next(cursor)?;
        if !seen.insert(Str::clone(&key)) {
            return Err(cursor.fail(format!("the key `{key}` is there twice")));
        }
        entries.push((key, read_arg(cursor, strings, nodes, depth)?));
    }
    Ok(entries)
}

/// Reads a device.
pub(crate) fn read_device(cursor: &mut Cursor<'_>, strings: &mut Strings) -> Result<Device> {
    let word = cursor.word()?;
    read_device_after(cursor, strings, word)
}

fn read_device_after(cursor: &mut Cursor<'_>, strings: &mut Strings, word: u32) -> Result<Device> {
    let kind = strings.get(cursor, word >> 8)?;
    if !is_device_kind(&kind) {
        return Err(cursor.fail(format!("`{kind}` is not a device")));
    }
    let index = match word & 0xff {
        arg::DEVICE => None,
        arg::DEVICE_INDEX => match i32::try_from(cursor.word()?) {
            Ok(index) => Some(i64::from(index)),
            Err(_) => return Err(cursor.fail("the index of a device takes 31 bits")),
        },
        tag => return Err(cursor.fail(format!("there is no device of kind {tag}"))),
    };
    Ok(Device { kind: kind.to_string().into(), index })
}

/// Reads a bool that is a payload or a word.
pub(crate) fn read_bool(cursor: &Cursor<'_>, value: u32) -> Result<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(cursor.fail(format!("{value} is neither true nor false"))),
    }
}

/// The value that a number stands for.
pub(crate) fn numbered<T: Copy>(cursor: &Cursor<'_>, all: &[T], number: u32, what: &str) -> Result<T> {
    all.get(number as usize).copied().ok_or_else(|| cursor.fail(format!("there is no {what} {number}")))
}

/// The number that stands for a value.
pub(crate) fn number_of<T: PartialEq>(all: &[T], value: &T) -> usize {
    all.iter().position(|it| it == value).expect("the table lists every value of the enum")
}

/// Refuses to write what no reader would accept.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(Diagnostic::new(Code::LimitExceeded, format!("a value is nested deeper than {MAX_DEPTH} levels")))
}
