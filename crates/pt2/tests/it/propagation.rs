//! Propagates through programs that PyTorch exported, from what their inputs know alone, and compares what is found of
//! every node with what PyTorch recorded. `TRACEFX_PROGRAMS=DIR` takes another directory of the same format.

#![allow(clippy::print_stderr, reason = "a test tells how much of the data it could run")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tracefx_core::{Code, Diagnostic};
use tracefx_exec::{known_values, propagate};
use tracefx_export::ExportedProgram;
use tracefx_ir::{GraphModule, TensorMeta, Val};
use tracefx_ops::{Propagation, Symbols, registry};
use tracefx_pt2::{LoadOptions, load};
use tracefx_sym::{ShapeEnv, SymInt, SymbolKind};

/// Programs with nodes whose strides or sizes differ from what PyTorch recorded, a part of what is said of them, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("conv2d_variants__core", "aten.copy.default", GAPS),
    ("conv2d_variants__core", "%slice_scatter ", GAPS),
    ("dyn_auto_reshape", "[Min(4, 4*s27), 1]", OPEN_STRIDES),
    ("dyn_auto_reshape__core", "[Min(4, 4*s27), 1]", OPEN_STRIDES),
    ("image_preprocess", "16, 16]", ONE_IMAGE),
    ("image_preprocess__core", "16, 16]", ONE_IMAGE),
    ("input_mutation__core", "%copy_1 ", GAPS),
    ("input_mutation__core", "%unsqueeze_2 ", GAPS),
    ("input_mutation__core", "%expand_2 ", GAPS),
    ("pad_modes__core", "aten.copy.default", GAPS),
    ("pad_modes__core", "%slice_scatter ", GAPS),
    ("slicing__core", "aten.copy.default", GAPS),
    ("symint_inputs", "Min(s77, s86)", GUARD),
    ("symint_inputs__core", "Min(s77, s86)", GUARD),
    ("transformer_encoder_layer", "[Min(16, 16*s28), 1]", OPEN_STRIDES),
    ("type_promotion", "%result_type_scalar_unused ", "it gives a dtype, and archives say nothing of dtypes"),
    ("view_alias_mutation__core", "aten.copy.default", GAPS),
    ("vit_tiny", "[Min(12, 12*s77), 1]", OPEN_STRIDES),
];

const GAPS: &str = "PyTorch's copy keeps the gaps of the tensor that is copied to";
const GUARD: &str = "a guard on two inputs, which the program does not keep, decides the smaller one";
const OPEN_STRIDES: &str = "PyTorch leaves open which of two strides is the smaller one";
const ONE_IMAGE: &str = "whether a batch of one image lies channels last is told from a stride that is never used";

#[test]
fn propagation_finds_what_pytorch_recorded() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs");
    let dir = std::env::var_os("TRACEFX_PROGRAMS").map_or(fixtures, PathBuf::from);
    let only = std::env::var("TRACEFX_ONLY").ok();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&dir).unwrap().map(|it| it.unwrap().path().join("model.pt2")).collect();
    files.retain(|it| it.exists() && only.as_ref().is_none_or(|only| it.to_string_lossy().contains(only.as_str())));
    files.sort();
    let (mut n_nodes, mut n_programs, mut skipped, mut failures) = (0, 0, Vec::new(), Vec::new());
    for file in &files {
        let name = file.parent().and_then(Path::file_name).unwrap().to_string_lossy();
        let program = match load(&std::fs::read(file).unwrap(), &LoadOptions::default()) {
            Ok(it) => it,
            Err(problem) => {
                skipped.push(format!("{name}: {problem}"));
                continue;
            }
        };
        let mut found = program.module.clone();
        match propagated(&program, &mut found) {
            Ok(()) => {
                let mut comparison = Comparison::default();
                comparison.modules(&program.module, &found);
                n_nodes += comparison.n_nodes;
                n_programs += 1;
                let is_known = |it: &String| DIFFERENT.iter().any(|(at, node, _)| *at == name && it.contains(node));
                comparison.differences.retain(|it| !is_known(it));
                failures.extend(comparison.differences.into_iter().map(|it| format!("{name}: {it}")));
            }
            Err(problem) if problem.code() == Code::NotImplemented => skipped.push(format!("{name}: {problem}")),
            Err(problem) => failures.push(format!("{name}: {problem}")),
        }
    }
    eprintln!("{n_programs} programs with {n_nodes} nodes agree or differ, {} are skipped", skipped.len());
    skipped.iter().for_each(|it| eprintln!("  skipped {it}"));
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
    assert!(n_nodes > 0, "no program in {}", dir.display());
}

fn propagated(program: &ExportedProgram, module: &mut GraphModule) -> Result<(), Diagnostic> {
    let mut env = ShapeEnv::new();
    for (symbol, range) in &program.range_constraints {
        // What the data decides is to be found anew.
        if symbol.kind() == SymbolKind::Size {
            env.constrain(symbol, *range).unwrap();
        }
    }
    let inputs = known_values(&module.graph);
    forget(module);
    let symbols = Symbols::new(env);
    propagate(module, &inputs, Propagation::new(registry(), &symbols)).map(drop)
}

/// Only what is propagated is to be seen.
fn forget(module: &mut GraphModule) {
    let ids: Vec<_> = module.graph.nodes().collect();
    ids.into_iter().for_each(|id| module.graph.meta_mut(id).val = None);
    for attribute in module.attributes.values_mut() {
        if let tracefx_ir::Attribute::Module(module) = attribute {
            forget(module);
        }
    }
}

/// A symbol that was made anew has another number than PyTorch's; where it is first met, that one is its name.
#[derive(Default)]
struct Comparison {
    names: HashMap<String, SymInt>,
    n_nodes: usize,
    differences: Vec<String>,
}

impl Comparison {
    fn modules(&mut self, recorded: &GraphModule, found: &GraphModule) {
        for ((path, recorded), (_, found)) in recorded.modules().into_iter().zip(found.modules()) {
            for id in recorded.graph.nodes() {
                let node = recorded.graph.node(id);
                let Some(want) = &node.meta.val else { continue };
                self.n_nodes += 1;
                let place = format!("{path}%{} = {}", node.name(), node.target());
                match &found.graph.node(id).meta.val {
                    Some(got) => self.vals(got, want, &place),
                    None => self.differences.push(format!("{place}: nothing is found, recorded is {want:?}")),
                }
            }
        }
    }

    fn vals(&mut self, got: &Val, want: &Val, place: &str) {
        let agrees = match (got, want) {
            (Val::Seq { items: got, .. }, Val::Seq { items: want, .. }) if got.len() == want.len() => {
                return got.iter().zip(want).for_each(|(got, want)| self.vals(got, want, place));
            }
            (Val::Tensor(got), Val::Tensor(want)) => self.tensors(got, want),
            (Val::Int(got), Val::Int(want)) => self.is_same(got, want),
            (Val::Float(got), Val::Float(want)) => {
                got == want || (got.as_symbol().is_some() && want.as_symbol().is_some())
            }
            (Val::Bool(got), Val::Bool(want)) => {
                let names = &self.names;
                got.substitute(&|it| names.get(it.name()).cloned()) == *want
            }
            (got, want) => got == want,
        };
        if !agrees {
            self.differences.push(format!("{place}: {got:?} instead of {want:?}"));
        }
    }

    fn tensors(&mut self, got: &TensorMeta, want: &TensorMeta) -> bool {
        // A dimension of one element keeps a stride that is never used.
        let is_used = |dim: usize| want.sizes[dim] != 1;
        got.dtype == want.dtype
            && got.sizes.len() == want.sizes.len()
            && got.sizes.iter().zip(&want.sizes).all(|(got, want)| self.is_same(got, want))
            && (0..want.sizes.len()).all(|dim| !is_used(dim) || self.is_same(&got.strides[dim], &want.strides[dim]))
            && self.is_same(&got.storage_offset, &want.storage_offset)
    }

    fn is_same(&mut self, got: &SymInt, want: &SymInt) -> bool {
        if let Some(symbol) = got.as_symbol().filter(|it| it.kind() == SymbolKind::Unbacked) {
            return self.names.entry(symbol.name().to_string()).or_insert_with(|| want.clone()) == want;
        }
        let names = &self.names;
        got.substitute(&|it| names.get(it.name()).cloned()) == *want
    }
}
