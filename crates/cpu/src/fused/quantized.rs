//! Convolutions of integers of eight bits, and products: sums are exact in int32. The patches of some points are gathered as rows of
//! words ([`Dots`]), which fit a second-level cache; that costs little, because each byte is multiplied with all filters. Filters are
//! laid out in panels once. What follows is done to a tile of sums in the registers: sums become numbers by a factor and an addend of each
//! filter, in units of the integers that they are rounded to.

use crate::fused::convolution::{Geometry, four};
use crate::numeric::activation::Activation as _;
use crate::numeric::dense::{self, Dense};
use crate::numeric::isa::{DotWork, Dots, Level};
use crate::numeric::{parallel, scratch};
use bytemuck::cast_slice_mut;
use tracefx_core::allocate::{collected, filled};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_plan::{QuantizedConvolution, Rounding};

/// The words of the patches that are gathered together.
const GATHERED: usize = 1 << 16;

/// Multiplications that are worth a part.
const SHARED: usize = 1 << 18;

/// The magnitude of numbers that have no place for a fraction: a number that is added to it is rounded to an integer, and a half to
/// the even neighbour. The lowest bits of the sum are the integer.
const WHOLE: f32 = 12_582_912.0;

/// Runs a block with `$M` and `$V` bound to the rows and vectors of a tile that the registers of `$I` hold, `$EDGE` to the rows
/// of one where few are left, and `$N` to the columns.
macro_rules! with_tile {
    ($I:ident, |$M:ident, $EDGE:ident, $V:ident, $N:ident| $body:expr) => {{
        macro_rules! tile {
            ($m:literal, $edge:literal, $v:literal, $lanes:literal) => {{
                const $M: usize = $m;
                const $EDGE: usize = $edge;
                const $V: usize = $v;
                const $N: usize = $v * $lanes;
                $body
            }};
        }
        match $I::WIDTH {
            64 => tile!(12, 4, 2, 16),
            32 => tile!(6, 2, 2, 8),
            _ => tile!(4, 1, 2, 4),
        }
    }};
}

/// A convolution with its filters laid out.
pub(super) struct QuantizedKernel {
    level: Level,
    /// The words of a patch in a group.
    n_words: usize,
    /// The columns of all panels of a group.
    n_cols: usize,
    /// The words of the filters, `[groups, n_cols / N, n_words, N]` for panels of `N` columns.
    panels: Vec<u32>,
    /// What sums start from, what they are multiplied with, and what is added then, `[groups, n_cols]`.
    starts: Vec<i32>,
    factors: Vec<f32>,
    addends: Vec<f32>,
    tail: Tail,
}

/// What follows the sums of all filters.
#[derive(Clone, Copy)]
struct Tail {
    /// The limits of what numbers are rounded to before the residual is added, and the factor that makes of it numbers in units of the result.
    inner: Option<([f32; 2], f32)>,
    /// What the bytes of the residual are flipped with, what is zero then, and the factor that makes of them numbers in units of the result.
    residual: (u8, i32, f32),
    limits: [f32; 2],
    /// The integer that is zero, where the result is integers.
    zero_point: Option<i32>,
}

/// What integers are flipped with to be unsigned ones, in another order of the same.
pub(super) fn flip_of(dtype: DType) -> u8 {
    if dtype == DType::Int8 { 0x80 } else { 0 }
}

/// The rows and columns of a tile.
struct TileShape;

impl DotWork for TileShape {
    type Output = [usize; 2];

    #[inline(always)]
    fn run<I: Dots>(self) -> [usize; 2] {
        with_tile!(I, |M, _EDGE, _V, N| [M, N])
    }
}

/// Whether words are bytes.
struct HasBytes;

impl DotWork for HasBytes {
    type Output = bool;

    #[inline(always)]
    fn run<I: Dots>(self) -> bool {
        I::BYTES
    }
}

impl Tail {
    fn new(step: &QuantizedConvolution<Tensor>) -> Self {
        let unit = step.rounding.map_or(1.0, |it| it.scale);
        let range = |it: Rounding| [it.min - it.zero_point, it.max - it.zero_point].map(|it| it as f32);
        let mut limits = step.limits.map(|it| (f64::from(it) / unit) as f32);
        if let Some([min, max]) = step.rounding.map(range) {
            limits = limits.map(|it| it.clamp(min, max));
        }
        let residual = step.residual.as_ref().map(|it| {
            let flip = flip_of(it.tensor.dtype());
            (flip, it.zero_point + i32::from(flip), (it.scale / unit) as f32)
        });
        Tail {
            inner: step.inner.map(|it| (range(it), (it.scale / unit) as f32)),
            residual: residual.unwrap_or_default(),
            limits,
            zero_point: step.rounding.map(|it| it.zero_point),
        }
    }
}

impl QuantizedKernel {
    /// # Errors
    /// `NotImplemented` where a zero of a filter is no integer of eight bits; `OutOfMemory`.
    pub(super) fn new(step: &QuantizedConvolution<Tensor>) -> Result<Self> {
        let [n_filters, n_in, kh, kw] = four(step.weight.sizes());
        let (n_taps, n_out) = (kh * kw, n_filters / step.window.groups);
        let k = n_in * n_taps;
        let weight = step.weight.to_vec::<i8>()?;
        let zeros = step.weight_zero_points.as_ref().map(Tensor::to_vec::<i64>).transpose()?;
        if zeros.iter().flatten().any(|it| i8::try_from(*it).is_err()) {
            return Err(Diagnostic::new(Code::NotImplemented, "a filter's zero is not an integer of eight bits"));
        }
        // Bytes have no place for a difference of two.
        let is_zero = zeros.iter().flatten().all(|it| *it == 0);
        let level = if is_zero { Level::best() } else { Level::best().without_bytes() };
        let has_bytes = level.run_dots(HasBytes);
        let [_, width] = level.run_dots(TileShape);
        let n_words = k.div_ceil(if has_bytes { 4 } else { 2 }).max(1);
        let n_cols = n_out.next_multiple_of(width);
        let zero = |filter: usize| zeros.as_ref().map_or(0, |it| it[filter] as i16);
        // A patch has the taps one after the other, and in each its channels.
        let element = |filter: usize, at: usize| match at < k {
            true => i16::from(weight[filter * k + at % n_in * n_taps + at / n_in]) - zero(filter),
            false => 0,
        };
        // The filter of a column, where there is one.
        let filter = |at: usize| Some(at / n_cols * n_out + at % n_cols).filter(|_| at % n_cols < n_out);
        let n_all = step.window.groups * n_cols;
        let word = |at: usize| {
            let (panel, at) = (at / (n_words * width), at % (n_words * width));
            let (col, at) = (panel * width + at % width, at / width);
            let Some(filter) = filter(col) else { return 0 };
            match has_bytes {
                true => u32::from_le_bytes([0, 1, 2, 3].map(|it| element(filter, 4 * at + it) as u8)),
                false => [0, 1].map(|it| u32::from(element(filter, 2 * at + it) as u16) << (16 * it)).iter().sum(),
            }
        };
        let mut panels = filled(0, n_all * n_words)?;
        let part = n_words * width;
        parallel::parts_mut(&mut panels, part, |first, panel| {
            panel.iter_mut().enumerate().for_each(|(at, to)| *to = word(first + at));
        });
        let input_zero = step.zero_point + i32::from(flip_of(step.input.dtype()));
        let start = |filter: usize| match has_bytes {
            true => (0..k).fold(0i32, |sum, at| sum - i32::from(weight[filter * k + at])) * input_zero,
            // Zeros are subtracted before.
            false => 0,
        };
        let numbers = |it: &Option<Tensor>| it.as_ref().map(Tensor::to_vec::<f32>).transpose();
        let (scales, bias) = (numbers(&step.scales)?, numbers(&step.bias)?);
        // The unit of what sums are rounded to.
        let unit = step.inner.or(step.rounding).map_or(1.0, |it| it.scale);
        let of = |it: &Option<Vec<f32>>, filter: usize, none: f32| f64::from(it.as_ref().map_or(none, |it| it[filter]));
        let factor = |filter: usize| (of(&scales, filter, 1.0) * step.scale / unit) as f32;
        let addend = |filter: usize| (of(&bias, filter, 0.0) / unit) as f32;
        Ok(QuantizedKernel {
            level,
            n_words,
            n_cols,
            panels,
            starts: collected((0..n_all).map(|at| filter(at).map_or(0, start)))?,
            factors: collected((0..n_all).map(|at| filter(at).map_or(0.0, factor)))?,
            addends: collected((0..n_all).map(|at| filter(at).map_or(0.0, addend)))?,
            tail: Tail::new(step),
        })
    }

    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn run(&self, step: &QuantizedConvolution<Tensor>) -> Result<()> {
        let geometry = Geometry::new(four(step.input.sizes()), four(step.weight.sizes()), step.window);
        if step.result.numel() == 0 {
            return Ok(());
        }
        let flip = flip_of(step.input.dtype());
        let (images, residual) = (Dense::new(&step.input)?, step.residual.as_ref());
        let residual = residual.map(|it| Dense::new(&it.tensor)).transpose()?;
        let (images, residual) = (images.bytes(), residual.as_ref().map(Dense::bytes));
        let convolve = |out: &mut [u8]| {
            let images = Images { bytes: &images, flip, zero: step.zero_point + i32::from(flip) };
            self.convolve(&geometry, images, residual.as_deref(), out)
        };
        match step.rounding {
            Some(_) => dense::fill_bits(&step.result, convolve),
            None => dense::fill::<f32, _>(&step.result, |out| convolve(cast_slice_mut(out))),
        }
    }

    fn convolve(&self, it: &Geometry, images: Images<'_>, residual: Option<&[u8]>, out: &mut [u8]) -> Result<()> {
        let [height, _] = self.level.run_dots(TileShape);
        let row = it.filters * if self.tail.zero_point.is_some() { 1 } else { 4 };
        let (n_points, n_words) = (out.len() / row, self.n_words * it.groups);
        // Sums are the same whatever the parts are.
        let fair = n_points.div_ceil(parallel::n_threads());
        let least = SHARED / (n_words * self.n_cols);
        let n_rows = fair.max(least).min(GATHERED / n_words).max(1).next_multiple_of(height);
        parallel::try_parts_mut(out, n_rows * row, |first, out| {
            let (first, n_rows) = (first / row, out.len() / row);
            scratch::with::<u32, _>(n_rows * self.n_words, |words| {
                for group in 0..it.groups {
                    self.level.run_dots(Gather { geometry: it, images, group, first, words, n_words: self.n_words });
                    let residual = residual.map(|bytes| &bytes[first * it.filters..][..n_rows * it.filters]);
                    self.level.run_dots(Multiply { kernel: self, geometry: it, group, words, residual, out });
                }
                Ok(())
            })
        })
    }
}

/// Images that are convolved: their integers as unsigned ones, with what is zero then.
#[derive(Clone, Copy)]
struct Images<'a> {
    bytes: &'a [u8],
    flip: u8,
    zero: i32,
}

/// Lays the patches of some points out, in rows of words.
struct Gather<'a> {
    geometry: &'a Geometry,
    images: Images<'a>,
    group: usize,
    /// The first point of all images.
    first: usize,
    words: &'a mut [u32],
    /// The words of a row.
    n_words: usize,
}

impl DotWork for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Dots>(self) {
        let Images { flip, zero, .. } = self.images;
        if I::BYTES {
            self.fill::<u8>(zero as u8, |it| it ^ flip);
        } else {
            // What is zero is subtracted.
            self.fill::<i16>(0, |it| i16::from(it ^ flip) - zero as i16);
        }
    }
}

impl Gather<'_> {
    /// Fills rows of these elements.
    #[inline(always)]
    fn fill<T: bytemuck::Pod>(self, padding: T, element: impl Fn(u8) -> T) {
        let it = self.geometry;
        let n_in = it.n_in();
        // Taps whose channels lie side by side.
        let n_joined = if it.groups == 1 && it.dilation[1] == 1 { it.kernel[1] } else { 1 };
        let (words, row) = (cast_slice_mut::<u32, T>(self.words), self.n_words * 4 / size_of::<T>());
        if it.groups == 1 && it.is_pointwise() && row == it.channels {
            // The points lie as their patches do.
            let from = &self.images.bytes[self.first * row..];
            return words.iter_mut().zip(from).for_each(|(to, it)| *to = element(*it));
        }
        let rows = words.chunks_exact_mut(row);
        for (at, row) in rows.enumerate() {
            let (image, [y, x]) = it.point(self.first + at);
            let (patch, rest) = row.split_at_mut(it.n_taps() * n_in);
            rest.fill(T::zeroed());
            for (at, taps) in patch.chunks_exact_mut((n_joined * n_in).max(1)).enumerate() {
                let tap = at * n_joined;
                let y = (y * it.stride[0] + tap / it.kernel[1] * it.dilation[0]).wrapping_sub(it.padding[0]);
                // The place of the first tap in the padded row, and how many taps see the image.
                let x = x * it.stride[1] + tap % it.kernel[1] * it.dilation[1];
                let before = it.padding[1].saturating_sub(x).min(n_joined);
                let end = (it.padding[1] + it.image[1]).saturating_sub(x).clamp(before, n_joined);
                if y >= it.image[0] || before == end {
                    taps.fill(padding);
                    continue;
                }
                let pixel = (image * it.image[0] + y) * it.image[1] + x + before - it.padding[1];
                let from = &self.images.bytes[pixel * it.channels + self.group * n_in..][..(end - before) * n_in];
                let (left, taps) = taps.split_at_mut(before * n_in);
                let (seen, right) = taps.split_at_mut(from.len());
                left.fill(padding);
                convert(from, seen, &element);
                right.fill(padding);
            }
        }
    }
}

/// Gives integers of eight bits as other elements, of which there are as many.
#[inline(always)]
fn convert<T>(from: &[u8], to: &mut [T], element: &impl Fn(u8) -> T) {
    if from.len() >= 32 {
        convert_in::<32, T>(from, to, element);
    } else if from.len() >= 8 {
        convert_in::<8, T>(from, to, element);
    } else {
        to.iter_mut().zip(from).for_each(|(to, it)| *to = element(*it));
    }
}

/// As [`convert`], some at a time. The last ones overlap: of rows as short as those of a first
/// layer, a remainder would take most of the time.
#[inline(always)]
fn convert_in<const N: usize, T>(from: &[u8], to: &mut [T], element: &impl Fn(u8) -> T) {
    let each = |from: &[u8; N], to: &mut [T; N]| {
        for at in 0..N {
            to[at] = element(from[at]);
        }
    };
    from.as_chunks().0.iter().zip(to.as_chunks_mut().0).for_each(|(from, to)| each(from, to));
    if let (Some(from), Some(to)) = (from.last_chunk(), to.last_chunk_mut()) {
        each(from, to);
    }
}

/// Multiplies rows of words with the panels of a group, and does what follows.
struct Multiply<'a> {
    kernel: &'a QuantizedKernel,
    geometry: &'a Geometry,
    group: usize,
    words: &'a [u32],
    /// The residual of the points of the rows.
    residual: Option<&'a [u8]>,
    out: &'a mut [u8],
}

impl DotWork for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Dots>(self) {
        with_tile!(I, |M, EDGE, V, N| self.panels::<I, M, EDGE, V, N>());
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn panels<I: Dots, const M: usize, const EDGE: usize, const V: usize, const N: usize>(mut self) {
        let n_rows = self.words.len() / self.kernel.n_words;
        let group = &self.kernel.panels[self.group * self.kernel.n_cols * self.kernel.n_words..];
        let panels = group.chunks_exact(N * self.kernel.n_words).take(self.kernel.n_cols / N);
        for (at, panel) in panels.enumerate() {
            let (panel, mut row) = (panel.as_chunks::<N>().0, 0);
            while row < n_rows {
                if n_rows - row <= EDGE {
                    self.tile::<I, EDGE, V, N>(row, at * N, panel);
                } else {
                    self.tile::<I, M, V, N>(row, at * N, panel);
                }
                row += M;
            }
        }
    }

    /// The rows from `first` on with a panel, whose first column this is.
    #[inline(always)]
    fn tile<I: Dots, const M: usize, const V: usize, const N: usize>(
        &mut self,
        first: usize,
        col: usize,
        panel: &[[u32; N]],
    ) {
        let n = panel.len();
        let n_rows = (self.words.len() / n - first).min(M);
        // A tile at the lower edge repeats the last row.
        let mut rows: [&[u32]; M] = [&[]; M];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = &self.words[(first + i.min(n_rows - 1)) * n..][..n];
        }
        let mut sums = [[I::zeros(); V]; M];
        for (at, words) in panel.iter().enumerate() {
            let mut with = [I::zeros(); V];
            for v in 0..V {
                with[v] = I::load(&words[v * I::LANES..]);
            }
            for i in 0..M {
                for v in 0..V {
                    sums[i][v] = I::dot(sums[i][v], rows[i][at], with[v]);
                }
            }
        }
        let at = self.group * self.kernel.n_cols + col;
        let columns = Columns {
            starts: self.kernel.starts[at..].first_chunk::<N>().expect("each column has a start"),
            factors: self.kernel.factors[at..].first_chunk::<N>().expect("each column has a factor"),
            addends: self.kernel.addends[at..].first_chunk::<N>().expect("each column has an addend"),
            n: (self.geometry.n_out() - col).min(N),
        };
        let row = self.geometry.filters;
        let place = first * row + self.group * self.geometry.n_out() + col;
        let (tail, n) = (self.kernel.tail, columns.n);
        let size = if tail.zero_point.is_some() { 1 } else { 4 };
        for (i, sums) in sums.iter().enumerate().take(n_rows) {
            let mut row_sums = [0; N];
            for (v, sums) in sums.iter().enumerate() {
                I::store(*sums, &mut row_sums[v * I::LANES..]);
            }
            let place = place + i * row;
            let residual = self.residual.map(|it| &it[place..][..n]);
            tail.finish(&columns, row_sums, residual, &mut self.out[size * place..][..size * n]);
        }
    }
}

/// What is known of the columns of a panel, and how many of them there are.
struct Columns<'a, const N: usize> {
    starts: &'a [i32; N],
    factors: &'a [f32; N],
    addends: &'a [f32; N],
    n: usize,
}

impl Tail {
    /// Does what follows the sums of a point.
    #[inline(always)]
    fn finish<const N: usize>(
        &self,
        columns: &Columns<'_, N>,
        sums: [i32; N],
        residual: Option<&[u8]>,
        out: &mut [u8],
    ) {
        // Loops, since functions of arrays are not always inlined.
        let mut res = [0.0; N];
        for j in 0..N {
            res[j] = sums[j].wrapping_add(columns.starts[j]) as f32 * columns.factors[j] + columns.addends[j];
        }
        if let Some(([min, max], factor)) = self.inner {
            for it in &mut res {
                *it = (it.clamped(min, max) + WHOLE - WHOLE) * factor;
            }
        }
        if let Some(residual) = residual {
            let (flip, zero, factor) = self.residual;
            let mut bytes = [0; N];
            match residual.as_array::<N>() {
                Some(from) => bytes = *from,
                None => bytes[..residual.len()].copy_from_slice(residual),
            }
            for j in 0..N {
                res[j] += (i32::from(bytes[j] ^ flip) - zero) as f32 * factor;
            }
        }
        let [min, max] = self.limits;
        for it in &mut res {
            *it = it.clamped(min, max);
        }
        match self.zero_point {
            Some(zero) => {
                let mut bytes = [0; N];
                for j in 0..N {
                    bytes[j] = ((res[j] + WHOLE).to_bits() as i32).wrapping_add(zero) as u8;
                }
                write(&bytes, out);
            }
            None => write(&res.map(f32::to_ne_bytes), out.as_chunks_mut().0),
        }
    }
}

/// Writes as many elements as there are places for.
#[inline(always)]
fn write<T: Copy, const N: usize>(from: &[T; N], to: &mut [T]) {
    match to.as_mut_array::<N>() {
        Some(to) => *to = *from,
        None => to.copy_from_slice(&from[..to.len()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tracefx_plan::{QuantizedResidual, Window};

    /// Integers of a dtype of eight bits.
    fn integers(dtype: DType, sizes: &[usize], seed: usize) -> Tensor {
        let n = sizes.iter().product();
        // The least and the largest ones come more often than others.
        let byte = |at: usize| match (at * 7 + seed) % 5 {
            0 => 0u8,
            1 => 255,
            _ => ((at * 7919 + seed * 104_729) % 251) as u8,
        };
        let bytes: Vec<u8> = (0..n).map(byte).collect();
        match dtype {
            DType::Int8 => Tensor::from_slice(&bytes.iter().map(|it| (it ^ 0x80) as i8).collect::<Vec<_>>(), sizes),
            _ => Tensor::from_slice(&bytes, sizes),
        }
        .unwrap()
    }

    /// All elements as numbers.
    fn numbers(it: &Tensor) -> Vec<f64> {
        match it.dtype() {
            DType::Int8 => it.to_vec::<i8>().unwrap().into_iter().map(f64::from).collect(),
            DType::UInt8 => it.to_vec::<u8>().unwrap().into_iter().map(f64::from).collect(),
            DType::Int64 => it.to_vec::<i64>().unwrap().into_iter().map(|it| it as f64).collect(),
            _ => it.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        }
    }

    fn rounded(x: f64, it: &Rounding) -> f64 {
        ((x / it.scale).round_ties_even() + f64::from(it.zero_point)).clamp(f64::from(it.min), f64::from(it.max))
    }

    /// What a step gives, by the plain loop over integers. Scales are powers of two, so that numbers are rounded where the step says so, and to float32
    /// where they have more digits than it.
    fn plain(step: &QuantizedConvolution<Tensor>) -> Vec<f64> {
        let it = Geometry::new(four(step.input.sizes()), four(step.weight.sizes()), step.window);
        let (images, weight) = (numbers(&step.input), numbers(&step.weight));
        let optional = |it: &Option<Tensor>| it.as_ref().map(numbers);
        let [zeros, scales, bias] = [&step.weight_zero_points, &step.scales, &step.bias].map(optional);
        let residual = step.residual.as_ref().map(|it| numbers(&it.tensor));
        let mut res = Vec::new();
        for point in 0..it.n_images * it.n_points() {
            for filter in 0..it.filters {
                let zero = zeros.as_ref().map_or(0.0, |it| it[filter]);
                let mut sum = 0.0;
                for tap in 0..it.n_taps() {
                    let Some(pixel) = it.pixel(point, tap) else { continue };
                    for channel in 0..it.n_in() {
                        let at = pixel * it.channels + filter / it.n_out() * it.n_in() + channel;
                        let weight = weight[(filter * it.n_in() + channel) * it.n_taps() + tap] - zero;
                        sum += (images[at] - f64::from(step.zero_point)) * weight;
                    }
                }
                let scale = step.scale * scales.as_ref().map_or(1.0, |it| it[filter]);
                let narrow = |it: f64| f64::from(it as f32);
                let mut x = narrow(narrow(sum) * scale + bias.as_ref().map_or(0.0, |it| it[filter]));
                if let Some(inner) = &step.inner {
                    x = (rounded(x, inner) - f64::from(inner.zero_point)) * inner.scale;
                }
                if let (Some(added), Some(numbers)) = (&step.residual, &residual) {
                    x = narrow(x + (numbers[res.len()] - f64::from(added.zero_point)) * added.scale);
                }
                let x = x.max(f64::from(step.limits[0])).min(f64::from(step.limits[1]));
                res.push(step.rounding.as_ref().map_or(x, |it| rounded(x, it)));
            }
        }
        res
    }

    fn check(step: &QuantizedConvolution<Tensor>) -> Result<(), TestCaseError> {
        let want = plain(step);
        for (level, got) in Level::on_each(|| {
            QuantizedKernel::new(step).unwrap().run(step).unwrap();
            numbers(&step.result)
        }) {
            let wrong = (0..want.len()).find(|&at| got[at] != want[at]);
            prop_assert!(wrong.is_none(), "{level:?} {wrong:?}: {:?}", wrong.map(|at| (got[at], want[at])));
        }
        Ok(())
    }

    fn rounding(dtype: DType, zero: u8, scale: i32) -> Rounding {
        let first = if dtype == DType::Int8 { -128 } else { 0 };
        Rounding { scale: 2f64.powi(scale), zero_point: first + i32::from(zero), min: first + 1, max: first + 250 }
    }

    /// A zero at an end of the range as often as in it.
    fn zero() -> impl Strategy<Value = u8> {
        prop_oneof![Just(0), Just(255), any::<u8>()]
    }

    fn dtype() -> impl Strategy<Value = DType> {
        prop::sample::select(vec![DType::Int8, DType::UInt8])
    }

    proptest! {
        #![proptest_config(crate::agreement::config(192))]

        #[test]
        fn sums_are_exact_and_rounded_once(
            ([n, h, w], [kh, kw]) in ([0..3usize, 1..9, 1..9], [1..4usize, 1..4]),
            (groups, n_in, n_out) in prop_oneof![
                (Just(1usize), 1..20usize, 1..70usize),
                (Just(1usize), 1..150usize, 1..5usize),
                (1..5usize, 1..6usize, 1..4usize),
                (1..40usize, Just(1usize), Just(1usize)),
            ],
            (stride, padding, dilation) in ([1..4usize, 1..4], [0..3usize, 0..3], [1..3usize, 1..3]),
            dtypes in [dtype(), dtype(), dtype()],
            zeros in [zero(), zero(), zero(), zero()],
            [has_zeros, has_scales, has_bias, has_inner, has_residual, has_limits, is_float] in any::<[bool; 7]>(),
        ) {
            let window = Window { stride, padding, dilation, groups };
            let (images, filters) = ([n, h, w, groups * n_in], [groups * n_out, n_in, kh, kw]);
            let Some(sizes) = window.result_sizes(images, filters) else { return Ok(()) };
            let first = |dtype: DType| if dtype == DType::Int8 { -128 } else { 0 };
            let each = |of: &dyn Fn(usize) -> f32| {
                Tensor::from_slice(&(0..filters[0]).map(of).collect::<Vec<_>>(), &filters[..1]).unwrap()
            };
            let weight_zero = |at: usize| [-128i64, 0, 127, 3][at % 4];
            let weight_zeros: Vec<i64> = (0..filters[0]).map(weight_zero).collect();
            let result = Tensor::zeros(if is_float { DType::Float32 } else { dtypes[1] }, &sizes).unwrap();
            // The last dimension first in memory.
            let weight = integers(DType::Int8, &filters, 1).permuted(&[3, 0, 1, 2]).compact_copy().unwrap();
            check(&QuantizedConvolution {
                input: integers(dtypes[0], &images, 2),
                zero_point: first(dtypes[0]) + i32::from(zeros[0]),
                weight: weight.permuted(&[1, 2, 3, 0]),
                weight_zero_points: has_zeros.then(|| Tensor::from_slice(&weight_zeros, &filters[..1]).unwrap()),
                window,
                scale: 2f64.powi(-11),
                scales: has_scales.then(|| each(&|at| [0.25, 1.0, 2.0][at % 3])),
                bias: has_bias.then(|| each(&|at| at as f32 / 16.0 - 2.0)),
                inner: has_inner.then(|| rounding(DType::UInt8, zeros[3], -2)),
                residual: has_residual.then(|| QuantizedResidual {
                    tensor: integers(dtypes[2], &sizes, 3),
                    scale: 0.125,
                    zero_point: first(dtypes[2]) + i32::from(zeros[2]),
                }),
                limits: if has_limits { [0.0, 6.0] } else { [f32::NEG_INFINITY, f32::INFINITY] },
                rounding: (!is_float).then(|| rounding(dtypes[1], zeros[1], -1)),
                result,
            })?;
        }
    }

    /// Groups whose channels fill a word, or less.
    #[test]
    fn pointwise_filters_of_groups_read_their_own_channels() {
        for (channels, groups) in [(2, 2), (4, 4), (4, 2), (8, 4), (8, 2), (6, 3)] {
            check(&QuantizedConvolution {
                input: integers(DType::UInt8, &[2, 5, 5, channels], 2),
                zero_point: 3,
                weight: integers(DType::Int8, &[channels, channels / groups, 1, 1], 1),
                weight_zero_points: None,
                window: Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups },
                scale: 1.0,
                scales: None,
                bias: None,
                inner: None,
                residual: None,
                limits: [f32::NEG_INFINITY, f32::INFINITY],
                rounding: None,
                result: Tensor::zeros(DType::Float32, &[2, 5, 5, channels]).unwrap(),
            })
            .unwrap();
        }
    }

    #[test]
    fn sums_of_the_largest_products_do_not_overflow() {
        let n = QuantizedConvolution::<Tensor>::MOST_TERMS;
        for (input, weight, zero) in [(255u8, -128i8, 0), (0, -128, 255), (255, 127, 0)] {
            let images = Tensor::from_slice(&vec![input; 2 * n], &[2, 1, 1, n]).unwrap();
            let filters = Tensor::from_slice(&vec![weight; 3 * n], &[3, n, 1, 1]).unwrap();
            check(&QuantizedConvolution {
                input: images,
                zero_point: zero,
                weight: filters,
                weight_zero_points: Some(Tensor::from_slice(&[0i64, 127, -128], &[3]).unwrap()),
                window: Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 },
                // All but the leading bits of the sums are zeros, which numbers have a place for.
                scale: 1.0,
                scales: None,
                bias: None,
                inner: None,
                residual: None,
                limits: [f32::NEG_INFINITY, f32::INFINITY],
                rounding: None,
                result: Tensor::zeros(DType::Float32, &[2, 1, 1, 3]).unwrap(),
            })
            .unwrap();
        }
    }

    #[test]
    fn a_zero_that_is_no_integer_of_eight_bits_is_refused() {
        let step = QuantizedConvolution {
            input: integers(DType::Int8, &[1; 4], 0),
            zero_point: 0,
            weight: integers(DType::Int8, &[1; 4], 0),
            weight_zero_points: Some(Tensor::from_slice(&[128i64], &[1]).unwrap()),
            window: Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 },
            scale: 1.0,
            scales: None,
            bias: None,
            inner: None,
            residual: None,
            limits: [f32::NEG_INFINITY, f32::INFINITY],
            rounding: None,
            result: Tensor::zeros(DType::Float32, &[1; 4]).unwrap(),
        };
        assert!(QuantizedKernel::new(&step).is_err());
    }
}
