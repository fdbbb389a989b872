//! Tables: what is read, what is refused, and what comes out.

use tracefx_core::Code;
use tracefx_sym::{
    Equation, EvalError, Expr, Guard, GuardError, InputProperty, InputValue, Invalid, Limits, Parser, PathStep,
    ShapeEnv, SymInt, Symbol, Value, ValueRange, Violation, solve,
};

fn parse(text: &str) -> Expr {
    let mut parser = Parser::default();
    parser.parse("Symbol('u0', integer=True)").unwrap();
    parser.parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn int(text: &str) -> SymInt {
    parse(text).as_int().unwrap_or_else(|| panic!("{text} is no integer")).clone()
}

#[track_caller]
fn check_print(text: &str, printed: &str) {
    assert_eq!(parse(text).to_string(), printed);
}

#[track_caller]
fn check_refused(text: &str, code: Code, part: &str) {
    let error = Parser::default().parse(text).expect_err(text);
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn expressions_are_printed_in_the_order_of_sympy() {
    check_print("1 + s0", "s0 + 1");
    check_print("s2 + s10 + s0**2", "s0**2 + s10 + s2");
    check_print("6 - s0", "6 - s0");
    check_print("6 - 2*s0", "6 - 2*s0");
    check_print("6 - s0*s1", "-s0*s1 + 6");
    check_print("-s0 - 1", "-s0 - 1");
    check_print("(s0 + s1)//2*3", "3*(((s0 + s1)//2))");
    check_print("((s0 + 1)//2)**2", "(((s0 + 1)//2))**2");
    check_print("Mod(s0, 3) + 1", "(Mod(s0, 3)) + 1");
    check_print("Max(s1, 2, s0)", "Max(2, s0, s1)");
    check_print("PowByNatural(2, s0)", "PowByNatural(2, s0)");
    check_print("Pow(2, s0)", "2**s0");
    check_print("LShift(s0, 3)", "8*s0");
    check_print("RShift(s0, 3)", "(s0//8)");
    check_print("CeilDiv(s0, 4)", "((s0 + 3)//4)");
    check_print("CeilDiv(8*s0, 4)", "2*s0");
    check_print("ModularIndexing(s0, 2, 3)", "ModularIndexing(s0, 2, 3)");
    check_print("Identity(s0)*2", "2*(Identity(s0))");
}

#[test]
fn divisions_simplify_as_in_pytorch() {
    check_print("(4*s0 + 2)//4", "s0");
    check_print("(4*s0 + 2*s1)//4", "s0 + ((s1//2))");
    check_print("s0*s1//s0", "s1");
    check_print("6*s0//(4*s1)", "((3*s0)//(2*s1))");
    check_print("(s0**2 + s0)//(s0 + 1)", "s0");
    check_print("s0//2//3", "(s0//6)");
    check_print("s0//2//u0", "(((s0//2))//u0)");
    check_print("Mod(2*s0 + 1, 2)", "1");
    check_print("Mod(3*s0 + 1, 3)", "Mod(3*s0 + 1, 3)");
    check_print("s0 % (s0 + 1)", "s0");
    check_print("u0 % 2", "PythonMod(u0, 2)");
    check_print("Max(1, s0)", "s0");
    check_print("Min(0, s0)", "0");
    check_print("Min(s1, Max(s0, s1), u0)", "Min(s1, u0)");
    check_print("Max(8, u0, Min(5, s0))", "Max(8, u0)");
    check_print("Max(4, u0, Min(5, s0))", "Max(4, u0, Min(5, s0))");
    check_print("s0**2//s0", "s0");
    check_print("Max(0, s0//2)", "(s0//2)");
    check_print("Max(4*s0, s0)", "4*s0");
    check_print("Min(4*s0, s0)", "s0");
    check_print("Min(4*u0, u0)", "Min(u0, 4*u0)");
    check_print("Max(1, u0)", "Max(1, u0)");
}

#[test]
fn floats_and_relations_are_printed_as_by_sympy() {
    check_print("Float('100.0', precision=53)", "100.000000000000");
    check_print("zuf0 < 100.0", "zuf0 < 100.0");
    check_print("zuf0 + 1e20", "zuf0 + 1.0e+20");
    check_print("zuf0*1.5e-7", "1.5e-7*zuf0");
    check_print("zuf0 - 2", "zuf0 - 2");
    check_print("-zuf0", "-zuf0");
    check_print("ToFloat(s0)*0.5", "0.5*ToFloat(s0)");
    check_print("Mul(Rational(3, 2), Symbol('zuf0'))", "3*zuf0/2");
    check_print("Rational(4, 2)", "2");
    check_print("TruncToInt(FloatTrueDiv(zuf0, 2.0))", "TruncToInt(FloatTrueDiv(zuf0, 2.0))");
    check_print("IntTrueDiv(7, 2)", "3.50000000000000");
    check_print("Eq(s0, s1) & (s0 > 2)", "Eq(s0, s1) & (s0 > 2)");
    check_print("Not(And(s0 > 2, s1 > 2))", "~((s0 > 2) & (s1 > 2))");
    check_print("Or(And(s0 > 2, s1 > 2), s0 < 2)", "(s0 < 2) | ((s0 > 2) & (s1 > 2))");
    check_print("Not(s0 > 2)", "s0 <= 2");
    check_print("s0 + 1 > s0", "True");
    check_print("And(s0 > s0, s1 > 2)", "False");
    check_print("Where(s0 > 2, s0, s1)", "Where(s0 > 2, s0, s1)");
    check_print("Where(1 > 2, s0, s1)", "s1");
}

#[test]
fn what_is_saved_is_read_back() {
    for text in [
        "Add(Symbol('s0', positive=True, integer=True), Mul(Integer(-1), Integer(4), Symbol('u0', integer=True)))",
        "Integer(-9223372036854775808)",
        "Float('0.10000000000000001', precision=53)",
        "Float('1.7976931348623157e+308', precision=53)",
        "Float('4.9406564584124654e-324', precision=53)",
        "Float('-0.0025000000000000001', precision=53)",
        "Rational(-1, 3)",
        "Symbol('n', nonnegative=True, integer=True)",
        "Symbol('zf3', real=True)",
        "Mul(Rational(1, 2), Symbol('zuf0'))",
        "And(Equality(Symbol('u0', integer=True), Integer(3)), LessThan(Symbol('u1', integer=True), Integer(3)))",
        "true",
        "oo",
    ] {
        let expr = Parser::default().parse(text).unwrap();
        assert_eq!(expr.srepr(), text);
    }
}

#[test]
fn malformed_expressions_are_refused_with_their_place() {
    use Code::{ExpressionMalformed as Malformed, LimitExceeded};
    check_refused("", Malformed, "expected an expression, found the end at byte 0");
    check_refused("s0 +", Malformed, "at byte 4");
    check_refused("s0 s1", Malformed, "expected the end, found `s1` at byte 3");
    check_refused("Add(s0", Malformed, "expected `,`, found the end at byte 6");
    check_refused("__import__('os').system('true')", Malformed, "only a function of the grammar can be called");
    check_refused("exec(s0)", Malformed, "there is no function exec");
    check_refused("s0.real", Malformed, "no attributes");
    check_refused("lambda", Malformed, "`lambda` is no expression");
    check_refused("s0 if s1 else s2", Malformed, "expected the end");
    check_refused("9223372036854775808", Malformed, "64 bits");
    check_refused("99999999999999999999999", Malformed, "64 bits");
    check_refused("9223372036854775807 + 1", Malformed, "leaves 64 bits");
    check_refused("(s0 + 9)**60", Malformed, "64 bits");
    check_refused("s0//0", Malformed, "divides by zero at byte 0");
    check_refused("2**-1", Malformed, "not an integer");
    check_refused("Symbol('s0', integer=3)", Malformed, "neither True nor False");
    check_refused("Symbol('s0', prime=True)", Malformed, "the assumption prime is not supported");
    check_refused("Symbol('a b')", Malformed, "no name of a symbol");
    check_refused("Symbol('Max')", Malformed, "no name of a symbol");
    check_refused("Float('x')", Malformed, "digits");
    check_refused("Integer(s0)", Malformed, "wrong arguments");
    check_refused("FloorDiv(s0)", Malformed, "does not take 1 arguments");
    check_refused("And(s0, s1)", Malformed, "does not take the integer s0");
    check_refused("FloorDiv(zuf0, 2)", Malformed, "does not take the float zuf0");
    check_refused("Symbol('s0', integer=True) + Symbol('s0')", Malformed, "an integer in one place and not in another");
    check_refused("'s0'", Malformed, "a string is no expression");
    check_refused("'s0", Malformed, "a string has no end");
    check_refused("s0 ? s1", Malformed, "the character '?' means nothing here");
    check_refused(&"(".repeat(65), LimitExceeded, "max_depth = 64");
    check_refused(&"-".repeat(65), LimitExceeded, "max_depth = 64");
    check_refused(&format!("s0{}", "()".repeat(65)), LimitExceeded, "max_depth = 64");
    check_refused(&"1".repeat(4097), LimitExceeded, "max_length = 4096");
}

#[test]
fn limits_are_settable_and_count_the_symbols_of_a_program() {
    let mut parser = Parser::with_limits(Limits { max_symbols: 2, ..Limits::default() });
    parser.parse("s0 + s1 + s0").unwrap();
    let error = parser.parse("s2").unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
    assert!(error.message().contains("max_symbols = 2"));
    assert!(
        Parser::with_limits(Limits { max_depth: usize::MAX, ..Limits::default() }).parse(&"(".repeat(4000)).is_err()
    );
}

#[test]
fn the_sort_of_an_expression_is_checked() {
    let mut parser = Parser::default();
    assert!(parser.parse_int("s0 > 1").unwrap_err().message().contains("expected an integer"));
    assert!(parser.parse_bool("s0").unwrap_err().message().contains("expected a truth value"));
    assert!(parser.parse_float("s0 > 1").unwrap_err().message().contains("expected a float"));
    assert_eq!(parser.parse_float("3").unwrap().as_float(), Some(3.0));
}

#[test]
fn arithmetic_never_wraps() {
    let max = SymInt::from(i64::MAX);
    let min = SymInt::from(i64::MIN);
    for overflown in
        [&max + 1, &min - 1, &max * 2, -&min, min.floor_div(&(-1).into()), max.pow(2), SymInt::ZERO * (&max + 1)]
    {
        assert_eq!(overflown.invalid(), Some(Invalid::Overflow));
        assert_eq!(overflown.to_int(), Err(EvalError::Invalid(Invalid::Overflow)));
        assert_eq!(ShapeEnv::new().decide_eq(&overflown, &overflown), None);
        assert_ne!(overflown, 0);
    }
    assert_eq!(&min - &min, 0);
    assert_eq!(SymInt::from(7).modulo(&0.into()).invalid(), Some(Invalid::DivisionByZero));
    assert_eq!((&max * int("s0") * 2).invalid(), Some(Invalid::Overflow));
    let sum: SymInt = (0..40).map(|it| SymInt::from(Symbol::size(format!("s{it}")))).sum();
    assert_eq!(sum.pow(4).invalid(), Some(Invalid::TooLarge));
    let mut nested = int("s0");
    for divisor in 0..400 {
        nested = (nested + 1).floor_div(&SymInt::from(Symbol::integer(format!("u{divisor}"))));
    }
    assert_eq!(nested.invalid(), Some(Invalid::TooLarge));
}

#[test]
fn values_follow_python() {
    let value = |text: &str| {
        parse(text).eval(&|symbol| match symbol.name() {
            "s0" => Some(Value::Int(7)),
            "u0" => Some(Value::Int(-7)),
            "zuf0" => Some(Value::Float(2.5)),
            _ => None,
        })
    };
    assert_eq!(value("u0//2"), Ok(Value::Int(-4)));
    assert_eq!(value("PythonMod(u0, 2)"), Ok(Value::Int(1)));
    assert_eq!(value("IntTrueDiv(s0, u0)"), Ok(Value::Float(-1.0)));
    // Python: 9007199254740993 / 7 and 2**63 - 1 over 3.
    assert_eq!(value("IntTrueDiv(9007199254740993, s0)"), Ok(Value::Float(1286742750677284.8)));
    assert_eq!(value("IntTrueDiv(9223372036854775807, s0 - 4)"), Ok(Value::Float(3.0744573456182584e18)));
    assert_eq!(value("RoundToInt(zuf0)"), Ok(Value::Int(2)));
    assert_eq!(value("FloorToInt(-zuf0)"), Ok(Value::Int(-3)));
    assert_eq!(value("CeilToInt(-zuf0)"), Ok(Value::Int(-2)));
    assert_eq!(value("TruncToInt(-zuf0)"), Ok(Value::Int(-2)));
    assert_eq!(value("RoundDecimal(2.675, 2)"), Ok(Value::Float(2.67)));
    assert_eq!(value("RoundDecimal(zuf0*10.0, -1)"), Ok(Value::Float(20.0)));
    assert_eq!(value("RoundDecimal(zuf0*14.0, -1)"), Ok(Value::Float(40.0)));
    assert_eq!(value("RoundDecimal(zuf0*40.0, -3)"), Ok(Value::Float(0.0)));
    assert_eq!(value("RoundDecimal(zuf0*398.0, -1)"), Ok(Value::Float(1000.0)));
    assert_eq!(value("FloatPow(zuf0, 2.0)"), Ok(Value::Float(6.25)));
    assert_eq!(value("OpaqueUnaryFn_sqrt(s0 + 2)"), Ok(Value::Float(3.0)));
    assert_eq!(value("Max(zuf0, s0)"), Ok(Value::Float(7.0)));
    assert_eq!(value("Where(s0 > 3, s0, s0//(s0 - 7))"), Ok(Value::Int(7)));
    assert_eq!(value("ModularIndexing(s0, 2, 2)"), Ok(Value::Int(1)));
    assert_eq!(value("IsNonOverlappingAndDenseIndicator(s0, 3, 3, 1)"), Ok(Value::Int(1)));
    assert_eq!(value("IsNonOverlappingAndDenseIndicator(s0, 3, 4, 1)"), Ok(Value::Int(0)));
    // An int is not rounded to a float to be compared with one.
    assert_eq!(value("s0 + 9007199254740986 > 9007199254740992.0 + 0.0*zuf0"), Ok(Value::Bool(true)));
    assert_eq!(
        value("OpaqueUnaryFn_sqrt(u0)").unwrap_err().to_string(),
        "OpaqueUnaryFn_sqrt has no value for its argument"
    );
    assert_eq!(value("s0//(u0 + 7)"), Err(EvalError::Invalid(Invalid::DivisionByZero)));
    assert_eq!(value("s0*9223372036854775807"), Err(EvalError::Invalid(Invalid::Overflow)));
    assert_eq!(value("s5 + 1"), Err(EvalError::Unbound(Symbol::size("s5"))));
}

#[test]
fn decisions_use_ranges_and_the_parts_of_divisions() {
    let mut env = ShapeEnv::new();
    env.constrain(&Symbol::size("s0"), ValueRange::between(2, 64)).unwrap();
    let lt = |a: &str, b: &str| env.decide_lt(&int(a), &int(b));
    assert_eq!(lt("s0", "65"), Some(true));
    assert_eq!(lt("s0", "64"), None);
    assert_eq!(lt("s0", "2"), Some(false));
    assert_eq!(lt("s0//2", "s0"), Some(true));
    assert_eq!(lt("s1", "s0 + s1"), Some(true));
    assert_eq!(lt("4*(s0//4)", "s0 + 1"), Some(true));
    assert_eq!(lt("Min(s0, u0)", "65"), Some(true));
    assert_eq!(lt("s0", "Max(s0, s1) + 1"), Some(true));
    assert_eq!(lt("Mod(s0, 8)", "8"), Some(true));
    assert_eq!(env.decide_eq(&int("Mod(6*s0 + 4, 3)"), &int("1")), Some(true));
    assert_eq!(env.decide_eq(&int("s0*s1"), &int("0")), Some(false));
    assert_eq!(env.decide_eq(&int("Max(s0, s0 + 1)"), &int("s0 + 1")), Some(true));
    assert_eq!(env.decide_ne(&int("s0"), &int("1")), Some(true));
    assert_eq!(env.decide_eq(&int("s0"), &int("s1")), None);
    assert_eq!(env.bounds(&int("3*s0 - 1")), ValueRange::between(5, 191));
    assert_eq!(env.bounds(&int("s0*s1")), ValueRange::at_least(2));
}

#[test]
fn contradictions_name_both_constraints() {
    let mut env = ShapeEnv::new();
    let s0 = Symbol::size("s0");
    env.constrain(&s0, ValueRange::between(2, 8)).unwrap();
    let error = env.constrain(&s0, ValueRange::at_least(9)).unwrap_err();
    assert_eq!(error.to_string(), "no value of s0 is in both [2, 8] and [9, int_oo]");
    assert_eq!(env.range(&s0), ValueRange::between(2, 8));
}

#[test]
fn inputs_bind_symbols_and_every_violation_is_reported() {
    let equations: Vec<Equation> = [
        ("s0", 4),
        ("s0 + 1", 6),
        ("2*s1 + 1", 9),
        ("2*s2", 7),
        ("5", 5),
        ("5", 6),
        ("s3 + s4", 7),
        ("s1*s5", 12),
        ("s6//(s0 - 4)", 1),
        ("7//(s0 - 4)", 1),
        ("s7", 99),
    ]
    .map(|(expr, value)| Equation { expr: int(expr), value })
    .into();
    let mut env = ShapeEnv::new();
    env.constrain(&Symbol::size("s7"), ValueRange::between(2, 10)).unwrap();
    let solution = solve(&equations, &env);
    let bindings: Vec<String> = solution.bindings.iter().map(|(symbol, value)| format!("{symbol}={value}")).collect();
    assert_eq!(bindings, ["s0=4", "s1=4", "s5=3", "s7=99"]);
    assert_eq!(
        solution.violations,
        [
            Violation::Mismatch { equation: 1, expected: 5, because: vec![(Symbol::size("s0"), 0)] },
            Violation::NotDivisible { equation: 3, symbol: Symbol::size("s2") },
            Violation::Mismatch { equation: 5, expected: 5, because: vec![] },
            Violation::Undefined { equation: 9, error: EvalError::Invalid(Invalid::DivisionByZero) },
            Violation::OutOfRange {
                equation: 10,
                symbol: Symbol::size("s7"),
                value: 99,
                range: ValueRange::between(2, 10)
            },
        ]
    );
    assert_eq!(solution.unsolved, [6, 8]);
}

#[test]
fn guards_follow_python() {
    let holds = |code: &str| {
        Guard::parse(code, &Limits::default()).unwrap().holds(&|input| match (
            &*input.name,
            &*input.path,
            input.property,
        ) {
            ("x", [], InputProperty::Size(at)) => {
                [3, 4, 10].get(usize::try_from(at).ok()?).map(|it| InputValue::Int(*it))
            }
            ("x", [], InputProperty::Stride(0)) => Some(InputValue::Int(40)),
            ("x", [], InputProperty::StorageOffset) => Some(InputValue::Int(0)),
            ("a", [PathStep::Index(0), PathStep::Key(key)], InputProperty::Size(1)) if key == "k" => {
                Some(InputValue::Int(9))
            }
            ("n", [], InputProperty::Value) => Some(InputValue::Int(-7)),
            ("f", [], InputProperty::Value) => Some(InputValue::Float(0.5)),
            ("mode", [], InputProperty::Value) => Some(InputValue::Str("same".into())),
            ("none", [], InputProperty::Value) => Some(InputValue::None),
            _ => None,
        })
    };
    assert_eq!(holds("L['x'].size()[2] == (5*(L['x'].size()[2] // 5))"), Ok(true));
    assert_eq!(holds("((-1) + L['x'].size()[1]) != 3"), Ok(false));
    assert_eq!(holds("L['n'] // 2 == -4 and L['n'] % 4 == 1"), Ok(true));
    assert_eq!(holds("3 <= L['x'].size()[0] < L['x'].size()[1] <= 3"), Ok(false));
    assert_eq!(holds("L['a'][0]['k'].size()[1] <= 1024"), Ok(true));
    assert_eq!(holds("max(1, L['n']) == 1 or L['missing'] == 1"), Ok(true));
    assert_eq!(holds("not L['f'] * 4 == 2"), Ok(false));
    assert_eq!(holds("math.floor(L['f']) == 0"), Ok(true));
    assert_eq!(holds("L['mode'] == 'same' and L['none'] == None and L['mode'] != 3"), Ok(true));
    assert_eq!(holds("L['x'].stride()[0] % 8 == L['x'].storage_offset()"), Ok(true));
    assert_eq!(holds("L['x'].size()[0] ** 2 / 2 == 4.5"), Ok(true));
    assert_eq!(holds("L['x'].size()[9] == 1").unwrap_err().to_string(), "the inputs have no x.size()[9]");
    assert_eq!(holds("1 // (L['n'] + 7) == 1"), Err(GuardError::Eval(EvalError::Invalid(Invalid::DivisionByZero))));
    assert_eq!(holds("L['mode'] > 3").unwrap_err().to_string(), "> does not take such a value");
}

#[test]
fn guards_outside_of_the_grammar_are_refused() {
    for code in [
        "__import__('os').system('true')",
        "L",
        "L[0]",
        "L['']",
        "L['x'].size(0) == 1",
        "L['x'].numpy()[0] == 1",
        "L['x'].size()[s0] == 1",
        "x.size()[0] == 1",
        "max(1) == 1",
        "abs(L['n']) == 1",
        "L['n'] == 1; 2",
        "[1][0]",
    ] {
        let error = Guard::parse(code, &Limits::default()).expect_err(code);
        assert_eq!(error.code(), Code::ExpressionMalformed, "{error}");
    }
}
