//! The operator registry: schema, tags, shape rule, decomposition, gradient and tolerance of every op.
//!
//! One entry of one table says everything about an operator; kernels join by its name in the backend crates, and this
//! crate never imports one. Adding an operator is an entry in the file of its family, in the folder of its domain, plus a
//! kernel unless its decomposition serves. A `decompose` and a `gradient` file beside it hold the formulas that its rows
//! name, and `core` holds what every domain is written with.
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

mod attention;
mod conv;
mod core;
mod create;
mod fft;
mod image;
mod index;
mod linalg;
mod loss;
mod norm;
mod out;
mod pointwise;
mod quantized;
mod random;
mod recurrent;
mod reduce;
mod sort;
mod view;

pub use core::args::{Args, Operand};
pub use core::autocast::{Autocast, autocast, is_autocast};
pub use core::bind::bind;
pub use core::custom::CustomOp;
pub use core::decompose::{Builder, Cx, TensorRef, Traced};
pub use core::gradients::{Backward, Expr, PullBack, Tape, Vjp, VjpFn};
pub use core::infer::{Output, broadcast, contiguous, normalize_dim};
pub use core::members::{ATTRIBUTES, CONVERSIONS, OPERATOR_PLACES};
pub use core::op::{Decompose, Infer, Op, OpDef, Rule, Tags, Tol, WriteBack};
pub use core::promotion::{TypeOf, check_cast, complex_of, promote, promote_types, real_of};
pub use core::propagate::{Propagation, check_write};
pub use core::registry::{Registry, registry};
pub use core::resolve::Item;
pub use core::schema::{ArgSpec, ArgType, Default, ReturnSpec, Schema};
pub use core::symbols::{DeferredAssertion, ShapeGuard, Symbols};
pub use core::value::Value;
pub use reduce::reduction::reduced_dims;

/// The rows of all domains: a table for each of their files, by name.
const DOMAINS: &[&[(&str, &[OpDef])]] = &[
    &[("attention", attention::OPS)],
    conv::OPS,
    create::OPS,
    fft::OPS,
    image::OPS,
    index::OPS,
    linalg::OPS,
    loss::OPS,
    norm::OPS,
    &[("out", out::OPS)],
    pointwise::OPS,
    &[("quantized", quantized::OPS)],
    random::OPS,
    recurrent::OPS,
    reduce::OPS,
    sort::OPS,
    view::OPS,
];
