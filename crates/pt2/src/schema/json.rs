//! JSON as Python writes it, made fit for a parser that is stricter, and places in it for errors.

use crate::Limits;
use std::borrow::Cow;
use tracefx_core::Result;
use tracefx_core::allocate::extend;

/// Checks how deep JSON nests, and puts quotes around the bare `Infinity` and `NaN` that Python's writer makes.
///
/// One pass over the bytes that knows strings and nothing else; what is wrong otherwise is left to the parser.
pub(super) fn prepare<'a>(text: &'a str, limits: &Limits) -> Result<Cow<'a, str>> {
    let bytes = text.as_bytes();
    let mut res = Vec::new();
    let (mut at, mut copied, mut depth) = (0, 0, 0u64);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = skip_string(bytes, at),
            b'[' | b'{' => {
                depth += 1;
                Limits::check("json_depth", limits.json_depth.min(127), depth)?;
                at += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'I' | b'N' => {
                let token = ["-Infinity", "Infinity", "NaN"].into_iter().find(|it| text[at..].starts_with(it));
                if let Some(token) = token {
                    [&text[copied..at], "\"", token, "\""].iter().try_for_each(|it| extend(&mut res, it.as_bytes()))?;
                    copied = at + token.len();
                }
                at += token.map_or(1, str::len);
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    extend(&mut res, &bytes[copied..])?;
    Ok(Cow::Owned(String::from_utf8(res).expect("it is made of texts")))
}

/// The field at a place of a text, as a path: `graph_module.graph.nodes[2].target`.
pub(super) fn place(text: &str, line: usize, column: usize) -> String {
    enum Level<'a> {
        Object(&'a str),
        Array(usize),
    }
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let end = (start + column).min(text.len());
    let bytes = text.as_bytes();
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut at = 0;
    while at < end {
        match bytes[at] {
            b'"' => {
                let after = skip_string(bytes, at);
                let is_key = bytes[after..].iter().find(|it| !it.is_ascii_whitespace()) == Some(&b':');
                if let Some(Level::Object(key)) = levels.last_mut().filter(|_| is_key) {
                    *key = &text[at + 1..after - 1];
                }
                at = after;
                continue;
            }
            b'{' => levels.push(Level::Object("")),
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => drop(levels.pop()),
            b',' => {
                if let Some(Level::Array(index)) = levels.last_mut() {
                    *index += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    let mut place = String::new();
    for level in levels {
        match level {
            Level::Object("") => {}
            Level::Object(key) if place.is_empty() => place.push_str(key),
            Level::Object(key) => place.extend([".", key]),
            Level::Array(index) => place.push_str(&format!("[{index}]")),
        }
    }
    // A name in a file may be of any length.
    match place.char_indices().nth(400) {
        Some((cut, _)) => format!("{}…", &place[..cut]),
        None => place,
    }
}

/// The position after the string that begins here, or the end where it does not end.
fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    // A backslash at the very end would point behind it.
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(prepare(input, &Limits::default()).unwrap(), expected);
    }

    #[test]
    fn bare_constants_are_quoted_and_strings_are_left_alone() {
        check(r#"{"a": Infinity, "b": [-Infinity, NaN]}"#, r#"{"a": "Infinity", "b": ["-Infinity", "NaN"]}"#);
        check(r#"{"NaN": "Infinity \" NaN \\", "b": NaN}"#, r#"{"NaN": "Infinity \" NaN \\", "b": "NaN"}"#);
        check("[-1, null, 2]", "[-1, null, 2]");
        check("é\"é", "é\"é");
        check("\"\\", "\"\\");
    }

    #[test]
    fn a_place_is_told_as_a_path() {
        let text = "{\"a\": [1, {\"b\": \"}\", \"c\": [[], 7]}],\n \"d\": {}}";
        let column = |part: &str| text.find(part).unwrap() + 1;
        assert_eq!(place(text, 1, column("7")), "a[1].c[1]");
        assert_eq!(place(text, 1, column("1,")), "a[0]");
        assert_eq!(place(text, 2, 8), "d");
        assert_eq!(place(text, 1, 1), "");
        assert_eq!(place("\"", 9, 9), "");
    }

    #[test]
    fn nesting_is_bounded_outside_of_strings() {
        let deep = "[".repeat(128);
        assert!(prepare(&deep, &Limits::default()).unwrap_err().message().contains("json_depth"));
        assert!(prepare(&format!("\"{deep}\""), &Limits::default()).is_ok());
        assert!(prepare(&"[]".repeat(1000), &Limits::default()).is_ok());
    }
}
