//! What depends on constants alone, computed once and kept: inductor's `constant_fold`.

use crate::const_fold::module_of;
use crate::dead_code::{DeadCodeOptions, eliminate_dead_code};
use crate::effects::memory;
use crate::fuser::replace_uses;
use crate::switches::is_switch;
use crate::write_order::WriteOrder;
use crate::{Impurity, PassResult};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::{Executor, Interpreter, propagate};
use tracefx_ir::{
    Arg, Attribute, Graph, GraphModule, InsertPoint, Node, NodeId, Opcode, Str, TensorKind, TensorMeta, Val,
};
use tracefx_ops::{Propagation, Registry, Symbols, Tags, Value};

/// Methods that are no operators, and tell of tensors what never changes.
const METHODS: &[&str] = &["dim", "ndimension", "size"];

/// Operators of quantization that stay, so that what is kept stays small and a backend can fuse them.
const DEQUANTIZE: &str = "torch.ops.quantized_decomposed.dequantize_";

/// Tells of a node whether it may be folded: inductor's `constraint_fn`.
pub type FoldConstraint<'a> = &'a dyn Fn(NodeId, &Node) -> bool;

/// What [`constant_fold`] folds.
#[derive(Clone, Copy, Default)]
pub struct ConstantFoldOptions<'a> {
    /// Which nodes may be folded; all where nothing is said. Of one that may not, what it takes still may.
    pub constraint: Option<FoldConstraint<'a>>,
    /// The most bytes of one tensor that is made; of what would be larger, what it takes is folded.
    pub max_bytes: Option<u64>,
}

/// Constants to be computed.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Takes nothing, and gives a tuple of the tensors.
    pub module: GraphModule,
    /// The attributes in which they are to be kept, in the same order.
    pub names: Vec<String>,
}

impl Constants {
    /// Computes the constants, and keeps them in the module that they were taken from.
    ///
    /// # Errors
    /// What a node refuses that is computed, with its name.
    pub fn compute(&self, module: &mut GraphModule, executor: Executor<'_>) -> Result<()> {
        let Value::List(results) = Interpreter::new(&self.module, executor).run(&[])? else {
            return Err(Diagnostic::new(Code::PassFailed, "the constant part gave no tuple"));
        };
        for (name, result) in self.names.iter().zip(results) {
            let Value::Tensor(tensor) = result else {
                return Err(Diagnostic::new(Code::PassFailed, "a constant is no tensor").node(&**name));
            };
            module.set_attribute(name, Attribute::Tensor { tensor, kind: TensorKind::Buffer });
        }
        Ok(())
    }
}

/// Computes what depends on the tensors of a module alone, and makes the graph read the results from new attributes:
/// inductor's `constant_fold`. What is random, writes, or is written to stays, and so do the old attributes that something
/// else reads. The module is as it was where this fails.
///
/// # Errors
/// As [`take_constants`] and [`Constants::compute`].
///
/// # Example
/// ```
/// use tracefx_core::Tensor;
/// use tracefx_exec::Executor;
/// use tracefx_ir::{Attribute, Graph, GraphModule, TensorKind};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::{ConstantFoldOptions, constant_fold};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let weight = graph.get_attr("weight");
/// let exp = graph.call_function("torch.ops.aten.exp.default", vec![weight.into()], vec![]);
/// let add = graph.call_function("torch.ops.aten.add.Tensor", vec![x.into(), exp.into()], vec![]);
/// graph.output(add.into());
/// let mut module = GraphModule::new(graph);
/// let tensor = Tensor::from_slice(&[0.0f32], &[1])?;
/// module.set_attribute("weight", Attribute::Tensor { tensor, kind: TensorKind::Parameter });
///
/// let executor = Executor::new(registry(), tracefx_cpu::kernels());
/// assert!(constant_fold(&mut module, executor, ConstantFoldOptions::default())?.modified);
/// let Attribute::Tensor { tensor, .. } = module.attribute("_frozen_param0")? else { panic!("a tensor") };
/// assert_eq!(tensor.to_vec::<f32>()?, [1.0]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub fn constant_fold(
    module: &mut GraphModule,
    executor: Executor<'_>,
    options: ConstantFoldOptions<'_>,
) -> Result<PassResult> {
    let mut changed = module.clone();
    let constants = take_constants(&mut changed, executor.registry(), options)?;
    if let Some(constants) = &constants {
        constants.compute(&mut changed, executor)?;
        *module = changed;
    }
    Ok(PassResult::new(constants.is_some()))
}

/// Makes a module read what it would compute from constants alone out of attributes, `_frozen_param0` and so on, and gives
/// what computes these: the host puts the tensors there. Nothing else is left of the nodes, and attributes of the module that
/// only these read are dropped, but for those of modules within it. What writes, what is random, calls of modules, and calls
/// that take no tensor (`torch.zeros(3)`) are never folded, nor is what something writes to.
///
/// `torch._inductor.constant_folding.constant_fold`, but that a list of tensors is never left for one of its items. Without
/// anything to fold the module stays as it is. Takes linear time.
///
/// # Errors
/// `AttributeMissing` and `GraphInvalid` where the module is not well formed; what [`propagate`] refuses.
pub fn take_constants(
    module: &mut GraphModule,
    registry: &Registry,
    options: ConstantFoldOptions<'_>,
) -> Result<Option<Constants>> {
    // What is dead goes first: a dead write would keep from being folded what a second run folds.
    let mut live = module.clone();
    let dead = DeadCodeOptions { strict: true, ..DeadCodeOptions::default() };
    eliminate_dead_code(&mut live, registry, &dead)?;
    let order = WriteOrder::of(&live, registry);
    let constants = constants_of(&live, &order, registry);
    let Some((mut part, copies)) = copy(&live, &constants)? else { return Ok(None) };
    propagate(&mut part, &[], Propagation::new(registry, &Symbols::default()))?;

    let folded = folded(&live, &constants, &order, options, &|it| copies.get(&it).map(|it| part.graph.node(*it)));
    if folded.is_empty() {
        return Ok(None);
    }
    let output = part.graph.output_node().expect("the copy has an output");
    part.graph.set_args(output, vec![Arg::Tuple(folded.iter().map(|it| Arg::Node(copies[it])).collect())])?;
    let vals = folded.iter().map(|it| part.graph.node(copies[it]).meta.val.clone()).collect();
    part.graph.eliminate_dead_code(&|_, it| it.op() == Opcode::Output)?;
    let part = module_of(std::mem::take(&mut part.graph), &part)?;

    let read_before = attributes_read(&module.graph);
    let names = read_instead(&mut live, &folded, vals)?;
    eliminate_dead_code(&mut live, registry, &dead)?;
    *module = live;
    let read_now = attributes_read(&module.graph);
    let is_dropped = |name: &Str, it: &Attribute| {
        !matches!(it, Attribute::Module(_)) && read_before.contains(name) && !read_now.contains(name)
    };
    module.attributes.retain(|name, it| !is_dropped(name, it));
    Ok(Some(Constants { module: part, names }))
}

/// The nodes that read constants, and those that compute something from these alone, in order. What is computed may be
/// written to afterwards, and is a constant until then.
pub(crate) fn constants_of(module: &GraphModule, order: &WriteOrder, registry: &Registry) -> Vec<NodeId> {
    let graph = &module.graph;
    let called: FxHashSet<&str> = graph
        .nodes()
        .map(|it| graph.node(it))
        .filter(|it| it.op() == Opcode::CallModule)
        .map(|it| &**it.target())
        .collect();
    let is_of_called = |path: &str| path.match_indices('.').any(|(at, _)| called.contains(&path[..at]));
    let mut is_constant = vec![false; graph.id_bound()];
    let mut res = Vec::new();
    let mut is_switched = false;
    for id in graph.nodes() {
        let node = graph.node(id);
        is_switched |= is_switch(node);
        // What is folded is computed as it is before the first switch, without autocast.
        is_constant[id.index()] = !is_switched
            && match node.op() {
                Opcode::GetAttr => {
                    let is_tensor = module.attribute(node.target()).is_ok_and(|it| memory(it).is_some());
                    is_tensor && !order.is_written(id) && !is_of_called(node.target())
                }
                Opcode::CallFunction | Opcode::CallMethod => {
                    let (mut n_inputs, mut are_constant) = (0, true);
                    node.for_each_input(&mut |it| {
                        n_inputs += 1;
                        are_constant &= is_constant[it.index()];
                    });
                    are_constant &= n_inputs > 0 && !order.is_written_before(graph, id);
                    are_constant && is_pure(node, module, registry)
                }
                Opcode::Placeholder | Opcode::CallModule | Opcode::Output => false,
            };
        if is_constant[id.index()] {
            res.push(id);
        }
    }
    res
}

/// Whether a call gives the same whenever it is made, and does nothing else.
fn is_pure(node: &Node, module: &GraphModule, registry: &Registry) -> bool {
    let target = &**node.target();
    let impurity = Impurity { random: true, strict: true };
    if impurity.is_impure(node, &module.graph, module, registry) || target.starts_with(DEQUANTIZE) {
        return false;
    }
    if node.op() == Opcode::CallMethod && METHODS.contains(&target) {
        return true;
    }
    if registry.get(target).is_some() || target.starts_with("operator.") || target == "builtins.getattr" {
        return true;
    }
    if target.starts_with("torch.ops.") || (node.op() == Opcode::CallFunction && !target.starts_with("torch.")) {
        return false;
    }
    let name = target.rsplit('.').next().unwrap_or(target);
    registry.overloads(&format!("aten.{name}")).is_ok_and(|it| it.iter().all(|it| !it.def.tags.has(Tags::RANDOM)))
}

/// A module of these nodes, which gives all of them, and the copy of each; nothing where they only read attributes.
fn copy(module: &GraphModule, nodes: &[NodeId]) -> Result<Option<(GraphModule, FxHashMap<NodeId, NodeId>)>> {
    let is_read = |it: &NodeId| module.graph.node(*it).op() == Opcode::GetAttr;
    if nodes.iter().all(is_read) {
        return Ok(None);
    }
    let mut graph = Graph::new();
    let mut copies = FxHashMap::default();
    for &id in nodes {
        let made = graph.node_copy(module.graph.node(id), &mut |it| Arg::Node(copies[&it]))?;
        copies.insert(id, made);
    }
    graph.output(Arg::Tuple(nodes.iter().map(|it| Arg::Node(copies[it])).collect()));
    Ok(Some((module_of(graph, module)?, copies)))
}

/// The tensors that something else than folded nodes takes. A constant that is not kept as an attribute, such as a number,
/// is computed again, from what it takes.
fn folded<'a>(
    module: &GraphModule,
    constants: &[NodeId],
    order: &WriteOrder,
    options: ConstantFoldOptions<'_>,
    copy_of: &dyn Fn(NodeId) -> Option<&'a Node>,
) -> Vec<NodeId> {
    let graph = &module.graph;
    let mut is_taken = vec![true; graph.id_bound()];
    constants.iter().for_each(|it| is_taken[it.index()] = false);
    let is_inside = is_taken.iter().map(|it| !it).collect::<Vec<_>>();
    for &id in constants {
        is_taken[id.index()] = graph.users(id).iter().any(|it| !is_inside[it.index()]);
    }
    let mut res = Vec::new();
    for &id in constants.iter().rev().filter(|it| graph.node(**it).op() != Opcode::GetAttr) {
        if !is_taken[id.index()] {
            continue;
        }
        let val = copy_of(id).and_then(|it| it.meta.val.as_ref());
        let fits = matches!(val, Some(Val::Tensor(it)) if options.max_bytes.is_none_or(|max| bytes(it).is_some_and(|it| it <= max)));
        // A write would change what is kept.
        if fits && !order.is_written(id) && options.constraint.is_none_or(|it| it(id, graph.node(id))) {
            res.push(id);
        } else {
            graph.node(id).for_each_input(&mut |it| is_taken[it.index()] = true);
        }
    }
    res.reverse();
    res
}

fn bytes(meta: &TensorMeta) -> Option<u64> {
    let elements = meta.sizes.iter().try_fold(1u64, |all, it| all.checked_mul(u64::try_from(it.as_int()?).ok()?))?;
    elements.checked_mul(meta.dtype.size() as u64)
}

/// Puts reads of new attributes in the place of nodes, and gives the names of these.
fn read_instead(module: &mut GraphModule, nodes: &[NodeId], vals: Vec<Option<Val>>) -> Result<Vec<String>> {
    let (mut number, mut names) = (0, Vec::with_capacity(nodes.len()));
    let mut replaced = FxHashMap::default();
    let before = module.graph.insert_point();
    for (&id, val) in nodes.iter().zip(vals) {
        let name = loop {
            let name = format!("_frozen_param{number}");
            number += 1;
            if !module.attributes.contains_key(name.as_str()) {
                break name;
            }
        };
        module.graph.set_insert_point(InsertPoint::Before(id))?;
        let read = module.graph.get_attr(&name);
        let mut meta = module.graph.node(id).meta.clone();
        meta.val = meta.val.or(val);
        *module.graph.meta_mut(read) = meta;
        replaced.insert(id, read);
        names.push(name);
    }
    module.graph.set_insert_point(before)?;
    replace_uses(&mut module.graph, &replaced, &|_| true)?;
    nodes.iter().rev().try_for_each(|&it| module.graph.erase_node(it))?;
    Ok(names)
}

fn attributes_read(graph: &Graph) -> FxHashSet<Str> {
    let reads = graph.nodes().map(|it| graph.node(it)).filter(|it| it.op() == Opcode::GetAttr);
    reads.map(|it| it.target().clone()).collect()
}
