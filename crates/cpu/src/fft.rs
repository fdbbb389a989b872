//! Kernels of Fourier transforms, in float64: radix two where the number of points is a power of two, and the method of
//! Bluestein for all others, which makes a convolution of them whose length is one.

use crate::numeric::dense::Dense;
use crate::numeric::map::{cast, store};
use std::f64::consts::PI;
use tracefx_core::allocate::{collected, copied, filled, with_room};
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._fft_c2c.default", Kernel::Fill(c2c)),
    ("aten._fft_r2c.default", Kernel::Fill(r2c)),
    ("aten._fft_c2r.default", Kernel::Fill(c2r)),
];

type Complex = [f64; 2];

fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// The number on the unit circle at this part of a whole turn.
fn on_circle(part: f64) -> Complex {
    let (sin, cos) = (2.0 * PI * part).sin_cos();
    [cos, sin]
}

/// Transforms a power of two of points in place; `sign` is that of the exponent.
fn radix_two(data: &mut [Complex], sign: f64) -> Result<()> {
    let n = data.len();
    let mut reversed = 0;
    for i in 1..n {
        let mut bit = n >> 1;
        while reversed & bit != 0 {
            reversed ^= bit;
            bit >>= 1;
        }
        reversed |= bit;
        if i < reversed {
            data.swap(i, reversed);
        }
    }
    let (mut width, mut turns) = (2, with_room(n / 2)?);
    while width <= n {
        turns.clear();
        turns.extend((0..width / 2).map(|k| on_circle(sign * k as f64 / width as f64)));
        for block in data.chunks_exact_mut(width) {
            let (low, high) = block.split_at_mut(width / 2);
            for ((low, high), turn) in low.iter_mut().zip(high).zip(&turns) {
                let (a, b) = (*low, times(*high, *turn));
                *low = [a[0] + b[0], a[1] + b[1]];
                *high = [a[0] - b[0], a[1] - b[1]];
            }
        }
        width *= 2;
    }
    Ok(())
}

/// Transforms any number of points in place.
fn any_length(data: &mut [Complex], sign: f64) -> Result<()> {
    let n = data.len();
    if n <= 1 {
        return Ok(());
    }
    if n.is_power_of_two() {
        return radix_two(data, sign);
    }
    let length = (2 * n - 1).next_power_of_two();
    // Only the square modulo 2n counts, which stays exact.
    let chirp = |k: usize| on_circle(sign * ((k * k) % (2 * n)) as f64 / (2 * n) as f64);
    let (mut a, mut b) = (filled([0.0; 2], length)?, filled([0.0; 2], length)?);
    for k in 0..n {
        let it = chirp(k);
        a[k] = times(data[k], it);
        let conjugate = [it[0], -it[1]];
        b[k] = conjugate;
        b[(length - k) % length] = conjugate;
    }
    radix_two(&mut a, -1.0)?;
    radix_two(&mut b, -1.0)?;
    a.iter_mut().zip(&b).for_each(|(a, b)| *a = times(*a, *b));
    radix_two(&mut a, 1.0)?;
    for (k, it) in data.iter_mut().enumerate() {
        let [re, im] = times(a[k], chirp(k));
        *it = [re / length as f64, im / length as f64];
    }
    Ok(())
}

/// Transforms one dimension of row-major numbers.
fn along(data: &mut [Complex], sizes: &[usize], dim: usize, sign: f64) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let (n, stride) = (sizes[dim], sizes[dim + 1..].iter().product::<usize>());
    let mut line = filled([0.0; 2], n)?;
    for block in data.chunks_exact_mut(n * stride) {
        for start in 0..stride {
            line.iter_mut().enumerate().for_each(|(i, it)| *it = block[start + i * stride]);
            any_length(&mut line, sign)?;
            line.iter().enumerate().for_each(|(i, it)| block[start + i * stride] = *it);
        }
    }
    Ok(())
}

fn dims(args: &Args<'_, Tensor>) -> Result<Vec<usize>> {
    let rank = args.tensor(0)?.rank();
    args.ints(1)?.iter().map(|&it| normalize_dim(args, it, rank)).collect()
}

fn numbers(tensor: &Tensor) -> Result<Vec<Complex>> {
    let wide = Dense::new(&cast(tensor, DType::Complex128)?)?;
    copied(&wide.read::<Complex>())
}

/// What the results are multiplied with: 1, one over the root of so many points, or one over their number.
fn scale(args: &Args<'_, Tensor>, n: usize) -> Result<f64> {
    Ok(match args.int(2)? {
        0 => 1.0,
        1 => 1.0 / (n as f64).sqrt(),
        _ => 1.0 / n as f64,
    })
}

fn scaled(mut data: Vec<Complex>, factor: f64) -> Vec<Complex> {
    data.iter_mut().for_each(|it| *it = [it[0] * factor, it[1] * factor]);
    data
}

fn c2c(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    if outs[0].numel() == 0 {
        return Ok(());
    }
    let (this, dims) = (args.tensor(0)?, dims(args)?);
    let mut data = numbers(this)?;
    let sign = if args.bool(3)? { -1.0 } else { 1.0 };
    dims.iter().try_for_each(|&dim| along(&mut data, this.sizes(), dim, sign))?;
    let n = dims.iter().map(|&dim| this.sizes()[dim]).product();
    store(&scaled(data, scale(args, n)?), &outs[0])
}

fn r2c(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    if outs[0].numel() == 0 {
        return Ok(());
    }
    let (this, dims) = (args.tensor(0)?, dims(args)?);
    let mut data = numbers(this)?;
    dims.iter().try_for_each(|&dim| along(&mut data, this.sizes(), dim, -1.0))?;
    let n = dims.iter().map(|&dim| this.sizes()[dim]).product();
    let data = scaled(data, scale(args, n)?);
    let Some(&last) = dims.last() else { return store(&data, &outs[0]) };
    // The part that the result has room for.
    let (whole, part) = (this.sizes()[last], outs[0].sizes()[last]);
    let stride: usize = this.sizes()[last + 1..].iter().product();
    let blocks = data.chunks_exact((whole * stride).max(1));
    store(&collected(blocks.flat_map(|it| it[..part * stride].iter().copied()))?, &outs[0])
}

fn c2r(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    if outs[0].numel() == 0 {
        return Ok(());
    }
    let (this, mut dims) = (args.tensor(0)?, dims(args)?);
    let mut half = numbers(this)?;
    let Some(last) = dims.pop() else { unreachable!("the shape rule asks for a dimension") };
    dims.iter().try_for_each(|&dim| along(&mut half, this.sizes(), dim, 1.0))?;
    let (n_half, n) = (this.sizes()[last], outs[0].sizes()[last]);
    let stride: usize = this.sizes()[last + 1..].iter().product();
    let mut data = with_room(outs[0].numel())?;
    for block in half.chunks_exact((n_half * stride).max(1)) {
        for at in 0..n {
            // Beyond the half, the conjugates in reverse; what is not there counts as zero.
            let (from, sign) = if at <= n / 2 { (at, 1.0) } else { (n - at, -1.0) };
            data.extend((0..stride).map(|i| match block.get(from * stride + i) {
                Some(it) if from == 0 || 2 * from == n => [it[0], 0.0],
                Some(it) => [it[0], sign * it[1]],
                None => [0.0, 0.0],
            }));
        }
    }
    along(&mut data, outs[0].sizes(), last, 1.0)?;
    let n_points = dims.iter().map(|&dim| this.sizes()[dim]).product::<usize>() * n;
    let factor = scale(args, n_points)?;
    store(&collected(data.iter().map(|it| it[0] * factor))?, &outs[0])
}
