//! `methods.ts`: the operators that PyTorch offers as methods of tensors.

use super::array;
use super::signature::{Kind, Members, members, self_position};
use super::surface::{Packet, packets};

pub(super) fn body() -> String {
    let packets = packets("method");
    let Members { options, body } = members(&packets, "", Kind::Method);
    let names: Vec<&str> = packets.iter().map(|it| it.name.as_str()).collect();
    format!(
        "import type {{ NamedResults }} from \"../ts/src/base/results.ts\";\n\
         import type {{\n\
         \x20 DeviceLike,\n\
         \x20 DTypeLike,\n\
         \x20 Int,\n\
         \x20 LayoutLike,\n\
         \x20 MemoryFormatLike,\n\
         \x20 Real,\n\
         \x20 Scalar,\n\
         }} from \"../ts/src/base/types.ts\";\n\
         import type {{ Tensor }} from \"../ts/src/tensor/tensor.ts\";\n\
         {options}\n\
         /** The operators that are methods of tensors. */\n\
         export interface TensorMethods {{\n{body}}}\n\n\
         /** PyTorch's names of the methods. */\n\
         export const METHODS: readonly string[] = {};\n\n\
         /** Which argument of the operator the tensor is, where it is not the first. */\n\
         export const SELF_POSITIONS: Readonly<Record<string, number>> = {{{}}};\n",
        array(&names, ""),
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
