//! What a pass does to a graph, told and drawn.

use crate::{DotGraph, DrawOptions, FxGraphDrawer};
use rustc_hash::FxHashSet;
use tracefx_core::Result;
use tracefx_ir::{GraphModule, NodeId, Str};

/// Notes which nodes of a module a pass makes and erases: `torch.fx.passes.graph_transform_observer.GraphTransformObserver`.
/// It compares the nodes before and after, so that what comes and goes within the pass is not told; where a pass makes the
/// graph anew, nodes of the same number and name count as the same.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_rewrite::{GraphTransformObserver, eliminate_dead_code};
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// graph.call_function("torch.relu", vec![x.into()], vec![]);
/// graph.output(x.into());
/// let mut module = GraphModule::new(graph);
/// let mut observer = GraphTransformObserver::new("dce");
/// observer.apply_gm_pass(&mut module, |it| it.graph.eliminate_dead_code(&|_, _| false)).unwrap();
/// assert!(observer.erased_nodes.contains("relu"));
/// ```
#[derive(Clone, Debug)]
pub struct GraphTransformObserver {
    /// The name of the pass.
    pub passname: String,
    /// The names of the nodes that were made.
    pub created_nodes: FxHashSet<Str>,
    /// The names of the nodes that were erased.
    pub erased_nodes: FxHashSet<Str>,
}

impl GraphTransformObserver {
    /// An observer of a pass.
    pub fn new(passname: impl Into<String>) -> Self {
        let (created_nodes, erased_nodes) = <(FxHashSet<Str>, FxHashSet<Str>)>::default();
        GraphTransformObserver { passname: passname.into(), created_nodes, erased_nodes }
    }

    /// Observes a pass over the module, and gives what the pass gave.
    pub fn apply_gm_pass<T>(&mut self, module: &mut GraphModule, pass: impl FnOnce(&mut GraphModule) -> T) -> T {
        let nodes = |it: &GraphModule| it.graph.nodes().map(|id| (id, it.graph.node(id).name().clone())).collect();
        let before: FxHashSet<(NodeId, Str)> = nodes(module);
        let result = pass(module);
        let after: FxHashSet<(NodeId, Str)> = nodes(module);
        self.created_nodes = after.difference(&before).map(|it| it.1.clone()).collect();
        self.erased_nodes = before.difference(&after).map(|it| it.1.clone()).collect();
        result
    }

    /// As [`GraphTransformObserver::apply_gm_pass`], with drawings of the module before and after where the pass changed it.
    /// What the pass erased or made is yellow, all else grey.
    ///
    /// # Errors
    /// Those of [`FxGraphDrawer::new`].
    pub fn draw_gm_pass<T>(
        &mut self,
        module: &mut GraphModule,
        pass: impl FnOnce(&mut GraphModule) -> T,
    ) -> Result<(T, Option<[DotGraph; 2]>)> {
        let options =
            DrawOptions { ignore_getattr: true, ignore_parameters_and_buffers: true, ..DrawOptions::default() };
        let mut before = FxGraphDrawer::new(module, &self.passname, &options)?.get_dot_graph(None)?.clone();
        let result = self.apply_gm_pass(module, pass);
        if self.created_nodes.is_empty() && self.erased_nodes.is_empty() {
            return Ok((result, None));
        }
        let mut after = FxGraphDrawer::new(module, &self.passname, &options)?.get_dot_graph(None)?.clone();
        before.fill(&|name| if self.erased_nodes.contains(name) { "yellow" } else { "grey" });
        after.fill(&|name| if self.created_nodes.contains(name) { "yellow" } else { "grey" });
        Ok((result, Some([before, after])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ir::Graph;

    #[test]
    fn a_pass_is_drawn_before_and_after_where_it_changed_anything() {
        let mut graph = Graph::new();
        let x = graph.placeholder("x");
        let relu = graph.call_function("torch.relu", vec![x.into()], vec![]);
        graph.output(relu.into());
        let mut module = GraphModule::new(graph);
        let mut observer = GraphTransformObserver::new("negate");
        let replace = |module: &mut GraphModule| {
            let neg = module.graph.call_function("torch.neg", vec![x.into()], vec![]);
            let output = module.graph.output_node().unwrap();
            module.graph.move_before(neg, output).unwrap();
            module.graph.replace_input_with(output, relu, neg).unwrap();
            module.graph.erase_node(relu).unwrap();
        };
        let ((), drawings) = observer.draw_gm_pass(&mut module, replace).unwrap();
        let [before, after] = drawings.unwrap().map(|it| it.to_string());
        let yellow = |text: &str| text.lines().filter(|it| it.contains("yellow")).map(|it| it[1..4].into()).collect();
        let (before, after): (Vec<String>, Vec<String>) = (yellow(&before), yellow(&after));
        assert_eq!((before, after), (vec!["rel".into()], vec!["neg".into()]));
        assert!(observer.draw_gm_pass(&mut module, |_| ()).unwrap().1.is_none());
    }
}
