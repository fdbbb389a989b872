//! Activations of neural networks.

use crate::core::decompositions::Call;
use crate::core::elementwise::{check_fits, check_numbers, laid_out, promoting};
use crate::pointwise::activation_gradient;
use crate::pointwise::decompose;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("aten::relu(Tensor self) -> Tensor", relu)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(activation_gradient::relu)
        .doc("`max(x, 0)`.")
        .in_place(&["relu_"]),
    OpDef::composite("aten::relu6(Tensor self) -> Tensor", relu6)
        .tags(Tags::FRESH)
        .doc("`min(max(x, 0), 6)`.")
        .in_place(&["relu6_"]),
    OpDef::new("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh)
        .tags(Tags::POINTWISE)
        .tags(Tags::CORE)
        .vjp(activation_gradient::hardtanh)
        .doc("`x`, kept between `min_val` and `max_val`.")
        .in_place(&["hardtanh_"]),
    OpDef::new("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold)
        .decompose(decompose::threshold)
        .tags(Tags::POINTWISE)
        .vjp(activation_gradient::threshold)
        .doc("`x` above the threshold, else `value`.")
        .tags(Tags::WRITES_SHARED)
        .in_place(&["threshold_"]),
    float("aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
        .tags(Tags::CORE)
        .vjp(activation_gradient::elu)
        .doc("`x` above zero, else `alpha * (exp(x) - 1)`, with scales.")
        .in_place(&["elu_"]),
    OpDef::new("aten::celu(Tensor self, Scalar alpha=1.) -> Tensor", celu)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .decompose(decompose::celu)
        .vjp(activation_gradient::celu)
        .doc("`x` above zero, else `alpha * (exp(x / alpha) - 1)`.")
        .in_place(&["celu_"]),
    float("aten::selu(Tensor self) -> Tensor")
        .decompose(decompose::selu)
        .vjp(activation_gradient::selu)
        .doc("`elu` with the scales at which activations normalise themselves.")
        .in_place(&["selu_"]),
    OpDef::new("aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", gelu)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .tags(Tags::CORE)
        .vjp(activation_gradient::gelu)
        .doc("`x * Phi(x)`, exact, or with the tanh approximation of Phi.")
        .in_place(&["gelu_"]),
    OpDef::new("aten::silu(Tensor self) -> Tensor", silu)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .decompose(decompose::silu)
        .vjp(activation_gradient::silu)
        .doc("`x * sigmoid(x)`.")
        .in_place(&["silu_"]),
    float("aten::mish(Tensor self) -> Tensor")
        .decompose(decompose::mish)
        .vjp(activation_gradient::mish)
        .doc("`x * tanh(log(1 + exp(x)))`.")
        .in_place(&["mish_"]),
    float("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
        .decompose(decompose::softplus)
        .vjp(activation_gradient::softplus)
        .doc("`log(1 + exp(beta * x)) / beta`; `x` itself where `beta * x` is above the threshold."),
    OpDef::new("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", softshrink)
        .decompose(decompose::softshrink)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(activation_gradient::softshrink)
        .doc("`x`, moved `lambd` towards zero, 0 within `lambd` of it."),
    float("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
        .decompose(decompose::hardshrink)
        .vjp(activation_gradient::hardshrink)
        .tags(Tags::ROUNDS_NUMBERS)
        .doc("`x`, 0 within `lambd` of zero."),
    float("aten::hardsigmoid(Tensor self) -> Tensor")
        .decompose(decompose::hardsigmoid)
        .vjp(activation_gradient::hardsigmoid)
        .doc("`min(max(x + 3, 0), 6) / 6`.")
        .in_place(&["hardsigmoid_"]),
    float("aten::hardswish(Tensor self) -> Tensor")
        .decompose(decompose::hardswish)
        .vjp(activation_gradient::hardswish)
        .doc("`x * min(max(x + 3, 0), 6) / 6`.")
        .in_place(&["hardswish_"]),
    float("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
        .tags(Tags::CORE)
        .vjp(activation_gradient::leaky_relu)
        .doc("`x` above zero, else `negative_slope * x`.")
        .in_place(&["leaky_relu_"]),
    OpDef::new("aten::log_sigmoid(Tensor self) -> Tensor", log_sigmoid)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .decompose(decompose::log_sigmoid)
        .vjp(activation_gradient::log_sigmoid)
        .doc("`log(sigmoid(x))`."),
    OpDef::new("aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", log_sigmoid_forward)
        .decompose(decompose::log_sigmoid_forward)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp_of_first(1, activation_gradient::log_sigmoid_forward)
        .doc("`log(sigmoid(x))`, and `exp(-abs(x))` for its gradient."),
    OpDef::new("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", prelu_kernel)
        .decompose(decompose::prelu_kernel)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(activation_gradient::prelu_kernel)
        .doc("`x` above zero, else `weight * x`."),
    OpDef::composite("aten::prelu(Tensor self, Tensor weight) -> Tensor", prelu)
        .tags(Tags::FRESH)
        .doc("`x` above zero, else `x` times the weight of its channel."),
    OpDef::composite(
        "aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, \
         Generator? generator=None) -> Tensor",
        rrelu,
    )
    .tags(Tags::RANDOM)
    .doc("`x` above zero, else `x` times a slope, which is random in training.")
    .in_place(&["rrelu_"]),
    OpDef::new(
        "aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar \
         upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor \
         noise_out)",
        rrelu_with_noise,
    )
    .tags(Tags::RANDOM)
    .tolerance(Tol::Default)
    .vjp(activation_gradient::rrelu_with_noise)
    .doc("`rrelu` that also gives back its slopes."),
    OpDef::composite(
        "aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar \
         upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
        |cx, args| Ok(vec![rrelu_into_noise(cx, args)?]),
    )
    .tags(Tags::RANDOM)
    .doc("`rrelu` that writes its slopes to `noise`."),
    OpDef::composite(
        "aten::rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar \
         upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)",
        |cx, args| {
            let result = rrelu_into_noise(cx, args)?;
            Ok(vec![cx.aten("copy_", [&args.values[0], &result])?])
        },
    )
    .tags(Tags::RANDOM)
    .doc("In place: `rrelu` that writes its slopes to `noise`."),
    OpDef::composite("aten::glu(Tensor self, int dim=-1) -> Tensor", glu)
        .tags(Tags::FRESH)
        .doc("The first half of a dimension, times the sigmoid of the second."),
];

const fn float(schema: &'static str) -> OpDef {
    OpDef::new(schema, float_only).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

/// Activations that PyTorch has for floats alone.
fn threshold(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    check_numbers(args, dtype)?;
    check_fits(args.scalar(2)?, dtype)?;
    promoting::<1>(args)
}

fn float_only(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    if !dtype.is_float() {
        let what = format!("\"{}_cpu\" not implemented for '{}'", args.op.schema.name, dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    check_numbers(args, dtype)?;
    promoting::<1>(args)
}

/// As PyTorch's CPU, for complex numbers too.
fn silu(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if args.tensor(0)?.dtype.is_complex() { promoting::<1>(args) } else { float_only(args) }
}

fn celu(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    if args.float(1)? == 0.0 {
        return Err(args.invalid("alpha cannot be 0 for CELU"));
    }
    float_only(args)
}

/// PyTorch's CPU writes these into row-major tensors, however the input lies.
fn row_major(args: &Args<'_, TensorMeta>) -> Result<Output> {
    float_only(args)?;
    let this = args.tensor(0)?;
    Ok(Output::Tensor(TensorMeta::contiguous(this.dtype, this.sizes.clone())))
}

fn log_sigmoid(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![row_major(args)?])
}

fn log_sigmoid_forward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let output = row_major(args)?;
    Ok(vec![output.clone(), output])
}

fn relu(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    match args.tensor(0)?.dtype {
        DType::Bool => Err(Diagnostic::new(Code::DTypeMismatch, "Boolean inputs not supported for relu")),
        _ => promoting::<1>(args),
    }
}

fn hardtanh(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    if dtype == DType::Bool {
        return Err(Diagnostic::new(Code::DTypeMismatch, "Bool inputs not supported for hardtanh"));
    }
    for index in [1, 2] {
        let limit = args.scalar(index)?;
        // Since PyTorch 2.15, limits of unsigned elements may be negative.
        if dtype != DType::UInt8 || !(-1e18..0.0).contains(&limit.to_complex().re) {
            check_fits(limit, dtype)?;
        }
    }
    promoting::<1>(args)
}

fn gelu(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    match args.str(1)? {
        "none" | "tanh" => float_only(args),
        _ => Err(args.invalid("approximate argument must be either none or tanh.")),
    }
}

fn softshrink(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (lambd, dtype) = (args.float(1)?, args.tensor(0)?.dtype);
    // A NaN too is refused.
    let fits = (0.0..f64::INFINITY).contains(&lambd) && check_fits(Scalar::Float(lambd), dtype).is_ok();
    if dtype.is_float() && !fits {
        let most = match dtype {
            DType::Float16 => "65504",
            DType::BFloat16 => "3.38953e+38",
            DType::Float32 => "3.40282e+38",
            _ => "1.79769e+308",
        };
        let name = dtype.cpp_name();
        return Err(
            args.invalid(format!("lambda must be in range [0, {most}] for input dtype {name}, but found {lambd}"))
        );
    }
    float_only(args)
}

fn prelu_kernel(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (this, weight) = (args.tensor(0)?.dtype, args.tensor(1)?.dtype);
    if this != weight {
        let what = format!("prelu: Type promoting not supported. Got {} and {}", this.name(), weight.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    promoting::<2>(args)
}

fn relu6(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = &args.values[0];
    Ok(vec![cx.aten("hardtanh", [this, &Value::int(0), &Value::int(6)])?])
}

fn prelu(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, weight) = (*args.tensor(0)?, *args.tensor(1)?);
    let (rank, channels) = (cx.meta(this).sizes.len(), cx.meta(this).sizes.get(1).cloned());
    let weight_meta = cx.meta(weight).clone();
    if weight_meta.sizes.len() > 1 {
        return Err(args.bad_shape(format!(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
            weight_meta.sizes.len()
        )));
    }
    let mut weight: Traced = weight.into();
    if let Some(n) = weight_meta.sizes.first() {
        let channels = channels.unwrap_or(SymInt::ONE);
        if *n != 1 && (rank == 0 || channels != *n) {
            return Err(args.bad_shape(format!(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = {n} and channel size \
                 = {channels}."
            )));
        }
        let mut sizes = vec![Value::int(1); rank];
        if let Some(size) = sizes.get_mut(usize::from(rank > 1)) {
            *size = Value::Int(n.clone());
        }
        weight = cx.aten("view", [&weight, &Value::List(sizes)])?;
    }
    Ok(vec![cx.aten("_prelu_kernel", [&this.into(), &weight])?])
}

fn rrelu(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (lower, upper) = (args.float(1)?, args.float(2)?);
    for (name, bound) in [("lower", lower), ("upper", upper)] {
        if !bound.is_finite() {
            return Err(args.invalid(format!("rrelu: {name} bound must be finite, got {bound}")));
        }
    }
    check_slopes(args, lower, upper)?;
    if !args.bool(3)? {
        // Outside training the slope is the mean of its bounds.
        let slope = Value::Float((args.float(1)? + args.float(2)?) / 2.0);
        let this = cx.aten("contiguous", [&args.values[0]])?;
        return Ok(vec![cx.aten("leaky_relu", [&this, &slope])?]);
    }
    let noise = cx.aten("empty_like", [&args.values[0]])?;
    let call = [&args.values[0], &noise].into_iter().chain(&args.values[1..4]);
    let slopes_applied = cx.aten("rrelu_with_noise_functional", call)?;
    Ok(vec![cx.aten("contiguous", [&slopes_applied])?])
}

/// The result of `rrelu`, whose slopes are left in the argument `noise`. Outside training there are none.
fn rrelu_into_noise(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Traced> {
    let mut results = cx.aten_all("rrelu_with_noise_functional", args.values.iter().take(5), &[])?;
    if args.bool(4)?
        && let Some(noise) = results.pop()
    {
        cx.aten("copy_", [&args.values[1], &noise])?;
    }
    // PyTorch writes it into a row-major tensor.
    cx.aten("contiguous", [&results.swap_remove(0)])
}

fn rrelu_with_noise(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (this, noise) = (args.tensor(0)?, args.tensor(1)?);
    if !args.agree(&this.sizes, &noise.sizes) {
        let shape = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        return Err(args.bad_shape(format!(
            "noise tensor shape must match self tensor shape. Got self.shape = [{}] noise.shape = [{}]",
            shape(&this.sizes),
            shape(&noise.sizes)
        )));
    }
    let (lower, upper) = (args.float(2)?, args.float(3)?);
    let mut results = float_only(args)?;
    if args.bool(4)? && !this.sizes.contains(&SymInt::from(0)) {
        check_slopes(args, lower, upper)?;
    }
    if args.bool(4)? && noise.dtype == DType::Float16 {
        let what = "\"rrelu_with_noise_out_cpu\" not implemented for 'Half'";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    results.push(Output::Tensor(laid_out(noise.dtype, noise.sizes.clone(), &[noise])));
    Ok(results)
}

fn check_slopes<T>(args: &Args<'_, T>, lower: f64, upper: f64) -> Result<()> {
    // A NaN too is refused.
    if lower.partial_cmp(&upper).is_none_or(|it| it.is_gt()) {
        let what = format!("Lower bound should be less than or equal to the upper bound, but got {lower} > {upper}");
        return Err(args.invalid(what));
    }
    Ok(())
}

fn glu(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let sizes = cx.meta(this).sizes.clone();
    if sizes.is_empty() {
        return Err(args.bad_shape("glu does not support 0-dimensional tensors"));
    }
    let dim = normalize_dim(args, args.int(1)?, sizes.len())?;
    let half = sizes[dim].floor_div(&2.into());
    if args.differ(&(&half * 2), &sizes[dim]) {
        return Err(
            args.bad_shape(format!("Halving dimension must be even, but dimension {dim} is size {}", sizes[dim]))
        );
    }
    let mut part =
        |start: Traced| cx.aten("narrow", [&this.into(), &Value::int(dim as i64), &start, &Value::Int(half.clone())]);
    let (first, second) = (part(Value::int(0))?, part(Value::Int(half.clone()))?);
    let gate = cx.aten("sigmoid", [&second])?;
    Ok(vec![cx.aten("mul.Tensor", [&first, &gate])?])
}
