//! Replacing a pattern wherever it stands: `torch.fx.subgraph_rewriter`.
//!
//! Everything is checked before anything is changed: what is refused leaves the module as it was.

mod attributes;
mod claim;
mod constants;
mod place;
mod splice;

pub use claim::RewriteContext;
pub(crate) use place::{Blocked, Place};

use crate::effects::{AliasAnalysis, Effect, known_writers};
use crate::matcher::compute_nodes;
use crate::verify::VerifyOptions;
use crate::{InternalMatch, MatcherOptions, SubgraphMatcher};
use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use splice::Splice;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Opcode};
use tracefx_ops::Registry;
use ts_rs::TS;

/// How [`replace_pattern_with_filters`] finds and replaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct ReplaceOptions {
    /// How the pattern is matched: without its output, and of matches that share a node the first.
    pub matching: MatcherOptions,
    /// Whether sub-modules that nothing uses any more stay in the module. In FX they stay where the replacement is a function.
    pub keeps_submodules: bool,
    /// Whether each replacement is checked on random inputs of the matched dtypes and sizes, against the nodes that it
    /// replaces. A replacement that computes something else is refused, and nothing is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyOptions>,
}

impl ReplaceOptions {
    /// How the pattern is matched.
    pub fn matcher(&self) -> MatcherOptions {
        MatcherOptions { match_output: false, remove_overlapping_matches: true, ..self.matching.clone() }
    }
}

/// A match that was replaced: `torch.fx.subgraph_rewriter.ReplacedPatterns`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacedPatterns {
    /// The node of the pattern from which the match was found.
    pub anchor: NodeId,
    /// What each node of the pattern stood for; inputs stand for what has taken their place since.
    pub nodes_map: IndexMap<NodeId, Arg, FxBuildHasher>,
    /// The nodes that were made.
    pub replacements: Vec<NodeId>,
}

/// Says whether a match is to be replaced, of the match, the graph and the pattern.
pub type MatchFilter<'a> = &'a dyn Fn(&InternalMatch, &Graph, &Graph) -> bool;

/// Makes what a match is replaced by, of the match, the graph and the pattern.
pub type ReplacementCallback<'a> = &'a dyn Fn(&InternalMatch, &Graph, &Graph) -> Result<GraphModule>;

/// What matches are replaced by.
#[derive(Clone, Copy)]
pub enum Replacement<'a> {
    /// All by the same.
    Module(&'a GraphModule),
    /// Each by its own. All are made before the first is put in.
    Callback(ReplacementCallback<'a>),
}

/// Replaces the pattern wherever it stands: `torch.fx.replace_pattern`.
///
/// Of matches that share a node the first is replaced. The inputs of the replacement are those of the pattern, by position,
/// and so is what it returns.
///
/// The replacement stands before the first node that uses what the match returns, or further up where a write in between
/// would change what it reads. A match whose nodes stand on both sides of such a write stays as it is, and
/// [`SubgraphMatcher::explain`] names the write. A replacement has to share memory with its inputs as the pattern does.
///
/// # Errors
/// `PatternInvalid`, `ReplacementInvalid`, and what [`SubgraphMatcher::matches`] gives; nothing is changed then.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_rewrite::replace_pattern;
///
/// let calls = |targets: &[&str]| {
///     let mut graph = Graph::new();
///     let mut value = graph.placeholder("x");
///     for target in targets {
///         value = graph.call_function(target, vec![value.into()], vec![]);
///     }
///     graph.output(value.into());
///     GraphModule::new(graph)
/// };
/// let mut module = calls(&["torch.neg", "torch.exp", "torch.neg"]);
/// replace_pattern(&mut module, &calls(&["torch.neg"]), &calls(&["torch.relu"]), tracefx_ops::registry()).unwrap();
/// assert_eq!(
///     module.graph.to_string(),
///     "graph():
///     %x : [num_users=1] = placeholder[target=x]
///     %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
///     %exp : [num_users=1] = call_function[target=torch.exp](args = (%relu,), kwargs = {})
///     %relu_1 : [num_users=1] = call_function[target=torch.relu](args = (%exp,), kwargs = {})
///     return relu_1"
/// );
/// ```
pub fn replace_pattern<'a>(
    module: &mut GraphModule,
    pattern: &GraphModule,
    replacement: &GraphModule,
    cx: impl Into<RewriteContext<'a>>,
) -> Result<Vec<ReplacedPatterns>> {
    let options = ReplaceOptions::default();
    replace_pattern_with_filters(module, pattern, Replacement::Module(replacement), &[], cx, &options)
}

/// Replaces the pattern where it stands and the filters let it: `torch.fx.subgraph_rewriter.replace_pattern_with_filters`.
///
/// # Errors
/// As [`replace_pattern`], what the callback gives, and `VerifyFailed` where replacements are verified
/// ([`ReplaceOptions::verify`]) and one does not hold; nothing is changed then, either.
pub fn replace_pattern_with_filters<'a>(
    module: &mut GraphModule,
    pattern: &GraphModule,
    replacement: Replacement<'_>,
    filters: &[MatchFilter<'_>],
    cx: impl Into<RewriteContext<'a>>,
    options: &ReplaceOptions,
) -> Result<Vec<ReplacedPatterns>> {
    let cx = cx.into();
    let matcher = SubgraphMatcher::new(pattern, cx.registry, options.matcher())?;
    let mut matches = matcher.matches(module)?;
    matches.retain(|it| filters.iter().all(|filter| filter(it, &module.graph, &pattern.graph)));
    match replacement {
        Replacement::Module(replacement) => {
            let pairs = matches.into_iter().map(|it| (it, replacement)).collect();
            replace_matches(module, pattern, pairs, cx, options)
        }
        Replacement::Callback(make) => {
            let made = matches.iter().map(|it| make(it, &module.graph, &pattern.graph)).collect::<Result<Vec<_>>>()?;
            let pairs = matches.into_iter().zip(&made).collect();
            replace_matches(module, pattern, pairs, cx, options)
        }
    }
}

/// Replaces each of these matches of a pattern by its replacement, but for those that writes keep apart. The matches share
/// no nodes.
///
/// # Errors
/// `PatternInvalid`, `ReplacementInvalid`, and `VerifyFailed` as [`replace_pattern_with_filters`]; nothing is changed then.
pub fn replace_matches(
    module: &mut GraphModule,
    pattern: &GraphModule,
    matches: Vec<(InternalMatch, &GraphModule)>,
    cx: RewriteContext<'_>,
    options: &ReplaceOptions,
) -> Result<Vec<ReplacedPatterns>> {
    let mut known = Known { undoes: true, ..Known::default() };
    Ok(replace_knowing(module, pattern, matches, cx, options, &mut known)?.replaced)
}

/// What came of matches.
#[derive(Default)]
pub(crate) struct Replacing {
    pub(crate) replaced: Vec<ReplacedPatterns>,
    /// Those that writes keep apart.
    pub(crate) blocked: Vec<InternalMatch>,
}

/// As [`replace_matches`], where something may be known of the module.
pub(crate) fn replace_knowing(
    module: &mut GraphModule,
    pattern: &GraphModule,
    matches: Vec<(InternalMatch, &GraphModule)>,
    cx: RewriteContext<'_>,
    options: &ReplaceOptions,
    known: &mut Known,
) -> Result<Replacing> {
    check_writes(pattern, cx.registry)?;
    let mut constants = constants::ConstantNames::new(module);
    let mut renamed: IndexMap<*const GraphModule, Option<GraphModule>, FxBuildHasher> = IndexMap::default();
    for (_, replacement) in &matches {
        if let Entry::Vacant(it) = renamed.entry(std::ptr::from_ref(*replacement)) {
            it.insert(constants.distinct(replacement)?);
        }
    }
    let own = matches.into_iter().map(|(found, it)| (found, renamed[&std::ptr::from_ref(it)].as_ref().unwrap_or(it)));
    let matches: Vec<(InternalMatch, &GraphModule)> = own.collect();
    // In the order of the matches, so that what is refused is the first that does not fit.
    let mut splices: IndexMap<*const GraphModule, (&GraphModule, Splice<'_>), FxBuildHasher> = IndexMap::default();
    for (found, replacement) in &matches {
        let (_, splice) = match splices.entry(std::ptr::from_ref(*replacement)) {
            Entry::Occupied(it) => it.into_mut(),
            Entry::Vacant(it) => {
                attributes::check(module, replacement)?;
                it.insert((replacement, Splice::new(&pattern.graph, replacement, cx.registry)?))
            }
        };
        splice.check(found)?;
    }
    if let Some(how) = &options.verify {
        for (found, replacement) in &matches {
            claim::check(module, &pattern.graph, found, replacement, cx, how)?;
        }
    }
    let mut res = Replacing::default();
    if matches.is_empty() {
        return Ok(res);
    }
    let splice_of = |it: &GraphModule| &splices[&std::ptr::from_ref(it)].1;
    let writing = matches.iter().filter(|(_, replacement)| splice_of(replacement).writes);
    let writing: Vec<&InternalMatch> = writing.map(|(found, _)| found).collect();
    let may_fail = known.undoes && matches.iter().any(|(found, it)| splice_of(it).may_fail(found));
    let before = may_fail.then(|| module.clone());
    let mut writes = known.writes.before(module, &pattern.graph, &writing, cx.registry);
    // What has taken the place of the nodes that are gone, since matches that come later may stand on them.
    let mut changed: FxHashMap<NodeId, Arg> = FxHashMap::default();
    let mut put_in: FxHashSet<*const GraphModule> = FxHashSet::default();
    for (found, replacement) in matches {
        let graph = &mut module.graph;
        match splice_of(replacement).apply(graph, found, &mut changed, writes.as_deref_mut(), &mut known.room) {
            Ok(Ok(replaced)) => {
                put_in.insert(std::ptr::from_ref(replacement));
                res.replaced.push(replaced);
            }
            Ok(Err(blocked)) => res.blocked.push(blocked),
            Err(problem) => {
                if let Some(before) = before {
                    *module = before;
                }
                return Err(problem);
            }
        }
    }
    if !options.keeps_submodules {
        attributes::delete_unused_submodules(module);
    }
    let put_in = || splices.iter().filter(|(it, _)| put_in.contains(*it)).map(|(_, it)| it);
    put_in().for_each(|(replacement, _)| attributes::copy(module, replacement));
    if put_in().any(|(_, splice)| splice.may_write()) {
        known.writes.after_writes();
    }
    Ok(res)
}

/// What is known of a module from one replacing to the next.
pub(crate) struct Known {
    writes: KnownWrites,
    /// How many more arguments the module may get by copies of what stands for one node.
    room: usize,
    /// Whether the module is as it was where a match is refused after others were replaced. A fixpoint keeps those.
    undoes: bool,
}

impl Default for Known {
    fn default() -> Self {
        Known { writes: KnownWrites::default(), room: 1 << 20, undoes: false }
    }
}

/// What is known of a module's writes from one replacing to the next, so that each need not look at the whole graph.
#[derive(Default)]
enum KnownWrites {
    #[default]
    Unknown,
    None,
    Some(AliasAnalysis),
}

impl KnownWrites {
    /// The writes, with those that are to come: nodes that are replaced by a write count as writing.
    fn before(
        &mut self,
        module: &GraphModule,
        pattern: &Graph,
        writing: &[&InternalMatch],
        registry: &Registry,
    ) -> Option<&mut AliasAnalysis> {
        if matches!(self, KnownWrites::Unknown) {
            *self = AliasAnalysis::of(module, registry).map_or(KnownWrites::None, KnownWrites::Some);
        }
        if matches!(self, KnownWrites::None) && !writing.is_empty() {
            *self = KnownWrites::Some(AliasAnalysis::of_any(module, registry));
        }
        let KnownWrites::Some(writes) = self else { return None };
        let nodes = writing.iter().flat_map(|it| compute_nodes(pattern, it));
        let nodes: Vec<(NodeId, Effect)> = nodes.map(|it| (it, Effect::WRITE)).collect();
        writes.add(&module.graph, nodes.into_iter());
        Some(writes)
    }

    /// Something was put in that may write.
    fn after_writes(&mut self) {
        if matches!(self, KnownWrites::None) {
            *self = KnownWrites::Unknown;
        }
    }
}

/// Refuses a pattern with a write that a match does not have in it, since nothing that the pattern returns needs it.
fn check_writes(pattern: &GraphModule, registry: &Registry) -> Result<()> {
    let graph = &pattern.graph;
    let mut is_needed = vec![false; graph.id_bound()];
    graph.output_node().iter().for_each(|it| is_needed[it.index()] = true);
    for id in graph.nodes().rev() {
        if is_needed[id.index()] {
            graph.node(id).for_each_input(&mut |it| is_needed[it.index()] = true);
        }
    }
    let Some(id) = known_writers(pattern, registry).find(|it| !is_needed[it.index()]) else { return Ok(()) };
    let name = graph.node(id).name();
    let what =
        format!("nothing that the pattern returns needs the write by `{name}`, so matches do not have it in them");
    Err(Diagnostic::new(Code::PatternInvalid, what).help("return what the write gives").node(&**name))
}

fn placeholders(graph: &Graph) -> Vec<NodeId> {
    graph.nodes().filter(|&it| graph.node(it).op() == Opcode::Placeholder).collect()
}

fn references(graph: &Graph) -> impl Iterator<Item = NodeId> + '_ {
    graph.nodes().filter(|&it| matches!(graph.node(it).op(), Opcode::GetAttr | Opcode::CallModule))
}

fn invalid(what: String, help: &str) -> Diagnostic {
    Diagnostic::new(Code::ReplacementInvalid, what).help(help)
}
