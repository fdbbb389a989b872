//! A `torch.vmap` inside a program: a region of nodes that sees one example at a time.
//!
//! Where all that it does is done element by element, the nodes work on all examples at once, as in PyTorch. Otherwise the
//! region is written once for each example: what it takes from outside as a slice, what it gives stacked.

use super::run::{Run, Slot, value};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::predispatched;
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode, Val};
use tracefx_ops::{Builder, Registry, Tags, Traced, Value};

/// Over how many examples a region is written at most.
const MAX_EXAMPLES: i64 = 1 << 10;

/// Whether each node works element by element on tensors of one rank, all of them with the examples in front.
fn is_elementwise(graph: &Graph, nodes: &[NodeId], registry: &Registry) -> bool {
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

impl Run<'_, '_> {
    /// Takes the region of a vmap apart, and leaves what it gives in `env`.
    ///
    /// # Errors
    /// `NotImplemented` where the examples draw random numbers, or it is not known how many they are, or one region lies in
    /// another; `LimitExceeded` where they are too many; else what a node refuses.
    pub(super) fn vmap_region<'g>(
        &mut self,
        module: &'g GraphModule,
        nodes: &[NodeId],
        env: &mut [Option<Slot<'g>>],
    ) -> Result<()> {
        let graph = &module.graph;
        let refuse = |what: &str| Diagnostic::new(Code::NotImplemented, what);
        let [first, inner @ .., _] = nodes else { return Err(refuse("a vmap without an end")) };
        let n_examples = match graph.node(*first).args() {
            [n, Arg::Str(random)] if &**random == "error" => match value(n, env)? {
                Value::Int(n) => n.as_int(),
                _ => None,
            },
            _ => return Err(refuse("taking a vmap with random numbers apart is not implemented")),
        };
        if is_elementwise(graph, inner, self.functional.shapes.registry()) {
            for &id in inner {
                let node = graph.node(id);
                let slot = match (predispatched(node), node.args()) {
                    (Some(_), [it, ..]) => Slot::Value(value(it, env)?),
                    (_, _) => Slot::Value(self.call(node, env)?),
                };
                env[id.index()] = Some(slot);
            }
            return Ok(());
        }
        let n_examples = n_examples.filter(|it| *it > 0);
        let n_examples = n_examples.ok_or_else(|| refuse("taking a vmap over no known number of examples apart"))?;
        if n_examples > MAX_EXAMPLES {
            let what = format!("a vmap over {n_examples} examples exceeds the limit {MAX_EXAMPLES}");
            return Err(Diagnostic::new(Code::LimitExceeded, what));
        }
        let mut given: Vec<(NodeId, Traced, Vec<Traced>)> = Vec::new();
        for example in 0..n_examples {
            let mut own = env.to_vec();
            for &id in inner {
                let node = graph.node(id);
                match (predispatched(node), node.args()) {
                    (Some("_add_batch_dim"), [it, dim, ..]) => {
                        let args = [value(it, &own)?, value(dim, &own)?, Value::int(example)];
                        let slice = self.functional.call("aten.select.int", &args, &[])?.swap_remove(0);
                        own[id.index()] = Some(Slot::Value(slice));
                    }
                    (Some("_remove_batch_dim"), [it, _, _, dim]) => {
                        let it = value(it, &own)?;
                        match given.iter_mut().find(|(of, ..)| *of == id) {
                            Some((_, _, values)) => values.push(it),
                            None => given.push((id, value(dim, &own)?, vec![it])),
                        }
                    }
                    (Some("_vmap_increment_nesting"), _) => {
                        return Err(refuse("taking a vmap inside another one apart is not implemented"));
                    }
                    (Some("lazy_load_decompositions"), _) => own[id.index()] = Some(Slot::Value(Value::None)),
                    (_, _) if node.op() == Opcode::CallFunction => {
                        own[id.index()] = Some(Slot::Value(self.call(node, &own)?));
                    }
                    (_, _) => return Err(refuse("a vmap that reads an attribute")),
                }
            }
        }
        for (id, dim, values) in given {
            let stacked = self.functional.call("aten.stack.default", &[Value::List(values), dim], &[])?.swap_remove(0);
            env[id.index()] = Some(Slot::Value(stacked));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Remove, functionalize};
    use tracefx_core::DType;
    use tracefx_ir::{Arg, Graph, GraphModule, Opcode, TensorMeta, Val};
    use tracefx_ops::{CustomOp, Output, Tags, registry};

    #[test]
    fn an_operator_of_ones_own_that_works_element_by_element_takes_all_examples_at_once() {
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
        let one = call(&mut graph, "_add_batch_dim", vec![x.into(), Arg::Int(0), Arg::Int(1)], meta(&[2]));
        let mine = graph.call_function("torch.ops.mine.bump.default", vec![one.into()], vec![]);
        graph.meta_mut(mine).val = meta(&[2]);
        let args = vec![mine.into(), Arg::Int(1), Arg::Int(3), Arg::Int(0)];
        let all = call(&mut graph, "_remove_batch_dim", args, meta(&[3, 2]));
        call(&mut graph, "_vmap_decrement_nesting", vec![], None);
        graph.output(all.into());
        let mut operators = registry().clone();
        let bump = CustomOp::new("mine::bump(Tensor x) -> Tensor").unwrap().tags(Tags::POINTWISE);
        operators.define(bump.shape(|args| Ok(vec![Output::Tensor(args.tensor(0)?.clone())]))).unwrap();
        let res = functionalize(&GraphModule::new(graph), &operators, Remove::Mutations).unwrap();
        assert_eq!(res.graph.find_nodes(Opcode::CallFunction, "torch.ops.mine.bump.default").count(), 1);
    }
}
