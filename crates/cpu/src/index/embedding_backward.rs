//! Kernels of the gradients of tables of which rows were looked up: each look-up adds its gradient to its row.

use crate::index::gather::indices;
use crate::numeric::dense::{Dense, fill};
use crate::numeric::dispatch::{with_element, with_float};
use crate::numeric::float::Float;
use crate::numeric::number::Number;
use crate::numeric::strided::{Strided, try_fill_float};
use tracefx_core::allocate::filled;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.embedding_dense_backward.default", Kernel::Fill(embedding)),
    ("aten._embedding_bag_backward.default", Kernel::Fill(bags)),
    ("aten._embedding_bag_dense_backward.default", Kernel::Fill(dense_bags)),
    ("aten._embedding_bag_per_sample_weights_backward.default", Kernel::Fill(samples)),
];

/// How often each row is looked up.
fn counts(rows: &[i64], n_rows: usize) -> Result<Vec<u32>> {
    let mut res = filled(0, n_rows)?;
    for &row in rows {
        if let Some(count) = usize::try_from(row).ok().and_then(|it| res.get_mut(it)) {
            *count += 1;
        }
    }
    Ok(res)
}

fn embedding(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let (grad, rows) = (args.tensor(0)?, indices(args.tensor(1)?)?);
    let [n_rows, width] = *out[0].sizes() else { return Err(args.bad_shape("a table is a matrix")) };
    let padding = args.int(3)?;
    let counts = if args.bool(4)? { Some(counts(&rows, n_rows)?) } else { None };
    let dense = Dense::new(grad)?;
    with_element!(grad.dtype(), &args.op.name, T => {
        let grad = dense.read::<T>();
        fill::<T, _>(&out[0], |out| {
            for (at, &row) in rows.iter().enumerate() {
                // As in PyTorch, the gradient of a row that the table has not is nobody's.
                let Some(row) = usize::try_from(row).ok().filter(|&it| it < n_rows && it as i64 != padding) else { continue };
                let to = out[row * width..][..width].iter_mut().zip(&grad[at * width..][..width]);
                match &counts {
                    Some(counts) => to.for_each(|(to, it)| *to = to.add(it.div_count(counts[row]))),
                    None => to.for_each(|(to, &it)| *to = to.add(it)),
                }
            }
        });
        Ok(())
    })
}

/// To which bag each of `n` indices belongs: as the forward call says or, where it did not need that, by the offsets.
fn bag_of(args: &Args<'_, Tensor>, given: &Tensor, offsets: Option<&Tensor>, n: usize) -> Result<Vec<usize>> {
    let mut res = filled(0, n)?;
    match offsets {
        Some(offsets) if given.numel() == 0 => {
            for (bag, start) in indices(offsets)?.into_iter().enumerate() {
                // With a last offset, nothing is behind it.
                let Some(rest) = usize::try_from(start).ok().and_then(|it| res.get_mut(it..)) else {
                    return Err(args.invalid(format!("an offset of {start} is outside of the {n} indices")));
                };
                rest.fill(bag);
            }
        }
        _ => {
            let given = indices(given)?;
            if given.len() < n {
                return Err(args.bad_shape(format!("offset2bag names {} bags for {n} indices", given.len())));
            }
            res.iter_mut().zip(given).for_each(|(bag, it)| *bag = it.max(0) as usize);
        }
    }
    Ok(res)
}

/// What the gradient of a table is made of, with the positions of the arguments.
struct BagsGradient<'a> {
    rows: Vec<i64>,
    bag_of: Vec<usize>,
    sizes: &'a Tensor,
    maxima: &'a Tensor,
    by_frequency: bool,
    mode: i64,
    samples: Option<&'a Tensor>,
    padding: i64,
}

fn bags(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let rows = indices(args.tensor(1)?)?;
    let bags = BagsGradient {
        bag_of: bag_of(args, args.tensor(3)?, Some(args.tensor(2)?), rows.len())?,
        rows,
        sizes: args.tensor(4)?,
        maxima: args.tensor(5)?,
        by_frequency: args.bool(7)?,
        mode: args.int(8)?,
        samples: args.opt_tensor(10)?,
        padding: args.int(11)?,
    };
    bags.run(args, &out[0])
}

fn dense_bags(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let rows = indices(args.tensor(1)?)?;
    let bags = BagsGradient {
        bag_of: bag_of(args, args.tensor(2)?, None, rows.len())?,
        rows,
        sizes: args.tensor(3)?,
        maxima: args.tensor(4)?,
        by_frequency: args.bool(6)?,
        mode: args.int(7)?,
        samples: args.opt_tensor(8)?,
        padding: args.int(9)?,
    };
    bags.run(args, &out[0])
}

impl BagsGradient<'_> {
    fn run(&self, args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
        let dtype = out.dtype();
        with_float!(dtype, &args.op.name, A => self.compute::<A>(args, out))
    }

    fn compute<A: Float>(&self, args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
        let grad = args.tensor(0)?;
        let [n_rows, width] = *out.sizes() else { return Err(args.bad_shape("a table is a matrix")) };
        let n_bags = grad.sizes()[0];
        let grad = Strided::<A>::dense(grad)?;
        let samples = self.samples.map(Strided::<A>::dense).transpose()?;
        let sizes = indices(self.sizes)?;
        let row = |it: i64| {
            usize::try_from(it).ok().filter(|&it| it < n_rows).ok_or_else(|| {
                let what = format!("index {it} is out of range: the table has {n_rows} rows");
                Diagnostic::new(Code::IndexOutOfRange, what)
            })
        };
        let size_of = |bag: usize| sizes.get(bag).copied().unwrap_or(0);
        if self.mode == 2 {
            let maxima = indices(self.maxima)?;
            if maxima.len() != n_bags * width || sizes.len() != n_bags {
                return Err(args.bad_shape("of maxima, each bag has a size, and each of its elements an index"));
            }
            return try_fill_float::<A, _>(out, |out| {
                for (at, &maximum) in maxima.iter().enumerate().filter(|it| size_of(it.0 / width) != 0) {
                    out[row(maximum)? * width + at % width] += grad.data()[at];
                }
                Ok(())
            });
        }
        let counts = if self.by_frequency { Some(counts(&self.rows, n_rows)?) } else { None };
        try_fill_float::<A, _>(out, |out| {
            for (at, (&index, &bag)) in self.rows.iter().zip(&self.bag_of).enumerate() {
                if index == self.padding || bag >= n_bags {
                    continue;
                }
                let row = row(index)?;
                let mut scale = samples.as_ref().map_or(A::ONE, |it| it.data()[at]);
                if let Some(counts) = &counts {
                    scale /= A::of(f64::from(counts[row]));
                }
                if self.mode == 1 {
                    scale /= A::of(size_of(bag).max(1) as f64);
                }
                let to = out[row * width..][..width].iter_mut();
                to.zip(&grad.data()[bag * width..][..width]).for_each(|(to, &it)| *to += it * scale);
            }
            Ok(())
        })
    }
}

fn samples(args: &Args<'_, Tensor>, out: &[Tensor]) -> Result<()> {
    let dtype = out[0].dtype();
    with_float!(dtype, &args.op.name, A => products::<A>(args, &out[0]))
}

/// The product of each looked-up row with the gradient of its bag.
fn products<A: Float>(args: &Args<'_, Tensor>, out: &Tensor) -> Result<()> {
    let (grad, weight, rows) = (args.tensor(0)?, args.tensor(1)?, indices(args.tensor(2)?)?);
    let [n_rows, width] = *weight.sizes() else { return Err(args.bad_shape("a table is a matrix")) };
    let (bag_of, padding) = (bag_of(args, args.tensor(4)?, Some(args.tensor(3)?), rows.len())?, args.int(6)?);
    let n_bags = grad.sizes()[0];
    let (grad, weight) = (Strided::<A>::dense(grad)?, Strided::<A>::dense(weight)?);
    try_fill_float::<A, _>(out, |out| {
        for (out, (&row, &bag)) in out.iter_mut().zip(rows.iter().zip(&bag_of)) {
            if row == padding || bag >= n_bags {
                continue;
            }
            let row = usize::try_from(row).ok().filter(|&it| it < n_rows).ok_or_else(|| {
                let what = format!("index {row} is out of range: the table has {n_rows} rows");
                Diagnostic::new(Code::IndexOutOfRange, what)
            })?;
            let pairs = grad.data()[bag * width..][..width].iter().zip(&weight.data()[row * width..][..width]);
            *out = pairs.fold(A::ZERO, |sum, (&grad, &weight)| sum + grad * weight);
        }
        Ok(())
    })
}
