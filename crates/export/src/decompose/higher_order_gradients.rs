//! Gradients through `cond` and `map_impl`: a second call, of graphs that compute the gradients of what the first ones take.
//!
//! The graphs run the first ones again, from the same operands, and take the gradients of the results besides. Where a graph
//! does not use an operand, or its gradient is not asked for, they give zeros, so that all branches give the same.

use super::decomposer::Decomposer;
use super::functional::Functional;
use super::higher_order_call::{HigherOrderCall, Kind};
use super::no_grad::NoGrad;
use super::taped::Taped;
use super::{Gradients, finished, result_arg};
use std::collections::HashMap;
use tracefx_core::{Code, Device, Diagnostic, Layout, MemoryFormat, Result};
use tracefx_ir::{Arg, Attribute, GraphModule, Node, Opcode, Str, TensorMeta, Val};
use tracefx_ops::{Builder, TensorRef, Traced, Value};
use tracefx_sym::SymInt;

impl Taped<'_, '_> {
    /// Goes back from these tensors with their gradients, and gives those of all tensors that they depend on.
    pub(super) fn pull_back(&mut self, from: &[(TensorRef, TensorRef)]) -> Result<Gradients> {
        let Taped { tape, module, calls, .. } = self;
        let gradients = tape.pull_back_with(from, &mut |functional, number, grads| {
            calls[number].pull_back(functional, module, grads)
        })?;
        Ok(gradients.into_iter().collect())
    }
}

impl<'f> HigherOrderCall<'f> {
    /// The gradients of the operands, from those of the results; the graphs that compute them go into the module.
    pub(super) fn pull_back(
        &self,
        functional: &mut Functional<'_>,
        module: &mut GraphModule,
        grads: &[Traced],
    ) -> Result<Vec<Traced>> {
        self.written(functional, module, grads).map_err(|problem| problem.node(&*self.name).op(&*self.target))
    }

    fn written(
        &self,
        functional: &mut Functional<'_>,
        module: &mut GraphModule,
        grads: &[Traced],
    ) -> Result<Vec<Traced>> {
        let tangents = self.tangents(functional, grads)?;
        let mut given = Vec::new();
        for tangent in &tangents {
            let arg = result_arg(functional, tangent)?;
            let name = arg.as_node().map_or_else(|| "grad".into(), |it| functional.recorder.name(it));
            given.push((name, arg));
        }
        let names: Vec<Str> = given.iter().map(|(name, _)| name.clone()).collect();
        let metas: Vec<TensorMeta> = tangents.iter().filter_map(|it| self.slice_of(functional, it)).collect();
        let mut bodies = self.bodies(functional, &names, &metas, false)?;
        if bodies.iter().any(|it| known(it) != known(&bodies[0])) {
            bodies = self.bodies(functional, &names, &metas, true)?;
        }
        let vals = self.stacked(functional, known(&bodies[0]));
        let number = self.free_number(module);
        let mut graphs = Vec::new();
        for ((stem, _, _), body) in self.graphs.iter().zip(bodies) {
            let path = Str::from(format!("{stem}{number}"));
            module.attributes.insert(path.clone(), Attribute::Module(Box::new(body)));
            graphs.push(Arg::Node(functional.recorder.get_attr(&path)));
        }
        let tangents: Vec<Arg> = given.into_iter().map(|(_, it)| it).collect();
        let operands = self.operands.iter().map(|it| result_arg(functional, it)).collect::<Result<Vec<_>>>()?;
        let args = match &self.kind {
            Kind::Cond { predicate } => {
                let predicate = result_arg(functional, predicate)?;
                [vec![predicate], graphs, vec![Arg::Tuple([operands, tangents].concat())]].concat()
            }
            Kind::Map { n_mapped } => {
                let (xs, others) = operands.split_at(*n_mapped);
                [graphs, vec![Arg::List([xs, &tangents].concat()), Arg::List(others.to_vec())]].concat()
            }
        };
        let val = Val::Seq { items: vals, is_tuple: true };
        let (_, value) = functional.recorder.copy(&self.target, args, Vec::new(), Some(val))?;
        let Value::List(found) = functional.wrapped(&value) else {
            return Err(Diagnostic::new(Code::Internal, "control flow gives a list"));
        };
        let n_wanted = self.operands.iter().filter_map(tensor_of).count();
        if found.len() != n_wanted {
            let what = format!("{} gradients for {n_wanted} tensors", found.len());
            return Err(Diagnostic::new(Code::Internal, what));
        }
        let mut found = found.into_iter();
        let gradient = |(operand, is_wanted): (&Traced, &bool)| match operand {
            Value::Tensor(_) => found.next().filter(|_| *is_wanted).unwrap_or(Value::None),
            _ => Value::None,
        };
        Ok(self.operands.iter().zip(&self.is_wanted).map(gradient).collect())
    }

    /// The gradients of the results that are floats, zeros where nothing depends on one.
    fn tangents(&self, functional: &mut Functional<'_>, grads: &[Traced]) -> Result<Vec<Traced>> {
        let mut tangents = Vec::new();
        for (result, grad) in self.results.iter().zip(grads) {
            let Value::Tensor(tensor) = result else { continue };
            let meta = functional.meta(*tensor).clone();
            if !is_differentiable(&meta) {
                continue;
            }
            tangents.push(match grad {
                Value::Tensor(_) => grad.clone(),
                _ => {
                    let sizes = Value::List(meta.sizes.iter().cloned().map(Value::Int).collect());
                    let kwargs = [
                        ("dtype", Value::DType(meta.dtype)),
                        ("layout", Value::Layout(Layout::Strided)),
                        ("device", Value::Device(Device::cpu())),
                        ("pin_memory", Value::Bool(false)),
                    ];
                    functional.call("aten.zeros.default", &[sizes], &kwargs)?.swap_remove(0)
                }
            });
        }
        Ok(tangents)
    }

    /// What a graph gets of a tensor.
    fn slice_of(&self, functional: &Functional<'_>, value: &Traced) -> Option<TensorMeta> {
        let Value::Tensor(tensor) = value else { return None };
        let mut meta = functional.meta(*tensor).clone();
        if let Kind::Map { .. } = self.kind {
            meta.sizes.remove(0);
            meta.strides.remove(0);
        }
        Some(TensorMeta { requires_grad: false, ..meta })
    }

    /// What the call gives, where its graphs give this.
    fn stacked(&self, functional: &Functional<'_>, vals: Vec<Val>) -> Vec<Val> {
        let Kind::Map { .. } = self.kind else { return vals };
        let n = match self.operands.first() {
            Some(Value::Tensor(it)) => functional.meta(*it).sizes[0].clone(),
            _ => SymInt::ONE,
        };
        let stack = |it: Val| match it {
            Val::Tensor(meta) => {
                let sizes = [n.clone()].into_iter().chain(meta.sizes).collect();
                Val::Tensor(TensorMeta::contiguous(meta.dtype, sizes))
            }
            other => other,
        };
        vals.into_iter().map(stack).collect()
    }

    /// The first number under which the module has none of the graphs.
    fn free_number(&self, module: &GraphModule) -> usize {
        let is_free = |number: &usize| {
            self.graphs.iter().all(|(stem, _, _)| !module.attributes.contains_key(&*format!("{stem}{number}")))
        };
        (0..).find(is_free).expect("there are more numbers than graphs")
    }

    fn bodies(
        &self,
        functional: &Functional<'_>,
        names: &[Str],
        tangents: &[TensorMeta],
        is_contiguous: bool,
    ) -> Result<Vec<GraphModule>> {
        let body = |(_, graph, no_grad): &(&'static str, &'f GraphModule, &'f NoGrad)| {
            self.body(functional, graph, no_grad, names.iter().zip(tangents), is_contiguous)
        };
        self.graphs.iter().map(body).collect()
    }

    /// The graph of the gradients of what a graph takes.
    fn body<'t>(
        &self,
        outer: &Functional<'_>,
        graph: &'f GraphModule,
        no_grad: &'f NoGrad,
        tangents: impl Iterator<Item = (&'t Str, &'t TensorMeta)>,
        is_contiguous: bool,
    ) -> Result<GraphModule> {
        let mut taped = Taped::new(graph, no_grad, Functional::new(outer.table, outer.shapes));
        let placeholders: Vec<&Node> =
            graph.graph.nodes().map(|it| graph.graph.node(it)).filter(|it| it.op() == Opcode::Placeholder).collect();
        let n_first = match self.kind {
            Kind::Cond { .. } => placeholders.len(),
            Kind::Map { n_mapped } => n_mapped.min(placeholders.len()),
        };
        let functional = taped.tape.builder();
        let (first, others) = placeholders.split_at(n_first);
        let read = |functional: &mut Functional<'_>, nodes: &[&Node]| {
            let inputs = nodes.iter().map(|it| Decomposer::new(functional).input(it).map(|(_, it)| it));
            inputs.collect::<Result<Vec<Traced>>>()
        };
        let mut inputs = read(functional, first)?;
        let mut grads = Vec::new();
        for (name, meta) in tangents {
            let val = Val::Tensor(meta.clone());
            // Inputs of the first graph keep their names.
            let is_taken = placeholders.iter().any(|it| it.name() == name);
            let name = if is_taken { format!("{name}_grad") } else { name.to_string() };
            let node = functional.recorder.input(&name, val.clone())?;
            let value = functional.recorder.value_of(node, &val);
            grads.push(functional.wrapped(&value));
        }
        inputs.extend(read(functional, others)?);
        for (input, _) in inputs.iter().zip(&self.is_wanted).filter(|(_, is_wanted)| **is_wanted) {
            if let Value::Tensor(it) = input {
                taped.tape.watch(*it);
            }
        }
        let results = taped.run(&inputs)?;
        taped.tape.builder().recorder.follow_none();
        let mut from = Vec::new();
        let tensors = results.iter().filter_map(tensor_of);
        let floats: Vec<TensorRef> = tensors.filter(|it| is_differentiable(taped.tape.meta(*it))).collect();
        for (result, grad) in floats.into_iter().zip(&grads) {
            from.extend(tensor_of(grad).map(|grad| (result, grad)));
        }
        let gradients = taped.pull_back(&from)?;
        let (module, mut functional) = (taped.module, taped.tape.into_builder());
        let mut given: Vec<TensorRef> = Vec::new();
        for input in inputs.iter().filter_map(tensor_of) {
            given.push(match gradients.get(&input) {
                Some(gradient) => *gradient,
                None => called(&mut functional, "aten.zeros_like.default", input, &[])?,
            });
        }
        // Graphs give nothing that they take, and nothing twice.
        let mut taken: Vec<TensorRef> = inputs.iter().chain(&grads).filter_map(tensor_of).collect();
        for it in &mut given {
            if taken.iter().any(|other| functional.share_storage(*other, *it)) {
                *it = called(&mut functional, "aten.clone.default", *it, &[])?;
            }
            let meta = functional.meta(*it);
            if is_contiguous && meta.strides != TensorMeta::contiguous(meta.dtype, meta.sizes.clone()).strides {
                let format = [("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous))];
                *it = called(&mut functional, "aten.clone.default", *it, &format)?;
            }
            taken.push(*it);
        }
        let given = given.iter().map(|it| result_arg(&mut functional, &(*it).into())).collect::<Result<_>>()?;
        let mut module = finished(functional, module, given, &HashMap::new())?;
        as_list(&mut module)?;
        keep_called(&mut module);
        Ok(module)
    }
}

/// PyTorch's graphs of gradients give a list.
fn as_list(module: &mut GraphModule) -> Result<()> {
    let graph = &mut module.graph;
    if let Some(output) = graph.output_node()
        && let Some(Arg::Tuple(items)) = graph.node(output).args().first().cloned()
    {
        let known = items.iter().map(|it| it.as_node().and_then(|it| graph.node(it).meta.val.clone()));
        let known = known.map(|it| it.unwrap_or(Val::None)).collect();
        graph.set_args(output, vec![Arg::List(items)])?;
        graph.meta_mut(output).val = Some(Val::Seq { items: known, is_tuple: false });
    }
    Ok(())
}

/// Takes out the graphs that nothing calls.
fn keep_called(module: &mut GraphModule) {
    let graph = &module.graph;
    let read =
        |name: &Str| graph.nodes().any(|it| graph.node(it).op() == Opcode::GetAttr && graph.node(it).target() == name);
    let kept: Vec<Str> = module.attributes.keys().filter(|it| read(it)).cloned().collect();
    module.attributes.retain(|name, it| !matches!(it, Attribute::Module(_)) || kept.contains(name));
}

/// What is known of what a graph gives.
fn known(module: &GraphModule) -> Vec<Val> {
    let output = module.graph.output_node().and_then(|it| module.graph.node(it).meta.val.as_ref());
    match output {
        Some(Val::Seq { items, .. }) => items.iter().map(without_place).collect(),
        _ => Vec::new(),
    }
}

fn without_place(val: &Val) -> Val {
    match val {
        Val::Tensor(meta) => {
            let storage_offset = SymInt::ZERO;
            Val::Tensor(TensorMeta { storage_offset, requires_grad: false, ..meta.clone() })
        }
        other => other.clone(),
    }
}

fn called(
    functional: &mut Functional<'_>,
    op: &str,
    tensor: TensorRef,
    kwargs: &[(&str, Traced)],
) -> Result<TensorRef> {
    match functional.call(op, &[tensor.into()], kwargs)?.swap_remove(0) {
        Value::Tensor(it) => Ok(it),
        other => Err(Diagnostic::new(Code::Internal, format!("a {} instead of a tensor", other.kind_name()))),
    }
}

fn tensor_of(value: &Traced) -> Option<TensorRef> {
    if let Value::Tensor(it) = value { Some(*it) } else { None }
}

fn is_differentiable(meta: &TensorMeta) -> bool {
    meta.dtype.is_float() || meta.dtype.is_complex()
}
