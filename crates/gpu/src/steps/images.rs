//! Images, signals and volumes in other sizes, and sampled at the places of a grid. An element of the result is a sum over taps along each
//! dimension: positions of the input, each with a weight.

use super::pointwise::rounded;
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Shader, View, coordinates, float};
use tracefx_core::DType;
use tracefx_plan::{Operand, TensorId};

/// Keys' kernel with a = -0.75, for the four neighbours of a place that lies `t` behind the second one.
const CUBIC_WEIGHT: &str = "fn cubic_weight(tap: u32, t: f32) -> f32 {
    let x = select(1.0f - t, t, tap < 2u);
    if (tap == 1u || tap == 2u) { return (1.25f * x - 2.25f) * x * x + 1.0f; }
    let y = x + 1.0f;
    return ((-0.75f * y + 3.75f) * y - 6.0f) * y + 3.0f;
}
";

/// The filters that antialiasing widens: a triangle, and Keys' kernel with a = -0.5.
const TRIANGLE: &str = "fn filter_at(x: f32) -> f32 {\n    return max(1.0f - x, 0.0f);\n}\n";
const KEYS: &str = "fn filter_at(x: f32) -> f32 {
    if (x < 1.0f) { return (1.5f * x - 2.5f) * x * x + 1.0f; }
    if (x < 2.0f) { return (((x - 5.0f) * x + 8.0f) * x - 4.0f) * -0.5f; }
    return 0.0f;
}
";

/// How an image comes to its new size.
#[derive(Clone, Copy, PartialEq)]
enum Resize {
    Nearest,
    NearestByCentres,
    Linear,
    Cubic,
    LinearFilter,
    CubicFilter,
}

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], result: TensorId) -> Option<Lowered> {
    let resize = match op {
        "aten.upsample_nearest1d.default" | "aten.upsample_nearest2d.default" | "aten.upsample_nearest3d.default" => {
            Resize::Nearest
        }
        "aten._upsample_nearest_exact1d.default"
        | "aten._upsample_nearest_exact2d.default"
        | "aten._upsample_nearest_exact3d.default" => Resize::NearestByCentres,
        "aten.upsample_linear1d.default" | "aten.upsample_bilinear2d.default" | "aten.upsample_trilinear3d.default" => {
            Resize::Linear
        }
        "aten.upsample_bicubic2d.default" => Resize::Cubic,
        "aten._upsample_bilinear2d_aa.default" => Resize::LinearFilter,
        "aten._upsample_bicubic2d_aa.default" => Resize::CubicFilter,
        "aten.grid_sampler_2d.default" | "aten.grid_sampler_3d.default" => return Some(sampled(cx, args, result)),
        "aten.affine_grid_generator.default" => return Some(affine_grid(cx, args, result)),
        _ => return None,
    };
    let Some(Operand::Tensor(input)) = args.first() else { return None };
    Some(match resize {
        Resize::Nearest | Resize::NearestByCentres => picked(cx, resize, *input, args, result),
        _ => weighed(cx, resize, *input, args, result),
    })
}

/// A dimension before and after a resize.
struct Side {
    from: usize,
    to: usize,
    /// How many times it is larger afterwards, where that is given.
    factor: Option<f64>,
}

impl Side {
    /// Those of all dimensions; the last arguments are the factors.
    fn all(input: &View, result: &View, args: &[Operand]) -> Result<Vec<Self>, Reason> {
        let n_dims = result.sizes.len().saturating_sub(2);
        let factors = args.len().checked_sub(n_dims).ok_or("other arguments")?;
        if !(1..=3).contains(&n_dims) || input.sizes.len() != n_dims + 2 || input.numel() == 0 {
            return Err("other sizes".into());
        }
        let side = |(dim, factor): (usize, &Operand)| Side {
            from: input.sizes[dim + 2],
            to: result.sizes[dim + 2],
            factor: number(factor).filter(|it| *it > 0.0),
        };
        Ok(args[factors..].iter().enumerate().map(side).collect())
    }

    /// How far the places of two neighbours are apart in the input.
    fn step(&self, is_aligned: bool) -> f32 {
        match (is_aligned, self.factor) {
            (true, _) if self.to > 1 => (self.from - 1) as f32 / (self.to - 1) as f32,
            (true, _) => 0.0,
            (false, Some(factor)) => (1.0 / factor) as f32,
            (false, None) => self.from as f32 / self.to as f32,
        }
    }
}

fn number(operand: &Operand) -> Option<f64> {
    match operand {
        Operand::Float(it) => Some(*it),
        Operand::Int(it) => Some(*it as f64),
        _ => None,
    }
}

/// The nearest element for each place.
fn picked(cx: &mut Lowering<'_>, resize: Resize, input: TensorId, args: &[Operand], result: TensorId) -> Lowered {
    let (input, result) = (cx.movable(input)?, cx.movable(result)?);
    let sides = Side::all(&input, &result, args)?;
    cx.for_each(result.numel(), |shader| {
        let mut places = coordinates(shader, "i", &result.sizes, "c");
        let to = result.at(&places);
        for (place, side) in places[2..].iter_mut().zip(&sides) {
            let (step, last) = (float(side.step(false)), side.from - 1);
            *place = match resize {
                Resize::NearestByCentres => format!("min(u32((f32({place}) + 0.5f) * {step}), {last}u)"),
                _ if side.to == side.from => place.clone(),
                _ if side.to == 2 * side.from => format!("({place} / 2u)"),
                _ => format!("min(u32(f32({place}) * {step}), {last}u)"),
            };
        }
        let element = shader.load_words(&input, &input.at(&places));
        let statement = shader.store_words(&result, &to, &element);
        shader.line(statement);
    })
}

/// The taps of a dimension: a loop over `name`, and what a tap is in it.
struct Taps {
    name: String,
    first: String,
    end: String,
    position: String,
    weight: String,
}

/// Sums over a few elements near to each place.
fn weighed(cx: &mut Lowering<'_>, resize: Resize, input: TensorId, args: &[Operand], result: TensorId) -> Lowered {
    let (input, result) = (cx.floats(input)?, cx.floats(result)?);
    let sides = Side::all(&input, &result, args)?;
    let Some(Operand::Bool(is_aligned)) = args.get(2) else { return Err("other arguments".into()) };
    // Of signals and volumes, PyTorch rounds the second weight before it takes the first one from it; not of images.
    let is_rounded = sides.len() != 2;
    cx.for_each(result.numel(), |shader| {
        shader.globals.push_str(match resize {
            Resize::Cubic => CUBIC_WEIGHT,
            Resize::LinearFilter => TRIANGLE,
            Resize::CubicFilter => KEYS,
            Resize::Nearest | Resize::NearestByCentres | Resize::Linear => "",
        });
        let places = coordinates(shader, "i", &result.sizes, "c");
        let mut taps = Vec::new();
        for (dim, side) in sides.iter().enumerate() {
            let (place, step) = (&places[dim + 2], side.step(*is_aligned));
            let own = match resize {
                Resize::LinearFilter => filtered(shader, dim, place, side.from, (step, 1.0)),
                Resize::CubicFilter => filtered(shader, dim, place, side.from, (step, 2.0)),
                Resize::Cubic => cubic(shader, dim, &placed(place, step, *is_aligned), side.from),
                _ if side.from == side.to => Taps {
                    name: format!("t{dim}"),
                    first: "0u".to_owned(),
                    end: "1u".to_owned(),
                    position: place.clone(),
                    weight: "1.0f".to_owned(),
                },
                _ => {
                    let round = if is_rounded { result.dtype } else { DType::Float32 };
                    linear(shader, dim, &placed(place, step, *is_aligned), side.from, round)
                }
            };
            taps.push(own);
        }
        let mut from = places[..2].to_vec();
        for (dim, it) in taps.iter().enumerate() {
            let Taps { name, first, end, position, weight } = it;
            shader.line(format!("var sum{dim} = 0.0f;"));
            shader.line(format!("for (var {name} = {first}; {name} < {end}; {name}++) {{"));
            // PyTorch keeps the weights in the dtype of the elements.
            shader.line(format!("let weight{dim} = {};", rounded(weight, result.dtype)));
            from.push(position.clone());
        }
        let mut value = shader.load(&input, &input.at(&from));
        for dim in (0..taps.len()).rev() {
            shader.line(format!("sum{dim} += weight{dim} * {value};"));
            shader.line("}");
            value = format!("sum{dim}");
        }
        let statement = shader.store(&result, &result.at(&places), &rounded(&value, result.dtype));
        shader.line(statement);
    })
}

/// The place of an output position in the input, perhaps left of the first element.
fn placed(place: &str, step: f32, is_aligned: bool) -> String {
    let step = float(step);
    if is_aligned { format!("f32({place}) * {step}") } else { format!("(f32({place}) + 0.5f) * {step} - 0.5f") }
}

fn linear(shader: &mut Shader, dim: usize, place: &str, size: usize, round: DType) -> Taps {
    let last = size - 1;
    shader.line(format!("let s{dim} = max({place}, 0.0f);"));
    shader.line(format!("let a{dim} = min(u32(s{dim}), {last}u);"));
    shader.line(format!("let w{dim} = {};", rounded(&format!("min(s{dim} - f32(a{dim}), 1.0f)"), round)));
    Taps {
        name: format!("t{dim}"),
        first: "0u".to_owned(),
        end: "2u".to_owned(),
        position: format!("min(a{dim} + t{dim}, {last}u)"),
        weight: format!("select(w{dim}, 1.0f - w{dim}, t{dim} == 0u)"),
    }
}

fn cubic(shader: &mut Shader, dim: usize, place: &str, size: usize) -> Taps {
    let last = size - 1;
    shader.line(format!("let s{dim} = {place};"));
    shader.line(format!("let a{dim} = min(floor(s{dim}), {});", float(last as f32)));
    shader.line(format!("let w{dim} = min(s{dim} - a{dim}, 1.0f);"));
    Taps {
        name: format!("t{dim}"),
        first: "0u".to_owned(),
        end: "4u".to_owned(),
        position: format!("u32(clamp(i32(a{dim}) + i32(t{dim}) - 1i, 0i, {last}i))"),
        weight: format!("cubic_weight(t{dim}, w{dim})"),
    }
}

/// The taps of a filter of this radius, which is widened to the step where that is larger than one.
fn filtered(shader: &mut Shader, dim: usize, place: &str, size: usize, (step, radius): (f32, f32)) -> Taps {
    let (support, shrink) = if step >= 1.0 { (radius * step, 1.0 / step) } else { (radius, 1.0) };
    let [step, support, shrink] = [step, support, shrink].map(float);
    shader.line(format!("let s{dim} = (f32({place}) + 0.5f) * {step};"));
    shader.line(format!("let a{dim} = u32(max(s{dim} - {support} + 0.5f, 0.0f));"));
    shader.line(format!("let z{dim} = min(u32(max(s{dim} + {support} + 0.5f, 0.0f)), {size}u);"));
    let name = format!("t{dim}");
    let weight = format!("filter_at(abs((f32({name}) - s{dim} + 0.5f) * {shrink}))");
    shader.line(format!("var all{dim} = 0.0f;"));
    shader.line(format!("for (var {name} = a{dim}; {name} < z{dim}; {name}++) {{ all{dim} += {weight}; }}"));
    shader.line(format!("if (all{dim} == 0.0f) {{ all{dim} = 1.0f; }}"));
    Taps {
        first: format!("a{dim}"),
        end: format!("z{dim}"),
        position: name.clone(),
        weight: format!("{weight} / all{dim}"),
        name,
    }
}

/// Where the padding of a grid puts the place `x` of a dimension with this many elements.
fn padding_function(padding: i64, is_aligned: bool) -> Result<String, Reason> {
    let clipped = "fn clipped(x: f32, size: f32) -> f32 {
    return min(select(0.0f, x, x > 0.0f && !is_nan(x)), size - 1.0f);
}
";
    let padded = match (padding, is_aligned) {
        (0, _) => return Ok("fn padded(x: f32, size: f32) -> f32 {\n    return x;\n}\n".to_owned()),
        (1, _) => "    return clipped(x, size);".to_owned(),
        (2, _) => {
            // A place as far outside as the double span is where it was; between, the nearer edge mirrors it.
            let (low, span) = if is_aligned { ("0.0f", "2.0f * (size - 1.0f)") } else { ("-0.5f", "2.0f * size") };
            format!(
                "    let span = {span};
    if (span == 0.0f) {{ return 0.0f; }}
    let distance = abs(x - {low});
    let extra = distance - floor(distance / span) * span;
    return clipped(min(span - extra, extra) + {low}, size);"
            )
        }
        _ => return Err("other arguments".into()),
    };
    Ok(format!("{clipped}fn padded(x: f32, size: f32) -> f32 {{\n{padded}\n}}\n"))
}

/// `aten.grid_sampler_2d` and `aten.grid_sampler_3d`.
fn sampled(cx: &mut Lowering<'_>, args: &[Operand], result: TensorId) -> Lowered {
    let [
        Operand::Tensor(input),
        Operand::Tensor(grid),
        Operand::Int(mode),
        Operand::Int(padding),
        Operand::Bool(is_aligned),
    ] = args
    else {
        return Err("other arguments".into());
    };
    let (input, grid, result) = (cx.floats(*input)?, cx.floats(*grid)?, cx.floats(result)?);
    if result.dtype != DType::Float32 {
        return Err("a sampling that is rounded at each step".into());
    }
    let n_dims = input.sizes.len().saturating_sub(2);
    if result.sizes.len() != n_dims + 2 || input.numel() == 0 {
        return Err("other sizes".into());
    }
    let padding = padding_function(*padding, *is_aligned)?;
    cx.try_for_each(result.numel(), |_, shader| {
        shader.globals.push_str(&padding);
        let places = coordinates(shader, "i", &result.sizes, "c");
        let mut point = [&places[..1], &places[2..]].concat();
        let mut from = places[..2].to_vec();
        for dim in 0..n_dims {
            // The last coordinate is of the first dimension.
            point.push(format!("{}u", n_dims - 1 - dim));
            let coordinate = shader.load(&grid, &grid.at(&point));
            point.pop();
            let size = float(input.sizes[dim + 2] as f32);
            shader.line(format!("let x{dim} = {coordinate};"));
            shader.line(match is_aligned {
                true => format!("let s{dim} = (x{dim} + 1.0f) * 0.5f * ({size} - 1.0f);"),
                false => format!("let s{dim} = ((x{dim} + 1.0f) * {size} - 1.0f) * 0.5f;"),
            });
            // The first tap, how many there are, and the place and weight of each.
            let (first, n_taps, place, weight) = match mode {
                0 => (
                    format!("padded(s{dim}, {size})"),
                    2,
                    format!("floor(a{dim}) + f32(t{dim})"),
                    format!("select(a{dim} - floor(a{dim}), 1.0f - (a{dim} - floor(a{dim})), t{dim} == 0u)"),
                ),
                1 => (format!("round(padded(s{dim}, {size}))"), 1, format!("a{dim}"), "1.0f".to_owned()),
                2 if n_dims == 2 => (
                    format!("floor(s{dim})"),
                    4,
                    format!("padded(a{dim} + f32(t{dim}) - 1.0f, {size})"),
                    format!("cubic_weight(t{dim}, s{dim} - a{dim})"),
                ),
                _ => return Err("other arguments".into()),
            };
            shader.line(format!("let a{dim} = {first};"));
            shader.line(format!("var sum{dim} = 0.0f;"));
            shader.line(format!("for (var t{dim} = 0u; t{dim} < {n_taps}u; t{dim}++) {{"));
            shader.line(format!("let p{dim} = {place};"));
            shader.line(format!("if (!(p{dim} >= 0.0f && p{dim} < {size}) || is_nan(p{dim})) {{ continue; }}"));
            shader.line(format!("let w{dim} = {weight};"));
            from.push(format!("min(u32(p{dim}), {}u)", input.sizes[dim + 2] - 1));
        }
        if *mode == 2 {
            shader.globals.push_str(CUBIC_WEIGHT);
        }
        let mut value = shader.load(&input, &input.at(&from));
        for dim in (0..n_dims).rev() {
            shader.line(format!("sum{dim} += {value} * w{dim};"));
            shader.line("}");
            value = format!("sum{dim}");
        }
        let statement = shader.store(&result, &result.at(&places), &value);
        shader.line(statement);
        Ok(())
    })
}

/// `aten.affine_grid_generator`.
fn affine_grid(cx: &mut Lowering<'_>, args: &[Operand], result: TensorId) -> Lowered {
    let [Operand::Tensor(theta), _, Operand::Bool(is_aligned)] = args else { return Err("other arguments".into()) };
    let (theta, result) = (cx.floats(*theta)?, cx.floats(result)?);
    let rank = result.sizes.len();
    let n_dims = rank.saturating_sub(2);
    if !(2..=3).contains(&n_dims) || theta.sizes[..] != [result.sizes[0], n_dims, n_dims + 1] {
        return Err("other sizes".into());
    }
    cx.for_each(result.numel(), |shader| {
        let places = coordinates(shader, "i", &result.sizes, "c");
        let row = [places[0].clone(), places[rank - 1].clone()];
        let mut entry = |column: usize| {
            let at = [&row[..], &[format!("{column}u")]].concat();
            shader.load(&theta, &theta.at(&at))
        };
        let mut terms = Vec::new();
        for column in 0..n_dims {
            // The last dimension is the first coordinate.
            let dim = n_dims - column;
            let (place, size) = (&places[dim], result.sizes[dim]);
            if size > 1 {
                let divisor = if *is_aligned { size - 1 } else { size };
                let factor = entry(column);
                let whole = format!("f32(2i * i32({place}) - {}i)", size - 1);
                terms.push(format!("{factor} * ({whole} / {})", float(divisor as f32)));
            }
        }
        terms.push(entry(n_dims));
        let value = rounded(&terms.join(" + "), result.dtype);
        let statement = shader.store(&result, &result.at(&places), &value);
        shader.line(statement);
    })
}
