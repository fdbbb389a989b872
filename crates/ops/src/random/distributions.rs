//! Random numbers: new tensors of them, tensors filled with them, and samples of given probabilities.
//!
//! They come from [`tracefx_core::with_default_generator`], so that a seed gives PyTorch's numbers. The operators that
//! write in place are rows over functional ones, which draw in the order in which the elements lie in memory.

use crate::core::decompositions::{Call, size_list, to_dtype};
use crate::core::elementwise::laid_out;
use crate::create::factories::{dtype, fresh, like};
use crate::pointwise::unary_gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Traced, Value, broadcast, contiguous, real_of};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    random(
        "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        uniform_sized,
    )
    .tags(Tags::CORE)
    .doc("Random numbers of the interval from 0 to 1, which is without 1."),
    random(
        "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        float_sized,
    )
    .tags(Tags::CORE)
    .doc("Random numbers of the normal distribution with mean 0 and deviation 1."),
    random(
        "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, \
         ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        float_sized,
    )
    .doc("Random numbers of a normal distribution."),
    random(
        "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        int_sized,
    )
    .doc("Random integers from 0 on, below `high`."),
    random(
        "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None) -> Tensor",
        int_sized,
    )
    .doc("Random integers from `low` on, below `high`."),
    random(
        "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        permutation,
    )
    .tags(Tags::CORE)
    .doc("The integers below `n` in random order."),
    random(
        "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        uniform_like,
    )
    .no_gradient()
    .doc("Random numbers between 0 and 1, in the sizes of a tensor."),
    random(
        "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        float_like,
    )
    .no_gradient()
    .doc("Normally distributed random numbers, in the sizes of a tensor."),
    random(
        "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        int_like,
    )
    .doc("Random integers below `high`, in the sizes of a tensor."),
    random(
        "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        int_like,
    )
    .doc("Random integers from `low` on, below `high`, in the sizes of a tensor."),
    random("aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor", uniform)
        .doc("Random numbers of an interval, for each element.")
        .in_place(&["uniform_"]),
    random(
        "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> \
         Tensor",
        normal,
    )
    .doc("Random numbers of a normal distribution, for each element.")
    .in_place(&["normal_"]),
    random("aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor", exponential)
        .doc("Random numbers of an exponential distribution, for each element.")
        .in_place(&["exponential_"]),
    random(
        "aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor",
        cauchy,
    )
    .doc("Random numbers of a Cauchy distribution, for each element.")
    .in_place(&["cauchy_"]),
    random(
        "aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
        log_normal,
    )
    .doc("Random numbers whose logarithms are normally distributed, for each element.")
    .in_place(&["log_normal_"]),
    random("aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor", geometric)
        .doc("How many tries of probability `p` it takes to succeed, at random, for each element.")
        .in_place(&["geometric_"]),
    random("aten::random(Tensor self, *, Generator? generator=None) -> Tensor", random_ints)
        .doc("Random integers that the dtype holds, for each element.")
        .in_place(&["random_"]),
    random("aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor", random_ints)
        .doc("Random integers from 0 on, below `to`, for each element.")
        .in_place(&["random_.to"]),
    random("aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor", random_ints)
        .doc("Random integers from `from` on, below `to`, for each element.")
        .in_place(&["random_.from"]),
    random("aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", row_major_float)
        .vjp(unary_gradient::zero)
        .doc("One with the probability that each element says, else zero."),
    random("aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", bernoulli_p)
        .vjp(unary_gradient::zero)
        .doc("One with probability `p`, else zero, for each element."),
    random("aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", bernoulli_tensor)
        .doc("One with the probability that `p` says, else zero, for each element.")
        .in_place(&["bernoulli_.Tensor"]),
    random("aten::poisson(Tensor self, Generator? generator=None) -> Tensor", row_major_float)
        .vjp(unary_gradient::zero)
        .doc("Random counts of Poisson distributions whose means are the elements."),
    random(
        "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? \
         generator=None) -> Tensor",
        multinomial,
    )
    .doc("Random positions, of which each comes with the probability that a row of weights gives it."),
    OpDef::composite(
        "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
        normal_of_means,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .tags(Tags::RANDOM)
    .doc("Normally distributed random numbers, each with a mean of its own."),
    OpDef::composite(
        "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
        normal_of_deviations,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .tags(Tags::RANDOM)
    .doc("Normally distributed random numbers, each with a deviation of its own."),
    OpDef::composite(
        "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
        normal_of_both,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .tags(Tags::RANDOM)
    .doc("Normally distributed random numbers, each with a mean and a deviation of its own."),
    OpDef::composite(
        "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
        bernoulli_in_place,
    )
    .tags(Tags::RANDOM)
    .doc("In place: one with probability `p`, else zero."),
];

const fn random(schema: &'static str, rule: crate::Rule) -> OpDef {
    OpDef::new(schema, rule).tags(Tags::RANDOM)
}

type Metas<'a> = Args<'a, TensorMeta>;

fn check_float(args: &Metas<'_>, dtype: DType, sizes: &[SymInt]) -> Result<()> {
    check_drawn(args, dtype.is_float(), dtype, sizes)
}

/// Complex numbers are two floats that are drawn one after the other.
fn check_number(args: &Metas<'_>, dtype: DType, sizes: &[SymInt]) -> Result<()> {
    check_drawn(args, dtype.is_float() || real_of(dtype).is_float(), dtype, sizes)
}

/// Where nothing is drawn, nobody asks of what dtype it would be.
fn check_drawn(args: &Metas<'_>, is_drawn: bool, dtype: DType, sizes: &[SymInt]) -> Result<()> {
    if is_drawn || sizes.contains(&SymInt::ZERO) {
        return Ok(());
    }
    let what = format!("\"{}\" not implemented for '{}'", args.op.schema.name, dtype.name());
    Err(Diagnostic::new(Code::DTypeMismatch, what))
}

fn sizes(args: &Metas<'_>) -> Result<Vec<SymInt>> {
    args.sym_ints(args.position("size").ok_or_else(|| args.invalid("there is no argument `size`"))?)
}

fn sized(args: &Metas<'_>, dtype: DType) -> Result<Vec<Output>> {
    fresh(args, TensorMeta::contiguous(dtype, sizes(args)?))
}

/// The bounds of an interval are of the dtype, whatever is drawn of it.
fn uniform_sized(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_number(args, dtype(args)?.unwrap_or(DType::Float32), &[])?;
    float_sized(args)
}

fn uniform_like(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_number(args, dtype(args)?.unwrap_or(args.tensor(0)?.dtype), &[])?;
    float_like(args)
}

fn float_sized(args: &Metas<'_>) -> Result<Vec<Output>> {
    let dtype = dtype(args)?.unwrap_or(DType::Float32);
    check_number(args, dtype, &sizes(args)?)?;
    if let Some(std) = args.position("std") {
        check_deviation(args, std)?;
    }
    sized(args, dtype)
}

fn int_sized(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_range(args)?;
    sized(args, dtype(args)?.unwrap_or(DType::Int64))
}

fn float_like(args: &Metas<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    check_number(args, dtype(args)?.unwrap_or(this.dtype), &this.sizes)?;
    like(args)
}

fn int_like(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_range(args)?;
    like(args)
}

fn permutation(args: &Metas<'_>) -> Result<Vec<Output>> {
    let n = args.sym_int(0)?.clone();
    if n.as_int().is_some_and(|it| it < 0) {
        return Err(args.invalid(format!("n must be non-negative, got {n}")));
    }
    fresh(args, TensorMeta::contiguous(dtype(args)?.unwrap_or(DType::Int64), vec![n]))
}

/// A tensor of this dtype that lies as `self` does.
fn as_self(args: &Metas<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    Ok(vec![Output::Tensor(laid_out(this.dtype, this.sizes.clone(), &[this]))])
}

fn same_float(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_float(args, args.tensor(0)?.dtype, &args.tensor(0)?.sizes)?;
    as_self(args)
}

fn same_number(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_number(args, args.tensor(0)?.dtype, &args.tensor(0)?.sizes)?;
    as_self(args)
}

fn row_major_float(args: &Metas<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    check_float(args, this.dtype, &this.sizes)?;
    Ok(contiguous(this.dtype, this.sizes.clone()))
}

fn uniform(args: &Metas<'_>) -> Result<Vec<Output>> {
    let (from, to) = (args.float(1)?, args.float(2)?);
    // Not `from > to`: a NaN is no bound.
    if !(from <= to && (to - from).is_finite()) {
        let what = format!("uniform_ expects to return a [from, to) range, but found from={from} > to={to}");
        return Err(args.invalid(what));
    }
    check_number(args, args.tensor(0)?.dtype, &[])?;
    as_self(args)
}

fn check_deviation(args: &Metas<'_>, index: usize) -> Result<()> {
    match args.float(index)? {
        std if std >= 0.0 => Ok(()),
        std => Err(args.invalid(format!("normal expects std >= 0.0, but found std {std}"))),
    }
}

fn normal(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_deviation(args, 2)?;
    same_number(args)
}

/// Refuses a parameter that is not greater than zero.
fn check_positive(args: &Metas<'_>, index: usize, name: &str) -> Result<()> {
    match args.float(index)? {
        it if it > 0.0 => Ok(()),
        it => Err(args.invalid(format!("{}_ expects {name} > 0.0, but found {name}={it}", args.op.schema.name))),
    }
}

fn exponential(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_positive(args, 1, "lambda")?;
    same_float(args)
}

fn cauchy(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_positive(args, 2, "sigma")?;
    check_float(args, args.tensor(0)?.dtype, &[])?;
    as_self(args)
}

fn log_normal(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_positive(args, 2, "std")?;
    same_float(args)
}

fn geometric(args: &Metas<'_>) -> Result<Vec<Output>> {
    let p = args.float(1)?;
    if !(p > 0.0 && p < 1.0) {
        return Err(args.invalid(format!("geometric_ expects p to be in (0, 1), but got p={p}")));
    }
    as_self(args)
}

fn random_ints(args: &Metas<'_>) -> Result<Vec<Output>> {
    check_range(args)?;
    as_self(args)
}

/// Refuses a range of integers without any.
fn check_range(args: &Metas<'_>) -> Result<()> {
    let at = |name: &str| args.position(name).map_or(Ok(None), |it| args.opt_sym_int(it));
    let from = at("from")?.or(at("low")?).cloned().unwrap_or(SymInt::ZERO);
    let Some(to) = at("to")?.or(at("high")?) else { return Ok(()) };
    match (from.as_int(), to.as_int()) {
        (Some(from), Some(to)) if from >= to => {
            let what = format!("random_ expects 'from' to be less than 'to', but got from={from} >= to={to}");
            Err(args.invalid(what))
        }
        _ => Ok(()),
    }
}

fn bernoulli_p(args: &Metas<'_>) -> Result<Vec<Output>> {
    let p = args.float(1)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(args.invalid(format!("bernoulli_ expects p to be in [0, 1], but got p={p}")));
    }
    let this = args.tensor(0)?;
    Ok(contiguous(this.dtype, this.sizes.clone()))
}

/// Unlike `bernoulli.p`, this draws in the order of memory.
fn bernoulli_in_place(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let p = cx.aten_with("scalar_tensor", [&args.values[1]], &[("dtype", Value::DType(DType::Float64))])?;
    Ok(vec![cx.aten("bernoulli_.Tensor", [&args.values[0], &p])?])
}

fn bernoulli_tensor(args: &Metas<'_>) -> Result<Vec<Output>> {
    let (this, p) = (args.tensor(0)?, args.tensor(1)?);
    check_float(args, p.dtype, &this.sizes)?;
    if this.sizes.contains(&SymInt::ZERO) {
        return as_self(args);
    }
    if !args.agree(&broadcast(args, &this.sizes, &p.sizes)?, &this.sizes) {
        return Err(args.bad_shape("the probabilities do not broadcast to the sizes of the tensor"));
    }
    as_self(args)
}

fn multinomial(args: &Metas<'_>) -> Result<Vec<Output>> {
    let (this, n) = (args.tensor(0)?, args.sym_int(1)?.clone());
    if !this.dtype.is_float() {
        let what = format!("multinomial only supports floating-point dtypes for input, got: {}", this.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let Some((n_categories, rows @ ([] | [_]))) = this.sizes.split_last() else {
        return Err(args.bad_shape("prob_dist must be 1 or 2 dim"));
    };
    if n.as_int().is_some_and(|it| it <= 0) {
        return Err(args.invalid("cannot sample n_sample <= 0 samples"));
    }
    if !args.bool(2)? && args.less(n_categories, &n) {
        return Err(args.invalid("cannot sample n_sample > prob_dist.size(-1) samples without replacement"));
    }
    Ok(contiguous(DType::Int64, rows.iter().cloned().chain([n]).collect()))
}

/// New numbers with mean 0 and deviation `std`, one for each element of these sizes.
fn draw_normal(cx: &mut Cx<'_>, dtype: DType, sizes: &[SymInt], std: f64) -> Result<Traced> {
    let empty = cx.aten_with("empty.memory_format", [&size_list(sizes)], &[("dtype", Value::DType(dtype))])?;
    cx.aten("normal_functional", [&empty, &Value::Float(0.0), &Value::Float(std)])
}

fn normal_of_means(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mean = *args.tensor(0)?;
    let (dtype, sizes) = (cx.meta(mean).dtype, cx.meta(mean).sizes.clone());
    let drawn = draw_normal(cx, dtype, &sizes, args.float(1)?)?;
    Ok(vec![cx.aten("add.Tensor", [&drawn, &mean.into()])?])
}

fn normal_of_deviations(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let std = *args.tensor(1)?;
    let (dtype, sizes) = (cx.meta(std).dtype, cx.meta(std).sizes.clone());
    check_real(dtype)?;
    let drawn = draw_normal(cx, dtype, &sizes, 1.0)?;
    let scaled = cx.aten("mul.Tensor", [&drawn, &std.into()])?;
    let res = cx.aten("add.Scalar", [&scaled, &args.values[0]])?;
    Ok(vec![to_dtype(cx, res, dtype)?])
}

/// Refuses complex deviations.
fn check_real(dtype: DType) -> Result<()> {
    if dtype.is_complex() {
        let what = "normal expects standard deviation to be non-complex";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(())
}

fn normal_of_both(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (mean, std) = (*args.tensor(0)?, *args.tensor(1)?);
    let dtype = cx.meta(mean).dtype;
    check_real(cx.meta(std).dtype)?;
    let sizes = broadcast(args, &cx.meta(mean).sizes, &cx.meta(std).sizes)?;
    let drawn = draw_normal(cx, dtype, &sizes, 1.0)?;
    let scaled = cx.aten("mul.Tensor", [&drawn, &std.into()])?;
    let scaled = to_dtype(cx, scaled, dtype)?;
    Ok(vec![cx.aten("add.Tensor", [&scaled, &mean.into()])?])
}
