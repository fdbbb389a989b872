//! What shape rules ask of symbols.

mod facts;
mod guards;

use crate::Value;
use guards::Hints;
pub use guards::{DeferredAssertion, ShapeGuard};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tracefx_core::{DType, DTypeKind};
use tracefx_ir::TensorMeta;
use tracefx_sym::{Expr, Func, ShapeEnv, SymBool, SymFloat, SymInt, Symbol, SymbolKind, ValueRange};

/// What is known of the symbols in the sizes of a program, and where new ones come from: the part of PyTorch's `ShapeEnv`
/// that shape rules ask.
///
/// New symbols have PyTorch's names: `u0`, `u1`… for ints that the data decides, `zuf0`… for floats. A size of an input
/// (`s0`) is taken to be at least 2 where its range allows it, as PyTorch did when it exported the program.
///
/// Where a program is being exported, symbols have hints, the sizes of the examples ([`Symbols::exporting`]). Then a question
/// that ranges do not answer is answered by the hints, and the answer becomes a guard.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    env: RefCell<ShapeEnv>,
    n_ints: Cell<u64>,
    n_floats: Cell<u64>,
    hints: Option<RefCell<Hints>>,
}

impl Symbols {
    /// The symbols of a program with these ranges. New symbols are numbered behind those that have one.
    pub fn new(mut env: ShapeEnv) -> Self {
        let (mut n_ints, mut n_floats) = (0, 0);
        let known: Vec<Symbol> = env.ranges().map(|(it, _)| it.clone()).collect();
        for symbol in known {
            // A file may name a symbol as it likes: what is numbered beyond 32 bits is never reached by counting.
            let number = |prefix: &str| Some(u64::from(symbol.name().strip_prefix(prefix)?.parse::<u32>().ok()?) + 1);
            match symbol.kind() {
                SymbolKind::Unbacked => n_ints = n_ints.max(number("u").unwrap_or_default()),
                SymbolKind::UnbackedFloat => n_floats = n_floats.max(number("zuf").unwrap_or_default()),
                // Where only smaller sizes are allowed, nothing is added.
                SymbolKind::Size => drop(env.constrain(&symbol, ValueRange::at_least(2))),
                SymbolKind::Float | SymbolKind::Other => {}
            }
        }
        Symbols { env: RefCell::new(env), n_ints: Cell::new(n_ints), n_floats: Cell::new(n_floats), hints: None }
    }

    /// The symbols of the inputs of a program that is exported, with their ranges, and with the values that they have for the
    /// examples.
    pub fn exporting(env: ShapeEnv, hints: BTreeMap<Symbol, i64>) -> Self {
        let hints = Some(RefCell::new(Hints::new(hints)));
        Symbols { env: RefCell::new(env), hints, ..Symbols::default() }
    }

    /// The symbols in these values, of which nothing more is known.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a Value<TensorMeta>>) -> Self {
        let mut env = ShapeEnv::new();
        // A range without bounds contradicts nothing.
        let note = &mut |symbol: Symbol| drop(env.constrain(&symbol, ValueRange::UNBOUNDED));
        values.into_iter().for_each(|it| visit_symbols(it, note));
        Symbols::new(env)
    }

    /// The ranges as they are now known.
    pub fn env(&self) -> ShapeEnv {
        self.env.borrow().clone()
    }

    /// Whether this holds for all values that the symbols may have; `None` where that cannot be told. While a program is
    /// exported, it holds if it does for the examples, and is guarded; `None` is left for what the data decides.
    pub fn decide(&self, condition: &SymBool) -> Option<bool> {
        match &self.hints {
            Some(hints) => hints.borrow_mut().decide(&mut self.env.borrow_mut(), condition),
            None => self.env.borrow().decide(condition),
        }
    }

    /// Whether this holds, as [`Symbols::decide`] has it without hints: nothing is guarded.
    pub fn known(&self, condition: &SymBool) -> Option<bool> {
        match &self.hints {
            Some(hints) => hints.borrow().known(&self.env.borrow(), condition),
            None => self.env.borrow().decide(condition),
        }
    }

    /// Takes this to hold from here on. False where it cannot hold.
    pub fn assume(&self, condition: &SymBool) -> bool {
        if let Some(hints) = &self.hints {
            return hints.borrow_mut().assume(&mut self.env.borrow_mut(), condition);
        }
        if let Some(known) = self.decide(condition) {
            return known;
        }
        let SymBool::Call(call) = condition else { return true };
        let [Expr::Int(a), Expr::Int(b)] = call.args() else { return true };
        // Of other relations nothing is remembered.
        let (symbol, value, is_left) = match (a.as_symbol(), b.as_int(), b.as_symbol(), a.as_int()) {
            (Some(symbol), Some(value), _, _) => (symbol, value, true),
            (_, _, Some(symbol), Some(value)) => (symbol, value, false),
            _ => return true,
        };
        let (at_most, at_least) = (ValueRange { min: None, max: Some(value) }, ValueRange::at_least(value));
        let below = ValueRange { min: None, max: Some(value.saturating_sub(1)) };
        let above = ValueRange::at_least(value.saturating_add(1));
        let range = match (call.func(), is_left) {
            (Func::Eq, _) => ValueRange::exactly(value),
            (Func::Le, true) | (Func::Ge, false) => at_most,
            (Func::Ge, true) | (Func::Le, false) => at_least,
            (Func::Lt, true) | (Func::Gt, false) => below,
            (Func::Gt, true) | (Func::Lt, false) => above,
            (_, _) => return true,
        };
        self.env.borrow_mut().constrain(symbol, range).is_ok()
    }

    /// A new symbol for a size that only the data can tell.
    pub fn new_size(&self) -> SymInt {
        self.new_int_in(ValueRange::at_least(0))
    }

    /// The same for a size that is at most this one, as far as the ranges of its symbols say.
    pub fn new_size_up_to(&self, most: &SymInt) -> SymInt {
        let max = self.env.borrow().bounds(most).max;
        self.new_int_in(ValueRange { min: Some(0), max })
    }

    /// A new symbol for an int of which nothing is known.
    pub fn new_int(&self) -> SymInt {
        self.new_int_in(ValueRange::UNBOUNDED)
    }

    /// A new symbol for the only element of a tensor of this dtype; nothing for a complex number.
    pub fn new_item<T>(&self, dtype: DType) -> Value<T> {
        match dtype.kind() {
            DTypeKind::Bool => {
                let bit = self.new_int_in(ValueRange::between(0, 1));
                Expr::from(SymBool::eq(&bit, &SymInt::ONE)).into()
            }
            DTypeKind::Int => Value::Int(self.new_int()),
            DTypeKind::Float => {
                let number = self.n_floats.replace(self.n_floats.get() + 1);
                Expr::from(SymFloat::from(Symbol::from_name(format!("zuf{number}")))).into()
            }
            DTypeKind::Complex => Value::None,
        }
    }

    /// What stands for a size that is not known where nobody keeps symbols apart.
    pub(crate) fn stand_in() -> SymInt {
        Symbol::from_name("u0").into()
    }

    fn new_int_in(&self, range: ValueRange) -> SymInt {
        let number = self.n_ints.replace(self.n_ints.get() + 1);
        let symbol = Symbol::from_name(format!("u{number}"));
        // The symbol is new, so no other range contradicts.
        drop(self.env.borrow_mut().constrain(&symbol, range));
        symbol.into()
    }
}

fn visit_symbols(value: &Value<TensorMeta>, visit: &mut dyn FnMut(Symbol)) {
    match value {
        Value::Tensor(meta) => {
            let dims = meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]);
            dims.flat_map(SymInt::symbols).for_each(visit);
        }
        Value::List(items) => items.iter().for_each(|it| visit_symbols(it, visit)),
        other => other.as_expr().iter().flat_map(Expr::symbols).for_each(visit),
    }
}
