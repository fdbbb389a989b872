//! Products of matrices, and distances.

use super::Rows;
use super::reduce::norm;
use crate::call::{Call, Results, check_listed, unsupported};
use crate::element::wide;
use crate::graph::{Dim, X, float, int};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten._cdist_forward.default", cdist),
    ("aten._pdist_forward.default", pdist),
    ("aten._trilinear.default", trilinear),
    ("aten.addbmm.default", addbmm),
    ("aten.addmm.default", addmm),
    ("aten.addmv.default", |c| added(c, "mat", "vec")),
    ("aten.baddbmm.default", |c| added(c, "batch1", "batch2")),
    ("aten.bmm.default", |c| product(c, "self", "mat2")),
    ("aten.dist.default", dist),
    ("aten.mm.default", |c| product(c, "self", "mat2")),
    ("aten.mv.default", |c| product(c, "self", "vec")),
];

fn product(c: &mut Call<'_, '_>, a: &str, b: &str) -> Result<Results> {
    let (a, b) = (c.tensor(a)?.x, c.tensor(b)?.x);
    Ok(c.g().math("MatMul", &[&a, &b])?.into())
}

/// `beta * self + alpha * product`. With a `beta` of zero, `self` does not count, whatever it is.
fn combined(c: &mut Call<'_, '_>, product: &X) -> Result<X> {
    let dtype = product.dtype;
    let mut product = product.clone();
    if c.float("alpha")? != 1.0 {
        let alpha = c.operand("alpha", dtype)?;
        product = c.g().math("Mul", &[&product, &alpha])?;
    }
    let beta = c.float("beta")?;
    if beta == 0.0 {
        return Ok(product);
    }
    let mut added = c.operand("self", dtype)?;
    if beta != 1.0 {
        let beta = c.operand("beta", dtype)?;
        added = c.g().math("Mul", &[&added, &beta])?;
    }
    c.g().math("Add", &[&product, &added])
}

fn added(c: &mut Call<'_, '_>, a: &str, b: &str) -> Result<Results> {
    let dtype = wide(c.dtype()?);
    let (a, b) = (c.operand(a, dtype)?, c.operand(b, dtype)?);
    let product = c.g().math("MatMul", &[&a, &b])?;
    Ok(combined(c, &product)?.into())
}

fn addmm(c: &mut Call<'_, '_>) -> Result<Results> {
    let (bias, a, b) = (c.tensor("self")?, c.tensor("mat1")?.x, c.tensor("mat2")?.x);
    let (alpha, beta) = (c.float("alpha")?, c.float("beta")?);
    if !a.dtype.is_float() || beta == 0.0 {
        return added(c, "mat1", "mat2");
    }
    let attributes = vec![float("alpha", alpha), float("beta", beta)];
    Ok(c.g().math_with("Gemm", &[&a, &b, &bias], attributes)?.into())
}

fn addbmm(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype = wide(c.dtype()?);
    let (a, b) = (c.operand("batch1", dtype)?, c.operand("batch2", dtype)?);
    let products = c.g().math("MatMul", &[&a, &b])?;
    let sum = c.g().reduce("ReduceSum", &products, &[0], false)?;
    Ok(combined(c, &sum)?.into())
}

/// Each argument gets the dimensions that it lacks; the product of the three is summed.
fn trilinear(c: &mut Call<'_, '_>) -> Result<Results> {
    let mut product: Option<X> = None;
    for (name, missing) in [("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")] {
        let dtype = wide(c.dtype()?);
        let (x, missing) = (c.operand(name, dtype)?, c.ints(missing)?);
        let x = if missing.is_empty() { x } else { c.g().unsqueeze(&x, &missing)? };
        product = Some(match product {
            Some(so_far) => c.g().math("Mul", &[&so_far, &x])?,
            None => x,
        });
    }
    let product = product.ok_or_else(|| unsupported("a product of nothing"))?;
    let dims = c.ints("sumdim")?;
    Ok(c.g().reduce("ReduceSum", &product, &dims, false)?.into())
}

fn cdist(c: &mut Call<'_, '_>) -> Result<Results> {
    let (a, b) = (c.tensor("x1")?, c.tensor("x2")?);
    let p = c.float("p")?;
    let (rows, columns) = (c.g().unsqueeze(&a, &[a.rank() as i64 - 1])?, c.g().unsqueeze(&b, &[b.rank() as i64 - 2])?);
    let differences = c.g().math("Sub", &[&rows, &columns])?;
    Ok(norm(c, &differences, p, &[-1], false)?.into())
}

/// The distances of all pairs of rows, the first row's first.
fn pdist(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let (n, p) = (x.size(0)?, c.float("p")?);
    check_listed(&[n, n])?;
    let pairs: Vec<(i64, i64)> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
    let mut parts = Vec::new();
    for side in [pairs.iter().map(|it| it.0).collect::<Vec<_>>(), pairs.iter().map(|it| it.1).collect()] {
        let at = c.g().vector(&side)?;
        parts.push(c.g().raw("Gather", &[&x, &at], vec![int("axis", 0)], x.x.dtype));
    }
    let differences = c.g().math("Sub", &[&parts[0], &parts[1]])?;
    Ok(norm(c, &differences, p, &[1], false)?.into())
}

fn dist(c: &mut Call<'_, '_>) -> Result<Results> {
    let dtype: DType = wide(c.dtype()?);
    let (a, b, p) = (c.operand("self", dtype)?, c.operand("other", dtype)?, c.float("p")?);
    let differences = c.g().math("Sub", &[&a, &b])?;
    let flat = c.g().reshape(&differences, &[Dim::Known(-1)])?;
    Ok(norm(c, &flat, p, &[0], false)?.into())
}
