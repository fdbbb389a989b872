//! Programs that are saved and read again: they are equal, say what PyTorch's own file says, and are saved the same again.
//!
//! `TRACEFX_PROGRAMS` names further directories, separated by `:`, that are searched for folders with a `model.pt2`.

use crate::recorded::{fixtures, folders};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tracefx_core::Tensor;
use tracefx_export::{Constant, ExportedProgram, StateEntry};
use tracefx_ir::{Attribute, GraphModule};
use tracefx_pt2::{Archive, Container, LoadOptions, SCHEMA_VERSION, SaveOptions, load, save};

fn all_folders() -> Vec<PathBuf> {
    let mut roots = vec![fixtures().join("programs"), fixtures().join("programs-compat")];
    if let Ok(further) = std::env::var("TRACEFX_PROGRAMS") {
        roots.extend(further.split(':').map(PathBuf::from));
    }
    folders(roots)
}

fn saved(program: &ExportedProgram) -> tracefx_core::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    save(program, &SaveOptions::default(), &mut bytes)?;
    Ok(bytes)
}

fn opened(bytes: &[u8]) -> ExportedProgram {
    load(bytes, &LoadOptions::default()).unwrap()
}

/// Everything of a program as text; storages are numbered in the order of first use, so that sharing shows.
fn text_of(program: &ExportedProgram) -> String {
    let mut storages: HashMap<(usize, bool), usize> = HashMap::new();
    // State and constants never share a storage after a file was read.
    let mut tensor = |it: &Tensor, is_state: bool| {
        let n_storages = storages.len();
        let storage = *storages.entry((it.storage().id(), is_state)).or_insert(n_storages);
        let shared = if it.storage().is_empty() { 0 } else { storage };
        let bytes = crc32fast::hash(it.storage().read().bytes());
        format!("{:?} {:?} {:?} {} in {shared}: {bytes:x}", it.dtype(), it.sizes(), it.strides(), it.offset())
    };
    let mut text = String::new();
    for (name, StateEntry { tensor: it, is_parameter, requires_grad }) in &program.state_dict {
        text += &format!("{name}: {} {is_parameter} {requires_grad}\n", tensor(it, true));
    }
    for (name, constant) in &program.constants {
        text += &match constant {
            Constant::Tensor(it) => format!("{name}: {}\n", tensor(it, false)),
            Constant::CustomObj(bytes) => format!("{name}: {bytes:?}\n"),
        };
    }
    let examples = program.example_inputs.iter().flatten().map(|it| match it {
        tracefx_ops::Value::Tensor(it) => format!("{:?} {:?} {:?}", it.dtype(), it.sizes(), it.to_bytes()),
        other => format!("{other:?}"),
    });
    text += &format!("{:?}\n", examples.collect::<Vec<_>>());
    text += &module_text(&program.module);
    let ExportedProgram {
        module: _,
        signature,
        state_dict: _,
        opaque_state,
        constants: _,
        range_constraints,
        module_call_graph,
        verifiers,
        guards,
        example_inputs,
        opset_version,
        schema_version: _,
        torch_version,
        namedtuple_fields,
        extra_files,
        warnings: _,
    } = program;
    text +=
        &format!("{signature:#?}\n{opaque_state:?}\n{range_constraints:#?}\n{module_call_graph:#?}\n{verifiers:?}\n");
    text += &format!("{guards:#?}\n{}\n{opset_version:?}\n", example_inputs.is_some());
    text + &format!("{torch_version}\n{namedtuple_fields:?}\n{extra_files:#?}\n")
}

fn module_text(module: &GraphModule) -> String {
    let mut text = format!("{}\n{:?}\n{}\n", module.class_name, module.meta, module.graph);
    for id in module.graph.nodes() {
        let node = module.graph.node(id);
        text += &format!("{} {:?} {:?} {:?}\n", node.name(), node.args(), node.kwargs(), node.meta);
    }
    for (name, attribute) in &module.attributes {
        let Attribute::Module(module) = attribute else { panic!("{name} is a tensor in the graph") };
        text += &format!("{name}:\n{}", module_text(module));
    }
    text
}

#[track_caller]
fn assert_same(a: &str, b: &str, place: &Path) {
    if let Some((was, is)) = a.lines().zip(b.lines()).find(|(a, b)| a != b) {
        panic!("{}:\n  was {was}\n  is  {is}", place.display());
    }
    assert_eq!(a.lines().count(), b.lines().count(), "{}", place.display());
}

/// The programs of these folders, and where not all of one can be saved, why.
#[test]
fn what_was_saved_is_equal_and_is_saved_the_same_again() {
    let folders = all_folders();
    assert!(folders.len() > 30, "{} programs only", folders.len());
    for folder in folders {
        let program = opened(&std::fs::read(folder.join("model.pt2")).unwrap());
        let first = match saved(&program) {
            Ok(bytes) => bytes,
            // One pickle holds the whole state of these, and a tensor subclass cannot be cut out.
            Err(error) if folder.ends_with("subclass_weight") && program.schema_version.1 < 14 => {
                assert!(error.message().contains("cannot be cut out"), "{error}");
                continue;
            }
            Err(error) => panic!("{}: {error}", folder.display()),
        };
        let again = opened(&first);
        assert_eq!(again.warnings.len(), 0, "{}: {:?}", folder.display(), again.warnings);
        assert_eq!(again.schema_version, SCHEMA_VERSION);
        assert_same(&text_of(&program), &text_of(&again), &folder);
        assert!(saved(&again).unwrap() == first, "{}", folder.display());
    }
}

/// Leaves out what a reader of PyTorch's document does not keep: the values of symbols when the program was exported, and
/// the names of nodes that give nothing, which PyTorch's own reader replaces.
fn without_hints(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            if fields.get("outputs") == Some(&serde_json::json!([{ "as_none": true }])) {
                fields.shift_remove("name");
            }
            if fields.contains_key("expr_str") {
                fields.insert("hint".to_string(), Json::Null);
            }
            fields.values_mut().for_each(without_hints);
        }
        Json::Array(items) => items.iter_mut().for_each(without_hints),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// The first place where two documents differ.
fn difference(a: &Json, b: &Json, place: &str) -> Option<String> {
    match (a, b) {
        (Json::Object(a_fields), Json::Object(b_fields)) => {
            if let Some(key) = a_fields
                .keys()
                .chain(b_fields.keys())
                .find(|it| !a_fields.contains_key(*it) || !b_fields.contains_key(*it))
            {
                return Some(format!("{place}.{key}: {} / {}", a, b));
            }
            a_fields.iter().find_map(|(key, it)| difference(it, &b_fields[key], &format!("{place}.{key}")))
        }
        (Json::Array(a_items), Json::Array(b_items)) if a_items.len() == b_items.len() => {
            a_items.iter().zip(b_items).enumerate().find_map(|(at, (a, b))| difference(a, b, &format!("{place}[{at}]")))
        }
        _ if a == b => None,
        _ => Some(format!("{place}: {a} / {b}")),
    }
}

#[test]
fn the_documents_say_what_those_of_pytorch_say() {
    let mut n_compared = 0;
    let mut failures = Vec::new();
    for folder in all_folders() {
        let bytes = std::fs::read(folder.join("model.pt2")).unwrap();
        let program = opened(&bytes);
        let original = Archive::open(&bytes, &LoadOptions::default()).unwrap();
        if program.schema_version != SCHEMA_VERSION || original.container() != Container::RawWeights {
            continue;
        }
        let saved = saved(&program).unwrap();
        let saved = Archive::open(&saved, &LoadOptions::default()).unwrap();
        let json = |archive: &Archive<'_>, name: &str| {
            let entry = archive.entries().find(|it| it.ends_with(name)).unwrap().to_string();
            let mut json: Json = serde_json::from_slice(&archive.read(&entry).unwrap()).unwrap();
            without_hints(&mut json);
            json
        };
        for name in ["/models/model.json", "model_weights_config.json", "model_constants_config.json"] {
            if let Some(found) = difference(&json(&original, name), &json(&saved, name), "") {
                failures.push(format!("{} {name}: {}", folder.display(), found.chars().take(600).collect::<String>()));
            }
        }
        n_compared += 1;
    }
    assert!(n_compared > 25, "{n_compared} were compared");
    assert!(failures.is_empty(), "{} of {n_compared}:\n{}", failures.len(), failures.join("\n"));
}
