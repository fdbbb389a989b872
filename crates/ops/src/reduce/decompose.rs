//! Operators that reduce dimensions to one value.

use crate::core::decompositions::{Call, computing, fill_places, to_dtype};
use crate::{Cx, Traced, Value};
use tracefx_core::{DType, DTypeKind, Result};

type Results = Result<Vec<Traced>>;

/// The keyword argument `dtype`, where it is given.
fn dtype_kwarg(args: &Call<'_>) -> Vec<(&'static str, Traced)> {
    let given = args.position("dtype").map(|at| args.values[at].clone()).filter(|it| *it != Value::None);
    given.map(|it| ("dtype", it)).into_iter().collect()
}

pub(crate) fn sum(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let kwargs = dtype_kwarg(args);
    Ok(vec![cx.aten_with("sum.dim_IntList", [&args.values[0], &Value::List(Vec::new())], &kwargs)?])
}

/// Not any that is not.
pub(crate) fn all(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let is_byte = cx.meta(*args.tensor(0)?).dtype == DType::UInt8;
    let not = cx.aten("logical_not", [&args.values[0]])?;
    let any = match (args.op.schema.overload.as_str(), &args.values[1..]) {
        ("dim", [dim, keepdim]) => cx.aten("any.dim", [&not, dim, keepdim])?,
        ("dims", [dims, keepdim]) => cx.aten("any.dims", [&not, dims, keepdim])?,
        (_, _) => cx.aten("any.dims", [&not])?,
    };
    let res = cx.aten("logical_not", [&any])?;
    // The answer about bytes is a byte.
    Ok(vec![if is_byte { to_dtype(cx, res, DType::UInt8)? } else { res }])
}

pub(crate) fn aminmax(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (x, keepdim) = (&args.values[0], &args.values[2]);
    if args.is_none(1) {
        return if args.bool(2)? {
            let dims = Value::List(Vec::new());
            Ok(vec![cx.aten("amin", [x, &dims, keepdim])?, cx.aten("amax", [x, &dims, keepdim])?])
        } else {
            Ok(vec![cx.aten("amin", [x])?, cx.aten("amax", [x])?])
        };
    }
    let dims = if cx.meta_of(x).sizes.is_empty() { Value::List(Vec::new()) } else { Value::ints(&[args.int(1)?]) };
    Ok(vec![cx.aten("amin", [x, &dims, keepdim])?, cx.aten("amax", [x, &dims, keepdim])?])
}

pub(crate) fn count_nonzero(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let counts = cx.aten("ne.Scalar", [&args.values[0], &Value::int(0)])?;
    let dims = match args.values.get(1) {
        None | Some(Value::None) => Value::None,
        Some(list @ Value::List(_)) => list.clone(),
        Some(dim) => Value::List(vec![dim.clone()]),
    };
    Ok(vec![cx.aten("sum.dim_IntList", [&counts, &dims])?])
}

fn check_vectors(cx: &Cx<'_>, args: &Call<'_>) -> Result<()> {
    let (a, b) = (cx.meta(*args.tensor(0)?), cx.meta(*args.tensor(1)?));
    if a.sizes.len() != 1 || b.sizes.len() != 1 {
        let (a, b) = (a.sizes.len(), b.sizes.len());
        return Err(args.bad_shape(format!("1D tensors expected, but got {a}D and {b}D tensors")));
    }
    if a.dtype != b.dtype {
        let what = format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            a.dtype.cpp_name(),
            b.dtype.cpp_name()
        );
        return Err(args.invalid(what));
    }
    if a.sizes != b.sizes {
        let (a, b) = (&a.sizes[0], &b.sizes[0]);
        let what = format!(
            "inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the same number of elements, but \
                 got {a} and {b} elements respectively"
        );
        return Err(args.bad_shape(what));
    }
    Ok(())
}

/// The sum of products of two vectors, in the dtype of both.
fn sum_of_products(cx: &mut Cx<'_>, a: &Traced, b: &Traced) -> Result<Traced> {
    let dtype = cx.meta_of(a).dtype;
    let product = cx.aten("mul.Tensor", [a, b])?;
    let kwargs = if dtype.is_int() { vec![("dtype", Value::DType(dtype))] } else { Vec::new() };
    cx.aten_with("sum.dim_IntList", [&product, &Value::List(Vec::new())], &kwargs)
}

pub(crate) fn dot(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    check_vectors(cx, args)?;
    Ok(vec![sum_of_products(cx, &args.values[0], &args.values[1])?])
}

pub(crate) fn vdot(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    check_vectors(cx, args)?;
    let mut a = args.values[0].clone();
    if cx.meta_of(&a).dtype.is_complex() {
        a = cx.aten("conj_physical", [&a])?;
    }
    Ok(vec![sum_of_products(cx, &a, &args.values[1])?])
}

pub(crate) fn mv(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (matrix, vector) = (cx.meta(*args.tensor(0)?), cx.meta(*args.tensor(1)?));
    let dtype = matrix.dtype;
    if matrix.sizes.len() != 2 || vector.sizes.len() != 1 {
        let (m, v) = (matrix.sizes.len(), vector.sizes.len());
        return Err(args.bad_shape(format!("matrix @ vector expected, got {m}, {v}")));
    }
    if matrix.sizes[1] != vector.sizes[0] {
        let what =
            format!("size mismatch, got input ({}x{}), vec ({})", matrix.sizes[0], matrix.sizes[1], vector.sizes[0]);
        return Err(args.bad_shape(what));
    }
    if dtype != vector.dtype {
        let what = format!(
            "expected m1 and m2 to have the same dtype, but got: {} != {}",
            dtype.cpp_name(),
            vector.dtype.cpp_name()
        );
        return Err(args.invalid(what));
    }
    let product = cx.aten("mul.Tensor", [&args.values[0], &args.values[1]])?;
    let kwargs = if dtype.is_int() { vec![("dtype", Value::DType(dtype))] } else { Vec::new() };
    Ok(vec![cx.aten_with("sum.dim_IntList", [&product, &Value::ints(&[1])], &kwargs)?])
}

/// The greatest exponent is taken out first, unless it is infinite.
pub(crate) fn logsumexp(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (dims, keepdim) = (&args.values[1], args.bool(2)?);
    let mut x = args.values[0].clone();
    let mut dtype = cx.meta_of(&x).dtype;
    if dtype.is_complex() {
        return Err(args.unsupported("the decomposition of logsumexp is not implemented for complex numbers"));
    }
    if !dtype.is_float() {
        dtype = DType::Float32;
    }
    x = to_dtype(cx, x, computing(dtype))?;
    let is_empty = cx.meta_of(&x).sizes.iter().any(|it| *it == 0);
    let res = if is_empty {
        let exp = cx.aten("exp", [&x])?;
        let sum = cx.aten("sum.dim_IntList", [&exp, dims, &Value::Bool(keepdim)])?;
        cx.aten("log", [&sum])?
    } else {
        let high = cx.aten("amax", [&x, dims, &Value::Bool(true)])?;
        let abs = cx.aten("abs", [&high])?;
        let is_infinite = cx.aten("eq.Scalar", [&abs, &Value::Float(f64::INFINITY)])?;
        let high = fill_places(cx, &high, &is_infinite, &Value::Float(0.0))?;
        let base = if keepdim {
            high.clone()
        } else if args.list(1)?.is_empty() {
            cx.aten("squeeze", [&high])?
        } else {
            cx.aten("squeeze.dims", [&high, dims])?
        };
        let rest = cx.aten("sub.Tensor", [&x, &high])?;
        let exp = cx.aten("exp", [&rest])?;
        let sum = cx.aten("sum.dim_IntList", [&exp, dims, &Value::Bool(keepdim)])?;
        let log = cx.aten("log", [&sum])?;
        cx.aten("add.Tensor", [&log, &base])?
    };
    Ok(vec![to_dtype(cx, res, dtype)?])
}

pub(crate) fn nansum(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let x = &args.values[0];
    if cx.meta_of(x).dtype.is_complex() {
        return Err(args.invalid("nansum does not support complex inputs"));
    }
    let is_nan = cx.aten("isnan", [x])?;
    let x = fill_places(cx, x, &is_nan, &Value::int(0))?;
    let kwargs = dtype_kwarg(args);
    Ok(vec![cx.aten_with("sum.dim_IntList", [&x, &args.values[1], &args.values[2]], &kwargs)?])
}

/// The norm of vectors, of order two where none is given.
pub(crate) fn norm(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let given = |name: &str| args.position(name).map(|at| args.values[at].clone()).filter(|it| *it != Value::None);
    let order = given("p").unwrap_or(Value::int(2));
    let dims = given("dim").unwrap_or(Value::None);
    let keepdim = given("keepdim").unwrap_or(Value::Bool(false));
    let kwargs = dtype_kwarg(args);
    Ok(vec![cx.aten_with("linalg_vector_norm", [&args.values[0], &order, &dims, &keepdim], &kwargs)?])
}

/// The overloads of `std` and `var` that ask whether the deviations are unbiased.
fn deviations(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Results {
    let (dims, unbiased, keepdim) = match &args.values[1..] {
        [unbiased] => (Value::None, unbiased, Value::Bool(false)),
        [dims, unbiased, keepdim] => (dims.clone(), unbiased, keepdim.clone()),
        _ => return Err(args.invalid("unexpected arguments")),
    };
    let correction = Value::int(i64::from(*unbiased == Value::Bool(true)));
    let kwargs = [("correction", correction), ("keepdim", keepdim)];
    cx.aten_all(&format!("{op}.correction"), [&args.values[0], &dims], &kwargs)
}

pub(crate) fn std(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    deviations(cx, args, "std")
}

pub(crate) fn std_mean(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    deviations(cx, args, "std_mean")
}

pub(crate) fn var(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    deviations(cx, args, "var")
}

pub(crate) fn var_mean(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    deviations(cx, args, "var_mean")
}

/// The root of the variance.
fn root_of(cx: &mut Cx<'_>, args: &Call<'_>, op: &str) -> Results {
    let x = to_dtype(cx, args.values[0].clone(), computing(cx.meta(*args.tensor(0)?).dtype))?;
    let dtype = cx.meta(*args.tensor(0)?).dtype;
    // As in PyTorch, the correction is a float from here on.
    let correction = match args.opt_scalar(2)? {
        Some(it) => Value::Float(it.to_f64()),
        None => Value::Float(1.0),
    };
    let kwargs = [("correction", correction), ("keepdim", args.values[3].clone())];
    let mut results = cx.aten_all(&format!("{op}.correction"), [&x, &args.values[1]], &kwargs)?;
    results[0] = cx.aten("sqrt", [&results[0]])?;
    if cx.meta_of(&results[0]).dtype == computing(dtype) {
        results = results.into_iter().map(|it| to_dtype(cx, it, dtype)).collect::<Result<_>>()?;
    }
    Ok(results)
}

pub(crate) fn std_correction(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    root_of(cx, args, "var")
}

pub(crate) fn std_mean_correction(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    root_of(cx, args, "var_mean")
}

pub(crate) fn baddbmm(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (beta, alpha) = (args.scalar(3)?.to_f64(), args.scalar(4)?.to_f64());
    let own = cx.meta(*args.tensor(1)?).dtype;
    let wide = computing(own);
    let mut values = Vec::new();
    for value in &args.values[..3] {
        values.push(to_dtype(cx, value.clone(), wide)?);
    }
    // PyTorch cuts numbers for ints.
    let number = |index: usize, it: f64| match own.kind() {
        DTypeKind::Bool | DTypeKind::Int => Value::int(it as i64),
        DTypeKind::Float | DTypeKind::Complex => args.values[index].clone(),
    };
    let mut res = cx.aten("bmm", [&values[1], &values[2]])?;
    if alpha != 1.0 {
        res = cx.aten("mul.Tensor", [&res, &number(4, alpha)])?;
    }
    if beta != 0.0 {
        let this = if beta == 1.0 { values[0].clone() } else { cx.aten("mul.Tensor", [&values[0], &number(3, beta)])? };
        res = cx.aten("add.Tensor", [&this, &res])?;
    }
    Ok(vec![to_dtype(cx, res, own)?])
}
