//! Special functions: of Bessel, of gamma and zeta, and of the normal distribution.

use crate::core::decompositions::Call;
use crate::core::elementwise::{laid_out, promoting_to_float, to_float};
use crate::pointwise::binary_gradient;
use crate::pointwise::decompose;
use crate::pointwise::special_gradient;
use crate::{Args, Cx, OpDef, Operand, Output, Tags, Tol, Traced, Value, promote};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    unary("aten::i0(Tensor self) -> Tensor")
        .vjp(special_gradient::i0)
        .doc("The modified Bessel function of the first kind, of order zero.")
        .in_place(&["i0_"]),
    unary("aten::special_i0e(Tensor self) -> Tensor").vjp(special_gradient::i0e).doc("`i0`, times `exp(-abs(x))`."),
    unary("aten::special_i1(Tensor self) -> Tensor")
        .vjp(special_gradient::i1)
        .doc("The modified Bessel function of the first kind, of order one."),
    unary("aten::special_i1e(Tensor self) -> Tensor").vjp(special_gradient::i1e).doc("`i1`, times `exp(-abs(x))`."),
    unary("aten::special_modified_bessel_i0(Tensor self) -> Tensor")
        .doc("The modified Bessel function of the first kind, of order zero."),
    unary("aten::special_modified_bessel_i1(Tensor self) -> Tensor")
        .doc("The modified Bessel function of the first kind, of order one."),
    unary("aten::special_modified_bessel_k0(Tensor self) -> Tensor")
        .doc("The modified Bessel function of the second kind, of order zero."),
    unary("aten::special_modified_bessel_k1(Tensor self) -> Tensor")
        .doc("The modified Bessel function of the second kind, of order one."),
    unary("aten::special_bessel_j0(Tensor self) -> Tensor")
        .doc("The Bessel function of the first kind, of order zero."),
    unary("aten::special_bessel_j1(Tensor self) -> Tensor").doc("The Bessel function of the first kind, of order one."),
    unary("aten::special_bessel_y0(Tensor self) -> Tensor")
        .doc("The Bessel function of the second kind, of order zero."),
    unary("aten::special_bessel_y1(Tensor self) -> Tensor")
        .doc("The Bessel function of the second kind, of order one."),
    unary("aten::special_scaled_modified_bessel_k0(Tensor x) -> Tensor")
        .doc("The modified Bessel function of the second kind, of order zero, times `exp(x)`."),
    unary("aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor")
        .doc("The modified Bessel function of the second kind, of order one, times `exp(x)`."),
    unary("aten::special_airy_ai(Tensor x) -> Tensor").doc("The Airy function."),
    unary("aten::special_ndtr(Tensor self) -> Tensor")
        .decompose(decompose::ndtr)
        .vjp(special_gradient::ndtr)
        .doc("The part of a normal distribution below each number."),
    unary("aten::special_ndtri(Tensor self) -> Tensor")
        .vjp(special_gradient::ndtri)
        .doc("The number below which this part of a normal distribution lies."),
    unary("aten::special_log_ndtr(Tensor self) -> Tensor")
        .decompose(decompose::log_ndtr)
        .vjp(special_gradient::log_ndtr)
        .doc("The logarithm of the part of a normal distribution below each number."),
    unary("aten::special_erfcx(Tensor self) -> Tensor").vjp(special_gradient::erfcx).doc("`exp(x * x) * erfc(x)`."),
    unary("aten::special_entr(Tensor self) -> Tensor")
        .decompose(decompose::entr)
        .vjp(special_gradient::entr)
        .doc("`-x * log(x)`: what each probability adds to an entropy."),
    unary("aten::special_spherical_bessel_j0(Tensor x) -> Tensor")
        .doc("The spherical Bessel function of order zero, `sin(x) / x`."),
    binary("aten::igamma(Tensor self, Tensor other) -> Tensor")
        .vjp(special_gradient::igamma)
        .doc("The lower incomplete gamma function, regularised.")
        .in_place(&["igamma_"]),
    binary("aten::igammac(Tensor self, Tensor other) -> Tensor")
        .vjp(special_gradient::igammac)
        .doc("The upper incomplete gamma function, regularised.")
        .in_place(&["igammac_"]),
    binary("aten::special_zeta(Tensor self, Tensor other) -> Tensor")
        .vjp(special_gradient::zeta)
        .doc("The Hurwitz zeta function."),
    binary("aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor")
        .vjp(special_gradient::zeta)
        .doc("The Hurwitz zeta function."),
    binary("aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor")
        .vjp(special_gradient::zeta)
        .doc("The Hurwitz zeta function."),
    binary("aten::special_xlog1py(Tensor self, Tensor other) -> Tensor")
        .decompose(decompose::xlog1py)
        .vjp(binary_gradient::xlog1py)
        .doc("`x * log1p(y)`, zero where `x` is."),
    binary("aten::special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor")
        .decompose(decompose::xlog1py)
        .vjp(binary_gradient::xlog1py)
        .doc("`x * log1p(y)`, zero where `x` is."),
    binary("aten::special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor")
        .decompose(decompose::xlog1py)
        .vjp(binary_gradient::xlog1py)
        .doc("`x * log1p(y)`, zero where `x` is."),
    OpDef::new("aten::polygamma(int n, Tensor self) -> Tensor", polygamma)
        .tags(Tags::POINTWISE)
        .tolerance(Tol::Default)
        .vjp(special_gradient::polygamma)
        .doc("The n-th derivative of the digamma function."),
    OpDef::composite("aten::mvlgamma(Tensor self, int p) -> Tensor", mvlgamma)
        .doc("The logarithm of the multivariate gamma function.")
        .in_place(&["mvlgamma_"]),
    OpDef::new("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", frexp)
        .tags(Tags::POINTWISE)
        .vjp(special_gradient::frexp)
        .doc("A mantissa from one half to one, and the power of two to multiply it with."),
    OpDef::composite("aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor", ldexp)
        .tags(Tags::NOT_DECOMPOSED)
        .doc("The product with a power of two.")
        .in_place(&["ldexp_"]),
    OpDef::composite("aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", |cx, args| {
        let it = cx.aten("polygamma", [&args.values[1], &args.values[0]])?;
        Ok(vec![cx.aten("copy_", [&args.values[0], &it])?])
    })
    .doc("In place: the n-th derivative of the digamma function."),
];

const fn unary(schema: &'static str) -> OpDef {
    OpDef::new(schema, promoting_to_float::<1>).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

const fn binary(schema: &'static str) -> OpDef {
    OpDef::new(schema, promoting_to_float::<2>).tags(Tags::POINTWISE).tolerance(Tol::Default)
}

fn polygamma(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (n, this) = (args.int(0)?, args.tensor(1)?);
    if n < 0 {
        return Err(args.invalid("polygamma(n, x) does not support negative n."));
    }
    Ok(vec![Output::Tensor(laid_out(to_float(this.dtype), this.sizes.clone(), &[this]))])
}

fn frexp(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    if !this.dtype.is_float() {
        return Err(Diagnostic::new(Code::DTypeMismatch, "torch.frexp() only supports floating-point dtypes"));
    }
    let like_self = |dtype: DType| Output::Tensor(laid_out(dtype, this.sizes.clone(), &[this]));
    Ok(vec![like_self(this.dtype), like_self(DType::Int32)])
}

fn mvlgamma(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (this, p) = (*args.tensor(0)?, args.int(1)?);
    if p < 1 {
        return Err(args.invalid("p has to be greater than or equal to 1"));
    }
    let dtype = cx.meta(this).dtype;
    if dtype.kind() == DTypeKind::Bool {
        return Err(Diagnostic::new(Code::DTypeMismatch, "The input tensor may not be a boolean tensor."));
    }
    let halves = Value::Float(0.5);
    let call = [&Value::Float((1 - p) as f64 / 2.0), &Value::Float(0.25), &halves];
    let offsets = cx.aten_with("arange.start_step", call, &[("dtype", Value::DType(to_float(dtype)))])?;
    let column = cx.aten("unsqueeze", [&this.into(), &Value::int(-1)])?;
    let all = cx.aten("add.Tensor", [&column, &offsets])?;
    let logs = cx.aten("lgamma", [&all])?;
    let sum = cx.aten("sum.dim_IntList", [&logs, &Value::ints(&[-1])])?;
    let constant = (p * (p - 1)) as f64 * std::f64::consts::PI.ln() * 0.25;
    Ok(vec![cx.aten("add.Scalar", [&sum, &Value::Float(constant)])?])
}

fn ldexp(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let mut exponent = args.values[1].clone();
    if let (Some(this), Some(other)) = (args.opt_tensor(0)?, args.opt_tensor(1)?) {
        let (this, other) = (cx.meta(*this).clone(), cx.meta(*other).clone());
        let dtype = to_float(promote(&[Operand::Tensor(&this), Operand::Tensor(&other)]));
        if dtype.is_float() && dtype != other.dtype && !other.sizes.is_empty() {
            exponent = cx.aten_with("_to_copy", [&exponent], &[("dtype", Value::DType(dtype))])?;
        }
    }
    let power = cx.aten("pow.Scalar", [&Value::Float(2.0), &exponent])?;
    Ok(vec![cx.aten("mul.Tensor", [&args.values[0], &power])?])
}
