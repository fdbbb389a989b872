//! Graphs as decompositions of custom operators.

use crate::{Tracer, lower};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::{GraphModule, Opcode, TensorMeta};
use tracefx_ops::{Builder, Cx, Propagation, Registry, Symbols, TensorRef, Traced, Value};

/// Makes the calls of a graph through the context of a decomposition, so that a graph can say what a custom operator is
/// made of: its inputs are the arguments of the schema, its outputs the results. The functions of Python that the graph
/// calls are operators of the registry.
///
/// ```
/// use tracefx_exec::compose;
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_ops::{CustomOp, registry};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let double = graph.call_function("torch.ops.aten.mul.Tensor", vec![Arg::Node(x), Arg::Int(2)], vec![]);
/// graph.output(Arg::Tuple(vec![Arg::Node(double)]));
/// let body = GraphModule::new(graph);
/// let op = CustomOp::new("mylib::double(Tensor x) -> Tensor")?;
/// let op = op.decompose(move |cx, args| compose(&body, registry(), cx, &args.values));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `InputCount` where the graph does not take these arguments; `NotImplemented` where it holds tensors of its own or calls
/// operators that take graphs; else what a node refuses.
pub fn compose(module: &GraphModule, registry: &Registry, cx: &mut Cx<'_>, args: &[Traced]) -> Result<Vec<Traced>> {
    let graph = &module.graph;
    if let Some(id) = graph.nodes().find(|&id| graph.node(id).op() == Opcode::GetAttr) {
        return Err(Diagnostic::new(
            Code::NotImplemented,
            "the graph of an operator holds no tensors or graphs of its own",
        )
        .node(&**graph.node(id).name())
        .help("make them arguments of the operator"));
    }
    let symbols = Symbols::default();
    let output = lower(module, Propagation::new(registry, &symbols), &mut Composing(Cx::reborrow(cx)), args)?;
    // The output of a graph that is exported is a tuple, of an operator that gives a list a tuple with one.
    Ok(match output {
        Value::List(items) => items,
        Value::None => Vec::new(),
        single => vec![single],
    })
}

struct Composing<'a>(Cx<'a>);

impl Builder for Composing<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        self.0.call(op, args, kwargs)
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        self.0.meta(tensor)
    }
}

impl Tracer for Composing<'_> {
    fn attribute(&mut self, _: &Tensor) -> Result<TensorRef> {
        unreachable!("graphs with attributes are refused before they are walked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_core::DType;
    use tracefx_ir::{Arg, Graph};
    use tracefx_ops::{CustomOp, Output, registry};

    #[test]
    fn functions_of_the_graph_are_operators_of_the_registry() {
        let mut operators = registry().clone();
        let frob = CustomOp::new("aten::frob(Tensor x) -> Tensor").unwrap();
        operators.define(frob.shape(|args| Ok(vec![Output::Tensor(args.tensor(0)?.clone())]))).unwrap();
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let frob = graph.call_function("torch.frob", vec![x.into()], vec![]);
        graph.output(Arg::Tuple(vec![frob.into()]));
        let (body, inner) = (GraphModule::new(graph), operators.clone());
        let twice = CustomOp::new("mine::frobbed(Tensor x) -> Tensor").unwrap();
        operators.define(twice.decompose(move |cx, args| compose(&body, &inner, cx, &args.values))).unwrap();
        let x = Value::Tensor(TensorMeta::contiguous(DType::Float32, vec![2.into()]));
        let symbols = Symbols::default();
        let results =
            Propagation::new(&operators, &symbols).call("mine.frobbed.default", std::slice::from_ref(&x), &[]);
        assert_eq!(results.unwrap(), [x]);
    }
}
