//! Operators of one's own: defined, called, in programs that PyTorch exported, decomposed, differentiated, refused.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tracefx_core::{Code, DType, Diagnostic, Result, Scalar, Tensor};
use tracefx_engine::{Library, Limits, Runner, Support, open, read_inputs, read_tensors};
use tracefx_export::{ExportedProgram, default_decompositions};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, TensorKind};
use tracefx_ops::{Args, CustomOp, Expr, Output, Value};

const SCALE_ADD: &str = "fxtest::scale_add(Tensor x, Tensor y, float alpha=2., str names=\"n\") -> Tensor";
const ACCUM: &str = "fxtest::accum_(Tensor(a!) acc, Tensor x) -> ()";

fn fixture(name: &str, file: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs").join(name);
    std::fs::read(folder.join(file)).unwrap()
}

fn program(name: &str) -> ExportedProgram {
    open(&fixture(name, "model.pt2"), &Limits::default()).unwrap()
}

fn tensor(values: &[f32], sizes: &[usize]) -> Value<Tensor> {
    Value::Tensor(Tensor::from_slice(values, sizes).unwrap())
}

fn floats(value: &Value<Tensor>) -> Vec<f32> {
    let Value::Tensor(tensor) = value else { panic!("{value:?} is no tensor") };
    tensor.to_vec::<f32>().unwrap()
}

fn like_first(args: &Args<'_, tracefx_ir::TensorMeta>) -> Result<Vec<Output>> {
    Ok(vec![Output::Tensor(args.tensor(0)?.clone())])
}

/// What the recorded programs call, with kernels that call operators themselves.
fn fxtest() -> Library {
    let mut library = Library::default();
    library.define(CustomOp::new(SCALE_ADD).unwrap().shape(like_first)).unwrap();
    library.define(CustomOp::new(ACCUM).unwrap()).unwrap();
    let inner = library.clone();
    library
        .implement("fxtest.scale_add.default", move |args| {
            let scaled = inner.call("aten.mul", &[args.values[0].clone(), args.values[2].clone()], vec![])?;
            Ok(inner.call("aten.add", &[scaled.results[0].clone(), args.values[1].clone()], vec![])?.results)
        })
        .unwrap();
    let inner = library.clone();
    library
        .implement("fxtest.accum_.default", move |args| {
            inner.call("aten.add_", &args.values, vec![])?;
            Ok(Vec::new())
        })
        .unwrap();
    library
}

/// A library with one operator and its kernel.
fn one(
    op: CustomOp,
    kernel: impl Fn(&Args<'_, Tensor>) -> Result<Vec<Value<Tensor>>> + Send + Sync + 'static,
) -> Library {
    let mut library = Library::default();
    let name = op.name();
    library.define(op).unwrap();
    library.implement(&name, kernel).unwrap();
    library
}

fn custom(schema: &str) -> CustomOp {
    CustomOp::new(schema).unwrap()
}

#[track_caller]
fn check(got: &[f32], want: &[f32]) {
    let close = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
    assert!(close, "{got:?} instead of {want:?}");
}

#[track_caller]
fn check_recorded(library: &Library, program: &ExportedProgram, name: &str) {
    let inputs = read_inputs(program, &fixture(name, "inputs.safetensors")).unwrap();
    let runner = library.runner(program).unwrap();
    let outputs = runner.run(&inputs).unwrap();
    let recorded: Vec<(String, Tensor)> = read_tensors(&fixture(name, "expected.safetensors")).unwrap();
    assert!(!recorded.is_empty());
    for (key, want) in recorded {
        let got = match key.split_once('.') {
            Some((_, buffer)) => Value::Tensor(runner.state().find(|(it, _)| ***it == *buffer).unwrap().1.clone()),
            None => outputs[key.strip_prefix("out").unwrap().parse::<usize>().unwrap()].clone(),
        };
        check(&floats(&got), &want.to_vec::<f32>().unwrap());
    }
}

#[test]
fn recorded_programs_run_once_their_operators_are_defined() {
    for name in ["custom_op", "custom_op_mutating", "custom_op_mutating__core"] {
        check_recorded(&fxtest(), &program(name), name);
    }
}

#[test]
fn kernels_are_given_images_as_pytorch_lays_them_out() {
    let library = one(custom("fxtest::dense(Tensor x) -> Tensor").shape(like_first), |args| {
        let x = args.tensor(0)?;
        assert!(x.is_contiguous(), "{x:?}");
        Ok(vec![Value::Tensor(x.compact_copy()?)])
    });
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let weight = graph.get_attr("weight");
    let pair = |it: i64| Arg::List(vec![Arg::Int(it); 2]);
    let options = vec![pair(1), pair(1), pair(1), Arg::Bool(false), pair(0), Arg::Int(1)];
    let args = [x.into(), weight.into(), Arg::None].into_iter().chain(options).collect();
    let y = graph.call_function("torch.ops.aten.convolution.default", args, vec![]);
    let y = graph.call_function("torch.ops.fxtest.dense.default", vec![y.into()], vec![]);
    graph.output(y.into());
    let mut module = GraphModule::new(graph);
    let ones = |sizes: &[usize]| Tensor::full(DType::Float32, sizes, Scalar::Float(1.0)).unwrap();
    let weight = Attribute::Tensor { tensor: ones(&[2, 3, 3, 3]), kind: TensorKind::Parameter };
    module.attributes.insert("weight".into(), weight);
    let inputs = [Value::Tensor(ones(&[1, 3, 4, 5]))];
    let runner = library.runner(&library.export(&module, &inputs).unwrap()).unwrap();
    let report = runner.explain(&inputs).unwrap();
    assert!(report.steps.iter().any(|it| it.step == "convolution"), "{report}");
    assert_eq!(floats(&runner.run(&inputs).unwrap()[0])[6], 27.0);
}

#[test]
fn what_a_kernel_gives_is_laid_out_as_its_shape_rule_says() {
    let library = one(custom("fxtest::copied(Tensor x) -> Tensor").shape(like_first), |args| {
        Ok(vec![Value::Tensor(args.tensor(0)?.compact_copy()?)])
    });
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let turned = graph.call_function("torch.ops.aten.t.default", vec![x.into()], vec![]);
    let copied = graph.call_function("torch.ops.fxtest.copied.default", vec![turned.into()], vec![]);
    let flat = graph.call_function("torch.ops.aten.t.default", vec![copied.into()], vec![]);
    let sizes = Arg::List(vec![Arg::Int(6)]);
    let flat = graph.call_function("torch.ops.aten.view.default", vec![flat.into(), sizes], vec![]);
    graph.output(flat.into());
    let inputs = [tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])];
    let runner = library.runner(&library.export(&GraphModule::new(graph), &inputs).unwrap()).unwrap();
    runner.plan(&inputs).unwrap().validate().unwrap();
    assert_eq!(floats(&runner.run(&inputs).unwrap()[0]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn before_that_an_error_names_the_operator_and_says_what_to_do() {
    let program = program("custom_op");
    let inputs = read_inputs(&program, &fixture("custom_op", "inputs.safetensors")).unwrap();
    let problem = Runner::new(&program).unwrap().run(&inputs).unwrap_err();
    assert_eq!(problem.code(), Code::NotImplemented);
    assert_eq!((problem.op_name(), problem.node_name()), (Some("fxtest.scale_add.default"), Some("scale_add")));
    assert!(problem.help_text().unwrap().contains("define it first"), "{problem}");
    let support = |library: &Library| {
        let ops = library.inspect(&program).ops;
        ops.iter().find(|it| it.target.contains("scale_add")).unwrap().support
    };
    assert_eq!(support(&Library::default()), Support::Missing);
    assert_eq!(support(&fxtest()), Support::Kernel);
    let mut shapes_only = Library::default();
    shapes_only.define(custom(SCALE_ADD).shape(like_first)).unwrap();
    assert_eq!(support(&shapes_only), Support::Missing);
}

#[test]
fn programs_keep_their_operators_by_name_in_a_file() {
    let file = tracefx_wire::encode_program(&program("custom_op_mutating"), &tracefx_wire::Options::FILE).unwrap();
    check_recorded(&fxtest(), &open(&file, &Limits::default()).unwrap(), "custom_op_mutating");
}

#[test]
fn writes_become_values_when_a_program_is_decomposed() {
    let library = fxtest();
    for name in ["custom_op_mutating", "custom_op_mutating__core"] {
        let core = program(name).run_decompositions(&library.decompositions()).unwrap();
        let text = core.module.graph.to_string();
        let wrapped =
            "torch.ops.higher_order.auto_functionalized_v2](args = (fxtest.accum_.default,), kwargs = {x: %x,";
        assert!(text.contains(wrapped) || name.ends_with("__core"), "{text}");
        assert_eq!(text.matches("auto_functionalized_v2](").count(), 2, "{text}");
        assert!(!text.contains("target=torch.ops.fxtest"), "{text}");
        check_recorded(&library, &core, name);
    }
    let problem = program("custom_op_mutating").run_decompositions(&default_decompositions()).unwrap_err();
    assert_eq!((problem.code(), problem.op_name()), (Code::NotImplemented, Some("fxtest.accum_.default")));
}

#[test]
fn views_and_lists_of_arguments_that_are_written_to_are_bases_of_their_own() {
    let library = one(custom("mylib::fill(Tensor(a!)[] xs, Tensor(b!)? y, *, float value) -> Tensor"), |args| {
        let xs = args.list(0)?.iter().chain(std::iter::once(&args.values[1]));
        let library = Library::default();
        for x in xs.filter(|it| !matches!(it, Value::None)) {
            library.call("aten.fill_", &[x.clone(), args.values[2].clone()], vec![])?;
        }
        Ok(vec![tensor(&[7.0], &[1])])
    });
    let mut graph = Graph::new();
    let bases = graph.placeholder("bases");
    let kwargs = vec![
        ("value".into(), Arg::Float(5.0)),
        ("_xs_length".into(), Arg::Int(2)),
        ("_xs_0_base_index".into(), Arg::Int(0)),
        ("_xs_0_slice_dim".into(), Arg::Int(0)),
        ("_xs_0_slice_start".into(), Arg::Int(1)),
        ("_xs_0_slice_end".into(), Arg::Int(2)),
        ("_xs_1_base_index".into(), Arg::Int(0)),
        ("_xs_1_size".into(), Arg::List(vec![Arg::Int(1)])),
        ("_xs_1_stride".into(), Arg::List(vec![Arg::Int(1)])),
        ("_xs_1_storage_offset".into(), Arg::Int(3)),
        ("_y_base_index".into(), Arg::None),
        ("_all_bases".into(), Arg::List(vec![Arg::Node(bases)])),
    ];
    let target = "torch.ops.higher_order.auto_functionalized_v2";
    let call = graph.call_function(target, vec![Arg::Op("torch.ops.mylib.fill.default".into())], kwargs);
    graph.output(Arg::Node(call));
    let module = GraphModule::new(graph);
    let given = tensor(&[1.0, 2.0, 3.0, 4.0], &[4]);
    let output = tracefx_exec::Interpreter::new(&module, library.executor()).run(std::slice::from_ref(&given)).unwrap();
    let Value::List(results) = output else { panic!("a result and a base") };
    assert_eq!(floats(&results[0]), [7.0]);
    assert_eq!(floats(&results[1]), [1.0, 5.0, 3.0, 5.0]);
    assert_eq!(floats(&given), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_graph_can_say_what_an_operator_is_made_of() {
    let mut graph = Graph::new();
    let inputs: Vec<Arg> = ["x", "y", "alpha", "names"].map(|it| Arg::Node(graph.placeholder(it))).to_vec();
    let scaled = graph.call_function("torch.ops.aten.mul.Tensor", vec![inputs[0].clone(), inputs[2].clone()], vec![]);
    let sum = graph.call_function("torch.ops.aten.add.Tensor", vec![Arg::Node(scaled), inputs[1].clone()], vec![]);
    graph.output(Arg::Tuple(vec![Arg::Node(sum)]));
    let mut library = Library::default();
    library.define_composite(SCALE_ADD, GraphModule::new(graph)).unwrap();
    check_recorded(&library, &program("custom_op"), "custom_op");
    let core = program("custom_op").run_decompositions(&library.decompositions()).unwrap();
    assert!(!core.module.graph.to_string().contains("scale_add"));
    check_recorded(&Library::default(), &core, "custom_op");
    // Shapes and gradients follow from what it is made of.
    let x = tensor(&[1.0, 2.0], &[2]);
    let mut pullback = library.executor().vjp("fxtest.scale_add.default", &[x.clone(), x], &[]).unwrap();
    assert_eq!(floats(&pullback.results()[0]), [3.0, 6.0]);
    let grads = pullback.pull_back(&[tensor(&[1.0, 10.0], &[2])]).unwrap();
    assert_eq!((floats(&grads[0]), floats(&grads[1])), (vec![2.0, 20.0], vec![1.0, 10.0]));
}

#[test]
fn a_gradient_of_ones_own_is_taken() {
    let op = custom("mylib::cube(Tensor x) -> Tensor").shape(like_first);
    let kernel = |args: &Args<'_, Tensor>| {
        let cubes: Vec<f32> = args.tensor(0)?.to_vec::<f32>()?.iter().map(|it| it * it * it).collect();
        Ok(vec![Value::Tensor(Tensor::from_slice(&cubes, args.tensor(0)?.sizes())?)])
    };
    let with_gradient = op.clone().vjp(|it| Ok(vec![3.0 * it.grad() * it.arg(0).square()]));
    let pull_back = |library: &Library| {
        let x = tensor(&[2.0, 3.0], &[2]);
        let mut pullback = library.executor().vjp("mylib.cube.default", &[x], &[])?;
        pullback.pull_back(&[tensor(&[1.0, 1.0], &[2])])
    };
    assert_eq!(floats(&pull_back(&one(with_gradient, kernel)).unwrap()[0]), [12.0, 27.0]);
    let problem = pull_back(&one(op.clone(), kernel)).unwrap_err();
    assert_eq!((problem.code(), problem.op_name()), (Code::NotImplemented, Some("mylib.cube.default")));
    let wrong = op.vjp(|it| Ok(vec![Expr::list([it.grad()])]));
    assert!(pull_back(&one(wrong, kernel)).is_err());
}

#[track_caller]
fn check_refused(library: &Library, code: Code, words: &str) {
    let op = library.registry().ops().into_iter().find(|it| it.is_custom()).unwrap();
    let problem = library.call(&op.name, &[tensor(&[1.0, 2.0], &[2])], vec![]).unwrap_err();
    assert_eq!((problem.code(), problem.op_name()), (code, Some(&*op.name)), "{problem}");
    assert!(problem.to_string().contains(words), "{problem}");
}

#[test]
fn what_a_kernel_gives_is_checked() {
    let op = || custom("mylib::same(Tensor x) -> Tensor").shape(like_first);
    let give = |results: fn(&Args<'_, Tensor>) -> Vec<Value<Tensor>>| move |args: &Args<'_, Tensor>| Ok(results(args));
    check_refused(&one(op(), give(|_| vec![])), Code::SchemaMismatch, "gives 0 results instead of 1");
    check_refused(&one(op(), give(|_| vec![Value::int(1)])), Code::SchemaMismatch, "should be a Tensor");
    let doubles = give(|_| vec![Value::Tensor(Tensor::from_slice(&[1.0f64, 2.0], &[2]).unwrap())]);
    check_refused(
        &one(op(), doubles),
        Code::DTypeMismatch,
        "gives float64 as result 0, and its shape rule says float32",
    );
    check_refused(&one(op(), give(|_| vec![tensor(&[1.0], &[1])])), Code::ShapeMismatch, "sizes [1]");
    check_refused(&one(op(), give(|_| vec![tensor(&[1.0, 2.0], &[1, 2])])), Code::ShapeMismatch, "sizes [1, 2]");
    check_refused(&one(op(), give(|args| vec![args.values[0].clone()])), Code::InvalidArgument, "looks at the storage");
    let fails = |_: &Args<'_, Tensor>| Err(Diagnostic::new(Code::InvalidArgument, "no, thanks"));
    check_refused(&one(op(), fails), Code::InvalidArgument, "no, thanks");
    let twins = custom("mylib::twins(Tensor x) -> (Tensor, Tensor)");
    let kernel = give(|_| {
        let it = tensor(&[1.0], &[1]);
        vec![it.clone(), it]
    });
    check_refused(&one(twins, kernel), Code::InvalidArgument, "result 1");
}

#[test]
fn what_a_shape_rule_gives_is_checked() {
    let kernel = |_: &Args<'_, Tensor>| Ok(vec![tensor(&[1.0], &[1])]);
    let two =
        custom("mylib::one(Tensor x) -> Tensor").shape(|args| Ok([like_first(args)?, like_first(args)?].concat()));
    check_refused(&one(two, kernel), Code::SchemaMismatch, "the shape rule of mylib.one.default gives 2 results");
    let number = custom("mylib::one(Tensor x) -> Tensor").shape(|_| Ok(vec![Output::Value(Value::int(1))]));
    check_refused(&one(number, kernel), Code::SchemaMismatch, "should be a Tensor");
    // A size that only the data tells is a symbol, which any size fits.
    let any = custom("mylib::one(Tensor x) -> Tensor")
        .shape(|args| Ok(vec![Output::unknown(DType::Float32, vec![args.new_size()])]));
    let called = one(any, kernel).call("mylib.one", &[tensor(&[1.0, 2.0], &[2])], vec![]).unwrap();
    assert_eq!(floats(&called.results[0]), [1.0]);
}

#[test]
fn an_operator_without_a_kernel_or_shape_rule_says_so() {
    let mut library = Library::default();
    library.define(custom("mylib::nothing(Tensor x) -> Tensor")).unwrap();
    check_refused(&library, Code::NotImplemented, "has no kernel");
    let x = tracefx_ir::TensorMeta::contiguous(DType::Float32, vec![]);
    let problem = library.infer("mylib.nothing", &[Value::Tensor(x)], &[]).unwrap_err();
    assert!(problem.to_string().contains("has no shape rule"), "{problem}");
    let problem = library.implement("aten.relu.default", |_| Ok(vec![])).unwrap_err();
    assert_eq!(problem.code(), Code::InvalidOption);
}

#[test]
fn a_definition_that_is_not_one_is_refused() {
    #[track_caller]
    fn check(schema: &str, code: Code, words: &str) {
        let problem = CustomOp::new(schema).unwrap_err();
        assert_eq!(problem.code(), code, "{problem}");
        assert!(problem.to_string().contains(words), "{problem}");
    }
    check("mylib.foo(Tensor x) -> Tensor", Code::SchemaMismatch, "expected `::` at character 5");
    check("mylib::foo(Tensr x) -> Tensor", Code::SchemaMismatch, "expected a type");
    check("mylib::foo(Tensor x", Code::SchemaMismatch, "expected `,`");
    check("mylib::foo(Tensor x, Tensor x) -> Tensor", Code::SchemaMismatch, "stands twice");
    check("prim::foo(Tensor x) -> Tensor", Code::InvalidOption, "reserved namespace");
    let mut library = fxtest();
    let problem = library.define(custom(ACCUM)).unwrap_err();
    assert_eq!((problem.code(), problem.op_name()), (Code::InvalidOption, Some("fxtest.accum_.default")));
    assert!(library.define(custom("aten::relu(Tensor self) -> Tensor")).is_err());
    // An overload is another operator, and what is taken out can be defined again.
    library.define(custom("fxtest::accum_.two(Tensor(a!) acc) -> ()")).unwrap();
    assert_eq!(library.registry().overloads("fxtest.accum_").unwrap().len(), 2);
    assert!(library.remove("fxtest.accum_.default") && !library.remove("fxtest.accum_.default"));
    assert!(!library.remove("aten.relu.default"));
    library.define(custom(ACCUM)).unwrap();
    let problem = library.call("fxtest.accum_.default", &[tensor(&[1.0], &[1]), tensor(&[1.0], &[1])], vec![]);
    assert!(problem.unwrap_err().to_string().contains("has no kernel"));
}

#[test]
fn libraries_do_not_see_each_other() {
    let library = fxtest();
    let before = library.clone();
    let mut after = library.clone();
    after.define(custom("fxtest::more(Tensor x) -> Tensor")).unwrap();
    assert!(after.registry().get("fxtest.more.default").is_some());
    assert!(before.registry().get("fxtest.more.default").is_none());
    assert!(tracefx_ops::registry().get("fxtest.scale_add.default").is_none());
}

/// What a kernel was given is its own to keep: no later step and no later run writes there.
#[test]
fn a_kernel_may_keep_what_it_is_given() {
    let kept = Arc::new(Mutex::new(Vec::<Tensor>::new()));
    let keeping = Arc::clone(&kept);
    let library = one(custom("fxtest::keep(Tensor x) -> Tensor").shape(like_first), move |args| {
        let x = args.tensor(0)?;
        keeping.lock().unwrap().push(x.clone());
        Ok(vec![Value::Tensor(x.compact_copy()?)])
    });
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut call = |op: &str, args: Vec<Arg>| graph.call_function(&format!("torch.ops.{op}"), args, vec![]);
    let first = call("fxtest.keep.default", vec![x.into()]);
    let inner = call("aten.mm.default", vec![first.into(), x.into()]);
    let second = call("fxtest.keep.default", vec![inner.into()]);
    let sum = call("aten.mm.default", vec![second.into(), inner.into()]);
    let sum = call("aten.neg.default", vec![sum.into()]);
    graph.output(Arg::Tuple(vec![sum.into()]));
    let given = |it: f32| [tensor(&[it, 0.0, 0.0, it], &[2, 2])];
    let program = library.export(&GraphModule::new(graph), &given(1.0)).unwrap();
    let runner = library.runner(&program).unwrap();
    kept.lock().unwrap().clear();
    for it in [1.0, 2.0, 3.0] {
        let result = runner.run(&given(it)).unwrap();
        assert_eq!(floats(&result[0])[0], -it * it * it * it);
    }
    let kept: Vec<f32> = kept.lock().unwrap().iter().map(|it| it.to_vec::<f32>().unwrap()[0]).collect();
    assert_eq!(kept, [1.0, 1.0, 2.0, 4.0, 3.0, 9.0]);
}
