//! Common subexpressions: `torch.fx.passes.dialect.common.cse_pass`.

use crate::switches::is_switch;
use crate::write_order::WriteOrder;
use crate::{Pass, PassResult};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use serde::Deserialize;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use tracefx_core::Result;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;
use ts_rs::TS;

/// The operators that must not be merged because two calls of them give different values or change something:
/// `get_CSE_banned_ops()`.
pub const CSE_BANNED_OPS: &[&str] = &[
    "torch.ops.aten._fused_dropout",
    "torch.ops.aten._standard_gamma",
    "torch.ops.aten.add_",
    "torch.ops.aten.bernoulli",
    "torch.ops.aten.binomial",
    "torch.ops.aten.div_",
    "torch.ops.aten.dropout",
    "torch.ops.aten.lerp_",
    "torch.ops.aten.mul_",
    "torch.ops.aten.multinomial",
    "torch.ops.aten.native_dropout",
    "torch.ops.aten.normal",
    "torch.ops.aten.poisson",
    "torch.ops.aten.pow_",
    "torch.ops.aten.rand",
    "torch.ops.aten.rand_like",
    "torch.ops.aten.randint",
    "torch.ops.aten.randn",
    "torch.ops.aten.randperm",
    "torch.ops.aten.relu_",
    "torch.ops.aten.rrelu",
    "torch.ops.aten.sigmoid_",
    "torch.ops.aten.sub_",
    "torch.ops.aten.tanh_",
];

/// Merges calls that compute the same from the same, in place: the first of them stays, under its name. Inputs, the
/// output and attributes are never merged.
///
/// Arguments are the same where they are written the same: `add(x, y)` is not `add(y, x)`, and an argument by position is
/// not one by name. Unlike PyTorch's pass, this one tells `1`, `1.0` and `True` apart, and `0.0` from `-0.0`, and takes
/// slices, and merges no calls between which something writes to what they take, nor calls whose results something writes to
/// later. Takes time linear in the number of nodes; a second run changes nothing.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::{CsePass, Pass};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let a = graph.call_function("torch.relu", vec![Arg::Node(x)], vec![]);
/// let b = graph.call_function("torch.relu", vec![Arg::Node(x)], vec![]);
/// graph.output(Arg::Tuple(vec![Arg::Node(a), Arg::Node(b)]));
/// let mut module = GraphModule::new(graph);
/// assert!(CsePass::new(registry()).call(&mut module).unwrap().modified);
/// assert!(module.graph.to_string().ends_with("return (relu, relu)"));
/// ```
#[derive(Clone, Debug)]
pub struct CsePass<'a> {
    /// The operators, of which some write.
    pub registry: &'a Registry,
    /// What is merged.
    pub options: CseOptions,
}

/// What [`CsePass`] merges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CseOptions {
    /// Functions that are not merged, such as `torch.ops.aten.rand_like`, of which all overloads are meant, or one overload.
    pub banned_ops: Vec<String>,
}

impl CseOptions {
    /// Those for functional graphs, with [`CSE_BANNED_OPS`].
    pub fn functional() -> Self {
        CseOptions { banned_ops: CSE_BANNED_OPS.iter().map(|it| (*it).to_owned()).collect() }
    }
}

impl<'a> CsePass<'a> {
    /// The pass, which merges all that it can.
    pub fn new(registry: &'a Registry) -> Self {
        CsePass { registry, options: CseOptions::default() }
    }
}

impl Pass for CsePass<'_> {
    fn name(&self) -> &str {
        "CSEPass"
    }

    fn call(&self, module: &mut GraphModule) -> Result<PassResult> {
        if let Some(problem) = module.graph.lint(None).into_iter().next() {
            return Err(problem);
        }
        let banned = self.options.banned_ops.iter().map(|it| operator_of(it)).collect();
        let order = WriteOrder::of(module, self.registry);
        let graph = &mut module.graph;
        let Some(representatives) = representatives(graph, &banned, &order) else {
            return Ok(PassResult::default());
        };
        merge(graph, &representatives)?;
        Ok(PassResult::new(true))
    }
}

/// The first node that computes what each node computes; nothing where all are first.
#[expect(clippy::mutable_key_type, reason = "what represents an argument is settled before a call becomes a key")]
fn representatives(graph: &Graph, banned: &FxHashSet<&str>, order: &WriteOrder) -> Option<Vec<Cell<Option<NodeId>>>> {
    let first = vec![Cell::new(None); graph.id_bound()];
    let mut known = FxHashMap::<Call<'_>, NodeId>::with_capacity_and_hasher(graph.len(), FxBuildHasher);
    let mut is_changed = false;
    for id in graph.nodes() {
        let node = graph.node(id);
        let is_switch = is_switch(node);
        if is_switch {
            // What was called before computes in another dtype, or records no gradients.
            known.clear();
        }
        let may_merge = match node.op() {
            _ if is_switch => false,
            Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => false,
            Opcode::CallMethod | Opcode::CallModule => !banned.contains(&**node.target()),
            Opcode::CallFunction if banned.is_empty() => true,
            Opcode::CallFunction => {
                let operator = operator_of(node.target());
                !banned.contains(operator) && !banned.contains(packet_of(operator))
            }
        };
        let mut representative = id;
        if may_merge && !order.is_writer(id) && !order.is_written_after(id) {
            let since = order.last_write(graph, id);
            representative = *known.entry(Call { graph, first: &first, id, since }).or_insert(id);
            is_changed |= representative != id;
        }
        first[id.index()].set(Some(representative));
    }
    drop(known);
    is_changed.then_some(first)
}

/// Makes everything use the representatives, and erases the others.
fn merge(graph: &mut Graph, first: &[Cell<Option<NodeId>>]) -> Result<()> {
    let representative = |it: NodeId| first[it.index()].get().unwrap_or(it);
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for &id in nodes.iter().filter(|&&it| representative(it) == it) {
        let node = graph.node(id);
        let mut is_changed = false;
        node.for_each_input(&mut |it| is_changed |= representative(it) != it);
        if !is_changed {
            continue;
        }
        let mut map = |it| Arg::Node(representative(it));
        let args = node.args().iter().map(|it| it.map_nodes(&mut map)).collect();
        let kwargs = node.kwargs().iter().map(|(key, it)| (key.clone(), it.map_nodes(&mut map))).collect();
        // The value is what it was, since the new arguments have the values of the old.
        graph.set_equal_args(id, args, kwargs)?;
    }
    for &id in nodes.iter().rev().filter(|&&it| representative(it) != it) {
        graph.erase_node(id)?;
    }
    graph.sort_users();
    Ok(())
}

/// The name of a function; that of an operator without `torch.ops.`.
fn operator_of(target: &str) -> &str {
    target.strip_prefix("torch.ops.").unwrap_or(target)
}

/// The name without the overload: `aten.add` of `aten.add.Tensor`.
fn packet_of(operator: &str) -> &str {
    match operator.match_indices('.').nth(1) {
        Some((at, _)) => &operator[..at],
        None => operator,
    }
}

/// A call as a key: equal to another where target and arguments are, nodes being those that represent them, and the last
/// write before it to what it takes.
struct Call<'a> {
    graph: &'a Graph,
    first: &'a [Cell<Option<NodeId>>],
    id: NodeId,
    since: Option<NodeId>,
}

impl Call<'_> {
    fn representative(&self, node: NodeId) -> Option<NodeId> {
        self.first[node.index()].get()
    }

    fn hash_arg(&self, arg: &Arg, state: &mut impl Hasher) {
        std::mem::discriminant(arg).hash(state);
        match arg {
            Arg::None | Arg::Ellipsis => {}
            Arg::Bool(it) => it.hash(state),
            Arg::Int(it) => it.hash(state),
            Arg::Float(it) => it.to_bits().hash(state),
            Arg::Complex(it) => (it.re.to_bits(), it.im.to_bits()).hash(state),
            Arg::Str(it) | Arg::Op(it) => it.hash(state),
            // There are few of these, and they seldom are all that differs.
            Arg::DType(_) | Arg::Device(_) | Arg::Layout(_) | Arg::MemoryFormat(_) => {}
            Arg::Node(it) => self.representative(*it).hash(state),
            Arg::List(items) | Arg::Tuple(items) => {
                items.len().hash(state);
                items.iter().for_each(|it| self.hash_arg(it, state));
            }
            Arg::Dict(items) => {
                items.len().hash(state);
                items.iter().for_each(|(key, it)| {
                    key.hash(state);
                    self.hash_arg(it, state);
                });
            }
            Arg::Slice(parts) => parts.iter().for_each(|it| self.hash_arg(it, state)),
        }
    }

    fn is_same(&self, a: &Arg, b: &Arg) -> bool {
        let all = |a: &[Arg], b: &[Arg]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is_same(a, b));
        match (a, b) {
            (Arg::Node(a), Arg::Node(b)) => self.representative(*a) == self.representative(*b),
            (Arg::Float(a), Arg::Float(b)) => a.to_bits() == b.to_bits(),
            (Arg::Complex(a), Arg::Complex(b)) => (a.re.to_bits(), a.im.to_bits()) == (b.re.to_bits(), b.im.to_bits()),
            (Arg::List(a), Arg::List(b)) | (Arg::Tuple(a), Arg::Tuple(b)) => all(a, b),
            (Arg::Slice(a), Arg::Slice(b)) => all(&a[..], &b[..]),
            (Arg::Dict(a), Arg::Dict(b)) => self.are_same_entries(a, b),
            (a, b) => a == b,
        }
    }

    fn are_same_entries(&self, a: &[(tracefx_ir::Str, Arg)], b: &[(tracefx_ir::Str, Arg)]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|((key, a), (other, b))| key == other && self.is_same(a, b))
    }
}

impl Hash for Call<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let node = self.graph.node(self.id);
        node.op().hash(state);
        node.target().hash(state);
        self.since.hash(state);
        node.args().iter().for_each(|it| self.hash_arg(it, state));
        node.kwargs().iter().for_each(|(key, it)| {
            key.hash(state);
            self.hash_arg(it, state);
        });
    }
}

impl PartialEq for Call<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.graph.node(self.id), self.graph.node(other.id));
        (a.op(), a.target(), a.args().len(), self.since) == (b.op(), b.target(), b.args().len(), other.since)
            && a.args().iter().zip(b.args()).all(|(a, b)| self.is_same(a, b))
            && self.are_same_entries(a.kwargs(), b.kwargs())
    }
}

impl Eq for Call<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::DType;
    use tracefx_ir::{TensorMeta, Val};
    use tracefx_ops::registry;

    /// How many of two calls with these second arguments are left.
    fn merged(a: Arg, b: Arg) -> usize {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let calls = [a, b].map(|it| graph.call_function("torch.add", vec![Arg::Node(x), it], vec![]));
        graph.output(Arg::Tuple(calls.map(Arg::Node).to_vec()));
        let mut module = GraphModule::new(graph);
        CsePass::new(registry()).call(&mut module).unwrap();
        assert!(module.graph.lint(None).is_empty());
        module.graph.len() - 2
    }

    #[test]
    fn numbers_of_different_kinds_are_different() {
        assert_eq!(merged(Arg::Int(1), Arg::Int(1)), 1);
        assert_eq!(merged(Arg::Int(1), Arg::Float(1.0)), 2);
        assert_eq!(merged(Arg::Int(1), Arg::Bool(true)), 2);
        assert_eq!(merged(Arg::Float(0.0), Arg::Float(-0.0)), 2);
        assert_eq!(merged(Arg::Float(f64::NAN), Arg::Float(f64::NAN)), 1);
    }

    #[test]
    fn calls_on_both_sides_of_a_switch_are_not_merged_nor_are_switches() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let mut sums = Vec::new();
        for is_enabled in [false, true, false] {
            graph.call_function("torch._C._set_grad_enabled", vec![Arg::Bool(is_enabled)], vec![]);
            sums.extend([0, 1].map(|_| graph.call_function("torch.add", vec![x.into(), x.into()], vec![])));
        }
        graph.output(Arg::Tuple(sums.into_iter().map(Arg::Node).collect()));
        let mut module = GraphModule::new(graph);
        CsePass::new(registry()).call(&mut module).unwrap();
        let count = |target| module.graph.find_nodes(Opcode::CallFunction, target).count();
        assert_eq!((count("torch._C._set_grad_enabled"), count("torch.add")), (3, 3));
    }

    #[test]
    fn slices_and_dtypes_are_compared() {
        let slice = |stop| Arg::Slice(Box::new([Arg::None, Arg::Int(stop), Arg::None]));
        assert_eq!(merged(slice(2), slice(2)), 1);
        assert_eq!(merged(slice(2), slice(3)), 2);
        assert_eq!(merged(Arg::DType(DType::Float32), Arg::DType(DType::Float64)), 2);
    }

    #[test]
    fn what_follows_a_merged_call_is_merged_and_keeps_its_value() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let chain = |graph: &mut Graph| {
            let neg = graph.call_function("torch.neg", vec![Arg::Node(x)], vec![]);
            graph.call_function("torch.abs", vec![Arg::Node(neg)], vec![])
        };
        let (a, b) = (chain(&mut graph), chain(&mut graph));
        let both = graph.call_function("torch.add", vec![Arg::Node(a), Arg::Node(b)], vec![]);
        let val = Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![2.into()]));
        graph.meta_mut(both).val = Some(val.clone());
        graph.output(Arg::Node(both));
        let mut module = GraphModule::new(graph);
        assert!(CsePass::new(registry()).call(&mut module).unwrap().modified);
        assert_eq!(module.graph.len(), 5);
        assert_eq!(module.graph.node(both).meta.val, Some(val));
        assert!(!CsePass::new(registry()).call(&mut module).unwrap().modified);
    }

    #[test]
    fn a_banned_operator_stays_in_all_its_overloads() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let draw =
            |graph: &mut Graph| graph.call_function("torch.ops.aten.rand_like.default", vec![Arg::Node(x)], vec![]);
        let (a, b) = (draw(&mut graph), draw(&mut graph));
        graph.output(Arg::Tuple(vec![Arg::Node(a), Arg::Node(b)]));
        let mut module = GraphModule::new(graph);
        assert!(
            !CsePass { registry: registry(), options: CseOptions::functional() }.call(&mut module).unwrap().modified
        );
        assert!(CsePass::new(registry()).call(&mut module).unwrap().modified);
    }
}
