//! What stands in the section of saved plans is refused with a typed error, or is a model, which runs or refuses to, and ends: whatever its steps say,
//! a panic of a kernel is an error, and nothing is read or written outside of its buffers.

use tracefx_core::{Storage, Tensor};
use tracefx_ops::Value;
use tracefx_plan::{Operand, Plan};
use tracefx_runtime::{Model, Saved};

/// The bytes of each storage that stands beside the plans, and how many there are.
pub(crate) const STORAGES: [usize; 4] = [64, 256, 1024, 4096];

/// Plans with more elements in their buffers are opened, and not run.
const MAX_BYTES: usize = 1 << 20;

pub(crate) fn check(input: &[u8]) {
    let Ok(saved) = Saved::from_bytes(input) else { return };
    let storages: Vec<Storage> = STORAGES.iter().map(|it| Storage::zeroed(*it).unwrap()).collect();
    let Ok(model) = Model::of(saved, &storages) else { return };
    let inputs = model.plans().find_map(|it| is_small(it).then(|| inputs(it)).flatten());
    if let Some(inputs) = inputs {
        for _ in 0..2 {
            drop(model.run(&inputs));
        }
    }
}

fn is_small(plan: &Plan) -> bool {
    let n_bytes: Option<usize> = plan.buffer_sizes().into_iter().sum();
    n_bytes.is_some_and(|it| it < MAX_BYTES)
}

/// Zeros as the plan takes them.
fn inputs(plan: &Plan) -> Option<Vec<Value<Tensor>>> {
    let input = |it: &Operand| match it {
        Operand::Tensor(id) => {
            let (view, extent) = (plan.tensor(*id), plan.tensor(*id).known()?);
            let storage = Storage::zeroed(extent.span(view.dtype)?).ok()?;
            Tensor::view_of(storage, view.dtype, &extent.sizes, &extent.strides, extent.offset).ok().map(Value::Tensor)
        }
        Operand::Int(it) => Some(Value::int(*it)),
        Operand::Float(it) => Some(Value::Float(*it)),
        Operand::Bool(it) => Some(Value::Bool(*it)),
        _ => Some(Value::None),
    };
    plan.inputs.iter().map(input).collect()
}
