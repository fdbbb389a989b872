/**
 * Builds and runs a fuzz target with libFuzzer, on the stable toolchain.
 *
 *     node scripts/fuzz.mjs TARGET [SECONDS]
 *
 * To add a target, put a file into fuzz/fuzz_targets and a [[bin]] into fuzz/Cargo.toml; seeds, where it needs any, go
 * into SEEDS below. A finding is written to fuzz/artifacts/TARGET, and the script fails.
 *
 * @module
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import { join } from "node:path";
import { ROOT } from "./progress.mjs";

const host = "x86_64-unknown-linux-gnu";
const flags = [
  "--cfg",
  "fuzzing",
  "-Cpasses=sancov-module",
  "-Cllvm-args=-sanitizer-coverage-level=4",
  "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
  "-Cllvm-args=-sanitizer-coverage-pc-table",
  "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/**
 * What a target starts from: a function that gives byte arrays.
 *
 * @type {Readonly<Record<string, () => Buffer[]>>}
 */
const SEEDS = { archive: archives, expr: expressions, pickle: pickles, program: programs, wire: wireFiles };

const targets = readdirSync(join(ROOT, "fuzz/fuzz_targets")).map((file) => file.replace(/\.rs$/, ""));
const [target = "", seconds = "60"] = process.argv.slice(2);
if (!targets.includes(target) || !/^[0-9]+$/.test(seconds)) {
  console.error(`usage: node scripts/fuzz.mjs TARGET [SECONDS]\ntargets: ${targets.join(", ")}`);
  process.exit(2);
}

const corpus = join(ROOT, "fuzz/corpus", target);
const artifacts = join(ROOT, "fuzz/artifacts", target);
mkdirSync(corpus, { recursive: true });
mkdirSync(artifacts, { recursive: true });
for (const seed of SEEDS[target]?.() ?? []) {
  writeFileSync(join(corpus, createHash("sha1").update(seed).digest("hex")), seed);
}

// The flags are for the code that is fuzzed and not for build scripts, which --target keeps apart.
execFileSync("cargo", ["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host, "--bin", target], {
  cwd: ROOT,
  stdio: "inherit",
  env: { ...process.env, RUSTC_BOOTSTRAP: "1", CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") },
});
const run = spawnSync(
  join(ROOT, "fuzz/target", host, "release", target),
  [
    corpus,
    `-artifact_prefix=${artifacts}/`,
    `-max_total_time=${seconds}`,
    "-max_len=65536",
    "-timeout=10",
    "-rss_limit_mb=2048",
    "-print_final_stats=1",
  ],
  { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 28 },
);
const executions = /stat::number_of_executed_units:\s*([0-9]+)/.exec(run.stderr)?.[1];
if (run.status !== 0 || executions === undefined) {
  console.error(run.stderr.split("\n").slice(-60).join("\n"));
  console.error(`fuzz ${target}: a finding, see fuzz/artifacts/${target}`);
  process.exit(1);
}
console.log(`fuzz ${target}: ${executions} executions in ${seconds} s, no finding`);

function fixtures() {
  /** @type {Buffer[]} */
  const found = [];
  const walk = (/** @type {string} */ folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (entry.name === "model.pt2") found.push(readFileSync(path));
    }
  };
  walk(join(ROOT, "tests/fixtures"));
  return found.filter((bytes) => bytes.length <= 65536);
}

/** The entries of a zip file, by its directory. */
function entriesOf(/** @type {Buffer} */ zip) {
  const end = zip.lastIndexOf("PK\x05\x06", undefined, "latin1");
  let at = zip.readUInt32LE(end + 16);
  return Array.from({ length: zip.readUInt16LE(end + 10) }, () => {
    const field = (/** @type {number} */ offset) => zip.readUInt16LE(at + offset);
    const [name, extra, comment] = [field(28), field(30), field(32)];
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const packed = zip.subarray(start, start + zip.readUInt32LE(at + 20));
    const bytes = field(10) === 8 ? inflateRawSync(packed) : packed;
    const entry = /** @type {const} */ ([zip.toString("utf8", at + 46, at + 46 + name), bytes]);
    at += 46 + name + extra + comment;
    return entry;
  });
}

function archives() {
  const jsons = fixtures().flatMap((zip) =>
    entriesOf(zip)
      .filter(([name]) => name.endsWith(".json"))
      .map((it) => it[1]),
  );
  return [...fixtures(), ...jsons.filter((json) => json.length <= 65536)];
}

function programs() {
  return fixtures().flatMap((zip) => {
    const find = (/** @type {string} */ end) => entriesOf(zip).find(([name]) => name.endsWith(end))?.[1];
    const [program, weights] = [find("models/model.json"), find("model_weights_config.json")];
    return program && weights ? [Buffer.concat([program, Buffer.from("\n--\n"), weights])] : [];
  });
}

function pickles() {
  const inner = fixtures().flatMap((zip) =>
    entriesOf(zip).filter(([name, bytes]) => name.endsWith(".pt") && bytes.length > 0),
  );
  return inner.flatMap(([, zip]) =>
    entriesOf(zip)
      .filter(([name]) => name.endsWith("/data.pkl"))
      .map((it) => it[1]),
  );
}

/** The golden files, as they are and as lists of their sections. */
function wireFiles() {
  const folder = join(ROOT, "tests/golden/wire");
  const kinds = ["STRS", "SYMS", "MODS", "GRPH", "NAMS", "META", "SIGN", "TENS", "DATA"];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".fxg"))
    .flatMap((name) => {
      const file = readFileSync(join(folder, name));
      const sections = Array.from({ length: file.readUInt32LE(8) }, (_, index) => {
        const entry = 32 + 24 * index;
        const [offset, length] = [file.readUInt32LE(entry + 8), file.readUInt32LE(entry + 16)];
        const kind = kinds.indexOf(file.toString("latin1", entry, entry + 4));
        return Buffer.concat([Buffer.of(kind, length & 0xff, length >> 8), file.subarray(offset, offset + length)]);
      });
      return [file, Buffer.concat(sections)];
    });
}

/** The expressions and guards of the fixtures, as they are in files. */
function expressions() {
  const tables = join(ROOT, "crates/sym/tests/fixtures");
  const rows = readdirSync(tables).flatMap((file) => readFileSync(join(tables, file), "utf8").split("\n"));
  return rows.map((row) => Buffer.from(row.replace(/\t.*/, "")));
}
