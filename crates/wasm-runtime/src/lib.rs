//! The small module of WebAssembly, which runs saved plans: the host opens a file, puts the inputs of a call into memory, runs the model, and
//! reads what it gives.
//!
//! What is refused is thrown as a string: the name of the code, the message, the node, the operator and the help, between
//! characters `U+001F`. A part that is not there is empty.
#![forbid(unsafe_code)]

use std::panic::AssertUnwindSafe;
use tracefx_core::{Code, DType, Diagnostic, Storage, Tensor};
use tracefx_ops::Value;
pub use tracefx_wasm_parts::{Parts, load_part, set_parts, use_relaxed_simd};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// A diagnostic on its way to JavaScript.
#[derive(Clone, Debug)]
pub struct Refusal(Diagnostic);

impl From<Diagnostic> for Refusal {
    fn from(it: Diagnostic) -> Self {
        Refusal(it)
    }
}

impl From<Refusal> for JsValue {
    fn from(Refusal(it): Refusal) -> Self {
        let parts = [Some(it.code().name()), Some(it.message()), it.node_name(), it.op_name(), it.help_text()];
        JsValue::from_str(&parts.map(Option::unwrap_or_default).join("\u{1f}"))
    }
}

/// A model of a file. Operators may have closures, of which the compiler does not know that a panic leaves them as they were.
#[wasm_bindgen]
pub struct Model(AssertUnwindSafe<tracefx_runtime::Model>);

#[wasm_bindgen]
impl Model {
    /// Opens a file with saved plans.
    ///
    /// # Errors
    /// As [`tracefx_runtime::Model::open`].
    pub fn open(file: &[u8]) -> Result<Model, Refusal> {
        Ok(Model(AssertUnwindSafe(tracefx_runtime::Model::open(file)?)))
    }

    /// How a call is put together, as JSON.
    pub fn signature(&self) -> String {
        self.0.signature().to_owned()
    }

    /// Runs a call.
    ///
    /// # Errors
    /// As [`tracefx_runtime::Model::run`].
    pub fn run(&self, call: &mut Call) -> Result<(), Refusal> {
        call.outputs = self.0.run(&call.inputs)?;
        Ok(())
    }
}

/// The inputs and outputs of one call, flattened.
#[wasm_bindgen]
#[derive(Default)]
pub struct Call {
    inputs: Vec<Value<Tensor>>,
    /// The versions of the storages of the inputs as the host filled them.
    versions: Vec<u64>,
    outputs: Vec<Value<Tensor>>,
}

/// What an output is: the first word of what [`Call::output`] gives.
mod kind {
    pub(super) const NONE: u32 = 0;
    pub(super) const TENSOR: u32 = 1;
    pub(super) const NUMBER: u32 = 2;
    pub(super) const BOOL: u32 = 3;
    pub(super) const INT: u32 = 4;
}

#[wasm_bindgen]
impl Call {
    /// A call without inputs.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Call {
        Call::default()
    }

    /// Adds a row-major tensor of these sizes; `dtype` is its number. Gives the address where its bytes are to be put before the call is
    /// run.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidOption` where there is no such dtype.
    pub fn tensor(&mut self, dtype: u32, sizes: &[u32]) -> Result<usize, Refusal> {
        let dtype = DType::ALL.get(dtype as usize).copied();
        let dtype = dtype.ok_or_else(|| Diagnostic::new(Code::InvalidOption, "there is no such dtype"))?;
        let sizes: Vec<usize> = sizes.iter().map(|it| *it as usize).collect();
        let tensor = Tensor::unfilled(dtype, &sizes)?;
        let address = address(tensor.storage());
        self.push(Value::Tensor(tensor));
        Ok(address)
    }

    /// Adds an int.
    pub fn int(&mut self, it: i64) {
        self.push(Value::int(it));
    }

    /// Adds a float.
    pub fn float(&mut self, it: f64) {
        self.push(Value::Float(it));
    }

    /// Adds a bool.
    pub fn bool(&mut self, it: bool) {
        self.push(Value::Bool(it));
    }

    /// Adds a string.
    pub fn string(&mut self, it: &str) {
        self.push(Value::Str(it.into()));
    }

    /// Adds nothing.
    pub fn none(&mut self) {
        self.push(Value::None);
    }

    /// Where the bytes of an input are, row-major, if the call has changed them; else 0.
    pub fn changed(&self, at: usize) -> usize {
        match (self.inputs.get(at), self.versions.get(at)) {
            (Some(Value::Tensor(it)), Some(version)) if it.storage().version() != *version => address(it.storage()),
            _ => 0,
        }
    }

    /// How many outputs there are.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// What an output is. Of a tensor: 1, the number of its dtype, the address of its bytes, row-major, and its sizes; of a float 2
    /// ([`Call::number`]), of a bool 3, of an int 4 ([`Call::integer`]); of nothing 0.
    ///
    /// # Errors
    /// `NotImplemented` for an output of another kind; `OutOfMemory`.
    pub fn output(&mut self, at: usize) -> Result<Vec<u32>, Refusal> {
        let Some(output) = self.outputs.get_mut(at) else { return Ok(vec![kind::NONE]) };
        if let Value::Tensor(it) = output {
            *it = it.contiguous()?;
            let mut words = vec![kind::TENSOR, it.dtype() as u32, address(it.storage()) as u32];
            words[2] += (it.offset() * it.dtype().size()) as u32;
            words.extend(it.sizes().iter().map(|it| *it as u32));
            return Ok(words);
        }
        Ok(match output {
            Value::None => vec![kind::NONE],
            Value::Bool(_) => vec![kind::BOOL],
            Value::Int(it) if it.as_int().is_some() => vec![kind::INT],
            Value::Float(_) => vec![kind::NUMBER],
            other => {
                let what = format!("the output {at} is a {}", other.kind_name());
                return Err(Diagnostic::new(Code::NotImplemented, what).into());
            }
        })
    }

    /// The value of an output that is a float.
    pub fn number(&self, at: usize) -> f64 {
        if let Some(Value::Float(it)) = self.outputs.get(at) { *it } else { f64::NAN }
    }

    /// The value of an output that is an int or a bool.
    pub fn integer(&self, at: usize) -> i64 {
        match self.outputs.get(at) {
            Some(Value::Bool(it)) => i64::from(*it),
            Some(Value::Int(it)) => it.as_int().unwrap_or_default(),
            _ => 0,
        }
    }

    fn push(&mut self, input: Value<Tensor>) {
        self.versions.push(if let Value::Tensor(it) = &input { it.storage().version() } else { 0 });
        self.inputs.push(input);
    }
}

/// Where the bytes of a storage are in the module's memory.
fn address(storage: &Storage) -> usize {
    storage.read().bytes().as_ptr() as usize
}
