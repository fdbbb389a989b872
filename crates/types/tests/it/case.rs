//! The recorded graphs, built.

use serde_json::Value;
use std::path::Path;
use tracefx_core::DType;
use tracefx_ir::{Attribute, FakeTensor, GraphModule, TensorKind, TensorMeta};
use tracefx_sym::SymInt;
use tracefx_types::Modules;

/// The cases of a file of tests/fixtures/types.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/types").join(file);
    let text = std::fs::read_to_string(path).expect("the fixtures are there");
    text.lines().map(|it| serde_json::from_str(it).expect("a case is JSON")).collect()
}

/// The cases of a kind, those of windows with them: `NAME.jsonl` and `NAME_windows.jsonl`.
pub(crate) fn with_windows(name: &str) -> Vec<Value> {
    ["", "_windows"].iter().flat_map(|it| cases(&format!("{name}{it}.jsonl"))).collect()
}

/// The graph and modules of a case.
pub(crate) fn build(case: &Value) -> (GraphModule, Modules) {
    let mut gm = GraphModule::new(tracefx_testing::build(case));
    for (at, (name, sizes)) in case["params"].as_object().unwrap().iter().enumerate() {
        let sizes = sizes.as_array().unwrap().iter().map(|it| SymInt::from(it.as_i64().unwrap())).collect();
        let tensor = FakeTensor { meta: TensorMeta::contiguous(DType::Float32, sizes), id: at as u32 };
        gm.attributes.insert(name.as_str().into(), Attribute::Fake { tensor, kind: TensorKind::Parameter });
    }
    (gm, serde_json::from_value(case["modules"].clone()).unwrap())
}
