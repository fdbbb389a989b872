//! ExportedProgram: graph module, signature, state and dynamic-shape constraints.
