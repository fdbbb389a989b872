//! Runs in parts, for a GPU that answers later: what JavaScript moves between the plan's memory and its own, and the steps that stay here.

use crate::program::RunWatch;
use crate::values::{Reader, encoded};
use crate::{ProgramRunner, Refusal};
use std::panic::AssertUnwindSafe;
use tracefx_core::{Code, Diagnostic, Storage};
use tracefx_engine::PartedRun;
use tracefx_plan::BufferId;
use wasm_bindgen::prelude::wasm_bindgen;

/// A plan of a runner, whose runs are in parts. JavaScript frees it.
#[wasm_bindgen]
pub struct PlanParts(AssertUnwindSafe<PartedRun>);

impl PlanParts {
    pub(crate) fn of(run: PartedRun) -> Self {
        PlanParts(AssertUnwindSafe(run))
    }

    fn storage(&mut self, buffer: u32) -> Result<Storage, Refusal> {
        Ok(self.0.storage(BufferId(buffer))?)
    }
}

#[wasm_bindgen]
impl PlanParts {
    /// The outline of the plan.
    ///
    /// # Errors
    /// As [`Plan::to_outline`](tracefx_plan::Plan::to_outline).
    pub fn outline(&self) -> Result<Vec<u8>, Refusal> {
        Ok(self.0.plan().to_outline()?)
    }

    /// The operators of the plan that may write to what they take, between commas.
    pub fn writing_ops(&self, runner: &ProgramRunner) -> String {
        self.0.writing_ops(runner.runner()).join(",")
    }

    /// Begins a run on inputs, which are words; says no where the plan is not for these.
    ///
    /// # Errors
    /// A code of the input group where an input breaks a constraint.
    pub fn begin(&mut self, runner: &ProgramRunner, inputs: &[u32]) -> Result<bool, Refusal> {
        Ok(self.0.begin(runner.runner(), Reader::new(inputs).rest()?)?)
    }

    /// Does the steps from one number to before another.
    ///
    /// # Errors
    /// As [`ProgramRunner::run_watched`].
    pub fn run(&mut self, runner: &ProgramRunner, from: usize, to: usize, watch: &RunWatch) -> Result<(), Refusal> {
        Ok(self.0.run(runner.runner(), from..to, &mut watch.as_watch())?)
    }

    /// A number that is another one after somebody wrote to a buffer of the program.
    ///
    /// # Errors
    /// `Internal` where there is no such buffer.
    pub fn version(&mut self, buffer: u32) -> Result<f64, Refusal> {
        Ok(self.storage(buffer)?.version() as f64)
    }

    /// The first bytes of a buffer.
    ///
    /// # Errors
    /// `InputType` where it is shorter; `OutOfMemory`.
    pub fn read(&mut self, buffer: u32, n_bytes: usize) -> Result<Vec<u8>, Refusal> {
        let storage = self.storage(buffer)?;
        let guard = storage.read();
        let what = || Diagnostic::new(Code::InputType, "the plan was made for an input of more memory");
        let from = guard.bytes().get(..n_bytes).ok_or_else(what)?;
        let mut bytes = Vec::new();
        let refused = |_| Diagnostic::new(Code::OutOfMemory, format!("there is no memory for {n_bytes} bytes"));
        bytes.try_reserve_exact(n_bytes).map_err(refused)?;
        bytes.extend_from_slice(from);
        Ok(bytes)
    }

    /// Writes the first bytes of a buffer.
    ///
    /// # Errors
    /// `Internal` where it is shorter; `OutOfMemory`.
    pub fn write(&mut self, buffer: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let storage = self.storage(buffer)?;
        let mut guard = storage.write()?;
        let what = || Diagnostic::new(Code::Internal, "memory of the plan is too short");
        guard.bytes_mut().get_mut(..bytes.len()).ok_or_else(what)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Ends the run, and gives the outputs as words.
    ///
    /// # Errors
    /// `Internal` where no run goes on.
    pub fn end(&mut self) -> Result<Vec<u32>, Refusal> {
        encoded(&self.0.end()?)
    }

    /// Ends a run of which nothing is wanted any more.
    pub fn abandon(&mut self) {
        self.0.abandon();
    }
}
