//! The operator registry: schema, tags, shape rule, decomposition, gradient and tolerance of every op.
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
//!
//! A registry is a value, which is cheap to clone: [`registry`] gives the operators of the tables, and a copy of it takes
//! operators of one's own ([`CustomOp`]).
#![forbid(unsafe_code)]

mod args;
mod autocast;
mod bind;
mod custom;
mod decompose;
mod decompositions;
mod elementwise;
mod families;
mod gradients;
mod infer;
mod members;
mod memory_format;
mod op;
mod promotion;
mod propagate;
mod registry;
mod resolve;
mod schema;
mod symbols;
mod unify;
mod value;
mod write_back;

pub use args::{Args, Operand};
pub use autocast::{Autocast, autocast, is_autocast};
pub use bind::bind;
pub use custom::CustomOp;
pub use decompose::{Builder, Cx, TensorRef, Traced};
pub use families::reduced_dims;
pub use gradients::{Backward, Expr, PullBack, Tape, Vjp, VjpFn};
pub use infer::{Output, broadcast, contiguous, normalize_dim};
pub use members::{ATTRIBUTES, CONVERSIONS};
pub use op::{Decompose, Infer, Op, OpDef, Rule, Tags, Tol, WriteBack};
pub use promotion::{TypeOf, check_cast, complex_of, promote, promote_types, real_of};
pub use propagate::{Propagation, check_write};
pub use registry::{Registry, registry};
pub use resolve::Item;
pub use schema::{ArgSpec, ArgType, Default, ReturnSpec, Schema};
pub use symbols::{DeferredAssertion, ShapeGuard, Symbols};
pub use value::Value;
