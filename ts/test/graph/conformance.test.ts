/** The recorded graphs, as `npm run conformance -- graphs` checks them. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Result } from "../../../tests/conformance/engine.mjs";
import { graphCases } from "../../../tests/conformance/graphs.mjs";
import { DIFFERENCES } from "../../../tests/conformance/graphs/kinds.mjs";

/** How many cases of each kind there are, so that none is lost. */
const COUNTS = {
  edit_script: 120,
  namespace: 55,
  lint: 17,
  topo: 82,
  codegen: 10,
  symbolic_trace: 69,
  dce: 88,
  cse: 78,
  functionalize: 5,
  normalize: 41,
  interpreter: 34,
  split_module: 58,
  partitioner: 40,
  const_fold: 25,
  matcher: 365,
  replace_pattern: 265,
  export: 17,
};

const dir = fileURLToPath(new URL("../../../tests/fixtures/graphs", import.meta.url));
const results: Result[] = [];
for await (const result of graphCases(dir, undefined)) results.push(result);

describe("GR, NM, LT, CG: graphs are edited, named, checked, sorted and printed as PyTorch does", () => {
  test.each(results)("$name", ({ name, status, detail }) => {
    expect([status, detail]).toEqual(Object.hasOwn(DIFFERENCES, name) ? ["differs", detail] : ["passed", undefined]);
  });

  test("in as many cases as were recorded", () => {
    const kinds = results.map(({ name }) => name.slice(0, name.indexOf("/")));
    const counts = Object.keys(COUNTS).map((kind) => [kind, kinds.filter((it) => it === kind).length]);
    expect(Object.fromEntries(counts)).toEqual(COUNTS);
    expect(results.length).toBe(Object.values(COUNTS).reduce((sum, it) => sum + it));
  });
});
