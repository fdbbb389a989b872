//! A pickle of any bytes is read as data, or refused with a typed error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracefx_pt2::pickle::Pickle;
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Limits, LoadOptions};

fuzz_target!(|input: &[u8]| {
    let limits = Limits { pickle_values: 100_000, ..Limits::default() };
    let Ok(pickle) = Pickle::read(input, &limits) else { return };
    // Whatever was accepted can be walked: every id is of this pickle, and no call comes before its parts.
    for (id, _) in pickle.values() {
        let object = pickle.as_object(id);
        assert!(object.is_none_or(|(it, ..)| it.callable < id && it.args < id));
        let _ = (pickle.as_mapping(id), pickle.as_tuple(id), pickle.as_str(id));
    }
    // The same bytes as the pickle of a torch.save file with one small storage.
    let options = LoadOptions { limits, ..LoadOptions::default() };
    drop(TorchSave::read(&stored(&[("a/data.pkl", input), ("a/data/0", &[0; 16])]), &options));
});

/// A zip file of stored entries.
fn stored(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let mut header = vec![20, 0, 0, 8, 0, 0, 0, 0, 0, 0];
        header.extend(crc32fast::hash(bytes).to_le_bytes());
        header.extend((bytes.len() as u32).to_le_bytes());
        header.extend((bytes.len() as u32).to_le_bytes());
        header.extend((name.len() as u16).to_le_bytes());
        header.extend([0, 0]);
        directory.extend([&b"PK\x01\x02\x14\x00"[..], &header, &[0; 10], &(out.len() as u32).to_le_bytes()].concat());
        directory.extend(name.as_bytes());
        out.extend([&b"PK\x03\x04"[..], &header, name.as_bytes(), bytes].concat());
    }
    let (start, n) = (out.len() as u32, entries.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([n.to_le_bytes(), n.to_le_bytes()].concat());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}
