//! The search: goals that are to be met, and choices to come back to.
//!
//! Goals are a list that shares its tails, so that a choice keeps what was still to be done by keeping a place in it.

use super::equality::{is_equal, is_same_literal};
use super::pattern::{Pattern, SchemaArg, reads_parameter};
use super::{InternalMatch, MatcherOptions};
use rustc_hash::FxHashSet;
use std::rc::Rc;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, Node, NodeId, Opcode};

/// What is to be met.
#[derive(Clone, Copy)]
enum Goal<'a> {
    /// The anchor of this number stands for some node.
    Anchor(usize),
    /// This node of the pattern, an anchor, stands for this node.
    Anchored(NodeId, NodeId),
    /// This argument of the pattern stands for this argument.
    Arg(&'a Arg, &'a Arg),
}

struct Cell<'a> {
    goal: Goal<'a>,
    next: usize,
}

/// The end of the list of goals.
const DONE: usize = usize::MAX;

/// A place to come back to: what was to be done, how much was bound, and what has not been tried.
struct Choice {
    head: usize,
    n_goals: usize,
    n_bound: usize,
    anchor: NodeId,
    candidates: Rc<[NodeId]>,
    at: usize,
}

pub(super) struct Search<'a> {
    pattern: &'a Pattern,
    options: &'a MatcherOptions,
    module: &'a GraphModule,
    /// What each node of the pattern stands for, and the order in which that was found.
    bound: Vec<Option<Arg>>,
    trail: Vec<NodeId>,
    /// The nodes that something stands for.
    used: FxHashSet<NodeId>,
    /// The nodes of earlier matches, which later ones may not share.
    taken: FxHashSet<NodeId>,
    goals: Vec<Cell<'a>>,
    head: usize,
    choices: Vec<Choice>,
    candidates: Vec<Option<Rc<[NodeId]>>>,
    is_begun: bool,
    steps_left: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(pattern: &'a Pattern, options: &'a MatcherOptions, module: &'a GraphModule) -> Self {
        let steps = 10_000_000 + 1000 * module.graph.len() as u64;
        let mut res = Search {
            pattern,
            options,
            module,
            bound: vec![None; pattern.graph().id_bound()],
            trail: Vec::new(),
            used: FxHashSet::default(),
            taken: FxHashSet::default(),
            goals: Vec::new(),
            head: DONE,
            choices: Vec::new(),
            candidates: vec![None; pattern.anchors.len()],
            is_begun: false,
            steps_left: options.max_steps.unwrap_or(steps),
        };
        (0..pattern.anchors.len()).rev().for_each(|it| res.push(Goal::Anchor(it)));
        res
    }

    /// The next match.
    pub(super) fn next_match(&mut self) -> Result<Option<InternalMatch>> {
        if self.pattern.anchors.is_empty() || (self.is_begun && !self.backtrack()) {
            return Ok(None);
        }
        self.is_begun = true;
        loop {
            if self.head == DONE {
                if let Some(found) = self.found() {
                    return Ok(Some(found));
                }
                if !self.backtrack() {
                    return Ok(None);
                }
                continue;
            }
            self.spend(1)?;
            let Cell { goal, next } = self.goals[self.head];
            self.head = next;
            let is_met = match goal {
                Goal::Anchor(index) => {
                    self.choose(index)?;
                    false
                }
                Goal::Anchored(node, found) => self.meet_node(node, found, true)?,
                Goal::Arg(arg, found) => self.meet_arg(arg, found)?,
            };
            if !is_met && !self.backtrack() {
                return Ok(None);
            }
        }
    }

    /// Counts steps.
    pub(super) fn spend(&mut self, steps: u64) -> Result<()> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or_else(|| out_of_steps(self.options))?;
        Ok(())
    }

    /// Keeps later matches from sharing these nodes, and gives up the choices that came after the first of them.
    pub(super) fn take(&mut self, nodes: FxHashSet<NodeId>) {
        self.taken.extend(nodes);
        let is_taken = |node: &NodeId| self.is_compute(*node);
        let n_free = self.trail.iter().position(is_taken).unwrap_or(self.trail.len());
        let keeps = self.choices.iter().take_while(|it| it.n_bound <= n_free).count();
        self.choices.truncate(keeps);
    }

    /// Whether what the node of the pattern stands for can be in one match only.
    fn is_compute(&self, node: NodeId) -> bool {
        !matches!(self.pattern.graph().node(node).op(), Opcode::Placeholder | Opcode::Output)
    }

    fn push(&mut self, goal: Goal<'a>) {
        self.goals.push(Cell { goal, next: self.head });
        self.head = self.goals.len() - 1;
    }

    fn bind(&mut self, node: NodeId, found: Arg) {
        if let Arg::Node(found) = found {
            self.used.insert(found);
        }
        self.bound[node.index()] = Some(found);
        self.trail.push(node);
    }

    /// Takes back what the last choice led to, and tries what is next; `false` where nothing is left.
    fn backtrack(&mut self) -> bool {
        while let Some(choice) = self.choices.last_mut() {
            let candidate = choice.candidates.get(choice.at).copied();
            choice.at += 1;
            let (anchor, head, n_goals, n_bound) = (choice.anchor, choice.head, choice.n_goals, choice.n_bound);
            for node in self.trail.drain(n_bound..) {
                if let Some(Arg::Node(found)) = self.bound[node.index()].take() {
                    self.used.remove(&found);
                }
            }
            match candidate {
                None => {
                    self.choices.pop();
                }
                Some(candidate) if self.taken.contains(&candidate) && self.is_compute(anchor) => {}
                Some(candidate) => {
                    self.goals.truncate(n_goals);
                    self.head = head;
                    self.push(Goal::Anchored(anchor, candidate));
                    return true;
                }
            }
        }
        false
    }

    /// Makes a choice of what an anchor may stand for.
    fn choose(&mut self, index: usize) -> Result<()> {
        let candidates = match self.nearby(index)? {
            Some(candidates) => candidates,
            None => self.everywhere(index)?,
        };
        let anchor = self.pattern.anchors[index];
        let (n_goals, n_bound) = (self.goals.len(), self.trail.len());
        self.choices.push(Choice { head: self.head, n_goals, n_bound, anchor, candidates, at: 0 });
        Ok(())
    }

    /// All nodes that the anchor may stand for, in order.
    fn everywhere(&mut self, index: usize) -> Result<Rc<[NodeId]>> {
        if let Some(candidates) = &self.candidates[index] {
            return Ok(Rc::clone(candidates));
        }
        let mut candidates = Vec::new();
        for found in self.module.graph.nodes() {
            if self.could_be(self.pattern.anchors[index], found, true)? {
                candidates.push(found);
            }
        }
        let candidates: Rc<[NodeId]> = candidates.into();
        self.candidates[index] = Some(Rc::clone(&candidates));
        Ok(candidates)
    }

    /// The nodes that the anchor may stand for, found by the way on which it hangs together with what is bound already.
    /// Nothing where there is no such way: a literal may stand on it where literals are ignored.
    fn nearby(&mut self, index: usize) -> Result<Option<Rc<[NodeId]>>> {
        let Some(route) = self.pattern.routes[index].as_ref().filter(|_| !self.options.ignore_literals) else {
            return Ok(None);
        };
        let Some(Arg::Node(from)) = &self.bound[route.from.index()] else { return Ok(None) };
        let mut front = vec![*from];
        for &up in &route.up {
            let mut next = FxHashSet::default();
            for &node in &front {
                let module = self.module;
                for user in module.graph.users(node).iter() {
                    self.spend(1)?;
                    if self.could_be(up, user, up == self.pattern.anchors[index])? {
                        next.insert(user);
                    }
                }
            }
            front = next.into_iter().collect();
        }
        front.sort_unstable_by(|&a, &b| self.module.graph.compare(a, b));
        Ok(Some(front.into()))
    }

    /// Whether the node alone, without its arguments, is one that the node of the pattern stands for.
    fn could_be(&self, node: NodeId, found: NodeId, is_anchor: bool) -> Result<bool> {
        let (wanted, it) = (self.pattern.graph().node(node), self.module.graph.node(found));
        if wanted.op() == Opcode::Placeholder && !self.options.match_placeholder {
            return Ok(true);
        }
        let by_name = &*self.options.node_name_match;
        if is_anchor && !by_name.is_empty() && it.name().contains(by_name) {
            return Ok(true);
        }
        Ok(wanted.op() == it.op()
            && match wanted.op() {
                Opcode::Placeholder | Opcode::Output => true,
                Opcode::GetAttr => self.pattern.parameters[node.index()] == reads_parameter(self.module, found)?,
                Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => wanted.target() == it.target(),
            })
    }

    fn meet_node(&mut self, node: NodeId, found: NodeId, is_anchor: bool) -> Result<bool> {
        if let Some(bound) = &self.bound[node.index()] {
            return Ok(*bound == Arg::Node(found));
        }
        let is_taken = self.taken.contains(&found) && self.is_compute(node);
        if is_taken || self.used.contains(&found) || !self.could_be(node, found, is_anchor)? {
            return Ok(false);
        }
        self.bind(node, Arg::Node(found));
        let pattern = self.pattern;
        let (wanted, it) = (pattern.graph().node(node), self.module.graph.node(found));
        if wanted.op() == Opcode::Placeholder {
            return Ok(true);
        }
        let keys = |it: &'a Node| it.kwargs().iter().map(|(key, _)| key);
        if wanted.args().len() == it.args().len() && keys(wanted).eq(keys(it)) {
            let values = |it: &'a Node| it.args().iter().chain(it.kwargs().iter().map(|(_, arg)| arg));
            self.push_all(values(wanted), values(it));
            return Ok(true);
        }
        let Some(schema) = &pattern.schemas[node.index()] else { return Ok(false) };
        self.push_all(completed(wanted, schema), completed(it, schema));
        Ok(true)
    }

    /// Puts as many goals before the others, the first one first.
    fn push_all(
        &mut self,
        args: impl DoubleEndedIterator<Item = &'a Arg>,
        found: impl DoubleEndedIterator<Item = &'a Arg>,
    ) {
        for (arg, found) in args.rev().zip(found.rev()) {
            self.push(Goal::Arg(arg, found));
        }
    }

    fn meet_arg(&mut self, arg: &'a Arg, found: &'a Arg) -> Result<bool> {
        match (arg, found) {
            (Arg::Node(node), Arg::Node(found)) => return self.meet_node(*node, *found, false),
            (Arg::List(items) | Arg::Tuple(items), Arg::List(found) | Arg::Tuple(found)) => {
                if items.len() == found.len() {
                    self.push_all(items.iter(), found.iter());
                }
                return Ok(items.len() == found.len());
            }
            _ => {}
        }
        Ok(self.meet_literal(arg, found) || self.options.ignore_literals)
    }

    fn meet_literal(&mut self, arg: &Arg, found: &Arg) -> bool {
        let Arg::Node(node) = *arg else { return is_same_literal(arg, found) };
        if self.pattern.graph().node(node).op() != Opcode::Placeholder {
            return false;
        }
        match &self.bound[node.index()] {
            Some(bound) => is_equal(bound, found),
            None => {
                self.bind(node, found.clone());
                true
            }
        }
    }

    /// The match that is bound; nothing where literals that were ignored stand in the place of nodes that are asked for.
    fn found(&self) -> Option<InternalMatch> {
        let value = |node: &NodeId| self.bound[node.index()].clone();
        Some(InternalMatch {
            anchors: self.pattern.anchors.clone(),
            nodes_map: self.trail.iter().filter_map(|node| Some((*node, value(node)?))).collect(),
            placeholder_nodes: self.pattern.placeholders.iter().map(value).collect::<Option<_>>()?,
            returning_nodes: self.pattern.returning.iter().map(value).collect::<Option<_>>()?,
            name_node_map: indexmap::IndexMap::new(),
        })
    }
}

/// The arguments of a call by the schema of its operator, with the defaults of those that are not given.
fn completed<'a>(node: &'a Node, schema: &'a [SchemaArg]) -> impl DoubleEndedIterator<Item = &'a Arg> {
    (0..schema.len()).map(move |index| {
        let it = &schema[index];
        let by_place = || node.args().get(index).filter(|_| !it.is_kwarg_only);
        node.kwarg(&it.name).or_else(by_place).unwrap_or(&it.default)
    })
}

fn out_of_steps(options: &MatcherOptions) -> Diagnostic {
    let what = match options.max_steps {
        Some(limit) => format!("the search for the pattern took more than {limit} steps"),
        None => "the search for the pattern took too many steps".to_owned(),
    };
    Diagnostic::new(Code::LimitExceeded, what)
        .help("return one value that joins the others, so that there is less to try, or raise max_steps")
}
