//! Runners on the tensors of a program themselves: both sides see what the other one writes, and packed weights are made again.

use tracefx_core::Tensor;
use tracefx_engine::{Library, Runner};
use tracefx_exec::assign;
use tracefx_export::ExportedProgram;
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, TensorKind};
use tracefx_ops::Value;

fn tensor(values: &[f32], sizes: &[usize]) -> Tensor {
    Tensor::from_slice(values, sizes).unwrap()
}

fn numbers(value: &Value<Tensor>) -> Vec<f32> {
    let Value::Tensor(tensor) = value else { panic!("{value:?} is no tensor") };
    tensor.to_vec().unwrap()
}

/// `x @ weight` and `count.add_(1)`.
fn program(x: &[Value<Tensor>]) -> ExportedProgram {
    let mut graph = Graph::new();
    let input = graph.placeholder("x");
    let [weight, count] = ["weight", "count"].map(|it| graph.get_attr(it));
    let product = graph.call_function("torch.ops.aten.matmul.default", vec![input.into(), weight.into()], vec![]);
    graph.call_function("torch.ops.aten.add_.Scalar", vec![count.into(), Arg::Int(1)], vec![]);
    graph.output(product.into());
    let mut module = GraphModule::new(graph);
    let held = [
        ("weight", tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), TensorKind::Parameter),
        ("count", tensor(&[0.0], &[1]), TensorKind::Buffer),
    ];
    for (name, tensor, kind) in held {
        module.set_attribute(name, Attribute::Tensor { tensor, kind });
    }
    Library::default().export(&module, x).unwrap()
}

#[test]
fn weights_that_change_are_seen_and_buffers_are_written() {
    let x = [Value::Tensor(tensor(&[1.0, 1.0], &[1, 2]))];
    let program = program(&x);
    let runner = || Runner::new(&program).unwrap();
    let (first, second, apart) =
        (runner().with_shared_state().unwrap(), runner().with_shared_state().unwrap(), runner());
    let result = |it: &Runner| numbers(&it.run(&x).unwrap()[0]);
    for runner in [&first, &second, &apart, &first] {
        assert_eq!(result(runner), [4.0, 6.0]);
    }
    assign(&program.state_dict["weight"].tensor, &tensor(&[1.0, 0.0, 0.0, 1.0], &[2, 2])).unwrap();
    assert_eq!([result(&first), result(&second), result(&apart)], [vec![1.0, 1.0], vec![1.0, 1.0], vec![4.0, 6.0]]);
    assert_eq!(program.state_dict["count"].tensor.to_vec::<f32>().unwrap(), [5.0]);
}
