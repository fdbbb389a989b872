//! [`SymBool`]: relations of expressions, and what `and`, `or` and `not` make of them.

use crate::expr::{Call, Extent, Invalid};
use crate::{Expr, Func, SymInt, Symbol};
use std::sync::Arc;

/// A truth value, known or symbolic.
///
/// A relation stays as it was written, for it is shown to people; only relations whose sides differ by a known number
/// are decided at once. [`ShapeEnv::decide`](crate::ShapeEnv::decide) does more.
///
/// ```
/// use tracefx_sym::{SymBool, SymInt, Symbol};
/// let u0 = SymInt::from(Symbol::integer("u0"));
/// assert_eq!(SymBool::gt(&(&u0 + 1), &0.into()).to_string(), "u0 + 1 > 0");
/// assert_eq!(SymBool::gt(&(&u0 + 1), &u0), SymBool::Const(true));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum SymBool {
    /// `true` or `false`.
    Const(bool),
    /// A relation, `And`, `Or`, `Not` or `Where`.
    Call(BoolCall),
    /// No value, for this reason.
    Invalid(Invalid),
}

/// The inside of a symbolic [`SymBool`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BoolCall(pub(crate) Arc<Call>);

impl BoolCall {
    /// The function.
    pub fn func(&self) -> Func {
        self.0.func
    }

    /// Its arguments.
    pub fn args(&self) -> &[Expr] {
        &self.0.args
    }
}

macro_rules! relation {
    ($($name:ident $func:ident $does:literal;)+) => {
        $(
            #[doc = concat!("`a ", $does, " b`.")]
            pub fn $name(a: &SymInt, b: &SymInt) -> SymBool {
                crate::call::relation(Func::$func, Expr::Int(a.clone()), Expr::Int(b.clone()))
            }
        )+
    };
}

impl SymBool {
    relation! {
        eq Eq "==";
        ne Ne "!=";
        lt Lt "<";
        le Le "<=";
        gt Gt ">";
        ge Ge ">=";
    }

    /// Whether both hold.
    pub fn and(self, other: SymBool) -> SymBool {
        crate::call::connective(Func::And, vec![self, other])
    }

    /// Whether one of them holds.
    pub fn or(self, other: SymBool) -> SymBool {
        crate::call::connective(Func::Or, vec![self, other])
    }

    /// The truth value, if it is known.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            SymBool::Const(it) => Some(*it),
            SymBool::Call(_) | SymBool::Invalid(_) => None,
        }
    }

    /// Why it has no value, if it has none.
    pub fn invalid(&self) -> Option<Invalid> {
        match self {
            SymBool::Invalid(it) => Some(*it),
            SymBool::Const(_) | SymBool::Call(_) => None,
        }
    }

    pub(crate) fn of_call(call: Result<Arc<Call>, Invalid>) -> Self {
        match call {
            Ok(it) => SymBool::Call(BoolCall(it)),
            Err(it) => SymBool::Invalid(it),
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        match self {
            SymBool::Call(it) => it.0.extent,
            SymBool::Const(_) | SymBool::Invalid(_) => Extent::LEAF,
        }
    }

    pub(crate) fn visit_symbols(&self, visit: &mut dyn FnMut(&Symbol)) {
        if let SymBool::Call(it) = self {
            it.args().iter().for_each(|arg| arg.visit_symbols(visit));
        }
    }
}

impl std::ops::Not for SymBool {
    type Output = SymBool;

    /// Whether it does not hold.
    fn not(self) -> SymBool {
        crate::call::negation(self)
    }
}

impl From<bool> for SymBool {
    fn from(value: bool) -> Self {
        SymBool::Const(value)
    }
}
