//! Convolutions in channels-last memory. A convolution and what follows it become one step on channels-last images; memory that only
//! steps of a convolutional region use is channels-last itself, and at the border of a region images are copied.
//!
//! Whoever reads channels-last memory and is no step of the region reads it by its strides: the program sees the same tensors.

use crate::epilogue::{Chain, call, dense_sizes, is_weight, optional, tensor};
use crate::quantized::{self, Quantized, Scope, Tensor, is_conversion, unneeded};
use crate::uses::Uses;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tracefx_core::DType;
use tracefx_exec::Kernels;
use tracefx_ops::{Op, Registry, Tags};
use tracefx_plan::{
    Action, Buffer, BufferId, Convolution, ConvolutionLayer, Extent, Fused, Operand, Plan, Pool, PoolReduction,
    QuantizedConvolution, QuantizedResidual, Step, TensorId, TensorView, Window,
};
use tracefx_sym::SymInt;

/// Where the dimensions of a channels-last tensor are among `[N, C, H, W]`.
const ORDER: [usize; 4] = [0, 2, 3, 1];

/// Puts convolutions with what follows them into one step each.
pub(crate) fn channels_last(plan: &mut Plan, registry: &Registry, kernels: &Kernels) {
    let uses = Uses::of(plan, registry);
    let found = convolutions(plan, &uses, registry);
    if found.is_empty() {
        return;
    }
    let mut inner: FxHashSet<usize> = found.iter().flat_map(|it| it.steps.iter().copied()).collect();
    let read = found.iter().flat_map(Found::images).map(|it| plan.tensor(it).buffer).collect();
    inner.extend(unneeded(plan, &uses, &inner, &read, found.iter().flat_map(|it| &it.sources)));
    let at_last: FxHashMap<usize, Found> = found.into_iter().map(|it| (it.last(), it)).collect();
    let mut views = vec![Vec::new(); plan.buffers.len()];
    let mut note = |id: TensorId| views[plan.tensor(id).buffer.0 as usize].push(id);
    for (at, step) in plan.steps.iter().enumerate().filter(|(at, _)| !inner.contains(at) || at_last.contains_key(at)) {
        match at_last.get(&at) {
            Some(it) => it.images().for_each(&mut note),
            None => step.action.for_each_tensor(&mut note),
        }
    }
    plan.output.for_each_tensor(&mut note);
    let opaque = opaque(plan, registry, kernels);
    let steps = std::mem::take(&mut plan.steps);
    let mut layout = Layout { plan, uses, views, opaque, region: FxHashSet::default(), copies: FxHashMap::default() };
    for (at, step) in steps.into_iter().enumerate() {
        match at_last.get(&at) {
            Some(found) => layout.found(found, step.node),
            None if inner.contains(&at) => {}
            None => layout.other(step, registry),
        }
    }
}

/// What becomes a step of a region. Its tensors are those of the program, in which channels stand before height and width.
#[derive(Clone, Debug)]
struct Found {
    /// The steps that become one, in order.
    steps: Vec<usize>,
    /// The steps that make numbers of the integers that it reads.
    sources: Vec<usize>,
    input: TensorId,
    residual: Option<TensorId>,
    result: TensorId,
    computes: Computes,
}

/// What is computed of the images.
#[derive(Clone, Debug)]
enum Computes {
    Convolution(ConvolutionLayer<TensorId>),
    Quantized(Box<QuantizedConvolution<Tensor>>),
    Pool(Pool<TensorId>),
}

impl Found {
    fn last(&self) -> usize {
        self.steps[self.steps.len() - 1]
    }

    /// The tensors that are laid out.
    fn images(&self) -> impl Iterator<Item = TensorId> {
        [self.result, self.input].into_iter().chain(self.residual)
    }

    /// Whether it costs no more than laying its images out: a pooling, or a product of each point or of each channel by itself.
    fn is_small(&self, plan: &Plan) -> bool {
        let weight = match &self.computes {
            Computes::Convolution(it) => plan.tensor(it.weight),
            Computes::Quantized(it) => it.weight.view(plan),
            Computes::Pool(_) => return true,
        };
        weight.known().is_some_and(|it| it.sizes[1] == 1 || it.sizes[2] * it.sizes[3] == 1)
    }
}

fn convolutions(plan: &Plan, uses: &Uses, registry: &Registry) -> Vec<Found> {
    let (mut taken, mut res) = (FxHashSet::default(), Vec::new());
    for at in 0..plan.steps.len() {
        if let Some(found) = convolution(plan, uses, &taken, at).or_else(|| integer_pool(plan, uses, &taken, at)) {
            taken.extend(found.steps.iter().copied());
            res.push(found);
        }
    }
    // Laying images out anew costs as much as what is small, where nothing else of a region reads or gives them.
    let at_last: FxHashMap<usize, usize> = res.iter().enumerate().map(|(at, it)| (it.last(), at)).collect();
    let (mut in_region, mut is_kept) = (FxHashSet::default(), vec![true; res.len()]);
    let buffer = |id: TensorId| plan.tensor(id).buffer;
    for at in 0..plan.steps.len() {
        if let Some(&number) = at_last.get(&at) {
            let found = &res[number];
            let readers = &uses.buffer(buffer(found.result)).readers;
            let is_read = readers.iter().any(|it| taken.contains(it) || can_be_in_region(plan, *it, registry));
            // A pooling of what is in no region stays one of numbers.
            let is_read = is_read && !matches!(found.computes, Computes::Pool(_));
            is_kept[number] = !found.is_small(plan) || is_read || in_region.contains(&buffer(found.input));
            if is_kept[number] {
                in_region.insert(buffer(found.result));
            }
        } else if can_be_in_region(plan, at, registry) {
            let (mut reads, mut gives) = (false, None);
            if let Some((_, args, results)) = call(plan, at) {
                args.iter().for_each(|it| it.for_each_tensor(&mut |it| reads |= in_region.contains(&buffer(it))));
                gives = tensor(results.first());
            }
            in_region.extend(gives.filter(|_| reads).map(buffer));
        }
    }
    let mut is_kept = is_kept.into_iter();
    res.retain(|_| is_kept.next().unwrap_or_default());
    res
}

/// Whether a step that is no convolution can compute on channels-last images.
fn can_be_in_region(plan: &Plan, at: usize, registry: &Registry) -> bool {
    call(plan, at).is_some_and(|(op, ..)| is_pointwise(op, registry) || POOLS.contains(&op))
}

/// Whether an operator computes each element of its result by itself; a conversion has other arguments than those that are.
fn is_pointwise(op: &str, registry: &Registry) -> bool {
    registry.get(op).is_some_and(|it| it.def.tags.has(Tags::POINTWISE) && !it.may_write()) || is_conversion(op)
}

/// The operators that become [`Pool`] steps.
const POOLS: [&str; 2] = ["aten.max_pool2d_with_indices.default", "aten.avg_pool2d.default"];

fn convolution(plan: &Plan, uses: &Uses, taken: &FxHashSet<usize>, at: usize) -> Option<Found> {
    let (op, args, results) = call(plan, at)?;
    if op != "aten.convolution.default" || args.get(6) != Some(&Operand::Bool(false)) {
        return None;
    }
    let (input, weight, bias) = (tensor(args.first())?, tensor(args.get(1))?, optional(args.get(2))?);
    let result = tensor(results.first())?;
    let sizes: [usize; 4] = dense_sizes(plan, result)?.try_into().ok()?;
    let Some(Operand::Int(groups)) = args.get(8) else { return None };
    let groups = usize::try_from(*groups).ok()?;
    let [stride, padding, dilation] = [pair(&args[3])?, pair(&args[4])?, pair(&args[5])?];
    let scope = Scope { plan, uses, taken };
    let window = Window { stride, padding, dilation, groups };
    if let Some(found) = quantized::convolution(scope, at, [input, weight], bias, window) {
        let Quantized { steps, sources, input, residual, result, step } = found;
        return Some(Found { steps, sources, input, residual, result, computes: Computes::Quantized(Box::new(step)) });
    }
    let image = plan.tensor(input);
    let is_image = |it: &Extent| it.sizes.len() == 4 && !it.sizes.contains(&0);
    let is_image = image.dtype == DType::Float32 && image.known().as_ref().is_some_and(is_image);
    let are_weights = is_weight(plan, uses, weight, DType::Float32, None)
        && bias.is_none_or(|it| is_weight(plan, uses, it, DType::Float32, Some(&[sizes[1]])));
    if !is_image || !are_weights || sizes.contains(&0) {
        return None;
    }
    let Chain { steps, epilogue, result } = Chain::behind(plan, uses, taken, at, result, bias, Some(sizes[1]));
    let residual = epilogue.residual;
    let layer = ConvolutionLayer { weight, stride, padding, dilation, groups, epilogue };
    Some(Found { steps, sources: Vec::new(), input, residual, result, computes: Computes::Convolution(layer) })
}

/// A pooling of numbers that are integers before and behind it.
fn integer_pool(plan: &Plan, uses: &Uses, taken: &FxHashSet<usize>, at: usize) -> Option<Found> {
    let (op, args, results) = call(plan, at)?;
    let pool = pool(plan, uses, op, args, results).filter(|it| it.reduction == PoolReduction::Max)?;
    let Quantized { steps, sources, input, residual, result, step } =
        quantized::pool(Scope { plan, uses, taken }, at, pool)?;
    Some(Found { steps, sources, input, residual, result, computes: Computes::Pool(step) })
}

/// Steps that are written anew.
struct Layout<'a> {
    plan: &'a mut Plan,
    /// The uses of buffers by the steps as they were.
    uses: Uses,
    /// The tensors of each buffer that are looked at.
    views: Vec<Vec<TensorId>>,
    /// The buffers that stay as they are.
    opaque: FxHashSet<BufferId>,
    /// The buffers that are channels-last.
    region: FxHashSet<BufferId>,
    /// Channels-last copies of tensors.
    copies: FxHashMap<(BufferId, DType, Extent), TensorId>,
}

impl Layout<'_> {
    fn found(&mut self, found: &Found, node: Arc<str>) {
        let input = self.images(found.input, &node);
        let residual = found.residual.map(|it| self.images(it, &node));
        let step: Box<dyn FnOnce(TensorId) -> Fused<TensorId>> = match found.computes.clone() {
            Computes::Convolution(mut layer) => {
                layer.epilogue.residual = residual;
                Box::new(move |result| {
                    Fused::Convolution(Convolution { input, scale: None, layers: vec![layer], result })
                })
            }
            Computes::Quantized(step) => {
                let mut step = quantized::added(&step, self.plan);
                (step.input, step.residual) =
                    (input, step.residual.zip(residual).map(|(it, tensor)| QuantizedResidual { tensor, ..it }));
                Box::new(move |result| QuantizedConvolution { result, ..step }.into())
            }
            Computes::Pool(pool) => Box::new(move |result| Fused::Pool(Pool { input, result, ..pool })),
        };
        self.push(node, found.result, |result| Action::Fused(step(result)));
    }

    /// Adds a step that gives the channels-last images of this tensor.
    fn push(&mut self, node: Arc<str>, result: TensorId, action: impl FnOnce(TensorId) -> Action) {
        let (result, copy) = self.result(result);
        self.plan.push(Arc::clone(&node), action(result));
        if let Some(copy) = copy {
            self.plan.push(node, copy);
        }
    }

    /// A step that is no convolution: on channels-last tensors, where it reads some and can give one.
    fn other(&mut self, step: Step, registry: &Registry) {
        let Action::Call { op, args, results } = &step.action else { return self.plan.steps.push(step) };
        if let Some(pool) = self.pool(op, args, results) {
            return self.pooling(pool, step.node);
        }
        if let Some(pool) = self.mean(op, args, results) {
            let input = self.images(pool.input, &step.node);
            self.plan.push(step.node, Action::Fused(Fused::Pool(Pool { input, ..pool })));
            return;
        }
        let in_region = |it: &Operand| {
            let mut res = false;
            it.for_each_tensor(&mut |id| res |= self.region.contains(&self.plan.tensor(id).buffer));
            res
        };
        let gives = tensor(results.first()).filter(|_| results.len() == 1 && args.iter().any(in_region));
        let rank = gives.and_then(|it| self.plan.tensor(it).known()).map_or(0, |it| it.sizes.len());
        let is_placed = is_pointwise(op, registry) && rank == 4 && self.can_turn(args);
        let Some(result) = gives.filter(|_| is_placed) else { return self.plan.steps.push(step) };
        let args: Vec<Operand> = args.iter().map(|it| self.turned(it)).collect();
        let op = Arc::clone(op);
        self.push(step.node, result, |result| Action::Call { op, args, results: vec![Operand::Tensor(result)] });
    }

    /// The pooling that a call is, of a tensor of the region.
    fn pool(&self, op: &str, args: &[Operand], results: &[Operand]) -> Option<Pool<TensorId>> {
        pool(self.plan, &self.uses, op, args, results)
            .filter(|it| self.region.contains(&self.plan.tensor(it.input).buffer))
    }

    /// The pooling of whole images that a mean is, of a tensor of the region. Its result looks the same with height and width
    /// and without.
    fn mean(&mut self, op: &str, args: &[Operand], results: &[Operand]) -> Option<Pool<TensorId>> {
        let (input, result) = (tensor(args.first())?, tensor(results.first())?);
        let Operand::List(dims) = args.get(1)? else { return None };
        let view = self.plan.tensor(input);
        let sizes = view.known()?.sizes;
        let [n, c, h, w] = sizes[..].try_into().ok()?;
        let is_image = self.region.contains(&view.buffer)
            && view.dtype == DType::Float32
            && op == "aten.mean.dim"
            && are_image_dims(dims);
        if !is_image || dense_sizes(self.plan, result)?.iter().product::<usize>() != n * c {
            return None;
        }
        let view = self.plan.tensor(result);
        let sizes = [n, 1, 1, c].map(|it: usize| SymInt::from(it as i64));
        let mut means = TensorView::row_major(view.buffer, view.dtype, &sizes);
        means.offset = view.offset.clone();
        let result = self.plan.add_tensor(means);
        let reduction = PoolReduction::Average { count_include_pad: false, divisor_override: None };
        Some(Pool { input, kernel: [h, w], stride: [1; 2], padding: [0; 2], dilation: [1; 2], reduction, result })
    }

    fn pooling(&mut self, pool: Pool<TensorId>, node: Arc<str>) {
        let input = self.images(pool.input, &node);
        self.push(node, pool.result, |result| Action::Fused(Fused::Pool(Pool { input, result, ..pool })));
    }

    /// Whether every operand is a number, or a tensor whose dimensions can change places with those of a result of four.
    fn can_turn(&self, args: &[Operand]) -> bool {
        args.iter().all(|it| match it {
            Operand::Tensor(id) => matches!(self.plan.tensor(*id).sizes.len(), 0 | 4),
            Operand::List(_) | Operand::Plan(_) | Operand::Expr(_) | Operand::MemoryFormat(_) => false,
            _ => true,
        })
    }

    /// The operand with its dimensions in the order of channels-last tensors.
    fn turned(&mut self, operand: &Operand) -> Operand {
        match operand {
            Operand::Tensor(id) if self.plan.tensor(*id).sizes.len() == 4 => Operand::Tensor(self.permuted(*id)),
            other => other.clone(),
        }
    }

    fn permuted(&mut self, id: TensorId) -> TensorId {
        let view = self.plan.tensor(id);
        let order = |it: &[SymInt]| ORDER.iter().map(|&dim| it[dim].clone()).collect::<Vec<_>>();
        let (sizes, strides, offset) = (order(&view.sizes), order(&view.strides), view.offset.clone());
        let (buffer, dtype) = (view.buffer, view.dtype);
        self.plan.add_tensor(TensorView { buffer, dtype, sizes, strides, offset })
    }

    /// The images of a tensor, channels-last and row-major: where they are, or a copy.
    fn images(&mut self, id: TensorId, node: &Arc<str>) -> TensorId {
        let images = self.permuted(id);
        let view = self.plan.tensor(images);
        let Some(extent) = view.known().filter(|it| !it.is_row_major()) else { return images };
        let key = (view.buffer, view.dtype, extent);
        // A copy is good for as long as nobody writes to what it is a copy of.
        let n_writers = usize::from(!matches!(self.plan.buffer(view.buffer), Buffer::Input(_) | Buffer::Constant(_)));
        let is_fixed = self.uses.writers(self.plan, view.buffer).len() <= n_writers;
        if let Some(copy) = self.copies.get(&key).filter(|_| is_fixed) {
            return *copy;
        }
        let (sizes, dtype) = (view.sizes.clone(), view.dtype);
        let scratch = self.plan.add_buffer(Buffer::Scratch);
        let copy = self.plan.add_tensor(TensorView::row_major(scratch, dtype, &sizes));
        self.plan.push(Arc::clone(node), Action::Copy { from: images, to: copy });
        self.copies.insert(key, copy);
        copy
    }

    /// The channels-last images that a step gives for this tensor, and what is to be copied then. The memory of the tensor is
    /// channels-last from now on, where all who look at it can see it so.
    fn result(&mut self, id: TensorId) -> (TensorId, Option<Action>) {
        let view = self.plan.tensor(id).clone();
        let used = self.uses.buffer(view.buffer);
        let is_own = matches!(self.plan.buffer(view.buffer), Buffer::Scratch) && !self.opaque.contains(&view.buffer);
        let is_inner = is_own && !used.is_outer && used.writers.len() == 1;
        let images = self.permuted(id);
        let views = &self.views[view.buffer.0 as usize];
        let sizes = self.plan.tensor(images).sizes.clone();
        if self.plan.tensor(images).known().is_some_and(|it| it.is_row_major()) {
            return (images, None);
        }
        if is_inner && views.iter().all(|it| *self.plan.tensor(*it) == view) {
            let dense = TensorView::row_major(view.buffer, view.dtype, &sizes);
            let seen = unpermuted(&dense);
            for &TensorId(it) in views {
                self.plan.tensors[it as usize].clone_from(&seen);
            }
            self.region.insert(view.buffer);
            return (self.plan.add_tensor(dense), None);
        }
        let scratch = self.plan.add_buffer(Buffer::Scratch);
        let dense = TensorView::row_major(scratch, view.dtype, &sizes);
        let seen = unpermuted(&dense);
        let (images, from) = (self.plan.add_tensor(dense), self.plan.add_tensor(seen));
        (images, Some(Action::Copy { from, to: id }))
    }
}

/// The pooling that a call is, without the places of the maxima.
fn pool(plan: &Plan, uses: &Uses, op: &str, args: &[Operand], results: &[Operand]) -> Option<Pool<TensorId>> {
    if !POOLS.contains(&op) {
        return None;
    }
    let (input, result) = (tensor(args.first())?, tensor(results.first())?);
    if dense_sizes(plan, result)?.len() != 4 || !results[1..].iter().all(|it| uses.is_unread(plan, it)) {
        return None;
    }
    let kernel = pair(args.get(1)?)?;
    let stride = if args.get(2) == Some(&Operand::List(Vec::new())) { kernel } else { pair(args.get(2)?)? };
    let padding = pair(args.get(3)?)?;
    let (dilation, reduction) = if op == POOLS[0] {
        (pair(args.get(4)?)?, PoolReduction::Max)
    } else {
        let divisor_override = match args.get(6)? {
            Operand::None => None,
            Operand::Int(it) => Some(*it),
            _ => return None,
        };
        let count_include_pad = args.get(5) == Some(&Operand::Bool(true));
        ([1, 1], PoolReduction::Average { count_include_pad, divisor_override })
    };
    Some(Pool { input, kernel, stride, padding, dilation, reduction, result })
}

/// Channels-last images with their dimensions in the order of the program.
fn unpermuted(images: &TensorView) -> TensorView {
    let mut res = images.clone();
    for (at, &dim) in ORDER.iter().enumerate() {
        res.sizes[dim] = images.sizes[at].clone();
        res.strides[dim] = images.strides[at].clone();
    }
    res
}

/// The buffers that are looked at by what may go by strides: graphs of control flow, operators that are custom or decomposed when they run, random ones,
/// which draw numbers in the order of memory, and those that give a view of memory.
fn opaque(plan: &Plan, registry: &Registry, kernels: &Kernels) -> FxHashSet<BufferId> {
    let goes_by_strides = |op: &str| {
        let is_plain = |it: &Op| !it.is_custom() && !it.def.tags.has(Tags::RANDOM);
        !registry.get(op).is_some_and(is_plain) || kernels.get(op).is_none() || op.contains("as_strided")
    };
    let is_opaque = |action: &Action| match action {
        Action::Call { op, .. } | Action::Update { op, .. } => goes_by_strides(op),
        Action::ControlFlow { .. } => true,
        Action::Fused(_) | Action::Copy { .. } => false,
    };
    let mut res = FxHashSet::default();
    for step in plan.steps.iter().filter(|it| is_opaque(&it.action)) {
        step.action.for_each_tensor(&mut |it| {
            res.insert(plan.tensor(it).buffer);
        });
    }
    res
}

/// A number for height and one for width; a single one counts for both.
fn pair(operand: &Operand) -> Option<[usize; 2]> {
    let Operand::List(items) = operand else { return None };
    let number = |it: &Operand| if let Operand::Int(it) = it { usize::try_from(*it).ok() } else { None };
    let first = number(items.first()?)?;
    Some([first, items.get(1).map_or(Some(first), number)?])
}

/// Whether these dimensions are height and width.
fn are_image_dims(dims: &[Operand]) -> bool {
    let dim = |it: &Operand| match it {
        Operand::Int(2 | -2) => Some(2),
        Operand::Int(3 | -1) => Some(3),
        _ => None,
    };
    matches!(dims.iter().map(dim).collect::<Vec<_>>()[..], [Some(2), Some(3)] | [Some(3), Some(2)])
}
