//! Fused steps: what several operators of the program compute, in one step. Their tensors are of the type `T`: numbers of a plan's
//! tensors in a plan, tensors when it runs.

use crate::Loop;

/// What a fused step computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Fused<T> {
    /// A convolution, or several.
    Convolution(Convolution<T>),
    /// A matrix product.
    Product(Product<T>),
    /// A pooling.
    Pool(Pool<T>),
    /// Pointwise operators.
    Loop(Loop<T>),
}

/// Convolutions of channels-last images in float32, one after the other. Where there are several, a few rows of the images between
/// them are in memory at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution<T> {
    /// The images, `[N, H, W, C]`, row-major.
    pub input: T,
    /// What is computed: one convolution, or a depthwise one with a pointwise one before it or behind it, or both (the inverted
    /// residual of MobileNetV2). Only the last one may have a residual.
    pub layers: Vec<ConvolutionLayer<T>>,
    /// What the last one gives, `[N, OH, OW, O]`, row-major.
    pub result: T,
}

/// `epilogue(convolution(input, weight))`.
#[derive(Clone, Debug, PartialEq)]
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

/// A product of matrices in float32: `result = epilogue(lhs @ rhs)`.
#[derive(Clone, Debug, PartialEq)]
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

/// A pooling of channels-last images in float32.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What follows a product or a convolution, in this order: the bias of each channel is added, channels are normalised, the residual is added, and
/// the activation is applied. A channel is an index of the last dimension of the result.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
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
            Fused::Convolution(_) => "convolution",
            Fused::Product(_) => "product",
            Fused::Pool(_) => "pool",
            Fused::Loop(_) => "loop",
        }
    }

    /// The tensors that it reads, in the order of the fields.
    pub fn inputs(&self) -> Vec<&T> {
        match self {
            Fused::Convolution(it) => {
                let layers = it.layers.iter().flat_map(|it| [&it.weight].into_iter().chain(it.epilogue.tensors()));
                [&it.input].into_iter().chain(layers).collect()
            }
            Fused::Product(it) => [&it.lhs, &it.rhs].into_iter().chain(it.epilogue.tensors()).collect(),
            Fused::Pool(it) => vec![&it.input],
            Fused::Loop(it) => it.inputs.iter().collect(),
        }
    }

    /// The tensors of which something is made once and kept until they change: weights, and what is folded into them.
    pub fn parameters(&self) -> impl Iterator<Item = &T> {
        let (layers, product) = match self {
            Fused::Convolution(it) => (&it.layers[..], None),
            Fused::Product(it) => (&[][..], Some((&it.rhs, &it.epilogue))),
            Fused::Pool(_) | Fused::Loop(_) => (&[][..], None),
        };
        let weights = layers.iter().map(|it| (&it.weight, &it.epilogue)).chain(product);
        weights.flat_map(|(weight, epilogue)| [weight].into_iter().chain(epilogue.parameters()))
    }

    /// The tensors that it writes, all of them.
    pub fn results(&self) -> Vec<&T> {
        match self {
            Fused::Convolution(it) => vec![&it.result],
            Fused::Product(it) => vec![&it.result],
            Fused::Pool(it) => vec![&it.result],
            Fused::Loop(it) => it.outputs.iter().map(|(_, to)| to).collect(),
        }
    }

    /// The same step on other tensors.
    ///
    /// # Errors
    /// The first that `tensor` gives.
    pub fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Fused<U>, E> {
        Ok(match self {
            Fused::Convolution(it) => Fused::Convolution(Convolution {
                input: tensor(&it.input)?,
                layers: it.layers.iter().map(|it| it.try_map(tensor)).collect::<Result<_, E>>()?,
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
            Fused::Product(it) => Fused::Product(Product {
                lhs: tensor(&it.lhs)?,
                rhs: tensor(&it.rhs)?,
                epilogue: it.epilogue.try_map(tensor)?,
                result: tensor(&it.result)?,
            }),
            Fused::Loop(it) => Fused::Loop(it.try_map(tensor)?),
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
