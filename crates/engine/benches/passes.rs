//! Times of passes on graphs of 1e3, 1e4 and 1e5 nodes: the graphs of `benches/passes.py`, which times torch.fx.
//!
//! Prints, for each pass and size, the median milliseconds of the pass alone and of a whole call from bytes to bytes, as a
//! JSON object. Names may be picked by a part of them.

use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tracefx_core::DType;
use tracefx_engine::{Library, PassCall, PassRequest, host_pass};
use tracefx_ir::{Arg, Graph, GraphModule, NodeId, TensorMeta, Val};
use tracefx_wire::{Options, encode_module};

const CYCLE: [&str; 5] = ["torch.relu", "torch.neg", "torch.sigmoid", "torch.tanh", "torch.abs"];

struct Bench {
    name: &'static str,
    pass: &'static str,
    graph: fn(usize) -> Graph,
    others: fn() -> Vec<GraphModule>,
    options: fn(usize) -> Value,
}

const fn none() -> Vec<GraphModule> {
    Vec::new()
}

const BENCHES: &[Bench] = &[
    Bench { name: "dce.nothing_dead", pass: "eliminate_dead_code", graph: chain, others: none, options: |_| json!({}) },
    Bench {
        name: "dce.all_dead_chain",
        pass: "eliminate_dead_code",
        graph: dead,
        others: none,
        options: |_| json!({}),
    },
    Bench {
        name: "replace_pattern.n/10_matches",
        pass: "replace_pattern",
        graph: patterns,
        others: || vec![pattern("torch.add", Some("torch.relu")), pattern("torch.mul", None)],
        options: |_| json!({}),
    },
    Bench {
        name: "subgraph_matcher.n/10_matches",
        pass: "SubgraphMatcher",
        graph: patterns,
        others: || vec![pattern("torch.add", Some("torch.relu"))],
        options: |_| json!({}),
    },
    Bench {
        name: "split_module.4_parts",
        pass: "split_module",
        graph: chain,
        others: none,
        options: |n| json!({ "partitionOf": (0..n + 2).map(|it| it * 4 / (n + 2)).collect::<Vec<_>>() }),
    },
    Bench { name: "fake_tensor_prop", pass: "FakeTensorProp", graph: chain, others: none, options: |_| json!({}) },
    Bench { name: "legalize_graph", pass: "legalize_graph", graph: chain, others: none, options: |_| json!({}) },
    Bench {
        name: "partitioner.propose",
        pass: "propose_partitions",
        graph: chain,
        others: none,
        options: |n| json!({ "isSupported": (0..n + 2).map(|it| it % 5 != 0).collect::<Vec<_>>() }),
    },
    Bench { name: "cse.half_duplicates", pass: "CSEPass", graph: duplicates, others: none, options: |_| json!({}) },
];

fn main() {
    let picked: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let library = Library::default();
    let mut times = serde_json::Map::new();
    for bench in BENCHES.iter().filter(|it| picked.is_empty() || picked.iter().any(|part| it.name.contains(part))) {
        for n in [1_000, 10_000, 100_000] {
            let module = GraphModule::new((bench.graph)(n));
            let (others, options) = ((bench.others)(), (bench.options)(n));
            let pass = host_pass(bench.pass).unwrap();
            let alone = median(
                || module.clone(),
                |mut module| {
                    let (library, module, others) = (&library, &mut module, others.as_slice());
                    let mut call = PassCall { library, module, others, options: options.clone() };
                    black_box((pass.run)(&mut call).unwrap());
                },
            );
            let bytes = encode_module(&module, &Options::CALL).unwrap();
            let other_bytes: Vec<_> = others.iter().map(|it| encode_module(it, &Options::CALL).unwrap()).collect();
            let text = options.to_string();
            let whole = median(
                || (),
                |()| {
                    let mut request = PassRequest::new(&bytes).unwrap();
                    other_bytes.iter().for_each(|it| request.push(it).unwrap());
                    black_box(request.run(&library, bench.pass, &text).unwrap());
                },
            );
            let ms = |it: Duration| (it.as_secs_f64() * 1e6).round() / 1e3;
            times.insert(format!("{}/{n}", bench.name), json!({ "alone": ms(alone), "whole": ms(whole) }));
        }
    }
    #[allow(clippy::print_stdout, reason = "the times are what it is run for")]
    {
        println!("{}", Value::Object(times));
    }
}

/// The median of at least five runs, as many as fit a second, after a first one that does not count.
fn median<T>(setup: impl Fn() -> T, run: impl Fn(T)) -> Duration {
    run(setup());
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (begin.elapsed() < Duration::from_secs(1) && times.len() < 200) {
        let input = setup();
        let start = Instant::now();
        run(input);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

fn call(graph: &mut Graph, target: &str, args: &[NodeId]) -> NodeId {
    graph.call_function(target, args.iter().copied().map(Arg::Node).collect(), Vec::new())
}

/// `second(first(a, b))`, or `first(a, b)`.
fn pattern(first: &str, second: Option<&str>) -> GraphModule {
    let mut graph = Graph::new();
    let inputs = ["a", "b"].map(|it| graph.placeholder(it));
    let mut result = call(&mut graph, first, &inputs);
    if let Some(second) = second {
        result = call(&mut graph, second, &[result]);
    }
    graph.output(result.into());
    GraphModule::new(graph)
}

/// `n / 10` places where the pattern is, eight other nodes around each.
fn patterns(n: usize) -> Graph {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut last = x;
    for _ in 0..n / 10 {
        let sum = call(&mut graph, "torch.add", &[last, x]);
        last = call(&mut graph, "torch.relu", &[sum]);
        for other in ["neg", "sigmoid", "tanh", "abs", "neg", "sin", "cos", "exp"] {
            last = call(&mut graph, &format!("torch.{other}"), &[last]);
        }
    }
    graph.output(last.into());
    graph
}

/// `n` functions, one after the other.
fn chain(n: usize) -> Graph {
    let mut graph = Graph::new();
    let mut last = graph.placeholder("x");
    let meta = TensorMeta::contiguous(DType::Float32, vec![1.into()]);
    graph.meta_mut(last).val = Some(Val::Tensor(meta));
    for at in 0..n {
        last = call(&mut graph, CYCLE[at % CYCLE.len()], &[last]);
    }
    graph.output(last.into());
    graph
}

/// A chain that the output does not use.
fn dead(n: usize) -> Graph {
    let mut graph = Graph::new();
    let x = graph.placeholder("x");
    let mut last = x;
    for at in 0..n {
        last = call(&mut graph, CYCLE[at % CYCLE.len()], &[last]);
    }
    graph.output(x.into());
    graph
}

/// Pairs of equal nodes, of which half can go.
fn duplicates(n: usize) -> Graph {
    let mut graph = Graph::new();
    let mut last = graph.placeholder("x");
    for _ in 0..n / 4 {
        let a = call(&mut graph, "torch.ops.aten.sin.default", &[last]);
        let b = call(&mut graph, "torch.ops.aten.sin.default", &[last]);
        let sum = call(&mut graph, "torch.ops.aten.add.Tensor", &[a, b]);
        last = call(&mut graph, "torch.ops.aten.neg.default", &[sum]);
    }
    graph.output(last.into());
    graph
}
