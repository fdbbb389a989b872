//! The npm lockfile names packages, not the hosts that they happened to come from.

use serde_json::Value;
use std::fs;
use std::path::Path;

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let path = root.join("package-lock.json");
    let text = fs::read_to_string(&path).map_err(|e| format!("cannot read package-lock.json: {e}"))?;
    let lockfile = serde_json::from_str(&text).map_err(|e| format!("package-lock.json is no JSON: {e}"))?;
    Ok(hosts(&lockfile))
}

fn hosts(lockfile: &Value) -> Vec<String> {
    let packages = lockfile["packages"].as_object().into_iter().flatten();
    packages
        .filter(|(_, it)| it["resolved"].as_str().is_some_and(|url| url.contains("://")))
        .map(|(name, _)| {
            format!("package-lock.json records a host for {name}: npm install --omit-lockfile-registry-resolved")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recorded_hosts_are_refused_and_links_are_not() {
        let lockfile = json!({ "packages": {
            "node_modules/a": { "resolved": "https://registry.example/a.tgz" },
            "node_modules/tracefx": { "resolved": "ts", "link": true },
        } });
        assert_eq!(hosts(&lockfile).len(), 1);
        assert!(hosts(&lockfile)[0].contains("node_modules/a"));
    }
}
