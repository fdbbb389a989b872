//! Symbolic integers: canonical expressions, ranges and the parser of PyTorch's size expressions.
//!
//! A program exported with dynamic shapes has sizes such as `s0`, `4*s0` or `s31//2 + 1`. [`SymInt`] is the integer that
//! sizes and strides are, known or not; [`SymFloat`] and [`SymBool`] are the floats and relations that programs compute
//! from sizes; [`Expr`] is any of the three. They are immutable values, cheap to clone, equal if they are the same
//! polynomial. What the symbols stand for, and which values they may have, is a [`ShapeEnv`]'s knowledge; what cannot be
//! decided is `None`, never a guess.
//!
//! The crate is no computer algebra system. It simplifies what PyTorch simplifies, because the sizes that it prints are
//! compared with the ones that PyTorch prints. It runs no code: expressions in files are read by a grammar of its own.
//!
//! ```
//! use tracefx_sym::{SymInt, Symbol};
//!
//! let s0 = SymInt::from(Symbol::size("s0"));
//! let padded = &s0 + 3;
//! assert_eq!((&padded * 2).to_string(), "2*s0 + 6");
//! assert_eq!(&padded - &s0, 3);
//! assert_eq!(padded.eval(&|_| Some(5)), Ok(8));
//! ```
#![forbid(unsafe_code)]

mod assume;
mod boolean;
mod call;
mod compute;
mod division;
mod env;
mod eval;
mod expr;
mod float;
mod func;
mod guard;
mod int;
mod order;
mod parse;
mod poly;
mod print;
mod range;
mod solve;
mod srepr;
mod substitute;
mod summand;
mod symbol;
mod syntax;

pub use boolean::{BoolCall, SymBool};
pub use call::call;
pub use compute::Compute;
pub use env::{Contradiction, ShapeEnv};
pub use eval::{Bindings, EvalError, Value};
pub use expr::{Expr, Invalid};
pub use float::SymFloat;
pub use func::Func;
pub use guard::{Guard, GuardError, InputProperty, InputSource, InputValue, PathStep};
pub use int::SymInt;
pub use parse::Parser;
pub use range::ValueRange;
pub use solve::{Equation, Solution, Violation, solve};
pub use summand::{IntFactor, Summand};
pub use symbol::{Assumptions, Symbol, SymbolKind};
pub use syntax::Limits;
