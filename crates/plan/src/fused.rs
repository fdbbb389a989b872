//! Fused steps: what several operators of the program compute, in one step. Their tensors are of the type `T`: numbers of a plan's
//! tensors in a plan, tensors when it runs.

use crate::bytes::parts;
use crate::{DequantizedProduct, Loop, QuantizedConvolution};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tracefx_core::DType;

/// The dtypes of products, attention and normalisations.
pub const FLOATS: [DType; 3] = [DType::Float32, DType::Float16, DType::BFloat16];

/// What a fused step computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fused<T> {
    /// Scaled dot-product attention.
    Attention(Attention<T>),
    /// A convolution, or several.
    Convolution(Convolution<T>),
    /// A normalisation of rows.
    Norm(Norm<T>),
    /// A matrix product.
    Product(Product<T>),
    /// A pooling.
    Pool(Pool<T>),
    /// Elements at positions.
    Gather(Gather<T>),
    /// A convolution of 8-bit integers, or a product.
    QuantizedConvolution(Box<QuantizedConvolution<T>>),
    /// Pointwise operators.
    Loop(Loop<T>),
    /// A matrix product with columns of integers.
    DequantizedProduct(Box<DequantizedProduct<T>>),
}

/// Convolutions of channels-last images in float32, one after the other. Where there are several, a few rows of the images between
/// them are in memory at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convolution<T> {
    /// The images, `[N, H, W, C]`, row-major.
    pub input: T,
    /// What the channels of each image are multiplied by before, `[N, 1, 1, C]`, row-major: only of a pointwise convolution by itself
    /// (squeeze and excitation).
    pub scale: Option<T>,
    /// What is computed: one convolution, or a depthwise one with a pointwise one before it or behind it, or both (the inverted
    /// residual of MobileNetV2). Only the last one may have a residual.
    pub layers: Vec<ConvolutionLayer<T>>,
    /// What the last one gives, `[N, OH, OW, O]`, row-major.
    pub result: T,
}

/// What the filters of a convolution look at. Height stands before width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The strides.
    pub stride: [usize; 2],
    /// The padding of both sides.
    pub padding: [usize; 2],
    /// The distances of taps.
    pub dilation: [usize; 2],
    /// Channels are convolved in so many groups.
    pub groups: usize,
}

impl Window {
    /// The sizes `[N, OH, OW, O]` of what a convolution gives for images and filters of these sizes; nothing where they do not fit.
    pub fn result_sizes(&self, [n, h, w, c]: [usize; 4], [o, per_group, kh, kw]: [usize; 4]) -> Option<[usize; 4]> {
        let points = |dim: usize, image: usize, kernel: usize| {
            let reach = kernel.checked_sub(1)?.checked_mul(self.dilation[dim])?.checked_add(1)?;
            let room = self.padding[dim].checked_mul(2)?.checked_add(image)?.checked_sub(reach)?;
            Some(room.checked_div(self.stride[dim])? + 1)
        };
        let fits = self.groups > 0 && per_group.checked_mul(self.groups) == Some(c) && o % self.groups == 0;
        let fits = fits && self.dilation.iter().all(|&it| it > 0);
        fits.then_some([n, points(0, h, kh)?, points(1, w, kw)?, o])
    }
}

/// `epilogue(convolution(input, weight))`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConvolutionLayer<T> {
    /// The filters as PyTorch has them, `[O, C / groups, KH, KW]`, with any strides.
    pub weight: T,
    /// The strides of height and width.
    pub stride: [usize; 2],
    /// The padding of both sides of height and width.
    pub padding: [usize; 2],
    /// The distances of taps.
    pub dilation: [usize; 2],
    /// Channels are convolved in so many groups.
    pub groups: usize,
    /// What follows.
    pub epilogue: Epilogue<T>,
}

impl<T> ConvolutionLayer<T> {
    /// The sizes `[N, OH, OW, O]` of what it gives for images and filters of these sizes; nothing where they do not fit.
    pub fn result_sizes(&self, images: [usize; 4], weight: [usize; 4]) -> Option<[usize; 4]> {
        self.window().result_sizes(images, weight)
    }

    /// What a filter looks at.
    pub fn window(&self) -> Window {
        Window { stride: self.stride, padding: self.padding, dilation: self.dilation, groups: self.groups }
    }

    /// Whether filters of these sizes look at one pixel each, and at all channels.
    pub fn is_pointwise(&self, weight: &[usize]) -> bool {
        weight.get(2..) == Some(&[1, 1]) && (self.stride, self.padding, self.groups) == ([1; 2], [0; 2], 1)
    }

    /// Whether filters of these sizes look at one channel each, of several.
    pub fn is_depthwise(&self, weight: &[usize]) -> bool {
        weight.get(1) == Some(&1) && self.groups > 1
    }

    fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<ConvolutionLayer<U>, E> {
        Ok(ConvolutionLayer {
            weight: tensor(&self.weight)?,
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            groups: self.groups,
            epilogue: self.epilogue.try_map(tensor)?,
        })
    }
}

/// A product of matrices in float32, or all of its tensors in float16 or bfloat16: `result = epilogue(lhs @ rhs)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Product<T> {
    /// The rows, `[M, K]`, row-major.
    pub lhs: T,
    /// The columns, `[K, N]`, with any strides.
    pub rhs: T,
    /// What follows.
    pub epilogue: Epilogue<T>,
    /// What it gives, `[M, N]`, row-major.
    pub result: T,
}

/// A normalisation of rows in float32: `result = (input - mean) / sqrt(var + eps) * weight + bias`, or with
/// `input / sqrt(mean(input²) + eps)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Norm<T> {
    /// The rows, `[M, N]`, row-major.
    pub input: T,
    /// What rows are divided by.
    pub statistic: NormStatistic,
    /// The factors of the elements of a row, `[N]`; one where there are none.
    pub weight: Option<T>,
    /// What is added to the elements of a row, `[N]`.
    pub bias: Option<T>,
    /// What is added to the statistic.
    pub eps: f64,
    /// What it gives, `[M, N]`, row-major.
    pub result: T,
}

/// What a row is divided by the root of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NormStatistic {
    /// The variance, after the mean is subtracted: `aten.layer_norm`.
    Variance,
    /// The mean of the squares: `aten.rms_norm`.
    MeanSquare,
}

/// Scaled dot-product attention in float32, of as many heads as the dimensions before the last two have elements:
/// `result = softmax(query @ key.T * scale + mask) @ value`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attention<T> {
    /// The queries, `[.., L, E]`, with any strides.
    pub query: T,
    /// The keys, `[.., S, E]`, with any strides. Heads that share keys and values have strides of zero.
    pub key: T,
    /// The values, `[.., S, V]`, with any strides.
    pub value: T,
    /// What is added to the scores, or which of them count: of float32 or of bools, `[.., L, S]`, with any strides.
    pub mask: Option<T>,
    /// What is added to scores that a mask of bools does not count.
    pub masked: f64,
    /// Whether a row counts no columns behind its own number.
    pub is_causal: bool,
    /// The factor of the scores.
    pub scale: f64,
    /// Whether a row of which no column counts gives zeros, as `aten.scaled_dot_product_attention` does; else it gives what is no number.
    pub is_safe: bool,
    /// What it gives, `[.., L, V]`, with any strides that keep the elements apart.
    pub result: T,
}

/// A pooling of channels-last images in float32, or in int8 or uint8 where it gives the largest elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool<T> {
    /// The images, `[N, H, W, C]`, row-major.
    pub input: T,
    /// The sizes of a window.
    pub kernel: [usize; 2],
    /// The distances of windows.
    pub stride: [usize; 2],
    /// The padding of both sides of height and width.
    pub padding: [usize; 2],
    /// The distances of the elements of a window.
    pub dilation: [usize; 2],
    /// What is computed of a window.
    pub reduction: PoolReduction,
    /// What it gives, `[N, OH, OW, C]`, row-major; as many windows as its sizes say.
    pub result: T,
}

/// What a pooling computes of each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolReduction {
    /// The largest element, or what is not a number.
    Max,
    /// The sum of the elements, divided by this, or by how many they are, with those of the padding or without.
    Average {
        /// Whether elements of the padding count.
        count_include_pad: bool,
        /// What is divided by instead.
        divisor_override: Option<i64>,
    },
}

/// The elements at positions of a dimension, as `aten.index_select` and `aten.embedding` give them, of any dtype.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gather<T> {
    /// The operator, which an error names.
    #[serde(with = "parts::text")]
    pub op: Arc<str>,
    /// The elements, with any strides.
    pub input: T,
    /// The dimension.
    pub dim: usize,
    /// The positions, of int32 or int64, with any sizes and strides.
    pub index: T,
    /// Whether positions below zero count from the end, as those of `aten.index.Tensor` do.
    pub is_wrapped: bool,
    /// What it gives, row-major: the sizes of the input, with those of the index in the place of the dimension.
    pub result: T,
}

/// What follows a product or a convolution, in this order: the bias of each channel is added, channels are normalised, the residual is added, and
/// the activation is applied. A channel is an index of the last dimension of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epilogue<T> {
    /// A number for each channel.
    pub bias: Option<T>,
    /// Batch normalisation with the statistics of training.
    pub norm: Option<BatchNorm<T>>,
    /// A tensor like the result, row-major.
    pub residual: Option<T>,
    /// What is applied to each element at the end.
    pub activation: Activation,
}

/// `(x - mean) / sqrt(var + eps) * weight + bias`, each a number for each channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchNorm<T> {
    /// The factors; one where there are none.
    pub weight: Option<T>,
    /// What is added; zero where there is nothing.
    pub bias: Option<T>,
    /// The running means.
    pub mean: T,
    /// The running variances.
    pub var: T,
    /// What is added to the variances.
    pub eps: f64,
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Activation {
    /// The number itself.
    Identity,
    /// The number within these limits; not a number stays so. ReLU is `Clamp { min: 0.0, max: f32::INFINITY }`.
    Clamp {
        /// The lower limit.
        min: f32,
        /// The upper limit.
        max: f32,
    },
    /// `aten.leaky_relu`, with the slope below zero.
    LeakyRelu(f32),
    /// `aten.sigmoid`.
    Sigmoid,
    /// `aten.silu`.
    Silu,
    /// `aten.hardsigmoid`.
    HardSigmoid,
    /// `aten.hardswish`.
    HardSwish,
    /// `aten.tanh`.
    Tanh,
    /// `aten.gelu`, by the error function.
    Gelu,
    /// `aten.gelu` with `approximate="tanh"`.
    GeluTanh,
}

impl<T> Fused<T> {
    /// The name of the step in a printed plan.
    pub fn name(&self) -> &'static str {
        match self {
            Fused::Attention(_) => "attention",
            Fused::Convolution(_) => "convolution",
            Fused::Norm(_) => "norm",
            Fused::Product(_) => "product",
            Fused::Pool(_) => "pool",
            Fused::Gather(_) => "gather",
            Fused::QuantizedConvolution(_) => "quantized_convolution",
            Fused::Loop(_) => "loop",
            Fused::DequantizedProduct(_) => "dequantized_product",
        }
    }

    /// The dtype that its tensors of numbers have, as products, attention and normalisations of halves have it; float32 for any other.
    pub fn float_dtype(&self, dtype: impl Fn(&T) -> DType) -> DType {
        let own = match self {
            Fused::Product(it) => dtype(&it.lhs),
            Fused::DequantizedProduct(it) => dtype(&it.product.lhs),
            Fused::Attention(it) => dtype(&it.query),
            Fused::Norm(it) => dtype(&it.input),
            _ => DType::Float32,
        };
        if FLOATS.contains(&own) { own } else { DType::Float32 }
    }

    /// The tensors that it reads, in the order of the fields.
    pub fn inputs(&self) -> Vec<&T> {
        let mut res = Vec::new();
        self.for_each_input(&mut |it| res.push(it));
        res
    }

    /// Visits the tensors that it reads, in the order of the fields.
    pub fn for_each_input<'a>(&'a self, visit: &mut dyn FnMut(&'a T)) {
        match self {
            Fused::Convolution(it) => {
                [&it.input].into_iter().chain(&it.scale).for_each(&mut *visit);
                for layer in &it.layers {
                    visit(&layer.weight);
                    layer.epilogue.tensors().for_each(&mut *visit);
                }
            }
            Fused::Product(it) => [&it.lhs, &it.rhs].into_iter().chain(it.epilogue.tensors()).for_each(visit),
            Fused::Attention(it) => [&it.query, &it.key, &it.value].into_iter().chain(&it.mask).for_each(visit),
            Fused::Norm(it) => [&it.input].into_iter().chain(&it.weight).chain(&it.bias).for_each(visit),
            Fused::Pool(it) => visit(&it.input),
            Fused::Gather(it) => [&it.input, &it.index].into_iter().for_each(visit),
            Fused::QuantizedConvolution(it) => it.inputs().for_each(visit),
            Fused::Loop(it) => it.inputs.iter().for_each(visit),
            Fused::DequantizedProduct(it) => {
                let (product, integers) = (&it.product, it.dequantization.tensors());
                [&product.lhs, &product.rhs]
                    .into_iter()
                    .chain(integers)
                    .chain(product.epilogue.tensors())
                    .for_each(visit);
            }
        }
    }

    /// The tensors of which something is made once and kept until they change: weights, and what is folded into them.
    pub fn parameters(&self) -> impl Iterator<Item = &T> {
        let (layers, product, quantized, dequantization) = match self {
            Fused::Convolution(it) => (&it.layers[..], None, None, None),
            Fused::Product(it) => (&[][..], Some((&it.rhs, &it.epilogue)), None, None),
            Fused::DequantizedProduct(it) => {
                (&[][..], Some((&it.product.rhs, &it.product.epilogue)), None, Some(&it.dequantization))
            }
            Fused::QuantizedConvolution(it) => (&[][..], None, Some(it), None),
            Fused::Attention(_) | Fused::Norm(_) | Fused::Pool(_) | Fused::Gather(_) | Fused::Loop(_) => {
                (&[][..], None, None, None)
            }
        };
        let weights = layers.iter().map(|it| (&it.weight, &it.epilogue)).chain(product);
        let weights = weights.flat_map(|(weight, epilogue)| [weight].into_iter().chain(epilogue.parameters()));
        let weights = weights.chain(dequantization.into_iter().flat_map(|it| it.tensors()));
        weights.chain(quantized.into_iter().flat_map(|it| it.parameters()))
    }

    /// The tensors that it writes, all of them.
    pub fn results(&self) -> Vec<&T> {
        let mut res = Vec::new();
        self.for_each_result(&mut |it| res.push(it));
        res
    }

    /// Visits the tensors that it writes, all of them.
    pub fn for_each_result<'a>(&'a self, visit: &mut dyn FnMut(&'a T)) {
        match self {
            Fused::Attention(it) => visit(&it.result),
            Fused::Convolution(it) => visit(&it.result),
            Fused::Product(it) => visit(&it.result),
            Fused::Norm(it) => visit(&it.result),
            Fused::Pool(it) => visit(&it.result),
            Fused::Gather(it) => visit(&it.result),
            Fused::QuantizedConvolution(it) => visit(&it.result),
            Fused::Loop(it) => it.outputs.iter().for_each(|(_, to)| visit(to)),
            Fused::DequantizedProduct(it) => visit(&it.product.result),
        }
    }

    /// The same step on other tensors.
    ///
    /// # Errors
    /// The first that `tensor` gives.
    pub fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Fused<U>, E> {
        Ok(match self {
            Fused::Attention(it) => Fused::Attention(Attention {
                query: tensor(&it.query)?,
                key: tensor(&it.key)?,
                value: tensor(&it.value)?,
                mask: it.mask.as_ref().map(&mut *tensor).transpose()?,
                masked: it.masked,
                is_causal: it.is_causal,
                scale: it.scale,
                is_safe: it.is_safe,
                result: tensor(&it.result)?,
            }),
            Fused::Convolution(it) => Fused::Convolution(Convolution {
                input: tensor(&it.input)?,
                scale: it.scale.as_ref().map(&mut *tensor).transpose()?,
                layers: it.layers.iter().map(|it| it.try_map(tensor)).collect::<Result<_, E>>()?,
                result: tensor(&it.result)?,
            }),
            Fused::Norm(it) => Fused::Norm(Norm {
                input: tensor(&it.input)?,
                statistic: it.statistic,
                weight: it.weight.as_ref().map(&mut *tensor).transpose()?,
                bias: it.bias.as_ref().map(&mut *tensor).transpose()?,
                eps: it.eps,
                result: tensor(&it.result)?,
            }),
            Fused::Pool(it) => Fused::Pool(Pool {
                input: tensor(&it.input)?,
                kernel: it.kernel,
                stride: it.stride,
                padding: it.padding,
                dilation: it.dilation,
                reduction: it.reduction,
                result: tensor(&it.result)?,
            }),
            Fused::Gather(it) => Fused::Gather(Gather {
                op: it.op.clone(),
                input: tensor(&it.input)?,
                dim: it.dim,
                index: tensor(&it.index)?,
                is_wrapped: it.is_wrapped,
                result: tensor(&it.result)?,
            }),
            Fused::Product(it) => Fused::Product(it.try_map(tensor)?),
            Fused::DequantizedProduct(it) => Fused::DequantizedProduct(Box::new(DequantizedProduct {
                product: it.product.try_map(tensor)?,
                dequantization: it.dequantization.try_map(tensor)?,
            })),
            Fused::QuantizedConvolution(it) => Fused::QuantizedConvolution(Box::new(it.try_map(tensor)?)),
            Fused::Loop(it) => Fused::Loop(it.try_map(tensor)?),
        })
    }
}

impl<T> Product<T> {
    fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Product<U>, E> {
        Ok(Product {
            lhs: tensor(&self.lhs)?,
            rhs: tensor(&self.rhs)?,
            epilogue: self.epilogue.try_map(tensor)?,
            result: tensor(&self.result)?,
        })
    }
}

impl<T> Epilogue<T> {
    /// Nothing.
    pub fn none() -> Self {
        Epilogue { bias: None, norm: None, residual: None, activation: Activation::Identity }
    }

    /// The tensors that it reads, in the order of the fields.
    pub fn tensors(&self) -> impl Iterator<Item = &T> {
        self.parameters().chain(&self.residual)
    }

    /// The tensors of which something is made once.
    pub fn parameters(&self) -> impl Iterator<Item = &T> {
        let norm = self.norm.iter();
        let norm = norm.flat_map(|it| it.weight.iter().chain(&it.bias).chain([&it.mean, &it.var]));
        self.bias.iter().chain(norm)
    }

    fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Epilogue<U>, E> {
        let bias = self.bias.as_ref().map(&mut *tensor).transpose()?;
        let norm = match &self.norm {
            Some(it) => Some(BatchNorm {
                weight: it.weight.as_ref().map(&mut *tensor).transpose()?,
                bias: it.bias.as_ref().map(&mut *tensor).transpose()?,
                mean: tensor(&it.mean)?,
                var: tensor(&it.var)?,
                eps: it.eps,
            }),
            None => None,
        };
        let residual = self.residual.as_ref().map(&mut *tensor).transpose()?;
        Ok(Epilogue { bias, norm, residual, activation: self.activation })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Action, Attention, Buffer, BufferId, Convolution, ConvolutionLayer, Epilogue, Fused, Norm, NormStatistic,
        Operand, Plan, TensorId, TensorView,
    };
    use tracefx_core::DType;

    fn numbers(it: &[i64]) -> Vec<tracefx_sym::SymInt> {
        it.iter().map(|it| (*it).into()).collect()
    }

    /// A plan of inputs of these sizes and a result, which is the last.
    fn plan(sizes: &[&[i64]]) -> Plan {
        let mut plan = Plan::default();
        for (at, sizes) in sizes.iter().enumerate() {
            let buffer = if at == 0 { Buffer::Result } else { Buffer::Input(at as u32 - 1) };
            let buffer = plan.add_buffer(buffer);
            let id = plan.add_tensor(TensorView::row_major(buffer, DType::Float32, &numbers(sizes)));
            if at > 0 {
                plan.inputs.push(Operand::Tensor(id));
            }
        }
        plan.output = Operand::Tensor(TensorId(0));
        plan
    }

    /// Attention of three heads: two rows, four columns, five features, six values.
    fn attention(change: impl FnOnce(&mut Attention<TensorId>, &mut Plan)) -> Plan {
        let mut plan = plan(&[&[3, 2, 6], &[3, 2, 5], &[3, 4, 5], &[3, 4, 6], &[3, 2, 4]]);
        let [result, query, key, value, mask] = [0, 1, 2, 3, 4].map(TensorId);
        let (mask, masked, scale) = (Some(mask), f64::NEG_INFINITY, 0.5);
        let mut step = Attention { query, key, value, mask, masked, is_causal: false, scale, is_safe: true, result };
        change(&mut step, &mut plan);
        plan.push("attention", Action::Fused(Fused::Attention(step)));
        plan
    }

    fn norm(change: impl FnOnce(&mut Norm<TensorId>, &mut Plan)) -> Plan {
        let mut plan = plan(&[&[2, 3], &[2, 3], &[3], &[3]]);
        let [result, input, weight, bias] = [0, 1, 2, 3].map(TensorId);
        let (weight, bias, statistic) = (Some(weight), Some(bias), NormStatistic::Variance);
        let mut step = Norm { input, statistic, weight, bias, eps: 1e-5, result };
        change(&mut step, &mut plan);
        plan.push("norm", Action::Fused(Fused::Norm(step)));
        plan
    }

    #[test]
    fn attention_and_norms_print_what_they_take() {
        let attention = attention(|_, _| {});
        attention.validate().unwrap();
        assert_eq!(
            attention.to_string(),
            "plan(%1: f32[3, 2, 5], %2: f32[3, 4, 5], %3: f32[3, 4, 6], %4: f32[3, 2, 4]):
    %0: f32[3, 2, 6] = attention(%1, %2, %3, mask=%4, is_causal=false, scale=0.5, is_safe=true)  # attention
    return %0"
        );
        let norm = norm(|_, _| {});
        norm.validate().unwrap();
        assert_eq!(
            norm.to_string(),
            "plan(%1: f32[2, 3], %2: f32[3], %3: f32[3]):
    %0: f32[2, 3] = norm(%1, Variance, weight=%2, bias=%3, eps=1e-5)  # norm
    return %0"
        );
    }

    /// A pointwise convolution of two images of four pixels and three channels, which are multiplied before.
    fn convolution(change: impl FnOnce(&mut Convolution<TensorId>, &mut Plan)) -> Plan {
        let mut plan = plan(&[&[2, 2, 2, 5], &[2, 2, 2, 3], &[2, 1, 1, 3], &[5, 3, 1, 1]]);
        let [result, input, scale, weight] = [0, 1, 2, 3].map(TensorId);
        let (stride, padding, dilation) = ([1; 2], [0; 2], [1; 2]);
        let layer = ConvolutionLayer { weight, stride, padding, dilation, groups: 1, epilogue: Epilogue::none() };
        let mut step = Convolution { input, scale: Some(scale), layers: vec![layer], result };
        change(&mut step, &mut plan);
        plan.push("convolution", Action::Fused(Fused::Convolution(step)));
        plan
    }

    #[test]
    fn a_scale_that_does_not_fit_its_images_is_refused() {
        let plan = convolution(|_, _| {});
        plan.validate().unwrap();
        assert!(plan.to_string().contains("= convolution(%1, scale=%2, %3, stride=[1, 1]"), "{plan}");
        type Change = fn(&mut Convolution<TensorId>, &mut Plan);
        let cases: [(Change, &str); 5] = [
            (|it, _| it.scale = Some(it.input), "is no scale"),
            (|_, plan| plan.tensors[2].sizes = numbers(&[1, 1, 1, 3]), "is no scale"),
            (|_, plan| plan.tensors[2].dtype = DType::Float64, "is not of float32"),
            (|_, plan| plan.tensors[2].strides = numbers(&[1, 1, 1, 2]), "is not row-major"),
            (
                |it, plan| {
                    it.layers[0].padding = [1; 2];
                    plan.tensors[0] = TensorView::row_major(BufferId(0), DType::Float32, &numbers(&[2, 4, 4, 5]));
                },
                "is no scale",
            ),
        ];
        for (change, words) in cases {
            let problem = convolution(change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }

    /// The result of the one step with other strides.
    fn strided(plan: &mut Plan, strides: &[i64]) {
        plan.tensors[0].strides = numbers(strides);
    }

    #[test]
    fn attention_whose_tensors_do_not_fit_is_refused() {
        attention(|_, plan| strided(plan, &[6, 18, 1])).validate().unwrap();
        type Change = fn(&mut Attention<TensorId>, &mut Plan);
        let cases: [(Change, &str); 8] = [
            (|it, _| it.key = it.value, "gives [3, 2, 6]"),
            (|it, _| it.query = it.mask.unwrap(), "gives [3, 2, 6]"),
            (|it, _| it.mask = Some(it.query), "is no mask"),
            (|_, plan| plan.tensors[4].dtype = DType::Int64, "is no mask"),
            (|_, plan| plan.tensors[2].dtype = DType::Float64, "is not of float32"),
            (|_, plan| strided(plan, &[6, 6, 1]), "is no new tensor"),
            (|_, plan| plan.tensors[1].buffer = BufferId(0), "is read before it is written"),
            (
                |it, plan| {
                    let many = TensorView { sizes: numbers(&[3, 1 << 60, 5]), ..plan.tensor(it.key).clone() };
                    let many = TensorView { strides: numbers(&[0, 0, 1]), ..many };
                    it.key = plan.add_tensor(many);
                    let many = TensorView { sizes: numbers(&[3, 1 << 60, 6]), ..plan.tensor(it.key).clone() };
                    it.value = plan.add_tensor(many);
                    it.mask = None;
                },
                "has no number of multiplications",
            ),
        ];
        for (change, words) in cases {
            let problem = attention(change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }

    #[test]
    fn norms_whose_tensors_do_not_fit_are_refused() {
        type Change = fn(&mut Norm<TensorId>, &mut Plan);
        let cases: [(Change, &str); 5] = [
            (|it, _| it.weight = Some(it.input), "and rows have 3 elements"),
            (|it, _| it.input = TensorId(2), "are not rows"),
            (|_, plan| plan.tensors[1].dtype = DType::Float64, "is not of float32"),
            (|_, plan| strided(plan, &[1, 2]), "is not row-major"),
            (|it, _| it.result = TensorId(1), "is no new tensor"),
        ];
        for (change, words) in cases {
            let problem = norm(change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }
}
