//! A network is run by its plans as it is interpreted: to the bit, or up to rounding.

use crate::networks::Case;
use tracefx_compile::Precision;

/// The bytes of a step. Those that are not there choose what is simplest.
const STEP: usize = 32;
const MAX_STEPS: usize = 16;

pub(crate) fn check(input: &[u8]) {
    let Some(case) = case(input) else { return };
    if let Err(problem) = case.check() {
        panic!("{problem}");
    }
}

/// The network that these bytes choose.
pub(crate) fn case(input: &[u8]) -> Option<Case> {
    let (&[is_strict, ref head @ ..], steps) = input.split_first_chunk::<16>()?;
    let precision = if is_strict % 4 == 1 { Precision::Strict } else { Precision::Fast };
    let (sizes, outputs) = head.split_at(12);
    let steps = steps.chunks(STEP).take(MAX_STEPS).map(<[u8]>::to_vec).collect();
    Some(Case { precision, sizes: sizes.to_vec(), steps, outputs: outputs.to_vec() })
}
