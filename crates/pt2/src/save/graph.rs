//! Graphs, written as the schema has them: values by name, sub-graphs inside the arguments that they are.

use super::{argument, invalid, signature, unsavable};
use crate::Limits;
use crate::program::TargetKind;
use crate::schema::{self, SymExpr};
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use tracefx_core::{Diagnostic, Result};
use tracefx_export::{Argument, ConstantValue, ExportedProgram, InputKind};
use tracefx_ir::{
    Arg, Attribute, Graph, GraphModule, Namespace, Node, NodeId, Opcode, TensorMeta, Val, name_of_target,
};
use tracefx_ops::Registry;
use tracefx_sym::{SymBool, SymFloat, SymInt, ValueRange};

/// The document of a program, which holds all but its tensors and example inputs.
pub(super) fn document(program: &ExportedProgram, registry: &Registry) -> Result<schema::ExportedProgram> {
    crate::program::check_signature(&program.module, &program.signature)?;
    let mut saver = Saver { registry, limits: Limits::default(), n_nodes: 0, depth: 0 };
    let (graph, values) = saver.module(&program.module, Some(program))?;
    let renamed: HashMap<&str, &str> = values
        .iter()
        .filter_map(|(id, value)| Some((&**program.module.graph.node(*id).name(), value.name()?)))
        .collect();
    let range = |it: &ValueRange| schema::RangeConstraint { min_val: it.min, max_val: it.max };
    let text = |it: &tracefx_ir::Str| it.to_string();
    Ok(schema::ExportedProgram {
        graph_module: schema::GraphModule {
            graph,
            signature: signature::graph_signature(&program.signature, &|it| renamed.get(it).copied().unwrap_or(it))?,
            module_call_graph: signature::module_call_graph(&program.module_call_graph)?,
            metadata: program
                .module
                .meta
                .iter()
                .filter(|(key, _)| &***key != crate::program::EXAMPLE_CLASSES)
                .map(|(key, it)| (text(key), text(it)))
                .collect(),
            treespec_namedtuple_fields: program
                .namedtuple_fields
                .iter()
                .map(|(name, them)| {
                    (text(name), schema::NamedTupleDef { field_names: them.iter().map(text).collect() })
                })
                .collect(),
        },
        opset_version: program.opset_version.iter().map(|(name, it)| (text(name), *it)).collect(),
        range_constraints: program
            .range_constraints
            .iter()
            .map(|(symbol, it)| (symbol.name().to_string(), range(it)))
            .collect(),
        schema_version: schema::SchemaVersion { major: super::SCHEMA_VERSION.0, minor: super::SCHEMA_VERSION.1 },
        verifiers: program.verifiers.iter().map(text).collect(),
        torch_version: program.torch_version.to_string(),
        guards_code: program.guards.iter().map(text).collect(),
    })
}

/// What the graphs of one program share.
pub(super) struct Saver<'a> {
    pub(super) registry: &'a Registry,
    limits: Limits,
    n_nodes: u64,
    depth: u64,
}

/// One graph that is being written; a sub-graph has a scope of its own.
pub(super) struct Scope<'a> {
    pub(super) module: &'a GraphModule,
    pub(super) graph: &'a Graph,
    pub(super) values: HashMap<NodeId, Value>,
    /// The nodes that read one part of another node's result, in the order of the graph.
    pub(super) getitems: HashMap<(NodeId, usize), Vec<NodeId>>,
    /// The names that values of the file have.
    names: HashSet<String>,
    out: schema::Graph,
}

/// What a node is in the file.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Tensor(String),
    Int(String),
    Float(String),
    Bool(String),
    Object(schema::CustomObjArgument),
    /// Nothing.
    None,
    /// Several values, which have names and not it.
    Parts,
    /// A sub-graph, by its name in the module.
    Graph(String),
    /// An input that is fixed.
    Constant(schema::Argument),
}

impl Value {
    fn name(&self) -> Option<&str> {
        match self {
            Value::Tensor(it) | Value::Int(it) | Value::Float(it) | Value::Bool(it) => Some(it),
            Value::Object(it) => Some(&it.name),
            Value::None | Value::Parts | Value::Graph(_) | Value::Constant(_) => None,
        }
    }
}

impl<'a> Saver<'a> {
    /// Writes the graph of a module; `program` is given for the outermost.
    pub(super) fn module(
        &mut self,
        module: &'a GraphModule,
        program: Option<&'a ExportedProgram>,
    ) -> Result<(schema::Graph, HashMap<NodeId, Value>)> {
        Limits::check("subgraph_depth", self.limits.subgraph_depth, self.depth)?;
        // A module that is given often is written as often, so what is written is counted, and not what is there.
        self.n_nodes += module.graph.len() as u64;
        Limits::check("nodes", self.limits.nodes, self.n_nodes)?;
        let mut scope = Scope::new(module);
        let mut specs = program.map(|it| it.signature.input_specs.iter());
        for id in scope.graph.nodes() {
            let node = scope.graph.node(id);
            let written = match node.op() {
                Opcode::Placeholder => match specs.as_mut().map(Iterator::next) {
                    Some(Some(spec)) => scope.input(id, Some(&spec.arg), spec.kind == InputKind::Token),
                    _ => scope.input(id, None, false),
                },
                Opcode::GetAttr => scope.get_attr(id),
                Opcode::CallFunction if scope.values.contains_key(&id) => Ok(()),
                Opcode::CallFunction => self.call(&mut scope, id),
                Opcode::Output => self.output(&mut scope, id),
                Opcode::CallMethod | Opcode::CallModule => {
                    Err(unsavable(format!("an exported program has no {} nodes", node.op().name()))
                        .help("export the program anew, or replace the call by operators"))
                }
            };
            written.map_err(|error| error.node(&**node.name()))?;
        }
        Ok((scope.out, scope.values))
    }

    fn call(&mut self, scope: &mut Scope<'a>, id: NodeId) -> Result<()> {
        let node = scope.graph.node(id);
        let target = match node.target().strip_prefix("operator.") {
            Some("getitem") => {
                return Err(unsavable("a part is taken of a value that is not known to have several")
                    .help("PyTorch's files have `operator.getitem` only on the results of operators"));
            }
            Some(name) => format!("_operator.{name}"),
            None => node.target().to_string(),
        };
        let kind = TargetKind::of(&target);
        if kind == TargetKind::Function && !target.starts_with("torch._") {
            return Err(unsavable(format!(
                "`{target}` is a function of Python, and an exported program calls operators"
            ))
            .help("export the program anew, or replace the call by operators"));
        }
        let write = |saver: &mut Self, scope: &mut Scope<'a>| {
            let inputs = saver.inputs(scope, id, kind)?;
            let (outputs, is_hop_single_tensor_return) = saver.results(scope, id, kind)?;
            let entries = node.meta.entries.iter().filter(|(key, _)| &***key != crate::program::ARG_NAMES);
            scope.out.nodes.push(schema::Node {
                target: target.clone(),
                inputs,
                metadata: entries.map(|(key, it)| (key.to_string(), it.to_string())).collect(),
                is_hop_single_tensor_return,
                name: Some(match outputs[..] {
                    // Readers put `_unused` behind the names of these.
                    [schema::Argument::None(_)] => without_unused(node),
                    _ => node.name().to_string(),
                }),
                outputs,
            });
            Ok(())
        };
        write(self, scope).map_err(|error: Diagnostic| error.op(&*target))
    }

    fn output(&mut self, scope: &mut Scope<'a>, id: NodeId) -> Result<()> {
        let node = scope.graph.node(id);
        let one = match node.args() {
            [Arg::Tuple(items) | Arg::List(items)] => {
                let outputs = items.iter().map(|it| self.argument(scope, it, None)).collect::<Result<_>>()?;
                scope.out.outputs = outputs;
                return Ok(());
            }
            [one @ Arg::Node(_)] => one,
            _ => return Err(unsavable("the graph gives neither a tuple of values nor one tensor")),
        };
        scope.out.outputs = vec![self.argument(scope, one, None)?];
        // Outside of sub-graphs the schema has no place for a value that is not in a tuple.
        scope.out.is_single_tensor_return = self.depth > 0;
        if self.depth == 0 || !matches!(scope.out.outputs[..], [schema::Argument::Tensor(_)]) {
            return Err(unsavable("the graph gives one value that is not in a tuple")
                .help("give a tuple: what a caller gets is told by the structure of the result"));
        }
        Ok(())
    }

    /// A sub-graph as an argument.
    pub(super) fn subgraph(&mut self, scope: &Scope<'a>, name: &str) -> Result<schema::Argument> {
        let module = scope.module.submodule(name)?;
        self.depth += 1;
        let graph = self.module(module, None);
        self.depth -= 1;
        let (graph, _) = graph.map_err(|error| error.note(format!("in the sub-graph `{name}`")))?;
        Ok(schema::Argument::Graph(Box::new(schema::GraphArgument { name: name.to_string(), graph })))
    }
}

impl<'a> Scope<'a> {
    fn new(module: &'a GraphModule) -> Self {
        let graph = &module.graph;
        let mut getitems: HashMap<_, Vec<NodeId>> = HashMap::new();
        for id in graph.nodes() {
            let node = graph.node(id);
            let is_getitem = node.op() == Opcode::CallFunction && **node.target() == *"operator.getitem";
            if is_getitem && let [Arg::Node(source), Arg::Int(at)] = node.args() {
                let len = match &graph.node(*source).meta.val {
                    Some(Val::Seq { items, .. }) => items.len() as i64,
                    _ => continue,
                };
                let at = if *at < 0 { at + len } else { *at };
                if (0..len).contains(&at) {
                    getitems.entry((*source, at as usize)).or_default().push(id);
                }
            }
        }
        let out = schema::Graph {
            inputs: Vec::new(),
            outputs: Vec::new(),
            nodes: Vec::new(),
            tensor_values: IndexMap::new(),
            sym_int_values: IndexMap::new(),
            sym_bool_values: IndexMap::new(),
            is_single_tensor_return: false,
            custom_obj_values: IndexMap::new(),
            sym_float_values: IndexMap::new(),
        };
        Scope { module, graph, values: HashMap::new(), getitems, names: HashSet::new(), out }
    }

    fn input(&mut self, id: NodeId, place: Option<&Argument>, is_token: bool) -> Result<()> {
        let node = self.graph.node(id);
        let name = &**node.name();
        let (argument, value) = match (place, &node.meta.val) {
            (Some(Argument::Constant { value, .. }), _) => {
                let argument = constant(value);
                (argument.clone(), Value::Constant(argument))
            }
            (Some(Argument::CustomObj { class_fqn, .. }), _) => {
                let object = schema::CustomObjArgument { name: name.to_string(), class_fqn: class_fqn.to_string() };
                self.take_name(name)?;
                self.out.custom_obj_values.insert(name.to_string(), object.clone());
                (schema::Argument::CustomObj(object.clone()), Value::Object(object))
            }
            // Tokens have no value; PyTorch's files say that they are empty tensors.
            (_, None) if is_token => self.define(
                name,
                &Val::Tensor(TensorMeta::contiguous(tracefx_core::DType::Float32, vec![SymInt::from(0)])),
            )?,
            (_, Some(val @ (Val::Tensor(_) | Val::Int(_) | Val::Float(_) | Val::Bool(_)))) => self.define(name, val)?,
            (_, Some(Val::None)) => (schema::Argument::None(true), Value::None),
            (_, Some(Val::Seq { .. }) | None) => return Err(unknown()),
        };
        self.out.inputs.push(argument);
        self.values.insert(id, value);
        Ok(())
    }

    fn get_attr(&mut self, id: NodeId) -> Result<()> {
        let target = self.graph.node(id).target();
        match self.module.attribute(target)? {
            Attribute::Module(_) => {
                self.values.insert(id, Value::Graph(target.to_string()));
                Ok(())
            }
            Attribute::Tensor { .. } | Attribute::Fake { .. } => {
                Err(unsavable(format!("the graph reads the tensor `{target}` from its module"))
                    .help("make it an input: a parameter, buffer or constant of the signature"))
            }
        }
    }

    /// Gives a value a name, and writes what is known of it.
    pub(super) fn define(&mut self, name: &str, val: &Val) -> Result<(schema::Argument, Value)> {
        let key = name.to_string();
        Ok(match val {
            Val::None => (schema::Argument::None(true), Value::None),
            Val::Tensor(meta) => {
                self.take_name(name)?;
                self.out.tensor_values.insert(key.clone(), tensor_meta(meta)?);
                (schema::Argument::Tensor(schema::TensorArgument { name: key.clone() }), Value::Tensor(key))
            }
            Val::Int(it) => {
                self.take_name(name)?;
                self.out.sym_int_values.insert(key.clone(), sym_int(it)?);
                (schema::Argument::SymInt(schema::SymIntArgument::Name(key.clone())), Value::Int(key))
            }
            Val::Float(it) => {
                self.take_name(name)?;
                self.out.sym_float_values.insert(key.clone(), sym_float(it)?);
                (schema::Argument::SymFloat(schema::SymFloatArgument::Name(key.clone())), Value::Float(key))
            }
            Val::Bool(it) => {
                self.take_name(name)?;
                self.out.sym_bool_values.insert(key.clone(), sym_bool(it)?);
                (schema::Argument::SymBool(schema::SymBoolArgument::Name(key.clone())), Value::Bool(key))
            }
            Val::Seq { .. } => return Err(unsavable(format!("the value `{name}` has several parts"))),
        })
    }

    fn take_name(&mut self, name: &str) -> Result<()> {
        if self.names.insert(name.to_string()) {
            return Ok(());
        }
        Err(invalid(format!("two values are called `{name}`")))
    }

    /// A name for a part that no node reads.
    pub(super) fn unused_name(&self, name: String) -> String {
        let is_free = |it: &str| self.graph.find(it).is_none() && !self.names.contains(it);
        if is_free(&name) {
            return name;
        }
        (1..).map(|at| format!("{name}_{at}")).find(|it| is_free(it)).expect("names do not run out")
    }
}

/// The name of a node that gives nothing, as it was before a reader marked it as unused.
fn without_unused(node: &Node) -> String {
    let base = Namespace::default().create_name(&name_of_target(node.op(), node.target()));
    let marked = node.name().strip_prefix(&*base).and_then(|it| it.strip_prefix("_unused"));
    marked.map_or_else(|| node.name().to_string(), |suffix| format!("{base}{suffix}"))
}

pub(super) fn unknown() -> Diagnostic {
    unsavable("nothing is known of the value, and PyTorch's files say it of each")
        .help("propagate shapes through the graph first, which notes `val` at each node")
}

fn constant(value: &ConstantValue) -> schema::Argument {
    match value {
        ConstantValue::None => schema::Argument::None(true),
        ConstantValue::Bool(it) => schema::Argument::Bool(*it),
        ConstantValue::Int(it) => schema::Argument::Int(*it),
        ConstantValue::Float(it) => schema::Argument::Float(schema::Float(*it)),
        ConstantValue::Str(it) => schema::Argument::String(it.to_string()),
    }
}

/// What is known of a tensor.
pub(super) fn tensor_meta(meta: &TensorMeta) -> Result<schema::TensorMeta> {
    Ok(schema::TensorMeta {
        dtype: schema::ScalarType(meta.dtype),
        sizes: meta.sizes.iter().map(sym_int).collect::<Result<_>>()?,
        requires_grad: meta.requires_grad,
        device: argument::device(&meta.device),
        strides: meta.strides.iter().map(sym_int).collect::<Result<_>>()?,
        storage_offset: sym_int(&meta.storage_offset)?,
        layout: schema::LayoutNumber(meta.layout),
    })
}

fn sym_int(it: &SymInt) -> Result<schema::SymInt> {
    match (it.as_int(), it.invalid()) {
        (_, Some(problem)) => Err(invalid(format!("a size has no value: it {}", problem.reason()))),
        (Some(known), None) => Ok(schema::SymInt::Int(known)),
        (None, None) => Ok(schema::SymInt::Expr(expression(it.srepr()))),
    }
}

fn sym_float(it: &SymFloat) -> Result<schema::SymFloat> {
    match (it.as_float(), it.invalid()) {
        (_, Some(problem)) => Err(invalid(format!("a float has no value: it {}", problem.reason()))),
        // A fraction is known, too, but only its expression is exact.
        (Some(known), None) if SymFloat::from(known) == *it => Ok(schema::SymFloat::Float(schema::Float(known))),
        (_, None) => Ok(schema::SymFloat::Expr(expression(it.srepr()))),
    }
}

fn sym_bool(it: &SymBool) -> Result<schema::SymBool> {
    match it {
        SymBool::Const(known) => Ok(schema::SymBool::Bool(*known)),
        SymBool::Invalid(problem) => Err(invalid(format!("a condition has no value: it {}", problem.reason()))),
        SymBool::Call(_) => Ok(schema::SymBool::Expr(expression(it.srepr()))),
    }
}

fn expression(expr_str: String) -> SymExpr {
    SymExpr { expr_str, hint: None }
}
