//! The sizes of one export: what the user said of them, what the module made of them, and whether that agrees.

mod dynamic;
mod finish;
mod fixes;
mod names;
mod print;
mod ranges;
mod solve;
mod spec;

pub use dynamic::{DynamicShapes, ShapeSpec};
pub use finish::ShapeResult;
use names::Names;
pub use spec::{Dim, DimSpec};
use std::collections::BTreeMap;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Str, TensorMeta};
pub use tracefx_ops::DeferredAssertion;
use tracefx_ops::{Symbols, Value};
use tracefx_sym::{Expr, ShapeEnv, SymBool, SymInt, Symbol, Value as Known, ValueRange};

/// An input of a module that is exported.
#[derive(Clone, Debug)]
pub struct SessionInput {
    /// How PyTorch names where it comes from: `L['x']`, `L['x'][0]`.
    pub source: String,
    /// What is known of the example, all sizes of which are numbers.
    pub value: Value<TensorMeta>,
    /// What the user said of each dimension, or of a number itself. What is missing is static.
    pub dims: Vec<DimSpec>,
}

/// The sizes of one export: PyTorch's `ShapeEnv` together with what the user said of the inputs.
///
/// Dynamic sizes are symbols. Operators are asked for shapes with [`ShapeSession::symbols`]; what they, and the code of the
/// user ([`ShapeSession::decide`]), need to hold is looked up in the examples and becomes a guard.
/// [`ShapeSession::finish`] compares the guards with what was said.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_export::{Dim, DimSpec, SessionInput, ShapeSession};
/// use tracefx_ir::TensorMeta;
/// use tracefx_ops::{Propagation, Value, registry};
/// use tracefx_sym::ValueRange;
///
/// let input = |name: &str, dim: &str| SessionInput {
///     source: format!("L['{name}']"),
///     value: Value::Tensor(TensorMeta::contiguous(DType::Float32, vec![5.into()])),
///     dims: vec![DimSpec::Named(Dim::new(dim, ValueRange::at_least(0)))],
/// };
/// let mut shapes = ShapeSession::new(vec![input("x", "a"), input("y", "b")]).unwrap();
/// Propagation::new(registry(), shapes.symbols()).call("aten.add.Tensor", shapes.values(), &[]).unwrap();
/// let refused = shapes.finish().unwrap_err();
/// assert!(refused.message().ends_with("Suggested fixes:\n  b = a"));
/// ```
#[derive(Debug)]
pub struct ShapeSession {
    inputs: Vec<SessionInput>,
    values: Vec<Value<TensorMeta>>,
    dimensions: Vec<Dimension>,
    /// The values of symbols for the examples.
    hints: BTreeMap<Symbol, i64>,
    /// The symbols of dimensions of which others are derived, and which no input has.
    roots: BTreeMap<String, SymInt>,
    symbols: Symbols,
}

/// A size of an input, or an input that is an int.
#[derive(Clone, Debug)]
struct Dimension {
    input: usize,
    /// Which size; nothing for an int.
    dim: Option<usize>,
    source: String,
    spec: DimSpec,
    value: i64,
    /// The symbol or number that it began as.
    expr: SymInt,
}

impl ShapeSession {
    /// A session with these inputs, in PyTorch's order: that of the arguments and of the leaves in them.
    ///
    /// # Errors
    /// `ConstraintViolation` where an example is not what is said of it.
    pub fn new(inputs: Vec<SessionInput>) -> Result<Self> {
        let (mut names, mut env, mut hints) = (Names::default(), ShapeEnv::new(), BTreeMap::new());
        let (mut values, mut dimensions) = (Vec::new(), Vec::new());
        for (at, input) in inputs.iter().enumerate() {
            let mut make = |dim: Option<usize>, value: &SymInt| {
                let source = dim.map_or(input.source.clone(), |dim| format!("{}.size()[{dim}]", input.source));
                let spec = input.dims.get(dim.unwrap_or(0)).cloned().unwrap_or_default();
                let value = value.to_int()?;
                let expr: SymInt = match symbol_of(&source, &spec, value, dim.is_some(), &mut names, &mut env)? {
                    Some(symbol) => {
                        hints.insert(symbol.clone(), value);
                        symbol.into()
                    }
                    None => value.into(),
                };
                dimensions.push(Dimension { input: at, dim, source, spec, value, expr: expr.clone() });
                Ok::<SymInt, Diagnostic>(expr)
            };
            values.push(match &input.value {
                Value::Tensor(meta) => {
                    let sizes = meta.sizes.iter().enumerate().map(|(dim, it)| make(Some(dim), it));
                    let sizes: Vec<SymInt> = sizes.collect::<Result<_>>()?;
                    let strides = strides_of(meta, &sizes);
                    Value::Tensor(TensorMeta { sizes, strides, ..meta.clone() })
                }
                Value::Int(it) => Value::Int(make(None, it)?),
                other => other.clone(),
            });
        }
        let symbols = Symbols::exporting(env, hints.clone());
        let roots = BTreeMap::new();
        let mut res = ShapeSession { inputs, values, dimensions, hints, roots, symbols };
        res.add_roots(&mut names)?;
        Ok(res)
    }

    /// Makes symbols for the roots of derived dimensions that no input has.
    fn add_roots(&mut self, names: &mut Names) -> Result<()> {
        let mut seen: Vec<&str> = Vec::new();
        let mut missing: Vec<(Dim, i64)> = Vec::new();
        for it in &self.dimensions {
            let DimSpec::Named(dim) = &it.spec else { continue };
            if !dim.is_derived() {
                seen.push(&dim.name);
            } else if !seen.contains(&&*dim.name) && !missing.iter().any(|(other, _)| other.name == dim.name) {
                let root = dim.root_value(it.value).ok_or_else(|| {
                    let (at, value, form) = (it.dim.unwrap_or(0), it.value, dim.display_name());
                    violation(format!(
                        "Expected shape[{at}] = {value} of input Tensor to be of the form {form}, where {} is an integer",
                        dim.name
                    ))
                })?;
                missing.push((dim.clone(), root));
            }
        }
        missing.retain(|(dim, _)| !seen.contains(&&*dim.name));
        for (dim, value) in missing {
            let root = if matches!(value, 0 | 1) {
                SymInt::from(value)
            } else {
                let symbol = Symbol::size(names.name(&dim.name));
                self.symbols.add_input(&symbol, value, dim.range.intersect(&ValueRange::at_least(2)));
                self.hints.insert(symbol.clone(), value);
                symbol.into()
            };
            self.roots.insert(dim.name, root);
        }
        Ok(())
    }

    /// What is known of each input, with symbols in the place of dynamic sizes.
    pub fn values(&self) -> &[Value<TensorMeta>] {
        &self.values
    }

    /// The symbols, for shape rules.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Whether a condition holds: by what is known of its symbols, else for the examples, which makes a guard.
    ///
    /// # Errors
    /// `DataDependent` where only the data can tell.
    pub fn decide(&self, condition: &SymBool) -> Result<bool> {
        self.symbols.decide(condition).ok_or_else(|| {
            let undecided = self.symbols.take_undecided();
            self.symbols.data_dependent(undecided.as_ref().unwrap_or(condition))
        })
    }

    /// What an expression is for the examples; nothing where only the data can tell.
    pub fn hint(&self, expr: &Expr) -> Option<Known> {
        self.symbols.hint(expr)
    }

    /// Takes a condition to hold: `torch._check`. One on sizes of inputs is a guard; any other is asserted by the program.
    ///
    /// # Errors
    /// `AssertionFailed` where it does not hold.
    pub fn check(&self, condition: &SymBool, message: Option<Str>) -> Result<()> {
        if self.symbols.require(condition, message.clone()) {
            return Ok(());
        }
        let what = message.as_deref().unwrap_or("Expected cond to be True, but got False");
        Err(Diagnostic::new(Code::AssertionFailed, what).note(format!("{condition} does not hold")))
    }
}

/// The symbol for a size; nothing where it stays a number.
fn symbol_of(
    source: &str,
    spec: &DimSpec,
    value: i64,
    is_size: bool,
    names: &mut Names,
    env: &mut ShapeEnv,
) -> Result<Option<Symbol>> {
    let range = match spec {
        DimSpec::Static => return Ok(None),
        DimSpec::Size(size) if *size == value => return Ok(None),
        DimSpec::Size(size) => {
            return Err(violation(format!(
                "Static shape constraint of {size} does not match input size of {value}, for {source}"
            )));
        }
        DimSpec::Auto(_) | DimSpec::Dynamic(_) => ValueRange::UNBOUNDED,
        DimSpec::Named(dim) => dim.own_range()?,
    };
    if !is_size {
        let symbol = Symbol::integer(names.name(source));
        drop(env.constrain(&symbol, range));
        return Ok(Some(symbol));
    }
    if matches!(value, 0 | 1) {
        return Ok(None);
    }
    let symbol = Symbol::size(names.name(source));
    let range = range.intersect(&ValueRange::at_least(2));
    if !range.contains(value) || env.constrain(&symbol, range).is_err() {
        return Err(violation(format!("{value} not in range {range}")));
    }
    Ok(Some(symbol))
}

/// The strides of a tensor whose sizes are these: what is a product of sizes for the example is that product.
fn strides_of(meta: &TensorMeta, sizes: &[SymInt]) -> Vec<SymInt> {
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    order.sort_by_key(|dim| meta.strides[*dim].as_int());
    let mut known: BTreeMap<i64, SymInt> = BTreeMap::new();
    let mut strides = meta.strides.clone();
    for dim in order {
        let Some(stride) = meta.strides[dim].as_int() else { continue };
        if let Some(expr) = known.get(&stride).filter(|_| stride > 1) {
            strides[dim] = expr.clone();
        }
        if let Some(size) = meta.sizes[dim].as_int() {
            known.entry(stride.saturating_mul(size)).or_insert(&strides[dim] * &sizes[dim]);
        }
    }
    strides
}

fn violation(what: String) -> Diagnostic {
    Diagnostic::new(Code::ConstraintViolation, what)
}
