//! Times of fused steps: the layers of `benches/fused.json`, whose names may be picked by a part of them, with bias and ReLU.
//!
//! Prints the median time of each in microseconds as a JSON object; `benches/fused.py` sets it beside ONNX Runtime's.

mod cases;

use serde_json::Value as Json;
use tracefx_core::Tensor;
use tracefx_exec::Executor;
use tracefx_ops::registry;
use tracefx_plan::{Activation, Convolution, ConvolutionLayer, Epilogue, Fused, Product};

fn main() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let prepare = tracefx_cpu::kernels().fused().unwrap();
    cases::time(include_str!("../../../benches/fused.json"), |case| {
        let step = step(case);
        let run = prepare(&step, executor).unwrap();
        move || run(&step).unwrap()
    });
}

fn step(case: &Json) -> Fused<Tensor> {
    let sizes =
        |it: &Json| -> Vec<usize> { it.as_array().unwrap().iter().map(|it| it.as_u64().unwrap() as usize).collect() };
    let number = |key: &str| case[key].as_u64().unwrap() as usize;
    let epilogue = |n_channels: usize| Epilogue {
        bias: Some(tensor(&[n_channels])),
        activation: Activation::Clamp { min: 0.0, max: f32::INFINITY },
        ..Epilogue::none()
    };
    if case["lhs"].is_array() {
        let (lhs, rhs) = (sizes(&case["lhs"]), sizes(&case["rhs"]));
        let (result, epilogue) = (tensor(&[lhs[0], rhs[1]]), epilogue(rhs[1]));
        return Fused::Product(Product { lhs: tensor(&lhs), rhs: tensor(&rhs), epilogue, result });
    }
    let (input, weight) = (sizes(&case["input"]), sizes(&case["weight"]));
    let (stride, padding) = (number("stride"), number("padding"));
    let points = |dim: usize| (input[1 + dim] + 2 * padding - weight[2 + dim]) / stride + 1;
    let layer = ConvolutionLayer {
        weight: tensor(&weight),
        stride: [stride; 2],
        padding: [padding; 2],
        dilation: [1; 2],
        groups: number("groups"),
        epilogue: epilogue(weight[0]),
    };
    Fused::Convolution(Convolution {
        input: tensor(&input),
        scale: None,
        layers: vec![layer],
        result: tensor(&[input[0], points(0), points(1), weight[0]]),
    })
}

fn tensor(sizes: &[usize]) -> Tensor {
    let numbers: Vec<f32> = (0..sizes.iter().product()).map(|it: usize| (it as f32 * 0.7).sin()).collect();
    Tensor::from_slice(&numbers, sizes).unwrap()
}
