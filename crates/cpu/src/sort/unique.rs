//! Kernels of the different elements and slices, with their inverse and counts. The order of elements is
//! [`sorting`](super::sorting)'s.

use crate::numeric::dense::fill;
use crate::numeric::strided_copy::{Axis, Offsets, gather_places};
use crate::sort::introsort;
use crate::sort::order::Sorter;
use crate::sort::sorting::{NAN, keys};
use tracefx_core::allocate::{collected, filled, push};
use tracefx_core::{DType, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Value, normalize_dim};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    (
        "aten._unique.default",
        Kernel::Make(|args| {
            let results = elements(args, true, args.bool(2)?, false)?;
            Ok(results.into_iter().take(2).collect())
        }),
    ),
    ("aten._unique2.default", Kernel::Make(|args| elements(args, true, args.bool(2)?, args.bool(3)?))),
    ("aten.unique_consecutive.default", Kernel::Make(unique_consecutive)),
    ("aten.unique_dim.default", Kernel::Make(|args| slices(args, args.int(1)?, true))),
    ("aten.unique_dim_consecutive.default", Kernel::Make(|args| slices(args, args.int(1)?, false))),
];

fn unique_consecutive(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    match args.opt_int(3)? {
        // Of slices, PyTorch always gives where they went and how often they came.
        Some(dim) if (args.tensor(0)?.rank(), dim) != (1, 0) => slices(args, dim, false),
        Some(_) | None => elements(args, false, args.bool(1)?, args.bool(2)?),
    }
}

/// Items put into groups of equal ones that follow each other.
struct Groups {
    /// The first item of each group.
    firsts: Vec<usize>,
    /// The group of each item.
    inverse: Vec<i64>,
    counts: Vec<i64>,
}

impl Groups {
    fn new(order: &[usize], is_equal: impl Fn(usize, usize) -> bool) -> Result<Self> {
        let mut res = Groups { firsts: Vec::new(), inverse: filled(0, order.len())?, counts: Vec::new() };
        for (at, &item) in order.iter().enumerate() {
            if at == 0 || !is_equal(order[at - 1], item) {
                push(&mut res.firsts, item)?;
                push(&mut res.counts, 0)?;
            }
            let group = res.firsts.len() - 1;
            res.inverse[item] = group as i64;
            res.counts[group] += 1;
        }
        Ok(res)
    }
}

fn integers(values: &[i64], sizes: &[usize]) -> Result<Value<Tensor>> {
    let res = Tensor::zeros(DType::Int64, sizes)?;
    fill::<i64, _>(&res, |out| out.copy_from_slice(values));
    Ok(Value::Tensor(res))
}

fn elements(
    args: &Args<'_, Tensor>,
    is_sorted: bool,
    wants_inverse: bool,
    wants_counts: bool,
) -> Result<Vec<Value<Tensor>>> {
    let base = args.tensor(0)?;
    let (keys, is_float) = (keys(args, base)?, base.dtype().is_float());
    let order = if is_sorted { collected(Sorter::default().places(&keys)?)? } else { collected(0..keys.len())? };
    // A NaN is not equal to another one.
    let groups = Groups::new(&order, |a, b| keys[a] == keys[b] && !(is_float && keys[a] == NAN))?;
    let line = base.contiguous()?;
    let values = Tensor::zeros(base.dtype(), &[groups.firsts.len()])?;
    gather_places(&line, &Offsets { start: line.offset(), axes: vec![Axis::At(groups.firsts)] }, &values);
    let inverse = if wants_inverse { integers(&groups.inverse, base.sizes())? } else { integers(&[], &[0])? };
    let counts = if wants_counts { integers(&groups.counts, &[groups.counts.len()])? } else { integers(&[], &[0])? };
    Ok(vec![Value::Tensor(values), inverse, counts])
}

fn slices(args: &Args<'_, Tensor>, dim: i64, is_sorted: bool) -> Result<Vec<Value<Tensor>>> {
    let given = args.tensor(0)?;
    // A 0-d tensor counts as a vector of one.
    let base = if given.rank() == 0 { given.as_strided(&[1], &[1], given.offset())? } else { given.clone() };
    let dim = normalize_dim(args, dim, base.rank())?;
    let n = base.sizes()[dim];
    let mut order: Vec<usize> = (0..base.rank()).collect();
    order[..=dim].rotate_right(1);
    let (keys, is_float) = (keys(args, &base.permuted(&order))?, base.dtype().is_float());
    let width = keys.len() / n.max(1);
    let slice = |at: usize| &keys[at * width..(at + 1) * width];
    let mut order: Vec<usize> = collected(0..n)?;
    if is_sorted {
        // A place tells equal slices apart, so that no memory is needed to keep their order.
        introsort::sort(&mut order, &|&a, &b| slice(a).cmp(slice(b)).then(a.cmp(&b)).is_lt());
    }
    let has_nan = |at: usize| is_float && slice(at).contains(&NAN);
    let groups = Groups::new(&order, |a, b| slice(a) == slice(b) && !has_nan(a))?;
    let mut sizes = base.sizes().to_vec();
    sizes[dim] = groups.firsts.len();
    let values = Tensor::zeros(base.dtype(), &sizes)?;
    let mut places = Offsets::of(&base);
    places.axes[dim] = Axis::At(collected(groups.firsts.iter().map(|it| it * base.strides()[dim]))?);
    gather_places(&base, &places, &values);
    Ok(vec![Value::Tensor(values), integers(&groups.inverse, &[n])?, integers(&groups.counts, &[groups.counts.len()])?])
}
