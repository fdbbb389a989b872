//! Patterns that name their nodes, on top of the matcher.

use super::{InternalMatch, MatcherOptions, SubgraphMatcher};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, GraphModule, NodeId, Opcode, Str};
use tracefx_ops::Registry;

/// A matcher for a pattern that names its nodes: `SubgraphMatcherWithNameNodeMap` of
/// `torch.fx.passes.utils.matcher_with_name_node_map_utils`.
///
/// The last value that the pattern returns is a dict of names, as in `return relu, {"conv": conv, "relu": relu}`. The dict
/// is no part of the pattern; [`InternalMatch::name_node_map`] says what the names stand for.
pub struct SubgraphMatcherWithNameNodeMap {
    matcher: SubgraphMatcher,
    names: Vec<(Str, NodeId)>,
}

impl SubgraphMatcherWithNameNodeMap {
    /// A matcher for this pattern.
    ///
    /// # Errors
    /// `PatternInvalid` as [`SubgraphMatcher::new`], and where the pattern does not return values and a dict of nodes.
    pub fn new(pattern: &GraphModule, registry: &Registry, options: MatcherOptions) -> Result<Self> {
        let mut pattern = pattern.clone();
        let names = split_names(&mut pattern)?;
        Ok(SubgraphMatcherWithNameNodeMap { matcher: SubgraphMatcher::new(&pattern, registry, options)?, names })
    }

    /// The matches, as [`SubgraphMatcher::matches`] gives them, with the names.
    ///
    /// # Errors
    /// Those of [`SubgraphMatcher::matches`].
    pub fn matches(&self, module: &GraphModule) -> Result<Vec<InternalMatch>> {
        let mut matches = self.matcher.matches(module)?;
        for found in &mut matches {
            let named =
                self.names.iter().filter_map(|(name, node)| Some((name.clone(), found.nodes_map.get(node)?.clone())));
            found.name_node_map = named.collect();
        }
        Ok(matches)
    }
}

/// Takes the dict of names out of what the pattern returns.
fn split_names(pattern: &mut GraphModule) -> Result<Vec<(Str, NodeId)>> {
    let invalid = |what: &str| {
        Diagnostic::new(Code::PatternInvalid, what)
            .help("return a dict of names and nodes last, as in `return relu, {\"conv\": conv, \"relu\": relu}`")
    };
    let graph = &mut pattern.graph;
    let output = graph.last().filter(|&it| graph.node(it).op() == Opcode::Output);
    let output = output.ok_or_else(|| invalid("the pattern returns nothing"))?;
    let returned = match graph.node(output).args() {
        [Arg::Tuple(items) | Arg::List(items)] => items.clone(),
        _ => return Err(invalid("Expecting the pattern graph to return a tuple")),
    };
    let names = match returned.split_last() {
        None | Some((_, [])) => return Err(invalid("Expecting the pattern graph to have at least two outputs")),
        Some((Arg::Dict(names), _)) => names,
        Some(_) => return Err(invalid("Expecting the input graph to have a dict output as the last element")),
    };
    let node_of = |(name, arg): &(Str, Arg)| {
        let node = arg.as_node().ok_or_else(|| invalid(&format!("the pattern names `{name}` what is not a node")))?;
        Ok((name.clone(), node))
    };
    let names = names.iter().map(node_of).collect::<Result<Vec<_>>>()?;
    graph.set_args(output, vec![Arg::Tuple(returned[..returned.len() - 1].to_vec())])?;
    Ok(names)
}
