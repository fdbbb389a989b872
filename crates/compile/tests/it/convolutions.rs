//! Convolutional regions: what becomes one step, and where images are laid out anew.

use crate::reference::{Net, check, noise, snapshot};
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{Tensor, with_default_generator};
use tracefx_cpu::kernels;
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, NodeId, TensorMeta};
use tracefx_ops::{Value, registry};

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

/// Large images between pointwise and depthwise convolutions are never whole in memory; small ones, and those that are read twice,
/// are.
#[test]
fn inverted_residuals_of_large_images_are_a_step() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let relu6 = |net: &mut Net, y| net.aten("hardtanh.default", vec![y, Arg::Int(0), Arg::Int(6)]);
    let block = |net: &mut Net, x: NodeId, [before, hidden, after]: [usize; 3], stride: i64| {
        let y = net.conv(x, [hidden, before, 1], 1, 1);
        let y = net.norm(y, hidden);
        let y = relu6(net, y.into());
        let y = net.conv(y, [hidden, 1, 3], stride, hidden as i64);
        let y = net.norm(y, hidden);
        let y = relu6(net, y.into());
        let y = net.conv(y, [after, hidden, 1], 1, 1);
        net.norm(y, after)
    };
    let x = net.conv(x, [16, 3, 3], 1, 1);
    let y = block(&mut net, x, [16, 64, 16], 1);
    let x = net.aten("add.Tensor", vec![y.into(), x.into()]);
    let x = block(&mut net, x, [16, 64, 24], 2);
    let y = block(&mut net, x, [24, 32, 24], 1);
    let x = net.aten("add.Tensor", vec![y.into(), x.into()]);
    let module = net.finish(&[x]);
    let plan = check(&module, &[noise(&[1, 3, 47, 45], 0)], Precision::Fast);
    snapshot("inverted_residuals_of_large_images_are_a_step", &plan);
}

/// Of whole images, with height and width in the result and without; other means stay calls.
#[test]
fn a_mean_of_images_is_a_pooling() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let y = net.conv(x, [6, 3, 3], 1, 1);
    let list = |dims: &[i64]| Arg::List(dims.iter().map(|&it| Arg::Int(it)).collect());
    let dims = [(&[2, 3][..], false), (&[-1, -2], true), (&[3, 2], false), (&[1, 2], false), (&[3], true)];
    let means = dims.map(|(dims, keep)| net.aten("mean.dim", vec![y.into(), list(dims), Arg::Bool(keep)]));
    let module = net.finish(&means);
    let plan = check(&module, &[noise(&[2, 3, 5, 7], 0)], Precision::Fast);
    snapshot("a_mean_of_images_is_a_pooling", &plan);
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

#[test]
fn what_is_seen_in_other_sizes_is_no_image() {
    let sizes = |it: &[i64]| Arg::List(it.iter().map(|it| Arg::Int(*it)).collect());
    for seen in [&[2, -1][..], &[-1], &[4, 12, 5], &[2, 1, 4, 6, 5]] {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let y = net.conv(x, [4, 3, 3], 1, 1);
        let y = net.aten("view.default", vec![y.into(), sizes(seen)]);
        let y = net.aten("relu.default", vec![y.into()]);
        let z = net.conv(x, [4, 3, 3], 1, 1);
        let z = net.aten("view.default", vec![z.into(), sizes(seen)]);
        net.aten("sigmoid_.default", vec![z.into()]);
        let sum = net.aten("add.Tensor", vec![y.into(), z.into()]);
        check(&net.finish(&[sum]), &[noise(&[2, 3, 6, 5], 0)], Precision::Fast);
    }
}

#[test]
fn a_slice_is_not_the_copy_of_the_whole() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let ints = |it: [i64; 3]| it.map(Arg::Int);
    let mut slice = x;
    for dim in [2, 3] {
        let args = [Arg::from(slice)].into_iter().chain(ints([dim, 0, 7])).collect();
        slice = net.aten("slice.Tensor", args);
    }
    let outputs = [x, slice, x].map(|it| net.conv(it, [4, 3, 3], 2, 1));
    check(&net.finish(&outputs), &[noise(&[1, 3, 8, 8], 0)], Precision::Fast);
}

#[test]
fn random_numbers_are_drawn_in_the_order_of_the_program() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let y = net.conv(x, [4, 3, 3], 1, 1);
    let drawn = net.aten("rand_like.default", vec![y.into()]);
    let sum = net.aten("add.Tensor", vec![y.into(), drawn.into()]);
    let module = net.finish(&[sum]);
    let input = noise(&[1, 3, 6, 5], 0);
    let metas = [Value::Tensor(TensorMeta::of(&input))];
    let plan = compile(plan(&module, &metas, registry(), kernels()).unwrap(), registry(), kernels(), Precision::Fast);
    let mut bound = BoundPlan::new(Arc::new(plan), registry(), kernels()).unwrap();
    let executor = Executor::new(registry(), kernels());
    let numbers = |run: &mut dyn FnMut(&[Value<Tensor>]) -> Value<Tensor>| {
        with_default_generator(|it| it.manual_seed(7));
        let mut res = Vec::new();
        run(&[Value::Tensor(input.clone())]).for_each_tensor(&mut |it| res.extend(it.to_vec::<f32>().unwrap()));
        res
    };
    let given = numbers(&mut |it| bound.run(executor, it, LOOP_STEPS, &mut |_, _| Ok(())).unwrap());
    let wanted = numbers(&mut |it| Interpreter::new(&module, executor).run(it).unwrap());
    assert!(given.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{given:?}\n{wanted:?}");
}

#[test]
fn empty_images_and_strides_beyond_them_are_convolved() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
    let mut convolved = |x: NodeId, weight: &[usize], stride: i64, padding: i64, groups: i64| {
        let weight = net.weight(weight);
        let options = [pair(stride), pair(padding), pair(1), Arg::Bool(false), pair(0), Arg::Int(groups)];
        net.aten("convolution.default", [x.into(), weight.into(), Arg::None].into_iter().chain(options).collect())
    };
    let empty = convolved(x, &[4, 3, 1, 1], 1, 1, 1);
    let next = convolved(empty, &[4, 4, 3, 3], 1, 1, 1);
    let far = convolved(next, &[4, 1, 3, 3], 1 << 40, 1, 4);
    check(&net.finish(&[empty, next, far]), &[noise(&[1, 3, 0, 4], 0)], Precision::Fast);
}

#[test]
fn a_small_convolution_by_itself_stays_where_it_is() {
    for (sizes, groups) in [([6, 1, 3], 6), ([4, 6, 1], 1)] {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let y = net.conv(x, sizes, 1, groups);
        let plan = check(&net.finish(&[y]), &[noise(&[1, 6, 9, 8], 0)], Precision::Fast);
        assert!(plan.to_string().contains("aten.convolution.default"), "{plan}");
    }
}
