//! Normalisations of rows: a workgroup for each row.

use super::args::Args;
use super::pointwise::rounded;
use super::workgroups::{sharing, summed};
use crate::lower::{Lowered, Lowering};
use crate::shader::{Shader, View, float};
use tracefx_core::DType;
use tracefx_plan::{Norm, NormStatistic, Operand, TensorId};

pub(super) fn norm(cx: &mut Lowering<'_>, it: &Norm<TensorId>) -> Lowered {
    let (input, result) = (cx.floats(it.input)?, cx.floats(it.result)?);
    let weight = it.weight.map(|it| cx.floats(it)).transpose()?;
    let bias = it.bias.map(|it| cx.floats(it)).transpose()?;
    let (m, n) = (input.sizes[0], input.sizes[1]);
    let size = sharing(n);
    cx.for_each_row(m, size, |_, shader| {
        let at = |view: &View| format!("{}u + row * {n}u + x", view.offset);
        let element = shader.load(&input, &at(&input));
        let mean = match it.statistic {
            NormStatistic::Variance => mean_of(shader, "sum", n, &element),
            NormStatistic::MeanSquare => "0.0f".to_owned(),
        };
        shader.line(format!("let middle = {mean};"));
        let square = mean_of(shader, "square", n, &format!("({element} - middle) * ({element} - middle)"));
        shader.line(format!("let factor = 1.0f / sqrt({square} + {});", float(it.eps as f32)));
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{"));
        let mut value = format!("({element} - middle) * factor");
        if let Some(weight) = &weight {
            value = format!("{value} * {}", shader.load(weight, &weight.at(&["x".to_owned()])));
        }
        if let Some(bias) = &bias {
            value = format!("{value} + {}", shader.load(bias, &bias.at(&["x".to_owned()])));
        }
        let statement = shader.store(&result, &at(&result), &value);
        shader.line(statement);
        shader.line("}");
        Ok(())
    })
}

/// The mean of `element` over all `x` below `n`.
fn mean_of(shader: &mut Shader, name: &str, n: usize, element: &str) -> String {
    let size = sharing(n);
    shader.line(format!("var {name} = 0.0f;"));
    shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{ {name} += {element}; }}"));
    let sum = summed(shader, name, "f32", size);
    format!("{sum} / {}", float(n as f32))
}

/// `native_group_norm` and `native_layer_norm`, rows that lie behind each other, with means and factors as further results; and batch
/// normalisation.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    if let Some(it) = Batch::of(op, args) {
        return Some(batch(cx, args, &it, results));
    }
    let is_group = match op {
        "aten.native_group_norm.default" => true,
        "aten.native_layer_norm.default" => false,
        _ => return None,
    };
    Some(rows(cx, is_group, args, results))
}

/// Where the statistics go that the batch has changed.
#[derive(Clone, Copy, PartialEq)]
enum Updates {
    /// Nowhere: there are none, or those of the batch are not taken.
    None,
    /// To the fourth and fifth result.
    Results,
    /// To the arguments that they are.
    Arguments,
}

/// A batch normalisation: the arguments that the running statistics and the number in the root are, how far those move where the statistics of
/// the batch are taken, and where to.
struct Batch<'a> {
    running: [usize; 2],
    momentum: Option<&'a Operand>,
    eps: usize,
    updates: Updates,
}

impl<'a> Batch<'a> {
    fn of(op: &str, args: &'a [Operand]) -> Option<Self> {
        let is_training = Args(args).is_true(5);
        let (momentum, eps, updates) = match op {
            "aten._native_batch_norm_legit_no_training.default" | "aten._batch_norm_no_update.default" => {
                (None, 6, Updates::None)
            }
            "aten._native_batch_norm_legit.default" | "aten.native_batch_norm.default" if is_training => {
                (args.get(6), 7, Updates::Arguments)
            }
            "aten._native_batch_norm_legit.default" | "aten.native_batch_norm.default" => (None, 7, Updates::None),
            "aten._batch_norm_with_update.default" => (args.get(5), 6, Updates::Arguments),
            "aten._native_batch_norm_legit_functional.default" if is_training => (args.get(6), 7, Updates::Results),
            "aten._native_batch_norm_legit.no_stats" => {
                let running = [usize::MAX, usize::MAX];
                return Some(Batch { running, momentum: args.get(4), eps: 5, updates: Updates::None });
            }
            _ => return None,
        };
        Some(Batch { running: [3, 4], momentum, eps, updates })
    }
}

fn batch(cx: &mut Lowering<'_>, args: &[Operand], it: &Batch<'_>, results: &[TensorId]) -> Lowered {
    let other = "other arguments";
    let tensor = |at: usize| match args.get(at) {
        Some(Operand::Tensor(it)) => cx.floats(*it).map(Some),
        _ => Ok(None),
    };
    let input = tensor(0)?.ok_or(other)?;
    let (weight, bias) = (tensor(1)?, tensor(2)?);
    let [mean, var] = [tensor(it.running[0])?, tensor(it.running[1])?];
    let Some(Operand::Float(eps)) = args.get(it.eps) else { return Err(other.into()) };
    // A fourth result alone is memory that other devices want, without elements.
    let n_outs = if it.updates == Updates::Results { 5 } else { 3 };
    let outs = results.iter().take(n_outs).map(|it| cx.floats(*it)).collect::<Result<Vec<_>, _>>()?;
    let result = outs.first().ok_or(other)?;
    if input.sizes.len() < 2 || input.dtype != DType::Float32 {
        return Err(other.into());
    }
    let others: Vec<usize> = (0..input.sizes.len()).filter(|it| *it != 1).collect();
    let (rows, target) = (input.with_dims(&others), result.with_dims(&others));
    let n: usize = rows.sizes[1..].iter().product();
    let momentum = match it.momentum {
        None => None,
        Some(Operand::Float(it)) => Some(*it),
        Some(_) => return Err(other.into()),
    };
    let updated = match (it.updates, &mean, &var, &outs[..]) {
        (Updates::Arguments, Some(mean), Some(var), _) => Some([(mean, mean), (var, var)]),
        (Updates::Results, Some(mean), Some(var), [_, _, _, new_mean, new_var]) => {
            Some([(mean, new_mean), (var, new_var)])
        }
        (Updates::None | Updates::Arguments | Updates::Results, _, _, _) => None,
    };
    if momentum.is_some() && n < 2 {
        return Err("a variance of too few numbers".into());
    }
    let size = sharing(n);
    cx.for_each_row(rows.sizes[0], size, |_, shader| {
        let place = |view: &View| {
            let (mut places, mut below) = (Vec::new(), 1);
            for size in rows.sizes[1..].iter().rev().map(|it| it.max(&1)) {
                places.push(format!("(x / {below}u % {size}u)"));
                below *= size;
            }
            places.push("row".to_owned());
            places.reverse();
            view.at(&places)
        };
        let channel = ["row".to_owned()];
        let element = shader.load(&rows, &place(&rows));
        let (middle, square) = match (&momentum, &mean, &var) {
            (None, Some(mean), Some(var)) => {
                (shader.load(mean, &mean.at(&channel)), shader.load(var, &var.at(&channel)))
            }
            (None, _, _) => return Err(other.into()),
            (Some(_), _, _) => {
                let mean = mean_of(shader, "sum", n, &element);
                shader.line(format!("let center = {mean};"));
                let square = mean_of(shader, "square", n, &format!("({element} - center) * ({element} - center)"));
                ("center".to_owned(), square)
            }
        };
        shader.line(format!("let middle = {middle};"));
        shader.line(format!("let variance = {square};"));
        shader.line(format!("let factor = 1.0f / sqrt(variance + {});", float(*eps as f32)));
        shader.line("if (local.x == 0u) {");
        for (view, value) in outs[1..].iter().take(2).zip(["middle", "factor"]) {
            if view.numel() > 0 {
                let statement = shader.store(view, &format!("{}u + row", view.offset), value);
                shader.line(statement);
            }
        }
        if let (Some(momentum), Some(updated)) = (momentum, updated) {
            let unbiased = format!("variance * {}", float(n as f32 / (n as f32 - 1.0)));
            let [kept, moved] = [1.0 - momentum, momentum].map(|it| float(it as f32));
            for ((old, new), value) in updated.into_iter().zip(["middle", &unbiased]) {
                let value = format!("{} * {kept} + {value} * {moved}", shader.load(old, &old.at(&channel)));
                let statement = shader.store(new, &new.at(&channel), &value);
                shader.line(statement);
            }
        }
        shader.line("}");
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{"));
        let mut value = format!("({element} - middle) * factor");
        if let Some(weight) = &weight {
            value = format!("{value} * {}", shader.load(weight, &weight.at(&channel)));
        }
        if let Some(bias) = &bias {
            value = format!("{value} + {}", shader.load(bias, &bias.at(&channel)));
        }
        let statement = shader.store(result, &place(&target), &rounded(&value, result.dtype));
        shader.line(statement);
        shader.line("}");
        Ok(())
    })
}

fn rows(cx: &mut Lowering<'_>, is_group: bool, args: &[Operand], results: &[TensorId]) -> Lowered {
    let tensor = |at| Args(args).tensor(at);
    let int = |at: usize| if let Some(Operand::Int(it)) = args.get(at) { usize::try_from(*it).ok() } else { None };
    let other = "other arguments";
    let input = cx.floats(tensor(0).ok_or(other)?)?;
    let (weights, n_rows, eps) = if is_group {
        ([tensor(1), tensor(2)], int(3).zip(int(6)).map(|(n, groups)| n * groups), args.get(7))
    } else {
        let n_last = if let Some(Operand::List(it)) = args.get(1) { it.len() } else { 0 };
        let lead = input.sizes.len().checked_sub(n_last).ok_or(other)?;
        ([tensor(2), tensor(3)], Some(input.sizes[..lead].iter().product()), args.get(4))
    };
    let n_rows = n_rows.ok_or(other)?;
    let Some(Operand::Float(eps)) = eps else { return Err(other.into()) };
    let [result, means, factors] = results else { return Err(other.into()) };
    let outs = [*result, *means, *factors].map(|it| cx.floats(it));
    let [result, means, factors] = outs;
    let (result, means, factors) = (result?, means?, factors?);
    let weights = weights.map(|it| it.map(|it| cx.floats(it)).transpose());
    let [weight, bias] = weights;
    let (weight, bias) = (weight?, bias?);
    let is_whole = |it: &View| tracefx_core::has_contiguous_strides(&it.sizes, &it.strides);
    if [&weight, &bias].iter().any(|it| it.as_ref().is_some_and(|it| !is_whole(it))) {
        return Err("weights with gaps".into());
    }
    let n = input.numel() / n_rows.max(1);
    let is_dense = is_whole(&input);
    // The channel of an element of a group: so many pixels share it.
    let channel = if is_group {
        let channels = input.sizes.get(1).copied().unwrap_or(1);
        let pixels: usize = input.sizes[2.min(input.sizes.len())..].iter().product();
        format!("(row * {n}u + x) / {}u % {}u", pixels.max(1), channels.max(1))
    } else {
        "x".to_owned()
    };
    let size = sharing(n);
    cx.for_each_row(n_rows, size, |_, shader| {
        let at = |view: &View| format!("{}u + row * {n}u + x", view.offset);
        let element = if is_dense {
            shader.load(&input, &at(&input))
        } else {
            // The place of an element that is counted in the order of the sizes.
            let (mut places, mut below) = (Vec::new(), 1);
            for size in input.sizes.iter().rev().map(|it| it.max(&1)) {
                places.push(format!("((row * {n}u + x) / {below}u % {size}u)"));
                below *= size;
            }
            places.reverse();
            shader.load(&input, &input.at(&places))
        };
        let mean = mean_of(shader, "sum", n, &element);
        shader.line(format!("let middle = {mean};"));
        let square = mean_of(shader, "square", n, &format!("({element} - middle) * ({element} - middle)"));
        shader.line(format!("let factor = 1.0f / sqrt({square} + {});", float(*eps as f32)));
        shader.line("if (local.x == 0u) {");
        for (view, value) in [(&means, "middle"), (&factors, "factor")] {
            if view.numel() == n_rows {
                let statement = shader.store(view, &format!("{}u + row", view.offset), &rounded(value, view.dtype));
                shader.line(statement);
            }
        }
        shader.line("}");
        shader.line(format!("for (var x = local.x; x < {n}u; x += {size}u) {{"));
        let mut value = format!("({element} - middle) * factor");
        if let Some(weight) = &weight {
            value = format!("{value} * {}", shader.load(weight, &format!("{}u + {channel}", weight.offset)));
        }
        if let Some(bias) = &bias {
            value = format!("{value} + {}", shader.load(bias, &format!("{}u + {channel}", bias.offset)));
        }
        let statement = shader.store(&result, &at(&result), &rounded(&value, result.dtype));
        shader.line(statement);
        shader.line("}");
        Ok(())
    })
}
