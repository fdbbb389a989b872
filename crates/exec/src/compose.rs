//! Graphs as decompositions of custom operators.

use crate::{Tracer, lower};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::{GraphModule, Opcode, TensorMeta};
use tracefx_ops::{Builder, Cx, Propagation, Symbols, TensorRef, Traced, Value, registry};

/// Makes the calls of a graph through the context of a decomposition, so that a graph can say what a custom operator is
/// made of: its inputs are the arguments of the schema, its outputs the results.
///
/// ```
/// use tracefx_exec::compose;
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_ops::CustomOp;
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let double = graph.call_function("torch.ops.aten.mul.Tensor", vec![Arg::Node(x), Arg::Int(2)], vec![]);
/// graph.output(Arg::Tuple(vec![Arg::Node(double)]));
/// let body = GraphModule::new(graph);
/// let op = CustomOp::new("mylib::double(Tensor x) -> Tensor")?.decompose(move |cx, args| compose(&body, cx, &args.values));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// # Errors
/// `InputCount` where the graph does not take these arguments; `NotImplemented` where it holds tensors of its own or calls
/// operators that take graphs; else what a node refuses.
pub fn compose(module: &GraphModule, cx: &mut Cx<'_>, args: &[Traced]) -> Result<Vec<Traced>> {
    let graph = &module.graph;
    if let Some(id) = graph.nodes().find(|&id| graph.node(id).op() == Opcode::GetAttr) {
        return Err(Diagnostic::new(
            Code::NotImplemented,
            "the graph of an operator holds no tensors or graphs of its own",
        )
        .node(&**graph.node(id).name())
        .help("make them arguments of the operator"));
    }
    // Only what the walk itself asks of operators is asked here; which ones are called is the builder's to know.
    let symbols = Symbols::default();
    let output = lower(module, Propagation::new(registry(), &symbols), &mut Composing(Cx::reborrow(cx)), args)?;
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
        self.0.call_all_with(op, args.iter().cloned(), kwargs)
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
