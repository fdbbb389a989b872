//! The operators that are decomposed by default, beside PyTorch's own table (torch 2.13).

use std::collections::BTreeSet;
use std::path::Path;
use tracefx_ops::registry;

/// Operators that are decomposed here or in PyTorch alone, each with its reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("aten._pad_packed_sequence.default", BY_DATA),
    ("aten.narrow.Tensor", BY_DATA),
    ("aten.tensor_split.tensor_indices_or_sections", BY_DATA),
    (
        "aten._scaled_dot_product_flash_attention_for_cpu.default",
        "PyTorch gives the weights in the place of the second result, which is another one",
    ),
    ("aten.bernoulli.default", "what it is made of draws other numbers than it does"),
    ("aten.conj_physical.default", "PyTorch makes it `_conj_physical`, which is the same under another name"),
    ("aten.is_nonzero.default", "a question to data, which PyTorch does not tag as one"),
    ("aten.lift_fresh_copy.default", "PyTorch makes it a clone too, but where it makes programs functional"),
    ("aten.upsample_bicubic2d.default", THROUGH_DEFAULT),
    ("aten.upsample_trilinear3d.default", THROUGH_DEFAULT),
];

const BY_DATA: &str = "PyTorch's decomposition looks at data, which an exported program does not have";
const THROUGH_DEFAULT: &str = "`.vec`, which PyTorch decomposes to the end, is made of this one";

#[test]
fn what_is_taken_apart_is_what_pytorch_takes_apart() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/decompositions/default.txt");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let table: BTreeSet<&str> = text.lines().collect();
    let (mut found, mut met) = (Vec::new(), BTreeSet::new());
    for op in registry().ops() {
        let is_functional = op.schema.args.iter().all(|it| !it.is_mutated);
        if op.schema.namespace != "aten" || !is_functional {
            continue;
        }
        let (here, there) = (op.is_decomposed(), table.contains(op.name.as_str()));
        let is_listed = DIFFERENT.iter().any(|(name, _reason)| *name == op.name);
        met.insert(op.name.as_str());
        if (here != there) != is_listed {
            found.push(format!("{}: here {here}, in PyTorch {there}, listed {is_listed}", op.name));
        }
    }
    found.extend(DIFFERENT.iter().filter(|it| !met.contains(it.0)).map(|it| format!("{}: no such operator", it.0)));
    let n_there = table.iter().filter(|it| met.contains(*it)).count();
    assert!(n_there > 100, "the table has {n_there} of the operators");
    assert!(found.is_empty(), "{} operators:\n{}", found.len(), found.join("\n"));
}
