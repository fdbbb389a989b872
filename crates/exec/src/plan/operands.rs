//! Values as a plan writes them, and back.

use std::sync::Arc;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ops::Value;
use tracefx_plan::{Operand, TensorId};

/// A value as a plan writes it, where `tensor` numbers the tensors.
///
/// # Errors
/// `NotImplemented` for a number that is not known, and what `tensor` refuses.
pub(super) fn operand_of<T>(value: &Value<T>, tensor: &mut dyn FnMut(&T) -> Result<TensorId>) -> Result<Operand> {
    Ok(match value {
        Value::None => Operand::None,
        Value::Bool(it) => Operand::Bool(*it),
        Value::Int(it) => Operand::Int(it.as_int().ok_or_else(|| symbolic(it))?),
        Value::Float(it) => Operand::Float(*it),
        Value::Complex(it) => Operand::Complex(*it),
        Value::Str(it) => Operand::Str(Arc::from(&**it)),
        Value::DType(it) => Operand::DType(*it),
        Value::Device(it) => Operand::Device(it.clone()),
        Value::Layout(it) => Operand::Layout(*it),
        Value::MemoryFormat(it) => Operand::MemoryFormat(*it),
        Value::Tensor(it) => Operand::Tensor(tensor(it)?),
        Value::List(items) => Operand::List(items.iter().map(|it| operand_of(it, tensor)).collect::<Result<_>>()?),
        Value::SymBool(it) => return Err(symbolic(it)),
        Value::SymFloat(it) => return Err(symbolic(it)),
    })
}

/// The value that an operand is, where `tensor` gives the tensors.
pub(super) fn value_of(operand: &Operand, tensor: &dyn Fn(TensorId) -> Tensor) -> Value<Tensor> {
    match operand {
        Operand::None => Value::None,
        Operand::Bool(it) => Value::Bool(*it),
        Operand::Int(it) => Value::int(*it),
        Operand::Float(it) => Value::Float(*it),
        Operand::Complex(it) => Value::Complex(*it),
        Operand::Str(it) => Value::Str((&**it).into()),
        Operand::DType(it) => Value::DType(*it),
        Operand::Device(it) => Value::Device(it.clone()),
        Operand::Layout(it) => Value::Layout(*it),
        Operand::MemoryFormat(it) => Value::MemoryFormat(*it),
        Operand::Tensor(it) => Value::Tensor(tensor(*it)),
        // Whoever runs plans takes them out before.
        Operand::Plan(_) => Value::None,
        Operand::List(items) => Value::List(items.iter().map(|it| value_of(it, tensor)).collect()),
    }
}

/// The error of what only a run knows.
pub(super) fn symbolic(it: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::NotImplemented, format!("{it} is known to a run alone, and a plan has numbers"))
}
