//! CPU kernels: scalar and SIMD, written per family.
