//! The registry and the kernels of a host in one value, and what they are given to: running, exporting, passes, shapes.
//! Operators are defined in `ops` and called by `exec`.

use crate::coverage::coverage_of;
use crate::files::open_file_with;
use crate::inspect::report;
use crate::open::open_with;
use crate::{Limits, OpUse, Report, Runner};
use std::path::Path;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_exec::{Called, Executor, Kernels, Pullback};
use tracefx_export::{DecompositionTable, DynamicShapes, ExportedProgram};
use tracefx_ir::{GraphModule, Str, TensorMeta};
use tracefx_ops::{Args, CustomOp, Op, Output, Propagation, Registry, Symbols, Tol, Value, registry};
use tracefx_pt2::LoadOptions;
use tracefx_rewrite::RewriteContext;

/// The operators that programs may call, and what computes them: those of tracefx, and operators of one's own. PyTorch's
/// `torch.library`, as a value: what is defined in one library is not there for others.
///
/// A clone is cheap, and keeps what it has when the original changes.
///
/// ```
/// use tracefx_core::Tensor;
/// use tracefx_engine::Library;
/// use tracefx_ops::{CustomOp, Output, Value};
///
/// let mut library = Library::default();
/// let schema = "mylib::square(Tensor x) -> Tensor";
/// library.define(CustomOp::new(schema)?.shape(|args| Ok(vec![Output::Tensor(args.tensor(0)?.clone())])))?;
/// library.implement("mylib.square.default", |args| {
///     let x = args.tensor(0)?;
///     let squares: Vec<f32> = x.to_vec::<f32>()?.iter().map(|it| it * it).collect();
///     Ok(vec![Value::Tensor(Tensor::from_slice(&squares, x.sizes())?)])
/// })?;
///
/// let x = Value::Tensor(Tensor::from_slice(&[3.0f32, 4.0], &[2])?);
/// let called = library.call("mylib.square", &[x], Vec::new())?;
/// let [Value::Tensor(squares)] = called.results.as_slice() else { panic!("one tensor") };
/// assert_eq!(squares.to_vec::<f32>()?, [9.0, 16.0]);
/// # Ok::<(), tracefx_core::Diagnostic>(())
/// ```
///
/// A program that calls `mylib::square` runs in it: `library.runner(&program)?.run(&inputs)`.
#[derive(Clone, Debug)]
pub struct Library {
    registry: Registry,
    kernels: Kernels,
}

impl Default for Library {
    /// The operators of tracefx alone.
    fn default() -> Self {
        Library { registry: registry().clone(), kernels: tracefx_cpu::kernels().clone() }
    }
}

impl Library {
    /// Puts in an operator.
    ///
    /// # Errors
    /// `InvalidOption` where there is an operator of this name and overload already.
    pub fn define(&mut self, op: CustomOp) -> Result<()> {
        self.registry.define(op)
    }

    /// Puts in an operator that is made of others, as the graph of a module says: its inputs are the arguments of the
    /// schema, its outputs the results.
    ///
    /// # Errors
    /// As [`Library::define`], and of [`CustomOp::new`].
    pub fn define_composite(&mut self, schema: &str, body: GraphModule) -> Result<()> {
        let op = CustomOp::new(schema)?;
        let registry = self.registry.clone();
        self.define(op.decompose(move |cx, args| tracefx_exec::compose(&body, &registry, cx, &args.values)))
    }

    /// Gives an operator of one's own a kernel, in the place of one that it may have had. The kernel gives the results, one
    /// per result of the schema, and writes to arguments that the schema marks; what it gives is checked against the schema
    /// and the shape rule. It may call operators itself.
    ///
    /// # Errors
    /// `NotImplemented` where there is no such operator; `InvalidOption` where it is one of tracefx.
    pub fn implement(
        &mut self,
        name: &str,
        kernel: impl Fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> + Send + Sync + 'static,
    ) -> Result<()> {
        let op = self.registry.require(name)?;
        if !op.is_custom() {
            let what = format!("the operator {} has a kernel of tracefx", op.name);
            return Err(Diagnostic::new(Code::InvalidOption, what).op(&*op.name));
        }
        self.kernels.insert(op.name.clone(), kernel);
        Ok(())
    }

    /// Takes out an operator of one's own with its kernel, and gives back whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(name) = self.registry.get(name).map(|it| it.name.clone()) else { return false };
        self.kernels.remove(&name);
        self.registry.remove(&name)
    }

    /// The operators.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What computes single operators.
    pub fn executor(&self) -> Executor<'_> {
        Executor::new(&self.registry, &self.kernels)
    }

    /// Calls one operator: [`call`](crate::call()).
    ///
    /// # Errors
    /// As there, and what the kernel of an operator of one's own refuses.
    pub fn call(&self, name: &str, args: &[Value<Tensor>], kwargs: Vec<(Str, Value<Tensor>)>) -> Result<Called> {
        self.executor().call_python(name, args, kwargs)
    }

    /// As [`Library::call`], under autocast with this narrow dtype.
    ///
    /// # Errors
    /// As there.
    pub fn call_under_autocast(
        &self,
        low: DType,
        name: &str,
        args: &[Value<Tensor>],
        kwargs: Vec<(Str, Value<Tensor>)>,
    ) -> Result<Called> {
        self.executor().call_under_autocast(low, name, args, kwargs)
    }

    /// What is known of the results of a call: [`infer`](crate::infer()).
    ///
    /// # Errors
    /// As there, and what the shape rule of an operator of one's own refuses.
    pub fn infer(
        &self,
        name: &str,
        args: &[Value<TensorMeta>],
        kwargs: &[(Str, Value<TensorMeta>)],
    ) -> Result<Vec<Value<TensorMeta>>> {
        self.infer_under(None, name, args, kwargs)
    }

    /// As [`Library::infer`], under autocast with this narrow dtype if there is one.
    ///
    /// # Errors
    /// As there.
    pub fn infer_under(
        &self,
        low: Option<DType>,
        name: &str,
        args: &[Value<TensorMeta>],
        kwargs: &[(Str, Value<TensorMeta>)],
    ) -> Result<Vec<Value<TensorMeta>>> {
        let bound = self.registry.resolve(name, args, kwargs, &|_| None).map_err(|problem| problem.op(name))?;
        let symbols = Symbols::of(&bound.values);
        let args = Args::within(bound.op, bound.values, &symbols);
        tracefx_exec::infer(&args, Propagation::new(&self.registry, &symbols), low)
    }

    /// The overload that a call is for, and its arguments as that takes them. A tensor may be anything.
    ///
    /// # Errors
    /// As [`Library::call`] for what is no operator, or fits no overload.
    ///
    /// ```
    /// use tracefx_engine::Library;
    /// use tracefx_ops::Value;
    ///
    /// let library = Library::default();
    /// let call = library.resolve("aten.gt", &[Value::Tensor("x"), Value::int(0)], &[]).unwrap();
    /// assert_eq!(&*call.op.name, "aten.gt.Scalar");
    /// let call = library.resolve("aten.flatten", &[Value::Tensor("x"), Value::int(1)], &[]).unwrap();
    /// assert_eq!((&*call.op.name, call.written()), ("aten.flatten.using_ints", (2, vec![])));
    /// ```
    pub fn resolve<T: Clone>(&self, name: &str, args: &[Value<T>], kwargs: &[(Str, Value<T>)]) -> Result<Args<'_, T>> {
        self.registry.resolve(name, args, kwargs, &|_| None).map_err(|problem| problem.op(name))
    }

    /// Which results of a call are an argument itself, by its position: what works in place gives back what it wrote to, and
    /// `contiguous` a tensor that is. Nothing is known of a call that the shape rule refuses.
    pub fn arguments_given_back(&self, op: &Op, values: Vec<Value<TensorMeta>>) -> Vec<Option<usize>> {
        let symbols = Symbols::of(&values);
        let args = Args::within(op, values, &symbols);
        if op.returns_self() {
            return vec![Some(0)];
        }
        let outputs = Propagation::new(&self.registry, &symbols).infer(&args).unwrap_or_default();
        let given_back = |output: &Output| if let Output::Same(at) = output { Some(*at) } else { None };
        outputs.iter().map(given_back).collect()
    }

    /// Calls an operator and remembers how gradients go back through the call; its overload is found as for
    /// [`Library::call`].
    ///
    /// # Errors
    /// As there; `NotImplemented` where the operator writes to an argument and has no functional counterpart.
    pub fn vjp(&self, name: &str, args: &[Value<Tensor>], kwargs: &[(Str, Value<Tensor>)]) -> Result<Pullback<'_>> {
        let executor = self.executor();
        let bound = executor.resolve(name, args, kwargs)?;
        let (positional, named) = bound.parted();
        executor.vjp(&bound.op.name, positional, &named)
    }

    /// How near the results of an operator must be to PyTorch's.
    ///
    /// # Errors
    /// `NotImplemented` where there is no such operator.
    pub fn tolerance(&self, name: &str) -> Result<Tol> {
        Ok(self.registry.require(name)?.def.tolerance)
    }

    /// What rewriting needs of this library, kernels included, so that replacements can be verified:
    /// [`VerifyOptions`](tracefx_rewrite::VerifyOptions).
    ///
    /// ```
    /// use tracefx_core::{Code, DType};
    /// use tracefx_engine::Library;
    /// use tracefx_ir::{Graph, GraphModule, TensorMeta, Val};
    /// use tracefx_rewrite::{ReplaceOptions, Replacement, VerifyOptions, replace_pattern_with_filters};
    ///
    /// let calls = |target: &str| {
    ///     let mut graph = Graph::new();
    ///     let x = graph.placeholder("x");
    ///     let meta = TensorMeta::contiguous(DType::Float32, vec![2.into(), 3.into()]);
    ///     graph.meta_mut(x).val = Some(Val::Tensor(meta));
    ///     let call = graph.call_function(target, vec![x.into()], vec![]);
    ///     graph.output(call.into());
    ///     GraphModule::new(graph)
    /// };
    /// let (library, mut module) = (Library::default(), calls("torch.relu"));
    /// let options = ReplaceOptions { verify: Some(VerifyOptions::default()), ..ReplaceOptions::default() };
    /// let replacement = calls("torch.abs");
    /// let refusal = library.rewriting(|cx| {
    ///     let by = Replacement::Module(&replacement);
    ///     replace_pattern_with_filters(&mut module, &calls("torch.relu"), by, &[], cx, &options)
    /// });
    /// assert_eq!(refusal.unwrap_err().code(), Code::VerifyFailed);
    /// ```
    pub fn rewriting<R>(&self, run: impl FnOnce(RewriteContext<'_>) -> R) -> R {
        run(self.executor().into())
    }

    /// Reads a program: [`open`](crate::open()), by the schemas of these operators.
    ///
    /// # Errors
    /// As there.
    pub fn open(&self, bytes: &[u8], limits: &Limits) -> Result<ExportedProgram> {
        open_with(bytes, &self.load_options(limits))
    }

    /// Opens the program of a file: [`open_file`](crate::open_file), by the schemas of these operators.
    ///
    /// # Errors
    /// As there.
    pub fn open_file(&self, path: &Path, limits: &Limits) -> Result<ExportedProgram> {
        open_file_with(path, self.load_options(limits))
    }

    fn load_options(&self, limits: &Limits) -> LoadOptions {
        LoadOptions { limits: limits.clone(), registry: self.registry.clone(), ..LoadOptions::default() }
    }

    /// The program that a module comes to on these example inputs, with their sizes: [`tracefx_export::export()`].
    ///
    /// ```
    /// use tracefx_core::Tensor;
    /// use tracefx_engine::Library;
    /// use tracefx_ir::{Graph, GraphModule};
    /// use tracefx_ops::Value;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.placeholder("x");
    /// let relu = graph.call_function("torch.relu", vec![x.into()], vec![]);
    /// graph.output(relu.into());
    /// let example = [Value::Tensor(Tensor::from_slice(&[-1.0f32, 3.0], &[2])?)];
    ///
    /// let library = Library::default();
    /// let program = library.export(&GraphModule::new(graph), &example)?;
    /// let results = library.runner(&program)?.run(&example)?;
    /// let Value::Tensor(result) = &results[0] else { panic!("one tensor") };
    /// assert_eq!(result.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn export(&self, module: &GraphModule, inputs: &[Value<Tensor>]) -> Result<ExportedProgram> {
        self.export_dynamic(module, inputs, &DynamicShapes::Static)
    }

    /// The same with sizes that differ from call to call.
    ///
    /// # Errors
    /// As there.
    pub fn export_dynamic(
        &self,
        module: &GraphModule,
        inputs: &[Value<Tensor>],
        dynamic_shapes: &DynamicShapes,
    ) -> Result<ExportedProgram> {
        tracefx_export::export(module, inputs, dynamic_shapes, &self.registry)
    }

    /// Makes a program ready to be called with these operators.
    ///
    /// # Errors
    /// What [`ExportedProgram::module`] refuses.
    pub fn runner(&self, program: &ExportedProgram) -> Result<Runner> {
        Runner::within(program, self.clone())
    }

    /// Looks at a program: [`inspect`](crate::inspect()).
    pub fn inspect(&self, program: &ExportedProgram) -> Report {
        report(program, self)
    }

    /// The operators that a module and its sub-graphs call, in order of first use.
    pub fn coverage(&self, module: &GraphModule) -> Vec<OpUse> {
        coverage_of(module, &self.registry, &self.kernels)
    }

    /// The operators that decomposed programs do not contain: PyTorch's default, and those of one's own that have a
    /// decomposition.
    pub fn decompositions(&self) -> DecompositionTable {
        DecompositionTable::default_of(&self.registry)
    }
}
