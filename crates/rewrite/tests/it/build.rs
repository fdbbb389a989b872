//! Small graphs, written down.

use tracefx_ir::{Arg, Graph, GraphModule, NodeId};

/// A module of a graph that returns what is built.
pub(crate) fn module(build: impl FnOnce(&mut Graph) -> Arg) -> GraphModule {
    let mut graph = Graph::new();
    let result = build(&mut graph);
    graph.output(result);
    GraphModule::new(graph)
}

/// A call of a function of nodes.
pub(crate) fn call(graph: &mut Graph, target: &str, args: &[NodeId]) -> NodeId {
    graph.call_function(target, args.iter().map(|&it| Arg::Node(it)).collect(), vec![])
}
