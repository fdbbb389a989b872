//! A network that grows by what passes over plans look for, and by what gets in their way.

use super::growing::{
    Growing, Known, Operand, boolean, dtype, float, int, ints, list, none, numel, sizes, string, tensor,
};
use tracefx_core::{DType, MemoryFormat, Scalar, Storage, Tensor};
use tracefx_ir::{Arg, Attribute, GraphModule, TensorKind, TensorMeta};
use tracefx_ops::Value;

/// Larger tensors are not made: many small networks find more than few large ones.
const MAX_ELEMENTS: usize = 10_000;

/// How far a sum of products may be from what another order of its terms gives, as a part of the sum of their magnitudes.
/// Winograd's algorithm is the least exact way to compute one.
const ROUNDING: f64 = 4e-6;

/// How far halves may be from each other whose numbers in float32 differ by rounding.
const HALF_ROUNDING: f64 = 1.0 / 128.0;

/// Bytes that choose. Where there are no more, everything is the first there is.
pub(crate) struct Choices<'a>(std::slice::Iter<'a, u8>);

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Choices(bytes.iter())
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % n.max(1)
    }

    pub(crate) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub(crate) fn rarely(&mut self) -> bool {
        self.below(6) == 5
    }
}

/// Numbers that look like noise, from -1 to 1.
pub(crate) fn noise(seed: usize, sizes: &[usize]) -> Tensor {
    let number = |at: usize| (((at * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5) * 2.0;
    Tensor::from_slice(&(0..sizes.iter().product()).map(number).collect::<Vec<_>>(), sizes).unwrap()
}

/// The same elements behind some others, with the dimensions the other way round in memory.
fn restrided(tensor: &Tensor) -> Tensor {
    let order: Vec<usize> = (0..tensor.rank()).rev().collect();
    let turned = tensor.permuted(&order).compact_copy().unwrap();
    let bytes = [vec![0; 12], turned.storage().read().bytes().to_vec()].concat();
    let storage = Storage::from_bytes(&bytes).unwrap();
    Tensor::view_of(storage, tensor.dtype(), turned.sizes(), turned.strides(), 3).unwrap().permuted(&order)
}

/// A step that adds to a network, if there is something for it to take.
type Step = fn(&mut Network, &mut Choices<'_>) -> Option<()>;

/// What networks are made of; what is more frequent stands here more often.
const STEPS: &[Step] = &[
    block,
    convolution,
    block,
    activation,
    block,
    block,
    block,
    block,
    block,
    block,
    block,
    batch_norm,
    residual,
    activation,
    convolution,
    binary,
    pool,
    batch_norm,
    residual,
    product,
    view,
    activation,
    reduction,
    movement,
    view,
    write,
    update,
    write_back,
    conversion,
    pointwise,
    product,
    pool,
    format,
    normalization,
    drawing,
];

/// A graph that grows, with its weights.
pub(crate) struct Network {
    pub(crate) growing: Growing,
    weights: Vec<Tensor>,
    /// Values, and what is copied to them later on.
    unwritten: Vec<(Known, Known)>,
    /// Where there is a seed, what sums up products is moved by as much as its rounding may be.
    noise: Option<usize>,
    /// Whether there may be convolutions by Winograd's algorithm, which spreads what is no number.
    has_winograd: bool,
    /// Whether steps take the last value.
    follows: bool,
    /// Whether something is rounded to halves.
    pub(crate) has_halves: bool,
}

impl Network {
    /// A network with inputs like these.
    pub(crate) fn new(inputs: &[Tensor], noise: Option<usize>, has_winograd: bool) -> Self {
        let mut growing = Growing::new();
        for (at, input) in inputs.iter().enumerate() {
            growing.placeholder(&format!("x{at}"), input);
        }
        let has_halves = inputs.iter().any(|it| is_half(it.dtype()));
        // The images are the first to be looked at.
        growing.values.reverse();
        Network { growing, weights: Vec::new(), unwritten: Vec::new(), noise, has_winograd, follows: false, has_halves }
    }

    /// Grows by a step.
    pub(crate) fn grow(&mut self, bytes: &[u8]) {
        let mut choices = Choices::new(bytes);
        let step = choices.of(STEPS);
        step(self, &mut choices);
    }

    /// The module that gives some of the values.
    pub(crate) fn finish(mut self, outputs: &[u8]) -> GraphModule {
        while self.write_back().is_some() {}
        let last = self.growing.values.len() - 1;
        let given = outputs.iter().map(|&it| self.growing.values[last - usize::from(it) % 5 % (last + 1)].0.into());
        let given = given.collect();
        self.growing.graph.output(Arg::Tuple(given));
        let mut module = GraphModule::new(self.growing.graph);
        for (at, tensor) in self.weights.into_iter().enumerate() {
            let attribute = Attribute::Tensor { tensor, kind: TensorKind::Parameter };
            module.attributes.insert(format!("w{at}").into(), attribute);
        }
        module
    }

    /// A value that passes; of many one of the last.
    fn pick(&self, choices: &mut Choices<'_>, is_good: impl Fn(&TensorMeta) -> bool) -> Option<Known> {
        let good: Vec<&Known> = self.growing.values.iter().rev().filter(|(_, meta)| is_good(meta)).take(6).collect();
        // Chains become long where the last is taken most often.
        let n = if self.follows || choices.below(3) != 2 { 1 } else { good.len() };
        good.get(choices.below(n.min(good.len()))).map(|it| (*it).clone())
    }

    fn images(&self, choices: &mut Choices<'_>) -> Option<Known> {
        self.pick(choices, |it| it.sizes.len() == 4 && it.dtype == DType::Float32)
    }

    fn floats(&self, choices: &mut Choices<'_>) -> Option<Known> {
        self.pick(choices, |it| it.dtype.is_float())
    }

    fn constant(&mut self, tensor: Tensor) -> Known {
        let meta = TensorMeta::of(&tensor);
        self.weights.push(tensor);
        (self.growing.graph.get_attr(&format!("w{}", self.weights.len() - 1)), meta)
    }

    /// A weight: mostly a constant of its own.
    fn weight(&mut self, choices: &mut Choices<'_>, sizes: &[usize]) -> Option<Operand> {
        let seed = self.weights.len() + 1;
        let made = match choices.below(12) {
            0..=7 => self.constant(noise(seed, sizes)),
            8 | 9 => self.constant(restrided(&noise(seed, sizes))),
            10 => {
                let weight = self.constant(noise(seed, sizes));
                self.growing.call("mul.Scalar", &[tensor(&weight), float(0.75)], &[])?.swap_remove(0)
            }
            _ => {
                let is_like = |it: &Tensor| it.sizes() == sizes && it.dtype() == DType::Float32;
                match self.weights.iter().position(is_like) {
                    Some(at) => (self.growing.graph.get_attr(&format!("w{at}")), TensorMeta::of(&self.weights[at])),
                    None => self.constant(noise(seed, sizes)),
                }
            }
        };
        Some(tensor(&made))
    }

    fn optional_weight(&mut self, choices: &mut Choices<'_>, sizes: &[usize]) -> Option<Operand> {
        if choices.below(3) == 2 { Some(none()) } else { self.weight(choices, sizes) }
    }

    /// Adds a call whose first result others can take.
    fn call(&mut self, op: &str, args: &[Operand], kwargs: &[(&str, Operand)]) -> Option<Known> {
        let mut made = self.growing.call(op, args, kwargs)?.swap_remove(0);
        if is_half(made.1.dtype) {
            self.has_halves = true;
            let is_new = made.1.dtype != first_dtype(args)?;
            if is_new {
                made = self.moved(made.clone(), made, HALF_ROUNDING);
            }
        }
        self.keep(made)
    }

    /// Adds a call that sums up, in some order, products of elements of its tensors.
    fn sum(&mut self, op: &str, args: &[Operand], kwargs: &[(&str, Operand)]) -> Option<Known> {
        let made = self.growing.call(op, args, kwargs)?.swap_remove(0);
        if self.noise.is_none() || numel(&made.1) == 0 {
            return self.keep(made);
        }
        let mut magnitudes: Vec<Operand> = args.iter().map(|it| self.magnitude(it)).collect();
        // Means are subtracted.
        if op.contains("batch_norm") {
            magnitudes[3] = tensor(&self.growing.call("neg.default", &magnitudes[3..4], &[])?[0]);
        }
        let scale = self.growing.call(op, &magnitudes, kwargs)?.swap_remove(0);
        let moved = self.moved(made, scale, ROUNDING);
        self.keep(moved)
    }

    fn magnitude(&mut self, operand: &Operand) -> Operand {
        match operand {
            (Arg::Node(_), Value::Tensor(_)) => {
                let made = self.growing.call("abs.default", std::slice::from_ref(operand), &[]);
                made.map_or_else(|| operand.clone(), |it| tensor(&it[0]))
            }
            other => other.clone(),
        }
    }

    /// The value with noise of so much of the largest of another.
    fn moved(&mut self, value: Known, scale: Known, part: f64) -> Known {
        let Some(seed) = self.noise.filter(|_| numel(&value.1) > 0) else { return value };
        let mut call = |op: &str, args: &[Operand]| self.growing.call(op, args, &[]).unwrap().swap_remove(0);
        let wide = call("to.dtype", &[tensor(&scale), dtype(DType::Float32)]);
        let largest = call("abs.default", &[tensor(&wide)]);
        let largest = call("amax.default", &[tensor(&largest)]);
        // Of other sizes there is noise as well.
        let phase = call("mul.Scalar", &[tensor(&value), float(7919.0 + seed as f64)]);
        let phase = call("add.Scalar", &[tensor(&phase), float(seed as f64)]);
        let wave = call("sin.default", &[tensor(&phase)]);
        // Of full size in one of two directions: a sine may be near zero by chance, and of one element there is no other.
        let noise = call("sign.default", &[tensor(&wave)]);
        let noise = call("mul.Tensor", &[tensor(&noise), tensor(&largest)]);
        let noise = call("mul.Scalar", &[tensor(&noise), float(part)]);
        let noise = call("to.dtype", &[tensor(&noise), dtype(value.1.dtype)]);
        call("add.Tensor", &[tensor(&value), tensor(&noise)])
    }

    /// Copies what is to be copied later on.
    fn write_back(&mut self) -> Option<()> {
        let (x, made) = self.unwritten.pop()?;
        self.growing.call("copy_.default", &[tensor(&x), tensor(&made)], &[]);
        Some(())
    }

    fn keep(&mut self, made: Known) -> Option<Known> {
        if numel(&made.1) <= MAX_ELEMENTS {
            self.growing.values.push(made.clone());
        }
        Some(made)
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

fn first_dtype(args: &[Operand]) -> Option<DType> {
    args.iter().find_map(|(_, it)| if let Value::Tensor(it) = it { Some(it.dtype) } else { None })
}

/// A number for each dimension of an image.
fn each(choices: &mut Choices<'_>, n: usize, items: &[i64]) -> Vec<i64> {
    (0..n).map(|_| choices.of(items)).collect()
}

/// What mostly follows a product, and what passes must not take for it.
const FOLLOWING: &[Step] = &[
    batch_norm,
    residual,
    activation,
    residual,
    activation,
    batch_norm,
    activation,
    pool,
    reduction,
    binary,
    convolution,
    view,
    view,
    format,
    write,
    update,
    write_back,
    conversion,
    pointwise,
    movement,
    normalization,
    drawing,
];

/// A product with what follows it.
fn block(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let n_before = net.growing.values.len();
    if choices.below(4) != 3 {
        convolution(net, choices)?
    } else {
        product(net, choices)?
    };
    let is_kept = choices.rarely();
    for _ in 0..choices.below(6) {
        // What follows reads what is last; what is between, mostly nobody else does.
        net.follows = true;
        choices.of(FOLLOWING)(net, choices);
        net.follows = false;
        if !is_kept && net.growing.values.len() > n_before {
            let last = net.growing.values.pop();
            net.growing.values.truncate(n_before);
            net.growing.values.extend(last);
        }
    }
    Some(())
}

fn convolution(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let rank = choices.of(&[4, 4, 4, 4, 4, 4, 3, 5]);
    let (node, meta) = net.pick(choices, |it| it.sizes.len() == rank && it.dtype == DType::Float32)?;
    let (dims, channels) = (rank - 2, sizes(&meta)[1]);
    let divisors: Vec<usize> = [1, 1, channels, 2, 3].into_iter().filter(|&it| it > 0 && channels % it == 0).collect();
    let groups = choices.of(&divisors);
    let is_same = choices.below(2) == 0;
    let filters = if is_same { channels } else { groups * choices.of(&[1, 4, 3, 2, 16, 8, 5]) };
    if filters > 64 || !net.has_winograd && channels.min(filters) >= 32 {
        return None;
    }
    let kernels = choices.of(&[&[3, 1, 2, 3, 5][..], &[3, 2], &[1]]);
    let kernel = each(choices, dims, kernels);
    let mut stride = each(choices, dims, &[1, 1, 2, 1, 3]);
    let mut padding = each(choices, dims, &[0, 1, 0, 1, 2]);
    let dilation = each(choices, dims, &[1, 1, 1, 2]);
    if is_same {
        stride = vec![1; dims];
        padding = kernel.iter().zip(&dilation).map(|(kernel, dilation)| (kernel - 1) * dilation / 2).collect();
    }
    let is_transposed = choices.below(8) == 7;
    let (first, second) = if is_transposed { (channels, filters / groups) } else { (filters, channels / groups) };
    let taps = kernel.iter().map(|it| *it as usize);
    let weight = net.weight(choices, &[first, second].into_iter().chain(taps).collect::<Vec<_>>())?;
    let bias = net.optional_weight(choices, &[filters])?;
    let extra = each(choices, dims, &[0, 0, 0, 1]);
    let zeros = vec![0; dims];
    let (taken, groups) = ([tensor(&(node, meta)), weight, bias], int(groups as i64));
    let geometry = |more: Vec<Operand>| taken.iter().cloned().chain([ints(&stride)]).chain(more).collect::<Vec<_>>();
    let (op, args) = match (is_transposed, choices.below(4)) {
        (false, 0) => ("convolution.default".to_owned(), {
            let more = [ints(&padding), ints(&dilation), boolean(false), ints(&zeros), groups];
            geometry(more.into())
        }),
        (false, 1) => (format!("conv{dims}d.padding"), {
            let is_same = stride.iter().all(|it| *it == 1);
            geometry(vec![string(if is_same { "same" } else { "valid" }), ints(&dilation), groups])
        }),
        (false, _) => (format!("conv{dims}d.default"), geometry(vec![ints(&padding), ints(&dilation), groups])),
        (true, 0) => ("convolution.default".to_owned(), {
            geometry(vec![ints(&padding), ints(&dilation), boolean(true), ints(&extra), groups])
        }),
        (true, _) => (format!("conv_transpose{dims}d.{}", if dims == 1 { "default" } else { "input" }), {
            geometry(vec![ints(&padding), ints(&extra), groups, ints(&dilation)])
        }),
    };
    net.sum(&op, &args, &[]).map(|_| ())
}

fn batch_norm(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.pick(choices, |it| it.sizes.len() >= 2 && it.dtype == DType::Float32)?;
    let channels = [sizes(&x.1)[1]];
    let (weight, bias) = (net.optional_weight(choices, &channels)?, net.optional_weight(choices, &channels)?);
    let mean = net.weight(choices, &channels)?;
    let seed = net.weights.len();
    let var: Vec<f32> = (0..channels[0]).map(|at| 0.5 + ((at + seed) % 5) as f32 / 4.0).collect();
    let var = net.constant(Tensor::from_slice(&var, &channels).unwrap());
    let mut args = vec![tensor(&x), weight, bias, mean, tensor(&var)];
    let (momentum, eps) = (float(0.1), float(choices.of(&[1e-5, 1e-3])));
    let op = choices.of(&[
        "_native_batch_norm_legit_no_training.default",
        "batch_norm.default",
        "native_batch_norm.default",
    ]);
    // In training it is of many numbers, or rounding would be divided by a deviation of nearly nothing.
    let n_each = numel(&x.1) / channels[0].max(1);
    let is_training = choices.below(8) == 7 && n_each > 16;
    match op {
        "batch_norm.default" => args.extend([boolean(is_training), momentum, eps, boolean(false)]),
        "native_batch_norm.default" => args.extend([boolean(false), momentum, eps]),
        _ => args.extend([momentum, eps]),
    }
    net.sum(op, &args, &[]).map(|_| ())
}

fn residual(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let others = net.growing.values.iter().rev().filter(|(node, it)| *node != x.0 && it.sizes == x.1.sizes);
    let others: Vec<Known> = others.filter(|(_, it)| it.dtype.is_float()).chain([&x]).cloned().collect();
    let y = others[choices.below(others.len())].clone();
    let alpha = choices.of(&[1, 1, 1, 2]);
    let op = choices.of(&["add.Tensor", "add.Tensor", "add_.Tensor", "sub.Tensor"]);
    let args = if choices.rarely() { [tensor(&y), tensor(&x)] } else { [tensor(&x), tensor(&y)] };
    net.call(op, &args, &[("alpha", int(alpha))]).map(|_| ())
}

/// Activations, and their numbers.
const ACTIVATIONS: &[(&str, &[Option<f64>])] = &[
    ("relu", &[]),
    ("relu6", &[]),
    ("hardtanh", &[]),
    ("hardtanh", &[Some(-0.25), Some(0.5)]),
    ("clamp", &[Some(-0.5), Some(0.25)]),
    ("clamp", &[Some(0.5), Some(-0.25)]),
    ("clamp", &[None, Some(0.125)]),
    ("clamp", &[Some(0.0)]),
    ("clamp_min", &[Some(-0.1)]),
    ("clamp_max", &[Some(0.3)]),
    ("silu", &[]),
    ("hardswish", &[]),
    ("hardsigmoid", &[]),
    ("sigmoid", &[]),
    ("tanh", &[]),
    ("gelu", &[]),
    ("gelu", &[]),
    ("leaky_relu", &[]),
    ("leaky_relu", &[Some(0.2)]),
    ("leaky_relu", &[Some(-0.5)]),
    ("leaky_relu", &[Some(1.5)]),
    ("elu", &[]),
    ("softplus", &[]),
    ("mish", &[]),
];

fn activation(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let (name, numbers) = choices.of(ACTIVATIONS);
    let (is_in_place, is_tanh, is_int) = (choices.below(3) == 2, choices.below(2) == 1, choices.rarely());
    let number = |it: &Option<f64>| match it {
        Some(it) if is_int => int(*it as i64),
        Some(it) => float(*it),
        None => none(),
    };
    let args: Vec<_> = [tensor(&x)].into_iter().chain(numbers.iter().map(number)).collect();
    let kwargs = if name == "gelu" && is_tanh { vec![("approximate", string("tanh"))] } else { vec![] };
    net.call(&format!("{name}{}.default", if is_in_place { "_" } else { "" }), &args, &kwargs).map(|_| ())
}

fn binary(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let op = choices.of(&["mul", "add", "sub", "maximum", "minimum", "mul_", "add_"]);
    let is_extreme = op.ends_with("imum");
    let y = match choices.below(4) {
        0 if !is_extreme => {
            let scalar = if choices.rarely() { int(2) } else { float(0.5) };
            return net.call(&format!("{op}.Scalar"), &[tensor(&x), scalar], &[]).map(|_| ());
        }
        1 if choices.rarely() => {
            let other = choices.of(&[DType::Float64, DType::Float32, DType::Int64]);
            tensor(&net.constant(Tensor::full(other, &[], Scalar::Int(3)).unwrap()))
        }
        1 => {
            // A number for each channel, or for each column.
            let mut shape = vec![1; x.1.sizes.len()];
            let dim = choices.of(&[1, x.1.sizes.len().saturating_sub(1)]);
            *shape.get_mut(dim)? = *sizes(&x.1).get(dim)?;
            net.weight(choices, &shape)?
        }
        _ => tensor(&net.pick(choices, |it| it.dtype.is_float() || op == "mul")?),
    };
    let overload = if is_extreme { "default" } else { "Tensor" };
    net.call(&format!("{op}.{overload}"), &[tensor(&x), y], &[]).map(|_| ())
}

/// Pointwise operators with more operands, or of other dtypes on the way. What they give changes little where what they take does.
fn pointwise(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let y = net.pick(choices, |it| it.sizes == x.1.sizes && it.dtype == x.1.dtype)?;
    let mut call = |op: &str, args: &[Operand]| Some(net.growing.call(op, args, &[])?.swap_remove(0));
    let (x, y) = (tensor(&x), tensor(&y));
    match choices.below(6) {
        0 => {
            let is_larger = call("gt.Tensor", &[x.clone(), y.clone()])?;
            net.call("where.self", &[tensor(&is_larger), x, y], &[])
        }
        1 => {
            let is_positive = call("ge.Scalar", &[x.clone(), float(0.0)])?;
            net.call("mul.Tensor", &[x, tensor(&is_positive)], &[])
        }
        2 => {
            let whole = call("to.dtype", &[x.clone(), dtype(DType::Int64)])?;
            let zeros = call("mul.Scalar", &[tensor(&whole), int(0)])?;
            net.call("add.Tensor", &[tensor(&zeros), x], &[])
        }
        3 => net.call("lerp.Scalar", &[x, y, float(0.25)], &[]),
        4 => net.call("addcmul.default", &[x.clone(), x, y], &[("value", float(0.5))]),
        _ => {
            let is_finite = call("eq.Tensor", &[x.clone(), x.clone()])?;
            let is_not = call("logical_not.default", &[tensor(&is_finite)])?;
            net.call("masked_fill.Scalar", &[x, tensor(&is_not), float(1.0)], &[])
        }
    }
    .map(|_| ())
}

fn conversion(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let others = [DType::Float64, DType::Float16, DType::BFloat16, DType::Float32];
    let other = choices.of(&others);
    if choices.below(2) == 0 {
        // There and back.
        let there = net.call("to.dtype", &[tensor(&x), dtype(other)], &[])?;
        return net.call("to.dtype", &[tensor(&there), dtype(x.1.dtype)], &[]).map(|_| ());
    }
    net.call("_to_copy.default", &[tensor(&x)], &[("dtype", dtype(other))]).map(|_| ())
}

fn pool(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.images(choices)?;
    let kernel = each(choices, 2, &[2, 3, 1, 2]);
    let stride = if choices.rarely() { vec![] } else { each(choices, 2, &[2, 1, 1, 3]) };
    let padding = each(choices, 2, &[0, 0, 1]);
    let (dilation, is_ceil) = (each(choices, 2, &[1, 1, 1, 2]), boolean(choices.below(3) == 2));
    let mut args = vec![tensor(&x), ints(&kernel), ints(&stride), ints(&padding)];
    match choices.below(6) {
        0 | 1 => {
            args.extend([ints(&dilation), is_ceil]);
            net.call("max_pool2d.default", &args, &[])
        }
        2 => {
            args.extend([ints(&dilation), is_ceil]);
            let both = net.growing.call("max_pool2d_with_indices.default", &args, &[])?;
            let made = net.keep(both[0].clone())?;
            if choices.below(2) == 0 {
                return Some(());
            }
            let zeros = net.growing.call("mul.Scalar", &[tensor(&both[1]), int(0)], &[])?.swap_remove(0);
            net.call("add.Tensor", &[tensor(&made), tensor(&zeros)], &[])
        }
        3 | 4 => {
            let divisor = if choices.rarely() { int(3) } else { none() };
            args.extend([is_ceil, boolean(choices.below(2) == 0), divisor]);
            net.sum("avg_pool2d.default", &args, &[])
        }
        _ => net.sum("avg_pool2d.default", &[tensor(&x), int(2)], &[]),
    }
    .map(|_| ())
}

fn reduction(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = if choices.rarely() { net.floats(choices)? } else { net.images(choices)? };
    let dims = choices.of(&[&[2, 3][..], &[-1, -2], &[2, 3], &[3], &[1], &[0, 1], &[3, 2], &[1, 2, 3]]);
    let (dims, keep) = (ints(dims), boolean(choices.below(2) == 0));
    match choices.below(9) {
        0..=2 => net.sum("mean.dim", &[tensor(&x), dims, keep], &[]),
        3 => net.sum("mean.dim", &[tensor(&x), dims, keep], &[("dtype", dtype(DType::Float64))]),
        4 => net.sum("sum.dim_IntList", &[tensor(&x), dims, keep], &[]),
        5 => net.call("amax.default", &[tensor(&x), dims, keep], &[]),
        6 => net.sum("adaptive_avg_pool2d.default", &[tensor(&x), ints(&each(choices, 2, &[1, 1, 2, 3]))], &[]),
        7 => net.call("adaptive_max_pool2d.default", &[tensor(&x), ints(&each(choices, 2, &[1, 1, 2, 3]))], &[]),
        _ => net.call("softmax.int", &[tensor(&x), int(choices.of(&[1, -1]))], &[]),
    }
    .map(|_| ())
}

fn view(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.pick(choices, |it| !it.sizes.is_empty())?;
    let (rank, own) = (x.1.sizes.len() as i64, sizes(&x.1));
    let dim = choices.below(own.len());
    let at = int(dim as i64);
    let first = tensor(&x);
    let two = vec![own[0] as i64, own[1..].iter().product::<usize>() as i64];
    match choices.below(20) {
        0 | 1 => net.call("flatten.using_ints", &[first, int(1)], &[]),
        2 => net.call("view.default", &[first, ints(&two)], &[]),
        3 => net.call("reshape.default", &[first, ints(&[own[0] as i64, -1, 1, 1])], &[]),
        4 => {
            let order = choices.of(&[[0, 2, 3, 1], [0, 3, 1, 2], [1, 0, 3, 2]]);
            net.call("permute.default", &[first, ints(&order)], &[])
        }
        5 | 15..=17 => net.call("transpose.int", &[first, int(-1), int(choices.of(&[-2, -2, 0]))], &[]),
        6 => net.call("unsqueeze.default", &[first, int(choices.of(&[-1, 0, 2]))], &[]),
        7 => net.call("squeeze.default", &[first], &[]),
        8 => {
            let (start, end) = (choices.below(own[dim]) as i64, own[dim] as i64 - choices.below(2) as i64);
            net.call("slice.Tensor", &[first, at, int(start), int(end), int(choices.of(&[1, 1, 2]))], &[])
        }
        9 => net.call("select.int", &[first, at, int(choices.below(own[dim]) as i64)], &[]),
        10 => {
            let wide: Vec<i64> = own.iter().map(|&it| if it == 1 { choices.of(&[2, 1, 3]) } else { -1 }).collect();
            net.call("expand.default", &[first, ints(&wide)], &[])
        }
        11 => {
            let parts = net.growing.call("chunk.default", &[first, int(2), at], &[])?;
            for part in parts {
                net.keep(part)?;
            }
            Some(x)
        }
        12 => net.call("view.default", &[first, ints(&choices.of(&[[-1, 1], [1, -1]]))], &[]),
        13 => net.call("detach.default", &[first], &[]),
        14 => net.call("unflatten.int", &[first, at, ints(&[1, -1])], &[]),
        _ if rank == 2 => net.call("reshape.default", &[first, ints(&[own[0] as i64, 1, 1, -1])], &[]),
        _ => net.call("t.default", &[first], &[]),
    }
    .map(|_| ())
}

/// The same elements in another order of memory.
fn format(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.images(choices)?;
    let format = choices.of(&[MemoryFormat::ChannelsLast, MemoryFormat::Contiguous, MemoryFormat::Preserve]);
    let op = choices.of(&["contiguous.default", "clone.default", "_to_copy.default"]);
    let format = (Arg::MemoryFormat(format), Value::MemoryFormat(format));
    net.call(op, &[tensor(&x)], &[("memory_format", format)]).map(|_| ())
}

fn product(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let most = if choices.below(3) == 2 { 2 } else { 5 };
    let mut x = net.pick(choices, |it| (2..=most).contains(&it.sizes.len()) && it.dtype == DType::Float32)?;
    if x.1.sizes.len() > 2 && choices.below(2) == 0 {
        x = net
            .growing
            .call("flatten.using_ints", &[tensor(&x), int(choices.of(&[1, 0, 2])), int(-1)], &[])?
            .swap_remove(0);
        if x.1.sizes.len() == 1 {
            x = net.growing.call("unsqueeze.default", &[tensor(&x), int(0)], &[])?.swap_remove(0);
        }
    }
    let own = sizes(&x.1);
    if own[own.len() - 1] > 300 {
        return None;
    }
    let k = own[own.len() - 1];
    let n = choices.of(&[k, 4, k, 1, 7, 16, k, 33]);
    let first = tensor(&x);
    if choices.rarely() {
        let y = net.pick(choices, |it| it.dtype == DType::Float32 && it.sizes.len() >= 2)?;
        return match choices.below(3) {
            0 => net.sum("matmul.default", &[first, tensor(&y)], &[]),
            1 => {
                let turned = net.growing.call("transpose.int", &[tensor(&y), int(-1), int(-2)], &[])?.swap_remove(0);
                net.sum("matmul.default", &[first, tensor(&turned)], &[])
            }
            _ => net.sum("bmm.default", &[first, tensor(&y)], &[]),
        }
        .map(|_| ());
    }
    match choices.below(7) {
        0..=2 => {
            let (weight, bias) = (net.weight(choices, &[n, k])?, net.optional_weight(choices, &[n])?);
            net.sum("linear.default", &[first, weight, bias], &[])
        }
        3 => {
            let weight = net.weight(choices, &[n, k])?;
            let turned = net.growing.call("t.default", &[weight], &[])?.swap_remove(0);
            let shape = match choices.below(4) {
                0 | 1 => vec![n],
                2 => vec![own[0], n],
                _ => vec![1],
            };
            let bias = net.weight(choices, &shape)?;
            let (beta, alpha) = (choices.of(&[1, 1, 2]), choices.of(&[1, 1, 2]));
            let args = [bias, first, tensor(&turned)];
            net.sum("addmm.default", &args, &[("beta", int(beta)), ("alpha", int(alpha))])
        }
        4 => {
            let weight = net.weight(choices, &[k, n])?;
            net.sum("mm.default", &[first, weight], &[])
        }
        5 => {
            let shape = if choices.below(2) == 0 { vec![k, n] } else { vec![k] };
            let weight = net.weight(choices, &shape)?;
            net.sum("matmul.default", &[first, weight], &[])
        }
        _ => {
            let weight = net.weight(choices, &[own[0], k, n])?;
            net.sum("bmm.default", &[first, weight], &[])
        }
    }
    .map(|_| ())
}

/// Normalisations that are no part of a product.
fn normalization(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let own = sizes(&x.1);
    match choices.below(3) {
        0 => {
            let last = *own.last()?;
            let (weight, bias) = (net.optional_weight(choices, &[last])?, net.optional_weight(choices, &[last])?);
            net.call("layer_norm.default", &[tensor(&x), ints(&[last as i64]), weight, bias, float(0.1)], &[])
        }
        1 => {
            let groups = choices.of(&[1, 2, 4]);
            net.call("group_norm.default", &[tensor(&x), int(groups), none(), none(), float(0.1)], &[])
        }
        _ => net.call("softmax.int", &[tensor(&x), int(choices.of(&[1, -1, 2]))], &[]),
    }
    .map(|_| ())
}

fn movement(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.images(choices).or_else(|| net.floats(choices))?;
    let own = sizes(&x.1);
    let first = tensor(&x);
    match choices.below(9) {
        0..=2 => {
            let dim = choices.of(&[1, 1, 0, -1]);
            let y = net.pick(choices, |it| it.sizes.len() == own.len() && it.dtype == x.1.dtype)?;
            net.call("cat.default", &[list(vec![first, tensor(&y)]), int(dim)], &[])
        }
        3 => net.call("stack.default", &[list(vec![first.clone(), first]), int(choices.of(&[0, 1]))], &[]),
        4 => {
            let scales = list(vec![float(2.0), float(choices.of(&[2.0, 1.0]))]);
            net.call("upsample_nearest2d.vec", &[first, none(), scales], &[])
        }
        5 => net.sum("upsample_bilinear2d.default", &[first, ints(&[3, 4]), boolean(choices.below(2) == 0)], &[]),
        6 => net.call("constant_pad_nd.default", &[first, ints(&each(choices, 4, &[1, 0, -1])), float(0.5)], &[]),
        7 => net.call("pixel_shuffle.default", &[first, int(2)], &[]),
        _ => net.call("flip.default", &[first, ints(&[choices.of(&[1, -1])])], &[]),
    }
    .map(|_| ())
}

/// Writes to a value or to a part of it, which may be a view, an input or a weight.
fn write(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let is_single = |it: &TensorMeta| {
        it.sizes.iter().zip(&it.strides).all(|(size, stride)| size.as_int() <= Some(1) || stride.as_int() != Some(0))
    };
    let whole = net.pick(choices, |it| it.dtype.is_float() && is_single(it))?;
    let mut x = whole.clone();
    if !x.1.sizes.is_empty() && choices.below(2) == 1 {
        let dim = choices.below(x.1.sizes.len());
        let part = [tensor(&x), int(dim as i64), int(0), int(choices.of(&[1, 2]))];
        x = net.growing.call("slice.Tensor", &part, &[])?.swap_remove(0);
    }
    let first = tensor(&x);
    match choices.below(7) {
        0 => net.call("mul_.Scalar", &[first, float(0.5)], &[]),
        1 => net.call("zero_.default", &[first], &[]),
        2 => net.call("fill_.Scalar", &[first, float(0.25)], &[]),
        3 => net.call("relu_.default", &[first], &[]),
        4 => {
            let y = net.floats(choices)?;
            net.call("add_.Tensor", &[first, tensor(&y)], &[])
        }
        _ => {
            let y = net.pick(choices, |it| it.sizes == x.1.sizes && it.dtype.is_float())?;
            net.call("copy_.default", &[first, tensor(&y)], &[])
        }
    }?;
    // Both are there to be read.
    net.keep(whole).map(|_| ())
}

/// Changes a part of a value, in its place or in a copy, which may be copied back at once, later on or never.
fn update(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let is_single = |it: &TensorMeta| {
        it.sizes.iter().zip(&it.strides).all(|(size, stride)| size.as_int() <= Some(1) || stride.as_int() != Some(0))
    };
    let x = net.pick(choices, |it| it.dtype.is_float() && is_single(it) && !it.sizes.is_empty())?;
    let y = net.pick(choices, |it| it.sizes == x.1.sizes && it.dtype == x.1.dtype)?;
    let own = sizes(&x.1);
    let dim = choices.below(own.len());
    let (size, at) = (own[dim], int(dim as i64));
    let n = choices.of(&[1, 2, 0]).min(size);
    let index: Vec<i64> = (0..n).map(|_| choices.below(size) as i64).collect();
    let index = net.constant(Tensor::from_slice(&index, &[n]).unwrap());
    let start = choices.below(size - n + 1) as i64;
    let range = [at.clone(), int(start), int(start + n as i64)];
    let part = [&[tensor(&y)][..], &range].concat();
    let part = net.growing.call("slice.Tensor", &part, &[])?.swap_remove(0);
    let (first, part) = (tensor(&x), tensor(&part));
    let in_place = choices.below(3) == 2;
    let name = |op: &str| if in_place { format!("{op}_.default") } else { format!("{op}.default") };
    let made = match choices.below(6) {
        0 => net.call(&name("index_copy"), &[first, at, tensor(&index), part], &[]),
        1 => {
            let mut indices = vec![none(); dim];
            indices.push(tensor(&index));
            let adds = boolean(choices.below(2) == 1);
            net.call(&name("index_put"), &[first, list(indices), part, adds], &[])
        }
        2 => net.call(&name("index_add"), &[first, at, tensor(&index), part], &[]),
        3 => {
            let end = choices.of(&[start + n as i64, i64::MAX]).min(size as i64);
            // A part of a part is written back twice.
            let inner = net.growing.call("relu.default", &[part], &[])?.swap_remove(0);
            let range = [at, int(start), int(end)];
            net.call("slice_scatter.default", &[&[first, tensor(&inner)][..], &range].concat(), &[])
        }
        4 if size > 0 => {
            let chosen = int(choices.below(size) as i64 - choices.of(&[0, size as i64]));
            let row = net.growing.call("select.int", &[tensor(&y), at.clone(), int(0)], &[])?.swap_remove(0);
            net.call("select_scatter.default", &[first, tensor(&row), at, chosen], &[])
        }
        _ => {
            let whole = [tensor(&x), at.clone(), int(0), int(i64::MAX)];
            let whole = net.growing.call("slice.Tensor", &whole, &[])?.swap_remove(0);
            let args = [tensor(&whole), at.clone(), tensor(&index), part];
            let inner = net.growing.call("index_copy.default", &args, &[])?.swap_remove(0);
            net.call("slice_scatter.default", &[first, tensor(&inner), at, int(0), int(i64::MAX)], &[])
        }
    }?;
    match choices.below(3) {
        0 => net.unwritten.push((x.clone(), made)),
        1 => {
            net.growing.call("copy_.default", &[tensor(&x), tensor(&made)], &[]);
        }
        _ => {}
    }
    // Both are there to be read.
    if choices.below(3) == 2 { net.keep(x).map(|_| ()) } else { Some(()) }
}

/// Copies what is to be copied later on.
fn write_back(net: &mut Network, _: &mut Choices<'_>) -> Option<()> {
    net.write_back()
}

/// What only a run knows: numbers that are drawn, and how many elements there are.
fn drawing(net: &mut Network, choices: &mut Choices<'_>) -> Option<()> {
    let x = net.floats(choices)?;
    let first = tensor(&x);
    if choices.below(2) == 0 {
        let drawn = net.growing.call("rand_like.default", std::slice::from_ref(&first), &[])?.swap_remove(0);
        return net.call("mul.Tensor", &[first, tensor(&drawn)], &[]).map(|_| ());
    }
    let whole = net.pick(choices, |it| it.dtype == DType::Int64)?;
    let mask = net.growing.call("gt.Scalar", &[tensor(&whole), int(0)], &[])?.swap_remove(0);
    // Whether the mask fits.
    net.growing.call("mul.Tensor", &[first, tensor(&mask)], &[])?;
    let mut node =
        |op: &str, args: Vec<Arg>| net.growing.graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![]);
    let chosen = node("masked_select.default", vec![x.0.into(), mask.0.into()]);
    let mapped = node("tanh.default", vec![chosen.into()]);
    let mapped = node("neg.default", vec![mapped.into()]);
    let sum = node("sum.default", vec![mapped.into()]);
    net.growing.values.push((sum, TensorMeta::contiguous(x.1.dtype, vec![])));
    Some(())
}
