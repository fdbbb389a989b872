import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { moduleCases } from "../../../tests/conformance/modules.mjs";

test("modules give PyTorch's outputs, by themselves, traced, and as leaves", async () => {
  const folder = fileURLToPath(new URL("../../../tests/fixtures/modules", import.meta.url));
  const names = new Set<string>();
  const problems: string[] = [];
  for await (const { name, status, detail } of moduleCases(folder, undefined)) {
    names.add(name.replace(/\/.*/, ""));
    if (status !== "passed") problems.push(`${status} ${name}: ${detail}`);
  }
  expect(problems).toEqual([]);
  expect(names.size).toBe(107);
}, 60_000);
