//! Operators that move elements, or only look at them in another way.

use crate::core::decompositions::{Call, arange, dim, size_list};
use crate::view::copy::is_laid_out;
use crate::{Cx, Traced, Value, normalize_dim};
use tracefx_core::{DType, Layout, MemoryFormat, Result};
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

pub(crate) fn squeeze(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let rank = cx.meta(*args.tensor(0)?).sizes.len() as i64;
    let dims: Vec<i64> = (0..rank).collect();
    Ok(vec![cx.aten("squeeze.dims", [&args.values[0], &Value::ints(&dims)])?])
}

pub(crate) fn squeeze_dim(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("squeeze.dims", [&args.values[0], &Value::List(vec![args.values[1].clone()])])?])
}

pub(crate) fn unsafe_view(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("view", [&args.values[0], &args.values[1]])?])
}

pub(crate) fn unsafe_split(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("split.Tensor", [&args.values[0], &args.values[1], &args.values[2]])?])
}

pub(crate) fn unsafe_split_with_sizes(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("split_with_sizes", [&args.values[0], &args.values[1], &args.values[2]])?])
}

/// A copy where one is needed, with what was asked for.
fn to(cx: &mut Cx<'_>, args: &Call<'_>, dtype: Option<DType>, format: Option<MemoryFormat>) -> Results {
    let mut options = Vec::new();
    if let Some(dtype) = dtype {
        options.push(("dtype", Value::DType(dtype)));
    }
    for name in ["layout", "device", "pin_memory"] {
        if let Some(at) = args.position(name).filter(|&at| !args.is_none(at)) {
            options.push((name, args.values[at].clone()));
        }
    }
    if let Some(format) = format {
        options.push(("memory_format", Value::MemoryFormat(format)));
    }
    Ok(vec![cx.aten_with("_to_copy", [&args.values[0]], &options)?])
}

/// `to`, where the shape rule has found that it is not the tensor itself.
pub(crate) fn to_dtype(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let own = cx.meta(*args.tensor(0)?).clone();
    let dtype = match args.position("dtype") {
        Some(at) => args.opt_dtype(at)?,
        None => Some(cx.meta(*args.tensor(1)?).dtype),
    };
    let is_copy = args.position("copy").map_or(Ok(false), |at| args.bool(at))?;
    let format = match args.position("memory_format") {
        Some(at) => args.opt_memory_format(at)?,
        None => None,
    };
    let lies_right = match format {
        None | Some(MemoryFormat::Preserve) => true,
        Some(format) => is_laid_out(args, &own, format)?,
    };
    if dtype.is_none_or(|it| it == own.dtype) && !is_copy && lies_right {
        return Ok(vec![args.values[0].clone()]);
    }
    to(cx, args, dtype, format)
}

pub(crate) fn type_as(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (own, other) = (cx.meta(*args.tensor(0)?).dtype, cx.meta(*args.tensor(1)?));
    if own == other.dtype {
        return Ok(vec![args.values[0].clone()]);
    }
    let options = [
        ("dtype", Value::DType(other.dtype)),
        ("layout", Value::Layout(Layout::Strided)),
        ("device", Value::Device(other.device.clone())),
    ];
    Ok(vec![cx.aten_with("_to_copy", [&args.values[0]], &options)?])
}

pub(crate) fn contiguous(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let format = args.opt_memory_format(1)?.unwrap_or(MemoryFormat::Contiguous);
    if format == MemoryFormat::Preserve {
        return Err(args.invalid("preserve memory format is unsupported by the contiguous operator"));
    }
    if is_laid_out(args, cx.meta(*args.tensor(0)?), format)? {
        return Ok(vec![args.values[0].clone()]);
    }
    Ok(vec![cx.aten_with("clone", [&args.values[0]], &[("memory_format", Value::MemoryFormat(format))])?])
}

pub(crate) fn itself(_: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![args.values[0].clone()])
}

pub(crate) fn copy(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("clone", [&args.values[0]])?])
}

pub(crate) fn alias(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("alias", [&args.values[0]])?])
}

pub(crate) fn item(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    Ok(vec![cx.aten("_local_scalar_dense", [&args.values[0]])?])
}

/// The places of one dimension are numbered, and one number is chosen.
pub(crate) fn select_scatter(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let meta = cx.meta(*args.tensor(0)?).clone();
    let at = normalize_dim(args, args.int(2)?, meta.sizes.len())?;
    let mut index = args.sym_int(3)?.clone();
    if index.as_int().is_some_and(|it| it < 0) {
        index += &meta.sizes[at];
    }
    let numbers = arange(cx, &meta.sizes[at], None)?;
    let mut shape = vec![SymInt::ONE; meta.sizes.len()];
    shape[at] = SymInt::from(-1);
    let numbers = cx.aten("view", [&numbers, &size_list(&shape)])?;
    let mask = cx.aten("eq.Scalar", [&numbers, &Value::Int(index)])?;
    let source = cx.aten("unsqueeze", [&args.values[1], &dim(at)])?;
    let source = cx.aten("expand", [&source, &size_list(&meta.sizes)])?;
    Ok(vec![cx.aten("where.self", [&mask, &source, &args.values[0]])?])
}
