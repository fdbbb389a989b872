//! `SYMS`: symbolic numbers, as the text in which PyTorch saves them.

use crate::cursor::Cursor;
use crate::format::{Tag, sym};
use crate::strings::{StringWriter, Strings};
use crate::words::Words;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_sym::{Expr, Parser, SymBool, SymFloat, SymInt};

/// The expressions of a file that is being written.
#[derive(Debug, Default)]
pub(crate) struct ExprWriter {
    texts: StringWriter,
    parser: Parser,
}

impl ExprWriter {
    /// Writes a number, known or symbolic.
    pub(crate) fn write(&mut self, words: &mut Words, expr: &Expr) -> Result<()> {
        if let Some(invalid) = expr.invalid() {
            let what = format!("a size or number has no value: it {}", invalid.reason());
            return Err(Diagnostic::new(Code::GraphInvalid, what));
        }
        match known(expr) {
            Some(Known::Int(it)) => {
                words.tagged(sym::INT, 0)?;
                words.pair(it as u64);
                Ok(())
            }
            Some(Known::Float(it)) => {
                words.tagged(sym::FLOAT, 0)?;
                words.pair(it.to_bits());
                Ok(())
            }
            Some(Known::Bool(it)) => words.tagged(sym::BOOL, usize::from(it)),
            None => {
                let text = expr.srepr();
                if self.texts.find(&text).is_none() {
                    // A symbol may have a name, or two meanings, that no reader would accept.
                    parse(&mut self.parser, &text)?;
                }
                words.tagged(sym::EXPR, self.texts.index(&text))
            }
        }
    }

    /// Writes an integer, known or symbolic.
    pub(crate) fn write_int(&mut self, words: &mut Words, int: &SymInt) -> Result<()> {
        self.write(words, &Expr::Int(int.clone()))
    }

    /// The section, unless it would be empty.
    pub(crate) fn into_bytes(self) -> Result<Option<Vec<u8>>> {
        if self.texts.is_empty() { Ok(None) } else { self.texts.into_bytes().map(Some) }
    }
}

/// The expressions of a file that is being read.
#[derive(Debug, Default)]
pub(crate) struct Exprs {
    texts: Strings,
    parsed: Vec<Option<Expr>>,
    parser: Parser,
}

impl Exprs {
    pub(crate) fn read(cursor: Option<Cursor<'_>>) -> Result<Self> {
        let Some(cursor) = cursor else { return Ok(Exprs::default()) };
        let texts = Strings::read(cursor.clone())?;
        if texts.len() == 0 {
            return Err(cursor.fail("the section is empty"));
        }
        Ok(Exprs { parsed: vec![None; texts.len()], texts, parser: Parser::default() })
    }

    /// The number that comes next.
    pub(crate) fn next(&mut self, cursor: &mut Cursor<'_>) -> Result<Expr> {
        let word = cursor.word()?;
        let payload = word >> 8;
        match word & 0xff {
            sym::INT if payload == 0 => Ok(Expr::Int((cursor.pair()? as i64).into())),
            sym::FLOAT if payload == 0 => Ok(Expr::Float(f64::from_bits(cursor.pair()?).into())),
            sym::BOOL if payload <= 1 => Ok(Expr::Bool(SymBool::Const(payload == 1))),
            sym::EXPR => self.expression(cursor, payload),
            _ => Err(cursor.fail(format!("{word:#x} begins no number"))),
        }
    }

    /// The integer that comes next.
    pub(crate) fn next_int(&mut self, cursor: &mut Cursor<'_>) -> Result<SymInt> {
        match self.next(cursor)? {
            Expr::Int(it) => Ok(it),
            other @ (Expr::Float(_) | Expr::Bool(_)) => Err(cursor.fail(format!("{} stands for an int", other.sort()))),
        }
    }

    fn expression(&mut self, cursor: &Cursor<'_>, index: u32) -> Result<Expr> {
        let text = self.texts.get(cursor, index)?;
        let slot = &mut self.parsed[index as usize];
        if let Some(parsed) = slot {
            return Ok(parsed.clone());
        }
        let parsed = parse(&mut self.parser, &text).map_err(|it| cursor.fail(it.message()))?;
        Ok(slot.insert(parsed).clone())
    }

    /// Refuses expressions that nothing uses.
    pub(crate) fn finish(&self) -> Result<()> {
        self.texts.finish(Tag::Syms)
    }
}

/// The expression of a text, which must be its only spelling, so that what is read is written as it was.
fn parse(parser: &mut Parser, text: &str) -> Result<Expr> {
    let parsed = parser.parse(text)?;
    if known(&parsed).is_none() && parsed.invalid().is_none() && parsed.srepr() == text {
        return Ok(parsed);
    }
    let what = format!("`{text}` is not the canonical form of a symbolic expression");
    Err(Diagnostic::new(Code::ExpressionMalformed, what))
}

enum Known {
    Int(i64),
    Float(f64),
    Bool(bool),
}

fn known(expr: &Expr) -> Option<Known> {
    match expr {
        Expr::Int(it) => it.as_int().map(Known::Int),
        // A fraction is known, too, but only its expression is exact.
        Expr::Float(it) => it.as_float().filter(|&number| SymFloat::from(number) == *it).map(Known::Float),
        Expr::Bool(SymBool::Const(it)) => Some(Known::Bool(*it)),
        Expr::Bool(SymBool::Call(_) | SymBool::Invalid(_)) => None,
    }
}
