//! Graphs of control flow within a program that is written.

use super::{Exporter, require_grad};
use crate::decompose::recorder::{Proxy, Recorder, is_impure};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Str, TensorMeta, Val};
use tracefx_ops::{Args, Builder, Output, Registry, TensorRef, Traced, Value};
use tracefx_sym::Expr;

/// A tensor, and in which of the frames that are open it is.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) depth: usize,
    pub(super) proxy: Proxy,
}

/// A graph that is being written.
pub(super) struct Frame {
    pub(super) recorder: Recorder,
    /// The graphs that it calls.
    pub(super) graphs: Vec<(Str, Attribute)>,
    inputs: Vec<NodeId>,
    /// What it uses from around it, which became inputs too.
    captured: Vec<Captured>,
    /// The first operator that writes to an input.
    writer: Option<Str>,
}

struct Captured {
    /// What it is around the graph.
    outer: Traced,
    node: NodeId,
    proxy: Value<Proxy>,
}

/// A graph that has ended.
pub(super) struct Ended {
    frame: Frame,
    returned: Arg,
    vals: Val,
}

impl Frame {
    pub(super) fn new() -> Self {
        Frame { recorder: Recorder::new(), graphs: Vec::new(), inputs: Vec::new(), captured: Vec::new(), writer: None }
    }

    /// Adds an input for something from around the graph.
    fn capture(&mut self, outer: Traced, name: &str, val: Val) -> Result<Value<Proxy>> {
        let node = self.recorder.input(name, val.clone())?;
        let proxy = self.recorder.value_of(node, &val);
        self.captured.push(Captured { outer, node, proxy: proxy.clone() });
        Ok(proxy)
    }
}

/// The operators whose operands PyTorch writes as lists, and how many of their lists.
const LISTS: &[(&str, usize)] = &[("map_impl", 2), ("scan", 2)];

/// The operators whose graphs may write to their inputs: those that run them once and as they are.
const MAY_WRITE: &[&str] = &["wrap_with_set_grad_enabled"];

impl Exporter<'_> {
    /// Begins a graph of control flow with inputs of which this is known, and gives what stands for them. All that is called
    /// goes into it, until [`Exporter::end_graph`]. Its inputs are called as the nodes of `operands`, where these are given.
    ///
    /// # Errors
    /// `NotImplemented` for an operand that is no value of a graph.
    pub fn begin_graph(&mut self, inputs: &[Value<TensorMeta>], operands: Option<&[Traced]>) -> Result<Vec<Traced>> {
        let mut names: Vec<Str> = Vec::new();
        for at in 0..inputs.len() {
            let operand = operands.and_then(|it| it.get(at)).map(|it| self.arg(it)).transpose()?;
            let node = operand.and_then(|it| it.as_node());
            names.push(node.map_or_else(|| format!("arg{at}_1").into(), |it| self.recorder().name(it)));
        }
        let notes = self.recorder().notes.clone();
        self.frames.push(Frame::new());
        self.recorder().notes = notes;
        let mut given = Vec::new();
        for (input, name) in inputs.iter().zip(names) {
            let val = val_of(input)?;
            let node = self.recorder().input(&name, val.clone())?;
            let value = self.recorder().value_of(node, &val);
            self.frame().inputs.push(node);
            given.push(self.adopted(&value));
        }
        Ok(given)
    }

    /// Ends the graph that was begun last, which gives this. Gives what is known of that.
    ///
    /// # Errors
    /// `NotImplemented` for a result that no graph gives.
    pub fn end_graph(&mut self, result: &Traced) -> Result<Value<TensorMeta>> {
        let known = result.map(&mut |it| self.meta(*it).clone());
        let (returned, vals) = match result {
            Value::List(items) => {
                let args = items.iter().map(|it| self.arg(it)).collect::<Result<Vec<_>>>()?;
                let Value::List(known) = &known else { return Err(internal("a list stays one")) };
                let items = known.iter().map(val_of).collect::<Result<_>>()?;
                (Arg::Tuple(args), Val::Seq { items, is_tuple: true })
            }
            single => (self.arg(single)?, val_of(&known)?),
        };
        let frame = self.frames.pop().filter(|_| !self.frames.is_empty());
        let frame = frame.ok_or_else(|| internal("the graph of the program does not end"))?;
        self.ended.push(Ended { frame, returned, vals });
        Ok(known)
    }

    /// Calls an operator, by its name after `torch.ops.higher_order.`, on the graphs that have ended: each stands where an
    /// operand is `None`. What they use from around them is added to the last operand where that is a list, else behind it. Gives the results, of
    /// which this is known.
    ///
    /// # Errors
    /// `NotImplemented` for an operand that is no value of a graph.
    pub fn call_graphs(
        &mut self,
        name: &str,
        operands: &[Option<Traced>],
        results: &Value<TensorMeta>,
    ) -> Result<Traced> {
        let ended = std::mem::take(&mut self.ended);
        let writer = ended.iter().find_map(|it| it.frame.writer.clone());
        if let Some(writer) = writer.filter(|_| !MAY_WRITE.contains(&name)) {
            let what = format!("{writer} writes to an input of a graph of {name}");
            return Err(Diagnostic::new(Code::NotImplemented, what).help("write to a copy, and give it as a result"));
        }
        let mut captured: Vec<Traced> = Vec::new();
        for it in ended.iter().flat_map(|it| &it.frame.captured) {
            if !captured.contains(&it.outer) {
                captured.push(it.outer.clone());
            }
        }
        let prefixes: &[&str] = match name {
            "cond" => &["true_graph_", "false_graph_"],
            "while_loop" => &["while_loop_cond_graph_", "while_loop_body_graph_"],
            "scan" => &["scan_combine_graph_"],
            "wrap_with_set_grad_enabled" => &["submod_"],
            _ => &["body_graph_"],
        };
        let is_condition = |at: usize| name == "while_loop" && at == 0;
        let mut graphs = Vec::new();
        for (at, it) in ended.into_iter().enumerate() {
            let prefix = prefixes.get(at).copied().unwrap_or("body_graph_");
            let module = self.finished(it, &captured, !is_condition(at))?;
            let frame = self.frame();
            let free = (0..).map(|it| Str::from(format!("{prefix}{it}")));
            let path = free.into_iter().find(|it| frame.graphs.iter().all(|(other, _)| other != it));
            let path = path.expect("there are more numbers than graphs");
            frame.graphs.push((path.clone(), Attribute::Module(Box::new(module))));
            graphs.push(frame.recorder.get_attr(&path));
        }
        let mut is_differentiable = false;
        for it in operands.iter().flatten().chain(&captured) {
            it.for_each_tensor(&mut |it| is_differentiable |= self.meta(*it).requires_grad);
        }
        let has_list = matches!(operands.last(), Some(Some(Value::List(_))));
        let mut graphs = graphs.into_iter();
        let mut n_lists = LISTS.iter().find(|(it, _)| *it == name).map_or(0, |(_, n)| *n);
        let mut args = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            args.push(match operand {
                None => Arg::Node(graphs.next().ok_or_else(|| internal("a graph has not ended"))?),
                Some(Value::List(items)) => {
                    let more = if at + 1 == operands.len() { captured.as_slice() } else { &[] };
                    let items = items.iter().chain(more).map(|it| self.arg(it)).collect::<Result<_>>()?;
                    let is_list = n_lists > 0;
                    n_lists = n_lists.saturating_sub(1);
                    if is_list { Arg::List(items) } else { Arg::Tuple(items) }
                }
                Some(single) => self.arg(single)?,
            });
        }
        if !has_list {
            for it in &captured {
                args.push(self.arg(it)?);
            }
        }
        let is_single = !matches!(results, Value::List(_));
        let items = if let Value::List(items) = results { items.as_slice() } else { std::slice::from_ref(results) };
        let vals = items.iter().map(|it| val_of(&differentiable(it, is_differentiable)));
        let val = Val::Seq { items: vals.collect::<Result<_>>()?, is_tuple: true };
        let target = format!("torch.ops.higher_order.{name}");
        let (_, value) = self.recorder().copy(&target, args, Vec::new(), Some(val))?;
        Ok(match self.adopted(&value) {
            Value::List(mut items) if is_single => items.swap_remove(0),
            other => other,
        })
    }

    /// The module of a graph that has ended, with inputs for all that is captured.
    fn finished(&mut self, ended: Ended, captured: &[Traced], gives_tuple: bool) -> Result<GraphModule> {
        let Ended { mut frame, returned, vals } = ended;
        let mut inputs = frame.inputs.clone();
        for outer in captured {
            let known = frame.captured.iter().find(|it| it.outer == *outer).map(|it| it.node);
            inputs.push(match known {
                Some(node) => node,
                None => {
                    let val = val_of(&outer.map(&mut |it| self.meta(*it).clone()))?;
                    let name = self.name_of(outer)?;
                    frame.capture(outer.clone(), &name, val)?;
                    frame.captured[frame.captured.len() - 1].node
                }
            });
        }
        let mut graph: Graph = frame.recorder.finish();
        let first = graph.first();
        for &input in inputs.iter().rev() {
            if let Some(first) = graph.first().or(first).filter(|it| *it != input) {
                graph.move_before(input, first)?;
            }
        }
        let (returned, vals) = match (returned, vals) {
            (single, val) if gives_tuple && !matches!(single, Arg::Tuple(_)) => {
                (Arg::Tuple(vec![single]), Val::Seq { items: vec![val], is_tuple: true })
            }
            other => other,
        };
        let output = graph.output(returned);
        graph.meta_mut(output).val = Some(vals);
        let registry: &Registry = self.shapes.registry();
        graph.eliminate_dead_code(&|_, node| is_impure(node, registry))?;
        let mut module = GraphModule::new(graph.compacted());
        module.attributes.extend(frame.graphs);
        Ok(module)
    }

    pub(super) fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the graph of the program is open until the end")
    }

    pub(super) fn recorder(&mut self) -> &mut Recorder {
        &mut self.frame().recorder
    }

    /// A value of the graph that is written, its tensors new ones.
    pub(super) fn adopted(&mut self, value: &Value<Proxy>) -> Traced {
        let depth = self.frames.len() - 1;
        value.map(&mut |it| {
            self.tensors.push(Held { depth, proxy: *it });
            TensorRef(self.tensors.len() - 1)
        })
    }

    /// A value in the graph that is written; what is around it becomes an input.
    pub(super) fn proxy(&mut self, value: &Traced) -> Result<Value<Proxy>> {
        self.inner_at(self.frames.len() - 1, value)
    }

    /// Gives a tensor another value.
    pub(super) fn renew(&mut self, tensor: TensorRef, proxy: Proxy) {
        let depth = self.frames.len() - 1;
        let held = &mut self.tensors[tensor.0];
        if held.depth == depth {
            held.proxy = proxy;
        } else if let Some(it) = self.frame().captured.iter_mut().find(|it| it.outer == Value::Tensor(tensor)) {
            it.proxy = Value::Tensor(proxy);
        }
    }

    /// Notes an operator that writes to an input of a graph of control flow.
    pub(super) fn note_write(&mut self, args: &Args<'_, TensorRef>) {
        let depth = self.frames.len() - 1;
        let targets = args.op.schema.args.iter().zip(&args.values).filter(|(spec, _)| spec.is_mutated);
        for (_, target) in targets {
            let Value::Tensor(tensor) = target else { continue };
            let (held, frame) = (self.tensors[tensor.0], &mut self.frames[depth]);
            if held.depth < depth || frame.inputs.contains(&frame.recorder.node(held.proxy)) {
                frame.writer.get_or_insert_with(|| args.op.name.as_str().into());
            }
        }
    }

    fn arg(&mut self, value: &Traced) -> Result<Arg> {
        let proxy = self.proxy(value)?;
        self.recorder().arg(&proxy)
    }

    fn name_of(&mut self, value: &Traced) -> Result<Str> {
        let arg = self.arg(value)?;
        Ok(arg.as_node().map_or_else(|| "arg".into(), |it| self.recorder().name(it)))
    }

    fn inner_at(&mut self, depth: usize, value: &Traced) -> Result<Value<Proxy>> {
        if let Value::List(items) = value {
            return Ok(Value::List(items.iter().map(|it| self.inner_at(depth, it)).collect::<Result<_>>()?));
        }
        let is_here = match value {
            Value::Tensor(it) => {
                let held = self.tensors[it.0];
                if held.depth == depth {
                    return Ok(Value::Tensor(held.proxy));
                }
                held.depth > depth
            }
            other => match other.as_expr() {
                Some(expr) => depth == 0 || self.frames[depth].recorder.can_compute(&expr),
                None => true,
            },
        };
        if is_here {
            return value.try_map(&mut |_| Err(internal("a tensor is used outside of its graph")));
        }
        if let Some(it) = self.frames[depth].captured.iter().find(|it| it.outer == *value) {
            return Ok(it.proxy.clone());
        }
        let outer = self.inner_at(depth - 1, value)?;
        let recorder = &mut self.frames[depth - 1].recorder;
        let node = recorder.arg(&outer)?.as_node().ok_or_else(|| internal("what is captured is a node"))?;
        let (name, val) = (recorder.name(node), recorder.val(node));
        let val = val.ok_or_else(|| internal("something is known of each node"))?;
        self.frames[depth].capture(value.clone(), &name, val)
    }

    /// Notes how a number came about. As in PyTorch its node stands where it was computed, and goes where nothing uses it.
    pub(super) fn note_origin(&mut self, args: &Args<'_, TensorRef>, result: &Traced) -> Result<()> {
        let Some(expr) = result.as_expr().filter(|_| result.as_scalar().is_none()) else { return Ok(()) };
        let proxies = args.values.iter().map(|it| self.proxy(it)).collect::<Result<_>>()?;
        self.recorder().compute(expr, &args.op.name, proxies)
    }
}

fn differentiable(value: &Value<TensorMeta>, flows: bool) -> Value<TensorMeta> {
    value.map(&mut |meta| {
        let mut output = Output::Tensor(meta.clone());
        require_grad(&mut output, flows);
        match output {
            Output::Tensor(meta) => meta,
            _ => meta.clone(),
        }
    })
}

/// What is known of a value, as the note of a node.
fn val_of(value: &Value<TensorMeta>) -> Result<Val> {
    Ok(match (value, value.as_expr()) {
        (Value::None, _) => Val::None,
        (Value::Tensor(it), _) => Val::Tensor(it.clone()),
        (Value::List(items), _) => Val::Seq { items: items.iter().map(val_of).collect::<Result<_>>()?, is_tuple: true },
        (_, Some(Expr::Int(it))) => Val::Int(it),
        (_, Some(Expr::Float(it))) => Val::Float(it),
        (_, Some(Expr::Bool(it))) => Val::Bool(it),
        (other, None) => {
            let what = format!("a graph of control flow takes and gives no {}", other.kind_name());
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
    })
}

fn internal(what: &str) -> Diagnostic {
    Diagnostic::new(Code::Internal, what)
}
