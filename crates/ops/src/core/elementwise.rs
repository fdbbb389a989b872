//! The shape rule of everything that computes each element from the elements at the same place: sizes broadcast, dtypes
//! promote, and the result lies in memory as the inputs do.

use crate::{ArgType, Args, Operand, Output, Tags, Value, broadcast, promote};
use smallvec::SmallVec;
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The operands among these arguments; `None` is left out. Shapes and dtypes depend on the kind of a number alone, so one
/// that is not known is a zero of its kind here.
pub(crate) fn operands<'a>(
    args: &'a Args<'_, TensorMeta>,
    indices: impl IntoIterator<Item = usize>,
) -> Result<SmallVec<[Operand<'a, TensorMeta>; 3]>> {
    indices.into_iter().filter(|&it| !args.is_none(it)).map(|it| operand(args, it)).collect()
}

fn operand<'a>(args: &'a Args<'_, TensorMeta>, index: usize) -> Result<Operand<'a, TensorMeta>> {
    match &args.values[index] {
        Value::Int(it) if it.is_symbolic() => Ok(Operand::Scalar(Scalar::Int(0))),
        Value::SymFloat(_) => Ok(Operand::Scalar(Scalar::Float(0.0))),
        Value::SymBool(_) => Ok(Operand::Scalar(Scalar::Bool(false))),
        _ => args.operand(index),
    }
}

/// A new tensor of this dtype with one element for each place of these operands.
pub(crate) fn elementwise<T>(
    args: &Args<'_, T>,
    dtype: DType,
    operands: &[Operand<'_, TensorMeta>],
) -> Result<Vec<Output>> {
    let tensors: SmallVec<[&TensorMeta; 3]> = operands
        .iter()
        .filter_map(|it| match it {
            Operand::Tensor(it) => Some(*it),
            Operand::Scalar(_) => None,
        })
        .collect();
    let mut sizes = Vec::new();
    for tensor in &tensors {
        sizes = broadcast(args, &sizes, &tensor.sizes)?;
    }
    Ok(vec![Output::Tensor(laid_out(dtype, sizes, &tensors))])
}

/// The dtype that operators such as `sin` compute in: floats stay what they are, all else becomes float32.
pub(crate) fn to_float(dtype: DType) -> DType {
    match dtype.kind() {
        DTypeKind::Bool | DTypeKind::Int => DType::Float32,
        DTypeKind::Float | DTypeKind::Complex => dtype,
    }
}

/// The rule of an operator whose operands are the first `N` arguments: the result is of the dtype they promote to.
pub(crate) fn promoting<const N: usize>(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let operands = operands(args, 0..N)?;
    elementwise(args, promote(&operands), &operands)
}

/// As [`promoting`], but integers become floats.
pub(crate) fn promoting_to_float<const N: usize>(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let operands = operands(args, 0..N)?;
    elementwise(args, to_float(promote(&operands)), &operands)
}

/// The rule of an operator that asks a question of the first `N` arguments.
pub(crate) fn to_bool<const N: usize>(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    elementwise(args, DType::Bool, &operands(args, 0..N)?)
}

/// Refuses a number that elements of this dtype do not hold, as PyTorch does where it fills a tensor. Negative integers may
/// wrap in an unsigned dtype, and what lies behind the decimal point may be lost.
pub(crate) fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let real = value.to_complex();
    let (low, high) = match dtype {
        DType::UInt8 => (-255.0, 255.0),
        DType::Int8 => (-128.0, 127.0),
        DType::UInt16 => (-65535.0, 65535.0),
        DType::Int16 => (-32768.0, 32767.0),
        DType::UInt32 => (-4294967295.0, 4294967295.0),
        DType::Int32 => (-2147483648.0, 2147483647.0),
        DType::UInt64 | DType::Int64 => (-9223372036854775808.0, 9223372036854775808.0),
        DType::Float16 => (-65504.0, 65504.0),
        DType::BFloat16 => (-3.3895313892515355e38, 3.3895313892515355e38),
        DType::Float32 | DType::Complex64 => (f64::from(f32::MIN), f64::from(f32::MAX)),
        DType::Bool
        | DType::Float64
        | DType::Float8E4M3FN
        | DType::Float8E5M2
        | DType::Float8E4M3FNUZ
        | DType::Float8E5M2FNUZ
        | DType::Float8E8M0FNU
        | DType::Complex32
        | DType::Complex128 => (f64::MIN, f64::MAX),
    };
    let is_unsigned = matches!(dtype, DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64);
    let low = if is_unsigned && value.kind() > DTypeKind::Int { 0.0 } else { low };
    let is_special = !real.re.is_finite();
    let fits = if is_special { dtype.kind() != DTypeKind::Int } else { (low..=high).contains(&real.re) };
    let fits_rest = if dtype.is_complex() { !real.im.is_finite() || real.im.abs() <= high } else { real.im == 0.0 };
    if fits && fits_rest {
        return Ok(());
    }
    let what = format!("value cannot be converted to type {} without overflow", dtype.name());
    Err(Diagnostic::new(Code::InvalidArgument, what))
}

/// Refuses numbers among the arguments that do not fit what the operator computes in: halves are computed in float32, but by
/// operators that round their numbers first.
pub(crate) fn check_numbers<T>(args: &Args<'_, T>, dtype: DType) -> Result<()> {
    let is_wide = matches!(dtype, DType::Float16 | DType::BFloat16) && !args.op.def.tags.has(Tags::ROUNDS_NUMBERS);
    check_all_fit(args, if is_wide { DType::Float32 } else { dtype })
}

/// Refuses numbers among the arguments that elements of this dtype do not hold.
pub(crate) fn check_all_fit<T>(args: &Args<'_, T>, dtype: DType) -> Result<()> {
    for (spec, value) in args.op.schema.args.iter().zip(&args.values) {
        let is_number = matches!(&spec.ty, ArgType::Scalar)
            || matches!(&spec.ty, ArgType::Optional(inner) if matches!(**inner, ArgType::Scalar));
        if is_number && let Some(number) = value.as_scalar() {
            check_fits(number, dtype)?;
        }
    }
    Ok(())
}

/// A tensor whose elements lie in the order of memory in which the operands lie, as PyTorch's `TensorIterator` decides.
pub(crate) fn laid_out(dtype: DType, sizes: Vec<SymInt>, operands: &[&TensorMeta]) -> TensorMeta {
    let mut meta = TensorMeta::contiguous(dtype, sizes);
    let is_whole = |it: &&&TensorMeta| it.sizes == meta.sizes;
    let all_whole = operands.iter().all(|it| is_whole(&it));
    let is_row_major = |it: &&TensorMeta| steps_alike(&it.sizes, &it.strides, &meta.strides);
    if operands.iter().filter(is_whole).all(is_row_major) && (all_whole || meta.sizes.len() < 2) {
        return meta;
    }
    if let [first, rest @ ..] = operands
        && all_whole
        && rest.iter().all(|it| it.strides == first.strides)
        && is_dense(first)
    {
        meta.strides = first.strides.clone();
        return meta;
    }
    let order = memory_order(&meta.sizes, operands);
    let mut stride = SymInt::ONE;
    for dim in order {
        meta.strides[dim] = stride.clone();
        stride *= meta.sizes[dim].max(&SymInt::ONE);
    }
    meta
}

/// Whether the strides are the same wherever there is more than one element to step over.
fn steps_alike(sizes: &[SymInt], a: &[SymInt], b: &[SymInt]) -> bool {
    sizes.iter().zip(a.iter().zip(b)).all(|(size, (a, b))| *size == 1 || a == b)
}

/// Whether the elements fill their part of the storage without gaps and without sharing a place. Unknown is no.
pub(crate) fn is_dense(meta: &TensorMeta) -> bool {
    let known = |it: &[SymInt]| it.iter().map(SymInt::as_int).collect::<Option<SmallVec<[i64; 6]>>>();
    let (Some(sizes), Some(strides)) = (known(&meta.sizes), known(&meta.strides)) else {
        return is_symbolically_dense(meta);
    };
    if sizes.contains(&0) {
        return true;
    }
    let mut dims: SmallVec<[usize; 6]> = (0..sizes.len()).filter(|&it| sizes[it] != 1).collect();
    dims.sort_by_key(|&it| strides[it]);
    let mut expected = 1;
    dims.iter().all(|&dim| {
        let fits = strides[dim] == expected;
        expected = expected.saturating_mul(sizes[dim]);
        fits
    })
}

/// As [`is_dense`], for strides that have the form of products of sizes.
fn is_symbolically_dense(meta: &TensorMeta) -> bool {
    let mut rest: SmallVec<[usize; 6]> = (0..meta.sizes.len()).filter(|&it| meta.sizes[it] != 1).collect();
    let mut expected = SymInt::ONE;
    while let Some(at) = rest.iter().position(|&dim| meta.strides[dim] == expected) {
        expected *= &meta.sizes[rest.remove(at)];
    }
    rest.is_empty()
}

/// The dimensions from the innermost in memory to the outermost. A stable insertion sort, for two dimensions may be
/// impossible to compare: `TensorIterator::reorder_dimensions`.
pub(crate) fn memory_order(sizes: &[SymInt], operands: &[&TensorMeta]) -> Vec<usize> {
    let stride_of = |operand: &TensorMeta, dim: usize| -> Option<i64> {
        match (dim + operand.sizes.len()).checked_sub(sizes.len()) {
            Some(own) if operand.sizes[own] == sizes[dim] => operand.strides[own].as_int(),
            Some(_) | None => Some(0),
        }
    };
    let is_after = |a: usize, b: usize| -> Option<bool> {
        for operand in operands {
            // A stride that is not known yet says nothing.
            let (Some(x), Some(y)) = (stride_of(operand, a), stride_of(operand, b)) else { continue };
            if x == 0 || y == 0 {
                continue;
            }
            if x != y {
                return Some(x > y);
            }
            if let (Some(x), Some(y)) = (sizes[a].as_int(), sizes[b].as_int())
                && x > y
            {
                return Some(true);
            }
        }
        None
    };
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    for i in 1..order.len() {
        let mut at = i;
        for before in (0..i).rev() {
            match is_after(order[before], order[at]) {
                Some(true) => {
                    order.swap(before, at);
                    at = before;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(sizes: &[i64], strides: &[i64]) -> TensorMeta {
        let ints = |it: &[i64]| it.iter().map(|&it| SymInt::from(it)).collect::<Vec<_>>();
        TensorMeta { strides: ints(strides), ..TensorMeta::contiguous(DType::Float32, ints(sizes)) }
    }

    #[track_caller]
    fn check(sizes: &[i64], operands: &[&TensorMeta], strides: &[i64]) {
        let got = laid_out(DType::Float32, sizes.iter().map(|&it| SymInt::from(it)).collect(), operands);
        assert_eq!(got.strides, strides.iter().map(|&it| SymInt::from(it)).collect::<Vec<_>>());
    }

    #[test]
    fn results_lie_as_their_operands_do() {
        let channels_last = meta(&[2, 3, 4, 5], &[60, 1, 15, 3]);
        check(&[2, 3, 4, 5], &[&channels_last], &[60, 1, 15, 3]);
        check(&[2, 3, 4, 5], &[&channels_last, &meta(&[3, 1, 1], &[1, 1, 1])], &[60, 1, 15, 3]);
        check(&[2, 3, 4, 5], &[&channels_last, &meta(&[2, 3, 4, 5], &[60, 20, 5, 1])], &[60, 1, 15, 3]);
        check(&[3, 2], &[&meta(&[3, 2], &[1, 3])], &[1, 3]);
    }

    #[test]
    fn gaps_and_repetitions_are_closed() {
        check(&[3, 2], &[&meta(&[3, 2], &[4, 2])], &[2, 1]);
        check(&[3, 2], &[&meta(&[3, 2], &[0, 1])], &[2, 1]);
        check(&[3, 2], &[&meta(&[3, 1], &[1, 1]), &meta(&[1, 2], &[2, 1])], &[2, 1]);
    }
}
