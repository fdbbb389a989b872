//! What a GPU computes is what the kernels of the CPU compute. Where there is no adapter, the tests say so and do nothing, unless
//! `TRACEFX_GPU` is set, as the set-up of continuous integration does.

#[path = "../../../gpu/tests/it/cases.rs"]
mod cases;
mod steps;
