//! Normally distributed random numbers.
//!
//! A tensor of 16 and more elements that lies row by row is filled with uniform numbers first, which the method of Box
//! and Muller then turns into normal ones, eight pairs at a time. All others are drawn one by one. Both ways give other
//! numbers, so that both are followed as ATen/native/cpu/DistributionTemplates.h goes them.
//!
//! In float32 PyTorch computes logarithm, sine and cosine of the pairs with the polynomials of the Cephes library on
//! x86 processors with AVX2 (ATen/native/cpu/avx_mathfun.h), each step of a polynomial rounded once. The same is done here
//! everywhere, so that the results are equal to the last bit on all machines.

#![allow(clippy::excessive_precision, reason = "the coefficients stand here as in their source")]

use crate::map::store;
use crate::random::{Order, draw};
use tracefx_core::{DType, Generator, Result, Scalar, Tensor, with_default_generator};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

const STANDARD: Kernel = Kernel::Fill(|args, outs| normal(args, &outs[0], 0.0, 1.0));

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.randn.default", STANDARD),
    ("aten.randn_like.default", STANDARD),
    (
        "aten.normal_functional.default",
        Kernel::Fill(|args, outs| normal(args, &outs[0], args.float(1)?, args.float(2)?)),
    ),
    ("aten.normal.float_float", Kernel::Fill(|args, outs| normal(args, &outs[0], args.float(0)?, args.float(1)?))),
];

/// How many numbers are turned at a time.
const GROUP: usize = 16;

fn normal(args: &Args<'_, Tensor>, out: &Tensor, mean: f64, std: f64) -> Result<()> {
    if out.numel() < GROUP || !Order::of(args, out)?.is_contiguous {
        return draw(args, out, &mut |generator| Scalar::Float(generator.normal() * std + mean));
    }
    if out.dtype() == DType::Float64 {
        let turn = |it: &mut [f64; GROUP]| pairs(it, mean, std);
        return store(&groups(out.numel(), out.numel(), Generator::uniform, turn), out);
    }
    let (mean, std) = (mean as f32, std as f32);
    let turn = |it: &mut [f32; GROUP]| pairs_f32(it, mean, std);
    // Half types are turned in a buffer, and what does not fill it is not drawn in vain.
    let n_drawn = if out.dtype() == DType::Float32 { out.numel() } else { out.numel() / GROUP * GROUP };
    store(&groups(out.numel(), n_drawn, Generator::uniform_f32, turn), out)
}

/// `n` numbers, of which the first `n_drawn` are drawn by `next` and turned in groups. A last group that is not whole is
/// drawn anew with what comes before it.
fn groups<F: Copy + Default>(
    n: usize,
    n_drawn: usize,
    next: fn(&mut Generator) -> F,
    turn: impl Fn(&mut [F; GROUP]),
) -> Vec<F> {
    let mut res = vec![F::default(); n];
    with_default_generator(|generator| {
        res[..n_drawn].iter_mut().for_each(|it| *it = next(generator));
        res.as_chunks_mut::<GROUP>().0.iter_mut().for_each(&turn);
        if !n.is_multiple_of(GROUP)
            && let Some(last) = res.last_chunk_mut::<GROUP>()
        {
            last.iter_mut().for_each(|it| *it = next(generator));
            turn(last);
        }
    });
    res
}

/// Box and Muller in float64. What is taken from one keeps the logarithm away from zero.
fn pairs(data: &mut [f64; GROUP], mean: f64, std: f64) {
    for i in 0..GROUP / 2 {
        let radius = (-2.0 * (1.0 - data[i]).ln()).sqrt();
        let (sin, cos) = (2.0 * std::f64::consts::PI * data[i + GROUP / 2]).sin_cos();
        data[i] = (radius * cos).mul_add(std, mean);
        data[i + GROUP / 2] = (radius * sin).mul_add(std, mean);
    }
}

/// Box and Muller in float32.
fn pairs_f32(data: &mut [f32; GROUP], mean: f32, std: f32) {
    for i in 0..GROUP / 2 {
        let radius = (-2.0 * ln(1.0 - data[i])).sqrt();
        let (sin, cos) = sin_cos(2.0 * std::f32::consts::PI * data[i + GROUP / 2]);
        data[i] = fma(radius * cos, std, mean);
        data[i + GROUP / 2] = fma(radius * sin, std, mean);
    }
}

/// `a * b + c`, rounded once: float64 holds the product exactly, and the sum with it nearly always.
fn fma(a: f32, b: f32, c: f32) -> f32 {
    (f64::from(a) * f64::from(b) + f64::from(c)) as f32
}

/// The polynomial with these coefficients, the highest power first.
fn polynomial(x: f32, coefficients: &[f32]) -> f32 {
    coefficients.iter().skip(1).fold(coefficients[0], |sum, &it| fma(sum, x, it))
}

/// The logarithm of a number above zero. Cephes: the fraction lies between the root of 1/2 and the root of 2.
fn ln(x: f32) -> f32 {
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    let mut exponent = (bits >> 23) as f32 - 126.0;
    let mut x = f32::from_bits(bits & 0x807f_ffff | 0.5f32.to_bits());
    if x < std::f32::consts::FRAC_1_SQRT_2 {
        exponent -= 1.0;
        x = x - 1.0 + x;
    } else {
        x -= 1.0;
    }
    let square = x * x;
    let y = polynomial(
        x,
        &[
            7.0376836292e-2,
            -1.1514610310e-1,
            1.1676998740e-1,
            -1.2420140846e-1,
            1.4249322787e-1,
            -1.6668057665e-1,
            2.0000714765e-1,
            -2.4999993993e-1,
            3.3333331174e-1,
        ],
    ) * x;
    let y = fma(y, square, exponent * -2.12194440e-4);
    fma(exponent, 0.693359375, x + (y - square * 0.5))
}

/// Sine and cosine of a number that is not negative. Cephes: what is left of the nearest even multiple of pi/4 is taken in
/// three steps, and each octant has one of two polynomials.
fn sin_cos(x: f32) -> (f32, f32) {
    let octant = ((x * (4.0 / std::f32::consts::PI)) as i32 + 1) & !1;
    let multiple = octant as f32;
    let x = [-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8]
        .into_iter()
        .fold(x, |x, it| fma(multiple, it, x));
    let square = x * x;
    let even = polynomial(square, &[2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]) * square;
    let even = fma(even, square, -(square * 0.5)) + 1.0;
    let odd = polynomial(square, &[-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]) * square;
    let odd = fma(odd, x, x);
    let (sin, cos) = if octant & 2 == 0 { (odd, even) } else { (even, odd) };
    let (is_sin_negative, is_cos_negative) = (octant & 4 != 0, (octant - 2) & 4 == 0);
    (if is_sin_negative { -sin } else { sin }, if is_cos_negative { -cos } else { cos })
}
