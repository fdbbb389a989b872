//! Pointwise kernels, which either fill a tensor or give the function that they compute, so that a loop computes several of them
//! block by block. Whatever a kernel decides of its arguments, dtypes and conversions among it, it decides once, for both.

use crate::plan::{Symbols, plain_value};
use crate::{Executor, Kernel};
use std::any::Any;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_ops::{Args, Value};
use tracefx_plan::{Argument, Instruction};

/// What a pointwise kernel is asked for.
#[derive(Debug)]
pub enum Target<'a> {
    /// To write every element of a tensor: a row-major one of its own storage, which holds anything.
    Tensor(&'a Tensor),
    /// To give its function.
    Function(&'a mut Binding),
}

/// A function of the elements in registers, in the backend's own form.
pub type ElementFunction = Box<dyn Any + Send + Sync>;

/// The question for the function of a kernel. Its arguments hold a tensor for each register, which stands for the dtype alone.
#[derive(Debug)]
pub struct Binding {
    dtype: DType,
    /// What stands for the registers, in the order of the arguments.
    registers: Vec<Tensor>,
    function: Option<ElementFunction>,
}

impl<'a> Target<'a> {
    /// The dtype of the result.
    pub fn dtype(&self) -> DType {
        match self {
            Target::Tensor(it) => it.dtype(),
            Target::Function(it) => it.dtype,
        }
    }

    /// The tensor to fill, for a kernel that has no function to give.
    ///
    /// # Errors
    /// `NotImplemented` where the function is asked for.
    pub fn tensor(self, args: &Args<'_, Tensor>) -> Result<&'a Tensor> {
        match self {
            Target::Tensor(it) => Ok(it),
            Target::Function(_) => {
                Err(args.unsupported(format!("{} has no function of single elements", args.op.name)))
            }
        }
    }
}

impl Binding {
    /// The dtype of the result.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Which of the registers among the arguments this one stands for, counted from zero; nothing of a tensor that the kernel made itself.
    pub fn register(&self, tensor: &Tensor) -> Option<usize> {
        self.registers.iter().position(|it| it.storage().is_same(tensor.storage()))
    }

    /// Answers with the function.
    pub fn give(&mut self, function: ElementFunction) {
        self.function = Some(function);
    }
}

/// The function of an instruction, where the registers are of these dtypes.
///
/// # Errors
/// `NotImplemented` where the kernel has none for these arguments, or there is no kernel; what it refuses otherwise.
pub fn element_function(
    instruction: &Instruction,
    dtypes: &[DType],
    executor: Executor<'_>,
) -> Result<ElementFunction> {
    let op = executor.registry.require(&instruction.op)?;
    let missing = || Diagnostic::new(Code::NotImplemented, format!("{} has no function of single elements", op.name));
    let Some(Kernel::Pointwise(kernel)) = executor.kernels.get(&op.name) else { return Err(missing()) };
    let mut binding = Binding { dtype: instruction.dtype, registers: Vec::new(), function: None };
    let value = |it: &Argument| match it {
        Argument::Register(register) => {
            let tensor = Tensor::zeros(dtypes[register.0 as usize], &[1])?;
            binding.registers.push(tensor.clone());
            Ok(Value::Tensor(tensor))
        }
        Argument::Value(value) => plain_value(value, &Symbols::default()),
    };
    let args = Args::new(op, instruction.args.iter().map(value).collect::<Result<_>>()?);
    kernel(&args, Target::Function(&mut binding))?;
    binding.function.ok_or_else(missing)
}
