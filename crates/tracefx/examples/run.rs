//! Opens a program, says what it is made of, and runs it on zeros: `cargo run --example run -- model.pt2`.

use tracefx::engine::zero_inputs;
use tracefx::prelude::*;

#[expect(clippy::print_stdout, reason = "an example tells what it did")]
fn main() -> tracefx::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        println!("usage: run model.pt2");
        return Ok(());
    };
    let program = open_file(path.as_ref(), &Limits::default())?;
    let report = inspect(&program);
    println!("{report}");
    if !report.is_supported {
        return Ok(());
    }
    let inputs = zero_inputs(&program)?;
    for output in Runner::new(&program)?.run(&inputs)? {
        println!("{output:?}");
    }
    Ok(())
}
