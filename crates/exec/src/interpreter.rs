//! The interpreter: a walk through a graph that computes at once.

use crate::Executor;
use crate::evaluate::{Evaluate, Kwargs, Results};
use crate::evaluation::Evaluation;
use crate::functions;
use crate::higher_order::{self, Operands, RunGraph};
use crate::run::{LOOP_STEPS, Run, Running, Watch};
use crate::walk::walk_watched;
use tracefx_core::{Result, Tensor};
use tracefx_ir::{GraphModule, TensorMeta};
use tracefx_ops::{Registry, Value};

/// Runs a graph node by node: `torch.fx.Interpreter` with tensors for values.
///
/// Each value is dropped after its last user ran. An error names the node where it happened.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter<'a> {
    module: &'a GraphModule,
    executor: Executor<'a>,
}

impl<'a> Interpreter<'a> {
    /// An interpreter of this module.
    pub fn new(module: &'a GraphModule, executor: Executor<'a>) -> Self {
        Interpreter { module, executor }
    }

    /// Runs the graph on these inputs, one per placeholder, and gives back what it returns.
    ///
    /// # Errors
    /// `InputCount` where an input without a default is missing or one is too many; else what a node refuses.
    pub fn run(&self, inputs: &[Value<Tensor>]) -> Result<Value<Tensor>> {
        self.run_watched(inputs, LOOP_STEPS, &mut |_, _| Ok(()))
    }

    /// Runs the graph as [`Interpreter::run`] does. Its loops take at most `loop_steps` steps together, those in sub-graphs
    /// included. `watch` is told before each node of the graph how many were run, and how many there are; and the same again
    /// before each step of a loop. An error of `watch` stops the run.
    ///
    /// # Errors
    /// As there, `LimitExceeded` for loops that take too many steps, and what `watch` gives.
    pub fn run_watched(
        &self,
        inputs: &[Value<Tensor>],
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        let watch: &mut Watch<'_> = &mut |done, all| watch(done, all);
        let run = Run::new(loop_steps, watch);
        let evaluate = Running { executor: self.executor, steps: &run };
        walk_watched(self.module, &mut Evaluation::new(evaluate), inputs, &mut |done, all| run.enter(done, all))
    }
}

impl Evaluate for Running<'_> {
    type Tensor = Tensor;

    fn registry(&self) -> &Registry {
        self.executor.registry
    }

    fn call_function(&self, name: &str, args: &[Value<Tensor>], kwargs: &Kwargs<Tensor>) -> Results<Tensor> {
        functions::call(*self, name, args, kwargs)
    }

    fn call_method(&self, name: &str, args: &[Value<Tensor>], kwargs: &Kwargs<Tensor>) -> Results<Tensor> {
        functions::call_method(*self, name, args, kwargs)
    }

    fn call_operator(&self, name: &str, args: &[Value<Tensor>], kwargs: &Kwargs<Tensor>) -> Results<Tensor> {
        self.executor.call(name, args, kwargs)
    }

    fn call_overload(&self, packet: &str, args: &[Value<Tensor>], kwargs: &Kwargs<Tensor>) -> Results<Tensor> {
        Ok(self.executor.call_python(packet, args, kwargs.to_vec())?.results)
    }

    /// A tensor without dimensions, of a dtype that leaves the result the one that it has with a number.
    fn on_the_left(&self, number: &Value<Tensor>, tensor: &Tensor) -> Result<[Value<Tensor>; 2]> {
        let left = match number.as_scalar() {
            Some(it) if it.kind() <= tensor.dtype().kind() => Value::Tensor(Tensor::full(tensor.dtype(), &[], it)?),
            Some(it) => Value::Tensor(Tensor::full(it.default_dtype(), &[], it)?),
            None => number.clone(),
        };
        Ok([left, Value::Tensor(tensor.clone())])
    }

    fn attribute(&self, tensor: &Tensor) -> Result<Tensor> {
        Ok(tensor.clone())
    }

    fn meta(&self, tensor: &Tensor) -> TensorMeta {
        TensorMeta::of(tensor)
    }

    fn control_flow(&self, operands: &Operands<'_, Tensor>, run: &mut RunGraph<'_, Tensor>) -> Result<Value<Tensor>> {
        higher_order::call(operands, *self, run)
    }
}
