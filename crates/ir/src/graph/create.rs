//! Making nodes.

use super::{Graph, InsertPoint};
use crate::namespace::snake_case;
use crate::track::Changes;
use crate::{Arg, Meta, Node, NodeId, Opcode, Str, UserSet};
use std::borrow::Cow;
use tracefx_core::{Code, Diagnostic, Result};

impl Graph {
    /// Makes a node at the insertion point. Without a name it is named after its target, as in FX.
    ///
    /// # Errors
    /// `NodeForeign` where an argument is not a node of this graph, `LimitExceeded` where one is nested deeper than
    /// [`Arg::MAX_DEPTH`].
    pub fn create_node(
        &mut self,
        op: Opcode,
        target: &str,
        args: Vec<Arg>,
        kwargs: Vec<(Str, Arg)>,
        name: Option<&str>,
    ) -> Result<NodeId> {
        self.add_node(op, target.into(), args, kwargs, name)
    }

    /// [`Graph::create_node`] of a target that is shared already.
    ///
    /// # Errors
    /// As there.
    pub fn add_node(
        &mut self,
        op: Opcode,
        target: Str,
        args: Vec<Arg>,
        kwargs: Vec<(Str, Arg)>,
        name: Option<&str>,
    ) -> Result<NodeId> {
        let (args, kwargs) = self.checked(args, kwargs)?;
        let name = match name {
            Some(name) => self.names.create_name(name),
            None => self.names.create_name(&name_of_target(op, &target)),
        };
        Ok(self.insert(op, target, args, kwargs, name))
    }

    /// Makes a node with exactly this name, even one that FX would change: exported programs have such names.
    ///
    /// # Errors
    /// `NodeForeign` where an argument is not a node of this graph, `GraphInvalid` where the name is taken.
    pub fn create_named_node(
        &mut self,
        op: Opcode,
        target: &str,
        args: Vec<Arg>,
        kwargs: Vec<(Str, Arg)>,
        name: &str,
    ) -> Result<NodeId> {
        self.add_named(op, target.into(), args, kwargs, name.into())
    }

    /// [`Graph::create_named_node`] of strings that are shared already.
    ///
    /// # Errors
    /// As there.
    pub fn add_named(
        &mut self,
        op: Opcode,
        target: Str,
        args: Vec<Arg>,
        kwargs: Vec<(Str, Arg)>,
        name: Str,
    ) -> Result<NodeId> {
        let (args, kwargs) = self.checked(args, kwargs)?;
        self.reserve_name(&name)?;
        Ok(self.insert(op, target, args, kwargs, name))
    }

    /// Makes an input.
    pub fn placeholder(&mut self, name: &str) -> NodeId {
        let unique = self.names.create_name(name);
        self.insert(Opcode::Placeholder, name.into(), Vec::new(), Vec::new(), unique)
    }

    /// Makes a node that reads an attribute of the module.
    pub fn get_attr(&mut self, path: &str) -> NodeId {
        let name = self.names.create_name(&name_of_target(Opcode::GetAttr, path));
        self.insert(Opcode::GetAttr, path.into(), Vec::new(), Vec::new(), name)
    }

    /// Makes a call of a function or operator.
    ///
    /// # Panics
    /// When an argument is not a node of this graph; [`Graph::create_node`] refuses it instead.
    pub fn call_function(&mut self, target: &str, args: Vec<Arg>, kwargs: Vec<(Str, Arg)>) -> NodeId {
        self.create_node(Opcode::CallFunction, target, args, kwargs, None).expect("the arguments are of this graph")
    }

    /// Makes the output.
    ///
    /// # Panics
    /// When the result holds a node of another graph; [`Graph::create_node`] refuses it instead.
    pub fn output(&mut self, result: Arg) -> NodeId {
        self.create_node(Opcode::Output, "output", vec![result], Vec::new(), None).expect("the result is of this graph")
    }

    /// The same arguments, if they may become part of this graph.
    pub(super) fn checked(&self, args: Vec<Arg>, kwargs: Vec<(Str, Arg)>) -> Result<Arguments> {
        let is_flat = args.iter().chain(kwargs.iter().map(|(_, it)| it)).all(|it| it.is_within(Arg::MAX_DEPTH));
        if !is_flat {
            Arg::take_apart(args);
            Arg::take_apart(kwargs.into_iter().map(|(_, it)| it).collect());
            let what = format!("an argument is nested deeper than {} levels", Arg::MAX_DEPTH);
            return Err(Diagnostic::new(Code::LimitExceeded, what));
        }
        let mut foreign = None;
        let mut visit = |node: NodeId| {
            if !self.contains(node) {
                foreign.get_or_insert(node);
            }
        };
        args.iter().for_each(|it| it.for_each_node(&mut visit));
        kwargs.iter().for_each(|(_, it)| it.for_each_node(&mut visit));
        foreign.map_or(Ok(()), |node| self.check_own(node))?;
        Ok((args, kwargs))
    }

    pub(super) fn reserve_name(&mut self, name: &Str) -> Result<()> {
        if self.names.reserve(Str::clone(name)) {
            return Ok(());
        }
        Err(Diagnostic::new(Code::GraphInvalid, format!("the name `{name}` is taken")).node(&**name))
    }

    fn insert(&mut self, op: Opcode, target: Str, args: Vec<Arg>, kwargs: Vec<(Str, Arg)>, name: Str) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("a graph has fewer than 2^32 nodes"));
        let node =
            Node { op, target, name, args, kwargs, ty: None, changes: Changes::default(), meta: Meta::default() };
        node.for_each_input(&mut |input| self.users[input.index()].insert(id));
        self.nodes.push(node);
        self.users.push(UserSet::default());
        let before = match self.insert_point {
            InsertPoint::End => None,
            InsertPoint::Before(anchor) => Some(anchor),
            InsertPoint::After(anchor) => self.order.next(anchor),
        };
        self.order.insert(id, before);
        if let InsertPoint::After(_) = self.insert_point {
            self.insert_point = InsertPoint::After(id);
        }
        id
    }
}

/// Positional and keyword arguments.
pub(super) type Arguments = (Vec<Arg>, Vec<(Str, Arg)>);

/// The name that FX gives to a node of this target: a function's `__name__` or the string, in snake case.
pub fn name_of_target(op: Opcode, target: &str) -> Cow<'_, str> {
    let name = match op {
        Opcode::CallFunction => function_name(target),
        Opcode::Placeholder | Opcode::GetAttr | Opcode::CallMethod | Opcode::CallModule | Opcode::Output => {
            let is_magic = target.len() > 4 && target.starts_with("__") && target.ends_with("__");
            if is_magic { &target[2..target.len() - 2] } else { target }
        }
    };
    snake_case(name)
}

/// Python's `__name__` of a function from its qualified name; an operator's is `name.overload`.
fn function_name(target: &str) -> &str {
    match target.strip_prefix("torch.ops.") {
        Some(rest) => rest.split_once('.').map_or(rest, |(_, name)| name),
        None => target.rsplit_once('.').map_or(target, |(_, name)| name),
    }
}
