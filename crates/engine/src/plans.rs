//! The plans of a program that is run again and again: one for each set of dtypes and layouts of its inputs, with memory for
//! each run that goes on at the same time.

use crate::Library;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use tracefx_compile::{Precision, compile};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::{Accelerator, BoundPlan, PartedPlan, PlanDevice, Preparations, Watch, fits, lost_state, plan};
use tracefx_ir::{GraphModule, TensorMeta};
use tracefx_ops::Value;
use tracefx_plan::Plan;

/// So many sets of dtypes and layouts are remembered; that which was not used for longest goes first.
const MAX_PLANS: usize = 8;

/// So many runs at the same time leave their memory to later ones.
const MAX_IDLE: usize = 2;

/// The plans of one module, those used last in front.
#[derive(Default)]
pub(crate) struct Plans {
    /// What they may change in the numbers.
    pub(crate) precision: Precision,
    /// What does some of their steps.
    pub(crate) accelerator: Option<Arc<dyn Accelerator>>,
    /// What they have made of weights.
    preparations: Preparations,
    known: Mutex<Vec<Planned>>,
    /// The plan whose device has the program's own tensors as they are now, where the device keeps them; runs there follow one another.
    holder: Mutex<Option<Arc<Plan>>>,
    /// The thread of such a run.
    running: Mutex<Option<ThreadId>>,
    /// Whether others see the program's own tensors, and what runs write to them.
    pub(crate) shares_state: bool,
    /// Whether the module is one that is not planned.
    is_refused: AtomicBool,
}

struct Planned {
    plan: Arc<Plan>,
    /// The plan in whose place this one is, for inputs that share memory which that one wants for itself.
    instead_of: Option<Arc<Plan>>,
    /// The memory of runs that have ended.
    idle: Vec<BoundPlan>,
}

/// A plan, memory for it if there is any, and the plan in whose place it is.
type Found = (Arc<Plan>, Option<BoundPlan>, Option<Arc<Plan>>);

impl Plans {
    /// No plans yet, made as these were but for what `change` says.
    pub(crate) fn renewed(&self, change: impl FnOnce(&mut Plans)) -> Self {
        let (precision, accelerator, shares_state) = (self.precision, self.accelerator.clone(), self.shares_state);
        let mut plans = Plans { precision, accelerator, shares_state, ..Plans::default() };
        change(&mut plans);
        plans
    }

    /// The plan for inputs like these.
    ///
    /// # Errors
    /// What [`plan`](tracefx_exec::plan()) refuses.
    pub(crate) fn plan(&self, module: &GraphModule, library: &Library, inputs: &[Value<Tensor>]) -> Result<Arc<Plan>> {
        match self.known_plan(inputs) {
            Some(plan) => Ok(plan),
            None => self.make(module, library, inputs).map(|(plan, _)| plan),
        }
    }

    /// A new plan for inputs like these, and the one in whose place it is.
    fn make(
        &self,
        module: &GraphModule,
        library: &Library,
        inputs: &[Value<Tensor>],
    ) -> Result<(Arc<Plan>, Option<Arc<Plan>>)> {
        let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
        let executor = library.executor();
        let traced = plan(module, &metas, executor.registry(), executor.kernels())?;
        // A backend without fused steps runs the plan as it is traced.
        if executor.kernels().fused().is_none() {
            return Ok((Arc::new(traced), None));
        }
        let compiled = compile(traced.clone(), executor.registry(), executor.kernels(), self.precision);
        // A plan that does not hold together is a bug of a pass, and the traced one computes the same.
        let validity = compiled.validate();
        debug_assert!(validity.is_ok(), "{validity:?}\n{compiled}");
        Ok(match validity {
            Ok(()) if fits(&compiled, inputs) => (Arc::new(compiled), None),
            Ok(()) => (Arc::new(traced), Some(Arc::new(compiled))),
            Err(_) => (Arc::new(traced), None),
        })
    }

    /// Runs the module by a plan, which writes what it gives to the tensors that there are for it, where it can; nothing where there can be none, for a plan refuses what the interpreter may take.
    pub(crate) fn run(
        &self,
        module: &GraphModule,
        library: &Library,
        (inputs, outputs): (&[Value<Tensor>], Option<&[Tensor]>),
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Value<Tensor>>> {
        let mut held = self.hold()?;
        let executor = library.executor();
        let found = self.find(module, library, inputs);
        // Another plan, and the CPU, read what is in memory.
        if let Some(held) = &mut held {
            match (&found, &*held.holder) {
                (Some((plan, idle, _)), Some(holder)) if Arc::ptr_eq(plan, holder) => {
                    if idle.is_none() {
                        *held.holder = None;
                        return Err(lost_state());
                    }
                }
                (_, _) => self.bring_down(&mut held.holder)?,
            }
        }
        let Some((plan, idle, instead_of)) = found else { return Ok(None) };
        let mut bound = match idle {
            Some(bound) => bound,
            None => {
                let (registry, preparations) = (executor.registry(), &self.preparations);
                let bound = BoundPlan::sharing(Arc::clone(&plan), registry, executor.kernels(), preparations);
                let Ok(bound) = bound else { return Ok(None) };
                let device = self.accelerator.as_ref().map(|it| it.prepare(&plan, registry)).transpose()?;
                bound.with_device(device.flatten())
            }
        };
        held = held.filter(|_| bound.device().is_some_and(|it| it.keeps_state()));
        if let Some(held) = &mut held {
            *held.holder = Some(Arc::clone(&plan));
        }
        let mut result = match bound.writes_to(inputs) {
            false => bound.run_into(executor, inputs, outputs, loop_steps, watch).map(Some),
            true => bound.synchronize().map(|()| None),
        };
        // Who shares the program's own tensors sees what a run writes.
        if self.shares_state && result.is_ok() {
            result = bound.synchronize().and(result);
        }
        self.give(&plan, instead_of, Some(bound));
        result
    }

    /// Waits until no other run changes what a device keeps; nothing where the device keeps nothing.
    ///
    /// # Errors
    /// `DeviceFailed` where this thread is within such a run: it would wait for itself.
    fn hold(&self) -> Result<Option<Held<'_>>> {
        if !self.accelerator.as_ref().is_some_and(|it| it.keeps_state()) {
            return Ok(None);
        }
        let here = thread::current().id();
        if *self.running.lock().unwrap_or_else(PoisonError::into_inner) == Some(here) {
            let what = "a run of this program on a device that keeps its tensors is going on in this thread";
            return Err(Diagnostic::new(Code::DeviceFailed, what).help("ask again when the run has ended"));
        }
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(here);
        Ok(Some(Held { holder, running: &self.running }))
    }

    /// Brings what a device keeps of the program's own tensors into their memory.
    ///
    /// # Errors
    /// What the device refuses, and `DeviceFailed` where it has lost them.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.hold()?.map_or(Ok(()), |mut it| self.bring_down(&mut it.holder))
    }

    fn bring_down(&self, holder: &mut Option<Arc<Plan>>) -> Result<()> {
        let Some(plan) = holder.take() else { return Ok(()) };
        let mut plans = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = plans.iter_mut().find(|it| Arc::ptr_eq(&it.plan, &plan));
        let bound = known.and_then(|it| it.idle.last_mut()).ok_or_else(lost_state)?;
        bound.synchronize().inspect_err(|problem| {
            // It can be asked for again.
            if problem.code() == Code::OutOfMemory {
                *holder = Some(Arc::clone(&plan));
            }
        })
    }

    /// The plan for these inputs, made where there is none yet, with memory for it if there is any, and the plan in whose place it is; nothing
    /// where there can be no plan.
    fn find(&self, module: &GraphModule, library: &Library, inputs: &[Value<Tensor>]) -> Option<Found> {
        match self.take(inputs) {
            Some((plan, idle)) => Some((plan, idle, None)),
            None if self.is_refused.load(Ordering::Relaxed) => None,
            None => match self.make(module, library, inputs) {
                Ok((plan, instead_of)) if fits(&plan, inputs) => Some((plan, None, instead_of)),
                Ok(_) => None,
                Err(problem) => {
                    let is_of_module = matches!(problem.code(), Code::NotImplemented | Code::LimitExceeded);
                    self.is_refused.store(is_of_module, Ordering::Relaxed);
                    None
                }
            },
        }
    }

    /// The plan for these inputs with memory of its own, for runs in parts; nothing where there can be none.
    pub(crate) fn parted(
        &self,
        module: &GraphModule,
        library: &Library,
        inputs: &[Value<Tensor>],
    ) -> Result<Option<PartedPlan>> {
        let executor = library.executor();
        let held = self.hold()?;
        let Some((plan, idle, instead_of)) = self.find(module, library, inputs) else { return Ok(None) };
        self.give(&plan, instead_of, idle);
        if let Some(mut held) = held {
            self.bring_down(&mut held.holder)?;
        }
        let bound = BoundPlan::sharing(plan, executor.registry(), executor.kernels(), &self.preparations);
        bound.map(|it| Some(PartedPlan::new(it)))
    }

    /// Asks the device of a run that has ended, of a plan for inputs like these; nothing where there is none.
    pub(crate) fn ask_device<T>(
        &self,
        inputs: &[Value<Tensor>],
        ask: impl FnOnce(&mut dyn PlanDevice) -> T,
    ) -> Option<T> {
        let mut plans = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = position(&plans, inputs)?;
        let device = plans[at].idle.last_mut().and_then(BoundPlan::device)?;
        Some(ask(device))
    }

    /// The plan for these inputs, if there is one.
    fn known_plan(&self, inputs: &[Value<Tensor>]) -> Option<Arc<Plan>> {
        let plans = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        position(&plans, inputs).map(|at| Arc::clone(&plans[at].plan))
    }

    /// The plan for these inputs, and memory for it, if there are any.
    fn take(&self, inputs: &[Value<Tensor>]) -> Option<(Arc<Plan>, Option<BoundPlan>)> {
        let mut plans = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = position(&plans, inputs)?;
        plans[..=at].rotate_right(1);
        let found = &mut plans[0];
        Some((Arc::clone(&found.plan), found.idle.pop()))
    }

    /// Keeps the plan, and memory for it.
    fn give(&self, plan: &Arc<Plan>, instead_of: Option<Arc<Plan>>, bound: Option<BoundPlan>) {
        let mut plans = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match plans.iter_mut().find(|it| Arc::ptr_eq(&it.plan, plan)) {
            Some(known) => known.idle.extend(bound.filter(|_| known.idle.len() < MAX_IDLE)),
            None => {
                plans.truncate(MAX_PLANS - 1);
                plans.insert(0, Planned { plan: Arc::clone(plan), instead_of, idle: bound.into_iter().collect() });
            }
        }
    }
}

/// The place of the plan for these inputs.
fn position(plans: &[Planned], inputs: &[Value<Tensor>]) -> Option<usize> {
    plans
        .iter()
        .position(|it| fits(&it.plan, inputs) && !it.instead_of.as_ref().is_some_and(|compiled| fits(compiled, inputs)))
}

/// The time of a run on a device that keeps the program's own tensors.
struct Held<'a> {
    /// The plan whose device is ahead of memory.
    holder: MutexGuard<'a, Option<Arc<Plan>>>,
    running: &'a Mutex<Option<ThreadId>>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(plans.iter().map(|it| it.plan.steps.len())).finish()
    }
}
