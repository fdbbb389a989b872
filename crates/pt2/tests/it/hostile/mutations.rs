//! Real archives with parts changed at random: each is read as before, or refused with a typed error.

use super::streamed::streamed;
use proptest::prelude::*;
use std::path::Path;
use tracefx_pt2::pickle::Pickle;
use tracefx_pt2::schema::ExportedProgram;
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Archive, Limits, LoadOptions, Order, load, load_archive};

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name).join("model.pt2");
    std::fs::read(path).unwrap()
}

/// Reads all that there is, and loads the program; the result says only whether all of it was accepted.
fn read_all(bytes: &[u8], options: &LoadOptions) -> tracefx_core::Result<()> {
    let archive = Archive::open(bytes, options)?;
    for name in archive.entries() {
        let bytes = archive.read(name)?;
        if name.ends_with(".pt") && !bytes.is_empty() {
            TorchSave::read(&bytes, options)?;
        }
    }
    let program = load(bytes, options)?;
    // By ranges it is the same program.
    let archive = streamed(bytes, 4096, 1000, Order::ProgramFirst, options)?;
    assert_eq!(load_archive(archive, options)?.to_string(), program.to_string());
    Ok(())
}

const ARCHIVES: [&str; 3] = ["programs/tied_and_views", "programs-compat/2.8.0/cond", "programs-compat/2.6.0/cond"];

#[test]
fn archives_cut_at_every_64th_are_refused() {
    for name in ARCHIVES {
        let bytes = fixture(name);
        assert!(read_all(&bytes, &LoadOptions::default()).is_ok());
        for part in 0..64 {
            let cut = bytes.len() * part / 64;
            assert!(read_all(&bytes[..cut], &LoadOptions::default()).is_err(), "{name} cut at {cut}");
            assert!(read_all(&bytes[cut..], &LoadOptions::default()).is_err() || cut == 0, "{name} from {cut}");
        }
    }
}

#[test]
fn flipped_bits_are_found_or_harmless() {
    for name in ARCHIVES {
        let mut bytes = fixture(name);
        let mut undetected = 0;
        let step = 7;
        for at in (0..bytes.len()).step_by(step) {
            bytes[at] ^= 1 << (at % 8);
            undetected += usize::from(read_all(&bytes, &LoadOptions::default()).is_ok());
            bytes[at] ^= 1 << (at % 8);
        }
        // Dates, versions and padding in headers are the only bytes that mean nothing.
        assert!(undetected * 6 < bytes.len() / step, "{name}: {undetected} of {}", bytes.len() / step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 2,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn spliced_archives_never_panic(which in 0..3usize, at in any::<prop::sample::Index>(),
                                    len in 0..64usize, new in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut bytes = fixture(ARCHIVES[which]);
        let at = at.index(bytes.len());
        let end = (at + len).min(bytes.len());
        bytes.splice(at..end, new);
        drop(read_all(&bytes, &LoadOptions { allow_deflate: true, ..LoadOptions::default() }));
    }

    #[test]
    fn random_pickles_never_panic(body in prop::collection::vec(
        prop_oneof![prop::sample::select(&b"N\x88]}()tla(esud0123RbQq\x00h\x01\x85\x86\x87\x81\x92\x8f\x90\x91\x94J\x01\x00\x00\x00K\x05."[..]), any::<u8>()],
        0..400)) {
        drop(Pickle::read(&[&[0x80, 2][..], &body].concat(), &Limits::default()));
    }

    #[test]
    fn mutated_json_is_read_or_refused(at in any::<prop::sample::Index>(), new in ".{0,8}", len in 0..8usize) {
        let bytes = fixture("programs/cond_simple");
        let archive = Archive::open(&bytes, &LoadOptions::default()).unwrap();
        let json = archive.read("model/models/model.json").unwrap();
        let mut json = String::from_utf8(json.into_owned()).unwrap();
        prop_assert!(json.is_ascii());
        let at = at.index(json.len());
        let end = (at + len).min(json.len());
        json.replace_range(at..end, &new);
        drop(ExportedProgram::from_json(&json, &Limits::default()));
    }
}
