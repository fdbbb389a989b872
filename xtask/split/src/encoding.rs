//! Writing what was read, with other indices of functions.

use std::collections::HashMap;
use wasm_encoder::reencode::{Error, Reencode};

/// Writes functions with other indices; by default with their own.
#[derive(Default)]
pub(crate) struct Renumbered(Option<HashMap<u32, u32>>);

impl Renumbered {
    /// The functions get indices in this order.
    pub(crate) fn of(functions: impl Iterator<Item = u32>) -> Self {
        Renumbered(Some(functions.zip(0..).collect()))
    }
}

impl Reencode for Renumbered {
    type Error = NoFunction;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<NoFunction>> {
        let Some(indices) = &self.0 else { return Ok(function) };
        indices.get(&function).copied().ok_or(Error::UserError(NoFunction(function)))
    }
}

/// The module refers to a function that it does not have.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("there is no function {0}")]
pub struct NoFunction(u32);
