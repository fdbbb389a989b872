//! Saved plans as bytes: what stands in the section `PLAN` of a file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracefx_core::allocate::copied;
use tracefx_core::{Code, Diagnostic, Result, Storage};
use tracefx_ops::{Registry, Tags};
use tracefx_plan::{Action, Fused, Operand, Plan};

/// Readers refuse another version.
const VERSION: u32 = 1;

/// The plans of a program, with what has to be known to call their kernels.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    version: u32,
    /// How a call is put together, as JSON for the host.
    pub signature: String,
    /// The schemas of the operators that the plans call, and the bits of their properties.
    operators: Vec<(String, u32)>,
    plans: Vec<SavedPlan>,
}

/// One plan.
#[derive(Debug, Serialize, Deserialize)]
struct SavedPlan {
    outline: Vec<u8>,
    constants: Vec<Constant>,
}

/// The memory of the program that a plan reads.
#[derive(Debug, Serialize, Deserialize)]
enum Constant {
    /// The storage of this number in the file.
    OfFile(u32),
    /// What was computed when the plan was made.
    Own(Vec<u8>),
}

impl SavedPlan {
    /// A plan over storages of which some stand in the file, under these numbers.
    ///
    /// # Errors
    /// As [`Plan::to_parts`]; `OutOfMemory`.
    fn of(plan: &Plan, stored: &[(Storage, u32)]) -> Result<Self> {
        let (outline, constants) = plan.to_parts()?;
        let constant = |it: &Storage| match stored.iter().find(|(storage, _)| storage.is_same(it)) {
            Some((_, at)) => Ok(Constant::OfFile(*at)),
            None => Ok(Constant::Own(copied(it.read().bytes())?)),
        };
        Ok(SavedPlan { outline, constants: constants.iter().map(constant).collect::<Result<_>>()? })
    }
}

impl Saved {
    /// These plans, whose operators are of this registry. Of the storages that they read, these stand in the file, under these numbers: what one
    /// plan writes there, the others see.
    ///
    /// # Errors
    /// As `SavedPlan::of`; `NotImplemented` where a plan calls what has no kernel in the runtime.
    pub fn of(plans: &[&Plan], stored: &[(Storage, u32)], registry: &Registry, signature: String) -> Result<Self> {
        let mut operators = BTreeMap::new();
        for plan in plans {
            let missing = missing_kernels(plan);
            if !missing.is_empty() {
                let what = format!("the runtime has no kernel of {}", missing.join(", "));
                return Err(Diagnostic::new(Code::NotImplemented, what)
                    .help("run the program with the whole engine, or decompose it first"));
            }
            check_output(&plan.output)?;
            for_each_operator(plan, &mut |name| {
                if let Some(op) = registry.get(name) {
                    operators.insert(name.to_owned(), (op.def.schema.to_owned(), op.def.tags.bits()));
                }
            });
        }
        let plans = plans.iter().map(|it| SavedPlan::of(it, stored)).collect::<Result<_>>()?;
        Ok(Saved { version: VERSION, signature, operators: operators.into_values().collect(), plans })
    }

    /// The bytes.
    ///
    /// # Errors
    /// `Internal` where they cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_allocvec(self)
            .map_err(|problem| Diagnostic::new(Code::Internal, format!("the plans cannot be written: {problem}")))
    }

    /// What [`Saved::to_bytes`] wrote.
    ///
    /// # Errors
    /// `WireMalformed` where the bytes are damaged, `WireVersion` where they are of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let malformed = |what: String| Diagnostic::new(Code::WireMalformed, what);
        // The version stands first, whatever follows it.
        let (version, _): (u32, _) =
            postcard::take_from_bytes(bytes).map_err(|it| malformed(format!("the section PLAN: {it}")))?;
        if version != VERSION {
            let what = format!("the plans are of version {version}, and this reads {VERSION}");
            return Err(Diagnostic::new(Code::WireVersion, what).help("compile the program again"));
        }
        let (saved, rest) =
            postcard::take_from_bytes(bytes).map_err(|it| malformed(format!("the section PLAN: {it}")))?;
        if !rest.is_empty() {
            return Err(malformed(format!("{} bytes follow the plans", rest.len())));
        }
        Ok(saved)
    }

    /// The operators that the plans call.
    ///
    /// # Errors
    /// `WireMalformed` where a schema does not parse.
    pub(crate) fn registry(&self) -> Result<Registry> {
        let rows = self.operators.iter().map(|(schema, tags)| (&**schema, Tags::of_bits(*tags)));
        Registry::of_calls(rows).map_err(|it| Diagnostic::new(Code::WireMalformed, it.message()))
    }

    /// The plans over the storages of their file. A storage that several plans write to is one.
    ///
    /// # Errors
    /// As [`Plan::from_parts`]; `OutOfMemory`.
    pub(crate) fn plans(&self, storages: &[Storage]) -> Result<Vec<Plan>> {
        let plan = |it: &SavedPlan| {
            let constant = |it: &Constant| match it {
                Constant::Own(bytes) => Storage::from_bytes(bytes),
                Constant::OfFile(at) => match storages.get(*at as usize) {
                    Some(storage) => Ok(storage.clone()),
                    None => Err(Diagnostic::new(Code::WireMalformed, format!("the file has no storage {at}"))),
                },
            };
            let constants = it.constants.iter().map(constant).collect::<Result<Vec<_>>>()?;
            Plan::from_parts(&it.outline, &constants)
        };
        self.plans.iter().map(plan).collect()
    }
}

/// Refuses what a host is not given.
fn check_output(output: &Operand) -> Result<()> {
    match output {
        Operand::List(items) => items.iter().try_for_each(check_output),
        Operand::Tensor(_)
        | Operand::None
        | Operand::Bool(_)
        | Operand::Int(_)
        | Operand::Float(_)
        | Operand::Expr(_) => Ok(()),
        other => {
            let what = format!("the runtime does not give an output as {other:?}");
            Err(Diagnostic::new(Code::NotImplemented, what).help("run the program with the whole engine"))
        }
    }
}

/// The operators of a plan that have no kernel in the runtime, sorted.
fn missing_kernels(plan: &Plan) -> Vec<String> {
    let mut missing = Vec::new();
    for_each_operator(plan, &mut |op| {
        if tracefx_cpu::inference_kernels().get(op).is_none() {
            missing.push(op.to_owned());
        }
    });
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Visits the operators whose kernels a plan calls, some of them more than once.
fn for_each_operator(plan: &Plan, visit: &mut dyn FnMut(&str)) {
    for step in &plan.steps {
        match &step.action {
            Action::Call { op, .. } | Action::Update { op, .. } => visit(op),
            Action::Fused(Fused::Loop(it)) => it.code.iter().for_each(|it| visit(&it.op)),
            Action::ControlFlow { plans, .. } => plans.iter().for_each(|it| for_each_operator(it, visit)),
            Action::Fused(_) | Action::Copy { .. } => {}
        }
    }
}
