//! Reading and writing files, with errors that name them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_engine::{Limits, Opening};
use tracefx_export::ExportedProgram;

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|problem| refused("read", path, &problem))
}

/// The program of a file, which is not read as a whole where it need not be.
pub(crate) fn open_program(path: &Path) -> Result<ExportedProgram> {
    let failed = |problem: io::Error| refused("read", path, &problem);
    let mut file = fs::File::open(path).map_err(failed)?;
    // A pipe has no places to read at.
    if !file.metadata().map_err(failed)?.is_file() {
        return tracefx_engine::open(&read(path)?, &Limits::default());
    }
    Opening::read(&mut file, &Limits::default())
}

/// Writes a file whole or not at all: an old file of this name stays as it was when writing fails.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| file.write_all(bytes).map_err(|problem| refused("write", path, &problem)))
}

/// Writes a file whole or not at all, with what `content` writes.
pub(crate) fn write_with(path: &Path, content: impl FnOnce(&mut fs::File) -> Result<()>) -> Result<()> {
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let failed = |problem: io::Error| refused("write", path, &problem);
    let write = || {
        let mut file = fs::File::create(&partial).map_err(failed)?;
        content(&mut file)?;
        file.sync_all().and_then(|()| fs::rename(&partial, path)).map_err(failed)
    };
    write().inspect_err(|_| {
        // There may be nothing to remove, when making the file was what failed.
        let _ = fs::remove_file(&partial);
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
