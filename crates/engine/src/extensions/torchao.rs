//! torchao's quantisation: scales and zeros of blocks of elements, made of ATen's operators.

use super::{Call, at, dims, dtype_at, tensor};
use tracefx_core::{DType, Result};
use tracefx_ops::{Cx, Traced, Value};
use tracefx_sym::SymInt;

fn to(cx: &mut Cx<'_>, args: &Call<'_>, it: Traced, dtype: DType) -> Result<Traced> {
    if cx.meta(tensor(args, &it)?).dtype == dtype {
        return Ok(it);
    }
    cx.aten_with("_to_copy", [&it], &[("dtype", Value::DType(dtype))])
}

/// Blocks of elements that share a scale.
struct Blocks {
    /// The sizes of the tensor.
    sizes: Vec<SymInt>,
    /// The sizes in which each block has dimensions of its own.
    parted: Vec<SymInt>,
    /// Those dimensions.
    within: Vec<usize>,
    /// How many blocks there are along each dimension.
    counts: Vec<SymInt>,
}

impl Blocks {
    /// `_get_reduction_params` of torchao.
    fn of(cx: &Cx<'_>, args: &Call<'_>, index: usize) -> Result<Self> {
        let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
        let blocks = args.sym_ints(index)?;
        if blocks.len() != sizes.len() {
            return Err(args.bad_shape(format!("Got input dim:{}, block_size: {blocks:?}", sizes.len())));
        }
        let mut res = Blocks { sizes: sizes.to_vec(), parted: Vec::new(), within: Vec::new(), counts: Vec::new() };
        for (size, block) in sizes.iter().zip(&blocks) {
            if size == block {
                if block.as_int() != Some(1) {
                    res.within.push(res.parted.len());
                }
                res.parted.push(size.clone());
                res.counts.push(SymInt::from(1));
            } else if block.as_int() == Some(1) {
                res.parted.push(size.clone());
                res.counts.push(size.clone());
            } else {
                let (Some(size), Some(block)) = (size.as_int(), block.as_int()) else {
                    return Err(args.unsupported(format!("blocks of {block} in a size that is not known, {size}")));
                };
                if block <= 0 || size % block != 0 {
                    let what = format!("Expecting input size {size} to be divisible by block_size {block}");
                    return Err(args.bad_shape(what));
                }
                res.within.push(res.parted.len() + 1);
                res.parted.extend([SymInt::from(size / block), SymInt::from(block)]);
                res.counts.push(SymInt::from(size / block));
            }
        }
        Ok(res)
    }

    fn within(&self) -> Traced {
        Value::List(self.within.iter().map(|it| Value::int(*it as i64)).collect())
    }

    /// A scale or zero, so that it broadcasts over the blocks.
    fn broadcast(&self, cx: &mut Cx<'_>, it: &Traced) -> Result<Traced> {
        let is_within = |at: usize| self.within.contains(&at);
        let shape = self.parted.iter().enumerate();
        let shape: Vec<SymInt> =
            shape.map(|(at, it)| if is_within(at) { SymInt::from(1) } else { it.clone() }).collect();
        cx.aten("view", [it, &dims(&shape)])
    }
}

/// The smallest and the largest number of a dtype of quantised values, or those that are given within them.
fn bounds(args: &Call<'_>, dtype: DType) -> Result<(f64, f64)> {
    let (least, most) = match dtype {
        DType::UInt8 => (0.0, 255.0),
        DType::Int8 => (-128.0, 127.0),
        DType::Int16 => (-32_768.0, 32_767.0),
        DType::Int32 => (-2_147_483_648.0, 2_147_483_647.0),
        other => {
            float8_max(other).map(|it| (-it, it)).ok_or_else(|| args.invalid(format!("Unsupported dtype: {other}")))?
        }
    };
    let given = |name: &str, otherwise: f64| at(args, name).as_scalar().map_or(otherwise, |it| it.to_f64());
    let (min, max) = (given("quant_min", least), given("quant_max", most));
    if min < least || max > most {
        return Err(args.invalid(format!("quant_min {min} or quant_max {max} is out of bound for dtype {dtype}")));
    }
    Ok((min, max))
}

fn float8_max(dtype: DType) -> Option<f64> {
    match dtype {
        DType::Float8E4M3FN => Some(448.0),
        DType::Float8E5M2 | DType::Float8E5M2FNUZ => Some(57_344.0),
        DType::Float8E4M3FNUZ => Some(240.0),
        _ => None,
    }
}

/// A number as PyTorch has it: an int where the bounds are ints.
fn bound(it: f64) -> Traced {
    if it.fract() == 0.0 { Value::int(it as i64) } else { Value::Float(it) }
}

fn check_float(args: &Call<'_>, dtype: DType, what: &str) -> Result<()> {
    match dtype {
        DType::Float32 | DType::Float16 | DType::BFloat16 => Ok(()),
        other => Err(args.invalid(format!("Unsupported {what} dtype: {other}"))),
    }
}

pub(super) fn quantize_affine(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dtype = dtype_at(args, "output_dtype").ok_or_else(|| args.invalid("output_dtype is no dtype"))?;
    let (min, max) = bounds(args, dtype)?;
    check_float(args, cx.meta(*args.tensor(0)?).dtype, "input")?;
    let blocks = Blocks::of(cx, args, 1)?;
    let Some(&zero) = args.opt_tensor(3)? else {
        return Err(args.invalid("a zero_point is missing, which torchao adds in any case"));
    };
    let input = cx.aten("view", [&args.values[0], &dims(&blocks.parted)])?;
    let scale = blocks.broadcast(cx, &args.values[2])?;
    let zero = blocks.broadcast(cx, &zero.into())?;
    let inverse = cx.aten("reciprocal", [&scale])?;
    let scaled = cx.aten("mul.Tensor", [&input, &inverse])?;
    let rounded = cx.aten("round", [&scaled])?;
    let shifted = cx.aten("add.Tensor", [&rounded, &zero])?;
    let clamped = cx.aten("clamp", [&shifted, &bound(min), &bound(max)])?;
    let whole = cx.aten("view", [&clamped, &dims(&blocks.sizes)])?;
    Ok(vec![to(cx, args, whole, dtype)?])
}

pub(super) fn dequantize_affine(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let own = cx.meta(*args.tensor(0)?).dtype;
    let dtype = dtype_at(args, "input_dtype").ok_or_else(|| args.invalid("input_dtype is no dtype"))?;
    if own != dtype {
        return Err(args.invalid(format!("Expected: {dtype}, got: {own}")));
    }
    bounds(args, dtype)?;
    let wanted = dtype_at(args, "output_dtype").unwrap_or(DType::Float32);
    check_float(args, wanted, "output")?;
    let blocks = Blocks::of(cx, args, 1)?;
    let input = cx.aten("view", [&args.values[0], &dims(&blocks.parted)])?;
    let scale = blocks.broadcast(cx, &args.values[2])?;
    let mut res = to(cx, args, input, wanted)?;
    if let Some(&zero) = args.opt_tensor(3)? {
        let zero = blocks.broadcast(cx, &zero.into())?;
        let zero = to(cx, args, zero, wanted)?;
        res = cx.aten("sub.Tensor", [&res, &zero])?;
    }
    let scaled = cx.aten("mul.Tensor", [&res, &scale])?;
    let whole = cx.aten("view", [&scaled, &dims(&blocks.sizes)])?;
    Ok(vec![to(cx, args, whole, wanted)?])
}

/// The smallest normal number of a dtype: `torch.finfo(dtype).smallest_normal`.
fn smallest_normal(args: &Call<'_>, dtype: DType) -> Result<f64> {
    match dtype {
        DType::Float32 | DType::BFloat16 => Ok(f64::from(f32::MIN_POSITIVE)),
        DType::Float16 => Ok(6.103_515_625e-5),
        DType::Float64 => Ok(f64::MIN_POSITIVE),
        other => Err(args.invalid(format!("{other} is no floating point dtype"))),
    }
}

pub(super) fn choose_qparams_affine(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dtype = dtype_at(args, "target_dtype").ok_or_else(|| args.invalid("target_dtype is no dtype"))?;
    let (min, max) = bounds(args, dtype)?;
    let own = cx.meta(*args.tensor(0)?).dtype;
    let eps = match args.opt_float(args.position("eps").unwrap_or_default())? {
        Some(eps) => eps,
        None => smallest_normal(args, own)?,
    };
    let blocks = Blocks::of(cx, args, 2)?;
    let keepdim = at(args, "keepdim");
    let input = cx.aten("view", [&args.values[0], &dims(&blocks.parted)])?;
    let low = cx.aten("amin", [&input, &blocks.within(), &keepdim])?;
    let high = cx.aten("amax", [&input, &blocks.within(), &keepdim])?;
    let zeros = cx.aten("zeros_like", [&low])?;
    let low = cx.aten("minimum", [&low, &zeros])?;
    let high = cx.aten("maximum", [&high, &zeros])?;
    let divided = |cx: &mut Cx<'_>, it: Traced, by: f64| cx.aten("div.Scalar", [&it, &Value::Float(by)]);
    let (mut scale, mut zero, zero_dtype);
    match args.str(1)? {
        mapping @ ("SYMMETRIC" | "SYMMETRIC_NO_CLIPPING_ERR") => {
            scale = if mapping == "SYMMETRIC" {
                let low = cx.aten("neg", [&low])?;
                let most = cx.aten("maximum", [&low, &high])?;
                divided(cx, most, (max - min) / 2.0)?
            } else {
                let (low, high) = (divided(cx, low, min)?, divided(cx, high, max)?);
                let is_low = cx.aten("gt.Tensor", [&low, &high])?;
                cx.aten("where.self", [&is_low, &low, &high])?
            };
            let middle = ((max + min + 1.0) / 2.0).trunc();
            zero = cx.aten("full_like", [&scale, &bound(middle)])?;
            scale = cx.aten("clamp", [&scale, &Value::Float(eps)])?;
            zero_dtype = dtype_at(args, "zero_point_dtype");
        }
        "ASYMMETRIC" => {
            let range = cx.aten("sub.Tensor", [&high, &low])?;
            scale = divided(cx, range, max - min)?;
            scale = cx.aten("clamp", [&scale, &Value::Float(eps)])?;
            let steps = cx.aten("div.Tensor", [&low, &scale])?;
            let steps = cx.aten("round", [&steps])?;
            zero = cx.aten("rsub.Scalar", [&steps, &bound(min)])?;
            zero = cx.aten("clamp", [&zero, &bound(min), &bound(max)])?;
            zero_dtype = Some(dtype_at(args, "zero_point_dtype").unwrap_or(DType::Int32));
        }
        other => return Err(args.invalid(format!("Unsupported mapping type: {other}"))),
    }
    if keepdim == Value::Bool(true) {
        scale = cx.aten("reshape", [&scale, &dims(&blocks.counts)])?;
        zero = cx.aten("reshape", [&zero, &dims(&blocks.counts)])?;
    }
    let scale = to(cx, args, scale, dtype_at(args, "scale_dtype").unwrap_or(own))?;
    let zero = match zero_dtype {
        Some(dtype) => to(cx, args, zero, dtype)?,
        None => zero,
    };
    Ok(vec![scale, zero])
}

pub(super) fn choose_scale_float8(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dtype = dtype_at(args, "float8_dtype").unwrap_or(DType::Float8E4M3FN);
    let most = float8_max(dtype).ok_or_else(|| args.invalid(format!("Unsupported dtype: {dtype}")))?;
    if dtype_at(args, "scale_dtype") != Some(DType::Float32) {
        return Err(args.unsupported("a scale of another dtype than float32"));
    }
    let blocks = Blocks::of(cx, args, 1)?;
    let input = cx.aten("view", [&args.values[0], &dims(&blocks.parted)])?;
    let size = cx.aten("abs", [&input])?;
    let mut size = cx.aten("amax", [&size, &blocks.within(), &Value::Bool(true)])?;
    let (low, high) = (at(args, "hp_value_lb"), at(args, "hp_value_ub"));
    if low != Value::None || high != Value::None {
        size = cx.aten("clamp", [&size, &low, &high])?;
    }
    let scale = cx.aten("div.Scalar", [&size, &Value::Float(most)])?;
    let scale = cx.aten("reshape", [&scale, &dims(&blocks.counts)])?;
    Ok(vec![to(cx, args, scale, DType::Float32)?])
}
