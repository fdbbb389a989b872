//! Convolutions and products of numbers that are integers of eight bits. `quantized_decomposed` spells them out: integers become numbers
//! (a conversion, a difference and a factor), and numbers integers (a factor, a rounding, a sum, limits and a conversion). What computes with
//! the numbers in between can compute with the integers. Finds them; where the steps go is for [`layout`](crate::layout) and
//! [`products`](crate::products) to say.

use crate::epilogue::{activation_of, call, is_changed, is_weight, number, tensor};
use crate::uses::Uses;
use rustc_hash::FxHashSet;
use std::convert::Infallible;
use tracefx_core::DType;
use tracefx_plan::{
    Activation, Buffer, BufferId, Operand, Plan, Pool, QuantizedConvolution, QuantizedResidual, Rounding, TensorId,
    TensorView, Window,
};
use tracefx_sym::SymInt;

/// Whatever becomes one step, with what it read before.
#[derive(Clone, Debug)]
pub(crate) struct Quantized<T> {
    /// The steps that become one, in order.
    pub(crate) steps: Vec<usize>,
    /// The steps that make numbers of the integers that it reads.
    pub(crate) sources: Vec<usize>,
    pub(crate) input: TensorId,
    pub(crate) residual: Option<TensorId>,
    pub(crate) result: TensorId,
    /// What they become.
    pub(crate) step: T,
}

/// A tensor of the plan, or one that is to be added.
#[derive(Clone, Debug)]
pub(crate) enum Tensor {
    Known(TensorId),
    New(TensorView),
}

/// The plan in which is looked.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) uses: &'a Uses,
    /// The steps that have become others.
    pub(crate) taken: &'a FxHashSet<usize>,
}

/// Integers that numbers were made of.
struct Integers {
    tensor: TensorId,
    scale: f64,
    zero_point: i32,
    steps: Vec<usize>,
}

/// Filters that numbers were made of.
struct Filters {
    integers: TensorId,
    scale: f64,
    scales: Option<TensorView>,
    zero_points: Option<TensorView>,
    steps: Vec<usize>,
}

/// A matrix product: its rows, and its columns as the program has them.
pub(crate) struct Sides {
    pub(crate) lhs: TensorId,
    /// A tensor of the buffer of the columns.
    pub(crate) rhs: TensorId,
    /// The columns, `[K, N]`.
    pub(crate) columns: TensorView,
    pub(crate) bias: Option<TensorId>,
}

/// The convolution of integers that the step at `at` is, which is one of images `input` by a filter of numbers. Views are added to the plan once it is taken.
pub(crate) fn convolution(
    scope: Scope<'_>,
    at: usize,
    [input, weight]: [TensorId; 2],
    bias: Option<TensorId>,
    window: Window,
) -> Option<Quantized<QuantizedConvolution<Tensor>>> {
    let plan = scope.plan;
    let integers = scope.integers(input)?;
    let filters = scope.filters(weight, plan.tensor(weight))?;
    let is_image = |it: &TensorView| it.sizes.len() == 4 && it.known().is_some_and(|it| !it.sizes.contains(&0));
    if plan.tensor(integers.tensor).sizes != plan.tensor(input).sizes || !is_image(plan.tensor(input)) {
        return None;
    }
    scope.step(at, integers, filters, bias, window)
}

/// The product of integers that the step at `at` is.
pub(crate) fn product(scope: Scope<'_>, at: usize, sides: &Sides) -> Option<Quantized<QuantizedConvolution<Tensor>>> {
    let integers = scope.integers(sides.lhs)?;
    let mut weight = sides.columns.clone();
    weight.sizes.reverse();
    weight.strides.reverse();
    let filters = scope.filters(sides.rhs, &weight)?;
    let window = Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 };
    let mut found = scope.step(at, integers, filters, sides.bias, window)?;
    // Rows are images of one pixel.
    let rows = |it: &TensorView, n: i64| {
        let all = it.known().filter(|it| it.is_row_major())?.sizes.iter().product::<usize>() as i64;
        let sizes = [all / n.max(1), 1, 1, n].map(Into::into);
        Some(Tensor::New(TensorView {
            offset: it.offset.clone(),
            ..TensorView::row_major(it.buffer, it.dtype, &sizes)
        }))
    };
    let [n, k] = [weight.sizes[0].as_int()?, weight.sizes[1].as_int()?];
    let it = &mut found.step;
    it.input = rows(it.input.view(scope.plan), k)?;
    it.result = rows(it.result.view(scope.plan), n)?;
    if let Some(residual) = &mut it.residual {
        residual.tensor = rows(residual.tensor.view(scope.plan), n)?;
    }
    weight.sizes.extend([1.into(), 1.into()]);
    weight.strides.extend([1.into(), 1.into()]);
    let integers = it.weight.view(scope.plan);
    it.weight = Tensor::New(TensorView { dtype: integers.dtype, buffer: integers.buffer, ..weight });
    Some(found)
}

/// The pooling of integers that the step at `at` is, which takes the largest of the numbers that they become. Of equal scales, their order is the same.
pub(crate) fn pool(scope: Scope<'_>, at: usize, pool: Pool<TensorId>) -> Option<Quantized<Pool<TensorId>>> {
    let integers = scope.integers(pool.input)?;
    let mut tail = Tail::new(scope, at, pool.result);
    let rounding = tail.rounding()?;
    let [from, to] = [integers.tensor, tail.result].map(|it| scope.plan.tensor(it));
    let (least, largest) = range_of(to.dtype)?;
    let is_same = from.dtype == to.dtype
        && from.sizes == scope.plan.tensor(pool.input).sizes
        && rounding.zero_point == integers.zero_point
        && (rounding.min, rounding.max) == (least, largest)
        && (rounding.scale / integers.scale - 1.0).abs() < 1e-12;
    let all = [&integers.steps[..], &tail.steps].concat();
    if !is_same || is_changed(scope.plan, scope.uses, &all, tail.last()) {
        return None;
    }
    let (input, result) = (integers.tensor, tail.result);
    let step = Pool { input, result, ..pool };
    Some(Quantized { steps: tail.steps, sources: integers.steps, input, residual: None, result, step })
}

/// Those of the sources of steps whose numbers nobody needs any more: neither other steps nor what the steps read now.
pub(crate) fn unneeded<'a>(
    plan: &Plan,
    uses: &Uses,
    steps: &FxHashSet<usize>,
    read: &FxHashSet<BufferId>,
    sources: impl Iterator<Item = &'a usize>,
) -> FxHashSet<usize> {
    let mut sources: Vec<usize> = sources.copied().collect();
    sources.sort_unstable();
    sources.dedup();
    let mut res = FxHashSet::default();
    for at in sources.into_iter().rev() {
        let mut is_needed = false;
        plan.steps[at].action.for_each_written(&mut |id| {
            let buffer = plan.tensor(id).buffer;
            let used = uses.buffer(buffer);
            let is_inner = matches!(plan.buffer(buffer), Buffer::Scratch) && !used.is_outer && used.writers[..] == [at];
            is_needed |= !is_inner
                || read.contains(&buffer)
                || !used.readers.iter().all(|it| steps.contains(it) || res.contains(it));
        });
        if !is_needed {
            res.insert(at);
        }
    }
    res
}

impl Tensor {
    pub(crate) fn view<'a>(&'a self, plan: &'a Plan) -> &'a TensorView {
        match self {
            Tensor::Known(id) => plan.tensor(*id),
            Tensor::New(view) => view,
        }
    }

    /// The tensor, which is in the plan from now on.
    pub(crate) fn add(&self, plan: &mut Plan) -> TensorId {
        match self {
            Tensor::Known(id) => *id,
            Tensor::New(view) => plan.add_tensor(view.clone()),
        }
    }
}

impl<T> Quantized<T> {
    /// The place of the step that computes all.
    pub(crate) fn last(&self) -> usize {
        self.steps[self.steps.len() - 1]
    }
}

/// Adds the tensors of a step to the plan.
pub(crate) fn added(step: &QuantizedConvolution<Tensor>, plan: &mut Plan) -> QuantizedConvolution<TensorId> {
    match step.try_map(&mut |it| Ok::<_, Infallible>(it.add(plan))) {
        Ok(step) => step,
    }
}

impl Scope<'_> {
    /// The step with what follows it.
    fn step(
        self,
        at: usize,
        integers: Integers,
        filters: Filters,
        bias: Option<TensorId>,
        window: Window,
    ) -> Option<Quantized<QuantizedConvolution<Tensor>>> {
        let (_, _, results) = call(self.plan, at)?;
        let mut tail = Tail::new(self, at, tensor(results.first())?);
        let extent = self.plan.tensor(filters.integers).known()?;
        let n_terms = extent.sizes[1..].iter().try_fold(1usize, |n, it| n.checked_mul(*it))?;
        let result = self.plan.tensor(tail.result);
        let is_image = result.known().is_some_and(|it| it.is_row_major() && !it.sizes.contains(&0));
        let is_weight = |id: TensorId| is_weight(self.plan, self.uses, id, DType::Float32, Some(&extent.sizes[..1]));
        if !is_image
            || result.dtype != DType::Float32
            || !(1..=QuantizedConvolution::<Tensor>::MOST_TERMS).contains(&n_terms)
            || !bias.is_none_or(is_weight)
        {
            return None;
        }
        tail.follow();
        let sources = [integers.steps, filters.steps, tail.sources.clone()].concat();
        if is_changed(self.plan, self.uses, &[&sources[..], &tail.steps].concat(), tail.last()) {
            return None;
        }
        let (input, residual, result) = (integers.tensor, tail.residual.as_ref().map(|it| it.tensor), tail.result);
        let step = QuantizedConvolution {
            input: Tensor::Known(integers.tensor),
            zero_point: integers.zero_point,
            weight: Tensor::Known(filters.integers),
            weight_zero_points: filters.zero_points.map(Tensor::New),
            window,
            scale: integers.scale * filters.scale,
            scales: filters.scales.map(Tensor::New),
            bias: bias.map(Tensor::Known),
            inner: tail.inner,
            residual: tail.residual.map(|it| QuantizedResidual {
                tensor: Tensor::Known(it.tensor),
                scale: it.scale,
                zero_point: it.zero_point,
            }),
            limits: tail.limits,
            rounding: tail.rounding,
            result: Tensor::Known(tail.result),
        };
        Some(Quantized { steps: tail.steps, sources, input, residual, result, step })
    }

    /// The call that gives all of the memory of a tensor, and what it gives.
    pub(crate) fn maker(&self, id: TensorId) -> Option<(usize, &str, &[Operand], TensorId)> {
        let &[at] = &self.uses.buffer(self.plan.tensor(id).buffer).writers[..] else { return None };
        let (op, args, results) = call(self.plan, at)?;
        let [Operand::Tensor(result)] = results[..] else { return None };
        Some((at, op, args, result))
    }

    /// The dtype of what a call gives.
    fn dtype_of(&self, at: usize) -> Option<DType> {
        let (_, _, results) = call(self.plan, at)?;
        Some(self.plan.tensor(tensor(results.first())?).dtype)
    }

    /// As [`Scope::maker`], of a tensor that is what the call gives.
    fn made(&self, id: TensorId) -> Option<(usize, &str, &[Operand])> {
        let (at, op, args, result) = self.maker(id)?;
        (self.plan.tensor(result) == self.plan.tensor(id)).then_some((at, op, args))
    }

    /// The integers that numbers were made of, all with one scale; the numbers may be seen in other sizes than they were made in.
    fn integers(&self, numbers: TensorId) -> Option<Integers> {
        let (third, op, args, made) = self.maker(numbers)?;
        let scale = factor(op, args).filter(|it| it.is_finite())?;
        let (second, op, args) = self.made(tensor(args.first())?)?;
        let zero_point = addend(op, args, "aten.sub")?;
        let (first, op, args) = self.made(tensor(args.first())?)?;
        let converted = self.dtype_of(first)?;
        let integers = tensor(args.first()).filter(|_| is_conversion(op) && converted == DType::Float32)?;
        let [from, seen, made] = [integers, numbers, made].map(|it| self.plan.tensor(it));
        let (least, largest) = range_of(from.dtype)?;
        let lies_alike = from.known()?.is_row_major() && made.known()?.is_row_major() && seen.known()?.is_row_major();
        let are_all = n_elements(from) == n_elements(seen) && from.sizes == made.sizes && seen.offset == made.offset;
        let is_float = made.dtype == DType::Float32 && seen.dtype == DType::Float32;
        (lies_alike && are_all && is_float && (least..=largest).contains(&zero_point)).then_some(Integers {
            tensor: integers,
            scale,
            zero_point,
            steps: vec![first, second, third],
        })
    }

    /// The filters that numbers were made of, which are seen as `seen`, with one scale or one for each.
    fn filters(&self, numbers: TensorId, seen: &TensorView) -> Option<Filters> {
        let (at, op, args, made) = self.maker(numbers)?;
        if self.plan.tensor(made) != seen || seen.dtype != DType::Float32 {
            return None;
        }
        let mut res = Filters { integers: made, scale: 1.0, scales: None, zero_points: None, steps: vec![at] };
        let n_filters = [seen.known()?.sizes.first().copied()?, seen.sizes.len()];
        let mut rest = tensor(args.first())?;
        match factor(op, args) {
            Some(scale) => res.scale = scale,
            None if op == "aten.mul.Tensor" => {
                let other = tensor(args.get(1))?;
                // Of two tensors, one is the factors.
                let scales =
                    [other, rest].into_iter().find_map(|it| Some((it, self.each(it, DType::Float32, n_filters)?)));
                let (id, scales) = scales?;
                rest = if id == other { rest } else { other };
                res.scales = Some(scales);
            }
            None => return None,
        }
        while !is_weight(self.plan, self.uses, rest, DType::Int8, None) {
            let (at, op, args) = self.made(rest)?;
            rest = tensor(args.first())?;
            res.steps.push(at);
            // Dtypes that hold all integers of eight bits, and their differences.
            let is_wide = matches!(self.dtype_of(at)?, DType::Float32 | DType::Int16 | DType::Int32 | DType::Int64);
            if addend(op, args, "aten.sub") == Some(0) || is_conversion(op) && is_wide {
                continue;
            }
            if op != "aten.sub.Tensor" || !is_wide || args.get(2) != Some(&Operand::Int(1)) || res.zero_points.is_some()
            {
                return None;
            }
            let zeros = tensor(args.get(1))?;
            res.zero_points = Some(self.each(zeros, DType::Int64, n_filters).filter(|it| self.are_small(it))?);
        }
        let integers = self.plan.tensor(rest);
        let is_seen = integers.sizes == seen.sizes && self.plan.tensor(made).known()?.is_row_major();
        res.integers = rest;
        (is_seen && integers.known()?.is_row_major()).then_some(res)
    }

    /// Numbers of the program of which each filter has one: as many, along the first of the dimensions of the filters.
    fn each(&self, id: TensorId, dtype: DType, [n_filters, rank]: [usize; 2]) -> Option<TensorView> {
        if !is_weight(self.plan, self.uses, id, dtype, None) {
            return None;
        }
        let view = self.plan.tensor(id);
        let [first, rest @ ..] = &view.known()?.sizes[..] else { return None };
        let is_along = *first == n_filters && rest.iter().all(|it| *it == 1) && view.sizes.len() == rank;
        let one = |it: &[SymInt]| it[..1].to_vec();
        is_along.then(|| TensorView { sizes: one(&view.sizes), strides: one(&view.strides), ..view.clone() })
    }

    /// Whether these integers of the program are of eight bits.
    fn are_small(&self, zeros: &TensorView) -> bool {
        let (Buffer::Constant(storage), Some(extent)) = (self.plan.buffer(zeros.buffer), zeros.known()) else {
            return false;
        };
        let read = storage.read();
        let all = read.elements::<i64>();
        (0..extent.sizes[0])
            .all(|it| all.get(extent.offset + it * extent.strides[0]).is_some_and(|it| i8::try_from(*it).is_ok()))
    }
}

/// What follows a convolution.
struct Tail<'a> {
    scope: Scope<'a>,
    steps: Vec<usize>,
    /// The steps that make numbers of the residual.
    sources: Vec<usize>,
    inner: Option<Rounding>,
    residual: Option<QuantizedResidual<TensorId>>,
    limits: [f32; 2],
    rounding: Option<Rounding>,
    result: TensorId,
}

impl<'a> Tail<'a> {
    fn new(scope: Scope<'a>, at: usize, result: TensorId) -> Self {
        let limits = [f32::NEG_INFINITY, f32::INFINITY];
        let (steps, sources) = (vec![at], Vec::new());
        Tail { scope, steps, sources, inner: None, residual: None, limits, rounding: None, result }
    }

    fn last(&self) -> usize {
        self.steps[self.steps.len() - 1]
    }

    /// Takes all that one step can do.
    fn follow(&mut self) {
        self.limit();
        self.rounding = self.rounding();
        let (steps, result) = (self.steps.clone(), self.result);
        // Numbers again, to which a residual is added.
        if self.rounding.is_some() && self.added().is_none() {
            (self.steps, self.result) = (steps, result);
            (self.residual, self.sources) = (None, Vec::new());
        }
        if self.rounding.is_none() {
            let is_unlimited = self.limits == [f32::NEG_INFINITY, f32::INFINITY];
            if is_unlimited && self.add().is_some() {
                self.limit();
                self.rounding = self.rounding();
            }
        }
    }

    /// Takes the sum of a residual and of what numbers were rounded to.
    fn added(&mut self) -> Option<()> {
        let rounding = self.rounding?;
        self.take(is_conversion).filter(|()| self.is_float())?;
        let is_zero = |op: &str, args: &[Operand]| addend(op, args, "aten.sub") == Some(rounding.zero_point);
        self.take_with(|op, args| is_zero(op, args).then_some(()))?;
        let scale = self.take_with(factor)?;
        let is_same = (scale / rounding.scale - 1.0).abs() < 1e-12;
        self.add().filter(|()| is_same && self.is_float())?;
        // Of limits of the numbers, those of the integers stay.
        let [min, max] = self.limits.map(|it| (f64::from(it) / rounding.scale).round_ties_even() as i32);
        let limit = |it: i32| it.saturating_add(rounding.zero_point).clamp(rounding.min, rounding.max);
        self.inner = Some(Rounding { scale, min: limit(min), max: limit(max), ..rounding });
        (self.limits, self.rounding) = ([f32::NEG_INFINITY, f32::INFINITY], None);
        self.limit();
        self.rounding = self.rounding();
        Some(())
    }

    /// Takes the sum with a residual.
    fn add(&mut self) -> Option<()> {
        let (at, op, args, result) = self.next()?;
        if op != "aten.add.Tensor" || args.get(2) != Some(&Operand::Int(1)) {
            return None;
        }
        let (first, second) = (tensor(args.first())?, tensor(args.get(1))?);
        let other = if self.is_whole(first) { second } else { first };
        let integers = self.scope.integers(other)?;
        let is_like = self.scope.plan.tensor(other).sizes == self.scope.plan.tensor(self.result).sizes
            && self.scope.plan.tensor(integers.tensor).sizes == self.scope.plan.tensor(other).sizes;
        if !is_like || !(self.is_whole(first) || self.is_whole(second)) {
            return None;
        }
        let Integers { tensor, scale, zero_point, steps } = integers;
        self.residual = Some(QuantizedResidual { tensor, scale, zero_point });
        self.sources = steps;
        self.steps.push(at);
        self.result = result;
        Some(())
    }

    /// Takes limits of numbers.
    fn limit(&mut self) {
        let limits = |op: &str, args: &[Operand]| match activation_of(op, args)? {
            Activation::Clamp { min, max } => (min <= max).then_some([min, max]),
            _ => None,
        };
        if let Some(limits) = self.take_with(limits) {
            self.limits = limits;
        }
    }

    /// Takes what makes integers of numbers.
    fn rounding(&mut self) -> Option<Rounding> {
        let (steps, result) = (self.steps.clone(), self.result);
        let taken = self.take_rounding();
        if taken.is_none() {
            (self.steps, self.result) = (steps, result);
        }
        taken
    }

    fn take_rounding(&mut self) -> Option<Rounding> {
        let scale = 1.0 / self.take_with(factor)?;
        self.take(|op| op == "aten.round.default")?;
        let zero_point = self.take_with(|op, args| addend(op, args, "aten.add"))?;
        let limits = |op: &str, args: &[Operand]| {
            let limit = |at: usize| number(args.get(at)).filter(|it| it.fract() == 0.0);
            (op == "aten.clamp.default").then_some([limit(1)? as i32, limit(2)? as i32])
        };
        let [min, max] = self.take_with(limits)?;
        self.take(is_conversion)?;
        let (least, largest) = range_of(self.scope.plan.tensor(self.result).dtype)?;
        let are_inside = least <= min && min <= max && max <= largest && (least..=largest).contains(&zero_point);
        (are_inside && scale.is_finite() && scale > 0.0).then_some(Rounding { scale, zero_point, min, max })
    }

    /// Takes the next step, if it is one of these operators.
    fn take(&mut self, is: impl Fn(&str) -> bool) -> Option<()> {
        self.take_with(|op, _| is(op).then_some(()))
    }

    /// Takes the next step, if there is something that it is.
    fn take_with<R>(&mut self, what: impl Fn(&str, &[Operand]) -> Option<R>) -> Option<R> {
        let (at, op, args, result) = self.next()?;
        let res = what(op, args).filter(|_| tensor(args.first()).is_some_and(|it| self.is_whole(it)))?;
        self.steps.push(at);
        self.result = result;
        Some(res)
    }

    /// Whether what was computed last is of float32.
    fn is_float(&self) -> bool {
        self.scope.plan.tensor(self.result).dtype == DType::Float32
    }

    /// Whether a tensor is what was computed last.
    fn is_whole(&self, id: TensorId) -> bool {
        self.scope.plan.tensor(id) == self.scope.plan.tensor(self.result)
    }

    /// The call that alone reads what was computed last, and gives something like it.
    fn next(&self) -> Option<(usize, &'a str, &'a [Operand], TensorId)> {
        let Scope { plan, uses, taken } = self.scope;
        let at = uses.only_reader(plan, self.result).filter(|it| !taken.contains(it))?;
        let (op, args, results) = call(plan, at)?;
        let [Operand::Tensor(result)] = results[..] else { return None };
        let is_alike = plan.tensor(result).sizes == plan.tensor(self.result).sizes;
        let is_row_major = plan.tensor(result).known().is_some_and(|it| it.is_row_major());
        (is_alike && is_row_major).then_some((at, op, args, result))
    }
}

/// The number of elements of a tensor whose sizes are numbers.
pub(crate) fn n_elements(view: &TensorView) -> Option<usize> {
    view.known().map(|it| it.sizes.iter().product())
}

/// The least and the largest integer of a dtype of eight bits.
fn range_of(dtype: DType) -> Option<(i32, i32)> {
    match dtype {
        DType::Int8 => Some((-128, 127)),
        DType::UInt8 => Some((0, 255)),
        _ => None,
    }
}

/// The number that an operator multiplies with.
pub(crate) fn factor(op: &str, args: &[Operand]) -> Option<f64> {
    number(args.get(1)).filter(|_| matches!(op, "aten.mul.Scalar" | "aten.mul.Tensor"))
}

/// The integer that an operator, whose name begins so, adds or subtracts.
pub(crate) fn addend(op: &str, args: &[Operand], name: &str) -> Option<i32> {
    let is_one = matches!(op.strip_prefix(name), Some(".Scalar" | ".Tensor")) && args.get(2) == Some(&Operand::Int(1));
    let number = number(args.get(1)).filter(|it| is_one && it.fract() == 0.0 && it.abs() <= 256.0)?;
    Some(number as i32)
}

/// Whether an operator gives the same numbers in a dtype.
pub(crate) fn is_conversion(op: &str) -> bool {
    matches!(op, "aten._to_copy.default" | "aten.to.dtype")
}
