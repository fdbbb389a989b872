//! Python's functions of numbers, with what Python answers.

use tracefx_core::{Code, Result, Scalar};
use tracefx_ops::{Args, Infer, Output, Value, bind, registry};

fn call(op: &str, args: &[Scalar]) -> Result<Scalar> {
    let op = registry().require(op)?;
    let values: Vec<_> = args.iter().map(|&it| Value::from(it)).collect();
    let Infer::Rule(rule) = op.def.infer else { panic!("{} has a rule", op.name) };
    match rule(&Args::new(op, bind(op, &values, &[])?))?.remove(0) {
        Output::Value(value) => Ok(value.as_scalar().expect("the result is a number")),
        other => panic!("{other:?} is no number"),
    }
}

#[track_caller]
fn check(op: &str, args: &[Scalar], want: Scalar) {
    assert_eq!(call(op, args).unwrap(), want);
}

use Scalar::{Bool, Float, Int};

#[test]
fn division_rounds_down_and_modulo_has_the_sign_of_the_divisor() {
    check("operator.floordiv", &[Int(-7), Int(2)], Int(-4));
    check("operator.mod", &[Int(-7), Int(2)], Int(1));
    check("operator.floordiv", &[Float(-7.5), Float(2.0)], Float(-4.0));
    check("operator.mod", &[Float(-7.5), Float(2.0)], Float(0.5));
    check("operator.floordiv", &[Float(1.0), Float(0.1)], Float(9.0));
    check("operator.truediv", &[Int(7), Int(2)], Float(3.5));
    assert_eq!(call("operator.mod", &[Int(1), Int(0)]).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(call("operator.truediv", &[Int(i64::MAX), Int(3)]).unwrap_err().code(), Code::NotImplemented);
}

#[test]
fn powers_are_ints_where_they_can_be() {
    check("operator.pow", &[Int(2), Int(10)], Int(1024));
    check("operator.pow", &[Int(2), Int(-1)], Float(0.5));
    check("operator.pow", &[Float(-2.0), Int(3)], Float(-8.0));
    assert_eq!(call("operator.pow", &[Int(0), Int(-1)]).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(call("operator.pow", &[Float(-2.0), Float(0.5)]).unwrap_err().code(), Code::NotImplemented);
    assert!(call("operator.pow", &[Int(10), Int(19)]).is_err());
}

#[test]
fn comparisons_are_exact() {
    let large = 9_007_199_254_740_993;
    check("operator.eq", &[Int(large), Float(9_007_199_254_740_992.0)], Bool(false));
    check("operator.gt", &[Int(large), Float(9_007_199_254_740_992.0)], Bool(true));
    check("operator.lt", &[Int(i64::MAX), Float(9_223_372_036_854_775_808.0)], Bool(true));
    check("operator.le", &[Int(2), Float(2.5)], Bool(true));
    check("operator.lt", &[Float(-2.5), Int(-2)], Bool(true));
    check("operator.eq", &[Bool(true), Int(1)], Bool(true));
    check("operator.ne", &[Float(f64::NAN), Int(1)], Bool(true));
    check("operator.le", &[Float(f64::NAN), Int(1)], Bool(false));
}

#[test]
fn sums_that_leave_64_bits_are_refused() {
    assert_eq!(call("operator.add", &[Int(i64::MAX), Int(1)]).unwrap_err().code(), Code::InvalidArgument);
    check("operator.and_", &[Bool(true), Bool(false)], Bool(false));
    check("operator.lshift", &[Int(1), Int(62)], Int(1 << 62));
    assert!(call("operator.lshift", &[Int(1), Int(63)]).is_err());
    check("operator.rshift", &[Int(-5), Int(200)], Int(-1));
    check("math.trunc", &[Float(-2.7)], Int(-2));
    assert!(call("math.trunc", &[Float(f64::INFINITY)]).is_err());
}
