//! A run in parts, for a host whose device is asked and answers later: the host does the steps of the device itself, in between has the kernels do
//! the others, and moves the content of buffers. A host that can wait gives the device to the plan instead
//! ([`PlanDevice`](super::PlanDevice)).

use super::bound::storages_of;
use crate::run::{Run, Running, Watch};
use crate::{BoundPlan, Executor};
use std::ops::Range;
use tracefx_core::{Code, Diagnostic, Result, Storage, Tensor};
use tracefx_ops::Value;
use tracefx_plan::{BufferId, Plan};

/// A plan with memory, whose runs are in parts.
#[derive(Debug)]
pub struct PartedPlan {
    bound: BoundPlan,
    /// What the run that goes on was given.
    inputs: Option<Vec<Value<Tensor>>>,
}

impl PartedPlan {
    /// The plan with its memory.
    pub fn new(bound: BoundPlan) -> Self {
        PartedPlan { bound, inputs: None }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        self.bound.plan()
    }

    /// Begins a run, unless the plan is not for these inputs, or a device does not see all that it writes to. One that went on is no more.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn begin(&mut self, inputs: Vec<Value<Tensor>>) -> Result<bool> {
        self.abandon();
        if !self.bound.takes(&inputs) || self.bound.is_hidden(&storages_of(&inputs)) {
            return Ok(false);
        }
        let entered = self.bound.enter(&inputs, &storages_of(&inputs));
        self.inputs = Some(inputs);
        if entered.is_err() {
            self.abandon();
        }
        entered.map(|()| true)
    }

    /// Has the kernels do these steps. Loops of each call take as many steps as there may be.
    ///
    /// # Errors
    /// `Internal` where no run goes on, or there are no such steps; what a kernel or `watch` refuses, with the node and the operator.
    pub fn run(
        &mut self,
        executor: Executor<'_>,
        steps: Range<usize>,
        loop_steps: u64,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        self.check_running()?;
        let n_steps = self.plan().steps.len();
        let watch: &mut Watch<'_> = &mut |done, all| watch(done, all);
        let run = Run::new(loop_steps, watch);
        for at in steps {
            run.enter(at, n_steps)?;
            let node = match self.plan().steps.get(at) {
                Some(step) => step.node.clone(),
                None => return Err(Diagnostic::new(Code::Internal, format!("there is no step {at} of {n_steps}"))),
            };
            let done = self.bound.run_step(at, Running { executor, steps: &run });
            done.map_err(|problem| problem.node(&*node))?;
        }
        Ok(())
    }

    /// The storage of a buffer in the run that goes on; of a constant, at any time.
    ///
    /// # Errors
    /// `Internal` where there is no such buffer; `OutOfMemory`.
    pub fn storage(&mut self, buffer: BufferId) -> Result<Storage> {
        if buffer.0 as usize >= self.plan().buffers.len() {
            return Err(Diagnostic::new(Code::Internal, format!("there is no buffer {}", buffer.0)));
        }
        self.bound.storage(buffer)
    }

    /// Ends the run, whose steps are done, and gives what the plan gives.
    ///
    /// # Errors
    /// `Internal` where no run goes on; `OutOfMemory`.
    pub fn end(&mut self) -> Result<Value<Tensor>> {
        self.check_running()?;
        let inputs = self.inputs.take().unwrap_or_default();
        let given = self.bound.given(&storages_of(&inputs));
        self.bound.leave();
        given
    }

    /// Ends a run of which nothing is wanted any more.
    pub fn abandon(&mut self) {
        if self.inputs.take().is_some() {
            self.bound.leave();
        }
    }

    fn check_running(&self) -> Result<()> {
        match self.inputs {
            Some(_) => Ok(()),
            None => Err(Diagnostic::new(Code::Internal, "a part of a run is asked for, and no run goes on")),
        }
    }
}
