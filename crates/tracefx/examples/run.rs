//! Opens a program, says what it is made of, and runs it on zeros: `cargo run --example run -- model.pt2`.

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
    let runner = Runner::new(&program)?;
    for output in runner.run(&runner.zero_inputs()?)? {
        println!("{output:?}");
    }
    Ok(())
}
