//! A plan with memory: what is bound once, what is bound for each run, and the run.
//!
//! The memory of the plan is shared by liveness, and kept from run to run. Inputs and results have storages of the plan too, which have
//! content for the time of a run: that of an input is lent, and that of a result is given away. So a step whose sizes are known is bound
//! once, in the first run. Where a step writes to an input, which may be the memory of others, all inputs are the caller's storages
//! themselves; and what a function of the host sees, which may keep it, has memory of the run. Steps on these are bound for each run.

mod outputs;

pub use outputs::{check_output, check_output_count};

use super::accelerator::PlanDevice;
use super::fits::fits;
use super::operands::{Symbols, extent_of, learn, plain_value};
use super::preparations::{Preparation, Preparations};
use crate::higher_order::{self, Operands};
use crate::run::{Run, Running, Watch};
use crate::{Executor, Kernel, Kernels, PrepareFused, Prepared, assign};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;
use std::mem::take;
use std::sync::Arc;
use tracefx_core::{Code, Diagnostic, Result, Storage, Tensor};
use tracefx_ops::{Args, Op, Registry, Value};
use tracefx_plan::{
    Action, Buffer, BufferId, Extent, Fused, Lifetime, Operand, Plan, Step, TensorId, TensorView, assign_slots,
};

/// A plan that is ready to run, with the memory that a run takes. One run at a time; for others there can be others.
#[derive(Debug)]
pub struct BoundPlan {
    plan: Arc<Plan>,
    /// The storage of each buffer; between runs, nothing for those of a run.
    storages: Vec<Option<Storage>>,
    /// The bytes of each buffer that has a number of them.
    sizes: Vec<Option<usize>>,
    /// Whether all of a buffer is written before it is read: what is there before does not matter.
    is_overwritten: Vec<bool>,
    /// The tensors; between runs, nothing for those of a run.
    tensors: Vec<Option<Tensor>>,
    /// The buffers that have content for the time of a run alone.
    lent: Vec<usize>,
    /// The buffers and tensors of a run.
    of_a_run: (Vec<usize>, Vec<usize>),
    /// The results that this run writes to tensors that there are, and the storages that they have in other runs.
    placed: Vec<(usize, Option<Storage>)>,
    /// The program's own memory that steps write to.
    written: Vec<Storage>,
    /// What the data has decided in this run.
    symbols: Symbols,
    /// What does the work of each step.
    work: Vec<Work>,
    /// The steps with their tensors.
    bound: Vec<Binding>,
    /// What does some of the steps in the place of the kernels.
    device: Option<Box<dyn PlanDevice>>,
    /// Whether a step writes to an input.
    writes_input: bool,
}

/// When a step gets its tensors.
#[derive(Debug)]
enum Binding {
    /// In the first run.
    Once(Option<Bound>),
    EachRun,
}

/// What does the work of a step.
#[derive(Debug)]
enum Work {
    Copy,
    Call(Call),
    Update(Update),
    Fused(FusedWork),
    ControlFlow(Vec<RefCell<BoundPlan>>),
}

/// What computes a call.
struct Call {
    op: Arc<Op>,
    /// Nothing where the executor calls it: a custom operator, an assertion, or one that is decomposed where the data decides what
    /// it gives.
    kernel: Option<Kernel>,
    /// The arguments that are the program's own, with their storages.
    constants: Vec<(usize, Storage)>,
    prepared: Constants,
}

/// What changes a tensor in its place.
struct Update {
    op: Arc<Op>,
    kernel: Option<Kernel>,
}

/// What runs a fused step.
#[derive(Debug)]
struct FusedWork {
    prepare: PrepareFused,
    preparations: Preparations,
    made: Option<Arc<Preparation>>,
}

/// What the kernel made of the constant arguments.
enum Constants {
    /// It was not asked yet.
    Unknown,
    Nothing,
    /// What fills the results while the constants have these versions.
    Done(Box<Prepared>, Vec<u64>),
}

/// A step with its tensors.
#[derive(Debug)]
enum Bound {
    Call {
        args: Vec<Value<Tensor>>,
        results: Vec<Tensor>,
    },
    Update {
        args: Vec<Value<Tensor>>,
    },
    Fused(Box<Fused<Tensor>>),
    /// From the first tensor to the second.
    Copy {
        between: Box<[Tensor; 2]>,
    },
    /// Operands are values, or numbers of plans.
    ControlFlow {
        op: Arc<str>,
        operands: Vec<Result<Value<Tensor>, usize>>,
    },
}

impl BoundPlan {
    /// Gives a plan memory, and its calls kernels.
    ///
    /// # Errors
    /// `GraphInvalid` where the plan does not hold together ([`Plan::validate`]); `NotImplemented` where an operator or its
    /// kernel is not there; `OutOfMemory`.
    pub fn new(plan: Arc<Plan>, registry: &Registry, kernels: &Kernels) -> Result<Self> {
        Self::sharing(plan, registry, kernels, &Preparations::default())
    }

    /// As [`BoundPlan::new`], with what other plans have made of the same weights.
    ///
    /// # Errors
    /// As there.
    pub fn sharing(
        plan: Arc<Plan>,
        registry: &Registry,
        kernels: &Kernels,
        preparations: &Preparations,
    ) -> Result<Self> {
        plan.validate()?;
        let sizes = plan.buffer_sizes();
        let (written, is_seen) = outer_uses(&plan, registry);
        let mut storages = storages(&plan, &sizes, &is_seen)?;
        let work = plan
            .steps
            .iter()
            .map(|step| work_of(&plan, step, &written, (registry, kernels, preparations)))
            .collect::<Result<Vec<_>>>()?;
        let writes_input =
            (0..plan.buffers.len()).any(|it| written[it] && matches!(plan.buffers[it], Buffer::Input(_)));
        let is_fixed = |buffer: usize| match &plan.buffers[buffer] {
            Buffer::Constant(_) => true,
            Buffer::Scratch => sizes[buffer].is_some() && !is_seen[buffer],
            Buffer::Input(_) => sizes[buffer].is_some() && !writes_input && !is_seen[buffer],
            Buffer::Result => sizes[buffer].is_some() && !is_seen[buffer],
            Buffer::Made => false,
        };
        let is_fixed_tensor = |at: usize| is_fixed(plan.tensors[at].buffer.0 as usize) && plan.tensors[at].is_known();
        let of_a_run = (0..plan.buffers.len()).filter(|&it| !is_fixed(it)).collect();
        let tensors: Vec<usize> = (0..plan.tensors.len()).filter(|&it| !is_fixed_tensor(it)).collect();
        let is_outer = |it: &usize| is_fixed(*it) && matches!(plan.buffers[*it], Buffer::Input(_) | Buffer::Result);
        let lent: Vec<usize> = (0..plan.buffers.len()).filter(is_outer).collect();
        for &buffer in &lent {
            storages[buffer] = Some(Storage::zeroed(0)?);
        }
        let binding = |step: &Step| {
            let mut is_fixed = !step.action.has_expr();
            step.action.for_each_tensor(&mut |it| is_fixed &= is_fixed_tensor(it.0 as usize));
            if is_fixed { Binding::Once(None) } else { Binding::EachRun }
        };
        let constant = |(at, it): (usize, &Buffer)| match it {
            Buffer::Constant(storage) if written[at] => Some(storage.clone()),
            _ => None,
        };
        Ok(BoundPlan {
            tensors: vec![None; plan.tensors.len()],
            bound: plan.steps.iter().map(binding).collect(),
            of_a_run: (of_a_run, tensors),
            placed: Vec::new(),
            written: plan.buffers.iter().enumerate().filter_map(constant).collect(),
            device: None,
            writes_input,
            lent,
            symbols: Symbols::default(),
            is_overwritten: overwritten(&plan, &sizes),
            plan,
            storages,
            sizes,
            work,
        })
    }

    /// The same with a device that was made ready for the plan.
    #[must_use]
    pub fn with_device(mut self, device: Option<Box<dyn PlanDevice>>) -> Self {
        self.device = device;
        self
    }

    /// The device that does some of the steps.
    pub fn device(&mut self) -> Option<&mut (dyn PlanDevice + 'static)> {
        self.device.as_deref_mut()
    }

    /// Brings what the device keeps of the program's own tensors into their memory.
    ///
    /// # Errors
    /// As [`PlanDevice::release`].
    pub fn synchronize(&mut self) -> Result<()> {
        let Some(mut device) = self.device.take() else { return Ok(()) };
        let result = device.release(&mut |buffer| self.storage(buffer));
        self.device = Some(device);
        result
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the plan. `watch` is told before each step how many were run, and how many there are; an error of it stops the
    /// run.
    ///
    /// # Errors
    /// `InputType` where the plan is not for these inputs ([`fits`], [`BoundPlan::writes_to`]); what a kernel or `watch` refuses, with the node
    /// and the operator. It can be run again.
    pub fn run(
        &mut self,
        executor: Executor<'_>,
        inputs: &[Value<Tensor>],
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        self.run_into(executor, inputs, None, loop_steps, watch)
    }

    /// As [`BoundPlan::run`], with memory for what the plan gives: of the tensors of its output in order, those that a run makes lie in
    /// the memory of these, where these begin their storages and lie as the plan has them. No two of them, and none of the inputs and of
    /// the program, may look at one memory.
    ///
    /// # Errors
    /// As there, and `InvalidArgument` where one is of another dtype or of other sizes than the tensor of the output.
    pub fn run_into(
        &mut self,
        executor: Executor<'_>,
        inputs: &[Value<Tensor>],
        outputs: Option<&[Tensor]>,
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        if !self.takes(inputs) {
            return Err(Diagnostic::new(Code::InputType, "the plan was made for inputs of other dtypes or layouts"));
        }
        let watch: &mut Watch<'_> = &mut |done, all| watch(done, all);
        let run = Run::new(loop_steps, watch);
        // A run that panicked took nothing back.
        self.take_outputs_back();
        self.place_outputs(outputs)?;
        self.run_within(Running { executor, steps: &run }, inputs, &mut |done, all| run.enter(done, all))
    }

    /// Whether an input is memory of the program that the plan writes to. Such a run is for the interpreter.
    pub fn writes_to(&self, inputs: &[Value<Tensor>]) -> bool {
        let mut writes = false;
        if !self.written.is_empty() {
            let mut look = |it: &Tensor| writes |= self.written.iter().any(|written| written.is_same(it.storage()));
            inputs.iter().for_each(|it| it.for_each_tensor(&mut look));
        }
        writes
    }

    pub(super) fn takes(&self, inputs: &[Value<Tensor>]) -> bool {
        fits(&self.plan, inputs) && !self.writes_to(inputs)
    }

    /// A run within a run.
    fn run_within(
        &mut self,
        running: Running<'_>,
        inputs: &[Value<Tensor>],
        enter: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        let result = self.run_steps(running, inputs, enter);
        self.leave();
        result
    }

    /// Ends a run: nothing that the caller gave or got is kept.
    pub(super) fn leave(&mut self) {
        self.take_outputs_back();
        self.lent.iter().filter_map(|&it| self.storages[it].as_ref()).for_each(|it| drop(it.take()));
        self.of_a_run.0.iter().for_each(|&it| self.storages[it] = None);
        self.of_a_run.1.iter().for_each(|&it| self.tensors[it] = None);
        self.symbols.clear();
    }

    /// A run of a branch or a body. What it is given may lie in another order than what it was traced with.
    fn run_graph(&mut self, running: Running<'_>, inputs: &[Value<Tensor>]) -> Result<Value<Tensor>> {
        if self.takes(inputs) {
            return self.run_within(running, inputs, &mut |_, _| Ok(()));
        }
        let mut symbols = Symbols::default();
        let laid =
            self.plan.inputs.iter().zip(inputs).map(|(operand, it)| laid_out(&self.plan, operand, it, &mut symbols));
        let laid = laid.collect::<Result<Vec<_>>>()?;
        if laid.len() != inputs.len() || !self.takes(&laid) {
            let what = "a graph of control flow is given values of other dtypes or sizes than it was traced with";
            return Err(Diagnostic::new(Code::ShapeMismatch, what));
        }
        self.run_within(running, &laid, &mut |_, _| Ok(()))
    }

    fn run_steps(
        &mut self,
        running: Running<'_>,
        inputs: &[Value<Tensor>],
        enter: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        let given = storages_of(inputs);
        self.enter(inputs, &given)?;
        // What is written to one input is read of another where both are one memory, which a device does not see.
        let is_hidden = self.device.is_some() && self.is_hidden(&given);
        if is_hidden {
            self.synchronize()?;
        }
        let mut device = if is_hidden { None } else { self.device.take() };
        let result = self.run_all(running, enter, &mut device);
        self.device = device.or_else(|| self.device.take());
        result?;
        self.given(&given)
    }

    /// What the plan gives, after its steps.
    pub(super) fn given(&mut self, given: &[&Storage]) -> Result<Value<Tensor>> {
        let plan = Arc::clone(&self.plan);
        self.output(&plan.output, given, &mut FxHashMap::default())
    }

    /// Whether a write to an input may be one to other memory of the run, too.
    pub(super) fn is_hidden(&self, given: &[&Storage]) -> bool {
        self.writes_input && self.are_one(given)
    }

    /// Begins a run: memory, and what is known of the inputs.
    pub(super) fn enter(&mut self, inputs: &[Value<Tensor>], given: &[&Storage]) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        for &at in &self.of_a_run.0 {
            self.storages[at] = match (&plan.buffers[at], self.sizes[at]) {
                (Buffer::Input(input), _) => given.get(*input as usize).copied().cloned(),
                (Buffer::Result, Some(_)) if self.is_placed(at) => continue,
                (Buffer::Result, Some(size)) => Some(self.result(at, size)?),
                (_, _) => None,
            };
        }
        for &at in self.lent.iter().filter(|it| !self.is_placed(**it)) {
            let size = self.sizes[at].unwrap_or_default();
            let content = match &plan.buffers[at] {
                Buffer::Input(input) => given.get(*input as usize).filter(|it| it.len() >= size).copied().cloned(),
                _ => Some(self.result(at, size)?),
            };
            let what = || Diagnostic::new(Code::InputType, "the plan was made for an input of more memory");
            let (own, content) = self.storages[at].as_ref().zip(content).ok_or_else(what)?;
            own.adopt(content)?;
        }
        for (operand, input) in plan.inputs.iter().zip(inputs) {
            learn(&plan, operand, input, &mut self.symbols);
        }
        Ok(())
    }

    /// Runs all steps, those of the device on it.
    fn run_all(
        &mut self,
        running: Running<'_>,
        enter: &mut Watch<'_>,
        device: &mut Option<Box<dyn PlanDevice>>,
    ) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let n_steps = plan.steps.len();
        if let Some(device) = device {
            device.begin(&mut |buffer| self.storage(buffer))?;
        }
        for (at, step) in plan.steps.iter().enumerate() {
            enter(at, n_steps)?;
            let is_done = match device {
                Some(device) => device.step(at, &mut |buffer| self.storage(buffer)),
                None => Ok(false),
            };
            let done = is_done.and_then(|is_done| if is_done { Ok(()) } else { self.run_step(at, running) });
            done.map_err(|problem| problem.node(&*step.node))?;
        }
        match device {
            Some(device) => device.end(&mut |buffer| self.storage(buffer)),
            None => Ok(()),
        }
    }

    /// The storage of a buffer, whose memory may be made only now.
    pub(super) fn storage(&mut self, buffer: BufferId) -> Result<Storage> {
        let at = buffer.0 as usize;
        match &self.storages[at] {
            Some(storage) => Ok(storage.clone()),
            None => {
                let made = Storage::zeroed(self.sizes[at].unwrap_or_default())?;
                Ok(self.storages[at].insert(made).clone())
            }
        }
    }

    /// Whether two of the storages that a run is given and has are one.
    fn are_one(&self, given: &[&Storage]) -> bool {
        let constant = |it: &Buffer| if let Buffer::Constant(it) = it { Some(it.id()) } else { None };
        let mut ids: Vec<usize> = self.plan.buffers.iter().filter_map(constant).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.extend(given.iter().map(|it| it.id()));
        let n = ids.len();
        ids.sort_unstable();
        ids.dedup();
        ids.len() < n
    }

    /// New memory for a result.
    fn result(&self, buffer: usize, size: usize) -> Result<Storage> {
        if self.is_overwritten[buffer] { Storage::unfilled(size) } else { Storage::zeroed(size) }
    }

    /// What the run gives: inputs as the caller has them, and results in memory that the plan gives away, which is noted.
    fn output(
        &mut self,
        operand: &Operand,
        given: &[&Storage],
        taken: &mut FxHashMap<BufferId, Storage>,
    ) -> Result<Value<Tensor>> {
        let id = match operand {
            Operand::Tensor(id) => *id,
            Operand::List(items) => {
                return items.iter().map(|it| self.output(it, given, taken)).collect::<Result<_>>().map(Value::List);
            }
            plain => return plain_value(plain, &self.symbols),
        };
        let buffer = self.plan.tensor(id).buffer;
        let own = match &self.storages[buffer.0 as usize] {
            Some(own)
                if self.lent.binary_search(&(buffer.0 as usize)).is_ok() && !self.is_placed(buffer.0 as usize) =>
            {
                own
            }
            _ => return self.tensor(id).map(Value::Tensor),
        };
        let storage = match self.plan.buffer(buffer) {
            Buffer::Input(input) => given[*input as usize].clone(),
            _ => taken.entry(buffer).or_insert_with(|| own.take()).clone(),
        };
        let view = self.plan.tensor(id);
        tensor_on(storage, view, &extent_of(view, &self.symbols)?).map(Value::Tensor)
    }

    pub(super) fn run_step(&mut self, at: usize, running: Running<'_>) -> Result<()> {
        let is_elsewhere = self.touches_placed(at);
        if let (Binding::Once(None), false) = (&self.bound[at], is_elsewhere) {
            self.bound[at] = Binding::Once(Some(self.bind(at)?));
        }
        let made = match &mut self.bound[at] {
            Binding::Once(Some(bound)) if !is_elsewhere => bound.run(&mut self.work[at], running)?,
            Binding::Once(_) | Binding::EachRun => self.bind(at)?.run(&mut self.work[at], running)?,
        };
        let Some(made) = made else { return Ok(()) };
        let plan = Arc::clone(&self.plan);
        match &plan.steps[at].action {
            Action::Call { results, .. } => {
                // An assertion that holds gives what nobody looks at.
                results.iter().zip(made).try_for_each(|(result, made)| self.receive(result, &made))
            }
            Action::ControlFlow { results, .. } => made.iter().try_for_each(|made| self.receive(results, made)),
            Action::Update { .. } | Action::Fused(_) | Action::Copy { .. } => Ok(()),
        }
    }

    /// Puts what a step has made where the plan has it, and learns what the data decided.
    fn receive(&mut self, result: &Operand, made: &Value<Tensor>) -> Result<()> {
        match (result, made) {
            (Operand::List(results), Value::List(made)) if results.len() == made.len() => {
                results.iter().zip(made).try_for_each(|(result, made)| self.receive(result, made))
            }
            (Operand::Tensor(id), Value::Tensor(made)) => {
                let plan = Arc::clone(&self.plan);
                learn(&plan, result, &Value::Tensor(made.clone()), &mut self.symbols);
                let view = plan.tensor(*id);
                if let Buffer::Made = plan.buffer(view.buffer) {
                    let wanted = extent_of(view, &self.symbols)?;
                    let is_placed = wanted.strides[..] == *made.strides() && wanted.offset == made.offset();
                    if wanted.sizes[..] == *made.sizes() && (is_placed || made.numel() == 0) {
                        self.storages[view.buffer.0 as usize] = Some(made.storage().clone());
                        self.tensors[id.0 as usize] = Some(made.clone());
                        return Ok(());
                    }
                    let span = wanted.span(view.dtype).unwrap_or(usize::MAX);
                    self.storages[view.buffer.0 as usize] = Some(Storage::zeroed(span)?);
                }
                let own = self.tensor(*id)?;
                if own.sizes() != made.sizes() || own.dtype() != made.dtype() {
                    let what = format!("a step gives {made:?} where the plan has {own:?}");
                    return Err(Diagnostic::new(Code::ShapeMismatch, what));
                }
                assign(&own, made)
            }
            (_, made) => {
                learn(&Arc::clone(&self.plan), result, made, &mut self.symbols);
                Ok(())
            }
        }
    }

    /// The tensor of this number. Memory that has no number of bytes before the run is made for the first who asks.
    fn tensor(&mut self, id: TensorId) -> Result<Tensor> {
        let at = id.0 as usize;
        if let Some(tensor) = &self.tensors[at] {
            return Ok(tensor.clone());
        }
        let view = &self.plan.tensors[at];
        let extent = extent_of(view, &self.symbols)?;
        let storage = &mut self.storages[view.buffer.0 as usize];
        let storage = match storage {
            Some(storage) => storage.clone(),
            None => {
                let made = Storage::zeroed(extent.span(view.dtype).unwrap_or(usize::MAX))?;
                storage.insert(made).clone()
            }
        };
        let tensor = tensor_on(storage, view, &extent)?;
        self.tensors[at] = Some(tensor.clone());
        Ok(tensor)
    }

    fn value(&mut self, operand: &Operand) -> Result<Value<Tensor>> {
        match operand {
            Operand::Tensor(id) => self.tensor(*id).map(Value::Tensor),
            Operand::List(items) => items.iter().map(|it| self.value(it)).collect::<Result<_>>().map(Value::List),
            plain => plain_value(plain, &self.symbols),
        }
    }

    fn bind(&mut self, at: usize) -> Result<Bound> {
        let plan = Arc::clone(&self.plan);
        Ok(match &plan.steps[at].action {
            Action::Call { args, results, .. } => {
                let args = args.iter().map(|it| self.value(it)).collect::<Result<_>>()?;
                let makes = matches!(&self.work[at], Work::Call(Call { kernel: None | Some(Kernel::Make(_)), .. }));
                let mut own = Vec::new();
                if !makes {
                    results.iter().for_each(|it| it.for_each_tensor(&mut |it| own.push(it)));
                }
                Bound::Call { args, results: own.into_iter().map(|it| self.tensor(it)).collect::<Result<_>>()? }
            }
            Action::Update { args, .. } => {
                Bound::Update { args: args.iter().map(|it| self.value(it)).collect::<Result<_>>()? }
            }
            Action::Fused(fused) => Bound::Fused(Box::new(fused.try_map(&mut |id| self.tensor(*id))?)),
            Action::Copy { from, to } => Bound::Copy { between: Box::new([self.tensor(*from)?, self.tensor(*to)?]) },
            Action::ControlFlow { op, operands, .. } => {
                let operands = operands.iter().map(|it| match it {
                    Operand::Plan(at) => Ok(Err(*at)),
                    value => self.value(value).map(Ok),
                });
                Bound::ControlFlow { op: Arc::clone(op), operands: operands.collect::<Result<_>>()? }
            }
        })
    }
}

impl Bound {
    /// Runs the step, and gives what it made elsewhere than where the plan has it.
    fn run(&mut self, work: &mut Work, running: Running<'_>) -> Result<Option<Vec<Value<Tensor>>>> {
        match (self, work) {
            (Bound::Copy { between }, Work::Copy) => {
                let [from, to] = &**between;
                // Two inputs may be parts of one storage.
                let is_one = from.storage().is_same(to.storage());
                let from = if is_one { from.compact_copy()? } else { from.clone() };
                assign(to, &from).map(|()| None)
            }
            (Bound::Call { args, results }, Work::Call(call)) => {
                let op = Arc::clone(&call.op);
                let bound = Args::new(&op, take(args));
                let done = call.run(&bound, results, running.executor).map_err(|problem| problem.op(&*op.name));
                *args = bound.values;
                done
            }
            (Bound::Update { args }, Work::Update(update)) => update.run(args, running.executor).map(|()| None),
            (Bound::Fused(fused), Work::Fused(work)) => work.run(fused, running.executor).map(|()| None),
            (Bound::ControlFlow { op, operands }, Work::ControlFlow(plans)) => {
                let operand = |it: &Result<Value<Tensor>, usize>| match it {
                    Ok(value) => higher_order::Operand::Value(value.clone()),
                    Err(at) => higher_order::Operand::Module(&plans[*at]),
                };
                let given: Vec<_> = operands.iter().map(operand).collect();
                let run = &mut |plan: &RefCell<BoundPlan>, inputs: &[Value<Tensor>]| {
                    plan.borrow_mut().run_graph(running, inputs)
                };
                let made = higher_order::call(&Operands { name: op, operands: &given }, running, run)?;
                own(made, operands.iter().flatten()).map(|it| Some(vec![it]))
            }
            (
                Bound::Copy { .. }
                | Bound::Call { .. }
                | Bound::Update { .. }
                | Bound::Fused(_)
                | Bound::ControlFlow { .. },
                _,
            ) => {
                unreachable!("a step and its work are made of one action")
            }
        }
    }
}

/// What was made, with tensors of others' memory copied: that memory may become somebody else's.
fn own<'a>(made: Value<Tensor>, others: impl Iterator<Item = &'a Value<Tensor>>) -> Result<Value<Tensor>> {
    let mut storages = Vec::new();
    others.for_each(|it| it.for_each_tensor(&mut |it| storages.push(it.storage())));
    made.try_map(&mut |it| {
        let is_others = storages.iter().any(|other| other.is_same(it.storage()));
        if is_others { it.compact_copy() } else { Ok(it.clone()) }
    })
}

impl Call {
    fn run(
        &mut self,
        args: &Args<'_, Tensor>,
        results: &[Tensor],
        executor: Executor<'_>,
    ) -> Result<Option<Vec<Value<Tensor>>>> {
        let refusal = match self.kernel {
            None => return owned(executor.call_bound(args)?, args),
            Some(kernel @ (Kernel::Overwrite(_) | Kernel::Pointwise(_) | Kernel::Update { .. })) => {
                kernel.fill(args, results).err()
            }
            Some(Kernel::Prepare { fill, .. }) => match self.prepare(args) {
                Some(prepared) => prepared(args, results).err(),
                None => fill(args, results).err(),
            },
            Some(Kernel::Fill(fill)) => {
                for result in results {
                    let n_bytes = result.numel() * result.dtype().size();
                    result.storage().write()?.bytes_mut()[..n_bytes].fill(0);
                }
                fill(args, results).err()
            }
            Some(Kernel::Make(make)) => match make(args) {
                Ok(made) => return owned(made, args),
                Err(problem) => Some(problem),
            },
        };
        match refusal {
            // A kernel that lacks a dtype leaves the call to the decomposition.
            Some(problem) if problem.code() == Code::NotImplemented && args.op.def.decompose.is_some() => {
                let made = executor.decompose(args)?;
                let mut is_promised = true;
                for (made, result) in made.iter().zip(results) {
                    is_promised &= !matches!(made, Value::Tensor(it) if it.dtype() != result.dtype());
                }
                if is_promised { owned(made, args) } else { Err(problem) }
            }
            Some(problem) => Err(problem),
            None => Ok(None),
        }
    }

    /// What the kernel has made of its constant arguments, as they are now.
    fn prepare(&mut self, args: &Args<'_, Tensor>) -> Option<&Prepared> {
        let Some(Kernel::Prepare { prepare, .. }) = self.kernel else { return None };
        let versions = || self.constants.iter().map(|(_, storage)| storage.version());
        let is_known = match &self.prepared {
            Constants::Unknown => false,
            Constants::Nothing => true,
            Constants::Done(_, known) => versions().eq(known.iter().copied()),
        };
        if !is_known {
            let known = versions().collect();
            let is_constant = |at: usize| self.constants.iter().any(|(it, _)| *it == at);
            // What is refused here, or finds no memory, is the kernel's to refuse.
            let made = if self.constants.is_empty() { None } else { prepare(args, &is_constant).unwrap_or_default() };
            self.prepared = made.map_or(Constants::Nothing, |it| Constants::Done(it, known));
        }
        if let Constants::Done(prepared, _) = &self.prepared { Some(&**prepared) } else { None }
    }
}

impl Update {
    fn run(&self, args: &[Value<Tensor>], executor: Executor<'_>) -> Result<()> {
        let mut values = args.to_vec();
        let Some((Value::Tensor(target), others)) = values.split_first_mut() else {
            return Err(Diagnostic::new(Code::GraphInvalid, format!("{} updates no tensor", self.op.name)));
        };
        let target = target.clone();
        // What is written is read before that.
        for other in others {
            *other = other.try_map(&mut |it| {
                if it.storage().is_same(target.storage()) { it.compact_copy() } else { Ok(it.clone()) }
            })?;
        }
        let args = Args::new(&self.op, values);
        let run = || {
            let refusal = match self.kernel {
                Some(Kernel::Update { update, .. }) => {
                    // A storage that lazy clones look at takes memory of its own first.
                    drop(target.storage().write()?);
                    match update(&args, &target) {
                        Ok(()) => return Ok(()),
                        Err(problem) => problem,
                    }
                }
                _ => args.unsupported(format!("the operator {} has no kernel that updates", self.op.name)),
            };
            if refusal.code() != Code::NotImplemented || self.op.def.decompose.is_none() {
                return Err(refusal);
            }
            match executor.decompose(&args)?.into_iter().next() {
                Some(Value::Tensor(made)) => executor.write(&target, made),
                _ => Err(refusal),
            }
        };
        run().map_err(|problem| problem.op(&*self.op.name))
    }
}

impl FusedWork {
    fn run(&mut self, step: &Fused<Tensor>, executor: Executor<'_>) -> Result<()> {
        let made = match self.made.take().filter(|it| it.is_of(step)) {
            Some(made) => made,
            None => self.preparations.prepared(self.prepare, step, executor)?,
        };
        self.made.insert(made).run(step)
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("op", &self.op.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("op", &self.op.name).finish_non_exhaustive()
    }
}

fn owned(made: Vec<Value<Tensor>>, args: &Args<'_, Tensor>) -> Result<Option<Vec<Value<Tensor>>>> {
    made.into_iter().map(|it| own(it, args.values.iter())).collect::<Result<_>>().map(Some)
}

/// The storages of the tensors that a run is given.
pub(super) fn storages_of(inputs: &[Value<Tensor>]) -> Vec<&Storage> {
    let mut given = Vec::new();
    inputs.iter().for_each(|it| it.for_each_tensor(&mut |it| given.push(it.storage())));
    given
}

/// The tensor of these numbers in a storage.
fn tensor_on(storage: Storage, view: &TensorView, extent: &Extent) -> Result<Tensor> {
    Tensor::view_of(storage, view.dtype, &extent.sizes, &extent.strides, extent.offset)
}

/// A value laid out as an operand of the plan is.
fn laid_out(plan: &Plan, operand: &Operand, value: &Value<Tensor>, symbols: &mut Symbols) -> Result<Value<Tensor>> {
    learn(plan, operand, value, symbols);
    match (operand, value) {
        (Operand::Tensor(id), Value::Tensor(tensor)) => {
            let view = plan.tensor(*id);
            let extent = extent_of(view, symbols)?;
            if view.dtype != tensor.dtype() || extent.sizes[..] != *tensor.sizes() {
                return Ok(value.clone());
            }
            let storage = Storage::zeroed(extent.span(view.dtype).unwrap_or(usize::MAX))?;
            let own = tensor_on(storage, view, &extent)?;
            assign(&own, tensor)?;
            Ok(Value::Tensor(own))
        }
        (Operand::List(operands), Value::List(items)) => {
            let items = operands.iter().zip(items).map(|(operand, it)| laid_out(plan, operand, it, symbols));
            items.collect::<Result<_>>().map(Value::List)
        }
        (_, other) => Ok(other.clone()),
    }
}

fn work_of(
    plan: &Plan,
    step: &Step,
    is_written: &[bool],
    (registry, kernels, preparations): (&Registry, &Kernels, &Preparations),
) -> Result<Work> {
    let (op, args, results) = match &step.action {
        Action::Call { op, args, results } => (op, args, results),
        Action::Copy { .. } => return Ok(Work::Copy),
        Action::Update { op, .. } => {
            let op = registry.shared(op)?;
            let kernel = kernels.get(&op.name);
            return Ok(Work::Update(Update { op, kernel }));
        }
        Action::Fused(fused) => {
            let what =
                || Diagnostic::new(Code::NotImplemented, format!("there is no kernel for a fused {}", fused.name()));
            let prepare = kernels.fused().ok_or_else(what)?;
            return Ok(Work::Fused(FusedWork { prepare, preparations: preparations.clone(), made: None }));
        }
        Action::ControlFlow { plans, .. } => {
            let bound = plans
                .iter()
                .map(|it| BoundPlan::sharing(Arc::new(it.clone()), registry, kernels, preparations).map(RefCell::new));
            return bound.collect::<Result<_>>().map(Work::ControlFlow);
        }
    };
    let op = registry.shared(op)?;
    let mut is_made = results.iter().any(Operand::has_expr);
    results.iter().for_each(|it| {
        it.for_each_tensor(&mut |id| is_made |= matches!(plan.buffer(plan.tensor(id).buffer), Buffer::Made));
    });
    let kernel = kernels.get(&op.name).filter(|it| !is_made || matches!(it, Kernel::Make(_)));
    let storage = |it: &Operand| match it {
        Operand::Tensor(id) => match plan.buffer(plan.tensor(*id).buffer) {
            // What changes in every run is no constant.
            Buffer::Constant(storage) if !is_written[plan.tensor(*id).buffer.0 as usize] => Some(storage.clone()),
            Buffer::Constant(_) | Buffer::Input(_) | Buffer::Scratch | Buffer::Result | Buffer::Made => None,
        },
        _ => None,
    };
    let constants = args.iter().enumerate().filter_map(|(at, it)| Some((at, storage(it)?))).collect();
    Ok(Work::Call(Call { op, kernel, constants, prepared: Constants::Unknown }))
}

/// Whether a function of the host sees the tensors of a step, in the step itself or in a plan within it.
fn is_shown(action: &Action, registry: &Registry) -> bool {
    match action {
        Action::Call { op, .. } => registry.get(op).is_none_or(Op::is_custom),
        Action::ControlFlow { plans, .. } => {
            plans.iter().any(|it| it.steps.iter().any(|it| is_shown(&it.action, registry)))
        }
        Action::Copy { .. } | Action::Fused(_) | Action::Update { .. } => false,
    }
}

/// Of each buffer, whether a step writes to it, and whether a function of the host sees it, which may keep what it sees.
fn outer_uses(plan: &Plan, registry: &Registry) -> (Vec<bool>, Vec<bool>) {
    let (mut written, mut is_seen) = (vec![false; plan.buffers.len()], vec![false; plan.buffers.len()]);
    let buffer = |it: TensorId| plan.tensor(it).buffer.0 as usize;
    for Step { action, .. } in &plan.steps {
        action.for_each_written(&mut |it| written[buffer(it)] = true);
        let writes = matches!(action, Action::Call { op, .. } if registry.get(op).is_none_or(Op::may_write));
        let is_shown = is_shown(action, registry);
        action.for_each_tensor(&mut |it| {
            written[buffer(it)] |= writes;
            is_seen[buffer(it)] |= is_shown;
        });
    }
    (written, is_seen)
}

/// Of each buffer, whether all of it is written before it is read: by one step, or by copies to the slices of it.
fn overwritten(plan: &Plan, sizes: &[Option<usize>]) -> Vec<bool> {
    let mut parts: Vec<(Vec<&TensorView>, bool)> = vec![(Vec::new(), false); plan.buffers.len()];
    for step in &plan.steps {
        step.action.for_each_written(&mut |it| {
            let view = plan.tensor(it);
            let (parts, is_read) = &mut parts[view.buffer.0 as usize];
            parts.extend(Some(view).filter(|_| !*is_read));
        });
        step.action.for_each_read(&mut |it| parts[plan.tensor(it).buffer.0 as usize].1 = true);
    }
    parts.iter().zip(sizes).map(|((parts, _), size)| size.is_some_and(|it| are_all(parts, it))).collect()
}

/// Whether these views are all of a buffer of so many bytes: one, or slices along a dimension, in order.
fn are_all(parts: &[&TensorView], n_bytes: usize) -> bool {
    let extents: Option<Vec<Extent>> = parts.iter().map(|it| it.known()).collect();
    let Some([first, others @ ..]) = extents.as_deref() else { return false };
    let is_all = |it: &Extent| it.offset == 0 && it.is_row_major() && it.span(parts[0].dtype) == Some(n_bytes);
    let joined = |dim: usize| {
        let mut all = first.clone();
        for it in others {
            let mut own = Extent { offset: first.offset, ..it.clone() };
            let len = std::mem::replace(own.sizes.get_mut(dim)?, all.sizes[dim]);
            if own != all || it.offset != all.sizes[dim] * all.strides[dim] {
                return None;
            }
            all.sizes[dim] += len;
        }
        Some(all)
    };
    let is_alike = parts.iter().all(|it| it.dtype == parts[0].dtype);
    is_all(first) || is_alike && (0..first.sizes.len()).filter_map(joined).any(|it| is_all(&it))
}

/// The memory of each buffer that is not of a run.
fn storages(plan: &Plan, sizes: &[Option<usize>], is_seen: &[bool]) -> Result<Vec<Option<Storage>>> {
    let mut lives: Vec<Option<Lifetime>> = vec![None; plan.buffers.len()];
    for (at, step) in plan.steps.iter().enumerate() {
        step.action.for_each_tensor(&mut |it| {
            let buffer = plan.tensor(it).buffer.0 as usize;
            let size = sizes[buffer].unwrap_or_default();
            lives[buffer].get_or_insert(Lifetime { first: at, last: at, size }).last = at;
        });
    }
    let is_planned = |it: &usize| matches!(plan.buffers[*it], Buffer::Scratch) && sizes[*it].is_some() && !is_seen[*it];
    let scratch: Vec<usize> = (0..lives.len()).filter(|it| lives[*it].is_some() && is_planned(it)).collect();
    let slots = assign_slots(&scratch.iter().filter_map(|&it| lives[it]).collect::<Vec<_>>());
    let memory = slots.sizes.iter().map(|&size| Storage::zeroed(size)).collect::<Result<Vec<_>>>()?;
    let constant = |it: &Buffer| if let Buffer::Constant(storage) = it { Some(storage.clone()) } else { None };
    let mut res: Vec<Option<Storage>> = plan.buffers.iter().map(constant).collect();
    for (&buffer, slot) in scratch.iter().zip(slots.of) {
        res[buffer] = Some(memory[slot].clone());
    }
    Ok(res)
}
