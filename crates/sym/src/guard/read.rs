//! From the syntax tree to a guard.

use super::{Condition, InputProperty, InputSource, InputValue, PathStep};
use crate::Func;
use crate::syntax::{Kind, Node, Unary, malformed};
use tracefx_core::Result;

/// A function that guards call.
#[derive(Debug, PartialEq)]
pub(super) struct Builtin {
    pub(super) name: &'static str,
    pub(super) func: Func,
    min_args: usize,
    max_args: usize,
}

macro_rules! builtins {
    ($($name:literal $func:ident $min:literal..=$max:literal;)+) => {
        static BUILTINS: &[Builtin] = &[$(Builtin { name: $name, func: Func::$func, min_args: $min, max_args: $max }),+];
    };
}

builtins! {
    "max" Max 2..=64;
    "min" Min 2..=64;
    "torch.sym_max" Max 2..=64;
    "torch.sym_min" Min 2..=64;
    "float" ToFloat 1..=1;
    "torch.sym_float" ToFloat 1..=1;
    "int" TruncToInt 1..=1;
    "torch.sym_int" TruncToInt 1..=1;
    "round" RoundToInt 1..=1;
    "round" RoundDecimal 2..=2;
    "math.trunc" TruncToInt 1..=1;
    "math.floor" FloorToInt 1..=1;
    "math.ceil" CeilToInt 1..=1;
    "math.sqrt" Sqrt 1..=1;
    "math.cos" Cos 1..=1;
    "math.cosh" Cosh 1..=1;
    "math.sin" Sin 1..=1;
    "math.sinh" Sinh 1..=1;
    "math.tan" Tan 1..=1;
    "math.tanh" Tanh 1..=1;
    "math.asin" Asin 1..=1;
    "math.acos" Acos 1..=1;
    "math.atan" Atan 1..=1;
    "math.log2" Log2 1..=1;
}

pub(super) fn condition(text: &str, node: &Node<'_>) -> Result<Condition> {
    let all = |nodes: &[Node<'_>]| nodes.iter().map(|it| condition(text, it)).collect::<Result<Vec<_>>>();
    let boxed = |node: &Node<'_>| condition(text, node).map(Box::new);
    Ok(match &node.kind {
        Kind::Int(it) => match i64::try_from(*it) {
            Ok(it) => Condition::Value(InputValue::Int(it)),
            Err(_) => return Err(malformed(text, node.at, "a number leaves 64 bits")),
        },
        Kind::Float(it) => Condition::Value(InputValue::Float(*it)),
        Kind::Str(it) => Condition::Value(InputValue::Str(it.clone())),
        Kind::Name("True") => Condition::Value(InputValue::Bool(true)),
        Kind::Name("False") => Condition::Value(InputValue::Bool(false)),
        Kind::Name("None") => Condition::Value(InputValue::None),
        Kind::Name(name) => return Err(malformed(text, node.at, format!("a guard does not know `{name}`"))),
        Kind::Attribute(..) | Kind::Index(..) => Condition::Input(source(text, node)?),
        Kind::Call { function, args, kwargs } => match (input_method(function), builtin_name(function)) {
            (Some(_), _) if args.is_empty() && kwargs.is_empty() => Condition::Input(source(text, node)?),
            (_, Some(name)) if kwargs.is_empty() => {
                let takes = |it: &&Builtin| it.name == name && (it.min_args..=it.max_args).contains(&args.len());
                match BUILTINS.iter().find(takes) {
                    Some(it) => Condition::Call(it, all(args)?),
                    None => {
                        let problem = format!("a guard does not know {name} of {} arguments", args.len());
                        return Err(malformed(text, node.at, problem));
                    }
                }
            }
            (_, _) => return Err(malformed(text, node.at, "a guard cannot call this")),
        },
        // The smallest i64 has no positive literal.
        Kind::Unary(Unary::Minus, inner) if inner.kind == Kind::Int(1 << 63) => {
            Condition::Value(InputValue::Int(i64::MIN))
        }
        Kind::Unary(operator, operand) => Condition::Unary(*operator, boxed(operand)?),
        Kind::Chain(first, rest) => {
            let rest =
                rest.iter().map(|(operator, it)| Ok((*operator, condition(text, it)?))).collect::<Result<_>>()?;
            Condition::Chain(boxed(first)?, rest)
        }
        Kind::Power(base, exponent) => Condition::Power(boxed(base)?, boxed(exponent)?),
        Kind::Compare(first, rest) => {
            let rest =
                rest.iter().map(|(relation, it)| Ok((*relation, condition(text, it)?))).collect::<Result<_>>()?;
            Condition::Compare(boxed(first)?, rest)
        }
        Kind::And(parts) => Condition::And(all(parts)?),
        Kind::Or(parts) => Condition::Or(all(parts)?),
    })
}

/// The dotted name of a function, such as `math.floor`.
fn builtin_name(function: &Node<'_>) -> Option<String> {
    match &function.kind {
        Kind::Name(name) => Some((*name).into()),
        Kind::Attribute(module, name) => match module.kind {
            Kind::Name(module) => Some(format!("{module}.{name}")),
            _ => None,
        },
        _ => None,
    }
}

/// The method, if this is one of an input.
fn input_method<'a>(function: &Node<'a>) -> Option<&'a str> {
    match &function.kind {
        Kind::Attribute(of, name @ ("size" | "stride" | "storage_offset")) if !matches!(of.kind, Kind::Name(_)) => {
            Some(name)
        }
        _ => None,
    }
}

/// `L['a'][0]['k'].size()[1]`
fn source(text: &str, node: &Node<'_>) -> Result<InputSource> {
    let unknown =
        |at: usize| malformed(text, at, "a guard cannot look at this: expected an input such as L['x'].size()[0]");
    let (root, property) = match &node.kind {
        Kind::Call { function, .. } => match &function.kind {
            Kind::Attribute(root, "storage_offset") => (root, InputProperty::StorageOffset),
            _ => return Err(unknown(node.at)),
        },
        Kind::Index(of, index) => match &of.kind {
            Kind::Call { function, args, kwargs } if args.is_empty() && kwargs.is_empty() => match &function.kind {
                Kind::Attribute(root, "size") => (root, InputProperty::Size(integer(text, index)?)),
                Kind::Attribute(root, "stride") => (root, InputProperty::Stride(integer(text, index)?)),
                _ => return Err(unknown(node.at)),
            },
            _ => return path(text, node, InputProperty::Value),
        },
        _ => return path(text, node, InputProperty::Value),
    };
    path(text, root, property)
}

fn integer(text: &str, node: &Node<'_>) -> Result<i64> {
    let (negative, literal) = match &node.kind {
        Kind::Unary(Unary::Minus, inner) => (true, inner),
        _ => (false, &Box::new(node.clone())),
    };
    match &literal.kind {
        Kind::Int(it) => i64::try_from(*it).ok().map(|it| if negative { -it } else { it }),
        _ => None,
    }
    .ok_or_else(|| malformed(text, node.at, "expected a number"))
}

fn path(text: &str, node: &Node<'_>, property: InputProperty) -> Result<InputSource> {
    match &node.kind {
        Kind::Index(of, index) => {
            if of.kind == Kind::Name("L") {
                return match &index.kind {
                    Kind::Str(name) if !name.is_empty() => {
                        Ok(InputSource { name: name.clone(), path: Vec::new(), property })
                    }
                    _ => Err(malformed(text, index.at, "expected the name of an input")),
                };
            }
            let mut source = path(text, of, property)?;
            source.path.push(match &index.kind {
                Kind::Str(key) => PathStep::Key(key.clone()),
                _ => PathStep::Index(integer(text, index)?),
            });
            Ok(source)
        }
        Kind::Attribute(of, name) => {
            let mut source = path(text, of, property)?;
            source.path.push(PathStep::Field((*name).into()));
            Ok(source)
        }
        _ => Err(malformed(text, node.at, "a guard cannot look at this: expected an input such as L['x'].size()[0]")),
    }
}
