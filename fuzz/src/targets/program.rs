//! A program with any JSON is loaded into a graph that keeps its rules, or refused with a typed error.
//!
//! The input is the JSON of the program and, after a line that says `--`, the one that describes its weights.

use crate::stored;
use tracefx_pt2::{LoadOptions, load};

pub(crate) fn check(input: &[u8]) {
    let split = input.windows(4).position(|it| it == b"\n--\n");
    let (program, weights) = split.map_or((input, &b"{\"config\": {}}"[..]), |at| (&input[..at], &input[at + 4..]));
    let archive = stored(&[
        ("m/models/model.json", program),
        ("m/data/weights/model_weights_config.json", weights),
        ("m/data/weights/weight_0", &[1; 64]),
        ("m/data/weights/weight_1", &[2; 64]),
        ("m/data/constants/model_constants_config.json", b"{\"config\": {}}"),
        ("m/archive_format", b"pt2"),
        ("m/archive_version", b"0"),
    ]);
    if let Ok(program) = load(&archive, &LoadOptions::default()) {
        let problems = program.module.graph.lint(Some(&program.module));
        assert!(problems.is_empty(), "{}", problems[0]);
        assert!(program.module.graph.to_string().starts_with("graph()"));
        drop(program.module());
    }
}
