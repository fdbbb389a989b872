//! The native command `tracefx`.
//!
//! Exit codes: 0 done, 1 the program or its inputs were refused, 2 the command line was wrong. Of `diff`, which scripts ask whether two
//! programs are the same, 1 is that they differ, and 2 whatever else there is. What it takes is the table of
//! [`tracefx_engine::command`], which `npx tracefx` has, too.
#![forbid(unsafe_code)]

mod bench;
mod calls;
mod completions;
mod device;
mod diff;
mod doctor;
mod progress;
mod session;
mod values;

use crate::device::on_device;
use crate::progress::Progress;
use console::style;
use serde_json::json;
use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tracefx_core::{Code, Diagnostic};
use tracefx_engine::command::{Asked, CommandLine, usage};
use tracefx_engine::{
    Format, Library, Limits, RunLimits, Runner, SaveOptions, Values, printable, read_file, read_inputs, save_to,
    write_file, write_outputs,
};
use tracefx_export::ExportedProgram;

/// Why nothing was done.
#[derive(Debug)]
enum Refusal {
    /// The command line says something impossible.
    CommandLine(String),
    /// A file or a program is not what it should be.
    Of(Diagnostic),
}

impl From<Diagnostic> for Refusal {
    fn from(problem: Diagnostic) -> Self {
        Refusal::Of(problem)
    }
}

type Result<T> = std::result::Result<T, Refusal>;

/// What a verb tells, and the exit code of the command.
#[derive(Debug)]
struct Told {
    text: String,
    code: u8,
}

impl From<String> for Told {
    fn from(text: String) -> Self {
        Told { text, code: 0 }
    }
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // For programs that drive the engine; no verb of the table.
    if args.len() == 1 && args[0] == "session" {
        let talk = session::converse(std::io::stdin().lock(), std::io::stdout().lock());
        return if talk.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let is_json = args.iter().any(|it| it == "--json");
    let asked = CommandLine::read(args);
    let is_diff = matches!(&asked, Ok(Asked::Do(line)) if line.verb.name == "diff");
    answered(is_json, if is_diff { 2 } else { 1 }, || match asked.map_err(Refusal::CommandLine)? {
        Asked::Help => Ok(usage().into()),
        Asked::Version => Ok(format!("tracefx {}", env!("CARGO_PKG_VERSION")).into()),
        Asked::Do(line) => {
            let _progress = (!is_json).then(|| Progress::of(&line));
            execute(&line)
        }
    })
}

/// Prints what `work` gives, or why it gives nothing: `refused` is the exit code then. A bug of the engine is a refusal like others.
fn answered(is_json: bool, refused: u8, work: impl FnOnce() -> Result<Told>) -> ExitCode {
    let answer = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let panicked = Diagnostic::new(Code::Internal, "the engine panicked");
        Err(panicked.help("this is a bug of tracefx, please report it").into())
    });
    // A reader that stops reading, such as `head`, is no failure of ours.
    match answer {
        Ok(Told { text, code }) => {
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::from(code)
        }
        Err(Refusal::CommandLine(what)) if is_json => {
            let problem = Diagnostic::new(Code::InvalidOption, what).help(SHOWS_WHAT_THERE_IS);
            let _ = writeln!(std::io::stderr(), "{}", json!({ "error": problem_json(&problem) }));
            ExitCode::from(2)
        }
        Err(Refusal::CommandLine(what)) => {
            let (error, help) = (style("error:").red().bold().for_stderr(), style("help:").cyan().for_stderr());
            let _ = writeln!(std::io::stderr(), "{error} {what}\n{help} {SHOWS_WHAT_THERE_IS}");
            ExitCode::from(2)
        }
        Err(Refusal::Of(problem)) => {
            let text = if is_json {
                json!({ "error": problem_json(&problem) }).to_string()
            } else {
                let lines: Vec<String> = problem.to_string().split('\n').map(printable).collect();
                format!("{} {}", style("error:").red().bold().for_stderr(), lines.join("\n"))
            };
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(refused)
        }
    }
}

/// The help of a wrong command line.
const SHOWS_WHAT_THERE_IS: &str = "tracefx --help shows what there is";

/// The limits of a command line: those of files, and those of runs.
fn limits_of(line: &CommandLine) -> Result<(Limits, RunLimits)> {
    let (mut limits, mut of_runs) = (Limits::default(), RunLimits::default());
    for (name, value) in line.limits().map_err(Refusal::CommandLine)? {
        if of_runs.set(&name, value).is_err() {
            limits.set(&name, value).map_err(|_| Refusal::CommandLine(format!("there is no limit {name}")))?;
        }
    }
    Ok((limits, of_runs))
}

fn execute(line: &CommandLine) -> Result<Told> {
    let (limits, of_runs) = limits_of(line)?;
    if line.verb.name == "diff" { diff::differences(line, &limits) } else { Ok(told(line, &limits, of_runs)?.into()) }
}

/// What a verb tells that is done once it tells something.
fn told(line: &CommandLine, limits: &Limits, of_runs: RunLimits) -> Result<String> {
    let file = line.files.first().map_or(Path::new(""), Path::new);
    match line.verb.name {
        "inspect" => {
            let report = Library::extended().inspect(&opened(line, file, limits)?);
            Ok(if line.has("json") { json!(report).to_string() } else { report.to_string() })
        }
        "run" => run(line, file, limits, of_runs),
        "explain" => {
            let (runner, inputs) = made_ready(line, file, limits, of_runs)?;
            let report = runner.explain(&inputs)?;
            Ok(if line.has("json") { json!(report).to_string() } else { report.to_string() })
        }
        "profile" => {
            let repeat = line.number("repeat", 1, 10).map_err(Refusal::CommandLine)?;
            let (runner, inputs) = made_ready(line, file, limits, of_runs)?;
            let report = runner.profile(&inputs, usize::try_from(repeat).unwrap_or(usize::MAX))?;
            if let Some(path) = line.value("trace") {
                write(Path::new(path), report.chrome_trace().as_bytes())?;
            }
            Ok(if line.has("json") { json!(report).to_string() } else { report.to_string() })
        }
        "convert" => {
            let format = format_of(line)?;
            converted(line, &opened(line, file, limits)?, format)
        }
        "onnx" => onnx(line, file, limits),
        "compile" => compile(line, file, limits, of_runs),
        "joint" => {
            let format = format_of(line)?;
            let index = line.number("loss-index", 0, 0).map_err(Refusal::CommandLine)?;
            let program = Library::extended().open_file(file, limits)?;
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            converted(line, &program.export_forward_backward(index, &Library::extended().decompositions())?, format)
        }
        "bench" => bench::times(line, file, limits, of_runs),
        "doctor" => doctor::examine(line.has("json")),
        "completions" => {
            let shell = line.shell().map_err(Refusal::CommandLine)?;
            let script = completions::COMPLETIONS.iter().find(|(name, _)| *name == shell);
            Ok(script.expect("there is one for each shell of the table").1.trim_end().to_string())
        }
        "explore" => Err(Refusal::CommandLine("explore is of npx tracefx alone".to_string())),
        other => unreachable!("the table of verbs has {other}"),
    }
}

/// The program of a file, ready to run as the line says, and the inputs that are given.
fn made_ready(line: &CommandLine, file: &Path, limits: &Limits, of_runs: RunLimits) -> Result<(Runner, Values)> {
    let mode = line.mode().map_err(Refusal::CommandLine)?;
    let precision = line.precision().map_err(Refusal::CommandLine)?;
    let library = Library::extended();
    let runner = library.runner(&library.open_file(file, limits)?)?;
    let runner = runner.with_limits(of_runs).with_mode(mode).with_precision(precision);
    let runner = on_device(runner, line.device().map_err(Refusal::CommandLine)?)?;
    let inputs = inputs_of(line, &runner, limits)?;
    Ok((runner, inputs))
}

/// The inputs that are given, or zeros of the sizes that the program tells.
fn inputs_of(line: &CommandLine, runner: &Runner, limits: &Limits) -> Result<Values> {
    Ok(match line.value("inputs") {
        Some(path) => read_inputs(runner.program(), &read_file(Path::new(path), limits)?)?,
        None => runner.zero_inputs().map_err(|it| match it.code() {
            Code::InputShape => it.help("give inputs of such sizes: --inputs FILE"),
            _ => it,
        })?,
    })
}

fn run(line: &CommandLine, file: &Path, limits: &Limits, of_runs: RunLimits) -> Result<String> {
    let repeat = line.number("repeat", 1, 1).map_err(Refusal::CommandLine)?;
    let outputs = Path::new(line.value("outputs").expect("the table says that it is required"));
    let (runner, inputs) = made_ready(line, file, limits, of_runs)?;
    let start = Instant::now();
    let results = runner.run(&inputs)?;
    let mut times = vec![start.elapsed().as_secs_f64() * 1e3];
    // Written at once: later calls may change the state that the outputs look at.
    write(outputs, &write_outputs(&results)?)?;
    for _ in 1..repeat {
        let start = Instant::now();
        runner.run(&inputs)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let (n, milliseconds, median) = (results.len(), times[0], times[times.len() / 2]);
    Ok(if line.has("json") {
        json!({ "outputs": n, "milliseconds": milliseconds, "median": median }).to_string()
    } else {
        let median = if repeat > 1 { format!(" (median {median:.3} ms)") } else { String::new() };
        format!("{n} outputs in {milliseconds:.3} ms{median}, written to {}", outputs.display())
    })
}

fn format_of(line: &CommandLine) -> Result<Format> {
    line.format(&line.files[1].to_string_lossy()).map_err(Refusal::CommandLine)
}

/// Writes a program that was made of a file, and tells so.
fn converted(line: &CommandLine, program: &ExportedProgram, format: Format) -> Result<String> {
    let (input, output) = (Path::new(&line.files[0]), Path::new(&line.files[1]));
    let n_bytes = match format {
        Format::Pt2 => save_archive(program, output, &Library::extended())?,
        Format::Fxg => {
            let converted = tracefx_wire::encode_program(program, &tracefx_wire::Options::FILE)?;
            write(output, &converted)?;
            converted.len() as u64
        }
    };
    Ok(if line.has("json") {
        json!({ "to": format.name(), "bytes": n_bytes }).to_string()
    } else {
        format!("{} → {} ({n_bytes} bytes)", input.display(), output.display())
    })
}

/// Writes the program as an ONNX model.
fn onnx(line: &CommandLine, input: &Path, limits: &Limits) -> Result<String> {
    let library = Library::extended();
    let program = library.open_file(input, limits)?;
    let options = tracefx_onnx::Options::default();
    let model = match tracefx_onnx::to_onnx(&program, &options) {
        Err(problem) if !tracefx_onnx::is_translated(&program) => {
            // Where decomposing is refused, the operators that lack a translation say more.
            let core = program.run_decompositions(&library.decompositions()).map_err(|_| problem)?;
            tracefx_onnx::to_onnx(&core, &options)?
        }
        model => model?,
    };
    let output = Path::new(&line.files[1]);
    write(output, &model)?;
    Ok(if line.has("json") {
        json!({ "to": "onnx", "bytes": model.len(), "opset": tracefx_onnx::OPSET }).to_string()
    } else {
        format!("{} → {} ({} bytes, opset {})", input.display(), output.display(), model.len(), tracefx_onnx::OPSET)
    })
}

/// Writes the program with a plan for the inputs that are given, or for those that its sizes tell.
fn compile(line: &CommandLine, input: &Path, limits: &Limits, of_runs: RunLimits) -> Result<String> {
    let precision = line.precision().map_err(Refusal::CommandLine)?;
    let library = Library::extended();
    let runner = library.runner(&library.open_file(input, limits)?)?.with_limits(of_runs).with_precision(precision);
    let inputs = inputs_of(line, &runner, limits)?;
    let n_steps = runner.plan(&inputs)?.steps.len();
    let (file, output) = (runner.compiled_file(&[inputs])?, Path::new(&line.files[1]));
    write(output, &file)?;
    Ok(if line.has("json") {
        json!({ "to": "fxg", "bytes": file.len(), "steps": n_steps }).to_string()
    } else {
        format!("{} → {} ({} bytes, a plan of {n_steps} steps)", input.display(), output.display(), file.len())
    })
}

/// The program of a file, in terms of core operators if that is asked for.
fn opened(line: &CommandLine, file: &Path, limits: &Limits) -> Result<ExportedProgram> {
    let program = Library::extended().open_file(file, limits)?;
    Ok(if line.has("decompose") { program.run_decompositions(&Library::extended().decompositions())? } else { program })
}

fn write(path: &Path, bytes: &[u8]) -> tracefx_core::Result<()> {
    write_file(path, |file| {
        file.write_all(bytes)
            .map_err(|problem| Diagnostic::new(Code::Io, format!("could not write {}: {problem}", path.display())))
    })
}

/// Writes an archive of PyTorch, its root folder called as the file; gives the number of bytes.
fn save_archive(program: &ExportedProgram, path: &Path, library: &Library) -> tracefx_core::Result<u64> {
    let root = path.file_stem().map_or("archive".into(), |it| it.to_string_lossy()).into_owned();
    save_to(program, path, &SaveOptions { root, registry: library.registry(), ..SaveOptions::default() })
}

fn problem_json(problem: &Diagnostic) -> serde_json::Value {
    json!({
        "code": problem.code().id(),
        "name": problem.code().name(),
        "message": problem.message(),
        "node": problem.node_name(),
        "op": problem.op_name(),
        "notes": problem.notes(),
        "help": problem.help_text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_refusal() {
        let code = answered(false, 1, || panic!("a broken invariant"));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(1)));
    }

    #[test]
    fn every_verb_of_the_table_is_known() {
        for verb in tracefx_engine::command::VERBS.iter().filter(|it| it.name != "doctor") {
            let args = ["/no/such/file", "b.pt2"].into_iter().take(verb.files.len());
            let options = verb.required.iter().flat_map(|it| [format!("--{it}"), "x".to_string()]);
            let words = [verb.name.to_string()].into_iter().chain(args.map(String::from)).chain(options);
            let Ok(Asked::Do(line)) = CommandLine::read(words.map(OsString::from)) else { panic!("{}", verb.name) };
            match execute(&line) {
                Err(Refusal::CommandLine(_)) => {
                    assert!(["explore", "completions"].contains(&verb.name), "{}", verb.name)
                }
                Err(Refusal::Of(problem)) => assert_eq!(problem.code(), Code::Io, "{}", verb.name),
                Ok(told) => panic!("{}: {told:?}", verb.name),
            }
        }
    }
}
