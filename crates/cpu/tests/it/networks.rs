//! What PyTorch computes where no case was recorded: layouts, training, masks, recurrent layers and filters. The numbers
//! come from PyTorch 2.13.

use tracefx_core::{Code, DType, Diagnostic, Scalar, Tensor};
use tracefx_exec::Executor;
use tracefx_ops::{Tol, Value, registry};

type Arg = Value<Tensor>;

fn call(op: &str, args: &[Arg]) -> Result<Vec<Tensor>, Diagnostic> {
    let results = Executor::new(registry(), tracefx_cpu::kernels()).call(op, args, &[])?;
    let tensor = |it| if let Value::Tensor(it) = it { Some(it) } else { None };
    Ok(results.into_iter().filter_map(tensor).collect())
}

fn tensor(values: &[f32], sizes: &[usize]) -> Arg {
    Value::Tensor(Tensor::from_slice(values, sizes).unwrap())
}

/// `offset`, `offset + step`…
fn ramp(sizes: &[usize], step: f32, offset: f32) -> Arg {
    let n: usize = sizes.iter().product();
    let values: Vec<f32> = (0..n).map(|it| it as f32 * step + offset).collect();
    tensor(&values, sizes)
}

fn wave(sizes: &[usize], step: f32, offset: f32, of: fn(f32) -> f32) -> Arg {
    let n: usize = sizes.iter().product();
    let values: Vec<f32> = (0..n).map(|it| of(it as f32 * step + offset)).collect();
    tensor(&values, sizes)
}

fn int(value: i64) -> Arg {
    Value::int(value)
}

fn ints(values: &[i64]) -> Arg {
    Value::ints(values)
}

#[track_caller]
fn check(got: &Tensor, sizes: &[usize], want: &[f32]) {
    assert_eq!(got.sizes(), sizes);
    let (rtol, atol) = Tol::Default.for_dtype(DType::Float32);
    for (at, (got, want)) in got.to_vec::<f32>().unwrap().iter().zip(want).enumerate() {
        let bound = atol + rtol * f64::from(want.abs());
        let is_close = f64::from((got - want).abs()) <= bound || (got.is_nan() && want.is_nan());
        assert!(is_close, "element {at} is {got} instead of {want}");
    }
}

#[test]
fn what_is_multiplied_by_a_beta_of_zero_does_not_count() {
    let (nan, ones) = (tensor(&[f32::NAN; 4], &[2, 2]), ramp(&[2, 2], 0.0, 1.0));
    let kwargs = [("beta".into(), int(0))];
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let results = executor.call("aten.addmm.default", &[nan, ones.clone(), ones], &kwargs).unwrap();
    let Value::Tensor(result) = &results[0] else { panic!("a {}", results[0].kind_name()) };
    check(result, &[2, 2], &[2.0; 4]);
}

#[test]
fn shapes_that_do_not_fit_are_refused_in_pytorchs_words() {
    let problem = call("aten.mm.default", &[ramp(&[2, 3], 1.0, 0.0), ramp(&[2, 3], 1.0, 0.0)]).unwrap_err();
    assert_eq!(problem.code(), Code::ShapeMismatch);
    assert_eq!(problem.message(), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
}

#[test]
fn a_convolution_keeps_channels_last() {
    let Value::Tensor(rows) = ramp(&[1, 2, 2, 4], 0.1, 0.0) else { unreachable!() };
    // The same elements with the channels last in memory.
    let order: Vec<f32> = rows.permuted(&[0, 2, 3, 1]).to_vec().unwrap();
    let input = Tensor::from_slice(&order, &[1, 2, 4, 2]).unwrap().permuted(&[0, 3, 1, 2]);
    let weight = ramp(&[2, 2, 1, 2], 0.0, 1.0);
    let options = [ints(&[1, 2]), ints(&[0, 1]), ints(&[1, 1]), Value::Bool(false), ints(&[0, 0]), int(1)];
    let args = [vec![Value::Tensor(input), weight, Value::None], options.to_vec()].concat();
    let result = call("aten.convolution.default", &args).unwrap().remove(0);
    assert_eq!(result.strides(), [12, 1, 6, 2]);
    check(&result, &[1, 2, 2, 3], &[0.8, 2.2, 1.4, 1.6, 3.8, 2.2, 0.8, 2.2, 1.4, 1.6, 3.8, 2.2]);
}

#[test]
fn training_updates_the_running_statistics() {
    let (mean, var) = (ramp(&[2], 0.0, 0.0), ramp(&[2], 0.0, 1.0));
    let input = ramp(&[2, 2, 3], 1.0, 0.0);
    let call_args = [input, Value::None, Value::None, mean.clone(), var.clone(), Value::Bool(true)];
    let options = [Value::Float(0.1), Value::Float(1e-5), Value::Bool(false)];
    call("aten.batch_norm.default", &[call_args.to_vec(), options.to_vec()].concat()).unwrap();
    let (Value::Tensor(mean), Value::Tensor(var)) = (mean, var) else { unreachable!() };
    check(&mean, &[2], &[0.4, 0.7]);
    check(&var, &[2], &[2.06, 2.06]);
}

#[test]
fn dropout_is_the_identity_outside_training() {
    let Value::Tensor(input) = ramp(&[3], 1.0, 0.0) else { unreachable!() };
    let args = |train: bool| [Value::Tensor(input.clone()), Value::Float(0.5), Value::Bool(train)];
    assert!(call("aten.dropout.default", &args(false)).unwrap()[0].storage().is_same(input.storage()));
    assert!(!call("aten.dropout.default", &args(true)).unwrap()[0].storage().is_same(input.storage()));
}

#[test]
fn nan_is_the_largest_and_the_first_of_equals_counts() {
    let input = tensor(&[1.0, f32::NAN, 3.0, 3.0, 2.0, 3.0], &[1, 1, 6]);
    let results = call("aten.max_pool1d_with_indices.default", &[input.clone(), ints(&[3]), ints(&[1])]).unwrap();
    check(&results[0], &[1, 1, 4], &[f32::NAN, f32::NAN, 3.0, 3.0]);
    assert_eq!(results[1].to_vec::<i64>().unwrap(), [1, 1, 2, 3]);
    let results = call("aten.adaptive_max_pool1d.default", &[input, ints(&[2])]).unwrap();
    assert_eq!(results[1].to_vec::<i64>().unwrap(), [1, 3]);
}

#[test]
fn causal_attention_and_its_logarithms() {
    let (query, key) = (ramp(&[1, 1, 3, 2], 0.5, -1.0), ramp(&[1, 1, 4, 2], 0.25, -0.5));
    let args = [query, key.clone(), key, Value::Float(0.0), Value::Bool(true)];
    let results = call("aten._scaled_dot_product_flash_attention_for_cpu.default", &args).unwrap();
    check(&results[0], &[1, 1, 3, 2], &[-0.5, -0.25, -0.2279603, 0.02203972, 0.261788, 0.511788]);
    check(&results[1], &[1, 1, 3], &[0.4419417, 0.6970484, 1.608932]);
}

/// Weights and biases of two directions.
fn params(n_gates: usize, has_biases: bool) -> Arg {
    let mut res = Vec::new();
    for direction in [0.0, 1.0] {
        res.push(wave(&[2 * n_gates, 2], 1.0, direction, f32::sin));
        res.push(wave(&[2 * n_gates, 2], 1.0, direction, f32::cos));
        if has_biases {
            res.push(wave(&[2 * n_gates], 0.5, 0.0, f32::sin));
            res.push(wave(&[2 * n_gates], 0.5, 0.0, f32::cos));
        }
    }
    Value::List(res)
}

/// The options of a recurrent layer in two directions, after the parameters.
fn options(has_biases: bool, is_batch_first: bool) -> Vec<Arg> {
    let [biases, batch_first, no, yes] = [has_biases, is_batch_first, false, true].map(Value::Bool);
    vec![biases, int(1), Value::Float(0.0), no, yes, batch_first]
}

#[test]
fn recurrent_layers_in_two_directions() {
    let input = ramp(&[2, 1, 2], 0.3, -0.5);
    let state = |value: f32| ramp(&[2, 1, 2], 0.0, value);
    let run = |op: &str, head: Vec<Arg>, tail: Vec<Arg>| call(op, &[head, tail].concat()).unwrap();

    let head = vec![input.clone(), Value::List(vec![state(0.0), state(0.5)]), params(4, true)];
    let results = run("aten.lstm.input", head, options(true, false));
    let outputs = [0.1230581, 0.06522767, 0.1508738, 0.0492372, 0.2291513, -0.01630406, 0.2225767, 0.0118366];
    check(&results[0], &[2, 1, 4], &outputs);
    check(&results[1], &[2, 1, 2], &[0.2291513, -0.01630406, 0.1508738, 0.0492372]);
    check(&results[2], &[2, 1, 2], &[0.7496358, -0.05898731, 0.6677875, 0.3410594]);

    let head = vec![ramp(&[1, 2, 2], 0.3, -0.5), state(0.25), params(3, true)];
    let results = run("aten.gru.input", head, options(true, true));
    let outputs = [0.1906615, 0.2792124, 0.2232325, 0.3389842, 0.2891912, 0.1544679, 0.2107825, 0.1945025];
    check(&results[0], &[1, 2, 4], &outputs);
    check(&results[1], &[2, 1, 2], &[0.2891912, 0.1544679, 0.2232325, 0.3389842]);

    let results = run("aten.rnn_relu.input", vec![input, state(0.25), params(1, false)], options(false, false));
    check(&results[1], &[2, 1, 2], &[0.5533698, 0.05716487, 0.0, 0.0]);
}

#[test]
fn filters_and_grids() {
    let pixels = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4].map(|it| it as f32);
    let resize = |op: &str, size: [i64; 2], is_aligned: bool| {
        call(op, &[tensor(&pixels, &[1, 1, 4, 5]), ints(&size), Value::Bool(is_aligned)]).unwrap().remove(0)
    };
    let linear = [4.387755, 4.428572, 4.22449, 4.653061, 5.936508, 6.489796];
    check(&resize("aten._upsample_bilinear2d_aa.default", [2, 3], false), &[1, 1, 2, 3], &linear);
    let cubic = [4.409981, 4.203882, 4.088556, 4.618245, 6.145954, 6.760394];
    check(&resize("aten._upsample_bicubic2d_aa.default", [2, 3], false), &[1, 1, 2, 3], &cubic);

    let theta = tensor(&[1.0, 0.5, 0.1, -0.25, 2.0, 0.2], &[1, 2, 3]);
    let grid = call("aten.affine_grid_generator.default", &[theta, ints(&[1, 1, 2, 3]), Value::Bool(true)]).unwrap();
    let want = [-1.4, -1.55, -0.4, -1.8, 0.6, -2.05, -0.4, 2.45, 0.6, 2.2, 1.6, 1.95];
    check(&grid[0], &[1, 2, 3, 2], &want);
}

#[test]
fn products_of_many_tensors() {
    let operands = vec![ramp(&[2, 3, 2], 0.1, 0.0), ramp(&[2, 2], 0.1, 0.0), ramp(&[3, 2], 0.1, 0.0)];
    let equation = Value::Str("b...i,ij,...j->...b".into());
    let result = call("aten.einsum.default", &[equation, Value::List(operands)]).unwrap();
    check(&result[0], &[3, 2], &[0.003, 0.027, 0.045, 0.141, 0.135, 0.303]);

    let chain = vec![ramp(&[2], 0.1, 0.0), ramp(&[2, 3], 0.1, 0.0), ramp(&[3], 0.1, 0.0)];
    check(&call("aten.linalg_multi_dot.default", &[Value::List(chain)]).unwrap()[0], &[], &[0.014]);

    let fibonacci = tensor(&[1.0, 1.0, 1.0, 0.0], &[2, 2]);
    let power = call("aten.linalg_matrix_power.default", &[fibonacci, int(10)]).unwrap();
    check(&power[0], &[2, 2], &[89.0, 55.0, 55.0, 34.0]);

    let result =
        call("aten.kron.default", &[ramp(&[1, 2], 1.0, 1.0), tensor(&[1.0, -1.0, 0.0, 3.0], &[2, 2])]).unwrap();
    check(&result[0], &[2, 4], &[1.0, -1.0, 2.0, -2.0, 0.0, 3.0, 0.0, 6.0]);
}

#[test]
fn smoothed_labels_with_weights_and_an_ignored_class() {
    let target = Tensor::from_slice(&[2i64, 0, -100, 1], &[2, 2]).unwrap();
    let args = [
        ramp(&[2, 3, 2], 0.1, 0.0),
        Value::Tensor(target),
        ramp(&[3], 1.0, 1.0),
        int(1),
        int(-100),
        Scalar::Float(0.1).into(),
    ];
    check(&call("aten.cross_entropy_loss.default", &args).unwrap()[0], &[], &[1.045235]);
}
