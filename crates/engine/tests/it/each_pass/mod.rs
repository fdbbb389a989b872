//! The passes that any program can go through.

use serde_json::{Value as Json, json};

/// Each pass with its options, for a graph of this many nodes; those that a program has no part for change nothing.
pub(crate) fn with_options(n_nodes: usize) -> Vec<(&'static str, Json)> {
    let parts = |n_parts: usize| json!((0..n_nodes).map(|it| it * n_parts / n_nodes).collect::<Vec<_>>());
    vec![
        ("eliminate_dead_code", json!({})),
        ("eliminate_dead_code", json!({ "strict": true })),
        ("CSEPass", json!({})),
        ("merge_getitems", json!({})),
        ("constant_fold", json!({})),
        ("legalize_graph", json!({})),
        ("stable_topological_sort", json!({})),
        ("NormalizeArgs", json!({})),
        ("NormalizeOperators", json!({})),
        ("AnnotateTypesWithSchema", json!({})),
        ("annotate_getitem_nodes", json!({})),
        ("merge_matmul", json!({})),
        ("linear_permute_fusion", json!({})),
        ("FakeTensorProp", json!({})),
        ("reinplace", json!({})),
        ("functionalize", json!({})),
        ("functionalize", json!({ "remove": "mutations_and_views" })),
        ("replace_set_grad_with_hop", json!({})),
        ("replace_autocast_with_hop", json!({})),
        ("split_module", json!({ "partitionOf": parts(2) })),
        ("split_module", json!({ "partitionOf": parts(5) })),
        ("split_by_tags", json!({ "tags": ["part_0", "part_1", "part_2"], "tagOf": parts(3) })),
    ]
}
