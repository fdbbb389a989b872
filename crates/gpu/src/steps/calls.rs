//! Calls of operators: those of a family that has shaders, and pointwise ones as loops of one instruction.

use super::{
    bags, checked, constructors, convolution, convolution_gradient, dequantized, distances, factorisations, fourier,
    images, loops, losses, matrices, norms, order, patches, pool_gradients, pools, positions, reductions, selections,
    spectra,
};
use crate::lower::{Lowered, Lowering};
use tracefx_core::{DType, Dims};
use tracefx_plan::{Argument, Instruction, Loop, Operand, Register, TensorId};

pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[Operand]) -> Lowered {
    let mut ids = Vec::new();
    results.iter().for_each(|it| it.for_each_tensor(&mut |id| ids.push(id)));
    if let Some(lowered) = checked::assertion(cx, op, args) {
        return lowered;
    }
    let Some(&result) = ids.first() else { return Err(format!("{op} gives no tensor").into()) };
    if op == "aten.convolution.default" {
        return convolution::call(cx, args, result);
    }
    let lowered = reductions::call(cx, op, args, &ids)
        .or_else(|| matrices::call(cx, op, args, result))
        .or_else(|| dequantized::call(cx, op, args, result))
        .or_else(|| norms::call(cx, op, args, &ids))
        .or_else(|| pools::call(cx, op, args, &ids))
        .or_else(|| pool_gradients::call(cx, op, args, result))
        .or_else(|| losses::call(cx, op, args, &ids))
        .or_else(|| factorisations::call(cx, op, args, &ids))
        .or_else(|| spectra::call(cx, op, args, &ids))
        .or_else(|| fourier::call(cx, op, args, result))
        .or_else(|| bags::call(cx, op, args, &ids))
        .or_else(|| convolution_gradient::call(cx, op, args, &ids))
        .or_else(|| distances::call(cx, op, args, result))
        .or_else(|| images::call(cx, op, args, result))
        .or_else(|| patches::call(cx, op, args, result))
        .or_else(|| selections::call(cx, op, args, result))
        .or_else(|| positions::call(cx, op, args, result))
        .or_else(|| order::call(cx, op, args, &ids))
        .or_else(|| checked::division(cx, op, args, result))
        .or_else(|| constructors::call(cx, op, args, result));
    match (lowered, &ids[..]) {
        (Some(lowered), _) => lowered,
        (None, [result]) => pointwise(cx, op, args, *result),
        (None, _) => Err(format!("{op} has no shader").into()),
    }
}

/// An operator of elements as a loop.
fn pointwise(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Lowered {
    let other = || format!("{op} has no shader");
    let mut inputs: Vec<TensorId> = Vec::new();
    let argument = |it: &Operand| match it {
        Operand::Tensor(id) => {
            inputs.push(*id);
            Some(Argument::Register(Register(inputs.len() as u32 - 1)))
        }
        other => Some(Argument::Value(other.clone())).filter(|_| other.is_plain()),
    };
    let args: Vec<Argument> = args.iter().map(argument).collect::<Option<_>>().ok_or_else(other)?;
    let known = |id: TensorId| cx.plan.tensor(id).known().map(|it| it.sizes);
    let sizes = known(result).ok_or("sizes that the data decides")?;
    let dtypes: Vec<_> = inputs.iter().map(|it| cx.plan.tensor(*it).dtype).collect();
    let mut is_promoted = false;
    for &id in &inputs {
        let own = known(id).ok_or("sizes that the data decides")?;
        let lead = sizes.len().checked_sub(own.len()).ok_or_else(other)?;
        if !own.iter().zip(&sizes[lead..]).all(|(own, size)| own == size || *own == 1) {
            return Err(other().into());
        }
        is_promoted |= own.is_empty();
    }
    // A tensor without dimensions takes part in promotion as a number does, which a register does not. What the result is, the plan says;
    // what is compared, it does not.
    let compares = cx.plan.tensor(result).dtype == DType::Bool;
    if is_promoted && compares && dtypes.windows(2).any(|it| it[0] != it[1]) {
        return Err(format!("{op} of several dtypes").into());
    }
    let code = vec![Instruction { op: op.into(), args, dtype: cx.plan.tensor(result).dtype }];
    let register = Register(inputs.len() as u32);
    loops::code(cx, &Loop { sizes: Dims::from_slice(&sizes), inputs, code, outputs: vec![(register, result)] })
}
