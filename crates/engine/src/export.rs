//! Graph modules as programs of operators: `torch.export.export`.

use crate::Library;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::{Tracer, lower};
use tracefx_export::{
    CallSignature, ConstantValue, ExportedProgram, Exporter, InputKind, Lifted, ModuleCallEntry, TreeSpec, UserInput,
};
use tracefx_ir::{Arg, Attribute, GraphModule, NodeId, Opcode, Str, TensorKind, TensorMeta, Val};
use tracefx_ops::{Builder, Propagation, Symbols, TensorRef, Traced, Value};

impl Library {
    /// The program that a module comes to on these example inputs, one per input of its graph: `torch.export.export`.
    ///
    /// Functions and methods that `torch.fx` traced become the operators that they call in PyTorch, modules that are called
    /// become part of the graph, and the tensors that they hold its inputs. Writes stay as they are: the program is in the
    /// training dialect, and [`ExportedProgram::run_decompositions`] makes the functional one of it. Sizes are those of the
    /// example; an input that is a number, a text or `None` is fixed to it. Parameters and buffers are shared with the
    /// program.
    ///
    /// # Errors
    /// `InputCount` where inputs are missing or too many; `NotImplemented`, naming the node, for functions that are no
    /// operators, for modules without a graph, and for control flow; else what a shape rule refuses.
    ///
    /// # Example
    /// ```
    /// use tracefx_core::Tensor;
    /// use tracefx_engine::Library;
    /// use tracefx_ir::{Arg, Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let relu = graph.call_function("torch.relu", vec![x.into()], vec![]);
    /// let double = graph.call_function("operator.mul", vec![relu.into(), Arg::Int(2)], vec![]);
    /// graph.output(double.into());
    /// let example = Tensor::from_slice(&[-1.0f32, 3.0], &[2])?;
    ///
    /// let library = Library::default();
    /// let program = library.export(&GraphModule::new(graph), &[Value::Tensor(example.clone())])?;
    /// assert!(program.module.graph.to_string().contains("torch.ops.aten.mul.Tensor](args = (%relu, 2)"));
    /// let results = library.runner(&program)?.run(&[Value::Tensor(example)])?;
    /// let Value::Tensor(result) = &results[0] else { panic!("one tensor") };
    /// assert_eq!(result.to_vec::<f32>()?, [0.0, 6.0]);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    pub fn export(&self, module: &GraphModule, inputs: &[Value<Tensor>]) -> Result<ExportedProgram> {
        let (symbols, registry) = (Symbols::default(), self.registry());
        let names = input_names(module, inputs.len())?;
        let user_inputs = names.iter().zip(inputs).map(|(name, it)| user_input(name, it)).collect::<Result<_>>()?;
        let held = Held::of(module);
        let (exporter, values) =
            Exporter::new(Propagation::new(registry, &symbols), held.tensors.clone(), user_inputs)?;
        let (lifted, given) = values.split_at(held.tensors.len());
        let mut recording = Recording { exporter, held: &held, lifted };
        let result = lower(module, registry, &mut recording, given)?;
        let mut results = Vec::new();
        let out_spec = flatten(
            module.graph.output_node().and_then(|it| module.graph.node(it).args().first()),
            &result,
            &mut results,
        );
        let arg_names: Vec<&str> = names.iter().map(|it| &**it).collect();
        let call = CallSignature { out_spec, ..CallSignature::flat(&arg_names, 1) };
        let mut program = recording.exporter.finish(&results, call)?;
        let children = module.modules().into_iter().filter(|(path, _)| !path.is_empty());
        let entry = |(path, _): (String, _)| ModuleCallEntry { fqn: path.into(), signature: None };
        program.module_call_graph.extend(children.map(entry));
        program.example_inputs = Some(inputs.to_vec());
        program.checked_in(registry)
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

fn user_input(name: &Str, value: &Value<Tensor>) -> Result<UserInput> {
    let val = match value {
        Value::Tensor(it) => Ok(Val::Tensor(TensorMeta::of(it))),
        Value::None => Err(ConstantValue::None),
        Value::Bool(it) => Err(ConstantValue::Bool(*it)),
        Value::Float(it) => Err(ConstantValue::Float(*it)),
        Value::Str(it) => Err(ConstantValue::Str(it.clone())),
        Value::Int(it) if let Some(it) = it.as_int() => Err(ConstantValue::Int(it)),
        other => {
            let what = format!("the input `{name}` is a {}", other.kind_name());
            return Err(Diagnostic::new(Code::InputType, what)
                .help("an input is a tensor, a number, a string or None: give the items of a list one by one"));
        }
    };
    Ok(UserInput { name: name.clone(), val })
}

/// The tensors that a module and the modules in it hold.
struct Held {
    /// Parameters, then buffers, then constants.
    tensors: Vec<Lifted>,
    /// The positions of the tensors by their storages.
    by_storage: FxHashMap<usize, Vec<usize>>,
}

impl Held {
    fn of(module: &GraphModule) -> Held {
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
        Held { tensors, by_storage }
    }

    /// The position of a tensor; of tied ones, of the last, as in PyTorch.
    fn position(&self, tensor: &Tensor) -> Option<usize> {
        let sharing = self.by_storage.get(&tensor.storage().id())?;
        sharing.iter().rev().copied().find(|&at| self.tensors[at].tensor.is_same_view(tensor))
    }
}

struct Recording<'a> {
    exporter: Exporter<'a>,
    held: &'a Held,
    lifted: &'a [Traced],
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
        self.exporter.note(entries);
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
