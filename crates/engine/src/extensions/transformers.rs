//! The mixture of experts of transformers, made of ATen's operators.

use super::{Call, dims};
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_ops::{Cx, Traced, Value};

/// Rows `offs[i - 1]..offs[i]` times `weight[i]`; rows of no group are zero. Each group multiplies all rows, and those that are its
/// own are chosen: where they lie, only the data tells.
pub(super) fn grouped_mm(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [input, weight, offs] = [0, 1, 2].map(|it| &args.values[it]);
    let sizes = |cx: &Cx<'_>, index: usize| Ok::<_, Diagnostic>(cx.meta(*args.tensor(index)?).sizes.to_vec());
    let (rows, weights, groups) = (sizes(cx, 0)?, sizes(cx, 1)?, sizes(cx, 2)?);
    let ([n, k], [experts, inner, width], [n_groups]) = (&rows[..], &weights[..], &groups[..]) else {
        let what =
            "input must be 2D (S, input_dim), weight 3D (num_experts, input_dim, output_dim), offs 1D (num_experts,)";
        return Err(args.bad_shape(what));
    };
    if args.differ(k, inner) || args.differ(experts, n_groups) {
        let what = format!("input {rows:?}, weight {weights:?} and offs {groups:?} do not fit");
        return Err(args.bad_shape(what));
    }
    let Some(experts) = experts.as_int() else {
        return Err(args.unsupported("a number of experts that is not known"));
    };
    let dtype = Value::DType(cx.meta(*args.tensor(0)?).dtype);
    let places = cx.aten_with("arange", [&Value::Int(n.clone())], &[("dtype", Value::DType(DType::Int64))])?;
    let places = cx.aten("unsqueeze", [&places, &Value::int(1)])?;
    let mut res = cx.aten_with("zeros", [&dims(&[n.clone(), width.clone()])], &[("dtype", dtype)])?;
    let mut is_behind: Option<Traced> = None;
    for expert in 0..experts {
        let select = |cx: &mut Cx<'_>, it: &Traced| cx.aten("select.int", [it, &Value::int(0), &Value::int(expert)]);
        let (weight, end) = (select(cx, weight)?, select(cx, offs)?);
        let is_before = cx.aten("lt.Tensor", [&places, &end])?;
        let is_own = match is_behind {
            Some(is_behind) => cx.aten("logical_and", [&is_behind, &is_before])?,
            None => is_before,
        };
        let product = cx.aten("mm", [input, &weight])?;
        res = cx.aten("where.self", [&is_own, &product, &res])?;
        is_behind = Some(cx.aten("ge.Tensor", [&places, &end])?);
    }
    Ok(vec![res])
}
