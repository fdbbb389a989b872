//! The language of loops: straight-line code on the elements at one place. An instruction calls a pointwise operator on registers, each
//! of which holds one element, and gives an element of the dtype that the operator gives for tensors. So what it computes is
//! what the operator computes, to the bit, for every dtype that it takes.
//!
//! The first registers hold the elements of the inputs, and each instruction fills the next one: the register that an instruction reads is one
//! that was filled before.

use crate::Operand;
use crate::bytes::parts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tracefx_core::{Code, DType, Diagnostic, Dims, Result};

/// A number of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Register(pub u32);

/// An argument of an instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// The element in a register, where the operator takes a tensor.
    Register(Register),
    /// A number or an option ([`Operand::is_plain`]).
    Value(Operand),
}

/// A call of a pointwise operator, the result of which fills the next register.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// The operator, `aten.relu.default`.
    #[serde(with = "parts::text")]
    pub op: Arc<str>,
    /// The arguments, one per argument of the schema.
    pub args: Vec<Argument>,
    /// The dtype of the result.
    #[serde(with = "parts::dtype")]
    pub dtype: DType,
}

/// Code that runs for every element of the sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loop<T> {
    /// The sizes.
    #[serde(with = "parts::dims")]
    pub sizes: Dims,
    /// The tensors whose elements the first registers hold. They broadcast to the sizes.
    pub inputs: Vec<T>,
    /// The instructions.
    pub code: Vec<Instruction>,
    /// The registers that are stored, each in an own row-major tensor of the sizes.
    pub outputs: Vec<(Register, T)>,
}

impl Instruction {
    /// The registers that it reads, in order.
    pub fn registers(&self) -> impl Iterator<Item = Register> {
        self.args.iter().filter_map(|it| match it {
            Argument::Register(register) => Some(*register),
            Argument::Value(_) => None,
        })
    }
}

impl<T> Loop<T> {
    /// The same loop on other tensors.
    ///
    /// # Errors
    /// The first that `tensor` gives.
    pub fn try_map<U, E>(
        &self,
        tensor: &mut dyn FnMut(&T) -> std::result::Result<U, E>,
    ) -> std::result::Result<Loop<U>, E> {
        Ok(Loop {
            sizes: self.sizes.clone(),
            inputs: self.inputs.iter().map(&mut *tensor).collect::<std::result::Result<_, E>>()?,
            code: self.code.clone(),
            outputs: self
                .outputs
                .iter()
                .map(|(register, it)| Ok((*register, tensor(it)?)))
                .collect::<std::result::Result<_, E>>()?,
        })
    }

    /// The dtype of each register, where `dtype` says that of a tensor.
    ///
    /// # Errors
    /// `GraphInvalid` where a register is read that was not filled, or stored in a tensor of another dtype; where an argument holds a tensor.
    pub fn dtypes(&self, dtype: &dyn Fn(&T) -> DType) -> Result<Vec<DType>> {
        let mut dtypes: Vec<DType> = self.inputs.iter().map(dtype).collect();
        let invalid = |what: String| Err(Diagnostic::new(Code::GraphInvalid, what));
        for instruction in &self.code {
            if let Some(Register(stray)) = instruction.registers().find(|it| it.0 as usize >= dtypes.len()) {
                return invalid(format!("{} reads the register {stray}, which nothing has filled", instruction.op));
            }
            if instruction.args.iter().any(|it| matches!(it, Argument::Value(value) if !value.is_plain())) {
                return invalid(format!("{} takes something that is neither a register nor a number", instruction.op));
            }
            dtypes.push(instruction.dtype);
        }
        for (Register(register), to) in &self.outputs {
            if dtypes.get(*register as usize) != Some(&dtype(to)) {
                return invalid(format!("the register {register} is stored in a tensor of {}", dtype(to).name()));
            }
        }
        Ok(dtypes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Buffer, Fused, Plan, TensorId, TensorView};

    /// A plan of one loop over two inputs, of `[2, 3]` and `[3]`, and a result of `[2, 3]`.
    fn plan(change: impl FnOnce(&mut Loop<TensorId>, &mut Plan)) -> Plan {
        let mut plan = Plan::default();
        let sizes: [&[tracefx_sym::SymInt]; 3] = [&[2.into(), 3.into()], &[3.into()], &[2.into(), 3.into()]];
        for (buffer, sizes) in [Buffer::Input(0), Buffer::Input(1), Buffer::Result].into_iter().zip(sizes) {
            let buffer = plan.add_buffer(buffer);
            plan.add_tensor(TensorView::row_major(buffer, DType::Float32, sizes));
        }
        let register = |it| Argument::Register(Register(it));
        let add = vec![register(0), register(1), Argument::Value(Operand::Int(1))];
        let mut it = Loop {
            sizes: Dims::from_slice(&[2, 3]),
            inputs: vec![TensorId(0), TensorId(1)],
            code: vec![
                Instruction { op: "aten.add.Tensor".into(), args: add, dtype: DType::Float32 },
                Instruction { op: "aten.relu.default".into(), args: vec![register(2)], dtype: DType::Float32 },
            ],
            outputs: vec![(Register(3), TensorId(2))],
        };
        plan.inputs = vec![Operand::Tensor(TensorId(0)), Operand::Tensor(TensorId(1))];
        plan.output = Operand::Tensor(TensorId(2));
        change(&mut it, &mut plan);
        plan.push("relu", Action::Fused(Fused::Loop(it)));
        plan
    }

    #[test]
    fn a_loop_prints_its_code() {
        let plan = plan(|_, _| {});
        plan.validate().unwrap();
        assert_eq!(
            plan.to_string(),
            "plan(%0: f32[2, 3], %1: f32[3]):
    %2: f32[2, 3] = loop([2, 3]: a = aten.add.Tensor(%0, %1, 1); b = aten.relu.default(a); store b -> %2)  # relu
    return %2"
        );
    }

    #[test]
    fn a_loop_may_write_where_it_reads() {
        plan(|it, _| it.outputs.push((Register(2), TensorId(0)))).validate().unwrap();
    }

    #[test]
    fn loops_that_do_not_hold_together_are_refused() {
        type Change = fn(&mut Loop<TensorId>, &mut Plan);
        let cases: [(Change, &str); 7] = [
            (|it, _| it.code[0].args[1] = Argument::Register(Register(2)), "which nothing has filled"),
            (|it, _| it.outputs[0].0 = Register(4), "the register 4 is stored in a tensor of float32"),
            (|it, _| it.code[1].dtype = DType::Bool, "the register 3 is stored in a tensor of float32"),
            (
                |it, _| it.code[0].args[2] = Argument::Value(Operand::Tensor(TensorId(0))),
                "neither a register nor a number",
            ),
            (|it, _| it.code[0].args[2] = Argument::Value(Operand::List(vec![])), "neither a register nor a number"),
            (|it, _| it.sizes = Dims::from_slice(&[3]), "in a loop over [3]"),
            (|it, _| it.outputs[0] = (Register(3), TensorId(1)), "is no row-major tensor of [2, 3]"),
        ];
        for (change, words) in cases {
            let problem = plan(change).validate().unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
    }

    #[test]
    fn outputs_lie_apart() {
        let turned = |it: &mut Loop<TensorId>, plan: &mut Plan| {
            let view = TensorView { strides: vec![1.into(), 2.into()], ..plan.tensor(TensorId(0)).clone() };
            it.inputs.push(plan.add_tensor(view));
            it.outputs = vec![(Register(0), TensorId(0))];
        };
        let twice = |it: &mut Loop<TensorId>, _: &mut Plan| it.outputs.push((Register(3), TensorId(2)));
        for plan in [plan(turned), plan(twice)] {
            assert!(plan.validate().unwrap_err().message().contains("whose memory it uses in another way"));
        }
    }
}
