//! What a decomposition is written with: calls of other operators through a [`Builder`], which computes them, records them
//! or keeps them for gradients.

use crate::{Args, Value, promote_types};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;

/// A tensor inside a decomposition: whatever the builder keeps under this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorRef(pub usize);

/// A value inside a decomposition.
pub type Traced = Value<TensorRef>;

/// Where the calls of a decomposition go: to kernels at once, or into a graph.
pub trait Builder {
    /// Calls an operator by name and gives back its results.
    ///
    /// # Errors
    /// What the operator refuses.
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>>;

    /// What is known of a tensor.
    fn meta(&self, tensor: TensorRef) -> &TensorMeta;
}

/// What a decomposition is given to work with.
pub struct Cx<'a> {
    builder: &'a mut dyn Builder,
}

impl<'a> Cx<'a> {
    /// A context over this builder.
    pub fn new(builder: &'a mut dyn Builder) -> Self {
        Cx { builder }
    }

    /// The same context for a part of the work.
    pub fn reborrow<'b>(cx: &'b mut Cx<'_>) -> Cx<'b> {
        Cx { builder: &mut *cx.builder }
    }

    /// Calls an operator with one result.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn call(&mut self, op: &str, args: impl IntoIterator<Item = Traced>) -> Result<Traced> {
        self.call_with(op, args, &[])
    }

    /// Calls an operator with one result, with keyword arguments.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn call_with(
        &mut self,
        op: &str,
        args: impl IntoIterator<Item = Traced>,
        kwargs: &[(&str, Traced)],
    ) -> Result<Traced> {
        let args: Vec<Traced> = args.into_iter().collect();
        let mut results = self.builder.call(op, &args, kwargs)?;
        Ok(if results.is_empty() { Value::None } else { results.swap_remove(0) })
    }

    /// Calls an operator with several results.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn call_all(&mut self, op: &str, args: impl IntoIterator<Item = Traced>) -> Result<Vec<Traced>> {
        self.call_all_with(op, args, &[])
    }

    /// Calls an operator with several results, with keyword arguments.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn call_all_with(
        &mut self,
        op: &str,
        args: impl IntoIterator<Item = Traced>,
        kwargs: &[(&str, Traced)],
    ) -> Result<Vec<Traced>> {
        let args: Vec<Traced> = args.into_iter().collect();
        self.builder.call(op, &args, kwargs)
    }

    /// What is known of a tensor.
    pub fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        self.builder.meta(tensor)
    }
}

impl From<TensorRef> for Traced {
    fn from(tensor: TensorRef) -> Self {
        Value::Tensor(tensor)
    }
}

/// The decomposition of an operator that is another name of one with the same arguments.
pub(crate) fn forward(cx: &mut Cx<'_>, args: &Args<'_, TensorRef>, op: &str) -> Result<Vec<Traced>> {
    let specs = args.op.schema.args.iter();
    let (named, positional): (Vec<_>, Vec<_>) = specs.zip(&args.values).partition(|(spec, _)| spec.is_kwarg_only);
    let named: Vec<_> = named.into_iter().map(|(spec, value)| (spec.name.as_str(), value.clone())).collect();
    Ok(vec![cx.call_with(op, positional.into_iter().map(|(_, value)| value.clone()), &named)?])
}

/// Decomposes in float32 where the arguments are of half types, and rounds the result to the dtype it has without that:
/// `pw_cast_for_opmath` of torch/_decomp/decompositions.py.
pub(crate) fn widened(
    cx: &mut Cx<'_>,
    args: &Args<'_, TensorRef>,
    body: impl FnOnce(&mut Cx<'_>, &[Traced]) -> Result<Traced>,
) -> Result<Traced> {
    let mut values = args.values.clone();
    let mut narrow = None;
    for value in &mut values {
        let Value::Tensor(tensor) = *value else { continue };
        let dtype = cx.meta(tensor).dtype;
        if dtype.is_float() && dtype.size() == 2 {
            // Two kinds of half types meet in float32.
            narrow = Some(narrow.map_or(dtype, |it| promote_types(it, dtype)));
            *value = to_dtype(cx, tensor, DType::Float32)?;
        } else if dtype.is_float() {
            // With a wider float beside it, the result is wide too.
            return body(cx, &args.values);
        }
    }
    match (body(cx, &values)?, narrow) {
        (Value::Tensor(res), Some(narrow)) => to_dtype(cx, res, narrow),
        (res, _) => Ok(res),
    }
}

/// The tensor with its elements converted; itself where they are of that dtype already.
pub(crate) fn to_dtype(cx: &mut Cx<'_>, tensor: TensorRef, dtype: DType) -> Result<Traced> {
    if cx.meta(tensor).dtype == dtype {
        return Ok(tensor.into());
    }
    cx.call_with("aten._to_copy.default", [tensor.into()], &[("dtype", Value::DType(dtype))])
}
