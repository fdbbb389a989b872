//! Programs that are opened from bytes that come by ranges.

use crate::Refusal;
use crate::library::library;
use crate::program::{Program, limits_of};
use std::panic::AssertUnwindSafe;
use tracefx_core::{Code, Diagnostic};
use wasm_bindgen::prelude::wasm_bindgen;

/// A program that is being opened. JavaScript drops it when a call fails, so that nothing is left of what a panic broke.
#[wasm_bindgen]
pub struct Opening(AssertUnwindSafe<tracefx_engine::Opening>);

#[wasm_bindgen]
impl Opening {
    /// Begins to open a file of `len` bytes. `limits` is as for [`Program::open`]; `sha256` is of 64 hexadecimal digits.
    ///
    /// # Errors
    /// `InvalidOption` for a limit that does not exist, and for what is no SHA-256.
    #[wasm_bindgen(constructor)]
    pub fn new(len: f64, limits: Option<String>, sha256: Option<String>) -> Result<Opening, Refusal> {
        let sha256 = sha256.map(|it| digest(&it)).transpose()?;
        let opening = tracefx_engine::Opening::new(len as u64, &limits_of(limits)?, sha256);
        Ok(Opening(AssertUnwindSafe(opening.with_operators(library().registry()))))
    }

    /// The next bytes that are wanted: the number to feed them with, where they begin and where they end. Nothing where all
    /// were asked for, or where others depend on those that are on their way.
    pub fn next_request(&mut self) -> Option<Vec<f64>> {
        let it = self.0.next_request()?;
        Some(vec![f64::from(it.id), it.range.start as f64, it.range.end as f64])
    }

    /// Takes the next bytes of a request.
    ///
    /// # Errors
    /// As [`Program::open`], as soon as it can be told.
    pub fn feed(&mut self, id: u32, bytes: &[u8]) -> Result<(), Refusal> {
        Ok(self.0.feed(id, bytes)?)
    }

    /// The program, when all of it came.
    ///
    /// # Errors
    /// As [`Program::open`]; `ArchiveChecksum` where the file has another SHA-256.
    pub fn finish(self) -> Result<Program, Refusal> {
        Ok(Program::of(self.0.0.finish()?))
    }
}

/// The bytes of 64 hexadecimal digits.
fn digest(text: &str) -> Result<[u8; 32], Diagnostic> {
    let none = || Diagnostic::new(Code::InvalidOption, "sha256 is not 64 hexadecimal digits");
    let digits: Option<Vec<u32>> = text.chars().map(|it| it.to_digit(16)).collect();
    let bytes: Vec<u8> =
        digits.ok_or_else(none)?.chunks(2).map(|it| it.iter().fold(0, |acc, it| acc << 4 | *it as u8)).collect();
    if text.len() == 64 { bytes.try_into().map_err(|_| none()) } else { Err(none()) }
}
