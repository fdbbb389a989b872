//! Equalities that a shape rule needs and does not ask for: rules compare sizes as they are written, and of a program that is
//! exported the examples say which sizes are equal.

use crate::core::propagate::undecided;
use crate::{Args, Output, Propagation, Symbols, Value};
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::{SymBool, SymInt, Value as Known};

/// More sizes than this are not compared with each other.
const MAX_SIZES: usize = 64;

impl Propagation<'_> {
    /// The results of a call that the rule refused, if it takes the call once sizes that are equal for the examples are
    /// equal. Only equalities that it needs become guards: each is left out once, in the order of the arguments.
    ///
    /// # Errors
    /// The refusal, where it is none of that.
    pub(crate) fn unified(&self, args: &Args<'_, TensorMeta>, problem: Diagnostic) -> Result<Vec<Output>> {
        if let Some(condition) = self.symbols().take_undecided() {
            return Err(self.symbols().data_dependent(&condition));
        }
        let is_about_sizes =
            matches!(problem.code(), Code::ShapeMismatch | Code::InvalidArgument | Code::NotImplemented);
        let mut needed = if is_about_sizes { self.candidates(&args.values) } else { Vec::new() };
        if needed.is_empty() || !self.takes(args, &needed) {
            // Sizes of the examples do not fit, or the data decides.
            let is_backed = self.sizes_of(&args.values).iter().all(|it| self.symbols().is_backed(&it.clone().into()));
            return Err(if is_backed { problem } else { undecided(args, problem) });
        }
        let mut at = 0;
        while at < needed.len() {
            let left_out = needed.remove(at);
            if !self.takes(args, &needed) {
                needed.insert(at, left_out);
                at += 1;
            }
        }
        let symbols = self.symbols();
        for it in &needed {
            symbols.assume(it);
        }
        self.settled(args)
    }

    fn takes(&self, args: &Args<'_, TensorMeta>, equalities: &[SymBool]) -> bool {
        let symbols: Symbols = self.symbols().clone();
        for it in equalities {
            symbols.assume(it);
        }
        let values = args.values.iter().map(|it| symbols.replace_value(it)).collect();
        Propagation::new(self.registry(), &symbols).apply(&Args::within(args.op, values, &symbols)).is_ok()
    }

    /// Equalities of sizes that hold for the examples: of symbolic ones with each other, and with numbers.
    fn candidates(&self, values: &[Value<TensorMeta>]) -> Vec<SymBool> {
        let sizes = self.sizes_of(values);
        let hint = |it: &SymInt| match self.symbols().hint(&it.clone().into()) {
            Some(Known::Int(it)) => Some(it),
            Some(_) | None => None,
        };
        let hints: Vec<Option<i64>> = sizes.iter().map(hint).collect();
        let mut res = Vec::new();
        for (at, size) in sizes.iter().enumerate().take(MAX_SIZES) {
            for before in 0..at {
                let is_candidate = hints[at].is_some() && hints[at] == hints[before];
                if is_candidate && (size.is_symbolic() || sizes[before].is_symbolic()) {
                    res.push(SymBool::eq(&sizes[before], size));
                }
            }
        }
        // What no other size explains is a number: these are left out first.
        let alone = sizes.iter().zip(&hints).filter(|(size, _)| size.is_symbolic());
        let mut specialized: Vec<SymBool> =
            alone.filter_map(|(size, hint)| Some(SymBool::eq(size, &SymInt::from((*hint)?)))).collect();
        specialized.extend(res);
        specialized
    }

    fn sizes_of(&self, values: &[Value<TensorMeta>]) -> Vec<SymInt> {
        let mut res: Vec<SymInt> = Vec::new();
        let mut visit = |it: &SymInt| {
            if !res.contains(it) {
                res.push(it.clone());
            }
        };
        fn walk(value: &Value<TensorMeta>, visit: &mut dyn FnMut(&SymInt)) {
            match value {
                Value::Tensor(meta) => meta.sizes.iter().for_each(visit),
                Value::List(items) => items.iter().for_each(|it| walk(it, visit)),
                Value::Int(it) => visit(it),
                _ => {}
            }
        }
        values.iter().for_each(|it| walk(it, &mut visit));
        res
    }
}
