//! Times of the cases of a JSON file, whose names may be picked by a part of them.

use serde_json::Value as Json;
use std::time::{Duration, Instant};

/// Prints the median time of what `prepare` makes of each case, in microseconds, as a JSON object.
pub(crate) fn time<Run: FnMut()>(cases: &str, prepare: impl Fn(&Json) -> Run) {
    let cases: Json = serde_json::from_str(cases).unwrap();
    let picked: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let mut times = serde_json::Map::new();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        if !picked.is_empty() && !picked.iter().any(|it| name.contains(it.as_str())) {
            continue;
        }
        times.insert(name.into(), (median(prepare(case)).as_nanos() as f64 / 1000.0).into());
    }
    #[allow(clippy::print_stdout, reason = "the times are what it is run for")]
    {
        println!("{}", Json::Object(times));
    }
}

/// The median of as many runs as fit a fifth of a second, after a first one that does not count.
fn median(mut run: impl FnMut()) -> Duration {
    run();
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (start.elapsed() < Duration::from_millis(200) && times.len() < 1000) {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}
