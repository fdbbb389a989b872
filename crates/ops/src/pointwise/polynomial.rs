//! Orthogonal polynomials, each of its degree.

use crate::core::elementwise::promoting_to_float;
use crate::{OpDef, Tags, Tol};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    polynomial("aten::special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the first kind."),
    polynomial("aten::special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the first kind."),
    polynomial("aten::special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the first kind."),
    polynomial("aten::special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the second kind."),
    polynomial("aten::special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the second kind."),
    polynomial("aten::special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the second kind."),
    polynomial("aten::special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the third kind."),
    polynomial("aten::special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the third kind."),
    polynomial("aten::special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the third kind."),
    polynomial("aten::special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the fourth kind."),
    polynomial("aten::special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the fourth kind."),
    polynomial("aten::special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the fourth kind."),
    polynomial("aten::special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the first kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the first kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the first kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the second kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the second kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the second kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the third kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the third kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the third kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the fourth kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Chebyshev polynomial of the fourth kind, of `2 * x - 1`."),
    polynomial("aten::special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Chebyshev polynomial of the fourth kind, of `2 * x - 1`."),
    polynomial("aten::special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor")
        .doc("The Hermite polynomial of physicists."),
    polynomial("aten::special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Hermite polynomial of physicists."),
    polynomial("aten::special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Hermite polynomial of physicists."),
    polynomial("aten::special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor")
        .doc("The Hermite polynomial of probability."),
    polynomial("aten::special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Hermite polynomial of probability."),
    polynomial("aten::special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Hermite polynomial of probability."),
    polynomial("aten::special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor").doc("The Laguerre polynomial."),
    polynomial("aten::special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Laguerre polynomial."),
    polynomial("aten::special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Laguerre polynomial."),
    polynomial("aten::special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor").doc("The Legendre polynomial."),
    polynomial("aten::special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor")
        .doc("The Legendre polynomial."),
    polynomial("aten::special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor")
        .doc("The Legendre polynomial."),
];

const fn polynomial(schema: &'static str) -> OpDef {
    OpDef::new(schema, promoting_to_float::<2>).tags(Tags::POINTWISE).tolerance(Tol::Scaled(10.0))
}
