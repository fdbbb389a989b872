//! Every distinct expression of 330 archives that PyTorch 2.6 to 2.15 wrote, beside what sympy prints for it; 64 of the
//! printed forms are also in the programs that PyTorch printed. `tests/oracle/gen_expressions.py` makes the tables.

use tracefx_sym::{Guard, Limits, Parser};

const EXPRESSIONS: &str = include_str!("../fixtures/expressions.tsv");
/// The guards of the same archives and a few more, beside what `ast.unparse` makes of them when `L['x']` is `x`.
const GUARDS: &str = include_str!("../fixtures/guards.tsv");

/// Random expressions, beside what sympy makes of them with PyTorch's functions.
const SYMPY: &str = include_str!("../fixtures/sympy.tsv");

fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.lines().map(|line| line.split_once('\t').expect("two columns"))
}

#[test]
fn expressions_of_archives_print_as_in_pytorch() {
    let mut parser = Parser::default();
    let mut n = 0;
    for (srepr, printed) in rows(EXPRESSIONS) {
        let expr = parser.parse(srepr).unwrap_or_else(|error| panic!("{srepr}: {error}"));
        assert_eq!(expr.to_string(), printed, "{srepr}");
        n += 1;
    }
    assert_eq!(n, 109);
}

#[test]
fn expressions_of_archives_are_saved_as_pytorch_wrote_them() {
    let mut parser = Parser::default();
    for (srepr, _) in rows(EXPRESSIONS) {
        assert_eq!(parser.parse(srepr).unwrap().srepr(), srepr);
    }
}

#[test]
fn printed_expressions_are_read_back() {
    let mut parser = Parser::default();
    let exprs: Vec<_> = rows(EXPRESSIONS).map(|(srepr, printed)| (parser.parse(srepr).unwrap(), printed)).collect();
    for (expr, printed) in exprs {
        assert_eq!(parser.parse(printed).unwrap(), expr, "{printed}");
    }
}

#[test]
fn guards_print_as_pytorch_shows_them() {
    for (code, shown) in rows(GUARDS) {
        let guard = Guard::parse(code, &Limits::default()).unwrap_or_else(|error| panic!("{code}: {error}"));
        assert_eq!(guard.to_string(), shown, "{code}");
    }
}

#[test]
fn random_expressions_simplify_and_print_as_in_sympy() {
    let differing: Vec<String> = rows(SYMPY)
        .filter_map(|(written, printed)| {
            let mut parser = Parser::default();
            parser.parse("Symbol('u0', integer=True)").unwrap();
            let found = parser.parse(written).map_or_else(|error| error.to_string(), |it| it.to_string());
            (found != printed).then(|| format!("{written}\n  expected {printed}\n  found    {found}"))
        })
        .collect();
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}
