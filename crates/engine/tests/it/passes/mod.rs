//! What every pass promises, on random modules: the graph is well formed, it computes the same numbers from the same inputs
//! and writes the same to them, and a second run changes nothing where the pass says so.

mod devices;
mod fusing;
mod large;
mod layers;
mod programs;
mod random;
mod regions;
mod replacing;
mod sizes;

use proptest::prelude::*;
use random::{Writes, inputs, modules};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use tracefx_core::{Result, Storage, Tensor};
use tracefx_engine::{Library, PassCall, host_pass};
use tracefx_exec::Interpreter;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Opcode, TensorKind, TensorMeta, Val};
use tracefx_ops::Value;
use tracefx_rewrite::{FoldRules, split_const_subgraphs};

/// Each property is tried on 256 random modules, or on as many as `PROPTEST_CASES` says. They are others in every run.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// A tensor to the bit, or another value as it prints.
#[derive(Debug, PartialEq, Eq)]
struct Bits {
    what: String,
    data: Vec<u8>,
}

/// Everything that a run on the inputs of random modules gives and leaves behind.
fn computed(module: &GraphModule) -> Vec<Bits> {
    computed_of(module, inputs()).unwrap_or_else(|problem| panic!("{problem}\n{}", module.graph))
}

/// Everything that a run gives and leaves behind in its inputs.
fn computed_of(module: &GraphModule, inputs: Vec<Value<Tensor>>) -> Result<Vec<Bits>> {
    let library = Library::default();
    let module = &own(module);
    let result = Interpreter::new(module, library.executor()).run(&inputs)?;
    let mut bits = Vec::new();
    inputs.iter().chain([&result]).for_each(|it| gather(it, &mut bits));
    Ok(bits)
}

/// A copy whose tensors are its own: a run may write to them. What shared memory shares it again.
fn own(module: &GraphModule) -> GraphModule {
    fn copy(module: &mut GraphModule, copies: &mut HashMap<usize, Storage>) {
        for attribute in module.attributes.values_mut() {
            match attribute {
                Attribute::Tensor { tensor, .. } => {
                    let old = tensor.storage();
                    let copied = || Storage::from_bytes(old.read().bytes()).unwrap();
                    let storage = copies.entry(old.id()).or_insert_with(copied);
                    let (dtype, sizes, strides) = (tensor.dtype(), tensor.sizes(), tensor.strides());
                    *tensor = Tensor::view_of(storage.clone(), dtype, sizes, strides, tensor.offset()).unwrap();
                }
                Attribute::Fake { .. } => panic!("the modules here have data"),
                Attribute::Module(child) => copy(child, copies),
            }
        }
    }
    let mut res = module.clone();
    copy(&mut res, &mut HashMap::new());
    res
}

fn gather(value: &Value<Tensor>, bits: &mut Vec<Bits>) {
    match value {
        Value::List(items) => items.iter().for_each(|it| gather(it, bits)),
        Value::Tensor(it) => {
            bits.push(Bits { what: format!("{} {:?}", it.dtype(), it.sizes()), data: it.to_bytes().unwrap() });
        }
        other => bits.push(Bits { what: format!("{other:?}"), data: Vec::new() }),
    }
}

fn run(module: &mut GraphModule, name: &str, options: Json) -> Result<Json> {
    let library = Library::default();
    (host_pass(name)?.run)(&mut PassCall { library: &library, module, others: &[], options })
}

fn lint(module: &GraphModule) {
    for (path, it) in module.modules() {
        let problems = it.graph.lint(Some(it));
        assert!(problems.is_empty(), "{path}: {problems:?}\n{}", it.graph);
    }
}

/// Runs a pass and checks what all passes promise.
fn check(module: &GraphModule, name: &str, options: Json) -> GraphModule {
    let before = computed(module);
    let mut changed = module.clone();
    run(&mut changed, name, options).unwrap_or_else(|problem| panic!("{name}: {problem}\n{}", module.graph));
    lint(&changed);
    assert_eq!(computed(&changed), before, "{name} made\n{}\nof\n{}", changed.graph, module.graph);
    changed
}

/// The same, of a pass that leaves nothing to do for a second run.
fn check_once(module: &GraphModule, name: &str, options: Json) {
    let once = check(module, name, options.clone());
    let mut twice = once.clone();
    let answer = run(&mut twice, name, options).unwrap();
    assert_eq!(twice.graph.to_string(), once.graph.to_string(), "{name} changed its own result");
    assert!(answer.get("modified").is_none_or(|it| it == false), "{name} says that it changed its own result");
}

/// The module with what is known of its nodes.
fn known(module: &GraphModule) -> GraphModule {
    let mut res = module.clone();
    let nodes: Vec<_> = res.graph.nodes().collect();
    let placeholders = nodes.into_iter().filter(|&it| module.graph.node(it).op() == Opcode::Placeholder);
    for (id, input) in placeholders.zip(inputs()) {
        if let Value::Tensor(it) = input {
            res.graph.meta_mut(id).val = Some(Val::Tensor(TensorMeta::of(&it)));
        }
    }
    run(&mut res, "FakeTensorProp", json!({})).unwrap_or_else(|problem| panic!("{problem}\n{}", module.graph));
    res
}

/// Parts by position, so that no write moves across another call.
fn parts(module: &GraphModule, n_parts: usize) -> Json {
    let n_nodes = module.graph.len();
    json!((0..n_nodes).map(|place| place * n_parts / n_nodes).collect::<Vec<_>>())
}

#[test]
fn a_search_for_a_difference_is_answered_question_by_question() {
    let mut graph = Graph::new();
    let mut last = graph.placeholder("x");
    for target in ["sin", "neg", "abs", "cos"] {
        last = graph.call_function(&format!("torch.ops.aten.{target}.default"), vec![last.into()], vec![]);
    }
    graph.output(last.into());
    let mut module = GraphModule::new(graph);
    let culprit = json!(3);
    let mut answers: Vec<bool> = Vec::new();
    let found = loop {
        let options = json!({ "options": { "traverseMethod": "binary" }, "answers": answers });
        let answer = run(&mut module, "minimize", options).unwrap();
        let Some(ask) = answer["ask"].as_array() else { break answer["culprits"].clone() };
        let mut split = module.clone();
        run(&mut split, "minimize_submodule", json!({ "nodes": ask })).unwrap();
        lint(&split);
        assert_eq!(split.submodule("minimize").unwrap().graph.len(), ask.len() + 2);
        answers.push(ask.contains(&culprit));
    };
    assert_eq!((found, answers), (json!([3]), vec![true, false, true, true]));
}

#[test]
fn hosts_ask_for_sizes_and_give_nodes_other_targets() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let neg = graph.call_function("torch.ops.aten.neg.default", vec![x.into()], vec![]);
    graph.output(neg.into());
    let mut module = GraphModule::new(graph);
    assert!(run(&mut module, "get_size_of_all_nodes", json!({})).is_err());
    let meta = TensorMeta::contiguous(tracefx_core::DType::Float32, vec![2.into(), 3.into()]);
    [x, neg].into_iter().for_each(|it| module.graph.meta_mut(it).val = Some(Val::Tensor(meta.clone())));
    let size = json!({ "outputSize": 24, "totalSize": 24 });
    assert_eq!(run(&mut module, "get_size_of_all_nodes", json!({})).unwrap(), json!([size, size, null]));
    let (old, new) = ("torch.ops.aten.neg.default", "torch.ops.aten.abs.default");
    let mut options = json!({ "oldOp": "call_function", "oldTarget": old, "newOp": "call_function", "newTarget": new });
    run(&mut module, "replace_target_nodes_with", options.clone()).unwrap();
    lint(&module);
    let neg = module.graph.find("neg_default").unwrap();
    assert_eq!(&**module.graph.node(neg).target(), new);
    options["newOp"] = json!("call");
    assert!(run(&mut module, "replace_target_nodes_with", options).is_err());
}

/// A list takes copies from a tensor, and a number a view.
#[test]
fn items_that_are_copies_are_read_before_and_after_a_write() {
    for (index, n_left) in [(Arg::List(vec![Arg::Int(0)]), 2), (Arg::Int(0), 1)] {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let before = graph.call_function("operator.getitem", vec![x.into(), index.clone()], vec![]);
        graph.call_function("torch.ops.aten.add_.Scalar", vec![x.into(), Arg::Int(1)], vec![]);
        let after = graph.call_function("operator.getitem", vec![x.into(), index], vec![]);
        graph.output(Arg::Tuple(vec![before.into(), after.into()]));
        let mut module = GraphModule::new(graph);
        run(&mut module, "merge_getitems", json!({})).unwrap();
        assert_eq!(module.graph.find_nodes(Opcode::CallFunction, "operator.getitem").count(), n_left);
    }
}

#[test]
fn merged_products_compute_the_same() {
    for target in ["torch.ops.aten.mm.default", "torch.ops.aten.matmul.default"] {
        let mut graph = Graph::new();
        let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
        let meta = TensorMeta::contiguous(tracefx_core::DType::Float32, vec![2.into(), 3.into()]);
        [x, y].into_iter().for_each(|it| graph.meta_mut(it).val = Some(Val::Tensor(meta.clone())));
        let weights = [0, 1].map(|_| graph.get_attr("weight"));
        let first = graph.call_function(target, vec![x.into(), weights[0].into()], vec![]);
        let relu = graph.call_function("torch.ops.aten.relu.default", vec![first.into()], vec![]);
        let second = graph.call_function(target, vec![y.into(), weights[1].into()], vec![]);
        graph.output(Arg::Tuple(vec![relu.into(), second.into()]));
        let mut module = GraphModule::new(graph);
        let tensor = Tensor::from_slice(&[0.5f32, -1.0, 2.0, 4.0, -0.25, 1.5], &[3, 2]).unwrap();
        module.attributes.insert("weight".into(), Attribute::Tensor { tensor, kind: TensorKind::Parameter });
        let changed = check(&module, "merge_matmul", json!({}));
        assert_eq!(changed.graph.find_nodes(Opcode::CallFunction, target).count(), 1, "{}", changed.graph);
        check_once(&module, "merge_matmul", json!({}));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn dead_code_elimination(module in modules(Writes::ByOperators)) {
        check_once(&module, "eliminate_dead_code", json!({}));
    }

    #[test]
    fn strict_dead_code_elimination(module in modules(Writes::Allowed)) {
        check_once(&module, "eliminate_dead_code", json!({ "strict": true }));
    }

    #[test]
    fn constants(module in modules(Writes::Allowed)) {
        check_once(&module, "constant_fold", json!({}));
    }

    #[test]
    fn common_subexpressions(module in modules(Writes::Allowed)) {
        check_once(&module, "CSEPass", json!({}));
    }

    #[test]
    fn reads_of_items(module in modules(Writes::Allowed)) {
        check_once(&module, "merge_getitems", json!({}));
    }

    #[test]
    fn sorting(module in modules(Writes::Allowed)) {
        check(&module, "legalize_graph", json!({}));
        check_once(&module, "stable_topological_sort", json!({}));
    }

    #[test]
    fn splitting(module in modules(Writes::Allowed), n_parts in 1usize..5) {
        let options = json!({ "partitionOf": parts(&module, n_parts) });
        check(&module, "split_module", options);
    }

    #[test]
    fn normalizing(module in modules(Writes::Allowed)) {
        check_once(&module, "NormalizeArgs", json!({}));
    }

    #[test]
    fn spelling_operators(module in modules(Writes::Allowed)) {
        check_once(&module, "NormalizeOperators", json!({}));
    }

    #[test]
    fn annotating(module in modules(Writes::Allowed)) {
        check_once(&module, "AnnotateTypesWithSchema", json!({}));
        check_once(&module, "annotate_getitem_nodes", json!({}));
    }

    #[test]
    fn functionalizing(module in modules(Writes::ByOperators)) {
        let changed = check(&known(&module), "functionalize", json!({}));
        // What is left is what is copied into inputs and attributes at the end.
        let mut writes = changed.graph.nodes().map(|it| changed.graph.node(it).target()).filter(|it| it.contains("_."));
        prop_assert!(writes.all(|it| &**it == "torch.ops.aten.copy_.default"), "{}", changed.graph);
        check(&known(&module), "functionalize", json!({ "remove": "mutations_and_views" }));
    }

    #[test]
    fn working_in_place(module in modules(Writes::Allowed)) {
        check_once(&known(&module), "reinplace", json!({}));
    }

    #[test]
    fn fusing_partitions(module in modules(Writes::Allowed), supported in prop::collection::vec(any::<bool>(), 64)) {
        let is_call = |at: usize| {
            let id = module.graph.nodes().nth(at).unwrap();
            module.graph.node(id).op() == Opcode::CallFunction
        };
        let supported: Vec<bool> = (0..module.graph.len()).map(|at| supported[at % 64] && is_call(at)).collect();
        let mut copy = module.clone();
        let answer = run(&mut copy, "propose_partitions", json!({ "isSupported": supported })).unwrap();
        let partitions: Vec<Json> = answer.as_array().unwrap().iter().map(|it| it["nodes"].clone()).collect();
        check(&module, "fuse_by_partitions", json!({ "partitions": partitions, "prefix": "fused_" }));
    }

    #[test]
    fn splitting_by_tags(module in modules(Writes::Allowed), n_parts in 1usize..5) {
        let tags: Vec<String> = (0..n_parts).map(|it| format!("part_{it}")).collect();
        check(&module, "split_by_tags", json!({ "tags": tags, "tagOf": parts(&module, n_parts) }));
    }

    #[test]
    fn splitting_for_an_accelerator(
        module in modules(Writes::Allowed),
        supported in prop::collection::vec(any::<bool>(), 64),
        tensors in prop::collection::vec(any::<bool>(), 64),
        size in 1usize..3,
    ) {
        let cycle = |of: &[bool]| (0..module.graph.len()).map(|at| of[at % 64]).collect::<Vec<bool>>();
        let mut copy = module.clone();
        let options = json!({
            "isSupported": cycle(&supported), "isTensor": cycle(&tensors), "options": { "minAccModuleSize": size },
        });
        let answer = run(&mut copy, "find_subgraphs", options).unwrap();
        let subgraphs = answer["subgraphs"].as_array().unwrap();
        let mut tag_of = vec![Json::Null; module.graph.len()];
        for (at, subgraph) in subgraphs.iter().enumerate() {
            subgraph["nodes"].as_array().unwrap().iter().for_each(|it| tag_of[it.as_u64().unwrap() as usize] = at.into());
        }
        let tags: Vec<&Json> = subgraphs.iter().map(|it| &it["tag"]).collect();
        check(&module, "split_by_tags", json!({ "tags": tags, "tagOf": tag_of, "returnTuple": size == 2 }));
    }

    #[test]
    fn folding_constants(module in modules(Writes::Allowed)) {
        let before = computed(&module);
        let library = Library::default();
        let rules = FoldRules { registry: library.registry(), is_skipped: &|_| false, is_impure: &|_| false };
        let mut changed = module.clone();
        if let Some(folded) = split_const_subgraphs(&mut changed, &rules).unwrap() {
            lint(&folded.const_subgraph);
            let results = Interpreter::new(&folded.const_subgraph, library.executor()).run(&[]).unwrap();
            let mut tensors = Vec::new();
            results.for_each_tensor(&mut |it: &Tensor| tensors.push(it.clone()));
            folded.keep_results(&mut changed, tensors).unwrap();
        }
        lint(&changed);
        prop_assert_eq!(computed(&changed), before, "{}\nof\n{}", changed.graph, module.graph);
    }
}
