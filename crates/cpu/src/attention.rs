//! Attention: some rows of a head at a time, whose weights stay in the cache ([`Attend`]). Operators and fused steps share it. Products are
//! [`gemm`](crate::gemm)'s, and what needs all weights in memory, such as dropout, is left to the decomposition.

use crate::gemm::blocked::PackedRhs;
use crate::gemm::output_view::OutputView;
use crate::gemm::{
    Extent, GemmElement, MatrixView, MatrixViewMut, Start, gemm_into, gemm_on, gemm_packed, gemm_packed_into,
};
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::isa::{self, Isa, Level, Work};
use crate::numeric::strided::{Strided, fill_float, try_fill_float};
use crate::numeric::{parallel, scratch};
use crate::reduce::reduction::fold_lane;
use std::mem::take;
use tracefx_core::allocate::{collected, filled, with_room};
use tracefx_core::{Bool8, DType, Dims, Element, Result, Tensor, contiguous_strides};
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
fn batch_strides<A: Element>(operand: &Strided<'_, A>, batch: &[usize]) -> Dims {
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
    let (sizes, n_columns) = (out[0].sizes(), key.sizes[key.sizes.len() - 2]);
    let batch = &sizes[..sizes.len() - 2];
    let mask = MaskOperand::new(options.mask)?;
    let mask = mask.as_ref().map(|it| it.expanded(&[batch, &[sizes[sizes.len() - 2], n_columns]].concat()));
    let strides = [&query, &key, &value].map(|it| batch_strides(it, batch));
    let groups = |side: &Strided<'_, A>| match (options.has_groups, batch.last(), side.sizes.iter().rev().nth(2)) {
        (true, Some(&all), Some(&own)) => all / own.max(1),
        _ => 1,
    };
    let groups = [1, groups(&key), groups(&value)];
    let head = |head: usize| {
        let index = unravel(head, batch);
        let start = |at: usize| -> usize {
            let last = index.len().wrapping_sub(1);
            let place = |dim: usize| if dim == last { index[dim] / groups[at] } else { index[dim] };
            (0..index.len()).map(|dim| place(dim) * strides[at][dim]).sum()
        };
        Head {
            query: matrix(&query, start(0)),
            key: matrix(&key, start(1)),
            value: matrix(&value, start(2)),
            mask: mask.as_ref().map(|it| it.matrix(&index)),
        }
    };
    let n_features = query.sizes[query.sizes.len() - 1];
    let attend = Attend {
        level: Level::best(),
        n_columns,
        n_features,
        scale: A::of(options.scale.unwrap_or(1.0 / (n_features as f64).sqrt())),
        masked: A::LOWEST,
        is_causal: options.is_causal,
        is_safe: true,
        head: &head,
    };
    let n_sums = out.get(1).map_or(0, Tensor::numel);
    let mut sums = filled(0.0, n_sums)?;
    try_fill_float::<A, _>(&out[0], |out| attend.run(out, sizes, &contiguous_strides(sizes), &mut sums))?;
    match out.get(1) {
        Some(out) => fill_float::<f64, _>(out, |out| out.copy_from_slice(&sums)),
        None => Ok(()),
    }
}

/// What is added to scores, or which of them count.
pub(crate) enum MaskOperand<'a, A> {
    Added(Strided<'a, A>),
    Kept(Strided<'a, Bool8>),
}

impl<'a, A: Float> MaskOperand<'a, A> {
    pub(crate) fn new(mask: Option<&'a Tensor>) -> Result<Option<Self>> {
        mask.map(|it| match it.dtype() {
            DType::Bool => Ok(MaskOperand::Kept(Strided::exact(it))),
            _ => Strided::expanded(it).map(MaskOperand::Added),
        })
        .transpose()
    }

    /// As a mask of scores of these sizes.
    pub(crate) fn expanded(&self, scores: &[usize]) -> ExpandedMask<'_, A> {
        fn strides<T: Element>(mask: &Strided<'_, T>, scores: &[usize]) -> Dims {
            let missing = scores.len() - mask.sizes.len();
            let stride = |dim: usize| match dim.checked_sub(missing) {
                Some(dim) if mask.sizes[dim] != 1 => mask.strides[dim],
                _ => 0,
            };
            (0..scores.len()).map(stride).collect()
        }
        match self {
            MaskOperand::Added(it) => ExpandedMask { mask: self, strides: strides(it, scores) },
            MaskOperand::Kept(it) => ExpandedMask { mask: self, strides: strides(it, scores) },
        }
    }
}

/// A mask with a stride for each dimension of the scores.
pub(crate) struct ExpandedMask<'a, A> {
    mask: &'a MaskOperand<'a, A>,
    strides: Dims,
}

impl<A: Float> ExpandedMask<'_, A> {
    /// The mask of the head with this index.
    pub(crate) fn matrix(&self, index: &[usize]) -> Mask<'_, A> {
        let start = index.iter().zip(&self.strides).map(|(index, stride)| index * stride).sum::<usize>();
        let (row, col) = (self.strides[index.len()], self.strides[index.len() + 1]);
        match self.mask {
            MaskOperand::Added(it) => {
                Mask::Added(MatrixView { data: it.data().get(start..).unwrap_or_default(), row, col })
            }
            MaskOperand::Kept(it) => {
                Mask::Kept(MatrixView { data: it.data().get(start..).unwrap_or_default(), row, col })
            }
        }
    }
}

/// The matrix of an operand that begins here.
pub(crate) fn matrix<'a, A: Element>(side: &'a Strided<'_, A>, start: usize) -> MatrixView<'a, A> {
    let data = side.data().get(start..).unwrap_or_default();
    let rank = side.strides.len();
    MatrixView { data, row: side.strides[rank - 2], col: side.strides[rank - 1] }
}

/// The index of the `at`-th item of these sizes.
pub(crate) fn unravel(mut at: usize, sizes: &[usize]) -> Dims {
    let mut index: Dims = smallvec::smallvec![0; sizes.len()];
    for (index, &size) in index.iter_mut().zip(sizes).rev() {
        *index = at % size;
        at /= size;
    }
    index
}

/// The operands of a head.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a, A> {
    pub(crate) query: MatrixView<'a, A>,
    pub(crate) key: MatrixView<'a, A>,
    pub(crate) value: MatrixView<'a, A>,
    pub(crate) mask: Option<Mask<'a, A>>,
}

/// The mask of a head.
#[derive(Clone, Copy)]
pub(crate) enum Mask<'a, A> {
    Added(MatrixView<'a, A>),
    Kept(MatrixView<'a, Bool8>),
}

/// Scores of a block of rows that stay in a small second-level cache.
const SCORES: usize = 1 << 16;

/// The rows of a block where whole heads have too many scores, at least: a multiple of the rows of every tile.
const ROWS: usize = 48;

/// Attention of heads, each of which `head` gives by its number.
pub(crate) struct Attend<'a, A, H> {
    /// The instructions of products.
    pub(crate) level: Level,
    /// The keys of a head.
    pub(crate) n_columns: usize,
    /// The elements of a key.
    pub(crate) n_features: usize,
    pub(crate) scale: A,
    /// What is added to scores that a mask of bools does not count.
    pub(crate) masked: A,
    pub(crate) is_causal: bool,
    /// Whether a row that is masked altogether gives zeros; else it gives what is no number.
    pub(crate) is_safe: bool,
    pub(crate) head: &'a H,
}

/// Some rows of a head: those from `first` on, which `target` has.
struct Block<'a, A> {
    head: usize,
    first: usize,
    n_rows: usize,
    target: Option<OutputView<'a, A>>,
    /// The logarithms of the sums of exponentials; empty where nobody asks for them.
    sums: &'a mut [f64],
}

/// The keys and values of a head, laid out.
struct Packed<'a, A> {
    room: &'a mut [A],
    sides: Option<[PackedRhs<A, &'a [A]>; 2]>,
}

impl<'a, A: Float + GemmElement, H: Fn(usize) -> Head<'a, A> + Sync> Attend<'_, A, H> {
    /// Writes the result, a tensor of these sizes and strides whose last dimensions are rows and values, and the logarithm of
    /// each row's sum of exponentials, where there is room for them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn run(&self, out: &mut [A], sizes: &[usize], strides: &[usize], sums: &mut [f64]) -> Result<()> {
        let [.., n_rows, n_values] = *sizes else { unreachable!("attention has a matrix for each head") };
        let n_in_block = self.rows_in_block(n_rows);
        let n_blocks = n_rows.div_ceil(n_in_block.max(1));
        let views = OutputView::blocks(out, sizes, strides, n_in_block)?;
        let (mut blocks, mut rest) = (with_room(views.len())?, sums);
        for (at, target) in views.into_iter().enumerate() {
            let (head, first) = (at / n_blocks, at % n_blocks * n_in_block);
            let n_rows = n_in_block.min(n_rows - first);
            let n_sums = n_rows.min(rest.len());
            let (sums, others) = take(&mut rest).split_at_mut(n_sums);
            rest = others;
            blocks.push(Block { head, first, n_rows, target: Some(target), sums });
        }
        if n_blocks > 1 && self.n_features > 0 && n_values > 0 {
            return self.packed(&mut blocks, n_values);
        }
        let together = (TOGETHER / (n_rows * self.n_columns * self.n_features.max(n_values)).max(1)).max(1);
        parallel::try_parts_mut(&mut blocks, together, |_, blocks| {
            blocks.iter_mut().try_for_each(|it| self.block(it, n_values, &(self.head)(it.head), None))
        })
    }

    /// The rows of a block. Where scores are masked by their places, short blocks leave out more of them.
    fn rows_in_block(&self, n_rows: usize) -> usize {
        let fitting = SCORES / self.n_columns.max(1) / ROWS * ROWS;
        let most = if self.is_causal { ROWS } else { fitting.max(ROWS) };
        n_rows.min(most)
    }

    /// Computes blocks of heads whose keys and values are laid out once: neighbours that have the same ones share them.
    fn packed(&self, blocks: &mut [Block<'_, A>], n_values: usize) -> Result<()> {
        let n_heads = blocks.last().map_or(0, |it| it.head + 1);
        let (mut heads, mut packed_of) = (with_room(n_heads)?, with_room(n_heads)?);
        for head in (0..n_heads).map(|it| (self.head)(it)) {
            let is_same = |last: &Head<'_, A>| is_same(&last.key, &head.key) && is_same(&last.value, &head.value);
            if !heads.last().is_some_and(is_same) {
                heads.push(head);
            }
            packed_of.push(heads.len() - 1);
        }
        let (level, n, k) = (self.level, self.n_columns, self.n_features);
        let room = [PackedRhs::<A>::room(level, n, k), PackedRhs::<A>::room(level, n_values, n)];
        scratch::with::<A, _>(heads.len() * (room[0] + room[1]), |all| {
            let rooms = all.chunks_exact_mut(room[0] + room[1]);
            let mut packed = collected(rooms.map(|room| Packed { room, sides: None }))?;
            parallel::parts_mut(&mut packed, 1, |at, packed| {
                for (head, packed) in heads[at..].iter().zip(packed) {
                    let (keys, values) = take(&mut packed.room).split_at_mut(room[0]);
                    let keys = PackedRhs::within(level, n, k, &head.key.transposed(), keys);
                    packed.sides = Some([keys, PackedRhs::within(level, n_values, n, &head.value, values)]);
                }
            });
            parallel::try_parts_mut(blocks, 1, |_, blocks| {
                blocks.iter_mut().try_for_each(|it| {
                    let packed = packed[packed_of[it.head]].sides.as_ref();
                    self.block(it, n_values, &(self.head)(it.head), packed)
                })
            })
        })
    }

    fn block(
        &self,
        block: &mut Block<'_, A>,
        n_values: usize,
        head: &Head<'a, A>,
        packed: Option<&[PackedRhs<A, &[A]>; 2]>,
    ) -> Result<()> {
        let Some(target) = block.target.take() else { return Ok(()) };
        let (first, m) = (block.first, block.n_rows);
        let n_columns = if self.is_causal { self.n_columns.min(first + m) } else { self.n_columns };
        let from = |it: &MatrixView<'a, A>| it.data.get(first * it.row..).unwrap_or_default();
        let query = MatrixView { data: from(&head.query), ..head.query };
        scratch::with::<A, _>(m * n_columns, |weights| {
            let size = Extent { m, n: n_columns, k: self.n_features };
            let to = MatrixViewMut { data: weights, row: n_columns };
            match packed {
                Some([keys, _]) => gemm_packed(size, to, query, keys, Start::Zero)?,
                None => gemm_on(self.level, size, to, query, head.key.transposed(), Start::Zero)?,
            }
            if n_columns > 0 {
                isa::run(Weights {
                    weights,
                    sums: &mut *block.sums,
                    mask: head.mask,
                    first,
                    n_columns,
                    scale: self.scale,
                    masked: self.masked,
                    is_causal: self.is_causal,
                    is_safe: self.is_safe,
                });
            }
            let size = Extent { m, n: n_values, k: n_columns };
            let weights = MatrixView { data: weights, row: n_columns, col: 1 };
            match packed {
                Some([_, values]) => gemm_packed_into(size, target, weights, values, Start::Zero),
                None if n_values == 0 => Ok(()),
                None => gemm_into(self.level, size, target, weights, head.value, Start::Zero),
            }
        })
    }
}

/// Whether both are the same elements.
fn is_same<A>(a: &MatrixView<'_, A>, b: &MatrixView<'_, A>) -> bool {
    std::ptr::eq(a.data, b.data) && (a.row, a.col) == (b.row, b.col)
}

/// The scores of some rows of a head, from `first` on, which become its weights.
struct Weights<'a, 'b, A> {
    weights: &'a mut [A],
    sums: &'a mut [f64],
    mask: Option<Mask<'b, A>>,
    first: usize,
    n_columns: usize,
    scale: A,
    masked: A,
    is_causal: bool,
    is_safe: bool,
}

impl<A: Float> Work for Weights<'_, '_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (at, weights) in self.weights.chunks_exact_mut(self.n_columns).enumerate() {
            let (row, scale) = (self.first + at, self.scale);
            let each = weights.iter_mut();
            match &self.mask {
                None => each.for_each(|it| *it *= scale),
                Some(Mask::Added(mask)) => {
                    let added = &mask.data[row * mask.row..];
                    match mask.col {
                        1 => each.zip(added).for_each(|(it, &added)| *it = *it * scale + added),
                        col => each.enumerate().for_each(|(at, it)| *it = *it * scale + added[at * col]),
                    }
                }
                Some(Mask::Kept(mask)) => {
                    let kept = &mask.data[row * mask.row..];
                    let added = |it: &Bool8| if it.get() { A::ZERO } else { self.masked };
                    match mask.col {
                        1 => each.zip(kept).for_each(|(it, kept)| *it = *it * scale + added(kept)),
                        col => each.enumerate().for_each(|(at, it)| *it = *it * scale + added(&kept[at * col])),
                    }
                }
            }
            if self.is_causal {
                weights[(row + 1).min(self.n_columns)..].fill(A::LOWEST);
            }
            let (max, sum) = softmax(weights, self.is_safe);
            if let Some(it) = self.sums.get_mut(at) {
                // Of a row that is masked altogether there is no sum.
                *it = if sum == A::ZERO { 0.0 } else { (max + sum.ln()).to_f64() };
            }
        }
    }
}

/// Replaces a row of scores by its softmax, and gives back the largest score and the sum of exponentials: zero for a row that is masked altogether
/// and shall be zeros.
#[inline(always)]
fn softmax<A: Float>(row: &mut [A], is_safe: bool) -> (A, A) {
    let max = fold_lane(row, A::LOWEST, A::larger, A::larger);
    if is_safe && max == A::LOWEST {
        row.fill(A::ZERO);
        return (max, A::ZERO);
    }
    row.iter_mut().for_each(|it| *it = (*it - max).exp());
    let sum = fold_lane(row, A::ZERO, |sum, it| sum + it, |a, b| a + b);
    let factor = A::ONE / sum;
    row.iter_mut().for_each(|it| *it *= factor);
    (max, sum)
}
