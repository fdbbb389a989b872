//! Kernels of losses of classes: the negative log-likelihood and margins. How a class out of range is refused is decided
//! here, for the gradients too.

use crate::numeric::dense::Dense;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, fill_float};
use tracefx_core::allocate::{collected, copied, filled, push, with_room};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.nll_loss_forward.default", Kernel::Fill(nll_loss)),
    ("aten.nll_loss2d_forward.default", Kernel::Fill(nll_loss)),
    ("aten.multi_margin_loss.default", Kernel::Fill(multi_margin_loss)),
    ("aten.multilabel_margin_loss_forward.default", Kernel::Fill(multilabel_margin_loss)),
];

fn nll_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => likelihood::<A>(args, out))
}

pub(crate) fn classes(target: &Tensor) -> Result<Vec<i64>> {
    if target.dtype() == DType::UInt8 {
        return collected(target.to_vec::<u8>()?.into_iter().map(i64::from));
    }
    let dense = Dense::new(target)?;
    copied(&dense.read::<i64>())
}

fn likelihood<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (input, target) = (args.tensor(0)?, classes(args.tensor(1)?)?);
    let (reduction, ignored) = (args.int(3)?, args.int(4)?);
    let (n_classes, n_inner) = match input.sizes() {
        [n_classes] => (*n_classes, 1),
        [_, n_classes, inner @ ..] => (*n_classes, inner.iter().product::<usize>()),
        [] => unreachable!("the shape rule asks for a dimension of classes"),
    };
    let input = Strided::<A>::dense(input)?;
    let weight = args.opt_tensor(2)?.map(Strided::<A>::dense).transpose()?;
    let (mut sum, mut total) = (0.0, 0.0);
    let mut losses = filled(A::ZERO, target.len())?;
    for (at, (&class, loss)) in target.iter().zip(&mut losses).enumerate() {
        if class == ignored {
            continue;
        }
        let Some(class) = usize::try_from(class).ok().filter(|&it| it < n_classes) else {
            let what = format!("Target {class} is out of bounds.");
            return Err(Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name));
        };
        let weight = weight.as_ref().map_or(A::ONE, |it| it.data()[class]);
        let value = input.data()[(at / n_inner * n_classes + class) * n_inner + at % n_inner];
        *loss = -value * weight;
        sum += loss.to_f64();
        total += weight.to_f64();
    }
    let result = match reduction {
        0 => {
            fill_float::<A, _>(&out[0], |out| out.copy_from_slice(&losses))?;
            // Nothing is added up where nothing is reduced.
            return Ok(());
        }
        1 => sum / total,
        _ => sum,
    };
    fill_float::<A, _>(&out[0], |out| out.fill(A::of(result)))?;
    fill_float::<A, _>(&out[1], |out| out.fill(A::of(total)))
}

/// Each loss, their mean, or their sum.
fn reduce<A: Float>(out: &Tensor, losses: &[f64], reduction: i64) -> Result<()> {
    let sum: f64 = losses.iter().sum();
    fill_float::<A, _>(out, |out| match reduction {
        0 => out.iter_mut().zip(losses).for_each(|(out, &it)| *out = A::of(it)),
        1 => out.fill(A::of(sum / losses.len() as f64)),
        _ => out.fill(A::of(sum)),
    })
}

pub(super) fn out_of_range(args: &Args<'_, Tensor>) -> Diagnostic {
    Diagnostic::new(Code::IndexOutOfRange, "target out of range").op(&*args.op.name)
}

fn multi_margin_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => margins::<A>(args, &out[0]))
}

fn margins<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, target) = (args.tensor(0)?, classes(args.tensor(1)?)?);
    let (p, margin) = (args.scalar(2)?.to_f64(), args.scalar(3)?.to_f64());
    let n_classes = input.sizes().last().copied().unwrap_or(1);
    let input = Strided::<A>::dense(input)?;
    let weight = args.opt_tensor(4)?.map(Strided::<A>::dense).transpose()?;
    let mut losses = with_room(target.len())?;
    for (item, &class) in target.iter().enumerate() {
        let class = usize::try_from(class).ok().filter(|&it| it < n_classes).ok_or_else(|| out_of_range(args))?;
        let scores = &input.data()[item * n_classes..][..n_classes];
        let weight = weight.as_ref().map_or(1.0, |it| it.data()[class].to_f64());
        let near = |(_, score): (usize, &A)| {
            let excess = margin - scores[class].to_f64() + score.to_f64();
            if excess > 0.0 { weight * if p == 1.0 { excess } else { excess * excess } } else { 0.0 }
        };
        let sum: f64 = scores.iter().enumerate().filter(|it| it.0 != class).map(near).sum();
        losses.push(sum / n_classes as f64);
    }
    reduce::<A>(out, &losses, args.int(5)?)
}

fn multilabel_margin_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => label_margins::<A>(args, out))
}

fn label_margins<A: Float>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (input, target) = (args.tensor(0)?, classes(args.tensor(1)?)?);
    let n_classes = input.sizes().last().copied().unwrap_or(1);
    let input = Strided::<A>::dense(input)?;
    let (mut losses, mut labels) = (Vec::new(), Vec::new());
    let mut is_target = filled(false, target.len())?;
    for (item, target) in target.chunks_exact(n_classes).enumerate() {
        let scores = &input.data()[item * n_classes..][..n_classes];
        let is_target = &mut is_target[item * n_classes..][..n_classes];
        // The targets end where the first negative class stands.
        labels.clear();
        for &class in target.iter().take_while(|&&it| it >= 0) {
            let class = usize::try_from(class).ok().filter(|&it| it < n_classes).ok_or_else(|| out_of_range(args))?;
            is_target[class] = true;
            push(&mut labels, scores[class].to_f64())?;
        }
        let others = scores.iter().zip(&*is_target).filter(|it| !it.1).map(|it| it.0.to_f64());
        let excess = |other: f64| labels.iter().map(|label| (1.0 - label + other).max(0.0)).sum::<f64>();
        push(&mut losses, others.map(excess).sum::<f64>() / n_classes as f64)?;
    }
    reduce::<A>(&out[0], &losses, args.int(2)?)?;
    fill_float::<A, _>(&out[1], |out| {
        out.iter_mut().zip(&is_target).for_each(|(out, &it)| *out = if it { A::ONE } else { A::ZERO });
    })
}
