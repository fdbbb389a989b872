//! Shape rules of views and joins with sizes that are not known.

use tracefx_core::DType;
use tracefx_ir::TensorMeta;
use tracefx_ops::{Args, Infer, Output, Propagation, Symbols, Value, bind, registry};
use tracefx_sym::{SymInt, Symbol};

fn size(name: &str) -> SymInt {
    SymInt::from(Symbol::size(name))
}

fn tensor(sizes: Vec<SymInt>) -> Value<TensorMeta> {
    Value::Tensor(TensorMeta::contiguous(DType::Float32, sizes))
}

fn list(sizes: Vec<SymInt>) -> Value<TensorMeta> {
    Value::List(sizes.into_iter().map(Value::Int).collect())
}

fn infer(op: &str, args: &[Value<TensorMeta>]) -> Vec<Output> {
    let op = registry().get(op).unwrap();
    let Infer::Rule(rule) = op.def.infer else { panic!("{} has a rule", op.name) };
    rule(&Args::new(op, bind(op, args, &[]).unwrap())).unwrap()
}

#[track_caller]
fn check(op: &str, args: &[Value<TensorMeta>], expected: &str) {
    let describe = |meta: &TensorMeta| {
        let text = |it: &[SymInt]| it.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("[{}] strides [{}] offset {}", text(&meta.sizes), text(&meta.strides), meta.storage_offset)
    };
    let outputs = infer(op, args);
    let got: Vec<String> = outputs
        .iter()
        .flat_map(|it| if let Output::List(items) = it { items.clone() } else { vec![it.clone()] })
        .map(|it| match it {
            Output::View { meta, .. } => format!("view {}", describe(&meta)),
            Output::Tensor(meta) => describe(&meta),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(got.join("; "), expected);
}

#[test]
fn slices_of_unknown_sizes_stay_inside() {
    let x = || tensor(vec![size("s0"), 4.into()]);
    check(
        "aten.slice.Tensor",
        &[x(), Value::int(0), Value::int(0), Value::int(i64::MAX)],
        "view [s0, 4] strides [4, 1] offset 0",
    );
    check("aten.slice.Tensor", &[x(), Value::int(1), Value::int(-2)], "view [s0, 2] strides [4, 1] offset 2");
    check("aten.select.int", &[x(), Value::int(0), Value::int(-1)], "view [4] strides [1] offset 4*s0 - 4");
    check(
        "aten.split_with_sizes.default",
        &[x(), list(vec![size("s0") - 1, 1.into()])],
        "view [s0 - 1, 4] strides [4, 1] offset 0; view [1, 4] strides [4, 1] offset 4*s0 - 4",
    );
}

#[test]
fn starts_that_are_negative_for_all_sizes_count_from_the_end() {
    let start = size("s0").floor_div(&2.into()) * -1;
    let args = [tensor(vec![size("s0"), 4.into()]), Value::int(0), Value::Int(start)];
    let symbols = Symbols::of(&args);
    let results = Propagation::new(registry(), &symbols).call("aten.slice.Tensor", &args, &[]).unwrap();
    let [Value::Tensor(half)] = results.as_slice() else { panic!("a tensor") };
    assert_eq!(half.sizes, [size("s0").floor_div(&2.into()), 4.into()]);
}

#[test]
fn views_of_unknown_sizes_have_the_strides_of_known_ones() {
    let x = || tensor(vec![size("s0"), 3.into(), 4.into()]);
    check("aten.view.default", &[x(), list(vec![size("s0"), 12.into()])], "view [s0, 12] strides [12, 1] offset 0");
    check("aten.view.default", &[x(), list(vec![(-1).into(), 4.into()])], "view [3*s0, 4] strides [4, 1] offset 0");
    check("aten.view.default", &[x(), list(vec![size("s0") * 6, 2.into()])], "view [6*s0, 2] strides [2, 1] offset 0");
    check(
        "aten.expand.default",
        &[tensor(vec![1.into(), 4.into()]), list(vec![size("s0"), (-1).into()])],
        "view [s0, 4] strides [0, 1] offset 0",
    );
    check("aten.unsqueeze.default", &[x(), Value::int(0)], "view [1, s0, 3, 4] strides [12*s0, 12, 4, 1] offset 0");
    check("aten.squeeze.default", &[tensor(vec![1.into(), size("s0")])], "view [s0] strides [1] offset 0");
    check("aten.permute.default", &[x(), Value::ints(&[2, 0, 1])], "view [4, s0, 3] strides [1, 12, 4] offset 0");
}

#[test]
fn a_transposed_tensor_of_unknown_size_is_copied_by_reshape() {
    let turned = TensorMeta {
        sizes: vec![4.into(), size("s0")],
        strides: vec![1.into(), 4.into()],
        ..TensorMeta::contiguous(DType::Float32, vec![])
    };
    check("aten.reshape.default", &[Value::Tensor(turned), Value::ints(&[-1])], "[4*s0] strides [1] offset 0");
}

#[test]
fn joins_add_unknown_sizes() {
    let parts = vec![tensor(vec![size("s0"), 4.into()]), tensor(vec![size("s1"), 4.into()])];
    check("aten.cat.default", &[Value::List(parts)], "[s0 + s1, 4] strides [4, 1] offset 0");
    check(
        "aten.repeat.default",
        &[tensor(vec![size("s0")]), Value::ints(&[3, 2])],
        "[3, 2*s0] strides [2*s0, 1] offset 0",
    );
    check(
        "aten.constant_pad_nd.default",
        &[tensor(vec![size("s0")]), Value::ints(&[1, 2])],
        "[s0 + 3] strides [1] offset 0",
    );
}
