//! The JSON documents of an archive, as PyTorch's `torch._export.serde.schema` defines them.
//!
//! A dataclass is an object, a union an object with exactly one key, an enum its number. Fields that are absent have
//! their defaults, and unknown fields are ignored, so minor versions of the schema need no care; another major version
//! is refused. Integers are read exactly, never through a double.

mod argument;
mod json;
mod program;
mod tensor;

pub use argument::*;
pub use program::*;
pub use tensor::*;

use crate::Limits;
use serde::de::DeserializeOwned;
use tracefx_core::{Code, Diagnostic, Result};

/// The major version of the schema that is read. Minor versions only add fields.
pub const SCHEMA_MAJOR: i64 = 8;

impl ExportedProgram {
    /// Reads the JSON of a program, of any minor version of schema 8.
    ///
    /// # Errors
    /// `SchemaVersion` for another major version, `SchemaMalformed` for JSON that is not as the schema says,
    /// `LimitExceeded` for JSON that is too long or too deep.
    pub fn from_json(text: &str, limits: &Limits) -> Result<Self> {
        // The version is looked at first: another major version may have any other shape.
        let head: VersionHead = from_json(text, limits, "the program")?;
        let version = &head.schema_version;
        if version.major != SCHEMA_MAJOR && (version.major, version.minor) != (0, 0) {
            return Err(Diagnostic::new(
                Code::SchemaVersion,
                format!(
                    "the program has schema version {}.{}, and this reader knows {SCHEMA_MAJOR}",
                    version.major, version.minor
                ),
            )
            .help("export the program again with a PyTorch from 2.6 to 2.15, or update tracefx"));
        }
        from_json(text, limits, "the program")
    }
}

impl PayloadConfig {
    /// Reads the JSON that names the payloads of weights or constants.
    ///
    /// # Errors
    /// Those of [`ExportedProgram::from_json`].
    pub fn from_json(text: &str, limits: &Limits) -> Result<Self> {
        from_json(text, limits, "the list of payloads")
    }
}

fn from_json<T: DeserializeOwned>(text: &str, limits: &Limits, what: &str) -> Result<T> {
    Limits::check("json_bytes", limits.json_bytes, text.len() as u64)?;
    let text = json::prepare(text, limits)?;
    serde_json::from_str(&text).map_err(|error| {
        // The parser quotes what it did not expect, whatever its length.
        let message: String = error.to_string().chars().take(400).collect();
        let place = json::place(&text, error.line(), error.column());
        Diagnostic::new(Code::SchemaMalformed, format!("{what} is not what the schema says, at `{place}`: {message}"))
    })
}
