//! Files with saved plans, which `tracefx-runtime` runs without the engine.

use crate::tensors::constant;
use crate::{Runner, Values};
use serde_json::json;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_export::{Argument, ExportedProgram, TreeSpec};
use tracefx_ir::Val;
use tracefx_ops::Value;
use tracefx_plan::{Operand, Plan, TensorView};
use tracefx_runtime::Saved;
use tracefx_wire::{encode_planned_program, program_storages};

impl Runner {
    /// The program as a file in the byte format of tracefx, with a plan for each of these sets of inputs, of which dtypes and layouts
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
        let plans = inputs.iter().map(|it| self.plan(it)).collect::<Result<Vec<_>>>()?;
        let plans: Vec<_> = plans.iter().map(|it| &**it).collect();
        let program = self.program();
        let saved = Saved::of(
            &plans,
            &program_storages(program)?,
            self.library().registry(),
            signature_of(program, plans.first().copied()).to_string(),
        )?;
        encode_planned_program(program, saved.to_bytes()?)
    }
}

/// Inputs of zeros as a program of known sizes takes them, row-major.
///
/// # Errors
/// `InputShape` where a size is not known, or an input is a number.
pub fn zero_inputs(program: &ExportedProgram) -> Result<Values> {
    let graph = &program.module.graph;
    let input = |arg: &Argument| {
        let unknown = |what: String| {
            Diagnostic::new(Code::InputShape, what)
                .help("give inputs of the sizes that the program is to be compiled for")
        };
        if let Argument::Constant { value, .. } = arg {
            return Ok(constant(value));
        }
        let name = arg.name();
        let val = graph.find(name).and_then(|it| graph.node(it).meta.val.clone());
        let Some(Val::Tensor(meta)) = val else {
            return Err(unknown(format!("what the input `{name}` is, the program does not say")));
        };
        let sizes = meta.sizes.iter().map(|it| it.as_int().and_then(|it| usize::try_from(it).ok()));
        match sizes.collect::<Option<Vec<_>>>() {
            Some(sizes) => Tensor::zeros(meta.dtype, &sizes).map(Value::Tensor),
            None => Err(unknown(format!("the input `{name}` has sizes that a call decides"))),
        }
    };
    program.signature.user_inputs().map(|it| input(&it.arg)).collect()
}

/// What a host has to know to put a call together: the structures, and what the inputs are. Sizes are those of the first plan.
fn signature_of(program: &ExportedProgram, plan: Option<&Plan>) -> serde_json::Value {
    let operands = plan.into_iter().flat_map(|it| it.inputs.iter().map(move |operand| (it, operand)));
    let inputs = program.signature.user_inputs().zip(operands).map(|(input, (plan, operand))| {
        let (kind, view) = match operand {
            Operand::Tensor(id) => ("tensor", Some(plan.tensor(*id))),
            Operand::Bool(_) => ("bool", None),
            Operand::Float(_) => ("float", None),
            Operand::Str(_) => ("str", None),
            Operand::None => ("None", None),
            _ => ("int", None),
        };
        json!({
            "name": &**input.arg.name(),
            "kind": kind,
            "dtype": view.map(|it| it.dtype.name()),
            "shape": view.and_then(TensorView::known).map(|it| it.sizes.to_vec()),
        })
    });
    let fields: serde_json::Map<_, _> = program
        .namedtuple_fields
        .iter()
        .map(|(name, fields)| (name.to_string(), fields.iter().map(|it| &**it).collect()))
        .collect();
    json!({
        "inSpec": program.in_spec().map(tree),
        "outSpec": program.out_spec().map(tree),
        "namedtupleFields": fields,
        "inputs": inputs.collect::<Vec<_>>(),
    })
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
