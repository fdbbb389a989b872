//! Reverse-mode differentiation: which calls are kept, in which order their gradients are taken, and how several are added.
//! The formula of each operator is its row's.

use super::expr::Memo;
use super::{Backward, Expr, Vjp};
use crate::{Args, Builder, Cx, Op, Registry, Symbols, TensorRef, Traced, Value, bind};
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{Str, TensorMeta};
use tracefx_sym::SymInt;

/// A builder that remembers the calls through which gradients flow, so that they can be gone through backwards.
///
/// It works on any [`Builder`]: over one that computes at once the gradients are tensors, over one that makes a graph they
/// are nodes of it, and over another tape they can be differentiated again.
pub struct Tape<'r, B> {
    registry: &'r Registry,
    symbols: Option<&'r Symbols>,
    builder: B,
    records: Vec<Record<'r>>,
    /// The tensors that depend on what is watched.
    tracked: FxHashSet<TensorRef>,
}

struct Record<'r> {
    call: Call<'r>,
    results: Vec<Traced>,
}

enum Call<'r> {
    Op(Args<'r, TensorRef>),
    /// A call that is no operator: its number, and its arguments.
    Other(usize, Vec<Traced>),
}

/// Gives the gradients of the arguments of a call that is no operator, by its number, from those of its results.
pub type PullBack<'f, B> = dyn FnMut(&mut B, usize, &[Traced]) -> Result<Vec<Traced>> + 'f;

/// The gradients that have come in so far.
type Gradients = FxHashMap<TensorRef, TensorRef>;

impl<'r, B: Builder> Tape<'r, B> {
    /// An empty tape.
    pub fn new(registry: &'r Registry, builder: B) -> Self {
        Tape { registry, symbols: None, builder, records: Vec::new(), tracked: FxHashSet::default() }
    }

    /// An empty tape for calls without data, where this is known of the symbols in their sizes.
    pub fn within(registry: &'r Registry, builder: B, symbols: &'r Symbols) -> Self {
        Tape { symbols: Some(symbols), ..Tape::new(registry, builder) }
    }

    /// The builder that makes the calls.
    pub fn builder(&mut self) -> &mut B {
        &mut self.builder
    }

    /// The builder alone, once nothing more is to be gone through backwards.
    pub fn into_builder(self) -> B {
        self.builder
    }

    /// Says that the gradient of a tensor will be asked for. A tensor that is neither float nor complex has none.
    pub fn watch(&mut self, tensor: TensorRef) {
        if is_differentiable(self.builder.meta(tensor).dtype) {
            self.tracked.insert(tensor);
        }
    }

    /// Goes back through the calls from these tensors with their gradients, and gives the gradients of all tensors that
    /// are watched and that they depend on.
    ///
    /// # Errors
    /// `NotImplemented`, naming the operator, where the gradient of a call is missing; else what the calls refuse that
    /// compute the gradients.
    pub fn pull_back(&mut self, from: &[(TensorRef, TensorRef)]) -> Result<FxHashMap<TensorRef, TensorRef>> {
        self.pull_back_with(from, &mut |_, _, _| {
            Err(Diagnostic::new(Code::Internal, "nobody says what the gradients of a recorded call are"))
        })
    }

    /// As [`Tape::pull_back`], where `others` gives the gradients of what [`Tape::record_other`] remembers.
    ///
    /// # Errors
    /// As there, and what `others` refuses.
    pub fn pull_back_with(
        &mut self,
        from: &[(TensorRef, TensorRef)],
        others: &mut PullBack<'_, B>,
    ) -> Result<FxHashMap<TensorRef, TensorRef>> {
        let mut gradients = Gradients::default();
        let mut cx = Cx::new(&mut self.builder);
        for &(tensor, grad) in from {
            if self.tracked.contains(&tensor) {
                add(&mut cx, &mut gradients, tensor, grad)?;
            }
        }
        for record in self.records.iter().rev() {
            let mut is_any = false;
            // Taken out: a result may be an argument itself, and then its gradient is counted once.
            let grads = record.results.iter().map(|it| incoming(it, &mut gradients, &mut is_any)).collect::<Vec<_>>();
            if !is_any {
                continue;
            }
            let tracked = |it| self.tracked.contains(&it);
            let (args, outgoing) = match &record.call {
                Call::Op(args) => {
                    let outgoing = differentiate(&mut self.builder, args, &record.results, &grads, &tracked)?;
                    (&args.values, outgoing)
                }
                Call::Other(number, args) => {
                    let found = others(&mut self.builder, *number, &grads)?;
                    let mut cx = Cx::new(&mut self.builder);
                    let fitted = args.iter().zip(found).map(|(arg, grad)| match (arg, grad) {
                        (Value::Tensor(tensor), Value::Tensor(grad)) if tracked(*tensor) => {
                            fit(&mut cx, None, *tensor, grad).map(Value::Tensor)
                        }
                        _ => Ok(Value::None),
                    });
                    (args, fitted.collect::<Result<_>>()?)
                }
            };
            let mut cx = Cx::new(&mut self.builder);
            for (arg, grad) in args.iter().zip(&outgoing) {
                add_all(&mut cx, &mut gradients, arg, grad)?;
            }
        }
        Ok(gradients)
    }

    /// Remembers a call that is no operator, which the builder was told of: gradients flow from its results to its arguments.
    /// Gives its number, by which [`Tape::pull_back_with`] asks for these: it is the count of those before it.
    pub fn record_other(&mut self, args: Vec<Traced>, results: Vec<Traced>) -> usize {
        let number = self.records.iter().filter(|it| matches!(it.call, Call::Other(..))).count();
        for result in &results {
            result.for_each_tensor(&mut |it| self.watch(*it));
        }
        self.records.push(Record { call: Call::Other(number, args), results });
        number
    }

    /// Whether gradients flow from a value to anything that is watched.
    pub fn is_tracked(&self, value: &Traced) -> bool {
        match value {
            Value::Tensor(it) => self.tracked.contains(it),
            Value::List(items) => items.iter().any(|it| self.is_tracked(it)),
            _ => false,
        }
    }
}

impl<B: Builder> Builder for Tape<'_, B> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let given = args.iter().chain(kwargs.iter().map(|(_, it)| it));
        let op = self.registry.require(op)?;
        if matches!(op.def.vjp, Some(Vjp::None)) || !{ given }.any(|it| self.is_tracked(it)) {
            return self.builder.call(&op.name, args, kwargs);
        }
        if op.schema.args.iter().any(|it| it.is_mutated) {
            let what = format!("the gradient of {}, which writes to an argument, is not implemented", op.name);
            return Err(Diagnostic::new(Code::NotImplemented, what).op(&*op.name));
        }
        let named: Vec<_> = kwargs.iter().map(|(key, it)| (Str::from(*key), it.clone())).collect();
        let values = bind(op, args, &named)?;
        let bound = match self.symbols {
            Some(symbols) => Args::within(op, values, symbols),
            None => Args::new(op, values),
        };
        if let (None, Some(decompose)) = (op.def.vjp, op.def.decompose) {
            return decompose(&mut Cx::new(self), &bound);
        }
        let results = self.builder.call(&op.name, args, kwargs)?;
        let n_results = match op.def.vjp {
            Some(Vjp::OfFirst(n, _)) => n,
            Some(Vjp::Of(_) | Vjp::None) | None => results.len(),
        };
        for result in &results[..n_results] {
            result.for_each_tensor(&mut |it| self.watch(*it));
        }
        self.records.push(Record { call: Call::Op(bound), results: results.clone() });
        Ok(results)
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        self.builder.meta(tensor)
    }
}

/// The gradients of the arguments of one call that `needs` asks for.
fn differentiate(
    builder: &mut dyn Builder,
    args: &Args<'_, TensorRef>,
    results: &[Traced],
    grads: &[Traced],
    needs: &dyn Fn(TensorRef) -> bool,
) -> Result<Vec<Traced>> {
    let Some(Vjp::Of(formulas) | Vjp::OfFirst(_, formulas)) = args.op.def.vjp else {
        return Err(args.unsupported(format!("the gradient of {} is not implemented", args.op.name)));
    };
    let formulas = formulas(&Backward::new(builder, args, results, grads, needs))?;
    let mut cx = Cx::new(builder);
    let mut memo = Memo::default();
    args.values.iter().zip(&formulas).map(|(arg, it)| fitted(&mut cx, args.op, arg, it, &mut memo, needs)).collect()
}

/// The gradient as the argument is: nothing where none is needed, else of its sizes and dtype.
fn fitted(
    cx: &mut Cx<'_>,
    op: &Op,
    arg: &Traced,
    formula: &Expr,
    memo: &mut Memo,
    needs: &dyn Fn(TensorRef) -> bool,
) -> Result<Traced> {
    match arg {
        Value::Tensor(tensor) if needs(*tensor) => match formula.eval(cx, memo)? {
            Value::Tensor(grad) => Ok(Value::Tensor(fit(cx, Some(op), *tensor, grad)?)),
            Value::None => Ok(Value::None),
            other => {
                Err(Diagnostic::new(Code::Internal, format!("a {} as a gradient", other.kind_name())).op(&*op.name))
            }
        },
        Value::List(items) => {
            let none = Expr::none();
            let formulas = formula.items();
            let one = |(index, it)| fitted(cx, op, it, formulas.get(index).unwrap_or(&none), memo, needs);
            Ok(Value::List(items.iter().enumerate().map(one).collect::<Result<_>>()?))
        }
        _ => Ok(Value::None),
    }
}

/// The gradient summed over the dimensions along which the tensor was broadcast, real where the tensor is, and of its
/// dtype.
fn fit(cx: &mut Cx<'_>, op: Option<&Op>, tensor: TensorRef, grad: TensorRef) -> Result<TensorRef> {
    let named = |problem: Diagnostic| match op {
        Some(op) => problem.op(&*op.name),
        None => problem,
    };
    let (dtype, sizes) = (cx.meta(tensor).dtype, cx.meta(tensor).sizes.clone());
    let mut res: Traced = grad.into();
    if cx.meta(grad).dtype.is_complex() && !dtype.is_complex() {
        res = cx.aten("real", [&res])?;
    }
    let given = cx.meta(grad).sizes.clone();
    if given != sizes {
        let bad = || {
            let what = format!("a gradient of sizes {given:?} for a tensor of sizes {sizes:?}");
            let code = if op.is_some_and(Op::is_custom) { Code::ShapeMismatch } else { Code::Internal };
            named(Diagnostic::new(code, what))
        };
        let n_new = given.len().checked_sub(sizes.len()).ok_or_else(bad)?;
        let is_summed = |dim: usize| dim < n_new || sizes[dim - n_new] == SymInt::ONE && given[dim] != SymInt::ONE;
        // Sizes that only the data tells are taken to be the same, as the call that gave the result takes them.
        let differ = |a: &SymInt, b: &SymInt| (a - b).as_int().is_some_and(|it| it != 0);
        if (n_new..given.len()).any(|dim| !is_summed(dim) && differ(&sizes[dim - n_new], &given[dim])) {
            return Err(bad());
        }
        let dims: Vec<i64> = (0..given.len()).filter(|it| is_summed(*it)).map(|it| it as i64).collect();
        if !dims.is_empty() {
            res = cx.aten("sum.dim_IntList", [&res, &Value::ints(&dims), &Value::Bool(true)])?;
        }
        if n_new > 0 {
            let sizes = sizes.iter().cloned().map(Value::Int).collect();
            res = cx.aten("view", [&res, &Value::List(sizes)])?;
        }
    }
    if let Value::Tensor(it) = res
        && cx.meta(it).dtype != dtype
    {
        res = cx.aten_with("_to_copy", [&res], &[("dtype", Value::DType(dtype))])?;
    }
    match res {
        Value::Tensor(it) => Ok(it),
        other => Err(named(Diagnostic::new(Code::Internal, format!("a {} as a gradient", other.kind_name())))),
    }
}

/// The gradients of a result, taken out of those that have come in.
fn incoming(result: &Traced, gradients: &mut Gradients, is_any: &mut bool) -> Traced {
    match result {
        Value::Tensor(it) => match gradients.remove(it) {
            Some(grad) => {
                *is_any = true;
                Value::Tensor(grad)
            }
            None => Value::None,
        },
        Value::List(items) => Value::List(items.iter().map(|it| incoming(it, gradients, is_any)).collect()),
        _ => Value::None,
    }
}

fn add_all(cx: &mut Cx<'_>, gradients: &mut Gradients, arg: &Traced, grad: &Traced) -> Result<()> {
    match (arg, grad) {
        (Value::Tensor(tensor), Value::Tensor(grad)) => add(cx, gradients, *tensor, *grad),
        (Value::List(args), Value::List(grads)) => {
            args.iter().zip(grads).try_for_each(|(arg, grad)| add_all(cx, gradients, arg, grad))
        }
        _ => Ok(()),
    }
}

fn add(cx: &mut Cx<'_>, gradients: &mut Gradients, tensor: TensorRef, grad: TensorRef) -> Result<()> {
    let sum = match gradients.get(&tensor) {
        None => grad,
        Some(&so_far) => match cx.aten("add.Tensor", [&so_far.into(), &grad.into()])? {
            Value::Tensor(it) => it,
            other => unreachable!("the sum of two tensors is a {}", other.kind_name()),
        },
    };
    gradients.insert(tensor, sum);
    Ok(())
}

fn is_differentiable(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}
