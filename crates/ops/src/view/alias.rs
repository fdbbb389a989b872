//! Other names of operators: those of NumPy, those of the namespace `special`, and forms in place.

use crate::OpDef;
use crate::core::decompositions::forward;

/// A row of this family: another name of this operator.
macro_rules! alias {
    ($schema:literal, $op:literal, $doc:literal) => {
        OpDef::composite($schema, |cx, args| forward(cx, args, $op)).doc($doc)
    };
}

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    alias!("aten::absolute(Tensor self) -> Tensor", "abs", "The magnitude."),
    alias!("aten::arccos(Tensor self) -> Tensor", "acos", "The arc cosine."),
    alias!("aten::arccosh(Tensor self) -> Tensor", "acosh", "The inverse of the hyperbolic cosine."),
    alias!("aten::arcsin(Tensor self) -> Tensor", "asin", "The arc sine."),
    alias!("aten::arcsinh(Tensor self) -> Tensor", "asinh", "The inverse of the hyperbolic sine."),
    alias!("aten::arctan(Tensor self) -> Tensor", "atan", "The arc tangent."),
    alias!("aten::arctanh(Tensor self) -> Tensor", "atanh", "The inverse of the hyperbolic tangent."),
    alias!("aten::arctan2(Tensor self, Tensor other) -> Tensor", "atan2", "The angle of a point of the plane."),
    alias!("aten::fix(Tensor self) -> Tensor", "trunc", "What stands before the decimal point."),
    alias!("aten::negative(Tensor self) -> Tensor", "neg", "The negative."),
    alias!(
        "aten::special_digamma(Tensor self) -> Tensor",
        "digamma",
        "The logarithmic derivative of the gamma function."
    ),
    alias!("aten::special_psi(Tensor self) -> Tensor", "digamma", "The logarithmic derivative of the gamma function."),
    alias!("aten::special_erf(Tensor self) -> Tensor", "erf", "The error function."),
    alias!("aten::special_erfc(Tensor self) -> Tensor", "erfc", "One minus the error function."),
    alias!("aten::special_erfinv(Tensor self) -> Tensor", "erfinv", "The inverse of the error function."),
    alias!("aten::special_exp2(Tensor self) -> Tensor", "exp2", "Two to the power of each element."),
    alias!("aten::special_expit(Tensor self) -> Tensor", "sigmoid", "`1 / (1 + exp(-x))`."),
    alias!("aten::special_expm1(Tensor self) -> Tensor", "expm1", "`exp(x) - 1`, exact near zero."),
    alias!(
        "aten::special_gammaln(Tensor self) -> Tensor",
        "lgamma",
        "The logarithm of the magnitude of the gamma function."
    ),
    alias!("aten::special_log1p(Tensor self) -> Tensor", "log1p", "`log(1 + x)`, exact near zero."),
    alias!("aten::special_logit(Tensor self, float? eps=None) -> Tensor", "logit", "The inverse of the sigmoid."),
    alias!(
        "aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
        "logsumexp",
        "The logarithm of the sum of exponentials."
    ),
    alias!(
        "aten::special_round(Tensor self, *, int decimals=0) -> Tensor",
        "round.decimals",
        "The nearest number with so many decimals; half to even."
    ),
    alias!("aten::special_sinc(Tensor self) -> Tensor", "sinc", "`sin(pi x) / (pi x)`."),
    alias!(
        "aten::special_xlogy(Tensor self, Tensor other) -> Tensor",
        "xlogy.Tensor",
        "`x * log(y)`, zero where `x` is."
    ),
    alias!(
        "aten::special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
        "xlogy.Scalar_Self",
        "`x * log(y)`, zero where `x` is."
    ),
    alias!(
        "aten::special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",
        "xlogy.Scalar_Other",
        "`x * log(y)`, zero where `x` is."
    ),
    alias!(
        "aten::special_polygamma(int n, Tensor self) -> Tensor",
        "polygamma",
        "A derivative of the digamma function."
    ),
    alias!(
        "aten::special_multigammaln(Tensor self, int p) -> Tensor",
        "mvlgamma",
        "The logarithm of the multivariate gamma function."
    ),
    alias!(
        "aten::special_i0(Tensor self) -> Tensor",
        "i0",
        "The modified Bessel function of the first kind, of order zero."
    ),
    alias!(
        "aten::special_gammainc(Tensor self, Tensor other) -> Tensor",
        "igamma",
        "The lower incomplete gamma function, regularised."
    ),
    alias!(
        "aten::special_gammaincc(Tensor self, Tensor other) -> Tensor",
        "igammac",
        "The upper incomplete gamma function, regularised."
    ),
];
