//! Which bytes of a file are wanted next while a program is opened by ranges. Whoever opens it reads them; `pt2` and `wire`
//! decode them.

use crate::Limits;
use crate::open::open_with;
use sha2::{Digest, Sha256};
use std::io::{Read, Seek, SeekFrom};
use tracefx_core::allocate::{copied, extend, filled, reserve};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_export::ExportedProgram;
use tracefx_ops::Registry;
use tracefx_pt2::{ArchiveStream, LoadOptions, Order, Request, load_archive};

/// How much of a file is read at once.
const PIECE: usize = 1 << 20;

/// A program that is being opened from bytes that come by ranges. It does no input or output itself: it says which bytes
/// it wants, and is fed with them. Each byte is wanted once. Of an archive with an entry per weight (PyTorch 2.9 and later)
/// the bytes of a weight go straight to where they stay; other files are collected first.
///
/// ```
/// use tracefx_engine::{Limits, Opening};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/programs/cond_simple/model.pt2");
/// let mut file = std::fs::File::open(path).unwrap();
/// let program = Opening::read(&mut file, &Limits::default()).unwrap();
/// assert!(program.module.graph.nodes().count() > 3);
/// ```
pub struct Opening {
    len: u64,
    options: LoadOptions,
    phase: Phase,
    check: Option<Check>,
}

enum Phase {
    /// The end of the file, which tells what it is.
    Tail {
        bytes: Vec<u8>,
        is_asked: bool,
    },
    Archive(Box<ArchiveStream>),
    /// No archive that can be read in parts: all comes, and then the tail is put behind it.
    Whole {
        bytes: Vec<u8>,
        tail: Vec<u8>,
        is_asked: bool,
    },
}

/// The request of the tail; those of an archive come after it.
const TAIL: u32 = 0;
/// What is asked for of a file that is read as a whole, but for its tail.
const WHOLE: u32 = 1;

impl Opening {
    /// Begins to open a file of `len` bytes. With a SHA-256, the bytes are wanted in the order of the file but for its end,
    /// one range at a time, and no program is made of others.
    pub fn new(len: u64, limits: &Limits, sha256: Option<[u8; 32]>) -> Self {
        Opening {
            len,
            options: LoadOptions { limits: limits.clone(), ..LoadOptions::default() },
            phase: Phase::Tail { bytes: Vec::new(), is_asked: len == 0 },
            check: sha256.map(Check::new),
        }
    }

    /// The same with these operators, by whose schemas arguments are put in order.
    #[must_use]
    pub fn with_operators(mut self, registry: &Registry) -> Self {
        self.options.registry = registry.clone();
        self
    }

    /// Opens a program from a file, which is not held as a whole where it need not be.
    ///
    /// # Errors
    /// As [`open`](crate::open()); `Io` where the file cannot be read.
    pub fn read(file: &mut (impl Read + Seek), limits: &Limits) -> Result<ExportedProgram> {
        Opening::read_with(file, LoadOptions { limits: limits.clone(), ..LoadOptions::default() })
    }

    /// As [`Opening::read`], with the operators of the options.
    pub(crate) fn read_with(file: &mut (impl Read + Seek), options: LoadOptions) -> Result<ExportedProgram> {
        let failed = |problem: std::io::Error| Diagnostic::new(Code::Io, format!("could not read the file: {problem}"));
        let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut opening = Opening { options, ..Opening::new(len, &Limits::default(), None) };
        let mut buffer = filled(0, PIECE.min(usize::try_from(len).unwrap_or(usize::MAX)))?;
        while let Some(Request { id, range }) = opening.next_request() {
            file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
            let mut missing = range.end - range.start;
            while missing > 0 {
                let n = missing.min(buffer.len() as u64) as usize;
                let piece = &mut buffer[..n];
                file.read_exact(piece).map_err(failed)?;
                opening.feed(id, piece)?;
                missing -= piece.len() as u64;
            }
        }
        opening.finish()
    }

    /// The next bytes that are wanted. Where there are none, either all were asked for, or others depend on those that are
    /// on their way.
    pub fn next_request(&mut self) -> Option<Request> {
        let start = self.tail_start();
        let request = match &mut self.phase {
            Phase::Tail { is_asked, .. } | Phase::Whole { is_asked, .. } if *is_asked => return None,
            Phase::Tail { is_asked, .. } => {
                *is_asked = true;
                Request { id: TAIL, range: start..self.len }
            }
            Phase::Whole { is_asked, .. } => {
                *is_asked = true;
                Request { id: WHOLE, range: 0..start }
            }
            Phase::Archive(stream) => {
                let Request { id, range } = stream.next_request()?;
                Request { id: id + 1, range }
            }
        };
        if let Some(check) = &mut self.check {
            check.next = request.range.start;
        }
        Some(request)
    }

    /// Takes the next bytes of a request.
    ///
    /// # Errors
    /// As [`open`](crate::open()), as soon as it can be told; `InvalidArgument` for bytes that were not asked for.
    pub fn feed(&mut self, id: u32, bytes: &[u8]) -> Result<()> {
        let start = self.tail_start();
        match &mut self.phase {
            Phase::Tail { bytes: tail, is_asked } => {
                let missing = self.len - start - tail.len() as u64;
                if id != TAIL || !*is_asked || bytes.len() as u64 > missing {
                    return Err(unasked());
                }
                extend(tail, bytes)?;
            }
            Phase::Whole { bytes: whole, is_asked, .. } => {
                if id != WHOLE || !*is_asked || bytes.len() as u64 > start - whole.len() as u64 {
                    return Err(unasked());
                }
                if whole.is_empty() {
                    // Room in the address space, so that it need not move; memory is taken as bytes come.
                    let len = usize::try_from(self.len).unwrap_or(usize::MAX);
                    reserve(whole, len)?;
                }
                extend(whole, bytes)?;
            }
            Phase::Archive(stream) => stream.feed(id.checked_sub(1).ok_or_else(unasked)?, bytes)?,
        }
        if let Some(check) = &mut self.check {
            check.take(bytes)?;
        }
        self.look_at_tail()
    }

    /// The program, when all of it came.
    ///
    /// # Errors
    /// As [`open`](crate::open()); `ArchiveChecksum` where the file has another SHA-256, `ArchiveMalformed` where bytes are missing.
    pub fn finish(self) -> Result<ExportedProgram> {
        let start = self.tail_start();
        if let Some(check) = self.check {
            check.finish()?;
        }
        match self.phase {
            Phase::Archive(stream) => load_archive(stream.finish()?, &self.options),
            Phase::Whole { mut bytes, tail, .. } if bytes.len() as u64 == start => {
                extend(&mut bytes, &tail)?;
                open_with(&bytes, &self.options)
            }
            Phase::Tail { .. } if self.len == 0 => open_with(&[], &self.options),
            Phase::Whole { .. } | Phase::Tail { .. } => {
                Err(Diagnostic::new(Code::ArchiveMalformed, "the file was cut off").help("read it again"))
            }
        }
    }

    fn tail_start(&self) -> u64 {
        self.len.saturating_sub(ArchiveStream::TAIL)
    }

    /// Goes on when the tail is there.
    fn look_at_tail(&mut self) -> Result<()> {
        let start = self.tail_start();
        let Phase::Tail { bytes, .. } = &mut self.phase else { return Ok(()) };
        if (bytes.len() as u64) < self.len - start {
            return Ok(());
        }
        let tail = std::mem::take(bytes);
        self.phase = if ArchiveStream::is_tail(&tail) {
            let order = if self.check.is_some() { Order::OfTheFile } else { Order::ProgramFirst };
            Phase::Archive(Box::new(ArchiveStream::new(self.len, tail, order, &self.options)?))
        } else {
            Limits::check("archive_bytes", self.options.limits.archive_bytes, self.len)?;
            Phase::Whole { bytes: Vec::new(), tail, is_asked: start == 0 }
        };
        Ok(())
    }
}

/// The SHA-256 of a file whose bytes come in its order, but for its end.
struct Check {
    expected: [u8; 32],
    hash: Sha256,
    /// The bytes from the beginning that are in it.
    len: u64,
    /// Where the next bytes lie that come.
    next: u64,
    /// What came before its turn, by where it lies: the tail, and the directory.
    ahead: Vec<(u64, Vec<u8>)>,
}

impl Check {
    fn new(expected: [u8; 32]) -> Self {
        Check { expected, hash: Sha256::new(), len: 0, next: 0, ahead: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        if self.next == self.len {
            self.hash.update(bytes);
            self.len += bytes.len() as u64;
        } else {
            self.ahead.push((self.next, copied(bytes)?));
        }
        self.next += bytes.len() as u64;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.ahead.sort_by_key(|(start, _)| *start);
        for (start, bytes) in self.ahead {
            if start == self.len {
                self.hash.update(&bytes);
                self.len += bytes.len() as u64;
            }
        }
        let found: [u8; 32] = self.hash.finalize().into();
        if found == self.expected {
            return Ok(());
        }
        let text = |it: [u8; 32]| it.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let what = format!("the file has the SHA-256 {}, and {} was expected", text(found), text(self.expected));
        Err(Diagnostic::new(Code::ArchiveChecksum, what).help("the file is damaged, or another one"))
    }
}

fn unasked() -> Diagnostic {
    Diagnostic::new(Code::InvalidArgument, "bytes of the file came that were not asked for")
}
