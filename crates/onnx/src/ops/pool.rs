//! Pooling.

use super::Rows;
use super::reduce::extremum_over;
use crate::call::{Call, Results, Tensor, check_listed, positive, unsupported};
use crate::element::computed_in;
use crate::graph::{Dim, X, int, ints, text};
use tracefx_core::{DType, Result};

pub(super) const OPS: Rows = &[
    ("aten._adaptive_avg_pool2d.default", |c| adaptive_average(c, 2)),
    ("aten._adaptive_avg_pool3d.default", |c| adaptive_average(c, 3)),
    ("aten.adaptive_max_pool2d.default", adaptive_max),
    ("aten.avg_pool1d.default", |c| average(c, 1)),
    ("aten.avg_pool2d.default", |c| average(c, 2)),
    ("aten.avg_pool3d.default", |c| average(c, 3)),
    ("aten.max_pool2d_with_indices.default", |c| max(c, 2)),
    ("aten.max_pool3d_with_indices.default", |c| max(c, 3)),
];

/// A window, as the arguments of a pool say it.
struct Window {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    ceil: bool,
}

impl Window {
    fn of(c: &Call<'_, '_>, n: usize) -> Result<Self> {
        let kernel = c.spatial("kernel_size", n)?;
        let stride = c.spatial("stride", n)?;
        let stride = if stride.is_empty() { kernel.clone() } else { stride };
        for &it in &stride {
            positive("stride", it)?;
        }
        Ok(Window { kernel, stride, padding: c.spatial("padding", n)?, ceil: c.bool("ceil_mode")? })
    }

    fn pads(&self) -> Vec<i64> {
        self.padding.iter().chain(&self.padding).copied().collect()
    }

    /// How far windows go beyond the end, where their number is rounded up: the last of them begins in the input or before it.
    fn excess(&self, sizes: &[i64], dilation: &[i64]) -> Vec<i64> {
        let each = sizes.iter().enumerate().map(|(at, &size)| {
            let (stride, pad) = (self.stride[at], self.padding[at]);
            let reach = dilation[at] * (self.kernel[at] - 1) + 1;
            let mut n = (size + 2 * pad - reach + stride - 1).div_euclid(stride) + 1;
            if (n - 1) * stride >= size + pad {
                n -= 1;
            }
            ((n - 1) * stride + reach - size - 2 * pad).max(0)
        });
        each.collect()
    }
}

/// The sizes of space, which have to be known.
fn space(x: &Tensor, n: usize) -> Result<Vec<i64>> {
    (x.rank() - n..x.rank()).map(|dim| x.size(dim)).collect()
}

/// The input with a batch, which ONNX asks for; and whether it had none.
fn batched(c: &mut Call<'_, '_>, x: &Tensor, n: usize) -> Result<(X, bool)> {
    Ok(if x.rank() == n + 1 { (c.g().unsqueeze(x, &[0])?, true) } else { (x.x.clone(), false) })
}

/// Adds a number around the dimensions of space.
fn padded(c: &mut Call<'_, '_>, x: &X, before: &[i64], after: &[i64], value: f64) -> Result<X> {
    let (pads, axes): (Vec<i64>, Vec<i64>) =
        (before.iter().chain(after).copied().collect(), (2..2 + before.len() as i64).collect());
    if pads.iter().all(|&it| it == 0) {
        return Ok(x.clone());
    }
    let (pads, value, axes) = (c.g().vector(&pads)?, c.number(value, x.dtype)?, c.g().vector(&axes)?);
    Ok(c.g().raw("Pad", &[x, &pads, &value, &axes], vec![text("mode", "constant")], x.dtype))
}

fn average(c: &mut Call<'_, '_>, n: usize) -> Result<Results> {
    let x = c.tensor("self")?;
    let window = Window::of(c, n)?;
    let counts_pad = c.bool("count_include_pad")?;
    let has_divisor = c.schema.is_some_and(|it| it.args.iter().any(|it| it.name == "divisor_override"));
    let divisor = if has_divisor { c.opt_int("divisor_override")? } else { None };
    let (wide, was_single) = batched(c, &x, n)?;
    let wide = c.g().cast(&wide, computed_in("AveragePool", x.x.dtype))?;
    let result = if window.ceil || divisor.is_some() {
        // Runtimes disagree on how many elements a window has that goes beyond the end: both sums are made here.
        let none = vec![0; n];
        let after = if window.ceil { window.excess(&space(&x, n)?, &vec![1; n]) } else { none.clone() };
        let ends: Vec<i64> = window.padding.iter().zip(&after).map(|(a, b)| a + b).collect();
        let area: i64 = window.kernel.iter().product();
        let sum = |c: &mut Call<'_, '_>, x: &X| {
            let attributes = vec![ints("kernel_shape", &window.kernel), ints("strides", &window.stride)];
            let mean = c.g().raw("AveragePool", &[x], attributes, x.dtype);
            let area = c.number(area as f64, x.dtype)?;
            c.g().math("Mul", &[&mean, &area])
        };
        let filled = padded(c, &wide, &window.padding, &ends, 0.0)?;
        let total = sum(c, &filled)?;
        let count = match divisor {
            Some(it) => c.number(it as f64, wide.dtype)?,
            None => {
                let (one, shape) = (c.number(1.0, wide.dtype)?, c.g().shape_of(&wide));
                let ones = c.g().expand(&one, &shape)?;
                let ones = padded(c, &ones, &window.padding, &window.padding, f64::from(u8::from(counts_pad)))?;
                let ones = padded(c, &ones, &none, &after, 0.0)?;
                sum(c, &ones)?
            }
        };
        c.g().math("Div", &[&total, &count])?
    } else {
        let attributes = vec![
            ints("kernel_shape", &window.kernel),
            ints("strides", &window.stride),
            ints("pads", &window.pads()),
            int("count_include_pad", counts_pad.into()),
        ];
        c.g().math_with("AveragePool", &[&wide], attributes)?
    };
    let result = c.g().cast(&result, x.x.dtype)?;
    Ok(if was_single { c.g().squeeze(&result, &[0])? } else { result }.into())
}

/// The greatest of each window, and its index in the plane, which ONNX counts over all planes.
fn max(c: &mut Call<'_, '_>, n: usize) -> Result<Results> {
    let x = c.tensor("self")?;
    let window = Window::of(c, n)?;
    let dilation = c.spatial("dilation", n)?;
    max_of(c, &x, n, &window, &dilation)
}

fn max_of(c: &mut Call<'_, '_>, x: &Tensor, n: usize, window: &Window, dilation: &[i64]) -> Result<Results> {
    let (wide, was_single) = batched(c, x, n)?;
    let computed = computed_in("MaxPool", x.x.dtype);
    let wide = c.g().cast(&wide, computed)?;
    let mut pads = window.pads();
    if window.ceil {
        let excess = window.excess(&space(x, n)?, dilation);
        pads[n..].iter_mut().zip(excess).for_each(|(pad, more)| *pad += more);
    }
    let attributes = vec![
        ints("kernel_shape", &window.kernel),
        ints("strides", &window.stride),
        ints("pads", &pads),
        ints("dilations", dilation),
    ];
    let dtypes = if c.used[1] { vec![computed, DType::Int64] } else { vec![computed] };
    let found = c.g().node("MaxPool", &[Some(&wide)], attributes, &dtypes);
    let mut results = vec![c.g().cast(&found[0], x.x.dtype)?];
    if let Some(indices) = found.get(1) {
        let sizes: Vec<Dim> = (x.rank() - n..x.rank()).map(|dim| c.size_of(x, dim)).collect();
        let sizes = c.g().dims(&sizes)?;
        let plane = c.g().reduce("ReduceProd", &sizes, &[0], false)?;
        results.push(c.g().math("Mod", &[indices, &plane])?);
    }
    let squeezed = results.into_iter().map(|it| if was_single { c.g().squeeze(&it, &[0]) } else { Ok(it) });
    let mut squeezed = squeezed.map(|it| it.map(Some)).collect::<Result<Vec<_>>>()?;
    squeezed.resize(2, None);
    Ok(Results(squeezed))
}

/// The sizes that an adaptive pool gives.
fn output_size(c: &Call<'_, '_>, n: usize) -> Result<Vec<i64>> {
    let sizes = c.spatial("output_size", n)?;
    check_listed(&sizes)?;
    if sizes.iter().any(|&it| it < 1) {
        return Err(unsupported("an adaptive pool of no elements has no translation"));
    }
    Ok(sizes)
}

/// The part of a dimension that an element of an adaptive pool is of.
fn part(at: i64, size: i64, n: i64) -> (i64, i64) {
    ((at * size).div_euclid(n), ((at + 1) * size + n - 1).div_euclid(n))
}

/// Windows of one size are a plain pool. Others are means of parts, one dimension after the other.
fn adaptive_average(c: &mut Call<'_, '_>, n: usize) -> Result<Results> {
    let x = c.tensor("self")?;
    let sizes = output_size(c, n)?;
    let known: Option<Vec<i64>> = x.sizes[x.rank() - n..].iter().map(tracefx_sym::SymInt::as_int).collect();
    let kernel = known.map(|it| it.iter().zip(&sizes).map(|(a, b)| if a % b == 0 { a / b } else { 0 }).collect());
    let is_plain = |it: &Vec<i64>| it.iter().all(|&it| it > 0) && sizes.iter().any(|&it| it != 1);
    if let Some(kernel) = kernel.filter(is_plain) {
        let (wide, was_single) = batched(c, &x, n)?;
        let attributes = vec![ints("kernel_shape", &kernel), ints("strides", &kernel)];
        let result = c.g().math_with("AveragePool", &[&wide], attributes)?;
        return Ok(if was_single { c.g().squeeze(&result, &[0])? } else { result }.into());
    }
    let mut result = c.g().cast(&x, crate::element::wide(x.x.dtype))?;
    for (at, &length) in sizes.iter().enumerate() {
        let dim = x.rank() - n + at;
        if length == 1 {
            result = c.g().reduce("ReduceMean", &result, &[dim as i64], true)?;
            continue;
        }
        let size = x.size(dim)?;
        let mut means = Vec::new();
        for to in 0..length {
            let (start, end) = part(to, size, length);
            let part = c.g().slice(&result, dim as i64, &Dim::Known(start), &Dim::Known(end), 1)?;
            means.push(c.g().reduce("ReduceMean", &part, &[dim as i64], true)?);
        }
        result = c.g().concat(&means.iter().collect::<Vec<_>>(), dim as i64);
    }
    Ok(result.into())
}

/// Windows of one size are a plain pool; others are taken one by one.
fn adaptive_max(c: &mut Call<'_, '_>) -> Result<Results> {
    let x = c.tensor("self")?;
    let out = output_size(c, 2)?;
    let (rows, columns) = (x.size(x.rank() - 2)?, x.size(x.rank() - 1)?);
    if rows % out[0] == 0 && columns % out[1] == 0 {
        let kernel = vec![rows / out[0], columns / out[1]];
        let window = Window { stride: kernel.clone(), kernel, padding: vec![0, 0], ceil: false };
        return max_of(c, &x, 2, &window, &[1, 1]);
    }
    let (first, rank) = (x.rank() as i64 - 2, x.rank());
    check_listed(&[rows, columns])?;
    let plane = c.number((rows * columns) as f64, DType::Int64)?;
    let all: Vec<i64> = (0..rows * columns).collect();
    let all = c.g().constant(&tracefx_core::Tensor::from_slice(&all, &[rows as usize, columns as usize])?)?;
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for cell in 0..out[0] * out[1] {
        let (row, column) = (part(cell / out[1], rows, out[0]), part(cell % out[1], columns, out[1]));
        let window = |c: &mut Call<'_, '_>, x: &X, first: i64| {
            let part = c.g().slice(x, first, &Dim::Known(row.0), &Dim::Known(row.1), 1)?;
            c.g().slice(&part, first + 1, &Dim::Known(column.0), &Dim::Known(column.1), 1)
        };
        let part = window(c, &x.x, first)?;
        values.push(extremum_over(c, "ReduceMax", &part, &[first, first + 1], true)?);
        if c.used[1] {
            let own = window(c, &all, 0)?;
            let own = c.g().reshape(&own, &[Dim::Known(-1)])?;
            let mut dims = vec![Dim::Known(0); rank - 2];
            dims.push(Dim::Known(-1));
            let shape = c.g().dims(&dims)?;
            let flat = c.g().raw("Reshape", &[&part, &shape], Vec::new(), part.dtype);
            let at = c.g().query("ArgMax", &[&flat], vec![int("axis", first), int("keepdims", 1)], DType::Int64)?;
            let found = c.g().raw("Gather", &[&own, &at], vec![int("axis", 0)], DType::Int64);
            let found = c.g().math("Mod", &[&found, &plane])?;
            indices.push(c.g().unsqueeze(&found, &[first + 1])?);
        }
    }
    let mut results = Vec::new();
    for cells in [values, indices] {
        if cells.is_empty() {
            results.push(None);
            continue;
        }
        let row = c.g().concat(&cells.iter().collect::<Vec<_>>(), first + 1);
        let mut dims = vec![Dim::Known(0); rank - 2];
        dims.extend([Dim::Known(out[0]), Dim::Known(out[1])]);
        let shape = c.g().dims(&dims)?;
        results.push(Some(c.g().raw("Reshape", &[&row, &shape], Vec::new(), row.dtype)));
    }
    Ok(Results(results))
}
