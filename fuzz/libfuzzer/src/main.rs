//! Any target under libFuzzer: `TRACEFX_FUZZ_TARGET` names it, and its seeds are written to the folder
//! `TRACEFX_FUZZ_CORPUS` before libFuzzer reads it. `node scripts/fuzz.mjs TARGET SECONDS` builds and runs it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tracefx_fuzz::{Target, target};

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("TRACEFX_FUZZ_TARGET").expect("TRACEFX_FUZZ_TARGET names a target");
    target(&name).expect("TRACEFX_FUZZ_TARGET names a target")
});

fuzz_target!(
    init: {
        let folder = std::env::var("TRACEFX_FUZZ_CORPUS").expect("TRACEFX_FUZZ_CORPUS is a folder");
        for (at, seed) in (TARGET.seeds)().iter().enumerate() {
            std::fs::write(format!("{folder}/seed-{at}"), seed).expect("seeds can be written");
        }
    },
    |input: &[u8]| (TARGET.check)(input)
);
