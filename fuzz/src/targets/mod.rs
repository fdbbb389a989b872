//! What is checked, one file for each target.

pub(crate) mod archive;
pub(crate) mod expr;
pub(crate) mod matcher;
pub(crate) mod pickle;
pub(crate) mod plan;
pub(crate) mod plan_bytes;
pub(crate) mod program;
pub(crate) mod saved_plans;
pub(crate) mod wire;
