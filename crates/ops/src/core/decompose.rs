//! What a decomposition is written with: calls of other operators through a [`Builder`], which computes them, records them
//! or keeps them for gradients.
//!
//! A decomposition names operators of ATen as PyTorch's Python does, and lends their arguments:
//! `cx.aten("add.Tensor", [&a, &b])`, or [`Cx::aten_with`] where there are keyword arguments and [`Cx::aten_all`] where
//! there are several results. Arguments that are computed are any iterator over values, `&args.values[..3]` too.
//! Formulas ([`Expr`](crate::Expr)) name operators alike. Only an operator that may be of another namespace is called by
//! its qualified name, with [`Cx::call`].

use crate::Value;
use tracefx_core::Result;
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
    /// The qualified name of the operator that is called, whose memory the next call uses again.
    name: String,
}

impl<'a> Cx<'a> {
    /// A context over this builder.
    pub fn new(builder: &'a mut dyn Builder) -> Self {
        Cx { builder, name: String::new() }
    }

    /// The same context for a part of the work.
    pub fn reborrow<'b>(cx: &'b mut Cx<'_>) -> Cx<'b> {
        Cx::new(&mut *cx.builder)
    }

    /// Calls an operator of ATen with one result: `mul.Tensor`, or `exp` for `exp.default`.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn aten<'v>(&mut self, op: &str, args: impl IntoIterator<Item = &'v Traced>) -> Result<Traced> {
        self.aten_with(op, args, &[])
    }

    /// Calls an operator of ATen with one result, with keyword arguments.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn aten_with<'v>(
        &mut self,
        op: &str,
        args: impl IntoIterator<Item = &'v Traced>,
        kwargs: &[(&str, Traced)],
    ) -> Result<Traced> {
        let mut results = self.aten_all(op, args, kwargs)?;
        Ok(if results.is_empty() { Value::None } else { results.swap_remove(0) })
    }

    /// Calls an operator of ATen with any number of results, with keyword arguments.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn aten_all<'v>(
        &mut self,
        op: &str,
        args: impl IntoIterator<Item = &'v Traced>,
        kwargs: &[(&str, Traced)],
    ) -> Result<Vec<Traced>> {
        let args: Vec<Traced> = args.into_iter().cloned().collect();
        let overload = if op.contains('.') { "" } else { ".default" };
        self.name.clear();
        self.name.extend(["aten.", op, overload]);
        self.builder.call(&self.name, &args, kwargs)
    }

    /// Calls an operator by its qualified name, `aten.exp.default`, and gives back its results.
    ///
    /// # Errors
    /// What the operator refuses.
    pub fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        self.builder.call(op, args, kwargs)
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
