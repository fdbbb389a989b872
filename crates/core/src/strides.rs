//! Arithmetic of sizes and strides: how many elements there are, whether they lie row-major, and how much storage they need.

use smallvec::SmallVec;

/// Sizes or strides of a tensor, in elements.
pub type Dims = SmallVec<[usize; 6]>;

/// The number of elements of these sizes, or `None` where it does not fit.
pub fn numel(sizes: &[usize]) -> Option<usize> {
    // A zero anywhere makes an empty tensor, however large the other sizes are.
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size))
}

/// The row-major strides of these sizes, as PyTorch computes them: a size of zero counts as one.
pub fn contiguous_strides(sizes: &[usize]) -> Dims {
    let mut strides: Dims = smallvec::smallvec![1; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(sizes[dim].max(1));
    }
    strides
}

/// Whether elements of these sizes and strides lie row-major without gaps. Sizes of one may have any stride.
pub fn has_contiguous_strides(sizes: &[usize], strides: &[usize]) -> bool {
    if sizes.contains(&0) {
        return true;
    }
    let mut expected = 1usize;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        if size != 1 {
            if stride != expected {
                return false;
            }
            expected = expected.saturating_mul(size);
        }
    }
    true
}

/// How many elements a storage must have for a view of these sizes, strides and offset, or `None` where that does not
/// fit 64 bits. An empty view needs none.
pub fn storage_span(sizes: &[usize], strides: &[usize], offset: usize) -> Option<u64> {
    if sizes.contains(&0) {
        return Some(0);
    }
    let mut last = offset as u128;
    for (&size, &stride) in sizes.iter().zip(strides) {
        last = last.checked_add((size as u128 - 1).checked_mul(stride as u128)?)?;
    }
    u64::try_from(last + 1).ok()
}
