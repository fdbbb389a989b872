//! Products with constant weights, and what follows them, as one step each.

use crate::dequantized::{self, Weights};
use crate::epilogue::{Chain, call, dense_sizes_of, is_changed, is_weight, optional, tensor};
use crate::quantized::{self, Quantized, Scope, Sides, Tensor, unneeded};
use crate::uses::Uses;
use rustc_hash::{FxHashMap, FxHashSet};
use std::convert::Infallible;
use tracefx_core::DType;
use tracefx_ops::Registry;
use tracefx_plan::{
    Action, DequantizedProduct, FLOATS, Fused, Operand, Plan, Product, QuantizedConvolution, TensorId, TensorView,
};
use tracefx_sym::SymInt;

/// Puts products with what follows them into one step each.
pub(crate) fn products(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let (mut inner, mut sources, mut at_last) = (FxHashSet::default(), Vec::new(), FxHashMap::default());
    let mut read = FxHashSet::default();
    for at in 0..plan.steps.len() {
        match product(plan, &uses, &inner, at) {
            Some(Found::Floats(found)) => {
                inner.extend(found.chain.steps.iter().copied());
                sources.extend_from_slice(found.rhs.sources());
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
                    Found::Floats(it) => it.step(plan),
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
    Floats(Box<Floats>),
    Integers(Box<Quantized<QuantizedConvolution<Tensor>>>),
}

/// A product of numbers.
struct Floats {
    chain: Chain,
    lhs: TensorId,
    rhs: Right,
}

/// The right side of a product of numbers.
enum Right {
    /// Numbers, `[K, N]`.
    Numbers(TensorView),
    Integers(Box<Weights>),
}

fn product(plan: &Plan, uses: &Uses, taken: &FxHashSet<usize>, at: usize) -> Option<Found> {
    let (op, args, results) = call(plan, at)?;
    let scope = Scope { plan, uses, taken };
    if let Some(weights) = dequantized::packed(scope, op, args) {
        let (lhs, result) = (tensor(args.first())?, tensor(results.first())?);
        let dtype = plan.tensor(result).dtype;
        return floats(scope, at, dtype, [lhs, result], None, Right::Integers(Box::new(weights)));
    }
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
    if let Some(found) = quantized::product(scope, at, &sides) {
        return Some(Found::Integers(Box::new(found)));
    }
    let weight = sides.columns;
    let dtype = Some(weight.dtype).filter(|it| FLOATS.contains(it))?;
    if !bias.is_none_or(|it| is_weight(plan, uses, it, dtype, Some(&[n]))) {
        return None;
    }
    let rhs = match is_weight(plan, uses, rhs, dtype, None) {
        true => Right::Numbers(weight),
        false => Right::Integers(Box::new(dequantized::spelled_out(scope, rhs, &weight)?)),
    };
    floats(scope, at, dtype, [lhs, result], bias, rhs)
}

/// The product of numbers of this dtype at `at`, with what follows it.
fn floats(
    scope: Scope<'_>,
    at: usize,
    dtype: DType,
    [lhs, result]: [TensorId; 2],
    bias: Option<TensorId>,
    mut rhs: Right,
) -> Option<Found> {
    let Scope { plan, uses, taken } = scope;
    let (left, sizes) = (dense_sizes_of(plan, lhs, dtype)?, dense_sizes_of(plan, result, dtype)?);
    // A vector has no rows.
    if left.len() < 2 || sizes.len() != left.len() || sizes.contains(&0) || left.contains(&0) {
        return None;
    }
    let scales = match &mut rhs {
        Right::Integers(it) if bias.is_none() => it.take_scales(scope, result),
        _ => None,
    };
    let (last, result) = scales.unwrap_or((at, result));
    let mut chain = Chain::behind(plan, uses, taken, last, result, bias, None);
    if last != at {
        chain.steps.insert(0, at);
    }
    if is_changed(plan, uses, &[rhs.sources(), &[at]].concat(), chain.last()) {
        return None;
    }
    Some(Found::Floats(Box::new(Floats { chain, lhs, rhs })))
}

impl Right {
    /// The steps that make numbers of integers.
    fn sources(&self) -> &[usize] {
        match self {
            Right::Numbers(_) => &[],
            Right::Integers(it) => &it.sources,
        }
    }

    /// The rows and columns.
    fn sizes(&self) -> [SymInt; 2] {
        match self {
            Right::Numbers(it) => [it.sizes[0].clone(), it.sizes[1].clone()],
            Right::Integers(it) => it.sizes.map(|it| SymInt::from(it as i64)),
        }
    }
}

impl Floats {
    fn step(self, plan: &mut Plan) -> Fused<TensorId> {
        let [k, n] = self.rhs.sizes();
        let m = plan.tensor(self.lhs).known().map_or(0, |it| it.sizes[..it.sizes.len() - 1].iter().product::<usize>());
        let mut matrix = |id: TensorId, n_cols: &SymInt| {
            let view = plan.tensor(id);
            let sizes = [(m as i64).into(), n_cols.clone()];
            let offset = view.offset.clone();
            let matrix = TensorView { offset, ..TensorView::row_major(view.buffer, view.dtype, &sizes) };
            plan.add_tensor(matrix)
        };
        let (lhs, result) = (matrix(self.lhs, &k), matrix(self.chain.result, &n));
        let mut epilogue = self.chain.epilogue;
        epilogue.residual = epilogue.residual.map(|it| matrix(it, &n));
        let (rhs, dequantization) = match self.rhs {
            Right::Numbers(it) => (it, None),
            Right::Integers(it) => (it.integers, Some(it.dequantization)),
        };
        let product = Product { lhs, rhs: plan.add_tensor(rhs), epilogue, result };
        let Some(dequantization) = dequantization else { return Fused::Product(product) };
        match dequantization.try_map(&mut |it| Ok::<_, Infallible>(it.add(plan))) {
            Ok(dequantization) => DequantizedProduct { product, dequantization }.into(),
        }
    }
}
