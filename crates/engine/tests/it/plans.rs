//! Every recorded program by its plan: what the interpreter gives, to the bit, and which programs have none.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use tracefx_core::Tensor;
use tracefx_engine::{Library, Limits, Mode, PlanReport, Precision, Runner, StepSources, open, read_inputs};
use tracefx_export::ExportedProgram;
use tracefx_ops::Value;
use tracefx_plan::Plan;

/// Why programs have no plan, and which.
const REFUSED: &str = "\
the operator fxtest.accum_.default is not implemented: custom_op_mutating custom_op_mutating__core
the operator fxtest.scale_add.default is not implemented: custom_op
";

/// The folders of programs below this one, in order.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut inner: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    inner.sort();
    for path in inner.into_iter().filter(|it| it.is_dir()) {
        if path.join("model.pt2").exists() { found.push(path) } else { programs(&path, found) }
    }
}

pub(crate) fn fixtures(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(folder), &mut found);
    found
}

/// The bytes of every tensor, and how it lies in memory; numbers as text.
pub(crate) fn content(values: &[Value<Tensor>]) -> Vec<String> {
    let print = |it: &Tensor| format!("{it:?} {:?}", it.to_bytes().unwrap());
    values.iter().map(|it| format!("{:?}", it.map(&mut |it| print(it)))).collect()
}

/// Copies of the inputs, so that one run does not see what another wrote.
pub(crate) fn copies(inputs: &[Value<Tensor>]) -> Vec<Value<Tensor>> {
    inputs
        .iter()
        .map(|it| {
            it.map(&mut |it| {
                let storage = it.storage().lazy_clone();
                Tensor::view_of(storage, it.dtype(), it.sizes(), it.strides(), it.offset()).unwrap()
            })
        })
        .collect()
}

/// A program with its recorded inputs; nothing of one that does not open.
pub(crate) fn recorded(folder: &Path) -> Option<(ExportedProgram, Vec<Vec<Value<Tensor>>>)> {
    let program = open(&std::fs::read(folder.join("model.pt2")).unwrap(), &Limits::default()).ok()?;
    let is_inputs = |it: &PathBuf| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("inputs") && name.ends_with(".safetensors")
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).filter(is_inputs).collect();
    files.sort();
    let read = |it: &PathBuf| read_inputs(&program, &std::fs::read(it).unwrap()).ok();
    let calls = files.iter().filter_map(read).collect();
    Some((program, calls))
}

/// Whether a plan is what its bytes say; and fewer of them, or others, are refused, or are a valid plan.
fn comes_back(plan: &Plan) {
    let bytes = plan.to_bytes().unwrap();
    let again = Plan::from_bytes(&bytes).unwrap();
    assert_eq!(again.to_string(), plan.to_string());
    assert!(again.to_bytes().unwrap() == bytes, "the constants are others");
    let outline = plan.to_outline().unwrap();
    assert_eq!(Plan::from_outline(&outline).unwrap().to_string(), plan.to_string());
    let step = (outline.len() / 64).max(1);
    for at in (0..outline.len()).step_by(step) {
        assert!(Plan::from_outline(&outline[..at]).is_err(), "{at} of {} bytes are a plan", outline.len());
        let mut other = outline.clone();
        other[at] ^= 1 << (at % 8);
        drop(Plan::from_outline(&other));
    }
}

/// Runs a program on its recorded inputs, three times by each way, and tells why it has no plan; nothing of a program that does
/// not run.
fn compare(folder: &Path) -> Option<Option<String>> {
    let (program, calls) = recorded(folder)?;
    let library = Library::extended();
    let runner = |mode| library.runner(&program).map(|it| it.with_mode(mode).with_precision(Precision::Strict));
    let (interpreted, planned) = (runner(Mode::Interpret).ok()?, runner(Mode::Plan).ok()?);
    let plan = planned.plan(calls.first()?);
    if let Ok(plan) = &plan {
        comes_back(plan);
    }
    for inputs in calls.iter().flat_map(|it| [it; 3]) {
        let (mine, yours) = (copies(inputs), copies(inputs));
        let results = [interpreted.run(&mine), planned.run(&yours)];
        let name = folder.display();
        match results {
            [Ok(expected), Ok(given)] => assert_eq!(content(&given), content(&expected), "{name}"),
            [Err(expected), Err(given)] => assert_eq!(given.to_string(), expected.to_string(), "{name}"),
            [expected, given] => panic!("{name}: {expected:?} and {given:?}"),
        }
        assert_eq!(content(&yours), content(&mine), "{name}: inputs");
        let state = |it: &Runner| content(&it.state().map(|(_, it)| Value::Tensor(it.clone())).collect::<Vec<_>>());
        assert_eq!(state(&planned), state(&interpreted), "{name}: state");
    }
    Some(plan.err().map(|problem| problem.message().to_owned()))
}

/// Whether each step reads what steps before it wrote, or an input; and what it writes is read, given, or left in the program.
fn sources_are_before(report: &PlanReport, n_inputs: usize, name: &str) {
    let all = report.steps.iter().map(|it| &it.reads).chain([&report.results]);
    for (at, StepSources { steps, inputs }) in all.enumerate() {
        assert!(steps.iter().all(|it| (*it as usize) < at), "{name}: step {at} reads of {steps:?}");
        assert!(inputs.iter().all(|it| (*it as usize) < n_inputs), "{name}: step {at} reads the inputs {inputs:?}");
    }
}

#[test]
fn a_report_says_where_values_come_from() {
    let mut n = 0;
    for folder in fixtures("programs") {
        let Some((program, calls)) = recorded(&folder) else { continue };
        let (Ok(runner), Some(inputs)) = (Runner::new(&program), calls.first()) else { continue };
        let Ok(report) = runner.explain(inputs) else { continue };
        sources_are_before(&report, inputs.len(), &folder.display().to_string());
        n += 1;
        if folder.ends_with("resnet_block_tiny") {
            let of = |name: &str| &report.steps[report.steps.iter().rposition(|it| it.node == name).unwrap()];
            let names: Vec<&str> =
                (of("relu__2").reads.steps.iter()).map(|it| &*report.steps[*it as usize].node).collect();
            // A block's sum reads the convolution before it and what goes around the block.
            assert_eq!(names, ["max_pool2d", "relu__1"]);
            assert_eq!((&report.steps[0].reads.inputs[..], report.steps[0].reads.steps.len()), (&[0][..], 0));
            assert_eq!(report.results.steps, [report.steps.len() as u32 - 1]);
        }
    }
    assert!(n >= 20, "{n} programs have plans");
}

#[test]
fn a_plan_gives_what_the_interpreter_gives() {
    let mut reasons = std::collections::BTreeMap::<String, Vec<String>>::new();
    let mut n_planned = 0;
    for folder in ["programs", "programs-compat"].iter().flat_map(|it| fixtures(it)) {
        match compare(&folder) {
            Some(None) => n_planned += 1,
            Some(Some(reason)) => {
                reasons.entry(reason).or_default().push(folder.file_name().unwrap().to_string_lossy().into())
            }
            None => {}
        }
    }
    let mut text = String::new();
    for (reason, names) in reasons {
        writeln!(text, "{reason}: {}", names.join(" ")).unwrap();
    }
    assert!(n_planned >= 20, "{n_planned} programs have a plan");
    assert_eq!(text, REFUSED);
}

type Values = Vec<Value<Tensor>>;
type Run = dyn Fn(&Runner, &[Value<Tensor>]) -> Option<Values>;

/// What a fresh runner gives, and leaves in the inputs and in the program, where it is run so.
fn left_by(program: &ExportedProgram, inputs: &[Value<Tensor>], run: &Run) -> Option<(Values, Values, Values)> {
    let runner = Runner::new(program).ok()?.with_precision(Precision::Strict);
    let inputs = copies(inputs);
    let given = run(&runner, &inputs)?;
    let state = runner.state().map(|(_, it)| Value::Tensor(it.clone())).collect();
    Some((given, inputs, state))
}

#[test]
fn a_run_in_parts_gives_what_a_whole_one_gives() {
    let whole = |runner: &Runner, inputs: &[Value<Tensor>]| runner.run(inputs).ok();
    let in_parts = |runner: &Runner, inputs: &[Value<Tensor>]| {
        let mut parted = runner.parted(inputs).ok()??;
        let n_steps = parted.plan().steps.len();
        // One that is left in the middle leaves nothing of itself.
        if parted.begin(runner, copies(inputs)).ok()? && !runner.changes_inputs() {
            parted.run(runner, 0..n_steps / 2, &mut |_, _| Ok(())).unwrap();
        }
        if !parted.begin(runner, inputs.to_vec()).ok()? {
            return None;
        }
        for at in 0..n_steps {
            parted.run(runner, at..at + 1, &mut |_, _| Ok(())).ok()?;
        }
        let given = parted.end().unwrap();
        assert!(parted.end().is_err(), "a run ends twice");
        assert!(parted.run(runner, 0..1, &mut |_, _| Ok(())).is_err(), "no run goes on");
        Some(given)
    };
    let mut n_compared = 0;
    for folder in ["programs", "programs-compat"].iter().flat_map(|it| fixtures(it)) {
        let Some((program, calls)) = recorded(&folder) else { continue };
        for inputs in &calls {
            let wanted = [(); 2].map(|()| left_by(&program, inputs, &whole));
            let [Some(wanted), Some(again)] = wanted else { continue };
            let Some(given) = left_by(&program, inputs, &in_parts) else { continue };
            let is_random = content(&wanted.0) != content(&again.0);
            if !is_random {
                let name = folder.display();
                assert_eq!(content(&given.0), content(&wanted.0), "{name}");
                assert_eq!(content(&given.1), content(&wanted.1), "{name}: inputs");
                assert_eq!(content(&given.2), content(&wanted.2), "{name}: state");
                n_compared += 1;
            }
        }
    }
    assert!(n_compared >= 20, "{n_compared} calls are compared");
}

#[test]
fn an_interpreted_program_has_no_steps_to_time() {
    let folder = fixtures("programs").into_iter().find(|it| it.ends_with("digits_cnn")).unwrap();
    let program = open(&std::fs::read(folder.join("model.pt2")).unwrap(), &Limits::default()).unwrap();
    let inputs = read_inputs(&program, &std::fs::read(folder.join("inputs.safetensors")).unwrap()).unwrap();
    let runner = |mode| Runner::new(&program).unwrap().with_mode(mode);
    let profile = runner(Mode::Plan).profile(&inputs, 2).unwrap();
    assert!(profile.steps.iter().all(|it| it.milliseconds.is_some()), "{profile}");
    let problem = runner(Mode::Interpret).profile(&inputs, 2).unwrap_err();
    assert_eq!(problem.code().name(), "InvalidOption");
    assert!(problem.help_text().is_some());
}
