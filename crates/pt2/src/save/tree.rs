//! The structure of nested values, as PyTorch's `treespec_dumps` writes it.

use super::invalid;
use super::json::quoted;
use tracefx_core::Result;
use tracefx_export::TreeSpec;

/// JSON nests to 127 levels, of which each level of the structure takes two.
const MAX_DEPTH: usize = 60;

/// The text of a structure, protocol 1.
pub(super) fn dump(spec: &TreeSpec) -> Result<String> {
    let mut text = "[1, ".to_string();
    write(spec, &mut text, 0)?;
    text.push(']');
    Ok(text)
}

fn write(spec: &TreeSpec, text: &mut String, depth: usize) -> Result<()> {
    if depth >= MAX_DEPTH {
        return Err(invalid(format!("a structure of inputs or outputs is nested deeper than {MAX_DEPTH} levels")));
    }
    let optional = |it: Option<&str>| it.map_or(Ok("null".to_string()), quoted);
    text.push_str("{\"type\": ");
    text.push_str(&optional(spec.ty.as_deref())?);
    text.push_str(", \"context\": ");
    match (spec.ty.as_deref(), spec.context.as_deref()) {
        // The only container of PyTorch's own whose context is no string.
        (Some("collections.defaultdict"), Some(context)) => text.push_str(context),
        (_, context) => text.push_str(&optional(context)?),
    }
    text.push_str(", \"children_spec\": [");
    for (at, child) in spec.children.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        write(child, text, depth + 1)?;
    }
    text.push_str("]}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::tree::parse;

    #[track_caller]
    fn check(text: &str) {
        assert_eq!(dump(&parse(text).unwrap()).unwrap(), text);
    }

    #[test]
    fn structures_are_written_as_they_were_read() {
        let leaf = r#"{"type": null, "context": null, "children_spec": []}"#;
        check(&format!("[1, {leaf}]"));
        check(&format!(
            r#"[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}, {{"type": "builtins.dict", "context": "[\"a\", \"\u00e9\"]", "children_spec": [{leaf}, {leaf}]}}]}}]"#
        ));
        let context =
            r#"{"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["k"]}"#;
        let text =
            format!(r#"[1, {{"type": "collections.defaultdict", "context": {context}, "children_spec": [{leaf}]}}]"#);
        assert_eq!(parse(&dump(&parse(&text).unwrap()).unwrap()).unwrap(), parse(&text).unwrap());
    }
}
