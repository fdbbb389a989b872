//! Custom operators that write to arguments: they stay, wrapped into `auto_functionalized_v2`, which calls them on copies
//! and gives what they wrote.

use super::functional::Functional;
use tracefx_core::Result;
use tracefx_ir::{Arg, Str, Val};
use tracefx_ops::{Args, Output, TensorRef, Traced, Value};

const TARGET: &str = "torch.ops.higher_order.auto_functionalized_v2";

impl<'a> Functional<'a> {
    /// Calls an operator that writes to arguments and has no form without writes. Each of these arguments is a base of its
    /// own, as it is now, so that nothing need be said of how it looks at its storage.
    ///
    /// # Errors
    /// `NotImplemented` where a result looks at the storage of an argument, or two arguments that are written to share one.
    pub(super) fn auto_functionalize(&mut self, args: &Args<'a, TensorRef>, outputs: &[Output]) -> Result<Vec<Traced>> {
        let op = args.op;
        if op.may_alias() {
            return Err(args.unsupported(format!("{} writes to an argument and gives views of arguments", op.name)));
        }
        let mut kwargs: Vec<(Str, Arg)> = Vec::new();
        let (written, read): (Vec<_>, Vec<_>) =
            op.schema.args.iter().zip(&args.values).partition(|(spec, _)| spec.is_mutated);
        for (spec, value) in read {
            let current = self.current(value)?;
            kwargs.push((spec.name.as_str().into(), self.recorder.arg(&current)?));
        }
        let mut bases: Vec<TensorRef> = Vec::new();
        for (spec, value) in written {
            if let Value::List(items) = value {
                kwargs.push((format!("_{}_length", spec.name).as_str().into(), Arg::Int(items.len() as i64)));
                for (at, item) in items.iter().enumerate() {
                    kwargs.push(base_index(&format!("_{}_{at}", spec.name), item, &mut bases));
                }
            } else {
                kwargs.push(base_index(&format!("_{}", spec.name), value, &mut bases));
            }
        }
        if (1..bases.len()).any(|at| bases[..at].iter().any(|it| self.share_storage(*it, bases[at]))) {
            return Err(args.unsupported(format!("{} writes to two arguments that share a storage", op.name)));
        }
        let proxies = args.values.iter().map(|it| self.current(it)).collect::<Result<_>>()?;
        let proxies = Args::within(op, proxies, self.shapes.symbols());
        let mut vals: Vec<Val> = outputs.iter().map(|it| self.recorder.val_of(&proxies, it)).collect::<Result<_>>()?;
        if vals.is_empty() {
            vals.push(Val::None);
        }
        let n_results = vals.len();
        let mut nodes = Vec::new();
        for &base in &bases {
            let base = self.current(&base.into())?;
            nodes.push(self.recorder.arg(&base)?);
            if let Value::Tensor(it) = base {
                let meta = Value::Tensor(self.recorder.meta(it).clone());
                let copy = self.shapes.call("aten.clone.default", &[meta], &[])?.swap_remove(0);
                vals.push(if let Value::Tensor(meta) = copy { Val::Tensor(meta) } else { Val::None });
            }
        }
        kwargs.push(("_all_bases".into(), Arg::List(nodes)));
        let target = Arg::Op(format!("torch.ops.{}", op.name).as_str().into());
        let val = Val::Seq { items: vals, is_tuple: true };
        let (_, given) = self.recorder.copy(TARGET, vec![target], kwargs, Some(val))?;
        let mut results = if let Value::List(items) = given { items } else { vec![given] };
        let copies = results.split_off(n_results);
        for (base, copy) in bases.into_iter().zip(copies) {
            if let Value::Tensor(copy) = copy {
                self.replace(base, copy)?;
            }
        }
        results.truncate(outputs.len());
        Ok(results.iter().map(|it| self.wrapped(it)).collect())
    }
}

/// The argument that names the base of a tensor; nothing is written to `None`.
fn base_index(prefix: &str, value: &Traced, bases: &mut Vec<TensorRef>) -> (Str, Arg) {
    let index = if let Value::Tensor(it) = value {
        bases.push(*it);
        Arg::Int(bases.len() as i64 - 1)
    } else {
        Arg::None
    };
    (format!("{prefix}_base_index").as_str().into(), index)
}
