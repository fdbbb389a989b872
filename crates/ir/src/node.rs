//! Nodes: what they do, and with what. They are changed through their graph.

use crate::track::Changes;
use crate::{Arg, Meta, Str};
use rustc_hash::FxHashSet;
use std::fmt;

/// A node of one graph. Ids are never reused; an id of another graph is refused where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The id as an index, dense over all nodes that the graph ever had.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// An input of the graph.
    Placeholder,
    /// A parameter, buffer, constant or sub-graph of the module.
    GetAttr,
    /// A call of a free function or operator.
    CallFunction,
    /// A call of a method of the first argument.
    CallMethod,
    /// A call of a sub-module.
    CallModule,
    /// The result of the graph.
    Output,
}

impl Opcode {
    /// Every opcode.
    pub const ALL: [Opcode; 6] = [
        Opcode::Placeholder,
        Opcode::GetAttr,
        Opcode::CallFunction,
        Opcode::CallMethod,
        Opcode::CallModule,
        Opcode::Output,
    ];

    /// PyTorch's name, such as `call_function`.
    pub const fn name(self) -> &'static str {
        match self {
            Opcode::Placeholder => "placeholder",
            Opcode::GetAttr => "get_attr",
            Opcode::CallFunction => "call_function",
            Opcode::CallMethod => "call_method",
            Opcode::CallModule => "call_module",
            Opcode::Output => "output",
        }
    }

    /// The opcode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Opcode::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One step of a graph. Fields are read here and changed through [`crate::Graph`], which keeps users and names right.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) op: Opcode,
    pub(crate) target: Str,
    pub(crate) name: Str,
    pub(crate) args: Vec<Arg>,
    pub(crate) kwargs: Vec<(Str, Arg)>,
    pub(crate) ty: Option<Str>,
    pub(crate) changes: Changes,
    /// What passes have noted about the node: shapes, the source line…
    pub meta: Meta,
}

impl Node {
    /// What the node does.
    pub fn op(&self) -> Opcode {
        self.op
    }

    /// What it does it to: the qualified name of a function (`torch.ops.aten.add.Tensor`, `operator.getitem`), a
    /// method's name, or the path of an attribute, module or input.
    pub fn target(&self) -> &Str {
        &self.target
    }

    /// The name, unique in the graph.
    pub fn name(&self) -> &Str {
        &self.name
    }

    /// The positional arguments.
    pub fn args(&self) -> &[Arg] {
        &self.args
    }

    /// The keyword arguments, in order.
    pub fn kwargs(&self) -> &[(Str, Arg)] {
        &self.kwargs
    }

    /// The keyword argument of this name.
    pub fn kwarg(&self, name: &str) -> Option<&Arg> {
        self.kwargs.iter().find(|(key, _)| &**key == name).map(|(_, arg)| arg)
    }

    /// The Python type of the value, where it was annotated.
    pub fn ty(&self) -> Option<&Str> {
        self.ty.as_ref()
    }

    /// Calls `visit` for each node that this one takes as an argument, in order of appearance, args before kwargs.
    pub fn for_each_input(&self, visit: &mut dyn FnMut(NodeId)) {
        self.args.iter().for_each(|it| it.for_each_node(visit));
        self.kwargs.iter().for_each(|(_, it)| it.for_each_node(visit));
    }

    /// The distinct nodes that this one takes as arguments, in order of first appearance.
    pub fn all_input_nodes(&self) -> Vec<NodeId> {
        let mut res = Vec::new();
        // Most nodes have a few inputs, which are found faster by looking than by hashing.
        let mut many: Option<FxHashSet<NodeId>> = None;
        self.for_each_input(&mut |node| {
            if many.is_none() && res.len() >= 16 {
                many = Some(res.iter().copied().collect());
            }
            let is_new = match &mut many {
                Some(many) => many.insert(node),
                None => !res.contains(&node),
            };
            if is_new {
                res.push(node);
            }
        });
        res
    }

    /// Notes an edit, after which nobody knows any more what the node gives.
    pub(crate) fn forget(&mut self) {
        self.changes.forgotten = true;
        self.meta.val = None;
    }

    pub(crate) fn call(&mut self, name: Str) {
        self.changes.called = true;
        self.name = name;
    }
}
