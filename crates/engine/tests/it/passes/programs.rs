//! What every pass promises, on programs that PyTorch exported, as modules.

use super::{Bits, computed_of, lint, own, run};
use crate::corpus::folders;
use crate::each_pass;
use serde_json::{Value as Json, json};
use tracefx_core::{Code, Storage, Tensor};
use tracefx_engine::{Limits, open};
use tracefx_export::ExportedProgram;
use tracefx_ir::{GraphModule, Opcode};
use tracefx_ops::Value;

/// The inputs that a program was exported with; a run may write to them.
fn inputs(program: &ExportedProgram) -> Vec<Value<Tensor>> {
    let copied = |it: &Tensor| {
        let storage = Storage::from_bytes(it.storage().read().bytes()).unwrap();
        Tensor::view_of(storage, it.dtype(), it.sizes(), it.strides(), it.offset()).unwrap()
    };
    program.example_inputs.iter().flatten().map(|it| it.map(&mut |it| copied(it))).collect()
}

/// Each pass with its options; those that a program has no part for change nothing.
fn passes(module: &GraphModule) -> Vec<(&'static str, Json)> {
    let groups = |n_supported: usize| {
        let is_call = |it| module.graph.node(it).op() == Opcode::CallFunction;
        let is_supported = |(at, it)| at % (n_supported + 2) < n_supported && is_call(it);
        let supported: Vec<bool> = module.graph.nodes().enumerate().map(is_supported).collect();
        let answer = run(&mut module.clone(), "propose_partitions", json!({ "isSupported": supported })).unwrap();
        let partitions: Vec<&Json> = answer.as_array().unwrap().iter().map(|it| &it["nodes"]).collect();
        json!({ "partitions": partitions, "prefix": "fused_" })
    };
    let mut res = each_pass::with_options(module.graph.len());
    res.extend([("fuse_by_partitions", groups(2)), ("fuse_by_partitions", groups(3))]);
    res
}

/// Runs of parts of what is under vmap, which only a whole graph knows.
fn is_vmap(module: &GraphModule) -> bool {
    module.graph.nodes().any(|it| module.graph.node(it).target().starts_with("torch._functorch.predispatch."))
}

/// How many passes were compared.
fn check(name: &str, program: &ExportedProgram, module: &GraphModule, before: &[Bits]) -> usize {
    let mut n_compared = 0;
    for (pass, options) in passes(module) {
        if is_vmap(module) && ["split_module", "split_by_tags", "fuse_by_partitions"].contains(&pass) {
            continue;
        }
        let mut changed = own(module);
        if let Err(problem) = run(&mut changed, pass, options) {
            // Inputs that are no tensors tell nothing of themselves, and a few sizes are left open.
            assert!(matches!(problem.code(), Code::PassFailed | Code::NotImplemented), "{name}: {pass}: {problem}");
            continue;
        }
        lint(&changed);
        let after = computed_of(&changed, inputs(program));
        let after = after.unwrap_or_else(|problem| panic!("{name}: {pass}: {problem}\n{}", changed.graph));
        assert!(after == before, "{name}: {pass} made\n{}\nof\n{}", changed.graph, module.graph);
        n_compared += 1;
    }
    n_compared
}

#[test]
fn passes_on_programs_change_no_number() {
    let (mut n_programs, mut n_compared) = (0, 0);
    for folder in folders() {
        let Ok(program) = open(&std::fs::read(folder.join("model.pt2")).unwrap(), &Limits::default()) else { continue };
        let Ok(module) = program.module() else { continue };
        // Custom operators are not there.
        let Ok(before) = computed_of(&module, inputs(&program)) else { continue };
        n_compared += check(&folder.file_name().unwrap().to_string_lossy(), &program, &module, &before);
        n_programs += 1;
    }
    println!("{n_compared} runs of {n_programs} programs");
    assert!(n_programs >= 20 && n_compared >= 23 * n_programs, "{n_compared} runs of {n_programs} programs");
}
