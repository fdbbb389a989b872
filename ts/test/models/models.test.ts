/** The models of the examples, in small, with PyTorch's weights: `tests/oracle/gen_models.py --small` recorded its numbers. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { modelCases } from "../../../tests/conformance/models.mjs";

const folder = fileURLToPath(new URL("../../../tests/fixtures/small-models", import.meta.url));
const examples = new URL("../../examples/models/", import.meta.url);
const importer = (file: string): Promise<Record<string, unknown>> => import(new URL(file, examples).pathname);

test.each(readdirSync(folder))("%s is exported with dynamic sizes and gives PyTorch's numbers", async (name) => {
  const found = [];
  for await (const it of modelCases(folder, name, undefined, {}, "ts", importer)) found.push(it);
  expect(found).toEqual([{ name, status: "passed", detail: expect.stringMatching(/^\d+ sizes, the largest error/) }]);
});
