//! Products of matrices whose right side is constant. It is packed whatever its strides are and however few rows the left
//! side has: panels are read once and in order, as fast as the memory gives them. Those in float16 and bfloat16 are computed in
//! float32, and their right side stays as narrow as it is, as a right side of integers does.

use crate::fused::SAME;
use crate::fused::epilogue::{Folded, Tail};
use crate::gemm::blocked::{BlockedGemm, Epilogue as _, LhsRows, PackedRhs};
use crate::gemm::narrow::{NarrowColumns, NarrowRhs};
use crate::gemm::output_view::OutputView;
use crate::gemm::quantized::{Affine, QuantizedRhs};
use crate::gemm::{Extent, MatrixView, Start};
use crate::numeric::dense::{self, Dense};
use crate::numeric::isa::Level;
use crate::numeric::map::{cast, convert_all};
use crate::numeric::scratch;
use tracefx_core::allocate::collected;
use tracefx_core::{DType, Diagnostic, Element, Result, Tensor};
use tracefx_plan::{DequantizedProduct, Int4Tiles, IntegerLayout, Product};

/// A product with its right side packed.
pub(super) struct ProductKernel {
    rhs: Packed,
    folded: Folded,
}

impl ProductKernel {
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(step: &Product<Tensor>) -> Result<Self> {
        let (k, n) = (step.rhs.sizes()[0], step.rhs.sizes()[1]);
        let folded = Folded::new(&step.epilogue)?;
        // Columns one after the other, as weights of linear layers lie.
        let rhs = step.rhs.permuted(&[1, 0]).to_vec::<f32>()?;
        let rhs = collected(rhs.iter().enumerate().map(|(at, &it)| folded.scaled(it, at / k)))?;
        Ok(ProductKernel { rhs: Packed::new(&rhs, n, k)?, folded })
    }

    /// # Errors
    /// Never.
    pub(super) fn run(&self, lhs: &[f32], tail: Tail<'_>, out: &mut [f32]) -> Result<()> {
        let (n, k) = (self.rhs.n, self.rhs.k);
        let lhs = MatrixView { data: lhs, row: k, col: 1 };
        let n_rows = out.len().checked_div(n).unwrap_or(0);
        self.rhs.multiply(n_rows, lhs, &self.folded, 0, tail, out);
        Ok(())
    }
}

/// A product in any dtype of numbers, whose right side is laid out in fewer bits.
pub(super) struct NarrowProduct<C> {
    rhs: C,
    folded: Folded,
}

impl<S: Element> NarrowProduct<NarrowRhs<S>> {
    /// A product in float16 or bfloat16.
    ///
    /// # Errors
    /// `NotImplemented` where a factor for each column follows; `OutOfMemory`.
    pub(super) fn new(step: &Product<Tensor>) -> Result<Self> {
        let (rhs, [k, n]) = (&step.rhs, [step.rhs.sizes()[0], step.rhs.sizes()[1]]);
        check_narrow(step)?;
        let read = rhs.storage().read();
        let (data, [row, col]) = (read.elements::<S>(), [rhs.strides()[0], rhs.strides()[1]]);
        let data = data.get(rhs.offset()..).unwrap_or_default();
        let rhs = NarrowRhs::new(Level::of_fast_steps(), n, k, MatrixView { data, row, col })?;
        Ok(NarrowProduct { rhs, folded: Folded::new(&step.epilogue)? })
    }
}

impl NarrowProduct<QuantizedRhs> {
    /// A product whose right side are integers, with these instructions.
    ///
    /// # Errors
    /// As of one in float16.
    pub(super) fn dequantizing(step: &DequantizedProduct<Tensor>, level: Level) -> Result<Self> {
        let (rhs, it) = (&step.product.rhs, &step.dequantization);
        let Some([k, n]) = it.layout.columns(rhs.sizes()) else { unreachable!("{SAME}") };
        check_narrow(&step.product)?;
        let numbers = |it: &Option<Tensor>| {
            let Some(it) = it else { return Ok(None) };
            cast(it, DType::Float32)?.to_vec::<f32>().map(Some)
        };
        let [zeros, scales, shifts] = [numbers(&it.zero_points)?, numbers(&it.scales)?, numbers(&it.shifts)?];
        let affine = |group: usize, col: usize| {
            let number = |of: &Option<Vec<f32>>, none: f32| of.as_ref().map_or(none, |of| of[group * n + col]);
            Affine {
                zero: it.zero_point as f32 + number(&zeros, 0.0),
                scale: (it.scale * f64::from(number(&scales, 1.0))) as f32,
                shift: number(&shifts, 0.0),
            }
        };
        let sizes = [n, k];
        let rounding = Some(step.product.lhs.dtype()).filter(|dtype| it.is_rounded && *dtype != DType::Float32);
        let read = rhs.storage().read();
        let rhs = match it.layout {
            IntegerLayout::Int4Tiles => {
                let Some(tiles) = Int4Tiles::of(rhs.sizes()) else { unreachable!("{SAME}") };
                let words = read.elements::<i32>().get(rhs.offset()..).unwrap_or_default();
                let integer = |row: usize, col: usize| {
                    let (word, below) = tiles.place(row, col);
                    words[word] >> below & 15
                };
                QuantizedRhs::new(level, sizes, it.group_size, rounding, integer, affine)?
            }
            IntegerLayout::Bytes => {
                let bytes = read.elements::<u8>().get(rhs.offset()..).unwrap_or_default();
                let (strides, is_signed) = (rhs.strides(), rhs.dtype() == DType::Int8);
                let integer = |row: usize, col: usize| {
                    let it = bytes[row * strides[0] + col * strides[1]];
                    if is_signed { i32::from(it as i8) } else { i32::from(it) }
                };
                QuantizedRhs::new(level, sizes, it.group_size, rounding, integer, affine)?
            }
        };
        Ok(NarrowProduct { rhs, folded: Folded::new(&step.product.epilogue)? })
    }
}

/// Refuses what narrow products cannot do.
fn check_narrow(step: &Product<Tensor>) -> Result<()> {
    match step.epilogue.norm.is_some() {
        true => Err(Diagnostic::unsupported_dtype(step.rhs.dtype(), "a product with a normalisation")),
        false => Ok(()),
    }
}

/// Writes `n` columns of sums of nothing, from `channel` on of the channels of `out`, with what follows.
fn write_nothing(n: usize, channel: usize, start: Start<'_, f32>, tail: Tail<'_>, out: &mut [f32]) {
    for (i, row) in out.chunks_exact_mut(tail.n_channels()).enumerate() {
        let row = &mut row[channel..][..n];
        row.iter_mut().enumerate().for_each(|(j, it)| [*it] = tail.apply(i, j, [start.of(i, j, 0.0)]));
        tail.finish(row.into());
    }
}

impl<C: NarrowColumns> NarrowProduct<C> {
    /// Runs it on tensors of numbers in `S`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run<S: Element>(&self, step: &Product<Tensor>) -> Result<()> {
        let ([n, k], m) = (self.rhs.sizes(), step.lhs.sizes()[0]);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let (lhs, residual) = (Dense::new(&step.lhs)?, step.epilogue.residual.as_ref().map(Dense::new).transpose()?);
        let n_before = if residual.is_some() { m * n } else { 0 };
        scratch::with::<f32, _>(m * k + n_before + m * n, |buffer| {
            let (rows, rest) = buffer.split_at_mut(m * k);
            let (before, out) = rest.split_at_mut(n_before);
            convert_all(&lhs.read::<S>(), rows);
            residual.iter().for_each(|it| convert_all(&it.read::<S>(), before));
            let before = residual.is_some().then_some(&*before);
            if k == 0 {
                let tail = Tail::new(before, n, step.epilogue.activation);
                write_nothing(n, 0, self.folded.start(0), tail, out);
                dense::fill::<S, _>(&step.result, |to| convert_all(out, to));
                return Ok(());
            }
            C::run(&BlockedGemm {
                level: self.rhs.level(),
                size: Extent { m, n, k },
                target: OutputView::new(out, [m, n], [n, 1]),
                lhs: MatrixView { data: &*rows, row: k, col: 1 },
                rhs: &self.rhs,
                start: self.folded.start(0),
                epilogue: Tail::new(before, n, step.epilogue.activation),
            });
            dense::fill::<S, _>(&step.result, |to| convert_all(out, to));
            Ok(())
        })
    }
}

/// The packed weight of a product.
pub(super) struct Packed {
    level: Level,
    n: usize,
    k: usize,
    panels: PackedRhs<f32>,
}

impl Packed {
    /// Packs `n` columns of `k` numbers, one column after the other.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new(columns: &[f32], n: usize, k: usize) -> Result<Self> {
        let level = Level::of_fast_steps();
        let columns = MatrixView { data: columns, row: 1, col: k };
        Ok(Packed { level, n, k, panels: PackedRhs::new(level, n, k, &columns)? })
    }

    /// Writes the products of the left side with these columns, which are the channels from `channel` on of `out`.
    pub(super) fn multiply<L: LhsRows<f32>>(
        &self,
        n_rows: usize,
        lhs: L,
        folded: &Folded,
        channel: usize,
        tail: Tail<'_>,
        out: &mut [f32],
    ) {
        if n_rows == 0 || self.n == 0 {
            return;
        }
        let (size, tail, start) =
            (Extent { m: n_rows, n: self.n, k: self.k }, tail.from(0, channel), folded.start(channel));
        let n_channels = tail.n_channels();
        if self.k == 0 {
            write_nothing(self.n, channel, start, tail, out);
            return;
        }
        let target = OutputView::new(&mut out[channel..], [n_rows, self.n], [n_channels, 1]);
        BlockedGemm { level: self.level, size, target, lhs, rhs: &self.panels, start, epilogue: tail }.run_packed();
    }
}
