//! Calls of operators on what is known of tensors without their data, as PyTorch's fake tensors do. Graphs are walked by
//! `exec`.

use crate::{Args, Builder, Cx, Infer, Output, Registry, Symbols, Tags, TensorRef, Traced, Value, bind, check_cast};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Str, TensorMeta};
use tracefx_sym::SymInt;

/// Calls operators on tensors without data, in sizes that are known or symbolic: what PyTorch does on fake tensors.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_ir::TensorMeta;
/// use tracefx_ops::{Propagation, Symbols, Value, registry};
/// use tracefx_sym::{SymInt, Symbol};
///
/// let symbols = Symbols::default();
/// let shapes = Propagation::new(registry(), &symbols);
/// let batch = SymInt::from(Symbol::size("s0"));
/// let x = TensorMeta::contiguous(DType::Float32, vec![batch.clone(), 3.into()]);
/// let positions = shapes.call("aten.nonzero.default", &[Value::Tensor(x)], &[]).unwrap();
/// let Value::Tensor(positions) = &positions[0] else { panic!("a tensor") };
/// assert_eq!(positions.sizes[0].to_string(), "u0");
/// assert_eq!(positions.sizes[1], 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Propagation<'a> {
    registry: &'a Registry,
    symbols: &'a Symbols,
}

impl<'a> Propagation<'a> {
    /// Propagation through these operators, where this is known of the symbols.
    pub fn new(registry: &'a Registry, symbols: &'a Symbols) -> Self {
        Propagation { registry, symbols }
    }

    /// The operators.
    pub fn registry(&self) -> &'a Registry {
        self.registry
    }

    /// What is known of the symbols.
    pub fn symbols(&self) -> &'a Symbols {
        self.symbols
    }

    /// Calls the operator of this name and gives back its results, one per result of the schema.
    ///
    /// # Errors
    /// `NotImplemented` where the operator is not known, needs data or the value of an unbacked symbol, or refuses sizes
    /// that are symbolic; else what the operator refuses. The error names the operator.
    pub fn call(
        &self,
        name: &str,
        args: &[Value<TensorMeta>],
        kwargs: &[(Str, Value<TensorMeta>)],
    ) -> Result<Vec<Value<TensorMeta>>> {
        let args = self.bind(name, args, kwargs)?;
        Ok(self.infer(&args)?.iter().map(|it| it.value(&args)).collect())
    }

    /// The arguments of a call, sorted by the operator's schema.
    ///
    /// # Errors
    /// As [`bind`](crate::bind()); `NotImplemented` where the operator is not known.
    pub fn bind(
        &self,
        name: &str,
        args: &[Value<TensorMeta>],
        kwargs: &[(Str, Value<TensorMeta>)],
    ) -> Result<Args<'a, TensorMeta>> {
        let op = self.registry.require(name)?;
        Ok(Args::within(op, bind(op, args, kwargs)?, self.symbols))
    }

    /// The results of a call, one per result of the schema, and which of them look at the storage of an argument.
    ///
    /// # Errors
    /// As [`Propagation::call`].
    pub fn infer(&self, args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
        let named = |problem: Diagnostic| problem.op(&*args.op.name);
        let n_replaced = self.symbols.n_replaced();
        let outputs = match self.apply(args) {
            Err(problem) if self.symbols.is_exporting() => self.unified(args, problem),
            Ok(outputs) if n_replaced != self.symbols.n_replaced() => self.settled(args).or(Ok(outputs)),
            outputs => outputs.map_err(|problem| undecided(args, problem)),
        };
        outputs.map_err(named)
    }

    /// What the rule gives when it sees the equalities that it asked for.
    pub(crate) fn settled(&self, args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
        let values = args.values.iter().map(|it| self.symbols.replace_value(it)).collect();
        self.apply(&Args::within(args.op, values, self.symbols))
    }

    /// What the rule of the operator gives.
    pub(crate) fn apply(&self, args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
        let outputs = match args.op.def.infer {
            Infer::Rule(rule) => rule(args),
            Infer::InPlaceOf(functional) => self.infer_in_place(args, functional),
            Infer::Composite => self.infer_composite(args),
        }?;
        outputs.iter().try_for_each(check)?;
        Ok(outputs)
    }

    fn infer_in_place(&self, args: &Args<'_, TensorMeta>, functional: &str) -> Result<Vec<Output>> {
        let target = args.tensor(0)?;
        let op = self.registry.require(functional)?;
        let n_args = op.schema.args.len().min(args.values.len());
        let inner = Args::within(op, args.values[..n_args].to_vec(), self.symbols);
        let outputs = self.infer(&inner)?;
        match outputs.first().map(|it| it.value(&inner)) {
            // What is the argument itself is not written.
            Some(_) if matches!(outputs.first(), Some(Output::Same(0))) => {}
            Some(Value::Tensor(result)) => {
                let may_share = args.op.def.tags.has(Tags::WRITES_SHARED);
                let mut target = target.clone();
                if may_share {
                    target.strides = TensorMeta::contiguous(target.dtype, target.sizes.clone()).strides;
                }
                check_write(&target, &result, &|a, b| args.differ(a, b))?;
            }
            Some(_) | None => return Err(args.invalid(format!("{functional} does not give a tensor to write"))),
        }
        Ok(vec![Output::Same(0)])
    }

    fn infer_composite(&self, args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
        let Some(decompose) = args.op.def.decompose else {
            return Err(args.unsupported(format!("the operator {} has no shape rule", args.op.name)));
        };
        let mut shapes = Shapes { propagation: *self, tensors: Vec::new() };
        let values = args.values.iter().enumerate().map(|(arg, value)| shapes.import(arg, value)).collect();
        match (
            decompose(&mut Cx::new(&mut shapes), &Args::within(args.op, values, self.symbols)),
            args.op.def.uncomposed,
        ) {
            (Ok(results), _) => Ok(results.iter().map(|it| shapes.output(it)).collect()),
            (Err(problem), Some(rule)) if problem.code() == Code::NotImplemented => rule(args),
            (Err(problem), _) => Err(problem),
        }
    }
}

/// What a rule refuses of sizes that are not known may hold of the sizes of a run.
pub(crate) fn undecided(args: &Args<'_, TensorMeta>, problem: Diagnostic) -> Diagnostic {
    let is_about_sizes = matches!(problem.code(), Code::ShapeMismatch | Code::InvalidArgument);
    if !is_about_sizes || !args.values.iter().any(depends_on_symbols) {
        return problem;
    }
    args.unsupported(format!("whether this holds of the sizes of a run is not known: {}", problem.message()))
}

fn depends_on_symbols(value: &Value<TensorMeta>) -> bool {
    match value {
        Value::Tensor(meta) => meta.sizes.iter().chain(&meta.strides).any(SymInt::is_symbolic),
        Value::List(items) => items.iter().any(depends_on_symbols),
        Value::Int(it) => it.is_symbolic(),
        other => matches!(other, Value::SymBool(_) | Value::SymFloat(_)),
    }
}

/// Refuses what an in-place operator cannot write into its argument.
///
/// # Errors
/// `DTypeMismatch` where the conversion would lose the kind of number; `ShapeMismatch` where the result does not broadcast
/// to the argument; `InvalidArgument` where several elements of the argument share one place in memory.
pub fn check_write(target: &TensorMeta, result: &TensorMeta, differ: &dyn Fn(&SymInt, &SymInt) -> bool) -> Result<()> {
    check_cast(result.dtype, target.dtype)?;
    let is_empty = target.sizes.contains(&SymInt::ZERO);
    if !is_empty && target.sizes.iter().zip(&target.strides).any(|(size, stride)| *size != 1 && *stride == 0) {
        let what =
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location";
        return Err(
            Diagnostic::new(Code::InvalidArgument, what).help("clone() the tensor before performing the operation")
        );
    }
    let lead = target.sizes.len().checked_sub(result.sizes.len());
    let differs = |a: &SymInt, b: &SymInt| a.as_int() != Some(1) && differ(a, b);
    if lead.is_none_or(|lead| result.sizes.iter().zip(&target.sizes[lead..]).any(|(a, b)| differs(a, b))) {
        let what = format!("output with shape {:?} doesn't match the broadcast shape {:?}", target.sizes, result.sizes);
        return Err(Diagnostic::new(Code::ShapeMismatch, what));
    }
    Ok(())
}

/// Refuses what is no size: a negative or overflowing one, or a value of which nothing is known.
fn check(output: &Output) -> Result<()> {
    let meta = match output {
        Output::Unknown(Value::None) => {
            return Err(Diagnostic::new(Code::NotImplemented, "the results depend on the data of the arguments"));
        }
        Output::List(items) => return items.iter().try_for_each(check),
        Output::Tensor(meta) | Output::View { meta, .. } | Output::Unknown(Value::Tensor(meta)) => meta,
        Output::Same(_) | Output::Value(_) | Output::Unknown(_) => return Ok(()),
    };
    let is_size = |it: &SymInt| it.as_int().map_or(it.invalid().is_none(), |it| it >= 0);
    match meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]).find(|it| !is_size(it)) {
        Some(it) => Err(Diagnostic::new(Code::ShapeMismatch, format!("{it} is not a size"))),
        None => Ok(()),
    }
}

/// A builder that asks the shape rule of each call of a decomposition.
struct Shapes<'a> {
    propagation: Propagation<'a>,
    tensors: Vec<Shape>,
}

struct Shape {
    meta: TensorMeta,
    origin: Origin,
}

/// Whose storage a tensor of a decomposition looks at.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    New,
    /// That of the argument at this position, of the `item`-th tensor in it; it may be the argument itself.
    Arg {
        arg: usize,
        item: usize,
        is_same: bool,
    },
}

impl Shapes<'_> {
    fn push(&mut self, meta: &TensorMeta, origin: Origin) -> TensorRef {
        self.tensors.push(Shape { meta: meta.clone(), origin });
        TensorRef(self.tensors.len() - 1)
    }

    fn import(&mut self, arg: usize, value: &Value<TensorMeta>) -> Traced {
        let is_same = matches!(value, Value::Tensor(_));
        let items = if let Value::List(items) = value { items.as_slice() } else { std::slice::from_ref(value) };
        let traced = items
            .iter()
            .enumerate()
            .map(|(item, it)| it.map(&mut |meta| self.push(meta, Origin::Arg { arg, item, is_same })));
        let mut traced: Vec<Traced> = traced.collect();
        if matches!(value, Value::List(_)) { Value::List(traced) } else { traced.swap_remove(0) }
    }

    fn export(&self, value: &Traced) -> Value<TensorMeta> {
        value.map(&mut |it| self.tensors[it.0].meta.clone())
    }

    fn output(&self, value: &Traced) -> Output {
        match value {
            Value::Tensor(tensor) => {
                let Shape { meta, origin } = &self.tensors[tensor.0];
                match *origin {
                    Origin::New => Output::Tensor(meta.clone()),
                    Origin::Arg { arg, is_same: true, .. } => Output::Same(arg),
                    Origin::Arg { arg, item, is_same: false } => Output::View { arg, item, meta: meta.clone() },
                }
            }
            Value::List(items) if items.iter().any(|it| matches!(it, Value::Tensor(_))) => {
                Output::List(items.iter().map(|it| self.output(it)).collect())
            }
            other => Output::Value(self.export(other)),
        }
    }

    /// A result of a call of these arguments.
    fn adopt(&mut self, output: &Output, args: &[Traced]) -> Traced {
        match output {
            Output::Same(arg) => args[*arg].clone(),
            Output::List(items) => Value::List(items.iter().map(|it| self.adopt(it, args)).collect()),
            Output::View { arg, item, meta } => {
                let base = if let Value::List(items) = &args[*arg] { items.get(*item) } else { args.get(*arg) };
                let origin = match base {
                    Some(Value::Tensor(it)) => match self.tensors[it.0].origin {
                        Origin::Arg { arg, item, .. } => Origin::Arg { arg, item, is_same: false },
                        Origin::New => Origin::New,
                    },
                    Some(_) | None => Origin::New,
                };
                self.push(meta, origin).into()
            }
            Output::Tensor(meta) => self.push(meta, Origin::New).into(),
            Output::Value(value) | Output::Unknown(value) => value.map(&mut |meta| self.push(meta, Origin::New)),
        }
    }
}

impl Builder for Shapes<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let op = self.propagation.registry.require(op)?;
        let kwargs: Vec<(Str, Traced)> = kwargs.iter().map(|(key, it)| (Str::from(*key), it.clone())).collect();
        let traced = bind(op, args, &kwargs)?;
        let values = traced.iter().map(|it| self.export(it)).collect();
        let outputs = self.propagation.infer(&Args::within(op, values, self.propagation.symbols))?;
        Ok(outputs.iter().map(|it| self.adopt(it, &traced)).collect())
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.tensors[tensor.0].meta
    }
}
