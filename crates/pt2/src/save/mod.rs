//! From an [`ExportedProgram`] to the archive that PyTorch writes for it.
//!
//! The bytes follow from the program alone: there are no dates and no random numbers, so that saving what was loaded
//! from a saved file gives that file again. Payloads are written one at a time, straight from the storages.
//!
//! An archive keeps the names of parameters and the kinds of values, which a graph does not: they come from the registry
//! and from what is noted as `val`.

mod argument;
mod examples;
mod graph;
mod json;
mod payload;
mod result;
mod signature;
mod tree;
mod zip;

use crate::schema;
use indexmap::IndexMap;
use payload::{Folder, Payload, Payloads};
use std::fmt;
use std::io::Write;
use tracefx_core::allocate::{copied, io_problem};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_export::ExportedProgram;
use tracefx_ir::Str;
use tracefx_ops::Registry;
use zip::{Pieces, Zip};

/// The version of the schema that is written: that of PyTorch 2.12 to 2.15.
pub const SCHEMA_VERSION: (i64, i64) = (8, 20);

/// How to save a program.
#[derive(Clone, Debug)]
pub struct SaveOptions<'a> {
    /// The folder that all entries lie in. PyTorch takes the name of the file, or `archive` where there is none.
    pub root: String,
    /// Texts to put beside the program, besides those that it has; of two of one name this one is written.
    pub extra_files: IndexMap<Str, Str>,
    /// The operators, of which an archive gives the names of parameters.
    pub registry: &'a Registry,
}

impl Default for SaveOptions<'_> {
    fn default() -> Self {
        SaveOptions { root: "archive".to_string(), extra_files: IndexMap::new(), registry: tracefx_ops::registry() }
    }
}

/// Writes a program as PyTorch does: `torch.export.load` takes the file.
///
/// ```
/// use tracefx_pt2::{LoadOptions, SaveOptions, load, save};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/programs/cond_simple/model.pt2");
/// let program = load(&std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap();
/// let mut saved = Vec::new();
/// save(&program, &SaveOptions::default(), &mut saved).unwrap();
/// let again = load(&saved, &LoadOptions::default()).unwrap();
/// assert_eq!(again.module.graph.to_string(), program.module.graph.to_string());
/// ```
///
/// What PyTorch's file cannot say: two dtypes that look at one storage, and state and constants that share one, share
/// nothing afterwards; PyTorch writes them so, too.
///
/// # Errors
/// Those of [`ArchiveWriter::new`]; `Io` where the writer fails.
pub fn save(program: &ExportedProgram, options: &SaveOptions<'_>, writer: &mut dyn Write) -> Result<()> {
    ArchiveWriter::new(program, options)?.write_to(writer)
}

/// An archive that is written piece by piece, at its caller's pace: to a stream that is waited for, with someone who watches
/// and may stop. It keeps the storages of the program and not its graph.
pub struct ArchiveWriter(Pieces<'static>);

impl ArchiveWriter {
    /// Prepares all but the bytes of the tensors.
    ///
    /// # Errors
    /// `GraphInvalid` for a graph that breaks its rules, `NotImplemented` for what PyTorch's schema has no place for and for
    /// values of which nothing is known, `SchemaMismatch` for arguments that an operator does not take, `InvalidOption` for
    /// names that are no paths. The node is named.
    pub fn new(program: &ExportedProgram, options: &SaveOptions<'_>) -> Result<Self> {
        let document = graph::document(program, options.registry)?;
        let mut zip = Zip::new(&options.root)?;
        add(&mut zip, Payloads::weights(program)?, Folder::Weights)?;
        add(&mut zip, Payloads::constants(program)?, Folder::Constants)?;
        zip.entry("models/model.json", Payload::Bytes(json::to_vec(&document)?.into()))?;
        zip.entry("data/sample_inputs/model.pt", Payload::Bytes(examples::write(program)?.into()))?;
        let mut extra_files = program.extra_files.clone();
        extra_files.extend(options.extra_files.iter().map(|(name, text)| (Str::clone(name), Str::clone(text))));
        for (name, text) in &extra_files {
            zip.entry(&format!("extra/{name}"), Payload::Bytes(copied(text.as_bytes())?.into()))?;
        }
        for (name, text) in
            [("archive_format", "pt2"), ("archive_version", "0"), (".data/version", "6\n"), ("byteorder", "little")]
        {
            zip.entry(name, Payload::Bytes(text.as_bytes().into()))?;
        }
        Ok(ArchiveWriter(zip.pieces()?))
    }

    /// Writes what was not given yet.
    ///
    /// # Errors
    /// `Io` where the writer fails.
    pub fn write_to(&mut self, writer: &mut dyn Write) -> Result<()> {
        let failed = |error| {
            io_problem(error, |error| Diagnostic::new(Code::Io, format!("the archive could not be written: {error}")))
        };
        while let Some(written) = self.next_piece(|bytes| writer.write_all(bytes))? {
            written.map_err(failed)?;
        }
        writer.flush().map_err(failed)
    }

    /// The bytes that there will be.
    #[allow(clippy::len_without_is_empty, reason = "an archive is never empty")]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// The bytes that were given so far.
    pub fn written(&self) -> u64 {
        self.0.written()
    }

    /// Gives the next bytes, at most four million of them, to a function; `None` where there are no more.
    ///
    /// # Errors
    /// `Io` where a tensor changed between two pieces of it.
    pub fn next_piece<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        self.0.next(take)
    }
}

impl fmt::Debug for ArchiveWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArchiveWriter({} of {} bytes)", self.written(), self.len())
    }
}

fn add(zip: &mut Zip<'static>, payloads: Payloads, folder: Folder) -> Result<()> {
    let Payloads { entries, config } = payloads;
    for (name, payload) in entries {
        zip.entry(&format!("data/{}/{name}", folder.name()), payload)?;
    }
    let name = format!("data/{0}/model_{0}_config.json", folder.name());
    zip.entry(&name, Payload::Bytes(json::to_vec(&schema::PayloadConfig { config })?.into()))
}

/// A refusal of something that the schema of PyTorch has no place for.
fn unsavable(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::NotImplemented, what)
}

fn invalid(what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, what)
}
