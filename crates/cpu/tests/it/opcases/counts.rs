//! How many runs of the committed cases pass, which may only rise: `tests/conformance/counts.json`, where the runner of whole
//! folders keeps its counts too.

use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The tests of this file run side by side, and each may write.
static TABLE: Mutex<()> = Mutex::new(());

/// Fails where fewer runs pass than before. `TRACEFX_RECORD=1` keeps a number that rose; parts of the cases and other cases
/// say nothing.
pub(crate) fn may_only_rise(way: &str, n_passed: usize) {
    if ["TRACEFX_ONLY", "TRACEFX_OPCASES"].iter().any(|it| std::env::var_os(it).is_some()) {
        return;
    }
    let _lock = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/counts.json");
    let mut table: Json = fs::read_to_string(&file).map_or(json!({}), |it| serde_json::from_str(&it).unwrap());
    let known = &mut table["tests/fixtures"][way]["passed"];
    let before = known.as_u64().unwrap_or(0) as usize;
    assert!(n_passed >= before, "{n_passed} runs passed where {before} did before");
    if n_passed > before && std::env::var_os("TRACEFX_RECORD").is_some() {
        *known = json!(n_passed);
        fs::write(&file, serde_json::to_string_pretty(&table).unwrap() + "\n").unwrap();
    }
}
