//! One call of an operator on data: arguments are bound, the shape rule is asked, and a kernel, a view or the decomposition
//! gives the results. It knows no graph; shapes are the registry's, and kernels are given to it.

use crate::without_data::without_data;
use crate::{Kernel, Kernels, assign, host};
use tracefx_core::allocate::{collected, push, try_collected};
use tracefx_core::{
    Code, DType, DTypeKind, Diagnostic, Dims, Element, Result, Storage, Tensor, bf16, f16, has_contiguous_strides,
    storage_span,
};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{
    ArgSpec, ArgType, Args, Builder, Cx, Infer, Operand, Output, Registry, Tags, TensorRef, Traced, TypeOf, Value,
    bind, check_cast, promote,
};
use tracefx_sym::SymInt;

/// Calls operators on tensors, at once.
#[derive(Clone, Copy, Debug)]
pub struct Executor<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) kernels: &'a Kernels,
}

impl<'a> Executor<'a> {
    /// An executor of these operators with these kernels.
    pub fn new(registry: &'a Registry, kernels: &'a Kernels) -> Self {
        Executor { registry, kernels }
    }

    /// The operators.
    pub fn registry(&self) -> &'a Registry {
        self.registry
    }

    /// The kernels.
    pub fn kernels(&self) -> &'a Kernels {
        self.kernels
    }

    /// Calls the operator of this name and gives back its results, one per result of the schema.
    ///
    /// # Errors
    /// `NotImplemented` where the operator is not known or has neither kernel nor decomposition for these arguments;
    /// else what the operator refuses. The error names the operator.
    pub fn call(
        &self,
        name: &str,
        args: &[Value<Tensor>],
        kwargs: &[(Str, Value<Tensor>)],
    ) -> Result<Vec<Value<Tensor>>> {
        let op = self.registry.require(name)?;
        let args = Args::new(op, bind(op, args, kwargs)?);
        check_dtypes(&args).and_then(|()| self.call_bound(&args)).map_err(|problem| problem.op(&*op.name))
    }

    /// Calls an operator whose arguments are bound already.
    ///
    /// # Errors
    /// What the operator refuses.
    pub(crate) fn call_bound(&self, args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
        if let Some(kernel) = self.kernels.host(&args.op.name) {
            return host::call(kernel, args);
        }
        match args.op.def.infer {
            Infer::InPlaceOf(functional) => self.call_in_place(args, functional),
            Infer::Composite => self.decompose(args),
            Infer::Rule(_) if args.op.is_custom() && args.op.def.decompose.is_some() => self.decompose(args),
            Infer::Rule(_) if args.op.is_custom() => Err(host::missing(args)),
            Infer::Rule(rule) => self.fulfil(args, &rule(&without_data(args)?)?),
        }
    }

    /// Makes what the shape rule promised.
    fn fulfil(&self, args: &Args<'_, Tensor>, outputs: &[Output]) -> Result<Vec<Value<Tensor>>> {
        let kernel = self.kernels.get(&args.op.name);
        let mut fresh = Vec::new();
        let mut is_unknown = false;
        let allocate = match kernel {
            Some(Kernel::Overwrite(_) | Kernel::Pointwise(_) | Kernel::Prepare { .. } | Kernel::Update { .. }) => {
                Tensor::unfilled
            }
            Some(Kernel::Fill(_) | Kernel::Make(_)) | None => Tensor::zeros,
        };
        let results = outputs
            .iter()
            .map(|output| self.make(args, output, allocate, &mut fresh, &mut is_unknown))
            .collect::<Result<Vec<_>>>()?;
        // Views, sizes and identities need no kernel; an assertion, which has no result at all, does.
        if fresh.is_empty() && !is_unknown && !outputs.is_empty() {
            return Ok(results);
        }
        let refusal = match kernel {
            Some(Kernel::Make(make)) => match make(args) {
                Ok(results) => return Ok(results),
                Err(problem) => problem,
            },
            Some(kernel) => {
                let dense = collected(fresh.iter().map(|it| it.dense.clone()))?;
                match kernel.fill(args, &dense) {
                    Ok(()) => {
                        fresh.iter().try_for_each(Fresh::settle)?;
                        return Ok(results);
                    }
                    Err(problem) => problem,
                }
            }
            None => args.unsupported(format!("the operator {} has no kernel", args.op.name)),
        };
        // A kernel that lacks a dtype leaves the call to the decomposition, if that gives the dtype that was promised: a product of
        // bools is no sum of ints.
        if refusal.code() == Code::NotImplemented && args.op.def.decompose.is_some() {
            let results = self.decompose(args)?;
            let is_promised = |(result, output): (&Value<Tensor>, &Output)| match (result, output) {
                (Value::Tensor(result), Output::Tensor(meta)) => result.dtype() == meta.dtype,
                (_, _) => true,
            };
            if kernel.is_none() || results.iter().zip(outputs).all(is_promised) {
                return Ok(results);
            }
        }
        Err(refusal)
    }

    fn make(
        &self,
        args: &Args<'_, Tensor>,
        output: &Output,
        allocate: Allocate,
        fresh: &mut Vec<Fresh>,
        is_unknown: &mut bool,
    ) -> Result<Value<Tensor>> {
        Ok(match output {
            Output::Tensor(meta) => {
                let it = Fresh::new(meta, allocate)?;
                let result = it.result.clone();
                push(fresh, it)?;
                Value::Tensor(result)
            }
            Output::View { arg, item, meta } => {
                let base = match &args.values[*arg] {
                    Value::List(items) => match &items[*item] {
                        Value::Tensor(base) => base,
                        other => return Err(args.invalid(format!("a view of a {}", other.kind_name()))),
                    },
                    _ => args.tensor(*arg)?,
                };
                let offset = known(&meta.storage_offset)?;
                let (sizes, strides) = (known_dims(&meta.sizes)?, known_dims(&meta.strides)?);
                if args.op.def.tags.has(Tags::RESIZES) {
                    base.storage().grow(byte_span(&sizes, &strides, offset, meta)?)?;
                }
                let view = Tensor::view_of(base.storage().clone(), meta.dtype, &sizes, &strides, offset)?;
                Value::Tensor(view)
            }
            Output::Same(arg) => args.values[*arg].clone(),
            Output::List(items) => {
                let items = items.iter().map(|it| self.make(args, it, allocate, fresh, is_unknown));
                Value::List(try_collected(items)?)
            }
            Output::Value(value) => {
                value.try_map(&mut |_| Err(args.invalid("a shape rule promised a tensor as a plain value")))?
            }
            Output::Unknown(_) => {
                *is_unknown = true;
                Value::None
            }
        })
    }

    fn call_in_place(&self, args: &Args<'_, Tensor>, functional: &str) -> Result<Vec<Value<Tensor>>> {
        let target = args.tensor(0)?;
        let op = self.registry.require(functional)?;
        let n_args = op.schema.args.len();
        let mut inner = Args::new(op, args.values[..n_args.min(args.values.len())].to_vec());
        if args.op.def.tags.has(Tags::ROUNDS_NUMBERS) {
            inner.values.iter_mut().for_each(|it| round_number(it, target.dtype()));
        }
        let mut results = self.call_bound(&inner)?;
        let result = results.drain(..).next();
        let Some(Value::Tensor(result)) = result else {
            return Err(args.invalid(format!("{functional} does not give a tensor to write")));
        };
        if result.is_same_view(target) {
            return Ok(vec![Value::Tensor(target.clone())]);
        }
        if args.op.def.tags.has(Tags::WRITES_SHARED) {
            // One of the elements that share a place stands for all of them.
            let once = |it: &Tensor| {
                let shared: Vec<usize> = (0..target.rank()).filter(|&dim| target.strides()[dim] == 0).collect();
                let sizes =
                    |dim: usize| if shared.contains(&dim) { target.sizes()[dim].min(1) } else { target.sizes()[dim] };
                it.as_strided(&(0..target.rank()).map(sizes).collect::<Dims>(), it.strides(), it.offset())
            };
            let (written, result) = (once(target)?, once(&result)?);
            self.write(&written, result)?;
            return Ok(vec![Value::Tensor(target.clone())]);
        }
        self.write(target, result)?;
        Ok(vec![Value::Tensor(target.clone())])
    }

    /// Writes a result into a tensor, converted to its dtype where PyTorch allows that.
    ///
    /// # Errors
    /// `DTypeMismatch` where the conversion would lose the kind of number, else as [`assign`].
    pub(crate) fn write(&self, target: &Tensor, mut result: Tensor) -> Result<()> {
        if result.dtype() != target.dtype() {
            check_cast(result.dtype(), target.dtype())?;
            let kwargs = [("dtype".into(), Value::DType(target.dtype()))];
            if let Some(Value::Tensor(converted)) =
                self.call("aten._to_copy.default", &[Value::Tensor(result.clone())], &kwargs)?.pop()
            {
                result = converted;
            }
        }
        if result.storage().is_same(target.storage()) {
            result = result.compact_copy()?;
        }
        assign(target, &result)
    }

    /// What the decomposition of an operator gives.
    ///
    /// # Errors
    /// `NotImplemented` where it has none; else what a part refuses.
    pub(crate) fn decompose(&self, args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
        let Some(decompose) = args.op.def.decompose else {
            return Err(args.unsupported(format!("the operator {} has no kernel", args.op.name)));
        };
        let mut builder = Eager::new(*self);
        let values = args.values.iter().map(|it| builder.import(it)).collect::<Result<_>>()?;
        let results = decompose(&mut Cx::new(&mut builder), &Args::new(args.op, values))?;
        results.iter().map(|it| builder.export(it)).collect()
    }
}

/// Rounds a number to half precision.
pub(crate) fn round_number<T>(value: &mut Value<T>, dtype: DType) {
    let Some(number) = value.as_scalar().filter(|it| it.kind() == DTypeKind::Float) else { return };
    *value = match dtype {
        DType::Float16 => f16::from_scalar(number).to_scalar().into(),
        DType::BFloat16 => bf16::from_scalar(number).to_scalar().into(),
        _ => return,
    };
}

/// A builder that runs each call of a decomposition at once.
pub(crate) struct Eager<'a> {
    executor: Executor<'a>,
    tensors: Vec<(Tensor, TensorMeta)>,
}

impl<'a> Eager<'a> {
    pub(crate) fn new(executor: Executor<'a>) -> Self {
        Eager { executor, tensors: Vec::new() }
    }

    pub(crate) fn import(&mut self, value: &Value<Tensor>) -> Result<Traced> {
        value.try_map(&mut |tensor| {
            push(&mut self.tensors, (tensor.clone(), TensorMeta::of(tensor)))?;
            Ok(TensorRef(self.tensors.len() - 1))
        })
    }

    pub(crate) fn export(&self, value: &Traced) -> Result<Value<Tensor>> {
        value.try_map(&mut |it| Ok(self.tensors[it.0].0.clone()))
    }
}

impl Builder for Eager<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let args = args.iter().map(|it| self.export(it)).collect::<Result<Vec<_>>>()?;
        let kwargs = kwargs.iter().map(|(key, it)| Ok((Str::from(*key), self.export(it)?)));
        let kwargs = kwargs.collect::<Result<Vec<_>>>()?;
        let op = self.executor.registry.require(op)?;
        let args = Args::new(op, bind(op, &args, &kwargs)?);
        // Which dtypes are refused was asked of the operator that is decomposed.
        let results = self.executor.call_bound(&args).map_err(|problem| problem.op(&*op.name))?;
        results.iter().map(|it| self.import(it)).collect()
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        &self.tensors[tensor.0].1
    }
}

/// Refuses a call whose tensors are of a dtype that PyTorch has no kernel for. Where floats meet indices and masks, the
/// floats count, and tensors of several dtypes are left to the shape rule and the kernel where they do not meet element by
/// element; a number in the place of a tensor takes part as in type promotion; nothing to compute often needs no kernel.
///
/// # Errors
/// `DTypeMismatch`, in PyTorch's words.
pub(crate) fn check_dtypes<T: TypeOf>(args: &Args<'_, T>) -> Result<()> {
    let op = args.op;
    if op.refused.is_empty() {
        return Ok(());
    }
    let mut tensors = Vec::new();
    let specs = || op.schema.args.iter().zip(&args.values);
    let data = specs().filter(|(spec, _)| !matches!(spec.name.as_str(), "index" | "indices" | "target"));
    data.for_each(|(_, it)| it.for_each_tensor(&mut |it| tensors.push(it)));
    let is_float = |it: &T| it.dtype().kind() >= DTypeKind::Float;
    // A target of floats takes part where the input is of integers; one of classes does not.
    if tensors.iter().all(|it| !is_float(it)) {
        let targets = specs().filter(|(spec, _)| spec.name == "target");
        targets.for_each(|(_, it)| {
            it.for_each_tensor(&mut |it| tensors.extend(Some(it).filter(|it| it.dtype().is_float())))
        });
    }
    if tensors.iter().any(|it| is_float(it)) {
        tensors.retain(|it| is_float(it));
    }
    let [first, rest @ ..] = tensors.as_slice() else { return Ok(()) };
    let is_pointwise = op.def.tags.has(Tags::POINTWISE);
    if !is_pointwise && rest.iter().any(|it| it.dtype() != first.dtype()) {
        return Ok(());
    }
    let refused = if first.is_empty() { op.refused_empty } else { op.refused };
    let is_operand = |spec: &ArgSpec| match spec.ty {
        ArgType::Tensor => true,
        ArgType::Scalar => is_pointwise && matches!(spec.name.as_str(), "self" | "other"),
        _ => false,
    };
    let numbers = specs().filter(|(spec, _)| is_operand(spec)).filter_map(|(_, it)| it.as_scalar());
    let operands: Vec<_> = tensors.iter().map(|it| Operand::Tensor(*it)).chain(numbers.map(Operand::Scalar)).collect();
    let dtype = promote(&operands);
    if refused.has(dtype) {
        let what = format!("\"{}\" not implemented for '{}'", op.schema.name, dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(())
}

/// Makes a row-major tensor of this dtype and these sizes.
type Allocate = fn(DType, &[usize]) -> Result<Tensor>;

/// A result that a kernel fills. Kernels always write row-major; where the shape rule asks for other strides (channels
/// last, for one), the elements are put in place afterwards.
struct Fresh {
    dense: Tensor,
    result: Tensor,
}

impl Fresh {
    fn new(meta: &TensorMeta, allocate: Allocate) -> Result<Self> {
        let sizes = known_dims(&meta.sizes)?;
        let strides = known_dims(&meta.strides)?;
        let dense = allocate(meta.dtype, &sizes)?;
        if has_contiguous_strides(&sizes, &strides) {
            let result = if dense.numel() == 0 { dense.clone() } else { dense.as_strided(&sizes, &strides, 0)? };
            return Ok(Fresh { dense, result });
        }
        let storage = Storage::zeroed(byte_span(&sizes, &strides, 0, meta)?)?;
        let result = Tensor::view_of(storage, meta.dtype, &sizes, &strides, 0)?;
        Ok(Fresh { dense, result })
    }

    fn settle(&self) -> Result<()> {
        if self.result.storage().is_same(self.dense.storage()) { Ok(()) } else { assign(&self.result, &self.dense) }
    }
}

/// How many bytes a storage needs to hold this view.
fn byte_span(sizes: &[usize], strides: &[usize], offset: usize, meta: &TensorMeta) -> Result<usize> {
    storage_span(sizes, strides, offset)
        .and_then(|it| usize::try_from(it).ok()?.checked_mul(meta.dtype.size()))
        .filter(|&len| len <= isize::MAX as usize)
        .ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))
}

fn known_dims(dims: &[SymInt]) -> Result<Dims> {
    dims.iter().map(known).collect()
}

fn known(size: &SymInt) -> Result<usize> {
    size.as_int()
        .and_then(|it| usize::try_from(it).ok())
        .ok_or_else(|| Diagnostic::new(Code::ShapeMismatch, format!("{size} is not a size")))
}
