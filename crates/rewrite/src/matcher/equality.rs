//! Python's equality of literals, which tells types apart at the top and forgets them inside.

use tracefx_ir::Arg;

/// Whether a literal of the pattern is the literal of the graph: `type(a) is type(b) and a == b`.
///
/// As in FX, 1 is neither 1.0 nor `True`; and no node of the pattern that stands inside a dict or slice is a node of the
/// graph.
pub(crate) fn is_same_literal(pattern: &Arg, found: &Arg) -> bool {
    let is_same_type = std::mem::discriminant(pattern) == std::mem::discriminant(found);
    is_same_type && equal(pattern, found, &|_, _| false)
}

/// Whether two arguments of one graph are equal, as Python's `==` has it.
pub(crate) fn is_equal(a: &Arg, b: &Arg) -> bool {
    equal(a, b, &|a, b| a == b)
}

fn equal(a: &Arg, b: &Arg, nodes: &dyn Fn(&Arg, &Arg) -> bool) -> bool {
    let all = |a: &[Arg], b: &[Arg]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, nodes));
    match (a, b) {
        (Arg::Node(_), Arg::Node(_)) => nodes(a, b),
        (Arg::List(a), Arg::List(b)) | (Arg::Tuple(a), Arg::Tuple(b)) => all(a, b),
        (Arg::Slice(a), Arg::Slice(b)) => all(&a[..], &b[..]),
        (Arg::Dict(a), Arg::Dict(b)) => {
            let has = |(key, a)| b.iter().any(|(other, b)| key == other && equal(a, b, nodes));
            a.len() == b.len() && a.iter().map(|(key, a)| (key, a)).all(has)
        }
        _ => match (a.as_scalar(), b.as_scalar()) {
            (Some(_), Some(_)) => number(a) == number(b),
            _ => a == b,
        },
    }
}

/// What numbers of different types have in common. An int that no float is stays an int, so that it equals no float.
#[derive(PartialEq)]
enum Number {
    Int(i64),
    Float(f64, f64),
}

fn number(arg: &Arg) -> Option<Number> {
    match arg.as_scalar()? {
        tracefx_core::Scalar::Bool(it) => Some(Number::Int(it.into())),
        tracefx_core::Scalar::Int(it) => Some(Number::Int(it)),
        tracefx_core::Scalar::Float(it) => Some(real(it)),
        tracefx_core::Scalar::Complex(it) if it.im == 0.0 => Some(real(it.re)),
        tracefx_core::Scalar::Complex(it) => Some(Number::Float(it.re, it.im)),
    }
}

fn real(value: f64) -> Number {
    // Below 2^63 in size, floats without a fraction are ints of 64 bits, exactly.
    let is_int = value.fract() == 0.0 && value.abs() < i64::MIN.unsigned_abs() as f64;
    if is_int { Number::Int(value as i64) } else { Number::Float(value, 0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_apart_at_the_top_only() {
        let list = |it: Arg| Arg::List(vec![it]);
        assert!(!is_same_literal(&Arg::Int(1), &Arg::Float(1.0)));
        assert!(!is_same_literal(&Arg::Int(1), &Arg::Bool(true)));
        assert!(is_same_literal(&list(Arg::Int(1)), &list(Arg::Float(1.0))));
        assert!(!is_same_literal(&list(Arg::Int(1)), &Arg::Tuple(vec![Arg::Int(1)])));
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let big = (1 << 53) + 1;
        assert!(!is_equal(&Arg::Int(big), &Arg::Float(big as f64)));
        assert!(is_equal(&Arg::Float(0.0), &Arg::Float(-0.0)));
        assert!(!is_equal(&Arg::Float(f64::NAN), &Arg::Float(f64::NAN)));
        assert!(!is_equal(&Arg::Int(i64::MAX), &Arg::Float(i64::MAX as f64)));
    }
}
