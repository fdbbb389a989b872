//! Refusals as exceptions: the classes are Python's (`tracefx.errors`), one for each of those that the table of codes names.

use pyo3::prelude::*;
use tracefx::{Code, Diagnostic};

/// The exception of a refusal.
pub(crate) fn exception(py: Python<'_>, problem: &Diagnostic) -> PyErr {
    let make = || {
        let class = py.import("tracefx.errors")?.getattr(problem.code().class())?;
        let (code, notes) = (problem.code(), problem.notes().to_vec());
        let place = (problem.node_name(), problem.op_name());
        class.call1((
            problem.to_string(),
            code.id(),
            code.name(),
            problem.message(),
            place.0,
            place.1,
            notes,
            problem.help_text(),
        ))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// Results of the engine as those of Python.
pub(crate) trait OrRaise<T> {
    /// What there is, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for tracefx::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|problem| exception(py, &problem))
    }
}

/// An exception of this code.
pub(crate) fn refused(py: Python<'_>, code: Code, what: impl Into<String>, help: &str) -> PyErr {
    exception(py, &Diagnostic::new(code, what).help(help))
}

/// Every code with its name and the class of its exception.
#[pyfunction(name = "_codes")]
pub(crate) fn codes() -> Vec<(&'static str, &'static str, &'static str)> {
    Code::ALL.iter().map(|it| (it.id(), it.name(), it.class())).collect()
}
