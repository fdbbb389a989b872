//! A formula as a table of nodes without negations, whose comparisons are linear.

use super::linear::Linear;
use crate::{Comparison, Formula, Int, Problem, TypeExpr};
use rustc_hash::FxHashMap;

pub(super) type NodeIndex = usize;

#[derive(Clone, Debug)]
pub(super) enum Node {
    True,
    False,
    And(Vec<NodeIndex>),
    Or(Vec<NodeIndex>),
    /// The expression is 0.
    Zero(Linear),
    /// The expression is not 0.
    NotZero(Linear),
    /// The expression is at most 0.
    AtMostZero(Linear),
    /// The definition of a variable holds.
    Defined(usize),
    SameType(TypeTerm, TypeTerm),
    OtherType(TypeTerm, TypeTerm),
    /// Something that the solver cannot reason about: large numbers.
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    Const(i128),
    Var(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypeTerm {
    Var(usize),
    Dyn,
    /// The kind and size of each dimension.
    Tensor(Vec<[Atom; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Function {
    Mul,
    Div,
    Mod,
}

/// A variable that stands for what is not linear.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Definition {
    pub(super) function: Function,
    pub(super) args: [Linear; 2],
}

#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    pub(super) n_ints: usize,
    pub(super) n_types: usize,
    /// The definitions, and the variable of each.
    pub(super) definitions: Vec<(Definition, usize)>,
    /// The definition of each variable, if it has one.
    pub(super) definition_of: FxHashMap<usize, usize>,
    known: FxHashMap<Definition, usize>,
}

impl Nodes {
    /// The node that always holds.
    pub(super) const TRUE: NodeIndex = 0;

    pub(super) fn of(problem: &Problem) -> (Self, NodeIndex) {
        let mut res = Nodes {
            nodes: vec![Node::True, Node::False],
            n_ints: problem.ints.len(),
            n_types: problem.types.len(),
            definitions: Vec::new(),
            definition_of: FxHashMap::default(),
            known: FxHashMap::default(),
        };
        let root = res.formula(&problem.formula, true);
        (res, root)
    }

    pub(super) fn push(&mut self, node: Node) -> NodeIndex {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn formula(&mut self, formula: &Formula, holds: bool) -> NodeIndex {
        match formula {
            Formula::Const(it) => usize::from(*it != holds),
            Formula::Not(it) => self.formula(it, !holds),
            Formula::And(items) | Formula::Or(items) => {
                let is_and = matches!(formula, Formula::And(_)) == holds;
                let items: Vec<NodeIndex> = items.iter().map(|it| self.formula(it, holds)).collect();
                self.push(if is_and { Node::And(items) } else { Node::Or(items) })
            }
            Formula::Compare(comparison, a, b) => {
                let node = self.compare(*comparison, a, b, holds).unwrap_or(Node::Opaque);
                self.push(node)
            }
            Formula::SameType(a, b) => {
                let (a, b) = (type_term(a), type_term(b));
                self.push(if holds { Node::SameType(a, b) } else { Node::OtherType(a, b) })
            }
        }
    }

    fn compare(&mut self, comparison: Comparison, a: &Int, b: &Int, holds: bool) -> Option<Node> {
        let difference = self.linear(a)?.combined(1, &self.linear(b)?, -1)?;
        let shifted = |sign: i128, by: i128| difference.combined(sign, &Linear::constant(by), 1);
        Some(match (comparison, holds) {
            (Comparison::Eq, true) => Node::Zero(difference),
            (Comparison::Eq, false) => Node::NotZero(difference),
            (Comparison::Le, true) => Node::AtMostZero(difference),
            (Comparison::Le, false) => Node::AtMostZero(shifted(-1, 1)?),
            (Comparison::Lt, true) => Node::AtMostZero(shifted(1, 1)?),
            (Comparison::Lt, false) => Node::AtMostZero(shifted(-1, 0)?),
        })
    }

    fn linear(&mut self, int: &Int) -> Option<Linear> {
        match int {
            Int::Const(it) => Some(Linear::constant((*it).into())),
            Int::Var(var) => Some(Linear::var(*var)),
            Int::Add(items) => {
                items.iter().try_fold(Linear::constant(0), |acc, it| acc.combined(1, &self.linear(it)?, 1))
            }
            Int::Mul(items) => items.iter().try_fold(Linear::constant(1), |acc, it| {
                let it = self.linear(it)?;
                match (acc.as_constant(), it.as_constant()) {
                    (Some(by), _) => it.combined(by, &Linear::default(), 0),
                    (None, Some(by)) => acc.combined(by, &Linear::default(), 0),
                    (None, None) => Some(self.defined(Function::Mul, [acc, it])),
                }
            }),
            Int::Div(a, b) => self.call(Function::Div, a, b),
            Int::Mod(a, b) => self.call(Function::Mod, a, b),
        }
    }

    fn call(&mut self, function: Function, a: &Int, b: &Int) -> Option<Linear> {
        let args = [self.linear(a)?, self.linear(b)?];
        Some(self.defined(function, args))
    }

    fn defined(&mut self, function: Function, args: [Linear; 2]) -> Linear {
        let definition = Definition { function, args };
        if let Some(var) = self.known.get(&definition) {
            return Linear::var(*var);
        }
        let var = self.n_ints;
        self.n_ints += 1;
        self.definition_of.insert(var, self.definitions.len());
        self.definitions.push((definition.clone(), var));
        self.known.insert(definition, var);
        Linear::var(var)
    }
}

fn type_term(ty: &TypeExpr) -> TypeTerm {
    let atom = |it: &Int| match it {
        Int::Const(it) => Atom::Const((*it).into()),
        Int::Var(var) => Atom::Var(*var),
        Int::Add(_) | Int::Mul(_) | Int::Div(..) | Int::Mod(..) => {
            panic!("the dimensions of a type are variables and numbers")
        }
    };
    match ty {
        TypeExpr::Dyn => TypeTerm::Dyn,
        TypeExpr::Var(var) => TypeTerm::Var(*var),
        TypeExpr::Tensor(dims) => TypeTerm::Tensor(dims.iter().map(|it| [atom(&it.kind), atom(&it.size)]).collect()),
    }
}
