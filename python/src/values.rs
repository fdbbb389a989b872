//! Inputs and outputs of programs, and arguments of nodes, as objects of Python.

use crate::constant::{Constant, Kind};
use crate::dlpack::{self, Imported};
use crate::errors::{OrRaise, refused};
use crate::node::Node;
use crate::program::Shared;
use crate::tensor::Tensor;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};
use tracefx::core::Complex64;
use tracefx::{Arg, Code, Value};

/// An input of a program. Tensors of other libraries are noted in `imported`.
pub(crate) fn to_value(object: &Bound<'_, PyAny>, imported: &mut Vec<Imported>) -> PyResult<Value<tracefx::Tensor>> {
    to_value_within(object, imported, 0)
}

fn to_value_within(
    object: &Bound<'_, PyAny>,
    imported: &mut Vec<Imported>,
    depth: usize,
) -> PyResult<Value<tracefx::Tensor>> {
    check_depth(object.py(), depth, "an input")?;
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Ok(Value::Tensor(tensor.get().0.clone()));
    }
    if let Some(plain) = plain(object)? {
        return Value::of_arg(&plain, &mut |_| Err(unusable(object)));
    }
    if dlpack::is_exporter(object)? {
        let it = dlpack::import(object)?;
        let tensor = it.tensor.clone();
        imported.push(it);
        return Ok(Value::Tensor(tensor));
    }
    // Scalars of NumPy. Its bool has `__float__` as well.
    if object.hasattr("__index__")? {
        return Ok(Value::int(object.extract()?));
    }
    if object.get_type().name()?.to_cow()?.starts_with("bool") {
        return Ok(Value::Bool(object.is_truthy()?));
    }
    if object.hasattr("__float__")? {
        return Ok(Value::Float(object.extract()?));
    }
    if let Ok(items) = object.cast::<PyList>() {
        return items
            .iter()
            .map(|it| to_value_within(&it, imported, depth + 1))
            .collect::<PyResult<_>>()
            .map(Value::List);
    }
    Err(unusable(object))
}

/// Refuses what is nested without an end, such as a list that is in itself.
fn check_depth(py: Python<'_>, depth: usize, what: &str) -> PyResult<()> {
    if depth <= Arg::MAX_DEPTH {
        return Ok(());
    }
    let what = format!("{what} is nested deeper than {} levels", Arg::MAX_DEPTH);
    Err(refused(py, Code::LimitExceeded, what, "give containers that are nested less"))
}

fn unusable(object: &Bound<'_, PyAny>) -> PyErr {
    let class = object.get_type().to_string();
    let what = format!("{class} is no tensor, number, string or None");
    refused(
        object.py(),
        Code::InputType,
        what,
        "give an array of NumPy, a tensor of PyTorch or another one that has __dlpack__",
    )
}

/// What is no container and no tensor.
fn plain(object: &Bound<'_, PyAny>) -> PyResult<Option<Arg>> {
    Ok(Some(if object.is_none() {
        Arg::None
    } else if let Ok(it) = object.cast::<PyBool>() {
        Arg::Bool(it.is_true())
    } else if object.is_instance_of::<PyInt>() {
        Arg::Int(object.extract()?)
    } else if object.is_instance_of::<PyFloat>() {
        Arg::Float(object.extract()?)
    } else if let Ok(it) = object.cast::<PyComplex>() {
        let part = |name| it.getattr(name)?.extract::<f64>();
        Arg::Complex(Complex64 { re: part("real")?, im: part("imag")? })
    } else if let Ok(it) = object.cast::<PyString>() {
        Arg::Str(it.to_cow()?.as_ref().into())
    } else if let Ok(it) = object.cast::<Constant>() {
        it.get().to_arg()
    } else if let Some(it) = Constant::of_torch(object)? {
        it.to_arg()
    } else {
        return Ok(None);
    }))
}

/// An output of a program.
pub(crate) fn from_value<'py>(py: Python<'py>, value: &Value<tracefx::Tensor>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::None => Ok(py.None().into_bound(py)),
        Value::Bool(it) => it.into_bound_py_any(py),
        Value::Float(it) => it.into_bound_py_any(py),
        Value::Complex(it) => Ok(PyComplex::from_doubles(py, it.re, it.im).into_any()),
        Value::Str(it) => it.into_bound_py_any(py),
        Value::DType(it) => Constant(Kind::DType(*it)).into_bound_py_any(py),
        Value::Device(it) => Constant(Kind::Device(it.clone())).into_bound_py_any(py),
        Value::Layout(it) => Constant(Kind::Layout(*it)).into_bound_py_any(py),
        Value::MemoryFormat(it) => Constant(Kind::MemoryFormat(*it)).into_bound_py_any(py),
        Value::Tensor(it) => Tensor(it.clone()).into_bound_py_any(py),
        Value::List(items) => {
            let items = items.iter().map(|it| from_value(py, it)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Int(it) => match it.as_int() {
            Some(it) => it.into_bound_py_any(py),
            None => it.to_string().into_bound_py_any(py),
        },
        Value::SymBool(it) => it.to_string().into_bound_py_any(py),
        Value::SymFloat(it) => it.to_string().into_bound_py_any(py),
    }
}

/// An argument of a node.
pub(crate) fn from_arg<'py>(py: Python<'py>, program: &Shared, arg: &Arg) -> PyResult<Bound<'py, PyAny>> {
    let all = |items: &[Arg]| items.iter().map(|it| from_arg(py, program, it)).collect::<PyResult<Vec<_>>>();
    match arg {
        Arg::None => Ok(py.None().into_bound(py)),
        Arg::Ellipsis => Ok(PyEllipsis::get(py).to_owned().into_any()),
        Arg::Bool(it) => it.into_bound_py_any(py),
        Arg::Int(it) => it.into_bound_py_any(py),
        Arg::Float(it) => it.into_bound_py_any(py),
        Arg::Complex(it) => Ok(PyComplex::from_doubles(py, it.re, it.im).into_any()),
        Arg::Str(it) | Arg::Op(it) => it.into_bound_py_any(py),
        Arg::DType(it) => Constant(Kind::DType(*it)).into_bound_py_any(py),
        Arg::Device(it) => Constant(Kind::Device(it.clone())).into_bound_py_any(py),
        Arg::Layout(it) => Constant(Kind::Layout(*it)).into_bound_py_any(py),
        Arg::MemoryFormat(it) => Constant(Kind::MemoryFormat(*it)).into_bound_py_any(py),
        Arg::Node(it) => Node::new(program, *it).into_bound_py_any(py),
        Arg::List(items) => Ok(PyList::new(py, all(items)?)?.into_any()),
        Arg::Tuple(items) => Ok(PyTuple::new(py, all(items)?)?.into_any()),
        Arg::Dict(items) => {
            let dict = PyDict::new(py);
            for (key, it) in items {
                dict.set_item(&**key, from_arg(py, program, it)?)?;
            }
            Ok(dict.into_any())
        }
        Arg::Slice(parts) => py.import("builtins")?.getattr("slice")?.call1(PyTuple::new(py, all(&**parts)?)?),
    }
}

/// An argument of a node, whose nodes are of this program.
pub(crate) fn to_arg(object: &Bound<'_, PyAny>, program: &Shared) -> PyResult<Arg> {
    to_arg_within(object, program, 0)
}

fn to_arg_within(object: &Bound<'_, PyAny>, program: &Shared, depth: usize) -> PyResult<Arg> {
    let py = object.py();
    check_depth(py, depth, "an argument")?;
    let within = |it: &Bound<'_, PyAny>| to_arg_within(it, program, depth + 1);
    if let Some(plain) = plain(object)? {
        return Ok(plain);
    }
    if let Ok(node) = object.cast::<Node>() {
        return node.get().id_in(program).map(Arg::Node).or_raise(py);
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        return items.iter().map(|it| within(&it)).collect::<PyResult<_>>().map(Arg::Tuple);
    }
    if let Ok(items) = object.cast::<PyList>() {
        return items.iter().map(|it| within(&it)).collect::<PyResult<_>>().map(Arg::List);
    }
    if let Ok(items) = object.cast::<PyDict>() {
        let item = |(key, it): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((key.extract::<String>()?.as_str().into(), within(&it)?))
        };
        return items.iter().map(item).collect::<PyResult<_>>().map(Arg::Dict);
    }
    if object.cast::<PySlice>().is_ok() {
        let part = |name| within(&object.getattr(name)?);
        return Ok(Arg::Slice(Box::new([part("start")?, part("stop")?, part("step")?])));
    }
    if object.is(PyEllipsis::get(py)) {
        return Ok(Arg::Ellipsis);
    }
    let what = format!("{} is no argument of a node", object.get_type());
    Err(refused(
        py,
        Code::GraphArgument,
        what,
        "give nodes, numbers, strings, and lists, tuples, dicts and slices of them",
    ))
}
