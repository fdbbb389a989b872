//! Changing what is there.

use super::{Graph, InsertPoint};
use crate::{Arg, Node, NodeId, Str, UserSet};
use tracefx_core::{Code, Diagnostic, Result};

impl Graph {
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

    /// Erases the nodes that nothing uses and that `is_impure` does not hold on to, from the end to the beginning, and
    /// returns whether anything changed. As in FX, even unused inputs and outputs go unless it holds on to them.
    ///
    /// # Errors
    /// The first problem that [`Graph::lint`] finds, since a use before the definition would be walked in vain.
    pub fn eliminate_dead_code(&mut self, is_impure: &dyn Fn(&Graph, &Node) -> bool) -> Result<bool> {
        if let Some(problem) = self.lint(None).into_iter().next() {
            return Err(problem);
        }
        let mut is_changed = false;
        let mut at = self.last();
        while let Some(node) = at {
            at = self.prev(node);
            if self.users(node).is_empty() && !is_impure(self, self.node(node)) {
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
