//! The text of programs: every module is valid WGSL, and says what it says.

mod cases;
mod modules;
mod programs;
#[allow(dead_code, reason = "the tests of the kernels ask more of it")]
#[path = "../../../cpu/tests/recorded/mod.rs"]
mod recorded;
