//! `functions.ts`: the operators that PyTorch offers as functions.

use super::signature::{Kind, members, names};
use super::surface::packets;
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
        "import type { NamedResults } from \"../ts/src/functions/results.ts\";\n\
         import type { DeviceLike, DTypeLike, Int, LayoutLike, MemoryFormatLike, Real, Scalar } from \"../ts/src/functions/types.ts\";\n\
         import type { Tensor } from \"../ts/src/tensor/tensor.ts\";\n",
    );
    for (place, prefix, interface, doc) in NAMESPACES {
        let body = members(&packets(place), prefix, Kind::Function);
        write!(out, "\n/** {doc} */\nexport interface {interface} {{\n{body}}}\n")
            .expect("writing to a string succeeds");
    }
    out.push_str("\n/** PyTorch's names of the functions, by namespace. */\nexport const FUNCTIONS = {\n");
    for (place, prefix, ..) in NAMESPACES {
        writeln!(out, "  {place}: \"{}\",", names(&packets(place), prefix)).expect("writing to a string succeeds");
    }
    out.push_str("} as const;\n");
    out
}
