//! Embeddings, selections and what is indexed by positions.

use crate::reference::{Net, check, noise, snapshot};
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{DType, Tensor};
use tracefx_cpu::kernels;
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, GraphModule, NodeId, TensorMeta};
use tracefx_ops::{Value, registry};

/// An embedding of positions of two dimensions, rows and columns of it.
#[test]
fn embeddings_and_selections_are_steps() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let table = net.weight(&[7, 4]);
    let at = net.aten("to.dtype", vec![x.into(), Arg::DType(DType::Int64)]);
    let embedded = net.aten("embedding.default", vec![table.into(), at.into()]);
    let flat = net.aten("view.default", vec![at.into(), Arg::List(vec![Arg::Int(6)])]);
    let small = net.aten("to.dtype", vec![flat.into(), Arg::DType(DType::Int32)]);
    let turned = net.aten("permute.default", vec![table.into(), Arg::List(vec![Arg::Int(1), Arg::Int(0)])]);
    let columns = net.aten("index_select.default", vec![turned.into(), Arg::Int(-1), small.into()]);
    let below = net.aten("sub.Tensor", vec![at.into(), Arg::Int(7)]);
    let wrapped = net.aten("index.Tensor", vec![turned.into(), Arg::List(vec![Arg::None, below.into()])]);
    let module = net.finish(&[embedded, columns, wrapped]);
    let positions = Tensor::from_slice(&[0.0f32, 6.0, 3.0, 3.0, 1.0, 2.0], &[2, 3]).unwrap();
    let plan = check(&module, &[positions], Precision::Strict);
    snapshot("embeddings_and_selections_are_steps", &plan);
}

/// The operators that take rows of a table.
const OPS: [&str; 3] = ["embedding.default", "index_select.default", "index.Tensor"];

fn rows(net: &mut Net, op: &str, table: NodeId, at: NodeId) -> NodeId {
    let args = match op {
        "embedding.default" => vec![table.into(), at.into()],
        "index.Tensor" => vec![table.into(), Arg::List(vec![at.into()])],
        _ => vec![table.into(), Arg::Int(0), at.into()],
    };
    net.aten(op, args)
}

fn row(op: &str) -> GraphModule {
    let mut net = Net::new();
    let (x, at) = (net.graph.placeholder("x"), net.graph.placeholder("at"));
    let y = rows(&mut net, op, x, at);
    net.finish(&[y])
}

#[test]
fn positions_that_are_not_there_are_refused_as_operators_refuse_them() {
    let executor = Executor::new(registry(), kernels());
    for op in OPS {
        for at in [-8, -7, -1, 0, 6, 7, i64::MIN, i64::MAX] {
            let module = row(op);
            let inputs = [noise(&[7, 4], 0), Tensor::from_slice(&[at], &[1]).unwrap()].map(Value::Tensor);
            let metas = inputs.each_ref().map(|it| it.map(&mut TensorMeta::of));
            let traced = plan(&module, &metas, registry(), kernels()).unwrap();
            let compiled = compile(traced, registry(), kernels(), Precision::Strict);
            assert!(compiled.to_string().contains("= gather("), "{compiled}");
            let mut bound = BoundPlan::new(Arc::new(compiled), registry(), kernels()).unwrap();
            let given = bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(()));
            let bytes = |it: &Value<Tensor>| {
                let mut bytes = Vec::new();
                it.for_each_tensor(&mut |it| bytes.push(it.to_bytes().unwrap()));
                bytes
            };
            match (given, Interpreter::new(&module, executor).run(&inputs)) {
                (Ok(given), Ok(wanted)) => assert_eq!(bytes(&given), bytes(&wanted), "{op} {at}"),
                (given, wanted) => {
                    let (given, wanted) = (given.unwrap_err(), wanted.unwrap_err());
                    assert_eq!((given.to_string(), given.code()), (wanted.to_string(), wanted.code()), "{op} {at}");
                }
            }
        }
    }
}

/// Of an empty table, of no positions, and of a position without dimensions.
#[test]
fn gathers_of_nothing_give_nothing() {
    for op in OPS {
        for (table, sizes) in [([0, 4], &[0][..]), ([7, 0], &[2]), ([7, 4], &[0]), ([7, 4], &[])] {
            let mut net = Net::new();
            let (x, at) = (net.graph.placeholder("x"), net.graph.placeholder("at"));
            let at = net.aten("to.dtype", vec![at.into(), Arg::DType(DType::Int64)]);
            let y = rows(&mut net, op, x, at);
            let positions = Tensor::zeros(DType::Float32, sizes).unwrap();
            let plan = check(&net.finish(&[y]), &[noise(&table, 0), positions], Precision::Strict).to_string();
            let is_call = op == "index_select.default" && sizes.is_empty();
            assert_ne!(plan.contains("= gather("), is_call, "{plan}");
        }
    }
}
