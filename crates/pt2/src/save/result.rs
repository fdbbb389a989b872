//! What nodes give. The nodes that read single parts of a result are not in files: the parts have their names.

use super::graph::{Saver, Scope, Value, unknown};
use super::{invalid, unsavable};
use crate::program::TargetKind;
use crate::schema::{self, Argument};
use tracefx_core::Result;
use tracefx_ir::{NodeId, Val};
use tracefx_ops::ArgType;

impl<'a> Saver<'a> {
    /// The results of a call and, of a higher-order operator, whether it gives a tensor and not a tuple.
    pub(super) fn results(
        &mut self,
        scope: &mut Scope<'a>,
        id: NodeId,
        kind: TargetKind,
    ) -> Result<(Vec<Argument>, Option<bool>)> {
        let node = scope.graph.node(id);
        let val = node.meta.val.as_ref();
        let is_used = !scope.graph.users(id).is_empty();
        match kind {
            TargetKind::HigherOrder | TargetKind::Function => {
                let results = match val {
                    Some(Val::Seq { items, .. }) => scope.parts(id, items)?,
                    Some(one) => vec![scope.value(id, one)?],
                    None if is_used => return Err(unknown()),
                    None => Vec::new(),
                };
                let is_tensor = matches!(val, Some(Val::Tensor(_)));
                Ok((results, (kind == TargetKind::HigherOrder).then_some(is_tensor)))
            }
            TargetKind::SymOp => Ok((vec![scope.value(id, val.ok_or_else(unknown)?)?], None)),
            TargetKind::Operator => {
                let op = self.registry.get(node.target());
                let results = match (op.map(|it| &it.schema.returns[..]), val) {
                    (Some([]), _) => Vec::new(),
                    (None, None) if !is_used => Vec::new(),
                    (_, None) => return Err(unknown()),
                    (Some([one]), Some(Val::Seq { items, .. })) if matches!(one.ty, ArgType::List(..)) => {
                        vec![scope.list(id, items, &format!("{}_unused", node.name()))?]
                    }
                    (
                        Some([_]) | None,
                        Some(one @ (Val::None | Val::Tensor(_) | Val::Int(_) | Val::Float(_) | Val::Bool(_))),
                    ) => {
                        vec![scope.value(id, one)?]
                    }
                    // One part alone would be read as the value itself.
                    (None, Some(Val::Seq { items, .. })) if items.len() == 1 => {
                        vec![scope.list(id, items, &format!("{}_unused", node.name()))?]
                    }
                    (None, Some(Val::Seq { items, .. })) => scope.parts(id, items)?,
                    (Some(returns), Some(Val::Seq { items, .. })) if returns.len() == items.len() => {
                        scope.parts(id, items)?
                    }
                    (Some(returns), Some(_)) => {
                        return Err(invalid(format!(
                            "the operator gives {} values, and what is noted as `val` is something else",
                            returns.len()
                        )));
                    }
                };
                Ok((results, None))
            }
        }
    }
}

impl<'a> Scope<'a> {
    /// The one value that a node gives.
    fn value(&mut self, id: NodeId, val: &Val) -> Result<Argument> {
        let (argument, value) = self.define(self.graph.node(id).name(), val)?;
        self.values.insert(id, value);
        Ok(argument)
    }

    /// The parts of a tuple.
    fn parts(&mut self, id: NodeId, items: &[Val]) -> Result<Vec<Argument>> {
        self.values.insert(id, Value::Parts);
        let base = self.graph.node(id).name();
        let mut parts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let unused = format!("{base}_unused_{at}");
            parts.push(match (item, self.readers(id, at).first().copied()) {
                (Val::Seq { items, .. }, Some(reader)) => {
                    let argument = self.list(reader, items, &unused)?;
                    if self.readers(id, at).len() > 1 {
                        return Err(unsavable(format!("several nodes read the list {at} of the result")));
                    }
                    argument
                }
                (Val::Seq { items, .. }, None) => self.list(id, items, &unused)?,
                (one, _) => self.part(id, at, one, unused)?,
            });
        }
        Ok(parts)
    }

    /// The parts of a list, which all are of one kind. `source` is the node that is the list.
    fn list(&mut self, source: NodeId, items: &[Val], unused: &str) -> Result<Argument> {
        self.values.entry(source).or_insert(Value::Parts);
        let mut parts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            // The parts of a list inside of a tuple that no node reads have no readers either.
            parts.push(self.part(source, at, item, format!("{unused}_{at}"))?);
        }
        let mixed = || unsavable("a list among the results has parts of several kinds, or parts that are nothing");
        macro_rules! all {
            ($variant:ident) => {
                parts.into_iter().map(|it| if let Argument::$variant(it) = it { Ok(it) } else { Err(mixed()) })
            };
        }
        Ok(match parts.first() {
            None | Some(Argument::Tensor(_)) => Argument::Tensors(all!(Tensor).collect::<Result<_>>()?),
            Some(Argument::SymInt(_)) => Argument::SymInts(all!(SymInt).collect::<Result<_>>()?),
            Some(Argument::SymFloat(_)) => Argument::SymFloats(all!(SymFloat).collect::<Result<_>>()?),
            Some(Argument::SymBool(_)) => Argument::SymBools(all!(SymBool).collect::<Result<_>>()?),
            Some(_) => return Err(mixed()),
        })
    }

    /// One part, with the name of the first node that reads it.
    fn part(&mut self, source: NodeId, at: usize, val: &Val, unused: String) -> Result<Argument> {
        let readers = self.readers(source, at).to_vec();
        let name = match readers.first() {
            Some(reader) => self.graph.node(*reader).name().to_string(),
            None => self.unused_name(unused),
        };
        let (argument, value): (schema::Argument, Value) = self.define(&name, val)?;
        self.values.extend(readers.into_iter().map(|it| (it, value.clone())));
        Ok(argument)
    }

    fn readers(&self, source: NodeId, at: usize) -> &[NodeId] {
        self.getitems.get(&(source, at)).map_or(&[], Vec::as_slice)
    }
}
