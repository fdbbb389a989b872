//! Compiles plans: fewer and faster steps that compute the same.
//!
//! A plan as it is traced calls one kernel for each operator of the program. The passes of this crate look at nothing but the plan: what a
//! step computes is its operator's name, and who reads what it gives is known from the buffers (`Uses`). Each pass has a file. What may change the last
//! bits of a result is done only with [`Precision::Fast`].
#![forbid(unsafe_code)]

mod attention;
mod bands;
mod constants;
mod copies;
mod dequantized;
mod epilogue;
mod gathers;
mod in_place;
mod layout;
mod loops;
mod matrices;
mod norms;
mod products;
mod quantized;
mod scales;
mod updates;
mod uses;

use tracefx_core::{Code, Diagnostic, Result};
use tracefx_exec::Kernels;
use tracefx_ops::Registry;
use tracefx_plan::{Action, Plan};

/// What a compiled plan may change in the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Nothing: each operator is rounded as it is by itself.
    Strict,
    /// The last bits: batch normalisations are folded into weights, factors of queries and keys are one, sums have other orders, and activations behind
    /// products and convolutions are rounded less often. What a quantised convolution rounds to integers may be the next one where it lies halfway. Beside a number that is not finite, or very large,
    /// a convolution may give what is no number, or fewer digits, at up to six places around it (Winograd's algorithm).
    #[default]
    Fast,
}

impl Precision {
    /// The names that [`Precision::named`] knows, the default first.
    pub const NAMES: &[&str] = &["fast", "strict"];

    /// The precision of this name.
    ///
    /// # Errors
    /// `InvalidOption` where there is none.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "fast" => Ok(Precision::Fast),
            "strict" => Ok(Precision::Strict),
            _ => Err(Diagnostic::new(Code::InvalidOption, format!("there is no precision {name}"))
                .help(format!("the precision is {}", Precision::NAMES.join(" or ")))),
        }
    }
}

/// The same program in fewer steps, with the plans of its control flow, for these kernels.
pub fn compile(mut plan: Plan, registry: &Registry, kernels: &Kernels, precision: Precision) -> Plan {
    for step in &mut plan.steps {
        if let Action::ControlFlow { plans, .. } = &mut step.action {
            *plans = std::mem::take(plans).into_iter().map(|it| compile(it, registry, kernels, precision)).collect();
        }
    }
    constants::without_assertions(&mut plan);
    in_place::copy_straight(&mut plan, registry);
    updates::in_place(&mut plan, registry, kernels);
    in_place::copy_straight(&mut plan, registry);
    in_place::without_copies(&mut plan, registry);
    if precision == Precision::Fast {
        layout::channels_last(&mut plan, registry, kernels);
        bands::join(&mut plan, registry);
        scales::join(&mut plan, registry);
        attention::attention(&mut plan, registry);
        norms::norms(&mut plan, registry);
        products::products(&mut plan, registry);
    }
    constants::fold(&mut plan, registry, kernels);
    gathers::gathers(&mut plan);
    copies::of_calls(&mut plan);
    copies::read_at_source(&mut plan, registry);
    loops::fuse_loops(&mut plan, registry, kernels);
    plan
}
