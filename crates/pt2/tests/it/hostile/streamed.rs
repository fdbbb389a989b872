//! Archives that come by ranges, out of order where they may.

use tracefx_core::Result;
use tracefx_pt2::{Archive, ArchiveStream, LoadOptions, Order, Request};

/// Feeds the file in pieces of this length, to three requests in turn where the stream wants so many.
pub(crate) fn streamed(
    file: &[u8],
    tail: usize,
    piece: usize,
    order: Order,
    options: &LoadOptions,
) -> Result<Archive<'static>> {
    let tail = file[file.len() - tail.min(file.len())..].to_vec();
    let mut stream = ArchiveStream::new(file.len() as u64, tail, order, options)?;
    let mut open: Vec<Request> = Vec::new();
    loop {
        while open.len() < 3
            && let Some(request) = stream.next_request()
        {
            open.push(request);
        }
        if open.is_empty() {
            return stream.finish();
        }
        for request in &mut open {
            let start = request.range.start as usize;
            let end = (start + piece).min(request.range.end as usize);
            stream.feed(request.id, &file[start..end])?;
            request.range.start = end as u64;
        }
        open.retain(|it| !it.range.is_empty());
    }
}
