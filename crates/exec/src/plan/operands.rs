//! Values as a plan writes them, and back.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use tracefx_core::{Code, Diagnostic, Result, Scalar, Tensor};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, Infer, Op, Output, Value};
use tracefx_plan::{Extent, Operand, Plan, TensorId, TensorView};
use tracefx_sym::{Expr, Symbol, Value as Number};

/// A value as a plan writes it, where `tensor` numbers the tensors.
pub(super) fn operand_of<T>(value: &Value<T>, tensor: &dyn Fn(&T) -> TensorId) -> Operand {
    match value {
        Value::None => Operand::None,
        Value::Bool(it) => Operand::Bool(*it),
        Value::Int(it) => it.as_int().map_or_else(|| Operand::Expr(it.clone().into()), Operand::Int),
        Value::Float(it) => Operand::Float(*it),
        Value::Complex(it) => Operand::Complex(*it),
        Value::Str(it) => Operand::Str(Arc::from(&**it)),
        Value::DType(it) => Operand::DType(*it),
        Value::Device(it) => Operand::Device(it.clone()),
        Value::Layout(it) => Operand::Layout(*it),
        Value::MemoryFormat(it) => Operand::MemoryFormat(*it),
        Value::Tensor(it) => Operand::Tensor(tensor(it)),
        Value::List(items) => Operand::List(items.iter().map(|it| operand_of(it, tensor)).collect()),
        Value::SymBool(it) => Operand::Expr(it.clone().into()),
        Value::SymFloat(it) => Operand::Expr(it.clone().into()),
    }
}

/// The value of a number or an option, where `symbols` says what the data decided. Tensors, lists and plans are for whoever runs
/// the plan.
///
/// # Errors
/// Where an expression has no value.
pub(crate) fn plain_value(operand: &Operand, symbols: &Symbols) -> Result<Value<Tensor>> {
    Ok(match operand {
        Operand::None | Operand::Tensor(_) | Operand::Plan(_) | Operand::List(_) => Value::None,
        Operand::Bool(it) => Value::Bool(*it),
        Operand::Int(it) => Value::int(*it),
        Operand::Float(it) => Value::Float(*it),
        Operand::Complex(it) => Value::Complex(*it),
        Operand::Str(it) => Value::Str((&**it).into()),
        Operand::DType(it) => Value::DType(*it),
        Operand::Device(it) => Value::Device(it.clone()),
        Operand::Layout(it) => Value::Layout(*it),
        Operand::MemoryFormat(it) => Value::MemoryFormat(*it),
        Operand::Expr(it) => match it.eval(&|symbol| symbols.get(symbol).copied())? {
            Number::Int(it) => Value::int(it),
            Number::Float(it) => Value::Float(it),
            Number::Bool(it) => Value::Bool(it),
        },
    })
}

/// The view that an operator makes of a tensor of a plan, with these arguments behind the tensor. Nothing where it makes none, or
/// takes more than numbers.
pub fn view_of(op: &Op, of: &TensorView, numbers: &[Operand]) -> Option<TensorView> {
    let Infer::Rule(rule) = op.def.infer else { return None };
    let mut meta = TensorMeta::contiguous(of.dtype, of.sizes.clone());
    meta.strides.clone_from(&of.strides);
    meta.storage_offset = of.offset.clone();
    let number = |it: &Operand| match it {
        Operand::Int(it) => Some(Value::int(*it)),
        Operand::None => Some(Value::None),
        _ => None,
    };
    let values = [Some(Value::Tensor(meta))].into_iter().chain(numbers.iter().map(number)).collect::<Option<_>>()?;
    let [Output::View { meta, .. }] = &rule(&Args::new(op, values)).ok()?[..] else { return None };
    let (sizes, strides, offset) = (meta.sizes.clone(), meta.strides.clone(), meta.storage_offset.clone());
    Some(TensorView { buffer: of.buffer, dtype: meta.dtype, sizes, strides, offset })
}

/// What the data has decided, by symbol.
pub(crate) type Symbols = FxHashMap<Symbol, Number>;

/// Gives the symbols of an operand the values that they have here. Tensors are for the caller to look at.
fn learn_number(operand: &Operand, value: &Value<Tensor>, symbols: &mut Symbols) {
    let number = match value.as_scalar() {
        Some(Scalar::Bool(it)) => Number::Bool(it),
        Some(Scalar::Int(it)) => Number::Int(it),
        Some(Scalar::Float(it)) => Number::Float(it),
        Some(Scalar::Complex(_)) | None => return,
    };
    let symbol = match operand {
        Operand::Expr(Expr::Int(it)) => it.as_symbol().cloned(),
        Operand::Expr(Expr::Float(it)) => it.as_symbol().cloned(),
        // A bool that the data decides is the question whether an int is one.
        Operand::Expr(it) => it.symbols().pop(),
        _ => None,
    };
    if let Some(symbol) = symbol {
        symbols.insert(symbol, number);
    }
}

/// Gives the symbols of an operand the values that they have here, those in the sizes of tensors included.
pub(super) fn learn(plan: &Plan, operand: &Operand, value: &Value<Tensor>, symbols: &mut Symbols) {
    match (operand, value) {
        (Operand::Tensor(id), Value::Tensor(tensor)) => {
            for (size, &actual) in plan.tensor(*id).sizes.iter().zip(tensor.sizes()) {
                if let Some(symbol) = size.as_symbol().filter(|it| !symbols.contains_key(it)) {
                    symbols.insert(symbol.clone(), Number::Int(actual as i64));
                }
            }
        }
        (Operand::List(operands), Value::List(items)) => {
            operands.iter().zip(items).for_each(|(operand, it)| learn(plan, operand, it, symbols));
        }
        (operand, value) => learn_number(operand, value, symbols),
    }
}

/// The numbers of a tensor, from what the data has decided.
pub(super) fn extent_of(view: &TensorView, symbols: &Symbols) -> Result<Extent> {
    view.extent(&|size| {
        let number = match size.as_int() {
            Some(it) => it,
            None => size.eval_with(&|symbol| symbols.get(symbol).copied())?,
        };
        usize::try_from(number)
            .map_err(|_| Diagnostic::new(Code::ShapeMismatch, format!("{size} is {number}, which is not a size")))
    })
}
