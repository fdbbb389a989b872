//! Every distinct expression of 330 archives that PyTorch 2.6 to 2.15 wrote, beside what sympy prints for it; 64 of the
//! printed forms are also in the programs that PyTorch printed.

use tracefx_sym::Parser;

const EXPRESSIONS: &str = include_str!("fixtures/expressions.tsv");

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
