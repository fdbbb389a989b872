//! Tree specs, as PyTorch's pytree dumps them.

use serde::Deserialize;
use serde_json::Value;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_export::TreeSpec;

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "type")]
    ty: Option<String>,
    context: Value,
    children_spec: Vec<Node>,
}

/// Reads PyTorch's `treespec_dumps`, protocol 1. How deep it nests is bounded by the JSON parser.
pub(crate) fn parse(text: &str) -> Result<TreeSpec> {
    let (protocol, root): (i64, Node) = serde_json::from_str(text).map_err(|error| malformed(&error.to_string()))?;
    if protocol != 1 {
        return Err(malformed(&format!("its protocol is {protocol}, and this reader knows 1")));
    }
    spec(root)
}

fn spec(node: Node) -> Result<TreeSpec> {
    let context = match node.context {
        Value::Null => None,
        Value::String(text) => Some(text.into()),
        other => Some(other.to_string().into()),
    };
    let spec = TreeSpec {
        ty: node.ty.map(Into::into),
        context,
        children: node.children_spec.into_iter().map(spec).collect::<Result<_>>()?,
    };
    if spec.is_leaf() && !spec.children.is_empty() {
        return Err(malformed("a leaf has children"));
    }
    if spec.keys().is_some_and(|keys| keys.len() != spec.children.len()) {
        return Err(malformed("a dict has not as many keys as values"));
    }
    Ok(spec)
}

fn malformed(what: &str) -> Diagnostic {
    Diagnostic::new(Code::SchemaMalformed, format!("the description of a nested value is malformed: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracefx_export::Key;

    const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

    fn text(ty: &str, context: &str, children: &[&str]) -> String {
        format!(r#"[1, {{"type": "{ty}", "context": {context}, "children_spec": [{}]}}]"#, children.join(", "))
    }

    #[test]
    fn containers_are_read_with_their_contexts() {
        let it = parse(&text("builtins.dict", r#""[\"k\", 3]""#, &[LEAF, LEAF])).unwrap();
        assert_eq!((it.num_leaves(), it.context.as_deref()), (2, Some(r#"["k", 3]"#)));
        assert_eq!(it.keys().unwrap(), [Key::Str("k".into()), Key::Int(3)]);
        let it = parse(&text("collections.namedtuple", r#""my.Point""#, &[LEAF])).unwrap();
        assert_eq!((it.context.as_deref(), it.keys()), (Some("my.Point"), None));
        let context = r#"{"default_factory_module": "builtins", "default_factory_name": "int", "dict_context": ["k"]}"#;
        let it = parse(&text("collections.defaultdict", context, &[LEAF])).unwrap();
        assert_eq!(it.keys().unwrap(), [Key::Str("k".into())]);
        assert!(parse(&format!("[1, {LEAF}]")).unwrap().is_leaf());
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let missing = text("builtins.dict", r#""[\"k\"]""#, &[]);
        let deep = format!("[1, {}", r#"{"type": "t", "context": null, "children_spec": ["#.repeat(200));
        for text in ["", "[]", "[1, {}]", "[1, []]", "{}", "[2, null]", &missing, &deep] {
            assert_eq!(parse(text).unwrap_err().code(), Code::SchemaMalformed, "{text}");
        }
    }
}
