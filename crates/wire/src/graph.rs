//! `GRPH`: the nodes of one graph, in order. `NAMS`: the names that no node has any more.

use crate::Limits;
use crate::arg::{read_arg, read_entries, write_arg, write_entries};
use crate::cursor::Cursor;
use crate::strings::{StringWriter, Strings};
use crate::words::{Words, tagged};
use rustc_hash::FxHashSet;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, NodeId, Opcode, Str};

/// The words of a node without arguments: head, target, name, type, and the numbers of args and kwargs.
const MIN_NODE_WORDS: usize = 6;

/// The largest suffix: FX's rules give suffixes below 2^127, and count on from there for as long as nodes are made.
const MAX_SUFFIX: u128 = (1 << 127) + (1 << 64);

/// Writes a graph.
pub(crate) fn write_graph(words: &mut Words, strings: &mut StringWriter, graph: &Graph) -> Result<()> {
    let mut positions: Vec<Option<usize>> = vec![None; graph.id_bound()];
    words.count(graph.len())?;
    for (at, id) in graph.nodes().enumerate() {
        let node = graph.node(id);
        let position = |input: NodeId| {
            positions.get(input.index()).copied().flatten().ok_or_else(|| {
                let what = format!("Argument '{}' was used before it has been defined", graph.node(input).name());
                Diagnostic::new(Code::GraphInvalid, what).help("graph.lint says what else is wrong")
            })
        };
        let mut write = || {
            let head = words.len();
            words.word(0);
            strings.write(words, node.target())?;
            strings.write(words, node.name())?;
            strings.write_optional(words, node.ty().map(|it| &**it))?;
            words.count(node.args().len())?;
            words.count(node.kwargs().len())?;
            node.args().iter().try_for_each(|it| write_arg(words, strings, it, 0, &position))?;
            check_keywords(node.kwargs()).map_err(|what| Diagnostic::new(Code::GraphArgument, what))?;
            write_entries(words, strings, node.kwargs(), 0, &position)?;
            words.patch(head, tagged(node.op() as u32, words.len() - head)?);
            Ok(())
        };
        write().map_err(|it: Diagnostic| it.node(&**node.name()))?;
        positions[id.index()] = Some(at);
    }
    Ok(())
}

/// Reads a graph.
pub(crate) fn read_graph(mut cursor: Cursor<'_>, strings: &mut Strings, limits: &Limits) -> Result<Graph> {
    let count = cursor.count(MIN_NODE_WORDS, "nodes")?;
    if count > limits.nodes {
        return Err(cursor.exceeds(format!("the graph has {count} nodes, and {} are allowed", limits.nodes)));
    }
    let mut graph = Graph::new();
    graph.reserve(count);
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        let node = read_node(&mut cursor, strings, &mut graph, &nodes)?;
        nodes.push(node);
    }
    cursor.finish()?;
    Ok(graph)
}

fn read_node(cursor: &mut Cursor<'_>, strings: &mut Strings, graph: &mut Graph, nodes: &[NodeId]) -> Result<NodeId> {
    let head = cursor.word()?;
    let number = head & 0xff;
    let op = *Opcode::ALL.get(number as usize).ok_or_else(|| cursor.fail(format!("there is no opcode {number}")))?;
    let len = (head >> 8) as usize;
    if len < MIN_NODE_WORDS {
        return Err(cursor.fail(format!("a node takes at least {MIN_NODE_WORDS} words, not {len}")));
    }
    let mut record = cursor.split(len - 1)?;
    let target = strings.next(&mut record)?;
    let name = strings.next(&mut record)?;
    let ty = strings.next_optional(&mut record)?;
    let n_args = record.word()?;
    let n_kwargs = record.word()?;
    let n_args = record.check_count(n_args, 1, "arguments")?;
    let n_kwargs = record.check_count(n_kwargs, 2, "keyword arguments")?;
    let args = (0..n_args).map(|_| read_arg(&mut record, strings, nodes, 0)).collect::<Result<Vec<Arg>>>()?;
    let kwargs = read_entries(&mut record, strings, nodes, n_kwargs, 0)?;
    check_keywords(&kwargs).map_err(|what| record.fail(what))?;
    record.finish()?;
    let node = graph.add_named(op, target, args, kwargs, name).map_err(|it| record.fail(it.message()))?;
    if ty.is_some() {
        graph.set_type(node, ty)?;
    }
    Ok(node)
}

/// JavaScript objects put keys that are made of digits before all others, so a keyword argument must not be one.
fn check_keywords(kwargs: &[(Str, Arg)]) -> Result<(), String> {
    match kwargs.iter().find(|(key, _)| !key.is_empty() && key.bytes().all(|it| it.is_ascii_digit())) {
        Some((key, _)) => Err(format!("`{key}` is not the name of a keyword argument")),
        None => Ok(()),
    }
}

/// Writes the names of one graph that no node has any more, and the suffix that was given last for each base.
pub(crate) fn write_names(words: &mut Words, strings: &mut StringWriter, graph: &Graph) -> Result<()> {
    let mut erased: Vec<&str> = Vec::new();
    // All names of nodes were given, so where there are as many of both none is left.
    if graph.names().len() != graph.len() {
        let live: FxHashSet<&str> = graph.nodes().map(|it| &**graph.node(it).name()).collect();
        erased.extend(graph.names().used().filter(|it| !live.contains(it)));
        erased.sort_unstable();
    }
    words.count(erased.len())?;
    erased.into_iter().try_for_each(|it| strings.write(words, it))?;
    let mut suffixes: Vec<(&str, u128)> = graph.names().suffixes().filter(|&(_, suffix)| suffix > 0).collect();
    suffixes.sort_unstable();
    words.count(suffixes.len())?;
    for (base, suffix) in suffixes {
        strings.write(words, base)?;
        words.pair(suffix as u64);
        words.pair((suffix >> 64) as u64);
    }
    Ok(())
}

/// Reads the names of one graph that no node has any more.
pub(crate) fn read_names(cursor: &mut Cursor<'_>, strings: &mut Strings, graph: &mut Graph) -> Result<()> {
    let mut used: Vec<Str> = Vec::new();
    for _ in 0..cursor.count(1, "names")? {
        let name = strings.next(cursor)?;
        if graph.names().is_used(&name) || used.last().is_some_and(|last| **last >= *name) {
            return Err(cursor.fail(format!("the name `{name}` is of a node, or out of order")));
        }
        used.push(name);
    }
    let mut suffixes: Vec<(Box<str>, u128)> = Vec::new();
    for _ in 0..cursor.count(5, "suffixes")? {
        let base = strings.next(cursor)?;
        let suffix = u128::from(cursor.pair()?) | u128::from(cursor.pair()?) << 64;
        if suffix == 0 || suffix > MAX_SUFFIX || suffixes.last().is_some_and(|(last, _)| **last >= *base) {
            return Err(cursor.fail(format!("the suffix {suffix} of `{base}` is out of range or out of order")));
        }
        suffixes.push(((*base).into(), suffix));
    }
    graph.take_names(used, suffixes);
    Ok(())
}
