//! Normalisations of rows: which are one step.

use crate::reference::{Net, check, noise, snapshot};
use tracefx_compile::Precision;
use tracefx_core::DType;
use tracefx_ir::{Arg, NodeId};

fn sizes(it: &[i64]) -> Arg {
    Arg::List(it.iter().copied().map(Arg::Int).collect())
}

#[test]
fn a_normalisation_is_a_step_where_nobody_reads_its_statistics() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let (weight, bias) = (net.weight(&[3, 4]), net.weight(&[3, 4]));
    let last = [x.into(), sizes(&[3, 4]), weight.into(), bias.into(), Arg::Float(1e-5)];
    let y = net.aten("layer_norm.default", last.to_vec());
    let y = net.aten("rms_norm.default", vec![y.into(), sizes(&[4])]);
    let all = net.aten("native_layer_norm.default", last.to_vec());
    let mean = net.graph.call_function("operator.getitem", vec![all.into(), Arg::Int(1)], vec![]);
    let plan = check(&net.finish(&[y, mean]), &[noise(&[2, 3, 4], 0)], Precision::Fast);
    snapshot("a_normalisation_is_a_step_where_nobody_reads_its_statistics", &plan);
}

/// `x * rsqrt(mean(x²) + 1e-6)`, as Llama has it.
fn spelled_out(net: &mut Net, x: NodeId) -> NodeId {
    let y = net.aten("pow.Tensor_Scalar", vec![x.into(), Arg::Int(2)]);
    let y = net.aten("mean.dim", vec![y.into(), sizes(&[-1]), Arg::Bool(true)]);
    let y = net.aten("add.Tensor", vec![y.into(), Arg::Float(1e-6)]);
    let y = net.aten("rsqrt.default", vec![y.into()]);
    net.aten("mul.Tensor", vec![x.into(), y.into()])
}

#[test]
fn a_normalisation_that_is_spelled_out_is_one_step() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let weight = net.weight(&[8]);
    let y = spelled_out(&mut net, x);
    let y = net.aten("mul.Tensor", vec![weight.into(), y.into()]);
    let z = spelled_out(&mut net, y);
    let plan = check(&net.finish(&[y, z]), &[noise(&[2, 3, 8], 0)], Precision::Fast);
    snapshot("a_normalisation_that_is_spelled_out_is_one_step", &plan);
}

#[test]
fn normalisations_of_halves_are_steps_with_parameters_of_the_same_dtype() {
    for dtype in [DType::Float16, DType::BFloat16] {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let weight = net.weight(&[4]);
        let [half, narrow] = [x, weight].map(|it| net.aten("to.dtype", vec![it.into(), Arg::DType(dtype)]));
        let last = [half.into(), sizes(&[4]), narrow.into(), narrow.into(), Arg::Float(1e-5)];
        let y = net.aten("layer_norm.default", last.to_vec());
        let y = net.aten("rms_norm.default", vec![y.into(), sizes(&[3, 4])]);
        // A weight in float32 is a call's to convert.
        let z = net.aten("rms_norm.default", vec![y.into(), sizes(&[4]), weight.into()]);
        let outputs = [y, z].map(|it| net.aten("to.dtype", vec![it.into(), Arg::DType(DType::Float32)]));
        let plan = check(&net.finish(&outputs), &[noise(&[2, 3, 4], 0)], Precision::Fast);
        assert_eq!(plan.to_string().matches("= norm(").count(), 2, "{plan}");
    }
}

#[test]
fn what_is_nearly_a_normalisation_is_none() {
    let mut net = Net::new();
    let [x, other] = ["x", "other"].map(|it| net.graph.placeholder(it));
    let square = net.aten("mul.Tensor", vec![x.into(), x.into()]);
    let mean = net.aten("mean.dim", vec![square.into(), sizes(&[-1]), Arg::Bool(true)]);
    let sum = net.aten("add.Tensor", vec![mean.into(), Arg::Float(1e-6)]);
    let factor = net.aten("rsqrt.default", vec![sum.into()]);
    let scaled = net.aten("mul.Tensor", vec![other.into(), factor.into()]);
    // Of the second, others read the mean.
    let square = net.aten("mul.Tensor", vec![x.into(), x.into()]);
    let mean = net.aten("mean.dim", vec![square.into(), sizes(&[-1]), Arg::Bool(true)]);
    let sum = net.aten("add.Tensor", vec![mean.into(), Arg::Float(1e-6)]);
    let factor = net.aten("rsqrt.default", vec![sum.into()]);
    let y = net.aten("mul.Tensor", vec![x.into(), factor.into()]);
    let inputs = [noise(&[2, 3, 8], 0), noise(&[2, 3, 8], 1)];
    let plan = check(&net.finish(&[scaled, mean, y]), &inputs, Precision::Fast);
    assert_eq!(plan.to_string().matches("norm(").count(), 0, "{plan}");
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let y = spelled_out(&mut net, x);
    let plan = check(&net.finish(&[y]), &[noise(&[2, 3, 8], 0)], Precision::Strict);
    assert_eq!(plan.to_string().matches("norm(").count(), 0, "{plan}");
}
