//! Forms that write their results into tensors that are given by name: `out`, or one for each result.
//!
//! Python's functions take `out` for every operator; these rows are for programs that name such an overload.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::{Cx, OpDef, Tags, Tol, Traced, Value, check_cast};
use tracefx_core::Result;

/// A row of this family: it writes what this operator computes.
macro_rules! out {
    ($schema:literal, $op:literal, $doc:literal) => {
        OpDef::composite($schema, |cx, args| written(cx, args, $op)).doc($doc)
    };
}

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    out!(
        "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "atan2",
        "The angle of a point of the plane, written to `out`."
    )
    .tags(Tags::CORE.with(Tags::DECOMPOSED)),
    OpDef::composite(
        "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
        |cx, args| {
            let dtype = cx.meta(*args.tensor(3)?).dtype;
            let range = cx.aten_with("arange.start_step", &args.values[..3], &[("dtype", Value::DType(dtype))])?;
            write(cx, args, 3, &range).map(|it| vec![it])
        },
    )
    .doc("The numbers from `start` on in steps, before `end`, written to `out`."),
    out!(
        "aten::kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, \
         Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
        "kthvalue",
        "The element that would be the k-th in order, and where it is, written to `values` and `indices`."
    )
    .tolerance(Tol::Exact),
];

/// Calls an operator with the other arguments, and writes its results to those that are given for them.
fn written(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Result<Vec<Traced>> {
    let specs = || args.op.schema.args.iter().zip(&args.values).filter(|(spec, _)| !spec.is_mutated);
    let positional = specs().filter(|(spec, _)| !spec.is_kwarg_only).map(|(_, it)| it);
    let named = specs().filter(|(spec, _)| spec.is_kwarg_only).map(|(spec, it)| (spec.name.as_str(), it.clone()));
    let results = cx.aten_all(op, positional, &named.collect::<Vec<_>>())?;
    let first = args.values.len() - results.len();
    results.into_iter().enumerate().map(|(at, result)| write(cx, args, first + at, &result)).collect()
}

/// Writes a result to the tensor at this position. One without elements becomes as large as the result; PyTorch warns
/// where it does so to others.
fn write(cx: &mut Cx<'_>, args: &Call<'_>, at: usize, result: &Traced) -> Result<Traced> {
    let mut out = args.values[at].clone();
    let (meta, result_meta) = (cx.meta(tensor_of(&out)).clone(), cx.meta(tensor_of(result)).clone());
    let name = &args.op.schema.args[at].name;
    check_cast(result_meta.dtype, meta.dtype)?;
    if !args.agree(&meta.sizes, &result_meta.sizes) {
        if !meta.sizes.iter().any(|it| *it == 0) {
            let what = format!("`{name}` has {:?} elements to hold a result of {:?}", meta.sizes, result_meta.sizes);
            return Err(args.bad_shape(what));
        }
        out = cx.aten("resize_", [&out, &size_list(&result_meta.sizes)])?;
    }
    cx.aten("copy_", [&out, result])
}
