//! An archive of any bytes is read to its end, or refused with a typed error.
//!
//! A first byte chooses between the input as it is and the input as the JSON of a program, since mutations of a whole
//! archive seldom get past its checksums.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracefx_pt2::schema::{ExportedProgram, PayloadConfig};
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Archive, Limits, LoadOptions};

fuzz_target!(|input: &[u8]| {
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
    let Ok(archive) = Archive::open(bytes, &options) else { return };
    for name in archive.entries() {
        let Ok(entry) = archive.read(name) else { continue };
        if name.ends_with(".pt") {
            drop(TorchSave::read(&entry, &options));
        }
    }
});
