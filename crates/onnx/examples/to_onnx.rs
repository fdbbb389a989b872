//! Writes an archive of PyTorch as an ONNX model: `cargo run -p tracefx-onnx --example to_onnx -- a.pt2 a.onnx`.

use std::process::ExitCode;
use tracefx_onnx::{Options, to_onnx};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &args[..] else { return ExitCode::from(2) };
    let written = std::fs::read(input).map_err(|it| it.to_string()).and_then(|bytes| {
        let program = tracefx_pt2::load(&bytes, &tracefx_pt2::LoadOptions::default()).map_err(|it| it.to_string())?;
        let model = to_onnx(&program, &Options::default()).map_err(|it| it.to_string())?;
        std::fs::write(output, model).map_err(|it| it.to_string())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            std::io::Write::write_all(&mut std::io::stderr(), problem.as_bytes()).expect("the terminal is there");
            ExitCode::FAILURE
        }
    }
}
