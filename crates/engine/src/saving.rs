//! Files with saved plans, which `tracefx-runtime` runs without the engine.

use crate::{Runner, Values};
use serde_json::json;
use tracefx_core::{Code, DType, Diagnostic, Result, Storage, Tensor};
use tracefx_export::{Argument, ExportedProgram, InputSpec, TreeSpec};
use tracefx_ir::Val;
use tracefx_ops::Value;
use tracefx_plan::{Operand, Plan, TensorId, TensorView};
use tracefx_runtime::{Model, Saved};
use tracefx_wire::{encode_planned_program, program_storages};

impl Runner {
    /// The program as a file in the byte format of tracefx, with a plan for each of these sets of inputs, of which dtypes and sizes
    /// count alone. It opens as a program everywhere, and `tracefx-runtime` runs its plans. Buffers are stored as the program has them.
    ///
    /// ```
    /// use tracefx_core::Tensor;
    /// use tracefx_engine::{Library, Runner};
    /// use tracefx_ir::{Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let y = graph.call_function("torch.ops.aten.relu.default", vec![x.into()], vec![]);
    /// graph.output(y.into());
    /// let x = Value::Tensor(Tensor::from_slice(&[-1.0f32, 2.0], &[2])?);
    /// let program = Library::default().export(&GraphModule::new(graph), &[x.clone()])?;
    /// let file = Runner::new(&program)?.compiled_file(&[vec![x.clone()]])?;
    /// let Value::Tensor(y) = &tracefx_runtime::Model::open(&file)?.run(&[x])?[0] else { unreachable!() };
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// As [`Runner::plan`]; `NotImplemented` where a plan needs what the runtime has not.
    pub fn compiled_file(&self, inputs: &[Values]) -> Result<Vec<u8>> {
        // Calls may have changed the state of this runner: plans are made of what the program has.
        let program = self.program();
        let fresh = self.library.runner(program)?.with_precision(self.precision());
        let row_major = |it: &Value<Tensor>| it.try_map(&mut Tensor::compact_copy);
        let inputs = inputs.iter().map(|it| it.iter().map(row_major).collect::<Result<Values>>());
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let plans = inputs.iter().map(|it| fresh.plan(it)).collect::<Result<Vec<_>>>()?;
        let plans: Vec<_> = plans.iter().map(|it| &**it).collect();
        let signature = signature_of(program, &plans).to_string();
        let saved = Saved::of(&plans, &fresh.stored()?, self.library.registry(), signature)?;
        let bytes = saved.to_bytes()?;
        // A kernel may leave a call to a decomposition, which the runtime has not: one run tells, on copies of the state.
        let storages: Vec<Storage> = program_storages(program)?.iter().map(Storage::lazy_clone).collect();
        let model = Model::of(saved, &storages)?;
        for it in &inputs {
            match model.run(it) {
                Err(problem) if problem.code() == Code::NotImplemented => {
                    return Err(problem.help("the runtime cannot run this: run the program with the whole engine"));
                }
                // What the data breaks, other data does not.
                _ => {}
            }
        }
        encode_planned_program(program, bytes)
    }

    /// The storages of its state, and which of the program's storages, in the order of a file, each has the content of.
    fn stored(&self) -> Result<Vec<(Storage, u32)>> {
        let storages = program_storages(self.program())?;
        let number = |name: &str| {
            let own = self.program().tensor(name)?.storage();
            storages.iter().position(|it| it.is_same(own))
        };
        Ok(self.state().filter_map(|(name, it)| Some((it.storage().clone(), number(name)? as u32))).collect())
    }

    /// Inputs of zeros as a program of known sizes takes them, row-major.
    ///
    /// ```
    /// use tracefx_core::{Code, Tensor};
    /// use tracefx_engine::{Library, RunLimits, Runner};
    /// use tracefx_ir::{Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let y = graph.call_function("torch.ops.aten.exp.default", vec![x.into()], vec![]);
    /// graph.output(y.into());
    /// let x = Value::Tensor(Tensor::from_slice(&[1.0f32, 2.0], &[2])?);
    /// let runner = Runner::new(&Library::default().export(&GraphModule::new(graph), &[x])?)?;
    /// let Value::Tensor(y) = &runner.run(&runner.zero_inputs()?)?[0] else { unreachable!() };
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0]);
    ///
    /// let runner = runner.with_limits(RunLimits { input_bytes: 7, ..RunLimits::default() });
    /// assert_eq!(runner.zero_inputs().unwrap_err().code(), Code::LimitExceeded);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `InputShape` where a size is not known, or an input is a number; `LimitExceeded` where they take more than
    /// [`RunLimits::input_bytes`](crate::RunLimits::input_bytes), of which nothing is allocated then.
    pub fn zero_inputs(&self) -> Result<Values> {
        let graph = &self.program().module.graph;
        let mut left = self.limits.input_bytes;
        let mut input = |arg: &Argument| {
            let unknown = |what: String| {
                Diagnostic::new(Code::InputShape, what)
                    .help("give inputs of the sizes that the program is to be compiled for")
            };
            if let Argument::Constant { value, .. } = arg {
                return Ok(Input::Given(value.to_value()));
            }
            let name = arg.name();
            let val = graph.find(name).and_then(|it| graph.node(it).meta.val.as_ref());
            let Some(Val::Tensor(meta)) = val else {
                return Err(unknown(format!("what the input `{name}` is, the program does not say")));
            };
            let sizes = meta.sizes.iter().map(|it| it.as_int().and_then(|it| usize::try_from(it).ok()));
            let Some(sizes) = sizes.collect::<Option<Vec<_>>>() else {
                return Err(unknown(format!("the input `{name}` has sizes that a call decides")));
            };
            let product = || sizes.iter().try_fold(meta.dtype.size() as u64, |n, it| n.checked_mul(*it as u64));
            let n_bytes = if sizes.contains(&0) { Some(0) } else { product() };
            match n_bytes.and_then(|it| left.checked_sub(it)) {
                Some(rest) => left = rest,
                None => return Err(self.too_large(name)),
            }
            Ok(Input::Zeros(meta.dtype, sizes))
        };
        let user_inputs = self.program().signature.user_inputs();
        let inputs = user_inputs.map(|it| input(&it.arg)).collect::<Result<Vec<_>>>()?;
        let value = |it: Input| match it {
            Input::Given(value) => Ok(value),
            Input::Zeros(dtype, sizes) => Tensor::zeros(dtype, &sizes).map(Value::Tensor),
        };
        inputs.into_iter().map(value).collect()
    }

    fn too_large(&self, input: &str) -> Diagnostic {
        let limit = self.limits.input_bytes;
        let what = format!("the zeros up to the input `{input}` take more than {limit} bytes, the limit `input_bytes`");
        Diagnostic::new(Code::LimitExceeded, what).help("if you trust the program, raise the limit `input_bytes`")
    }
}

/// What stands for an input that nobody gives.
enum Input {
    /// The value that the program is for.
    Given(Value<Tensor>),
    /// Zeros of these sizes.
    Zeros(DType, Vec<usize>),
}

/// What a host has to know to put a call together: the structures, and what the inputs are, with their sizes in each plan.
fn signature_of(program: &ExportedProgram, plans: &[&Plan]) -> serde_json::Value {
    let input = |(at, input): (usize, &InputSpec)| {
        let operands = || plans.iter().filter_map(|it| Some((it, it.inputs.get(at)?)));
        let tensors =
            || operands().filter_map(|(plan, it)| if let Operand::Tensor(id) = it { Some((plan, *id)) } else { None });
        let views = || tensors().map(|(plan, id)| plan.tensor(id));
        let kind = match operands().next() {
            Some((_, Operand::Tensor(_))) => "tensor",
            Some((_, Operand::Bool(_))) => "bool",
            Some((_, Operand::Float(_))) => "float",
            Some((_, Operand::Str(_))) => "str",
            Some((_, Operand::None)) => "None",
            _ => "int",
        };
        json!({
            "name": &**input.arg.name(),
            "kind": kind,
            "dtype": views().next().map(|it| it.dtype.name()),
            "shapes": views().filter_map(TensorView::known).map(|it| it.sizes.to_vec()).collect::<Vec<_>>(),
            "isWritten": tensors().any(|(plan, id)| writes(plan, id)),
        })
    };
    let fields: serde_json::Map<_, _> = program
        .namedtuple_fields
        .iter()
        .map(|(name, fields)| (name.to_string(), fields.iter().map(|it| &**it).collect()))
        .collect();
    json!({
        "inSpec": program.in_spec().map(tree),
        "outSpec": program.out_spec().map(tree),
        "namedtupleFields": fields,
        "inputs": program.signature.user_inputs().enumerate().map(input).collect::<Vec<_>>(),
    })
}

/// Whether a step writes to the memory of a tensor.
fn writes(plan: &Plan, tensor: TensorId) -> bool {
    let mut res = false;
    for step in &plan.steps {
        step.action.for_each_written(&mut |it| res |= plan.tensor(it).buffer == plan.tensor(tensor).buffer);
    }
    res
}

/// A leaf has neither type nor context. The depth is that of the specification, which the reader of a file bounds.
fn tree(spec: &TreeSpec) -> serde_json::Value {
    let mut res = json!({ "children": spec.children.iter().map(tree).collect::<Vec<_>>() });
    for (key, value) in [("type", &spec.ty), ("context", &spec.context)] {
        if let Some(value) = value {
            res[key] = json!(&**value);
        }
    }
    res
}
