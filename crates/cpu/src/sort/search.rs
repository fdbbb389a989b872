//! Kernels that find where values belong among sorted ones, with PyTorch's comparisons of NaN.

use crate::index::gather::indices;
use crate::numeric::dense::{Dense, fill};
use crate::numeric::dispatch::with_element;
use tracefx_core::allocate::collected;
use tracefx_core::{Code, DType, Diagnostic, Element, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Operand, promote};

pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.bucketize.Scalar", Kernel::Fill(bucketize)),
    ("aten.bucketize.Tensor", Kernel::Fill(bucketize)),
    ("aten.searchsorted.Scalar", Kernel::Fill(searchsorted)),
    ("aten.searchsorted.Tensor", Kernel::Fill(searchsorted)),
];

fn bucketize(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let search = Search { boundaries: args.tensor(1)?, sorter: None, is_right: args.bool(3)? };
    search.run(args.operand(0)?, &results[0])
}

fn searchsorted(args: &Args<'_, Tensor>, results: &[Tensor]) -> Result<()> {
    let boundaries = args.tensor(0)?;
    let line = boundaries.sizes().last().copied().unwrap_or(1);
    let sorter = args.opt_tensor(5)?.map(indices).transpose()?;
    if sorter.iter().flatten().any(|&it| usize::try_from(it).ok().is_none_or(|it| it >= line)) {
        let what = "torch.searchsorted(): sorter index out of range";
        return Err(Diagnostic::new(Code::IndexOutOfRange, what));
    }
    let is_right = args.bool(3)? || args.opt_str(4)? == Some("right");
    Search { boundaries, sorter, is_right }.run(args.operand(1)?, &results[0])
}

struct Search<'a> {
    boundaries: &'a Tensor,
    /// The positions of the boundaries in order, line by line.
    sorter: Option<Vec<i64>>,
    /// Whether an equal boundary is passed.
    is_right: bool,
}

impl Search<'_> {
    fn run(&self, values: Operand<'_, Tensor>, result: &Tensor) -> Result<()> {
        let common = promote(&[Operand::Tensor(self.boundaries), values]);
        let found = if common.is_float() {
            // float64 holds all narrower floats; integers that meet floats are converted to the common dtype.
            let number = |it: Scalar| rounded(it.to_f64(), common);
            self.find(&numbers(self.boundaries, number)?, &operand(values, number)?)
        } else if common == DType::UInt64 {
            return Err(Diagnostic::unsupported_dtype(common, "searchsorted"));
        } else {
            self.find(&numbers(self.boundaries, Scalar::to_i64)?, &operand(values, Scalar::to_i64)?)
        }?;
        with_element!(result.dtype(), T => fill::<T, _>(result, |out| {
            out.iter_mut().zip(&found).for_each(|(out, &it)| *out = T::from_scalar(Scalar::Int(it as i64)));
        }), else ());
        Ok(())
    }

    /// The position of each value in the line of its row. The comparisons are PyTorch's, which matters for NaN.
    fn find<T: PartialOrd + Copy>(&self, boundaries: &[T], values: &[T]) -> Result<Vec<usize>> {
        let line = self.boundaries.sizes().last().copied().unwrap_or(1);
        let n_lines = boundaries.len().checked_div(line).unwrap_or(1);
        let per_line = if self.boundaries.rank() <= 1 { values.len() } else { values.len() / n_lines.max(1) };
        let find = |(at, &value): (usize, &T)| {
            let row = at / per_line.max(1) * line;
            let boundary = |at: usize| match &self.sorter {
                Some(sorter) => boundaries[row + sorter[row + at] as usize],
                None => boundaries[row + at],
            };
            let (mut start, mut end) = (0, line);
            while start < end {
                let middle = start + (end - start) / 2;
                let boundary = boundary(middle);
                let is_before = if self.is_right { boundary > value } else { boundary >= value };
                if is_before {
                    end = middle;
                } else {
                    start = middle + 1;
                }
            }
            start
        };
        collected(values.iter().enumerate().map(find))
    }
}

fn rounded(value: f64, dtype: DType) -> f64 {
    with_element!(dtype, T => T::from_scalar(Scalar::Float(value)).to_scalar().to_f64(), else value)
}

fn numbers<T>(tensor: &Tensor, number: impl Fn(Scalar) -> T) -> Result<Vec<T>> {
    let dense = Dense::new(tensor)?;
    with_element!(tensor.dtype(), "searchsorted", E => collected(dense.read::<E>().iter().map(|it| number(it.to_scalar()))))
}

fn operand<T>(values: Operand<'_, Tensor>, number: impl Fn(Scalar) -> T) -> Result<Vec<T>> {
    match values {
        Operand::Tensor(values) => numbers(values, number),
        Operand::Scalar(value) => Ok(vec![number(value)]),
    }
}
