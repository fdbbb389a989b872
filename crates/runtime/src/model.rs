//! A model that is ready to be called.

use crate::Saved;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use tracefx_core::{Code, Diagnostic, Result, Storage, Tensor};
use tracefx_exec::{BoundPlan, Executor, LOOP_STEPS, Preparations, Watch, fits};
use tracefx_ops::{Registry, Value};
use tracefx_plan::{Operand, Plan};
use tracefx_wire::Limits;

/// So many runs at the same time leave their memory to later ones.
const MAX_IDLE: usize = 2;

/// The saved plans of a file, over its weights. What calls write to buffers of the program stays for later calls. It may be called by several
/// threads at a time.
pub struct Model {
    registry: Registry,
    preparations: Preparations,
    signature: String,
    plans: Vec<Planned>,
}

struct Planned {
    plan: Arc<Plan>,
    /// The memory of runs that have ended.
    idle: Mutex<Vec<BoundPlan>>,
}

impl Model {
    /// Opens a file with saved plans. Nothing of it is run, and all of it is checked: every buffer, stride and index of a plan.
    ///
    /// # Errors
    /// `WireMalformed` where the bytes are damaged, `WireVersion` where they are of another version, `GraphInvalid` or `ViewOutOfBounds` where a plan
    /// does not hold together, `NotImplemented` where the file has no plans or they need other kernels, `OutOfMemory`.
    pub fn open(file: &[u8]) -> Result<Self> {
        let Some((plans, storages)) = tracefx_wire::decode_plan(file, &Limits::default())? else {
            return Err(Diagnostic::new(Code::NotImplemented, "the file has no plans, which the runtime runs")
                .help("make a file with plans: tracefx compile model.pt2 model.fxg"));
        };
        Model::of(Saved::from_bytes(plans)?, &storages)
    }

    /// The model of these plans, whose file has these storages.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn of(saved: Saved, storages: &[Storage]) -> Result<Self> {
        let (registry, plans) = (saved.registry()?, saved.plans(storages)?);
        let preparations = Preparations::default();
        let planned = |plan: Plan| {
            let plan = Arc::new(plan);
            let kernels = tracefx_cpu::inference_kernels();
            let bound = BoundPlan::sharing(Arc::clone(&plan), &registry, kernels, &preparations)?;
            Ok(Planned { plan, idle: Mutex::new(vec![bound]) })
        };
        let plans = plans.into_iter().map(planned).collect::<Result<_>>()?;
        Ok(Model { registry, preparations, signature: saved.signature, plans })
    }

    /// How a call is put together, as JSON for the host: the structures of inputs and outputs, and the names of inputs.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// The plans.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.plans.iter().map(|it| &*it.plan)
    }

    /// Calls the model on the user's inputs, flattened, and gives the user's outputs, flattened. An input that the program changes is
    /// changed.
    ///
    /// # Errors
    /// `InputShape` where no plan is for these inputs, `InputValue` where it is a number that no plan is for; else what an operator refuses. It can be called again.
    pub fn run(&self, inputs: &[Value<Tensor>]) -> Result<Vec<Value<Tensor>>> {
        self.run_watched(inputs, &mut |_, _| Ok(()))
    }

    /// As [`Model::run`]. `watch` is told before each step how many were run, and how many there are; an error of it stops the run.
    ///
    /// # Errors
    /// As there, and what `watch` gives.
    pub fn run_watched(&self, inputs: &[Value<Tensor>], watch: &mut Watch<'_>) -> Result<Vec<Value<Tensor>>> {
        let kernels = tracefx_cpu::inference_kernels();
        let planned = self.plans.iter().find(|it| fits(&it.plan, inputs)).ok_or_else(|| self.no_plan(inputs))?;
        let idle = planned.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bound = match idle {
            Some(bound) => bound,
            None => BoundPlan::sharing(Arc::clone(&planned.plan), &self.registry, kernels, &self.preparations)?,
        };
        // Kernels trust what shape rules say, and these sizes are those of a file: what does not fit its operator ends in a panic of safe code.
        let run = AssertUnwindSafe(|| {
            let result = bound.run(Executor::new(&self.registry, kernels), inputs, LOOP_STEPS, watch);
            let mut idle = planned.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE {
                idle.push(bound);
            }
            result
        });
        match catch_unwind(run).unwrap_or_else(|_| Err(panicked()))? {
            Value::List(outputs) => Ok(outputs),
            other => Ok(vec![other]),
        }
    }

    fn no_plan(&self, inputs: &[Value<Tensor>]) -> Diagnostic {
        let given: Vec<String> = inputs.iter().map(described).collect();
        let planned = self.plans.iter().map(|it| {
            let inputs: Vec<String> = it.plan.inputs.iter().map(|operand| wanted(&it.plan, operand)).collect();
            format!("({})", inputs.join(", "))
        });
        let what = format!(
            "no plan of the file is for the inputs ({}); there are plans for {}",
            given.join(", "),
            planned.collect::<Vec<_>>().join(" and ")
        );
        // Where the tensors are those of a plan, it is a number that is not.
        let are_alike = |plan: &Plan| {
            let mut tensors = plan.inputs.iter().zip(inputs).filter(|(it, _)| matches!(it, Operand::Tensor(_)));
            plan.inputs.len() == inputs.len() && tensors.all(|(operand, it)| wanted(plan, operand) == described(it))
        };
        let is_value = self.plans().any(are_alike) && inputs.iter().any(|it| !matches!(it, Value::Tensor(_)));
        Diagnostic::new(if is_value { Code::InputValue } else { Code::InputShape }, what)
            .help("give row-major inputs of these dtypes and sizes, or compile the program for yours as well")
    }
}

fn panicked() -> Diagnostic {
    Diagnostic::new(Code::Internal, "a step of the plan panicked: its sizes are not those that its operator gives")
        .help("compile the program again; if that does not help, it is a bug of tracefx, please report it")
}

fn described(value: &Value<Tensor>) -> String {
    match value {
        Value::Tensor(it) => {
            let order = if it.is_contiguous() { "" } else { ", not row-major" };
            format!("{}{:?}{order}", it.dtype().name(), it.sizes())
        }
        Value::Int(it) => it.to_string(),
        Value::Float(it) => it.to_string(),
        Value::Bool(it) => it.to_string(),
        Value::Str(it) => format!("{it:?}"),
        other => other.kind_name().to_owned(),
    }
}

fn wanted(plan: &Plan, operand: &Operand) -> String {
    match operand {
        Operand::Tensor(id) => {
            let view = plan.tensor(*id);
            let sizes: Vec<String> = view.sizes.iter().map(ToString::to_string).collect();
            format!("{}[{}]", view.dtype.name(), sizes.join(", "))
        }
        Operand::Int(it) => it.to_string(),
        Operand::Float(it) => it.to_string(),
        Operand::Bool(it) => it.to_string(),
        Operand::Str(it) => format!("{it:?}"),
        _ => "None".to_owned(),
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("plans", &self.plans.len()).finish_non_exhaustive()
    }
}
