//! Sorts the arguments of a call by one schema, as PyTorch's argument parser does. Which overload is meant is decided by
//! `resolve`.

use crate::core::schema::Default;
use crate::{ArgSpec, ArgType, Op, Value};
use tracefx_core::{Code, DType, Diagnostic, Layout, MemoryFormat, Result};
use tracefx_ir::Str;
use tracefx_sym::{Expr, SymFloat};

/// Sorts the arguments of a call by the schema: fills in defaults, finds keyword arguments, widens ints to floats and
/// single values to lists of fixed length, and refuses what does not fit.
///
/// A number may stand where the schema asks for a tensor, as in Python.
///
/// # Errors
/// `SchemaMismatch`, naming the argument and what was expected.
pub fn bind<T: Clone>(op: &Op, args: &[Value<T>], kwargs: &[(Str, Value<T>)]) -> Result<Vec<Value<T>>> {
    let specs = &op.schema.args;
    let n_positional = op.schema.n_positional();
    if args.len() > n_positional {
        let what = format!("takes {n_positional} positional arguments but {} were given", args.len());
        return Err(mismatch(op, what));
    }
    for (key, _) in kwargs {
        let position = specs.iter().position(|it| *it.name == **key);
        match position {
            None => return Err(mismatch(op, format!("there is no argument `{key}`"))),
            Some(position) if position < args.len() => {
                return Err(mismatch(op, format!("argument `{key}` is given twice")));
            }
            Some(_) => {}
        }
    }
    let bind_one = |(position, spec): (usize, &ArgSpec)| {
        let given = args.get(position).or_else(|| kwargs.iter().find(|it| *it.0 == *spec.name).map(|it| &it.1));
        match (given, &spec.default) {
            (Some(given), _) => coerce(given, &spec.ty).ok_or_else(|| {
                let what =
                    format!("argument `{}` should be {} but is {}", spec.name, spec.ty.describe(), given.kind_name());
                mismatch(op, what)
            }),
            (None, Some(default)) => Ok(default_value(default, &spec.ty)),
            (None, None) if matches!(spec.ty, ArgType::Optional(_)) => Ok(Value::None),
            (None, None) => Err(mismatch(op, format!("argument `{}` is missing", spec.name))),
        }
    };
    specs.iter().enumerate().map(bind_one).collect()
}

fn mismatch(op: &Op, what: String) -> Diagnostic {
    Diagnostic::new(Code::SchemaMismatch, what).op(&*op.name).help(format!("the schema is {}", op.schema))
}

/// The value as this type, or `None` where it is of another one.
pub(crate) fn coerce<T: Clone>(value: &Value<T>, ty: &ArgType) -> Option<Value<T>> {
    let is_number = value.as_expr().is_some() || matches!(value, Value::Complex(_));
    let fits = match ty {
        ArgType::Optional(inner) => {
            return if matches!(value, Value::None) { Some(Value::None) } else { coerce(value, inner) };
        }
        ArgType::List(inner, size) => {
            return match (value, size) {
                (Value::List(items), _) => {
                    items.iter().map(|it| coerce(it, inner)).collect::<Option<_>>().map(Value::List)
                }
                (single, Some(size)) => coerce(single, inner).map(|it| Value::List(vec![it; *size])),
                (_, None) => None,
            };
        }
        ArgType::Float => {
            return match value {
                Value::Float(_) | Value::SymFloat(_) => Some(value.clone()),
                Value::Int(it) => Some(Expr::from(SymFloat::from(it.clone())).into()),
                _ => None,
            };
        }
        ArgType::Int => {
            return match value {
                Value::Int(_) => Some(value.clone()),
                // Python's bool is an int.
                Value::Bool(it) => Some(Value::int(*it as i64)),
                _ => None,
            };
        }
        ArgType::Tensor => is_number || matches!(value, Value::Tensor(_)),
        ArgType::Scalar | ArgType::Complex => is_number,
        ArgType::Bool => matches!(value, Value::Bool(_) | Value::SymBool(_)),
        ArgType::Str => matches!(value, Value::Str(_)),
        ArgType::Device => matches!(value, Value::Device(_)),
        ArgType::DType | ArgType::Layout | ArgType::MemoryFormat => return enumerated(value, ty),
        ArgType::Generator => false,
        ArgType::Any => true,
    };
    fits.then(|| value.clone())
}

/// A dtype, layout or memory format. As in PyTorch it may be given by its number.
fn enumerated<T: Clone>(value: &Value<T>, ty: &ArgType) -> Option<Value<T>> {
    match (value, ty) {
        (Value::DType(_), ArgType::DType)
        | (Value::Layout(_), ArgType::Layout)
        | (Value::MemoryFormat(_), ArgType::MemoryFormat) => Some(value.clone()),
        (Value::Int(it), _) => of_number(it.as_int()?, ty),
        _ => None,
    }
}

fn of_number<T>(number: i64, ty: &ArgType) -> Option<Value<T>> {
    match ty {
        ArgType::DType => DType::from_number(number).map(Value::DType),
        ArgType::Layout => Layout::from_number(number).map(Value::Layout),
        ArgType::MemoryFormat => MemoryFormat::from_number(number).map(Value::MemoryFormat),
        ArgType::Optional(inner) => of_number(number, inner),
        _ => None,
    }
}

fn default_value<T>(default: &Default, ty: &ArgType) -> Value<T> {
    match (default, ty) {
        (Default::None, _) => Value::None,
        (Default::Bool(it), _) => Value::Bool(*it),
        (Default::Int(it), ArgType::Float) => Value::Float(*it as f64),
        (Default::Int(it), ArgType::List(_, Some(size))) => Value::ints(&vec![*it; *size]),
        // PyTorch writes some dtypes and memory formats by their number.
        (Default::Int(it), _) => of_number(*it, ty).unwrap_or_else(|| Value::int(*it)),
        (Default::Float(it), _) => Value::Float(*it),
        (Default::Str(it), _) => Value::Str(it.as_str().into()),
        (Default::Ints(it), _) => Value::ints(it),
        (Default::Name(name), _) => {
            let dtype = || DType::from_name(name).map(Value::DType);
            let layout = || Layout::from_name(name).map(Value::Layout);
            MemoryFormat::from_name(name).map(Value::MemoryFormat).or_else(dtype).or_else(layout).unwrap_or(Value::None)
        }
    }
}

impl ArgSpec {
    /// The value of the argument where it is not given; `None` where it has to be.
    pub fn default_value<T>(&self) -> Option<Value<T>> {
        self.default.as_ref().map(|default| default_value(default, &self.ty))
    }
}

impl ArgType {
    /// What this type is called in an error message.
    pub fn describe(&self) -> String {
        match self {
            ArgType::Tensor => "a Tensor".to_string(),
            ArgType::Int => "an int".to_string(),
            ArgType::Float => "a float".to_string(),
            ArgType::Bool => "a bool".to_string(),
            ArgType::Scalar => "a number".to_string(),
            ArgType::Complex => "a complex number".to_string(),
            ArgType::Str => "a str".to_string(),
            ArgType::DType => "a torch.dtype".to_string(),
            ArgType::Layout => "a torch.layout".to_string(),
            ArgType::Device => "a torch.device".to_string(),
            ArgType::MemoryFormat => "a torch.memory_format".to_string(),
            ArgType::Generator => "a torch.Generator".to_string(),
            ArgType::Any => "any value".to_string(),
            ArgType::Optional(inner) => format!("{} or None", inner.describe()),
            ArgType::List(inner, None) => format!("a list, each item {}", inner.describe()),
            ArgType::List(inner, Some(size)) => format!("a list of {size}, each item {}", inner.describe()),
        }
    }
}
