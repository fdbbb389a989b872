//! Autocast: products in a narrow dtype, and what loses by that in float32, as PyTorch's `torch.autocast("cpu")` does it.

use std::collections::HashMap;
use std::sync::LazyLock;
use tracefx_core::DType;

/// To what an operator casts its arguments.
#[derive(Clone, Copy)]
enum Cast {
    /// The narrow dtype.
    Low,
    Float32,
    /// Float32 where any argument has it, else the narrow dtype.
    Widest,
}

static CASTS: LazyLock<HashMap<&str, Cast>> = LazyLock::new(|| {
    let cast = |line: &'static str| {
        let (name, how) = line.split_once(' ').expect("a line is a name and how it casts");
        let how = match how {
            "low" => Cast::Low,
            "float32" => Cast::Float32,
            "widest" => Cast::Widest,
            other => unreachable!("autocast.txt says {other}"),
        };
        (name, how)
    };
    include_str!("autocast.txt").lines().map(cast).collect()
});

/// Whether autocast casts tensors of this dtype at all.
pub fn is_autocast(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::Float64
}

/// The dtype to which autocast with this narrow dtype casts the arguments of an operator that it casts
/// ([`is_autocast`]), from the dtypes of all its tensors; nothing for an operator that it leaves alone.
///
/// ```
/// use tracefx_core::DType::{BFloat16, Float32};
/// use tracefx_ops::autocast_dtype;
///
/// assert_eq!(autocast_dtype("aten.linear.default", BFloat16, &[Float32]), Some(BFloat16));
/// assert_eq!(autocast_dtype("aten.mse_loss.default", BFloat16, &[BFloat16]), Some(Float32));
/// assert_eq!(autocast_dtype("aten.cat.default", BFloat16, &[BFloat16, Float32]), Some(Float32));
/// assert_eq!(autocast_dtype("aten.relu.default", BFloat16, &[Float32]), None);
/// ```
pub fn autocast_dtype(op: &str, low: DType, dtypes: &[DType]) -> Option<DType> {
    Some(match CASTS.get(op)? {
        Cast::Low => low,
        Cast::Float32 => DType::Float32,
        Cast::Widest if dtypes.contains(&DType::Float32) => DType::Float32,
        Cast::Widest => low,
    })
}
