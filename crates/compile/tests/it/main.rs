//! Compiled plans, run with fused steps that are nothing but operators of ATen: what the passes do is right if these give what the
//! interpreter gives. What kernels of fused steps give is tested with them.

mod convolutions;
mod reference;
