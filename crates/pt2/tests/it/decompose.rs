//! Programs in terms of core operators, beside what PyTorch made of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tracefx_core::Code;
use tracefx_export::{ExportedProgram, default_decompositions};
use tracefx_ir::{GraphModule, Opcode};
use tracefx_ops::{Tags, registry};
use tracefx_pt2::{LoadOptions, load};

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs")
}

fn open(name: &str) -> ExportedProgram {
    load(&fs::read(programs().join(name).join("model.pt2")).unwrap(), &LoadOptions::default()).unwrap()
}

fn operators(module: &GraphModule) -> BTreeSet<String> {
    let graphs = module.modules();
    let targets = graphs.iter().flat_map(|(_, it)| {
        let calls = it.graph.nodes().map(|id| it.graph.node(id)).filter(|it| it.op() == Opcode::CallFunction);
        calls.map(|it| it.target().to_string()).collect::<Vec<_>>()
    });
    targets.collect()
}

/// The text without what archives add to a graph: names for results that nothing uses.
fn comparable(graph: &str) -> Vec<String> {
    let lines = graph.lines().filter(|it| !it.contains("_unused_"));
    lines
        .map(|line| match line.split_once(" : [num_users=") {
            Some((name, rest)) => format!("{name} :{}", rest.split_once(']').unwrap().1),
            None => line.to_string(),
        })
        .collect()
}

#[track_caller]
fn check_as_pytorch(name: &str) {
    let core = open(name).run_decompositions(&default_decompositions()).unwrap();
    let recorded = fs::read_to_string(programs().join(format!("{name}__core")).join("graph.txt")).unwrap();
    assert_eq!(comparable(&core.module.graph.to_string()), comparable(&recorded));
    let specs = |it: &ExportedProgram| it.signature.output_specs.clone();
    assert_eq!(specs(&core), specs(&open(&format!("{name}__core"))));
}

#[test]
fn writes_to_buffers_become_results() {
    check_as_pytorch("conv_bn_relu_train");
}

#[test]
fn every_program_is_taken_apart_or_refused_by_a_typed_error() {
    for entry in fs::read_dir(programs()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().to_string();
        if !programs().join(&name).join("model.pt2").exists() {
            continue;
        }
        let core = match open(&name).run_decompositions(&default_decompositions()) {
            Ok(core) => core,
            Err(problem) => {
                assert_eq!(problem.code(), Code::NotImplemented, "{name}: {problem}");
                continue;
            }
        };
        assert!(core.module.graph.lint(None).is_empty(), "{name}");
        for target in operators(&core.module) {
            let Some(op) = registry().get(&target) else { continue };
            assert!(!op.is_decomposed(), "{name}: {target} is left");
            assert!(op.schema.args.iter().all(|it| !it.is_mutated), "{name}: {target} writes");
        }
        let again = core.run_decompositions(&default_decompositions()).unwrap();
        assert_eq!(operators(&again.module), operators(&core.module), "{name}");
    }
}

#[test]
fn an_operator_that_is_not_in_the_table_stays() {
    let mut table = default_decompositions();
    assert!(table.remove("aten.linear.default"));
    let core = open("digits_cnn").run_decompositions(&table).unwrap();
    let found = operators(&core.module);
    assert!(found.contains("torch.ops.aten.linear.default") && !found.contains("torch.ops.aten.addmm.default"));
    assert!(registry().get("aten.linear.default").is_some_and(|it| !it.def.tags.has(Tags::CORE)));
}
