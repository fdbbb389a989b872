//! Dead code elimination; what has an effect is decided in `impure`.

use crate::{Impurity, Pass, PassResult};
use indexmap::IndexSet;
use serde::Deserialize;
use tracefx_core::Result;
use tracefx_ir::{Attribute, GraphModule, Opcode, Str};
use tracefx_ops::Registry;
use ts_rs::TS;

/// How dead code is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DeadCodeOptions {
    /// Whether calls that draw from a random generator may go, though the numbers that come after are others then.
    pub drop_random: bool,
    /// Whether everything with an effect stays, even what PyTorch drops: functions, methods, modules and called graphs that
    /// write to what they take, `print`, batch norms that write their statistics.
    pub strict: bool,
}

impl DeadCodeOptions {
    fn impurity(&self) -> Impurity {
        Impurity { random: !self.drop_random, strict: self.strict }
    }
}

/// Erases what nothing uses and has no effect, in the graph of the module and in the graphs of its children that a
/// `get_attr` names: `torch.fx.Graph.eliminate_dead_code`. Takes time linear in the number of nodes; a second run changes
/// nothing.
///
/// # Errors
/// `GraphInvalid` where a graph is not well formed; nothing is changed in it then.
pub fn eliminate_dead_code(
    module: &mut GraphModule,
    registry: &Registry,
    options: &DeadCodeOptions,
) -> Result<PassResult> {
    let mut graph = std::mem::take(&mut module.graph);
    let impurity = options.impurity();
    let erased = graph.eliminate_dead_code(&|graph, node| impurity.is_impure(node, graph, module, registry));
    let get_attrs = graph.nodes().map(|it| graph.node(it)).filter(|it| it.op() == Opcode::GetAttr);
    let names: IndexSet<Str> = get_attrs.map(|it| it.target().clone()).collect();
    module.graph = graph;
    let mut modified = erased?;
    for name in names {
        if let Some(Attribute::Module(child)) = module.attributes.get_mut(&name) {
            modified |= eliminate_dead_code(child, registry, options)?.modified;
        }
    }
    Ok(PassResult::new(modified))
}

/// [`eliminate_dead_code`] as a pass.
#[derive(Clone, Debug)]
pub struct DeadCodeElimination<'r> {
    /// The operators, of which some have effects.
    pub registry: &'r Registry,
    /// How dead code is told.
    pub options: DeadCodeOptions,
}

impl Pass for DeadCodeElimination<'_> {
    fn name(&self) -> &str {
        "eliminate_dead_code"
    }

    fn call(&self, module: &mut GraphModule) -> Result<PassResult> {
        eliminate_dead_code(module, self.registry, &self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::{Arg, Graph, InsertPoint, NodeId};
    use tracefx_ops::registry;

    /// A module with one unused call of this function on its input.
    fn module_of(op: Opcode, target: &str) -> GraphModule {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        graph.create_node(op, target, vec![Arg::Node(x)], vec![], None).unwrap();
        graph.output(Arg::Node(x));
        GraphModule::new(graph)
    }

    #[track_caller]
    fn check(op: Opcode, target: &str, options: &DeadCodeOptions, is_erased: bool) {
        let mut module = module_of(op, target);
        let result = eliminate_dead_code(&mut module, registry(), options).unwrap();
        assert_eq!((result.modified, module.graph.len()), (is_erased, if is_erased { 2 } else { 3 }), "{target}");
        assert!(!eliminate_dead_code(&mut module, registry(), options).unwrap().modified);
    }

    #[test]
    fn what_has_an_effect_stays() {
        let options = DeadCodeOptions::default();
        for target in ["torch.ops.aten.add_.Tensor", "torch.ops.aten.add.out", "torch.ops.aten.rand_like.default"] {
            check(Opcode::CallFunction, target, &options, false);
        }
        check(Opcode::CallFunction, "torch.ops.aten.add.Tensor", &options, true);
        check(Opcode::CallFunction, "operator.iadd", &options, true);
        check(Opcode::CallMethod, "add_", &options, true);
    }

    #[test]
    fn strict_keeps_what_pytorch_drops() {
        let options = DeadCodeOptions { strict: true, ..DeadCodeOptions::default() };
        check(Opcode::CallFunction, "operator.iadd", &options, false);
        check(Opcode::CallMethod, "add_", &options, false);
        check(Opcode::CallMethod, "__add__", &options, true);
        check(Opcode::CallFunction, "builtins.print", &options, false);
        check(Opcode::CallFunction, "torch.neg_", &options, false);
        check(Opcode::CallFunction, "torch.neg", &options, true);
        check(Opcode::CallFunction, "operator.and_", &options, true);
    }

    #[test]
    fn strict_keeps_calls_of_what_writes() {
        let called = |inner: &str, op, target: &str, args: &dyn Fn(NodeId, NodeId) -> Vec<Arg>| {
            let mut module = module_of(op, target);
            let inner = module_of(Opcode::CallFunction, inner);
            module.attributes.insert("body".into(), Attribute::Module(Box::new(inner)));
            let [x, call, _] = <[NodeId; 3]>::try_from(module.graph.nodes().collect::<Vec<_>>()).unwrap();
            module.graph.set_insert_point(InsertPoint::Before(call)).unwrap();
            let body = module.graph.get_attr("body");
            module.graph.set_args(call, args(body, x)).unwrap();
            let mut once = module.clone();
            eliminate_dead_code(&mut once, registry(), &DeadCodeOptions::default()).unwrap();
            assert_eq!(once.graph.len(), 2, "{target}");
            let options = DeadCodeOptions { strict: true, ..DeadCodeOptions::default() };
            eliminate_dead_code(&mut module, registry(), &options).unwrap();
            module.graph.find("x").is_some_and(|it| module.graph.users(it).len() > 1)
        };
        for (inner, stays) in [("torch.ops.aten.relu_.default", true), ("torch.ops.aten.relu.default", false)] {
            let on_graph = |body: NodeId, x: NodeId| vec![Arg::Bool(false), body.into(), x.into()];
            let target = "torch.ops.higher_order.wrap_with_set_grad_enabled";
            assert_eq!(called(inner, Opcode::CallFunction, target, &on_graph), stays);
            assert_eq!(called(inner, Opcode::CallModule, "body", &|_, x| vec![x.into()]), stays);
        }
    }

    #[test]
    fn a_batch_norm_has_an_effect_in_training_alone() {
        for is_training in [false, true] {
            let mut module = module_of(Opcode::CallFunction, "torch.ops.aten.batch_norm.default");
            let (x, norm) = (module.graph.find("x").unwrap(), module.graph.find("batch_norm_default").unwrap());
            let args = [Arg::Node(x), Arg::None, Arg::None, Arg::Node(x), Arg::Node(x), Arg::Bool(is_training)];
            module.graph.set_args(norm, args.to_vec()).unwrap();
            let options = DeadCodeOptions { strict: true, ..DeadCodeOptions::default() };
            let result = eliminate_dead_code(&mut module, registry(), &options).unwrap();
            assert_eq!(result.modified, !is_training);
        }
    }

    #[test]
    fn random_numbers_may_go_where_that_is_asked_for() {
        let options = DeadCodeOptions { drop_random: true, ..DeadCodeOptions::default() };
        check(Opcode::CallFunction, "torch.rand_like", &options, true);
        check(Opcode::CallFunction, "torch.ops.aten.native_dropout.default", &options, true);
    }

    #[test]
    fn a_child_that_a_get_attr_names_is_cleaned_too() {
        let mut module = module_of(Opcode::GetAttr, "body");
        let body = module.graph.find("body").unwrap();
        module.graph.set_args(body, vec![]).unwrap();
        let x = module.graph.find("x").unwrap();
        let output = module.graph.output_node().unwrap();
        module.graph.set_args(output, vec![Arg::Tuple(vec![Arg::Node(x), Arg::Node(body)])]).unwrap();
        let child = module_of(Opcode::CallFunction, "torch.neg");
        module.attributes.insert("body".into(), Attribute::Module(Box::new(child)));
        assert!(eliminate_dead_code(&mut module, registry(), &DeadCodeOptions::default()).unwrap().modified);
        assert_eq!(module.submodule("body").unwrap().graph.len(), 2);
    }

    #[test]
    fn a_very_long_dead_chain_goes() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let mut last = x;
        for _ in 0..200_000 {
            last = graph.call_function("torch.neg", vec![Arg::Node(last)], vec![]);
        }
        graph.output(Arg::Node(x));
        let mut module = GraphModule::new(graph);
        eliminate_dead_code(&mut module, registry(), &DeadCodeOptions::default()).unwrap();
        assert_eq!(module.graph.len(), 2);
    }
}
