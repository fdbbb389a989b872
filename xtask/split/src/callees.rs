//! What stays in the primary module beside what was called.

use crate::Refusal;
use crate::relaxed::relaxed_functions;
use crate::source::Source;
use crate::split::LOADER;
use std::collections::{BTreeSet, HashMap};
use wasmparser::{ExternalKind, KnownCustom, Name, Operator, Parser, Payload};

/// What a stub, its export and its place in the table come to, in bytes: leaving a smaller function out saves nothing.
const SMALL: usize = 64;

/// How large a function of the standard library or of a container may be, in bytes. Which of them run is a matter of sizes: a map
/// of few entries never splits a node, and a program that is a little longer than those that were watched does.
const SMALL_OF_LIBRARIES: usize = 300;

/// The export that threads call, whose parts nobody should fetch for each of them.
const WORKER: &str = "run_worker";

/// The export that says whether there is relaxed SIMD, before any other call.
const RELAXED: &str = "use_relaxed_simd";

/// The libraries of containers.
const LIBRARIES: &[&str] = &["alloc", "core", "std", "hashbrown", "indexmap", "smallvec"];

/// These functions, and the small ones that they call, and that these call in turn: a run that takes another branch than the one that
/// was watched finds them there. Which belong to libraries is told by the module's section of names.
///
/// Functions are named by their number among those that the module defines.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Truncated`] and [`Refusal::Unsupported`].
pub fn with_small_callees(
    module: &[u8],
    functions: impl IntoIterator<Item = usize>,
) -> Result<BTreeSet<usize>, Refusal> {
    let (source, names) = (Source::read(module)?, names(module)?);
    let imported = source.imported.len();
    let is_small = |callee: usize| {
        let name = u32::try_from(callee + imported).ok().and_then(|it| names.get(&it));
        let limit = if name.is_some_and(|it| is_of_library(it)) { SMALL_OF_LIBRARIES } else { SMALL };
        source.bodies.get(callee).is_some_and(|it| it.range().len() <= limit)
    };
    closure(&source, functions, is_small)
}

/// These functions, and what is called in places where no part can be waited for: [`LOADER`] and all that it calls, or
/// it would ask for a part to load a part; what threads wait by; what is called when the module begins; what calls functions with relaxed SIMD,
/// of which a run without it tells nothing; and what gives memory back (`__wbg_…_free`, `__wbindgen_…`), which JavaScript calls whenever it likes.
///
/// # Errors
/// As [`with_small_callees`].
pub fn with_roots(module: &[u8], functions: impl IntoIterator<Item = usize>) -> Result<BTreeSet<usize>, Refusal> {
    let source = Source::read(module)?;
    let imported = source.imported.len();
    let is_root = |name: &str| {
        [LOADER, WORKER, RELAXED].contains(&name) || name.starts_with("__wbg_") || name.starts_with("__wbindgen_")
    };
    let roots = source.exports.iter().filter(|it| it.kind == ExternalKind::Func && is_root(it.name));
    let roots = roots.filter_map(|it| (it.index as usize).checked_sub(imported));
    let mut res = closure(&source, roots, |_| true)?;
    let relaxed = relaxed_functions(module)?;
    for function in (0..source.bodies.len()).filter(|it| !relaxed.contains(it)) {
        if callees(&source, function)?.iter().any(|it| relaxed.contains(it)) {
            res.insert(function);
        }
    }
    res.extend(functions);
    Ok(res)
}

/// These functions, and what they call and what that calls, as far as it `belongs`.
fn closure(
    source: &Source<'_>,
    functions: impl IntoIterator<Item = usize>,
    belongs: impl Fn(usize) -> bool,
) -> Result<BTreeSet<usize>, Refusal> {
    let mut res: BTreeSet<usize> = functions.into_iter().collect();
    let mut left: Vec<usize> = res.iter().copied().collect();
    while let Some(function) = left.pop() {
        for callee in callees(source, function)? {
            if belongs(callee) && res.insert(callee) {
                left.push(callee);
            }
        }
    }
    Ok(res)
}

/// The functions that one calls directly, of those that the module defines.
fn callees(source: &Source<'_>, function: usize) -> Result<Vec<usize>, Refusal> {
    let Some(body) = source.bodies.get(function) else { return Ok(Vec::new()) };
    let mut res = Vec::new();
    for operator in body.get_operators_reader()? {
        if let Operator::Call { function_index } = operator? {
            res.extend((function_index as usize).checked_sub(source.imported.len()));
        }
    }
    Ok(res)
}

/// The names of functions by their index.
fn names(module: &[u8]) -> Result<HashMap<u32, &str>, Refusal> {
    let mut res = HashMap::new();
    for payload in Parser::new(0).parse_all(module) {
        let Payload::CustomSection(section) = payload? else { continue };
        let KnownCustom::Name(subsections) = section.as_known() else { continue };
        for subsection in subsections {
            let Name::Function(functions) = subsection? else { continue };
            for naming in functions {
                let naming = naming?;
                res.insert(naming.index, naming.name);
            }
        }
    }
    Ok(res)
}

/// Whether a name begins with the path of a library, as in `<alloc[1f]::vec::Vec<u8>>::push` and `core::fmt::write`.
fn is_of_library(name: &str) -> bool {
    let path = name.trim_start_matches(['<', '&']);
    let mut rests = LIBRARIES.iter().filter_map(|it| path.strip_prefix(it));
    rests.any(|it| it.starts_with("::") || it.starts_with('['))
}
