//! Copies: words are moved, whatever they mean.

use crate::lower::{Lowered, Lowering};
use crate::shader::{View, collapsed, coordinates};
use tracefx_plan::TensorId;

pub(super) fn copy(cx: &mut Lowering<'_>, from: TensorId, to: TensorId) -> Lowered {
    let (from, to) = (cx.movable(from)?, cx.movable(to)?);
    moved(cx, from, to)
}

/// Writes the elements of one tensor into the places of another, which it broadcasts to.
pub(super) fn moved(cx: &mut Lowering<'_>, from: View, mut to: View) -> Lowered {
    let (n, mut from) = (to.numel(), from.expanded(&to.sizes));
    collapsed(&mut [&mut from, &mut to]);
    cx.for_each(n, |shader| {
        let places = coordinates(shader, "i", &to.sizes, "c");
        let element = shader.load_words(&from, &from.at(&places));
        let statement = shader.store_words(&to, &to.at(&places), &element);
        shader.line(statement);
    })
}
