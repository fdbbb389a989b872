//! Sizes, strides and offsets of what moves or views data, as PyTorch gives them for a row-major, a permuted and a
//! channels-last input: the recorded cases compare values alone.

use tracefx_core::{DType, Tensor};
use tracefx_exec::Executor;
use tracefx_ops::{Value, registry};

type Layout<'a> = (&'a [usize], &'a [usize], usize);

fn int(value: i64) -> Value<Tensor> {
    Value::int(value)
}

fn ints(values: &[i64]) -> Value<Tensor> {
    Value::ints(values)
}

fn index(values: &[i64]) -> Value<Tensor> {
    Value::Tensor(Tensor::from_slice(values, &[values.len()]).unwrap())
}

fn list(values: &[Value<Tensor>]) -> Value<Tensor> {
    Value::List(values.to_vec())
}

#[track_caller]
fn check(op: &str, args: &[Value<Tensor>], expected: [Layout<'_>; 3]) {
    let row_major = Tensor::zeros(DType::Float32, &[2, 3, 4]).unwrap();
    let permuted = row_major.permuted(&[2, 0, 1]);
    let channels_last = Tensor::zeros(DType::Float32, &[2, 4, 5, 3]).unwrap().permuted(&[0, 3, 1, 2]);
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    for (base, expected) in [row_major, permuted, channels_last].into_iter().zip(expected) {
        let mut all = vec![Value::Tensor(base.clone())];
        all.extend_from_slice(args);
        let results = executor.call(op, &all, &[]).unwrap();
        let Value::Tensor(got) = &results[0] else { panic!("{op} gives a tensor") };
        // A size of one has no next element, so that its stride tells nothing.
        let strides = |sizes: &[usize], strides: &[usize]| -> Vec<usize> {
            sizes.iter().zip(strides).filter(|it| *it.0 != 1).map(|it| *it.1).collect()
        };
        assert_eq!(
            (got.sizes(), strides(got.sizes(), got.strides()), got.offset()),
            (expected.0, strides(expected.0, expected.1), expected.2),
            "{op} of {base:?}"
        );
    }
}

#[test]
#[rustfmt::skip]
fn views_have_the_strides_of_pytorch() {
    check("aten.select.int", &[int(1), int(-1)], [(&[2, 4], &[12, 1], 8), (&[4, 3], &[1, 4], 12), (&[2, 4, 5], &[60, 15, 3], 2)]);
    check("aten.slice.Tensor", &[int(-1), int(1), int(9223372036854775807), int(2)], [(&[2, 3, 2], &[12, 4, 2], 1), (&[4, 2, 1], &[1, 12, 8], 4), (&[2, 3, 4, 2], &[60, 1, 15, 6], 3)]);
    check("aten.unfold.default", &[int(0), int(2), int(1)], [(&[1, 3, 4, 2], &[12, 4, 1, 12], 0), (&[3, 2, 3, 2], &[1, 12, 4, 1], 0), (&[1, 3, 4, 5, 2], &[60, 1, 15, 3, 60], 0)]);
    check("aten.diagonal.default", &[int(-1), int(0), int(2)], [(&[3, 1], &[4, 13], 12), (&[2, 3], &[12, 5], 1), (&[3, 5, 1], &[1, 3, 75], 60)]);
    check("aten.unsqueeze.default", &[int(1)], [(&[2, 1, 3, 4], &[12, 12, 4, 1], 0), (&[4, 1, 2, 3], &[1, 24, 12, 4], 0), (&[2, 1, 3, 4, 5], &[60, 3, 1, 15, 3], 0)]);
    check("aten.movedim.int", &[int(0), int(-1)], [(&[3, 4, 2], &[4, 1, 12], 0), (&[2, 3, 4], &[12, 4, 1], 0), (&[3, 4, 5, 2], &[1, 15, 3, 60], 0)]);
    check("aten.moveaxis.intlist", &[ints(&[0, 1]), ints(&[1, 0])], [(&[3, 2, 4], &[4, 12, 1], 0), (&[2, 4, 3], &[12, 1, 4], 0), (&[3, 2, 4, 5], &[1, 60, 15, 3], 0)]);
    check("aten.swapaxes.default", &[int(0), int(1)], [(&[3, 2, 4], &[4, 12, 1], 0), (&[2, 4, 3], &[12, 1, 4], 0), (&[3, 2, 4, 5], &[1, 60, 15, 3], 0)]);
    check("aten.adjoint.default", &[], [(&[2, 4, 3], &[12, 1, 4], 0), (&[4, 3, 2], &[1, 4, 12], 0), (&[2, 3, 5, 4], &[60, 1, 3, 15], 0)]);
    check("aten.flatten.using_ints", &[int(1)], [(&[2, 12], &[12, 1], 0), (&[4, 6], &[1, 4], 0), (&[2, 60], &[60, 1], 0)]);
    check("aten.view.dtype", &[Value::DType(DType::Int32)], [(&[2, 3, 4], &[12, 4, 1], 0), (&[4, 2, 3], &[1, 12, 4], 0), (&[2, 3, 4, 5], &[60, 1, 15, 3], 0)]);
}

#[test]
#[rustfmt::skip]
fn copies_lie_in_memory_as_those_of_pytorch() {
    check("aten.flip.default", &[ints(&[0])], [(&[2, 3, 4], &[12, 4, 1], 0), (&[4, 2, 3], &[1, 12, 4], 0), (&[2, 3, 4, 5], &[60, 1, 15, 3], 0)]);
    check("aten.roll.default", &[ints(&[1]), ints(&[0])], [(&[2, 3, 4], &[12, 4, 1], 0), (&[4, 2, 3], &[6, 3, 1], 0), (&[2, 3, 4, 5], &[60, 1, 15, 3], 0)]);
    check("aten.roll.default", &[ints(&[1])], [(&[2, 3, 4], &[12, 4, 1], 0), (&[4, 2, 3], &[6, 3, 1], 0), (&[2, 3, 4, 5], &[60, 20, 5, 1], 0)]);
    check("aten.rot90.default", &[int(1)], [(&[3, 2, 4], &[4, 12, 1], 0), (&[2, 4, 3], &[12, 1, 4], 0), (&[3, 2, 4, 5], &[1, 60, 15, 3], 0)]);
    check("aten.constant_pad_nd.default", &[ints(&[1, 1])], [(&[2, 3, 6], &[18, 6, 1], 0), (&[4, 2, 5], &[10, 5, 1], 0), (&[2, 3, 4, 7], &[84, 1, 21, 3], 0)]);
    check("aten.constant_pad_nd.default", &[ints(&[-1, -1])], [(&[2, 3, 2], &[6, 2, 1], 0), (&[4, 2, 1], &[1, 4, 4], 0), (&[2, 3, 4, 3], &[36, 1, 9, 3], 0)]);
    check("aten.index_select.default", &[int(0), index(&[0])], [(&[1, 3, 4], &[12, 4, 1], 0), (&[1, 2, 3], &[6, 3, 1], 0), (&[1, 3, 4, 5], &[60, 20, 5, 1], 0)]);
    check("aten.index.Tensor", &[list(&[index(&[0])])], [(&[1, 3, 4], &[12, 4, 1], 0), (&[1, 2, 3], &[6, 3, 1], 0), (&[1, 3, 4, 5], &[60, 1, 15, 3], 0)]);
    check("aten.index.Tensor", &[list(&[Value::None, index(&[0, 1])])], [(&[2, 2, 4], &[8, 4, 1], 0), (&[4, 2, 3], &[1, 4, 8], 0), (&[2, 2, 4, 5], &[40, 20, 5, 1], 0)]);
    check("aten.index.Tensor", &[list(&[index(&[0, 1]), Value::None, index(&[0, 1])])], [(&[2, 3], &[3, 1], 0), (&[2, 2], &[2, 1], 0), (&[2, 3, 5], &[15, 1, 3], 0)]);
    check("aten.index_fill.int_Scalar", &[int(0), index(&[0]), Value::Float(1.0)], [(&[2, 3, 4], &[12, 4, 1], 0), (&[4, 2, 3], &[1, 12, 4], 0), (&[2, 3, 4, 5], &[60, 1, 15, 3], 0)]);
    check("aten.sort.default", &[int(0)], [(&[2, 3, 4], &[12, 4, 1], 0), (&[4, 2, 3], &[1, 12, 4], 0), (&[2, 3, 4, 5], &[60, 1, 15, 3], 0)]);
    check("aten.topk.default", &[int(1), int(0)], [(&[1, 3, 4], &[12, 4, 1], 0), (&[1, 2, 3], &[6, 3, 1], 0), (&[1, 3, 4, 5], &[60, 20, 5, 1], 0)]);
    check("aten.select_copy.int", &[int(0), int(1)], [(&[3, 4], &[4, 1], 0), (&[2, 3], &[3, 1], 0), (&[3, 4, 5], &[20, 5, 1], 0)]);
}
