//! Which of the two formats bytes are of, and reading them whole. `opening` reads them by ranges.

use tracefx_core::{Code, Diagnostic, Result};
use tracefx_export::ExportedProgram;
use tracefx_pt2::LoadOptions;

pub use tracefx_pt2::Limits;

/// The container of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PyTorch's archive.
    Pt2,
    /// The byte format of tracefx.
    Fxg,
}

impl Format {
    /// The format of these bytes, by how they begin.
    ///
    /// # Errors
    /// `ArchiveMalformed` where they are of neither; the message shows how they begin.
    pub fn of(bytes: &[u8]) -> Result<Self> {
        if bytes.starts_with(b"PK") {
            return Ok(Format::Pt2);
        }
        if bytes.starts_with(&tracefx_wire::format::MAGIC) {
            return Ok(Format::Fxg);
        }
        let start: String = bytes.iter().take(16).flat_map(|it| it.escape_ascii()).map(char::from).collect();
        let what = format!("the bytes are neither a .pt2 archive nor an .fxg file: they begin with \"{start}\"");
        let help = if bytes.starts_with(b"<") {
            "this looks like HTML: check the URL"
        } else {
            "save the program with torch.export.save"
        };
        Err(Diagnostic::new(Code::ArchiveMalformed, what).help(help))
    }

    /// The name that people know.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pt2 => "pt2",
            Format::Fxg => "fxg",
        }
    }
}

/// Reads a program of either format. No code of the file is run.
///
/// # Errors
/// A code of the archive or wire group: the bytes are damaged, hostile, or of a version that is not read here.
pub fn open(bytes: &[u8], limits: &Limits) -> Result<ExportedProgram> {
    open_with(bytes, &LoadOptions { limits: limits.clone(), ..LoadOptions::default() })
}

/// As [`open`], with the operators of the options.
pub(crate) fn open_with(bytes: &[u8], options: &LoadOptions) -> Result<ExportedProgram> {
    let limits = &options.limits;
    match Format::of(bytes)? {
        Format::Pt2 => tracefx_pt2::load(bytes, options),
        Format::Fxg => {
            let bounds = tracefx_wire::Limits {
                bytes: limits.archive_bytes,
                nodes: usize::try_from(limits.nodes).unwrap_or(usize::MAX),
                ..tracefx_wire::Limits::default()
            };
            tracefx_wire::decode_program(bytes, &[], &bounds)
        }
    }
}
