//! Reading and writing files, with errors that name them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use tracefx_core::{Code, Diagnostic, Result};

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|problem| refused("read", path, &problem))
}

/// Writes a file whole or not at all: an old file of this name stays as it was when writing fails.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let written = fs::File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    });
    written.map_err(|problem| {
        // There may be nothing to remove, when making the file was what failed.
        let _ = fs::remove_file(&partial);
        refused("write", path, &problem)
    })
}

fn refused(what: &str, path: &Path, problem: &io::Error) -> Diagnostic {
    let help = match problem.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check the file's permissions",
        _ => "check the disk and the path",
    };
    Diagnostic::new(Code::Io, format!("could not {what} {}: {problem}", path.display())).help(help)
}
