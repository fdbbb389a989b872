//! Builds the engine for WebAssembly: cargo, then wasm-bindgen, then wasm-opt, once for each variant; then what is rarely called becomes a
//! file of its own.
//!
//! The result lies in `ts/wasm`: `engine.js` with its types, and one `engine-VARIANT.wasm` for each variant. All
//! variants of one kind share the glue, which is checked: a difference would mean that one of them has another surface. Beside them
//! lie the module that lowers plans for a GPU, which a host fetches when it is asked for one, and the small one that runs saved plans.

mod split;
mod toolchain;

use crate::Outcome;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolchain::Toolchain;

/// Where the package finds the engine, from the root of the repository.
pub(crate) const FOLDER: &str = "ts/wasm";

/// Target features of every variant: what each browser and Node version that we support has.
const BASELINE: &str = "+simd128,+bulk-memory,+mutable-globals,+sign-ext,+nontrapping-fptoint,+atomics";

/// What the linker is told of memory: it is the host's, which may share it among threads, and 4 GiB at most. The rest is what
/// wasm-bindgen makes threads of.
const SHARED_MEMORY: &[&str] = &[
    "--shared-memory",
    "--import-memory",
    "--max-memory=4294967296",
    "--export=__wasm_init_tls",
    "--export=__tls_size",
    "--export=__tls_align",
    "--export=__tls_base",
];

/// One build of the engine.
struct Variant {
    /// Its name.
    name: &'static str,
    /// The crate.
    package: &'static str,
    /// The name of the module.
    file: &'static str,
    /// The name of its glue without the extension.
    glue: &'static str,
    /// Target features beyond the baseline.
    features: &'static [&'static str],
}

/// The commands that change modules.
struct Tools {
    bindgen: PathBuf,
    split: PathBuf,
}

/// The files of the package by name.
type Files = BTreeMap<String, Vec<u8>>;

const VARIANTS: &[Variant] = &[
    Variant { name: "simd", package: "tracefx-wasm", file: "engine-simd.wasm", glue: "engine", features: &[] },
    Variant {
        name: "runtime",
        package: "tracefx-wasm-runtime",
        file: "runtime-simd.wasm",
        glue: "runtime",
        features: &[],
    },
    Variant { name: "gpu", package: "tracefx-wasm-gpu", file: "gpu.wasm", glue: "gpu", features: &[] },
];

/// Builds all variants, or only the one of this name; then the package holds no other, for they must share their glue.
pub(crate) fn build(root: &Path, only: Option<&str>) -> Outcome {
    let chosen: Vec<&Variant> = VARIANTS.iter().filter(|it| only.is_none_or(|name| it.name == name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = VARIANTS.iter().map(|it| it.name).collect();
        return Err(format!("no variant is called {}; there are {}", only.unwrap_or_default(), known.join(", ")));
    }
    let toolchain = Toolchain::find()?;
    println!("wasm: building with {}", toolchain.name());
    let tools = Tools {
        bindgen: tool(root, ["--manifest-path", "xtask/bindgen/Cargo.toml"], "tracefx-bindgen")?,
        split: tool(root, ["--package", "wasm-split"], "wasm-split")?,
    };
    let mut files = Files::new();
    for variant in &chosen {
        let module = compile(root, &toolchain, variant)?;
        package(root, &tools, variant, &module, only.is_none(), &mut files)?;
    }
    split::split(root, &tools.split, &mut files)?;
    for (name, bytes) in &files {
        println!("wasm: {FOLDER}/{name}, {} bytes", bytes.len());
    }
    install(&root.join(FOLDER), &files)
}

/// Builds a binary for this machine from the package that the arguments name, and returns where it is.
fn tool(root: &Path, package: [&str; 2], name: &str) -> Result<PathBuf, String> {
    let target = root.join("target/bindgen");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--release", "--locked"]).args(package);
    run(command.arg("--target-dir").arg(&target).current_dir(root))?;
    Ok(target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Compiles the crate of a variant and returns the module.
fn compile(root: &Path, toolchain: &Toolchain, variant: &Variant) -> Result<PathBuf, String> {
    let target = root.join("target/wasm");
    let mut command = toolchain.cargo();
    command
        .args(["build", "--quiet", "--profile", "wasm", "--locked", "--package", variant.package])
        .args(["--target", "wasm32-unknown-unknown", "-Zbuild-std=panic_unwind,std"])
        // The fast sorts take up to 17 kB for each comparison that they are given: half a megabyte in all. Kernels have a
        // sort of their own.
        .args(["-Zbuild-std-features=optimize_for_size", "--target-dir"])
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain, variant))
        .current_dir(root);
    run(&mut command)?;
    let module = format!("{}.wasm", variant.package.replace('-', "_"));
    Ok(target.join("wasm32-unknown-unknown/wasm").join(module))
}

/// The flags of the compiler, in the encoding that admits spaces in paths.
fn flags(toolchain: &Toolchain, variant: &Variant) -> OsString {
    let features: Vec<&str> = std::iter::once(BASELINE).chain(variant.features.iter().copied()).collect();
    // Newer compilers encode exceptions in a way that Node before 24 and Safari before 18.4 do not know.
    let mut flags: Vec<OsString> = vec!["-Cpanic=unwind".into(), "-Cllvm-args=-wasm-use-legacy-eh=true".into()];
    flags.push(format!("-Ctarget-feature={}", features.join(",")).into());
    flags.extend(SHARED_MEMORY.iter().map(|it| format!("-Clink-arg={it}").into()));
    if let Some(linker) = toolchain.linker() {
        flags.push(concat(["-Clinker=".as_ref(), linker.as_os_str()]));
    }
    // Panics name files; those of dependencies should not name the folders of the machine that built them.
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let sources = toolchain.sysroot().join("lib/rustlib/src/rust");
    for (folder, name) in [(cargo_home, "/cargo"), (Some(sources), "/rustc")] {
        if let Some(folder) = folder {
            flags.push(concat(["--remap-path-prefix=".as_ref(), folder.as_os_str(), "=".as_ref(), name.as_ref()]));
        }
    }
    flags.join(&OsString::from("\u{1f}"))
}

fn concat<const N: usize>(parts: [&OsStr; N]) -> OsString {
    parts.into_iter().collect()
}

/// Adds a variant's optimised module and its glue to the files of the package. Splitting, if it follows, goes by the names of functions, and leaves
/// them out.
fn package(root: &Path, tools: &Tools, variant: &Variant, module: &Path, is_split: bool, files: &mut Files) -> Outcome {
    let staging = root.join("target/wasm/staging").join(variant.name);
    fs::create_dir_all(&staging).map_err(|e| format!("cannot create {}: {e}", staging.display()))?;
    run(Command::new(&tools.bindgen).arg(module).arg(&staging).arg(variant.glue))?;

    let optimiser = root.join("node_modules/binaryen/bin/wasm-opt");
    if !optimiser.exists() {
        return Err("wasm-opt is missing\nhelp: npm install".to_owned());
    }
    // The module says which features it uses, so wasm-opt needs to be told none. The compiler has inlined and unrolled
    // already: passes above the first level make the module larger after gzip (3.73 MB, not 3.48), and no faster.
    let (raw, optimised) = (staging.join(format!("{}_bg.wasm", variant.glue)), staging.join("optimised.wasm"));
    let names = (is_split && split::is_split(variant.file)).then_some("-g");
    run(Command::new("node").arg(optimiser).arg("-O1").args(names).arg(raw).arg("-o").arg(&optimised))?;
    // In the package memory is not shared, as most pages can share none. Who has threads changes that (`ts/src/engine/memory.ts`).
    let unshared = staging.join("unshared.wasm");
    run(Command::new(&tools.split).arg("unshare").arg(&optimised).arg(&unshared))?;
    let module = if names.is_some() {
        unshared
    } else {
        let anywhere = staging.join("anywhere.wasm");
        run(Command::new(&tools.split).arg("without-relaxed").arg(&unshared).arg(&anywhere))?;
        anywhere
    };
    files.insert(variant.file.to_owned(), read(&module)?);

    for extension in ["js", "d.ts"] {
        let name = format!("{}.{extension}", variant.glue);
        let text = adapted(extension, &read(&staging.join(&name))?)?;
        if files.get(&name).is_some_and(|it| *it != text) {
            return Err(format!("{name} of the variant {} is not that of the variants before it", variant.name));
        }
        files.insert(name, text);
    }
    Ok(())
}

/// The glue, or its types, with a function that says whether memory is shared, which it is not by default, and without what the package does itself.
fn adapted(extension: &str, glue: &[u8]) -> Result<Vec<u8>, String> {
    const SHARED: &str = "shared:true";
    let text = std::str::from_utf8(glue).map_err(|e| format!("glue that is no text: {e}"))?;
    let (text, more) = match (extension, text.matches(SHARED).count()) {
        ("js", 1) => (given_modules(&text.replace(SHARED, "shared:memory_is_shared"))?, SHARE_MEMORY),
        ("d.ts", 0) => (text.to_owned(), SHARE_MEMORY_TYPE),
        (_, n) => return Err(format!("glue ({extension}) that makes shared memory in {n} places")),
    };
    Ok((text + more).into_bytes())
}

/// The glue for modules that are compiled, as the package gives them: without what fetches and compiles, and without warnings of older signatures.
fn given_modules(glue: &str) -> Result<String, String> {
    let mut res = glue.to_owned();
    for (begin, end, replacement) in UNUSED {
        let found = res.find(begin).and_then(|at| Some((at, at + res[at..].find(end)? + end.len())));
        let (from, to) = found.ok_or_else(|| format!("glue without `{begin}`"))?;
        res.replace_range(from..to, replacement);
    }
    Ok(res)
}

/// What is replaced in the glue, from a beginning to an end.
const UNUSED: &[(&str, &str, &str)] = &[
    (
        "async function __wbg_load(module, imports) {",
        "\n}\n",
        "async function __wbg_load(module, imports) {
    return { instance: await WebAssembly.instantiate(module, imports), module };
}
",
    ),
    (" else {\n            console.warn('using deprecated parameters for `initSync()`", "        }\n", "\n"),
    (
        " else {\n            console.warn('using deprecated parameters for the initialization function",
        "        }\n",
        "\n",
    ),
    ("    if (typeof module_or_path === 'string'", "    }\n", ""),
];

const SHARE_MEMORY: &str = "
let memory_is_shared = false;

export function share_memory(is_shared) {
    memory_is_shared = is_shared;
}
";

const SHARE_MEMORY_TYPE: &str = "
/**
 * Says whether the memory of instances that are made from now on is shared among threads.
 */
export function share_memory(is_shared: boolean): void;
";

/// Makes a folder hold exactly these files.
fn install(folder: &Path, files: &Files) -> Outcome {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|e| format!("cannot empty {}: {e}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Runs a command to its end; a failure names it.
fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("cannot run {name}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}
