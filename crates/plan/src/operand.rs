//! What steps take and give: numbers and options as they are written in the plan, and tensors by number.

use crate::TensorId;
use crate::bytes::parts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tracefx_core::{Complex64, DType, Device, Layout, MemoryFormat};
use tracefx_sym::Expr;

/// An argument or a result of a step, or what a plan takes and gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operand {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(#[serde(with = "parts::complex")] Complex64),
    /// A string.
    Str(#[serde(with = "parts::text")] Arc<str>),
    /// A dtype.
    DType(#[serde(with = "parts::dtype")] DType),
    /// A device.
    Device(#[serde(with = "parts::device")] Device),
    /// A layout.
    Layout(#[serde(with = "parts::layout")] Layout),
    /// A memory format.
    MemoryFormat(#[serde(with = "parts::memory_format")] MemoryFormat),
    /// A number that is computed of what the data decides. As a result or an input, a symbol, which it gives its value.
    Expr(#[serde(with = "parts::expr")] Expr),
    /// A tensor of the plan.
    Tensor(TensorId),
    /// One of the plans of the step: a branch, or the body of a loop.
    Plan(usize),
    /// A list or tuple.
    List(#[serde(deserialize_with = "parts::nested")] Vec<Operand>),
}

impl Operand {
    /// Visits the tensors, in order.
    pub fn for_each_tensor(&self, visit: &mut dyn FnMut(TensorId)) {
        match self {
            Operand::Tensor(it) => visit(*it),
            Operand::List(items) => items.iter().for_each(|it| it.for_each_tensor(visit)),
            _ => {}
        }
    }

    /// Visits the tensors, in order, to change them.
    pub fn for_each_tensor_mut(&mut self, visit: &mut dyn FnMut(&mut TensorId)) {
        match self {
            Operand::Tensor(it) => visit(it),
            Operand::List(items) => items.iter_mut().for_each(|it| it.for_each_tensor_mut(visit)),
            _ => {}
        }
    }

    /// Whether it is a number or an option, as it is written in the plan.
    pub fn is_plain(&self) -> bool {
        !matches!(self, Operand::Expr(_) | Operand::Tensor(_) | Operand::Plan(_) | Operand::List(_))
    }

    /// Whether it holds a number that is computed of what the data decides.
    pub fn has_expr(&self) -> bool {
        match self {
            Operand::Expr(_) => true,
            Operand::List(items) => items.iter().any(Operand::has_expr),
            _ => false,
        }
    }
}
