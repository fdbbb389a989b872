//! The inputs of programs that PyTorch wrote: those that it was called with pass, those that it refuses are refused.
//!
//! The fixtures of the repository always run. `TRACEFX_PROGRAMS` names further directories, separated by `:`, whose
//! folders hold a `model.pt2` and a `meta.json`.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor};
use tracefx_export::{ExportedProgram, InputChecker};
use tracefx_ops::Value;
use tracefx_pt2::{LoadOptions, load};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs")
}

fn program(folder: &Path) -> ExportedProgram {
    let bytes = std::fs::read(folder.join("model.pt2")).unwrap();
    load(&bytes, &LoadOptions::default()).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// An input as `meta.json` describes it; tensors are zeros.
fn input(json: &Json) -> Value<Tensor> {
    let value = &json["value"];
    match json["kind"].as_str().unwrap() {
        "tensor" => {
            let sizes = json["shape"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap() as usize).collect();
            tensor(json["dtype"].as_str().unwrap(), sizes)
        }
        "int" => Value::int(value.as_i64().unwrap()),
        "float" => Value::Float(value.as_f64().unwrap()),
        "bool" => Value::Bool(value.as_bool().unwrap()),
        "str" => Value::Str(value.as_str().unwrap().into()),
        "none" => Value::None,
        other => panic!("an input of kind {other}"),
    }
}

fn tensor(dtype: &str, sizes: Vec<usize>) -> Value<Tensor> {
    Value::Tensor(Tensor::zeros(DType::from_name(dtype).unwrap(), &sizes).unwrap())
}

fn inputs(case: &Json) -> Vec<Value<Tensor>> {
    case["inputs"].as_array().unwrap().iter().map(input).collect()
}

fn check(folder: &Path) {
    let meta: Json = serde_json::from_str(&std::fs::read_to_string(folder.join("meta.json")).unwrap()).unwrap();
    let checker = match InputChecker::new(&program(folder)) {
        Ok(it) => it,
        Err(error) if error.code() == Code::NotImplemented => return,
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    for case in meta["cases"].as_array().into_iter().flatten() {
        checker.check(&inputs(case)).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
    for reject in meta["rejects"].as_array().into_iter().flatten() {
        let checked = checker.check(&inputs(reject)).map_err(|error| error.to_string());
        let why = reject["why"].as_str().unwrap();
        match (reject["torch_says"].as_str(), checked) {
            (None, checked) => assert_eq!(checked.err(), None, "{}: {why}", folder.display()),
            (Some(torch), checked) if torch.contains("Guard failed") => {
                let error = checked.expect_err(why);
                assert!(error.contains("guard failed: "), "{error}");
            }
            (Some(_), checked) if why == "dtype" || why == "rank" => assert!(checked.is_err(), "{why}"),
            // An assertion about values that the program computes.
            (Some(_), checked) => assert_eq!(checked.err(), None, "{}: {why}", folder.display()),
        }
    }
}

#[test]
fn inputs_that_pytorch_takes_pass_and_others_are_refused() {
    let mut n = 0;
    let further = std::env::var("TRACEFX_PROGRAMS").unwrap_or_default();
    for root in std::iter::once(fixtures()).chain(further.split(':').filter(|it| !it.is_empty()).map(PathBuf::from)) {
        for entry in std::fs::read_dir(&root).unwrap() {
            let folder = entry.unwrap().path();
            if folder.join("model.pt2").exists() {
                check(&folder);
                n += 1;
            }
        }
    }
    assert!(n >= 20, "only {n} programs");
}

fn checked(name: &str, inputs: &[Value<Tensor>]) -> Result<Vec<String>> {
    let checker = InputChecker::new(&program(&fixtures().join(name)))?;
    Ok(checker.check(inputs)?.iter().map(|(symbol, value)| format!("{symbol}={value}")).collect())
}

#[track_caller]
fn check_refused(name: &str, inputs: &[Value<Tensor>], code: Code, message: &str, notes: &[&str]) -> Diagnostic {
    let error = checked(name, inputs).unwrap_err();
    assert_eq!((error.code(), error.message()), (code, message));
    assert_eq!(error.notes(), notes);
    assert!(error.help_text().is_some());
    error
}

#[test]
fn symbols_are_bound_by_sizes_and_numbers() {
    let rows = |n: usize| tensor("float32", vec![n, 3]);
    assert_eq!(checked("dyn_derived__core", &[rows(4), rows(5), rows(8)]).unwrap(), ["s77=4"]);
    let given = [tensor("float32", vec![8, 2]), Value::int(3), Value::int(5)];
    assert_eq!(checked("symint_inputs", &given).unwrap(), ["s77=8", "s86=3"]);
}

#[test]
fn every_size_that_does_not_fit_is_named_as_in_pytorch() {
    let rows = |n: usize| tensor("float32", vec![n, 3]);
    let first = "guard failed: y.size()[0] == x.size()[0] + 1, and it is 6 instead of 5";
    check_refused("dyn_derived__core", &[rows(4), rows(6), rows(8)], Code::InputShape, first, &[]);
    let first = "guard failed: x.size()[0] <= 20, and it is 21";
    check_refused("dyn_derived__core", &[rows(21), rows(22), rows(42)], Code::InputShape, first, &[]);
    let given = [rows(4), tensor("float64", vec![5, 2]), tensor("float32", vec![8])];
    check_refused(
        "dyn_derived__core",
        &given,
        Code::InputType,
        "the input y is of dtype float64, and the program was exported for float32",
        &[
            "the input z has 1 dimensions, and the program was exported for 2: [2*s77, 3]",
            "guard failed: y.size()[1] == 3, and it is 2",
        ],
    );
}

#[test]
fn guards_and_constants_are_checked() {
    let x = || tensor("float32", vec![8, 2]);
    let first = "guard failed: k == 5, and it is 6; the program was exported with this constant";
    check_refused("symint_inputs", &[x(), Value::int(3), Value::int(6)], Code::InputValue, first, &[]);
    let first = "guard failed: n >= 0 and n <= x.size()[0], and n is 9, x.size()[0] is 8";
    check_refused("symint_inputs", &[x(), Value::int(9), Value::int(5)], Code::InputShape, first, &[]);
    let first = "the input n is of type float, and the program takes int there";
    check_refused("symint_inputs", &[x(), Value::Float(3.0), Value::int(5)], Code::InputType, first, &[]);
    assert!(checked("symint_inputs", &[x(), Value::int(3), Value::Float(5.0)]).is_ok(), "Python's 5 == 5.0");
}

#[test]
fn guards_find_what_the_rest_of_the_arguments_holds() {
    let mut program = program(&fixtures().join("dyn_derived__core"));
    let signature = program.module_call_graph[0].signature.as_mut().unwrap();
    signature.forward_arg_names = Some(["args_0", "args_1", "z"].map(Into::into).to_vec());
    program.guards = vec!["L['args'][1].size()[0] <= L['kwargs']['z'].size()[0] - 3".into()];
    let rows = |n: usize| tensor("float32", vec![n, 3]);
    let checker = InputChecker::new(&program).unwrap();
    assert_eq!(checker.symbolic_guards().len(), 1);
    assert_eq!(checker.check(&[rows(4), rows(5), rows(8)]).map(|it| it.len()), Ok(1));
    let error = checker.check(&[rows(3), rows(4), rows(6)]).unwrap_err();
    let message = "guard failed: args[1].size()[0] <= kwargs['z'].size()[0] - 3, and args[1].size()[0] is 4, kwargs['z'].size()[0] is 6";
    assert_eq!((error.code(), error.message()), (Code::InputShape, message));
}

#[test]
fn a_wrong_number_of_inputs_says_which_ones_are_wanted() {
    let error = checked("nested_io", &[]).unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::InputCount, "the program takes 11 inputs and was given 0"));
    assert_eq!(
        error.help_text(),
        Some(
            "pass, in this order: a['u'], a['v'][0], a['v'][1], b[0], b[1][0], c.x, c.y, scale, flag, opts['gain'], name"
        )
    );
}
