//! Attention as one step, which reads queries, keys and values where they lie and writes its result where the next step wants it: calls
//! of the operator, and what it is when it is decomposed or a program spells it out.

use crate::epilogue::{call, number, optional, tensor};
use crate::loops::COPIES;
use crate::matrices::{Matrices, refine};
use crate::uses::{Uses, any_within, drop_steps};
use rustc_hash::FxHashSet;
use tracefx_core::{DType, contiguous_strides};
use tracefx_ops::Registry;
use tracefx_plan::{Action, Attention, Buffer, BufferId, Extent, FLOATS, Fused, Operand, Plan, TensorId, TensorView};

/// The products that see their left side by its strides.
const PRODUCTS: [&str; 4] = ["aten.bmm.default", "aten.linear.default", "aten.matmul.default", "aten.mm.default"];

/// The operators that give a number as a tensor.
const FILLS: [&str; 2] = ["aten.full.default", "aten.scalar_tensor.default"];

/// Puts attention into one step each, without copies around it.
pub(crate) fn attention(plan: &mut Plan, registry: &Registry) {
    let uses = Uses::of(plan, registry);
    let (mut dropped, mut inner) = (FxHashSet::default(), FxHashSet::default());
    for at in 0..plan.steps.len() {
        let scope = Scope { plan, uses: &uses, gone: &dropped, at };
        let found = scope.called().or_else(|| scope.spelled_out());
        let Some((mut found, copied, seen)) = found.and_then(|it| scope.placed(it)) else { continue };
        dropped.extend(copied);
        for TensorId(id) in seen {
            let view = &mut plan.tensors[id as usize];
            *view = TensorView::row_major(view.buffer, view.dtype, &view.sizes);
        }
        inner.extend(found.steps.drain(..));
        inner.extend((0..at).filter(|it| call(plan, *it).is_some_and(|(op, ..)| FILLS.contains(&op))));
        plan.steps[at].action = Action::Fused(Fused::Attention(found.step(plan)));
    }
    drop_steps(plan, &dropped);
    // What stood before the copies that are gone has kept its number.
    let kept = |at: usize| at - dropped.iter().filter(|it| **it < at).count();
    drop_unread(plan, registry, &inner.iter().filter(|it| !dropped.contains(it)).map(|it| kept(*it)).collect());
}

/// Drops those of these steps whose results nobody reads.
fn drop_unread(plan: &mut Plan, registry: &Registry, steps: &FxHashSet<usize>) {
    let uses = Uses::of(plan, registry);
    let mut dropped = FxHashSet::default();
    for at in (0..plan.steps.len()).rev().filter(|it| steps.contains(it)) {
        let mut is_read = false;
        plan.steps[at].action.for_each_written(&mut |id| {
            let buffer = plan.tensor(id).buffer;
            let used = uses.buffer(buffer);
            let is_inner = matches!(plan.buffer(buffer), Buffer::Scratch) && !used.is_outer && used.writers[..] == [at];
            is_read |= !is_inner || !used.readers.iter().all(|it| dropped.contains(it));
        });
        if !is_read {
            dropped.insert(at);
        }
    }
    drop_steps(plan, &dropped);
}

/// Attention of heads.
struct Found {
    query: Matrices,
    key: Matrices,
    value: Matrices,
    mask: Option<Matrices>,
    masked: f64,
    is_causal: bool,
    scale: f64,
    is_safe: bool,
    result: Matrices,
    /// The steps that nobody may need any more.
    steps: Vec<usize>,
}

/// A step of a plan, in the place of which attention would run.
#[derive(Clone, Copy)]
struct Scope<'a> {
    plan: &'a Plan,
    uses: &'a Uses,
    /// The steps that copied what attention now writes in their place.
    gone: &'a FxHashSet<usize>,
    at: usize,
}

impl Scope<'_> {
    /// A call of the operator.
    fn called(self) -> Option<Found> {
        let (op, args, results) = call(self.plan, self.at)?;
        let (mask, dropout, is_causal, scale, has_groups) = match op {
            "aten.scaled_dot_product_attention.default" => {
                (args.get(3), args.get(4), args.get(5), args.get(6), args.get(7) == Some(&Operand::Bool(true)))
            }
            "aten._scaled_dot_product_flash_attention_for_cpu.default" => {
                // The sums of exponentials are for gradients.
                if !self.uses.is_unread(self.plan, results.get(1)?) {
                    return None;
                }
                (args.get(5), args.get(3), args.get(4), args.get(6), false)
            }
            _ => return None,
        };
        let [query, key, value] = [0, 1, 2].map(|it| self.matrices(args.get(it)));
        let (query, mut key, mut value, result) = (query?, key?, value?, self.matrices(results.first())?);
        let batch = result.batch_sizes();
        let scale = match scale? {
            Operand::None => 1.0 / (query.columns.0 as f64).sqrt(),
            other => number(Some(other))?,
        };
        let mask = match optional(mask)? {
            Some(id) => Some(self.mask(id, &batch, [query.rows.0, key.rows.0])?),
            None => None,
        };
        let spread = |it: Matrices| {
            let matrix = [it.rows.0, it.columns.0];
            Matrices::expanded(self.plan, it.of, &batch, matrix)
        };
        let query = spread(query)?;
        if has_groups {
            for side in [&mut key, &mut value] {
                // Heads of a group are a dimension along which keys and values are the same.
                let heads = side.batch.last()?.0;
                let group = batch.last()?.checked_div(heads)?;
                let shared = [&batch[..batch.len() - 1], &[heads]].concat();
                *side = Matrices::expanded(self.plan, side.of, &shared, [side.rows.0, side.columns.0])?;
                side.batch.push((group, 0));
            }
        } else {
            (key, value) = (spread(key)?, spread(value)?);
        }
        let is_causal = is_causal == Some(&Operand::Bool(true));
        let is_plain = number(dropout) == Some(0.0);
        let masked = f64::NEG_INFINITY;
        let found =
            Found { query, key, value, mask, masked, is_causal, scale, is_safe: true, result, steps: Vec::new() };
        is_plain.then_some(found)
    }

    /// Batched products with a softmax between them. This step is the second product.
    fn spelled_out(self) -> Option<Found> {
        let (weights, value, result) = self.product(self.at)?;
        let mut steps = Vec::new();
        let (mut scores, is_safe) = self.softmax(weights, &mut steps)?;
        let sizes = self.plan.tensor(scores).known()?.sizes;
        let (batch, matrix) = sizes.split_last_chunk::<2>()?;
        if !self.plan.tensor(weights).known()?.sizes.ends_with(matrix) {
            return None;
        }
        let (mut mask, mut masked, mut scale) = (None, f64::NEG_INFINITY, 1.0);
        loop {
            let step = self.whole(scores)?;
            steps.push(step);
            if let Some((source, factor)) = self.scaled(step) {
                (scores, scale) = (source, scale * factor);
            } else if let Some((query, key, _)) = self.product(step) {
                let (query, key) =
                    (self.matrices(Some(&Operand::Tensor(query)))?, self.matrices(Some(&Operand::Tensor(key)))?);
                let (value, result) =
                    (self.matrices(Some(&Operand::Tensor(value)))?, self.matrices(Some(&Operand::Tensor(result)))?);
                let found = Found {
                    query,
                    key: key.transposed(),
                    value,
                    mask,
                    masked,
                    is_causal: false,
                    scale,
                    is_safe,
                    result,
                    steps,
                };
                // What is spelled out in halves rounds its scores.
                let is_float = self.dtype(found.result.of) == DType::Float32;
                let is_one = is_float && found.query.rows.0 == matrix[0] && found.key.rows.0 == matrix[1];
                // What was read before is read when this step runs.
                let is_kept =
                    [&found.query, &found.key].into_iter().chain(&found.mask).all(|it| !self.is_changed(it.of, step));
                return (is_one && is_kept && self.are_unread(&found.steps)).then_some(found);
            } else {
                // A mask is added to scores that were scaled before, or says where they count.
                let (op, args, _) = call(self.plan, step).filter(|_| mask.is_none() && scale == 1.0)?;
                let is_scores = |it: TensorId| {
                    let is_whole = self.plan.tensor(it).known().is_some_and(|it| it.sizes == sizes);
                    is_whole && self.whole(it).is_some_and(|it| self.scaled(it).is_some() || self.product(it).is_some())
                };
                let [a, b] = [tensor(args.first())?, tensor(args.get(1))?];
                let (source, added, dtype) = match op {
                    "aten.add.Tensor" if args.get(2) != Some(&Operand::Int(1)) => return None,
                    "aten.add.Tensor" if is_scores(a) => (a, b, DType::Float32),
                    "aten.add.Tensor" => (b, a, DType::Float32),
                    "aten.where.self" => {
                        masked = self.constant(args.get(2))?;
                        (b, a, DType::Bool)
                    }
                    _ => return None,
                };
                if !is_scores(source) || self.plan.tensor(added).dtype != dtype {
                    return None;
                }
                (scores, mask) = (source, Some(self.mask(added, batch, *matrix)?));
            }
        }
    }

    /// The scores whose softmax these weights are, and whether rows that are masked altogether are zeros.
    fn softmax(self, weights: TensorId, steps: &mut Vec<usize>) -> Option<(TensorId, bool)> {
        let mut weights = weights;
        let mut step = self.whole(weights)?;
        // As `aten._safe_softmax` is decomposed: `where(not any(scores != -inf), 0, softmax(scores))`.
        let mut hidden = None;
        loop {
            steps.push(step);
            let (op, args, _) = call(self.plan, step)?;
            match op {
                "aten.where.self" if hidden.is_none() => {
                    let zeros = self.whole(tensor(args.get(1))?)?;
                    let is_zero = call(self.plan, zeros).is_some_and(|(op, args, _)| {
                        op == "aten.full_like.default" && number(args.get(1)) == Some(0.0)
                    });
                    if !is_zero {
                        return None;
                    }
                    steps.push(zeros);
                    (hidden, weights) = (Some(tensor(args.first())?), tensor(args.get(2))?);
                }
                "aten._softmax.default" | "aten._safe_softmax.default" => {
                    let scores = tensor(args.first())?;
                    let rank = self.plan.tensor(scores).sizes.len() as i64;
                    let is_last = matches!(args.get(1), Some(Operand::Int(dim)) if *dim == -1 || dim + 1 == rank);
                    let is_converted = matches!(args.get(2), Some(Operand::Bool(true) | Operand::DType(_)));
                    if !is_last || is_converted || hidden.is_some_and(|it| !self.is_hidden(it, scores, steps)) {
                        return None;
                    }
                    return Some((scores, hidden.is_some() || op == "aten._safe_softmax.default"));
                }
                _ => weights = self.scaled(step).filter(|it| it.1 == 1.0)?.0,
            }
            let is_alike = self.n_elements(weights)? == self.n_elements(self.result(step)?)?;
            step = self.whole(weights).filter(|_| is_alike)?;
        }
    }

    /// Whether a condition says that all scores of a row are minus infinity.
    fn is_hidden(self, condition: TensorId, scores: TensorId, steps: &mut Vec<usize>) -> bool {
        let mut follow = |id: TensorId, wanted: &str| {
            let step = self.whole(id)?;
            let (op, args, _) = call(self.plan, step).filter(|it| it.0 == wanted)?;
            steps.push(step);
            Some((tensor(args.first())?, args, op))
        };
        let mut all = || {
            let (any, ..) = follow(condition, "aten.logical_not.default")?;
            let (seen, args, _) = follow(any, "aten.any.dim")?;
            let rank = self.plan.tensor(scores).sizes.len() as i64;
            let is_last = matches!(args.get(1), Some(Operand::Int(dim)) if *dim == -1 || dim + 1 == rank);
            let is_kept = args.get(2) == Some(&Operand::Bool(true));
            let (least, ..) = follow(seen, "aten.logical_not.default").filter(|_| is_last && is_kept)?;
            let (compared, args, _) = follow(least, "aten.eq.Scalar")?;
            let is_same = self.plan.tensor(compared) == self.plan.tensor(scores);
            (number(args.get(1)) == Some(f64::NEG_INFINITY)).then_some(is_same)
        };
        all().unwrap_or(false)
    }

    /// The operands and the result of a batched product.
    fn product(self, step: usize) -> Option<(TensorId, TensorId, TensorId)> {
        let (op, args, results) = call(self.plan, step)?;
        (op == "aten.bmm.default").then_some((tensor(args.first())?, tensor(args.get(1))?, tensor(results.first())?))
    }

    /// What a step copies, and by which factor it is multiplied on the way.
    fn scaled(self, step: usize) -> Option<(TensorId, f64)> {
        match &self.plan.steps[step].action {
            _ if self.gone.contains(&step) => None,
            Action::Copy { from, .. } => Some((*from, 1.0)),
            Action::Call { op, args, results } => {
                let source = tensor(args.first())?;
                let is_alike = self.plan.tensor(source).dtype == self.plan.tensor(tensor(results.first())?).dtype;
                let factor = match &**op {
                    _ if !is_alike => None,
                    op if COPIES.contains(&op) || op == "aten.reshape.default" => Some(1.0),
                    "aten.mul.Scalar" | "aten.mul.Tensor" => self.constant(args.get(1)),
                    "aten.div.Scalar" | "aten.div.Tensor" => self.constant(args.get(1)).map(|it| 1.0 / it),
                    _ => None,
                };
                Some((source, factor?))
            }
            Action::Update { .. } | Action::Fused(_) | Action::ControlFlow { .. } => None,
        }
    }

    /// A number, or a tensor that is filled with one.
    fn constant(self, operand: Option<&Operand>) -> Option<f64> {
        let Some(Operand::Tensor(id)) = operand else { return number(operand) };
        let is_single = self.plan.tensor(*id).sizes.is_empty();
        let (op, args, _) = call(self.plan, self.writer(*id).filter(|_| is_single)?)?;
        match op {
            "aten.full.default" => number(args.get(1)),
            "aten.scalar_tensor.default" => number(args.first()),
            _ => None,
        }
    }

    fn dtype(self, id: TensorId) -> DType {
        self.plan.tensor(id).dtype
    }

    fn buffer(self, id: TensorId) -> BufferId {
        self.plan.tensor(id).buffer
    }

    /// The only step that writes the memory of a tensor, which is of the plan.
    fn writer(self, id: TensorId) -> Option<usize> {
        let used = self.uses.buffer(self.buffer(id));
        match used.writers[..] {
            [writer] if writer < self.at && matches!(self.plan.buffer(self.buffer(id)), Buffer::Scratch) => {
                Some(writer)
            }
            _ => None,
        }
    }

    /// The step that writes a tensor, all of which is read in the order in which it is written.
    fn whole(self, id: TensorId) -> Option<usize> {
        let writer = self.writer(id)?;
        let in_order = |id: TensorId| {
            let extent = self.plan.tensor(id).known();
            extent.is_some_and(|it| it.is_row_major() && it.offset == 0)
        };
        let written = self.result(writer)?;
        let is_whole = self.n_elements(written) == self.n_elements(id);
        (in_order(id) && in_order(written) && is_whole).then_some(writer)
    }

    fn n_elements(self, id: TensorId) -> Option<usize> {
        Some(self.plan.tensor(id).known()?.sizes.iter().product())
    }

    /// Whether nobody else reads what these steps give.
    fn are_unread(self, steps: &[usize]) -> bool {
        steps.iter().all(|&step| {
            let mut res = true;
            self.plan.steps[step].action.for_each_written(&mut |id| {
                let used = self.uses.buffer(self.buffer(id));
                res &= !used.is_outer && used.readers.iter().all(|it| *it == self.at || steps.contains(it));
            });
            res
        })
    }

    fn matrices(self, operand: Option<&Operand>) -> Option<Matrices> {
        let id = tensor(operand).filter(|it| FLOATS.contains(&self.dtype(*it)))?;
        Matrices::of(self.plan, id)
    }

    fn mask(self, id: TensorId, batch: &[usize], scores: [usize; 2]) -> Option<Matrices> {
        let dtype = self.dtype(id);
        let is_mask = dtype == DType::Bool || FLOATS.contains(&dtype);
        Matrices::expanded(self.plan, id, batch, scores).filter(|_| is_mask)
    }

    /// Whether memory is written between a step and this one.
    fn is_changed(self, id: TensorId, since: usize) -> bool {
        any_within(self.uses.writers(self.plan, self.buffer(id)), since + 1..self.at)
    }

    /// Attention that reads what its operands are copies of, and writes where its result is copied to by the steps that are given. The
    /// tensors that are given become row-major.
    fn placed(self, mut found: Found) -> Option<(Found, Vec<usize>, Vec<TensorId>)> {
        let masks = found.mask.iter().map(|it| it.of).filter(|it| self.dtype(*it) != DType::Bool);
        let mut floats = [found.query.of, found.key.of, found.value.of].into_iter().chain(masks);
        if !floats.all(|it| self.dtype(it) == self.dtype(found.result.of)) {
            return None;
        }
        // A product of halves is rounded.
        let can_scale = self.dtype(found.result.of) == DType::Float32;
        for side in [&mut found.query, &mut found.key] {
            let factor = self.at_origin(side, can_scale, &mut found.steps);
            found.scale *= factor;
        }
        self.at_origin(&mut found.value, false, &mut found.steps);
        let (mut gone, mut writer) = (Vec::new(), self.at);
        while let Some((step, result)) = self.copied(&found.result, writer) {
            (found.result, writer) = (result, step);
            gone.push(step);
        }
        let mut seen = Vec::new();
        if let Some((result, ids)) = self.seen(&found.result, writer) {
            (found.result, seen) = (result, ids);
        }
        let Found { query, key, value, mask, result, .. } = &mut found;
        let mut all = vec![&mut query.batch, &mut key.batch, &mut value.batch, &mut result.batch];
        all.extend(mask.as_mut().map(|it| &mut it.batch));
        refine(&mut all)?;
        let reads = [&found.query, &found.key, &found.value].into_iter().chain(&found.mask);
        let written = self.buffer(found.result.of);
        let is_own = matches!(self.plan.buffer(written), Buffer::Scratch | Buffer::Result);
        let is_apart = reads.into_iter().all(|it| self.buffer(it.of) != written);
        (is_own && is_apart).then_some((found, gone, seen))
    }

    /// Moves an operand to what it is a copy of, as long as that is the same when this step runs. Gives the factor by which it is multiplied
    /// on the way.
    fn at_origin(self, side: &mut Matrices, can_scale: bool, steps: &mut Vec<usize>) -> f64 {
        let mut factor = 1.0;
        let mut next = |side: &Matrices| {
            let step = self.writer(side.of)?;
            let (from, own) = self.scaled(step).filter(|it| can_scale || it.1 == 1.0)?;
            let to = self.result(step)?;
            let (here, there) = (self.plan.tensor(to).known()?, self.plan.tensor(from).known()?);
            let moved = side.moved(&here, &there, from)?;
            let is_plain = self.dtype(from) == self.dtype(side.of) && !self.is_changed(from, step);
            is_plain.then(|| {
                factor *= own;
                steps.push(step);
                moved
            })
        };
        while let Some(moved) = next(side) {
            *side = moved;
        }
        factor
    }

    /// Where the next step copies a result that the step `writer` gives, and the number of that step: nobody else reads the result, and
    /// nobody looks at the other memory from this step on.
    fn copied(self, result: &Matrices, writer: usize) -> Option<(usize, Matrices)> {
        let buffer = self.buffer(result.of);
        let used = self.uses.buffer(buffer);
        let is_inner =
            matches!(self.plan.buffer(buffer), Buffer::Scratch) && !used.is_outer && used.writers[..] == [writer];
        let [reader] = used.readers[..] else { return None };
        let (from, factor) = self.scaled(reader)?;
        let to = self.result(reader)?;
        let place = self.buffer(to);
        let is_own = matches!(self.plan.buffer(place), Buffer::Scratch | Buffer::Result) && place != buffer;
        let others = self.uses.buffer(place);
        let is_used = any_within(&others.readers, self.at..reader) || any_within(&others.writers, self.at..reader);
        if !is_inner || !is_own || is_used || factor != 1.0 || self.dtype(to) != self.dtype(result.of) {
            return None;
        }
        let (here, there) = (self.plan.tensor(from).known()?, self.plan.tensor(to).known()?);
        let n_elements = |sizes: &[usize]| sizes.iter().product::<usize>();
        let is_whole = n_elements(&here.sizes) == n_elements(&result.batch_sizes()) * result.rows.0 * result.columns.0;
        Some((reader, result.moved(&here, &there, to).filter(|_| is_whole && there.is_apart())?))
    }

    /// The result as products see it, which read it in another order than it is written in: row-major, with the tensors that see it so.
    fn seen(self, result: &Matrices, writer: usize) -> Option<(Matrices, Vec<TensorId>)> {
        let buffer = self.buffer(result.of);
        let used = self.uses.buffer(buffer);
        let is_inner =
            matches!(self.plan.buffer(buffer), Buffer::Scratch) && !used.is_outer && used.writers[..] == [writer];
        let is_product = |it: &usize| call(self.plan, *it).is_some_and(|(op, ..)| PRODUCTS.contains(&op));
        if !is_inner || !used.readers.iter().all(is_product) {
            return None;
        }
        let mut ids = Vec::new();
        for &reader in &used.readers {
            self.plan.steps[reader].action.for_each_tensor(&mut |it| {
                if self.buffer(it) == buffer {
                    ids.push(it);
                }
            });
        }
        let first = *ids.first()?;
        let here = self.plan.tensor(first).known()?;
        let n_elements = result.batch_sizes().iter().product::<usize>() * result.rows.0 * result.columns.0;
        let is_one = ids.iter().all(|it| self.plan.tensor(*it) == self.plan.tensor(first));
        if !is_one || here.is_row_major() || self.n_elements(first) != Some(n_elements) {
            return None;
        }
        let there = Extent { strides: contiguous_strides(&here.sizes), offset: 0, ..here.clone() };
        Some((result.moved(&here, &there, first)?, ids))
    }

    /// The tensor that a step gives.
    fn result(self, step: usize) -> Option<TensorId> {
        let mut res = None;
        self.plan.steps[step].action.for_each_written(&mut |it| res = Some(it));
        res
    }
}

impl Found {
    fn step(self, plan: &mut Plan) -> Attention<TensorId> {
        let Found { query, key, value, mask, masked, is_causal, scale, is_safe, result, .. } = self;
        Attention {
            query: query.add(plan),
            key: key.add(plan),
            value: value.add(plan),
            mask: mask.map(|it| it.add(plan)),
            masked,
            is_causal,
            scale,
            is_safe,
            result: result.add(plan),
        }
    }
}
