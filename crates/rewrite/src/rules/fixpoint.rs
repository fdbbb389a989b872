//! Rules until none matches any more, without looking at everything again after each change.
//!
//! A match is new only where something changed: a node is new, takes other arguments, or has other users. So each rule keeps
//! what changed since it was looked for last, and is looked for again where a match could have one of those nodes in it. The
//! matches are those of a search everywhere, in the same order.

use super::{Fired, Rule, RuleTrace, fired};
use crate::matcher::is_compute;
use crate::replace::{Known, Replacing, replace_knowing};
use crate::{InternalMatch, RewriteContext, SubgraphMatcher};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId};

/// Rules that run to a fixpoint.
pub(super) struct Fixpoint<'a> {
    rules: Vec<Waiting<'a>>,
    cx: RewriteContext<'a>,
    known: Known,
    /// How many nodes were looked at as the place of a match.
    pub(super) n_tried: usize,
}

/// A rule, and where it is to be looked for.
struct Waiting<'a> {
    rule: &'a Rule,
    /// Made when the rule has its turn, so that rules before it run even where it is refused.
    matcher: Option<SubgraphMatcher>,
    places: Places,
}

/// Where a rule is to be looked for.
enum Places {
    Everywhere,
    /// Where a match has one of these nodes in it.
    Around(Vec<NodeId>),
}

impl<'a> Fixpoint<'a> {
    pub(super) fn new(rules: &'a [Rule], cx: RewriteContext<'a>) -> Self {
        let rules = rules.iter().map(|rule| Waiting { rule, matcher: None, places: Places::Everywhere });
        Fixpoint { rules: rules.collect(), cx, known: Known::default(), n_tried: 0 }
    }

    pub(super) fn run(&mut self, module: &mut GraphModule, limit: usize) -> Result<RuleTrace> {
        let mut trace = RuleTrace::default();
        let mut waiting: VecDeque<usize> = (0..self.rules.len()).collect();
        while let Some(at) = waiting.pop_front() {
            if trace.fired.len() >= limit {
                return Ok(trace);
            }
            let rule = self.rules[at].rule;
            let applied = self.apply(at, module).map_err(|it| it.note(format!("the rule is `{}`", rule.name)))?;
            if !applied.is_empty() {
                waiting = (0..self.rules.len()).collect();
            }
            trace.fired.extend(applied);
        }
        trace.is_fixpoint = true;
        Ok(trace)
    }

    /// Applies a rule wherever it matches, and tells all rules what changed.
    fn apply(&mut self, at: usize, module: &mut GraphModule) -> Result<Vec<Fired>> {
        let Waiting { rule, matcher, places } = &mut self.rules[at];
        let Rule { pattern, replacement, options, .. } = *rule;
        let matcher = match matcher {
            Some(it) => it,
            None => matcher.insert(SubgraphMatcher::new(pattern, self.cx.registry, options.matcher())?),
        };
        let reach = matcher.reach();
        let found = match (std::mem::replace(places, Places::Around(Vec::new())), reach) {
            (Places::Around(changed), Some(reach)) => {
                let candidates = above(&module.graph, changed, reach);
                self.n_tried += candidates.len();
                matcher.matches_among(module, candidates)?
            }
            (Places::Everywhere | Places::Around(_), _) => {
                self.n_tried += module.graph.len();
                matcher.matches_among(module, module.graph.nodes().collect())?
            }
        };
        let mut changed = around(&module.graph, &pattern.graph, &found.matches);
        let pairs = found.matches.into_iter().map(|it| (it, replacement)).collect();
        let Replacing { replaced, blocked } =
            replace_knowing(module, pattern, pairs, self.cx, options, &mut self.known)?;
        if let Places::Around(nodes) = places {
            nodes.extend(found.retry);
            // What is between the nodes of a match may be gone after a change far away.
            nodes.extend(blocked.iter().filter_map(|it| it.nodes_map.get(it.anchors.first()?)?.as_node()));
        }
        for it in &replaced {
            changed.extend(&it.replacements);
            it.nodes_map.values().for_each(|value| value.for_each_node(&mut |node| changed.push(node)));
        }
        for other in &mut self.rules {
            if let Places::Around(nodes) = &mut other.places {
                nodes.extend(&changed);
            }
        }
        Ok(fired(&self.rules[at].rule.name, &replaced, &module.graph))
    }
}

/// What the nodes of these matches take and what takes them: what is left of it has other users or arguments afterwards.
fn around(graph: &Graph, pattern: &Graph, matches: &[InternalMatch]) -> Vec<NodeId> {
    let mut res = Vec::new();
    for found in matches {
        let nodes = found.nodes_map.iter().filter(|(node, _)| is_compute(pattern, **node));
        for node in nodes.filter_map(|(_, it)| it.as_node()) {
            graph.node(node).for_each_input(&mut |input| res.push(input));
        }
        for node in found.returning_nodes.iter().filter_map(Arg::as_node) {
            res.extend(graph.users(node).iter());
        }
    }
    res
}

/// The nodes from which one of these is reached by so many steps to an input, in order.
fn above(graph: &Graph, nodes: Vec<NodeId>, reach: usize) -> Vec<NodeId> {
    let mut seen: FxHashSet<NodeId> = nodes.into_iter().filter(|&it| graph.contains(it)).collect();
    let mut front: Vec<NodeId> = seen.iter().copied().collect();
    for _ in 0..reach {
        let users = front.iter().flat_map(|&it| graph.users(it).iter());
        front = users.filter(|&it| seen.insert(it)).collect();
    }
    let mut res: Vec<NodeId> = seen.into_iter().collect();
    res.sort_unstable_by(|&a, &b| graph.compare(a, b));
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplaceOptions, RuleSet};
    use tracefx_ir::InsertPoint;
    use tracefx_ops::registry;

    fn calls(targets: &[&str]) -> GraphModule {
        let mut graph = Graph::new();
        let mut value = graph.placeholder("x");
        for target in targets {
            value = graph.call_function(target, vec![value.into()], vec![]);
        }
        graph.output(value.into());
        GraphModule::new(graph)
    }

    fn rule(from: &[&str], to: &[&str]) -> Rule {
        let options = ReplaceOptions::default();
        Rule { name: from.concat().into(), pattern: calls(from), replacement: calls(to), options }
    }

    /// Rules as they were run before there was a list of what changed: everywhere, again and again.
    fn everywhere(rules: &[Rule], module: &mut GraphModule) -> RuleTrace {
        let mut trace = RuleTrace::default();
        let mut at = 0;
        while at < rules.len() {
            let once = RuleSet { rules: vec![rules[at].clone()] }.run_once(module, registry()).unwrap();
            at = if once.fired.is_empty() { at + 1 } else { 0 };
            trace.fired.extend(once.fired);
        }
        trace.is_fixpoint = true;
        trace
    }

    #[track_caller]
    fn check(rules: &[Rule], module: &GraphModule) {
        let (mut fast, mut slow) = (module.clone(), module.clone());
        let trace = Fixpoint::new(rules, registry().into()).run(&mut fast, 10_000).unwrap();
        assert_eq!(trace, everywhere(rules, &mut slow), "{}", module.graph);
        assert_eq!(fast.graph.to_string(), slow.graph.to_string());
        assert_eq!(fast.graph.lint(None), []);
    }

    #[test]
    fn the_trace_is_that_of_looking_everywhere() {
        let rules = [rule(&["b", "b"], &["c"]), rule(&["a", "c"], &["b"]), rule(&["c", "c", "a"], &["a"])];
        // All words of three letters, written as numbers.
        for n in 0..3usize.pow(7) {
            let word: Vec<&str> = (0..7u32).map(|at| ["a", "b", "c"][n / 3usize.pow(at) % 3]).collect();
            check(&rules, &calls(&word));
        }
    }

    #[test]
    fn nodes_that_lose_a_user_are_looked_at_again() {
        // `b` has a user that goes away, so that it becomes an inner node.
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let mut call = |target: &str, args: &[NodeId]| {
            graph.call_function(target, args.iter().map(|&it| Arg::Node(it)).collect(), vec![])
        };
        let b = call("b", &[x]);
        let c = call("c", &[b]);
        let drop_first = call("second", &[b, c]);
        let d = call("d", &[drop_first]);
        graph.output(Arg::Tuple(vec![d.into(), c.into()]));
        let second = |is_pattern: bool| {
            let mut graph = Graph::new();
            let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
            let res = if is_pattern { graph.call_function("second", vec![x.into(), y.into()], vec![]) } else { y };
            graph.output(res.into());
            GraphModule::new(graph)
        };
        let options = ReplaceOptions::default();
        let drops = Rule { name: "drops".into(), pattern: second(true), replacement: second(false), options };
        let rules = [rule(&["b", "c"], &["e"]), drops];
        let module = GraphModule::new(graph);
        check(&rules, &module);
        let mut changed = module.clone();
        let trace = Fixpoint::new(&rules, registry().into()).run(&mut changed, 10).unwrap();
        assert_eq!(trace.fired.iter().map(|it| &*it.rule).collect::<Vec<_>>(), ["drops", "bc"]);
    }

    /// What is put in for a value is written to by what wrote to that: the cosine must not be moved behind the addition.
    #[test]
    fn writes_to_what_was_replaced_are_known() {
        let rules = [rule(&["torch.relu", "torch.relu"], &["torch.relu"]), rule(&["torch.cos"], &["torch.sin"])];
        let mut module = calls(&["torch.relu", "torch.relu", "torch.ops.aten.add_.Tensor"]);
        let graph = &mut module.graph;
        let [_, _, relu, add, output] = <[NodeId; 5]>::try_from(graph.nodes().collect::<Vec<_>>()).unwrap();
        graph.set_args(add, vec![relu.into(), Arg::Int(1)]).unwrap();
        graph.set_insert_point(InsertPoint::Before(add)).unwrap();
        let cos = graph.call_function("torch.cos", vec![relu.into()], vec![]);
        graph.set_args(output, vec![Arg::Tuple(vec![cos.into()])]).unwrap();
        check(&rules, &module);
        RuleSet { rules: rules.to_vec() }.run_to_fixpoint(&mut module, registry(), None).unwrap();
        let targets: Vec<&str> = module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect();
        assert_eq!(targets, ["x", "torch.relu", "torch.sin", "torch.ops.aten.add_.Tensor", "output"]);
    }

    /// How many nodes are looked at to fold a chain from its end to its beginning, one node after the other.
    fn tried(n_nodes: usize) -> usize {
        let mut word = vec!["a"; n_nodes];
        word[0] = "b";
        let rules = [rule(&["b", "a"], &["b"])];
        let mut fixpoint = Fixpoint::new(&rules, registry().into());
        let mut module = calls(&word);
        let trace = fixpoint.run(&mut module, usize::MAX).unwrap();
        assert_eq!((trace.fired.len(), module.graph.len()), (n_nodes - 1, 3));
        fixpoint.n_tried
    }

    #[test]
    fn what_is_looked_at_grows_with_the_chain_and_not_with_its_square() {
        let (short, long) = (tried(100), tried(1000));
        assert!(long < 11 * short, "{short} and {long}");
        assert!(long < 10 * 1000, "{long}");
    }
}
