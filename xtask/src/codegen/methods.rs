//! `methods.ts`: the operators that PyTorch offers as methods of tensors.

use super::signature::{Kind, members, names, self_position};
use super::surface::{Packet, packets};

pub(super) fn body() -> String {
    let packets = packets("method");
    format!(
        "import type {{ NamedResults }} from \"../ts/src/functions/results.ts\";\n\
         import type {{ DeviceLike, DTypeLike, Int, LayoutLike, MemoryFormatLike, Real, Scalar }} from \"../ts/src/functions/types.ts\";\n\
         import type {{ Tensor }} from \"../ts/src/tensor/tensor.ts\";\n\n\
         /** The operators that are methods of tensors. */\n\
         export interface TensorMethods {{\n{}}}\n\n\
         /** PyTorch's names of the methods. */\n\
         export const METHODS = \"{}\";\n\n\
         /** Which argument of the operator the tensor is, where it is not the first. */\n\
         export const SELF_POSITIONS: Readonly<Record<string, number>> = {{{}}};\n",
        members(&packets, "", Kind::Method),
        names(&packets, ""),
        positions(&packets),
    )
}

/// The methods whose tensor is not the first argument, with its position.
fn positions(packets: &[Packet]) -> String {
    let position = |packet: &Packet| packet.overloads.iter().map(|op| self_position(op)).max().unwrap_or(0);
    let moved = packets.iter().map(|it| (&it.name, position(it))).filter(|(_, at)| *at > 0);
    let entries: Vec<String> = moved.map(|(name, at)| format!(" {name}: {at}")).collect();
    if entries.is_empty() { String::new() } else { format!("{} ", entries.join(",")) }
}
