//! A plan with memory: what is bound once, what is bound for each run, and the run.
//!
//! The memory of the plan is shared by liveness, and kept from run to run. A step on it and on the program's own tensors is
//! bound once, arguments and all; a step on an input or a result of the run is bound for each.

use super::operands::value_of;
use crate::higher_order::{self, Operands};
use crate::run::{Run, Running, Watch};
use crate::{Executor, Kernel, Kernels, Prepared, assign};
use std::cell::RefCell;
use std::fmt;
use std::mem::take;
use std::sync::Arc;
use tracefx_core::{Code, Diagnostic, Result, Storage, Tensor};
use tracefx_ops::{Args, Op, Registry, Value};
use tracefx_plan::{Action, Buffer, Lifetime, Operand, Plan, Step, TensorId, assign_slots};

/// A plan that is ready to run, with the memory that a run takes. One run at a time; for others there can be others.
#[derive(Debug)]
pub struct BoundPlan {
    plan: Arc<Plan>,
    /// The storage of each buffer; nothing for those of a run.
    storages: Vec<Option<Storage>>,
    /// The bytes of each buffer.
    sizes: Vec<usize>,
    /// The tensors; nothing for those of a run.
    tensors: Vec<Option<Tensor>>,
    /// What does the work of each step.
    work: Vec<Work>,
    /// The steps that are bound for every run.
    bound: Vec<Option<Bound>>,
}

/// What does the work of a step.
#[derive(Debug)]
enum Work {
    Copy,
    Call(Call),
    ControlFlow(Vec<RefCell<BoundPlan>>),
}

/// What computes a call.
struct Call {
    op: Arc<Op>,
    kernel: Kernel,
    /// The arguments that are the program's own, with their storages.
    constants: Vec<(usize, Storage)>,
    prepared: Preparation,
}

/// What the kernel made of the constant arguments.
enum Preparation {
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
    /// From the first tensor to the second.
    Copy {
        between: Box<[Tensor; 2]>,
    },
    /// Operands are values, or numbers of plans.
    ControlFlow {
        op: Arc<str>,
        operands: Vec<Result<Value<Tensor>, usize>>,
        results: Vec<Tensor>,
    },
}

impl BoundPlan {
    /// Gives a plan memory, and its calls kernels.
    ///
    /// # Errors
    /// `GraphInvalid` where the plan does not hold together ([`Plan::validate`]); `NotImplemented` where an operator or its
    /// kernel is not there; `OutOfMemory`.
    pub fn new(plan: Arc<Plan>, registry: &Registry, kernels: &Kernels) -> Result<Self> {
        plan.validate()?;
        let sizes = plan.buffer_sizes();
        let storages = storages(&plan, &sizes)?;
        let work = plan.steps.iter().map(|step| work_of(&plan, step, registry, kernels)).collect::<Result<Vec<_>>>()?;
        let mut res =
            BoundPlan { tensors: vec![None; plan.tensors.len()], bound: Vec::new(), plan, storages, sizes, work };
        for at in 0..res.tensors.len() {
            res.tensors[at] = res.look(at)?;
        }
        res.bound = res.plan.steps.iter().map(|step| res.is_static(step).then(|| res.bind(step))).collect();
        Ok(res)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The bytes of the memory that it keeps from run to run.
    pub fn memory(&self) -> usize {
        let mut seen = Vec::new();
        for (storage, buffer) in self.storages.iter().zip(&self.plan.buffers) {
            if let (Some(storage), Buffer::Scratch) = (storage, buffer)
                && !seen.iter().any(|it: &&Storage| it.is_same(storage))
            {
                seen.push(storage);
            }
        }
        seen.iter().map(|it| it.len()).sum()
    }

    /// Runs the plan. `watch` is told before each step how many were run, and how many there are; an error of it stops the
    /// run.
    ///
    /// # Errors
    /// `InputType` where the plan is not for these inputs ([`fits`]); what a kernel or `watch` refuses, with the node
    /// and the operator. It can be run again.
    pub fn run(
        &mut self,
        executor: Executor<'_>,
        inputs: &[Value<Tensor>],
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        if !fits(&self.plan, inputs) {
            return Err(Diagnostic::new(Code::InputType, "the plan was made for inputs of other dtypes or layouts"));
        }
        let watch: &mut Watch<'_> = &mut |done, all| watch(done, all);
        let run = Run::new(loop_steps, watch);
        self.run_within(Running { executor, steps: &run }, inputs, &mut |done, all| run.enter(done, all))
    }

    /// A run within a run.
    fn run_within(
        &mut self,
        running: Running<'_>,
        inputs: &[Value<Tensor>],
        enter: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        let result = self.run_steps(running, inputs, enter);
        // Nothing that the caller gave or got is kept.
        for (at, buffer) in self.plan.buffers.iter().enumerate() {
            if is_of_a_run(buffer) {
                self.storages[at] = None;
            }
        }
        for (tensor, view) in self.tensors.iter_mut().zip(&self.plan.tensors) {
            if is_of_a_run(self.plan.buffer(view.buffer)) {
                *tensor = None;
            }
        }
        result
    }

    /// A run of a branch or a body. What it is given may lie in another order than what it was traced with.
    fn run_graph(&mut self, running: Running<'_>, inputs: &[Value<Tensor>]) -> Result<Value<Tensor>> {
        if fits(&self.plan, inputs) {
            return self.run_within(running, inputs, &mut |_, _| Ok(()));
        }
        let placed = self.plan.inputs.iter().zip(inputs).map(|(operand, it)| placed(&self.plan, operand, it));
        let placed = placed.collect::<Result<Vec<_>>>()?;
        if placed.len() != inputs.len() || !fits(&self.plan, &placed) {
            let what = "a graph of control flow is given values of other dtypes or sizes than it was traced with";
            return Err(Diagnostic::new(Code::ShapeMismatch, what));
        }
        self.run_within(running, &placed, &mut |_, _| Ok(()))
    }

    fn run_steps(
        &mut self,
        running: Running<'_>,
        inputs: &[Value<Tensor>],
        enter: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        let mut given = Vec::new();
        inputs.iter().for_each(|it| it.for_each_tensor(&mut |it| given.push(it.storage())));
        for (at, buffer) in self.plan.buffers.iter().enumerate() {
            match buffer {
                Buffer::Input(input) => self.storages[at] = given.get(*input as usize).copied().cloned(),
                Buffer::Result => self.storages[at] = Some(Storage::zeroed(self.sizes[at])?),
                Buffer::Constant(_) | Buffer::Scratch => {}
            }
        }
        for at in 0..self.tensors.len() {
            if self.tensors[at].is_none() {
                self.tensors[at] = self.look(at)?;
            }
        }
        let n_steps = self.plan.steps.len();
        for at in 0..n_steps {
            enter(at, n_steps)?;
            let done = match &mut self.bound[at] {
                Some(bound) => bound.run(&mut self.work[at], running),
                None => self.bind(&self.plan.steps[at]).run(&mut self.work[at], running),
            };
            done.map_err(|problem| problem.node(&*self.plan.steps[at].node))?;
        }
        Ok(value_of(&self.plan.output, &|id| self.tensor(id)))
    }

    /// The tensor of this number, where its buffer is there.
    fn look(&self, at: usize) -> Result<Option<Tensor>> {
        let view = &self.plan.tensors[at];
        let Some(storage) = &self.storages[view.buffer.0 as usize] else { return Ok(None) };
        Tensor::view_of(storage.clone(), view.dtype, &view.sizes, &view.strides, view.offset).map(Some)
    }

    fn tensor(&self, id: TensorId) -> Tensor {
        self.tensors[id.0 as usize].clone().expect("every buffer is there while the plan runs")
    }

    fn is_static(&self, step: &Step) -> bool {
        let mut res = true;
        step.action.for_each_tensor(&mut |it| res &= !is_of_a_run(self.plan.buffer(self.plan.tensor(it).buffer)));
        res
    }

    fn bind(&self, step: &Step) -> Bound {
        let tensor = |id| self.tensor(id);
        match &step.action {
            Action::Call { args, results, .. } => {
                let mut own = Vec::new();
                results.iter().for_each(|it| it.for_each_tensor(&mut |it| own.push(tensor(it))));
                Bound::Call { args: args.iter().map(|it| value_of(it, &tensor)).collect(), results: own }
            }
            Action::Copy { from, to } => Bound::Copy { between: Box::new([tensor(*from), tensor(*to)]) },
            Action::ControlFlow { op, operands, results, .. } => {
                let mut own = Vec::new();
                results.for_each_tensor(&mut |it| own.push(tensor(it)));
                let operand = |it: &Operand| match it {
                    Operand::Plan(at) => Err(*at),
                    value => Ok(value_of(value, &tensor)),
                };
                Bound::ControlFlow {
                    op: Arc::clone(op),
                    operands: operands.iter().map(operand).collect(),
                    results: own,
                }
            }
        }
    }
}

impl Bound {
    fn run(&mut self, work: &mut Work, running: Running<'_>) -> Result<()> {
        match (self, work) {
            (Bound::Copy { between }, Work::Copy) => assign(&between[1], &between[0]),
            (Bound::Call { args, results }, Work::Call(call)) => {
                let op = Arc::clone(&call.op);
                let bound = Args::new(&op, take(args));
                let done = call.run(&bound, results, running.executor).map_err(|problem| problem.op(&*op.name));
                *args = bound.values;
                done
            }
            (Bound::ControlFlow { op, operands, results }, Work::ControlFlow(plans)) => {
                let operand = |it: &Result<Value<Tensor>, usize>| match it {
                    Ok(value) => higher_order::Operand::Value(value.clone()),
                    Err(at) => higher_order::Operand::Module(&plans[*at]),
                };
                let operands: Vec<_> = operands.iter().map(operand).collect();
                let operands = Operands { name: op, operands: &operands };
                let run = &mut |plan: &RefCell<BoundPlan>, inputs: &[Value<Tensor>]| {
                    plan.borrow_mut().run_graph(running, inputs)
                };
                give(&[higher_order::call(&operands, running, run)?], results)
            }
            (Bound::Copy { .. } | Bound::Call { .. } | Bound::ControlFlow { .. }, _) => {
                unreachable!("a step and its work are made of one action")
            }
        }
    }
}

impl Call {
    fn run(&mut self, args: &Args<'_, Tensor>, results: &[Tensor], executor: Executor<'_>) -> Result<()> {
        let refusal = match self.kernel {
            Kernel::Overwrite(fill) => fill(args, results).err(),
            Kernel::Prepare { fill, .. } => match self.prepare(args)? {
                Some(prepared) => prepared(args, results).err(),
                None => fill(args, results).err(),
            },
            Kernel::Fill(fill) => {
                for result in results {
                    let n_bytes = result.numel() * result.dtype().size();
                    result.storage().write()?.bytes_mut()[..n_bytes].fill(0);
                }
                fill(args, results).err()
            }
            Kernel::Make(make) => match make(args) {
                Ok(made) => return give(&made, results),
                Err(problem) => Some(problem),
            },
        };
        match refusal {
            // A kernel that lacks a dtype leaves the call to the decomposition.
            Some(problem) if problem.code() == Code::NotImplemented && args.op.def.decompose.is_some() => {
                give(&executor.decompose(args)?, results)
            }
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }
}

impl Call {
    /// What the kernel has made of its constant arguments, as they are now.
    fn prepare(&mut self, args: &Args<'_, Tensor>) -> Result<Option<&Prepared>> {
        let Kernel::Prepare { prepare, .. } = self.kernel else { return Ok(None) };
        let versions = || self.constants.iter().map(|(_, storage)| storage.version());
        let is_known = match &self.prepared {
            Preparation::Unknown => false,
            Preparation::Nothing => true,
            Preparation::Done(_, known) => versions().eq(known.iter().copied()),
        };
        if !is_known {
            let known = versions().collect();
            let is_constant = |at: usize| self.constants.iter().any(|(it, _)| *it == at);
            let made = if self.constants.is_empty() { None } else { prepare(args, &is_constant)? };
            self.prepared = made.map_or(Preparation::Nothing, |it| Preparation::Done(it, known));
        }
        Ok(if let Preparation::Done(prepared, _) = &self.prepared { Some(&**prepared) } else { None })
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("op", &self.op.name).finish_non_exhaustive()
    }
}

/// Puts what was computed elsewhere where the plan has it.
fn give(made: &[Value<Tensor>], results: &[Tensor]) -> Result<()> {
    let mut own = Vec::new();
    made.iter().for_each(|it| it.for_each_tensor(&mut |it| own.push(it)));
    assert_eq!(own.len(), results.len(), "an operator gives what its shape rule says");
    results.iter().zip(own).try_for_each(|(result, made)| assign(result, made))
}

/// A value laid out as an operand of the plan is.
fn placed(plan: &Plan, operand: &Operand, value: &Value<Tensor>) -> Result<Value<Tensor>> {
    match (operand, value) {
        (Operand::Tensor(id), Value::Tensor(tensor)) => {
            let view = plan.tensor(*id);
            if view.dtype != tensor.dtype() || view.sizes[..] != *tensor.sizes() {
                return Ok(value.clone());
            }
            let storage = Storage::zeroed(view.span().unwrap_or(usize::MAX))?;
            let own = Tensor::view_of(storage, view.dtype, &view.sizes, &view.strides, view.offset)?;
            assign(&own, tensor)?;
            Ok(Value::Tensor(own))
        }
        (Operand::List(operands), Value::List(items)) => {
            let items = operands.iter().zip(items).map(|(operand, it)| placed(plan, operand, it));
            items.collect::<Result<_>>().map(Value::List)
        }
        (_, other) => Ok(other.clone()),
    }
}

fn is_of_a_run(buffer: &Buffer) -> bool {
    matches!(buffer, Buffer::Input(_) | Buffer::Result)
}

fn work_of(plan: &Plan, step: &Step, registry: &Registry, kernels: &Kernels) -> Result<Work> {
    let (op, args) = match &step.action {
        Action::Call { op, args, .. } => (op, args),
        Action::Copy { .. } => return Ok(Work::Copy),
        Action::ControlFlow { plans, .. } => {
            let bound =
                plans.iter().map(|it| BoundPlan::new(Arc::new(it.clone()), registry, kernels).map(RefCell::new));
            return bound.collect::<Result<_>>().map(Work::ControlFlow);
        }
    };
    let missing = || Diagnostic::new(Code::NotImplemented, format!("the operator {op} has no kernel")).op(&**op);
    let op = registry.shared(op)?;
    let kernel = kernels.get(&op.name).ok_or_else(missing)?;
    let storage = |it: &Operand| match it {
        Operand::Tensor(id) => match plan.buffer(plan.tensor(*id).buffer) {
            Buffer::Constant(storage) => Some(storage.clone()),
            Buffer::Input(_) | Buffer::Scratch | Buffer::Result => None,
        },
        _ => None,
    };
    let constants = args.iter().enumerate().filter_map(|(at, it)| Some((at, storage(it)?))).collect();
    Ok(Work::Call(Call { op, kernel, constants, prepared: Preparation::Unknown }))
}

/// The memory of each buffer that is not of a run.
fn storages(plan: &Plan, sizes: &[usize]) -> Result<Vec<Option<Storage>>> {
    let mut lives: Vec<Option<Lifetime>> = vec![None; plan.buffers.len()];
    for (at, step) in plan.steps.iter().enumerate() {
        step.action.for_each_tensor(&mut |it| {
            let buffer = plan.tensor(it).buffer.0 as usize;
            lives[buffer].get_or_insert(Lifetime { first: at, last: at, size: sizes[buffer] }).last = at;
        });
    }
    let scratch: Vec<usize> =
        (0..lives.len()).filter(|&it| lives[it].is_some() && matches!(plan.buffers[it], Buffer::Scratch)).collect();
    let slots = assign_slots(&scratch.iter().filter_map(|&it| lives[it]).collect::<Vec<_>>());
    let memory = slots.sizes.iter().map(|&size| Storage::zeroed(size)).collect::<Result<Vec<_>>>()?;
    let mut res: Vec<Option<Storage>> = plan
        .buffers
        .iter()
        .map(|it| match it {
            Buffer::Constant(storage) => Ok(Some(storage.clone())),
            // A tensor that no step touches is of no bytes, or is never looked at.
            Buffer::Scratch => Ok(None),
            Buffer::Input(_) | Buffer::Result => Ok(None),
        })
        .collect::<Result<_>>()?;
    for (&buffer, slot) in scratch.iter().zip(slots.of) {
        res[buffer] = Some(memory[slot].clone());
    }
    Ok(res)
}

/// Whether a plan is for these inputs: tensors of the dtypes and layouts that it was made for, and the same values of what is
/// no tensor.
pub fn fits(plan: &Plan, inputs: &[Value<Tensor>]) -> bool {
    let fits = |(operand, input): (&Operand, &Value<Tensor>)| is_like(plan, operand, input);
    inputs.len() == plan.inputs.len() && plan.inputs.iter().zip(inputs).all(fits)
}

fn is_like(plan: &Plan, operand: &Operand, input: &Value<Tensor>) -> bool {
    match (operand, input) {
        (Operand::Tensor(id), Value::Tensor(tensor)) => {
            let view = plan.tensor(*id);
            view.dtype == tensor.dtype()
                && view.sizes[..] == *tensor.sizes()
                && view.strides[..] == *tensor.strides()
                && view.offset == tensor.offset()
        }
        (Operand::List(operands), Value::List(inputs)) => {
            operands.len() == inputs.len() && operands.iter().zip(inputs).all(|(a, b)| is_like(plan, a, b))
        }
        (Operand::None, Value::None) => true,
        (Operand::Bool(a), Value::Bool(b)) => a == b,
        (Operand::Int(a), Value::Int(b)) => b.as_int() == Some(*a),
        (Operand::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Operand::Str(a), Value::Str(b)) => **a == **b,
        (Operand::DType(a), Value::DType(b)) => a == b,
        (Operand::Device(a), Value::Device(b)) => a == b,
        (Operand::Layout(a), Value::Layout(b)) => a == b,
        (Operand::MemoryFormat(a), Value::MemoryFormat(b)) => a == b,
        (_, _) => false,
    }
}
