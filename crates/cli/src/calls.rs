//! Calls of single operators, many in one request.

use crate::session::{invalid, list, text};
use crate::values::{parse_value, print_int, print_value};
use crate::{problem_json, write};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use tracefx_core::{Code, DType, Diagnostic, Result, Tensor, with_default_generator};
use tracefx_engine::{Library, Limits, read_file, read_tensors, write_tensors};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Tol, Value};
use tracefx_sym::{Expr, SymInt};

type Given = (Vec<Value<Tensor>>, Vec<(Str, Value<Tensor>)>);
type Known = Value<TensorMeta>;

/// Makes the calls of a request, each on data of its own.
pub(crate) fn answer_calls(request: &Json, library: &Library) -> Result<Json> {
    let file = read_file(text(request, "data")?.as_ref(), &Limits::default())?;
    let mut tensors = Vec::new();
    let mut answers = Vec::new();
    for (at, call) in list(request, "calls")?.iter().enumerate() {
        // A call may write into its arguments.
        let data: HashMap<String, Tensor> = read_tensors(&file)?.into_iter().collect();
        answers.push(answer_call(library, call, &data, &format!("{at}"), &mut tensors)?);
    }
    write(text(request, "results")?.as_ref(), &write_tensors(&tensors)?)?;
    Ok(Json::Array(answers))
}

fn answer_call(
    library: &Library,
    json: &Json,
    data: &HashMap<String, Tensor>,
    name: &str,
    tensors: &mut Vec<(String, Tensor)>,
) -> Result<Json> {
    let op = text(json, "op")?;
    let (args, kwargs) = parse_call(json, data)?;
    let promised = promise(library, op, &args, &kwargs);
    if let Some(seed) = json["seed"].as_u64() {
        with_default_generator(|it| it.manual_seed(seed));
    }
    let state = || with_default_generator(|it| it.state());
    let before = state();
    let results = library.call(op, &args, kwargs).and_then(|it| {
        let tolerance = library.tolerance(op)?;
        let print = |(at, it)| {
            let mut json = print_value(it, &format!("{name}.{at}"), tensors)?;
            add_tolerance(&mut json, tolerance);
            Ok(json)
        };
        it.results.iter().enumerate().map(print).collect::<Result<Vec<_>>>()
    });
    let promised = promised.map_or_else(|it| json!({ "error": problem_json(&it) }), Json::Array);
    Ok(match results {
        Ok(results) => json!({ "results": results, "drew": state() != before, "promised": promised }),
        Err(problem) => json!({ "error": problem_json(&problem), "promised": promised }),
    })
}

fn parse_call(json: &Json, data: &HashMap<String, Tensor>) -> Result<Given> {
    let args = list(json, "args")?.iter().map(|it| parse_value(it, data)).collect::<Result<_>>()?;
    let kwargs = json["kwargs"].as_object().ok_or_else(|| invalid("the call has no object `kwargs`".to_string()))?;
    let kwargs = kwargs.iter().map(|(key, it)| Ok((Str::from(key.as_str()), parse_value(it, data)?)));
    Ok((args, kwargs.collect::<Result<_>>()?))
}

fn add_tolerance(json: &mut Json, tolerance: Tol) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(|it| add_tolerance(it, tolerance)),
        Json::Object(object) => {
            let dtype = object.get("dtype").and_then(|it| DType::from_name(it.as_str()?));
            let (relative, absolute) = tolerance.for_dtype(dtype.unwrap_or(DType::Float64));
            object.insert("tolerance".to_string(), json!([relative, absolute]));
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// What is known of the results without data.
fn promise(library: &Library, op: &str, args: &[Value<Tensor>], kwargs: &[(Str, Value<Tensor>)]) -> Result<Vec<Json>> {
    let without_data = |it: &Value<Tensor>| it.try_map(&mut |it| Ok::<_, Diagnostic>(TensorMeta::of(it)));
    let args = args.iter().map(without_data).collect::<Result<Vec<_>>>()?;
    let kwargs = kwargs.iter().map(|(key, it)| Ok((key.clone(), without_data(it)?))).collect::<Result<Vec<_>>>()?;
    library.infer(op, &args, &kwargs)?.iter().map(print_known).collect()
}

fn print_known(value: &Known) -> Result<Json> {
    let dims = |it: &[SymInt]| it.iter().map(print_dim).collect::<Vec<_>>();
    Ok(match value {
        Value::Tensor(it) => {
            json!({ "dtype": it.dtype.name(), "size": dims(&it.sizes), "stride": dims(&it.strides) })
        }
        Value::List(items) => Json::Array(items.iter().map(print_known).collect::<Result<_>>()?),
        Value::None => Json::Null,
        Value::Int(it) => json!({ "int": print_dim(it) }),
        Value::DType(it) => json!({ "dtype": it.name() }),
        Value::Str(it) => json!(&**it),
        other => match other.as_expr() {
            Some(Expr::Bool(it)) => it.as_bool().map_or_else(|| json!({ "bool": it.to_string() }), |it| json!(it)),
            Some(Expr::Float(it)) => {
                json!({ "float": it.as_float().map_or(it.to_string(), tracefx_core::python_float) })
            }
            Some(Expr::Int(_)) | None => {
                let what = format!("a result is a {}, which JSON cannot hold", other.kind_name());
                return Err(Diagnostic::new(Code::NotImplemented, what));
            }
        },
    })
}

fn print_dim(value: &SymInt) -> Json {
    value.as_int().map_or_else(|| json!(value.to_string()), print_int)
}
