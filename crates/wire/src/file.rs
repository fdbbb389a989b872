//! The header and the section table.

use crate::Limits;
use crate::cursor::Cursor;
use crate::format::{
    ALIGNMENT, CHECKSUM_AT, CRITICAL, ENTRY_LEN, HAS_CHECKSUM, HEADER_LEN, MAGIC, MAJOR, MINOR, PLAN, Tag, WIDE,
    WIDE_ALIGNMENT,
};
use tracefx_core::{Code, Diagnostic, Result, Storage};

/// A part of a section; each begins at the section's alignment.
#[derive(Debug)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    /// The bytes of a storage, which are copied only when the file is put together.
    Storage(Storage),
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Part::Bytes(bytes) => bytes.len(),
            Part::Storage(storage) => storage.len(),
        }
    }
}

/// The sections of a file that is being written.
#[derive(Debug, Default)]
pub(crate) struct FileWriter {
    sections: Vec<(Tag, Vec<Part>)>,
    plan: Option<Vec<u8>>,
}

impl FileWriter {
    /// Adds a section; those of one kind stay in order.
    pub(crate) fn section(&mut self, tag: Tag, bytes: Vec<u8>) {
        self.parts(tag, vec![Part::Bytes(bytes)]);
    }

    /// Adds a section that has several parts.
    pub(crate) fn parts(&mut self, tag: Tag, parts: Vec<Part>) {
        self.sections.push((tag, parts));
    }

    /// Adds the section of saved plans, behind all others: readers of graphs skip it.
    pub(crate) fn plan(&mut self, bytes: Vec<u8>) {
        self.plan = Some(bytes);
    }

    /// The file.
    pub(crate) fn finish(mut self, has_checksum: bool) -> Result<Vec<u8>> {
        self.sections.sort_by_key(|(tag, _)| *tag);
        let known = self.sections.into_iter().map(|(tag, parts)| ((tag.code(), tag.flags()), parts));
        let plan = self.plan.map(|bytes| ((u32::from_le_bytes(PLAN), 0), vec![Part::Bytes(bytes)]));
        let sections: Vec<((u32, u32), Vec<Part>)> = known.chain(plan).collect();
        let mut end = HEADER_LEN + ENTRY_LEN * sections.len();
        let mut table = Vec::new();
        for ((code, flags), parts) in &sections {
            let alignment = alignment(*flags);
            let offset = end.next_multiple_of(alignment);
            end = parts.iter().fold(offset, |end, part| end.next_multiple_of(alignment) + part.len());
            table.extend(code.to_le_bytes());
            table.extend(flags.to_le_bytes());
            table.extend((offset as u64).to_le_bytes());
            table.extend(((end - offset) as u64).to_le_bytes());
        }
        let mut file = Vec::new();
        file.try_reserve_exact(end).map_err(|_| Diagnostic::out_of_memory(end))?;
        let n_sections = u32::try_from(sections.len()).expect("a file has as many sections as graphs, and a few");
        file.extend(MAGIC);
        file.extend(MAJOR.to_le_bytes());
        file.extend(MINOR.to_le_bytes());
        file.extend(n_sections.to_le_bytes());
        file.extend((if has_checksum { HAS_CHECKSUM } else { 0 }).to_le_bytes());
        file.extend((end as u64).to_le_bytes());
        file.extend([0; HEADER_LEN - CHECKSUM_AT]);
        file.extend(table);
        for ((_, flags), parts) in &sections {
            let alignment = alignment(*flags);
            file.resize(file.len().next_multiple_of(alignment), 0);
            for part in parts {
                file.resize(file.len().next_multiple_of(alignment), 0);
                match part {
                    Part::Bytes(bytes) => file.extend_from_slice(bytes),
                    Part::Storage(storage) => file.extend_from_slice(storage.read().bytes()),
                }
            }
        }
        if has_checksum {
            let checksum = crc32fast::hash(&file);
            file[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        }
        Ok(file)
    }
}

/// What the section table says of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The four letters, as a little-endian word.
    pub code: u32,
    /// The flags.
    pub flags: u32,
    /// Where it begins.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
}

impl Section {
    /// The kind, where this version knows it.
    pub fn tag(&self) -> Option<Tag> {
        Tag::from_code(self.code)
    }
}

/// The header and the section table of a file, checked: what can be said of a file without decoding it.
///
/// ```
/// use tracefx_wire::{Limits, Options, Outline, encode_graph};
/// let file = encode_graph(&tracefx_ir::Graph::new(), &Options::FILE).unwrap();
/// let outline = Outline::read(&file, &Limits::default()).unwrap();
/// let names: Vec<&str> = outline.sections.iter().map(|it| it.tag().unwrap().name()).collect();
/// assert_eq!((outline.version, names), ((1, 0), vec!["STRS", "GRPH"]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Major and minor version of the writer.
    pub version: (u16, u16),
    /// Whether the file has a checksum.
    pub has_checksum: bool,
    /// The sections in order. Unknown ones are among them, and none of them is critical.
    pub sections: Vec<Section>,
}

impl Outline {
    /// Reads and checks the header, the section table, the bytes between the sections and the checksum.
    ///
    /// # Errors
    /// `WireVersion` where the file needs a newer reader, `WireMalformed` where it breaks a rule of the format,
    /// `LimitExceeded` where it is larger than allowed.
    pub fn read(file: &[u8], limits: &Limits) -> Result<Outline> {
        if file.len() as u64 > limits.bytes {
            let what = format!("the file has {} bytes, and {} are allowed", file.len(), limits.bytes);
            return Err(Diagnostic::new(Code::LimitExceeded, what));
        }
        let magic = file.get(..MAGIC.len()).unwrap_or(file);
        if magic != MAGIC {
            return Err(malformed(0, "the bytes are not in the tracefx format")
                .help("give the bytes of an .fxg file: `tracefx compile` writes one of a .pt2 file"));
        }
        let word = |at: usize| match file.get(at..).and_then(<[u8]>::first_chunk::<4>) {
            Some(chunk) => Ok(u32::from_le_bytes(*chunk)),
            None => Err(malformed(file.len(), "the file ends early")),
        };
        let size = |at: usize| Ok::<u64, Diagnostic>(u64::from(word(at)?) | u64::from(word(at + 4)?) << 32);
        let version = (word(4)? as u16, (word(4)? >> 16) as u16);
        if version.0 != MAJOR {
            let what =
                format!("the file is in version {}.{} of the format, and this reads {MAJOR}", version.0, version.1);
            return Err(Diagnostic::new(Code::WireVersion, what).help("update tracefx, or save the file again"));
        }
        let n_sections = word(8)? as usize;
        let flags = word(12)?;
        let total_len = size(16)?;
        let checksum = word(CHECKSUM_AT)?;
        if flags & !HAS_CHECKSUM != 0 {
            return Err(Diagnostic::new(Code::WireVersion, format!("header at byte 12: unknown flags {flags:#x}")));
        }
        let has_checksum = flags & HAS_CHECKSUM != 0;
        if word(28)? != 0 || (!has_checksum && checksum != 0) {
            return Err(malformed(CHECKSUM_AT, "unused words are not zero"));
        }
        if total_len != file.len() as u64 {
            let what = format!("the file says that it has {total_len} bytes, and there are {}", file.len());
            return Err(malformed(16, what));
        }
        if n_sections > (file.len() - HEADER_LEN) / ENTRY_LEN {
            return Err(malformed(8, format!("{n_sections} sections do not fit the file")));
        }
        if has_checksum && checksum != checksum_of(file) {
            return Err(malformed(CHECKSUM_AT, "the checksum does not agree with the bytes: the file is damaged"));
        }
        let mut outline = Outline { version, has_checksum, sections: Vec::with_capacity(n_sections) };
        let mut end = HEADER_LEN + ENTRY_LEN * n_sections;
        let mut last_tag = None;
        for at in (HEADER_LEN..end).step_by(ENTRY_LEN) {
            let (code, flags) = (word(at)?, word(at + 4)?);
            let (offset, len) = (size(at + 8)?, size(at + 16)?);
            let tag = check_flags(at, code, flags)?;
            if let Some(tag) = tag {
                if last_tag > Some(tag) || (last_tag == Some(tag) && tag != Tag::Grph) {
                    return Err(malformed(at, format!("section {tag} is there twice or in a wrong place")));
                }
                last_tag = Some(tag);
            }
            // Sections follow each other without holes, so that none overlaps and no bytes are hidden between them.
            let start = end.next_multiple_of(alignment(flags));
            if offset != start as u64 {
                return Err(malformed(at + 8, format!("a section begins at {offset}, and {start} was expected")));
            }
            let between = file.get(end..start).ok_or_else(|| malformed(at + 8, "a section begins after the file"))?;
            if between.iter().any(|&it| it != 0) {
                return Err(malformed(end, "the bytes between two sections are not zero"));
            }
            let room = file.len() - start;
            let len = usize::try_from(len).ok().filter(|&len| len <= room).ok_or_else(|| {
                malformed(at + 16, format!("a section has {len} bytes, and there are {room} after its beginning"))
            })?;
            end = start + len;
            outline.sections.push(Section { code, flags, offset: start, len });
        }
        if end != file.len() {
            return Err(malformed(end, format!("{} bytes follow the last section", file.len() - end)));
        }
        Ok(outline)
    }

    /// The section of saved plans.
    pub(crate) fn plan<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let found = self.sections.iter().find(|it| it.code.to_le_bytes() == PLAN)?;
        Some(&file[found.offset..found.offset + found.len])
    }

    /// Whether there are sections that this version does not know.
    pub(crate) fn has_unknown(&self) -> bool {
        self.sections.iter().any(|it| it.tag().is_none())
    }

    /// The sections of a kind.
    pub(crate) fn cursors<'a>(&self, file: &'a [u8], tag: Tag) -> Vec<Cursor<'a>> {
        let found = self.sections.iter().filter(|it| it.code == tag.code());
        found.map(|it| Cursor::new(tag, it.offset, &file[it.offset..it.offset + it.len])).collect()
    }

    /// The section of a kind that is there once at most.
    pub(crate) fn cursor<'a>(&self, file: &'a [u8], tag: Tag) -> Option<Cursor<'a>> {
        self.cursors(file, tag).pop()
    }
}

fn check_flags(at: usize, code: u32, flags: u32) -> Result<Option<Tag>> {
    let tag = Tag::from_code(code);
    match tag {
        Some(tag) if flags != tag.flags() => Err(malformed(at + 4, format!("section {tag} has the flags {flags:#x}"))),
        Some(_) => Ok(tag),
        None if flags & !WIDE != 0 => {
            let what = match flags & CRITICAL {
                0 => format!("section {} has unknown flags {flags:#x}", letters(code)),
                _ => format!("the file needs section {}, which this version does not know", letters(code)),
            };
            Err(Diagnostic::new(Code::WireVersion, what).help("update tracefx"))
        }
        None => Ok(None),
    }
}

fn letters(code: u32) -> String {
    code.to_le_bytes().escape_ascii().to_string()
}

fn alignment(flags: u32) -> usize {
    if flags & WIDE != 0 { WIDE_ALIGNMENT } else { ALIGNMENT }
}

/// The checksum of a file, in which its own four bytes count as zeros.
fn checksum_of(file: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&file[..CHECKSUM_AT]);
    hasher.update(&[0; 4]);
    hasher.update(&file[CHECKSUM_AT + 4..]);
    hasher.finalize()
}

fn malformed(at: usize, what: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::WireMalformed, format!("header at byte {at}: {}", what.into()))
}
