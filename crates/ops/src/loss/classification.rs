//! Losses of classes: the negative log-likelihood, the cross entropy, and margins between scores.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::index;
use crate::loss::classification_gradient;
use crate::loss::pointwise::reduce;
use crate::sort;
use crate::{Args, Cx, OpDef, Output, Tol, Traced, Value, contiguous};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::{Func, SymFloat, SymInt, call};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) \
             -> (Tensor output, Tensor total_weight)",
        nll_loss_forward,
    )
    .decompose(index::decompose::nll_loss_forward)
    .vjp_of_first(1, classification_gradient::nll_loss)
    .doc("The negative log-probability of each target class, and the sum of the weights that counted.")
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt \
             ignore_index) -> (Tensor output, Tensor total_weight)",
        nll_loss2d_forward,
    )
    .decompose(index::decompose::nll_loss_forward)
    .vjp_of_first(1, classification_gradient::nll_loss2d)
    .doc(
        "The negative log-probability of the target class of each pixel, and the sum of the weights that \
         counted.",
    )
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, \
             int reduction=1) -> Tensor",
        multi_margin_loss,
    )
    .decompose(index::decompose::multi_margin_loss)
    .vjp(classification_gradient::multi_margin_loss)
    .doc(
        "How far each class comes nearer to the target class than a margin, to the power of p, averaged over \
         classes.",
    )
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, \
             Tensor is_target)",
        multilabel_margin_loss_forward,
    )
    .decompose(sort::decompose::multilabel_margin_loss)
    .vjp_of_first(1, classification_gradient::multilabel_margin_loss)
    .doc("How far each other class comes nearer to each target class than one, and which classes are targets.")
    .tolerance(Tol::Default),
    OpDef::composite("aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", forward)
        .doc("How far each other class comes nearer to each target class than one, averaged over classes."),
    OpDef::composite(
        "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt \
             ignore_index=-100) -> Tensor",
        forward,
    )
    .doc("The negative log-probability of each target class."),
    OpDef::composite(
        "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt \
             ignore_index=-100) -> Tensor",
        forward,
    )
    .doc("The negative log-probability of the target class of each pixel."),
    OpDef::composite(
        "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt \
             ignore_index=-100) -> Tensor",
        nll_loss_nd,
    )
    .doc("The negative log-probability of each target class, for any number of dimensions."),
    OpDef::composite(
        "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt \
             ignore_index=-100, float label_smoothing=0.) -> Tensor",
        cross_entropy_loss,
    )
    .doc("The cross entropy of logits and target classes, or target probabilities."),
];

/// The loss of items with `n_lead` dimensions in front of the classes: none, or a batch.
fn margin_outputs(args: &Args<'_, TensorMeta>, reduction: usize) -> Result<Vec<Output>> {
    let input = args.tensor(0)?;
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, &args.op.name));
    }
    if input.sizes.len() > 2 || input.sizes.last().is_some_and(|it| *it == 0) {
        let show = input.sizes.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        return Err(args.bad_shape(format!(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [{show}]"
        )));
    }
    let is_each = args.int(reduction)? == 0 && input.sizes.len() == 2;
    let sizes = if is_each { input.sizes[..1].to_vec() } else { Vec::new() };
    Ok(contiguous(input.dtype, sizes))
}

fn check_classes(args: &Args<'_, TensorMeta>) -> Result<()> {
    let target = args.tensor(1)?;
    if target.dtype == DType::Int64 {
        return Ok(());
    }
    let what = format!("expected scalar type Long but found {}", target.dtype.name());
    Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name))
}

fn multi_margin_loss(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, target, p) = (args.tensor(0)?, args.tensor(1)?, args.scalar(2)?.to_f64());
    if p != 1.0 && p != 2.0 {
        return Err(args.invalid("only p == 1 and p == 2 supported"));
    }
    let outputs = margin_outputs(args, 5)?;
    let n_items = if input.sizes.len() == 2 { input.sizes[0].clone() } else { SymInt::from(1) };
    let n_targets: SymInt = target.sizes.iter().product();
    if target.sizes.len() > 1 || n_targets != n_items {
        return Err(args.bad_shape(format!(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples \
             ({n_items}), but got {n_targets} elements in {}D",
            target.sizes.len()
        )));
    }
    if let Some(weight) = args.opt_tensor(4)? {
        let n_classes = input.sizes.last().cloned().unwrap_or(SymInt::from(1));
        if !args.agree(&weight.sizes, std::slice::from_ref(&n_classes)) {
            return Err(args.bad_shape(format!("inconsistent weight size, expected {n_classes}")));
        }
        if weight.dtype != input.dtype {
            let what = format!("expected a weight of {} but found {}", input.dtype.name(), weight.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
    }
    check_classes(args)?;
    Ok(outputs)
}

fn multilabel_margin_loss_forward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, target) = (args.tensor(0)?, args.tensor(1)?);
    let mut outputs = margin_outputs(args, 2)?;
    let is_single = |it: &TensorMeta| it.sizes.iter().all(|it| *it == 1) && it.sizes.len() < 2;
    if !(args.agree(&input.sizes, &target.sizes) || is_single(input) && is_single(target)) {
        let show = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
        return Err(args.bad_shape(format!(
            "inconsistent target size: [{}] for input of size: [{}]",
            show(&target.sizes),
            show(&input.sizes)
        )));
    }
    check_classes(args)?;
    outputs.push(Output::Tensor(TensorMeta::contiguous(input.dtype, target.sizes.clone())));
    Ok(outputs)
}

fn outputs(args: &Args<'_, TensorMeta>, input: &TensorMeta, n_classes: &SymInt) -> Result<Vec<Output>> {
    let target = args.tensor(1)?;
    if !matches!(target.dtype, DType::Int64 | DType::UInt8) {
        let what = format!("expected target dtype to be int64 or uint8, but found {}", target.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, &args.op.name));
    }
    if let Some(weight) = args.opt_tensor(2)? {
        if !args.agree(&weight.sizes, std::slice::from_ref(n_classes)) {
            return Err(args.bad_shape(format!(
                "weight tensor should be defined either for all {n_classes} classes or no classes"
            )));
        }
        if weight.dtype != input.dtype {
            let what = format!("expected a weight of {} but found {}", input.dtype.name(), weight.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
        }
    }
    let sizes = if args.int(3)? == 0 { target.sizes.clone() } else { Vec::new() };
    let total = TensorMeta::contiguous(input.dtype, Vec::new());
    Ok(vec![Output::Tensor(TensorMeta::contiguous(input.dtype, sizes)), Output::Tensor(total)])
}

fn nll_loss_forward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, target) = (args.tensor(0)?, args.tensor(1)?);
    let n_classes = match (&input.sizes[..], &target.sizes[..]) {
        ([n_classes], []) => n_classes,
        ([n_classes], [one]) if *one == 1 => n_classes,
        ([n_batch, n_classes], [n_targets]) if n_batch == n_targets => n_classes,
        _ => {
            let show = |it: &[SymInt]| it.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ");
            return Err(args.bad_shape(format!(
                "size mismatch (got input: [{}], target: [{}])",
                show(&input.sizes),
                show(&target.sizes)
            )));
        }
    };
    outputs(args, input, n_classes)
}

fn nll_loss2d_forward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (input, target) = (args.tensor(0)?, args.tensor(1)?);
    let ([n_batch, n_classes, pixels @ ..], [n_targets, target_pixels @ ..]) = (&input.sizes[..], &target.sizes[..])
    else {
        return Err(args.bad_shape("only batches of spatial inputs supported (4D tensors)"));
    };
    if pixels.len() != 2 || pixels != target_pixels || n_batch != n_targets {
        return Err(args.bad_shape("size mismatch: the target should have one class per pixel of the input"));
    }
    outputs(args, input, n_classes)
}

/// The first result of the operator of this name with `_forward`.
fn forward(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let op = format!("{}_forward", args.op.schema.name);
    Ok(vec![cx.aten(&op, &args.values)?])
}

fn nll_loss_nd(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    Ok(vec![nll_of(cx, args, &args.values[0], &args.values[1])?])
}

/// Follows `nll_loss_nd_symint` of aten/src/ATen/native/LossNLL.cpp; weight, reduction and ignored index are those of the call.
fn nll_of(cx: &mut Cx<'_>, args: &Call<'_>, input: &Traced, target: &Traced) -> Result<Traced> {
    let options = &args.values[2..5];
    let sizes = cx.meta(tensor_of(input)).sizes.clone();
    let target_sizes = cx.meta(tensor_of(target)).sizes.clone();
    let [n_batch, n_classes, rest @ ..] = &sizes[..] else {
        if sizes.is_empty() {
            return Err(args.bad_shape("Expected 1 or more dimensions (got 0)"));
        }
        return cx.aten("nll_loss", [input, target].into_iter().chain(options));
    };
    if target_sizes.first().is_none_or(|it| args.differ(it, n_batch)) {
        return Err(args.bad_shape(format!(
            "Expected input batch_size ({n_batch}) to match target batch_size ({}).",
            target_sizes.first().map_or("none".to_string(), SymInt::to_string)
        )));
    }
    match rest.len() {
        0 => cx.aten("nll_loss", [input, target].into_iter().chain(options)),
        2 => cx.aten("nll_loss2d", [input, target].into_iter().chain(options)),
        _ => {
            if !args.agree(&target_sizes[1..], rest) {
                return Err(args.bad_shape("Expected a target with the sizes of the input, without the classes"));
            }
            let n_rest: SymInt = rest.iter().product();
            let one = SymInt::from(1);
            let flat = size_list(&[n_batch.clone(), n_classes.clone(), one.clone(), n_rest.clone()]);
            let input = cx.aten("reshape", [input, &flat])?;
            let target = cx.aten("reshape", [target, &size_list(&[n_batch.clone(), one, n_rest])])?;
            let loss = cx.aten("nll_loss2d", [&input, &target].into_iter().chain(options))?;
            if args.int(3)? != 0 {
                return Ok(loss);
            }
            cx.aten("view", [&loss, &size_list(&[std::slice::from_ref(n_batch), rest].concat())])
        }
    }
}

fn cross_entropy_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (input, target, smoothing) = (*args.tensor(0)?, *args.tensor(1)?, args.float(5)?);
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(args.invalid(format!("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")));
    }
    let sizes = cx.meta(input).sizes.clone();
    let class_dim = if sizes.len() == 1 { 0 } else { 1 };
    let Some(n_classes) = sizes.get(class_dim).cloned() else {
        return Err(args.bad_shape("cross entropy needs a dimension of classes"));
    };
    let log = cx.aten("log_softmax.int", [&input.into(), &Value::int(class_dim as i64)])?;
    if args.same_all(&cx.meta(target).sizes, &sizes) {
        return of_probabilities(cx, args, &log, class_dim, &n_classes);
    }
    let loss = nll_of(cx, args, &log, &target.into())?;
    if smoothing == 0.0 {
        return Ok(vec![loss]);
    }
    let smooth = smooth_part(cx, args, log, class_dim)?;
    let loss = cx.aten("mul.Scalar", [&loss, &Value::Float(1.0 - smoothing)])?;
    let smooth = cx.aten("mul.Scalar", [&smooth, &share(args, smoothing, &n_classes)?])?;
    Ok(vec![cx.aten("add.Tensor", [&loss, &smooth])?])
}

/// What of this falls to each of so many classes.
fn share(args: &Call<'_>, whole: f64, n_classes: &SymInt) -> Result<Traced> {
    if let Some(n) = n_classes.as_int() {
        return Ok(Value::Float(whole / n as f64));
    }
    let n = call(Func::ToFloat, vec![n_classes.clone().into()]);
    let share = n.and_then(|n| call(Func::FloatTrueDiv, vec![SymFloat::from(whole).into(), n]));
    share.map(Value::from).map_err(|problem| args.unsupported(problem.message()))
}

/// The log-probabilities times the weights of their classes.
fn weigh_classes(cx: &mut Cx<'_>, args: &Call<'_>, value: Traced, class_dim: usize) -> Result<Traced> {
    let Some(weight) = args.opt_tensor(2)? else { return Ok(value) };
    let mut sizes = vec![1; cx.meta(tensor_of(&value)).sizes.len()];
    sizes[class_dim] = -1;
    let weight = cx.aten("view", [&(*weight).into(), &Value::ints(&sizes)])?;
    cx.aten("mul.Tensor", [&value, &weight])
}

fn of_probabilities(
    cx: &mut Cx<'_>,
    args: &Call<'_>,
    log: &Traced,
    class_dim: usize,
    n_classes: &SymInt,
) -> Result<Vec<Traced>> {
    let (mut target, smoothing) = (args.values[1].clone(), args.float(5)?);
    let dtype = cx.meta(tensor_of(&target)).dtype;
    if !dtype.is_float() {
        let what = format!("Expected floating point type for target with class probabilities, got {}", dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    let sizes = cx.meta(tensor_of(log)).sizes.clone();
    if smoothing > 0.0 {
        target = cx.aten("mul.Scalar", [&target, &Value::Float(1.0 - smoothing)])?;
        target = cx.aten("add.Scalar", [&target, &share(args, smoothing, n_classes)?])?;
    }
    let product = cx.aten("mul.Tensor", [log, &target])?;
    let product = weigh_classes(cx, args, product, class_dim)?;
    let minus = |cx: &mut Cx<'_>, it: Traced| cx.aten("neg", [&it]);
    if args.int(3)? != 1 {
        let dims = Value::ints(&[class_dim as i64]);
        let loss = if args.int(3)? == 0 {
            cx.aten("sum.dim_IntList", [&product, &dims])?
        } else {
            cx.aten("sum", [&product])?
        };
        return Ok(vec![minus(cx, loss)?]);
    }
    let n_items: SymInt = sizes.iter().enumerate().filter(|it| it.0 != class_dim).map(|it| it.1).product();
    let sum = cx.aten("sum", [&product])?;
    let mean =
        cx.aten("div.Scalar", [&sum, &n_items.as_int().map_or(Value::Int(n_items), |it| Value::Float(it as f64))])?;
    Ok(vec![minus(cx, mean)?])
}

/// The part of a smoothed label that all classes share.
fn smooth_part(cx: &mut Cx<'_>, args: &Call<'_>, log: Traced, class_dim: usize) -> Result<Traced> {
    let target = &args.values[1];
    let weighted = weigh_classes(cx, args, log, class_dim)?;
    let sum = cx.aten("sum.dim_IntList", [&weighted, &Value::ints(&[class_dim as i64])])?;
    let loss = cx.aten("neg", [&sum])?;
    let is_ignored = cx.aten("eq.Scalar", [target, &args.values[4]])?;
    let loss = cx.aten("masked_fill.Scalar", [&loss, &is_ignored, &Value::int(0)])?;
    if args.int(3)? != 1 {
        return Ok(reduce(cx, args, loss, 3)?.remove(0));
    }
    let dtype = cx.meta(tensor_of(&loss)).dtype;
    let counts = cx.aten("logical_not", [&is_ignored])?;
    let mut counts = cx.aten_with("_to_copy", [&counts], &[("dtype", Value::DType(dtype))])?;
    if let Some(weight) = args.opt_tensor(2)? {
        // An ignored target may be no class at all.
        let class = cx.aten("masked_fill.Scalar", [target, &is_ignored, &Value::int(0)])?;
        let flat = cx.aten("reshape", [&class, &Value::ints(&[-1])])?;
        let weights = cx.aten("index_select", [&(*weight).into(), &Value::int(0), &flat])?;
        let counted = cx.aten("reshape", [&counts, &Value::ints(&[-1])])?;
        counts = cx.aten("mul.Tensor", [&weights, &counted])?;
    }
    let (sum, total) = (cx.aten("sum", [&loss])?, cx.aten("sum", [&counts])?);
    cx.aten("div.Tensor", [&sum, &total])
}
