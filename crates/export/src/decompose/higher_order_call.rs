//! Calls of operators that take graphs, as gradients go back through them.

use super::no_grad::NoGrad;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::Env;
use tracefx_ir::{Arg, GraphModule, Node, Str};
use tracefx_ops::{TensorRef, Traced, Value};

/// A call of an operator that takes graphs, of whose operands gradients are wanted.
pub(super) struct HigherOrderCall<'f> {
    pub(super) kind: Kind,
    /// The name of the node, and what it calls.
    pub(super) name: Str,
    pub(super) target: Str,
    /// The graphs, and the beginnings of their names.
    pub(super) graphs: Vec<(&'static str, &'f GraphModule, &'f NoGrad)>,
    pub(super) operands: Vec<Traced>,
    pub(super) results: Vec<Traced>,
    /// Which operands require a gradient.
    pub(super) is_wanted: Vec<bool>,
}

pub(super) enum Kind {
    Cond {
        predicate: Traced,
    },
    /// The first operands are gone through slice by slice.
    Map {
        n_mapped: usize,
    },
}

impl<'f> HigherOrderCall<'f> {
    /// Reads the call of a node.
    ///
    /// # Errors
    /// `NotImplemented`, naming the operator, where gradients do not flow through it.
    pub(super) fn read(
        node: &Node,
        env: &Env<'f, TensorRef>,
        result: &Traced,
        no_grad: &'f NoGrad,
        is_tracked: &dyn Fn(&Traced) -> bool,
    ) -> Result<Self> {
        let graph = |at: usize, stem: &'static str| match node.args().get(at).and_then(|it| env.module(it)) {
            Some((module, path)) => {
                let missing = || Diagnostic::new(Code::Internal, format!("the graph `{path}` was not decomposed"));
                Ok((stem, module, no_grad.graphs.get(path).ok_or_else(missing)?))
            }
            None => Err(Diagnostic::new(Code::GraphInvalid, format!("argument {at} should be a graph"))),
        };
        let values = |at: usize| match env.value(node.args().get(at).unwrap_or(&Arg::None))? {
            Value::List(items) => Ok(items),
            other => {
                let what = format!("argument {at} should be a list and is a {}", other.kind_name());
                Err(Diagnostic::new(Code::GraphInvalid, what))
            }
        };
        let (kind, graphs, operands) = match &**node.target() {
            "torch.ops.higher_order.cond" => {
                let predicate = env.value(&node.args()[0])?;
                let graphs = vec![graph(1, "true_graph_")?, graph(2, "false_graph_")?];
                (Kind::Cond { predicate }, graphs, values(3)?)
            }
            "torch.ops.higher_order.map_impl" => {
                let xs = values(1)?;
                let n_mapped = xs.len();
                (Kind::Map { n_mapped }, vec![graph(0, "body_graph_")?], [xs, values(2)?].concat())
            }
            target => {
                let what = format!("the gradient of {target} is not implemented");
                let problem = Diagnostic::new(Code::NotImplemented, what).op(target);
                let is_loop = target.ends_with(".while_loop") || target.ends_with(".scan");
                let help = "write the loop with cond or map, unroll it, or call .detach() on what it takes";
                return Err(if is_loop { problem.help(help) } else { problem });
            }
        };
        let results = match result {
            Value::List(items) => items.clone(),
            single => vec![single.clone()],
        };
        let is_wanted = operands.iter().map(is_tracked).collect();
        let (name, target) = (node.name().clone(), node.target().clone());
        Ok(HigherOrderCall { kind, name, target, graphs, operands, results, is_wanted })
    }
}
