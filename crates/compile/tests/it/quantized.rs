//! Quantised networks: their convolutions and products are steps of integers.

use crate::reference::{Net, check, noise, snapshot};
use proptest::prelude::*;
use tracefx_compile::Precision;
use tracefx_core::{DType, Tensor};
use tracefx_ir::{Arg, NodeId};

/// A scale and the integer that is zero.
type Parameters = (f64, i64);

impl Net {
    fn quantized_op(&mut self, op: &str, args: Vec<Arg>, dtype: DType) -> NodeId {
        let (min, max) = if dtype == DType::Int8 { (-128, 127) } else { (0, 255) };
        let range = [Arg::Int(min), Arg::Int(max), Arg::DType(dtype)];
        let args = args.into_iter().chain(range).collect();
        self.graph.call_function(&format!("torch.ops.quantized_decomposed.{op}.default"), args, vec![])
    }

    fn quantize(&mut self, x: NodeId, (scale, zero): Parameters, dtype: DType) -> NodeId {
        self.quantized_op("quantize_per_tensor", vec![x.into(), Arg::Float(scale), Arg::Int(zero)], dtype)
    }

    fn dequantize(&mut self, x: NodeId, (scale, zero): Parameters, dtype: DType) -> NodeId {
        self.quantized_op("dequantize_per_tensor", vec![x.into(), Arg::Float(scale), Arg::Int(zero)], dtype)
    }

    /// What numbers become when they are quantised.
    fn quantized(&mut self, x: NodeId, parameters: Parameters, dtype: DType) -> NodeId {
        let x = self.quantize(x, parameters, dtype);
        self.dequantize(x, parameters, dtype)
    }

    /// The numbers of filters with a scale for each.
    fn filters(&mut self, sizes: &[usize]) -> NodeId {
        self.filters_of(sizes, |at| 0.002 + at as f32 * 1e-4)
    }

    fn filters_of(&mut self, sizes: &[usize], scale: impl Fn(usize) -> f32) -> NodeId {
        let n: usize = sizes.iter().product();
        let integers: Vec<i8> = (0..n).map(|at| (at * 89 % 256) as u8 as i8).collect();
        let scales: Vec<f32> = (0..sizes[0]).map(scale).collect();
        let zeros: Vec<i64> = (0..sizes[0]).map(|at| (at % 2) as i64).collect();
        let integers = self.constant(Tensor::from_slice(&integers, sizes).unwrap());
        let scales = self.constant(Tensor::from_slice(&scales, &sizes[..1]).unwrap());
        let zeros = self.constant(Tensor::from_slice(&zeros, &sizes[..1]).unwrap());
        let args = vec![integers.into(), scales.into(), zeros.into(), Arg::Int(0)];
        self.quantized_op("dequantize_per_channel", args, DType::Int8)
    }

    /// A convolution of quantised numbers with bias.
    fn conv_of(&mut self, x: NodeId, sizes: [usize; 3], stride: i64, groups: i64) -> NodeId {
        let [n_out, n_in, kernel] = sizes;
        let (weight, bias) = (self.filters(&[n_out, n_in, kernel, kernel]), self.weight(&[n_out]));
        let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
        let options = [pair(stride), pair(kernel as i64 / 2), pair(1), Arg::Int(groups)];
        self.aten("conv2d.default", [x.into(), weight.into(), bias.into()].into_iter().chain(options).collect())
    }
}

const UNSIGNED: DType = DType::UInt8;
const SIGNED: DType = DType::Int8;

/// A residual network of integers, as `convert_pt2e` makes it: first layer, pooling, two convolutions with a sum, mean and linear layer.
fn network(dtype: DType) -> (Net, NodeId) {
    let first = if dtype == SIGNED { -128 } else { 0 };
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantized(x, (0.008, first + 125), dtype);
    let x = net.conv_of(x, [8, 3, 3], 2, 1);
    let x = net.aten("relu.default", vec![x.into()]);
    let x = net.quantized(x, (0.005, first), dtype);
    let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
    let x = net.aten("max_pool2d.default", vec![x.into(), pair(3), pair(2), pair(1)]);
    let x = net.quantize(x, (0.005, first), dtype);
    let (a, b) = (net.dequantize(x, (0.005, first), dtype), net.dequantize(x, (0.005, first), dtype));
    let a = net.conv_of(a, [8, 8, 1], 1, 1);
    let a = net.aten("relu.default", vec![a.into()]);
    let a = net.quantized(a, (0.01, first), dtype);
    let a = net.conv_of(a, [8, 1, 3], 1, 8);
    let a = net.quantized(a, (0.02, first + 100), dtype);
    let sum = net.aten("add.Tensor", vec![a.into(), b.into()]);
    let sum = net.aten("relu.default", vec![sum.into()]);
    let sum = net.quantized(sum, (0.015, first), dtype);
    let mean = net.aten("adaptive_avg_pool2d.default", vec![sum.into(), pair(1)]);
    let mean = net.quantized(mean, (0.01, first), dtype);
    let flat = net.aten("flatten.using_ints", vec![mean.into(), Arg::Int(1)]);
    let flat = net.quantized(flat, (0.01, first), dtype);
    let (weight, bias) = (net.filters(&[5, 8]), net.weight(&[5]));
    let y = net.aten("linear.default", vec![flat.into(), weight.into(), bias.into()]);
    (net, y)
}

#[test]
fn a_quantised_network_is_steps_of_integers() {
    for dtype in [UNSIGNED, SIGNED] {
        let (net, y) = network(dtype);
        let plan = check(&net.finish(&[y]), &[noise(&[2, 3, 14, 14], 0)], Precision::Fast);
        snapshot(&format!("a_quantised_network_of_{}_is_steps_of_integers", dtype.name()), &plan);
    }
}

/// The plan of a network of `[1, 4, 5, 5]` images, with the number of its steps of integers.
#[track_caller]
fn check_steps(net: Net, outputs: &[NodeId], precision: Precision, n_steps: usize) -> String {
    let text = check(&net.finish(outputs), &[noise(&[1, 4, 5, 5], 0)], precision).to_string();
    assert_eq!(text.matches("= quantized_convolution(").count(), n_steps, "{text}");
    text
}

#[test]
fn a_strict_plan_computes_with_numbers() {
    let (net, y) = network(UNSIGNED);
    let text = check(&net.finish(&[y]), &[noise(&[2, 3, 14, 14], 0)], Precision::Strict).to_string();
    assert!(!text.contains("quantized_convolution("), "{text}");
}

#[test]
fn numbers_that_others_read_stay() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantized(x, (0.01, 3), SIGNED);
    let y = net.conv_of(x, [4, 4, 3], 1, 1);
    let y = net.aten("add.Tensor", vec![y.into(), x.into()]);
    let z = net.aten("sigmoid.default", vec![x.into()]);
    // The sum is one of numbers, which nobody rounds.
    let text = check_steps(net, &[y, z], Precision::Fast, 1);
    assert!(text.contains("residual=(") && text.contains("aten.sigmoid.default"), "{text}");
}

#[test]
fn integers_that_are_given_are_rounded_to() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantized(x, (0.01, 100), UNSIGNED);
    let y = net.conv_of(x, [4, 2, 3], 2, 2);
    let integers = net.quantize(y, (0.02, -5), SIGNED);
    let numbers = net.dequantize(integers, (0.02, -5), SIGNED);
    let integers = net.aten("to.dtype", vec![integers.into(), Arg::DType(DType::Float32)]);
    let text = check_steps(net, &[numbers, integers], Precision::Fast, 1);
    assert!(text.contains("rounding=x / 0.02 + -5"), "{text}");
}

#[test]
fn a_sum_is_rounded_once_where_the_convolution_is_not() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantize(x, (0.01, 100), UNSIGNED);
    let (a, b) = (net.dequantize(x, (0.01, 100), UNSIGNED), net.dequantize(x, (0.01, 100), UNSIGNED));
    let y = net.conv_of(a, [4, 4, 1], 1, 1);
    let y = net.aten("add.Tensor", vec![b.into(), y.into()]);
    let y = net.aten("hardtanh.default", vec![y.into(), Arg::Int(0), Arg::Int(6)]);
    let y = net.quantized(y, (0.03, 0), UNSIGNED);
    let y = net.conv_of(y, [3, 4, 3], 1, 1);
    let text = check_steps(net, &[y], Precision::Fast, 2);
    assert!(text.contains("residual=(") && text.contains("limits=[0.0, 6.0]") && !text.contains("inner="), "{text}");
}

#[test]
fn filters_may_have_one_scale_and_products_be_spelled_otherwise() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.aten("reshape.default", vec![x.into(), Arg::List([2, 5, 10].map(Arg::Int).to_vec())]);
    let x = net.quantized(x, (0.01, 3), SIGNED);
    let one = net.constant(
        Tensor::from_slice(&(0..60).map(|it| (it * 37 % 251) as u8 as i8).collect::<Vec<_>>(), &[6, 10]).unwrap(),
    );
    let one = net.dequantize(one, (0.004, 0), SIGNED);
    let y = net.aten("linear.default", vec![x.into(), one.into()]);
    let y = net.aten("relu.default", vec![y.into()]);
    let rows = net.aten("view.default", vec![x.into(), Arg::List([10, 10].map(Arg::Int).to_vec())]);
    let (weight, bias) = (net.filters(&[6, 10]), net.weight(&[6]));
    let columns = net.aten("t.default", vec![weight.into()]);
    let z = net.aten("addmm.default", vec![bias.into(), rows.into(), columns.into()]);
    check_steps(net, &[y, z], Precision::Fast, 2);
}

#[test]
fn what_is_no_quantised_convolution_stays_one_of_numbers() {
    let images = |net: &mut Net| {
        let x = net.graph.placeholder("x");
        net.quantized(x, (0.01, 3), SIGNED)
    };
    // Filters that are computed.
    let mut net = Net::new();
    let x = images(&mut net);
    let weight = net.weight(&[4, 4, 1, 1]);
    let weight = net.quantized(weight, (0.01, 0), SIGNED);
    let y = net.aten("conv2d.default", vec![x.into(), weight.into()]);
    check_steps(net, &[y], Precision::Fast, 0);
    // Filters of one scale whose zero is an integer of its own.
    let mut net = Net::new();
    let x = images(&mut net);
    let weight = net.constant(Tensor::from_slice(&[1i8; 16], &[4, 4, 1, 1]).unwrap());
    let weight = net.dequantize(weight, (0.01, 5), SIGNED);
    let y = net.aten("conv2d.default", vec![x.into(), weight.into()]);
    check_steps(net, &[y], Precision::Fast, 0);
    // Numbers that are not those that the integers were made of.
    let mut net = Net::new();
    let x = images(&mut net);
    let x = net.aten("relu.default", vec![x.into()]);
    let y = net.conv_of(x, [4, 4, 3], 1, 1);
    check_steps(net, &[y], Precision::Fast, 0);
}

#[test]
fn numbers_that_are_made_with_another_scale_are_no_step() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantized(x, (1.0 / 64.0, 3), SIGNED);
    let y = net.conv_of(x, [4, 4, 1], 1, 1);
    let y = net.quantize(y, (0.125, 0), SIGNED);
    let y = net.dequantize(y, (0.25, 0), SIGNED);
    let y = net.aten("add.Tensor", vec![y.into(), x.into()]);
    let text = check_steps(net, &[y], Precision::Fast, 1);
    assert!(!text.contains("inner="), "{text}");
}

/// Factors of the input channels, and conversions that do not hold the integers.
#[test]
fn filters_that_are_made_otherwise_stay_numbers() {
    let weight = Tensor::from_slice(&(0..16).map(|it| (it * 37 % 251) as u8 as i8).collect::<Vec<_>>(), &[4, 4, 1, 1]);
    for (sizes, dtype) in [(&[4, 1, 1][..], DType::Float32), (&[1, 1], DType::Float32), (&[4, 1, 1, 1], DType::UInt8)] {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let x = net.quantized(x, (0.01, 3), SIGNED);
        let integers = net.constant(weight.clone().unwrap());
        let n = sizes.iter().product();
        let scales: Vec<f32> = (0..n).map(|it| 0.01 + it as f32 * 0.01).collect();
        let scales = net.constant(Tensor::from_slice(&scales, sizes).unwrap());
        let made = net.aten("to.dtype", vec![integers.into(), Arg::DType(dtype)]);
        let made = net.aten("mul.Tensor", vec![made.into(), scales.into()]);
        let y = net.aten("conv2d.default", vec![x.into(), made.into()]);
        check_steps(net, &[y], Precision::Fast, 0);
    }
}

#[test]
fn numbers_may_be_read_by_steps_of_integers_and_of_numbers() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantized(x, (0.01, 3), SIGNED);
    let y = net.conv_of(x, [4, 4, 3], 1, 1);
    let (weight, other) = (net.weight(&[4, 4, 3, 3]), net.weight(&[4, 4, 1, 1]));
    let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
    let z = net.aten("conv2d.default", vec![x.into(), weight.into(), Arg::None, pair(1), pair(1)]);
    let u = net.aten("conv2d.default", vec![z.into(), other.into()]);
    let u = net.aten("add.Tensor", vec![u.into(), x.into()]);
    check_steps(net, &[y, z, u], Precision::Fast, 1);
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.aten("reshape.default", vec![x.into(), Arg::List([10, 10].map(Arg::Int).to_vec())]);
    let x = net.quantized(x, (0.01, 3), SIGNED);
    let (weight, floats) = (net.filters(&[10, 10]), net.weight(&[10, 10]));
    let y = net.aten("linear.default", vec![x.into(), weight.into()]);
    let z = net.aten("linear.default", vec![x.into(), floats.into()]);
    let z = net.aten("add.Tensor", vec![z.into(), x.into()]);
    check_steps(net, &[y, z], Precision::Fast, 1);
}

#[test]
fn means_of_integers_and_products_of_no_terms_are_those_of_operators() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let x = net.quantized(x, (0.01, 3), SIGNED);
    let y = net.conv_of(x, [4, 4, 3], 1, 1);
    let y = net.quantize(y, (0.01, 3), SIGNED);
    let dims = Arg::List(vec![Arg::Int(2), Arg::Int(3)]);
    let float = vec![("dtype".into(), Arg::DType(DType::Float32))];
    let mean = net.graph.call_function("torch.ops.aten.mean.dim", vec![y.into(), dims], float);
    let nothing = net.aten("slice.Tensor", vec![x.into(), Arg::Int(3), Arg::Int(0), Arg::Int(0)]);
    let weight = net.filters(&[6, 0]);
    let z = net.aten("linear.default", vec![nothing.into(), weight.into()]);
    check_steps(net, &[mean, z], Precision::Fast, 1);
}

/// A block of a random network, which begins and ends with integers.
#[derive(Clone, Debug)]
struct Block {
    dtype: DType,
    kind: usize,
    kernel: usize,
    stride: i64,
    groups: usize,
    zero: i64,
    /// Whether numbers are rounded before a sum.
    is_rounded: bool,
    has_residual: bool,
    /// Whether the sum reads the same numbers as the convolution.
    is_shared: bool,
    limits: usize,
}

fn block() -> impl Strategy<Value = Block> {
    let flags = any::<[bool; 3]>();
    let sizes = (0..8usize, prop::sample::select(vec![1usize, 3]), 1..3i64, prop::sample::select(vec![1usize, 2, 4]));
    (prop::sample::select(vec![UNSIGNED, SIGNED]), sizes, 0..128i64, flags, 0..3usize).prop_map(
        |(dtype, (kind, kernel, stride, groups), zero, [is_rounded, has_residual, is_shared], limits)| {
            let zero = zero - if dtype == SIGNED { 64 } else { 0 };
            Block { dtype, kind, kernel, stride, groups, zero, is_rounded, has_residual, is_shared, limits }
        },
    )
}

/// The integers behind a block, with the parameters that they have. Scales are powers of two, so that sums are exact in float32 too.
fn add_block(
    net: &mut Net,
    x: NodeId,
    (parameters, dtype): (Parameters, DType),
    it: &Block,
) -> (NodeId, (Parameters, DType)) {
    let numbers = net.dequantize(x, parameters, dtype);
    let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
    let (next, scale) = ((0.5, it.zero), |at: usize| if at.is_multiple_of(2) { 1.0 / 1024.0 } else { 1.0 / 512.0 });
    if it.kind == 0 {
        let pooled = net.aten("max_pool2d.default", vec![numbers.into(), pair(3), pair(it.stride), pair(1)]);
        return (net.quantize(pooled, parameters, dtype), (parameters, dtype));
    }
    let weight = net.filters_of(&[4, 4 / it.groups, it.kernel, it.kernel], scale);
    let bias = Tensor::from_slice(&[0.5f32, -1.25, 0.0, 3.0], &[4]).unwrap();
    let bias = net.constant(bias);
    let stride = if it.has_residual { 1 } else { it.stride };
    let options = [pair(stride), pair(it.kernel as i64 / 2), pair(1), Arg::Int(it.groups as i64)];
    let args = [numbers.into(), weight.into(), bias.into()].into_iter().chain(options).collect();
    let mut y = net.aten("conv2d.default", args);
    if it.has_residual {
        if it.is_rounded {
            y = net.quantized(y, (0.25, 7), it.dtype);
        }
        let other = if it.is_shared { numbers } else { net.dequantize(x, parameters, dtype) };
        y = net.aten("add.Tensor", vec![y.into(), other.into()]);
    }
    y = match it.limits {
        0 => y,
        1 => net.aten("relu.default", vec![y.into()]),
        _ => net.aten("hardtanh.default", vec![y.into(), Arg::Int(-1), Arg::Int(6)]),
    };
    (net.quantize(y, next, it.dtype), (next, it.dtype))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_networks_give_what_the_interpreter_gives(blocks in prop::collection::vec(block(), 1..5), ends in 0..3usize) {
        let mut net = Net::new();
        let x = net.graph.placeholder("x");
        let mut integers = (net.quantize(x, (1.0 / 64.0, 60), UNSIGNED), ((1.0 / 64.0, 60), UNSIGNED));
        for block in &blocks {
            integers = add_block(&mut net, integers.0, integers.1, block);
        }
        let (x, (parameters, dtype)) = integers;
        let y = net.dequantize(x, parameters, dtype);
        let y = match ends {
            0 => y,
            1 => net.aten("sigmoid.default", vec![y.into()]),
            _ => {
                let weight = net.filters_of(&[3, 4], |_| 0.25);
                let y = net.aten("permute.default", vec![y.into(), Arg::List([0, 2, 3, 1].map(Arg::Int).to_vec())]);
                net.aten("linear.default", vec![y.into(), weight.into()])
            }
        };
        let text = check(&net.finish(&[y]), &[noise(&[2, 4, 6, 7], 0)], Precision::Fast).to_string();
        let n_convolutions = blocks.iter().filter(|it| it.kind > 0).count();
        prop_assert!(text.matches("= quantized_convolution(").count() >= n_convolutions, "{text}");
    }
}
