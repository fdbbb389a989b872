//! Programs: opened, looked at, run and written.

use crate::Refusal;
use crate::library::library;
use crate::parted::PlanParts;
use crate::storages::Storages;
use crate::values::{Place, Reader, described, encoded, write};
use std::panic::AssertUnwindSafe;
use tracefx_core::{Code, Device, Diagnostic, Tensor};
use tracefx_engine::{Limits, Mode, Precision, RunLimits, Runner};
use tracefx_export::{DecompositionTable, ExportedProgram, Location};
use tracefx_ops::Value;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// What watches a run.
    pub type RunWatch;

    /// Is told how many nodes were run, and how many there are; says whether to go on. It does not throw.
    #[wasm_bindgen(method)]
    fn goes_on(this: &RunWatch, done: u32, all: u32) -> bool;
}

impl RunWatch {
    /// What the engine asks.
    pub(crate) fn as_watch(&self) -> impl FnMut(usize, usize) -> tracefx_core::Result<()> {
        |done, all| {
            let stopped = || Diagnostic::new(Code::Stopped, format!("the run was stopped after {done} of {all} nodes"));
            if self.goes_on(done as u32, all as u32) { Ok(()) } else { Err(stopped()) }
        }
    }
}

/// A program in the engine's memory. JavaScript frees it.
#[wasm_bindgen]
pub struct Program(ExportedProgram);

impl Program {
    pub(crate) fn of(program: ExportedProgram) -> Self {
        Program(program)
    }

    pub(crate) fn inner(&self) -> &ExportedProgram {
        &self.0
    }
}

#[wasm_bindgen]
impl Program {
    /// Reads a `.pt2` archive or an `.fxg` file. `limits` is JSON, with a number for each limit that is to be changed.
    ///
    /// # Errors
    /// A code of the archive or wire group where the bytes are damaged, hostile or too new.
    pub fn open(bytes: &[u8], limits: Option<String>) -> Result<Program, Refusal> {
        Ok(Program(library().open(bytes, &limits_of(limits)?)?))
    }

    /// Puts a program together from the bytes that [`Program::outline`] gives, edited, and the storages beside them.
    ///
    /// # Errors
    /// A code of the wire group where the bytes break a rule, `ViewOutOfBounds` where a tensor leaves its storage.
    pub fn assemble(bytes: &[u8], storages: &Storages) -> Result<Program, Refusal> {
        Ok(Program(tracefx_wire::decode_program(bytes, &storages.0, &tracefx_wire::Limits::default())?))
    }

    /// The program in the byte format of tracefx, without the data of its tensors: those are [`Program::storages`].
    ///
    /// # Errors
    /// `LimitExceeded` where something is nested deeper than the format allows.
    pub fn outline(&self) -> Result<Vec<u8>, Refusal> {
        Ok(tracefx_wire::encode_program(&self.0, &tracefx_wire::Options::CALL)?)
    }

    /// The storages of the tensors, in the order of the outline.
    ///
    /// # Errors
    /// `LimitExceeded` where modules are nested deeper than the format allows.
    pub fn storages(&self) -> Result<Storages, Refusal> {
        Ok(Storages(tracefx_wire::program_storages(&self.0)?))
    }

    /// The content of an `.fxg` file.
    ///
    /// # Errors
    /// `LimitExceeded` where something is nested deeper than the format allows, `OutOfMemory` where it does not fit.
    pub fn save(&self) -> Result<Vec<u8>, Refusal> {
        Ok(tracefx_wire::encode_program(&self.0, &tracefx_wire::Options::FILE)?)
    }

    /// What there is to know of the program: JSON, or tables for people.
    pub fn inspect(&self, json: bool) -> String {
        let report = library().inspect(&self.0);
        if json { serde_json::json!(report).to_string() } else { report.to_string() }
    }

    /// What the program checks of its sizes, and what it says of them: JSON.
    ///
    /// # Errors
    /// `ExpressionMalformed` where a guard or range cannot be read, `GraphInvalid` where the signature does not fit.
    pub fn guards(&self) -> Result<String, Refusal> {
        Ok(self.0.guards(library().registry())?.to_json().to_string())
    }

    /// `str(exported_program)`.
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// Holds the program to the rules of its dialects.
    ///
    /// # Errors
    /// `SpecViolation` where it breaks one.
    pub fn validate(&self) -> Result<(), Refusal> {
        Ok(self.0.validate_in(library().registry())?)
    }

    /// The same program in terms of the modules that it was exported from, which hold the state.
    ///
    /// # Errors
    /// `GraphInvalid` where nodes do not say where they are from, `NotImplemented` for training graphs and custom objects.
    pub fn unflatten(&self) -> Result<Program, Refusal> {
        Ok(Program(self.0.unflattened_as_preserved(library().registry())?))
    }

    /// The same program with operators decomposed: those of a JSON list, or those that PyTorch decomposes by default.
    ///
    /// # Errors
    /// `NotImplemented` where an operator is not known or cannot be decomposed, and for writes that cannot be made values.
    pub fn run_decompositions(&self, ops: Option<String>) -> Result<Program, Refusal> {
        Ok(Program(self.0.run_decompositions(&table_of(ops)?)?))
    }

    /// The joint program of the loss at this place among the results, and its gradients; operators are decomposed as above.
    ///
    /// # Errors
    /// `IndexOutOfRange` where there is no such result, `InvalidArgument` in PyTorch's words where it is no loss,
    /// `NotImplemented` where the gradient of an operator is missing.
    pub fn export_forward_backward(&self, joint_loss_index: usize, ops: Option<String>) -> Result<Program, Refusal> {
        Ok(Program(self.0.export_forward_backward(joint_loss_index, &table_of(ops)?)?))
    }

    /// The same program for another device: a JSON text with its name, or an object from names of devices to others.
    ///
    /// # Errors
    /// `InvalidOption` where it is neither.
    pub fn moved_to_device(&self, location: &str) -> Result<Program, Refusal> {
        Ok(Program(self.0.moved_to_device(&location_of(location)?)?))
    }

    /// The program with an input for each tensor that its graph reads from the module.
    ///
    /// # Errors
    /// `GraphInvalid` where the graph and its signature do not fit.
    pub fn with_lifted_constants(&self) -> Result<Program, Refusal> {
        Ok(Program(self.0.with_lifted_constants()?))
    }

    /// Makes the program ready to be called. `limits` is JSON, with a number for each limit of a run that is to be changed;
    /// time is looked at by who watches a run. `mode` is a name of [`Mode`], and `precision` of [`Precision`].
    ///
    /// # Errors
    /// `InvalidOption` where there is no such limit, mode or precision;
    /// `AttributeMissing` or `GraphInvalid` where the signature does not fit, `NotImplemented` for custom objects.
    pub fn runner(
        &self,
        limits: Option<String>,
        mode: Option<String>,
        precision: Option<String>,
    ) -> Result<ProgramRunner, Refusal> {
        let mut of_runs = RunLimits::default();
        numbers_of(limits, &mut |name, value| of_runs.set(name, value))?;
        // There is no clock here.
        of_runs.milliseconds = None;
        let mode = mode.map_or(Ok(Mode::default()), |it| Mode::named(&it))?;
        let precision = precision.map_or(Ok(Precision::default()), |it| Precision::named(&it))?;
        let runner = library().runner(&self.0)?.with_limits(of_runs).with_mode(mode).with_precision(precision);
        Ok(ProgramRunner(AssertUnwindSafe(runner)))
    }
}

/// A program that is ready to be called, with the state that calls change. Kernels of custom operators are closures, of
/// which the compiler does not know that a panic leaves them as they were.
#[wasm_bindgen]
pub struct ProgramRunner(AssertUnwindSafe<Runner>);

impl ProgramRunner {
    pub(crate) fn runner(&self) -> &Runner {
        &self.0
    }
}

#[wasm_bindgen]
impl ProgramRunner {
    /// Calls the program on the user's inputs, flattened; they and the results are words (see [`values`](crate::values)).
    ///
    /// # Errors
    /// A code of the input group where an input breaks a constraint; else what an operator refuses.
    pub fn run(&self, inputs: &[u32]) -> Result<Vec<u32>, Refusal> {
        encoded(&self.0.run(&Reader::new(inputs).rest()?)?)
    }

    /// The same on the tensors of the program themselves, as [`Runner::with_shared_state`].
    ///
    /// # Errors
    /// As [`Program::runner`].
    pub fn with_shared_state(self) -> Result<ProgramRunner, Refusal> {
        Ok(ProgramRunner(AssertUnwindSafe(self.0.0.with_shared_state()?)))
    }

    /// Calls the program as [`ProgramRunner::run`] does, and writes the tensors that it gives to these, which are words. Of what comes
    /// back, a tensor is its place among them.
    ///
    /// # Errors
    /// As [`Runner::run_into`].
    pub fn run_into(&self, inputs: &[u32], outputs: &[u32]) -> Result<Vec<u32>, Refusal> {
        let outputs = tensors(Reader::new(outputs).rest()?)?;
        let given = self.0.run_into(&Reader::new(inputs).rest()?, &outputs)?;
        let mut places = 0..;
        let mut out = Vec::new();
        for value in &given {
            write(&value.map(&mut |_| Place(places.next().unwrap_or_default())), &mut out);
        }
        Ok(out)
    }

    /// Calls the program as [`ProgramRunner::run`] does, and asks before each node, and before each step of a loop, whether to
    /// go on.
    ///
    /// # Errors
    /// As there; `Stopped` where the answer is no.
    pub fn run_watched(&self, inputs: &[u32], watch: &RunWatch) -> Result<Vec<u32>, Refusal> {
        encoded(&self.0.run_watched(&Reader::new(inputs).rest()?, &mut watch.as_watch())?)
    }

    /// The plan for inputs like these, which are words, to be run in parts; nothing where there is none.
    ///
    /// # Errors
    /// As [`ProgramRunner::run`] of the inputs.
    pub fn parted(&self, inputs: &[u32]) -> Result<Option<PlanParts>, Refusal> {
        Ok(self.0.parted(&Reader::new(inputs).rest()?)?.map(PlanParts::of))
    }

    /// What the plan for these inputs, which are words, is made of, with what each step took where that is known: as text, as JSON
    /// (`json`), or as events of Chrome's trace format (`trace`).
    ///
    /// # Errors
    /// `NotImplemented` where the program has no plan; `InvalidOption` where it is interpreted and times are given; a code of the input group where an input breaks a constraint.
    pub fn explain(&self, inputs: &[u32], milliseconds: Option<Vec<f64>>, format: &str) -> Result<String, Refusal> {
        let inputs = Reader::new(inputs).rest()?;
        let report = match milliseconds {
            Some(milliseconds) => self.0.explain_timed(&inputs, &milliseconds)?,
            None => self.0.explain(&inputs)?,
        };
        Ok(match format {
            "json" => serde_json::json!(report).to_string(),
            "trace" => report.chrome_trace(),
            _ => report.to_string(),
        })
    }

    /// The program as a file with a plan for each of so many calls, whose inputs are words, one call after the other.
    ///
    /// # Errors
    /// As [`Runner::compiled_file`].
    pub fn compiled_file(&self, inputs: &[u32], n_calls: usize) -> Result<Vec<u8>, Refusal> {
        let inputs = Reader::new(inputs).rest()?;
        let n_inputs = self.0.program().signature.user_inputs().count();
        let call = |at: usize| inputs.iter().skip(at * n_inputs).take(n_inputs).cloned().collect();
        Ok(self.0.compiled_file(&(0..n_calls).map(call).collect::<Vec<_>>())?)
    }

    /// Inputs of zeros as words, where the program knows all of their sizes.
    ///
    /// # Errors
    /// `InputShape` where it does not, `LimitExceeded` where they take too many bytes.
    pub fn zero_inputs(&self) -> Result<Vec<u32>, Refusal> {
        encoded(&self.0.zero_inputs()?)
    }

    /// Whether a call may write to the tensors that it is given.
    pub fn changes_inputs(&self) -> bool {
        self.0.changes_inputs()
    }

    /// The user's inputs, flattened, from the bytes of a `.safetensors` file, as words.
    ///
    /// # Errors
    /// `ArchiveMalformed` where it is not such a file, `InputCount` where an input is missing or unknown.
    pub fn read_inputs(&self, bytes: &[u8]) -> Result<Vec<u32>, Refusal> {
        encoded(&tracefx_engine::read_inputs(self.0.program(), bytes)?)
    }

    /// A parameter, buffer or constant as it is now, as words; it shares its memory with the runner.
    ///
    /// # Errors
    /// `AttributeMissing` where there is none of this name.
    pub fn state(&self, name: &str) -> Result<Vec<u32>, Refusal> {
        let found = self.0.state().find(|(it, _)| ***it == *name).map(|(_, tensor)| tensor);
        Ok(described(found.ok_or_else(|| missing(name))?.clone()))
    }
}

/// The bytes of a `.safetensors` file with these outputs, which are words.
///
/// # Errors
/// `NotImplemented` for outputs that such a file cannot hold.
#[wasm_bindgen]
pub fn write_outputs(outputs: &[u32]) -> Result<Vec<u8>, Refusal> {
    Ok(tracefx_engine::write_outputs(&Reader::new(outputs).rest()?)?)
}

/// The operators that PyTorch decomposes by default: a JSON list of qualified names.
#[wasm_bindgen]
pub fn default_decompositions() -> String {
    let table = library().decompositions();
    serde_json::json!(table.ops().map(|it| format!("torch.ops.{it}")).collect::<Vec<_>>()).to_string()
}

fn table_of(json: Option<String>) -> Result<DecompositionTable, Refusal> {
    let Some(json) = json else { return Ok(library().decompositions()) };
    let ops: Vec<String> = serde_json::from_str(&json).map_err(|problem| {
        Diagnostic::new(Code::InvalidOption, format!("the operators are no JSON list of names: {problem}"))
    })?;
    let mut table = DecompositionTable::empty_of(library().registry());
    ops.iter().try_for_each(|op| table.insert(op))?;
    Ok(table)
}

fn location_of(json: &str) -> Result<Location, Refusal> {
    let device = |it: &serde_json::Value| -> Result<Device, Refusal> {
        let name = it.as_str().and_then(|it| it.parse().ok());
        name.ok_or_else(|| Diagnostic::new(Code::InvalidOption, format!("{it} is not the name of a device")).into())
    };
    let invalid = |problem| Diagnostic::new(Code::InvalidOption, format!("the device is no JSON: {problem}"));
    let location: serde_json::Value = serde_json::from_str(json).map_err(invalid)?;
    let Some(map) = location.as_object() else { return Ok(Location::Device(device(&location)?)) };
    let pairs = map.iter().map(|(from, to)| Ok((device(&from.as_str().into())?, device(to)?)));
    Ok(Location::Map(pairs.collect::<Result<_, Refusal>>()?))
}

/// The values as tensors.
fn tensors(values: Vec<Value<Tensor>>) -> Result<Vec<Tensor>, Refusal> {
    let tensor = |it: Value<Tensor>| match it {
        Value::Tensor(tensor) => Ok(tensor),
        other => {
            Err(Diagnostic::new(Code::InputType, format!("an output is a {}, and not a tensor", other.kind_name()))
                .into())
        }
    };
    values.into_iter().map(tensor).collect()
}

fn missing(name: &str) -> Refusal {
    Diagnostic::new(Code::AttributeMissing, format!("the program holds no tensor `{name}`")).into()
}

/// The limits of JSON with a number for each that is to be changed.
pub(crate) fn limits_of(json: Option<String>) -> Result<Limits, Refusal> {
    let mut limits = Limits::default();
    numbers_of(json, &mut |name, value| limits.set(name, value))?;
    Ok(limits)
}

/// Sets a number for each field of a JSON object.
fn numbers_of(json: Option<String>, set: &mut dyn FnMut(&str, u64) -> tracefx_core::Result<()>) -> Result<(), Refusal> {
    let Some(json) = json else { return Ok(()) };
    let invalid = |what: String| Refusal::from(Diagnostic::new(Code::InvalidOption, what));
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&json).map_err(|problem| invalid(format!("the limits are no JSON object: {problem}")))?;
    for (name, value) in fields {
        let value = value.as_u64().ok_or_else(|| invalid(format!("the limit {name} should be a whole number")))?;
        set(&name, value)?;
    }
    Ok(())
}
