//! A pattern, checked, with what a search wants to know of it.

use super::{Constraint, MatcherOptions};
use crate::Impurity;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, Str, TensorKind};
use tracefx_ops::{ArgSpec, Registry, Tags, Value};

/// A pattern. Tables have an entry per id of its graph.
pub(super) struct Pattern {
    pub(super) module: GraphModule,
    /// The inputs, in order.
    pub(super) placeholders: Vec<NodeId>,
    /// What the output returns, each node once.
    pub(super) returning: Vec<NodeId>,
    pub(super) is_returned: Vec<bool>,
    /// The nodes from which the search begins: those that only the output uses, or the output itself.
    pub(super) anchors: Vec<NodeId>,
    /// For each anchor but the first how it hangs together with those before.
    pub(super) routes: Vec<Option<Route>>,
    /// The arguments of operators, to complete calls that give different ones.
    pub(super) schemas: Vec<Option<Vec<SchemaArg>>>,
    /// What is asked of what a node stands for.
    pub(super) constraints: Vec<Option<Constraint>>,
    /// The laws that the called functions follow, where the options let them count.
    pub(super) laws: Vec<Laws>,
    /// What else a node may stand for: any of these, which is no call of its own.
    pub(super) alternatives: Vec<Option<Vec<Arg>>>,
    pub(super) is_anchor: Vec<bool>,
    /// Of each `get_attr` whether it reads a parameter.
    pub(super) parameters: Vec<Option<bool>>,
    /// Whether a search from the anchors comes to the node.
    pub(super) is_reached: Vec<bool>,
}

/// The function whose call in a pattern stands for any of its arguments.
pub const ANY_OF: &str = "tracefx.any_of";

/// The function whose call in a pattern stands for its argument, which is a call, or for the first argument of that.
pub const OPTIONAL: &str = "tracefx.optional";

/// Laws of a function of two arguments.
#[derive(Clone, Copy, Default)]
pub(super) struct Laws {
    pub(super) is_commutative: bool,
    pub(super) is_associative: bool,
}

/// A path from a node that an earlier anchor needs up to this anchor, each node using the one before: in the graph, what
/// matches the anchor is among the users of users of what matches the node.
pub(super) struct Route {
    pub(super) from: NodeId,
    pub(super) up: Vec<NodeId>,
}

/// An argument of an operator.
pub(super) struct SchemaArg {
    pub(super) name: Str,
    pub(super) is_kwarg_only: bool,
    pub(super) default: Arg,
}

impl Pattern {
    pub(super) fn new(module: GraphModule, registry: &Registry, options: &MatcherOptions) -> Result<Self> {
        let graph = &module.graph;
        let last = graph
            .last()
            .ok_or_else(|| invalid("SubgraphMatcher cannot be initialized with an empty pattern", "give it a node"))?;
        let is_dead = |&id: &NodeId| {
            let node = graph.node(id);
            node.op() != Opcode::Output
                && graph.users(id).is_empty()
                && !Impurity::default().is_impure(node, graph, &module, registry)
        };
        if let Some(dead) = graph.nodes().find(is_dead) {
            return Err(invalid(
                "SubgraphMatcher cannot be initialized with a pattern with dead code",
                "let the pattern return the node, or leave it out",
            )
            .node(&**graph.node(dead).name()));
        }
        let returning = graph.node(last).all_input_nodes();
        let anchors = match options.match_output {
            true => vec![last],
            false => returning.iter().copied().filter(|&it| graph.users(it).len() == 1).collect(),
        };
        let mut is_returned = vec![false; graph.id_bound()];
        returning.iter().for_each(|it| is_returned[it.index()] = true);
        let mut schemas: Vec<Option<Vec<SchemaArg>>> = (0..graph.id_bound()).map(|_| None).collect();
        let mut parameters = vec![None; graph.id_bound()];
        for id in graph.nodes() {
            let node = graph.node(id);
            match node.op() {
                Opcode::CallFunction if node.target().starts_with("torch.ops.") => {
                    let op = registry.get(node.target());
                    schemas[id.index()] = op.map(|op| op.schema.args.iter().map(SchemaArg::new).collect());
                }
                Opcode::GetAttr => {
                    parameters[id.index()] = Some(reads_parameter(&module, id)?.ok_or_else(|| {
                        let what = format!("`{}` is a module, and patterns match tensors only", node.target());
                        invalid(&what, "match what the module is used for").node(&**node.name())
                    })?);
                }
                Opcode::Placeholder
                | Opcode::CallFunction
                | Opcode::CallMethod
                | Opcode::CallModule
                | Opcode::Output => {}
            }
        }
        let alternatives = alternatives(graph)?;
        for node in graph.nodes().rev() {
            if !is_returned[node.index()] {
                continue;
            }
            let nodes = alternatives[node.index()].iter().flatten().filter_map(Arg::as_node);
            nodes.for_each(|it| is_returned[it.index()] = true);
        }
        let laws = (0..graph.id_bound()).map(|_| Laws::default()).collect::<Vec<_>>();
        let placeholders = graph.nodes().filter(|&it| graph.node(it).op() == Opcode::Placeholder).collect();
        let (routes, is_reached) = routes(graph, &anchors, &alternatives);
        let mut is_anchor = vec![false; graph.id_bound()];
        anchors.iter().for_each(|it| is_anchor[it.index()] = true);
        let constraints = constraints(graph, options)?;
        let mut res = Pattern {
            module,
            placeholders,
            returning,
            is_returned,
            anchors,
            routes,
            schemas,
            constraints,
            laws,
            alternatives,
            is_anchor,
            parameters,
            is_reached,
        };
        res.find_laws(registry, options);
        res.check_reached()?;
        Ok(res)
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.module.graph
    }

    pub(super) fn is_placeholder(&self, node: NodeId) -> bool {
        self.graph().node(node).op() == Opcode::Placeholder
    }

    /// Whether the node is no call, but stands for one of several.
    pub(super) fn is_virtual(&self, node: NodeId) -> bool {
        self.alternatives[node.index()].is_some()
    }

    /// Whether what the node stands for can be in one match only.
    pub(super) fn is_compute(&self, node: NodeId) -> bool {
        is_compute(self.graph(), node)
    }

    fn find_laws(&mut self, registry: &Registry, options: &MatcherOptions) {
        if !options.commutative && !options.associative {
            return;
        }
        let graph = &self.module.graph;
        for node in graph.nodes() {
            let has = |tag: Tags| follows(graph.node(node), registry, tag);
            self.laws[node.index()] = Laws {
                is_commutative: options.commutative && has(Tags::COMMUTATIVE),
                is_associative: options.associative && has(Tags::ASSOCIATIVE),
            };
        }
    }

    fn check_reached(&self) -> Result<()> {
        let is_needed = |&&id: &&NodeId| !self.is_reached[id.index()];
        if let Some(&unused) = self.placeholders.iter().find(is_needed) {
            let name = self.graph().node(unused).name();
            let what =
                format!("the parameter `{name}` of the pattern is not used, so nothing tells what it stands for");
            return Err(invalid(&what, "use it in the pattern, or take it away").node(&**name));
        }
        if let Some(&unreached) = self.returning.iter().find(is_needed) {
            let name = self.graph().node(unreached).name();
            let what =
                format!("the pattern returns `{name}`, which it also uses for something that it does not return");
            return Err(invalid(&what, "return what uses it, too").node(&**name));
        }
        Ok(())
    }
}

/// Walks from each anchor to what it needs, and finds the shortest way back to what an earlier one needs. Gives the way of
/// each anchor, and whether a node is needed at all.
fn routes(graph: &Graph, anchors: &[NodeId], alternatives: &[Option<Vec<Arg>>]) -> (Vec<Option<Route>>, Vec<bool>) {
    let mut reached_by = vec![usize::MAX; graph.id_bound()];
    let mut res = Vec::new();
    for (index, &anchor) in anchors.iter().enumerate() {
        // Breadth first, so that what is met first is nearest; each with the place of what uses it.
        let mut met = vec![(anchor, None)];
        let mut route = None;
        let mut at = 0;
        while at < met.len() {
            let (node, user) = met[at];
            let by = &mut reached_by[node.index()];
            if *by == usize::MAX {
                *by = index;
                graph.node(node).for_each_input(&mut |input| met.push((input, Some(at))));
            } else if *by < index && route.is_none() {
                let users = std::iter::successors(user, |&it: &usize| met[it].1);
                let up: Vec<NodeId> = users.map(|it| met[it].0).collect();
                // What stands for one of several does not use what they use.
                if up.iter().all(|it| alternatives[it.index()].is_none()) {
                    route = Some(Route { from: node, up });
                }
            }
            at += 1;
        }
        res.push(route);
    }
    (res, reached_by.iter().map(|&it| it != usize::MAX).collect())
}

/// Whether the node is a call or attribute that a match is made of: no input, no output, and not one of several.
pub(crate) fn is_compute(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is_virtual = || node.op() == Opcode::CallFunction && matches!(&**node.target(), ANY_OF | OPTIONAL);
    !matches!(node.op(), Opcode::Placeholder | Opcode::Output) && !is_virtual()
}

/// What each node that stands for one of several may stand for.
fn alternatives(graph: &Graph) -> Result<Vec<Option<Vec<Arg>>>> {
    let mut res = vec![None; graph.id_bound()];
    for id in graph.nodes().filter(|&it| graph.node(it).op() == Opcode::CallFunction) {
        let node = graph.node(id);
        let args = match (&**node.target(), node.args()) {
            (ANY_OF, args @ [_, ..]) => args.to_vec(),
            (OPTIONAL, [Arg::Node(inner)]) => match graph.node(*inner).args() {
                [first @ Arg::Node(_), ..] => vec![Arg::Node(*inner), first.clone()],
                _ => return Err(invalid("what is optional takes a node first", "make a call of a node optional")),
            },
            (ANY_OF | OPTIONAL, _) => {
                let what = format!("`{}` takes what it may stand for", node.target());
                return Err(invalid(&what, "give it calls").node(&**node.name()));
            }
            _ => continue,
        };
        res[id.index()] = Some(args);
    }
    Ok(res)
}

/// What is asked of each node.
fn constraints(graph: &Graph, options: &MatcherOptions) -> Result<Vec<Option<Constraint>>> {
    let mut res = vec![None; graph.id_bound()];
    let mut n_found = 0;
    for id in graph.nodes() {
        if let Some(constraint) = options.constraints.get(&**graph.node(id).name()) {
            constraint.check()?;
            res[id.index()] = Some(constraint.clone());
            n_found += 1;
        }
    }
    if n_found < options.constraints.len() {
        let is_missing = |name: &&String| !graph.nodes().any(|it| **graph.node(it).name() == ***name);
        let name = options.constraints.keys().find(is_missing).map_or("", |it| it);
        return Err(invalid(&format!("the pattern has no node `{name}` to constrain"), "name a node of the pattern"));
    }
    Ok(res)
}

/// Whether an operator has the property, or the operators that a function or method stands for.
fn follows(node: &Node, registry: &Registry, tag: Tags) -> bool {
    let has = |name: &str| registry.get(name).is_some_and(|it| it.def.tags.has(tag));
    let target = &**node.target();
    let name = match node.op() {
        Opcode::CallFunction if has(target) => return true,
        Opcode::CallFunction => target.strip_prefix("torch.").unwrap_or(target),
        Opcode::CallMethod => target,
        Opcode::Placeholder | Opcode::GetAttr | Opcode::CallModule | Opcode::Output => return false,
    };
    has(&format!("aten.{name}.Tensor")) || has(&format!("aten.{name}.default"))
}

impl SchemaArg {
    fn new(spec: &ArgSpec) -> Self {
        let default = spec.default_value::<()>().map_or(Arg::None, |it| literal(&it));
        SchemaArg { name: spec.name.as_str().into(), is_kwarg_only: spec.is_kwarg_only, default }
    }
}

fn literal(value: &Value<()>) -> Arg {
    match value {
        Value::Bool(it) => Arg::Bool(*it),
        Value::Int(it) => it.as_int().map_or(Arg::None, Arg::Int),
        Value::Float(it) => Arg::Float(*it),
        Value::Complex(it) => Arg::Complex(*it),
        Value::Str(it) => Arg::Str(it.clone()),
        Value::DType(it) => Arg::DType(*it),
        Value::Device(it) => Arg::Device(it.clone()),
        Value::Layout(it) => Arg::Layout(*it),
        Value::MemoryFormat(it) => Arg::MemoryFormat(*it),
        Value::List(items) => Arg::List(items.iter().map(literal).collect()),
        Value::None | Value::Tensor(()) | Value::SymBool(_) | Value::SymFloat(_) => Arg::None,
    }
}

/// Whether a `get_attr` reads a parameter, or a plain tensor, as buffers and constants are; nothing where it reads a module.
pub(super) fn reads_parameter(module: &GraphModule, id: NodeId) -> Result<Option<bool>> {
    let node = module.graph.node(id);
    match module.attribute(node.target()).map_err(|it| it.node(&**node.name()))? {
        Attribute::Tensor { kind, .. } | Attribute::Fake { kind, .. } => Ok(Some(*kind == TensorKind::Parameter)),
        Attribute::Module(_) => Ok(None),
    }
}

fn invalid(what: &str, help: &str) -> Diagnostic {
    Diagnostic::new(Code::PatternInvalid, what).help(help)
}
