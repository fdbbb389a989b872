//! Numbers out of tensors, and assertions about them.

use tracefx_core::{Code, Diagnostic, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value};

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.item.default", Kernel::Make(item)),
    ("aten._local_scalar_dense.default", Kernel::Make(item)),
    (
        "aten._assert_async.default",
        Kernel::Fill(|args, _| assert(args, "Expected Tensor with single nonzero value, but got zero")),
    ),
    ("aten._assert_async.msg", Kernel::Fill(|args, _| assert(args, args.str(1)?))),
];

fn item(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    Ok(vec![args.tensor(0)?.item()?.into()])
}

fn assert(args: &Args<'_, Tensor>, message: &str) -> Result<()> {
    let is_true = match args.tensor(0)?.item()? {
        Scalar::Bool(it) => it,
        Scalar::Int(it) => it != 0,
        Scalar::Float(it) => it != 0.0,
        Scalar::Complex(it) => it.re != 0.0 || it.im != 0.0,
    };
    if is_true { Ok(()) } else { Err(Diagnostic::new(Code::AssertionFailed, message)) }
}
