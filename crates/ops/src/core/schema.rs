//! Schemas: PyTorch's text of them, parsed into names, types, defaults and what is written to.

use std::fmt;
use tracefx_core::{Code, Diagnostic, Result};

/// The signature of an operator, parsed from PyTorch's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The text it was parsed from.
    text: String,
    /// The namespace, such as `aten`.
    pub namespace: String,
    /// The name, such as `add`.
    pub name: String,
    /// The overload, such as `Tensor`; `default` where the text has none.
    pub overload: String,
    /// The arguments, in order.
    pub args: Vec<ArgSpec>,
    /// The results, in order.
    pub returns: Vec<ReturnSpec>,
}

/// One argument of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ArgType,
    /// What it is when it is not given.
    pub default: Option<Default>,
    /// Whether it can only be given by name.
    pub is_kwarg_only: bool,
    /// Whether the operator writes to it.
    pub is_mutated: bool,
}

/// One result of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnSpec {
    /// Its name; empty where the schema gives none.
    pub name: String,
    /// Its type.
    pub ty: ArgType,
    /// Whether it is an argument, or looks at the storage of one.
    pub is_alias: bool,
}

/// The type of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgType {
    /// `Tensor`.
    Tensor,
    /// `int` or `SymInt`.
    Int,
    /// `float`.
    Float,
    /// `bool` or `SymBool`.
    Bool,
    /// `Scalar`.
    Scalar,
    /// `complex`.
    Complex,
    /// `str`.
    Str,
    /// `ScalarType`.
    DType,
    /// `Layout`.
    Layout,
    /// `Device`.
    Device,
    /// `MemoryFormat`.
    MemoryFormat,
    /// `Generator`.
    Generator,
    /// Anything: the symbolic scalar functions of Python.
    Any,
    /// `T?`.
    Optional(Box<ArgType>),
    /// `T[]`, or `T[n]`, which takes one value for `n` equal ones.
    List(Box<ArgType>, Option<usize>),
}

/// The default of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// A list of ints.
    Ints(Vec<i64>),
    /// A memory format, dtype or layout by name.
    Name(String),
}

impl Schema {
    /// Parses PyTorch's text, such as `aten::relu(Tensor self) -> Tensor`.
    ///
    /// # Errors
    /// `SchemaMismatch`, with the position, where the text is not a schema.
    pub fn parse(text: &str) -> Result<Schema> {
        Parser { text, at: 0 }.schema()
    }

    /// How many arguments may go by position.
    pub fn n_positional(&self) -> usize {
        self.args.iter().take_while(|it| !it.is_kwarg_only).count()
    }

    /// The name that graphs call it by, without `torch.ops.`: `aten.add.Tensor`; of a Python function, which has no
    /// overloads, `operator.add`.
    pub fn qualified_name(&self) -> String {
        if self.is_python() {
            return format!("{}.{}", self.namespace, self.name);
        }
        format!("{}.{}.{}", self.namespace, self.name, self.overload)
    }

    /// Whether this is a function of Python on numbers, such as `operator.add`, and no operator of a dispatcher.
    pub fn is_python(&self) -> bool {
        matches!(self.namespace.as_str(), "operator" | "math" | "torch")
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What the alias sets of a type say.
#[derive(Default)]
struct Alias {
    is_there: bool,
    is_written: bool,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn schema(mut self) -> Result<Schema> {
        let namespace = self.word()?.to_string();
        self.expect("::")?;
        let name = self.word()?.to_string();
        let overload = if self.eat(".") { self.word()?.to_string() } else { "default".to_string() };
        self.expect("(")?;
        let mut args = Vec::new();
        let mut is_kwarg_only = false;
        while !self.eat(")") {
            if !args.is_empty() || is_kwarg_only {
                self.expect(",")?;
            }
            if self.eat("*") {
                is_kwarg_only = true;
                continue;
            }
            args.push(self.arg(is_kwarg_only)?);
        }
        self.expect("->")?;
        let mut returns = Vec::new();
        if self.eat("(") {
            while !self.eat(")") {
                if !returns.is_empty() {
                    self.expect(",")?;
                }
                returns.push(self.result()?);
            }
        } else {
            returns.push(self.result()?);
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.error("the end"));
        }
        Ok(Schema { text: self.text.to_string(), namespace, name, overload, args, returns })
    }

    fn arg(&mut self, is_kwarg_only: bool) -> Result<ArgSpec> {
        let (ty, Alias { is_written: is_mutated, .. }) = self.ty()?;
        let name = self.word()?.to_string();
        let default = if self.eat("=") { Some(self.default()?) } else { None };
        Ok(ArgSpec { name, ty, default, is_kwarg_only, is_mutated })
    }

    fn result(&mut self) -> Result<ReturnSpec> {
        let (ty, alias) = self.ty()?;
        self.skip_space();
        let is_named = self.text[self.at..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let name = if is_named { self.word()?.to_string() } else { String::new() };
        Ok(ReturnSpec { name, ty, is_alias: alias.is_there })
    }

    fn ty(&mut self) -> Result<(ArgType, Alias)> {
        let mut ty = match self.word()? {
            "Tensor" => ArgType::Tensor,
            "int" | "SymInt" => ArgType::Int,
            "float" => ArgType::Float,
            "bool" | "SymBool" => ArgType::Bool,
            "Scalar" => ArgType::Scalar,
            "complex" => ArgType::Complex,
            "str" => ArgType::Str,
            "ScalarType" => ArgType::DType,
            "Layout" => ArgType::Layout,
            "Device" => ArgType::Device,
            "MemoryFormat" => ArgType::MemoryFormat,
            "Generator" => ArgType::Generator,
            "Any" | "t" => ArgType::Any,
            _ => return Err(self.error("a type")),
        };
        let mut alias = Alias::default();
        loop {
            if self.eat("?") {
                ty = ArgType::Optional(Box::new(ty));
            } else if self.eat("[") {
                let size = if self.eat("]") {
                    None
                } else {
                    let size = self.word()?.parse().map_err(|_| self.error("a size"))?;
                    self.expect("]")?;
                    Some(size)
                };
                ty = ArgType::List(Box::new(ty), size);
            } else if self.eat("(") {
                // An alias set, such as `(a!)` or `(a -> *)`: `!` marks an argument that is written to.
                let end = self.text[self.at..].find(')').ok_or_else(|| self.error("`)`"))?;
                alias.is_there = true;
                alias.is_written |= self.text[self.at..self.at + end].contains('!');
                self.at += end + 1;
            } else {
                return Ok((ty, alias));
            }
        }
    }

    fn default(&mut self) -> Result<Default> {
        self.skip_space();
        let rest = &self.text[self.at..];
        if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            let end = rest[1..].find(quote).ok_or_else(|| self.error("a closing quote"))?;
            self.at += end + 2;
            return Ok(Default::Str(rest[1..=end].to_string()));
        }
        if self.eat("[") {
            let mut items = Vec::new();
            while !self.eat("]") {
                if !items.is_empty() {
                    self.expect(",")?;
                }
                self.skip_space();
                items.push(self.token().parse().map_err(|_| self.error("an int"))?);
            }
            return Ok(Default::Ints(items));
        }
        let token = self.token();
        Ok(match token {
            "None" => Default::None,
            "True" => Default::Bool(true),
            "False" => Default::Bool(false),
            // The reductions of losses, as PyTorch's schemas name them.
            "Mean" => Default::Int(1),
            "Sum" => Default::Int(2),
            _ => match (token.parse::<i64>(), token.parse::<f64>()) {
                (Ok(int), _) => Default::Int(int),
                (Err(_), Ok(float)) if !token.starts_with(|c: char| c.is_alphabetic()) => Default::Float(float),
                (Err(_), _) => Default::Name(token.to_string()),
            },
        })
    }

    fn token(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ')', ']']).unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim()
    }

    fn word(&mut self) -> Result<&'a str> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("a name"));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_there = self.text[self.at..].starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.error(&format!("`{token}`"))) }
    }

    fn skip_space(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn error(&self, expected: &str) -> Diagnostic {
        let what = format!("expected {expected} at character {} of the schema `{}`", self.at, self.text);
        Diagnostic::new(Code::SchemaMismatch, what)
    }
}
