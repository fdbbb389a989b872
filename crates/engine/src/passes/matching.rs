//! Matching and rewriting.

use super::HostPass;

pub(super) const PASSES: &[HostPass] = &[];
