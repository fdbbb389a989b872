//! What is known of a node's value without data.

use crate::constant::{Constant, Kind};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tracefx::ir::{Meta, Val};
use tracefx::sym::SymInt;

/// A tensor without data. Sizes that a call decides are strings such as `s0`.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct TensorMeta(tracefx::ir::TensorMeta);

fn numbers<'py>(py: Python<'py>, numbers: &[SymInt]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, numbers.iter().map(|it| number(py, it)).collect::<PyResult<Vec<_>>>()?)
}

fn number<'py>(py: Python<'py>, it: &SymInt) -> PyResult<Bound<'py, PyAny>> {
    it.as_int().map_or_else(|| it.to_string().into_bound_py_any(py), |it| it.into_bound_py_any(py))
}

#[pymethods]
impl TensorMeta {
    /// The sizes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        numbers(py, &self.0.sizes)
    }

    /// The strides.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        numbers(py, &self.0.strides)
    }

    /// The dtype.
    #[getter]
    fn dtype(&self) -> Constant {
        Constant(Kind::DType(self.0.dtype))
    }

    /// Where the tensor lives.
    #[getter]
    fn device(&self) -> Constant {
        Constant(Kind::Device(self.0.device.clone()))
    }

    /// Whether gradients flow to it.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad
    }

    fn __repr__(&self) -> String {
        let sizes: Vec<String> = self.0.sizes.iter().map(ToString::to_string).collect();
        format!("{}[{}]", self.0.dtype.short_name(), sizes.join(", "))
    }
}

/// The notes of a node: `val`, and the texts that PyTorch serialises.
pub(crate) fn dict<'py>(py: Python<'py>, meta: &Meta) -> PyResult<Bound<'py, PyDict>> {
    let res = PyDict::new(py);
    if let Some(val) = &meta.val {
        res.set_item("val", value(py, val)?)?;
    }
    for (key, text) in &meta.entries {
        res.set_item(&**key, &**text)?;
    }
    Ok(res)
}

fn value<'py>(py: Python<'py>, val: &Val) -> PyResult<Bound<'py, PyAny>> {
    match val {
        Val::None => Ok(py.None().into_bound(py)),
        Val::Tensor(it) => TensorMeta(it.clone()).into_bound_py_any(py),
        Val::Int(it) => number(py, it),
        Val::Float(it) => {
            it.as_float().map_or_else(|| it.to_string().into_bound_py_any(py), |it| it.into_bound_py_any(py))
        }
        Val::Bool(it) => {
            it.as_bool().map_or_else(|| it.to_string().into_bound_py_any(py), |it| it.into_bound_py_any(py))
        }
        Val::Seq { items, is_tuple } => {
            let items = items.iter().map(|it| value(py, it)).collect::<PyResult<Vec<_>>>()?;
            Ok(if *is_tuple { PyTuple::new(py, items)?.into_any() } else { PyList::new(py, items)?.into_any() })
        }
    }
}
