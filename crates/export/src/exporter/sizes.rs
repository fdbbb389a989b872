//! What the sizes of a program came to.

use crate::{ExportedProgram, ShapeSession};
use tracefx_core::{Layout, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, InsertPoint, Meta, NodeId, Opcode, Str, Val};
use tracefx_ops::{Symbols, Value};
use tracefx_rewrite::{DeferredAsserts, insert_deferred_runtime_asserts};
use tracefx_sym::{Expr, SymInt, Symbol};

impl ShapeSession {
    /// Ends the session of a program that was written with its symbols: [`ShapeSession::finish`], and the ranges, guards and
    /// assertions that come of it put into the program.
    ///
    /// # Errors
    /// `ConstraintViolation`, as [`ShapeSession::finish`].
    pub fn finish_program(&mut self, program: &mut ExportedProgram) -> Result<()> {
        let sizes = self.finish()?;
        replace_sizes(&mut program.module, self.symbols());
        let ranges = sizes.range_constraints.iter();
        program.range_constraints = ranges.map(|(expr, range)| (Symbol::from_name(expr.to_string()), *range)).collect();
        program.guards = sizes.guards.iter().map(|it| it.as_str().into()).collect();
        let graph = &program.module.graph;
        if !graph.nodes().any(|it| graph.node(it).meta.val.as_ref().is_some_and(is_symbolic)) {
            return Ok(());
        }
        let of_symbols = sizes.range_constraints.iter();
        let known = DeferredAsserts {
            ranges: of_symbols.filter_map(|(expr, range)| Some((expr.as_symbol()?.clone(), *range))).collect(),
            asserts: sizes.assertions.into_iter().map(|it| it.condition).collect(),
        };
        insert_deferred_runtime_asserts(&mut program.module, &known)?;
        let renamed = rename_sizes(&mut program.module.graph)?;
        for spec in &mut program.signature.output_specs {
            if let Some((_, new)) = renamed.iter().find(|(old, _)| *old == *spec.arg.name()) {
                spec.arg = spec.arg.renamed(new.clone());
            }
        }
        Ok(())
    }
}

fn is_symbolic(val: &Val) -> bool {
    match val {
        Val::Int(it) => it.is_symbolic(),
        Val::Tensor(it) => it.sizes.iter().any(SymInt::is_symbolic),
        Val::None | Val::Float(_) | Val::Bool(_) | Val::Seq { .. } => false,
    }
}

/// Puts the numbers and symbols into all notes that sizes turned out to be.
fn replace_sizes(module: &mut GraphModule, symbols: &Symbols) {
    for id in module.graph.nodes().collect::<Vec<NodeId>>() {
        if let Some(val) = &mut module.graph.meta_mut(id).val {
            replace(val, symbols);
        }
    }
    for attribute in module.attributes.values_mut() {
        if let Attribute::Module(inner) = attribute {
            replace_sizes(inner, symbols);
        }
    }
}

fn replace(val: &mut Val, symbols: &Symbols) {
    match val {
        Val::Tensor(meta) => {
            if let Value::Tensor(new) = symbols.replace_value(&Value::Tensor(meta.clone())) {
                *meta = new;
            }
        }
        Val::Seq { items, .. } => items.iter_mut().for_each(|it| replace(it, symbols)),
        Val::Int(it) => {
            if let Expr::Int(new) = symbols.replace(&it.clone().into()) {
                *it = new;
            }
        }
        Val::Float(it) => {
            if let Expr::Float(new) = symbols.replace(&it.clone().into()) {
                *it = new;
            }
        }
        Val::Bool(it) => {
            if let Expr::Bool(new) = symbols.replace(&it.clone().into()) {
                *it = new;
            }
        }
        Val::None => {}
    }
}

/// Gives the nodes that read and check sizes new names, as PyTorch makes them anew after all others. Gives the old names and
/// the new ones.
fn rename_sizes(graph: &mut Graph) -> Result<Vec<(Str, Str)>> {
    let mut renamed = Vec::new();
    for id in graph.nodes().collect::<Vec<NodeId>>() {
        let node = graph.node(id);
        let Some(first) = node.args().first().and_then(Arg::as_node) else { continue };
        if &**node.target() == "torch.ops.aten.sym_size.int" && graph.node(first).op() == Opcode::Placeholder {
            renamed.push(renew(graph, id, "sym_size_int"));
            continue;
        }
        let Some(Arg::Str(message)) = node.args().get(1) else { continue };
        let is_check = &**node.target() == "torch.ops.aten._assert_scalar.default";
        let condition = graph.node(first).target().strip_prefix("operator.").map(str::to_owned);
        let Some(condition) = condition.filter(|_| is_check) else { continue };
        let message = message.clone();
        let (old, new) = renew(graph, first, &condition);
        let message = message.replace(&format!("on node '{old}'"), &format!("on node '{new}'"));
        graph.update_arg(id, 1, Arg::str(&message))?;
        renamed.push((old, new));
    }
    Ok(renamed)
}

/// Gives a node another name of this kind, which none has had.
fn renew(graph: &mut Graph, id: NodeId, name: &str) -> (Str, Str) {
    let old = graph.node(id).name().clone();
    let wanted = if *old == *name { format!("{name}_1") } else { name.to_owned() };
    let new = graph.rename(id, &wanted);
    (old, new)
}

/// The conversions in front of which PyTorch asserts what is converted.
pub const ASSERTED_CONVERSIONS: &[&str] =
    &["torch.ops.aten.to.device", "torch.ops.aten.to.dtype", "torch.ops.aten.to.dtype_layout"];
const ASSERT: &str = "torch.ops.aten._assert_tensor_metadata.default";

/// Asserts dtype, device and layout of what is converted: whether there is anything to do depends on them.
pub(super) fn assert_converted(graph: &mut Graph) -> Result<()> {
    for id in graph.nodes().collect::<Vec<NodeId>>() {
        let node = graph.node(id);
        let Some(converted) = node.args().first().and_then(Arg::as_node) else { continue };
        if !ASSERTED_CONVERSIONS.contains(&&**node.target()) {
            continue;
        }
        let is_asserted = graph.prev(id).is_some_and(|it| {
            let before = graph.node(it);
            &**before.target() == ASSERT && before.args().first() == node.args().first()
        });
        let Some(Val::Tensor(meta)) = graph.node(converted).meta.val.as_ref().filter(|_| !is_asserted) else {
            continue;
        };
        let kwargs = vec![
            ("dtype".into(), Arg::DType(meta.dtype)),
            ("device".into(), Arg::Device(meta.device.clone())),
            ("layout".into(), Arg::Layout(Layout::Strided)),
        ];
        let entries = node.meta.entries.iter().filter(|(key, _)| ["nn_module_stack", "stack_trace"].contains(&&***key));
        let entries = entries.map(|(key, it)| (key.clone(), it.clone())).collect();
        let before = graph.set_insert_point(InsertPoint::Before(id))?;
        let assertion = graph.call_function(ASSERT, vec![Arg::Node(converted)], kwargs);
        graph.set_insert_point(before)?;
        *graph.meta_mut(assertion) = Meta { val: Some(Val::None), entries, ..Meta::default() };
    }
    Ok(())
}
