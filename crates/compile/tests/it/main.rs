//! Compiled plans give what the interpreter gives, in fewer steps.

mod attention;
mod constants;
mod convolutions;
mod copies;
mod dequantized;
mod gathers;
mod loops;
mod norms;
mod products;
mod quantized;
mod reference;
mod updates;
