//! Gradients: how what comes in from behind goes back through a call to its arguments.
//!
//! A row of the registry says `.vjp(f)` with a function of this module tree, which gives for each argument of the schema
//! a formula ([`Expr`]) over the arguments, the results and the incoming gradients ([`Backward`]). The formulas, and what
//! they choose where there is no derivative, are those of PyTorch's `tools/autograd/derivatives.yaml`. What every
//! gradient needs is done in one place, when the formulas are computed: the sum over what was broadcast, the real part
//! where the argument is real, and the dtype of the argument.
//!
//! Complex gradients follow PyTorch's convention: the incoming gradient times the conjugate of the derivative.
//!
//! An operator without a formula is differentiated through its decomposition: the [`Tape`] records the calls that this
//! makes instead.

mod backward;
mod expr;
mod tape;

pub use backward::Backward;
pub use expr::Expr;
pub use tape::{PullBack, Tape};

use tracefx_core::Result;

/// The formulas of one operator: the gradients of its arguments in the order of the schema. Those of the last arguments
/// may be left out where there are none.
pub type VjpFn = fn(&Backward<'_>) -> Result<Vec<Expr>>;

/// What is known of an operator's gradient.
#[derive(Clone, Copy, Debug)]
pub enum Vjp {
    /// These formulas compute it.
    Of(VjpFn),
    /// These formulas compute it from the first so many results; none flows through the others, though they may be floats.
    OfFirst(usize, VjpFn),
    /// No gradient flows through it, though its results may be floats: the result is a constant, or a step.
    None,
}
