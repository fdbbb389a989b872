//! Complex numbers of two float32, which registers hold as `vec2<f32>`: how they are loaded and stored, and the expressions of the
//! instructions of loops that take or give them.

use super::pointwise::{Given, converted, rounded};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, float};
use tracefx_core::DType;
use tracefx_plan::Operand;

/// The element at a place.
pub(super) fn load(shader: &mut Shader, view: &View, at: &str) -> String {
    let words = shader.load_words(view, at);
    format!("bitcast<vec2<f32>>({words})")
}

/// The statement that writes a register.
pub(super) fn store(shader: &mut Shader, view: &View, at: &str, value: &str) -> String {
    shader.store_words(view, at, &format!("bitcast<vec2<u32>>({value})"))
}

/// Whether an instruction takes or gives complex numbers.
pub(super) fn concerns(args: &[Given<'_>], dtype: DType) -> bool {
    dtype == DType::Complex64 || args.iter().any(|it| matches!(it, Given::Register(_, DType::Complex64)))
}

/// The expression of a register of the dtype, which the operator gives.
pub(super) fn expression(op: &str, args: &[Given<'_>], dtype: DType) -> Result<String, Reason> {
    let missing = || Reason::from(format!("{op} of complex numbers has no shader"));
    let (name, overload) = op.strip_prefix("aten.").and_then(|it| it.split_once('.')).ok_or_else(missing)?;
    let it = Instruction { args };
    let text = match dtype {
        DType::Complex64 => it.complex(name),
        DType::Bool => it.question(name),
        _ => it.real(name, dtype),
    };
    text.filter(|_| overload != "decimals").ok_or_else(missing)
}

struct Instruction<'a> {
    args: &'a [Given<'a>],
}

impl Instruction<'_> {
    /// The argument as a complex number.
    fn arg(&self, at: usize) -> Option<String> {
        Some(match self.args.get(at)? {
            Given::Register(name, DType::Complex64) => name.clone(),
            Given::Register(name, dtype) => {
                format!("vec2<f32>({}, 0.0f)", converted(name, Kind::of(*dtype)?, Kind::Float))
            }
            Given::Value(Operand::Complex(it)) => {
                format!("vec2<f32>({}, {})", float(it.re as f32), float(it.im as f32))
            }
            Given::Value(Operand::Float(it)) => format!("vec2<f32>({}, 0.0f)", float(*it as f32)),
            Given::Value(Operand::Int(it)) => format!("vec2<f32>({}, 0.0f)", float(*it as f32)),
            Given::Value(Operand::Bool(it)) => format!("vec2<f32>({}, 0.0f)", float(f32::from(u8::from(*it)))),
            Given::Value(_) => return None,
        })
    }

    /// The argument as a condition.
    fn condition(&self, at: usize) -> Option<String> {
        match self.args.get(at)? {
            Given::Register(name, DType::Complex64) => Some(format!("complex_is_other({name}, vec2<f32>(0.0f, 0.0f))")),
            Given::Register(name, dtype) => Some(converted(name, Kind::of(*dtype)?, Kind::Bool)),
            Given::Value(_) => None,
        }
    }

    fn one(&self, text: impl FnOnce(&str) -> String) -> Option<String> {
        Some(text(&self.arg(0)?))
    }

    fn two(&self, text: impl FnOnce(&str, &str) -> String) -> Option<String> {
        Some(text(&self.arg(0)?, &self.arg(1)?))
    }

    /// What adds or subtracts the second argument so many times.
    fn sum(&self, [a, b]: [usize; 2], sign: &str) -> Option<String> {
        let (a, b) = (self.arg(a)?, self.arg(b)?);
        Some(match self.args.get(2) {
            None | Some(Given::Value(Operand::Int(1) | Operand::None)) => format!("({a} {sign} {b})"),
            Some(Given::Value(_)) => format!("({a} {sign} complex_product({}, {b}))", self.arg(2)?),
            Some(Given::Register(..)) => return None,
        })
    }

    /// A complex number.
    fn complex(&self, name: &str) -> Option<String> {
        match name {
            "add" => self.sum([0, 1], "+"),
            "sub" => self.sum([0, 1], "-"),
            "rsub" => self.sum([1, 0], "-"),
            "mul" => self.two(|a, b| format!("complex_product({a}, {b})")),
            "div" => self.two(|a, b| format!("complex_quotient({a}, {b})")),
            "square" => self.one(|a| format!("complex_product({a}, {a})")),
            "reciprocal" => self.one(|a| format!("complex_quotient(vec2<f32>(1.0f, 0.0f), {a})")),
            "neg" => self.one(|a| format!("(-{a})")),
            "conj_physical" | "_conj" => self.one(|a| format!("vec2<f32>({a}.x, -{a}.y)")),
            "exp" => self.one(|a| format!("complex_exp({a})")),
            "log" => self.one(|a| format!("complex_log({a})")),
            "sqrt" => self.one(|a| format!("complex_sqrt({a})")),
            "rsqrt" => self.one(|a| format!("complex_quotient(vec2<f32>(1.0f, 0.0f), complex_sqrt({a}))")),
            "where" => {
                let [condition, a, b] = [self.condition(0)?, self.arg(1)?, self.arg(2)?];
                Some(format!("select({b}, {a}, {condition})"))
            }
            "masked_fill" => {
                let [a, mask, value] = [self.arg(0)?, self.condition(1)?, self.arg(2)?];
                Some(format!("select({a}, {value}, {mask})"))
            }
            "_to_copy" | "to" | "type_as" | "clone" | "alias_copy" | "contiguous" | "detach_copy"
            | "lift_fresh_copy" | "resolve_conj" | "resolve_neg" => self.arg(0),
            "copy" => self.arg(1),
            _ => None,
        }
    }

    /// A bool.
    fn question(&self, name: &str) -> Option<String> {
        match name {
            "eq" => self.two(|a, b| format!("(!complex_is_other({a}, {b}))")),
            "ne" => self.two(|a, b| format!("complex_is_other({a}, {b})")),
            "isnan" => self.one(|a| format!("(is_nan({a}.x) || is_nan({a}.y))")),
            "isinf" => self.one(|a| format!("(is_inf({a}.x) || is_inf({a}.y))")),
            "isfinite" => {
                self.one(|a| format!("(!(is_nan({a}.x) || is_nan({a}.y) || is_inf({a}.x) || is_inf({a}.y)))"))
            }
            "logical_not" => Some(format!("(!{})", self.condition(0)?)),
            "logical_and" => Some(format!("({} && {})", self.condition(0)?, self.condition(1)?)),
            "logical_or" => Some(format!("({} || {})", self.condition(0)?, self.condition(1)?)),
            "logical_xor" => Some(format!("({} != {})", self.condition(0)?, self.condition(1)?)),
            "_to_copy" | "to" => self.condition(0),
            _ => None,
        }
    }

    /// A real number of this dtype.
    fn real(&self, name: &str, dtype: DType) -> Option<String> {
        let text = match name {
            "abs" => self.one(|a| format!("hypot_of({a}.x, {a}.y)")),
            "angle" => self.one(|a| format!("atan2_of({a}.y, {a}.x)")),
            "imag" => self.one(|a| format!("{a}.y")),
            "real" | "_to_copy" | "to" => self.one(|a| format!("{a}.x")),
            _ => None,
        };
        Some(rounded(&converted(&text?, Kind::Float, Kind::of(dtype)?), dtype))
    }
}
