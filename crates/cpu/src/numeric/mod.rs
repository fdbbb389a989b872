//! What kernels are written with: the numbers that they compute in, access to elements, loops over tensors, instruction
//! sets and threads. No operator is joined here.

pub(crate) mod activation;
pub(crate) mod complex;
pub(crate) mod dense;
pub(crate) mod dispatch;
pub(crate) mod division;
pub(crate) mod elementary;
pub(crate) mod field;
pub(crate) mod float;
pub(crate) mod function;
pub(crate) mod isa;
pub(crate) mod map;
pub(crate) mod number;
pub(crate) mod parallel;
pub(crate) mod scratch;
pub(crate) mod strided;
pub(crate) mod strided_copy;
pub(crate) mod strided_iter;
pub(crate) mod thread_pool;
