//! What the data can refuse: quotients of integers whose divisor may be zero, and assertions.

use super::pointwise::{converted, literal, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates};
use tracefx_core::Code;
use tracefx_plan::{Operand, TensorId};

/// A quotient or remainder of integers.
pub(super) fn division(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let (name, overload) = op.strip_prefix("aten.")?.split_once('.')?;
    let (is_remainder, is_floor) = match (name, overload, args.get(2)) {
        ("floor_divide", _, _) => (false, true),
        ("div", "Tensor_mode" | "Scalar_mode", Some(Operand::Str(mode))) => (false, &**mode == "floor"),
        ("remainder", _, _) => (true, true),
        ("fmod", _, _) => (true, false),
        (_, _, _) => return None,
    };
    // Another number than zero needs no check.
    if matches!(args.get(1), Some(Operand::Int(it)) if *it != 0 && (-128..128).contains(it)) {
        return None;
    }
    let kind = Kind::of(cx.plan.tensor(result).dtype)?;
    let (int, long) = match (is_remainder, is_floor) {
        (false, false) => ("", "long_divided"),
        (false, true) => ("int_divided", "long_floor_divided"),
        (true, false) => ("%", "long_fmod"),
        (true, true) => ("int_remainder", "long_remainder"),
    };
    let zero = literal(&Operand::Int(0), kind)?;
    let text = match (kind, int) {
        (Kind::Int, "") => "a / b".to_owned(),
        (Kind::Int, "%") => "a % b".to_owned(),
        (Kind::Int, int) => format!("{int}(a, b)"),
        (Kind::Long, _) => format!("{long}(a, b)"),
        (Kind::Float | Kind::Bool, _) => return None,
    };
    Some(divided(cx, op, args, result, (kind, &zero, &text)))
}

/// The expression `text` of `a` and `b` for each element, where `b` is not zero.
fn divided(
    cx: &mut Lowering<'_>,
    op: &str,
    args: &[Operand],
    result: TensorId,
    (kind, zero, text): (Kind, &str, &str),
) -> Lowered {
    let (result, _) = cx.view(result)?;
    let [a, b] = [0, 1].map(|at| Given::of(cx, args.get(at), &result, kind));
    let (a, b) = (a?, b?);
    cx.try_for_each(result.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        for (name, it) in [("a", &a), ("b", &b)] {
            let element = it.element(shader, &places, kind);
            shader.line(format!("var {name} = {};", rounded(&element, result.dtype)));
        }
        let is_zero = super::pointwise::compared("eq", kind, "b", zero);
        let refusal = cx.refusal(shader, op, Code::InvalidArgument, "ZeroDivisionError");
        shader.line(format!("var it = {zero};"));
        shader.line(format!("if ({is_zero}) {{ {refusal} }} else {{ it = {text}; }}"));
        let statement = shader.store(&result, &result.at(&places), &rounded("it", result.dtype));
        shader.line(statement);
        Ok(())
    })
}

/// An argument: a tensor that is broadcast, or a number.
enum Given {
    Tensor(View, Kind),
    Number(String),
}

impl Given {
    fn of(cx: &Lowering<'_>, it: Option<&Operand>, result: &View, kind: Kind) -> Result<Self, Reason> {
        match it {
            Some(Operand::Tensor(id)) => {
                let (view, own) = cx.view(*id)?;
                if view.sizes.len() > result.sizes.len() {
                    return Err("other sizes".into());
                }
                Ok(Given::Tensor(view.expanded(&result.sizes), own))
            }
            Some(number) => {
                let number = literal(number, kind).ok_or("a number that the data decides")?;
                Ok(Given::Number(number))
            }
            None => Err("other arguments".into()),
        }
    }

    fn element(&self, shader: &mut Shader, places: &[String], kind: Kind) -> String {
        match self {
            Given::Tensor(view, own) => converted(&shader.load(view, &view.at(places)), *own, kind),
            Given::Number(it) => it.clone(),
        }
    }
}

/// An assertion, which gives nothing.
pub(super) fn assertion(cx: &mut Lowering<'_>, op: &str, args: &[Operand]) -> Option<Lowered> {
    let message = match (op, args.get(1)) {
        ("aten._assert_async.default", _) => "Expected Tensor with single nonzero value, but got zero",
        ("aten._assert_async.msg", Some(Operand::Str(message))) => message,
        (_, _) => return None,
    };
    let Some(Operand::Tensor(id)) = args.first() else { return None };
    Some(asserted(cx, op, *id, message))
}

fn asserted(cx: &mut Lowering<'_>, op: &str, id: TensorId, message: &str) -> Lowered {
    let (view, kind) = cx.view(id)?;
    if view.numel() != 1 {
        return Err("an assertion of several elements".into());
    }
    cx.try_for_each(1, |cx, shader| {
        let is_true = converted(&shader.load(&view, &format!("{}u", view.offset)), kind, Kind::Bool);
        let refusal = cx.refusal(shader, op, Code::AssertionFailed, message);
        shader.line(format!("if (!{is_true}) {{ {refusal} }}"));
        Ok(())
    })
}
