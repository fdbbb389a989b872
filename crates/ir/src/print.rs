//! Graphs as `torch.fx.Graph.__str__` prints them, with Python's `repr` and `str` of arguments.

use crate::{Arg, Graph, Node, NodeId, Opcode, Str};
use std::fmt::{self, Write};
use tracefx_core::{Scalar, python_float};

impl fmt::Display for Graph {
    /// PyTorch's `str(graph)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("graph():")?;
        for id in self.nodes() {
            write!(f, "\n    {}", self.format_node(id))?;
        }
        Ok(())
    }
}

impl Graph {
    /// PyTorch's `node.format_node()`: one line of `str(graph)`.
    pub fn format_node(&self, id: NodeId) -> String {
        let mut res = String::new();
        write_node(&mut res, self, self.node(id), self.users(id).len()).expect("a String takes everything");
        res
    }

    /// An argument as `str(graph)` shows it, with nodes as `%name`.
    pub fn format_arg(&self, arg: &Arg) -> String {
        let mut res = String::new();
        write_arg(&mut res, self, arg).expect("a String takes everything");
        res
    }

    /// Python's `repr` of an argument, with nodes by their names.
    pub fn repr_arg(&self, arg: &Arg) -> String {
        let mut res = String::new();
        write_repr(&mut res, self, arg).expect("a String takes everything");
        res
    }

    /// The rows of `graph.print_tabular()`: opcode, name, target, args and kwargs of each node.
    pub fn tabular(&self) -> Vec<[String; 5]> {
        let row = |id: NodeId| {
            let node = self.node(id);
            let mut args = String::new();
            write_sequence(&mut args, node.args(), "(", ")", true, &mut |out, it| write_repr(out, self, it))
                .expect("a String takes everything");
            let mut kwargs = String::new();
            write_repr_dict(&mut kwargs, self, node.kwargs()).expect("a String takes everything");
            let target = node.target().strip_prefix("torch.ops.").unwrap_or(node.target());
            [node.op().name().to_string(), node.name().to_string(), target.to_string(), args, kwargs]
        };
        self.nodes().map(row).collect()
    }
}

fn write_node(out: &mut String, graph: &Graph, node: &Node, num_users: usize) -> fmt::Result {
    if node.op() == Opcode::Output {
        out.push_str("return ");
        return node.args().first().map_or(Ok(()), |it| write_repr_or_text(out, graph, it));
    }
    write!(out, "%{} : ", node.name())?;
    if let Some(ty) = node.ty() {
        write!(out, "{ty} ")?;
    }
    write!(out, "[num_users={num_users}] = {}[target={}]", node.op(), node.target())?;
    match node.op() {
        Opcode::Placeholder => {
            if let Some(default) = node.args().first() {
                out.push_str("(default=");
                write_repr_or_text(out, graph, default)?;
                out.push(')');
            }
        }
        Opcode::GetAttr => {}
        Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {
            out.push_str("(args = ");
            write_sequence(out, node.args(), "(", ")", true, &mut |out, it| write_arg(out, graph, it))?;
            out.push_str(", kwargs = ");
            write_dict(out, graph, node.kwargs())?;
            out.push(')');
        }
        Opcode::Output => {}
    }
    Ok(())
}

/// FX's `_format_arg`: containers item by item, nodes as `%name`, anything else as Python's `str`.
fn write_arg(out: &mut String, graph: &Graph, arg: &Arg) -> fmt::Result {
    match arg {
        Arg::Node(node) => write!(out, "%{}", graph.node(*node).name()),
        Arg::List(items) => write_sequence(out, items, "[", "]", false, &mut |out, it| write_arg(out, graph, it)),
        Arg::Tuple(items) => write_sequence(out, items, "(", ")", true, &mut |out, it| write_arg(out, graph, it)),
        Arg::Dict(items) => write_dict(out, graph, items),
        Arg::None
        | Arg::Ellipsis
        | Arg::Bool(_)
        | Arg::Int(_)
        | Arg::Float(_)
        | Arg::Complex(_)
        | Arg::Str(_)
        | Arg::DType(_)
        | Arg::Device(_)
        | Arg::Layout(_)
        | Arg::MemoryFormat(_)
        | Arg::Op(_)
        | Arg::Slice(_) => write_repr_or_text(out, graph, arg),
    }
}

fn write_dict(out: &mut String, graph: &Graph, items: &[(Str, Arg)]) -> fmt::Result {
    out.push('{');
    for (at, (key, value)) in items.iter().enumerate() {
        write!(out, "{}{key}: ", if at > 0 { ", " } else { "" })?;
        write_arg(out, graph, value)?;
    }
    out.push('}');
    Ok(())
}

/// Python's `str`: of a string the text itself, of a device its name, of anything else the same as `repr`.
fn write_repr_or_text(out: &mut String, graph: &Graph, arg: &Arg) -> fmt::Result {
    match arg {
        Arg::Str(text) => out.write_str(text),
        Arg::Device(device) => write!(out, "{device}"),
        Arg::Op(name) => out.write_str(name.strip_prefix("torch.ops.").unwrap_or(name)),
        Arg::None
        | Arg::Ellipsis
        | Arg::Bool(_)
        | Arg::Int(_)
        | Arg::Float(_)
        | Arg::Complex(_)
        | Arg::DType(_)
        | Arg::Layout(_)
        | Arg::MemoryFormat(_)
        | Arg::Node(_)
        | Arg::List(_)
        | Arg::Tuple(_)
        | Arg::Dict(_)
        | Arg::Slice(_) => write_repr(out, graph, arg),
    }
}

/// Python's `repr`.
fn write_repr(out: &mut String, graph: &Graph, arg: &Arg) -> fmt::Result {
    match arg {
        Arg::None => out.write_str("None"),
        Arg::Ellipsis => out.write_str("Ellipsis"),
        Arg::Bool(it) => write!(out, "{}", Scalar::Bool(*it)),
        Arg::Int(it) => write!(out, "{it}"),
        Arg::Float(it) => out.write_str(&python_float(*it)),
        Arg::Complex(it) => write!(out, "{}", Scalar::Complex(*it)),
        Arg::Str(text) => write_python_string(out, text),
        Arg::DType(it) => write!(out, "{it}"),
        Arg::Device(it) => match it.index {
            Some(index) => write!(out, "device(type='{}', index={index})", it.kind),
            None => write!(out, "device(type='{}')", it.kind),
        },
        Arg::Layout(it) => write!(out, "{it}"),
        Arg::MemoryFormat(it) => write!(out, "{it}"),
        Arg::Node(node) => out.write_str(graph.node(*node).name()),
        Arg::Op(name) => {
            let name = name.strip_prefix("torch.ops.").unwrap_or(name);
            let (op, overload) = name.rsplit_once('.').unwrap_or((name, "default"));
            write!(out, "<OpOverload(op='{op}', overload='{overload}')>")
        }
        Arg::List(items) => write_sequence(out, items, "[", "]", false, &mut |out, it| write_repr(out, graph, it)),
        Arg::Tuple(items) => write_sequence(out, items, "(", ")", true, &mut |out, it| write_repr(out, graph, it)),
        Arg::Dict(items) => write_repr_dict(out, graph, items),
        Arg::Slice(parts) => {
            write_sequence(out, &parts[..], "slice(", ")", false, &mut |out, it| write_repr(out, graph, it))
        }
    }
}

fn write_repr_dict(out: &mut String, graph: &Graph, items: &[(Str, Arg)]) -> fmt::Result {
    out.push('{');
    for (at, (key, value)) in items.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        write_python_string(out, key)?;
        out.push_str(": ");
        write_repr(out, graph, value)?;
    }
    out.push('}');
    Ok(())
}

fn write_sequence(
    out: &mut String,
    items: &[Arg],
    open: &str,
    close: &str,
    is_tuple: bool,
    write_item: &mut dyn FnMut(&mut String, &Arg) -> fmt::Result,
) -> fmt::Result {
    out.push_str(open);
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        write_item(out, item)?;
    }
    out.push_str(if is_tuple && items.len() == 1 { "," } else { "" });
    out.push_str(close);
    Ok(())
}

/// Python's `repr` of a string, such as `'conv.weight'`.
pub fn python_string(text: &str) -> String {
    let mut res = String::with_capacity(text.len() + 2);
    write_python_string(&mut res, text).expect("a String takes everything");
    res
}

/// Python's `repr` of a string: single quotes, or double quotes where the text has single quotes and no double ones.
fn write_python_string(out: &mut String, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => write!(out, "\\{c}")?,
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32)?,
            c if (c as u32) < 0x10000 => write!(out, "\\u{:04x}", c as u32)?,
            c => write!(out, "\\U{:08x}", c as u32)?,
        }
    }
    out.push(quote);
    Ok(())
}

/// Python's `str.isprintable`: neither of Unicode's "other" nor a separator, except the space. `escape_debug` has the
/// same rule; a letter goes before the character because a mark at the beginning of a text is escaped as well.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~') || !c.is_ascii() && format!("a{c}").escape_debug().nth(1) == Some(c)
}
