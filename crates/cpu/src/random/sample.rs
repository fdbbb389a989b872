//! Samples: positions by their weights, permutations, counts, and the random slopes of `rrelu`.

use crate::numeric::dense::{Dense, fill};
use crate::numeric::map::{cast, store};
use crate::pointwise::special::Special;
use crate::random::distributions::{Order, draw_in, rounded};
use crate::sort::sorting::places_in_order;
use tracefx_core::allocate::{collected, try_collected, with_room};
use tracefx_core::{DType, Generator, Result, Scalar, Tensor, with_default_generator};
use tracefx_exec::{Kernel, assign};
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.randperm.default", Kernel::Fill(permutation)),
    ("aten.multinomial.default", Kernel::Fill(multinomial)),
    ("aten.poisson.default", Kernel::Fill(poisson)),
    ("aten.rrelu_with_noise_functional.default", Kernel::Fill(rrelu_with_noise)),
];

fn permutation(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let n = outs[0].numel();
    let mut res: Vec<i64> = collected(0..n as i64)?;
    let last = n.saturating_sub(1) as f64;
    if rounded(args, outs[0].dtype(), last)? != last {
        return Err(args.invalid(format!("n is too large for result tensor type: '{}'", outs[0].dtype().name())));
    }
    with_default_generator(|generator| {
        // 32 bits choose among so few elements without a bias that would be seen.
        if n < (u32::MAX / 20) as usize {
            for i in 0..n.saturating_sub(1) {
                res.swap(i, i + generator.random() as usize % (n - i));
            }
        } else {
            for i in 0..n {
                let at = (generator.random64() % (i as u64 + 1)) as usize;
                res[i] = res[at];
                res[at] = i as i64;
            }
        }
    });
    store(&res, &outs[0])
}

fn multinomial(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (this, n) = (args.tensor(0)?, args.int(1)? as usize);
    let n_categories = this.sizes()[this.rank() - 1];
    if outs[0].numel() == 0 {
        return Ok(());
    }
    if n_categories == 0 {
        return Err(args.invalid("invalid multinomial distribution (sum of probabilities <= 0)"));
    }
    if n_categories > 1 << 24 {
        return Err(args.invalid("number of categories cannot exceed 2^24"));
    }
    let dtype = this.dtype();
    // Sums of half types are kept in float32.
    let sum_dtype = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let weights = Dense::new(&cast(this, DType::Float64)?)?;
    let weights = weights.read::<f64>();
    let rows = || weights.chunks_exact(n_categories.max(1));
    for row in rows() {
        if row.iter().any(|it| !it.is_finite() || *it < 0.0) {
            return Err(args.invalid("probability tensor contains either `inf`, `nan` or element < 0"));
        }
        if row.iter().sum::<f64>() <= 0.0 {
            return Err(args.invalid("invalid multinomial distribution (sum of probabilities <= 0)"));
        }
    }
    let with_replacement = args.bool(2)?;
    let mut res: Vec<i64> = with_room(outs[0].numel())?;
    // Without replacement: the weights over numbers of an exponential distribution, and of those the greatest.
    let drawn: Vec<f64> = with_default_generator(|generator| {
        let n_drawn = if with_replacement { outs[0].numel() } else { weights.len() };
        collected((0..n_drawn).map(|_| generator.uniform()))
    })?;
    for (i, row) in rows().enumerate() {
        if with_replacement {
            let mut sums = with_room(n_categories)?;
            for weight in row {
                sums.push(rounded(args, sum_dtype, sums.last().unwrap_or(&0.0) + weight)?);
            }
            // The last sum counts as one, however the others have been rounded.
            let total = sums.pop().unwrap_or(1.0);
            let bounds: Vec<f64> = try_collected(sums.iter().map(|it| rounded(args, sum_dtype, it / total)))?;
            let places = drawn[i * n..][..n].iter().map(|at| bounds.partition_point(|it| it < at) as i64);
            res.extend(places);
        } else {
            let key =
                |(weight, drawn): (&f64, &f64)| rounded(args, dtype, weight / rounded(args, dtype, -(-drawn).ln_1p())?);
            let keys: Vec<f64> = try_collected(row.iter().zip(&drawn[i * n_categories..]).map(key))?;
            res.extend(places_in_order(&keys, true)?[..n].iter().map(|&it| it as i64));
        }
    }
    fill::<i64, _>(&outs[0], |to| to.copy_from_slice(&res));
    Ok(())
}

fn poisson(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let means = Dense::new(&cast(args.tensor(0)?, DType::Float64)?)?;
    let means = means.read::<f64>();
    if means.iter().any(|it| it.is_nan() || *it < 0.0) {
        return Err(args.invalid("invalid Poisson rate, expected rate to be non-negative"));
    }
    draw_in(&Order::row_major(&outs[0]), args, &outs[0], &mut |generator, at| Scalar::Int(count(generator, means[at])))
}

/// How often something happens that happens `mean` times on average. Follows `sample_poisson` of
/// aten/src/ATen/native/Distributions.cpp: transformed rejection (Hörmann, 1993) where the mean is large.
fn count(generator: &mut Generator, mean: f64) -> i64 {
    if mean == 0.0 {
        return 0;
    }
    if mean < 10.0 {
        let bound = (-mean).exp();
        let (mut n, mut product) = (0, generator.uniform());
        while product > bound {
            n += 1;
            product *= generator.uniform();
        }
        return n;
    }
    let (root, log_mean) = (mean.sqrt(), mean.ln());
    let b = 0.931 + 2.53 * root;
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let v_r = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (u, v) = (generator.uniform() - 0.5, generator.uniform());
        let u_s = 0.5 - u.abs();
        let k = ((2.0 * a / u_s + b) * u + mean + 0.43).floor();
        if u_s >= 0.07 && v <= v_r {
            return k as i64;
        }
        if k < 0.0 || (u_s < 0.013 && v > u_s) {
            continue;
        }
        let acceptance = v.ln() + inverse_alpha.ln() - (a / (u_s * u_s) + b).ln();
        if acceptance <= -mean + k * log_mean - (k + 1.0).lgamma() {
            return k as i64;
        }
    }
}

/// In training each element that is not positive has a random slope of its own; else all have the mean of the bounds.
fn rrelu_with_noise(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (lower, upper) = (args.float(2)?, args.float(3)?);
    let dtype = outs[0].dtype();
    let this = Dense::new(&cast(args.tensor(0)?, DType::Float64)?)?;
    let this = this.read::<f64>();
    if !args.bool(4)? {
        let slope = match dtype {
            DType::Float64 => (lower + upper) / 2.0,
            _ => f64::from(((lower + upper) / 2.0) as f32),
        };
        let result: Vec<f64> = collected(this.iter().map(|&it| if it > 0.0 { it } else { it * slope }))?;
        assign(&outs[1], args.tensor(1)?)?;
        return store(&result, &outs[0]);
    }
    let slopes: Vec<f64> = with_default_generator(|generator| {
        let slope = |it: &f64| if *it <= 0.0 { generator.uniform() * (upper - lower) + lower } else { 1.0 };
        collected(this.iter().map(slope))
    })?;
    let products = this.iter().zip(&slopes).map(|(it, slope)| Ok(it * rounded(args, dtype, *slope)?));
    store(&try_collected(products)?, &outs[0])?;
    store(&slopes, &outs[1])
}
