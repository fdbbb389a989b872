//! Python's parameter lists, and which arguments of a call go where.

use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Arg, Str};
use tracefx_ops::{ArgSpec, ArgType, Default, Schema};

/// How a parameter takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Positional,
    PositionalOrKeyword,
    Keyword,
    /// `*args`.
    Rest,
    /// `**kwargs`.
    Options,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Str,
    pub(crate) kind: Kind,
    pub(crate) default: Option<Arg>,
    /// What an operator takes here; nothing is known of functions that are written in Python.
    pub(crate) ty: Option<ArgType>,
}

/// The parameters of a function and the annotation of its result.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) result: Option<Str>,
}

/// The signature of a function of PyTorch that is written in Python, or, as `Linear.forward`, of a module's `forward`.
pub(crate) fn signature_of(name: &str) -> Option<&'static Signature> {
    static SIGNATURES: OnceLock<FxHashMap<&'static str, Signature>> = OnceLock::new();
    let read = || include_str!("signatures.txt").lines().map(read_line).collect();
    SIGNATURES.get_or_init(read).get(name)
}

/// A line such as `torch.nn.functional.relu (input, inplace=False) -> torch.Tensor`.
fn read_line(line: &'static str) -> (&'static str, Signature) {
    let read = || {
        let (name, rest) = line.split_once(" (")?;
        let (list, result) =
            rest.split_once(") -> ").map_or((rest.strip_suffix(')'), None), |(a, b)| (Some(a), Some(b)));
        Some((name, Signature { parameters: parameters(list?)?, result: result.map(Into::into) }))
    };
    read().unwrap_or_else(|| panic!("the line `{line}` is not a signature"))
}

fn parameters(list: &str) -> Option<Vec<Parameter>> {
    let mut res = Vec::new();
    let mut kind = Kind::PositionalOrKeyword;
    for part in split(list) {
        let (name, default) = part.split_once('=').map_or((part, None), |(name, it)| (name, Some(it)));
        let default = default.map(|it| constant(it).ok_or(())).transpose().ok()?;
        let parameter = |name: &str, kind| Parameter { name: name.into(), kind, default, ty: None };
        if name == "*" {
            kind = Kind::Keyword;
        } else if let Some(name) = name.strip_prefix("**") {
            res.push(parameter(name, Kind::Options));
        } else if let Some(name) = name.strip_prefix('*') {
            res.push(parameter(name, Kind::Rest));
            kind = Kind::Keyword;
        } else {
            res.push(parameter(name, kind));
        }
    }
    Some(res)
}

/// The parts between the commas that are in no brackets.
pub(crate) fn split(list: &str) -> Vec<&str> {
    let (mut res, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, it) in list.char_indices() {
        match it {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                res.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    res.push(list[start..].trim());
    res.retain(|it| !it.is_empty());
    res
}

/// A constant as Python writes it.
fn constant(text: &str) -> Option<Arg> {
    let items = |inner: &str| split(inner).into_iter().map(constant).collect::<Option<Vec<_>>>();
    let between = |open, close| text.strip_prefix(open).and_then(|it: &str| it.strip_suffix(close));
    match text {
        "None" => return Some(Arg::None),
        "True" => return Some(Arg::Bool(true)),
        "False" => return Some(Arg::Bool(false)),
        _ => {}
    }
    if let Some(inner) = between('(', ')') {
        return items(inner).map(Arg::Tuple);
    }
    if let Some(inner) = between('[', ']') {
        return items(inner).map(Arg::List);
    }
    if let Some(inner) = between('\'', '\'') {
        return Some(Arg::str(inner));
    }
    if let Some(name) = text.strip_prefix("torch.") {
        return DType::from_name(name).map(Arg::DType);
    }
    let int = text.parse::<i64>().map(Arg::Int);
    int.ok().or_else(|| text.parse::<f64>().map(Arg::Float).ok())
}

/// The parameters of an operator; `self` has the name that is given.
pub(crate) fn signature_of_schema(schema: &Schema, this: &str) -> Signature {
    let is_from = schema.args.iter().position(|it| it.name == "from");
    let parameter = |(at, it): (usize, &ArgSpec)| Parameter {
        name: if it.name == "self" { this.into() } else { it.name.as_str().into() },
        kind: match is_from {
            // A word of Python cannot be a keyword argument, so what comes up to it is positional only.
            Some(from) if at <= from => Kind::Positional,
            _ if it.is_kwarg_only => Kind::Keyword,
            _ => Kind::PositionalOrKeyword,
        },
        default: it.default.as_ref().map(|default| default_of(default, &it.ty)),
        ty: Some(it.ty.clone()),
    };
    let parameters = schema.args.iter().enumerate().map(parameter).collect();
    Signature { parameters, result: None }
}

/// A default as `torch.fx` fills it in: memory formats and dtypes stay the numbers that PyTorch's schemas have for them.
fn default_of(default: &Default, ty: &ArgType) -> Arg {
    match (default, ty) {
        (Default::None, _) => Arg::None,
        (Default::Bool(it), _) => Arg::Bool(*it),
        (Default::Int(it), ArgType::Float) => Arg::Float(*it as f64),
        (Default::Int(it), ArgType::List(_, Some(size))) => Arg::List(vec![Arg::Int(*it); *size]),
        (Default::Int(it), _) => Arg::Int(*it),
        (Default::Float(it), _) => Arg::Float(*it),
        (Default::Str(it), _) => Arg::str(it),
        (Default::Ints(it), _) => Arg::List(it.iter().map(|&it| Arg::Int(it)).collect()),
        (Default::Name(name), _) => match name.as_str() {
            "contiguous_format" => Arg::Int(0),
            "long" => Arg::Int(4),
            name => Arg::str(name),
        },
    }
}

impl Signature {
    /// Whether arguments can be put in their places by name: no parameter is positional only, `*args` or `**kwargs`. The
    /// one list with such parameters that PyTorch takes all the same is that of random numbers.
    pub(crate) fn is_named(&self) -> bool {
        let is_named = |it: &Parameter| matches!(it.kind, Kind::PositionalOrKeyword | Kind::Keyword);
        let is_random = || {
            let mut names = self.parameters.iter().map(|it| &*it.name);
            matches!(names.next(), Some("input" | "self")) && names.eq(["from", "to", "generator"])
        };
        self.parameters.iter().all(is_named) || is_random()
    }

    /// For each parameter which item it takes, of `n_args` by position and of those with these names; nothing for its
    /// default.
    ///
    /// # Errors
    /// `SchemaMismatch` in Python's words where the arguments do not fit.
    pub(crate) fn places<'k>(
        &self,
        name: &str,
        n_args: usize,
        keys: impl Iterator<Item = &'k str>,
    ) -> Result<Vec<Option<Place>>> {
        let refuse = |what: String| Err(Diagnostic::new(Code::SchemaMismatch, format!("{name}(){what}")));
        let has = |kind| self.parameters.iter().any(|it| it.kind == kind);
        let is_positional = |it: &&Parameter| matches!(it.kind, Kind::Positional | Kind::PositionalOrKeyword);
        let n_positional = self.parameters.iter().take_while(is_positional).count();
        if n_args > n_positional && !has(Kind::Rest) {
            let plural = if n_positional == 1 { "" } else { "s" };
            return refuse(format!(" takes {n_positional} positional argument{plural} but {n_args} were given"));
        }
        let mut res: Vec<Option<Place>> =
            (0..self.parameters.len()).map(|at| (at < n_args.min(n_positional)).then_some(Place::Arg(at))).collect();
        for (position, key) in keys.enumerate() {
            let takes =
                |it: &Parameter| &*it.name == key && matches!(it.kind, Kind::PositionalOrKeyword | Kind::Keyword);
            match self.parameters.iter().position(takes) {
                Some(at) if res[at].is_some() => return refuse(format!(" got multiple values for argument '{key}'")),
                Some(at) => res[at] = Some(Place::Kwarg(position)),
                None if has(Kind::Options) => {}
                None => return refuse(format!(" got an unexpected keyword argument '{key}'")),
            }
        }
        let is_missing = |(it, place): &(&Parameter, &Option<Place>)| {
            place.is_none() && it.default.is_none() && !matches!(it.kind, Kind::Rest | Kind::Options)
        };
        if let Some((missing, _)) = self.parameters.iter().zip(&res).find(is_missing) {
            return refuse(format!(" missing a required argument: '{}'", missing.name));
        }
        Ok(res)
    }
}

/// Where an argument stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Arg(usize),
    Kwarg(usize),
}
