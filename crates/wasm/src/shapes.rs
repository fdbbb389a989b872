//! The sizes of an export: words and JSON in and out.

use crate::Refusal;
use crate::library::library;
use crate::tensor::dtype_of;
use crate::values::{Reader, encode_known};
use std::panic::AssertUnwindSafe;
use tracefx_core::{Code, Diagnostic};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::Value;
use tracefx_sym::{Expr, SymBool, Value as Known};
use wasm_bindgen::prelude::wasm_bindgen;

/// What an export knows of sizes. It has cells that every call leaves whole, which the compiler does not know.
#[wasm_bindgen]
pub struct ShapeSession(AssertUnwindSafe<tracefx_export::ShapeSession>);

#[wasm_bindgen]
impl ShapeSession {
    /// A session of inputs, of which `words` says what is known and `said`, as JSON, what the user said.
    ///
    /// # Errors
    /// `ConstraintViolation` where an example is not what is said of it.
    #[wasm_bindgen(constructor)]
    pub fn new(words: &[u32], said: &str) -> Result<ShapeSession, Refusal> {
        Ok(ShapeSession(AssertUnwindSafe(tracefx_engine::shape_session(Reader::new(words).rest()?, said)?)))
    }

    /// What is known of the inputs, with symbols in the place of dynamic sizes.
    pub fn values(&self) -> Vec<u32> {
        encode_known(self.0.values())
    }

    /// Says where the user's code is, for guards that are made from here on.
    pub fn set_place(&self, place: Option<String>) {
        // Messages say `at` themselves, which frames of V8 begin with.
        self.0.symbols().set_place(place.map(|it| Str::from(it.strip_prefix("at ").unwrap_or(&it))));
    }

    /// What is known of the results of a call, as `infer_operator` gives it, under autocast as there.
    ///
    /// # Errors
    /// As there; `DataDependent` where only the data tells what the call needs to know.
    pub fn infer(&self, name: &str, call: &[u32], autocast: Option<u32>) -> Result<Vec<u32>, Refusal> {
        let mut reader = Reader::new(call);
        let (args, kwargs) = (reader.values()?, reader.named_values()?);
        let low = autocast.map(dtype_of).transpose()?;
        Ok(encode_known(&library().infer_within(&self.0, low, name, &args, &kwargs)?))
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// `DataDependent` where only the data can tell.
    pub fn decide(&self, condition: &[u32]) -> Result<bool, Refusal> {
        Ok(self.0.decide(&condition_of(condition)?)?)
    }

    /// Takes a condition to hold.
    ///
    /// # Errors
    /// `AssertionFailed` where it does not.
    pub fn check(&self, condition: &[u32], message: Option<String>) -> Result<(), Refusal> {
        let message = message.map(|it| Str::from(it.as_str()));
        Ok(self.0.check(&condition_of(condition)?, message)?)
    }

    /// What an expression is for the examples, or `None`.
    ///
    /// # Errors
    /// `Internal` where the words are no expression.
    pub fn hint(&self, expr: &[u32]) -> Result<Vec<u32>, Refusal> {
        let value: Value<TensorMeta> = match self.0.hint(&expr_of(expr)?) {
            Some(Known::Int(it)) => Value::int(it),
            Some(Known::Float(it)) => Value::Float(it),
            Some(Known::Bool(it)) => Value::Bool(it),
            None => Value::None,
        };
        Ok(encode_known(&[value]))
    }

    /// A value in terms of the symbols that are left.
    ///
    /// # Errors
    /// `Internal` where the words are no values.
    pub fn replace(&self, values: &[u32]) -> Result<Vec<u32>, Refusal> {
        let values: Vec<Value<TensorMeta>> = Reader::new(values).rest()?;
        let values: Vec<_> = values.iter().map(|it| self.0.symbols().replace_value(it)).collect();
        Ok(encode_known(&values))
    }

    /// Compares what became of the sizes with what the user said; the answer is JSON.
    ///
    /// # Errors
    /// `ConstraintViolation` where that is not the same.
    pub fn finish(&mut self) -> Result<String, Refusal> {
        Ok(tracefx_engine::finish_shapes(&mut self.0)?.to_string())
    }
}

fn expr_of(words: &[u32]) -> Result<Expr, Refusal> {
    let values: Vec<Value<TensorMeta>> = Reader::new(words).rest()?;
    let expr = values.first().and_then(Value::as_expr);
    expr.ok_or_else(|| Diagnostic::new(Code::InputType, "an expression of sizes is expected").into())
}

fn condition_of(words: &[u32]) -> Result<SymBool, Refusal> {
    match expr_of(words)? {
        Expr::Bool(it) => Ok(it),
        other => Err(Diagnostic::new(Code::InputType, format!("{other} is no condition")).into()),
    }
}
