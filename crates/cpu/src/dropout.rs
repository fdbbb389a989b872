//! Kernels of dropout: what it does where nothing is dropped. The random numbers of PyTorch's generator are not
//! reproduced, so a call that needs them is refused.

use tracefx_core::{Bool8, Result, Tensor};
use tracefx_exec::{Kernel, assign};
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.dropout.default", Kernel::Fill(random)),
    ("aten.feature_dropout.default", Kernel::Fill(random)),
    ("aten.alpha_dropout.default", Kernel::Fill(random)),
    ("aten.feature_alpha_dropout.default", Kernel::Fill(random)),
    ("aten.native_dropout.default", Kernel::Fill(native_dropout)),
];

/// The shape rule has dealt with the calls that drop nothing.
fn random(args: &Args<'_, Tensor>, _: &[Tensor]) -> Result<()> {
    let what = "dropout in training is random, and PyTorch's random numbers are not reproduced";
    Err(args.unsupported(what).help("export the module after `.eval()`"))
}

fn native_dropout(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let is_training = !matches!(args.values[2], Value::Bool(false));
    if is_training && args.float(1)? > 0.0 && out[0].numel() > 0 {
        return random(args, out);
    }
    out[1].storage().write().elements_mut::<Bool8>().fill(Bool8::from(true));
    assign(&out[0], args.tensor(0)?)
}
