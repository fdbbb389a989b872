//! Triangular factorisations of small matrices, and what is computed with them: an invocation has a matrix in its registers. In float32, as PyTorch
//! computes; the kernels of the CPU compute in float64, so that larger matrices are left to them.

use super::args::Args;
use crate::lower::{Lowered, Lowering};
use crate::program::Reason;
use crate::shader::{Kind, Shader, View, coordinates};
use tracefx_core::{DType, has_contiguous_strides};
use tracefx_plan::{Operand, TensorId};

/// The most rows and columns.
const MOST: usize = 16;

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    Some(match op {
        "aten._linalg_det.default" => determinant(cx, false, args, results),
        "aten._linalg_slogdet.default" => determinant(cx, true, args, results),
        "aten.linalg_inv_ex.default" => inverse(cx, args, results),
        "aten._linalg_solve_ex.default" => solution(cx, args, results),
        "aten.linalg_cholesky_ex.default" => cholesky(cx, args, results),
        "aten.linalg_solve_triangular.default" => triangle(cx, args, results),
        _ => return None,
    })
}

/// Matrices of float32 in the last two dimensions.
pub(super) fn matrices(cx: &Lowering<'_>, operand: Option<&Operand>) -> Result<View, Reason> {
    let Some(Operand::Tensor(id)) = operand else { return Err("other arguments".into()) };
    small(cx.movable(*id)?)
}

fn small(view: View) -> Result<View, Reason> {
    let is_small =
        matches!(view.sizes[..], [.., rows, cols] if (1..=MOST).contains(&rows) && (1..=MOST).contains(&cols));
    match view.dtype {
        DType::Float32 if is_small => Ok(view),
        DType::Float32 => Err(format!("matrices with a side of 0 or of more than {MOST}").into()),
        other => Err(format!("matrices of {}", other.name()).into()),
    }
}

/// A matrix that cannot be factored is refused where that is asked for, in words that name it.
fn unless_checked(args: &[Operand], at: usize) -> Result<(), Reason> {
    if Args(args).is_true(at) { Err("a matrix that the data may refuse".into()) } else { Ok(()) }
}

/// The text of what is done with one matrix, whose place among the others has these coordinates.
pub(super) struct Text<'a> {
    shader: &'a mut Shader,
    lead: Vec<String>,
}

impl Text<'_> {
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.shader.line(text);
    }

    fn at(&self, view: &View, last: &[&str]) -> String {
        let last = last.iter().map(|it| (*it).to_owned());
        view.at(&self.lead.iter().cloned().chain(last).collect::<Vec<_>>())
    }

    /// Reads a matrix, or its transpose, into the array `name`: row by row.
    pub(super) fn read(&mut self, name: &str, view: &View, is_turned: bool) -> [usize; 2] {
        let [.., rows, cols] = view.sizes[..] else { unreachable!("matrices have two dimensions") };
        let [rows, cols] = if is_turned { [cols, rows] } else { [rows, cols] };
        self.line(format!("var {name}: array<f32, {}>;", rows * cols));
        self.each(rows, cols, |it| {
            let at = it.at(view, if is_turned { &["col", "row"] } else { &["row", "col"] });
            let element = it.shader.load(view, &at);
            it.line(format!("{name}[row * {cols}u + col] = {element};"));
        });
        [rows, cols]
    }

    /// Writes the matrix in the array `name`, or its transpose.
    fn write(&mut self, name: &str, view: &View, [rows, cols]: [usize; 2], is_turned: bool) {
        self.each(rows, cols, |it| {
            let at = it.at(view, if is_turned { &["col", "row"] } else { &["row", "col"] });
            let statement = it.shader.store(view, &at, &format!("{name}[row * {cols}u + col]"));
            it.line(statement);
        });
    }

    fn each(&mut self, rows: usize, cols: usize, body: impl FnOnce(&mut Self)) {
        self.line(format!("for (var row = 0u; row < {rows}u; row++) {{"));
        self.line(format!("for (var col = 0u; col < {cols}u; col++) {{"));
        body(self);
        self.line("} }");
    }

    /// Writes a number at these last coordinates.
    pub(super) fn write_at(&mut self, view: &View, last: &[&str], value: &str) {
        let at = self.at(view, last);
        let statement = self.shader.store(view, &at, value);
        self.line(statement);
    }

    /// Factors the array `a` in place: with which row each one changed places is in `pivots`, and in `info` the first zero on the diagonal,
    /// counted from one.
    fn factor(&mut self, n: usize) {
        self.line(format!(
            "var pivots: array<u32, {n}>;
    var info = 0i;
    var swaps = 0u;
    for (var k = 0u; k < {n}u; k++) {{
        var pivot = k;
        for (var row = k + 1u; row < {n}u; row++) {{
            if (abs(a[row * {n}u + k]) > abs(a[pivot * {n}u + k])) {{ pivot = row; }}
        }}
        pivots[k] = pivot;
        if (pivot != k) {{ swaps++; }}
        for (var col = 0u; col < {n}u; col++) {{
            let it = a[k * {n}u + col];
            a[k * {n}u + col] = a[pivot * {n}u + col];
            a[pivot * {n}u + col] = it;
        }}
        let top = a[k * {n}u + k];
        if (top == 0.0f) {{
            if (info == 0i) {{ info = i32(k) + 1i; }}
            continue;
        }}
        for (var row = k + 1u; row < {n}u; row++) {{
            let factor = a[row * {n}u + k] / top;
            a[row * {n}u + k] = factor;
            for (var col = k + 1u; col < {n}u; col++) {{
                a[row * {n}u + col] -= factor * a[k * {n}u + col];
            }}
        }}
    }}"
        ));
    }

    /// Changes the places of rows of the array `b` as those of the factors were.
    fn exchange(&mut self, n: usize, cols: usize) {
        self.line(format!(
            "for (var row = 0u; row < {n}u; row++) {{
        for (var col = 0u; col < {cols}u; col++) {{
            let it = b[row * {cols}u + col];
            b[row * {cols}u + col] = b[pivots[row] * {cols}u + col];
            b[pivots[row] * {cols}u + col] = it;
        }}
    }}"
        ));
    }

    /// Solves the equations of a triangle of the array `a` in the place of the right sides, which are in `b`.
    fn substitute(&mut self, n: usize, cols: usize, is_upper: bool, is_unit: bool) {
        let row = if is_upper { format!("{}u - step", n - 1) } else { "step".to_owned() };
        let (first, end) =
            if is_upper { ("row + 1u".to_owned(), format!("{n}u")) } else { ("0u".to_owned(), "row".to_owned()) };
        let divide = if is_unit { "" } else { " / a[row * SIDEu + row]" }.replace("SIDE", &n.to_string());
        self.line(format!(
            "for (var step = 0u; step < {n}u; step++) {{
        let row = {row};
        for (var col = 0u; col < {cols}u; col++) {{
            var it = b[row * {cols}u + col];
            for (var other = {first}; other < {end}; other++) {{
                it -= a[row * {n}u + other] * b[other * {cols}u + col];
            }}
            b[row * {cols}u + col] = it{divide};
        }}
    }}"
        ));
    }

    /// Writes the factors and the pivots, counted from one.
    fn write_factors(&mut self, factors: &View, pivots: &View, n: usize) {
        self.write("a", factors, [n, n], false);
        self.line(format!("for (var row = 0u; row < {n}u; row++) {{"));
        self.write_at(pivots, &["row"], "i32(pivots[row]) + 1i");
        self.line("}");
    }
}

/// Has `body` print what is done with each matrix of a batch.
pub(super) fn each_matrix(cx: &mut Lowering<'_>, lead: &[usize], body: impl FnOnce(&mut Text<'_>)) -> Lowered {
    cx.for_each(lead.iter().product(), |shader| {
        let lead = coordinates(shader, "i", lead, "c");
        body(&mut Text { shader, lead });
    })
}

pub(super) fn lead(view: &View) -> &[usize] {
    &view.sizes[..view.sizes.len() - 2]
}

/// Results: floats, and integers of 32 bits.
fn outs<const N: usize>(cx: &Lowering<'_>, results: &[TensorId]) -> Result<[View; N], Reason> {
    let views = results.iter().map(|it| cx.view(*it)).collect::<Result<Vec<_>, _>>()?;
    if views.iter().any(|(_, kind)| !matches!(kind, Kind::Float | Kind::Int)) {
        return Err("other results".into());
    }
    let views: Vec<View> = views.into_iter().map(|(view, _)| view).collect();
    views.try_into().map_err(|_| "other results".into())
}

/// `aten._linalg_det` and `aten._linalg_slogdet`. As PyTorch, of row-major matrices the transposes are factored.
fn determinant(cx: &mut Lowering<'_>, is_log: bool, args: &[Operand], results: &[TensorId]) -> Lowered {
    let matrix = matrices(cx, args.first())?;
    let is_turned = has_contiguous_strides(&matrix.sizes, &matrix.strides);
    let (numbers, factors, pivots) = if is_log {
        let [sign, logarithm, factors, pivots] = outs(cx, results)?;
        (vec![sign, logarithm], factors, pivots)
    } else {
        let [result, factors, pivots] = outs(cx, results)?;
        (vec![result], factors, pivots)
    };
    each_matrix(cx, lead(&matrix), |text| {
        let [n, _] = text.read("a", &matrix, is_turned);
        text.factor(n);
        text.line("var result = select(1.0f, -1.0f, (swaps & 1u) == 1u);");
        text.line("var logarithm = 0.0f;");
        text.line(format!("for (var k = 0u; k < {n}u; k++) {{"));
        text.line(format!("let it = a[k * {n}u + k];"));
        if is_log {
            text.line("result *= select(select(0.0f, -1.0f, it < 0.0f), 1.0f, it > 0.0f);");
            text.line("if (is_nan(it)) { result = it; }");
            text.line("logarithm += ln_of(abs(it));");
        } else {
            text.line("result *= it;");
        }
        text.line("}");
        for (view, value) in numbers.iter().zip(["result", "logarithm"]) {
            text.write_at(view, &[], value);
        }
        text.write_factors(&factors, &pivots, n);
    })
}

/// `aten.linalg_inv_ex`.
fn inverse(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    unless_checked(args, 1)?;
    let (matrix, [result, info]) = (matrices(cx, args.first())?, outs(cx, results)?);
    each_matrix(cx, lead(&matrix), |text| {
        let [n, _] = text.read("a", &matrix, false);
        text.factor(n);
        text.line(format!("var b: array<f32, {}>;", n * n));
        text.line(format!("for (var k = 0u; k < {n}u; k++) {{ b[k * {n}u + k] = 1.0f; }}"));
        text.exchange(n, n);
        text.substitute(n, n, false, true);
        text.substitute(n, n, true, false);
        text.write("b", &result, [n, n], false);
        text.write_at(&info, &[], "info");
    })
}

/// `aten._linalg_solve_ex`.
fn solution(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    unless_checked(args, 3)?;
    let is_left = Args(args).is_true(2);
    let matrix = matrices(cx, args.first())?;
    let Some(Operand::Tensor(right)) = args.get(1) else { return Err("other arguments".into()) };
    let (mut right, [mut result, factors, pivots, info]) = (cx.movable(*right)?, outs(cx, results)?);
    let rank = right.sizes.len();
    // A vector has as many dimensions as its solution less one than a matrix would have.
    if rank == 1 || (rank + 1 == matrix.sizes.len() && right.sizes[..] == matrix.sizes[..rank]) {
        for view in [&mut right, &mut result] {
            view.sizes.push(1);
            view.strides.push(1);
        }
    }
    let result = small(result)?;
    if lead(&result) != lead(&matrix) || right.dtype != DType::Float32 || right.sizes.len() > result.sizes.len() {
        return Err("equations of other sizes".into());
    }
    let right = right.expanded(&result.sizes);
    each_matrix(cx, lead(&matrix), |text| {
        // The equations from the right are those of the transposes from the left.
        let [n, _] = text.read("a", &matrix, !is_left);
        let [_, cols] = text.read("b", &right, !is_left);
        text.factor(n);
        text.exchange(n, cols);
        text.substitute(n, cols, false, true);
        text.substitute(n, cols, true, false);
        text.write("b", &result, [n, cols], !is_left);
        text.write_factors(&factors, &pivots, n);
        text.write_at(&info, &[], "info");
    })
}

/// `aten.linalg_cholesky_ex`.
fn cholesky(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    unless_checked(args, 2)?;
    let is_upper = Args(args).is_true(1);
    let (matrix, [result, info]) = (matrices(cx, args.first())?, outs(cx, results)?);
    each_matrix(cx, lead(&matrix), |text| {
        // Only the triangle that is asked for is looked at.
        let [n, _] = text.read("a", &matrix, is_upper);
        text.line(format!(
            "var b: array<f32, {}>;
    var info = 0i;
    for (var col = 0u; col < {n}u && info == 0i; col++) {{
        for (var row = col; row < {n}u; row++) {{
            var left = a[row * {n}u + col];
            for (var k = 0u; k < col; k++) {{ left -= b[row * {n}u + k] * b[col * {n}u + k]; }}
            if (row > col) {{
                b[row * {n}u + col] = left / b[col * {n}u + col];
            }} else if (left > 0.0f && !is_nan(left)) {{
                b[col * {n}u + col] = sqrt(left);
            }} else {{
                info = i32(col) + 1i;
                break;
            }}
        }}
    }}",
            n * n
        ));
        text.write("b", &result, [n, n], is_upper);
        text.write_at(&info, &[], "info");
    })
}

/// `aten.linalg_solve_triangular`.
fn triangle(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    let (is_upper, is_left, is_unit) = (Args(args).is_true(2), Args(args).is_true(3), Args(args).is_true(4));
    let (matrix, right, [result]) = (matrices(cx, args.first())?, matrices(cx, args.get(1))?, outs(cx, results)?);
    let result = small(result)?;
    let n = result.sizes[result.sizes.len() - if is_left { 2 } else { 1 }];
    let matrix = matrix.expanded(&[lead(&result), &[n, n]].concat());
    let right = right.expanded(&result.sizes);
    each_matrix(cx, lead(&result), |text| {
        // The equations from the right are those of the transposes from the left.
        text.read("a", &matrix, !is_left);
        let [_, cols] = text.read("b", &right, !is_left);
        text.substitute(n, cols, is_upper == is_left, is_unit);
        text.write("b", &result, [n, cols], !is_left);
    })
}
