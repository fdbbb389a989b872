/** A module that was split does what it did, whatever is deferred and in whichever order its parts are needed. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tracefx-split-"));
const at = (name: string): string => join(folder, name);
const TOOL = join(ROOT, "target/bindgen/release", process.platform === "win32" ? "wasm-split.exe" : "wasm-split");

/** So much that no function is small enough to stay with its callers. */
const PAD = "(nop)".repeat(80);

/**
 * Functions that call each other directly and through a table, in which one has two places, over one memory and one stack pointer, with
 * vectors, several results, exceptions and atomic instructions.
 */
const MODULE = `(module
  (type $unary (func (param i32) (result i32)))
  (import "js" "load" (func $js_load (param i32)))
  (import "js" "memory" (memory $memory 1 2 shared))
  (export "memory" (memory $memory))
  (table $table 5 5 funcref)
  (tag $thrown (param i32))
  (global $stack (mut i32) (i32.const 1024))
  (func $nothing)
  (func $load_part (export "load_part") (param $part i32) (call $js_load (local.get $part)))
  (func $double (type $unary) (param $x i32) (result i32) ${PAD} (i32.mul (local.get $x) (i32.const 2)))
  (func $triple (type $unary) (param $x i32) (result i32) ${PAD} (i32.mul (local.get $x) (i32.const 3)))
  (func $below (type $unary) (param $x i32) (result i32) ${PAD}
    (if (result i32) (i32.lt_s (local.get $x) (i32.const 2))
      (then (local.get $x))
      (else (i32.add
        (call $below (i32.sub (local.get $x) (i32.const 1)))
        (call $further (i32.sub (local.get $x) (i32.const 2)))))))
  (func $further (type $unary) (param $x i32) (result i32) ${PAD} (call $below (local.get $x)))
  (func $vector (param $x v128) (param $y f64) (result v128) ${PAD}
    (i32x4.add (local.get $x) (i32x4.splat (i32.trunc_f64_s (local.get $y)))))
  (func $pair (param $x i64) (result i64 i32) ${PAD} (tuple.make 2 (i64.add (local.get $x) (i64.const 1)) (i32.const 7)))
  (func $throws (param $x i32) ${PAD} (throw $thrown (call $double (local.get $x))))
  (func (export "fibonacci") (param $x i32) (result i32) (call $below (local.get $x)))
  (func (export "slot") (param $at i32) (param $x i32) (result i32)
    (call_indirect $table (type $unary) (local.get $x) (local.get $at)))
  (func (export "lanes") (param $x i32) (result i32)
    (i32x4.extract_lane 2 (call $vector (i32x4.splat (local.get $x)) (f64.const 3))))
  (func (export "long") (param $x i64) (result i64) (local $both (tuple i64 i32))
    (local.set $both (call $pair (local.get $x)))
    (i64.add (tuple.extract 2 0 (local.get $both)) (i64.extend_i32_s (tuple.extract 2 1 (local.get $both)))))
  (func (export "caught") (param $x i32) (result i32)
    (try (result i32)
      (do (call $throws (local.get $x)) (i32.const 0))
      (catch $thrown (pop i32))))
  (func (export "pushed") (param $x i32) (result i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 16)))
    (i32.atomic.store (global.get $stack) (call $triple (local.get $x)))
    (i32.atomic.rmw.add (global.get $stack) (i32.const 1)))
  (elem (table $table) (i32.const 1) func $double $triple $below $double))`;

/** How many functions the module defines; the first does nothing, and the second is the loader. */
const DEFINED = 16;

type Exports = Readonly<Record<string, (...given: (number | bigint)[]) => number | bigint>>;

/** Calls of the exports, by name. */
const CALLS: Readonly<Record<string, (exports: Exports) => unknown>> = {
  fibonacci: (it) => it["fibonacci"]?.(12),
  slots: (it) => [1, 2, 3, 4].map((slot) => it["slot"]?.(slot, 9)),
  lanes: (it) => it["lanes"]?.(5),
  long: (it) => it["long"]?.(2n ** 40n),
  caught: (it) => it["caught"]?.(21),
  pushed: (it) => [it["pushed"]?.(1), it["pushed"]?.(2)],
};

/** Memory that is not shared, as in the package. */
function memory(): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: 1, maximum: 2 });
}

function run(command: string, ...given: string[]): void {
  execFileSync(command, given, { cwd: ROOT, stdio: "pipe" });
}

/** The module split by numbers of functions: which are in the primary module, and which in the first part. */
function split(primary: readonly number[], first: readonly number[]): { exports: Exports; loaded: number[] } {
  writeFileSync(at("called"), primary.join(" "));
  writeFileSync(at("first"), first.join(" "));
  run(
    TOOL,
    "split",
    at("whole.wasm"),
    at("0.wasm"),
    at("called"),
    at("1.wasm"),
    at("first"),
    at("2.wasm"),
    at("3.wasm"),
  );
  const [main, ...parts] = [0, 1, 2, 3].map((it) => new WebAssembly.Module(readFileSync(at(`${it}.wasm`))));
  const loaded: number[] = [];
  const load = (part: number): void => {
    loaded.push(part);
    void new WebAssembly.Instance(parts[part - 1] as WebAssembly.Module, { primary: instance.exports });
  };
  const instance = new WebAssembly.Instance(main as WebAssembly.Module, { js: { load, memory: memory() } });
  return { exports: instance.exports as unknown as Exports, loaded };
}

let whole: Exports;

beforeAll(() => {
  run(
    "cargo",
    "build",
    "--quiet",
    "--release",
    "--locked",
    "--package",
    "wasm-split",
    "--target-dir",
    "target/bindgen",
  );
  writeFileSync(at("whole.wat"), MODULE);
  const assembler = join(ROOT, "node_modules/binaryen/bin/wasm-as");
  run("node", assembler, "--all-features", "--disable-custom-descriptors", at("whole.wat"), "-o", at("shared.wasm"));
  run(TOOL, "unshare", at("shared.wasm"), at("whole.wasm"));
  const module = new WebAssembly.Module(readFileSync(at("whole.wasm")));
  whole = new WebAssembly.Instance(module, { js: { load: () => {}, memory: memory() } }).exports as unknown as Exports;
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("whatever is deferred, calls give what they gave, and each part is loaded once at most", () => {
  const expected = Object.fromEntries(Object.entries(CALLS).map(([name, call]) => [name, call(whole)]));
  expect(expected).toMatchObject({ fibonacci: 144, slots: [18, 27, 34, 18], lanes: 8, caught: 42 });
  const names = Object.keys(CALLS);
  let loads = 0;
  for (let division = 0; division < 60; division++) {
    // Each function once in each part, in every way that two numbers tell apart.
    const partOf = (it: number): number => (it * ((division % 7) + 1) + (it >> 1) * (division % 5) + division) % 3;
    const functions = Array.from({ length: DEFINED }, (_, it) => it);
    const { exports, loaded } = split(
      functions.filter((it) => partOf(it) === 0),
      functions.filter((it) => partOf(it) === 1),
    );
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + division) % names.length] as string;
      expect(CALLS[name]?.(exports), `${name} of division ${division}`).toEqual(expected[name]);
    }
    expect(new Set(loaded).size, `division ${division}`).toBe(loaded.length);
    loads += loaded.length;
  }
  expect(loads).toBeGreaterThan(60);
});
