//! Expressions of any sort, and the calls that are their inner nodes.

use crate::{Func, SymBool, SymFloat, SymInt, Symbol};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An expression of one of the three sorts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// An integer.
    Int(SymInt),
    /// A float.
    Float(SymFloat),
    /// A truth value.
    Bool(SymBool),
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invalid {
    /// A number left 64 bits.
    Overflow,
    /// Something was divided by zero.
    DivisionByZero,
    /// A function has no value for its argument, such as a negative power of an integer.
    Undefined,
    /// The expression grew beyond what is worth keeping.
    TooLarge,
}

impl Invalid {
    /// The reason of what is made of two parts; it doesn't depend on their order.
    pub(crate) fn of_either(a: Option<Invalid>, b: Option<Invalid>) -> Option<Invalid> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// What happened, to go after "the expression" or "the size".
    pub const fn reason(self) -> &'static str {
        match self {
            Invalid::Overflow => "leaves 64 bits",
            Invalid::DivisionByZero => "divides by zero",
            Invalid::Undefined => "has no value",
            Invalid::TooLarge => "is too large",
        }
    }
}

/// The most nodes that one expression may have, shared parts counted as often as they are used.
///
/// It bounds the work of everything that walks an expression. The largest one seen in a real program has about 20.
pub(crate) const MAX_WEIGHT: u32 = 4096;
/// The deepest nesting of calls.
pub(crate) const MAX_DEPTH: u32 = 128;

/// The size of an expression: all nodes of its tree, and the longest way down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) weight: u32,
    pub(crate) depth: u32,
}

impl Extent {
    pub(crate) const LEAF: Extent = Extent { weight: 1, depth: 0 };

    pub(crate) fn beside(self, other: Extent) -> Extent {
        Extent { weight: self.weight.saturating_add(other.weight), depth: self.depth.max(other.depth) }
    }

    pub(crate) fn fits(self) -> bool {
        self.weight <= MAX_WEIGHT && self.depth <= MAX_DEPTH
    }
}

/// A function applied to its arguments: immutable, with its hash.
pub(crate) struct Call {
    pub(crate) func: Func,
    pub(crate) args: Box<[Expr]>,
    pub(crate) extent: Extent,
    hash: u64,
}

impl Call {
    /// The call as it is written. Refuses one that is too large, or one of whose arguments has no value.
    pub(crate) fn new(func: Func, args: Vec<Expr>) -> Result<Arc<Call>, Invalid> {
        let mut extent = Extent::LEAF;
        for arg in &args {
            if let Some(invalid) = arg.invalid() {
                return Err(invalid);
            }
            extent = extent.beside(arg.extent());
        }
        extent.depth += 1;
        if !extent.fits() {
            return Err(Invalid::TooLarge);
        }
        let mut hasher = FxHasher::default();
        (func, &args).hash(&mut hasher);
        Ok(Arc::new(Call { func, args: args.into(), extent, hash: hasher.finish() }))
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.hash == other.hash && self.func == other.func && self.args == other.args)
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Expr {
    /// Why the expression has no value, if it has none.
    pub fn invalid(&self) -> Option<Invalid> {
        match self {
            Expr::Int(it) => it.invalid(),
            Expr::Float(it) => it.invalid(),
            Expr::Bool(it) => it.invalid(),
        }
    }

    /// The integer expression, if it is one.
    pub fn as_int(&self) -> Option<&SymInt> {
        match self {
            Expr::Int(it) => Some(it),
            Expr::Float(_) | Expr::Bool(_) => None,
        }
    }

    /// The name of the sort, for messages.
    pub fn sort(&self) -> &'static str {
        match self {
            Expr::Int(_) => "integer",
            Expr::Float(_) => "float",
            Expr::Bool(_) => "boolean",
        }
    }

    /// The unknowns in it, each once, by name.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut found = Vec::new();
        self.visit_symbols(&mut |it| found.push(it.clone()));
        found.sort();
        found.dedup();
        found
    }

    pub(crate) fn visit_symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        match self {
            Expr::Int(it) => it.visit_symbols(visit),
            Expr::Float(it) => it.visit_symbols(visit),
            Expr::Bool(it) => it.visit_symbols(visit),
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match self {
            Expr::Int(it) => it.extent(),
            Expr::Float(it) => it.extent(),
            Expr::Bool(it) => it.extent(),
        }
    }
}

impl From<SymInt> for Expr {
    fn from(it: SymInt) -> Self {
        Expr::Int(it)
    }
}

impl From<SymFloat> for Expr {
    fn from(it: SymFloat) -> Self {
        Expr::Float(it)
    }
}

impl From<SymBool> for Expr {
    fn from(it: SymBool) -> Self {
        Expr::Bool(it)
    }
}
