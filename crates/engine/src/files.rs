//! Files: read within a limit, and written whole or not at all.

use crate::open::open_with;
use crate::{ArchiveWriter, Format, Limits, Opening, SaveOptions};
use std::collections::hash_map::RandomState;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tracefx_core::{Code, Diagnostic, Result, allocate};
use tracefx_export::ExportedProgram;
use tracefx_pt2::LoadOptions;

/// How much of a file is read at once.
const PIECE: usize = 1 << 20;
/// How many links a path may go through.
const LINKS: usize = 40;

/// The bytes of a file: at most `archive_bytes` of a regular file, and `stream_bytes` of a pipe or device, whose length
/// nobody knows.
///
/// # Errors
/// `Io` where it cannot be read, `LimitExceeded` where it is longer.
pub fn read_file(path: &Path, limits: &Limits) -> Result<Vec<u8>> {
    let failed = |problem: io::Error| refused("read", path, &problem);
    let mut file = File::open(path).map_err(failed)?;
    let is_regular = file.metadata().map_err(failed)?.is_file();
    read_within(&mut file, path, Vec::new(), is_regular, limits)
}

/// Opens the program of a file, which is not read as a whole where it need not be.
///
/// # Errors
/// As [`read_file`] and [`open`](crate::open()). What is no program is refused by its first bytes.
pub fn open_file(path: &Path, limits: &Limits) -> Result<ExportedProgram> {
    open_file_with(path, LoadOptions { limits: limits.clone(), ..LoadOptions::default() })
}

/// As [`open_file`], with the operators of the options.
pub(crate) fn open_file_with(path: &Path, options: LoadOptions) -> Result<ExportedProgram> {
    let failed = |problem: io::Error| refused("read", path, &problem);
    let mut file = File::open(path).map_err(failed)?;
    // A pipe has no places to read at.
    if file.metadata().map_err(failed)?.is_file() {
        return Opening::read_with(&mut file, options);
    }
    let mut start = Vec::new();
    (&mut file).take(16).read_to_end(&mut start).map_err(failed)?;
    Format::of(&start)?;
    open_with(&read_within(&mut file, path, start, false, &options.limits)?, &options)
}

fn read_within(file: &mut File, path: &Path, mut bytes: Vec<u8>, is_regular: bool, limits: &Limits) -> Result<Vec<u8>> {
    let failed = |problem: io::Error| refused("read", path, &problem);
    let (name, limit) = match is_regular {
        true => ("archive_bytes", limits.archive_bytes),
        false => ("stream_bytes", limits.stream_bytes),
    };
    if is_regular {
        let len = file.metadata().map_err(failed)?.len();
        Limits::check(name, limit, len)?;
        allocate::reserve(&mut bytes, usize::try_from(len).unwrap_or(usize::MAX))?;
    }
    let mut buffer = allocate::filled(0, PIECE)?;
    loop {
        // One more, which tells of a file that is longer.
        let room = (limit - bytes.len() as u64).saturating_add(1).min(PIECE as u64) as usize;
        let n = match file.read(&mut buffer[..room]) {
            Ok(0) => return Ok(bytes),
            Ok(n) => n,
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => continue,
            Err(problem) => return Err(failed(problem)),
        };
        Limits::check(name, limit, (bytes.len() + n) as u64)?;
        allocate::extend(&mut bytes, &buffer[..n])?;
    }
}

/// Writes a file with what `content` writes, whole or not at all: until all of it is on the disk, an old file of this name
/// stays as it was, and then its permissions are those of the new one. Links are followed and stay. A device or a pipe is
/// written to as it is.
///
/// ```
/// use std::io::Write;
/// use tracefx_core::{Code, Diagnostic};
/// let path = std::env::temp_dir().join(format!("written-{}", std::process::id()));
/// let io = |problem: std::io::Error| Diagnostic::new(Code::Io, problem.to_string());
/// tracefx_engine::write_file(&path, |file| file.write_all(b"new").map_err(io)).unwrap();
/// # std::fs::remove_file(path).unwrap();
/// ```
///
/// # Errors
/// `Io` where it cannot be written; what `content` gives.
pub fn write_file(path: &Path, content: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let failed = |problem: io::Error| refused("write", path, &problem);
    let target = followed(path).map_err(failed)?;
    let old = match fs::metadata(&target) {
        Ok(old) => Some(old),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => None,
        Err(problem) => return Err(failed(problem)),
    };
    if old.as_ref().is_some_and(Metadata::is_dir) {
        return Err(failed(io::Error::other("it is a folder")));
    }
    if old.as_ref().is_some_and(|it| !it.is_file()) {
        let mut file = OpenOptions::new().write(true).open(&target).map_err(failed)?;
        content(&mut file)?;
        return file.flush().map_err(failed);
    }
    // What may not be written may not be replaced either.
    if old.is_some() {
        OpenOptions::new().write(true).open(&target).map_err(failed)?;
    }
    let (partial, mut file) = partial_file(&target, old.is_some()).map_err(failed)?;
    let write = || {
        content(&mut file)?;
        if let Some(old) = &old {
            take_over(&file, &partial, old).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        drop(file);
        fs::rename(&partial, &target).map_err(failed)
    };
    write().inspect_err(|_| {
        // What cannot be removed either is not what went wrong.
        let _ = fs::remove_file(&partial);
    })?;
    sync_folder(&target);
    Ok(())
}

/// Saves a program as an archive of PyTorch, as [`write_file`] writes, and gives the number of bytes.
///
/// # Errors
/// As there, and what [`save`](crate::save) refuses.
pub fn save_to(program: &ExportedProgram, path: &Path, options: &SaveOptions<'_>) -> Result<u64> {
    let mut archive = ArchiveWriter::new(program, options)?;
    write_file(path, |file| archive.write_to(file))?;
    Ok(archive.len())
}

/// Where a path leads, through links: the last of them may lead to what is not there yet.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::symlink_metadata(&target) {
            Ok(it) if it.is_symlink() => target = folder_of(&target).join(fs::read_link(&target)?),
            Ok(_) => return Ok(target),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(problem) => return Err(problem),
        }
    }
    Err(io::Error::other("its links do not end"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that was not there, in the folder of the target, under a name that nobody can know before.
fn partial_file(target: &Path, is_private: bool) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        // Whoever may not read the old file may not read the new one while it comes.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    for _ in 0..16 {
        // The keys of a `RandomState` come from the system's source of chance.
        let (a, b) = (RandomState::new().build_hasher().finish(), RandomState::new().build_hasher().finish());
        let partial = folder_of(target).join(format!(".tracefx-{a:016x}{b:016x}.partial"));
        match options.open(&partial) {
            Ok(file) => return Ok((partial, file)),
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(io::Error::other("no name for a file beside it is free"))
}

/// Gives a new file the owner and the permissions of the old one.
fn take_over(file: &File, partial: &Path, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only root can; a file that is writable for others may belong to its writer then.
            let _ = chown(partial, Some(old.uid()), Some(old.gid()));
        }
    }
    #[cfg(not(unix))]
    let _ = partial;
    file.set_permissions(old.permissions())
}

/// Puts the new name on the disk, too, where the system can.
fn sync_folder(target: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder_of(target)) {
        // The file is there; whether its name outlives a loss of power is all that this is about.
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = target;
}

fn refused(what: &str, path: &Path, problem: &io::Error) -> Diagnostic {
    let help = match problem.kind() {
        io::ErrorKind::NotFound if what == "write" => "make the folder first, or check the path",
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check the file's permissions",
        _ => "check the disk and the path",
    };
    Diagnostic::new(Code::Io, format!("could not {what} {}: {problem}", path.display())).help(help)
}
