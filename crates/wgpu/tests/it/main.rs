//! What a GPU computes is what the kernels of the CPU compute. Where there is no adapter, the tests say so and do nothing, unless
//! `TRACEFX_GPU` is set, as the set-up of continuous integration does.

mod calls;
#[path = "../../../gpu/tests/it/cases.rs"]
mod cases;
mod networks;
#[path = "../../../gpu/tests/it/programs.rs"]
mod programs;
#[allow(dead_code, reason = "the tests of the kernels ask more of it")]
#[path = "../../../cpu/tests/recorded/mod.rs"]
mod recorded;
mod steps;
