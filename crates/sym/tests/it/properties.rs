//! Properties of random expressions, against an evaluator that knows nothing of canonical forms.

use proptest::prelude::*;
use tracefx_sym::{Expr, Func, Parser, ShapeEnv, SymBool, SymInt, Symbol, ValueRange, call};

/// An expression as it was written.
#[derive(Clone, Debug)]
enum Written {
    Number(i64),
    Symbol(usize),
    Binary(Op, Box<Written>, Box<Written>),
    Square(Box<Written>),
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Modulo,
    Max,
    Min,
}

const OPS: [Op; 7] = [Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::Modulo, Op::Max, Op::Min];

fn symbols() -> [Symbol; 3] {
    [Symbol::size("s0"), Symbol::size("s1"), Symbol::integer("u0")]
}

/// The ranges that the decisions know, small enough to try everything.
const RANGES: [(i64, i64); 3] = [(1, 5), (2, 4), (-3, 3)];

impl Written {
    fn build(&self) -> SymInt {
        match self {
            Written::Number(it) => (*it).into(),
            Written::Symbol(it) => symbols()[*it].clone().into(),
            Written::Square(it) => it.build().pow(2),
            Written::Binary(op, a, b) => {
                let (a, b) = (a.build(), b.build());
                match op {
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a * b,
                    Op::FloorDiv => a.floor_div(&b),
                    Op::Modulo => a.modulo(&b),
                    Op::Max => a.max(&b),
                    Op::Min => a.min(&b),
                }
            }
        }
    }

    /// The value with Python's arithmetic; `None` for a division by zero.
    fn eval(&self, values: &[i64; 3]) -> Option<i128> {
        Some(match self {
            Written::Number(it) => (*it).into(),
            Written::Symbol(it) => values[*it].into(),
            Written::Square(it) => it.eval(values)?.checked_pow(2)?,
            Written::Binary(op, a, b) => {
                let (a, b) = (a.eval(values)?, b.eval(values)?);
                match op {
                    Op::Add => a.checked_add(b)?,
                    Op::Sub => a.checked_sub(b)?,
                    Op::Mul => a.checked_mul(b)?,
                    Op::FloorDiv if b == 0 => return None,
                    Op::FloorDiv => (a - (a % b + b) % b) / b,
                    Op::Modulo if b == 0 => return None,
                    Op::Modulo => (a % b + b) % b,
                    Op::Max => a.max(b),
                    Op::Min => a.min(b),
                }
            }
        })
    }
}

fn written() -> impl Strategy<Value = Written> {
    let leaf = prop_oneof![(-6i64..=6).prop_map(Written::Number), (0usize..3).prop_map(Written::Symbol)];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            8 => (proptest::sample::select(&OPS[..]), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Written::Binary(op, Box::new(a), Box::new(b))),
            1 => inner.prop_map(|it| Written::Square(Box::new(it))),
        ]
    })
}

fn relation() -> impl Strategy<Value = (Func, Written, Written)> {
    let funcs = [Func::Eq, Func::Ne, Func::Lt, Func::Le, Func::Gt, Func::Ge];
    (proptest::sample::select(funcs.to_vec()), written(), written())
}

fn build_relation(func: Func, a: &Written, b: &Written) -> SymBool {
    match call(func, vec![Expr::Int(a.build()), Expr::Int(b.build())]).unwrap() {
        Expr::Bool(it) => it,
        other => panic!("{other} is no relation"),
    }
}

fn every_value() -> impl Iterator<Item = [i64; 3]> {
    let [a, b, c] = RANGES.map(|(min, max)| min..=max);
    a.flat_map(move |x| {
        let c = c.clone();
        b.clone().flat_map(move |y| c.clone().map(move |z| [x, y, z]))
    })
}

fn value_of(values: &[i64; 3], symbol: &Symbol) -> Option<i64> {
    symbols().iter().position(|it| it == symbol).map(|at| values[at])
}

fn env() -> ShapeEnv {
    let mut env = ShapeEnv::new();
    for (symbol, (min, max)) in symbols().iter().zip(RANGES) {
        env.constrain(symbol, ValueRange::between(min, max)).unwrap();
    }
    env
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 2,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn canonical_forms_keep_the_value(written in written()) {
        let canonical = written.build();
        for values in every_value() {
            if let Some(expected) = written.eval(&values) {
                let found = canonical.eval(&|symbol| value_of(&values, symbol));
                prop_assert_eq!(found.map(i128::from), Ok(expected), "{} at {:?}", canonical, values);
            }
        }
    }

    #[test]
    fn equal_polynomials_are_equal(a in written(), b in written(), c in written()) {
        let (a, b, c) = (a.build(), b.build(), c.build());
        prop_assert_eq!((&a + &b) * &c, &c * &a + &b * &c);
        prop_assert_eq!(&a - &b + &b, &a + (&b - &b));
        prop_assert_eq!((&a + &b).pow(2), &a * &a + 2 * &a * &b + &b * &b);
        prop_assert_eq!(a.max(&b), b.max(&a));
        prop_assert_eq!(a.min(&b), b.min(&a));
    }

    #[test]
    fn printed_and_saved_forms_are_read_back(written in written(), (func, a, b) in relation()) {
        let mut parser = Parser::default();
        for symbol in symbols() {
            parser.parse(&SymInt::from(symbol).srepr()).unwrap();
        }
        let relation = build_relation(func, &a, &b);
        for expr in [Expr::from(written.build()), Expr::from(relation.clone()), Expr::from(!relation)] {
            if expr.invalid().is_none() && expr.srepr().len() <= 4096 {
                prop_assert_eq!(&parser.parse(&expr.srepr()).unwrap(), &expr);
                // `%` of numbers that may be negative has a name of its own in both forms.
                prop_assert_eq!(&parser.parse(&expr.to_string()).unwrap(), &expr);
            }
        }
    }

    #[test]
    fn substituting_numbers_is_evaluating(written in written()) {
        let canonical = written.build();
        for values in every_value().step_by(7) {
            let found = canonical.substitute(&|symbol| value_of(&values, symbol).map(SymInt::new));
            prop_assert_eq!(found.to_int().ok(), canonical.eval(&|symbol| value_of(&values, symbol)).ok());
        }
    }

    #[test]
    fn bounds_hold_for_every_value(written in written()) {
        let bounds = env().bounds(&written.build());
        for values in every_value() {
            if let Some(value) = written.eval(&values) {
                prop_assert!(bounds.contains(value.try_into().unwrap()), "{} has {} not in {}", written.build(), value, bounds);
            }
        }
    }

    #[test]
    fn decisions_hold_for_every_value((func, a, b) in relation()) {
        let relation = build_relation(func, &a, &b);
        let Some(decided) = env().decide(&relation) else { return Ok(()) };
        for values in every_value() {
            if let (Some(a), Some(b)) = (a.eval(&values), b.eval(&values)) {
                let holds = match func {
                    Func::Eq => a == b,
                    Func::Ne => a != b,
                    Func::Lt => a < b,
                    Func::Le => a <= b,
                    Func::Gt => a > b,
                    _ => a >= b,
                };
                prop_assert_eq!(holds, decided, "{} at {:?}", relation, values);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[sux0-9 ()+*/%,.'=<>&|~\\-]{0,40}|\\PC{0,40}") {
        let _ = Parser::default().parse(&text);
        let _ = tracefx_sym::Guard::parse(&text, &tracefx_sym::Limits::default());
    }
}
