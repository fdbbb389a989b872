//! Reading one section: every read is checked, and every refusal names the section and the byte.

use crate::format::{EXACT, Tag};
use tracefx_core::{Code, Diagnostic, Result};

/// A position in the words of a section.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    tag: Tag,
    /// Where the section begins in the file.
    base: usize,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(tag: Tag, base: usize, bytes: &'a [u8]) -> Self {
        Cursor { tag, base, bytes, at: 0 }
    }

    /// The bytes that were not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next word.
    pub(crate) fn word(&mut self) -> Result<u32> {
        match self.rest().first_chunk::<4>() {
            Some(chunk) => {
                self.at += 4;
                Ok(u32::from_le_bytes(*chunk))
            }
            None => Err(self.ends_early()),
        }
    }

    /// The next word, which stays there to be read.
    pub(crate) fn peek(&self) -> Result<u32> {
        self.clone().word()
    }

    /// The next two words, the lower one first.
    pub(crate) fn pair(&mut self) -> Result<u64> {
        match self.rest().first_chunk::<8>() {
            Some(chunk) => {
                self.at += 8;
                Ok(u64::from_le_bytes(*chunk))
            }
            None => Err(self.ends_early()),
        }
    }

    /// The next two words as a number that is exact in JavaScript, too, and fits this machine.
    pub(crate) fn size(&mut self) -> Result<usize> {
        let size = self.pair()?;
        let fits = usize::try_from(size).ok().filter(|_| size < EXACT);
        fits.ok_or_else(|| self.fail(format!("{size} does not fit this machine")))
    }

    /// The next two words as an int that is exact in JavaScript, too.
    pub(crate) fn version(&mut self) -> Result<i64> {
        let version = self.pair()? as i64;
        if version.unsigned_abs() < EXACT {
            return Ok(version);
        }
        Err(self.fail(format!("the version {version} does not fit this machine")))
    }

    /// A number of things that take at least `words` words each: refused unless that much is there, so that whoever
    /// allocates for them never allocates on the word of a file.
    pub(crate) fn count(&mut self, words: usize, what: &str) -> Result<usize> {
        let count = self.word()?;
        self.check_count(count, words, what)
    }

    /// The same, of a count that was read already.
    pub(crate) fn check_count(&self, count: u32, words: usize, what: &str) -> Result<usize> {
        let room = self.rest().len() / (4 * words);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count <= room {
            return Ok(count);
        }
        Err(self.fail(format!("{count} {what} are announced, and there is room for {room}")))
    }

    /// The next `len` words as a section of their own.
    pub(crate) fn split(&mut self, words: usize) -> Result<Cursor<'a>> {
        let len = words.checked_mul(4).filter(|&len| len <= self.rest().len()).ok_or_else(|| self.ends_early())?;
        let part = Cursor { tag: self.tag, base: self.base + self.at, bytes: &self.rest()[..len], at: 0 };
        self.at += len;
        Ok(part)
    }

    /// The next `len` bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = self.rest().get(..len).ok_or_else(|| self.ends_early())?;
        self.at += len;
        Ok(bytes)
    }

    /// A length, that many bytes, and zeros up to a whole word.
    pub(crate) fn blob(&mut self) -> Result<&'a [u8]> {
        let len = self.count_bytes()?;
        let bytes = self.bytes(len)?;
        if self.bytes(len.next_multiple_of(4) - len)?.iter().any(|&it| it != 0) {
            return Err(self.fail("the bytes after the last one are not zero"));
        }
        Ok(bytes)
    }

    fn count_bytes(&mut self) -> Result<usize> {
        let len = self.word()? as usize;
        if len.next_multiple_of(4) <= self.rest().len() {
            return Ok(len);
        }
        Err(self.fail(format!("{len} bytes are announced, and there are {}", self.rest().len())))
    }

    /// Refuses what is left over.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.rest().len() {
            0 => Ok(()),
            left => Err(self.fail(format!("{left} bytes are left over"))),
        }
    }

    /// A refusal of the word before this position.
    pub(crate) fn fail(&self, what: impl Into<String>) -> Diagnostic {
        self.error(Code::WireMalformed, what)
    }

    /// A refusal because of a limit.
    pub(crate) fn exceeds(&self, what: impl Into<String>) -> Diagnostic {
        self.error(Code::LimitExceeded, what)
    }

    fn ends_early(&self) -> Diagnostic {
        self.fail("the section ends early")
    }

    fn error(&self, code: Code, what: impl Into<String>) -> Diagnostic {
        let at = self.base + self.at.saturating_sub(4);
        Diagnostic::new(code, format!("{} at byte {at}: {}", self.tag, what.into()))
    }
}
