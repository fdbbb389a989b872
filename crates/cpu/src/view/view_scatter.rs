//! Kernels that replace a view of a tensor. Where the view is, the rule of the operator that makes it says.

use crate::numeric::dense::fill;
use crate::numeric::dispatch::with_element;
use crate::numeric::map::cast;
use crate::numeric::number::Number;
use crate::numeric::strided_copy::{Offsets, copy_to, gather_places, updating, zip};
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, Infer, Output, Value, registry};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.as_strided_scatter.default", Kernel::Fill(as_strided_scatter)),
    ("aten.diagonal_scatter.default", updating!(|args, target| scatter(args, target, "aten.diagonal.default"))),
    ("aten.select_scatter.default", updating!(|args, target| scatter(args, target, "aten.select.int"))),
    ("aten.slice_scatter.default", updating!(|args, target| scatter(args, target, "aten.slice.Tensor"))),
    ("aten.diagonal_backward.default", Kernel::Fill(|args, results| fill_view(args, results, "aten.diagonal.default"))),
    ("aten.select_backward.default", Kernel::Fill(|args, results| fill_view(args, results, "aten.select.int"))),
    ("aten.slice_backward.default", Kernel::Fill(|args, results| fill_view(args, results, "aten.slice.Tensor"))),
    ("aten.unfold_backward.default", Kernel::Fill(unfold_backward)),
];

/// The view of `base` that this operator makes with the arguments after the first two, and whether it is inside.
fn view(args: &Args<'_, Tensor>, base: &Tensor, op: &str) -> Result<Tensor> {
    let op = registry().require(op)?;
    let mut values = vec![Value::Tensor(TensorMeta::of(base))];
    for value in &args.values[2..] {
        values.push(value.try_map(&mut |it| Ok::<_, Diagnostic>(TensorMeta::of(it)))?);
    }
    let not_a_view = || Diagnostic::new(Code::Internal, format!("{} has no view rule", op.name));
    let Infer::Rule(rule) = op.def.infer else { return Err(not_a_view()) };
    let outputs = rule(&Args::new(op, values))?;
    let [Output::View { meta, .. }] = &outputs[..] else { return Err(not_a_view()) };
    let known = |it: &tracefx_sym::SymInt| it.as_int().and_then(|it| usize::try_from(it).ok()).ok_or_else(not_a_view);
    let sizes = meta.sizes.iter().map(known).collect::<Result<Vec<_>>>()?;
    let strides = meta.strides.iter().map(known).collect::<Result<Vec<_>>>()?;
    base.as_strided(&sizes, &strides, known(&meta.storage_offset)?)
}

fn scatter(args: &Args<'_, Tensor>, target: &Tensor, op: &str) -> Result<()> {
    let view = view(args, target, op)?;
    copy_to(&cast(args.tensor(1)?, target.dtype())?, target, &Offsets::of(&view));
    Ok(())
}

/// Writes the gradient of a view to the view of a result that is zero.
fn fill_view(args: &Args<'_, Tensor>, results: &[Tensor], op: &str) -> Result<()> {
    let view = view(args, &results[0], op)?;
    copy_to(args.tensor(0)?, &results[0], &Offsets::of(&view));
    Ok(())
}

fn unfold_backward(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (grad, result) = (args.tensor(0)?, &results[0]);
    let view = view(args, result, "aten.unfold.default")?;
    with_element!(grad.dtype(), &args.op.name, T => {
        let guard = grad.storage().read();
        let (from, to) = (Offsets::of(grad), Offsets::of(&view));
        fill::<T, _>(result, |out| {
            zip(grad.sizes(), (guard.elements::<T>(), &from), (out, &to), |to, from| *to = to.add(from));
        });
        Ok(())
    })
}

fn as_strided_scatter(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (base, result) = (args.tensor(0)?, &results[0]);
    let view = view(args, base, "aten.as_strided.default")?;
    if view.sizes().iter().zip(view.strides()).any(|(&size, &stride)| size > 1 && stride == 0) {
        let what =
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location.";
        return Err(args.invalid(what).help("clone() the tensor before performing the operation"));
    }
    // The view is of the storage and not of the tensor, so that the storage is what is copied and written to.
    let n = base.storage().len() / base.dtype().size();
    let whole = base.as_strided(&[n], &[1], 0)?.compact_copy()?;
    copy_to(&cast(args.tensor(1)?, result.dtype())?, &whole, &Offsets::of(&view));
    gather_places(&whole, &Offsets::of(base), result);
    Ok(())
}
