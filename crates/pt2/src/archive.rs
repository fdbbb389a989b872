//! The entries of a `.pt2` file in any of PyTorch's three layouts. What is in them is read by `program`, `schema` and `pickle`.

use crate::limits::Limits;
use crate::zip::{Content, Zip};
use crate::{LoadOptions, schema};
use std::borrow::Cow;
use tracefx_core::{Code, Diagnostic, Result, Storage};

/// The three layouts in which PyTorch has written exported programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// PyTorch up to 2.7: a plain zip file without a root folder, its weights in one pickle.
    OldZip,
    /// PyTorch 2.8: a PT2 archive with its weights in one pickle per program.
    PickledWeights,
    /// PyTorch 2.9 and later: a PT2 archive with one entry per weight.
    RawWeights,
}

/// A `.pt2` file, open for looking inside. Nothing in it is run, and nothing of it is written to disk.
///
/// ```no_run
/// use tracefx_pt2::{Archive, LoadOptions};
/// let bytes = std::fs::read("model.pt2").unwrap();
/// let archive = Archive::open(&bytes, &LoadOptions::default()).unwrap();
/// for name in archive.entries() {
///     println!("{name}");
/// }
/// ```
pub struct Archive<'a> {
    zip: Zip<'a>,
    root: String,
    container: Container,
    limits: Limits,
    /// The chosen program, where it was read already.
    parsed: Option<schema::ExportedProgram>,
}

const OLD_PROGRAM: &str = "serialized_exported_program.json";

impl<'a> Archive<'a> {
    /// Checks the structure of the file and finds out which container it is.
    ///
    /// # Errors
    /// `ArchiveMalformed`, `ArchiveCompressed` and `LimitExceeded` for a file whose structure is not to be trusted,
    /// `ArchiveWrongKind` for one that holds no exported program.
    pub fn open(bytes: &'a [u8], options: &LoadOptions) -> Result<Self> {
        let mut archive = Archive::of(Zip::open(bytes, options)?, options);
        archive.detect()?;
        Ok(archive)
    }

    /// An archive of which nothing was looked at but the directory.
    pub(crate) fn of(zip: Zip<'a>, options: &LoadOptions) -> Self {
        let root = zip.names().next().and_then(|name| name.split_once('/')).map_or("", |(root, _)| root).to_string();
        Archive { zip, root, container: Container::RawWeights, limits: options.limits.clone(), parsed: None }
    }

    /// Gives an entry its bytes.
    pub(crate) fn put(&mut self, name: &str, content: Content<'a>) {
        self.zip.put(name, content);
    }

    /// Finds out which container this is.
    pub(crate) fn detect(&mut self) -> Result<()> {
        self.container = self.detected()?;
        Ok(())
    }

    /// Reads the program that is chosen, for who will ask for it.
    pub(crate) fn parse(&mut self, options: &LoadOptions) -> Result<()> {
        self.parsed = Some(self.program(options)?);
        Ok(())
    }

    /// The program that is chosen, once.
    pub(crate) fn take_program(&mut self, options: &LoadOptions) -> Result<schema::ExportedProgram> {
        self.parsed.take().map_or_else(|| self.program(options), Ok)
    }

    fn program(&self, options: &LoadOptions) -> Result<schema::ExportedProgram> {
        let entry = match self.container {
            Container::OldZip => OLD_PROGRAM.to_string(),
            Container::PickledWeights | Container::RawWeights => format!("models/{}.json", self.choose(options)?),
        };
        schema::ExportedProgram::from_json(&self.text_in_root(&entry)?, &options.limits)
    }

    /// The name of the program that is to be loaded.
    pub(crate) fn choose(&self, options: &LoadOptions) -> Result<&str> {
        let (names, wanted) = (self.program_names(), options.model.as_deref());
        let found = match wanted {
            Some(wanted) => names.iter().find(|it| **it == wanted),
            None => names.iter().find(|it| **it == "model").or(names.first().filter(|_| names.len() == 1)),
        };
        found.copied().ok_or_else(|| {
            let what = match wanted {
                Some(wanted) => format!("the archive holds no program called {wanted:?}"),
                None => "the archive holds several programs, and none is called \"model\"".to_string(),
            };
            Diagnostic::new(Code::InvalidOption, what).help(format!("choose one of {}", names.join(", ")))
        })
    }

    /// Which layout the archive has.
    pub fn container(&self) -> Container {
        self.container
    }

    /// The names of all entries, with their root folder, as the directory lists them.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.zip.names()
    }

    /// The bytes of an entry, after their checksum was compared. The name is one of [`Archive::entries`].
    ///
    /// # Errors
    /// `ArchiveMalformed` when there is no such entry, `ArchiveChecksum` when its bytes were changed.
    pub fn read(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        self.zip.read(name)
    }

    /// The names of the programs in the archive. A container of PyTorch up to 2.7 holds one, `model`.
    pub fn program_names(&self) -> Vec<&str> {
        if self.container == Container::OldZip {
            return vec!["model"];
        }
        let programs = self.zip.names().filter_map(|name| {
            self.in_root(name)?.strip_prefix("models/")?.strip_suffix(".json").filter(|name| !name.contains('/'))
        });
        programs.collect()
    }

    /// The names of the files that the user added when saving, without the folder they lie in.
    pub fn extra_file_names(&self) -> Vec<&str> {
        let folder = if self.container == Container::OldZip { "extra_files/" } else { "extra/" };
        self.zip.names().filter_map(|name| self.in_root(name)?.strip_prefix(folder)).collect()
    }

    /// The bytes of a file that the user added when saving.
    ///
    /// # Errors
    /// `ArchiveMalformed` when there is no such file, `ArchiveChecksum` when its bytes were changed.
    pub fn extra_file(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        let folder = if self.container == Container::OldZip { "extra_files" } else { "extra" };
        self.read_in_root(&format!("{folder}/{name}"))
    }

    /// The bytes of an entry named relative to the root folder.
    pub(crate) fn read_in_root(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        self.zip.read(&self.full_name(name))
    }

    /// The bytes of an entry named relative to the root folder, as the memory of tensors.
    pub(crate) fn storage_in_root(&self, name: &str) -> Result<Storage> {
        self.zip.storage(&self.full_name(name))
    }

    pub(crate) fn contains_in_root(&self, name: &str) -> bool {
        self.zip.contains(&self.full_name(name))
    }

    /// A JSON document or another text, relative to the root folder.
    pub(crate) fn text_in_root(&self, name: &str) -> Result<Cow<'_, str>> {
        let size = self.zip.size(&self.full_name(name)).unwrap_or(0);
        Limits::check("json_bytes", self.limits.json_bytes, size)?;
        let text = match self.read_in_root(name)? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
        };
        text.ok_or_else(|| {
            Diagnostic::new(Code::ArchiveMalformed, format!("entry {:?} is not UTF-8", self.full_name(name)))
        })
    }

    fn full_name(&self, name: &str) -> String {
        if self.root.is_empty() { name.to_string() } else { format!("{}/{name}", self.root) }
    }

    fn in_root<'n>(&self, name: &'n str) -> Option<&'n str> {
        if self.root.is_empty() { Some(name) } else { name.strip_prefix(&*self.root)?.strip_prefix('/') }
    }

    fn detected(&mut self) -> Result<Container> {
        if !self.root.is_empty() && self.contains_in_root("archive_format") {
            return self.detect_pt2();
        }
        if self.zip.contains(OLD_PROGRAM) {
            self.root.clear();
            return Ok(Container::OldZip);
        }
        if self.contains_in_root("data.pkl") {
            let is_script = self.zip.names().any(|name| self.in_root(name).is_some_and(|it| it.starts_with("code/")));
            let (what, help) = if is_script {
                ("a TorchScript file", "export the model with torch.export.export and save it with torch.export.save")
            } else {
                ("a file of torch.save, which holds no graph", "save an exported program with torch.export.save")
            };
            return Err(wrong_kind(format!("this is {what}")).help(help));
        }
        Err(wrong_kind("this zip file holds no exported program")
            .note(format!("it has neither `archive_format` in a root folder nor `{OLD_PROGRAM}`"))
            .help("give a file that torch.export.save wrote"))
    }

    fn detect_pt2(&self) -> Result<Container> {
        let format = self.text_in_root("archive_format")?;
        if format.trim() != "pt2" {
            return Err(wrong_kind(format!("the archive's format is {format:?}, not \"pt2\"")));
        }
        let version = self.text_in_root("archive_version")?;
        if version.trim() != "0" {
            return Err(Diagnostic::new(
                Code::SchemaVersion,
                format!("the archive's version is {:?}, and this reader knows \"0\"", version.trim()),
            )
            .help("export the program again with a PyTorch from 2.6 to 2.15, or update tracefx"));
        }
        if self.contains_in_root("byteorder") {
            check_byteorder(&self.text_in_root("byteorder")?)?;
        }
        let programs = self.program_names();
        let Some(first) = programs.first() else {
            let compiled = self.zip.names().filter_map(|name| self.in_root(name));
            return Err(if compiled.into_iter().any(|name| name.starts_with("data/aotinductor/")) {
                wrong_kind("this is a compiled AOTInductor package, with no graph inside")
                    .help("save the program itself with torch.export.save")
            } else {
                wrong_kind("the archive holds no program: there is no `models/*.json`")
            });
        };
        let is_raw = self.contains_in_root(&format!("data/weights/{first}_weights_config.json"));
        Ok(if is_raw { Container::RawWeights } else { Container::PickledWeights })
    }
}

/// Refuses data of big-endian machines; whoever reads raw weights must know.
pub(crate) fn check_byteorder(text: &str) -> Result<()> {
    if text.trim() == "little" {
        return Ok(());
    }
    Err(wrong_kind(format!("the archive's byte order is {:?}; only \"little\" is read", text.trim()))
        .help("save the program on a little-endian machine"))
}

fn wrong_kind(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::ArchiveWrongKind, message)
}
