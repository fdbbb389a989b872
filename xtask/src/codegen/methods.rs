//! `methods.ts`: the operators that PyTorch offers as methods of tensors.

use super::signature::{Kind, members, names};
use super::surface::packets;

pub(super) fn body() -> String {
    let packets = packets("method");
    format!(
        "import type {{ DeviceLike, DTypeLike, Int, LayoutLike, MemoryFormatLike, Real, Scalar }} from \"../functions/types.ts\";\n\
         import type {{ Tensor }} from \"../tensor/tensor.ts\";\n\n\
         /** The operators that are methods of tensors. */\n\
         export interface TensorMethods {{\n{}}}\n\n\
         /** PyTorch's names of the methods. */\n\
         export const METHODS = \"{}\";\n",
        members(&packets, "", Kind::Method),
        names(&packets, ""),
    )
}
