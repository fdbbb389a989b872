//! The trace of a graph as a plan: which kernels run, on which tensors.
//!
//! Every operator goes the way that it goes in [`Executor`](crate::Executor): its shape rule says what the results are; views and
//! arguments that are given back are tensors of the same buffer and no step; what a kernel fills becomes a call; an operator
//! without a kernel is decomposed; one in place computes and then copies; the graphs of control flow become plans within the
//! plan. Sizes and numbers that the data decides are refused, and left to the interpreter.

use super::operands::{operand_of, symbolic};
use crate::Kernels;
use crate::executor::{check_dtypes, round_number};
use crate::lower::{GraphTracer, Tracer, lower};
use rustc_hash::FxHashMap;
use std::mem::take;
use std::sync::Arc;
use tracefx_core::allocate::push;
use tracefx_core::{Code, Diagnostic, Dims, Result, Tensor};
use tracefx_ir::{GraphModule, NodeId, TensorMeta};
use tracefx_ops::{
    Args, Builder, Cx, Infer, Output, Propagation, Registry, Symbols, Tags, TensorRef, Traced, Value, bind, check_cast,
};
use tracefx_plan::{Action, Buffer, BufferId, Operand, Plan, TensorId};
use tracefx_sym::SymInt;

/// A plan has at most so many steps for each node of the graph, and [`MIN_STEPS`]: a vmap over a million examples is run, and
/// not written down.
const MAX_STEPS_OF_A_NODE: usize = 64;
const MIN_STEPS: usize = 4096;

/// The plan of a graph for inputs of these dtypes and layouts, with the kernels that there are.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_exec::{Kernels, plan};
/// use tracefx_ir::{Graph, GraphModule, TensorMeta};
/// use tracefx_ops::{Value, registry};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let transposed = graph.call_function("torch.ops.aten.t.default", vec![x.into()], vec![]);
/// graph.output(transposed.into());
/// let module = GraphModule::new(graph);
/// let x = TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()]);
/// let plan = plan(&module, &[Value::Tensor(x)], registry(), &Kernels::default())?;
/// assert_eq!(plan.to_string(), "plan(%0: f32[2, 3]):\n    return %1");
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `NotImplemented` where the data decides what sizes and numbers are, and where a custom operator is called; `LimitExceeded` where it would have too many steps; else what a node refuses. The error names the node.
pub fn plan(
    module: &GraphModule,
    inputs: &[Value<TensorMeta>],
    registry: &Registry,
    kernels: &Kernels,
) -> Result<Plan> {
    let symbols = Symbols::default();
    let shapes = Propagation::new(registry, &symbols);
    let max_steps = (module.graph.nodes().count() * MAX_STEPS_OF_A_NODE).max(MIN_STEPS);
    let mut tracing = Tracing {
        registry,
        kernels,
        here: Level::default(),
        around: Vec::new(),
        ended: Vec::new(),
        node: "".into(),
        depth: 0,
        n_steps: 0,
        max_steps,
    };
    let inputs = tracing.inputs(inputs)?;
    let output = lower(module, shapes, &mut tracing, &inputs)?;
    let output = tracing.operand(&output)?;
    Ok(tracing.here.finish(output))
}

/// Where a tensor of the program looks: the storage, and how.
type Place = (usize, tracefx_core::DType, Dims, Dims, usize);

/// A plan that is being written.
#[derive(Default)]
struct Level {
    plan: Plan,
    /// What is known of each tensor of the plan.
    metas: Vec<TensorMeta>,
    /// The buffers of the program, by their storages.
    constants: FxHashMap<usize, BufferId>,
    /// The tensors of the program, by where they look.
    attributes: FxHashMap<Place, TensorRef>,
}

impl Level {
    /// The plan, which gives this: in memory that a run gives away.
    fn finish(mut self, output: Operand) -> Plan {
        let mut given = Vec::new();
        output.for_each_tensor(&mut |id| given.push(self.plan.tensor(id).buffer));
        for BufferId(buffer) in given {
            let buffer = &mut self.plan.buffers[buffer as usize];
            if matches!(buffer, Buffer::Scratch) {
                *buffer = Buffer::Result;
            }
        }
        self.plan.output = output;
        self.plan
    }
}

struct Tracing<'a> {
    registry: &'a Registry,
    kernels: &'a Kernels,
    here: Level,
    /// The plans in which this one is a branch or a body, from the outermost on.
    around: Vec<Level>,
    /// The branches and bodies that have ended, and that no operator has taken yet.
    ended: Vec<Plan>,
    /// The node whose operators come next.
    node: Arc<str>,
    /// How many decompositions the call is in.
    depth: usize,
    /// How many steps there are in all plans.
    n_steps: usize,
    max_steps: usize,
}

impl Tracing<'_> {
    /// What stands for the inputs of the plan, of which this is known.
    fn inputs(&mut self, inputs: &[Value<TensorMeta>]) -> Result<Vec<Traced>> {
        let mut n_inputs = 0;
        let mut input = |meta: &TensorMeta| {
            let buffer = self.here.plan.add_buffer(Buffer::Input(n_inputs));
            n_inputs += 1;
            self.add(buffer, meta)
        };
        let inputs = inputs.iter().map(|it| it.try_map(&mut input)).collect::<Result<Vec<Traced>>>()?;
        self.here.plan.inputs = self.operands(&inputs)?;
        Ok(inputs)
    }

    /// Adds a tensor that looks at this buffer.
    fn add(&mut self, buffer: BufferId, meta: &TensorMeta) -> Result<TensorRef> {
        let (sizes, strides) = (numbers(&meta.sizes)?, numbers(&meta.strides)?);
        let TensorId(id) =
            self.here.plan.add_tensor(buffer, meta.dtype, &sizes, &strides, number(&meta.storage_offset)?);
        push(&mut self.here.metas, meta.clone())?;
        Ok(TensorRef(id as usize))
    }

    /// Adds memory that steps write, and a tensor that is the whole of it.
    fn add_scratch(&mut self, meta: &TensorMeta) -> Result<TensorRef> {
        let buffer = self.here.plan.add_buffer(Buffer::Scratch);
        self.add(buffer, meta)
    }

    fn buffer_of(&self, tensor: TensorRef) -> BufferId {
        self.here.plan.tensor(id_of(tensor)).buffer
    }

    fn operand(&self, value: &Traced) -> Result<Operand> {
        operand_of(value, &mut |it| Ok(id_of(*it)))
    }

    fn operands(&self, values: &[Traced]) -> Result<Vec<Operand>> {
        values.iter().map(|it| self.operand(it)).collect()
    }

    fn push(&mut self, action: Action) -> Result<()> {
        self.n_steps += 1;
        if self.n_steps > self.max_steps {
            let what = format!("the plan has more than {} steps", self.max_steps);
            return Err(Diagnostic::new(Code::LimitExceeded, what));
        }
        self.here.plan.push(Arc::clone(&self.node), action);
        Ok(())
    }

    /// The arguments as shape rules take them.
    fn without_data<'b>(&self, args: &Args<'b, TensorRef>) -> Args<'b, TensorMeta> {
        let values = args.values.iter().map(|it| it.map(&mut |it| self.here.metas[it.0].clone())).collect();
        Args::new(args.op, values)
    }

    fn call_bound(&mut self, args: &Args<'_, TensorRef>) -> Result<Vec<Traced>> {
        if args.op.is_custom() || args.op.def.tags.has(Tags::RESIZES) {
            return Err(args.unsupported(format!("a plan does not call {}", args.op.name)));
        }
        match args.op.def.infer {
            Infer::InPlaceOf(functional) => self.call_in_place(args, functional),
            Infer::Composite => self.decompose(args),
            Infer::Rule(rule) => {
                let metas = self.without_data(args);
                self.fulfil(args, &rule(&metas)?)
            }
        }
    }

    /// Writes down what makes what the shape rule promised.
    fn fulfil(&mut self, args: &Args<'_, TensorRef>, outputs: &[Output]) -> Result<Vec<Traced>> {
        let kernel = self.kernels.get(&args.op.name);
        let (n_buffers, n_tensors) = (self.here.plan.buffers.len(), self.here.plan.tensors.len());
        let mut fresh = Vec::new();
        let results = outputs.iter().map(|it| self.make(args, it, &mut fresh)).collect::<Result<Vec<_>>>()?;
        if fresh.is_empty() && !outputs.is_empty() {
            return Ok(results);
        }
        if kernel.is_none() {
            self.here.plan.buffers.truncate(n_buffers);
            self.here.plan.tensors.truncate(n_tensors);
            self.here.metas.truncate(n_tensors);
            return self.decompose(args);
        }
        let dense = fresh.iter().map(|(dense, _)| Operand::Tensor(id_of(*dense))).collect();
        let call = Action::call(&args.op.name, self.operands(&args.values)?, dense);
        self.push(call)?;
        for (dense, result) in fresh {
            if dense != result {
                self.push(Action::Copy { from: id_of(dense), to: id_of(result) })?;
            }
        }
        Ok(results)
    }

    /// What stands for a result. A new one is noted in `fresh`: the row-major tensor that a kernel fills, and the result, which
    /// is another one where the rule asks for other strides.
    fn make(
        &mut self,
        args: &Args<'_, TensorRef>,
        output: &Output,
        fresh: &mut Vec<(TensorRef, TensorRef)>,
    ) -> Result<Traced> {
        Ok(match output {
            Output::Tensor(meta) => {
                let dense = TensorMeta::contiguous(meta.dtype, meta.sizes.clone());
                let is_empty = meta.sizes.iter().any(|it| it.as_int() == Some(0));
                let own = self.add_scratch(if is_empty || is_row_major(meta)? { meta } else { &dense })?;
                let result = if is_empty || is_row_major(meta)? { own } else { self.add_scratch(meta)? };
                fresh.push((own, result));
                Value::Tensor(result)
            }
            Output::View { arg, item, meta } => {
                let base = match &args.values[*arg] {
                    Value::List(items) => match &items[*item] {
                        Value::Tensor(base) => *base,
                        other => return Err(args.invalid(format!("a view of a {}", other.kind_name()))),
                    },
                    _ => *args.tensor(*arg)?,
                };
                Value::Tensor(self.add(self.buffer_of(base), meta)?)
            }
            Output::Same(arg) => args.values[*arg].clone(),
            Output::List(items) => {
                Value::List(items.iter().map(|it| self.make(args, it, fresh)).collect::<Result<_>>()?)
            }
            Output::Value(value) => {
                value.try_map(&mut |_| Err(args.invalid("a shape rule promised a tensor as a plain value")))?
            }
            Output::Unknown(_) => return Err(args.unsupported("the data decides the result".to_string())),
        })
    }

    fn call_in_place(&mut self, args: &Args<'_, TensorRef>, functional: &str) -> Result<Vec<Traced>> {
        let target = *args.tensor(0)?;
        let op = self.registry.require(functional)?;
        let n_args = op.schema.args.len();
        let mut inner = Args::new(op, args.values[..n_args.min(args.values.len())].to_vec());
        if args.op.def.tags.has(Tags::ROUNDS_NUMBERS) {
            let dtype = self.here.metas[target.0].dtype;
            inner.values.iter_mut().for_each(|it| round_number(it, dtype));
        }
        let result = self.call_bound(&inner)?.into_iter().next();
        let Some(Value::Tensor(result)) = result else {
            return Err(args.invalid(format!("{functional} does not give a tensor to write")));
        };
        if self.here.plan.tensor(id_of(result)) != self.here.plan.tensor(id_of(target)) {
            let may_share = args.op.def.tags.has(Tags::WRITES_SHARED);
            self.write(target, result, may_share)?;
        }
        Ok(vec![Value::Tensor(target)])
    }

    /// Writes a result into a tensor, converted to its dtype where PyTorch allows that. Where elements of the target may share
    /// a place, one of them stands for all.
    fn write(&mut self, target: TensorRef, mut result: TensorRef, may_share: bool) -> Result<()> {
        let mut target = target;
        if may_share {
            let once = self.here.metas[target.0].strides.iter().map(|it| it.as_int() == Some(0)).collect::<Vec<_>>();
            result = self.narrowed(result, &once)?;
            target = self.narrowed(target, &once)?;
        }
        let dtype = self.here.metas[target.0].dtype;
        if self.here.metas[result.0].dtype != dtype {
            check_cast(self.here.metas[result.0].dtype, dtype)?;
            let kwargs = [("dtype", Value::DType(dtype))];
            result = self.compute("aten._to_copy.default", &[Value::Tensor(result)], &kwargs)?;
        }
        if self.buffer_of(result) == self.buffer_of(target) {
            result = self.compute("aten.clone.default", &[Value::Tensor(result)], &[])?;
        }
        self.push(Action::Copy { from: id_of(result), to: id_of(target) })
    }

    /// The first element along these dimensions.
    fn narrowed(&mut self, tensor: TensorRef, dims: &[bool]) -> Result<TensorRef> {
        let mut meta = self.here.metas[tensor.0].clone();
        for (size, _) in meta.sizes.iter_mut().zip(dims).filter(|(_, is_shared)| **is_shared) {
            *size = size.min(&SymInt::ONE);
        }
        self.add(self.buffer_of(tensor), &meta)
    }

    /// The tensor that an operator gives.
    fn compute(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<TensorRef> {
        match self.within(|it| Builder::call(it, op, args, kwargs))?.first() {
            Some(Value::Tensor(result)) => Ok(*result),
            _ => Err(Diagnostic::new(Code::SchemaMismatch, format!("{op} gives no tensor"))),
        }
    }

    fn decompose(&mut self, args: &Args<'_, TensorRef>) -> Result<Vec<Traced>> {
        let Some(decompose) = args.op.def.decompose else {
            return Err(args.unsupported(format!("the operator {} has no kernel", args.op.name)));
        };
        self.within(|it| decompose(&mut Cx::new(it), args))
    }

    /// What is called within a call is not asked which dtypes PyTorch refuses: that was asked of the call.
    fn within<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        self.depth += 1;
        let result = act(self);
        self.depth -= 1;
        result
    }
}

impl Builder for Tracing<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let op = self.registry.require(op)?;
        let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| ((*key).into(), it.clone())).collect();
        let args = Args::new(op, bind(op, args, &kwargs)?);
        if self.depth == 0 {
            check_dtypes(&self.without_data(&args)).map_err(|problem| problem.op(&*op.name))?;
        }
        self.call_bound(&args).map_err(|problem| problem.op(&*op.name))
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.here.metas[tensor.0]
    }
}

impl Tracer for Tracing<'_> {
    fn attribute(&mut self, tensor: &Tensor) -> Result<TensorRef> {
        let storage = tensor.storage();
        let place = (storage.id(), tensor.dtype(), tensor.sizes().into(), tensor.strides().into(), tensor.offset());
        if let Some(known) = self.here.attributes.get(&place) {
            return Ok(*known);
        }
        let buffer = match self.here.constants.get(&storage.id()) {
            Some(known) => *known,
            None => self.here.plan.add_buffer(Buffer::Constant(storage.clone())),
        };
        self.here.constants.insert(storage.id(), buffer);
        let added = self.add(buffer, &TensorMeta::of(tensor))?;
        self.here.attributes.insert(place, added);
        Ok(added)
    }

    fn enter(&mut self, module: &GraphModule, node: NodeId) {
        self.node = Arc::from(&**module.graph.node(node).name());
    }

    fn graphs(&mut self) -> Option<&mut dyn GraphTracer> {
        Some(self)
    }
}

impl GraphTracer for Tracing<'_> {
    fn begin(&mut self, inputs: &[Value<TensorMeta>], _: Option<&[Traced]>) -> Result<Vec<Traced>> {
        self.around.push(take(&mut self.here));
        self.inputs(inputs)
    }

    fn end(&mut self, result: &Traced) -> Result<Value<TensorMeta>> {
        let known = result.map(&mut |it| self.here.metas[it.0].clone());
        let output = self.operand(result)?;
        let around = self.around.pop().unwrap_or_default();
        self.ended.push(std::mem::replace(&mut self.here, around).finish(output));
        Ok(known)
    }

    fn call(&mut self, name: &str, operands: &[Option<Traced>], results: &Value<TensorMeta>) -> Result<Traced> {
        let n_plans = operands.iter().filter(|it| it.is_none()).count();
        let plans = self.ended.split_off(self.ended.len().saturating_sub(n_plans));
        let mut plan = 0..;
        let operand = |it: &Option<Traced>| match it {
            Some(value) => self.operand(value),
            None => Ok(Operand::Plan(plan.next().unwrap_or_default())),
        };
        let operands = operands.iter().map(operand).collect::<Result<_>>()?;
        let given = results.try_map(&mut |meta| self.add_scratch(meta))?;
        let results = self.operand(&given)?;
        self.push(Action::ControlFlow { op: name.into(), operands, plans, results })?;
        Ok(given)
    }
}

fn id_of(tensor: TensorRef) -> TensorId {
    TensorId(tensor.0 as u32)
}

fn number(size: &SymInt) -> Result<usize> {
    size.as_int().and_then(|it| usize::try_from(it).ok()).ok_or_else(|| symbolic(size))
}

fn numbers(sizes: &[SymInt]) -> Result<Dims> {
    sizes.iter().map(number).collect()
}

fn is_row_major(meta: &TensorMeta) -> Result<bool> {
    Ok(tracefx_core::has_contiguous_strides(&numbers(&meta.sizes)?, &numbers(&meta.strides)?))
}
