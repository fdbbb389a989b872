//! Concatenations as copies to slices.

use crate::reference::{Net, check, noise, snapshot};
use tracefx_compile::Precision;
use tracefx_core::DType;
use tracefx_ir::{Arg, NodeId};

fn cat(net: &mut Net, parts: &[NodeId], dim: i64) -> NodeId {
    net.aten("cat.default", vec![Arg::List(parts.iter().map(|it| (*it).into()).collect()), Arg::Int(dim)])
}

/// `x * cos + cat(-x[.., n:], x[.., :n]) * sin`: a rotary embedding.
#[test]
fn halves_that_change_places_are_copied_to_their_slices() {
    let mut net = Net::new();
    let (x, cos, sin) = (net.graph.placeholder("x"), net.graph.placeholder("cos"), net.graph.placeholder("sin"));
    let half = |net: &mut Net, from: i64, to: i64| {
        net.aten("slice.Tensor", vec![x.into(), Arg::Int(-1), Arg::Int(from), Arg::Int(to)])
    };
    let (first, second) = (half(&mut net, 0, 4), half(&mut net, 4, 8));
    let second = net.aten("neg.default", vec![second.into()]);
    let turned = cat(&mut net, &[second, first], -1);
    let a = net.aten("mul.Tensor", vec![x.into(), cos.into()]);
    let b = net.aten("mul.Tensor", vec![turned.into(), sin.into()]);
    let y = net.aten("add.Tensor", vec![a.into(), b.into()]);
    let inputs = [noise(&[2, 3, 8], 0), noise(&[3, 8], 1), noise(&[3, 8], 2)];
    let plan = check(&net.finish(&[y]), &inputs, Precision::Strict);
    snapshot("halves_that_change_places_are_copied_to_their_slices", &plan);
}

/// A part that is made for the concatenation alone, along the first dimension, is computed in its slice.
#[test]
fn parts_of_the_first_dimension_are_made_in_their_slices() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let a = net.aten("relu.default", vec![x.into()]);
    let b = net.aten("exp.default", vec![x.into()]);
    let y = cat(&mut net, &[a, b], 0);
    let y = net.aten("neg.default", vec![y.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 3], 0)], Precision::Strict);
    snapshot("parts_of_the_first_dimension_are_made_in_their_slices", &plan);
}

#[test]
fn what_is_seen_in_other_sizes_is_copied() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let turned = net.aten("transpose.int", vec![x.into(), Arg::Int(1), Arg::Int(2)]);
    let y = net.aten("reshape.default", vec![turned.into(), Arg::List(vec![Arg::Int(2), Arg::Int(12)])]);
    let y = net.aten("neg.default", vec![y.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 3, 4], 0)], Precision::Strict).to_string();
    assert!(plan.contains(" <- ") && !plan.contains("aten.reshape"), "{plan}");
}

/// Offsets count elements, which are smaller in another dtype.
#[test]
fn a_copy_that_is_seen_in_another_dtype_is_made() {
    for dtype in [DType::Int16, DType::Float64] {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let part = net.aten("slice.Tensor", vec![x.into(), Arg::Int(0), Arg::Int(4), Arg::Int(8)]);
        let copy = net.aten("clone.default", vec![part.into()]);
        let seen = net.aten("view.dtype", vec![copy.into(), Arg::DType(dtype)]);
        let y = net.aten("to.dtype", vec![seen.into(), Arg::DType(DType::Float32)]);
        let y = net.aten("sigmoid.default", vec![y.into()]);
        check(&net.finish(&[y]), &[noise(&[8], 3)], Precision::Strict);
    }
}

#[test]
fn concatenations_give_what_they_gave() {
    let cases: [(&[&[usize]], i64); 7] = [
        (&[&[2, 3], &[2, 0], &[2, 1]], 1),
        (&[&[0], &[2, 3]], 0),
        (&[&[2, 3]], 0),
        (&[&[2, 0], &[2, 0]], 1),
        (&[&[1, 1, 3], &[1, 4, 3]], -2),
        (&[&[2, 1, 3], &[2, 4, 3], &[2, 1, 3]], 1),
        (&[&[3], &[4]], 0),
    ];
    for (sizes, dim) in cases {
        for (is_turned, is_twice, is_given) in [(false, false, true), (true, true, false), (true, false, true)] {
            let mut net = Net::new();
            let inputs: Vec<_> = (0..sizes.len()).map(|it| net.graph.placeholder(&format!("x{it}"))).collect();
            let turn = |net: &mut Net, it: NodeId, rank: usize| {
                let order = (0..rank as i64).rev().map(Arg::Int).collect();
                net.aten("permute.default", vec![it.into(), Arg::List(order)])
            };
            let mut parts = inputs.clone();
            if is_turned {
                parts.iter_mut().zip(sizes).for_each(|(it, sizes)| *it = turn(&mut net, *it, sizes.len()));
            }
            parts.extend(is_twice.then(|| parts[0]));
            let mut y = cat(&mut net, &parts, dim);
            if !is_given {
                y = net.aten("neg.default", vec![y.into()]);
            }
            let tensor = |(at, sizes): (usize, &&[usize])| {
                if !is_turned {
                    return noise(sizes, at);
                }
                let last: Vec<usize> = sizes.iter().rev().copied().collect();
                noise(&last, at)
            };
            let tensors: Vec<_> = sizes.iter().enumerate().map(tensor).collect();
            let plan = check(&net.finish(&[y]), &tensors, Precision::Strict).to_string();
            let is_empty = sizes.iter().all(|it| it.contains(&0));
            assert_eq!(plan.contains("aten.cat"), is_empty, "{plan}");
        }
    }
}
