//! Files of `torch.save`.

use crate::program::limits_of;
use crate::{Refusal, values};
use wasm_bindgen::prelude::wasm_bindgen;

/// What a file of `torch.save` holds, as the words of one value (see [`values`]); containers are lists as
/// `tracefx_engine::read_checkpoint` says. `limits` is as for [`Program::open`](crate::Program::open).
///
/// # Errors
/// As `tracefx_engine::read_checkpoint`; `InvalidOption` for a limit that does not exist.
#[wasm_bindgen]
pub fn read_checkpoint(bytes: &[u8], limits: Option<String>) -> Result<Vec<u32>, Refusal> {
    values::encoded(&[tracefx_engine::read_checkpoint(bytes, &limits_of(limits)?)?])
}
