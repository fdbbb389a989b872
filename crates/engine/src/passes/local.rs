//! Passes that change a graph where it stands.

use super::HostPass;
use serde_json::json;

pub(super) const PASSES: &[HostPass] = &[HostPass {
    name: "eliminate_dead_code",
    run: |call| {
        let registry = call.library.registry();
        let result = tracefx_rewrite::eliminate_dead_code(call.module, registry)?;
        Ok(json!({ "modified": result.modified }))
    },
}];
