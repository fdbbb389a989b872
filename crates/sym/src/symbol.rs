//! Symbols: the unknowns of a program's sizes.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What PyTorch's naming says a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// `s0`, `s77`: a size of an input, known as soon as the inputs are.
    Size,
    /// `u0`: an integer that the program computes, such as the result of `item()`.
    Unbacked,
    /// `zf0`: a float input.
    Float,
    /// `zuf0`: a float that the program computes.
    UnbackedFloat,
    /// Any other name; an integer exactly if it was declared to be one.
    Other,
}

/// What is known of a symbol without looking at its range: sympy's assumptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assumptions {
    /// `integer=True`.
    pub integer: bool,
    /// `positive=True`.
    pub positive: bool,
    /// `nonnegative=True`.
    pub nonnegative: bool,
    /// `real=True`.
    pub real: bool,
}

/// A named unknown. Within one program a symbol *is* its name, as in `range_constraints`, so equality, order and hash
/// look at the name alone.
///
/// ```
/// use tracefx_sym::{Symbol, SymbolKind};
/// let s0 = Symbol::size("s0");
/// assert_eq!((s0.kind(), s0.assumptions().positive), (SymbolKind::Size, true));
/// ```
#[derive(Clone)]
pub struct Symbol(Arc<Inner>);

struct Inner {
    name: Box<str>,
    assumptions: Assumptions,
}

impl Symbol {
    /// A symbol with these assumptions.
    pub fn new(name: impl Into<Box<str>>, assumptions: Assumptions) -> Self {
        Symbol(Arc::new(Inner { name: name.into(), assumptions }))
    }

    /// A size: a positive integer, as `Symbol('s0', positive=True, integer=True)`.
    pub fn size(name: impl Into<Box<str>>) -> Self {
        Self::new(name, Assumptions { integer: true, positive: true, ..Assumptions::default() })
    }

    /// An integer of unknown sign, as `Symbol('u0', integer=True)`.
    pub fn integer(name: impl Into<Box<str>>) -> Self {
        Self::new(name, Assumptions { integer: true, ..Assumptions::default() })
    }

    /// The symbol that PyTorch means by a bare name: the kind decides the assumptions.
    pub fn from_name(name: impl Into<Box<str>>) -> Self {
        let name = name.into();
        match kind_of(&name, true) {
            SymbolKind::Size => Self::size(name),
            SymbolKind::Unbacked | SymbolKind::Other => Self::integer(name),
            SymbolKind::Float => Self::new(name, Assumptions { real: true, ..Assumptions::default() }),
            SymbolKind::UnbackedFloat => Self::new(name, Assumptions::default()),
        }
    }

    /// The name, such as `s77`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What is known of it.
    pub fn assumptions(&self) -> Assumptions {
        self.0.assumptions
    }

    /// Whether it stands for an integer.
    pub fn is_integer(&self) -> bool {
        self.0.assumptions.integer
    }

    /// What it stands for.
    pub fn kind(&self) -> SymbolKind {
        kind_of(self.name(), self.is_integer())
    }
}

fn kind_of(name: &str, integer: bool) -> SymbolKind {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if numbered("zuf") {
        SymbolKind::UnbackedFloat
    } else if numbered("zf") {
        SymbolKind::Float
    } else if numbered("s") && integer {
        SymbolKind::Size
    } else if numbered("u") && integer {
        SymbolKind::Unbacked
    } else {
        SymbolKind::Other
    }
}

impl PartialEq for Symbol {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.name() == other.name()
    }
}

impl Eq for Symbol {}

impl Hash for Symbol {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Symbol {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
