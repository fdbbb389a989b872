//! Matching and rewriting.

use super::{Declare, HostPass};

pub(super) const PASSES: &[HostPass] = &[];

pub(super) const TYPES: &[Declare] = &[];
