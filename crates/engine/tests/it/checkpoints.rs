//! Files of `torch.save`, as PyTorch wrote them.

use std::path::Path;
use tracefx_core::{Code, Tensor};
use tracefx_engine::{Limits, read_checkpoint};
use tracefx_ops::Value;

fn read(name: &str) -> tracefx_core::Result<Value<Tensor>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/checkpoints").join(name);
    read_checkpoint(&std::fs::read(path).unwrap(), &Limits::default())
}

fn items(value: &Value<Tensor>) -> &[Value<Tensor>] {
    match value {
        Value::List(items) => items,
        _ => panic!("not a list"),
    }
}

fn text(value: &Value<Tensor>) -> &str {
    match value {
        Value::Str(it) => it,
        _ => panic!("not a text"),
    }
}

#[test]
fn a_state_dict_is_a_dict_of_tensors() {
    let value = read("state_dict.pt").unwrap();
    let [kind, pairs @ ..] = items(&value) else { panic!("empty") };
    assert_eq!(text(kind), "dict");
    let names: Vec<&str> = pairs.iter().step_by(2).map(text).collect();
    assert_eq!(names, ["0.weight", "0.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"]);
    assert!(pairs.iter().skip(1).step_by(2).all(|it| matches!(it, Value::Tensor(_))));
}

#[test]
fn a_set_is_a_set() {
    let value = read("set.pt").unwrap();
    let [kind, Value::Int(item)] = items(&value) else { panic!("not one item") };
    assert_eq!((text(kind), item.as_int()), ("set", Some(5)));
}

#[test]
fn objects_of_classes_are_refused_by_name() {
    let error = read("module.pt").unwrap_err();
    assert_eq!(error.code(), Code::PickleForbidden);
    assert!(error.to_string().contains("torch.nn.modules.linear.Linear"), "{error}");
}

#[test]
fn what_is_no_zip_file_of_torch_save_is_refused_as_what_it_is() {
    let error = read("legacy.pt").unwrap_err();
    assert_eq!(error.code(), Code::ArchiveWrongKind);
    assert!(error.to_string().contains("before 1.6"), "{error}");
    let error = read_checkpoint(b"<html>", &Limits::default()).unwrap_err();
    assert_eq!(error.code(), Code::ArchiveWrongKind);
}

#[test]
fn what_holds_itself_is_refused() {
    assert_eq!(read("cycle.pt").unwrap_err().code(), Code::LimitExceeded);
    assert_eq!(read("shared.pt").unwrap_err().code(), Code::LimitExceeded);
}
