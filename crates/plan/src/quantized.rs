//! Steps whose tensors are integers that stand for numbers with a scale and the integer that is zero: convolutions of integers of eight
//! bits, and products of numbers whose weights are integers.

use crate::{Fused, Product, Window};
use serde::{Deserialize, Serialize};
use tracefx_core::DType;

/// A convolution of channels-last images of 8-bit integers with int8 filters, whose sums are exact in int32, and what follows it.
///
/// Integers `q` stand for `(q - zero_point) * scale`. A sum of integers becomes a number: `x = sum * scale * scales[o] + bias[o]`.
/// It may be [rounded](Rounding) and become a number again; the residual is added, the limits are applied, and it is rounded to the result.
///
/// A product of a matrix with columns is one too: rows are images of one pixel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantizedConvolution<T> {
    /// The images, `[N, H, W, C]`, row-major, in int8 or uint8.
    pub input: T,
    /// The integer of the images that is zero.
    pub zero_point: i32,
    /// The filters, `[O, C / groups, KH, KW]` in int8, with any strides.
    pub weight: T,
    /// The integers of each filter that are zero, `[O]` in int64; zeros where there are none.
    pub weight_zero_points: Option<T>,
    /// What a filter looks at. Padding is zero, which is an integer of the images.
    pub window: Window,
    /// The factor of all sums.
    pub scale: f64,
    /// The factors of the sums of each filter, `[O]` in float32; one where there are none.
    pub scales: Option<T>,
    /// A number for each filter, `[O]` in float32.
    pub bias: Option<T>,
    /// The integers that the numbers become before the residual is added.
    pub inner: Option<Rounding>,
    /// What is added.
    pub residual: Option<QuantizedResidual<T>>,
    /// The lower and the upper limit of numbers, which may be infinite.
    pub limits: [f32; 2],
    /// The integers that the result is; nothing where it is numbers.
    pub rounding: Option<Rounding>,
    /// What it gives, `[N, OH, OW, O]`, row-major: in int8 or uint8, or numbers in float32.
    pub result: T,
}

/// How numbers become integers: `clamp(round(x / scale) + zero_point, min, max)`, where a half goes to the even neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounding {
    /// What one is.
    pub scale: f64,
    /// The integer that is zero.
    pub zero_point: i32,
    /// The least integer.
    pub min: i32,
    /// The largest one.
    pub max: i32,
}

/// A tensor like the result, in int8 or uint8, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantizedResidual<T> {
    /// The integers.
    pub tensor: T,
    /// What one is.
    pub scale: f64,
    /// The integer that is zero.
    pub zero_point: i32,
}

impl<T> QuantizedConvolution<T> {
    /// The most products of a sum: so many of the largest ones are no more than int32 holds.
    pub const MOST_TERMS: usize = 1 << 15;

    /// The tensors that it reads, in the order of the fields.
    pub fn inputs(&self) -> impl Iterator<Item = &T> {
        let residual = self.residual.iter().map(|it| &it.tensor);
        [&self.input].into_iter().chain(self.parameters()).chain(residual)
    }

    /// The tensors of which something is made once.
    pub fn parameters(&self) -> impl Iterator<Item = &T> {
        [&self.weight].into_iter().chain(&self.weight_zero_points).chain(&self.scales).chain(&self.bias)
    }

    /// The same step on other tensors.
    ///
    /// # Errors
    /// The first that `tensor` gives.
    pub fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<QuantizedConvolution<U>, E> {
        let input = tensor(&self.input)?;
        let weight = tensor(&self.weight)?;
        let [weight_zero_points, scales, bias] = {
            let mut optional = |it: &Option<T>| it.as_ref().map(&mut *tensor).transpose();
            [optional(&self.weight_zero_points)?, optional(&self.scales)?, optional(&self.bias)?]
        };
        let residual = match &self.residual {
            Some(it) => {
                Some(QuantizedResidual { tensor: tensor(&it.tensor)?, scale: it.scale, zero_point: it.zero_point })
            }
            None => None,
        };
        let &QuantizedConvolution { zero_point, window, scale, inner, limits, rounding, .. } = self;
        let result = tensor(&self.result)?;
        Ok(QuantizedConvolution {
            input,
            zero_point,
            weight,
            weight_zero_points,
            window,
            scale,
            scales,
            bias,
            inner,
            residual,
            limits,
            rounding,
            result,
        })
    }
}

/// A product whose columns are integers in memory, and numbers in registers (*weight-only quantization*): what the rows are multiplied
/// with is what [`Dequantization`] makes of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DequantizedProduct<T> {
    /// The product; its right side are the integers, as [`IntegerLayout`] says. Its other tensors are of one of [`FLOATS`](crate::FLOATS).
    pub product: Product<T>,
    /// What the integers stand for.
    pub dequantization: Dequantization<T>,
}

/// What integers stand for: `(q - zero_point - zero_points[g, n]) * scale * scales[g, n] + shifts[g, n]` of the integer in row `k` and
/// column `n`, where `g = k / group_size`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dequantization<T> {
    /// How the integers lie.
    pub layout: IntegerLayout,
    /// The rows of a column that share their numbers, of which the rows are a multiple.
    pub group_size: usize,
    /// The integer that is zero, of all columns.
    pub zero_point: i32,
    /// The factor of all columns.
    pub scale: f64,
    /// The factors, `[K / group_size, N]`, of one of [`FLOATS`](crate::FLOATS), with any strides; one where there are none.
    pub scales: Option<T>,
    /// The integers that are zero, `[K / group_size, N]`, of integers or of one of [`FLOATS`](crate::FLOATS), with any strides.
    pub zero_points: Option<T>,
    /// What is added, `[K / group_size, N]`, of one of [`FLOATS`](crate::FLOATS), with any strides; nothing where there are none.
    pub shifts: Option<T>,
    /// Whether each number is rounded to the dtype of the rows, as an operator that gives it rounds it.
    pub is_rounded: bool,
}

/// How the integers of the columns of a product lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntegerLayout {
    /// As int8 or uint8, `[K, N]`, with any strides.
    Bytes,
    /// As `aten._convert_weight_to_int4pack` gives them for CUDA: int32, `[N / 8, K / (16 * t), 32, t / 2]`, row-major, with `t` of 2, 4 or 8.
    /// A word has eight integers of 0 to 15; see [`Int4Tiles`].
    Int4Tiles,
}

/// Where the integers of [`IntegerLayout::Int4Tiles`] lie: tiles of eight columns for `mma.m16n8k16`, of which a word has eight rows of one column
/// (`matrix_to_m16n8k16_Bint4_layout` of ATen's `int4mm.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int4Tiles {
    /// The sizes of the words but for the first: tiles along the rows, and the words of a lane.
    tiles: usize,
    words: usize,
}

impl Int4Tiles {
    /// The lanes of a tile.
    pub const LANES: usize = 32;

    /// Those of words of these sizes; nothing where they are no such words.
    pub fn of(sizes: &[usize]) -> Option<Self> {
        match *sizes {
            [_, tiles, Self::LANES, words @ (1 | 2 | 4)] => Some(Int4Tiles { tiles, words }),
            _ => None,
        }
    }

    /// The word of the integer in row `k` and column `n`, and the bits that stand below it.
    pub fn place(self, k: usize, n: usize) -> (usize, usize) {
        let (outer, inner) = (k / (32 * self.words), k % (32 * self.words));
        let lane = n % 8 * 4 + k % 8 / 2;
        let word = ((n / 8 * self.tiles + outer) * Self::LANES + lane) * self.words + inner / 32;
        (word, 4 * (k % 2 * 4 + k % 32 / 8))
    }
}

impl IntegerLayout {
    /// The rows and columns of integers whose tensor has these sizes; nothing where there are none such.
    pub fn columns(self, sizes: &[usize]) -> Option<[usize; 2]> {
        match self {
            IntegerLayout::Bytes => sizes.try_into().ok(),
            IntegerLayout::Int4Tiles => {
                let it = Int4Tiles::of(sizes)?;
                Some([it.tiles.checked_mul(32 * it.words)?, sizes[0].checked_mul(8)?])
            }
        }
    }

    /// Whether integers that lie so have this dtype.
    pub fn is_of(self, dtype: DType) -> bool {
        match self {
            IntegerLayout::Bytes => matches!(dtype, DType::Int8 | DType::UInt8),
            IntegerLayout::Int4Tiles => dtype == DType::Int32,
        }
    }
}

impl<T> Dequantization<T> {
    /// Of `aten._weight_int8pack_mm`: columns of so many rows of int8, and their factors, `[1, N]`.
    pub fn of_int8_columns(n_rows: usize, scales: T) -> Self {
        Dequantization {
            layout: IntegerLayout::Bytes,
            group_size: n_rows.max(1),
            zero_point: 0,
            scale: 1.0,
            scales: Some(scales),
            zero_points: None,
            shifts: None,
            is_rounded: false,
        }
    }

    /// Of `aten._weight_int4pack_mm`: integers of which 8 is zero, and the factors and addends of groups, `[K / group_size, N]`. Numbers are rounded, as CUDA's
    /// kernel rounds them.
    pub fn of_int4_tiles(group_size: usize, scales: T, shifts: T) -> Self {
        Dequantization {
            layout: IntegerLayout::Int4Tiles,
            group_size,
            zero_point: 8,
            scale: 1.0,
            scales: Some(scales),
            zero_points: None,
            shifts: Some(shifts),
            is_rounded: true,
        }
    }

    /// The sizes `[K, N]` of a right side whose integers have these sizes, where all else fits: groups, and the sizes of the other tensors.
    pub fn columns<'a>(&'a self, integers: &[usize], sizes: impl Fn(&'a T) -> &'a [usize]) -> Option<[usize; 2]> {
        let [k, n] = self.layout.columns(integers)?;
        let n_groups = k.checked_div(self.group_size).filter(|_| k % self.group_size == 0)?;
        self.tensors().all(|it| *sizes(it) == [n_groups, n]).then_some([k, n])
    }

    /// The tensors that it reads beside the integers, in the order of the fields.
    pub fn tensors(&self) -> impl Iterator<Item = &T> {
        self.scales.iter().chain(&self.zero_points).chain(&self.shifts)
    }

    /// The same on other tensors.
    ///
    /// # Errors
    /// The first that `tensor` gives.
    pub fn try_map<U, E>(&self, tensor: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Dequantization<U>, E> {
        let mut optional = |it: &Option<T>| it.as_ref().map(&mut *tensor).transpose();
        let [scales, zero_points, shifts] =
            [optional(&self.scales)?, optional(&self.zero_points)?, optional(&self.shifts)?];
        let &Dequantization { layout, group_size, zero_point, scale, is_rounded, .. } = self;
        Ok(Dequantization { layout, group_size, zero_point, scale, scales, zero_points, shifts, is_rounded })
    }
}

impl<T> From<DequantizedProduct<T>> for Fused<T> {
    fn from(step: DequantizedProduct<T>) -> Self {
        Fused::DequantizedProduct(Box::new(step))
    }
}

impl<T> From<QuantizedConvolution<T>> for Fused<T> {
    fn from(step: QuantizedConvolution<T>) -> Self {
        Fused::QuantizedConvolution(Box::new(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Buffer, Epilogue, Operand, Plan, TensorId, TensorView};

    type Step = QuantizedConvolution<TensorId>;

    /// A convolution of uint8 images with int8 filters, with all that may follow.
    fn plan(change: impl FnOnce(&mut Step, &mut Plan)) -> Plan {
        let mut plan = Plan::default();
        let tensors = [
            (DType::UInt8, &[1, 4, 4, 3][..]),
            (DType::UInt8, &[1, 5, 5, 3]),
            (DType::Int8, &[3, 3, 2, 2]),
            (DType::Int64, &[3]),
            (DType::Float32, &[3]),
            (DType::Int8, &[1, 4, 4, 3]),
        ];
        for (at, (dtype, sizes)) in tensors.into_iter().enumerate() {
            let buffer = if at == 0 { Buffer::Result } else { Buffer::Input(at as u32 - 1) };
            let buffer = plan.add_buffer(buffer);
            let sizes: Vec<tracefx_sym::SymInt> = sizes.iter().map(|it| (*it as i64).into()).collect();
            let id = plan.add_tensor(TensorView::row_major(buffer, dtype, &sizes));
            if at > 0 {
                plan.inputs.push(Operand::Tensor(id));
            }
        }
        plan.output = Operand::Tensor(TensorId(0));
        let [result, input, weight, zeros, numbers, residual] = [0, 1, 2, 3, 4, 5].map(TensorId);
        let mut step = QuantizedConvolution {
            input,
            zero_point: 3,
            weight,
            weight_zero_points: Some(zeros),
            window: Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 },
            scale: 0.5,
            scales: Some(numbers),
            bias: Some(numbers),
            inner: Some(Rounding { scale: 0.25, zero_point: -5, min: -128, max: 127 }),
            residual: Some(QuantizedResidual { tensor: residual, scale: 0.125, zero_point: 1 }),
            limits: [0.0, 6.0],
            rounding: Some(Rounding { scale: 0.1, zero_point: 7, min: 0, max: 255 }),
            result,
        };
        change(&mut step, &mut plan);
        plan.push("conv2d", Action::Fused(step.into()));
        plan
    }

    #[test]
    fn a_step_prints_what_it_takes() {
        let plan = plan(|_, _| {});
        plan.validate().unwrap();
        assert_eq!(
            plan.to_string().lines().nth(1).unwrap().trim(),
            "%0: u8[1, 4, 4, 3] = quantized_convolution(%1 - 3, %2, weight_zero_points=%3, stride=[1, 1], padding=[0, 0], \
             dilation=[1, 1], groups=1, scale=0.5, scales=%4, bias=%4, inner=x / 0.25 + -5 in -128..=127, \
             residual=(%5 - 1) * 0.125, limits=[0.0, 6.0], rounding=x / 0.1 + 7 in 0..=255)  # conv2d"
        );
    }

    #[test]
    fn steps_whose_tensors_do_not_fit_are_refused() {
        type Change = fn(&mut Step, &mut Plan);
        let cases: [(Change, &str); 10] = [
            (|it, _| it.window.groups = 2, "sizes do not fit"),
            (|it, _| it.zero_point = 256, "no images and filters of 8 bits"),
            (|it, _| it.input = it.weight, "sizes do not fit"),
            (|_, plan| plan.tensors[2].dtype = DType::UInt8, "no images and filters of 8 bits"),
            (|it, _| it.scales = it.weight_zero_points, "is not a number for each of 3 filters"),
            (|it, _| it.residual.as_mut().unwrap().zero_point = 128, "is not like the result"),
            (|it, _| it.rounding = None, "cannot be the result"),
            (|it, _| it.rounding.as_mut().unwrap().min = -1, "are no integers of 0..=255"),
            (|it, _| it.inner.as_mut().unwrap().scale = 0.0, "are no integers of -128..=255"),
            (|it, _| it.limits = [1.0, 0.0], "are no limits"),
        ];
        for (change, words) in cases {
            let problem = plan(change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }

    /// Four rows of 64 numbers with 16 columns of integers, in groups of 32.
    fn dequantized(layout: IntegerLayout, change: impl FnOnce(&mut DequantizedProduct<TensorId>, &mut Plan)) -> Plan {
        let mut plan = Plan::default();
        let (dtype, sizes) = match layout {
            IntegerLayout::Bytes => (DType::UInt8, &[64, 16][..]),
            IntegerLayout::Int4Tiles => (DType::Int32, &[2, 1, 32, 2][..]),
        };
        let half = DType::BFloat16;
        let tensors = [
            (half, &[4, 16][..]),
            (half, &[4, 64]),
            (dtype, sizes),
            (half, &[2, 16]),
            (DType::Int8, &[2, 16]),
            (half, &[16]),
        ];
        for (at, (dtype, sizes)) in tensors.into_iter().enumerate() {
            let buffer = plan.add_buffer(if at == 0 { Buffer::Result } else { Buffer::Input(at as u32 - 1) });
            let sizes: Vec<tracefx_sym::SymInt> = sizes.iter().map(|it| (*it as i64).into()).collect();
            let id = plan.add_tensor(TensorView::row_major(buffer, dtype, &sizes));
            if at > 0 {
                plan.inputs.push(Operand::Tensor(id));
            }
        }
        plan.output = Operand::Tensor(TensorId(0));
        let [result, lhs, rhs, scales, zeros, bias] = [0, 1, 2, 3, 4, 5].map(TensorId);
        let epilogue = Epilogue { bias: Some(bias), ..Epilogue::none() };
        let dequantization = Dequantization {
            layout,
            group_size: 32,
            zero_point: 8,
            scale: 0.5,
            scales: Some(scales),
            zero_points: Some(zeros),
            shifts: Some(scales),
            is_rounded: true,
        };
        let mut step = DequantizedProduct { product: Product { lhs, rhs, epilogue, result }, dequantization };
        change(&mut step, &mut plan);
        plan.push("linear", Action::Fused(step.into()));
        plan
    }

    #[test]
    fn a_dequantized_product_prints_what_its_integers_stand_for() {
        let plan = dequantized(IntegerLayout::Int4Tiles, |_, _| {});
        plan.validate().unwrap();
        assert_eq!(
            plan.to_string().lines().nth(1).unwrap().trim(),
            "%0: bf16[4, 16] = dequantized_product(%1, %2, layout=Int4Tiles, group_size=32, zero_point=8, scale=0.5, \
             scales=%3, zero_points=%4, shifts=%3, is_rounded=true, bias=%5)  # linear"
        );
    }

    #[test]
    fn integers_that_do_not_fit_their_product_are_refused() {
        use IntegerLayout::{Bytes, Int4Tiles};
        dequantized(Bytes, |_, _| {}).validate().unwrap();
        type Change = fn(&mut DequantizedProduct<TensorId>, &mut Plan);
        let cases: [(IntegerLayout, Change, &str); 12] = [
            (Bytes, |it, _| it.dequantization.group_size = 0, "have no groups of 0"),
            (Bytes, |it, _| it.dequantization.group_size = 48, "have no groups of 48"),
            (Bytes, |it, _| it.dequantization.group_size = 64, "is not a number for each of 1 groups of 16 columns"),
            (Bytes, |it, _| it.dequantization.layout = Int4Tiles, "has no integers that lie as Int4Tiles"),
            (Bytes, |it, _| it.dequantization.scales = Some(TensorId(4)), "is not a number for each of 2 groups"),
            (Bytes, |it, _| it.dequantization.scale = f64::NAN, "is no scale"),
            (Bytes, |it, _| it.product.rhs = TensorId(1), "has no integers that lie as Bytes"),
            (Bytes, |_, plan| plan.tensors[1].sizes[1] = 63.into(), "is not row-major"),
            (Bytes, |_, plan| plan.tensors[2].strides[0] = 0.into(), "has no integers that lie as Bytes"),
            (Bytes, |_, plan| plan.tensors[0].dtype = DType::Float32, "is not of bfloat16"),
            (Int4Tiles, |_, plan| plan.tensors[2].sizes[3] = 3.into(), "has no integers that lie as Int4Tiles"),
            (Int4Tiles, |_, plan| plan.tensors[2].strides[0] = 0.into(), "has no integers that lie as Int4Tiles"),
        ];
        for (layout, change, words) in cases {
            let problem = dequantized(layout, change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }

    #[test]
    fn each_integer_of_tiles_has_a_place_of_its_own() {
        for words in [1, 2, 4] {
            let sizes = [3, 2, Int4Tiles::LANES, words];
            let [k, n] = IntegerLayout::Int4Tiles.columns(&sizes).unwrap();
            assert_eq!([k, n], [64 * words, 24]);
            let tiles = Int4Tiles::of(&sizes).unwrap();
            let mut places: Vec<_> = (0..k).flat_map(|k| (0..n).map(move |n| tiles.place(k, n))).collect();
            places.sort_unstable();
            let all = (0..sizes.iter().product()).flat_map(|word| (0..8).map(move |at| (word, 4 * at)));
            assert!(places.into_iter().eq(all));
        }
        assert_eq!(Int4Tiles::of(&[1, 1, 32, 3]), None);
        assert_eq!(Int4Tiles::of(&[1, 1, 16, 2]), None);
    }
}
