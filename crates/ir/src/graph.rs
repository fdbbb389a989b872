use crate::namespace::snake_case;
use crate::order::Order;
use crate::track::{Changes, Tracked};
use crate::{Arg, Meta, Namespace, Node, NodeId, Opcode, Str, UserSet};
use std::borrow::Cow;
use std::cmp::Ordering;
use tracefx_core::{Code, Diagnostic, Result};

/// Where new nodes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPoint {
    /// At the end of the list, even after `output`, as in FX.
    End,
    /// Before this node.
    Before(NodeId),
    /// After this node, and after the nodes that were made at this point before.
    After(NodeId),
}

/// An ordered list of nodes: `torch.fx.Graph`. See the crate's documentation for an example.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) users: Vec<UserSet>,
    order: Order,
    pub(crate) names: Namespace,
    insert_point: InsertPoint,
    pub(crate) tracked: Option<Tracked>,
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Graph {
            nodes: Vec::new(),
            users: Vec::new(),
            order: Order::default(),
            names: Namespace::default(),
            insert_point: InsertPoint::End,
            tracked: None,
        }
    }

    /// Makes room for this many more nodes.
    pub fn reserve(&mut self, additional: usize) {
        self.nodes.reserve(additional);
        self.users.reserve(additional);
        self.order.reserve(additional);
        self.names.reserve_room(additional);
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.order.len() == 0
    }

    /// One more than the largest index of an id: the length of a table with an entry per node, erased ones included.
    pub fn id_bound(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes in order. To edit while walking, step with [`Graph::next`].
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        Nodes { graph: self, front: self.order.first(), back: self.order.last() }
    }

    /// The first node.
    pub fn first(&self) -> Option<NodeId> {
        self.order.first()
    }

    /// The last node.
    pub fn last(&self) -> Option<NodeId> {
        self.order.last()
    }

    /// The node after this one. After an erasure it still answers: with the node that followed.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.order.next(node)
    }

    /// The node before this one. After an erasure it still answers: with the node that preceded.
    pub fn prev(&self, node: NodeId) -> Option<NodeId> {
        self.order.prev(node)
    }

    /// Whether the node is in this graph and was not erased.
    pub fn contains(&self, node: NodeId) -> bool {
        self.order.contains(node)
    }

    /// The order of two nodes of this graph.
    pub fn compare(&self, a: NodeId, b: NodeId) -> Ordering {
        self.order.compare(a, b)
    }

    /// A node.
    ///
    /// # Panics
    /// When the id is of another graph. An erased node is still readable; it has no arguments any more.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }

    /// What passes have noted about a node, to change it.
    pub fn meta_mut(&mut self, node: NodeId) -> &mut Meta {
        let node = &mut self.nodes[node.index()];
        node.changes.noted = true;
        &mut node.meta
    }

    /// The nodes that use this one, in the order in which they began to.
    pub fn users(&self, node: NodeId) -> &UserSet {
        &self.users[node.index()]
    }

    /// The node of this name; takes time linear in the number of nodes.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes().find(|&it| &*self.node(it).name == name)
    }

    /// The nodes with this opcode and target, in order.
    pub fn find_nodes<'a>(&'a self, op: Opcode, target: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.nodes().filter(move |&it| self.node(it).op == op && &*self.node(it).target == target)
    }

    /// The last output node.
    pub fn output_node(&self) -> Option<NodeId> {
        self.nodes().rev().find(|&it| self.node(it).op == Opcode::Output)
    }

    /// The names that were given.
    pub fn names(&self) -> &Namespace {
        &self.names
    }

    /// Takes names besides those of the nodes, and notes for each base the suffix that was given last.
    pub fn take_names(
        &mut self,
        used: impl IntoIterator<Item = Str>,
        suffixes: impl IntoIterator<Item = (Box<str>, u128)>,
    ) {
        self.names.take(used, suffixes);
    }

    /// Where new nodes go.
    pub fn insert_point(&self) -> InsertPoint {
        self.insert_point
    }

    /// Sets where new nodes go; gives back where they went before, to restore it.
    ///
    /// # Errors
    /// `NodeForeign` where the point is a node that is not in this graph.
    pub fn set_insert_point(&mut self, point: InsertPoint) -> Result<InsertPoint> {
        match point {
            InsertPoint::Before(node) | InsertPoint::After(node) => self.check_own(node)?,
            InsertPoint::End => {}
        }
        Ok(std::mem::replace(&mut self.insert_point, point))
    }

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

    /// Replaces the positional arguments.
    ///
    /// # Errors
    /// `NodeForeign` where an argument, or the node, is not of this graph.
    pub fn set_args(&mut self, node: NodeId, args: Vec<Arg>) -> Result<()> {
        self.check_own(node)?;
        let (args, _) = self.checked(args, Vec::new())?;
        self.update(node, |it| {
            it.args = args;
            it.forget();
        });
        Ok(())
    }

    /// Replaces the keyword arguments.
    ///
    /// # Errors
    /// `NodeForeign` where an argument, or the node, is not of this graph.
    pub fn set_kwargs(&mut self, node: NodeId, kwargs: Vec<(Str, Arg)>) -> Result<()> {
        self.check_own(node)?;
        let (_, kwargs) = self.checked(Vec::new(), kwargs)?;
        self.update(node, |it| {
            it.kwargs = kwargs;
            it.forget();
        });
        Ok(())
    }

    /// Replaces all arguments by ones that have the same values, so that what is known of the node stays true.
    ///
    /// # Errors
    /// `NodeForeign` where an argument, or the node, is not of this graph.
    pub fn set_equal_args(&mut self, node: NodeId, args: Vec<Arg>, kwargs: Vec<(Str, Arg)>) -> Result<()> {
        self.check_own(node)?;
        let (args, kwargs) = self.checked(args, kwargs)?;
        self.update(node, |it| (it.args, it.kwargs) = (args, kwargs));
        Ok(())
    }

    /// Replaces one positional argument.
    ///
    /// # Errors
    /// `NodeForeign` as in [`Graph::set_args`]; `GraphArgument` where there is no such argument.
    pub fn update_arg(&mut self, node: NodeId, index: usize, arg: Arg) -> Result<()> {
        self.check_own(node)?;
        let mut args = self.node(node).args.clone();
        let n_args = args.len();
        let slot = args.get_mut(index).ok_or_else(|| {
            Diagnostic::new(Code::GraphArgument, format!("there is no argument {index}: the node has {n_args}"))
                .node(&*self.nodes[node.index()].name)
        })?;
        *slot = arg;
        self.set_args(node, args)
    }

    /// Sets one keyword argument.
    ///
    /// # Errors
    /// `NodeForeign` as in [`Graph::set_kwargs`].
    pub fn update_kwarg(&mut self, node: NodeId, key: &str, arg: Arg) -> Result<()> {
        self.check_own(node)?;
        let mut kwargs = self.node(node).kwargs.clone();
        match kwargs.iter_mut().find(|(it, _)| &**it == key) {
            Some((_, slot)) => *slot = arg,
            None => kwargs.push((key.into(), arg)),
        }
        self.set_kwargs(node, kwargs)
    }

    /// Inserts a positional argument. As in FX, the node keeps its place among the users of its other inputs.
    ///
    /// # Errors
    /// `NodeForeign` as in [`Graph::set_args`]; `GraphArgument` where the index is past the end.
    pub fn insert_arg(&mut self, node: NodeId, index: usize, arg: Arg) -> Result<()> {
        self.check_own(node)?;
        let mut args = self.node(node).args.clone();
        if index > args.len() {
            let what = format!("insert_arg index must be between 0 and {}, and is {index}", args.len());
            return Err(Diagnostic::new(Code::GraphArgument, what).node(&*self.node(node).name));
        }
        let (mut checked, _) = self.checked(vec![arg], Vec::new())?;
        let arg = checked.pop().expect("as many arguments come back as were given");
        arg.for_each_node(&mut |input| self.users[input.index()].insert(node));
        args.insert(index, arg);
        let changed = &mut self.nodes[node.index()];
        (changed.args, changed.changes.args) = (args, true);
        changed.forget();
        Ok(())
    }

    /// Changes what the node calls.
    ///
    /// # Errors
    /// `NodeForeign` where the node is not of this graph.
    pub fn set_target(&mut self, node: NodeId, target: &str) -> Result<()> {
        self.check_own(node)?;
        let node = &mut self.nodes[node.index()];
        (node.target, node.changes.called) = (target.into(), true);
        node.forget();
        Ok(())
    }

    /// Sets the Python type of the value.
    ///
    /// # Errors
    /// `NodeForeign` where the node is not of this graph.
    pub fn set_type(&mut self, node: NodeId, ty: Option<Str>) -> Result<()> {
        self.check_own(node)?;
        let node = &mut self.nodes[node.index()];
        (node.ty, node.changes.called) = (ty, true);
        Ok(())
    }

    /// Gives the node a free name close to the candidate, and returns it: `Node._rename`.
    pub fn rename(&mut self, node: NodeId, candidate: &str) -> Str {
        if &*self.node(node).name != candidate {
            let name = self.names.create_name(candidate);
            self.nodes[node.index()].call(name);
        }
        Str::clone(&self.node(node).name)
    }

    /// Gives the node exactly this name.
    ///
    /// # Errors
    /// `GraphInvalid` where the name is taken by another node, or was.
    pub fn set_name(&mut self, node: NodeId, name: &str) -> Result<()> {
        if &*self.node(node).name != name {
            let name = Str::from(name);
            self.reserve_name(&name)?;
            self.nodes[node.index()].call(name);
        }
        Ok(())
    }

    /// Replaces `old` by `new` in the arguments of one node.
    ///
    /// # Errors
    /// `NodeForeign` where `node` or `new` is not of this graph.
    pub fn replace_input_with(&mut self, node: NodeId, old: NodeId, new: NodeId) -> Result<()> {
        self.check_own(node)?;
        self.check_own(new)?;
        let mut swap = |it| Arg::Node(if it == old { new } else { it });
        let args = self.node(node).args.iter().map(|it| it.map_nodes(&mut swap)).collect();
        let kwargs =
            self.node(node).kwargs.iter().map(|(key, it)| (Str::clone(key), it.map_nodes(&mut swap))).collect();
        self.update(node, |it| {
            (it.args, it.kwargs) = (args, kwargs);
            it.forget();
        });
        Ok(())
    }

    /// Makes the users of `old` use `new` instead: those that `filter` lets through. Returns them, in users order.
    ///
    /// # Errors
    /// `NodeForeign` where a node is not of this graph.
    pub fn replace_all_uses_with(
        &mut self,
        old: NodeId,
        new: NodeId,
        filter: &mut dyn FnMut(&Graph, NodeId) -> bool,
    ) -> Result<Vec<NodeId>> {
        self.check_own(old)?;
        self.check_own(new)?;
        let mut changed: Vec<NodeId> = self.users(old).iter().collect();
        changed.retain(|&user| filter(self, user));
        for &user in &changed {
            self.replace_input_with(user, old, new)?;
        }
        Ok(changed)
    }

    /// Removes a node that nothing uses. Its id stays invalid for ever; its arguments are gone.
    ///
    /// # Errors
    /// `NodeHasUsers` where something still uses it, `NodeForeign` where it is not in this graph.
    pub fn erase_node(&mut self, node: NodeId) -> Result<()> {
        self.check_own(node)?;
        let users = self.users(node);
        if !users.is_empty() {
            let names: Vec<&str> = users.iter().map(|it| &*self.node(it).name).collect();
            let name = &self.node(node).name;
            let what = format!(
                "Tried to erase Node {name} but it still had {} users in the graph: {{{}}}!",
                names.len(),
                names.join(", ")
            );
            return Err(Diagnostic::new(Code::NodeHasUsers, what)
                .node(&**name)
                .help("replace its uses first, with replace_all_uses_with"));
        }
        match self.insert_point {
            InsertPoint::Before(it) if it == node => {
                self.insert_point = self.next(node).map_or(InsertPoint::End, InsertPoint::Before);
            }
            InsertPoint::After(it) if it == node => {
                self.insert_point = match self.next(node) {
                    Some(next) => InsertPoint::Before(next),
                    None => InsertPoint::End,
                };
            }
            InsertPoint::Before(_) | InsertPoint::After(_) | InsertPoint::End => {}
        }
        self.update(node, |it| {
            (it.args, it.kwargs) = (Vec::new(), Vec::new());
            it.forget();
        });
        self.order.remove(node);
        Ok(())
    }

    /// Moves a node to stand just before another one.
    ///
    /// # Errors
    /// `NodeForeign` where one of them is not in this graph.
    pub fn move_before(&mut self, node: NodeId, anchor: NodeId) -> Result<()> {
        self.check_own(node)?;
        self.check_own(anchor)?;
        if node != anchor {
            self.order.remove(node);
            self.order.insert(node, Some(anchor));
        }
        Ok(())
    }

    /// Moves a node to stand just after another one.
    ///
    /// # Errors
    /// `NodeForeign` where one of them is not in this graph.
    pub fn move_after(&mut self, node: NodeId, anchor: NodeId) -> Result<()> {
        self.check_own(node)?;
        self.check_own(anchor)?;
        if node != anchor {
            self.order.remove(node);
            let before = self.order.next(anchor);
            self.order.insert(node, before);
        }
        Ok(())
    }

    /// Puts all nodes in this order. The users of each node then stand in the order of the graph, as they would in a graph
    /// that was built so.
    ///
    /// # Errors
    /// `NodeForeign` where one of them is not in this graph, `GraphInvalid` where one is missing or given twice.
    pub fn reorder(&mut self, nodes: &[NodeId]) -> Result<()> {
        let mut is_given = vec![false; self.id_bound()];
        for &node in nodes {
            self.check_own(node)?;
            if std::mem::replace(&mut is_given[node.index()], true) {
                let name = &*self.node(node).name;
                return Err(Diagnostic::new(Code::GraphInvalid, format!("{name} is given twice")).node(name));
            }
        }
        if let Some(missing) = self.nodes().find(|it| !is_given[it.index()]) {
            let name = &*self.node(missing).name;
            return Err(Diagnostic::new(Code::GraphInvalid, format!("{name} is not among the nodes")).node(name));
        }
        for &node in nodes {
            self.order.remove(node);
            self.order.insert(node, None);
        }
        self.sort_users();
        Ok(())
    }

    /// Copies a node of another graph (or of this one) to the insertion point, with its arguments mapped: op, target,
    /// name where it is free, type and meta.
    ///
    /// # Errors
    /// `NodeForeign` where a mapped argument is not a node of this graph.
    pub fn node_copy(&mut self, source: &Node, map: &mut dyn FnMut(NodeId) -> Arg) -> Result<NodeId> {
        let args: Vec<Arg> = source.args.iter().map(|it| it.map_nodes(map)).collect();
        let kwargs: Vec<(Str, Arg)> =
            source.kwargs.iter().map(|(key, it)| (Str::clone(key), it.map_nodes(map))).collect();
        let copy = self.add_node(source.op, Str::clone(&source.target), args, kwargs, Some(&source.name))?;
        let node = &mut self.nodes[copy.index()];
        node.ty = source.ty.clone();
        node.meta = source.meta.clone();
        Ok(copy)
    }

    /// Copies all nodes of another graph but its output, and returns what that output returns, in terms of this graph.
    /// `map` has an entry per id of the other graph; nodes that have one already are not copied, so a graph is inlined
    /// by giving its placeholders' values.
    ///
    /// # Errors
    /// `GraphInvalid` where the other graph uses a node before its definition.
    pub fn graph_copy(&mut self, other: &Graph, map: &mut Vec<Option<Arg>>) -> Result<Option<Arg>> {
        map.resize(other.id_bound().max(map.len()), None);
        for id in other.nodes() {
            if map[id.index()].is_some() {
                continue;
            }
            let source = other.node(id);
            let mut undefined = None;
            let mut mapped = |it: NodeId| {
                map[it.index()].clone().unwrap_or_else(|| {
                    undefined = Some(it);
                    Arg::None
                })
            };
            if source.op == Opcode::Output {
                let result = source.args.first().map(|it| it.map_nodes(&mut mapped));
                other.check_defined(undefined, id)?;
                return Ok(result);
            }
            let args: Vec<Arg> = source.args.iter().map(|it| it.map_nodes(&mut mapped)).collect();
            let kwargs = source.kwargs.iter().map(|(key, it)| (Str::clone(key), it.map_nodes(&mut mapped))).collect();
            other.check_defined(undefined, id)?;
            let copy = self.add_node(source.op, Str::clone(&source.target), args, kwargs, Some(&source.name))?;
            self.nodes[copy.index()].ty = source.ty.clone();
            self.nodes[copy.index()].meta = source.meta.clone();
            map[id.index()] = Some(Arg::Node(copy));
        }
        Ok(None)
    }

    /// Erases the nodes that nothing uses and that `is_impure` does not hold on to, from the end to the beginning, and
    /// returns whether anything changed. As in FX, even unused inputs and outputs go unless it holds on to them.
    ///
    /// # Errors
    /// The first problem that [`Graph::lint`] finds, since a use before the definition would be walked in vain.
    pub fn eliminate_dead_code(&mut self, is_impure: &dyn Fn(&Node) -> bool) -> Result<bool> {
        if let Some(problem) = self.lint(None).into_iter().next() {
            return Err(problem);
        }
        let mut is_changed = false;
        let mut at = self.last();
        while let Some(node) = at {
            at = self.prev(node);
            if self.users(node).is_empty() && !is_impure(self.node(node)) {
                self.erase_node(node).expect("a node without users can be erased");
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// Puts the users of each node into the order of the graph, as they are in a fresh copy of it.
    pub fn sort_users(&mut self) {
        let mut sorted = vec![UserSet::default(); self.id_bound()];
        for id in self.nodes() {
            self.node(id).for_each_input(&mut |input| sorted[input.index()].insert(id));
        }
        for (users, mut sorted) in self.users.iter_mut().zip(sorted) {
            sorted.is_changed = users.is_changed || !users.iter().eq(sorted.iter());
            *users = sorted;
        }
    }

    /// The same graph with ids in order from zero and without tombstones, so that what is written does not depend on
    /// the history of edits. The used names, even of erased nodes, stay used.
    pub fn compacted(&self) -> Graph {
        let mut ids = vec![None; self.id_bound()];
        for (index, id) in self.nodes().enumerate() {
            ids[id.index()] = Some(NodeId(u32::try_from(index).expect("ids are 32 bits wide")));
        }
        let new_id = |it: NodeId| ids[it.index()].unwrap_or(NodeId(u32::MAX));
        let mut res = Graph { names: self.names.clone(), ..Graph::new() };
        for id in self.nodes() {
            let source = self.node(id);
            let mut node = source.clone();
            let mut map = |it: NodeId| Arg::Node(new_id(it));
            node.args = source.args.iter().map(|it| it.map_nodes(&mut map)).collect();
            node.kwargs = source.kwargs.iter().map(|(key, it)| (Str::clone(key), it.map_nodes(&mut map))).collect();
            res.nodes.push(node);
            let mut users = UserSet::default();
            self.users(id).iter().for_each(|user| users.insert(new_id(user)));
            res.users.push(users);
            res.order.insert(new_id(id), None);
        }
        res
    }

    pub(crate) fn check_own(&self, node: NodeId) -> Result<()> {
        if self.contains(node) {
            return Ok(());
        }
        let what = match self.nodes.get(node.index()) {
            Some(erased) => format!("node {} was erased from the graph", erased.name),
            None => "the node is not in this graph".to_string(),
        };
        Err(Diagnostic::new(Code::NodeForeign, what).help("use a node of this graph"))
    }

    fn check_defined(&self, undefined: Option<NodeId>, user: NodeId) -> Result<()> {
        let Some(undefined) = undefined else { return Ok(()) };
        let what = format!("Argument '{}' was used before it has been defined", self.node(undefined).name);
        Err(Diagnostic::new(Code::GraphInvalid, what).node(&*self.node(user).name))
    }

    /// The same arguments, if they may become part of this graph.
    fn checked(&self, args: Vec<Arg>, kwargs: Vec<(Str, Arg)>) -> Result<Arguments> {
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

    fn reserve_name(&mut self, name: &Str) -> Result<()> {
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

    /// Changes the arguments of a node and keeps the users right. As in FX, the node becomes the last user of each of
    /// its inputs, even of those that it had before.
    fn update(&mut self, node: NodeId, change: impl FnOnce(&mut Node)) {
        let (changed, users) = (&mut self.nodes[node.index()], &mut self.users);
        // An input that is there twice is removed, and inserted, once.
        changed.for_each_input(&mut |input| users[input.index()].remove(node));
        change(changed);
        changed.changes.args = true;
        changed.for_each_input(&mut |input| users[input.index()].insert(node));
    }
}

/// Positional and keyword arguments.
type Arguments = (Vec<Arg>, Vec<(Str, Arg)>);

struct Nodes<'a> {
    graph: &'a Graph,
    front: Option<NodeId>,
    back: Option<NodeId>,
}

impl Nodes<'_> {
    fn close_when_met(&mut self) {
        if self.front == self.back {
            (self.front, self.back) = (None, None);
        }
    }
}

impl Iterator for Nodes<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let res = self.front?;
        let is_last = self.front == self.back;
        self.close_when_met();
        if !is_last {
            self.front = self.graph.order.next(res);
        }
        Some(res)
    }
}

impl DoubleEndedIterator for Nodes<'_> {
    fn next_back(&mut self) -> Option<NodeId> {
        let res = self.back?;
        let is_last = self.front == self.back;
        self.close_when_met();
        if !is_last {
            self.back = self.graph.order.prev(res);
        }
        Some(res)
    }
}

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
