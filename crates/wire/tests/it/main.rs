//! The tests of the byte format, in one program because they share their cases.

mod cases;
mod fakes;
mod format;
mod golden;
mod hostile;
mod programs;
mod properties;
