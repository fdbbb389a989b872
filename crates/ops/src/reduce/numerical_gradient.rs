//! Numerical gradients: the slope at each point of a grid, from its neighbours.

use crate::core::decompositions::Call;
use crate::{Cx, OpDef, Tol, Traced, Value, normalize_dim};
use tracefx_core::{Code, DType, Diagnostic, Result};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    gradient(
        "aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int \
             edge_order=1) -> Tensor[]",
    )
    .doc("The slopes along each dimension, of points at equal distances."),
    gradient(
        "aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int \
             edge_order=1) -> Tensor[]",
    )
    .doc("The slopes along some dimensions, of points at equal distances."),
    gradient("aten::gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]")
        .doc("The slopes along some dimensions, of points at distance one."),
    gradient(
        "aten::gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int \
             edge_order=1) -> Tensor[]",
    )
    .doc("The slopes along each dimension, with a distance between points for each."),
    gradient(
        "aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int \
             edge_order=1) -> Tensor[]",
    )
    .doc("The slopes along some dimensions, with a distance between points for each."),
    gradient(
        "aten::gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int \
             edge_order=1) -> Tensor[]",
    )
    .doc("The slopes along each dimension, with the coordinates of the points for each."),
    gradient(
        "aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int \
             edge_order=1) -> Tensor[]",
    )
    .doc("The slopes along some dimensions, with the coordinates of the points for each."),
];

const fn gradient(schema: &'static str) -> OpDef {
    OpDef::composite(schema, slopes).tolerance(Tol::Default)
}

/// Follows `gradient` of aten/src/ATen/native/ReduceOps.cpp. The overloads differ in whether the spacing is one or one for
/// each dimension, and in whether all dimensions are meant.
fn slopes(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    let at = |name: &str| args.position(name).map(|it| &args.values[it]);
    let given = match at("dim") {
        Some(Value::None) | None => None,
        Some(Value::List(_)) => Some(args.ints(args.position("dim").unwrap_or_default())?),
        Some(_) => Some(vec![args.int(args.position("dim").unwrap_or_default())?]),
    };
    let is_all = given.is_none();
    let dims = given.unwrap_or_else(|| (0..meta.sizes.len() as i64).collect());
    let spacings = match at("spacing") {
        Some(Value::None) | None => vec![Value::int(1); dims.len()],
        Some(Value::List(items)) => items.clone(),
        Some(one) => vec![one.clone(); dims.len()],
    };
    let edge_order = args.position("edge_order").map_or(Ok(1), |it| args.int(it))?;
    if meta.dtype == DType::UInt8 {
        return Err(Diagnostic::new(Code::DTypeMismatch, "torch.gradient does not support uint8 input."));
    }
    if spacings.len() != dims.len() {
        let n = spacings.len();
        return Err(args.invalid(match is_all {
            true => format!(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal \
             to 'self.dim() = {}', since dim argument was not given, but got a list of length {n}",
                meta.sizes.len()
            ),
            false => format!(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim \
             arguments to have the same length, but got a spacing argument of length {n} and a dim \
             argument of length {}.",
                dims.len()
            ),
        }));
    }
    if !matches!(edge_order, 1 | 2) {
        return Err(args.invalid("torch.gradient only supports edge_order=1 and edge_order=2."));
    }
    let dims = dims.iter().map(|&it| normalize_dim(args, it, meta.sizes.len())).collect::<Result<Vec<_>>>()?;
    for (at, dim) in dims.iter().enumerate() {
        if dims[..at].contains(dim) {
            return Err(args.invalid(format!("dim {dim} appears multiple times in the list of dims")));
        }
        if meta.sizes.get(*dim).is_none_or(|it| args.less(it, &(edge_order + 1).into())) {
            return Err(args.bad_shape("torch.gradient expected each dimension size to be at least edge_order+1"));
        }
    }
    let mut results = Vec::new();
    for (dim, spacing) in dims.into_iter().zip(spacings) {
        let line = Line { this: this.into(), dim: dim as i64, rank: meta.sizes.len() };
        let parts = match spacing {
            Value::Tensor(points) => {
                let n_dims = cx.meta(points).sizes.len();
                if n_dims != 1 {
                    return Err(args.bad_shape(format!(
                        "torch.gradient expected each element of spacing to have one dimension, but got an \
             element with {n_dims} dimensions!"
                    )));
                }
                line.at_points(cx, &points.into(), edge_order)?
            }
            spacing => line.evenly(cx, &spacing, edge_order)?,
        };
        results.push(cx.aten("cat", [&Value::List(parts.into()), &Value::int(dim as i64)])?);
    }
    Ok(vec![Value::List(results)])
}

/// The elements along one dimension of a tensor.
struct Line {
    this: Traced,
    dim: i64,
    rank: usize,
}

fn slice(cx: &mut Cx<'_>, it: &Traced, dim: i64, start: i64, end: Option<i64>) -> Result<Traced> {
    let end = end.map_or(Value::None, Value::int);
    cx.aten("slice.Tensor", [it, &Value::int(dim), &Value::int(start), &end])
}

fn scaled(cx: &mut Cx<'_>, it: &Traced, factor: f64) -> Result<Traced> {
    cx.aten("mul.Scalar", [it, &Value::Float(factor)])
}

impl Line {
    fn part(&self, cx: &mut Cx<'_>, start: i64, end: Option<i64>) -> Result<Traced> {
        slice(cx, &self.this, self.dim, start, end)
    }

    /// The last part minus the first.
    fn rise(&self, cx: &mut Cx<'_>, last: (i64, Option<i64>), first: (i64, Option<i64>)) -> Result<Traced> {
        let (last, first) = (self.part(cx, last.0, last.1)?, self.part(cx, first.0, first.1)?);
        cx.aten("sub.Tensor", [&last, &first])
    }

    /// The sum of three neighbours from `start` on, each times a factor.
    fn weighted(&self, cx: &mut Cx<'_>, start: i64, factors: [f64; 3]) -> Result<Traced> {
        let mut sum = None;
        for (at, factor) in (start..).zip(factors) {
            let end = if at == -1 { None } else { Some(at + 1) };
            let part = self.part(cx, at, end)?;
            let part = scaled(cx, &part, factor)?;
            sum = Some(match sum {
                None => part,
                Some(sum) => cx.aten("add.Tensor", [&sum, &part])?,
            });
        }
        Ok(sum.unwrap_or(Value::None))
    }

    /// The slopes at the first point, between, and at the last point.
    fn evenly(&self, cx: &mut Cx<'_>, spacing: &Traced, edge_order: i64) -> Result<[Traced; 3]> {
        let center = self.rise(cx, (2, None), (0, Some(-2)))?;
        let edges = match edge_order {
            1 => [self.rise(cx, (1, Some(2)), (0, Some(1)))?, self.rise(cx, (-1, None), (-2, Some(-1)))?],
            _ => [self.weighted(cx, 0, [-1.5, 2.0, -0.5])?, self.weighted(cx, -3, [0.5, -2.0, 1.5])?],
        };
        let mut over = |it: Traced| cx.aten("div.Scalar", [&it, spacing]);
        let ([first, last], center) = (edges.map(&mut over), over(center)?);
        let center = cx.aten("div.Scalar", [&center, &Value::int(2)])?;
        Ok([first?, center, last?])
    }

    /// As [`Line::evenly`], with the coordinates of all points.
    fn at_points(&self, cx: &mut Cx<'_>, points: &Traced, edge_order: i64) -> Result<[Traced; 3]> {
        let steps = cx.aten("diff", [points, &Value::int(1), &Value::int(0)])?;
        let (before, after) = (slice(cx, &steps, 0, 0, Some(-1))?, slice(cx, &steps, 0, 1, None)?);
        let mut shape = vec![1; self.rank];
        shape[self.dim as usize] = -1;
        let mut factors = between(cx, &before, &after)?;
        for it in &mut factors {
            *it = cx.aten("reshape", [it, &Value::ints(&shape)])?;
        }
        let parts = [self.part(cx, 0, Some(-2))?, self.part(cx, 1, Some(-1))?, self.part(cx, 2, None)?];
        let center = sum_of_products(cx, factors, parts)?;
        let step = |cx: &mut Cx<'_>, at: i64| cx.aten("select.int", [&steps, &Value::int(0), &Value::int(at)]);
        let (near, far) = (step(cx, 0)?, step(cx, -1)?);
        if edge_order == 1 {
            let first = self.rise(cx, (1, Some(2)), (0, Some(1)))?;
            let last = self.rise(cx, (-1, None), (-2, Some(-1)))?;
            let first = cx.aten("div.Tensor", [&first, &near])?;
            return Ok([first, center, cx.aten("div.Tensor", [&last, &far])?]);
        }
        let next = step(cx, 1)?;
        let factors = outside(cx, &near, &next)?;
        let parts = [self.part(cx, 0, Some(1))?, self.part(cx, 1, Some(2))?, self.part(cx, 2, Some(3))?];
        let first = sum_of_products(cx, factors, parts)?;
        // From the last point on, everything is the other way round.
        let next = step(cx, -2)?;
        let mut factors = outside(cx, &far, &next)?;
        for it in &mut factors {
            *it = cx.aten("neg", [&*it])?;
        }
        factors.reverse();
        let parts = [self.part(cx, -3, Some(-2))?, self.part(cx, -2, Some(-1))?, self.part(cx, -1, None)?];
        Ok([first, center, sum_of_products(cx, factors, parts)?])
    }
}

fn sum_of_products(cx: &mut Cx<'_>, factors: [Traced; 3], parts: [Traced; 3]) -> Result<Traced> {
    let mut products = Vec::new();
    for (factor, part) in factors.into_iter().zip(parts) {
        products.push(cx.aten("mul.Tensor", [&factor, &part])?);
    }
    let mut products = products.into_iter();
    let first = products.next().unwrap_or(Value::None);
    products.try_fold(first, |sum, it| cx.aten("add.Tensor", [&sum, &it]))
}

/// The factors of three points, of which the middle one has the slope: with the steps `d` and `e`,
/// `-e / (d * (d + e))`, `(e - d) / (d * e)` and `d / (e * (d + e))`.
fn between(cx: &mut Cx<'_>, d: &Traced, e: &Traced) -> Result<[Traced; 3]> {
    let (both, product) = (cx.aten("add.Tensor", [d, e])?, cx.aten("mul.Tensor", [d, e])?);
    let below = cx.aten("mul.Tensor", [d, &both])?;
    let above = cx.aten("neg", [e])?;
    let a = cx.aten("div.Tensor", [&above, &below])?;
    let above = cx.aten("sub.Tensor", [e, d])?;
    let b = cx.aten("div.Tensor", [&above, &product])?;
    let below = cx.aten("mul.Tensor", [e, &both])?;
    Ok([a, b, cx.aten("div.Tensor", [d, &below])?])
}

/// The factors of three points, of which the first one has the slope: with the steps `d` and `e`,
/// `-(2 * d + e) / (d * (d + e))`, `(d + e) / (d * e)` and `-d / (e * (d + e))`.
fn outside(cx: &mut Cx<'_>, d: &Traced, e: &Traced) -> Result<[Traced; 3]> {
    let (both, product) = (cx.aten("add.Tensor", [d, e])?, cx.aten("mul.Tensor", [d, e])?);
    let above = cx.aten("add.Tensor", [&both, d])?;
    let above = cx.aten("neg", [&above])?;
    let below = cx.aten("mul.Tensor", [d, &both])?;
    let a = cx.aten("div.Tensor", [&above, &below])?;
    let b = cx.aten("div.Tensor", [&both, &product])?;
    let above = cx.aten("neg", [d])?;
    let below = cx.aten("mul.Tensor", [e, &both])?;
    Ok([a, b, cx.aten("div.Tensor", [&above, &below])?])
}
