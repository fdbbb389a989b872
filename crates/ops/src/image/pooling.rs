//! Pooling with windows of a fixed size. `max_pool2d_with_indices`, `avg_pool2d` and their three-dimensional kin have
//! kernels; the others are made of them.

use crate::core::decompositions::Call;
use crate::core::memory_format::in_format_of;
use crate::image::pooling_gradient;
use crate::index;
use crate::{Args, Cx, OpDef, Output, Tags, Tol, Traced, Value, contiguous};
use tracefx_core::{DType, Result};
use tracefx_ir::TensorMeta;
use tracefx_sym::SymInt;

/// The rows of this family.
pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, \
             int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        max_pool2d,
    )
    .vjp(pooling_gradient::max_pool2d)
    .doc("The largest element of each window, and where in its plane it stands.")
    .tags(Tags::CORE),
    OpDef::new(
        "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, \
             int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        max_pool3d,
    )
    .vjp(pooling_gradient::max_pool3d)
    .doc("The largest element of each window, and where in its volume it stands.")
    .tags(Tags::CORE),
    OpDef::composite(
        "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], \
             int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
        max_pool1d_with_indices,
    )
    .tags(Tags::FRESH)
    .doc("The largest element of each window, and where it stands.")
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] \
             dilation=[1], bool ceil_mode=False) -> Tensor",
        max_pool1d,
    )
    .tags(Tags::FRESH)
    .doc("The largest element of each window.")
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] \
             dilation=1, bool ceil_mode=False) -> Tensor",
        max_values,
    )
    .tags(Tags::FRESH)
    .doc("The largest element of each window.")
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] \
             dilation=1, bool ceil_mode=False) -> Tensor",
        max_values,
    )
    .tags(Tags::FRESH)
    .doc("The largest element of each window.")
    .tolerance(Tol::Exact),
    OpDef::composite(
        "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool \
             ceil_mode=False, bool count_include_pad=True) -> Tensor",
        avg_pool1d,
    )
    .tags(Tags::FRESH)
    .tags(Tags::CORE.with(Tags::DECOMPOSED))
    .doc("The mean of each window."),
    OpDef::new(
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool \
             ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        avg_pool2d,
    )
    .vjp(pooling_gradient::avg_pool2d)
    .doc("The mean of each window.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new(
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool \
             ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        avg_pool3d,
    )
    .vjp(pooling_gradient::avg_pool3d)
    .doc("The mean of each window.")
    .tags(Tags::CORE)
    .tolerance(Tol::Default),
    OpDef::new("aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", max_unpool2d)
        .decompose(index::decompose::max_unpool)
        .vjp(pooling_gradient::max_unpool2d)
        .doc("Puts each element where its index says, among zeros."),
    OpDef::new(
        "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) \
             -> Tensor",
        max_unpool3d,
    )
    .decompose(index::decompose::max_unpool)
    .vjp(pooling_gradient::max_unpool3d)
    .doc("Puts each element where its index says, among zeros."),
];

type Meta<'a> = Args<'a, TensorMeta>;

fn show(sizes: &[SymInt], separator: &str) -> String {
    let items: Vec<_> = sizes.iter().map(SymInt::to_string).collect();
    items.join(separator)
}

/// One int per dimension; a single one counts for all.
fn spatial(args: &Meta<'_>, index: usize, n_dims: usize) -> Result<Vec<i64>> {
    let values = args.ints(index)?;
    match values.len() {
        1 => Ok(vec![values[0]; n_dims]),
        n if n == n_dims => Ok(values),
        _ => {
            let name = &args.op.schema.args[index].name;
            Err(args.invalid(format!("{name} must be a single int, or a tuple of {n_dims} ints")))
        }
    }
}

/// The windows of a pooling, as its arguments say.
pub(crate) struct Windows {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    is_ceil: bool,
}

impl Windows {
    /// Reads the arguments from `at` on: kernel size, stride, padding, perhaps dilation, and the rounding.
    pub(crate) fn read(args: &Meta<'_>, at: usize, n_dims: usize, has_dilation: bool) -> Result<Self> {
        let kernel = spatial(args, at, n_dims)?;
        let stride = if args.list(at + 1)?.is_empty() { kernel.clone() } else { spatial(args, at + 1, n_dims)? };
        let padding = spatial(args, at + 2, n_dims)?;
        let dilation = if has_dilation { spatial(args, at + 3, n_dims)? } else { vec![1; n_dims] };
        let is_ceil = args.bool(at + if has_dilation { 4 } else { 3 })?;
        for (values, what) in [(&kernel, "kernel size"), (&stride, "stride"), (&dilation, "dilation")] {
            if values.iter().any(|&it| it <= 0) {
                return Err(args.invalid(format!("{what} should be greater than zero, but got {values:?}")));
            }
        }
        for dim in 0..n_dims {
            let (pad, kernel, dilation) = (padding[dim], kernel[dim], dilation[dim]);
            if pad < 0 {
                return Err(args.invalid(format!("pad must be non-negative, but got pad: {pad}")));
            }
            let Some(reach) = (kernel - 1).checked_mul(dilation).and_then(|it| it.checked_add(1)) else {
                return Err(args.invalid(format!("a kernel of {kernel} with a dilation of {dilation} reaches too far")));
            };
            if pad > reach / 2 {
                return Err(args.invalid(format!(
                    "pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={kernel} and \
                     dilation={dilation}"
                )));
            }
        }
        Ok(Windows { kernel, stride, padding, dilation, is_ceil })
    }

    /// How many windows there are in a dimension of this size.
    fn count(&self, dim: usize, size: &SymInt) -> SymInt {
        let reach = self.dilation[dim] * (self.kernel[dim] - 1) + 1;
        let stride = SymInt::from(self.stride[dim]);
        let room = size + (2 * self.padding[dim] - reach);
        if !self.is_ceil {
            return room.floor_div(&stride) + 1;
        }
        // The last window has to start inside the input or its left padding.
        let starts_inside = (size + (self.padding[dim] - 1)).floor_div(&stride) + 1;
        ((room + (self.stride[dim] - 1)).floor_div(&stride) + 1).min(&starts_inside)
    }

    pub(crate) fn result(&self, args: &Meta<'_>, input: &TensorMeta) -> Result<TensorMeta> {
        let n_dims = self.kernel.len();
        let n_lead = lead(args, input, n_dims)?;
        let mut sizes = input.sizes[..n_lead].to_vec();
        sizes.extend(input.sizes[n_lead..].iter().enumerate().map(|(dim, size)| self.count(dim, size)));
        if sizes[n_lead..].iter().any(|it| args.less(it, &SymInt::ONE)) {
            return Err(args.bad_shape(format!(
                "Given input size: ({}). Calculated output size: ({}). Output size is too small",
                show(&input.sizes[n_lead - 1..], "x"),
                show(&sizes[n_lead - 1..], "x")
            )));
        }
        Ok(in_format_of(input, input.dtype, sizes))
    }
}

/// The number of dimensions in front of the spatial ones: channels, and perhaps a batch, which alone may be empty.
pub(crate) fn lead(args: &Meta<'_>, input: &TensorMeta, n_dims: usize) -> Result<usize> {
    let rank = input.sizes.len();
    let is_empty = |sizes: &[SymInt]| sizes.contains(&SymInt::from(0));
    let is_ok = match rank.checked_sub(n_dims) {
        Some(1) => !is_empty(&input.sizes),
        Some(2) => !is_empty(&input.sizes[1..]),
        _ => false,
    };
    if !is_ok {
        return Err(args.bad_shape(format!(
            "Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got: [{}]",
            n_dims + 1,
            n_dims + 2,
            show(&input.sizes, ", ")
        )));
    }
    Ok(rank - n_dims)
}

fn max_pool(args: &Meta<'_>, n_dims: usize) -> Result<Vec<Output>> {
    let windows = Windows::read(args, 1, n_dims, true)?;
    let values = windows.result(args, args.tensor(0)?)?;
    let indices = TensorMeta { dtype: DType::Int64, ..values.clone() };
    Ok(vec![Output::Tensor(values), Output::Tensor(indices)])
}

fn max_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    max_pool(args, 2)
}

fn max_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    max_pool(args, 3)
}

fn avg_pool(args: &Meta<'_>, n_dims: usize) -> Result<Vec<Output>> {
    let windows = Windows::read(args, 1, n_dims, false)?;
    if args.opt_int(6)? == Some(0) {
        return Err(args.invalid("divisor must be not zero"));
    }
    Ok(vec![Output::Tensor(windows.result(args, args.tensor(0)?)?)])
}

fn avg_pool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    avg_pool(args, 2)
}

fn avg_pool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    // Unlike the two-dimensional one, it does not keep channels last.
    let mut outputs = avg_pool(args, 3)?;
    outputs.iter_mut().for_each(make_contiguous);
    Ok(outputs)
}

/// Makes a result row-major, for operators that do not keep the format of their input.
pub(crate) fn make_contiguous(output: &mut Output) {
    if let Output::Tensor(meta) = output {
        *meta = TensorMeta::contiguous(meta.dtype, std::mem::take(&mut meta.sizes));
    }
}

fn max_unpool(args: &Meta<'_>, n_dims: usize) -> Result<(DType, Vec<SymInt>)> {
    let (input, indices, size) = (args.tensor(0)?, args.tensor(1)?, args.sym_ints(2)?);
    if indices.dtype != DType::Int64 {
        let what = format!("elements in indices should be type int64 but got: {}", indices.dtype.name());
        return Err(args.invalid(what));
    }
    if size.len() != n_dims {
        return Err(
            args.invalid(format!("There should be exactly {n_dims} elements in output_size, but got {}", size.len()))
        );
    }
    if !args.agree(&indices.sizes, &input.sizes) {
        return Err(args.bad_shape(format!(
            "Expected shape of indices to be same as that of the input tensor ([{}]) but got indices tensor with \
                 shape: [{}]",
            show(&input.sizes, ", "),
            show(&indices.sizes, ", ")
        )));
    }
    let n_lead = lead(args, input, n_dims)?;
    Ok((input.dtype, [&input.sizes[..n_lead], &size].concat()))
}

fn max_unpool2d(args: &Meta<'_>) -> Result<Vec<Output>> {
    let (dtype, sizes) = max_unpool(args, 2)?;
    Ok(vec![Output::Tensor(in_format_of(args.tensor(0)?, dtype, sizes))])
}

fn max_unpool3d(args: &Meta<'_>) -> Result<Vec<Output>> {
    if args.ints(3)?.iter().any(|&it| it <= 0) {
        return Err(args.invalid("strides should be greater than zero"));
    }
    let (dtype, sizes) = max_unpool(args, 3)?;
    Ok(contiguous(dtype, sizes))
}

fn max_values(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let op = format!("{}_with_indices", args.op.schema.name);
    Ok(vec![cx.aten(&op, &args.values)?])
}

/// The arguments of a one-dimensional pooling for the two-dimensional one, over windows one element high.
fn widened(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let input = *args.tensor(0)?;
    let rank = cx.meta(input).sizes.len();
    if rank != 2 && rank != 3 {
        return Err(args.bad_shape(format!("{}() Expected 2D or 3D input tensor", args.op.schema.name)));
    }
    let mut call = vec![cx.aten("unsqueeze", [&input.into(), &Value::int(-2)])?];
    for (index, spec) in args.op.schema.args.iter().enumerate().skip(1) {
        let other_dim = match &*spec.name {
            "padding" => 0,
            "kernel_size" | "stride" | "dilation" => 1,
            _ => {
                call.push(args.values[index].clone());
                continue;
            }
        };
        call.push(match &args.ints(index)?[..] {
            [] => Value::ints(&[]),
            [one] => Value::ints(&[other_dim, *one]),
            _ => return Err(args.invalid(format!("{} must be a single int", spec.name))),
        });
    }
    Ok(call)
}

fn max_pool1d_with_indices(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let call = widened(cx, args)?;
    let results = cx.aten_all("max_pool2d_with_indices", &call, &[])?;
    results.into_iter().map(|it| cx.aten("squeeze.dim", [&it, &Value::int(-2)])).collect()
}

fn max_pool1d(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    // Without gradients PyTorch's CPU writes a row-major result, however the input lies.
    let mut args = Call::new(args.op, args.values.clone());
    args.values[0] = cx.aten("contiguous", [&args.values[0]])?;
    let mut results = max_pool1d_with_indices(cx, &args)?;
    results.truncate(1);
    Ok(results)
}

fn avg_pool1d(cx: &mut Cx<'_>, args: &Call<'_>) -> Result<Vec<Traced>> {
    let call = widened(cx, args)?;
    let result = cx.aten("avg_pool2d", &call)?;
    Ok(vec![cx.aten("squeeze.dim", [&result, &Value::int(-2)])?])
}
