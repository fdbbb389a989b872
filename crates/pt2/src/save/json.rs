//! JSON as Python's `json.dumps` writes it: a space after commas and colons, and nothing but ASCII.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};
use tracefx_core::allocate::{Written, io_problem};
use tracefx_core::{Code, Diagnostic, Result};

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|it: char| !it.is_ascii() || it == '\u{7f}') {
            let (plain, tail) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut chars = tail.chars();
            let mut units = [0; 2];
            match chars.next() {
                Some('\u{7f}') => writer.write_all(b"\x7f")?,
                Some(it) => it.encode_utf16(&mut units).iter().try_for_each(|it| write!(writer, "\\u{it:04x}"))?,
                None => {}
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// The text of a document.
pub(super) fn to_vec(document: &impl Serialize) -> Result<Vec<u8>> {
    let mut written = Written::default();
    document.serialize(&mut Serializer::with_formatter(&mut written, Python)).map_err(|error| {
        io_problem(error.into(), |error| {
            Diagnostic::new(Code::NotImplemented, format!("PyTorch's schema has no place for this: {error}"))
        })
    })?;
    Ok(written.0)
}

/// A text as JSON text has it.
pub(super) fn quoted(text: &str) -> Result<String> {
    to_vec(&text).map(|it| String::from_utf8(it).expect("the writer gives ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_python_writes() {
        let text = to_vec(&(1, "é\u{1f600}\n\"\u{7f}", [1.5], std::collections::BTreeMap::from([("k", ())]))).unwrap();
        let expected = r#"[1, "\u00e9\ud83d\ude00\n\""#.to_string() + "\u{7f}" + r#"", [1.5], {"k": null}]"#;
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
