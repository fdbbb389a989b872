//! Connectionist temporal classification: the likelihood of a sequence of labels under all its alignments with the steps
//! of a longer sequence.

use crate::core::decompositions;
use crate::core::decompositions::{Call, choose, size_list};
use crate::loss::classification_gradient;
use crate::{Args, Cx, OpDef, Output, Tol, Traced, Value, contiguous};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int \
         blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        forward,
    )
    .tolerance(Tol::Default)
    .vjp(classification_gradient::ctc_loss)
    .doc("The negative log-likelihood of each sequence of labels, and the logarithms of its forward variables."),
    OpDef::new(
        "aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, \
         int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        forward,
    )
    .tolerance(Tol::Default)
    .vjp(classification_gradient::ctc_loss)
    .doc("The negative log-likelihood of each sequence of labels, and the logarithms of its forward variables."),
    OpDef::new(
        "aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] \
         target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> \
         Tensor",
        backward,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of `_ctc_loss` in the logarithms of the probabilities, taken through their softmax."),
    OpDef::new(
        "aten::_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, \
         Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool \
         zero_infinity=False) -> Tensor",
        backward,
    )
    .tolerance(Tol::Default)
    .doc("The gradient of `_ctc_loss` in the logarithms of the probabilities, taken through their softmax."),
    OpDef::new(
        "aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, \
         int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        loss,
    )
    .decompose(loss_of_sequences)
    .tolerance(Tol::Default)
    .doc("The negative log-likelihood of sequences of labels."),
    OpDef::new(
        "aten::ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, \
         int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        loss,
    )
    .decompose(loss_of_sequences)
    .tolerance(Tol::Default)
    .doc("The negative log-likelihood of sequences of labels."),
];

/// Checks what does not depend on data, and gives the size of the batch; none where there is a single sequence. The
/// logarithms of the probabilities stand at `first`.
fn check(args: &Args<'_, TensorMeta>, first: usize, blank: i64) -> Result<Option<SymInt>> {
    let (log_probs, targets) = (args.tensor(first)?, args.tensor(first + 1)?);
    if !matches!(log_probs.dtype, DType::Float32 | DType::Float64) {
        let what = format!("\"ctc_loss_cpu\" not implemented for '{}'", log_probs.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if !matches!(targets.dtype, DType::Int32 | DType::Int64) {
        let what = format!("Expected targets to be of type int32 or int64, but got {}", targets.dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let (batch, n_labels) = match &log_probs.sizes[..] {
        [_, n_labels] => (None, n_labels),
        [_, batch, n_labels] => (Some(batch.clone()), n_labels),
        sizes => {
            return Err(args.bad_shape(format!("log_probs needs 2 or 3 dimensions but has {}", sizes.len())));
        }
    };
    if blank < 0 || args.less(n_labels, &SymInt::from(blank + 1)) {
        return Err(args.invalid("blank must be in label range"));
    }
    Ok(batch)
}

fn forward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let Some(batch) = check(args, 0, args.int(4)?)? else {
        return Err(args.bad_shape("_ctc_loss takes a batch: log_probs needs 3 dimensions but has 2"));
    };
    let log_probs = args.tensor(0)?;
    // How wide the forward variables are, the lengths of the targets tell.
    let alpha = vec![batch.clone(), log_probs.sizes[0].clone(), args.new_size()];
    Ok(vec![Output::unknown(log_probs.dtype, vec![batch]), Output::unknown(log_probs.dtype, alpha)])
}

fn backward(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let Some(batch) = check(args, 1, args.int(7)?)? else {
        return Err(args.bad_shape("_ctc_loss_backward takes a batch: log_probs needs 3 dimensions but has 2"));
    };
    let log_probs = args.tensor(1)?;
    for index in [0, 5, 6] {
        let (given, name) = (args.tensor(index)?, &args.op.schema.args[index].name);
        if given.dtype != log_probs.dtype {
            let what = format!("{name} is {} beside log_probs of {}", given.dtype.name(), log_probs.dtype.name());
            return Err(Diagnostic::new(Code::DTypeMismatch, what));
        }
        let is_of_batch = given.sizes.first().is_some_and(|it| !args.differ(it, &batch));
        if !is_of_batch || given.sizes.len() != if index == 6 { 3 } else { 1 } {
            return Err(args.bad_shape(format!("{name} has sizes {:?} for a batch of {batch}", given.sizes)));
        }
    }
    Ok(contiguous(log_probs.dtype, log_probs.sizes.clone()))
}

fn loss(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let batch = check(args, 0, args.int(4)?)?;
    let sizes = if args.int(5)? == 0 { batch.into_iter().collect() } else { Vec::new() };
    Ok(contiguous(args.tensor(0)?.dtype, sizes))
}

/// The mean is over labels: each sequence counts by how long its labels are.
fn loss_of_sequences(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [log_probs, targets, input_lengths, target_lengths, blank, _, zero_infinity] = &args.values[..] else {
        return Err(args.invalid("ctc_loss takes seven arguments"));
    };
    let is_batch = cx.meta_of(log_probs).sizes.len() == 3;
    let log_probs = if is_batch { log_probs.clone() } else { cx.aten("unsqueeze", [log_probs, &Value::int(1)])? };
    let op = if args.op.schema.overload == "Tensor" { "_ctc_loss.Tensor" } else { "_ctc_loss" };
    let mut loss = cx.aten(op, [&log_probs, targets, input_lengths, target_lengths, blank, zero_infinity])?;
    let dtype = cx.meta_of(&loss).dtype;
    if args.bool(6)? {
        let is_infinite = cx.aten("eq.Scalar", [&loss, &Value::Float(f64::INFINITY)])?;
        loss = choose(cx, &is_infinite, &Value::int(0), &loss)?;
    }
    Ok(vec![match args.int(5)? {
        1 => {
            let lengths = match target_lengths {
                Value::List(items) => {
                    let mut numbers = Vec::new();
                    for it in items {
                        numbers.push(cx.aten_with(
                            "full",
                            [&size_list(&[SymInt::ONE]), it],
                            &[("dtype", Value::DType(dtype))],
                        )?);
                    }
                    cx.aten("cat", [&Value::List(numbers)])?
                }
                tensor => decompositions::to_dtype(cx, tensor.clone(), dtype)?,
            };
            let lengths = cx.aten("clamp_min", [&lengths, &Value::int(1)])?;
            let per_label = cx.aten("div.Tensor", [&loss, &lengths])?;
            cx.aten("mean", [&per_label])?
        }
        2 => cx.aten("sum", [&loss])?,
        _ if is_batch => loss,
        _ => cx.aten("squeeze.dim", [&loss, &Value::int(0)])?,
    }])
}
