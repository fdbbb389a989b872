//! Any text is read as an expression and as a guard, or refused with a typed error; what is read keeps its value when it
//! is printed and read again.

use tracefx_sym::{Expr, Guard, InputValue, Limits, Parser, ShapeEnv, Value};

pub(crate) fn check(input: &[u8]) {
    let text = input.utf8_chunks().next().map_or("", |it| it.valid());
    let limits = Limits { max_length: 512, ..Limits::default() };
    if let Ok(guard) = Guard::parse(text, &limits) {
        let inputs = |number: i64| guard.holds(&move |_| Some(InputValue::Int(number)));
        drop((inputs(3), inputs(0), inputs(i64::MIN)));
        drop(guard.to_string());
    }
    let mut parser = Parser::with_limits(limits);
    let Ok(expr) = parser.parse(text) else { return };
    let mut reader = Parser::default();
    let saved = expr.srepr();
    // The saved form of a short text can be longer and deeper than what is read.
    if let Ok(again) = reader.parse(&saved) {
        assert_eq!(again.to_string(), expr.to_string(), "{saved}");
        assert_eq!(again.srepr(), saved);
        for number in [1, 2, 7, 1 << 40] {
            let bindings = |_: &_| Some(Value::Int(number));
            let (before, after) = (expr.eval(&bindings), again.eval(&bindings));
            let both_nan =
                matches!((&before, &after), (Ok(Value::Float(a)), Ok(Value::Float(b))) if a.is_nan() && b.is_nan());
            assert!(before == after || both_nan, "{saved}: {before:?} and {after:?}");
        }
    }
    match &expr {
        Expr::Int(int) => drop(ShapeEnv::new().bounds(int)),
        Expr::Bool(bool) => drop(ShapeEnv::new().decide(bool)),
        Expr::Float(_) => {}
    }
}
