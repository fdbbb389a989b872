/** What `npm run check` runs after a change: a repository of a few files in, the names of what is run, fresh and left out. */
import { expect, test } from "vitest";
import { crateUnits, decide, digest, testUnits } from "../../scripts/decide.mjs";

const REPOSITORY = {
  "Cargo.lock": "1",
  "crates/core/src/lib.rs": "#[test] fn adds() {}",
  "crates/core/tests/it/main.rs": 'fn f() { fixture("numbers/sums.json") }',
  "crates/ops/src/lib.rs": "",
  "crates/ops/tests/it/main.rs": '#[path = "../../../core/tests/it/main.rs"]\n#[test] fn calls() {}',
  "crates/ops/inner/src/lib.rs": "#[test] fn prints() {}",
  "crates/empty/src/lib.rs": "",
  "fuzz/src/lib.rs": "",
  "docs/passes.md": "",
  "tests/fixtures/numbers/sums.json": "3",
  "tests/fixtures/programs/model.pt2": "PK",
  "ts/src/index.ts": 'export { add } from "./graph/add.ts";\nexport { draw } from "./draw/draw.ts";',
  "ts/src/graph/add.ts": 'import type { Picture } from "../draw/picture.ts";\nexport const add = 1;',
  "ts/src/draw/draw.ts": 'import { line } from "./line.ts";\nimport type { Picture } from "./picture.ts";',
  "ts/src/draw/line.ts": "",
  "ts/src/draw/picture.ts": "",
  "ts/src/alone.ts": "",
  "ts/test/setup.ts": "",
  "ts/test/cases.ts": 'export const cases = new URL("../../tests/fixtures/programs/model.pt2", import.meta.url);',
  "ts/test/graph/add.test.ts": 'import {\n  add,\n} from "../../src/graph/add.ts";',
  "ts/test/draw/draw.test.ts": 'import { draw } from "../../src/index.ts";\nimport { cases } from "../cases.ts";',
  "ts/test/readme.test.ts": 'const text = read("README.md");',
  "README.md": "",
  "tests/browser/page.test.ts": "",
  "ts/wasm/engine-simd.wasm": "",
  "ts/wasm/engine-rare.wasm": "",
};

const PACKAGES = [
  { name: "core", folder: "crates/core", dependencies: [], separate: [] },
  { name: "ops", folder: "crates/ops", dependencies: ["crates/core"], separate: [] },
  { name: "inner", folder: "crates/ops/inner", dependencies: [], separate: [] },
  { name: "empty", folder: "crates/empty", dependencies: ["crates/ops"], separate: [] },
  { name: "fuzz", folder: "fuzz", dependencies: ["crates/empty"], separate: ["fuzz"] },
];

type Repository = Readonly<Record<string, string>>;

function unitsOf(repository: Repository, facts: readonly string[]) {
  const all = new Map(Object.entries(repository).toSorted());
  const read = (path: string) => all.get(path) ?? "";
  return [...crateUnits(all, read, PACKAGES, facts), ...testUnits(all, read, facts)];
}

/** What is done after everything succeeded and these files changed. */
function after(changes: Repository, options = {}, facts: readonly string[] = ["1.95"]) {
  const last = new Map(unitsOf(REPOSITORY, ["1.95"]).map((it) => [it.name, it.prints]));
  const units = unitsOf({ ...REPOSITORY, ...changes }, facts);
  const { run, left } = decide(units, (name) => last.get(name), options);
  return { run: run.map((it) => it.name), left: left.map((it) => it.name) };
}

const README = "ts/test/readme.test.ts";
const ADD = "ts/test/graph/add.test.ts";
const DRAW = "ts/test/draw/draw.test.ts";

test("everything is run that never succeeded", () => {
  const { run, fresh, left } = decide(unitsOf(REPOSITORY, []), () => undefined);
  expect(run.map((it) => it.name)).toEqual(["core", "ops", "inner", "fuzz", DRAW, ADD, README]);
  expect([fresh, left]).toEqual([[], []]);
});

test("nothing is run where nothing changed, or what nobody reads", () => {
  expect(after({})).toEqual({ run: [], left: [] });
  expect(after({ "docs/new.md": "new", "ts/src/alone.ts": "changed" })).toEqual({ run: [], left: [] });
});

test.each<[string, string[], string[]]>([
  ["crates/core/src/lib.rs", ["core"], ["ops", "fuzz"]],
  // The tests of a crate are its own, but where another takes them in.
  ["crates/core/tests/it/main.rs", ["core", "ops"], []],
  ["crates/ops/src/lib.rs", ["ops"], ["fuzz"]],
  ["crates/ops/tests/it/main.rs", ["ops"], []],
  // A crate in the folder of another is not a part of it.
  ["crates/ops/inner/src/lib.rs", ["inner"], []],
  ["crates/empty/src/lib.rs", [], ["fuzz"]],
  // Recorded data is an input of those whose tests name it, and may be read by others.
  ["tests/fixtures/numbers/sums.json", ["core"], ["ops", "inner", "fuzz", DRAW, ADD, README]],
  ["tests/fixtures/programs/model.pt2", [DRAW], ["core", "ops", "inner", "fuzz", ADD, README]],
  ["ts/src/graph/add.ts", [ADD], [DRAW]],
  ["ts/src/draw/line.ts", [DRAW], []],
  // A file of which only types are imported is not read when a test runs.
  ["ts/src/draw/picture.ts", [], []],
  ["ts/src/index.ts", [DRAW], []],
  ["ts/test/cases.ts", [DRAW], []],
  ["ts/test/setup.ts", [], [DRAW, ADD, README]],
  ["ts/wasm/engine-simd.wasm", [], [DRAW, ADD, README]],
  ["ts/wasm/engine-rare.wasm", [], [DRAW, ADD, README]],
  ["README.md", [README], []],
  ["Cargo.lock", [], ["core", "ops", "inner", "fuzz", DRAW, ADD, README]],
])("a change of %s runs what it belongs to, and leaves what stands on it", (path, run, left) => {
  const changes = { [path]: `${REPOSITORY[path as keyof typeof REPOSITORY]} // changed` };
  expect(after(changes)).toEqual({ run, left });
  const all = after(changes, { dependants: true });
  expect([all.run.toSorted(), all.left]).toEqual([[...run, ...left].toSorted(), []]);
});

test("another compiler leaves everything", () => {
  expect(after({}, {}, ["1.96"])).toEqual({ run: [], left: ["core", "ops", "inner", "fuzz", DRAW, ADD, README] });
});

function files(entries: Repository) {
  return new Map(Object.entries(entries));
}

test("a hash is of the names and the contents of the files that are taken", () => {
  const hash = digest(files({ a: "1", b: "2" }), (path) => path === "a", ["fact"]);
  expect(digest(files({ a: "1", b: "3", c: "4" }), (path) => path === "a", ["fact"])).toBe(hash);
  for (const other of [{ a: "2" }, { b: "1" }, { a: "1", b: "2" }]) {
    expect(digest(files(other), () => true, ["fact"])).not.toBe(hash);
  }
  expect(digest(files({ a: "1" }), () => true, ["other"])).not.toBe(hash);
});
