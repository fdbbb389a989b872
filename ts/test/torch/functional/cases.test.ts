import { beforeAll, describe, expect, test } from "vitest";
import { init } from "../../../src/engine/engine.ts";
import { FxError } from "../../../src/base/errors.ts";
import { Graph } from "../../../src/graph/graph.ts";
import { manualSeed } from "../../../src/torch/random.ts";
import { GraphAppendingTracer } from "../../../src/trace/tracerBase.ts";
import { callCase, type Case, CASES, decode, difference } from "./cases.ts";

beforeAll(() => init());

const FAMILIES = [...new Set(CASES.map((it) => it.fn))].map((fn) => [fn, CASES.filter((it) => it.fn === fn)] as const);

function describeCase({ args, kwargs }: Case): string {
  return JSON.stringify([args, kwargs], (key, value) => (key === "data" ? undefined : (value as unknown))).slice(
    0,
    300,
  );
}

/** What is wrong with the call of a case; `undefined` where nothing is. */
function problem(it: Case): string | undefined {
  const args = it.args.map((arg) => decode(arg));
  let result: unknown;
  if (it.seed !== undefined) manualSeed(it.seed);
  try {
    result = callCase(it, args);
  } catch (error) {
    if (!(error instanceof FxError)) return `threw ${String(error)}`;
    return it.error === undefined || error.kind === "Internal" ? `threw ${error.message}` : undefined;
  }
  if (it.error !== undefined) return `gave a result instead of ${it.error.type}: ${it.error.message}`;
  const found = it.result === undefined ? undefined : difference(result, decode(it.result));
  if (found !== undefined) return found;
  for (const [at, after] of [it.after, it.after1, it.after2].entries()) {
    const changed = after === undefined ? undefined : difference(args[at], decode(after));
    if (changed !== undefined) return `argument ${at} after the call: ${changed}`;
  }
  return undefined;
}

describe("functions give what PyTorch gives", () => {
  test.each(FAMILIES)("%s", (_, cases) => {
    const problems = cases.flatMap((it) => {
      const found = problem(it);
      return found === undefined ? [] : [`${describeCase(it)}: ${found}`];
    });
    expect(problems).toEqual([]);
  });
});

describe("traced calls are recorded as PyTorch records them", () => {
  test.each(FAMILIES.filter(([, cases]) => cases.some((it) => it.recorded !== undefined)))("%s", (_, cases) => {
    for (const it of cases.filter((each) => each.recorded !== undefined)) {
      const graph = new Graph();
      const tracer = new GraphAppendingTracer(graph);
      let count = 0;
      const wrap = (): unknown => tracer.proxy(graph.placeholder(`x${(count += 1)}`));
      callCase(
        it,
        it.args.map((arg) => decode(arg, wrap)),
        wrap,
      );
      expect([...graph.nodes].at(-1)?.formatNode()).toBe(it.recorded);
    }
  });
});
