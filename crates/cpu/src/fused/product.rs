//! Products of matrices whose right side is constant. It is packed whatever its strides are and however few rows the left
//! side has: panels are read once and in order, as fast as the memory gives them. Those in float16 and bfloat16 are computed in
//! float32, and their right side stays as narrow as it is.

use crate::fused::epilogue::{Folded, Tail};
use crate::gemm::blocked::{BlockedGemm, Epilogue as _, LhsRows, PackedRhs};
use crate::gemm::narrow::NarrowRhs;
use crate::gemm::output_view::OutputView;
use crate::gemm::{Extent, MatrixView};
use crate::numeric::dense::{self, Dense};
use crate::numeric::isa::Level;
use crate::numeric::map::convert_all;
use crate::numeric::scratch;
use tracefx_core::allocate::collected;
use tracefx_core::{Diagnostic, Element, Result, Tensor};
use tracefx_plan::Product;

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

/// A product in float16 or bfloat16, with its right side laid out.
pub(super) struct NarrowProduct<S> {
    rhs: NarrowRhs<S>,
    /// The rows and columns of the right side.
    sizes: [usize; 2],
    folded: Folded,
}

impl<S: Element> NarrowProduct<S> {
    /// # Errors
    /// `NotImplemented` where a factor for each column follows, or there are no terms; `OutOfMemory`.
    pub(super) fn new(step: &Product<Tensor>) -> Result<Self> {
        let (rhs, sizes) = (&step.rhs, [step.rhs.sizes()[0], step.rhs.sizes()[1]]);
        if step.epilogue.norm.is_some() || sizes[0] == 0 {
            return Err(Diagnostic::unsupported_dtype(rhs.dtype(), "a product of no terms, or with a normalisation"));
        }
        let read = rhs.storage().read();
        let (data, [row, col]) = (read.elements::<S>(), [rhs.strides()[0], rhs.strides()[1]]);
        let data = if sizes[1] == 0 { data } else { &data[rhs.offset()..] };
        let rhs = NarrowRhs::new(Level::of_fast_steps(), sizes[1], sizes[0], MatrixView { data, row, col })?;
        Ok(NarrowProduct { rhs, sizes, folded: Folded::new(&step.epilogue)? })
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, step: &Product<Tensor>) -> Result<()> {
        let ([k, n], m) = (self.sizes, step.lhs.sizes()[0]);
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
            BlockedGemm {
                level: self.rhs.level,
                size: Extent { m, n, k },
                target: OutputView::new(out, [m, n], [n, 1]),
                lhs: MatrixView { data: &*rows, row: k, col: 1 },
                rhs: &self.rhs,
                start: self.folded.start(0),
                epilogue: Tail::new(before, n, step.epilogue.activation),
            }
            .run_narrow();
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
            for (i, row) in out.chunks_exact_mut(n_channels).enumerate() {
                let row = &mut row[channel..][..self.n];
                row.iter_mut().enumerate().for_each(|(j, it)| [*it] = tail.apply(i, j, [start.of(i, j, 0.0)]));
                tail.finish(row.into());
            }
            return;
        }
        let target = OutputView::new(&mut out[channel..], [n_rows, self.n], [n_channels, 1]);
        BlockedGemm { level: self.level, size, target, lhs, rhs: &self.panels, start, epilogue: tail }.run_packed();
    }
}
