use crate::Limits;
use std::borrow::Cow;
use tracefx_core::Result;

/// Checks how deep JSON nests, and puts quotes around the bare `Infinity` and `NaN` that Python's writer makes.
///
/// One pass over the bytes that knows strings and nothing else; what is wrong otherwise is left to the parser.
pub(super) fn prepare<'a>(text: &'a str, limits: &Limits) -> Result<Cow<'a, str>> {
    let bytes = text.as_bytes();
    let mut res = String::new();
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
                    res.push_str(&text[copied..at]);
                    res.extend(["\"", token, "\""]);
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
    res.push_str(&text[copied..]);
    Ok(Cow::Owned(res))
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
    fn nesting_is_bounded_outside_of_strings() {
        let deep = "[".repeat(128);
        assert!(prepare(&deep, &Limits::default()).unwrap_err().message().contains("json_depth"));
        assert!(prepare(&format!("\"{deep}\""), &Limits::default()).is_ok());
        assert!(prepare(&"[]".repeat(1000), &Limits::default()).is_ok());
    }
}
