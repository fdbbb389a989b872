//! The native command `tracefx`.
//!
//! Exit codes: 0 done, 1 the program or its inputs were refused, 2 the command line was wrong.
#![forbid(unsafe_code)]

mod calls;
mod files;
mod session;
mod values;

use clap::{Parser, Subcommand};
use files::{open_program, read, write, write_with};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tracefx_core::{Diagnostic, Result};
use tracefx_engine::{ArchiveWriter, Format, Library, Runner, SaveOptions, inspect, read_inputs, write_outputs};
use tracefx_export::{ExportedProgram, default_decompositions};

/// Opens, inspects, runs and converts programs that PyTorch exported. Opening a file runs no code of it.
#[derive(Parser)]
#[command(name = "tracefx", version, about)]
struct Cli {
    /// Prints JSON for machines, errors included.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Shows the graph, the signature, the constraints, the sizes, and which operators are supported.
    Inspect {
        /// A .pt2 archive or .fxg file.
        file: PathBuf,
        /// Shows the program in terms of core operators, without writes.
        #[arg(long)]
        decompose: bool,
    },
    /// Runs a program on the inputs of a .safetensors file.
    Run {
        /// A .pt2 archive or .fxg file.
        file: PathBuf,
        /// The inputs: `in0`, `in1`… by position, or the names that `inspect` shows.
        #[arg(long)]
        inputs: PathBuf,
        /// Where the outputs go, as `out0`, `out1`….
        #[arg(long)]
        outputs: PathBuf,
        /// Runs this often, and tells the fastest time and the median; the outputs are those of the first run.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        repeat: u32,
    },
    /// Writes a program as an archive of PyTorch (.pt2), or in the byte format of tracefx.
    Convert {
        /// A .pt2 archive or .fxg file.
        input: PathBuf,
        /// The file to write: a .pt2 archive where its name ends so, else an .fxg file.
        output: PathBuf,
        /// Writes the program in terms of core operators, without writes to tensors.
        #[arg(long)]
        decompose: bool,
    },
    /// Writes the joint program of a loss and its gradients, which a training step runs.
    Joint {
        /// A .pt2 archive or .fxg file.
        input: PathBuf,
        /// The .fxg file or .pt2 archive to write.
        output: PathBuf,
        /// Which of the results of the graph is the loss.
        #[arg(long, default_value_t = 0)]
        loss_index: usize,
    },
    /// Answers requests on standard input, one JSON object a line.
    #[command(hide = true)]
    Session,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Verb::Session = cli.verb {
        let talk = session::converse(std::io::stdin().lock(), std::io::stdout().lock());
        return if talk.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match execute(&cli) {
        Ok(text) => {
            // A reader that stops reading, such as `head`, is no failure of ours.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            let text = if cli.json {
                json!({ "error": problem_json(&problem) }).to_string()
            } else {
                format!("error: {problem}")
            };
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

fn execute(cli: &Cli) -> Result<String> {
    match &cli.verb {
        Verb::Inspect { file, decompose } => {
            let report = inspect(&opened(file, *decompose)?);
            Ok(if cli.json { json!(report).to_string() } else { report.to_string() })
        }
        Verb::Run { file, inputs, outputs, repeat } => {
            let runner = Runner::new(&open_program(file)?)?;
            let inputs = read_inputs(runner.program(), &read(inputs)?)?;
            let start = Instant::now();
            let results = runner.run(&inputs)?;
            let mut times = vec![start.elapsed().as_secs_f64() * 1e3];
            // Written at once: later calls may change the state that the outputs look at.
            write(outputs, &write_outputs(&results)?)?;
            for _ in 1..*repeat {
                let start = Instant::now();
                runner.run(&inputs)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            let (n, milliseconds, median) = (results.len(), times[0], times[times.len() / 2]);
            Ok(if cli.json {
                json!({ "outputs": n, "milliseconds": milliseconds, "median": median }).to_string()
            } else {
                let median = if *repeat > 1 { format!(" (median {median:.3} ms)") } else { String::new() };
                format!("{n} outputs in {milliseconds:.3} ms{median}, written to {}", outputs.display())
            })
        }
        Verb::Convert { input, output, decompose } => converted(cli, &opened(input, *decompose)?, input, output),
        Verb::Joint { input, output, loss_index } => {
            let program = open_program(input)?;
            converted(cli, &program.export_forward_backward(*loss_index, &default_decompositions())?, input, output)
        }
        Verb::Session => Ok(String::new()),
    }
}

/// Writes a program that was made of a file, and tells so.
fn converted(cli: &Cli, program: &ExportedProgram, input: &Path, output: &Path) -> Result<String> {
    let format = if output.extension().is_some_and(|it| it == "pt2") { Format::Pt2 } else { Format::Fxg };
    let n_bytes = match format {
        Format::Pt2 => save_archive(program, output, &Library::default())?,
        Format::Fxg => {
            let converted = tracefx_wire::encode_program(program, &tracefx_wire::Options::FILE)?;
            write(output, &converted)?;
            converted.len() as u64
        }
    };
    Ok(if cli.json {
        json!({ "to": format.name(), "bytes": n_bytes }).to_string()
    } else {
        format!("{} → {} ({n_bytes} bytes)", input.display(), output.display())
    })
}

/// The program of these bytes, in terms of core operators if that is asked for.
fn opened(file: &Path, decompose: bool) -> Result<ExportedProgram> {
    let program = open_program(file)?;
    if decompose { program.run_decompositions(&default_decompositions()) } else { Ok(program) }
}

/// Writes an archive of PyTorch, its root folder called as the file; gives the number of bytes.
fn save_archive(program: &ExportedProgram, path: &Path, library: &Library) -> Result<u64> {
    let root = path.file_stem().map_or("archive".into(), |it| it.to_string_lossy()).into_owned();
    let options = SaveOptions { root, registry: library.registry(), ..SaveOptions::default() };
    let mut archive = ArchiveWriter::new(program, &options)?;
    write_with(path, |file| archive.write_to(file))?;
    Ok(archive.len())
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
