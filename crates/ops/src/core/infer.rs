//! What a shape rule gives: new tensors, views, arguments themselves, numbers; and the kinds of rules.

use crate::{Args, Value};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// One result of an operator, as its shape rule gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A tensor of its own, which a kernel fills.
    Tensor(TensorMeta),
    /// A view of the storage of the argument at this position; of the `item`-th tensor where the argument is a list.
    View {
        /// The position of the argument.
        arg: usize,
        /// The position in the list.
        item: usize,
        /// What the view sees.
        meta: TensorMeta,
    },
    /// The argument at this position itself.
    Same(usize),
    /// A list of tensors.
    List(Vec<Output>),
    /// A value that follows from the shapes alone.
    Value(Value<TensorMeta>),
    /// A value that only the data can tell; a kernel makes it. What the rule knows of it has new symbols
    /// ([`Args::new_size`], [`Args::new_item`]) in the place of what it does not know. `None` where not even the number
    /// of results is known.
    Unknown(Value<TensorMeta>),
}

impl Output {
    /// A view of the first argument.
    pub fn view(meta: TensorMeta) -> Self {
        Output::View { arg: 0, item: 0, meta }
    }

    /// A row-major tensor whose sizes only the data can tell.
    pub fn unknown(dtype: DType, sizes: Vec<SymInt>) -> Self {
        Output::Unknown(Value::Tensor(TensorMeta::contiguous(dtype, sizes)))
    }

    /// What this result is, without its data.
    pub fn value(&self, args: &Args<'_, TensorMeta>) -> Value<TensorMeta> {
        match self {
            Output::Tensor(meta) | Output::View { meta, .. } => Value::Tensor(meta.clone()),
            Output::Same(arg) => args.values[*arg].clone(),
            Output::List(items) => Value::List(items.iter().map(|it| it.value(args)).collect()),
            Output::Value(value) | Output::Unknown(value) => value.clone(),
        }
    }
}

/// A fresh row-major tensor as the only result.
pub fn contiguous(dtype: DType, sizes: Vec<SymInt>) -> Vec<Output> {
    vec![Output::Tensor(TensorMeta::contiguous(dtype, sizes))]
}

/// The dimension as an index from the front. A 0-d tensor counts as having one dimension, as in PyTorch.
///
/// # Errors
/// `IndexOutOfRange`, in PyTorch's words.
pub fn normalize_dim<T>(args: &Args<'_, T>, dim: i64, rank: usize) -> Result<usize> {
    let n = rank.max(1) as i64;
    if dim < -n || dim >= n {
        let what = format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -n, n - 1);
        return Err(Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name));
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

/// As [`normalize_dim`], of a dimension that has to be there: a 0-d tensor has none whose size could be asked for.
///
/// # Errors
/// `IndexOutOfRange`, in PyTorch's words.
pub(crate) fn sized_dim<T>(args: &Args<'_, T>, dim: i64, rank: usize) -> Result<usize> {
    if rank == 0 {
        let what = format!("Dimension specified as {dim} but tensor has no dimensions");
        return Err(Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name));
    }
    normalize_dim(args, dim, rank)
}

/// The sizes that these sizes broadcast to. A size that is not known yet is not one, as in PyTorch.
///
/// # Errors
/// `ShapeMismatch`, in PyTorch's words, where two sizes differ and neither is one.
pub fn broadcast<T>(args: &Args<'_, T>, a: &[SymInt], b: &[SymInt]) -> Result<Vec<SymInt>> {
    let rank = a.len().max(b.len());
    let one = SymInt::from(1);
    let at = |sizes: &[SymInt], dim: usize| match (dim + sizes.len()).checked_sub(rank) {
        Some(dim) => sizes[dim].clone(),
        None => one.clone(),
    };
    // Of symbols it is known that they are not one; of what is made of them it may have to be asked.
    let is_one = |size: &SymInt| *size == one || size.is_symbolic() && args.same(size, &one);
    (0..rank)
        .map(|dim| {
            let (x, y) = (at(a, dim), at(b, dim));
            if x == y || is_one(&y) {
                return Ok(x);
            }
            if is_one(&x) {
                return Ok(y);
            }
            if args.differ(&x, &y) {
                return Err(args.bad_shape(format!(
                    "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {dim}"
                )));
            }
            // No symbol is taken to be one, so a run that is not refused has both alike.
            Ok(if x.is_symbolic() { y } else { x })
        })
        .collect()
}
