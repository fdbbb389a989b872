//! `META`: what passes and the exporter have noted about nodes. `SYMS`: the expressions in it.

use crate::arg::{check_depth, number_of, numbered, read_bool, read_device, write_device};
use crate::cursor::Cursor;
use crate::format::val;
use crate::options::MAX_DEPTH;
use crate::strings::{StringWriter, Strings};
use crate::symbols::{ExprWriter, Exprs};
use crate::words::Words;
use tracefx_core::{Code, DType, Diagnostic, Layout, Result};
use tracefx_ir::{Graph, TensorMeta, Val};
use tracefx_sym::Expr;

/// The key of the abstract value in Python's and TypeScript's `meta`, where all notes have keys.
const VAL: &str = "val";

/// Writes the notes of one graph's nodes: a record for each node that has any.
pub(crate) fn write_meta(
    words: &mut Words,
    strings: &mut StringWriter,
    exprs: &mut ExprWriter,
    graph: &Graph,
) -> Result<()> {
    let noted = |it: &tracefx_ir::NodeId| {
        let meta = &graph.node(*it).meta;
        meta.val.is_some() || !meta.entries.is_empty()
    };
    words.count(graph.nodes().filter(noted).count())?;
    for (at, id) in graph.nodes().enumerate().filter(|(_, id)| noted(id)) {
        let meta = &graph.node(id).meta;
        words.count(at)?;
        words.word(u32::from(meta.val.is_some()));
        words.count(meta.entries.len())?;
        if let Some(value) = &meta.val {
            write_val(words, strings, exprs, value, 0).map_err(|it| it.node(&**graph.node(id).name()))?;
        }
        for (key, text) in &meta.entries {
            if &**key == VAL {
                let what = "a text is noted as `val`, which is the key of the abstract value";
                return Err(Diagnostic::new(Code::GraphArgument, what).node(&**graph.node(id).name()));
            }
            strings.write(words, key)?;
            strings.write(words, text)?;
        }
    }
    Ok(())
}

/// Reads the notes of one graph's nodes.
pub(crate) fn read_meta(
    cursor: &mut Cursor<'_>,
    strings: &mut Strings,
    exprs: &mut Exprs,
    graph: &mut Graph,
) -> Result<()> {
    let nodes: Vec<_> = graph.nodes().collect();
    let mut next = 0;
    for _ in 0..cursor.count(3, "records")? {
        let at = cursor.word()? as usize;
        if at < next || at >= nodes.len() {
            let what = format!("a record of node {at} stands where one of {next} to {} may", nodes.len());
            return Err(cursor.fail(what));
        }
        next = at + 1;
        let has_val = cursor.word()?;
        let has_val = read_bool(cursor, has_val)?;
        let n_entries = cursor.word()?;
        if !has_val && n_entries == 0 {
            return Err(cursor.fail(format!("the record of node {at} is empty")));
        }
        let value = if has_val { Some(read_val(cursor, strings, exprs, 0)?) } else { None };
        let n_entries = cursor.check_count(n_entries, 2, "entries")?;
        let meta = graph.meta_mut(nodes[at]);
        meta.val = value;
        for _ in 0..n_entries {
            let (key, text) = (strings.next(cursor)?, strings.next(cursor)?);
            if &*key == VAL || meta.entries.contains_key(&key) {
                return Err(cursor.fail(format!("the key `{key}` is there twice")));
            }
            meta.entries.insert(key, text);
        }
    }
    Ok(())
}

/// Writes an abstract value.
pub(crate) fn write_val(
    words: &mut Words,
    strings: &mut StringWriter,
    exprs: &mut ExprWriter,
    value: &Val,
    depth: usize,
) -> Result<()> {
    check_depth(depth)?;
    match value {
        Val::None => words.tagged(val::NONE, 0),
        Val::Tensor(it) => write_tensor(words, strings, exprs, it),
        Val::Int(it) => {
            words.tagged(val::NUMBER, 0)?;
            exprs.write_int(words, it)
        }
        Val::Float(it) => {
            words.tagged(val::NUMBER, 0)?;
            exprs.write(words, &Expr::Float(it.clone()))
        }
        Val::Bool(it) => {
            words.tagged(val::NUMBER, 0)?;
            exprs.write(words, &Expr::Bool(it.clone()))
        }
        Val::Seq { items, is_tuple } => {
            words.tagged(if *is_tuple { val::TUPLE } else { val::LIST }, items.len())?;
            items.iter().try_for_each(|it| write_val(words, strings, exprs, it, depth + 1))
        }
    }
}

/// Writes what is known of a tensor.
pub(crate) fn write_tensor(
    words: &mut Words,
    strings: &mut StringWriter,
    exprs: &mut ExprWriter,
    meta: &TensorMeta,
) -> Result<()> {
    let (dtype, layout) = (number_of(DType::ALL, &meta.dtype), number_of(Layout::ALL, &meta.layout));
    words.tagged(val::TENSOR, dtype | layout << 8 | usize::from(meta.requires_grad) << 16)?;
    write_device(words, strings, &meta.device)?;
    words.count(meta.sizes.len())?;
    words.count(meta.strides.len())?;
    meta.sizes.iter().chain(&meta.strides).try_for_each(|it| exprs.write_int(words, it))?;
    exprs.write_int(words, &meta.storage_offset)
}

fn read_val(cursor: &mut Cursor<'_>, strings: &mut Strings, exprs: &mut Exprs, depth: usize) -> Result<Val> {
    if depth >= MAX_DEPTH {
        return Err(cursor.exceeds(format!("an abstract value is nested deeper than {MAX_DEPTH} levels")));
    }
    let word = cursor.word()?;
    let (tag, payload) = (word & 0xff, word >> 8);
    let read = match tag {
        val::NONE => Val::None,
        val::TENSOR => return Ok(Val::Tensor(read_tensor(cursor, strings, exprs, payload)?)),
        val::NUMBER => match exprs.next(cursor)? {
            Expr::Int(it) => Val::Int(it),
            Expr::Float(it) => Val::Float(it),
            Expr::Bool(it) => Val::Bool(it),
        },
        val::LIST | val::TUPLE => {
            let count = cursor.check_count(payload, 1, "items")?;
            let items =
                (0..count).map(|_| read_val(cursor, strings, exprs, depth + 1)).collect::<Result<Vec<Val>>>()?;
            return Ok(Val::Seq { items, is_tuple: tag == val::TUPLE });
        }
        _ => return Err(cursor.fail(format!("there is no abstract value of kind {tag}"))),
    };
    if payload != 0 {
        return Err(cursor.fail(format!("an abstract value of kind {tag} has the payload {payload}")));
    }
    Ok(read)
}

/// Reads what [`write_tensor`] wrote.
pub(crate) fn read_fake(cursor: &mut Cursor<'_>, strings: &mut Strings, exprs: &mut Exprs) -> Result<TensorMeta> {
    let word = cursor.word()?;
    if word & 0xff != val::TENSOR {
        return Err(cursor.fail(format!("an abstract value of kind {} stands where a tensor should", word & 0xff)));
    }
    read_tensor(cursor, strings, exprs, word >> 8)
}

fn read_tensor(cursor: &mut Cursor<'_>, strings: &mut Strings, exprs: &mut Exprs, payload: u32) -> Result<TensorMeta> {
    let dtype = numbered(cursor, DType::ALL, payload & 0xff, "dtype")?;
    let layout = numbered(cursor, Layout::ALL, payload >> 8 & 0xff, "layout")?;
    let requires_grad = read_bool(cursor, payload >> 16)?;
    let device = read_device(cursor, strings)?;
    let n_sizes = cursor.word()?;
    let n_strides = cursor.word()?;
    let n_sizes = cursor.check_count(n_sizes, 1, "sizes")?;
    let n_strides = cursor.check_count(n_strides, 1, "strides")?;
    let sizes = (0..n_sizes).map(|_| exprs.next_int(cursor)).collect::<Result<Vec<_>>>()?;
    let strides = (0..n_strides).map(|_| exprs.next_int(cursor)).collect::<Result<Vec<_>>>()?;
    let storage_offset = exprs.next_int(cursor)?;
    Ok(TensorMeta { dtype, sizes, strides, storage_offset, device, layout, requires_grad })
}
