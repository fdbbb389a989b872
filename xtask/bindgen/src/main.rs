//! `tracefx-bindgen IN.wasm OUT_DIR NAME`: writes the WebAssembly module and its JavaScript glue for the web target.
//!
//! This is the library behind the command wasm-bindgen, whose version the lockfile holds; `cargo xtask wasm` runs it.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, folder, name] = args.as_slice() else {
        eprintln!("usage: tracefx-bindgen IN.wasm OUT_DIR NAME");
        return ExitCode::FAILURE;
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).out_name(name).typescript(true);
    // The package says itself where its module lies, and it makes an instance anew after one that cannot be trusted.
    bindgen.omit_default_module_path(true).reset_state_function(true).remove_producers_section(true);
    match bindgen.web(true).and_then(|it| it.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tracefx-bindgen: {error:?}");
            ExitCode::FAILURE
        }
    }
}
