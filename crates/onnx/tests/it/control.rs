//! Control flow.

use crate::programs::{Program, floats, tensor, text};
use tracefx_core::DType;
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, Attribute, GraphModule, NodeId, Opcode, Val};
use tracefx_onnx::{Options, to_model};

/// A sub-graph: `build` gives its results from its inputs.
fn sub_graph(inputs: &[Val], build: impl FnOnce(&mut Program, &[NodeId]) -> Vec<NodeId>) -> GraphModule {
    let mut program = Program::new();
    let ids: Vec<NodeId> =
        inputs.iter().enumerate().map(|(at, it)| program.input(&format!("arg{at}"), it.clone())).collect();
    let results = build(&mut program, &ids);
    program.finish(&results).module
}

/// The program of one call of control flow with these sub-graphs; its first results are those of the program.
fn program_of(
    op: &str,
    inputs: &[Val],
    graphs: Vec<GraphModule>,
    args: impl FnOnce(&[NodeId], &[NodeId]) -> Vec<Arg>,
    results: &[Val],
) -> ExportedProgram {
    let mut program = Program::new();
    let ids: Vec<NodeId> =
        inputs.iter().enumerate().map(|(at, it)| program.input(&format!("x{at}"), it.clone())).collect();
    let names: Vec<String> = (0..graphs.len()).map(|at| format!("graph_{at}")).collect();
    let attributes: Vec<NodeId> =
        names.iter().map(|it| program.graph.create_node(Opcode::GetAttr, it, vec![], vec![], None).unwrap()).collect();
    let call = program.call(
        &format!("higher_order.{op}"),
        args(&attributes, &ids),
        vec![],
        Val::Seq { items: results.to_vec(), is_tuple: true },
    );
    let items: Vec<NodeId> =
        results.iter().enumerate().map(|(at, it)| program.item(call, at as i64, it.clone())).collect();
    let mut program = program.finish(&items);
    for (name, graph) in names.iter().zip(graphs) {
        program.module.attributes.insert(name.as_str().into(), Attribute::Module(Box::new(graph)));
    }
    program
}

fn list(ids: &[NodeId]) -> Arg {
    Arg::List(ids.iter().map(|&it| it.into()).collect())
}

#[track_caller]
fn check(program: &ExportedProgram, wanted: &str) {
    let model = to_model(program, &Options { metadata: false }).unwrap();
    assert_eq!(text(&model).trim(), wanted.trim(), "the model is\n{}", text(&model));
}

fn one(op: &'static str) -> impl Fn(&mut Program, &[NodeId]) -> Vec<NodeId> {
    move |program, inputs| vec![program.call(op, vec![inputs[0].into()], vec![], floats(&[2]))]
}

#[test]
fn branches_are_graphs_that_see_the_values_around_them() {
    let branches = ["aten.sin.default", "aten.cos.default"].map(|op| sub_graph(&[floats(&[2])], one(op)));
    let inputs = [tensor(DType::Bool, &[]), floats(&[2])];
    let args = |graphs: &[NodeId], x: &[NodeId]| vec![x[0].into(), graphs[0].into(), graphs[1].into(), list(&x[1..])];
    check(
        &program_of("cond", &inputs, branches.into(), args, &[floats(&[2])]),
        "
input x0: 9 []
input x1: 1 [2]
constant: 7 [0] = []
cond/Reshape = Reshape(x0, constant) allowzero=1
getitem = If(cond/Reshape)
  then_branch:
    sin_default = Sin(x1)
    cond/Identity = Identity(sin_default)
    output cond/Identity: 1
  else_branch:
    cos_default = Cos(x1)
    cond/Identity_1 = Identity(cos_default)
    output cond/Identity_1: 1
output getitem: 1 [2]
",
    );
}

#[test]
fn a_loop_asks_before_it_begins_and_after_each_step() {
    let count = || tensor(DType::Int64, &[]);
    let condition = sub_graph(&[count()], |program, it| {
        vec![program.call("aten.lt.Scalar", vec![it[0].into(), Arg::Int(5)], vec![], tensor(DType::Bool, &[]))]
    });
    let body = sub_graph(&[count()], |program, it| {
        vec![program.call("aten.add.Tensor", vec![it[0].into(), Arg::Int(1)], vec![], count())]
    });
    let args = |graphs: &[NodeId], x: &[NodeId]| vec![graphs[0].into(), graphs[1].into(), list(x), list(&[])];
    let program = program_of("while_loop", &[count()], vec![condition, body], args, &[count()]);
    let told = text(&to_model(&program, &Options { metadata: false }).unwrap());
    assert_eq!(told.matches("= Less(").count(), 2, "{told}");
    assert_eq!((told.matches("= Loop(").count(), told.matches("= Add(").count()), (1, 1), "{told}");
}

#[test]
fn maps_and_scans_are_loops_over_the_first_dimension() {
    let rows = || floats(&[3, 2]);
    let map = program_of(
        "map_impl",
        &[rows()],
        vec![sub_graph(&[floats(&[2])], one("aten.sin.default"))],
        |graphs, x| vec![graphs[0].into(), list(x), list(&[])],
        &[rows()],
    );
    let combine = sub_graph(&[floats(&[2]), floats(&[2])], |program, it| {
        let sum = program.call("aten.add.Tensor", vec![it[0].into(), it[1].into()], vec![], floats(&[2]));
        vec![sum, sum]
    });
    let scan = program_of(
        "scan",
        &[floats(&[2]), rows()],
        vec![combine],
        |graphs, x| vec![graphs[0].into(), list(&x[..1]), list(&x[1..]), list(&[])],
        &[floats(&[2]), rows()],
    );
    for program in [map, scan] {
        let told = text(&to_model(&program, &Options { metadata: false }).unwrap());
        assert!(told.contains("= Loop(") && told.contains("= Gather("), "{told}");
    }
}

#[test]
fn graphs_that_are_called_once_are_part_of_the_graph() {
    let graph = || vec![sub_graph(&[floats(&[2])], one("aten.sin.default"))];
    let results = [floats(&[2])];
    let x = [floats(&[2])];
    let programs = [
        program_of(
            "invoke_subgraph",
            &x,
            graph(),
            |graphs, x| vec![graphs[0].into(), Arg::str("once"), x[0].into()],
            &results,
        ),
        program_of(
            "wrap_with_set_grad_enabled",
            &x,
            graph(),
            |graphs, x| vec![Arg::Bool(false), graphs[0].into(), x[0].into()],
            &results,
        ),
    ];
    for program in programs {
        check(&program, "input x0: 1 [2]\ngetitem = Sin(x0)\noutput getitem: 1 [2]");
    }
}
