/** The counts of recorded cases may only rise. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { countsOf, fallOf, folderName, readCounts, recordCounts } from "./counts.mjs";
import type { Result } from "./engine.mjs";

const FIRST: Result[] = [
  { name: "aten.add:1", status: "passed" },
  { name: "aten.add:2", status: "passed" },
  { name: "aten.mul:1", status: "skipped", detail: "not implemented" },
  { name: "aten.div:1", status: "differs", detail: "on purpose" },
];

/** The first results, where some have become others. */
const changed = (to: Record<string, Result["status"]>): Result[] =>
  FIRST.map(({ name, status }) => ({ name, status: to[name] ?? status }));

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "tracefx-"));
  file = join(dir, "counts.json");
  recordCounts("shared/opcases", "native", countsOf(FIRST), file);
});
afterEach(() => rmSync(dir, { recursive: true }));

test("the counts of a folder are kept, with the names of what does not pass", () => {
  expect(readCounts(file)).toEqual({
    "shared/opcases": {
      native: { passed: 2, differs: 1, others: { "aten.div:1": "differs", "aten.mul:1": "skipped" } },
    },
  });
});

test("counts that rise are recorded, and leave the other ways alone", () => {
  recordCounts("shared/opcases", "wasm", countsOf(FIRST), file);
  recordCounts("shared/opcases", "native", countsOf(changed({ "aten.mul:1": "passed" })), file);
  const { native, wasm } = readCounts(file)["shared/opcases"] ?? {};
  expect([native?.passed, wasm?.passed]).toEqual([3, 2]);
});

test("a count that falls is refused, and the case that fell is named", () => {
  const before = readFileSync(file, "utf8");
  const found = countsOf(changed({ "aten.add:2": "skipped" }));
  expect(() => recordCounts("shared/opcases", "native", found, file)).toThrow(
    "the counts of shared/opcases may only rise, and nothing is recorded: 1 passed where 2 did before: aten.add:2",
  );
  expect(readFileSync(file, "utf8")).toBe(before);
});

test("cases that are gone are a fall", () => {
  const known = readCounts(file)["shared/opcases"]?.["native"];
  expect(fallOf(known, countsOf(FIRST.slice(1)))).toBe(
    "1 passed where 2 did before: at least 1 that are no longer in the folder",
  );
});

test("a failure is refused, however many pass", () => {
  const found = countsOf([
    ...FIRST,
    { name: "aten.sub:1", status: "passed" },
    { name: "aten.sub:2", status: "failed" },
  ]);
  expect(() => recordCounts("shared/opcases", "native", found, file)).toThrow("1 failed: aten.sub:2");
});

test("a folder has one name, wherever beside the repository it lies", () => {
  const root = join(import.meta.dirname, "../..");
  expect(folderName(join(root, "tests/fixtures/opcases"))).toBe("tests/fixtures/opcases");
  expect(folderName(join(root, "../shared/opcases"))).toBe("shared/opcases");
  expect(folderName(join(root, "../../shared/opcases"))).toBe("shared/opcases");
});
