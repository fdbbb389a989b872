//! Types of values, and constraints on them.

use super::HostPass;

pub(super) const PASSES: &[HostPass] = &[];
