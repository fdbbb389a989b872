//! `tracefx session`: a conversation for programs that drive the engine, one JSON request and one reply a line.
//!
//! | request | reply under `ok` |
//! |---|---|
//! | `{"do": "open", "file": PATH}` | `{"graph": TEXT, "operators": [NAME…], "outputs": [{"kind": KIND, "target": NAME}…]}`: what it calls, sub-graphs included, and what a run gives |
//! | `{"do": "open", "file": PATH, "decompose": true}` | the same of the program in terms of core operators |
//! | `{"do": "open", "file": PATH, "resave": true}` | the same of the program that was saved as an archive of PyTorch and opened again; `"resave": PATH` writes the archive there |
//! | `{"do": "define", "schema": TEXT, "file": PATH}` | nothing: the operator is made of what the program in the file does |
//! | `{"do": "start"}` | nothing: the program is ready, with its state as in the file |
//! | `{"do": "start", "device": "gpu"}` | the same on the GPU |
//! | `{"do": "run", "data": PATH, "inputs": [VALUE…], "results": PATH}` | `{"outputs": [VALUE…], "milliseconds": TIME}`; on the GPU also `"steps"`: why the CPU does each step of the plan, or null |
//! | `{"do": "call", "data": PATH, "calls": [CALL…], "results": PATH}` | what came of each call, in order |
//! | `{"do": "state", "names": [NAME…], "results": PATH}` | nothing: the tensors are in the file by name |
//!
//! A value is `{"tensor": KEY}` in a `.safetensors` file, seen with `size`, `stride` and `offset` where it has them;
//! `{"int": N}`, `{"float": X}`, `{"dtype": NAME}`, `{"layout": NAME}`, `{"device": NAME}`, `{"memory_format": NAME}`; or a
//! bool, a string, null or a list as they are. After a run the results hold the outputs, and the inputs as they are then
//! under `input.0`…. What is refused is under `error`, and the conversation goes on.
//!
//! A call is `{"op": NAME, "args": [VALUE…], "kwargs": {NAME: VALUE…}, "seed": N}`. Of it comes `{"results": [VALUE…], "drew": B}`,
//! where each tensor has its `dtype`, `size`, `stride` and `tolerance` (relative and absolute) too and `drew` says whether
//! random numbers were drawn, or `{"error": PROBLEM}`; and under `promised` what is known of the results without data, in
//! the same form without `tensor`, or `{"error": PROBLEM}`. Ints that are not known are strings.

use crate::calls::answer_calls;
use crate::device::on_device;
use crate::values::{parse_value, print_value};
use crate::{problem_json, save_archive, write};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_engine::{Library, Limits, Runner, SaveOptions, Values, read_file, read_tensors, save, write_tensors};
use tracefx_export::ExportedProgram;
use tracefx_ir::{GraphModule, Opcode};

/// Answers until the requests end.
pub(crate) fn converse(requests: impl BufRead, mut replies: impl Write) -> std::io::Result<()> {
    let mut session = Session::new(Library::extended());
    for line in requests.lines() {
        let line = line?;
        // A bug of the engine is one bad reply, as it is one exception in JavaScript.
        let answer = catch_unwind(AssertUnwindSafe(|| session.answer(&line))).unwrap_or_else(|_| {
            session = Session::new(session.library.clone());
            Err(Diagnostic::new(Code::Internal, "the engine panicked; open the program again")
                .help("this is a bug of tracefx, please report it"))
        });
        let reply = match answer {
            Ok(reply) => json!({ "ok": reply }),
            Err(problem) => json!({ "error": problem_json(&problem) }),
        };
        writeln!(replies, "{reply}")?;
        replies.flush()?;
    }
    Ok(())
}

struct Session {
    program: Option<ExportedProgram>,
    runner: Option<Runner>,
    /// Operators that were defined, beside those that tracefx knows.
    library: Library,
}

impl Session {
    fn new(library: Library) -> Self {
        Session { program: None, runner: None, library }
    }

    fn answer(&mut self, line: &str) -> Result<Json> {
        let request: Json = serde_json::from_str(line).map_err(|problem| invalid(format!("no JSON: {problem}")))?;
        match text(&request, "do")? {
            "open" => {
                (self.program, self.runner) = (None, None);
                let mut program = self.library.open_file(text(&request, "file")?.as_ref(), &Limits::default())?;
                if request["decompose"].as_bool() == Some(true) {
                    program = program.run_decompositions(&self.library.decompositions())?;
                }
                program = match &request["resave"] {
                    Json::Null | Json::Bool(false) => program,
                    Json::String(path) => {
                        save_archive(&program, path.as_ref(), &self.library)?;
                        self.library.open_file(path.as_ref(), &Limits::default())?
                    }
                    _ => {
                        let options = SaveOptions { registry: self.library.registry(), ..SaveOptions::default() };
                        let mut saved = Vec::new();
                        save(&program, &options, &mut saved)?;
                        self.library.open(&saved, &Limits::default())?
                    }
                };
                let graph = program.module.graph.to_string();
                let operators = operators(&program.module);
                let outputs = program.signature.output_specs.iter().filter(|it| it.kind.is_result());
                let outputs: Vec<_> =
                    outputs.map(|it| json!({ "kind": it.kind.name(), "target": it.target.as_deref() })).collect();
                self.program = Some(program);
                Ok(json!({ "graph": graph, "operators": operators, "outputs": outputs }))
            }
            "define" => {
                let body = self.library.open_file(text(&request, "file")?.as_ref(), &Limits::default())?;
                let body = body.module_in(self.library.registry())?;
                self.library.define_composite(text(&request, "schema")?, body)?;
                Ok(Json::Null)
            }
            "start" => {
                self.runner = None;
                let program = self.program.as_ref().ok_or_else(|| invalid("no program is open".to_string()))?;
                let runner = self.library.runner(program)?;
                self.runner = Some(match request["device"].as_str() {
                    Some(name) => on_device(runner, name)?,
                    None => runner,
                });
                Ok(Json::Null)
            }
            "run" => self.run(&request),
            "call" => answer_calls(&request, &self.library),
            "state" => {
                let wanted = list(&request, "names")?;
                self.runner()?.synchronize()?;
                let state =
                    self.runner()?.state().filter(|(name, _)| wanted.iter().any(|it| it.as_str() == Some(name)));
                let tensors: Vec<_> = state.map(|(name, tensor)| (name.to_string(), tensor.clone())).collect();
                write(text(&request, "results")?.as_ref(), &write_tensors(&tensors)?)?;
                Ok(Json::Null)
            }
            other => Err(invalid(format!("there is no request {other}"))),
        }
    }

    fn run(&self, request: &Json) -> Result<Json> {
        let data =
            read_tensors(&read_file(text(request, "data")?.as_ref(), &Limits::default())?)?.into_iter().collect();
        let inputs: Values = list(request, "inputs")?.iter().map(|it| parse_value(it, &data)).collect::<Result<_>>()?;
        let start = Instant::now();
        let outputs = self.runner()?.run(&inputs)?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let mut tensors = Vec::new();
        for (position, input) in inputs.iter().enumerate() {
            if let tracefx_ops::Value::Tensor(tensor) = input {
                tensors.push((format!("input.{position}"), tensor.clone()));
            }
        }
        let print = |(position, output)| print_value(output, &format!("out{position}"), &mut tensors);
        let outputs = outputs.iter().enumerate().map(print).collect::<Result<Vec<_>>>()?;
        write(text(request, "results")?.as_ref(), &write_tensors(&tensors)?)?;
        let mut reply = json!({ "outputs": outputs, "milliseconds": milliseconds });
        // What has no plan is interpreted, which has no steps.
        if let Ok(placements) = self.runner()?.placements(&inputs)
            && !placements.is_empty()
        {
            reply["steps"] = placements.into_iter().map(|it| it.reason).collect();
        }
        Ok(reply)
    }

    fn runner(&self) -> Result<&Runner> {
        self.runner.as_ref().ok_or_else(|| invalid("no program is started".to_string()))
    }
}

/// What the nodes of a module and of its sub-graphs call.
fn operators(module: &GraphModule) -> BTreeSet<String> {
    let mut res = BTreeSet::new();
    for (_, module) in module.modules() {
        let nodes = module.graph.nodes().map(|id| module.graph.node(id));
        res.extend(nodes.filter(|it| it.op() == Opcode::CallFunction).map(|it| it.target().to_string()));
    }
    res
}

pub(crate) fn text<'a>(request: &'a Json, field: &str) -> Result<&'a str> {
    request[field].as_str().ok_or_else(|| invalid(format!("the request has no text `{field}`")))
}

pub(crate) fn list<'a>(request: &'a Json, field: &str) -> Result<&'a [Json]> {
    request[field].as_array().map(Vec::as_slice).ok_or_else(|| invalid(format!("the request has no list `{field}`")))
}

pub(crate) fn invalid(what: String) -> Diagnostic {
    Diagnostic::new(Code::InvalidOption, what).help("the requests are described in crates/cli/src/session.rs")
}
