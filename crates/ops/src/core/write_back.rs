//! What becomes of a tensor when a view of it gets new values. Functionalisation asks: a graph without writes has to make
//! the whole tensor anew. Follows aten/src/ATen/FunctionalInverses.cpp.

use crate::core::decompositions::{Call, size_list};
use crate::{Cx, Traced, Value, normalize_dim};
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

fn base<'a>(cx: &'a Cx<'_>, args: &Call<'_>) -> Result<&'a TensorMeta> {
    Ok(cx.meta(*args.tensor(0)?))
}

/// The view shows everything: its values are those of the tensor.
pub(crate) fn whole(_: &mut Cx<'_>, _: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    Ok(changed.clone())
}

/// The view is a part: an operator with the arguments of the view puts it in its place.
fn scatter(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, op: &str) -> Result<Traced> {
    let (this, rest) = args.values.split_first().expect("a view has a first argument");
    cx.aten(op, [this, changed].into_iter().chain(rest))
}

pub(crate) fn slice(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    scatter(cx, args, changed, "slice_scatter")
}

pub(crate) fn select(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    scatter(cx, args, changed, "select_scatter")
}

pub(crate) fn diagonal(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    scatter(cx, args, changed, "diagonal_scatter")
}

pub(crate) fn as_strided(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    scatter(cx, args, changed, "as_strided_scatter")
}

/// One of the pieces of `split_with_sizes`.
pub(crate) fn piece(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, item: usize) -> Result<Traced> {
    let dim = normalize_dim(args, args.int(2)?, base(cx, args)?.sizes.len())?;
    let pieces = args.sym_ints(1)?;
    let start: SymInt = pieces[..item].iter().sum();
    let end = &start + &pieces[item];
    cx.aten("slice_scatter", [&args.values[0], changed, &Value::int(dim as i64), &Value::Int(start), &Value::Int(end)])
}

/// One of the pieces of `split`, which are of equal size but for the last.
pub(crate) fn equal_piece(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, item: usize) -> Result<Traced> {
    let sizes = base(cx, args)?.sizes.clone();
    let dim = normalize_dim(args, args.int(2)?, sizes.len())?;
    let size = args.sym_int(1)?;
    let start = size * item as i64;
    let end = (&start + size).min(&sizes[dim]);
    cx.aten("slice_scatter", [&args.values[0], changed, &Value::int(dim as i64), &Value::Int(start), &Value::Int(end)])
}

/// One position of the dimension that `unbind` takes away.
pub(crate) fn position(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, item: usize) -> Result<Traced> {
    cx.aten("select_scatter", [&args.values[0], changed, &args.values[1], &Value::int(item as i64)])
}

pub(crate) fn t(cx: &mut Cx<'_>, _: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    cx.aten("t", [changed])
}

pub(crate) fn transpose(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    cx.aten("transpose.int", [changed, &args.values[1], &args.values[2]])
}

pub(crate) fn view(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    cx.aten("view", [changed, &size_list(&base(cx, args)?.sizes)])
}

pub(crate) fn view_dtype(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    let dtype = Value::DType(base(cx, args)?.dtype);
    cx.aten("view.dtype", [changed, &dtype])
}

pub(crate) fn view_as_real(cx: &mut Cx<'_>, _: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    cx.aten("view_as_complex", [changed])
}

pub(crate) fn view_as_complex(cx: &mut Cx<'_>, _: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    cx.aten("view_as_real", [changed])
}

pub(crate) fn permute(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    let rank = base(cx, args)?.sizes.len();
    let mut inverse = vec![0; rank];
    for (to, from) in args.ints(1)?.into_iter().enumerate() {
        inverse[normalize_dim(args, from, rank)?] = to as i64;
    }
    cx.aten("permute", [changed, &Value::ints(&inverse)])
}

pub(crate) fn unsqueeze(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    cx.aten("squeeze.dim", [changed, &args.values[1]])
}

/// The dimensions that a squeeze dropped come back.
pub(crate) fn squeeze(cx: &mut Cx<'_>, args: &Call<'_>, changed: &Traced, _: usize) -> Result<Traced> {
    let sizes = base(cx, args)?.sizes.clone();
    let dims = match args.values.get(1) {
        None => (0..sizes.len()).collect(),
        Some(Value::List(_)) => {
            let dims = args.ints(1)?;
            dims.into_iter().map(|it| normalize_dim(args, it, sizes.len())).collect::<Result<Vec<_>>>()?
        }
        Some(_) => vec![normalize_dim(args, args.int(1)?, sizes.len())?],
    };
    let mut res = changed.clone();
    for (dim, size) in sizes.iter().enumerate() {
        if *size == 1 && dims.contains(&dim) {
            res = cx.aten("unsqueeze", [&res, &Value::int(dim as i64)])?;
        }
    }
    Ok(res)
}
