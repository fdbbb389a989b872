//! Comparisons, logic and bits.

use crate::core::decompositions::forward;
use crate::core::elementwise::{elementwise, operands, promoting, to_bool};
use crate::pointwise::decompose;
use crate::{Args, OpDef, Output, Tags, promote};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    question("aten::eq.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self == other`.")
        .in_place(&["eq_.Tensor"]),
    question("aten::eq.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self == other`.")
        .in_place(&["eq_.Scalar"]),
    question("aten::ne.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self != other`.")
        .in_place(&["ne_.Tensor", "not_equal_.Tensor"]),
    question("aten::ne.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self != other`.")
        .in_place(&["ne_.Scalar", "not_equal_.Scalar"]),
    question("aten::lt.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self < other`.")
        .in_place(&["lt_.Tensor", "less_.Tensor"]),
    question("aten::lt.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self < other`.")
        .in_place(&["lt_.Scalar", "less_.Scalar"]),
    question("aten::le.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self <= other`.")
        .in_place(&["le_.Tensor", "less_equal_.Tensor"]),
    question("aten::le.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self <= other`.")
        .in_place(&["le_.Scalar", "less_equal_.Scalar"]),
    question("aten::gt.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self > other`.")
        .in_place(&["gt_.Tensor", "greater_.Tensor"]),
    question("aten::gt.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self > other`.")
        .in_place(&["gt_.Scalar", "greater_.Scalar"]),
    question("aten::ge.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self >= other`.")
        .in_place(&["ge_.Tensor", "greater_equal_.Tensor"]),
    question("aten::ge.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether `self >= other`.")
        .in_place(&["ge_.Scalar", "greater_equal_.Scalar"]),
    question("aten::logical_and(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .doc("Whether both are not zero.")
        .in_place(&["logical_and_"]),
    question("aten::logical_or(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .doc("Whether one is not zero.")
        .in_place(&["logical_or_"]),
    question("aten::logical_xor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::CORE)
        .doc("Whether exactly one is not zero.")
        .in_place(&["logical_xor_"]),
    bits("aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .doc("The bits that both have.")
        .in_place(&["bitwise_and_.Tensor"]),
    bits("aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("The bits that both have.")
        .in_place(&["bitwise_and_.Scalar"]),
    bits("aten::bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").doc("The bits that both have."),
    bits("aten::__and__.Tensor(Tensor self, Tensor other) -> Tensor")
        .decompose(decompose::and)
        .doc("The bits that both have.")
        .in_place(&["__iand__.Tensor"]),
    bits("aten::__and__.Scalar(Tensor self, Scalar other) -> Tensor")
        .decompose(decompose::and)
        .doc("The bits that both have.")
        .in_place(&["__iand__.Scalar"]),
    bits("aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .doc("The bits that one has.")
        .in_place(&["bitwise_or_.Tensor"]),
    bits("aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("The bits that one has.")
        .in_place(&["bitwise_or_.Scalar"]),
    bits("aten::bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").doc("The bits that one has."),
    bits("aten::__or__.Tensor(Tensor self, Tensor other) -> Tensor")
        .decompose(decompose::or)
        .doc("The bits that one has.")
        .in_place(&["__ior__.Tensor"]),
    bits("aten::__or__.Scalar(Tensor self, Scalar other) -> Tensor")
        .decompose(decompose::or)
        .doc("The bits that one has.")
        .in_place(&["__ior__.Scalar"]),
    bits("aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor")
        .tags(Tags::COMMUTATIVE.with(Tags::ASSOCIATIVE))
        .tags(Tags::CORE)
        .doc("The bits that exactly one has.")
        .in_place(&["bitwise_xor_.Tensor"]),
    bits("aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor")
        .tags(Tags::CORE)
        .doc("The bits that exactly one has.")
        .in_place(&["bitwise_xor_.Scalar"]),
    bits("aten::bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor").doc("The bits that exactly one has."),
    bits("aten::__xor__.Tensor(Tensor self, Tensor other) -> Tensor")
        .decompose(decompose::xor)
        .doc("The bits that exactly one has.")
        .in_place(&["__ixor__.Tensor"]),
    bits("aten::__xor__.Scalar(Tensor self, Scalar other) -> Tensor")
        .decompose(decompose::xor)
        .doc("The bits that exactly one has.")
        .in_place(&["__ixor__.Scalar"]),
    shifts("aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor")
        .doc("The bits moved up by so many places; 0 where these are more than there are.")
        .in_place(&["bitwise_left_shift_.Tensor"]),
    shifts("aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
        .doc("The bits moved up by so many places; 0 where these are more than there are.")
        .in_place(&["bitwise_left_shift_.Tensor_Scalar"]),
    shifts("aten::bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
        .doc("The bits moved up by so many places; 0 where these are more than there are."),
    shifts("aten::__lshift__.Tensor(Tensor self, Tensor other) -> Tensor")
        .doc("The bits moved up by so many places; 0 where these are more than there are.")
        .in_place(&["__ilshift__.Tensor"]),
    shifts("aten::__lshift__.Scalar(Tensor self, Scalar other) -> Tensor")
        .doc("The bits moved up by so many places; 0 where these are more than there are.")
        .in_place(&["__ilshift__.Scalar"]),
    shifts("aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor")
        .doc("The bits moved down by so many places, the sign filling up.")
        .in_place(&["bitwise_right_shift_.Tensor"]),
    shifts("aten::bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
        .doc("The bits moved down by so many places, the sign filling up.")
        .in_place(&["bitwise_right_shift_.Tensor_Scalar"]),
    shifts("aten::bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
        .doc("The bits moved down by so many places, the sign filling up."),
    shifts("aten::__rshift__.Tensor(Tensor self, Tensor other) -> Tensor")
        .doc("The bits moved down by so many places, the sign filling up.")
        .in_place(&["__irshift__.Tensor"]),
    shifts("aten::__rshift__.Scalar(Tensor self, Scalar other) -> Tensor")
        .doc("The bits moved down by so many places, the sign filling up.")
        .in_place(&["__irshift__.Scalar"]),
    OpDef::new(
        "aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool \
         equal_nan=False) -> Tensor",
        isclose,
    )
    .decompose(decompose::isclose)
    .tags(Tags::POINTWISE)
    .no_gradient()
    .doc("Whether `|self - other| <= atol + rtol * |other|`."),
    OpDef::composite("aten::greater.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "gt.Tensor")
    })
    .doc("Another name of `gt`."),
    OpDef::composite("aten::greater.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "gt.Scalar")
    })
    .doc("Another name of `gt`."),
    OpDef::composite("aten::greater_equal.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "ge.Tensor")
    })
    .doc("Another name of `ge`."),
    OpDef::composite("aten::greater_equal.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "ge.Scalar")
    })
    .doc("Another name of `ge`."),
    OpDef::composite("aten::less.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "lt.Tensor")
    })
    .doc("Another name of `lt`."),
    OpDef::composite("aten::less.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "lt.Scalar")
    })
    .doc("Another name of `lt`."),
    OpDef::composite("aten::less_equal.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "le.Tensor")
    })
    .doc("Another name of `le`."),
    OpDef::composite("aten::less_equal.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "le.Scalar")
    })
    .doc("Another name of `le`."),
    OpDef::composite("aten::not_equal.Tensor(Tensor self, Tensor other) -> Tensor", |cx, args| {
        forward(cx, args, "ne.Tensor")
    })
    .doc("Another name of `ne`."),
    OpDef::composite("aten::not_equal.Scalar(Tensor self, Scalar other) -> Tensor", |cx, args| {
        forward(cx, args, "ne.Scalar")
    })
    .doc("Another name of `ne`."),
];

const fn question(schema: &'static str) -> OpDef {
    OpDef::new(schema, to_bool::<2>).tags(Tags::POINTWISE)
}

const fn bits(schema: &'static str) -> OpDef {
    OpDef::new(schema, bitwise).tags(Tags::POINTWISE)
}

const fn shifts(schema: &'static str) -> OpDef {
    OpDef::new(schema, shifted).tags(Tags::POINTWISE)
}

/// Bits are not moved in a bool, which has but one.
fn shifted(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = promote(&operands(args, 0..2)?);
    if dtype == DType::Bool {
        return Err(args.no_kernel(&format!("{}_cpu", args.op.schema.name), dtype));
    }
    bitwise(args)
}

fn bitwise(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = promote(&operands(args, 0..2)?);
    if dtype.kind() > DTypeKind::Int {
        let what = format!("\"{}_cpu\" not implemented for '{}'", args.op.schema.name, dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    promoting::<2>(args)
}

fn isclose(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (a, b) = (args.tensor(0)?, args.tensor(1)?);
    if a.dtype != b.dtype {
        return Err(Diagnostic::new(
            Code::DTypeMismatch,
            format!("{} did not match {}", a.dtype.name(), b.dtype.name()),
        ));
    }
    for (name, value) in [("rtol", args.float(2)?), ("atol", args.float(3)?)] {
        if value < 0.0 || value.is_nan() {
            return Err(args.invalid(format!("{name} must be greater than or equal to zero, but got {value}")));
        }
    }
    elementwise(args, DType::Bool, &operands(args, 0..2)?)
}
