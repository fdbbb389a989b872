//! Devices beside the CPU: they do the work of some steps of a plan, in memory of their own, and leave the others to the kernels.

use std::fmt;
use tracefx_core::{Code, Diagnostic, Result, Storage};
use tracefx_ops::Registry;
use tracefx_plan::{BufferId, Plan};

/// A device that takes part in runs of plans.
pub trait Accelerator: fmt::Debug + Send + Sync {
    /// Its name, as people know it.
    fn name(&self) -> String;

    /// Makes a plan ready for it. Nothing where it would do none of the steps.
    ///
    /// # Errors
    /// What the device refuses.
    fn prepare(&self, plan: &Plan, registry: &Registry) -> Result<Option<Box<dyn PlanDevice>>>;

    /// Who does each step of a plan.
    fn placements(&self, plan: &Plan, registry: &Registry) -> Vec<Placement>;

    /// Whether what runs change of the program's own tensors stays there ([`PlanDevice::release`]).
    fn keeps_state(&self) -> bool {
        false
    }

    /// How fast it is at most, measured now; nothing where it has no clock.
    ///
    /// # Errors
    /// What the device refuses.
    fn peak(&self) -> Result<Option<Peak>> {
        Ok(None)
    }
}

/// How fast a device is at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Multiplications and additions of float32 in a second.
    pub flops: f64,
    /// Bytes in a second that a copy in its memory reads and writes.
    pub bytes: f64,
    /// Whether it is a processor that does the work of the device, so that times say nothing of devices.
    pub is_software: bool,
}

/// Who does a step, and what crosses between the CPU and the device before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Why the CPU does it; nothing where the device does.
    pub reason: Option<String>,
    /// Bytes that go up to the device.
    pub bytes_up: u64,
    /// Bytes that come down from it.
    pub bytes_down: u64,
}

/// The storage of a buffer of the plan in this run.
pub type Memory<'a> = dyn FnMut(BufferId) -> Result<Storage> + 'a;

/// One plan on a device, with the memory that a run takes there.
pub trait PlanDevice: fmt::Debug + Send {
    /// A run begins. What the device knows of the program is brought up to what it is now.
    ///
    /// # Errors
    /// What the device refuses.
    fn begin(&mut self, memory: &mut Memory<'_>) -> Result<()>;

    /// Does the work of a step, or says that it is the CPU's: what that reads and writes is in memory then.
    ///
    /// # Errors
    /// What the device refuses, and what the data breaks.
    fn step(&mut self, at: usize, memory: &mut Memory<'_>) -> Result<bool>;

    /// The run ends: what it gives is in memory then.
    ///
    /// # Errors
    /// As [`PlanDevice::step`].
    fn end(&mut self, memory: &mut Memory<'_>) -> Result<()>;

    /// Whether what runs change of the program's own tensors stays on the device.
    fn keeps_state(&self) -> bool {
        false
    }

    /// What stays on the device of the program's own tensors comes down.
    ///
    /// # Errors
    /// What the device refuses: the tensors are as they were then.
    fn release(&mut self, _memory: &mut Memory<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether runs are timed from now on, where the device has a clock.
    fn set_timed(&mut self, _is_timed: bool) {}

    /// Milliseconds on the device of each step that it did in the last run, if that was timed and has ended.
    fn step_times(&mut self) -> Vec<Option<f64>> {
        Vec::new()
    }
}

/// The refusal of who would go on from what a device has lost of a program's own tensors.
pub fn lost_state() -> Diagnostic {
    let what = "a run that did not end has lost what the device kept of the program's own tensors";
    note_lost_state(Diagnostic::new(Code::DeviceFailed, what))
        .help("go on from there, or write to the tensors what they are to be")
}

/// Says of a failure that what a device kept of a program's own tensors is lost by it.
#[must_use]
pub fn note_lost_state(problem: Diagnostic) -> Diagnostic {
    problem.note("the program's own tensors that the device kept are as they were when they came down last")
}
