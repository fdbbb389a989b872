//! What is published can be: each crate says what a registry asks for, and depends on nothing that stays here.

use super::rows::{metadata, ours};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Crates that are not published, with the reason. All others are.
const KEPT: &[(&str, &str)] = &[
    ("codegen", CHORE),
    ("tracefx-conformance", TESTS),
    ("tracefx-fuzz", TESTS),
    ("tracefx-testing", TESTS),
    ("tracefx-wasm", MODULE),
    ("tracefx-wasm-gpu", MODULE),
    ("tracefx-wasm-parts", MODULE),
    ("tracefx-wasm-runtime", MODULE),
    ("wasm-split", CHORE),
    ("workspace-hack", CHORE),
    ("xtask", CHORE),
];

const CHORE: &str = "a chore of the repository";
const TESTS: &str = "a part of the tests";
const MODULE: &str = "a module of the npm package";

/// What registries show, and what they refuse a crate without.
const ASKED: &[&str] = &["description", "license", "repository", "readme", "keywords", "categories"];

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    complaints(&metadata(root)?)
}

fn complaints(metadata: &Value) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let is_kept = |name: &str| KEPT.iter().any(|(it, _)| *it == name);
    let mut res = Vec::new();
    for package in packages {
        let name = package["name"].as_str().ok_or("a package has no name")?;
        // `publish = false` is a list of no registries.
        let is_published = package["publish"].is_null();
        if is_published == is_kept(name) {
            res.push(format!("{name}: `publish` of Cargo.toml and the list in xtask/src/tidy/publishing.rs differ"));
        }
        if !is_published {
            continue;
        }
        let is_missing = |it: &&&str| package[**it].is_null() || package[**it].as_array().is_some_and(Vec::is_empty);
        res.extend(ASKED.iter().filter(is_missing).map(|it| format!("{name} is published and has no `{it}`")));
        for dependency in package["dependencies"].as_array().ok_or("a package has no dependencies")? {
            res.extend(told_of_dependency(name, &package["version"], dependency, &is_kept));
        }
    }
    let names: BTreeSet<&str> = packages.iter().filter_map(|it| it["name"].as_str()).collect();
    let stale = KEPT.iter().filter(|(it, _)| !names.contains(it));
    res.extend(stale.map(|(it, _)| format!("there is no crate {it}: take it out of xtask/src/tidy/publishing.rs")));
    Ok(res)
}

/// What is wrong with a dependency of a published crate on one of the workspace.
fn told_of_dependency(
    name: &str,
    version: &Value,
    dependency: &Value,
    is_kept: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let (to, asked) = (dependency["name"].as_str()?, dependency["req"].as_str()?);
    if ours(dependency).is_none() && !is_kept(to) {
        return None;
    }
    let exact = format!("={}", version.as_str()?);
    if dependency["kind"] == "dev" {
        return (asked != "*").then(|| {
            format!("{name} names a version of {to} for its tests: name the path alone, which is left out of what is published")
        });
    }
    if is_kept(to) {
        return Some(format!("{name} is published and depends on {to}, which is not"));
    }
    (asked != exact).then(|| format!("{name} asks for {to} {asked} instead of {exact}: they are one release"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept() -> Vec<Value> {
        KEPT.iter().map(|(it, _)| json!({ "name": it, "publish": [] })).collect()
    }

    fn published(dependencies: Value) -> Value {
        json!({
            "name": "tracefx-ir", "version": "0.1.0", "publish": null, "description": "…", "license": "MIT", "repository": "…",
            "readme": "README.md", "keywords": ["graph"], "categories": ["science"], "dependencies": dependencies,
        })
    }

    fn told(package: Value) -> Vec<String> {
        let packages: Vec<Value> = kept().into_iter().chain([package]).collect();
        complaints(&json!({ "packages": packages })).unwrap()
    }

    #[test]
    fn a_crate_with_all_that_a_registry_asks_for_is_published() {
        let core = json!({ "name": "tracefx-core", "req": "=0.1.0", "kind": null });
        let testing = json!({ "name": "tracefx-testing", "req": "*", "kind": "dev" });
        let foreign = json!({ "name": "half", "req": "^2.7", "kind": null });
        assert_eq!(told(published(json!([core, testing, foreign]))), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut package = published(json!([]));
        package["description"] = Value::Null;
        package["keywords"] = json!([]);
        assert_eq!(
            told(package),
            ["tracefx-ir is published and has no `description`", "tracefx-ir is published and has no `keywords`"]
        );
        let mut package = published(json!([]));
        package["publish"] = json!([]);
        assert_eq!(told(package).len(), 1);
    }

    #[test]
    fn dependencies_that_cannot_be_published_are_told() {
        let told =
            |name: &str, req: &str, kind: Value| told(published(json!([{ "name": name, "req": req, "kind": kind }])));
        assert!(told("tracefx-core", "*", Value::Null)[0].contains("instead of =0.1.0"));
        assert!(told("tracefx-testing", "=0.1.0", Value::Null)[0].ends_with("which is not"));
        assert!(told("workspace-hack", "*", Value::Null)[0].ends_with("which is not"));
        assert!(told("tracefx-core", "=0.1.0", json!("dev"))[0].contains("name the path alone"));
    }
}
