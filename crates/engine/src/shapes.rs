//! The sizes of an export for hosts: [`ShapeSession`] with operators by any name, and what crosses as JSON.

use crate::Library;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tracefx_core::{Code, DType, Diagnostic, Result};
use tracefx_export::{Dim, DimSpec, SessionInput, ShapeSession};
use tracefx_ir::{Str, TensorMeta};
use tracefx_ops::{Args, Propagation, Value};
use tracefx_sym::ValueRange;

/// An input as a host describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputJson {
    source: String,
    dims: Vec<DimJson>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DimJson {
    Nothing(()),
    Size(i64),
    Hint { hint: Hint, min: Option<i64>, max: Option<i64> },
    Named { name: String, min: Option<i64>, max: Option<i64>, factor: i64, offset: i64 },
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Hint {
    Auto,
    Dynamic,
    Static,
}

impl From<DimJson> for DimSpec {
    fn from(it: DimJson) -> Self {
        match it {
            DimJson::Nothing(()) | DimJson::Hint { hint: Hint::Static, .. } => DimSpec::Static,
            DimJson::Size(size) => DimSpec::Size(size),
            DimJson::Hint { hint: Hint::Auto, min, max } => DimSpec::Auto(ValueRange { min, max }),
            DimJson::Hint { hint: Hint::Dynamic, min, max } => DimSpec::Dynamic(ValueRange { min, max }),
            DimJson::Named { name, min, max, factor, offset } => {
                DimSpec::Named(Dim { name, range: ValueRange { min, max }, factor, offset })
            }
        }
    }
}

/// A session of these inputs. What is said of them is a JSON list with a `source` and `dims` for each: a number, null, a
/// `hint` or a `name` with its bounds.
///
/// # Errors
/// `InvalidOption` where the JSON is something else; else as [`ShapeSession::new`].
///
/// ```
/// use tracefx_engine::shape_session;
/// use tracefx_ops::Value;
/// let said = r#"[{"source": "L['n']", "dims": [{"hint": "AUTO", "min": null, "max": null}]}]"#;
/// let session = shape_session(vec![Value::int(4)], said).unwrap();
/// assert_eq!(session.values()[0].as_expr().unwrap().to_string(), "s86");
/// ```
pub fn shape_session(values: Vec<Value<TensorMeta>>, said: &str) -> Result<ShapeSession> {
    let wrong = |what: String| Diagnostic::new(Code::InvalidOption, format!("what is said of inputs is wrong: {what}"));
    let said: Vec<InputJson> = serde_json::from_str(said).map_err(|it| wrong(it.to_string()))?;
    if said.len() != values.len() {
        return Err(wrong(format!("there are {} inputs, and something is said of {}", values.len(), said.len())));
    }
    let input = |(value, InputJson { source, dims }): (Value<TensorMeta>, InputJson)| SessionInput {
        source,
        value,
        dims: dims.into_iter().map(DimSpec::from).collect(),
    };
    ShapeSession::new(values.into_iter().zip(said).map(input).collect())
}

/// What [`ShapeSession::finish`] gives, as JSON: `ranges` with the expression, its form of sympy and the bounds, `guards`, and
/// `assertions` with the condition in both forms and the message.
///
/// # Errors
/// As there.
pub fn finish_shapes(session: &mut ShapeSession) -> Result<Json> {
    let result = session.finish()?;
    let range = |(expr, range): &(tracefx_sym::SymInt, ValueRange)| {
        json!([expr.to_string(), expr.srepr(), range.min, range.max])
    };
    let assertion = |it: &tracefx_export::DeferredAssertion| {
        json!([it.condition.to_string(), it.condition.srepr(), it.message.as_deref()])
    };
    Ok(json!({
        "ranges": result.range_constraints.iter().map(range).collect::<Vec<_>>(),
        "guards": result.guards,
        "assertions": result.assertions.iter().map(assertion).collect::<Vec<_>>(),
    }))
}

impl Library {
    /// What is known of the results of a call within an export, under autocast with this narrow dtype if there is one:
    /// [`Library::infer`] with its symbols. What the call needs of sizes becomes guards.
    ///
    /// # Errors
    /// As there; `DataDependent` where only the data tells what the call needs to know.
    pub fn infer_within(
        &self,
        session: &ShapeSession,
        low: Option<DType>,
        name: &str,
        args: &[Value<TensorMeta>],
        kwargs: &[(Str, Value<TensorMeta>)],
    ) -> Result<Vec<Value<TensorMeta>>> {
        let symbols = session.symbols();
        let args: Vec<_> = args.iter().map(|it| symbols.replace_value(it)).collect();
        let kwargs: Vec<_> = kwargs.iter().map(|(key, it)| (key.clone(), symbols.replace_value(it))).collect();
        let bound = self.registry().resolve(name, &args, &kwargs, &|_| None).map_err(|problem| problem.op(name))?;
        let args = Args::within(bound.op, bound.values, symbols);
        let results = tracefx_exec::infer(&args, Propagation::new(self.registry(), symbols), low)?;
        Ok(results.iter().map(|it| symbols.replace_value(it)).collect())
    }
}
