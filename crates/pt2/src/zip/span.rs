//! The bytes of a file that belong to one entry: a local header, the bytes of the entry, and perhaps a descriptor.

use super::malformed;
use tracefx_core::Result;

/// The bytes of a local header whose length is always the same.
pub(crate) const LOCAL_HEADER: usize = 30;
const HAS_DESCRIPTOR: u16 = 1 << 3;

/// An entry as the directory states it, and where it lies in the file.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) name: Box<str>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// How many bytes it has in the file.
    pub(crate) packed: u64,
    pub(super) size: u64,
    pub(crate) start: u64,
    /// Where the next one begins.
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn is_deflated(&self) -> bool {
        self.method != 0
    }

    /// Ends the span where another one begins, which must leave room for what it states.
    pub(super) fn end_at(&mut self, end: u64) -> Result<()> {
        let name = &self.name;
        let Some(len) = end.checked_sub(self.start) else {
            return Err(malformed(format!("entry {name:?} lies outside the file, or has no local header")));
        };
        if (LOCAL_HEADER + name.len()) as u64 > len || self.packed > len - (LOCAL_HEADER + name.len()) as u64 {
            return Err(malformed(format!("entry {name:?} overlaps what follows it")));
        }
        self.end = end;
        Ok(())
    }

    /// The length of the local header that begins with these 30 bytes.
    pub(crate) fn header_len(&self, fixed: &[u8; LOCAL_HEADER]) -> Result<usize> {
        if !fixed.starts_with(b"PK\x03\x04") {
            return Err(malformed(format!("entry {:?} lies outside the file, or has no local header", self.name)));
        }
        let len = LOCAL_HEADER + usize::from(u16_at(fixed, 26)) + usize::from(u16_at(fixed, 28));
        if len as u64 > self.end - self.start - self.packed {
            return Err(malformed(format!("entry {:?} overlaps what follows it", self.name)));
        }
        Ok(len)
    }

    /// How many bytes lie between the entry's own and the next entry, after a header of this length.
    pub(crate) fn gap_len(&self, header_len: usize) -> u64 {
        self.end - self.start - self.packed - header_len as u64
    }

    /// Holds the local header to what the directory states.
    pub(crate) fn check_header(&self, header: &[u8]) -> Result<()> {
        let (name, extra) = header[LOCAL_HEADER..].split_at(usize::from(u16_at(header, 26)));
        let [size, packed] = wide_fields(extra, [u32_at(header, 22), u32_at(header, 18)]);
        let agrees = |local: u64, central: u64| local == central || (self.has_descriptor() && local == 0);
        let fits = name == self.name.as_bytes()
            && u16_at(header, 6) == self.flags
            && u16_at(header, 8) == self.method
            && agrees(u32_at(header, 14).into(), self.crc.into())
            && agrees(packed, self.packed)
            && agrees(size, self.size);
        if fits {
            return Ok(());
        }
        Err(malformed(format!("the local header of entry {:?} contradicts the zip directory", self.name)))
    }

    /// The bytes between this entry's own and the next entry are its descriptor, if it has one.
    pub(crate) fn check_gap(&self, gap: &[u8]) -> Result<()> {
        let accounted = if self.has_descriptor() { self.is_descriptor(gap) } else { gap.is_empty() };
        if accounted { Ok(()) } else { Err(self.stray_bytes(gap.len() as u64)) }
    }

    /// The refusal of a gap that is too long for a descriptor.
    pub(crate) fn stray_bytes(&self, n: u64) -> tracefx_core::Diagnostic {
        malformed(format!("{n} bytes after entry {:?} belong to nothing", self.name))
    }

    fn has_descriptor(&self) -> bool {
        self.flags & HAS_DESCRIPTOR != 0
    }

    /// Whether these are the bytes of this entry's data descriptor, in any of the four forms that writers use.
    fn is_descriptor(&self, bytes: &[u8]) -> bool {
        let body = bytes.strip_prefix(b"PK\x07\x08").unwrap_or(bytes);
        let Some((crc, sizes)) = body.split_first_chunk::<4>() else { return false };
        let mut wide = [0u8; 16];
        wide[..8].copy_from_slice(&self.packed.to_le_bytes());
        wide[8..].copy_from_slice(&self.size.to_le_bytes());
        let mut narrow = [0u8; 8];
        narrow[..4].copy_from_slice(&(self.packed as u32).to_le_bytes());
        narrow[4..].copy_from_slice(&(self.size as u32).to_le_bytes());
        u32::from_le_bytes(*crc) == self.crc && (sizes == wide || sizes == narrow)
    }
}

/// Fields of 32 bits, of which those that are full stand in the zip64 extra field, one after the other.
pub(super) fn wide_fields<const N: usize>(mut extra: &[u8], narrow: [u32; N]) -> [u64; N] {
    let mut wide: &[u8] = &[];
    while extra.len() >= 4 {
        let end = (4 + usize::from(u16_at(extra, 2))).min(extra.len());
        if u16_at(extra, 0) == 1 {
            wide = &extra[4..end];
            break;
        }
        extra = &extra[end..];
    }
    narrow.map(|field| match wide.split_first_chunk::<8>() {
        Some((value, rest)) if field == u32::MAX => {
            wide = rest;
            u64::from_le_bytes(*value)
        }
        _ => field.into(),
    })
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
