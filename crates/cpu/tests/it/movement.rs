//! What the recorded cases of data movement leave out: ties, NaN, words of errors, and operators without a case.

use tracefx_core::{Code, DType, Diagnostic, Scalar, Tensor};
use tracefx_exec::Executor;
use tracefx_ops::{Value, registry};

fn call(op: &str, args: &[Value<Tensor>]) -> Result<Vec<Tensor>, Diagnostic> {
    let results = Executor::new(registry(), tracefx_cpu::kernels()).call(op, args, &[])?;
    let tensor = |it: &Value<Tensor>| match it {
        Value::Tensor(it) => it.clone(),
        other => panic!("{op} gives a {}", other.kind_name()),
    };
    Ok(results
        .iter()
        .flat_map(|it| if let Value::List(items) = it { items.iter().map(tensor).collect() } else { vec![tensor(it)] })
        .collect())
}

#[track_caller]
fn refused(op: &str, args: &[Value<Tensor>], code: Code, words: &str) {
    let problem = call(op, args).expect_err("it is refused");
    assert_eq!(problem.code(), code, "{problem}");
    assert!(problem.message().contains(words), "{problem}");
}

fn floats(values: &[f32], sizes: &[usize]) -> Value<Tensor> {
    Value::Tensor(Tensor::from_slice(values, sizes).unwrap())
}

fn longs(values: &[i64], sizes: &[usize]) -> Value<Tensor> {
    Value::Tensor(Tensor::from_slice(values, sizes).unwrap())
}

fn int(value: i64) -> Value<Tensor> {
    Value::int(value)
}

fn matrix() -> Value<Tensor> {
    floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3])
}

/// 200 numbers below 13, so that each comes many times.
fn with_ties() -> Value<Tensor> {
    let values: Vec<i64> = (0..200).map(|i| (i * 7919 + i * i % 31) % 13).collect();
    longs(&values, &[200])
}

#[test]
fn ties_fall_as_in_pytorch() {
    let indices = |op: &str, args: &[Value<Tensor>]| {
        let mut all = vec![with_ties()];
        all.extend_from_slice(args);
        call(op, &all).unwrap()[1].to_vec::<i64>().unwrap()
    };
    let (yes, no) = (Value::Bool(true), Value::Bool(false));
    assert_eq!(indices("aten.topk.default", &[int(5)]), [79, 135, 133, 168, 165]);
    assert_eq!(indices("aten.topk.default", &[int(5), int(0), no.clone()]), [56, 98, 150, 28, 194]);
    assert_eq!(indices("aten.topk.default", &[int(3)]), [26, 15, 14]);
    assert_eq!(indices("aten.topk.default", &[int(3), int(0), no.clone()]), [32, 28, 0]);
    assert_eq!(
        indices("aten.topk.default", &[int(12), int(0), yes, no]),
        [165, 14, 15, 79, 168, 133, 135, 26, 34, 146, 142, 128]
    );
    let most = indices("aten.topk.default", &[int(120)]);
    assert_eq!(most[..10], [74, 128, 133, 135, 142, 34, 146, 26, 165, 70]);
    assert_eq!(most.iter().enumerate().map(|(at, it)| at as i64 * it).sum::<i64>(), 685_695);
    assert_eq!(indices("aten.kthvalue.default", &[int(50)]), [85]);
    assert_eq!(indices("aten.kthvalue.default", &[int(150)]), [105]);
    assert_eq!(indices("aten.median.dim", &[int(0)]), [141]);
    assert_eq!(indices("aten.mode.default", &[]), [120]);
}

#[test]
fn sorting_keeps_equal_elements_in_order() {
    let sorted = call("aten.sort.default", &[with_ties()]).unwrap();
    let (values, indices) = (sorted[0].to_vec::<i64>().unwrap(), sorted[1].to_vec::<i64>().unwrap());
    assert!(values.iter().zip(&indices).is_sorted());
}

#[test]
fn nan_is_the_greatest_and_equals_nothing() {
    let line = || floats(&[f32::NAN, 1.0, f32::NAN, -0.0, 0.0], &[5]);
    let indices = |op: &str, args: &[Value<Tensor>]| call(op, args).unwrap()[1].to_vec::<i64>().unwrap();
    assert_eq!(indices("aten.sort.default", &[line()]), [3, 4, 1, 0, 2]);
    assert_eq!(indices("aten.sort.default", &[line(), int(0), Value::Bool(true)]), [0, 2, 1, 3, 4]);
    assert_eq!(indices("aten.median.dim", &[line(), int(0)]), [0]);
    assert_eq!(indices("aten.nanmedian.dim", &[line(), int(0)]), [4]);
    let unique = call("aten._unique2.default", &[line(), Value::Bool(true), Value::Bool(true), Value::Bool(true)]);
    assert_eq!(unique.unwrap()[2].to_vec::<i64>().unwrap(), [2, 1, 1, 1]);
    let sources = floats(&[f32::NAN, 7.0], &[2]);
    for reduce in ["amax", "amin"] {
        let scattered = call(
            "aten.scatter_reduce.two",
            &[floats(&[1.0, 2.0], &[2]), int(0), longs(&[1, 1], &[2]), sources.clone(), Value::Str(reduce.into())],
        );
        assert!(scattered.unwrap()[0].to_vec::<f32>().unwrap()[1].is_nan());
    }
    // PyTorch's comparisons pass a boundary that is NaN.
    let boundaries = floats(&[1.0, f32::NAN, 4.0], &[3]);
    let found = call("aten.searchsorted.Tensor", &[boundaries, floats(&[0.0, 2.0, 9.0], &[3])]).unwrap();
    assert_eq!(found[0].to_vec::<i64>().unwrap(), [2, 2, 3]);
}

#[test]
fn complex_numbers_are_pairs() {
    let pairs = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    let complex = Value::Tensor(call("aten.view_as_complex.default", &[pairs]).unwrap().remove(0));
    let part = |op: &str| call(op, std::slice::from_ref(&complex)).unwrap()[0].to_vec::<f32>().unwrap();
    assert_eq!((part("aten.real.default"), part("aten.imag.default")), (vec![1.0, 3.0], vec![2.0, 4.0]));
    refused(
        "aten.imag.default",
        &[matrix()],
        Code::DTypeMismatch,
        "imag is not implemented for tensors with non-complex",
    );
    refused("aten.view_as_complex.default", &[matrix()], Code::ShapeMismatch, "last dimension of size 2");
}

#[test]
fn bytes_are_seen_as_another_dtype() {
    let view = |base: Value<Tensor>, dtype| call("aten.view.dtype", &[base, Value::DType(dtype)]);
    let bytes = view(longs(&[258, -1], &[2]), DType::UInt8).unwrap().remove(0);
    assert_eq!(bytes.to_vec::<u8>().unwrap(), [2, 1, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let back = view(Value::Tensor(bytes), DType::Int64).unwrap();
    assert_eq!(back[0].to_vec::<i64>().unwrap(), [258, -1]);
    let problem = view(matrix(), DType::Float64).unwrap_err();
    let words = "self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 3";
    assert_eq!(problem.message(), words);
}

#[test]
fn a_view_that_cannot_be_is_refused_and_a_reshape_copies() {
    let turned = call("aten.t.default", &[matrix()]).unwrap().remove(0);
    refused(
        "aten.view.default",
        &[Value::Tensor(turned.clone()), int_list(&[6])],
        Code::ShapeMismatch,
        "Use .reshape(",
    );
    let flat = call("aten.reshape.default", &[Value::Tensor(turned.clone()), int_list(&[-1])]).unwrap().remove(0);
    assert_eq!(flat.to_vec::<f32>().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert!(!flat.storage().is_same(turned.storage()));
    refused("aten.view.default", &[matrix(), int_list(&[-1, -1])], Code::InvalidArgument, "only one dimension can be");
    refused(
        "aten.view.default",
        &[matrix(), int_list(&[4, -1])],
        Code::ShapeMismatch,
        "shape '[4, -1]' is invalid for",
    );
}

fn int_list(values: &[i64]) -> Value<Tensor> {
    Value::ints(values)
}

#[test]
fn positions_outside_are_refused_in_the_words_of_pytorch() {
    let far = || longs(&[0, 2], &[2]);
    let out = Code::IndexOutOfRange;
    let words = "index 2 is out of bounds for dimension 0 with size 2";
    refused("aten.index.Tensor", &[matrix(), Value::List(vec![far()])], out, words);
    refused("aten.gather.default", &[matrix(), int(0), longs(&[2], &[1, 1])], out, words);
    refused("aten.index_fill.int_Scalar", &[matrix(), int(0), far(), Value::Float(1.0)], out, words);
    refused("aten.index_add.default", &[matrix(), int(0), far(), matrix()], out, words);
    refused("aten.index_select.default", &[matrix(), int(0), far()], out, "index out of range in self");
    refused("aten.embedding.default", &[matrix(), longs(&[-1], &[1])], out, "index out of range in self");
    refused(
        "aten.select.int",
        &[matrix(), int(0), int(2)],
        out,
        "select(): index 2 out of range for tensor of size [2, 3]",
    );
    refused(
        "aten.take.default",
        &[matrix(), longs(&[6], &[1])],
        out,
        "tried to access index 6 on a tensor of 6 elements",
    );
    let mask = Value::Tensor(Tensor::zeros(DType::Bool, &[3]).unwrap());
    refused("aten.index.Tensor", &[matrix(), Value::List(vec![mask])], out, "The shape of the mask [3] at index 0");
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let wrong = Code::ShapeMismatch;
    let cat = |other: Value<Tensor>| [Value::List(vec![matrix(), other])];
    refused(
        "aten.cat.default",
        &cat(floats(&[0.0], &[1, 1])),
        wrong,
        "Sizes of tensors must match except in dimension 0",
    );
    refused("aten.cat.default", &cat(floats(&[0.0], &[1])), wrong, "Tensors must have same number of dimensions");
    refused("aten.cat.default", &[Value::List(vec![])], Code::InvalidArgument, "expected a non-empty list of Tensors");
    refused("aten.expand.default", &[matrix(), int_list(&[4, 3])], wrong, "must match the existing size (2)");
    refused(
        "aten.reflection_pad1d.default",
        &[matrix(), int_list(&[3, 0])],
        wrong,
        "Argument #4: Padding size should be less",
    );
    refused(
        "aten.slice_scatter.default",
        &[matrix(), matrix(), int(0), int(0), int(1)],
        wrong,
        "expected src to have a size",
    );
    refused(
        "aten.as_strided.default",
        &[matrix(), int_list(&[7]), int_list(&[1])],
        Code::ViewOutOfBounds,
        "leaves its storage",
    );
}

#[test]
fn empty_vectors_join_everything() {
    let empty = floats(&[], &[0]);
    let joined = call("aten.cat.default", &[Value::List(vec![empty, matrix()]), int(1)]).unwrap();
    assert_eq!(joined[0].sizes(), [2, 3]);
    let mixed = call("aten.cat.default", &[Value::List(vec![longs(&[7], &[1]), floats(&[0.5], &[1])])]).unwrap();
    assert_eq!(mixed[0].to_vec::<f32>().unwrap(), [7.0, 0.5]);
}

#[test]
fn masks_pick_what_is_true() {
    let mask = || call("aten.gt.Scalar", &[matrix(), Value::Float(2.5)]).unwrap().remove(0);
    let picked = call("aten.index.Tensor", &[matrix(), Value::List(vec![Value::Tensor(mask())])]).unwrap();
    assert_eq!(picked[0].to_vec::<f32>().unwrap(), [3.0, 4.0, 5.0]);
    let put = call(
        "aten.index_put.default",
        &[matrix(), Value::List(vec![Value::Tensor(mask())]), floats(&[9.0], &[]), Value::Bool(false)],
    );
    assert_eq!(put.unwrap()[0].to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 9.0, 9.0, 9.0]);
}

#[test]
fn what_is_written_in_place_is_seen_through_other_views() {
    let base = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], &[2, 2]).unwrap();
    let row = base.as_strided(&[2], &[1], 2).unwrap();
    let args = [Value::Tensor(row), Value::List(vec![longs(&[-1], &[1])]), floats(&[8.0], &[]), Value::Bool(true)];
    call("aten.index_put_.default", &args).unwrap();
    assert_eq!(base.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 11.0]);
}

/// Values that torch 2.13 gives.
#[test]
fn tensors_of_other_dtypes_are_equal_by_value() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let full = |dtype, value| Value::Tensor(Tensor::full(dtype, &[2], value).unwrap());
    let equal = |a: (DType, Scalar), b: (DType, Scalar)| {
        let results = executor.call("aten.equal.default", &[full(a.0, a.1), full(b.0, b.1)], &[]).unwrap();
        matches!(results[..], [Value::Bool(true)])
    };
    let (one, tenth) = (Scalar::Int(1), Scalar::Float(0.1));
    assert!(equal((DType::Bool, one), (DType::Float32, one)));
    assert!(!equal((DType::Float16, Scalar::Float(1.5)), (DType::Int64, one)));
    assert!(!equal((DType::Float32, tenth), (DType::Float64, tenth)));
}
