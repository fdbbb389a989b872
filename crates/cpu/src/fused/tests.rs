//! Fused steps give what plain loops in float64 say, whichever algorithm computes them: on every instruction set, for odd
//! sizes, empty tensors, operands of any strides and all epilogues.

use super::prepare;
use crate::agreement::config;
use crate::gemm::quantized::{Affine, QuantizedRhs};
use crate::numeric::isa::Level;
use crate::numeric::map::cast;
use proptest::prelude::*;
use tracefx_core::{DType, Tensor, contiguous_strides};
use tracefx_plan::{
    Activation, BatchNorm, Convolution, ConvolutionLayer, Dequantization, DequantizedProduct, Epilogue, Fused,
    Int4Tiles, IntegerLayout, Product,
};

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|at| ((at * 7 + seed * 13) as f32 * 0.37).sin() * 2.0).collect()
}

fn nans(n: usize) -> Vec<f32> {
    std::iter::repeat_n(f32::NAN, n).collect()
}

fn tensor(sizes: &[usize], seed: usize) -> Tensor {
    Tensor::from_slice(&numbers(sizes.iter().product(), seed), sizes).unwrap()
}

/// The same numbers, not at the beginning of their storage.
fn shifted(tensor: &Tensor) -> Tensor {
    let mut data = nans(3);
    data.extend(tensor.to_vec::<f32>().unwrap());
    let all = Tensor::from_slice(&data, &[data.len()]).unwrap();
    all.as_strided(tensor.sizes(), &contiguous_strides(tensor.sizes()), 3).unwrap()
}

/// The same numbers, the last dimension first in memory.
fn turned(tensor: &Tensor) -> Tensor {
    let rank = tensor.rank();
    let order: Vec<usize> = (0..rank).map(|it| (it + rank - 1) % rank).collect();
    let back: Vec<usize> = (0..rank).map(|it| (it + 1) % rank).collect();
    tensor.permuted(&order).compact_copy().unwrap().permuted(&back)
}

/// A result in a storage that is longer, and holds anything.
fn result(sizes: &[usize]) -> Tensor {
    let n: usize = sizes.iter().product();
    let all = Tensor::from_slice(&nans(n + 5), &[n + 5]).unwrap();
    all.as_strided(sizes, &contiguous_strides(sizes), 0).unwrap()
}

const ACTIVATIONS: [Activation; 11] = [
    Activation::Identity,
    Activation::Clamp { min: 0.0, max: f32::INFINITY },
    Activation::Clamp { min: -0.5, max: 1.5 },
    Activation::LeakyRelu(0.1),
    Activation::Sigmoid,
    Activation::Silu,
    Activation::HardSigmoid,
    Activation::HardSwish,
    Activation::Tanh,
    Activation::Gelu,
    Activation::GeluTanh,
];

fn activated(activation: Activation, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match activation {
        Activation::Identity => x,
        Activation::Clamp { min, max } => x.max(f64::from(min)).min(f64::from(max)),
        Activation::LeakyRelu(slope) => {
            if x > 0.0 {
                x
            } else {
                x * f64::from(slope)
            }
        }
        Activation::Sigmoid => sigmoid(x),
        Activation::Silu => x * sigmoid(x),
        Activation::HardSigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Activation::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Activation::Tanh => x.tanh(),
        Activation::Gelu => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        }
    }
}

/// What an epilogue has: bias, normalisation, its weight, its bias, residual.
type Parts = [bool; 5];

fn epilogue(parts: Parts, activation: Activation, sizes: &[usize]) -> Epilogue<Tensor> {
    let n_channels = sizes[sizes.len() - 1];
    let [bias, norm, norm_weight, norm_bias, residual] = parts;
    let channel = |is_there: bool, seed: usize| is_there.then(|| tensor(&[n_channels], seed));
    let var: Vec<f32> = numbers(n_channels, 8).iter().map(|it| it.abs() + 0.1).collect();
    let norm = norm.then(|| BatchNorm {
        weight: channel(norm_weight, 5),
        bias: channel(norm_bias, 6),
        mean: tensor(&[n_channels], 7),
        var: Tensor::from_slice(&var, &[n_channels]).unwrap(),
        eps: 1e-3,
    });
    let residual = residual.then(|| shifted(&tensor(sizes, 9)));
    Epilogue { bias: channel(bias, 4), norm, residual, activation }
}

/// A sum, and that of the magnitudes of its terms.
#[derive(Clone, Copy)]
struct Sum {
    value: f64,
    magnitude: f64,
}

/// What an epilogue makes of sums, each with its error of so many roundings of its terms.
fn expected(epilogue: &Epilogue<Tensor>, sums: Vec<Sum>, n_roundings: f64) -> Vec<(f64, f64)> {
    let read = |it: &Option<Tensor>| it.as_ref().map(|it| it.to_vec::<f32>().unwrap());
    let (bias, residual) = (read(&epilogue.bias), read(&epilogue.residual));
    let norm = epilogue.norm.as_ref().map(|it| {
        (read(&it.weight), read(&it.bias), it.mean.to_vec::<f32>().unwrap(), it.var.to_vec::<f32>().unwrap(), it.eps)
    });
    let n_channels = epilogue.parameters().next().map_or(1, Tensor::numel);
    let of = |it: &Option<Vec<f32>>, at: usize| it.as_ref().map(|it| f64::from(it[at]));
    let each = |(at, mut sum): (usize, Sum)| {
        let channel = at % n_channels.max(1);
        let mut add = |it: f64| {
            sum.value += it;
            sum.magnitude += it.abs();
        };
        add(of(&bias, channel).unwrap_or(0.0));
        if let Some((weight, shift, mean, var, eps)) = &norm {
            add(-f64::from(mean[channel]));
            let scale = of(weight, channel).unwrap_or(1.0) / (f64::from(var[channel]) + eps).sqrt();
            sum = Sum { value: sum.value * scale, magnitude: sum.magnitude * scale.abs() };
            let shift = of(shift, channel).unwrap_or(0.0);
            sum = Sum { value: sum.value + shift, magnitude: sum.magnitude + shift.abs() };
        }
        let residual = of(&residual, at).unwrap_or(0.0);
        sum = Sum { value: sum.value + residual, magnitude: sum.magnitude + residual.abs() };
        // No activation is steeper than 1.2.
        let allowed = 1.2 * n_roundings * f64::from(f32::EPSILON) * (sum.magnitude + 1.0);
        (activated(epilogue.activation, sum.value), allowed)
    };
    sums.into_iter().enumerate().map(each).collect()
}

fn check(step: &Fused<Tensor>, sums: Vec<Sum>, n_roundings: f64) -> Result<(), TestCaseError> {
    let epilogue = match step {
        Fused::Convolution(it) => &it.layers[0].epilogue,
        Fused::Product(it) => &it.epilogue,
        Fused::DequantizedProduct(it) => &it.product.epilogue,
        Fused::Attention(_)
        | Fused::Gather(_)
        | Fused::Loop(_)
        | Fused::Norm(_)
        | Fused::Pool(_)
        | Fused::QuantizedConvolution(_) => {
            unreachable!("{} has no epilogue", step.name())
        }
    };
    let want = expected(epilogue, sums, n_roundings);
    let run = || {
        let run = prepare(step, crate::executor()).unwrap();
        // Twice: what is prepared is not used up.
        (0..2).for_each(|_| run(step).unwrap());
        step.results()[0].to_vec::<f32>().unwrap()
    };
    for (level, got) in Level::on_each(run) {
        prop_assert_eq!(got.len(), want.len());
        for (at, (&got, &(want, allowed))) in got.iter().zip(&want).enumerate() {
            let distance = (f64::from(got) - want).abs();
            prop_assert!(distance <= allowed, "{level:?}, element {at}: {got} is not {want}, {distance} > {allowed}");
        }
    }
    Ok(())
}

/// Sizes of a convolution: images, height, width; channels and filters of a group, groups; kernel, stride, padding, dilation.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    input: [usize; 3],
    channels: [usize; 3],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Sizes {
    fn points(&self) -> Option<[usize; 2]> {
        let mut res = [0; 2];
        for (dim, points) in res.iter_mut().enumerate() {
            let reach = (self.kernel[dim] - 1) * self.dilation[dim] + 1;
            *points = (self.input[1 + dim] + 2 * self.padding[dim]).checked_sub(reach)? / self.stride[dim] + 1;
        }
        Some(res)
    }

    /// The sums of the products of two functions of input and weight.
    fn sums(&self, input: &[f32], weight: &[f32]) -> Vec<Sum> {
        let ([n, h, w], [n_in, n_out, groups]) = (self.input, self.channels);
        let [oh, ow] = self.points().unwrap();
        let [kh, kw] = self.kernel;
        let mut res = Vec::new();
        for at in 0..n * oh * ow * n_out * groups {
            let (filter, point) = (at % (n_out * groups), at / (n_out * groups));
            let (image, y, x) = (point / (oh * ow), point / ow % oh, point % ow);
            let mut sum = Sum { value: 0.0, magnitude: 0.0 };
            for tap in 0..kh * kw {
                let place = |dim: usize, point: usize, tap: usize| {
                    let place = point * self.stride[dim] + tap * self.dilation[dim];
                    place.checked_sub(self.padding[dim]).filter(|&it| it < self.input[1 + dim])
                };
                let (Some(y), Some(x)) = (place(0, y, tap / kw), place(1, x, tap % kw)) else { continue };
                for channel in 0..n_in {
                    let from = ((image * h + y) * w + x) * n_in * groups + filter / n_out * n_in + channel;
                    let term = f64::from(input[from]) * f64::from(weight[(filter * n_in + channel) * kh * kw + tap]);
                    sum = Sum { value: sum.value + term, magnitude: sum.magnitude + term.abs() };
                }
            }
            res.push(sum);
        }
        res
    }

    /// The step, whose weight lies in another order where that is asked for.
    fn step(&self, parts: Parts, activation: Activation, is_turned: bool) -> Fused<Tensor> {
        let ([n, h, w], [n_in, n_out, groups], [kh, kw]) = (self.input, self.channels, self.kernel);
        let [oh, ow] = self.points().unwrap();
        let sizes = [n, oh, ow, n_out * groups];
        let weight = tensor(&[n_out * groups, n_in, kh, kw], 2);
        let layer = ConvolutionLayer {
            weight: if is_turned { turned(&weight) } else { weight },
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            groups,
            epilogue: epilogue(parts, activation, &sizes),
        };
        Fused::Convolution(Convolution {
            input: shifted(&tensor(&[n, h, w, n_in * groups], 1)),
            scale: None,
            layers: vec![layer],
            result: result(&sizes),
        })
    }

    /// Checks it; an algorithm with larger errors is allowed so many times as much.
    fn check(&self, parts: Parts, activation: Activation, is_turned: bool, factor: f64) -> Result<(), TestCaseError> {
        let step = self.step(parts, activation, is_turned);
        let Fused::Convolution(it) = &step else { unreachable!() };
        let sums = self.sums(&it.input.to_vec::<f32>().unwrap(), &it.layers[0].weight.to_vec::<f32>().unwrap());
        let n_terms = self.channels[0] * self.kernel[0] * self.kernel[1];
        check(&step, sums, factor * (n_terms as f64 + 8.0))
    }
}

fn activation() -> impl Strategy<Value = Activation> {
    prop::sample::select(&ACTIVATIONS[..])
}

/// Convolutions of all kinds.
fn sizes() -> impl Strategy<Value = Sizes> {
    let two = |most: usize| [1..=most, 1..=most];
    let channels = prop_oneof![
        3 => [0..40usize, 0..70, 1..2],
        1 => [1..9usize, 1..9, 2..4],
        3 => [1..2usize, 1..2, 1..70],
        1 => [1..2usize, 2..4, 1..40],
    ];
    let shape = (two(5), two(3), [0..=3usize, 0..=3], two(3));
    ([0..=3usize, 1..=15, 1..=15], channels, shape).prop_filter_map("the kernel fits", |(input, channels, shape)| {
        let (kernel, stride, padding, dilation) = shape;
        let res = Sizes { input, channels, kernel, stride, padding, dilation };
        res.points().map(|_| res)
    })
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn convolutions_are_what_the_plain_loop_says(
        sizes in sizes(), parts: Parts, activation in activation(), is_turned: bool,
    ) {
        sizes.check(parts, activation, is_turned, 1.0)?;
    }

    #[test]
    fn products_are_what_the_plain_loop_says(
        m in prop_oneof![0usize..6, 0usize..50],
        n in prop_oneof![0usize..70],
        k in prop_oneof![0usize..40, 250usize..270],
        parts: Parts,
        activation in activation(),
        is_turned: bool,
    ) {
        let (lhs, rhs) = (shifted(&tensor(&[m, k], 1)), tensor(&[k, n], 2));
        let (a, b) = (lhs.to_vec::<f32>().unwrap(), rhs.to_vec::<f32>().unwrap());
        let sum = |at: usize| (0..k).fold(Sum { value: 0.0, magnitude: 0.0 }, |sum, p| {
            let term = f64::from(a[at / n * k + p]) * f64::from(b[p * n + at % n]);
            Sum { value: sum.value + term, magnitude: sum.magnitude + term.abs() }
        });
        let sums = (0..m * n).map(sum).collect();
        let epilogue = epilogue(parts, activation, &[m, n]);
        let rhs = if is_turned { turned(&rhs) } else { rhs };
        let step = Fused::Product(Product { lhs, rhs, epilogue, result: result(&[m, n]) });
        check(&step, sums, k as f64 + 8.0)?;
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn convolutions_with_3_by_3_taps_are_what_the_plain_loop_says(
        input in [1..=2usize, 13..=21, 13..=21],
        channels in [32..50usize, 32..50, 1..2],
        padding in [0..=2usize, 0..=2],
        parts: Parts,
        activation in activation(),
    ) {
        let sizes = Sizes { input, channels, kernel: [3; 2], stride: [1; 2], padding, dilation: [1; 2] };
        sizes.check(parts, activation, false, 1.0)?;
    }
}

/// All of them: few points are where a stride, an image and a point are easily taken for one another.
#[test]
fn convolutions_of_small_images_are_what_the_plain_loop_says() {
    let dims = (1..=3).flat_map(|size| (1..=3).map(move |kernel| [size, kernel]));
    let dims = dims.flat_map(|it| (1..=3).flat_map(move |stride| (0..=1).map(move |padding| (it, stride, padding))));
    let dims: Vec<_> = dims.collect();
    for &([height, above], down, top) in &dims {
        for &([width, beside], right, left) in &dims {
            for channels in [[3, 2, 1], [1, 1, 3]] {
                let (kernel, stride, padding) = ([above, beside], [down, right], [top, left]);
                let sizes = Sizes { input: [2, height, width], channels, kernel, stride, padding, dilation: [1; 2] };
                if sizes.points().is_some() {
                    sizes.check([false; 5], Activation::Identity, false, 1.0).unwrap();
                }
            }
        }
    }
}

/// A layer with random filters.
fn layer(n_out: usize, n_in: usize, groups: usize, kernel: [usize; 2]) -> ConvolutionLayer<Tensor> {
    let weight = tensor(&[n_out, n_in / groups, kernel[0], kernel[1]], n_out);
    let (stride, padding, dilation) = ([1; 2], [0; 2], [1; 2]);
    ConvolutionLayer { weight, stride, padding, dilation, groups, epilogue: Epilogue::none() }
}

/// The results of these layers for an image: of one step, or of a step each.
fn layered(input: &Tensor, layers: &[ConvolutionLayer<Tensor>], is_joined: bool) -> Vec<u32> {
    let mut images = input.clone();
    for layers in if is_joined { vec![layers] } else { layers.chunks(1).collect() } {
        let sizes = |it: &Tensor| <[usize; 4]>::try_from(it.sizes()).unwrap();
        let wanted = layers
            .iter()
            .fold(sizes(&images), |images, layer| layer.result_sizes(images, sizes(&layer.weight)).unwrap());
        let step = Convolution { input: images, scale: None, layers: layers.to_vec(), result: result(&wanted) };
        images = step.result.clone();
        let step = Fused::Convolution(step);
        let run = prepare(&step, crate::executor()).unwrap();
        (0..2).for_each(|_| run(&step).unwrap());
    }
    images.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

proptest! {
    #![proptest_config(config(48))]

    /// To the bit, on all instruction sets and for any number of threads.
    #[test]
    fn convolutions_in_bands_are_those_one_after_the_other(
        input in [0..=2usize, 1..=40, 1..=40],
        [n_in, hidden, n_out] in [1..=9usize, 2..=130, 1..=40],
        multiplier in prop_oneof![4 => Just(1usize), 1 => Just(2)],
        kernel in [1..=5usize, 1..=5],
        stride in [1..=3usize, 1..=3],
        padding in [0..=2usize, 0..=2],
        [has_expand, has_project] in prop::sample::select(vec![[true, true], [true, false], [false, true]]),
        parts: [Parts; 3],
        activations in [activation(), activation(), activation()],
    ) {
        let mut depthwise = layer(hidden * multiplier, hidden, hidden, kernel);
        (depthwise.stride, depthwise.padding) = (stride, padding);
        let expand = has_expand.then(|| layer(hidden, n_in, 1, [1; 2]));
        let project = has_project.then(|| layer(n_out, hidden * multiplier, 1, [1; 2]));
        let mut layers: Vec<_> = expand.into_iter().chain([depthwise]).chain(project).collect();
        let [n, h, w] = input;
        let mut images = [n, h, w, if has_expand { n_in } else { hidden }];
        let image = shifted(&tensor(&images, 1));
        let last = layers.len() - 1;
        for (at, layer) in layers.iter_mut().enumerate() {
            let weight = layer.weight.sizes().try_into().unwrap();
            let Some(sizes) = layer.result_sizes(images, weight) else { return Ok(()) };
            let [bias, norm, norm_weight, norm_bias, residual] = parts[at];
            layer.epilogue =
                epilogue([bias, norm, norm_weight, norm_bias, residual && at == last], activations[at], &sizes);
            images = sizes;
        }
        for (level, [got, want]) in Level::on_each(|| [true, false].map(|it| layered(&image, &layers, it))) {
            prop_assert_eq!(got, want, "{:?}", level);
        }
        let on_threads = |n: usize| {
            crate::with_num_threads(n, || layered(&image, &layers, true))
        };
        prop_assert_eq!(on_threads(1), on_threads(3));
    }
}

/// What a pointwise convolution gives for images whose channels are multiplied: by the step, or before it.
fn scaled(images: &Tensor, scale: &Tensor, layer: &ConvolutionLayer<Tensor>, is_joined: bool) -> Vec<u32> {
    let [n, h, w, c] = images.sizes().try_into().unwrap();
    let (numbers, factors) = (images.to_vec::<f32>().unwrap(), scale.to_vec::<f32>().unwrap());
    let product = |(at, it): (usize, &f32)| it * factors[at / (h * w * c) * c + at % c];
    let products: Vec<f32> = numbers.iter().enumerate().map(product).collect();
    let products = Tensor::from_slice(&products, images.sizes()).unwrap();
    let (input, scale) = if is_joined { (images.clone(), Some(scale.clone())) } else { (products, None) };
    let result = result(&[n, h, w, layer.weight.sizes()[0]]);
    let step = Fused::Convolution(Convolution { input, scale, layers: vec![layer.clone()], result });
    let run = prepare(&step, crate::executor()).unwrap();
    (0..2).for_each(|_| run(&step).unwrap());
    step.results()[0].to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

proptest! {
    #![proptest_config(config(24))]

    /// To the bit, on all instruction sets: some images have more points than are multiplied at a time.
    #[test]
    fn a_convolution_of_scaled_channels_is_that_of_their_products(
        [n, h, w] in [0..=3usize, 1..=18, 1..=18],
        c in prop_oneof![0..40usize, 240..500usize],
        n_out in 0..40usize,
        parts: Parts,
        activation in activation(),
    ) {
        let mut layer = layer(n_out, c, 1, [1; 2]);
        layer.epilogue = epilogue(parts, activation, &[n, h, w, n_out]);
        let (images, scale) = (shifted(&tensor(&[n, h, w, c], 1)), shifted(&tensor(&[n, 1, 1, c], 3)));
        for (level, [got, want]) in Level::on_each(|| [true, false].map(|it| scaled(&images, &scale, &layer, it))) {
            prop_assert_eq!(got, want, "{:?}", level);
        }
    }
}

#[test]
fn padding_and_strides_beyond_the_image_are_not_laid_out() {
    let sizes = Sizes {
        input: [2, 3, 4],
        channels: [5, 6, 2],
        kernel: [2, 2],
        stride: [1 << 20, 1 << 20],
        padding: [1 << 21, 1 << 21],
        dilation: [3, 1],
    };
    sizes.check([true; 5], Activation::Silu, false, 1.0).unwrap();
    Sizes { channels: [1, 1, 20], ..sizes }.check([true; 5], Activation::Silu, false, 1.0).unwrap();
}

#[test]
fn what_is_not_a_number_stays_so() {
    let sizes = Sizes {
        input: [1, 9, 9],
        channels: [3, 5, 1],
        kernel: [3, 3],
        stride: [1; 2],
        padding: [1; 2],
        dilation: [1; 2],
    };
    for channels in [[3, 5, 1], [1, 1, 20], [40, 40, 1]] {
        for activation in ACTIVATIONS {
            let step = Sizes { channels, ..sizes }.step([false; 5], activation, false);
            let Fused::Convolution(it) = &step else { unreachable!() };
            let input = Tensor::from_slice(&nans(it.input.numel()), it.input.sizes()).unwrap();
            let step = Fused::Convolution(Convolution { input, ..it.clone() });
            prepare(&step, crate::executor()).unwrap()(&step).unwrap();
            assert!(step.results()[0].to_vec::<f32>().unwrap().iter().all(|it| it.is_nan()), "{activation:?}");
        }
    }
}

#[test]
fn other_dtypes_are_refused() {
    let tensor = || Tensor::from_slice(&[1.0f64], &[1, 1]).unwrap();
    let step = Fused::Product(Product { lhs: tensor(), rhs: tensor(), epilogue: Epilogue::none(), result: tensor() });
    assert!(prepare(&step, crate::executor()).is_err());
}

/// No thread changes a bit: parts are decided by sizes alone.
#[test]
fn threads_do_not_change_results() {
    let sizes = Sizes {
        input: [3, 20, 20],
        channels: [40, 40, 1],
        kernel: [3, 3],
        stride: [1; 2],
        padding: [1; 2],
        dilation: [1; 2],
    };
    for channels in [[40, 40, 1], [1, 1, 70], [5, 7, 3]] {
        let step = Sizes { channels, ..sizes }.step([true; 5], Activation::Gelu, false);
        let of = |n_threads: usize| {
            crate::with_num_threads(n_threads, || prepare(&step, crate::executor()).unwrap()(&step).unwrap());
            step.results()[0].to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(4));
    }
}

/// The bytes of what a step gives, on each instruction set.
fn bytes_on_each(step: &Fused<Tensor>, dtype: DType) -> Vec<Vec<u8>> {
    let run = || {
        let run = prepare(step, crate::executor()).unwrap();
        (0..2).for_each(|_| run(step).unwrap());
        cast(step.results()[0], dtype).unwrap().to_bytes().unwrap()
    };
    Level::on_each(run).into_iter().map(|(_, bytes)| bytes).collect()
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn a_product_of_halves_is_that_of_the_same_numbers_in_float32_rounded_once(
        m in prop_oneof![0usize..6, 0usize..50, 140usize..150],
        n in prop_oneof![0usize..70, 500usize..530],
        k in prop_oneof![1usize..40, 250usize..270, 510usize..520],
        [bias, residual]: [bool; 2],
        activation in activation(),
        order in 0..5,
        is_brain: bool,
    ) {
        let dtype = if is_brain { DType::BFloat16 } else { DType::Float16 };
        let rhs = match order {
            0 => tensor(&[k, n], 2),
            1 => turned(&tensor(&[k, n], 2)),
            2 => tensor(&[1, n], 2).as_strided(&[k, n], &[0, 1], 0).unwrap(),
            3 => tensor(&[k, 1], 2).as_strided(&[k, n], &[1, 0], 0).unwrap(),
            _ => tensor(&[k, 2 * n], 2).as_strided(&[k, n], &[2 * n, 2], 0).unwrap(),
        };
        let narrow = Fused::Product(Product {
            lhs: shifted(&tensor(&[m, k], 1)),
            rhs,
            epilogue: epilogue([bias, false, false, false, residual], activation, &[m, n]),
            result: result(&[m, n]),
        });
        // The same strides where there are elements, and the numbers that halves are.
        let narrow = narrow.try_map(&mut |it| {
            let all = cast(&it.as_strided(&[it.storage().len() / 4], &[1], 0)?, dtype)?;
            all.as_strided(it.sizes(), it.strides(), it.offset())
        });
        let narrow = narrow.unwrap();
        let wide = narrow.try_map(&mut |it| {
            let all = cast(&it.as_strided(&[it.storage().len() / 2], &[1], 0)?, DType::Float32)?;
            all.as_strided(it.sizes(), it.strides(), it.offset())
        });
        prop_assert_eq!(bytes_on_each(&narrow, dtype), bytes_on_each(&wide.unwrap(), dtype));
    }
}

/// Integers as a product takes them, and the numbers that they stand for, `[k, n]`.
fn dequantization(
    [k, n]: [usize; 2],
    group_size: usize,
    [is_tiled, is_narrow]: [bool; 2],
    [scales, zero_points, shifts]: [bool; 3],
    dtype: DType,
    integers: DType,
) -> (Tensor, Dequantization<Tensor>, Vec<f32>) {
    let n_groups = k / group_size;
    let numbers = |seed| cast(&tensor(&[n_groups, n], seed), dtype).unwrap();
    let zeros = || {
        // Zeros that are no integers, of numbers that nothing rounds.
        if dtype == DType::Float32 && n_groups % 2 == 1 {
            return numbers(13);
        }
        let zeros: Vec<i8> = (0..n_groups * n).map(|at| (at % 7) as i8 - 3).collect();
        Tensor::from_slice(&zeros, &[n_groups, n]).unwrap()
    };
    let layout = if is_tiled { IntegerLayout::Int4Tiles } else { IntegerLayout::Bytes };
    let it = Dequantization {
        layout,
        group_size,
        zero_point: 5,
        scale: 0.5,
        scales: scales.then(|| numbers(11)),
        zero_points: zero_points.then(zeros),
        shifts: shifts.then(|| numbers(12)),
        is_rounded: false,
    };
    let bits = if is_tiled || is_narrow { 4 } else { 8 };
    let raw = |row: usize, col: usize| (row * 31 + col * 17 + row * col) as i32 & ((1 << bits) - 1);
    let integer = |row: usize, col: usize| match integers {
        DType::Int8 => i32::from(raw(row, col) as i8),
        _ => raw(row, col),
    };
    let all = (0..k).flat_map(|row| (0..n).map(move |col| (row, col)));
    let rhs = if is_tiled {
        let mut words: Vec<i32> = (0..k * n / 8).map(|_| 0).collect();
        let sizes = [n / 8, k / 64, 32, 2];
        let tiles = Int4Tiles::of(&sizes).unwrap();
        for (row, col) in all.clone() {
            let (word, below) = tiles.place(row, col);
            words[word] |= raw(row, col) << below;
        }
        Tensor::from_slice(&words, &sizes).unwrap()
    } else {
        let bytes: Vec<u8> = all.clone().map(|(row, col)| raw(row, col) as u8).collect();
        let made = Tensor::from_slice(&bytes, &[k, n]).unwrap();
        Tensor::view_of(made.storage().clone(), integers, &[k, n], &[n, 1], 0).unwrap()
    };
    let of = |it: &Option<Tensor>, none: f32| match it {
        Some(it) => cast(it, DType::Float32).unwrap().to_vec::<f32>().unwrap(),
        None => (0..n_groups * n).map(|_| none).collect(),
    };
    let (scales, zeros, shifts) = (of(&it.scales, 1.0), of(&it.zero_points, 0.0), of(&it.shifts, 0.0));
    let number = |(row, col): (usize, usize)| {
        let at = row / group_size * n + col;
        (integer(row, col) as f32 - (5.0 + zeros[at])) * (0.5 * scales[at]) + shifts[at]
    };
    let wide = all.map(number).collect();
    (rhs, it, wide)
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn a_dequantized_product_is_that_of_the_numbers(
        m in prop_oneof![1usize..6, 0usize..50],
        n in prop_oneof![0usize..70, 500usize..530],
        groups in 1usize..9,
        group_size in prop_oneof![Just(1usize), Just(3), Just(32), Just(70), Just(301)],
        tiles in prop::option::of([1usize..5, 1usize..5]),
        which: [bool; 3],
        [bias, residual]: [bool; 2],
        activation in activation(),
        of in 0..3usize,
        is_signed: bool,
        [is_narrow, is_rounded]: [bool; 2],
    ) {
        let dtype = [DType::Float32, DType::Float16, DType::BFloat16][of];
        let ([k, n], group_size) = match tiles {
            Some([rows, columns]) => ([64 * rows, 8 * columns], [32, 64][rows % 2]),
            None => ([groups * group_size, n], group_size),
        };
        let integers = if tiles.is_some() { DType::Int32 } else if is_signed { DType::Int8 } else { DType::UInt8 };
        let (rhs, mut dequantization, mut wide) =
            dequantization([k, n], group_size, [tiles.is_some(), is_narrow], which, dtype, integers);
        dequantization.is_rounded = is_rounded;
        if is_rounded {
            let numbers = Tensor::from_slice(&wide, &[wide.len()]).unwrap();
            wide = cast(&cast(&numbers, dtype).unwrap(), DType::Float32).unwrap().to_vec::<f32>().unwrap();
        }
        let to = |it: &Tensor| cast(it, dtype).unwrap();
        let epilogue = epilogue([bias, false, false, false, residual], activation, &[m, n]);
        let lhs = to(&tensor(&[m, k], 1));
        let product = Product { lhs, rhs, epilogue, result: to(&result(&[m, n])) };
        let wide_lhs = cast(&product.lhs, DType::Float32).unwrap().to_vec::<f32>().unwrap();
        let sum = |at: usize| (0..k).fold(Sum { value: 0.0, magnitude: 0.0 }, |sum, p| {
            let term = f64::from(wide_lhs[at / n * k + p]) * f64::from(wide[p * n + at % n]);
            Sum { value: sum.value + term, magnitude: sum.magnitude + term.abs() }
        });
        let sums: Vec<Sum> = (0..m * n).map(sum).collect();
        let step = Fused::from(DequantizedProduct { product, dequantization });
        let step = if dtype == DType::Float32 { step } else {
            step.try_map(&mut |it| if it.dtype() == DType::Float32 { cast(it, dtype) } else { Ok(it.clone()) }).unwrap()
        };
        if dtype == DType::Float32 {
            check(&step, sums, k as f64 + 8.0)?;
        } else {
            let f32s = step.try_map(&mut |it| if it.dtype() == dtype { cast(it, DType::Float32) } else { Ok(it.clone()) });
            let f32s = match f32s.unwrap() {
                // A product of the numbers, which float32 does not round.
                Fused::DequantizedProduct(it) if is_rounded => {
                    let rhs = Tensor::from_slice(&wide, &[k, n]).unwrap();
                    Fused::Product(Product { rhs, ..it.product })
                }
                other => other,
            };
            // The same numbers in float32, which are rounded once.
            prop_assert_eq!(bytes_on_each(&step, dtype), bytes_on_each(&f32s, dtype));
        }
    }
}

#[test]
fn integers_that_are_near_each_other_take_four_bits() {
    let bytes = |of: &[i32]| {
        let affine = |_: usize, _: usize| Affine { zero: 0.0, scale: 1.0, shift: 0.0 };
        let rhs = QuantizedRhs::new(Level::best(), [of.len(), 64], 64, None, |_, col| of[col], affine).unwrap();
        rhs.n_bytes()
    };
    let wide = bytes(&[-100, 100]);
    assert_eq!((bytes(&[-8, 7]) * 2, bytes(&[240, 255]) * 2, bytes(&[-8, 8])), (wide, wide, wide));
}

/// Numbers that are infinite, and sums that are, where nothing is shifted.
#[test]
fn a_dequantized_product_is_infinite_where_that_of_the_numbers_is() {
    for m in 1..=5 {
        let rows: Vec<f32> = (0..m * 8).map(|at| if at % 8 == 0 { f32::INFINITY } else { 1.0 }).collect();
        let (lhs, columns) =
            (Tensor::from_slice(&rows, &[m, 8]).unwrap(), Tensor::from_slice(&[1i8; 24], &[8, 3]).unwrap());
        let dequantization = Dequantization::of_int8_columns(8, tensor(&[1, 3], 1));
        let product = Product { lhs, rhs: columns, epilogue: Epilogue::none(), result: result(&[m, 3]) };
        let step = Fused::from(DequantizedProduct { product, dequantization });
        prepare(&step, crate::executor()).unwrap()(&step).unwrap();
        let scales = tensor(&[1, 3], 1).to_vec::<f32>().unwrap();
        for (at, got) in step.results()[0].to_vec::<f32>().unwrap().into_iter().enumerate() {
            assert!(got.is_infinite() && got.signum() == scales[at % 3].signum(), "{m} rows: {got}");
        }
    }
}
