//! Runs in parts: for hosts whose devices answer later ([`PartedPlan`]).

use crate::runner::{Mode, Runner, outputs_of};
use std::ops::Range;
use tracefx_core::{Result, Storage, Tensor};
use tracefx_exec::{PartedPlan, Watch};
use tracefx_ops::{Op, Value};
use tracefx_plan::{Action, BufferId, Plan};

/// A plan of a runner, whose runs are in parts. It is for inputs of the same dtypes and layouts again and again.
#[derive(Debug)]
pub struct PartedRun(PartedPlan);

impl Runner {
    /// The plan for inputs like these, to be run in parts; nothing where the program has none, or is interpreted.
    ///
    /// # Errors
    /// As [`Runner::plan`] of the inputs; `OutOfMemory`.
    pub fn parted(&self, inputs: &[Value<Tensor>]) -> Result<Option<PartedRun>> {
        self.checker.check(inputs)?;
        if self.mode == Mode::Interpret {
            return Ok(None);
        }
        let plan = self.plans.parted(&self.module, &self.library, inputs)?;
        Ok(plan.map(PartedRun))
    }
}

impl PartedRun {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        self.0.plan()
    }

    /// The operators of the plan that may write to what they take.
    pub fn writing_ops(&self, runner: &Runner) -> Vec<&str> {
        let registry = runner.library.registry();
        let mut res = Vec::new();
        for step in &self.plan().steps {
            if let Action::Call { op, .. } = &step.action
                && registry.get(op).is_none_or(Op::may_write)
            {
                res.push(&**op);
            }
        }
        res
    }

    /// Begins a run; says no where the plan is not for these inputs.
    ///
    /// # Errors
    /// What the program refuses of the inputs; `OutOfMemory`.
    pub fn begin(&mut self, runner: &Runner, inputs: Vec<Value<Tensor>>) -> Result<bool> {
        runner.checker.check(&inputs)?;
        self.0.begin(inputs)
    }

    /// Has the kernels do these steps.
    ///
    /// # Errors
    /// As [`PartedPlan::run`].
    pub fn run(&mut self, runner: &Runner, steps: Range<usize>, watch: &mut Watch<'_>) -> Result<()> {
        self.0.run(runner.library.executor(), steps, runner.limits.loop_steps, watch)
    }

    /// The storage of a buffer of the plan.
    ///
    /// # Errors
    /// As [`PartedPlan::storage`].
    pub fn storage(&mut self, buffer: BufferId) -> Result<Storage> {
        self.0.storage(buffer)
    }

    /// Ends the run, and gives the user's outputs, flattened.
    ///
    /// # Errors
    /// As [`PartedPlan::end`].
    pub fn end(&mut self) -> Result<Vec<Value<Tensor>>> {
        outputs_of(self.0.end()?)
    }

    /// Ends a run of which nothing is wanted any more.
    pub fn abandon(&mut self) {
        self.0.abandon();
    }
}
