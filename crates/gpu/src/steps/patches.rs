//! Patches of images as columns, and the images that columns add up to.

use super::convolution::numbers;
use super::pointwise::rounded;
use super::pools::constant;
use super::reductions::added;
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, View, coordinates};
use tracefx_plan::{Operand, TensorId};

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let Some(Operand::Tensor(input)) = args.first() else { return None };
    Some(match op {
        "aten.im2col.default" => columns(cx, *input, &args[1..], result),
        "aten.col2im.default" => image(cx, *input, args.get(2..)?, result),
        _ => return None,
    })
}

/// The patches of an image, with a number for rows and one for columns.
struct Patches {
    kernel: Vec<usize>,
    dilation: Vec<usize>,
    padding: Vec<usize>,
    stride: Vec<usize>,
    points: Vec<usize>,
}

impl Patches {
    /// Those of an image of these sizes, by the four options.
    fn new(image: &View, columns: &View, options: &[Operand]) -> Result<Self, Reason> {
        let [kernel, dilation, padding, stride] = options else { return Err("other arguments".into()) };
        let [kernel, dilation, padding, stride] = [kernel, dilation, padding, stride].map(|it| numbers(it, 2));
        let (kernel, dilation, padding, stride) = (kernel?, dilation?, padding?, stride?);
        let lead = image.sizes.len().checked_sub(2).ok_or("other sizes")?;
        let count = |dim: usize| {
            let taps = dilation[dim].checked_mul(kernel[dim].checked_sub(1)?)?.checked_add(1)?;
            let size = image.sizes[lead + dim].checked_add(padding[dim].checked_mul(2)?)?;
            Some(size.checked_sub(taps)?.checked_div(stride[dim])? + 1)
        };
        let points = (0..2).map(count).collect::<Option<Vec<_>>>().ok_or("other sizes")?;
        let channels = image.sizes.get(lead.wrapping_sub(1)).copied().ok_or("other sizes")?;
        let rows = kernel.iter().try_fold(channels, |n, it| n.checked_mul(*it)).ok_or("other sizes")?;
        let expected = [rows, points[0].checked_mul(points[1]).ok_or("other sizes")?];
        if columns.sizes.len() != lead + 1 || columns.sizes[lead - 1..] != expected {
            return Err("other sizes".into());
        }
        Ok(Patches { kernel, dilation, padding, stride, points })
    }
}

/// `aten.im2col`.
fn columns(cx: &mut Lowering<'_>, input: TensorId, options: &[Operand], result: TensorId) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    let it = Patches::new(&input, &result, options)?;
    let [kh, kw] = [it.kernel[0], it.kernel[1]];
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let (row, column) = (&places[places.len() - 2], &places[places.len() - 1]);
        let taps = [format!("({row} / {kw}u % {kh}u)"), format!("({row} % {kw}u)")];
        let points = [format!("({column} / {}u)", it.points[1]), format!("({column} % {}u)", it.points[1])];
        let mut from = places[..places.len() - 2].to_vec();
        from.push(format!("({row} / {}u)", kh * kw));
        let mut inside = Vec::new();
        for dim in 0..2 {
            let (tap, point, size) = (&taps[dim], &points[dim], input.sizes[input.sizes.len() - 2 + dim]);
            let [stride, dilation, padding] = [it.stride[dim], it.dilation[dim], it.padding[dim]];
            // A pixel in front of the image is a number beyond it.
            shader.line(format!("let p{dim} = {point} * {stride}u + {tap} * {dilation}u - {padding}u;"));
            inside.push(format!("p{dim} < {size}u"));
            from.push(format!("p{dim}"));
        }
        shader.line(format!("var it = {};", constant(kind, 0)));
        let element = shader.load(&input, &input.at(&from));
        shader.line(format!("if ({}) {{ it = {element}; }}", inside.join(" && ")));
        let statement = shader.store(&result, &result.at(&places), "it");
        shader.line(statement);
    })
}

/// `aten.col2im`.
fn image(cx: &mut Lowering<'_>, input: TensorId, options: &[Operand], result: TensorId) -> Lowered {
    let ((input, kind), (result, _)) = (cx.view(input)?, cx.view(result)?);
    if kind == Kind::Bool {
        return Err("sums of bools".into());
    }
    let it = Patches::new(&result, &input, options)?;
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let lead = places.len() - 2;
        shader.line(format!("var total = {};", constant(kind, 0)));
        let mut inside = Vec::new();
        for dim in 0..2 {
            let [stride, dilation, padding] = [it.stride[dim], it.dilation[dim], it.padding[dim]];
            shader.line(format!("for (var k{dim} = 0u; k{dim} < {}u; k{dim}++) {{", it.kernel[dim]));
            // A place in front of the first point is a number beyond the last one.
            shader.line(format!("let g{dim} = {} + {padding}u - k{dim} * {dilation}u;", places[lead + dim]));
            shader.line(format!("let p{dim} = g{dim} / {stride}u;"));
            inside.push(format!("g{dim} < 0x80000000u && g{dim} % {stride}u == 0u && p{dim} < {}u", it.points[dim]));
        }
        let mut from = places[..lead - 1].to_vec();
        from.push(format!("(({} * {}u + k0) * {}u + k1)", places[lead - 1], it.kernel[0], it.kernel[1]));
        from.push(format!("(p0 * {}u + p1)", it.points[1]));
        let element = shader.load(&input, &input.at(&from));
        shader.line(format!("if ({}) {{ total = {}; }}", inside.join(" && "), added(kind, "total", &element)));
        shader.line("} }");
        let statement = shader.store(&result, &result.at(&places), &rounded("total", result.dtype));
        shader.line(statement);
    })
}
