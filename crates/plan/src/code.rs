//! The language of loops: straight-line code on the elements at one place. An instruction calls a pointwise operator on registers, each
//! of which holds one element, and gives an element of the dtype that the operator gives for tensors. So what it computes is
//! what the operator computes, to the bit, for every dtype that it takes.
//!
//! The first registers hold the elements of the inputs, and each instruction fills the next one: the register that an instruction reads is one
//! that was filled before.

use crate::Operand;
use std::sync::Arc;
use tracefx_core::{Code, DType, Diagnostic, Dims, Result};

/// A number of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// An argument of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The element in a register, where the operator takes a tensor.
    Register(Register),
    /// A number or an option ([`Operand::is_plain`]).
    Value(Operand),
}

/// A call of a pointwise operator, the result of which fills the next register.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The operator, `aten.relu.default`.
    pub op: Arc<str>,
    /// The arguments, one per argument of the schema.
    pub args: Vec<Argument>,
    /// The dtype of the result.
    pub dtype: DType,
}

/// Code that runs for every element of the sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop<T> {
    /// The sizes.
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
