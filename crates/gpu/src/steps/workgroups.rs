//! What the invocations of a workgroup have together: they share the numbers of a row, and join what each has made of its own.

use crate::shader::Shader;
use std::fmt::Write;

/// The fewest invocations that share numbers, and the columns of a workgroup of few rows.
pub(super) const ROW: u32 = 64;

/// The invocations of a workgroup that share so many numbers, a power of two.
pub(super) fn sharing(n: usize) -> u32 {
    (n as u32 / 4).next_power_of_two().clamp(ROW, 4 * ROW)
}

/// The sum of what the invocations of a workgroup have, and the name of it, which all of them see then: subgroups add up what is theirs first,
/// where the device has them.
pub(super) fn summed(shader: &mut Shader, part: &str, register: &str, size: u32) -> String {
    if !shader.has_subgroups {
        return reduced(shader, part, register, size, &|a, b| format!("{a} + {b}"));
    }
    let (shared, result) = (shared(shader, part, register, size), format!("all_{part}"));
    shader.line(format!("let own_{part} = subgroupAdd({part});"));
    shader.line(format!("if (subgroupBroadcastFirst(local.x) == local.x) {{ {shared}[subgroup] = own_{part}; }}"));
    shader.line("workgroupBarrier();");
    shader.line(format!("var {result} = {shared}[0];"));
    shader.line(format!("for (var at = 1u; at < min(n_subgroups, {size}u); at++) {{ {result} += {shared}[at]; }}"));
    // Nobody writes the next parts before all have read.
    shader.line("workgroupBarrier();");
    result
}

/// The memory of a workgroup in which its invocations have a part each.
fn shared(shader: &mut Shader, part: &str, stored: &str, size: u32) -> String {
    let shared = format!("shared_{part}");
    if !shader.globals.contains(&format!("> {shared}:")) {
        _ = writeln!(shader.globals, "var<workgroup> {shared}: array<{stored}, {size}>;");
    }
    shared
}

/// Joins what the invocations of a workgroup have, and gives the name of what all of them see then.
pub(super) fn reduced(
    shader: &mut Shader,
    part: &str,
    register: &str,
    size: u32,
    join: &dyn Fn(&str, &str) -> String,
) -> String {
    // Drivers lose bools in the memory of a workgroup: NVIDIA's gives others than were written.
    let is_bool = register == "bool";
    let stored = if is_bool { "u32" } else { register };
    let shared = shared(shader, part, stored, size);
    let kept = |it: &str| if is_bool { format!("select(0u, 1u, {it})") } else { it.to_owned() };
    let read = |at: &str| if is_bool { format!("({shared}[{at}] != 0u)") } else { format!("{shared}[{at}]") };
    let result = format!("all_{part}");
    let joined = join(&read("local.x"), &read("local.x + step"));
    shader.line(format!("{shared}[local.x] = {};", kept(part)));
    shader.line("workgroupBarrier();");
    shader.line(format!("for (var step = {}u; step > 0u; step >>= 1u) {{", size / 2));
    shader.line(format!("if (local.x < step) {{ {shared}[local.x] = {}; }}", kept(&joined)));
    shader.line("workgroupBarrier();");
    shader.line("}");
    shader.line(format!("let {result} = {};", read("0")));
    // Nobody writes the next parts before all have read.
    shader.line("workgroupBarrier();");
    result
}
