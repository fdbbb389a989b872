//! Short-time Fourier transforms: those of the frames of a signal, and back.

use crate::core::decompositions::{Call, tensor_of};
use crate::index::gather::wrong_dtype;
use crate::{Cx, OpDef, TensorRef, Tol, Traced, Value};
use tracefx_core::{DType, Result};
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    transform(
        "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, \
         bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> \
         Tensor",
        stft,
    )
    .doc("The Fourier transforms of frames of a signal."),
    transform(
        "aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? \
         window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, \
         bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        stft,
    )
    .doc("The Fourier transforms of frames of a signal, which is padded so that each one is around its place."),
    transform(
        "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, \
         bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool \
         return_complex=False) -> Tensor",
        istft,
    )
    .doc("The signal whose frames have these Fourier transforms."),
];

const fn transform(schema: &'static str, decompose: crate::Decompose) -> OpDef {
    OpDef::composite(schema, decompose).tolerance(Tol::Scaled(10.0))
}

/// What both directions are told of the frames.
struct Frames {
    n_fft: i64,
    hop: i64,
    n_window: i64,
    window: Option<TensorRef>,
}

impl Frames {
    fn new(cx: &Cx<'_>, args: &Call<'_>) -> Result<Self> {
        let n_fft = args.int(1)?;
        let (hop, n_window) = (args.opt_int(2)?.unwrap_or(n_fft / 4), args.opt_int(3)?.unwrap_or(n_fft));
        let refuse = |what: String| args.invalid(format!("{}: {what}", args.op.schema.name));
        if hop <= 0 {
            return Err(refuse(format!("expected hop_length > 0, but got hop_length={hop}")));
        }
        if !(0 < n_window && n_window <= n_fft) {
            return Err(refuse(format!("expected 0 < win_length <= n_fft, but got win_length={n_window}")));
        }
        let window = args.opt_tensor(4)?.copied();
        if let Some(window) = window
            && !args.agree(&cx.meta(window).sizes, &[SymInt::from(n_window)])
        {
            let sizes = &cx.meta(window).sizes;
            let what = format!(
                "expected a 1D window tensor of size equal to win_length={n_window}, but got window with size {sizes:?}"
            );
            return Err(refuse(what));
        }
        Ok(Frames { n_fft, hop, n_window, window })
    }

    /// The window, with zeros around it where it is shorter than the transforms.
    fn window(&self, cx: &mut Cx<'_>, dtype: DType) -> Result<Traced> {
        let window = match self.window {
            Some(window) => window.into(),
            None => {
                let sizes = Value::ints(&[self.n_window]);
                cx.aten_with("ones", [&sizes], &[("dtype", Value::DType(dtype))])?
            }
        };
        if self.n_window == self.n_fft {
            return Ok(window);
        }
        let left = (self.n_fft - self.n_window) / 2;
        let padding = Value::ints(&[left, self.n_fft - self.n_window - left]);
        cx.aten("constant_pad_nd", [&window, &padding, &Value::int(0)])
    }

    fn has_window(&self) -> bool {
        self.window.is_some() || self.n_window != self.n_fft
    }
}

/// The option of this name; `None` where the overload lacks it.
fn option(args: &Call<'_>, name: &str) -> Traced {
    args.position(name).map_or(Value::None, |it| args.values[it].clone())
}

fn is_true(args: &Call<'_>, name: &str) -> bool {
    option(args, name) == Value::Bool(true)
}

fn norm(args: &Call<'_>) -> Traced {
    if is_true(args, "normalized") { Value::Str("ortho".into()) } else { Value::None }
}

/// Follows `stft` of aten/src/ATen/native/SpectralOps.cpp.
fn stft(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    if is_true(args, "align_to_window") {
        return Err(args.unsupported("stft with frames that are aligned to the window"));
    }
    let window_dtype = args.opt_tensor(4)?.map(|it| cx.meta(*it).dtype);
    let is_complex = meta.dtype.is_complex() || window_dtype.is_some_and(DType::is_complex);
    let returns_complex = match option(args, "return_complex") {
        Value::Bool(it) => it,
        _ if is_complex => true,
        _ => {
            return Err(args.invalid(
                "stft requires the return_complex parameter be given for real inputs, and will further require that \
                 return_complex=True in a future PyTorch release.",
            ));
        }
    };
    if !meta.dtype.is_float() && !meta.dtype.is_complex() || !(1..=2).contains(&meta.sizes.len()) {
        let what = format!(
            "stft: expected a 1D or 2D tensor of floating types, but got {} with {} dimensions",
            meta.dtype,
            meta.sizes.len()
        );
        return Err(wrong_dtype(args, what));
    }
    let n_fft = args.int(1)?;
    let mut input = Traced::from(this);
    if meta.sizes.len() == 1 {
        input = cx.aten("unsqueeze", [&input, &Value::int(0)])?;
    }
    if is_true(args, "center") {
        // Padding of other kinds than zeros is for tensors with channels.
        let channels = cx.aten("unsqueeze", [&input, &Value::int(0)])?;
        let padded = cx.aten("pad", [&channels, &Value::ints(&[n_fft / 2, n_fft / 2]), &option(args, "pad_mode")])?;
        input = cx.aten("squeeze.dim", [&padded, &Value::int(0)])?;
    }
    let n = cx.meta(tensor_of(&input)).sizes[1].clone();
    if n_fft <= 0 || args.less(&n, &n_fft.into()) {
        return Err(args.invalid(format!("stft: expected 0 < n_fft < {n}, but got n_fft={n_fft}")));
    }
    let frames = Frames::new(cx, args)?;
    let mut rows = cx.aten("unfold", [&input, &Value::int(1), &Value::int(n_fft), &Value::int(frames.hop)])?;
    if frames.has_window() {
        let window = frames.window(cx, meta.dtype)?;
        rows = cx.aten("mul.Tensor", [&rows, &window])?;
    }
    let is_onesided = match option(args, "onesided") {
        Value::Bool(it) => it,
        _ => !is_complex,
    };
    if is_complex && is_onesided {
        return Err(args.invalid("Cannot have onesided output if window or input is complex"));
    }
    let op = if is_onesided { "fft_rfft" } else { "fft_fft" };
    let spectra = cx.aten(op, [&rows, &Value::None, &Value::int(-1), &norm(args)])?;
    let mut res = cx.aten("transpose.int", [&spectra, &Value::int(1), &Value::int(2)])?;
    if meta.sizes.len() == 1 {
        res = cx.aten("squeeze.dim", [&res, &Value::int(0)])?;
    }
    Ok(vec![if returns_complex { res } else { cx.aten("view_as_real", [&res])? }])
}

/// Follows `istft` of aten/src/ATen/native/SpectralOps.cpp: frames are added where they overlap, and the sum is divided
/// by that of the squares of the windows.
fn istft(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let this = *args.tensor(0)?;
    let meta = cx.meta(this).clone();
    if !meta.dtype.is_complex() {
        return Err(wrong_dtype(
            args,
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.",
        ));
    }
    let (n_bins, n_frames) = match &meta.sizes[..] {
        [n_bins, n_frames] | [_, n_bins, n_frames] => (n_bins.as_int(), n_frames.as_int()),
        _ => {
            let what = format!("istft: expected a tensor with 2 or 3 dimensions, but got {}", meta.sizes.len());
            return Err(args.bad_shape(what));
        }
    };
    let (Some(n_bins), Some(n_frames)) = (n_bins, n_frames) else {
        return Err(args.unsupported("istft of frames whose number is not known"));
    };
    if meta.sizes.contains(&SymInt::ZERO) {
        return Err(args.bad_shape("istft: input tensor cannot be empty"));
    }
    let frames = Frames::new(cx, args)?;
    let n_fft = frames.n_fft;
    if frames.hop > frames.n_window {
        return Err(args.invalid("istft: expected 0 < hop_length <= win_length"));
    }
    let is_onesided = match option(args, "onesided") {
        Value::Bool(it) => it,
        _ => n_bins != n_fft,
    };
    let expected = if is_onesided { n_fft / 2 + 1 } else { n_fft };
    if n_bins != expected {
        return Err(args.bad_shape(format!(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match {expected}, but \
             got {n_bins}"
        )));
    }
    let real = crate::real_of(meta.dtype);
    let mut spectra = Traced::from(this);
    if meta.sizes.len() == 2 {
        spectra = cx.aten("unsqueeze", [&spectra, &Value::int(0)])?;
    }
    spectra = cx.aten("transpose.int", [&spectra, &Value::int(1), &Value::int(2)])?;
    let rows = if is_true(args, "return_complex") {
        if is_onesided {
            return Err(args.invalid("Cannot have onesided output if window or input is complex"));
        }
        cx.aten("fft_ifft", [&spectra, &Value::None, &Value::int(-1), &norm(args)])?
    } else {
        if !is_onesided {
            let half = Value::int(n_fft / 2 + 1);
            spectra = cx.aten("slice.Tensor", [&spectra, &Value::int(-1), &Value::int(0), &half])?;
        }
        cx.aten("fft_irfft", [&spectra, &Value::int(n_fft), &Value::int(-1), &norm(args)])?
    };
    let window = frames.window(cx, real)?;
    let rows = cx.aten("mul.Tensor", [&rows, &window])?;
    let squares = cx.aten("mul.Tensor", [&window, &window])?;
    let sizes = Value::ints(&[1, n_frames, n_fft]);
    let squares = cx.aten("expand", [&squares, &sizes])?;
    let n_all = n_fft + frames.hop * (n_frames - 1);
    let (sum, weight) = (frames.overlapped(cx, &rows, n_frames)?, frames.overlapped(cx, &squares, n_frames)?);
    let start = if is_true(args, "center") { n_fft / 2 } else { 0 };
    let length = args.position("length").map_or(Ok(None), |it| args.opt_int(it))?;
    let end = match length {
        Some(length) => start + length,
        None if start > 0 => n_all - n_fft / 2,
        None => n_all,
    };
    let mut part = |it: Traced| cx.aten("slice.Tensor", [&it, &Value::int(1), &Value::int(start), &Value::int(end)]);
    let (sum, weight) = (part(sum)?, part(weight)?);
    let least = cx.aten("abs", [&weight])?;
    let least = cx.aten("min", [&least])?;
    let is_covered = cx.aten("ge.Scalar", [&least, &Value::Float(1e-11)])?;
    cx.aten("_assert_async.msg", [&is_covered, &Value::Str("window overlap add min: the windows leave a gap".into())])?;
    let mut res = cx.aten("div.Tensor", [&sum, &weight])?;
    if end > n_all {
        res = cx.aten("constant_pad_nd", [&res, &Value::ints(&[0, end - n_all]), &Value::int(0)])?;
    }
    if meta.sizes.len() == 2 {
        res = cx.aten("squeeze.dim", [&res, &Value::int(0)])?;
    }
    Ok(vec![res])
}

impl Frames {
    /// The sum of frames that begin a hop apart.
    fn overlapped(&self, cx: &mut Cx<'_>, rows: &Traced, n_frames: i64) -> Result<Traced> {
        let meta = cx.meta(tensor_of(rows)).clone();
        let flat = cx.aten("reshape", [rows, &Value::List(vec![Value::Int(meta.sizes[0].clone()), Value::int(-1)])])?;
        let starts = cx.aten("arange", [&Value::int(n_frames)])?;
        let starts = cx.aten("mul.Scalar", [&starts, &Value::int(self.hop)])?;
        let starts = cx.aten("unsqueeze", [&starts, &Value::int(1)])?;
        let steps = cx.aten("arange", [&Value::int(self.n_fft)])?;
        let places = cx.aten("add.Tensor", [&starts, &steps])?;
        let places = cx.aten("reshape", [&places, &Value::ints(&[-1])])?;
        let sizes = vec![Value::Int(meta.sizes[0].clone()), Value::int(self.n_fft + self.hop * (n_frames - 1))];
        let zeros = cx.aten_with("zeros", [&Value::List(sizes)], &[("dtype", Value::DType(meta.dtype))])?;
        cx.aten("index_add", [&zeros, &Value::int(1), &places, &flat])
    }
}
