//! The end of a zip file and its directory, which are enough to know where each entry lies.

use super::malformed;
use super::span::{Span, u16_at, u32_at, u64_at, wide_fields};
use crate::LoadOptions;
use crate::limits::Limits;
use tracefx_core::{Code, Diagnostic, Result};

const END_RECORD: usize = 22;
const ZIP64_RECORD: usize = 56;
const ZIP64_LOCATOR: usize = 20;
const CENTRAL_HEADER: usize = 46;

/// Where the directory lies, as the end records state it. Entries fill the file up to its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Where the directory begins, and the entries end.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
    n_entries: u64,
}

impl End {
    /// Whether the bytes end with an end record without a comment.
    pub(crate) fn is_at_end_of(tail: &[u8]) -> bool {
        tail.len().checked_sub(END_RECORD).is_some_and(|at| tail[at..].starts_with(b"PK\x05\x06"))
    }

    /// Reads the end of a file of `len` bytes; `tail` is its last 98 bytes, or more, or all of it. The records must state
    /// what is there and leave no room between.
    pub(crate) fn read(tail: &[u8], len: u64) -> Result<Self> {
        if !End::is_at_end_of(tail) {
            return Err(malformed("the zip file has no end record at its end"));
        }
        let lie = || malformed("the end of the zip file contradicts its directory");
        let narrow_at = tail.len() - END_RECORD;
        let wide_at = narrow_at.checked_sub(ZIP64_LOCATOR).filter(|&at| tail[at..].starts_with(b"PK\x06\x07"));
        let (mut start, mut size) = (u64::from(u32_at(tail, narrow_at + 16)), u64::from(u32_at(tail, narrow_at + 12)));
        let mut n_entries = u64::from(u16_at(tail, narrow_at + 10));
        let mut end = len.checked_sub(END_RECORD as u64).ok_or_else(lie)?;
        let mut fits = true;
        if let Some(locator) = wide_at {
            let at = locator.checked_sub(ZIP64_RECORD).ok_or_else(lie)?;
            end = end.checked_sub((ZIP64_RECORD + ZIP64_LOCATOR) as u64).ok_or_else(lie)?;
            (start, size, n_entries) = (u64_at(tail, at + 48), u64_at(tail, at + 40), u64_at(tail, at + 32));
            fits &= tail[at..].starts_with(b"PK\x06\x06") && u64_at(tail, at + 4) == ZIP64_RECORD as u64 - 12;
            fits &= u32_at(tail, at + 16) == 0 && u32_at(tail, at + 20) == 0 && u64_at(tail, at + 24) == n_entries;
            fits &= u32_at(tail, locator + 4) == 0 && u32_at(tail, locator + 16) == 1;
            fits &= u64_at(tail, locator + 8) == end;
        }
        let narrow =
            |stated: u64, real: u64, sentinel: u64| stated == real || (wide_at.is_some() && stated == sentinel);
        let short = |at: usize, real: u64| narrow(u16_at(tail, narrow_at + at).into(), real, 0xffff);
        let long = |at: usize, real: u64| narrow(u32_at(tail, narrow_at + at).into(), real, 0xffff_ffff);
        fits &= short(4, 0) && short(6, 0) && short(8, n_entries) && short(10, n_entries);
        fits &= long(12, size) && long(16, start) && u16_at(tail, narrow_at + 20) == 0;
        fits &= start.checked_add(size) == Some(end);
        if fits { Ok(End { start, end, n_entries }) } else { Err(lie()) }
    }

    /// Reads the directory, whose bytes these are: its entries in its order, each with the bytes of the file that are its.
    pub(crate) fn spans(self, directory: &[u8], options: &LoadOptions) -> Result<Vec<Span>> {
        let limits = &options.limits;
        Limits::check("directory_bytes", limits.directory_bytes, directory.len() as u64)?;
        let mut spans: Vec<Span> = Vec::new();
        let mut rest = directory;
        while !rest.is_empty() {
            Limits::check("entries", limits.entries, spans.len() as u64 + 1)?;
            let (span, len) = record(rest, options)?;
            spans.push(span);
            rest = &rest[len..];
        }
        if spans.len() as u64 != self.n_entries {
            return Err(malformed("the end of the zip file contradicts its directory"));
        }
        self.lay_out(&mut spans)?;
        Ok(spans)
    }

    /// Entries follow each other from the first byte of the file up to the directory, so that each ends where another one
    /// begins. What lies between the bytes of two is looked at when it is read.
    fn lay_out(self, spans: &mut [Span]) -> Result<()> {
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|&at| spans[at].start);
        let first = order.first().map_or(self.start, |&at| spans[at].start);
        if first != 0 {
            return Err(malformed(format!("{first} bytes before the first entry belong to nothing")));
        }
        for (position, &at) in order.iter().enumerate() {
            let next = order.get(position + 1).map_or(self.start, |&next| spans[next].start);
            spans[at].end_at(next)?;
        }
        Ok(())
    }
}

/// The entry of a record that begins here, and the length of the record.
fn record(bytes: &[u8], options: &LoadOptions) -> Result<(Span, usize)> {
    let cut_off = || malformed("zip directory: an entry of it is cut off, or is none");
    if bytes.len() < CENTRAL_HEADER || !bytes.starts_with(b"PK\x01\x02") {
        return Err(cut_off());
    }
    let (name_len, extra_len) = (usize::from(u16_at(bytes, 28)), usize::from(u16_at(bytes, 30)));
    let len = CENTRAL_HEADER + name_len + extra_len + usize::from(u16_at(bytes, 32));
    let variable = bytes.get(CENTRAL_HEADER..len).ok_or_else(cut_off)?;
    let (raw_name, extra) = (&variable[..name_len], &variable[name_len..name_len + extra_len]);
    let name = std::str::from_utf8(raw_name)
        .map_err(|_| malformed(format!("an entry's name is not UTF-8: {}", raw_name.escape_ascii())))?;
    let (flags, method) = (u16_at(bytes, 8), u16_at(bytes, 10));
    // Encrypted, strongly encrypted, and with a directory that hides things.
    if flags & (1 | 1 << 6 | 1 << 13) != 0 {
        return Err(malformed(format!("entry {name:?} is encrypted")));
    }
    check_method(name, method, options)?;
    let [size, packed, start] = wide_fields(extra, [u32_at(bytes, 24), u32_at(bytes, 20), u32_at(bytes, 42)]);
    if method == 0 && packed != size {
        return Err(malformed(format!("entry {name:?} is stored, but states two sizes: {packed} and {size}")));
    }
    Ok((Span { name: name.into(), flags, method, crc: u32_at(bytes, 16), packed, size, start, end: start }, len))
}

fn check_method(name: &str, method: u16, options: &LoadOptions) -> Result<()> {
    let refused = |what: String| Diagnostic::new(Code::ArchiveCompressed, what);
    match method {
        0 => Ok(()),
        8 if options.allow_deflate => Ok(()),
        8 => Err(refused(format!("entry {name:?} is compressed"))
            .note("PyTorch stores entries without compression")
            .help("if you trust the file, load it with `allow_deflate`")),
        _ => Err(refused(format!("entry {name:?} uses compression method {method}"))
            .note("only stored entries, and deflated ones where they are allowed, can be read")),
    }
}
