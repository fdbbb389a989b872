//! The trace of a graph as a plan: which kernels run, on which tensors.
//!
//! Every operator goes the way that it goes in [`Executor`](crate::Executor): its shape rule says what the results are; views and
//! arguments that are given back are tensors of the same buffer and no step; what a kernel fills becomes a call; an operator
//! without a kernel is decomposed; one in place computes and then copies; the graphs of control flow become plans within the
//! plan. Sizes and numbers that the data decides are symbols, which a run learns from the results of the kernels that make them.

use super::operands::operand_of;
use crate::executor::{check_dtypes, round_number};
use crate::lower::{GraphTracer, Tracer, lower};
use crate::{Kernel, Kernels};
use rustc_hash::FxHashMap;
use std::mem::take;
use std::sync::Arc;
use tracefx_core::allocate::push;
use tracefx_core::{Code, Diagnostic, Dims, Result, Tensor, has_contiguous_strides};
use tracefx_ir::{GraphModule, NodeId, TensorMeta};
use tracefx_ops::{
    Args, Builder, Cx, Infer, Output, Propagation, Registry, Symbols, Tags, TensorRef, Traced, Value, bind, check_write,
};
use tracefx_plan::{Action, Buffer, BufferId, Operand, Plan, TensorId, TensorView};
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
/// `NotImplemented` where a shape rule has to know what the data decides; `LimitExceeded` where it would have too many steps; else what a node refuses. The error names the node.
pub fn plan(
    module: &GraphModule,
    inputs: &[Value<TensorMeta>],
    registry: &Registry,
    kernels: &Kernels,
) -> Result<Plan> {
    let symbols = Symbols::default();
    let shapes = Propagation::new(registry, &symbols);
    let n_nodes: usize = module.modules().iter().map(|(_, it)| it.graph.nodes().count()).sum();
    let max_steps = (n_nodes * MAX_STEPS_OF_A_NODE).max(MIN_STEPS);
    let mut tracing = Tracing {
        registry,
        kernels,
        symbols: &symbols,
        here: Level::default(),
        around: Vec::new(),
        ended: Vec::new(),
        node: "".into(),
        depth: 0,
        n_steps: 0,
        max_steps,
        has_plans: false,
        writes: false,
    };
    let inputs = tracing.inputs(inputs)?;
    let output = lower(module, shapes, &mut tracing, &inputs)?;
    // What a branch gives is copied, which a write to the one or the other would show.
    if tracing.has_plans && tracing.writes {
        let what = "a program that has control flow and writes to tensors is not planned";
        return Err(Diagnostic::new(Code::NotImplemented, what));
    }
    Ok(tracing.here.finish(operand(&output)))
}

/// The new results of a call.
#[derive(Default)]
struct Fresh {
    /// The row-major tensors that a kernel fills, and the results, which are others where the rule asks for other strides.
    dense: Vec<(TensorRef, TensorRef)>,
    /// Whether the data decides one.
    is_unknown: bool,
}

impl Fresh {
    /// The results of a kernel that makes them: those that are copied afterwards it makes row-major.
    fn made(&self, results: &[Traced]) -> Vec<Operand> {
        let dense =
            |it: &TensorRef| self.dense.iter().find(|(_, result)| result == it).map_or(*it, |(dense, _)| *dense);
        operands_of(&results.iter().map(|it| it.map(&mut |it| dense(it))).collect::<Vec<_>>())
    }
}

/// Where a tensor of the program looks: the storage, and how.
type Place = (usize, tracefx_core::DType, Dims, Dims, usize);

/// A plan that is being written.
#[derive(Default)]
struct Level {
    plan: Plan,
    /// What is known of each tensor of the plan.
    metas: Vec<TensorMeta>,
    /// The tensor that each buffer was made for.
    firsts: Vec<TensorId>,
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
    /// What the data decides.
    symbols: &'a Symbols,
    here: Level,
    /// The plans in which this one is a branch or a body, from the outermost on.
    around: Vec<(Level, Arc<str>)>,
    /// The branches and bodies that have ended, and that no operator has taken yet.
    ended: Vec<Plan>,
    /// The node whose operators come next.
    node: Arc<str>,
    /// How many decompositions the call is in.
    depth: usize,
    /// How many steps and tensors there are in all plans.
    n_steps: usize,
    max_steps: usize,
    /// Whether a graph of control flow is a plan.
    has_plans: bool,
    /// Whether a step writes to a tensor that was there before.
    writes: bool,
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
        self.here.plan.inputs = operands_of(&inputs);
        Ok(inputs)
    }

    /// Adds a tensor that looks at this buffer.
    fn add(&mut self, buffer: BufferId, meta: &TensorMeta) -> Result<TensorRef> {
        self.count()?;
        let (sizes, strides, offset) = (meta.sizes.clone(), meta.strides.clone(), meta.storage_offset.clone());
        let TensorId(id) = self.here.plan.add_tensor(TensorView { buffer, dtype: meta.dtype, sizes, strides, offset });
        push(&mut self.here.metas, meta.clone())?;
        if buffer.0 as usize == self.here.firsts.len() {
            push(&mut self.here.firsts, TensorId(id))?;
        }
        Ok(TensorRef(id as usize))
    }

    /// Adds a result that the kernel makes itself: it comes with its memory where the data decides its sizes.
    fn add_made(&mut self, meta: &TensorMeta) -> Result<TensorRef> {
        let buffer = self.here.plan.add_buffer(if is_symbolic(meta) { Buffer::Made } else { Buffer::Scratch });
        self.add(buffer, meta)
    }

    /// As [`Tracing::add_made`], row-major and copied afterwards where it is to lie in another order.
    fn add_made_by_kernel(&mut self, meta: &TensorMeta, fresh: &mut Fresh) -> Result<TensorRef> {
        if is_symbolic(meta) { self.add_made(meta) } else { self.add_fresh(meta, fresh) }
    }

    /// Adds memory that steps write, and a tensor that is the whole of it.
    fn add_scratch(&mut self, meta: &TensorMeta) -> Result<TensorRef> {
        let buffer = self.here.plan.add_buffer(Buffer::Scratch);
        self.add(buffer, meta)
    }

    /// Whether a tensor looks beyond the one that its buffer was made for, of those that are known.
    fn leaves(&self, tensor: TensorRef) -> bool {
        let (view, buffers) = (self.here.plan.tensor(id_of(tensor)), &self.here.plan.buffers);
        let bytes = |it: &TensorView| {
            let extent = it.known()?;
            Some((extent.offset.checked_mul(it.dtype.size())?, extent.span(it.dtype)?))
        };
        let room = match &buffers[view.buffer.0 as usize] {
            Buffer::Constant(storage) => Some((0, storage.len())),
            _ => bytes(self.here.plan.tensor(self.here.firsts[view.buffer.0 as usize])),
        };
        // What is empty looks at nothing.
        let looks = |(start, end): (usize, usize), room: (usize, usize)| start < end && start < room.0 || end > room.1;
        bytes(view).zip(room).is_some_and(|(it, room)| looks(it, room))
    }

    fn buffer_of(&self, tensor: TensorRef) -> BufferId {
        self.here.plan.tensor(id_of(tensor)).buffer
    }

    fn push(&mut self, action: Action) -> Result<()> {
        self.count()?;
        self.here.plan.push(Arc::clone(&self.node), action);
        Ok(())
    }

    fn count(&mut self) -> Result<()> {
        self.n_steps += 1;
        if self.n_steps > self.max_steps {
            let what = format!("the plan has more than {} steps and tensors", self.max_steps);
            return Err(Diagnostic::new(Code::LimitExceeded, what));
        }
        Ok(())
    }

    /// The arguments as shape rules take them.
    fn without_data<'b>(&'b self, args: &'b Args<'_, TensorRef>) -> Args<'b, TensorMeta> {
        let values = args.values.iter().map(|it| it.map(&mut |it| self.here.metas[it.0].clone())).collect();
        Args::within(args.op, values, self.symbols)
    }

    fn call_bound(&mut self, args: &Args<'_, TensorRef>) -> Result<Vec<Traced>> {
        if args.op.def.tags.has(Tags::RESIZES) {
            return Err(args.unsupported(format!("a plan does not call {}, which resizes memory", args.op.name)));
        }
        if args.op.is_custom() {
            return self.call_custom(args);
        }
        match args.op.def.infer {
            Infer::InPlaceOf(functional) => self.call_in_place(args, functional),
            Infer::Composite => self.decompose(args),
            Infer::Rule(rule) => {
                let outputs = rule(&self.without_data(args))?;
                self.fulfil(args, &outputs)
            }
        }
    }

    /// A custom operator is called by its own kernel, which brings what it gives.
    fn call_custom(&mut self, args: &Args<'_, TensorRef>) -> Result<Vec<Traced>> {
        if self.kernels.host(&args.op.name).is_none() {
            return self.decompose(args);
        }
        let outputs = if args.op.schema.returns.is_empty() {
            Vec::new()
        } else {
            Propagation::new(self.registry, self.symbols).infer(&self.without_data(args))?
        };
        let (mut results, mut fresh) = (Vec::new(), Fresh::default());
        for output in outputs {
            results.push(match output {
                Output::Tensor(meta) => Value::Tensor(self.add_made_by_kernel(&meta, &mut fresh)?),
                Output::Unknown(value) if !matches!(value, Value::None) => {
                    value.try_map(&mut |meta| self.add_made_by_kernel(meta, &mut fresh))?
                }
                _ => return Err(args.unsupported("a plan does not look into what a custom operator gives")),
            });
        }
        self.writes |= args.op.may_write();
        self.push(Action::call(&args.op.name, operands_of(&args.values), fresh.made(&results)))?;
        self.copy(fresh)?;
        Ok(results)
    }

    /// Writes down what makes what the shape rule promised.
    fn fulfil(&mut self, args: &Args<'_, TensorRef>, outputs: &[Output]) -> Result<Vec<Traced>> {
        let kernel = self.kernels.get(&args.op.name);
        let (n_buffers, n_tensors) = (self.here.plan.buffers.len(), self.here.plan.tensors.len());
        let mut fresh = Fresh::default();
        let results = outputs.iter().map(|it| self.make(args, it, &mut fresh)).collect::<Result<Vec<_>>>()?;
        if fresh.dense.is_empty() && !fresh.is_unknown && !outputs.is_empty() {
            return Ok(results);
        }
        // Where a kernel fills what it is given and the data decides that, it refuses, and the decomposition makes it.
        let is_made = fresh.is_unknown || matches!(kernel, Some(Kernel::Make(_)));
        let given = match kernel {
            Some(_) if is_made => fresh.made(&results),
            Some(_) => fresh.dense.iter().map(|(dense, _)| Operand::Tensor(id_of(*dense))).collect(),
            // An assertion, of which only the data says whether it holds.
            None if fresh.dense.is_empty() && args.op.def.decompose.is_none() => operands_of(&results),
            None => {
                self.here.plan.buffers.truncate(n_buffers);
                self.here.plan.tensors.truncate(n_tensors);
                self.here.metas.truncate(n_tensors);
                self.here.firsts.truncate(n_buffers);
                return self.decompose(args);
            }
        };
        self.writes |= args.op.may_write();
        self.push(Action::call(&args.op.name, operands_of(&args.values), given))?;
        self.copy(fresh)?;
        Ok(results)
    }

    /// Copies what kernels give to where the rules ask for it.
    fn copy(&mut self, fresh: Fresh) -> Result<()> {
        for (dense, result) in fresh.dense.into_iter().filter(|(dense, result)| dense != result) {
            self.push(Action::Copy { from: id_of(dense), to: id_of(result) })?;
        }
        Ok(())
    }

    /// Adds a new result, and notes it in `fresh`.
    fn add_fresh(&mut self, meta: &TensorMeta, fresh: &mut Fresh) -> Result<TensorRef> {
        let dense = TensorMeta::contiguous(meta.dtype, meta.sizes.clone());
        let is_empty = meta.sizes.iter().any(|it| it.as_int() == Some(0));
        let is_dense = is_empty || is_row_major(meta, &dense);
        let own = self.add_scratch(if is_dense && !is_empty { meta } else { &dense })?;
        let result = if is_dense { own } else { self.add_scratch(meta)? };
        fresh.dense.push((own, result));
        Ok(result)
    }

    /// What stands for a result. A new one is noted in `fresh`: the row-major tensor that a kernel fills, and the result, which
    /// is another one where the rule asks for other strides.
    fn make(&mut self, args: &Args<'_, TensorRef>, output: &Output, fresh: &mut Fresh) -> Result<Traced> {
        Ok(match output {
            Output::Tensor(meta) => Value::Tensor(self.add_fresh(meta, fresh)?),
            Output::View { arg, item, meta } => {
                let base = match &args.values[*arg] {
                    Value::List(items) => match &items[*item] {
                        Value::Tensor(base) => *base,
                        other => return Err(args.invalid(format!("a view of a {}", other.kind_name()))),
                    },
                    _ => *args.tensor(*arg)?,
                };
                let view = self.add(self.buffer_of(base), meta)?;
                if self.leaves(view) {
                    return Err(args.unsupported("a plan does not look beyond what a tensor was made with"));
                }
                Value::Tensor(view)
            }
            Output::Same(arg) => args.values[*arg].clone(),
            Output::List(items) => {
                Value::List(items.iter().map(|it| self.make(args, it, fresh)).collect::<Result<_>>()?)
            }
            Output::Value(value) => {
                value.try_map(&mut |_| Err(args.invalid("a shape rule promised a tensor as a plain value")))?
            }
            Output::Unknown(Value::None) => return Err(args.unsupported("the data decides how many results there are")),
            Output::Unknown(value) => {
                fresh.is_unknown = true;
                value.try_map(&mut |meta| self.add_made_by_kernel(meta, fresh))?
            }
        })
    }

    fn call_in_place(&mut self, args: &Args<'_, TensorRef>, functional: &str) -> Result<Vec<Traced>> {
        let target = *args.tensor(0)?;
        let op = self.registry.require(functional)?;
        let n_args = op.schema.args.len();
        let values = args.values[..n_args.min(args.values.len())].to_vec();
        let mut inner = Args::within(op, values, self.symbols);
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
        self.writes = true;
        let mut target = target;
        if may_share {
            let once = self.here.metas[target.0].strides.iter().map(|it| it.as_int() == Some(0)).collect::<Vec<_>>();
            result = self.narrowed(result, &once)?;
            target = self.narrowed(target, &once)?;
        }
        let differ = |a: &SymInt, b: &SymInt| a.as_int().zip(b.as_int()).is_some_and(|(a, b)| a != b);
        check_write(&self.here.metas[target.0], &self.here.metas[result.0], &differ)?;
        let dtype = self.here.metas[target.0].dtype;
        if self.here.metas[result.0].dtype != dtype {
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

    /// Whether what a graph gives lies in memory as the result of control flow does, of those results that it gives as a whole.
    fn gives_as(&self, plan: &Plan, given: &Operand, result: &Operand) -> bool {
        match (given, result) {
            (Operand::List(given), Operand::List(results)) => {
                given.iter().zip(results).all(|(given, result)| self.gives_as(plan, given, result))
            }
            (Operand::Tensor(given), Operand::Tensor(result)) => {
                let (given, result) = (plan.tensor(*given), self.here.plan.tensor(*result));
                given.sizes != result.sizes || given.strides == result.strides
            }
            (_, _) => true,
        }
    }

    /// Whether elements of a tensor share a place.
    fn shares_places(&self, operand: &Operand) -> bool {
        let mut res = false;
        operand.for_each_tensor(&mut |it| {
            let view = self.here.plan.tensor(it);
            res |= view.sizes.iter().zip(&view.strides).any(|(size, stride)| *size != 1 && *stride == 0);
        });
        res
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
        let args = Args::within(op, bind(op, args, &kwargs)?, self.symbols);
        if self.depth == 0 {
            if args.values.iter().any(|it| matches!(it, Value::Device(device) if device.kind != "cpu")) {
                return Err(args.unsupported("a plan is for the CPU"));
            }
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

    fn keeps_grad_mode(&self) -> bool {
        false
    }

    fn graphs(&mut self) -> Option<&mut dyn GraphTracer> {
        Some(self)
    }
}

impl GraphTracer for Tracing<'_> {
    fn begin(&mut self, inputs: &[Value<TensorMeta>], _: Option<&[Traced]>) -> Result<Vec<Traced>> {
        self.around.push((take(&mut self.here), Arc::clone(&self.node)));
        let inputs = self.inputs(inputs)?;
        // What a body is given in another order than here is copied to this order, which has no place for each element.
        if operands_of(&inputs).iter().any(|it| self.shares_places(it)) {
            let what = "a graph of control flow takes a tensor of which several elements share a place in memory";
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
        Ok(inputs)
    }

    fn end(&mut self, result: &Traced) -> Result<Value<TensorMeta>> {
        let known = result.map(&mut |it| self.here.metas[it.0].clone());
        if let Some((around, node)) = self.around.pop() {
            self.node = node;
            self.ended.push(std::mem::replace(&mut self.here, around).finish(operand(result)));
        }
        Ok(known)
    }

    fn call(&mut self, name: &str, operands: &[Option<Traced>], results: &Value<TensorMeta>) -> Result<Traced> {
        let n_plans = operands.iter().filter(|it| it.is_none()).count();
        let plans = self.ended.split_off(self.ended.len().saturating_sub(n_plans));
        let mut plan = 0..;
        let operand_of = |it: &Option<Traced>| match it {
            Some(value) => operand(value),
            None => Operand::Plan(plan.next().unwrap_or_default()),
        };
        let operands: Vec<Operand> = operands.iter().map(operand_of).collect();
        let given = results.try_map(&mut |meta| self.add_made(meta))?;
        let results = operand(&given);
        let is_placed = |it: &Plan| self.gives_as(it, &it.output, &results);
        // What a loop carries goes in where it came out.
        let n_carried = match operands.iter().find(|it| matches!(it, Operand::List(_))) {
            Some(Operand::List(items)) if matches!(name, "scan" | "while_loop") => items.len(),
            _ => 0,
        };
        let is_carried = plans.last().is_none_or(|it| carries(it, n_carried));
        if !plans.iter().all(is_placed) || !is_carried || self.shares_places(&results) {
            let what = format!("the graphs of {name} give tensors that lie in different orders in memory");
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
        self.has_plans = true;
        self.push(Action::ControlFlow { op: name.into(), operands, plans, results })?;
        Ok(given)
    }
}

fn is_symbolic(meta: &TensorMeta) -> bool {
    meta.sizes.iter().chain(&meta.strides).any(SymInt::is_symbolic)
}

/// Whether the first so many tensors that a graph gives lie in memory as those that it takes.
fn carries(plan: &Plan, n: usize) -> bool {
    let Operand::List(given) = &plan.output else { return true };
    plan.inputs.iter().zip(given).take(n).all(|(input, given)| match (input, given) {
        (Operand::Tensor(input), Operand::Tensor(given)) => plan.tensor(*input).strides == plan.tensor(*given).strides,
        (_, _) => true,
    })
}

fn id_of(tensor: TensorRef) -> TensorId {
    TensorId(tensor.0 as u32)
}

fn operand(value: &Traced) -> Operand {
    operand_of(value, &|it| id_of(*it))
}

fn operands_of(values: &[Traced]) -> Vec<Operand> {
    values.iter().map(operand).collect()
}

/// Whether a tensor lies as `dense`, the row-major one of its sizes, does.
fn is_row_major(meta: &TensorMeta, dense: &TensorMeta) -> bool {
    let numbers = |it: &[SymInt]| it.iter().map(|it| usize::try_from(it.as_int()?).ok()).collect::<Option<Vec<_>>>();
    match (numbers(&meta.sizes), numbers(&meta.strides)) {
        (Some(sizes), Some(strides)) => has_contiguous_strides(&sizes, &strides),
        (_, _) => meta.strides == dense.strides,
    }
}
