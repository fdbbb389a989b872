//! Takes out of the modules what is rarely called, so that a page downloads less: a workload runs on modules that tell which functions it
//! called, and the others become parts that the host fetches when one is called (`xtask/split`).

use super::{FOLDER, Files, install, read, run};
use crate::Outcome;
use std::path::Path;
use std::process::Command;

/// A module that is split.
struct Whole {
    /// Its file, which becomes that of the primary module.
    file: &'static str,
    /// The files of its parts, each with what of the workload calls its functions; nothing calls those of the last, and behind it come
    /// the functions with relaxed SIMD.
    parts: &'static [(&'static str, Option<&'static str>)],
    /// What of the workload calls the functions of the primary module.
    called: &'static str,
}

const MODULES: &[Whole] = &[
    Whole {
        file: "engine-simd.wasm",
        called: "engine.run",
        parts: &[("engine-edit.wasm", Some("engine.edit")), ("engine-rare.wasm", None), ("engine-relaxed.wasm", None)],
    },
    Whole {
        file: "runtime-simd.wasm",
        called: "runtime.run",
        parts: &[("runtime-rare.wasm", None), ("runtime-relaxed.wasm", None)],
    },
];

/// What runs the workload.
const PROFILE: &str = "scripts/split/profile.mjs";

/// Whether a file is split.
pub(super) fn is_split(file: &str) -> bool {
    MODULES.iter().any(|it| it.file == file)
}

/// Splits those of the files that are modules with parts. It takes all of them, for the workload runs on all.
pub(super) fn split(root: &Path, tool: &Path, files: &mut Files) -> Outcome {
    if MODULES.iter().any(|it| !files.contains_key(it.file)) {
        return Ok(());
    }
    let staging = root.join("target/wasm/staging");
    // The workload is bundled with the glue, and runs on the same modules but for what they tell.
    install(&root.join(FOLDER), files)?;
    let telling = |file: &str| staging.join(format!("telling-{file}"));
    for module in MODULES {
        run(Command::new(tool).arg("instrument").arg(root.join(FOLDER).join(module.file)).arg(telling(module.file)))?;
    }
    let mut profile = Command::new("node");
    profile.arg(PROFILE).args(MODULES.iter().map(|it| telling(it.file))).arg(&staging);
    run(profile.current_dir(root))?;

    for module in MODULES {
        let mut command = Command::new(tool);
        command.arg("split").arg(root.join(FOLDER).join(module.file));
        let parts = std::iter::once((module.file, Some(module.called))).chain(module.parts.iter().copied());
        for (file, called) in parts.clone() {
            command.arg(staging.join(file)).args(called.map(|it| staging.join(it)));
        }
        run(&mut command)?;
        for (file, _) in parts {
            files.insert(file.to_owned(), read(&staging.join(file))?);
        }
    }
    Ok(())
}
