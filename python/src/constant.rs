//! PyTorch's constants that are no plain values of Python: dtypes, devices, layouts and memory formats. PyTorch itself is not needed
//! for them.

use crate::errors::refused;
use pyo3::prelude::*;
use pyo3::types::PyType;
use tracefx::core::{Device, Layout, MemoryFormat};
use tracefx::{Arg, Code, DType};

/// A dtype, device, layout or memory format of PyTorch.
#[pyclass(module = "tracefx", frozen, eq, hash, from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Constant(pub(crate) Kind);

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    DType(DType),
    Device(Device),
    Layout(Layout),
    MemoryFormat(MemoryFormat),
}

impl Constant {
    fn parsed(text: &str) -> Option<Kind> {
        if let Some(it) = DType::from_name(text) {
            return Some(Kind::DType(it));
        }
        if let Some(it) = Layout::from_name(text) {
            return Some(Kind::Layout(it));
        }
        if let Some(it) = MemoryFormat::from_name(text) {
            return Some(Kind::MemoryFormat(it));
        }
        // As `str(torch.device("cuda", 0))` has it.
        text.parse().ok().map(Kind::Device)
    }

    /// What an object of PyTorch is, by its class.
    pub(crate) fn of_torch(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let class: Bound<'_, PyType> = object.get_type();
        if class.module()?.to_cow()? != "torch" {
            return Ok(None);
        }
        let is_constant = matches!(&*class.name()?.to_cow()?, "dtype" | "device" | "layout" | "memory_format");
        Ok(if is_constant { Constant::parsed(&object.str()?.to_cow()?).map(Constant) } else { None })
    }

    pub(crate) fn to_arg(&self) -> Arg {
        match &self.0 {
            Kind::DType(it) => Arg::DType(*it),
            Kind::Device(it) => Arg::Device(it.clone()),
            Kind::Layout(it) => Arg::Layout(*it),
            Kind::MemoryFormat(it) => Arg::MemoryFormat(*it),
        }
    }
}

#[pymethods]
impl Constant {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        let help = "it is such as torch.float32, torch.strided, torch.channels_last or cpu";
        Constant::parsed(name)
            .map(Constant)
            .ok_or_else(|| refused(py, Code::GraphArgument, format!("`{name}` is no constant of PyTorch"), help))
    }

    /// `dtype`, `device`, `layout` or `memory_format`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            Kind::DType(_) => "dtype",
            Kind::Device(_) => "device",
            Kind::Layout(_) => "layout",
            Kind::MemoryFormat(_) => "memory_format",
        }
    }

    /// Copies and pickles are made of the name.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().__str__(),))
    }

    fn __str__(&self) -> String {
        match &self.0 {
            Kind::DType(it) => it.to_string(),
            Kind::Device(it) => it.to_string(),
            Kind::Layout(it) => it.to_string(),
            Kind::MemoryFormat(it) => it.to_string(),
        }
    }

    fn __repr__(&self) -> String {
        match &self.0 {
            Kind::Device(Device { kind, index: Some(index) }) => format!("device(type='{kind}', index={index})"),
            Kind::Device(Device { kind, index: None }) => format!("device(type='{kind}')"),
            Kind::DType(_) | Kind::Layout(_) | Kind::MemoryFormat(_) => self.__str__(),
        }
    }
}
