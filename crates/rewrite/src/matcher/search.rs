//! The search: goals that are to be met, and choices to come back to.
//!
//! Goals are a list that shares its tails, so that a choice keeps what was still to be done by keeping a place in it.

use super::explain::Misses;
use super::pattern::Pattern;
use super::{InternalMatch, MatcherOptions};
use rustc_hash::FxHashSet;
use std::rc::Rc;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, NodeId};

/// What is to be met.
#[derive(Clone)]
pub(super) enum Goal<'a> {
    /// The anchor of this number stands for some node.
    Anchor(usize),
    /// This node of the pattern stands for this node.
    Node(NodeId, NodeId),
    /// This argument of the pattern stands for this argument.
    Arg(&'a Arg, &'a Arg),
    /// This node of the pattern stands for this node, whose arguments are looked at elsewhere.
    Inner(NodeId, NodeId),
    /// These arguments of the pattern stand for these, in any order.
    Unordered(Rc<[&'a Arg]>, Rc<[&'a Arg]>),
}

struct Cell<'a> {
    goal: Goal<'a>,
    next: usize,
}

/// The end of the list of goals.
const DONE: usize = usize::MAX;

/// A place to come back to: what was to be done, how much was bound, and what has not been tried.
struct Choice<'a> {
    head: usize,
    n_goals: usize,
    n_bound: usize,
    alternatives: Alternatives<'a>,
    at: usize,
}

/// What can be tried, one after the other.
pub(super) enum Alternatives<'a> {
    /// An anchor stands for one of these nodes.
    Candidates(NodeId, Rc<[NodeId]>),
    /// All goals of one of these lists are met.
    Goals(Vec<Vec<Goal<'a>>>),
}

pub(super) struct Search<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) options: &'a MatcherOptions,
    pub(super) module: &'a GraphModule,
    /// What each node of the pattern stands for, and the order in which that was found.
    pub(super) bound: Vec<Option<Arg>>,
    trail: Vec<NodeId>,
    /// The nodes that something stands for.
    pub(super) used: FxHashSet<NodeId>,
    /// The nodes of earlier matches, which later ones may not share.
    pub(super) taken: FxHashSet<NodeId>,
    goals: Vec<Cell<'a>>,
    head: usize,
    choices: Vec<Choice<'a>>,
    candidates: Vec<Option<Rc<[NodeId]>>>,
    is_begun: bool,
    steps_left: u64,
    /// Why candidates are refused, where that is asked.
    pub(super) misses: Option<Misses>,
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
            misses: None,
        };
        (0..pattern.anchors.len()).rev().for_each(|it| res.push(Goal::Anchor(it)));
        res
    }

    /// Lets the first anchor stand for these nodes only.
    pub(super) fn begin_at(&mut self, mut candidates: Vec<NodeId>) -> Result<()> {
        let Some(&anchor) = self.pattern.anchors.first() else { return Ok(()) };
        let mut problem = None;
        candidates.retain(|&it| self.could_be(anchor, it).unwrap_or_else(|it| problem.replace(it).is_some()));
        self.candidates[0] = Some(candidates.into());
        problem.map_or(Ok(()), Err)
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
            let Cell { goal, next } = &self.goals[self.head];
            let goal = goal.clone();
            self.head = *next;
            let is_met = match goal {
                Goal::Anchor(index) => {
                    self.choose_anchor(index)?;
                    false
                }
                Goal::Node(node, found) => self.match_node(node, found)?,
                Goal::Arg(arg, found) => self.match_arg(arg, found)?,
                Goal::Inner(node, found) => self.match_inner(node, found),
                Goal::Unordered(args, found) => self.match_unordered(&args, &found)?,
            };
            if !is_met && !self.backtrack() {
                return Ok(None);
            }
        }
    }

    /// Counts steps.
    pub(super) fn spend(&mut self, steps: u64) -> Result<()> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or_else(|| {
            let what = match self.options.max_steps {
                Some(limit) => format!("the search for the pattern took more than {limit} steps"),
                None => "the search for the pattern took too many steps".to_owned(),
            };
            Diagnostic::new(Code::LimitExceeded, what)
                .help("return one value that joins the others, so that there is less to try, or raise max_steps")
        })?;
        Ok(())
    }

    /// Keeps later matches from sharing these nodes, and gives up the choices that came after the first of them.
    pub(super) fn take(&mut self, nodes: FxHashSet<NodeId>) {
        self.taken.extend(nodes);
        let is_taken = |node: &NodeId| self.pattern.is_compute(*node);
        let n_free = self.trail.iter().position(is_taken).unwrap_or(self.trail.len());
        let keeps = self.choices.iter().take_while(|it| it.n_bound <= n_free).count();
        self.choices.truncate(keeps);
    }

    /// The node of the pattern whose arguments are looked at: the last call that is bound.
    pub(super) fn last_call(&self) -> NodeId {
        let is_call = |it: &&NodeId| !self.pattern.is_placeholder(**it);
        self.trail.iter().rev().find(is_call).copied().unwrap_or(self.pattern.anchors[0])
    }

    /// How many nodes of the pattern stand for something.
    pub(super) fn n_bound(&self) -> usize {
        self.trail.len()
    }

    /// Puts a goal before the others.
    pub(super) fn push(&mut self, goal: Goal<'a>) {
        self.goals.push(Cell { goal, next: self.head });
        self.head = self.goals.len() - 1;
    }

    /// Puts goals before the others, the first one first.
    pub(super) fn push_all(&mut self, goals: impl DoubleEndedIterator<Item = Goal<'a>>) {
        goals.rev().for_each(|it| self.push(it));
    }

    /// Makes a choice, to which the search comes back; what is chosen is tried when what is done now is not met.
    pub(super) fn choose(&mut self, alternatives: Alternatives<'a>) {
        let (n_goals, n_bound) = (self.goals.len(), self.trail.len());
        self.choices.push(Choice { head: self.head, n_goals, n_bound, alternatives, at: 0 });
    }

    pub(super) fn bind(&mut self, node: NodeId, found: Arg) {
        if let (Arg::Node(found), true) = (&found, self.is_exclusive(node)) {
            self.used.insert(*found);
        }
        self.bound[node.index()] = Some(found);
        self.trail.push(node);
    }

    /// Whether no other node of the pattern may stand for the same.
    pub(super) fn is_exclusive(&self, node: NodeId) -> bool {
        let is_shared = self.options.shared_wildcards && self.pattern.is_placeholder(node);
        !is_shared && !self.pattern.is_virtual(node)
    }

    /// Takes back what the last choice led to, and tries what is next; `false` where nothing is left.
    fn backtrack(&mut self) -> bool {
        while let Some(choice) = self.choices.last_mut() {
            let at = choice.at;
            choice.at += 1;
            let goals = match &mut choice.alternatives {
                Alternatives::Candidates(anchor, candidates) => {
                    candidates.get(at).map(|&it| vec![Goal::Node(*anchor, it)])
                }
                Alternatives::Goals(lists) => lists.get_mut(at).map(std::mem::take),
            };
            let (head, n_goals, n_bound) = (choice.head, choice.n_goals, choice.n_bound);
            while self.trail.len() > n_bound {
                let node = self.trail.pop().expect("the trail is longer");
                let is_exclusive = self.is_exclusive(node);
                if let (Some(Arg::Node(found)), true) = (self.bound[node.index()].take(), is_exclusive) {
                    self.used.remove(&found);
                }
            }
            let Some(goals) = goals else {
                self.choices.pop();
                continue;
            };
            self.goals.truncate(n_goals);
            self.head = head;
            self.push_all(goals.into_iter());
            return true;
        }
        false
    }

    /// Makes a choice of what an anchor may stand for.
    fn choose_anchor(&mut self, index: usize) -> Result<()> {
        let candidates = match self.nearby(index)? {
            Some(candidates) => candidates,
            None => self.everywhere(index)?,
        };
        let anchor = self.pattern.anchors[index];
        if candidates.is_empty() {
            self.miss(anchor, None, |search| search.expected(anchor));
        }
        self.choose(Alternatives::Candidates(anchor, candidates));
        Ok(())
    }

    /// All nodes that the anchor may stand for, in order.
    fn everywhere(&mut self, index: usize) -> Result<Rc<[NodeId]>> {
        if let Some(candidates) = &self.candidates[index] {
            return Ok(Rc::clone(candidates));
        }
        let mut candidates = Vec::new();
        for found in self.module.graph.nodes() {
            if self.could_be(self.pattern.anchors[index], found)? {
                candidates.push(found);
            }
        }
        let candidates: Rc<[NodeId]> = candidates.into();
        self.candidates[index] = Some(Rc::clone(&candidates));
        Ok(candidates)
    }

    /// The nodes that the anchor may stand for, found by the way on which it hangs together with what is bound already.
    /// Nothing where there is no such way: a literal may stand on it where literals are ignored, and a chain of sums need
    /// not stand in the order in which the pattern has it.
    fn nearby(&mut self, index: usize) -> Result<Option<Rc<[NodeId]>>> {
        let is_by_way = !self.options.ignore_literals && !self.options.associative;
        let Some(route) = self.pattern.routes[index].as_ref().filter(|_| is_by_way) else { return Ok(None) };
        let Some(Arg::Node(from)) = &self.bound[route.from.index()] else { return Ok(None) };
        let module = self.module;
        let mut front = vec![*from];
        for &up in &route.up {
            let mut next = FxHashSet::default();
            for &node in &front {
                for user in module.graph.users(node).iter() {
                    self.spend(1)?;
                    if self.could_be(up, user)? {
                        next.insert(user);
                    }
                }
            }
            front = next.into_iter().collect();
        }
        front.sort_unstable_by(|&a, &b| module.graph.compare(a, b));
        Ok(Some(front.into()))
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
