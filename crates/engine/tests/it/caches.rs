//! Programs that keep keys and values: a step of decoding writes only what is new to a cache.

use crate::plans::content;
use tracefx_core::{Code, DType, Diagnostic, Tensor};
use tracefx_engine::{Library, Mode, Precision, Runner};
use tracefx_export::{ExportedProgram, default_decompositions};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, TensorKind};
use tracefx_ops::Value;
use tracefx_plan::Action;

const CACHE: [usize; 4] = [1, 2, 2048, 64];
const BYTES: u64 = 2 * 2048 * 64 * 4;

fn noise(sizes: &[usize], seed: usize) -> Tensor {
    let number = |at: usize| ((at * 7919 + seed * 104_729) % 10_007) as f32 / 10_007.0 - 0.5;
    Tensor::from_slice(&(0..sizes.iter().product()).map(number).collect::<Vec<_>>(), sizes).unwrap()
}

/// The inputs of a step: query, key, value, where they belong, and which rows there are up to there.
fn step(at: i64) -> Vec<Value<Tensor>> {
    let mut res: Vec<Tensor> = (0..3).map(|it| noise(&[1, 2, 1, 64], at as usize * 3 + it)).collect();
    res.push(Tensor::from_slice(&[at], &[1]).unwrap());
    let mask = Tensor::zeros(DType::Bool, &[1, 1, 1, 2048]).unwrap();
    mask.storage().write().unwrap().bytes_mut()[..=at as usize].fill(1);
    res.push(mask);
    res.into_iter().map(Value::Tensor).collect()
}

/// Two layers with a cache each for keys and values.
fn program() -> ExportedProgram {
    let mut graph = Graph::new();
    let [query, key, value, at, mask] = ["query", "key", "value", "at", "mask"].map(|it| graph.placeholder(it));
    let mut last = query;
    let aten = |graph: &mut Graph, op: &str, args: Vec<Arg>| {
        graph.call_function(&format!("torch.ops.aten.{op}"), args, vec![])
    };
    for layer in 0..2 {
        let [keys, values] = ["keys", "values"].map(|it| graph.get_attr(&format!("{it}{layer}")));
        let new = aten(&mut graph, "add.Tensor", vec![key.into(), last.into()]);
        aten(&mut graph, "index_copy_.default", vec![keys.into(), Arg::Int(2), at.into(), new.into()]);
        let indices = Arg::List(vec![Arg::None, Arg::None, at.into()]);
        aten(&mut graph, "index_put_.default", vec![values.into(), indices, value.into()]);
        let args = vec![last.into(), keys.into(), values.into(), mask.into()];
        last = aten(&mut graph, "scaled_dot_product_attention.default", args);
    }
    graph.output(last.into());
    let mut module = GraphModule::new(graph);
    for (seed, name) in ["keys0", "values0", "keys1", "values1"].into_iter().enumerate() {
        module.set_attribute(name, Attribute::Tensor { tensor: noise(&CACHE, seed), kind: TensorKind::Buffer });
    }
    Library::default().export(&module, &step(0)).unwrap()
}

fn state(runner: &Runner) -> Vec<String> {
    content(&runner.state().map(|(_, it)| Value::Tensor(it.clone())).collect::<Vec<_>>())
}

#[test]
fn a_step_of_decoding_writes_what_is_new() {
    let functional = program().run_decompositions(&default_decompositions()).unwrap();
    assert!(functional.module.graph.to_string().contains("index_put.default"), "{functional}");
    let programs = [program(), functional];
    let ways = programs.iter().flat_map(|it| [(it, Precision::Strict), (it, Precision::Fast)]);
    for (program, precision) in ways {
        let runner = Runner::new(program).unwrap().with_precision(precision);
        let interpreted = Runner::new(program).unwrap().with_mode(Mode::Interpret);
        let plan = runner.plan(&step(0)).unwrap();
        // Attention with a mask of bools that is spelled out multiplies all keys by a factor.
        let is_spelled_out = std::ptr::eq(program, &programs[1]);
        let mut n_updates = 0;
        for step in &plan.steps {
            let mut written = 0;
            step.action.for_each_written(&mut |it| {
                written += plan.tensor(it).known().unwrap().sizes.iter().product::<usize>()
            });
            let is_update = matches!(step.action, Action::Update { .. });
            assert!(is_update || is_spelled_out || written < CACHE.iter().product(), "{plan}");
            n_updates += usize::from(is_update);
        }
        assert_eq!(n_updates, 4, "{plan}");
        let report = runner.explain(&step(0)).unwrap();
        let updates: Vec<_> = report.steps.iter().filter(|it| it.step.ends_with("in place")).collect();
        assert!(updates.len() == 4 && updates.iter().all(|it| it.bytes < BYTES / 100), "{report}");
        let before = state(&runner);
        for at in [0, 1, 2, 1, 2047] {
            let [given, wanted] = [&runner, &interpreted].map(|it| it.run(&step(at)).unwrap());
            let numbers = |it: &[Value<Tensor>]| match it {
                [Value::Tensor(it)] => it.to_vec::<f32>().unwrap(),
                other => panic!("{other:?}"),
            };
            for (given, wanted) in numbers(&given).iter().zip(numbers(&wanted)) {
                let is_close = (given - wanted).abs() <= 1e-5 * wanted.abs().max(0.1);
                assert!(if precision == Precision::Strict { *given == wanted } else { is_close }, "{given} {wanted}");
            }
        }
        assert_ne!(state(&runner), before);
        if precision == Precision::Strict {
            assert_eq!(state(&runner), state(&interpreted));
        }
        // The program keeps its own.
        assert_eq!(state(&Runner::new(program).unwrap()), before);
    }
}

#[test]
fn an_index_out_of_range_leaves_its_cache_as_it_is() {
    let runner = Runner::new(&program()).unwrap();
    runner.run(&step(3)).unwrap();
    let before = state(&runner);
    let mut inputs = step(4);
    inputs[3] = Value::Tensor(Tensor::from_slice(&[2048i64], &[1]).unwrap());
    assert_eq!(runner.run(&inputs).unwrap_err().code().name(), "IndexOutOfRange");
    assert_eq!(state(&runner), before);
}

#[test]
fn a_step_that_was_stopped_can_be_repeated() {
    let program = program().run_decompositions(&default_decompositions()).unwrap();
    let [stopped, whole] = [(); 2].map(|()| Runner::new(&program).unwrap());
    let n_steps = whole.plan(&step(0)).unwrap().steps.len();
    for at in 0..n_steps {
        let refused = stopped.run_watched(&step(at as i64), &mut |done, _| {
            if done == at { Err(Diagnostic::new(Code::Stopped, "stopped")) } else { Ok(()) }
        });
        assert_eq!(refused.unwrap_err().code(), Code::Stopped);
        let given = [&stopped, &whole].map(|it| content(&it.run(&step(at as i64)).unwrap()));
        assert_eq!(given[0], given[1]);
    }
    assert_eq!(state(&stopped), state(&whole));
}

/// `(sum(other), sum(cache))`, where the cache is written to at the end.
fn functional() -> ExportedProgram {
    let mut graph = Graph::new();
    let [cache, other, new, at] = ["cache", "other", "new", "at"].map(|it| graph.placeholder(it));
    let aten = |graph: &mut Graph, op: &str, args: Vec<Arg>| {
        graph.call_function(&format!("torch.ops.aten.{op}.default"), args, vec![])
    };
    let made = aten(&mut graph, "index_copy", vec![cache.into(), Arg::Int(1), at.into(), new.into()]);
    let sums = [other, made].map(|it| aten(&mut graph, "sum", vec![it.into()]).into());
    aten(&mut graph, "copy_", vec![cache.into(), made.into()]);
    graph.output(Arg::Tuple(sums.to_vec()));
    Library::default().export(&GraphModule::new(graph), &given(false)).unwrap()
}

fn given(is_shared: bool) -> Vec<Value<Tensor>> {
    let cache = noise(&[2, 6, 4], 1);
    let other = if is_shared { cache.clone() } else { noise(&[2, 6, 4], 2) };
    let at = Tensor::from_slice(&[3i64, 0], &[2]).unwrap();
    [cache, other, noise(&[2, 2, 4], 3), at].map(Value::Tensor).to_vec()
}

#[test]
fn a_cache_that_is_another_input_too_is_written_to_at_the_end() {
    let program = functional();
    for order in [[false, true, false], [true, false, true]] {
        let [planned, interpreted] = [Mode::Plan, Mode::Interpret]
            .map(|mode| Runner::new(&program).unwrap().with_mode(mode).with_precision(Precision::Strict));
        for is_shared in order {
            let [mine, yours] = [given(is_shared), given(is_shared)];
            assert_eq!(content(&planned.run(&mine).unwrap()), content(&interpreted.run(&yours).unwrap()));
            assert_eq!(content(&mine), content(&yours));
        }
    }
    let runner = Runner::new(&program).unwrap();
    runner.run(&given(true)).unwrap();
    // The next inputs get the plan that is for them.
    let alone = runner.plan(&given(false)).unwrap();
    assert_eq!(alone.alone.len(), 1, "{alone}");
    assert!(Runner::new(&program).unwrap().plan(&given(true)).unwrap().alone.is_empty());
}

#[test]
fn parts_of_one_storage_are_copied_to_each_other() {
    let mut graph = Graph::new();
    let [cache, other, new, at] = ["cache", "other", "new", "at"].map(|it| graph.placeholder(it));
    let mut aten =
        |op: &str, args: Vec<Arg>| graph.call_function(&format!("torch.ops.aten.{op}.default"), args, vec![]);
    let made = aten("index_copy", vec![cache.into(), Arg::Int(1), at.into(), new.into()]);
    aten("copy_", vec![other.into(), made.into()]);
    aten("copy_", vec![cache.into(), made.into()]);
    let sum = aten("sum", vec![other.into()]);
    graph.output(Arg::Tuple(vec![sum.into()]));
    let parts = || {
        let all = noise(&[2, 2, 6, 4], 1);
        let part = |at: usize| Value::Tensor(all.as_strided(&[2, 6, 4], &[24, 4, 1], at * 48).unwrap());
        [&[part(0), part(1)], &given(false)[2..]].concat()
    };
    let program = Library::default().export(&GraphModule::new(graph), &given(false)).unwrap();
    for precision in [Precision::Strict, Precision::Fast] {
        let [mine, yours] = [(); 2].map(|()| parts());
        let runner = Runner::new(&program).unwrap().with_precision(precision);
        let interpreted = Runner::new(&program).unwrap().with_mode(Mode::Interpret);
        for _ in 0..2 {
            assert_eq!(content(&runner.run(&mine).unwrap()), content(&interpreted.run(&yours).unwrap()));
            assert_eq!(content(&mine), content(&yours));
        }
    }
}

#[test]
fn a_wrong_number_of_outputs_is_refused_before_anything_is_written() {
    let runner = Runner::new(&program()).unwrap();
    let before = state(&runner);
    assert_eq!(runner.run_into(&step(0), &[]).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(state(&runner), before);
}
