//! The order of dimensions in memory, as PyTorch's `suggest_memory_format` reads it off strides and as new tensors
//! are laid out in it.

use tracefx_core::{DType, MemoryFormat};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The memory format that the strides of a tensor suggest: channels last where they look so, else contiguous.
pub(crate) fn memory_format_of(meta: &TensorMeta) -> MemoryFormat {
    let (order, format): (&[usize], _) = match meta.sizes.len() {
        4 => (&[1, 3, 2, 0], MemoryFormat::ChannelsLast),
        5 => (&[1, 4, 3, 2, 0], MemoryFormat::ChannelsLast3d),
        _ => return MemoryFormat::Contiguous,
    };
    // A size or stride that is not known decides by its form: it is never 0 or 1, and it is what it is written as.
    let mut least = SymInt::ZERO;
    for &dim in order {
        let (size, stride) = (&meta.sizes[dim], &meta.strides[dim]);
        let is_less = match (stride.as_int(), least.as_int()) {
            (Some(stride), Some(least)) => stride < least,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => *stride != least && least.max(stride) != *stride,
        };
        let is_ambiguous = dim == 0 && least == meta.strides[1];
        if *size == 0 || is_less || is_ambiguous || (dim == 1 && *stride == 0) {
            return MemoryFormat::Contiguous;
        }
        least = if *size == 1 { stride.clone() } else { stride * size };
    }
    format
}

/// A new tensor in this format; one of another rank than the format is for is row-major.
pub(crate) fn in_memory_format(dtype: DType, sizes: Vec<SymInt>, format: MemoryFormat) -> TensorMeta {
    let mut meta = TensorMeta::contiguous(dtype, sizes);
    let order: &[usize] = match (format, meta.sizes.len()) {
        (MemoryFormat::ChannelsLast, 4) => &[1, 3, 2, 0],
        (MemoryFormat::ChannelsLast3d, 5) => &[1, 4, 3, 2, 0],
        _ => return meta,
    };
    let mut stride = SymInt::ONE;
    for &dim in order {
        meta.strides[dim] = stride.clone();
        stride *= meta.sizes[dim].max(&SymInt::ONE);
    }
    meta
}

/// A new tensor in the memory format that another one suggests.
pub(crate) fn in_format_of(like: &TensorMeta, dtype: DType, sizes: Vec<SymInt>) -> TensorMeta {
    in_memory_format(dtype, sizes, memory_format_of(like))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sizes: &[i64], strides: &[i64], format: MemoryFormat) {
        let ints = |it: &[i64]| it.iter().map(|&it| SymInt::from(it)).collect::<Vec<_>>();
        let meta = TensorMeta { strides: ints(strides), ..TensorMeta::contiguous(DType::Float32, ints(sizes)) };
        assert_eq!(memory_format_of(&meta), format);
        if format != MemoryFormat::Contiguous {
            assert_eq!(in_memory_format(DType::Float32, ints(sizes), format), meta);
        }
    }

    #[test]
    fn strides_suggest_a_format() {
        check(&[2, 3, 4, 5], &[60, 1, 15, 3], MemoryFormat::ChannelsLast);
        check(&[2, 3, 4, 5, 6], &[360, 1, 90, 18, 3], MemoryFormat::ChannelsLast3d);
        check(&[2, 3, 4, 5], &[60, 20, 5, 1], MemoryFormat::Contiguous);
        check(&[2, 1, 1, 1], &[1, 1, 1, 1], MemoryFormat::Contiguous);
        check(&[2, 0, 4, 5], &[0, 1, 0, 0], MemoryFormat::Contiguous);
    }
}
