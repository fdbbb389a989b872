//! Layers fused, merged and turned, on random modules of layers. Sums come in another order there, so that numbers are close
//! and not the same bits.

use super::layers::layered;
use super::random::Writes;
use super::{Bits, check_once, computed, computed_of, config, known, lint, run};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::path::Path;
use tracefx_core::Tensor;
use tracefx_engine::{Library, Limits, open};
use tracefx_export::ExportedProgram;
use tracefx_ir::{GraphModule, Opcode};
use tracefx_ops::Value;
use tracefx_rewrite::{fuse, fuse_batch_norm};

/// Whether what two modules compute differs by no more than rounding.
fn are_close(a: &[Bits], b: &[Bits]) -> bool {
    let number = |it: &[u8]| f32::from_le_bytes(it.try_into().unwrap());
    let numbers = |it: &Bits| it.data.chunks(4).map(number).collect::<Vec<f32>>();
    let is_near = |(a, b): (f32, f32)| (a - b).abs() <= 1e-3 + 1e-3 * b.abs() || a.to_bits() == b.to_bits();
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.what == b.what && numbers(a).into_iter().zip(numbers(b)).all(is_near))
}

/// Runs a pass and checks that it gives a graph that computes the same, and whether the pass says that it changed anything.
fn check_fused(module: &GraphModule, name: &str, fuse: impl Fn(&mut GraphModule) -> bool) -> GraphModule {
    let before = computed(module);
    let mut changed = module.clone();
    let is_modified = fuse(&mut changed);
    lint(&changed);
    assert_eq!(is_modified, changed.graph.to_string() != module.graph.to_string(), "{name} of\n{}", module.graph);
    let after = computed(&changed);
    assert!(are_close(&after, &before), "{name} made\n{}\nof\n{}", changed.graph, module.graph);
    changed
}

/// The same, of a pass that leaves nothing to do for a second run.
fn check_fused_once(module: &GraphModule, name: &str, fuse: impl Fn(&mut GraphModule) -> bool) {
    let once = check_fused(module, name, &fuse);
    let mut twice = once.clone();
    assert!(!fuse(&mut twice), "{name} says that it changed its own result, of\n{}", module.graph);
    assert_eq!(twice.graph.to_string(), once.graph.to_string(), "{name} again, of\n{}", module.graph);
}

fn n_products(module: &GraphModule) -> usize {
    let targets = module.graph.nodes().map(|it| module.graph.node(it).target());
    targets.filter(|it| it.ends_with(".mm.default") || it.ends_with(".matmul.default")).count()
}

fn by_name(name: &'static str) -> impl Fn(&mut GraphModule) -> bool {
    move |module| run(module, name, json!({})).unwrap()["modified"] == true
}

fn fuse_all(module: &mut GraphModule) -> bool {
    fuse(module, Library::default().executor()).unwrap().modified
}

const PASSES: [&str; 3] = ["fuse_batch_norm", "linear_permute_fusion", "merge_matmul"];

#[test]
fn every_pass_finds_something_in_many_of_these_modules() {
    let mut runner = TestRunner::deterministic();
    let mut n_modified = [0; 3];
    for _ in 0..300 {
        let module = known(&layered(Writes::None).new_tree(&mut runner).unwrap().current());
        for (at, name) in PASSES.into_iter().enumerate() {
            n_modified[at] += usize::from(by_name(name)(&mut module.clone()));
        }
    }
    assert!(n_modified.iter().all(|it| *it >= 30), "{n_modified:?} of 300");
}

/// What PyTorch exported of a residual network as torchvision writes it: activations and sums in place.
#[test]
fn a_residual_network_loses_all_its_batch_norms() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs/resnet_block_tiny");
    let mut program = open(&std::fs::read(folder.join("model.pt2")).unwrap(), &Limits::default()).unwrap();
    let library = Library::default();
    let inputs: Vec<Value<Tensor>> = program.example_inputs.iter().flatten().cloned().collect();
    let computed = |program: &ExportedProgram| computed_of(&program.module().unwrap(), inputs.clone()).unwrap();
    let count = |module: &GraphModule, op: &str| {
        module.graph.find_nodes(Opcode::CallFunction, &format!("torch.ops.aten.{op}")).count()
    };
    assert_eq!((count(&program.module, "batch_norm.default"), count(&program.module, "relu_.default")), (6, 5));
    let before = computed(&program);
    // The weights are inputs of the graph, and the pass says so.
    let left_out = fuse_batch_norm(&mut program.module.clone(), library.registry()).unwrap().left_out;
    assert_eq!(left_out.len(), 6);
    assert_eq!(left_out[0].reason, "the weight `p_0_weight` is an input and no constant of the module");

    let result = program.with_lifted_state(library.registry(), &|module| fuse(module, library.executor())).unwrap();
    assert_eq!((result.modified, result.left_out), (true, vec![]));
    assert_eq!((count(&program.module, "batch_norm.default"), count(&program.module, "relu_.default")), (0, 5));
    assert!(are_close(&computed(&program), &before), "{}", program.module.graph);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fusing_batch_norms(module in layered(Writes::Allowed)) {
        check_fused_once(&module, "fuse_batch_norm", by_name("fuse_batch_norm"));
        check_fused_once(&known(&module), "fuse_batch_norm", by_name("fuse_batch_norm"));
    }

    #[test]
    fn turning_linear_layers(module in layered(Writes::Allowed)) {
        check_fused_once(&known(&module), "linear_permute_fusion", by_name("linear_permute_fusion"));
    }

    #[test]
    fn merging_products(module in layered(Writes::Allowed), is_known: bool) {
        let mut module = if is_known { known(&module) } else { module };
        loop {
            let changed = check_fused(&module, "merge_matmul", by_name("merge_matmul"));
            if changed.graph.to_string() == module.graph.to_string() {
                break;
            }
            prop_assert!(n_products(&changed) < n_products(&module), "{}\nof\n{}", changed.graph, module.graph);
            if is_known {
                // Programs are refused in which the values of new nodes are not known.
                for id in changed.graph.nodes().filter(|it| changed.graph.node(*it).op() == Opcode::CallFunction) {
                    let node = changed.graph.node(id);
                    prop_assert!(node.meta.val.is_some(), "{} has no value in\n{}", node.name(), changed.graph);
                }
            }
            module = changed;
        }
    }

    #[test]
    fn fusing_for_inference(module in layered(Writes::Allowed)) {
        check_fused_once(&known(&module), "fuse", fuse_all);
    }

    #[test]
    fn one_after_the_other(module in layered(Writes::Allowed), order in Just(PASSES).prop_shuffle()) {
        order.into_iter().fold(known(&module), |module, name| check_fused(&module, name, by_name(name)));
    }

    #[test]
    fn other_passes_on_layers(module in layered(Writes::Allowed)) {
        check_once(&module, "eliminate_dead_code", json!({ "strict": true }));
        for name in ["constant_fold", "CSEPass", "NormalizeArgs"] {
            check_once(&module, name, json!({}));
        }
        check_once(&known(&module), "reinplace", json!({}));
    }
}
