//! Real archives with one field changed: each loads and means something (it is printed, run, saved and loaded to the same
//! again), or is refused with a typed error. None panics, and none takes long.
//!
//! Some hundreds of mutations run with the tests; `TRACEFX_MUTATIONS=50000 cargo test -p tracefx-engine --test it mutations`
//! runs more, and `TRACEFX_SEED` others.

use serde_json::{Value as Json, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tracefx_core::Result;
use tracefx_engine::Runner;
use tracefx_export::ExportedProgram;
use tracefx_fuzz::random::Random;
use tracefx_fuzz::stored;
use tracefx_pt2::{Archive, LoadOptions, SaveOptions, load, save};

/// The entries of an archive.
struct Parts {
    folder: PathBuf,
    entries: Vec<(String, Vec<u8>)>,
}

fn fixtures() -> Vec<Parts> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut rest = vec![root.join("programs"), root.join("programs-compat")];
    let mut found = Vec::new();
    while let Some(folder) = rest.pop() {
        if let Ok(bytes) = std::fs::read(folder.join("model.pt2")) {
            let archive = Archive::open(&bytes, &LoadOptions::default()).unwrap();
            let names: Vec<String> = archive.entries().map(str::to_string).collect();
            let read = |name: String| (archive.read(&name).unwrap().into_owned(), name);
            let entries = names.into_iter().map(read).map(|(bytes, name)| (name, bytes)).collect();
            found.push(Parts { folder: folder.clone(), entries });
        }
        rest.extend(std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).filter(|it| it.is_dir()));
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

/// The paths of all values of a document.
fn places(json: &Json) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), vec![(String::new(), json)]);
    while let Some((place, json)) = rest.pop() {
        match json {
            Json::Object(fields) => {
                let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
                rest.extend(fields.iter().map(|(key, it)| (format!("{place}/{}", escaped(key)), it)));
            }
            Json::Array(items) => rest.extend(items.iter().enumerate().map(|(at, it)| (format!("{place}/{at}"), it))),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
        found.push(place);
    }
    found
}

/// Changes one field, and says how.
fn mutate(document: &mut Json, random: &mut Random) -> String {
    let all = places(document);
    let place = random.pick(&all);
    let other = document.pointer(&random.pick(&all)).cloned().unwrap_or(Json::Null);
    let target = document.pointer_mut(&place).expect("the place was just found");
    let was = target.to_string().chars().take(80).collect::<String>();
    let new = match target {
        Json::Object(fields) if !fields.is_empty() && random.below(4) > 0 => {
            let key = random.pick(&fields.keys().cloned().collect::<Vec<_>>());
            let value = fields.shift_remove(&key).expect("the key was just found");
            match random.below(3) {
                0 => {}
                1 => drop(fields.insert(format!("{key}_"), value)),
                _ => drop(fields.insert(key, other)),
            }
            return format!("{place}: a field of {was}");
        }
        Json::Array(items) if !items.is_empty() && random.below(4) > 0 => {
            let (a, b) = (random.below(items.len()), random.below(items.len()));
            match random.below(4) {
                0 => drop(items.remove(a)),
                1 => items.swap(a, b),
                2 => items.push(items[a].clone()),
                _ => items[a] = other,
            }
            return format!("{place}: the items of {was}");
        }
        Json::Number(it) if random.below(4) > 0 => {
            let it = it.as_i64().unwrap_or(0);
            let numbers = [it ^ 1, it.wrapping_sub(1), -it, 0, -1, 7, 64, i64::MAX, i64::MIN, it << 20, 1 << 40];
            json!(random.pick(&numbers))
        }
        Json::String(it) if random.below(4) > 0 => {
            let texts = [format!("{it}x"), it.chars().skip(1).collect(), it.chars().rev().collect(), String::new()];
            json!(random.pick(&texts))
        }
        Json::Bool(it) => json!(!*it),
        _ => random.pick(&[Json::Null, json!(0), json!("x"), json!([]), json!({}), json!(1.5), json!(true), other]),
    };
    *target = new.clone();
    format!("{place}: {was} became {}", new.to_string().chars().take(80).collect::<String>())
}

/// What comes of an archive; whether it was accepted.
fn use_all(bytes: &[u8], runs: bool) -> Result<()> {
    let program = load(bytes, &LoadOptions::default())?;
    let printed = program.module.graph.to_string();
    let problems = program.module.graph.lint(Some(&program.module));
    assert!(problems.is_empty(), "{}", problems[0]);
    let mut saved = Vec::new();
    match save(&program, &SaveOptions::default(), &mut saved) {
        Ok(()) => {
            let again = load(&saved, &LoadOptions::default()).expect("what is saved can be loaded");
            let mut twice = Vec::new();
            save(&again, &SaveOptions::default(), &mut twice).expect("what was saved once can be saved");
            let same_again = load(&twice, &LoadOptions::default()).expect("what is saved can be loaded");
            assert_eq!(same_again.module.graph.to_string(), again.module.graph.to_string());
            // Results that nothing reads get names only where a file is written.
            assert_eq!(again.module.graph.len() >= program.module.graph.len(), !printed.is_empty());
        }
        // A refusal says where.
        Err(error) => assert!(!error.message().is_empty()),
    }
    if runs { run(&program) } else { program.module().map(drop) }
}

fn run(program: &ExportedProgram) -> Result<()> {
    let runner = Runner::new(program)?;
    let Some(inputs) = &program.example_inputs else { return Ok(()) };
    let users = program.signature.user_inputs().count();
    let inputs: Vec<_> = inputs.iter().take(users).cloned().collect();
    runner.run(&inputs).map(drop)
}

#[test]
fn one_changed_field_is_read_or_refused() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default);
    let (count, seed) = (number("TRACEFX_MUTATIONS", 400), number("TRACEFX_SEED", 0));
    let fixtures = fixtures();
    let (mut accepted, mut refused) = (0u64, 0u64);
    for n in 0..count {
        let mut random = Random(seed.wrapping_mul(1 << 40).wrapping_add(n));
        let parts = &fixtures[random.below(fixtures.len())];
        let documents: Vec<usize> =
            (0..parts.entries.len()).filter(|&it| parts.entries[it].0.ends_with(".json")).collect();
        // The program itself has most of the fields.
        let models: Vec<usize> =
            documents.iter().copied().filter(|&it| !parts.entries[it].0.contains("_config")).collect();
        let chosen = if random.below(5) > 0 { random.pick(&models) } else { random.pick(&documents) };
        let text = String::from_utf8(parts.entries[chosen].1.clone()).unwrap();
        // PyTorch 2.6 wrote numbers that are no JSON.
        let Ok(mut document) = serde_json::from_str::<Json>(&text) else { continue };
        let how = mutate(&mut document, &mut random);
        let mut entries = parts.entries.clone();
        entries[chosen].1 = document.to_string().into_bytes();
        // Numbers of a graph are sizes of what it makes, so what was given a large one is not run.
        let runs = !how.contains("became")
            || how.rsplit(' ').next().is_some_and(|it| it.parse::<i64>().is_ok_and(|it| it.unsigned_abs() <= 64));
        let borrowed: Vec<(&str, &[u8])> = entries.iter().map(|(name, it)| (&**name, &**it)).collect();
        let archive = stored(&borrowed);
        match catch_unwind(AssertUnwindSafe(|| use_all(&archive, runs))) {
            Ok(Ok(())) => accepted += 1,
            Ok(Err(error)) => {
                assert!(!error.message().is_empty() && error.code() != tracefx_core::Code::Internal, "{n}: {error}");
                refused += 1;
            }
            Err(_) => panic!("mutation {n} of seed {seed}, {}: {how}", parts.folder.display()),
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
