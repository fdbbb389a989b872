//! The parser of symbolic expressions: sympy's `srepr`, and the infix form that Python's `str` prints.

use crate::call::call;
use crate::division;
use crate::syntax::{self, Binary, Kind, Limits, Node, Unary, malformed};
use crate::{Assumptions, Expr, Func, SymBool, SymFloat, SymInt, Symbol};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};

/// Reads the expressions of one program. A symbol that was met before is the same symbol, also by its bare name.
///
/// ```
/// use tracefx_sym::Parser;
/// let mut parser = Parser::default();
/// let rows = parser.parse_int("Mul(Integer(4), Symbol('s0', positive=True, integer=True))").unwrap();
/// assert_eq!(rows.to_string(), "4*s0");
/// assert_eq!(parser.parse_int("2*(s0 + s0)").unwrap(), rows);
/// assert!(parser.parse("__import__('os')").is_err());
/// ```
#[derive(Debug, Default)]
pub struct Parser {
    limits: Limits,
    symbols: BTreeMap<Box<str>, Symbol>,
}

impl Parser {
    /// A parser with other limits than the default ones.
    pub fn with_limits(limits: Limits) -> Self {
        Parser { limits, symbols: BTreeMap::new() }
    }

    /// The symbol of this name, if an expression had one.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name)
    }

    /// Reads an expression of any sort.
    ///
    /// # Errors
    ///
    /// `ExpressionMalformed` with the place in the text, or `LimitExceeded` with the name of the limit.
    pub fn parse(&mut self, text: &str) -> Result<Expr> {
        let tree = syntax::parse(text, &self.limits)?;
        Reader { text, parser: self }.expr(&tree)
    }

    /// Reads an integer expression.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and if it is of another sort.
    pub fn parse_int(&mut self, text: &str) -> Result<SymInt> {
        match self.parse(text)? {
            Expr::Int(it) => Ok(it),
            other => Err(wrong_sort(text, &other, "an integer")),
        }
    }

    /// Reads a float expression; an integer one is taken as its float.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and if it is a truth value.
    pub fn parse_float(&mut self, text: &str) -> Result<SymFloat> {
        match self.parse(text)? {
            Expr::Float(it) => Ok(it),
            Expr::Int(it) => Ok(it.into()),
            other => Err(wrong_sort(text, &other, "a float")),
        }
    }

    /// Reads a relation or another truth value.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and if it is of another sort.
    pub fn parse_bool(&mut self, text: &str) -> Result<SymBool> {
        match self.parse(text)? {
            Expr::Bool(it) => Ok(it),
            other => Err(wrong_sort(text, &other, "a truth value")),
        }
    }

    /// The symbol with this name, made with these assumptions if there is none yet.
    fn declare(&mut self, name: &str, make: impl FnOnce() -> Symbol) -> Result<Symbol> {
        if let Some(known) = self.symbols.get(name) {
            return Ok(known.clone());
        }
        if self.symbols.len() >= self.limits.max_symbols {
            let message = format!("a program has more symbols than max_symbols = {}", self.limits.max_symbols);
            return Err(Diagnostic::new(Code::LimitExceeded, message));
        }
        let symbol = make();
        self.symbols.insert(name.into(), symbol.clone());
        Ok(symbol)
    }
}

fn wrong_sort(text: &str, found: &Expr, wanted: &str) -> Diagnostic {
    malformed(text, 0, format!("expected {wanted}, found the {} {found}", found.sort()))
}

struct Reader<'a> {
    text: &'a str,
    parser: &'a mut Parser,
}

impl Reader<'_> {
    fn error(&self, at: usize, problem: impl std::fmt::Display) -> Diagnostic {
        malformed(self.text, at, problem)
    }

    /// An expression that has a value.
    fn expr(&mut self, node: &Node<'_>) -> Result<Expr> {
        let expr = self.unchecked(node)?;
        match expr.invalid() {
            Some(it) => Err(self.error(node.at, format!("the expression {}", it.reason()))),
            None => Ok(expr),
        }
    }

    fn unchecked(&mut self, node: &Node<'_>) -> Result<Expr> {
        match &node.kind {
            Kind::Int(it) => match i64::try_from(*it) {
                Ok(it) => Ok(Expr::Int(it.into())),
                Err(_) => Err(self.error(node.at, "a number leaves 64 bits")),
            },
            Kind::Float(it) => Ok(Expr::Float((*it).into())),
            Kind::Name(name) => self.name(name, node.at),
            Kind::Unary(operator, operand) => self.unary(*operator, operand, node.at),
            Kind::Chain(first, rest) => {
                let mut result = self.expr(first)?;
                for (operator, operand) in rest {
                    let operand = self.expr(operand)?;
                    result = self.binary(*operator, result, operand, node.at)?;
                    if let Some(it) = result.invalid() {
                        return Err(self.error(node.at, format!("the expression {}", it.reason())));
                    }
                }
                Ok(result)
            }
            Kind::Power(base, exponent) => {
                let args = vec![self.expr(base)?, self.expr(exponent)?];
                self.call(Func::Pow, args, node.at)
            }
            Kind::Compare(first, rest) => {
                let mut left = self.expr(first)?;
                let mut parts = Vec::new();
                for (relation, right) in rest {
                    let right = self.expr(right)?;
                    parts.push(self.call(relation.func(), vec![left, right.clone()], node.at)?);
                    left = right;
                }
                if parts.len() == 1 { Ok(parts.remove(0)) } else { self.call(Func::And, parts, node.at) }
            }
            Kind::And(parts) => self.call_with(Func::And, parts, node.at),
            Kind::Or(parts) => self.call_with(Func::Or, parts, node.at),
            Kind::Call { function, args, kwargs } => match function.kind {
                Kind::Name(name) => self.function(name, args, kwargs, node.at),
                _ => Err(self.error(node.at, "only a function of the grammar can be called")),
            },
            Kind::Str(_) => Err(self.error(node.at, "a string is no expression")),
            Kind::Attribute(..) | Kind::Index(..) => {
                Err(self.error(node.at, "an expression has no attributes or items"))
            }
        }
    }

    fn name(&mut self, name: &str, at: usize) -> Result<Expr> {
        match name {
            "true" | "True" => Ok(Expr::Bool(true.into())),
            "false" | "False" => Ok(Expr::Bool(false.into())),
            "oo" => Ok(Expr::Float(f64::INFINITY.into())),
            "nan" => Ok(Expr::Float(f64::NAN.into())),
            "None" | "zoo" | "int_oo" | "is" | "in" | "if" | "else" | "lambda" => {
                Err(self.error(at, format!("`{name}` is no expression")))
            }
            _ if function_exists(name) => Err(self.error(at, format!("{name} lacks its arguments"))),
            _ => Ok(symbol_expr(self.parser.declare(name, || Symbol::from_name(name))?)),
        }
    }

    fn call(&self, func: Func, args: Vec<Expr>, at: usize) -> Result<Expr> {
        call(func, args).map_err(|it| self.error(at, it.message()))
    }

    fn call_with(&mut self, func: Func, args: &[Node<'_>], at: usize) -> Result<Expr> {
        let args = args.iter().map(|it| self.expr(it)).collect::<Result<_>>()?;
        self.call(func, args, at)
    }

    fn unary(&mut self, operator: Unary, operand: &Node<'_>, at: usize) -> Result<Expr> {
        // The smallest i64 has no positive literal.
        if let (Unary::Minus, Kind::Int(it)) = (operator, &operand.kind) {
            return match 0i64.checked_sub_unsigned(*it) {
                Some(it) => Ok(Expr::Int(it.into())),
                None => Err(self.error(at, "a number leaves 64 bits")),
            };
        }
        let operand = self.expr(operand)?;
        match (operator, operand) {
            (Unary::Plus, it @ (Expr::Int(_) | Expr::Float(_))) => Ok(it),
            (Unary::Minus, Expr::Int(it)) => Ok(Expr::Int(-it)),
            (Unary::Minus, Expr::Float(it)) => match it.as_float() {
                Some(it) => Ok(Expr::Float((-it).into())),
                None => self.call(Func::Mul, vec![Expr::Int((-1).into()), Expr::Float(it)], at),
            },
            (Unary::Not | Unary::Invert, Expr::Bool(it)) => Ok(Expr::Bool(!it)),
            (_, other) => Err(self.error(at, format!("the operator does not take the {} {other}", other.sort()))),
        }
    }

    fn binary(&self, operator: Binary, a: Expr, b: Expr, at: usize) -> Result<Expr> {
        match (operator, a, b) {
            (Binary::Add, a, b) => self.call(Func::Add, vec![a, b], at),
            (Binary::Sub, Expr::Int(a), Expr::Int(b)) => Ok(Expr::Int(a - b)),
            (Binary::Sub, a, b) => {
                let negative = self.call(Func::Mul, vec![Expr::Int((-1).into()), b], at)?;
                self.call(Func::Add, vec![a, negative], at)
            }
            (Binary::Mul, a, b) => self.call(Func::Mul, vec![a, b], at),
            (Binary::TrueDiv, a @ Expr::Int(_), b @ Expr::Int(_)) => self.call(Func::IntTrueDiv, vec![a, b], at),
            (Binary::TrueDiv, a, b) => self.call(Func::FloatTrueDiv, vec![a, b], at),
            (Binary::FloorDiv, a, b) => self.call(Func::FloorDiv, vec![a, b], at),
            (Binary::Mod, Expr::Int(a), Expr::Int(b)) => Ok(Expr::Int(a.modulo(&b))),
            (Binary::Mod, a, b) => self.call(Func::Mod, vec![a, b], at),
            (Binary::And, a, b) => self.call(Func::And, vec![a, b], at),
            (Binary::Or, a, b) => self.call(Func::Or, vec![a, b], at),
            (Binary::LShift, a, b) => self.shift("LShift", vec![a, b], at),
            (Binary::RShift, a, b) => self.shift("RShift", vec![a, b], at),
        }
    }

    fn function(&mut self, name: &str, args: &[Node<'_>], kwargs: &[(&str, Node<'_>)], at: usize) -> Result<Expr> {
        match name {
            "Symbol" => return self.symbol(args, kwargs, at),
            "Float" => return self.float(args, at),
            _ => {}
        }
        if let Some((keyword, _)) = kwargs.first() {
            return Err(self.error(at, format!("{name} does not take the keyword {keyword}")));
        }
        if let Some(func) = func_of_name(name) {
            return self.call_with(func, args, at);
        }
        let args: Vec<Expr> = args.iter().map(|it| self.expr(it)).collect::<Result<_>>()?;
        match (name, args.as_slice()) {
            ("Integer", [Expr::Int(it)]) if it.as_int().is_some() => Ok(Expr::Int(it.clone())),
            ("Rational", [Expr::Int(numerator), Expr::Int(denominator)]) => {
                match (numerator.as_int(), denominator.as_int()) {
                    (Some(numerator), Some(denominator)) => self.rational(numerator, denominator, at),
                    (_, _) => Err(self.error(at, "Rational takes two numbers")),
                }
            }
            // PyTorch makes a floor division of it at once.
            ("CeilDiv", [Expr::Int(base), Expr::Int(divisor)]) => Ok(Expr::Int(division::ceil_div(base, divisor))),
            ("LShift" | "RShift", [_, _]) => self.shift(name, args, at),
            ("Integer" | "Rational" | "CeilDiv" | "LShift" | "RShift", _) => {
                Err(self.error(at, format!("{name} is given the wrong arguments")))
            }
            (_, _) => Err(self.error(at, format!("there is no function {name}"))),
        }
    }

    fn rational(&self, numerator: i64, denominator: i64, at: usize) -> Result<Expr> {
        match SymFloat::fraction(numerator, denominator) {
            Some(it) => Ok(it),
            None => Err(self.error(at, format!("{numerator}/{denominator} is no fraction of 64 bits"))),
        }
    }

    /// A shift is a product or quotient with a power of two.
    fn shift(&self, name: &str, args: Vec<Expr>, at: usize) -> Result<Expr> {
        let [base, shift]: [Expr; 2] =
            args.try_into().map_err(|_| self.error(at, format!("{name} takes two arguments")))?;
        let factor = self.call(Func::Pow, vec![Expr::Int(2.into()), shift], at)?;
        match (base, factor) {
            (Expr::Int(base), Expr::Int(factor)) => {
                Ok(Expr::Int(if name == "LShift" { base * factor } else { base.floor_div(&factor) }))
            }
            (_, _) => Err(self.error(at, format!("{name} takes integers"))),
        }
    }

    fn symbol(&mut self, args: &[Node<'_>], kwargs: &[(&str, Node<'_>)], at: usize) -> Result<Expr> {
        let [Node { kind: Kind::Str(name), .. }] = args else {
            return Err(self.error(at, "Symbol takes one name"));
        };
        let is_name = name.starts_with(|it: char| it.is_alphabetic() || it == '_')
            && name.chars().all(|it| it.is_alphanumeric() || it == '_');
        if !is_name || function_exists(name) || matches!(&**name, "true" | "false" | "True" | "False" | "oo" | "nan") {
            return Err(self.error(at, format!("{name:?} is no name of a symbol")));
        }
        let mut assumptions = Assumptions::default();
        for (keyword, value) in kwargs {
            let value = match value.kind {
                Kind::Name("True") => true,
                Kind::Name("False" | "None") => false,
                _ => return Err(self.error(value.at, format!("{keyword} is neither True nor False"))),
            };
            match *keyword {
                "integer" => assumptions.integer = value,
                "positive" => assumptions.positive = value,
                "nonnegative" => assumptions.nonnegative = value,
                "real" => assumptions.real = value,
                _ => return Err(self.error(at, format!("the assumption {keyword} is not supported"))),
            }
        }
        let symbol = self.parser.declare(name, || Symbol::new(name.as_str(), assumptions))?;
        if symbol.is_integer() != assumptions.integer {
            return Err(self.error(at, format!("{name} is an integer in one place and not in another")));
        }
        Ok(symbol_expr(symbol))
    }

    /// `Float('100.0', precision=53)`: the digits are exact for every float64, whatever the precision says.
    fn float(&self, args: &[Node<'_>], at: usize) -> Result<Expr> {
        let value = match args {
            [Node { kind: Kind::Str(digits), .. }] => digits.parse::<f64>().ok(),
            [Node { kind: Kind::Float(it), .. }] => Some(*it),
            [Node { kind: Kind::Int(it), .. }] => Some(*it as f64),
            _ => None,
        };
        match value {
            Some(it) => Ok(Expr::Float(it.into())),
            None => Err(self.error(at, "Float takes the digits of one number")),
        }
    }
}

fn symbol_expr(symbol: Symbol) -> Expr {
    if symbol.is_integer() { Expr::Int(symbol.into()) } else { Expr::Float(symbol.into()) }
}

/// The function of a name in `srepr`, or of one of sympy's short names of relations.
fn func_of_name(name: &str) -> Option<Func> {
    match name {
        "Eq" => Some(Func::Eq),
        "Ne" => Some(Func::Ne),
        "Lt" => Some(Func::Lt),
        "Le" => Some(Func::Le),
        "Gt" => Some(Func::Gt),
        "Ge" => Some(Func::Ge),
        _ => Func::from_name(name),
    }
}

fn function_exists(name: &str) -> bool {
    func_of_name(name).is_some()
        || matches!(name, "Symbol" | "Float" | "Integer" | "Rational" | "CeilDiv" | "LShift" | "RShift")
}
