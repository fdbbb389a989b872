//! Modules that tell which of their functions were called.

use crate::Refusal;
use crate::encoding::Renumbered;
use crate::source::Source;
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, ExportKind, ExportSection, Function, GlobalSection, GlobalType, Instruction, ValType,
};

/// What the names of the flags begin with; the number of the function follows, of those that the module defines.
pub const FLAG: &str = "called:";

/// The module with a flag for each function that it defines: an exported global, which is 1 once the function was called.
///
/// # Errors
/// [`Refusal::Malformed`] and [`Refusal::Unsupported`].
pub fn instrument(module: &[u8]) -> Result<Vec<u8>, Refusal> {
    let source = Source::read(module)?;
    let first = u32::try_from(source.globals.len()).expect("a module has fewer globals than bytes");
    let mut encoder = Renumbered::default();

    let mut globals = GlobalSection::new();
    for global in &source.globals {
        encoder.parse_global(&mut globals, global.clone())?;
    }
    let mut exports = ExportSection::new();
    for export in &source.exports {
        encoder.parse_export(&mut exports, *export)?;
    }
    let mut code = CodeSection::new();
    for (flag, body) in (first..).zip(&source.bodies) {
        globals.global(GlobalType { val_type: ValType::I32, mutable: true, shared: false }, &ConstExpr::i32_const(0));
        exports.export(&format!("{FLAG}{}", flag - first), ExportKind::Global, flag);

        let mut function = encoder.new_function_with_parsed_locals(body)?;
        function.instruction(&Instruction::I32Const(1)).instruction(&Instruction::GlobalSet(flag));
        copy(&mut function, module, body)?;
        code.function(&function);
    }

    Ok(source.with(&[&globals, &exports, &code]))
}

/// Appends the instructions of a body as they are.
fn copy(function: &mut Function, module: &[u8], body: &wasmparser::FunctionBody<'_>) -> Result<(), Refusal> {
    let begin = body.get_operators_reader()?.original_position();
    function.raw(module[begin..body.range().end].iter().copied());
    Ok(())
}
