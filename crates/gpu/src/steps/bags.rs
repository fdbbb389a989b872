//! Bags of rows of a table: an invocation for each feature of a bag reads the rows of the bag in their order.

use super::pointwise::{converted, rounded};
use crate::lower::{Lowered, Lowering};
use crate::program::Check;
use crate::shader::{Kind, Shader, View, coordinates};
use std::sync::Arc;
use tracefx_core::DType;
use tracefx_plan::{Operand, TensorId};

/// The most bags, times the most rows that they have: each row looks for its bag among all.
const MOST: usize = 1 << 26;

/// What is called: `aten._embedding_bag`, with and without what its gradient needs.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    match op {
        "aten._embedding_bag.default" | "aten._embedding_bag_forward_only.default" => Some(bags(cx, op, args, results)),
        _ => None,
    }
}

/// The bags of a call.
struct Bags<'a> {
    op: &'a str,
    table: View,
    index: View,
    offsets: View,
    padding: i64,
    n_bags: usize,
}

impl Bags<'_> {
    /// The number at a place of a vector of positions.
    fn whole(view: &View, shader: &mut Shader, at: &str) -> String {
        let kind = if view.dtype == DType::Int32 { Kind::Int } else { Kind::Long };
        converted(&shader.load(view, &view.at(&[at.to_owned()])), kind, Kind::Long)
    }

    /// A check of positions below `size`, by its number.
    fn check(&self, cx: &mut Lowering<'_>, shader: &mut Shader, size: usize) -> usize {
        let check = Check { node: cx.node(), op: Arc::from(self.op), dim: 0, size, is_wrapped: false };
        cx.check(shader, check)
    }

    /// Prints where the bag `bag` begins and ends, `first` and `end`: each ends where the next one starts, the last one with the indices.
    fn ends(&self, cx: &mut Lowering<'_>, shader: &mut Shader) {
        let (n, n_bags, n_offsets) = (self.index.sizes[0], self.n_bags, self.offsets.sizes[0]);
        let (offset, zero) = (self.check(cx, shader, n + 1), self.check(cx, shader, 1));
        let first = Self::whole(&self.offsets, shader, "bag");
        shader.line(format!("let first = position{offset}({first});"));
        // The first bag begins with the indices, and none ends before it begins.
        shader.line(format!("if (bag == 0u) {{ _ = position{zero}(vec2<u32>(first, 0u)); }}"));
        shader.line(format!("var end = {n}u;"));
        shader.line(format!("if (bag + 1u < {n_offsets}u) {{"));
        let next = Self::whole(&self.offsets, shader, "(bag + 1u)");
        shader.line(format!("let next = position{offset}({next});"));
        shader.line(format!("if (next < first) {{ _ = position{zero}(vec2<u32>(first - next, 0u)); }}"));
        // An offset behind the last bag only has to be in order.
        shader.line(format!("if (bag + 1u < {n_bags}u) {{ end = next; }}"));
        shader.line("}");
    }

    /// Prints a loop over the positions `k` of the rows `row` of the bag that count, which is left open.
    fn rows(&self, cx: &mut Lowering<'_>, shader: &mut Shader) {
        let row = self.check(cx, shader, self.table.sizes[0]);
        shader.line("for (var k = first; k < end; k++) {");
        let index = Self::whole(&self.index, shader, "k");
        shader.line(format!("let row = position{row}({index});"));
        if let Ok(padding) = u32::try_from(self.padding) {
            shader.line(format!("if (row == {padding}u) {{ continue; }}"));
        }
    }
}

fn bags(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Lowered {
    let [Operand::Tensor(table), Operand::Tensor(index), Operand::Tensor(offsets), _, Operand::Int(mode), ..] = args
    else {
        return Err("other arguments".into());
    };
    let Some(Operand::Int(padding)) = args.get(8) else { return Err("other arguments".into()) };
    let samples = if let Some(Operand::Tensor(it)) = args.get(6) { Some(cx.floats(*it)?) } else { None };
    let [result, bag_of, counts, maxima] = results else { return Err("other arguments".into()) };
    let result = cx.floats(*result)?;
    let [bag_of, counts, maxima] = [bag_of, counts, maxima].map(|it| cx.view(*it));
    let ((bag_of, kind), (counts, _), (maxima, _)) = (bag_of?, counts?, maxima?);
    let (table, index, offsets) = (cx.floats(*table)?, cx.view(*index)?.0, cx.view(*offsets)?.0);
    let n_bags = result.sizes[0];
    if n_bags == 0 || table.sizes[0] == 0 || result.sizes[1] == 0 || (n_bags + 1).saturating_mul(index.sizes[0]) > MOST
    {
        return Err("bags of other sizes".into());
    }
    let it = Bags { op, table, index, offsets, padding: *padding, n_bags };
    let whole = |number: &str| match kind {
        Kind::Int => format!("i32({number})"),
        Kind::Float | Kind::Bool | Kind::Long => format!("vec2<u32>({number}, 0u)"),
    };
    let is_max = *mode == 2;
    let mut dispatches = cx.try_for_each(result.numel(), |cx, shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        shader.line("let bag = c0;");
        it.ends(cx, shader);
        shader.line("var sum = 0.0f;");
        shader.line("var n = 0u;");
        shader.line("var largest = 0u;");
        it.rows(cx, shader);
        let mut value = shader.load(&it.table, &it.table.at(&["row".to_owned(), places[1].clone()]));
        if let Some(samples) = &samples {
            value = format!("{value} * {}", shader.load(samples, &samples.at(&["k".to_owned()])));
        }
        shader.line(format!("let value = {value};"));
        if is_max {
            shader.line("if (n == 0u || value > sum) { sum = value; largest = row; }");
        } else {
            shader.line("sum += value;");
        }
        shader.line("n++;");
        shader.line("}");
        let value = if *mode == 1 { "sum / f32(max(n, 1u))" } else { "sum" };
        let statement = shader.store(&result, &result.at(&places), &rounded(value, result.dtype));
        shader.line(statement);
        if is_max {
            let statement = shader.store(&maxima, &maxima.at(&places), &whole("largest"));
            shader.line(statement);
        }
        Ok(())
    })?;
    // The sizes of sums are not told.
    let mut sizes = vec![&counts];
    if !is_max {
        sizes.push(&maxima);
    }
    for view in sizes {
        dispatches.extend(cx.try_for_each(view.numel(), |cx, shader| {
            shader.line("var n = 0u;");
            if *mode != 0 {
                shader.line("let bag = i;");
                it.ends(cx, shader);
                it.rows(cx, shader);
                shader.line("n++;");
                shader.line("}");
            }
            let statement = shader.store(view, &format!("{}u + i", view.offset), &whole("n"));
            shader.line(statement);
            Ok(())
        })?);
    }
    dispatches.extend(cx.for_each(bag_of.numel(), |shader| {
        shader.line("var bag = 0u;");
        let offset = Bags::whole(&it.offsets, shader, "k");
        shader.line(format!("for (var k = 0u; k < {n_bags}u; k++) {{"));
        shader.line(format!("if (!long_less(vec2<u32>(i, 0u), {offset})) {{ bag = k; }}"));
        shader.line("}");
        let statement = shader.store(&bag_of, &format!("{}u + i", bag_of.offset), &whole("bag"));
        shader.line(statement);
    })?);
    Ok(dispatches)
}
