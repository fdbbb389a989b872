//! Writes become new values: the functionalisation of PyTorch's `FunctionalTensorWrapper`.
//!
//! Every tensor of the old graph is a wrapper around a tensor of the new one. Wrappers that share a storage share an
//! [`Alias`], which keeps what was written to any of them; who reads a wrapper that is out of date first puts the writes
//! into the base, in order, and then takes the wrapper's views again.

use super::DecompositionTable;
use super::recorder::{Proxy, Recorder};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::{NodeId, Str, TensorMeta};
use tracefx_ops::{
    Args, Autocast, Builder, Cx, Infer, Op, Output, Propagation, TensorRef, Traced, Value, Vjp, bind, is_autocast,
};

/// Decomposes operators and writes into the recorder what is left, without writes.
pub(super) struct Functional<'a> {
    pub(super) recorder: Recorder,
    pub(super) table: &'a DecompositionTable,
    pub(super) shapes: Propagation<'a>,
    /// The narrow dtype, where the graph runs under autocast.
    pub(super) autocast: Option<DType>,
    /// The tensors that the module itself holds and the graph reads: their paths, nodes and values.
    pub(super) held: Vec<(Str, NodeId, Traced)>,
    /// Whether views are written as copies, such as `view_copy`.
    pub(super) are_views_copied: bool,
    /// Nodes whose value another one takes in a place where no gradient flows: what stands there keeps its gradient in
    /// PyTorch.
    pub(super) hidden_writes: Vec<NodeId>,
    wrappers: Vec<Wrapper>,
    aliases: Vec<Alias>,
    /// The calls that made views. A view of a view names the call before it, so that a chain of them is kept once.
    views: Vec<View<'a>>,
}

/// The nodes that views may be taken again by. Reading every view of a chain after a write takes all of them again, each
/// from the base, as in PyTorch.
const MAX_NODES: usize = if cfg!(test) { 10_000 } else { 1_000_000 };

/// A tensor of the old graph.
#[derive(Clone, Copy)]
struct Wrapper {
    value: Proxy,
    alias: usize,
    /// The last of the views by which the tensor looks at the base of its storage.
    view: Option<ViewRef>,
    /// How many writes the value takes part of.
    generation: usize,
}

/// A storage of the old graph.
struct Alias {
    base: Proxy,
    /// Writes that are not in the base yet: new values, and where they are.
    updates: Vec<(Proxy, Option<ViewRef>)>,
    generation: usize,
}

#[derive(Clone, Copy)]
struct ViewRef(usize);

/// A call that made a view, and which of its results it is.
struct View<'a> {
    op: &'a Op,
    args: Vec<Traced>,
    item: usize,
    /// The view that this one is of.
    before: Option<ViewRef>,
    /// Whether no gradient flows through this view or one before.
    is_detached: bool,
}

impl<'a> Functional<'a> {
    pub(super) fn new(table: &'a DecompositionTable, shapes: Propagation<'a>) -> Self {
        let (wrappers, aliases, views) = (Vec::new(), Vec::new(), Vec::new());
        Functional {
            recorder: Recorder::new(),
            table,
            shapes,
            autocast: None,
            held: Vec::new(),
            are_views_copied: false,
            hidden_writes: Vec::new(),
            wrappers,
            aliases,
            views,
        }
    }

    /// A tensor with a storage of its own.
    pub(super) fn fresh(&mut self, value: Proxy) -> TensorRef {
        self.aliases.push(Alias { base: value, updates: Vec::new(), generation: 0 });
        self.wrap(Wrapper { value, alias: self.aliases.len() - 1, view: None, generation: 0 })
    }

    /// Values of the new graph as values with storages of their own.
    pub(super) fn wrapped(&mut self, value: &Value<Proxy>) -> Traced {
        value.map(&mut |it| self.fresh(*it))
    }

    fn wrap(&mut self, wrapper: Wrapper) -> TensorRef {
        self.wrappers.push(wrapper);
        TensorRef(self.wrappers.len() - 1)
    }

    /// Whether the storage of this tensor was written to.
    pub(super) fn is_written(&self, tensor: TensorRef) -> bool {
        self.aliases[self.wrappers[tensor.0].alias].generation > 0
    }

    /// Whether two tensors look at one storage.
    pub(super) fn share_storage(&self, a: TensorRef, b: TensorRef) -> bool {
        self.wrappers[a.0].alias == self.wrappers[b.0].alias
    }

    /// The value as it is now, in the new graph.
    pub(super) fn current(&mut self, value: &Traced) -> Result<Value<Proxy>> {
        value.try_map(&mut |it| self.sync(*it))
    }

    fn sync(&mut self, tensor: TensorRef) -> Result<Proxy> {
        let Wrapper { value, alias, view, generation } = self.wrappers[tensor.0];
        if generation == self.aliases[alias].generation {
            return Ok(value);
        }
        for (value, view) in std::mem::take(&mut self.aliases[alias].updates) {
            self.aliases[alias].base = self.updated(self.aliases[alias].base, value, view)?;
        }
        let mut value = self.aliases[alias].base;
        for view in self.chain(view) {
            value = self.replay(value, view)?;
        }
        let generation = self.aliases[alias].generation;
        let wrapper = &mut self.wrappers[tensor.0];
        (wrapper.value, wrapper.generation) = (value, generation);
        Ok(value)
    }

    /// The views from the base to this one.
    fn chain(&self, last: Option<ViewRef>) -> Vec<ViewRef> {
        let mut chain: Vec<ViewRef> = std::iter::successors(last, |it| self.views[it.0].before).collect();
        chain.reverse();
        chain
    }

    /// The base with new values in the place where this view looks.
    fn updated(&mut self, base: Proxy, value: Proxy, view: Option<ViewRef>) -> Result<Proxy> {
        let chain = self.chain(view);
        let mut bases = vec![base];
        for &view in chain.iter().rev().skip(1).rev() {
            let next = self.replay(bases[bases.len() - 1], view)?;
            bases.push(next);
        }
        let mut value = value;
        for (&view, base) in chain.iter().zip(bases).rev() {
            let View { op, item, .. } = self.views[view.0];
            let Some(write_back) = op.def.write_back else {
                let what = format!("a write to what {} gives cannot be taken back to its argument", op.name);
                return Err(Diagnostic::new(Code::NotImplemented, what).op(&*op.name));
            };
            let (base, changed) = (self.fresh(base), self.fresh(value));
            let args = self.args(op, self.views[view.0].args_on(base));
            let whole = write_back(&mut Cx::new(self), &args, &changed.into(), item)?;
            value = self.proxy(&whole)?;
        }
        Ok(value)
    }

    /// What a view sees of a base.
    fn replay(&mut self, base: Proxy, view: ViewRef) -> Result<Proxy> {
        if self.recorder.graph_mut().len() >= MAX_NODES {
            let what = format!("views that are taken again after writes need more than {MAX_NODES} nodes");
            let help = "write to the tensor before its views are taken, or clone them";
            return Err(Diagnostic::new(Code::LimitExceeded, what).help(help));
        }
        let base = self.fresh(base);
        let View { op, item, .. } = self.views[view.0];
        let mut results = self.call_bound(&self.args(op, self.views[view.0].args_on(base)))?;
        match results.swap_remove(0) {
            Value::List(mut items) => self.proxy(&items.swap_remove(item)),
            single => self.proxy(&single),
        }
    }

    /// The arguments of a call, within what is known of the symbols.
    pub(super) fn args(&self, op: &'a Op, values: Vec<Traced>) -> Args<'a, TensorRef> {
        Args::within(op, values, self.shapes.symbols())
    }

    fn proxy(&mut self, value: &Traced) -> Result<Proxy> {
        match value {
            Value::Tensor(it) => self.sync(*it),
            other => Err(Diagnostic::new(Code::Internal, format!("a {} instead of a tensor", other.kind_name()))),
        }
    }

    /// Gives a tensor another value: what an operator in place does.
    pub(super) fn replace(&mut self, tensor: TensorRef, mut value: Proxy) -> Result<()> {
        let dtype = self.recorder.meta(self.wrappers[tensor.0].value).dtype;
        if self.recorder.meta(value).dtype != dtype {
            let fresh = self.fresh(value);
            let mut converted =
                self.call("aten._to_copy.default", &[fresh.into()], &[("dtype", Value::DType(dtype))])?;
            value = self.proxy(&converted.swap_remove(0))?;
        }
        let wrapper = &mut self.wrappers[tensor.0];
        let is_detached = wrapper.view.is_some_and(|it| self.views[it.0].is_detached);
        if !self.recorder.is_grad_enabled || is_detached {
            let hidden = [wrapper.value, self.aliases[wrapper.alias].base];
            self.hidden_writes.extend(hidden.map(|it| self.recorder.node(it)));
        }
        wrapper.value = value;
        let alias = &mut self.aliases[wrapper.alias];
        alias.updates.push((value, wrapper.view));
        alias.generation += 1;
        Ok(())
    }

    /// Calls an operator whose arguments are bound, with autocast where it is on.
    pub(super) fn call_bound(&mut self, args: &Args<'a, TensorRef>) -> Result<Vec<Traced>> {
        let Some(low) = self.autocast else { return self.call_as_it_is(args) };
        let mut dtypes = Vec::new();
        args.values.iter().for_each(|it| it.for_each_tensor(&mut |it| dtypes.push(self.meta(*it).dtype)));
        let autocast = tracefx_ops::autocast(args.op, low, &dtypes);
        if autocast == Autocast::Parts {
            return self.call_as_it_is(args);
        }
        self.autocast = None;
        let results = match autocast {
            Autocast::Cast(dtype) => self.casted(args, dtype).and_then(|it| self.call_as_it_is(&it)),
            Autocast::Parts | Autocast::Nothing => self.call_as_it_is(args),
        };
        self.autocast = Some(low);
        results
    }

    /// The arguments with their tensors in this dtype, those that autocast casts.
    fn casted(&mut self, args: &Args<'a, TensorRef>, dtype: DType) -> Result<Args<'a, TensorRef>> {
        let mut cast = |tensor: &TensorRef| {
            let own = self.meta(*tensor).dtype;
            if own == dtype || !is_autocast(own) {
                return Ok(*tensor);
            }
            match self.call("aten.to.dtype", &[(*tensor).into(), Value::DType(dtype)], &[])?.swap_remove(0) {
                Value::Tensor(it) => Ok(it),
                other => Err(args.unsupported(format!("a {} instead of a tensor", other.kind_name()))),
            }
        };
        let values = args.values.iter().map(|it| it.try_map(&mut cast)).collect::<Result<_>>()?;
        Ok(self.args(args.op, values))
    }

    fn call_as_it_is(&mut self, args: &Args<'a, TensorRef>) -> Result<Vec<Traced>> {
        let op = args.op;
        if op.reshapes_self() {
            return self.reshape_in_place(args);
        }
        if self.table.contains(&op.name)
            && let Some(results) = self.decomposed(args)?
        {
            return Ok(results);
        }
        if let Infer::InPlaceOf(functional) = op.def.infer {
            return self.write(args, functional);
        }
        let metas = args.values.iter().map(|it| it.try_map(&mut |it| Ok::<_, Diagnostic>(self.meta(*it).clone())));
        let outputs = self.shapes.infer(&Args::within(op, metas.collect::<Result<_>>()?, self.shapes.symbols()))?;
        let may_write = op.schema.args.iter().any(|it| it.is_mutated);
        // What it is made of writes, though all that it gives is an argument.
        if may_write && matches!(op.def.infer, Infer::Composite) {
            return self.write_all(args, &outputs);
        }
        let is_known = |it: &Output| matches!(it, Output::Same(_) | Output::Value(_));
        if !outputs.is_empty() && outputs.iter().all(is_known) {
            return outputs.iter().map(|it| self.known(args, it)).collect();
        }
        if may_write {
            return self.write_all(args, &outputs);
        }
        let proxies = args.values.iter().map(|it| self.current(it)).collect::<Result<_>>()?;
        let written = self.copy_of(op).unwrap_or(op);
        let results = self.recorder.record(&Args::within(written, proxies, self.shapes.symbols()), &outputs)?;
        if !op.may_alias() {
            return Ok(results.iter().map(|it| self.wrapped(it)).collect());
        }
        results.iter().map(|it| self.view_of(args, it)).collect()
    }

    /// The operator that copies what this one looks at, where views are written so.
    fn copy_of(&self, op: &Op) -> Option<&'a Op> {
        let schema = &op.schema;
        let name = || format!("{}.{}_copy.{}", schema.namespace, schema.name, schema.overload);
        if self.are_views_copied && op.may_alias() { self.shapes.registry().get(&name()) } else { None }
    }

    /// What the decomposition gives; nothing where it is not for these arguments, so that the operator stays whole.
    fn decomposed(&mut self, args: &Args<'a, TensorRef>) -> Result<Option<Vec<Traced>>> {
        let Some(decompose) = args.op.def.decompose else { return Ok(None) };
        let is_composite = matches!(args.op.def.infer, Infer::Composite);
        // Whole, autocast would not see what it is made of.
        let may_stay = !is_composite || args.op.def.uncomposed.is_some() && self.autocast.is_none();
        let results = match decompose(&mut Cx::new(self), args) {
            Ok(results) => results,
            Err(problem) if problem.code() == Code::NotImplemented && may_stay => return Ok(None),
            Err(problem) => return Err(problem),
        };
        // What PyTorch decomposes while it dispatches may be a view of an argument.
        if is_composite || args.op.may_alias() {
            return Ok(Some(results));
        }
        results.iter().map(|it| self.owned(it)).collect::<Result<_>>().map(Some)
    }

    /// A result that needs no call: an argument itself, or a number.
    fn known(&mut self, args: &Args<'_, TensorRef>, output: &Output) -> Result<Traced> {
        match output {
            Output::Same(arg) => Ok(args.values[*arg].clone()),
            Output::Value(value) => value.try_map(&mut |_| Err(args.unsupported("a tensor as a plain value"))),
            other => unreachable!("{other:?} is neither an argument nor a number"),
        }
    }

    /// The results of a call that made views of its first argument.
    fn view_of(&mut self, args: &Args<'a, TensorRef>, result: &Value<Proxy>) -> Result<Traced> {
        let Wrapper { alias, view: before, .. } = self.wrappers[args.tensor(0)?.0];
        let is_detached =
            before.is_some_and(|it| self.views[it.0].is_detached) || matches!(args.op.def.vjp, Some(Vjp::None));
        let mut view = |item: usize, value: Proxy| {
            self.views.push(View { op: args.op, args: args.values.clone(), item, before, is_detached });
            let view = Some(ViewRef(self.views.len() - 1));
            // As in PyTorch, a view of a storage that was written to before is taken again when it is read.
            self.wrap(Wrapper { value, alias, view, generation: 0 })
        };
        Ok(match result {
            Value::Tensor(it) => view(0, *it).into(),
            Value::List(items) => {
                let items = items.iter().enumerate().map(|(item, it)| match it {
                    Value::Tensor(it) => Ok(view(item, *it).into()),
                    other => Err(args.unsupported(format!("a {} as a view", other.kind_name()))),
                });
                Value::List(items.collect::<Result<_>>()?)
            }
            other => return Err(args.unsupported(format!("a {} as a view", other.kind_name()))),
        })
    }

    /// The same values with storages of their own.
    fn owned(&mut self, value: &Traced) -> Result<Traced> {
        let current = self.current(value)?;
        Ok(self.wrapped(&current))
    }

    /// An operator in place: the functional one, whose result the first argument becomes.
    fn write(&mut self, args: &Args<'a, TensorRef>, functional: &str) -> Result<Vec<Traced>> {
        let target = *args.tensor(0)?;
        let op = self.shapes.registry().require(functional)?;
        let n_args = op.schema.args.len().min(args.values.len());
        let mut results = self.call_bound(&self.args(op, args.values[..n_args].to_vec()))?;
        let value = self.proxy(&results.swap_remove(0))?;
        self.replace(target, value)?;
        // As in PyTorch, which looks at the result.
        self.sync(target)?;
        Ok(vec![target.into()])
    }

    /// An operator that writes to arguments and has results besides: its functional form gives what they become as
    /// further results.
    fn write_all(&mut self, args: &Args<'a, TensorRef>, outputs: &[Output]) -> Result<Vec<Traced>> {
        let schema = &args.op.schema;
        let name = format!("{}.{}_functional.{}", schema.namespace, schema.name, schema.overload);
        let Some(functional) = self.shapes.registry().get(&name) else {
            return if args.op.is_custom() {
                self.auto_functionalize(args, outputs)
            } else {
                Err(args.unsupported(format!("the operator {} has no functional form", args.op.name)))
            };
        };
        let mut results = self.call_bound(&self.args(functional, args.values.clone()))?;
        let written = results.split_off(schema.returns.len());
        let targets = schema.args.iter().zip(&args.values).filter(|(spec, _)| spec.is_mutated);
        for ((_, target), value) in targets.zip(written) {
            if let Value::Tensor(target) = target {
                let value = self.proxy(&value)?;
                self.replace(*target, value)?;
            }
        }
        Ok(results)
    }

    /// An operator such as `transpose_`: the tensor becomes a view of what it was.
    fn reshape_in_place(&mut self, args: &Args<'a, TensorRef>) -> Result<Vec<Traced>> {
        let target = *args.tensor(0)?;
        let names = |op: &Op| op.schema.args.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let packet = format!("{}.{}", args.op.schema.namespace, args.op.schema.name.trim_end_matches('_'));
        let views = self.shapes.registry().overloads(&packet)?;
        let view = views.into_iter().find(|it| names(it) == names(args.op));
        let view = view.ok_or_else(|| args.unsupported(format!("the operator {packet} has no such overload")))?;
        let mut results = self.call_bound(&self.args(view, args.values.clone()))?;
        if let Value::Tensor(it) = results.swap_remove(0) {
            self.wrappers[target.0] = self.wrappers[it.0];
        }
        Ok(vec![target.into()])
    }
}

impl View<'_> {
    fn args_on(&self, base: TensorRef) -> Vec<Traced> {
        let mut args = self.args.clone();
        args[0] = base.into();
        args
    }
}

impl Builder for Functional<'_> {
    fn call(&mut self, op: &str, args: &[Traced], kwargs: &[(&str, Traced)]) -> Result<Vec<Traced>> {
        let op = self.shapes.registry().require(op)?;
        let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (Str::from(*key), it.clone())).collect();
        self.call_bound(&self.args(op, bind(op, args, &kwargs)?)).map_err(|problem| problem.op(&*op.name))
    }

    fn meta(&self, tensor: TensorRef) -> &TensorMeta {
        self.recorder.meta(self.wrappers[tensor.0].value)
    }
}
