//! Tensors that Python holds: what programs give and keep. They are not written to from Python, as the arrays of JAX are not.

use crate::constant::{Constant, Kind};
use crate::dlpack;
use crate::errors::OrRaise;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tracefx::{DType, Scalar};

/// A tensor of the engine. `numpy()`, `torch.from_dlpack(…)` and all who take DLPack look at its memory.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct Tensor(pub(crate) tracefx::Tensor);

#[pymethods]
impl Tensor {
    /// The sizes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.sizes())
    }

    /// The strides, in elements.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.strides())
    }

    /// The dtype.
    #[getter]
    fn dtype(&self) -> Constant {
        Constant(Kind::DType(self.0.dtype()))
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.0.numel()
    }

    /// The bytes of its elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.numel() * self.0.dtype().size()
    }

    /// The only element, as a number of Python.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.item().or_raise(py)? {
            Scalar::Bool(it) => it.into_bound_py_any(py),
            Scalar::Int(it) => it.into_bound_py_any(py),
            Scalar::Float(it) => it.into_bound_py_any(py),
            Scalar::Complex(it) => Ok(pyo3::types::PyComplex::from_doubles(py, it.re, it.im).into_any()),
        }
    }

    /// An array of NumPy that looks at the same memory and is not written to.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = slf.get().0.dtype();
        if matches!(dtype, DType::BFloat16 | DType::Complex32) || dtype.short_name().starts_with("f8") {
            let what = format!("NumPy has no {dtype}; use torch.from_dlpack");
            return Err(PyTypeError::new_err(what));
        }
        slf.py().import("numpy")?.call_method1("from_dlpack", (slf,))
    }

    /// What `numpy.asarray` asks for.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = Tensor::numpy(slf)?;
        match (dtype, copy) {
            (None, Some(true)) => array.call_method0("copy"),
            (None, Some(false) | None) => Ok(array),
            (Some(dtype), copy) => {
                let options = PyDict::new(slf.py());
                options.set_item("copy", copy == Some(true))?;
                array.call_method("astype", (dtype,), Some(&options))
            }
        }
    }

    /// DLPack: a capsule over the tensor's memory, which the capsule keeps as it is now. A version from 1 on says that nobody may write
    /// to it; with `copy=True` it is a copy.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some_and(|it| !it.is_none()) {
            return Err(PyBufferError::new_err("a tensor on the CPU has no stream"));
        }
        if dl_device.is_some_and(|it| it != dlpack::CPU) {
            return Err(PyBufferError::new_err("the tensor is on the CPU"));
        }
        let is_versioned = max_version.is_some_and(|(major, _)| major >= 1);
        let is_copied = copy == Some(true);
        let tensor = if is_copied { self.0.compact_copy().or_raise(py)? } else { self.0.clone() };
        dlpack::export(py, &tensor, is_versioned, is_copied)
    }

    /// DLPack: the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    /// `copy.deepcopy`: a tensor with memory of its own.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.0.compact_copy().or_raise(py).map(Tensor)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.0.sizes().first().copied().ok_or_else(|| PyTypeError::new_err("len() of a 0-d tensor"))
    }

    fn __repr__(&self) -> String {
        let sizes: Vec<String> = self.0.sizes().iter().map(ToString::to_string).collect();
        format!("tracefx.Tensor({}[{}])", self.0.dtype().short_name(), sizes.join(", "))
    }
}
