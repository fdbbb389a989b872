//! Programs that were exported with a `torch.vmap` inside: a stretch of nodes that sees one example at a time.
//!
//! Such a stretch begins and ends with calls of `torch._functorch.predispatch`. What it takes from outside it takes as a
//! slice, and what it gives is stacked. Its operators have no rules for batches, so that the stretch runs once for each
//! example, as PyTorch defines it.

use crate::interpreter::{Evaluate, Results, Slot, Walk};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::NodeId;
use tracefx_ops::Value;

/// How deep stretches lie in each other, and over how many examples one runs, at most: a file must not be able to keep its
/// reader for ever.
const MAX_DEPTH: usize = 8;
const MAX_EXAMPLES: i64 = 1 << 20;

/// What a stretch gives: the node, the dimension to stack along, and a value for each example.
type Given<T> = (NodeId, Value<T>, Vec<Value<T>>);

impl<'a, E: Evaluate> Walk<'a, E> {
    /// The name of a function of `torch._functorch.predispatch` that a node calls.
    pub(crate) fn predispatched(&self, id: NodeId) -> Option<&'a str> {
        self.module.graph.node(id).target().strip_prefix("torch._functorch.predispatch.")
    }

    /// How many nodes belong to the stretch that begins with the first of these; none where none begins.
    pub(crate) fn stretch(&self, nodes: &[NodeId]) -> usize {
        let mut depth = 0;
        for (at, &id) in nodes.iter().enumerate() {
            match self.predispatched(id) {
                Some("_vmap_increment_nesting") => depth += 1,
                Some("_vmap_decrement_nesting") => depth -= 1,
                Some(_) | None => {}
            }
            if depth <= 0 {
                return if at == 0 { 0 } else { at + 1 };
            }
        }
        0
    }

    /// Runs a stretch for each example, and leaves what it gives in `env`.
    ///
    /// # Errors
    /// `NotImplemented` where the examples draw random numbers or are none; `LimitExceeded` where they are too many; else
    /// what a node refuses.
    pub(crate) fn run_stretch(
        &self,
        nodes: &[NodeId],
        env: &mut [Option<Slot<'a, E::Tensor>>],
        depth: usize,
    ) -> Result<()> {
        let Some((&first, rest)) = nodes.split_first() else { return Ok(()) };
        let graph = &self.module.graph;
        let refuse = |code: Code, what: String| Err(Diagnostic::new(code, what).node(&**graph.node(first).name()));
        let n_examples = match &self.values(graph.node(first).args(), env)?[..] {
            [Value::Int(n), Value::Str(random)] if &**random == "error" => n.as_int().unwrap_or(0),
            _ => return refuse(Code::NotImplemented, "a vmap with random numbers is not implemented".to_string()),
        };
        if n_examples < 1 {
            return refuse(Code::NotImplemented, "a vmap over no example is not implemented".to_string());
        }
        if depth > MAX_DEPTH || n_examples > MAX_EXAMPLES {
            let what = format!(
                "a vmap of depth {depth} over {n_examples} examples exceeds the limits {MAX_DEPTH} and {MAX_EXAMPLES}"
            );
            return refuse(Code::LimitExceeded, what);
        }
        let mut given: Vec<Given<E::Tensor>> = Vec::new();
        for example in 0..n_examples {
            let mut inner = env.to_vec();
            // What a node gives is noted as it is for the first example.
            let note = |id: NodeId, value: &Value<E::Tensor>| {
                if example == 0 {
                    self.evaluate.note(self.module, id, value);
                }
            };
            let mut at = 0;
            while at + 1 < rest.len() {
                let id = rest[at];
                let n_inner = self.stretch(&rest[at..]);
                if n_inner > 0 {
                    self.run_stretch(&rest[at..at + n_inner], &mut inner, depth + 1)?;
                    at += n_inner;
                    continue;
                }
                at += 1;
                match (self.predispatched(id), &self.arguments(id, &inner)?[..]) {
                    (Some("_add_batch_dim"), [it, dim, ..]) => {
                        let slice = [it.clone(), dim.clone(), Value::int(example)];
                        let slice = self.evaluate.call("aten.select.int", &slice, &[])?.swap_remove(0);
                        note(id, &slice);
                        inner[id.index()] = Some(Slot::Value(slice));
                    }
                    (Some("_remove_batch_dim"), [it, _, _, dim]) => match given.iter_mut().find(|(of, ..)| *of == id) {
                        Some((_, _, values)) => values.push(it.clone()),
                        None => given.push((id, dim.clone(), vec![it.clone()])),
                    },
                    _ => {
                        let slot = self.run_node(id, &inner, &mut [].iter())?;
                        if let Slot::Value(value) = &slot {
                            note(id, value);
                        }
                        self.bind(id, slot, &mut inner);
                    }
                }
            }
        }
        for (id, dim, values) in given {
            let stacked = self.evaluate.call("aten.stack.default", &[Value::List(values), dim], &[])?.swap_remove(0);
            self.evaluate.note(self.module, id, &stacked);
            env[id.index()] = Some(Slot::Value(stacked));
        }
        for id in [Some(&first), rest.last()].into_iter().flatten() {
            self.evaluate.note(self.module, *id, &Value::None);
        }
        Ok(())
    }

    /// The arguments of a call of `torch._functorch.predispatch`; none of another node.
    fn arguments(&self, id: NodeId, env: &[Option<Slot<'a, E::Tensor>>]) -> Results<E::Tensor> {
        match self.predispatched(id) {
            Some("_add_batch_dim" | "_remove_batch_dim") => self.values(self.module.graph.node(id).args(), env),
            Some(_) | None => Ok(Vec::new()),
        }
    }
}
