//! Finding where a pattern stands in a graph: `torch.fx.passes.utils.matcher_utils`.
//!
//! A pattern is a graph. Its inputs are wildcards, and the search begins at what it returns: each node of the graph that
//! could be the first returned node is tried, in order, and the arguments of both are walked together, backwards. There is
//! nothing to guess on that way, for a value has one producer; only where a pattern returns several values that nothing
//! joins must all pairs be tried. Nothing here recurses on the depth of a graph, and what a search may cost is bounded
//! ([`MatcherOptions::max_steps`]).

mod constraint;
mod contain;
mod equality;
mod explain;
mod match_nodes;
mod named;
mod pattern;
mod search;

pub use constraint::{ConstantValue, Constraint};
pub use explain::Miss;
use explain::Unfit;
pub use named::SubgraphMatcherWithNameNodeMap;

use indexmap::IndexMap;
pub(crate) use pattern::is_compute;
pub use pattern::{ANY_OF, OPTIONAL};

use pattern::Pattern;
use rustc_hash::{FxBuildHasher, FxHashSet};
use search::Search;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Str};
use tracefx_ops::Registry;
use ts_rs::TS;

/// How a [`SubgraphMatcher`] matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct MatcherOptions {
    /// Whether the output is part of the pattern, so that only the whole end of a graph matches.
    pub match_output: bool,
    /// Whether inputs match inputs only, instead of anything.
    pub match_placeholder: bool,
    /// Whether of matches that share a node only the first is given.
    pub remove_overlapping_matches: bool,
    /// Whether a literal of the pattern matches anything.
    pub ignore_literals: bool,
    /// A returned node of the pattern also matches any node with this text in its name, whatever that calls. Nothing
    /// where empty.
    pub node_name_match: String,
    /// Whether the first two arguments of operators that let them may change places.
    pub commutative: bool,
    /// Whether chains of calls of an associative operator match however they are joined, as sums of three.
    pub associative: bool,
    /// Whether two wildcards may stand for one node.
    pub shared_wildcards: bool,
    /// What is asked of what nodes of the pattern stand for, by their names.
    pub constraints: BTreeMap<String, Constraint>,
    /// How many steps a search may take before it is given up: by default ten millions, and a thousand for each node of the
    /// graph.
    pub max_steps: Option<u64>,
}

impl Default for MatcherOptions {
    fn default() -> Self {
        MatcherOptions {
            match_output: false,
            match_placeholder: false,
            remove_overlapping_matches: true,
            ignore_literals: false,
            node_name_match: String::new(),
            commutative: false,
            associative: false,
            shared_wildcards: false,
            constraints: BTreeMap::new(),
            max_steps: None,
        }
    }
}

/// One place where a pattern stands: `torch.fx.passes.utils.matcher_utils.InternalMatch`.
///
/// Keys are nodes of the pattern. Values are arguments of the graph, since a wildcard stands for a literal too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InternalMatch {
    /// The nodes of the pattern from which the search began.
    pub anchors: Vec<NodeId>,
    /// What each node of the pattern stands for, in the order in which it was found.
    pub nodes_map: IndexMap<NodeId, Arg, FxBuildHasher>,
    /// What the inputs of the pattern stand for, in order.
    pub placeholder_nodes: Vec<Arg>,
    /// What the returned nodes stand for, in order.
    pub returning_nodes: Vec<Arg>,
    /// What the names stand for that the pattern returns in a dict; see [`SubgraphMatcherWithNameNodeMap`].
    pub name_node_map: IndexMap<Str, Arg>,
}

/// Finds where a pattern stands in a graph: `torch.fx.passes.utils.matcher_utils.SubgraphMatcher`.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_rewrite::{MatcherOptions, SubgraphMatcher};
///
/// let mut pattern = Graph::new();
/// let x = pattern.placeholder("x");
/// let relu = pattern.call_function("torch.relu", vec![x.into()], vec![]);
/// pattern.output(relu.into());
///
/// let mut graph = Graph::new();
/// let a = graph.placeholder("a");
/// let b = graph.call_function("torch.relu", vec![a.into()], vec![]);
/// let c = graph.call_function("torch.relu", vec![b.into()], vec![]);
/// graph.output(c.into());
///
/// let registry = tracefx_ops::registry();
/// let matcher = SubgraphMatcher::new(&GraphModule::new(pattern), registry, MatcherOptions::default()).unwrap();
/// let matches = matcher.matches(&GraphModule::new(graph)).unwrap();
/// assert_eq!(matches.len(), 2);
/// assert_eq!(matches[1].placeholder_nodes, [Arg::Node(b)]);
/// ```
pub struct SubgraphMatcher {
    pattern: Pattern,
    options: MatcherOptions,
}

/// What a search found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) matches: Vec<InternalMatch>,
    /// What the first anchor stood for where a match was not fit, and may be after a change far away.
    pub(crate) retry: Vec<NodeId>,
}

/// How many steps of a search a match stands for.
const STEPS_OF_A_MATCH: u64 = 100;

impl SubgraphMatcher {
    /// A matcher for this pattern.
    ///
    /// # Errors
    /// `PatternInvalid` where the pattern is empty, has nodes that nothing needs, or inputs that nothing uses.
    pub fn new(pattern: &GraphModule, registry: &Registry, options: MatcherOptions) -> Result<Self> {
        Ok(SubgraphMatcher { pattern: Pattern::new(pattern.clone(), registry, &options)?, options })
    }

    /// The pattern.
    pub fn pattern(&self) -> &GraphModule {
        &self.pattern.module
    }

    /// The matches in a module whose graph is well formed, in the order of what its first returned node stands for.
    ///
    /// Inner nodes of a match are used by nodes of the match only, and none of its nodes needs another through nodes outside.
    ///
    /// # Errors
    /// `LimitExceeded` where the search takes too many steps, `AttributeMissing` where a node reads what is not there.
    pub fn matches(&self, module: &GraphModule) -> Result<Vec<InternalMatch>> {
        Ok(self.search(module, None)?.matches)
    }

    /// As [`SubgraphMatcher::matches`], where the first anchor stands for one of these nodes, which are in order.
    pub(crate) fn matches_among(&self, module: &GraphModule, candidates: Vec<NodeId>) -> Result<Found> {
        self.search(module, Some(candidates))
    }

    /// How far from what the first anchor stands for the nodes of a match can be, going from node to input: nothing where
    /// they may hang together otherwise.
    pub(crate) fn reach(&self) -> Option<usize> {
        let graph = self.pattern.graph();
        let &[anchor] = &*self.pattern.anchors else { return None };
        if self.options.associative {
            // A chain may be joined so that each of its calls is an input of another.
            return Some(graph.len());
        }
        let mut distance = vec![None; graph.id_bound()];
        distance[anchor.index()] = Some(0);
        for id in graph.nodes().rev() {
            let Some(here) = distance[id.index()] else { continue };
            graph.node(id).for_each_input(&mut |input| {
                let known = &mut distance[input.index()];
                *known = Some(known.map_or(here + 1, |it: usize| it.max(here + 1)));
            });
        }
        distance.into_iter().flatten().max()
    }

    fn search(&self, module: &GraphModule, candidates: Option<Vec<NodeId>>) -> Result<Found> {
        let mut res = Found::default();
        let mut search = Search::new(&self.pattern, &self.options, module);
        if let Some(candidates) = candidates {
            search.begin_at(candidates)?;
        }
        while let Some(found) = search.next_match()? {
            // A match costs memory too.
            search.spend(STEPS_OF_A_MATCH)?;
            match self.unfit(module, &mut search, &found)? {
                None => {}
                Some(Unfit::Leaks) => continue,
                Some(Unfit::NeedsItself) => {
                    let anchor = found.anchors.first().and_then(|it| found.nodes_map.get(it));
                    res.retry.extend(anchor.and_then(Arg::as_node));
                    continue;
                }
            }
            if self.options.remove_overlapping_matches {
                search.take(compute_nodes(self.pattern.graph(), &found));
            }
            res.matches.push(found);
        }
        Ok(res)
    }
}

/// The nodes of the graph that a match is made of: without inputs and output.
pub(crate) fn compute_nodes(pattern: &Graph, found: &InternalMatch) -> FxHashSet<NodeId> {
    let nodes = found.nodes_map.iter().filter(|(node, _)| is_compute(pattern, **node));
    nodes.filter_map(|(_, it)| it.as_node()).collect()
}
