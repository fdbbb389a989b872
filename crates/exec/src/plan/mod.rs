//! Plans: a graph is traced to the kernels that it calls once, and then run without asking again.
//!
//! [`plan`] decides what is computed: it goes through the graph without data, as exporting does, and writes down each kernel that
//! [`Executor::call`](crate::Executor::call) would run. [`BoundPlan`] gives a plan memory and runs it. The interpreter is the
//! oracle of both: they give what it gives, to the bit.

mod accelerator;
mod bound;
mod fits;
mod operands;
mod parted;
mod preparations;
mod trace;

pub use accelerator::{Accelerator, Memory, Peak, Placement, PlanDevice, lost_state, note_lost_state};
pub use bound::{BoundPlan, check_output, check_output_count};
pub use fits::fits;
pub use operands::view_of;
pub(crate) use operands::{Symbols, plain_value};
pub use parted::PartedPlan;
pub use preparations::Preparations;
pub use trace::plan;
