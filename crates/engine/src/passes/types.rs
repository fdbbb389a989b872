//! Types of values, and constraints on them.

use super::{Declare, HostPass};

pub(super) const PASSES: &[HostPass] = &[];

pub(super) const TYPES: &[Declare] = &[];
