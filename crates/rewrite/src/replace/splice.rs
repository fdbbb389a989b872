//! Putting a replacement in the place of one match.

use super::{Place, ReplacedPatterns, invalid, placeholders};
use crate::InternalMatch;
use crate::effects::{AliasAnalysis, Effect, effects_of, known_writers};
use crate::matcher::{compute_nodes, is_compute};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, GraphModule, InsertPoint, NodeId, Opcode, Str};
use tracefx_ops::Registry;

/// A replacement, looked at once for all matches.
pub(super) struct Splice<'a> {
    pattern: &'a Graph,
    pattern_inputs: Vec<NodeId>,
    replacement: &'a Graph,
    inputs: Vec<NodeId>,
    /// What the replacement returns.
    returned: Arg,
    /// What each node of the replacement does to memory.
    effects: Vec<(NodeId, Effect)>,
    /// Whether the replacement writes to something, as far as its operators are known.
    pub(super) writes: bool,
}

impl<'a> Splice<'a> {
    pub(super) fn new(pattern: &'a Graph, module: &'a GraphModule, registry: &Registry) -> Result<Self> {
        let replacement = &module.graph;
        let output = replacement.output_node().and_then(|it| replacement.node(it).args().first());
        let result = output
            .ok_or_else(|| invalid("the replacement returns nothing".to_owned(), "give its graph an output node"))?;
        if let Some(problem) = replacement.lint(None).into_iter().next() {
            return Err(problem);
        }
        let (pattern_inputs, inputs) = (placeholders(pattern), placeholders(replacement));
        let effects = effects_of(module, registry);
        let writes = known_writers(module, registry).next().is_some();
        Ok(Splice { pattern, pattern_inputs, replacement, inputs, returned: result.clone(), effects, writes })
    }

    /// Refuses a match that the replacement does not fit.
    pub(super) fn check(&self, found: &InternalMatch) -> Result<()> {
        let (wanted, given) = (found.placeholder_nodes.len(), self.inputs.len());
        if wanted != given {
            let what = format!("Placeholder count mismatch: {wanted} vs {given}");
            return Err(invalid(what, "give the replacement the parameters of the pattern"));
        }
        let (wanted, given) = (found.returning_nodes.len(), results(&self.returned).len());
        if wanted != given {
            let what = format!("Returning nodes count mismatch: {wanted} vs {given}");
            return Err(invalid(what, "let the replacement return as many values as the pattern has different ones"));
        }
        let is_made = |node: &NodeId| is_compute(self.pattern, *node);
        if !found.nodes_map.keys().any(is_made) {
            let what = "the pattern only passes its inputs on, so there is nothing to replace".to_owned();
            return Err(invalid(what, "give the pattern an operation"));
        }
        Ok(())
    }

    /// Whether what comes of this match may be refused, after others were replaced: where something else than a node stands
    /// for an input, or something else than a node of the replacement for a result.
    pub(super) fn may_fail(&self, found: &InternalMatch) -> bool {
        let is_made = |it: &Arg| it.as_node().is_some_and(|node| !self.inputs.contains(&node));
        !(found.placeholder_nodes.iter().all(|it| it.as_node().is_some())
            && results(&self.returned).iter().all(is_made))
    }

    /// By how many arguments a match makes the graph larger, since what stands for one node is copied to all its users.
    fn growth(&self, graph: &Graph, found: &InternalMatch) -> usize {
        let is_single = |it: &Arg| weight(it) == 1;
        if found.placeholder_nodes.iter().all(is_single) && results(&self.returned).iter().all(is_single) {
            return 0;
        }
        let mut sizes = vec![1; self.replacement.id_bound()];
        for (input, bound) in self.inputs.iter().zip(&found.placeholder_nodes) {
            sizes[input.index()] = weight(bound);
        }
        let mut more: usize = 0;
        let mut add = |items: usize| more = more.saturating_add(items);
        let is_output = |node: &NodeId| self.replacement.node(*node).op() == Opcode::Output;
        for node in self.replacement.nodes().filter(|it| !is_output(it)) {
            self.replacement.node(node).for_each_input(&mut |input| add(sizes[input.index()] - 1));
        }
        for (old, new) in found.returning_nodes.iter().zip(results(&self.returned)) {
            let Arg::Node(old) = old else { continue };
            let size = new.weight(&mut |input| sizes[input.index()]);
            graph.users(*old).iter().for_each(|user| {
                graph.node(user).for_each_input(&mut |input| add(if input == *old { size - 1 } else { 0 }));
            });
        }
        // What was bound stood in the graph once, in nodes that go.
        more.saturating_sub(found.placeholder_nodes.iter().map(|it| weight(it) - 1).sum())
    }

    /// Whether the replacement may write to something.
    pub(super) fn may_write(&self) -> bool {
        self.effects.iter().any(|(_, it)| it.writes)
    }

    /// Replaces the match, or gives it back where writes keep its nodes apart. `changed` says what has taken the place of
    /// nodes that are gone.
    pub(super) fn apply(
        &self,
        graph: &mut Graph,
        mut found: InternalMatch,
        changed: &mut FxHashMap<NodeId, Arg>,
        writes: Option<&mut AliasAnalysis>,
        room: &mut usize,
    ) -> Result<std::result::Result<ReplacedPatterns, InternalMatch>> {
        let mut values = vec![None; self.replacement.id_bound()];
        for (at, &input) in self.inputs.iter().enumerate() {
            let value = found.placeholder_nodes[at].map_nodes(&mut |it| current(it, changed));
            found.placeholder_nodes[at] = value.clone();
            found.nodes_map.insert(self.pattern_inputs[at], value.clone());
            values[input.index()] = Some(value);
        }
        let left = room.checked_sub(self.growth(graph, &found)).ok_or_else(|| {
            let what = "the arguments that replacements copy get too large".to_owned();
            let help = "let the pattern return fewer values, or the replacement a node instead of a literal";
            Diagnostic::new(Code::LimitExceeded, what).help(help)
        })?;
        let gone = compute_nodes(self.pattern, &found);
        // What stands for an input may be a node of the match itself, which the replacement would use and then erase.
        let is_gone = |value: &Arg| value.any_node(&mut |it| gone.contains(&it));
        let mut used =
            self.inputs.iter().zip(&found.placeholder_nodes).filter(|it| !self.replacement.users(*it.0).is_empty());
        if used.any(|(_, value)| is_gone(value)) {
            return Ok(Err(found));
        }
        match Place::find(graph, self.pattern, &found, &gone, writes.as_deref()) {
            Ok(place) => place.make(graph)?,
            Err(_) => return Ok(Err(found)),
        }
        *room = left;
        let result = graph.graph_copy(self.replacement, &mut values)?.expect("the replacement returns something");
        graph.set_insert_point(InsertPoint::End)?;

        let is_input: FxHashSet<NodeId> = self.inputs.iter().copied().collect();
        let made = self.replacement.nodes().filter(|it| !is_input.contains(it));
        let replacements: Vec<NodeId> =
            made.filter_map(|it| values[it.index()].as_ref().and_then(Arg::as_node)).collect();
        if let Some(writes) = writes {
            let made = |(node, effect): &(NodeId, Effect)| Some((values[node.index()].as_ref()?.as_node()?, *effect));
            let effects = self.effects.iter().filter(|(node, _)| !is_input.contains(node)).filter_map(made);
            writes.add(graph, effects);
            let replaced = found.returning_nodes.iter().zip(results(&result));
            replaced.for_each(|(old, new)| old.for_each_node(&mut |old| writes.replace(old, new)));
        }
        let is_new: FxHashSet<NodeId> = replacements.iter().copied().collect();
        for (old, new) in found.returning_nodes.iter().zip(results(&result)) {
            let Arg::Node(old) = *old else { continue };
            let is_gone = gone.contains(&old);
            redirect(graph, old, new, &mut |graph, user| {
                // An input that the match returns stays, so that what comes before the replacement may go on using it.
                let is_late = |new: &NodeId| graph.compare(user, *new) == Ordering::Greater;
                !is_new.contains(&user) && (is_gone || new.as_node().as_ref().is_none_or(is_late))
            })?;
            if is_gone {
                changed.insert(old, new.clone());
            }
        }
        let mut gone: Vec<NodeId> = gone.into_iter().collect();
        gone.sort_unstable_by(|&a, &b| graph.compare(b, a));
        for node in gone {
            graph.erase_node(node)?;
        }
        Ok(Ok(ReplacedPatterns { anchor: found.anchors[0], nodes_map: found.nodes_map, replacements }))
    }
}

/// How many arguments this is made of.
fn weight(arg: &Arg) -> usize {
    arg.weight(&mut |_| 1)
}

/// What a graph returns: the values of a tuple or list, or the one value.
pub(super) fn results(returned: &Arg) -> &[Arg] {
    match returned {
        Arg::Tuple(items) | Arg::List(items) => items,
        _ => std::slice::from_ref(returned),
    }
}

/// What stands in the place of a node by now.
fn current(node: NodeId, changed: &FxHashMap<NodeId, Arg>) -> Arg {
    let mut res = Arg::Node(node);
    while let Arg::Node(node) = res {
        match changed.get(&node) {
            Some(next) if *next != res => res = next.clone(),
            _ => break,
        }
    }
    res
}

/// Makes the users of `old` that the filter lets through use `new` instead.
fn redirect(graph: &mut Graph, old: NodeId, new: &Arg, filter: &mut dyn FnMut(&Graph, NodeId) -> bool) -> Result<()> {
    if let Arg::Node(new) = *new {
        if new != old {
            graph.replace_all_uses_with(old, new, filter)?;
        }
        return Ok(());
    }
    let users: Vec<NodeId> = graph.users(old).iter().filter(|&it| filter(graph, it)).collect();
    for user in users {
        let mut swap = |it| if it == old { new.clone() } else { Arg::Node(it) };
        let args = graph.node(user).args().iter().map(|it| it.map_nodes(&mut swap)).collect();
        let kwargs = graph.node(user).kwargs().iter().map(|(key, it)| (Str::clone(key), it.map_nodes(&mut swap)));
        let kwargs = kwargs.collect();
        graph.set_args(user, args)?;
        graph.set_kwargs(user, kwargs)?;
    }
    Ok(())
}
