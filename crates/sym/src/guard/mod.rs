//! Guards: the Python conditions on inputs that an exported program carries (`guards_code`).

mod evaluate;
mod print;
mod read;
mod symbolic;

use crate::EvalError;
use crate::syntax::{self, Binary, Limits, Relation, Unary};
use read::Builtin;
use std::fmt::{self, Display, Formatter};
use tracefx_core::{Diagnostic, Result};

/// A condition on the inputs of a program.
///
/// It prints as PyTorch shows it when it fails: `L['x']` is the input `x`.
///
/// ```
/// use tracefx_sym::{Guard, InputProperty, InputValue, Limits};
/// let guard = Guard::parse("L['x'].size()[0] == ((-1) + L['y'].size()[0])", &Limits::default()).unwrap();
/// assert_eq!(guard.to_string(), "x.size()[0] == -1 + y.size()[0]");
///
/// let rows = |x: i64, y: i64| {
///     guard.holds(&|input| match input.property {
///         InputProperty::Size(0) => Some(InputValue::Int(if input.name == "x" { x } else { y })),
///         _ => None,
///     })
/// };
/// assert_eq!(rows(3, 4), Ok(true));
/// assert_eq!(rows(3, 5), Ok(false));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Guard(Condition);

/// What a guard looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputSource {
    /// The argument of `forward`.
    pub name: String,
    /// The way from there into lists, tuples and dictionaries.
    pub path: Vec<PathStep>,
    /// What of it.
    pub property: InputProperty,
}

/// One step into a structured input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// `[0]`
    Index(i64),
    /// `['key']`
    Key(String),
    /// `.field`
    Field(String),
}

/// What a guard asks of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputProperty {
    /// The value itself: a number, truth value, string or None.
    Value,
    /// `.size()[i]`; negative ones count from the end.
    Size(i64),
    /// `.stride()[i]`; negative ones count from the end.
    Stride(i64),
    /// `.storage_offset()`
    StorageOffset,
}

/// What an input answers.
#[derive(Clone, Debug, PartialEq)]
pub enum InputValue {
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// A str.
    Str(String),
    /// None.
    None,
}

/// Why a guard could not be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum GuardError {
    /// The inputs have nothing there.
    Missing(InputSource),
    /// The arithmetic has no value.
    Eval(EvalError),
    /// The operator does not take such a value.
    Kind(&'static str),
}

impl Display for GuardError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            GuardError::Missing(it) => write!(f, "the inputs have no {it}"),
            GuardError::Eval(it) => it.fmt(f),
            GuardError::Kind(it) => write!(f, "{it} does not take such a value"),
        }
    }
}

impl std::error::Error for GuardError {}

impl From<EvalError> for GuardError {
    fn from(error: EvalError) -> Self {
        GuardError::Eval(error)
    }
}

/// The tree of a guard, which is close to the text, because people read it.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Value(InputValue),
    Input(InputSource),
    Unary(Unary, Box<Condition>),
    Chain(Box<Condition>, Vec<(Binary, Condition)>),
    Power(Box<Condition>, Box<Condition>),
    Call(&'static Builtin, Vec<Condition>),
    Compare(Box<Condition>, Vec<(Relation, Condition)>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

impl Guard {
    /// Reads a condition. No code is run: what the grammar does not have is refused by name.
    ///
    /// # Errors
    ///
    /// `ExpressionMalformed` with the place in the text, or `LimitExceeded` with the name of the limit.
    pub fn parse(text: &str, limits: &Limits) -> Result<Guard> {
        read::condition(text, &syntax::parse(text, limits)?).map(Guard)
    }

    /// Whether the inputs meet it, with Python's arithmetic. `inputs` answers what the guard asks, or `None` if the inputs
    /// have nothing there.
    ///
    /// # Errors
    ///
    /// If the inputs lack something that it asks for, or its arithmetic has no value for them.
    pub fn holds(&self, inputs: &dyn Fn(&InputSource) -> Option<InputValue>) -> Result<bool, GuardError> {
        Ok(self.0.eval(inputs)?.is_true())
    }

    /// Calls `visit` with everything that it asks of the inputs.
    pub fn visit_sources(&self, visit: &mut dyn FnMut(&InputSource)) {
        self.0.visit_sources(visit);
    }
}

impl From<GuardError> for Diagnostic {
    fn from(error: GuardError) -> Self {
        Diagnostic::new(tracefx_core::Code::InputStructure, error.to_string())
    }
}
