//! Writing one section.

use crate::format::{EXACT, MAX_PAYLOAD};
use tracefx_core::allocate::filled;
use tracefx_core::{Code, Diagnostic, Result};

/// The words of a section that is being written.
#[derive(Debug, Default)]
pub(crate) struct Words(Vec<u32>);

impl Words {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn word(&mut self, word: u32) {
        self.0.push(word);
    }

    /// Two words, the lower one first.
    pub(crate) fn pair(&mut self, value: u64) {
        self.0.push(value as u32);
        self.0.push((value >> 32) as u32);
    }

    /// A number that JavaScript holds exactly, as two words.
    pub(crate) fn size(&mut self, value: usize) -> Result<()> {
        self.pair(value as u64);
        if (value as u64) < EXACT { Ok(()) } else { Err(inexact(&value)) }
    }

    /// A version, likewise.
    pub(crate) fn version(&mut self, value: i64) -> Result<()> {
        self.pair(value as u64);
        if value.unsigned_abs() < EXACT { Ok(()) } else { Err(inexact(&value)) }
    }

    /// The number of things that follow.
    pub(crate) fn count(&mut self, count: usize) -> Result<()> {
        let word = u32::try_from(count).map_err(|_| too_large(count, u32::MAX))?;
        self.word(word);
        Ok(())
    }

    /// A word with a tag in its lower 8 bits and a number in the others.
    pub(crate) fn tagged(&mut self, tag: u32, payload: usize) -> Result<()> {
        self.0.push(tagged(tag, payload)?);
        Ok(())
    }

    /// A length and that many bytes, with zeros up to a whole word.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.count(bytes.len())?;
        for chunk in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u32::from_le_bytes(word));
        }
        Ok(())
    }

    /// Overwrites a word that was written before, to announce a length that is known only now.
    pub(crate) fn patch(&mut self, at: usize, word: u32) {
        self.0[at] = word;
    }

    /// The words from a place on.
    pub(crate) fn since(&self, at: usize) -> &[u32] {
        &self.0[at..]
    }

    /// Takes the words from a place on away.
    pub(crate) fn truncate(&mut self, at: usize) {
        self.0.truncate(at);
    }

    pub(crate) fn into_bytes(self) -> Result<Vec<u8>> {
        let mut bytes = filled(0, 4 * self.0.len())?;
        for (place, word) in bytes.chunks_exact_mut(4).zip(&self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }
}

/// A word with a tag in its lower 8 bits and a number in the others.
pub(crate) fn tagged(tag: u32, payload: usize) -> Result<u32> {
    match u32::try_from(payload) {
        Ok(payload) if payload <= MAX_PAYLOAD => Ok(tag | payload << 8),
        Ok(_) | Err(_) => Err(too_large(payload, MAX_PAYLOAD)),
    }
}

fn inexact(value: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, format!("sizes and versions are below 2^53, and {value} is not"))
}

fn too_large(count: usize, limit: u32) -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, format!("the format counts to {limit}, and there are {count}"))
}
