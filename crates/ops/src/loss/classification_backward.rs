//! The gradients of losses of classes.

use crate::loss::decompose;
use crate::{Args, OpDef, Output, Tol, contiguous};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, \
         SymInt ignore_index, Tensor total_weight) -> Tensor",
        nll_loss,
    )
    .decompose(decompose::nll_loss)
    .tolerance(Tol::Default)
    .doc("The gradient of `nll_loss_forward`."),
    OpDef::new(
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int \
         reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        nll_loss2d,
    )
    .decompose(decompose::nll_loss)
    .tolerance(Tol::Default)
    .doc("The gradient of `nll_loss2d_forward`."),
    OpDef::new(
        "aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar \
         margin, Tensor? weight=None, int reduction=1) -> Tensor",
        multi_margin_loss,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of `multi_margin_loss`."),
    OpDef::new(
        "aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, \
         Tensor is_target) -> Tensor",
        multilabel_margin_loss,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of `multilabel_margin_loss_forward`."),
];

type Meta<'a> = Args<'a, TensorMeta>;

fn show(sizes: &[SymInt]) -> String {
    sizes.iter().map(SymInt::to_string).collect::<Vec<_>>().join(", ")
}

/// A gradient like the input, where the incoming one has one element for each of `items` or, when they are reduced, one.
fn like_input(args: &Meta<'_>, reduction: usize, items: &[SymInt]) -> Result<Vec<Output>> {
    let (grad, input) = (args.tensor(0)?, args.tensor(1)?);
    if !input.dtype.is_float() {
        return Err(Diagnostic::unsupported_dtype(input.dtype, &args.op.name));
    }
    if grad.dtype != input.dtype {
        let what = format!("expected scalar type {} but found {}", input.dtype.cpp_name(), grad.dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    let (n, expected): (SymInt, SymInt) =
        (grad.sizes.iter().product(), if args.int(reduction)? == 0 { items.iter().product() } else { SymInt::ONE });
    if args.differ(&n, &expected) {
        return Err(args.bad_shape(format!(
            "Expected a gradient with {expected} elements but got one of sizes [{}]",
            show(&grad.sizes)
        )));
    }
    Ok(contiguous(input.dtype, input.sizes.clone()))
}

/// Checks the dtypes of a target of classes, and of weights for them at this position, and how many they are.
fn check(args: &Meta<'_>, targets: &[DType], weight: Option<usize>, n_classes: &SymInt) -> Result<()> {
    let (input, target) = (args.tensor(1)?, args.tensor(2)?);
    if !targets.contains(&target.dtype) {
        let what = format!("expected scalar type Long but found {}", target.dtype.cpp_name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    let Some(weight) = weight.map(|it| args.opt_tensor(it)).transpose()?.flatten() else { return Ok(()) };
    if args.differ(&weight.sizes.iter().product(), n_classes) {
        let what = format!("weight tensor should be defined either for all {n_classes} classes or no classes");
        return Err(args.bad_shape(what));
    }
    if weight.dtype != input.dtype {
        let what = format!("expected a weight of {} but found {}", input.dtype.name(), weight.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what).op(&*args.op.name));
    }
    Ok(())
}

fn mismatch(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (input, target) = (&args.tensor(1)?.sizes, &args.tensor(2)?.sizes);
    Err(args.bad_shape(format!("size mismatch (got input: [{}], target: [{}])", show(input), show(target))))
}

fn likelihood(args: &Meta<'_>, items: &[SymInt], n_classes: &SymInt) -> Result<Vec<Output>> {
    check(args, &[DType::Int64, DType::UInt8], Some(3), n_classes)?;
    let total = args.tensor(6)?;
    if args.differ(&total.sizes.iter().product(), &SymInt::ONE) {
        return Err(args
            .bad_shape(format!("expected total_weight to be a single element tensor, got: [{}]", show(&total.sizes))));
    }
    like_input(args, 4, items)
}

fn nll_loss(args: &Meta<'_>) -> Result<Vec<Output>> {
    match (&args.tensor(1)?.sizes[..], &args.tensor(2)?.sizes[..]) {
        ([n_classes], []) => likelihood(args, &[], n_classes),
        ([n_classes], [one]) if *one == 1 => likelihood(args, &[], n_classes),
        ([n_batch, n_classes], items @ [n_targets]) if n_batch == n_targets => likelihood(args, items, n_classes),
        _ => mismatch(args),
    }
}

fn nll_loss2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    match (&args.tensor(1)?.sizes[..], &args.tensor(2)?.sizes[..]) {
        ([n_batch, n_classes, height, width], items @ [a, b, c]) if [n_batch, height, width] == [a, b, c] => {
            likelihood(args, items, n_classes)
        }
        _ => mismatch(args),
    }
}

/// Refuses half types, of which PyTorch has no margins.
fn check_precision(args: &Meta<'_>) -> Result<()> {
    match args.tensor(1)?.dtype {
        DType::Float32 | DType::Float64 => Ok(()),
        other => Err(Diagnostic::unsupported_dtype(other, &args.op.name)),
    }
}

/// The items of a batch, or none, and the number of classes.
fn rows(sizes: &[SymInt]) -> Option<(&[SymInt], SymInt)> {
    match sizes {
        [] => Some((&[], SymInt::ONE)),
        [n_classes] => Some((&[], n_classes.clone())),
        [items @ .., n_classes] if items.len() == 1 => Some((items, n_classes.clone())),
        _ => None,
    }
}

fn multi_margin_loss(args: &Meta<'_>) -> Result<Vec<Output>> {
    check_precision(args)?;
    let (input, target) = (args.tensor(1)?, args.tensor(2)?);
    let p = args.float(3)?;
    if p != 1.0 && p != 2.0 {
        return Err(args.invalid("only p == 1 and p == 2 supported"));
    }
    let Some((items, n_classes)) = rows(&input.sizes) else { return mismatch(args) };
    if args.differ(&target.sizes.iter().product(), &items.iter().product()) {
        return mismatch(args);
    }
    check(args, &[DType::Int64], Some(5), &n_classes)?;
    like_input(args, 6, items)
}

fn multilabel_margin_loss(args: &Meta<'_>) -> Result<Vec<Output>> {
    check_precision(args)?;
    let (input, target, is_target) = (args.tensor(1)?, args.tensor(2)?, args.tensor(4)?);
    let Some((items, n_classes)) = rows(&input.sizes) else { return mismatch(args) };
    let count = |it: &TensorMeta| it.sizes.iter().product::<SymInt>();
    if args.differ(&count(target), &count(input)) || !args.agree(&is_target.sizes, &target.sizes) {
        return mismatch(args);
    }
    check(args, &[DType::Int64], None, &n_classes)?;
    like_input(args, 3, items)
}
