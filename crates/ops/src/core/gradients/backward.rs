//! What the gradient of an operator is written with: the call, its results and the incoming gradients, as formulas.

use super::Expr;
use crate::{Args, Builder, Op, TensorRef, Traced, Value, normalize_dim};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// A call to be differentiated: its arguments, its results, and the gradients that come in from behind.
pub struct Backward<'a> {
    builder: &'a dyn Builder,
    /// The arguments, bound.
    pub args: &'a Args<'a, TensorRef>,
    results: &'a [Traced],
    grads: &'a [Traced],
    needs: &'a dyn Fn(TensorRef) -> bool,
}

impl<'a> Backward<'a> {
    /// A call with its results and their gradients: a gradient is a tensor or `None`, and a list where the result is one.
    pub(super) fn new(
        builder: &'a dyn Builder,
        args: &'a Args<'a, TensorRef>,
        results: &'a [Traced],
        grads: &'a [Traced],
        needs: &'a dyn Fn(TensorRef) -> bool,
    ) -> Self {
        Backward { builder, args, results, grads, needs }
    }

    /// The operator.
    pub fn op(&self) -> &'a Op {
        self.args.op
    }

    /// The gradient of the first result; zeros where none comes in.
    pub fn grad(&self) -> Expr {
        self.grad_of(0)
    }

    /// The gradient of a result; zeros where none comes in.
    pub fn grad_of(&self, index: usize) -> Expr {
        self.opt_grad(index).unwrap_or_else(|| self.result(index).zeros_like())
    }

    /// The gradient of a result, where one comes in.
    pub fn opt_grad(&self, index: usize) -> Option<Expr> {
        self.grads.get(index).filter(|it| !matches!(it, Value::None)).map(|it| it.clone().into())
    }

    /// The gradients of the tensors of a list that is the first result; zeros where none comes in.
    ///
    /// # Errors
    /// `Internal` where the first result is not a list.
    pub fn grad_list(&self) -> Result<Vec<Expr>> {
        let (Some(Value::List(results)), Some(Value::List(grads))) = (self.results.first(), self.grads.first()) else {
            return Err(Diagnostic::new(Code::Internal, "the result is not a list").op(&*self.op().name));
        };
        let one = |(result, grad): (&Traced, &Traced)| match grad {
            Value::None => Expr::from(result.clone()).zeros_like(),
            grad => grad.clone().into(),
        };
        Ok(results.iter().zip(grads).map(one).collect())
    }

    /// An argument, whatever it is.
    pub fn arg(&self, index: usize) -> Expr {
        self.args.values[index].clone().into()
    }

    /// The items of an argument that is a list.
    ///
    /// # Errors
    /// `SchemaMismatch` where it is none.
    pub fn arg_list(&self, index: usize) -> Result<Vec<Expr>> {
        Ok(self.args.list(index)?.iter().map(|it| it.clone().into()).collect())
    }

    /// A result.
    pub fn result(&self, index: usize) -> Expr {
        self.results[index].clone().into()
    }

    /// Whether a gradient of this argument, or of one of its tensors, is wanted. A gradient that is not wanted may be
    /// given all the same: it is not computed.
    pub fn needs(&self, index: usize) -> bool {
        fn any(value: &Traced, needs: &dyn Fn(TensorRef) -> bool) -> bool {
            match value {
                Value::Tensor(it) => needs(*it),
                Value::List(items) => items.iter().any(|it| any(it, needs)),
                _ => false,
            }
        }
        any(&self.args.values[index], self.needs)
    }

    /// The gradient of an argument of which it is not implemented; asking for it is refused.
    pub fn missing(&self, index: usize) -> Expr {
        let spec = &self.op().schema.args[index];
        Expr::missing(format!("the gradient of {} in `{}` is not implemented", self.op().name, spec.name))
    }

    /// Which of these arguments want a gradient, as operators of the backward pass take it.
    pub fn mask<const N: usize>(&self, indices: [usize; N]) -> Expr {
        Traced::List(indices.map(|index| Value::Bool(self.needs(index))).to_vec()).into()
    }

    /// What is known of an argument that is a tensor.
    ///
    /// # Errors
    /// `SchemaMismatch` where it is none.
    pub fn meta(&self, index: usize) -> Result<&'a TensorMeta> {
        Ok(self.builder.meta(*self.args.tensor(index)?))
    }

    /// What is known of the tensors of an argument that is a list of them.
    ///
    /// # Errors
    /// `SchemaMismatch` where it is none.
    pub fn metas(&self, index: usize) -> Result<Vec<&'a TensorMeta>> {
        Ok(self.args.tensors(index)?.into_iter().map(|it| self.builder.meta(*it)).collect())
    }

    /// What is known of a result that is a tensor.
    ///
    /// # Errors
    /// `Internal` where it is none.
    pub fn result_meta(&self, index: usize) -> Result<&'a TensorMeta> {
        match self.results.get(index) {
            Some(Value::Tensor(it)) => Ok(self.builder.meta(*it)),
            _ => Err(Diagnostic::new(Code::Internal, "the result is not a tensor").op(&*self.op().name)),
        }
    }

    /// The sizes of an argument that is a tensor.
    ///
    /// # Errors
    /// `SchemaMismatch` where it is none.
    pub fn sizes(&self, index: usize) -> Result<&'a [SymInt]> {
        Ok(&self.meta(index)?.sizes)
    }

    /// The number of dimensions of an argument that is a tensor.
    ///
    /// # Errors
    /// `SchemaMismatch` where it is none.
    pub fn rank(&self, index: usize) -> Result<usize> {
        Ok(self.sizes(index)?.len())
    }

    /// An argument that is a dimension of the first argument, counted from the front.
    ///
    /// # Errors
    /// As [`normalize_dim`].
    pub fn dim(&self, index: usize) -> Result<i64> {
        Ok(normalize_dim(self.args, self.args.int(index)?, self.rank(0)?)? as i64)
    }
}
