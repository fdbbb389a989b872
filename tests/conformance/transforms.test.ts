/** A slice of the recorded transforms of operators; `npm run -s conformance -- transforms tests/fixtures/transforms` runs all of them. */
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { init } from "tracefx";
import { countsOf } from "./counts.mjs";
import { recordedTransforms } from "./transforms.mjs";

beforeAll(() => init());

const FOLDER = fileURLToPath(new URL("../fixtures/transforms", import.meta.url));

test("transforms of operators are those of PyTorch", () => {
  // Gradients of all operators are compared elsewhere.
  const recorded = [...recordedTransforms(FOLDER)].filter(({ transform }) => transform !== "vjp");
  const results = recorded.filter((_, at) => at % 40 === 0).map(({ run }) => run());
  const { passed, others } = countsOf(results);
  expect(Object.values(others)).not.toContain("failed");
  expect([results.length, passed]).toEqual([34, 32]);
});
