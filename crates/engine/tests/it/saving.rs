//! Every recorded program by its saved plans: what the whole engine gives, to the bit, and which programs the runtime cannot run.

use crate::plans::{content, copies, fixtures, recorded};
use std::path::Path;
use tracefx_core::{Code, DType};
use tracefx_engine::{Limits, Mode, Runner, open};
use tracefx_ir::{TensorMeta, Val};
use tracefx_runtime::Model;

/// What the runtime lacks, and for which programs.
const REFUSED: &str = "\
linalg_ops__core: the runtime has no kernel of aten._linalg_det.default, aten._linalg_eigh.default, \
aten._linalg_slogdet.default, aten._linalg_solve_ex.default, aten._linalg_svd.default, aten.linalg_cholesky_ex.default, \
aten.linalg_inv_ex.default, aten.linalg_solve_triangular.default
special_values: the runtime has no kernel of aten.sort.default
unbacked_item: the runtime has no kernel of aten._assert_scalar.default
";

/// Runs a program on its recorded inputs by the engine and by the runtime, and says what the runtime lacks; nothing of a program that
/// has no plan.
fn compare(folder: &Path) -> Option<Option<String>> {
    let (program, calls) = recorded(folder)?;
    let runner = Runner::new(&program).ok()?.with_mode(Mode::Plan);
    runner.plan(calls.first()?).ok()?;
    let calls: Vec<_> = calls.into_iter().filter(|it| runner.plan(it).is_ok()).collect();
    let file = match runner.compiled_file(&calls) {
        Ok(file) => file,
        Err(problem) => {
            assert_eq!(problem.code(), Code::NotImplemented, "{}", folder.display());
            return Some(Some(problem.message().to_owned()));
        }
    };
    // The file opens as the program that it was made of.
    assert_eq!(open(&file, &Limits::default()).unwrap().to_string(), program.to_string());
    let model = Model::open(&file).unwrap();
    for inputs in calls.iter().flat_map(|it| [it; 2]) {
        let (mine, yours) = (copies(inputs), copies(inputs));
        let name = folder.display();
        match (runner.run(&mine), model.run(&yours)) {
            (Ok(expected), Ok(given)) => assert_eq!(content(&given), content(&expected), "{name}"),
            (Err(expected), Err(given)) => assert_eq!(given.code(), expected.code(), "{name}"),
            (expected, given) => panic!("{name}: {expected:?} and {given:?}"),
        }
        assert_eq!(content(&yours), content(&mine), "{name}: inputs");
    }
    Some(None)
}

#[test]
fn the_runtime_gives_what_the_engine_gives() {
    let (mut refused, mut n_run) = (String::new(), 0);
    for folder in ["programs", "programs-compat"].iter().flat_map(|it| fixtures(it)) {
        match compare(&folder) {
            Some(None) => n_run += 1,
            Some(Some(why)) => {
                refused += &format!("{}: {why}\n", folder.file_name().unwrap().to_string_lossy());
            }
            None => {}
        }
    }
    assert_eq!(refused, REFUSED, "{n_run} ran");
    assert!(n_run > 20, "{n_run} programs ran");
}

#[test]
fn zeros_of_sizes_that_a_file_states_are_refused_before_they_are_allocated() {
    let (mut program, _) =
        recorded(&fixtures("programs").into_iter().find(|it| it.ends_with("cond_simple")).unwrap()).unwrap();
    let graph = &mut program.module.graph;
    let (x, y) = (graph.find("x").unwrap(), graph.find("y").unwrap());
    let mut zeros = |of_x: &[i64], of_y: &[i64]| {
        for (input, sizes) in [(x, of_x), (y, of_y)] {
            let sizes = sizes.iter().map(|&it| it.into()).collect();
            program.module.graph.meta_mut(input).val = Some(Val::Tensor(TensorMeta::contiguous(DType::Float32, sizes)));
        }
        Runner::new(&program).unwrap().zero_inputs()
    };
    assert_eq!(zeros(&[2, 3], &[2, 3]).unwrap().len(), 2);
    // The product of the first leaves 64 bits; of the second, both inputs together are too large.
    for (of_x, of_y) in [(&[1 << 40, 1 << 40][..], &[1][..]), (&[1 << 29], &[1 << 30])] {
        let problem = zeros(of_x, of_y).unwrap_err();
        assert_eq!(problem.code(), Code::LimitExceeded);
        assert!(
            problem.message().contains("4294967296 bytes") && problem.message().contains("`input_bytes`"),
            "{problem}"
        );
    }
}
