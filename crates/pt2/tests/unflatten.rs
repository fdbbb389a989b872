//! What `torch.export.unflatten` makes of programs: `tests/oracle/gen_unflattened.py`.

use serde_json::Value as Json;
use std::path::Path;
use tracefx_ir::{Attribute, GraphModule};
use tracefx_pt2::{LoadOptions, load};

/// Programs whose modules are others than PyTorch's, and why.
const DIFFERENT: &[&str] = &[
    // A signature that was to be preserved: its call takes the values that it uses.
    "programs/preserve_signature/model.pt2",
];

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// The modules in PyTorch's order, with the graphs of those that have one.
fn modules_of(path: String, module: &GraphModule, res: &mut Vec<(String, Option<String>)>) {
    res.push((path.clone(), (!module.graph.is_empty()).then(|| module.graph.to_string())));
    for (name, attribute) in &module.attributes {
        if let Attribute::Module(child) = attribute {
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            modules_of(path, child, res);
        }
    }
}

fn is_control_flow(path: &str) -> bool {
    path.rsplit('.').next().is_some_and(|it| it.contains("_graph_"))
}

#[track_caller]
fn check(name: &str, recorded: &Json) {
    let program = load(&std::fs::read(fixtures().join(name)).unwrap(), &LoadOptions::default()).unwrap();
    let module = match (program.unflatten(), recorded["modules"].as_array()) {
        (Err(_), None) => return,
        (Err(problem), Some(_)) => panic!("{name}: {problem}"),
        (Ok(_), None) => panic!("{name}: PyTorch refuses it, {}", recorded["error"]),
        (Ok(module), Some(_)) => module,
    };
    for (path, it) in module.modules() {
        let problems = it.graph.lint(Some(it));
        assert!(problems.is_empty(), "{name}, {path}: {}", problems[0]);
    }
    let mut made = Vec::new();
    modules_of(String::new(), &module, &mut made);
    let text = |it: &Json| it.as_str().map(str::to_string);
    let mut recorded: Vec<(String, Option<String>)> =
        recorded["modules"].as_array().unwrap().iter().map(|it| (text(&it[0]).unwrap(), text(&it[1]))).collect();
    // PyTorch keeps the graphs of control flow in a set, whose order is any.
    made.sort_by_key(|(path, _)| is_control_flow(path).then(|| path.clone()));
    recorded.sort_by_key(|(path, _)| is_control_flow(path).then(|| path.clone()));
    for (made, recorded) in made.iter().zip(&recorded) {
        let show = |(path, graph): &(String, Option<String>)| format!("{path:?}\n{}", graph.as_deref().unwrap_or("-"));
        assert!(made == recorded, "{name}: we make {}\n\nPyTorch makes {}", show(made), show(recorded));
    }
    assert_eq!(made.len(), recorded.len(), "{name}");
}

#[test]
fn modules_are_those_that_pytorch_makes() {
    let recorded = std::fs::read_to_string(fixtures().join("unflattened/modules.json")).unwrap();
    let recorded: serde_json::Map<String, Json> = serde_json::from_str(&recorded).unwrap();
    assert!(recorded.len() >= 40, "{} programs are recorded", recorded.len());
    for (name, recorded) in recorded.iter().filter(|(name, _)| !DIFFERENT.contains(&name.as_str())) {
        check(name, recorded);
    }
}
