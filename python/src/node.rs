//! Nodes of a program's graph: `torch.fx.Node`. A node of Python is its number; the graph is the program's.

use crate::errors::{OrRaise, refused};
use crate::program::Shared;
use crate::values::{from_arg, to_arg};
use crate::{graph, meta};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};
use tracefx::ir::Str;
use tracefx::{Arg, Code, Diagnostic, NodeId};

/// A node.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct Node {
    program: Shared,
    id: NodeId,
}

impl Node {
    pub(crate) fn new(program: &Shared, id: NodeId) -> Self {
        Node { program: program.clone(), id }
    }

    /// Its number, where it is a node of this program that is still there.
    pub(crate) fn id_in(&self, program: &Shared) -> tracefx::Result<NodeId> {
        if !self.program.is_same(program) {
            return Err(
                Diagnostic::new(Code::NodeForeign, "the node is of another program").help("use a node of this graph")
            );
        }
        self.program.with(|it| {
            if it.module.graph.contains(self.id) {
                return Ok(self.id);
            }
            Err(Diagnostic::new(Code::NodeForeign, "the node was erased from the graph")
                .help("use a node of this graph"))
        })
    }

    /// What `read` reads of the node.
    fn read<T>(&self, py: Python<'_>, read: impl FnOnce(&tracefx::Node) -> T) -> PyResult<T> {
        let id = self.id_in(&self.program).or_raise(py)?;
        Ok(self.program.with(|it| read(it.module.graph.node(id))))
    }

    fn all(&self, ids: impl IntoIterator<Item = NodeId>) -> Vec<Node> {
        ids.into_iter().map(|it| Node::new(&self.program, it)).collect()
    }
}

/// The arguments of a node by their names, from Python.
pub(crate) fn kwargs_of(kwargs: Option<&Bound<'_, PyDict>>, program: &Shared) -> PyResult<Vec<(Str, Arg)>> {
    let items = kwargs.map(|it| it.iter().collect::<Vec<_>>()).unwrap_or_default();
    let pair = |(key, it): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((key.extract::<String>()?.as_str().into(), to_arg(&it, program)?))
    };
    items.into_iter().map(pair).collect()
}

/// The positional arguments of a node, from Python.
pub(crate) fn args_of(args: &Bound<'_, PyTuple>, program: &Shared) -> PyResult<Vec<Arg>> {
    args.iter().map(|it| to_arg(&it, program)).collect()
}

#[pymethods]
impl Node {
    /// The unique name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |it| it.name().to_string())
    }

    /// `placeholder`, `get_attr`, `call_function` or `output`, as in torch.fx.
    #[getter]
    fn op(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.read(py, |it| it.op().name())
    }

    /// The qualified name of what is called, such as `torch.ops.aten.relu.default`.
    #[getter]
    fn target(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |it| it.target().to_string())
    }

    #[setter]
    fn set_target(&self, py: Python<'_>, target: &str) -> PyResult<()> {
        self.program.edit(|it| it.graph.set_target(self.id, target)).or_raise(py)
    }

    /// The positional arguments.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let args = self.read(py, |it| it.args().to_vec())?;
        PyTuple::new(py, args.iter().map(|it| from_arg(py, &self.program, it)).collect::<PyResult<Vec<_>>>()?)
    }

    #[setter]
    fn set_args(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let args = args_of(args, &self.program)?;
        self.program.edit(|it| it.graph.set_args(self.id, args)).or_raise(py)
    }

    /// The arguments by their names.
    #[getter]
    fn kwargs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let res = PyDict::new(py);
        for (key, it) in self.read(py, |it| it.kwargs().to_vec())? {
            res.set_item(&*key, from_arg(py, &self.program, &it)?)?;
        }
        Ok(res)
    }

    #[setter]
    fn set_kwargs(&self, py: Python<'_>, kwargs: &Bound<'_, PyDict>) -> PyResult<()> {
        let kwargs = kwargs_of(Some(kwargs), &self.program)?;
        self.program.edit(|it| it.graph.set_kwargs(self.id, kwargs)).or_raise(py)
    }

    /// What is noted of the node: `val` is what is known of its value; the other entries are the texts that PyTorch serialises. It is a
    /// copy.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        meta::dict(py, &self.read(py, |it| it.meta.clone())?)
    }

    /// The nodes that use this one, in order.
    #[getter]
    fn users(&self, py: Python<'_>) -> PyResult<Vec<Node>> {
        let id = self.id_in(&self.program).or_raise(py)?;
        Ok(self.all(self.program.with(|it| it.module.graph.users(id).iter().collect::<Vec<_>>())))
    }

    /// The nodes among the arguments, each once.
    #[getter]
    fn all_input_nodes(&self, py: Python<'_>) -> PyResult<Vec<Node>> {
        Ok(self.all(self.read(py, tracefx::Node::all_input_nodes)?))
    }

    /// The node before this one.
    #[getter]
    fn prev(&self, py: Python<'_>) -> PyResult<Option<Node>> {
        let id = self.id_in(&self.program).or_raise(py)?;
        Ok(self.program.with(|it| it.module.graph.prev(id)).map(|it| Node::new(&self.program, it)))
    }

    /// The node behind this one.
    #[getter]
    fn next(&self, py: Python<'_>) -> PyResult<Option<Node>> {
        let id = self.id_in(&self.program).or_raise(py)?;
        Ok(self.program.with(|it| it.module.graph.next(id)).map(|it| Node::new(&self.program, it)))
    }

    /// Puts another argument in the place of one.
    fn update_arg(&self, py: Python<'_>, idx: usize, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let arg = to_arg(arg, &self.program)?;
        self.program.edit(|it| it.graph.update_arg(self.id, idx, arg)).or_raise(py)
    }

    /// Puts another argument in the place of one that goes by name.
    fn update_kwarg(&self, py: Python<'_>, key: &str, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let arg = to_arg(arg, &self.program)?;
        self.program.edit(|it| it.graph.update_kwarg(self.id, key, arg)).or_raise(py)
    }

    /// Makes the users of this node use another one, and gives them back.
    fn replace_all_uses_with(&self, py: Python<'_>, replace_with: &Bound<'_, Node>) -> PyResult<Vec<Node>> {
        let new = replace_with.get().id_in(&self.program).or_raise(py)?;
        let changed = self.program.edit(|it| it.graph.replace_all_uses_with(self.id, new, &mut |_, _| true));
        Ok(self.all(changed.or_raise(py)?))
    }

    /// Uses another node wherever this one uses the old one.
    fn replace_input_with(
        &self,
        py: Python<'_>,
        old_input: &Bound<'_, Node>,
        new_input: &Bound<'_, Node>,
    ) -> PyResult<()> {
        let old = old_input.get().id_in(&self.program).or_raise(py)?;
        let new = new_input.get().id_in(&self.program).or_raise(py)?;
        self.program.edit(|it| it.graph.replace_input_with(self.id, old, new)).or_raise(py)
    }

    /// Moves a node to stand just before this one.
    fn prepend(&self, py: Python<'_>, x: &Bound<'_, Node>) -> PyResult<()> {
        let moved = x.get().id_in(&self.program).or_raise(py)?;
        self.program.edit(|it| it.graph.move_before(moved, self.id)).or_raise(py)
    }

    /// Moves a node to stand just behind this one.
    fn append(&self, py: Python<'_>, x: &Bound<'_, Node>) -> PyResult<()> {
        let moved = x.get().id_in(&self.program).or_raise(py)?;
        self.program.edit(|it| it.graph.move_after(moved, self.id)).or_raise(py)
    }

    /// The node as the printed graph has it.
    fn format_node(&self, py: Python<'_>) -> PyResult<String> {
        let id = self.id_in(&self.program).or_raise(py)?;
        let (text, at) = self.program.with(|it| {
            let graph = &it.module.graph;
            (graph.to_string(), graph.nodes().position(|it| it == id))
        });
        let line = at.and_then(|at| text.lines().nth(at + 1));
        line.map(|it| it.trim().to_owned())
            .ok_or_else(|| refused(py, Code::Internal, "the node has no line", graph::BUG))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.name(py)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Node>().is_ok_and(|it| it.get().id == self.id && it.get().program.is_same(&self.program))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.id, self.program.address()).hash(&mut hasher);
        hasher.finish()
    }
}
