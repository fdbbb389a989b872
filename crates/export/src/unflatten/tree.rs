//! Modules while they are being built: children may be shared, by other modules and by other calls of the same one.

use indexmap::IndexMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Attribute, Graph, GraphModule, Str};

/// How deep modules may be nested. What walks modules recurs.
pub(super) const MAX_DEPTH: usize = 200;
/// How many nodes the graphs may have, with those of shared modules counted for each place.
const MAX_NODES: usize = 10_000_000;

/// A module by its number in the [`Tree`].
pub(super) type ModuleId = usize;

/// One module.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) graph: Graph,
    pub(super) class_name: Str,
    /// The class in the traced code.
    pub(super) ty: Option<Str>,
    /// Tensors.
    pub(super) attributes: IndexMap<Str, Attribute>,
    /// Which of the tree's maps has the children. Calls of one module share it.
    pub(super) children: usize,
}

/// All modules. The first is the root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
    pub(super) children: Vec<IndexMap<Str, ModuleId>>,
}

impl Tree {
    pub(super) fn add(&mut self, class_name: &str, ty: Option<Str>) -> ModuleId {
        let module = GraphModule { class_name: class_name.into(), ..GraphModule::new(Graph::new()) };
        self.add_module(module, ty)
    }

    /// Puts in a module that is there already, with what it holds.
    pub(super) fn add_module(&mut self, module: GraphModule, ty: Option<Str>) -> ModuleId {
        let children = self.children.len();
        self.children.push(IndexMap::new());
        let GraphModule { graph, class_name, attributes, .. } = module;
        self.modules.push(Module { graph, class_name, ty, attributes, children });
        self.modules.len() - 1
    }

    pub(super) fn child(&self, module: ModuleId, name: &str) -> Option<ModuleId> {
        self.children[self.modules[module].children].get(name).copied()
    }

    pub(super) fn children_of(&mut self, module: ModuleId) -> &mut IndexMap<Str, ModuleId> {
        &mut self.children[self.modules[module].children]
    }

    /// The module at a dotted path.
    pub(super) fn find(&self, from: ModuleId, path: &str) -> Option<ModuleId> {
        if path.is_empty() {
            return Some(from);
        }
        path.split('.').try_fold(from, |module, name| self.child(module, name))
    }

    /// The module that holds what a path leads to, and the name there; `make` makes modules that are missing, told their paths.
    pub(super) fn holder<'p>(
        &mut self,
        from: ModuleId,
        path: &'p str,
        make: &mut dyn FnMut(&mut Tree, &str) -> ModuleId,
    ) -> (ModuleId, &'p str) {
        let (mut module, mut start) = (from, 0);
        while let Some(length) = path[start..].find('.') {
            let end = start + length;
            module = match self.child(module, &path[start..end]) {
                Some(it) => it,
                None => {
                    let made = make(self, &path[..end]);
                    self.children_of(module).insert(path[start..end].into(), made);
                    made
                }
            };
            start = end + 1;
        }
        (module, &path[start..])
    }

    /// The modules below one, in order, with their paths; a shared one once for each path.
    ///
    /// # Errors
    /// `LimitExceeded` where shared modules make too many of it.
    pub(super) fn paths(&self) -> Result<Vec<(String, ModuleId)>> {
        let (mut res, mut rest, mut n_nodes) = (Vec::new(), vec![(String::new(), 0)], 0);
        while let Some((path, module)) = rest.pop() {
            n_nodes += self.modules[module].graph.len() + 1;
            let depth = path.split('.').count();
            if n_nodes > MAX_NODES || depth > MAX_DEPTH {
                return Err(too_deep());
            }
            let children = self.children[self.modules[module].children].iter().rev();
            rest.extend(children.map(|(name, child)| {
                let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                (path, *child)
            }));
            res.push((path, module));
        }
        Ok(res)
    }

    /// The root as a value. Shared modules are copied, and hold the same tensors.
    pub(super) fn into_module(self) -> Result<GraphModule> {
        self.paths()?;
        Ok(self.module(0))
    }

    fn module(&self, id: ModuleId) -> GraphModule {
        let Module { graph, class_name, ty, attributes, children } = &self.modules[id];
        let mut res = GraphModule { class_name: class_name.clone(), ..GraphModule::new(graph.clone()) };
        res.attributes = attributes.clone();
        for (name, child) in &self.children[*children] {
            res.attributes.insert(name.clone(), Attribute::Module(Box::new(self.module(*child))));
        }
        res.meta.extend(ty.iter().map(|ty| ("type_name".into(), ty.clone())));
        res
    }
}

pub(super) fn too_deep() -> Diagnostic {
    Diagnostic::new(Code::LimitExceeded, "the modules of the program are nested too deep, or shared too often")
}
