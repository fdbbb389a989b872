//! The kernel of bags of rows: sums, means and maxima of the rows that are looked up. Its gradient is in
//! [`embedding_backward`](super::embedding_backward).

use crate::index::gather::indices;
use crate::numeric::dense::{Dense, fill};
use crate::numeric::dispatch::with_element;
use tracefx_core::allocate::{filled, try_collected};
use tracefx_core::{Code, Diagnostic, Element, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::Args;

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten._embedding_bag.default", Kernel::Fill(embedding_bag)),
    ("aten._embedding_bag_forward_only.default", Kernel::Fill(embedding_bag)),
];

/// What is known of the bags before a row is read.
struct Bags {
    rows: Vec<usize>,
    /// The bag of each index; of one before the first bag or, with a last offset, behind the last one, none.
    bag_of: Vec<usize>,
    padding: i64,
}

fn embedding_bag(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let (weight, mode) = (args.tensor(0)?, args.int(4)?);
    let (given, offsets) = (indices(args.tensor(1)?)?, indices(args.tensor(2)?)?);
    let n_rows = weight.sizes()[0];
    let n_bags = results[0].sizes()[0];
    let row = |&it: &i64| match usize::try_from(it) {
        Ok(row) if row < n_rows => Ok(row),
        _ => {
            let what = format!("index {it} is out of range: the table has {n_rows} rows");
            Err(Diagnostic::new(Code::IndexOutOfRange, what))
        }
    };
    let rows = try_collected(given.iter().map(row))?;
    check_offsets(args, &offsets, rows.len() as i64)?;
    // Each bag ends where the next one starts, the last one with the indices.
    let mut bag_of = filled(0, rows.len())?;
    for (bag, &start) in offsets[..n_bags].iter().enumerate() {
        bag_of[start as usize..].fill(bag);
    }
    let bags = Bags { rows, bag_of, padding: args.int(8)? };
    if n_bags > 0 {
        write_rows(args, &bags, mode, results)?;
    }
    let counts = bags.counts(n_bags)?;
    let write = |result: &Tensor, values: &mut dyn Iterator<Item = usize>| {
        with_element!(result.dtype(), T => fill::<T, _>(result, |out| {
            out.iter_mut().zip(values).for_each(|(out, it)| *out = T::from_scalar(Scalar::Int(it as i64)));
        }), else ());
    };
    write(&results[1], &mut bags.bag_of.iter().copied());
    if mode != 0 {
        write(&results[2], &mut counts.iter().copied());
    }
    if mode == 1 {
        write(&results[3], &mut counts.iter().copied());
    }
    Ok(())
}

fn check_offsets(args: &Args<'_, Tensor>, offsets: &[i64], n: i64) -> Result<()> {
    if let Some(&first) = offsets.first().filter(|it| **it != 0) {
        return Err(args.invalid(format!(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, \
             got {first}"
        )));
    }
    if let Some(&last) = offsets.last().filter(|it| **it > n) {
        return Err(args
            .invalid(format!("offsets[-1] can not be greater than input's length {n} but got offsets[-1] of {last}")));
    }
    if offsets.windows(2).any(|it| it[0] > it[1]) {
        return Err(args.invalid("the offsets of an embedding bag must not decrease"));
    }
    Ok(())
}

impl Bags {
    /// The row and bag of each index that counts, and its position.
    fn entries(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let entries = self.rows.iter().zip(&self.bag_of).enumerate().map(|(at, (&row, &bag))| (at, row, bag));
        entries.filter(|it| it.1 as i64 != self.padding)
    }

    /// How many indices of each bag count.
    fn counts(&self, n_bags: usize) -> Result<Vec<usize>> {
        let mut res = filled(0, n_bags)?;
        if n_bags > 0 {
            self.entries().for_each(|(_, _, bag)| res[bag] += 1);
        }
        Ok(res)
    }
}

fn write_rows(args: &Args<'_, Tensor>, bags: &Bags, mode: i64, results: &[Tensor]) -> Result<()> {
    let (weight, result) = (args.tensor(0)?, &results[0]);
    let [n_bags, width] = *result.sizes() else { return Err(args.bad_shape("the bags are a matrix")) };
    let table = Dense::new(weight)?;
    let samples = args.opt_tensor(6)?.map(Dense::new).transpose()?;
    let mut maxima = filled(0usize, if mode == 2 { n_bags * width } else { 0 })?;
    with_element!(weight.dtype(), "embedding_bag", T => {
        let table = table.read::<T>();
        let samples = samples.as_ref().map(|it| it.read::<T>());
        let number = |it: T| it.to_scalar().to_f64();
        // Sums of float32 are kept in float32, as fbgemm keeps them; those of halves too, and are rounded at the end.
        let round = |it: f64| if weight.dtype() == tracefx_core::DType::Float64 { it } else { it as f32 as f64 };
        let mut sums = filled(0.0f64, n_bags * width)?;
        let mut is_empty = filled(true, n_bags)?;
        for (at, row, bag) in bags.entries() {
            let scale = samples.as_ref().map_or(1.0, |it| number(it[at]));
            let from = &table[row * width..(row + 1) * width];
            for (dim, &value) in from.iter().enumerate() {
                let (sum, value) = (&mut sums[bag * width + dim], number(value));
                if mode != 2 {
                    *sum = round(*sum + round(value * scale));
                } else if is_empty[bag] || value > *sum {
                    (*sum, maxima[bag * width + dim]) = (value, row);
                }
            }
            is_empty[bag] = false;
        }
        if mode == 1 {
            let counts = bags.counts(n_bags)?;
            sums.iter_mut().enumerate().for_each(|(at, it)| *it /= counts[at / width].max(1) as f64);
        }
        fill::<T, _>(result, |out| {
            out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = T::from_scalar(Scalar::Float(sum)));
        });
    });
    if mode == 2 {
        with_element!(results[3].dtype(), T => fill::<T, _>(&results[3], |out| {
            out.iter_mut().zip(&maxima).for_each(|(out, &row)| *out = T::from_scalar(Scalar::Int(row as i64)));
        }), else ());
    }
    Ok(())
}
