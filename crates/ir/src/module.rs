//! Graph modules: a graph with the tensors, modules and texts that its nodes refer to by dotted paths.

use crate::{Graph, Str, TensorMeta};
use indexmap::IndexMap;
use tracefx_core::{Code, Diagnostic, Result, Tensor};

/// What a tensor of a module is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// A parameter, which training changes.
    Parameter,
    /// A buffer that is saved with the module.
    Buffer,
    /// A buffer or constant that is not saved with the module.
    Constant,
}

/// Something that a module holds under a name.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// A tensor.
    Tensor {
        /// The tensor.
        tensor: Tensor,
        /// What it is for.
        kind: TensorKind,
    },
    /// A tensor whose data is elsewhere: graphs can be changed without it, and not run.
    Fake {
        /// What is known of it.
        tensor: FakeTensor,
        /// What it is for.
        kind: TensorKind,
    },
    /// A sub-module with a graph of its own: a branch of `cond`, a part of a split module…
    Module(Box<GraphModule>),
}

impl Attribute {
    /// A module that only holds others: `torch.nn.Module()`.
    fn empty_module() -> Self {
        let mut module = GraphModule::new(Graph::new());
        module.class_name = "Module".into();
        Attribute::Module(Box::new(module))
    }
}

/// What is known of a tensor whose data is elsewhere, with the host that called, say.
#[derive(Clone, Debug, PartialEq)]
pub struct FakeTensor {
    /// Its dtype, sizes and strides.
    pub meta: TensorMeta,
    /// Which tensor it is: fakes of the same number are the same tensor.
    pub id: u32,
}

/// A graph and what its `get_attr` and `call_module` nodes refer to.
#[derive(Clone, Debug)]
pub struct GraphModule {
    /// The class name, as printed.
    pub class_name: Str,
    /// The graph.
    pub graph: Graph,
    /// Attributes by name, in order; a dotted path walks through sub-modules.
    pub attributes: IndexMap<Str, Attribute>,
    /// Free-form notes about the module (`graph_module.meta`), as PyTorch serialises them.
    pub meta: IndexMap<Str, Str>,
}

impl GraphModule {
    /// A module of this graph, without attributes.
    pub fn new(graph: Graph) -> Self {
        GraphModule { class_name: "GraphModule".into(), graph, attributes: IndexMap::new(), meta: IndexMap::new() }
    }

    /// The attribute at a dotted path. A name that itself has dots is found whole first.
    ///
    /// # Errors
    /// `AttributeMissing` where the path leads to nothing.
    pub fn attribute(&self, path: &str) -> Result<&Attribute> {
        if let Some(found) = self.attributes.get(path) {
            return Ok(found);
        }
        for (at, _) in path.match_indices('.') {
            if let Some(Attribute::Module(child)) = self.attributes.get(&path[..at])
                && let Ok(found) = child.attribute(&path[at + 1..])
            {
                return Ok(found);
            }
        }
        Err(Diagnostic::new(Code::AttributeMissing, format!("the module has no attribute `{path}`"))
            .help("add it to the module before a node refers to it"))
    }

    /// The sub-module at a dotted path.
    ///
    /// # Errors
    /// `AttributeMissing` where the path leads to nothing, or to a tensor.
    pub fn submodule(&self, path: &str) -> Result<&GraphModule> {
        match self.attribute(path)? {
            Attribute::Module(module) => Ok(module),
            Attribute::Tensor { .. } | Attribute::Fake { .. } => {
                Err(Diagnostic::new(Code::AttributeMissing, format!("`{path}` is a tensor, not a module")))
            }
        }
    }

    /// Puts an attribute at a dotted path, in modules that are made where they are missing. What was there goes, and so
    /// does a tensor that stands in the way.
    pub fn set_attribute(&mut self, path: &str, attribute: Attribute) {
        let (mut owner, mut rest) = (self, path);
        while let Some((first, deeper)) = rest.split_once('.') {
            let child = owner.attributes.entry(first.into()).or_insert_with(Attribute::empty_module);
            if !matches!(child, Attribute::Module(_)) {
                *child = Attribute::empty_module();
            }
            let Attribute::Module(child) = child else { unreachable!("a module was just put there") };
            (owner, rest) = (child, deeper);
        }
        owner.attributes.insert(rest.into(), attribute);
    }

    /// The sub-modules with their dotted paths, this module first with an empty path, parents before children.
    pub fn modules(&self) -> Vec<(String, &GraphModule)> {
        let mut res = vec![(String::new(), self)];
        let mut at = 0;
        while at < res.len() {
            let (path, module) = (res[at].0.clone(), res[at].1);
            for (name, attribute) in &module.attributes {
                if let Attribute::Module(child) = attribute {
                    let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                    res.push((path, child));
                }
            }
            at += 1;
        }
        res
    }
}
