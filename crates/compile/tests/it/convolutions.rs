//! Convolutional regions: what becomes one step, and where images are laid out anew.

use crate::reference::{Net, check, noise, snapshot};
use tracefx_compile::Precision;
use tracefx_ir::Arg;

fn pair(it: i64) -> Arg {
    Arg::List(vec![Arg::Int(it); 2])
}

fn dims() -> Arg {
    Arg::List(vec![Arg::Int(-1), Arg::Int(-2)])
}

#[test]
fn a_residual_network_is_a_step_for_each_convolution() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let y = net.conv(x, [8, 3, 7], 2, 1);
    let y = net.norm(y, 8);
    let y = net.aten("relu.default", vec![y.into()]);
    let pool = vec![y.into(), pair(3), pair(2), pair(1)];
    let pooled = net.aten("max_pool2d_with_indices.default", pool);
    let x = net.graph.call_function("operator.getitem", vec![pooled.into(), Arg::Int(0)], vec![]);
    let y = net.conv(x, [16, 8, 3], 2, 1);
    let y = net.norm(y, 16);
    let y = net.aten("relu.default", vec![y.into()]);
    let y = net.conv(y, [16, 16, 3], 1, 1);
    let y = net.norm(y, 16);
    let short = net.conv(x, [16, 8, 1], 2, 1);
    let short = net.norm(short, 16);
    let y = net.aten("add.Tensor", vec![y.into(), short.into()]);
    let y = net.aten("relu.default", vec![y.into()]);
    let y = net.aten("mean.dim", vec![y.into(), dims(), Arg::Bool(true)]);
    let y = net.aten("view.default", vec![y.into(), Arg::List(vec![Arg::Int(2), Arg::Int(16)])]);
    let (weight, bias) = (net.weight(&[10, 16]), net.weight(&[10]));
    let y = net.aten("linear.default", vec![y.into(), weight.into(), bias.into()]);
    let module = net.finish(&[y]);
    let plan = check(&module, &[noise(&[2, 3, 33, 35], 0)], Precision::Fast);
    snapshot("a_residual_network_is_a_step_for_each_convolution", &plan);
}

#[test]
fn inverted_residuals_and_squeezed_channels_stay_in_their_layout() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.conv(x, [8, 3, 3], 2, 1);
    let y = net.conv(x, [24, 8, 1], 1, 1);
    let y = net.norm(y, 24);
    let y = net.aten("silu.default", vec![y.into()]);
    let y = net.conv(y, [24, 1, 5], 1, 24);
    let y = net.norm(y, 24);
    let y = net.aten("silu.default", vec![y.into()]);
    let s = net.aten("mean.dim", vec![y.into(), dims(), Arg::Bool(true)]);
    let s = net.conv(s, [6, 24, 1], 1, 1);
    let s = net.aten("silu.default", vec![s.into()]);
    let s = net.conv(s, [24, 6, 1], 1, 1);
    let s = net.aten("sigmoid.default", vec![s.into()]);
    let y = net.aten("mul.Tensor", vec![s.into(), y.into()]);
    let y = net.conv(y, [8, 24, 1], 1, 1);
    let y = net.norm(y, 8);
    let y = net.aten("add.Tensor", vec![y.into(), x.into()]);
    let module = net.finish(&[y]);
    let plan = check(&module, &[noise(&[1, 3, 20, 18], 0)], Precision::Fast);
    snapshot("inverted_residuals_and_squeezed_channels_stay_in_their_layout", &plan);
}

#[test]
fn what_is_read_twice_or_given_is_not_taken() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let first = net.conv(x, [4, 3, 3], 1, 1);
    let relu = net.aten("relu.default", vec![first.into()]);
    let sum = net.aten("add.Tensor", vec![first.into(), relu.into()]);
    let second = net.conv(sum, [4, 4, 3], 1, 1);
    let activated = net.aten("tanh.default", vec![second.into()]);
    let flat = net.aten("view.default", vec![activated.into(), Arg::List(vec![Arg::Int(2), Arg::Int(-1)])]);
    let third = net.conv(activated, [5, 4, 1], 1, 1);
    let module = net.finish(&[relu, second, flat, third]);
    let plan = check(&module, &[noise(&[2, 3, 6, 5], 0)], Precision::Fast);
    snapshot("what_is_read_twice_or_given_is_not_taken", &plan);
}

#[test]
fn what_is_written_between_is_not_read_later() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let other = net.graph.placeholder("other");
    let y = net.conv(x, [3, 3, 3], 1, 1);
    let z = net.conv(y, [3, 3, 3], 1, 1);
    net.aten("mul_.Tensor", vec![x.into(), Arg::Float(2.0)]);
    let sum = net.aten("add.Tensor", vec![z.into(), x.into()]);
    net.aten("add_.Tensor", vec![x.into(), other.into()]);
    let again = net.conv(x, [3, 3, 3], 1, 1);
    let sum = net.aten("add.Tensor", vec![sum.into(), again.into()]);
    let sum = net.aten("relu.default", vec![sum.into()]);
    let module = net.finish(&[sum]);
    check(&module, &[noise(&[1, 3, 4, 5], 0), noise(&[1, 3, 4, 5], 1)], Precision::Fast);
}

#[test]
fn operators_in_place_copy_nothing() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let y = net.conv(x, [4, 3, 3], 1, 1);
    net.aten("relu_.default", vec![y.into()]);
    let z = net.conv(y, [4, 4, 3], 1, 1);
    net.aten("add_.Tensor", vec![z.into(), y.into()]);
    net.aten("relu_.default", vec![z.into()]);
    let flat = net.aten("view.default", vec![z.into(), Arg::List(vec![Arg::Int(2), Arg::Int(-1)])]);
    net.aten("mul_.Tensor", vec![z.into(), Arg::Float(2.0)]);
    let module = net.finish(&[flat, z]);
    let plan = check(&module, &[noise(&[2, 3, 4, 5], 0)], Precision::Fast);
    snapshot("operators_in_place_copy_nothing", &plan);
}
