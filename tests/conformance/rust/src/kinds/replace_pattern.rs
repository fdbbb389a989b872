use super::matcher::same_map;
use crate::case::{Case, Check, attribute};
use crate::compare::same_graph;
use serde_json::{Value, json};
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic};
use tracefx_ir::{Attribute, Graph, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::registry;
use tracefx_rewrite::{MatchFilter, MatcherOptions, ReplaceOptions, Replacement, replace_pattern_with_filters};
use tracefx_testing::build;

/// A pattern replaced wherever it stands.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let mut pattern = GraphModule::new(build(case.option("pattern")));
    let mut replacement = GraphModule::new(build(case.option("replacement")));
    let named = case.option("replacement_modules");
    complete(&mut module, &Value::Null);
    complete(&mut pattern, &Value::Null);
    complete(&mut replacement, named);
    // Nodes by name, also those that the pass erases; names are never given twice.
    let mut ids: HashMap<Str, NodeId> = names(&module.graph).collect();
    let options = ReplaceOptions {
        matching: MatcherOptions {
            ignore_literals: case.option("ignore_literals") == &Value::Bool(true),
            ..MatcherOptions::default()
        },
        keeps_submodules: case.get("pass") != "replace_pattern",
        ..ReplaceOptions::default()
    };
    let is_number: MatchFilter<'_> = &|found, _, _| found.placeholder_nodes[1].as_scalar().is_some();
    let filters: &[MatchFilter<'_>] = if case.option("filter").is_null() { &[] } else { &[is_number] };
    let result = replace_pattern_with_filters(
        &mut module,
        &pattern,
        Replacement::Module(&replacement),
        filters,
        registry(),
        &options,
    );
    let wanted = case.get("error");
    let replaced = match (result, wanted) {
        (Ok(replaced), Value::Null) => replaced,
        (Ok(_), _) => return Err("PyTorch raises an error".to_owned()),
        (Err(problem), Value::Null) => return Err(problem.to_string()),
        (Err(problem), _) => return same_error(&problem, wanted),
    };
    same_graph(&module.graph, case.get("after"), "after")?;
    let recorded = case.get("matches").as_array().expect("matches");
    if replaced.len() != recorded.len() {
        return Err(format!("{} matches instead of {}", replaced.len(), recorded.len()));
    }
    ids.extend(names(&module.graph));
    for (got, wanted) in replaced.iter().zip(recorded) {
        let anchor = pattern.graph.node(got.anchor).name();
        if wanted["anchor"] != **anchor {
            return Err(format!("the anchor is {anchor} instead of {}", wanted["anchor"]));
        }
        let made: Vec<&str> = got.replacements.iter().map(|it| &**module.graph.node(*it).name()).collect();
        if wanted["replacements"].is_array() && json!(made) != wanted["replacements"] {
            return Err(format!("made {made:?} instead of {}", wanted["replacements"]));
        }
        same_map(&pattern.graph, &got.nodes_map, &wanted["nodes_map"], &|name| ids[name])?;
    }
    let modules = module.modules().into_iter().skip(1);
    same_attributes(modules.map(|(path, it)| (path, json!(&*it.class_name))).collect(), case.get("submodules_after"))?;
    let params = module.attributes.iter().filter_map(|(name, it)| match it {
        Attribute::Tensor { tensor, .. } => Some((name.to_string(), json!(tensor.sizes()))),
        Attribute::Fake { .. } | Attribute::Module(_) => None,
    });
    same_attributes(params.collect(), case.get("params_after"))
}

fn names(graph: &Graph) -> impl Iterator<Item = (Str, NodeId)> + '_ {
    graph.nodes().map(|it| (graph.node(it).name().clone(), it))
}

/// Gives a module what its nodes refer to where the corpus does not say what that is, as the generator of the corpus has it.
fn complete(module: &mut GraphModule, named: &Value) {
    let targets: Vec<(Opcode, Str)> =
        module.graph.nodes().map(|it| (module.graph.node(it).op(), module.graph.node(it).target().clone())).collect();
    for (op, target) in targets {
        let about = match (op, &*target) {
            (Opcode::CallModule, name) if named[name].is_string() => json!({ "kind": named[name] }),
            (Opcode::CallModule, "sig") => json!({ "kind": "Sigmoid" }),
            (Opcode::CallModule, "act") => json!({ "kind": "ReLU" }),
            (Opcode::GetAttr, name) => {
                let size = [("a", 2), ("b", 3), ("q", 5), ("c", 7)].iter().find(|it| it.0 == name).map(|it| it.1);
                json!({ "kind": "Parameter", "shape": [size], "dtype": "float32" })
            }
            _ => continue,
        };
        if module.attribute(&target).is_err() {
            module.set_attribute(&target, attribute(&about));
        }
    }
}

fn same_attributes(got: serde_json::Map<String, Value>, wanted: &Value) -> Check {
    // Maps of JSON compare without regard to order.
    let got = Value::Object(got);
    if wanted.is_null() || got == *wanted { Ok(()) } else { Err(format!("has {got} instead of {wanted}")) }
}

fn same_error(problem: &Diagnostic, wanted: &Value) -> Check {
    let (message, text) = (wanted["msg"].as_str().expect("a message"), problem.message());
    let is_same = match problem.code() {
        Code::ReplacementInvalid => text == message,
        Code::PatternInvalid => text == message.replace("an pattern", "a pattern"),
        _ => false,
    };
    if is_same { Ok(()) } else { Err(format!("refused with {problem} instead of {message}")) }
}
