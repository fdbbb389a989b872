//! Order along a dimension: sorting and what it takes only a part of.

use crate::core::decompositions::Call;
use crate::core::elementwise::laid_out;
use crate::index::gather::wrong_dtype;
use crate::reduce;
use crate::view::strides::out_of_range;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, normalize_dim};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        |args| sort(args, 1),
    )
    .vjp(reduce::gradient::reordered)
    .doc("The elements of each line of a dimension in order, and where they were; NaN is the greatest.")
    .tags(Tags::CORE),
    OpDef::new(
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, \
             Tensor indices)",
        |args| sort(args, 2),
    )
    .vjp(reduce::gradient::reordered)
    .doc("The elements of each line of a dimension in order, equal ones in the order in which they were."),
    OpDef::composite("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", |cx, args| {
        Ok(cx.aten_all("sort", &args.values, &[])?.into_iter().skip(1).collect())
    })
    .doc("Where the elements of each line of a dimension are, in order.")
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
        argsort_stable,
    )
    .doc("Where the elements of each line of a dimension are, in order, equal ones in the order in which they were.")
    .tolerance(Tol::Exact),
    OpDef::composite("aten::msort(Tensor self) -> Tensor", |cx, args| {
        let sorted = cx.aten_all("sort", [&args.values[0], &Value::int(0), &Value::Bool(false)], &[])?;
        Ok(sorted.into_iter().take(1).collect())
    })
    .doc("The elements in order along the first dimension.")
    .tolerance(Tol::Exact),
    OpDef::new(
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, \
             Tensor indices)",
        topk,
    )
    .vjp(reduce::gradient::reordered)
    .doc("The largest or smallest elements of each line of a dimension, and where they are.")
    .tags(Tags::CORE),
    OpDef::new(
        "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        kthvalue,
    )
    .vjp(reduce::gradient::selected)
    .doc("The element of each line of a dimension that would be the k-th in order, and where it is."),
    OpDef::new("aten::median(Tensor self) -> Tensor", whole)
        .vjp(reduce::gradient::chosen)
        .doc("The lower median of all elements; NaN if one is.")
        .tags(Tags::REDUCTION),
    OpDef::new("aten::nanmedian(Tensor self) -> Tensor", whole)
        .vjp(reduce::gradient::chosen)
        .doc("The lower median of all elements that are numbers.")
        .tags(Tags::REDUCTION),
    OpDef::new(
        "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |args| picked(args, 1, 2),
    )
    .vjp(reduce::gradient::selected)
    .doc("The lower median of each line of a dimension, and where it is; NaN if one is.")
    .tags(Tags::REDUCTION),
    OpDef::new(
        "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        |args| picked(args, 1, 2),
    )
    .vjp(reduce::gradient::selected)
    .doc("The lower median of the numbers of each line of a dimension, and where it is.")
    .tags(Tags::REDUCTION),
    OpDef::new("aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", |args| {
        picked(args, 1, 2)
    })
    .vjp(reduce::gradient::selected)
    .doc("The commonest element of each line of a dimension, the smallest of several, and where its last one is.")
    .tags(Tags::REDUCTION),
];

fn refuse_complex(args: &Args<'_, TensorMeta>, what: &str) -> Result<()> {
    let dtype = args.tensor(0)?.dtype;
    if dtype.is_complex() {
        return Err(wrong_dtype(args, format!("{what} does not support complex dtypes on CPU")));
    }
    Ok(())
}

fn pair(args: &Args<'_, TensorMeta>, meta: TensorMeta) -> Result<Vec<Output>> {
    let dtype = args.tensor(0)?.dtype;
    let indices = TensorMeta { dtype: DType::Int64, ..meta.clone() };
    Ok(vec![Output::Tensor(TensorMeta { dtype, ..meta }), Output::Tensor(indices)])
}

fn sort(args: &Args<'_, TensorMeta>, dim: usize) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    refuse_complex(args, "Sort")?;
    normalize_dim(args, args.int(dim)?, base.sizes.len())?;
    pair(args, laid_out(base.dtype, base.sizes.clone(), &[base]))
}

fn argsort_stable(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let [base, stable, dim, descending] = &args.values[..] else {
        return Err(args.invalid("argsort.stable takes four arguments"));
    };
    let options = [("stable", stable.clone()), ("dim", dim.clone()), ("descending", descending.clone())];
    let sorted = cx.aten_all("sort.stable", [base], &options)?;
    Ok(sorted.into_iter().skip(1).collect())
}

fn topk(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, k) = (args.tensor(0)?, args.sym_int(1)?);
    refuse_complex(args, "topk")?;
    let dim = normalize_dim(args, args.int(2)?, base.sizes.len())?;
    let n = base.sizes.get(dim).cloned().unwrap_or_else(|| 1.into());
    if k.as_int().is_some_and(|it| it < 0) || args.less(&n, k) {
        return Err(args.invalid("selected index k out of range"));
    }
    let mut sizes = base.sizes.clone();
    if let Some(size) = sizes.get_mut(dim) {
        *size = k.clone();
    }
    pair(args, TensorMeta::contiguous(base.dtype, sizes))
}

fn kthvalue(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (base, k) = (args.tensor(0)?, args.sym_int(1)?);
    let dim = normalize_dim(args, args.int(2)?, base.sizes.len())?;
    let res = picked(args, 2, 3)?;
    let n = base.sizes.get(dim).cloned().unwrap_or_else(|| 1.into());
    if k.as_int().is_some_and(|it| it < 1) || args.less(&n, k) {
        return Err(args.invalid(format!("kthvalue(): selected number k out of range for dimension {dim}")));
    }
    Ok(res)
}

/// One element of each line of a dimension, and where it is.
fn picked(args: &Args<'_, TensorMeta>, dim: usize, keeps_dim: usize) -> Result<Vec<Output>> {
    let base = args.tensor(0)?;
    let dim = normalize_dim(args, args.int(dim)?, base.sizes.len())?;
    let mut sizes = base.sizes.clone();
    if let Some(size) = sizes.get_mut(dim) {
        if *size == 0 {
            let name = &args.op.schema.name;
            let what = format!("{name}(): Expected reduction dim {dim} to have non-zero size.");
            return Err(out_of_range(args, what));
        }
        *size = 1.into();
        if !args.bool(keeps_dim)? {
            sizes.remove(dim);
        }
    }
    pair(args, TensorMeta::contiguous(base.dtype, sizes))
}

fn whole(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    Ok(crate::contiguous(args.tensor(0)?.dtype, Vec::new()))
}
