//! Kernels of histograms of several dimensions: the bounds of bins, and the counts between bounds.

use crate::numeric::dense::{Dense, fill};
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._histogramdd_bin_edges.default", Kernel::Fill(bin_edges)),
    ("aten._histogramdd_from_bin_tensors.default", Kernel::Fill(from_bin_tensors)),
];

fn bin_edges(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = args.tensor(0)?.dtype();
    with_float!(dtype, &args.op.name, A => edges::<A>(args, outs))
}

fn edges<A: Float>(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let n_dims = outs.len();
    let dense = Dense::new(args.tensor(0)?)?;
    let points = dense.read::<A>();
    let range = args.opt_floats(2)?;
    for (dim, out) in outs.iter().enumerate() {
        let column = || points.iter().skip(dim).step_by(n_dims.max(1)).map(|it| it.to_f64());
        let (mut low, mut high) = match &range {
            Some(range) => (range[2 * dim], range[2 * dim + 1]),
            None if points.is_empty() => (0.0, 1.0),
            None if column().any(f64::is_nan) => (f64::NAN, f64::NAN),
            None => (column().fold(f64::INFINITY, f64::min), column().fold(f64::NEG_INFINITY, f64::max)),
        };
        if !low.is_finite() || !high.is_finite() {
            let what = format!("torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite");
            return Err(args.invalid(what));
        }
        if low > high {
            let what = format!(
                "torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
            );
            return Err(args.invalid(what));
        }
        if low == high {
            (low, high) = (low - 0.5, high + 0.5);
        }
        fill::<A, _>(out, |to| {
            // As `linspace` does, from the nearer end.
            let n = to.len();
            let (low, high) = (A::of(low), A::of(high));
            let step = (high - low) / A::of((n - 1) as f64);
            for (i, to) in to.iter_mut().enumerate() {
                *to = if i < n / 2 { low + step * A::of(i as f64) } else { high - step * A::of((n - 1 - i) as f64) };
            }
        });
    }
    Ok(())
}

fn from_bin_tensors(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let dtype = outs[0].dtype();
    with_float!(dtype, &args.op.name, A => counts::<A>(args, &outs[0]))
}

fn counts<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let dense = Dense::new(args.tensor(0)?)?;
    let points = dense.read::<A>();
    let edges = args.tensors(1)?.into_iter().map(Tensor::to_vec::<A>).collect::<Result<Vec<_>>>()?;
    let weights = args.opt_tensor(2)?.map(Tensor::to_vec::<A>).transpose()?;
    let is_density = args.bool(3)?;
    fill::<A, _>(out, |to| {
        if to.is_empty() {
            return;
        }
        for (at, point) in points.chunks_exact(edges.len().max(1)).enumerate() {
            if let Some(bin) = bin_of(point, &edges) {
                to[bin] += weights.as_ref().map_or(A::ONE, |it| it[at]);
            }
        }
        if is_density {
            let sum = to.iter().fold(A::ZERO, |sum, it| sum + *it);
            to.iter_mut().for_each(|it| *it /= sum);
            let mut inner = to.len();
            for edges in &edges {
                let n_bins = edges.len() - 1;
                inner /= n_bins;
                for (at, it) in to.iter_mut().enumerate() {
                    let bin = at / inner % n_bins;
                    *it /= edges[bin + 1] - edges[bin];
                }
            }
        }
    });
    Ok(())
}

/// The bin that a point lies in, unless it lies outside. The last bin of a dimension has both its bounds, each other one the
/// lower.
fn bin_of<A: Float>(point: &[A], edges: &[Vec<A>]) -> Option<usize> {
    let mut bin = 0;
    for (it, edges) in point.iter().zip(edges) {
        let (first, last) = (edges.first()?, edges.last()?);
        // A NaN is nowhere.
        if !(it >= first && it <= last) {
            return None;
        }
        let n_bins = edges.len() - 1;
        let at = upper_bound(edges, it).checked_sub(1)?;
        bin = bin * n_bins + at.min(n_bins.checked_sub(1)?);
    }
    Some(bin)
}

/// The first bound above a number, by the steps of C++'s `upper_bound`: PyTorch takes bounds in any order.
fn upper_bound<A: Float>(edges: &[A], number: &A) -> usize {
    let (mut first, mut n) = (0, edges.len());
    while n > 0 {
        let half = n / 2;
        if number < &edges[first + half] {
            n = half;
        } else {
            first += half + 1;
            n -= half + 1;
        }
    }
    first
}
