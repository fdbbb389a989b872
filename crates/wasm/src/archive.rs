//! Archives of PyTorch that are written, at the pace of JavaScript.

use crate::Refusal;
use crate::library::library;
use crate::program::Program;
use std::panic::AssertUnwindSafe;
use tracefx_core::{Code, Diagnostic};
use tracefx_engine::{ArchiveWriter, SaveOptions};
use wasm_bindgen::prelude::wasm_bindgen;

/// An archive that is being written. It keeps the program's storages, and not its graph. Nothing of it is broken by a panic
/// but its place in the file, and JavaScript drops it then.
#[wasm_bindgen]
pub struct Archive(AssertUnwindSafe<ArchiveWriter>);

#[wasm_bindgen]
impl Archive {
    /// Prepares a program. `root` is the folder that all entries lie in, `extra_files` JSON: texts by name.
    ///
    /// # Errors
    /// A code of the graph group where the graph breaks its rules, `NotImplemented` for what PyTorch's files have no place
    /// for, `InvalidOption` for names that are no paths.
    pub fn of(program: &Program, root: &str, extra_files: &str) -> Result<Archive, Refusal> {
        let texts: Vec<(String, String)> = serde_json::from_str(extra_files).map_err(|problem| {
            Diagnostic::new(Code::InvalidOption, format!("the extra files are no texts by name: {problem}"))
        })?;
        let library = library();
        let options = SaveOptions {
            root: root.to_string(),
            extra_files: texts.into_iter().map(|(name, text)| (name.into(), text.into())).collect(),
            registry: library.registry(),
        };
        Ok(Archive(AssertUnwindSafe(ArchiveWriter::new(program.inner(), &options)?)))
    }

    /// The bytes that there will be.
    pub fn length(&self) -> f64 {
        self.0.len() as f64
    }

    /// The next bytes, a few million at most; nothing where there are no more.
    ///
    /// # Errors
    /// `Io` where a tensor changed between two pieces of it.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        Ok(self.0.next_piece(<[u8]>::to_vec)?)
    }
}
