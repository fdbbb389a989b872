//! What a front end writes a program with.

mod graphs;
mod sizes;

use crate::decompose::recorder::is_impure;
use crate::{
    Argument, CallSignature, Constant, ConstantValue, ExportedProgram, GraphSignature, InputKind, InputSpec,
    ModuleCallEntry, OutputKind, OutputSpec, StateEntry,
};
use graphs::{Ended, Frame, Held};
use indexmap::{IndexMap, IndexSet};
pub use sizes::ASSERTED_CONVERSIONS;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_ir::{Arg, GraphModule, Meta, Str, TensorMeta, Val};
use tracefx_ops::{Args, Builder, Output, Propagation, TensorRef, Traced, Value, Vjp, bind};

/// A tensor of the module that is exported, which becomes an input of the graph.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The qualified name.
    pub fqn: Str,
    /// Whether it is a parameter, a buffer or a constant.
    pub kind: InputKind,
    /// Of a buffer, whether it is saved with the module.
    pub is_persistent: bool,
    /// The tensor.
    pub tensor: Tensor,
}

/// An input of the user: its name, and what is known of it.
#[derive(Clone, Debug)]
pub struct UserInput {
    /// The name.
    pub name: Str,
    /// A tensor or number that differs from call to call, or else the value that the program is fixed to.
    pub val: Result<Val, ConstantValue>,
}

/// Writes a program operator by operator: what tracing a module comes down to.
///
/// The operators are kept as they are called, those that work in place too: the program is in PyTorch's training dialect,
/// of which [`ExportedProgram::run_decompositions`] makes the functional one.
///
/// ```
/// use tracefx_core::{DType, Tensor};
/// use tracefx_export::{CallSignature, Exporter, InputKind, Lifted, UserInput};
/// use tracefx_ir::{TensorMeta, Val};
/// use tracefx_ops::{Builder, Propagation, Symbols, registry};
///
/// let weight = Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
/// let weight = Lifted { fqn: "lin.weight".into(), kind: InputKind::Parameter, is_persistent: true, tensor: weight };
/// let x = Val::Tensor(TensorMeta::contiguous(DType::Float32, vec![3.into(), 2.into()]));
/// let symbols = Symbols::default();
/// let shapes = Propagation::new(registry(), &symbols);
/// let (mut exporter, inputs) = Exporter::new(shapes, vec![weight], vec![UserInput { name: "x".into(), val: Ok(x) }])?;
/// let [weight, x] = inputs.as_slice() else { panic!("one for each input") };
/// let product = exporter.call("aten.mul.Tensor", &[x.clone(), weight.clone()], &[])?;
/// let program = exporter.finish(&product, CallSignature::flat(&["x"], 1))?;
/// assert_eq!(program.module.graph.to_string().lines().nth(3), Some(
///     "    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, %p_lin_weight), kwargs = {})",
/// ));
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
pub struct Exporter<'a> {
    shapes: Propagation<'a>,
    /// The graph of the program, and those of control flow that are being written.
    frames: Vec<Frame>,
    /// Those that have ended and are not called yet.
    ended: Vec<Ended>,
    /// The values of tensors by their references; what works in place gives a tensor another one.
    tensors: Vec<Held>,
    input_specs: Vec<InputSpec>,
    state_dict: IndexMap<Str, StateEntry>,
    constants: IndexMap<Str, Constant>,
}

impl<'a> Exporter<'a> {
    /// An exporter, and what stands for the inputs: the tensors of the module first, in PyTorch's order of kinds, then the
    /// user's.
    ///
    /// # Errors
    /// `GraphInvalid` where a tensor of the module is none of its parameters, buffers and constants.
    pub fn new(
        shapes: Propagation<'a>,
        lifted: Vec<Lifted>,
        inputs: Vec<UserInput>,
    ) -> Result<(Exporter<'a>, Vec<Traced>)> {
        let mut res = Exporter {
            shapes,
            frames: vec![Frame::new()],
            ended: Vec::new(),
            tensors: Vec::new(),
            input_specs: Vec::new(),
            state_dict: IndexMap::new(),
            constants: IndexMap::new(),
        };
        // The user's names go first, as in PyTorch.
        let mut names = IndexSet::new();
        let user_names: Vec<Str> = inputs.iter().map(|it| unused(&mut names, &it.name)).collect();
        let mut values = Vec::new();
        for it in lifted {
            let prefix = match it.kind {
                InputKind::Parameter => "p_",
                InputKind::Buffer => "b_",
                InputKind::ConstantTensor => "c_",
                InputKind::UserInput | InputKind::CustomObj | InputKind::Token => {
                    return Err(Diagnostic::new(Code::GraphInvalid, format!("`{}` is no tensor of a module", it.fqn)));
                }
            };
            let name = unused(&mut names, &format!("{prefix}{}", identifier(&it.fqn)));
            values.push(res.lift(&name, it)?);
        }
        for (name, input) in user_names.into_iter().zip(inputs) {
            values.push(res.user_input(name, input.val)?);
        }
        Ok((res, values))
    }

    /// Notes for the nodes that come next, as PyTorch serialises them: `stack_trace`, `nn_module_stack` and so on.
    pub fn note(&mut self, entries: IndexMap<Str, Str>) {
        self.recorder().notes = entries;
    }

    /// The program that gives these results. What nothing uses is dropped.
    ///
    /// # Errors
    /// `NotImplemented` for a result that no program gives.
    pub fn finish(mut self, results: &[Traced], call: CallSignature) -> Result<ExportedProgram> {
        let (mut returned, mut output_specs, mut vals) = (Vec::new(), Vec::new(), Vec::new());
        for result in results {
            let proxy = self.proxy(result)?;
            let arg = self.recorder().arg(&proxy)?;
            output_specs.push(OutputSpec {
                kind: OutputKind::UserOutput,
                arg: self.argument(&arg, result)?,
                target: None,
            });
            vals.push(arg.as_node().and_then(|it| self.recorder().val(it)).unwrap_or(Val::None));
            returned.push(arg);
        }
        let root = self.frames.swap_remove(0);
        let mut graph = root.recorder.finish();
        sizes::assert_converted(&mut graph)?;
        let output = graph.output(Arg::Tuple(returned));
        graph.meta_mut(output).val = Some(Val::Seq { items: vals, is_tuple: true });
        let registry = self.shapes.registry();
        graph.eliminate_dead_code(&|_, node| is_impure(node, registry))?;
        let mut module = GraphModule::new(graph.compacted());
        module.attributes.extend(root.graphs);
        Ok(ExportedProgram {
            module,
            signature: GraphSignature { input_specs: self.input_specs, output_specs },
            state_dict: self.state_dict,
            opaque_state: IndexMap::new(),
            constants: self.constants,
            range_constraints: IndexMap::new(),
            module_call_graph: vec![ModuleCallEntry { fqn: "".into(), signature: Some(call) }],
            verifiers: vec!["TRAINING".into()],
            guards: Vec::new(),
            example_inputs: None,
            opset_version: [("aten".into(), 10)].into(),
            schema_version: (8, 20),
            torch_version: "".into(),
            namedtuple_fields: IndexMap::new(),
            extra_files: IndexMap::new(),
            warnings: Vec::new(),
        })
    }

    fn lift(&mut self, name: &str, it: Lifted) -> Result<Traced> {
        let is_parameter = it.kind == InputKind::Parameter;
        let requires_grad = is_parameter && (it.tensor.dtype().is_float() || it.tensor.dtype().is_complex());
        let meta = TensorMeta { requires_grad, ..TensorMeta::of(&it.tensor) };
        self.input_specs.push(InputSpec {
            kind: it.kind,
            arg: Argument::Tensor(name.into()),
            target: Some(it.fqn.clone()),
            persistent: (it.kind == InputKind::Buffer).then_some(it.is_persistent),
        });
        if is_parameter || (it.kind == InputKind::Buffer && it.is_persistent) {
            self.state_dict.insert(it.fqn, StateEntry { tensor: it.tensor, is_parameter, requires_grad });
        } else {
            self.constants.insert(it.fqn, Constant::Tensor(it.tensor));
        }
        self.placeholder(name, Val::Tensor(meta))
    }

    fn user_input(&mut self, name: Str, val: Result<Val, ConstantValue>) -> Result<Traced> {
        let arg = match &val {
            Ok(Val::Tensor(_)) => Argument::Tensor(name.clone()),
            Ok(Val::Int(_)) => Argument::SymInt(name.clone()),
            Ok(Val::Float(_)) => Argument::SymFloat(name.clone()),
            Ok(Val::Bool(_)) => Argument::SymBool(name.clone()),
            Ok(Val::None | Val::Seq { .. }) => {
                return Err(Diagnostic::new(
                    Code::InputType,
                    format!("the input `{name}` is neither a tensor nor a number"),
                ));
            }
            Err(value) => Argument::Constant { name: name.clone(), value: value.clone() },
        };
        self.input_specs.push(InputSpec { kind: InputKind::UserInput, arg, target: None, persistent: None });
        match val {
            Ok(val) => self.placeholder(&name, val),
            Err(value) => {
                let (val, fixed) = fixed(&value);
                self.recorder().placeholder(&name, &name, Vec::new(), Meta { val, ..Meta::default() })?;
                Ok(fixed)
            }
        }
    }

    fn placeholder(&mut self, name: &str, val: Val) -> Result<Traced> {
        let meta = Meta { val: Some(val.clone()), ..Meta::default() };
        let node = self.recorder().placeholder(name, name, Vec::new(), meta)?;
        let value = self.recorder().value_of(node, &val);
        Ok(self.adopted(&value))
    }

    fn argument(&mut self, arg: &Arg, result: &Traced) -> Result<Argument> {
        let name = arg.as_node().map_or_else(|| "".into(), |it| self.recorder().name(it));
        let constant = |value| Ok(Argument::Constant { name: "".into(), value });
        match (result, arg) {
            (Value::Tensor(_), _) => Ok(Argument::Tensor(name)),
            (Value::Int(_), Arg::Node(_)) => Ok(Argument::SymInt(name)),
            (Value::SymFloat(_), Arg::Node(_)) => Ok(Argument::SymFloat(name)),
            (Value::SymBool(_), Arg::Node(_)) => Ok(Argument::SymBool(name)),
            (_, Arg::None) => constant(ConstantValue::None),
            (_, Arg::Bool(it)) => constant(ConstantValue::Bool(*it)),
            (_, Arg::Int(it)) => constant(ConstantValue::Int(*it)),
            (_, Arg::Float(it)) => constant(ConstantValue::Float(*it)),
            (_, Arg::Str(it)) => constant(ConstantValue::Str(it.clone())),
            (other, _) => {
                let what = format!("a program gives no {} as a result", other.kind_name());
                Err(Diagnostic::new(Code::NotImplemented, what))
            }
        }
    }

    fn record(&mut self, args: &Args<'a, TensorRef>) -> Result<Vec<Traced>> {
        let (op, symbols) = (args.op, self.shapes.symbols());
        let known = |it: &Traced| symbols.replace_value(&it.map(&mut |it| self.meta(*it).clone()));
        let metas = args.values.iter().map(known).collect();
        let mut outputs = self.shapes.infer(&Args::within(op, metas, symbols))?;
        // Python computes with sizes at once; the nodes are made where the graph needs what comes of it.
        if op.schema.is_python() {
            let results = outputs.iter().map(|it| self.plain(args, it)).collect::<Result<Vec<_>>>()?;
            results.iter().try_for_each(|it| self.note_origin(args, it))?;
            return Ok(results);
        }
        let mut wants_grad = false;
        args.values.iter().for_each(|it| it.for_each_tensor(&mut |it| wants_grad |= self.meta(*it).requires_grad));
        let flows = wants_grad && !matches!(op.def.vjp, Some(Vjp::None));
        outputs.iter_mut().for_each(|it| require_grad(it, flows));
        self.note_write(args);
        let proxies = args.values.iter().map(|it| self.proxy(it)).collect::<Result<_>>()?;
        let results = self.recorder().record(&Args::within(op, proxies, symbols), &outputs)?;
        // What works in place gives its argument, which is the new node from here on.
        let results = outputs.iter().zip(&results).map(|(output, result)| match (output, result) {
            (Output::Same(arg), Value::Tensor(new)) if let Some(Value::Tensor(tensor)) = args.values.get(*arg) => {
                self.renew(*tensor, *new);
                Value::Tensor(*tensor)
            }
            (_, _) => self.adopted(result),
        });
        Ok(results.collect())
    }

    fn plain(&self, args: &Args<'_, TensorRef>, output: &Output) -> Result<Traced> {
        match output {
            Output::Value(value) => value.try_map(&mut |_| Err(args.unsupported("a tensor as a plain value"))),
            _ => Err(args.unsupported("a result that is no number")),
        }
    }
}

impl Builder for Exporter<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let op = self.shapes.registry().require(op)?;
        let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (Str::from(*key), it.clone())).collect();
        let args = Args::within(op, bind(op, args, &kwargs)?, self.shapes.symbols());
        self.record(&args).map_err(|problem| problem.op(&*op.name))
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        let Held { depth, proxy } = self.tensors[tensor.0];
        self.frames[depth].recorder.meta(proxy)
    }
}

/// Notes whether gradients flow to a result.
fn require_grad(output: &mut Output, flows: bool) {
    match output {
        Output::Tensor(meta) | Output::View { meta, .. } | Output::Unknown(Value::Tensor(meta)) => {
            meta.requires_grad = flows && (meta.dtype.is_float() || meta.dtype.is_complex());
        }
        Output::List(items) => items.iter_mut().for_each(|it| require_grad(it, flows)),
        Output::Same(_) | Output::Value(_) | Output::Unknown(_) => {}
    }
}

/// What the graph knows of a fixed input, and what the traced code gets.
fn fixed(value: &ConstantValue) -> (Option<Val>, Traced) {
    match value {
        ConstantValue::None => (Some(Val::None), Value::None),
        ConstantValue::Bool(it) => (Some(Val::Bool((*it).into())), Value::Bool(*it)),
        ConstantValue::Int(it) => (Some(Val::Int((*it).into())), Value::int(*it)),
        ConstantValue::Float(it) => (Some(Val::Float((*it).into())), Value::Float(*it)),
        ConstantValue::Str(it) => (None, Value::Str(it.clone())),
    }
}

/// A qualified name as a part of an identifier, without what PyTorch takes for the name of the module itself.
fn identifier(fqn: &str) -> String {
    let fqn = fqn.strip_prefix("L__self___").or(fqn.strip_prefix("self_")).unwrap_or(fqn);
    let plain = fqn.chars().map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '_' });
    plain.collect()
}

/// The name, or with a number behind it where it is taken.
fn unused(names: &mut IndexSet<Str>, name: &str) -> Str {
    let numbered = (1..).map(|it| Str::from(format!("{name}_{it}")));
    let free = [Str::from(name)].into_iter().chain(numbered).find(|it| !names.contains(it));
    let free = free.expect("there are more numbers than names");
    names.insert(free.clone());
    free
}
