//! Passes that take a graph apart.

use super::{Declare, HostPass, PassCall};
use serde::Deserialize;
use serde_json::json;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::NodeId;
use tracefx_rewrite::SplitOptions;

pub(super) const PASSES: &[HostPass] = &[
    HostPass { name: "split_module", run: split_module },
    HostPass {
        name: "legalize_graph",
        run: |call| tracefx_rewrite::legalize_graph(&mut call.module.graph).map(|()| json!(null)),
    },
    HostPass {
        name: "stable_topological_sort",
        run: |call| tracefx_rewrite::stable_topological_sort(&mut call.module.graph).map(|()| json!(null)),
    },
];

pub(super) const TYPES: &[Declare] = &[];

/// A value for each node, by its place, null for nodes that have none.
struct ByNode<T> {
    values: Vec<Option<T>>,
    /// The place of each node, by the index of its id.
    places: Vec<usize>,
}

impl<T: Copy> ByNode<T> {
    fn new(call: &PassCall<'_>, values: Vec<Option<T>>) -> Result<Self> {
        let mut places = vec![0; call.module.graph.id_bound()];
        let nodes = call.nodes();
        if nodes.len() != values.len() {
            let what = format!("there are {} values for {} nodes", values.len(), nodes.len());
            return Err(Diagnostic::new(Code::InvalidOption, what));
        }
        nodes.iter().enumerate().for_each(|(place, it)| places[it.index()] = place);
        Ok(ByNode { values, places })
    }

    fn get(&self, node: NodeId) -> Option<T> {
        self.values[self.places[node.index()]]
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SplitCall {
    /// For each node its part; what is said of inputs, attributes and the output does not matter.
    partition_of: Vec<Option<i64>>,
    #[serde(default)]
    options: SplitOptions,
}

/// Answers `{ partitionNames, qualnameMap }`.
fn split_module(call: &mut PassCall<'_>) -> Result<serde_json::Value> {
    let SplitCall { partition_of, options } = call.options()?;
    let partition_of = ByNode::new(call, partition_of)?;
    let split =
        tracefx_rewrite::split_module(call.module, &mut |it| partition_of.get(it).unwrap_or_default(), &options)?;
    *call.module = split.module;
    let paths = split.qualname_map.iter().map(|(now, before)| (now.clone(), json!(&**before)));
    Ok(json!({ "partitionNames": split.partition_names, "qualnameMap": serde_json::Value::from_iter(paths) }))
}
