//! New tensors of no other tensor's elements, and numbers out of tensors and sizes.

use crate::OpDef;

pub(crate) mod decompose;
pub(crate) mod factories;
pub(crate) mod scalar;
pub(crate) mod window;

/// The tables of this domain, by name.
pub(crate) const OPS: &[(&str, &[OpDef])] =
    &[("create/factories", factories::OPS), ("create/scalar", scalar::OPS), ("create/window", window::OPS)];
