//! `passes.ts`: the options and answers of passes, as ts-rs prints them.

pub(super) fn body() -> String {
    tracefx_engine::pass_types().join("\n\n") + "\n"
}
