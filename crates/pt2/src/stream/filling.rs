//! One entry whose bytes come piece by piece.

use crate::zip::{Content, LOCAL_HEADER, Span};
use std::borrow::Cow;
use tracefx_core::{Result, StorageWriter, allocate};

/// The longest descriptor: a signature, a checksum and two sizes.
const LONGEST_GAP: u64 = 24;

/// How far an entry has come: its local header, its bytes, and what lies behind them.
pub(super) enum Filling {
    Header(Vec<u8>),
    Content { header_len: usize, content: Growing },
    Gap { gap_len: usize, content: Growing, bytes: Vec<u8> },
}

/// Bytes that become the content of an entry.
pub(super) enum Growing {
    Bytes(Vec<u8>),
    Storage(StorageWriter),
}

impl Filling {
    pub(super) fn new() -> Self {
        Filling::Header(Vec::new())
    }

    /// Takes from the front of `bytes` what belongs to this entry, and gives its content when that is all.
    pub(super) fn take(mut self, span: &Span, bytes: &mut &[u8]) -> Result<Step> {
        loop {
            self = match self {
                Filling::Header(mut header) => {
                    extend(&mut header, bytes, LOCAL_HEADER)?;
                    let Some((fixed, _)) = header.split_first_chunk::<LOCAL_HEADER>() else {
                        return Ok(Step::More(Filling::Header(header)));
                    };
                    let header_len = span.header_len(fixed)?;
                    extend(&mut header, bytes, header_len)?;
                    if header.len() < header_len {
                        return Ok(Step::More(Filling::Header(header)));
                    }
                    span.check_header(&header)?;
                    let gap_len = span.gap_len(header_len);
                    if gap_len > LONGEST_GAP {
                        return Err(span.stray_bytes(gap_len));
                    }
                    Filling::Content { header_len, content: Growing::new(span)? }
                }
                Filling::Content { header_len, mut content } => {
                    content.take(span, bytes)?;
                    if content.len(span) < span.packed {
                        return Ok(Step::More(Filling::Content { header_len, content }));
                    }
                    Filling::Gap { gap_len: span.gap_len(header_len) as usize, content, bytes: Vec::new() }
                }
                Filling::Gap { gap_len, content, bytes: mut gap } => {
                    extend(&mut gap, bytes, gap_len)?;
                    if gap.len() < gap_len {
                        return Ok(Step::More(Filling::Gap { gap_len, content, bytes: gap }));
                    }
                    span.check_gap(&gap)?;
                    return Ok(Step::Done(content.finish()));
                }
            };
        }
    }
}

/// What came of an entry.
pub(super) enum Step {
    /// Its bytes are not all there.
    More(Filling),
    Done(Content<'static>),
}

impl Growing {
    fn new(span: &Span) -> Result<Self> {
        Ok(match usize::try_from(span.packed) {
            Ok(len) if is_weight(span) => Growing::Storage(StorageWriter::new(len)?),
            _ => Growing::Bytes(Vec::new()),
        })
    }

    fn take(&mut self, span: &Span, bytes: &mut &[u8]) -> Result<()> {
        match self {
            Growing::Bytes(it) => extend(it, bytes, usize::try_from(span.packed).unwrap_or(usize::MAX))?,
            Growing::Storage(it) => {
                let (mine, rest) = bytes.split_at(bytes.len().min(it.missing()));
                it.push(mine);
                *bytes = rest;
            }
        }
        Ok(())
    }

    fn len(&self, span: &Span) -> u64 {
        match self {
            Growing::Bytes(it) => it.len() as u64,
            Growing::Storage(it) => span.packed - it.missing() as u64,
        }
    }

    fn finish(self) -> Content<'static> {
        match self {
            Growing::Bytes(it) => Content::Bytes(Cow::Owned(it)),
            Growing::Storage(it) => Content::Storage(it.finish()),
        }
    }
}

/// Whether the entry is the memory of a tensor as it stands: one of PyTorch 2.9 and later. Earlier ones put all tensors
/// into one pickle.
pub(super) fn is_weight(span: &Span) -> bool {
    let Some((folder, name)) = span.name.rsplit_once('/') else { return false };
    let is_in_folder = folder.ends_with("/data/weights") || folder.ends_with("/data/constants");
    is_in_folder && !name.contains('.') && !span.is_deflated()
}

/// Moves bytes to `to` until it has this many.
fn extend(to: &mut Vec<u8>, from: &mut &[u8], len: usize) -> Result<()> {
    let (mine, rest) = from.split_at(from.len().min(len.saturating_sub(to.len())));
    allocate::extend(to, mine)?;
    *from = rest;
    Ok(())
}
