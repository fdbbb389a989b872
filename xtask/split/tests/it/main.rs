//! What a module is split into is valid, and fits together.

use std::collections::BTreeMap;
use wasm_split::{
    FLAG, LOADER, PRIMARY, Parts, Refusal, instrument, relaxed_functions, split, with_roots, with_small_callees,
    with_unshared_memory, without_relaxed,
};
use wasmparser::{Export, ExternalKind, Import, Operator, Parser, Payload, TypeRef, Validator, WasmFeatures};

/// Functions that call each other, through a table, with vectors and with several results, and throw; number 0 is the loader.
const MODULE: &str = r#"(module
  (type $unary (func (param i32) (result i32)))
  (import "js" "log" (func $log (param i32)))
  (import "js" "tag" (tag $thrown (param i32)))
  (import "js" "memory" (memory 1 2))
  (export "memory" (memory 0))
  (table 4 4 funcref)
  (table $references 2 externref)
  (tag $own (param i64))
  (global $stack (mut i32) (i32.const 65536))
  (global $constant i32 (i32.const 7))
  (func $load (export "load_part") (param i32) (call $log (local.get 0)))
  (func $double (type $unary) (i32.mul (local.get 0) (global.get $constant)))
  (func $next (type $unary) (i32.add (call $double (local.get 0)) (i32.const 1)))
  (func $vector (param v128 f64) (result v128) (call $log (i32.const 1)) (local.get 0))
  (func $pair (param i64) (result i64 i32) (local.get 0) (call $next (i32.const 2)))
  (func $indirect (export "indirect") (param i32) (result i32)
    (drop (call $vector (v128.const i64x2 1 2) (f64.const 1)))
    (call_indirect (type $unary) (i32.const 3) (local.get 0)))
  (func $catching (export "catching") (result i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 16)))
    try (result i32)
      i64.const 1
      call $pair
      drop
      drop
      i32.const 5
      throw $thrown
    catch $thrown
    catch $own
      drop
      i32.const 9
    end)
  (func $unused (drop (i32.load (i32.const 0))))
  (elem (i32.const 1) func $double $next)
  (data (i32.const 0) "\2a\00\00\00"))"#;

/// The functions that [`MODULE`] defines.
const DEFINED: u32 = 8;

fn module() -> Vec<u8> {
    wat::parse_str(MODULE).expect("the text is a module")
}

fn validate(module: &[u8]) {
    let features = WasmFeatures::default() | WasmFeatures::LEGACY_EXCEPTIONS;
    Validator::new_with_features(features).validate_all(module).expect("the module is valid");
}

/// Splits [`MODULE`] and checks that the parts are valid and get what they import.
fn checked(deferred: usize, part_of: impl Fn(usize) -> usize) -> Parts {
    let parts = split(&module(), deferred, part_of).expect("the module can be split");
    assert_eq!(parts.deferred.len(), deferred);
    validate(&parts.primary);
    let exports: BTreeMap<String, ExternalKind> =
        exports(&parts.primary).into_iter().map(|it| (it.name.to_owned(), it.kind)).collect();
    for name in ["memory", LOADER, "indirect", "catching"] {
        assert!(exports.contains_key(name), "{name} is exported as before");
    }
    for part in &parts.deferred {
        validate(part);
        for import in imports(part) {
            assert_eq!(import.module, PRIMARY);
            let kind = match import.ty {
                TypeRef::Func(_) => ExternalKind::Func,
                TypeRef::Table(_) => ExternalKind::Table,
                TypeRef::Memory(_) => ExternalKind::Memory,
                TypeRef::Global(_) => ExternalKind::Global,
                TypeRef::Tag(_) => ExternalKind::Tag,
                other => panic!("{other:?} is imported"),
            };
            assert_eq!(exports.get(import.name), Some(&kind), "{}", import.name);
        }
    }
    parts
}

fn imports(module: &[u8]) -> Vec<Import<'_>> {
    let payloads = Parser::new(0).parse_all(module).map(|it| it.expect("the module can be read"));
    let sections = payloads.filter_map(|it| if let Payload::ImportSection(it) = it { Some(it) } else { None });
    sections.flat_map(|it| it.into_imports()).map(|it| it.expect("an import")).collect()
}

fn exports(module: &[u8]) -> Vec<Export<'_>> {
    let payloads = Parser::new(0).parse_all(module).map(|it| it.expect("the module can be read"));
    let sections = payloads.filter_map(|it| if let Payload::ExportSection(it) = it { Some(it) } else { None });
    sections.flatten().map(|it| it.expect("an export")).collect()
}

/// The bodies of a module, as the names of their operators.
fn bodies(module: &[u8]) -> Vec<Vec<String>> {
    let payloads = Parser::new(0).parse_all(module).map(|it| it.expect("the module can be read"));
    let bodies = payloads.filter_map(|it| if let Payload::CodeSectionEntry(it) = it { Some(it) } else { None });
    let name = |it: Operator<'_>| format!("{it:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    bodies
        .map(|it| it.get_operators_reader().expect("operators").into_iter().map(|it| name(it.expect("one"))).collect())
        .collect()
}

#[test]
fn every_division_of_the_functions_is_valid() {
    // Every third: of the loader it does not matter what is said.
    for division in (0..3_usize.pow(DEFINED)).step_by(3) {
        checked(2, |function| division / 3_usize.pow(u32::try_from(function).expect("a few")) % 3);
    }
}

#[test]
fn what_stays_stays_as_it_is() {
    let parts = checked(1, |_| 0);
    assert_eq!(parts.stubs, 0);
    assert_eq!(bodies(&parts.primary), bodies(&module()));
    // What is left of the part says that it is there.
    assert_eq!(bodies(&parts.deferred[0]), [["I32Const", "GlobalSet", "End"]]);
}

#[test]
fn a_function_that_only_its_own_part_calls_has_no_stub() {
    // `$next` and `$double` are in the table, `$pair` is called from `$catching` and `$unused` by nobody.
    let parts = checked(1, |function| usize::from(function != 6));
    assert_eq!(parts.stubs, 4, "double, next, pair, indirect");
    assert_eq!(bodies(&parts.primary).len(), 2 + 4);
    assert_eq!(bodies(&parts.deferred[0]).len(), 6 + 1);
}

#[test]
fn a_part_of_another_build_does_not_link() {
    let parts = checked(1, |function| usize::from(function == 2));
    let other = MODULE.replace("2a", "2b");
    let other = split(&wat::parse_str(other).expect("the text is a module"), 1, |function| usize::from(function == 2));
    let other = other.expect("the module can be split");
    let names: Vec<&str> = exports(&parts.primary).iter().map(|it| it.name).collect();
    let missing = |part: &[u8]| imports(part).iter().filter(|it| !names.contains(&it.name)).count();
    assert_eq!(missing(&parts.deferred[0]), 0);
    assert_eq!(missing(&other.deferred[0]), 1);
}

#[test]
fn what_loads_parts_and_what_gives_memory_back_stays() {
    let module = wat::parse_str(
        r#"(module
          (func (export "load_part") (param i32) (call $deep))
          (func $deep (call $deeper) (drop (i32.const 1)))
          (func $deeper)
          (func (export "__wbg_model_free") (call $deeper) (call $dropped))
          (func $dropped)
          (func (export "other") (call $rare))
          (func $rare))"#,
    );
    let kept = with_roots(&module.expect("the text is a module"), [6]).expect("the module can be read");
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 6]);
}

#[test]
fn small_functions_stay_with_their_callers() {
    let of = |text: &str, functions: &[usize]| {
        let module = wat::parse_str(text).expect("the text is a module");
        let found = with_small_callees(&module, functions.iter().copied()).expect("the module can be read");
        found.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of(MODULE, &[4]), [1, 2, 4], "$pair calls $next, which calls $double");
    assert_eq!(of(MODULE, &[5]), [3, 5], "what is called through the table is not seen");
    assert_eq!(of(MODULE, &[99]), [99]);
    let calling = |callee: &str, size: usize| {
        let body = "(drop (i32.const 1))".repeat(size / 3);
        format!(r#"(module (func (export "a") (call ${callee})) (func ${callee} {body}))"#)
    };
    assert_eq!(of(&calling("ours", 100), &[0]), [0]);
    for name in [r#""<alloc[1f]::vec::Vec<ours>>::push""#, r#""core::fmt::write""#, r#""<&std[2]::io::Error>""#] {
        assert_eq!(of(&calling(name, 100), &[0]), [0, 1], "{name}");
        assert_eq!(of(&calling(name, 400), &[0]), [0], "{name}");
    }
    assert_eq!(of(&calling(r#""allocator::of""#, 100), &[0]), [0]);
}

#[test]
fn the_loader_stays_whatever_is_said() {
    let parts = checked(1, |_| 1);
    let log = bodies(&parts.primary).into_iter().filter(|it| it.contains(&"If".to_owned())).count();
    assert_eq!(log, parts.stubs);
}

#[test]
fn an_instrumented_module_has_a_flag_for_each_function() {
    let instrumented = instrument(&module()).expect("the module can be instrumented");
    validate(&instrumented);
    let flags = exports(&instrumented).iter().filter(|it| it.name.starts_with(FLAG)).count();
    assert_eq!(flags, DEFINED as usize);
    assert!(bodies(&instrumented).iter().all(|it| it[..2] == ["I32Const", "GlobalSet"]));
}

#[test]
fn unshared_memory_stands_where_memory_was_shared() {
    let of = |memory: &str| {
        let text = format!(
            r#"(module (import "a" "log" (func $log)) (import "a" "memory" (memory {memory})) (import "a" "t" (tag))
              (func $named (export "f") (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1))) (call $log)))"#
        );
        wat::parse_str(text).expect("the text is a module")
    };
    let own = with_unshared_memory(&of("1 2 shared")).expect("its memory is shared");
    validate(&own);
    assert!(own == of("1 2"), "names and all else stay");
    assert!(matches!(with_unshared_memory(&of("1 2")), Err(Refusal::Unsupported("no shared memory that it imports"))));
    assert!(matches!(with_unshared_memory(&module()), Err(Refusal::Unsupported(_))));
    let truncated = &own[..own.len() - 3];
    assert!(with_unshared_memory(truncated).is_err());
}

#[test]
fn what_cannot_be_split_is_refused() {
    let refusal = |text: &str| split(&wat::parse_str(text).expect("a module"), 1, |_| 1).expect_err("it is refused");
    assert!(matches!(refusal("(module)"), Refusal::NoLoader));
    assert!(matches!(refusal(r#"(module (func (export "load_part")))"#), Refusal::NoLoader));
    let loader = r#"(func (export "load_part") (param i32)) (table 1 funcref)"#;
    for (what, rest) in [
        ("a start function", "(start $f) (func $f) (elem (i32.const 0) $f)"),
        ("a reference of a function in code", "(elem (i32.const 0) $f) (func $f (drop (ref.func $f)))"),
        ("a segment of elements that is not active", "(func $f) (elem func $f)"),
        ("not one table of functions", ""),
        ("an export whose name begins with `$`", r#"(func (export "$f"))"#),
        (
            "a table with initial elements of its own",
            "(table 1 funcref (ref.null func)) (func $f) (elem (i32.const 0) $f)",
        ),
        ("an import that is no function, no memory and no tag", r#"(import "a" "b" (table 1 funcref))"#),
        (
            "a deferred function that reads a segment of data",
            r#"(memory 1) (data $d "a") (elem (i32.const 0) $f) (func $f (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))"#,
        ),
    ] {
        let (imports, others) = if rest.starts_with("(import") { (rest, "") } else { ("", rest) };
        let refused = refusal(&format!("(module {imports} {loader} {others})"));
        assert!(matches!(refused, Refusal::Unsupported(it) if it == what), "{what}: {refused}");
    }
    assert!(matches!(split(b"<!doctype html>", 1, |_| 1), Err(Refusal::Malformed(_))));
    let truncated = &module()[..module().len() / 2];
    assert!(matches!(split(truncated, 1, |_| 1), Err(Refusal::Truncated)));
}

/// A function with relaxed SIMD that another one calls.
const RELAXED: &str = r#"(module
  (table 1 funcref)
  (elem (i32.const 0) func $other)
  (func $load (export "load_part") (param i32))
  (func $other (export "other"))
  (func $add (param v128 v128 v128) (result v128)
    (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))
  (func $call (export "call") (result v128)
    (call $add (v128.const i64x2 1 2) (v128.const i64x2 3 4) (v128.const i64x2 5 6))))"#;

/// As a host without relaxed SIMD.
fn validate_without_relaxed(module: &[u8]) -> bool {
    let features = (WasmFeatures::default() | WasmFeatures::LEGACY_EXCEPTIONS) - WasmFeatures::RELAXED_SIMD;
    Validator::new_with_features(features).validate_all(module).is_ok()
}

#[test]
fn functions_with_relaxed_simd_are_told_apart() {
    let module = wat::parse_str(RELAXED).expect("the text is a module");
    let relaxed = relaxed_functions(&module).expect("the module can be read");
    assert_eq!(relaxed.iter().copied().collect::<Vec<_>>(), [2]);
    assert!(!validate_without_relaxed(&module));
    let roots = with_roots(&module, []).expect("the module can be read");
    assert_eq!(roots.into_iter().collect::<Vec<_>>(), [0, 3], "what calls them is where it is called");
    let parts =
        split(&module, 1, |function| usize::from(relaxed.contains(&function))).expect("the module can be split");
    validate(&parts.primary);
    validate(&parts.deferred[0]);
    assert!(validate_without_relaxed(&parts.primary) && !validate_without_relaxed(&parts.deferred[0]));
}

#[test]
fn a_module_without_relaxed_simd_has_the_same_functions() {
    let module = wat::parse_str(RELAXED).expect("the text is a module");
    let without = without_relaxed(&module).expect("the module can be read");
    assert!(validate_without_relaxed(&without));
    assert_eq!(bodies(&without)[2], ["Unreachable", "End"]);
    for kept in [0, 1, 3] {
        assert_eq!(bodies(&without)[kept], bodies(&module)[kept]);
    }
}
