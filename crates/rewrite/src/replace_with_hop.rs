//! Regions without gradients, or under autocast, as graphs of their own: `replace_set_grad_with_hop_pass` and
//! `replace_autocast_with_hop_pass` of `torch._export.passes`.
//!
//! A traced graph says where a region begins and ends. The graph is split there; the parts that are regions are called by a
//! higher-order operator, and the others are put back.

use crate::PassResult;
use crate::split_module::{SplitModule, SplitOptions, keep_notes, split_module};
use crate::switches::{ENTER_AUTOCAST, EXIT_AUTOCAST, SET_GRAD_ENABLED};
use indexmap::IndexMap;
use std::collections::HashMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, NodeId, Opcode, Str, Val};
use tracefx_ops::Registry;

/// How deep graphs may call each other. What walks them recurs.
const MAX_DEPTH: usize = 200;

/// What kind of region is taken out.
#[derive(Clone, Copy)]
enum Region {
    SetGrad,
    Autocast,
}

/// Makes graphs of the regions that `torch._C._set_grad_enabled` nodes begin, and calls them by `wrap_with_set_grad_enabled`:
/// `replace_set_grad_with_hop_pass`. Where a node says what holds anyway, that gradients are on, there is no such graph.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(false)], vec![]);
/// let sin = graph.call_function("torch.ops.aten.sin.default", vec![x.into()], vec![]);
/// graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(true)], vec![]);
/// let neg = graph.call_function("torch.ops.aten.neg.default", vec![sin.into()], vec![]);
/// graph.output(Arg::Tuple(vec![neg.into()]));
/// let mut module = GraphModule::new(graph);
/// tracefx_rewrite::replace_set_grad_with_hop(&mut module, tracefx_ops::registry())?;
/// let wrap = module.graph.nodes().find(|it| module.graph.node(*it).target().ends_with("wrap_with_set_grad_enabled"));
/// assert_eq!(module.graph.node(wrap.unwrap()).args()[0], Arg::Bool(false));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// As [`split_module`]; `LimitExceeded` where graphs call each other too deep.
pub fn replace_set_grad_with_hop(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    replace(module, registry, Region::SetGrad, 0)
}

/// Makes graphs of what is between `_enter_autocast` and `_exit_autocast`, the outermost ones, and calls them by
/// `wrap_with_autocast`: `replace_autocast_with_hop_pass`.
///
/// # Errors
/// As [`replace_set_grad_with_hop`].
pub fn replace_autocast_with_hop(module: &mut GraphModule, registry: &Registry) -> Result<PassResult> {
    replace(module, registry, Region::Autocast, 0)
}

fn replace(module: &mut GraphModule, registry: &Registry, region: Region, depth: usize) -> Result<PassResult> {
    if depth > MAX_DEPTH {
        return Err(Diagnostic::new(Code::LimitExceeded, "the graphs of the module call each other too deep"));
    }
    let mut modified = false;
    if module.graph.nodes().any(|it| region.is_boundary(&module.graph, it)) {
        split_regions(module, registry, region)?;
        modified = true;
    }
    let reads = module.graph.nodes().filter(|it| module.graph.node(*it).op() == Opcode::GetAttr);
    let called: Vec<Str> = reads.map(|it| module.graph.node(it).target().clone()).collect();
    for name in called {
        if let Some(Attribute::Module(inner)) = module.attributes.get_mut(&name) {
            modified |= replace(inner, registry, region, depth + 1)?.modified;
        }
    }
    Ok(PassResult::new(modified))
}

/// Splits the graph at the boundaries, and puts together what is no region.
fn split_regions(module: &mut GraphModule, registry: &Registry, region: Region) -> Result<()> {
    let parts = region.parts(&module.graph)?;
    let options = SplitOptions { keep_original_order: true, keep_original_node_name: true, ..SplitOptions::default() };
    let SplitModule { module: mut split, qualname_map: paths, .. } =
        split_module(module, registry, &mut |it| parts.get(&it).copied().unwrap_or(0), &options)?;
    let mut called = Called { paths, placed: HashMap::new() };
    let calls: Vec<NodeId> =
        split.graph.nodes().filter(|it| split.graph.node(*it).op() == Opcode::CallModule).collect();
    for call in calls {
        let name = split.graph.node(call).target().clone();
        let boundary = region.boundary_of(split.submodule(&name)?);
        match boundary {
            Some(boundary) => wrap(&mut split, call, boundary, region)?,
            None => {
                erase_boundaries(&mut split, &name, region)?;
                inline(&mut split, call, &mut called)?;
            }
        }
    }
    module.graph = split.graph;
    module.attributes = split.attributes;
    Ok(())
}

impl Region {
    const fn operator(self) -> (&'static str, &'static str) {
        match self {
            Region::SetGrad => ("wrap_with_set_grad_enabled", "WrapWithSetGradEnabled"),
            Region::Autocast => ("wrap_with_autocast", "WrapWithAutocast"),
        }
    }

    fn is_boundary(self, graph: &Graph, node: NodeId) -> bool {
        let node = graph.node(node);
        let target = &**node.target();
        node.op() == Opcode::CallFunction
            && match self {
                Region::SetGrad => target == SET_GRAD_ENABLED,
                Region::Autocast => target == ENTER_AUTOCAST || target == EXIT_AUTOCAST,
            }
    }

    /// The number of the part of each node: another one from each boundary on, of autocast from the outermost ones.
    fn parts(self, graph: &Graph) -> Result<HashMap<NodeId, i64>> {
        let (mut part, mut open, mut has_ended) = (0, Vec::new(), false);
        let mut parts = HashMap::new();
        for id in graph.nodes() {
            let node = graph.node(id);
            match self {
                Region::SetGrad => part += i64::from(self.is_boundary(graph, id)),
                Region::Autocast => {
                    let enters = self.is_boundary(graph, id) && &**node.target() == ENTER_AUTOCAST;
                    part += i64::from(has_ended || (open.is_empty() && enters));
                    has_ended = false;
                    if enters {
                        open.push(id);
                    } else if self.is_boundary(graph, id) {
                        if open.pop() != node.args().first().and_then(Arg::as_node) {
                            let what = "the autocast that is left is not the one that was entered last";
                            return Err(Diagnostic::new(Code::PassFailed, what).node(&**node.name()));
                        }
                        has_ended = open.is_empty();
                    }
                }
            }
            parts.insert(id, part);
        }
        Ok(parts)
    }

    /// The node that makes a part a region: the first of its kind, if it says something that does not hold anyway. What
    /// comes before it, such as the graphs of control flow, which are read first, or autocast around the region, which is
    /// entered in each of its parts, does not count: PyTorch takes such a part for none, and loses what holds there.
    fn boundary_of(self, part: &GraphModule) -> Option<NodeId> {
        let graph = &part.graph;
        let first = graph.nodes().find(|it| self.is_boundary(graph, *it))?;
        let (target, args) = (graph.node(first).target(), graph.node(first).args());
        let begins = match self {
            Region::SetGrad => args.first() != Some(&Arg::Bool(true)),
            Region::Autocast => &**target == ENTER_AUTOCAST,
        };
        begins.then_some(first)
    }
}

/// Calls a part by the higher-order operator, which gives a tuple.
fn wrap(module: &mut GraphModule, call: NodeId, boundary: NodeId, region: Region) -> Result<()> {
    let name = module.graph.node(call).target().clone();
    let inner = part_mut(module, &name)?;
    let output = inner.graph.output_node().ok_or_else(|| no_output(&name))?;
    let result = inner.graph.node(output).args().first().cloned().unwrap_or(Arg::None);
    let (results, is_single) = match result {
        Arg::Tuple(items) | Arg::List(items) => (items, false),
        single => (vec![single], true),
    };
    if is_single {
        inner.graph.set_args(output, vec![Arg::Tuple(results.clone())])?;
    }
    let results: Vec<_> = results.iter().filter_map(Arg::as_node).map(|it| inner.graph.node(it).clone()).collect();
    let entered = inner.graph.node(boundary).clone();
    erase_boundaries(module, &name, region)?;

    let graph = &mut module.graph;
    let before = graph.set_insert_point(InsertPoint::Before(call))?;
    let body = graph.get_attr(&name);
    keep_notes(graph, body, &entered)?;
    graph.meta_mut(body).val = None;
    let (operator, class) = region.operator();
    let args = [entered.args(), &[Arg::Node(body)], graph.node(call).args()].concat();
    let target = format!("torch.ops.higher_order.{operator}");
    let given = is_single.then(|| results[0].name().clone());
    let wrapped = graph.create_node(Opcode::CallFunction, &target, args, vec![], given.as_deref())?;
    keep_notes(graph, wrapped, &entered)?;
    let items = results.iter().map(|it| it.meta.val.clone().unwrap_or(Val::None)).collect();
    let meta = graph.meta_mut(wrapped);
    meta.val = Some(Val::Seq { items, is_tuple: true });
    meta.entries.insert("torch_fn".into(), format!("{operator};{class}.{operator}").into());
    if is_single {
        let item = graph.call_function("operator.getitem", vec![Arg::Node(wrapped), Arg::Int(0)], vec![]);
        keep_notes(graph, item, &results[0])?;
        graph.replace_all_uses_with(call, item, &mut |_, _| true)?;
    } else {
        for item in graph.replace_all_uses_with(call, wrapped, &mut |_, _| true)? {
            let [_, Arg::Int(index)] = graph.node(item).args() else { continue };
            let Some(result) = usize::try_from(*index).ok().and_then(|it| results.get(it)) else { continue };
            graph.rename(item, result.name());
            keep_notes(graph, item, result)?;
        }
    }
    graph.set_insert_point(before)?;
    graph.erase_node(call)
}

fn erase_boundaries(module: &mut GraphModule, name: &str, region: Region) -> Result<()> {
    let graph = &mut part_mut(module, name)?.graph;
    let nodes: Vec<NodeId> = graph.nodes().filter(|it| region.is_boundary(graph, *it)).collect();
    let outermost = match (region, nodes.as_slice()) {
        // Autocast within autocast is taken out of the graph of the outer one.
        (Region::Autocast, [first, .., last]) => vec![*last, *first],
        (Region::Autocast | Region::SetGrad, all) => all.to_vec(),
    };
    outermost.into_iter().try_for_each(|it| graph.erase_node(it))
}

/// The modules that the parts call.
struct Called {
    /// For each, by its path through the part, the path that it had.
    paths: IndexMap<String, Str>,
    /// For the paths that they had the new ones, of those that were put back.
    placed: HashMap<Str, Str>,
}

impl Called {
    /// Puts a module of a part back, once, and gives its path.
    fn put_back(&mut self, module: &mut GraphModule, part: (&str, &GraphModule), name: &Str) -> Result<Str> {
        let path = self.paths.get(&format!("{}.{name}", part.0)).unwrap_or(name);
        if let Some(placed) = self.placed.get(path) {
            return Ok(placed.clone());
        }
        let placed = free_name(module, path);
        module.set_attribute(&placed, part.1.attribute(name)?.clone());
        self.placed.insert(path.clone(), placed.clone());
        Ok(placed)
    }
}

/// Puts the nodes of a part in the place of its call.
fn inline(module: &mut GraphModule, call: NodeId, called: &mut Called) -> Result<()> {
    let name = module.graph.node(call).target().clone();
    let part = part_mut(module, &name)?.clone();
    let mut given = module.graph.node(call).args().to_vec().into_iter();
    let mut known: HashMap<NodeId, Arg> = HashMap::new();
    let before = module.graph.set_insert_point(InsertPoint::Before(call))?;
    for id in part.graph.nodes() {
        let node = part.graph.node(id);
        match node.op() {
            Opcode::Placeholder => {
                known.insert(id, given.next().unwrap_or(Arg::None));
            }
            Opcode::Output => replace_results(&mut module.graph, call, node.args().first(), &known)?,
            Opcode::GetAttr | Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {
                let copy = module.graph.node_copy(node, &mut |it| known[&it].clone())?;
                known.insert(id, Arg::Node(copy));
                let target = match node.op() {
                    // As in PyTorch each read has a graph of its own.
                    Opcode::GetAttr => {
                        let target = free_name(module, node.target());
                        module.set_attribute(&target, part.attribute(node.target())?.clone());
                        target
                    }
                    Opcode::CallModule => called.put_back(module, (&name, &part), node.target())?,
                    _ => continue,
                };
                module.graph.set_target(copy, &target)?;
            }
        }
    }
    module.graph.set_insert_point(before)?;
    module.graph.erase_node(call)?;
    module.attributes.shift_remove(&name);
    Ok(())
}

fn replace_results(graph: &mut Graph, call: NodeId, result: Option<&Arg>, known: &HashMap<NodeId, Arg>) -> Result<()> {
    let node_of = |it: &Arg| known.get(&it.as_node()?)?.as_node();
    match result {
        Some(Arg::Tuple(items) | Arg::List(items)) => {
            let reads: Vec<NodeId> = graph.users(call).iter().collect();
            for read in reads {
                let [_, Arg::Int(index)] = graph.node(read).args() else { continue };
                let item = usize::try_from(*index).ok().and_then(|it| items.get(it)).and_then(node_of);
                let Some(item) = item else { continue };
                graph.replace_all_uses_with(read, item, &mut |_, _| true)?;
                graph.erase_node(read)?;
            }
        }
        Some(single) => {
            if let Some(value) = node_of(single) {
                graph.replace_all_uses_with(call, value, &mut |_, _| true)?;
            }
        }
        None => {}
    }
    Ok(())
}

/// The name, or where the module has it the first free one of `submod_1`, `submod_2`…
fn free_name(module: &GraphModule, name: &Str) -> Str {
    let numbered = (1..).map(|it| Str::from(format!("submod_{it}")));
    let names = [name.clone()].into_iter().chain(numbered);
    let mut free = names.skip_while(|it| module.attribute(it).is_ok());
    free.next().expect("there are more numbers than attributes")
}

fn part_mut<'m>(module: &'m mut GraphModule, name: &str) -> Result<&'m mut GraphModule> {
    match module.attributes.get_mut(name) {
        Some(Attribute::Module(part)) => Ok(part),
        Some(Attribute::Tensor { .. } | Attribute::Fake { .. }) | None => {
            Err(Diagnostic::new(Code::AttributeMissing, format!("there is no part `{name}`")))
        }
    }
}

fn no_output(name: &str) -> Diagnostic {
    Diagnostic::new(Code::GraphInvalid, format!("the part `{name}` has no output"))
}
