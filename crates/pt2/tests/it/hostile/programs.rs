//! Whole archives that are well formed, around a program that is not.

use super::mutations::fixture;
use super::zip_writer::{Entry, entry, zip};
use proptest::prelude::*;
use serde_json::{Value, json};
use tracefx_core::Code;
use tracefx_export::ExportedProgram;
use tracefx_pt2::{Archive, Limits, LoadOptions, load};

const JSON: &str = "model/models/model.json";
const WEIGHTS: &str = "model/data/weights/model_weights_config.json";

/// The fixture with one of its JSON documents changed, and honest checksums.
fn changed(fixture_name: &str, document: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let bytes = fixture(fixture_name);
    let archive = Archive::open(&bytes, &LoadOptions::default()).unwrap();
    let mut change = Some(change);
    let entries: Vec<Entry> = archive
        .entries()
        .map(|name| {
            let old = archive.read(name).unwrap();
            if name != document {
                return entry(name, old.into_owned());
            }
            let mut json: Value = serde_json::from_slice(&old).unwrap();
            (change.take().expect("the document is there once"))(&mut json);
            entry(name, json.to_string())
        })
        .collect();
    assert!(change.is_none(), "{document} is not in {fixture_name}");
    zip(&entries)
}

fn graph(json: &mut Value) -> &mut Value {
    &mut json["graph_module"]["graph"]
}

#[track_caller]
fn refused(bytes: &[u8], options: &LoadOptions, code: Code, part: &str) {
    let error = load(bytes, options).expect_err("a broken program was accepted");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[track_caller]
fn invalid(fixture_name: &str, change: impl FnOnce(&mut Value), code: Code, part: &str) {
    refused(&changed(fixture_name, JSON, change), &LoadOptions::default(), code, part);
}

#[test]
fn an_unchanged_program_is_still_read() {
    let bytes = changed("programs/cond_simple", JSON, |_| ());
    assert!(load(&bytes, &LoadOptions::default()).is_ok());
}

#[test]
fn values_must_be_computed_before_they_are_used() {
    let cond = "programs/cond_simple";
    invalid(cond, |it| graph(it)["nodes"].as_array_mut().unwrap().reverse(), Code::GraphInvalid, "topological order");
    let own = |it: &mut Value| {
        let name = graph(it)["nodes"][0]["outputs"][0]["as_tensor"].clone();
        graph(it)["nodes"][0]["inputs"][0]["arg"]["as_tensor"] = name;
    };
    invalid(cond, own, Code::GraphInvalid, "(at %sum_1, torch.ops.aten.sum.default)");
    let dangling =
        |it: &mut Value| graph(it)["nodes"][0]["inputs"][0]["arg"] = json!({"as_tensor": {"name": "nobody"}});
    invalid(cond, dangling, Code::GraphInvalid, "no node of the graph computes it");
    let output = |it: &mut Value| graph(it)["outputs"][0] = json!({"as_tensor": {"name": "nobody"}});
    invalid(cond, output, Code::GraphInvalid, "`nobody` is used before it is computed (at %output)");
}

#[test]
fn branches_see_their_own_values_only() {
    let outer = |it: &mut Value| {
        let branch = &mut graph(it)["nodes"][2]["inputs"][1]["arg"]["as_graph"]["graph"];
        branch["nodes"][0]["inputs"][0]["arg"] = json!({"as_tensor": {"name": "sum_1"}});
    };
    invalid("programs/cond_simple", outer, Code::GraphInvalid, "in the sub-graph `true_graph_0`");
}

#[test]
fn every_name_is_given_once_and_known() {
    let cond = "programs/cond_simple";
    let twice = |it: &mut Value| {
        let node = graph(it)["nodes"][0].clone();
        graph(it)["nodes"].as_array_mut().unwrap().insert(0, node);
    };
    invalid(cond, twice, Code::GraphInvalid, "sum_1");
    let unknown = |it: &mut Value| drop(graph(it)["tensor_values"].as_object_mut().unwrap().remove("sum_1"));
    invalid(cond, unknown, Code::GraphInvalid, "nothing is known of the value `sum_1`");
    let same = |it: &mut Value| {
        graph(it)["nodes"][2]["inputs"][2]["arg"]["as_graph"]["name"] = json!("true_graph_0");
    };
    invalid(cond, same, Code::GraphInvalid, "two sub-graphs are called `true_graph_0`");
}

#[test]
fn the_signature_fits_the_graph() {
    let specs = |it: &mut Value, kind: &str| it["graph_module"]["signature"][kind].as_array_mut().unwrap().pop();
    invalid(
        "programs/cond_simple",
        |it| drop(specs(it, "input_specs")),
        Code::GraphInvalid,
        "4 inputs, but its signature 3",
    );
    invalid("programs/cond_simple", |it| drop(specs(it, "output_specs")), Code::GraphInvalid, "2 outputs");
    let renamed = |it: &mut Value| {
        it["graph_module"]["signature"]["input_specs"][0]["parameter"]["arg"]["name"] = json!("other");
    };
    invalid("programs/cond_simple", renamed, Code::GraphInvalid, "calls an input `other`");
    let missing = |it: &mut Value| {
        it["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = json!("other");
    };
    invalid("programs/cond_simple", missing, Code::AttributeMissing, "no data for the PARAMETER `other`");
}

#[test]
fn documents_that_break_the_schema_are_refused() {
    let cond = "programs/cond_simple";
    let union = |it: &mut Value| graph(it)["nodes"][0]["inputs"][0]["arg"]["as_int"] = json!(1);
    invalid(cond, union, Code::SchemaMalformed, "");
    let empty = |it: &mut Value| graph(it)["nodes"][0]["inputs"][0]["arg"] = json!({});
    invalid(cond, empty, Code::SchemaMalformed, "");
    let member = |it: &mut Value| graph(it)["nodes"][0]["inputs"][0]["arg"] = json!({"as_lambda": 1});
    invalid(cond, member, Code::SchemaMalformed, "as_lambda");
    let dtype = |it: &mut Value| graph(it)["tensor_values"]["sum_1"]["dtype"] = json!(99);
    invalid(cond, dtype, Code::SchemaMalformed, "99 is no known ScalarType");
    let wide =
        |it: &mut Value| graph(it)["nodes"][1]["inputs"][1]["arg"] = json!({"as_int": 9_223_372_036_854_775_808u64});
    invalid(cond, wide, Code::SchemaMalformed, "9223372036854775808");
    for (version, part) in [(json!({"major": 7, "minor": 3}), "7.3"), (json!({"major": 9, "minor": 0}), "9.0")] {
        invalid(cond, |it| it["schema_version"] = version, Code::SchemaVersion, part);
    }
    let unknown_fields = changed(cond, JSON, |it| {
        it["new_field"] = json!([1]);
        it["schema_version"]["minor"] = json!(99);
        graph(it)["nodes"][0]["new_field"] = json!({});
    });
    assert!(load(&unknown_fields, &LoadOptions::default()).is_ok());
}

#[test]
fn sizes_and_expressions_are_checked() {
    let cond = "programs/cond_simple";
    let set = |key: &'static str, value: Value| move |it: &mut Value| graph(it)["tensor_values"]["x"][key] = value;
    invalid(cond, set("sizes", json!([{"as_int": -1}, {"as_int": 3}])), Code::GraphInvalid, "size -1");
    invalid(cond, set("sizes", json!([])), Code::GraphInvalid, "0 sizes but");
    invalid(cond, set("sizes", json!(vec![json!({"as_int": 1}); 65])), Code::LimitExceeded, "`rank` is 64");
    for text in ["__import__('os').system('true')", "Symbol('s0'", "", "1/0", "((((((((((", "s0 ** 10 ** 10 ** 10"] {
        let size = json!([{"as_expr": {"expr_str": text, "hint": null}}, {"as_int": 3}]);
        let error = load(&changed(cond, JSON, set("sizes", size)), &LoadOptions::default());
        assert!(error.is_err(), "{text} was accepted");
    }
    let empty = |it: &mut Value| it["range_constraints"] = json!({"s0": {"min_val": 5, "max_val": 4}});
    invalid(cond, empty, Code::GraphInvalid, "no value of the symbol `s0`");
}

#[test]
fn weights_stay_inside_their_bytes() {
    let weight = |key: &str, value: Value| {
        changed("programs/tied_and_views", WEIGHTS, |it| {
            let first = it["config"].as_object_mut().unwrap().values_mut().next().unwrap();
            first["tensor_meta"][key] = value;
        })
    };
    let dims = |them: &[i64]| Value::from(them.iter().map(|it| json!({"as_int": it})).collect::<Vec<_>>());
    let options = LoadOptions::default();
    for (key, value) in [
        ("storage_offset", json!({"as_int": 1_000_000})),
        ("storage_offset", json!({"as_int": -1})),
        ("storage_offset", json!({"as_int": i64::MAX})),
        ("sizes", dims(&[1 << 40, 1 << 40])),
        ("sizes", dims(&[-1, 1])),
        ("sizes", dims(&[1, 1, 1])),
        ("strides", dims(&[i64::MAX, i64::MAX])),
        ("strides", dims(&[-1, 1])),
    ] {
        let bytes = weight(key, value.clone());
        refused(&bytes, &options, Code::ViewOutOfBounds, "while reading");
        assert!(load(&bytes, &options).unwrap_err().notes().len() == 1, "{key} {value}");
    }
    refused(&weight("sizes", dims(&[1; 65])), &options, Code::LimitExceeded, "rank");
    let elsewhere = changed("programs/tied_and_views", WEIGHTS, |it| {
        let first = it["config"].as_object_mut().unwrap().values_mut().next().unwrap();
        first["path_name"] = json!("../../models/model.json");
    });
    refused(&elsewhere, &options, Code::ArchiveMalformed, "has no entry");
}

#[test]
fn many_weights_of_one_pickle_share_it() {
    let bytes = changed("programs/subclass_weight", WEIGHTS, |it| {
        let config = it["config"].as_object_mut().unwrap();
        let pickled = config.values().find(|it| it["use_pickle"] == json!(true)).unwrap().clone();
        config.extend((0..20_000).map(|at| (format!("copy{at}"), pickled.clone())));
    });
    let program = load(&bytes, &LoadOptions::default()).unwrap();
    let (first, last) = (&program.opaque_state["copy0"], &program.opaque_state["copy19999"]);
    assert!(std::sync::Arc::ptr_eq(first, last));
}

#[test]
fn limits_on_programs_hold_and_are_named() {
    let bytes = fixture("programs/cond_simple");
    let check = |limits: Limits, name: &str| {
        refused(&bytes, &LoadOptions { limits, ..LoadOptions::default() }, Code::LimitExceeded, name);
    };
    check(Limits { nodes: 2, ..Limits::default() }, "`nodes` is 2");
    check(Limits { nodes: 4, ..Limits::default() }, "`nodes` is 4");
    check(Limits { node_args: 4, ..Limits::default() }, "`node_args` is 4");
    check(Limits { rank: 1, ..Limits::default() }, "`rank` is 1");
    check(Limits { subgraph_depth: 0, ..Limits::default() }, "`subgraph_depth` is 0");
    check(Limits { json_depth: 8, ..Limits::default() }, "`json_depth` is 8");
    let expression = tracefx_sym::Limits { max_length: 3, ..tracefx_sym::Limits::default() };
    let limits = Limits { expression, ..Limits::default() };
    let bytes = fixture("programs/dyn_derived__core");
    refused(&bytes, &LoadOptions { limits, ..LoadOptions::default() }, Code::LimitExceeded, "max_length");
}

#[test]
fn deep_programs_need_little_stack() {
    // A branch in a branch in a branch, as deep as the JSON may go.
    let nested = |it: &mut Value| {
        for _ in 0..13 {
            let inner = graph(it).clone();
            let node = &mut graph(it)["nodes"][2];
            node["inputs"][1]["arg"]["as_graph"]["graph"] = inner;
        }
    };
    for fixture_name in ["programs/cond_simple", "programs/cond_shape_nested"] {
        let bytes =
            if fixture_name.ends_with("simple") { changed(fixture_name, JSON, nested) } else { fixture(fixture_name) };
        let small = std::thread::Builder::new().stack_size(512 << 10);
        small.spawn(move || drop(load(&bytes, &LoadOptions::default()))).unwrap().join().unwrap();
    }
}

/// The places of a document, as paths of keys and indices.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_string());
    match value {
        Value::Object(map) => {
            map.iter()
                .for_each(|(key, it)| places(it, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), out));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(key, it)| places(it, &format!("{at}/{key}"), out)),
        _ => {}
    }
}

/// Whatever is accepted keeps the rules of graphs, and prints.
fn is_sound(program: &ExportedProgram) -> bool {
    program.module.graph.lint(Some(&program.module)).is_empty() && !program.module.graph.to_string().is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 4,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn one_changed_place_is_refused_or_harmless(
        which in 0..4usize,
        document in 0..2usize,
        place in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        value in prop_oneof![
            Just(None),
            Just(Some(Value::Null)),
            Just(Some(json!([]))),
            Just(Some(json!({}))),
            any::<i64>().prop_map(|it| Some(json!(it))),
            (-2i64..40).prop_map(|it| Some(json!(it))),
            any::<bool>().prop_map(|it| Some(json!(it))),
            "[a-z_.]{0,6}".prop_map(|it| Some(json!(it))),
        ]) {
        let name = ["programs/cond_simple", "programs/tied_and_views", "programs/dyn_derived__core", "programs/outputs_misc"][which];
        let bytes = changed(name, [JSON, WEIGHTS][document], |json| {
            let mut all = Vec::new();
            places(json, "", &mut all);
            // Another place's value, where none is given: of the right shape and in the wrong place.
            let value = value.unwrap_or_else(|| json.pointer(&all[other.index(all.len())]).unwrap().clone());
            *json.pointer_mut(&all[place.index(all.len())]).unwrap() = value;
        });
        if let Ok(program) = load(&bytes, &LoadOptions::default()) {
            prop_assert!(is_sound(&program));
        }
    }
}
