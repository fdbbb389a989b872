//! A program made ready to run: its limits, its inputs checked and its runs. The graph is interpreted, or planned, by `exec`.

use crate::Library;
use crate::plans::Plans;
use crate::profile::{PlanReport, StepTimes};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracefx_compile::Precision;
use tracefx_core::{Code, Diagnostic, Dims, Result, Tensor};
use tracefx_exec::{Accelerator, Interpreter, LOOP_STEPS, Placement, Watch, assign, check_output, check_output_count};
use tracefx_export::{ExportedProgram, InputChecker};
use tracefx_ir::{Attribute, GraphModule, Str};
use tracefx_ops::{Op, Value};
use tracefx_plan::{Extent, Plan};

/// What one run of a program may take. A program of unknown origin can loop as long as it likes.
///
/// ```
/// use tracefx_engine::RunLimits;
/// let limits = RunLimits { milliseconds: Some(500), ..RunLimits::default() };
/// assert_eq!(limits.loop_steps, 1 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Steps of all `while_loop`, `map` and `scan` together, those within others included.
    pub loop_steps: u64,
    /// Time. It is looked at before each node and each step of a loop, so that a run may take one operator longer.
    pub milliseconds: Option<u64>,
    /// Bytes of the inputs that are made of the sizes that a program states: [`Runner::zero_inputs`].
    pub input_bytes: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        let input_bytes = if cfg!(target_pointer_width = "64") { 4 * GIB } else { GIB };
        RunLimits { loop_steps: LOOP_STEPS, milliseconds: None, input_bytes }
    }
}

impl RunLimits {
    /// The names that [`RunLimits::set`] knows.
    pub const NAMES: &[&str] = &["loop_steps", "milliseconds", "input_bytes"];

    /// Changes the limit of this name, as options outside Rust do.
    ///
    /// # Errors
    /// `InvalidOption` where there is no limit of this name.
    pub fn set(&mut self, name: &str, value: u64) -> Result<()> {
        match name {
            "loop_steps" => self.loop_steps = value,
            "milliseconds" => self.milliseconds = Some(value),
            "input_bytes" => self.input_bytes = value,
            _ => {
                return Err(Diagnostic::new(Code::InvalidOption, format!("there is no limit `{name}` of a run"))
                    .help(format!("the limits are the fields of `RunLimits`: {}", RunLimits::NAMES.join(", "))));
            }
        }
        Ok(())
    }
}

/// How a program is run. Both ways give the same: to the bit, with [`Precision::Strict`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Node by node.
    Interpret,
    /// By a plan for the dtypes and layouts of the inputs, which is made in the first call with them; node by node where there
    /// can be none.
    #[default]
    Plan,
}

impl Mode {
    /// The names that [`Mode::named`] knows, the default first.
    pub const NAMES: &[&str] = &["plan", "interpret"];

    /// The way of this name.
    ///
    /// # Errors
    /// `InvalidOption` where there is none.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "interpret" => Ok(Mode::Interpret),
            "plan" => Ok(Mode::Plan),
            _ => Err(Diagnostic::new(Code::InvalidOption, format!("there is no mode {name}"))
                .help(format!("a program is run in one of the modes {}", Mode::NAMES.join(", ")))),
        }
    }
}

/// A program that is ready to be called: its state, and its graph over the user's inputs.
///
/// Buffers that the program changes keep their new values from call to call; the program that the runner was made from
/// keeps its own.
#[derive(Debug)]
pub struct Runner {
    program: ExportedProgram,
    pub(crate) checker: InputChecker,
    pub(crate) module: GraphModule,
    pub(crate) library: Library,
    pub(crate) limits: RunLimits,
    pub(crate) mode: Mode,
    pub(crate) plans: Plans,
}

impl Runner {
    /// Makes a program ready.
    ///
    /// # Errors
    /// What [`ExportedProgram::module`] refuses.
    pub fn new(program: &ExportedProgram) -> Result<Self> {
        Runner::within(program, Library::default())
    }

    pub(crate) fn within(program: &ExportedProgram, library: Library) -> Result<Self> {
        Ok(Runner {
            program: program.clone(),
            checker: InputChecker::new(program)?,
            module: program.module_in(library.registry())?,
            library,
            limits: RunLimits::default(),
            mode: Mode::default(),
            plans: Plans::default(),
        })
    }

    /// The same with other limits of a run.
    #[must_use]
    pub fn with_limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The same, run in this way.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same, with plans that may change this much in the numbers.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.plans = self.plans.renewed(|it| it.precision = precision);
        self
    }

    /// The way in which it runs.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What its plans may change in the numbers.
    pub fn precision(&self) -> Precision {
        self.plans.precision
    }

    /// The same with a device that does the steps of plans that it can, such as a GPU; what it cannot, and what is interpreted, the CPU does.
    #[must_use]
    pub fn with_accelerator(mut self, accelerator: Arc<dyn Accelerator>) -> Self {
        self.plans = self.plans.renewed(|it| it.accelerator = Some(accelerator));
        self
    }

    /// Brings what runs have changed of the program's own tensors from a device that keeps it ([`Accelerator::keeps_state`]) into their
    /// memory. Before that, [`Runner::state`] and whoever else has the tensors see them as they were, but for programs that share them
    /// ([`Runner::with_shared_state`]), which bring them down after each run; runs that are not the device's bring them by themselves. A
    /// tensor that was written to in memory meanwhile stays as it was written, and goes up whole before the next run. The methods that
    /// give a runner of another kind begin anew: what is still on the device then is lost.
    ///
    /// # Errors
    /// What the device refuses; `DeviceFailed` where it has lost them, and within a run of the same thread.
    pub fn synchronize(&self) -> Result<()> {
        self.plans.synchronize()
    }

    /// Who does each step of the plan for inputs like these, where there is a device beside the CPU.
    ///
    /// # Errors
    /// As [`Runner::plan`].
    pub fn placements(&self, inputs: &[Value<Tensor>]) -> Result<Vec<Placement>> {
        match self.plans.accelerator {
            Some(_) => Ok(self.placements_of(&*self.plan(inputs)?)),
            None => Ok(Vec::new()),
        }
    }

    fn placements_of(&self, plan: &Plan) -> Vec<Placement> {
        let registry = self.library.registry();
        self.plans.accelerator.as_ref().map_or_else(Vec::new, |it| it.placements(plan, registry))
    }

    /// The same on the tensors of the program themselves, which it has lazy clones of otherwise: a run sees what was written to them, and
    /// what it writes is seen by whoever has them. Programs that share them are run one after the other.
    ///
    /// # Errors
    /// As [`Runner::new`].
    pub fn with_shared_state(mut self) -> Result<Self> {
        self.module = self.program.module_sharing_state(self.library.registry())?;
        self.plans = self.plans.renewed(|it| it.shares_state = true);
        Ok(self)
    }

    /// The plan of the program for inputs like these.
    ///
    /// # Errors
    /// What the program refuses of the inputs, and [`plan`](tracefx_exec::plan()) of its graph.
    pub fn plan(&self, inputs: &[Value<Tensor>]) -> Result<Arc<Plan>> {
        self.checker.check(inputs)?;
        self.plans.plan(&self.module, &self.library, inputs)
    }

    /// What the plan of the program is made of, for inputs like these.
    ///
    /// # Errors
    /// As [`Runner::plan`].
    pub fn explain(&self, inputs: &[Value<Tensor>]) -> Result<PlanReport> {
        let plan = self.plan(inputs).map_err(|problem| match problem.code() {
            Code::NotImplemented | Code::LimitExceeded => problem.help("the program has no plan, and is interpreted"),
            _ => problem,
        })?;
        Ok(PlanReport::of(&plan).with_placements(self.placements_of(&plan)))
    }

    /// The same with the milliseconds of each step, for who has timed them: what [`Runner::run_watched`] tells of.
    ///
    /// # Errors
    /// As there; `InvalidOption` where the program is interpreted, since what is told of then are nodes.
    pub fn explain_timed(&self, inputs: &[Value<Tensor>], milliseconds: &[f64]) -> Result<PlanReport> {
        if self.mode == Mode::Interpret {
            let what = "a program that is interpreted has no steps to time";
            return Err(Diagnostic::new(Code::InvalidOption, what).help("make it ready to run in the mode plan"));
        }
        Ok(self.explain(inputs)?.with_times(milliseconds))
    }

    /// Runs the program so many times by its plan, after a first time which makes it ready, and tells what each step took: those of a
    /// device by its own clock, where it has one, and else until they were told it.
    ///
    /// ```
    /// use tracefx_core::Tensor;
    /// use tracefx_engine::{Library, Runner};
    /// use tracefx_ir::{Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let y = graph.call_function("torch.ops.aten.exp.default", vec![x.into()], vec![]);
    /// graph.output(y.into());
    /// let x = Value::Tensor(Tensor::from_slice(&[0.0f32, 1.0], &[2])?);
    /// let program = Library::default().export(&GraphModule::new(graph), &[x.clone()])?;
    /// let profile = Runner::new(&program)?.profile(&[x], 10)?;
    /// assert_eq!(profile.steps[0].step, "loop of aten.exp.default");
    /// println!("{profile}");
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// As [`Runner::explain`] and [`Runner::run`].
    pub fn profile(&self, inputs: &[Value<Tensor>], times: usize) -> Result<PlanReport> {
        self.explain_timed(inputs, &[])?;
        let start = Instant::now();
        let now = || start.elapsed().as_secs_f64() * 1e3;
        self.run(inputs)?;
        let mut steps = StepTimes::default();
        self.plans.ask_device(inputs, |it| it.set_timed(true));
        let timed: Result<()> = (0..times.max(1)).try_for_each(|_| {
            self.run_watched(inputs, &mut |done, _| {
                steps.begin(done, now());
                Ok(())
            })?;
            let on_device = self.plans.ask_device(inputs, |it| it.step_times()).unwrap_or_default();
            steps.end(now(), &on_device);
            Ok(())
        });
        self.plans.ask_device(inputs, |it| it.set_timed(false));
        timed?;
        let report = self.explain_timed(inputs, steps.shortest())?;
        match &self.plans.accelerator {
            Some(device) => Ok(report.with_device(device.name(), device.peak()?)),
            None => Ok(report),
        }
    }

    /// Calls the program on the user's inputs, flattened, and gives back the user's outputs, flattened. An input that the
    /// program changes is changed.
    ///
    /// # Errors
    /// `InputCount`, `InputType`, `InputShape` or `InputValue` where the inputs break a constraint of the program; else
    /// what an operator refuses, and `LimitExceeded` where the run takes more than its limits. The runner can be called again.
    pub fn run(&self, inputs: &[Value<Tensor>]) -> Result<Vec<Value<Tensor>>> {
        self.run_watched(inputs, &mut |_, _| Ok(()))
    }

    /// Calls the program as [`Runner::run`] does, and writes the tensors that it gives to these, in order, lists flattened: of the same
    /// dtypes and sizes, with any strides, and each in a storage that no other, no input and no tensor of the program looks at. A run whose
    /// outputs lie in memory as the plan has them, row-major from the start of their storages, makes no tensors of its own for them. What
    /// comes back is what [`Runner::run`] gives, with these tensors in it.
    ///
    /// ```
    /// use tracefx_core::{DType, Tensor};
    /// use tracefx_engine::{Library, Runner};
    /// use tracefx_ir::{Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let y = graph.call_function("torch.ops.aten.neg.default", vec![x.into()], vec![]);
    /// graph.output(y.into());
    /// let x = Value::Tensor(Tensor::from_slice(&[1.0f32, 2.0], &[2])?);
    /// let runner = Runner::new(&Library::default().export(&GraphModule::new(graph), &[x.clone()])?)?;
    /// let y = Tensor::zeros(DType::Float32, &[2])?;
    /// for _ in 0..10 {
    ///     runner.run_into(&[x.clone()], &[y.clone()])?;
    /// }
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -2.0]);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// As [`Runner::run`]; `InvalidArgument` where there are more or fewer outputs than the program gives tensors, where one is of another
    /// dtype or other sizes, or shares a storage: before the run, but for outputs whose sizes the data decides, and for programs that are
    /// interpreted. After an error in the run, anything may be in the outputs.
    pub fn run_into(&self, inputs: &[Value<Tensor>], outputs: &[Tensor]) -> Result<Vec<Value<Tensor>>> {
        self.checker.check(inputs)?;
        self.check_apart(inputs, outputs)?;
        let given = self.run_limited(inputs, Some(outputs), &mut |_, _| Ok(()))?;
        let mut made = Vec::new();
        given.iter().for_each(|it| it.for_each_tensor(&mut |it| made.push(it)));
        check_output_count(made.len(), outputs)?;
        for (at, (made, output)) in made.iter().zip(outputs).enumerate() {
            check_output(at, (made.dtype(), made.sizes()), output)?;
        }
        for (made, output) in
            made.iter().zip(outputs).filter(|(made, output)| !made.storage().is_same(output.storage()))
        {
            assign(output, made)?;
        }
        let mut outputs = outputs.iter();
        given.iter().map(|it| it.try_map(&mut |made| Ok(outputs.next().unwrap_or(made).clone()))).collect()
    }

    /// Refuses outputs that are not alone in their memory.
    fn check_apart(&self, inputs: &[Value<Tensor>], outputs: &[Tensor]) -> Result<()> {
        let mut taken: HashSet<usize> = self.state().map(|(_, it)| it.storage().id()).collect();
        inputs.iter().for_each(|it| {
            it.for_each_tensor(&mut |it| {
                taken.insert(it.storage().id());
            });
        });
        for (at, output) in outputs.iter().enumerate() {
            let [sizes, strides] = [output.sizes(), output.strides()].map(Dims::from_slice);
            let is_apart = Extent { sizes, strides, offset: output.offset() }.is_apart();
            if !taken.insert(output.storage().id()) || !is_apart {
                let what =
                    format!("the output {at} shares memory with itself, another output, an input or the program");
                return Err(Diagnostic::new(Code::InvalidArgument, what).help("give a tensor with memory of its own"));
            }
        }
        Ok(())
    }

    /// Calls the program as [`Runner::run`] does, and tells before each node of its graph how many were run, and how many
    /// there are; and the same again before each step of a loop. An error of `watch` stops the call; what the nodes before wrote to buffers and inputs stays, and so does
    /// what was to be written back at the end: a plan writes that as soon as nobody reads what was there.
    ///
    /// ```no_run
    /// # use tracefx_core::{Code, Diagnostic};
    /// # use std::sync::atomic::{AtomicBool, Ordering};
    /// # let program = tracefx_engine::open(&[], &tracefx_engine::Limits::default()).unwrap();
    /// static STOP: AtomicBool = AtomicBool::new(false);
    /// let runner = tracefx_engine::Runner::new(&program).unwrap();
    /// let outputs = runner.run_watched(&[], &mut |done, all| {
    ///     println!("{done} of {all}");
    ///     if STOP.load(Ordering::Relaxed) { Err(Diagnostic::new(Code::Stopped, "stopped")) } else { Ok(()) }
    /// });
    /// ```
    ///
    /// # Errors
    /// As there, and what `watch` gives.
    pub fn run_watched(&self, inputs: &[Value<Tensor>], watch: &mut Watch<'_>) -> Result<Vec<Value<Tensor>>> {
        self.checker.check(inputs)?;
        self.run_limited(inputs, None, watch)
    }

    /// A run that ends where its limits are, with memory for what it gives.
    fn run_limited(
        &self,
        inputs: &[Value<Tensor>],
        outputs: Option<&[Tensor]>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value<Tensor>>> {
        let result = match self.limits.milliseconds {
            None => self.run_module(inputs, outputs, watch),
            Some(limit) => {
                let start = Instant::now();
                self.run_module(inputs, outputs, &mut |done, all| {
                    if start.elapsed() > Duration::from_millis(limit) {
                        return Err(too_long(limit));
                    }
                    watch(done, all)
                })
            }
        };
        outputs_of(result?)
    }

    fn run_module(
        &self,
        inputs: &[Value<Tensor>],
        outputs: Option<&[Tensor]>,
        watch: &mut Watch<'_>,
    ) -> Result<Value<Tensor>> {
        if self.mode == Mode::Plan
            && let Some(result) =
                self.plans.run(&self.module, &self.library, (inputs, outputs), self.limits.loop_steps, watch)?
        {
            return Ok(result);
        }
        // The interpreter reads what is in memory.
        self.plans.synchronize()?;
        let interpreter = Interpreter::new(&self.module, self.library.executor());
        interpreter.run_watched(inputs, self.limits.loop_steps, watch)
    }

    /// Whether a call may write to the tensors that it is given: whether any operator of the program writes at all.
    pub fn changes_inputs(&self) -> bool {
        let registry = self.library.registry();
        let writes = |module: &GraphModule| {
            let graph = &module.graph;
            graph.nodes().any(|id| registry.get(graph.node(id).target()).is_some_and(Op::may_write))
        };
        self.module.modules().iter().any(|(_, module)| writes(module))
    }

    /// The parameters, buffers and constants that the program reads, as they are now.
    pub fn state(&self) -> impl Iterator<Item = (&Str, &Tensor)> {
        self.module.attributes.iter().filter_map(|(name, attribute)| match attribute {
            Attribute::Tensor { tensor, .. } => Some((name, tensor)),
            Attribute::Fake { .. } | Attribute::Module(_) => None,
        })
    }

    /// The program that this was made from.
    pub fn program(&self) -> &ExportedProgram {
        &self.program
    }
}

/// What a program gives, which is a tuple.
pub(crate) fn outputs_of(given: Value<Tensor>) -> Result<Vec<Value<Tensor>>> {
    match given {
        Value::List(outputs) => Ok(outputs),
        other => {
            let what = format!("the program returns a {} instead of a tuple", other.kind_name());
            Err(Diagnostic::new(Code::GraphInvalid, what))
        }
    }
}

fn too_long(limit: u64) -> Diagnostic {
    let what = format!("the run took longer than {limit} milliseconds, the limit `milliseconds`");
    Diagnostic::new(Code::LimitExceeded, what)
        .help("if you trust the program, run it with a larger limit `milliseconds`")
}
