//! Programs of both formats, opened and looked at.

use std::path::Path;
use tracefx_core::Code;
use tracefx_engine::{Limits, Runner, inspect, open};
use tracefx_ops::registry;

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs").join(name).join("model.pt2");
    std::fs::read(path).unwrap()
}

#[test]
fn limits_hold_for_both_formats() {
    let archive = bytes("digits_cnn");
    let program = open(&archive, &Limits::default()).unwrap();
    let file = tracefx_wire::encode_program(&program, &tracefx_wire::Options::FILE).unwrap();
    let few = Limits { nodes: 5, ..Limits::default() };
    for bytes in [&archive, &file] {
        assert_eq!(open(bytes, &few).unwrap_err().code(), Code::LimitExceeded);
        assert!(open(bytes, &Limits::default()).is_ok());
    }
}

#[test]
fn inspect_tells_why_a_program_does_not_run_whatever_its_operators_are() {
    let report = inspect(&open(&bytes("subclass_weight"), &Limits::default()).unwrap());
    assert!(!report.is_supported && report.obstacle.as_deref().unwrap().contains("tensor subclass"));
    let report = inspect(&open(&bytes("digits_cnn"), &Limits::default()).unwrap());
    assert!(report.is_supported && report.obstacle.is_none());
}

#[test]
fn a_call_that_may_write_is_known_even_where_the_schema_does_not_say_so() {
    let may_write = |name: &str| registry().get(name).unwrap().may_write();
    assert!(may_write("aten.add_.Tensor") && may_write("aten.batch_norm.default"));
    assert!(!may_write("aten.add.Tensor"));
    let runner = Runner::new(&open(&bytes("input_mutation__core"), &Limits::default()).unwrap()).unwrap();
    assert!(runner.changes_inputs());
}
