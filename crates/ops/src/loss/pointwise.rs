//! Losses that compare two tensors element by element, made of other operators. As in PyTorch's decompositions, half
//! types are widened for the element-by-element part and rounded before the reduction.

use crate::core::decompositions::{Call, in_float32, tensor_of, to_dtype};
use crate::view::strides::listed;
use crate::{Cx, OpDef, Operand, Tol, Traced, Value, broadcast, check_cast, promote};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::composite("aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", mse_loss)
        .doc("The squared differences: each, their mean, or their sum."),
    OpDef::composite("aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", l1_loss)
        .doc("The absolute differences: each, their mean, or their sum."),
    OpDef::composite(
        "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
        smooth_l1_loss,
    )
    .doc("Squared differences up to beta, absolute ones beyond."),
    OpDef::composite(
        "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
        huber_loss,
    )
    .doc("Squared differences up to delta, absolute ones times delta beyond."),
    OpDef::composite(
        "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
        kl_div,
    )
    .doc("The Kullback-Leibler divergence of log-probabilities from target probabilities."),
    OpDef::composite(
        "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
        binary_cross_entropy,
    )
    .doc("The cross entropy of probabilities; logarithms are at least -100."),
    OpDef::composite(
        "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? \
             pos_weight=None, int reduction=1) -> Tensor",
        binary_cross_entropy_with_logits,
    )
    .doc("The cross entropy of the sigmoids of logits."),
    OpDef::composite("aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", soft_margin_loss)
        .doc("`log(1 + exp(-target * self))`."),
    OpDef::composite(
        "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int \
             reduction=1) -> Tensor",
        margin_ranking_loss,
    )
    .doc("`max(0, -target * (input1 - input2) + margin)`."),
    OpDef::composite(
        "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
        hinge_embedding_loss,
    )
    .doc("The distance itself where the target is 1, and `max(0, margin - self)` where it is -1."),
    OpDef::composite(
        "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int \
             reduction=1) -> Tensor",
        cosine_embedding_loss,
    )
    .doc("One minus the cosine where the target is 1, and the cosine beyond the margin where it is -1.")
    // Squares are summed before the root is taken, as in PyTorch.
    .tolerance(Tol::Scaled(2.0)),
    OpDef::composite(
        "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float \
             p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
        triplet_margin_loss,
    )
    .doc("How much further the positive is from the anchor than the negative, plus a margin, and at least zero."),
    OpDef::composite(
        "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int \
             reduction) -> Tensor",
        poisson_nll_loss,
    )
    .doc("The negative logarithm of the likelihood of a Poisson distribution."),
];

/// The loss as it is, its mean, or its sum.
pub(crate) fn reduce(cx: &mut Cx<'_>, args: &Call<'_>, loss: Traced, reduction: usize) -> Result<Vec<Traced>> {
    Ok(vec![match args.int(reduction)? {
        0 => loss,
        1 => cx.aten("mean", [&loss])?,
        2 => cx.aten("sum", [&loss])?,
        // As in PyTorch, where any other number is that of no reduction.
        _ => loss,
    }])
}

/// Refuses what is no reduction, as PyTorch does where the loss is an operator of its own.
fn check_reduction(args: &Call<'_>, reduction: usize) -> Result<()> {
    match args.int(reduction)? {
        0..=2 => Ok(()),
        other => Err(args.invalid(format!("{other} is not a valid value for reduction"))),
    }
}

/// Refuses what PyTorch does not write into a tensor of this one's sizes and dtype, as it computes these losses.
fn check_writes_into(cx: &Cx<'_>, args: &Call<'_>, into: usize, other: usize) -> Result<()> {
    let (into, other) = (cx.meta(*args.tensor(into)?), cx.meta(*args.tensor(other)?));
    check_cast(promote(&[Operand::Tensor(into), Operand::Tensor(other)]), into.dtype)?;
    let sizes = broadcast(args, &into.sizes, &other.sizes)?;
    if !args.agree(&sizes, &into.sizes) {
        let (own, both) = (listed(&into.sizes), listed(&sizes));
        return Err(args.bad_shape(format!("output with shape {own} doesn't match the broadcast shape {both}")));
    }
    Ok(())
}

/// The loss in the dtype of the argument into whose like PyTorch writes it.
fn as_argument(cx: &mut Cx<'_>, args: &Call<'_>, loss: Traced, index: usize) -> Result<Traced> {
    let dtype = cx.meta(*args.tensor(index)?).dtype;
    to_dtype(cx, loss, dtype)
}

/// Computes a loss in float32 where the arguments are of half types, rounds it, and reduces it.
fn reduced(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    reduction: usize,
    loss: impl FnOnce(&mut Cx<'_>, &[Traced]) -> Result<Traced>,
) -> Result<Vec<Traced>> {
    let loss = in_float32(cx, args, loss)?;
    reduce(cx, args, loss, reduction)
}

/// The first two arguments' difference.
fn difference(cx: &mut Cx<'_>, values: &[Traced]) -> Result<Traced> {
    cx.aten("sub.Tensor", [&values[0], &values[1]])
}

/// The same, of which one may be of bools: it takes part as it does in type promotion.
fn promoted_difference(cx: &mut Cx<'_>, values: &[Traced]) -> Result<Traced> {
    let [own, target] = [0, 1].map(|index| cx.meta_of(&values[index]).dtype);
    match (own, target) {
        (DType::Bool, DType::Bool) => difference(cx, values),
        (DType::Bool, other) => {
            let own = to_dtype(cx, values[0].clone(), other)?;
            difference(cx, &[own, values[1].clone()])
        }
        (other, DType::Bool) => {
            let target = to_dtype(cx, values[1].clone(), other)?;
            difference(cx, &[values[0].clone(), target])
        }
        _ => difference(cx, values),
    }
}

fn times(cx: &mut Cx<'_>, value: &Traced, factor: f64) -> Result<Traced> {
    cx.aten("mul.Scalar", [value, &Value::Float(factor)])
}

/// `number - value`.
fn from_number(cx: &mut Cx<'_>, number: f64, value: &Traced) -> Result<Traced> {
    cx.aten("rsub.Scalar", [value, &Value::Float(number)])
}

fn mse_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_reduction(args, 2)?;
    reduced(cx, args, 2, |cx, values| {
        let difference = promoted_difference(cx, values)?;
        cx.aten("pow.Tensor_Scalar", [&difference, &Value::int(2)])
    })
}

fn l1_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    reduced(cx, args, 2, |cx, values| {
        let difference = difference(cx, values)?;
        cx.aten("abs", [&difference])
    })
}

fn smooth_l1_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_reduction(args, 2)?;
    let beta = args.float(3)?;
    if beta < 0.0 {
        return Err(args.invalid("smooth_l1_loss does not support negative values for beta."));
    }
    reduced(cx, args, 2, |cx, values| {
        let difference = promoted_difference(cx, values)?;
        let distance = cx.aten("abs", [&difference])?;
        if beta == 0.0 {
            return Ok(distance);
        }
        let is_near = cx.aten("lt.Scalar", [&distance, &Value::Float(beta)])?;
        let square = cx.aten("mul.Tensor", [&distance, &distance])?;
        let near = times(cx, &square, 0.5 / beta)?;
        let far = cx.aten("sub.Scalar", [&distance, &Value::Float(0.5 * beta)])?;
        cx.aten("where.self", [&is_near, &near, &far])
    })
}

fn huber_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_reduction(args, 2)?;
    let delta = args.float(3)?;
    if delta <= 0.0 {
        return Err(args.invalid("huber_loss does not support non-positive values for delta."));
    }
    let dtype = |index: usize| args.tensor(index).map(|it| Operand::Tensor(cx.meta(*it)));
    check_cast(promote(&[dtype(0)?, dtype(1)?]), cx.meta(*args.tensor(0)?).dtype)?;
    let loss = in_float32(cx, args, |cx, values| {
        let difference = promoted_difference(cx, values)?;
        let distance = cx.aten("abs", [&difference])?;
        let is_near = cx.aten("le.Scalar", [&distance, &Value::Float(delta)])?;
        let square = cx.aten("mul.Tensor", [&distance, &distance])?;
        let near = times(cx, &square, 0.5)?;
        let beyond = cx.aten("sub.Scalar", [&distance, &Value::Float(0.5 * delta)])?;
        let far = times(cx, &beyond, delta)?;
        cx.aten("where.self", [&is_near, &near, &far])
    })?;
    let loss = as_argument(cx, args, loss, 0)?;
    reduce(cx, args, loss, 2)
}

fn kl_div(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [input, target] = [args.values[0].clone(), args.values[1].clone()];
    for it in [&input, &target] {
        let what = match cx.meta(tensor_of(it)).dtype.kind() {
            DTypeKind::Bool | DTypeKind::Int => "kl_div: Integral inputs not supported.",
            DTypeKind::Complex => "kl_div: Complex inputs not supported.",
            DTypeKind::Float => continue,
        };
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let loss = if args.bool(3)? {
        let probability = cx.aten("exp", [&target])?;
        let difference = cx.aten("sub.Tensor", [&target, &input])?;
        cx.aten("mul.Tensor", [&probability, &difference])?
    } else {
        let entropy = cx.aten("xlogy.Tensor", [&target, &target])?;
        let cross = cx.aten("mul.Tensor", [&target, &input])?;
        cx.aten("sub.Tensor", [&entropy, &cross])?
    };
    reduce(cx, args, loss, 2)
}

fn binary_cross_entropy(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let sizes = |cx: &Cx<'_>, index: usize| args.tensor(index).map(|it| cx.meta(*it).sizes.clone());
    if !args.agree(&sizes(cx, 0)?, &sizes(cx, 1)?) {
        return Err(args.bad_shape("binary_cross_entropy: the target and the input must be of the same sizes"));
    }
    let (input, target) = (cx.meta(*args.tensor(0)?).dtype, cx.meta(*args.tensor(1)?).dtype);
    if input != target {
        let what = format!("Found dtype {} but expected {}", target.cpp_name(), input.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    reduced(cx, args, 3, |cx, values| {
        let [input, target, weight] = [0, 1, 2].map(|index| values[index].clone());
        let bounded = |cx: &mut Cx<'_>, it: Traced| cx.aten("clamp_min", [&it, &Value::int(-100)]);
        let log = cx.aten("log", [&input])?;
        let log = bounded(cx, log)?;
        let minus = cx.aten("neg", [&input])?;
        let log_rest = cx.aten("log1p", [&minus])?;
        let log_rest = bounded(cx, log_rest)?;
        let rest = cx.aten("sub.Scalar", [&target, &Value::int(1)])?;
        let of_rest = cx.aten("mul.Tensor", [&rest, &log_rest])?;
        let of_target = cx.aten("mul.Tensor", [&target, &log])?;
        let loss = cx.aten("sub.Tensor", [&of_rest, &of_target])?;
        weighted(cx, loss, &weight)
    })
}

fn weighted(cx: &mut Cx<'_>, loss: Traced, weight: &Traced) -> Result<Traced> {
    if matches!(weight, Value::None) { Ok(loss) } else { cx.aten("mul.Tensor", [&loss, weight]) }
}

/// Follows `binary_cross_entropy_with_logits` of aten/src/ATen/native/Loss.cpp.
fn binary_cross_entropy_with_logits(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_writes_into(cx, args, 1, 0)?;
    let [input, target, weight, pos_weight] = [0, 1, 2, 3].map(|index| &args.values[index]);
    let mut log_sigmoid = cx.aten("log_sigmoid", [input])?;
    if !matches!(pos_weight, Value::None) {
        let extra = cx.aten("sub.Scalar", [pos_weight, &Value::int(1)])?;
        let factor = cx.aten("mul.Tensor", [&extra, target])?;
        let factor = cx.aten("add.Scalar", [&factor, &Value::int(1)])?;
        log_sigmoid = cx.aten("mul.Tensor", [&log_sigmoid, &factor])?;
    }
    let rest = from_number(cx, 1.0, target)?;
    let of_rest = cx.aten("mul.Tensor", [&rest, input])?;
    let loss = cx.aten("sub.Tensor", [&of_rest, &log_sigmoid])?;
    let loss = weighted(cx, loss, weight)?;
    let loss = as_argument(cx, args, loss, 1)?;
    reduce(cx, args, loss, 4)
}

fn soft_margin_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    check_writes_into(cx, args, 0, 1)?;
    let minus = cx.aten("neg", [&args.values[0]])?;
    let product = cx.aten("mul.Tensor", [&minus, &args.values[1]])?;
    let exponential = cx.aten("exp", [&product])?;
    let loss = cx.aten("log1p", [&exponential])?;
    let loss = as_argument(cx, args, loss, 0)?;
    // As in PyTorch, where any other number is that of the sum.
    if !(0..=1).contains(&args.int(2)?) {
        return Ok(vec![cx.aten("sum", [&loss])?]);
    }
    reduce(cx, args, loss, 2)
}

fn margin_ranking_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let difference = difference(cx, &args.values)?;
    let minus = cx.aten("neg", [&args.values[2]])?;
    let product = cx.aten("mul.Tensor", [&minus, &difference])?;
    let shifted = cx.aten("add.Scalar", [&product, &args.values[3]])?;
    let loss = cx.aten("clamp_min", [&shifted, &Value::int(0)])?;
    reduce(cx, args, loss, 4)
}

/// `positive` where the target is 1 and `negative` where it is -1, added up.
fn by_sign(cx: &mut Cx<'_>, target: &Traced, positive: (i64, Traced), negative: (i64, Traced)) -> Result<Traced> {
    let zeros = cx.aten("zeros_like", [&positive.1])?;
    let mut sides = Vec::new();
    for (other_sign, side) in [positive, negative] {
        let is_other = cx.aten("eq.Scalar", [target, &Value::int(other_sign)])?;
        sides.push(cx.aten("where.self", [&is_other, &zeros, &side])?);
    }
    cx.aten("add.Tensor", &sides)
}

fn hinge_embedding_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [input, target] = [args.values[0].clone(), args.values[1].clone()];
    // As in PyTorch, the margin is a tensor of the input's dtype, and rounds to it.
    let dtype = [("dtype", Value::DType(cx.meta(tensor_of(&input)).dtype))];
    let margin = cx.aten_with("scalar_tensor", [&Value::Float(args.float(2)?)], &dtype)?;
    let room = cx.aten("sub.Tensor", [&margin, &input])?;
    let room = cx.aten("clamp_min", [&room, &Value::int(0)])?;
    // As in PyTorch, each side is left out only where the target is exactly the other one.
    let loss = by_sign(cx, &target, (-1, input), (1, room))?;
    reduce(cx, args, loss, 3)
}

fn cosine_embedding_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [a, b, target] = [0, 1, 2].map(|index| &args.values[index]);
    let target_rank = cx.meta(tensor_of(target)).sizes.len();
    let rank = cx.meta(tensor_of(a)).sizes.len();
    if !matches!((target_rank, rank), (0, 1) | (1, 2)) {
        return Err(args.bad_shape(format!(
            "{target_rank}D target tensor expects {}D input tensors, but found inputs of {rank}D",
            target_rank + 1
        )));
    }
    let dims = Value::ints(&[target_rank as i64]);
    let dot = |cx: &mut Cx<'_>, x: &Traced, y: &Traced| {
        let product = cx.aten("mul.Tensor", [x, y])?;
        cx.aten("sum.dim_IntList", [&product, &dims])
    };
    let product = dot(cx, a, b)?;
    let mut squares = Vec::new();
    for side in [a, b] {
        let square = dot(cx, side, side)?;
        squares.push(cx.aten("add.Scalar", [&square, &Value::Float(1e-12)])?);
    }
    let norms = cx.aten("mul.Tensor", &squares)?;
    let norms = cx.aten("sqrt", [&norms])?;
    let cosine = cx.aten("div.Tensor", [&product, &norms])?;
    let apart = from_number(cx, 1.0, &cosine)?;
    let beyond = cx.aten("sub.Scalar", [&cosine, &args.values[3]])?;
    let beyond = cx.aten("clamp_min", [&beyond, &Value::int(0)])?;
    let zeros = cx.aten("zeros_like", [&apart])?;
    let is_same = cx.aten("eq.Scalar", [target, &Value::int(1)])?;
    let is_other = cx.aten("eq.Scalar", [target, &Value::int(-1)])?;
    let same = cx.aten("where.self", [&is_same, &apart, &zeros])?;
    let other = cx.aten("where.self", [&is_other, &beyond, &zeros])?;
    let loss = cx.aten("add.Tensor", [&same, &other])?;
    reduce(cx, args, loss, 4)
}

fn triplet_margin_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let distance = |cx: &mut Cx<'_>, a: usize, b: usize| {
        let value = |index: usize| &args.values[index];
        cx.aten("pairwise_distance", [value(a), value(b), value(4), value(5)])
    };
    let ranks: Vec<usize> = args.values[..3].iter().map(|it| cx.meta(tensor_of(it)).sizes.len()).collect();
    if ranks.iter().any(|&it| it != ranks[0]) {
        return Err(args.bad_shape(format!(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: \
             anchor {}D, positive {}D, and negative {}D inputs",
            ranks[0], ranks[1], ranks[2]
        )));
    }
    let to_positive = distance(cx, 0, 1)?;
    let mut to_negative = distance(cx, 0, 2)?;
    if args.bool(6)? {
        let between = distance(cx, 1, 2)?;
        to_negative = cx.aten("minimum", [&to_negative, &between])?;
    }
    let shifted = cx.aten("add.Scalar", [&to_positive, &args.values[3]])?;
    let excess = cx.aten("sub.Tensor", [&shifted, &to_negative])?;
    let loss = cx.aten("clamp_min", [&excess, &Value::int(0)])?;
    reduce(cx, args, loss, 7)
}

fn poisson_nll_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [input, target] = [args.values[0].clone(), args.values[1].clone()];
    let (rate, log) = if args.bool(2)? {
        (cx.aten("exp", [&input])?, input)
    } else {
        let shifted = cx.aten("add.Scalar", [&input, &args.values[4]])?;
        (input, cx.aten("log", [&shifted])?)
    };
    let expected = cx.aten("mul.Tensor", [&target, &log])?;
    let mut loss = cx.aten("sub.Tensor", [&rate, &expected])?;
    if args.bool(3)? {
        // Stirling's approximation of the logarithm of the target's factorial.
        let log = cx.aten("log", [&target])?;
        let power = cx.aten("mul.Tensor", [&target, &log])?;
        let power = cx.aten("sub.Tensor", [&power, &target])?;
        let circle = times(cx, &target, std::f64::consts::TAU)?;
        let root = cx.aten("log", [&circle])?;
        let root = times(cx, &root, 0.5)?;
        let stirling = cx.aten("add.Tensor", [&power, &root])?;
        let is_small = cx.aten("le.Scalar", [&target, &Value::int(1)])?;
        let stirling = cx.aten("masked_fill.Scalar", [&stirling, &is_small, &Value::int(0)])?;
        loss = cx.aten("add.Tensor", [&loss, &stirling])?;
    }
    reduce(cx, args, loss, 5)
}
