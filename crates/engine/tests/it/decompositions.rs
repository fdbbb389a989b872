//! Programs in terms of core operators compute what they computed before.

use std::fs;
use std::path::Path;
use tracefx_core::{Code, Element, Scalar, Tensor};
use tracefx_engine::{Limits, Runner, open, read_inputs};
use tracefx_export::default_decompositions;
use tracefx_ops::Value;

fn scalars(tensor: &Tensor) -> Vec<Scalar> {
    tracefx_core::with_element!(tensor.dtype(), T => {
        tensor.to_vec::<T>().unwrap().into_iter().map(Element::to_scalar).collect()
    }, else Vec::new())
}

fn is_close(got: Scalar, want: Scalar) -> bool {
    let (got, want) = (got.to_complex(), want.to_complex());
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 + 1e-5 * b.abs();
    close(got.re, want.re) && close(got.im, want.im)
}

#[test]
fn decomposed_programs_give_the_same_numbers() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs");
    let mut n_compared = 0;
    for entry in fs::read_dir(&programs).unwrap() {
        let folder = entry.unwrap().path();
        let (Ok(bytes), Ok(data)) = (fs::read(folder.join("model.pt2")), fs::read(folder.join("inputs.safetensors")))
        else {
            continue;
        };
        let program = open(&bytes, &Limits::default()).unwrap();
        let core = match program.run_decompositions(&default_decompositions()) {
            Ok(core) => core,
            Err(problem) if problem.code() == Code::NotImplemented => continue,
            Err(problem) => panic!("{}: {problem}", folder.display()),
        };
        // Inputs that are no tensors are not in the file.
        let Ok(inputs) = read_inputs(&program, &data) else { continue };
        let run = |program| {
            let inputs = inputs.iter().map(|it| match it {
                Value::Tensor(it) => Value::Tensor(it.compact_copy().unwrap()),
                other => other.clone(),
            });
            Runner::new(program)?.run(&inputs.collect::<Vec<_>>())
        };
        let (want, got) = match (run(&program), run(&core)) {
            (Ok(want), Ok(got)) => (want, got),
            (Err(problem), _) | (_, Err(problem)) => {
                assert_eq!(problem.code(), Code::NotImplemented, "{}: {problem}", folder.display());
                continue;
            }
        };
        assert_eq!(got.len(), want.len(), "{}", folder.display());
        for (got, want) in got.iter().zip(&want) {
            let (Value::Tensor(got), Value::Tensor(want)) = (got, want) else {
                assert_eq!(got.kind_name(), want.kind_name(), "{}", folder.display());
                continue;
            };
            assert_eq!((got.dtype(), got.sizes()), (want.dtype(), want.sizes()), "{}", folder.display());
            let differs = scalars(got).into_iter().zip(scalars(want)).find(|(got, want)| !is_close(*got, *want));
            assert!(differs.is_none(), "{}: {differs:?}", folder.display());
            n_compared += 1;
        }
    }
    assert!(n_compared > 10, "{n_compared} outputs were compared");
}
