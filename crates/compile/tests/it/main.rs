//! Compiled plans give what the interpreter gives, in fewer steps.

mod convolutions;
mod loops;
mod products;
mod reference;
