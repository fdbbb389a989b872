//! Nested inputs and outputs of Python by the structures of a program: PyTorch's pytrees.

use crate::errors::refused;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tracefx::export::{ExportedProgram, Key, TreeSpec};
use tracefx::{Code, Value};

/// The values of nested inputs, in order, each with where it stands.
pub(crate) fn flatten<'py>(
    spec: &TreeSpec,
    object: &Bound<'py, PyAny>,
    place: &str,
    leaves: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let py = object.py();
    let odd = |what: String| {
        let help = "give inputs of the structure that the program was exported with; print(program) shows it";
        refused(py, Code::InputStructure, what, help)
    };
    let Some(class) = spec.ty.as_deref() else {
        leaves.push(object.clone());
        return Ok(());
    };
    let n_children = spec.children.len();
    if class == "builtins.NoneType" {
        return if object.is_none() { Ok(()) } else { Err(odd(format!("{place} should be None"))) };
    }
    if let Some(keys) = spec.keys() {
        let dict = object.cast::<PyDict>().map_err(|_| odd(format!("{place} should be a dict")))?;
        for (key, child) in keys.iter().zip(&spec.children) {
            let item = match key {
                Key::Str(it) => dict.get_item(&**it)?,
                Key::Int(it) => dict.get_item(it)?,
            };
            let item = item.ok_or_else(|| odd(format!("{place} has no key {}", written(key))))?;
            flatten(child, &item, &format!("{place}[{}]", written(key)), leaves)?;
        }
        if dict.len() != n_children {
            let names = keys.iter().map(written).collect::<Vec<_>>().join(", ");
            let wanted = if keys.is_empty() { "no keys".to_owned() } else { format!("the keys {names} alone") };
            let given = dict.keys().iter().map(|it| Ok(it.repr()?.to_string())).collect::<PyResult<Vec<_>>>()?;
            return Err(odd(format!("{place} should have {wanted}, and has {}", given.join(", "))));
        }
        return Ok(());
    }
    let is_sequence =
        matches!(class, "builtins.tuple" | "builtins.list" | "collections.deque" | "collections.namedtuple");
    if is_sequence {
        let is_right = match class {
            "builtins.list" => object.is_instance_of::<PyList>(),
            "builtins.tuple" | "collections.namedtuple" => object.is_instance_of::<PyTuple>(),
            _ => true,
        };
        let items = object.try_iter().ok().filter(|_| is_right);
        let items = items.ok_or_else(|| odd(format!("{place} should be a {}", short(class))))?;
        let items = items.collect::<PyResult<Vec<_>>>()?;
        if items.len() != n_children {
            let n = if n_children == 1 { "1 item".to_owned() } else { format!("{n_children} items") };
            return Err(odd(format!("{place} should have {n}, and has {}", items.len())));
        }
        for (at, (item, child)) in items.iter().zip(&spec.children).enumerate() {
            flatten(child, item, &format!("{place}[{at}]"), leaves)?;
        }
        return Ok(());
    }
    let fields = spec.dataclass_fields().map(|it| it.0).filter(|it| it.len() == n_children);
    let fields = fields.ok_or_else(|| odd(format!("{place} is of the class {class}, whose fields are not known")))?;
    for (field, child) in fields.iter().zip(&spec.children) {
        let item = object.getattr(&**field).map_err(|_| odd(format!("{place} has no field {field}")))?;
        flatten(child, &item, &format!("{place}.{field}"), leaves)?;
    }
    Ok(())
}

/// The call of a program as its structure has it: the positional inputs, and those by name.
pub(crate) fn flatten_call<'py>(
    program: &ExportedProgram,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let py = args.py();
    let mut leaves = Vec::new();
    match program.in_spec().map(|it| (it, it.children.as_slice())) {
        Some((_, [positional, named])) => {
            flatten(positional, args.as_any(), "args", &mut leaves)?;
            let none = PyDict::new(py);
            flatten(named, kwargs.unwrap_or(&none).as_any(), "kwargs", &mut leaves)?;
        }
        Some(_) | None => {
            leaves.extend(args.iter().chain(kwargs.into_iter().flat_map(|it| it.values().iter().collect::<Vec<_>>())))
        }
    }
    Ok(leaves)
}

/// Puts outputs together.
pub(crate) fn unflatten<'py>(
    py: Python<'py>,
    program: &ExportedProgram,
    spec: &TreeSpec,
    leaves: &mut dyn Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(class) = spec.ty.as_deref() else {
        let missing = || {
            refused(py, Code::GraphInvalid, "the program gives fewer values than its structure has", "export it again")
        };
        return leaves.next().ok_or_else(missing);
    };
    if class == "builtins.NoneType" {
        return Ok(py.None().into_bound(py));
    }
    let items = spec.children.iter().map(|it| unflatten(py, program, it, leaves)).collect::<PyResult<Vec<_>>>()?;
    if let Some(keys) = spec.keys() {
        let dict = match class {
            "collections.OrderedDict" => py.import("collections")?.getattr("OrderedDict")?.call0()?,
            _ => PyDict::new(py).into_any(),
        };
        for (key, item) in keys.iter().zip(items) {
            match key {
                Key::Str(it) => dict.set_item(&**it, item)?,
                Key::Int(it) => dict.set_item(it, item)?,
            }
        }
        return Ok(dict);
    }
    match class {
        "builtins.list" => Ok(PyList::new(py, items)?.into_any()),
        "builtins.tuple" => Ok(PyTuple::new(py, items)?.into_any()),
        "collections.deque" => py.import("collections")?.call_method1("deque", (items,)),
        _ => {
            let name = spec.class_name().unwrap_or(class);
            if let Some(fields) = program.namedtuple_fields.get(name) {
                let fields: Vec<&str> = fields.iter().map(|it| &**it).collect();
                let class = py.import("collections")?.call_method1("namedtuple", (short(name), fields))?;
                return class.call1(PyTuple::new(py, items)?);
            }
            let Some((fields, nones)) = spec.dataclass_fields() else {
                return Ok(PyTuple::new(py, items)?.into_any());
            };
            let named = PyDict::new(py);
            fields.iter().zip(items).try_for_each(|(field, item)| named.set_item(&**field, item))?;
            nones.iter().try_for_each(|field| named.set_item(&**field, py.None()))?;
            py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&named))
        }
    }
}

/// The outputs of a call, nested.
pub(crate) fn outputs<'py>(
    py: Python<'py>,
    program: &ExportedProgram,
    values: &[Value<tracefx::Tensor>],
) -> PyResult<Bound<'py, PyAny>> {
    let values = values.iter().map(|it| crate::values::from_value(py, it)).collect::<PyResult<Vec<_>>>()?;
    match program.out_spec() {
        Some(spec) => unflatten(py, program, spec, &mut values.into_iter()),
        None => Ok(PyTuple::new(py, values)?.into_any()),
    }
}

/// A key as Python writes it.
fn written(key: &Key) -> String {
    match key {
        Key::Str(it) => format!("'{it}'"),
        Key::Int(it) => it.to_string(),
    }
}

/// The last part of a qualified name.
fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}
