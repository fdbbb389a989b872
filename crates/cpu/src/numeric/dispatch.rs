//! Dispatch by dtype, as ATen's `AT_DISPATCH_*`: which Rust type a kernel runs in. What can be done with the types is for
//! their traits to say ([`number`](super::number), [`float`](super::float), [`field`](super::field)).
//!
//! Each macro runs a block with a name bound to the type. A dtype of another kind is refused by returning
//! [`Diagnostic::unsupported_dtype`](tracefx_core::Diagnostic::unsupported_dtype) with the words that follow the dtype, or
//! it is given to a block after `else`:
//!
//! ```text
//! with_float!(dtype, &args.op.name, F => map1::<F, F>(&source, out, |x| -x))
//! with_float!(dtype, F => map1::<F, F>(&source, out, |x| -x), else Ok(()))
//! ```
//!
//! | macro | dtypes | type |
//! |---|---|---|
//! | [`with_element`] | all with arithmetic | their own |
//! | [`with_float`] | floats | `f32`, of halves too, and `f64` |
//! | [`with_int`] | bools and integers but uint64, which `i64` does not hold | `i64` |
//! | [`with_real`] | those of both | |
//! | [`with_number`] | and complex numbers | `[f64; 2]` |
//! | [`with_gemm_element`] | those that have products of matrices | their own, but `f32` of halves, and `i32` of narrower integers |
//! | [`with_field`] | all | `Complex` of complex numbers, else `f64` |
//! | [`with_bits`] | all | an unsigned integer of their width |

macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        tracefx_core::with_element!($dtype, $T => $body, else $other)
    };
    ($dtype:expr, $what:expr, $T:ident => $body:expr) => {
        tracefx_core::with_element!($dtype, $T => $body, else $crate::numeric::dispatch::refuse!($dtype, $what))
    };
}
pub(crate) use with_element;

macro_rules! with_float {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        match $dtype {
            tracefx_core::DType::Float16 | tracefx_core::DType::BFloat16 | tracefx_core::DType::Float32 => {
                type $F = f32;
                $body
            }
            tracefx_core::DType::Float64 => {
                type $F = f64;
                $body
            }
            _ => $other,
        }
    };
    ($dtype:expr, $what:expr, $F:ident => $body:expr) => {
        $crate::numeric::dispatch::with_float!($dtype, $F => $body, else $crate::numeric::dispatch::refuse!($dtype, $what))
    };
}
pub(crate) use with_float;

macro_rules! with_int {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        match $dtype {
            tracefx_core::DType::Bool
            | tracefx_core::DType::UInt8
            | tracefx_core::DType::Int8
            | tracefx_core::DType::UInt16
            | tracefx_core::DType::Int16
            | tracefx_core::DType::UInt32
            | tracefx_core::DType::Int32
            | tracefx_core::DType::Int64 => {
                type $F = i64;
                $body
            }
            _ => $other,
        }
    };
    ($dtype:expr, $what:expr, $F:ident => $body:expr) => {
        $crate::numeric::dispatch::with_int!($dtype, $F => $body, else $crate::numeric::dispatch::refuse!($dtype, $what))
    };
}
pub(crate) use with_int;

macro_rules! with_real {
    ($dtype:expr, $F:ident => $body:expr, else $other:expr) => {
        $crate::numeric::dispatch::with_int!(
            $dtype, $F => $body, else $crate::numeric::dispatch::with_float!($dtype, $F => $body, else $other)
        )
    };
    ($dtype:expr, $what:expr, $F:ident => $body:expr) => {
        $crate::numeric::dispatch::with_real!($dtype, $F => $body, else $crate::numeric::dispatch::refuse!($dtype, $what))
    };
}
pub(crate) use with_real;

macro_rules! with_number {
    ($dtype:expr, $what:expr, $F:ident => $body:expr) => {
        match $dtype {
            tracefx_core::DType::Complex64 | tracefx_core::DType::Complex128 => {
                type $F = [f64; 2];
                $body
            }
            _ => $crate::numeric::dispatch::with_real!($dtype, $what, $F => $body),
        }
    };
}
pub(crate) use with_number;

macro_rules! with_gemm_element {
    ($dtype:expr, $what:expr, $T:ident => $body:expr) => {
        match $dtype {
            tracefx_core::DType::UInt8
            | tracefx_core::DType::Int8
            | tracefx_core::DType::Int16
            | tracefx_core::DType::Int32 => {
                type $T = i32;
                $body
            }
            tracefx_core::DType::Int64 => {
                type $T = i64;
                $body
            }
            tracefx_core::DType::Complex64 => {
                type $T = [f32; 2];
                $body
            }
            tracefx_core::DType::Complex128 => {
                type $T = [f64; 2];
                $body
            }
            _ => $crate::numeric::dispatch::with_float!($dtype, $what, $T => $body),
        }
    };
}
pub(crate) use with_gemm_element;

macro_rules! with_field {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype.is_complex() {
            type $T = $crate::numeric::field::Complex;
            $body
        } else {
            type $T = f64;
            $body
        }
    };
}
pub(crate) use with_field;

macro_rules! with_bits {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            // Aligned as complex numbers are; `u128` asks for 16 bytes.
            _ => {
                type $T = [u64; 2];
                $body
            }
        }
    };
}
pub(crate) use with_bits;

/// Returns the refusal of a dtype.
macro_rules! refuse {
    ($dtype:expr, $what:expr) => {
        return Err(tracefx_core::Diagnostic::unsupported_dtype($dtype, $what))
    };
}
pub(crate) use refuse;
