//! Kernels of windows, which are computed in float64.

use crate::numeric::map::store;
use crate::pointwise::bessel::i0;
use std::f64::consts::PI;
use tracefx_core::allocate::collected;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

const HANN: Kernel = Kernel::Fill(|args, outs| fill(args, outs, &|x| 0.5 - 0.5 * (PI * x).cos()));
const BLACKMAN: Kernel =
    Kernel::Fill(|args, outs| fill(args, outs, &|x| 0.42 - 0.5 * (PI * x).cos() + 0.08 * (2.0 * PI * x).cos()));
const BARTLETT: Kernel = Kernel::Fill(|args, outs| fill(args, outs, &|x| 1.0 - (x - 1.0).abs()));
const HAMMING: Kernel = Kernel::Fill(|args, outs| {
    let (alpha, beta) = (option(args, "alpha", 0.54)?, option(args, "beta", 0.46)?);
    fill(args, outs, &|x| alpha - beta * (PI * x).cos())
});
const KAISER: Kernel = Kernel::Fill(|args, outs| {
    let beta = option(args, "beta", 12.0)?;
    fill(args, outs, &|x| i0(beta * (1.0 - (x - 1.0) * (x - 1.0)).max(0.0).sqrt()) / i0(beta))
});

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.hann_window.default", HANN),
    ("aten.hann_window.periodic", HANN),
    ("aten.hamming_window.default", HAMMING),
    ("aten.hamming_window.periodic", HAMMING),
    ("aten.hamming_window.periodic_alpha", HAMMING),
    ("aten.hamming_window.periodic_alpha_beta", HAMMING),
    ("aten.blackman_window.default", BLACKMAN),
    ("aten.blackman_window.periodic", BLACKMAN),
    ("aten.bartlett_window.default", BARTLETT),
    ("aten.bartlett_window.periodic", BARTLETT),
    ("aten.kaiser_window.default", KAISER),
    ("aten.kaiser_window.periodic", KAISER),
    ("aten.kaiser_window.beta", KAISER),
];

fn option(args: &Args<'_, Tensor>, name: &str, default: f64) -> Result<f64> {
    args.position(name).map_or(Ok(default), |it| args.float(it))
}

/// A function of the place in the window, which goes from zero at its start to two at its end.
fn fill(args: &Args<'_, Tensor>, outs: &[Tensor], f: &dyn Fn(f64) -> f64) -> Result<()> {
    let n = outs[0].numel();
    let is_periodic = args.position("periodic").map_or(Ok(true), |it| args.bool(it))?;
    let last = if is_periodic { n } else { n.saturating_sub(1) };
    // A window of one number is that number.
    let at = |i: usize| if n == 1 { 1.0 } else { f(2.0 * i as f64 / last as f64) };
    store(&collected((0..n).map(at))?, &outs[0])
}
