//! Kernels of the splits whose positions are in a tensor. What they give are views.

use crate::index::gather::indices;
use tracefx_core::allocate::{collected, with_room};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.narrow.Tensor", Kernel::Make(narrow)),
    ("aten.tensor_split.tensor_indices_or_sections", Kernel::Make(tensor_split)),
];

/// The view of the positions of a dimension from `start` to `end`.
fn slice(base: &Tensor, dim: usize, start: usize, end: usize) -> Result<Tensor> {
    let mut sizes = base.sizes().to_vec();
    sizes[dim] = end.saturating_sub(start);
    base.as_strided(&sizes, base.strides(), base.offset() + start * base.strides()[dim])
}

fn narrow(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (base, start, length) = (args.tensor(0)?, indices(args.tensor(2)?)?[0], args.int(3)?);
    let dim = normalize_dim(args, args.int(1)?, base.rank())?;
    let size = base.sizes()[dim] as i64;
    let from = if start < 0 { start + size } else { start };
    if from < 0 || from > size - length {
        let what = format!("start ({start}) + length ({length}) exceeds dimension size ({size}).");
        return Err(args.bad_shape(what));
    }
    Ok(vec![Value::Tensor(slice(base, dim, from as usize, (from + length) as usize)?)])
}

fn tensor_split(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let (base, split) = (args.tensor(0)?, args.tensor(1)?);
    let dim = normalize_dim(args, args.int(2)?, base.rank())?;
    let size = base.sizes()[dim] as i64;
    let given = indices(split)?;
    let ends: Vec<i64> = if split.rank() == 1 {
        collected(given.into_iter().chain([size]))?
    } else {
        let sections = given[0];
        if sections <= 0 {
            return Err(args.invalid(format!("number of sections must be larger than 0, got {sections}")));
        }
        // More sections than positions are empty ones; there is no reason for very many.
        if sections > size.max(1 << 20) {
            return Err(args.unsupported(format!("{sections} sections of a dimension of size {size}")));
        }
        collected((1..=sections).map(|at| at * (size / sections) + at.min(size % sections)))?
    };
    let inside = |it: i64| (if it < 0 { it + size } else { it }).clamp(0, size) as usize;
    let mut start = 0;
    let mut views = with_room(ends.len())?;
    for end in ends {
        views.push(Value::Tensor(slice(base, dim, inside(start), inside(end))?));
        start = end;
    }
    Ok(vec![Value::List(views)])
}
