//! Kernels of orthogonal polynomials, by their recurrences; those of Chebyshev between -1 and 1 by trigonometry, as in
//! aten/src/ATen/native/Math.h.

use crate::numeric::map::{Source, fill2};
use std::sync::atomic::{AtomicBool, Ordering};
use tracefx_core::{DTypeKind, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// A kernel for a polynomial.
macro_rules! kernel {
    ($f:expr) => {
        Kernel::Fill(|args, outs| polynomial(args, outs, $f))
    };
}

/// The kernels of this family.
#[rustfmt::skip]
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.special_chebyshev_polynomial_t.default", kernel!(first_kind)),
    ("aten.special_chebyshev_polynomial_t.x_scalar", kernel!(first_kind)),
    ("aten.special_chebyshev_polynomial_t.n_scalar", kernel!(first_kind)),
    ("aten.special_chebyshev_polynomial_u.default", kernel!(second_kind)),
    ("aten.special_chebyshev_polynomial_u.x_scalar", kernel!(second_kind)),
    ("aten.special_chebyshev_polynomial_u.n_scalar", kernel!(second_kind)),
    ("aten.special_chebyshev_polynomial_v.default", kernel!(third_kind)),
    ("aten.special_chebyshev_polynomial_v.x_scalar", kernel!(third_kind)),
    ("aten.special_chebyshev_polynomial_v.n_scalar", kernel!(third_kind)),
    ("aten.special_chebyshev_polynomial_w.default", kernel!(fourth_kind)),
    ("aten.special_chebyshev_polynomial_w.x_scalar", kernel!(fourth_kind)),
    ("aten.special_chebyshev_polynomial_w.n_scalar", kernel!(fourth_kind)),
    ("aten.special_shifted_chebyshev_polynomial_t.default", kernel!(|x, n| first_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_t.x_scalar", kernel!(|x, n| first_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_t.n_scalar", kernel!(|x, n| first_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_u.default", kernel!(|x, n| second_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_u.x_scalar", kernel!(|x, n| second_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_u.n_scalar", kernel!(|x, n| second_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_v.default", kernel!(|x, n| third_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_v.x_scalar", kernel!(|x, n| third_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_v.n_scalar", kernel!(|x, n| third_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_w.default", kernel!(|x, n| fourth_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_w.x_scalar", kernel!(|x, n| fourth_kind(2.0 * x - 1.0, n))),
    ("aten.special_shifted_chebyshev_polynomial_w.n_scalar", kernel!(|x, n| fourth_kind(2.0 * x - 1.0, n))),
    ("aten.special_hermite_polynomial_h.default", kernel!(|x, n| hermite(x, n, 2.0))),
    ("aten.special_hermite_polynomial_h.x_scalar", kernel!(|x, n| hermite(x, n, 2.0))),
    ("aten.special_hermite_polynomial_h.n_scalar", kernel!(|x, n| hermite(x, n, 2.0))),
    ("aten.special_hermite_polynomial_he.default", kernel!(|x, n| hermite(x, n, 1.0))),
    ("aten.special_hermite_polynomial_he.x_scalar", kernel!(|x, n| hermite(x, n, 1.0))),
    ("aten.special_hermite_polynomial_he.n_scalar", kernel!(|x, n| hermite(x, n, 1.0))),
    ("aten.special_laguerre_polynomial_l.default", kernel!(laguerre)),
    ("aten.special_laguerre_polynomial_l.x_scalar", kernel!(laguerre)),
    ("aten.special_laguerre_polynomial_l.n_scalar", kernel!(laguerre)),
    ("aten.special_legendre_polynomial_p.default", kernel!(legendre)),
    ("aten.special_legendre_polynomial_p.x_scalar", kernel!(legendre)),
    ("aten.special_legendre_polynomial_p.n_scalar", kernel!(legendre)),
];

/// The highest degree that a recurrence walks up to: data must not be able to keep a program for ever.
const MAX_DEGREE: i64 = 1 << 20;

fn polynomial(args: &Args<'_, Tensor>, outs: &[Tensor], f: fn(f64, i64) -> f64) -> Result<()> {
    let dtype = outs[0].dtype();
    if dtype.kind() != DTypeKind::Float {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    let is_too_high = AtomicBool::new(false);
    let f: &(dyn Fn(f64, f64) -> f64 + Sync) = &|x, n| match n as i64 {
        ..0 => 0.0,
        n @ 0..=MAX_DEGREE => f(x, n),
        _ => {
            is_too_high.store(true, Ordering::Relaxed);
            f64::NAN
        }
    };
    fill2::<f64, f64>(&Source::of(args, 0, dtype)?, &Source::of(args, 1, dtype)?, &outs[0], f)?;
    if is_too_high.load(Ordering::Relaxed) {
        return Err(args.unsupported(format!("polynomials of a degree above {MAX_DEGREE} are not implemented")));
    }
    Ok(())
}

/// The `n`-th number of a sequence that begins with `p` and `q` and goes on with `next(k, q, p)` from `k = 1` on. What is no
/// number stays so.
fn recurrence(n: i64, p: f64, q: f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let (mut p, mut q) = (p, q);
    if n == 0 {
        return p;
    }
    for k in 1..n {
        if q.is_nan() {
            break;
        }
        (p, q) = (q, next(k as f64, q, p));
    }
    q
}

/// All kinds of Chebyshev polynomials have this recurrence.
fn chebyshev(x: f64, n: i64, first: f64) -> f64 {
    recurrence(n, 1.0, first, |_, q, p| 2.0 * x * q - p)
}

/// One or minus one, as `n` is even or odd.
fn sign(n: i64) -> f64 {
    if n % 2 == 0 { 1.0 } else { -1.0 }
}

fn first_kind(x: f64, n: i64) -> f64 {
    if x.abs() == 1.0 {
        if x > 0.0 { 1.0 } else { sign(n) }
    } else if n > 6 && x.abs() < 1.0 {
        (n as f64 * x.acos()).cos()
    } else {
        chebyshev(x, n, x)
    }
}

fn second_kind(x: f64, n: i64) -> f64 {
    let after = n as f64 + 1.0;
    if x.abs() == 1.0 {
        if x > 0.0 { after } else { sign(n) * after }
    } else if n > 8 && x.abs() < 1.0 {
        (after * x.acos()).sin() / x.acos().sin()
    } else {
        chebyshev(x, n, 2.0 * x)
    }
}

fn third_kind(x: f64, n: i64) -> f64 {
    let half = n as f64 + 0.5;
    if x.abs() == 1.0 {
        if x > 0.0 { 1.0 } else { sign(n) * 2.0 * half }
    } else if n > 8 && x.abs() < 1.0 {
        (half * x.acos()).cos() / (x.acos() / 2.0).cos()
    } else {
        chebyshev(x, n, 2.0 * x - 1.0)
    }
}

fn fourth_kind(x: f64, n: i64) -> f64 {
    let half = n as f64 + 0.5;
    if x.abs() == 1.0 {
        if x > 0.0 { 2.0 * half } else { sign(n) }
    } else if n > 8 && x.abs() < 1.0 {
        (half * x.acos()).sin() / (x.acos() / 2.0).sin()
    } else {
        chebyshev(x, n, 2.0 * x + 1.0)
    }
}

/// With factor two those of physicists, with one those of probability.
fn hermite(x: f64, n: i64, factor: f64) -> f64 {
    recurrence(n, 1.0, factor * x, |k, q, p| factor * (x * q - k * p))
}

fn laguerre(x: f64, n: i64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    recurrence(n, 1.0, 1.0 - x, |k, q, p| ((2.0 * k + 1.0 - x) * q - k * p) / (k + 1.0))
}

fn legendre(x: f64, n: i64) -> f64 {
    if x.abs() == 1.0 {
        return if x > 0.0 { 1.0 } else { sign(n) };
    }
    recurrence(n, 1.0, x, |k, q, p| ((2.0 * k + 1.0) * x * q - k * p) / (k + 1.0))
}
