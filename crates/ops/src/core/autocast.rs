//! Autocast: products in a narrow dtype, and what loses by that in float32, as PyTorch's `torch.autocast("cpu")` does it.

use crate::{Infer, Op};
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
    // PyTorch runs it by `mkldnn_rnn_layer`, which it casts.
    include_str!("autocast.txt").lines().map(cast).chain([("aten.lstm.input", Cast::Low)]).collect()
});

/// Operators that are made of others here, and computed at once by PyTorch, so that autocast does not see the parts.
const WHOLE: &[&str] = &["aten._trilinear.default", "aten.glu_backward.default"];

/// What autocast does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autocast {
    /// It casts the tensors among the arguments to this dtype, those of a dtype that it casts ([`is_autocast`]).
    Cast(DType),
    /// It leaves the call alone, and sees what the operator is made of.
    Parts,
    /// It leaves the call alone.
    Nothing,
}

/// What autocast with this narrow dtype does with a call of an operator, from the dtypes of all its tensors.
///
/// ```
/// use tracefx_core::DType::{BFloat16, Float32};
/// use tracefx_ops::{Autocast, autocast, registry};
///
/// let of = |name: &str| autocast(registry().get(name).unwrap(), BFloat16, &[Float32, Float32]);
/// assert_eq!(of("aten.mm.default"), Autocast::Cast(BFloat16));
/// assert_eq!(of("aten.einsum.default"), Autocast::Parts);
/// assert_eq!(of("aten.add.Tensor"), Autocast::Nothing);
/// ```
pub fn autocast(op: &Op, low: DType, dtypes: &[DType]) -> Autocast {
    match autocast_dtype(&op.name, low, dtypes) {
        Some(dtype) => Autocast::Cast(dtype),
        None if matches!(op.def.infer, Infer::Composite) && !WHOLE.contains(&&*op.name) => Autocast::Parts,
        None => Autocast::Nothing,
    }
}

/// Whether autocast casts tensors of this dtype at all.
pub fn is_autocast(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::Float64
}

/// The dtype to which the arguments of an operator are cast; nothing for an operator that is left alone.
fn autocast_dtype(op: &str, low: DType, dtypes: &[DType]) -> Option<DType> {
    Some(match CASTS.get(op)? {
        Cast::Low => low,
        Cast::Float32 => DType::Float32,
        Cast::Widest if dtypes.contains(&DType::Float32) => DType::Float32,
        Cast::Widest => low,
    })
}
