//! `MODS`: the tree of modules, parents before children, breadth first. Graphs stand in the same order.

use crate::Limits;
use crate::cursor::Cursor;
use crate::format::attribute;
use crate::meta::{read_fake, write_tensor};
use crate::options::MAX_DEPTH;
use crate::strings::{StringWriter, Strings};
use crate::symbols::{ExprWriter, Exprs};
use crate::tensors::{TensorWriter, Tensors};
use crate::words::Words;
use indexmap::IndexMap;
use std::collections::VecDeque;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Attribute, FakeTensor, Graph, GraphModule, Str, TensorKind};

/// The modules of a tree, in the order in which a file has them.
///
/// # Errors
/// `LimitExceeded` where the tree is deeper than a reader would accept.
pub(crate) fn modules_of(root: &GraphModule) -> Result<Vec<&GraphModule>> {
    let mut modules = vec![root];
    let (mut level, mut depth) = (0, 0);
    while level < modules.len() {
        if depth >= MAX_DEPTH {
            let what = format!("modules are nested deeper than {MAX_DEPTH} levels");
            return Err(Diagnostic::new(Code::LimitExceeded, what));
        }
        let end = modules.len();
        for at in level..end {
            modules.extend(modules[at].attributes.values().filter_map(|it| match it {
                Attribute::Module(child) => Some(&**child),
                Attribute::Tensor { .. } | Attribute::Fake { .. } => None,
            }));
        }
        (level, depth) = (end, depth + 1);
    }
    Ok(modules)
}

/// Writes the tree, without the graphs, and gathers its tensors.
pub(crate) fn write_modules(
    words: &mut Words,
    strings: &mut StringWriter,
    exprs: &mut ExprWriter,
    tensors: &mut TensorWriter,
    modules: &[&GraphModule],
) -> Result<()> {
    words.count(modules.len())?;
    let mut n_modules = 1;
    for module in modules {
        strings.write(words, &module.class_name)?;
        words.count(module.attributes.len())?;
        words.count(module.meta.len())?;
        for (name, value) in &module.attributes {
            strings.write(words, name)?;
            match value {
                Attribute::Tensor { tensor, kind } => words.tagged(kind_number(*kind), tensors.push(tensor))?,
                Attribute::Fake { tensor, kind } => {
                    words.tagged(attribute::FAKE, kind_number(*kind) as usize)?;
                    words.word(tensor.id);
                    write_tensor(words, strings, exprs, &tensor.meta)?;
                }
                Attribute::Module(_) => {
                    words.tagged(attribute::MODULE, n_modules)?;
                    n_modules += 1;
                }
            }
        }
        for (key, text) in &module.meta {
            strings.write(words, key)?;
            strings.write(words, text)?;
        }
    }
    Ok(())
}

/// Reads the tree; the graphs are empty until they are read. The root comes first.
pub(crate) fn read_modules(
    mut cursor: Cursor<'_>,
    strings: &mut Strings,
    exprs: &mut Exprs,
    tensors: &mut Tensors,
    limits: &Limits,
) -> Result<ModuleTable> {
    let count = cursor.count(3, "modules")?;
    if count == 0 || count > limits.modules {
        return Err(cursor.exceeds(format!("there are {count} modules, and 1 to {} are allowed", limits.modules)));
    }
    let mut table = ModuleTable { modules: Vec::with_capacity(count), children: Vec::with_capacity(count) };
    let mut depths = Vec::with_capacity(count);
    depths.push(0);
    for at in 0..count {
        // Children are announced by their parents, so each module but the root has exactly one.
        let Some(&depth) = depths.get(at) else {
            return Err(cursor.fail(format!("module {at} is in no other module")));
        };
        let mut module = GraphModule::new(Graph::new());
        module.class_name = strings.next(&mut cursor)?;
        let n_attributes = cursor.word()?;
        let n_notes = cursor.word()?;
        let n_attributes = cursor.check_count(n_attributes, 2, "attributes")?;
        let mut children = Vec::new();
        for _ in 0..n_attributes {
            let name = strings.next(&mut cursor)?;
            let word = cursor.word()?;
            let is_new = match (kind_of(word & 0xff), word & 0xff, word >> 8) {
                (Some(kind), _, index) => {
                    let tensor = tensors.take(&cursor, index)?;
                    module.attributes.insert(Str::clone(&name), Attribute::Tensor { tensor, kind }).is_none()
                }
                (None, attribute::MODULE, index) => {
                    if index as usize != depths.len() || depths.len() >= count || depth + 1 >= MAX_DEPTH {
                        let what = format!("module {index} stands where module {} was expected", depths.len());
                        return Err(cursor.fail(what));
                    }
                    depths.push(depth + 1);
                    children.push(Str::clone(&name));
                    // The place is kept; the module that belongs there is put in when its graph is read.
                    let place = Attribute::Module(Box::new(GraphModule::new(Graph::new())));
                    module.attributes.insert(Str::clone(&name), place).is_none()
                }
                (None, attribute::FAKE, number) => {
                    let kind =
                        kind_of(number).ok_or_else(|| cursor.fail(format!("there is no tensor of kind {number}")))?;
                    let id = cursor.word()?;
                    let tensor = FakeTensor { id, meta: read_fake(&mut cursor, strings, exprs)? };
                    module.attributes.insert(Str::clone(&name), Attribute::Fake { tensor, kind }).is_none()
                }
                (None, kind, _) => return Err(cursor.fail(format!("there is no attribute of kind {kind}"))),
            };
            if !is_new {
                return Err(cursor.fail(format!("the attribute `{name}` is there twice")));
            }
        }
        let n_notes = cursor.check_count(n_notes, 2, "notes")?;
        module.meta = read_notes(&mut cursor, strings, n_notes)?;
        table.modules.push(module);
        table.children.push(children);
    }
    cursor.finish()?;
    Ok(table)
}

/// Modules that are not put together yet.
pub(crate) struct ModuleTable {
    pub(crate) modules: Vec<GraphModule>,
    /// The names of the sub-modules of each.
    children: Vec<Vec<Str>>,
}

impl ModuleTable {
    /// Puts the modules into their parents, from the last to the first, and gives the root.
    pub(crate) fn assemble(mut self) -> GraphModule {
        // Breadth first, the last modules are the children of the last parents, so who is done first is taken first.
        let mut done: VecDeque<GraphModule> = VecDeque::new();
        while let (Some(mut module), Some(children)) = (self.modules.pop(), self.children.pop()) {
            for name in children.into_iter().rev() {
                let child = done.pop_front().expect("every child that was announced comes later in the table");
                module.attributes.insert(name, Attribute::Module(Box::new(child)));
            }
            done.push_back(module);
        }
        done.pop_front().expect("the table has a root")
    }
}

fn read_notes(cursor: &mut Cursor<'_>, strings: &mut Strings, count: usize) -> Result<IndexMap<Str, Str>> {
    let mut notes = IndexMap::new();
    for _ in 0..count {
        let (key, text) = (strings.next(cursor)?, strings.next(cursor)?);
        if notes.insert(key, text).is_some() {
            return Err(cursor.fail("a key of the notes is there twice"));
        }
    }
    Ok(notes)
}

pub(crate) fn kind_number(kind: TensorKind) -> u32 {
    match kind {
        TensorKind::Parameter => attribute::PARAMETER,
        TensorKind::Buffer => attribute::BUFFER,
        TensorKind::Constant => attribute::CONSTANT,
    }
}

fn kind_of(number: u32) -> Option<TensorKind> {
    match number {
        attribute::PARAMETER => Some(TensorKind::Parameter),
        attribute::BUFFER => Some(TensorKind::Buffer),
        attribute::CONSTANT => Some(TensorKind::Constant),
        _ => None,
    }
}
