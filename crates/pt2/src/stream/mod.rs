//! Archives whose bytes come by ranges, in the order in which they are asked for.

mod entries;
mod filling;

use crate::zip::{End, malformed};
use crate::{Archive, Limits, LoadOptions};
use entries::Entries;
use std::ops::Range;
use tracefx_core::allocate::extend;
use tracefx_core::{Code, Diagnostic, Result};

/// In which order the bytes of an archive are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// What tells of the program first, so that one that is refused is refused before its weights come. Several ranges may
    /// be on their way at once.
    ProgramFirst,
    /// From the first byte to the last, one range at a time, for who makes a checksum of the file. Nothing is looked at
    /// but headers before all is there.
    OfTheFile,
}

/// Bytes of a file that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number to feed them with.
    pub id: u32,
    /// Where they lie.
    pub range: Range<u64>,
}

/// An archive whose bytes come by ranges: from a server, or from a file that is not read as a whole. It does no input or
/// output itself. It says which bytes it wants, and is fed with them; each byte is wanted once, and those of a weight go
/// straight to where they stay.
///
/// ```
/// use tracefx_pt2::{ArchiveStream, LoadOptions, Order, load_archive};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/programs/tied_and_views/model.pt2");
/// let file = std::fs::read(path).unwrap();
/// let options = LoadOptions::default();
/// let tail = file[file.len() - 4096..].to_vec();
/// let mut stream = ArchiveStream::new(file.len() as u64, tail, Order::ProgramFirst, &options).unwrap();
/// while let Some(wanted) = stream.next_request() {
///     let bytes = &file[wanted.range.start as usize..wanted.range.end as usize];
///     for piece in bytes.chunks(1000) {
///         stream.feed(wanted.id, piece).unwrap();
///     }
/// }
/// let program = load_archive(stream.finish().unwrap(), &options).unwrap();
/// assert!(program.state_dict.len() > 0);
/// ```
pub struct ArchiveStream {
    options: LoadOptions,
    order: Order,
    phase: Phase,
    n_requests: u32,
}

enum Phase {
    Directory(Directory),
    Entries(Box<Entries>),
}

/// The end of a file, of which the part of the directory before the tail is still to come.
struct Directory {
    end: End,
    tail: Vec<u8>,
    tail_start: u64,
    /// What came of that part.
    bytes: Vec<u8>,
    is_asked: bool,
}

impl ArchiveStream {
    /// How long a tail should be, if the file is not shorter: small programs are in it as a whole, and the directory of
    /// most large ones is.
    pub const TAIL: u64 = 1 << 16;

    /// Begins with the last bytes of a file of `len` bytes: at least 98 of them, or all.
    ///
    /// # Errors
    /// As [`Archive::open`], for what the tail tells.
    pub fn new(len: u64, tail: Vec<u8>, order: Order, options: &LoadOptions) -> Result<Self> {
        Limits::check("archive_bytes", options.limits.archive_bytes, len)?;
        let end = End::read(&tail, len)?;
        Limits::check("directory_bytes", options.limits.directory_bytes, end.end - end.start)?;
        let tail_start =
            len.checked_sub(tail.len() as u64).ok_or_else(|| malformed("the tail is longer than the file"))?;
        let directory = Directory { end, tail, tail_start, bytes: Vec::new(), is_asked: false };
        let mut stream =
            ArchiveStream { options: options.clone(), order, phase: Phase::Directory(directory), n_requests: 0 };
        stream.read_directory()?;
        Ok(stream)
    }

    /// Whether these bytes end like an archive that can be read so.
    pub fn is_tail(tail: &[u8]) -> bool {
        End::is_at_end_of(tail)
    }

    /// The next bytes that are wanted. Where there are none, either all were asked for, or others depend on those that
    /// are on their way.
    pub fn next_request(&mut self) -> Option<Request> {
        let id = self.n_requests;
        let range = match &mut self.phase {
            Phase::Directory(it) if it.is_asked => return None,
            Phase::Directory(it) => {
                it.is_asked = true;
                it.end.start..it.tail_start
            }
            Phase::Entries(entries) => entries.next_run(id, self.order)?,
        };
        self.n_requests += 1;
        Some(Request { id, range })
    }

    /// Takes the next bytes of a request.
    ///
    /// # Errors
    /// As [`Archive::open`], as soon as it can be told; with [`Order::ProgramFirst`] also what [`load`](crate::load) refuses
    /// of the text of the program. `OutOfMemory` where there is no room for a weight, `InvalidArgument` for bytes that were
    /// not asked for.
    pub fn feed(&mut self, id: u32, bytes: &[u8]) -> Result<()> {
        match &mut self.phase {
            Phase::Directory(it) => {
                let missing = it.tail_start - it.end.start - it.bytes.len() as u64;
                if !it.is_asked || bytes.len() as u64 > missing {
                    return Err(unasked());
                }
                extend(&mut it.bytes, bytes)?;
                self.read_directory()
            }
            Phase::Entries(entries) => {
                entries.feed(id, bytes)?;
                entries.look(self.order, &self.options)
            }
        }
    }

    /// The archive, when all of it came.
    ///
    /// # Errors
    /// `ArchiveMalformed` where bytes are missing; else as [`Archive::open`].
    pub fn finish(self) -> Result<Archive<'static>> {
        match self.phase {
            Phase::Directory(_) => Err(malformed("the directory of the archive did not come")),
            Phase::Entries(entries) => entries.finish(),
        }
    }

    /// Goes on to the entries when the directory is there.
    fn read_directory(&mut self) -> Result<()> {
        let Phase::Directory(it) = &mut self.phase else { return Ok(()) };
        let (start, end) = (it.end.start, it.end.end);
        if it.bytes.len() as u64 + start < it.tail_start {
            return Ok(());
        }
        let mut tail = std::mem::take(&mut it.bytes);
        let tail_start = it.tail_start - tail.len() as u64;
        extend(&mut tail, &std::mem::take(&mut it.tail))?;
        let spans = it.end.spans(&tail[(start - tail_start) as usize..(end - tail_start) as usize], &self.options)?;
        tail.truncate((start - tail_start) as usize);
        let mut entries = Entries::new(spans, tail, tail_start, self.order, &self.options)?;
        entries.look(self.order, &self.options)?;
        self.phase = Phase::Entries(Box::new(entries));
        Ok(())
    }
}

fn unasked() -> Diagnostic {
    Diagnostic::new(Code::InvalidArgument, "bytes of the archive came that were not asked for")
}
