//! The kernel of the negative log-likelihood.

use crate::dense::Dense;
use crate::real::{Real, Strided, fill_real, with_real};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(crate) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.nll_loss_forward.default", Kernel::Fill(nll_loss)),
    ("aten.nll_loss2d_forward.default", Kernel::Fill(nll_loss)),
];

fn nll_loss(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_real!(dtype, A => likelihood::<A>(args, out), else Err(Diagnostic::unsupported_dtype(dtype, &args.op.name)))
}

fn classes(target: &Tensor) -> Result<Vec<i64>> {
    if target.dtype() == DType::UInt8 {
        return Ok(target.to_vec::<u8>()?.into_iter().map(i64::from).collect());
    }
    let dense = Dense::new(target)?;
    let res = dense.read::<i64>().to_vec();
    Ok(res)
}

fn likelihood<A: Real>(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
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
    let mut losses = vec![A::ZERO; target.len()];
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
            fill_real::<A, _>(&out[0], |out| out.copy_from_slice(&losses));
            // Nothing is added up where nothing is reduced.
            return Ok(());
        }
        1 => sum / total,
        _ => sum,
    };
    fill_real::<A, _>(&out[0], |out| out.fill(A::of(result)));
    fill_real::<A, _>(&out[1], |out| out.fill(A::of(total)));
    Ok(())
}
