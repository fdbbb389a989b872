//! The kernel of attention: one head at a time, with its weights in a buffer that the next head reuses. Products are
//! [`gemm`](crate::gemm)'s, and what needs all weights in memory, such as dropout, is left to the decomposition.

use crate::gemm::{Extent, GemmElement, MatrixView, MatrixViewMut, Start, gemm};
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::isa::{self, Isa, Work};
use crate::numeric::strided::{Strided, fill_float, try_fill_float};
use crate::numeric::{parallel, scratch};
use crate::reduce::reduction::fold_lane;
use std::borrow::Cow;
use tracefx_core::allocate::{collected, filled, with_room};
use tracefx_core::{Bool8, DType, Dims, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.scaled_dot_product_attention.default", Kernel::Overwrite(attention)),
    ("aten._scaled_dot_product_flash_attention_for_cpu.default", Kernel::Overwrite(flash)),
];

/// Multiplications that one thread does for several small heads.
const TOGETHER: usize = 1 << 17;

struct Options<'a> {
    mask: Option<&'a Tensor>,
    is_causal: bool,
    scale: Option<f64>,
    has_groups: bool,
}

fn attention(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    refuse_dropout(args, args.float(4)?)?;
    let options = Options {
        mask: args.opt_tensor(3)?,
        is_causal: args.bool(5)?,
        scale: args.opt_float(6)?,
        has_groups: args.bool(7)?,
    };
    run(args, &options, out)
}

fn flash(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    refuse_dropout(args, args.float(3)?)?;
    let options =
        Options { mask: args.opt_tensor(5)?, is_causal: args.bool(4)?, scale: args.opt_float(6)?, has_groups: false };
    run(args, &options, out)
}

fn refuse_dropout(args: &Args<'_, Tensor>, p: f64) -> Result<()> {
    if p == 0.0 {
        return Ok(());
    }
    Err(args.unsupported("attention with dropout keeps its weights, which this kernel never has in memory"))
}

fn run(args: &Args<'_, Tensor>, options: &Options<'_>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => compute::<A>(args, options, out))
}

/// The strides of an operand along a batch that it broadcasts to.
fn batch_strides<A: Float>(operand: &Strided<'_, A>, batch: &[usize]) -> Dims {
    let lead = operand.sizes.len() - 2;
    let missing = batch.len() - lead;
    let stride = |dim: usize| match dim.checked_sub(missing) {
        Some(dim) if operand.sizes[dim] != 1 => operand.strides[dim],
        _ => 0,
    };
    (0..batch.len()).map(stride).collect()
}

fn compute<A: Float + GemmElement>(args: &Args<'_, Tensor>, options: &Options<'_>, out: &[Tensor]) -> Result<()> {
    let (query, key, value) = (args.tensor(0)?, args.tensor(1)?, args.tensor(2)?);
    let (query, key, value) = (Strided::<A>::new(query)?, Strided::<A>::new(key)?, Strided::<A>::new(value)?);
    let sizes = out[0].sizes();
    let (batch, &[n_rows, n_values]) = sizes.split_at(sizes.len() - 2) else {
        unreachable!("attention has a matrix for each head")
    };
    let (&[.., n_features], &[.., n_columns, _]) = (&query.sizes[..], &key.sizes[..]) else {
        unreachable!("the shape rule asks for two dimensions")
    };
    let additive = options.mask.map(additive_mask).transpose()?;
    let mask = additive.as_ref().map(|it| Strided::<A>::new(it)).transpose()?;
    let mask_strides = mask.as_ref().map(|mask| {
        let mut scores: Dims = batch.into();
        scores.extend([n_rows, n_columns]);
        let missing = scores.len() - mask.sizes.len();
        let stride = |dim: usize| match dim.checked_sub(missing) {
            Some(dim) if mask.sizes[dim] != 1 => mask.strides[dim],
            _ => 0,
        };
        (0..scores.len()).map(stride).collect::<Dims>()
    });
    let strides = [&query, &key, &value].map(|it| batch_strides(it, batch));
    let groups = |side: &Strided<'_, A>| match (options.has_groups, batch.last(), side.sizes.iter().rev().nth(2)) {
        (true, Some(&all), Some(&own)) => all / own.max(1),
        _ => 1,
    };
    let groups = [1, groups(&key), groups(&value)];
    let scale = A::of(options.scale.unwrap_or(1.0 / (n_features as f64).sqrt()));
    let n_heads: usize = batch.iter().product();
    let mut sums = filled(0.0, n_heads * n_rows)?;
    try_fill_float::<A, _>(&out[0], |mut out| {
        let mut heads = with_room(n_heads)?;
        let mut sums = &mut sums[..];
        for head in 0..n_heads {
            let (own, rest) = out.split_at_mut(n_rows * n_values);
            let (own_sums, rest_sums) = sums.split_at_mut(n_rows);
            heads.push((head, own, own_sums));
            (out, sums) = (rest, rest_sums);
        }
        let together = (TOGETHER / (n_rows * n_columns * n_features.max(n_values)).max(1)).max(1);
        parallel::try_parts_mut(&mut heads, together, |_, heads| {
            for (head, out, sums) in heads {
                let index = unravel(*head, batch);
                let start = |strides: &[usize], groups: usize| -> usize {
                    let last = index.len().wrapping_sub(1);
                    let at = |dim: usize| if dim == last { index[dim] / groups } else { index[dim] };
                    strides.iter().take(index.len()).enumerate().map(|(dim, stride)| at(dim) * stride).sum()
                };
                let [query, key, value] = [(&query, 0), (&key, 1), (&value, 2)].map(|(side, at)| {
                    let data = side.data().get(start(&strides[at], groups[at])..).unwrap_or(&[]);
                    let rank = side.strides.len();
                    MatrixView { data, row: side.strides[rank - 2], col: side.strides[rank - 1] }
                });
                let key = MatrixView { row: key.col, col: key.row, ..key };
                let mask = mask.as_ref().zip(mask_strides.as_ref()).map(|(mask, strides)| {
                    let data = mask.data().get(start(strides, 1)..).unwrap_or(&[]);
                    MatrixView { data, row: strides[batch.len()], col: strides[batch.len() + 1] }
                });
                scratch::with::<A, _>(n_rows * n_columns, |weights| {
                    let size = Extent { m: n_rows, n: n_columns, k: n_features };
                    gemm(size, MatrixViewMut { data: weights, row: n_columns }, query, key, Start::Zero)?;
                    if n_columns > 0 {
                        isa::run(Weights { weights, sums, mask, n_columns, scale, is_causal: options.is_causal });
                    }
                    let size = Extent { m: n_rows, n: n_values, k: n_columns };
                    let weights = MatrixView { data: weights, row: n_columns, col: 1 };
                    gemm(size, MatrixViewMut { data: out, row: n_values }, weights, value, Start::Zero)
                })?;
            }
            Ok(())
        })
    })?;
    if let Some(out) = out.get(1) {
        fill_float::<f64, _>(out, |out| out.copy_from_slice(&sums))?;
    }
    Ok(())
}

/// A mask of bools as numbers to add; another one as it is.
fn additive_mask(mask: &Tensor) -> Result<Cow<'_, Tensor>> {
    if mask.dtype() != DType::Bool {
        return Ok(Cow::Borrowed(mask));
    }
    let additive = |it: &Bool8| if it.get() { 0.0 } else { f32::NEG_INFINITY };
    let values: Vec<f32> = collected(mask.to_vec::<Bool8>()?.iter().map(additive))?;
    Tensor::from_slice(&values, mask.sizes()).map(Cow::Owned)
}

/// The index of the `at`-th item of these sizes.
fn unravel(mut at: usize, sizes: &[usize]) -> Dims {
    let mut index: Dims = smallvec::smallvec![0; sizes.len()];
    for (index, &size) in index.iter_mut().zip(sizes).rev() {
        *index = at % size;
        at /= size;
    }
    index
}

/// The scores of a head, which become its weights.
struct Weights<'a, A> {
    weights: &'a mut [A],
    sums: &'a mut [f64],
    mask: Option<MatrixView<'a, A>>,
    n_columns: usize,
    scale: A,
    is_causal: bool,
}

impl<A: Float> Work for Weights<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (row, (weights, sum)) in self.weights.chunks_exact_mut(self.n_columns).zip(self.sums).enumerate() {
            weights.iter_mut().for_each(|it| *it *= self.scale);
            if let Some(mask) = &self.mask {
                let mask_row = &mask.data[row * mask.row..];
                match mask.col {
                    1 => weights.iter_mut().zip(mask_row).for_each(|(it, &mask)| *it += mask),
                    col => weights.iter_mut().enumerate().for_each(|(at, it)| *it += mask_row[at * col]),
                }
            }
            if self.is_causal {
                weights[(row + 1).min(self.n_columns)..].fill(A::LOWEST);
            }
            *sum = softmax(weights);
        }
    }
}

/// Replaces a row of scores by its softmax, or by zeros where it is masked altogether, and gives back the logarithm of
/// the sum of exponentials.
#[inline(always)]
fn softmax<A: Float>(row: &mut [A]) -> f64 {
    let max = fold_lane(row, A::LOWEST, A::larger, A::larger);
    if max == A::LOWEST {
        row.fill(A::ZERO);
        return 0.0;
    }
    row.iter_mut().for_each(|it| *it = (*it - max).exp());
    let sum = fold_lane(row, A::ZERO, |sum, it| sum + it, |a, b| a + b);
    row.iter_mut().for_each(|it| *it /= sum);
    (max + sum.ln()).to_f64()
}
