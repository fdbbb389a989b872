//! An archive of any bytes is read to its end, or refused with a typed error.
//!
//! A first byte chooses between the input as it is and the input as the JSON of a program, since mutations of a whole
//! archive seldom get past its checksums. What is read as a whole reads the same by ranges.

use tracefx_pt2::schema::{ExportedProgram, PayloadConfig};
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Archive, ArchiveStream, Limits, LoadOptions, Order};

pub(crate) fn check(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let limits = Limits { inflated_bytes: 1 << 20, pickle_values: 100_000, ..Limits::default() };
    if choice == b'{' {
        let text = String::from_utf8_lossy(input);
        drop(ExportedProgram::from_json(&text, &limits));
        drop(PayloadConfig::from_json(&text, &limits));
        return;
    }
    let options = LoadOptions { limits, allow_deflate: choice & 1 == 1, ..LoadOptions::default() };
    let bytes = if choice == b'P' { input } else { bytes };
    let by_ranges = streamed(bytes, usize::from(choice), &options);
    let Ok(archive) = Archive::open(bytes, &options) else {
        assert!(by_ranges.is_none(), "what is refused as a whole was read by ranges");
        return;
    };
    let by_ranges = by_ranges.expect("what is read as a whole was refused by ranges");
    for name in archive.entries() {
        let entry = archive.read(name);
        assert_eq!(entry.clone().ok(), by_ranges.read(name).ok());
        let Ok(entry) = entry else { continue };
        if name.ends_with(".pt") {
            drop(TorchSave::read(&entry, &options));
        }
    }
}

/// The archive, when its bytes come in pieces after a tail of at least the end records.
fn streamed(file: &[u8], choice: usize, options: &LoadOptions) -> Option<Archive<'static>> {
    let tail = file[file.len() - file.len().min(98 + choice)..].to_vec();
    let mut stream = ArchiveStream::new(file.len() as u64, tail, Order::OfTheFile, options).ok()?;
    while let Some(request) = stream.next_request() {
        let bytes = file.get(request.range.start as usize..request.range.end as usize)?;
        for piece in bytes.chunks(choice + 1) {
            stream.feed(request.id, piece).ok()?;
        }
    }
    stream.finish().ok()
}
