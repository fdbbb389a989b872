//! Operators of torchao, torchvision and transformers give what those libraries recorded (`tests/oracle/gen_extensions.py`).

use serde_json::Value as Json;
use tracefx_core::{DType, Tensor};
use tracefx_engine::Library;
use tracefx_export::{Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Str, TensorMeta, Val};
use tracefx_ops::Value;
use tracefx_sym::SymInt;

fn decoded(library: &Library, json: &Json) -> Value<Tensor> {
    match json {
        Json::Null => Value::None,
        Json::Bool(it) => Value::Bool(*it),
        Json::String(it) => Value::Str(it.as_str().into()),
        Json::Number(it) => it.as_i64().map_or_else(|| Value::Float(it.as_f64().unwrap()), Value::int),
        Json::Array(items) => Value::List(items.iter().map(|it| decoded(library, it)).collect()),
        Json::Object(it) => {
            let dtype = DType::from_name(it["dtype"].as_str().unwrap()).unwrap();
            let Some(data) = it.get("data") else { return Value::DType(dtype) };
            let sizes: Vec<usize> =
                it["size"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap() as usize).collect();
            let numbers: Vec<f64> = data.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
            let wide = Value::Tensor(Tensor::from_slice(&numbers, &sizes).unwrap());
            let kwargs = vec![("dtype".into(), Value::DType(dtype))];
            library.call("aten._to_copy", &[wide], kwargs).unwrap().results.swap_remove(0)
        }
    }
}

/// The elements, of which a float64 holds each exactly, with dtype and sizes.
fn told(library: &Library, value: &Value<Tensor>) -> (DType, Vec<usize>, Vec<f64>) {
    let Value::Tensor(it) = value else { panic!("{value:?} is no tensor") };
    let kwargs = vec![("dtype".into(), Value::DType(DType::Float64))];
    let wide = library.call("aten._to_copy", std::slice::from_ref(value), kwargs).unwrap().results.swap_remove(0);
    let Value::Tensor(wide) = wide else { panic!("a tensor is converted to one") };
    (it.dtype(), it.sizes().to_vec(), wide.to_vec::<f64>().unwrap())
}

#[test]
fn they_give_what_their_libraries_give() {
    assert!(n_equal_results("calls.jsonl") > 400);
}

#[test]
fn operators_of_detectors_give_what_torchvision_gives() {
    assert!(n_equal_results("torchvision.jsonl") > 60);
}

/// Compares all recorded calls of a file, and counts their results.
fn n_equal_results(file: &str) -> usize {
    let library = Library::extended();
    let path = format!("{}/../../tests/fixtures/extensions/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut n_results = 0;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let args: Vec<_> = row["args"].as_array().unwrap().iter().map(|it| decoded(&library, it)).collect();
        let kwargs: Vec<(Str, Value<Tensor>)> = row["kwargs"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, it)| (k.as_str().into(), decoded(&library, it)))
            .collect();
        let called = library.call(row["op"].as_str().unwrap(), &args, kwargs);
        let Some(result) = row.get("result") else {
            assert!(called.is_err(), "{line}");
            continue;
        };
        let results = called.unwrap_or_else(|error| panic!("{error}: {line}")).results;
        let expected = match decoded(&library, result) {
            Value::List(items) => items,
            one => vec![one],
        };
        assert_eq!(results.len(), expected.len(), "{line}");
        let is_sum = ["grouped_mm", "torchvision"].iter().any(|it| row["op"].as_str().unwrap().contains(it));
        for (found, expected) in results.iter().zip(&expected) {
            let ((dtype, sizes, found), (own, own_sizes, expected)) = (told(&library, found), told(&library, expected));
            assert_eq!((dtype, &sizes), (own, &own_sizes), "{line}");
            // Sums are taken in another order; all else is exact.
            let (relative, absolute) = library.tolerance("aten.mm.default").unwrap().for_dtype(dtype);
            let is_near = |(a, b): (&f64, &f64)| {
                if is_sum { (a - b).abs() <= absolute + relative * b.abs() } else { a == b }
            };
            assert!(found.iter().zip(&expected).all(is_near), "{found:?} {expected:?} {line}");
            n_results += 1;
        }
    }
    n_results
}

#[test]
fn shapes_are_known() {
    let library = Library::extended();
    let meta = |dtype, sizes: &[i64]| {
        let sizes = sizes.iter().map(|it| (*it).into()).collect();
        Value::Tensor(TensorMeta::contiguous(dtype, sizes))
    };
    let args = [meta(DType::BFloat16, &[6, 4]), meta(DType::BFloat16, &[3, 4, 5]), meta(DType::Int32, &[3])];
    let results = library.infer("transformers.grouped_mm_fallback", &args, &[]).unwrap();
    assert_eq!(results, [meta(DType::BFloat16, &[6, 5])]);
}

#[test]
fn programs_are_decomposed() {
    let library = Library::extended();
    let mut graph = Graph::new();
    let inputs = [(DType::BFloat16, vec![6, 4]), (DType::BFloat16, vec![3, 4, 5]), (DType::Int32, vec![3])];
    let args = inputs.map(|(dtype, sizes)| {
        let input = graph.placeholder("x");
        let sizes = sizes.into_iter().map(SymInt::from).collect();
        graph.meta_mut(input).val = Some(Val::Tensor(TensorMeta::contiguous(dtype, sizes)));
        input
    });
    let target = "torch.ops.transformers.grouped_mm_fallback.default";
    let product = graph.call_function(target, args.map(Arg::Node).into(), vec![]);
    graph.output(Arg::Tuple(vec![Arg::Node(product)]));
    let arg_of = |it: NodeId| Argument::Tensor(graph.node(it).name().clone());
    let input = |it: NodeId| InputSpec { kind: InputKind::UserInput, arg: arg_of(it), target: None, persistent: None };
    let output = OutputSpec { kind: OutputKind::UserOutput, arg: arg_of(product), target: None };
    let signature = GraphSignature { input_specs: args.map(input).into(), output_specs: vec![output] };
    let mut program = ExportedProgram::new(GraphModule::new(graph), signature);
    assert!(program.note_values(library.registry()).is_empty());
    let core = program.run_decompositions(&library.decompositions()).unwrap();
    let targets: Vec<_> = core.module.graph.nodes().map(|it| core.module.graph.node(it).target().to_string()).collect();
    assert!(targets.iter().any(|it| it == "torch.ops.aten.mm.default"), "{targets:?}");
    assert!(targets.iter().all(|it| !it.contains("transformers")), "{targets:?}");
}
