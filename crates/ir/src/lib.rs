//! The graph: nodes, arguments, names, users, edits, lint and the printed form.
//!
//! A [`Graph`] is `torch.fx.Graph` as a plain value: an ordered list of [`Node`]s, each with an [`Opcode`], a target and
//! [`Arg`]uments that refer to earlier nodes. This crate does not know what an operator means: a target is a name.
//!
//! All mutation goes through [`Graph`], so that the users of a node and the order of the list never disagree with the
//! arguments. Ids are never reused and erased nodes leave a tombstone, so iteration survives edits.
//!
//! ```
//! use tracefx_ir::{Arg, Graph};
//!
//! let mut graph = Graph::new();
//! let x = graph.placeholder("x");
//! let relu = graph.call_function("torch.ops.aten.relu.default", vec![Arg::Node(x)], vec![]);
//! graph.rename(relu, "activated");
//! graph.output(Arg::Tuple(vec![Arg::Node(relu)]));
//! assert_eq!(
//!     graph.to_string(),
//!     "graph():
//!     %x : [num_users=1] = placeholder[target=x]
//!     %activated : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})
//!     return (activated,)"
//! );
//! ```
#![forbid(unsafe_code)]

mod arg;
mod graph;
mod illegal_names;
mod lint;
mod meta;
mod module;
mod namespace;
mod node;
mod order;
mod print;
mod track;
mod users;

pub use arg::{Arg, Str};
pub use graph::{Graph, InsertPoint, name_of_target};
pub use meta::{Meta, TensorMeta, Val};
pub use module::{Attribute, FakeTensor, GraphModule, TensorKind};
pub use namespace::{Namespace, Naming};
pub use node::{Node, NodeId, Opcode};
pub use print::python_string;
pub use track::Tracked;
pub use users::UserSet;
