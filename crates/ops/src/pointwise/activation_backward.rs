//! The gradients of activations.

use crate::core::decompositions::Call;
use crate::core::elementwise::{check_numbers, elementwise, laid_out, operands, to_float};
use crate::pointwise::{activation_backward_decompose, activation_gradient};
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, broadcast, check_cast, normalize_dim, promote};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    pair("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", of_float_or_complex)
        .decompose(activation_backward_decompose::sigmoid)
        .doc("The gradient of `sigmoid`, from its result."),
    pair("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", of_float_or_complex)
        .decompose(activation_backward_decompose::tanh)
        .doc("The gradient of `tanh`, from its result."),
    pair("aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", threshold)
        .tolerance(Tol::Exact)
        .decompose(activation_backward_decompose::threshold)
        .doc("The gradient of `threshold`, and of `relu` with a threshold of 0."),
    pair(
        "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        of_float,
    )
    .tolerance(Tol::Exact)
    .decompose(activation_backward_decompose::hardtanh)
    .doc("The gradient of `hardtanh`."),
    pair(
        "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, \
         Tensor self_or_result) -> Tensor",
        elu,
    )
    .decompose(activation_backward_decompose::elu)
    .vjp(activation_gradient::elu_backward)
    .doc("The gradient of `elu`, from its input or its result."),
    pair("aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor", gelu)
        .decompose(activation_backward_decompose::gelu)
        .doc("The gradient of `gelu`."),
    pair("aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor", of_float)
        .decompose(activation_backward_decompose::silu)
        .doc("The gradient of `silu`."),
    pair("aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor", mish)
        .decompose(activation_backward_decompose::mish)
        .doc("The gradient of `mish`."),
    pair("aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", of_float)
        .decompose(activation_backward_decompose::softplus)
        .vjp(activation_gradient::softplus_backward)
        .doc("The gradient of `softplus`."),
    pair("aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", of_float)
        .vjp(activation_gradient::softshrink_backward)
        .tolerance(Tol::Exact)
        .tags(Tags::ROUNDS_NUMBERS)
        .doc("The gradient of `softshrink`."),
    pair("aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", of_float)
        .vjp(activation_gradient::hardshrink_backward)
        .tolerance(Tol::Exact)
        .tags(Tags::ROUNDS_NUMBERS)
        .doc("The gradient of `hardshrink`."),
    pair("aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", of_float)
        .decompose(activation_backward_decompose::hardsigmoid)
        .doc("The gradient of `hardsigmoid`."),
    pair("aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", of_float)
        .decompose(activation_backward_decompose::hardswish)
        .vjp(activation_gradient::hardswish_backward)
        .doc("The gradient of `hardswish`."),
    pair(
        "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) \
         -> Tensor",
        leaky_relu,
    )
    .decompose(activation_backward_decompose::leaky_relu)
    .doc("The gradient of `leaky_relu`, from its input or its result."),
    pair("aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", of_float)
        .decompose(activation_backward_decompose::logit)
        .tags(Tags::ROUNDS_NUMBERS)
        .doc("The gradient of `logit`."),
    OpDef::new("aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", log_sigmoid)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .decompose(activation_backward_decompose::log_sigmoid)
        .doc("The gradient of `log_sigmoid`."),
    OpDef::new(
        "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
        prelu,
    )
    .tags(Tags::POINTWISE)
    .tolerance(Tol::Default)
    .decompose(activation_backward_decompose::prelu_kernel)
    .doc("The gradients of the input and of the weight of `_prelu_kernel`, each of the sizes of the result."),
    OpDef::composite(
        "aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar \
         upper, bool training, bool self_is_result) -> Tensor",
        rrelu,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The gradient of `rrelu_with_noise`."),
    OpDef::composite("aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", glu)
        .doc("The gradient of `glu`."),
];

const fn pair(schema: &'static str, rule: crate::Rule) -> OpDef {
    OpDef::new(schema, rule).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

type Meta<'a> = Args<'a, TensorMeta>;

/// The rule of a gradient that is made of the incoming one and the input or the result, in the order in which PyTorch asks
/// them how the result should lie.
fn promoted(args: &Meta<'_>, at: [usize; 2], takes: fn(DType) -> bool) -> Result<Vec<Output>> {
    let operands = operands(args, at)?;
    let dtype = promote(&operands);
    if !takes(dtype) {
        let what = format!("\"{}_cpu\" not implemented for '{}'", args.op.schema.name, dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    check_numbers(args, dtype)?;
    elementwise(args, dtype, &operands)
}

fn of_float(args: &Meta<'_>) -> Result<Vec<Output>> {
    promoted(args, [0, 1], DType::is_float)
}

/// PyTorch writes into a tensor of the input's dtype.
fn mish(args: &Meta<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(1)?.dtype;
    check_cast(promote(&operands(args, 0..2)?), this)?;
    of_float(args)
}

fn of_float_or_complex(args: &Meta<'_>) -> Result<Vec<Output>> {
    promoted(args, [0, 1], |it| it.is_float() || it.is_complex())
}

fn threshold(args: &Meta<'_>) -> Result<Vec<Output>> {
    promoted(args, [1, 0], |it| !it.is_complex() && it != DType::Bool)
}

fn elu(args: &Meta<'_>) -> Result<Vec<Output>> {
    if args.bool(4)? && args.float(1)? < 0.0 {
        return Err(args.invalid(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. This is \
             caused by calling in-place forward function with a negative slope, please call out-of-place version \
             instead.",
        ));
    }
    promoted(args, [0, 5], DType::is_float)
}

fn leaky_relu(args: &Meta<'_>) -> Result<Vec<Output>> {
    if args.bool(3)? && args.float(2)? < 0.0 {
        return Err(args.invalid(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This \
             is caused by calling in-place forward function with a negative slope, please call out-of-place version \
             instead. File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place \
             leakRelu backward calculation with negative slope",
        ));
    }
    promoted(args, [1, 0], DType::is_float)
}

fn gelu(args: &Meta<'_>) -> Result<Vec<Output>> {
    match args.str(2)? {
        "none" | "tanh" => of_float(args),
        _ => Err(args.invalid("approximate argument must be either none or tanh.")),
    }
}

/// The dtype of the tensors at these positions, which are floats of one dtype.
fn common_dtype(args: &Meta<'_>, at: &[usize]) -> Result<DType> {
    let dtype = args.tensor(at[0])?.dtype;
    for &index in at {
        let other = args.tensor(index)?.dtype;
        if other != dtype {
            let name = &args.op.schema.args[index].name;
            let what = format!("expected dtype {} for `{name}` but got dtype {}", dtype.name(), other.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what));
        }
    }
    if !dtype.is_float() {
        let what = format!("\"{}_cpu\" not implemented for '{}'", args.op.schema.name, dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(dtype)
}

fn log_sigmoid(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (dtype, grad) = (common_dtype(args, &[0, 1, 2])?, args.tensor(0)?);
    for index in [1, 2] {
        if !args.agree(&args.tensor(index)?.sizes, &grad.sizes) {
            return Err(args.bad_shape("the gradient, the input and the buffer should be of the same sizes"));
        }
    }
    Ok(vec![Output::Tensor(laid_out(dtype, grad.sizes.clone(), &[grad]))])
}

fn prelu(args: &Meta<'_>) -> Result<Vec<Output>> {
    let mut outputs = elementwise(args, common_dtype(args, &[0, 1, 2])?, &operands(args, [1, 2, 0])?)?;
    outputs.extend(outputs.clone());
    Ok(outputs)
}

fn rrelu(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let value = |index: usize| &args.values[index];
    Ok(vec![if args.bool(5)? {
        cx.aten("mul.Tensor", [value(2), value(0)])?
    } else {
        let slope = Value::Float((args.float(3)? + args.float(4)?) / 2.0);
        cx.aten("leaky_relu_backward", [value(0), value(1), &slope, value(6)])?
    }])
}

fn glu(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let meta = cx.meta(*args.tensor(1)?).clone();
    check_cast(to_float(meta.dtype), meta.dtype)?;
    let sizes = meta.sizes;
    if sizes.is_empty() {
        return Err(args.bad_shape("glu does not support 0-dimensional tensors"));
    }
    let dim = normalize_dim(args, args.int(2)?, sizes.len())?;
    let half = sizes[dim].floor_div(&2.into());
    if args.differ(&(&half * 2), &sizes[dim]) {
        return Err(
            args.bad_shape(format!("Halving dimension must be even, but dimension {dim} is size {}", sizes[dim]))
        );
    }
    let mut of_half = sizes.clone();
    of_half[dim] = half.clone();
    let grad = cx.meta(*args.tensor(0)?);
    if !args.agree(&broadcast(args, &grad.sizes, &of_half)?, &of_half) {
        return Err(args.bad_shape("the gradient does not broadcast to the sizes of the result"));
    }
    if grad.dtype != meta.dtype {
        let what = format!("Found dtype {} but expected {}", grad.dtype.cpp_name(), meta.dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let (grad, this, dim) = (args.values[0].clone(), args.values[1].clone(), Value::int(dim as i64));
    let mut part = |start: Traced| cx.aten("narrow", [&this, &dim, &start, &Value::Int(half.clone())]);
    let (first, second) = (part(Value::int(0))?, part(Value::Int(half.clone()))?);
    let gate = cx.aten("sigmoid", [&second])?;
    let of_gate = cx.aten("mul.Tensor", [&grad, &first])?;
    let of_second = cx.aten("sigmoid_backward", [&of_gate, &gate])?;
    let of_first = cx.aten("mul.Tensor", [&grad, &gate])?;
    Ok(vec![cx.aten("cat", [&Value::List(vec![of_first, of_second]), &dim])?])
}
