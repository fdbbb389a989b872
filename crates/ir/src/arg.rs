//! Arguments of nodes, as a tree of Python's values. What an operator makes of them is its schema's.

use crate::NodeId;
use std::sync::Arc;
use tracefx_core::{Complex64, DType, Device, Layout, MemoryFormat, Scalar};

/// A shared string.
pub type Str = Arc<str>;

/// An argument of a node: an immutable tree whose leaves are Python values and other nodes.
///
/// Integers are exact, an int is not a float and a tuple is not a list, because Python code and operators tell them
/// apart. Nodes stand only where FX looks for them: anywhere but in the keys of a dict.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// `None`.
    None,
    /// `...`.
    Ellipsis,
    /// `True` or `False`.
    Bool(bool),
    /// An int of 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
    /// A string.
    Str(Str),
    /// A dtype.
    DType(DType),
    /// A device.
    Device(Device),
    /// A layout.
    Layout(Layout),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// The value of another node.
    Node(NodeId),
    /// An operator passed as a value, by its qualified name.
    Op(Str),
    /// A list.
    List(Vec<Arg>),
    /// A tuple.
    Tuple(Vec<Arg>),
    /// A dict with string keys, in insertion order.
    Dict(Vec<(Str, Arg)>),
    /// `slice(start, stop, step)`.
    Slice(Box<[Arg; 3]>),
}

impl Arg {
    /// A string argument.
    pub fn str(text: &str) -> Self {
        Arg::Str(text.into())
    }

    /// How deep containers may be nested in each other. Everything that walks arguments recurs, so deeper ones are refused
    /// where they would become part of a graph.
    pub const MAX_DEPTH: usize = 500;

    /// Whether all direct items of this container pass, up to the first that does not; nothing where this is no container.
    fn all_items(&self, test: &mut dyn FnMut(&Arg) -> bool) -> Option<bool> {
        match self {
            Arg::List(items) | Arg::Tuple(items) => Some(items.iter().all(test)),
            Arg::Dict(items) => Some(items.iter().all(|(_, it)| test(it))),
            Arg::Slice(parts) => Some(parts.iter().all(test)),
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
            | Arg::Node(_)
            | Arg::Op(_) => None,
        }
    }

    /// How many arguments this is made of, itself and everything in it, where a node counts as this many.
    pub fn weight(&self, of_node: &mut dyn FnMut(NodeId) -> usize) -> usize {
        if let Arg::Node(node) = self {
            return of_node(*node);
        }
        let mut res: usize = 1;
        self.all_items(&mut |it| {
            res = res.saturating_add(it.weight(of_node));
            true
        });
        res
    }

    /// Whether containers are nested in each other at most this deep.
    pub(crate) fn is_within(&self, depth: usize) -> bool {
        self.all_items(&mut |it| depth > 0 && it.is_within(depth - 1)).is_none_or(|all| depth > 0 && all)
    }

    /// Gives arguments back level by level: dropping one that is nested very deep would recur as deep.
    pub(crate) fn take_apart(mut args: Vec<Arg>) {
        while let Some(arg) = args.pop() {
            match arg {
                Arg::List(items) | Arg::Tuple(items) => args.extend(items),
                Arg::Dict(items) => args.extend(items.into_iter().map(|(_, it)| it)),
                Arg::Slice(parts) => args.extend(*parts),
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
                | Arg::Node(_)
                | Arg::Op(_) => {}
            }
        }
    }

    /// Calls `visit` for each node in this tree, in order of appearance; repeated nodes are visited again.
    pub fn for_each_node(&self, visit: &mut dyn FnMut(NodeId)) {
        if let Arg::Node(node) = self {
            visit(*node);
        }
        self.all_items(&mut |it| {
            it.for_each_node(visit);
            true
        });
    }

    /// Whether the test holds of a node in this tree.
    pub fn any_node(&self, test: &mut dyn FnMut(NodeId) -> bool) -> bool {
        match self {
            Arg::Node(node) => test(*node),
            _ => self.all_items(&mut |it| !it.any_node(test)) == Some(false),
        }
    }

    /// This tree with each node replaced by what `map` gives: `torch.fx.node.map_arg`.
    pub fn map_nodes(&self, map: &mut dyn FnMut(NodeId) -> Arg) -> Arg {
        match self {
            Arg::Node(node) => map(*node),
            Arg::List(items) => Arg::List(items.iter().map(|it| it.map_nodes(map)).collect()),
            Arg::Tuple(items) => Arg::Tuple(items.iter().map(|it| it.map_nodes(map)).collect()),
            Arg::Dict(items) => Arg::Dict(items.iter().map(|(key, it)| (Str::clone(key), it.map_nodes(map))).collect()),
            Arg::Slice(parts) => {
                Arg::Slice(Box::new([parts[0].map_nodes(map), parts[1].map_nodes(map), parts[2].map_nodes(map)]))
            }
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
            | Arg::Op(_) => self.clone(),
        }
    }

    /// The node that this argument is.
    pub fn as_node(&self) -> Option<NodeId> {
        if let Arg::Node(node) = self { Some(*node) } else { None }
    }

    /// The number that this argument is.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Arg::Bool(it) => Some(Scalar::Bool(*it)),
            Arg::Int(it) => Some(Scalar::Int(*it)),
            Arg::Float(it) => Some(Scalar::Float(*it)),
            Arg::Complex(it) => Some(Scalar::Complex(*it)),
            Arg::None
            | Arg::Ellipsis
            | Arg::Str(_)
            | Arg::DType(_)
            | Arg::Device(_)
            | Arg::Layout(_)
            | Arg::MemoryFormat(_)
            | Arg::Node(_)
            | Arg::Op(_)
            | Arg::List(_)
            | Arg::Tuple(_)
            | Arg::Dict(_)
            | Arg::Slice(_) => None,
        }
    }
}

impl From<NodeId> for Arg {
    fn from(node: NodeId) -> Self {
        Arg::Node(node)
    }
}

impl From<Scalar> for Arg {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(it) => Arg::Bool(it),
            Scalar::Int(it) => Arg::Int(it),
            Scalar::Float(it) => Arg::Float(it),
            Scalar::Complex(it) => Arg::Complex(it),
        }
    }
}
