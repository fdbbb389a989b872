//! Types of values, from the annotations of PyTorch's functions.

use super::is_leaf;
use super::signature::{signature_of, split};
use crate::{Pass, PassResult};
use serde::Deserialize;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, Node, NodeId, Opcode, Str};
use ts_rs::TS;

/// What [`AnnotateTypesWithSchema`] annotates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, TS)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AnnotateOptions {
    /// Whether calls of `torch.nn.functional` are annotated.
    pub annotate_functionals: bool,
    /// Whether calls of modules of `torch.nn` are annotated.
    pub annotate_modules: bool,
    /// Whether attributes that are tensors are annotated.
    pub annotate_get_attrs: bool,
}

impl Default for AnnotateOptions {
    fn default() -> Self {
        AnnotateOptions { annotate_functionals: true, annotate_modules: true, annotate_get_attrs: true }
    }
}

/// Gives nodes without a type the one that the function, module or attribute has:
/// `torch.fx.experimental.schema_type_annotation.AnnotateTypesWithSchema`, in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnnotateTypesWithSchema(pub AnnotateOptions);

impl AnnotateTypesWithSchema {
    fn type_of(self, node: &Node, module: &GraphModule) -> Result<Option<Str>> {
        let target = &**node.target();
        let result = |name: &str| signature_of(name).and_then(|it| it.result.clone());
        Ok(match node.op() {
            Opcode::CallFunction if self.0.annotate_functionals && target.starts_with("torch.nn.functional.") => {
                result(target)
            }
            Opcode::CallModule if self.0.annotate_modules => {
                let called = module.submodule(target)?;
                result(&format!("{}.forward", called.class_name)).filter(|_| is_leaf(called))
            }
            Opcode::GetAttr if self.0.annotate_get_attrs => match module.attribute(target)? {
                Attribute::Tensor { .. } | Attribute::Fake { .. } => Some("torch.Tensor".into()),
                Attribute::Module(_) => None,
            },
            Opcode::Placeholder
            | Opcode::GetAttr
            | Opcode::CallFunction
            | Opcode::CallMethod
            | Opcode::CallModule
            | Opcode::Output => None,
        })
    }
}

impl Pass for AnnotateTypesWithSchema {
    fn name(&self) -> &str {
        "AnnotateTypesWithSchema"
    }

    fn call(&self, module: &mut GraphModule) -> Result<PassResult> {
        let mut modified = false;
        let nodes: Vec<NodeId> = module.graph.nodes().collect();
        for id in nodes {
            let node = module.graph.node(id);
            if node.ty().is_some() {
                continue;
            }
            let ty = self.type_of(node, module).map_err(|it| it.node(&**node.name()))?;
            if ty.is_some() {
                module.graph.set_type(id, ty)?;
                modified = true;
            }
        }
        Ok(PassResult::new(modified))
    }
}

/// Gives each `operator.getitem` of an annotated tuple or list the type of the item:
/// `torch.fx.passes.annotate_getitem_nodes`. Sequences without an annotation are left alone.
///
/// # Errors
/// `IndexOutOfRange` where a tuple has no such item.
pub fn annotate_getitem_nodes(graph: &mut Graph) -> Result<PassResult> {
    let mut modified = false;
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for id in nodes {
        let node = graph.node(id);
        let (Opcode::CallFunction, "operator.getitem") = (node.op(), &**node.target()) else { continue };
        let [Arg::Node(sequence), index] = node.args() else { continue };
        let Some(ty) = graph.node(*sequence).ty() else { continue };
        let item = item_type(ty, index).map_err(|it| it.node(&**node.name()))?;
        if item.is_some() && item.as_ref() != node.ty() {
            graph.set_type(id, item)?;
            modified = true;
        }
    }
    Ok(PassResult::new(modified))
}

/// The type of an item of `tuple[int, torch.Tensor]`, `typing.List[int]`…
fn item_type(ty: &str, index: &Arg) -> Result<Option<Str>> {
    let (name, Some(inner)) = (ty.split('[').next().unwrap_or(ty), bracketed(ty)) else { return Ok(None) };
    let items = split(inner);
    match (name, items.as_slice(), index) {
        ("list" | "List" | "typing.List", [item], _) | ("tuple" | "Tuple" | "typing.Tuple", [item, "..."], _) => {
            Ok(Some((*item).into()))
        }
        ("tuple" | "Tuple" | "typing.Tuple", items, Arg::Int(at)) => {
            let position = if *at < 0 { at + items.len() as i64 } else { *at };
            let item = usize::try_from(position).ok().and_then(|it| items.get(it));
            item.map(|it| Some((*it).into()))
                .ok_or_else(|| Diagnostic::new(Code::IndexOutOfRange, format!("Index {at} out of range for {ty}")))
        }
        _ => Ok(None),
    }
}

fn bracketed(ty: &str) -> Option<&str> {
    let open = ty.find('[')?;
    ty[open + 1..].strip_suffix(']')
}
