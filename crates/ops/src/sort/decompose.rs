//! Operators that look at the order of elements, or for some among others.

use crate::core::decompositions;
use crate::core::decompositions::{Call, choose, dim, size_list, to_dtype};
use crate::{Cx, Traced, Value, normalize_dim};
use tracefx_core::{DType, Device, Layout, Result};
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

/// Every element beside every other one, or a search among the others where they are many.
pub(crate) fn isin(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (elements, tests, inverted) = (&args.values[0], &args.values[1], args.bool(3)?);
    let (sizes_of, tests_of) = (cx.meta_of(elements).sizes.clone(), cx.meta_of(tests).sizes.clone());
    let (n_elements, n_tests): (SymInt, SymInt) = (sizes_of.iter().product(), tests_of.iter().product());
    let is_few = n_tests
        .as_int()
        .zip(n_elements.as_int())
        .is_some_and(|(tests, elements)| (tests as f64) < 10.0 * (elements as f64).powf(0.145));
    if n_elements == 0 || n_tests == 0 {
        return Err(args.unsupported("the decomposition of isin takes elements to test, and some to test for"));
    }
    if !is_few {
        return isin_sorted(cx, args, inverted);
    }
    let shape = [sizes_of, vec![SymInt::ONE; tests_of.len()]].concat();
    let column = if tests_of.is_empty() { elements.clone() } else { cx.aten("view", [elements, &size_list(&shape)])? };
    let mut res = cx.aten("eq.Tensor", [&column, tests])?;
    if !tests_of.is_empty() {
        let dims: Vec<i64> = (1..=tests_of.len() as i64).map(|it| -it).rev().collect();
        res = cx.aten("any.dims", [&res, &Value::ints(&dims)])?;
    }
    Ok(vec![if inverted { cx.aten("logical_not", [&res])? } else { res }])
}

/// Where each element would stand among the sorted others, and whether it stands there already.
fn isin_sorted(cx: &mut Cx<'_>, args: &Call<'_>, inverted: bool) -> Results {
    let shape = size_list(&cx.meta(*args.tensor(0)?).sizes.clone());
    let elements = cx.aten("flatten.using_ints", [&args.values[0]])?;
    let tests = cx.aten("flatten.using_ints", [&args.values[1]])?;
    let sorted = cx.aten("sort", [&tests])?;
    let n = cx.meta_of(&sorted).sizes[0].clone();
    let place = cx.aten("searchsorted.Tensor", [&sorted, &elements])?;
    let is_inside = cx.aten("lt.Scalar", [&place, &Value::Int(n)])?;
    let place = choose(cx, &is_inside, &place, &Value::int(0))?;
    let found = cx.aten("index.Tensor", [&sorted, &Value::List(vec![place])])?;
    let mut same = cx.aten("eq.Tensor", [&found, &elements])?;
    if inverted {
        same = cx.aten("logical_not", [&same])?;
    }
    Ok(vec![cx.aten("reshape", [&same, &shape])?])
}

/// One number: a comparison, where it is what is tested for.
pub(crate) fn isin_scalar(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (elements, test, inverted) = (&args.values[0], &args.values[1], args.bool(3)?);
    if let Value::Tensor(_) = elements {
        return Ok(vec![cx.aten(if inverted { "ne.Scalar" } else { "eq.Scalar" }, [elements, test])?]);
    }
    let dtype = decompositions::with_number(cx.meta_of(test), elements);
    let element = decompositions::scalar_tensor(cx, elements, dtype)?;
    let kwargs = [("assume_unique", args.values[2].clone()), ("invert", args.values[3].clone())];
    Ok(vec![cx.aten_with("isin.Tensor_Tensor", [&element, test], &kwargs)?])
}

/// The two elements between which the rank of each quantile lies, and what lies between them.
pub(crate) fn quantile(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let meta = cx.meta(*args.tensor(0)?).clone();
    let rank = meta.sizes.len();
    let ignores_nan = args.op.schema.name == "nanquantile";
    let mode = args.str(4)?.to_string();
    let at = match args.opt_int(2)? {
        Some(dim) if rank > 0 => Some(normalize_dim(args, dim, rank)?),
        _ => None,
    };
    let mut shape = match (at, args.bool(3)?) {
        (Some(at), true) => {
            meta.sizes.iter().enumerate().map(|(i, n)| if i == at { SymInt::ONE } else { n.clone() }).collect()
        }
        (Some(at), false) => meta.sizes.iter().enumerate().filter(|it| it.0 != at).map(|it| it.1.clone()).collect(),
        (None, true) => vec![SymInt::ONE; rank],
        (None, false) => Vec::new(),
    };
    let mut this = args.values[0].clone();
    if at.is_none() {
        this = cx.aten("flatten.using_ints", [&this])?;
    }
    let q = match &args.values[1] {
        number @ Value::Float(_) => decompositions::scalar_tensor(cx, number, meta.dtype)?,
        tensor => tensor.clone(),
    };
    if let Some(at) = at.filter(|at| at + 1 != rank) {
        this = cx.aten("unsqueeze", [&this, &Value::int(-1)])?;
        this = cx.aten("transpose.int", [&this, &dim(at), &Value::int(-1)])?;
    }
    let sorted = cx.aten("sort", [&this])?;
    let is_single = cx.meta_of(&q).sizes.is_empty();
    // The sizes of the result without those of the quantiles, and what is sorted last.
    let n = cx.meta_of(&sorted).sizes[cx.meta_of(&sorted).sizes.len() - 1].clone();
    shape.push(n.clone());
    let sorted = cx.aten("view", [&sorted, &size_list(&shape)])?;
    let last = Value::int(-1);
    let is_nan = cx.aten("isnan", [&sorted])?;
    let mut ranks = if ignores_nan {
        let is_number = cx.aten("logical_not", [&is_nan])?;
        let count = cx.aten("sum.dim_IntList", [&is_number, &Value::ints(&[-1]), &Value::Bool(true)])?;
        let highest = cx.aten("sub.Tensor", [&count, &Value::int(1)])?;
        let ranks = cx.aten("mul.Tensor", [&q, &highest])?;
        let is_none = cx.aten("lt.Scalar", [&ranks, &Value::int(0)])?;
        cx.aten("masked_fill.Scalar", [&ranks, &is_none, &Value::int(0)])?
    } else {
        let Some(highest) = n.as_int().map(|it| it - 1) else {
            return Err(args.unsupported("the decomposition of quantile takes sizes that are known"));
        };
        let ranks = cx.aten("mul.Scalar", [&q, &Value::int(highest)])?;
        let has_nan = cx.aten("any.dim", [&is_nan, &last, &Value::Bool(true)])?;
        let both = cx.aten("broadcast_tensors", [&Value::List(vec![ranks, has_nan])])?;
        let Value::List(both) = both else { return Err(args.invalid("broadcast_tensors gives a list")) };
        cx.aten("masked_fill.Scalar", [&both[0], &both[1], &Value::Float(highest as f64)])?
    };
    ranks = match mode.as_str() {
        "lower" => cx.aten("floor", [&ranks])?,
        "higher" => cx.aten("ceil", [&ranks])?,
        "nearest" => cx.aten("round", [&ranks])?,
        _ => ranks,
    };
    let below = to_index(cx, &ranks)?;
    let mut res = cx.aten("gather", [&sorted, &last, &below])?;
    if mode == "linear" || mode == "midpoint" {
        let weight = match mode.as_str() {
            "midpoint" => cx.aten("full_like", [&ranks, &Value::Float(0.5)])?,
            _ => cx.aten("sub.Tensor", [&ranks, &below])?,
        };
        let above = cx.aten("ceil", [&ranks])?;
        let above = to_index(cx, &above)?;
        let above = cx.aten("gather", [&sorted, &last, &above])?;
        res = cx.aten("lerp.Tensor", [&res, &above, &weight])?;
    }
    if !is_single {
        res = cx.aten("unsqueeze", [&res, &Value::int(0)])?;
        res = cx.aten("transpose.int", [&res, &Value::int(0), &last])?;
    }
    Ok(vec![cx.aten("squeeze.dim", [&res, &last])?])
}

/// As C++ converts to a type of tensors: with the layout and the device.
fn to_index(cx: &mut Cx<'_>, value: &Traced) -> Result<Traced> {
    let options = [
        ("dtype", Value::DType(DType::Int64)),
        ("layout", Value::Layout(Layout::Strided)),
        ("device", Value::Device(Device::cpu())),
    ];
    cx.aten_with("_to_copy", [value], &options)
}

/// How far other classes come near the right ones of each row, of which minus one ends the list.
pub(crate) fn multilabel_margin_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let shape = size_list(&cx.meta(*args.tensor(1)?).sizes.clone());
    let input = cx.aten("atleast_2d", [&args.values[0]])?;
    let target = cx.aten("atleast_2d", [&args.values[1]])?;
    let meta = cx.meta_of(&input).clone();
    let Some(n) = meta.sizes[1].as_int().filter(|it| *it > 0 && meta.dtype.is_float()) else {
        return Err(args.unsupported("the decomposition of multilabel_margin_loss takes rows of known sizes"));
    };
    let (n, last) = (Value::int(n), Value::int(-1));
    let numbers = decompositions::arange(cx, &meta.sizes[1], None)?;
    let is_end = cx.aten("eq.Scalar", [&target, &last])?;
    let ends = choose(cx, &is_end, &numbers, &n)?;
    let end = cx.aten("amin", [&ends, &Value::ints(&[-1]), &Value::Bool(true)])?;
    let is_listed = cx.aten("lt.Tensor", [&numbers, &end])?;
    let safe = choose(cx, &is_listed, &target, &Value::int(0))?;
    let right = cx.aten("gather", [&input, &last, &safe])?;
    let listed = choose(cx, &is_listed, &target, &last)?;
    let listed = cx.aten("unsqueeze", [&listed, &last])?;
    let is_target = cx.aten("eq.Tensor", [&numbers, &listed])?;
    let is_target = cx.aten("any.dim", [&is_target, &Value::int(1)])?;
    let right = cx.aten("numpy_T", [&right])?;
    let right = cx.aten("unsqueeze", [&right, &last])?;
    let distance = cx.aten("sub.Tensor", [&Value::Float(1.0), &right])?;
    let distance = cx.aten("add.Tensor", [&distance, &input])?;
    let loss = cx.aten("clamp_min", [&distance, &Value::int(0)])?;
    let loss = cx.aten("div.Tensor", [&loss, &n])?;
    let loss = choose(cx, &is_target, &Value::int(0), &loss)?;
    let dims = Value::ints(&[0, -1]);
    let loss = match args.int(2)? {
        1 => {
            let rows = cx.aten("sum.dim_IntList", [&loss, &dims])?;
            cx.aten("mean", [&rows])?
        }
        2 => cx.aten("sum", [&loss])?,
        _ => cx.aten("sum.dim_IntList", [&loss, &dims])?,
    };
    let is_target = to_dtype(cx, is_target, meta.dtype)?;
    Ok(vec![loss, cx.aten("reshape", [&is_target, &shape])?])
}
