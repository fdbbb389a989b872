//! The core ATen operators, by PyTorch's own list (torch 2.13).

use std::collections::BTreeSet;
use tracefx_ops::{Tags, registry};

#[test]
fn the_core_operators_are_those_of_pytorch() {
    let listed: BTreeSet<&str> = include_str!("core-aten.txt").lines().collect();
    let ops = registry().ops();
    let tagged: BTreeSet<&str> =
        ops.iter().filter(|it| it.def.tags.has(Tags::CORE)).map(|it| it.name.as_str()).collect();
    assert_eq!(tagged, listed);
}
