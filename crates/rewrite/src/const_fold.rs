//! Splitting off what depends on constants alone, as a module that a host runs: `torch.fx.experimental.const_fold`. What is
//! computed at once is `constant_fold`.

use crate::effects::AliasAnalysis;
use crate::fuser::replace_uses;
use crate::{Impurity, SplitOptions, split_module};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, Node, NodeId, Opcode, Str, TensorKind};
use tracefx_ops::Registry;

/// The name under which a module holds what was folded.
const FOLDED_ATTRS: &str = "_FX_CONST_FOLDED_ATTRS";

/// What [`split_const_subgraphs`] took out of a module: `FoldedGraphModule`, but for the module itself.
#[derive(Clone, Debug)]
pub struct FoldedGraph {
    /// Computes what depends on constants alone, and takes nothing.
    pub const_subgraph: GraphModule,
    /// The attribute that the module reads the results from: one tensor, or a list of several.
    pub attrs_name: String,
    /// Whether there are several results.
    pub is_list: bool,
}

impl FoldedGraph {
    /// Gives the module that this was taken out of the results of [`FoldedGraph::const_subgraph`], in their order. Nodes that
    /// take a result out of the list read it where it is.
    ///
    /// # Errors
    /// `PassFailed` where there are not as many results as the module reads.
    pub fn keep_results(&self, module: &mut GraphModule, results: Vec<Tensor>) -> Result<()> {
        let mut results = results.into_iter().map(|tensor| Attribute::Tensor { tensor, kind: TensorKind::Parameter });
        if !self.is_list {
            let Some(result) = results.next() else {
                return Err(Diagnostic::new(Code::PassFailed, "the constant part gave no result"));
            };
            module.set_attribute(&self.attrs_name, result);
            return Ok(());
        }
        let results: Vec<Attribute> = results.collect();
        let graph = &mut module.graph;
        let lists: Vec<NodeId> = graph.find_nodes(Opcode::GetAttr, &self.attrs_name).collect();
        for list in lists {
            let mut replaced = FxHashMap::default();
            for item in graph.users(list).iter().collect::<Vec<_>>() {
                let index = match graph.node(item).args() {
                    [_, Arg::Int(index)] if (*index as usize) < results.len() => *index,
                    _ => return Err(Diagnostic::new(Code::PassFailed, "a node reads a result that is not there")),
                };
                let point = graph.set_insert_point(InsertPoint::Before(item))?;
                let read = graph.get_attr(&format!("{}.{index}", self.attrs_name));
                *graph.meta_mut(read) = graph.node(item).meta.clone();
                graph.set_insert_point(point)?;
                replaced.insert(item, read);
            }
            replace_uses(graph, &replaced, &|_| true)?;
            replaced.keys().try_for_each(|&it| graph.erase_node(it))?;
            graph.erase_node(list)?;
        }
        for (index, result) in results.into_iter().enumerate() {
            module.set_attribute(&format!("{}.{index}", self.attrs_name), result);
        }
        Ok(())
    }
}

/// What is folded.
#[derive(Clone, Copy)]
pub struct FoldRules<'a> {
    /// The operators, of which some have effects and stay.
    pub registry: &'a Registry,
    /// Nodes that are not folded, even in the modules that are called: a call is folded as a whole.
    pub is_skipped: &'a dyn Fn(&Node) -> bool,
    /// Nodes that have effects beside those that are known to.
    pub is_impure: &'a dyn Fn(&Node) -> bool,
}

/// Takes what depends on parameters and constants alone out of a module, to be run once:
/// `torch.fx.experimental.const_fold.split_const_subgraphs`. The module is changed in place to read the results from an
/// attribute, which holds an empty tensor or list until they are there. Without anything to fold it stays as it is.
///
/// # Errors
/// `AttributeMissing` and `GraphInvalid` where the module is not well formed, `PartitionCycle` where a region of autocast
/// or of gradients keeps its parts together.
pub fn split_const_subgraphs(module: &mut GraphModule, rules: &FoldRules<'_>) -> Result<Option<FoldedGraph>> {
    let constants = constant_nodes(module, rules);
    if !constants.iter().any(|&it| module.graph.node(it).op() != Opcode::GetAttr) {
        return Ok(None);
    }
    let split =
        split_module(module, rules.registry, &mut |it| i64::from(!constants.contains(&it)), &SplitOptions::default())?;
    let mut res = split.module;
    let mut parts =
        [res.attributes.shift_remove("submod_0"), res.attributes.shift_remove("submod_1")].map(|it| match it {
            Some(Attribute::Module(part)) => Some(*part),
            Some(Attribute::Tensor { .. } | Attribute::Fake { .. }) | None => None,
        });
    let mut names: FxHashMap<Str, Str> = FxHashMap::default();
    for (part, prefix) in parts.iter_mut().zip(["submod_0", "submod_1"]) {
        if let Some(part) = part {
            lift_modules(part, &mut res, &mut names, &|it| Str::clone(&split.qualname_map[&format!("{prefix}.{it}")]))?;
        }
    }
    let [constant, rest] = parts;
    let mut const_subgraph = constant.expect("something is constant");
    let call = res.graph.find_nodes(Opcode::CallModule, "submod_0").next().expect("the first part is called");
    read_attributes(&mut const_subgraph.graph, &res.graph, call)?;
    let output = const_subgraph.graph.output_node().expect("parts have outputs");
    let is_list = matches!(const_subgraph.graph.node(output).args(), [Arg::Tuple(_)]);

    let attrs_name = get_unique_attr_name_in_module(module, FOLDED_ATTRS);
    let point = res.graph.set_insert_point(InsertPoint::Before(call))?;
    let folded = res.graph.get_attr(&attrs_name);
    *res.graph.meta_mut(folded) = res.graph.node(call).meta.clone();
    res.graph.set_insert_point(point)?;
    replace_uses(&mut res.graph, &FxHashMap::from_iter([(call, folded)]), &|_| true)?;
    if let Some(rest) = &rest {
        inline(&mut res.graph, "submod_1", &rest.graph)?;
    }
    let impurity = Impurity { random: true, strict: true };
    let mut graph = std::mem::take(&mut res.graph);
    graph.eliminate_dead_code(&|graph, it| {
        impurity.is_impure(it, graph, &res, rules.registry) || (rules.is_impure)(it)
    })?;

    res.set_attribute(&attrs_name, unfolded(is_list)?);
    let const_subgraph = module_of(const_subgraph.graph, &res)?;
    let folded = module_of(graph, &res)?;
    (module.graph, module.attributes) = (folded.graph, folded.attributes);
    Ok(Some(FoldedGraph { const_subgraph, attrs_name, is_list }))
}

/// A name that the module has no attribute of: the candidate, with a number after it if need be.
pub fn get_unique_attr_name_in_module(module: &GraphModule, candidate: &str) -> String {
    let mut name = String::with_capacity(candidate.len());
    for c in candidate.chars() {
        match c.is_ascii_alphanumeric() || c == '_' {
            true => name.push(c),
            false if name.ends_with('_') => {}
            false => name.push('_'),
        }
    }
    if name.starts_with(|it: char| it.is_ascii_digit()) {
        name.insert(0, '_');
    }
    let (base, mut number) = match name.rsplit_once('_').map(|(base, number)| (base, number.parse::<u64>())) {
        Some((base, Ok(number))) => (base.to_owned(), number),
        Some((_, Err(_))) | None => (name.clone(), 0),
    };
    while module.attributes.contains_key(name.as_str()) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

/// The nodes that read constants, and those that use nothing but such nodes; not what a write changes.
fn constant_nodes(module: &GraphModule, rules: &FoldRules<'_>) -> FxHashSet<NodeId> {
    let graph = &module.graph;
    let mut res = FxHashSet::default();
    let writes = AliasAnalysis::of(module, rules.registry);
    for id in graph.nodes() {
        let node = graph.node(id);
        let is_constant = match node.op() {
            Opcode::Placeholder | Opcode::Output => false,
            Opcode::GetAttr => {
                matches!(module.attribute(node.target()), Ok(Attribute::Tensor { .. } | Attribute::Fake { .. }))
            }
            Opcode::CallFunction | Opcode::CallMethod | Opcode::CallModule => {
                let mut is_constant = true;
                node.for_each_input(&mut |it| is_constant &= res.contains(&it));
                is_constant
            }
        };
        let is_disturbed = || writes.as_ref().is_some_and(|it| !it.leave_alone(graph, id));
        if is_constant && !is_disturbed() && !stays(node, module, rules) {
            res.insert(id);
        }
    }
    res
}

/// Whether a node is not folded although it could be: it is to be skipped or has effects, or what it calls is or has.
fn stays(node: &Node, module: &GraphModule, rules: &FoldRules<'_>) -> bool {
    let impurity = Impurity::default();
    let is_kept = |node: &Node, owner: &GraphModule| {
        (rules.is_skipped)(node) || impurity.is_impure(node, &owner.graph, owner, rules.registry)
    };
    if is_kept(node, module) {
        return true;
    }
    let mut waiting: Vec<&GraphModule> = called(node, module).into_iter().collect();
    while let Some(owner) = waiting.pop() {
        for inner in owner.graph.nodes().map(|it| owner.graph.node(it)) {
            if !matches!(inner.op(), Opcode::Placeholder | Opcode::Output) && is_kept(inner, owner) {
                return true;
            }
            waiting.extend(called(inner, owner));
        }
    }
    false
}

fn called<'a>(node: &Node, owner: &'a GraphModule) -> Option<&'a GraphModule> {
    if node.op() == Opcode::CallModule { owner.submodule(node.target()).ok() } else { None }
}

/// Gives the modules that a part calls to the module that called the part, under names that are free there. `names` has
/// those that were given, by the paths that the modules had, which `path_of` tells.
fn lift_modules(
    part: &mut GraphModule,
    owner: &mut GraphModule,
    names: &mut FxHashMap<Str, Str>,
    path_of: &dyn Fn(&str) -> Str,
) -> Result<()> {
    let calls: Vec<NodeId> = part.graph.nodes().filter(|&it| part.graph.node(it).op() == Opcode::CallModule).collect();
    for call in calls {
        let target = Str::clone(part.graph.node(call).target());
        let path = path_of(&target);
        if !names.contains_key(&path) {
            let name: Str = get_unique_attr_name_in_module(owner, &target).into();
            owner.attributes.insert(Str::clone(&name), part.attribute(&target)?.clone());
            names.insert(Str::clone(&path), name);
        }
        if names[&path] != target {
            part.graph.set_target(call, &names[&path])?;
        }
    }
    Ok(())
}

/// Makes a part read what it is passed.
fn read_attributes(part: &mut Graph, caller: &Graph, call: NodeId) -> Result<()> {
    let inputs: Vec<NodeId> = part.nodes().filter(|&it| part.node(it).op() == Opcode::Placeholder).collect();
    let mut replaced = FxHashMap::default();
    for (&input, arg) in inputs.iter().zip(caller.node(call).args()) {
        let source = caller.node(arg.as_node().expect("parts are passed nodes"));
        part.set_insert_point(InsertPoint::Before(input))?;
        let read = part.get_attr(source.target());
        *part.meta_mut(read) = part.node(input).meta.clone();
        replaced.insert(input, read);
    }
    part.set_insert_point(InsertPoint::End)?;
    replace_uses(part, &replaced, &|_| true)?;
    inputs.into_iter().try_for_each(|it| part.erase_node(it))
}

/// Puts the graph of a module in the place of the call of it.
fn inline(graph: &mut Graph, name: &str, inner: &Graph) -> Result<()> {
    let Some(call) = graph.find_nodes(Opcode::CallModule, name).next() else { return Ok(()) };
    let mut map = vec![None; inner.id_bound()];
    let inputs = inner.nodes().filter(|&it| inner.node(it).op() == Opcode::Placeholder);
    for (input, arg) in inputs.zip(graph.node(call).args()) {
        map[input.index()] = Some(arg.clone());
    }
    let point = graph.set_insert_point(InsertPoint::Before(call))?;
    let result = graph.graph_copy(inner, &mut map)?;
    graph.set_insert_point(point)?;
    let mut replaced = FxHashMap::default();
    let items: Vec<NodeId> = match result {
        Some(Arg::Node(value)) => {
            replaced.insert(call, value);
            vec![]
        }
        Some(Arg::Tuple(values)) => {
            for item in graph.users(call).iter() {
                let value = match graph.node(item).args() {
                    [_, Arg::Int(index)] => values.get(*index as usize).and_then(Arg::as_node),
                    _ => None,
                };
                replaced.insert(item, value.expect("results of parts are taken by their numbers"));
            }
            graph.users(call).iter().collect()
        }
        _ => vec![],
    };
    replace_uses(graph, &replaced, &|_| true)?;
    items.into_iter().chain([call]).try_for_each(|it| graph.erase_node(it))
}

/// What stands for the results until they are there.
fn unfolded(is_list: bool) -> Result<Attribute> {
    if is_list {
        let mut list = GraphModule::new(Graph::new());
        list.class_name = "ParameterList".into();
        return Ok(Attribute::Module(Box::new(list)));
    }
    Ok(Attribute::Tensor { tensor: Tensor::zeros(DType::Float32, &[0])?, kind: TensorKind::Parameter })
}

/// A module of a graph with what it reads and calls of another module.
pub(crate) fn module_of(graph: Graph, owner: &GraphModule) -> Result<GraphModule> {
    let mut res = GraphModule::new(Graph::new());
    for node in graph.nodes().map(|it| graph.node(it)) {
        if matches!(node.op(), Opcode::GetAttr | Opcode::CallModule) {
            res.set_attribute(node.target(), owner.attribute(node.target())?.clone());
        }
    }
    res.graph = graph;
    Ok(res)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    const NEVER: fn(&Node) -> bool = |_| false;

    fn parameter() -> Attribute {
        Attribute::Tensor { tensor: Tensor::zeros(DType::Float32, &[2]).unwrap(), kind: TensorKind::Parameter }
    }

    /// `x + sin(w)`, where the sine is a call of a function or of a module.
    fn module(op: Opcode, target: &str) -> GraphModule {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let w = graph.get_attr("w");
        let sin = graph.create_node(op, target, vec![w.into()], vec![], None).unwrap();
        let add = graph.call_function("torch.ops.aten.add.Tensor", vec![x.into(), sin.into()], vec![]);
        graph.output(add.into());
        let mut module = GraphModule::new(graph);
        module.set_attribute("w", parameter());
        module
    }

    fn fold(module: &mut GraphModule, is_skipped: &dyn Fn(&Node) -> bool) -> Result<Option<FoldedGraph>> {
        split_const_subgraphs(module, &FoldRules { registry: registry(), is_skipped, is_impure: &NEVER })
    }

    #[test]
    fn what_depends_on_constants_alone_is_taken_out() {
        let mut module = module(Opcode::CallFunction, "torch.ops.aten.sin.default");
        module.set_attribute("_FX_CONST_FOLDED_ATTRS", parameter());
        let folded = fold(&mut module, &NEVER).unwrap().unwrap();
        assert_eq!((&*folded.attrs_name, folded.is_list), ("_FX_CONST_FOLDED_ATTRS_1", false));
        assert!(module.graph.lint(Some(&module)).is_empty());
        assert!(folded.const_subgraph.graph.lint(Some(&folded.const_subgraph)).is_empty());
        assert_eq!(module.attributes.keys().map(|it| &**it).collect::<Vec<_>>(), ["_FX_CONST_FOLDED_ATTRS_1"]);
        assert!(fold(&mut module, &NEVER).unwrap().is_none());
    }

    #[test]
    fn results_are_read_where_they_are() {
        let mut module = module(Opcode::CallFunction, "torch.ops.aten.sin.default");
        let [w, output] = ["w", "output"].map(|it| module.graph.find(it).unwrap());
        module.graph.set_insert_point(InsertPoint::Before(output)).unwrap();
        let x = module.graph.find("x").unwrap();
        let cos = module.graph.call_function("torch.ops.aten.cos.default", vec![w.into()], vec![]);
        let mul = module.graph.call_function("torch.ops.aten.mul.Tensor", vec![x.into(), cos.into()], vec![]);
        let add = module.graph.find("add_tensor").unwrap();
        module.graph.set_args(output, vec![Arg::Tuple(vec![mul.into(), add.into()])]).unwrap();
        let folded = fold(&mut module, &NEVER).unwrap().unwrap();
        assert!(folded.is_list);
        let results = vec![Tensor::zeros(DType::Float32, &[2]).unwrap(); 2];
        assert_eq!(folded.keep_results(&mut module.clone(), vec![]).unwrap_err().code(), Code::PassFailed);
        folded.keep_results(&mut module, results).unwrap();
        assert!(module.graph.lint(Some(&module)).is_empty());
        let reads: Vec<&str> = module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect();
        assert_eq!(reads[1..3], ["_FX_CONST_FOLDED_ATTRS.0", "_FX_CONST_FOLDED_ATTRS.1"]);
    }

    #[test]
    fn random_numbers_and_what_is_skipped_stay() {
        let mut random = module(Opcode::CallFunction, "torch.ops.aten.rand_like.default");
        assert!(fold(&mut random, &NEVER).unwrap().is_none());
        let mut skipped = module(Opcode::CallFunction, "torch.ops.aten.sin.default");
        assert!(fold(&mut skipped, &|it| &**it.name() == "sin_default").unwrap().is_none());
    }

    #[test]
    fn a_module_is_folded_as_a_whole_unless_something_in_it_stays() {
        let mut outer = module(Opcode::CallModule, "inner.sine");
        outer.set_attribute("inner.sine", Attribute::Module(Box::new(module(Opcode::CallFunction, "torch.sin"))));
        let mut other = outer.clone();
        let folded = fold(&mut outer, &NEVER).unwrap().unwrap();
        assert!(folded.const_subgraph.submodule("inner_sine").is_ok());
        assert!(fold(&mut other, &|it| &**it.target() == "torch.sin").unwrap().is_none());
    }

    #[test]
    fn a_module_that_both_parts_call_is_one() {
        let mut module = module(Opcode::CallModule, "inner.sine");
        let sine = GraphModule::new(Graph::new());
        module.set_attribute("inner.sine", Attribute::Module(Box::new(sine)));
        let [add, output] = ["add_tensor", "output"].map(|it| module.graph.find(it).unwrap());
        module.graph.set_insert_point(InsertPoint::Before(output)).unwrap();
        let again = module.graph.create_node(Opcode::CallModule, "inner.sine", vec![add.into()], vec![], None).unwrap();
        module.graph.set_args(output, vec![again.into()]).unwrap();
        let folded = fold(&mut module, &NEVER).unwrap().unwrap();
        assert!(folded.const_subgraph.submodule("inner_sine").is_ok() && module.submodule("inner_sine").is_ok());
    }

    #[test]
    fn a_missing_attribute_is_told() {
        let mut module = module(Opcode::CallFunction, "torch.sin");
        let other = module.graph.get_attr("none");
        let output = module.graph.output_node().unwrap();
        module.graph.move_before(other, output).unwrap();
        assert_eq!(fold(&mut module, &NEVER).unwrap_err().code(), Code::AttributeMissing);
    }

    #[test]
    fn names_of_attributes_are_identifiers_that_are_free() {
        let mut module = GraphModule::new(Graph::new());
        module.set_attribute("a_b", parameter());
        module.set_attribute("a_b_1", parameter());
        for (candidate, name) in [("a.b", "a_b_2"), ("a..b", "a_b_2"), ("a_b_1", "a_b_2"), ("3", "_3"), ("c", "c")] {
            assert_eq!(get_unique_attr_name_in_module(&module, candidate), name);
        }
    }
}
