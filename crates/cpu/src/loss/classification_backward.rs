//! Kernels of the gradients of losses of classes.

use crate::loss::classification::{classes, out_of_range};
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, try_fill_float};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.nll_loss_backward.default", Kernel::Fill(nll_loss)),
    ("aten.nll_loss2d_backward.default", Kernel::Fill(nll_loss)),
    ("aten.multi_margin_loss_backward.default", Kernel::Fill(multi_margin_loss)),
    ("aten.multilabel_margin_loss_backward.default", Kernel::Fill(multilabel_margin_loss)),
];

fn nll_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => likelihood::<A>(args, &out[0]))
}

/// The incoming gradient of each item; all share one where the losses were reduced.
struct Incoming<'a, A> {
    grad: Strided<'a, A>,
    is_shared: bool,
}

impl<'a, A: Float> Incoming<'a, A> {
    fn new(args: &'a Args<'_, Tensor>, reduction: usize) -> Result<Self> {
        Ok(Incoming { grad: Strided::dense(args.tensor(0)?)?, is_shared: args.int(reduction)? != 0 })
    }

    fn of(&self, item: usize) -> A {
        self.grad.data()[if self.is_shared { 0 } else { item }]
    }
}

fn likelihood<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (target, ignored) = (classes(args.tensor(2)?)?, args.int(5)?);
    let (n_classes, n_inner) = match out.sizes() {
        [n_classes] => (*n_classes, 1),
        [_, n_classes, inner @ ..] => (*n_classes, inner.iter().product::<usize>()),
        [] => unreachable!("the shape rule asks for a dimension of classes"),
    };
    let weight = args.opt_tensor(3)?.map(Strided::<A>::dense).transpose()?;
    let total = Strided::<A>::dense(args.tensor(6)?)?;
    let divisor = if args.int(4)? == 1 { total.data()[0] } else { A::ONE };
    let grad = Incoming::<A>::new(args, 4)?;
    try_fill_float::<A, _>(out, |out| {
        for (at, &class) in target.iter().enumerate() {
            if class == ignored {
                continue;
            }
            let Some(class) = usize::try_from(class).ok().filter(|&it| it < n_classes) else {
                let what = format!("Target {class} is out of bounds.");
                return Err(Diagnostic::new(Code::IndexOutOfRange, what).op(&*args.op.name));
            };
            let weight = weight.as_ref().map_or(A::ONE, |it| it.data()[class]);
            let place = (at / n_inner * n_classes + class) * n_inner + at % n_inner;
            out[place] = -weight * grad.of(at) / divisor;
        }
        Ok(())
    })
}

fn multi_margin_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => margins::<A>(args, &out[0]))
}

/// What the gradient of an item is shared among: its classes and, for a mean, all items.
fn shares(args: &Args<'_, Tensor>, reduction: usize, n_items: usize, n_classes: usize) -> Result<f64> {
    Ok((if args.int(reduction)? == 1 { n_items * n_classes } else { n_classes }) as f64)
}

fn margins<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, target) = (args.tensor(1)?, classes(args.tensor(2)?)?);
    let (p, margin) = (args.float(3)?, args.float(4)?);
    let n_classes = input.sizes().last().copied().unwrap_or(1);
    let shares = shares(args, 6, target.len(), n_classes)?;
    let input = Strided::<A>::dense(input)?;
    let weight = args.opt_tensor(5)?.map(Strided::<A>::dense).transpose()?;
    let grad = Incoming::<A>::new(args, 6)?;
    try_fill_float::<A, _>(out, |out| {
        for (item, &class) in target.iter().enumerate() {
            let class = usize::try_from(class).ok().filter(|&it| it < n_classes).ok_or_else(|| out_of_range(args))?;
            let places = item * n_classes..(item + 1) * n_classes;
            let (scores, out) = (&input.data()[places.clone()], &mut out[places]);
            let weight = weight.as_ref().map_or(1.0, |it| it.data()[class].to_f64());
            let scale = weight / shares * grad.of(item).to_f64();
            let mut of_target = 0.0;
            for (at, (out, score)) in out.iter_mut().zip(scores).enumerate() {
                let excess = margin - scores[class].to_f64() + score.to_f64();
                if at == class || excess.is_nan() || excess <= 0.0 {
                    continue;
                }
                let slope = scale * if p == 1.0 { 1.0 } else { 2.0 * excess };
                *out = A::of(slope);
                of_target -= slope;
            }
            out[class] = A::of(of_target);
        }
        Ok(())
    })
}

fn multilabel_margin_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => label_margins::<A>(args, &out[0]))
}

fn label_margins<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (input, target) = (args.tensor(1)?, classes(args.tensor(2)?)?);
    let n_classes = input.sizes().last().copied().unwrap_or(1);
    let shares = shares(args, 3, target.len().checked_div(n_classes).unwrap_or(0), n_classes)?;
    let (input, is_target) = (Strided::<A>::dense(input)?, Strided::<A>::dense(args.tensor(4)?)?);
    if !is_target.data().iter().all(|it| (A::ZERO..=A::ONE).contains(it)) {
        return Err(args.invalid("argument #5 'is_target' is out of range"));
    }
    let grad = Incoming::<A>::new(args, 3)?;
    try_fill_float::<A, _>(out, |out| {
        for (item, target) in target.chunks_exact(n_classes.max(1)).enumerate() {
            let places = item * n_classes..(item + 1) * n_classes;
            let (scores, is_target) = (&input.data()[places.clone()], &is_target.data()[places.clone()]);
            let slope = A::of(grad.of(item).to_f64() / shares);
            let out = &mut out[places];
            // The targets end where the first negative class stands.
            for &class in target.iter().take_while(|&&it| it >= 0) {
                let class =
                    usize::try_from(class).ok().filter(|&it| it < n_classes).ok_or_else(|| out_of_range(args))?;
                for other in (0..n_classes).filter(|&it| is_target[it] == A::ZERO) {
                    if A::ONE - scores[class] + scores[other] > A::ZERO {
                        out[class] += -slope;
                        out[other] += slope;
                    }
                }
            }
        }
        Ok(())
    })
}
