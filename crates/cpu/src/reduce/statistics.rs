//! Kernels of counts, membership and quantiles. Bins of several dimensions are in [`histogram`](super::histogram).

use crate::index::gather::indices;
use crate::numeric::dense::{Dense, fill};
use crate::numeric::dispatch::{with_element, with_float};
use crate::numeric::float::Float;
use crate::numeric::map::{cast, store};
use crate::random::distributions::rounded;
use crate::sort::order::Sorter;
use crate::sort::sorting::{NAN, key, keys};
use tracefx_core::allocate::{collected, filled, with_room};
use tracefx_core::{DType, DTypeKind, Element, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Operand, Value, normalize_dim, promote};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.isin.Tensor_Tensor", Kernel::Fill(isin)),
    ("aten.isin.Tensor_Scalar", Kernel::Fill(isin)),
    ("aten.isin.Scalar_Tensor", Kernel::Fill(isin)),
    ("aten.bincount.default", Kernel::Make(bincount)),
    ("aten.histc.default", Kernel::Fill(histc)),
    ("aten.quantile.default", Kernel::Fill(quantile)),
    ("aten.quantile.scalar", Kernel::Fill(quantile)),
    ("aten.nanquantile.default", Kernel::Fill(quantile)),
    ("aten.nanquantile.scalar", Kernel::Fill(quantile)),
];

/// The numbers of an operand in row-major order, as elements of the dtype that is given.
fn scalars(operand: Operand<'_, Tensor>, dtype: Option<DType>) -> Result<Vec<Scalar>> {
    let mut found = match operand {
        Operand::Scalar(it) => vec![it],
        Operand::Tensor(it) => with_element!(it.dtype(), "isin", T => {
            collected(it.to_vec::<T>()?.into_iter().map(Element::to_scalar))?
        }),
    };
    if let Some(dtype) = dtype {
        with_element!(dtype, "isin", T => found.iter_mut().for_each(|it| *it = T::from_scalar(*it).to_scalar()));
    }
    Ok(found)
}

fn isin(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (elements, among) = (args.operand(0)?, args.operand(1)?);
    // A single element gets dimensions on the way, so that its dtype counts like that of the others.
    let has_dims = matches!(elements, Operand::Tensor(it) if it.rank() > 0);
    let dtype = has_dims.then(|| promote(&[elements, among]));
    let (elements, among) = (scalars(elements, dtype)?, scalars(among, dtype)?);
    let is_inverted = args.bool(3)?;
    let are_ints = elements.iter().chain(&among).all(|it| it.kind() <= DTypeKind::Int);
    // Unless all are integers, numbers are compared in float64, where zero has one sign and a NaN equals nothing.
    let key = |it: &Scalar| key(if are_ints { Scalar::Int(it.to_i64()) } else { Scalar::Float(it.to_f64()) });
    let among: Vec<u64> = collected(among.iter().filter(|it| are_ints || !it.to_f64().is_nan()).map(key))?;
    let sorted: Vec<u64> = collected(Sorter::default().places(&among)?.map(|at| among[at]))?;
    let is_in = |it: &Scalar| sorted.binary_search(&key(it)).is_ok();
    let found: Vec<i64> = collected(elements.iter().map(|it| i64::from(is_in(it) != is_inverted)))?;
    store(&found, &outs[0])
}

fn bincount(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (values, least) = (indices(args.tensor(0)?)?, args.int(2)? as usize);
    if values.iter().any(|it| *it < 0) {
        return Err(args.invalid("bincount only supports 1-d non-negative integral inputs."));
    }
    let n = values.iter().max().map_or(0, |it| (*it as usize).saturating_add(1)).max(least);
    let (dtype, weights) = match args.opt_tensor(1)? {
        None => (DType::Int64, None),
        Some(it) if it.dtype() == DType::Float32 => (DType::Float32, Some(it)),
        Some(it) => (DType::Float64, Some(it)),
    };
    let result = Tensor::zeros(if values.is_empty() { DType::Int64 } else { dtype }, &[n])?;
    match weights {
        Some(weights) if !values.is_empty() => {
            let weights = Dense::new(&cast(weights, DType::Float64)?)?;
            let mut sums = filled(0.0, n)?;
            for (&at, weight) in values.iter().zip(weights.read::<f64>().iter()) {
                sums[at as usize] += weight;
            }
            store(&sums, &result)?;
        }
        _ => fill::<i64, _>(&result, |to| values.iter().for_each(|&at| to[at as usize] += 1)),
    }
    Ok(vec![Value::Tensor(result)])
}

fn histc(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (this, n_bins) = (args.tensor(0)?, args.int(1)? as usize);
    let round = |it: f64| rounded(args, this.dtype(), it);
    let values = Dense::new(&cast(this, DType::Float64)?)?;
    let values = values.read::<f64>();
    let (mut low, mut high) = (round(args.float(2)?)?, round(args.float(3)?)?);
    if low == high && !values.is_empty() {
        let nan_wins = |a: f64, b: f64, pick: fn(f64, f64) -> f64| {
            if a.is_nan() {
                a
            } else if b.is_nan() {
                b
            } else {
                pick(a, b)
            }
        };
        low = values.iter().fold(f64::INFINITY, |a, b| nan_wins(a, *b, f64::min));
        high = values.iter().fold(f64::NEG_INFINITY, |a, b| nan_wins(a, *b, f64::max));
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if !low.is_finite() || !high.is_finite() {
        return Err(args.invalid(format!("torch.histc: range of [{low}, {high}] is not finite")));
    }
    if low > high {
        return Err(args.invalid("torch.histc: max must be larger than min"));
    }
    let mut counts = filled(0i64, n_bins)?;
    let width = round(high - low)?;
    for &it in values.iter().filter(|it| (low..=high).contains(*it)) {
        let at = round(round(round(it - low)? * n_bins as f64)? / width)? as usize;
        counts[at.min(n_bins - 1)] += 1;
    }
    store(&counts, &outs[0])
}

fn quantile(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let this = args.tensor(0)?;
    let dtype = this.dtype();
    with_float!(dtype, "quantile", A => quantiles::<A>(args, this, &outs[0]))
}

/// Follows `quantile_compute` of aten/src/ATen/native/Sorting.cpp.
fn quantiles<A: Float>(args: &Args<'_, Tensor>, this: &Tensor, out: &Tensor) -> Result<()> {
    let parts: Vec<A> = match args.operand(1)? {
        Operand::Scalar(it) => vec![A::of(it.to_f64())],
        Operand::Tensor(it) => it.to_vec::<A>()?,
    };
    if parts.iter().any(|it| !(0.0..=1.0).contains(&it.to_f64())) {
        return Err(args.invalid(format!("{}() q values must be in the range [0, 1]", args.op.schema.name)));
    }
    let (skips_nan, interpolation) = (args.op.schema.name == "nanquantile", args.str(4)?);
    // The dimension goes to the end.
    let moved = match args.opt_int(2)? {
        Some(dim) if this.rank() > 0 => {
            let dim = normalize_dim(args, dim, this.rank())?;
            let order: Vec<usize> = (0..this.rank()).filter(|it| *it != dim).chain([dim]).collect();
            this.permuted(&order)
        }
        _ => this.clone(),
    };
    let n = if args.is_none(2) { this.numel() } else { moved.sizes().last().copied().unwrap_or(1) };
    let values = Dense::new(&moved)?;
    let values = values.read::<A>();
    let n_rows = values.len() / n;
    let keys = keys(args, &moved)?;
    let mut results = filled(A::ZERO, n_rows * parts.len())?;
    let (mut sorter, mut sorted) = (Sorter::default(), with_room(n)?);
    for (row, (values, keys)) in values.chunks_exact(n).zip(keys.chunks_exact(n)).enumerate() {
        sorted.clear();
        // Zeros of both signs stay in their order.
        sorted.extend(sorter.places(keys)?.map(|at| values[at]));
        let n_numbers = keys.iter().filter(|it| **it != NAN).count();
        for (i, &part) in parts.iter().enumerate() {
            let last = if skips_nan { n_numbers.saturating_sub(1) } else { n - 1 };
            // One NaN among the elements makes all quantiles NaN, unless NaNs are skipped.
            let mut rank = if n_numbers < n && !skips_nan { A::of(last as f64) } else { part * A::of(last as f64) };
            rank = match interpolation {
                "lower" => rank.floor(),
                "higher" => -(-rank).floor(),
                "nearest" => rank.round_ties_even(),
                _ => rank,
            };
            let below = rank.floor();
            let (low, high) = (sorted[below.to_f64() as usize], sorted[(-(-rank).floor()).to_f64() as usize]);
            let weight = if interpolation == "midpoint" { A::of(0.5) } else { rank - below };
            results[i * n_rows + row] = match interpolation {
                "lower" | "higher" | "nearest" => low,
                _ if weight < A::of(0.5) => low + weight * (high - low),
                _ => high - (high - low) * (A::ONE - weight),
            };
        }
    }
    fill::<A, _>(out, |to| to.copy_from_slice(&results));
    Ok(())
}
