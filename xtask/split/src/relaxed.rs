//! Functions with instructions of relaxed SIMD. A host without these refuses a module that has one, whether it is run or not.

use crate::Refusal;
use crate::source::Source;
use std::collections::BTreeSet;
use wasm_encoder::{CodeSection, Function};
use wasmparser::{FunctionBody, Operator};

/// The functions with instructions of relaxed SIMD, by their number among those that the module defines.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Truncated`] and [`Refusal::Unsupported`].
pub fn relaxed_functions(module: &[u8]) -> Result<BTreeSet<usize>, Refusal> {
    let mut res = BTreeSet::new();
    for (number, body) in Source::read(module)?.bodies.iter().enumerate() {
        if has_relaxed(body)? {
            res.insert(number);
        }
    }
    Ok(res)
}

/// The module for hosts without relaxed SIMD: its functions with such instructions trap.
///
/// # Errors
/// As [`relaxed_functions`].
pub fn without_relaxed(module: &[u8]) -> Result<Vec<u8>, Refusal> {
    let source = Source::read(module)?;
    let mut code = CodeSection::new();
    for body in &source.bodies {
        if has_relaxed(body)? {
            let mut function = Function::new([]);
            function.instructions().unreachable().end();
            code.function(&function);
        } else {
            code.raw(module.get(body.range()).ok_or(Refusal::Truncated)?);
        }
    }
    Ok(source.with(&[&code]))
}

fn has_relaxed(body: &FunctionBody<'_>) -> Result<bool, Refusal> {
    for operator in body.get_operators_reader()? {
        if is_relaxed(&operator?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_relaxed(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::I8x16RelaxedSwizzle
            | Operator::I32x4RelaxedTruncF32x4S
            | Operator::I32x4RelaxedTruncF32x4U
            | Operator::I32x4RelaxedTruncF64x2SZero
            | Operator::I32x4RelaxedTruncF64x2UZero
            | Operator::F32x4RelaxedMadd
            | Operator::F32x4RelaxedNmadd
            | Operator::F64x2RelaxedMadd
            | Operator::F64x2RelaxedNmadd
            | Operator::I8x16RelaxedLaneselect
            | Operator::I16x8RelaxedLaneselect
            | Operator::I32x4RelaxedLaneselect
            | Operator::I64x2RelaxedLaneselect
            | Operator::F32x4RelaxedMin
            | Operator::F32x4RelaxedMax
            | Operator::F64x2RelaxedMin
            | Operator::F64x2RelaxedMax
            | Operator::I16x8RelaxedQ15mulrS
            | Operator::I16x8RelaxedDotI8x16I7x16S
            | Operator::I32x4RelaxedDotI8x16I7x16AddS
    )
}
