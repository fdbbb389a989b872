//! `tracefx bench`: how long a program takes, by its plan and node by node, on one thread and on several.

use crate::device::on_device;
use crate::{Refusal, Result, inputs_of};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use tracefx_engine::command::{CommandLine, DEVICES};
use tracefx_engine::{Library, Limits, Mode, RunLimits, Runner, Values, get_num_threads, with_num_threads};

/// How long a way of running is timed, where nobody says how often.
const BUDGET: Duration = Duration::from_secs(1);

/// How often it runs at least, and at most, within that.
const RUNS: (usize, usize) = (3, 10_000);

/// Milliseconds of runs that did the same.
struct Times {
    /// The first run, which makes the plan and what it keeps.
    first: f64,
    /// The others, the shortest first.
    later: Vec<f64>,
}

impl Times {
    /// Runs until it is enough. The first run warms up, and is told by itself.
    fn of(repeat: Option<usize>, mut run: impl FnMut() -> Result<()>) -> Result<Self> {
        let mut timed = || -> Result<f64> {
            let start = Instant::now();
            run()?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        };
        let first = timed()?;
        let (mut later, start) = (Vec::new(), Instant::now());
        let is_enough = |n: usize| match repeat {
            Some(repeat) => n >= repeat,
            None => n >= RUNS.1 || n >= RUNS.0 && start.elapsed() >= BUDGET,
        };
        while !is_enough(later.len()) {
            later.push(timed()?);
        }
        later.sort_by(f64::total_cmp);
        Ok(Times { first, later })
    }

    /// The time that this share of the runs does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.later.len() - 1;
        self.later[(last as f64 * share).round() as usize]
    }
}

/// Times the program of a file in each way that the line leaves open.
pub(crate) fn times(line: &CommandLine, file: &Path, limits: &Limits, of_runs: RunLimits) -> Result<String> {
    let most = line.number("threads", 1, get_num_threads() as u64).map_err(Refusal::CommandLine)?;
    let repeat = line.number("repeat", 1, 0).map_err(Refusal::CommandLine)?;
    let repeat = usize::try_from(repeat).ok().filter(|it| *it > 0);
    let precision = line.precision().map_err(Refusal::CommandLine)?;
    let device = line.device().map_err(Refusal::CommandLine)?;
    let library = Library::extended();
    let program = library.open_file(file, limits)?;
    // Each way has a runner of its own, so that none runs on what another one has made ready.
    let ready = |mode: Mode| -> Result<(Runner, Values)> {
        let runner = library.runner(&program)?.with_limits(of_runs.clone()).with_mode(mode).with_precision(precision);
        let runner = if mode == Mode::Plan { on_device(runner, device)? } else { runner };
        let inputs = inputs_of(line, &runner, limits)?;
        Ok((runner, inputs))
    };
    // A GPU runs plans alone; its numbers are those beside the CPU's of a run without --device.
    let is_on_cpu = device == DEVICES[0];
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for (mode, name) in [(Mode::Plan, "plan"), (Mode::Interpret, "interpret")] {
        if mode == Mode::Interpret && !is_on_cpu {
            continue;
        }
        let mut counts = vec![usize::try_from(most).unwrap_or(usize::MAX)];
        if is_on_cpu && most > 1 {
            counts.insert(0, 1);
        }
        for threads in counts {
            let (runner, inputs) = ready(mode)?;
            let times = with_num_threads(threads, || Times::of(repeat, || Ok(runner.run(&inputs).map(drop)?)))?;
            let [fastest, low, median, high] = [0.0, 0.1, 0.5, 0.9].map(|it| times.quantile(it));
            let (first, runs) = (times.first, times.later.len());
            rows.push(json!({
                "mode": name, "device": device, "threads": threads, "runs": runs, "first": first,
                "fastest": fastest, "median": median, "p10": low, "p90": high,
            }));
            let who = if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") };
            let who = if is_on_cpu { who } else { format!("{device}, {who}") };
            lines.push(format!(
                "{:<24} median {median:.3} ms ({low:.3} ms to {high:.3} ms), fastest {fastest:.3} ms, first {first:.3} ms, {runs} runs",
                format!("{name}, {who}")
            ));
        }
    }
    let inputs = if line.has("inputs") { "given" } else { "zeros" };
    Ok(if line.has("json") {
        json!({ "inputs": inputs, "rows": rows }).to_string()
    } else {
        format!("{}\nThe range has eight of ten runs; inputs: {inputs}.", lines.join("\n"))
    })
}
