//! Windows to weigh a signal with before its Fourier transform.

use crate::create::decompose;
use crate::create::factories::{dtype, fresh};
use crate::{Args, OpDef, Output, Rule, Tol};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    row(
        "aten::hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .decompose(decompose::hann_window)
    .doc("A cosine bell that starts at zero."),
    row(
        "aten::hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .decompose(decompose::hann_window)
    .doc("A cosine bell that starts at zero."),
    row(
        "aten::hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A cosine bell that starts above zero."),
    row(
        "aten::hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A cosine bell that starts above zero."),
    row(
        "aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? \
         dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A cosine bell that starts above zero."),
    row(
        "aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, \
         ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A cosine bell that starts above zero."),
    row(
        "aten::blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A bell of two cosines."),
    row(
        "aten::blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A bell of two cosines."),
    row(
        "aten::bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A triangle."),
    row(
        "aten::bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A triangle."),
    row(
        "aten::kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A bell of Bessel functions."),
    row(
        "aten::kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A bell of Bessel functions."),
    row(
        "aten::kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, \
         Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        window,
    )
    .doc("A bell of Bessel functions."),
];

const fn row(schema: &'static str, rule: Rule) -> OpDef {
    OpDef::new(schema, rule).tolerance(Tol::Default)
}

fn window(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (n, name) = (args.int(0)?, &args.op.schema.name);
    let dtype = dtype(args)?.unwrap_or(DType::Float32);
    if !dtype.is_float() {
        let what = format!("{name} expects floating point dtypes, got: {}", dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if n < 0 {
        return Err(args.invalid(format!("{name} requires non-negative window_length, got window_length={n}")));
    }
    fresh(args, TensorMeta::contiguous(dtype, vec![SymInt::from(n)]))
}
