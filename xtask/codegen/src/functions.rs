//! `functions.ts`: the operators that PyTorch offers as functions.

use super::signature::{Kind, Members, members};
use super::surface::{packets, unprefixed};
use super::{array, quoted};
use std::fmt::Write;
use tracefx_ops::OPERATOR_PLACES;

/// A namespace of functions.
struct Namespace {
    /// Its name.
    name: &'static str,
    /// How the names of its operators begin.
    prefix: &'static str,
    interface: &'static str,
    doc: &'static str,
}

impl Namespace {
    /// How the qualified names of its functions begin.
    fn target(&self) -> String {
        let place = if self.name == "torch" { "torch.".to_owned() } else { format!("torch._C._{}.", self.name) };
        assert!(OPERATOR_PLACES.contains(&&*place), "PyTorch has no module {place}");
        place + self.prefix
    }
}

const NAMESPACES: &[Namespace] = &[
    Namespace {
        name: "torch",
        prefix: "",
        interface: "TorchFunctions",
        doc: "The operators that are functions of `torch`.",
    },
    Namespace {
        name: "special",
        prefix: "special_",
        interface: "SpecialFunctions",
        doc: "The operators that are functions of `torch.special`.",
    },
    Namespace {
        name: "linalg",
        prefix: "linalg_",
        interface: "LinalgFunctions",
        doc: "The operators that are functions of `torch.linalg`.",
    },
    Namespace {
        name: "fft",
        prefix: "fft_",
        interface: "FftFunctions",
        doc: "The operators that are functions of `torch.fft`.",
    },
    Namespace {
        name: "nn",
        prefix: "",
        interface: "NnFunctions",
        doc: "The operators that PyTorch keeps in `torch._C._nn`.",
    },
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
    for Namespace { name, prefix, interface, doc, .. } in NAMESPACES {
        let Members { options, body } = members(&packets(name), prefix, Kind::Function);
        write!(out, "{options}\n/** {doc} */\nexport interface {interface} {{\n{body}}}\n")
            .expect("writing to a string succeeds");
    }
    let names: Vec<String> = NAMESPACES.iter().map(|it| quoted(it.name)).collect();
    write!(
        out,
        "\n/** A namespace of functions that are operators. */\n\
         export type FunctionNamespace = {};\n\n\
         /** How the qualified names of the functions begin, and the names of their operators, by namespace. */\n\
         export const PLACES: Readonly<Record<FunctionNamespace, readonly [target: string, prefix: string]>> = {{\n",
        names.join(" | ")
    )
    .expect("writing to a string succeeds");
    for it in NAMESPACES {
        writeln!(out, "  {}: [{}, {}],", it.name, quoted(&it.target()), quoted(it.prefix))
            .expect("writing to a string succeeds");
    }
    out.push_str(
        "};\n\n\
         /** PyTorch's names of the functions, by namespace. */\n\
         export const FUNCTIONS: Readonly<Record<FunctionNamespace, readonly string[]>> = {\n",
    );
    for Namespace { name, prefix, .. } in NAMESPACES {
        let packets = packets(name);
        let names: Vec<&str> = packets.iter().map(|it| unprefixed(it, prefix)).collect();
        writeln!(out, "  {name}: {},", array(&names, "  ")).expect("writing to a string succeeds");
    }
    out.push_str("};\n");
    out
}
