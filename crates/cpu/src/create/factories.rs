//! New tensors: constants, ranges, diagonals, triangles. What one value fills is [`view::copy`](crate::view::copy)'s, and
//! what is drawn is [`random`](crate::random)'s.

use crate::numeric::dense::{Dense, fill, fill_bits};
use crate::numeric::dispatch::{with_bits, with_element};
use crate::numeric::strided_copy::{Offsets, gather_places};
use crate::view::copy::{ZEROS, fill_with};
use tracefx_core::{Complex64, DType, DTypeKind, Diagnostic, Element, Result, Scalar, Tensor};
use tracefx_exec::Kernel;
use tracefx_ops::{Args, Operand, Value};

const ONES: Kernel = Kernel::Fill(|_, outs| fill_with(&outs[0], Scalar::Int(1)));
const LINSPACE: Kernel = Kernel::Fill(|args, outs| match outs[0].dtype().is_complex() {
    true => complex_linspace(args, outs),
    false => linspace(args, outs, &|it| it),
});
const LOGSPACE: Kernel = Kernel::Fill(|args, outs| {
    let base = args.float(3)?;
    linspace(args, outs, &|it| base.powf(it))
});

/// The kernels of this family.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("aten.empty.memory_format", ZEROS),
    ("aten.empty_strided.default", ZEROS),
    ("aten.empty_permuted.default", ZEROS),
    ("aten.empty_like.default", ZEROS),
    ("aten.new_empty.default", ZEROS),
    ("aten.new_empty_strided.default", ZEROS),
    ("aten.zeros.default", ZEROS),
    ("aten.zeros_like.default", ZEROS),
    ("aten.new_zeros.default", ZEROS),
    ("aten.ones.default", ONES),
    ("aten.ones_like.default", ONES),
    ("aten.new_ones.default", ONES),
    ("aten.full.default", Kernel::Fill(|args, outs| fill_with(&outs[0], args.scalar(1)?))),
    ("aten.full_like.default", Kernel::Fill(|args, outs| fill_with(&outs[0], args.scalar(1)?))),
    ("aten.new_full.default", Kernel::Fill(|args, outs| fill_with(&outs[0], args.scalar(2)?))),
    ("aten.scalar_tensor.default", Kernel::Fill(|args, outs| fill_with(&outs[0], args.scalar(0)?))),
    (
        "aten.arange.default",
        Kernel::Fill(|args, outs| arange(&outs[0], Scalar::Int(0), args.scalar(0)?, Scalar::Int(1))),
    ),
    (
        "aten.arange.start",
        Kernel::Fill(|args, outs| arange(&outs[0], args.scalar(0)?, args.scalar(1)?, Scalar::Int(1))),
    ),
    (
        "aten.arange.start_step",
        Kernel::Fill(|args, outs| arange(&outs[0], args.scalar(0)?, args.scalar(1)?, args.scalar(2)?)),
    ),
    ("aten.linspace.default", LINSPACE),
    ("aten.linspace.Tensor_Tensor", LINSPACE),
    ("aten.linspace.Tensor_Scalar", LINSPACE),
    ("aten.linspace.Scalar_Tensor", LINSPACE),
    ("aten.logspace.default", LOGSPACE),
    ("aten.logspace.Tensor_Tensor", LOGSPACE),
    ("aten.logspace.Tensor_Scalar", LOGSPACE),
    ("aten.logspace.Scalar_Tensor", LOGSPACE),
    (
        "aten.range.default",
        Kernel::Fill(|args, outs| arange(&outs[0], args.scalar(0)?, args.scalar(1)?, Scalar::Int(1))),
    ),
    ("aten.range.step", Kernel::Fill(|args, outs| arange(&outs[0], args.scalar(0)?, args.scalar(1)?, args.scalar(2)?))),
    ("aten.eye.default", Kernel::Fill(eye)),
    ("aten.eye.m", Kernel::Fill(eye)),
    ("aten.tril.default", Kernel::Fill(|args, outs| triangle(args, outs, |row, col, diagonal| col - row <= diagonal))),
    ("aten.triu.default", Kernel::Fill(|args, outs| triangle(args, outs, |row, col, diagonal| col - row >= diagonal))),
    (
        "aten.tril_indices.default",
        Kernel::Fill(|args, outs| triangle_indices(args, outs, |row, offset, cols| (0, (row + offset + 1).min(cols)))),
    ),
    (
        "aten.triu_indices.default",
        Kernel::Fill(|args, outs| triangle_indices(args, outs, |row, offset, cols| ((row + offset).max(0), cols))),
    ),
    ("aten.one_hot.default", Kernel::Make(one_hot)),
];

fn arange(out: &Tensor, start: Scalar, end: Scalar, step: Scalar) -> Result<()> {
    let are_ints = [start, end, step].iter().all(|it| it.kind() <= DTypeKind::Int);
    with_element!(out.dtype(), "arange", T => fill::<T, _>(out, |to| {
        // Integers stay exact; floats are multiplied out, so that errors do not add up.
        if are_ints || out.dtype().kind() == DTypeKind::Int {
            let (start, step) = (start.to_i64(), step.to_i64());
            for (i, to) in to.iter_mut().enumerate() {
                *to = T::from_scalar(Scalar::Int(start.wrapping_add(step.wrapping_mul(i as i64))));
            }
        } else {
            let (start, step) = (start.to_f64(), step.to_f64());
            for (i, to) in to.iter_mut().enumerate() {
                *to = T::from_scalar(Scalar::Float(start + step * i as f64));
            }
        }
    }));
    Ok(())
}

/// A bound of steps: a number, or a tensor of one.
fn bound(args: &Args<'_, Tensor>, index: usize) -> Result<Scalar> {
    match args.operand(index)? {
        Operand::Scalar(it) => Ok(it),
        Operand::Tensor(it) => it.item(),
    }
}

/// The `i`-th of `n` steps, from the nearer end, so that both ends are exact.
fn step_between(start: f64, end: f64, i: usize, n: usize) -> f64 {
    let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
    if i < n / 2 || n == 1 { start + step * i as f64 } else { end - step * (n - 1 - i) as f64 }
}

fn complex_linspace(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (start, end) = (bound(args, 0)?.to_complex(), bound(args, 1)?.to_complex());
    let dtype = outs[0].dtype();
    with_element!(dtype, &args.op.name, T => fill::<T, _>(&outs[0], |to| {
        let n = to.len();
        for (i, to) in to.iter_mut().enumerate() {
            let part = |start, end| step_between(start, end, i, n);
            *to = T::from_scalar(Scalar::Complex(Complex64 { re: part(start.re, end.re), im: part(start.im, end.im) }));
        }
    }));
    Ok(())
}

/// A function of each of so many numbers that are evenly spaced.
fn linspace(args: &Args<'_, Tensor>, outs: &[Tensor], f: &dyn Fn(f64) -> f64) -> Result<()> {
    let (start, end) = (bound(args, 0)?, bound(args, 1)?);
    let dtype = outs[0].dtype();
    if dtype.is_complex() {
        return Err(Diagnostic::unsupported_dtype(dtype, &args.op.name));
    }
    with_element!(dtype, &args.op.name, T => fill::<T, _>(&outs[0], |to| {
        // An integer result has integer ends.
        let whole = |it: Scalar| if dtype.is_float() { it.to_f64() } else { it.to_i64() as f64 };
        let (start, end) = (whole(start), whole(end));
        let n = to.len();
        for (i, to) in to.iter_mut().enumerate() {
            *to = T::from_scalar(Scalar::Float(f(step_between(start, end, i, n))));
        }
    }));
    Ok(())
}

fn eye(args: &Args<'_, Tensor>, outs: &[Tensor]) -> Result<()> {
    let (dtype, sizes) = (outs[0].dtype(), outs[0].sizes());
    with_element!(dtype, &args.op.name, T => fill::<T, _>(&outs[0], |to| {
        for i in 0..sizes[0].min(sizes[1]) {
            to[i * sizes[1] + i] = T::from_scalar(Scalar::Int(1));
        }
    }));
    Ok(())
}

fn triangle(args: &Args<'_, Tensor>, outs: &[Tensor], keeps: impl Fn(i64, i64, i64) -> bool) -> Result<()> {
    let (this, diagonal) = (args.tensor(0)?, args.int(1)?);
    // No matrix has more diagonals, and sums with this stay within 64 bits.
    let diagonal = diagonal.clamp(-(1 << 62), 1 << 62);
    let (rows, cols) = (this.sizes()[this.rank() - 2], this.sizes()[this.rank() - 1]);
    if this.numel() == 0 {
        return Ok(());
    }
    gather_places(this, &Offsets::of(this), &outs[0]);
    with_bits!(this.dtype(), T => fill_bits::<T, _>(&outs[0], |to| {
        for (i, row) in to.chunks_exact_mut(cols).enumerate() {
            let row_number = (i % rows) as i64;
            for (col, element) in row.iter_mut().enumerate() {
                if !keeps(row_number, col as i64, diagonal) {
                    *element = <T as bytemuck::Zeroable>::zeroed();
                }
            }
        }
    }));
    Ok(())
}

fn triangle_indices(
    args: &Args<'_, Tensor>,
    outs: &[Tensor],
    columns: impl Fn(i64, i64, i64) -> (i64, i64),
) -> Result<()> {
    let (rows, cols, offset) = (args.int(0)?, args.int(1)?, args.int(2)?.clamp(-(1 << 62), 1 << 62));
    let (dtype, n) = (outs[0].dtype(), outs[0].sizes()[1]);
    with_element!(dtype, &args.op.name, T => fill::<T, _>(&outs[0], |to| {
        if n == 0 {
            return;
        }
        let (of_rows, of_cols) = to.split_at_mut(n);
        let places = (0..rows).flat_map(|row| {
            let (from, until) = columns(row, offset, cols);
            (from..until).map(move |col| (row, col))
        });
        for ((to_row, to_col), (row, col)) in of_rows.iter_mut().zip(of_cols).zip(places) {
            *to_row = T::from_scalar(Scalar::Int(row));
            *to_col = T::from_scalar(Scalar::Int(col));
        }
    }));
    Ok(())
}

fn one_hot(args: &Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> {
    let this = args.tensor(0)?;
    let indices = Dense::new(this)?;
    let indices = indices.read::<i64>();
    let n_classes = match (args.int(1)?, indices.iter().max()) {
        (-1, None) => return Err(args.invalid("Can not infer total number of classes from empty tensor.")),
        (-1, Some(&largest)) => largest.saturating_add(1),
        (n, _) => n,
    };
    if indices.iter().any(|&it| it < 0) {
        return Err(args.invalid("Class values must be non-negative."));
    }
    if indices.iter().any(|&it| it >= n_classes) {
        return Err(args.invalid("Class values must be smaller than num_classes."));
    }
    let n_classes = n_classes as usize;
    let mut sizes = this.sizes().to_vec();
    sizes.push(n_classes);
    let result = Tensor::zeros(DType::Int64, &sizes)?;
    fill::<i64, _>(&result, |to| {
        for (row, &index) in indices.iter().enumerate() {
            to[row * n_classes + index as usize] = 1;
        }
    });
    Ok(vec![Value::Tensor(result)])
}
