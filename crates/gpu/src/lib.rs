//! Plans as programs of a GPU: buffers of the device, modules in WGSL and dispatches, as plain data.
//!
//! [`lower`] takes a plan and gives the [`Program`] that a device executes in the place of its steps. Nothing here talks to a device: the
//! native one is `tracefx-wgpu`, and a browser's reads the same data. What has no shader stays on the CPU, for a
//! reason that the program tells, and what crosses between the two is part of the program.
//!
//! Sizes are numbers in the text of a module, so that every place that it reads or writes is known to be inside of its buffer when it is made:
//! an invocation beyond the last element returns at once, and a position that the data tells is checked ([`Check`]), as is what else must hold of the data ([`Condition`]).
//!
//! ```
//! use tracefx_core::DType;
//! use tracefx_gpu::{Limits, Work, lower};
//! use tracefx_plan::{Action, Buffer, Operand, Plan, TensorView};
//!
//! let mut plan = Plan::default();
//! let input = plan.add_buffer(Buffer::Input(0));
//! let x = plan.add_tensor(TensorView::row_major(input, DType::Float32, &[2.into(), 3.into()]));
//! let result = plan.add_buffer(Buffer::Result);
//! let y = plan.add_tensor(TensorView::row_major(result, DType::Float32, &[2.into(), 3.into()]));
//! plan.inputs.push(Operand::Tensor(x));
//! plan.push("relu", Action::call("aten.relu.default", vec![Operand::Tensor(x)], vec![Operand::Tensor(y)]));
//! plan.output = Operand::Tensor(y);
//! let program = lower(&plan, &Limits::default(), &|_| false);
//! assert!(matches!(&program.steps[0].work, Work::Device(it) if it.len() == 1));
//! assert_eq!(program.outputs, [result]);
//! ```
#![forbid(unsafe_code)]

mod complex_functions;
mod elements;
mod functions;
mod lower;
mod memory;
mod program;
mod shader;
mod special_functions;
mod steps;

pub use elements::{narrowed, widened};
pub use lower::lower;
pub use program::{
    Binding, Check, Condition, DeviceBufferId, DeviceStep, Dispatch, Limits, ModuleId, Place, Program, Promise, Reason,
    Work, program_types, words,
};
pub use shader::ENABLE_SUBGROUPS;
