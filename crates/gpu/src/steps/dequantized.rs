//! Products whose right side are integers, which become numbers in registers: memory is read as narrow as it is.

use super::args::Args;
use super::matrices::{self, Right};
use super::pointwise::{converted, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, float};
use tracefx_core::{DType, Dims};
use tracefx_plan::{DequantizedProduct, Epilogue, Int4Tiles, IntegerLayout, Operand, TensorId};

/// What integers stand for, as [`tracefx_plan::Dequantization`] says.
struct Numbers {
    group_size: usize,
    zero_point: i32,
    scale: f64,
    scales: Option<View>,
    zero_points: Option<(View, Kind)>,
    shifts: Option<View>,
    /// What each number is rounded to.
    rounding: DType,
}

/// The integers.
struct Integers {
    view: View,
    layout: IntegerLayout,
}

impl Integers {
    /// The lines before the integer at the term `t` and the column `x`, and what it is.
    fn load(&self, shader: &mut Shader) -> String {
        let [t, x] = ["t", "x"].map(str::to_owned);
        match self.layout {
            IntegerLayout::Bytes => {
                let at = self.view.at(&[t, x]);
                format!("f32({})", shader.load(&self.view, &at))
            }
            // As `Int4Tiles::place` says.
            IntegerLayout::Int4Tiles => {
                let [_, tiles, _, words] = self.view.sizes[..] else {
                    unreachable!("words of tiles have four dimensions")
                };
                let (depth, lanes) = (32 * words, Int4Tiles::LANES);
                let tile = format!("(x / 8u * {tiles}u + t / {depth}u) * {lanes}u + x % 8u * 4u + t % 8u / 2u");
                let at = format!("{}u + ({tile}) * {words}u + t % {depth}u / 32u", self.view.offset);
                let word = shader.load(&self.view, &at);
                format!("f32(bitcast<u32>({word}) >> (t % 2u * 16u + t % 32u / 8u * 4u) & 15u)")
            }
        }
    }
}

impl Numbers {
    /// The number that an integer stands for at the term `t` and the column `x`.
    fn number(&self, shader: &mut Shader, integer: &str) -> String {
        let place = [format!("(t / {}u)", self.group_size), "x".to_owned()];
        let mut number = integer.to_owned();
        if self.zero_point != 0 {
            number = format!("({number} - {})", float(self.zero_point as f32));
        }
        if let Some((zeros, kind)) = &self.zero_points {
            let zero = shader.load(zeros, &zeros.at(&place));
            number = format!("({number} - {})", converted(&zero, *kind, Kind::Float));
        }
        if self.scale != 1.0 {
            number = format!("{number} * {}", float(self.scale as f32));
        }
        if let Some(scales) = &self.scales {
            number = format!("{number} * {}", shader.load(scales, &scales.at(&place)));
        }
        if let Some(shifts) = &self.shifts {
            number = format!("{number} + {}", shader.load(shifts, &shifts.at(&place)));
        }
        rounded(&format!("({number})"), self.rounding)
    }
}

pub(super) fn product(cx: &mut Lowering<'_>, it: &DequantizedProduct<TensorId>) -> Lowered {
    let (product, dequantization) = (&it.product, &it.dequantization);
    let floats = |it: &Option<TensorId>| it.map(|it| cx.floats(it)).transpose();
    let numbers = Numbers {
        group_size: dequantization.group_size,
        zero_point: dequantization.zero_point,
        scale: dequantization.scale,
        scales: floats(&dequantization.scales)?,
        zero_points: dequantization.zero_points.map(|it| cx.view(it)).transpose()?,
        shifts: floats(&dequantization.shifts)?,
        rounding: if dequantization.is_rounded { cx.floats(product.lhs)?.dtype } else { DType::Float32 },
    };
    let integers = Integers { view: cx.view(product.rhs)?.0, layout: dequantization.layout };
    multiplied(cx, [product.lhs, product.result], &product.epilogue, &integers, &numbers)
}

/// `aten._weight_int8pack_mm` and `aten._weight_int4pack_mm`, of weights that the program does not have as constants or in strict plans.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let lhs = Args(args).tensor(0)?;
    let parts = match op {
        "aten._weight_int8pack_mm.default" => int8(cx, args),
        "aten._weight_int4pack_mm.default" => int4(cx, args),
        _ => return None,
    };
    Some(parts.and_then(|(integers, numbers)| multiplied(cx, [lhs, result], &Epilogue::none(), &integers, &numbers)))
}

fn int8(cx: &Lowering<'_>, args: &[Operand]) -> Result<(Integers, Numbers), Reason> {
    let (Some(mat2), Some(scales)) = (Args(args).tensor(1), Args(args).tensor(2)) else {
        return Err("other arguments".into());
    };
    let (mut view, mut scales) = (cx.view(mat2)?.0, cx.floats(scales)?);
    view.sizes.reverse();
    view.strides.reverse();
    scales.sizes.insert(0, 1);
    scales.strides.insert(0, 0);
    let group_size = view.sizes[0].max(1);
    let numbers = Numbers {
        group_size,
        zero_point: 0,
        scale: 1.0,
        scales: Some(scales),
        zero_points: None,
        shifts: None,
        rounding: DType::Float32,
    };
    Ok((Integers { view, layout: IntegerLayout::Bytes }, numbers))
}

fn int4(cx: &Lowering<'_>, args: &[Operand]) -> Result<(Integers, Numbers), Reason> {
    let (Some(mat2), Some(Operand::Int(group)), Some(both)) = (Args(args).tensor(1), args.get(2), Args(args).tensor(3))
    else {
        return Err("other arguments".into());
    };
    let (view, both) = (cx.view(mat2)?.0, cx.floats(both)?);
    if !tracefx_core::has_contiguous_strides(&view.sizes, &view.strides) || Int4Tiles::of(&view.sizes).is_none() {
        return Err("words that do not lie one behind the other".into());
    }
    let part = |at: usize| View {
        sizes: Dims::from_slice(&both.sizes[..2]),
        strides: Dims::from_slice(&both.strides[..2]),
        offset: both.offset + at * both.strides[2],
        ..both.clone()
    };
    let numbers = Numbers {
        group_size: usize::try_from(*group).map_err(|_| "no group")?.max(1),
        zero_point: 8,
        scale: 1.0,
        scales: Some(part(0)),
        zero_points: None,
        shifts: Some(part(1)),
        rounding: both.dtype,
    };
    Ok((Integers { view, layout: IntegerLayout::Int4Tiles }, numbers))
}

fn multiplied(
    cx: &mut Lowering<'_>,
    [lhs, result]: [TensorId; 2],
    epilogue: &Epilogue<TensorId>,
    integers: &Integers,
    numbers: &Numbers,
) -> Lowered {
    let sizes = integers.layout.columns(&integers.view.sizes).ok_or("integers that lie otherwise")?;
    let is_along_terms = match integers.layout {
        IntegerLayout::Bytes => integers.view.strides[0] < integers.view.strides[1],
        IntegerLayout::Int4Tiles => true,
    };
    let mut load = |shader: &mut Shader| {
        let integer = integers.load(shader);
        numbers.number(shader, &integer)
    };
    matrices::product_with(
        cx,
        [lhs, result],
        epilogue,
        Right { sizes, dtype: numbers.rounding, is_along_terms, load: &mut load },
    )
}
