//! Programs that PyTorch exported.
//!
//! The fixtures of the repository always run. `TRACEFX_PROGRAMS` names further directories, separated by `:`, that are
//! searched for folders with a `model.pt2`.

use std::path::{Path, PathBuf};

/// The folders of the programs, sorted.
pub(crate) fn folders() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs");
    let further = std::env::var("TRACEFX_PROGRAMS").unwrap_or_default();
    let roots = [fixtures].into_iter().chain(further.split(':').filter(|it| !it.is_empty()).map(PathBuf::from));
    let inside = |root: PathBuf| std::fs::read_dir(root).unwrap().map(|it| it.unwrap().path());
    let mut res: Vec<PathBuf> = roots.flat_map(inside).filter(|it| it.join("model.pt2").exists()).collect();
    res.sort();
    res
}
