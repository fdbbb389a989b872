//! Products with constant weights, and what follows them, as one step each.

use crate::epilogue::{Chain, call, dense_sizes_of, is_weight, optional, tensor};
use crate::quantized::{self, Quantized, Scope, Sides, Tensor, unneeded};
use crate::uses::Uses;
use rustc_hash::{FxHashMap, FxHashSet};
use tracefx_ops::Registry;
use tracefx_plan::{Action, FLOATS, Fused, Operand, Plan, Product, QuantizedConvolution, TensorId, TensorView};

/// Puts products with what follows them into one step each.
pub(crate) fn products(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let (mut inner, mut sources, mut at_last) = (FxHashSet::default(), Vec::new(), FxHashMap::default());
    let mut read = FxHashSet::default();
    for at in 0..plan.steps.len() {
        match product(plan, &uses, &inner, at) {
            Some(Found::Floats(found)) => {
                inner.extend(found.chain.steps.iter().copied());
                let reads = [found.lhs].into_iter().chain(found.chain.epilogue.residual);
                read.extend(reads.map(|it| plan.tensor(it).buffer));
                at_last.insert(found.chain.last(), Found::Floats(found));
            }
            Some(Found::Integers(found)) => {
                inner.extend(found.steps.iter().copied());
                sources.extend(found.sources.iter().copied());
                at_last.insert(found.last(), Found::Integers(found));
            }
            None => {}
        }
    }
    inner.extend(unneeded(plan, &uses, &inner, &read, sources.iter()));
    for (at, mut step) in std::mem::take(&mut plan.steps).into_iter().enumerate() {
        match at_last.remove(&at) {
            Some(found) => {
                step.action = Action::Fused(match found {
                    Found::Floats(it) => Fused::Product(it.step(plan)),
                    Found::Integers(it) => quantized::added(&it.step, plan).into(),
                });
                plan.steps.push(step);
            }
            None if inner.contains(&at) => {}
            None => plan.steps.push(step),
        }
    }
}

/// A product with what follows it.
enum Found {
    Floats(Floats),
    Integers(Box<Quantized<QuantizedConvolution<Tensor>>>),
}

/// A product of numbers.
struct Floats {
    chain: Chain,
    lhs: TensorId,
    /// The right side, `[K, N]`.
    rhs: TensorView,
}

fn product(plan: &Plan, uses: &Uses, taken: &FxHashSet<usize>, at: usize) -> Option<Found> {
    let (op, args, results) = call(plan, at)?;
    let is_one = |at: usize| matches!(args.get(at), Some(Operand::Int(1)));
    let (lhs, rhs, bias) = match op {
        "aten.linear.default" => (args.first(), args.get(1), optional(args.get(2))?),
        "aten.bmm.default" | "aten.mm.default" | "aten.matmul.default" => (args.first(), args.get(1), None),
        "aten.addmm.default" if is_one(3) && is_one(4) => (args.get(1), args.get(2), optional(args.first())?),
        _ => return None,
    };
    let (lhs, rhs, result) = (tensor(lhs)?, tensor(rhs)?, tensor(results.first())?);
    let mut weight = plan.tensor(rhs).clone();
    match op {
        "aten.linear.default" => {
            weight.sizes.reverse();
            weight.strides.reverse();
        }
        // A batch of products with one right side.
        "aten.bmm.default" if weight.sizes[0].as_int() == Some(1) || weight.strides[0].as_int() == Some(0) => {
            weight.sizes.remove(0);
            weight.strides.remove(0);
        }
        _ => {}
    }
    let n = weight.known().filter(|it| it.sizes.len() == 2)?.sizes[1];
    let sides = Sides { lhs, rhs, columns: weight, bias };
    if let Some(found) = quantized::product(Scope { plan, uses, taken }, at, &sides) {
        return Some(Found::Integers(Box::new(found)));
    }
    let weight = sides.columns;
    let dtype = Some(weight.dtype).filter(|it| FLOATS.contains(it))?;
    let are_weights =
        is_weight(plan, uses, rhs, dtype, None) && bias.is_none_or(|it| is_weight(plan, uses, it, dtype, Some(&[n])));
    let (left, sizes) = (dense_sizes_of(plan, lhs, dtype)?, dense_sizes_of(plan, result, dtype)?);
    // A vector has no rows.
    if !are_weights || left.len() < 2 || sizes.len() != left.len() || sizes.contains(&0) || left.contains(&0) {
        return None;
    }
    let chain = Chain::behind(plan, uses, taken, at, result, bias, None);
    Some(Found::Floats(Floats { chain, lhs, rhs: weight }))
}

impl Floats {
    fn step(self, plan: &mut Plan) -> Product<TensorId> {
        let rhs = self.rhs;
        let [k, n] = [rhs.sizes[0].clone(), rhs.sizes[1].clone()];
        let m = plan.tensor(self.lhs).known().map_or(0, |it| it.sizes[..it.sizes.len() - 1].iter().product::<usize>());
        let mut matrix = |id: TensorId, n_cols: &tracefx_sym::SymInt| {
            let view = plan.tensor(id);
            let sizes = [(m as i64).into(), n_cols.clone()];
            let offset = view.offset.clone();
            let matrix = TensorView { offset, ..TensorView::row_major(view.buffer, view.dtype, &sizes) };
            plan.add_tensor(matrix)
        };
        let (lhs, result) = (matrix(self.lhs, &k), matrix(self.chain.result, &n));
        let mut epilogue = self.chain.epilogue;
        epilogue.residual = epilogue.residual.map(|it| matrix(it, &n));
        Product { lhs, rhs: plan.add_tensor(rhs), epilogue, result }
    }
}
