//! Programs as ONNX models: what they consist of, what is refused, and that each translation does its part.

mod calls;
mod control;
mod malformed;
mod models;
mod programs;
