//! Runs: other threads of Python go on meanwhile, and Ctrl-C stops one.

use crate::errors::{OrRaise, exception};
use crate::values::{from_value, to_value};
use crate::{dlpack::Imported, tree};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::time::{Duration, Instant};
use tracefx::{Code, Diagnostic, Runner, Value};

/// So often a run asks whether somebody has pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(20);

/// Calls a program.
pub(crate) fn call<'py>(
    py: Python<'py>,
    runner: &Runner,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let leaves = tree::flatten_call(runner.program(), args, kwargs)?;
    let mut imported = Vec::new();
    let inputs = leaves.iter().map(|it| to_value(it, &mut imported)).collect::<PyResult<Vec<_>>>()?;
    let outputs = run(py, runner, &inputs)?;
    imported.iter().try_for_each(|it: &Imported| it.write_back(py))?;
    tree::outputs(py, runner.program(), &outputs)
}

/// Calls a program on flat values, without the interpreter's lock.
fn run(py: Python<'_>, runner: &Runner, inputs: &[Value<tracefx::Tensor>]) -> PyResult<Vec<Value<tracefx::Tensor>>> {
    let mut raised = None;
    let result = py.detach(|| {
        let mut asked = Instant::now();
        runner.run_watched(inputs, &mut |_, _| {
            if asked.elapsed() < PATIENCE {
                return Ok(());
            }
            let signals = Python::attach(|py| py.check_signals());
            asked = Instant::now();
            signals.map_err(|error| {
                raised = Some(error);
                Diagnostic::new(Code::Stopped, "a signal came")
            })
        })
    });
    match (result, raised) {
        (Ok(outputs), _) => Ok(outputs),
        (Err(_), Some(error)) => Err(error),
        (Err(problem), None) => Err(exception(py, &problem)),
    }
}

/// A program that is ready to be called, with its own copy of the buffers: PyTorch's `program.module()`.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct Module(pub(crate) Runner);

#[pymethods]
impl Module {
    /// Calls the program.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(py, &self.0, args, kwargs)
    }

    /// The parameters, buffers and constants as they are now.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let res = PyDict::new(py);
        for (name, tensor) in self.0.state() {
            res.set_item(&**name, from_value(py, &Value::Tensor(tensor.clone()))?)?;
        }
        Ok(res)
    }
}

/// How many threads kernels use.
#[pyfunction]
pub(crate) fn get_num_threads() -> usize {
    tracefx::engine::get_num_threads()
}

/// Sets how many threads kernels use. Results do not depend on it.
#[pyfunction]
pub(crate) fn set_num_threads(py: Python<'_>, n: usize) -> PyResult<()> {
    tracefx::engine::set_num_threads(n).map(|_| ()).or_raise(py)
}
