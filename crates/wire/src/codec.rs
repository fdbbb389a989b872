//! Whole files: which sections there are, and in which order they are written and read.

use crate::edit::EditWriter;
use crate::file::{FileWriter, Outline, Part};
use crate::format::Tag;
use crate::graph::{read_graph, read_names, write_graph, write_names};
use crate::meta::{read_meta, write_meta};
use crate::module::{modules_of, read_modules, write_modules};
use crate::sign::{SignReader, SignWriter};
use crate::strings::{StringWriter, Strings};
use crate::symbols::{ExprWriter, Exprs};
use crate::tensors::{TensorWriter, Tensors};
use crate::words::Words;
use crate::{Limits, Options};
use rustc_hash::FxHashMap;
use tracefx_core::{Code, Diagnostic, Result, Storage};
use tracefx_export::ExportedProgram;
use tracefx_ir::{Attribute, Graph, GraphModule};

/// Writes a graph alone, without what its `get_attr` and `call_module` nodes refer to.
///
/// # Errors
/// `GraphInvalid` where a node is used before its definition, `LimitExceeded` where an argument is nested deeper than
/// [`MAX_DEPTH`](crate::MAX_DEPTH), `GraphArgument` where a dict has a key twice.
pub fn encode_graph(graph: &Graph, options: &Options) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.graphs(&[graph], options)?;
    writer.finish(options)
}

/// Reads what [`encode_graph`] wrote.
///
/// # Errors
/// `WireMalformed` where the bytes break a rule of the format, `WireVersion` where they need a newer reader,
/// `LimitExceeded` where they go beyond a limit. The message names the section and the byte.
pub fn decode_graph(file: &[u8], limits: &Limits) -> Result<Graph> {
    let mut reader = Reader::new(file, &[], limits)?;
    reader.refuse(Tag::Mods, "it holds a module: read it with decode_module")?;
    reader.refuse(Tag::Sign, "there is no module that it belongs to")?;
    let mut graphs = reader.graphs(1, limits)?;
    reader.finish()?;
    Ok(graphs.pop().expect("one graph was read"))
}

/// Writes a module with its sub-modules and tensors. Tensors that share a storage share it in the file, too.
///
/// # Errors
/// As for [`encode_graph`].
pub fn encode_module(module: &GraphModule, options: &Options) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.module(module, options)?;
    writer.finish(options)
}

/// Reads what [`encode_module`] wrote. `weights` are the storages that were left out, in the order of [`storages`]; it
/// is empty for a file that has its weights.
///
/// # Errors
/// As for [`decode_graph`], and `ViewOutOfBounds` where a tensor leaves its storage.
pub fn decode_module(file: &[u8], weights: &[Storage], limits: &Limits) -> Result<GraphModule> {
    let mut reader = Reader::new(file, weights, limits)?;
    reader.refuse(Tag::Sign, "it holds a program: read it with decode_program")?;
    let module = reader.module(limits)?;
    reader.finish()?;
    Ok(module)
}

/// Writes what became of a module that a host gave, as what the host has to do to its own; its graphs were tracked
/// ([`Graph::track`]) when it came. Gives the storages of tensors that are new, too, in the order of the bytes.
///
/// # Errors
/// `GraphInvalid` where a node is used before its definition; `LimitExceeded` for what is nested too deep.
pub fn encode_edits(module: &GraphModule) -> Result<(Vec<u8>, Vec<Storage>)> {
    let mut writer = Writer::default();
    let mut words = Words::default();
    let Writer { strings, exprs, tensors, .. } = &mut writer;
    EditWriter { words: &mut words, strings, exprs, tensors, vals: FxHashMap::default() }.write(module)?;
    writer.file.section(Tag::Edit, words.into_bytes()?);
    let storages = writer.tensors.storages();
    Ok((writer.finish(&Options::CALL)?, storages))
}

/// The storages of a module's tensors, each once, in the order of the file.
///
/// # Errors
/// `LimitExceeded` where modules are nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
pub fn storages(module: &GraphModule) -> Result<Vec<Storage>> {
    let mut writer = Writer::default();
    write_modules(
        &mut Words::default(),
        &mut writer.strings,
        &mut writer.exprs,
        &mut writer.tensors,
        &modules_of(module)?,
    )?;
    Ok(writer.tensors.storages())
}

/// Writes a program: its module, signature, state and constants. What was noted while it was read from elsewhere (the
/// warnings) is not part of it.
///
/// # Errors
/// As for [`encode_graph`].
pub fn encode_program(program: &ExportedProgram, options: &Options) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.module(&program.module, options)?;
    writer.signature(program)?;
    writer.finish(options)
}

/// Writes a program as a file with saved plans, which readers of programs skip, and [`decode_plan`] gives.
///
/// # Errors
/// As for [`encode_graph`].
pub fn encode_planned_program(program: &ExportedProgram, plan: Vec<u8>) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.module(&program.module, &Options::FILE)?;
    writer.signature(program)?;
    writer.file.plan(plan);
    writer.finish(&Options::FILE)
}

/// The saved plans of a file, and its storages, in the order of [`program_storages`]: nothing of its graphs is read. Nothing where it has
/// no plans.
///
/// # Errors
/// As for [`decode_module`].
pub fn decode_plan<'a>(file: &'a [u8], limits: &Limits) -> Result<Option<(&'a [u8], Vec<Storage>)>> {
    let outline = Outline::read(file, limits)?;
    let Some(plan) = outline.plan(file) else { return Ok(None) };
    let tensors = Tensors::read(outline.cursor(file, Tag::Tens), outline.cursor(file, Tag::Data), &[])?;
    Ok(Some((plan, tensors.storages())))
}

/// Reads what [`encode_program`] wrote. `weights` are the storages that were left out, in the order of
/// [`program_storages`]; it is empty for a file that has its weights.
///
/// # Errors
/// As for [`decode_module`].
pub fn decode_program(file: &[u8], weights: &[Storage], limits: &Limits) -> Result<ExportedProgram> {
    let mut reader = Reader::new(file, weights, limits)?;
    let module = reader.module(limits)?;
    let cursor = reader.outline.cursor(file, Tag::Sign);
    let cursor = cursor.ok_or_else(|| missing(Tag::Sign).help("a module is read with decode_module"))?;
    let Reader { strings, tensors, .. } = &mut reader;
    let program = SignReader { cursor, strings, tensors }.read(module)?;
    reader.finish()?;
    Ok(program)
}

/// The storages of a program's tensors, each once, in the order of the file.
///
/// # Errors
/// As for [`encode_program`].
pub fn program_storages(program: &ExportedProgram) -> Result<Vec<Storage>> {
    let mut writer = Writer::default();
    write_modules(
        &mut Words::default(),
        &mut writer.strings,
        &mut writer.exprs,
        &mut writer.tensors,
        &modules_of(&program.module)?,
    )?;
    writer.signature(program)?;
    Ok(writer.tensors.storages())
}

/// A file that is being written: the sections that are done, and the tables that all of them refer to.
#[derive(Default)]
struct Writer {
    file: FileWriter,
    strings: StringWriter,
    exprs: ExprWriter,
    tensors: TensorWriter,
}

impl Writer {
    fn module(&mut self, root: &GraphModule, options: &Options) -> Result<()> {
        let modules = modules_of(root)?;
        if options.weights {
            refuse_fakes(&modules)?;
        }
        let mut words = Words::default();
        write_modules(&mut words, &mut self.strings, &mut self.exprs, &mut self.tensors, &modules)?;
        self.file.section(Tag::Mods, words.into_bytes()?);
        let graphs: Vec<&Graph> = modules.iter().map(|it| &it.graph).collect();
        self.graphs(&graphs, options)
    }

    fn graphs(&mut self, graphs: &[&Graph], options: &Options) -> Result<()> {
        for graph in graphs {
            let mut words = Words::default();
            write_graph(&mut words, &mut self.strings, graph)?;
            self.file.section(Tag::Grph, words.into_bytes()?);
        }
        if options.names {
            let mut words = Words::default();
            graphs.iter().try_for_each(|it| write_names(&mut words, &mut self.strings, it))?;
            self.file.section(Tag::Nams, words.into_bytes()?);
        }
        let mut words = Words::default();
        for graph in graphs {
            write_meta(&mut words, &mut self.strings, &mut self.exprs, graph)?;
        }
        // Graphs without notes take a zero each; where no graph has any, the section is left out.
        if words.len() > graphs.len() {
            self.file.section(Tag::Meta, words.into_bytes()?);
        }
        Ok(())
    }

    fn signature(&mut self, program: &ExportedProgram) -> Result<()> {
        let mut words = Words::default();
        let Writer { strings, tensors, .. } = self;
        SignWriter { words: &mut words, strings, tensors }.write(program)?;
        self.file.section(Tag::Sign, words.into_bytes()?);
        Ok(())
    }

    fn finish(mut self, options: &Options) -> Result<Vec<u8>> {
        if let Some(index) = self.tensors.index()? {
            self.file.section(Tag::Tens, index);
            if options.weights {
                let storages = self.tensors.storages();
                self.file.parts(Tag::Data, storages.into_iter().map(Part::Storage).collect());
            }
        }
        if let Some(exprs) = self.exprs.into_bytes()? {
            self.file.section(Tag::Syms, exprs);
        }
        self.file.section(Tag::Strs, self.strings.into_bytes()?);
        self.file.finish(options.checksum)
    }
}

/// A file that is being read. Sections are read in the order in which they were written.
struct Reader<'a> {
    file: &'a [u8],
    outline: Outline,
    strings: Strings,
    exprs: Exprs,
    tensors: Tensors,
}

impl<'a> Reader<'a> {
    fn new(file: &'a [u8], weights: &[Storage], limits: &Limits) -> Result<Self> {
        let outline = Outline::read(file, limits)?;
        let strings = outline.cursor(file, Tag::Strs).ok_or_else(|| missing(Tag::Strs))?;
        let exprs = outline.cursor(file, Tag::Syms);
        let (strings, exprs) = (Strings::read(strings)?, Exprs::read(exprs)?);
        let tensors = Tensors::read(outline.cursor(file, Tag::Tens), outline.cursor(file, Tag::Data), weights)?;
        Ok(Reader { file, strings, exprs, tensors, outline })
    }

    fn module(&mut self, limits: &Limits) -> Result<GraphModule> {
        let modules = self.outline.cursor(self.file, Tag::Mods);
        let modules = modules.ok_or_else(|| missing(Tag::Mods).help("a graph alone is read with decode_graph"))?;
        let mut table = read_modules(modules, &mut self.strings, &mut self.exprs, &mut self.tensors, limits)?;
        let graphs = self.graphs(table.modules.len(), limits)?;
        for (module, graph) in table.modules.iter_mut().zip(graphs) {
            module.graph = graph;
        }
        Ok(table.assemble())
    }

    fn graphs(&mut self, count: usize, limits: &Limits) -> Result<Vec<Graph>> {
        self.refuse(Tag::Edit, "it holds the answer of a pass, which is no file")?;
        let sections = self.outline.cursors(self.file, Tag::Grph);
        if sections.len() != count {
            let what = format!("there are {} graphs for {count} modules", sections.len());
            return Err(Diagnostic::new(Code::WireMalformed, what));
        }
        let mut graphs = Vec::with_capacity(count);
        for cursor in sections {
            graphs.push(read_graph(cursor, &mut self.strings, limits)?);
        }
        if let Some(mut cursor) = self.outline.cursor(self.file, Tag::Nams) {
            graphs.iter_mut().try_for_each(|it| read_names(&mut cursor, &mut self.strings, it))?;
            cursor.finish()?;
        }
        if let Some(mut cursor) = self.outline.cursor(self.file, Tag::Meta) {
            if cursor.rest().len() <= 4 * count {
                return Err(cursor.fail("the section is empty"));
            }
            for graph in &mut graphs {
                read_meta(&mut cursor, &mut self.strings, &mut self.exprs, graph)?;
            }
            cursor.finish()?;
        }
        Ok(graphs)
    }

    fn refuse(&self, tag: Tag, why: &str) -> Result<()> {
        match self.outline.cursor(self.file, tag) {
            Some(cursor) => Err(cursor.fail(why)),
            None => Ok(()),
        }
    }

    /// Refuses what nothing refers to, unless a section that is not known here may.
    fn finish(&self) -> Result<()> {
        if self.outline.has_unknown() {
            return Ok(());
        }
        self.tensors.finish()?;
        self.exprs.finish()?;
        self.strings.finish(Tag::Strs)
    }
}

/// A file has the data of all its tensors.
fn refuse_fakes(modules: &[&GraphModule]) -> Result<()> {
    let attributes = modules.iter().flat_map(|it| &it.attributes);
    match attributes.into_iter().find(|(_, it)| matches!(it, Attribute::Fake { .. })) {
        Some((name, _)) => {
            let what = format!("the data of the tensor `{name}` is not here");
            Err(Diagnostic::new(Code::GraphArgument, what).help("put the tensor itself in its place"))
        }
        None => Ok(()),
    }
}

fn missing(tag: Tag) -> Diagnostic {
    Diagnostic::new(Code::WireMalformed, format!("the section {tag} is missing"))
}
