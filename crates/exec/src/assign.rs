//! The write of an in-place operator: which places get which elements. What is written is computed elsewhere.

use tracefx_core::{Code, Diagnostic, Region, Result, Tensor, copy_strided};

/// Writes the elements of `source` into the storage that `target` looks at: the last step of an in-place operator.
/// `source` has the dtype of `target`, broadcasts to its sizes, and is of another storage.
///
/// # Errors
/// `ShapeMismatch` where the sizes do not broadcast; `InvalidArgument` where several elements of `target` share one
/// place in memory.
pub fn assign(target: &Tensor, source: &Tensor) -> Result<()> {
    assert_eq!(target.dtype(), source.dtype(), "an assignment does not convert");
    assert!(!target.storage().is_same(source.storage()), "an assignment has a source of its own");
    let mut places = target.sizes().iter().zip(target.strides());
    if target.numel() > 0 && places.any(|(&size, &stride)| size > 1 && stride == 0) {
        let what =
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location";
        return Err(
            Diagnostic::new(Code::InvalidArgument, what).help("clone() the tensor before performing the operation")
        );
    }
    let source = expand(source, target.sizes())?;
    let (bytes, mut target_bytes) = (source.storage().read(), target.storage().write()?);
    let from = Region { bytes: bytes.bytes(), offset: source.offset(), strides: source.strides() };
    let to = Region { bytes: target_bytes.bytes_mut(), offset: target.offset(), strides: target.strides() };
    copy_strided(target.dtype().size(), target.sizes(), from, to);
    Ok(())
}

fn expand(tensor: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    let mismatch = || {
        let what = format!("output with shape {sizes:?} doesn't match the broadcast shape {:?}", tensor.sizes());
        Diagnostic::new(Code::ShapeMismatch, what)
    };
    let lead = sizes.len().checked_sub(tensor.rank()).ok_or_else(mismatch)?;
    let mut strides = vec![0; sizes.len()];
    for (dim, (&size, &stride)) in tensor.sizes().iter().zip(tensor.strides()).enumerate() {
        if size == sizes[lead + dim] {
            strides[lead + dim] = stride;
        } else if size != 1 {
            return Err(mismatch());
        }
    }
    tensor.as_strided(sizes, &strides, tensor.offset())
}
