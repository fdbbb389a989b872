//! Kernels of reductions of segments, following aten/src/ATen/native/SegmentReduce.cpp.

use crate::index::gather::indices;
use crate::numeric::dispatch::with_float;
use crate::numeric::float::Float;
use crate::numeric::strided::{Strided, try_fill_float};
use std::ops::Range;
use tracefx_core::allocate::{collected, try_collected, with_room};
use tracefx_core::{Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, normalize_dim};

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.segment_reduce.default", Kernel::Fill(segment_reduce)),
    ("aten._segment_reduce_backward.default", Kernel::Fill(backward)),
];

/// The segments of the data: for each row in front of the axis, ranges of positions along it.
struct Segments {
    rows: Vec<Vec<Range<usize>>>,
    size: usize,
    inner: usize,
}

impl Segments {
    /// Those by the lengths, offsets and axis at these positions. Unless `is_whole`, they may leave data out.
    fn new(args: &Args<'_, Tensor>, data: &Tensor, at: [usize; 3], is_whole: bool) -> Result<Self> {
        let axis = normalize_dim(args, args.int(at[2])?, data.rank())?;
        let size = data.sizes()[axis];
        let by_offsets = args.opt_tensor(at[1])?;
        let Some(bounds) = by_offsets.or(args.opt_tensor(at[0])?) else {
            return Err(args.invalid("segment_reduce(): Either lengths or offsets must be defined."));
        };
        let numbers = indices(bounds)?;
        let n = bounds.sizes()[axis];
        let outside = || args.invalid(format!("segment_reduce(): a segment lies outside of the {size} elements"));
        let n_rows: usize = data.sizes()[..axis].iter().product();
        let (mut rows, mut ranges) = (with_room(n_rows)?, with_room(n)?);
        for row in 0..n_rows {
            let numbers = &numbers[row * n..][..n];
            ranges.clear();
            if by_offsets.is_some() {
                ranges.extend(numbers.windows(2).map(|it| (it[0], it[1])));
            } else {
                let mut start = 0i64;
                for &length in numbers {
                    if length < 0 {
                        return Err(args.invalid("segment_reduce(): lengths contains negative value!"));
                    }
                    let end = start.checked_add(length).ok_or_else(outside)?;
                    ranges.push((start, end));
                    start = end;
                }
                if is_whole && start != size as i64 {
                    return Err(args.invalid(
                        "segment_reduce(): Expected all rows of lengths along axis to sum to \
                         data.size(lengths.dim()-1) when !unsafe.",
                    ));
                }
            }
            let range = |(start, end): (i64, i64)| {
                let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
                (range.start <= range.end && range.end <= size).then_some(range)
            };
            rows.push(try_collected(ranges.iter().map(|&it| range(it).ok_or_else(outside)))?);
        }
        Ok(Segments { rows, size, inner: data.sizes()[axis + 1..].iter().product() })
    }

    /// Calls `visit` for each element of the result in order, with the places in the data that make it.
    fn for_each(
        &self,
        mut visit: impl FnMut(usize, &mut dyn ExactSizeIterator<Item = usize>) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        for (row, ranges) in self.rows.iter().enumerate() {
            for range in ranges {
                for inner in 0..self.inner {
                    visit(at, &mut range.clone().map(|it| (row * self.size + it) * self.inner + inner))?;
                    at += 1;
                }
            }
        }
        Ok(())
    }
}

fn segment_reduce(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => reduce::<A>(args, &out[0]))
}

fn reduce<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (data, reduce) = (args.tensor(0)?, args.str(1)?);
    let segments = Segments::new(args, data, [2, 4, 5], !args.bool(6)?)?;
    let given = args.opt_float(7)?;
    let (default, combine): (A, fn(A, A) -> A) = match reduce {
        "max" => (A::LOWEST, |so_far, it| it.larger(so_far)),
        "min" => (A::HIGHEST, |so_far, it| it.smaller(so_far)),
        "prod" => (A::ONE, |so_far, it| so_far * it),
        _ => (A::ZERO, |so_far, it| so_far + it),
    };
    let data = Strided::<A>::dense(data)?;
    try_fill_float::<A, _>(out, |out| {
        segments.for_each(|at, places| {
            let n = places.len();
            let res = places.fold(given.map_or(default, A::of), |so_far, it| combine(so_far, data.data()[it]));
            out[at] = match (reduce, n) {
                ("mean", 0) if given.is_none() => A::of(f64::NAN),
                ("mean", 1..) => res / A::of(n as f64),
                _ => res,
            };
            Ok(())
        })
    })
}

fn backward(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => spread::<A>(args, &out[0]))
}

fn spread<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (data, reduce) = (args.tensor(2)?, args.str(3)?);
    let segments = Segments::new(args, data, [4, 5, 6], false)?;
    let initial = A::of(args.opt_float(7)?.unwrap_or(1.0));
    let data = Strided::<A>::dense(data)?;
    let (grad, result) = (Strided::<A>::dense(args.tensor(0)?)?, Strided::<A>::dense(args.tensor(1)?)?);
    try_fill_float::<A, _>(out, |out| {
        segments.for_each(|at, places| {
            let (grad, result) = (grad.data()[at], result.data()[at]);
            let places: Vec<usize> = collected(places)?;
            let value = |place: usize| data.data()[place];
            match reduce {
                "max" | "min" => {
                    // Those that are the extreme share its gradient.
                    let is_extreme = |place: &usize| value(*place).is_nan() || value(*place) == result;
                    let n = places.iter().filter(|it| is_extreme(it)).count();
                    let share = grad / A::of(n as f64);
                    places.iter().filter(|it| is_extreme(it)).for_each(|&it| out[it] = share);
                }
                "mean" => places.iter().for_each(|&it| out[it] = grad / A::of(places.len() as f64)),
                "prod" => {
                    for (own, &place) in places.iter().enumerate() {
                        out[place] = if value(place) == A::ZERO || value(place).is_nan() {
                            let others = places.iter().enumerate().filter(|it| it.0 != own);
                            grad * others.fold(initial, |so_far, it| so_far * value(*it.1))
                        } else {
                            grad * result / value(place)
                        };
                    }
                }
                _ => places.iter().for_each(|&it| out[it] = grad),
            }
            Ok(())
        })
    })
}
