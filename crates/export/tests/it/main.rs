//! Programs and shapes beside what PyTorch recorded, and graph modules as programs.

mod dynamic_shapes;
mod export;
mod export_dynamic;

use tracefx_core::{Result, Tensor};
use tracefx_exec::{Executor, Interpreter};
use tracefx_export::{ExportedProgram, InputChecker};
use tracefx_ops::{Value, registry};

fn executor() -> Executor<'static> {
    Executor::new(registry(), tracefx_cpu::kernels())
}

/// Checks inputs as the program says, and runs its module on them.
fn run(program: &ExportedProgram, inputs: &[Value<Tensor>]) -> Result<Vec<Value<Tensor>>> {
    InputChecker::new(program)?.check(inputs)?;
    match Interpreter::new(&program.module()?, executor()).run(inputs)? {
        Value::List(outputs) => Ok(outputs),
        other => panic!("the program gives a {}", other.kind_name()),
    }
}
