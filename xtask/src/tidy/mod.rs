//! Holds the rules of the repository that no compiler knows: who may depend on whom, and what files look like.
//!
//! Every rule is a function from facts to complaints, one line each, so that all of them are reported at once.

mod allocations;
mod features;
mod files;
mod floors;
mod lockfile;
mod publishing;
mod registry;
mod rows;
mod unsafe_code;

use crate::Outcome;
use std::path::Path;

/// Checks every rule and reports everything that breaks one.
pub(crate) fn check(root: &Path) -> Outcome {
    let mut complaints = rows::check(root)?;
    complaints.extend(floors::check(root)?);
    complaints.extend(files::check(root)?);
    complaints.extend(allocations::check(root)?);
    complaints.extend(lockfile::check(root)?);
    complaints.extend(publishing::check(root)?);
    complaints.extend(registry::check(root)?);
    complaints.extend(unsafe_code::check(root)?);
    complaints.extend(features::check(root)?);
    if complaints.is_empty() {
        println!(
            "tidy: rows, floors, files, allocations, lockfile, publishing, registries, unsafe code and features are in order"
        );
        return Ok(());
    }
    Err(complaints.join("\n"))
}
