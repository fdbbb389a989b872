//! The graph of a program: `torch.fx.Graph`.

use crate::errors::{OrRaise, exception, refused};
use crate::node::{Node, args_of, kwargs_of};
use crate::program::{Pass, Shared};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tracefx::ir::InsertPoint;
use tracefx::{Code, Diagnostic, Opcode};

pub(crate) const BUG: &str = "this is a bug of tracefx, please report it";

/// A graph.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct Graph(pub(crate) Shared);

/// A block whose new nodes stand at one place: `with graph.inserting_before(node):`.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct Inserting {
    program: Shared,
    before: InsertPoint,
}

#[pymethods]
impl Inserting {
    fn __enter__(&self) {}

    fn __exit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let before = match self.before {
            // The node may have been erased in the block.
            InsertPoint::Before(it) | InsertPoint::After(it) if !self.program.with(|p| p.module.graph.contains(it)) => {
                InsertPoint::End
            }
            other => other,
        };
        self.program.edit(|it| it.graph.set_insert_point(before)).map(|_| ()).or_raise(py)
    }
}

impl Graph {
    fn inserting(&self, py: Python<'_>, point: InsertPoint) -> PyResult<Inserting> {
        let before = self.0.edit(|it| it.graph.set_insert_point(point)).or_raise(py)?;
        Ok(Inserting { program: self.0.clone(), before })
    }

    fn created(
        &self,
        py: Python<'_>,
        (op, target): (Opcode, &str),
        args: Option<&Bound<'_, PyTuple>>,
        kwargs: Option<&Bound<'_, PyDict>>,
        name: Option<&str>,
    ) -> PyResult<Node> {
        let args = args.map(|it| args_of(it, &self.0)).transpose()?.unwrap_or_default();
        let kwargs = kwargs_of(kwargs, &self.0)?;
        let id = self.0.edit(|it| it.graph.create_node(op, target, args, kwargs, name)).or_raise(py)?;
        Ok(Node::new(&self.0, id))
    }
}

fn opcode(py: Python<'_>, name: &str) -> PyResult<Opcode> {
    let help = "it is placeholder, get_attr, call_function, call_method, call_module or output";
    Opcode::from_name(name).ok_or_else(|| refused(py, Code::GraphArgument, format!("there is no opcode {name}"), help))
}

#[pymethods]
impl Graph {
    /// The nodes, in order, as they are now.
    #[getter]
    fn nodes(&self) -> Vec<Node> {
        let ids: Vec<_> = self.0.with(|it| it.module.graph.nodes().collect());
        ids.into_iter().map(|it| Node::new(&self.0, it)).collect()
    }

    /// The nodes of an opcode, and of a target if one is given.
    #[pyo3(signature = (*, op, target=None))]
    fn find_nodes(&self, py: Python<'_>, op: &str, target: Option<&str>) -> PyResult<Vec<Node>> {
        let op = opcode(py, op)?;
        let ids: Vec<_> = self.0.with(|it| {
            let graph = &it.module.graph;
            let is_wanted = |node: &tracefx::Node| node.op() == op && target.is_none_or(|it| &**node.target() == it);
            graph.nodes().filter(|it| is_wanted(graph.node(*it))).collect()
        });
        Ok(ids.into_iter().map(|it| Node::new(&self.0, it)).collect())
    }

    /// The node `output`.
    fn output_node(&self, py: Python<'_>) -> PyResult<Node> {
        let id = self.0.with(|it| it.module.graph.output_node());
        let missing = || refused(py, Code::GraphInvalid, "the graph has no node output", "make one");
        id.map(|it| Node::new(&self.0, it)).ok_or_else(missing)
    }

    /// Makes a node at the place where nodes are inserted.
    #[pyo3(signature = (op, target, args=None, kwargs=None, name=None))]
    fn create_node(
        &self,
        py: Python<'_>,
        op: &str,
        target: &str,
        args: Option<&Bound<'_, PyTuple>>,
        kwargs: Option<&Bound<'_, PyDict>>,
        name: Option<&str>,
    ) -> PyResult<Node> {
        self.created(py, (opcode(py, op)?, target), args, kwargs, name)
    }

    /// Makes a call of a function by its qualified name.
    #[pyo3(signature = (the_function, args=None, kwargs=None))]
    fn call_function(
        &self,
        py: Python<'_>,
        the_function: &str,
        args: Option<&Bound<'_, PyTuple>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Node> {
        self.created(py, (Opcode::CallFunction, the_function), args, kwargs, None)
    }

    /// Removes a node that nothing uses.
    fn erase_node(&self, py: Python<'_>, to_erase: &Bound<'_, Node>) -> PyResult<()> {
        let id = to_erase.get().id_in(&self.0).or_raise(py)?;
        self.0.edit(|it| it.graph.erase_node(id)).or_raise(py)
    }

    /// In a `with` block, new nodes stand before this one.
    fn inserting_before(&self, py: Python<'_>, n: &Bound<'_, Node>) -> PyResult<Inserting> {
        let id = n.get().id_in(&self.0).or_raise(py)?;
        self.inserting(py, InsertPoint::Before(id))
    }

    /// In a `with` block, new nodes stand behind this one.
    fn inserting_after(&self, py: Python<'_>, n: &Bound<'_, Node>) -> PyResult<Inserting> {
        let id = n.get().id_in(&self.0).or_raise(py)?;
        self.inserting(py, InsertPoint::After(id))
    }

    /// Erases nodes without effects that nothing uses, and says whether there were any.
    fn eliminate_dead_code(&self, py: Python<'_>) -> PyResult<bool> {
        let answer =
            self.0.transform(&Pass { name: "eliminate_dead_code", options: serde_json::json!({}) }).or_raise(py)?;
        Ok(answer["modified"].as_bool().unwrap_or(false))
    }

    /// Refuses a graph that breaks its rules.
    fn lint(&self, py: Python<'_>) -> PyResult<()> {
        let problems = self.0.with(|it| it.module.graph.lint(Some(&it.module)));
        match problems.as_slice() {
            [] => Ok(()),
            [only] => Err(exception(py, only)),
            [first, rest @ ..] => {
                let told = |res: Diagnostic, it: &Diagnostic| res.note(it.to_string());
                Err(exception(py, &rest.iter().fold(first.clone(), told)))
            }
        }
    }

    fn __len__(&self) -> usize {
        self.0.with(|it| it.module.graph.len())
    }

    fn __str__(&self) -> String {
        self.0.with(|it| it.module.graph.to_string())
    }
}
