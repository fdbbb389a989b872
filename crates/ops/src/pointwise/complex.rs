//! Complex numbers and their parts. All of it is made of floats: of real and imaginary parts, or of lengths and angles.

use crate::core::decompositions::Call;
use crate::core::elementwise::{memory_order, promoting};
use crate::pointwise::unary_gradient;
use crate::{Cx, OpDef, Output, Tags, Traced, Value, broadcast};
use tracefx_core::{Code, DType, Diagnostic, Result};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] =
    &[
        OpDef::composite("aten::complex(Tensor real, Tensor imag) -> Tensor", complex)
            .tags(Tags::NOT_DECOMPOSED)
            .doc("Complex numbers of real and imaginary parts."),
        OpDef::composite("aten::polar(Tensor abs, Tensor angle) -> Tensor", polar)
            .tags(Tags::NOT_DECOMPOSED)
            .doc("Complex numbers of lengths and angles."),
        OpDef::composite("aten::angle(Tensor self) -> Tensor", angle)
            .tags(Tags::NOT_DECOMPOSED)
            .vjp(unary_gradient::angle)
            .doc("The angle of each number: zero or pi for real ones."),
        OpDef::composite("aten::conj(Tensor(a) self) -> Tensor(a)", conj).doc("The complex conjugate."),
        OpDef::new("aten::conj_physical(Tensor self) -> Tensor", |args| {
            if args.tensor(0)?.dtype.is_complex() { promoting::<1>(args) } else { Ok(vec![Output::Same(0)]) }
        })
        .tags(Tags::MAY_GIVE_ARGUMENT)
        .vjp(unary_gradient::conj)
        .doc("The complex conjugate.")
        .in_place(&["conj_physical_"]),
        OpDef::composite("aten::_conj(Tensor(a) self) -> Tensor(a)", conj_of_complex)
            .tags(Tags::NOT_DECOMPOSED)
            .vjp(unary_gradient::conj)
            .doc("The complex conjugate."),
        OpDef::composite("aten::matrix_H(Tensor(a) self) -> Tensor(a)", |cx, args| {
            match cx.meta(*args.tensor(0)?).sizes.len() {
                2 => Ok(vec![cx.aten("mH", [&args.values[0]])?]),
                rank => Err(args
                    .bad_shape(format!("tensor.H is only supported on matrices (2-D tensors). Got {rank}-D tensor."))),
            }
        })
        .doc("The conjugate transpose of a matrix."),
        OpDef::composite("aten::sgn(Tensor self) -> Tensor", sgn)
            .vjp(unary_gradient::sgn)
            .doc("Each number over its magnitude; zero stays zero.")
            .in_place(&["sgn_"]),
    ];

fn check_parts(cx: &Cx<'_>, args: &Call<'_>) -> Result<()> {
    let [first, second] = [0, 1].map(|index| args.tensor(index).map(|it| cx.meta(*it).dtype));
    let (first, second) = (first?, second?);
    if !matches!(first, DType::Float32 | DType::Float64) {
        let what = format!(
            "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
            first.name(),
            second.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if first != second {
        let what = format!(
            "Expected object of scalar type {} but got scalar type {} for second argument",
            first.name(),
            second.name()
        );
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    Ok(())
}

/// The pairs stand beside each other in memory, and lie as the parts do.
fn joined(cx: &mut Cx<'_>, args: &Call<'_>, real: Traced, imag: Traced) -> Result<Vec<Traced>> {
    let metas = [cx.meta_of(&real).clone(), cx.meta_of(&imag).clone()];
    let sizes = broadcast(args, &metas[0].sizes, &metas[1].sizes)?;
    let outermost_first = memory_order(&sizes, &[&metas[0], &metas[1]]).into_iter().rev().collect::<Vec<_>>();
    let is_turned = !outermost_first.is_sorted();
    let both = Value::List(vec![real, imag]);
    let mut both = cx.aten("broadcast_tensors", [&both])?;
    if is_turned && let Value::List(parts) = &mut both {
        for part in parts {
            *part = cx.aten("permute", [part, &dims(&outermost_first)])?;
        }
    }
    let pairs = cx.aten("stack", [&both, &Value::int(-1)])?;
    let mut res = cx.aten("view_as_complex", [&pairs])?;
    if is_turned {
        let mut back = vec![0; outermost_first.len()];
        outermost_first.iter().enumerate().for_each(|(at, &dim)| back[dim] = at);
        res = cx.aten("permute", [&res, &dims(&back)])?;
    }
    Ok(vec![res])
}

fn dims(order: &[usize]) -> Traced {
    Value::List(order.iter().map(|&it| Value::int(it as i64)).collect())
}

fn complex(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_parts(cx, args)?;
    joined(cx, args, args.values[0].clone(), args.values[1].clone())
}

fn polar(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_parts(cx, args)?;
    let mut part = |op: &str| {
        let it = cx.aten(op, [&args.values[1]])?;
        cx.aten("mul.Tensor", [&args.values[0], &it])
    };
    let (real, imag) = (part("cos")?, part("sin")?);
    joined(cx, args, real, imag)
}

fn angle(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let dtype = cx.meta(this).dtype;
    if dtype.is_complex() {
        let (real, imag) = (cx.aten("real", [&this.into()])?, cx.aten("imag", [&this.into()])?);
        let angles = cx.aten("atan2", [&imag, &real])?;
        return Ok(vec![cx.aten("contiguous", [&angles])?]);
    }
    let mut this = Traced::from(this);
    if !dtype.is_float() {
        this = cx.aten_with("_to_copy", [&this], &[("dtype", Value::DType(DType::Float32))])?;
    }
    let zeros = cx.aten("zeros_like", [&this])?;
    let is_negative = cx.aten("lt.Scalar", [&this, &Value::int(0)])?;
    let res = cx.aten("masked_fill.Scalar", [&zeros, &is_negative, &Value::Float(std::f64::consts::PI)])?;
    let is_nan = cx.aten("isnan", [&this])?;
    Ok(vec![cx.aten("where.self", [&is_nan, &this, &res])?])
}

fn conj(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    if !cx.meta(this).dtype.is_complex() {
        return Ok(vec![this.into()]);
    }
    Ok(vec![cx.aten("conj_physical", [&this.into()])?])
}

/// The view that PyTorch's `conj` makes of complex numbers; of others it makes none.
fn conj_of_complex(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let dtype = cx.meta(*args.tensor(0)?).dtype;
    if !dtype.is_complex() {
        let what = format!("_conj takes complex numbers, but got {}", dtype.name());
        return Err(
            Diagnostic::new(Code::DTypeMismatch, what).help("call conj, which gives real numbers back as they are")
        );
    }
    conj(cx, args)
}

fn sgn(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    if !cx.meta(this).dtype.is_complex() {
        return Ok(vec![cx.aten("sign", [&this.into()])?]);
    }
    let size = cx.aten("abs", [&this.into()])?;
    let is_zero = cx.aten("eq.Scalar", [&size, &Value::int(0)])?;
    let divisor = cx.aten("masked_fill.Scalar", [&size, &is_zero, &Value::int(1)])?;
    Ok(vec![cx.aten("div.Tensor", [&this.into(), &divisor])?])
}
