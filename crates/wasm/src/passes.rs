//! Passes: bytes and JSON in, an edit script and JSON out.

use crate::Refusal;
use crate::library::library;
use crate::storages::Storages;
use wasm_bindgen::prelude::wasm_bindgen;

/// A pass that is asked for.
#[wasm_bindgen]
pub struct PassRequest(tracefx_engine::PassRequest);

#[wasm_bindgen]
impl PassRequest {
    /// A request about the module of these bytes.
    ///
    /// # Errors
    /// A code of the wire group where the bytes are damaged.
    #[wasm_bindgen(constructor)]
    pub fn new(module: &[u8]) -> Result<PassRequest, Refusal> {
        Ok(PassRequest(tracefx_engine::PassRequest::new(module)?))
    }

    /// Adds a pattern, a replacement, or what else the pass takes.
    ///
    /// # Errors
    /// As [`PassRequest::new`].
    pub fn push(&mut self, module: &[u8]) -> Result<(), Refusal> {
        Ok(self.0.push(module)?)
    }

    /// Runs the pass of this name; the options are JSON.
    ///
    /// # Errors
    /// `InvalidOption` where there is no such pass or option; else what the pass refuses.
    pub fn run(self, name: &str, options: &str) -> Result<PassReply, Refusal> {
        Ok(PassReply(self.0.run(&library(), name, options)?))
    }
}

/// What a pass gave.
#[wasm_bindgen]
pub struct PassReply(tracefx_engine::PassReply);

#[wasm_bindgen]
impl PassReply {
    /// What the pass has to say: JSON.
    pub fn answer(&self) -> String {
        self.0.answer.clone()
    }

    /// What became of the module: an edit script.
    pub fn edits(&self) -> Vec<u8> {
        self.0.edits.clone()
    }

    /// The storages of tensors that are new, in the order of the script.
    pub fn storages(&self) -> Storages {
        Storages(self.0.storages.clone())
    }
}
