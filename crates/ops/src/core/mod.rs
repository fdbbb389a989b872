//! What every domain is written with: rows, schemas, arguments, shape rules, decompositions, gradients and the registry. No
//! operator is defined here.

pub(crate) mod args;
pub(crate) mod autocast;
pub(crate) mod bind;
pub(crate) mod custom;
pub(crate) mod decompose;
pub(crate) mod decompositions;
pub(crate) mod elementwise;
pub(crate) mod gradients;
pub(crate) mod infer;
pub(crate) mod members;
pub(crate) mod memory_format;
pub(crate) mod op;
pub(crate) mod promotion;
pub(crate) mod propagate;
pub(crate) mod registry;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod symbols;
pub(crate) mod unify;
pub(crate) mod value;
pub(crate) mod write_back;
