//! The part of Python's expression grammar that PyTorch's files use, as a tree.
//!
//! Both expressions (`Add(Symbol('s0'), Integer(1))`, `s0 + 1`) and guards (`L['x'].size()[0] <= 1024`) are Python. This
//! module knows the grammar and the limits; what the names mean is for the modules that walk the tree.

use crate::Func;
use tracefx_core::{Code, Diagnostic, Result};

/// Limits on what is read from files; each is named in the error of what exceeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest text, in bytes.
    pub max_length: usize,
    /// The deepest nesting of parentheses, calls and operators; more than 256 is taken as 256.
    pub max_depth: usize,
    /// The most symbols that one [`Parser`](crate::Parser) may meet.
    pub max_symbols: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_length: 4096, max_depth: 64, max_symbols: 4096 }
    }
}

/// A node and the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind<'a> {
    Name(&'a str),
    Int(u64),
    Float(f64),
    Str(String),
    Attribute(Box<Node<'a>>, &'a str),
    Index(Box<Node<'a>>, Box<Node<'a>>),
    Call {
        function: Box<Node<'a>>,
        args: Vec<Node<'a>>,
        kwargs: Vec<(&'a str, Node<'a>)>,
    },
    Unary(Unary, Box<Node<'a>>),
    /// Operators of one precedence, applied from left to right.
    Chain(Box<Node<'a>>, Vec<(Binary, Node<'a>)>),
    Power(Box<Node<'a>>, Box<Node<'a>>),
    /// `a < b <= c`.
    Compare(Box<Node<'a>>, Vec<(Relation, Node<'a>)>),
    And(Vec<Node<'a>>),
    Or(Vec<Node<'a>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    Invert,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    TrueDiv,
    FloorDiv,
    Mod,
    And,
    Or,
    LShift,
    RShift,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Binary {
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::TrueDiv => "/",
            Binary::FloorDiv => "//",
            Binary::Mod => "%",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::LShift => "<<",
            Binary::RShift => ">>",
        }
    }

    /// How tightly it binds: operators of one level form a chain.
    pub(crate) const fn level(self) -> u8 {
        match self {
            Binary::Or => FIRST_LEVEL,
            Binary::And => FIRST_LEVEL + 1,
            Binary::LShift | Binary::RShift => FIRST_LEVEL + 2,
            Binary::Add | Binary::Sub => FIRST_LEVEL + 3,
            Binary::Mul | Binary::TrueDiv | Binary::FloorDiv | Binary::Mod => LAST_LEVEL,
        }
    }
}

/// The loosest and the tightest level of the binary operators.
const FIRST_LEVEL: u8 = 5;
const LAST_LEVEL: u8 = 9;

impl Relation {
    pub(crate) const fn func(self) -> Func {
        match self {
            Relation::Eq => Func::Eq,
            Relation::Ne => Func::Ne,
            Relation::Lt => Func::Lt,
            Relation::Le => Func::Le,
            Relation::Gt => Func::Gt,
            Relation::Ge => Func::Ge,
        }
    }

    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Relation::Eq => "==",
            Relation::Ne => "!=",
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Gt => ">",
            Relation::Ge => ">=",
        }
    }
}

/// Reads one expression; nothing may follow it.
pub(crate) fn parse<'a>(text: &'a str, limits: &Limits) -> Result<Node<'a>> {
    if text.len() > limits.max_length {
        let message = format!("an expression has {} bytes, more than max_length = {}", text.len(), limits.max_length);
        return Err(Diagnostic::new(Code::LimitExceeded, message));
    }
    let mut reader =
        Reader { text, at: 0, token: Token::End, token_at: 0, depth: 0, max_depth: limits.max_depth.min(256) };
    reader.advance()?;
    let node = reader.disjunction()?;
    match reader.token {
        Token::End => Ok(node),
        _ => Err(reader.unexpected("the end")),
    }
}

/// An error that shows where in the text it is.
pub(crate) fn malformed(text: &str, at: usize, problem: impl std::fmt::Display) -> Diagnostic {
    let mut end = text.len().min(200);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = &text[..end];
    let ellipsis = if end < text.len() { "…" } else { "" };
    Diagnostic::new(Code::ExpressionMalformed, format!("{problem} at byte {at}"))
        .note(format!("the expression is {shown:?}{ellipsis}"))
}

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Int(u64),
    Float(f64),
    Str(String),
    Operator(&'static str),
    End,
}

/// Longer operators come before their beginnings.
const OPERATORS: [&str; 25] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ".", "<", ">",
    "=", "&", "|", "~",
];

struct Reader<'a> {
    text: &'a str,
    at: usize,
    token: Token<'a>,
    token_at: usize,
    depth: usize,
    max_depth: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, at: usize, problem: impl std::fmt::Display) -> Diagnostic {
        malformed(self.text, at, problem)
    }

    fn unexpected(&self, wanted: &str) -> Diagnostic {
        let found = match &self.token {
            Token::Name(it) => format!("`{it}`"),
            Token::Int(_) | Token::Float(_) => "a number".into(),
            Token::Str(_) => "a string".into(),
            Token::Operator(it) => format!("`{it}`"),
            Token::End => "the end".into(),
        };
        self.error(self.token_at, format!("expected {wanted}, found {found}"))
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<Token<'a>> {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']);
        self.token_at = self.text.len() - rest.len();
        let (token, length) = match rest.chars().next() {
            None => (Token::End, 0),
            Some(it) if it.is_ascii_digit() => self.number(rest)?,
            Some(it) if it.is_alphabetic() || it == '_' => {
                let length = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
                (Token::Name(&rest[..length]), length)
            }
            Some(quote @ ('\'' | '"')) => self.string(rest, quote)?,
            Some('.') if rest[1..].starts_with(|it: char| it.is_ascii_digit()) => self.number(rest)?,
            Some(other) => match OPERATORS.into_iter().find(|it| rest.starts_with(it)) {
                Some(it) => (Token::Operator(it), it.len()),
                None => return Err(self.error(self.token_at, format!("the character {other:?} means nothing here"))),
            },
        };
        self.at = self.token_at + length;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn number(&self, rest: &str) -> Result<(Token<'a>, usize)> {
        let digits = |from: usize| {
            let tail = rest.get(from..).unwrap_or("");
            from + tail.find(|it: char| !it.is_ascii_digit()).unwrap_or(tail.len())
        };
        let mut end = digits(0);
        let mut is_float = false;
        if rest[end..].starts_with('.') {
            is_float = true;
            end = digits(end + 1);
        }
        if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let after = digits(end + 1 + sign);
            if after > end + 1 + sign {
                is_float = true;
                end = after;
            }
        }
        let literal = &rest[..end];
        let token =
            if is_float { literal.parse().ok().map(Token::Float) } else { literal.parse().ok().map(Token::Int) };
        match token {
            Some(it) => Ok((it, end)),
            None => Err(self.error(self.token_at, "a number leaves 64 bits")),
        }
    }

    /// A string with Python's escapes of quotes and backslashes; others have no use in names.
    fn string(&self, rest: &str, quote: char) -> Result<(Token<'a>, usize)> {
        let mut value = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, it)) = chars.next() {
            if it == quote {
                return Ok((Token::Str(value), at + 1));
            }
            if it != '\\' {
                value.push(it);
                continue;
            }
            match chars.next() {
                Some((_, escaped @ ('\\' | '\'' | '"'))) => value.push(escaped),
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, other)) => {
                    return Err(self.error(self.token_at + at, format!("the escape \\{other} is not supported")));
                }
                None => break,
            }
        }
        Err(self.error(self.token_at, "a string has no end"))
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.token, Token::Operator(it) if it == operator)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.token, Token::Name(it) if it == name)
    }

    fn take_operator(&mut self, operator: &str) -> Result<bool> {
        let found = self.is_operator(operator);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, operator: &str) -> Result<()> {
        if self.take_operator(operator)? { Ok(()) } else { Err(self.unexpected(&format!("`{operator}`"))) }
    }

    /// Runs a rule one level deeper.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > self.max_depth {
            let message = format!("an expression nests deeper than max_depth = {}", self.max_depth);
            return Err(Diagnostic::new(Code::LimitExceeded, message));
        }
        let result = rule(self);
        self.depth -= 1;
        result
    }

    fn disjunction(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let mut parts = vec![self.conjunction()?];
        while self.is_name("or") {
            self.advance()?;
            parts.push(self.conjunction()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node { kind: Kind::Or(parts), at } })
    }

    fn conjunction(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let mut parts = vec![self.negation()?];
        while self.is_name("and") {
            self.advance()?;
            parts.push(self.negation()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node { kind: Kind::And(parts), at } })
    }

    fn negation(&mut self) -> Result<Node<'a>> {
        if !self.is_name("not") {
            return self.comparison();
        }
        let at = self.token_at;
        self.advance()?;
        let operand = self.nested(Self::negation)?;
        Ok(Node { kind: Kind::Unary(Unary::Not, Box::new(operand)), at })
    }

    fn comparison(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let first = self.chain(FIRST_LEVEL)?;
        let mut rest = Vec::new();
        while let Some(relation) = self.relation() {
            self.advance()?;
            rest.push((relation, self.chain(FIRST_LEVEL)?));
        }
        Ok(if rest.is_empty() { first } else { Node { kind: Kind::Compare(Box::new(first), rest), at } })
    }

    fn relation(&self) -> Option<Relation> {
        let Token::Operator(operator) = self.token else { return None };
        const ALL: [Relation; 6] = [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];
        ALL.into_iter().find(|it| it.symbol() == operator)
    }

    fn binary(&self, level: u8) -> Option<Binary> {
        let Token::Operator(operator) = self.token else { return None };
        const ALL: [Binary; 10] = [
            Binary::Add,
            Binary::Sub,
            Binary::Mul,
            Binary::TrueDiv,
            Binary::FloorDiv,
            Binary::Mod,
            Binary::And,
            Binary::Or,
            Binary::LShift,
            Binary::RShift,
        ];
        ALL.into_iter().find(|it| it.level() == level && it.symbol() == operator)
    }

    fn chain(&mut self, level: u8) -> Result<Node<'a>> {
        if level > LAST_LEVEL {
            return self.unary();
        }
        let at = self.token_at;
        let first = self.chain(level + 1)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.binary(level) {
            self.advance()?;
            rest.push((operator, self.chain(level + 1)?));
        }
        Ok(if rest.is_empty() { first } else { Node { kind: Kind::Chain(Box::new(first), rest), at } })
    }

    fn unary(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let operator = match self.token {
            Token::Operator("-") => Unary::Minus,
            Token::Operator("+") => Unary::Plus,
            Token::Operator("~") => Unary::Invert,
            _ => return self.power(),
        };
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        Ok(Node { kind: Kind::Unary(operator, Box::new(operand)), at })
    }

    fn power(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let base = self.postfix()?;
        if !self.take_operator("**")? {
            return Ok(base);
        }
        let exponent = self.nested(Self::unary)?;
        Ok(Node { kind: Kind::Power(Box::new(base), Box::new(exponent)), at })
    }

    fn postfix(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let mut node = self.atom()?;
        // Each step wraps the node once more, so it is a level of its own.
        let depth = self.depth;
        loop {
            let kind = match self.token {
                Token::Operator(".") => {
                    self.advance()?;
                    match self.advance()? {
                        Token::Name(name) => Kind::Attribute(Box::new(node), name),
                        _ => return Err(self.unexpected("a name after the point")),
                    }
                }
                Token::Operator("[") => {
                    self.advance()?;
                    let index = self.nested(Self::disjunction)?;
                    self.expect("]")?;
                    Kind::Index(Box::new(node), Box::new(index))
                }
                Token::Operator("(") => {
                    self.advance()?;
                    let (args, kwargs) = self.nested(Self::arguments)?;
                    Kind::Call { function: Box::new(node), args, kwargs }
                }
                _ => break,
            };
            node = Node { kind, at };
            self.nested(|_| Ok(()))?;
            self.depth += 1;
        }
        self.depth = depth;
        Ok(node)
    }

    #[expect(clippy::type_complexity, reason = "the two halves of a call, used once")]
    fn arguments(&mut self) -> Result<(Vec<Node<'a>>, Vec<(&'a str, Node<'a>)>)> {
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        while !self.take_operator(")")? {
            if !args.is_empty() || !kwargs.is_empty() {
                self.expect(",")?;
                if self.take_operator(")")? {
                    break;
                }
            }
            let arg = self.disjunction()?;
            if self.take_operator("=")? {
                let Kind::Name(name) = arg.kind else {
                    return Err(self.error(arg.at, "only a name can be given a value"));
                };
                kwargs.push((name, self.disjunction()?));
            } else if kwargs.is_empty() {
                args.push(arg);
            } else {
                return Err(self.error(arg.at, "a positional argument follows a keyword"));
            }
        }
        Ok((args, kwargs))
    }

    fn atom(&mut self) -> Result<Node<'a>> {
        let at = self.token_at;
        let kind = match &self.token {
            Token::Operator("(") => {
                self.advance()?;
                let inner = self.nested(Self::disjunction)?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Name("and" | "or" | "not") | Token::Operator(_) | Token::End => {
                return Err(self.unexpected("an expression"));
            }
            Token::Name(_) | Token::Int(_) | Token::Float(_) | Token::Str(_) => match self.advance()? {
                Token::Name(it) => Kind::Name(it),
                Token::Int(it) => Kind::Int(it),
                Token::Float(it) => Kind::Float(it),
                Token::Str(it) => Kind::Str(it),
                Token::Operator(_) | Token::End => unreachable!("the token was looked at before"),
            },
        };
        Ok(Node { kind, at })
    }
}
