//! Whether the calls and the notes of a program fit each other: translations take that for granted, and a file may say anything.

use crate::call::unknown;
use crate::translate::key;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::propagate_node;
use tracefx_export::ExportedProgram;
use tracefx_ir::{Opcode, TensorMeta, Val};
use tracefx_ops::{Propagation, Value, registry};

/// Refuses a call whose arguments its operator refuses, and one of which something else is noted than the operator gives. What
/// cannot be told without data, and assertions, which models do not have, are left to the translation.
///
/// # Errors
/// What the shape rule refuses; `SchemaMismatch` where the notes are others. Both name the node.
pub(crate) fn check_notes(program: &ExportedProgram) -> Result<()> {
    let noted = program.noted_symbols()?;
    for (_, module) in program.module.modules() {
        // What one branch asserts does not hold in the other.
        let symbols = noted.clone();
        let shapes = Propagation::new(registry(), &symbols);
        for id in module.graph.nodes() {
            let node = module.graph.node(id);
            if node.op() != Opcode::CallFunction {
                continue;
            }
            let Some(given) = propagate_node(module, id, shapes) else { continue };
            let of_node = |it: Diagnostic| it.node(&**node.name()).op(key(node.target()));
            let noted = node.meta.val.as_ref();
            match given {
                Ok(Value::None) => {}
                Ok(_) | Err(_) if noted.is_none() => return Err(of_node(unknown())),
                Ok(given) if noted.is_some_and(|it| fits(&given, it)) => {}
                Ok(_) => {
                    let what = "what is noted of the result is not what the operator gives";
                    return Err(of_node(Diagnostic::new(Code::SchemaMismatch, what).help("export the program again")));
                }
                Err(it) if matches!(it.code(), Code::NotImplemented | Code::DataDependent | Code::AssertionFailed) => {}
                Err(it) => return Err(of_node(it)),
            }
        }
    }
    Ok(())
}

/// Whether a value may be what is noted of it: sizes that are not known may be any.
fn fits(given: &Value<TensorMeta>, noted: &Val) -> bool {
    match (given, noted) {
        (Value::Tensor(given), Val::Tensor(noted)) => {
            let differ = |(a, b): (&tracefx_sym::SymInt, &tracefx_sym::SymInt)| {
                a.as_int().zip(b.as_int()).is_some_and(|(a, b)| a != b)
            };
            given.dtype == noted.dtype
                && given.sizes.len() == noted.sizes.len()
                && !given.sizes.iter().zip(&noted.sizes).any(differ)
        }
        (Value::List(given), Val::Seq { items, .. }) => {
            given.len() == items.len() && given.iter().zip(items).all(|(given, noted)| fits(given, noted))
        }
        (Value::Tensor(_) | Value::List(_), _) | (_, Val::Tensor(_) | Val::Seq { .. }) => false,
        _ => true,
    }
}
