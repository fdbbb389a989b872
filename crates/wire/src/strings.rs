//! `STRS`, and `SYMS` whose texts are expressions: every text once, in the order of first use.

use crate::cursor::Cursor;
use crate::format::Tag;
use crate::words::Words;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};
use tracefx_core::allocate::reserve;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::Str;

/// The strings of a file that is being written.
#[derive(Debug, Default)]
pub(crate) struct StringWriter(IndexSet<Str, FxBuildHasher>);

impl StringWriter {
    /// The index of a string.
    pub(crate) fn index(&mut self, text: &str) -> usize {
        match self.0.get_index_of(text) {
            Some(index) => index,
            None => self.0.insert_full(text.into()).0,
        }
    }

    /// The index of a string that is there already.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        self.0.get_index_of(text)
    }

    /// Writes the index of a string.
    pub(crate) fn write(&mut self, words: &mut Words, text: &str) -> Result<()> {
        let index = self.index(text);
        words.count(index)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes one more than the index of a string, or zero where there is none.
    pub(crate) fn write_optional(&mut self, words: &mut Words, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => {
                let index = self.index(text);
                words.count(index + 1)
            }
            None => words.count(0),
        }
    }

    /// The section.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>> {
        let mut words = Words::default();
        words.count(self.0.len())?;
        let mut end = 0usize;
        for text in &self.0 {
            end += text.len();
            words.count(end)?;
        }
        let mut bytes = words.into_bytes()?;
        reserve(&mut bytes, end + 3)?;
        self.0.iter().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Ok(bytes)
    }
}

/// The strings of a file that is being read.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    items: Vec<Str>,
    /// The number of strings that were used. The first use of each must come in order, so that a file has one spelling.
    n_used: usize,
}

impl Strings {
    pub(crate) fn read(mut cursor: Cursor<'_>) -> Result<Self> {
        let count = cursor.count(1, "strings")?;
        let mut ends = Vec::with_capacity(count);
        let mut last = 0;
        for _ in 0..count {
            let end = cursor.word()? as usize;
            if end < last {
                return Err(cursor.fail(format!("a string ends at {end}, and the one before at {last}")));
            }
            last = end;
            ends.push(end);
        }
        let bytes = cursor.bytes(last)?;
        let padding = cursor.bytes(last.next_multiple_of(4) - last)?;
        if padding.iter().any(|&it| it != 0) {
            return Err(cursor.fail("the bytes after the last string are not zero"));
        }
        cursor.finish()?;
        let mut items: Vec<Str> = Vec::with_capacity(count);
        let mut seen = FxHashSet::with_capacity_and_hasher(count, FxBuildHasher);
        let mut start = 0;
        for end in ends {
            let text = std::str::from_utf8(&bytes[start..end])
                .map_err(|_| cursor.fail(format!("string {} is not UTF-8", items.len())))?;
            if !seen.insert(text) {
                return Err(cursor.fail(format!("string {} is there twice", items.len())));
            }
            items.push(text.into());
            start = end;
        }
        Ok(Strings { items, n_used: 0 })
    }

    /// The string of an index that the cursor just read.
    pub(crate) fn get(&mut self, cursor: &Cursor<'_>, index: u32) -> Result<Str> {
        let index = index as usize;
        if index > self.n_used {
            let what = format!("string {index} is used before string {}", self.n_used);
            return Err(cursor.fail(what));
        }
        let text = self.items.get(index).ok_or_else(|| cursor.fail(format!("there is no string {index}")))?;
        self.n_used = self.n_used.max(index + 1);
        Ok(Str::clone(text))
    }

    /// The string whose index is the next word.
    pub(crate) fn next(&mut self, cursor: &mut Cursor<'_>) -> Result<Str> {
        let index = cursor.word()?;
        self.get(cursor, index)
    }

    /// The string whose index is one less than the next word, or none where that is zero.
    pub(crate) fn next_optional(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Str>> {
        match cursor.word()? {
            0 => Ok(None),
            index => self.get(cursor, index - 1).map(Some),
        }
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Refuses strings that nothing uses.
    pub(crate) fn finish(&self, tag: Tag) -> Result<()> {
        if self.n_used == self.items.len() {
            return Ok(());
        }
        let what = format!("{tag}: nothing uses string {}", self.n_used);
        Err(Diagnostic::new(Code::WireMalformed, what))
    }
}
