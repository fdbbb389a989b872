//! Floats of eight bits, beside the numbers and codes of PyTorch (`tests/oracle/gen_float8.py`).

use std::path::Path;
use tracefx_core::{DType, float8_from_f32, float8_to_f32};

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text, 16).expect("a number in hex")
}

#[test]
fn codes_are_those_of_pytorch() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/float8/codes.txt");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    assert_eq!(text.lines().count(), 5);
    for line in text.lines() {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        let dtype = DType::from_name(name).expect("a dtype");
        for code in 0..=255u8 {
            let want = f32::from_bits(hex(words.next().expect("256 codes")));
            let got = float8_to_f32(dtype, code);
            let is_same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(is_same, "{name}: the code {code:#x} is {got} instead of {want}");
        }
        for pair in words {
            let (number, code) = pair.split_once(':').expect("a pair");
            let (number, want) = (f32::from_bits(hex(number)), hex(code) as u8);
            let got = float8_from_f32(dtype, number);
            assert_eq!(got, want, "{name}: {number} has the code {got:#x} instead of {want:#x}");
        }
    }
}
