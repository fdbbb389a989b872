//! The steps that have shaders: a file for each kind.

mod args;
mod attention;
mod bags;
mod binary;
mod calls;
mod checked;
mod complex;
mod constructors;
mod convolution;
mod convolution_gradient;
mod copies;
mod dequantized;
mod distances;
mod factorisations;
mod fourier;
mod images;
mod integers;
mod loops;
mod losses;
mod matrices;
mod norms;
mod order;
mod patches;
mod pointwise;
mod pool_gradients;
mod pools;
mod positions;
mod reductions;
mod selections;
mod spectra;
mod workgroups;

use crate::lower::{Lowered, Lowering};
use tracefx_plan::{Action, Fused};

/// The dispatches of a step, or why it stays on the CPU.
pub(crate) fn lower(cx: &mut Lowering<'_>, action: &Action) -> Lowered {
    match action {
        Action::Copy { from, to } => copies::copy(cx, *from, *to),
        Action::Fused(fused) => match fused {
            Fused::Loop(it) => loops::code(cx, it),
            Fused::Product(it) => matrices::product(cx, it),
            Fused::Convolution(it) => convolution::channels_last(cx, it),
            Fused::Norm(it) => norms::norm(cx, it),
            Fused::Attention(it) => attention::attention(cx, it),
            Fused::Pool(it) => pools::pool(cx, it),
            Fused::Gather(it) => selections::gather(cx, it),
            Fused::QuantizedConvolution(it) => convolution::quantized(cx, it),
            Fused::DequantizedProduct(it) => dequantized::product(cx, it),
        },
        Action::Call { op, args, results } => calls::call(cx, op, args, results),
        Action::Update { op, args } => {
            match selections::update(cx, op, args).or_else(|| positions::update(cx, op, args)) {
                Some(lowered) => lowered,
                None => Err(format!("{op} in place has no shader").into()),
            }
        }
        Action::ControlFlow { op, .. } => Err(format!("{op} is control flow").into()),
    }
}
