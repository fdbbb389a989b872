import { expect, test } from "vitest";
import { runWhileLoop } from "../../src/trace/higherOrder.ts";
import { thrown } from "../thrown.ts";

/** Runs the body in each of n steps of a loop. */
function count(n: number, body: () => void): readonly unknown[] {
  return runWhileLoop(
    (i) => (i as number) < n,
    (i) => {
      body();
      return [(i as number) + 1];
    },
    [0],
    [],
  );
}

test("loops within loops take their steps from one number", () => {
  // Each of these loops would be within the limit.
  const error = thrown(() => count(1025, () => count(1025, () => {})));
  expect(error.code).toBe("FX0104");
  // The next loop begins anew.
  expect(count(1000, () => count(1000, () => {}))).toEqual([1000]);
});
