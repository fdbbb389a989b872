//! What `torch.export.unflatten` makes of programs: `tests/oracle/gen_unflattened.py`.

use serde_json::Value as Json;
use std::path::Path;
use tracefx_export::default_decompositions;
use tracefx_ir::{Attribute, GraphModule};
use tracefx_pt2::{LoadOptions, load};

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// The modules in PyTorch's order, with the graphs of those that have one.
fn modules_of(path: String, module: &GraphModule, res: &mut Vec<(String, Option<String>)>) {
    res.push((path.clone(), (!module.graph.is_empty()).then(|| module.graph.to_string())));
    for (name, attribute) in &module.attributes {
        if let Attribute::Module(child) = attribute
            && &*child.class_name != "TreeSpec"
        {
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            modules_of(path, child, res);
        }
    }
}

fn is_control_flow(path: &str) -> bool {
    path.rsplit('.').next().is_some_and(|it| it.contains("_graph_"))
}

type Modules = Vec<(String, Option<String>)>;

/// A preserved module whose calls do different things is one module in PyTorch, which counts how often it is called; here
/// each of these calls has a module, such as `leaf@1`. PyTorch's calls are recorded as `leaf[0]`, `leaf[1]`…
fn as_calls(made: &mut Modules, recorded: &mut Modules) {
    let counting: Vec<String> =
        recorded.iter().filter_map(|(path, _)| Some(path.strip_suffix("[0]")?.into())).collect();
    if counting.is_empty() {
        return;
    }
    recorded.retain(|(path, _)| !counting.contains(path));
    let mut seen = Vec::new();
    recorded.retain_mut(|(path, graph)| {
        let Some((module, call)) = path
            .clone()
            .strip_suffix(']')
            .and_then(|it| it.split_once('['))
            .map(|(a, b)| (a.to_string(), b.to_string()))
        else {
            return true;
        };
        *path = if call == "0" { module } else { format!("{module}@{call}") };
        let plain = without_names(graph.as_deref().unwrap());
        let is_new = !seen.contains(&plain);
        seen.push(plain);
        is_new
    });
    made.retain(|(path, _)| !path.split_once('@').is_some_and(|(_, rest)| rest.contains('.')));
    for (_, graph) in made.iter_mut() {
        for (module, call) in counting.iter().flat_map(|it| (1..4).map(move |call| (it, call))) {
            let called = format!("target={module}@{call}]");
            *graph = graph.as_ref().map(|it| it.replace(&called, &format!("target={module}]")));
        }
    }
    made.sort();
    recorded.sort();
}

/// A graph with numbers in the place of names, as modules are compared.
fn without_names(graph: &str) -> String {
    let lines: Vec<&str> = graph.lines().collect();
    let names = lines.iter().filter_map(|it| it.trim_start().strip_prefix('%')?.split(' ').next());
    let names: Vec<&str> = names.collect();
    let mut res = graph.to_string();
    for (at, name) in names.iter().enumerate().rev() {
        for end in [" ", ",", ")", "]", "}"] {
            res = res.replace(&format!("%{name}{end}"), &format!("%{at}{end}"));
        }
        res = res.replace(&format!("placeholder[target={name}]"), "placeholder");
        res = res.replace(&format!("return {name}\n"), &format!("return {at}\n"));
    }
    res.lines().filter(|it| !it.contains("call_module")).collect::<Vec<_>>().join("\n")
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
    as_calls(&mut made, &mut recorded);
    if name.starts_with("unflattened/preserved_wrapped/") {
        // PyTorch gives None in the place of a constant that a preserved module gives.
        let given = |it: &mut String| *it = it.replace("%x, 3), %_spec_1)", "%x, None), %_spec_1)");
        made.iter_mut().filter_map(|(_, graph)| graph.as_mut()).for_each(given);
    }
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
    for (name, recorded) in &recorded {
        check(name, recorded);
    }
}

#[test]
fn preserved_signatures_follow_decompositions() {
    let mut n_programs = 0;
    for folder in std::fs::read_dir(fixtures().join("unflattened")).unwrap().map(|it| it.unwrap().path()) {
        let Ok(bytes) = std::fs::read(folder.join("model_core.pt2")) else { continue };
        let recorded = load(&bytes, &LoadOptions::default()).unwrap();
        let program = load(&std::fs::read(folder.join("model.pt2")).unwrap(), &LoadOptions::default()).unwrap();
        let made = program.run_decompositions(&default_decompositions()).unwrap();
        assert_eq!(made.module_call_graph, recorded.module_call_graph, "{}", folder.display());
        made.validate().unwrap();
        n_programs += 1;
    }
    assert_eq!(n_programs, 17);
}

#[test]
fn what_a_preserved_signature_names_stays_when_operators_are_taken_apart() {
    // PyTorch loses the item of `cond` that the signature names, and refuses the program.
    let file = fixtures().join("unflattened/preserved_branch/model.pt2");
    let program = load(&std::fs::read(file).unwrap(), &LoadOptions::default()).unwrap();
    let core = program.run_decompositions(&default_decompositions()).unwrap();
    core.validate().unwrap();
    assert!(core.unflatten().unwrap().submodule("leaf").is_ok());
}
