//! From an archive to an [`ExportedProgram`]: graph, signature, weights and what else was saved.

mod examples;
mod graph;
mod names;
mod signature;
pub(crate) mod tree;
mod values;
mod weights;

use crate::archive::{Archive, Container};
use crate::{LoadOptions, schema};
use indexmap::IndexMap;
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_export::{Argument, Constant, ExportedProgram, GraphSignature, InputKind, InputSpec, StateEntry};
use tracefx_ir::Str;
use tracefx_sym::ValueRange;
use weights::{Part, Weight};

pub(crate) use examples::EXAMPLE_CLASSES;
pub(crate) use graph::{ARG_NAMES, TargetKind};
pub(crate) use signature::check as check_signature;

/// Reads a program from the bytes of a `.pt2` file. Nothing in the file is run.
///
/// ```no_run
/// use tracefx_pt2::{LoadOptions, load};
/// let bytes = std::fs::read("model.pt2").unwrap();
/// let program = load(&bytes, &LoadOptions::default()).unwrap();
/// println!("{}", program.module.graph);
/// ```
///
/// # Errors
/// A file that is no archive, or not one of an exported program; one that asks for more than the limits; a graph that
/// breaks its rules; a tensor that leaves its storage. The diagnostic names what is wrong, and where.
pub fn load(bytes: &[u8], options: &LoadOptions) -> Result<ExportedProgram> {
    load_archive(Archive::open(bytes, options)?, options)
}

/// Reads a program from an archive that is open, such as one whose bytes came by ranges ([`ArchiveStream`]): its tensors
/// are then the program's, and not copies.
///
/// [`ArchiveStream`]: crate::ArchiveStream
///
/// # Errors
/// As [`load`], but for what [`Archive::open`] looked at.
pub fn load_archive(mut archive: Archive<'_>, options: &LoadOptions) -> Result<ExportedProgram> {
    let schema = archive.take_program(options)?;
    let name = archive.choose(options)?;
    Loader { archive: &archive, options, name, warnings: Vec::new() }.program(&schema)
}

struct Loader<'a, 'b> {
    archive: &'a Archive<'b>,
    options: &'a LoadOptions,
    name: &'a str,
    warnings: Vec<Diagnostic>,
}

impl Loader<'_, '_> {
    fn program(mut self, schema: &schema::ExportedProgram) -> Result<ExportedProgram> {
        let source = &schema.graph_module;
        let signature = signature::graph_signature(&source.signature)?;
        let constant_names: HashMap<usize, &str> =
            signature.input_specs.iter().enumerate().filter_map(constant_name).collect();
        let mut builder = graph::Builder::new(&self.options.limits, &self.options.registry);
        let mut module = builder.module(&source.graph, &constant_names)?;
        module.meta = texts(&source.metadata);
        signature::check(&module, &signature)?;

        let (mut state_dict, mut opaque_state, mut constants) = (IndexMap::new(), IndexMap::new(), IndexMap::new());
        for (name, weight) in weights::read(self.archive, self.name, Part::State, self.options)? {
            match weight {
                Weight::Tensor(it) => {
                    let (is_parameter, requires_grad) = (it.is_parameter, it.requires_grad);
                    state_dict.insert(Str::from(name), StateEntry { tensor: it.tensor, is_parameter, requires_grad });
                }
                Weight::Opaque(bytes) => drop(opaque_state.insert(Str::from(name), bytes)),
            }
        }
        for (name, weight) in weights::read(self.archive, self.name, Part::Constants, self.options)? {
            let constant = match weight {
                Weight::Tensor(it) => Constant::Tensor(it.tensor),
                Weight::Opaque(bytes) => Constant::CustomObj(bytes),
            };
            constants.insert(Str::from(name), constant);
        }
        let mut program = ExportedProgram {
            module,
            signature,
            state_dict,
            opaque_state,
            constants,
            range_constraints: schema
                .range_constraints
                .iter()
                .map(|(name, range)| Ok((builder.symbol(name), value_range(name, range)?)))
                .collect::<Result<_>>()?,
            module_call_graph: signature::module_call_graph(&source.module_call_graph)?,
            verifiers: schema.verifiers.iter().map(|it| (&**it).into()).collect(),
            guards: schema.guards_code.iter().map(|it| (&**it).into()).collect(),
            example_inputs: None,
            opset_version: schema.opset_version.iter().map(|(name, it)| ((&**name).into(), *it)).collect(),
            schema_version: (schema.schema_version.major, schema.schema_version.minor),
            torch_version: (&*schema.torch_version).into(),
            namedtuple_fields: namedtuple_fields(&source.treespec_namedtuple_fields),
            extra_files: self.extra_files()?,
            warnings: Vec::new(),
        };
        check_weights(&program)?;
        if let Some(examples) = self.example_inputs(&program)? {
            program.example_inputs = Some(examples.leaves);
            if !examples.classes.is_empty() {
                let classes = serde_json::json!(examples.classes).to_string();
                program.module.meta.insert(EXAMPLE_CLASSES.into(), classes.into());
            }
        }
        program.warnings = self.warnings;
        program.checked_in(&self.options.registry)
    }

    fn extra_files(&mut self) -> Result<IndexMap<Str, Str>> {
        let mut files = IndexMap::new();
        for name in self.archive.extra_file_names() {
            match String::from_utf8(self.archive.extra_file(name)?.into_owned()) {
                Ok(text) => drop(files.insert(name.into(), text.into())),
                Err(_) => self.warnings.push(Diagnostic::new(
                    Code::ArchiveMalformed,
                    format!("the extra file {name:?} is not UTF-8 and was left out"),
                )),
            }
        }
        Ok(files)
    }

    /// The example inputs, which a program runs without: what is wrong with them is a warning.
    fn example_inputs(&mut self, program: &ExportedProgram) -> Result<Option<examples::Examples>> {
        let entry = match self.archive.container() {
            Container::OldZip => "serialized_example_inputs.pt".to_string(),
            Container::PickledWeights | Container::RawWeights => format!("data/sample_inputs/{}.pt", self.name),
        };
        if !self.archive.contains_in_root(&entry) {
            return Ok(None);
        }
        let bytes = self.archive.read_in_root(&entry)?;
        let Some(spec) = program.in_spec().filter(|_| !bytes.is_empty()) else { return Ok(None) };
        match examples::read(&bytes, spec, self.options) {
            Ok(examples) => Ok(Some(examples)),
            Err(error) => {
                self.warnings.push(error.note("the example inputs were left out; the program runs without them"));
                Ok(None)
            }
        }
    }
}

fn constant_name((at, spec): (usize, &InputSpec)) -> Option<(usize, &str)> {
    match &spec.arg {
        Argument::Constant { name, .. } => Some((at, name)),
        _ => None,
    }
}

fn texts(map: &IndexMap<String, String>) -> IndexMap<Str, Str> {
    map.iter().map(|(key, text)| ((&**key).into(), (&**text).into())).collect()
}

fn namedtuple_fields(map: &IndexMap<String, schema::NamedTupleDef>) -> IndexMap<Str, Vec<Str>> {
    let names = |def: &schema::NamedTupleDef| def.field_names.iter().map(|it| (&**it).into()).collect();
    map.iter().map(|(name, def)| ((&**name).into(), names(def))).collect()
}

fn value_range(name: &str, range: &schema::RangeConstraint) -> Result<ValueRange> {
    let range = ValueRange { min: range.min_val, max: range.max_val };
    if range.is_empty() {
        return Err(Diagnostic::new(
            Code::GraphInvalid,
            format!("no value of the symbol `{name}` is allowed: {range}"),
        ));
    }
    Ok(range)
}

/// Refuses a program whose signature names a tensor that is not there.
fn check_weights(program: &ExportedProgram) -> Result<()> {
    let GraphSignature { input_specs, .. } = &program.signature;
    for spec in input_specs {
        let in_constants = match spec.kind {
            InputKind::Parameter => false,
            InputKind::Buffer => spec.persistent == Some(false),
            InputKind::ConstantTensor | InputKind::CustomObj => true,
            InputKind::UserInput | InputKind::Token => continue,
        };
        let target = spec.target.as_deref().unwrap_or("");
        let is_there = if in_constants {
            program.constants.contains_key(target)
        } else {
            program.state_dict.contains_key(target) || program.opaque_state.contains_key(target)
        };
        if !is_there {
            let what = format!("the archive has no data for the {} `{target}`", spec.kind.name());
            return Err(Diagnostic::new(Code::AttributeMissing, what).node(&**spec.arg.name()));
        }
    }
    Ok(())
}
