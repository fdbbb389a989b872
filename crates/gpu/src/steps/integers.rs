//! Products of matrices of integers: an invocation for each element, whose terms it adds up without rounding.

use super::pointwise::{converted, product, rounded};
use crate::lower::{Lowered, Lowering};
use crate::shader::{Kind, coordinates};
use tracefx_plan::TensorId;

/// The most terms of all elements together.
const MOST_TERMS: u64 = 1 << 32;

/// The product of matrices, of batches of them, or of vectors; `is_turned` says that the right factor has its columns in the place of its rows.
pub(super) fn matrices(
    cx: &mut Lowering<'_>,
    (lhs, rhs, is_turned): (TensorId, TensorId, bool),
    result: TensorId,
) -> Lowered {
    let ((lhs, left), (rhs, right), (result, kind)) = (cx.view(lhs)?, cx.view(rhs)?, cx.view(result)?);
    let (rank, k) = (lhs.sizes.len(), lhs.sizes.last().copied().unwrap_or(1));
    let terms = (result.numel() as u64).checked_mul(k as u64).filter(|it| *it <= MOST_TERMS);
    if terms.is_none() || result.sizes.len() + 1 < rank || rank == 0 {
        return Err("a product of integers of other sizes".into());
    }
    if !matches!(kind, Kind::Int | Kind::Long) {
        return Err("a product of other dtypes".into());
    }
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let term = "t".to_owned();
        let lhs_places = [&places[..rank - 1], std::slice::from_ref(&term)].concat();
        let column = places.last().cloned();
        let rhs_places: Vec<String> = match (rhs.sizes.len(), is_turned) {
            (1, _) => vec![term],
            (2, false) => [term].into_iter().chain(column).collect(),
            (2, true) => column.into_iter().chain([term]).collect(),
            (_, _) => places.first().cloned().into_iter().chain([term]).chain(column).collect(),
        };
        let zero = converted("0i", Kind::Int, kind);
        shader.line(format!("var sum = {zero};"));
        shader.line(format!("for (var t = 0u; t < {k}u; t++) {{"));
        let a = converted(&shader.load(&lhs, &lhs.at(&lhs_places)), left, kind);
        let b = converted(&shader.load(&rhs, &rhs.at(&rhs_places)), right, kind);
        let term = product(kind, &a, &b);
        let sum = if kind == Kind::Long { format!("long_add(sum, {term})") } else { format!("sum + {term}") };
        shader.line(format!("sum = {sum};"));
        shader.line("}");
        let statement = shader.store(&result, &result.at(&places), &rounded("sum", result.dtype));
        shader.line(statement);
    })
}
