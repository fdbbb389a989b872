//! Operators of torchao, torchvision and transformers give what those libraries recorded (`tests/oracle/gen_extensions.py`).

use serde_json::Value as Json;
use tracefx_core::{DType, Tensor};
use tracefx_engine::Library;
use tracefx_export::{Argument, ExportedProgram, GraphSignature, InputKind, InputSpec, OutputKind, OutputSpec};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, Str, TensorMeta, Val};
use tracefx_ops::Value;
use tracefx_sym::{SymInt, Symbol};

/// A recorded value.
pub(crate) fn decoded(library: &Library, json: &Json) -> Value<Tensor> {
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
            let number = |it: &Json| it.as_f64().unwrap_or_else(|| it.as_str().unwrap().parse().unwrap());
            let numbers: Vec<f64> = data.as_array().unwrap().iter().map(number).collect();
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
    assert!(n_equal_results("torchvision.jsonl") > 180);
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
        let is_sum = ["grouped_mm", "deform_conv2d"].iter().any(|it| row["op"].as_str().unwrap().contains(it));
        for (found, expected) in results.iter().zip(&expected) {
            let ((dtype, sizes, found), (own, own_sizes, expected)) = (told(&library, found), told(&library, expected));
            assert_eq!((dtype, &sizes), (own, &own_sizes), "{line}");
            // Sums are taken in another order; all else is exact.
            let (relative, absolute) = library.tolerance("aten.mm.default").unwrap().for_dtype(dtype);
            let is_near = |(a, b): (&f64, &f64)| {
                let is_close = is_sum && (a - b).abs() <= absolute + relative * b.abs();
                a == b || a.is_nan() && b.is_nan() || is_close
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

/// The sizes and dtypes of the results of a pooling operator of torchvision, of boxes whose number is a symbol.
#[track_caller]
fn check_pooled(op: &str, channels: i64, rest: &[i64], expect: &[(DType, &str)]) {
    let library = Library::extended();
    let count = SymInt::from(Symbol::size("s0"));
    let sizes = [vec![2.into(), channels.into(), 8.into(), 9.into()], vec![count, 5.into()]];
    let tensors = sizes.map(|sizes| Value::Tensor(TensorMeta::contiguous(DType::Float16, sizes)));
    let rest = rest.iter().copied().map(Value::int);
    let args: Vec<_> = tensors.into_iter().chain([Value::Float(1.0)]).chain(rest).collect();
    let results = library.infer(op, &args, &[]).unwrap();
    let told = |it: &Value<TensorMeta>| match it {
        Value::Tensor(it) => (it.dtype, it.sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        other => panic!("a {} instead of a tensor", other.kind_name()),
    };
    let expect: Vec<_> = expect.iter().map(|(dtype, sizes)| (*dtype, (*sizes).to_owned())).collect();
    assert_eq!(results.iter().map(told).collect::<Vec<_>>(), expect);
}

#[test]
fn regions_are_pooled_to_known_shapes() {
    let [numbers, notes] = [DType::Float16, DType::Int32];
    check_pooled("torchvision.roi_pool", 12, &[2, 3], &[(numbers, "s0, 12, 2, 3"), (notes, "s0, 12, 2, 3")]);
    check_pooled("torchvision.ps_roi_pool", 12, &[2, 3], &[(numbers, "s0, 2, 2, 3"), (notes, "s0, 2, 2, 3")]);
    check_pooled("torchvision.ps_roi_align", 12, &[3, 1, -1], &[(numbers, "s0, 4, 3, 1"), (notes, "s0, 4, 3, 1")]);
}

#[test]
fn pictures_and_boxes_may_lie_otherwise_in_memory() {
    let library = Library::extended();
    let wave = |n: usize| (0..n).map(|at| (at as f32 * 0.7).sin() * 4.0).collect::<Vec<_>>();
    let input = Tensor::from_slice(&wave(144), &[9, 4, 4, 1]).unwrap();
    let corners: Vec<f32> = [0.0, 0.0, 0.5, 4.0, -2.0, 0.0, 3.5, 6.0, 3.0, 2.0].into();
    let boxes = Tensor::from_slice(&corners, &[5, 2]).unwrap();
    let turned = |it: &Tensor, a, b| {
        let args = [Value::Tensor(it.clone()), Value::int(a), Value::int(b)];
        library.call("aten.transpose.int", &args, Vec::new()).unwrap().results.swap_remove(0)
    };
    let (input, boxes) = (turned(&input, 0, 3), turned(&boxes, 0, 1));
    let plain = |it: &Value<Tensor>| library.call("aten.contiguous", std::slice::from_ref(it), Vec::new()).unwrap();
    for (op, rest) in [("roi_pool", &[][..]), ("ps_roi_pool", &[]), ("ps_roi_align", &[-1]), ("roi_align", &[2, 1])] {
        let called = |input: Value<Tensor>, boxes: Value<Tensor>| {
            let mut args = vec![input, boxes, Value::Float(1.0)];
            args.extend([2, 2].iter().chain(rest).copied().map(Value::int));
            if let Some(is_aligned) = args.get_mut(6) {
                *is_aligned = Value::Bool(true);
            }
            library.call(&format!("torchvision.{op}"), &args, Vec::new()).unwrap().results
        };
        let found = called(input.clone(), boxes.clone());
        let expected = called(plain(&input).results.swap_remove(0), plain(&boxes).results.swap_remove(0));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(told(&library, found), told(&library, expected), "{op}");
        }
    }
}

#[test]
fn boxes_of_no_image_and_cells_of_no_size_are_refused() {
    let library = Library::extended();
    let boxes = |image: f32| Tensor::from_slice(&[image, 0.0, 0.0, 3.0, 3.0], &[1, 5]).unwrap();
    let refusal = |op: &str, image: f32, rows: i64, rest: &[i64]| {
        let input = Tensor::from_slice(&[0f32; 100], &[1, 4, 5, 5]).unwrap();
        let mut args = vec![Value::Tensor(input), Value::Tensor(boxes(image)), Value::Float(1.0)];
        args.extend([rows, 2].iter().chain(rest).copied().map(Value::int));
        library.call(op, &args, Vec::new()).unwrap_err().to_string()
    };
    for (op, rest) in [("roi_pool", &[][..]), ("ps_roi_pool", &[]), ("ps_roi_align", &[2])] {
        let op = format!("torchvision.{op}");
        for image in [1.0, -1.0, f32::NAN, f32::INFINITY] {
            let refused = refusal(&op, image, 2, rest);
            assert!(refused.contains("a box is of image"), "{refused}");
        }
        assert!(refusal(&op, 0.0, -2, rest).contains("pooled_height is negative: -2"));
    }
    // torchvision divides by zero there.
    assert!(refusal("torchvision.ps_roi_pool", 0.0, 0, &[]).contains("no cells: 0 times 2"));
    assert!(refusal("torchvision.ps_roi_align", 0.0, 0, &[2]).contains("no cells: 0 times 2"));
}

/// Of an empty result the number of cells may be any: nothing is allocated or walked for them.
#[test]
fn pictures_without_channels_are_pooled_to_nothing() {
    let library = Library::extended();
    let input = Tensor::from_slice::<f32>(&[], &[1, 0, 4, 4]).unwrap();
    // An inverted box, which has no samples.
    let boxes = Tensor::from_slice(&[0f32, 3.0, 3.0, 0.0, 0.0], &[1, 5]).unwrap();
    let sampling = [Value::int(-1), Value::Bool(true)];
    for (op, rest) in [("roi_pool", 0), ("ps_roi_pool", 0), ("ps_roi_align", 1), ("roi_align", 2)] {
        let mut args = vec![Value::Tensor(input.clone()), Value::Tensor(boxes.clone()), Value::Float(1.0)];
        args.extend([Value::int(1 << 20), Value::int(1 << 20)]);
        args.extend_from_slice(&sampling[..rest]);
        for found in library.call(&format!("torchvision.{op}"), &args, Vec::new()).unwrap().results {
            let Value::Tensor(it) = &found else { panic!("{found:?} is no tensor") };
            assert_eq!(it.sizes(), [1, 0, 1 << 20, 1 << 20], "{op}");
        }
    }
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
