//! `tracefx session`: a conversation for programs that drive the engine, one JSON request and one reply a line.
//!
//! | request | reply under `ok` |
//! |---|---|
//! | `{"do": "open", "file": PATH}` | `{"graph": TEXT, "outputs": [{"kind": KIND, "target": NAME}…]}`: what a run gives |
//! | `{"do": "start"}` | nothing: the program is ready, with its state as in the file |
//! | `{"do": "run", "data": PATH, "inputs": [VALUE…], "results": PATH}` | `{"outputs": [VALUE…], "milliseconds": TIME}` |
//! | `{"do": "state", "names": [NAME…], "results": PATH}` | nothing: the tensors are in the file by name |
//!
//! A value is `{"tensor": KEY}` in a `.safetensors` file, `{"int": N}`, `{"float": X}`, `{"bool": B}`, `{"str": S}` or
//! `{"none": true}`. After a run the results hold the outputs, and the inputs as they are then under `input.0`…. What is
//! refused is under `error`, and the conversation goes on.

use crate::files::{read, write};
use crate::problem_json;
use serde_json::{Value as Json, json};
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tracefx_core::{Code, Diagnostic, Result, Tensor};
use tracefx_engine::{Limits, Runner, Values, open, read_tensors, write_tensors};
use tracefx_export::ExportedProgram;

/// Answers until the requests end.
pub(crate) fn converse(requests: impl BufRead, mut replies: impl Write) -> std::io::Result<()> {
    let mut session = Session::default();
    for line in requests.lines() {
        let line = line?;
        // A bug of the engine is one bad reply, as it is one exception in JavaScript.
        let answer = catch_unwind(AssertUnwindSafe(|| session.answer(&line))).unwrap_or_else(|_| {
            session = Session::default();
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

#[derive(Default)]
struct Session {
    program: Option<ExportedProgram>,
    runner: Option<Runner>,
}

impl Session {
    fn answer(&mut self, line: &str) -> Result<Json> {
        let request: Json = serde_json::from_str(line).map_err(|problem| invalid(format!("no JSON: {problem}")))?;
        match text(&request, "do")? {
            "open" => {
                (self.program, self.runner) = (None, None);
                let program = open(&read(text(&request, "file")?.as_ref())?, &Limits::default())?;
                let graph = program.module.graph.to_string();
                let outputs = program.signature.output_specs.iter().filter(|it| it.kind.is_result());
                let outputs: Vec<_> =
                    outputs.map(|it| json!({ "kind": it.kind.name(), "target": it.target.as_deref() })).collect();
                self.program = Some(program);
                Ok(json!({ "graph": graph, "outputs": outputs }))
            }
            "start" => {
                self.runner = None;
                let program = self.program.as_ref().ok_or_else(|| invalid("no program is open".to_string()))?;
                self.runner = Some(Runner::new(program)?);
                Ok(Json::Null)
            }
            "run" => self.run(&request),
            "state" => {
                let wanted = list(&request, "names")?;
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
        let data = read_tensors(&read(text(request, "data")?.as_ref())?)?;
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
        let print = |(position, output)| print_value(position, output, &mut tensors);
        let outputs = outputs.iter().enumerate().map(print).collect::<Result<Vec<_>>>()?;
        write(text(request, "results")?.as_ref(), &write_tensors(&tensors)?)?;
        Ok(json!({ "outputs": outputs, "milliseconds": milliseconds }))
    }

    fn runner(&self) -> Result<&Runner> {
        self.runner.as_ref().ok_or_else(|| invalid("no program is started".to_string()))
    }
}

fn parse_value(json: &Json, data: &[(String, Tensor)]) -> Result<tracefx_ops::Value<Tensor>> {
    use tracefx_ops::Value;
    let odd = || invalid(format!("{json} is no value"));
    let (kind, it) = json.as_object().and_then(|it| it.iter().next()).ok_or_else(odd)?;
    Ok(match kind.as_str() {
        "tensor" => {
            let found = data.iter().find(|(name, _)| Some(name.as_str()) == it.as_str());
            Value::Tensor(found.ok_or_else(|| invalid(format!("the data has no tensor {it}")))?.1.clone())
        }
        "int" => Value::int(it.as_i64().ok_or_else(odd)?),
        "float" => Value::Float(match it.as_str() {
            Some(text) => text.parse().map_err(|_| odd())?,
            None => it.as_f64().ok_or_else(odd)?,
        }),
        "bool" => Value::Bool(it.as_bool().ok_or_else(odd)?),
        "str" => Value::Str(it.as_str().ok_or_else(odd)?.into()),
        "none" => Value::None,
        _ => return Err(odd()),
    })
}

fn print_value(
    position: usize,
    value: &tracefx_ops::Value<Tensor>,
    tensors: &mut Vec<(String, Tensor)>,
) -> Result<Json> {
    use tracefx_core::Scalar;
    use tracefx_ops::Value;
    Ok(match (value, value.as_scalar()) {
        (Value::Tensor(tensor), _) => {
            let name = format!("out{position}");
            tensors.push((name.clone(), tensor.clone()));
            json!({ "tensor": name })
        }
        (Value::None, _) => json!({ "none": true }),
        (Value::Str(it), _) => json!({ "str": &**it }),
        (_, Some(Scalar::Int(it))) => json!({ "int": it }),
        (_, Some(Scalar::Bool(it))) => json!({ "bool": it }),
        // JSON has no infinities and no NaN.
        (_, Some(Scalar::Float(it))) => json!({ "float": tracefx_core::python_float(it) }),
        (other, _) => {
            let what = format!("output {position} is a {}, which JSON cannot hold", other.kind_name());
            return Err(Diagnostic::new(Code::NotImplemented, what));
        }
    })
}

fn text<'a>(request: &'a Json, field: &str) -> Result<&'a str> {
    request[field].as_str().ok_or_else(|| invalid(format!("the request has no text `{field}`")))
}

fn list<'a>(request: &'a Json, field: &str) -> Result<&'a [Json]> {
    request[field].as_array().map(Vec::as_slice).ok_or_else(|| invalid(format!("the request has no list `{field}`")))
}

fn invalid(what: String) -> Diagnostic {
    Diagnostic::new(Code::InvalidOption, what).help("the requests are described in crates/cli/src/session.rs")
}
