//! The operator registry: schema, tags, shape rule, decomposition and tolerance of every op.
//!
//! One entry of one table says everything about an operator; kernels join by its name in the backend crates, and this
//! crate never imports one. Adding an operator is an entry in the file of its family (`families/`), plus a kernel
//! unless its decomposition serves.
//!
//! ```
//! use tracefx_ops::registry;
//!
//! let op = registry().get("aten.sym_size.int").unwrap();
//! assert_eq!(op.schema.to_string(), "aten::sym_size.int(Tensor self, int dim) -> SymInt");
//! assert_eq!(op.schema.args[1].name, "dim");
//! ```
#![forbid(unsafe_code)]

mod args;
mod bind;
mod decompose;
mod elementwise;
mod families;
mod infer;
mod memory_format;
mod op;
mod promotion;
mod registry;
mod resolve;
mod schema;
mod value;

pub use args::{Args, Operand};
pub use bind::bind;
pub use decompose::{Builder, Cx, TensorRef, Traced};
pub use families::reduced_dims;
pub use infer::{Output, broadcast, contiguous, normalize_dim};
pub use op::{Decompose, Infer, Op, OpDef, Rule, Tags, Tol};
pub use promotion::{TypeOf, complex_of, promote, promote_types};
pub use registry::{Registry, registry};
pub use resolve::Item;
pub use schema::{ArgSpec, ArgType, Default, ReturnSpec, Schema};
pub use value::Value;
