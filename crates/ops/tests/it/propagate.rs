//! Propagation without data: aliasing, new symbols, and what is refused.

use tracefx_core::{Code, DType};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Output, Propagation, Symbols, Value, registry};
use tracefx_sym::{ShapeEnv, SymBool, SymInt, Symbol, ValueRange};

fn size(name: &str) -> SymInt {
    Symbol::from_name(name).into()
}

fn tensor(sizes: &[SymInt]) -> Value<TensorMeta> {
    Value::Tensor(TensorMeta::contiguous(DType::Float32, sizes.to_vec()))
}

fn infer(symbols: &Symbols, op: &str, args: &[Value<TensorMeta>]) -> Vec<Output> {
    let shapes = Propagation::new(registry(), symbols);
    let args = shapes.bind(op, args, &[]).unwrap();
    shapes.infer(&args).unwrap()
}

#[track_caller]
fn refused(op: &str, args: &[Value<TensorMeta>]) -> Code {
    let symbols = Symbols::default();
    let problem = Propagation::new(registry(), &symbols).call(op, args, &[]).unwrap_err();
    assert!(problem.to_string().contains(op), "{problem} names the operator");
    problem.code()
}

#[test]
fn results_tell_whose_storage_they_look_at() {
    let x = tensor(&[size("s0"), 4.into(), 6.into()]);
    let symbols = Symbols::default();
    let view = infer(&symbols, "aten.transpose.int", &[x.clone(), Value::int(0), Value::int(1)]);
    assert!(matches!(&view[..], [Output::View { arg: 0, item: 0, .. }]));
    // Through a decomposition, and out of a list.
    let view = infer(&symbols, "aten.narrow.default", &[x.clone(), Value::int(1), Value::int(0), Value::int(2)]);
    assert!(matches!(&view[..], [Output::View { arg: 0, item: 0, meta }] if meta.sizes[1] == 2));
    let pieces = infer(&symbols, "aten.tensor_split.sections", &[x.clone(), Value::int(2), Value::int(1)]);
    let [Output::List(pieces)] = &pieces[..] else { panic!("a list") };
    assert!(pieces.iter().all(|it| matches!(it, Output::View { arg: 0, .. })));
    let same = infer(&symbols, "aten.add_.Tensor", &[x.clone(), x.clone()]);
    assert_eq!(same, [Output::Same(0)]);
    let new = infer(&symbols, "aten.add.Tensor", &[x.clone(), x]);
    assert!(matches!(&new[..], [Output::Tensor(_)]));
}

#[test]
fn what_the_data_decides_gets_new_symbols() {
    let mut env = ShapeEnv::new();
    env.constrain(&Symbol::from_name("u3"), ValueRange::at_least(0)).unwrap();
    let symbols = Symbols::new(env);
    let shapes = Propagation::new(registry(), &symbols);
    let x = tensor(&[size("s0"), 3.into()]);
    let call = |op: &str, args: &[Value<TensorMeta>]| shapes.call(op, args, &[]).unwrap();
    let Value::Tensor(positions) = call("aten.nonzero.default", std::slice::from_ref(&x)).remove(0) else { panic!() };
    assert_eq!(positions.sizes, [size("u4"), 2.into()]);
    assert_eq!(positions.strides, [1.into(), size("u4")]);
    let picked = call(
        "aten.masked_select.default",
        &[x.clone(), Value::Tensor(TensorMeta::contiguous(DType::Bool, vec![size("s0"), 3.into()]))],
    );
    assert_eq!(picked, [tensor(&[size("u5")])]);
    let int = Value::Tensor(TensorMeta::contiguous(DType::Int64, Vec::new()));
    let bool = Value::Tensor(TensorMeta::contiguous(DType::Bool, Vec::new()));
    assert_eq!(call("aten.item.default", &[int]), [Value::Int(size("u6"))]);
    assert_eq!(call("aten.item.default", &[bool]), [Value::SymBool(SymBool::eq(&size("u7"), &1.into()))]);
    let float = call("aten._local_scalar_dense.default", &[tensor(&[])]).remove(0);
    assert!(matches!(&float, Value::SymFloat(it) if it.to_string() == "zuf0"));
    // A float that is not known still promotes as a float does.
    assert_eq!(call("aten.mul.Tensor", &[x.clone(), float]), [x]);
}

#[test]
fn new_symbols_are_numbered_beside_one_of_the_largest_number() {
    let mut env = ShapeEnv::new();
    for name in ["u18446744073709551614", "zuf18446744073709551614"] {
        env.constrain(&Symbol::from_name(name), ValueRange::UNBOUNDED).unwrap();
    }
    let symbols = Symbols::new(env);
    assert_eq!([symbols.new_size(), symbols.new_size()], [size("u0"), size("u1")]);
}

#[test]
fn a_size_that_is_not_known_broadcasts_as_one_that_is_not_one() {
    let symbols = Symbols::default();
    let sizes = |a: SymInt, b: SymInt| match &infer(&symbols, "aten.add.Tensor", &[tensor(&[a]), tensor(&[b])])[0] {
        Output::Tensor(meta) => meta.sizes[0].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(sizes(size("s0"), 1.into()), size("s0"));
    assert_eq!(sizes(size("s0"), size("s0")), size("s0"));
    assert_eq!(sizes(size("u0"), 4.into()), 4);
    let beyond = tensor(&[size("s0") + 5]);
    assert_eq!(refused("aten.add.Tensor", &[beyond, tensor(&[4.into()])]), Code::NotImplemented);
}

#[test]
fn refusals_are_typed_and_name_the_operator() {
    let x = tensor(&[size("s0"), 3.into()]);
    assert_eq!(refused("aten.nothing.default", &[]), Code::NotImplemented);
    assert_eq!(
        refused("aten.transpose.int", &[x.clone(), Value::Int(size("u0")), Value::int(1)]),
        Code::NotImplemented
    );
    let sections = Value::Tensor(TensorMeta::contiguous(DType::Int64, Vec::new()));
    assert_eq!(refused("aten.tensor_split.tensor_indices_or_sections", &[x.clone(), sections]), Code::NotImplemented);
    let ints = Value::Tensor(TensorMeta::contiguous(DType::Int64, vec![3.into()]));
    assert_eq!(refused("aten.add_.Tensor", &[ints, tensor(&[3.into()])]), Code::DTypeMismatch);
    let wide = tensor(&[2.into(), 3.into()]);
    assert_eq!(refused("aten.add_.Tensor", &[tensor(&[1.into()]), wide]), Code::ShapeMismatch);
}

/// What two layers give over so many steps, in sizes and strides.
fn recurrent(op: &str, steps: SymInt, is_bidirectional: bool, is_batch_first: bool) -> Vec<(Vec<SymInt>, Vec<SymInt>)> {
    let (batch, n_directions) = (size("s9"), if is_bidirectional { 2 } else { 1 });
    let n_gates = if op.contains("lstm") { 4 } else { 1 };
    let sizes = if is_batch_first { [batch.clone(), steps, 4.into()] } else { [steps, batch.clone(), 4.into()] };
    let state = tensor(&[(2 * n_directions).into(), batch, 3.into()]);
    let layer = |width: i64| {
        let of = |sizes: &[i64]| tensor(&sizes.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        let one = [of(&[3 * n_gates, width]), of(&[3 * n_gates, 3]), of(&[3 * n_gates]), of(&[3 * n_gates])];
        vec![one; n_directions as usize].concat()
    };
    let params = [layer(4), layer(3 * n_directions)].concat();
    let states = if n_gates == 4 { Value::List(vec![state.clone(), state]) } else { state };
    let flags = [Value::Float(0.0), Value::Bool(false), Value::Bool(is_bidirectional), Value::Bool(is_batch_first)];
    let args = [vec![tensor(&sizes), states, Value::List(params), Value::Bool(true), Value::int(2)], flags.to_vec()];
    let outputs = infer(&Symbols::default(), op, &args.concat());
    let meta =
        |it: &Output| if let Output::Tensor(it) = it { (it.sizes.clone(), it.strides.clone()) } else { panic!() };
    outputs.iter().map(meta).collect()
}

#[test]
fn recurrent_layers_over_steps_that_are_not_known_are_as_over_known_ones() {
    for op in ["aten.lstm.input", "aten.rnn_tanh.input"] {
        for (is_bidirectional, is_batch_first) in [(false, false), (true, false), (false, true), (true, true)] {
            let run = |steps: SymInt| recurrent(op, steps, is_bidirectional, is_batch_first);
            let at = |it: &SymInt| it.substitute(&|it| (it.name() == "s1").then(|| 5.into()));
            let all = |it: &[SymInt]| it.iter().map(at).collect::<Vec<_>>();
            let found: Vec<_> = run(size("s1")).iter().map(|(a, b)| (all(a), all(b))).collect();
            assert_eq!(found, run(5.into()), "{op}, bidirectional {is_bidirectional}, batch first {is_batch_first}");
        }
    }
}

#[test]
fn recurrent_layers_of_any_number_of_steps_refuse_what_does_not_fit() {
    let x = |sizes: [SymInt; 3]| tensor(&sizes);
    let call = |input: Value<TensorMeta>, batch: i64| {
        let of = |sizes: &[i64]| tensor(&sizes.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        let state = of(&[1, batch, 3]);
        let flags = [Value::int(1), Value::Float(0.0), Value::Bool(false), Value::Bool(false), Value::Bool(false)];
        let params = Value::List(vec![of(&[3, 4]), of(&[3, 3])]);
        refused("aten.rnn_relu.input", &[vec![input, state, params, Value::Bool(false)], flags.to_vec()].concat())
    };
    assert_eq!(call(x([size("s1"), 2.into(), 5.into()]), 2), Code::NotImplemented);
    assert_eq!(call(x([size("s1"), 3.into(), 4.into()]), 2), Code::NotImplemented);
}
