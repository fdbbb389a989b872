//! Order: sorting, the greatest, medians, searching.

use super::Rows;
use super::reduce::extremum_over;
use crate::call::{Call, Results, Tensor, unsupported};
use crate::element::computed_in;
use crate::graph::{Dim, X, int};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten.bucketize.Tensor", |c| search(c, "boundaries")),
    ("aten.kthvalue.default", kth_value),
    ("aten.median.default", |c| whole_median(c, false)),
    ("aten.median.dim", median),
    ("aten.mode.default", mode),
    ("aten.nanmedian.default", |c| whole_median(c, true)),
    ("aten.searchsorted.Tensor", |c| search(c, "sorted_sequence")),
    ("aten.sort.default", sort),
    ("aten.sort.stable", sort),
    ("aten.topk.default", top),
];

/// The first elements of a dimension in order, and their indices: of equal ones, the one that stands first.
fn sorted(c: &mut Call<'_, '_>, x: &X, dim: i64, n: &Dim, descending: bool) -> Result<(X, X)> {
    let computed = computed_in("TopK", x.dtype);
    let wide = c.g().cast(x, computed)?;
    let n = c.g().dims(std::slice::from_ref(n))?;
    let attributes = vec![int("axis", dim), int("largest", descending.into()), int("sorted", 1)];
    if !x.dtype.is_float() {
        let found = c.g().node("TopK", &[Some(&wide), Some(&n)], attributes, &[computed, DType::Int64]);
        return Ok((c.g().cast(&found[0], x.dtype)?, found[1].clone()));
    }
    // NaN comes after all numbers, and ONNX Runtime has no order for it: it sorts as infinity.
    let is_nan = c.g().test("IsNaN", &[&wide])?;
    let most = c.number(f64::INFINITY, computed)?;
    let ordered = c.g().choose(&is_nan, &most, &wide)?;
    let found = c.g().node("TopK", &[Some(&ordered), Some(&n)], attributes, &[computed, DType::Int64]);
    let values = c.g().raw("GatherElements", &[x, &found[1]], vec![int("axis", dim)], x.dtype);
    Ok((values, found[1].clone()))
}

/// All elements of a dimension in order. A second sort, which leaves equal ones in their order, parts NaN and infinity.
fn all_sorted(c: &mut Call<'_, '_>, x: &X, dim: i64, n: &Dim, descending: bool) -> Result<(X, X)> {
    let (values, indices) = sorted(c, x, dim, n, descending)?;
    if !x.dtype.is_float() {
        return Ok((values, indices));
    }
    let is_nan = c.g().test("IsNaN", &[&values])?;
    let marks = c.g().cast(&is_nan, DType::Int32)?;
    let (_, order) = sorted(c, &marks, dim, n, descending)?;
    let taken =
        |c: &mut Call<'_, '_>, it: &X| c.g().raw("GatherElements", &[it, &order], vec![int("axis", dim)], it.dtype);
    Ok((taken(c, &values), taken(c, &indices)))
}

fn number_results(c: &mut Call<'_, '_>, x: &Tensor) -> Result<Results> {
    let zero = c.number(0.0, DType::Int64)?;
    Ok(Results(vec![Some(x.x.clone()), Some(zero)]))
}

fn sort(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return number_results(c, &x);
    }
    let dim = c.dim("dim", x.rank())?;
    let (n, descending) = (c.size_of(&x, dim as usize), c.bool("descending")?);
    let (values, indices) = all_sorted(c, &x, dim, &n, descending)?;
    Ok(Results(vec![Some(values), Some(indices)]))
}

fn top(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return number_results(c, &x);
    }
    let dim = c.dim("dim", x.rank())?;
    let n = c.dim_arg("k")?.unwrap_or(Dim::Known(1));
    let largest = c.bool("largest")?;
    let (values, indices) = sorted(c, &x, dim, &n, largest)?;
    Ok(Results(vec![Some(values), Some(indices)]))
}

/// The element at this place of the order along a dimension, and its index.
fn ranked(c: &mut Call<'_, '_>, x: &Tensor, dim: i64, at: i64, keepdim: bool) -> Result<Results> {
    let n = c.size_of(x, dim as usize);
    let (values, indices) = all_sorted(c, x, dim, &n, false)?;
    let mut results = Vec::new();
    for it in [values, indices] {
        let last = c.g().slice(&it, dim, &Dim::Known(at), &Dim::Known(at + 1), 1)?;
        results.push(Some(if keepdim { last } else { c.g().squeeze(&last, &[dim])? }));
    }
    Ok(Results(results))
}

fn kth_value(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return number_results(c, &x);
    }
    let (dim, k, keepdim) = (c.dim("dim", x.rank())?, c.int("k")?, c.bool("keepdim")?);
    ranked(c, &x, dim, k - 1, keepdim)
}

/// The lower of the two in the middle.
fn median(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return number_results(c, &x);
    }
    let (dim, keepdim) = (c.dim("dim", x.rank())?, c.bool("keepdim")?);
    let n = x.size(dim as usize)?;
    let Results(results) = ranked(c, &x, dim, (n - 1) / 2, keepdim)?;
    if !x.x.dtype.is_float() {
        return Ok(Results(results));
    }
    // With a NaN, that is the median, and the first one at that.
    let is_nan = c.g().test("IsNaN", &[&x])?;
    let any = c.g().reduce("ReduceMax", &is_nan, &[dim], keepdim)?;
    let marks = c.g().cast(&is_nan, DType::Int32)?;
    let attributes = vec![int("axis", dim), int("keepdims", keepdim.into())];
    let first = c.g().query("ArgMax", &[&marks], attributes, DType::Int64)?;
    let nan = c.number(f64::NAN, x.x.dtype)?;
    let mut kept = Vec::new();
    for (it, instead) in results.into_iter().flatten().zip([nan, first]) {
        kept.push(Some(c.g().choose(&any, &instead, &it)?));
    }
    Ok(Results(kept))
}

/// The median of all elements: where NaN is left out, the middle of those that remain.
fn whole_median(c: &mut Call<'_, '_>, skips_nan: bool) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.sizes.iter().any(|it| *it == 0) {
        if !x.x.dtype.is_float() {
            return Err(unsupported("the median of no integers has no translation"));
        }
        return Ok(c.number(f64::NAN, x.x.dtype)?.into());
    }
    let flat = c.g().reshape(&x, &[Dim::Known(-1)])?;
    let size = c.g().size_of(&flat, 0);
    let (values, _) = all_sorted(c, &flat, 0, &Dim::Value(size.clone()), false)?;
    let (one, two) = (c.number(1.0, DType::Int64)?, c.number(2.0, DType::Int64)?);
    if !x.x.dtype.is_float() {
        let last = c.g().math("Sub", &[&size, &one])?;
        let middle = c.g().math("Div", &[&last, &two])?;
        let found = c.g().raw("Gather", &[&values, &middle], vec![int("axis", 0)], x.x.dtype);
        return Ok(c.g().reshape(&found, &[])?.into());
    }
    let zero = c.number(0.0, DType::Int64)?;
    let is_nan = c.g().test("IsNaN", &[&flat])?;
    let marks = c.g().cast(&is_nan, DType::Int64)?;
    let n_nan = c.g().reduce("ReduceSum", &marks, &[0], true)?;
    let g = c.g();
    let n = g.math("Sub", &[&size, &n_nan])?;
    let last = g.math("Sub", &[&n, &one])?;
    let middle = g.math("Div", &[&last, &two])?;
    let middle = g.math("Max", &[&middle, &zero])?;
    let found = g.raw("Gather", &[&values, &middle], vec![int("axis", 0)], x.x.dtype);
    let found = g.reshape(&found, &[])?;
    if skips_nan {
        return Ok(found.into());
    }
    let any = g.reduce("ReduceMax", &is_nan, &[0], false)?;
    let nan = g.number(f64::NAN, x.x.dtype)?;
    Ok(g.choose(&any, &nan, &found)?.into())
}

/// The value that stands there most often, the least of them; its index is that of the last.
fn mode(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    if x.rank() == 0 {
        return number_results(c, &x);
    }
    let (dim, keepdim) = (c.dim("dim", x.rank())?, c.bool("keepdim")?);
    let dtype = x.x.dtype;
    let (a, b) = (c.g().unsqueeze(&x, &[dim])?, c.g().unsqueeze(&x, &[dim + 1])?);
    let same = c.g().test("Equal", &[&a, &b])?;
    let same = c.g().cast(&same, DType::Int64)?;
    let n = c.g().reduce("ReduceSum", &same, &[dim], false)?;
    let most = c.g().reduce("ReduceMax", &n, &[dim], true)?;
    let is_most = c.g().test("Equal", &[&n, &most])?;
    let above = c.g().scalar(crate::element::highest(dtype), dtype)?;
    let candidates = c.g().choose(&is_most, &x, &above)?;
    let value = extremum_over(c, "ReduceMin", &candidates, &[dim], true)?;
    let is_value = c.g().test("Equal", &[&x, &value])?;
    let marks = c.g().cast(&is_value, DType::Int32)?;
    let attributes = vec![int("axis", dim), int("keepdims", keepdim.into()), int("select_last_index", 1)];
    let at = c.g().query("ArgMax", &[&marks], attributes, DType::Int64)?;
    let value = if keepdim { value } else { c.g().squeeze(&value, &[dim])? };
    Ok(Results(vec![Some(value), Some(at)]))
}

/// How many of the sorted values come before each element.
fn search(c: &mut Call<'_, '_>, values: &str) -> Result<Results> {
    let (out, dtype) = (c.dtype()?, c.promoted(&["self", values])?);
    let (sorted, x) = (c.tensor(values)?, c.operand("self", dtype)?);
    let is_right = c.bool("right")?
        || c.schema.is_some_and(|it| it.name == "searchsorted") && c.str("side")?.as_deref() == Some("right");
    let mut bounds = c.g().cast(&sorted, dtype)?;
    let has_sorter = c.schema.is_some_and(|it| it.args.iter().any(|it| it.name == "sorter"));
    if has_sorter && let Some(order) = c.opt_tensor("sorter")? {
        bounds = c.g().raw("GatherElements", &[&bounds, &order], vec![int("axis", -1)], dtype);
    }
    let rank = c.result(0)?.sizes.len() as i64;
    let g = c.g();
    let x = g.unsqueeze(&x, &[rank])?;
    // A row of values for each row of elements; one row serves all.
    let bounds = if sorted.rank() > 1 { g.unsqueeze(&bounds, &[sorted.rank() as i64 - 1])? } else { bounds };
    // NaN comes after all values: they are those that are not after the element.
    let is_after = g.test(if is_right { "Greater" } else { "GreaterOrEqual" }, &[&bounds, &x])?;
    let is_before = g.not(&is_after);
    let counted = g.cast(&is_before, DType::Int64)?;
    let n = g.reduce("ReduceSum", &counted, &[-1], false)?;
    Ok(g.cast(&n, out)?.into())
}
