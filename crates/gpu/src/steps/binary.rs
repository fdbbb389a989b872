//! Functions of two numbers beyond arithmetic: shifts, powers and divisors of integers, the step at zero, and the next float.

use crate::shader::Kind;
use tracefx_core::DType;

/// The expression of a function of two registers of the kind, which gives one of the dtype; nothing where there is none.
pub(super) fn of_two(name: &str, kind: Kind, dtype: DType, a: &str, b: &str) -> Option<String> {
    let bits = 8 * dtype.size();
    Some(match (name, kind) {
        ("__lshift__" | "bitwise_left_shift", Kind::Int) => format!("int_left({a}, {b}, {bits}i)"),
        ("__rshift__" | "bitwise_right_shift", Kind::Int) => format!("int_right({a}, {b}, {bits}i)"),
        ("__lshift__" | "bitwise_left_shift", Kind::Long) => format!("long_left({a}, {})", places(b)),
        ("__rshift__" | "bitwise_right_shift", Kind::Long) => format!("long_right({a}, {})", places(b)),
        ("pow", Kind::Int) => format!("int_power({a}, {b})"),
        ("pow", Kind::Long) => format!("long_power({a}, {b})"),
        ("gcd" | "lcm", Kind::Int) => {
            let [a, b] = [a, b].map(|it| absolute(it, dtype));
            format!("int_{name}({a}, {b})")
        }
        ("gcd" | "lcm", Kind::Long) => format!("long_{name}(long_absolute({a}), long_absolute({b}))"),
        ("heaviside", Kind::Float) => {
            let step = format!("select(0.0f, 1.0f, {a} > 0.0f && !is_nan({a}))");
            format!("select({step}, {b}, (bitcast<u32>({a}) & 0x7fffffffu) == 0u)")
        }
        ("heaviside", Kind::Int) => format!("select(select(0i, 1i, {a} > 0i), {b}, {a} == 0i)"),
        ("heaviside", Kind::Long) => {
            let step = format!("vec2<u32>(select(1u, 0u, long_is_negative({a})), 0u)");
            format!("select({step}, {b}, all({a} == vec2<u32>(0u, 0u)))")
        }
        ("heaviside", Kind::Bool) => format!("({a} || {b})"),
        // The neighbours of a half are not those of the float32 that it is held as.
        ("nextafter", Kind::Float) if dtype == DType::Float32 => format!("next_after({a}, {b})"),
        (_, Kind::Float | Kind::Int | Kind::Long | Kind::Bool) => return None,
    })
}

/// The places of a shift by an integer of 64 bits: one below zero is a large one.
fn places(n: &str) -> String {
    format!("select({n}.x, 64u, {n}.y != 0u)")
}

/// The absolute value, which the least integer of a dtype is itself.
fn absolute(a: &str, dtype: DType) -> String {
    match dtype {
        DType::Int8 => format!("select(abs({a}), {a}, {a} == -128i)"),
        DType::Int16 => format!("select(abs({a}), {a}, {a} == -32768i)"),
        _ => format!("abs({a})"),
    }
}
