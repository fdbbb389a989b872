//! `gpu.ts`: the programs of a GPU.

pub(super) fn body() -> String {
    let types = tracefx_gpu::program_types().join("\n\n");
    format!("import type {{ DType }} from \"./dtypes.ts\";\n\n{types}\n")
}
