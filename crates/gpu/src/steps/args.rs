//! The arguments of a call, as lowering reads them: what is not of a kind is none.

use tracefx_plan::{Operand, TensorId};

/// The arguments of a call, in the order of its schema.
#[derive(Clone, Copy)]
pub(super) struct Args<'a>(pub(super) &'a [Operand]);

impl Args<'_> {
    pub(super) fn tensor(self, at: usize) -> Option<TensorId> {
        if let Some(Operand::Tensor(it)) = self.0.get(at) { Some(*it) } else { None }
    }

    pub(super) fn int(self, at: usize) -> Option<i64> {
        if let Some(Operand::Int(it)) = self.0.get(at) { Some(*it) } else { None }
    }

    pub(super) fn is_true(self, at: usize) -> bool {
        matches!(self.0.get(at), Some(Operand::Bool(true)))
    }

    /// One of so many dimensions.
    pub(super) fn dim(self, at: usize, rank: usize) -> Option<usize> {
        wrapped(self.int(at)?, rank)
    }
}

/// A number below `size`, which counts from the end where it is below zero.
pub(super) fn wrapped(it: i64, size: usize) -> Option<usize> {
    usize::try_from(if it < 0 { it + size as i64 } else { it }).ok().filter(|it| *it < size)
}
