//! The plan: its buffers, the tensors that look at them, and its steps.

use crate::Operand;
use std::sync::Arc;
use tracefx_core::{DType, Dims, Storage};

/// A buffer of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// A tensor of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

/// Where bytes are.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// In the storage of the tensor that stands here among the inputs, lists flattened.
    Input(u32),
    /// In the program: parameters, buffers and constants. Steps may write there, as the program does.
    Constant(Storage),
    /// In memory of the plan, which other buffers use before and after.
    Scratch,
    /// In memory that a run gives away, new in each.
    Result,
}

/// A strided view of a buffer; sizes, strides and offset in elements.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorView {
    /// The buffer.
    pub buffer: BufferId,
    /// The dtype of the elements.
    pub dtype: DType,
    /// The sizes.
    pub sizes: Dims,
    /// The strides.
    pub strides: Dims,
    /// The position of the first element.
    pub offset: usize,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Calls the kernel of an operator.
    Call {
        /// The operator, `aten.relu.default`.
        op: Arc<str>,
        /// The arguments, one per argument of the schema.
        args: Vec<Operand>,
        /// The results that the kernel computes, one per result of the schema: row-major tensors that begin their buffers.
        results: Vec<Operand>,
    },
    /// Writes the elements of one tensor into the places of another, which it broadcasts to: what an operator in place does
    /// last.
    Copy {
        /// The elements, of the same dtype.
        from: TensorId,
        /// The places, in another buffer.
        to: TensorId,
    },
    /// Runs plans: `cond`, `while_loop`, `map_impl`, `scan` or `wrap_with_set_grad_enabled`.
    ControlFlow {
        /// The operator, after `torch.ops.higher_order.`.
        op: Arc<str>,
        /// What it takes; a graph is one of the plans.
        operands: Vec<Operand>,
        /// The plans.
        plans: Vec<Plan>,
        /// Where its results are copied to.
        results: Operand,
    },
}

/// A step, and the node that it is from.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name of the node.
    pub node: Arc<str>,
    /// What it does.
    pub action: Action,
}

/// A program as steps. The sizes of all tensors are numbers, so that a plan is for inputs of one dtype and layout each.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it takes: the tensors that the inputs are; anything else is the value that the plan was made for.
    pub inputs: Vec<Operand>,
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// The tensors.
    pub tensors: Vec<TensorView>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What it gives.
    pub output: Operand,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { inputs: Vec::new(), buffers: Vec::new(), tensors: Vec::new(), steps: Vec::new(), output: Operand::None }
    }
}

impl Action {
    /// A call of an operator.
    pub fn call(op: &str, args: Vec<Operand>, results: Vec<Operand>) -> Self {
        Action::Call { op: op.into(), args, results }
    }

    /// Visits the tensors that it reads or writes, some of them more than once.
    pub fn for_each_tensor(&self, visit: &mut dyn FnMut(TensorId)) {
        match self {
            Action::Call { args, results, .. } => args.iter().chain(results).for_each(|it| it.for_each_tensor(visit)),
            Action::Copy { from, to } => [*from, *to].into_iter().for_each(visit),
            Action::ControlFlow { operands, results, .. } => {
                operands.iter().chain([results]).for_each(|it| it.for_each_tensor(visit));
            }
        }
    }
}

impl TensorView {
    /// The number of bytes from the start of the buffer to the end of the last element; nothing where that is no number.
    pub fn span(&self) -> Option<usize> {
        let elements = tracefx_core::storage_span(&self.sizes, &self.strides, self.offset)?;
        usize::try_from(elements).ok()?.checked_mul(self.dtype.size()).filter(|&it| it <= isize::MAX as usize)
    }
}

impl Plan {
    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        BufferId((self.buffers.len() - 1) as u32)
    }

    /// Adds a tensor that looks at a buffer.
    pub fn add_tensor(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        sizes: &[usize],
        strides: &[usize],
        offset: usize,
    ) -> TensorId {
        self.tensors.push(TensorView { buffer, dtype, sizes: sizes.into(), strides: strides.into(), offset });
        TensorId((self.tensors.len() - 1) as u32)
    }

    /// Adds a step behind the others.
    pub fn push(&mut self, node: impl Into<Arc<str>>, action: Action) {
        self.steps.push(Step { node: node.into(), action });
    }

    /// A tensor.
    ///
    /// # Panics
    /// When the plan has no such tensor.
    pub fn tensor(&self, id: TensorId) -> &TensorView {
        &self.tensors[id.0 as usize]
    }

    /// A buffer.
    ///
    /// # Panics
    /// When the plan has no such buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// How many bytes each buffer needs, for all tensors that look at it.
    pub fn buffer_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.buffers.len()];
        for tensor in &self.tensors {
            let size = &mut sizes[tensor.buffer.0 as usize];
            *size = (*size).max(tensor.span().unwrap_or(usize::MAX));
        }
        sizes
    }
}
