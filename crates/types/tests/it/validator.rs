use crate::case::cases;
use tracefx_core::Code;
use tracefx_sym::{Parser, SymBool, Symbol, ValueRange};
use tracefx_types::{TranslationValidator, Validation, bisect};

fn validator(ranges: impl IntoIterator<Item = (String, ValueRange)>) -> (TranslationValidator, Parser) {
    let (mut validator, mut parser) = (TranslationValidator::default(), Parser::default());
    for (name, range) in ranges {
        parser.parse_int(&format!("Symbol('{name}', positive=True, integer=True)")).unwrap();
        validator.add_var(&Symbol::size(name), range);
    }
    (validator, parser)
}

#[test]
fn guards_are_valid_where_z3_says_so() {
    let (mut n_known, mut n_unknown) = (0, 0);
    for case in cases("validator.jsonl") {
        let ranges = case["ranges"].as_object().unwrap().iter();
        let ranges = ranges
            .map(|(name, it)| (name.clone(), ValueRange::between(it[0].as_i64().unwrap(), it[1].as_i64().unwrap())));
        let (mut validator, mut parser) = validator(ranges);
        let mut parse = |it: &serde_json::Value| parser.parse_bool(it.as_str().unwrap()).unwrap();
        case["source"].as_array().unwrap().iter().for_each(|it| validator.add_source_expr(parse(it)).unwrap());
        case["target"].as_array().unwrap().iter().for_each(|it| validator.add_target_expr(parse(it)).unwrap());
        let ours = match validator.validate() {
            Ok(Validation::Valid) => "valid",
            Ok(Validation::Unknown(_)) => {
                n_unknown += 1;
                continue;
            }
            Err(it) if it.code() == Code::VerifyFailed => "invalid",
            Err(it) => panic!("{case}: {it}"),
        };
        assert_eq!(ours, case["result"].as_str().unwrap(), "{case}: {:?}", validator.validate());
        n_known += 1;
    }
    assert!(n_known > 150 && n_unknown * 20 < n_known, "{n_known} are known, {n_unknown} are not");
}

#[test]
fn bisection_finds_the_first_guard_that_is_lost() {
    let ranges = ["s0", "s1"].map(|it| (it.to_string(), ValueRange::at_least(1)));
    let (validator, mut parser) = validator(ranges);
    let mut guard = |source: &str, target: &str| -> (SymBool, SymBool) {
        (parser.parse_bool(source).unwrap(), parser.parse_bool(target).unwrap())
    };
    let mut guards = vec![
        guard("s0 >= 2", "s0 >= 2"),
        guard("s0 + s1 >= 4", "s1 >= 2"),
        guard("s0 == s1", "s0 <= s1"),
        guard("s1 < 9", "s1 < 9"),
    ];
    let (at, failure) = bisect(&validator, &guards).unwrap().expect("a guard is lost");
    assert_eq!(at, 2);
    assert!(failure.notes().iter().any(|it| it == "failed source expression: s0 == s1" || it.contains("Eq(s0, s1)")));
    guards[2] = guard("s0 <= s1", "s0 == s1");
    assert!(bisect(&validator, &guards).unwrap().is_none());
}
