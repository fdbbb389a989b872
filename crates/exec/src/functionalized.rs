//! Operators that write to arguments, in programs without writes: `auto_functionalized` and `auto_functionalized_v2`.
//!
//! The operator that is the first argument is called on copies, and what it wrote into them is given after its own
//! results. The second version names, for each argument that is written to, a tensor of the list `_all_bases` and how to
//! look at it: the whole, a slice, or sizes with strides.

use crate::evaluate::{Kwargs, Results};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::{Arg, Str};
use tracefx_ops::{ArgType, Op, Registry, Value};

/// Their names after `torch.ops.higher_order.`.
pub(crate) const NAMES: &[&str] = &["auto_functionalized", "auto_functionalized_v2"];

/// Calls an operator.
type CallOperator<'a, T> = dyn Fn(&str, &[Value<T>], &Kwargs<T>) -> Results<T> + 'a;

/// Calls one of them, by `call_operator`.
///
/// # Errors
/// `NotImplemented` where the operator is not known; `SchemaMismatch` where the arguments are not what it takes; else what
/// the operator refuses.
pub(crate) fn call<T: Clone>(
    registry: &Registry,
    call_operator: &CallOperator<'_, T>,
    name: &str,
    args: &[Arg],
    kwargs: &Kwargs<T>,
) -> Result<Value<T>> {
    let (Some(Arg::Op(target) | Arg::Str(target)), 1) = (args.first(), args.len()) else {
        return Err(refuse(name, "the only positional argument should be an operator".to_string()));
    };
    let op = registry.require(target)?;
    let call = Call { call_operator, name, kwargs };
    let copies = if name == "auto_functionalized" { call.copies_of(op)? } else { call.copies()? };
    let mut named = Vec::new();
    for (position, spec) in op.schema.args.iter().filter(|it| it.is_mutated).enumerate() {
        let value = match name {
            "auto_functionalized" => copies[position].clone(),
            _ => call.view_of(&spec.name, matches!(spec.ty, ArgType::List(..)), &copies)?,
        };
        named.push((spec.name.as_str().into(), value));
    }
    for spec in op.schema.args.iter().filter(|it| !it.is_mutated) {
        if let Some(value) = call.get(&spec.name) {
            named.push((spec.name.as_str().into(), value.clone()));
        }
    }
    let mut results = call_operator(&op.name, &[], &named)?;
    if results.is_empty() {
        results.push(Value::None);
    }
    results.extend(copies);
    Ok(Value::List(results))
}

struct Call<'a, T> {
    call_operator: &'a CallOperator<'a, T>,
    name: &'a str,
    kwargs: &'a Kwargs<T>,
}

impl<T: Clone> Call<'_, T> {
    fn get(&self, key: &str) -> Option<&Value<T>> {
        self.kwargs.iter().find(|(it, _)| **it == *key).map(|(_, value)| value)
    }

    fn require(&self, key: &str) -> Result<&Value<T>> {
        self.get(key).ok_or_else(|| refuse(self.name, format!("the argument `{key}` is missing")))
    }

    /// Copies of the arguments that the operator writes to.
    fn copies_of(&self, op: &Op) -> Results<T> {
        let written = op.schema.args.iter().filter(|it| it.is_mutated);
        written.map(|it| self.copy(self.require(&it.name)?)).collect()
    }

    /// Copies of all bases.
    fn copies(&self) -> Results<T> {
        match self.require("_all_bases")? {
            Value::List(bases) => bases.iter().map(|it| self.copy(it)).collect(),
            other => Err(refuse(self.name, format!("`_all_bases` should be a list and is a {}", other.kind_name()))),
        }
    }

    fn copy(&self, value: &Value<T>) -> Result<Value<T>> {
        match value {
            Value::Tensor(_) => self.one("aten.clone.default", std::slice::from_ref(value)),
            Value::List(items) => Ok(Value::List(items.iter().map(|it| self.copy(it)).collect::<Result<_>>()?)),
            Value::None => Ok(Value::None),
            other => Err(refuse(self.name, format!("a {} cannot be written to", other.kind_name()))),
        }
    }

    /// The argument of this name, as it looks at the copies of the bases.
    fn view_of(&self, name: &str, is_list: bool, copies: &[Value<T>]) -> Result<Value<T>> {
        if !is_list {
            return self.view(&format!("_{name}"), copies);
        }
        match self.require(&format!("_{name}_length"))? {
            Value::None => Ok(Value::None),
            length => {
                let n = self.int(length)?;
                // Each item has an argument that names its base, so that there are not more than those.
                (0..n.min(self.kwargs.len() as i64 + 1))
                    .map(|at| self.view(&format!("_{name}_{at}"), copies))
                    .collect::<Result<_>>()
                    .map(Value::List)
            }
        }
    }

    fn view(&self, prefix: &str, copies: &[Value<T>]) -> Result<Value<T>> {
        let part = |it: &str| self.get(&format!("{prefix}_{it}")).cloned();
        let base = match self.require(&format!("{prefix}_base_index"))? {
            Value::None => return Ok(Value::None),
            index => {
                let index = self.int(index)?;
                let base = usize::try_from(index).ok().and_then(|it| copies.get(it)).cloned();
                base.ok_or_else(|| refuse(self.name, format!("`{prefix}_base_index` is {index}, which is no base")))?
            }
        };
        if let (Some(dim), Some(start), Some(end)) = (part("slice_dim"), part("slice_start"), part("slice_end")) {
            return self.one("aten.slice.Tensor", &[base, dim, start, end]);
        }
        match (part("size"), part("stride"), part("storage_offset")) {
            (Some(size), Some(stride), Some(offset)) => {
                self.one("aten.as_strided.default", &[base, size, stride, offset])
            }
            (_, _, _) => Ok(base),
        }
    }

    fn int(&self, value: &Value<T>) -> Result<i64> {
        let known = if let Value::Int(it) = value { it.as_int() } else { None };
        known.ok_or_else(|| refuse(self.name, format!("an int should be known and is a {}", value.kind_name())))
    }

    fn one(&self, op: &str, args: &[Value<T>]) -> Result<Value<T>> {
        let mut results = (self.call_operator)(op, args, &[] as &[(Str, _)])?;
        Ok(results.swap_remove(0))
    }
}

fn refuse(name: &str, what: String) -> Diagnostic {
    Diagnostic::new(Code::SchemaMismatch, what).op(format!("higher_order.{name}"))
}
