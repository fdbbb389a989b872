//! Kernels beside PyTorch: what it recorded of operators, their gradients and their dtypes, and how results lie in memory.

mod autocast;
mod decompositions;
mod differences;
mod gradients;
mod in_place;
mod layout;
mod movement;
mod networks;
mod numbers;
mod opcases;
mod out;
#[path = "../recorded/mod.rs"]
mod recorded;
