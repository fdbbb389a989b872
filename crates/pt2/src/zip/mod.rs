//! A strict reader of zip files.
//!
//! It accepts what PyTorch's and Python's writers make and little else, so that no two readers can see different things
//! in one file: the central directory is the truth, every local header must agree with it, and entries, directory and
//! end records must fill the file from its first byte to its last, without overlaps, gaps, a prefix, a suffix or an
//! archive comment. Entries are *stored*; deflated ones are refused unless they are allowed. It writes nothing to disk,
//! and names that a careless extractor would follow elsewhere are refused.
//!
//! The parsers see headers alone, so that a file in memory and one whose bytes come by ranges are read by the same code.

mod directory;
mod span;

use crate::LoadOptions;
use crate::limits::{Limits, exceeded};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Read;
use tracefx_core::allocate::{copied, io_problem};
use tracefx_core::{Code, Diagnostic, Result, Storage};

pub(crate) use directory::End;
pub(crate) use span::{LOCAL_HEADER, Span};

/// A zip file whose structure was checked; the bytes of an entry are checked when it is read.
pub(crate) struct Zip<'a> {
    entries: IndexMap<Box<str>, Entry<'a>>,
    inflated_bytes: u64,
    inflate_ratio: u64,
}

struct Entry<'a> {
    content: Content<'a>,
    deflated: bool,
    size: u64,
    crc: u32,
}

/// The bytes of an entry as they lie in the file.
pub(crate) enum Content<'a> {
    /// They did not come yet.
    Missing,
    Bytes(Cow<'a, [u8]>),
    /// Where they stay, since they are those of a tensor.
    Storage(Storage),
}

impl<'a> Zip<'a> {
    /// Checks the structure of a zip file.
    pub(crate) fn open(bytes: &'a [u8], options: &LoadOptions) -> Result<Self> {
        Limits::check("archive_bytes", options.limits.archive_bytes, bytes.len() as u64)?;
        if !End::is_at_end_of(bytes) {
            return Err(not_a_zip(bytes));
        }
        let end = End::read(bytes, bytes.len() as u64)?;
        // An end lies within the file, so that all that it names does.
        let spans = end.spans(&bytes[end.start as usize..end.end as usize], options)?;
        let mut zip = Zip::of(&spans, options)?;
        for span in &spans {
            zip.put(&span.name, Content::Bytes(Cow::Borrowed(entry_bytes(bytes, span)?)));
        }
        Ok(zip)
    }

    /// A zip file of these entries, whose bytes are still to come.
    pub(crate) fn of(spans: &[Span], options: &LoadOptions) -> Result<Self> {
        let limits = &options.limits;
        let mut entries = IndexMap::with_capacity(spans.len());
        let mut folded = HashSet::with_capacity(spans.len());
        for span in spans {
            // Directories carry no bytes; tools that repack archives add them.
            if span.name.ends_with('/') && span.packed == 0 && span.size == 0 {
                continue;
            }
            check_name(&span.name, limits)?;
            let entry =
                Entry { content: Content::Missing, deflated: span.is_deflated(), size: span.size, crc: span.crc };
            if entries.insert(span.name.clone(), entry).is_some() {
                return Err(malformed(format!("the zip file has two entries called {:?}", span.name)));
            }
            // PyTorch's reader does not tell them apart, and reads either.
            if !folded.insert(span.name.to_ascii_lowercase()) {
                let what =
                    format!("the zip file has two entries that differ in case only, {:?} and another", span.name);
                return Err(malformed(what));
            }
        }
        Ok(Zip { entries, inflated_bytes: limits.inflated_bytes, inflate_ratio: limits.inflate_ratio })
    }

    /// Gives an entry its bytes; a directory has none.
    pub(crate) fn put(&mut self, name: &str, content: Content<'a>) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.content = content;
        }
    }

    /// The names of the entries, in the order of the directory.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    /// Whether there is an entry of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The size of an entry as the directory states it; of a stored entry this is exact.
    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        self.entries.get(name).map(|it| it.size)
    }

    /// The bytes of an entry, after their checksum was compared.
    pub(crate) fn read(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        let entry = self.entry(name)?;
        let bytes = match &entry.content {
            Content::Missing => return Err(malformed(format!("the bytes of entry {name:?} are not here"))),
            Content::Bytes(packed) if entry.deflated => Cow::Owned(self.inflate(name, entry, packed)?),
            Content::Bytes(bytes) => Cow::Borrowed(&**bytes),
            Content::Storage(storage) => Cow::Owned(copied(storage.read().bytes())?),
        };
        entry.check_crc(name, &bytes)?;
        Ok(bytes)
    }

    /// The bytes of an entry as the memory of tensors, after their checksum was compared: those that came by ranges are
    /// there already.
    pub(crate) fn storage(&self, name: &str) -> Result<Storage> {
        let entry = self.entry(name)?;
        let Content::Storage(storage) = &entry.content else { return Storage::from_bytes(&self.read(name)?) };
        entry.check_crc(name, storage.read().bytes())?;
        Ok(storage.clone())
    }

    fn entry(&self, name: &str) -> Result<&Entry<'a>> {
        self.entries.get(name).ok_or_else(|| malformed(format!("the archive has no entry {name:?}")))
    }

    fn inflate(&self, name: &str, entry: &Entry<'a>, packed: &[u8]) -> Result<Vec<u8>> {
        Limits::check("inflated_bytes", self.inflated_bytes, entry.size)?;
        let by_ratio = (packed.len() as u64).saturating_mul(self.inflate_ratio);
        if entry.size > by_ratio {
            return Err(exceeded("inflate_ratio", self.inflate_ratio, format!("{} bytes of {name:?}", entry.size)));
        }
        let mut bytes = Vec::new();
        // One byte more than stated is enough to see that the statement is false.
        let mut reader = flate2::bufread::DeflateDecoder::new(packed).take(entry.size.saturating_add(1));
        reader
            .read_to_end(&mut bytes)
            .map_err(|error| io_problem(error, |error| malformed(format!("entry {name:?}: {error}"))))?;
        let rest = reader.into_inner().into_inner();
        if bytes.len() as u64 != entry.size || !rest.is_empty() {
            return Err(malformed(format!("entry {name:?} does not inflate to the {} bytes it states", entry.size)));
        }
        Ok(bytes)
    }
}

impl Entry<'_> {
    fn check_crc(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let crc = crc32fast::hash(bytes);
        if crc == self.crc {
            return Ok(());
        }
        Err(Diagnostic::new(
            Code::ArchiveChecksum,
            format!("entry {name:?} has the checksum {crc:08x}, but the directory says {:08x}", self.crc),
        )
        .help("the file is damaged; copy or export it again"))
    }
}

/// The bytes of an entry of a file in memory, around which everything is as the directory says.
fn entry_bytes<'a>(bytes: &'a [u8], span: &Span) -> Result<&'a [u8]> {
    let bytes = &bytes[span.start as usize..span.end as usize];
    // A span has room for a header.
    let (fixed, _) = bytes.split_first_chunk::<LOCAL_HEADER>().ok_or_else(|| malformed("a local header is cut off"))?;
    let (header, rest) = bytes.split_at(span.header_len(fixed)?);
    span.check_header(header)?;
    let (content, gap) = rest.split_at(span.packed as usize);
    span.check_gap(gap)?;
    Ok(content)
}

pub(crate) fn check_name(name: &str, limits: &Limits) -> Result<()> {
    Limits::check("name_bytes", limits.name_bytes, name.len() as u64)?;
    let is_plain = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if !is_plain || name.chars().any(|it| it == '\\' || it.is_control()) {
        return Err(malformed(format!("{name:?} is not a plain relative path")));
    }
    Ok(())
}

pub(crate) fn malformed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::ArchiveMalformed, message)
}

fn not_a_zip(bytes: &[u8]) -> Diagnostic {
    if bytes.windows(4).any(|it| it == b"PK\x05\x06") {
        return malformed("the zip file has a comment, or bytes after its end");
    }
    let error = malformed("this is not a whole zip file: it has no end record");
    if bytes.starts_with(b"PK\x03\x04") {
        return error.note("it begins like a zip file and has no end, so it was probably cut off");
    }
    let start = bytes[..bytes.len().min(8)].escape_ascii();
    error.note(format!("it begins with \"{start}\"")).help("give a file that torch.export.save wrote")
}
