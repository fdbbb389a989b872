use crate::Limits;

/// How to open an archive. The defaults are for files of unknown origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// What the archive may ask for.
    pub limits: Limits,
    /// Reads deflated entries too. PyTorch never writes them; tools that repack archives do.
    pub allow_deflate: bool,
    /// Which program to load of an archive with several: `model` by default, or the only one there is.
    pub model: Option<String>,
}
