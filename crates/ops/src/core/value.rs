//! The values that operators take and give, whatever a tensor is to whoever calls.

use std::convert::Infallible;
use tracefx_core::{Complex64, DType, Device, Diagnostic, Layout, MemoryFormat, Scalar, allocate};
use tracefx_ir::{Arg, Str};
use tracefx_sym::{Expr, SymBool, SymFloat, SymInt};

/// Makes room for the items of a list.
type Room<U, E> = fn(usize) -> Result<Vec<Value<U>>, E>;

/// A value that operators take and give, generic in what a tensor is: its data when a program runs, its
/// [`TensorMeta`](tracefx_ir::TensorMeta) when shapes are propagated, a reference when an operator is decomposed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<T> {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An int, perhaps symbolic while shapes are propagated.
    Int(SymInt),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
    /// A string.
    Str(Str),
    /// A dtype.
    DType(DType),
    /// A device.
    Device(Device),
    /// A layout.
    Layout(Layout),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A tensor.
    Tensor(T),
    /// A list or tuple.
    List(Vec<Value<T>>),
    /// A bool that depends on symbols; one that is known is a [`Value::Bool`].
    SymBool(SymBool),
    /// A float that depends on symbols; one that is known is a [`Value::Float`].
    SymFloat(SymFloat),
}

impl<T> Value<T> {
    /// An int that is known.
    pub fn int(value: i64) -> Self {
        Value::Int(SymInt::from(value))
    }

    /// A list of ints that are known.
    pub fn ints(values: &[i64]) -> Self {
        Value::List(values.iter().map(|&it| Value::int(it)).collect())
    }

    /// What an argument of a node is as a value; `other` says what nodes are, and what is no value that operators take.
    ///
    /// # Errors
    /// The first error of `other`.
    pub fn of_arg<E>(arg: &Arg, other: &mut dyn FnMut(&Arg) -> Result<Self, E>) -> Result<Self, E> {
        Ok(match arg {
            Arg::None => Value::None,
            Arg::Bool(it) => Value::Bool(*it),
            Arg::Int(it) => Value::int(*it),
            Arg::Float(it) => Value::Float(*it),
            Arg::Complex(it) => Value::Complex(*it),
            Arg::Str(it) => Value::Str(it.clone()),
            Arg::DType(it) => Value::DType(*it),
            Arg::Device(it) => Value::Device(it.clone()),
            Arg::Layout(it) => Value::Layout(*it),
            Arg::MemoryFormat(it) => Value::MemoryFormat(*it),
            Arg::List(items) | Arg::Tuple(items) => {
                Value::List(items.iter().map(|it| Value::of_arg(it, other)).collect::<Result<_, E>>()?)
            }
            Arg::Node(_) | Arg::Ellipsis | Arg::Op(_) | Arg::Dict(_) | Arg::Slice(_) => other(arg)?,
        })
    }

    /// The kind of value, as error messages call it.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) | Value::SymBool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) | Value::SymFloat(_) => "float",
            Value::Complex(_) => "complex",
            Value::Str(_) => "str",
            Value::DType(_) => "torch.dtype",
            Value::Device(_) => "torch.device",
            Value::Layout(_) => "torch.layout",
            Value::MemoryFormat(_) => "torch.memory_format",
            Value::Tensor(_) => "Tensor",
            Value::List(_) => "list",
        }
    }

    /// The number that this is; `None` for other things and for numbers that are not known yet.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Value::Bool(it) => Some(Scalar::Bool(*it)),
            Value::Int(it) => it.as_int().map(Scalar::Int),
            Value::Float(it) => Some(Scalar::Float(*it)),
            Value::Complex(it) => Some(Scalar::Complex(*it)),
            Value::None
            | Value::Str(_)
            | Value::DType(_)
            | Value::Device(_)
            | Value::Layout(_)
            | Value::MemoryFormat(_)
            | Value::Tensor(_)
            | Value::List(_)
            | Value::SymBool(_)
            | Value::SymFloat(_) => None,
        }
    }

    /// The number that this is, known or not; `None` for other things and for complex numbers.
    pub fn as_expr(&self) -> Option<Expr> {
        match self {
            Value::Bool(it) => Some(SymBool::from(*it).into()),
            Value::SymBool(it) => Some(it.clone().into()),
            Value::Int(it) => Some(it.clone().into()),
            Value::Float(it) => Some(SymFloat::from(*it).into()),
            Value::SymFloat(it) => Some(it.clone().into()),
            Value::None
            | Value::Complex(_)
            | Value::Str(_)
            | Value::DType(_)
            | Value::Device(_)
            | Value::Layout(_)
            | Value::MemoryFormat(_)
            | Value::Tensor(_)
            | Value::List(_) => None,
        }
    }

    /// The same value with each tensor replaced.
    ///
    /// # Errors
    /// The first error of `map`, and `OutOfMemory` where there is no room for a list.
    pub fn try_map<U, E: From<Diagnostic>>(&self, map: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Value<U>, E> {
        self.map_with(map, |n| Ok(allocate::with_room(n)?))
    }

    fn map_with<U, E>(&self, map: &mut dyn FnMut(&T) -> Result<U, E>, room: Room<U, E>) -> Result<Value<U>, E> {
        Ok(match self {
            Value::Tensor(it) => Value::Tensor(map(it)?),
            Value::List(items) => {
                let mut mapped = room(items.len())?;
                for it in items {
                    mapped.push(it.map_with(map, room)?);
                }
                Value::List(mapped)
            }
            Value::None => Value::None,
            Value::Bool(it) => Value::Bool(*it),
            Value::Int(it) => Value::Int(it.clone()),
            Value::Float(it) => Value::Float(*it),
            Value::Complex(it) => Value::Complex(*it),
            Value::Str(it) => Value::Str(it.clone()),
            Value::DType(it) => Value::DType(*it),
            Value::Device(it) => Value::Device(it.clone()),
            Value::Layout(it) => Value::Layout(*it),
            Value::MemoryFormat(it) => Value::MemoryFormat(*it),
            Value::SymBool(it) => Value::SymBool(it.clone()),
            Value::SymFloat(it) => Value::SymFloat(it.clone()),
        })
    }

    /// The same value with each tensor replaced, where nothing can fail.
    pub fn map<U>(&self, map: &mut dyn FnMut(&T) -> U) -> Value<U> {
        match self.map_with(&mut |it| Ok::<_, Infallible>(map(it)), |n| Ok(Vec::with_capacity(n))) {
            Ok(it) => it,
            Err(never) => match never {},
        }
    }

    /// Visits the tensors in this value, in order.
    pub fn for_each_tensor<'a>(&'a self, visit: &mut dyn FnMut(&'a T)) {
        match self {
            Value::Tensor(it) => visit(it),
            Value::List(items) => items.iter().for_each(|it| it.for_each_tensor(visit)),
            _ => {}
        }
    }
}

impl<T> From<Scalar> for Value<T> {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(it) => Value::Bool(it),
            Scalar::Int(it) => Value::int(it),
            Scalar::Float(it) => Value::Float(it),
            Scalar::Complex(it) => Value::Complex(it),
        }
    }
}

impl<T> From<Expr> for Value<T> {
    fn from(expr: Expr) -> Self {
        match expr {
            Expr::Int(it) => Value::Int(it),
            Expr::Float(it) => it.as_float().map_or_else(|| Value::SymFloat(it), Value::Float),
            Expr::Bool(it) => it.as_bool().map_or_else(|| Value::SymBool(it), Value::Bool),
        }
    }
}
