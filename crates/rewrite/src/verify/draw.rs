//! Random values of what is known of a value.

use super::VerifyOptions;
use std::collections::HashMap;
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Generator, Result, Storage, Tensor, storage_span};
use tracefx_exec::{Executor, assign};
use tracefx_ir::{Attribute, GraphModule, Opcode, TensorMeta, Val};
use tracefx_ops::Value;
use tracefx_sym::{self as sym, SymInt, Symbol, ValueRange};

/// From where to where random ints go, one after the other until a match takes them: those of `torch.testing.make_tensor`,
/// then those that are indices of smaller and smaller dimensions.
pub(super) const INT_RANGES: [(i64, i64); 4] = [(-9, 9), (0, 4), (0, 1), (0, 0)];

/// How many sizes a symbol may have.
const SIZES: u32 = 5;

/// Makes random values.
pub(super) struct Draw<'a> {
    executor: Executor<'a>,
    options: &'a VerifyOptions,
    generator: Generator,
    ints: (i64, i64),
    /// The values of symbols, until inputs are drawn anew.
    symbols: HashMap<Symbol, sym::Value>,
    /// The data of tensors that the host keeps.
    fakes: HashMap<u32, Tensor>,
}

impl<'a> Draw<'a> {
    pub(super) fn new(executor: Executor<'a>, options: &'a VerifyOptions) -> Self {
        Draw {
            executor,
            options,
            generator: Generator::new(u64::from(options.seed)),
            ints: INT_RANGES[0],
            symbols: HashMap::new(),
            fakes: HashMap::new(),
        }
    }

    pub(super) fn executor(&self) -> Executor<'a> {
        self.executor
    }

    pub(super) fn seed(&self) -> u32 {
        self.options.seed
    }

    /// Begins anew, with ints of this range.
    pub(super) fn begin(&mut self, ints: (i64, i64)) {
        self.ints = ints;
        self.symbols.clear();
        self.fakes.clear();
    }

    /// A value for each input of the graph.
    pub(super) fn inputs(&mut self, module: &GraphModule) -> Result<Vec<Value<Tensor>>> {
        let nodes = module.graph.nodes().map(|it| module.graph.node(it));
        let inputs = nodes.filter(|it| it.op() == Opcode::Placeholder);
        inputs.map(|it| it.meta.val.as_ref().map_or(Ok(Value::None), |val| self.value(val))).collect()
    }

    /// The module with tensors of its own, to which a run may write.
    pub(super) fn owned(&mut self, module: &GraphModule) -> Result<GraphModule> {
        let mut res = module.clone();
        for attribute in res.attributes.values_mut() {
            match attribute {
                Attribute::Tensor { tensor, .. } => *tensor = copy(tensor)?,
                Attribute::Fake { tensor, kind } => {
                    let made = match self.fakes.get(&tensor.id) {
                        Some(it) => it.clone(),
                        None => self.tensor(&tensor.meta)?,
                    };
                    self.fakes.insert(tensor.id, made.clone());
                    *attribute = Attribute::Tensor { tensor: copy(&made)?, kind: *kind };
                }
                Attribute::Module(child) => **child = self.owned(child)?,
            }
        }
        Ok(res)
    }

    fn value(&mut self, val: &Val) -> Result<Value<Tensor>> {
        Ok(match val {
            Val::None => Value::None,
            Val::Tensor(meta) => Value::Tensor(self.tensor(meta)?),
            Val::Int(it) => Value::int(self.int(it)?),
            Val::Float(it) => match it.as_float() {
                Some(it) => Value::Float(it),
                None => Value::Float(self.generator.normal()),
            },
            Val::Bool(it) => match it.as_bool() {
                Some(it) => Value::Bool(it),
                None => Value::Bool(self.generator.random() % 2 == 1),
            },
            Val::Seq { items, .. } => Value::List(items.iter().map(|it| self.value(it)).collect::<Result<_>>()?),
        })
    }

    fn tensor(&mut self, meta: &TensorMeta) -> Result<Tensor> {
        let sizes = self.dims(&meta.sizes)?;
        let strides = self.dims(&meta.strides)?;
        let dense = self.dense(meta.dtype, &sizes)?;
        if dense.strides() == strides || dense.numel() == 0 {
            return Ok(dense);
        }
        // Elements that share a place have one value.
        let is_shared = |(&size, &stride): (&usize, &usize)| size > 1 && stride == 0;
        if sizes.iter().zip(&strides).any(is_shared) {
            let narrow: Vec<usize> =
                sizes.iter().zip(&strides).map(|it| if is_shared(it) { 1 } else { *it.0 }).collect();
            let dense = self.dense(meta.dtype, &narrow)?;
            return laid_out(&dense, &narrow, &strides)?.as_strided(&sizes, &strides, 0);
        }
        laid_out(&dense, &sizes, &strides)
    }

    /// A row-major tensor: floats of the normal distribution, ints of the range.
    fn dense(&mut self, dtype: DType, sizes: &[usize]) -> Result<Tensor> {
        let numel = sizes.iter().try_fold(1usize, |product, &it| product.checked_mul(it));
        let numel = numel.ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))?;
        let made = match dtype.kind() {
            DTypeKind::Complex => {
                let mut data: Vec<[f64; 2]> = reserved(numel)?;
                data.extend((0..numel).map(|_| [self.number(dtype), self.number(dtype)]));
                Tensor::from_slice(&data, sizes)?
            }
            DTypeKind::Bool | DTypeKind::Int | DTypeKind::Float => {
                let mut data: Vec<f64> = reserved(numel)?;
                data.extend((0..numel).map(|_| self.number(dtype)));
                Tensor::from_slice(&data, sizes)?
            }
        };
        converted(self.executor, made, dtype)
    }

    fn number(&mut self, dtype: DType) -> f64 {
        let (low, high) = self.ints;
        match dtype.kind() {
            DTypeKind::Bool => f64::from(self.generator.random() % 2),
            DTypeKind::Int => {
                let is_unsigned = matches!(dtype, DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64);
                let low = if is_unsigned { low.max(0) } else { low };
                let n = (high - low + 1) as u32;
                (low + i64::from(self.generator.random() % n)) as f64
            }
            DTypeKind::Float | DTypeKind::Complex => self.generator.normal(),
        }
    }

    fn dims(&mut self, dims: &[SymInt]) -> Result<Vec<usize>> {
        let dim = |it: &SymInt| {
            let size = self.int(it)?;
            usize::try_from(size)
                .map_err(|_| Diagnostic::new(Code::ShapeMismatch, format!("the size {it} would be {size}")))
        };
        dims.iter().map(dim).collect()
    }

    /// The value of an int, in which symbols that are new get a value.
    fn int(&mut self, int: &SymInt) -> Result<i64> {
        for symbol in int.symbols() {
            if !self.symbols.contains_key(&symbol) {
                let value = self.symbol(&symbol)?;
                self.symbols.insert(symbol, value);
            }
        }
        Ok(int.eval_with(&|it| self.symbols.get(it).copied())?)
    }

    fn symbol(&mut self, symbol: &Symbol) -> Result<sym::Value> {
        if !symbol.is_integer() {
            return Ok(sym::Value::Float(self.generator.normal()));
        }
        let (min, max) = self.options.ranges.get(symbol.name()).copied().unwrap_or((0, i64::MAX));
        let assumed = sym::ShapeEnv::new().range(symbol);
        let range = assumed.intersect(&ValueRange::between(min, max));
        if range.is_empty() {
            let what = format!("the range of {symbol} from {min} to {max} has no value in it");
            return Err(Diagnostic::new(Code::InvalidOption, what));
        }
        // Sizes of 0 and 1 are special: they broadcast, and guards rule them out.
        let low = range.min.unwrap_or(0).max(2.min(max));
        let n = (max - low).min(i64::from(SIZES) - 1) as u32 + 1;
        Ok(sym::Value::Int(low + i64::from(self.generator.random() % n)))
    }
}

/// A copy that shares nothing, laid out as the tensor is.
pub(super) fn copy(tensor: &Tensor) -> Result<Tensor> {
    let storage = Storage::from_bytes(tensor.storage().read().bytes())?;
    Tensor::view_of(storage, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset())
}

/// The tensor in another dtype.
pub(super) fn converted(executor: Executor<'_>, tensor: Tensor, dtype: DType) -> Result<Tensor> {
    let kwargs = [("dtype".into(), Value::DType(dtype))];
    let results = executor.call("aten._to_copy.default", &[Value::Tensor(tensor)], &kwargs)?;
    match results.into_iter().next() {
        Some(Value::Tensor(it)) => Ok(it),
        Some(_) | None => Err(Diagnostic::new(Code::Internal, "a conversion gives no tensor")),
    }
}

fn laid_out(dense: &Tensor, sizes: &[usize], strides: &[usize]) -> Result<Tensor> {
    let len =
        storage_span(sizes, strides, 0).and_then(|it| usize::try_from(it).ok()?.checked_mul(dense.dtype().size()));
    let storage = Storage::zeroed(len.ok_or_else(|| Diagnostic::out_of_memory(usize::MAX))?)?;
    let res = Tensor::view_of(storage, dense.dtype(), sizes, strides, 0)?;
    assign(&res, dense)?;
    Ok(res)
}
/// Room for numbers, refused where there is none: sizes are what somebody noted.
fn reserved<T>(len: usize) -> Result<Vec<T>> {
    let mut res = Vec::new();
    res.try_reserve_exact(len).map_err(|_| Diagnostic::out_of_memory(len.saturating_mul(size_of::<T>())))?;
    Ok(res)
}
