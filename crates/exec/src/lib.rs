//! The interpreter: runs a graph with the kernels of a backend.
//!
//! [`Executor`] calls one operator: it asks the shape rule for the results, makes views and allocates, and then lets a
//! kernel fill them in, or falls back to the operator's decomposition. [`Interpreter`] walks a graph in order and calls
//! the executor for each node. Neither knows what a kernel does inside.
#![forbid(unsafe_code)]

mod assign;
mod autocast;
mod compose;
mod control_flow;
mod eager;
mod evaluate;
mod evaluation;
mod executor;
mod functionalized;
mod functions;
mod gradient;
mod higher_order;
mod host;
mod interpreter;
mod kernels;
mod lower;
mod note_values;
mod plan;
mod pointwise;
mod propagate;
mod run;
mod vmap;
mod walk;
mod without_data;

pub use assign::assign;
pub use compose::compose;
pub use eager::Called;
pub use executor::Executor;
pub use gradient::Pullback;
pub use higher_order::HIGHER_ORDER;
pub use interpreter::Interpreter;
pub use kernels::{HostKernel, Kernel, Kernels, Prepare, PrepareFused, Prepared, PreparedFused};
pub use lower::{GraphTracer, Tracer, lower};
pub use note_values::{note_values, propagate_node};
pub use plan::{
    Accelerator, BoundPlan, Memory, PartedPlan, Peak, Placement, PlanDevice, Preparations, check_output,
    check_output_count, fits, lost_state, note_lost_state, plan, view_of,
};
pub use pointwise::{Binding, ElementFunction, Target, element_function};
pub use propagate::{infer, known_values, propagate};
pub use run::{LOOP_STEPS, Watch};
pub use vmap::predispatched;
pub use walk::{Env, NodeVisitor, Slot, walk};
