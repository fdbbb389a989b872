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
#[rustfmt::skip]
pub(crate) const OPS: &[OpDef] = &[
    alias!("aten::absolute(Tensor self) -> Tensor", "aten.abs.default", "The magnitude."),
    OpDef::in_place("aten::absolute_(Tensor(a!) self) -> Tensor(a!)", "aten.abs.default").doc("In place: the magnitude."),
    alias!("aten::arccos(Tensor self) -> Tensor", "aten.acos.default", "The arc cosine."),
    OpDef::in_place("aten::arccos_(Tensor(a!) self) -> Tensor(a!)", "aten.acos.default").doc("In place: the arc cosine."),
    alias!("aten::arccosh(Tensor self) -> Tensor", "aten.acosh.default", "The inverse of the hyperbolic cosine."),
    OpDef::in_place("aten::arccosh_(Tensor(a!) self) -> Tensor(a!)", "aten.acosh.default").doc("In place: the inverse of the hyperbolic cosine."),
    alias!("aten::arcsin(Tensor self) -> Tensor", "aten.asin.default", "The arc sine."),
    OpDef::in_place("aten::arcsin_(Tensor(a!) self) -> Tensor(a!)", "aten.asin.default").doc("In place: the arc sine."),
    alias!("aten::arcsinh(Tensor self) -> Tensor", "aten.asinh.default", "The inverse of the hyperbolic sine."),
    OpDef::in_place("aten::arcsinh_(Tensor(a!) self) -> Tensor(a!)", "aten.asinh.default").doc("In place: the inverse of the hyperbolic sine."),
    alias!("aten::arctan(Tensor self) -> Tensor", "aten.atan.default", "The arc tangent."),
    OpDef::in_place("aten::arctan_(Tensor(a!) self) -> Tensor(a!)", "aten.atan.default").doc("In place: the arc tangent."),
    alias!("aten::arctanh(Tensor self) -> Tensor", "aten.atanh.default", "The inverse of the hyperbolic tangent."),
    OpDef::in_place("aten::arctanh_(Tensor(a!) self) -> Tensor(a!)", "aten.atanh.default").doc("In place: the inverse of the hyperbolic tangent."),
    alias!("aten::arctan2(Tensor self, Tensor other) -> Tensor", "aten.atan2.default", "The angle of a point of the plane."),
    OpDef::in_place("aten::arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.atan2.default").doc("In place: the angle of a point of the plane."),
    alias!("aten::fix(Tensor self) -> Tensor", "aten.trunc.default", "What stands before the decimal point."),
    OpDef::in_place("aten::fix_(Tensor(a!) self) -> Tensor(a!)", "aten.trunc.default").doc("In place: what stands before the decimal point."),
    alias!("aten::negative(Tensor self) -> Tensor", "aten.neg.default", "The negative."),
    OpDef::in_place("aten::negative_(Tensor(a!) self) -> Tensor(a!)", "aten.neg.default").doc("In place: the negative."),
    OpDef::in_place("aten::greater_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.gt.Scalar").doc("In place: whether an element is greater."),
    OpDef::in_place("aten::greater_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.gt.Tensor").doc("In place: whether an element is greater."),
    OpDef::in_place("aten::greater_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.ge.Scalar").doc("In place: whether an element is greater or equal."),
    OpDef::in_place("aten::greater_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.ge.Tensor").doc("In place: whether an element is greater or equal."),
    OpDef::in_place("aten::less_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.lt.Scalar").doc("In place: whether an element is less."),
    OpDef::in_place("aten::less_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.lt.Tensor").doc("In place: whether an element is less."),
    OpDef::in_place("aten::less_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.le.Scalar").doc("In place: whether an element is less or equal."),
    OpDef::in_place("aten::less_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.le.Tensor").doc("In place: whether an element is less or equal."),
    OpDef::in_place("aten::not_equal_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", "aten.ne.Scalar").doc("In place: whether an element differs."),
    OpDef::in_place("aten::not_equal_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.ne.Tensor").doc("In place: whether an element differs."),
    OpDef::in_place("aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten.floor_divide.default").doc("In place: the quotient rounded down."),
    OpDef::in_place("aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", "aten.pow.Tensor_Tensor").doc("In place: the power."),
    OpDef::in_place("aten::float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", "aten.float_power.Tensor_Tensor").doc("In place: the power, in float64."),
    OpDef::in_place("aten::addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)", "aten.addr.default").doc("In place: a matrix plus an outer product."),
    alias!("aten::special_digamma(Tensor self) -> Tensor", "aten.digamma.default", "The logarithmic derivative of the gamma function."),
    alias!("aten::special_psi(Tensor self) -> Tensor", "aten.digamma.default", "The logarithmic derivative of the gamma function."),
    alias!("aten::special_erf(Tensor self) -> Tensor", "aten.erf.default", "The error function."),
    alias!("aten::special_erfc(Tensor self) -> Tensor", "aten.erfc.default", "One minus the error function."),
    alias!("aten::special_erfinv(Tensor self) -> Tensor", "aten.erfinv.default", "The inverse of the error function."),
    alias!("aten::special_exp2(Tensor self) -> Tensor", "aten.exp2.default", "Two to the power of each element."),
    alias!("aten::special_expit(Tensor self) -> Tensor", "aten.sigmoid.default", "`1 / (1 + exp(-x))`."),
    alias!("aten::special_expm1(Tensor self) -> Tensor", "aten.expm1.default", "`exp(x) - 1`, exact near zero."),
    alias!("aten::special_gammaln(Tensor self) -> Tensor", "aten.lgamma.default", "The logarithm of the magnitude of the gamma function."),
    alias!("aten::special_log1p(Tensor self) -> Tensor", "aten.log1p.default", "`log(1 + x)`, exact near zero."),
    alias!("aten::special_logit(Tensor self, float? eps=None) -> Tensor", "aten.logit.default", "The inverse of the sigmoid."),
    alias!("aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", "aten.logsumexp.default", "The logarithm of the sum of exponentials."),
    alias!("aten::special_round(Tensor self, *, int decimals=0) -> Tensor", "aten.round.decimals", "The nearest number with so many decimals; half to even."),
    alias!("aten::special_sinc(Tensor self) -> Tensor", "aten.sinc.default", "`sin(pi x) / (pi x)`."),
    alias!("aten::special_xlogy(Tensor self, Tensor other) -> Tensor", "aten.xlogy.Tensor", "`x * log(y)`, zero where `x` is."),
    alias!("aten::special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", "aten.xlogy.Scalar_Self", "`x * log(y)`, zero where `x` is."),
    alias!("aten::special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor", "aten.xlogy.Scalar_Other", "`x * log(y)`, zero where `x` is."),
    alias!("aten::special_polygamma(int n, Tensor self) -> Tensor", "aten.polygamma.default", "A derivative of the digamma function."),
    alias!("aten::special_multigammaln(Tensor self, int p) -> Tensor", "aten.mvlgamma.default", "The logarithm of the multivariate gamma function."),
    alias!("aten::special_i0(Tensor self) -> Tensor", "aten.i0.default", "The modified Bessel function of the first kind, of order zero."),
    alias!("aten::special_gammainc(Tensor self, Tensor other) -> Tensor", "aten.igamma.default", "The lower incomplete gamma function, regularised."),
    alias!("aten::special_gammaincc(Tensor self, Tensor other) -> Tensor", "aten.igammac.default", "The upper incomplete gamma function, regularised."),
    OpDef::in_place("aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)", "aten.conj_physical.default").doc("In place: the complex conjugate."),
    OpDef::in_place("aten::index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)", "aten.index_reduce.default").doc("In place: elements of `source` combined with those that an index names."),
];
