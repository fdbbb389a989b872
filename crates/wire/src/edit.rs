//! `EDIT`: what became of a module that a host gave, told as what the host has to do to its own.
//!
//! Each graph is a list of steps that gives its nodes in order. What no step mentions is gone.

use crate::arg::{write_arg, write_entries};
use crate::format::{attribute, edit, edited};
use crate::graph::write_names;
use crate::meta::write_val;
use crate::module::{kind_number, modules_of};
use crate::strings::StringWriter;
use crate::symbols::ExprWriter;
use crate::tensors::TensorWriter;
use crate::words::{Words, tagged};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Attribute, Graph, GraphModule, Namespace, NodeId, Val};

/// What edits refer to.
pub(crate) struct EditWriter<'a> {
    pub(crate) words: &'a mut Words,
    pub(crate) strings: &'a mut StringWriter,
    pub(crate) exprs: &'a mut ExprWriter,
    pub(crate) tensors: &'a mut TensorWriter,
    /// The abstract values that were written, as words, and their numbers.
    pub(crate) vals: FxHashMap<Vec<u32>, usize>,
}

impl EditWriter<'_> {
    /// Writes all modules, breadth first.
    pub(crate) fn write(mut self, root: &GraphModule) -> Result<()> {
        let modules = modules_of(root)?;
        self.words.count(modules.len())?;
        let mut n_modules = 1;
        for module in modules {
            self.module(module, &mut n_modules)?;
            self.graph(&module.graph)?;
        }
        Ok(())
    }

    fn module(&mut self, module: &GraphModule, n_modules: &mut usize) -> Result<()> {
        self.words.word(module.graph.tracked().map_or(0, |it| it.number + 1));
        self.strings.write(self.words, &module.class_name)?;
        self.words.count(module.attributes.len())?;
        self.words.count(module.meta.len())?;
        for (name, value) in &module.attributes {
            self.strings.write(self.words, name)?;
            match value {
                Attribute::Tensor { tensor, kind } => {
                    self.words.tagged(kind_number(*kind), self.tensors.push(tensor))?;
                }
                Attribute::Fake { tensor, .. } => self.words.tagged(attribute::FAKE, tensor.id as usize)?,
                Attribute::Module(_) => {
                    self.words.tagged(attribute::MODULE, *n_modules)?;
                    *n_modules += 1;
                }
            }
        }
        for (key, text) in &module.meta {
            self.strings.write(self.words, key)?;
            self.strings.write(self.words, text)?;
        }
        Ok(())
    }

    fn graph(&mut self, graph: &Graph) -> Result<()> {
        let head = self.words.len();
        self.words.word(0);
        let mut n_steps = 0;
        let mut places: Vec<Option<usize>> = vec![None; graph.id_bound()];
        let mut run: Option<(usize, usize)> = None;
        for (place, id) in graph.nodes().enumerate() {
            places[id.index()] = Some(place);
            if is_kept(graph, id) {
                match &mut run {
                    Some((first, count)) if *first + *count == id.index() => *count += 1,
                    _ => {
                        n_steps += self.keep(run)?;
                        run = Some((id.index(), 1));
                    }
                }
                continue;
            }
            n_steps += self.keep(run.take())? + 1;
            self.node(graph, id, &places).map_err(|it| it.node(&**graph.node(id).name()))?;
        }
        n_steps += self.keep(run)?;
        self.words.patch(head, n_steps);
        self.users(graph, &places)?;
        self.names(graph)
    }

    fn keep(&mut self, run: Option<(usize, usize)>) -> Result<u32> {
        let Some((first, count)) = run else { return Ok(0) };
        self.words.tagged(edit::KEEP, count)?;
        self.words.count(first)?;
        Ok(1)
    }

    fn node(&mut self, graph: &Graph, id: NodeId, places: &[Option<usize>]) -> Result<()> {
        let node = graph.node(id);
        let was_there = graph.tracked().is_some_and(|it| id.index() < it.len);
        let is_fresh = !was_there && node.meta.origin.is_none();
        let has_notes = graph.is_noted(id) || (is_fresh && (node.meta.val.is_some() || !node.meta.entries.is_empty()));
        let flags = if has_notes { edited::NOTES } else { 0 }
            | if graph.is_forgotten(id) { edited::FORGET } else { 0 }
            | if !was_there || graph.has_new_args(id) { edited::ARGS } else { 0 }
            | if !was_there || graph.has_new_call(id) { edited::CALL } else { 0 };
        self.words.tagged(if was_there { edit::CHANGE } else { edit::MAKE }, flags as usize)?;
        self.words.count(if was_there { id.index() } else { node.meta.origin.map_or(0, |it| it as usize + 1) })?;
        if flags & edited::CALL != 0 {
            self.words.word(tagged(node.op() as u32, 0)?);
            self.strings.write(self.words, node.target())?;
            self.strings.write(self.words, node.name())?;
            self.strings.write_optional(self.words, node.ty().map(|it| &**it))?;
        }
        if flags & edited::ARGS != 0 {
            self.words.count(node.args().len())?;
            self.words.count(node.kwargs().len())?;
            let place = |input: NodeId| {
                let place = places.get(input.index()).copied().flatten().filter(|_| input != id);
                place.ok_or_else(|| {
                    let what = format!("Argument '{}' was used before it has been defined", graph.node(input).name());
                    Diagnostic::new(Code::GraphInvalid, what)
                })
            };
            node.args().iter().try_for_each(|it| write_arg(self.words, self.strings, it, 0, &place))?;
            write_entries(self.words, self.strings, node.kwargs(), 0, &place)?;
        }
        if has_notes {
            self.val(node.meta.val.as_ref())?;
            self.words.count(node.meta.entries.len())?;
            for (key, text) in &node.meta.entries {
                self.strings.write(self.words, key)?;
                self.strings.write(self.words, text)?;
            }
        }
        Ok(())
    }

    /// Writes an abstract value, once: many nodes give the same.
    fn val(&mut self, val: Option<&Val>) -> Result<()> {
        let head = self.words.len();
        self.words.word(u32::from(val.is_some()));
        let Some(val) = val else { return Ok(()) };
        write_val(self.words, self.strings, self.exprs, val, 0)?;
        let n_known = self.vals.len();
        match self.vals.entry(self.words.since(head).to_vec()) {
            Entry::Vacant(place) => {
                place.insert(n_known);
            }
            Entry::Occupied(known) => {
                self.words.truncate(head);
                self.words.count(known.get() + 2)?;
            }
        }
        Ok(())
    }

    /// Writes the users of nodes of which the host might not get the order right by itself.
    fn users(&mut self, graph: &Graph, places: &[Option<usize>]) -> Result<()> {
        let head = self.words.len();
        self.words.word(0);
        let mut n_nodes = 0;
        for (place, id) in graph.nodes().enumerate().filter(|&(_, id)| graph.has_new_users(id)) {
            let users = graph.users(id);
            if users.len() < 2 {
                continue;
            }
            self.words.count(place)?;
            self.words.count(users.len())?;
            for user in users.iter() {
                let place = places[user.index()].expect("users are in the graph");
                self.words.count(place)?;
            }
            n_nodes += 1;
        }
        self.words.patch(head, n_nodes);
        Ok(())
    }

    /// Writes the names that were given: since the graph came from the host, or ever.
    fn names(&mut self, graph: &Graph) -> Result<()> {
        let Some(log) = graph.tracked().and(Namespace::log(graph.names())) else {
            self.words.word(0);
            return write_names(self.words, self.strings, graph);
        };
        self.words.word(1);
        self.words.count(log.len())?;
        for naming in log {
            self.strings.write(self.words, &naming.name)?;
            let base = naming.suffix.as_ref().map(|(base, _)| &**base);
            self.strings.write_optional(self.words, base)?;
            if let Some((_, suffix)) = naming.suffix {
                self.words.pair(suffix as u64);
                self.words.pair((suffix >> 64) as u64);
            }
        }
        Ok(())
    }
}

fn is_kept(graph: &Graph, id: NodeId) -> bool {
    graph.tracked().is_some_and(|it| id.index() < it.len)
        && !graph.has_new_call(id)
        && !graph.has_new_args(id)
        && !graph.is_noted(id)
}
