//! Graph modules as programs of operators: `torch.export.export`.

use crate::{
    CallSignature, ConstantValue, DynamicShapes, ExportedProgram, Exporter, InputKind, Lifted, ModuleCallEntry,
    ShapeSession, TreeSpec, UserInput,
};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::{GraphTracer, Tracer, lower};
use tracefx_ir::{Arg, Attribute, GraphModule, NodeId, Opcode, Str, TensorKind, TensorMeta, Val};
use tracefx_ops::{Builder, Propagation, Registry, TensorRef, Traced, Value};
use tracefx_sym::SymBool;

/// The program that a module comes to on these example inputs, one per input of its graph:
/// `torch.export.export(…, dynamic_shapes=…)`.
///
/// Functions and methods that `torch.fx` traced become the operators that they call in PyTorch, modules that are called
/// become part of the graph, and the tensors that they hold its inputs. Graphs of `cond`, `while_loop`, `map_impl` and
/// `scan` become graphs of operators, and what they use of the module operands. Writes stay as they are: the program is
/// in the training dialect, and [`ExportedProgram::run_decompositions`] makes the functional one of it. An input that is a
/// number, a text or `None` is fixed to it, and a list of inputs stays one. Parameters and buffers are shared with the program.
///
/// Sizes are those of the examples, but where the dynamic shapes say otherwise: such a size is a symbol. What the module needs
/// of it is looked up in the examples; what comes of that is compared with what is said, and a call of the program is checked
/// against both. What is unbacked, such as how many elements `nonzero` finds, is a symbol of its own, and what
/// `torch._check` holds of it is asserted by the program.
///
/// # Errors
/// `InputCount` where inputs are missing or too many; `NotImplemented`, naming the node, for functions that are no
/// operators, and for modules without a graph; `DataDependent` where an operator needs to know what only the data tells;
/// `DynamicShapes` where their structure is not that of the inputs; `ConstraintViolation`, in PyTorch's words and with the fixes
/// that it suggests, where the module needs more of a size than what is said; else what a shape rule refuses.
///
/// # Example
/// ```
/// use tracefx_core::Tensor;
/// use tracefx_export::{Dim, DynamicShapes, ShapeSpec, export};
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_ops::{Value, registry};
/// use tracefx_sym::ValueRange;
///
/// let mut graph = Graph::new();
/// let x = graph.placeholder("x");
/// let double = graph.call_function("operator.mul", vec![x.into(), Arg::Int(2)], vec![]);
/// graph.output(double.into());
/// let example = Value::Tensor(Tensor::from_slice(&[-1.0f32, 3.0, 0.5], &[3, 1])?);
///
/// let batch = Dim::new("batch", ValueRange::between(1, 64));
/// let shapes = DynamicShapes::named([("x", ShapeSpec::at([(0, batch.into())]))]);
/// let program = export(&GraphModule::new(graph), &[example], &shapes, registry())?;
/// assert!(program.module.graph.to_string().contains("torch.ops.aten.mul.Tensor](args = (%x, 2)"));
/// assert_eq!(program.range_constraints.values().collect::<Vec<_>>(), [&ValueRange::between(1, 64)]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub fn export(
    module: &GraphModule,
    inputs: &[Value<Tensor>],
    dynamic_shapes: &DynamicShapes,
    registry: &Registry,
) -> Result<ExportedProgram> {
    let names = input_names(module, inputs.len())?;
    let known: Vec<Value<TensorMeta>> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let mut session = ShapeSession::new(dynamic_shapes.session_inputs(&names, &known)?)?;
    let leaves = Leaves::of(&names, inputs);
    let values = leaves.names.iter().zip(session.values());
    let user_inputs = values.map(|(name, it)| user_input(name, it)).collect::<Result<_>>()?;
    let held = HeldTensors::of(module);
    let shapes = Propagation::new(registry, session.symbols());
    let (exporter, values) = Exporter::new(shapes, held.tensors.clone(), user_inputs)?;
    let (lifted, given) = values.split_at(held.tensors.len());
    let given = nested(inputs, &mut given.iter());
    let mut recording = Recording { exporter, held: &held, lifted, session: &session };
    let result = lower(module, shapes, &mut recording, &given)?;
    let mut results = Vec::new();
    let out_spec =
        flatten(module.graph.output_node().and_then(|it| module.graph.node(it).args().first()), &result, &mut results);
    let arg_names: Vec<&str> = names.iter().map(|it| &**it).collect();
    let mut call = CallSignature { out_spec, ..CallSignature::flat(&arg_names, 1) };
    call.in_spec.children[0] = TreeSpec::tuple(inputs.iter().map(spec_of).collect());
    let mut program = recording.exporter.finish(&results, call)?;
    session.finish_program(&mut program)?;
    let children = module.modules().into_iter().filter(|(path, _)| !path.is_empty());
    let entry = |(path, _): (String, _)| ModuleCallEntry { fqn: path.into(), signature: None };
    program.module_call_graph.extend(children.map(entry));
    program.example_inputs = Some(leaves.values);
    program.checked_in(registry)
}

/// The inputs one by one, those of lists after the list with their positions.
#[derive(Default)]
struct Leaves {
    names: Vec<Str>,
    values: Vec<Value<Tensor>>,
}

impl Leaves {
    fn of(names: &[Str], inputs: &[Value<Tensor>]) -> Self {
        let mut res = Leaves::default();
        names.iter().zip(inputs).for_each(|(name, it)| res.visit(name.clone(), it));
        res
    }

    fn visit(&mut self, name: Str, value: &Value<Tensor>) {
        match value {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(at, it)| self.visit(format!("{name}_{at}").into(), it));
            }
            leaf => {
                self.names.push(name);
                self.values.push(leaf.clone());
            }
        }
    }
}

/// What stands for the leaves, in the lists in which these are.
fn nested(inputs: &[Value<Tensor>], leaves: &mut std::slice::Iter<'_, Traced>) -> Vec<Traced> {
    let one = |it: &Value<Tensor>| match it {
        Value::List(items) => Value::List(nested(items, leaves)),
        _ => leaves.next().cloned().unwrap_or(Value::None),
    };
    inputs.iter().map(one).collect()
}

fn spec_of(input: &Value<Tensor>) -> TreeSpec {
    match input {
        Value::List(items) => TreeSpec::list(items.iter().map(spec_of).collect()),
        _ => TreeSpec::LEAF,
    }
}

/// The names of the inputs of a graph, as many as are given.
fn input_names(module: &GraphModule, n_given: usize) -> Result<Vec<Str>> {
    let graph = &module.graph;
    let inputs = graph.nodes().map(|it| graph.node(it)).filter(|it| it.op() == Opcode::Placeholder);
    let names: Vec<Str> = inputs.map(|it| it.target().clone()).take(n_given).collect();
    if names.len() < n_given {
        let what = format!("the graph takes {} inputs, and {n_given} are given", names.len());
        return Err(Diagnostic::new(Code::InputCount, what));
    }
    Ok(names)
}

fn user_input(name: &Str, value: &Value<TensorMeta>) -> Result<UserInput> {
    let val = match value {
        Value::Tensor(it) => Ok(Val::Tensor(it.clone())),
        Value::None => Err(ConstantValue::None),
        Value::Bool(it) => Err(ConstantValue::Bool(*it)),
        Value::Float(it) => Err(ConstantValue::Float(*it)),
        Value::Str(it) => Err(ConstantValue::Str(it.clone())),
        Value::Int(it) => it.as_int().map_or_else(|| Ok(Val::Int(it.clone())), |it| Err(ConstantValue::Int(it))),
        other => {
            let what = format!("the input `{name}` is a {}", other.kind_name());
            return Err(Diagnostic::new(Code::InputType, what)
                .help("an input is a tensor, a number, a string or None, or a list of these"));
        }
    };
    Ok(UserInput { name: name.clone(), val })
}

/// The tensors that a module and the modules in it hold.
struct HeldTensors {
    /// Parameters, then buffers, then constants.
    tensors: Vec<Lifted>,
    /// The positions of the tensors by their storages.
    by_storage: FxHashMap<usize, Vec<usize>>,
}

impl HeldTensors {
    fn of(module: &GraphModule) -> Self {
        let mut tensors = Vec::new();
        for (path, module) in module.modules() {
            for (name, attribute) in &module.attributes {
                let Attribute::Tensor { tensor, kind } = attribute else { continue };
                let fqn = if path.is_empty() { name.clone() } else { format!("{path}.{name}").into() };
                let kind = match kind {
                    TensorKind::Parameter => InputKind::Parameter,
                    TensorKind::Buffer => InputKind::Buffer,
                    TensorKind::Constant => InputKind::ConstantTensor,
                };
                tensors.push(Lifted { fqn, kind, is_persistent: true, tensor: tensor.clone() });
            }
        }
        let place = |it: &Lifted| [InputKind::Parameter, InputKind::Buffer].iter().position(|kind| *kind == it.kind);
        tensors.sort_by_key(|it| place(it).unwrap_or(2));
        let mut by_storage: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (at, it) in tensors.iter().enumerate() {
            by_storage.entry(it.tensor.storage().id()).or_default().push(at);
        }
        HeldTensors { tensors, by_storage }
    }

    /// The position of a tensor; of tied ones, of the last, as in PyTorch.
    fn position(&self, tensor: &Tensor) -> Option<usize> {
        let sharing = self.by_storage.get(&tensor.storage().id())?;
        sharing.iter().rev().copied().find(|&at| self.tensors[at].tensor.is_same_view(tensor))
    }
}

struct Recording<'a> {
    exporter: Exporter<'a>,
    held: &'a HeldTensors,
    lifted: &'a [Traced],
    session: &'a ShapeSession,
}

impl Builder for Recording<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        self.exporter.call(op, args, kwargs)
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        self.exporter.meta(tensor)
    }
}

impl Tracer for Recording<'_> {
    fn attribute(&mut self, tensor: &Tensor) -> Result<TensorRef> {
        match self.held.position(tensor).map(|at| &self.lifted[at]) {
            Some(Value::Tensor(it)) => Ok(*it),
            Some(_) | None => Err(Diagnostic::new(Code::Internal, "a tensor of the module is no input of its program")),
        }
    }

    fn enter(&mut self, module: &GraphModule, node: NodeId) {
        let entries: IndexMap<Str, Str> = module.graph.node(node).meta.entries.clone();
        let place = entries.get("stack_trace").and_then(|it| it.lines().next());
        self.session.symbols().set_place(Some(place.unwrap_or(module.graph.node(node).name()).into()));
        self.exporter.note(entries);
    }

    fn check(&mut self, condition: &SymBool, message: Option<Str>) -> Result<()> {
        self.session.check(condition, message)
    }

    fn graphs(&mut self) -> Option<&mut dyn GraphTracer> {
        Some(self)
    }
}

impl GraphTracer for Recording<'_> {
    fn begin(&mut self, inputs: &[Value<TensorMeta>], operands: Option<&[Traced]>) -> Result<Vec<Traced>> {
        self.exporter.begin_graph(inputs, operands)
    }

    fn end(&mut self, result: &Traced) -> Result<Value<TensorMeta>> {
        self.exporter.end_graph(result)
    }

    fn call(&mut self, name: &str, operands: &[Option<Traced>], results: &Value<TensorMeta>) -> Result<Traced> {
        self.exporter.call_graphs(name, operands, results)
    }
}

/// The leaves of a result, and its structure, which the output of the graph tells.
fn flatten(arg: Option<&Arg>, result: &Traced, leaves: &mut Vec<Traced>) -> TreeSpec {
    let Value::List(items) = result else {
        leaves.push(result.clone());
        return TreeSpec::LEAF;
    };
    let args = match arg {
        Some(Arg::Tuple(args) | Arg::List(args)) => args.as_slice(),
        _ => &[],
    };
    let children = items.iter().enumerate().map(|(at, it)| flatten(args.get(at), it, leaves)).collect();
    match arg {
        Some(Arg::List(_)) => TreeSpec::list(children),
        _ => TreeSpec::tuple(children),
    }
}
