//! The interpreter: runs a graph with the kernels of a backend.
