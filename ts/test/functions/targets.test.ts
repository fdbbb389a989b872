import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { torch } from "../../src/index.ts";
import { functionOf } from "../../src/functions/table.ts";

/** Functions of the code that made the graphs. */
const THEIR_OWN = new Set(["__main__.Pt"]);

/** Operators are looked up when they are called. */
const OPERATORS = "torch.ops.aten.";

/** The targets of calls of functions in a graph, at any depth of a case. */
function targetsIn(value: unknown, found: Set<string>): void {
  if (typeof value !== "object" || value === null) return;
  const { op, target } = value as { op?: unknown; target?: unknown };
  if (op === "call_function" && typeof target === "string") found.add(target);
  for (const it of Object.values(value)) targetsIn(it, found);
}

test("every function that recorded graphs call is there", () => {
  const folder = new URL("../../../tests/fixtures/graphs/", import.meta.url);
  const found = new Set<string>();
  for (const file of readdirSync(folder).filter((it) => it.endsWith(".jsonl"))) {
    for (const line of readFileSync(new URL(file, folder), "utf8").trimEnd().split("\n")) {
      targetsIn(JSON.parse(line), found);
    }
  }
  expect(found.size).toBeGreaterThan(50);
  // The functions of torch are there once the package is.
  expect(torch.relu).toBeDefined();
  const missing = [...found].filter(
    (it) => !it.startsWith(OPERATORS) && functionOf(it) === undefined && !THEIR_OWN.has(it),
  );
  expect(missing).toEqual([]);
});
