//! The search: what must hold is propagated; then an alternative is tried, or the range of a variable is split.

use super::linear::{INFINITY, Linear};
use super::nodes::{Atom, Function, Node, NodeIndex, Nodes, TypeTerm};
use super::refute::System;
use super::state::{Conflict, State, Unknown};
use crate::{Dim, Model, Problem, Type, Verdict};
use rustc_hash::FxHashMap;

/// How often what must hold is walked before a choice. Bounds of variables that chase each other would never end.
const MAX_ROUNDS: usize = 256;

/// A choice, and how things were before it.
struct Level {
    mark: usize,
    n_nodes: usize,
    n_parts: usize,
    open: Vec<NodeIndex>,
    alternatives: Vec<NodeIndex>,
    next: usize,
}

/// Parts of what must hold that have no variable in common: each is solved for itself, and what solves it is kept.
struct Parts {
    /// How many choices were made before.
    n_levels: usize,
    /// Those that are not solved yet.
    rest: Vec<Vec<NodeIndex>>,
}

/// One search for values.
pub(crate) struct Search<'a> {
    problem: &'a Problem,
    state: State,
    open: Vec<NodeIndex>,
    levels: Vec<Level>,
    parts: Vec<Parts>,
}

/// What is left when nothing follows any more.
enum Choice {
    /// One of these must hold.
    OneOf(Vec<NodeIndex>),
    /// Nothing: there is a solution.
    Done,
    /// This cannot be solved.
    Hopeless,
}

impl<'a> Search<'a> {
    pub(crate) fn new(problem: &'a Problem) -> Self {
        let (nodes, root) = Nodes::of(problem);
        Search { problem, state: State::new(nodes), open: vec![root], levels: Vec::new(), parts: Vec::new() }
    }

    pub(crate) fn run(mut self, budget: u32) -> Verdict {
        for _ in 0..budget {
            let choice = match self.propagate() {
                Ok(()) => self.choose(),
                Err(Conflict) => Choice::Hopeless,
            };
            match choice {
                Choice::Done => {
                    if !self.next_part() {
                        return Verdict::Sat(self.model());
                    }
                }
                Choice::OneOf(alternatives) => {
                    let (mark, open) = (self.state.mark(), std::mem::take(&mut self.open));
                    let n_nodes = self.state.nodes.nodes.len();
                    let n_parts = self.parts.len();
                    self.levels.push(Level { mark, n_nodes, n_parts, open, alternatives, next: 0 });
                    self.advance();
                }
                Choice::Hopeless => {
                    if !self.advance() {
                        return if self.state.is_incomplete {
                            Verdict::Unknown(
                                "it depends on a division by zero, or on numbers that are too large".into(),
                            )
                        } else {
                            Verdict::Unsat
                        };
                    }
                }
            }
        }
        Verdict::Unknown(format!("no answer within {budget} steps"))
    }

    /// Goes on with the next alternative; says whether there was one.
    fn advance(&mut self) -> bool {
        while let Some(level) = self.levels.last_mut() {
            self.state.undo(level.mark);
            // Nodes that were made since are of alternatives that were given up.
            self.state.nodes.nodes.truncate(level.n_nodes);
            self.parts.truncate(level.n_parts);
            let Some(&alternative) = level.alternatives.get(level.next) else {
                self.levels.pop();
                continue;
            };
            level.next += 1;
            if level.next == level.alternatives.len() {
                // The last one needs no way back.
                let level = self.levels.pop().expect("it is the last one");
                self.open = level.open;
            } else {
                self.open.clone_from(&level.open);
            }
            self.open.push(alternative);
            return true;
        }
        false
    }

    /// Goes on with the next part; says whether there was one.
    fn next_part(&mut self) -> bool {
        while let Some(parts) = self.parts.last_mut() {
            // Other solutions of a part that is solved are of no use to the others.
            self.levels.truncate(parts.n_levels);
            if let Some(open) = parts.rest.pop() {
                self.open = open;
                return true;
            }
            self.parts.pop();
        }
        false
    }

    /// Puts aside what has no variable in common with the first of what must hold.
    fn divide(&mut self) {
        let mut owners: FxHashMap<Unknown, usize> = FxHashMap::default();
        let mut groups: Vec<usize> = (0..self.open.len()).collect();
        fn root(groups: &mut [usize], mut at: usize) -> usize {
            while groups[at] != at {
                groups[at] = groups[groups[at]];
                at = groups[at];
            }
            at
        }
        for (at, node) in self.open.iter().enumerate() {
            self.state.for_each_unknown(*node, &mut |unknown| {
                let other = *owners.entry(unknown).or_insert(at);
                let (a, b) = (root(&mut groups, at), root(&mut groups, other));
                groups[a.max(b)] = a.min(b);
            });
        }
        let mut parts: Vec<Vec<NodeIndex>> = vec![Vec::new(); self.open.len()];
        for (at, node) in self.open.iter().enumerate() {
            parts[root(&mut groups, at)].push(*node);
        }
        parts.retain(|it| !it.is_empty());
        if parts.len() > 1 {
            // The smallest ones come first: they are the last ones of the list.
            parts.sort_by_key(|it| std::cmp::Reverse(it.len()));
            self.open = parts.pop().expect("there are two");
            self.parts.push(Parts { n_levels: self.levels.len(), rest: parts });
        }
    }

    /// Lets everything hold that must, until nothing changes or it takes too long.
    fn propagate(&mut self) -> Result<(), Conflict> {
        for _ in 0..MAX_ROUNDS {
            let mark = self.state.mark();
            let mut grew = false;
            let mut kept = Vec::with_capacity(self.open.len());
            let mut todo = std::mem::take(&mut self.open);
            todo.reverse();
            while let Some(node) = todo.pop() {
                match &self.state.nodes.nodes[node] {
                    Node::And(items) => {
                        todo.extend(items.iter().rev());
                        continue;
                    }
                    Node::Or(items) => {
                        let mut live = Vec::new();
                        let mut holds = false;
                        for it in items {
                            match self.state.eval(*it) {
                                Some(true) => holds = true,
                                Some(false) => {}
                                None => live.push(*it),
                            }
                            if holds {
                                break;
                            }
                        }
                        match (holds, &live[..]) {
                            (true, _) => {}
                            (false, []) => return Err(Conflict),
                            (false, [only]) => {
                                todo.push(*only);
                                grew = true;
                            }
                            // What cannot hold any more is not looked at again.
                            (false, [_, _, ..]) if live.len() < items.len() => {
                                kept.push(self.state.nodes.push(Node::Or(live)));
                            }
                            (false, [_, _, ..]) => kept.push(node),
                        }
                        continue;
                    }
                    _ => {}
                }
                match self.state.eval(node) {
                    Some(true) => continue,
                    Some(false) => {
                        self.state.is_incomplete |= self.is_open_division(node);
                        return Err(Conflict);
                    }
                    None => {}
                }
                let mut activated = Vec::new();
                self.state.assert(node, &mut activated)?;
                kept.push(node);
                grew |= !activated.is_empty();
                kept.append(&mut activated);
            }
            self.open = kept;
            if self.state.mark() == mark && !grew {
                break;
            }
        }
        Ok(())
    }

    /// Whether the node is the definition of a division by something else than a positive number.
    fn is_open_division(&self, node: NodeIndex) -> bool {
        let Node::Defined(at) = &self.state.nodes.nodes[node] else { return false };
        let definition = &self.state.nodes.definitions[*at].0;
        matches!(definition.function, Function::Div | Function::Mod) && self.state.interval(&definition.args[1]).lo <= 0
    }

    fn choose(&mut self) -> Choice {
        self.divide();
        let mut best: Option<(bool, usize, NodeIndex)> = None;
        for node in &self.open {
            if let Node::Or(items) = &self.state.nodes.nodes[*node] {
                // What a type is decides most of the rest.
                let is_type = items.iter().all(|it| matches!(self.state.nodes.nodes[*it], Node::SameType(..)));
                let key = (!is_type, items.len(), *node);
                best = Some(best.map_or(key, |it| it.min(key)));
            }
        }
        match best {
            Some((_, _, node)) => {
                // Any alternative says more than the node did.
                self.open.retain(|it| *it != node);
                let Node::Or(items) = &self.state.nodes.nodes[node] else { unreachable!("it was one") };
                Choice::OneOf(items.clone())
            }
            None if self.open.is_empty() => Choice::Done,
            None if self.system().refute() => Choice::Hopeless,
            None => self.split(),
        }
    }

    /// What is linear of that which must hold.
    fn system(&self) -> System {
        let mut system = System::default();
        let mut vars = Vec::new();
        let mut n_vars = self.state.nodes.n_ints;
        let reduced = |it: &Linear| self.state.reduced(it);
        let combined = |a: &Linear, x: i128, b: &Linear, y: i128| a.combined(x, b, y);
        for node in &self.open {
            match &self.state.nodes.nodes[*node] {
                Node::Zero(it) => system.zero.extend(reduced(it)),
                Node::AtMostZero(it) => system.at_most_zero.extend(reduced(it)),
                Node::Defined(at) => {
                    let (definition, var) = &self.state.nodes.definitions[*at];
                    let [Some(a), Some(b), Some(res)] =
                        [reduced(&definition.args[0]), reduced(&definition.args[1]), reduced(&Linear::var(*var))]
                    else {
                        continue;
                    };
                    match (definition.function, b.as_constant()) {
                        (Function::Div, Some(by)) if by > 0 => {
                            let rest = combined(&a, 1, &res, -by);
                            system
                                .at_most_zero
                                .extend(rest.iter().filter_map(|it| it.combined(-1, &Linear::default(), 0)));
                            let above = Linear::constant(1 - by);
                            system.at_most_zero.extend(rest.and_then(|it| it.combined(1, &above, 1)));
                        }
                        (Function::Mod, Some(by)) if by > 0 => {
                            let quotient = Linear::var(n_vars);
                            n_vars += 1;
                            let rest = combined(&a, 1, &quotient, -by);
                            system.zero.extend(rest.and_then(|it| it.combined(1, &res, -1)));
                        }
                        (Function::Mul | Function::Div | Function::Mod, _) => {}
                    }
                }
                _ => {}
            }
        }
        system.zero.iter().chain(&system.at_most_zero).for_each(|it| vars.extend(it.terms.iter().map(|it| it.0)));
        vars.sort_unstable();
        vars.dedup();
        for var in vars.into_iter().filter(|it| *it < self.state.nodes.n_ints) {
            let bounds = self.state.bounds(var);
            let bound = |by: i128, constant: i128| Linear { terms: vec![(var, by)], constant };
            if bounds.lo > -INFINITY {
                system.at_most_zero.push(bound(-1, bounds.lo));
            }
            if bounds.hi < INFINITY {
                system.at_most_zero.push(bound(1, -bounds.hi));
            }
        }
        system
    }

    /// Splits what is not linear, or the range of a variable.
    fn split(&mut self) -> Choice {
        let mut best: Option<(i128, usize)> = None;
        let mut linear = None;
        for node in &self.open {
            match &self.state.nodes.nodes[*node] {
                // Of types that differ in some dimension the search knows nothing.
                Node::OtherType(..) | Node::Opaque => {
                    self.state.is_incomplete = true;
                    return Choice::Hopeless;
                }
                Node::NotZero(it) if linear.is_none() => linear = Some((*node, it.clone())),
                _ => {}
            }
            self.for_each_var(*node, &mut |var| {
                let bounds = self.state.bounds(var);
                let width = bounds.hi - bounds.lo;
                if width > 0 && best.is_none_or(|it| (width, var) < it) {
                    best = Some((width, self.state.root(var)));
                }
            });
        }
        if let Some((node, it)) = linear {
            // Either half says more than the node did.
            self.open.retain(|it| *it != node);
            let halves = [1, -1].map(|sign| it.combined(sign, &Linear::constant(1), 1));
            if let [Some(below), Some(above)] = halves {
                return Choice::OneOf([below, above].map(|it| self.state.nodes.push(Node::AtMostZero(it))).into());
            }
        }
        // Where all values are known, what must hold was not yet walked to the end.
        let Some((_, var)) = best else { return Choice::OneOf(vec![Nodes::TRUE]) };
        let bounds = self.state.bounds(var);
        let mut push = |by: i128, constant: i128, is_zero: bool| {
            let linear = Linear { terms: vec![(var, by)], constant };
            self.state.nodes.push(if is_zero { Node::Zero(linear) } else { Node::AtMostZero(linear) })
        };
        Choice::OneOf(if bounds.lo > -INFINITY {
            vec![push(1, -bounds.lo, true), push(-1, bounds.lo + 1, false)]
        } else if bounds.hi < INFINITY {
            vec![push(1, -bounds.hi, true), push(1, 1 - bounds.hi, false)]
        } else {
            vec![push(1, 0, true), push(-1, 1, false), push(1, 1, false)]
        })
    }

    fn for_each_var(&self, node: NodeIndex, visit: &mut dyn FnMut(usize)) {
        let mut terms = |it: &Linear| it.terms.iter().for_each(|(var, _)| visit(*var));
        match &self.state.nodes.nodes[node] {
            Node::Zero(it) | Node::NotZero(it) | Node::AtMostZero(it) => terms(it),
            Node::Defined(at) => self.state.nodes.definitions[*at].0.args.iter().for_each(terms),
            Node::True
            | Node::False
            | Node::And(_)
            | Node::Or(_)
            | Node::SameType(..)
            | Node::OtherType(..)
            | Node::Opaque => {}
        }
    }

    fn value(&self, var: usize) -> i64 {
        let bounds = self.state.bounds(var);
        let nearest = 1_i128.clamp(bounds.lo, bounds.hi);
        i64::try_from(nearest).unwrap_or(if nearest < 0 { i64::MIN } else { i64::MAX })
    }

    fn model(&self) -> Model {
        let dim = |[kind, size]: &[Atom; 2]| {
            let value = |it: &Atom| match it {
                Atom::Const(it) => i64::try_from(*it).unwrap_or(i64::MAX),
                Atom::Var(var) => self.value(*var),
            };
            if value(kind) == 1 { Dim::Size(value(size)) } else { Dim::Dyn }
        };
        let ty = |var: usize| match self.state.binding(var) {
            Some(TypeTerm::Tensor(dims)) => Type::Tensor(dims.iter().map(dim).collect()),
            Some(TypeTerm::Dyn | TypeTerm::Var(_)) | None => Type::Dyn,
        };
        let Problem { ints, types, .. } = self.problem;
        Model {
            ints: ints.iter().enumerate().map(|(var, name)| (name.clone(), self.value(var))).collect(),
            types: types.iter().enumerate().map(|(var, name)| (name.clone(), ty(var))).collect(),
        }
    }
}
