//! Matching and rewriting.
//!
//! Arguments are written as JSON: bools, strings, lists and nothing as they are, and a node that was there before, which is
//! what there is most of, as the number of its place; anything else as an object of one field: a node that the pass made as
//! `{"$new": place after}`, tuples as `{"$t": […]}`, dicts as `{"$d": [[key, value], …]}`, slices as
//! `{"$s": [start, stop, step]}`, ints as `{"$i": "1"}`, floats as `{"$f": "1.0"}`, and so on. Nodes of patterns are their
//! places.

use super::{Declare, HostPass, PassCall, answer, declared, declared_with_names};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId};
use tracefx_rewrite::{
    ConstantValue, Constraint, Fired, InternalMatch, MatcherOptions, Miss, ReplaceOptions, Rule, RuleSet, RuleTrace,
    SourcePartition, SubgraphMatcher, SubgraphMatcherWithNameNodeMap, VerifyOptions, get_source_partitions,
    replace_matches,
};
use ts_rs::TS;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "SubgraphMatcher", run: matches },
    HostPass { name: "SubgraphMatcherWithNameNodeMap", run: named_matches },
    HostPass { name: "explain_match", run: explain },
    HostPass { name: "replace_pattern", run: replace },
    HostPass { name: "run_rules", run: run_rules },
    HostPass { name: "get_source_partitions", run: source_partitions },
];

pub(super) const TYPES: &[Declare] = &[
    declared::<ConstantValue>,
    declared::<Constraint>,
    declared_with_names::<MatcherOptions>,
    declared::<VerifyOptions>,
    declared::<ReplaceOptions>,
    declared::<ReplaceRequest>,
    declared::<MatchAnswer>,
    declared::<MissAnswer>,
    declared::<ReplacedAnswer>,
    declared::<RulesRequest>,
    declared::<Fired>,
    declared::<RuleTrace>,
    declared::<SourcesRequest>,
    declared::<SourceAnswer>,
];

/// What `replace_pattern` is asked for: the pattern is the first of the other modules, replacements are those after it.
#[derive(Default, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
struct ReplaceRequest {
    /// How to find and to replace.
    options: ReplaceOptions,
    /// The numbers of the matches that are replaced; all where nothing is said.
    matches: Option<Vec<usize>>,
    /// For each of these which of the replacements takes its place; the first for all where nothing is said.
    replacements: Option<Vec<usize>>,
}

/// How rules are run: for each its name and options; the other modules are the pattern and the replacement of each.
#[derive(Default, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
struct RulesRequest {
    /// The names of the rules.
    names: Vec<String>,
    /// The options of the rules.
    options: Vec<ReplaceOptions>,
    /// Whether the rules run until none matches any more; else each runs once.
    to_fixpoint: bool,
    /// After how many applications they are stopped.
    max_fired: Option<usize>,
}

/// What `get_source_partitions` is asked for.
#[derive(Default, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
struct SourcesRequest {
    /// The names of the functions and classes.
    wanted_sources: Vec<String>,
    /// For each node its entries that say where it comes from, as in a file.
    origins: Vec<HashMap<String, String>>,
}

/// The nodes that come from one call, by their places. The answer has those of each source, and the sources in order.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct SourceAnswer {
    nodes: Vec<usize>,
    input_nodes: Vec<usize>,
    output_nodes: Vec<usize>,
    params: Vec<usize>,
}

/// One match: nodes of the pattern by their places, values as arguments.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct MatchAnswer {
    anchors: Vec<usize>,
    #[ts(type = "[number, unknown][]")]
    nodes_map: Vec<(usize, Value)>,
    #[ts(type = "unknown[]")]
    placeholder_nodes: Vec<Value>,
    #[ts(type = "unknown[]")]
    returning_nodes: Vec<Value>,
    #[ts(type = "[string, unknown][]")]
    name_node_map: Vec<(String, Value)>,
}

/// A miss; `found` is what was there instead, if anything.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct MissAnswer {
    anchor: usize,
    candidate: Option<usize>,
    node: usize,
    #[ts(type = "unknown[]")]
    found: Vec<Value>,
    expected: String,
    n_bound: usize,
}

/// One match that was replaced; the new nodes by their places after.
#[derive(Serialize, TS)]
#[serde(rename_all = "camelCase")]
struct ReplacedAnswer {
    anchor: usize,
    #[ts(type = "[number, unknown][]")]
    nodes_map: Vec<(usize, Value)>,
    replacements: Vec<usize>,
}

fn matches(call: &mut PassCall<'_>) -> Result<Value> {
    let pattern = other(call, 0)?;
    let found = SubgraphMatcher::new(pattern, call.library.registry(), call.options()?)?.matches(call.module)?;
    found_matches(call, pattern, &found)
}

fn named_matches(call: &mut PassCall<'_>) -> Result<Value> {
    let pattern = other(call, 0)?;
    let matcher = SubgraphMatcherWithNameNodeMap::new(pattern, call.library.registry(), call.options()?)?;
    found_matches(call, pattern, &matcher.matches(call.module)?)
}

fn found_matches(call: &PassCall<'_>, pattern: &GraphModule, found: &[InternalMatch]) -> Result<Value> {
    let (places, nodes) = (places(&pattern.graph), places(&call.module.graph));
    let arg = |it: &Arg| encode(it, &|node| nodes.of(node).into());
    let one = |it: &InternalMatch| MatchAnswer {
        anchors: it.anchors.iter().map(|&it| places.of(it)).collect(),
        nodes_map: it.nodes_map.iter().map(|(&node, found)| (places.of(node), arg(found))).collect(),
        placeholder_nodes: it.placeholder_nodes.iter().map(arg).collect(),
        returning_nodes: it.returning_nodes.iter().map(arg).collect(),
        name_node_map: it.name_node_map.iter().map(|(name, found)| (name.to_string(), arg(found))).collect(),
    };
    answer(&found.iter().map(one).collect::<Vec<MatchAnswer>>())
}

fn explain(call: &mut PassCall<'_>) -> Result<Value> {
    let pattern = other(call, 0)?;
    let matcher = SubgraphMatcher::new(pattern, call.library.registry(), call.options()?)?;
    let (places, nodes) = (places(&pattern.graph), places(&call.module.graph));
    let one = |it: Miss| MissAnswer {
        anchor: places.of(it.anchor),
        candidate: it.candidate.map(|it| nodes.of(it)),
        node: places.of(it.node),
        found: it.found.iter().map(|it| encode(it, &|node| nodes.of(node).into())).collect(),
        expected: it.expected,
        n_bound: it.n_bound,
    };
    answer(&matcher.explain(call.module, call.library.registry())?.into_iter().map(one).collect::<Vec<MissAnswer>>())
}

fn replace(call: &mut PassCall<'_>) -> Result<Value> {
    let ReplaceRequest { options, matches, replacements } = call.options()?;
    let pattern = other(call, 0)?;
    let matcher = SubgraphMatcher::new(pattern, call.library.registry(), options.matcher())?;
    let found = matcher.matches(call.module)?;
    let chosen = matches.unwrap_or_else(|| (0..found.len()).collect());
    let replacements = replacements.unwrap_or_else(|| vec![0; chosen.len()]);
    let pair = |(&at, &by): (&usize, &usize)| {
        let what = || Diagnostic::new(Code::InvalidOption, format!("there is no match {at}"));
        Ok((found.get(at).cloned().ok_or_else(what)?, other(call, by + 1)?))
    };
    let pairs = chosen.iter().zip(&replacements).map(pair).collect::<Result<Vec<_>>>()?;
    let before = places(&call.module.graph);
    let (library, module) = (call.library, &mut *call.module);
    let replaced = library.rewriting(|cx| replace_matches(module, pattern, pairs, cx, &options))?;
    let (places, after) = (places(&pattern.graph), places(&call.module.graph));
    let arg =
        |it: &Arg| encode(it, &|node| before.get(node).map_or_else(|| json!({ "$new": after.of(node) }), Value::from));
    let one = |it: tracefx_rewrite::ReplacedPatterns| ReplacedAnswer {
        anchor: places.of(it.anchor),
        nodes_map: it.nodes_map.iter().map(|(&node, found)| (places.of(node), arg(found))).collect(),
        replacements: it.replacements.iter().map(|&it| after.of(it)).collect(),
    };
    answer(&replaced.into_iter().map(one).collect::<Vec<ReplacedAnswer>>())
}

fn run_rules(call: &mut PassCall<'_>) -> Result<Value> {
    let RulesRequest { names, options, to_fixpoint, max_fired } = call.options()?;
    let rule = |(at, (name, options)): (usize, (String, ReplaceOptions))| {
        let (pattern, replacement) = (other(call, 2 * at)?.clone(), other(call, 2 * at + 1)?.clone());
        Ok(Rule { name: name.into(), pattern, replacement, options })
    };
    let rules = RuleSet { rules: names.into_iter().zip(options).enumerate().map(rule).collect::<Result<_>>()? };
    let (library, module) = (call.library, &mut *call.module);
    answer(&library.rewriting(|cx| match to_fixpoint {
        true => rules.run_to_fixpoint(module, cx, max_fired),
        false => rules.run_once(module, cx),
    })?)
}

fn source_partitions(call: &mut PassCall<'_>) -> Result<Value> {
    let SourcesRequest { wanted_sources, origins } = call.options()?;
    // The host keeps what it noted, so the module itself stays as it is.
    let mut graph = call.module.graph.clone();
    for (node, origin) in call.nodes().into_iter().zip(origins) {
        let entries = origin.into_iter().map(|(key, text)| (key.into(), text.into()));
        graph.meta_mut(node).entries.extend(entries);
    }
    let wanted: Vec<&str> = wanted_sources.iter().map(String::as_str).collect();
    let places = places(&graph);
    let at = |nodes: &[NodeId]| nodes.iter().map(|&it| places.of(it)).collect();
    let one = |it: &SourcePartition| SourceAnswer {
        nodes: at(&it.nodes),
        input_nodes: at(&it.input_nodes),
        output_nodes: at(&it.output_nodes),
        params: at(&it.params),
    };
    let found = get_source_partitions(&graph, &wanted, None);
    let all = found.iter().map(|(source, partitions)| (source, partitions.iter().map(one).collect()));
    answer(&all.collect::<Vec<(&String, Vec<SourceAnswer>)>>())
}

fn other<'a>(call: &PassCall<'a>, index: usize) -> Result<&'a GraphModule> {
    call.others
        .get(index)
        .ok_or_else(|| Diagnostic::new(Code::InvalidOption, format!("the pass takes more than {index} other modules")))
}

/// Where nodes stand.
struct Places(Vec<Option<usize>>);

impl Places {
    fn get(&self, node: NodeId) -> Option<usize> {
        self.0.get(node.index()).copied().flatten()
    }

    fn of(&self, node: NodeId) -> usize {
        self.get(node).expect("an answer speaks of nodes that are there")
    }
}

fn places(graph: &Graph) -> Places {
    let mut res = vec![None; graph.id_bound()];
    graph.nodes().enumerate().for_each(|(place, it)| res[it.index()] = Some(place));
    Places(res)
}

/// An argument as JSON.
fn encode(arg: &Arg, node: &dyn Fn(NodeId) -> Value) -> Value {
    let each = |items: &[Arg]| items.iter().map(|it| encode(it, node)).collect::<Vec<Value>>();
    match arg {
        Arg::None => Value::Null,
        Arg::Ellipsis => json!({ "$e": 1 }),
        Arg::Bool(it) => json!(it),
        Arg::Int(it) => json!({ "$i": it.to_string() }),
        Arg::Float(it) => json!({ "$f": it.to_string() }),
        Arg::Complex(it) => json!({ "$c": [it.re.to_string(), it.im.to_string()] }),
        Arg::Str(it) => json!(&**it),
        Arg::DType(it) => json!({ "$dtype": it.name() }),
        Arg::Device(it) => json!({ "$dev": it.to_string() }),
        Arg::Layout(it) => json!({ "$layout": it.name() }),
        Arg::MemoryFormat(it) => json!({ "$mf": it.name() }),
        Arg::Node(it) => node(*it),
        Arg::Op(it) => json!({ "$fn": &**it }),
        Arg::List(items) => Value::Array(each(items)),
        Arg::Tuple(items) => json!({ "$t": each(items) }),
        Arg::Dict(items) => {
            json!({ "$d": items.iter().map(|(key, it)| json!([&**key, encode(it, node)])).collect::<Vec<_>>() })
        }
        Arg::Slice(parts) => json!({ "$s": each(&parts[..]) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Library;
    use crate::passes::host_pass;

    fn calls(targets: &[&str]) -> GraphModule {
        let mut graph = Graph::new();
        let mut value = graph.placeholder("x");
        for target in targets {
            value = graph.call_function(target, vec![value.into()], vec![]);
        }
        graph.output(value.into());
        GraphModule::new(graph)
    }

    /// What a pass answers for a module of three calls, and the functions that are called then.
    fn run(name: &str, options: Value, others: &[GraphModule]) -> Result<(Value, Vec<String>)> {
        let (library, mut module) = (Library::default(), calls(&["a", "a", "b"]));
        let mut call = PassCall { library: &library, module: &mut module, others, options };
        let told = (host_pass(name)?.run)(&mut call)?;
        let targets = module.graph.nodes().map(|it| module.graph.node(it).target().to_string());
        Ok((told, targets.skip(1).take_while(|it| it != "output").collect()))
    }

    #[test]
    fn matches_are_told_by_places() {
        let (told, _) = run("SubgraphMatcher", json!({ "nodeNameMatch": "" }), &[calls(&["a"])]).unwrap();
        assert_eq!(told[1]["nodesMap"], json!([[1, 2], [0, 1]]));
        let (told, _) = run("explain_match", json!({}), &[calls(&["b", "b"])]).unwrap();
        assert_eq!((&told[0]["expected"], &told[0]["found"]), (&json!("call_function b"), &json!([2])));
    }

    #[test]
    fn hosts_choose_which_matches_are_replaced_by_what() {
        let options = json!({ "options": { "matching": { "ignoreLiterals": true }, "keepsSubmodules": true },
            "matches": [1], "replacements": [1] });
        let (told, targets) = run("replace_pattern", options, &[calls(&["a"]), calls(&["c"]), calls(&["d"])]).unwrap();
        assert_eq!(targets, ["a", "d", "b"]);
        assert_eq!(told, json!([{ "anchor": 1, "nodesMap": [[1, 2], [0, 1]], "replacements": [2] }]));
    }

    #[test]
    fn hosts_say_where_nodes_come_from() {
        let origin = json!({ "torch_fn": "f_1;function.f" });
        let options = json!({ "wantedSources": ["f"], "origins": [{}, origin, origin, {}] });
        let (told, _) = run("get_source_partitions", options, &[]).unwrap();
        let partition = json!({ "nodes": [1, 2], "inputNodes": [0], "outputNodes": [2], "params": [] });
        assert_eq!(told, json!([["f", [partition]]]));
    }

    #[test]
    fn hosts_run_rules() {
        let options = |to_fixpoint: bool| {
            json!({ "toFixpoint": to_fixpoint, "names": ["join", "rename"],
                "options": [{ "matching": {}, "keepsSubmodules": true }, { "matching": {}, "keepsSubmodules": true }] })
        };
        let rules = [calls(&["b", "b"]), calls(&["b"]), calls(&["a"]), calls(&["b"])];
        let (told, targets) = run("run_rules", options(true), &rules).unwrap();
        assert_eq!((targets, &told["isFixpoint"]), (vec!["b".to_owned()], &json!(true)));
        let (told, targets) = run("run_rules", options(false), &rules).unwrap();
        assert_eq!((targets.len(), &told["fired"][0]["rule"]), (3, &json!("rename")));
    }
}
