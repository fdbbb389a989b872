//! Rules: patterns with what takes their place, as values that are saved, shared and run in sets.

mod fixpoint;

use crate::{ReplaceOptions, ReplacedPatterns, Replacement, RewriteContext, replace_pattern_with_filters};
use fixpoint::Fixpoint;
use serde::Serialize;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Attribute, Graph, GraphModule, NodeId, Str};
use ts_rs::TS;

/// A pattern, what takes its place, and how it is matched.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The name, for traces.
    pub name: Str,
    /// What is looked for.
    pub pattern: GraphModule,
    /// What takes its place.
    pub replacement: GraphModule,
    /// How it is found and replaced.
    pub options: ReplaceOptions,
}

/// The class of a module that holds a rule, and the notes in which its name and options stand.
const CLASS: &str = "tracefx.Rule";
const NAME: &str = "tracefx.rule.name";
const OPTIONS: &str = "tracefx.rule.options";

impl Rule {
    /// The rule as a module, which any format of modules holds: the pattern and the replacement are its children, and
    /// notes say the rest.
    ///
    /// # Errors
    /// `InvalidOption` where the options hold a number that JSON does not have.
    pub fn to_module(&self) -> Result<GraphModule> {
        let options = serde_json::to_string(&self.options)
            .map_err(|problem| Diagnostic::new(Code::InvalidOption, format!("the options have no JSON: {problem}")))?;
        let mut res = GraphModule::new(Graph::new());
        res.class_name = CLASS.into();
        res.meta.insert(NAME.into(), self.name.clone());
        res.meta.insert(OPTIONS.into(), options.into());
        for (name, child) in [("pattern", &self.pattern), ("replacement", &self.replacement)] {
            res.attributes.insert(name.into(), Attribute::Module(Box::new(child.clone())));
        }
        Ok(res)
    }

    /// The rule that a module holds.
    ///
    /// # Errors
    /// `AttributeMissing` where it has no pattern or replacement, `InvalidOption` where its options are not options.
    pub fn from_module(module: &GraphModule) -> Result<Self> {
        let options = match module.meta.get(OPTIONS) {
            None => ReplaceOptions::default(),
            Some(text) => serde_json::from_str(text).map_err(|problem| {
                Diagnostic::new(Code::InvalidOption, format!("the options of the rule are not right: {problem}"))
            })?,
        };
        Ok(Rule {
            name: module.meta.get(NAME).cloned().unwrap_or_else(|| "rule".into()),
            pattern: module.submodule("pattern")?.clone(),
            replacement: module.submodule("replacement")?.clone(),
            options,
        })
    }
}

/// One time that a rule was applied.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Fired {
    /// The rule.
    pub rule: String,
    /// The names of the nodes that it took away.
    pub replaced: Vec<String>,
    /// The names of the nodes that it made.
    pub made: Vec<String>,
}

/// What a set of rules did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct RuleTrace {
    /// What was applied where, in order.
    pub fired: Vec<Fired>,
    /// Whether no rule applies any more. After one round that is not looked at, and `false` where anything fired.
    pub is_fixpoint: bool,
}

/// Rules that run together.
///
/// ```
/// use tracefx_ir::{Graph, GraphModule};
/// use tracefx_rewrite::{ReplaceOptions, Rule, RuleSet};
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
/// let twice = Rule {
///     name: "neg_of_neg".into(),
///     pattern: calls(&["torch.neg", "torch.neg"]),
///     replacement: calls(&[]),
///     options: ReplaceOptions::default(),
/// };
/// let mut module = calls(&["torch.neg"; 7]);
/// let trace = RuleSet { rules: vec![twice] }.run_to_fixpoint(&mut module, tracefx_ops::registry(), None).unwrap();
/// assert_eq!((trace.fired.len(), trace.is_fixpoint, module.graph.len()), (3, true, 3));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// The rules, the most urgent first.
    pub rules: Vec<Rule>,
}

impl RuleSet {
    /// Applies each rule once, in order, wherever it matches.
    ///
    /// # Errors
    /// What a rule is refused with; rules before it were applied.
    pub fn run_once<'a>(&self, module: &mut GraphModule, cx: impl Into<RewriteContext<'a>>) -> Result<RuleTrace> {
        let cx = cx.into();
        let mut trace = RuleTrace::default();
        for rule in &self.rules {
            trace.fired.extend(apply(rule, module, cx)?);
        }
        trace.is_fixpoint = trace.fired.is_empty();
        Ok(trace)
    }

    /// Applies rules until none matches any more. Where a rule fires, all are looked for again around what changed; of those
    /// that wait the most urgent is next.
    ///
    /// Rules that go on for ever are stopped after `max_fired` applications, by default a thousand and ten for each node;
    /// the module is well formed then, too.
    ///
    /// # Errors
    /// What a rule is refused with; rules before it were applied.
    pub fn run_to_fixpoint<'a>(
        &self,
        module: &mut GraphModule,
        cx: impl Into<RewriteContext<'a>>,
        max_fired: Option<usize>,
    ) -> Result<RuleTrace> {
        let cx = cx.into();
        let limit = max_fired.unwrap_or(1000 + 10 * module.graph.len());
        Fixpoint::new(&self.rules, cx).run(module, limit)
    }
}

/// Applies a rule wherever it matches.
fn apply(rule: &Rule, module: &mut GraphModule, cx: RewriteContext<'_>) -> Result<Vec<Fired>> {
    let Rule { name, pattern, replacement, options } = rule;
    let replaced = replace_pattern_with_filters(module, pattern, Replacement::Module(replacement), &[], cx, options)
        .map_err(|it| it.note(format!("the rule is `{name}`")))?;
    Ok(fired(name, &replaced, &module.graph))
}

/// What is told of the matches that a rule replaced.
fn fired(rule: &str, replaced: &[ReplacedPatterns], graph: &Graph) -> Vec<Fired> {
    let name_of = |it: NodeId| graph.node(it).name().to_string();
    let one = |it: &ReplacedPatterns| {
        // What is gone is still readable, and wildcards are not gone.
        let gone = it.nodes_map.values().filter_map(|it| it.as_node()).filter(|&it| !graph.contains(it));
        Fired {
            rule: rule.to_owned(),
            replaced: gone.map(name_of).collect(),
            made: it.replacements.iter().map(|&it| name_of(it)).collect(),
        }
    };
    replaced.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_ops::registry;

    fn calls(targets: &[&str]) -> GraphModule {
        let mut graph = Graph::new();
        let mut value = graph.placeholder("x");
        for target in targets {
            value = graph.call_function(target, vec![value.into()], vec![]);
        }
        graph.output(value.into());
        GraphModule::new(graph)
    }

    fn rule(from: &[&str], to: &[&str]) -> Rule {
        let options = ReplaceOptions::default();
        Rule { name: from.concat().into(), pattern: calls(from), replacement: calls(to), options }
    }

    #[test]
    fn a_rule_makes_way_for_another() {
        let rules = RuleSet { rules: vec![rule(&["b", "b"], &[]), rule(&["a"], &["b"])] };
        let mut module = calls(&["a", "a", "b"]);
        let once = rules.run_once(&mut module.clone(), registry()).unwrap();
        assert_eq!((once.fired.len(), once.is_fixpoint), (2, false));
        let trace = rules.run_to_fixpoint(&mut module, registry(), None).unwrap();
        assert_eq!((trace.fired.len(), trace.is_fixpoint), (3, true));
        let told: Vec<(&str, &[String])> = trace.fired.iter().map(|it| (&*it.rule, &*it.replaced)).collect();
        assert_eq!(told[0], ("a", &["a".to_owned()][..]));
        let targets: Vec<&str> = module.graph.nodes().map(|it| &**module.graph.node(it).target()).collect();
        assert_eq!(targets, ["x", "b", "output"]);
    }

    #[test]
    fn rules_that_go_on_for_ever_are_stopped() {
        let mut module = calls(&["a"]);
        let trace = RuleSet { rules: vec![rule(&["a"], &["a"])] }.run_to_fixpoint(&mut module, registry(), Some(20));
        let trace = trace.unwrap();
        assert_eq!((trace.fired.len(), trace.is_fixpoint), (20, false));
        assert_eq!(module.graph.lint(None), []);
    }

    #[test]
    fn a_rule_is_a_module() {
        let mut before = rule(&["a"], &["b"]);
        before.options.matching.commutative = true;
        let after = Rule::from_module(&before.to_module().unwrap()).unwrap();
        assert_eq!((after.name, after.options), (before.name, before.options));
        assert_eq!(after.pattern.graph.to_string(), before.pattern.graph.to_string());
        assert_eq!(Rule::from_module(&calls(&[])).unwrap_err().code(), Code::AttributeMissing);
    }
}
