//! What works in place on the shape of a tensor is seen by everything that stands for that tensor.

use tracefx_core::{DType, Tensor};
use tracefx_exec::{Executor, Interpreter};
use tracefx_ir::{Arg, Graph, GraphModule};
use tracefx_ops::{Value, registry};

#[test]
fn a_tensor_that_was_transposed_in_place_is_so_for_every_name_of_it() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let same = graph.call_function("torch.ops.aten.relu_.default", vec![Arg::Node(x)], vec![]);
    let view = graph.call_function("torch.ops.aten.detach.default", vec![Arg::Node(x)], vec![]);
    graph.call_function("torch.ops.aten.t_.default", vec![Arg::Node(same)], vec![]);
    let outputs = [x, same, view].map(Arg::Node).to_vec();
    graph.output(Arg::Tuple(outputs));
    let module = GraphModule::new(graph);

    let input = Value::Tensor(Tensor::from_slice(&[1.0f32, -2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap());
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let Value::List(outputs) = Interpreter::new(&module, executor).run(&[input]).unwrap() else { panic!("a tuple") };
    let sizes = outputs.iter().map(|it| match it {
        Value::Tensor(it) => it.sizes().to_vec(),
        other => panic!("a {}", other.kind_name()),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [[3, 2], [3, 2], [2, 3]]);
}

/// As PyTorch's do: `torch.ones(6, dtype=torch.bool).random_(0, 2)`.
#[test]
fn booleans_take_random_integers_of_a_range() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    for to in [Value::int(2), Value::None] {
        let this = Value::Tensor(Tensor::zeros(DType::Bool, &[6]).unwrap());
        let results = executor.call("aten.random_.from", &[this, Value::int(0), to], &[]).unwrap();
        let [Value::Tensor(result)] = results.as_slice() else { panic!("a tensor") };
        assert_eq!((result.dtype(), result.sizes()), (DType::Bool, &[6][..]));
    }
}
