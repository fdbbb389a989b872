//! Programs of which a plan could be silently another: views beyond what they look at, aliases out of control flow, layouts of
//! branches, bodies that write, products that change sides, refusals that lead to decompositions, names in errors.

use std::sync::Arc;
use tracefx_core::{Code, Complex64, DType, Device, Result, Scalar, Tensor};
use tracefx_exec::{BoundPlan, Executor, Interpreter, LOOP_STEPS, plan};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, TensorKind, TensorMeta};
use tracefx_ops::{Value, registry};

fn aten(g: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    g.call_function(&format!("torch.ops.aten.{name}"), args, vec![])
}
fn hop(g: &mut Graph, name: &str, args: Vec<Arg>) -> NodeId {
    g.call_function(&format!("torch.ops.higher_order.{name}"), args, vec![])
}
fn item(g: &mut Graph, n: NodeId, at: i64) -> NodeId {
    g.call_function("operator.getitem", vec![n.into(), Arg::Int(at)], vec![])
}
fn ints(it: &[i64]) -> Arg {
    Arg::List(it.iter().map(|&it| Arg::Int(it)).collect())
}
fn graph(n: usize, build: impl FnOnce(&mut Graph, &[NodeId]) -> Vec<NodeId>) -> GraphModule {
    let mut g = Graph::new();
    let xs: Vec<NodeId> = (0..n).map(|it| g.placeholder(&format!("x{it}"))).collect();
    let out = build(&mut g, &xs);
    g.output(Arg::Tuple(out.into_iter().map(Arg::Node).collect()));
    GraphModule::new(g)
}
fn f(data: &[f32], sizes: &[usize]) -> Tensor {
    Tensor::from_slice(data, sizes).unwrap()
}
fn seq(sizes: &[usize]) -> Tensor {
    let n: usize = sizes.iter().product();
    f(&(0..n).map(|it| it as f32 + 1.0).collect::<Vec<_>>(), sizes)
}
/// What a run gives, or why it is refused.
fn told(result: &Result<Value<Tensor>>) -> String {
    match result {
        Ok(value) => format!("{:?}", value.map(&mut |it| format!("{it:?} {:?}", it.to_bytes().unwrap()))),
        Err(it) => format!("{:?} of {:?} in {:?}: {}", it.code(), it.op_name(), it.node_name(), it.message()),
    }
}

fn check(name: &str, make: impl Fn() -> (GraphModule, Vec<Value<Tensor>>)) {
    check_steps(name, LOOP_STEPS, make);
}

/// A plan gives what the interpreter gives, also in the inputs, or there is none.
fn check_steps(name: &str, steps: u64, make: impl Fn() -> (GraphModule, Vec<Value<Tensor>>)) {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let contents = |inputs: &[Value<Tensor>]| inputs.iter().map(|it| told(&Ok(it.clone()))).collect::<Vec<_>>();
    let (module, expected) = make();
    let wanted = Interpreter::new(&module, executor).run_watched(&expected, steps, &mut |_, _| Ok(()));
    let (module, inputs) = make();
    let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let Ok(plan) = plan(&module, &metas, executor.registry(), executor.kernels()) else { return };
    let mut bound = BoundPlan::new(Arc::new(plan), executor.registry(), executor.kernels()).unwrap();
    let given = bound.run(executor, &inputs, steps, &mut |_, _| Ok(()));
    assert_eq!(told(&given), told(&wanted), "{name}\n{}", bound.plan());
    assert_eq!(contents(&inputs), contents(&expected), "{name}: inputs\n{}", bound.plan());
}

fn sub(m: &mut GraphModule, name: &str, body: GraphModule) {
    m.set_attribute(name, Attribute::Module(Box::new(body)));
}
fn param(m: &mut GraphModule, name: &str, tensor: Tensor) {
    m.attributes.insert(name.into(), Attribute::Tensor { tensor, kind: TensorKind::Parameter });
}
fn t(it: Tensor) -> Value<Tensor> {
    Value::Tensor(it)
}

#[test]
fn a_plan_gives_what_the_interpreter_gives_or_refuses() {
    check("as_strided beyond scratch", || {
        let m = graph(1, |g, x| {
            let a = aten(g, "neg.default", vec![x[0].into()]);
            let v = aten(g, "as_strided.default", vec![a.into(), ints(&[8]), ints(&[1]), Arg::Int(0)]);
            let y = aten(g, "abs.default", vec![v.into()]);
            vec![y]
        });
        (m, vec![t(seq(&[3]))])
    });
    check("as_strided beyond input, after a write", || {
        let m = graph(1, |g, x| {
            aten(g, "add_.Scalar", vec![x[0].into(), Arg::Int(1)]);
            let v = aten(g, "as_strided.default", vec![x[0].into(), ints(&[8]), ints(&[1]), Arg::Int(0)]);
            vec![aten(g, "abs.default", vec![v.into()])]
        });
        (m, vec![t(seq(&[3]))])
    });
    check("no_grad view, then written", || {
        let mut m = graph(1, |g, x| {
            let body = g.get_attr("body");
            let w = hop(g, "wrap_with_set_grad_enabled", vec![Arg::Bool(false), body.into(), x[0].into()]);
            let v = item(g, w, 0);
            aten(g, "mul_.Scalar", vec![v.into(), Arg::Float(10.0)]);
            vec![aten(g, "neg.default", vec![x[0].into()])]
        });
        sub(&mut m, "body", graph(1, |g, x| vec![aten(g, "view.default", vec![x[0].into(), ints(&[-1])])]));
        (m, vec![t(seq(&[2, 2]))])
    });
    check("no_grad expand", || {
        let mut m = graph(1, |g, x| {
            let body = g.get_attr("body");
            let w = hop(g, "wrap_with_set_grad_enabled", vec![Arg::Bool(false), body.into(), x[0].into()]);
            let v = item(g, w, 0);
            vec![aten(g, "neg.default", vec![v.into()])]
        });
        sub(&mut m, "body", graph(1, |g, x| vec![aten(g, "expand.default", vec![x[0].into(), ints(&[3, 2])])]));
        (m, vec![t(seq(&[2]))])
    });
    check("linear, vector weight and a bias", || {
        let mut m = graph(1, |g, x| {
            let (w, b) = (g.get_attr("w"), g.get_attr("b"));
            vec![aten(g, "linear.default", vec![x[0].into(), w.into(), b.into()])]
        });
        param(&mut m, "w", seq(&[4]));
        param(&mut m, "b", seq(&[3]));
        (m, vec![t(seq(&[3, 4]))])
    });
    check("linear, bias of rows", || {
        let mut m = graph(1, |g, x| {
            let (w, b) = (g.get_attr("w"), g.get_attr("b"));
            vec![aten(g, "linear.default", vec![x[0].into(), w.into(), b.into()])]
        });
        param(&mut m, "w", seq(&[5, 4]));
        param(&mut m, "b", seq(&[3, 5]));
        (m, vec![t(seq(&[2, 3, 4]))])
    });
    check("cond, branches of other strides, false taken", || {
        let mut m = graph(2, |g, x| {
            let (a, b) = (g.get_attr("yes"), g.get_attr("no"));
            let w = hop(g, "cond", vec![x[0].into(), a.into(), b.into(), Arg::List(vec![x[1].into()])]);
            let v = item(g, w, 0);
            let s = aten(g, "as_strided.default", vec![v.into(), ints(&[4]), ints(&[1]), Arg::Int(0)]);
            vec![aten(g, "neg.default", vec![s.into()]), v]
        });
        sub(&mut m, "yes", graph(1, |g, x| vec![aten(g, "neg.default", vec![x[0].into()])]));
        sub(
            &mut m,
            "no",
            graph(1, |g, x| {
                let a = aten(g, "t.default", vec![x[0].into()]);
                vec![aten(g, "neg.default", vec![a.into()])]
            }),
        );
        (m, vec![t(Tensor::full(DType::Bool, &[], Scalar::Bool(false)).unwrap()), t(seq(&[2, 2]))])
    });
    check("map, body writes its slice", || {
        let mut m = graph(1, |g, x| {
            let a = g.get_attr("body");
            let w = hop(g, "map_impl", vec![a.into(), Arg::List(vec![x[0].into()]), Arg::List(vec![])]);
            vec![item(g, w, 0)]
        });
        sub(
            &mut m,
            "body",
            graph(1, |g, x| {
                aten(g, "add_.Scalar", vec![x[0].into(), Arg::Int(100)]);
                vec![aten(g, "neg.default", vec![x[0].into()])]
            }),
        );
        (m, vec![t(seq(&[3, 2]))])
    });
    check("cond with a complex operand", || {
        let mut m = graph(2, |g, x| {
            let (a, b) = (g.get_attr("yes"), g.get_attr("no"));
            let ops = Arg::List(vec![x[1].into(), Arg::Complex(Complex64 { re: 1.0, im: 2.0 })]);
            let w = hop(g, "cond", vec![x[0].into(), a.into(), b.into(), ops]);
            vec![item(g, w, 0)]
        });
        for name in ["yes", "no"] {
            sub(&mut m, name, graph(2, |g, x| vec![aten(g, "mul.Scalar", vec![x[0].into(), x[1].into()])]));
        }
        (m, vec![t(Tensor::full(DType::Bool, &[], Scalar::Bool(false)).unwrap()), t(seq(&[2, 2]))])
    });
    check_steps("while_loop beyond its limit: names", 3, || {
        let mut m = graph(1, |g, x| {
            let (a, b) = (g.get_attr("condition"), g.get_attr("body"));
            let w = hop(g, "while_loop", vec![a.into(), b.into(), Arg::List(vec![x[0].into()]), Arg::List(vec![])]);
            vec![item(g, w, 0)]
        });
        sub(
            &mut m,
            "condition",
            graph(1, |g, x| {
                let a = aten(g, "sum.default", vec![x[0].into()]);
                vec![aten(g, "gt.Scalar", vec![a.into(), Arg::Int(0)])]
            }),
        );
        sub(&mut m, "body", graph(1, |g, x| vec![aten(g, "add.Scalar", vec![x[0].into(), Arg::Int(1)])]));
        (m, vec![t(seq(&[2]))])
    });
    check("write to an expanded tensor: names", || {
        let m = graph(1, |g, x| {
            let e = aten(g, "expand.default", vec![x[0].into(), ints(&[3, 2])]);
            vec![aten(g, "add_.Scalar", vec![e.into(), Arg::Int(1)])]
        });
        (m, vec![t(seq(&[2]))])
    });
    check("empty, transposed", || {
        let m = graph(1, |g, x| {
            let e = aten(g, "t.default", vec![x[0].into()]);
            vec![aten(g, "neg.default", vec![e.into()]), aten(g, "gt.Scalar", vec![e.into(), Arg::Int(1)])]
        });
        (m, vec![t(Tensor::zeros(DType::Float32, &[0, 3]).unwrap())])
    });
    check("a factory on another device", || {
        let m = graph(1, |g, x| {
            let z = g.call_function(
                "torch.zeros",
                vec![ints(&[2])],
                vec![("device".into(), Arg::Device("cuda".parse::<Device>().unwrap()))],
            );
            vec![z, aten(g, "neg.default", vec![x[0].into()])]
        });
        (m, vec![t(seq(&[2]))])
    });
    check("complex product, both sides in columns", || {
        let n = 64;
        let numbers = |seed: u64| {
            let mut s = seed;
            let mut next = move || {
                s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((s >> 40) as f32) / (1 << 23) as f32 - 1.0
            };
            let data: Vec<[f32; 2]> = (0..n * n).map(|_| [next(), next()]).collect();
            Tensor::from_slice(&data, &[n, n]).unwrap()
        };
        let mut m = graph(1, |g, x| {
            let w = g.get_attr("w");
            let (a, b) = (aten(g, "t.default", vec![x[0].into()]), aten(g, "t.default", vec![w.into()]));
            vec![aten(g, "mm.default", vec![a.into(), b.into()])]
        });
        param(&mut m, "w", numbers(3));
        (m, vec![t(numbers(9))])
    });
    check("two inputs of one storage", || {
        let m = graph(2, |g, x| {
            aten(g, "copy_.default", vec![x[0].into(), x[1].into()]);
            vec![aten(g, "neg.default", vec![x[1].into()])]
        });
        let base = seq(&[4]);
        (m, vec![t(base.as_strided(&[3], &[1], 0).unwrap()), t(base.as_strided(&[3], &[1], 1).unwrap())])
    });
    check("index_put by mask", || {
        let m = graph(2, |g, x| {
            let v = aten(g, "scalar_tensor.default", vec![Arg::Float(5.0)]);
            vec![aten(g, "index_put.default", vec![x[0].into(), Arg::List(vec![x[1].into()]), v.into()])]
        });
        let mask = Tensor::full(DType::Bool, &[2, 2], Scalar::Bool(true)).unwrap();
        (m, vec![t(seq(&[2, 2])), t(mask)])
    });
    check("scan: carry of other strides", || {
        let mut m = graph(2, |g, x| {
            let a = g.get_attr("body");
            let w = hop(
                g,
                "scan",
                vec![a.into(), Arg::List(vec![x[0].into()]), Arg::List(vec![x[1].into()]), Arg::List(vec![])],
            );
            vec![item(g, w, 0)]
        });
        sub(
            &mut m,
            "body",
            graph(2, |g, x| {
                let a = aten(g, "t.default", vec![x[0].into()]);
                vec![aten(g, "neg.default", vec![a.into()]), aten(g, "neg.default", vec![x[1].into()])]
            }),
        );
        (m, vec![t(seq(&[2, 2])), t(seq(&[2, 2]))])
    });
}

#[test]
fn products_of_nothing_and_of_bools() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let call = |name: &str, args: &[Value<Tensor>]| executor.call(name, args, &[]);
    // No matrices, whose right sides are one and the same.
    let none = Tensor::zeros(DType::Float32, &[0, 2, 3]).unwrap();
    let shared = seq(&[3, 4]).as_strided(&[0, 3, 4], &[0, 4, 1], 0).unwrap();
    let product = call("aten.bmm.default", &[t(none), t(shared)]).unwrap().remove(0);
    assert!(matches!(&product, Value::Tensor(it) if it.sizes() == [0, 2, 4]), "{product:?}");
    // A sum of ints is no product of bools.
    let bools = t(Tensor::zeros(DType::Bool, &[0]).unwrap());
    let refused = call("aten.matmul.default", &[bools.clone(), bools]).unwrap_err();
    assert_eq!(refused.code(), Code::NotImplemented, "{refused}");
}

/// A run would have found out after the steps before it.
#[test]
fn a_write_that_does_not_fit_is_refused_when_it_is_traced() {
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let module = graph(2, |g, x| {
        aten(g, "mul_.Scalar", vec![x[1].into(), Arg::Int(2)]);
        vec![aten(g, "add_.Tensor", vec![x[0].into(), x[1].into()])]
    });
    let inputs = [t(seq(&[1, 2])), t(seq(&[3, 2]))];
    let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let refused = plan(&module, &metas, executor.registry(), executor.kernels()).unwrap_err();
    assert_eq!(refused.message(), "output with shape [1, 2] doesn't match the broadcast shape [3, 2]");
    let interpreted = Interpreter::new(&module, executor).run(&inputs).unwrap_err();
    assert_eq!(interpreted.to_string(), refused.to_string());
}

#[test]
fn what_a_kernel_makes_is_copied_to_the_order_of_the_rule() {
    check("lstsq", || {
        let m = graph(2, |g, x| {
            let solved = aten(g, "linalg_lstsq.default", vec![x[0].into(), x[1].into()]);
            (0..4).map(|at| item(g, solved, at)).collect()
        });
        (m, vec![t(f(&[2.0, 1.0, 0.0, 3.0, 1.0, -1.0], &[3, 2])), t(seq(&[3, 2]))])
    });
}

/// Where the data decides that there are no elements, strides may be zero.
#[test]
fn what_is_empty_is_written_whatever_its_strides_are() {
    check("nonzero of zeros", || {
        let m = graph(1, |g, x| {
            let places = aten(g, "nonzero.default", vec![x[0].into()]);
            let negated = aten(g, "neg.default", vec![places.into()]);
            vec![aten(g, "sum.default", vec![negated.into()])]
        });
        (m, vec![t(Tensor::zeros(DType::Float32, &[3, 2]).unwrap())])
    });
    let empty = || seq(&[0, 1]).as_strided(&[0, 2], &[1, 0], 0).unwrap();
    check("expanded", || (graph(1, |g, x| vec![aten(g, "neg_.default", vec![x[0].into()])]), vec![t(empty())]));
}

/// A plan of a graph for these inputs, with memory.
fn bound(module: &GraphModule, inputs: &[Value<Tensor>]) -> BoundPlan {
    let metas: Vec<_> = inputs.iter().map(|it| it.map(&mut TensorMeta::of)).collect();
    let plan = plan(module, &metas, registry(), tracefx_cpu::kernels()).unwrap();
    BoundPlan::new(Arc::new(plan), registry(), tracefx_cpu::kernels()).unwrap()
}

fn tensors(value: &Value<Tensor>) -> Vec<Tensor> {
    let mut res = Vec::new();
    value.for_each_tensor(&mut |it| res.push(it.clone()));
    res
}

fn floats(it: &Tensor) -> Vec<f32> {
    it.to_vec::<f32>().unwrap()
}

#[test]
fn inputs_are_lent_and_results_are_the_callers() {
    let m = graph(2, |g, x| {
        let a = aten(g, "neg.default", vec![x[0].into()]);
        let sum = aten(g, "add.Tensor", vec![a.into(), x[1].into()]);
        let view = aten(g, "view.default", vec![x[1].into(), ints(&[4, 1])]);
        let first = aten(g, "select.int", vec![sum.into(), Arg::Int(0), Arg::Int(0)]);
        vec![sum, x[0], view, first, sum]
    });
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let (x, y) = (seq(&[4]), f(&[10.0, 20.0, 30.0, 40.0], &[4]));
    let mut bound = bound(&m, &[t(x.clone()), t(y.clone())]);
    let mut run = |x: &Tensor, y: &Tensor| {
        tensors(&bound.run(executor, &[t(x.clone()), t(y.clone())], LOOP_STEPS, &mut |_, _| Ok(())).unwrap())
    };
    let address = |it: &Tensor| it.storage().read().bytes().as_ptr();
    let start = address(&x);
    let first = run(&x, &y);
    assert_eq!(floats(&first[0]), [9.0, 18.0, 27.0, 36.0]);
    // What is given back is the caller's, and the results that are one tensor are one.
    assert!(first[1].storage().is_same(x.storage()) && first[2].storage().is_same(y.storage()));
    assert!(first[3].storage().is_same(first[0].storage()) && first[4].storage().is_same(first[0].storage()));
    // Nobody looks at an input after the run, so that a write copies nothing; the next run sees it, and the results of the one before stay.
    x.storage().write().unwrap().elements_mut::<f32>()[0] = -5.0;
    assert_eq!(address(&x), start);
    let second = run(&x, &y);
    assert_eq!((floats(&second[0])[0], floats(&first[0])[0]), (15.0, 9.0));
    // One storage may be both inputs.
    assert_eq!(floats(&run(&y, &y)[0]), [0.0; 4]);
    second[0].storage().write().unwrap().elements_mut::<f32>().fill(7.0);
    assert_eq!(floats(&run(&x, &y)[0])[0], 15.0);
}

#[test]
fn a_run_that_fails_leaves_nothing_of_its_inputs() {
    let m = graph(2, |g, x| {
        let a = aten(g, "neg.default", vec![x[0].into()]);
        vec![aten(g, "index_select.default", vec![a.into(), Arg::Int(0), x[1].into()])]
    });
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let index = |it: i64| Tensor::from_slice(&[it], &[1]).unwrap();
    let mut bound = bound(&m, &[t(seq(&[4])), t(index(0))]);
    let mut run = |at: i64| bound.run(executor, &[t(seq(&[4])), t(index(at))], LOOP_STEPS, &mut |_, _| Ok(()));
    assert!(run(9).is_err());
    assert_eq!(floats(&tensors(&run(2).unwrap())[0]), [-3.0]);
    assert!(run(-9).is_err());
}

#[test]
fn memory_that_the_program_writes_to_is_no_input_of_its_plan() {
    let mut m = graph(1, |g, x| {
        let total = g.get_attr("total");
        let sum = aten(g, "add_.Tensor", vec![total.into(), x[0].into()]);
        vec![aten(g, "mul.Tensor", vec![sum.into(), x[0].into()])]
    });
    param(&mut m, "total", seq(&[3]));
    let executor = Executor::new(registry(), tracefx_cpu::kernels());
    let total = match m.attributes.get("total") {
        Some(Attribute::Tensor { tensor, .. }) => tensor.clone(),
        other => panic!("{other:?}"),
    };
    let mut bound = bound(&m, &[t(seq(&[3]))]);
    let mut run = |it: Tensor| bound.run(executor, &[t(it)], LOOP_STEPS, &mut |_, _| Ok(()));
    assert_eq!(floats(&tensors(&run(seq(&[3])).unwrap())[0]), [2.0, 8.0, 18.0]);
    assert_eq!(run(total.clone()).unwrap_err().code(), Code::InputType);
    assert_eq!(floats(&total), [2.0, 4.0, 6.0]);
}
