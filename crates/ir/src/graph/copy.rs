//! Copies, of nodes and of whole graphs.

use super::Graph;
use crate::{Arg, Node, NodeId, Opcode, Str, UserSet};
use tracefx_core::{Code, Diagnostic, Result};

impl Graph {
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

    fn check_defined(&self, undefined: Option<NodeId>, user: NodeId) -> Result<()> {
        let Some(undefined) = undefined else { return Ok(()) };
        let what = format!("Argument '{}' was used before it has been defined", self.node(undefined).name);
        Err(Diagnostic::new(Code::GraphInvalid, what).node(&*self.node(user).name))
    }
}
