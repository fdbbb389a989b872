//! What depends on nothing that a run is given.

use crate::reference::{Net, check, noise, snapshot};
use tracefx_compile::Precision;
use tracefx_core::DType;
use tracefx_ir::{Arg, GraphModule, NodeId};

/// `where(arange(n) <= arange(n).unsqueeze(1), x, -inf)`, of a matrix.
fn causal(n: i64, is_given: bool) -> GraphModule {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let columns = net.aten("arange.default", vec![Arg::Int(n)]);
    let rows = net.aten("unsqueeze.default", vec![columns.into(), Arg::Int(1)]);
    let mask = net.aten("le.Tensor", vec![columns.into(), rows.into()]);
    let least = net.aten("full.default", vec![Arg::List(vec![]), Arg::Float(f64::from(f32::MIN))]);
    let y = net.aten("where.self", vec![mask.into(), x.into(), least.into()]);
    let positive = net.aten("relu.default", vec![least.into()]);
    let outputs: &[NodeId] = if is_given { &[y, least, positive] } else { &[y] };
    net.finish(outputs)
}

#[test]
fn a_mask_that_is_made_of_positions_is_a_constant() {
    let plan = check(&causal(5, false), &[noise(&[5, 5], 0)], Precision::Strict);
    snapshot("a_mask_that_is_made_of_positions_is_a_constant", &plan);
}

/// What a run gives away, its caller may write to.
#[test]
fn what_is_given_is_made_in_each_run() {
    let plan = check(&causal(5, true), &[noise(&[5, 5], 0)], Precision::Strict).to_string();
    assert!(plan.contains("= aten.full.default("), "{plan}");
}

#[test]
fn a_large_mask_is_made_in_each_run() {
    let plan = check(&causal(2049, false), &[noise(&[2049, 2049], 0)], Precision::Strict).to_string();
    assert!(plan.contains("aten.le.Tensor(%c"), "{plan}");
}

#[test]
fn what_is_written_later_is_made_in_each_run() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let sum = net.aten("zeros.default", vec![Arg::List(vec![Arg::Int(3)])]);
    let rows = net.aten("arange.default", vec![Arg::Int(2)]);
    let y = net.aten("index_add_.default", vec![sum.into(), Arg::Int(0), rows.into(), x.into()]);
    let y = net.aten("add.Tensor", vec![y.into(), sum.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[2], 0)], Precision::Strict).to_string();
    assert!(plan.contains("= aten.zeros.default(") && !plan.contains("aten.arange"), "{plan}");
}

#[test]
fn random_numbers_are_new_in_each_run() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let number = net.aten("rand.default", vec![Arg::List(vec![Arg::Int(1)])]);
    let nothing = net.aten("mul.Tensor", vec![number.into(), Arg::Int(0)]);
    let y = net.aten("add.Tensor", vec![x.into(), nothing.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[3], 0)], Precision::Strict).to_string();
    assert!(plan.contains("= aten.rand.default("), "{plan}");
}

/// The plan is for tensors of this dtype and these sizes.
#[test]
fn what_sizes_hold_is_held_once() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let args = vec![x.into(), Arg::List(vec![Arg::Int(3)]), Arg::None, Arg::DType(DType::Float32)];
    net.aten("_assert_tensor_metadata.default", args);
    let y = net.aten("relu.default", vec![x.into()]);
    let plan = check(&net.finish(&[y]), &[noise(&[3], 0)], Precision::Strict);
    assert_eq!(plan.steps.len(), 1, "{plan}");
}
