//! Products of numbers whose weights are integers of the program (weight-only quantization): finds what makes numbers of the integers, as
//! `quantized_decomposed`, torchao or a program by hand spell it out (conversions, a difference, a factor), or the operator that takes
//! them packed. Where the steps go is for [`products`](crate::products) to say.

use crate::epilogue::{call, is_weight, number, tensor};
use crate::quantized::{Scope, Tensor, addend, factor, is_conversion, n_elements};
use tracefx_core::DType;
use tracefx_plan::{Action, Dequantization, FLOATS, IntegerLayout, Operand, TensorId, TensorView};
use tracefx_sym::SymInt;

/// The right side of a product.
pub(crate) struct Weights {
    /// The integers, as their layout says.
    pub(crate) integers: TensorView,
    /// The rows and columns that they are.
    pub(crate) sizes: [usize; 2],
    pub(crate) dequantization: Dequantization<Tensor>,
    /// The steps that make numbers of them.
    pub(crate) sources: Vec<usize>,
}

/// What `aten._weight_int8pack_mm` or `aten._weight_int4pack_mm` takes beside its rows.
pub(crate) fn packed(scope: Scope<'_>, op: &str, args: &[Operand]) -> Option<Weights> {
    let constant = |at: usize, of: &[DType]| {
        let id = tensor(args.get(at))?;
        let is_constant = of.iter().any(|dtype| is_weight(scope.plan, scope.uses, id, *dtype, None));
        is_constant.then(|| scope.plan.tensor(id).clone())
    };
    let (integers, dequantization) = match op {
        "aten._weight_int8pack_mm.default" => {
            let (mut integers, mut scales) = (constant(1, &[DType::Int8])?, constant(2, &FLOATS)?);
            integers.sizes.reverse();
            integers.strides.reverse();
            scales.sizes.insert(0, SymInt::ONE);
            scales.strides.insert(0, SymInt::ZERO);
            let n_rows = usize::try_from(integers.sizes[0].as_int()?).ok()?;
            (integers, Dequantization::of_int8_columns(n_rows, Tensor::New(scales)))
        }
        "aten._weight_int4pack_mm.default" => {
            let (integers, numbers) = (constant(1, &[DType::Int32])?, constant(3, &FLOATS)?);
            let part = |at: i64| TensorView {
                sizes: numbers.sizes[..2].to_vec(),
                strides: numbers.strides[..2].to_vec(),
                offset: &numbers.offset + &numbers.strides[2] * at,
                ..numbers.clone()
            };
            let group_size = number(args.get(2)).filter(|it| *it >= 1.0)? as usize;
            integers.known().filter(|it| it.is_row_major())?;
            let [scales, shifts] = [0, 1].map(|at| Tensor::New(part(at)));
            (integers, Dequantization::of_int4_tiles(group_size, scales, shifts))
        }
        _ => return None,
    };
    let extent = integers.known()?;
    let sizes = dequantization.layout.columns(&extent.sizes)?;
    (!sizes.contains(&0) && extent.is_apart()).then_some(Weights {
        integers,
        sizes,
        dequantization,
        sources: Vec::new(),
    })
}

/// What numbers are made of that are the columns `[K, N]` of a product, and are in the buffer of `numbers`.
pub(crate) fn spelled_out(scope: Scope<'_>, numbers: TensorId, columns: &TensorView) -> Option<Weights> {
    let plan = scope.plan;
    // Numbers that lie as the integers do are copied to where they lie.
    if let Some((at, from, columns)) = copied(scope, columns) {
        let mut found = spelled_out(scope, from, &columns)?;
        found.sources.push(at);
        return Some(found);
    }
    let extent = columns.known()?;
    let &[k, n] = &extent.sizes[..] else { return None };
    // The order in which the elements lie, without gaps.
    let is_along_columns = extent.strides[..] == [1, k];
    if k * n == 0 || extent.offset != 0 || !(is_along_columns || extent.is_row_major()) {
        return None;
    }
    let order = Order { k, n, is_along_columns };
    let mut found =
        Found { scope, order, scale: 1.0, scales: None, zero_point: 0, zero_points: None, sources: Vec::new() };
    let mut seen = numbers;
    // Factors are behind differences, and conversions anywhere.
    let mut is_shifted = false;
    while !are_integers(scope, seen) {
        let (at, op, args, made) = scope.maker(seen)?;
        let [view, result] = [seen, made].map(|it| plan.tensor(it));
        // The numbers may be seen in other sizes than they were made in, as long as they lie in one order.
        let is_whole = result.known()?.is_row_major() && n_elements(result)? == k * n;
        let is_seen = found.sources.is_empty() || view.known()?.is_row_major() && n_elements(view)? == k * n;
        if !is_whole || !is_seen || view.dtype != result.dtype || view.offset != result.offset {
            return None;
        }
        // Halves are rounded where the program rounds them, which is at the end; integers of eight bits are halves as they are.
        let is_exact = is_conversion(op) && tensor(args.first()).is_some_and(|it| are_integers(scope, it));
        if is_half(result.dtype) && result.dtype != columns.dtype && !is_exact {
            return None;
        }
        found.sources.push(at);
        // Numbers become no integers again, and integers of eight bits no differences that wrap.
        let keeps = |from: TensorId| {
            let from = plan.tensor(from).dtype;
            is_float(result.dtype) || from.is_int() && from.size() <= result.dtype.size()
        };
        let rest = if is_conversion(op) && holds_integers(result.dtype) {
            tensor(args.first()).filter(|it| keeps(*it))?
        } else if !is_shifted && is_float(result.dtype) && matches!(op, "aten.mul.Tensor" | "aten.mul.Scalar") {
            found.take_factor(op, args, result)?
        } else if holds_integers(result.dtype) && matches!(op, "aten.sub.Tensor" | "aten.sub.Scalar") {
            is_shifted = true;
            found.take_zero(op, args, result)?
        } else {
            return None;
        };
        // What it is computed of has its sizes: nothing is repeated.
        if plan.tensor(rest).sizes != result.sizes {
            return None;
        }
        seen = rest;
    }
    let integers = plan.tensor(seen);
    let extent = integers.known()?;
    if found.sources.is_empty() || extent.sizes.iter().product::<usize>() != k * n {
        return None;
    }
    let mut integers = integers.clone();
    if extent.is_row_major() {
        (integers.sizes, integers.strides) = (columns.sizes.clone(), columns.strides.clone());
    } else if is_along_columns && extent.sizes[..] == [n, k] {
        integers.sizes.reverse();
        integers.strides.reverse();
    } else if is_along_columns || extent.sizes[..] != [k, n] {
        return None;
    }
    if !integers.known()?.is_apart() {
        return None;
    }
    let sources = std::mem::take(&mut found.sources);
    // Between a difference and a factor they are not rounded.
    let is_rounded = is_half(columns.dtype);
    let dequantization = Dequantization { is_rounded, ..found.finish()? };
    Some(Weights { integers, sizes: [k, n], dequantization, sources })
}

impl Weights {
    /// Takes the factors of columns that a product of integers without any is multiplied with: the step, and what it gives.
    pub(crate) fn take_scales(&mut self, scope: Scope<'_>, product: TensorId) -> Option<(usize, TensorId)> {
        let Scope { plan, uses, taken } = scope;
        let at = uses.only_reader(plan, product).filter(|it| !taken.contains(it))?;
        let (op, args, results) = call(plan, at)?;
        let (first, second, result) = (tensor(args.first())?, tensor(args.get(1))?, tensor(results.first())?);
        let given = plan.tensor(product);
        let is_product = |it: TensorId| plan.tensor(it) == given;
        let scales = if is_product(first) { second } else { first };
        let is_factor = |it: &DType| is_weight(plan, uses, scales, *it, Some(&self.sizes[1..]));
        let is_like = plan.tensor(result).sizes == given.sizes && plan.tensor(result).dtype == given.dtype;
        // Integers are halves as they are; what they are multiplied by is not rounded.
        let is_exact = !self.dequantization.is_rounded || self.dequantization.scale == 1.0;
        if op != "aten.mul.Tensor"
            || !(is_product(first) || is_product(second))
            || !is_like
            || !is_exact
            || self.dequantization.scales.is_some()
            || !FLOATS.iter().any(is_factor)
        {
            return None;
        }
        let mut view = plan.tensor(scales).clone();
        let n_groups = self.sizes[0] / self.dequantization.group_size;
        view.sizes.insert(0, SymInt::from(n_groups as i64));
        view.strides.insert(0, SymInt::ZERO);
        self.dequantization.scales = Some(Tensor::New(view));
        self.dequantization.is_rounded = false;
        Some((at, result))
    }
}

/// The copy that all of the memory of columns is written by: the step, what it reads, and the columns of that.
fn copied(scope: Scope<'_>, columns: &TensorView) -> Option<(usize, TensorId, TensorView)> {
    let plan = scope.plan;
    let &[at] = &scope.uses.buffer(columns.buffer).writers[..] else { return None };
    let Action::Copy { from, to } = plan.steps[at].action else { return None };
    let (mut source, mut target) = (plan.tensor(from).clone(), plan.tensor(to).clone());
    if target != *columns {
        for view in [&mut source, &mut target] {
            view.sizes.reverse();
            view.strides.reverse();
        }
    }
    (target == *columns && source.sizes == target.sizes).then_some((at, from, source))
}

/// Whether a tensor has integers of the program, of eight bits.
fn are_integers(scope: Scope<'_>, id: TensorId) -> bool {
    [DType::Int8, DType::UInt8].iter().any(|it| is_weight(scope.plan, scope.uses, id, *it, None))
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

fn is_float(dtype: DType) -> bool {
    FLOATS.contains(&dtype) || dtype == DType::Float64
}

/// Whether a dtype holds all integers of eight bits, and their differences.
fn holds_integers(dtype: DType) -> bool {
    is_float(dtype) || matches!(dtype, DType::Int16 | DType::Int32 | DType::Int64)
}

/// The fewest rows of a column that are worth numbers of their own.
const LEAST_GROUP: usize = 8;

/// How the elements of columns lie: one column after the other, or one row after the other.
#[derive(Clone, Copy)]
struct Order {
    k: usize,
    n: usize,
    is_along_columns: bool,
}

/// Numbers of which groups of elements share one: the strides of groups and of columns, and the rows of a group.
struct Grouped {
    view: TensorView,
    group: usize,
    strides: [usize; 2],
}

impl Order {
    /// A tensor that broadcasts to `sizes`, which are those of the elements; nothing where not groups of rows of a column share its numbers.
    fn grouped(self, view: &TensorView, sizes: &[SymInt]) -> Option<Grouped> {
        let extent = view.known()?;
        let lead = sizes.len().checked_sub(extent.sizes.len())?;
        // One number for all lies alike in any order.
        if extent.sizes.iter().all(|it| *it == 1) {
            return Some(Grouped { view: view.clone(), group: self.k, strides: [0; 2] });
        }
        let (inner, outer) = if self.is_along_columns { (self.k, self.n) } else { (self.n, self.k) };
        // The dimensions of the inner and of the outer part, the innermost first. One dimension may be of both.
        let (mut parts, mut left) = ([Vec::new(), Vec::new()], inner);
        for (dim, size) in sizes.iter().enumerate().rev() {
            let size = usize::try_from(size.as_int()?).ok()?;
            let stride = match dim.checked_sub(lead) {
                Some(own) if extent.sizes[own] != 1 => (extent.sizes[own] == size).then_some(extent.strides[own])?,
                _ => 0,
            };
            let within = [size, left].into_iter().find(|it| left % it == 0 && size % it == 0)?;
            left /= within;
            parts[0].push((within, stride));
            if within < size {
                parts[1].push((size / within, stride.checked_mul(within)?));
            }
        }
        let n_outer = parts[1].iter().map(|it| it.0).product::<usize>();
        if left != 1 || n_outer != outer {
            return None;
        }
        let [inner, outer] = parts;
        let (rows, columns) = if self.is_along_columns { (inner, outer) } else { (outer, inner) };
        // Rows that share a number are the innermost of theirs.
        let n_shared = rows.iter().take_while(|it| it.1 == 0 || it.0 == 1).count();
        let group: usize = rows[..n_shared].iter().map(|it| it.0).product();
        let strides = [single_stride(&rows[n_shared..])?, single_stride(&columns)?];
        Some(Grouped { view: view.clone(), group, strides })
    }
}

/// The stride of dimensions, the innermost first, as one.
fn single_stride(dims: &[(usize, usize)]) -> Option<usize> {
    let mut dims = dims.iter().filter(|it| it.0 != 1);
    let Some(&(mut size, stride)) = dims.next() else { return Some(0) };
    for &(next, outer) in dims {
        if outer != stride.checked_mul(size)? {
            return None;
        }
        size *= next;
    }
    Some(stride)
}

/// What is known of the numbers.
struct Found<'a> {
    scope: Scope<'a>,
    order: Order,
    scale: f64,
    scales: Option<Grouped>,
    zero_point: i32,
    zero_points: Option<Grouped>,
    /// The steps that make the numbers.
    sources: Vec<usize>,
}

impl Found<'_> {
    /// Takes a factor, and gives what it is multiplied with.
    fn take_factor(&mut self, op: &str, args: &[Operand], result: &TensorView) -> Option<TensorId> {
        if let Some(factor) = factor(op, args) {
            self.scale *= factor;
            return tensor(args.first());
        }
        let (first, second) = (tensor(args.first())?, tensor(args.get(1))?);
        // Of two tensors, one is the factors.
        let mut sides = [(first, second), (second, first)].into_iter();
        let (rest, factors) = sides.find_map(|(rest, it)| Some((rest, self.numbers(it, &FLOATS, result)?)))?;
        match self.scales.replace(factors) {
            None => Some(rest),
            Some(_) => None,
        }
    }

    /// Takes the integers that are zero, and gives what they are subtracted from.
    fn take_zero(&mut self, op: &str, args: &[Operand], result: &TensorView) -> Option<TensorId> {
        let rest = tensor(args.first())?;
        if let Some(zero) = addend(op, args, "aten.sub") {
            self.zero_point += zero;
            return Some(rest);
        }
        if args.get(2) != Some(&Operand::Int(1)) || self.zero_points.is_some() {
            return None;
        }
        // Of int16, differences of int16 wrap.
        let narrow = [DType::Int8, DType::UInt8];
        let dtypes = match result.dtype {
            DType::Int16 => narrow.to_vec(),
            _ => [&FLOATS[..], &narrow, &[DType::Int16, DType::Int32, DType::Int64]].concat(),
        };
        self.zero_points = Some(self.numbers(tensor(args.get(1))?, &dtypes, result)?);
        Some(rest)
    }

    /// Numbers of the program that broadcast to a result, or what they were converted from without another number.
    fn numbers(&mut self, id: TensorId, dtypes: &[DType], result: &TensorView) -> Option<Grouped> {
        let Scope { plan, uses, .. } = self.scope;
        let view = plan.tensor(id);
        if dtypes.iter().any(|it| is_weight(plan, uses, id, *it, None)) {
            return self.order.grouped(view, &result.sizes);
        }
        let (at, op, args, made) = self.scope.maker(id)?;
        let from = tensor(args.first()).filter(|_| is_conversion(op))?;
        let is_weight = dtypes.iter().any(|it| is_weight(plan, uses, from, *it, None));
        let (own, made) = (plan.tensor(from), plan.tensor(made));
        let is_whole = made.known()?.is_row_major() && own.known()?.is_row_major() && own.sizes == made.sizes;
        let is_seen = view.known()?.is_row_major() && view.offset == made.offset;
        let keeps = match made.dtype {
            to if is_half(to) => matches!(own.dtype, DType::Int8 | DType::UInt8),
            to if is_float(to) => true,
            to if holds_integers(to) => own.dtype.is_int() && own.dtype.size() <= to.size(),
            _ => false,
        };
        if !keeps || !is_weight || !is_whole || !is_seen || n_elements(view)? != n_elements(made)? {
            return None;
        }
        let view = TensorView { buffer: own.buffer, dtype: own.dtype, offset: own.offset.clone(), ..view.clone() };
        let numbers = self.order.grouped(&view, &result.sizes)?;
        self.sources.push(at);
        Some(numbers)
    }

    fn finish(self) -> Option<Dequantization<Tensor>> {
        let Found { order: Order { k, n, .. }, scale, scales, zero_point, zero_points, .. } = self;
        let groups = [&scales, &zero_points].into_iter().flatten().map(|it| it.group);
        let group_size = groups.min().unwrap_or(k);
        let view = |it: Grouped| {
            // Fewer groups than there are cannot be told by strides, but for one.
            let is_one = it.strides[0] == 0 || it.group == k;
            if it.group != group_size && !is_one {
                return None;
            }
            let numbers = |it: [usize; 2]| it.map(|it| SymInt::from(it as i64)).to_vec();
            let (sizes, strides) = (numbers([k / group_size, n]), numbers(it.strides));
            Some(Tensor::New(TensorView { sizes, strides, ..it.view }))
        };
        let optional = |it: Option<Grouped>| match it {
            Some(it) => view(it).map(Some),
            None => Some(None),
        };
        let (scales, zero_points) = (optional(scales)?, optional(zero_points)?);
        let layout = IntegerLayout::Bytes;
        // The numbers of smaller groups take more memory than those of the weight in float32.
        let is_worth = group_size >= LEAST_GROUP || group_size == k;
        (scale.is_finite() && k % group_size == 0 && is_worth).then_some(Dequantization {
            layout,
            group_size,
            zero_point,
            scale,
            scales,
            zero_points,
            shifts: None,
            is_rounded: false,
        })
    }
}
