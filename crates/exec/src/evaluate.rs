//! What the nodes of a graph that is evaluated do: compute at once, say what is known of the results, or record operators.
//!
//! [`Evaluation`](crate::evaluation::Evaluation) decides which graphs are walked for autocast and for called modules, and what
//! `auto_functionalized` calls. An implementation decides what a tensor is, what an operator and a function of Python give,
//! and what control flow gives.

use crate::higher_order::{Operands, RunGraph};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::{FakeTensor, GraphModule, NodeId, Str, TensorMeta};
use tracefx_ops::{Registry, Symbols, Value};

/// What an evaluation asks.
pub(crate) trait Evaluate: Copy {
    /// What a tensor is.
    type Tensor: Clone;

    /// The operators.
    fn registry(&self) -> &Registry;

    /// What is known of symbols in sizes; nothing where all sizes are numbers.
    fn symbols(&self) -> Option<&Symbols> {
        None
    }

    /// Calls what a node calls, an operator or a function of Python, and gives back its results, one per result of the
    /// schema.
    fn call_function(
        &self,
        name: &str,
        args: &[Value<Self::Tensor>],
        kwargs: &Kwargs<Self::Tensor>,
    ) -> Results<Self::Tensor>;

    /// Calls a method of a value and gives back its results.
    fn call_method(
        &self,
        name: &str,
        args: &[Value<Self::Tensor>],
        kwargs: &Kwargs<Self::Tensor>,
    ) -> Results<Self::Tensor>;

    /// Calls the operator of this name, overload and all.
    fn call_operator(
        &self,
        name: &str,
        args: &[Value<Self::Tensor>],
        kwargs: &Kwargs<Self::Tensor>,
    ) -> Results<Self::Tensor>;

    /// Calls the overload of an operator that takes these arguments.
    fn call_overload(
        &self,
        packet: &str,
        args: &[Value<Self::Tensor>],
        kwargs: &Kwargs<Self::Tensor>,
    ) -> Results<Self::Tensor>;

    /// A number on the left of a tensor, as an operator takes it there.
    fn on_the_left(&self, number: &Value<Self::Tensor>, tensor: &Self::Tensor) -> Result<[Value<Self::Tensor>; 2]>;

    /// A tensor that the module holds.
    fn attribute(&self, tensor: &Tensor) -> Result<Self::Tensor>;

    /// A tensor that the module stands for and whose data is elsewhere.
    fn fake(&self, tensor: &FakeTensor) -> Result<Self::Tensor> {
        let sizes = tensor.meta.sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let what = format!("the data of a tensor of sizes [{sizes}] is not here");
        Err(Diagnostic::new(Code::AttributeMissing, what).help("only shapes can be computed without data"))
    }

    /// What is known of a tensor without its data.
    fn meta(&self, tensor: &Self::Tensor) -> TensorMeta;

    /// What control flow gives, where `run` gives what its graphs give.
    fn control_flow(
        &self,
        operands: &Operands<'_, Self::Tensor>,
        run: &mut RunGraph<'_, Self::Tensor>,
    ) -> Result<Value<Self::Tensor>>;

    /// Is told which node comes next.
    fn enter(&self, _: &GraphModule, _: NodeId) {}

    /// Is told what a node gave.
    fn note(&self, _: &GraphModule, _: NodeId, _: &Value<Self::Tensor>) {}
}

pub(crate) type Kwargs<T> = [(Str, Value<T>)];
pub(crate) type Results<T> = Result<Vec<Value<T>>>;
