//! The text of programs: every module is valid WGSL, and says what it says.

mod cases;
mod modules;
