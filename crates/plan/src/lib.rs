//! Plans: a program as steps over planned memory, as plain data.
//!
//! A [`Plan`] is what is left of a graph once every question that its shapes answer has been answered: the operators that
//! compute, in order, on [`TensorView`]s of [`Buffer`]s. Sizes are numbers, or expressions of what the data decides. Views, shape
//! rules, decompositions, called modules and functions of Python are gone. This crate knows what a plan says ([`Plan::validate`]), how it prints, and
//! which buffers can share memory ([`assign_slots`]); it knows neither graphs, nor what an operator means, nor kernels.
//!
//! ```
//! use tracefx_core::DType;
//! use tracefx_plan::{Action, Buffer, Operand, Plan, TensorView};
//!
//! let mut plan = Plan::default();
//! let input = plan.add_buffer(Buffer::Input(0));
//! let x = plan.add_tensor(TensorView::row_major(input, DType::Float32, &[2.into(), 3.into()]));
//! let result = plan.add_buffer(Buffer::Result);
//! let y = plan.add_tensor(TensorView::row_major(result, DType::Float32, &[2.into(), 3.into()]));
//! plan.inputs.push(Operand::Tensor(x));
//! plan.push("relu", Action::call("aten.relu.default", vec![Operand::Tensor(x)], vec![Operand::Tensor(y)]));
//! plan.output = Operand::List(vec![Operand::Tensor(y)]);
//! plan.validate()?;
//! assert_eq!(
//!     plan.to_string(),
//!     "plan(%0: f32[2, 3]):
//!     %1: f32[2, 3] = aten.relu.default(%0)  # relu
//!     return (%1,)"
//! );
//! # Ok::<(), tracefx_core::Diagnostic>(())
//! ```
#![forbid(unsafe_code)]

mod bytes;
mod code;
mod fused;
mod memory;
mod operand;
mod plan;
mod print;
mod quantized;
mod validate;

pub use code::{Argument, Instruction, Loop, Register};
pub use fused::{
    Activation, Attention, BatchNorm, Convolution, ConvolutionLayer, Epilogue, FLOATS, Fused, Gather, Norm,
    NormStatistic, Pool, PoolReduction, Product, Window,
};
pub use memory::{Lifetime, Slots, assign_slots};
pub use operand::Operand;
pub use plan::{Action, Buffer, BufferId, Extent, Plan, Step, TensorId, TensorView};
pub use quantized::{
    Dequantization, DequantizedProduct, Int4Tiles, IntegerLayout, QuantizedConvolution, QuantizedResidual, Rounding,
};
