//! The functions of PyTorch's symbolic expressions, in one table.

/// How tightly a printed form binds, as in sympy.
pub(crate) mod precedence {
    pub(crate) const OR: u32 = 20;
    pub(crate) const AND: u32 = 30;
    pub(crate) const RELATIONAL: u32 = 35;
    /// What separates the parts of a printed `And` and `Or`.
    pub(crate) const BITWISE_OR: u32 = 36;
    pub(crate) const BITWISE_AND: u32 = 38;
    pub(crate) const ADD: u32 = 40;
    pub(crate) const MUL: u32 = 50;
    pub(crate) const POW: u32 = 60;
    pub(crate) const FUNCTION: u32 = 70;
    pub(crate) const NOT: u32 = 100;
    pub(crate) const ATOM: u32 = 1000;
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    AtLeast(usize),
    /// An even number, at least two: sizes, then strides.
    Pairs,
}

impl Arity {
    pub(crate) fn accepts(self, n: usize) -> bool {
        match self {
            Arity::Exactly(it) => n == it,
            Arity::AtLeast(it) => n >= it,
            Arity::Pairs => n >= 2 && n.is_multiple_of(2),
        }
    }
}

macro_rules! funcs {
    ($($(#[$meta:meta])* $variant:ident $name:literal $arity:expr, $precedence:expr;)+) => {
        /// A function of expressions, by the name that sympy's `srepr` writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Func { $($(#[$meta])* $variant),+ }

        impl Func {
            /// Every function, in declaration order.
            pub const ALL: &'static [Func] = &[$(Func::$variant),+];

            /// The name in `srepr` and in PyTorch's sources.
            pub const fn name(self) -> &'static str {
                match self { $(Func::$variant => $name),+ }
            }

            pub(crate) const fn arity(self) -> Arity {
                match self { $(Func::$variant => $arity),+ }
            }

            /// How tightly the printed call binds.
            pub(crate) const fn precedence(self) -> u32 {
                match self { $(Func::$variant => $precedence),+ }
            }
        }
    };
}

funcs! {
    /// `a // b`, rounding towards minus infinity.
    FloorDiv "FloorDiv" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a // b` where the division is known to leave no rest.
    CleanDiv "CleanDiv" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a % b` of numbers that are not negative.
    Mod "Mod" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a % b` with the sign of `b`.
    PythonMod "PythonMod" Arity::Exactly(2), precedence::RELATIONAL;
    /// `(a // b) % c`.
    ModularIndexing "ModularIndexing" Arity::Exactly(3), precedence::RELATIONAL;
    /// The largest of its arguments.
    Max "Max" Arity::AtLeast(1), precedence::ATOM;
    /// The smallest of its arguments.
    Min "Min" Arity::AtLeast(1), precedence::ATOM;
    /// `a` to a symbolic power, from sympy's own `Pow`; also powers of floats.
    Pow "Pow" Arity::Exactly(2), precedence::POW;
    /// `a` to a power that is not negative.
    PowByNatural "PowByNatural" Arity::Exactly(2), precedence::MUL;
    /// `b if a else c`.
    Where "Where" Arity::Exactly(3), precedence::RELATIONAL;
    /// Its argument, shielded from simplification.
    Identity "Identity" Arity::Exactly(1), 10;
    /// 1 if sizes and strides describe a dense tensor without overlaps, else 0.
    IsNonOverlappingAndDenseIndicator "IsNonOverlappingAndDenseIndicator" Arity::Pairs, precedence::FUNCTION;
    /// The integer next to a float, towards zero.
    TruncToInt "TruncToInt" Arity::Exactly(1), precedence::FUNCTION;
    /// The largest integer that is not above a float.
    FloorToInt "FloorToInt" Arity::Exactly(1), precedence::FUNCTION;
    /// The smallest integer that is not below a float.
    CeilToInt "CeilToInt" Arity::Exactly(1), precedence::FUNCTION;
    /// The nearest integer, halves to even.
    RoundToInt "RoundToInt" Arity::Exactly(1), precedence::FUNCTION;

    /// A sum of floats.
    Add "Add" Arity::AtLeast(2), precedence::ADD;
    /// A product of floats.
    Mul "Mul" Arity::AtLeast(2), precedence::MUL;
    /// `a / b` of integers, rounded once.
    IntTrueDiv "IntTrueDiv" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a / b` of floats.
    FloatTrueDiv "FloatTrueDiv" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a ** b` of floats.
    FloatPow "FloatPow" Arity::Exactly(2), precedence::POW;
    /// The float nearest to an integer.
    ToFloat "ToFloat" Arity::Exactly(1), precedence::FUNCTION;
    /// A float without its fraction.
    TruncToFloat "TruncToFloat" Arity::Exactly(1), precedence::FUNCTION;
    /// `round(a, b)`, a float.
    RoundDecimal "RoundDecimal" Arity::Exactly(2), precedence::FUNCTION;
    /// `math.sqrt`.
    Sqrt "OpaqueUnaryFn_sqrt" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.cos`.
    Cos "OpaqueUnaryFn_cos" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.cosh`.
    Cosh "OpaqueUnaryFn_cosh" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.sin`.
    Sin "OpaqueUnaryFn_sin" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.sinh`.
    Sinh "OpaqueUnaryFn_sinh" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.tan`.
    Tan "OpaqueUnaryFn_tan" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.tanh`.
    Tanh "OpaqueUnaryFn_tanh" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.asin`.
    Asin "OpaqueUnaryFn_asin" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.acos`.
    Acos "OpaqueUnaryFn_acos" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.atan`.
    Atan "OpaqueUnaryFn_atan" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.exp`.
    Exp "OpaqueUnaryFn_exp" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.log`.
    Log "OpaqueUnaryFn_log" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.log2`.
    Log2 "OpaqueUnaryFn_log2" Arity::Exactly(1), precedence::FUNCTION;
    /// `math.asinh`.
    Asinh "OpaqueUnaryFn_asinh" Arity::Exactly(1), precedence::FUNCTION;

    /// `a == b`.
    Eq "Equality" Arity::Exactly(2), precedence::MUL;
    /// `a != b`.
    Ne "Unequality" Arity::Exactly(2), precedence::MUL;
    /// `a < b`.
    Lt "StrictLessThan" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a <= b`.
    Le "LessThan" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a > b`.
    Gt "StrictGreaterThan" Arity::Exactly(2), precedence::RELATIONAL;
    /// `a >= b`.
    Ge "GreaterThan" Arity::Exactly(2), precedence::RELATIONAL;
    /// All of its arguments hold.
    And "And" Arity::AtLeast(1), precedence::AND;
    /// One of its arguments holds.
    Or "Or" Arity::AtLeast(1), precedence::OR;
    /// Its argument does not hold.
    Not "Not" Arity::Exactly(1), precedence::NOT;
}

impl Func {
    /// The function that `srepr` writes with this name.
    pub fn from_name(name: &str) -> Option<Func> {
        Func::ALL.iter().copied().find(|it| it.name() == name)
    }

    /// How Python writes a relation.
    pub(crate) const fn operator(self) -> Option<&'static str> {
        match self {
            Func::Eq => Some("=="),
            Func::Ne => Some("!="),
            Func::Lt => Some("<"),
            Func::Le => Some("<="),
            Func::Gt => Some(">"),
            Func::Ge => Some(">="),
            _ => None,
        }
    }
}
