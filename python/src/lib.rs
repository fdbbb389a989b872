//! The module `tracefx._tracefx` of Python: programs, graphs and tensors as classes, over the crate `tracefx`.
//!
//! What a class does is the crate's; here stands what Python has and Rust has not: nested inputs, arrays of other libraries, exceptions,
//! signals. `unsafe` is in `dlpack` alone.

mod constant;
mod dlpack;
mod errors;
mod graph;
mod meta;
mod node;
mod program;
mod runs;
mod signature;
mod tensor;
mod tree;
mod values;

use pyo3::prelude::*;
use std::sync::LazyLock;
use tracefx::Library;

/// The operators that programs may call.
static LIBRARY: LazyLock<Library> = LazyLock::new(Library::extended);

#[pymodule]
fn _tracefx(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<constant::Constant>()?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<graph::Inserting>()?;
    module.add_class::<meta::TensorMeta>()?;
    module.add_class::<node::Node>()?;
    module.add_class::<program::ExportedProgram>()?;
    module.add_class::<runs::Module>()?;
    module.add_class::<signature::GraphSignature>()?;
    module.add_class::<signature::InputSpec>()?;
    module.add_class::<signature::OutputSpec>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_function(wrap_pyfunction!(program::load, module)?)?;
    module.add_function(wrap_pyfunction!(runs::get_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(runs::set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(errors::codes, module)?)?;
    Ok(())
}
