//! Passes that take a graph apart.

use super::HostPass;

pub(super) const PASSES: &[HostPass] = &[];
