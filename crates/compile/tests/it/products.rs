//! Products with constant weights: what becomes one step, and how often a weight is packed.

use crate::reference::{Net, check, noise, snapshot};
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{DType, Tensor};
use tracefx_cpu::kernels;
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, Preparations, plan};
use tracefx_ir::{Arg, Attribute, GraphModule, NodeId, TensorMeta};
use tracefx_ops::{Value, registry};

/// `gelu(x @ w.T + b) @ w + x`, of rows that may have any number of dimensions.
fn feed_forward() -> GraphModule {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let (weight, bias) = (net.weight(&[24, 8]), net.weight(&[24]));
    let y = net.aten("linear.default", vec![x.into(), weight.into(), bias.into()]);
    let y = net.aten("gelu.default", vec![y.into()]);
    let y = net.aten("matmul.default", vec![y.into(), weight.into()]);
    let y = net.aten("add.Tensor", vec![x.into(), y.into()]);
    net.finish(&[y])
}

#[test]
fn a_feed_forward_block_is_two_steps() {
    let plan = check(&feed_forward(), &[noise(&[2, 3, 8], 0)], Precision::Fast);
    snapshot("a_feed_forward_block_is_two_steps", &plan);
}

/// The same numbers in another dtype.
fn to(dtype: DType, it: &Tensor) -> Tensor {
    let options = [("dtype".into(), Value::DType(dtype))];
    let made =
        Executor::new(registry(), kernels()).call("aten._to_copy.default", &[Value::Tensor(it.clone())], &options);
    match made.unwrap().pop() {
        Some(Value::Tensor(it)) => it,
        other => panic!("{other:?}"),
    }
}

#[test]
fn products_of_halves_are_steps_of_halves() {
    let executor = Executor::new(registry(), kernels());
    for (dtype, digits) in [(DType::Float16, 10), (DType::BFloat16, 7)] {
        let mut module = feed_forward();
        for attribute in module.attributes.values_mut() {
            if let Attribute::Tensor { tensor, .. } = attribute {
                *tensor = to(dtype, tensor);
            }
        }
        let inputs = [Value::Tensor(to(dtype, &noise(&[2, 3, 8], 0)))];
        let metas = inputs.each_ref().map(|it| it.map(&mut TensorMeta::of));
        let traced = plan(&module, &metas, registry(), kernels()).unwrap();
        let plan = compile(traced, registry(), kernels(), Precision::Fast);
        plan.validate().unwrap();
        let text = plan.to_string();
        assert_eq!((plan.steps.len(), text.matches("product(").count()), (2, 2), "{text}");
        let floats = |it: Value<Tensor>| {
            let mut res = Vec::new();
            it.for_each_tensor(&mut |it| res.extend(to(DType::Float32, it).to_vec::<f32>().unwrap()));
            res
        };
        let want = floats(Interpreter::new(&module, executor).run(&inputs).unwrap());
        let mut bound = BoundPlan::new(Arc::new(plan), registry(), kernels()).unwrap();
        let got = floats(bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(())).unwrap());
        let largest = want.iter().fold(1.0f32, |a, b| a.max(b.abs()));
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 4.0 * largest * 2f32.powi(-digits);
        assert!(got.len() == want.len() && got.iter().zip(&want).all(is_near), "{got:?} {want:?}");
    }
}

#[test]
fn one_weight_may_be_of_two_dtypes() {
    let mut net = Net::new();
    let [x, y] = ["x", "y"].map(|it| net.graph.placeholder(it));
    let weight = net.weight(&[4, 4]);
    let other = net.aten("view.dtype", vec![weight.into(), Arg::DType(DType::BFloat16)]);
    let first = net.aten("mm.default", vec![x.into(), weight.into()]);
    let second = net.aten("mm.default", vec![y.into(), other.into()]);
    let mut module = net.finish(&[first, second]);
    for attribute in module.attributes.values_mut() {
        if let Attribute::Tensor { tensor, .. } = attribute {
            *tensor = to(DType::Float16, tensor);
        }
    }
    let x = noise(&[3, 4], 0);
    let inputs = [DType::Float16, DType::BFloat16].map(|it| Value::Tensor(to(it, &x)));
    let metas = inputs.each_ref().map(|it| it.map(&mut TensorMeta::of));
    let plan = compile(plan(&module, &metas, registry(), kernels()).unwrap(), registry(), kernels(), Precision::Fast);
    assert_eq!(plan.to_string().matches("product(").count(), 2, "{plan}");
    let mut bound = BoundPlan::new(Arc::new(plan), registry(), kernels()).unwrap();
    bound.run(Executor::new(registry(), kernels()), &inputs, LOOP_STEPS, &mut |_, _| Ok(())).unwrap();
}

#[test]
fn a_number_for_each_column_is_a_bias() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let [weight, bias, halves] = [&[8, 6][..], &[6], &[3]].map(|it| net.weight(it));
    let sum = |net: &mut Net, a: NodeId, b: NodeId| net.aten("add.Tensor", vec![a.into(), b.into()]);
    let y = net.aten("matmul.default", vec![x.into(), weight.into()]);
    let y = sum(&mut net, bias, y);
    let y = sum(&mut net, y, bias);
    // A number for each column of another view is none.
    let z = net.aten("matmul.default", vec![x.into(), weight.into()]);
    let z = net.aten("view.default", vec![z.into(), Arg::List([2, 3, 2, 3].map(Arg::Int).to_vec())]);
    let z = sum(&mut net, z, halves);
    let plan = check(&net.finish(&[y, z]), &[noise(&[2, 3, 8], 0)], Precision::Fast);
    snapshot("a_number_for_each_column_is_a_bias", &plan);
}

#[test]
fn a_product_whose_weight_is_computed_or_whose_rows_are_turned_is_a_call() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let weight = net.weight(&[8, 8]);
    let row = net.aten("select.int", vec![x.into(), Arg::Int(0), Arg::Int(0)]);
    let vector = net.aten("matmul.default", vec![row.into(), weight.into()]);
    let square = net.aten("mm.default", vec![x.into(), x.into()]);
    let scaled = net.aten("mul.Tensor", vec![weight.into(), Arg::Float(2.0)]);
    let computed = net.aten("mm.default", vec![x.into(), scaled.into()]);
    let turned = net.aten("t.default", vec![x.into()]);
    let turned = net.aten("mm.default", vec![turned.into(), weight.into()]);
    let plan = check(&net.finish(&[vector, square, computed, turned]), &[noise(&[8, 8], 0)], Precision::Fast);
    // The product of a vector is one of a row.
    assert_eq!(plan.to_string().matches("product(").count(), 1, "{plan}");
}

#[test]
fn what_follows_a_product_in_another_order_is_not_taken() {
    let mut net = Net::new();
    let x = net.graph.placeholder("x");
    let other = net.graph.placeholder("other");
    let weight = net.weight(&[5, 8]);
    let mut product = || net.aten("linear.default", vec![x.into(), weight.into()]);
    let (first, second, third) = (product(), product(), product());
    let turned = net.aten("t.default", vec![other.into()]);
    let sum = net.aten("add.Tensor", vec![first.into(), turned.into()]);
    let turned = net.aten("t.default", vec![second.into()]);
    let activated = net.aten("relu.default", vec![turned.into()]);
    let part = net.aten("slice.Tensor", [third.into()].into_iter().chain([0, 1, 3].map(Arg::Int)).collect());
    let part = net.aten("relu.default", vec![part.into()]);
    let plan = check(&net.finish(&[sum, activated, part]), &[noise(&[3, 8], 0), noise(&[5, 3], 1)], Precision::Fast);
    assert!(!plan.to_string().contains("residual=") && !plan.to_string().contains("activation="), "{plan}");
}

#[test]
fn a_weight_is_packed_once_for_all_sizes_and_again_when_it_changes() {
    let module = feed_forward();
    let executor = Executor::new(registry(), kernels());
    let preparations = Preparations::default();
    let mut plans: Vec<(Tensor, BoundPlan)> = [2, 5]
        .into_iter()
        .map(|n| {
            let x = noise(&[n, 8], n);
            let traced = plan(&module, &[Value::Tensor(TensorMeta::of(&x))], registry(), kernels()).unwrap();
            let plan = Arc::new(compile(traced, registry(), kernels(), Precision::Fast));
            (x, BoundPlan::sharing(plan, registry(), kernels(), &preparations).unwrap())
        })
        .collect();
    let mut run = |module: &GraphModule| {
        for (x, bound) in &mut plans {
            let inputs = [Value::Tensor(x.clone())];
            let given = bound.run(executor, &inputs, LOOP_STEPS, &mut |_, _| Ok(())).unwrap();
            let wanted = Interpreter::new(module, executor).run(&inputs).unwrap();
            let numbers = |it: &Value<Tensor>| {
                let mut res = Vec::new();
                it.for_each_tensor(&mut |it| res.extend(it.to_vec::<f32>().unwrap()));
                res
            };
            for (given, wanted) in numbers(&given).into_iter().zip(numbers(&wanted)) {
                assert!((given - wanted).abs() < 1e-4, "{given} {wanted}");
            }
        }
    };
    run(&module);
    let n_packed = format!("{preparations:?}").matches("Product(").count();
    let Attribute::Tensor { tensor, .. } = module.attribute("w0").unwrap() else { panic!("a weight is a tensor") };
    executor.call("aten.mul_.Scalar", &[Value::Tensor(tensor.clone()), Value::Float(0.5)], &[]).unwrap();
    run(&module);
    assert_eq!((n_packed, format!("{preparations:?}").matches("Product(").count()), (2, 2));
}
