//! How values of other crates are written: by their names, by their numbers in the byte format of graphs, and expressions as the text in
//! which PyTorch saves them.

use crate::{Action, Operand, Plan};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;
use tracefx_core::{Code, Diagnostic, Result as Checked};

/// Lists in lists, and plans in plans, are no deeper.
const MAX_DEPTH: usize = 64;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A list that may hold itself. Who reads hostile bytes must not follow them to the end of the stack, and a deserializer that counts
/// is one that knows every type of the plan; so the depth is counted beside it.
pub(crate) fn nested<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    struct Left;
    impl Drop for Left {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _left = Left;
    if DEPTH.get() > MAX_DEPTH {
        return Err(D::Error::custom("nested too deeply"));
    }
    Vec::deserialize(from)
}

/// Refuses a plan that would not be read.
pub(crate) fn check_depth(plan: &Plan) -> Checked<()> {
    fn of_operand(it: &Operand) -> usize {
        if let Operand::List(items) = it { 1 + items.iter().map(of_operand).max().unwrap_or_default() } else { 0 }
    }
    fn of_plan(plan: &Plan) -> usize {
        let of_action = |it: &Action| match it {
            Action::Call { args, results, .. } => args.iter().chain(results).map(of_operand).max(),
            Action::Update { args, .. } => args.iter().map(of_operand).max(),
            Action::Fused(_) | Action::Copy { .. } => None,
            Action::ControlFlow { operands, results, plans, .. } => {
                let own = operands.iter().chain([results]).map(of_operand).max();
                own.max(plans.iter().map(of_plan).max())
            }
        };
        let ends = plan.inputs.iter().chain([&plan.output]).map(of_operand);
        1 + ends.chain(plan.steps.iter().filter_map(|it| of_action(&it.action))).max().unwrap_or_default()
    }
    if of_plan(plan) > MAX_DEPTH {
        return Err(Diagnostic::new(Code::LimitExceeded, format!("a plan is nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}

/// A part that is written as another type: how it is told in that, and how it is known from it.
macro_rules! written_as {
    ($(#[$meta:meta])* $name:ident: $type:ty as $wire:ty, $told:expr, $known:expr) => {
        $(#[$meta])*
        pub(crate) mod $name {
            use super::*;

            pub(crate) fn serialize<S: Serializer>(it: &$type, to: S) -> Result<S::Ok, S::Error> {
                let told: fn(&$type) -> Option<$wire> = $told;
                told(it).ok_or_else(|| S::Error::custom("it has no value"))?.serialize(to)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                let known: fn($wire) -> Option<$type> = $known;
                let told = <$wire>::deserialize(from)?;
                known(told).ok_or_else(|| D::Error::custom(concat!("this is no ", stringify!($name))))
            }
        }
    };
}

use std::sync::Arc;
use tracefx_core::{Complex64, DType, Device, Dims, Layout, MemoryFormat};
use tracefx_sym::{Expr, Parser, SymInt};

written_as!(text: Arc<str> as String, |it| Some(String::from(&**it)), |it| Some(it.into()));
written_as!(
    dtype: DType as u8,
    |it| DType::ALL.iter().position(|other| other == it).map(|it| it as u8),
    |it| DType::ALL.get(usize::from(it)).copied()
);
written_as!(device: Device as String, |it| Some(it.to_string()), |it| it.parse().ok());
written_as!(layout: Layout as String, |it| Some(it.name().to_owned()), |it| Layout::from_name(&it));
written_as!(
    memory_format: MemoryFormat as String,
    |it| Some(it.name().to_owned()),
    |it| MemoryFormat::from_name(&it)
);
written_as!(complex: Complex64 as [f64; 2], |it| Some([it.re, it.im]), |[re, im]| Some(Complex64 { re, im }));
written_as!(dims: Dims as Vec<u64>, |it| Some(it.iter().map(|it| *it as u64).collect()), |it| {
    it.into_iter().map(|it| usize::try_from(it).ok()).collect()
});
written_as!(size: SymInt as Number, Number::of, Number::into_size);
written_as!(sizes: Vec<SymInt> as Vec<Number>, |it| it.iter().map(Number::of).collect(), |it| {
    it.into_iter().map(Number::into_size).collect()
});
written_as!(
    expr: Expr as String,
    |it| it.invalid().is_none().then(|| it.srepr()),
    |it| Parser::default().parse(&it).ok().filter(|parsed| parsed.invalid().is_none())
);

/// A size: a number, or an expression.
#[derive(Serialize, Deserialize)]
pub(crate) enum Number {
    Known(i64),
    Symbolic(String),
}

impl Number {
    fn of(it: &SymInt) -> Option<Self> {
        match it.as_int() {
            Some(it) => Some(Number::Known(it)),
            None => it.invalid().is_none().then(|| Number::Symbolic(it.srepr())),
        }
    }

    fn into_size(self) -> Option<SymInt> {
        match self {
            Number::Known(it) => Some(it.into()),
            Number::Symbolic(text) => Parser::default().parse_int(&text).ok().filter(|it| it.invalid().is_none()),
        }
    }
}
