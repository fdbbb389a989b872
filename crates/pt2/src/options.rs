//! How archives are opened.

use crate::Limits;
use tracefx_ops::{Registry, registry};

/// How to open an archive. The defaults are for files of unknown origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// What the archive may ask for.
    pub limits: Limits,
    /// Reads deflated entries too. PyTorch never writes them; tools that repack archives do.
    pub allow_deflate: bool,
    /// Which program to load of an archive with several: `model` by default, or the only one there is.
    pub model: Option<String>,
    /// The operators, by whose schemas arguments are put in order. What is not among them keeps the order of the file.
    pub registry: Registry,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { limits: Limits::default(), allow_deflate: false, model: None, registry: registry().clone() }
    }
}
