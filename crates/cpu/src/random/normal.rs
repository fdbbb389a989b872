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

use crate::numeric::elementary::{LN, fused};
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::map::{each, store};
use crate::numeric::parallel::{self, GRAIN};
use crate::random::distributions::{draw_in, drawn, float_of_step};
use tracefx_core::allocate::filled;
use tracefx_core::{DType, Generator, Result, Scalar, Tensor, with_default_generator};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

const STANDARD: Kernel = Kernel::Fill(|args, outs| normal(args, &outs[0], 0.0, 1.0));

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
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
    if out.numel() == 0 {
        return Ok(());
    }
    // The parts of complex numbers share the variance.
    let std = if out.dtype().is_complex() { std / std::f64::consts::SQRT_2 } else { std };
    let (out, order) = &drawn(args, out)?;
    if out.numel() < GROUP || !order.is_contiguous {
        return draw_in(order, args, out, &mut |generator, _| Scalar::Float(generator.normal() * std + mean));
    }
    if out.dtype() == DType::Float64 {
        let fill = |generator: &mut Generator, to: &mut [f64]| to.iter_mut().for_each(|it| *it = generator.uniform());
        return store(&groups(out.numel(), out.numel(), fill, &|it| isa::run(Pairs(it, mean, std)))?, out);
    }
    let (mean, std) = (mean as f32, std as f32);
    // Half types are turned in a buffer, and what does not fill it is not drawn in vain.
    let n_drawn = if out.dtype() == DType::Float32 { out.numel() } else { out.numel() / GROUP * GROUP };
    store(&groups(out.numel(), n_drawn, uniform_f32, &|it| isa::run(Pairs(it, mean, std)))?, out)
}

fn uniform_f32(generator: &mut Generator, to: &mut [f32]) {
    let mut steps = [0; 1024];
    for to in to.chunks_mut(steps.len()) {
        generator.fill(&mut steps[..to.len()]);
        each(&steps[..to.len()], to, float_of_step);
    }
}

/// `n` numbers, of which the first `n_drawn` are drawn by `fill` and turned in groups. A last group that is not whole is
/// drawn anew with what comes before it.
fn groups<F: Copy + Default + Send>(
    n: usize,
    n_drawn: usize,
    fill: fn(&mut Generator, &mut [F]),
    turn: &(dyn Fn(&mut [[F; GROUP]]) + Sync),
) -> Result<Vec<F>> {
    let mut res = filled(F::default(), n)?;
    with_default_generator(|generator| {
        fill(generator, &mut res[..n_drawn]);
        parallel::parts_mut(res.as_chunks_mut::<GROUP>().0, GRAIN / GROUP, |_, part| turn(part));
        if !n.is_multiple_of(GROUP)
            && let Some(last) = res.last_chunk_mut::<GROUP>()
        {
            fill(generator, last);
            turn(std::slice::from_mut(last));
        }
    });
    Ok(res)
}

/// Box and Muller: groups of uniform numbers, the mean and the deviation. What is taken from one keeps the logarithm away
/// from zero.
struct Pairs<'a, F>(&'a mut [[F; GROUP]], F, F);

impl Work for Pairs<'_, f64> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Pairs(groups, mean, std) = self;
        for group in groups {
            for i in 0..GROUP / 2 {
                let radius = (-2.0 * (1.0 - group[i]).ln()).sqrt();
                let (sin, cos) = (2.0 * std::f64::consts::PI * group[i + GROUP / 2]).sin_cos();
                group[i] = (radius * cos).mul_add(std, mean);
                group[i + GROUP / 2] = (radius * sin).mul_add(std, mean);
            }
        }
    }
}

impl Work for Pairs<'_, f32> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Pairs(groups, mean, std) = self;
        for group in groups {
            for i in 0..GROUP / 2 {
                let radius = (-2.0 * ln::<I>(1.0 - group[i])).sqrt();
                let (sin, cos) = sin_cos::<I>(2.0 * std::f32::consts::PI * group[i + GROUP / 2]);
                group[i] = fma::<I>(radius * cos, std, mean);
                group[i + GROUP / 2] = fma::<I>(radius * sin, std, mean);
            }
        }
    }
}

/// `a * b + c`, rounded once.
#[inline(always)]
fn fma<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FUSES { a.mul_add(b, c) } else { fused(a, b, c) }
}

/// The polynomial with these coefficients, the highest power first.
#[inline(always)]
fn polynomial<I: Isa, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for &it in &coefficients[1..] {
        sum = fma::<I>(sum, x, it);
    }
    sum
}

/// The logarithm of a number above zero. Cephes: the fraction lies between the root of 1/2 and the root of 2.
#[inline(always)]
fn ln<I: Isa>(x: f32) -> f32 {
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    let x = f32::from_bits(bits & 0x807f_ffff | 0.5f32.to_bits());
    let (more, less) = if x < std::f32::consts::FRAC_1_SQRT_2 { (x, 1.0) } else { (0.0, 0.0) };
    let exponent = (bits >> 23) as f32 - 126.0 - less;
    let x = x - 1.0 + more;
    let square = x * x;
    let y = polynomial::<I, _>(x, LN) * x;
    let y = fma::<I>(y, square, exponent * -2.12194440e-4);
    fma::<I>(exponent, 0.693359375, x + (y - square * 0.5))
}

/// Sine and cosine of a number that is not negative. Cephes: what is left of the nearest even multiple of pi/4 is taken in
/// three steps, and each octant has one of two polynomials.
#[inline(always)]
fn sin_cos<I: Isa>(x: f32) -> (f32, f32) {
    let octant = ((x * (4.0 / std::f32::consts::PI)) as i32 + 1) & !1;
    let multiple = octant as f32;
    let x = fma::<I>(multiple, -0.78515625, x);
    let x = fma::<I>(multiple, -2.4187564849853515625e-4, x);
    let x = fma::<I>(multiple, -3.77489497744594108e-8, x);
    let square = x * x;
    let even = polynomial::<I, _>(square, [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]) * square;
    let even = fma::<I>(even, square, -(square * 0.5)) + 1.0;
    let odd = polynomial::<I, _>(square, [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]) * square;
    let odd = fma::<I>(odd, x, x);
    let (sin, cos) = if octant & 2 == 0 { (odd, even) } else { (even, odd) };
    let (is_sin_negative, is_cos_negative) = (octant & 4 != 0, (octant - 2) & 4 == 0);
    (if is_sin_negative { -sin } else { sin }, if is_cos_negative { -cos } else { cos })
}
