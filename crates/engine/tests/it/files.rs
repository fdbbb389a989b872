//! Files are written whole or not at all, and read within a limit.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_engine::{Limits, SaveOptions, open_file, read_file, save_to, write_file};

/// A folder of one test's own, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tracefx-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_file(path, |file| file.write_all(bytes).map_err(|it| Diagnostic::new(Code::Io, it.to_string())))
}

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs/cond_simple/model.pt2")
}

#[test]
fn a_file_is_written_and_another_one_replaced() {
    let folder = Folder::new("replaced");
    write(&folder.at("a"), b"first").unwrap();
    write(&folder.at("a"), b"2").unwrap();
    assert_eq!((fs::read(folder.at("a")).unwrap(), folder.names()), (b"2".to_vec(), vec!["a".to_string()]));
}

#[test]
fn what_fails_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new("fails");
    write(&folder.at("old"), b"precious").unwrap();
    for name in ["old", "new"] {
        let error = write_file(&folder.at(name), |file| {
            file.write_all(b"half").unwrap();
            Err(Diagnostic::new(Code::Io, "the disk is full"))
        });
        assert_eq!(error.unwrap_err().message(), "the disk is full");
    }
    assert_eq!((fs::read(folder.at("old")).unwrap(), folder.names()), (b"precious".to_vec(), vec!["old".to_string()]));
    assert_eq!(write(&folder.0, b"").unwrap_err().code(), Code::Io);
    assert_eq!(write(&folder.at("no/such/folder"), b"").unwrap_err().code(), Code::Io);
}

#[test]
fn a_program_that_cannot_be_saved_leaves_no_file() {
    let folder = Folder::new("unsaved");
    let mut program = open_file(&model(), &Limits::default()).unwrap();
    let bytes = save_to(&program, &folder.at("a.pt2"), &SaveOptions::default()).unwrap();
    assert_eq!(fs::metadata(folder.at("a.pt2")).unwrap().len(), bytes);
    program.signature.input_specs.pop();
    save_to(&program, &folder.at("b.pt2"), &SaveOptions::default()).unwrap_err();
    assert_eq!(folder.names(), ["a.pt2"]);
}

#[test]
fn longer_files_than_the_limit_are_refused_by_its_name() {
    let folder = Folder::new("limit");
    write(&folder.at("a"), &[7; 100]).unwrap();
    let read = |archive_bytes| read_file(&folder.at("a"), &Limits { archive_bytes, ..Limits::default() });
    assert_eq!(read(100).unwrap(), [7; 100]);
    let error = read(99).unwrap_err();
    assert_eq!((error.code(), error.message().contains("`archive_bytes` is 99")), (Code::LimitExceeded, true));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

    #[test]
    fn an_endless_device_is_refused() {
        let limits = Limits { stream_bytes: 5 << 20, ..Limits::default() };
        let error = read_file(Path::new("/dev/zero"), &limits).unwrap_err();
        assert!(error.message().contains("`stream_bytes` is 5242880"), "{error}");
        let error = open_file(Path::new("/dev/zero"), &Limits::default()).unwrap_err();
        assert_eq!(error.code(), Code::ArchiveMalformed);
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = Folder::new("pipe");
        let pipe = folder.at("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, fs::read(model()).unwrap()).unwrap()
        });
        let program = open_file(&pipe, &Limits::default()).unwrap();
        writer.join().unwrap();
        assert!(program.module.graph.nodes().count() > 3);
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(folder.names(), ["pipe"]);
    }

    #[test]
    fn permissions_are_kept() {
        let folder = Folder::new("mode");
        write(&folder.at("a"), b"1").unwrap();
        for mode in [0o600, 0o640, 0o755] {
            fs::set_permissions(folder.at("a"), fs::Permissions::from_mode(mode)).unwrap();
            write(&folder.at("a"), b"2").unwrap();
            assert_eq!(fs::metadata(folder.at("a")).unwrap().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = Folder::new("links");
        fs::create_dir(folder.at("data")).unwrap();
        symlink("data/target", folder.at("second")).unwrap();
        symlink(folder.at("second"), folder.at("first")).unwrap();
        for bytes in [b"1", b"2"] {
            write(&folder.at("first"), bytes).unwrap();
            assert_eq!(fs::read(folder.at("data/target")).unwrap(), bytes);
        }
        assert!(fs::symlink_metadata(folder.at("second")).unwrap().is_symlink());
        symlink("round", folder.at("round")).unwrap();
        assert!(write(&folder.at("round"), b"").unwrap_err().message().contains("links do not end"));
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
