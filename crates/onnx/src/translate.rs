//! Walks a program's graph and its sub-graphs, and calls the translation of each node.

use crate::call::{Call, Results, Tensor, unknown};
use crate::graph::{GraphBuilder, X};
use crate::ops::{self, Translate};
use crate::proto::{GraphProto, StringStringEntryProto};
use std::collections::{BTreeMap, HashMap};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, TensorMeta, Val};
use tracefx_ops::{Value, registry};

/// Translates nodes; the graph that it is in changes with branches and loops.
pub(crate) struct Translator<'g> {
    pub(crate) builder: GraphBuilder,
    pub(crate) module: &'g GraphModule,
    pub(crate) values: HashMap<NodeId, Value<Tensor>>,
    pub(crate) metadata: bool,
}

/// What ends a sub-graph: of its results, its outputs.
type Finish<'a, 'g> = dyn FnMut(&mut Translator<'g>, Vec<Value<Tensor>>) -> Result<Vec<X>> + 'a;

/// The key of the table for what a node calls: the name without `torch.ops.`.
pub(crate) fn key(target: &str) -> &str {
    target.strip_prefix("torch.ops.").unwrap_or(target)
}

/// Names everything in a module and in its sub-graphs that has no translation.
///
/// # Errors
/// `NotImplemented`, with a note for each operator and the first node that calls it.
pub(crate) fn check_translated(module: &GraphModule) -> Result<()> {
    let mut missing: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (_, module) in module.modules() {
        for id in module.graph.nodes() {
            let node = module.graph.node(id);
            let what = match node.op() {
                Opcode::CallFunction if ops::is_known(key(node.target())) => continue,
                Opcode::CallFunction => key(node.target()).to_string(),
                Opcode::CallMethod | Opcode::CallModule => format!("{} {}", node.op(), node.target()),
                Opcode::Placeholder | Opcode::GetAttr | Opcode::Output => continue,
            };
            missing.entry(what).or_insert_with(|| (0, node.name().to_string())).0 += 1;
        }
    }
    let Some((_, (_, node))) = missing.first_key_value() else { return Ok(()) };
    let names: Vec<&str> = missing.keys().map(String::as_str).collect();
    let what = format!("ONNX has no translation of {}", names.join(", "));
    let mut problem = Diagnostic::new(Code::NotImplemented, what).node(node);
    for (name, (n, node)) in &missing {
        problem = problem.note(format!("{name}: {n} call{}, the first is %{node}", if *n == 1 { "" } else { "s" }));
    }
    Err(problem
        .help("put the program in terms of core operators (--decompose, run_decompositions), or rewrite these calls"))
}

impl<'g> Translator<'g> {
    /// What an argument is: a value of the graph, or one of Python's.
    pub(crate) fn value(&self, arg: &Arg) -> Result<Value<Tensor>> {
        Value::of_arg(arg, &mut |it| match it {
            Arg::Node(id) => Ok(self.values.get(id).cloned().unwrap_or(Value::None)),
            _ => Err(Diagnostic::new(Code::NotImplemented, "an argument is nothing that operators take")),
        })
    }

    /// Translates the nodes of a graph whose placeholders are known; gives the results.
    pub(crate) fn run(&mut self, module: &'g GraphModule) -> Result<Vec<Value<Tensor>>> {
        let graph = &module.graph;
        let mut results = Vec::new();
        for id in graph.nodes() {
            let node = graph.node(id);
            match node.op() {
                Opcode::Placeholder => {}
                Opcode::Output => {
                    let arg = node.args().first().unwrap_or(&Arg::None);
                    results = match self.value(arg)? {
                        Value::List(items) => items,
                        single => vec![single],
                    };
                }
                Opcode::GetAttr => {
                    if let Attribute::Tensor { tensor, .. } = module.attribute(node.target())? {
                        let x = self.builder.constant(tensor)?;
                        let sizes = TensorMeta::of(tensor).sizes;
                        self.values.insert(id, Value::Tensor(Tensor { x, sizes, is_number: false }));
                    }
                }
                Opcode::CallFunction => {
                    let value = self.call(graph, id).map_err(|it| it.node(&**node.name()).op(key(node.target())))?;
                    self.values.insert(id, value);
                }
                Opcode::CallMethod | Opcode::CallModule => unreachable!("such nodes were refused"),
            }
        }
        Ok(results)
    }

    fn call(&mut self, graph: &'g Graph, id: NodeId) -> Result<Value<Tensor>> {
        let node = graph.node(id);
        let name = key(node.target());
        if name == "operator.getitem" {
            return self.item(node);
        }
        let translate = self.translation(name, node)?;
        self.builder.place = node.name().to_string();
        self.builder.notes = if self.metadata { notes(node) } else { Vec::new() };
        let start = self.builder.nodes.len();
        let schema = registry().get(name).map(|it| &it.schema);
        let used = used_results(graph, id);
        let Results(results) = translate(&mut Call { translator: self, node, schema, used })?;
        match &node.meta.val {
            Some(Val::Seq { items, .. }) => {
                let mut values = Vec::new();
                for (at, val) in items.iter().enumerate() {
                    values.push(match results.get(at).cloned().flatten() {
                        Some(x) => {
                            let it = self.checked(x, val)?;
                            let x = self.builder.rename(start, it.x, &format!("{}.{at}", node.name()));
                            Value::Tensor(Tensor { x, ..it })
                        }
                        None => Value::None,
                    });
                }
                Ok(Value::List(values))
            }
            val => match results.into_iter().next().flatten() {
                Some(x) => {
                    let it = self.checked(x, val.as_ref().ok_or_else(unknown)?)?;
                    let x = self.builder.rename(start, it.x, node.name());
                    Ok(Value::Tensor(Tensor { x, ..it }))
                }
                None => Ok(Value::None),
            },
        }
    }

    /// The translation of a call: another one where a number is complex.
    fn translation(&self, name: &str, node: &Node) -> Result<Translate> {
        let is_complex = |it: &Value<Tensor>| matches!(it, Value::Tensor(it) if it.x.dtype.is_complex());
        let mut found = node.meta.val.as_ref().and_then(dtype_of).is_some_and(DType::is_complex);
        node.for_each_input(&mut |it| found |= self.values.get(&it).is_some_and(is_complex));
        if found {
            return ops::find_complex(name).ok_or_else(|| {
                let what = "its operands are complex, and ONNX has no such tensors";
                Diagnostic::new(Code::NotImplemented, what).help("compute with real and imaginary parts")
            });
        }
        ops::find(name).ok_or_else(|| {
            let what = "it is translated for complex numbers alone";
            Diagnostic::new(Code::NotImplemented, what).help("rewrite this call")
        })
    }

    /// The value with what is noted of it, in the dtype that is PyTorch's.
    fn checked(&mut self, x: X, val: &Val) -> Result<Tensor> {
        let dtype = dtype_of(val).ok_or_else(unknown)?;
        let x = if x.dtype.is_complex() || dtype.is_complex() { x } else { self.builder.cast(&x, dtype)? };
        described(x, val)
    }

    fn item(&self, node: &Node) -> Result<Value<Tensor>> {
        let list = node.args().first().map(|it| self.value(it)).transpose()?;
        match (list, node.args().get(1)) {
            (Some(Value::List(items)), Some(Arg::Int(at))) => {
                Ok(items.get(*at as usize).cloned().unwrap_or(Value::None))
            }
            _ => Ok(Value::None),
        }
    }

    /// Translates a sub-graph on these values into a graph of its own: one that sees the values around it. `finish` adds to
    /// its end, and gives its outputs.
    pub(crate) fn sub_graph(
        &mut self,
        name: &str,
        module: &'g GraphModule,
        inputs: &[Value<Tensor>],
        finish: &mut Finish<'_, 'g>,
    ) -> Result<GraphProto> {
        let outer_nodes = std::mem::take(&mut self.builder.nodes);
        let (place, notes) = (self.builder.place.clone(), self.builder.notes.clone());
        let results = self.inline(module, inputs)?;
        (self.builder.place, self.builder.notes) = (place, notes);
        let outputs = finish(self, results)?;
        let mut output = Vec::new();
        for it in &outputs {
            // A graph gives what its own nodes make, each under one name.
            let own = self.builder.raw("Identity", &[it], Vec::new(), it.dtype);
            output.push(crate::model::value_info(&own, None)?);
        }
        let node = std::mem::replace(&mut self.builder.nodes, outer_nodes);
        Ok(GraphProto { node, name: name.to_string(), output, ..GraphProto::default() })
    }

    /// Translates a sub-graph on these values where it is called.
    pub(crate) fn inline(&mut self, module: &'g GraphModule, inputs: &[Value<Tensor>]) -> Result<Vec<Value<Tensor>>> {
        let outer_values = std::mem::take(&mut self.values);
        let outer_module = std::mem::replace(&mut self.module, module);
        let placeholders = module.graph.nodes().filter(|&it| module.graph.node(it).op() == Opcode::Placeholder);
        self.values = placeholders.zip(inputs.iter().cloned()).collect();
        let results = self.run(module);
        (self.values, self.module) = (outer_values, outer_module);
        results
    }
}

/// A value with the sizes that are noted of it.
pub(crate) fn described(x: X, val: &Val) -> Result<Tensor> {
    let sizes = if let Val::Tensor(meta) = val { meta.sizes.clone() } else { Vec::new() };
    Ok(Tensor { x, sizes, is_number: !matches!(val, Val::Tensor(_)) })
}

/// The dtype of the ONNX value of this.
pub(crate) fn dtype_of(val: &Val) -> Option<DType> {
    match val {
        Val::Tensor(it) => Some(it.dtype),
        Val::Int(_) => Some(DType::Int64),
        Val::Float(_) => Some(DType::Float64),
        Val::Bool(_) => Some(DType::Bool),
        Val::None | Val::Seq { .. } => None,
    }
}

/// Which results of a node are taken by someone.
fn used_results(graph: &Graph, id: NodeId) -> Vec<bool> {
    let n = if let Some(Val::Seq { items, .. }) = &graph.node(id).meta.val { items.len() } else { return vec![true] };
    let mut used = vec![false; n];
    for user in graph.users(id).iter() {
        let node = graph.node(user);
        match (key(node.target()), node.args().get(1)) {
            ("operator.getitem", Some(Arg::Int(at))) if graph.users(user).iter().next().is_some() => {
                if let Some(it) = used.get_mut(*at as usize) {
                    *it = true;
                }
            }
            ("operator.getitem", Some(Arg::Int(_))) => {}
            _ => used.fill(true),
        }
    }
    used
}

/// Where the node is from, for those who look at the model.
fn notes(node: &Node) -> Vec<StringStringEntryProto> {
    let entry = |key: &str, value: &str| StringStringEntryProto { key: key.to_string(), value: value.to_string() };
    let mut notes = vec![entry("pkg.torch.fx.node", node.name()), entry("pkg.torch.fx.target", node.target())];
    for key in ["nn_module_stack", "stack_trace"] {
        notes.extend(node.meta.get(key).map(|it| entry(&format!("pkg.torch.fx.{key}"), it)));
    }
    notes
}
