//! Normalisations of rows as one step each: where nobody reads their statistics, and where a program spells one out.

use crate::epilogue::{call, dense_sizes, dense_sizes_of, number, optional, tensor};
use crate::uses::{Uses, any_within, drop_steps};
use rustc_hash::FxHashSet;
use tracefx_ops::Registry;
use tracefx_plan::{Action, Buffer, FLOATS, Fused, Norm, NormStatistic, Operand, Plan, TensorId, TensorView};

/// Puts normalisations into one step each.
pub(crate) fn norms(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let mut dropped = FxHashSet::default();
    for at in 0..plan.steps.len() {
        let found = Found::called(plan, &uses, at).or_else(|| Found::spelled(plan, &uses, at));
        let Some((norm, steps)) = found.and_then(|it| it.step(plan)) else { continue };
        if let Some((&last, others)) = steps.split_last() {
            dropped.extend(others.iter().copied());
            plan.steps[last].action = Action::Fused(Fused::Norm(norm));
        }
    }
    drop_steps(plan, &dropped);
}

/// A normalisation of the last dimensions of a tensor.
struct Found {
    /// The steps, in order.
    steps: Vec<usize>,
    input: TensorId,
    statistic: NormStatistic,
    /// Of the sizes of a row.
    weight: Option<TensorId>,
    bias: Option<TensorId>,
    eps: f64,
    /// The elements of a row.
    n: usize,
    result: TensorId,
}

impl Found {
    /// A call of a normalisation.
    fn called(plan: &Plan, uses: &Uses, at: usize) -> Option<Self> {
        let (op, args, results) = call(plan, at)?;
        let (statistic, bias, eps) = match op {
            "aten.native_layer_norm.default" => (NormStatistic::Variance, optional(args.get(3))?, number(args.get(4))?),
            "aten.rms_norm.default" => {
                let eps = match args.get(3)? {
                    Operand::None => f64::from(f32::EPSILON),
                    other => number(Some(other))?,
                };
                (NormStatistic::MeanSquare, None, eps)
            }
            _ => return None,
        };
        let Some(Operand::List(sizes)) = args.get(1) else { return None };
        let size = |it: &Operand| if let Operand::Int(it) = it { usize::try_from(*it).ok() } else { None };
        let n = sizes.iter().map(size).product::<Option<usize>>()?;
        let (input, weight, result) = (tensor(args.first())?, optional(args.get(2))?, tensor(results.first())?);
        let found = Found { steps: vec![at], input, statistic, weight, bias, eps, n, result };
        results[1..].iter().all(|it| uses.is_unread(plan, it)).then_some(found)
    }

    /// `x * rsqrt(mean(x²) + eps) * weight`, each operator by itself, from the mean on.
    fn spelled(plan: &Plan, uses: &Uses, at: usize) -> Option<Self> {
        let (op, args, results) = call(plan, at)?;
        let squares = tensor(args.first())?;
        let rank = plan.tensor(squares).sizes.len() as i64;
        let is_last = matches!(args.get(1), Some(Operand::List(dims)) if matches!(dims[..], [Operand::Int(dim)] if dim == -1 || dim + 1 == rank));
        let is_kept = args.get(2) == Some(&Operand::Bool(true)) && args.get(3) == Some(&Operand::None);
        if op != "aten.mean.dim" || !is_last || !is_kept {
            return None;
        }
        let n = *dense_sizes(plan, squares)?.last()?;
        let square = uses.buffer(plan.tensor(squares).buffer).writers.iter().copied().rfind(|it| *it < at)?;
        let (op, args, _) = call(plan, square)?;
        let input = tensor(args.first())?;
        let is_square = match op {
            "aten.pow.Tensor_Scalar" => number(args.get(1)) == Some(2.0),
            "aten.mul.Tensor" => is_same(plan, args.first(), args.get(1)),
            _ => false,
        };
        let mut chain = vec![square];
        let mut last = squares;
        let follow = |chain: &mut Vec<usize>, last: &mut TensorId| {
            let next = uses.only_reader(plan, *last)?;
            let (op, args, results) = call(plan, next)?;
            chain.push(next);
            let read = std::mem::replace(last, tensor(results.first())?);
            Some((op, args, read))
        };
        let (_, _, _) = follow(&mut chain, &mut last).filter(|_| is_square && results.len() == 1)?;
        let (op, args, _) = follow(&mut chain, &mut last)?;
        let eps = number(args.get(1)).filter(|_| matches!(op, "aten.add.Tensor" | "aten.add.Scalar"))?;
        let is_one = args.get(2).is_none_or(|it| *it == Operand::Int(1));
        let (op, ..) = follow(&mut chain, &mut last).filter(|_| is_one)?;
        if op != "aten.rsqrt.default" {
            return None;
        }
        let other = |args: &'_ [Operand], read: TensorId| {
            let [a, b] = [tensor(args.first())?, tensor(args.get(1))?];
            let buffer = |it: TensorId| plan.tensor(it).buffer;
            match (buffer(a) == buffer(read), buffer(b) == buffer(read)) {
                (true, false) => Some(b),
                (false, true) => Some(a),
                (_, _) => None,
            }
        };
        let (op, args, read) = follow(&mut chain, &mut last)?;
        let factor = other(args, read).filter(|_| op == "aten.mul.Tensor")?;
        if plan.tensor(factor) != plan.tensor(input) {
            return None;
        }
        let (mut weight, mut end) = (None, last);
        let mut weighted = chain.clone();
        if let Some((op, args, read)) = follow(&mut weighted, &mut end)
            && op == "aten.mul.Tensor"
            && let Some(factor) = other(args, read)
            && dense_sizes(plan, factor).as_deref() == Some(&[n])
        {
            (weight, last, chain) = (Some(factor), end, weighted);
        }
        let (first, place) = (chain[0], chain[chain.len() - 1]);
        let is_changed = |it: TensorId| any_within(uses.writers(plan, plan.tensor(it).buffer), first..place);
        let found = Found {
            steps: chain,
            input,
            statistic: NormStatistic::MeanSquare,
            weight,
            bias: None,
            eps,
            n,
            result: last,
        };
        (!is_changed(input) && !weight.is_some_and(is_changed)).then_some(found)
    }

    /// The step, with its tensors as rows.
    fn step(self, plan: &mut Plan) -> Option<(Norm<TensorId>, Vec<usize>)> {
        let dtype = plan.tensor(self.result).dtype;
        let dense = |it: TensorId| dense_sizes_of(plan, it, dtype);
        if !FLOATS.contains(&dtype) {
            return None;
        }
        let (input, result) = (dense(self.input)?, dense(self.result)?);
        let m = input.iter().product::<usize>().checked_div(self.n)?;
        let is_own = matches!(plan.buffer(plan.tensor(self.result).buffer), Buffer::Scratch | Buffer::Result);
        let is_apart = plan.tensor(self.input).buffer != plan.tensor(self.result).buffer;
        let is_row = |it: TensorId| dense(it).is_some_and(|it| it.iter().product::<usize>() == self.n);
        let are_rows = self.weight.is_none_or(is_row) && self.bias.is_none_or(is_row);
        let begins = plan.tensor(self.result).offset.as_int() == Some(0);
        if input != result || m == 0 || !are_rows || !is_own || !is_apart || !begins {
            return None;
        }
        let mut seen = |id: TensorId, sizes: &[usize]| {
            let view = plan.tensor(id);
            let sizes: Vec<_> = sizes.iter().map(|it| (*it as i64).into()).collect();
            let offset = view.offset.clone();
            let rows = TensorView { offset, ..TensorView::row_major(view.buffer, dtype, &sizes) };
            plan.add_tensor(rows)
        };
        let norm = Norm {
            input: seen(self.input, &[m, self.n]),
            statistic: self.statistic,
            weight: self.weight.map(|it| seen(it, &[self.n])),
            bias: self.bias.map(|it| seen(it, &[self.n])),
            eps: self.eps,
            result: seen(self.result, &[m, self.n]),
        };
        Some((norm, self.steps))
    }
}

/// Whether both operands are one tensor.
fn is_same(plan: &Plan, a: Option<&Operand>, b: Option<&Operand>) -> bool {
    tensor(a).zip(tensor(b)).is_some_and(|(a, b)| plan.tensor(a) == plan.tensor(b))
}
