//! Inputs that were fixed when the program was exported.

use crate::ConstantValue;
use tracefx_core::Tensor;
use tracefx_ops::Value;

/// Whether Python's `==` holds, by which PyTorch compares: `2 == 2.0` and `1 == True`.
pub(super) fn is_same(wanted: &ConstantValue, given: &Value<Tensor>) -> bool {
    let number = |value: f64| given.as_scalar().is_some_and(|it| it.to_f64() == value);
    match (wanted, given) {
        (ConstantValue::None, Value::None) => true,
        (ConstantValue::Str(wanted), Value::Str(given)) => wanted == given,
        (ConstantValue::Int(wanted), Value::Int(given)) => given.as_int() == Some(*wanted),
        (ConstantValue::Int(wanted), Value::Float(_) | Value::Bool(_)) => number(*wanted as f64),
        (ConstantValue::Float(wanted), Value::Int(_) | Value::Bool(_)) => number(*wanted),
        // The NaN that a program was exported with is that constant, although it does not equal itself.
        (ConstantValue::Float(wanted), Value::Float(given)) => wanted == given || wanted.is_nan() && given.is_nan(),
        (ConstantValue::Bool(wanted), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
            number(f64::from(u8::from(*wanted)))
        }
        (
            ConstantValue::None
            | ConstantValue::Str(_)
            | ConstantValue::Int(_)
            | ConstantValue::Float(_)
            | ConstantValue::Bool(_),
            _,
        ) => false,
    }
}

pub(super) fn text_of_value(value: &Value<Tensor>) -> String {
    let constant = match value {
        Value::None => ConstantValue::None,
        Value::Bool(it) => ConstantValue::Bool(*it),
        Value::Int(it) => return it.to_string(),
        Value::Float(it) => ConstantValue::Float(*it),
        Value::Str(it) => ConstantValue::Str(it.clone()),
        other => return format!("a {}", other.kind_name()),
    };
    constant.to_string()
}
