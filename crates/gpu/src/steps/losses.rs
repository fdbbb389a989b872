//! Losses of classes: an element of the loss reads the scores at the class that the data names. One workgroup adds up what is reduced.

use super::convolution::numbers;
use super::pointwise::{converted, rounded};
use super::workgroups::{sharing, summed};
use crate::lower::{Lowered, Lowering};
use crate::program::{Check, Reason};
use crate::shader::{Kind, Shader, View, coordinates, float, long};
use std::sync::Arc;
use tracefx_core::DType;
use tracefx_plan::{Operand, TensorId};

/// The most scores that one workgroup adds up.
const MOST: usize = 1 << 22;

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    Some(match op {
        "aten.nll_loss_forward.default" | "aten.nll_loss2d_forward.default" => likelihood(cx, op, args, results),
        "aten.multi_margin_loss.default" => margins(cx, op, args, results),
        _ => return None,
    })
}

/// What a loss is made of.
struct Loss {
    scores: View,
    target: View,
    target_kind: Kind,
    weight: Option<View>,
    n_classes: usize,
}

impl Loss {
    fn new(cx: &Lowering<'_>, args: &[Operand], weight: usize) -> Result<Self, Reason> {
        let (Some(Operand::Tensor(scores)), Some(Operand::Tensor(target))) = (args.first(), args.get(1)) else {
            return Err("other arguments".into());
        };
        let (scores, (target, target_kind)) = (cx.floats(*scores)?, cx.view(*target)?);
        let weight = if let Some(Operand::Tensor(it)) = args.get(weight) { Some(cx.floats(*it)?) } else { None };
        let dim = scores.sizes.len().checked_sub(1).ok_or("scores without dimensions")?.min(1);
        let n_classes = scores.sizes[dim];
        if n_classes == 0 || !matches!(target.dtype, DType::Int64 | DType::UInt8) {
            return Err(format!("classes of {} among {n_classes}", target.dtype.name()).into());
        }
        if Some(scores.numel()) != target.numel().checked_mul(n_classes) || scores.numel() > MOST {
            return Err("a loss of other sizes".into());
        }
        Ok(Loss { scores, target, target_kind, weight, n_classes })
    }

    /// Prints the class `class_at` of an item and whether it counts, which one that is ignored does not.
    fn class(&self, cx: &mut Lowering<'_>, shader: &mut Shader, op: &str, item: &[String], ignored: Option<i64>) {
        let check = Check { node: cx.node(), op: Arc::from(op), dim: 1, size: self.n_classes, is_wrapped: false };
        let at = cx.check(shader, check);
        let own = converted(&shader.load(&self.target, &self.target.at(item)), self.target_kind, Kind::Long);
        shader.line(format!("let named = {own};"));
        shader.line(match ignored {
            Some(it) => format!("let counts = !long_equal(named, {});", long(it)),
            None => "let counts = true;".to_owned(),
        });
        shader.line(format!("let class_at = position{at}(select(vec2<u32>(0u, 0u), named, counts));"));
    }

    /// The score of a class of an item.
    fn score(&self, shader: &mut Shader, item: &[String], class: &str) -> String {
        let mut from = item.to_vec();
        from.insert(from.len().min(1).min(self.scores.sizes.len() - 1), class.to_owned());
        shader.load(&self.scores, &self.scores.at(&from))
    }

    fn weight(&self, shader: &mut Shader) -> String {
        match &self.weight {
            Some(it) => shader.load(it, &it.at(&["class_at".to_owned()])),
            None => "1.0f".to_owned(),
        }
    }
}

/// `aten.nll_loss_forward`: each loss, or their sum or weighted mean; and the sum of the weights.
fn likelihood(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Lowered {
    let (Some(Operand::Int(reduction)), Some(Operand::Int(ignored)), [result, total]) =
        (args.get(3), args.get(4), results)
    else {
        return Err("other arguments".into());
    };
    let loss = Loss::new(cx, args, 2)?;
    let (result, total) = (cx.floats(*result)?, cx.floats(*total)?);
    let n = loss.target.numel();
    let each = |cx: &mut Lowering<'_>, shader: &mut Shader, index: &str| {
        let item = coordinates(shader, index, &loss.target.sizes, "c");
        loss.class(cx, shader, op, &item, Some(*ignored));
        let weight = loss.weight(shader);
        shader.line(format!("let weight = select(0.0f, {weight}, counts);"));
        let score = loss.score(shader, &item, "class_at");
        shader.line(format!("let loss = select(0.0f, -{score} * weight, counts);"));
        item
    };
    if *reduction == 0 {
        let mut dispatches = cx.try_for_each(n, |cx, shader| {
            let item = each(cx, shader, "i");
            let statement = shader.store(&result, &result.at(&item), &rounded("loss", result.dtype));
            shader.line(statement);
            Ok(())
        })?;
        // Nothing is added up where nothing is reduced.
        dispatches.extend(cx.for_each(total.numel(), |shader| {
            let statement = shader.store(&total, &format!("{}u + i", total.offset), "0.0f");
            shader.line(statement);
        })?);
        return Ok(dispatches);
    }
    let size = sharing(n);
    cx.for_each_row(1, size, |cx, shader| {
        shader.line("var sum = 0.0f;");
        shader.line("var total = 0.0f;");
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{"));
        each(cx, shader, "x");
        shader.line("sum += loss;");
        shader.line("total += weight;");
        shader.line("}");
        let (sum, weights) = (summed(shader, "sum", "f32", size), summed(shader, "total", "f32", size));
        shader.line("if (local.x == 0u) {");
        if *reduction == 1 {
            shader.line(format!("sum = by_zero({sum});"));
            shader.line(format!("if ({weights} != 0.0f) {{ sum = {sum} / {weights}; }}"));
        } else {
            shader.line(format!("sum = {sum};"));
        }
        for (view, value) in [(&result, "sum"), (&total, weights.as_str())] {
            let statement = shader.store(view, &view.at(&[]), &rounded(value, view.dtype));
            shader.line(statement);
        }
        shader.line("}");
        Ok(())
    })
}

/// `aten.multi_margin_loss`: how far other scores come up to the one of the class.
fn margins(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Lowered {
    let number = |at: usize| match args.get(at) {
        Some(Operand::Int(it)) => Ok(*it as f64),
        Some(Operand::Float(it)) => Ok(*it),
        _ => Err(Reason::from("other arguments")),
    };
    let (p, margin) = (number(2)?, float(number(3)? as f32));
    let reduction = numbers(args.get(5).ok_or("other arguments")?, 1)?[0];
    let loss = Loss::new(cx, args, 4)?;
    let result = cx.floats(*results.first().ok_or("no result")?)?;
    let (n, n_classes) = (loss.target.numel(), loss.n_classes);
    if loss.scores.sizes.len() > 2 || n == 0 {
        return Err("a loss of other sizes".into());
    }
    let each = |cx: &mut Lowering<'_>, shader: &mut Shader, index: &str| {
        let item = coordinates(shader, index, &loss.target.sizes, "c");
        // Of one item alone, the classes are the only dimension.
        let row = if loss.scores.sizes.len() == 1 { Vec::new() } else { item.clone() };
        loss.class(cx, shader, op, &item, None);
        let weight = loss.weight(shader);
        let own = loss.score(shader, &row, "class_at");
        shader.line(format!("let own = {own};"));
        shader.line("var loss = 0.0f;");
        shader.line(format!("for (var k = 0u; k < {n_classes}u; k++) {{"));
        let other = loss.score(shader, &row, "k");
        shader.line(format!("let excess = {margin} - own + {other};"));
        let power = if p == 1.0 { "excess" } else { "excess * excess" };
        shader.line(format!("if (k != class_at && excess > 0.0f) {{ loss += {weight} * ({power}); }}"));
        shader.line("}");
        shader.line(format!("loss = loss / {};", float(n_classes as f32)));
        item
    };
    if reduction == 0 {
        return cx.try_for_each(n, |cx, shader| {
            let item = each(cx, shader, "i");
            let statement = shader.store(&result, &result.at(&item), &rounded("loss", result.dtype));
            shader.line(statement);
            Ok(())
        });
    }
    let size = sharing(n);
    cx.for_each_row(1, size, |cx, shader| {
        shader.line("var sum = 0.0f;");
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{"));
        each(cx, shader, "x");
        shader.line("sum += loss;");
        shader.line("}");
        let sum = summed(shader, "sum", "f32", size);
        let value = if reduction == 1 { format!("{sum} / {}", float(n as f32)) } else { sum };
        let statement = shader.store(&result, &result.at(&[]), &rounded(&value, result.dtype));
        shader.line(format!("if (local.x == 0u) {{ {statement} }}"));
        Ok(())
    })
}
