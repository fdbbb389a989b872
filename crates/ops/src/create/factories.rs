//! New tensors: constants, ranges, diagonals.

use crate::core::elementwise::check_fits;
use crate::create::decompose;
use crate::index;
use crate::view;
use crate::view::copy::{check_layout, device, formatted, memory_format};
use crate::{Args, OpDef, Operand, Output, Tags, Tol, Value, contiguous};
use tracefx_core::{Code, DType, DTypeKind, Diagnostic, MemoryFormat, Result, Scalar};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        sized,
    )
    .tags(Tags::CORE)
    .doc("A tensor that holds anything; here, zeros."),
    OpDef::new(
        "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None) -> Tensor",
        strided,
    )
    .tags(Tags::CORE)
    .doc("A tensor of these strides that holds anything; here, zeros."),
    OpDef::new(
        "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        permuted,
    )
    .doc("A tensor that lies in memory in this order of dimensions and holds anything; here, zeros."),
    OpDef::new(
        "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        sized,
    )
    .decompose(decompose::zeros)
    .doc("Zeros."),
    OpDef::new(
        "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        sized,
    )
    .decompose(decompose::ones)
    .doc("Ones."),
    OpDef::new(
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        full,
    )
    .tags(Tags::CORE)
    .doc("One value everywhere."),
    OpDef::new(
        "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None) -> Tensor",
        scalar_tensor,
    )
    .tags(Tags::CORE)
    .doc("One value, as a 0-d tensor."),
    OpDef::new(
        "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        like,
    )
    .decompose(decompose::empty_like)
    .no_gradient()
    .doc("A tensor as `self` that holds anything; here, zeros."),
    OpDef::new(
        "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        like,
    )
    .decompose(decompose::zeros_like)
    .no_gradient()
    .doc("Zeros, as many as `self` has elements."),
    OpDef::new(
        "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        like,
    )
    .decompose(decompose::ones_like)
    .no_gradient()
    .doc("Ones, as many as `self` has elements."),
    OpDef::new(
        "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
        like,
    )
    .tags(Tags::CORE)
    .no_gradient()
    .doc("One value, as often as `self` has elements."),
    OpDef::new(
        "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        sized,
    )
    .decompose(decompose::new_empty)
    .no_gradient()
    .doc("A tensor of the dtype of `self` that holds anything; here, zeros."),
    OpDef::new(
        "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, \
         Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        strided,
    )
    .no_gradient()
    .doc("A tensor of the dtype of `self` and these strides that holds anything; here, zeros."),
    OpDef::new(
        "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        sized,
    )
    .decompose(decompose::new_zeros)
    .no_gradient()
    .doc("Zeros of the dtype of `self`."),
    OpDef::new(
        "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        sized,
    )
    .decompose(decompose::new_ones)
    .no_gradient()
    .doc("Ones of the dtype of `self`."),
    OpDef::new(
        "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        sized,
    )
    .decompose(decompose::new_full)
    .no_gradient()
    .doc("One value of the dtype of `self`."),
    OpDef::new(
        "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        arange,
    )
    .decompose(decompose::arange)
    .tolerance(Tol::Default)
    .doc("The numbers from 0 on, below `end`."),
    OpDef::new(
        "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        arange,
    )
    .decompose(decompose::arange)
    .tolerance(Tol::Default)
    .doc("The numbers from `start` on, below `end`."),
    OpDef::new(
        "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        arange,
    )
    .tolerance(Tol::Default)
    .tags(Tags::CORE)
    .doc("The numbers from `start` on in steps, before `end`."),
    OpDef::new(
        "aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::linspace)
    .tolerance(Tol::Default)
    .doc("So many numbers from `start` to `end`, evenly spaced."),
    OpDef::new(
        "aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::linspace)
    .tolerance(Tol::Default)
    .doc("So many numbers from `start` to `end`, evenly spaced."),
    OpDef::new(
        "aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::linspace)
    .tolerance(Tol::Default)
    .doc("So many numbers from `start` to `end`, evenly spaced."),
    OpDef::new(
        "aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::linspace)
    .tolerance(Tol::Default)
    .doc("So many numbers from `start` to `end`, evenly spaced."),
    OpDef::new(
        "aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::logspace)
    .tolerance(Tol::Scaled(4.0))
    .doc("So many powers of `base`, from that of `start` to that of `end`."),
    OpDef::new(
        "aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? \
         dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::logspace)
    .tolerance(Tol::Scaled(4.0))
    .doc("So many powers of `base`, from that of `start` to that of `end`."),
    OpDef::new(
        "aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? \
         dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::logspace)
    .tolerance(Tol::Scaled(4.0))
    .doc("So many powers of `base`, from that of `start` to that of `end`."),
    OpDef::new(
        "aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? \
         dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        linspace,
    )
    .decompose(decompose::logspace)
    .tolerance(Tol::Scaled(4.0))
    .doc("So many powers of `base`, from that of `start` to that of `end`."),
    OpDef::new(
        "aten::range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        range,
    )
    .tolerance(Tol::Default)
    .doc("The numbers from `start` to `end`, which is one of them."),
    OpDef::new(
        "aten::range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? \
         layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        range,
    )
    .tolerance(Tol::Default)
    .doc("The numbers from `start` to `end` in steps."),
    OpDef::new(
        "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? \
         pin_memory=None) -> Tensor",
        eye,
    )
    .decompose(decompose::eye)
    .doc("Ones on the diagonal of a square of zeros."),
    OpDef::new(
        "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None) -> Tensor",
        eye,
    )
    .decompose(decompose::eye)
    .doc("Ones on the diagonal of a rectangle of zeros."),
    OpDef::new("aten::tril(Tensor self, SymInt diagonal=0) -> Tensor", triangle)
        .decompose(decompose::tril)
        .vjp(view::gradient::tril)
        .doc("Each matrix with zeros above a diagonal.")
        .in_place(&["tril_"]),
    OpDef::new("aten::triu(Tensor self, SymInt diagonal=0) -> Tensor", triangle)
        .decompose(decompose::triu)
        .vjp(view::gradient::triu)
        .doc("Each matrix with zeros below a diagonal.")
        .in_place(&["triu_"]),
    OpDef::new(
        "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None) -> Tensor",
        triangle_indices,
    )
    .doc("The rows and columns of the elements on and below a diagonal."),
    OpDef::new(
        "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, \
         Device? device=None, bool? pin_memory=None) -> Tensor",
        triangle_indices,
    )
    .doc("The rows and columns of the elements on and above a diagonal."),
    OpDef::new("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot)
        .decompose(index::decompose::one_hot)
        .doc("For each index a row of zeros with a one at it."),
];

/// The dtype that was asked for.
pub(crate) fn dtype<T>(args: &Args<'_, T>) -> Result<Option<DType>> {
    check_layout(args)?;
    args.position("dtype").map_or(Ok(None), |it| args.opt_dtype(it))
}

/// A new tensor on the device that was asked for.
pub(crate) fn fresh<T>(args: &Args<'_, T>, meta: TensorMeta) -> Result<Vec<Output>> {
    if meta.sizes.iter().any(|it| it.as_int().is_some_and(|it| it < 0)) {
        return Err(args.bad_shape(format!("{}: Dimension size must be non-negative.", args.op.schema.name)));
    }
    let device = device(args, &meta.device);
    Ok(vec![Output::Tensor(TensorMeta { device, ..meta })])
}

/// Of the sizes in the argument `size`; of the dtype of `self` where there is one.
fn sized(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let size = args.position("size").ok_or_else(|| args.invalid("there is no argument `size`"))?;
    let own = match size {
        0 => DType::Float32,
        _ => args.tensor(0)?.dtype,
    };
    let dtype = dtype(args)?.unwrap_or(own);
    if let Some(value) = args.position("fill_value") {
        check_fits(args.scalar(value)?, dtype)?;
    }
    let format = memory_format(args)?.unwrap_or(MemoryFormat::Contiguous);
    fresh(args, formatted(args, dtype, args.sym_ints(size)?, format, None)?)
}

fn strided(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let Output::Tensor(meta) = sized(args)?.swap_remove(0) else { return Err(args.invalid("not a tensor")) };
    let stride = args.position("stride").ok_or_else(|| args.invalid("there is no argument `stride`"))?;
    let strides = args.sym_ints(stride)?;
    if strides.len() != meta.sizes.len() {
        let what = format!(
            "dimensionality of sizes ({}) must match dimensionality of strides ({})",
            meta.sizes.len(),
            strides.len()
        );
        return Err(args.bad_shape(what));
    }
    Ok(vec![Output::Tensor(TensorMeta { strides, ..meta })])
}

fn permuted(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let Output::Tensor(mut meta) = sized(args)?.swap_remove(0) else { return Err(args.invalid("not a tensor")) };
    let order = args.ints(1)?;
    let mut seen = vec![false; meta.sizes.len()];
    let is_order = order.len() == seen.len()
        && order.iter().all(|&it| {
            usize::try_from(it).ok().and_then(|it| seen.get_mut(it)).is_some_and(|seen| !std::mem::replace(seen, true))
        });
    if !is_order {
        return Err(args.invalid(format!("physical_layout {order:?} does not name every dimension once")));
    }
    let mut stride = SymInt::ONE;
    for &dim in order.iter().rev() {
        meta.strides[dim as usize] = stride.clone();
        stride *= &meta.sizes[dim as usize].max(&SymInt::ONE);
    }
    Ok(vec![Output::Tensor(meta)])
}

fn full(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let value = args.scalar(1)?;
    let dtype = dtype(args)?.unwrap_or(value.default_dtype());
    check_fits(value, dtype)?;
    fresh(args, TensorMeta::contiguous(dtype, args.sym_ints(0)?))
}

fn scalar_tensor(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = dtype(args)?.unwrap_or(DType::Float32);
    // What is not known yet is checked where it is.
    if let Some(value) = args.values[0].as_scalar() {
        check_fits(value, dtype)?;
    }
    fresh(args, TensorMeta::contiguous(dtype, Vec::new()))
}

pub(crate) fn like(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let dtype = dtype(args)?.unwrap_or(this.dtype);
    if let Some(value) = args.position("fill_value") {
        check_fits(args.scalar(value)?, dtype)?;
    }
    let format = memory_format(args)?.unwrap_or(MemoryFormat::Preserve);
    let meta = formatted(args, dtype, this.sizes.clone(), format, Some(this))?;
    fresh(args, TensorMeta { device: this.device.clone(), ..meta })
}

fn arange(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let zero = Value::int(0);
    let one = Value::int(1);
    let n = args.op.schema.n_positional();
    let (start, end, step) = match n {
        1 => (&zero, &args.values[0], &one),
        2 => (&args.values[0], &args.values[1], &one),
        _ => (&args.values[0], &args.values[1], &args.values[2]),
    };
    let are_ints = [start, end, step].iter().all(|it| matches!(it, Value::Int(_) | Value::Bool(_)));
    let dtype = dtype(args)?.unwrap_or(if are_ints { DType::Int64 } else { DType::Float32 });
    if matches!(dtype.kind(), DTypeKind::Bool | DTypeKind::Complex) {
        return Err(args.no_kernel("arange_cpu", dtype));
    }
    let size = if let (Value::Int(start), Value::Int(end), Value::Int(step)) = (start, end, step) {
        int_range(args, start, end, step)?
    } else {
        let known =
            |it: &Value<TensorMeta>| it.as_scalar().ok_or_else(|| args.unsupported("a range of unknown numbers"));
        let (start, end, step) = (known(start)?, known(end)?, known(step)?);
        if dtype == DType::Int64 {
            let ints = [start, end, step].map(|it| SymInt::from(it.to_i64()));
            int_range(args, &ints[0], &ints[1], &ints[2])?
        } else {
            float_range(args, start.to_f64(), end.to_f64(), step.to_f64())?
        }
    };
    fresh(args, TensorMeta::contiguous(dtype, vec![size]))
}

fn int_range<T>(args: &Args<'_, T>, start: &SymInt, end: &SymInt, step: &SymInt) -> Result<SymInt> {
    if *step == 0 {
        return Err(args.invalid("step must be nonzero"));
    }
    if let (Some(length), Some(step)) = ((end - start).as_int(), step.as_int())
        && length != 0
        && (length > 0) != (step > 0)
    {
        return Err(args.invalid("upper bound and lower bound inconsistent with step sign"));
    }
    // Rounded up: the negative of the negated quotient rounded down.
    Ok(-(start - end).floor_div(step))
}

fn float_range<T>(args: &Args<'_, T>, start: f64, end: f64, step: f64) -> Result<SymInt> {
    if step == 0.0 {
        return Err(args.invalid("step must be nonzero"));
    }
    if !start.is_finite() || !end.is_finite() {
        return Err(args.invalid(format!("unsupported range: {start} -> {end}")));
    }
    let size = ((end - start) / step).ceil();
    if end != start && (end > start) != (step > 0.0) {
        return Err(args.invalid("upper bound and lower bound inconsistent with step sign"));
    }
    if size.is_nan() || size >= i64::MAX as f64 {
        return Err(args.invalid("invalid size, possible overflow?"));
    }
    Ok(SymInt::from(size as i64))
}

fn linspace(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let mut is_complex = false;
    for index in 0..2 {
        match args.operand(index)? {
            Operand::Tensor(it) if !it.sizes.is_empty() => {
                return Err(args.bad_shape(format!(
                    "linspace only supports 0-dimensional start and end tensors, but got {} tensor with {} \
                         dimension(s).",
                    args.op.schema.args[index].name,
                    it.sizes.len()
                )));
            }
            Operand::Tensor(it) => is_complex |= it.dtype.is_complex(),
            Operand::Scalar(it) => is_complex |= matches!(it, Scalar::Complex(_)),
        }
    }
    let steps = args.sym_int(2)?.clone();
    if steps.as_int().is_some_and(|it| it < 0) {
        return Err(args.invalid("number of steps must be non-negative"));
    }
    let dtype = dtype(args)?.unwrap_or(if is_complex { DType::Complex64 } else { DType::Float32 });
    if is_complex && !dtype.is_complex() {
        let name = &args.op.schema.name;
        let what =
            format!("torch.{name}(): inferred dtype complex64 can't be safely cast to passed dtype {}", dtype.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    if dtype == DType::Bool {
        return Err(args.no_kernel(&format!("{}_cpu", args.op.schema.name), dtype));
    }
    fresh(args, TensorMeta::contiguous(dtype, vec![steps]))
}

/// Unlike `arange`, floats unless it is said otherwise, and the end belongs to it.
fn range(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let dtype = dtype(args)?.unwrap_or(DType::Float32);
    if matches!(dtype.kind(), DTypeKind::Bool | DTypeKind::Complex) {
        return Err(args.no_kernel("range_cpu", dtype));
    }
    let step = if args.op.schema.args[2].is_kwarg_only { 1.0 } else { args.float(2)? };
    // An integer result has integer bounds and steps.
    let whole = |it: f64| if dtype.kind() == DTypeKind::Int { it.trunc() } else { it };
    let (start, end, step) = (whole(args.float(0)?), whole(args.float(1)?), whole(step));
    if step == 0.0 {
        return Err(args.invalid("step must be nonzero"));
    }
    if !start.is_finite() || !end.is_finite() {
        return Err(args.invalid(format!("unsupported range: {start} -> {end}")));
    }
    let n = ((end - start) / step).floor() + 1.0;
    if end != start && (end > start) != (step > 0.0) {
        return Err(args.invalid("upper bound and lower bound inconsistent with step sign"));
    }
    if n.is_nan() || n >= i64::MAX as f64 {
        return Err(args.invalid("invalid size, possible overflow?"));
    }
    fresh(args, TensorMeta::contiguous(dtype, vec![SymInt::from(n as i64)]))
}

fn eye(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let n = args.sym_int(0)?.clone();
    let m = match args.op.schema.args[1].is_kwarg_only {
        true => n.clone(),
        false => args.sym_int(1)?.clone(),
    };
    for (name, size) in [("n", &n), ("m", &m)] {
        if size.as_int().is_some_and(|it| it < 0) {
            return Err(args.invalid(format!("{name} must be greater or equal to 0, got {size}")));
        }
    }
    fresh(args, TensorMeta::contiguous(dtype(args)?.unwrap_or(DType::Float32), vec![n, m]))
}

fn triangle(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    if this.sizes.len() < 2 {
        let name = &args.op.schema.name;
        return Err(args.bad_shape(format!("{name}: input tensor must have at least 2 dimensions")));
    }
    Ok(contiguous(this.dtype, this.sizes.clone()))
}

fn triangle_indices(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let (rows, cols, offset) = (args.int(0)?, args.int(1)?, args.int(2)?);
    if rows < 0 || cols < 0 {
        let (name, value) = if rows < 0 { ("row", rows) } else { ("col", cols) };
        return Err(args.invalid(format!("{name} must be non-negative, got {value}")));
    }
    let dtype = dtype(args)?.unwrap_or(DType::Int64);
    if !matches!(dtype, DType::Int32 | DType::Int64) {
        return Err(args.no_kernel(&args.op.schema.name, dtype));
    }
    let below = n_below(rows.into(), cols.into(), offset.into());
    let n = match args.op.schema.name.as_str() {
        "tril_indices" => below,
        _ => i128::from(rows) * i128::from(cols) - n_below(rows.into(), cols.into(), i128::from(offset) - 1),
    };
    let n = i64::try_from(n).map_err(|_| args.invalid("invalid size, possible overflow?"))?;
    fresh(args, TensorMeta::contiguous(dtype, vec![SymInt::from(2), SymInt::from(n)]))
}

/// How many elements of a matrix lie on and below a diagonal: row `i` has `i + offset + 1` of them, from 0 to `cols`.
fn n_below(rows: i128, cols: i128, offset: i128) -> i128 {
    let first_partial = (-offset).clamp(0, rows);
    let first_whole = (cols - offset - 1).clamp(first_partial, rows);
    let n_partial = first_whole - first_partial;
    let partial = n_partial * (first_partial + offset + 1) + n_partial * (n_partial - 1) / 2;
    partial + (rows - first_whole) * cols
}

fn one_hot(args: &Args<'_, TensorMeta>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    if this.dtype != DType::Int64 {
        let what = "one_hot is only applicable to index tensor of type LongTensor.";
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    match args.int(1)? {
        // As many classes as the largest index asks for.
        -1 => Ok(vec![Output::unknown(DType::Int64, this.sizes.iter().cloned().chain([args.new_size()]).collect())]),
        n if n < 1 => Err(args.invalid("Class values must be non-negative.")),
        n => {
            let mut sizes = this.sizes.clone();
            sizes.push(SymInt::from(n));
            Ok(contiguous(DType::Int64, sizes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::n_below;

    #[test]
    fn triangles_count_as_their_elements_do() {
        for (rows, cols, offset) in [(3, 4, 0), (4, 3, 1), (4, 3, -2), (3, 3, 5), (3, 3, -5), (0, 3, 0), (3, 0, 1)] {
            let counted: i128 = (0..rows).map(|row| (0..cols).filter(|col| col - row <= offset).count() as i128).sum();
            assert_eq!(n_below(rows, cols, offset), counted, "{rows} x {cols}, {offset}");
        }
    }
}
