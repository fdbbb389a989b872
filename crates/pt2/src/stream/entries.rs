//! The entries of an archive, asked for in runs of those that follow each other.

use super::filling::{Filling, Step, is_weight};
use super::{Order, unasked};
use crate::zip::{Span, Zip, malformed};
use crate::{Archive, LoadOptions};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use tracefx_core::Result;

/// Entries that follow each other are asked for together up to this many bytes; what is larger is asked for alone.
const TOGETHER: u64 = 1 << 20;

pub(super) struct Entries {
    archive: Archive<'static>,
    /// In the order of the file.
    spans: Vec<Span>,
    /// What is there of the entries' bytes since the directory was read, and where it begins.
    tail: Vec<u8>,
    tail_start: u64,
    /// The entries that are still to be asked for.
    waiting: VecDeque<Range<usize>>,
    coming: HashMap<u32, Run>,
    /// Entries that are no weights and did not come yet.
    n_texts: usize,
    n_entries: usize,
    is_known: bool,
}

/// Entries of which bytes come.
struct Run {
    entries: Range<usize>,
    filling: Filling,
    /// The bytes that were asked for and did not come yet.
    missing: u64,
}

impl Entries {
    pub(super) fn new(
        mut spans: Vec<Span>,
        tail: Vec<u8>,
        tail_start: u64,
        order: Order,
        options: &LoadOptions,
    ) -> Result<Self> {
        let archive = Archive::of(Zip::of(&spans, options)?, options);
        spans.sort_by_key(|it| it.start);
        let n_texts = spans.iter().filter(|it| !is_weight(it)).count();
        let n_entries = spans.len();
        let (waiting, coming) = (VecDeque::new(), HashMap::new());
        let mut it = Entries { archive, spans, tail, tail_start, waiting, coming, n_texts, n_entries, is_known: false };
        let n_before = it.spans.partition_point(|span| span.start < tail_start);
        // What the tail holds from its beginning is there already.
        let n_entries = it.spans.len();
        it.take_tail(n_before..n_entries, Filling::new())?;
        let mut runs = it.runs(n_before);
        if order == Order::ProgramFirst {
            runs.sort_by_key(|run| is_weight(&it.spans[run.start]));
        }
        it.waiting = runs.into();
        Ok(it)
    }

    /// The first entries in runs: texts that follow each other, or weights.
    fn runs(&self, n: usize) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (at, span) in self.spans[..n].iter().enumerate() {
            match runs.last_mut() {
                Some(run)
                    if is_weight(&self.spans[run.start]) == is_weight(span)
                        && span.end - self.spans[run.start].start <= TOGETHER =>
                {
                    run.end = at + 1;
                }
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    /// The bytes of the next run, as request of this number.
    pub(super) fn next_run(&mut self, id: u32, order: Order) -> Option<Range<u64>> {
        if order == Order::OfTheFile && !self.coming.is_empty() {
            return None;
        }
        let entries = self.waiting.pop_front()?;
        let start = self.spans[entries.start].start;
        let end = self.spans[entries.end - 1].end.min(self.tail_start);
        self.coming.insert(id, Run { entries, filling: Filling::new(), missing: end - start });
        Some(start..end)
    }

    /// Takes bytes of a run.
    pub(super) fn feed(&mut self, id: u32, mut bytes: &[u8]) -> Result<()> {
        let mut run = self.coming.remove(&id).ok_or_else(unasked)?;
        run.missing = run.missing.checked_sub(bytes.len() as u64).ok_or_else(unasked)?;
        let is_last = run.missing == 0;
        (run.entries, run.filling) = self.take(run.entries, run.filling, &mut bytes)?;
        if !is_last {
            self.coming.insert(id, run);
        } else if !run.entries.is_empty() {
            // The last entry reaches into the tail.
            self.take_tail(run.entries, run.filling)?;
        }
        Ok(())
    }

    fn take_tail(&mut self, entries: Range<usize>, filling: Filling) -> Result<()> {
        let Some(first) = self.spans.get(entries.start) else { return Ok(()) };
        let from = first.start.saturating_sub(self.tail_start) as usize;
        let tail = std::mem::take(&mut self.tail);
        let mut bytes = &tail[from.min(tail.len())..];
        let left = self.take(entries, filling, &mut bytes)?;
        self.tail = tail;
        if left.0.is_empty() { Ok(()) } else { Err(malformed("an entry of the archive is cut off")) }
    }

    /// Fills entries one after the other, and gives those that are not whole.
    fn take(
        &mut self,
        mut entries: Range<usize>,
        mut filling: Filling,
        bytes: &mut &[u8],
    ) -> Result<(Range<usize>, Filling)> {
        while !entries.is_empty() {
            let span = &self.spans[entries.start];
            match filling.take(span, bytes)? {
                Step::More(more) => {
                    filling = more;
                    break;
                }
                Step::Done(content) => {
                    self.archive.put(&span.name, content);
                    self.n_texts -= usize::from(!is_weight(span));
                    self.n_entries -= 1;
                    entries.start += 1;
                    filling = Filling::new();
                }
            }
        }
        Ok((entries, filling))
    }

    /// Looks at the program when all that tells of it is there.
    pub(super) fn look(&mut self, order: Order, options: &LoadOptions) -> Result<()> {
        if self.is_known || self.n_texts > 0 || order == Order::OfTheFile {
            return Ok(());
        }
        self.archive.detect()?;
        self.archive.parse(options)?;
        self.is_known = true;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Archive<'static>> {
        if self.n_entries > 0 {
            let what = format!("the file was cut off: {} entries of the archive are not whole", self.n_entries);
            return Err(malformed(what));
        }
        if !self.is_known {
            self.archive.detect()?;
        }
        Ok(self.archive)
    }
}
