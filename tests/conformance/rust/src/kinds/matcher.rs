use crate::case::{Case, Check};
use indexmap::IndexMap;
use serde_json::{Value, json};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId};
use tracefx_ops::registry;
use tracefx_rewrite::{InternalMatch, MatcherOptions, SubgraphMatcher};
use tracefx_testing::{build, by_name, decode_args};

/// Where a pattern stands.
pub(crate) fn check(case: &Case) -> Check {
    let pattern = GraphModule::new(build(case.option("pattern")));
    let flag = |name: &str| case.option(name) == &Value::Bool(true);
    let options = MatcherOptions {
        match_output: flag("match_output"),
        match_placeholder: flag("match_placeholder"),
        remove_overlapping_matches: flag("remove_overlapping_matches"),
        ignore_literals: flag("ignore_literals"),
        ..MatcherOptions::default()
    };
    let module = case.module();
    let matches = SubgraphMatcher::new(&pattern, registry(), options).and_then(|it| it.matches(&module));
    let matches = matches.map_err(|it| it.to_string())?;
    let wanted = case.get("matches").as_array().ok_or("PyTorch raises an error")?;
    if matches.len() != wanted.len() {
        return Err(format!("{} matches instead of {}", matches.len(), wanted.len()));
    }
    matches.iter().zip(wanted).try_for_each(|(got, wanted)| same_match(&pattern.graph, &module.graph, got, wanted))
}

fn same_match(pattern: &Graph, graph: &Graph, got: &InternalMatch, wanted: &Value) -> Check {
    let find = by_name(graph);
    same_map(pattern, &got.nodes_map, &wanted["nodes_map"], &find)?;
    let anchors: Vec<&str> = got.anchors.iter().map(|it| &**pattern.node(*it).name()).collect();
    if json!(anchors) != wanted["anchors"] {
        return Err(format!("the anchors are {anchors:?} instead of {}", wanted["anchors"]));
    }
    same_args(got.placeholder_nodes.iter(), &wanted["placeholder_nodes"], &find)?;
    same_args(got.returning_nodes.iter(), &wanted["returning_nodes"], &find)
}

/// Whether what the nodes of the pattern stand for was recorded so, in the same order.
pub(crate) fn same_map<S>(
    pattern: &Graph,
    got: &IndexMap<NodeId, Arg, S>,
    wanted: &Value,
    find: &dyn Fn(&str) -> NodeId,
) -> Check {
    let names: Vec<&str> = got.keys().map(|it| &**pattern.node(*it).name()).collect();
    let pairs = wanted.as_array().expect("pairs");
    let keys: Vec<&Value> = pairs.iter().map(|it| &it[0]).collect();
    if json!(names) != json!(keys) {
        return Err(format!("bound {names:?} instead of {keys:?}"));
    }
    same_args(got.values(), &pairs.iter().map(|it| it[1].clone()).collect(), find)
}

fn same_args<'a>(got: impl Iterator<Item = &'a Arg>, wanted: &Value, find: &dyn Fn(&str) -> NodeId) -> Check {
    let wanted = decode_args(find, wanted);
    let got: Vec<Arg> = got.cloned().collect();
    if got == wanted { Ok(()) } else { Err(format!("found {got:?} instead of {wanted:?}")) }
}
