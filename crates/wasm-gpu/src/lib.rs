//! The GPU's own module of WebAssembly, which a host fetches when a GPU is asked for.
//!
//! It takes the outline of a plan, which the engine gives, and makes the program of a GPU of it, which the host executes with the WebGPU
//! that it has. The engine's module knows nothing of it. What is refused crosses as JSON, thrown as a string.

use serde::Serialize;
use tracefx_core::{Code, DType, Diagnostic};
use tracefx_gpu::{Limits, Program, lower};
use tracefx_plan::Plan;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// A diagnostic on its way to JavaScript.
#[derive(Clone, Debug)]
pub struct Refusal(Diagnostic);

/// What JavaScript makes an error of.
#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'a str>,
}

impl From<Diagnostic> for Refusal {
    fn from(it: Diagnostic) -> Self {
        Refusal(it)
    }
}

impl From<Refusal> for JsValue {
    fn from(Refusal(it): Refusal) -> Self {
        let told = Told { name: it.code().name(), message: it.message(), node: it.node_name(), op: it.op_name() };
        JsValue::from_str(&json(&told))
    }
}

/// What a GPU does for a plan.
#[wasm_bindgen]
pub struct GpuProgram(Program);

#[wasm_bindgen]
impl GpuProgram {
    /// The program for the plan of an outline. `may_write` are the names of its operators that may write to what they take, between commas;
    /// the others are what the device can do at most, and what it has.
    ///
    /// # Errors
    /// A code of the wire group where the bytes are no outline of a plan; what a plan is refused for.
    pub fn of(
        outline: &[u8],
        may_write: &str,
        bindings: usize,
        buffer_bytes: f64,
        workgroups: u32,
        has_f16: bool,
        has_subgroups: bool,
    ) -> Result<GpuProgram, Refusal> {
        let plan = Plan::from_outline(outline)?;
        let limits = Limits { bindings, buffer_bytes: buffer_bytes as u64, workgroups, has_f16, has_subgroups };
        Ok(GpuProgram(lower(&plan, &limits, &|op| may_write.split(',').any(|it| it == op))))
    }

    /// The program as JSON.
    pub fn json(&self) -> String {
        json(&self.0)
    }

    /// Refuses a run of which the data has broken a promise; the words are those of the buffer of checks.
    ///
    /// # Errors
    /// `IndexOutOfRange` where a value is no position.
    pub fn check(&self, words: &[u32]) -> Result<(), Refusal> {
        Ok(self.0.check(words)?)
    }
}

/// The bytes of the device for elements of a dtype.
///
/// # Errors
/// `Internal` where there is no such dtype.
#[wasm_bindgen]
pub fn widened(bytes: &[u8], dtype: &str) -> Result<Vec<u8>, Refusal> {
    let dtype = dtype_of(dtype)?;
    let words = tracefx_gpu::words(dtype).unwrap_or(1);
    let mut wide = vec![0; bytes.len() / dtype.size() * words * 4];
    tracefx_gpu::widened(bytes, dtype, &mut wide);
    Ok(wide)
}

/// The elements of a dtype that the device holds as these bytes.
///
/// # Errors
/// As [`widened`].
#[wasm_bindgen]
pub fn narrowed(wide: &[u8], dtype: &str) -> Result<Vec<u8>, Refusal> {
    let dtype = dtype_of(dtype)?;
    let words = tracefx_gpu::words(dtype).unwrap_or(1);
    let mut bytes = vec![0; wide.len() / (words * 4) * dtype.size()];
    tracefx_gpu::narrowed(wide, dtype, &mut bytes);
    Ok(bytes)
}

fn dtype_of(name: &str) -> Result<DType, Refusal> {
    let dtype = DType::from_name(name);
    dtype.ok_or_else(|| Diagnostic::new(Code::Internal, format!("no dtype is called {name}")).into())
}

/// Values of ours have only keys that are text, and no failing ones in them.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
