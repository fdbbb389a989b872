//! Devices beside the CPU: they do the work of some steps of a plan, in memory of their own, and leave the others to the kernels.

use std::fmt;
use tracefx_core::{Result, Storage};
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
}
