//! A plan with memory: what is bound once, what is bound for each run, and the run.
//!
//! The memory of the plan is shared by liveness, and kept from run to run. A step on it and on the program's own tensors is
//! bound once, arguments and all; a step on an input or a result of the run is bound for each.

use super::operands::value_of;
use crate::run::Watch;
use crate::{Executor, Kernel, Kernels, Prepared, assign};
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
    /// The operators and kernels of the calls.
    calls: Vec<Option<Call>>,
    /// The steps that are bound for every run.
    bound: Vec<Option<Bound>>,
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
        let calls =
            plan.steps.iter().map(|step| call_of(&plan, step, registry, kernels)).collect::<Result<Vec<_>>>()?;
        let mut res =
            BoundPlan { tensors: vec![None; plan.tensors.len()], bound: Vec::new(), plan, storages, sizes, calls };
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
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        if !fits(&self.plan, inputs) {
            return Err(Diagnostic::new(Code::InputType, "the plan was made for inputs of other dtypes or layouts"));
        }
        let result = self.run_steps(executor, inputs, watch);
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

    fn run_steps(
        &mut self,
        executor: Executor<'_>,
        inputs: &[Value<Tensor>],
        watch: &mut Watch<'_>,
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
            watch(at, n_steps)?;
            let done = match &mut self.bound[at] {
                Some(bound) => bound.run(self.calls[at].as_mut(), executor),
                None => self.bind(&self.plan.steps[at]).run(self.calls[at].as_mut(), executor),
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
        }
    }
}

impl Bound {
    fn run(&mut self, call: Option<&mut Call>, executor: Executor<'_>) -> Result<()> {
        match (self, call) {
            (Bound::Copy { between }, _) => assign(&between[1], &between[0]),
            (Bound::Call { args, results }, Some(call)) => {
                let op = Arc::clone(&call.op);
                let bound = Args::new(&op, take(args));
                let done = call.run(&bound, results, executor).map_err(|problem| problem.op(&*op.name));
                *args = bound.values;
                done
            }
            (Bound::Call { .. }, None) => unreachable!("every call has a kernel"),
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

fn is_of_a_run(buffer: &Buffer) -> bool {
    matches!(buffer, Buffer::Input(_) | Buffer::Result)
}

fn call_of(plan: &Plan, step: &Step, registry: &Registry, kernels: &Kernels) -> Result<Option<Call>> {
    let Action::Call { op, args, .. } = &step.action else { return Ok(None) };
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
    Ok(Some(Call { op, kernel, constants, prepared: Preparation::Unknown }))
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
