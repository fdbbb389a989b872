//! Dtypes as ONNX numbers them, tensors as it stores them, and the dtypes that a runtime has kernels for.

use crate::proto::TensorProto;
use tracefx_core::{Code, DType, Diagnostic, Result, Scalar, Tensor};

/// ONNX's number of a dtype.
///
/// # Errors
/// `NotImplemented` for what runtimes have no tensors of.
pub(crate) fn onnx_dtype(dtype: DType) -> Result<i32> {
    Ok(match dtype {
        DType::Float32 => 1,
        DType::UInt8 => 2,
        DType::Int8 => 3,
        DType::UInt16 => 4,
        DType::Int16 => 5,
        DType::Int32 => 6,
        DType::Int64 => 7,
        DType::Bool => 9,
        DType::Float16 => 10,
        DType::Float64 => 11,
        DType::UInt32 => 12,
        DType::UInt64 => 13,
        DType::BFloat16 => 16,
        DType::Float8E4M3FN => 17,
        DType::Float8E4M3FNUZ => 18,
        DType::Float8E5M2 => 19,
        DType::Float8E5M2FNUZ => 20,
        DType::Float8E8M0FNU | DType::Complex32 | DType::Complex64 | DType::Complex128 => {
            return Err(Diagnostic::new(Code::NotImplemented, format!("ONNX has no {} of runtimes", dtype.name()))
                .help("cast to a real dtype, or compute with real and imaginary parts"));
        }
    })
}

/// A tensor as an initializer.
pub(crate) fn initializer(name: &str, tensor: &Tensor) -> Result<TensorProto> {
    Ok(TensorProto {
        dims: tensor.sizes().iter().map(|&it| it as i64).collect(),
        data_type: onnx_dtype(tensor.dtype())?,
        name: name.to_string(),
        raw_data: tensor.to_bytes()?,
    })
}

/// The least number of a dtype: minus infinity where there is one.
pub(crate) fn lowest(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool | DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => Scalar::Int(0),
        DType::Int8 => Scalar::Int(i8::MIN.into()),
        DType::Int16 => Scalar::Int(i16::MIN.into()),
        DType::Int32 => Scalar::Int(i32::MIN.into()),
        DType::Int64 => Scalar::Int(i64::MIN),
        _ => Scalar::Float(f64::NEG_INFINITY),
    }
}

/// The greatest number of a dtype: infinity where there is one.
pub(crate) fn highest(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Int(1),
        DType::UInt8 => Scalar::Int(u8::MAX.into()),
        DType::Int8 => Scalar::Int(i8::MAX.into()),
        DType::UInt16 => Scalar::Int(u16::MAX.into()),
        DType::Int16 => Scalar::Int(i16::MAX.into()),
        DType::UInt32 => Scalar::Int(u32::MAX.into()),
        DType::Int32 => Scalar::Int(i32::MAX.into()),
        DType::UInt64 | DType::Int64 => Scalar::Int(i64::MAX),
        _ => Scalar::Float(f64::INFINITY),
    }
}

const FLOATS: &[DType] = &[DType::Float32, DType::Float64, DType::Float16];
const SINGLE: &[DType] = &[DType::Float32, DType::Float16];
const WIDE: &[DType] = &[DType::Float32, DType::Float64, DType::Float16, DType::Int32, DType::Int64];
const SIGNED: &[DType] =
    &[DType::Float32, DType::Float64, DType::Float16, DType::Int8, DType::Int16, DType::Int32, DType::Int64];
const BYTES: &[DType] =
    &[DType::Float32, DType::Float64, DType::Float16, DType::UInt8, DType::Int8, DType::Int32, DType::Int64];
const SORTED: &[DType] = &[
    DType::Float32,
    DType::Float64,
    DType::Float16,
    DType::UInt8,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
];
/// Those that elements are added up in; float16 is not cast for it.
const SUMMED: &[DType] = &[DType::Float32, DType::Float64, DType::Int32, DType::Int64];
const NUMBERS: &[DType] = &[
    DType::Float32,
    DType::Float64,
    DType::Float16,
    DType::UInt8,
    DType::Int8,
    DType::UInt16,
    DType::Int16,
    DType::UInt32,
    DType::Int32,
    DType::UInt64,
    DType::Int64,
];

/// The dtype that sums and formulas are made in: halves are rounded once, in the end.
pub(crate) fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::Float16 | DType::BFloat16) { DType::Float32 } else { dtype }
}

/// The dtypes that ONNX Runtime has kernels of an operator for on a CPU; it casts float16 by itself. `None` where it has all.
fn kernels(op: &str) -> Option<&'static [DType]> {
    Some(match op {
        "Acos"
        | "Acosh"
        | "Asin"
        | "Asinh"
        | "Atan"
        | "Atanh"
        | "Cosh"
        | "Erf"
        | "Gelu"
        | "Sinh"
        | "Tan"
        | "Softplus"
        | "Elu"
        | "HardSigmoid"
        | "LeakyRelu"
        | "Det"
        | "Conv"
        | "ConvTranspose"
        | "AveragePool"
        | "InstanceNormalization"
        | "Resize" => SINGLE,
        "Ceil" | "Cos" | "Exp" | "Floor" | "IsInf" | "IsNaN" | "Log" | "Reciprocal" | "Round" | "Sigmoid" | "Sin"
        | "Sqrt" | "Tanh" | "Softmax" | "LogSoftmax" | "Gemm" | "GridSample" | "LayerNormalization"
        | "BatchNormalization" | "DFT" | "MaxPool" | "ReduceMean" | "ReduceL1" | "ReduceL2" | "ReduceLogSumExp"
        | "Relu" => FLOATS,
        "Neg" => SIGNED,
        "ReduceSum" | "ReduceProd" | "Pow" | "CumSum" | "Einsum" | "MatMul" | "NonZero" | "Range" | "Trilu" => WIDE,
        "ReduceMax" | "ReduceMin" | "ArgMax" | "ArgMin" | "Max" | "Min" | "Where" | "Clip" | "Pad" => BYTES,
        "TopK" => SORTED,
        "Abs" | "Sign" | "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Less" | "LessOrEqual" | "Greater"
        | "GreaterOrEqual" => NUMBERS,
        "Equal" | "Expand" | "Tile" | "Compress" => NUMBERS,
        "ScatterElements reduction" | "ScatterND reduction" => SUMMED,
        _ => return None,
    })
}

/// The dtype that an operator computes these elements in: the nearest that there is a kernel for, where every number of
/// theirs is one; of float64, float32 where there is no better.
pub(crate) fn computed_in(op: &str, dtype: DType) -> DType {
    let Some(known) = kernels(op).filter(|it| !it.contains(&dtype)) else { return dtype };
    let nearest: &[DType] = match dtype {
        DType::Bool => &[DType::UInt8, DType::Int32, DType::Float32],
        DType::UInt8 | DType::Int8 | DType::UInt16 | DType::Int16 => &[DType::Int32, DType::Float32],
        DType::UInt32 | DType::Int32 | DType::UInt64 => &[DType::Int64, DType::Float64, DType::Float32],
        DType::Int64 => &[DType::Float64, DType::Float32],
        _ => &[DType::Float32],
    };
    nearest.iter().copied().find(|it| known.contains(it)).unwrap_or(DType::Float32)
}
