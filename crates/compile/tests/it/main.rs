//! Compiled plans give what the interpreter gives, in fewer steps.

mod attention;
mod convolutions;
mod loops;
mod norms;
mod products;
mod reference;
mod updates;
