//! Why a pattern does not stand where it could: the nearest misses of a search.

use super::search::Search;
use super::{InternalMatch, SubgraphMatcher, compute_nodes, contain};
use crate::effects::AliasAnalysis;
use crate::replace::{Blocked, Place};
use tracefx_core::Result;
use tracefx_ir::{Arg, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;

/// How near a search came to a match, and what kept it from one.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    /// The node of the pattern from which the search began.
    pub anchor: NodeId,
    /// What that stood for; nothing where no node of the graph could be it.
    pub candidate: Option<NodeId>,
    /// The node of the pattern for which nothing fits.
    pub node: NodeId,
    /// What was there instead.
    pub found: Option<Arg>,
    /// What was expected, for people.
    pub expected: String,
    /// How many nodes of the pattern stood for something by then.
    pub n_bound: usize,
}

/// The nearest miss of each anchor.
#[derive(Default)]
pub(super) struct Misses(Vec<Miss>);

impl<'a> Search<'a> {
    /// Notes why a node of the pattern does not stand for what is there, if that is asked. Always `false`.
    pub(super) fn miss(&mut self, node: NodeId, found: Option<&Arg>, expected: impl FnOnce(&Self) -> String) -> bool {
        let Some(mut misses) = self.misses.take() else { return false };
        // The anchor whose turn it is: the last one that is bound, or else the node itself.
        let is_bound = |it: &&NodeId| self.bound[it.index()].is_some();
        let anchor = self.pattern.anchors.iter().rev().find(is_bound).copied().unwrap_or(self.pattern.anchors[0]);
        let n_bound = self.n_bound();
        let best = misses.0.iter().position(|it| it.anchor == anchor);
        if best.is_none_or(|at| misses.0[at].n_bound < n_bound) {
            let candidate = self.bound[anchor.index()].as_ref().and_then(Arg::as_node);
            let candidate = candidate.or_else(|| found.filter(|_| node == anchor).and_then(Arg::as_node));
            let miss = Miss { anchor, candidate, node, found: found.cloned(), expected: expected(self), n_bound };
            match best {
                Some(at) => misses.0[at] = miss,
                None => misses.0.push(miss),
            }
        }
        self.misses = Some(misses);
        false
    }

    /// As [`Search::miss`], for an argument of the node that is looked at.
    pub(super) fn miss_arg(&mut self, found: &Arg, expected: impl FnOnce(&Self) -> String) -> bool {
        let node = self.last_call();
        self.miss(node, Some(found), expected)
    }

    /// The node of the pattern as it is to be found.
    pub(super) fn expected(&self, node: NodeId) -> String {
        let it = self.pattern.graph().node(node);
        match it.op() {
            Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => format!("{} {}", it.op(), it.target()),
            Opcode::GetAttr if self.pattern.parameters[node.index()] == Some(true) => "a parameter".to_owned(),
            Opcode::GetAttr => "a buffer or constant".to_owned(),
            Opcode::Placeholder | Opcode::Output => it.op().to_string(),
        }
    }

    /// What the node of the pattern stands for already.
    pub(super) fn bound_name(&self, node: NodeId) -> String {
        let bound = self.bound[node.index()].as_ref();
        format!("{} again", bound.map_or(String::new(), |it| self.module.graph.format_arg(it)))
    }
}

impl SubgraphMatcher {
    /// Why the pattern does not stand where it could, or is not replaced there: for each anchor the miss in which most of
    /// the pattern stood for something. Of what can be replaced nothing is told.
    ///
    /// # Errors
    /// Those of [`SubgraphMatcher::matches`].
    pub fn explain(&self, module: &GraphModule, registry: &Registry) -> Result<Vec<Miss>> {
        let writes = AliasAnalysis::of(module, registry);
        let mut search = Search::new(&self.pattern, &self.options, module);
        search.misses = Some(Misses::default());
        while let Some(found) = search.next_match()? {
            let is_fit = self.unfit(module, &mut search, &found)?.is_none();
            if is_fit && let Some(blocked) = writes.as_ref().and_then(|it| self.blocked(module, &found, it)) {
                let name = module.graph.node(blocked.by).name();
                let is_blocked = |it: &&NodeId| found.nodes_map[*it].as_node() == Some(blocked.node);
                let node = found.nodes_map.keys().find(is_blocked).copied().unwrap_or(found.anchors[0]);
                let expected =
                    |_: &Search<'_>| format!("what may pass %{name}, though one writes to what the other uses");
                search.miss(node, Some(&Arg::Node(blocked.node)), expected);
            }
        }
        Ok(search.misses.take().unwrap_or_default().0)
    }

    /// What keeps the match from being replaced, if that is a write.
    fn blocked(&self, module: &GraphModule, found: &InternalMatch, writes: &AliasAnalysis) -> Option<Blocked> {
        let pattern = self.pattern.graph();
        let matched = compute_nodes(pattern, found);
        if matched.is_empty() {
            return None;
        }
        Place::find(&module.graph, pattern, found, &matched, Some(writes)).err()
    }

    /// What keeps what was found from being fused or replaced; nothing where it is fit.
    pub(super) fn unfit(
        &self,
        module: &GraphModule,
        search: &mut Search<'_>,
        found: &InternalMatch,
    ) -> Result<Option<Unfit>> {
        if let Some((node, inner, user)) = contain::leak(&self.pattern, &module.graph, found) {
            let user = module.graph.node(user).name();
            let expected = |_: &Search<'_>| format!("no use outside of the match, as that by %{user}");
            search.miss(node, Some(&Arg::Node(inner)), expected);
            return Ok(Some(Unfit::Leaks));
        }
        let compute = compute_nodes(self.pattern.graph(), found);
        if let Some(between) = contain::cycle(&module.graph, &compute, &mut || search.spend(1))? {
            let name = module.graph.node(between).name();
            let expected =
                |_: &Search<'_>| format!("no way out of the match and back into it, as that through %{name}");
            search.miss(found.anchors[0], Some(&Arg::Node(between)), expected);
            return Ok(Some(Unfit::NeedsItself));
        }
        Ok(None)
    }
}

/// Why a match cannot be fused or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// One of its inner nodes is used outside.
    Leaks,
    /// One of its nodes needs another through nodes outside. Whether that is so is decided anywhere in the graph.
    NeedsItself,
}
