//! Loops: an invocation for each element runs the code.

use super::complex;
use super::pointwise::{Given, expression};
use crate::lower::{Lowered, Lowering};
use crate::shader::{View, collapsed, coordinates};
use tracefx_core::DType;
use tracefx_plan::{Argument, Loop, Register, TensorId};

pub(super) fn code(cx: &mut Lowering<'_>, it: &Loop<TensorId>) -> Lowered {
    let n_inputs = it.inputs.len();
    let outer = it.inputs.iter().chain(it.outputs.iter().map(|(_, id)| id));
    let view = |id: TensorId| match cx.plan.tensor(id).dtype {
        DType::Complex64 => cx.movable(id),
        _ => Ok(cx.view(id)?.0),
    };
    let mut views: Vec<View> =
        outer.map(|id| Ok(view(*id)?.expanded(&it.sizes))).collect::<Result<_, crate::Reason>>()?;
    collapsed(&mut views.iter_mut().collect::<Vec<_>>());
    let dtypes = it.inputs.iter().map(|id| cx.plan.tensor(*id).dtype);
    let dtypes: Vec<DType> = dtypes.chain(it.code.iter().map(|it| it.dtype)).collect();
    cx.try_for_each(it.sizes.iter().product(), |_, shader| {
        let sizes = views.first().map(|it| it.sizes.clone()).unwrap_or_default();
        let places = coordinates(shader, "i", &sizes, "c");
        for (at, view) in views[..n_inputs].iter().enumerate() {
            let place = view.at(&places);
            let element = match view.dtype {
                DType::Complex64 => complex::load(shader, view, &place),
                _ => shader.load(view, &place),
            };
            shader.line(format!("let r{at} = {element};"));
        }
        for (at, instruction) in it.code.iter().enumerate() {
            let given = instruction.args.iter().map(|it| match it {
                Argument::Register(Register(register)) => {
                    Given::Register(format!("r{register}"), dtypes[*register as usize])
                }
                Argument::Value(value) => Given::Value(value),
            });
            let args: Vec<Given<'_>> = given.collect();
            let text = match complex::concerns(&args, instruction.dtype) {
                true => complex::expression(&instruction.op, &args, instruction.dtype)?,
                false => expression(&instruction.op, &args, instruction.dtype)?,
            };
            shader.line(format!("let r{} = {text};", n_inputs + at));
        }
        for ((Register(register), _), view) in it.outputs.iter().zip(&views[n_inputs..]) {
            let (place, value) = (view.at(&places), format!("r{register}"));
            let statement = match view.dtype {
                DType::Complex64 => complex::store(shader, view, &place, &value),
                _ => shader.store(view, &place, &value),
            };
            shader.line(statement);
        }
        Ok(())
    })
}
