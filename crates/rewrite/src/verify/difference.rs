//! Where two outcomes differ, in the words of `torch.testing.assert_close`.

use super::draw::converted;
use super::{Claim, Outcome, names};
use tracefx_core::{Complex64, DType, DTypeKind, Result, Scalar, Tensor};
use tracefx_exec::Executor;
use tracefx_ir::{Attribute, GraphModule};
use tracefx_ops::{Tol, Value};

/// The first difference of two outcomes, for people.
pub(super) struct Difference {
    pub(super) what: String,
    pub(super) notes: Vec<String>,
}

impl Difference {
    fn of(what: String) -> Option<Self> {
        Some(Difference { what, notes: Vec::new() })
    }
}

/// Where the results differ, or what is left in the inputs and attributes.
pub(super) fn difference(
    executor: Executor<'_>,
    claim: &Claim,
    before: &Outcome,
    after: &Outcome,
) -> Result<Option<Difference>> {
    let items = |it: &Outcome| if let Value::List(items) = &it.result { items.clone() } else { Vec::new() };
    let results = items(before).into_iter().zip(items(after)).enumerate();
    let mut all: Vec<_> = results.map(|(at, (a, b))| (format!("output {at}"), a, b)).collect();
    let inputs = names(&claim.before).zip(before.inputs.iter().zip(&after.inputs));
    all.extend(inputs.map(|(name, (a, b))| (format!("what is left in input %{name}"), a.clone(), b.clone())));
    for (path, a) in tensors(&before.module) {
        if let Ok(Attribute::Tensor { tensor: b, .. }) = after.module.attribute(&path) {
            let place = format!("what is left in attribute {path}");
            all.push((place, Value::Tensor(a.clone()), Value::Tensor(b.clone())));
        }
    }
    for (place, a, b) in all {
        if let Some(it) = of_values(executor, &place, &a, &b)? {
            return Ok(Some(it));
        }
    }
    Ok(None)
}

/// The tensors that a module and its children hold, by their paths.
fn tensors(module: &GraphModule) -> Vec<(String, &Tensor)> {
    let mut res = Vec::new();
    let mut open = vec![(String::new(), module)];
    while let Some((prefix, module)) = open.pop() {
        for (name, attribute) in &module.attributes {
            let path = format!("{prefix}{name}");
            match attribute {
                Attribute::Tensor { tensor, .. } => res.push((path, tensor)),
                Attribute::Module(child) => open.push((format!("{path}."), child)),
                Attribute::Fake { .. } => {}
            }
        }
    }
    res
}

fn of_values(executor: Executor<'_>, place: &str, a: &Value<Tensor>, b: &Value<Tensor>) -> Result<Option<Difference>> {
    match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => return of_tensors(executor, place, a, b),
        (Value::List(a), Value::List(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                if let Some(it) = of_values(executor, &format!("{place}[{at}]"), a, b)? {
                    return Ok(Some(it));
                }
            }
            return Ok(None);
        }
        _ => {}
    }
    Ok(match (a.as_scalar(), b.as_scalar()) {
        (Some(x), Some(y)) => {
            let is_close = x.kind() == y.kind() && Closeness::of(x.default_dtype()).holds(y, x);
            if is_close { None } else { Difference::of(format!("{place} is {y} instead of {x}")) }
        }
        _ if a.kind_name() != b.kind_name() => {
            Difference::of(format!("{place} is a {} instead of a {}", b.kind_name(), a.kind_name()))
        }
        // Neither numbers nor tensors: the sort is the same, and so is how it prints where the value is.
        _ if format!("{a:?}") == format!("{b:?}") => None,
        _ => Difference::of(format!("{place} is {b:?} instead of {a:?}")),
    })
}

fn of_tensors(executor: Executor<'_>, place: &str, before: &Tensor, after: &Tensor) -> Result<Option<Difference>> {
    if before.sizes() != after.sizes() {
        return Ok(Difference::of(format!(
            "{place} has the sizes {:?} instead of {:?}",
            after.sizes(),
            before.sizes()
        )));
    }
    if before.dtype() != after.dtype() {
        let (new, old) = (after.dtype().name(), before.dtype().name());
        return Ok(Difference::of(format!("{place} is of {new} instead of {old}")));
    }
    let closeness = Closeness::of(before.dtype());
    let (old, new) = (scalars(executor, before)?, scalars(executor, after)?);
    let mut differing = 0;
    let (mut most, mut most_relative) = ((0.0, 0), (0.0, 0));
    for (at, (&x, &y)) in old.iter().zip(&new).enumerate() {
        if closeness.holds(y, x) {
            continue;
        }
        differing += 1;
        // What is no number is further away than any that is.
        let distance = Some(distance(y, x)).filter(|it| !it.is_nan()).unwrap_or(f64::INFINITY);
        let relative = distance / size(x);
        if distance > most.0 {
            most = (distance, at);
        }
        if relative > most_relative.0 || relative.is_nan() {
            most_relative = (relative, at);
        }
    }
    if differing == 0 {
        return Ok(None);
    }
    let index = |at: usize| index_of(at, before.sizes());
    let at = most.1;
    Ok(Some(Difference {
        what: format!("{place}{} is {} instead of {}", index(at), new[at], old[at]),
        notes: vec![
            format!("{differing} of {} elements differ", old.len()),
            format!(
                "the greatest absolute difference is {:?} at {} (up to {:?} is allowed)",
                most.0,
                index(at),
                closeness.atol
            ),
            format!(
                "the greatest relative difference is {:?} at {} (up to {:?} is allowed)",
                most_relative.0,
                index(most_relative.1),
                closeness.rtol
            ),
        ],
    }))
}

/// The elements, in order. Ints stay ints, so that they are compared exactly.
fn scalars(executor: Executor<'_>, tensor: &Tensor) -> Result<Vec<Scalar>> {
    let to = |dtype: DType| converted(executor, tensor.clone(), dtype)?.contiguous();
    Ok(match tensor.dtype().kind() {
        DTypeKind::Bool | DTypeKind::Int => to(DType::Int64)?.to_vec::<i64>()?.into_iter().map(Scalar::Int).collect(),
        DTypeKind::Float => to(DType::Float64)?.to_vec::<f64>()?.into_iter().map(Scalar::Float).collect(),
        DTypeKind::Complex => to(DType::Complex128)?.to_vec::<[f64; 2]>()?.into_iter().map(complex).collect(),
    })
}

fn complex([re, im]: [f64; 2]) -> Scalar {
    Scalar::Complex(Complex64 { re, im })
}

fn index_of(mut at: usize, sizes: &[usize]) -> String {
    let mut res = vec![0; sizes.len()];
    for (dim, size) in sizes.iter().enumerate().rev() {
        res[dim] = at % size;
        at /= size;
    }
    format!("{res:?}")
}

/// How near numbers must be: `|new - old| <= atol + rtol * |old|`.
struct Closeness {
    rtol: f64,
    atol: f64,
}

impl Closeness {
    fn of(dtype: DType) -> Self {
        let (rtol, atol) = Tol::Default.for_dtype(dtype);
        Closeness { rtol, atol }
    }

    fn holds(&self, new: Scalar, old: Scalar) -> bool {
        if new == old || (is_nan(new) && is_nan(old)) {
            return true;
        }
        if let (Scalar::Int(_), Scalar::Int(_)) = (new, old) {
            return false;
        }
        let is_finite = size(old).is_finite() && size(new).is_finite();
        is_finite && distance(new, old) <= self.atol + self.rtol * size(old)
    }
}

fn is_nan(it: Scalar) -> bool {
    let it = it.to_complex();
    it.re.is_nan() || it.im.is_nan()
}

fn size(it: Scalar) -> f64 {
    let it = it.to_complex();
    it.re.hypot(it.im)
}

fn distance(a: Scalar, b: Scalar) -> f64 {
    let (a, b) = (a.to_complex(), b.to_complex());
    (a.re - b.re).hypot(a.im - b.im)
}
