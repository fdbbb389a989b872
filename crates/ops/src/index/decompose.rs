//! Operators that pick elements by their positions.

use crate::core::decompositions;
use crate::core::decompositions::{Call, arange, choose, dim, fill_places, size_list, to_dtype};
use crate::{Cx, Traced, Value, normalize_dim};
use tracefx_core::{DType, Result, Scalar};
use tracefx_sym::SymInt;

type Results = Result<Vec<Traced>>;

/// Every class number is asked for, beside those that there are.
pub(crate) fn one_hot(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (this, n_classes) = (&args.values[0], args.sym_int(1)?.clone());
    let meta = cx.meta_of(this);
    if meta.dtype != DType::Int64 || n_classes.as_int().is_some_and(|it| it < 1) {
        return Err(args.unsupported("the decomposition of one_hot takes int64 and a number of classes"));
    }
    if meta.sizes.iter().any(|it| *it == 0) {
        return Err(args.unsupported("the decomposition of one_hot takes elements"));
    }
    for (op, bound, what) in [
        ("ge.Scalar", SymInt::ZERO, "one_hot: Class values must be non-negative."),
        ("lt.Scalar", n_classes.clone(), "one_hot: Class values must be smaller than num_classes."),
    ] {
        let is_inside = cx.aten(op, [this, &Value::Int(bound)])?;
        let all = cx.aten("all", [&is_inside])?;
        cx.aten_all("_assert_async.msg", [&all, &Value::Str(what.into())], &[])?;
    }
    let rows = cx.aten("unsqueeze", [this, &Value::int(-1)])?;
    let classes = arange(cx, &n_classes, Some(DType::Int64))?;
    let same = cx.aten("eq.Tensor", [&rows, &classes])?;
    Ok(vec![to_dtype(cx, same, DType::Int64)?])
}

/// Products of the components that follow each other, and of those that precede.
pub(crate) fn cross(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (a, b) = (&args.values[0], &args.values[1]);
    let (a_sizes, b_sizes) = (cx.meta_of(a).sizes.clone(), cx.meta_of(b).sizes.clone());
    let at = normalize_dim(args, args.int(2)?, a_sizes.len())?;
    let is_three = |sizes: &[SymInt]| sizes.get(at).is_some_and(|it| *it == 3);
    if a_sizes.len() != b_sizes.len() || !is_three(&a_sizes) || !is_three(&b_sizes) {
        let what = format!("linalg.cross: inputs dimension {} must have length 3", args.int(2)?);
        return Err(args.bad_shape(what));
    }
    let whole = crate::broadcast(args, &a_sizes, &b_sizes)?;
    let a = if a_sizes == whole { a.clone() } else { cx.aten("expand", [a, &size_list(&whole)])? };
    let b = if b_sizes == whole { b.clone() } else { cx.aten("expand", [b, &size_list(&whole)])? };
    let numbers = arange(cx, &SymInt::from(3), None)?;
    let turned = |cx: &mut Cx<'_>, it: &Traced, by: i64| {
        let moved = cx.aten("add.Tensor", [&numbers, &Value::int(by)])?;
        let index = cx.aten("remainder.Scalar", [&moved, &Value::int(3)])?;
        cx.aten("index_select", [it, &dim(at), &index])
    };
    let (first, second) = (turned(cx, &a, 1)?, turned(cx, &b, 2)?);
    let plus = cx.aten("mul.Tensor", [&first, &second])?;
    let (first, second) = (turned(cx, &a, 2)?, turned(cx, &b, 1)?);
    let minus = cx.aten("mul.Tensor", [&first, &second])?;
    Ok(vec![cx.aten("sub.Tensor", [&plus, &minus])?])
}

/// The losses of classes, weighted, and the weight of all of them.
pub(crate) fn nll_loss_forward(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [this, target, weight, reduction, ignored] = &args.values[..] else {
        return Err(args.invalid("nll_loss takes five arguments"));
    };
    let (meta, targets) = (cx.meta_of(this).clone(), cx.meta_of(target).clone());
    let (rank, target_rank) = (meta.sizes.len(), targets.sizes.len());
    if rank == 0 || target_rank + 1 != rank || targets.dtype != DType::Int64 {
        return Err(args.unsupported("the decomposition of nll_loss takes rows of numbers and a class for each"));
    }
    if meta.sizes[0] != *targets.sizes.first().unwrap_or(&meta.sizes[0]) || meta.sizes.iter().any(|it| *it == 0) {
        return Err(args.unsupported("the decomposition of nll_loss takes as many classes as rows"));
    }
    let classes = usize::from(rank > 1);
    let at = dim(classes);
    let mut weights = vec![SymInt::ONE; rank];
    weights[classes] = meta.sizes[classes].clone();
    let weights = size_list(&weights);
    let mut scores = this.clone();
    if *weight != Value::None {
        let weight = if rank > 1 { cx.aten("view", [weight, &weights])? } else { weight.clone() };
        scores = cx.aten("mul.Tensor", [&scores, &weight])?;
    }
    let is_used = cx.aten("ne.Scalar", [target, ignored])?;
    let safe = choose(cx, &is_used, target, &Value::int(0))?;
    let index = cx.aten("unsqueeze", [&safe, &at])?;
    let picked = cx.aten("gather", [&scores, &at, &index])?;
    let picked = cx.aten("squeeze.dim", [&picked, &at])?;
    let losses = cx.aten("neg", [&picked])?;
    let is_used = cx.aten("ne.Scalar", [target, ignored])?;
    let losses = choose(cx, &is_used, &losses, &Value::int(0))?;
    if *reduction == Value::int(0) && rank > 1 {
        let options = decompositions::options(args, meta.dtype, &meta.device);
        let total = cx.aten_with("full", [&Value::List(Vec::new()), &Value::Float(0.0)], &options)?;
        return Ok(vec![losses, total]);
    }
    let total = if *weight == Value::None {
        let is_used = cx.aten("ne.Scalar", [target, ignored])?;
        let n_used = cx.aten("sum", [&is_used])?;
        to_dtype(cx, n_used, meta.dtype)?
    } else {
        let weight = if rank > 1 { cx.aten("view", [weight, &weights])? } else { weight.clone() };
        let weight = cx.aten("expand", [&weight, &size_list(&meta.sizes)])?;
        let weight = cx.aten("gather", [&weight, &at, &index])?;
        let weight = cx.aten("squeeze.dim", [&weight, &at])?;
        let weight = fill_unused(cx, &weight, &is_used)?;
        cx.aten("sum", [&weight])?
    };
    let sum = cx.aten("sum", [&losses])?;
    Ok(vec![if *reduction == Value::int(1) { cx.aten("div.Tensor", [&sum, &total])? } else { sum }, total])
}

fn fill_unused(cx: &mut Cx<'_>, weight: &Traced, is_used: &Traced) -> Result<Traced> {
    let is_unused = cx.aten("logical_not", [is_used])?;
    fill_places(cx, weight, &is_unused, &Value::int(0))
}

/// Pieces of a row beside zeros, and the rows below each other.
pub(crate) fn block_diag(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let mut blocks = Vec::new();
    let mut dtype = None;
    for tensor in args.tensors(0)? {
        let meta = cx.meta(*tensor).clone();
        dtype = Some(dtype.map_or(meta.dtype, |it| crate::promote_types(it, meta.dtype)));
        let block = match meta.sizes.len() {
            0 => cx.aten("view", [&Value::Tensor(*tensor), &Value::ints(&[1, 1])])?,
            1 => cx.aten("unsqueeze", [&Value::Tensor(*tensor), &Value::int(0)])?,
            2 => Value::Tensor(*tensor),
            n => {
                let what = format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has {n} dimensions"
                );
                return Err(args.bad_shape(what));
            }
        };
        blocks.push(block);
    }
    let Some(dtype) = dtype else { return Err(args.unsupported("the decomposition of block_diag takes tensors")) };
    let n_columns: Vec<SymInt> = blocks.iter().map(|it| cx.meta_of(it).sizes[1].clone()).collect();
    let mut rows = Vec::new();
    for (at, block) in blocks.into_iter().enumerate() {
        let n_rows = cx.meta_of(&block).sizes[0].clone();
        let device = cx.meta_of(&block).device.clone();
        let zeros = |cx: &mut Cx<'_>, columns: &[SymInt]| {
            let n: SymInt = columns.iter().sum();
            let options = decompositions::options(args, dtype, &device);
            cx.aten_with("full", [&size_list(&[n_rows.clone(), n]), &Value::int(0)], &options)
        };
        let before = zeros(cx, &n_columns[..at])?;
        let after = zeros(cx, &n_columns[at + 1..])?;
        rows.push(cx.aten("cat", [&Value::List(vec![before, block, after]), &Value::int(1)])?);
    }
    Ok(vec![cx.aten("cat", [&Value::List(rows)])?])
}

/// The positions in an image or a volume, flat over all of them, to which elements go.
pub(crate) fn max_unpool(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let (this, indices) = (&args.values[0], &args.values[1]);
    let meta = cx.meta_of(this).clone();
    let (rank, size) = (meta.sizes.len(), args.sym_ints(2)?);
    if !(1..=2).contains(&rank.saturating_sub(size.len())) || meta.sizes != cx.meta_of(indices).sizes {
        return Err(args.unsupported("the decomposition of max_unpool takes images and a position for each element"));
    }
    let (lead, _) = meta.sizes.split_at(rank - size.len());
    let area: SymInt = size.iter().product();
    let n_images: SymInt = lead.iter().product();
    let numbers = arange(cx, &n_images, None)?;
    let shape = [lead, &vec![SymInt::ONE; size.len()]].concat();
    let numbers = cx.aten("view", [&numbers, &size_list(&shape)])?;
    let starts = cx.aten("mul.Tensor", [&numbers, &Value::Int(area)])?;
    let places = cx.aten("add.Tensor", [indices, &starts])?;
    let places = cx.aten("reshape", [&places, &Value::ints(&[-1])])?;
    let whole = size_list(&[lead, &size].concat());
    let options = decompositions::options(args, meta.dtype, &meta.device);
    let zeros = cx.aten_with("full", [&whole, &Value::int(0)], &options)?;
    let flat = cx.aten("reshape", [&zeros, &Value::ints(&[-1])])?;
    let elements = cx.aten("reshape", [this, &Value::ints(&[-1])])?;
    let flat = cx.aten("index_put", [&flat, &Value::List(vec![places]), &elements])?;
    Ok(vec![cx.aten("view", [&flat, &whole])?])
}

/// The margins by which other classes come near the right one.
pub(crate) fn multi_margin_loss(cx: &mut Cx<'_>, args: &Call<'_>) -> Results {
    let [this, target, p, margin, weight, reduction] = &args.values[..] else {
        return Err(args.invalid("multi_margin_loss takes six arguments"));
    };
    let meta = cx.meta_of(this).clone();
    if meta.sizes.len() != 2 || meta.sizes.iter().any(|it| *it == 0) || cx.meta_of(target).sizes.len() != 1 {
        return Err(
            args.unsupported("the decomposition of multi_margin_loss takes rows of numbers and a class for each")
        );
    }
    let power = p.as_scalar().map_or(0.0, Scalar::to_f64);
    if power != 1.0 && power != 2.0 {
        return Err(args.invalid("multi_margin_loss: only p == 1 and p == 2 supported"));
    }
    let classes = cx.aten("unsqueeze", [target, &Value::int(1)])?;
    let right = cx.aten("gather", [this, &Value::int(1), &classes])?;
    let distance = cx.aten("sub.Tensor", [margin, &right])?;
    let distance = cx.aten("add.Tensor", [&distance, this])?;
    let mut loss = cx.aten("clamp_min", [&distance, &Value::int(0)])?;
    if power == 2.0 {
        loss = cx.aten("mul.Tensor", [&loss, &loss])?;
    }
    if *weight != Value::None {
        let weight = cx.aten("index.Tensor", [weight, &Value::List(vec![target.clone()])])?;
        let weight = cx.aten("unsqueeze", [&weight, &Value::int(1)])?;
        loss = cx.aten("mul.Tensor", [&loss, &weight])?;
    }
    let numbers = arange(cx, &meta.sizes[1], None)?;
    let is_other = cx.aten("ne.Tensor", [&numbers, &classes])?;
    let loss = choose(cx, &is_other, &loss, &Value::int(0))?;
    Ok(vec![match reduction.as_scalar() {
        Some(Scalar::Int(1)) => cx.aten("mean", [&loss])?,
        Some(Scalar::Int(2)) => {
            let sum = cx.aten("sum", [&loss])?;
            cx.aten("div.Tensor", [&sum, &Value::Int(meta.sizes[1].clone())])?
        }
        _ => cx.aten("mean.dim", [&loss, &Value::ints(&[1])])?,
    }])
}
