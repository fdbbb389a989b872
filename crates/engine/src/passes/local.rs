//! Passes that change a graph where it stands.

use super::{Declare, HostPass, PassCall, answer, declared};
use serde_json::Value;
use tracefx_core::Result;
use tracefx_rewrite::{CsePass, Pass, PassResult, eliminate_dead_code};

pub(super) const PASSES: &[HostPass] = &[
    HostPass {
        name: "eliminate_dead_code",
        run: |call| {
            let options = call.options()?;
            answer(&eliminate_dead_code(call.module, call.library.registry(), &options)?)
        },
    },
    HostPass {
        name: "CSEPass",
        run: |call| {
            let pass: CsePass = call.options()?;
            run(&pass, call)
        },
    },
];

pub(super) const TYPES: &[Declare] = &[declared::<PassResult>];

fn run(pass: &dyn Pass, call: &mut PassCall<'_>) -> Result<Value> {
    answer(&pass.call(call.module)?)
}
