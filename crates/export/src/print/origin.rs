//! Where a node was made, in one line of a comment.

use serde_json::Value as Json;
use tracefx_core::python_float;
use tracefx_ir::{Meta, python_string};

/// The comment over a node: what the user noted, and the innermost frame of its stack.
pub(super) fn comment(meta: &Meta) -> String {
    let place = meta.get("stack_trace").and_then(innermost_frame);
    let place = place.unwrap_or_else(|| "No stacktrace found for following nodes".to_string());
    format!("#{} {place}", annotation(meta))
}

/// The innermost frame of a stack: the last one of Python's, `File: a.py:3 in forward, code: x + 1`, or the first one of
/// JavaScript's, which has no code: `File: file:///a.ts:3 in forward`.
fn innermost_frame(stack: &str) -> Option<String> {
    let lines: Vec<&str> = stack.trim().split('\n').collect();
    let frame = |at: usize| {
        let rest = lines[at].trim().strip_prefix("File \"")?;
        // As in PyTorch's pattern, the name of the file is as long as it can be.
        let (file, rest) = rest.rsplit_once("\", line ")?;
        let (line, name) = rest.split_once(", in ")?;
        let is_number = !line.is_empty() && line.bytes().all(|it| it.is_ascii_digit());
        (is_number && !name.is_empty())
            .then(|| format!("File: {file}:{line} in {name}, code: {}", lines[at + 1].trim()))
    };
    let python = (0..lines.len().saturating_sub(1)).rev().find_map(frame);
    python.or_else(|| javascript_frame(lines[0].trim()))
}

/// `at forward (file:///a.ts:3:9)` or `at file:///a.ts:3:9` as V8 writes a frame, `forward@file:///a.ts:3:9` as others do.
fn javascript_frame(line: &str) -> Option<String> {
    let (name, place) = match line.strip_prefix("at ") {
        Some(frame) => match frame.strip_suffix(')') {
            Some(frame) => frame.split_once(" (")?,
            None => ("", frame),
        },
        None => line.split_once('@')?,
    };
    let (place, column) = place.rsplit_once(':')?;
    let (file, line) = place.rsplit_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let name = if name.is_empty() { "<anonymous>" } else { name };
    (is_number(line) && is_number(column) && !file.is_empty()).then(|| format!("File: {file}:{line} in {name}"))
}

/// What the user noted under `custom`, cut to 40 characters each.
fn annotation(meta: &Meta) -> String {
    let Some(Ok(Json::Object(noted))) = meta.get("custom").map(serde_json::from_str::<Json>) else {
        return String::new();
    };
    if noted.is_empty() {
        return String::new();
    }
    let items = noted.iter().map(|(key, value)| {
        let text = if let Json::String(text) = value { text.clone() } else { repr(value) };
        let shown = match text.char_indices().nth(40) {
            Some((end, _)) => python_string(&format!("{}...", &text[..end])),
            None => repr(value),
        };
        format!("{}: {shown}", python_string(key))
    });
    format!(" Annotation: {{{}}}", items.collect::<Vec<_>>().join(", "))
}

/// Python's `repr`. JSON that was read is nested at most 128 deep.
fn repr(value: &Json) -> String {
    match value {
        Json::Null => "None".to_string(),
        Json::Bool(it) => if *it { "True" } else { "False" }.to_string(),
        Json::Number(it) => match it.as_f64() {
            Some(float) if it.is_f64() => python_float(float),
            Some(_) | None => it.to_string(),
        },
        Json::String(it) => python_string(it),
        Json::Array(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Json::Object(items) => {
            let items = items.iter().map(|(key, value)| format!("{}: {}", python_string(key), repr(value)));
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::innermost_frame;

    #[test]
    fn frames_of_python_and_of_every_javascript_are_understood() {
        let cases = [
            (
                "  File \"a.py\", line 3, in forward\n    return x + 1",
                Some("File: a.py:3 in forward, code: return x + 1"),
            ),
            (
                "at forward (file:///src/net.ts:8:52)\nat main (file:///src/main.ts:1:1)",
                Some("File: file:///src/net.ts:8 in forward"),
            ),
            ("at file:///src/main.ts:19:3", Some("File: file:///src/main.ts:19 in <anonymous>")),
            ("forward@http://localhost/net.ts:12:7", Some("File: http://localhost/net.ts:12 in forward")),
            ("@http://localhost/main.ts:3:1", Some("File: http://localhost/main.ts:3 in <anonymous>")),
            ("at forward (native)", None),
            ("somewhere", None),
            ("", None),
        ];
        for (stack, expected) in cases {
            assert_eq!(innermost_frame(stack).as_deref(), expected, "{stack:?}");
        }
    }
}
