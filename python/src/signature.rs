//! What the inputs and outputs of a program are: `torch.export.graph_signature`.

use crate::values::from_value;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tracefx::Value;
use tracefx::export::{Argument, ConstantValue, InputKind};

/// An input of the graph.
#[pyclass(module = "tracefx", frozen)]
#[derive(Clone)]
pub(crate) struct InputSpec {
    /// The name of the placeholder.
    #[pyo3(get)]
    name: String,
    /// Such as `PARAMETER`.
    #[pyo3(get)]
    kind: &'static str,
    /// The parameter, buffer or constant.
    #[pyo3(get)]
    target: Option<String>,
    text: String,
}

/// An output of the graph.
#[pyclass(module = "tracefx", frozen)]
#[derive(Clone)]
pub(crate) struct OutputSpec {
    /// The name of the node.
    #[pyo3(get)]
    name: String,
    /// Such as `BUFFER_MUTATION`.
    #[pyo3(get)]
    kind: &'static str,
    /// What it belongs to.
    #[pyo3(get)]
    target: Option<String>,
    text: String,
}

#[pymethods]
impl InputSpec {
    fn __repr__(&self) -> &str {
        &self.text
    }
}

#[pymethods]
impl OutputSpec {
    fn __repr__(&self) -> &str {
        &self.text
    }
}

/// The inputs and outputs of the graph.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct GraphSignature(pub(crate) tracefx::export::GraphSignature);

#[pymethods]
impl GraphSignature {
    /// One for each placeholder.
    #[getter]
    fn input_specs(&self) -> Vec<InputSpec> {
        let spec = |it: &tracefx::export::InputSpec| InputSpec {
            name: it.arg.name().to_string(),
            kind: it.kind.name(),
            target: it.target.as_deref().map(str::to_owned),
            text: it.to_string(),
        };
        self.0.input_specs.iter().map(spec).collect()
    }

    /// One for each result of the graph.
    #[getter]
    fn output_specs(&self) -> Vec<OutputSpec> {
        let spec = |it: &tracefx::export::OutputSpec| OutputSpec {
            name: it.arg.name().to_string(),
            kind: it.kind.name(),
            target: it.target.as_deref().map(str::to_owned),
            text: it.to_string(),
        };
        self.0.output_specs.iter().map(spec).collect()
    }

    /// The inputs of the user: names, and the values of those that the program fixes.
    #[getter]
    fn user_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.user_inputs().map(|it| named(py, &it.arg)).collect::<PyResult<Vec<_>>>()?)
    }

    /// The outputs of the user.
    #[getter]
    fn user_outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.user_outputs().map(|it| named(py, &it.arg)).collect::<PyResult<Vec<_>>>()?)
    }

    /// The qualified names of the parameters.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.targets(InputKind::Parameter))
    }

    /// The qualified names of the buffers.
    #[getter]
    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.targets(InputKind::Buffer))
    }

    /// The parameter of each placeholder that is one.
    #[getter]
    fn inputs_to_parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.by_placeholder(py, InputKind::Parameter)
    }

    /// The buffer of each placeholder that is one.
    #[getter]
    fn inputs_to_buffers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.by_placeholder(py, InputKind::Buffer)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

impl GraphSignature {
    fn targets(&self, kind: InputKind) -> Vec<&str> {
        self.0.inputs_of(kind).filter_map(|it| it.target.as_deref()).collect()
    }

    fn by_placeholder<'py>(&self, py: Python<'py>, kind: InputKind) -> PyResult<Bound<'py, PyDict>> {
        let res = PyDict::new(py);
        for it in self.0.inputs_of(kind) {
            res.set_item(&**it.arg.name(), it.target.as_deref())?;
        }
        Ok(res)
    }
}

fn named<'py>(py: Python<'py>, arg: &Argument) -> PyResult<Bound<'py, PyAny>> {
    let value = match arg {
        Argument::Constant { value, .. } => match value {
            ConstantValue::None => Value::None,
            ConstantValue::Bool(it) => Value::Bool(*it),
            ConstantValue::Int(it) => Value::int(*it),
            ConstantValue::Float(it) => Value::Float(*it),
            ConstantValue::Str(it) => Value::Str(it.clone()),
        },
        other => Value::Str(other.name().clone()),
    };
    from_value(py, &value)
}
