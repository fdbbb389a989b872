//! Which recorded cases differ from PyTorch on purpose, and what of which operators is not compared.

use serde_json::Value as Json;
use std::sync::LazyLock;

/// What the conformance runner leaves out too: one list for both.
static LISTS: LazyLock<Json> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../../tests/conformance/ops.json")).unwrap());

/// The row in which the case of this operator with this first tensor is, or those of this file, that differ on purpose.
pub(crate) fn listed_as(op: &str, first: Option<&str>, file: &str) -> Option<String> {
    let case = first.map(|it| format!("{op} {it}")).filter(|it| differing_cases().any(|row| row == *it));
    case.or_else(|| Some(format!("{op} {file}")).filter(|it| differing_dtypes().any(|row| row == *it)))
}

/// The cases that differ on purpose, by operator and first tensor. Whole folders of cases are run by this list too, so that some
/// of them may agree here.
fn differing_cases() -> impl Iterator<Item = String> {
    items(&LISTS["different"]).map(|it| format!("{} {}", it[0].as_str().unwrap(), it[1].as_str().unwrap()))
}

/// The operators that differ on purpose, with the dtypes.
pub(crate) fn differing_dtypes() -> impl Iterator<Item = String> {
    OTHER_DTYPES.iter().flat_map(|(op, files, _reason)| files.iter().map(move |file| format!("{op} {file}")))
}

/// Whether the results are free up to the signs of vectors.
pub(crate) fn has_free_signs(op: &str) -> bool {
    items(&LISTS["freeSigns"]).any(|it| it == op)
}

/// Whether it asks for strides, so that another layout of the same elements may have another result or none.
pub(crate) fn is_by_strides(op: &str) -> bool {
    items(&LISTS["byStrides"]).any(|it| it == op)
}

/// Whether its results may lie in memory in another way than PyTorch's.
pub(crate) fn has_free_strides(op: &str) -> bool {
    LISTS["freeStrides"].as_object().unwrap().values().any(|ops| items(ops).any(|it| it == op))
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().unwrap().iter()
}

/// Operators that differ from PyTorch in some of `tests/fixtures/dtypes`, each with its reason.
const OTHER_DTYPES: &[(&str, &[&str], &str)] = &[
    ("aten.col2im.default", INTS, REFUSES_NOTHING),
    ("aten.im2col.default", INTS, REFUSES_NOTHING),
    ("aten._native_batch_norm_legit.default", &["float32"], OF_NOTHING),
    ("aten._native_batch_norm_legit.no_stats", &["float32"], OF_NOTHING),
    ("aten.native_batch_norm.default", &["float32"], OF_NOTHING),
    ("aten.adaptive_max_pool1d.default", &["float32"], OF_NOTHING),
    ("aten.adaptive_max_pool2d.default", &["float32"], OF_NOTHING),
    ("aten.linalg_matrix_norm.default", &["float32"], OF_NOTHING),
    ("aten.unique_consecutive.default", &["float32", "int64"], OF_NOTHING),
    ("aten.unique_dim.default", &["float32", "int64"], OF_NOTHING),
    ("aten._cdist_backward.default", &["float32"], OF_NOTHING),
    ("aten._embedding_bag_backward.default", &["float32"], OF_NOTHING),
    ("aten.linalg_cond.default", &["float32"], OF_NOTHING),
    ("aten.reflection_pad1d_backward.default", &["float32"], OF_NOTHING),
    ("aten.reflection_pad2d_backward.default", &["float32"], OF_NOTHING),
    ("aten.replication_pad1d_backward.default", &["float32"], OF_NOTHING),
    ("aten.linalg_vander.default", &["float32", "int64"], NO_DIMENSION),
    ("aten.matrix_H.default", &["float32", "int64"], NO_DIMENSION),
    ("aten.norm_except_dim.default", &["float32"], NO_DIMENSION),
    ("aten.binary_cross_entropy.default", FLOATS, "that the input lies between 0 and 1 is not checked"),
    ("aten.conv_transpose2d.input", &["float16"], HALF_STEPS),
    ("aten.grid_sampler_2d_backward.default", &["bfloat16", "float16"], HALF_STEPS),
    ("aten.soft_margin_loss_backward.default", &["float16"], HALF_STEPS),
    ("aten.special_i0e.default", &["float16"], HALF_STEPS),
    ("aten.special_ndtr.default", &["bfloat16", "float16"], HALF_STEPS),
    ("aten.linalg_matrix_exp.default", &["bfloat16", "float16"], HALF_IS_NAN),
    ("aten.matrix_exp.default", &["bfloat16", "float16"], HALF_IS_NAN),
    ("aten.svd.default", &["bfloat16", "float16"], "PyTorch gives vectors of no meaning where it cannot factor"),
    ("aten.embedding_renorm_.default", &["complex64", "complex128"], STRICTER),
    ("aten.repeat_interleave.Tensor", &["int8", "int16", "uint8"], STRICTER),
    ("aten.searchsorted.Tensor", &["bool", "complex64", "complex128"], STRICTER),
    ("aten.silu_backward.default", &["complex64", "complex128"], STRICTER),
    ("aten.vander.default", &["bool"], STRICTER),
    ("aten._histogramdd_from_bin_tensors.default", &["bfloat16", "float16"], STRICTER),
    ("aten.histogram.bins_tensor", &["bfloat16", "float16"], STRICTER),
    ("aten.histogramdd.TensorList_bins", &["bfloat16", "float16"], STRICTER),
    ("aten.histogramdd.int_bins", &["bfloat16", "float16"], STRICTER),
    ("aten._linalg_det.default", &["complex64", "complex128"], TRANSPOSED),
    ("aten._linalg_slogdet.default", &["complex64", "complex128"], TRANSPOSED),
    (
        "aten.cholesky_inverse.default",
        &["complex64", "complex128"],
        "the recorded factor has a diagonal that is not real",
    ),
    ("aten.geqrf.default", &["float32", "float64"], OF_INFINITIES),
    ("aten.orgqr.default", &["float32", "float64"], OF_INFINITIES),
    ("aten.grid_sampler_2d_backward.default", &["float32", "float64"], OF_INFINITIES),
    ("aten.stft.center", &["float32", "float64"], OF_INFINITIES),
    ("aten.stft.default", &["float32", "float64"], OF_INFINITIES),
    ("aten.hardswish_backward.default", FLOATS, NAN_IN_VECTORS),
    ("aten.hardtanh_backward.default", &["float32", "float64"], NAN_IN_VECTORS),
    ("aten.softshrink_backward.default", &["float32", "float64"], NAN_IN_VECTORS),
    ("aten.sinc.default", &["complex64"], "PyTorch rounds pi times the number to complex64"),
];

const OF_INFINITIES: &str = "sums of infinities and NaN, which depend on the order of steps";
const NAN_IN_VECTORS: &str =
    "what PyTorch makes of NaN depends on its place: one in a vector, another in the rest behind it";

const HALF_IS_NAN: &str = "PyTorch gives NaN in half precision where the exponential is a number";
const TRANSPOSED: &str =
    "PyTorch factors the transpose of real matrices alone, which changes the factors and not the result";

const FLOATS: &[&str] = &["float32", "float64", "float16", "bfloat16"];
const INTS: &[&str] = &["int8", "int16", "int32", "int64", "uint8"];
const REFUSES_NOTHING: &str = "the recorded input is empty, and PyTorch refuses the dtype all the same";
const OF_NOTHING: &str = "an empty input, which one of the two refuses";
const NO_DIMENSION: &str = "an input without dimensions, which one of the two refuses";
const HALF_STEPS: &str = "PyTorch rounds to half precision on the way";
const STRICTER: &str = "a dtype that PyTorch takes is refused here";

/// Cases that PyTorch's own decomposition computes otherwise than its kernel, by operator and first tensor.
const OTHERWISE_MADE: &[(&str, &str, &str)] = &[(
    "aten.native_layer_norm_backward.default",
    "10.t0",
    "of a single element the deviation is zero, where the kernel multiplies before it subtracts",
)];

pub(crate) fn is_made_otherwise(op: &str, case: &str) -> bool {
    OTHERWISE_MADE.iter().any(|(name, key, _reason)| *name == op && case.contains(&format!("[{{\"tensor\":\"{key}\"")))
}
