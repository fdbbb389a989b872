//! Which inputs a plan is for: those that lie as the ones that it was made for, in memory that overlaps as little as it asks for.

use super::operands::{Symbols, extent_of, learn};
use tracefx_core::{Tensor, storage_span};
use tracefx_ops::Value;
use tracefx_plan::{Buffer, Extent, Operand, Plan};

/// Whether a plan is for these inputs: tensors of the dtypes and layouts that it was made for, the same values of what is
/// no tensor, and memory of their own where the plan asks for that ([`Plan::alone`]).
pub fn fits(plan: &Plan, inputs: &[Value<Tensor>]) -> bool {
    let mut symbols = Symbols::default();
    let mut fits = |(operand, input): (&Operand, &Value<Tensor>)| is_like(plan, operand, input, &mut symbols);
    inputs.len() == plan.inputs.len() && plan.inputs.iter().zip(inputs).all(&mut fits) && are_alone(plan, inputs)
}

/// Whether nothing else that a run is given looks at the memory that is to be alone.
fn are_alone(plan: &Plan, inputs: &[Value<Tensor>]) -> bool {
    if plan.alone.is_empty() {
        return true;
    }
    let mut given = Vec::new();
    inputs.iter().for_each(|it| it.for_each_tensor(&mut |it| given.push(it)));
    // The storage, and the bytes of it. What looks at an input looks at what that looks at.
    let place = |buffer: &Buffer| match buffer {
        Buffer::Input(at) => given.get(*at as usize).map(|it| {
            let end = storage_span(it.sizes(), it.strides(), it.offset()).and_then(|it| usize::try_from(it).ok());
            let bytes = |it: usize| it.saturating_mul(given[*at as usize].dtype().size());
            (it.storage().id(), bytes(it.offset()), bytes(end.unwrap_or(usize::MAX)))
        }),
        Buffer::Constant(storage) => Some((storage.id(), 0, usize::MAX)),
        Buffer::Scratch | Buffer::Result | Buffer::Made => None,
    };
    let mut is_alone = vec![false; plan.buffers.len()];
    plan.alone.iter().for_each(|it| is_alone[it.0 as usize] = true);
    let places = plan.buffers.iter().zip(is_alone).filter_map(|(buffer, is_alone)| Some((place(buffer)?, is_alone)));
    let mut places: Vec<_> = places.filter(|((_, start, end), _)| start < end).collect();
    places.sort_unstable();
    // How far those before reach in the storage, all and those that are alone.
    let mut reach = (0, 0, 0);
    places.into_iter().all(|((storage, start, end), is_alone)| {
        let (all, alone) = if reach.0 == storage { (reach.1, reach.2) } else { (0, 0) };
        reach = (storage, all.max(end), if is_alone { alone.max(end) } else { alone });
        start >= if is_alone { all } else { alone }
    })
}

fn is_like(plan: &Plan, operand: &Operand, input: &Value<Tensor>, symbols: &mut Symbols) -> bool {
    learn(plan, operand, input, symbols);
    match (operand, input) {
        (Operand::Tensor(id), Value::Tensor(tensor)) => {
            let view = plan.tensor(*id);
            let is_same = |it: Extent| {
                it.sizes[..] == *tensor.sizes() && it.strides[..] == *tensor.strides() && it.offset == tensor.offset()
            };
            view.dtype == tensor.dtype() && extent_of(view, symbols).is_ok_and(is_same)
        }
        (Operand::List(operands), Value::List(inputs)) => {
            operands.len() == inputs.len() && operands.iter().zip(inputs).all(|(a, b)| is_like(plan, a, b, symbols))
        }
        (Operand::Expr(_), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => true,
        (Operand::None, Value::None) => true,
        (Operand::Bool(a), Value::Bool(b)) => a == b,
        (Operand::Int(a), Value::Int(b)) => b.as_int() == Some(*a),
        (Operand::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Operand::Complex(a), Value::Complex(b)) => {
            (a.re.to_bits(), a.im.to_bits()) == (b.re.to_bits(), b.im.to_bits())
        }
        (Operand::Str(a), Value::Str(b)) => **a == **b,
        (Operand::DType(a), Value::DType(b)) => a == b,
        (Operand::Device(a), Value::Device(b)) => a == b,
        (Operand::Layout(a), Value::Layout(b)) => a == b,
        (Operand::MemoryFormat(a), Value::MemoryFormat(b)) => a == b,
        (_, _) => false,
    }
}
