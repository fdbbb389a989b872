//! The plan: its buffers, the tensors that look at them, and its steps.

use crate::bytes::parts;
use crate::{Fused, Operand};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tracefx_core::{DType, Dims, Storage, has_contiguous_strides, storage_span};
use tracefx_sym::SymInt;

/// A buffer of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BufferId(pub u32);

/// A tensor of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// In memory that a step brings with what it gives.
    Made,
}

/// A strided view of a buffer; sizes, strides and offset in elements, and in symbols where the data decides them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorView {
    /// The buffer.
    pub buffer: BufferId,
    /// The dtype of the elements.
    #[serde(with = "parts::dtype")]
    pub dtype: DType,
    /// The sizes.
    #[serde(with = "parts::sizes")]
    pub sizes: Vec<SymInt>,
    /// The strides.
    #[serde(with = "parts::sizes")]
    pub strides: Vec<SymInt>,
    /// The position of the first element.
    #[serde(with = "parts::size")]
    pub offset: SymInt,
}

/// What a step does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Calls the kernel of an operator.
    Call {
        /// The operator, `aten.relu.default`.
        #[serde(with = "parts::text")]
        op: Arc<str>,
        /// The arguments, one per argument of the schema.
        args: Vec<Operand>,
        /// The results that the kernel computes, one per result of the schema: row-major tensors that begin their buffers.
        results: Vec<Operand>,
    },
    /// Changes elements of a tensor in the place where they are, as an operator gives them: its kernel writes nothing else.
    Update {
        /// The operator, `aten.index_copy.default`, whose result is like its first argument.
        #[serde(with = "parts::text")]
        op: Arc<str>,
        /// The arguments, one per argument of the schema. The first is the tensor.
        args: Vec<Operand>,
    },
    /// Computes what several operators of the program do.
    Fused(Fused<TensorId>),
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
        #[serde(with = "parts::text")]
        op: Arc<str>,
        /// What it takes; a graph is one of the plans.
        operands: Vec<Operand>,
        /// The plans; what has the bytes of a plan has those of these behind its steps.
        #[serde(skip)]
        plans: Vec<Plan>,
        /// Where its results are copied to.
        results: Operand,
    },
}

/// A step, and the node that it is from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The name of the node.
    #[serde(with = "parts::text")]
    pub node: Arc<str>,
    /// What it does.
    pub action: Action,
}

/// A program as steps, for inputs of one dtype and layout each.
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
    /// The buffers of inputs and of the program that are written to before the program writes there: it is for inputs of which no other
    /// looks at their memory.
    pub alone: Vec<BufferId>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            inputs: Vec::new(),
            buffers: Vec::new(),
            tensors: Vec::new(),
            steps: Vec::new(),
            output: Operand::None,
            alone: Vec::new(),
        }
    }
}

impl Action {
    /// A call of an operator.
    pub fn call(op: &str, args: Vec<Operand>, results: Vec<Operand>) -> Self {
        Action::Call { op: op.into(), args, results }
    }

    /// Whether it takes a number that is computed of what the data decides.
    pub fn has_expr(&self) -> bool {
        match self {
            Action::Call { args, .. } | Action::Update { args, .. } => args.iter().any(Operand::has_expr),
            Action::Fused(_) | Action::Copy { .. } => false,
            Action::ControlFlow { operands, .. } => operands.iter().any(Operand::has_expr),
        }
    }

    /// Visits the tensors that it writes.
    pub fn for_each_written(&self, visit: &mut dyn FnMut(TensorId)) {
        match self {
            Action::Call { results, .. } => results.iter().for_each(|it| it.for_each_tensor(visit)),
            Action::Update { args, .. } => args.iter().take(1).for_each(|it| it.for_each_tensor(visit)),
            Action::Fused(it) => it.for_each_result(&mut |it| visit(*it)),
            Action::Copy { to, .. } => visit(*to),
            Action::ControlFlow { results, .. } => results.for_each_tensor(visit),
        }
    }

    /// Visits the tensors that it reads, some of them more than once.
    pub fn for_each_read(&self, visit: &mut dyn FnMut(TensorId)) {
        match self {
            Action::Call { args, .. } | Action::Update { args, .. } => {
                args.iter().for_each(|it| it.for_each_tensor(visit));
            }
            Action::Fused(it) => it.for_each_input(&mut |it| visit(*it)),
            Action::Copy { from, .. } => visit(*from),
            Action::ControlFlow { operands, .. } => operands.iter().for_each(|it| it.for_each_tensor(visit)),
        }
    }

    /// Visits the tensors that it reads or writes, some of them more than once.
    pub fn for_each_tensor(&self, visit: &mut dyn FnMut(TensorId)) {
        self.for_each_read(visit);
        self.for_each_written(visit);
    }
}

impl Action {
    /// Visits the tensors that it reads or writes, to change them.
    pub fn for_each_tensor_mut(&mut self, visit: &mut dyn FnMut(&mut TensorId)) {
        match self {
            Action::Call { args, results, .. } => {
                args.iter_mut().chain(results).for_each(|it| it.for_each_tensor_mut(visit));
            }
            Action::Update { args, .. } => args.iter_mut().for_each(|it| it.for_each_tensor_mut(visit)),
            Action::Fused(it) => {
                let changed = |id: &TensorId| -> Result<TensorId, std::convert::Infallible> {
                    let mut id = *id;
                    visit(&mut id);
                    Ok(id)
                };
                let Ok(changed) = it.try_map(&mut { changed });
                *it = changed;
            }
            Action::Copy { from, to } => [from, to].into_iter().for_each(visit),
            Action::ControlFlow { operands, results, .. } => {
                operands.iter_mut().chain([results]).for_each(|it| it.for_each_tensor_mut(visit));
            }
        }
    }
}

/// The numbers of a view: sizes, strides and offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The sizes.
    pub sizes: Dims,
    /// The strides.
    pub strides: Dims,
    /// The position of the first element.
    pub offset: usize,
}

impl Extent {
    /// The number of bytes from the start of the buffer to the end of the last element of this dtype; nothing where that is no
    /// number.
    pub fn span(&self, dtype: DType) -> Option<usize> {
        let elements = storage_span(&self.sizes, &self.strides, self.offset)?;
        usize::try_from(elements).ok()?.checked_mul(dtype.size()).filter(|&it| it <= isize::MAX as usize)
    }

    /// Whether no two elements lie in one place, as far as the strides alone say.
    pub fn is_apart(&self) -> bool {
        let mut dims: Dims = (0..self.sizes.len()).filter(|&dim| self.sizes[dim] > 1).collect();
        let mut reach = 0usize;
        while let Some(at) = (0..dims.len()).min_by_key(|&at| self.strides[dims[at]]) {
            let dim = dims.remove(at);
            if self.strides[dim] <= reach {
                return false;
            }
            reach = reach.saturating_add((self.sizes[dim] - 1).saturating_mul(self.strides[dim]));
        }
        true
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_row_major(&self) -> bool {
        has_contiguous_strides(&self.sizes, &self.strides)
    }
}

impl TensorView {
    /// The whole of a buffer, row-major.
    pub fn row_major(buffer: BufferId, dtype: DType, sizes: &[SymInt]) -> Self {
        let mut strides = vec![SymInt::ONE; sizes.len()];
        for dim in (1..sizes.len()).rev() {
            strides[dim - 1] = &strides[dim] * sizes[dim].max(&SymInt::ONE);
        }
        TensorView { buffer, dtype, sizes: sizes.to_vec(), strides, offset: SymInt::ZERO }
    }

    /// The numbers, where `number` says what a size is.
    ///
    /// # Errors
    /// What `number` refuses.
    pub fn extent<E>(&self, number: &dyn Fn(&SymInt) -> Result<usize, E>) -> Result<Extent, E> {
        let numbers = |it: &[SymInt]| it.iter().map(number).collect::<Result<Dims, E>>();
        Ok(Extent { sizes: numbers(&self.sizes)?, strides: numbers(&self.strides)?, offset: number(&self.offset)? })
    }

    /// The numbers; nothing where the data decides one of them.
    pub fn known(&self) -> Option<Extent> {
        self.extent(&|it| it.as_int().and_then(|it| usize::try_from(it).ok()).ok_or(())).ok()
    }

    /// Whether the data decides nothing of it.
    pub fn is_known(&self) -> bool {
        self.sizes.iter().chain(&self.strides).chain([&self.offset]).all(|it| !it.is_symbolic())
    }
}

impl Plan {
    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        BufferId((self.buffers.len() - 1) as u32)
    }

    /// Adds a tensor that looks at a buffer.
    pub fn add_tensor(&mut self, view: TensorView) -> TensorId {
        self.tensors.push(view);
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

    /// How many bytes each buffer needs for all tensors that look at it and are known; nothing for one that has others.
    pub fn buffer_sizes(&self) -> Vec<Option<usize>> {
        let mut sizes = vec![Some(0); self.buffers.len()];
        for tensor in &self.tensors {
            let size = &mut sizes[tensor.buffer.0 as usize];
            let span = tensor.known().map(|it| it.span(tensor.dtype).unwrap_or(usize::MAX));
            *size = size.zip(span).map(|(a, b)| a.max(b));
        }
        sizes
    }
}
