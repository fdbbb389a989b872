//! Fourier transforms. Three operators have kernels: of complex numbers, of real ones, and back to real ones; the
//! functions of `torch.fft` cut or pad their input and call one of them.

use crate::core::decompositions::{Call, size_list, tensor_of};
use crate::core::elementwise::to_float;
use crate::core::infer::sized_dim;
use crate::fft::gradient;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, complex_of};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::{SymBool, SymInt};

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    kernel("aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", |args| {
        let this = args.tensor(0)?;
        if !this.dtype.is_complex() {
            return Err(Diagnostic::new(Code::DTypeMismatch, "_fft_c2c takes complex numbers"));
        }
        Ok(vec![Output::Tensor(among_themselves(args, &dims_of(args)?)?)])
    })
    .vjp(gradient::c2c)
    .doc("The Fourier transform of complex numbers, forward or back."),
    kernel("aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", r2c)
        .tags(Tags::CORE)
        .vjp(gradient::r2c)
        .doc("The Fourier transform of real numbers; half of it where the rest follows by symmetry."),
    kernel("aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", c2r)
        .tags(Tags::CORE)
        .vjp(gradient::c2r)
        .doc("The inverse Fourier transform of the half of a symmetric signal."),
    transform("aten::fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |cx, args| {
        transformed(cx, args, Kind::C2C, true)
    })
    .doc("The Fourier transform, along one dimension."),
    transform(
        "aten::fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2C, true),
    )
    .doc("The Fourier transform, along two dimensions."),
    transform(
        "aten::fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2C, true),
    )
    .doc("The Fourier transform, along several dimensions."),
    transform("aten::fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |cx, args| {
        transformed(cx, args, Kind::C2C, false)
    })
    .doc("The inverse Fourier transform, along one dimension."),
    transform(
        "aten::fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2C, false),
    )
    .doc("The inverse Fourier transform, along two dimensions."),
    transform(
        "aten::fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2C, false),
    )
    .doc("The inverse Fourier transform, along several dimensions."),
    transform("aten::fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |cx, args| {
        transformed(cx, args, Kind::R2C, true)
    })
    .doc("The Fourier transform of real numbers, of which half is enough, along one dimension."),
    transform(
        "aten::fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::R2C, true),
    )
    .doc("The Fourier transform of real numbers, of which half is enough, along two dimensions."),
    transform(
        "aten::fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::R2C, true),
    )
    .doc("The Fourier transform of real numbers, of which half is enough, along several dimensions."),
    transform("aten::fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |cx, args| {
        transformed(cx, args, Kind::C2R, false)
    })
    .doc("The inverse Fourier transform with real results, along one dimension."),
    transform(
        "aten::fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2R, false),
    )
    .doc("The inverse Fourier transform with real results, along two dimensions."),
    transform(
        "aten::fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2R, false),
    )
    .doc("The inverse Fourier transform with real results, along several dimensions."),
    transform("aten::fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |cx, args| {
        transformed(cx, args, Kind::C2R, true)
    })
    .doc("The Fourier transform of half a symmetric signal, along one dimension."),
    transform(
        "aten::fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2R, true),
    )
    .doc("The Fourier transform of half a symmetric signal, along two dimensions."),
    transform(
        "aten::fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::C2R, true),
    )
    .doc("The Fourier transform of half a symmetric signal, along several dimensions."),
    transform("aten::fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", |cx, args| {
        transformed(cx, args, Kind::R2C, false)
    })
    .doc("The inverse Fourier transform of real numbers, of which half is enough, along one dimension."),
    transform(
        "aten::fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::R2C, false),
    )
    .doc("The inverse Fourier transform of real numbers, of which half is enough, along two dimensions."),
    transform(
        "aten::fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
        |cx, args| transformed(cx, args, Kind::R2C, false),
    )
    .doc("The inverse Fourier transform of real numbers, of which half is enough, along several dimensions."),
    transform("aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", |cx, args| shifted(cx, args, true))
        .tolerance(Tol::Exact)
        .doc("Zero frequency in the middle."),
    transform("aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", |cx, args| shifted(cx, args, false))
        .tolerance(Tol::Exact)
        .doc("Zero frequency in front."),
    transform(
        "aten::fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        frequencies,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The frequencies of a transform."),
    transform(
        "aten::fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? \
         device=None, bool? pin_memory=None) -> Tensor",
        frequencies,
    )
    .tags(Tags::NOT_DECOMPOSED)
    .doc("The frequencies of a transform."),
];

const fn kernel(schema: &'static str, rule: crate::Rule) -> OpDef {
    OpDef::new(schema, rule).tolerance(TOLERANCE)
}

const fn transform(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::composite(schema, decompose).tolerance(TOLERANCE)
}

const TOLERANCE: Tol = Tol::Scaled(4.0);

type Meta<'a> = Args<'a, TensorMeta>;
/// The dimensions that are named.
fn dims_of(args: &Meta<'_>) -> Result<Vec<usize>> {
    let rank = args.tensor(0)?.sizes.len();
    args.ints(1)?.iter().map(|&it| sized_dim(args, it, rank)).collect()
}

/// The last one of the dimensions that are named, and those before it.
fn last_dim(args: &Meta<'_>) -> Result<(usize, Vec<usize>)> {
    let mut dims = dims_of(args)?;
    match dims.pop() {
        Some(last) => Ok((last, dims)),
        None => Err(args.invalid(format!("{} needs a dimension", args.op.schema.name))),
    }
}

/// The result of a transform as it lies in memory after PyTorch's `_exec_fft` (aten/src/ATen/native/mkl/SpectralOps.cpp): the
/// dimensions that are not transformed first, in the order in which they lay, then these ones.
fn transformed_along(
    args: &Meta<'_>,
    this: &TensorMeta,
    dtype: DType,
    sizes: Vec<SymInt>,
    dims: &[usize],
) -> TensorMeta {
    let mut res = TensorMeta::contiguous(dtype, sizes);
    if res.sizes.contains(&SymInt::ZERO) {
        return res;
    }
    let others = (0..res.sizes.len()).filter(|it| !dims.contains(it)).collect();
    let mut stride = SymInt::ONE;
    for dim in in_memory_order(args, this, others).iter().chain(dims).rev() {
        res.strides[*dim] = stride.clone();
        stride *= &res.sizes[*dim];
    }
    res
}

/// The result of a transform of complex numbers, which goes through the dimensions as they lie in memory.
fn among_themselves(args: &Meta<'_>, dims: &[usize]) -> Result<TensorMeta> {
    let this = args.tensor(0)?;
    let dims = in_memory_order(args, this, dims.to_vec());
    Ok(transformed_along(args, this, this.dtype, this.sizes.clone(), &dims))
}

/// Dimensions from the longest stride to the shortest. Those of which that is not known stay.
fn in_memory_order(args: &Meta<'_>, this: &TensorMeta, mut dims: Vec<usize>) -> Vec<usize> {
    for end in 1..dims.len() {
        let is_longer =
            |at: usize| args.decide(&SymBool::gt(&this.strides[dims[end]], &this.strides[dims[at]])) == Some(true);
        let to = (0..end).rev().take_while(|&at| is_longer(at)).last().unwrap_or(end);
        dims[to..=end].rotate_right(1);
    }
    dims
}

fn r2c(args: &Meta<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let mut sizes = this.sizes.clone();
    let (last, before) = last_dim(args)?;
    if args.bool(3)? {
        sizes[last] = sizes[last].floor_div(&2.into()) + 1;
    }
    if !this.dtype.is_float() {
        return Err(Diagnostic::new(Code::DTypeMismatch, "_fft_r2c takes floats"));
    }
    let mut dims = in_memory_order(args, this, before);
    dims.push(last);
    Ok(vec![Output::Tensor(transformed_along(args, this, complex_of(this.dtype), sizes, &dims))])
}

fn c2r(args: &Meta<'_>) -> Result<Vec<Output>> {
    let this = args.tensor(0)?;
    let dtype = match this.dtype {
        DType::Complex64 => DType::Float32,
        DType::Complex128 => DType::Float64,
        _ => return Err(Diagnostic::new(Code::DTypeMismatch, "_fft_c2r takes complex numbers")),
    };
    let (last, before) = last_dim(args)?;
    let this = if before.is_empty() { this.clone() } else { among_themselves(args, &before)? };
    let mut sizes = this.sizes.clone();
    sizes[last] = args.sym_int(3)?.clone();
    Ok(vec![Output::Tensor(transformed_along(args, &this, dtype, sizes, &[last]))])
}

/// What goes in and what comes out: real or complex numbers.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    C2C,
    R2C,
    C2R,
}

/// The dimensions of a call and how many points of each are transformed, those of the result where that is real.
fn points(cx: &Cx<'_>, args: &Call<'_>, kind: Kind) -> Result<(Vec<usize>, Vec<i64>)> {
    let sizes = cx.meta(*args.tensor(0)?).sizes.clone();
    let rank = sizes.len();
    let is_single = matches!(args.values[2], Value::Int(_));
    let given = match &args.values[1] {
        Value::None => None,
        Value::Int(_) => Some(vec![args.int(1)?]),
        _ => Some(args.ints(1)?),
    };
    let dims = match &args.values[2] {
        Value::None => {
            let n = given.as_ref().map_or(rank, Vec::len);
            if n > rank {
                return Err(
                    args.bad_shape(format!("Got shape with {n} values but input tensor only has {rank} dimensions."))
                );
            }
            (rank - n..rank).collect()
        }
        Value::Int(_) => vec![sized_dim(args, args.int(2)?, rank)?],
        _ => args.ints(2)?.iter().map(|&it| sized_dim(args, it, rank)).collect::<Result<Vec<_>>>()?,
    };
    if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
        return Err(args.invalid("FFT dims must be unique"));
    }
    if given.as_ref().is_some_and(|it| it.len() != dims.len()) {
        return Err(args.invalid("When given, dim and shape arguments must have the same length"));
    }
    let known: Option<Vec<i64>> = dims.iter().map(|&dim| sizes[dim].as_int()).collect();
    let Some(own) = known else { return Err(args.unsupported("a transform over sizes that are not known")) };
    let n_dims = dims.len();
    let count = |(i, own): (usize, i64)| {
        let asked = given.as_ref().map_or(-1, |it| it[i]);
        let own = if kind == Kind::C2R && i + 1 == n_dims { 2 * (own - 1) } else { own };
        if asked == -1 && (given.is_none() || !is_single) { own } else { asked }
    };
    let counts: Vec<i64> = own.into_iter().enumerate().map(count).collect();
    match counts.iter().find(|it| **it < 1) {
        Some(n) => Err(args.invalid(format!("Invalid number of data points ({n}) specified"))),
        None => Ok((dims, counts)),
    }
}

/// The input with so many points along a dimension: cut, or padded with zeros.
fn resized(cx: &mut Cx<'_>, value: Traced, dim: usize, n: i64) -> Result<Traced> {
    let meta = cx.meta(tensor_of(&value)).clone();
    let Some(own) = meta.sizes[dim].as_int() else { return Ok(value) };
    if n <= own {
        return cx.aten("slice.Tensor", [&value, &Value::int(dim as i64), &Value::int(0), &Value::int(n)]);
    }
    let mut sizes = meta.sizes;
    sizes[dim] = SymInt::from(n - own);
    let zeros = cx.aten_with("zeros", [&size_list(&sizes)], &[("dtype", Value::DType(meta.dtype))])?;
    cx.aten("cat", [&Value::List(vec![value, zeros]), &Value::int(dim as i64)])
}

fn transformed(cx: &mut Cx<'_>, args: &Call<'_>, kind: Kind, is_forward: bool) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let own = cx.meta(this).dtype;
    if matches!(own, DType::Float16 | DType::BFloat16 | DType::Complex32) {
        return Err(Diagnostic::new(Code::DTypeMismatch, format!("Unsupported dtype {}", own.name())));
    }
    if kind == Kind::R2C && own.is_complex() {
        let what = format!("{} expects a real input tensor, but got {}", args.op.schema.name, own.name());
        return Err(Diagnostic::new(Code::DTypeMismatch, what));
    }
    let (dims, counts) = points(cx, args, kind)?;
    let scale = match (args.opt_str(3)?, is_forward) {
        (None | Some("backward"), true) | (Some("forward"), false) => 0,
        (None | Some("backward"), false) | (Some("forward"), true) => 2,
        (Some("ortho"), _) => 1,
        (Some(other), _) => return Err(args.invalid(format!("Invalid normalization mode: \"{other}\""))),
    };
    let real = to_float(own);
    let wanted = match kind {
        Kind::R2C => real,
        Kind::C2C | Kind::C2R if own.is_complex() => own,
        Kind::C2C | Kind::C2R => complex_of(real),
    };
    let mut value = Traced::from(this);
    if own != wanted {
        value = cx.aten_with("_to_copy", [&value], &[("dtype", Value::DType(wanted))])?;
    }
    for (i, (&dim, &n)) in dims.iter().zip(&counts).enumerate() {
        let is_half = kind == Kind::C2R && i + 1 == dims.len();
        value = resized(cx, value, dim, if is_half { n / 2 + 1 } else { n })?;
    }
    let Some(&n_last) = counts.last() else {
        return Ok(vec![value]);
    };
    let dims: Vec<i64> = dims.iter().map(|&it| it as i64).collect();
    let (numbers, scale) = (Value::ints(&dims), Value::int(scale));
    // A transform the other way round is the conjugate of that of the conjugates.
    Ok(vec![match kind {
        Kind::C2C => cx.aten("_fft_c2c", [&value, &numbers, &scale, &Value::Bool(is_forward)])?,
        Kind::R2C if is_forward => cx.aten("_fft_r2c", [&value, &numbers, &scale, &Value::Bool(true)])?,
        Kind::R2C => {
            let (before, last) = dims.split_at(dims.len() - 1);
            let half = cx.aten("_fft_r2c", [&value, &Value::ints(last), &scale, &Value::Bool(true)])?;
            let half = cx.aten("conj_physical", [&half])?;
            match before {
                [] => half,
                _ => cx.aten("_fft_c2c", [&half, &Value::ints(before), &scale, &Value::Bool(false)])?,
            }
        }
        Kind::C2R => {
            let value = if is_forward { cx.aten("conj_physical", [&value])? } else { value };
            cx.aten("_fft_c2r", [&value, &numbers, &scale, &Value::int(n_last)])?
        }
    }])
}

fn shifted(cx: &mut Cx<'_>, args: &Call<'_>, is_forward: bool) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let sizes = cx.meta(this).sizes.clone();
    let dims: Vec<i64> = if args.is_none(1) { (0..sizes.len() as i64).collect() } else { args.ints(1)? };
    let shift = |&dim: &i64| -> Result<Traced> {
        let size = &sizes[sized_dim(args, dim, sizes.len())?];
        Ok(Value::Int(if is_forward { size.floor_div(&2.into()) } else { (size + 1).floor_div(&2.into()) }))
    };
    let shifts = Value::List(dims.iter().map(shift).collect::<Result<_>>()?);
    Ok(vec![cx.aten("roll", [&this.into(), &shifts, &Value::ints(&dims)])?])
}

fn frequencies(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let (n, spacing) = (args.int(0)?, args.float(1)?);
    if n < 0 {
        return Err(args.invalid(format!("Invalid number of data points ({n}) specified")));
    }
    let options: Vec<(&str, Traced)> = ["dtype", "layout", "device", "pin_memory"]
        .iter()
        .filter_map(|name| Some((*name, args.values[args.position(name)?].clone())))
        .collect();
    let mut range = |from: i64, to: i64| -> Result<Traced> {
        cx.aten_with("arange.start", [&Value::Float(from as f64), &Value::Float(to as f64)], &options)
    };
    let whole = match args.op.schema.name == "fft_rfftfreq" {
        true => range(0, n / 2 + 1)?,
        false => {
            let parts = vec![range(0, (n + 1) / 2)?, range(-(n / 2), 0)?];
            cx.aten("cat", [&Value::List(parts)])?
        }
    };
    Ok(vec![cx.aten("mul.Scalar", [&whole, &Value::Float(1.0 / (n as f64 * spacing))])?])
}
