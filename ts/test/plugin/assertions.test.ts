/**
 * Assertions that are recorded, and what PyTorch 2.13 records: `tests/oracle/gen_experimental.py` has the same program.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each function is read by itself
import { runInThisContext } from "node:vm";
import { expect, test } from "vitest";
import { RewritingTracer, symbolicTrace, type Tensor, type Traceable, Tracer } from "../../src/index.ts";
import { rewrite } from "../../src/plugin/rewrite.ts";
import { __tracefx } from "../../src/trace/checked.ts";
import { experimental } from "../experimental.ts";

const SOURCE = `return (x) => {
  console.assert(x.sum() > 0, "a sum above zero");
  assert(x.min() > -9);
  return x.relu();
};`;

/** The function as the build plugin leaves it. */
function rewritten(assert: (holds: unknown) => void): Traceable {
  const runtime = { specifier: "tracefx/checked", expression: "calls" };
  const code = rewrite(SOURCE, { operators: true, format: "commonjs", runtime })?.code ?? "";
  const make = runInThisContext(
    `(calls, assert) => { ${code.replace(/^.*?calls;?/, "const { __tracefx } = { __tracefx: calls };")} }`,
  );
  return (make as (...args: unknown[]) => Traceable)(__tracefx, assert);
}

test("as PyTorch records: assertions_of_python", () => {
  const asserted: unknown[] = [];
  const gm = symbolicTrace(
    rewritten((it) => void asserted.push(it)),
    { tracer: new RewritingTracer() },
  );
  expect([String(gm.graph)]).toEqual(experimental("assertions_of_python"));
  // The function goes on as if they held.
  expect(asserted).toEqual([true]);
});

test("other tracers refuse them, and this one other decisions", () => {
  const traced = (fn: Traceable, tracer: Tracer) => () => symbolicTrace(fn, { tracer });
  expect(
    traced(
      rewritten(() => undefined),
      new Tracer(),
    ),
  ).toThrow("cannot be used as inputs to control flow");
  const decides = (x: Tensor): Tensor => ((__tracefx.$test(x, "if") as boolean) ? x.sin() : x);
  expect(traced(decides, new RewritingTracer())).toThrow("as in `if`");
  const plain = (x: Tensor): Tensor => {
    // oxlint-disable-next-line no-console -- this is what is asked of the tracer
    console.assert(x as never, "seen by no plugin");
    return x;
  };
  expect(traced(plain, new RewritingTracer())).toThrow("console.assert");
});
