//! Sessions of shapes beside what PyTorch recorded: tests/oracle/gen_dynamic_shapes.py.

use serde_json::Value as Json;
use tracefx_core::{DType, Diagnostic, Result};
use tracefx_export::{Dim, DimSpec, SessionInput, ShapeResult, ShapeSession};
use tracefx_ir::TensorMeta;
use tracefx_ops::{Propagation, Value, registry};
use tracefx_sym::{Expr, Guard, Limits, Parser, SymBool, SymInt, ValueRange};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/shapes/dynamic_shapes.jsonl");

/// Cases in which PyTorch's `view` makes more guards than the one that it needs: there only suggestions are compared.
const MORE_GUARDS: &[&str] = &["a_multiple", "a_multiple_within_a_range", "an_automatic_multiple"];
/// Cases in which PyTorch asks whether a size that is one less is one, to take a view for one that has its elements in order.
const ASKED_OF_ONE: &[&str] = &["one_more"];

fn range(it: &Json) -> ValueRange {
    ValueRange { min: it["min"].as_i64(), max: it["max"].as_i64() }
}

fn spec(it: &Json) -> DimSpec {
    if it.is_null() {
        return DimSpec::Static;
    }
    if let Some(size) = it.as_i64() {
        return DimSpec::Size(size);
    }
    match it["hint"].as_str() {
        Some("AUTO") => DimSpec::Auto(range(it)),
        Some("DYNAMIC") => DimSpec::Dynamic(range(it)),
        Some(_) => DimSpec::Static,
        None => DimSpec::Named(Dim {
            factor: it["factor"].as_i64().unwrap_or(1),
            offset: it["offset"].as_i64().unwrap_or(0),
            ..Dim::new(it["name"].as_str().unwrap(), range(it))
        }),
    }
}

fn input(it: &Json) -> SessionInput {
    let value = match it["sizes"].as_array() {
        Some(sizes) => {
            let dtype = DType::from_name(it["dtype"].as_str().unwrap()).unwrap();
            let sizes = sizes.iter().map(|it| it.as_i64().unwrap().into()).collect();
            Value::Tensor(TensorMeta::contiguous(dtype, sizes))
        }
        None => Value::int(it["value"].as_i64().unwrap()),
    };
    let dims = it["dims"].as_array().unwrap().iter().map(spec).collect();
    SessionInput { source: format!("L['{}']", it["name"].as_str().unwrap()), value, dims }
}

/// The values by name.
type Known = Vec<(String, Value<TensorMeta>)>;

fn argument(it: &Json, known: &Known) -> Value<TensorMeta> {
    match it {
        Json::Number(it) => Value::int(it.as_i64().unwrap()),
        Json::Array(items) => Value::List(items.iter().map(|it| argument(it, known)).collect()),
        Json::Object(it) => Value::from(Parser::default().parse(it["expr"].as_str().unwrap()).unwrap()),
        Json::String(it) => {
            let name = it.strip_prefix('$').unwrap();
            known.iter().rev().find(|(it, _)| it == name).unwrap().1.clone()
        }
        other => panic!("an argument {other}"),
    }
}

fn run(case: &Json) -> Result<(ShapeSession, ShapeResult)> {
    let mut session = ShapeSession::new(case["inputs"].as_array().unwrap().iter().map(input).collect())?;
    let names = case["inputs"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_string());
    let mut known: Known = names.zip(session.values().iter().cloned()).collect();
    for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        session.symbols().set_place(Some(format!("model.ts:{}", at + 1).as_str().into()));
        let condition = |it: &Json| Parser::default().parse_bool(it.as_str().unwrap()).unwrap();
        if let Some(name) = step["infer"].as_str() {
            let args: Vec<_> = step["args"].as_array().unwrap().iter().map(|it| argument(it, &known)).collect();
            let args: Vec<_> = args.iter().map(|it| session.symbols().replace_value(it)).collect();
            let mut results = Propagation::new(registry(), session.symbols()).call(name, &args, &[])?;
            known.push((step["out"].as_str().unwrap().to_string(), results.swap_remove(0)));
        } else if !step["decide"].is_null() {
            assert_eq!(session.decide(&condition(&step["decide"]))?, step["answer"].as_bool().unwrap());
        } else {
            session.check(&condition(&step["check"]), step["message"].as_str().map(Into::into))?;
        }
    }
    let result = session.finish()?;
    Ok((session, result))
}

fn cases() -> Vec<Json> {
    let text = std::fs::read_to_string(CASES).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn case(name: &str) -> Json {
    cases().into_iter().find(|it| it["case"] == name).unwrap()
}

/// The violation that PyTorch reports, without the advice to try something else.
fn expected_message(case: &Json) -> String {
    let message = case["message"].as_str().unwrap();
    message.split("\n\nThe error above occurred").next().unwrap().trim_end().to_string()
}

/// A guard whatever side stands first.
fn canonical(guard: &str) -> String {
    let source =
        |it: &tracefx_sym::InputSource| Some(Expr::from(SymInt::from(tracefx_sym::Symbol::size(it.to_string()))));
    let condition = Guard::parse(guard, &Limits::default()).unwrap().symbolic(&source).unwrap();
    let SymBool::Call(call) = &condition else { return guard.to_string() };
    let [Expr::Int(a), Expr::Int(b)] = call.args() else { return guard.to_string() };
    let (there, back) = ((a - b).to_string(), (b - a).to_string());
    match call.func() {
        tracefx_sym::Func::Eq | tracefx_sym::Func::Ne => format!("{:?} {}", call.func(), there.min(back)),
        _ => condition.to_string(),
    }
}

fn expected_range(it: &Json) -> ValueRange {
    ValueRange { min: it[0].as_i64(), max: it[1].as_i64() }
}

fn compare(case: &Json, found: Result<(ShapeSession, ShapeResult)>) -> std::result::Result<(), String> {
    let name = case["case"].as_str().unwrap();
    let differ = |what: &str, expected: String, found: String| {
        if expected == found { Ok(()) } else { Err(format!("{what}:\n  expected {expected}\n  found    {found}")) }
    };
    let found = match (found, case["error"].as_str()) {
        (Ok(_), Some(_)) => return Err(format!("accepted, where PyTorch says {}", expected_message(case))),
        (Err(problem), None) => return Err(format!("refused: {}", problem.message())),
        (Err(problem), Some("GuardOnDataDependentSymNode")) => {
            let expected = expected_message(case);
            return differ("data", expected.split(".  (").next().unwrap().to_string(), problem.message().to_string());
        }
        (Err(problem), Some(_)) => {
            let (expected, found) = (expected_message(case), problem.message().to_string());
            let suggested = |it: &str| it.split_once("Suggested fixes").map(|it| it.1.to_string()).unwrap_or_default();
            return match MORE_GUARDS.contains(&name) {
                true => differ("suggestions", suggested(&expected), suggested(&found)),
                false => differ("message", expected, found),
            };
        }
        (Ok(found), None) => found,
    };
    let (session, result) = found;
    let shown = |it: &Value<TensorMeta>| match session.symbols().replace_value(it) {
        Value::Tensor(meta) => meta.sizes.iter().map(SymInt::to_string).collect::<Vec<_>>(),
        other => vec![other.as_expr().unwrap().to_string()],
    };
    let sizes: Vec<_> = session.values().iter().map(shown).collect();
    differ("sizes", case["sizes"].to_string(), serde_json::to_string(&sizes).unwrap())?;
    let mut ranges: Vec<(String, ValueRange)> =
        result.range_constraints.iter().map(|(it, range)| (it.to_string(), *range)).collect();
    ranges.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected: Vec<(String, ValueRange)> =
        case["ranges"].as_object().unwrap().iter().map(|(it, range)| (it.clone(), expected_range(range))).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    differ("ranges", format!("{expected:?}"), format!("{ranges:?}"))?;
    let guards = |it: Vec<String>| {
        let mut res: Vec<String> = it.iter().map(|it| canonical(it)).collect();
        res.sort();
        res
    };
    let given = case["guards"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_string());
    let is_compared = |it: &String| !ASKED_OF_ONE.contains(&name) || it.contains("==");
    let expected: Vec<String> = given.filter(is_compared).collect();
    let found: Vec<String> = result.guards.iter().filter(|it| is_compared(it)).cloned().collect();
    if !MORE_GUARDS.contains(&name) {
        differ("guards", format!("{:?}", guards(expected)), format!("{:?}", guards(found)))?;
    }
    differ("assertions", case["asserts"].as_array().unwrap().len().to_string(), result.assertions.len().to_string())
}

#[test]
fn sessions_agree_with_pytorch() {
    let problems: Vec<String> = cases()
        .iter()
        .filter_map(|it| Some(format!("{}: {}", it["case"].as_str().unwrap(), compare(it, run(it)).err()?)))
        .collect();
    assert!(problems.is_empty(), "{} differ:\n{}", problems.len(), problems.join("\n"));
}

fn refusal(name: &str) -> Diagnostic {
    run(&case(name)).unwrap_err()
}

#[test]
fn a_violation_says_where_the_code_asked() {
    assert_eq!(refusal("a_constant").notes(), ["b became 3 at model.ts:1"]);
    assert_eq!(refusal("an_upper_bound").notes(), ["L['x'].size()[0] <= 16 is asked at model.ts:1"]);
    assert_eq!(refusal("two_dims_are_equal").notes(), ["L['x'].size()[0] == L['y'].size()[0] is asked at model.ts:1"]);
}

#[test]
fn a_check_that_does_not_hold_is_refused() {
    let session = ShapeSession::new(vec![input(&case("an_upper_bound")["inputs"][0])]).unwrap();
    let condition = Parser::default().parse_bool("s77 <= 4").unwrap();
    let refused = session.check(&condition, Some("too long".into())).unwrap_err();
    assert_eq!((refused.code().name(), refused.message()), ("AssertionFailed", "too long"));
}
