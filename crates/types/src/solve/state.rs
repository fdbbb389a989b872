//! What the search knows at a point: which variables are the same, their bounds, what types are. All of it can be undone.

use super::linear::{INFINITY, Interval, Linear, plus, times};
use super::nodes::{Atom, Function, Node, NodeIndex, Nodes, TypeTerm};

/// What is assumed contradicts itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict;

#[derive(Debug)]
enum Undo {
    Parent(usize),
    Bounds(usize, Interval),
    Weight(usize, u32),
    TypeParent(usize),
    Binding(usize),
    Active(usize),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: Nodes,
    parents: Vec<usize>,
    weights: Vec<u32>,
    bounds: Vec<Interval>,
    type_parents: Vec<usize>,
    bindings: Vec<Option<TypeTerm>>,
    /// Whether a definition is among what must hold.
    active: Vec<bool>,
    trail: Vec<Undo>,
    /// Whether an alternative was given up that might have a solution.
    pub(super) is_incomplete: bool,
}

/// A variable that has no value yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unknown {
    Int(usize),
    Type(usize),
}

/// How deep definitions are looked into for the bounds of a variable.
const MAX_DEPTH: u32 = 4;

impl State {
    pub(super) fn new(nodes: Nodes) -> Self {
        State {
            parents: (0..nodes.n_ints).collect(),
            weights: vec![1; nodes.n_ints],
            bounds: vec![Interval::ALL; nodes.n_ints],
            type_parents: (0..nodes.n_types).collect(),
            bindings: vec![None; nodes.n_types],
            active: vec![false; nodes.definitions.len()],
            trail: Vec::new(),
            is_incomplete: false,
            nodes,
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop().expect("it is longer") {
                Undo::Parent(var) => self.parents[var] = var,
                Undo::Bounds(var, old) => self.bounds[var] = old,
                Undo::Weight(var, old) => self.weights[var] = old,
                Undo::TypeParent(var) => self.type_parents[var] = var,
                Undo::Binding(var) => self.bindings[var] = None,
                Undo::Active(at) => self.active[at] = false,
            }
        }
    }

    pub(super) fn root(&self, mut var: usize) -> usize {
        while self.parents[var] != var {
            var = self.parents[var];
        }
        var
    }

    fn type_root(&self, mut var: usize) -> usize {
        while self.type_parents[var] != var {
            var = self.type_parents[var];
        }
        var
    }

    pub(super) fn binding(&self, var: usize) -> Option<&TypeTerm> {
        self.bindings[self.type_root(var)].as_ref()
    }

    pub(super) fn bounds(&self, var: usize) -> Interval {
        self.bounds[self.root(var)]
    }

    /// Bounds that look into definitions, too.
    fn bounds_within(&self, var: usize, depth: u32) -> Interval {
        let own = self.bounds(var);
        match self.nodes.definition_of.get(&var) {
            Some(at) if depth > 0 && own.lo != own.hi => {
                let of = self.definition_bounds(*at, depth - 1);
                Interval { lo: own.lo.max(of.lo), hi: own.hi.min(of.hi) }
            }
            Some(_) | None => own,
        }
    }

    pub(super) fn interval(&self, linear: &Linear) -> Interval {
        self.interval_within(linear, MAX_DEPTH)
    }

    fn interval_within(&self, linear: &Linear, depth: u32) -> Interval {
        let constant = Interval::exactly(linear.constant);
        linear.terms.iter().fold(constant, |acc, (var, by)| acc.sum(self.bounds_within(*var, depth).scaled(*by)))
    }

    fn definition_bounds(&self, at: usize, depth: u32) -> Interval {
        let definition = &self.nodes.definitions[at].0;
        let [a, b] = [0, 1].map(|it| self.interval_within(&definition.args[it], depth));
        match definition.function {
            Function::Mul => {
                let product = a.product(b);
                // A square is not negative, whatever its root is.
                if definition.args[0] == definition.args[1] {
                    Interval { lo: product.lo.max(0), ..product }
                } else {
                    product
                }
            }
            // What a division by something else than a positive number gives is left open.
            Function::Div | Function::Mod if b.lo <= 0 => Interval::ALL,
            Function::Div => {
                let over = |a: i128, b: i128| match (a.abs() >= INFINITY, b >= INFINITY) {
                    (false, true) => {
                        if a < 0 {
                            -1
                        } else {
                            0
                        }
                    }
                    (true, true) => {
                        if a < 0 {
                            -INFINITY
                        } else {
                            INFINITY
                        }
                    }
                    (true, false) => a,
                    (false, false) => a.div_euclid(b),
                };
                let all = [over(a.lo, b.lo), over(a.lo, b.hi), over(a.hi, b.lo), over(a.hi, b.hi)];
                let [least, most] = [all.iter().min(), all.iter().max()].map(|it| *it.expect("there are four"));
                Interval { lo: least, hi: most }
            }
            Function::Mod => match (a.value(), b.value()) {
                (Some(a), Some(b)) => Interval::exactly(a.rem_euclid(b)),
                _ if a.lo >= 0 && a.hi < b.lo => a,
                _ => Interval { lo: 0, hi: if b.hi >= INFINITY { INFINITY } else { b.hi - 1 } },
            },
        }
    }

    /// The expression with one variable for those that are the same, and numbers for those that are known.
    pub(super) fn reduced(&self, linear: &Linear) -> Option<Linear> {
        let mut constant = linear.constant;
        let mut terms = Vec::with_capacity(linear.terms.len());
        for (var, by) in &linear.terms {
            match self.bounds(*var).value() {
                Some(value) => constant = constant.checked_add(value.checked_mul(*by)?)?,
                None => terms.push((self.root(*var), *by)),
            }
        }
        Linear::of(terms, constant)
    }

    fn is_zero(&self, linear: &Linear) -> Option<bool> {
        if let [(a, x), (b, y)] = &linear.terms[..]
            && linear.constant == 0
            && *x == -*y
            && self.root(*a) == self.root(*b)
        {
            return Some(true);
        }
        let interval = self.interval(linear);
        if interval.lo > 0 || interval.hi < 0 {
            return Some(false);
        }
        if interval.value() == Some(0) {
            return Some(true);
        }
        if linear.terms.len() < 2 {
            return None;
        }
        let reduced = self.reduced(linear)?;
        match reduced.as_constant() {
            Some(it) => Some(it == 0),
            None if reduced.constant % reduced.divisor() != 0 => Some(false),
            None => None,
        }
    }

    fn same_atoms(&self, a: Atom, b: Atom) -> Option<bool> {
        let bounds = |it| match it {
            Atom::Const(value) => Interval::exactly(value),
            Atom::Var(var) => self.bounds(var),
        };
        if let (Atom::Var(a), Atom::Var(b)) = (a, b)
            && self.root(a) == self.root(b)
        {
            return Some(true);
        }
        let (a, b) = (bounds(a), bounds(b));
        match (a.value(), b.value()) {
            (Some(a), Some(b)) => Some(a == b),
            _ if a.hi < b.lo || b.hi < a.lo => Some(false),
            (Some(_) | None, _) => None,
        }
    }

    /// Visits the variables that a node depends on and that have no value.
    pub(super) fn for_each_unknown(&self, node: NodeIndex, visit: &mut dyn FnMut(Unknown)) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match &self.nodes.nodes[node] {
                Node::True | Node::False | Node::Opaque => {}
                Node::And(items) | Node::Or(items) => open.extend(items),
                Node::Zero(it) | Node::NotZero(it) | Node::AtMostZero(it) => self.unknowns_of(it, visit),
                Node::Defined(at) => self.unknowns_of(&Linear::var(self.nodes.definitions[*at].1), visit),
                Node::SameType(a, b) | Node::OtherType(a, b) => {
                    for it in [a, b] {
                        let known = match it {
                            TypeTerm::Var(var) => match self.binding(*var) {
                                Some(known) => known,
                                None => {
                                    visit(Unknown::Type(self.type_root(*var)));
                                    continue;
                                }
                            },
                            TypeTerm::Dyn | TypeTerm::Tensor(_) => it,
                        };
                        let TypeTerm::Tensor(dims) = known else { continue };
                        for atom in dims.iter().flatten() {
                            if let Atom::Var(var) = atom {
                                self.unknowns_of(&Linear::var(*var), visit);
                            }
                        }
                    }
                }
            }
        }
    }

    fn unknowns_of(&self, linear: &Linear, visit: &mut dyn FnMut(Unknown)) {
        for (var, _) in &linear.terms {
            // A definition ties its variable to its arguments even where the variable is known.
            if let Some(at) = self.nodes.definition_of.get(var) {
                self.nodes.definitions[*at].0.args.iter().for_each(|it| self.unknowns_of(it, visit));
            }
            if self.bounds(*var).value().is_none() {
                visit(Unknown::Int(self.root(*var)));
            }
        }
    }

    fn known<'t>(&'t self, ty: &'t TypeTerm) -> Option<&'t TypeTerm> {
        if let TypeTerm::Var(var) = ty { self.binding(*var) } else { Some(ty) }
    }

    fn same_types(&self, a: &TypeTerm, b: &TypeTerm) -> Option<bool> {
        if let (TypeTerm::Var(a), TypeTerm::Var(b)) = (a, b)
            && self.type_root(*a) == self.type_root(*b)
        {
            return Some(true);
        }
        match (self.known(a)?, self.known(b)?) {
            (TypeTerm::Tensor(a), TypeTerm::Tensor(b)) if a.len() == b.len() => {
                let mut all = Some(true);
                for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
                    match self.same_atoms(*a, *b) {
                        Some(false) => return Some(false),
                        Some(true) => {}
                        None => all = None,
                    }
                }
                all
            }
            (a, b) => Some(*a == TypeTerm::Dyn && *b == TypeTerm::Dyn),
        }
    }

    /// Whether a node holds, as far as that is known.
    pub(super) fn eval(&self, node: NodeIndex) -> Option<bool> {
        match &self.nodes.nodes[node] {
            Node::True => Some(true),
            Node::False => Some(false),
            Node::And(items) => self.all(items, false).map(|it| !it),
            Node::Or(items) => self.all(items, true),
            Node::Zero(it) => self.is_zero(it),
            Node::NotZero(it) => self.is_zero(it).map(|it| !it),
            Node::AtMostZero(it) => match self.interval(it) {
                Interval { hi, .. } if hi <= 0 => Some(true),
                Interval { lo, .. } if lo > 0 => Some(false),
                Interval { .. } => None,
            },
            Node::Defined(at) => {
                let (definition, var) = &self.nodes.definitions[*at];
                let is_known = |it: &Linear| it.terms.iter().all(|(var, _)| self.bounds(*var).value().is_some());
                let value = self.bounds(*var).value()?;
                if !definition.args.iter().all(is_known) {
                    return None;
                }
                let of = self.definition_bounds(*at, 0);
                Some(of.value() == Some(value))
            }
            Node::SameType(a, b) => self.same_types(a, b),
            Node::OtherType(a, b) => self.same_types(a, b).map(|it| !it),
            Node::Opaque => None,
        }
    }

    /// Whether one of the nodes is `stop`; `Some(!stop)` where none is.
    fn all(&self, items: &[NodeIndex], stop: bool) -> Option<bool> {
        let mut res = Some(false);
        for it in items {
            match self.eval(*it) {
                Some(value) if value == stop => return Some(true),
                Some(_) => {}
                None => res = None,
            }
        }
        res
    }

    /// Lets a comparison or a type hold. What follows of it may be more than is found at once, so it is asked again.
    pub(super) fn assert(&mut self, node: NodeIndex, activated: &mut Vec<NodeIndex>) -> Result<(), Conflict> {
        // The node is taken out while it is used: it does not change.
        let taken = std::mem::replace(&mut self.nodes.nodes[node], Node::True);
        let res = self.assert_node(&taken, activated);
        self.nodes.nodes[node] = taken;
        res
    }

    fn assert_node(&mut self, node: &Node, activated: &mut Vec<NodeIndex>) -> Result<(), Conflict> {
        match node {
            Node::True | Node::And(_) | Node::Or(_) => Ok(()),
            Node::False => Err(Conflict),
            Node::Zero(it) => {
                self.activate(it, activated);
                if let [(a, x), (b, y)] = &it.terms[..]
                    && it.constant == 0
                    && *x == -*y
                {
                    return self.unite(*a, *b);
                }
                self.narrow_terms(it, true)
            }
            Node::AtMostZero(it) => {
                self.activate(it, activated);
                self.narrow_terms(it, false)
            }
            Node::NotZero(it) => {
                self.activate(it, activated);
                self.exclude(it)
            }
            Node::Defined(at) => self.narrow_definition(*at, activated),
            Node::SameType(a, b) => self.unify(a.clone(), b.clone()),
            Node::OtherType(..) => Ok(()),
            Node::Opaque => {
                self.is_incomplete = true;
                Err(Conflict)
            }
        }
    }

    fn activate(&mut self, linear: &Linear, activated: &mut Vec<NodeIndex>) {
        for (var, _) in &linear.terms {
            if let Some(&at) = self.nodes.definition_of.get(var)
                && !self.active[at]
            {
                self.active[at] = true;
                self.trail.push(Undo::Active(at));
                activated.push(self.nodes.push(Node::Defined(at)));
            }
        }
    }

    fn set_bounds(&mut self, var: usize, lo: i128, hi: i128) -> Result<(), Conflict> {
        let var = self.root(var);
        let old = self.bounds[var];
        let new = Interval { lo: old.lo.max(lo), hi: old.hi.min(hi) };
        if new != old {
            self.trail.push(Undo::Bounds(var, old));
            self.bounds[var] = new;
        }
        if new.lo > new.hi { Err(Conflict) } else { Ok(()) }
    }

    fn unite(&mut self, a: usize, b: usize) -> Result<(), Conflict> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Ok(());
        }
        let (child, parent) = if self.weights[a] < self.weights[b] { (a, b) } else { (b, a) };
        self.trail.push(Undo::Parent(child));
        self.parents[child] = parent;
        self.trail.push(Undo::Weight(parent, self.weights[parent]));
        self.weights[parent] += self.weights[child];
        let Interval { lo, hi } = self.bounds[child];
        self.set_bounds(parent, lo, hi)
    }

    fn unify_atoms(&mut self, a: Atom, b: Atom) -> Result<(), Conflict> {
        match (a, b) {
            (Atom::Const(a), Atom::Const(b)) => {
                if a == b {
                    Ok(())
                } else {
                    Err(Conflict)
                }
            }
            (Atom::Var(var), Atom::Const(it)) | (Atom::Const(it), Atom::Var(var)) => self.set_bounds(var, it, it),
            (Atom::Var(a), Atom::Var(b)) => self.unite(a, b),
        }
    }

    fn unify(&mut self, a: TypeTerm, b: TypeTerm) -> Result<(), Conflict> {
        match (a, b) {
            (TypeTerm::Var(a), TypeTerm::Var(b)) => {
                let (a, b) = (self.type_root(a), self.type_root(b));
                if a == b {
                    return Ok(());
                }
                self.trail.push(Undo::TypeParent(a));
                self.type_parents[a] = b;
                match (self.bindings[a].clone(), self.bindings[b].clone()) {
                    (Some(x), Some(y)) => self.unify(x, y),
                    (Some(x), None) => {
                        self.bind(b, x);
                        Ok(())
                    }
                    (None, _) => Ok(()),
                }
            }
            (TypeTerm::Var(var), term) | (term, TypeTerm::Var(var)) => {
                let var = self.type_root(var);
                match self.bindings[var].clone() {
                    Some(known) => self.unify(known, term),
                    None => {
                        self.bind(var, term);
                        Ok(())
                    }
                }
            }
            (TypeTerm::Dyn, TypeTerm::Dyn) => Ok(()),
            (TypeTerm::Tensor(a), TypeTerm::Tensor(b)) if a.len() == b.len() => {
                let mut atoms = a.into_iter().flatten().zip(b.into_iter().flatten());
                atoms.try_for_each(|(a, b)| self.unify_atoms(a, b))
            }
            (TypeTerm::Dyn | TypeTerm::Tensor(_), _) => Err(Conflict),
        }
    }

    fn bind(&mut self, var: usize, term: TypeTerm) {
        self.trail.push(Undo::Binding(var));
        self.bindings[var] = Some(term);
    }

    /// The bounds that an expression which is 0, or at most 0, leaves its variables.
    fn narrow_terms(&mut self, linear: &Linear, is_zero: bool) -> Result<(), Conflict> {
        self.narrow(linear, if is_zero { 0 } else { -INFINITY }, 0)
    }

    /// The bounds that an expression between `lo` and `hi` leaves its variables.
    fn narrow(&mut self, linear: &Linear, lo: i128, hi: i128) -> Result<(), Conflict> {
        for (at, (var, by)) in linear.terms.iter().enumerate() {
            let others = linear.terms.iter().enumerate().filter(|(it, _)| *it != at);
            let others = others
                .fold(Interval::exactly(linear.constant), |acc, (_, (var, by))| acc.sum(self.bounds(*var).scaled(*by)));
            // by * var is between these.
            let (least, most) = (plus(lo, -others.hi), plus(hi, -others.lo));
            let down =
                |it: i128, by: i128| if it.abs() >= INFINITY { times(it, by.signum()) } else { it.div_euclid(by) };
            let (lo, hi) =
                if *by > 0 { (-down(-least, *by), down(most, *by)) } else { (-down(most, -*by), down(-least, -*by)) };
            self.set_bounds(*var, lo, hi)?;
        }
        if linear.terms.is_empty() && !(lo..=hi).contains(&linear.constant) { Err(Conflict) } else { Ok(()) }
    }

    /// An expression of one variable that is not 0 at the end of its bounds.
    fn exclude(&mut self, linear: &Linear) -> Result<(), Conflict> {
        let Some(reduced) = self.reduced(linear) else { return Ok(()) };
        match &reduced.terms[..] {
            [] if reduced.constant == 0 => Err(Conflict),
            [(var, by)] if reduced.constant % by == 0 => {
                let (value, bounds) = (-reduced.constant / by, self.bounds(*var));
                if bounds.lo == value {
                    self.set_bounds(*var, value + 1, INFINITY)
                } else if bounds.hi == value {
                    self.set_bounds(*var, -INFINITY, value - 1)
                } else {
                    Ok(())
                }
            }
            [] | [_] | [_, _, ..] => Ok(()),
        }
    }

    fn narrow_definition(&mut self, at: usize, activated: &mut Vec<NodeIndex>) -> Result<(), Conflict> {
        let (definition, var) = self.nodes.definitions[at].clone();
        let [x, y] = &definition.args;
        self.activate(x, activated);
        self.activate(y, activated);
        let Interval { lo, hi } = self.definition_bounds(at, 0);
        self.set_bounds(var, lo, hi)?;
        let res = self.bounds(var);
        let [a, b] = [x, y].map(|it| self.interval_within(it, 0));
        match definition.function {
            Function::Mul => {
                self.narrow_factor(x, b, res)?;
                self.narrow_factor(y, a, res)
            }
            Function::Div | Function::Mod => match b.value() {
                Some(by) if by <= 0 => {
                    // A division by zero is anything; this is left to others.
                    self.is_incomplete = true;
                    Err(Conflict)
                }
                Some(by) if definition.function == Function::Div => {
                    self.narrow(x, times(res.lo, by), plus(times(res.hi, by), by - 1))
                }
                // Where the quotient is known, the remainder says what the number is.
                Some(by) if a.lo.abs() < INFINITY && a.hi < INFINITY && a.lo.div_euclid(by) == a.hi.div_euclid(by) => {
                    let base = a.lo.div_euclid(by) * by;
                    self.narrow(x, plus(base, res.lo), plus(base, res.hi))
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    /// The bounds of a factor, where the other factor is positive.
    fn narrow_factor(&mut self, factor: &Linear, other: Interval, product: Interval) -> Result<(), Conflict> {
        if other.lo <= 0 {
            return Ok(());
        }
        let over = |it: i128, by: i128| {
            if it.abs() >= INFINITY {
                it
            } else if by >= INFINITY {
                if it < 0 { -1 } else { 0 }
            } else {
                it.div_euclid(by)
            }
        };
        let hi = over(product.hi, if product.hi >= 0 { other.lo } else { other.hi });
        let lo = -over(-product.lo, if product.lo >= 0 { other.hi } else { other.lo });
        self.narrow(factor, if product.lo > 0 { lo.max(1) } else { lo }, hi)
    }
}
