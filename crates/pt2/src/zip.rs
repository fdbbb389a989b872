//! A strict reader of zip files in memory.
//!
//! It accepts what PyTorch's and Python's writers make and little else, so that no two readers can see different things
//! in one file: the central directory is the truth, every local header must agree with it, and entries, directory and
//! end records must fill the file from its first byte to its last, without overlaps, gaps, a prefix, a suffix or an
//! archive comment. Entries are *stored*; deflated ones are refused unless they are allowed. It writes nothing to disk,
//! and names that a careless extractor would follow elsewhere are refused.

use crate::LoadOptions;
use crate::limits::{Limits, exceeded};
use indexmap::IndexMap;
use rawzip::{CompressionMethod, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive};
use std::borrow::Cow;
use std::io::Read;
use tracefx_core::{Code, Diagnostic, Result};

const END_RECORD: usize = 22;
const ZIP64_RECORD: usize = 56;
const ZIP64_LOCATOR: usize = 20;
const CENTRAL_HEADER: u64 = 46;

/// A zip file whose structure was checked; the bytes of an entry are checked when it is read.
pub(crate) struct Zip<'a> {
    entries: IndexMap<&'a str, Entry<'a>>,
    inflated_bytes: u64,
    inflate_ratio: u64,
}

struct Entry<'a> {
    /// The bytes as they lie in the file.
    bytes: &'a [u8],
    deflated: bool,
    size: u64,
    crc: u32,
}

impl<'a> Zip<'a> {
    /// Checks the structure of a zip file.
    pub(crate) fn open(bytes: &'a [u8], options: &LoadOptions) -> Result<Self> {
        let limits = &options.limits;
        Limits::check("archive_bytes", limits.archive_bytes, bytes.len() as u64)?;
        let archive = ZipArchive::from_slice(bytes).map_err(|error| not_a_zip(bytes, &error))?;
        if archive.eocd_offset().checked_add(END_RECORD as u64) != Some(bytes.len() as u64) {
            return Err(malformed("the zip file has a comment, or bytes after its end"));
        }
        let mut spans: Vec<Span<'a>> = Vec::new();
        let mut directory_end = archive.directory_offset();
        let mut records = archive.entries();
        while let Some(record) = records.next_entry().map_err(|error| malformed(format!("zip directory: {error}")))? {
            Limits::check("entries", limits.entries, spans.len() as u64 + 1)?;
            directory_end = record.central_directory_offset()
                + CENTRAL_HEADER
                + record.file_path().len() as u64
                + record.extra_fields().remaining_bytes().len() as u64
                + record.comment().as_bytes().len() as u64;
            Limits::check("directory_bytes", limits.directory_bytes, directory_end - archive.directory_offset())?;
            spans.push(Span::read(&archive, &record, options)?);
        }
        check_end_records(bytes, archive.directory_offset(), directory_end, spans.len() as u64)?;
        check_tiling(bytes, &mut spans.iter().collect::<Vec<_>>(), archive.directory_offset())?;

        let mut entries = IndexMap::with_capacity(spans.len());
        for span in spans {
            // Directories carry no bytes; tools that repack archives add them.
            if span.name.ends_with('/') && span.entry.bytes.is_empty() && span.entry.size == 0 {
                continue;
            }
            check_name(span.name, limits)?;
            if entries.insert(span.name, span.entry).is_some() {
                return Err(malformed(format!("the zip file has two entries called {:?}", span.name)));
            }
        }
        Ok(Zip { entries, inflated_bytes: limits.inflated_bytes, inflate_ratio: limits.inflate_ratio })
    }

    /// The names of the entries, in the order of the directory.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.entries.keys().copied()
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
    pub(crate) fn read(&self, name: &str) -> Result<Cow<'a, [u8]>> {
        let Some(entry) = self.entries.get(name) else {
            return Err(malformed(format!("the archive has no entry {name:?}")));
        };
        let bytes = if entry.deflated { Cow::Owned(self.inflate(name, entry)?) } else { Cow::Borrowed(entry.bytes) };
        let crc = crc32fast::hash(&bytes);
        if crc != entry.crc {
            return Err(Diagnostic::new(
                Code::ArchiveChecksum,
                format!("entry {name:?} has the checksum {crc:08x}, but the directory says {:08x}", entry.crc),
            )
            .help("the file is damaged; copy or export it again"));
        }
        Ok(bytes)
    }

    fn inflate(&self, name: &str, entry: &Entry<'a>) -> Result<Vec<u8>> {
        Limits::check("inflated_bytes", self.inflated_bytes, entry.size)?;
        let by_ratio = (entry.bytes.len() as u64).saturating_mul(self.inflate_ratio);
        if entry.size > by_ratio {
            return Err(exceeded("inflate_ratio", self.inflate_ratio, format!("{} bytes of {name:?}", entry.size)));
        }
        let mut bytes = Vec::new();
        // One byte more than stated is enough to see that the statement is false.
        let mut reader = flate2::bufread::DeflateDecoder::new(entry.bytes).take(entry.size.saturating_add(1));
        reader.read_to_end(&mut bytes).map_err(|error| malformed(format!("entry {name:?}: {error}")))?;
        let rest = reader.into_inner().into_inner();
        if bytes.len() as u64 != entry.size || !rest.is_empty() {
            return Err(malformed(format!("entry {name:?} does not inflate to the {} bytes it states", entry.size)));
        }
        Ok(bytes)
    }
}

/// An entry and the bytes of the file that belong to it.
struct Span<'a> {
    name: &'a str,
    entry: Entry<'a>,
    start: u64,
    data_end: u64,
    has_descriptor: bool,
}

impl<'a> Span<'a> {
    fn read(
        archive: &ZipSliceArchive<&'a [u8]>,
        record: &ZipFileHeaderRecord<'_>,
        options: &LoadOptions,
    ) -> Result<Self> {
        let bytes: &'a [u8] = archive.get_ref();
        let name_start = (record.central_directory_offset() + CENTRAL_HEADER) as usize;
        let raw_name = &bytes[name_start..name_start + record.file_path().len()];
        let name = std::str::from_utf8(raw_name)
            .map_err(|_| malformed(format!("an entry's name is not UTF-8: {}", raw_name.escape_ascii())))?;
        let flags = record.flags();
        if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
            return Err(malformed(format!("entry {name:?} is encrypted")));
        }
        let method = record.compression_method();
        let deflated = method == CompressionMethod::DEFLATE;
        if deflated && !options.allow_deflate {
            return Err(Diagnostic::new(Code::ArchiveCompressed, format!("entry {name:?} is compressed"))
                .note("PyTorch stores entries without compression")
                .help("if you trust the file, load it with `allow_deflate`"));
        }
        if !deflated && method != CompressionMethod::STORE {
            return Err(Diagnostic::new(
                Code::ArchiveCompressed,
                format!("entry {name:?} uses compression method {}", method.as_u16()),
            )
            .note("only stored entries, and deflated ones where they are allowed, can be read"));
        }
        let (packed, size) = (record.compressed_size_hint(), record.uncompressed_size_hint());
        if !deflated && packed != size {
            return Err(malformed(format!("entry {name:?} is stored, but states two sizes: {packed} and {size}")));
        }
        let local = archive.get_entry(record.wayfinder()).map_err(|error| {
            malformed(format!("entry {name:?} lies outside the file, or has no local header: {error}"))
        })?;
        let (data_start, data_end) = local.compressed_data_range();
        let header = local.local_header();
        let agrees = |local: u64, central: u64| local == central || (flags.has_data_descriptor() && local == 0);
        if header.file_path().as_bytes() != raw_name
            || header.flags() != flags
            || header.compression_method() != method
            || !agrees(u64::from(header.crc32()), u64::from(record.crc32()))
            || !agrees(header.compressed_size_hint(), packed)
            || !agrees(header.uncompressed_size_hint(), size)
        {
            return Err(malformed(format!("the local header of entry {name:?} contradicts the zip directory")));
        }
        Ok(Span {
            name,
            entry: Entry { bytes: &bytes[data_start as usize..data_end as usize], deflated, size, crc: record.crc32() },
            start: record.local_header_offset(),
            data_end,
            has_descriptor: flags.has_data_descriptor(),
        })
    }

    /// Whether these are the bytes of this entry's data descriptor, in any of the four forms that writers use.
    fn is_descriptor(&self, bytes: &[u8]) -> bool {
        let body = bytes.strip_prefix(b"PK\x07\x08").unwrap_or(bytes);
        let Some((crc, sizes)) = body.split_first_chunk::<4>() else { return false };
        let packed = self.entry.bytes.len() as u64;
        let mut wide = [0u8; 16];
        wide[..8].copy_from_slice(&packed.to_le_bytes());
        wide[8..].copy_from_slice(&self.entry.size.to_le_bytes());
        let mut narrow = [0u8; 8];
        narrow[..4].copy_from_slice(&(packed as u32).to_le_bytes());
        narrow[4..].copy_from_slice(&(self.entry.size as u32).to_le_bytes());
        u32::from_le_bytes(*crc) == self.entry.crc && (sizes == wide || sizes == narrow)
    }
}

/// Entries, each with its descriptor, follow each other from the first byte of the file up to the directory.
fn check_tiling(bytes: &[u8], spans: &mut [&Span<'_>], directory_start: u64) -> Result<()> {
    spans.sort_by_key(|span| span.start);
    let first = spans.first().map_or(directory_start, |span| span.start);
    if first != 0 {
        return Err(malformed(format!("{first} bytes before the first entry belong to nothing")));
    }
    for (at, span) in spans.iter().enumerate() {
        let next = spans.get(at + 1).map_or(directory_start, |next| next.start);
        if next < span.data_end {
            return Err(malformed(format!("entry {:?} overlaps what follows it", span.name)));
        }
        let gap = &bytes[span.data_end as usize..next as usize];
        let accounted = if span.has_descriptor { span.is_descriptor(gap) } else { gap.is_empty() };
        if !accounted {
            return Err(malformed(format!("{} bytes after entry {:?} belong to nothing", gap.len(), span.name)));
        }
    }
    Ok(())
}

/// The end record, and the zip64 records where there are any, state what is there and leave no room between.
fn check_end_records(bytes: &[u8], start: u64, end: u64, n_entries: u64) -> Result<()> {
    let lie = || malformed("the end of the zip file contradicts its directory");
    let tail = usize::try_from(end).ok().and_then(|end| bytes.get(end..)).ok_or_else(lie)?;
    let size = end.checked_sub(start).ok_or_else(lie)?;
    let is_wide = match tail.len() {
        END_RECORD => false,
        it if it == ZIP64_RECORD + ZIP64_LOCATOR + END_RECORD => true,
        _ => return Err(lie()),
    };
    let u16_at = |at: usize| u64::from(u16::from_le_bytes([tail[at], tail[at + 1]]));
    let u32_at = |at: usize| u16_at(at) | u16_at(at + 2) << 16;
    let u64_at = |at: usize| u32_at(at) | u32_at(at + 4) << 32;
    let mut fits = true;
    if is_wide {
        let locator = ZIP64_RECORD;
        fits &= tail.starts_with(b"PK\x06\x06") && u64_at(4) == ZIP64_RECORD as u64 - 12;
        fits &= u32_at(16) == 0 && u32_at(20) == 0 && u64_at(24) == n_entries && u64_at(32) == n_entries;
        fits &= u64_at(40) == size && u64_at(48) == start;
        fits &= tail[locator..].starts_with(b"PK\x06\x07") && u32_at(locator + 4) == 0;
        fits &= u64_at(locator + 8) == end && u32_at(locator + 16) == 1;
    }
    let at = tail.len() - END_RECORD;
    let narrow = |stated: u64, real: u64, sentinel: u64| stated == real || (is_wide && stated == sentinel);
    fits &= tail[at..].starts_with(b"PK\x05\x06") && u16_at(at + 20) == 0;
    fits &= narrow(u16_at(at + 4), 0, 0xffff) && narrow(u16_at(at + 6), 0, 0xffff);
    fits &= narrow(u16_at(at + 8), n_entries, 0xffff) && narrow(u16_at(at + 10), n_entries, 0xffff);
    fits &= narrow(u32_at(at + 12), size, 0xffff_ffff) && narrow(u32_at(at + 16), start, 0xffff_ffff);
    if fits { Ok(()) } else { Err(lie()) }
}

pub(crate) fn check_name(name: &str, limits: &Limits) -> Result<()> {
    Limits::check("name_bytes", limits.name_bytes, name.len() as u64)?;
    let is_plain = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if !is_plain || name.chars().any(|it| it == '\\' || it.is_control()) {
        return Err(malformed(format!("{name:?} is not a plain relative path")));
    }
    Ok(())
}

fn malformed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::ArchiveMalformed, message)
}

fn not_a_zip(bytes: &[u8], error: &rawzip::Error) -> Diagnostic {
    let start = bytes[..bytes.len().min(8)].escape_ascii();
    let error = malformed(format!("this is not a whole zip file: {error}"));
    if bytes.starts_with(b"PK\x03\x04") {
        error.note("it begins like a zip file and has no end, so it was probably cut off")
    } else {
        error.note(format!("it begins with \"{start}\"")).help("give a file that torch.export.save wrote")
    }
}
