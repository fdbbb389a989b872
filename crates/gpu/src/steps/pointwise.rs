//! The scalar language in WGSL: the expression that an instruction of a loop is.

use super::binary::of_two;
use crate::program::Reason;
use crate::shader::{Kind, float, int, long};
use tracefx_core::DType;
use tracefx_plan::{Activation, Operand};

/// An argument of an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Given<'a> {
    /// The element in a register, which has this name.
    Register(String, DType),
    /// A number or an option.
    Value(&'a Operand),
}

/// The expression of a register of the dtype, which the operator gives.
///
/// # Errors
/// Where there is none, why.
pub(crate) fn expression(op: &str, args: &[Given<'_>], dtype: DType) -> Result<String, Reason> {
    let instruction = Instruction { op, args, dtype };
    let (text, kind) = instruction.print()?;
    let wanted = instruction.kind_of(dtype)?;
    Ok(rounded(&converted(&text, kind, wanted), dtype))
}

/// A register as one of another kind.
pub(crate) fn converted(text: &str, from: Kind, to: Kind) -> String {
    match (from, to) {
        (Kind::Float, Kind::Float) | (Kind::Int, Kind::Int) | (Kind::Bool, Kind::Bool) | (Kind::Long, Kind::Long) => {
            text.to_owned()
        }
        // As the kernels: the low bits of the integer of 64 bits.
        (Kind::Float, Kind::Int) => format!("bitcast<i32>(long_of_float({text}).x)"),
        // A comparison of what is no number may say anything but true.
        (Kind::Float, Kind::Bool) => format!("((bitcast<u32>({text}) & 0x7fffffffu) != 0u)"),
        (Kind::Float, Kind::Long) => format!("long_of_float({text})"),
        (Kind::Int, Kind::Float) => format!("f32({text})"),
        (Kind::Int, Kind::Bool) => format!("({text} != 0i)"),
        (Kind::Int, Kind::Long) => format!("long_of_int({text})"),
        (Kind::Bool, Kind::Float) => format!("select(0.0f, 1.0f, {text})"),
        (Kind::Bool, Kind::Int) => format!("select(0i, 1i, {text})"),
        (Kind::Bool, Kind::Long) => format!("vec2<u32>(select(0u, 1u, {text}), 0u)"),
        (Kind::Long, Kind::Float) => format!("long_to_float({text})"),
        (Kind::Long, Kind::Int) => format!("bitcast<i32>({text}.x)"),
        (Kind::Long, Kind::Bool) => format!("any({text} != vec2<u32>(0u, 0u))"),
    }
}

/// What a register of a narrower dtype holds after it was computed.
pub(crate) fn rounded(text: &str, dtype: DType) -> String {
    match dtype {
        DType::Float16 => format!("half_of({text})"),
        DType::BFloat16 => format!("brain_of({text})"),
        DType::Int16 => format!("((({text}) << 16u) >> 16u)"),
        DType::Int8 => format!("((({text}) << 24u) >> 24u)"),
        DType::UInt8 => format!("(({text}) & 255i)"),
        DType::UInt16 => format!("(({text}) & 65535i)"),
        DType::UInt32 => format!("vec2<u32>(({text}).x, 0u)"),
        _ => text.to_owned(),
    }
}

/// The expression of an activation behind a product.
pub(crate) fn activation(it: Activation, x: &str) -> String {
    match it {
        Activation::Identity => x.to_owned(),
        Activation::Clamp { min, max } if max == f32::INFINITY => format!("larger({x}, {})", float(min)),
        Activation::Clamp { min, max } => format!("clamped({x}, {}, {})", float(min), float(max)),
        Activation::LeakyRelu(slope) => format!("select({x}, {x} * {}, {x} < 0.0f)", float(slope)),
        Activation::Sigmoid => format!("sigmoid_of({x})"),
        Activation::Silu => format!("({x} * sigmoid_of({x}))"),
        Activation::HardSigmoid => format!("(clamped({x} + 3.0f, 0.0f, 6.0f) / 6.0f)"),
        Activation::HardSwish => format!("({x} * clamped({x} + 3.0f, 0.0f, 6.0f) / 6.0f)"),
        Activation::Tanh => format!("tanh_of({x})"),
        Activation::Gelu => format!("gelu_of({x})"),
        Activation::GeluTanh => format!("gelu_tanh_of({x})"),
    }
}

/// A number of a value, in the kind that computes with it; nothing where that does not hold it.
pub(crate) fn literal(value: &Operand, kind: Kind) -> Option<String> {
    Some(match (kind, value) {
        (Kind::Float, Operand::Float(it)) => float(*it as f32),
        (Kind::Float, Operand::Int(it)) => float(*it as f32),
        (Kind::Float, Operand::Bool(it)) => float(f32::from(u8::from(*it))),
        (Kind::Int, Operand::Int(it)) => int(i32::try_from(*it).ok()?),
        (Kind::Int, Operand::Bool(it)) => int(i32::from(*it)),
        (Kind::Int, Operand::Float(it)) => int(Some(*it as i32).filter(|own| f64::from(*own) == it.trunc())?),
        (Kind::Long, Operand::Int(it)) => long(*it),
        (Kind::Long, Operand::Bool(it)) => long(i64::from(*it)),
        (Kind::Long, Operand::Float(it)) => long(*it as i64),
        (Kind::Bool, Operand::Bool(it)) => it.to_string(),
        (Kind::Bool, Operand::Int(it)) => (*it != 0).to_string(),
        (Kind::Bool, Operand::Float(it)) => (*it != 0.0).to_string(),
        (_, _) => return None,
    })
}

type Printed = Result<(String, Kind), Reason>;

struct Instruction<'a> {
    op: &'a str,
    args: &'a [Given<'a>],
    dtype: DType,
}

impl Instruction<'_> {
    fn kind_of(&self, dtype: DType) -> Result<Kind, Reason> {
        Kind::of(dtype).ok_or_else(|| format!("{} of {}", self.op, dtype.name()).into())
    }

    fn missing(&self) -> Reason {
        format!("{} has no shader", self.op).into()
    }

    /// The argument in a kind.
    fn arg(&self, at: usize, kind: Kind) -> Result<String, Reason> {
        match self.args.get(at).ok_or_else(|| self.missing())? {
            Given::Register(name, dtype) => Ok(converted(name, self.kind_of(*dtype)?, kind)),
            Given::Value(value) => literal(value, kind).ok_or_else(|| self.missing()),
        }
    }

    /// A number among the arguments, or `default` where there is none.
    fn number(&self, at: usize, default: f64) -> Result<f64, Reason> {
        match self.args.get(at) {
            None | Some(Given::Value(Operand::None)) => Ok(default),
            Some(Given::Value(Operand::Float(it))) => Ok(*it),
            Some(Given::Value(Operand::Int(it))) => Ok(*it as f64),
            Some(Given::Value(Operand::Bool(it))) => Ok(f64::from(u8::from(*it))),
            Some(Given::Value(_) | Given::Register(..)) => Err(self.missing()),
        }
    }

    fn is_given(&self, at: usize) -> bool {
        !matches!(self.args.get(at), None | Some(Given::Value(Operand::None)))
    }

    fn text(&self, at: usize) -> &str {
        if let Some(Given::Value(Operand::Str(it))) = self.args.get(at) { it } else { "" }
    }

    /// The kind in which arguments are compared.
    fn common(&self, args: &[usize]) -> Result<Kind, Reason> {
        let rank = |kind: Kind| match kind {
            Kind::Bool => 0,
            Kind::Int => 1,
            Kind::Long => 2,
            Kind::Float => 3,
        };
        let mut res = Kind::Bool;
        for &at in args {
            if let Some(Given::Register(_, dtype)) = self.args.get(at) {
                let kind = self.kind_of(*dtype)?;
                res = if rank(kind) > rank(res) { kind } else { res };
            }
        }
        for &at in args {
            match self.args.get(at) {
                Some(Given::Value(Operand::Float(_))) => res = Kind::Float,
                Some(Given::Value(Operand::Int(_))) if res == Kind::Bool => res = Kind::Long,
                _ => {}
            }
        }
        Ok(res)
    }

    fn float1(&self, text: impl FnOnce(&str) -> String) -> Printed {
        Ok((text(&self.arg(0, Kind::Float)?), Kind::Float))
    }

    fn float2(&self, text: impl FnOnce(&str, &str) -> String) -> Printed {
        Ok((text(&self.arg(0, Kind::Float)?, &self.arg(1, Kind::Float)?), Kind::Float))
    }

    fn print(&self) -> Printed {
        let kind = self.kind_of(self.dtype)?;
        let name = self.op.strip_prefix("aten.").ok_or_else(|| self.missing())?;
        let (name, overload) = name.split_once('.').unwrap_or((name, ""));
        match name {
            "add" | "sub" => self.sum(kind, [0, 1], name == "sub"),
            "rsub" => self.sum(kind, [1, 0], true),
            "mul" => {
                let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                Ok((product(kind, &a, &b), kind))
            }
            "div" | "floor_divide" => {
                let mode = match (name, overload) {
                    ("floor_divide", _) => "floor",
                    (_, "Tensor_mode" | "Scalar_mode") => self.text(2),
                    (_, _) => "",
                };
                self.quotient(kind, mode)
            }
            "remainder" | "fmod" => match kind {
                Kind::Float => self.float2(|a, b| {
                    // What is left of a division goes by every digit of the divisor, which is a number of the dtype.
                    let b = rounded(b, self.dtype);
                    if name == "fmod" { format!("fmod_of({a}, {b})") } else { format!("remainder_of({a}, {b})") }
                }),
                Kind::Int | Kind::Long => {
                    self.nonzero(1)?;
                    let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                    let text = match (kind, name) {
                        (Kind::Int, "fmod") => format!("({a} % {b})"),
                        (Kind::Int, _) => format!("int_remainder({a}, {b})"),
                        (_, "fmod") => format!("long_fmod({a}, {b})"),
                        (_, _) => format!("long_remainder({a}, {b})"),
                    };
                    Ok((text, kind))
                }
                Kind::Bool => Err(self.missing()),
            },
            "pow" => self.power(kind),
            "maximum" | "minimum" => {
                let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                Ok((extreme(kind, name == "maximum", &a, &b), kind))
            }
            "fmax" | "fmin" => {
                let sign = if name == "fmax" { ">" } else { "<" };
                match kind {
                    Kind::Float => self.float2(|a, b| format!("select({b}, {a}, {a} {sign} {b} || is_nan({b}))")),
                    _ => {
                        let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                        Ok((extreme(kind, name == "fmax", &a, &b), kind))
                    }
                }
            }
            "eq" | "ne" | "lt" | "le" | "gt" | "ge" => {
                let kind = self.common(&[0, 1])?;
                let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                // A number is compared as one of the dtype of the tensor.
                let b = match (&self.args[0], &self.args[1], kind) {
                    (Given::Register(_, dtype), Given::Value(_), Kind::Int) => rounded(&b, *dtype),
                    (_, _, _) => b,
                };
                Ok((compared(name, kind, &a, &b), Kind::Bool))
            }
            "logical_and" | "logical_or" | "logical_xor" => {
                let [a, b] = [self.arg(0, Kind::Bool)?, self.arg(1, Kind::Bool)?];
                let sign = match name {
                    "logical_and" => "&&",
                    "logical_or" => "||",
                    _ => "!=",
                };
                Ok((format!("({a} {sign} {b})"), Kind::Bool))
            }
            "logical_not" => Ok((format!("(!{})", self.arg(0, Kind::Bool)?), Kind::Bool)),
            "bitwise_not" => match kind {
                Kind::Bool => Ok((format!("(!{})", self.arg(0, kind)?), kind)),
                Kind::Int | Kind::Long => Ok((format!("(~{})", self.arg(0, kind)?), kind)),
                Kind::Float => Err(self.missing()),
            },
            "bitwise_and" | "bitwise_or" | "bitwise_xor" | "__and__" | "__or__" | "__xor__" => {
                let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                let sign = match name {
                    "bitwise_and" | "__and__" => "&",
                    "bitwise_or" | "__or__" => "|",
                    _ if kind == Kind::Bool => "!=",
                    _ => "^",
                };
                match kind {
                    Kind::Float => Err(self.missing()),
                    Kind::Bool | Kind::Int | Kind::Long => Ok((format!("({a} {sign} {b})"), kind)),
                }
            }
            "__lshift__"
            | "__rshift__"
            | "bitwise_left_shift"
            | "bitwise_right_shift"
            | "gcd"
            | "lcm"
            | "heaviside"
            | "nextafter" => self.function_of_two(name, kind),
            "isclose" => self.closeness(),
            "where" => {
                let [condition, a, b] = [self.arg(0, Kind::Bool)?, self.arg(1, kind)?, self.arg(2, kind)?];
                Ok((format!("select({b}, {a}, {condition})"), kind))
            }
            "masked_fill" => {
                let [a, mask, value] = [self.arg(0, kind)?, self.arg(1, Kind::Bool)?, self.arg(2, kind)?];
                Ok((format!("select({a}, {value}, {mask})"), kind))
            }
            "clamp" | "clamp_min" | "clamp_max" => {
                let (low, high) = if name == "clamp_max" { (usize::MAX, 1) } else { (1, 2) };
                let mut text = self.arg(0, kind)?;
                if self.is_given(low) {
                    text = extreme(kind, true, &text, &self.arg(low, kind)?);
                }
                if name != "clamp_min" && self.is_given(high) {
                    text = extreme(kind, false, &text, &self.arg(high, kind)?);
                }
                Ok((text, kind))
            }
            "_to_copy" | "to" | "type_as" | "clone" | "alias_copy" | "contiguous" | "detach_copy"
            | "lift_fresh_copy" | "copy" => {
                // `copy` gives the elements of its second argument.
                let at = usize::from(name == "copy");
                Ok((self.arg(at, kind)?, kind))
            }
            "abs" => {
                let a = self.arg(0, kind)?;
                match kind {
                    Kind::Long => Ok((format!("long_absolute({a})"), kind)),
                    Kind::Float | Kind::Int => Ok((format!("abs({a})"), kind)),
                    Kind::Bool => Err(self.missing()),
                }
            }
            "neg" => {
                let a = self.arg(0, kind)?;
                match kind {
                    Kind::Long => Ok((format!("long_negate({a})"), kind)),
                    Kind::Float | Kind::Int => Ok((format!("(-{a})"), kind)),
                    Kind::Bool => Err(self.missing()),
                }
            }
            "sign" => {
                let a = self.arg(0, kind)?;
                Ok(match kind {
                    Kind::Float => (format!("select(select(0.0f, -1.0f, {a} < 0.0f), 1.0f, {a} > 0.0f)"), kind),
                    Kind::Int => (format!("sign({a})"), kind),
                    Kind::Long => {
                        let zero = long(0);
                        let negative = format!("select({zero}, {}, long_is_negative({a}))", long(-1));
                        (format!("select({negative}, {}, long_less({zero}, {a}))", long(1)), kind)
                    }
                    Kind::Bool => (a, kind),
                })
            }
            "floor" | "ceil" | "trunc" | "round" => {
                let decimals = if overload == "decimals" { self.number(1, 0.0)? } else { 0.0 };
                match kind {
                    Kind::Float if decimals == 0.0 => self.float1(|x| format!("{name}({x})")),
                    Kind::Float if (1.0..=30.0).contains(&decimals) => {
                        let ten = float(10f32.powi(decimals as i32));
                        self.float1(|x| format!("(round({x} * {ten}) / {ten})"))
                    }
                    Kind::Float => Err(self.missing()),
                    Kind::Int | Kind::Long | Kind::Bool => Ok((self.arg(0, kind)?, kind)),
                }
            }
            "square" => {
                let a = self.arg(0, kind)?;
                Ok((product(kind, &a, &a), kind))
            }
            "isnan" | "isinf" | "isfinite" | "signbit" | "isposinf" | "isneginf" => self.question(name),
            "relu" => {
                let a = self.arg(0, kind)?;
                let zero = literal(&Operand::Int(0), kind).ok_or_else(|| self.missing())?;
                Ok((extreme(kind, true, &a, &zero), kind))
            }
            "hardtanh" => {
                let (low, high) = (self.number(1, -1.0)?, self.number(2, 1.0)?);
                let [low, high] = [low, high].map(|it| literal(&Operand::Float(it), kind));
                let (low, high) = low.zip(high).ok_or_else(|| self.missing())?;
                let text = extreme(kind, true, &self.arg(0, kind)?, &low);
                Ok((extreme(kind, false, &text, &high), kind))
            }
            _ if kind == Kind::Float => self.float_function(name),
            _ => Err(self.missing()),
        }
    }

    /// An integer divisor that is a number other than zero.
    fn nonzero(&self, at: usize) -> Result<(), Reason> {
        let is_nonzero = matches!(self.args.get(at), Some(Given::Value(Operand::Int(it))) if *it as i32 != 0);
        is_nonzero.then_some(()).ok_or_else(|| format!("{} of integers, where a divisor may be zero", self.op).into())
    }

    fn sum(&self, kind: Kind, [a, b]: [usize; 2], is_negative: bool) -> Printed {
        let alpha = self.number(2, 1.0)?;
        let (a, mut b) = (self.arg(a, kind)?, self.arg(b, kind)?);
        if alpha != 1.0 {
            let alpha = match self.args.get(2) {
                Some(Given::Value(it)) => literal(it, kind),
                _ => None,
            };
            b = product(kind, &b, &alpha.ok_or_else(|| self.missing())?);
        }
        let text = match (kind, is_negative) {
            (Kind::Float | Kind::Int, false) => format!("({a} + {b})"),
            (Kind::Float | Kind::Int, true) => format!("({a} - {b})"),
            (Kind::Long, false) => format!("long_add({a}, {b})"),
            (Kind::Long, true) => format!("long_subtract({a}, {b})"),
            (Kind::Bool, false) => format!("({a} || {b})"),
            (Kind::Bool, true) => return Err(self.missing()),
        };
        Ok((text, kind))
    }

    fn quotient(&self, kind: Kind, mode: &str) -> Printed {
        match (kind, mode) {
            (Kind::Float, "floor") => self.float2(|a, b| format!("floor_divided({a}, {b})")),
            (Kind::Float, "trunc") => self.float2(|a, b| format!("trunc({a} / {b})")),
            // A divisor that is written down as zero, compilers take for what never happens.
            (Kind::Float, _) if matches!(self.number(1, 1.0), Ok(it) if it == 0.0) => {
                let sign = if self.number(1, 1.0)?.is_sign_negative() { "-" } else { "" };
                self.float1(|x| format!("({sign}by_zero({x}))"))
            }
            (Kind::Float, _) => self.float2(|a, b| format!("({a} / {b})")),
            (Kind::Int | Kind::Long, "floor" | "trunc") => {
                self.nonzero(1)?;
                let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
                let text = match (kind, mode) {
                    (Kind::Int, "trunc") => format!("({a} / {b})"),
                    (Kind::Int, _) => format!("int_divided({a}, {b})"),
                    (_, "trunc") => format!("long_divided({a}, {b})"),
                    (_, _) => format!("long_floor_divided({a}, {b})"),
                };
                Ok((text, kind))
            }
            (Kind::Int | Kind::Long | Kind::Bool, _) => Err(self.missing()),
        }
    }

    fn power(&self, kind: Kind) -> Printed {
        // A few factors are exact for integers, and nearer than a logarithm for floats.
        if let Some(Given::Value(Operand::Int(_) | Operand::Float(_))) = self.args.get(1) {
            let exponent = self.number(1, 0.0)?;
            if let (Kind::Float | Kind::Int | Kind::Long, true) = (kind, [1.0, 2.0, 3.0, 4.0].contains(&exponent)) {
                let x = self.arg(0, kind)?;
                let square = product(kind, &x, &x);
                let text = match exponent {
                    1.0 => x,
                    2.0 => square,
                    3.0 => product(kind, &square, &x),
                    _ => product(kind, &square, &square),
                };
                return Ok((text, kind));
            }
            if kind == Kind::Float {
                match exponent {
                    0.5 => return self.float1(|x| format!("sqrt_of({x})")),
                    -0.5 => return self.float1(|x| format!("(1.0f / sqrt_of({x}))")),
                    -1.0 => return self.float1(|x| format!("(1.0f / {x})")),
                    -2.0 => return self.float1(|x| format!("(1.0f / ({x} * {x}))")),
                    _ => {}
                }
            }
        }
        match kind {
            Kind::Float => self.float2(|a, b| format!("pow_of({a}, {b})")),
            Kind::Int | Kind::Long => self.function_of_two("pow", kind),
            Kind::Bool => Err(self.missing()),
        }
    }

    fn function_of_two(&self, name: &str, kind: Kind) -> Printed {
        let text = of_two(name, kind, self.dtype, &self.arg(0, kind)?, &self.arg(1, kind)?);
        Ok((text.ok_or_else(|| self.missing())?, kind))
    }

    fn closeness(&self) -> Printed {
        let kind = self.common(&[0, 1])?;
        // Of integers the bound is computed in float64.
        if kind != Kind::Float {
            return Err(format!("{} of integers", self.op).into());
        }
        let [a, b] = [self.arg(0, kind)?, self.arg(1, kind)?];
        let [rtol, atol] = [self.number(2, 1e-5)?, self.number(3, 1e-8)?].map(|it| float(it as f32));
        let equal_nan = self.number(4, 0.0)? != 0.0;
        Ok((format!("is_close({a}, {b}, {rtol}, {atol}, {equal_nan})"), Kind::Bool))
    }

    fn question(&self, name: &str) -> Printed {
        let kind = self.common(&[0])?;
        let x = self.arg(0, kind)?;
        let text = match (kind, name) {
            (Kind::Float, "isnan") => format!("is_nan({x})"),
            (Kind::Float, "isinf") => format!("is_inf({x})"),
            (Kind::Float, "isfinite") => format!("(!(is_nan({x}) || is_inf({x})))"),
            (Kind::Float, "isposinf") => format!("(bitcast<u32>({x}) == 0x7f800000u)"),
            (Kind::Float, "isneginf") => format!("(bitcast<u32>({x}) == 0xff800000u)"),
            (Kind::Float, _) => format!("((bitcast<u32>({x}) >> 31u) == 1u)"),
            (Kind::Int, "signbit") => format!("({x} < 0i)"),
            (Kind::Long, "signbit") => format!("long_is_negative({x})"),
            (_, "isfinite") => "true".to_owned(),
            (_, _) => "false".to_owned(),
        };
        Ok((text, Kind::Bool))
    }

    fn float_function(&self, name: &str) -> Printed {
        let function = match name {
            "exp" => "exp_of",
            "exp2" => "exp2_of",
            "expm1" => "expm1_of",
            "log" => "ln_of",
            "log1p" => "ln1p_of",
            "sqrt" => "sqrt_of",
            "asin" => "asin_of",
            "acos" => "acos_of",
            "atan" => "atan_of",
            "sinh" => "sinh_of",
            "cosh" => "cosh_of",
            "tanh" => "tanh_of",
            "asinh" => "asinh_of",
            "acosh" => "acosh_of",
            "atanh" => "atanh_of",
            "erf" => "erf_of",
            "erfc" => "erfc_of",
            "erfinv" => "erfinv_of",
            "lgamma" => "lgamma_of",
            "digamma" => "digamma_of",
            "special_i0e" => "bessel_i0e",
            "special_i1e" => "bessel_i1e",
            "sigmoid" => "sigmoid_of",
            _ => "",
        };
        if !function.is_empty() {
            return self.float1(|x| format!("{function}({x})"));
        }
        match name {
            "i0" | "special_modified_bessel_i0" => {
                self.float1(|x| format!("with_exponential(bessel_i0e({x}), abs({x}))"))
            }
            "special_i1" | "special_modified_bessel_i1" => {
                self.float1(|x| format!("with_exponential(bessel_i1e({x}), abs({x}))"))
            }
            "log2" => self.float1(|x| format!("(ln_of({x}) * 1.442695f)")),
            "log10" => self.float1(|x| format!("(ln_of({x}) * 0.4342945f)")),
            "rsqrt" => self.float1(|x| format!("(1.0f / sqrt_of({x}))")),
            "reciprocal" => self.float1(|x| format!("(1.0f / {x})")),
            "sin" => self.float1(|x| format!("sin_cos({x}, 0u)")),
            "cos" => self.float1(|x| format!("sin_cos({x}, 1u)")),
            "tan" => self.float1(|x| format!("(sin_cos({x}, 0u) / sin_cos({x}, 1u))")),
            "deg2rad" => self.float1(|x| format!("({x} * 0.017453292f)")),
            "rad2deg" => self.float1(|x| format!("({x} * 57.29578f)")),
            "frac" => self.float1(|x| format!("({x} - trunc({x}))")),
            "silu" => self.float1(|x| activation(Activation::Silu, x)),
            "hardsigmoid" => self.float1(|x| activation(Activation::HardSigmoid, x)),
            "hardswish" => self.float1(|x| activation(Activation::HardSwish, x)),
            "mish" => self.float1(|x| format!("({x} * tanh_of(softplus_of({x})))")),
            "log_sigmoid" => self.float1(|x| format!("(-softplus_of(-{x}))")),
            "gelu" => {
                let is_tanh = self.text(1) == "tanh";
                let it = if is_tanh { Activation::GeluTanh } else { Activation::Gelu };
                self.float1(|x| activation(it, x))
            }
            "leaky_relu" => {
                let slope = float(self.number(1, 0.01)? as f32);
                self.float1(|x| format!("select({x} * {slope}, {x}, {x} > 0.0f)"))
            }
            "_prelu_kernel" => self.float2(|x, weight| format!("select({x} * {weight}, {x}, {x} > 0.0f)")),
            "elu" | "celu" => {
                let alpha = self.number(1, 1.0)? as f32;
                let (scale, input_scale) = match name {
                    "celu" => (1.0, 1.0 / alpha),
                    _ => (self.number(2, 1.0)? as f32, self.number(3, 1.0)? as f32),
                };
                let [negative, scale, input_scale] = [alpha * scale, scale, input_scale].map(float);
                self.float1(|x| {
                    format!("select({x} * {scale}, expm1_of({x} * {input_scale}) * {negative}, {x} <= 0.0f)")
                })
            }
            "softplus" => {
                let (beta, threshold) = (float(self.number(1, 1.0)? as f32), float(self.number(2, 20.0)? as f32));
                self.float1(|x| format!("select(softplus_of({x} * {beta}) / {beta}, {x}, {x} * {beta} > {threshold})"))
            }
            "threshold" => {
                let (threshold, value) = (float(self.number(1, 0.0)? as f32), float(self.number(2, 0.0)? as f32));
                self.float1(|x| format!("select({x}, {value}, {x} <= {threshold})"))
            }
            "hardshrink" => {
                let size = float(self.number(1, 0.5)? as f32);
                self.float1(|x| format!("select({x}, 0.0f, abs({x}) <= {size})"))
            }
            "softshrink" => {
                let size = float(self.number(1, 0.5)? as f32);
                self.float1(|x| {
                    format!("select(select(select(0.0f, {x}, is_nan({x})), {x} + {size}, {x} < -{size}), {x} - {size}, {x} > {size})")
                })
            }
            "nan_to_num" => {
                let nan = float(self.number(1, 0.0)? as f32);
                let largest = match self.dtype {
                    DType::Float16 => 65504.0,
                    DType::BFloat16 => 3.3895314e38,
                    _ => f64::from(f32::MAX),
                };
                let high = float(self.number(2, largest)? as f32);
                let low = float(self.number(3, -largest)? as f32);
                self.float1(|x| {
                    let finite = format!("select(select({x}, {high}, bitcast<u32>({x}) == 0x7f800000u), {low}, bitcast<u32>({x}) == 0xff800000u)");
                    format!("select({finite}, {nan}, is_nan({x}))")
                })
            }
            "logaddexp" => self.float2(|a, b| format!("log_add_of({a}, {b})")),
            "logaddexp2" => self.float2(|a, b| {
                let sum = format!("larger({a}, {b}) + ln_of(1.0f + exp2_of(-abs({a} - {b}))) * 1.442695f");
                format!("select({sum}, {a}, {a} == {b} && is_inf({a}))")
            }),
            "selu" => self.float1(|x| format!("(select({x}, expm1_of({x}) * 1.6732632f, {x} <= 0.0f) * 1.050701f)")),
            // Of halves it is rounded at each step.
            "logit" if self.dtype == DType::Float32 => {
                let eps = self.number(1, -1.0)? as f32;
                self.float1(|x| {
                    let x = if eps < 0.0 {
                        x.to_owned()
                    } else {
                        format!("clamped({x}, {}, {})", float(eps), float(1.0 - eps))
                    };
                    format!("ln_of({x} / (1.0f - {x}))")
                })
            }
            "sinc" => self.float1(|x| {
                let angle = format!("({x} * 3.1415927f)");
                format!("select(sin_cos({angle}, 0u) / {angle}, 1.0f, {x} == 0.0f)")
            }),
            "atan2" => self.float2(|y, x| format!("atan2_of({y}, {x})")),
            "hypot" => self.float2(|a, b| format!("hypot_of({a}, {b})")),
            "copysign" => self.float2(|a, b| format!("with_sign({a}, {b})")),
            "xlogy" => self.float2(|a, b| format!("select({a} * ln_of({b}), 0.0f, {a} == 0.0f && !is_nan({b}))")),
            "sigmoid_backward" => self.float2(|grad, y| format!("({grad} * (1.0f - {y}) * {y})")),
            "tanh_backward" => self.float2(|grad, y| format!("({grad} * (1.0f - {y} * {y}))")),
            "threshold_backward" => {
                let threshold = float(self.number(2, 0.0)? as f32);
                self.float2(|grad, x| format!("select({grad}, 0.0f, {x} <= {threshold})"))
            }
            "leaky_relu_backward" => {
                let slope = float(self.number(2, 0.01)? as f32);
                self.float2(|grad, x| format!("select({grad} * {slope}, {grad}, {x} > 0.0f)"))
            }
            "gelu_backward" if self.text(2) != "tanh" => self.float2(|grad, x| {
                let density = format!("exp_of(-0.5f * {x} * {x}) * 0.3989423f");
                format!("({grad} * (0.5f * (1.0f + erf_of({x} * 0.70710677f)) + {x} * {density}))")
            }),
            "lerp" => {
                let [a, b, weight] = [self.arg(0, Kind::Float)?, self.arg(1, Kind::Float)?, self.arg(2, Kind::Float)?];
                let text = format!(
                    "select({b} - ({b} - {a}) * (1.0f - {weight}), {a} + {weight} * ({b} - {a}), abs({weight}) < 0.5f)"
                );
                Ok((text, Kind::Float))
            }
            "addcmul" | "addcdiv" => {
                let value = float(self.number(3, 1.0)? as f32);
                let [a, b, c] = [self.arg(0, Kind::Float)?, self.arg(1, Kind::Float)?, self.arg(2, Kind::Float)?];
                let sign = if name == "addcmul" { "*" } else { "/" };
                Ok((format!("({a} + {value} * {b} {sign} {c})"), Kind::Float))
            }
            _ => Err(self.missing()),
        }
    }
}

/// A product of two registers.
pub(crate) fn product(kind: Kind, a: &str, b: &str) -> String {
    match kind {
        Kind::Float | Kind::Int => format!("({a} * {b})"),
        Kind::Long => format!("long_multiply({a}, {b})"),
        Kind::Bool => format!("({a} && {b})"),
    }
}

/// The larger of two registers, or the smaller one; what is not a number is both.
pub(crate) fn extreme(kind: Kind, is_larger: bool, a: &str, b: &str) -> String {
    match (kind, is_larger) {
        (Kind::Float, true) => format!("larger({a}, {b})"),
        (Kind::Float, false) => format!("smaller({a}, {b})"),
        (Kind::Int, true) => format!("max({a}, {b})"),
        (Kind::Int, false) => format!("min({a}, {b})"),
        (Kind::Long, true) => format!("long_larger({a}, {b})"),
        (Kind::Long, false) => format!("long_smaller({a}, {b})"),
        (Kind::Bool, true) => format!("({a} || {b})"),
        (Kind::Bool, false) => format!("({a} && {b})"),
    }
}

/// What a comparison of two registers says.
pub(crate) fn compared(name: &str, kind: Kind, a: &str, b: &str) -> String {
    match (kind, name) {
        (Kind::Long, "eq") => format!("long_equal({a}, {b})"),
        (Kind::Long, "ne") => format!("(!long_equal({a}, {b}))"),
        (Kind::Long, "lt") => format!("long_less({a}, {b})"),
        (Kind::Long, "le") => format!("(!long_less({b}, {a}))"),
        (Kind::Long, "gt") => format!("long_less({b}, {a})"),
        (Kind::Long, _) => format!("(!long_less({a}, {b}))"),
        (_, "eq") => format!("({a} == {b})"),
        (Kind::Float, "ne") => format!("(!({a} == {b}))"),
        (_, "ne") => format!("({a} != {b})"),
        (Kind::Bool, "lt") => format!("(!{a} && {b})"),
        (Kind::Bool, "le") => format!("(!{a} || {b})"),
        (Kind::Bool, "gt") => format!("({a} && !{b})"),
        (Kind::Bool, _) => format!("({a} || !{b})"),
        (Kind::Float | Kind::Int, "lt") => format!("({a} < {b})"),
        (Kind::Float | Kind::Int, "le") => format!("({a} <= {b})"),
        (Kind::Float | Kind::Int, "gt") => format!("({a} > {b})"),
        (Kind::Float | Kind::Int, _) => format!("({a} >= {b})"),
    }
}
