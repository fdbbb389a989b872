//! `functions.ts`: the operators that PyTorch offers as functions.

use super::signature::{Kind, Members, members};
use super::surface::{packets, unprefixed};
use super::{array, quoted};
use std::fmt::Write;

/// A namespace of functions: its place in PyTorch, the prefix of its operators, the interface and what it is.
const NAMESPACES: &[(&str, &str, &str, &str)] = &[
    ("torch", "", "TorchFunctions", "The operators that are functions of `torch`."),
    ("special", "special_", "SpecialFunctions", "The operators that are functions of `torch.special`."),
    ("linalg", "linalg_", "LinalgFunctions", "The operators that are functions of `torch.linalg`."),
    ("fft", "fft_", "FftFunctions", "The operators that are functions of `torch.fft`."),
    ("nn", "", "NnFunctions", "The operators that PyTorch keeps in `torch._C._nn`."),
];

pub(super) fn body() -> String {
    let mut out = String::from(
        "import type { NamedResults } from \"../ts/src/base/results.ts\";\n\
         import type {\n\
         \x20 DeviceLike,\n\
         \x20 DTypeLike,\n\
         \x20 Int,\n\
         \x20 LayoutLike,\n\
         \x20 MemoryFormatLike,\n\
         \x20 Real,\n\
         \x20 Scalar,\n\
         } from \"../ts/src/base/types.ts\";\n\
         import type { Tensor } from \"../ts/src/tensor/tensor.ts\";\n",
    );
    for (place, prefix, interface, doc) in NAMESPACES {
        let Members { options, body } = members(&packets(place), prefix, Kind::Function);
        write!(out, "{options}\n/** {doc} */\nexport interface {interface} {{\n{body}}}\n")
            .expect("writing to a string succeeds");
    }
    let places: Vec<String> = NAMESPACES.iter().map(|(place, ..)| quoted(place)).collect();
    write!(
        out,
        "\n/** PyTorch's names of the functions, by namespace. */\n\
         export const FUNCTIONS: Readonly<Record<{}, readonly string[]>> = {{\n",
        places.join(" | ")
    )
    .expect("writing to a string succeeds");
    for (place, prefix, ..) in NAMESPACES {
        let packets = packets(place);
        let names: Vec<&str> = packets.iter().map(|it| unprefixed(it, prefix)).collect();
        writeln!(out, "  {place}: {},", array(&names, "  ")).expect("writing to a string succeeds");
    }
    out.push_str("};\n");
    out
}
