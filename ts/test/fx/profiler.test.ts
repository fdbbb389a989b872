import { expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { ProfilingInterpreter } from "../../src/fx/profiler.ts";
import { calls } from "./functions.ts";

/** A clock that goes on only when a node says so. */
function profiled(): { profiler: ProfilingInterpreter; run: (first: number, second: number) => void } {
  let time = 0;
  const graph = new Graph();
  const [a, b] = [graph.placeholder("a"), graph.placeholder("b")];
  graph.output([graph.callFunction(calls, [a]), graph.callFunction(calls, [b])]);
  const profiler = new ProfilingInterpreter(new GraphModule({}, graph), { now: () => time });
  const run = (first: number, second: number): void => {
    profiler.run(
      () => (time += first),
      () => (time += second),
    );
  };
  return { profiler, run };
}

test("nodes are timed over all runs, the slowest first", () => {
  const { profiler, run } = profiled();
  run(1, 2);
  run(1, 4);
  const timings = profiler.timings().map(({ node, ...rest }) => [node.name, rest]);
  expect(timings.slice(0, 2)).toEqual([
    ["calls_1", { runs: 2, mean: 3, percent: 75 }],
    ["calls", { runs: 2, mean: 1, percent: 25 }],
  ]);
  expect(profiler.timings({ sort: false }).map(({ node }) => node.name)).toEqual([
    "a",
    "b",
    "calls",
    "calls_1",
    "output",
  ]);
});

test("the summary is a table", () => {
  const { profiler, run } = profiled();
  run(1, 3);
  expect(profiler.summary()).toBe(
    [
      "Op type        Op       Average runtime (ms)  Pct total runtime",
      "-------------  -------  --------------------  -----------------",
      "call_function  calls_1  3.0000                75.00",
      "call_function  calls    1.0000                25.00",
      "placeholder    a        0.0000                0.00",
      "placeholder    b        0.0000                0.00",
      "output         output   0.0000                0.00",
    ].join("\n"),
  );
});

test("a graph that took no measurable time has shares of nothing", () => {
  const { profiler, run } = profiled();
  run(0, 0);
  expect(profiler.timings().every(({ percent }) => percent === 0)).toBe(true);
});

test("there is no summary before the first run", () => {
  expect(() => profiled().profiler.summary()).toThrow(expect.objectContaining({ kind: "InvalidOption" }));
});
