//! Whether a node or argument of the pattern stands for one of the graph.

use super::equality::{is_equal, is_same_literal};
use super::pattern::{SchemaArg, reads_parameter};
use super::search::{Alternatives, Goal, Search};
use std::rc::Rc;
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, Node, NodeId, Opcode};

/// What one way to split a chain of calls costs in steps.
const STEPS_OF_A_CHAIN: u64 = 100;

impl<'a> Search<'a> {
    /// Whether the node alone, without its arguments, is one that the node of the pattern stands for.
    pub(super) fn could_be(&self, node: NodeId, found: NodeId) -> Result<bool> {
        let (wanted, it) = (self.pattern.graph().node(node), self.module.graph.node(found));
        if (wanted.op() == Opcode::Placeholder && !self.options.match_placeholder) || self.pattern.is_virtual(node) {
            return Ok(true);
        }
        let by_name = &*self.options.node_name_match;
        if !by_name.is_empty() && self.pattern.is_anchor[node.index()] && it.name().contains(by_name) {
            return Ok(true);
        }
        Ok(wanted.op() == it.op()
            && match wanted.op() {
                Opcode::Placeholder | Opcode::Output => true,
                Opcode::GetAttr => self.pattern.parameters[node.index()] == reads_parameter(self.module, found)?,
                Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => wanted.target() == it.target(),
            })
    }

    pub(super) fn match_node(&mut self, node: NodeId, found: NodeId) -> Result<bool> {
        if let Some(bound) = &self.bound[node.index()] {
            let is_same = *bound == Arg::Node(found);
            return Ok(is_same || self.miss(node, Some(&Arg::Node(found)), |search| search.bound_name(node)));
        }
        if !self.may_bind(node, found) {
            return Ok(false);
        }
        if !self.could_be(node, found)? {
            return Ok(self.miss(node, Some(&Arg::Node(found)), |search| search.expected(node)));
        }
        if !self.bind_checked(node, Arg::Node(found)) {
            return Ok(false);
        }
        if let Some(alternatives) = &self.pattern.alternatives[node.index()] {
            let one = |it: &'a Arg| it.as_node().map(|it| vec![Goal::Node(it, found)]);
            let lists = alternatives.iter().filter_map(one).collect();
            self.choose(Alternatives::Goals(lists));
            return Ok(false);
        }
        let (wanted, it) = (self.pattern.graph().node(node), self.module.graph.node(found));
        if wanted.op() == Opcode::Placeholder {
            return Ok(true);
        }
        let law = self.pattern.laws[node.index()];
        if law.is_associative && is_plain_pair(wanted) && is_plain_pair(it) && self.match_chain(node, found)? {
            return Ok(false);
        }
        let keys = |it: &'a Node| it.kwargs().iter().map(|(key, _)| key);
        if wanted.args().len() == it.args().len() && keys(wanted).eq(keys(it)) {
            if law.is_commutative && is_plain_pair(wanted) {
                let (args, found) = (wanted.args().iter().collect(), it.args().iter().collect());
                self.push(Goal::Unordered(args, found));
                return Ok(true);
            }
            let values = |it: &'a Node| it.args().iter().chain(it.kwargs().iter().map(|(_, arg)| arg));
            self.push_pairs(values(wanted), values(it));
            return Ok(true);
        }
        let Some(schema) = &self.pattern.schemas[node.index()] else {
            return Ok(
                self.miss(node, Some(&Arg::Node(found)), |_| "the same arguments by place and by name".to_owned())
            );
        };
        self.push_pairs(completed(wanted, schema), completed(it, schema));
        Ok(true)
    }

    /// Whether neither this nor an earlier match has the node for something else.
    fn may_bind(&mut self, node: NodeId, found: NodeId) -> bool {
        let is_taken = self.taken.contains(&found) && self.pattern.is_compute(node);
        if is_taken {
            return self.miss(node, Some(&Arg::Node(found)), |_| "a node that no earlier match has".to_owned());
        }
        if self.is_exclusive(node) && self.used.contains(&found) {
            let expected = |_: &Self| "a node that nothing else in the pattern stands for".to_owned();
            return self.miss(node, Some(&Arg::Node(found)), expected);
        }
        true
    }

    /// Binds, where the value is what is asked of the node.
    fn bind_checked(&mut self, node: NodeId, found: Arg) -> bool {
        let constraint = self.pattern.constraints[node.index()].as_ref();
        if let Some((expected, got)) = constraint.and_then(|it| it.miss(&self.module.graph, &found)) {
            return self.miss(node, Some(&found), |_| format!("{expected}, not {got}"));
        }
        self.bind(node, found);
        true
    }

    /// Puts as many goals before the others, the first one first.
    fn push_pairs(
        &mut self,
        args: impl DoubleEndedIterator<Item = &'a Arg>,
        found: impl DoubleEndedIterator<Item = &'a Arg>,
    ) {
        for (arg, found) in args.rev().zip(found.rev()) {
            self.push(Goal::Arg(arg, found));
        }
    }

    pub(super) fn match_arg(&mut self, arg: &'a Arg, found: &'a Arg) -> Result<bool> {
        match (arg, found) {
            (Arg::Node(node), Arg::Node(found)) => return self.match_node(*node, *found),
            (Arg::List(items) | Arg::Tuple(items), Arg::List(others) | Arg::Tuple(others)) => {
                if items.len() == others.len() {
                    self.push_pairs(items.iter(), others.iter());
                    return Ok(true);
                }
                let expected = |_: &Self| format!("{} items", items.len());
                return Ok(self.miss_arg(found, expected));
            }
            _ => {}
        }
        let is_met = match arg {
            Arg::Node(node) if self.pattern.is_virtual(*node) => return Ok(self.match_virtual(*node, found)),
            Arg::Node(node) => self.match_literal(*node, found),
            _ => is_same_literal(arg, found),
        };
        let is_met = is_met || self.options.ignore_literals;
        Ok(is_met || self.miss_arg(found, |search| search.pattern.graph().format_arg(arg)))
    }

    /// A node of the pattern stands for a literal.
    fn match_literal(&mut self, node: NodeId, found: &Arg) -> bool {
        if !self.pattern.is_placeholder(node) {
            return false;
        }
        match &self.bound[node.index()] {
            Some(bound) => is_equal(bound, found),
            None => self.bind_checked(node, found.clone()),
        }
    }

    /// One of several alternatives stands for a literal.
    fn match_virtual(&mut self, node: NodeId, found: &'a Arg) -> bool {
        if let Some(bound) = &self.bound[node.index()] {
            return is_equal(bound, found);
        }
        if self.bind_checked(node, found.clone()) {
            let alternatives = self.pattern.alternatives[node.index()].as_ref();
            let lists = alternatives.into_iter().flatten().map(|it| vec![Goal::Arg(it, found)]).collect();
            self.choose(Alternatives::Goals(lists));
        }
        false
    }

    /// A node inside a chain of calls.
    pub(super) fn match_inner(&mut self, node: NodeId, found: NodeId) -> bool {
        self.may_bind(node, found) && self.bind_checked(node, Arg::Node(found))
    }

    /// The first argument stands for any of these, and the others for the rest.
    pub(super) fn match_unordered(&mut self, args: &[&'a Arg], found: &[&'a Arg]) -> Result<bool> {
        let Some((first, rest)) = args.split_first() else { return Ok(true) };
        self.spend(found.len() as u64)?;
        let rest: Rc<[&Arg]> = rest.into();
        let without = |at: usize| found[..at].iter().chain(&found[at + 1..]).copied().collect::<Rc<[&Arg]>>();
        let one = |at: usize| vec![Goal::Arg(first, found[at]), Goal::Unordered(Rc::clone(&rest), without(at))];
        self.choose(Alternatives::Goals((0..found.len()).map(one).collect()));
        Ok(false)
    }

    /// Makes a choice of how a chain of calls of an associative function is split, so that it has as many operands
    /// as the chain of the pattern; `false` where that is one call only.
    fn match_chain(&mut self, node: NodeId, found: NodeId) -> Result<bool> {
        let pattern = self.pattern;
        let is_own = |it: NodeId| pattern.graph().users(it).len() == 1 && !pattern.is_returned[it.index()];
        let mut wanted = Chain::of(pattern.graph(), node);
        let mut at = 0;
        while at < wanted.operands.len() {
            match wanted.operands[at].as_node().filter(|&it| is_own(it)).and_then(|_| wanted.apart(pattern.graph(), at))
            {
                Some(apart) => wanted = apart,
                None => at += 1,
            }
        }
        if wanted.calls.len() == 1 {
            return Ok(false);
        }
        let graph = &self.module.graph;
        let mut lists = Vec::new();
        let mut open = vec![(Chain::of(graph, found), 0)];
        while let Some((chain, from)) = open.pop() {
            self.spend(STEPS_OF_A_CHAIN)?;
            if chain.calls.len() < wanted.calls.len() {
                // Each chain is made once: operands before the one that was split last stay whole.
                let next = (from..chain.operands.len()).rev();
                open.extend(next.filter_map(|at| Some((chain.apart(graph, at)?, at))));
                continue;
            }
            let inner = wanted.calls[1..].iter().zip(&chain.calls[1..]);
            let mut goals: Vec<Goal<'a>> = inner.map(|(&node, &found)| Goal::Inner(node, found)).collect();
            if pattern.laws[node.index()].is_commutative {
                goals.push(Goal::Unordered(wanted.operands.as_slice().into(), chain.operands.into()));
            } else {
                goals.extend(wanted.operands.iter().zip(chain.operands).map(|(arg, found)| Goal::Arg(arg, found)));
            }
            lists.push(goals);
        }
        if lists.is_empty() {
            let expected = |_: &Self| format!("a chain of {} operands", wanted.operands.len());
            self.miss(node, Some(&Arg::Node(found)), expected);
        }
        self.choose(Alternatives::Goals(lists));
        Ok(true)
    }
}

/// Calls of one function of two arguments, each an argument of another, and what they are all together of, in order.
struct Chain<'a> {
    calls: Vec<NodeId>,
    operands: Vec<&'a Arg>,
}

impl<'a> Chain<'a> {
    fn of(graph: &'a Graph, call: NodeId) -> Self {
        Chain { calls: vec![call], operands: graph.node(call).args().iter().collect() }
    }

    /// The chain with one operand split, where that is a call of the same function.
    fn apart(&self, graph: &'a Graph, at: usize) -> Option<Self> {
        let call = self.operands[at].as_node()?;
        let (first, node) = (graph.node(self.calls[0]), graph.node(call));
        let is_same = first.op() == node.op() && first.target() == node.target() && is_plain_pair(node);
        is_same.then(|| {
            let mut res = Chain { calls: self.calls.clone(), operands: self.operands.clone() };
            res.calls.push(call);
            res.operands.splice(at..=at, node.args());
            res
        })
    }
}

/// Whether a call has two arguments, both by place.
fn is_plain_pair(node: &Node) -> bool {
    node.args().len() == 2 && node.kwargs().is_empty()
}

/// The arguments of a call by the schema of its operator, with the defaults of those that are not given.
fn completed<'a>(node: &'a Node, schema: &'a [SchemaArg]) -> impl DoubleEndedIterator<Item = &'a Arg> {
    (0..schema.len()).map(move |index| {
        let it = &schema[index];
        let by_place = || node.args().get(index).filter(|_| !it.is_kwarg_only);
        node.kwarg(&it.name).or_else(by_place).unwrap_or(&it.default)
    })
}
