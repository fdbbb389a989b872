//! Random numbers: each element is drawn in its turn, in the order in which PyTorch visits the elements. Where that is row
//! by row, many steps of the generator are taken at once.
//!
//! The formulas are those of ATen/core/DistributionsHelper.h and ATen/core/TransformationHelper.h.

use crate::numeric::dense::written;
use crate::numeric::dispatch::with_element;
use crate::numeric::elementary::fused;
use crate::numeric::float::rounding;
use crate::numeric::map::{cast_into, each, storing};
use tracefx_core::{
    Bool8, DType, DTypeKind, Diagnostic, Dims, Element, Generator, MemoryFormat, Result, Scalar, Tensor,
    with_default_generator,
};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, real_of};

const UNIFORM: Kernel = Kernel::Fill(|args, outs| uniform(args, &outs[0], 0.0, 1.0));
const BETWEEN: Kernel = Kernel::Fill(random_between);

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.rand.default", UNIFORM),
    ("aten.rand_like.default", UNIFORM),
    ("aten.uniform.default", Kernel::Fill(|args, outs| uniform(args, &outs[0], args.float(1)?, args.float(2)?))),
    ("aten.randint.default", BETWEEN),
    ("aten.randint.low", BETWEEN),
    ("aten.randint_like.default", BETWEEN),
    ("aten.randint_like.low_dtype", BETWEEN),
    ("aten.random.to", BETWEEN),
    ("aten.random.from", BETWEEN),
    ("aten.random.default", Kernel::Fill(random_of_dtype)),
    (
        "aten.exponential.default",
        Kernel::Fill(|args, outs| {
            draw_floats(args, &outs[0], |generator, [lambda, _]| -1.0 / lambda * (-generator.uniform()).ln_1p())
        }),
    ),
    (
        "aten.cauchy.default",
        Kernel::Fill(|args, outs| {
            draw_floats(args, &outs[0], |generator, [median, sigma]| {
                median + sigma * (std::f64::consts::PI * (generator.uniform() - 0.5)).tan()
            })
        }),
    ),
    (
        "aten.log_normal.default",
        Kernel::Fill(|args, outs| {
            draw_floats(args, &outs[0], |generator, [mean, std]| (generator.normal() * std + mean).exp())
        }),
    ),
    (
        "aten.geometric.default",
        Kernel::Fill(|args, outs| {
            draw_floats(args, &outs[0], |generator, [p, _]| (generator.uniform().ln() / (-p).ln_1p()).ceil())
        }),
    ),
    (
        "aten.bernoulli.p",
        Kernel::Fill(|args, outs| {
            let p = args.float(1)?;
            draw_steps(&outs[0], |steps| Bool8::from(double_of_steps(steps) < p))
        }),
    ),
    (
        "aten.bernoulli.default",
        Kernel::Fill(|args, outs| bernoulli(args, &Order::row_major(&outs[0]), args.tensor(0)?, &outs[0])),
    ),
    (
        "aten.bernoulli.Tensor",
        Kernel::Fill(|args, outs| bernoulli(args, &Order::of(args, &outs[0])?, args.tensor(1)?, &outs[0])),
    ),
];

/// The order in which the elements of a result are drawn.
pub(super) struct Order {
    /// The dimensions from the outermost in memory to the innermost.
    dims: Vec<usize>,
    /// Whether the elements lie row by row and without gaps, where PyTorch may draw many at once.
    pub(crate) is_contiguous: bool,
}

impl Order {
    /// Row by row.
    pub(crate) fn row_major(out: &Tensor) -> Self {
        Order { dims: (0..out.rank()).collect(), is_contiguous: true }
    }

    /// The order of the result of this call: that of the memory of the tensor that it is made after, if there is one.
    pub(crate) fn of(args: &Args<'_, Tensor>, out: &Tensor) -> Result<Self> {
        let (Some(0), Ok(like)) = (args.position("self"), args.tensor(0)) else { return Ok(Order::row_major(out)) };
        let format = args.position("memory_format").map_or(Ok(None), |it| args.opt_memory_format(it))?;
        let dims: Vec<usize> = match format {
            None | Some(MemoryFormat::Preserve) => {
                let mut dims: Vec<usize> = (0..like.rank()).filter(|&it| like.sizes()[it] != 1).collect();
                dims.sort_by_key(|&it| std::cmp::Reverse(like.strides()[it]));
                dims
            }
            Some(MemoryFormat::Contiguous) => return Ok(Order::row_major(out)),
            Some(MemoryFormat::ChannelsLast) => vec![0, 2, 3, 1],
            Some(MemoryFormat::ChannelsLast3d) => vec![0, 2, 3, 4, 1],
        };
        // A new tensor has no gaps; one that is written in place may have some.
        let is_new = args.position("memory_format").is_some();
        let is_contiguous = dims.is_sorted() && (is_new || like.is_contiguous());
        Ok(Order { dims, is_contiguous })
    }

    /// The order of the parts of complex numbers: the imaginary one follows the real one.
    pub(crate) fn of_parts(mut self, out: &Tensor) -> Self {
        self.dims.push(out.rank());
        self
    }

    /// Whether the elements are drawn row by row.
    fn is_row_major(&self) -> bool {
        self.dims.is_sorted()
    }

    /// Gives `visit` the row-major position of each element of these sizes in turn.
    fn for_each(&self, sizes: &[usize], visit: &mut dyn FnMut(usize)) {
        let n: usize = sizes.iter().product();
        if self.is_row_major() {
            return (0..n).for_each(visit);
        }
        let strides = tracefx_core::contiguous_strides(sizes);
        let mut index = vec![0; self.dims.len()];
        let mut at = 0;
        for _ in 0..n {
            visit(at);
            for (i, &dim) in index.iter_mut().zip(&self.dims).rev() {
                *i += 1;
                at += strides[dim];
                if *i < sizes[dim] {
                    break;
                }
                at -= *i * strides[dim];
                *i = 0;
            }
        }
    }
}

/// Fills a row-major result with what `next` draws for each position, in this order.
pub(super) fn draw_in(
    order: &Order,
    args: &Args<'_, Tensor>,
    out: &Tensor,
    next: &mut dyn FnMut(&mut Generator, usize) -> Scalar,
) -> Result<()> {
    with_element!(out.dtype(), &args.op.name, T => with_default_generator(|generator| {
        let mut guard = written(out);
        let to = guard.elements_mut::<T>();
        order.for_each(out.sizes(), &mut |at| to[at] = T::from_scalar(next(generator, at)));
    }));
    Ok(())
}

/// A result in which numbers are drawn, and the order of that: of complex numbers their parts are drawn.
pub(super) fn drawn(args: &Args<'_, Tensor>, out: &Tensor) -> Result<(Tensor, Order)> {
    let order = Order::of(args, out)?;
    if !out.dtype().is_complex() {
        return Ok((out.clone(), order));
    }
    let sizes: Dims = out.sizes().iter().copied().chain([2]).collect();
    let strides = tracefx_core::contiguous_strides(&sizes);
    let parts = Tensor::view_of(out.storage().clone(), real_of(out.dtype()), &sizes, &strides, 2 * out.offset())?;
    Ok((parts, order.of_parts(out)))
}

/// Fills a row-major result with what `next` draws, in the order of this call.
fn draw(args: &Args<'_, Tensor>, out: &Tensor, next: &mut dyn FnMut(&mut Generator) -> Scalar) -> Result<()> {
    draw_in(&Order::of(args, out)?, args, out, &mut |generator, _| next(generator))
}

/// Fills a row-major result, whose elements are drawn row by row, with a function of `N` steps of the generator for each.
fn draw_steps<R: Element, const N: usize>(out: &Tensor, f: impl Fn([u32; N]) -> R) -> Result<()> {
    const BLOCK: usize = 1024;
    let (store, size) = (storing::<R>(out.dtype())?, out.dtype().size());
    let (mut steps, mut drawn) = ([[0; N]; BLOCK], [R::zeroed(); BLOCK]);
    with_default_generator(|generator| {
        let mut guard = written(out);
        for to in guard.bytes_mut()[..out.numel() * size].chunks_mut(BLOCK * size) {
            let n = to.len() / size;
            generator.fill(steps[..n].as_flattened_mut());
            each(&steps[..n], &mut drawn[..n], &f);
            store(&drawn[..n], to);
        }
    });
    Ok(())
}

/// As [`Generator::uniform_f32`] makes it of a step.
#[inline(always)]
pub(super) fn float_of_step(step: u32) -> f32 {
    (step & ((1 << 24) - 1)) as f32 / (1u32 << 24) as f32
}

/// As [`Generator::uniform`] makes it of two steps.
#[inline(always)]
fn double_of_steps([upper, lower]: [u32; 2]) -> f64 {
    ((u64::from(upper) << 32 | u64::from(lower)) & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
}

/// Fills a result with the numbers of a distribution with up to two parameters, which follow `self` in the schema.
fn draw_floats(args: &Args<'_, Tensor>, out: &Tensor, next: fn(&mut Generator, [f64; 2]) -> f64) -> Result<()> {
    let second = if args.op.schema.args[2].is_kwarg_only { 0.0 } else { args.float(2)? };
    let parameters = [args.float(1)?, second];
    draw(args, out, &mut |generator| Scalar::Float(next(generator, parameters)))
}

/// The float as an element of this dtype.
pub(crate) fn rounded(args: &Args<'_, Tensor>, dtype: DType, value: f64) -> Result<f64> {
    with_element!(dtype, &args.op.name, T => Ok(T::from_scalar(Scalar::Float(value)).to_scalar().to_f64()))
}

fn uniform(args: &Args<'_, Tensor>, out: &Tensor, from: f64, to: f64) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (out, order) = &drawn(args, out)?;
    let (dtype, is_row_major) = (out.dtype(), order.is_row_major());
    if dtype == DType::Float64 {
        let place = |it: f64| {
            let it = it.mul_add(to - from, from);
            if it == to { from } else { it }
        };
        if is_row_major {
            return draw_steps(out, |steps| place(double_of_steps(steps)));
        }
        return draw_in(order, args, out, &mut |generator, _| Scalar::Float(place(generator.uniform())));
    }
    // The end of the interval does not belong to it, even where the dtype rounds to it.
    let (first, end) = (rounded(args, dtype, from)? as f32, rounded(args, dtype, to)? as f32);
    let (from, to) = (from as f32, to as f32);
    let round = rounding::<f32>(dtype);
    let place = |it: f32| {
        let it = fused(it, to - from, from);
        let nearest = if dtype == DType::Float32 { it } else { round(it) };
        if nearest == end { first } else { it }
    };
    if is_row_major {
        return draw_steps(out, |[step]| place(float_of_step(step)));
    }
    draw_in(order, args, out, &mut |generator, _| Scalar::Float(place(generator.uniform_f32()).into()))
}

/// How many bits of an integer a float holds.
fn n_digits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::Float64 => Some(53),
        DType::Float32 => Some(24),
        DType::Float16 => Some(11),
        DType::BFloat16 => Some(8),
        _ => None,
    }
}

/// The largest integer of a dtype.
fn largest(dtype: DType) -> i64 {
    match (dtype.kind(), dtype.size()) {
        (DTypeKind::Bool, _) => 1,
        (_, 8) => i64::MAX,
        (_, size) => {
            let is_unsigned = matches!(dtype, DType::UInt8 | DType::UInt16 | DType::UInt32);
            (1 << (size * 8 - usize::from(!is_unsigned))) - 1
        }
    }
}

/// Integers from a first one on, below a last one.
fn random_between(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    let bound = |names: [&str; 2]| match names.iter().find_map(|it| args.position(it)) {
        Some(index) => args.opt_int(index),
        None => Ok(None),
    };
    let (from, to) = (bound(["from", "low"])?.unwrap_or(0), bound(["to", "high"])?);
    if dtype.is_complex() {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    if let Some(to) = to.filter(|&to| from >= to) {
        return Err(
            args.invalid(format!("random_ expects 'from' to be less than 'to', but got from={from} >= to={to}"))
        );
    }
    let as_element = |it: i64| -> Result<i64> {
        with_element!(dtype, &args.op.name, T => Ok(T::from_scalar(Scalar::Int(it)).to_scalar().to_i64()))
    };
    if to.is_none() && from == i64::MIN {
        return draw(args, &outs[0], &mut |generator| Scalar::Int(generator.random64() as i64));
    }
    let (mut from, mut last) = match (to, n_digits(dtype)) {
        (Some(to), _) => (from, to - 1),
        (None, Some(n_digits)) => (from, 1 << n_digits),
        (None, None) => (from, largest(dtype)),
    };
    if [from, last].iter().any(|&it| rounded(args, dtype, it as f64).is_ok_and(f64::is_infinite)) {
        return Err(args.invalid(format!("the bounds are out of bounds for {}", dtype.name())));
    }
    if let Some(n_digits) = n_digits(dtype) {
        // Large integers that the dtype rounds out of the range are left out of it.
        let step = |it: i64| 1i64 << (it.unsigned_abs().max(1).ilog2() + 1).saturating_sub(n_digits);
        let (first_rounded, last_rounded) = (as_element(from.wrapping_add(1))?, as_element(last)?);
        if first_rounded < from {
            from = first_rounded.wrapping_add(step(from.wrapping_add(1)));
        }
        if to.is_some() && last_rounded > last {
            last = last_rounded.wrapping_sub(step(last)).wrapping_sub(1);
        }
    } else {
        for (name, it) in [("from", from), ("to - 1", last)] {
            if as_element(it)? != it {
                return Err(args.invalid(format!("{name} is out of bounds for {}", dtype.name())));
            }
        }
    }
    if from > last {
        let to = last.wrapping_add(1);
        let what = format!("random_ expects 'from' to be less than 'to', but got from={from} >= to={to}");
        return Err(args.invalid(what));
    }
    let range = (last as u64).wrapping_sub(from as u64).wrapping_add(1);
    if range < 1 << 28 && Order::of(args, &outs[0])?.is_row_major() {
        return draw_steps(&outs[0], |[step]| i64::from(step % range as u32) + from);
    }
    draw(args, &outs[0], &mut |generator| {
        let drawn = if range >= 1 << 28 { generator.random64() } else { u64::from(generator.random()) };
        Scalar::Int(((drawn % range) as i64).wrapping_add(from))
    })
}

/// Integers from zero to the largest one that the dtype holds, or that a float holds without rounding.
fn random_of_dtype(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    if outs[0].numel() == 0 {
        return Ok(());
    }
    if dtype.is_complex() {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    let range = n_digits(dtype).map_or(largest(dtype) as u64 + 1, |it| (1 << it) + 1);
    let is_wide = matches!(dtype, DType::Float64 | DType::Int64);
    draw(args, &outs[0], &mut |generator| {
        let drawn = if is_wide { generator.random64() } else { u64::from(generator.random()) };
        Scalar::Int((drawn % range) as i64)
    })
}

/// One with the probability that stands at the same place of an argument.
fn bernoulli(args: &Args<'_, Tensor>, order: &Order, given: &Tensor, out: &Tensor) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let probabilities = Tensor::zeros(DType::Float64, out.sizes())?;
    cast_into(given, &probabilities)?;
    let guard = probabilities.storage().read();
    let probabilities = guard.elements::<f64>();
    if probabilities.iter().any(|it| !(0.0..=1.0).contains(it)) {
        return Err(args.invalid("Expected p_in >= 0 && p_in <= 1 to be true, but got false."));
    }
    let is_wide = given.dtype() == DType::Float64;
    draw_in(order, args, out, &mut |generator, at| {
        let it = if is_wide { generator.uniform() } else { f64::from(generator.uniform_f32()) };
        Scalar::Bool(it < probabilities[at])
    })
}
