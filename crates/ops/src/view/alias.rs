//! Other names of operators: those of NumPy, those of the namespace `special`, and forms in place.

use crate::OpDef;
use crate::core::decompose::forward;

/// A row of this family: another name of this operator.
macro_rules! alias {
    ($schema:literal, $op:literal, $doc:literal) => {
        OpDef::composite($schema, |cx, args| forward(cx, args, $op)).doc($doc)
    };
}

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    alias!("aten::absolute(Tensor self) -> Tensor", "aten.abs.default", "The magnitude."),
    alias!("aten::arccos(Tensor self) -> Tensor", "aten.acos.default", "The arc cosine."),
    alias!("aten::arccosh(Tensor self) -> Tensor", "aten.acosh.default", "The inverse of the hyperbolic cosine."),
    alias!("aten::arcsin(Tensor self) -> Tensor", "aten.asin.default", "The arc sine."),
    alias!("aten::arcsinh(Tensor self) -> Tensor", "aten.asinh.default", "The inverse of the hyperbolic sine."),
    alias!("aten::arctan(Tensor self) -> Tensor", "aten.atan.default", "The arc tangent."),
    alias!("aten::arctanh(Tensor self) -> Tensor", "aten.atanh.default", "The inverse of the hyperbolic tangent."),
    alias!(
        "aten::arctan2(Tensor self, Tensor other) -> Tensor",
        "aten.atan2.default",
        "The angle of a point of the plane."
    ),
    alias!("aten::fix(Tensor self) -> Tensor", "aten.trunc.default", "What stands before the decimal point."),
    alias!("aten::negative(Tensor self) -> Tensor", "aten.neg.default", "The negative."),
    alias!(
        "aten::special_digamma(Tensor self) -> Tensor",
        "aten.digamma.default",
        "The logarithmic derivative of the gamma function."
    ),
    alias!(
        "aten::special_psi(Tensor self) -> Tensor",
        "aten.digamma.default",
        "The logarithmic derivative of the gamma function."
    ),
    alias!("aten::special_erf(Tensor self) -> Tensor", "aten.erf.default", "The error function."),
    alias!("aten::special_erfc(Tensor self) -> Tensor", "aten.erfc.default", "One minus the error function."),
    alias!("aten::special_erfinv(Tensor self) -> Tensor", "aten.erfinv.default", "The inverse of the error function."),
    alias!("aten::special_exp2(Tensor self) -> Tensor", "aten.exp2.default", "Two to the power of each element."),
    alias!("aten::special_expit(Tensor self) -> Tensor", "aten.sigmoid.default", "`1 / (1 + exp(-x))`."),
    alias!("aten::special_expm1(Tensor self) -> Tensor", "aten.expm1.default", "`exp(x) - 1`, exact near zero."),
    alias!(
        "aten::special_gammaln(Tensor self) -> Tensor",
        "aten.lgamma.default",
        "The logarithm of the magnitude of the gamma function."
    ),
    alias!("aten::special_log1p(Tensor self) -> Tensor", "aten.log1p.default", "`log(1 + x)`, exact near zero."),
    alias!(
        "aten::special_logit(Tensor self, float? eps=None) -> Tensor",
        "aten.logit.default",
        "The inverse of the sigmoid."
    ),
    alias!(
        "aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        "aten.logsumexp.default",
        "The logarithm of the sum of exponentials."
    ),
    alias!(
        "aten::special_round(Tensor self, *, int decimals=0) -> Tensor",
        "aten.round.decimals",
        "The nearest number with so many decimals; half to even."
    ),
    alias!("aten::special_sinc(Tensor self) -> Tensor", "aten.sinc.default", "`sin(pi x) / (pi x)`."),
    alias!(
        "aten::special_xlogy(Tensor self, Tensor other) -> Tensor",
        "aten.xlogy.Tensor",
        "`x * log(y)`, zero where `x` is."
    ),
    alias!(
        "aten::special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
        "aten.xlogy.Scalar_Self",
        "`x * log(y)`, zero where `x` is."
    ),
    alias!(
        "aten::special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",
        "aten.xlogy.Scalar_Other",
        "`x * log(y)`, zero where `x` is."
    ),
    alias!(
        "aten::special_polygamma(int n, Tensor self) -> Tensor",
        "aten.polygamma.default",
        "A derivative of the digamma function."
    ),
    alias!(
        "aten::special_multigammaln(Tensor self, int p) -> Tensor",
        "aten.mvlgamma.default",
        "The logarithm of the multivariate gamma function."
    ),
    alias!(
        "aten::special_i0(Tensor self) -> Tensor",
        "aten.i0.default",
        "The modified Bessel function of the first kind, of order zero."
    ),
    alias!(
        "aten::special_gammainc(Tensor self, Tensor other) -> Tensor",
        "aten.igamma.default",
        "The lower incomplete gamma function, regularised."
    ),
    alias!(
        "aten::special_gammaincc(Tensor self, Tensor other) -> Tensor",
        "aten.igammac.default",
        "The upper incomplete gamma function, regularised."
    ),
];
