//! Loops: an invocation for each element runs the code.

use super::pointwise::{Given, expression};
use crate::lower::{Lowered, Lowering};
use crate::shader::{View, collapsed, coordinates};
use tracefx_core::DType;
use tracefx_plan::{Argument, Loop, Register, TensorId};

pub(super) fn code(cx: &mut Lowering<'_>, it: &Loop<TensorId>) -> Lowered {
    let n_inputs = it.inputs.len();
    let outer = it.inputs.iter().chain(it.outputs.iter().map(|(_, id)| id));
    let mut views: Vec<View> =
        outer.map(|id| Ok(cx.view(*id)?.0.expanded(&it.sizes))).collect::<Result<_, crate::Reason>>()?;
    collapsed(&mut views.iter_mut().collect::<Vec<_>>());
    let dtypes = it.inputs.iter().map(|id| cx.plan.tensor(*id).dtype);
    let dtypes: Vec<DType> = dtypes.chain(it.code.iter().map(|it| it.dtype)).collect();
    cx.try_for_each(it.sizes.iter().product(), |_, shader| {
        let sizes = views.first().map(|it| it.sizes.clone()).unwrap_or_default();
        let places = coordinates(shader, "i", &sizes, "c");
        for (at, view) in views[..n_inputs].iter().enumerate() {
            let element = shader.load(view, &view.at(&places));
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
            let text = expression(&instruction.op, &args, instruction.dtype)?;
            shader.line(format!("let r{} = {text};", n_inputs + at));
        }
        for ((Register(register), _), view) in it.outputs.iter().zip(&views[n_inputs..]) {
            let statement = shader.store(view, &view.at(&places), &format!("r{register}"));
            shader.line(statement);
        }
        Ok(())
    })
}
