//! Abstract values of a program, with the expressions of their sizes.

use crate::limits::Limits;
use crate::schema;
use std::collections::HashMap;
use tracefx_core::{Code, DTypeKind, Device, Diagnostic, Result, storage_span};
use tracefx_ir::{TensorMeta, Val};
use tracefx_sym::{Parser, SymInt, Symbol};

/// Reads what a program knows of its values: shapes, and the expressions in them.
pub(super) struct Values<'a> {
    rank: u64,
    parser: Parser,
    // A program says the same few expressions thousands of times.
    ints: HashMap<&'a str, SymInt>,
}

impl<'a> Values<'a> {
    pub(super) fn new(limits: &Limits) -> Self {
        Values { rank: limits.rank, parser: Parser::with_limits(limits.expression), ints: HashMap::new() }
    }

    /// The symbol of this name, as the expressions declare it.
    pub(super) fn symbol(&self, name: &str) -> Symbol {
        self.parser.symbol(name).cloned().unwrap_or_else(|| Symbol::from_name(name))
    }

    /// What is known of a value of a graph; nothing for objects that are no tensors or numbers.
    pub(super) fn val(&mut self, graph: &'a schema::Graph, name: &str) -> Result<Option<Val>> {
        if let Some(meta) = graph.tensor_values.get(name) {
            return self.tensor(meta).map(|it| Some(Val::Tensor(it)));
        }
        if let Some(value) = graph.sym_int_values.get(name) {
            return self.int(value).map(|it| Some(Val::Int(it)));
        }
        if let Some(value) = graph.sym_float_values.get(name) {
            return Ok(Some(Val::Float(match value {
                schema::SymFloat::Expr(expr) => self.parser.parse_float(&expr.expr_str)?,
                schema::SymFloat::Float(it) => it.0.into(),
            })));
        }
        if let Some(value) = graph.sym_bool_values.get(name) {
            return Ok(Some(Val::Bool(match value {
                schema::SymBool::Expr(expr) => self.parser.parse_bool(&expr.expr_str)?,
                schema::SymBool::Bool(it) => (*it).into(),
            })));
        }
        if graph.custom_obj_values.contains_key(name) {
            return Ok(None);
        }
        Err(Diagnostic::new(Code::GraphInvalid, format!("nothing is known of the value `{name}`"))
            .note("the graph's tables of values have no entry for it"))
    }

    fn tensor(&mut self, meta: &'a schema::TensorMeta) -> Result<TensorMeta> {
        Limits::check("rank", self.rank, meta.sizes.len() as u64)?;
        if meta.sizes.len() != meta.strides.len() {
            let what = format!("a tensor has {} sizes but {} strides", meta.sizes.len(), meta.strides.len());
            return Err(Diagnostic::new(Code::GraphInvalid, what));
        }
        check_meta(meta).map_err(|what| Diagnostic::new(Code::SchemaMalformed, what))?;
        let sizes = meta.sizes.iter().map(|it| self.int(it)).collect::<Result<Vec<_>>>()?;
        if let Some(size) = sizes.iter().find(|it| it.as_int().is_some_and(|it| it < 0)) {
            return Err(Diagnostic::new(Code::GraphInvalid, format!("a tensor has the size {size}")));
        }
        let strides = meta.strides.iter().map(|it| self.int(it)).collect::<Result<Vec<_>>>()?;
        if is_too_large(&sizes, &strides, meta.dtype.0.size()) {
            let what = "a tensor has `sizes` and `strides` that need more bytes than there are addresses";
            return Err(Diagnostic::new(Code::GraphInvalid, what));
        }
        Ok(TensorMeta {
            dtype: meta.dtype.0,
            sizes,
            strides,
            storage_offset: self.int(&meta.storage_offset)?,
            device: device(&meta.device),
            layout: meta.layout.0,
            requires_grad: meta.requires_grad,
        })
    }

    fn int(&mut self, value: &'a schema::SymInt) -> Result<SymInt> {
        match value {
            schema::SymInt::Int(it) => Ok(SymInt::from(*it)),
            schema::SymInt::Expr(expr) => match self.ints.get(&*expr.expr_str) {
                Some(known) => Ok(known.clone()),
                None => {
                    let parsed = self.parser.parse_int(&expr.expr_str)?;
                    if let (Some(it), Some(schema::SymExprHint::Int(hint))) = (parsed.as_int(), &expr.hint)
                        && it != *hint
                    {
                        let what = format!("`expr_str` is {it}, and its `hint` is {hint}");
                        return Err(Diagnostic::new(Code::SchemaMalformed, what));
                    }
                    self.ints.insert(&expr.expr_str, parsed.clone());
                    Ok(parsed)
                }
            },
        }
    }
}

pub(super) fn device(device: &schema::Device) -> Device {
    match device {
        schema::Device { kind, index: None } if kind == "cpu" => Device::cpu(),
        schema::Device { kind, index } => Device { kind: kind.clone().into(), index: *index },
    }
}

/// What is wrong with the description of a tensor by itself, as PyTorch sees it.
pub(super) fn check_meta(meta: &schema::TensorMeta) -> std::result::Result<(), String> {
    if meta.requires_grad && meta.dtype.0.kind() < DTypeKind::Float {
        return Err(format!("`requires_grad` is true of a tensor of dtype {}", meta.dtype.0));
    }
    Ok(())
}

/// Whether a tensor of these sizes, as far as they are known, has no place in any memory.
fn is_too_large(sizes: &[SymInt], strides: &[SymInt], item: usize) -> bool {
    let known = |dims: &[SymInt]| {
        dims.iter().map(|it| it.as_int().and_then(|it| usize::try_from(it).ok())).collect::<Option<Vec<_>>>()
    };
    let (Some(sizes), Some(strides)) = (known(sizes), known(strides)) else { return false };
    let bytes = storage_span(&sizes, &strides, 0).and_then(|it| it.checked_mul(item as u64));
    bytes.is_none_or(|it| it > i64::MAX as u64)
}
