//! Rules as files that TypeScript and Rust share: `ts/test/rewrite/rules.test.ts` has the other half. After a change on
//! purpose, `TRACEFX_UPDATE=1 cargo test -p tracefx-engine --test it rules` writes Rust's file again.

use std::path::PathBuf;
use tracefx_ir::{Graph, GraphModule};
use tracefx_ops::registry;
use tracefx_rewrite::{ReplaceOptions, Rule, RuleSet};
use tracefx_wire::{Limits, Options, decode_module, encode_module};

fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../tests/golden/rules", name].iter().collect()
}

fn negations(count: usize) -> GraphModule {
    let mut graph = Graph::new();
    let mut value = graph.placeholder("x");
    for _ in 0..count {
        value = graph.call_function("torch.neg", vec![value.into()], vec![]);
    }
    graph.output(value.into());
    GraphModule::new(graph)
}

#[test]
fn a_rule_is_written_as_it_was() {
    let (pattern, replacement) = (negations(2), negations(0));
    let rule = Rule { name: "neg_of_neg".into(), pattern, replacement, options: ReplaceOptions::default() };
    let file = encode_module(&rule.to_module().unwrap(), &Options::FILE).unwrap();
    if std::env::var_os("TRACEFX_UPDATE").is_some() {
        std::fs::write(golden("rust.fxg"), &file).unwrap();
    }
    assert_eq!(file, std::fs::read(golden("rust.fxg")).unwrap());
}

#[test]
fn rules_of_both_languages_run() {
    for name in ["rust.fxg", "typescript.fxg"] {
        let file = std::fs::read(golden(name)).unwrap();
        let rule = Rule::from_module(&decode_module(&file, &[], &Limits::default()).unwrap()).unwrap();
        assert_eq!(&*rule.name, "neg_of_neg");
        let mut module = negations(7);
        let trace = RuleSet { rules: vec![rule] }.run_to_fixpoint(&mut module, registry(), None).unwrap();
        assert_eq!((trace.fired.len(), trace.is_fixpoint, module.graph.len()), (3, true, 3), "{name}");
        assert!(module.graph.lint(Some(&module)).is_empty());
    }
}
