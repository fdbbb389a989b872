//! Groups of pointwise operators: what is one step and what is not, and that the bits stay.

use proptest::prelude::*;
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{DType, Tensor};
use tracefx_cpu::kernels;
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, TensorMeta};
use tracefx_ops::{Value, registry};
use tracefx_plan::{Action, Fused, Plan};

fn aten(g: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    g.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
}

/// A graph with so many inputs.
fn graph(n: usize, build: impl FnOnce(&mut Graph, &[NodeId]) -> Vec<NodeId>) -> GraphModule {
    let mut g = Graph::new();
    let inputs: Vec<NodeId> = (0..n).map(|it| g.placeholder(&format!("x{it}"))).collect();
    let outputs = build(&mut g, &inputs);
    g.output(Arg::Tuple(outputs.into_iter().map(Arg::Node).collect()));
    GraphModule::new(g)
}

fn executor() -> Executor<'static> {
    Executor::new(registry(), kernels())
}

fn compiled(module: &GraphModule, inputs: &[Value<Tensor>]) -> Plan {
    let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let plan = plan(module, &metas, registry(), kernels()).unwrap();
    compile(plan, registry(), kernels(), Precision::Strict)
}

fn n_loops(plan: &Plan) -> usize {
    plan.steps.iter().filter(|it| matches!(it.action, Action::Fused(Fused::Loop(_)))).count()
}

/// The elements as bits; every NaN is the same.
fn bits(value: &Value<Tensor>) -> Vec<(DType, Vec<usize>, Vec<u64>)> {
    let mut res = Vec::new();
    value.for_each_tensor(&mut |it| {
        let nan = |it: f64| if it.is_nan() { f64::NAN.to_bits() } else { it.to_bits() };
        let bits = match it.dtype() {
            dtype if dtype.is_complex() => {
                let parts = it.to_bytes().unwrap();
                parts.iter().map(|it| u64::from(*it)).collect()
            }
            _ => {
                let call = executor().call(
                    "aten._to_copy.default",
                    &[Value::Tensor(it.clone())],
                    &[("dtype".into(), Value::DType(DType::Float64))],
                );
                match &call.unwrap()[..] {
                    [Value::Tensor(it)] => it.to_vec::<f64>().unwrap().into_iter().map(nan).collect(),
                    other => panic!("{other:?}"),
                }
            }
        };
        res.push((it.dtype(), it.sizes().to_vec(), bits));
    });
    res
}

/// The compiled plan, which gives what the interpreter gives, twice, and leaves in the inputs what it leaves there.
#[track_caller]
fn check(module: &GraphModule, make_inputs: &dyn Fn() -> Vec<Value<Tensor>>) -> Plan {
    let (expected_inputs, inputs) = (make_inputs(), make_inputs());
    let interpreter = Interpreter::new(module, executor());
    let compiled = compiled(module, &inputs);
    compiled.validate().unwrap();
    let mut bound = BoundPlan::new(Arc::new(compiled.clone()), registry(), kernels()).unwrap();
    for _ in 0..2 {
        let wanted = interpreter.run(&expected_inputs).unwrap();
        let given = bound.run(executor(), &inputs, LOOP_STEPS, &mut |_, _| Ok(())).unwrap();
        assert_eq!(bits(&given), bits(&wanted), "{compiled}");
        assert_eq!(bits(&Value::List(inputs.clone())), bits(&Value::List(expected_inputs.clone())), "{compiled}");
    }
    compiled
}

fn seq(sizes: &[usize]) -> Value<Tensor> {
    let n: usize = sizes.iter().product();
    Value::Tensor(Tensor::from_slice(&(0..n).map(|it| it as f32 / 3.0 - 2.0).collect::<Vec<_>>(), sizes).unwrap())
}

#[track_caller]
fn check_text(module: &GraphModule, make_inputs: &dyn Fn() -> Vec<Value<Tensor>>, text: &str) {
    assert_eq!(check(module, make_inputs).to_string(), text);
}

#[test]
fn a_chain_of_ten_operators_is_one_step() {
    let module = graph(2, |g, x| {
        let mut last = x[0];
        for op in ["relu", "exp", "sigmoid", "tanh", "neg", "abs", "sqrt", "log1p", "gelu"] {
            last = aten(g, &format!("{op}.default"), vec![last.into()]);
        }
        vec![aten(g, "add.Tensor", vec![last.into(), x[1].into()])]
    });
    check_text(
        &module,
        &|| vec![seq(&[2, 3]), seq(&[3])],
        "plan(%0: f32[2, 3], %1: f32[3]):
    %11: f32[2, 3] = loop([2, 3]: a = aten.relu.default(%0); b = aten.exp.default(a); c = aten.sigmoid.default(b); \
         d = aten.tanh.default(c); e = aten.neg.default(d); f = aten.abs.default(e); g = aten.sqrt.default(f); \
         h = aten.log1p.default(g); i = aten.gelu.default(h, \"none\"); j = aten.add.Tensor(i, %1, 1); store j -> %11)  \
         # add_tensor
    return (%11,)",
    );
}

#[test]
fn what_others_read_is_stored_too() {
    let module = graph(1, |g, x| {
        let a = aten(g, "exp.default", vec![x[0].into()]);
        let b = aten(g, "neg.default", vec![a.into()]);
        let c = aten(g, "mul.Tensor", vec![a.into(), b.into()]);
        let sum = aten(g, "sum.default", vec![b.into()]);
        vec![a, c, sum]
    });
    check_text(
        &module,
        &|| vec![seq(&[5])],
        "plan(%0: f32[5]):
    %1: f32[5], %2: f32[5], %3: f32[5] = loop([5]: a = aten.exp.default(%0); b = aten.neg.default(a); \
         c = aten.mul.Tensor(a, b); store a -> %1; store b -> %2; store c -> %3)  # mul_tensor
    %4: f32[] = aten.sum.default(%2, None)  # sum_default
    return (%1, %3, %4)",
    );
}

#[test]
fn a_result_that_is_read_in_between_is_not_moved() {
    let module = graph(1, |g, x| {
        let a = aten(g, "exp.default", vec![x[0].into()]);
        let sum = aten(g, "sum.default", vec![a.into()]);
        vec![aten(g, "div.Tensor", vec![a.into(), sum.into()])]
    });
    // Each is a loop by itself.
    assert_eq!(n_loops(&check(&module, &|| vec![seq(&[5])])), 2);
}

#[test]
fn a_conversion_is_an_instruction_and_a_clone_is_none() {
    let module = graph(2, |g, x| {
        let a = aten(g, "clone.default", vec![x[0].into()]);
        let b = aten(g, "mul.Tensor", vec![a.into(), x[1].into()]);
        let c = aten(g, "gt.Scalar", vec![b.into(), Arg::Int(1)]);
        vec![aten(g, "where.self", vec![c.into(), b.into(), x[1].into()])]
    });
    let half = || {
        let Value::Tensor(it) = seq(&[4, 1]) else { panic!() };
        let it = executor().call(
            "aten._to_copy.default",
            &[Value::Tensor(it)],
            &[("dtype".into(), Value::DType(DType::Float16))],
        );
        it.unwrap().remove(0)
    };
    check_text(
        &module,
        &|| vec![seq(&[4, 3]), half()],
        "plan(%0: f32[4, 3], %1: f16[4, 1]):
    %5: f32[4, 3] = loop([4, 3]: a = aten.mul.Tensor(%0, %1); b = aten.gt.Scalar(a, 1); \
         c = aten.where.self(b, a, %1); store c -> %5)  # where_self
    return (%5,)",
    );
}

#[test]
fn operators_in_place_copy_nothing() {
    let module = graph(2, |g, x| {
        let a = aten(g, "mm.default", vec![x[0].into(), x[1].into()]);
        let b = aten(g, "relu_.default", vec![a.into()]);
        let c = aten(g, "mm.default", vec![b.into(), x[1].into()]);
        let d = aten(g, "add_.Tensor", vec![c.into(), a.into()]);
        let e = aten(g, "sigmoid.default", vec![d.into()]);
        vec![e, c]
    });
    check_text(
        &module,
        &|| vec![seq(&[3, 3]), seq(&[3, 3])],
        "plan(%0: f32[3, 3], %1: f32[3, 3]):
    %2: f32[3, 3] = aten.mm.default(%0, %1)  # mm_default
    %3: f32[3, 3] = loop([3, 3]: a = aten.relu.default(%2); store a -> %3)  # relu__default
    %4: f32[3, 3] = aten.mm.default(%7, %1)  # mm_default_1
    %5: f32[3, 3], %6: f32[3, 3] = loop([3, 3]: a = aten.add.Tensor(%4, %7, 1); b = aten.sigmoid.default(a); \
         store a -> %5; store b -> %6)  # sigmoid_default
    return (%6, %8)",
    );
    // Memory of whoever runs the plan may be that of other inputs too.
    let module = graph(2, |g, x| {
        let a = aten(g, "add_.Tensor", vec![x[0].into(), x[1].into()]);
        let b = aten(g, "mul_.Tensor", vec![a.into(), x[1].into()]);
        vec![aten(g, "neg.default", vec![b.into()])]
    });
    assert_eq!(n_loops(&check(&module, &|| vec![seq(&[3, 3]), seq(&[3])])), 3);
}

#[test]
fn a_slice_that_is_written_is_not_the_whole() {
    let module = graph(1, |g, x| {
        let a = aten(g, "exp.default", vec![x[0].into()]);
        for at in 0..2 {
            let row = aten(g, "select.int", vec![a.into(), Arg::Int(0), Arg::Int(at)]);
            let b = aten(g, "neg.default", vec![row.into()]);
            aten(g, "mul_.Tensor", vec![row.into(), b.into()]);
        }
        let b = aten(g, "neg.default", vec![a.into()]);
        vec![aten(g, "abs.default", vec![b.into()])]
    });
    check(&module, &|| vec![seq(&[3, 4])]);
}

const UNARY: &[&str] = &[
    "relu",
    "neg",
    "abs",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "tanh",
    "gelu",
    "silu",
    "hardswish",
    "hardsigmoid",
    "hardtanh",
    "leaky_relu",
    "elu",
    "softplus",
    "mish",
    "erf",
    "reciprocal",
    "square",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "logical_not",
    "sign",
    "isnan",
    "clone",
    "bitwise_not",
    "log1p",
    "expm1",
];
const BINARY: &[&str] = &[
    "add.Tensor",
    "sub.Tensor",
    "mul.Tensor",
    "div.Tensor",
    "maximum.default",
    "minimum.default",
    "pow.Tensor_Tensor",
    "eq.Tensor",
    "lt.Tensor",
    "ge.Tensor",
    "logical_and.default",
    "logical_xor.default",
    "fmod.Tensor",
    "atan2.default",
    "bitwise_and.Tensor",
    "remainder.Tensor",
    "floor_divide.default",
    "add_.Tensor",
    "mul_.Tensor",
];
const WITH_NUMBER: &[&str] = &[
    "add.Scalar",
    "mul.Scalar",
    "pow.Tensor_Scalar",
    "clamp_min.default",
    "gt.Scalar",
    "ne.Scalar",
    "div.Scalar",
    "leaky_relu.default",
    "fill_.Scalar",
    "sub_.Scalar",
];
const TERNARY: &[&str] = &["where.self", "lerp.Tensor", "addcmul.default", "addcdiv.default", "clamp.Tensor"];
const DTYPES: [DType; 8] = [
    DType::Float32,
    DType::Float32,
    DType::Float32,
    DType::Float64,
    DType::Float16,
    DType::BFloat16,
    DType::Int32,
    DType::Bool,
];
const SPECIAL: [f32; 10] = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, 3e38, -1.0, 2.5, 300.0];

/// An input: which dimensions it has, whether they are turned around, and its dtype.
#[derive(Clone, Copy, Debug)]
struct Input {
    kept: u8,
    is_turned: bool,
    dtype: usize,
}

/// An operator on values by number, those that are there modulo their number.
#[derive(Clone, Debug)]
struct Step {
    family: usize,
    op: usize,
    operands: [usize; 3],
    number: i64,
}

fn input() -> impl Strategy<Value = Input> {
    let kept = prop_oneof![3 => Just(7u8), 1 => any::<u8>()];
    let dtype = prop_oneof![2 => Just(0usize), 1 => 0..DTYPES.len()];
    (kept, any::<bool>(), dtype).prop_map(|(kept, is_turned, dtype)| Input { kept, is_turned, dtype })
}

fn step() -> impl Strategy<Value = Step> {
    (0..9usize, any::<usize>(), any::<[usize; 3]>(), -2..4i64).prop_map(|(family, op, mut operands, number)| {
        // The last values are read more than others.
        operands.iter_mut().for_each(|it| *it >>= *it % 3 * 20);
        Step { family, op, operands, number }
    })
}

fn tensor(it: Input, sizes: &[usize; 3], seed: usize) -> Tensor {
    let mut own: Vec<usize> = (0..3).map(|dim| if it.kept >> dim & 1 == 1 { sizes[dim] } else { 1 }).collect();
    own.drain(..(it.kept >> 3) as usize % 4);
    let mut reversed = own.clone();
    if it.is_turned {
        reversed.reverse();
    }
    let n: usize = own.iter().product();
    let number = |at: usize| match (at + seed) * 7919 % 23 {
        special @ 0..10 => SPECIAL[special],
        other => other as f32 / 4.0 - 3.0,
    };
    let dense = Value::Tensor(Tensor::from_slice(&(0..n).map(number).collect::<Vec<_>>(), &reversed).unwrap());
    let dtype = ("dtype".into(), Value::DType(DTYPES[it.dtype]));
    let dense = executor().call("aten._to_copy.default", &[dense], &[dtype]).unwrap().remove(0);
    let dims: Vec<i64> = (0..own.len() as i64).rev().collect();
    let turned = match it.is_turned {
        true => executor().call("aten.permute.default", &[dense, Value::ints(&dims)], &[]).unwrap().remove(0),
        false => dense,
    };
    match turned {
        Value::Tensor(it) => it,
        other => panic!("{other:?}"),
    }
}

/// The operator of a step, and its arguments after the operands.
fn call(step: &Step, n_values: usize) -> (String, Vec<usize>, Vec<Arg>) {
    let at = |k: usize| {
        n_values - 1 - step.operands[k] % n_values.min(if step.operands[k].is_multiple_of(2) { 3 } else { 100 })
    };
    let pick = |ops: &[&str]| ops[step.op % ops.len()].to_owned();
    match step.family {
        0..3 => (format!("{}.default", pick(UNARY)), vec![at(0)], vec![]),
        3..6 => (pick(BINARY), vec![at(0), at(1)], vec![]),
        6 | 7 => (
            pick(WITH_NUMBER),
            vec![at(0)],
            vec![if step.op.is_multiple_of(2) { Arg::Int(step.number) } else { Arg::Float(step.number as f64 / 2.0) }],
        ),
        _ => (pick(TERNARY), vec![at(0), at(1), at(2)], vec![]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_give_the_same_bits(
        sizes in prop_oneof![[0..4usize, 0..4usize, 0..6usize], Just([2, 3, 700]), Just([40, 30, 3]), Just([1, 9, 5000])],
        inputs in prop::collection::vec(input(), 1..4),
        steps in prop::collection::vec(step(), 1..16),
        given in any::<u16>(),
    ) {
        let make_inputs = || inputs.iter().enumerate().map(|(at, it)| Value::Tensor(tensor(*it, &sizes, at))).collect::<Vec<_>>();
        // What an operator refuses is left out.
        let build = |steps: &[Step]| graph(inputs.len(), |g, x| {
            let mut values = x.to_vec();
            for step in steps {
                let (op, operands, rest) = call(step, values.len());
                let args = operands.iter().map(|it| values[*it].into()).chain(rest).collect();
                values.push(aten(g, &op, args));
            }
            let is_given = |at: &usize| *at + 1 == values.len() || given >> (at % 16) & 1 == 1;
            (0..values.len()).filter(is_given).map(|it| values[it]).collect()
        });
        let mut kept: Vec<Step> = Vec::new();
        for step in steps {
            kept.push(step);
            if Interpreter::new(&build(&kept), executor()).run(&make_inputs()).is_err() {
                kept.pop();
            }
        }
        check(&build(&kept), &make_inputs);
    }
}
