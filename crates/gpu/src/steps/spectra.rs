//! Eigenvalues and singular values of small matrices, by Jacobi's method as in the kernels, in float32. Vectors are left to the CPU: which of
//! several that are as good is found, the last digits decide.

use super::args::Args;
use super::factorisations::{Text, each_matrix, lead, matrices};
use crate::lower::{Lowered, Lowering};
use crate::shader::View;
use tracefx_core::DType;
use tracefx_plan::{Operand, TensorId};

/// More sweeps over all pairs than any matrix was seen to need.
const MOST_SWEEPS: usize = 60;

/// What is called.
pub(super) fn call(cx: &mut Lowering<'_>, op: &str, args: &[Operand], results: &[TensorId]) -> Option<Lowered> {
    Some(match op {
        "aten._linalg_eigh.default" => eigenvalues(cx, args, results),
        "aten._linalg_svd.default" => singular_values(cx, args, results),
        _ => return None,
    })
}

/// Prints sweeps over all pairs of columns `p` and `q` of a matrix with so many. `pair` tells the squares `first` and `second` of two and their
/// product `product`, and `turn` turns them by the angle of the cosine `c` and the sine `s`.
fn sweeps(text: &mut Text<'_>, cols: usize, pair: &str, turn: &str) {
    text.line(format!(
        "for (var sweep = 0u; sweep < {MOST_SWEEPS}u; sweep++) {{
        var is_done = true;
        for (var p = 0u; p < {cols}u; p++) {{
            for (var q = p + 1u; q < {cols}u; q++) {{
{pair}
                if (abs(product) <= 1e-7f * sqrt(abs(first)) * sqrt(abs(second)) || abs(product) < 1e-35f) {{ continue; }}
                is_done = false;
                let zeta = (second - first) / (2.0f * product);
                var tangent = 0.5f / zeta;
                if (abs(zeta) < 1e9f) {{ tangent = with_sign(1.0f / (abs(zeta) + sqrt(1.0f + zeta * zeta)), zeta); }}
                let c = 1.0f / sqrt(1.0f + tangent * tangent);
                let s = c * tangent;
{turn}
            }}
        }}
        if (is_done) {{ break; }}
    }}"
    ));
}

/// Prints the turn of two elements.
fn turned(p: &str, q: &str) -> String {
    format!("let x = {p}; let y = {q}; {p} = c * x - s * y; {q} = s * x + c * y;")
}

/// Sorts the array `values`, and writes it.
fn write_sorted(text: &mut Text<'_>, n: usize, is_falling: bool, result: &View) {
    let before = if is_falling { ">" } else { "<" };
    text.line(format!(
        "for (var k = 1u; k < {n}u; k++) {{
        for (var at = k; at > 0u && values[at] {before} values[at - 1u]; at--) {{
            let it = values[at];
            values[at] = values[at - 1u];
            values[at - 1u] = it;
        }}
    }}"
    ));
    text.line(format!("for (var k = 0u; k < {n}u; k++) {{"));
    text.write_at(result, &["k"], "values[k]");
    text.line("}");
}

/// `aten._linalg_eigh`, of values alone.
fn eigenvalues(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    if Args(args).is_true(2) {
        return Err("eigenvectors".into());
    }
    let is_lower = matches!(args.get(1), Some(Operand::Str(it)) if it.eq_ignore_ascii_case("L"));
    let (matrix, result) = (matrices(cx, args.first())?, cx.floats(*results.first().ok_or("no result")?)?);
    each_matrix(cx, lead(&matrix), |text| {
        // The other triangle is not looked at.
        let [n, _] = text.read("a", &matrix, !is_lower);
        text.line(format!("for (var row = 0u; row < {n}u; row++) {{"));
        text.line(format!("for (var col = 0u; col < row; col++) {{ a[col * {n}u + row] = a[row * {n}u + col]; }}"));
        text.line("}");
        let pair = format!("let product = a[p * {n}u + q]; let first = a[p * {n}u + p]; let second = a[q * {n}u + q];");
        let turn = format!(
            "for (var k = 0u; k < {n}u; k++) {{ {} }}
                for (var k = 0u; k < {n}u; k++) {{ {} }}
                a[p * {n}u + q] = 0.0f; a[q * {n}u + p] = 0.0f;",
            turned(&format!("a[k * {n}u + p]"), &format!("a[k * {n}u + q]")),
            turned(&format!("a[p * {n}u + k]"), &format!("a[q * {n}u + k]")),
        );
        sweeps(text, n, &pair, &turn);
        text.line(format!("var values: array<f32, {n}>;"));
        text.line(format!("for (var k = 0u; k < {n}u; k++) {{ values[k] = a[k * {n}u + k]; }}"));
        write_sorted(text, n, false, &result);
    })
}

/// `aten._linalg_svd`, of values alone.
fn singular_values(cx: &mut Lowering<'_>, args: &[Operand], results: &[TensorId]) -> Lowered {
    let [_, values, _] = results else { return Err("other results".into()) };
    if Args(args).is_true(2) {
        return Err("singular vectors".into());
    }
    let (matrix, result) = (matrices(cx, args.first())?, cx.floats(*values)?);
    if result.dtype != DType::Float32 {
        return Err("other results".into());
    }
    let [.., rows, cols] = matrix.sizes[..] else { return Err("other sizes".into()) };
    each_matrix(cx, lead(&matrix), |text| {
        // Columns are not longer than rows.
        let [rows, cols] = text.read("a", &matrix, cols > rows);
        let [p, q] = ["p", "q"].map(|it| format!("a[k * {cols}u + {it}]"));
        let pair = format!(
            "var first = 0.0f; var second = 0.0f; var product = 0.0f;
                for (var k = 0u; k < {rows}u; k++) {{ first += {p} * {p}; second += {q} * {q}; product += {p} * {q}; }}"
        );
        sweeps(text, cols, &pair, &format!("for (var k = 0u; k < {rows}u; k++) {{ {} }}", turned(&p, &q)));
        text.line(format!("var values: array<f32, {cols}>;"));
        text.line(format!("for (var q = 0u; q < {cols}u; q++) {{"));
        text.line(format!("for (var k = 0u; k < {rows}u; k++) {{ values[q] += {q} * {q}; }}"));
        text.line("values[q] = sqrt(values[q]);");
        text.line("}");
        write_sorted(text, cols, true, &result);
    })
}
