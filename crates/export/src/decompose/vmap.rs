//! Which region of a `torch.vmap` works on all examples at once, as in PyTorch; another one is written once for each example.

use tracefx_exec::predispatched;
use tracefx_ir::{Arg, Graph, NodeId, Val};
use tracefx_ops::{Registry, Tags};

/// Whether each node works element by element on tensors of one rank, all of them with the examples in front.
pub(super) fn is_elementwise(graph: &Graph, nodes: &[NodeId], registry: &Registry) -> bool {
    let mut rank = None;
    nodes.iter().all(|&id| {
        let node = graph.node(id);
        let fits = match (predispatched(node), node.args()) {
            (Some("_add_batch_dim"), [_, Arg::Int(0), ..]) => true,
            (Some("_remove_batch_dim"), [_, _, _, Arg::Int(0)]) => return true,
            (Some(_), _) => false,
            (None, _) => {
                let mut is_inside = true;
                node.for_each_input(&mut |it| is_inside &= nodes.contains(&it));
                let op = registry.get(node.target());
                is_inside && op.is_some_and(|it| it.def.tags.has(Tags::POINTWISE) && !it.may_write())
            }
        };
        match &node.meta.val {
            Some(Val::Tensor(meta)) => fits && *rank.get_or_insert(meta.sizes.len()) == meta.sizes.len(),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::{Remove, functionalize};
    use tracefx_core::DType;
    use tracefx_ir::{Arg, Graph, GraphModule, Opcode, TensorMeta, Val};
    use tracefx_ops::{CustomOp, Output, Tags, registry};

    /// A vmap over three examples of two numbers, of an operator that gives this of one.
    fn batched(target: &str, one: &[i64]) -> GraphModule {
        let mut graph = Graph::new();
        let meta = |sizes: &[i64]| {
            let sizes = sizes.iter().map(|it| (*it).into()).collect();
            Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)))
        };
        let call = |graph: &mut Graph, name: &str, args: Vec<Arg>, val| {
            let node = graph.call_function(&format!("torch._functorch.predispatch.{name}"), args, vec![]);
            graph.meta_mut(node).val = val;
            node
        };
        let x = graph.placeholder("x");
        graph.meta_mut(x).val = meta(&[3, 2]);
        call(&mut graph, "_vmap_increment_nesting", vec![Arg::Int(3), Arg::str("error")], None);
        let example = call(&mut graph, "_add_batch_dim", vec![x.into(), Arg::Int(0), Arg::Int(1)], meta(&[2]));
        let given = graph.call_function(target, vec![example.into()], vec![]);
        graph.meta_mut(given).val = meta(one);
        let args = vec![given.into(), Arg::Int(1), Arg::Int(3), Arg::Int(0)];
        let all = call(&mut graph, "_remove_batch_dim", args, meta(&[&[3], one].concat()));
        call(&mut graph, "_vmap_decrement_nesting", vec![], None);
        graph.output(all.into());
        GraphModule::new(graph)
    }

    fn targets(module: &GraphModule) -> Vec<&str> {
        let calls = module.graph.nodes().map(|it| module.graph.node(it)).filter(|it| it.op() == Opcode::CallFunction);
        calls.map(|it| it.target().trim_start_matches("torch.ops.")).collect()
    }

    #[test]
    fn an_operator_of_ones_own_that_works_element_by_element_takes_all_examples_at_once() {
        let mut operators = registry().clone();
        let bump = CustomOp::new("mine::bump(Tensor x) -> Tensor").unwrap().tags(Tags::POINTWISE);
        operators.define(bump.shape(|args| Ok(vec![Output::Tensor(args.tensor(0)?.clone())]))).unwrap();
        let module = batched("torch.ops.mine.bump.default", &[2]);
        let res = functionalize(&module, &operators, Remove::Mutations).unwrap();
        assert_eq!(targets(&res), ["mine.bump.default"]);
    }

    #[test]
    fn another_one_is_written_for_each_example() {
        let module = batched("torch.ops.aten.sum.default", &[]);
        let res = functionalize(&module, registry(), Remove::Mutations).unwrap();
        let example = ["aten.select.int", "aten.sum.default"];
        assert_eq!(targets(&res), [&example[..], &example, &example, &["aten.stack.default"]].concat());
    }
}
