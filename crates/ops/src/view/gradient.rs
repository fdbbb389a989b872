//! Gradients of views and of what moves data by whole dimensions.

use crate::core::gradients::{Backward, Expr};
use crate::normalize_dim;
use smallvec::SmallVec;
use tracefx_core::Result;
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

type Formulas = Result<Vec<Expr>>;

/// Zeros of the sizes of the first argument.
fn zeros(it: &Backward<'_>) -> Result<Expr> {
    Ok(Expr::aten("new_zeros", [it.grad(), it.sizes(0)?.into()]))
}

/// The same elements in other sizes.
pub(crate) fn reshaped(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().reshape(it.sizes(0)?)])
}

pub(crate) fn permute(it: &Backward<'_>) -> Formulas {
    let dims = it.args.ints(1)?;
    let mut inverse = vec![0; dims.len()];
    for (at, &dim) in dims.iter().enumerate() {
        inverse[normalize_dim(it.args, dim, dims.len())?] = at as i64;
    }
    Ok(vec![Expr::aten("permute", [it.grad(), inverse[..].into()])])
}

pub(crate) fn flip(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("flip", [it.grad(), it.arg(1)])])
}

pub(crate) fn tril(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("tril", [it.grad(), it.arg(1)])])
}

pub(crate) fn triu(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("triu", [it.grad(), it.arg(1)])])
}

pub(crate) fn view_as_real(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().contiguous().unary("view_as_complex")])
}

pub(crate) fn view_as_complex(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().unary("view_as_real")])
}

pub(crate) fn slice(it: &Backward<'_>) -> Formulas {
    let rest = (1..5).map(|at| it.arg(at));
    Ok(vec![Expr::aten("slice_scatter", [zeros(it)?, it.grad()].into_iter().chain(rest))])
}

pub(crate) fn select(it: &Backward<'_>) -> Formulas {
    Ok(vec![Expr::aten("select_scatter", [zeros(it)?, it.grad(), it.arg(1), it.arg(2)])])
}

pub(crate) fn diagonal(it: &Backward<'_>) -> Formulas {
    let rest = (1..4).map(|at| it.arg(at));
    Ok(vec![Expr::aten("diagonal_scatter", [zeros(it)?, it.grad()].into_iter().chain(rest))])
}

/// The start is a tensor, so that only indices can say where it is.
pub(crate) fn narrow(it: &Backward<'_>) -> Formulas {
    let (dim, length) = (it.dim(1)?, it.arg(3));
    let positions = Expr::aten("arange", [length]) + it.arg(2);
    Ok(vec![Expr::aten("index_add", [zeros(it)?, dim.into(), positions, it.grad()])])
}

/// The gradient of a tensor whose elements lie at these positions of a row of `n`: what came in is added up where it came
/// from.
fn added_up(grad: &Expr, positions: &Expr, n: &SymInt) -> Expr {
    let flat = |it: &Expr| Expr::aten("reshape", [it.clone(), Expr::from(&[-1_i64][..])]);
    let zeros = Expr::aten("new_zeros", [grad.clone(), std::slice::from_ref(n).into()]);
    Expr::aten("index_add", [zeros, 0.into(), flat(positions), flat(grad)])
}

/// Windows overlap.
pub(crate) fn unfold(it: &Backward<'_>) -> Formulas {
    let sizes = it.sizes(0)?;
    let n: SymInt = sizes.iter().product();
    let positions = Expr::aten("arange", [Expr::from(&n)]).reshape(sizes);
    let windows = Expr::aten("unfold", [positions, it.arg(1), it.arg(2), it.arg(3)]);
    Ok(vec![added_up(&it.grad(), &windows, &n).reshape(sizes)])
}

/// By way of the storage, as large as both views need it: elements of the argument that share a place share the gradient.
pub(crate) fn as_strided(it: &Backward<'_>) -> Formulas {
    let input = it.meta(0)?;
    let offset = it.args.opt_sym_int(3)?.unwrap_or(&input.storage_offset).clone();
    let view = TensorMeta {
        sizes: it.args.sym_ints(1)?,
        strides: it.args.sym_ints(2)?,
        storage_offset: offset,
        ..input.clone()
    };
    let first = input.storage_offset.min(&view.storage_offset);
    let moved = |it: &TensorMeta| TensorMeta { storage_offset: &it.storage_offset - &first, ..it.clone() };
    let (input, view) = (moved(input), moved(&view));
    let n = span(&input).max(&span(&view));
    let positions = |it: &TensorMeta| strided(&Expr::aten("arange", [Expr::from(&n)]), it);
    let mut storage = added_up(&it.grad(), &positions(&view), &n);
    if may_overlap(&input) {
        let ones = strided(&storage, &input).ones_like();
        storage = storage / added_up(&ones, &positions(&input), &n);
    }
    Ok(vec![strided(&storage, &input)])
}

fn strided(storage: &Expr, meta: &TensorMeta) -> Expr {
    let (sizes, strides): (Expr, Expr) = (meta.sizes[..].into(), meta.strides[..].into());
    Expr::aten("as_strided", [storage.clone(), sizes, strides, (&meta.storage_offset).into()])
}

/// How many elements of the storage a view reaches.
fn span(meta: &TensorMeta) -> SymInt {
    if meta.sizes.iter().any(|it| it.as_int() == Some(0)) {
        return meta.storage_offset.clone();
    }
    let reach = |(size, stride): (&SymInt, &SymInt)| &(size - &SymInt::ONE) * stride;
    let last: SymInt = meta.sizes.iter().zip(&meta.strides).map(reach).fold(SymInt::ONE, |sum, it| &sum + &it);
    &meta.storage_offset + &last
}

/// Whether two elements may lie at one place. What is not known may be.
fn may_overlap(meta: &TensorMeta) -> bool {
    let known = |it: &[SymInt]| it.iter().map(SymInt::as_int).collect::<Option<SmallVec<[i64; 6]>>>();
    let (Some(sizes), Some(strides)) = (known(&meta.sizes), known(&meta.strides)) else { return true };
    let mut dims: SmallVec<[usize; 6]> = (0..sizes.len()).filter(|&it| sizes[it] > 1).collect();
    dims.sort_by_key(|&it| strides[it]);
    let mut reach = 0;
    dims.iter().any(|&dim| {
        let overlaps = strides[dim] <= reach;
        reach += strides[dim] * (sizes[dim] - 1);
        overlaps
    })
}

/// Columns go back to the image: it is as large as the dimensions behind.
pub(crate) fn im2col(it: &Backward<'_>) -> Formulas {
    let sizes = it.sizes(0)?;
    let image: Expr = sizes[sizes.len() - 2..].into();
    let rest = (1..5).map(|at| it.arg(at));
    Ok(vec![Expr::aten("col2im", [it.grad(), image].into_iter().chain(rest))])
}

pub(crate) fn col2im(it: &Backward<'_>) -> Formulas {
    let rest = (2..6).map(|at| it.arg(at));
    Ok(vec![Expr::aten("im2col", [it.grad()].into_iter().chain(rest))])
}

/// Each dimension split into the repeats and what was repeated; the sum over the repeats.
pub(crate) fn repeat(it: &Backward<'_>) -> Formulas {
    let (repeats, sizes) = (it.args.sym_ints(1)?, it.sizes(0)?);
    let n_new = repeats.len() - sizes.len();
    let size = |dim: usize| dim.checked_sub(n_new).map_or(SymInt::ONE, |dim| sizes[dim].clone());
    let pairs: Vec<SymInt> = repeats.iter().enumerate().flat_map(|(dim, n)| [n.clone(), size(dim)]).collect();
    if pairs.is_empty() {
        return Ok(vec![it.grad()]);
    }
    let dims: Vec<i64> = (0..repeats.len() as i64).map(|dim| 2 * dim).collect();
    Ok(vec![it.grad().reshape(&pairs).sum_dims(&dims, false)])
}

/// Each tensor gets its part. What is empty and has one dimension takes part in nothing.
pub(crate) fn cat(it: &Backward<'_>) -> Formulas {
    let rank = it.result_meta(0)?.sizes.len();
    let dim = normalize_dim(it.args, it.args.int(1)?, rank)?;
    let mut start = SymInt::from(0);
    let parts = it.metas(0)?.into_iter().map(|meta| {
        if meta.sizes.len() != rank {
            return Expr::none();
        }
        let end = &start + &meta.sizes[dim];
        let part = it.grad().narrow(dim as i64, &start, &end);
        start = end;
        part
    });
    Ok(vec![Expr::list(parts.collect::<Vec<_>>())])
}

pub(crate) fn block_diag(it: &Backward<'_>) -> Formulas {
    let (mut row, mut column) = (SymInt::from(0), SymInt::from(0));
    let parts = it.metas(0)?.into_iter().map(|meta| {
        let one = SymInt::ONE;
        let (height, width) = match &meta.sizes[..] {
            [height, width] => (height, width),
            [width] => (&one, width),
            _ => (&one, &one),
        };
        let (bottom, right) = (&row + height, &column + width);
        let part = it.grad().narrow(0, &row, &bottom).narrow(1, &column, &right).reshape(&meta.sizes);
        (row, column) = (bottom, right);
        part
    });
    Ok(vec![Expr::list(parts.collect::<Vec<_>>())])
}

/// The parts together again; the dimension is the last argument.
pub(crate) fn split(it: &Backward<'_>) -> Formulas {
    let dim = it.dim(2)?;
    Ok(vec![Expr::aten("cat", [Expr::list(it.grad_list()?), dim.into()])])
}

pub(crate) fn constant_pad_nd(it: &Backward<'_>) -> Formulas {
    let cut: Vec<SymInt> = it.args.sym_ints(1)?.iter().map(|it| -it).collect();
    Ok(vec![Expr::aten("constant_pad_nd", [it.grad(), cut[..].into()])])
}

/// The values that were replaced get none, and those in their place all.
fn scattered(it: &Backward<'_>, scatter: &'static str, view: &'static str) -> Formulas {
    let place = |base: Expr| [base].into_iter().chain((2..it.args.values.len()).map(|at| it.arg(at)));
    let mut erased: Vec<Expr> = place(it.grad()).collect();
    erased.insert(1, it.arg(1).zeros_like());
    Ok(vec![Expr::aten(scatter, erased), Expr::aten(view, place(it.grad()))])
}

pub(crate) fn slice_scatter(it: &Backward<'_>) -> Formulas {
    scattered(it, "slice_scatter", "slice.Tensor")
}

pub(crate) fn select_scatter(it: &Backward<'_>) -> Formulas {
    scattered(it, "select_scatter", "select.int")
}

pub(crate) fn diagonal_scatter(it: &Backward<'_>) -> Formulas {
    scattered(it, "diagonal_scatter", "diagonal")
}

/// The strides are those of a row-major tensor, which the result is.
pub(crate) fn as_strided_scatter(it: &Backward<'_>) -> Formulas {
    let grad = it.grad().contiguous();
    let place = |rest: &[Expr]| {
        let geometry = (2..5).map(|at| it.arg(at));
        [grad.clone()].into_iter().chain(rest.to_vec()).chain(geometry).collect::<Vec<_>>()
    };
    let erased = Expr::aten("as_strided_scatter", place(&[it.arg(1).zeros_like()]));
    Ok(vec![erased, Expr::aten("as_strided", place(&[]))])
}

/// Nothing of what was there is left; the value gets it all.
pub(crate) fn fill(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().zeros_like(), it.grad().sum()])
}

/// `copy(self, src)` is the source, as large as `self` and of its dtype.
pub(crate) fn copy(it: &Backward<'_>) -> Formulas {
    Ok(vec![it.grad().zeros_like(), it.grad()])
}
