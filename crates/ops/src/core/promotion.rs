//! PyTorch's type promotion: the dtype that operands of different dtypes are computed in, and which casts are refused.

use crate::Operand;
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, Result};
use tracefx_ir::TensorMeta;

/// What type promotion needs to know of an operand.
pub trait TypeOf {
    /// The dtype of the elements.
    fn dtype(&self) -> DType;
    /// The number of dimensions.
    fn rank(&self) -> usize;
    /// Whether it is known to have no elements.
    fn is_empty(&self) -> bool;
}

impl TypeOf for TensorMeta {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn rank(&self) -> usize {
        self.sizes.len()
    }

    fn is_empty(&self) -> bool {
        self.sizes.iter().any(|it| it.as_int() == Some(0))
    }
}

impl TypeOf for tracefx_core::Tensor {
    fn dtype(&self) -> DType {
        tracefx_core::Tensor::dtype(self)
    }

    fn rank(&self) -> usize {
        tracefx_core::Tensor::rank(self)
    }

    fn is_empty(&self) -> bool {
        self.numel() == 0
    }
}

/// The dtype in which an operator computes on these operands: PyTorch's `result_type`.
///
/// Tensors with dimensions decide; a 0-d tensor, and after it a number, matters only where its kind (bool, int, float,
/// complex) is higher than theirs. Follows `result_type` of aten/src/ATen/native/TypeProperties.cpp.
pub fn promote<T: TypeOf>(operands: &[Operand<'_, T>]) -> DType {
    let (mut dims, mut zero_dims, mut numbers) = (None, None, None);
    for operand in operands {
        let (slot, dtype) = match operand {
            Operand::Tensor(tensor) if tensor.rank() > 0 => (&mut dims, tensor.dtype()),
            Operand::Tensor(tensor) => (&mut zero_dims, tensor.dtype()),
            Operand::Scalar(scalar) => (&mut numbers, scalar.default_dtype()),
        };
        *slot = Some(slot.map_or(dtype, |so_far| promote_types(so_far, dtype)));
    }
    combine(dims, combine(zero_dims, numbers)).unwrap_or(DType::Float32)
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(high), Some(low)) = (higher, lower) else { return higher.or(lower) };
    Some(match (high.kind(), low.kind()) {
        (DTypeKind::Complex, _) => high,
        // A complex number keeps the precision of the floats that it meets.
        (DTypeKind::Float, DTypeKind::Complex) => complex_of(high),
        (DTypeKind::Float, _) => high,
        (DTypeKind::Bool, _) | (DTypeKind::Int, DTypeKind::Float | DTypeKind::Complex) => promote_types(high, low),
        (DTypeKind::Int, DTypeKind::Bool | DTypeKind::Int) => high,
    })
}

/// The complex dtype whose parts are of this float.
pub fn complex_of(float: DType) -> DType {
    match float {
        DType::Float16 => DType::Complex32,
        DType::Float64 => DType::Complex128,
        _ => DType::Complex64,
    }
}

/// The dtype of the parts of a complex number; another dtype as it is.
pub fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::Complex32 => DType::Float16,
        DType::Complex64 => DType::Float32,
        DType::Complex128 => DType::Float64,
        other => other,
    }
}

/// The smallest dtype that holds both, whatever the shapes: PyTorch's `promote_types`.
///
/// ```
/// use tracefx_core::DType;
/// use tracefx_ops::promote_types;
/// assert_eq!(promote_types(DType::UInt8, DType::Int8), DType::Int16);
/// assert_eq!(promote_types(DType::Float16, DType::BFloat16), DType::Float32);
/// assert_eq!(promote_types(DType::Int64, DType::Float16), DType::Float16);
/// assert_eq!(promote_types(DType::Complex64, DType::Float64), DType::Complex128);
/// ```
pub fn promote_types(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let (low, high) = if a.kind() <= b.kind() { (a, b) } else { (b, a) };
    match (low.kind(), high.kind()) {
        (DTypeKind::Int, DTypeKind::Int) => promote_ints(low, high),
        (DTypeKind::Float, DTypeKind::Float) => promote_floats(low, high),
        (DTypeKind::Complex, DTypeKind::Complex) => {
            if low.size() > high.size() {
                low
            } else {
                high
            }
        }
        (DTypeKind::Float, DTypeKind::Complex) => {
            let of_float = complex_of(low);
            if of_float.size() > high.size() { of_float } else { high }
        }
        // The higher kind wins: bool gives way to everything, ints to floats and complex numbers.
        (_, _) => high,
    }
}

/// Refuses what a result cannot be written to: PyTorch's `can_cast`.
///
/// # Errors
/// `DTypeMismatch` where the conversion would lose the kind of number.
pub fn check_cast(from: DType, to: DType) -> Result<()> {
    if from.kind() <= to.kind() {
        return Ok(());
    }
    let what = format!("result type {} can't be cast to the desired output type {}", from.name(), to.name());
    Err(Diagnostic::new(Code::DTypeMismatch, what))
}

fn promote_ints(a: DType, b: DType) -> DType {
    let is_unsigned = |it| matches!(it, DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64);
    match (is_unsigned(a), is_unsigned(b)) {
        (true, false) if a.size() >= b.size() => next_signed(a),
        (false, true) if b.size() >= a.size() => next_signed(b),
        (true, false) => b,
        (false, true) => a,
        (true, true) | (false, false) => {
            if a.size() > b.size() {
                a
            } else {
                b
            }
        }
    }
}

/// The signed dtype that holds all values of this unsigned one; int64 is the widest there is.
fn next_signed(unsigned: DType) -> DType {
    match unsigned.size() {
        1 => DType::Int16,
        2 => DType::Int32,
        _ => DType::Int64,
    }
}

fn promote_floats(a: DType, b: DType) -> DType {
    match a.size().cmp(&b.size()) {
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Less => b,
        // float16 and bfloat16 hold each other's values only in float32; so do two kinds of 8-bit floats.
        std::cmp::Ordering::Equal => DType::Float32,
    }
}
