//! A writer of zip files in the form that PyTorch's has: stored entries in one folder, their bytes at multiples of 64 from
//! the start of the file, so that they can be mapped into memory.

use super::payload::Payload;
use crate::Limits;
use crate::zip::check_name;
use std::collections::HashSet;
use tracefx_core::{Code, Diagnostic, Result};

const ALIGNMENT: u64 = 64;
const NARROW: u64 = 0xffff_ffff;
/// Names are UTF-8.
const FLAGS: u16 = 0x0800;
/// The longest piece of an entry, so that a caller can watch and stop the writing of a large one.
const PIECE: usize = 1 << 22;

/// A zip file that is to be written: its entries, none of which was looked at yet.
pub(crate) struct Zip<'a> {
    root: String,
    entries: Vec<Entry<'a>>,
    names: HashSet<String>,
    /// Sizes and offsets from this one on are written as 64 bits.
    wide_from: u64,
    at: u64,
}

struct Entry<'a> {
    name: String,
    payload: Payload<'a>,
    size: u64,
    offset: u64,
    crc: u32,
}

impl<'a> Zip<'a> {
    /// A file whose entries lie in a folder.
    pub(crate) fn new(root: &str) -> Result<Self> {
        check_entry_name(root)?;
        if root.contains('/') {
            return Err(Diagnostic::new(Code::InvalidOption, format!("the root folder {root:?} is no single name")));
        }
        Ok(Zip { root: root.to_string(), entries: Vec::new(), names: HashSet::new(), wide_from: NARROW, at: 0 })
    }

    /// Adds an entry.
    pub(crate) fn entry(&mut self, name: &str, payload: Payload<'a>) -> Result<()> {
        let name = format!("{}/{name}", self.root);
        check_entry_name(&name)?;
        if !self.names.insert(name.clone()) {
            let what = format!("the archive would have two entries called {name:?}");
            return Err(Diagnostic::new(Code::InvalidOption, what));
        }
        let entry = Entry { name, size: payload.len() as u64, payload, offset: self.at, crc: 0 };
        self.at += entry.header_len(self.wide_from) + entry.size;
        self.entries.push(entry);
        Ok(())
    }

    /// The file, to be taken piece by piece. Its last entry is a number that depends on all others, as in PyTorch's files.
    pub(crate) fn pieces(mut self) -> Result<Pieces<'a>> {
        self.entry(".data/serialization_id", Payload::Bytes(vec![b'0'; 40].into()))?;
        let directory: u64 = self.entries.iter().map(|it| it.record(self.wide_from).len() as u64).sum();
        let mut pieces = Pieces { zip: self, next: Next::Header(0), written: 0, len: 0 };
        pieces.len = pieces.zip.at + directory + pieces.end(directory).len() as u64;
        Ok(pieces)
    }
}

/// A zip file that is being written. Sizes and checksums are known before the bytes, so headers are true and readers need
/// not wait for the directory.
pub(crate) struct Pieces<'a> {
    zip: Zip<'a>,
    next: Next,
    written: u64,
    len: u64,
}

enum Next {
    Header(usize),
    /// The bytes of an entry from a place on, after those before had a checksum.
    Payload(usize, usize, crc32fast::Hasher),
    Directory,
    Done,
}

impl Pieces<'_> {
    /// The bytes of the whole file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes that were given.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Gives the next bytes to `take`; nothing where there are no more.
    pub(crate) fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        match std::mem::replace(&mut self.next, Next::Done) {
            Next::Header(at) if at < self.zip.entries.len() => {
                if at + 1 == self.zip.entries.len() {
                    self.zip.entries[at].payload = Payload::Bytes(self.id().into());
                }
                let entry = &mut self.zip.entries[at];
                entry.crc = entry.payload.with_bytes(crc32fast::hash);
                let header = entry.header(self.zip.wide_from);
                self.next = Next::Payload(at, 0, crc32fast::Hasher::new());
                self.written += header.len() as u64;
                Ok(Some(take(&header)))
            }
            Next::Payload(at, from, mut crc) if (from as u64) < self.zip.entries[at].size => {
                let entry = &self.zip.entries[at];
                let to = (from + PIECE).min(entry.size as usize);
                self.written += (to - from) as u64;
                let taken = entry.payload.with_bytes(|bytes| {
                    crc.update(&bytes[from..to]);
                    take(&bytes[from..to])
                });
                self.next = Next::Payload(at, to, crc);
                Ok(Some(taken))
            }
            Next::Payload(at, _, crc) => {
                let entry = &self.zip.entries[at];
                // Whoever takes the pieces may have run the program in between.
                if crc.finalize() != entry.crc {
                    let what = format!("the bytes of {:?} changed while they were written", entry.name);
                    return Err(Diagnostic::new(Code::Io, what)
                        .help("save again, and do not change the program before that is done"));
                }
                self.next = Next::Header(at + 1);
                self.next(take)
            }
            Next::Header(_) => {
                self.next = Next::Directory;
                self.next(take)
            }
            Next::Directory => {
                let mut bytes: Vec<u8> = self.zip.entries.iter().flat_map(|it| it.record(self.zip.wide_from)).collect();
                let end = self.end(bytes.len() as u64);
                bytes.extend(end);
                self.written += bytes.len() as u64;
                Ok(Some(take(&bytes)))
            }
            Next::Done => Ok(None),
        }
    }

    /// 40 digits, as in PyTorch's files: one half is of the names, the other of the bytes.
    fn id(&self) -> Vec<u8> {
        let (mut names, mut payloads) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
        for entry in &self.zip.entries[..self.zip.entries.len() - 1] {
            names.update(entry.name.as_bytes());
            payloads.update(&entry.crc.to_le_bytes());
        }
        format!("{:020}{:020}", names.finalize(), payloads.finalize()).into_bytes()
    }

    /// What comes after the directory.
    fn end(&self, size: u64) -> Vec<u8> {
        let (start, n_entries, wide_from) = (self.zip.at, self.zip.entries.len() as u64, self.zip.wide_from);
        let mut end = Vec::new();
        if size >= wide_from || start >= wide_from || n_entries >= 0xffff {
            end.extend(b"PK\x06\x06");
            end.extend(44u64.to_le_bytes());
            end.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            end.extend([n_entries, n_entries, size, start].map(u64::to_le_bytes).concat());
            end.extend(b"PK\x06\x07\0\0\0\0");
            end.extend((start + size).to_le_bytes());
            end.extend(1u32.to_le_bytes());
        }
        end.extend(b"PK\x05\x06\0\0\0\0");
        let count = n_entries.min(0xffff) as u16;
        end.extend([count, count].map(u16::to_le_bytes).concat());
        end.extend([narrow(size, wide_from), narrow(start, wide_from)].concat());
        end.extend([0, 0]);
        end
    }
}

impl Entry<'_> {
    fn header_len(&self, wide_from: u64) -> u64 {
        self.header(wide_from).len() as u64
    }

    fn header(&self, wide_from: u64) -> Vec<u8> {
        let wide = if self.size >= wide_from { wide_field(&[self.size, self.size]) } else { Vec::new() };
        let before = self.offset + 30 + self.name.len() as u64 + wide.len() as u64 + 4;
        let padding = ((ALIGNMENT - before % ALIGNMENT) % ALIGNMENT) as usize;
        let mut header = b"PK\x03\x04\0\0".to_vec();
        header.extend(FLAGS.to_le_bytes());
        header.extend([0; 6]);
        header.extend(self.crc.to_le_bytes());
        header.extend([narrow(self.size, wide_from), narrow(self.size, wide_from)].concat());
        header.extend((self.name.len() as u16).to_le_bytes());
        header.extend((wide.len() as u16 + 4 + padding as u16).to_le_bytes());
        header.extend(self.name.as_bytes());
        header.extend(&wide);
        header.extend(b"FB");
        header.extend((padding as u16).to_le_bytes());
        header.resize(header.len() + padding, b'Z');
        header
    }

    /// The entry of the directory.
    fn record(&self, wide_from: u64) -> Vec<u8> {
        let mut wide = vec![];
        if self.size >= wide_from {
            wide.extend([self.size, self.size]);
        }
        if self.offset >= wide_from {
            wide.push(self.offset);
        }
        let wide = if wide.is_empty() { Vec::new() } else { wide_field(&wide) };
        let mut record = b"PK\x01\x02\0\0\0\0".to_vec();
        record.extend(FLAGS.to_le_bytes());
        record.extend([0; 6]);
        record.extend(self.crc.to_le_bytes());
        record.extend([narrow(self.size, wide_from), narrow(self.size, wide_from)].concat());
        record.extend((self.name.len() as u16).to_le_bytes());
        record.extend((wide.len() as u16).to_le_bytes());
        record.extend([0; 10]);
        record.extend(narrow(self.offset, wide_from));
        record.extend(self.name.as_bytes());
        record.extend(wide);
        record
    }
}

/// The 32 bits of a number that may stand elsewhere as 64.
fn narrow(number: u64, wide_from: u64) -> [u8; 4] {
    (if number >= wide_from { NARROW } else { number } as u32).to_le_bytes()
}

/// The extra field with what does not fit 32 bits.
fn wide_field(numbers: &[u64]) -> Vec<u8> {
    let mut field = vec![1, 0];
    field.extend((8 * numbers.len() as u16).to_le_bytes());
    field.extend(numbers.iter().flat_map(|it| it.to_le_bytes()));
    field
}

fn check_entry_name(name: &str) -> Result<()> {
    check_name(name, &Limits::default()).map_err(|error| {
        Diagnostic::new(Code::InvalidOption, format!("an entry of an archive cannot be called so: {}", error.message()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadOptions;
    use tracefx_core::{DType, Storage};

    fn bytes(of: &[u8]) -> Payload<'_> {
        Payload::Bytes(of.into())
    }

    fn written(wide_from: u64) -> Vec<u8> {
        let mut zip = Zip::new("r").unwrap();
        zip.wide_from = wide_from;
        zip.entry("empty", bytes(b"")).unwrap();
        zip.entry("é/data", bytes(&[7; 1000])).unwrap();
        zip.entry("last", bytes(b"end")).unwrap();
        let (mut pieces, mut file) = (zip.pieces().unwrap(), Vec::new());
        while pieces.next(|it| file.extend(it)).unwrap().is_some() {
            assert_eq!(pieces.written(), file.len() as u64);
        }
        assert_eq!(pieces.len(), file.len() as u64);
        file
    }

    #[test]
    fn entries_are_aligned_and_read_back_in_both_widths() {
        for wide_from in [NARROW, 500, 0] {
            let file = written(wide_from);
            let zip = crate::zip::Zip::open(&file, &LoadOptions::default()).unwrap();
            let names: Vec<&str> = zip.names().collect();
            assert_eq!(names, ["r/empty", "r/é/data", "r/last", "r/.data/serialization_id"]);
            assert_eq!(&*zip.read("r/é/data").unwrap(), &[7; 1000]);
            let at = file.windows(8).position(|it| it == [7; 8]).unwrap();
            assert_eq!((at % 64, &*zip.read("r/last").unwrap()), (0, &b"end"[..]));
        }
        assert!(!written(NARROW).windows(4).any(|it| it == b"PK\x06\x06"));
    }

    #[test]
    fn names_that_are_no_paths_and_twins_are_refused() {
        let mut zip = Zip::new("r").unwrap();
        zip.entry("a", bytes(b"")).unwrap();
        for name in ["a", "../b", "", "a//b", "a\\b"] {
            assert_eq!(zip.entry(name, bytes(b"")).unwrap_err().code(), Code::InvalidOption, "{name:?}");
        }
        assert!(Zip::new("a/b").is_err());
    }

    #[test]
    fn large_entries_come_in_pieces_and_changes_meanwhile_are_seen() {
        let storage = Storage::zeroed(10_000_000).unwrap();
        let mut zip = Zip::new("r").unwrap();
        zip.entry("a", Payload::Storage(storage.clone(), DType::UInt8)).unwrap();
        let mut pieces = zip.pieces().unwrap();
        let mut lens = Vec::new();
        for _ in 0..3 {
            lens.extend(pieces.next(<[u8]>::len).unwrap());
        }
        assert_eq!(lens, [64, PIECE, PIECE]);
        storage.write().unwrap().bytes_mut()[9_000_000] = 1;
        pieces.next(<[u8]>::len).unwrap();
        assert_eq!(pieces.next(<[u8]>::len).unwrap_err().code(), Code::Io);
    }
}
