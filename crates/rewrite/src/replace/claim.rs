//! What a replacement claims: that it computes what the nodes of a match compute.
//!
//! A claim is two modules of the same inputs, which an executor runs ([`verify`](crate::verify::verify)).

use super::splice::results;
use super::{placeholders, references};
use crate::InternalMatch;
use crate::matcher::compute_nodes;
use crate::tensor_meta::tensor_meta_of;
use crate::verify::{Claim, VerifyOptions, verify};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::Executor;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, Str, Val};
use tracefx_ops::Registry;

/// What rewriting knows beside the graph: the operators, and what computes them.
#[derive(Clone, Copy)]
pub struct RewriteContext<'a> {
    /// The operators.
    pub registry: &'a Registry,
    /// What runs both sides of a claim, if anything; `Library::rewriting` of `tracefx-engine` has kernels.
    pub executor: Option<Executor<'a>>,
}

impl<'a> From<&'a Registry> for RewriteContext<'a> {
    fn from(registry: &'a Registry) -> Self {
        RewriteContext { registry, executor: None }
    }
}

impl<'a> From<Executor<'a>> for RewriteContext<'a> {
    fn from(executor: Executor<'a>) -> Self {
        RewriteContext { registry: executor.registry(), executor: Some(executor) }
    }
}

/// How many nodes before a match may be run with it, where nothing is known of the values between.
const MAX_NODES_BEFORE: usize = 64;

/// Has the claim of one match checked.
pub(super) fn check(
    module: &GraphModule,
    pattern: &Graph,
    found: &InternalMatch,
    replacement: &GraphModule,
    cx: RewriteContext<'_>,
    options: &VerifyOptions,
) -> Result<()> {
    let Some(executor) = cx.executor else {
        let what = "replacements are to be verified, and nothing here runs numbers";
        return Err(Diagnostic::new(Code::InvalidOption, what).help("pass Library::rewriting of tracefx-engine"));
    };
    let place = found.returning_nodes.iter().find_map(Arg::as_node);
    let name = place.map_or("output", |it| module.graph.node(it).name()).to_owned();
    let claim = claim(module, pattern, found, replacement).map_err(|it| it.node(&*name))?;
    verify(executor, &claim, options).map_err(|it| it.node(name))
}

/// What stands in a graph of the claim for nodes of the module.
type Values = FxHashMap<NodeId, Arg>;

fn claim(module: &GraphModule, pattern: &Graph, found: &InternalMatch, replacement: &GraphModule) -> Result<Claim> {
    let matched = compute_nodes(pattern, found);
    let Inputs { known, earlier } = inputs(module, found, &matched)?;

    let mut shared = Graph::new();
    let mut values = Values::default();
    for (id, val) in known {
        let input = shared.placeholder(module.graph.node(id).name());
        shared.meta_mut(input).val = Some(val);
        values.insert(id, Arg::Node(input));
    }
    copy_nodes(&mut shared, module, earlier, &mut values)?;
    let (mut before, mut after) = (shared.clone(), shared);

    let mut results_of = values.clone();
    copy_nodes(&mut before, module, matched.into_iter().collect(), &mut results_of)?;
    let returned = found.returning_nodes.iter().map(|it| mapped(it, &results_of)).collect();
    before.output(Arg::Tuple(returned));

    let mut inner = vec![None; replacement.graph.id_bound()];
    for (input, bound) in placeholders(&replacement.graph).into_iter().zip(&found.placeholder_nodes) {
        inner[input.index()] = Some(mapped(bound, &values));
    }
    let result = after.graph_copy(&replacement.graph, &mut inner)?.expect("the replacement returns something");
    after.output(Arg::Tuple(results(&result).to_vec()));
    let mut res = Claim { before: GraphModule::new(before), after: GraphModule::new(after) };
    // What one side writes to is compared with what is left of it by the other, which may not use it.
    let paths: Vec<Str> = [&res.before, &res.after].into_iter().flat_map(paths).collect();
    for path in paths {
        match (module.attribute(&path), replacement.attribute(&path)) {
            // What the module has wins, as where a match is replaced.
            (Ok(attribute), _) => {
                [&mut res.before, &mut res.after].into_iter().for_each(|it| it.set_attribute(&path, attribute.clone()))
            }
            (Err(_), Ok(attribute)) => res.after.set_attribute(&path, attribute.clone()),
            (Err(_), Err(_)) => {}
        }
    }
    let sides = [&res.before, &res.after];
    debug_assert!(sides.iter().all(|it| it.graph.lint(Some(it)).is_empty()), "both sides of a claim are well formed");
    debug_assert!(
        sides.map(|it| placeholders(&it.graph).len()).windows(2).all(|it| it[0] == it[1]),
        "both sides of a claim have the same inputs"
    );
    Ok(res)
}

/// What a claim begins with.
struct Inputs {
    /// The nodes that become inputs, with what is known of them.
    known: Vec<(NodeId, Val)>,
    /// The nodes that are run before the match, since nothing is known of what they give.
    earlier: Vec<NodeId>,
}

fn inputs(module: &GraphModule, found: &InternalMatch, matched: &FxHashSet<NodeId>) -> Result<Inputs> {
    let graph = &module.graph;
    let mut open = Vec::new();
    matched.iter().for_each(|&it| graph.node(it).for_each_input(&mut |input| open.push(input)));
    let bound = found.placeholder_nodes.iter().chain(&found.returning_nodes);
    bound.for_each(|it| it.for_each_node(&mut |node| open.push(node)));
    let (mut seen, mut known, mut earlier) = (matched.clone(), Vec::new(), Vec::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = graph.node(id);
        if let Some(val) = node.meta.val.clone().or_else(|| Some(Val::Tensor(tensor_meta_of(module, id)?.into_owned())))
        {
            known.push((id, val));
        } else if node.op() == Opcode::Placeholder || earlier.len() == MAX_NODES_BEFORE {
            let what = format!("nothing is known of the value of %{}, so it cannot be made at random", node.name());
            return Err(Diagnostic::new(Code::PassFailed, what)
                .help("run FakeTensorProp or ShapeProp on the module before rules are verified"));
        } else {
            earlier.push(id);
            node.for_each_input(&mut |input| open.push(input));
        }
    }
    known.sort_unstable_by(|a, b| graph.compare(a.0, b.0));
    Ok(Inputs { known, earlier })
}

/// Copies nodes of the module, in their order.
fn copy_nodes(graph: &mut Graph, module: &GraphModule, mut nodes: Vec<NodeId>, values: &mut Values) -> Result<()> {
    nodes.sort_unstable_by(|&a, &b| module.graph.compare(a, b));
    for id in nodes {
        let copy = graph.node_copy(module.graph.node(id), &mut |it| mapped(&Arg::Node(it), values))?;
        values.insert(id, Arg::Node(copy));
    }
    Ok(())
}

fn mapped(arg: &Arg, values: &Values) -> Arg {
    arg.map_nodes(&mut |it| values.get(&it).cloned().expect("every input of a claim is in its graphs"))
}

/// What the nodes of a module refer to.
fn paths(module: &GraphModule) -> impl Iterator<Item = Str> {
    references(&module.graph).map(|it| module.graph.node(it).target().clone())
}
