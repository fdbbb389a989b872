//! Products whose right side are integers, which become numbers in registers: memory is read as narrow as it is.

use super::args::Args;
use super::matrices::{self, Right};
use super::pointwise::{converted, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, float};
use tracefx_core::{DType, Dims};
use tracefx_plan::{Dequantization, DequantizedProduct, Epilogue, Int4Tiles, IntegerLayout, Operand, TensorId};

/// What integers stand for: tensors, and how registers hold their elements.
type Numbers = Dequantization<(View, Kind)>;

/// The lines before the integer at the term `t` and the column `x`, and what it is.
fn integer(shader: &mut Shader, integers: &View, layout: IntegerLayout) -> String {
    match layout {
        IntegerLayout::Bytes => {
            let at = integers.at(&["t", "x"].map(str::to_owned));
            format!("f32({})", shader.load(integers, &at))
        }
        // As `Int4Tiles::place` says.
        IntegerLayout::Int4Tiles => {
            let [_, tiles, _, words] = integers.sizes[..] else { unreachable!("words of tiles have four dimensions") };
            let (depth, lanes) = (32 * words, Int4Tiles::LANES);
            let tile = format!("(x / 8u * {tiles}u + t / {depth}u) * {lanes}u + x % 8u * 4u + t % 8u / 2u");
            let at = format!("{}u + ({tile}) * {words}u + t % {depth}u / 32u", integers.offset);
            let word = shader.load(integers, &at);
            format!("f32(bitcast<u32>({word}) >> (t % 2u * 16u + t % 32u / 8u * 4u) & 15u)")
        }
    }
}

/// The number that an integer stands for at the term `t` and the column `x`, of a product of numbers in `dtype`.
fn number(shader: &mut Shader, numbers: &Numbers, integer: &str, dtype: DType) -> String {
    let place = [format!("(t / {}u)", numbers.group_size), "x".to_owned()];
    let mut load = |(view, kind): &(View, Kind)| {
        let element = shader.load(view, &view.at(&place));
        converted(&element, *kind, Kind::Float)
    };
    let mut number = integer.to_owned();
    if numbers.zero_point != 0 {
        number = format!("({number} - {})", float(numbers.zero_point as f32));
    }
    if let Some(zeros) = &numbers.zero_points {
        number = format!("({number} - {})", load(zeros));
    }
    if numbers.scale != 1.0 {
        number = format!("{number} * {}", float(numbers.scale as f32));
    }
    if let Some(scales) = &numbers.scales {
        number = format!("{number} * {}", load(scales));
    }
    if let Some(shifts) = &numbers.shifts {
        number = format!("{number} + {}", load(shifts));
    }
    if numbers.is_rounded { rounded(&format!("({number})"), dtype) } else { format!("({number})") }
}

pub(super) fn product(cx: &mut Lowering<'_>, it: &DequantizedProduct<TensorId>) -> Lowered {
    let numbers = it.dequantization.try_map(&mut |it| cx.view(*it))?;
    let integers = cx.view(it.product.rhs)?.0;
    multiplied(cx, [it.product.lhs, it.product.result], &it.product.epilogue, &integers, &numbers)
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

const OTHER: Reason = Reason::Borrowed("other arguments");

fn int8(cx: &Lowering<'_>, args: &[Operand]) -> Result<(View, Numbers), Reason> {
    let (Some(mat2), Some(scales)) = (Args(args).tensor(1), Args(args).tensor(2)) else { return Err(OTHER) };
    let (mut integers, (mut scales, kind)) = (cx.view(mat2)?.0, cx.view(scales)?);
    if integers.sizes.len() != 2 || scales.sizes.len() != 1 {
        return Err(OTHER);
    }
    integers.sizes.reverse();
    integers.strides.reverse();
    scales.sizes.insert(0, 1);
    scales.strides.insert(0, 0);
    let n_rows = integers.sizes[0];
    Ok((integers, Dequantization::of_int8_columns(n_rows, (scales, kind))))
}

fn int4(cx: &Lowering<'_>, args: &[Operand]) -> Result<(View, Numbers), Reason> {
    let (Some(mat2), Some(Operand::Int(group)), Some(both)) = (Args(args).tensor(1), args.get(2), Args(args).tensor(3))
    else {
        return Err(OTHER);
    };
    let (integers, (both, kind)) = (cx.view(mat2)?.0, cx.view(both)?);
    if both.sizes.len() != 3 || both.sizes[2] != 2 {
        return Err(OTHER);
    }
    if !tracefx_core::has_contiguous_strides(&integers.sizes, &integers.strides) {
        return Err("words that do not lie one behind the other".into());
    }
    let part = |at: usize| {
        let (sizes, strides) = (Dims::from_slice(&both.sizes[..2]), Dims::from_slice(&both.strides[..2]));
        (View { sizes, strides, offset: both.offset + at * both.strides[2], ..both.clone() }, kind)
    };
    let group = usize::try_from(*group).map_err(|_| OTHER)?;
    Ok((integers, Dequantization::of_int4_tiles(group, part(0), part(1))))
}

fn multiplied(
    cx: &mut Lowering<'_>,
    [lhs, result]: [TensorId; 2],
    epilogue: &Epilogue<TensorId>,
    integers: &View,
    numbers: &Numbers,
) -> Lowered {
    let (rows, to) = (cx.floats(lhs)?, cx.floats(result)?);
    // Of a call, no one else has looked at them.
    let sizes = numbers.columns(&integers.sizes, |it| &it.0.sizes);
    let sizes = sizes.filter(|[k, n]| {
        let is_of = numbers.layout.is_of(integers.dtype);
        is_of && rows.sizes.len() == 2 && rows.sizes[1] == *k && to.sizes[..] == [rows.sizes[0], *n]
    });
    let sizes = sizes.ok_or("integers that do not fit")?;
    let is_along_terms = match numbers.layout {
        IntegerLayout::Bytes => integers.strides[0] < integers.strides[1],
        IntegerLayout::Int4Tiles => true,
    };
    let mut load = |shader: &mut Shader| {
        let integer = integer(shader, integers, numbers.layout);
        number(shader, numbers, &integer, rows.dtype)
    };
    let dtype = if numbers.is_rounded { rows.dtype } else { DType::Float32 };
    matrices::product_with(cx, [lhs, result], epilogue, Right { sizes, dtype, is_along_terms, load: &mut load })
}
