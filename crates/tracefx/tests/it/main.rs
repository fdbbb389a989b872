//! What users of the crate rely on beside what each of its parts tests.

mod arrays;

use std::sync::Arc;
use tracefx::prelude::*;

#[expect(dead_code, reason = "its main function writes a file")]
#[path = "../../examples/edit.rs"]
mod edit;

#[test]
fn the_example_of_editing_gives_the_same_in_each_thread_and_is_saved() {
    let (program, results) = edit::run().unwrap();
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    for (n, result) in results.iter().enumerate() {
        let x = 2.0 * n as f32;
        for (given, expected) in result.iter().zip([sigmoid(x), sigmoid(-x), 0.5]) {
            assert!((given - expected).abs() < 1e-6, "{given} {expected}");
        }
    }
    let mut bytes = Vec::new();
    save(&program, &SaveOptions::default(), &mut bytes).unwrap();
    let again = open(&bytes, &Limits::default()).unwrap();
    assert_eq!(again.module.graph.to_string(), program.module.graph.to_string());
}

#[test]
fn programs_runners_and_tensors_go_from_thread_to_thread() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Tensor>();
    is_shared::<GraphModule>();
    is_shared::<ExportedProgram>();
    is_shared::<Library>();
    is_shared::<Runner>();
    is_shared::<Diagnostic>();
    is_shared::<tracefx::runtime::Model>();
}

#[test]
fn many_threads_call_one_runner() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/programs/digits_cnn/model.pt2");
    let program = open_file(path.as_ref(), &Limits::default()).unwrap();
    let runner = Arc::new(Runner::new(&program).unwrap());
    let pixels: Vec<f32> = (0..128).map(|it| it as f32 / 8.0).collect();
    let inputs = [Value::Tensor(Tensor::from_slice(&pixels, &[2, 1, 8, 8]).unwrap())];
    let elements = |outputs: &[Value<Tensor>]| match outputs {
        [Value::Tensor(it)] => it.to_vec::<f32>().unwrap(),
        other => panic!("{other:?}"),
    };
    let expected = elements(&runner.run(&inputs).unwrap());
    let call = || {
        let (runner, inputs) = (Arc::clone(&runner), inputs.clone());
        move || (0..20).map(|_| elements(&runner.run(&inputs).unwrap())).collect::<Vec<_>>()
    };
    let threads: Vec<_> = (0..16).map(|_| std::thread::spawn(call())).collect();
    for thread in threads {
        assert!(thread.join().unwrap().iter().all(|it| *it == expected));
    }
}
