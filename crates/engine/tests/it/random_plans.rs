//! Random graphs by their plans: views, writes in place, broadcasting, reductions, products, lists of results, constants. What a
//! plan gives, and what it leaves in inputs and constants, is what the interpreter gives and leaves, to the bit, call after call.

use proptest::prelude::*;
use std::sync::Arc;
use tracefx_compile::{Precision, compile};
use tracefx_core::{DType, Tensor};
use tracefx_engine::Library;
use tracefx_exec::{BoundPlan, Interpreter, LOOP_STEPS, plan};
use tracefx_fuzz::networks::growing::{Growing, dtype, float, int, ints, list, none, numel, tensor};
use tracefx_ir::{Arg, Attribute, GraphModule, TensorKind, TensorMeta};
use tracefx_ops::Value;

/// Numbers that choose an operator and its arguments.
type Choice = [u8; 6];

/// Operators, and their arguments: `T` a tensor, `L` two tensors, `d` a dimension, `D` a list of one, `i` a small int, `f` a
/// float, `v` the sizes of a flat view, `e` those of an expansion by one dimension, `s` those of a new tensor, `P` positions of a dimension, `y` a dtype.
const OPS: &[(&str, &str)] = &[
    ("relu.default", "T"),
    ("neg.default", "T"),
    ("sigmoid.default", "T"),
    ("clone.default", "T"),
    ("contiguous.default", "T"),
    ("add.Tensor", "TT"),
    ("mul.Tensor", "TT"),
    ("sub.Tensor", "TT"),
    ("maximum.default", "TT"),
    ("add.Scalar", "Ti"),
    ("mul.Scalar", "Tf"),
    ("gt.Scalar", "Tf"),
    ("where.self", "TTT"),
    ("to.dtype", "Ty"),
    ("t.default", "T"),
    ("transpose.int", "Tdd"),
    ("unsqueeze.default", "Td"),
    ("squeeze.dim", "Td"),
    ("select.int", "Tdi"),
    ("slice.Tensor", "Tdii"),
    ("view.default", "Tv"),
    ("reshape.default", "Tv"),
    ("expand.default", "Te"),
    ("unbind.int", "Td"),
    ("split.Tensor", "Tid"),
    ("cat.default", "Ld"),
    ("stack.default", "Ld"),
    ("sum.dim_IntList", "TD"),
    ("mean.dim", "TD"),
    ("amax.default", "TD"),
    ("max.dim", "Td"),
    ("argmax.default", "Td"),
    ("softmax.int", "Td"),
    ("cumsum.default", "Td"),
    ("flip.default", "TD"),
    ("mm.default", "TT"),
    ("matmul.default", "TT"),
    ("linear.default", "TT"),
    ("add_.Tensor", "TT"),
    ("mul_.Tensor", "TT"),
    ("mul_.Scalar", "Tf"),
    ("relu_.default", "T"),
    ("copy_.default", "TT"),
    ("fill_.Scalar", "Tf"),
    ("zero_.default", "T"),
    ("transpose_.default", "Tdd"),
    ("unsqueeze_.default", "Td"),
    ("arange.default", "i"),
    ("arange.default", "i"),
    ("arange.default", "i"),
    ("ones.default", "s"),
    ("zeros.default", "s"),
    ("full_like.default", "Tf"),
    ("copy.default", "TT"),
    ("index_select.default", "TdT"),
    ("embedding.default", "TT"),
    ("index.Tensor", "TP"),
];

/// Adds a call, if the operator takes these arguments.
fn grow(growing: &mut Growing, choice: Choice) {
    let (op, pattern) = OPS[usize::from(choice[0]) % OPS.len()];
    let first = growing.pick(choice[1]).1.clone();
    let operand = |(letter, &choice): (char, &u8)| {
        let small = i64::from(choice % 4);
        let dim = small - 1;
        match letter {
            'T' => tensor(growing.pick(choice)),
            'L' => list([choice, choice / 9].iter().map(|it| tensor(growing.pick(*it))).collect()),
            'd' => int(dim),
            'D' => ints(&[dim]),
            'i' => int(small),
            'f' => float(f64::from(choice) / 64.0 - 2.0),
            'v' => ints(&if choice % 2 == 0 { vec![-1] } else { vec![numel(&first) as i64, 1] }),
            's' => ints(&[small, 4][usize::from(choice % 2)..]),
            'P' if choice % 3 == 0 => list(vec![none(), tensor(growing.pick(choice / 3))]),
            'P' => list(vec![tensor(growing.pick(choice / 3))]),
            'e' => {
                let mut sizes = vec![small + 1];
                sizes.resize(first.sizes.len() + 1, -1);
                ints(&sizes)
            }
            _ => dtype([DType::Float64, DType::Float16, DType::Int64, DType::Float32][usize::from(choice % 4)]),
        }
    };
    let args: Vec<_> = pattern.chars().zip(&choice[1..]).map(operand).collect();
    let Some(made) = growing.call(op, &args, &[]) else { return };
    // Where a condition is an index, the data decides how many there are.
    let is_known = |it: &TensorMeta| it.sizes.iter().all(|it| !it.is_symbolic());
    growing.values.extend(made.into_iter().filter(|(_, meta)| is_known(meta) && numel(meta) < 5000));
    // What was reshaped in place is another tensor under every name.
    if op == "transpose_.default" || op == "unsqueeze_.default" {
        let last = growing.values.pop();
        growing.values.clear();
        growing.values.extend(last);
    }
}

fn numbers(seed: usize, sizes: &[usize]) -> Tensor {
    let n = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|it: usize| ((it * 37 + seed * 11) % 29) as f32 / 4.0 - 3.0).collect();
    Tensor::from_slice(&data, sizes).unwrap()
}

const INPUTS: [&[usize]; 3] = [&[3, 4], &[4], &[2, 3, 4]];

/// The module that these choices make; each has constants of its own.
fn module(choices: &[Choice], outputs: &[u8]) -> GraphModule {
    let mut growing = Growing::new();
    for (at, sizes) in INPUTS.iter().enumerate() {
        growing.placeholder(&format!("x{at}"), &numbers(at, sizes));
    }
    let constants = [numbers(5, &[4, 4]), numbers(6, &[1, 4])];
    for (at, tensor) in constants.iter().enumerate() {
        let node = growing.graph.get_attr(&format!("c{at}"));
        growing.values.push((node, TensorMeta::of(tensor)));
    }
    choices.iter().for_each(|it| grow(&mut growing, *it));
    let given: Vec<Arg> = outputs.iter().map(|&it| growing.pick(it).0.into()).collect();
    growing.graph.output(Arg::Tuple(given));
    let mut module = GraphModule::new(growing.graph);
    for (at, tensor) in constants.into_iter().enumerate() {
        module
            .attributes
            .insert(format!("c{at}").as_str().into(), Attribute::Tensor { tensor, kind: TensorKind::Parameter });
    }
    module
}

/// The bytes of tensors, and how they lie in memory; of an error what it says.
fn content(value: &Value<Tensor>) -> String {
    let print = |it: &Tensor| format!("{it:?} {:?}", it.to_bytes().unwrap());
    format!("{:?}", value.map(&mut |it| print(it)))
}

fn state(module: &GraphModule, inputs: &[Value<Tensor>]) -> Vec<String> {
    let constants = ["c0", "c1"].map(|it| match module.attribute(it).unwrap() {
        Attribute::Tensor { tensor, .. } => content(&Value::Tensor(tensor.clone())),
        other => panic!("{other:?}"),
    });
    inputs.iter().map(content).chain(constants).collect()
}

proptest! {
    #[test]
    fn a_plan_gives_what_the_interpreter_gives(
        choices in prop::collection::vec(any::<Choice>(), 1..40),
        outputs in prop::collection::vec(any::<u8>(), 1..4),
        is_compiled: bool,
    ) {
        let library = Library::default();
        let executor = library.executor();
        let [mine, yours] = [0, 1].map(|_| module(&choices, &outputs));
        let inputs = |seed: usize| -> Vec<Value<Tensor>> {
            INPUTS.iter().enumerate().map(|(at, sizes)| Value::Tensor(numbers(seed + at, sizes))).collect()
        };
        let metas: Vec<_> = inputs(0).iter().map(|it| it.map(&mut TensorMeta::of)).collect();
        let planned = plan(&yours, &metas, executor.registry(), executor.kernels());
        // A plan refuses what the interpreter refuses, and nothing else of these operators.
        let Ok(planned) = planned else {
            prop_assert!(Interpreter::new(&mine, executor).run(&inputs(0)).is_err(), "{:?}", planned.err());
            return Ok(());
        };
        let (registry, kernels) = (executor.registry(), executor.kernels());
        let planned = if is_compiled { compile(planned, registry, kernels, Precision::Strict) } else { planned };
        let mut bound = BoundPlan::new(Arc::new(planned), executor.registry(), executor.kernels()).unwrap();
        let mut earlier: Vec<(Value<Tensor>, String)> = Vec::new();
        for seed in [0, 7, 20] {
            let (given, expected) = (inputs(seed), inputs(seed));
            let result = bound.run(executor, &given, LOOP_STEPS, &mut |_, _| Ok(()));
            let wanted = Interpreter::new(&mine, executor).run(&expected);
            match (&result, &wanted) {
                (Ok(result), Ok(wanted)) => prop_assert_eq!(content(result), content(wanted), "{}\n{}", mine.graph, bound.plan()),
                (Err(result), Err(wanted)) => prop_assert_eq!(result.to_string(), wanted.to_string()),
                (_, _) => prop_assert!(false, "{result:?} and {wanted:?}\n{}\n{}", mine.graph, bound.plan()),
            }
            prop_assert_eq!(state(&yours, &given), state(&mine, &expected), "{}\n{}", mine.graph, bound.plan());
            if let Ok(result) = result {
                earlier.push((result.clone(), content(&result)));
            }
        }
        // A result that is no constant and no input stays what it was, whatever runs later.
        let is_constant = |it: &Tensor| ["c0", "c1"].iter().any(|name| match yours.attribute(name) {
            Ok(Attribute::Tensor { tensor, .. }) => tensor.storage().is_same(it.storage()),
            _ => false,
        });
        for (result, before) in earlier {
            let mut may_change = false;
            result.for_each_tensor(&mut |it| may_change |= is_constant(it));
            prop_assert!(may_change || content(&result) == before);
        }
    }
}
