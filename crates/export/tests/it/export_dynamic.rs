//! Graph modules exported with dynamic sizes and with control flow.

use crate::{executor, run};
use tracefx_core::{Bool8, Code, DType, Diagnostic, Tensor};
use tracefx_exec::Interpreter;
use tracefx_export::{Dim, DimSpec, DynamicShapes, ExportedProgram, ShapeSpec, default_decompositions, export};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, TensorKind, Val};
use tracefx_ops::{Value, registry};
use tracefx_sym::ValueRange;

fn tensor(sizes: &[usize]) -> Value<Tensor> {
    let n: usize = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|it| it as f32 * 0.25 - 1.0).collect();
    Value::Tensor(Tensor::from_slice(&data, sizes).unwrap())
}

fn batch(min: i64, max: i64) -> Dim {
    Dim::new("batch", ValueRange::between(min, max))
}

fn method(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.create_node(Opcode::CallMethod, name, args, vec![], None).unwrap()
}

fn call(graph: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    graph.call_function(name, args, vec![])
}

/// What the program and its decomposed form give on these inputs, which is what the module gives.
fn check_runs(module: &GraphModule, program: &ExportedProgram, inputs: &[Value<Tensor>]) {
    let direct = Interpreter::new(module, executor()).run(inputs).unwrap();
    let functional = program.run_decompositions(&default_decompositions()).unwrap();
    for program in [program, &functional] {
        let given = Value::List(run(program, inputs).unwrap());
        let direct = if let Value::List(_) = direct { direct.clone() } else { Value::List(vec![direct.clone()]) };
        assert_eq!(format!("{given:?}"), format!("{direct:?}"));
    }
}

/// ```python
/// def forward(self, x, ys):
///     n = x.size(0) * 2
///     z = torch.cat(ys).view(n, -1)
///     return x.repeat(2, 1) @ z.t(), torch.nn.functional.softmax(z, dim=1).view(x.size(0), -1), n + 1
/// ```
fn module() -> GraphModule {
    let mut graph = Graph::new();
    let [x, ys] = ["x", "ys"].map(|it| graph.placeholder(it));
    let size = method(&mut graph, "size", vec![x.into(), Arg::Int(0)]);
    let n = call(&mut graph, "operator.mul", vec![size.into(), Arg::Int(2)]);
    let cat = call(&mut graph, "torch.cat", vec![ys.into()]);
    let z = method(&mut graph, "view", vec![cat.into(), n.into(), Arg::Int(-1)]);
    let repeated = method(&mut graph, "repeat", vec![x.into(), Arg::Int(2), Arg::Int(1)]);
    let t = method(&mut graph, "t", vec![z.into()]);
    let product = call(&mut graph, "operator.matmul", vec![repeated.into(), t.into()]);
    let softmax = graph.call_function("torch.nn.functional.softmax", vec![z.into()], vec![("dim".into(), Arg::Int(1))]);
    let folded = method(&mut graph, "view", vec![softmax.into(), size.into(), Arg::Int(-1)]);
    let more = call(&mut graph, "operator.add", vec![n.into(), Arg::Int(1)]);
    graph.output(Arg::Tuple(vec![product.into(), folded.into(), more.into()]));
    GraphModule::new(graph)
}

#[test]
fn a_program_runs_for_other_sizes_than_those_of_its_example() {
    let module = module();
    let inputs = |n: usize| [tensor(&[n, 4]), Value::List(vec![tensor(&[n, 4]), tensor(&[n, 4])])];
    let said = |dim: Dim| {
        let of = || ShapeSpec::at([(0, dim.clone().into())]);
        DynamicShapes::named([("x", of()), ("ys", ShapeSpec::Items(vec![of(), of()]))])
    };
    let program = export(&module, &inputs(3), &said(batch(2, 16)), registry()).unwrap();
    let text = program.module.graph.to_string();
    assert!(text.contains("%ys_1") && text.contains("operator.mul](args = (%sym_size_int_"), "{text}");
    assert_eq!(program.range_constraints.values().collect::<Vec<_>>(), [&ValueRange::between(2, 16)]);
    for n in [2, 3, 7] {
        let flat = [tensor(&[n, 4]), tensor(&[n, 4]), tensor(&[n, 4])];
        let nested = Interpreter::new(&module, executor()).run(&inputs(n)).unwrap();
        let given = run(&program, &flat).unwrap();
        assert_eq!(format!("{:?}", Value::List(given)), format!("{nested:?}"));
    }
    let refused = run(&program, &[tensor(&[17, 4]), tensor(&[17, 4]), tensor(&[17, 4])]);
    assert_eq!(refused.unwrap_err().code(), Code::InputShape);
    let refused = run(&program, &[tensor(&[3, 4]), tensor(&[3, 4]), tensor(&[5, 4])]);
    assert_eq!(refused.unwrap_err().code(), Code::InputShape);
}

/// What exporting `x + y` refuses, both of them `[3, 2]`.
fn refusal(said: &DynamicShapes) -> Diagnostic {
    let mut graph = Graph::new();
    let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
    let sum = call(&mut graph, "operator.add", vec![x.into(), y.into()]);
    graph.output(sum.into());
    let inputs = [tensor(&[3, 2]), tensor(&[3, 2])];
    export(&GraphModule::new(graph), &inputs, said, registry()).unwrap_err()
}

#[test]
fn a_violation_names_the_node_and_suggests_a_fix() {
    let of = |name: &str| ShapeSpec::at([(0, Dim::new(name, ValueRange::at_least(0)).into())]);
    let refused = refusal(&DynamicShapes::named([("x", of("a")), ("y", of("b"))]));
    assert_eq!(refused.code(), Code::ConstraintViolation);
    assert!(refused.message().ends_with("Suggested fixes:\n  b = a"), "{refused}");
    assert_eq!(refused.notes(), ["L['x'].size()[0] == L['y'].size()[0] is asked at add"]);
    let refused = refusal(&DynamicShapes::named([("x", of("a")), ("y", ShapeSpec::None)]));
    assert!(refused.message().ends_with("Suggested fixes:\n  a = 3"), "{refused}");
}

#[test]
fn dynamic_shapes_of_another_structure_are_refused_in_pytorchs_words() {
    let place = |spec: ShapeSpec| refusal(&DynamicShapes::Positional(vec![spec, ShapeSpec::None])).message().to_owned();
    assert_eq!(
        place(ShapeSpec::Dims(vec![batch(1, 64).into()])),
        "Expected dynamic shape spec [Dim('batch', min=1, max=64)] specified at `dynamic_shapes[0]` to have the same length \
         as the actual tensor shape torch.Size([3, 2]) (expected 2, but got 1 instead)"
    );
    assert_eq!(
        place(ShapeSpec::Value(DimSpec::Size(3))),
        "Unexpected input tensor shape 3 specified at `dynamic_shapes[0]` (expected either a list/tuple of dimensions, or a \
         dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
    );
    let other = Dim::new("batch", ValueRange { min: None, max: Some(9) });
    assert_eq!(
        place(ShapeSpec::Dims(vec![batch(1, 64).into(), other.into()])),
        "Found different definitions Dim('batch', min=1, max=64) and Dim('batch', min=0, max=9) for the same symbolic \
         dimension Dim('batch', min=0, max=9)!"
    );
    assert_eq!(
        refusal(&DynamicShapes::Positional(vec![ShapeSpec::None])).message(),
        "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has 2 elements, but \
         `dynamic_shapes` has 1 elements"
    );
    assert_eq!(
        refusal(&DynamicShapes::named([("x", ShapeSpec::None)])).message(),
        "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names ['x', 'y'] of `inputs`, but \
         here they are ['x']. Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a \
         list/tuple matching `inputs`."
    );
}

#[test]
fn what_is_checked_of_data_is_asserted_by_the_program() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let n = method(&mut graph, "item", vec![x.into()]);
    let at_most = call(&mut graph, "operator.le", vec![n.into(), Arg::Int(4)]);
    call(&mut graph, "torch._check", vec![at_most.into()]);
    let at_least = call(&mut graph, "operator.ge", vec![n.into(), Arg::Int(2)]);
    call(&mut graph, "torch._check", vec![at_least.into()]);
    let zeros = call(&mut graph, "torch.zeros", vec![n.into()]);
    graph.output(zeros.into());
    let module = GraphModule::new(graph);
    let int = |it: i64| [Value::Tensor(Tensor::from_slice(&[it], &[]).unwrap())];
    let program = export(&module, &int(3), &DynamicShapes::Static, registry()).unwrap();
    let text = program.module.graph.to_string();
    assert!(text.contains("Runtime assertion failed for expression u0 <= 4 on node 'le_"), "{text}");
    assert!(text.contains("zeros.default](args = ([%item],), kwargs = {device: cpu, pin_memory: False})"), "{text}");
    assert!(run(&program, &int(4)).is_ok());
    let refused = run(&program, &int(5)).unwrap_err();
    assert!(refused.message().contains("Runtime assertion failed for expression u0 <= 4"), "{refused}");
}

/// How many elements are not zero is known of neither tensor; PyTorch 2.15 asserts the same of each call, with the sides in
/// this order.
#[test]
fn sizes_that_only_the_data_tells_are_asserted_to_be_equal_where_an_operator_needs_it() {
    type Call = fn(&mut Graph, NodeId, NodeId) -> NodeId;
    let cases: [(&str, &str, Call); 4] = [
        ("add", "Eq(u0, u1)", |graph, a, b| call(graph, "operator.add", vec![a.into(), b.into()])),
        ("where", "Eq(u0, u1)", |graph, a, b| {
            let is_positive = call(graph, "operator.gt", vec![a.into(), Arg::Int(0)]);
            call(graph, "torch.where", vec![is_positive.into(), b.into(), Arg::Int(0)])
        }),
        ("cat", "Eq(u1, u0)", |graph, a, b| {
            call(graph, "torch.cat", vec![Arg::List(vec![a.into(), b.into()]), Arg::Int(1)])
        }),
        ("stack", "Eq(u1, u0)", |graph, a, b| call(graph, "torch.stack", vec![Arg::List(vec![a.into(), b.into()])])),
    ];
    let given = |bits: [[i64; 3]; 2]| bits.map(|it| Value::Tensor(Tensor::from_slice(&it, &[3]).unwrap()));
    let (same, other) = (given([[1, 0, 1], [0, 1, 1]]), given([[1, 0, 1], [0, 0, 1]]));
    for (name, condition, add_call) in cases {
        let mut graph = Graph::new();
        let [x, y] = ["x", "y"].map(|it| graph.placeholder(it));
        let [a, b] = [x, y].map(|it| method(&mut graph, "nonzero", vec![it.into()]));
        let result = add_call(&mut graph, a, b);
        graph.output(result.into());
        let module = GraphModule::new(graph);
        let program = export(&module, &same, &DynamicShapes::Static, registry()).unwrap();
        let says = format!("Runtime assertion failed for expression {condition} on node");
        assert!(program.module.graph.to_string().contains(&says), "{name}: {}", program.module.graph);
        let direct = Interpreter::new(&module, executor()).run(&same).unwrap();
        let given = run(&program, &same).unwrap().swap_remove(0);
        let is_equal = executor().call("aten.equal.default", &[given, direct], &[]).unwrap();
        assert!(matches!(is_equal[..], [Value::Bool(true)]), "{name}: {is_equal:?}");
        let refused = run(&program, &other).unwrap_err();
        assert!(refused.message().contains(&says), "{name}: {refused}");
    }
}

/// The sizes of what `nonzero` gives in a program, which are integers.
fn matrices_of_positions(program: &ExportedProgram) -> Vec<String> {
    let graph = &program.module.graph;
    let calls = graph.nodes().filter(|it| &**graph.node(*it).target() == "torch.ops.aten.nonzero.default");
    let sizes = calls.map(|it| {
        let Some(Val::Tensor(meta)) = &graph.node(it).meta.val else { panic!("it is a tensor") };
        assert_eq!(meta.dtype, DType::Int64);
        meta.sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    });
    sizes.collect()
}

/// What a mask is decomposed to has a dtype and sizes of its own, beside the length that the program knows.
#[test]
fn masks_are_decomposed_to_their_positions() {
    let mut graph = Graph::new();
    let [x, mask] = ["x", "mask"].map(|it| graph.placeholder(it));
    let chosen = call(&mut graph, "torch.ops.aten.index.Tensor", vec![x.into(), Arg::List(vec![mask.into()])]);
    let count = method(&mut graph, "size", vec![chosen.into(), Arg::Int(0)]);
    let zeros = call(&mut graph, "torch.zeros", vec![count.into()]);
    graph.output(Arg::Tuple(vec![chosen.into(), zeros.into()]));
    let module = GraphModule::new(graph);
    let mask = Tensor::from_slice(&[true, false, true, true, false, true].map(Bool8::from), &[2, 3]).unwrap();
    let inputs = [tensor(&[2, 3, 4]), Value::Tensor(mask)];
    let mut table = default_decompositions();
    table.insert("aten.index.Tensor").unwrap();
    let dynamic = DynamicShapes::named([("x", ShapeSpec::at([(2, batch(2, 64).into())])), ("mask", ShapeSpec::None)]);
    for said in [DynamicShapes::Static, dynamic] {
        let program = export(&module, &inputs, &said, registry()).unwrap();
        let decomposed = program.run_decompositions(&table).unwrap();
        assert_eq!(matrices_of_positions(&decomposed), ["u0, 2"]);
        check_runs(&module, &decomposed, &inputs);
    }
}

/// Several results, of one length that only the data tells, which has another name for each call.
#[test]
fn positions_by_dimension_are_decomposed_to_one_matrix() {
    let mut graph = Graph::new();
    let mut results = Vec::new();
    for input in ["x", "y"] {
        let input = graph.placeholder(input);
        let positions = call(&mut graph, "torch.ops.aten.nonzero_numpy.default", vec![input.into()]);
        let rows = call(&mut graph, "operator.getitem", vec![positions.into(), Arg::Int(0)]);
        let columns = call(&mut graph, "operator.getitem", vec![positions.into(), Arg::Int(1)]);
        let count = method(&mut graph, "size", vec![rows.into(), Arg::Int(0)]);
        let zeros = call(&mut graph, "torch.zeros", vec![count.into()]);
        results.extend([rows, columns, zeros].map(Arg::Node));
    }
    graph.output(Arg::Tuple(results));
    let module = GraphModule::new(graph);
    let inputs = [tensor(&[2, 3]), tensor(&[3, 4])];
    let program = export(&module, &inputs, &DynamicShapes::Static, registry()).unwrap();
    check_runs(&module, &program, &inputs);
    let functional = program.run_decompositions(&default_decompositions()).unwrap();
    assert_eq!(matrices_of_positions(&functional), ["u0, 2", "u1, 2"]);
}

fn branch(function: &str, weight: Option<&Value<Tensor>>) -> Attribute {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut args = vec![x.into()];
    if weight.is_some() {
        args.push(graph.get_attr("weight").into());
    }
    let result = call(&mut graph, function, args);
    graph.output(Arg::Tuple(vec![result.into()]));
    let mut module = GraphModule::new(graph);
    if let Some(Value::Tensor(weight)) = weight {
        let attribute = Attribute::Tensor { tensor: weight.clone(), kind: TensorKind::Parameter };
        module.set_attribute("weight", attribute);
    }
    Attribute::Module(Box::new(module))
}

/// `cond(x.sum() > 0, lambda x: torch.mul(x, self.weight), torch.sin, [x])`.
fn conditional() -> GraphModule {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let sum = method(&mut graph, "sum", vec![x.into()]);
    let positive = call(&mut graph, "operator.gt", vec![sum.into(), Arg::Int(0)]);
    let [yes, no] = ["yes", "no"].map(|it| graph.get_attr(it));
    let args = vec![positive.into(), yes.into(), no.into(), Arg::Tuple(vec![x.into()])];
    let cond = call(&mut graph, "torch.ops.higher_order.cond", args);
    let item = call(&mut graph, "operator.getitem", vec![cond.into(), Arg::Int(0)]);
    graph.output(item.into());
    let mut module = GraphModule::new(graph);
    module.set_attribute("yes", branch("torch.mul", Some(&tensor(&[3]))));
    module.set_attribute("no", branch("torch.sin", None));
    module
}

#[test]
fn graphs_of_cond_are_exported_and_what_they_hold_becomes_operands() {
    let module = conditional();
    let said = DynamicShapes::named([("x", ShapeSpec::at([(0, batch(1, 64).into())]))]);
    let program = export(&module, &[tensor(&[2, 3])], &said, registry()).unwrap();
    let text = program.module.graph.to_string();
    assert!(text.contains("cond](args = (%gt, %true_graph_0, %false_graph_0, (%x, %p_yes_weight))"), "{text}");
    let inner = |name: &str| program.module.submodule(name).unwrap().graph.to_string();
    assert_eq!(
        inner("true_graph_0"),
        "graph():
    %x : [num_users=1] = placeholder[target=x]
    %p_yes_weight : [num_users=1] = placeholder[target=p_yes_weight]
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, %p_yes_weight), kwargs = {})
    return (mul,)"
    );
    assert!(inner("false_graph_0").contains("%p_yes_weight : [num_users=0]"));
    // On both ways, and for another size.
    for input in [tensor(&[2, 3]), tensor(&[9, 3])] {
        check_runs(&module, &program, &[input]);
    }
}

#[test]
fn loops_are_exported_and_give_what_they_gave() {
    // map: x_i * weight; scan: carry + x_i; while: i < 3 of x * 2.
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let body = graph.get_attr("body");
    let args = vec![body.into(), Arg::List(vec![x.into()]), Arg::List(vec![])];
    let mapped = call(&mut graph, "torch.ops.higher_order.map_impl", args);
    let mapped = call(&mut graph, "operator.getitem", vec![mapped.into(), Arg::Int(0)]);
    let zero = call(&mut graph, "torch.zeros", vec![Arg::Int(3)]);
    let combine = graph.get_attr("combine");
    let args = vec![combine.into(), Arg::List(vec![zero.into()]), Arg::List(vec![x.into()]), Arg::Tuple(vec![])];
    let scanned = call(&mut graph, "torch.ops.higher_order.scan", args);
    let [last, all] = [0, 1].map(|at| call(&mut graph, "operator.getitem", vec![scanned.into(), Arg::Int(at)]));
    let count = call(&mut graph, "torch.zeros", vec![Arg::List(vec![])]);
    let [test, step] = ["test", "step"].map(|it| graph.get_attr(it));
    let args = vec![test.into(), step.into(), Arg::Tuple(vec![count.into(), x.into()]), Arg::Tuple(vec![])];
    let looped = call(&mut graph, "torch.ops.higher_order.while_loop", args);
    let doubled = call(&mut graph, "operator.getitem", vec![looped.into(), Arg::Int(1)]);
    graph.output(Arg::Tuple([mapped, last, all, doubled].map(Arg::Node).into()));
    let mut module = GraphModule::new(graph);
    module.set_attribute("body", branch("torch.mul", Some(&tensor(&[3]))));
    let inner = |n: usize, build: &dyn Fn(&mut Graph, &[NodeId]) -> Arg| {
        let mut graph = Graph::new();
        let inputs: Vec<NodeId> = (0..n).map(|it| graph.placeholder(&format!("a{it}"))).collect();
        let result = build(&mut graph, &inputs);
        graph.output(result);
        Attribute::Module(Box::new(GraphModule::new(graph)))
    };
    let sum = inner(2, &|graph, it| {
        let sum = call(graph, "operator.add", vec![it[0].into(), it[1].into()]);
        let copy = method(graph, "clone", vec![sum.into()]);
        Arg::Tuple(vec![sum.into(), copy.into()])
    });
    module.set_attribute("combine", sum);
    module.set_attribute(
        "test",
        inner(2, &|graph, it| call(graph, "operator.lt", vec![it[0].into(), Arg::Int(3)]).into()),
    );
    let step = inner(2, &|graph, it| {
        let count = call(graph, "operator.add", vec![it[0].into(), Arg::Int(1)]);
        let double = call(graph, "operator.mul", vec![it[1].into(), Arg::Int(2)]);
        Arg::Tuple(vec![count.into(), double.into()])
    });
    module.set_attribute("step", step);
    let said = DynamicShapes::named([("x", ShapeSpec::Dims(vec![DimSpec::DYNAMIC, DimSpec::Static]))]);
    let program = export(&module, &[tensor(&[4, 3])], &said, registry()).unwrap();
    let text = program.module.graph.to_string();
    assert!(text.contains("map_impl](args = (%body_graph_0, [%x], [%p_body_weight])"), "{text}");
    assert!(text.contains("scan](args = (%scan_combine_graph_0, [%zeros], [%x], ())"), "{text}");
    for n in [2, 4, 6] {
        check_runs(&module, &program, &[tensor(&[n, 3])]);
    }
}

#[test]
fn a_branch_that_writes_to_its_operand_is_refused() {
    let mut module = conditional();
    module.set_attribute("no", branch("torch.sin_", None));
    let refused = export(&module, &[tensor(&[2, 3])], &DynamicShapes::Static, registry()).unwrap_err();
    assert_eq!(refused.code(), Code::NotImplemented);
    assert!(refused.message().contains("aten.sin_.default writes to an input of a graph of cond"), "{refused}");
}
