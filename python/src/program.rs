//! Exported programs: opened, looked at, changed, run and saved.

use crate::errors::{OrRaise, refused};
use crate::graph::Graph;
use crate::runs::{self, Module};
use crate::signature::GraphSignature;
use crate::tensor::Tensor;
use crate::{LIBRARY, tree, values};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracefx::engine::{PassCall, host_pass, write_file};
use tracefx::export::Constant as Lifted;
use tracefx::{Code, Diagnostic, GraphModule, Limits, Mode, Precision, RunLimits, Runner, SaveOptions};

/// A program that its nodes and its graph hold, too. It is locked for short, and never while code of Python may run.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<State>>);

struct State {
    program: tracefx::ExportedProgram,
    /// What edits have made of it: held to the rules, with a signature that follows the graph.
    settled: Option<tracefx::ExportedProgram>,
    /// What runs it, made in the first call.
    runner: Option<Arc<Runner>>,
}

/// A pass of the engine with its options.
pub(crate) struct Pass<'a> {
    pub(crate) name: &'a str,
    pub(crate) options: Json,
}

impl Shared {
    fn new(program: tracefx::ExportedProgram) -> Self {
        Shared(Arc::new(Mutex::new(State { settled: Some(program.clone()), program, runner: None })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_same(&self, other: &Shared) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// What `read` reads of the program.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&tracefx::ExportedProgram) -> T) -> T {
        read(&self.lock().program)
    }

    /// Changes the module; what was made of the program before is made anew.
    pub(crate) fn edit<T>(&self, edit: impl FnOnce(&mut GraphModule) -> tracefx::Result<T>) -> tracefx::Result<T> {
        let mut state = self.lock();
        (state.settled, state.runner) = (None, None);
        edit(&mut state.program.module)
    }

    /// The program with its signature as the graph is now, where that holds to the rules.
    fn settled(&self) -> tracefx::Result<tracefx::ExportedProgram> {
        let mut state = self.lock();
        if let Some(settled) = &state.settled {
            return Ok(settled.clone());
        }
        let settled = LIBRARY.settle(&state.program)?;
        Ok(state.settled.insert(settled).clone())
    }

    /// Runs a pass; where it refuses, the program is as it was. Gives what the pass has to say.
    pub(crate) fn transform(&self, pass: &Pass<'_>) -> tracefx::Result<Json> {
        let run = host_pass(pass.name)?.run;
        let mut program = self.settled()?;
        let options = pass.options.clone();
        let answer = run(&mut PassCall { library: &LIBRARY, module: &mut program.module, others: &[], options })?;
        let after = LIBRARY.settle(&program)?;
        let mut state = self.lock();
        *state = State { settled: Some(after.clone()), program: after, runner: None };
        Ok(answer)
    }

    /// What runs the program, with the buffers as calls have left them.
    fn runner(&self) -> tracefx::Result<Arc<Runner>> {
        if let Some(runner) = &self.lock().runner {
            return Ok(Arc::clone(runner));
        }
        let runner = Arc::new(LIBRARY.runner(&self.settled()?)?);
        self.lock().runner = Some(Arc::clone(&runner));
        Ok(runner)
    }
}

/// A program of PyTorch: `torch.export.ExportedProgram`.
#[pyclass(module = "tracefx", frozen)]
pub(crate) struct ExportedProgram(Shared);

/// Opens a program: the path of a `.pt2` or `.fxg` file, or its bytes. No code of the file is run, and `limits` says how much it may ask
/// for.
#[pyfunction]
#[pyo3(signature = (f, *, limits=None))]
pub(crate) fn load(f: &Bound<'_, PyAny>, limits: Option<HashMap<String, u64>>) -> PyResult<ExportedProgram> {
    let py = f.py();
    let mut bounds = Limits::default();
    for (name, value) in limits.unwrap_or_default() {
        bounds.set(&name, value).or_raise(py)?;
    }
    let program = if let Ok(bytes) = f.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        py.detach(|| LIBRARY.open(bytes, &bounds))
    } else if f.hasattr("read")? {
        let read = f.call_method0("read")?;
        let bytes = read.cast::<PyBytes>().map_err(|_| {
            let what = format!("reading the file gives {}, not bytes", read.get_type());
            refused(py, Code::InvalidOption, what, "open it for reading bytes: open(path, \"rb\")")
        })?;
        let bytes = bytes.as_bytes();
        py.detach(|| LIBRARY.open(bytes, &bounds))
    } else if let Ok(path) = f.extract::<PathBuf>() {
        py.detach(|| LIBRARY.open_file(&path, &bounds))
    } else {
        // What PyTorch has in memory is taken for what it saves.
        let help = match (f.hasattr("graph_signature")?, f.hasattr("forward")?) {
            (true, _) => "save it with torch.export.save, and load that file",
            (false, true) => {
                "export the module with torch.export.export, save it with torch.export.save, and load that file"
            }
            (false, false) => "give a path, bytes, or a file that is open for reading bytes",
        };
        return Err(refused(py, Code::InvalidOption, format!("{} is no file", f.get_type()), help));
    };
    Ok(ExportedProgram(Shared::new(program.or_raise(py)?)))
}

/// `snake_case` as the engine's options have it.
fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |res, part| {
        let mut letters = part.chars();
        res + &letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default() + letters.as_str()
    })
}

/// An object of Python by its JSON.
fn to_json(object: &Bound<'_, PyAny>) -> PyResult<Json> {
    let text = object.py().import("json")?.call_method1("dumps", (object,))?.extract::<String>()?;
    let odd = |problem: serde_json::Error| {
        refused(object.py(), Code::InvalidOption, format!("an option is no JSON: {problem}"), "give plain values")
    };
    serde_json::from_str(&text).map_err(odd)
}

fn from_json<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json.to_string(),))
}

#[pymethods]
impl ExportedProgram {
    /// The graph, whose inputs are the parameters, buffers and constants as well as the inputs of the user.
    #[getter]
    fn graph(&self) -> Graph {
        Graph(self.0.clone())
    }

    /// What the inputs and outputs of the graph are.
    #[getter]
    fn graph_signature(&self, py: Python<'_>) -> PyResult<GraphSignature> {
        Ok(GraphSignature(self.0.settled().or_raise(py)?.signature))
    }

    /// The parameters and buffers by their names.
    #[getter]
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state: Vec<_> =
            self.0.with(|it| it.state_dict.iter().map(|(name, it)| (name.clone(), it.tensor.clone())).collect());
        let res = PyDict::new(py);
        state.into_iter().try_for_each(|(name, it)| res.set_item(&*name, Tensor(it).into_bound_py_any(py)?))?;
        Ok(res)
    }

    /// The constant tensors by their names.
    #[getter]
    fn constants<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensors: Vec<_> = self.0.with(|it| {
            let tensor = |(name, it): (&tracefx::ir::Str, &Lifted)| match it {
                Lifted::Tensor(it) => Some((name.clone(), it.clone())),
                Lifted::CustomObj(_) => None,
            };
            it.constants.iter().filter_map(tensor).collect()
        });
        let res = PyDict::new(py);
        tensors.into_iter().try_for_each(|(name, it)| res.set_item(&*name, Tensor(it).into_bound_py_any(py)?))?;
        Ok(res)
    }

    /// The least and the greatest value of each symbol; None is no bound.
    #[getter]
    fn range_constraints<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranges = self.0.with(|it| it.range_constraints.clone());
        let res = PyDict::new(py);
        ranges
            .iter()
            .try_for_each(|(symbol, range)| res.set_item(symbol.name().to_string(), (range.min, range.max)))?;
        Ok(res)
    }

    /// The inputs that it was exported with, where the file has them: positional ones, and those by name.
    #[getter]
    fn example_inputs<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let program = self.0.settled().or_raise(py)?;
        let Some(inputs) = &program.example_inputs else { return Ok(None) };
        let values = inputs.iter().map(|it| values::from_value(py, it)).collect::<PyResult<Vec<_>>>()?;
        let Some(spec) = program.in_spec() else { return Ok(None) };
        tree::unflatten(py, &program, spec, &mut values.into_iter()).map(Some)
    }

    /// Texts that the file has beside the program.
    #[getter]
    fn extra_files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let files = self.0.with(|it| it.extra_files.clone());
        let res = PyDict::new(py);
        files.iter().try_for_each(|(name, text)| res.set_item(&**name, &**text))?;
        Ok(res)
    }

    /// The version of the PyTorch that wrote it.
    #[getter]
    fn torch_version(&self) -> String {
        self.0.with(|it| it.torch_version.to_string())
    }

    /// What `tracefx inspect --json` shows: nodes, signature, sizes, operators and how each runs.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let program = self.0.settled().or_raise(py)?;
        from_json(py, &serde_json::json!(LIBRARY.inspect(&program)))
    }

    /// Refuses a program whose graph breaks a rule.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        self.0.settled().map(|_| ()).or_raise(py)
    }

    /// The same program in terms of core operators, without writes: PyTorch's default table. This one stays as it is.
    fn run_decompositions(&self, py: Python<'_>) -> PyResult<ExportedProgram> {
        let program = self.0.settled().or_raise(py)?;
        let decomposed = py.detach(|| program.run_decompositions(&LIBRARY.decompositions()));
        Ok(ExportedProgram(Shared::new(decomposed.or_raise(py)?)))
    }

    /// Runs a pass of the engine by its name, such as `CSEPass`, with its options, and gives what it has to say.
    #[pyo3(signature = (name, **options))]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut json = serde_json::Map::new();
        for (key, value) in options.into_iter().flat_map(|it| it.iter().collect::<Vec<_>>()) {
            json.insert(camel_case(&key.extract::<String>()?), to_json(&value)?);
        }
        let answer = self.0.transform(&Pass { name, options: Json::Object(json) }).or_raise(py)?;
        from_json(py, &answer)
    }

    /// Calls the program. Buffers that it changes keep their values for the next call, until it is edited.
    #[pyo3(signature = (*args, **kwargs))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        runs::call(py, &*self.0.runner().or_raise(py)?, args, kwargs)
    }

    /// Refuses to be called, as PyTorch's does: state that calls change is that of a module.
    #[pyo3(signature = (*_args, **_kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let help = "call its method run, or what its method module gives";
        Err(refused(py, Code::InvalidOption, "a program is not called itself", help))
    }

    /// Makes it ready to be called, with buffers of its own. `precision="strict"` and `mode="interpret"` change how, `milliseconds` and
    /// `loop_steps` how long a call may take.
    #[pyo3(signature = (*, mode="plan", precision="fast", milliseconds=None, loop_steps=None))]
    fn module(
        &self,
        py: Python<'_>,
        mode: &str,
        precision: &str,
        milliseconds: Option<u64>,
        loop_steps: Option<u64>,
    ) -> PyResult<Module> {
        let mut limits = RunLimits { milliseconds, ..RunLimits::default() };
        limits.loop_steps = loop_steps.unwrap_or(limits.loop_steps);
        let precision = Precision::named(precision).or_raise(py)?;
        let runner = LIBRARY.runner(&self.0.settled().or_raise(py)?).or_raise(py)?;
        Ok(Module(runner.with_limits(limits).with_mode(Mode::named(mode).or_raise(py)?).with_precision(precision)))
    }

    /// The bytes of the program as a file: `pt2`, which `torch.export.load` takes, or `fxg`.
    #[pyo3(signature = (format="pt2"))]
    fn to_bytes<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let program = self.0.settled().or_raise(py)?;
        let bytes = py.detach(|| encoded(&program, format)).or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the program to a path, whole or not at all, or to a file that is open for writing bytes. A path that ends in `.fxg` gets
    /// that format, all others `.pt2`.
    fn save(&self, f: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = f.py();
        if f.hasattr("write")? {
            return f.call_method1("write", (self.to_bytes(py, "pt2")?,)).map(|_| ());
        }
        let path: PathBuf = f.extract()?;
        let program = self.0.settled().or_raise(py)?;
        let written = py.detach(|| {
            if path.extension().is_none_or(|it| it != "fxg") {
                return tracefx::save_to(&program, &path, &save_options()).map(|_| ());
            }
            let bytes = encoded(&program, "fxg")?;
            write_file(&path, |file| {
                let failed = |problem: std::io::Error| Diagnostic::new(Code::Io, problem.to_string());
                std::io::Write::write_all(file, &bytes).map_err(failed)
            })
        });
        written.or_raise(py)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.settled().or_raise(py)?.to_string())
    }

    fn __repr__(&self) -> String {
        self.0.with(|it| {
            format!("<tracefx.ExportedProgram of {} nodes, PyTorch {}>", it.module.graph.len(), it.torch_version)
        })
    }
}

fn save_options() -> SaveOptions<'static> {
    SaveOptions { registry: LIBRARY.registry(), ..SaveOptions::default() }
}

fn encoded(program: &tracefx::ExportedProgram, format: &str) -> tracefx::Result<Vec<u8>> {
    match format {
        "pt2" => {
            let mut bytes = Vec::new();
            tracefx::save(program, &save_options(), &mut bytes)?;
            Ok(bytes)
        }
        "fxg" => tracefx::wire::encode_program(program, &tracefx::wire::Options::FILE),
        _ => {
            let what = format!("there is no format {format}");
            Err(Diagnostic::new(Code::InvalidOption, what).help("it is pt2 or fxg"))
        }
    }
}
