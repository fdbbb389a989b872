//! `plans.ts`: what a plan tells of itself.

pub(super) fn body() -> String {
    tracefx_engine::plan_types().join("\n\n") + "\n"
}
