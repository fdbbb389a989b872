//! `tracefx doctor`: what this machine has for running programs.

use crate::Result;
use crate::device::gpu_of_machine;
use serde_json::json;
use std::fmt::Write;
use tracefx_core::Diagnostic;
use tracefx_engine::get_num_threads;

/// Tells what there is. What programs can do without is told, and is no failure.
pub(crate) fn examine(is_json: bool) -> Result<String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (threads, vectors) = (get_num_threads(), tracefx_cpu::instruction_set());
    let gpu = gpu_of_machine();
    let mut missing: Vec<(&str, String, String)> = Vec::new();
    if ["SSE2", "none"].contains(&vectors) {
        let what = "kernels use no wide vectors, and are several times slower";
        let cure = if cfg!(debug_assertions) { "build with --release" } else { "use a machine with AVX2" };
        missing.push(("vectors", what.to_string(), cure.to_string()));
    }
    if threads < processors {
        let what = format!("runs use {threads} of {processors} processors");
        missing.push(("threads", what, "change or unset TRACEFX_NUM_THREADS".to_string()));
    }
    match &gpu {
        Ok((_, false)) => {}
        Ok((name, true)) => {
            let what =
                format!("{name} is a processor that does the work of a GPU: --device gpu is slower than the CPU");
            missing.push(("gpu", what, "install the driver of the GPU, where there is one".to_string()));
        }
        Err(problem) => missing.push(("gpu", problem.message().to_string(), cure_of(problem))),
    }
    if is_json {
        let gpu = gpu.ok().map(|(name, is_software)| json!({ "name": name, "is_software": is_software }));
        let missing: Vec<_> =
            missing.iter().map(|(of, what, cure)| json!({ "of": of, "what": what, "cure": cure })).collect();
        let told = json!({
            "version": env!("CARGO_PKG_VERSION"), "command": "native", "node": null, "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH, "processors": processors, "threads": threads, "vectors": vectors,
            "gpu": gpu, "missing": missing, "is_ready": true,
        });
        return Ok(told.to_string());
    }
    let mut text = format!(
        "tracefx {}, the native command\nsystem      {} {}\nprocessors  {processors}\nthreads     {threads}\nvectors     {vectors}\n\
         GPU         {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        gpu.as_ref().map_or("none", |(name, _)| name),
    );
    for (of, what, cure) in &missing {
        write!(text, "\n{of}: {what}\n  help: {cure}").expect("writing to a string succeeds");
    }
    text.push_str(if missing.is_empty() {
        "\nNothing is missing."
    } else {
        "\n\nPrograms run; these would make them faster."
    });
    Ok(text)
}

fn cure_of(problem: &Diagnostic) -> String {
    problem.help_text().unwrap_or("run on the CPU").to_string()
}
